#include "processors/resource_detection/resource_edit.h"

#include "core/data/attributes.h"

#include <assert.h>

void resource_edit_begin(struct resource_edit *edit, struct arena *arena)
{
    assert(edit->detected && (edit->detected->fields.data || edit->detected->count == 0));
    edit->arena = arena;
    edit->whole = (struct slice){0};
}

/* ---- reading: what the resource has ---- */

/* Finds the detected attribute that this one of the resource has the key of. Returns false if there
 * is none, or if the resource has repeated the key: then the first one counts. */
static bool find_first(struct resource_edit *edit, struct slice key, uint32_t *number_out)
{
    return detected_find(edit->detected, key, number_out) && edit->seen[*number_out] != edit->round;
}

static void note_seen(struct resource_edit *edit, uint32_t number)
{
    assert(number < edit->detected->count);
    edit->seen[number] = edit->round;
    edit->seen_count++;
}

static void new_round(struct resource_edit *edit)
{
    edit->seen_count = 0;
    if (++edit->round > 0)
        return;
    memset(edit->seen, 0, sizeof edit->seen); /* after 2^32 resources */
    edit->round = 1;
}

static void read_resource(struct resource_edit *edit, struct message_iter resource)
{
    struct attribute attribute = attribute_first(resource, RESOURCE_ATTRIBUTES);
    uint32_t number;
    edit->has_resource = true;
    while (attribute_next(&attribute))
        if (find_first(edit, attribute.pair.key, &number)) {
            note_seen(edit, number);
            if (!slice_equal(attribute.pair.value, edit->detected->items[number].value))
                edit->replaces = edit->override;
        }
}

/* Reads a ResourceSpans, or its like of another signal. Returns whether something has to change. */
static bool read_group(struct resource_edit *edit, struct message_iter group)
{
    struct message_field field;
    new_round(edit);
    edit->replaces = edit->has_resource = edit->has_schema = false;
    while (message_next(&group, &field)) {
        if (field.wire.type != WIRE_BYTES)
            continue;
        if (field.wire.number == GROUP_RESOURCE && !edit->has_resource)
            read_resource(edit, message_iter_into(&field, edit->arena));
        else if (field.wire.number == GROUP_SCHEMA_URL)
            edit->has_schema = field.wire.bytes.size > 0;
    }
    return edit->replaces || edit->seen_count < edit->detected->count ||
           (edit->detected->has_schema && !edit->has_schema);
}

/* ---- changing ---- */

/* Returns the field of a Resource that has only the detected attributes. Made once for a batch. */
static struct slice whole_resource(struct resource_edit *edit)
{
    struct slice fields = edit->detected->fields;
    if (edit->whole.data)
        return edit->whole;
    assert(fields.size > 0);
    uint8_t *field = arena_alloc(edit->arena, wire_size_bytes(GROUP_RESOURCE, fields.size));
    uint8_t *payload = wire_write_header(field, GROUP_RESOURCE, fields.size);
    memcpy(payload, fields.data, fields.size);
    edit->whole = slice_of(field, (size_t)(payload - field) + fields.size);
    return edit->whole;
}

/* Returns a part of detected->fields as it is in the batch's copy. */
static struct slice copied(struct resource_edit *edit, struct slice part)
{
    struct slice fields = edit->detected->fields, whole = whole_resource(edit);
    assert(part.data >= fields.data && part.data + part.size <= fields.data + fields.size);
    const uint8_t *start = whole.data + (whole.size - fields.size);
    return slice_of(start + (part.data - fields.data), part.size);
}

static void replace_attributes(struct resource_edit *edit, struct message *resource)
{
    const struct detected *detected = edit->detected;
    struct attribute attribute =
        attribute_first(message_iter(resource, edit->arena), RESOURCE_ATTRIBUTES);
    uint32_t number;
    new_round(edit);
    while (attribute_next(&attribute))
        if (find_first(edit, attribute.pair.key, &number)) {
            note_seen(edit, number);
            if (!slice_equal(attribute.pair.value, detected->items[number].value))
                message_replace(&attribute.it, &attribute.field,
                                copied(edit, detected->items[number].pair));
        }
}

/* Appends the attributes that the resource lacks. Neighbours are appended together. */
static void append_attributes(struct resource_edit *edit, struct message *resource)
{
    const struct detected *detected = edit->detected;
    uint32_t at = 0;
    while (at < detected->count) {
        uint32_t end = at;
        size_t size = 0;
        for (; end < detected->count && edit->seen[end] != edit->round; end++)
            size += detected->items[end].field.size;
        if (size > 0)
            message_append(resource, edit->arena,
                           copied(edit, slice_of(detected->items[at].field.data, size)));
        at = end + 1;
    }
}

static void change_resource(struct resource_edit *edit, struct message *group)
{
    struct message_iter it = message_iter(group, edit->arena);
    struct message_field field;
    bool found = message_next_bytes(&it, GROUP_RESOURCE, &field);
    assert(found == edit->has_resource);
    if (!found) {
        message_append(group, edit->arena, whole_resource(edit));
        return;
    }
    struct message *resource = message_open(&it, &field);
    if (edit->replaces)
        replace_attributes(edit, resource);
    append_attributes(edit, resource);
}

static void change_group(struct resource_edit *edit, struct message *group)
{
    static const uint8_t schema[] = "\x1a\x27" DETECTED_SCHEMA_URL;
    _Static_assert(sizeof schema - 1 == 2 + 0x27, "the length of the URL is written by hand");
    assert(schema[0] == (GROUP_SCHEMA_URL << 3 | WIRE_BYTES));
    if (edit->replaces || edit->seen_count < edit->detected->count)
        change_resource(edit, group);
    if (edit->detected->has_schema && !edit->has_schema)
        message_append(group, edit->arena, slice_of(schema, sizeof schema - 1));
}

void resource_edit_apply(struct resource_edit *edit, struct message *root)
{
    struct message_iter it = message_iter(root, edit->arena);
    struct message_field field;
    while (message_next_bytes(&it, REQUEST_GROUPS, &field))
        if (read_group(edit, message_iter_into(&field, edit->arena)))
            change_group(edit, message_open(&it, &field));
}
