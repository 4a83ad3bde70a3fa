/*
 * groups_select: a request made of some of the resources, or of some of the spans, of another one.
 *
 * Whole groups are copied as they are. Of a group that keeps only some spans, everything but the
 * other spans and the scopes without any is copied; a group without spans is left out. Profiles
 * have a dictionary, so their parts are made by profiles_merge.h.
 *
 * Owner: a selection belongs to the caller, a result too.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_DATA_GROUPS_SELECT_H
#define PROFCOL_CORE_DATA_GROUPS_SELECT_H

#include "core/base/buffer.h"
#include "core/data/otlp.h"

/* A set of groups or spans, which are numbered in the order of the request. All zero: empty. */
struct selection {
    uint64_t *bits;
    size_t word_count;
    uint32_t count;
};

void selection_add(struct selection *selection, uint32_t number);
static inline bool selection_has(const struct selection *selection, uint32_t number)
{
    size_t word = number / 64;
    return word < selection->word_count && (selection->bits[word] >> (number % 64) & 1);
}
void selection_deinit(struct selection *selection);

/* Return a request with the selected groups or spans of a scanned one, which is given as
 * consecutive slices. */
struct buffer *groups_select(const struct slice *slices, size_t slice_count,
                             const struct selection *groups, struct budget *budget);
struct buffer *groups_select_spans(const struct slice *slices, size_t slice_count,
                                   const struct selection *spans, struct budget *budget);

#endif
