# Writes stepsim_version.h: the version, the commit, and whether tracked files differ from it.
# Run as a script; the file is touched only when its text changes.
cmake_minimum_required(VERSION 3.25)
set(commit "unknown")
set(dirty 0)
find_program(GIT git)
if(GIT)
    execute_process(COMMAND ${GIT} -C ${SOURCE_DIR} rev-parse --short=12 HEAD
                    OUTPUT_VARIABLE head RESULT_VARIABLE status ERROR_QUIET
                    OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(status EQUAL 0)
        set(commit ${head})
        # Without optional locks a build never disturbs a commit that is being made.
        execute_process(COMMAND ${GIT} --no-optional-locks -C ${SOURCE_DIR} status --porcelain
                                --untracked-files=no
                        OUTPUT_VARIABLE changes ERROR_QUIET)
        if(changes)
            set(dirty 1)
        endif()
    endif()
endif()
set(suffix "")
if(dirty)
    set(suffix "-dirty")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT
"/* Generated from the checkout; do not edit. */
#ifndef STEPSIM_VERSION_H
#define STEPSIM_VERSION_H

#define STEPSIM_VERSION \"@VERSION@\"
#define STEPSIM_COMMIT \"@commit@@suffix@\"
#define STEPSIM_COMMIT_DIRTY @dirty@

#endif
")
