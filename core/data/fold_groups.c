#include "core/data/fold_groups.h"

#include "core/base/arena.h"
#include "core/base/hash.h"
#include "core/data/fold_attributes.h"
#include "core/data/otlp.h"
#include "core/data/sample_marks.h"
#include "core/data/wire.h"

enum { PLACES_MIN = 64, PLACES_MAX = 16384 }; /* powers of 2 */

struct fold_lists {
    struct fold_member *members, *last_member;
    size_t value_bytes, timestamp_bytes; /* of all members */
    struct slice others;                 /* fields that are not known */
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
    groups->items =
        arena_grow(groups->arena, groups->items, number, &groups->capacity, sizeof *groups->items);
    groups->items[groups->count++] =
        (struct fold_group){.key = *key, .latest = number, .is_sum = key->shape == SHAPE_SUM};
    return number;
}

/* Returns the lists of a group. */
static struct fold_lists *lists_of(struct fold_groups *groups, uint32_t number)
{
    struct fold_group *group = &groups->items[number];
    assert(number < groups->count);
    if (!group->lists)
        group->lists = arena_zalloc(groups->arena, sizeof *group->lists);
    return group->lists;
}

/* Returns the place that a group may take; NULL: others have both. */
static struct fold_place *free_place(const struct fold_groups *groups, const struct fold_key *key)
{
    struct fold_place *place = fold_groups_place(groups, key);
    if (place->group_plus_one == 0)
        return place;
    place = fold_groups_other_place(groups, place);
    return place->group_plus_one == 0 ? place : NULL;
}

static void take_place(struct fold_place *place, const struct fold_key *key, uint32_t number)
{
    *place = (struct fold_place){.stack = key->stack,
                                 .link = key->link,
                                 .list = key->list * FOLD_SHAPES + key->shape,
                                 .group_plus_one = number + 1};
}

/* Returns how many places there are at first. */
static uint32_t first_places(const struct fold_groups *groups)
{
    uint32_t count = PLACES_MIN;
    while (count / 2 < groups->expected && count < PLACES_MAX)
        count *= 2;
    return count;
}

/* Groups without a place are in by_key already: the first ones keep theirs, or get others, because
 * those that have one of two places had one of the same two before. */
static void reserve_places(struct fold_groups *groups)
{
    uint32_t count = groups->places ? 2 * (groups->place_mask + 1) : first_places(groups);
    groups->places = arena_array(groups->arena, count, sizeof *groups->places);
    groups->place_mask = count - 1;
    for (uint32_t i = 0; i < groups->count; i++) {
        const struct fold_group *group = &groups->items[i];
        bool is_found = group->key.shape != SHAPE_APART && !group->is_another;
        struct fold_place *place = is_found ? free_place(groups, &group->key) : NULL;
        if (place)
            take_place(place, &group->key, i);
    }
}

/* Finds or makes the group of a key whose place another one has. */
static uint32_t find_by_key(struct fold_groups *groups, const struct fold_key *key,
                            bool *is_new_out)
{
    if (index_table_is_full(&groups->by_key))
        index_table_reserve(&groups->by_key, 1, groups->arena);
    struct index_probe probe =
        index_table_probe(&groups->by_key, (uint32_t)hash_bytes(slice_of(key, sizeof *key)));
    for (uint32_t i; index_table_next(&groups->by_key, &probe, &i);)
        if (memcmp(&groups->items[i].key, key, sizeof *key) == 0)
            return i;
    *is_new_out = true;
    index_table_add(&groups->by_key, &probe, groups->count);
    return new_group(groups, key);
}

uint32_t fold_groups_find_other(struct fold_groups *groups, const struct fold_key *key,
                                bool *is_new_out)
{
    if (groups->count >= groups->place_mask / 2 && groups->place_mask < PLACES_MAX - 1) {
        reserve_places(groups); /* maybe one for this key */
        return fold_groups_find(groups, key, is_new_out);
    }
    *is_new_out = false;
    struct fold_place *place = free_place(groups, key);
    if (!place)
        return find_by_key(groups, key, is_new_out);
    *is_new_out = true;
    take_place(place, key, groups->count);
    return new_group(groups, key);
}

/* Only the latest group of a key is tried, so that the work for a sample does not grow with their
 * number. */
void fold_groups_begin_another(struct fold_groups *groups, uint32_t number, int64_t value)
{
    struct fold_key key = groups->items[number].key;
    assert(key.shape == SHAPE_SUM);
    uint32_t another = new_group(groups, &key);
    groups->items[number].latest = another;
    groups->items[another].is_another = true;
    groups->items[another].sum = value;
}

