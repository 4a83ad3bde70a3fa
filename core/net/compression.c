#include "core/net/compression.h"

#include "core/base/budget.h"
#include "core/base/memory.h"

#include <assert.h>
#include <libdeflate.h>
#include <lz4frame.h>
#include <pthread.h>
#include <snappy-c.h>
#include <zlib.h>
#include <zstd.h>

enum {
    STEP_BYTES = 64 * 1024,   /* the output grows by at least this */
    ZSTD_WINDOW_LOG_MAX = 23, /* 8 MiB; zstd's own default is 128 MiB */
    /* Larger contexts are not kept for the next request, because each thread may have one of each,
     * and no budget counts them. A decompression context is mostly its window; a compression
     * context at level 3 is smaller. */
    ZSTD_IN_KEEP = 256 * 1024,
    ZSTD_OUT_KEEP = 1536 * 1024,
    LZ4_BLOCK_MAX = 4 * 1024 * 1024,
    DEFLATE_RATIO_MAX = 1032,       /* the most that deflate can reach */
    PLAIN_FREE_BYTES = 1024 * 1024, /* allowed with any ratio */
    SNAPPY_RATIO_MAX = 22,          /* 64 bytes from a copy of 3 */
    SNAPPY_CHUNK_BYTES = 65536,
    GZIP_LEVEL_DEFAULT = 4, /* gives about the same size as the Collector's output */
    ZSTD_LEVEL_DEFAULT = 1, /* likewise */
};

const char *const compression_names[] = {
    [COMPRESSION_NONE] = "none",     [COMPRESSION_GZIP] = "gzip",
    [COMPRESSION_ZLIB] = "zlib",     [COMPRESSION_DEFLATE] = "deflate",
    [COMPRESSION_SNAPPY] = "snappy", [COMPRESSION_X_SNAPPY_FRAMED] = "x-snappy-framed",
    [COMPRESSION_ZSTD] = "zstd",     [COMPRESSION_LZ4] = "lz4",
    [COMPRESSION_COUNT] = NULL,
};

int compression_by_name(struct slice name)
{
    if (name.size == 0 || slice_is(name, "identity"))
        return COMPRESSION_NONE;
    for (int i = 0; i < COMPRESSION_COUNT; i++)
        if (slice_is(name, compression_names[i]))
            return i;
    return -1;
}

bool compression_in_grpc(enum compression compression)
{
    return compression == COMPRESSION_NONE || compression == COMPRESSION_GZIP ||
           compression == COMPRESSION_SNAPPY || compression == COMPRESSION_ZSTD;
}

/* Contexts of the libraries, created when first used and kept for the thread, because creating one
 * costs more than a small request. */
struct codecs {
    struct libdeflate_decompressor *inflate;
    struct libdeflate_compressor *deflate;
    int deflate_level;
    ZSTD_DCtx *zstd_in;
    ZSTD_CCtx *zstd_out;
};

static _Thread_local struct codecs *thread_codecs;
static pthread_key_t codecs_key;
static pthread_once_t codecs_once = PTHREAD_ONCE_INIT;

static void free_codecs(void *context)
{
    struct codecs *codecs = context;
    libdeflate_free_decompressor(codecs->inflate);
    libdeflate_free_compressor(codecs->deflate);
    ZSTD_freeDCtx(codecs->zstd_in);
    ZSTD_freeCCtx(codecs->zstd_out);
    free(codecs);
}

static void make_codecs_key(void)
{
    int rc = pthread_key_create(&codecs_key, free_codecs);
    assert(rc == 0);
}

static struct codecs *codecs_of_thread(void)
{
    if (!thread_codecs) {
        pthread_once(&codecs_once, make_codecs_key);
        thread_codecs = memory_zalloc(sizeof *thread_codecs);
        pthread_setspecific(codecs_key, thread_codecs); /* only for its destructor */
    }
    return thread_codecs;
}

/* The output of all decoders. Its capacity may exceed the limit by one byte, so that "exactly full"
 * and "too large" can be distinguished. */
struct output {
    struct buffer *buffer;
    size_t max_size;
    bool is_dense; /* max_size is from decompress_limit */
    struct error *err;
    size_t window_bytes; /* reserved for the decoder's copy of its last output */
};

static enum decompress_result corrupt(struct output *out, const char *codec, const char *why)
{
    error_set(out->err, "%s: %s", codec, why);
    return DECOMPRESS_CORRUPT;
}

