#include "connectors/count/count_request.h"

#include "connectors/count/count_metrics.h"
#include "connectors/count/count_shapes.h"
#include "connectors/count/count_table.h"
#include "core/data/attributes.h"
#include "core/pipeline/batch.h"
#include "core/pipeline/items.h"

#include <assert.h>

/* What comes after so many resources of a request is counted together, without attributes of a
 * resource: each takes some hundred bytes in the result, and two in the request. */
enum { RESOURCES_MAX = 100000 };

/* What is known of an entry of the attribute_table. */
struct entry {
    bool is_read;
    uint32_t key; /* its position among the keys that are read, or their number */
    uint32_t value;
};

struct reading {
    struct batch *batch;
    struct count_conditions *conditions;
    struct count_table table;
    struct time_range times[COUNTED_KINDS];
    struct value_sources sources;
    uint32_t *resource; /* the members of sources, to fill them */
    uint32_t *scope;
    uint32_t *items[SHAPE_LEVELS]; /* an item is read while one that contains it is */
    struct entry *entries;         /* of the attribute_table; NULL until the first is read */
    struct wire_writer *out;
    uint32_t resource_count;
    uint32_t points;
};

static bool reads_attributes(const struct reading *reading)
{
    return reading->table.keys->count > 0;
}

static uint32_t *make_values(struct reading *reading)
{
    return arena_array(&reading->table.arena, reading->table.keys->count, sizeof(uint32_t));
}

static void clear_values(const struct reading *reading, uint32_t *values)
{
    for (uint32_t i = 0; i < reading->table.keys->count; i++)
        values[i] = NO_VALUE;
}

/* ---- attributes ---- */

/* Of several attributes with one key, the first counts. */
static void read_attribute(struct reading *reading, struct slice payload, uint32_t *values)
{
    struct key_value pair = key_value_read(payload);
    uint32_t key = count_table_key(&reading->table, pair.key);
    if (key < reading->table.keys->count && values[key] == NO_VALUE)
        values[key] = count_table_value(&reading->table, pair.value);
}

static void read_attributes(struct reading *reading, const struct message_field *field,
                            uint32_t number, uint32_t *values)
{
    struct message_iter it = message_iter_into(field, &reading->batch->arena);
    struct message_field attribute;
    while (message_next_bytes(&it, number, &attribute))
        read_attribute(reading, attribute.wire.bytes, values);
}

static const struct entry *read_entry(struct reading *reading, uint32_t index)
{
    struct dictionary *dictionary = batch_dictionary(reading->batch);
    struct count_table *table = &reading->table;
    uint32_t count = dictionary_count(dictionary, DICTIONARY_ATTRIBUTE_TABLE);
    assert(index < count);
    if (!reading->entries)
        reading->entries = arena_array(&table->arena, count, sizeof *reading->entries);
    struct entry *entry = &reading->entries[index];
    if (!entry->is_read) {
        struct key_value_and_unit pair = dictionary_attribute(dictionary, index);
        entry->is_read = true;
        entry->key = count_table_key(table, dictionary_string(dictionary, pair.key));
        if (entry->key < table->keys->count)
            entry->value = count_table_value(table, pair.value);
    }
    return entry;
}

static void read_index(struct reading *reading, uint64_t index, uint32_t *values)
{
    if (index == 0) /* the zero value of the table */
        return;
    const struct entry *entry = read_entry(reading, (uint32_t)index);
    if (entry->key < reading->table.keys->count && values[entry->key] == NO_VALUE)
        values[entry->key] = entry->value;
}

static void read_indices(struct reading *reading, const struct wire_field *field, uint32_t *values)
{
    if (field->type != WIRE_BYTES) {
        read_index(reading, field->value, values);
        return;
    }
    struct wire_cursor packed = wire_cursor(field->bytes);
    for (uint64_t index; wire_packed_varint(&packed, &index);)
        read_index(reading, index, values);
}

/* ---- items ---- */

static void widen(struct time_range *range, uint64_t time)
{
    if (time == 0)
        return;
    if (range->first == 0 || time < range->first)
        range->first = time;
    if (time > range->last)
        range->last = time;
}

/* What an item contains has its time, if it has none of its own. */
static void note_time(struct reading *reading, const struct shape *shape, uint64_t time)
{
    widen(&reading->times[shape->kind], time);
    for (size_t i = 0; shape->children[i]; i++)
        if (shape->children[i]->has_parents_time)
            widen(&reading->times[shape->children[i]->kind], time);
}

static bool is_wanted(const struct reading *reading, const struct shape *shape)
{
    return shape->children[0] || count_table_has(&reading->table, shape->kind);
}

static void read_item(struct reading *reading, const struct shape *shape,
                      const struct message_field *field, unsigned level);

static void read_child(struct reading *reading, const struct shape *shape,
                       const struct message_field *field, unsigned level)
{
    for (size_t i = 0; shape->children[i]; i++)
        if (shape->children[i]->number == field->wire.number &&
            is_wanted(reading, shape->children[i]))
            read_item(reading, shape->children[i], field, level + 1);
}

