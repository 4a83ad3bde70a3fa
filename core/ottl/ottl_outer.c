#include "core/ottl/ottl_outer.h"

#include "core/base/arena.h"
#include "core/data/message_fields.h"
#include "core/ottl/ottl_profile_tables.h"
#include "core/ottl/ottl_writing.h"

#include <assert.h>

/* ---- the messages ---- */

#define NUMBER(number) (UINT32_C(1) << (number))

/* Attributes and what contains items are not among the numbers, other fields that paths name are.
 */
struct kind {
    size_t message; /* offset in struct ottl_item */
    unsigned depth;
    unsigned outer; /* index of its struct ottl_outer */
    uint32_t numbers;
    uint32_t repeated; /* those of which all fields count, not the last one */
};

enum { ITEM_DEPTH = 2, ITEM_OUTER = 4 }; /* of a span or profile */

static const struct kind kinds[] = {
    {offsetof(struct ottl_item, group), 0, 0, NUMBER(GROUP_SCHEMA_URL), 0},
    {offsetof(struct ottl_item, resource), 0, 1, NUMBER(RESOURCE_DROPPED_ATTRIBUTES_COUNT), 0},
    {offsetof(struct ottl_item, scope_group), 1, 2, NUMBER(SCOPE_SPANS_SCHEMA_URL), 0},
    {offsetof(struct ottl_item, scope), 1, 3,
     NUMBER(SCOPE_NAME) | NUMBER(SCOPE_VERSION) | NUMBER(SCOPE_DROPPED_ATTRIBUTES_COUNT), 0},
    {offsetof(struct ottl_item, span), ITEM_DEPTH, ITEM_OUTER,
     NUMBER(SPAN_TRACE_ID) | NUMBER(SPAN_SPAN_ID) | NUMBER(SPAN_TRACE_STATE) |
         NUMBER(SPAN_PARENT_SPAN_ID) | NUMBER(SPAN_NAME) | NUMBER(SPAN_KIND) |
         NUMBER(SPAN_START_TIME_UNIX_NANO) | NUMBER(SPAN_END_TIME_UNIX_NANO) |
         NUMBER(SPAN_DROPPED_ATTRIBUTES_COUNT) | NUMBER(SPAN_DROPPED_EVENTS_COUNT) |
         NUMBER(SPAN_LINKS) | NUMBER(SPAN_DROPPED_LINKS_COUNT) | NUMBER(SPAN_STATUS) |
         NUMBER(SPAN_FLAGS),
     NUMBER(SPAN_LINKS)},
    {offsetof(struct ottl_item, profile), ITEM_DEPTH, ITEM_OUTER,
     NUMBER(PROFILE_SAMPLE_TYPE) | NUMBER(PROFILE_TIME_UNIX_NANO) | NUMBER(PROFILE_DURATION_NANO) |
         NUMBER(PROFILE_PERIOD_TYPE) | NUMBER(PROFILE_PERIOD) | NUMBER(PROFILE_PROFILE_ID) |
         NUMBER(PROFILE_DROPPED_ATTRIBUTES_COUNT) | NUMBER(PROFILE_ORIGINAL_PAYLOAD_FORMAT) |
         NUMBER(PROFILE_ORIGINAL_PAYLOAD) | NUMBER(PROFILE_ATTRIBUTE_INDICES),
     NUMBER(PROFILE_ATTRIBUTE_INDICES)},
};
enum { KIND_COUNT = sizeof kinds / sizeof *kinds };

/* Returns the kind of the message that a row reads. */
static const struct kind *kind_of(const struct ottl_path_row *row)
{
    for (size_t i = 0; i < KIND_COUNT; i++)
        if (kinds[i].message == row->message)
            return &kinds[i];
    return NULL;
}

/* Returns the number of the field in which the row's value is. */
static uint32_t number_of(const struct ottl_path_row *row)
{
    return row->within > 0 ? row->within : row->number;
}

static struct message_iter *place_of(struct ottl_item *item, const struct kind *kind)
{
    return (struct message_iter *)(void *)((char *)item + kind->message);
}

static struct arena *arena_of(const struct ottl_item *item)
{
    return item->way->iters[0].arena;
}

/* ---- opening ---- */

static void set_field(struct ottl_outer_field *field, struct slice bytes, struct arena *arena)
{
    message_init(&field->message, bytes);
    field->iter = message_iter_bytes(field->message.raw);
    field->iter.arena = arena;
}

static struct slice bytes_of(const struct message_field *field, struct arena *arena)
{
    if (!field->node)
        return slice_of(field->wire.start, (size_t)(field->wire.end - field->wire.start));
    size_t size = message_field_size(field);
    uint8_t *bytes = arena_alloc(arena, size);
    message_field_write(field, bytes);
    return slice_of(bytes, size);
}

/* Copies all fields of a number. */
static struct slice collect(struct message_iter message, uint32_t number, struct arena *arena)
{
    size_t size = message_fields_size(message, number);
    uint8_t *bytes = arena_alloc(arena, size + 1);
    message_fields_write(message, number, bytes);
    return slice_of(bytes, size);
}

static void read_fields(struct ottl_outer *outer, const struct kind *kind,
                        struct message_iter message, struct arena *arena)
{
    struct message_iter at = message;
    struct message_field field, last[OTTL_OUTER_FIELDS];
    uint32_t found = 0;
    while (message_next(&at, &field)) {
        uint32_t number = field.wire.number;
        if (number >= OTTL_OUTER_FIELDS || !(kind->numbers & NUMBER(number)))
            continue;
        last[number] = field;
        found |= NUMBER(number);
    }
    for (uint32_t i = 0; kind->numbers >> i > 0; i++) {
        struct slice bytes = {0};
        if (!(kind->numbers & NUMBER(i)))
            continue;
        if (found & kind->repeated & NUMBER(i))
            bytes = collect(message, i, arena);
        else if (found & NUMBER(i))
            bytes = bytes_of(&last[i], arena);
        outer->fields[i].buffers[0] = outer->fields[i].buffers[1] = NULL;
        outer->fields[i].next = 0;
        set_field(&outer->fields[i], bytes, arena);
    }
}

