/*
 * profile_size: how many bytes the dictionary entries take that a profile refers to.
 *
 * An entry that two stacks of a profile share counts once. The work for a request is limited by its
 * size: when many profiles share large entries, what those refer to counts no more at some point.
 *
 * Owner: the memory is that of the arena.
 *
 * Thread: that of the batch.
 */
#ifndef PROFCOL_STACK_LIMIT_PROFILE_SIZE_H
#define PROFCOL_STACK_LIMIT_PROFILE_SIZE_H

#include "core/data/dictionary.h"

struct profile_size {
    struct dictionary *dictionary;
    uint32_t
        *seen[DICTIONARY_TABLE_COUNT]; /* for each entry: the profile that it was counted for */
    uint32_t counts[DICTIONARY_TABLE_COUNT]; /* of entries */
    uint32_t profile;                        /* number of the current one; 0: none */
    uint64_t steps;                          /* bytes of entries that may still be read */
};

void profile_size_init(struct profile_size *size, struct dictionary *dictionary,
                       struct arena *arena);
/* Begins the next profile: nothing counts yet. */
void profile_size_begin(struct profile_size *size);
/* Returns the bytes of an entry, and of those that it refers to, that did not count yet. Entries
 * that were added to the dictionary since the start count nothing. */
uint64_t profile_size_add(struct profile_size *size, int table, uint64_t index);

#endif