static void read_field(struct reading *reading, const struct shape *shape,
                       const struct message_field *field, unsigned level)
{
    const struct wire_field *wire = &field->wire;
    if (wire->number == shape->attributes && shape->has_indices && reads_attributes(reading))
        read_indices(reading, wire, reading->items[level]);
    else if (wire->type == WIRE_FIXED64 &&
             (wire->number == shape->times[0] || wire->number == shape->times[1]))
        note_time(reading, shape, wire->value);
    else if (wire->type != WIRE_BYTES)
        return;
    else if (wire->number == shape->attributes && reads_attributes(reading))
        read_attribute(reading, wire->bytes, reading->items[level]);
    else
        read_child(reading, shape, field, level);
}

/* Tells the conditions which item comes, before the items in it. */
static void enter_item(const struct reading *reading, const struct shape *shape,
                       struct message_iter item)
{
    if (!count_conditions_exist(reading->conditions))
        return;
    if (shape->kind == COUNTED_SPANS)
        ottl_item_set_span(&reading->conditions->item, item);
    else if (shape->kind == COUNTED_SPAN_EVENTS)
        ottl_item_set_span_event(&reading->conditions->item, item);
}

/* Recursion is as deep as the shapes. */
static void read_item(struct reading *reading, const struct shape *shape,
                      const struct message_field *field, unsigned level)
{
    struct message_iter it = message_iter_into(field, &reading->batch->arena);
    struct message_field inner;
    assert(level < SHAPE_LEVELS);
    clear_values(reading, reading->items[level]);
    enter_item(reading, shape, it);
    while (message_next(&it, &inner))
        read_field(reading, shape, &inner, level);
    if (!count_table_has(&reading->table, shape->kind))
        return;
    reading->sources.item = reading->items[level];
    count_table_add(&reading->table, shape->kind, &reading->sources);
}

/* ---- scopes and resources ---- */

static void read_scope_attributes(struct reading *reading, const struct message_field *scopes)
{
    struct message_iter it = message_iter_into(scopes, &reading->batch->arena);
    struct message_field scope;
    clear_values(reading, reading->scope);
    if (reads_attributes(reading) && message_next_bytes(&it, SCOPE_SPANS_SCOPE, &scope))
        read_attributes(reading, &scope, SCOPE_ATTRIBUTES, reading->scope);
}

static void read_scope(struct reading *reading, const struct message_field *scopes)
{
    const struct shape *shape = shape_of_signal(reading->batch->signal);
    struct message_iter it = message_iter_into(scopes, &reading->batch->arena);
    struct message_field item;
    read_scope_attributes(reading, scopes);
    if (count_conditions_exist(reading->conditions))
        ottl_item_set_scope_group(&reading->conditions->item, it);
    while (!reading->conditions->errors.failed && message_next_bytes(&it, SCOPE_ITEMS, &item))
        read_item(reading, shape, &item, 0);
}

/* Writes the counts of the current resource, and begins the next one. */
static void end_resource(struct reading *reading, const struct message_field *resource)
{
    struct message_iter attributes = resource ? message_iter_into(resource, &reading->batch->arena)
                                              : message_iter_bytes((struct slice){0});
    reading->points +=
        count_metrics_write(&reading->table, reading->times, attributes, reading->out);
    count_table_next_resource(&reading->table);
    memset(reading->times, 0, sizeof reading->times);
}

static void read_group(struct reading *reading, const struct message_field *group)
{
    struct message_iter it = message_iter_into(group, &reading->batch->arena);
    struct message_field resource, scopes;
    bool has_resource = message_next_bytes(&it, GROUP_RESOURCE, &resource);
    clear_values(reading, reading->resource);
    if (has_resource && reads_attributes(reading))
        read_attributes(reading, &resource, RESOURCE_ATTRIBUTES, reading->resource);
    it = message_iter_into(group, &reading->batch->arena);
    if (count_conditions_exist(reading->conditions))
        ottl_item_set_group(&reading->conditions->item, it);
    while (message_next_bytes(&it, GROUP_SCOPES, &scopes))
        read_scope(reading, &scopes);
    if (++reading->resource_count <= RESOURCES_MAX)
        end_resource(reading, has_resource ? &resource : NULL);
}

static void begin_reading(struct reading *reading)
{
    struct batch *batch = reading->batch;
    count_conditions_begin(reading->conditions);
    count_table_begin(&reading->table, reading->conditions, batch->signal, items_values_room(batch),
                      batch->arena.budget);
    reading->resource = make_values(reading);
    reading->scope = make_values(reading);
    for (int level = 0; level < SHAPE_LEVELS; level++)
        reading->items[level] = make_values(reading);
    reading->sources =
        (struct value_sources){.scope = reading->scope, .resource = reading->resource};
}

uint32_t count_request(struct count_conditions *conditions, struct batch *batch,
                       struct wire_writer *out)
{
    struct reading reading = {.batch = batch, .conditions = conditions, .out = out};
    begin_reading(&reading);
    for (size_t i = 0; i < batch->part_count; i++) {
        struct message_iter it = message_iter(&batch->parts[i].root, &batch->arena);
        struct message_field group;
        while (!conditions->errors.failed && message_next_bytes(&it, REQUEST_GROUPS, &group))
            read_group(&reading, &group);
    }
    end_resource(&reading, NULL);
    count_table_end(&reading.table);
    return reading.points;
}