void ottl_outer_open(struct ottl_item *item, const struct ottl_path_row *row)
{
    const struct kind *kind = kind_of(row);
    struct ottl_outer *outer = kind ? &item->outers->items[kind->outer] : NULL;
    if (!kind || outer->is_open)
        return;
    if (kind->message == offsetof(struct ottl_item, scope))
        ottl_item_find_scope(item);
    read_fields(outer, kind, *place_of(item, kind), arena_of(item));
    outer->is_open = true;
    outer->changed = 0;
    item->kept |= OTTL_KEPT(kind->depth);
}

bool ottl_outer_is_open(const struct ottl_item *item, const struct ottl_path_row *row)
{
    const struct kind *kind = item->kept ? kind_of(row) : NULL;
    return kind && item->outers->items[kind->outer].is_open;
}

struct message_iter *ottl_outer_message(const struct ottl_item *item,
                                        const struct ottl_path_row *row)
{
    const struct kind *kind = kind_of(row);
    uint32_t number = number_of(row);
    if (!kind || row->is_map || number >= OTTL_OUTER_FIELDS || !(kind->numbers & NUMBER(number)) ||
        !item->outers->items[kind->outer].is_open)
        return NULL;
    return &item->outers->items[kind->outer].fields[number].iter;
}

/* ---- changing ---- */

struct message_iter *ottl_outer_change(struct ottl_item *item, const struct ottl_path_row *row)
{
    struct ottl_outers *outers = item->outers;
    const struct kind *kind = kind_of(row);
    uint32_t number = number_of(row);
    ottl_outer_open(item, row);
    assert(kind && kind->numbers & NUMBER(number));
    struct ottl_outer *outer = &outers->items[kind->outer];
    struct ottl_outer_field *field = &outer->fields[number];
    assert(!outers->written || outers->written == field); /* a statement writes to one path */
    outers->written = field;
    outer->changed |= NUMBER(number);
    field->iter = message_iter(&field->message, &outers->changes);
    return &field->iter;
}

/* What other items have read of the field is in the buffer that comes next, or older. */
static struct slice write_to_buffer(struct ottl_outer_field *field, struct arena *arena)
{
    size_t size = message_measure(&field->message);
    unsigned at = field->next;
    if (size > field->capacities[at] || !field->buffers[at]) {
        field->capacities[at] = 2 * size + 16;
        field->buffers[at] = arena_alloc(arena, field->capacities[at]);
    }
    uint8_t *end = message_write(&field->message, field->buffers[at]);
    assert(end == field->buffers[at] + size);
    field->next = 1 - at;
    return slice_of(field->buffers[at], (size_t)(end - field->buffers[at]));
}

void ottl_outer_settle(struct ottl_item *item)
{
    struct ottl_outers *outers = item->outers;
    struct ottl_outer_field *field = outers->written;
    if (!field)
        return;
    struct slice bytes =
        field->message.changed ? write_to_buffer(field, arena_of(item)) : field->message.raw;
    set_field(field, bytes, arena_of(item));
    if (item->tables && field == &outers->items[ITEM_OUTER].fields[PROFILE_ATTRIBUTE_INDICES])
        ottl_tables_set_indices(item->tables, bytes);
    outers->written = NULL;
    if (outers->changes.blocks)
        arena_deinit(&outers->changes);
}

/* ---- closing ---- */

static void remove_changed(struct message_iter message, uint32_t changed)
{
    struct message_field field;
    while (message_next(&message, &field))
        if (field.wire.number < OTTL_OUTER_FIELDS && changed & NUMBER(field.wire.number))
            message_remove(&message, &field);
}

static void append_changed(const struct ottl_outer *outer, struct message_iter message)
{
    size_t size = 0;
    for (uint32_t i = 0; i < OTTL_OUTER_FIELDS; i++)
        size += outer->changed & NUMBER(i) ? outer->fields[i].message.raw.size : 0;
    if (size == 0)
        return;
    uint8_t *bytes = arena_alloc(message.arena, size), *to = bytes;
    for (uint32_t i = 0; i < OTTL_OUTER_FIELDS; i++) {
        struct slice raw = outer->fields[i].message.raw;
        if (!(outer->changed & NUMBER(i)) || raw.size == 0)
            continue;
        memcpy(to, raw.data, raw.size);
        to += raw.size;
    }
    message_append(message.message, message.arena, slice_of(bytes, size));
}

void ottl_outer_close(struct ottl_item *item, unsigned depth)
{
    for (size_t i = 0; i < KIND_COUNT; i++) {
        struct ottl_outer *outer = &item->outers->items[kinds[i].outer];
        struct message_iter *place = place_of(item, &kinds[i]);
        bool is_profile = kinds[i].message == offsetof(struct ottl_item, profile);
        if (kinds[i].depth != depth || !outer->is_open ||
            (depth == ITEM_DEPTH && is_profile != (item->tables != NULL)))
            continue;
        outer->is_open = false;
        if (outer->changed == 0)
            continue;
        ottl_item_open(item, kinds[i].message, depth);
        remove_changed(*place, outer->changed);
        append_changed(outer, *place);
        *place = message_iter(place->message, place->arena);
    }
}
