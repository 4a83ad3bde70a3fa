#include "core/data/attribute_list.h"

#include "core/base/arena.h"
#include "core/base/hash.h"
#include "core/base/memory.h"

#include <assert.h>
#include <stdlib.h>

void attribute_list_deinit(struct attribute_list *list)
{
    free(list->entries);
    free(list->changes);
    free(list->by_key.slots);
    *list = (struct attribute_list){0};
}

void attribute_list_clear(struct attribute_list *list)
{
    enum { KEPT_ENTRIES = 1000 };
    list->count = list->left = list->change_count = 0;
    list->is_indexed = list->is_compacted = false;
    if (list->capacity > KEPT_ENTRIES || list->change_capacity > KEPT_ENTRIES)
        attribute_list_deinit(list);
}

/* ---- entries ---- */

static __attribute__((noinline)) void grow(struct attribute_list *list)
{
    list->capacity = list->capacity > 0 ? 2 * list->capacity : 32;
    list->entries = memory_realloc(list->entries, list->capacity * sizeof *list->entries);
}

static inline void push(struct attribute_list *list, struct key_value pair, struct slice field,
                        enum attribute_state state)
{
    if (list->count == list->capacity)
        grow(list);
    assert(list->count < list->capacity);
    list->entries[list->count++] =
        (struct attribute_entry){pair.key, pair.value, field, state, false, 0};
    list->left++;
}

void attribute_list_push(struct attribute_list *list, struct slice key, struct slice value,
                         uint32_t number)
{
    push(list, (struct key_value){key, value}, (struct slice){0}, ATTRIBUTE_IS_OLD);
    list->entries[list->count - 1].number = number;
}

static bool wants(const struct attribute_filter *filter, struct slice key)
{
    return !filter ||
           ((filter->key_sizes >> key.size % 64 & 1) && filter->is_wanted(filter->context, key));
}

/* Reads the short fields at the start of the bytes. */
static void read_short(struct attribute_list *list, struct wire_cursor *cursor, uint32_t number,
                       const struct attribute_filter *filter, uint32_t max)
{
    const uint8_t *at = cursor->next;
    struct key_value pair;
    size_t size;
    while (list->count <= max && (size = wire_short_field_size(at, cursor->end)) > 0 &&
           size <= (size_t)(cursor->end - at)) {
        if (at[0] == (number << 3 | WIRE_BYTES)) {
            if (!key_value_read_short(slice_of(at + 2, at[1]), &pair))
                break;
            if (wants(filter, pair.key))
                push(list, pair, slice_of(at, size), ATTRIBUTE_IS_OLD);
        }
        at += size;
    }
    cursor->next = at;
}

void attribute_list_read(struct attribute_list *list, struct message_iter message, uint32_t number,
                         const struct attribute_filter *filter, uint32_t max)
{
    struct attribute attribute = attribute_first(message, number);
    bool is_plain = !message.message || !message.message->children;
    attribute_list_clear(list);
    for (;;) {
        if (is_plain)
            read_short(list, &attribute.it.cursor, number, filter, max);
        if (list->count > max || !attribute_next(&attribute))
            return;
        const struct wire_field *field = &attribute.field.wire;
        if (wants(filter, attribute.pair.key))
            push(list, attribute.pair, slice_of(field->start, (size_t)(field->end - field->start)),
                 ATTRIBUTE_IS_OLD);
    }
}

static void note_change(struct attribute_list *list, uint32_t at, bool is_new)
{
    if (list->change_count == list->change_capacity) {
        list->change_capacity = list->change_capacity > 0 ? 2 * list->change_capacity : 32;
        list->changes =
            memory_realloc(list->changes, list->change_capacity * sizeof *list->changes);
    }
    assert(list->change_count < list->change_capacity && at < list->count);
    list->changes[list->change_count++] =
        (struct attribute_list_change){at, is_new, list->entries[at]};
}

static uint32_t hash_of(struct slice key)
{
    return (uint32_t)hash_bytes(key);
}

