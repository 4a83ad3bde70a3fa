/*
 * Feeds decompress with any bytes in any encoding: it must stay within its limit and release the
 * budget, and compressing and decompressing an accepted output again must give the same bytes. The
 * first byte chooses the encoding, the second the limit.
 */
#include "core/base/budget.h"
#include "core/net/compression.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void check_again(enum compression compression, struct slice plain)
{
    struct buffer *packed = compress_slices(compression, 0, false, &plain, 1, NULL);
    struct buffer *out;
    struct error err;
    require(decompress(compression, buffer_slice(packed), plain.size, NULL, &out, &err) ==
            DECOMPRESS_OK);
    require(slice_equal(buffer_slice(out), plain));
    buffer_unref(out);
    buffer_unref(packed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    enum compression compression = (enum compression)(data[0] % COMPRESSION_COUNT);
    size_t limit = data[1] < 128 ? data[1] : (size_t)1 << 20;
    struct budget budget = {.limit_bytes = (size_t)2 << 20};
    struct buffer *out;
    struct error err;
    enum decompress_result result =
        decompress(compression, slice_of(data + 2, size - 2), limit, &budget, &out, &err);
    require((result == DECOMPRESS_OK) == (out != NULL));
    if (out) {
        require(out->size <= limit);
        check_again(compression, buffer_slice(out));
    }
    buffer_unref(out);
    require(budget_used(&budget) == 0);
    return 0;
}
