#include "core/base/budget.h"
#include "core/base/memory.h"
#include "core/net/compression.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <zlib.h>
#include <zstd.h>

#include <cmocka.h>

#define MIB ((size_t)1024 * 1024)

/* Returns text that is half repetitive, half noise; always the same for the same size. */
static uint8_t *make_text(size_t size)
{
    uint8_t *text = memory_alloc(size + 1);
    uint64_t state = 88172645463325252u;
    for (size_t i = 0; i < size; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        text[i] = (i / 64) % 2 ? (uint8_t)state : (uint8_t)('a' + i % 23);
    }
    return text;
}

static enum decompress_result unpack(enum compression compression, struct slice in, size_t max,
                                     struct budget *budget, struct buffer **out)
{
    struct error err = {0};
    enum decompress_result result = decompress(compression, in, max, budget, out, &err);
    if (result == DECOMPRESS_OK) {
        assert_non_null(*out);
    } else {
        assert_null(*out);
        assert_true(err.text[0] != '\0');
    }
    return result;
}

static void check_same(enum compression compression, struct slice packed, struct slice expected)
{
    struct buffer *out;
    assert_int_equal(unpack(compression, packed, expected.size, NULL, &out), DECOMPRESS_OK);
    assert_int_equal(out->size, expected.size);
    assert_true(slice_equal(buffer_slice(out), expected));
    buffer_unref(out);
    if (expected.size > 0) {
        struct buffer *none;
        assert_int_equal(unpack(compression, packed, expected.size - 1, NULL, &none),
                         DECOMPRESS_TOO_LARGE);
    }
}

static void round_trips_of_all_sizes(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 17, 1000, 65535, 65536, 65537, 300000, 5000000};
    for (int c = 0; c < COMPRESSION_COUNT; c++) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            uint8_t *text = make_text(sizes[i]);
            struct slice in = slice_of(text, sizes[i]);
            struct buffer *packed = compress_slices((enum compression)c, 0, false, &in, 1, NULL);
            check_same((enum compression)c, buffer_slice(packed), in);
            buffer_unref(packed);
            free(text);
        }
    }
}

static void levels_of_the_collector(void **state)
{
    (void)state;
    static const int levels[] = {-2, -1, 0, 1, 6, 9, 19};
    uint8_t *text = make_text(100000);
    struct slice in = slice_of(text, 100000);
    for (int c = 0; c < COMPRESSION_COUNT; c++) {
        for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
            struct buffer *packed =
                compress_slices((enum compression)c, levels[i], false, &in, 1, NULL);
            check_same((enum compression)c, buffer_slice(packed), in);
            buffer_unref(packed);
        }
    }
    free(text);
}

static void slices_are_one_stream(void **state)
{
    (void)state;
    struct slice slices[] = {SLICE("one, "), SLICE(""), SLICE("two, "), SLICE("three")};
    for (int c = 0; c < COMPRESSION_COUNT; c++) {
        struct buffer *packed = compress_slices((enum compression)c, 0, false, slices, 4, NULL);
        check_same((enum compression)c, buffer_slice(packed), SLICE("one, two, three"));
        buffer_unref(packed);
        packed = compress_slices((enum compression)c, 0, false, slices, 0, NULL);
        check_same((enum compression)c, buffer_slice(packed), SLICE(""));
        buffer_unref(packed);
    }
}

static void snappy_of_grpc_is_framed(void **state)
{
    (void)state;
    struct slice in = SLICE("some text");
    struct buffer *packed = compress_slices(COMPRESSION_SNAPPY, 0, true, &in, 1, NULL);
    assert_memory_equal(packed->data, "\xff\x06\x00\x00sNaPpY", 10);
    check_same(COMPRESSION_SNAPPY, buffer_slice(packed), in);
    check_same(COMPRESSION_X_SNAPPY_FRAMED, buffer_slice(packed), in);
    buffer_unref(packed);
    packed = compress_slices(COMPRESSION_SNAPPY, 0, false, &in, 1, NULL);
    assert_int_equal(packed->data[0], in.size);
    struct buffer *out;
    assert_int_equal(unpack(COMPRESSION_X_SNAPPY_FRAMED, buffer_slice(packed), 100, NULL, &out),
                     DECOMPRESS_CORRUPT);
    buffer_unref(packed);
}

