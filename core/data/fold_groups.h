/*
 * fold_groups: the samples that a profile has after folding, while it is being read (fold.h).
 *
 * A group has a key: stack, link, shape and attributes. Samples with the same key are combined:
 * values are added, or values and timestamps are appended. Groups that no other sample joins are
 * made with fold_groups_keep_apart.
 *
 * Owner: all memory is in the arena. All-zero but for the arena is empty.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_DATA_FOLD_GROUPS_H
#define PROFCOL_CORE_DATA_FOLD_GROUPS_H

#include "core/base/index_table.h"
#include "core/base/slice.h"

enum fold_shape { SHAPE_SUM, SHAPE_TIMESTAMPS, SHAPE_PAIRS, SHAPE_APART };

struct fold_groups {
    struct arena *arena;
    struct fold_group **items;
    uint32_t count, capacity;
    struct index_table by_key;
    uint32_t *key; /* of the sample that is being read */
    uint32_t key_count, key_capacity;
};

/* Begins the key of a sample; its attributes follow. */
void fold_groups_begin_key(struct fold_groups *groups, uint32_t stack, uint32_t link,
                           enum fold_shape shape);
void fold_groups_add_attribute(struct fold_groups *groups, uint32_t attribute);
/* Sorts the attributes, because their order says nothing. */
void fold_groups_sort_key(struct fold_groups *groups);

/* Add a sample with the current key to a group. Return whether it is a new one, whose number is
 * then groups->count - 1. */
bool fold_groups_sum(struct fold_groups *groups, int64_t value);
/* values: packed, may be empty. The lists must exist until the groups are written. */
bool fold_groups_append(struct fold_groups *groups, struct slice values, struct slice timestamps);
/* The same, but the sample stays apart, with other fields. */
void fold_groups_keep_apart(struct fold_groups *groups, struct slice values,
                            struct slice timestamps, struct slice others);
/* The same with one value and no timestamps. */
void fold_groups_keep_value(struct fold_groups *groups, int64_t value, struct slice others);

/* Returns the size of a group as a field of the profile. Nothing may be added afterwards. */
size_t fold_groups_measure(struct fold_groups *groups, uint32_t number);
/* Writes a measured group, and returns the address after it. */
uint8_t *fold_groups_write(const struct fold_groups *groups, uint32_t number, uint8_t *to);

#endif
