# embed_files(<header> <prefix> <folder> <pattern>...)
#
# Writes a header with the files of a folder as arrays of bytes, and a table of them:
#   static const struct <prefix> {const char *path; const uint8_t *data; size_t size;} <prefix>s[];
# path begins with "/". A changed file makes CMake write it again.
function(embed_files header prefix folder)
    list(TRANSFORM ARGN PREPEND "${folder}/" OUTPUT_VARIABLE patterns)
    file(GLOB files CONFIGURE_DEPENDS RELATIVE "${folder}" ${patterns})
    set(arrays "")
    set(table "")
    set(number 0)
    foreach(name IN LISTS files)
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${folder}/${name}")
        file(READ "${folder}/${name}" bytes HEX)
        string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
        string(APPEND arrays "static const uint8_t ${prefix}_${number}[] = {${bytes}};\n")
        string(APPEND table
            "    {\"/${name}\", ${prefix}_${number}, sizeof ${prefix}_${number}},\n")
        math(EXPR number "${number} + 1")
    endforeach()
    set(EMBEDDED "/* Generated from ${folder}. */\n${arrays}static const struct ${prefix} {\n    const char *path;\n    const uint8_t *data;\n    size_t size;\n} ${prefix}s[] = {\n${table}};\n")
    string(REPLACE "${PROJECT_SOURCE_DIR}/" "" EMBEDDED "${EMBEDDED}")
    file(CONFIGURE OUTPUT "${header}" CONTENT "@EMBEDDED@" @ONLY)
endfunction()