/* Every prefix of a stream is corrupt, and every stream with trailing bytes. */
static void cut_or_continued_is_corrupt(void **state)
{
    (void)state;
    uint8_t *text = make_text(3000);
    struct slice in = slice_of(text, 3000);
    for (int c = COMPRESSION_GZIP; c < COMPRESSION_COUNT; c++) {
        struct buffer *packed = compress_slices((enum compression)c, 0, false, &in, 1, NULL);
        struct buffer *out;
        for (size_t size = 0; size < packed->size; size++) {
            if (c == COMPRESSION_X_SNAPPY_FRAMED && size == 10)
                continue; /* a stream without chunks */
            assert_int_equal(
                unpack((enum compression)c, slice_of(packed->data, size), 1000000, NULL, &out),
                DECOMPRESS_CORRUPT);
        }
        buffer_append(packed, "garbage", 7, SIZE_MAX);
        assert_int_equal(unpack((enum compression)c, buffer_slice(packed), 1000000, NULL, &out),
                         DECOMPRESS_CORRUPT);
        buffer_unref(packed);
    }
    free(text);
}

static void flipped_bits_never_pass_unseen(void **state)
{
    (void)state;
    static const enum compression checked[] = {COMPRESSION_GZIP, COMPRESSION_ZLIB,
                                               COMPRESSION_X_SNAPPY_FRAMED, COMPRESSION_LZ4};
    uint8_t *text = make_text(600);
    struct slice in = slice_of(text, 600);
    for (size_t c = 0; c < sizeof checked / sizeof checked[0]; c++) {
        struct buffer *packed = compress_slices(checked[c], 0, false, &in, 1, NULL);
        for (size_t bit = 0; bit < packed->size * 8; bit++) {
            packed->data[bit / 8] ^= (uint8_t)(1u << bit % 8);
            struct buffer *out;
            if (unpack(checked[c], buffer_slice(packed), 100000, NULL, &out) == DECOMPRESS_OK) {
                /* The bit was in a header and did not affect the data, or it made a chunk
                 * skippable. */
                assert_true(out->size == 0 || slice_equal(buffer_slice(out), in));
                buffer_unref(out);
            }
            packed->data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        buffer_unref(packed);
    }
    free(text);
}

static void members_and_frames_may_follow_each_other(void **state)
{
    (void)state;
    static const enum compression with_members[] = {COMPRESSION_GZIP, COMPRESSION_ZSTD,
                                                    COMPRESSION_LZ4};
    for (size_t c = 0; c < 3; c++) {
        struct slice first = SLICE("first "), second = SLICE("second");
        struct buffer *a = compress_slices(with_members[c], 0, false, &first, 1, NULL);
        struct buffer *b = compress_slices(with_members[c], 0, false, &second, 1, NULL);
        buffer_append(a, b->data, b->size, SIZE_MAX);
        check_same(with_members[c], buffer_slice(a), SLICE("first second"));
        buffer_unref(a);
        buffer_unref(b);
    }
}

/* Compresses like a streaming client, which does not know the length in advance. */
static struct buffer *stream_zstd(struct slice plain, int window_log)
{
    ZSTD_CCtx *context = ZSTD_createCCtx();
    struct buffer *packed = buffer_new(ZSTD_compressBound(plain.size), NULL);
    ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, window_log);
    ZSTD_outBuffer out = {packed->data, packed->capacity, 0};
    ZSTD_inBuffer first = {plain.data, plain.size / 2, 0};
    ZSTD_inBuffer rest = {plain.data + plain.size / 2, plain.size - plain.size / 2, 0};
    assert_false(ZSTD_isError(ZSTD_compressStream2(context, &out, &first, ZSTD_e_continue)));
    assert_int_equal(ZSTD_compressStream2(context, &out, &rest, ZSTD_e_end), 0);
    packed->size = out.pos;
    ZSTD_freeCCtx(context);
    return packed;
}

/* A streaming decoder keeps a second copy of its last output (the window), which must fit as
 * well. */
