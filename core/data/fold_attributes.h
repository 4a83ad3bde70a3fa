/*
 * fold_attributes: which attributes samples have after folding (fold.h).
 *
 * Each list that stays has a number, so that samples with equal lists are found by comparing
 * numbers. Most samples have the attributes of one before; then nothing is read again. Of equal
 * entries of the attribute_table, the lists have the first one (equal_entries.h).
 *
 * Owner: all memory is in the arena. Results exist as long as that.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_DATA_FOLD_ATTRIBUTES_H
#define PROFCOL_CORE_DATA_FOLD_ATTRIBUTES_H

#include "core/data/equal_entries.h"

/* What becomes of the attributes of a sample, besides that some are stripped. */
enum fold_attributes_change {
    FOLD_ATTRIBUTES_TAKEN, /* those go that folding takes away; the others are sorted, because their
                              order says nothing */
    FOLD_ATTRIBUTES_SORTED, /* all stay */
    FOLD_ATTRIBUTES_KEPT,   /* likewise, in their order */
};

/* A list of indices in the attribute_table. */
struct fold_list {
    const uint32_t *numbers;
    uint32_t count;
    uint32_t bytes; /* of the packed list */
};

/* Keys of attributes that go. */
struct fold_keys {
    const struct slice *taken; /* with FOLD_ATTRIBUTES_TAKEN, besides those that are known here */
    size_t taken_count;
    const struct slice *stripped; /* in any case */
    size_t stripped_count;
};

struct fold_attributes {
    struct fold_keys keys;
    struct arena *arena;
    uint8_t *takes; /* by index in the attribute_table: enum taking; 0: not asked yet */
    uint32_t attribute_count;
    struct equal_entries *equals;
    struct fold_list *lists;
    uint32_t list_count, list_capacity;
    struct index_table by_content; /* the lists */
    struct fold_known *known;      /* by hash; a newer one takes the place of an older one */
    uint32_t known_mask;
    uint32_t *scratch; /* of the list that is being read */
    size_t scratch_capacity;
};

/* equals: of the dictionary; must exist as long as the arena. */
void fold_attributes_init(struct fold_attributes *attributes, const struct fold_keys *keys,
                          struct equal_entries *equals, struct arena *arena);

/* With FOLD_ATTRIBUTES_TAKEN, the attribute goes whatever its key is. */
void fold_attributes_take(struct fold_attributes *attributes, uint32_t index);

struct fold_attributes_result {
    uint32_t list;    /* number of what stays, in `lists` */
    bool is_stripped; /* the sample had an attribute that is stripped */
};
/* Returns what stays of the attributes of a sample, and of those that it gains. Both are packed,
 * and must exist as long as the arena. */
struct fold_attributes_result fold_attributes_change(struct fold_attributes *attributes,
                                                     struct slice packed, struct slice gains,
                                                     enum fold_attributes_change change);

#endif
