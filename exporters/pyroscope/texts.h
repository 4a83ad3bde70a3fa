/*
 * texts: stores equal texts of a request once, so that they can be compared by address.
 *
 * A text is read once, when it is added; for equal texts, the first one is returned.
 *
 * Owner: the tables live in the arena; texts are not copied, except by texts_copy_of.
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

/* Adds a text, and returns the first equal one. The text must live as long as the arena. struct
 * texts is empty if all members but the arena are zero. */
struct slice texts_of(struct texts *texts, struct slice text);
/* Like texts_of, but copies the text if it is new. */
struct slice texts_copy_of(struct texts *texts, struct slice text);
/* Returns the equal text that was added; empty if there is none. */
struct slice texts_find(const struct texts *texts, struct slice text);

/* Compares two texts that texts_of returned, or that have at most TEXTS_SHORT_MAX bytes. */
enum { TEXTS_SHORT_MAX = 64 };
static inline bool texts_are_equal(struct slice a, struct slice b)
{
    return a.size == b.size &&
           (a.data == b.data || (a.size <= TEXTS_SHORT_MAX && slice_equal(a, b)));
}
/* Returns a hash that is equal for texts that texts_are_equal finds equal. */
uint64_t texts_hash(struct slice text);

#endif