static enum decompress_result too_large(struct output *out)
{
    error_set(out->err, "decompressed data is larger than %zu bytes%s", out->max_size,
              out->is_dense ? ", which is 1 MiB and 1032 times the compressed size" : "");
    return out->is_dense ? DECOMPRESS_TOO_DENSE : DECOMPRESS_TOO_LARGE;
}

static enum decompress_result over_budget(struct output *out)
{
    error_set(out->err, "not enough memory to decompress");
    return DECOMPRESS_OVER_BUDGET;
}

/* Makes room for at least one byte, and for STEP_BYTES if the limit allows. */
static enum decompress_result make_room(struct output *out)
{
    struct buffer *buffer = out->buffer;
    if (buffer->size > out->max_size)
        return too_large(out);
    if (buffer->size < buffer->capacity)
        return DECOMPRESS_OK;
    size_t left = out->max_size + 1 - buffer->size;
    size_t more = left < STEP_BYTES ? left : STEP_BYTES;
    return buffer_reserve(buffer, more, out->max_size + 1) ? DECOMPRESS_OK : over_budget(out);
}

/* Makes room for exactly `size` more bytes, if the size is known before decoding. */
static enum decompress_result make_exact_room(struct output *out, uint64_t size)
{
    if (size > out->max_size || out->buffer->size > out->max_size - (size_t)size)
        return too_large(out);
    return buffer_reserve(out->buffer, (size_t)size, out->max_size + 1) ? DECOMPRESS_OK
                                                                        : over_budget(out);
}

/* Reserves memory for the window of a decoder, which keeps a copy of at most the last `most` bytes
 * of its output. Of its allocation it uses no more than the size of the output, so only that is
 * reserved. */
static enum decompress_result make_window(struct output *out, size_t most)
{
    size_t need = out->buffer->capacity < most ? out->buffer->capacity : most;
    if (need <= out->window_bytes)
        return DECOMPRESS_OK;
    if (!budget_reserve(out->buffer->budget, need - out->window_bytes))
        return over_budget(out);
    out->window_bytes = need;
    return DECOMPRESS_OK;
}

static uint8_t *room_start(struct output *out)
{
    assert(out->buffer->size <= out->buffer->capacity);
    return out->buffer->data ? out->buffer->data + out->buffer->size : NULL;
}

static size_t room_size(const struct output *out)
{
    return out->buffer->capacity - out->buffer->size;
}

static enum decompress_result copy_plain(struct slice in, struct output *out)
{
    enum decompress_result result = make_exact_room(out, in.size);
    if (result == DECOMPRESS_OK)
        buffer_append(out->buffer, in.data, in.size, out->max_size + 1);
    return result;
}

static uint32_t read_le32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* ---- gzip, zlib, deflate ---- */

/* Decompresses a single member whose trailer has its true size, at twice the speed of zlib. Returns
 * false if zlib must decompress the input. */
static bool gunzip_whole(struct slice in, struct output *out)
{
    if (in.size < 18) /* header and trailer */
        return false;
    size_t size = read_le32(in.data + in.size - 4);
    if (size > out->max_size || size / DEFLATE_RATIO_MAX > in.size)
        return false;
    if (make_exact_room(out, size) != DECOMPRESS_OK)
        return false;
    struct codecs *codecs = codecs_of_thread();
    if (!codecs->inflate)
        codecs->inflate = libdeflate_alloc_decompressor();
    size_t used = 0, written = 0;
    if (!codecs->inflate ||
        libdeflate_gzip_decompress_ex(codecs->inflate, in.data, in.size, room_start(out), size,
                                      &used, &written) != LIBDEFLATE_SUCCESS)
        return false;
    if (used != in.size)
        return false;
    out->buffer->size += written;
    return true;
}

