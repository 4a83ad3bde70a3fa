#include "core/ottl/ottl_map_edit.h"

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/ottl/ottl_draft.h"
#include "core/ottl/ottl_path.h"
#include "core/ottl/ottl_profile_tables.h"
#include "core/ottl/ottl_writing.h"

#include <assert.h>
#include <stdlib.h>

void ottl_edit_deinit(struct ottl_edit *edit)
{
    free(edit->entries);
    free(edit->changes);
    free(edit->by_key.slots);
    *edit = (struct ottl_edit){0};
}

void ottl_edit_trim(struct ottl_edit *edit)
{
    enum { KEPT_ENTRIES = 1000 };
    assert(edit->change_count == 0);
    if (edit->capacity > KEPT_ENTRIES || edit->change_capacity > KEPT_ENTRIES)
        ottl_edit_deinit(edit);
}

void ottl_edit_begin(struct ottl_edit *edit)
{
    edit->count = edit->left = edit->change_count = 0;
    edit->is_charged = edit->is_indexed = false;
}

/* ---- entries ---- */

static void push(struct ottl_edit *edit, struct ottl_edit_entry entry)
{
    if (edit->count == edit->capacity) {
        edit->capacity = edit->capacity > 0 ? 2 * edit->capacity : 32;
        edit->entries = memory_realloc(edit->entries, edit->capacity * sizeof *edit->entries);
    }
    assert(edit->count < edit->capacity);
    edit->entries[edit->count++] = entry;
    edit->left++;
}

static void note_change(struct ottl_edit *edit, uint32_t at, bool is_new)
{
    if (edit->change_count == edit->change_capacity) {
        edit->change_capacity = edit->change_capacity > 0 ? 2 * edit->change_capacity : 32;
        edit->changes =
            memory_realloc(edit->changes, edit->change_capacity * sizeof *edit->changes);
    }
    assert(edit->change_count < edit->change_capacity && at < edit->count);
    edit->changes[edit->change_count++] =
        (struct ottl_edit_change){at, is_new, edit->entries[at]};
}

void ottl_edit_remove(struct ottl_edit *edit, uint32_t at)
{
    assert(at < edit->count && edit->entries[at].state != OTTL_ENTRY_REMOVED);
    note_change(edit, at, false);
    edit->entries[at].state = OTTL_ENTRY_REMOVED;
    edit->left--;
    edit->is_indexed = false;
}

static struct ottl_edit_entry *change_entry(struct ottl_edit *edit, uint32_t at)
{
    struct ottl_edit_entry *entry = &edit->entries[at];
    assert(at < edit->count && entry->state != OTTL_ENTRY_REMOVED);
    note_change(edit, at, false);
    if (entry->state == OTTL_ENTRY_KEPT)
        entry->state = OTTL_ENTRY_SET;
    return entry;
}

void ottl_edit_set_value(struct ottl_edit *edit, uint32_t at, struct slice value)
{
    if (!slice_equal(edit->entries[at].value, value))
        change_entry(edit, at)->value = value;
}

void ottl_edit_set_key(struct ottl_edit *edit, uint32_t at, struct slice key)
{
    change_entry(edit, at)->key = key;
    edit->is_indexed = false;
}

void ottl_edit_clear(struct ottl_edit *edit)
{
    for (uint32_t i = 0; ottl_edit_next(edit, &i); i++)
        ottl_edit_remove(edit, i);
}

void ottl_edit_undo(struct ottl_edit *edit)
{
    while (edit->change_count > 0) {
        const struct ottl_edit_change *change = &edit->changes[--edit->change_count];
        struct ottl_edit_entry *entry = &edit->entries[change->at];
        edit->left += change->is_new ? 0 : entry->state == OTTL_ENTRY_REMOVED;
        *entry = change->before;
        if (change->is_new) {
            assert(change->at == edit->count - 1);
            edit->count--;
            edit->left--;
        }
    }
    edit->is_charged = edit->is_indexed = false;
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
    for (*at_out = 0; ottl_edit_next(edit, at_out); ++*at_out)
        if (slice_equal(edit->entries[*at_out].key, key))
            return true;
    return false;
}

void ottl_edit_add(struct ottl_edit *edit, struct slice key, struct slice value)
{
    push(edit, (struct ottl_edit_entry){.key = key, .value = value, .state = OTTL_ENTRY_ADDED});
    note_change(edit, edit->count - 1, true);
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
        push(edit, (struct ottl_edit_entry){.key = pair.key, .value = pair.value});
    }
}

