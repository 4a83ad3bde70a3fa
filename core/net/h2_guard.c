#include "core/net/h2_guard.h"

#include <assert.h>
#include <endian.h>
#include <nghttp2/nghttp2.h>

enum { CLIENT_PREFACE_BYTES = 24 }; /* nghttp2 checks the preface */

void h2_guard_init(struct h2_guard *guard, enum h2_side side, uint64_t now_ns)
{
    *guard = (struct h2_guard){.payload_left = side == H2_SERVER ? CLIENT_PREFACE_BYTES : 0};
    h2_limits_init(&guard->limits, side, now_ns);
}

void h2_guard_opened(struct h2_guard *guard, int32_t stream_id)
{
    assert(guard->limits.side == H2_CLIENT && stream_id > 0);
    h2_streams_open(&guard->streams, (uint32_t)stream_id);
}

static struct h2_frame_head parse_head(const uint8_t *head)
{
    uint64_t first; /* all bytes but the last of the stream id */
    memcpy(&first, head, sizeof first);
    first = be64toh(first);
    return (struct h2_frame_head){
        .length = (uint32_t)(first >> 40),
        .type = (uint8_t)(first >> 32),
        .flags = (uint8_t)(first >> 24),
        .stream_id = (uint32_t)(first << 8 & 0x7fffff00) | head[8],
    };
}

/* Checks HEADERS, DATA and RST_STREAM. nghttp2 checks frames on idle streams. */
static uint32_t check_stream(struct h2_guard *guard, struct h2_frame_head *frame)
{
    struct h2_streams *streams = &guard->streams;
    bool is_reset = frame->type == NGHTTP2_RST_STREAM;
    enum h2_stream_state state = h2_streams_state(streams, frame->stream_id);
    if (state == H2_STREAM_IDLE && frame->type == NGHTTP2_HEADERS &&
        guard->limits.side == H2_SERVER) {
        h2_streams_open(streams, frame->stream_id);
        state = H2_STREAM_OPEN;
    }
    if (state == H2_STREAM_SKIPPED && !is_reset)
        return NGHTTP2_PROTOCOL_ERROR;
    if (state == H2_STREAM_ENDED && !is_reset)
        return NGHTTP2_STREAM_CLOSED;
    if (state != H2_STREAM_OPEN)
        return NGHTTP2_NO_ERROR;
    if (is_reset || (frame->flags & NGHTTP2_FLAG_END_STREAM)) {
        h2_streams_end(streams, frame->stream_id);
        frame->ends_stream = true;
    }
    return NGHTTP2_NO_ERROR;
}

static uint32_t check_frame(struct h2_guard *guard, struct h2_frame_head *frame, uint64_t now_ns)
{
    uint32_t code = NGHTTP2_NO_ERROR;
    if (frame->type <= NGHTTP2_HEADERS || frame->type == NGHTTP2_RST_STREAM)
        code = check_stream(guard, frame);
    else if (frame->type == NGHTTP2_PRIORITY && frame->stream_id == 0)
        code = NGHTTP2_PROTOCOL_ERROR;
    if (code != NGHTTP2_NO_ERROR)
        return code;
    return h2_limits_on_frame(&guard->limits, frame, now_ns) ? NGHTTP2_NO_ERROR
                                                             : NGHTTP2_ENHANCE_YOUR_CALM;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Returns the next head, in the input, or in guard->head if it arrived in parts; NULL if it is
 * incomplete. */
static const uint8_t *take_head(struct h2_guard *guard, struct slice rest, size_t *taken_out)
{
    assert(guard->payload_left == 0 && guard->head_size < H2_FRAME_HEAD_BYTES);
    *taken_out = smaller(H2_FRAME_HEAD_BYTES - guard->head_size, rest.size);
    if (*taken_out == H2_FRAME_HEAD_BYTES)
        return rest.data;
    memcpy(guard->head + guard->head_size, rest.data, *taken_out);
    guard->head_size = (uint8_t)(guard->head_size + *taken_out);
    if (guard->head_size < H2_FRAME_HEAD_BYTES)
        return NULL;
    guard->head_size = 0;
    return guard->head;
}

size_t h2_guard_input(struct h2_guard *guard, struct slice data, uint64_t now_ns,
                      uint32_t *code_out)
{
    size_t at = 0;
    for (;;) {
        size_t taken = smaller(guard->payload_left, data.size - at);
        guard->payload_left -= (uint32_t)taken;
        at += taken;
        if (at == data.size)
            return at;
        const uint8_t *head = take_head(guard, slice_of(data.data + at, data.size - at), &taken);
        if (!head)
            return data.size;
        struct h2_frame_head frame = parse_head(head);
        guard->payload_left = frame.length;
        *code_out = check_frame(guard, &frame, now_ns);
        if (*code_out != NGHTTP2_NO_ERROR)
            return at;
        at += taken;
    }
}
