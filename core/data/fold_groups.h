/*
 * fold_groups: the samples that a profile has after folding, while it is being read (fold.h).
 *
 * A group has a key. Samples with the same key are combined: values are added, or values and
 * timestamps are appended. Groups that no other sample joins are made with fold_groups_keep_apart.
 *
 * Owner: all memory is in the arena. All-zero but for the arena is empty.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_DATA_FOLD_GROUPS_H
#define PROFCOL_CORE_DATA_FOLD_GROUPS_H

#include "core/base/index_table.h"
#include "core/base/slice.h"

#include <assert.h>

struct sample_marks;

enum fold_shape { SHAPE_SUM, SHAPE_TIMESTAMPS, SHAPE_PAIRS, SHAPE_APART, FOLD_SHAPES };

/* Without padding. */
struct fold_key {
    uint32_t stack, link;
    uint32_t list; /* of attributes, number in fold_attributes */
    enum fold_shape shape;
};

/* Small, because samples are of groups in any order. */
struct fold_group {
    struct fold_key key;
    int64_t sum;
    struct fold_lists *lists; /* what it has besides the sum; NULL: nothing */
    size_t size;              /* encoded, without tag and length; set when it is measured */
    uint32_t latest;          /* of the groups with this key, the one whose sum has room */
    bool is_sum;     /* its value is `sum`, otherwise its values are those of the members */
    bool is_another; /* the key is found by an earlier one, whose sum had no room */
};

/* Where a group is, by a hash of its key: the first one that has the place, or the second one. */
struct fold_place {
    uint32_t stack, link;
    uint32_t list;           /* times FOLD_SHAPES, plus the shape */
    uint32_t group_plus_one; /* 0: the place is free */
};

struct fold_groups {
    struct arena *arena;
    struct fold_attributes *attributes;
    struct fold_group *items;
    uint32_t count, capacity;
    uint32_t expected;         /* so many groups */
    struct fold_place *places; /* two or more for each group, if those are not too many */
    uint32_t place_mask;
    struct index_table by_key; /* groups whose places others have */
};

/* Call it before the first group is made. */
static inline void fold_groups_expect(struct fold_groups *groups, uint32_t count)
{
    assert(groups->count == 0 && !groups->places);
    groups->expected = count;
}

/* Does what fold_groups_find does, for a key that is not in its place. */
uint32_t fold_groups_find_other(struct fold_groups *groups, const struct fold_key *key,
                                bool *is_new_out);
/* Returns the place of a group; the other one that it may have is next to it. A sender who finds
 * keys with the same place gains nothing: their groups are found by a keyed hash. */
static inline struct fold_place *fold_groups_place(const struct fold_groups *groups,
                                                   const struct fold_key *key)
{
    uint64_t hash = ((uint64_t)key->stack << 32 | key->link) * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ (uint64_t)key->list << 2 ^ key->shape) * UINT64_C(0xff51afd7ed558ccd);
    return &groups->places[hash >> 32 & groups->place_mask];
}
static inline struct fold_place *fold_groups_other_place(const struct fold_groups *groups,
                                                         const struct fold_place *place)
{
    return &groups->places[(place - groups->places) ^ 1];
}
static inline bool fold_place_has(const struct fold_place *place, const struct fold_key *key)
{
    uint32_t differs = (place->stack ^ key->stack) | (place->link ^ key->link) |
                       (place->list ^ (key->list * FOLD_SHAPES + key->shape));
    return differs == 0 && place->group_plus_one != 0;
}
/* Returns the number of the group with this key. If there is none, makes one: the newest. */
static inline uint32_t fold_groups_find(struct fold_groups *groups, const struct fold_key *key,
                                        bool *is_new_out)
{
    if (groups->places) {
        const struct fold_place *place = fold_groups_place(groups, key);
        *is_new_out = false;
        if (fold_place_has(place, key))
            return place->group_plus_one - 1;
        place = fold_groups_other_place(groups, place);
        if (fold_place_has(place, key))
            return place->group_plus_one - 1;
    }
    return fold_groups_find_other(groups, key, is_new_out);
}
/* Add a sample to the group that fold_groups_find has returned for its key. The first one is for
 * SHAPE_SUM: a sum that does not fit begins another group. The second one is for lists, which must
 * exist until the groups are written; values are packed and may be empty. */
void fold_groups_begin_another(struct fold_groups *groups, uint32_t number, int64_t value);
static inline void fold_groups_sum(struct fold_groups *groups, uint32_t number, int64_t value)
{
    int64_t sum;
    assert(number < groups->count);
    struct fold_group *latest = &groups->items[groups->items[number].latest];
    if (__builtin_add_overflow(latest->sum, value, &sum))
        fold_groups_begin_another(groups, number, value);
    else
        latest->sum = sum;
}
void fold_groups_append(struct fold_groups *groups, uint32_t number, struct slice values,
                        struct slice timestamps);
/* Make a group of its own for a sample with SHAPE_APART, with other fields. */
void fold_groups_keep_apart(struct fold_groups *groups, const struct fold_key *key,
                            struct slice values, struct slice timestamps, struct slice others);
/* The same with one value and no timestamps. */
void fold_groups_keep_value(struct fold_groups *groups, const struct fold_key *key, int64_t value,
                            struct slice others);

/* Returns the size of a group as a field of the profile. Nothing may be added afterwards. */
size_t fold_groups_measure(struct fold_groups *groups, uint32_t number);
/* Marks what a group refers to. */
void fold_groups_mark(struct fold_groups *groups, uint32_t number,
                      const struct sample_marks *marks);
/* Writes a measured group, and returns the address after it. */
uint8_t *fold_groups_write(const struct fold_groups *groups, uint32_t number, uint8_t *to);

#endif
