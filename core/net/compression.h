/*
 * compression: the compressions that OTLP uses over HTTP and gRPC.
 *
 * Decompression works in bounded steps, stops at the limit for the output, and reserves memory as
 * the output grows. So a bomb costs no more than a permitted request of that size. gzip, deflate
 * and zlib (both RFC 1950), zstd, snappy (raw block, or framed when it starts with the stream id),
 * x-snappy-framed, lz4 (frame).
 *
 * Owner: results belong to the caller.
 *
 * Thread: any; the libraries' contexts are kept per thread and freed at its end.
 */
#ifndef PROFCOL_CORE_NET_COMPRESSION_H
#define PROFCOL_CORE_NET_COMPRESSION_H

#include "core/base/buffer.h"
#include "core/base/error.h"

enum compression {
    COMPRESSION_NONE,
    COMPRESSION_GZIP,
    COMPRESSION_ZLIB,
    COMPRESSION_DEFLATE,
    COMPRESSION_SNAPPY,
    COMPRESSION_X_SNAPPY_FRAMED,
    COMPRESSION_ZSTD,
    COMPRESSION_LZ4,
    COMPRESSION_COUNT,
};
extern const char *const compression_names[]; /* "none", "gzip", ...; NULL-terminated */

/* Returns the compression for a value of Content-Encoding or grpc-encoding; -1 if it is unknown. ""
 * and "identity" (gRPC only) mean none. */
int compression_by_name(struct slice name);
/* Whether gRPC peers support it: none, gzip, snappy, zstd. */
bool compression_in_grpc(enum compression compression);

enum decompress_result {
    DECOMPRESS_OK,
    DECOMPRESS_CORRUPT,
    DECOMPRESS_TOO_LARGE,
    DECOMPRESS_TOO_DENSE, /* more than decompress_limit */
    DECOMPRESS_OVER_BUDGET
};

/* Returns how many bytes this number of compressed bytes may decompress to: 1 MiB plus 1,032 times
 * their number, the most that deflate reaches (RFC 1951: 258 bytes for two bits). zstd reaches
 * 100,000 times and more, but not with telemetry. */
size_t decompress_limit(uint64_t compressed_bytes);
/* Returns the decompressed size in bytes that the data itself states: in the trailer of gzip, the
 * header of a zstd frame, the length of a snappy block; 0 if it states none. It need not be
 * true. */
uint64_t decompress_claim(enum compression compression, struct slice in);

/* Decompresses all of `in` into a new buffer. `in` must be one complete stream with nothing after
 * it (several gzip members, zstd frames or lz4 frames are allowed). The output has at most max_size
 * and decompress_limit bytes. */
enum decompress_result decompress(enum compression compression, struct slice in, size_t max_size,
                                  struct budget *budget, struct buffer **out, struct error *err);

/* Compresses the concatenation of the slices. level as in the Collector's compression_params.level;
 * 0: the default. `grpc`: snappy is the framed form, as gRPC peers use it. Never returns NULL: the
 * budget is charged without asking, because the data was already admitted, and the process ends if
 * an allocation fails. */
struct buffer *compress_slices(enum compression compression, int level, bool grpc,
                               const struct slice *slices, size_t count, struct budget *budget);

#endif
