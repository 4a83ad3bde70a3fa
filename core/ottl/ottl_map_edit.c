#include "core/ottl/ottl_map_edit.h"

#include "core/ottl/ottl_draft.h"
#include "core/ottl/ottl_profile_tables.h"
#include "core/ottl/ottl_writing.h"

/* ---- loading ---- */

static void read_bytes(struct attribute_list *list, struct slice map)
{
    struct wire_cursor cursor = wire_cursor(map);
    struct wire_field field;
    while (list->count <= OTTL_EDIT_MAX &&
           wire_next_bytes(&cursor, KEY_VALUE_LIST_VALUES, &field)) {
        struct key_value pair = key_value_read(field.bytes);
        attribute_list_push(list, pair.key, pair.value, 0);
    }
}

static void read_indices(struct attribute_list *list, const struct ottl_value *map)
{
    struct ottl_numbers indices = ottl_attribute_indices(map->tables, map->index);
    struct slice key, value;
    while (list->count <= OTTL_EDIT_MAX && !map->tables->ran_out &&
           ottl_table_attribute_next(map->tables, &indices, &key, &value))
        attribute_list_push(list, key, value, (uint32_t)indices.last);
}

/* Reads a map that is no draft into the evaluator's list. */
static bool read_map(struct ottl_evaluation *evaluation, const struct ottl_node *path)
{
    struct attribute_list *list = ottl_evaluation_list(evaluation);
    const struct ottl_profile_tables *tables = ottl_evaluation_item(evaluation)->tables;
    struct ottl_value map;
    attribute_list_clear(list);
    if (!ottl_node_evaluate(evaluation, path, &map))
        return false;
    if (map.kind != OTTL_MAP)
        return error_set(ottl_evaluation_error(evaluation), "expected pcommon.Map but got %s",
                         ottl_type_name(&map));
    if (map.form == OTTL_FORM_INDICES)
        read_indices(list, &map);
    else
        read_bytes(list, map.bytes);
    return !tables || !tables->ran_out ||
           error_set(ottl_evaluation_error(evaluation), "%s", ottl_steps_error);
}

struct attribute_list *ottl_edit_open(struct ottl_evaluation *evaluation,
                                      const struct ottl_node *path)
{
    struct attribute_list *list = NULL;
    if (!ottl_take_around(evaluation, 0))
        return NULL;
    if (ottl_evaluation_writes_around(evaluation))
        ottl_outer_open(ottl_evaluation_target(evaluation), path->path);
    if (path->key_count == 0 && ottl_draft_takes(evaluation, path->path))
        return ottl_draft_load(evaluation, path->path);
    if (read_map(evaluation, path))
        list = ottl_evaluation_list(evaluation);
    return list && ottl_draft_check(evaluation, list) ? list : NULL;
}

struct attribute_list *ottl_edit_load(struct ottl_evaluation *evaluation,
                                      const struct ottl_node *path)
{
    enum { STEPS_OF_ENTRY = 24 };
    struct attribute_list *list = ottl_edit_open(evaluation, path);
    return list && ottl_take_around(evaluation, (size_t)STEPS_OF_ENTRY * list->count) ? list : NULL;
}

/* ---- storing ---- */

static struct slice encode(struct ottl_evaluation *evaluation, const struct attribute_list *list)
{
    struct wire_writer *writer = ottl_evaluation_writer(evaluation);
    size_t begun = wire_writer_begin(writer, ANY_VALUE_KVLIST);
    for (uint32_t i = 0; attribute_list_next(list, &i); i++) {
        size_t pair = wire_writer_begin(writer, KEY_VALUE_LIST_VALUES);
        wire_writer_bytes(writer, KEY_VALUE_KEY, list->entries[i].key);
        wire_writer_bytes(writer, KEY_VALUE_VALUE, list->entries[i].value);
        wire_writer_end(writer, pair);
    }
    wire_writer_end(writer, begun);
    uint8_t *copy = ottl_evaluation_alloc(evaluation, writer->size);
    memcpy(copy, writer->data, writer->size);
    return slice_of(copy, writer->size);
}

static bool count_new(struct ottl_evaluation *evaluation, const struct attribute_list *list)
{
    for (uint32_t i = 0; i < list->change_count; i++) {
        const struct attribute_list_change *change = &list->changes[i];
        const struct attribute_entry *entry = &list->entries[change->at];
        size_t old = change->is_new ? 0 : change->before.key.size + change->before.value.size;
        if (entry->state != ATTRIBUTE_IS_REMOVED &&
            !ottl_take_room(evaluation, entry->key.size + entry->value.size, old))
            return false;
    }
    return true;
}

static bool is_inside(const struct ottl_node *path)
{
    return path->key_count > 0 || path->path->is_cache;
}

bool ottl_edit_store_counted(struct ottl_evaluation *evaluation, const struct ottl_node *path,
                             struct attribute_list *list)
{
    if (list->change_count == 0)
        return true;
    if (is_inside(path)) /* counted where it is put in */
        return ottl_write_payload(evaluation, path, encode(evaluation, list));
    if (!ottl_draft_takes(evaluation, path->path))
        return ottl_write_indices(evaluation, path->path, list);
    ottl_draft_commit(evaluation, path->path);
    return true;
}

bool ottl_edit_store(struct ottl_evaluation *evaluation, const struct ottl_node *path,
                     struct attribute_list *list)
{
    return (is_inside(path) || count_new(evaluation, list)) &&
           ottl_edit_store_counted(evaluation, path, list);
}
