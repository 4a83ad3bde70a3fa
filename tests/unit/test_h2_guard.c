#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/base/text.h"
#include "core/net/h2_guard.h"
#include "tests/unit/h2_frame.h"

#include <nghttp2/nghttp2.h>

#define SECOND UINT64_C(1000000000)
#define START (1000 * SECOND)
#define PREFACE SLICE("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")

static void test_states_of_streams(void **state)
{
    (void)state;
    struct h2_streams streams = {0};
    assert_int_equal(h2_streams_state(&streams, 1), H2_STREAM_IDLE);
    h2_streams_open(&streams, 1);
    h2_streams_open(&streams, 7);
    h2_streams_end(&streams, 1);
    static const enum h2_stream_state expected[] = {
        H2_STREAM_ENDED, H2_STREAM_SKIPPED, H2_STREAM_SKIPPED, H2_STREAM_OPEN, H2_STREAM_IDLE};
    for (uint32_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        assert_int_equal(h2_streams_state(&streams, 2 * i + 1), expected[i]);
    assert_int_equal(h2_streams_state(&streams, 4), H2_STREAM_UNKNOWN);
    h2_streams_open(&streams, 2 * H2_STREAMS_KEPT - 1);
    assert_int_equal(h2_streams_state(&streams, 1), H2_STREAM_ENDED);
    h2_streams_open(&streams, 2 * H2_STREAMS_KEPT + 1); /* replaces the first */
    assert_int_equal(h2_streams_state(&streams, 1), H2_STREAM_UNKNOWN);
    assert_int_equal(h2_streams_state(&streams, 3), H2_STREAM_SKIPPED);
    assert_int_equal(h2_streams_state(&streams, 7), H2_STREAM_OPEN);
    h2_streams_open(&streams, INT32_MAX);
    assert_int_equal(h2_streams_state(&streams, 7), H2_STREAM_UNKNOWN);
    assert_int_equal(h2_streams_state(&streams, INT32_MAX - 2), H2_STREAM_SKIPPED);
    assert_int_equal(h2_streams_state(&streams, INT32_MAX), H2_STREAM_OPEN);
}

/* Compares with a plain list, with gaps of all sizes. */
static void test_states_of_many_streams(void **state)
{
    (void)state;
    enum { COUNT = 20000 };
    static uint8_t model[COUNT];
    struct h2_streams streams = {0};
    uint32_t random = 1;
    for (uint32_t last = 0; last < COUNT;) {
        random = random * 1664525 + 1013904223;
        uint32_t chance = random >> 16;
        model[last] = chance % 3 ? H2_STREAM_OPEN : H2_STREAM_ENDED;
        h2_streams_open(&streams, 2 * last + 1);
        if (model[last] == H2_STREAM_ENDED)
            h2_streams_end(&streams, 2 * last + 1);
        uint32_t first = last < H2_STREAMS_KEPT ? 0 : last - H2_STREAMS_KEPT + 1;
        for (uint32_t i = first; i <= last; i += 1 + chance % 7)
            assert_int_equal(h2_streams_state(&streams, 2 * i + 1), model[i]);
        last += 1 + (chance % 50 ? chance % 4 : chance % 3000);
    }
}

static void put(struct text *out, uint8_t type, uint8_t flags, uint32_t stream, size_t length)
{
    h2_frame_put_head(out, type, flags, stream, length);
    for (size_t i = 0; i < length; i++)
        text_append_char(out, 'x');
}

/* Feeds the data in pieces of this size. Returns how many bytes the guard accepted. */
static size_t feed(struct h2_guard *guard, struct slice data, size_t piece, uint32_t *code_out)
{
    *code_out = NGHTTP2_NO_ERROR;
    for (size_t at = 0; at < data.size; at += piece) {
        size_t size = data.size - at < piece ? data.size - at : piece;
        size_t good = h2_guard_input(guard, slice_of(data.data + at, size), START, code_out);
        if (good < size)
            return at + good;
        assert_int_equal(*code_out, NGHTTP2_NO_ERROR);
    }
    return data.size;
}

struct step {
    uint8_t type, flags;
    uint32_t stream;
    size_t length;
};

/* The guard's result for the last frame of each case is tested. */
static void test_frames_on_streams_that_are_over(void **state)
{
    (void)state;
    enum { H = NGHTTP2_HEADERS, D = NGHTTP2_DATA, R = NGHTTP2_RST_STREAM };
    static const struct {
        struct step steps[4];
        size_t count;
        uint32_t code;
    } cases[] = {
        {{{H, 5, 1, 10}, {H, 5, 1, 10}}, 2, NGHTTP2_STREAM_CLOSED},
        {{{H, 5, 1, 10}, {D, 0, 1, 10}}, 2, NGHTTP2_STREAM_CLOSED},
        {{{H, 4, 1, 10}, {R, 0, 1, 4}, {D, 0, 1, 10}}, 3, NGHTTP2_STREAM_CLOSED},
        {{{H, 4, 1, 10}, {R, 0, 1, 4}, {R, 0, 1, 4}}, 3, NGHTTP2_NO_ERROR},
        {{{H, 4, 1, 10}, {D, 1, 1, 0}, {H, 5, 1, 9}}, 3, NGHTTP2_STREAM_CLOSED},
        {{{H, 4, 1, 10}, {D, 0, 1, 7}, {H, 5, 1, 9}}, 3, NGHTTP2_NO_ERROR},
        {{{H, 5, 5, 10}, {H, 5, 3, 10}}, 2, NGHTTP2_PROTOCOL_ERROR},
        {{{H, 5, 5, 10}, {D, 5, 3, 10}}, 2, NGHTTP2_PROTOCOL_ERROR},
        {{{H, 5, 5, 10}, {R, 0, 3, 4}}, 2, NGHTTP2_NO_ERROR},
        {{{H, 5, 1, 10}, {NGHTTP2_PRIORITY, 0, 1, 5}}, 2, NGHTTP2_NO_ERROR},
        {{{H, 5, 1, 10}, {NGHTTP2_WINDOW_UPDATE, 0, 1, 4}}, 2, NGHTTP2_NO_ERROR},
        {{{H, 5, 1, 10}, {NGHTTP2_PRIORITY, 0, 0, 5}}, 2, NGHTTP2_PROTOCOL_ERROR},
        /* Frames that nghttp2 itself answers. */
        {{{D, 0, 1, 10}}, 1, NGHTTP2_NO_ERROR},
        {{{R, 0, 1, 4}}, 1, NGHTTP2_NO_ERROR},
        {{{H, 5, 2, 10}}, 1, NGHTTP2_NO_ERROR},
        {{{H, 5, 0, 10}}, 1, NGHTTP2_NO_ERROR},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t piece = 1; piece < 60; piece++) {
            struct h2_guard guard;
            struct text bytes = {0};
            uint32_t code;
            h2_guard_init(&guard, H2_SERVER, START);
            text_append_slice(&bytes, PREFACE);
            size_t last = 0;
            for (size_t k = 0; k < cases[i].count; k++) {
                const struct step *step = &cases[i].steps[k];
                last = bytes.size;
                put(&bytes, step->type, step->flags, step->stream, step->length);
            }
            size_t good = feed(&guard, slice_of(bytes.data, bytes.size), piece, &code);
            if (code != cases[i].code)
                fail_msg("case %zu in pieces of %zu: code %u", i, piece, code);
            if (code == NGHTTP2_NO_ERROR)
                assert_int_equal(good, bytes.size);
            else /* the part of its head that came in earlier pieces */
                assert_in_range(good, last, last + H2_FRAME_HEAD_BYTES - 1);
            text_deinit(&bytes);
        }
}

/* Frames of a backend on the streams of our requests. */
static void test_streams_of_a_client(void **state)
{
    (void)state;
    struct h2_guard guard;
    struct text bytes = {0};
    uint32_t code;
    h2_guard_init(&guard, H2_CLIENT, START);
    h2_guard_opened(&guard, 1);
    put(&bytes, NGHTTP2_SETTINGS, 0, 0, 0);
    put(&bytes, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, 10);
    put(&bytes, NGHTTP2_DATA, 0, 1, 10);
    put(&bytes, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, 1, 10);
    put(&bytes, NGHTTP2_RST_STREAM, 0, 1, 4);
    assert_int_equal(feed(&guard, slice_of(bytes.data, bytes.size), 7, &code), bytes.size);
    text_clear(&bytes);
    put(&bytes, NGHTTP2_DATA, 0, 1, 10);
    assert_int_equal(feed(&guard, slice_of(bytes.data, bytes.size), 100, &code), 0);
    assert_int_equal(code, NGHTTP2_STREAM_CLOSED);
    text_deinit(&bytes);
}

static size_t count_frames(struct h2_limits *limits, struct h2_frame_head frame, size_t most,
                           size_t payload, uint64_t now_ns)
{
    for (size_t count = 0; count < most; count++) {
        if (!h2_limits_on_frame(limits, &frame, now_ns))
            return count;
        if (payload > 0)
            h2_limits_on_payload(limits, payload);
    }
    return most;
}

static void test_data_is_paid_with_payload(void **state)
{
    (void)state;
    static const struct {
        uint32_t length;
        size_t payload; /* without padding */
        size_t least, most;
    } cases[] = {
        {1, 1, 10000, 10100},       {100, 100, 15000, 17000},  {300, 0, 10000, 10000},
        {274, 274, 100000, 100000}, {16384, 0, 2000, 2000},    {16384, 16384, 100000, 100000},
        {262144, 0, 100, 200},      {257, 256, 20000, 100000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct h2_limits limits;
        struct h2_frame_head frame = {.type = NGHTTP2_DATA, .length = cases[i].length};
        h2_limits_init(&limits, H2_SERVER, START);
        size_t count = count_frames(&limits, frame, 100000, cases[i].payload, START);
        assert_in_range(count, cases[i].least, cases[i].most);
    }
}

/* Requests of 1 MiB that are under way when they are refused. */
static void test_data_after_an_early_answer(void **state)
{
    (void)state;
    struct h2_limits limits;
    struct h2_frame_head frame = {.type = NGHTTP2_DATA, .length = 16384};
    h2_limits_init(&limits, H2_SERVER, START);
    for (int i = 0; i < 1000; i++) {
        h2_limits_on_early_answer(&limits);
        assert_int_equal(count_frames(&limits, frame, 64, 0, START), 64);
    }
    assert_int_equal(limits.glitches.tokens, limits.glitches.burst);
    assert_in_range(count_frames(&limits, frame, 100000, 0, START), 2000, 2010);
}

/* Requests of a few small frames each, as streaming clients send them, without a pause. */
static void test_small_bodies_are_welcome(void **state)
{
    (void)state;
    struct h2_limits limits;
    h2_limits_init(&limits, H2_SERVER, START);
    for (int i = 0; i < 100000; i++) {
        struct h2_frame_head head = {.type = NGHTTP2_HEADERS, .length = 100};
        assert_int_equal(count_frames(&limits, head, 1, 0, START), 1);
        h2_limits_on_block(&limits, 100);
        struct h2_frame_head data = {.type = NGHTTP2_DATA, .length = 5};
        assert_int_equal(count_frames(&limits, data, 3, 5, START), 3);
        data.ends_stream = true;
        assert_int_equal(count_frames(&limits, data, 1, 0, START), 1);
    }
    assert_int_equal(limits.glitches.tokens, limits.glitches.burst);
}

static void test_ignored_header_blocks(void **state)
{
    (void)state;
    struct h2_limits limits;
    h2_limits_init(&limits, H2_SERVER, START);
    struct h2_frame_head frame = {.type = NGHTTP2_HEADERS, .length = 1};
    assert_int_equal(count_frames(&limits, frame, 20000, 0, START), 8192);
    assert_int_equal(count_frames(&limits, frame, 20000, 0, START + 2 * SECOND), 512);
    h2_limits_init(&limits, H2_SERVER, START);
    frame.length = 256 * 1024;
    assert_int_equal(count_frames(&limits, frame, 20000, 0, START), 2);
}

static void test_excess_headers(void **state)
{
    (void)state;
    struct h2_limits limits;
    h2_limits_init(&limits, H2_SERVER, START);
    size_t count = 0;
    while (h2_limits_on_excess(&limits, 4096 + 33, START))
        count++;
    assert_in_range(count, 1000, 1024); /* 4 MiB */
    uint64_t now_ns = START + SECOND;
    for (count = 0; h2_limits_on_excess(&limits, 4096 + 33, now_ns);)
        count++;
    assert_in_range(count, 250, 256); /* 1 MiB a second */
}

static void test_resets(void **state)
{
    (void)state;
    struct h2_limits limits;
    struct h2_frame_head frame = {.type = NGHTTP2_RST_STREAM, .length = 4};
    h2_limits_init(&limits, H2_SERVER, START);
    h2_limits_on_sent(&limits, NGHTTP2_HEADERS);
    assert_int_equal(count_frames(&limits, frame, 1000, 0, START), 200);
    assert_int_equal(count_frames(&limits, frame, 1000, 0, START + SECOND), 20);
    /* A backend may reset each of our requests. */
    h2_limits_init(&limits, H2_CLIENT, START);
    for (int i = 0; i < 10000; i++) {
        h2_limits_on_sent(&limits, NGHTTP2_HEADERS);
        assert_int_equal(count_frames(&limits, frame, 1, 0, START), 1);
    }
    assert_int_equal(count_frames(&limits, frame, 1000, 0, START), 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_states_of_streams),
        cmocka_unit_test(test_states_of_many_streams),
        cmocka_unit_test(test_frames_on_streams_that_are_over),
        cmocka_unit_test(test_streams_of_a_client),
        cmocka_unit_test(test_data_is_paid_with_payload),
        cmocka_unit_test(test_data_after_an_early_answer),
        cmocka_unit_test(test_small_bodies_are_welcome),
        cmocka_unit_test(test_ignored_header_blocks),
        cmocka_unit_test(test_excess_headers),
        cmocka_unit_test(test_resets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