void fold_groups_append(struct fold_groups *groups, uint32_t number, struct slice values,
                        struct slice timestamps)
{
    struct fold_lists *lists = lists_of(groups, number);
    struct fold_member *member = arena_alloc(groups->arena, sizeof *member);
    *member = (struct fold_member){.values = values, .timestamps = timestamps};
    if (lists->last_member)
        lists->last_member->next = member;
    else
        lists->members = member;
    lists->last_member = member;
    lists->value_bytes += values.size;
    lists->timestamp_bytes += timestamps.size;
}

/* Makes a group that no other sample joins. */
static uint32_t new_group_apart(struct fold_groups *groups, const struct fold_key *key,
                                struct slice others)
{
    assert(key->shape == SHAPE_APART);
    uint32_t number = new_group(groups, key);
    if (others.size > 0)
        lists_of(groups, number)->others = others;
    return number;
}

void fold_groups_keep_apart(struct fold_groups *groups, const struct fold_key *key,
                            struct slice values, struct slice timestamps, struct slice others)
{
    fold_groups_append(groups, new_group_apart(groups, key, others), values, timestamps);
}

void fold_groups_keep_value(struct fold_groups *groups, const struct fold_key *key, int64_t value,
                            struct slice others)
{
    uint32_t number = new_group_apart(groups, key, others);
    groups->items[number].is_sum = true;
    groups->items[number].sum = value;
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

/* Returns the packed attributes of a group. */
static struct slice attributes_of(const struct fold_groups *groups, const struct fold_group *group)
{
    assert(group->key.list < groups->attributes->list_count);
    return groups->attributes->lists[group->key.list].packed;
}

static size_t size_of_lists(const struct fold_lists *lists)
{
    return list_size(SAMPLE_VALUES, lists->value_bytes) +
           list_size(SAMPLE_TIMESTAMPS_UNIX_NANO, lists->timestamp_bytes) + lists->others.size;
}

size_t fold_groups_measure(struct fold_groups *groups, uint32_t number)
{
    struct fold_group *group = &groups->items[number];
    assert(number < groups->count);
    group->size = index_size(SAMPLE_STACK_INDEX, group->key.stack) +
                  list_size(SAMPLE_ATTRIBUTE_INDICES, attributes_of(groups, group).size) +
                  index_size(SAMPLE_LINK_INDEX, group->key.link);
    if (group->is_sum)
        group->size += wire_size_bytes(SAMPLE_VALUES, wire_size_varint((uint64_t)group->sum));
    if (group->lists)
        group->size += size_of_lists(group->lists);
    return wire_size_bytes(PROFILE_SAMPLES, group->size);
}

void fold_groups_mark(struct fold_groups *groups, uint32_t number, const struct sample_marks *marks)
{
    const struct fold_key *key = &groups->items[number].key;
    assert(number < groups->count && key->list < groups->attributes->list_count);
    struct fold_list *list = &groups->attributes->lists[key->list];
    entry_marks_set(&marks->stacks, key->stack);
    entry_marks_set(&marks->links, key->link);
    if (!list->is_marked)
        entry_marks_set_all(&marks->attributes, list->packed);
    list->is_marked = true;
}

static uint8_t *write_index(uint8_t *to, uint32_t number, uint32_t index)
{
    if (index == 0)
        return to;
    return wire_write_varint(wire_write_tag(to, number, WIRE_VARINT), index);
}

static uint8_t *write_sum(uint8_t *to, int64_t sum)
{
    to = wire_write_header(to, SAMPLE_VALUES, wire_size_varint((uint64_t)sum));
    return wire_write_varint(to, (uint64_t)sum);
}

static uint8_t *write_lists(uint8_t *to, const struct fold_lists *lists)
{
    const struct fold_member *member;
    if (lists->value_bytes > 0)
        to = wire_write_header(to, SAMPLE_VALUES, lists->value_bytes);
    for (member = lists->members; member; member = member->next)
        to = wire_write_raw(to, member->values);
    if (lists->timestamp_bytes > 0)
        to = wire_write_header(to, SAMPLE_TIMESTAMPS_UNIX_NANO, lists->timestamp_bytes);
    for (member = lists->members; member; member = member->next)
        to = wire_write_raw(to, member->timestamps);
    return wire_write_raw(to, lists->others);
}

uint8_t *fold_groups_write(const struct fold_groups *groups, uint32_t number, uint8_t *to)
{
    const struct fold_group *group = &groups->items[number];
    struct slice attributes = attributes_of(groups, group);
    to = wire_write_header(to, PROFILE_SAMPLES, group->size);
    const uint8_t *end = to + group->size;
    to = write_index(to, SAMPLE_STACK_INDEX, group->key.stack);
    if (attributes.size > 0)
        to = wire_write_raw(wire_write_header(to, SAMPLE_ATTRIBUTE_INDICES, attributes.size),
                            attributes);
    to = write_index(to, SAMPLE_LINK_INDEX, group->key.link);
    if (group->is_sum)
        to = write_sum(to, group->sum);
    if (group->lists)
        to = write_lists(to, group->lists);
    assert(to == end);
    return to;
}
