# stepsim_registry(TARGET FAMILY HEADER): the registry of a plug-in folder.
#
# Every src/FAMILY/NAME.c defines `const struct FAMILY FAMILY_NAME`. Support
# files start with the family's name or end in _registry.c; subfolders are not
# looked at. The generated FAMILY_registry.c lists the structs sorted by name,
# so the order never depends on the file system. A file that does not define
# its struct fails to link.
function(stepsim_registry target family header)
    stepsim_folder_wanted(${family} wanted)
    file(GLOB found CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${family}/*.c)
    set(names "")
    foreach(source IN LISTS found)
        get_filename_component(name ${source} NAME_WE)
        if(NOT name MATCHES "^${family}" AND NOT name MATCHES "_registry$")
            list(APPEND names ${name})
        endif()
    endforeach()
    if(NOT names OR NOT wanted)
        return()
    endif()
    list(SORT names)
    list(LENGTH names count)
    set(declarations "")
    set(rows "")
    foreach(name IN LISTS names)
        string(APPEND declarations "extern const struct ${family} ${family}_${name};\n")
        string(APPEND rows "    &${family}_${name},\n")
    endforeach()
    set(output ${CMAKE_BINARY_DIR}/generated/${family}_registry.c)
    file(CONFIGURE OUTPUT ${output} @ONLY CONTENT
"/* Generated from the file names of src/@family@; do not edit. */
#include <stddef.h>

#include \"@header@\"

@declarations@
extern const struct @family@ *const @family@_registry[];
extern const size_t @family@_count;

const struct @family@ *const @family@_registry[] = {
@rows@    NULL,
};
const size_t @family@_count = @count@;
")
    target_sources(${target} PRIVATE ${output})
endfunction()