static void the_window_of_a_stream_needs_room(void **state)
{
    (void)state;
    uint8_t *text = make_text(MIB);
    struct buffer *packed = stream_zstd(slice_of(text, MIB), 22), *out;
    struct budget budget = {.limit_bytes = MIB + MIB / 2}; /* enough for the output */
    assert_int_equal(unpack(COMPRESSION_ZSTD, buffer_slice(packed), MIB, &budget, &out),
                     DECOMPRESS_OVER_BUDGET);
    assert_int_equal(budget_used(&budget), 0);
    budget.limit_bytes = 3 * MIB;
    assert_int_equal(unpack(COMPRESSION_ZSTD, buffer_slice(packed), MIB, &budget, &out),
                     DECOMPRESS_OK);
    assert_int_equal(out->size, MIB);
    assert_int_equal(budget_used(&budget), out->capacity);
    buffer_unref(out);
    buffer_unref(packed);
    packed = stream_zstd(slice_of(text, MIB), 16); /* a small window is part of the context */
    budget.limit_bytes = MIB + MIB / 2;
    assert_int_equal(unpack(COMPRESSION_ZSTD, buffer_slice(packed), MIB, &budget, &out),
                     DECOMPRESS_OK);
    buffer_unref(out);
    buffer_unref(packed);
    free(text);
}

/* 100 MiB of zeros in each encoding with a limit of 20 MiB are refused. Reserved memory never
 * exceeds the limit, one step and a window. */
static void bombs_cost_no_more_than_the_limit(void **state)
{
    (void)state;
    uint8_t *zeros = calloc(1, 100 * MIB);
    struct slice in = slice_of(zeros, 100 * MIB);
    for (int c = COMPRESSION_GZIP; c < COMPRESSION_COUNT; c++) {
        struct buffer *packed = compress_slices((enum compression)c, 1, false, &in, 1, NULL);
        struct budget budget = {.limit_bytes = 29 * MIB};
        struct buffer *out;
        bool is_dense = decompress_limit(packed->size) < 20 * MIB;
        assert_int_equal(unpack((enum compression)c, buffer_slice(packed), 20 * MIB, &budget, &out),
                         is_dense ? DECOMPRESS_TOO_DENSE : DECOMPRESS_TOO_LARGE);
        assert_int_equal(is_dense, c == COMPRESSION_ZSTD);
        assert_int_equal(budget_used(&budget), 0);
        budget.limit_bytes = MIB;
        enum decompress_result result =
            unpack((enum compression)c, buffer_slice(packed), 200 * MIB, &budget, &out);
        assert_int_equal(result, is_dense ? DECOMPRESS_TOO_DENSE : DECOMPRESS_OVER_BUDGET);
        assert_int_equal(budget_used(&budget), 0);
        buffer_unref(packed);
    }
    free(zeros);
}

/* A few bytes of zstd may decompress to 1 MiB, but no more: with a content size, without one, in
 * many frames. */
static void what_deflate_cannot_reach_is_too_dense(void **state)
{
    (void)state;
    uint8_t *zeros = calloc(1, 2 * MIB);
    struct slice mib = slice_of(zeros, MIB), more = slice_of(zeros, 2 * MIB);
    struct buffer *packed = compress_slices(COMPRESSION_ZSTD, 1, false, &mib, 1, NULL);
    check_same(COMPRESSION_ZSTD, buffer_slice(packed), mib);
    assert_true(buffer_reserve(packed, 3 * packed->size, SIZE_MAX)); /* it is appended to itself */
    for (int i = 0; i < 2; i++)
        buffer_append(packed, packed->data, packed->size, SIZE_MAX);
    struct buffer *out;
    assert_in_range(packed->size, 1, 1000);
    assert_int_equal(unpack(COMPRESSION_ZSTD, buffer_slice(packed), 20 * MIB, NULL, &out),
                     DECOMPRESS_TOO_DENSE);
    assert_int_equal(unpack(COMPRESSION_ZSTD, buffer_slice(packed), MIB, NULL, &out),
                     DECOMPRESS_TOO_LARGE);
    buffer_unref(packed);
    packed = compress_slices(COMPRESSION_ZSTD, 1, false, &more, 1, NULL);
    assert_int_equal(unpack(COMPRESSION_ZSTD, buffer_slice(packed), 20 * MIB, NULL, &out),
                     DECOMPRESS_TOO_DENSE);
    buffer_unref(packed);
    free(zeros);
}

