#include "core/build_info.h"

#include "commit.h"
#include "version.h"

#include <assert.h>
#include <crypt.h>
#include <gnu/libc-version.h>
#include <jansson.h>
#include <libdeflate.h>
#include <lz4.h>
#include <nghttp2/nghttp2.h>
#include <openssl/crypto.h>
#include <protobuf-c/protobuf-c.h>
#include <uv.h>
#include <xxhash.h>
#include <yaml.h>
#include <zlib.h>
#include <zstd.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#ifdef PROFCOL_HAVE_LLHTTP
#include <llhttp.h>
#else
#include <http_parser.h>
#endif

#define BUILT_WITH " (at build time)"

static void append(struct text *out, const char *name, const char *version)
{
    text_printf(out, "  %-12s %s\n", name, version);
}

static void append_numbers(struct text *out, const char *name, unsigned major, unsigned minor,
                           unsigned patch)
{
    text_printf(out, "  %-12s %u.%u.%u\n", name, major, minor, patch);
}

static void append_pcre2(struct text *out)
{
    char version[64]; /* "10.42 2022-12-11" */
    assert(pcre2_config(PCRE2_CONFIG_VERSION, NULL) <= (int)sizeof version);
    pcre2_config(PCRE2_CONFIG_VERSION, version);
    append(out, "pcre2", version);
}

static void append_http1_parser(struct text *out)
{
#ifdef PROFCOL_HAVE_LLHTTP
    text_printf(out, "  %-12s %d.%d.%d" BUILT_WITH "\n", "llhttp", LLHTTP_VERSION_MAJOR,
                LLHTTP_VERSION_MINOR, LLHTTP_VERSION_PATCH);
#else
    unsigned long version = http_parser_version();
    append_numbers(out, "http-parser", version >> 16 & 255, version >> 8 & 255, version & 255);
#endif
}

/* In the order of cmake/Dependencies.cmake. */
static void append_libraries(struct text *out)
{
    unsigned xxhash = XXH_versionNumber();
    append(out, "libc", gnu_get_libc_version());
    append(out, "libuv", uv_version_string());
    append(out, "nghttp2", nghttp2_version(0)->version_str);
    append(out, "protobuf-c", protobuf_c_version());
    append(out, "jansson", jansson_version_str());
    append(out, "libyaml", yaml_get_version_string());
    append(out, "openssl", OpenSSL_version(OPENSSL_VERSION_STRING));
    append(out, "zlib", zlibVersion());
    append(out, "libdeflate", LIBDEFLATE_VERSION_STRING BUILT_WITH);
    append(out, "zstd", ZSTD_versionString());
    append(out, "snappy", PROFCOL_SNAPPY_VERSION BUILT_WITH);
    append(out, "lz4", LZ4_versionString());
    append_numbers(out, "xxhash", xxhash / 10000, xxhash / 100 % 100, xxhash % 100);
    append_pcre2(out);
    append(out, "libcrypt", XCRYPT_VERSION_STR BUILT_WITH);
    append_http1_parser(out);
}

void build_info_print(struct text *out)
{
    text_append(out, "profcol version " PROFCOL_VERSION "\n");
    text_append(out, "commit: " PROFCOL_COMMIT "\n");
    text_append(out, "compiler: " PROFCOL_COMPILER "\n");
    text_append(out, "build type: " PROFCOL_BUILD_TYPE "\n");
    text_append(out, "target: " PROFCOL_TARGET "\n");
    text_append(out, "libraries:\n");
    append_libraries(out);
}
