#include "core/data/fold_attributes.h"

#include "core/base/arena.h"
#include "core/base/hash.h"
#include "core/data/sample_fields.h"

#include <stdlib.h>

/* ---- keys ---- */

/* Of span and trace ids: the sources of the join (processors/spanjoin/spanjoin_settings.c), and
 * what it can add of one span. Of time: what the join can add, and labels of pprof. */
#define KEY(text)                                                                                  \
    {                                                                                              \
        (const uint8_t *)(text), sizeof(text) - 1                                                  \
    }
static const struct slice folded_keys[] = {
    KEY("span_id"),
    KEY("profile_id"),
    KEY("span.id"),
    KEY("otel.span_id"),
    KEY("process.context.label.span_id"),
    KEY("span id"),
    KEY("local root span id"),
    KEY("trace_id"),
    KEY("otel.traceid"),
    KEY("process.context.label.trace_id"),
    KEY("trace.id"),
    KEY("span.trace_id"),
    KEY("span.parent_id"),
    KEY("parent_span_id"),
    KEY("span.start_time"),
    KEY("span.end_time"),
    KEY("span.duration"),
    KEY("span.duration_ns"),
    KEY("span_start_time"),
    KEY("span_end_time"),
    KEY("span_duration"),
    KEY("span_duration_ns"),
    KEY("end_timestamp_ns"),
};

static bool is_folded_key(struct slice key)
{
    for (size_t i = 0; i < sizeof folded_keys / sizeof *folded_keys; i++)
        if (slice_equal(key, folded_keys[i]))
            return true;
    return false;
}

/* STRIPPED: whatever becomes of the sample. */
enum taking { TAKEN = 1, STRIPPED, STAYING };

static bool is_one_of(struct slice key, const struct slice *keys, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (slice_equal(keys[i], key))
            return true;
    return false;
}

static enum taking taking_of_key(const struct fold_keys *keys, struct slice key)
{
    if (is_one_of(key, keys->stripped, keys->stripped_count))
        return STRIPPED;
    return is_one_of(key, keys->taken, keys->taken_count) || is_folded_key(key) ? TAKEN : STAYING;
}

/* Returns what becomes of the entry. A key is compared once for each entry. */
static inline enum taking taking_of(struct fold_attributes *attributes, uint32_t index)
{
    assert(index < attributes->attribute_count); /* scanned */
    if (attributes->takes[index] == 0) {
        struct dictionary *dictionary = attributes->equals->dictionary;
        uint32_t key = dictionary_attribute(dictionary, index).key;
        attributes->takes[index] =
            (uint8_t)taking_of_key(&attributes->keys, dictionary_string(dictionary, key));
    }
    return (enum taking)attributes->takes[index];
}

/* ---- lists ---- */

