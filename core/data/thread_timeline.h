/*
 * thread_timeline: the spans of one thread, by time.
 *
 * Spans are sorted by their start, in blocks, so that a new one moves few others. Of those that
 * start at the same time, what is inside others comes later. A block knows its first start and its
 * latest end, and each span how far it and those before it in its block reach; a search for what
 * covers a time skips what ends too early.
 *
 * Code on one thread nests: a span that begins later ends earlier and is a descendant, or it begins
 * after the other's end. A span that breaks this went on elsewhere (`hops`), or the thread is an
 * event loop, where requests take turns: the span overlaps with the start of a later one, it
 * contains a span of another trace, it contains a sibling, or it ends after its parent, which it
 * overlaps. Overlaps of two spans' edges by less than a millisecond do not count, because the
 * clocks of two traces can differ that much, nor do spans without a length.
 *
 * What ran while such spans overlap is not known, even if the innermost one nests. If a large part
 * of a thread's spans are such ones, the thread is an event loop, and nothing about it is known: it
 * also runs other code while the only open request waits.
 *
 * Owner: thread_spans.
 *
 * Thread: whoever holds its lock.
 */
#ifndef PROFCOL_CORE_DATA_THREAD_TIMELINE_H
#define PROFCOL_CORE_DATA_THREAD_TIMELINE_H

#include "core/data/span_records.h"

struct timeline_span {
    struct span_key key;
    uint8_t parent_id[SPAN_ID_SIZE];
    uint64_t start_ns;
    uint64_t end_ns;
    bool hops;         /* it went on elsewhere */
    uint32_t reach_us; /* from its start to the latest end of the spans of its block up to it,
                          rounded up; UINT32_MAX: that long or longer */
};

enum { TIMELINE_BLOCK_SPANS = 64, TIMELINE_BLOCKS_MAX = 1024 };

struct timeline_block {
    uint64_t start_ns;   /* of its first span */
    uint64_t end_ns;     /* the latest one */
    uint64_t reach_ns;   /* the latest end of its spans and of those in blocks before it */
    uint64_t arrived_ns; /* its newest span; monotonic */
    struct timeline_span *spans;
    uint32_t count;
    uint32_t capacity;
};

/* All-zero is empty. */
struct thread_timeline {
    struct timeline_block *blocks;
    uint32_t count;
    uint32_t capacity;
    /* Of its spans, older ones count less: */
    uint32_t judged;  /* those long enough to overlap with others */
    uint32_t hopping; /* those that hop */
};

/* Adds a span; `hops` and `reach_us` are computed. Returns false if it is there already. It must
 * have room: fewer than TIMELINE_BLOCKS_MAX blocks. */
bool timeline_add(struct thread_timeline *timeline, const struct timeline_span *span,
                  uint64_t now_ns);
/* Removes the block with the earliest spans, and returns their number. */
uint32_t timeline_drop_first(struct thread_timeline *timeline);

/* Which span covers a time, and for how long. */
struct timeline_found {
    const struct timeline_span *span; /* NULL: none */
    bool is_unsure;                   /* spans cover it, but it is not known which one ran */
    uint64_t from_ns, to_ns; /* the time, and the last one for which nothing of this changes, if
                                no span is added or removed */
};
/* Finds the innermost span that covers the time, if all others that cover it are around it. */
struct timeline_found timeline_find(const struct thread_timeline *timeline, uint64_t time_ns);
/* Whether the thread is an event loop. */
bool timeline_is_loop(const struct thread_timeline *timeline);

/* A part of the time; both ends belong to it. */
struct time_range {
    uint64_t start_ns;
    uint64_t end_ns;
};
/* Finds when, between two times, spans ran that did not go on elsewhere: ranges in their order,
 * which do not overlap. Returns false if this is not known: if no span began before the first time
 * or none ended after the second, or if more than `max` of them would have to be looked at. */
bool timeline_covered(const struct thread_timeline *timeline, uint64_t from_ns, uint64_t to_ns,
                      struct time_range *ranges_out, uint32_t max, uint32_t *count_out);

/* Returns the memory in bytes, without the struct itself. */
size_t timeline_memory(const struct thread_timeline *timeline);

#endif
