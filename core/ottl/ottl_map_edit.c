#include "core/ottl/ottl_map_edit.h"

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/ottl/ottl_path.h"
#include "core/ottl/ottl_profile_tables.h"
#include "core/ottl/ottl_writing.h"

#include <assert.h>
#include <stdlib.h>

void ottl_edit_deinit(struct ottl_edit *edit)
{
    free(edit->entries);
    free(edit->by_key.slots);
    *edit = (struct ottl_edit){0};
}

/* ---- entries ---- */

static void push(struct ottl_edit *edit, struct slice key, struct slice value,
                 enum ottl_edit_state state)
{
    if (edit->count == edit->capacity) {
        edit->capacity = edit->capacity > 0 ? 2 * edit->capacity : 32;
        edit->entries = memory_realloc(edit->entries, edit->capacity * sizeof *edit->entries);
    }
    assert(edit->count < edit->capacity);
    edit->entries[edit->count++] = (struct ottl_edit_entry){
        key, value, state, state == OTTL_ENTRY_KEPT ? key.size + value.size : 0, false};
    edit->left++;
}

void ottl_edit_remove(struct ottl_edit *edit, uint32_t at)
{
    assert(at < edit->count && edit->entries[at].state != OTTL_ENTRY_REMOVED);
    edit->entries[at].state = OTTL_ENTRY_REMOVED;
    edit->left--;
    edit->is_changed = true;
    edit->is_indexed = false;
}

void ottl_edit_set_value(struct ottl_edit *edit, uint32_t at, struct slice value)
{
    struct ottl_edit_entry *entry = &edit->entries[at];
    assert(at < edit->count && entry->state != OTTL_ENTRY_REMOVED);
    if (slice_equal(entry->value, value))
        return;
    entry->value = value;
    if (entry->state == OTTL_ENTRY_KEPT)
        entry->state = OTTL_ENTRY_SET;
    edit->is_changed = true;
}

void ottl_edit_set_key(struct ottl_edit *edit, uint32_t at, struct slice key)
{
    struct ottl_edit_entry *entry = &edit->entries[at];
    assert(at < edit->count && entry->state != OTTL_ENTRY_REMOVED);
    entry->key = key;
    if (entry->state == OTTL_ENTRY_KEPT)
        entry->state = OTTL_ENTRY_SET;
    edit->is_changed = true;
    edit->is_indexed = false;
}

void ottl_edit_clear(struct ottl_edit *edit)
{
    for (uint32_t i = 0; i < edit->count; i++)
        if (edit->entries[i].state != OTTL_ENTRY_REMOVED)
            ottl_edit_remove(edit, i);
}

/* ---- finding ---- */

static uint32_t hash_of(struct slice key)
{
    return (uint32_t)hash_bytes(key);
}

static void reserve(struct ottl_edit *edit, uint32_t more)
{
    size_t bytes = index_table_growth(&edit->by_key, more);
    if (bytes > 0)
        free(index_table_move(&edit->by_key, memory_zalloc(bytes), bytes));
}

static bool probe(struct ottl_edit *edit, struct slice key, struct index_probe *at,
                  uint32_t *number_out)
{
    *at = index_table_probe(&edit->by_key, hash_of(key));
    while (index_table_next(&edit->by_key, at, number_out))
        if (slice_equal(edit->entries[*number_out].key, key))
            return true;
    return false;
}

static void index_entry(struct ottl_edit *edit, uint32_t number)
{
    struct index_probe at;
    uint32_t other;
    if (edit->entries[number].state != OTTL_ENTRY_REMOVED &&
        !probe(edit, edit->entries[number].key, &at, &other))
        index_table_add(&edit->by_key, &at, number);
}

static void index_all(struct ottl_edit *edit)
{
    free(edit->by_key.slots);
    edit->by_key = (struct index_table){0};
    reserve(edit, edit->count + 1);
    for (uint32_t i = 0; i < edit->count; i++)
        index_entry(edit, i);
    edit->is_indexed = true;
}

bool ottl_edit_find(struct ottl_edit *edit, struct slice key, uint32_t *at_out)
{
    enum { FEW = 16 };
    struct index_probe at;
    if (edit->count > FEW) {
        if (!edit->is_indexed)
            index_all(edit);
        return probe(edit, key, &at, at_out);
    }
    for (*at_out = 0; *at_out < edit->count; (*at_out)++)
        if (edit->entries[*at_out].state != OTTL_ENTRY_REMOVED &&
            slice_equal(edit->entries[*at_out].key, key))
            return true;
    return false;
}

void ottl_edit_add(struct ottl_edit *edit, struct slice key, struct slice value)
{
    push(edit, key, value, OTTL_ENTRY_ADDED);
    edit->is_changed = true;
    if (edit->is_indexed) {
        reserve(edit, 1);
        index_entry(edit, edit->count - 1);
    }
}

/* ---- loading ---- */

static void load_bytes(struct ottl_edit *edit, struct slice list)
{
    struct wire_cursor cursor = wire_cursor(list);
    struct wire_field field;
    while (edit->count <= OTTL_EDIT_MAX &&
           wire_next_bytes(&cursor, KEY_VALUE_LIST_VALUES, &field)) {
        struct key_value pair = key_value_read(field.bytes);
        push(edit, pair.key, pair.value, OTTL_ENTRY_KEPT);
    }
}

