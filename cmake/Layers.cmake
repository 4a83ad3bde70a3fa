# add_layer(<name> GLOBS <pattern>... [EXCEPT <file>...] USES <target>...)
#
# One static library per layer from the files that match. A layer without files is an interface
# library, so that the layers above it can name it all the same.
function(add_layer name)
    cmake_parse_arguments(ARG "" "" "GLOBS;EXCEPT;USES" ${ARGN})
    file(GLOB sources CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}" ${ARG_GLOBS})
    list(REMOVE_ITEM sources ${ARG_EXCEPT} "")
    if(sources)
        add_library(${name} STATIC ${sources})
        target_compile_options(${name} PRIVATE ${PROFCOL_WARNINGS})
        target_link_libraries(${name} PUBLIC ${ARG_USES})
    else()
        add_library(${name} INTERFACE)
        target_link_libraries(${name} INTERFACE ${ARG_USES})
    endif()
endfunction()