void attribute_list_remove(struct attribute_list *list, uint32_t at)
{
    enum { MANY_CHANGES = 8 };
    assert(at < list->count && list->entries[at].state != ATTRIBUTE_IS_REMOVED);
    note_change(list, at, false);
    list->entries[at].state = ATTRIBUTE_IS_REMOVED;
    list->left--;
    list->is_indexed &= !list->has_duplicates && list->change_count <= MANY_CHANGES;
    if (list->is_indexed)
        index_table_remove(&list->by_key, hash_of(list->entries[at].key), at);
}

static struct attribute_entry *change(struct attribute_list *list, uint32_t at)
{
    struct attribute_entry *entry = &list->entries[at];
    assert(at < list->count && entry->state != ATTRIBUTE_IS_REMOVED);
    note_change(list, at, false);
    if (entry->state == ATTRIBUTE_IS_OLD)
        entry->state = ATTRIBUTE_IS_CHANGED;
    entry->number = 0;
    return entry;
}

void attribute_list_set_value(struct attribute_list *list, uint32_t at, struct slice value)
{
    if (!slice_equal(list->entries[at].value, value))
        change(list, at)->value = value;
}

void attribute_list_set_key(struct attribute_list *list, uint32_t at, struct slice key)
{
    change(list, at)->key = key;
    list->is_indexed = false;
}

void attribute_list_remove_all(struct attribute_list *list)
{
    list->is_indexed = false;
    for (uint32_t i = 0; attribute_list_next(list, &i); i++)
        attribute_list_remove(list, i);
}

bool attribute_list_takes_away(const struct attribute_list *list)
{
    for (uint32_t i = 0; i < list->change_count; i++)
        if (!list->changes[i].is_new && list->changes[i].before.state == ATTRIBUTE_IS_OLD)
            return true;
    return false;
}

void attribute_list_commit(struct attribute_list *list)
{
    list->change_count = 0;
}

void attribute_list_undo(struct attribute_list *list)
{
    list->is_indexed &= list->change_count == 0;
    while (list->change_count > 0) {
        const struct attribute_list_change *last = &list->changes[--list->change_count];
        struct attribute_entry *entry = &list->entries[last->at];
        if (last->is_new) {
            assert(last->at == list->count - 1);
            list->count--;
            list->left--;
        } else {
            list->left += entry->state == ATTRIBUTE_IS_REMOVED;
            *entry = last->before;
        }
    }
}

void attribute_list_compact(struct attribute_list *list)
{
    enum { SPARE = 32 };
    uint32_t removed = list->count - list->left, to = 0;
    assert(list->change_count == 0 && list->left <= list->count);
    if (removed <= list->left + SPARE)
        return;
    for (uint32_t i = 0; attribute_list_next(list, &i); i++)
        list->entries[to++] = list->entries[i];
    assert(to == list->left);
    list->count = to;
    list->is_indexed = false;
    list->is_compacted = true;
}

/* ---- finding ---- */

static void reserve(struct attribute_list *list, uint32_t more)
{
    index_table_grow(&list->by_key, more);
}

static bool probe(struct attribute_list *list, struct slice key, struct index_probe *at,
                  uint32_t *number_out)
{
    *at = index_table_probe(&list->by_key, hash_of(key));
    while (index_table_next(&list->by_key, at, number_out))
        if (slice_equal(list->entries[*number_out].key, key))
            return true;
    return false;
}

static void index_entry(struct attribute_list *list, uint32_t number)
{
    struct index_probe at;
    uint32_t other;
    if (list->entries[number].state == ATTRIBUTE_IS_REMOVED)
        return;
    if (probe(list, list->entries[number].key, &at, &other))
        list->has_duplicates = true;
    else
        index_table_add(&list->by_key, &at, number);
}

static void index_all(struct attribute_list *list)
{
    free(list->by_key.slots);
    list->by_key = (struct index_table){0};
    list->has_duplicates = false;
    reserve(list, list->count + 1);
    for (uint32_t i = 0; i < list->count; i++)
        index_entry(list, i);
    list->is_indexed = true;
}

