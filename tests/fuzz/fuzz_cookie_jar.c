/*
 * Each line is a Set-Cookie of a backend: what is sent back must be a valid header within its
 * limit.
 */
#include "core/net/cookie_jar.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint64_t now_ns = UINT64_C(1600000000000000000);
    struct cookie_jar jar = {0};
    struct text out = {0};
    for (size_t begin = 0, i = 0; i <= size; i++) {
        if (i < size && data[i] != '\n')
            continue;
        cookie_jar_store(&jar, slice_of(data + begin, i - begin), "api.example.com", "/v1/traces?x",
                         now_ns);
        begin = i + 1;
    }
    require(jar.count <= COOKIES_MAX);
    cookie_jar_print(&jar, "/v1/traces", size % 2 == 0, now_ns + 1, &out);
    require(out.size <= COOKIE_HEADER_MAX);
    for (size_t i = 0; i < out.size; i++)
        require(out.data[i] >= ' ' && out.data[i] <= '~');
    text_deinit(&out);
    cookie_jar_deinit(&jar);
    return 0;
}
