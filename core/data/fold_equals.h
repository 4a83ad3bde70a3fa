/*
 * fold_equals: finds equal entries of an attribute_table, so that samples fold that refer to
 * different ones (fold_attributes.h).
 *
 * Tables should have no equal entries, but some senders write a key and a value anew for each
 * sample. Two entries are equal if the texts of their keys and units and their values are. Each
 * entry and each text is read once, when it is first asked for.
 *
 * Owner: all memory is in the arena.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_DATA_FOLD_EQUALS_H
#define PROFCOL_CORE_DATA_FOLD_EQUALS_H

#include "core/base/index_table.h"
#include "core/data/dictionary.h"

struct fold_equals {
    struct dictionary *dictionary;
    struct arena *arena;
    uint32_t
        *first; /* by index in the attribute_table: 1 + the first equal one; 0: not asked yet */
    uint32_t attribute_count;
    struct fold_entry *entries; /* those that are the first */
    uint32_t entry_count, entry_capacity;
    struct index_table by_content;
    struct fold_text *texts; /* keys and units */
    uint32_t text_count, text_capacity;
    struct index_table by_string, by_text;
};

/* Entries that are added to the dictionary later may not be asked for. */
struct fold_equals *fold_equals_new(struct dictionary *dictionary, struct arena *arena);

/* Does what fold_equals_first does, for an index that was not asked for yet. */
uint32_t fold_equals_find(struct fold_equals *equals, uint32_t index);

/* Returns the first entry that was asked for and is equal to this one; the index itself if there
 * was none. */
static inline uint32_t fold_equals_first(struct fold_equals *equals, uint32_t index)
{
    assert(index < equals->attribute_count);
    uint32_t first = equals->first[index];
    return first != 0 ? first - 1 : fold_equals_find(equals, index);
}

#endif
