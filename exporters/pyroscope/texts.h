/*
 * texts: equal texts of a request stand in one place, so that comparing them costs nothing.
 *
 * A text is looked at once, when it is given; of equal ones the first is what everybody gets.
 *
 * Owner: the tables live in the arena; texts stay where they are, unless they are copied.
 *
 * Thread: the batch's worker.
 */
#ifndef PROFCOL_PYROSCOPE_TEXTS_H
#define PROFCOL_PYROSCOPE_TEXTS_H

#include "core/base/arena.h"
#include "core/base/index_table.h"

struct texts {
    struct arena *arena;
    struct index_table by_hash;
    struct slice *items;
    uint32_t capacity; /* of items */
};

/* All-zero but for the arena: empty. The text must live as long as the arena. */
struct slice texts_of(struct texts *texts, struct slice text);
/* The same for one that does not: it is copied when it is new. */
struct slice texts_copy_of(struct texts *texts, struct slice text);
/* The text that is there; empty: none. */
struct slice texts_find(const struct texts *texts, struct slice text);

/* Of two that were given, or are of TEXTS_SHORT_MAX bytes at most. */
enum { TEXTS_SHORT_MAX = 64 };
static inline bool texts_are_equal(struct slice a, struct slice b)
{
    return a.size == b.size &&
           (a.data == b.data || (a.size <= TEXTS_SHORT_MAX && slice_equal(a, b)));
}
/* The same for texts that are equal in this sense. */
uint64_t texts_hash(struct slice text);

#endif