static void load_attributes(struct ottl_edit *edit, const struct ottl_value *map)
{
    struct attribute attribute = attribute_first(*map->message, map->number);
    while (edit->count <= OTTL_EDIT_MAX && attribute_next(&attribute))
        push(edit, attribute.pair.key, attribute.pair.value, OTTL_ENTRY_KEPT);
}

static void load_indices(struct ottl_edit *edit, const struct ottl_value *map)
{
    struct ottl_numbers indices = ottl_attribute_indices(map->tables, map->index);
    struct slice key, value;
    while (edit->count <= OTTL_EDIT_MAX &&
           ottl_table_attribute_next(map->tables, &indices, &key, &value))
        push(edit, key, value, OTTL_ENTRY_KEPT);
}

bool ottl_edit_check(struct ottl_evaluation *evaluation, const struct ottl_edit *edit)
{
    return edit->count <= OTTL_EDIT_MAX ||
           error_set(ottl_evaluation_error(evaluation),
                     "a map with more than %d entries cannot be changed", OTTL_EDIT_MAX);
}

bool ottl_edit_load(struct ottl_evaluation *evaluation, const struct ottl_node *path,
                    struct ottl_edit *edit)
{
    struct ottl_value map;
    edit->count = edit->left = 0;
    edit->is_changed = edit->is_charged = edit->is_indexed = false;
    if (!ottl_take_search(evaluation, path->path) || !ottl_node_evaluate(evaluation, path, &map))
        return false;
    if (map.kind != OTTL_MAP)
        return error_set(ottl_evaluation_error(evaluation), "expected pcommon.Map but got %s",
                         ottl_type_name(&map));
    if (map.form == OTTL_FORM_ATTRIBUTES)
        load_attributes(edit, &map);
    else if (map.form == OTTL_FORM_INDICES)
        load_indices(edit, &map);
    else
        load_bytes(edit, map.bytes);
    const struct ottl_profile_tables *tables = ottl_evaluation_item(evaluation)->tables;
    if (!ottl_edit_check(evaluation, edit))
        return false;
    return !tables || !tables->ran_out ||
           error_set(ottl_evaluation_error(evaluation), "%s", ottl_steps_error);
}

/* ---- storing ---- */

/* Goes along the attributes, which are the first entries, and appends the rest. */
static bool store_attributes(struct ottl_evaluation *evaluation, const struct ottl_path_row *row,
                             const struct ottl_edit *edit)
{
    struct message_iter *message = ottl_open(evaluation, row);
    uint32_t at = 0;
    if (!message)
        return false;
    struct attribute attribute = attribute_first(*message, row->number);
    for (; attribute_next(&attribute); at++) {
        const struct ottl_edit_entry *entry = &edit->entries[at];
        assert(at < edit->count && entry->state != OTTL_ENTRY_ADDED);
        if (entry->state == OTTL_ENTRY_REMOVED)
            attribute_remove(&attribute);
        else if (entry->state == OTTL_ENTRY_SET)
            message_replace(&attribute.it, &attribute.field,
                            key_value_encode(message->arena, entry->key, entry->value));
    }
    for (; at < edit->count; at++)
        if (edit->entries[at].state != OTTL_ENTRY_REMOVED)
            attributes_append(message->message, message->arena, row->number, edit->entries[at].key,
                              edit->entries[at].value);
    return true;
}

static struct slice encode(struct ottl_evaluation *evaluation, const struct ottl_edit *edit)
{
    struct wire_writer *writer = ottl_evaluation_writer(evaluation);
    size_t begun = wire_writer_begin(writer, ANY_VALUE_KVLIST);
    for (uint32_t i = 0; i < edit->count; i++) {
        if (edit->entries[i].state == OTTL_ENTRY_REMOVED)
            continue;
        size_t pair = wire_writer_begin(writer, KEY_VALUE_LIST_VALUES);
        wire_writer_bytes(writer, KEY_VALUE_KEY, edit->entries[i].key);
        wire_writer_bytes(writer, KEY_VALUE_VALUE, edit->entries[i].value);
        wire_writer_end(writer, pair);
    }
    wire_writer_end(writer, begun);
    uint8_t *copy = ottl_evaluation_alloc(evaluation, writer->size);
    memcpy(copy, writer->data, writer->size);
    return slice_of(copy, writer->size);
}

/* Counts what is new. */
static bool charge(struct ottl_evaluation *evaluation, const struct ottl_edit *edit)
{
    for (uint32_t i = 0; i < edit->count; i++) {
        const struct ottl_edit_entry *entry = &edit->entries[i];
        if ((entry->state == OTTL_ENTRY_SET || entry->state == OTTL_ENTRY_ADDED) &&
            !ottl_take_room(evaluation, entry->key.size + entry->value.size, entry->old_size))
            return false;
    }
    return true;
}

bool ottl_edit_store(struct ottl_evaluation *evaluation, const struct ottl_node *path,
                     struct ottl_edit *edit)
{
    const struct ottl_path_row *row = path->path;
    if (!edit->is_changed)
        return true;
    if (path->key_count > 0 || row->is_cache)
        return ottl_write_payload(evaluation, path, encode(evaluation, edit));
    if (!edit->is_charged && !charge(evaluation, edit))
        return false;
    return row->is_indices ? ottl_write_indices(evaluation, row, edit)
                           : store_attributes(evaluation, row, edit);
}
