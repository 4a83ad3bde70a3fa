#include "core/pipeline/packing.h"

#include "core/data/signals.h"

bool packing_takes_long(bool json, enum compression compression, size_t size_bytes)
{
    enum { SLOW_BYTES = 256 * 1024, QUICK_BYTES = 8 * SLOW_BYTES };
    switch (compression) {
    case COMPRESSION_GZIP:
    case COMPRESSION_ZLIB:
    case COMPRESSION_DEFLATE:
        return size_bytes >= SLOW_BYTES;
    case COMPRESSION_NONE:
        return json && size_bytes >= SLOW_BYTES;
    default:
        return size_bytes >= (json ? SLOW_BYTES : QUICK_BYTES);
    }
}

void packing_print_json(enum signal signal, const struct slice *slices, size_t count,
                        struct budget *budget, struct text *out)
{
    struct buffer *joined = NULL;
    if (count != 1)
        joined = compress_slices(COMPRESSION_NONE, 0, false, slices, count, budget);
    json_from_protobuf(signal_traits(signal)->request, joined ? buffer_slice(joined) : slices[0],
                       out);
    buffer_unref(joined);
}