static enum decompress_result run_inflate(z_stream *z, struct slice in, bool members,
                                          const char *codec, struct output *out)
{
    z->next_in = (Bytef *)(uintptr_t)in.data;
    z->avail_in = (uInt)in.size;
    for (;;) {
        enum decompress_result result = make_room(out);
        if (result != DECOMPRESS_OK)
            return result;
        z->next_out = room_start(out);
        size_t room = room_size(out) < UINT32_MAX ? room_size(out) : UINT32_MAX;
        z->avail_out = (uInt)room;
        int rc = inflate(z, Z_NO_FLUSH);
        out->buffer->size += room - z->avail_out;
        if (rc == Z_STREAM_END && z->avail_in == 0)
            return out->buffer->size > out->max_size ? too_large(out) : DECOMPRESS_OK;
        if (rc == Z_STREAM_END && !members)
            return corrupt(out, codec, "data after the end of the stream");
        if (rc == Z_STREAM_END)
            rc = inflateReset(z);
        if (rc == Z_BUF_ERROR || (rc == Z_OK && z->avail_in == 0 && z->avail_out > 0))
            return corrupt(out, codec, "the stream is truncated");
        if (rc != Z_OK)
            return corrupt(out, codec, z->msg ? z->msg : "invalid data");
    }
}

static enum decompress_result decode_zlib(struct slice in, bool gzip, const char *codec,
                                          struct output *out)
{
    if (in.size > UINT32_MAX)
        return too_large(out);
    z_stream z = {0};
    if (inflateInit2(&z, 15 + (gzip ? 16 : 0)) != Z_OK)
        return over_budget(out);
    enum decompress_result result = run_inflate(&z, in, gzip, codec, out);
    inflateEnd(&z);
    return result;
}

static enum decompress_result decode_gzip(struct slice in, struct output *out)
{
    if (gunzip_whole(in, out))
        return DECOMPRESS_OK;
    out->buffer->size = 0;
    return decode_zlib(in, true, "gzip", out);
}

/* ---- zstd ---- */

/* Whether it is a frame of the standard format. The library may also read formats before 0.8, which
 * are refused. */
static bool is_zstd_frame(struct slice in)
{
    if (in.size < 4)
        return false;
    uint32_t magic = read_le32(in.data);
    return magic == ZSTD_MAGICNUMBER || (magic & 0xfffffff0u) == 0x184d2a50u;
}

/* Decompresses a single frame that has its size, in one call and without a window. */
static bool unzstd_whole(ZSTD_DCtx *context, struct slice in, struct output *out,
                         enum decompress_result *result)
{
    unsigned long long size = ZSTD_getFrameContentSize(in.data, in.size);
    if (size >= ZSTD_CONTENTSIZE_ERROR) /* or ZSTD_CONTENTSIZE_UNKNOWN */
        return false;
    if (ZSTD_findFrameCompressedSize(in.data, in.size) != in.size)
        return false;
    *result = make_exact_room(out, size);
    if (*result != DECOMPRESS_OK)
        return true;
    size_t written = ZSTD_decompressDCtx(context, room_start(out), (size_t)size, in.data, in.size);
    if (ZSTD_isError(written))
        *result = corrupt(out, "zstd", ZSTD_getErrorName(written));
    else
        out->buffer->size += written;
    return true;
}

static enum decompress_result stream_zstd(ZSTD_DCtx *context, struct slice in, struct output *out)
{
    ZSTD_inBuffer input = {in.data, in.size, 0};
    size_t hint = 0; /* 0: between frames */
    while (input.pos < input.size || hint != 0) {
        if (hint == 0 && !is_zstd_frame(slice_of(in.data + input.pos, in.size - input.pos)))
            return corrupt(out, "zstd", "not a zstd frame");
        enum decompress_result result = make_room(out);
        if (result == DECOMPRESS_OK && ZSTD_sizeof_DCtx(context) > ZSTD_IN_KEEP)
            result = make_window(
                out, ZSTD_sizeof_DCtx(context)); /* size known from the second iteration on */
        if (result != DECOMPRESS_OK)
            return result;
        ZSTD_outBuffer output = {room_start(out), room_size(out), 0};
        size_t before = input.pos;
        hint = ZSTD_decompressStream(context, &output, &input);
        out->buffer->size += output.pos;
        if (ZSTD_isError(hint))
            return corrupt(out, "zstd", ZSTD_getErrorName(hint));
        if (hint != 0 && input.pos == before && output.pos == 0)
            return corrupt(out, "zstd", "the stream is truncated");
    }
    return out->buffer->size > out->max_size ? too_large(out) : DECOMPRESS_OK;
}