static int compare_numbers(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

/* Sorts from `first` on: for a few. */
static void insert_sorted(uint32_t *numbers, size_t first, size_t count)
{
    for (size_t i = first; i < count; i++) {
        uint32_t number = numbers[i];
        size_t at = i;
        for (; at > 0 && numbers[at - 1] > number; at--)
            numbers[at] = numbers[at - 1];
        numbers[at] = number;
    }
}

static void sort(uint32_t *numbers, size_t count)
{
    enum { FEW = 16 };
    size_t sorted = 1; /* most lists are, or are short */
    while (sorted < count && numbers[sorted - 1] <= numbers[sorted])
        sorted++;
    if (sorted >= count)
        return;
    if (count <= FEW)
        insert_sorted(numbers, sorted, count);
    else
        qsort(numbers, count, sizeof *numbers, compare_numbers);
}

static struct slice content(const uint32_t *numbers, size_t count)
{
    return slice_of(numbers, count * sizeof *numbers);
}

static void add_list(struct fold_attributes *attributes, size_t count)
{
    struct slice copy = arena_copy(attributes->arena, content(attributes->scratch, count));
    struct fold_list list = {.numbers = (const uint32_t *)(const void *)copy.data,
                             .count = (uint32_t)count};
    for (size_t i = 0; i < count; i++)
        list.bytes += (uint32_t)wire_size_varint(list.numbers[i]);
    attributes->lists = arena_grow(attributes->arena, attributes->lists, attributes->list_count,
                                   &attributes->list_capacity, sizeof list);
    attributes->lists[attributes->list_count++] = list;
}

/* Returns the number of the list in `scratch`. */
static uint32_t number_of_list(struct fold_attributes *attributes, size_t count)
{
    struct slice wanted = content(attributes->scratch, count);
    if (index_table_is_full(&attributes->by_content))
        index_table_reserve(&attributes->by_content, 1, attributes->arena);
    struct index_probe probe =
        index_table_probe(&attributes->by_content, (uint32_t)hash_bytes(wanted));
    for (uint32_t i; index_table_next(&attributes->by_content, &probe, &i);)
        if (slice_equal(content(attributes->lists[i].numbers, attributes->lists[i].count), wanted))
            return i;
    add_list(attributes, count);
    index_table_add(&attributes->by_content, &probe, attributes->list_count - 1);
    return attributes->list_count - 1;
}

/* ---- samples ---- */

/* Attributes that were changed before. */
struct fold_known {
    uint64_t digest; /* of `packed` */
    struct slice packed, gains;
    enum fold_attributes_change change;
    bool is_set;
    struct fold_attributes_result result;
};

void fold_attributes_init(struct fold_attributes *attributes, const struct fold_keys *keys,
                          struct equal_entries *equals, struct arena *arena)
{
    uint32_t count = dictionary_count(equals->dictionary, DICTIONARY_ATTRIBUTE_TABLE);
    *attributes = (struct fold_attributes){
        .keys = *keys, .equals = equals, .arena = arena, .attribute_count = count};
    attributes->takes = arena_array(arena, count, sizeof *attributes->takes);
}

void fold_attributes_take(struct fold_attributes *attributes, uint32_t index)
{
    assert(index < attributes->attribute_count);
    attributes->takes[index] = TAKEN;
}

/* Makes room for as many samples as will likely have different attributes. */
static void reserve_known(struct fold_attributes *attributes)
{
    enum { KNOWN_MIN = 16, KNOWN_MAX = 1024, LISTS_OF_ATTRIBUTE = 4 };
    uint32_t count = KNOWN_MIN;
    while (count < KNOWN_MAX && count / LISTS_OF_ATTRIBUTE < attributes->attribute_count)
        count *= 2;
    attributes->known = arena_array(attributes->arena, count, sizeof *attributes->known);
    attributes->known_mask = count - 1;
}

/* Returns a number that tells a short list from all other lists, or a hash of a longer one. A
 * sender who finds lists with the same hash gains nothing: each of them is then read. */
static inline uint64_t digest_of(struct slice packed)
{
    uint64_t begin, end;
    if (packed.size < sizeof begin)
        return sample_short_list(packed);
    memcpy(&begin, packed.data, sizeof begin);
    memcpy(&end, packed.data + packed.size - sizeof end, sizeof end);
    return begin ^ end * UINT64_C(0xff51afd7ed558ccd) ^ packed.size;
}

static inline struct fold_known *known_like(const struct fold_attributes *attributes,
                                            uint64_t digest, struct slice gains)
{
    uint64_t hash = (digest ^ (uintptr_t)gains.data >> 3) * UINT64_C(0x9e3779b97f4a7c15);
    return &attributes->known[hash >> 40 & attributes->known_mask];
}

/* Reads those that stay into `scratch`, behind `count` others. Returns the new number. */
static size_t read_staying(struct fold_attributes *attributes, struct slice packed, size_t count,
                           enum fold_attributes_change change, bool *is_stripped)
{
    struct wire_cursor cursor = wire_cursor(packed);
    bool looks = change == FOLD_ATTRIBUTES_TAKEN || attributes->keys.stripped_count > 0;
    for (uint64_t index; wire_packed_varint(&cursor, &index);) {
        enum taking taking = looks && index != 0 ? taking_of(attributes, (uint32_t)index) : STAYING;
        *is_stripped |= taking == STRIPPED;
        if (taking == STRIPPED || (taking == TAKEN && change == FOLD_ATTRIBUTES_TAKEN))
            continue;
        if (change != FOLD_ATTRIBUTES_KEPT) {
            index = equal_entries_first(attributes->equals, DICTIONARY_ATTRIBUTE_TABLE,
                                        (uint32_t)index);
            if (index == 0) /* it names nothing */
                continue;
        }
        attributes->scratch[count++] = (uint32_t)index;
    }
    return count;
}

static struct fold_attributes_result read_all(struct fold_attributes *attributes,
                                              struct slice packed, struct slice gains,
                                              enum fold_attributes_change change)
{
    struct fold_attributes_result result = {.is_stripped = false};
    size_t need = packed.size + gains.size;
    if (need > attributes->scratch_capacity || !attributes->scratch) {
        attributes->scratch_capacity = 16 + 2 * need;
        attributes->scratch = arena_alloc(attributes->arena, attributes->scratch_capacity *
                                                                 sizeof *attributes->scratch);
    }
    size_t count = read_staying(attributes, packed, 0, change, &result.is_stripped);
    count = read_staying(attributes, gains, count, change, &result.is_stripped);
    assert(count <= attributes->scratch_capacity);
    if (change != FOLD_ATTRIBUTES_KEPT)
        sort(attributes->scratch, count);
    result.list = number_of_list(attributes, count);
    return result;
}

static inline bool is_like(const struct fold_known *known, uint64_t digest, struct slice packed,
                           struct slice gains, enum fold_attributes_change change)
{
    return known->digest == digest && known->is_set && known->change == change &&
           known->gains.data == gains.data && known->gains.size == gains.size &&
           known->packed.size == packed.size &&
           (packed.size < sizeof digest || slice_equal(known->packed, packed));
}

struct fold_attributes_result fold_attributes_change(struct fold_attributes *attributes,
                                                     struct slice packed, struct slice gains,
                                                     enum fold_attributes_change change)
{
    if (!attributes->known)
        reserve_known(attributes);
    uint64_t digest = digest_of(packed);
    struct fold_known *known = known_like(attributes, digest, gains);
    if (!is_like(known, digest, packed, gains, change))
        *known = (struct fold_known){.digest = digest,
                                     .packed = packed,
                                     .gains = gains,
                                     .change = change,
                                     .is_set = true,
                                     .result = read_all(attributes, packed, gains, change)};
    return known->result;
}
