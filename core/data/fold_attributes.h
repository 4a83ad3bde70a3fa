/*
 * fold_attributes: which attributes samples have after folding (fold.h).
 *
 * Each list has a number, so that samples with equal lists are found by comparing numbers. Most
 * samples have the attributes of one before, and gain those of one before; then nothing is read
 * again. Of equal entries of the attribute_table, the lists have the first one (equal_entries.h).
 *
 * Owner: all memory is in the arena. Results exist as long as that.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_DATA_FOLD_ATTRIBUTES_H
#define PROFCOL_CORE_DATA_FOLD_ATTRIBUTES_H

#include "core/data/equal_entries.h"
#include "core/data/sample_fields.h"

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
    bool is_marked; /* its entries are (fold_groups_mark) */
    struct slice packed;
};

/* What stays of the attributes of a sample. */
struct fold_attributes_result {
    uint32_t list;    /* its number in `lists` */
    bool is_stripped; /* the sample had an attribute that is stripped */
};
/* The attributes of a sample that was read before. */
struct fold_staying {
    uint64_t digest; /* of `packed` */
    struct slice packed;
    struct fold_attributes_result result;
    enum fold_attributes_change change;
    bool is_set;
};

/* What was added to a list that stayed. */
struct fold_added {
    struct slice gains;
    uint32_t list; /* that stayed */
    uint32_t result;
    enum fold_attributes_change change;
    bool is_set;
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
    /* By hash; a newer one takes the place of an older one: */
    struct fold_staying *staying;
    struct fold_added *added;
    uint32_t known_mask; /* of both */
    uint32_t *scratch;   /* of the list that is being read */
    size_t scratch_capacity;
};

/* equals: of the dictionary; must exist as long as the arena. */
void fold_attributes_init(struct fold_attributes *attributes, const struct fold_keys *keys,
                          struct equal_entries *equals, struct arena *arena);

/* With FOLD_ATTRIBUTES_TAKEN, the attribute goes whatever its key is. */
void fold_attributes_take(struct fold_attributes *attributes, uint32_t index);

/* Returns a number that tells a short list from all other lists, or a hash of a longer one. A
 * sender who finds lists with the same hash gains nothing: each of them is then read. */
static inline uint64_t fold_attributes_digest(struct slice packed)
{
    uint64_t begin, end;
    if (packed.size < sizeof begin)
        return sample_short_list(packed);
    memcpy(&begin, packed.data, sizeof begin);
    memcpy(&end, packed.data + packed.size - sizeof end, sizeof end);
    return begin ^ end * UINT64_C(0xff51afd7ed558ccd) ^ packed.size;
}
/* Does what fold_attributes_change does, for attributes that are not remembered in this place. */
struct fold_attributes_result fold_attributes_read(struct fold_attributes *attributes,
                                                   struct slice packed, uint64_t digest,
                                                   enum fold_attributes_change change,
                                                   struct fold_staying *place);
/* Returns what stays of packed attributes, which exist as long as the arena. */
static inline struct fold_attributes_result
fold_attributes_change(struct fold_attributes *attributes, struct slice packed,
                       enum fold_attributes_change change)
{
    uint64_t digest = fold_attributes_digest(packed);
    uint64_t hash = digest * UINT64_C(0x9e3779b97f4a7c15);
    struct fold_staying *known = &attributes->staying[hash >> 40 & attributes->known_mask];
    if (known->digest == digest && known->is_set && known->change == change &&
        known->packed.size == packed.size &&
        (packed.size < sizeof digest || slice_equal(known->packed, packed)))
        return known->result;
    return fold_attributes_read(attributes, packed, digest, change, known);
}
/* Does what fold_attributes_add does, for what is not remembered in this place. */
uint32_t fold_attributes_add_new(struct fold_attributes *attributes, uint32_t list,
                                 struct slice gains, enum fold_attributes_change change,
                                 struct fold_added *place);
/* Returns the number of the list that a sample has of which such a list stays, and that gains
 * others, or none. They are packed, and exist as long as the arena. */
static inline uint32_t fold_attributes_add_known(struct fold_attributes *attributes, uint32_t list,
                                                 struct slice gains,
                                                 enum fold_attributes_change change)
{
    uint64_t hash = ((uintptr_t)gains.data >> 3 ^ list) * UINT64_C(0x9e3779b97f4a7c15);
    struct fold_added *known = &attributes->added[hash >> 40 & attributes->known_mask];
    if (known->gains.data == gains.data && known->gains.size == gains.size && known->list == list &&
        known->change == change && known->is_set)
        return known->result;
    return fold_attributes_add_new(attributes, list, gains, change, known);
}
/* The same, faster if most gain nothing. */
static inline uint32_t fold_attributes_add(struct fold_attributes *attributes, uint32_t list,
                                           struct slice gains, enum fold_attributes_change change)
{
    return gains.size == 0 ? list : fold_attributes_add_known(attributes, list, gains, change);
}

#endif
