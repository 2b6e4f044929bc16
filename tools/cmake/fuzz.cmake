# stepsim_fuzz(): with STEPSIM_FUZZ, every tests/fuzz/fuzz_NAME.c becomes a libFuzzer program.
#
# Needs clang. The whole library is instrumented, so use a build folder of its own:
#     CC=clang cmake -S . -B build/fuzz -G Ninja -DSTEPSIM_FUZZ=ON -DSTEPSIM_SANITIZE=ON
#     build/fuzz/fuzz_scenario -max_total_time=300 -dict=tests/fuzz/scenario.dict CORPUS tests/bad
option(STEPSIM_FUZZ "Build the fuzzers, with clang" OFF)
if(STEPSIM_FUZZ)
    target_compile_options(stepsim_flags INTERFACE
                           $<$<COMPILE_LANGUAGE:C>:-fsanitize=fuzzer-no-link>)
endif()

function(stepsim_fuzz)
    if(NOT STEPSIM_FUZZ)
        return()
    endif()
    if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
        message(FATAL_ERROR "STEPSIM_FUZZ needs clang; the compiler is ${CMAKE_C_COMPILER_ID}")
    endif()
    file(GLOB found CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/fuzz/fuzz_*.c)
    foreach(source IN LISTS found)
        get_filename_component(name ${source} NAME_WE)
        add_executable(${name} ${source})
        target_link_libraries(${name} PRIVATE libstepsim)
        target_compile_definitions(${name} PRIVATE STEPSIM_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
        target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    endforeach()
endfunction()
