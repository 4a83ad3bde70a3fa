/*
 * upload_slot: up to which time the uploads of one sample type of a process have arrived, and the
 * gaps between them.
 *
 * An upload contains the samples of a range of time. Most profilers are continuous: a range begins
 * where the one before it ended. If one is missing between two others, it was lost or is late, and
 * spans that ran then lack samples: this is a gap, until it is filled or a window has passed. Other
 * profilers leave holes on purpose: one that is asked for 10 s in each minute, or one that sends
 * nothing while the process is idle. So a hole is a gap only if the sender has been continuous
 * (docs/spanjoin.md, "When a span's costs are complete").
 *
 * Ranges of one sender do not overlap, and have one form. If they do not, several senders count as
 * one process: replicas that nothing tells apart, or two profilers. Then a time is covered when
 * each of them covers it.
 *
 * An agent in front may split an upload into parts, requests of the same range with other content.
 * Nothing says which part is the last one. So while this goes on, an upload covers its range when a
 * later one begins, or when no part has arrived for a while.
 *
 * Owner: instances. Those who wait for a gap belong to instances, too.
 *
 * Thread: whoever holds its lock.
 */
#ifndef PROFCOL_CORE_DATA_UPLOAD_SLOT_H
#define PROFCOL_CORE_DATA_UPLOAD_SLOT_H

#include "core/base/list.h"
#include "core/data/arrivals.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    UPLOAD_GAPS_MAX = 4,    /* of a slot; of more, the one noticed first is forgotten */
    UPLOAD_SENDERS_MAX = 8, /* likewise, the one that has been silent for the longest time */
    UPLOAD_RANGES_MAX = 8,  /* see upload_ranges_add */
    UPLOAD_FORMS_MAX = 4,   /* of a process; of more, the one that came first is forgotten */
};

/* For how long a further part of an upload may be awaited. */
#define UPLOAD_PARTS_NS UINT64_C(2000000000)

/* Times are in nanoseconds since 1970. */
struct upload_range {
    uint64_t from_ns;
    uint64_t to_ns;
};

struct upload_gap {
    struct upload_range range;
    uint64_t noticed_ns; /* monotonic; 0: there is none here */
    bool is_part;        /* another one is the rest of the same hole */
    bool is_meant;       /* the sender leaves holes on purpose: nobody waits for it */
    struct list waiting; /* of those who wait until it is filled */
};

struct upload_sender {
    struct upload_range range; /* its latest upload */
    uint32_t form;             /* of its uploads */
    uint64_t arrived_ns;       /* monotonic; 0: there is none here */
};

/* All-zero is a slot without uploads. */
struct upload_slot {
    uint64_t until_ns;       /* the latest end */
    uint64_t from_ns;        /* the begin of the upload that ends then; 0: not known */
    uint32_t form;           /* of that upload */
    uint64_t arrived_ns;     /* the last upload; monotonic; 0: none */
    uint64_t began_ns;       /* the first one, after none for a window; monotonic */
    uint64_t since_ns;       /* the earliest begin of them; 0: not known */
    uint64_t before_ns;      /* the latest end before the upload that ends at until_ns */
    uint64_t content;        /* hash of the request with that upload; 0: not known */
    uint64_t parts_ns;       /* another part of an upload arrived, or is expected; monotonic; 0: not
                                lately */
    bool has_parts;          /* it did arrive */
    uint32_t holes;          /* a bit for each of the last steps from an upload to the next one: it
                                left a hole. The newest is the lowest */
    uint32_t steps;          /* of these, at most one for each bit */
    struct upload_gap *gaps; /* UPLOAD_GAPS_MAX; NULL: there was none so far */
    struct upload_sender *senders; /* UPLOAD_SENDERS_MAX; NULL: there was only one so far */
};

/* Frees what belongs to the slot. Nobody may wait. */
void upload_slot_deinit(struct upload_slot *slot);
/* Moves the times of the uploads of a form back: it turned out that the clock is ahead. So do the
 * gaps, if they are of no other sender: those who waited for them are moved to `released`. */
void upload_slot_move(struct upload_slot *slot, uint32_t form, uint64_t by_ns,
                      struct list *released);
/* Says that an upload of a new sender may have parts. Call it before upload_slot_note_content. */
void upload_slot_expect_parts(struct upload_slot *slot, uint64_t now_ns);
/* Notes what identifies the content of an upload that is going to be added. A client that was
 * refused sends the same content again, which is no part. form: as below. content: a hash, not 0.
 */
void upload_slot_note_content(struct upload_slot *slot, struct upload_range range, uint32_t form,
                              uint64_t content, uint64_t now_ns, uint64_t window_ns);
/* Adds an upload. range: from_ns 0: it is not known where it begins. form: those of one sender have
 * the same. Those who waited for gaps that are smaller now, or no more, are moved to `released`. */
void upload_slot_add(struct upload_slot *slot, struct upload_range range, uint32_t form,
                     uint64_t now_ns, uint64_t window_ns, struct list *released);
/* Whether an upload has arrived within the window. */
bool upload_slot_counts(const struct upload_slot *slot, uint64_t now_ns, uint64_t window_ns);
/* Whether parts of the latest upload may still arrive. */
bool upload_slot_awaits_parts(const struct upload_slot *slot, uint64_t now_ns);
/* Moves those who wait for gaps that are too old to count to `released`. Returns when to call it
 * again, because parts or a sender need not be awaited any more or a gap does not count; monotonic;
 * UINT64_MAX: not until another upload has arrived. */
uint64_t upload_slot_settle(struct upload_slot *slot, uint64_t now_ns, uint64_t window_ns,
                            struct list *released);
/* Returns the time up to which all senders have uploaded, those aside that have been silent for two
 * uploads. */
uint64_t upload_slot_covered(const struct upload_slot *slot, uint64_t now_ns);
/* Whether something is missing there. */
static inline bool upload_gap_counts(const struct upload_gap *gap, uint64_t now_ns,
                                     uint64_t window_ns)
{
    return !gap->is_meant && is_within(gap->noticed_ns, now_ns, window_ns);
}
/* Returns a gap that overlaps with the range; NULL: there is none. */
struct upload_gap *upload_slot_find_gap(const struct upload_slot *slot, struct upload_range range,
                                        uint64_t now_ns, uint64_t window_ns);
/* Returns the memory in bytes, without the struct itself. */
size_t upload_slot_memory(const struct upload_slot *slot);

/* Some ranges. All-zero is none. */
struct upload_ranges {
    unsigned count;
    struct upload_range items[UPLOAD_RANGES_MAX];
};
/* Adds a range. Those that overlap become one; if there is no more room, so does the last one with
 * what is between. */
void upload_ranges_add(struct upload_ranges *ranges, struct upload_range range);

/* Returns both and what is between. */
static inline struct upload_range upload_ranges_union(struct upload_range a, struct upload_range b)
{
    return (struct upload_range){a.from_ns < b.from_ns ? a.from_ns : b.from_ns,
                                 a.to_ns > b.to_ns ? a.to_ns : b.to_ns};
}

/* Returns how far ranges of one sender may overlap: ends are rounded. Of two senders with uploads
 * of equal length, one overlaps the other by half of it or more. */
static inline uint64_t upload_range_largest_overlap(struct upload_range range)
{
    const uint64_t least_ns = 1000000000;
    uint64_t part_ns = (range.to_ns - range.from_ns) / 4;
    return part_ns > least_ns ? part_ns : least_ns;
}

static inline bool upload_ranges_overlap(struct upload_range a, struct upload_range b)
{
    return a.from_ns < b.to_ns && b.from_ns < a.to_ns;
}

#endif
