#include "core/data/fold_groups.h"

#include "core/base/arena.h"
#include "core/base/hash.h"
#include "core/data/otlp.h"
#include "core/data/wire.h"

#include <stdlib.h>

struct fold_group {
    struct slice key; /* 32-bit numbers */
    uint32_t latest;  /* of the groups with this key, the one whose sum has room */
    bool is_sum;      /* its value is `sum`, otherwise its values are those of the members */
    int64_t sum;
    struct fold_member *members, *last_member;
    size_t value_bytes, timestamp_bytes; /* of all members */
    struct slice others;                 /* fields that are not known */
    size_t size;                         /* encoded, without tag and length */
};

struct fold_member {
    struct slice values; /* packed */
    struct slice timestamps;
    struct fold_member *next;
};

enum { FEW_ATTRIBUTES = 16 };

enum {
    KEY_STACK,
    KEY_LINK,
    KEY_SHAPE,
    KEY_ATTRIBUTES
}; /* the latter is the index of the first one */

/* ---- keys ---- */

void fold_groups_begin_key(struct fold_groups *groups, uint32_t stack, uint32_t link,
                           enum fold_shape shape, size_t attributes)
{
    if (groups->key_capacity - KEY_ATTRIBUTES < attributes || !groups->key) {
        groups->key_capacity = KEY_ATTRIBUTES + FEW_ATTRIBUTES + 2 * attributes;
        groups->key = arena_array(groups->arena, groups->key_capacity, sizeof *groups->key);
    }
    groups->key[KEY_STACK] = stack;
    groups->key[KEY_LINK] = link;
    groups->key[KEY_SHAPE] = shape;
    groups->key_count = KEY_ATTRIBUTES;
}

