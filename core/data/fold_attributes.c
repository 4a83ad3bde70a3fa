#include "core/data/fold_attributes.h"

#include "core/base/arena.h"
#include "core/base/hash.h"

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

static struct slice pack(struct arena *arena, const uint32_t *numbers, size_t count)
{
    size_t size = 0;
    for (size_t i = 0; i < count; i++)
        size += wire_size_varint(numbers[i]);
    uint8_t *packed = arena_alloc(arena, size), *to = packed;
    for (size_t i = 0; i < count; i++)
        to = wire_write_varint(to, numbers[i]);
    return slice_of(packed, size);
}

static void add_list(struct fold_attributes *attributes, size_t count)
{
    struct slice copy = arena_copy(attributes->arena, content(attributes->scratch, count));
    struct fold_list list = {.numbers = (const uint32_t *)(const void *)copy.data,
                             .count = (uint32_t)count,
                             .packed = pack(attributes->arena, attributes->scratch, count)};
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

/* Makes room for as many samples as will likely have different attributes. */
static void reserve_known(struct fold_attributes *attributes)
{
    enum { KNOWN_MIN = 16, KNOWN_MAX = 1024 };
    uint32_t count = KNOWN_MIN;
    while (count < KNOWN_MAX && count < attributes->attribute_count)
        count *= 2;
    attributes->staying = arena_array(attributes->arena, count, sizeof *attributes->staying);
    attributes->added = arena_array(attributes->arena, count, sizeof *attributes->added);
    attributes->known_mask = count - 1;
}

void fold_attributes_init(struct fold_attributes *attributes, const struct fold_keys *keys,
                          struct equal_entries *equals, struct arena *arena)
{
    uint32_t count = dictionary_count(equals->dictionary, DICTIONARY_ATTRIBUTE_TABLE);
    *attributes = (struct fold_attributes){
        .keys = *keys, .equals = equals, .arena = arena, .attribute_count = count};
    attributes->takes = arena_array(arena, count, sizeof *attributes->takes);
    reserve_known(attributes);
}

void fold_attributes_take(struct fold_attributes *attributes, uint32_t index)
{
    assert(index < attributes->attribute_count);
    attributes->takes[index] = TAKEN;
}

/* Makes room in `scratch` for so many indices more than `count`, which stay. */
static void reserve_scratch(struct fold_attributes *attributes, size_t count, size_t more)
{
    if (attributes->scratch && count + more <= attributes->scratch_capacity)
        return;
    attributes->scratch_capacity = 16 + 2 * (count + more);
    uint32_t *scratch =
        arena_alloc(attributes->arena, attributes->scratch_capacity * sizeof *attributes->scratch);
    if (count > 0)
        memcpy(scratch, attributes->scratch, count * sizeof *scratch);
    attributes->scratch = scratch;
}

/* Reads those that stay into `scratch`, behind `count` others. Returns the new number. */
static size_t read_staying(struct fold_attributes *attributes, struct slice packed, size_t count,
                           enum fold_attributes_change change, bool *is_stripped)
{
    struct wire_cursor cursor = wire_cursor(packed);
    bool looks = change == FOLD_ATTRIBUTES_TAKEN || attributes->keys.stripped_count > 0;
    reserve_scratch(attributes, count, packed.size);
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
    assert(count <= attributes->scratch_capacity);
    return count;
}

/* Returns the number of the list in `scratch`, which is sorted if its order says nothing. */
static uint32_t finish_list(struct fold_attributes *attributes, size_t count,
                            enum fold_attributes_change change)
{
    if (change != FOLD_ATTRIBUTES_KEPT)
        sort(attributes->scratch, count);
    return number_of_list(attributes, count);
}

struct fold_attributes_result fold_attributes_read(struct fold_attributes *attributes,
                                                   struct slice packed, uint64_t digest,
                                                   enum fold_attributes_change change,
                                                   struct fold_staying *place)
{
    struct fold_attributes_result result = {.is_stripped = false};
    size_t count = read_staying(attributes, packed, 0, change, &result.is_stripped);
    result.list = finish_list(attributes, count, change);
    *place = (struct fold_staying){
        .digest = digest, .packed = packed, .result = result, .change = change, .is_set = true};
    return result;
}

uint32_t fold_attributes_add_new(struct fold_attributes *attributes, uint32_t list,
                                 struct slice gains, enum fold_attributes_change change,
                                 struct fold_added *place)
{
    assert(list < attributes->list_count);
    const struct fold_list *before = &attributes->lists[list];
    bool is_stripped = false; /* the sample is not, whatever it gains */
    reserve_scratch(attributes, 0, before->count);
    if (before->count > 0)
        memcpy(attributes->scratch, before->numbers, before->count * sizeof *before->numbers);
    size_t count = read_staying(attributes, gains, before->count, change, &is_stripped);
    uint32_t result = finish_list(attributes, count, change);
    *place = (struct fold_added){
        .gains = gains, .list = list, .result = result, .change = change, .is_set = true};
    return result;
}
