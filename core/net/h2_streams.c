#include "core/net/h2_streams.h"

#include <assert.h>
#include <string.h>

static uint64_t *word_of(struct h2_streams *streams, uint32_t index)
{
    return &streams->states[index % H2_STREAMS_KEPT / 32];
}

static void set_state(struct h2_streams *streams, uint32_t index, enum h2_stream_state state)
{
    unsigned shift = index % 32 * 2;
    uint64_t *word = word_of(streams, index);
    *word = (*word & ~(UINT64_C(3) << shift)) | (uint64_t)state << shift;
}

/* Marks the streams between the last one and this one as skipped. */
static void skip(struct h2_streams *streams, uint32_t from, uint32_t to)
{
    if (to - from >= H2_STREAMS_KEPT) {
        memset(streams->states, 0, sizeof streams->states);
        return;
    }
    for (uint32_t index = from; index < to; index++)
        set_state(streams, index, H2_STREAM_SKIPPED);
}

void h2_streams_open(struct h2_streams *streams, uint32_t id)
{
    assert(id % 2 == 1 && id > streams->last);
    skip(streams, (streams->last + 1) / 2, id / 2);
    set_state(streams, id / 2, H2_STREAM_OPEN);
    streams->last = id;
}

enum h2_stream_state h2_streams_state(const struct h2_streams *streams, uint32_t id)
{
    if (id % 2 == 0)
        return H2_STREAM_UNKNOWN;
    if (id > streams->last)
        return H2_STREAM_IDLE;
    if (streams->last / 2 - id / 2 >= H2_STREAMS_KEPT)
        return H2_STREAM_UNKNOWN;
    uint64_t word = streams->states[id / 2 % H2_STREAMS_KEPT / 32];
    return (enum h2_stream_state)(word >> (id / 2 % 32 * 2) & 3);
}

void h2_streams_end(struct h2_streams *streams, uint32_t id)
{
    unsigned shift = id / 2 % 32 * 2;
    uint64_t *word = word_of(streams, id / 2);
    assert((*word >> shift & 3) == H2_STREAM_OPEN);
    *word += (uint64_t)(H2_STREAM_ENDED - H2_STREAM_OPEN) << shift;
}