static enum decompress_result decode_zstd(struct slice in, struct output *out)
{
    if (!is_zstd_frame(in))
        return corrupt(out, "zstd", "not a zstd frame");
    struct codecs *codecs = codecs_of_thread();
    if (!codecs->zstd_in) {
        codecs->zstd_in = ZSTD_createDCtx();
        if (!codecs->zstd_in)
            return over_budget(out);
        ZSTD_DCtx_setParameter(codecs->zstd_in, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG_MAX);
    }
    enum decompress_result result = DECOMPRESS_OK;
    if (!unzstd_whole(codecs->zstd_in, in, out, &result))
        result = stream_zstd(codecs->zstd_in, in, out);
    ZSTD_DCtx_reset(codecs->zstd_in, ZSTD_reset_session_only);
    if (ZSTD_sizeof_DCtx(codecs->zstd_in) > ZSTD_IN_KEEP) {
        ZSTD_freeDCtx(codecs->zstd_in);
        codecs->zstd_in = NULL;
    }
    return result;
}

/* ---- snappy: https://github.com/google/snappy/blob/main/framing_format.txt ---- */

static const uint8_t snappy_stream_id[10] = {0xff, 6, 0, 0, 's', 'N', 'a', 'P', 'p', 'Y'};
enum { SNAPPY_COMPRESSED = 0x00, SNAPPY_PLAIN = 0x01, SNAPPY_SKIPPABLE = 0x80, SNAPPY_ID = 0xff };

static uint32_t crc32c_table[256];
static pthread_once_t crc32c_once = PTHREAD_ONCE_INIT;

static void make_crc32c_table(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ ((crc & 1) ? 0x82f63b78u : 0);
        crc32c_table[i] = crc;
    }
}

static uint32_t crc32c_plain(uint32_t crc, const uint8_t *p, size_t size)
{
    pthread_once(&crc32c_once, make_crc32c_table);
    for (; size > 0; size--)
        crc = crc >> 8 ^ crc32c_table[(crc ^ *p++) & 0xff];
    return crc;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) static uint32_t crc32c_fast(uint32_t crc, const uint8_t *p,
                                                              size_t size)
{
    uint64_t wide = crc;
    for (; size >= 8; size -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        wide = __builtin_ia32_crc32di(wide, word);
    }
    crc = (uint32_t)wide;
    for (; size > 0; size--)
        crc = __builtin_ia32_crc32qi(crc, *p++);
    return crc;
}
#endif

