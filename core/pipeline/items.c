#include "core/pipeline/items.h"

#include <assert.h>

static const uint32_t span_path[] = {TRACES_RESOURCE_SPANS, RESOURCE_SPANS_SCOPE_SPANS,
                                     SCOPE_SPANS_SPANS};
static const uint32_t sample_path[] = {PROFILES_RESOURCE_PROFILES, RESOURCE_PROFILES_SCOPE_PROFILES,
                                       SCOPE_PROFILES_PROFILES, PROFILE_SAMPLES};

enum {
    SPAN_LEVELS = sizeof span_path / sizeof *span_path,
    SAMPLE_LEVELS = sizeof sample_path / sizeof *sample_path
};

static bool is_traces(const struct items *items)
{
    return items->batch->signal == SIGNAL_TRACES;
}

/* ---- iteration ---- */

struct items items_of(struct batch *batch)
{
    struct items items = {.batch = batch};
    assert(batch->signal == SIGNAL_TRACES || batch->signal == SIGNAL_PROFILES);
    items.levels = is_traces(&items) ? SPAN_LEVELS : SAMPLE_LEVELS;
    items.level = items.levels;
    if (!is_traces(&items))
        items.sample_attributes = sample_attributes_init(batch_dictionary(batch), &batch->arena);
    return items;
}

static bool next_part(struct items *items)
{
    struct batch *batch = items->batch;
    if (items->part == batch->part_count)
        return false;
    items->level = 0;
    items->iters[0] = message_iter(&batch->parts[items->part++].root, &batch->arena);
    return true;
}

/* Enters the message found on the level above. */
static void go_down(struct items *items)
{
    const struct message_field *above = &items->fields[items->level++];
    items->iters[items->level] = message_iter_into(above, &items->batch->arena);
}

static bool next_at_level(struct items *items)
{
    const uint32_t *path = is_traces(items) ? span_path : sample_path;
    unsigned level = items->level;
    return message_next_bytes(&items->iters[level], path[level], &items->fields[level]);
}

bool items_next(struct items *items)
{
    items->is_removed = false;
    if (items->level == items->levels && !next_part(items))
        return false;
    for (;;) {
        if (next_at_level(items)) {
            if (items->level == items->levels - 1)
                return true;
            go_down(items);
        } else if (items->level > 0) {
            items->level--;
        } else if (!next_part(items)) {
            items->level = items->levels;
            return false;
        }
    }
}

/* ---- reading and changing an item ---- */

static unsigned item_level(const struct items *items)
{
    assert(items->level == items->levels - 1 && !items->is_removed);
    return items->level;
}

struct message_iter item_read(const struct items *items)
{
    return message_iter_into(&items->fields[item_level(items)], &items->batch->arena);
}

static void open_way(struct items *items)
{
    for (unsigned level = 1; level <= item_level(items); level++)
        message_iter_open(&items->iters[level], &items->iters[level - 1],
                          &items->fields[level - 1]);
}

struct message *item_open(struct items *items)
{
    open_way(items);
    return message_open(&items->iters[items->level], &items->fields[items->level]);
}

void item_remove(struct items *items)
{
    open_way(items);
    message_remove(&items->iters[items->level], &items->fields[items->level]);
    items->is_removed = true;
    assert(items->batch->items > 0);
    items->batch->items--;
}

/* ---- attributes ---- */

bool item_get_attribute(struct items *items, struct slice key, struct slice *value_out)
{
    struct attribute attribute;
    if (!is_traces(items))
        return sample_attributes_get(&items->sample_attributes, item_read(items), key, value_out);
    if (!attributes_find(item_read(items), SPAN_ATTRIBUTES, key, &attribute))
        return false;
    *value_out = attribute.pair.value;
    return true;
}

static bool set_of_span(struct items *items, struct slice key, struct slice value)
{
    struct arena *arena = &items->batch->arena;
    struct attribute attribute;
    bool exists = attributes_find(item_read(items), SPAN_ATTRIBUTES, key, &attribute);
    if (exists && slice_equal(attribute.pair.value, value))
        return false;
    struct message *span = item_open(items);
    if (!exists) {
        attributes_append(span, arena, SPAN_ATTRIBUTES, key, value);
        return true;
    }
    exists = attributes_find(message_iter(span, arena), SPAN_ATTRIBUTES, key, &attribute);
    assert(exists);
    attribute_set_value(&attribute, value);
    return true;
}

static bool write_if(struct items *items, bool sample_changes)
{
    if (sample_changes)
        sample_attributes_write(&items->sample_attributes, item_open(items));
    return sample_changes;
}

bool item_set_attribute(struct items *items, struct slice key, struct slice value)
{
    if (is_traces(items))
        return set_of_span(items, key, value);
    return write_if(items,
                    sample_attributes_set(&items->sample_attributes, item_read(items), key, value));
}

static bool remove_of_span(struct items *items, struct slice key)
{
    struct attribute attribute;
    if (!attributes_find(item_read(items), SPAN_ATTRIBUTES, key, &attribute))
        return false;
    attribute =
        attribute_first(message_iter(item_open(items), &items->batch->arena), SPAN_ATTRIBUTES);
    while (attribute_next(&attribute))
        if (slice_equal(attribute.pair.key, key))
            attribute_remove(&attribute);
    return true;
}

bool item_remove_attribute(struct items *items, struct slice key)
{
    if (is_traces(items))
        return remove_of_span(items, key);
    return write_if(items,
                    sample_attributes_remove(&items->sample_attributes, item_read(items), key));
}

/* ---- all attributes ---- */

struct item_attribute item_attribute_first(struct items *items)
{
    struct item_attribute attribute = {.items = items};
    if (is_traces(items))
        attribute.of_span = attribute_first(item_read(items), SPAN_ATTRIBUTES);
    else
        attribute.of_sample.sample = item_read(items);
    return attribute;
}

bool item_attribute_next(struct item_attribute *attribute)
{
    struct items *items = attribute->items;
    if (!is_traces(items))
        return sample_attributes_next(&items->sample_attributes, &attribute->of_sample,
                                      &attribute->entry, &attribute->key, &attribute->value);
    if (!attribute_next(&attribute->of_span))
        return false;
    attribute->key = attribute->of_span.pair.key;
    attribute->value = attribute->of_span.pair.value;
    return true;
}

uint32_t item_edit_attributes(struct items *items, const struct attribute_rule *rule)
{
    struct attribute_change first;
    if (!is_traces(items)) {
        uint32_t changed =
            sample_attributes_edit(&items->sample_attributes, item_read(items), rule);
        write_if(items, changed > 0);
        return changed;
    }
    if (!attributes_find_change(item_read(items), SPAN_ATTRIBUTES, rule, &first))
        return 0;
    struct message_iter span = message_iter(item_open(items), &items->batch->arena);
    return attributes_change_from(span, SPAN_ATTRIBUTES, rule, &first);
}

/* ---- limits ---- */

size_t items_values_room(const struct batch *batch)
{
    enum { GROWTH_MAX = 4, SPARE_BYTES = 1 << 20 };
    size_t room = SPARE_BYTES;
    for (size_t i = 0; i < batch->part_count; i++)
        room += GROWTH_MAX * batch->parts[i].root.raw.size;
    return room;
}
