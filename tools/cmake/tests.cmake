# One ctest per file: tests/KIND/**/test_NAME.c is a program on cmocka, test_NAME.sh
# runs under bash. The name of the test is its path, the label its KIND. A script that cannot run
# here ends with 77 and counts as skipped.
function(stepsim_add_tests)
    pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)

    add_library(test_support INTERFACE)
    target_include_directories(test_support INTERFACE ${CMAKE_SOURCE_DIR}/tests/support)
    target_link_libraries(test_support INTERFACE libstepsim PkgConfig::CMOCKA)
    if(TARGET test_builders)
        target_link_libraries(test_support INTERFACE test_builders)
    endif()

    file(GLOB_RECURSE found RELATIVE ${CMAKE_SOURCE_DIR}/tests CONFIGURE_DEPENDS
         ${CMAKE_SOURCE_DIR}/tests/test_*.c ${CMAKE_SOURCE_DIR}/tests/test_*.sh)
    list(SORT found)
    # The page in a browser: where the chart library is bundled and Debian's chromium is there.
    find_program(CHROMIUM chromium)
    if(NOT STEPSIM_REPORT_CHARTS OR NOT CHROMIUM)
        list(FILTER found EXCLUDE REGEX "^browser/")
    endif()
    foreach(path IN LISTS found)
        stepsim_add_test(${path})
    endforeach()

    if(EXISTS ${CMAKE_SOURCE_DIR}/tools/tidy)
        add_test(NAME tidy COMMAND ${CMAKE_SOURCE_DIR}/tools/tidy --cc ${CMAKE_C_COMPILER})
        set_tests_properties(tidy PROPERTIES LABELS tidy TIMEOUT 120)
    endif()
endfunction()

function(stepsim_add_test path)
    string(REGEX REPLACE "/.*" "" kind ${path})
    string(REGEX REPLACE "\\.(c|sh)$" "" name ${path})
    if(path MATCHES "^unit/(.*)$")
        stepsim_folder_wanted(${CMAKE_MATCH_1} wanted)
        if(NOT wanted)
            return()
        endif()
    elseif(STEPSIM_FOLDERS)
        return()
    endif()

    # Builds the program four times: once per run of all presets is enough.
    if(kind STREQUAL "builds" AND NOT CMAKE_BUILD_TYPE STREQUAL "Release")
        return()
    endif()

    # Millions of layouts: the same code runs in unit/search, and the sanitizers slow it tenfold.
    if(STEPSIM_SANITIZE AND path STREQUAL "validation/test_published_layouts.c")
        return()
    endif()

    set(binary "")
    if(TARGET stepsim)
        set(binary $<TARGET_FILE:stepsim>)
    endif()
    if(path MATCHES "\\.sh$")
        if(NOT TARGET stepsim AND NOT kind STREQUAL "tidy")
            return()
        endif()
        add_test(NAME ${name} COMMAND bash ${CMAKE_SOURCE_DIR}/tests/${path})
    else()
        string(MAKE_C_IDENTIFIER ${name} target)
        add_executable(${target} ${CMAKE_SOURCE_DIR}/tests/${path})
        set_target_properties(${target} PROPERTIES
            RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
        target_link_libraries(${target} PRIVATE test_support)
        target_compile_definitions(${target} PRIVATE
            STEPSIM_SOURCE_DIR="${CMAKE_SOURCE_DIR}" STEPSIM_BINARY="${binary}")
        # Units and laws call the library; whoever works on a part need not wait for the program.
        if(TARGET stepsim AND NOT kind MATCHES "^(unit|law)$")
            add_dependencies(${target} stepsim)
        endif()
        add_test(NAME ${name} COMMAND ${target})
    endif()
    set(timeout 120)
    if(kind STREQUAL "builds")
        set(timeout 900)
    elseif(kind MATCHES "^(sweep|cluster|validation)$" OR name MATCHES "^unit/search/")
        set(timeout 600)
    endif()
    if(STEPSIM_SANITIZE)
        math(EXPR timeout "${timeout} * 5")
    endif()
    set_tests_properties(${name} PROPERTIES
        LABELS ${kind} TIMEOUT ${timeout} SKIP_RETURN_CODE 77
        ENVIRONMENT "STEPSIM=${binary};SOURCE_DIR=${CMAKE_SOURCE_DIR}")
endfunction()