static uint32_t masked_crc32c(struct slice bytes)
{
    uint32_t crc = 0xffffffffu;
#ifdef __x86_64__
    if (__builtin_cpu_supports("sse4.2"))
        crc = crc32c_fast(crc, bytes.data, bytes.size);
    else
#endif
        crc = crc32c_plain(crc, bytes.data, bytes.size);
    crc = ~crc;
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static enum decompress_result decode_snappy_block(struct slice in, size_t block_max,
                                                  struct output *out)
{
    size_t size = 0;
    if (snappy_uncompressed_length((const char *)in.data, in.size, &size) != SNAPPY_OK)
        return corrupt(out, "snappy", "invalid length");
    if (size / SNAPPY_RATIO_MAX > in.size || size > block_max)
        return corrupt(out, "snappy", "the length is invalid");
    enum decompress_result result = make_exact_room(out, size);
    if (result != DECOMPRESS_OK)
        return result;
    /* For empty input: the library needs an output address anyway. */
    char nothing[1];
    char *to = size > 0 ? (char *)room_start(out) : nothing;
    if (snappy_uncompress((const char *)in.data, in.size, to, &size) != SNAPPY_OK)
        return corrupt(out, "snappy", "invalid data");
    out->buffer->size += size;
    return DECOMPRESS_OK;
}

static enum decompress_result decode_snappy_chunk(uint8_t type, struct slice payload,
                                                  struct output *out)
{
    if (type == SNAPPY_ID)
        return slice_is(payload, "sNaPpY") ? DECOMPRESS_OK
                                           : corrupt(out, "snappy", "invalid stream identifier");
    if (type >= SNAPPY_SKIPPABLE)
        return DECOMPRESS_OK;
    if (type > SNAPPY_PLAIN)
        return corrupt(out, "snappy", "unknown chunk type");
    if (payload.size < 4)
        return corrupt(out, "snappy", "a chunk is truncated");
    struct slice data = slice_of(payload.data + 4, payload.size - 4);
    size_t before = out->buffer->size;
    enum decompress_result result;
    if (type == SNAPPY_COMPRESSED)
        result = decode_snappy_block(data, SNAPPY_CHUNK_BYTES, out);
    else if (data.size > SNAPPY_CHUNK_BYTES)
        result = corrupt(out, "snappy", "a chunk is too large");
    else
        result = copy_plain(data, out);
    if (result != DECOMPRESS_OK || out->buffer->size == before)
        return result;
    struct slice plain = slice_of(out->buffer->data + before, out->buffer->size - before);
    return masked_crc32c(plain) == read_le32(payload.data)
               ? DECOMPRESS_OK
               : corrupt(out, "snappy", "the checksum does not match");
}

static enum decompress_result decode_snappy_framed(struct slice in, struct output *out)
{
    if (in.size < sizeof snappy_stream_id ||
        memcmp(in.data, snappy_stream_id, sizeof snappy_stream_id) != 0)
        return corrupt(out, "snappy", "no stream identifier");
    while (in.size > 0) {
        if (in.size < 4)
            return corrupt(out, "snappy", "the stream is truncated");
        size_t size = read_le32(in.data) >> 8;
        if (size > in.size - 4)
            return corrupt(out, "snappy", "the stream is truncated");
        enum decompress_result result =
            decode_snappy_chunk(in.data[0], slice_of(in.data + 4, size), out);
        if (result != DECOMPRESS_OK)
            return result;
        in = slice_of(in.data + 4 + size, in.size - 4 - size);
    }
    return DECOMPRESS_OK;
}

static enum decompress_result decode_snappy(struct slice in, struct output *out)
{
    if (in.size >= sizeof snappy_stream_id &&
        memcmp(in.data, snappy_stream_id, sizeof snappy_stream_id) == 0)
        return decode_snappy_framed(in, out);
    return decode_snappy_block(in, SIZE_MAX, out);
}

/* ---- lz4 ---- */

static enum decompress_result stream_lz4(LZ4F_dctx *context, struct slice in, struct output *out)
{
    size_t hint = 1; /* 0: between frames */
    while (in.size > 0 || hint != 0) {
        enum decompress_result result = make_room(out);
        if (result == DECOMPRESS_OK)
            result = make_window(out, LZ4_BLOCK_MAX);
        if (result != DECOMPRESS_OK)
            return result;
        size_t read = in.size, written = room_size(out);
        hint = LZ4F_decompress(context, room_start(out), &written, in.data, &read, NULL);
        if (LZ4F_isError(hint))
            return corrupt(out, "lz4", LZ4F_getErrorName(hint));
        out->buffer->size += written;
        in = slice_of(in.data + read, in.size - read);
        if (hint != 0 && read == 0 && written == 0)
            return corrupt(out, "lz4", "the stream is truncated");
    }
    return out->buffer->size > out->max_size ? too_large(out) : DECOMPRESS_OK;
}

static enum decompress_result decode_lz4(struct slice in, struct output *out)
{
    LZ4F_dctx *context = NULL;
    if (LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION)))
        return over_budget(out);
    enum decompress_result result = stream_lz4(context, in, out);
    LZ4F_freeDecompressionContext(context);
    return result;
}

static enum decompress_result decode(enum compression compression, struct slice in,
                                     struct output *out)
{
    switch (compression) {
    case COMPRESSION_NONE:
        return copy_plain(in, out);
    case COMPRESSION_GZIP:
        return decode_gzip(in, out);
    case COMPRESSION_ZLIB:
    case COMPRESSION_DEFLATE:
        return decode_zlib(in, false, compression_names[compression], out);
    case COMPRESSION_SNAPPY:
        return decode_snappy(in, out);
    case COMPRESSION_X_SNAPPY_FRAMED:
        return decode_snappy_framed(in, out);
    case COMPRESSION_ZSTD:
        return decode_zstd(in, out);
    case COMPRESSION_LZ4:
        return decode_lz4(in, out);
    case COMPRESSION_COUNT:
        break;
    }
    return corrupt(out, "compression", "unknown");
}

uint64_t decompress_claim(enum compression compression, struct slice in)
{
    unsigned long long size = 0;
    size_t block_size = 0;
    switch (compression) {
    case COMPRESSION_GZIP:
        return in.size >= 18 ? read_le32(in.data + in.size - 4) : 0;
    case COMPRESSION_ZSTD:
        size = ZSTD_getFrameContentSize(in.data, in.size);
        return size < ZSTD_CONTENTSIZE_ERROR ? size : 0;
    case COMPRESSION_SNAPPY:
        return snappy_uncompressed_length((const char *)in.data, in.size, &block_size) == SNAPPY_OK
                   ? block_size
                   : 0;
    default:
        return 0;
    }
}

