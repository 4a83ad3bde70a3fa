#include "core/net/h2_limits.h"

#include <assert.h>
#include <nghttp2/nghttp2.h>

enum {
    GLITCH_BURST = 10000,
    GLITCHES_PER_SECOND = 330,
    PING_BURST = 100,
    PINGS_PER_SECOND = 10,
    PINGS_PER_ANSWER = 2,
    RESET_BURST = 200,
    RESETS_PER_SECOND = 20,
    WINDOW_UPDATES_PER_DATA = 10,
    FREE_PINGS_MAX = 1000,
    FREE_RESETS_MAX = 1000,
    FREE_WINDOW_UPDATES_MAX = 10000,
    IGNORED_HEADER_BURST_BYTES = 512 * 1024,
    IGNORED_HEADER_BYTES_PER_SECOND = 16 * 1024,
    HEADERS_LEAST_BYTES = 64, /* the least size for which a HEADERS frame counts */
    EXCESS_UNIT_BYTES = 32,   /* the least size for which a field counts */
    EXCESS_BURST_BYTES = 4 * 1024 * 1024,
    EXCESS_BYTES_PER_SECOND = 1024 * 1024,
    DATA_FRAME_BYTES = 256, /* payload that pays for a DATA frame, */
    DATA_LENGTH_SHARE = 16, /* and this share of its length, in case it is not needed */
    GLITCH_BYTES = 4096,    /* a frame costs one more glitch for each of these */
    DATA_CREDIT_PER_STREAM = 4 * DATA_FRAME_BYTES,
    DATA_CREDIT_MAX_BYTES = 1024 * 1024,
    EARLY_ANSWER_CREDIT = 80 * 1024, /* for the window of a stream, 1 MiB, in frames of 16 KiB */
};

static struct h2_bucket full_bucket(uint32_t burst, uint32_t per_second, uint64_t now_ns)
{
    return (struct h2_bucket){now_ns, 1000000000 / per_second, burst, burst};
}

void h2_limits_init(struct h2_limits *limits, enum h2_side side, uint64_t now_ns)
{
    *limits = (struct h2_limits){
        .side = side,
        .glitches = full_bucket(GLITCH_BURST, GLITCHES_PER_SECOND, now_ns),
        .pings = full_bucket(PING_BURST, PINGS_PER_SECOND, now_ns),
        .resets = full_bucket(RESET_BURST, RESETS_PER_SECOND, now_ns),
        .ignored_headers =
            full_bucket(IGNORED_HEADER_BURST_BYTES, IGNORED_HEADER_BYTES_PER_SECOND, now_ns),
        .excess_headers = full_bucket(EXCESS_BURST_BYTES / EXCESS_UNIT_BYTES,
                                      EXCESS_BYTES_PER_SECOND / EXCESS_UNIT_BYTES, now_ns),
        .free_window_updates = WINDOW_UPDATES_PER_DATA,
    };
}

static void fill(struct h2_bucket *bucket, uint64_t now_ns)
{
    assert(bucket->tokens <= bucket->burst);
    assert(now_ns >= bucket->filled_ns);
    uint64_t more = (now_ns - bucket->filled_ns) / bucket->token_ns;
    if (more == 0)
        return;
    uint64_t missing = bucket->burst - bucket->tokens;
    bucket->tokens += (uint32_t)(more < missing ? more : missing);
    bucket->filled_ns = more < missing ? bucket->filled_ns + more * bucket->token_ns : now_ns;
}

static bool take(struct h2_bucket *bucket, uint32_t cost, uint64_t now_ns)
{
    fill(bucket, now_ns);
    if (bucket->tokens < cost)
        return false;
    bucket->tokens -= cost;
    return true;
}

static void allow(uint32_t *left, uint32_t more, uint32_t max)
{
    assert(*left <= max);
    *left = max - *left < more ? max : *left + more;
}

bool h2_limits_spend(struct h2_limits *limits, uint32_t cost, uint64_t now_ns)
{
    return take(&limits->glitches, cost, now_ns);
}

static bool take_free(uint32_t *left)
{
    if (*left == 0)
        return false;
    (*left)--;
    return true;
}