static void a_wrong_length_in_the_trailer_is_found(void **state)
{
    (void)state;
    struct slice in = SLICE("text of some length, long enough to be compressed at all");
    struct buffer *packed = compress_slices(COMPRESSION_GZIP, 0, false, &in, 1, NULL);
    packed->data[packed->size - 4] ^= 1;
    struct buffer *out;
    assert_int_equal(unpack(COMPRESSION_GZIP, buffer_slice(packed), 1000, NULL, &out),
                     DECOMPRESS_CORRUPT);
    buffer_unref(packed);
}

static void zstd_windows_are_bounded(void **state)
{
    (void)state;
    size_t size = 3 * MIB;
    uint8_t *text = make_text(size);
    for (int log = 20; log <= 27; log++) {
        uint8_t *packed = memory_alloc(ZSTD_compressBound(size));
        ZSTD_CCtx *context = ZSTD_createCCtx();
        ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, log);
        ZSTD_inBuffer input = {text, size, 0};
        ZSTD_outBuffer output = {packed, ZSTD_compressBound(size), 0};
        /* Without a content size, the decoder must keep the window. */
        while (ZSTD_compressStream2(context, &output, &input, ZSTD_e_flush) != 0)
            ;
        while (ZSTD_compressStream2(context, &output, &input, ZSTD_e_end) != 0)
            ;
        struct buffer *out;
        enum decompress_result result =
            unpack(COMPRESSION_ZSTD, slice_of(packed, output.pos), size, NULL, &out);
        assert_int_equal(result, log <= 23 ? DECOMPRESS_OK : DECOMPRESS_CORRUPT);
        buffer_unref(out);
        ZSTD_freeCCtx(context);
        free(packed);
    }
    free(text);
}

static void raw_deflate_is_refused(void **state)
{
    (void)state;
    static const uint8_t raw[] = {0x4b, 0x04, 0x00}; /* "a" without the header of RFC 1950 */
    struct buffer *out;
    assert_int_equal(unpack(COMPRESSION_DEFLATE, slice_of(raw, sizeof raw), 100, NULL, &out),
                     DECOMPRESS_CORRUPT);
}

static void impossible_snappy_lengths_are_refused(void **state)
{
    (void)state;
    static const uint8_t huge[] = {0xff, 0xff, 0xff, 0xff, 0x0f, 0x00, 'a'};
    static const uint8_t ten_bytes[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1};
    struct buffer *out;
    assert_int_equal(unpack(COMPRESSION_SNAPPY, slice_of(huge, sizeof huge), 100, NULL, &out),
                     DECOMPRESS_CORRUPT);
    assert_int_equal(
        unpack(COMPRESSION_SNAPPY, slice_of(ten_bytes, sizeof ten_bytes), 100, NULL, &out),
        DECOMPRESS_CORRUPT);
    assert_int_equal(unpack(COMPRESSION_SNAPPY, SLICE(""), 100, NULL, &out), DECOMPRESS_CORRUPT);
}

static void names_are_found(void **state)
{
    (void)state;
    assert_int_equal(compression_by_name(SLICE("")), COMPRESSION_NONE);
    assert_int_equal(compression_by_name(SLICE("identity")), COMPRESSION_NONE);
    assert_int_equal(compression_by_name(SLICE("br")), -1);
    for (int c = 0; c < COMPRESSION_COUNT; c++)
        assert_int_equal(compression_by_name(slice_of_string(compression_names[c])), c);
    assert_null(compression_names[COMPRESSION_COUNT]);
    assert_true(compression_in_grpc(COMPRESSION_ZSTD));
    assert_false(compression_in_grpc(COMPRESSION_LZ4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trips_of_all_sizes),
        cmocka_unit_test(levels_of_the_collector),
        cmocka_unit_test(slices_are_one_stream),
        cmocka_unit_test(snappy_of_grpc_is_framed),
        cmocka_unit_test(cut_or_continued_is_corrupt),
        cmocka_unit_test(flipped_bits_never_pass_unseen),
        cmocka_unit_test(members_and_frames_may_follow_each_other),
        cmocka_unit_test(the_window_of_a_stream_needs_room),
        cmocka_unit_test(bombs_cost_no_more_than_the_limit),
        cmocka_unit_test(what_deflate_cannot_reach_is_too_dense),
        cmocka_unit_test(a_wrong_length_in_the_trailer_is_found),
        cmocka_unit_test(zstd_windows_are_bounded),
        cmocka_unit_test(raw_deflate_is_refused),
        cmocka_unit_test(impossible_snappy_lengths_are_refused),
        cmocka_unit_test(names_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
