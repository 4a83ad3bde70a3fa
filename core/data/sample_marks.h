/*
 * sample_marks: which entries of a dictionary samples refer to.
 *
 * Pruning needs them. A component that reads each sample anyway can note them, so that pruning need
 * not read the samples again (batch_prune_marked in core/pipeline/batch.h).
 *
 * Owner: the bytes live in the caller's arena.
 *
 * Thread: that of the arena.
 */
#ifndef PROFCOL_CORE_DATA_SAMPLE_MARKS_H
#define PROFCOL_CORE_DATA_SAMPLE_MARKS_H

#include "core/data/index_list.h"
#include "core/data/sample_fields.h"

#include <assert.h>

/* Of one table: a byte for each entry, also for index 0 of an empty one; 1: a sample refers to it.
 */
struct entry_marks {
    uint8_t *bytes;
    uint32_t count; /* of entries */
};

struct sample_marks {
    struct entry_marks stacks, links, attributes;
};

/* The index was scanned. */
static inline void entry_marks_set(const struct entry_marks *marks, uint32_t index)
{
    assert(index < marks->count || index == 0);
    marks->bytes[index] = 1;
}

static inline void entry_marks_set_all(const struct entry_marks *marks, struct slice list)
{
    if (list.size == 1 && *list.data < 0x80) /* as attributes of most samples */
        entry_marks_set(marks, *list.data);
    else if (marks->count > 0) /* else they are all 0 */
        index_list_mark(list, marks->bytes, marks->count);
}

/* Marks what a sample refers to. */
static inline void sample_marks_add(const struct sample_marks *marks,
                                    const struct sample_references *references)
{
    entry_marks_set(&marks->stacks, references->stack);
    entry_marks_set(&marks->links, references->link);
    entry_marks_set_all(&marks->attributes, references->attributes);
}

#endif
