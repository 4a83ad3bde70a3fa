# Everything comes from the distribution's packages; ./setup.sh installs them.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

function(need target module package)
    pkg_check_modules(${target} QUIET IMPORTED_TARGET GLOBAL "${module}")
    if(NOT ${target}_FOUND)
        message(FATAL_ERROR "${module} was not found: run ./setup.sh, "
                            "or install the package ${package}")
    endif()
endfunction()

need(UV libuv>=1.44 libuv1-dev)
need(NGHTTP2 libnghttp2>=1.52 libnghttp2-dev)
# Since 1.57, and in distributions that backported it, nghttp2 has a limit of its own on resets.
include(CheckSymbolExists)
set(CMAKE_REQUIRED_LIBRARIES PkgConfig::NGHTTP2)
check_symbol_exists(nghttp2_option_set_stream_reset_rate_limit nghttp2/nghttp2.h
                    PROFCOL_HAVE_NGHTTP2_RESET_LIMIT)
unset(CMAKE_REQUIRED_LIBRARIES)
if(PROFCOL_HAVE_NGHTTP2_RESET_LIMIT)
    add_compile_definitions(PROFCOL_HAVE_NGHTTP2_RESET_LIMIT=1)
endif()
need(PROTOBUF_C libprotobuf-c>=1.4.1 libprotobuf-c-dev)
need(JANSSON jansson libjansson-dev)
need(YAML yaml-0.1 libyaml-dev)
need(OPENSSL openssl>=3.0 libssl-dev)
need(ZLIB zlib zlib1g-dev)
need(DEFLATE libdeflate libdeflate-dev)
need(ZSTD libzstd libzstd-dev)
need(SNAPPY snappy libsnappy-dev)
need(LZ4 liblz4 liblz4-dev)
need(XXHASH libxxhash libxxhash-dev)
need(PCRE2 libpcre2-8 libpcre2-dev)
need(CRYPT libcrypt libcrypt-dev)
need(ELF libelf libelf-dev)

find_program(PROTOC_C protoc-c)
if(NOT PROTOC_C)
    message(FATAL_ERROR "protoc-c was not found: run ./setup.sh, "
                        "or install the package protobuf-c-compiler")
endif()

# HTTP/1.1: llhttp where the system has it, else its predecessor.
add_library(http1_parser INTERFACE)
pkg_check_modules(LLHTTP QUIET IMPORTED_TARGET libllhttp)
if(LLHTTP_FOUND)
    add_compile_definitions(PROFCOL_HAVE_LLHTTP=1)
    target_link_libraries(http1_parser INTERFACE PkgConfig::LLHTTP)
else()
    find_path(HTTP_PARSER_INCLUDE http_parser.h)
    find_library(HTTP_PARSER_LIBRARY http_parser)
    if(NOT HTTP_PARSER_INCLUDE OR NOT HTTP_PARSER_LIBRARY)
        message(FATAL_ERROR "Neither llhttp nor http-parser was found: run ./setup.sh, "
                            "or install the package libllhttp-dev or libhttp-parser-dev")
    endif()
    target_link_libraries(http1_parser INTERFACE "${HTTP_PARSER_LIBRARY}")
endif()
