# stepsim_embed(TARGET FILE SYMBOL): FILE becomes a constant of the program.
#
# The assembler includes the bytes as they are and puts a NUL behind them:
#     extern const char SYMBOL[];
#     extern const size_t SYMBOL_length;   without the NUL
# Both are declared in the generated header stepsim_embedded.h.
function(stepsim_embed target file symbol)
    set(output ${CMAKE_BINARY_DIR}/generated/embedded/${symbol}.S)
    file(CONFIGURE OUTPUT ${output} @ONLY CONTENT
"    .section .rodata
    .global @symbol@
    .type @symbol@, %object
@symbol@:
    .incbin \"@file@\"
@symbol@_end:
    .byte 0
    .size @symbol@, . - @symbol@
    .balign 8
    .global @symbol@_length
    .type @symbol@_length, %object
@symbol@_length:
    .8byte @symbol@_end - @symbol@
    .size @symbol@_length, 8
    .section .note.GNU-stack, \"\", %progbits
")
    set_source_files_properties(${output} PROPERTIES OBJECT_DEPENDS ${file})
    target_sources(${target} PRIVATE ${output})
endfunction()

# Every text beside the sources: src/store/schema.sql becomes store_schema_sql.
function(stepsim_embed_all target)
    set(declarations "")
    foreach(extension sql yaml html css js json txt)
        file(GLOB_RECURSE found CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/*.${extension})
        foreach(file IN LISTS found)
            file(RELATIVE_PATH path ${CMAKE_SOURCE_DIR}/src ${file})
            string(MAKE_C_IDENTIFIER ${path} symbol)
            stepsim_embed(${target} ${file} ${symbol})
            string(APPEND declarations
                   "extern const char ${symbol}[];\nextern const size_t ${symbol}_length;\n")
        endforeach()
    endforeach()
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/stepsim_embedded.h @ONLY CONTENT
"/* Generated from the texts below src; do not edit. Lengths are without the final NUL. */
#ifndef STEPSIM_EMBEDDED_H
#define STEPSIM_EMBEDDED_H

#include <stddef.h>

@declarations@
#endif
")
endfunction()
