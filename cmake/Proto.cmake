# Target proto: the messages of proto/ as C, in the build directory.
file(GLOB_RECURSE proto_files CONFIGURE_DEPENDS
    RELATIVE "${PROJECT_SOURCE_DIR}/proto" "${PROJECT_SOURCE_DIR}/proto/*.proto")
set(PROTO_C_DIR "${GENERATED_DIR}/proto")
file(MAKE_DIRECTORY "${PROTO_C_DIR}")

set(proto_sources "")
foreach(file IN LISTS proto_files)
    string(REGEX REPLACE "\\.proto$" ".pb-c" stem "${PROTO_C_DIR}/${file}")
    add_custom_command(
        OUTPUT "${stem}.c" "${stem}.h"
        COMMAND "${PROTOC_C}" "--c_out=${PROTO_C_DIR}" "-I${PROJECT_SOURCE_DIR}/proto"
                "${PROJECT_SOURCE_DIR}/proto/${file}"
        DEPENDS "${PROJECT_SOURCE_DIR}/proto/${file}"
        COMMENT "Generating ${file}"
        VERBATIM)
    list(APPEND proto_sources "${stem}.c" "${stem}.h")
endforeach()

add_library(proto STATIC ${proto_sources})
target_compile_options(proto PRIVATE -w)
target_include_directories(proto SYSTEM PUBLIC "${PROTO_C_DIR}")
target_link_libraries(proto PUBLIC PkgConfig::PROTOBUF_C)