static int compare_numbers(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

/* Sorts the numbers from `first` on: for a few. */
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

void fold_groups_sort_key(struct fold_groups *groups)
{
    const uint32_t *key = groups->key;
    size_t sorted = KEY_ATTRIBUTES + 1; /* most lists are, or are short */
    while (sorted < groups->key_count && key[sorted - 1] <= key[sorted])
        sorted++;
    if (sorted < groups->key_count && groups->key_count <= KEY_ATTRIBUTES + FEW_ATTRIBUTES)
        insert_sorted(groups->key + KEY_ATTRIBUTES, sorted - KEY_ATTRIBUTES,
                      groups->key_count - KEY_ATTRIBUTES);
    else if (sorted < groups->key_count)
        qsort(groups->key + KEY_ATTRIBUTES, groups->key_count - KEY_ATTRIBUTES, sizeof *groups->key,
              compare_numbers);
}

static struct slice key_bytes(const struct fold_groups *groups)
{
    return slice_of(groups->key, groups->key_count * sizeof *groups->key);
}

/* ---- adding ---- */

static uint32_t part_of_key(const struct fold_group *group, unsigned part)
{
    return ((const uint32_t *)(const void *)group->key.data)[part];
}

/* Makes a group. The key must exist as long as the group. */
static uint32_t new_group(struct fold_groups *groups, struct slice key)
{
    uint32_t number = groups->count;
    struct fold_group *group = arena_alloc(groups->arena, sizeof *group);
    *group = (struct fold_group){.key = key, .latest = number};
    group->is_sum = part_of_key(group, KEY_SHAPE) == SHAPE_SUM;
    groups->items = arena_grow(groups->arena, groups->items, number, &groups->capacity,
                               sizeof(struct fold_group *));
    groups->items[number] = group;
    groups->count++;
    return number;
}

uint32_t fold_groups_find(struct fold_groups *groups, bool *is_new_out)
{
    struct slice key = key_bytes(groups);
    if (index_table_is_full(&groups->by_key))
        index_table_reserve(&groups->by_key, 1, groups->arena);
    struct index_probe probe = index_table_probe(&groups->by_key, (uint32_t)hash_bytes(key));
    *is_new_out = false;
    for (uint32_t i; index_table_next(&groups->by_key, &probe, &i);)
        if (slice_equal(groups->items[i]->key, key))
            return i;
    *is_new_out = true;
    uint32_t number = new_group(groups, arena_copy(groups->arena, key));
    index_table_add(&groups->by_key, &probe, number);
    return number;
}

/* Only the latest group of a key is tried, so that the work for a sample does not grow with their
 * number. */
bool fold_groups_sum(struct fold_groups *groups, uint32_t number, int64_t value)
{
    assert(number < groups->count);
    struct fold_group *group = groups->items[number];
    struct fold_group *latest = groups->items[group->latest];
    int64_t sum;
    assert(latest->is_sum);
    bool fits = !__builtin_add_overflow(latest->sum, value, &sum);
    if (fits) {
        latest->sum = sum;
        return false;
    }
    group->latest = new_group(groups, group->key);
    groups->items[group->latest]->sum = value;
    return true;
}

void fold_groups_append(struct fold_groups *groups, uint32_t number, struct slice values,
                        struct slice timestamps)
{
    assert(number < groups->count);
    struct fold_group *group = groups->items[number];
    struct fold_member *member = arena_alloc(groups->arena, sizeof *member);
    *member = (struct fold_member){.values = values, .timestamps = timestamps};
    if (group->last_member)
        group->last_member->next = member;
    else
        group->members = member;
    group->last_member = member;
    group->value_bytes += values.size;
    group->timestamp_bytes += timestamps.size;
}

/* Makes a group that no other sample joins. */
static struct fold_group *new_group_apart(struct fold_groups *groups, struct slice others)
{
    uint32_t number = new_group(groups, arena_copy(groups->arena, key_bytes(groups)));
    assert(groups->key[KEY_SHAPE] == SHAPE_APART);
    groups->items[number]->others = others;
    return groups->items[number];
}

void fold_groups_keep_apart(struct fold_groups *groups, struct slice values,
                            struct slice timestamps, struct slice others)
{
    new_group_apart(groups, others);
    fold_groups_append(groups, groups->count - 1, values, timestamps);
}

void fold_groups_keep_value(struct fold_groups *groups, int64_t value, struct slice others)
{
    struct fold_group *group = new_group_apart(groups, others);
    group->is_sum = true;
    group->sum = value;
}

/* ---- writing ---- */

static size_t list_size(uint32_t number, size_t payload)
{
    return payload > 0 ? wire_size_bytes(number, payload) : 0;
}

static size_t index_size(uint32_t number, uint32_t index)
{
    return index > 0 ? wire_size_tag(number) + wire_size_varint(index) : 0;
}

static const uint32_t *attributes_of(const struct fold_group *group, size_t *count_out)
{
    *count_out = group->key.size / sizeof(uint32_t) - KEY_ATTRIBUTES;
    return (const uint32_t *)(const void *)group->key.data + KEY_ATTRIBUTES;
}

static size_t attributes_size(const struct fold_group *group)
{
    size_t count, size = 0;
    const uint32_t *attributes = attributes_of(group, &count);
    for (size_t i = 0; i < count; i++)
        size += wire_size_varint(attributes[i]);
    return size;
}

static void measure_group(struct fold_group *group)
{
    if (group->is_sum)
        group->value_bytes = wire_size_varint((uint64_t)group->sum);
    group->size = index_size(SAMPLE_STACK_INDEX, part_of_key(group, KEY_STACK)) +
                  list_size(SAMPLE_ATTRIBUTE_INDICES, attributes_size(group)) +
                  index_size(SAMPLE_LINK_INDEX, part_of_key(group, KEY_LINK)) +
                  list_size(SAMPLE_VALUES, group->value_bytes) +
                  list_size(SAMPLE_TIMESTAMPS_UNIX_NANO, group->timestamp_bytes) +
                  group->others.size;
}

size_t fold_groups_measure(struct fold_groups *groups, uint32_t number)
{
    struct fold_group *group = groups->items[number];
    assert(number < groups->count);
    measure_group(group);
    return wire_size_bytes(PROFILE_SAMPLES, group->size);
}

static uint8_t *copy_slice(uint8_t *to, struct slice bytes)
{
    if (bytes.size > 0)
        memcpy(to, bytes.data, bytes.size);
    return to + bytes.size;
}

static uint8_t *write_index(uint8_t *to, uint32_t number, uint32_t index)
{
    if (index == 0)
        return to;
    return wire_write_varint(wire_write_tag(to, number, WIRE_VARINT), index);
}

static uint8_t *write_values(uint8_t *to, const struct fold_group *group)
{
    if (group->value_bytes > 0)
        to = wire_write_header(to, SAMPLE_VALUES, group->value_bytes);
    if (group->is_sum)
        return wire_write_varint(to, (uint64_t)group->sum);
    for (const struct fold_member *member = group->members; member; member = member->next)
        to = copy_slice(to, member->values);
    return to;
}

static uint8_t *write_timestamps(uint8_t *to, const struct fold_group *group)
{
    if (group->timestamp_bytes > 0)
        to = wire_write_header(to, SAMPLE_TIMESTAMPS_UNIX_NANO, group->timestamp_bytes);
    for (const struct fold_member *member = group->members; member; member = member->next)
        to = copy_slice(to, member->timestamps);
    return to;
}

uint8_t *fold_groups_write(const struct fold_groups *groups, uint32_t number, uint8_t *to)
{
    const struct fold_group *group = groups->items[number];
    size_t count, attributes = attributes_size(group);
    const uint32_t *indices = attributes_of(group, &count);
    to = wire_write_header(to, PROFILE_SAMPLES, group->size);
    const uint8_t *end = to + group->size;
    to = write_index(to, SAMPLE_STACK_INDEX, part_of_key(group, KEY_STACK));
    if (attributes > 0)
        to = wire_write_header(to, SAMPLE_ATTRIBUTE_INDICES, attributes);
    for (size_t i = 0; i < count; i++)
        to = wire_write_varint(to, indices[i]);
    to = write_index(to, SAMPLE_LINK_INDEX, part_of_key(group, KEY_LINK));
    to = write_timestamps(write_values(to, group), group);
    to = copy_slice(to, group->others);
    assert(to == end);
    return to;
}