size_t decompress_limit(uint64_t compressed_bytes)
{
    uint64_t limit = PLAIN_FREE_BYTES + compressed_bytes * DEFLATE_RATIO_MAX;
    assert(compressed_bytes < SIZE_MAX / DEFLATE_RATIO_MAX - PLAIN_FREE_BYTES);
    return (size_t)limit;
}

enum decompress_result decompress(enum compression compression, struct slice in, size_t max_size,
                                  struct budget *budget, struct buffer **out, struct error *err)
{
    assert(max_size < SIZE_MAX);
    *out = NULL;
    size_t limit = decompress_limit(in.size);
    bool is_dense = limit < max_size;
    struct output output = {.buffer = buffer_new(0, budget),
                            .max_size = is_dense ? limit : max_size,
                            .is_dense = is_dense,
                            .err = err};
    enum decompress_result result = decode(compression, in, &output);
    budget_release(budget, output.window_bytes);
    if (result != DECOMPRESS_OK) {
        buffer_unref(output.buffer);
        return result;
    }
    buffer_trim(output.buffer);
    assert(output.buffer->size <= output.max_size);
    *out = output.buffer;
    return DECOMPRESS_OK;
}

/* The encode_ functions write to memory that is large enough for the worst case, and return the
 * size of the output. */

static struct libdeflate_compressor *deflate_of_level(int level)
{
    struct codecs *codecs = codecs_of_thread();
    if (!codecs->deflate || codecs->deflate_level != level) {
        libdeflate_free_compressor(codecs->deflate);
        codecs->deflate = libdeflate_alloc_compressor(level);
        codecs->deflate_level = level;
        assert(codecs->deflate);
    }
    return codecs->deflate;
}

/* Converts Go's levels: -2 is Huffman only; -1 and 0 (YAML's zero value) are the default. */
static int deflate_level(int level)
{
    if (level == -2)
        return 1;
    return level <= 0 ? GZIP_LEVEL_DEFAULT : level > 9 ? 9 : level;
}

static size_t encode_zstd(int level, struct slice in, uint8_t *to, size_t room)
{
    struct codecs *codecs = codecs_of_thread();
    if (!codecs->zstd_out)
        codecs->zstd_out = ZSTD_createCCtx();
    assert(codecs->zstd_out);
    size_t size = ZSTD_compressCCtx(codecs->zstd_out, to, room, in.data, in.size,
                                    level == 0 ? ZSTD_LEVEL_DEFAULT : level);
    assert(!ZSTD_isError(size));
    if (ZSTD_sizeof_CCtx(codecs->zstd_out) > ZSTD_OUT_KEEP) {
        ZSTD_freeCCtx(codecs->zstd_out);
        codecs->zstd_out = NULL;
    }
    return size;
}

static const LZ4F_preferences_t lz4_preferences = {
    .frameInfo = {.blockSizeID = LZ4F_max4MB,
                  .blockMode = LZ4F_blockIndependent,
                  .contentChecksumFlag = LZ4F_contentChecksumEnabled},
};

static size_t encode_lz4(struct slice in, uint8_t *to, size_t room)
{
    size_t size = LZ4F_compressFrame(to, room, in.data, in.size, &lz4_preferences);
    assert(!LZ4F_isError(size));
    return size;
}

static size_t encode_snappy(struct slice in, uint8_t *to, size_t room)
{
    size_t size = room;
    snappy_status status = snappy_compress((const char *)in.data, in.size, (char *)to, &size);
    assert(status == SNAPPY_OK);
    return size;
}

static uint8_t *write_le(uint8_t *to, uint32_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        *to++ = (uint8_t)(value >> 8 * i);
    return to;
}

static uint8_t *write_snappy_chunk(struct slice plain, uint8_t *to, const uint8_t *end)
{
    assert(plain.size <= SNAPPY_CHUNK_BYTES && plain.size + 8 <= (size_t)(end - to));
    uint8_t *data = to + 8;
    size_t size = encode_snappy(plain, data, (size_t)(end - data));
    bool plain_is_smaller = size >= plain.size - plain.size / 8;
    if (plain_is_smaller) {
        memcpy(data, plain.data, plain.size);
        size = plain.size;
    }
    *to = plain_is_smaller ? SNAPPY_PLAIN : SNAPPY_COMPRESSED;
    write_le(to + 1, (uint32_t)size + 4, 3);
    write_le(to + 4, masked_crc32c(plain), 4);
    return data + size;
}