bool attribute_list_find(struct attribute_list *list, struct slice key, uint32_t *at_out)
{
    enum { FEW = 16 };
    struct index_probe at;
    if (list->count > FEW) {
        if (!list->is_indexed)
            index_all(list);
        return probe(list, key, &at, at_out);
    }
    for (*at_out = 0; attribute_list_next(list, at_out); ++*at_out)
        if (slice_equal(list->entries[*at_out].key, key))
            return true;
    return false;
}

void attribute_list_add(struct attribute_list *list, struct slice key, struct slice value)
{
    push(list, (struct key_value){key, value}, (struct slice){0}, ATTRIBUTE_IS_ADDED);
    note_change(list, list->count - 1, true);
    if (list->is_indexed) {
        reserve(list, 1);
        index_entry(list, list->count - 1);
    }
}

/* ---- writing ---- */

static size_t size_after(const struct attribute_list *list, uint32_t number, size_t size)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const struct attribute_entry *entry = &list->entries[i];
        if (entry->state == ATTRIBUTE_IS_OLD)
            continue;
        size -= entry->field.size;
        if (entry->state != ATTRIBUTE_IS_REMOVED)
            size += key_value_field_size(number, entry->key, entry->value);
    }
    return size;
}

static uint8_t *copy(uint8_t *to, const uint8_t *from, const uint8_t *end)
{
    memcpy(to, from, (size_t)(end - from));
    return to + (end - from);
}

/* One copy of the message with the changes costs less than a node for each of them, and is read
 * faster by what comes after. */
static void rewrite(const struct attribute_list *list, struct message *message, uint32_t number,
                    struct arena *arena)
{
    size_t size = size_after(list, number, message->raw.size);
    uint8_t *start = arena_alloc(arena, size), *to = start;
    const uint8_t *from = message->raw.data, *end = from + message->raw.size;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct attribute_entry *entry = &list->entries[i];
        if (entry->state == ATTRIBUTE_IS_OLD)
            continue;
        bool is_there = entry->field.size > 0; /* what was added comes after all fields */
        to = copy(to, from, is_there ? entry->field.data : end);
        from = is_there ? entry->field.data + entry->field.size : end;
        if (entry->state != ATTRIBUTE_IS_REMOVED)
            to = key_value_field_write(to, number, entry->key, entry->value);
    }
    to = copy(to, from, end);
    assert(to == start + size);
    message_rewrite(message, slice_of(start, size));
}

/* Goes along the attributes of the message, which the entries with a field are some of, in order,
 * and appends the others. */
static void change_fields(const struct attribute_list *list, struct message *message,
                          uint32_t number, struct arena *arena)
{
    struct attribute attribute = attribute_first(message_iter(message, arena), number);
    uint32_t at = 0;
    while (attribute_next(&attribute)) {
        const struct attribute_entry *entry = &list->entries[at];
        if (at == list->count || entry->field.data != attribute.field.wire.start) {
            if (list->is_compacted)
                attribute_remove(&attribute);
            continue;
        }
        at++;
        if (entry->state == ATTRIBUTE_IS_REMOVED)
            attribute_remove(&attribute);
        else if (entry->state == ATTRIBUTE_IS_CHANGED)
            message_replace(&attribute.it, &attribute.field,
                            key_value_encode(arena, entry->key, entry->value));
    }
    for (; attribute_list_next(list, &at); at++) {
        assert(list->entries[at].state == ATTRIBUTE_IS_ADDED);
        attributes_append(message, arena, number, list->entries[at].key, list->entries[at].value);
    }
}

void attribute_list_write(const struct attribute_list *list, struct message *message,
                          uint32_t number, struct arena *arena, bool may_rewrite)
{
    if (may_rewrite && !list->is_compacted && !message->children && !message->tail)
        rewrite(list, message, number, arena);
    else
        change_fields(list, message, number, arena);
}