static uint32_t block_cost(size_t length)
{
    return (uint32_t)(length > HEADERS_LEAST_BYTES ? length : HEADERS_LEAST_BYTES);
}

/* Charges a header block. The charge is returned if the block belongs to a stream. */
static bool take_headers(struct h2_limits *limits, const struct h2_frame_head *frame,
                         uint64_t now_ns)
{
    bool begins = frame->type == NGHTTP2_HEADERS;
    return take(&limits->ignored_headers, begins ? block_cost(frame->length) : frame->length,
                now_ns);
}

void h2_limits_on_block(struct h2_limits *limits, size_t length)
{
    allow(&limits->ignored_headers.tokens, block_cost(length), limits->ignored_headers.burst);
    allow(&limits->data_credit, DATA_CREDIT_PER_STREAM, DATA_CREDIT_MAX_BYTES);
}

static bool take_glitch(struct h2_limits *limits, const struct h2_frame_head *frame,
                        uint64_t now_ns)
{
    return take(&limits->glitches, 1 + frame->length / GLITCH_BYTES, now_ns);
}

static bool take_data(struct h2_limits *limits, const struct h2_frame_head *frame, uint64_t now_ns)
{
    if (frame->ends_stream)
        return true;
    uint32_t price = DATA_FRAME_BYTES + frame->length / DATA_LENGTH_SHARE;
    if (limits->data_credit >= price) {
        limits->data_credit -= price;
        return true;
    }
    return take_glitch(limits, frame, now_ns);
}

void h2_limits_on_payload(struct h2_limits *limits, size_t size)
{
    allow(&limits->data_credit, (uint32_t)size, DATA_CREDIT_MAX_BYTES);
}

bool h2_limits_on_excess(struct h2_limits *limits, size_t size, uint64_t now_ns)
{
    return take(&limits->excess_headers, (uint32_t)(size / EXCESS_UNIT_BYTES) + 1, now_ns);
}

static bool take_ping(struct h2_limits *limits, const struct h2_frame_head *frame, uint64_t now_ns)
{
    if (frame->flags & NGHTTP2_FLAG_ACK)
        return take_glitch(limits, frame, now_ns);
    return (frame->type == NGHTTP2_PING && take_free(&limits->free_pings)) ||
           take(&limits->pings, 1, now_ns);
}

bool h2_limits_on_frame(struct h2_limits *limits, const struct h2_frame_head *frame,
                        uint64_t now_ns)
{
    switch (frame->type) {
    case NGHTTP2_DATA:
        return take_data(limits, frame, now_ns);
    case NGHTTP2_HEADERS:
    case NGHTTP2_CONTINUATION:
        return take_headers(limits, frame, now_ns);
    case NGHTTP2_RST_STREAM:
        return take_free(&limits->free_resets) || take(&limits->resets, 1, now_ns);
    case NGHTTP2_PING:
    case NGHTTP2_SETTINGS:
        return take_ping(limits, frame, now_ns);
    case NGHTTP2_WINDOW_UPDATE:
        if (take_free(&limits->free_window_updates))
            return true;
        break;
    default:
        break;
    }
    return take_glitch(limits, frame, now_ns);
}

void h2_limits_on_early_answer(struct h2_limits *limits)
{
    allow(&limits->free_resets, 1, FREE_RESETS_MAX);
    allow(&limits->data_credit, EARLY_ANSWER_CREDIT, DATA_CREDIT_MAX_BYTES);
}

void h2_limits_on_sent(struct h2_limits *limits, uint8_t type)
{
    if (type == NGHTTP2_DATA)
        allow(&limits->free_window_updates, WINDOW_UPDATES_PER_DATA, FREE_WINDOW_UPDATES_MAX);
    if (type == NGHTTP2_DATA || type == NGHTTP2_HEADERS)
        allow(&limits->free_pings, PINGS_PER_ANSWER, FREE_PINGS_MAX);
    if (type == NGHTTP2_HEADERS && limits->side == H2_CLIENT)
        allow(&limits->free_resets, 1, FREE_RESETS_MAX);
}
