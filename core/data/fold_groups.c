#include "core/data/fold_groups.h"

#include "core/base/arena.h"
#include "core/base/hash.h"
#include "core/data/fold_attributes.h"
#include "core/data/otlp.h"
#include "core/data/wire.h"

struct fold_group {
    struct fold_key key;
    uint32_t latest; /* of the groups with this key, the one whose sum has room */
    bool is_sum;     /* its value is `sum`, otherwise its values are those of the members */
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

/* ---- adding ---- */

static uint32_t new_group(struct fold_groups *groups, const struct fold_key *key)
{
    uint32_t number = groups->count;
    struct fold_group *group = arena_alloc(groups->arena, sizeof *group);
    *group = (struct fold_group){.key = *key, .latest = number, .is_sum = key->shape == SHAPE_SUM};
    groups->items = arena_grow(groups->arena, groups->items, number, &groups->capacity,
                               sizeof(struct fold_group *));
    groups->items[number] = group;
    groups->count++;
    return number;
}

/* Finds or makes the group by its keyed hash. */
static uint32_t find_group(struct fold_groups *groups, const struct fold_key *key, bool *is_new_out)
{
    if (index_table_is_full(&groups->by_key))
        index_table_reserve(&groups->by_key, 1 + 2 * groups->count, groups->arena);
    struct index_probe probe =
        index_table_probe(&groups->by_key, (uint32_t)hash_bytes(slice_of(key, sizeof *key)));
    for (uint32_t i; index_table_next(&groups->by_key, &probe, &i);)
        if (memcmp(&groups->items[i]->key, key, sizeof *key) == 0)
            return i;
    *is_new_out = true;
    index_table_add(&groups->by_key, &probe, groups->count);
    return new_group(groups, key);
}

/* Where a group is remembered. A sender who finds keys with the same place gains nothing. */
static inline uint32_t *place_of(struct fold_groups *groups, const struct fold_key *key)
{
    uint64_t hash = ((uint64_t)key->stack << 32 | key->link) * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ key->list) * UINT64_C(0xff51afd7ed558ccd);
    return &groups->recent[hash >> 32 & groups->recent_mask];
}

static void reserve_recent(struct fold_groups *groups)
{
    enum { RECENT_MIN = 64 };
    uint32_t count = groups->recent ? 4 * (groups->recent_mask + 1) : RECENT_MIN;
    groups->recent = arena_array(groups->arena, count, sizeof *groups->recent);
    groups->recent_mask = count - 1;
}

uint32_t fold_groups_find(struct fold_groups *groups, const struct fold_key *key, bool *is_new_out)
{
    enum { RECENT_MAX = 16384 }; /* four places for each group */
    *is_new_out = false;
    if (groups->count >= groups->recent_mask / 4 && groups->recent_mask < RECENT_MAX)
        reserve_recent(groups);
    uint32_t *place = place_of(groups, key);
    if (*place < groups->count && memcmp(&groups->items[*place]->key, key, sizeof *key) == 0)
        return *place;
    return *place = find_group(groups, key, is_new_out);
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
    group->latest = new_group(groups, &group->key);
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
static struct fold_group *new_group_apart(struct fold_groups *groups, const struct fold_key *key,
                                          struct slice others)
{
    uint32_t number = new_group(groups, key);
    assert(key->shape == SHAPE_APART);
    groups->items[number]->others = others;
    return groups->items[number];
}

void fold_groups_keep_apart(struct fold_groups *groups, const struct fold_key *key,
                            struct slice values, struct slice timestamps, struct slice others)
{
    new_group_apart(groups, key, others);
    fold_groups_append(groups, groups->count - 1, values, timestamps);
}

void fold_groups_keep_value(struct fold_groups *groups, const struct fold_key *key, int64_t value,
                            struct slice others)
{
    struct fold_group *group = new_group_apart(groups, key, others);
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

static const struct fold_list *attributes_of(const struct fold_groups *groups,
                                             const struct fold_group *group)
{
    assert(group->key.list < groups->attributes->list_count);
    return &groups->attributes->lists[group->key.list];
}

static void measure_group(struct fold_group *group, const struct fold_list *attributes)
{
    if (group->is_sum)
        group->value_bytes = wire_size_varint((uint64_t)group->sum);
    group->size = index_size(SAMPLE_STACK_INDEX, group->key.stack) +
                  list_size(SAMPLE_ATTRIBUTE_INDICES, attributes->bytes) +
                  index_size(SAMPLE_LINK_INDEX, group->key.link) +
                  list_size(SAMPLE_VALUES, group->value_bytes) +
                  list_size(SAMPLE_TIMESTAMPS_UNIX_NANO, group->timestamp_bytes) +
                  group->others.size;
}

size_t fold_groups_measure(struct fold_groups *groups, uint32_t number)
{
    struct fold_group *group = groups->items[number];
    assert(number < groups->count);
    measure_group(group, attributes_of(groups, group));
    return wire_size_bytes(PROFILE_SAMPLES, group->size);
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
        to = wire_write_raw(to, member->values);
    return to;
}

static uint8_t *write_timestamps(uint8_t *to, const struct fold_group *group)
{
    if (group->timestamp_bytes > 0)
        to = wire_write_header(to, SAMPLE_TIMESTAMPS_UNIX_NANO, group->timestamp_bytes);
    for (const struct fold_member *member = group->members; member; member = member->next)
        to = wire_write_raw(to, member->timestamps);
    return to;
}

uint8_t *fold_groups_write(const struct fold_groups *groups, uint32_t number, uint8_t *to)
{
    const struct fold_group *group = groups->items[number];
    const struct fold_list *attributes = attributes_of(groups, group);
    to = wire_write_header(to, PROFILE_SAMPLES, group->size);
    const uint8_t *end = to + group->size;
    to = write_index(to, SAMPLE_STACK_INDEX, group->key.stack);
    if (attributes->bytes > 0)
        to = wire_write_header(to, SAMPLE_ATTRIBUTE_INDICES, attributes->bytes);
    for (uint32_t i = 0; i < attributes->count; i++)
        to = wire_write_varint(to, attributes->numbers[i]);
    to = write_index(to, SAMPLE_LINK_INDEX, group->key.link);
    to = write_timestamps(write_values(to, group), group);
    to = wire_write_raw(to, group->others);
    assert(to == end);
    return to;
}