static void load_attributes(struct ottl_edit *edit, const struct ottl_value *map)
{
    struct attribute attribute = attribute_first(*map->message, map->number);
    while (edit->count <= OTTL_EDIT_MAX && attribute_next(&attribute)) {
        const struct wire_field *field = &attribute.field.wire;
        push(edit, (struct ottl_edit_entry){
                       .key = attribute.pair.key,
                       .value = attribute.pair.value,
                       .field = slice_of(field->start, (size_t)(field->end - field->start))});
    }
}

static void load_indices(struct ottl_edit *edit, const struct ottl_value *map)
{
    struct ottl_numbers indices = ottl_attribute_indices(map->tables, map->index);
    struct slice key, value;
    while (edit->count <= OTTL_EDIT_MAX &&
           ottl_table_attribute_next(map->tables, &indices, &key, &value))
        push(edit, (struct ottl_edit_entry){.key = key, .value = value});
}

void ottl_edit_read(struct ottl_edit *edit, const struct ottl_value *map)
{
    ottl_edit_begin(edit);
    if (map->form == OTTL_FORM_ATTRIBUTES)
        load_attributes(edit, map);
    else if (map->form == OTTL_FORM_INDICES)
        load_indices(edit, map);
    else
        load_bytes(edit, map->bytes);
}

bool ottl_edit_check(struct ottl_evaluation *evaluation, const struct ottl_edit *edit)
{
    return edit->count <= OTTL_EDIT_MAX ||
           error_set(ottl_evaluation_error(evaluation),
                     "a map with more than %d entries cannot be changed", OTTL_EDIT_MAX);
}

static struct ottl_edit *load_own(struct ottl_evaluation *evaluation, const struct ottl_node *path)
{
    struct ottl_edit *edit = ottl_evaluation_edit(evaluation);
    const struct ottl_profile_tables *tables = ottl_evaluation_item(evaluation)->tables;
    struct ottl_value map;
    if (!ottl_node_evaluate(evaluation, path, &map))
        return NULL;
    if (map.kind != OTTL_MAP) {
        error_set(ottl_evaluation_error(evaluation), "expected pcommon.Map but got %s",
                  ottl_type_name(&map));
        return NULL;
    }
    ottl_edit_read(edit, &map);
    bool ok = !tables || !tables->ran_out ||
              error_set(ottl_evaluation_error(evaluation), "%s", ottl_steps_error);
    return ok ? edit : NULL;
}

struct ottl_edit *ottl_edit_load(struct ottl_evaluation *evaluation, const struct ottl_node *path)
{
    if (!ottl_take_search(evaluation, path->path))
        return NULL;
    struct ottl_edit *edit = path->key_count == 0 && ottl_draft_takes(path->path)
                                 ? ottl_draft_load(evaluation, path->path)
                                 : load_own(evaluation, path);
    if (edit)
        edit->is_charged = false;
    return edit && ottl_edit_check(evaluation, edit) ? edit : NULL;
}

/* ---- storing ---- */

static struct slice encode(struct ottl_evaluation *evaluation, const struct ottl_edit *edit)
{
    struct wire_writer *writer = ottl_evaluation_writer(evaluation);
    size_t begun = wire_writer_begin(writer, ANY_VALUE_KVLIST);
    for (uint32_t i = 0; ottl_edit_next(edit, &i); i++) {
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
    for (uint32_t i = 0; i < edit->change_count; i++) {
        const struct ottl_edit_change *change = &edit->changes[i];
        const struct ottl_edit_entry *entry = &edit->entries[change->at];
        size_t old = change->is_new ? 0 : change->before.key.size + change->before.value.size;
        if (entry->state != OTTL_ENTRY_REMOVED &&
            !ottl_take_room(evaluation, entry->key.size + entry->value.size, old))
            return false;
    }
    return true;
}

bool ottl_edit_store(struct ottl_evaluation *evaluation, const struct ottl_node *path,
                     struct ottl_edit *edit)
{
    const struct ottl_path_row *row = path->path;
    if (edit->change_count == 0)
        return true;
    if (path->key_count > 0 || row->is_cache)
        return ottl_write_payload(evaluation, path, encode(evaluation, edit));
    if (!edit->is_charged && !charge(evaluation, edit))
        return false;
    if (row->is_indices)
        return ottl_write_indices(evaluation, row, edit);
    ottl_draft_commit(evaluation);
    return true;
}
