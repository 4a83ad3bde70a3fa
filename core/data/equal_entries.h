/*
 * equal_entries: finds equal entries of a dictionary, so that samples fold that refer to different
 * ones.
 *
 * A table should have no equal entries. But some senders write an attribute or a stack anew for
 * each sample, and what was redacted may be equal afterwards. Two entries are equal if their fields
 * are, and if the entries are equal to which they refer. Lists may be packed or not, and fields
 * with the value 0 may be left out. An entry that repeats a single field, or whose fields have
 * another order, is not found equal to others.
 *
 * An entry is read once, when it is first asked for, or one that refers to it. The first question
 * for a stack reads all locations: if no two are equal, stacks are compared as they are.
 *
 * Owner: whoever initialised it. Most memory is in the arena.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_DATA_EQUAL_ENTRIES_H
#define PROFCOL_CORE_DATA_EQUAL_ENTRIES_H

#include "core/base/index_table.h"
#include "core/data/dictionary.h"
#include "core/data/wire_out.h"

struct equal_table {
    uint32_t count;  /* entries */
    uint32_t *first; /* by index: 1 + the first equal one; 0: not asked yet. NULL: none was */
    bool is_unique;  /* all were read, and no two are equal */
    struct index_table by_content; /* entries that are the first */
    struct slice
        *contents; /* by index: of those, where it is not as received. NULL: it always is */
    struct wire_out content; /* of the entry that is being read */
};

struct equal_entries {
    struct dictionary *dictionary;
    struct arena *arena;
    struct equal_table tables[DICTIONARY_TABLE_COUNT];
};

void equal_entries_init(struct equal_entries *equals, struct dictionary *dictionary,
                        struct arena *arena);
void equal_entries_deinit(struct equal_entries *equals);

/* Does what equal_entries_first does, for an index that was not asked for yet. */
uint32_t equal_entries_find(struct equal_entries *equals, int table, uint32_t index);

/* Returns the first entry that was asked for and is equal to this one: 0 for the zero value, the
 * index itself if there was none, or if it was added to the dictionary since the start. */
static inline uint32_t equal_entries_first(struct equal_entries *equals, int table, uint32_t index)
{
    const struct equal_table *of = &equals->tables[table];
    if (index == 0 || index >= of->count)
        return index;
    uint32_t first = of->first ? of->first[index] : 0;
    return first != 0 ? first - 1 : equal_entries_find(equals, table, index);
}

#endif
