#include "core/net/h2_limits.h"

#include <nghttp2/nghttp2.h>

enum {
    GLITCH_BURST = 10000,
    GLITCHES_PER_SECOND = 330,
    PING_BURST = 100,
    PINGS_PER_SECOND = 10,
    PINGS_PER_ANSWER = 2,
    WINDOW_UPDATES_PER_DATA = 10,
    FREE_PINGS_MAX = 1000,
    FREE_WINDOW_UPDATES_MAX = 10000,
};

static struct h2_bucket full_bucket(uint32_t burst, uint32_t per_second, uint64_t now_ns)
{
    return (struct h2_bucket){now_ns, burst, burst, per_second};
}

void h2_limits_init(struct h2_limits *limits, uint64_t now_ns)
{
    *limits = (struct h2_limits){
        .glitches = full_bucket(GLITCH_BURST, GLITCHES_PER_SECOND, now_ns),
        .pings = full_bucket(PING_BURST, PINGS_PER_SECOND, now_ns),
        .free_window_updates = WINDOW_UPDATES_PER_DATA,
    };
}

static void fill(struct h2_bucket *bucket, uint64_t now_ns)
{
    uint64_t token_ns = 1000000000 / bucket->per_second;
    uint64_t more = (now_ns - bucket->filled_ns) / token_ns;
    if (more == 0)
        return;
    uint64_t missing = bucket->burst - bucket->tokens;
    bucket->tokens += (uint32_t)(more < missing ? more : missing);
    bucket->filled_ns = more < missing ? bucket->filled_ns + more * token_ns : now_ns;
}

static bool take(struct h2_bucket *bucket, uint32_t cost, uint64_t now_ns)
{
    fill(bucket, now_ns);
    if (bucket->tokens < cost)
        return false;
    bucket->tokens -= cost;
    return true;
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

bool h2_limits_on_frame(struct h2_limits *limits, uint8_t type, uint8_t flags, uint64_t length,
                        uint64_t now_ns)
{
    switch (type) {
    case NGHTTP2_HEADERS:
    case NGHTTP2_CONTINUATION: /* bounded by nghttp2 */
    case NGHTTP2_RST_STREAM:   /* likewise */
    case NGHTTP2_GOAWAY:
        return true;
    case NGHTTP2_DATA:
        if (length > 0 || (flags & NGHTTP2_FLAG_END_STREAM))
            return true;
        break;
    case NGHTTP2_WINDOW_UPDATE:
        if (take_free(&limits->free_window_updates))
            return true;
        break;
    case NGHTTP2_PING:
    case NGHTTP2_SETTINGS:
        if (flags & NGHTTP2_FLAG_ACK)
            break;
        return (type == NGHTTP2_PING && take_free(&limits->free_pings)) ||
               take(&limits->pings, 1, now_ns);
    default:
        break;
    }
    return take(&limits->glitches, 1, now_ns);
}

static void allow(uint32_t *left, uint32_t more, uint32_t max)
{
    *left = *left + more < max ? *left + more : max;
}

void h2_limits_on_sent(struct h2_limits *limits, uint8_t type)
{
    if (type == NGHTTP2_DATA)
        allow(&limits->free_window_updates, WINDOW_UPDATES_PER_DATA, FREE_WINDOW_UPDATES_MAX);
    if (type == NGHTTP2_DATA || type == NGHTTP2_HEADERS)
        allow(&limits->free_pings, PINGS_PER_ANSWER, FREE_PINGS_MAX);
}