static size_t encode_snappy_framed(struct slice in, uint8_t *to, size_t room)
{
    uint8_t *start = to;
    const uint8_t *end = to + room;
    memcpy(to, snappy_stream_id, sizeof snappy_stream_id);
    to += sizeof snappy_stream_id;
    while (in.size > 0) {
        size_t size = in.size < SNAPPY_CHUNK_BYTES ? in.size : SNAPPY_CHUNK_BYTES;
        to = write_snappy_chunk(slice_of(in.data, size), to, end);
        in = slice_of(in.data + size, in.size - size);
    }
    return (size_t)(to - start);
}

static size_t encode_bound(enum compression compression, int level, size_t size)
{
    switch (compression) {
    case COMPRESSION_GZIP:
        return libdeflate_gzip_compress_bound(deflate_of_level(deflate_level(level)), size);
    case COMPRESSION_ZLIB:
    case COMPRESSION_DEFLATE:
        return libdeflate_zlib_compress_bound(deflate_of_level(deflate_level(level)), size);
    case COMPRESSION_SNAPPY:
        return snappy_max_compressed_length(size);
    case COMPRESSION_X_SNAPPY_FRAMED:
        return sizeof snappy_stream_id + (size / SNAPPY_CHUNK_BYTES + 1) *
                                             (8 + snappy_max_compressed_length(SNAPPY_CHUNK_BYTES));
    case COMPRESSION_ZSTD:
        return ZSTD_compressBound(size);
    case COMPRESSION_LZ4:
        return LZ4F_compressFrameBound(size, &lz4_preferences);
    case COMPRESSION_NONE:
    case COMPRESSION_COUNT:
        break;
    }
    return size;
}

static size_t encode(enum compression compression, int level, struct slice in, uint8_t *to,
                     size_t room)
{
    switch (compression) {
    case COMPRESSION_GZIP:
        return libdeflate_gzip_compress(deflate_of_level(deflate_level(level)), in.data, in.size,
                                        to, room);
    case COMPRESSION_ZLIB:
    case COMPRESSION_DEFLATE:
        return libdeflate_zlib_compress(deflate_of_level(deflate_level(level)), in.data, in.size,
                                        to, room);
    case COMPRESSION_SNAPPY:
        return encode_snappy(in, to, room);
    case COMPRESSION_X_SNAPPY_FRAMED:
        return encode_snappy_framed(in, to, room);
    case COMPRESSION_ZSTD:
        return encode_zstd(level, in, to, room);
    case COMPRESSION_LZ4:
        return encode_lz4(in, to, room);
    case COMPRESSION_NONE:
    case COMPRESSION_COUNT:
        break;
    }
    if (in.size > 0)
        memcpy(to, in.data, in.size);
    return in.size;
}

/* Joins the slices, because the libraries need one buffer. Copying is cheap in comparison to
 * compressing. */
static struct buffer *join_slices(const struct slice *slices, size_t count, struct budget *budget)
{
    size_t size = 0;
    for (size_t i = 0; i < count; i++)
        size += slices[i].size;
    struct buffer *joined = buffer_new_charged(size, budget);
    for (size_t i = 0; i < count; i++)
        buffer_append(joined, slices[i].data, slices[i].size, size);
    assert(joined->size == size);
    return joined;
}

struct buffer *compress_slices(enum compression compression, int level, bool grpc,
                               const struct slice *slices, size_t count, struct budget *budget)
{
    if (grpc && compression == COMPRESSION_SNAPPY)
        compression = COMPRESSION_X_SNAPPY_FRAMED; /* what gRPC peers mean by it */
    struct buffer *joined = NULL;
    struct slice in = SLICE("");
    if (count == 1) {
        in = slices[0];
    } else if (count > 1) {
        joined = join_slices(slices, count, budget);
        in = buffer_slice(joined);
    }
    struct buffer *out = buffer_new_charged(encode_bound(compression, level, in.size), budget);
    out->size = encode(compression, level, in, out->data, out->capacity);
    assert(out->size <= out->capacity);
    assert(in.size == 0 || out->size > 0);
    buffer_trim(out);
    buffer_unref(joined);
    return out;
}
