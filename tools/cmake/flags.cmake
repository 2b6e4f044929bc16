# Compiler flags, carried by the interface target stepsim_flags.
add_library(stepsim_flags INTERFACE)
target_compile_definitions(stepsim_flags INTERFACE
    _GNU_SOURCE
    STEPSIM_CONFIG_DIR="${CMAKE_SOURCE_DIR}/configs"
    STEPSIM_INSTALLED_CONFIG_DIR="../${CMAKE_INSTALL_DATADIR}/stepsim/configs")
target_compile_options(stepsim_flags INTERFACE
    $<$<COMPILE_LANGUAGE:C>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion
    -Wdouble-promotion -Wstrict-prototypes -Wmissing-prototypes -Wundef -Wvla -Wformat=2
    -ffp-contract=off>)
# Under -Wconversion clang also refuses ASSERT(!"words"), which says what went wrong.
target_compile_options(stepsim_flags INTERFACE
    $<$<COMPILE_LANG_AND_ID:C,Clang>:-Wno-string-conversion>)
if(STEPSIM_WERROR)
    target_compile_options(stepsim_flags INTERFACE $<$<COMPILE_LANGUAGE:C>:-Werror>)
endif()
if(STEPSIM_SANITIZE)
    target_compile_options(stepsim_flags INTERFACE $<$<COMPILE_LANGUAGE:C>:
        -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer>)
    target_link_options(stepsim_flags INTERFACE -fsanitize=address,undefined)
endif()
if(STEPSIM_ARENA_FORWARD)
    target_compile_definitions(stepsim_flags INTERFACE STEPSIM_ARENA_FORWARD)
endif()
if(STEPSIM_COVERAGE)
    target_compile_options(stepsim_flags INTERFACE $<$<COMPILE_LANGUAGE:C>:--coverage>)
    target_link_options(stepsim_flags INTERFACE --coverage)
endif()
if(STEPSIM_LTO)
    include(CheckIPOSupported)
    check_ipo_supported(RESULT lto_works LANGUAGES C)
    if(lto_works)
        set(CMAKE_INTERPROCEDURAL_OPTIMIZATION ON)
    endif()
endif()

# Functions that nobody may call; the header is put in front of every source of ours.
set(STEPSIM_BANNED $<$<COMPILE_LANGUAGE:C>:SHELL:-include ${CMAKE_SOURCE_DIR}/src/base/banned.h>)
