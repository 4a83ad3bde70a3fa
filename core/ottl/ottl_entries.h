/*
 * ottl_entries: maps and lists that a function makes, as arrays of entries.
 *
 * Owner: the entries are memory of an evaluation (ottl_evaluation_alloc).
 *
 * Thread: that of the evaluator.
 */
#ifndef PROFCOL_CORE_OTTL_OTTL_ENTRIES_H
#define PROFCOL_CORE_OTTL_OTTL_ENTRIES_H

#include "core/ottl/ottl_evaluation.h"

/* Returns the map, or list, of these entries. */
static inline struct ottl_value ottl_entries_value(enum ottl_kind kind,
                                                   const struct ottl_entry *entries, uint32_t count)
{
    struct ottl_value value = {.kind = kind, .form = OTTL_FORM_ENTRIES};
    value.entries = entries;
    value.count = count;
    value.depth = 1;
    for (uint32_t i = 0; i < count; i++)
        if (entries[i].value.form == OTTL_FORM_ENTRIES && entries[i].value.depth >= value.depth)
            value.depth = entries[i].value.depth + 1;
    return value;
}

/* Copies the entries of a map or list; sets *count_out to their number. There is room for another
 * one. */
struct ottl_entry *ottl_entries_copy(struct ottl_evaluation *evaluation,
                                     const struct ottl_value *from, uint32_t *count_out);
/* Orders pointers to entries by key, those with the same key by their place, for qsort. */
int ottl_entries_by_key(const void *a, const void *b);
/* Leaves the last of several entries with the same key. Returns how many are left. */
uint32_t ottl_entries_keep_last(struct ottl_evaluation *evaluation, struct ottl_entry *entries,
                                uint32_t count);

#endif
