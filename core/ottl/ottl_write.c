#include "core/ottl/ottl_writing.h"

#include "core/data/scan.h"
#include "core/data/utf8.h"
#include "core/ottl/ottl_draft.h"
#include "core/ottl/ottl_encode.h"
#include "core/ottl/ottl_entries.h"
#include "core/ottl/ottl_map_edit.h"
#include "core/ottl/ottl_path.h"
#include "core/ottl/ottl_trace_state.h"

#include <assert.h>
#include <inttypes.h>

/* Bytes of a value that every item may gain. */
enum { FREE_BYTES = 64 };

/* ---- limits ---- */

/* A value that is replaced for each item leaves as many old ones behind, in the batch's memory. */
bool ottl_take_room(struct ottl_evaluation *evaluation, size_t bytes, size_t old)
{
    struct ottl_item *item = ottl_evaluation_target(evaluation);
    size_t *free_bytes = ottl_evaluation_free_bytes(evaluation);
    size_t counted_before = ottl_evaluation_writes_around(evaluation) ? 0 : old;
    size_t more = bytes > counted_before ? bytes - counted_before : 0;
    size_t counted = more > *free_bytes ? more - *free_bytes : 0;
    *free_bytes -= more - counted;
    if (counted > item->room) {
        item->room = 0;
        return ottl_refuse_growth(ottl_evaluation_error(evaluation));
    }
    item->room -= counted;
    return true;
}

/* Statements may put a value into itself for each item. What no receiver could read is not
 * written. */
static bool check_depth(struct ottl_evaluation *evaluation, struct slice payload)
{
    enum { AROUND = 7 }; /* request, resource, scope, span, event, attribute, value */
    return any_value_is_within(payload, SCAN_DEPTH_MAX - AROUND) ||
           ottl_refuse_depth(ottl_evaluation_error(evaluation));
}

bool ottl_take_steps(struct ottl_evaluation *evaluation, size_t steps)
{
    struct ottl_item *item = ottl_evaluation_target(evaluation);
    bool ok = steps <= item->steps;
    item->steps -= ok ? steps : item->steps;
    return ok || error_set(ottl_evaluation_error(evaluation),
                           "too many items of the request read or change the same large data");
}

bool ottl_take_entry(struct ottl_evaluation *evaluation, const struct ottl_entry *entry)
{
    enum { LEAST = 24 };
    return ottl_take_steps(evaluation, LEAST + entry->key.size);
}

bool ottl_take_around(struct ottl_evaluation *evaluation, size_t bytes)
{
    enum { LEAST = 16 };
    return !ottl_evaluation_writes_around(evaluation) || ottl_take_steps(evaluation, LEAST + bytes);
}

/* ---- fields ---- */

/* Finds the last field of a number, which is the one that counts. */
static bool find_last(struct message_iter message, uint32_t number, struct message_iter *at_out,
                      struct message_field *out)
{
    struct message_field field;
    bool found = false;
    while (message_next_bytes(&message, number, &field)) {
        *at_out = message;
        *out = field;
        found = true;
    }
    return found;
}

static void remove_fields(struct message_iter message, uint32_t number)
{
    struct message_field field;
    while (message_next(&message, &field))
        if (field.wire.number == number)
            message_remove(&message, &field);
}

static bool is_repeated(struct message_iter message, uint32_t number)
{
    struct message_field field;
    return message_next_bytes(&message, number, &field) &&
           message_next_bytes(&message, number, &field);
}

void ottl_put_bytes(struct message_iter message, uint32_t number, struct slice bytes)
{
    struct message_iter at = message;
    struct message_field field;
    bool found = find_last(message, number, &at, &field);
    if (found && field.wire.bytes.data != wire_stale && slice_equal(field.wire.bytes, bytes))
        return;
    if (found && !is_repeated(message, number)) {
        message_replace(&at, &field, arena_copy(message.arena, bytes));
        return;
    }
    remove_fields(message, number); /* earlier ones do not count, but would be sent */
    if (bytes.size == 0)
        return;
    uint8_t *to = arena_alloc(message.arena, wire_size_bytes(number, bytes.size));
    uint8_t *end = wire_write_bytes(to, number, bytes);
    message_append(message.message, message.arena, slice_of(to, (size_t)(end - to)));
}

static uint8_t *write_number(uint8_t *to, uint32_t number, enum wire_type type, uint64_t value)
{
    to = wire_write_tag(to, number, type);
    if (type == WIRE_VARINT)
        return wire_write_varint(to, value);
    for (unsigned i = 0; i < (type == WIRE_FIXED64 ? 8u : 4u); i++)
        *to++ = (uint8_t)(value >> (8 * i));
    return to;
}

/* Whether the only field of a number, or none for 0, says the value already. */
static bool has_number(struct message_iter message, uint32_t number, enum wire_type type,
                       uint64_t value)
{
    struct message_field field;
    unsigned others = 0, same = 0;
    assert(type != WIRE_BYTES);
    while (message_next(&message, &field))
        if (field.wire.number == number) {
            bool is_same = field.wire.type == type && field.wire.value == value;
            same += is_same;
            others += !is_same;
        }
    return others == 0 && same == (value != 0);
}

void ottl_put_number(struct message_iter message, uint32_t number, enum wire_type type,
                     uint64_t value)
{
    if (has_number(message, number, type, value))
        return;
    remove_fields(message, number);
    if (value == 0)
        return;
    uint8_t *to = arena_alloc(message.arena, WIRE_HEADER_MAX);
    uint8_t *end = write_number(to, number, type, value);
    message_append(message.message, message.arena, slice_of(to, (size_t)(end - to)));
}

/* ---- opening ---- */

struct message_iter ottl_open_inner(struct message_iter message, uint32_t number)
{
    struct message_iter at = message;
    struct message_field field;
    if (!find_last(message, number, &at, &field)) {
        uint8_t *to = arena_alloc(message.arena, WIRE_HEADER_MAX);
        uint8_t *end = wire_write_header(to, number, 0);
        message_append(message.message, message.arena, slice_of(to, (size_t)(end - to)));
        bool is_there = find_last(message, number, &at, &field);
        assert(is_there);
    }
    return message_iter(message_open(&at, &field), message.arena);
}

static struct message_iter open_level(struct ottl_way *way, unsigned level)
{
    for (unsigned i = 1; i <= level; i++)
        message_iter_open(&way->iters[i], &way->iters[i - 1], &way->fields[i - 1]);
    return message_iter(message_open(&way->iters[level], &way->fields[level]),
                        way->iters[level].arena);
}

/* Opens a message that there is once beside many items. If it is open, it is not searched again. */
static struct message_iter open_beside(struct message_iter outer, uint32_t number,
                                       const struct message_iter *known)
{
    return known->message ? message_iter(known->message, outer.arena)
                          : ottl_open_inner(outer, number);
}

static struct message_iter open_message(struct ottl_item *item, size_t message,
                                        enum ottl_context context)
{
    struct message_iter outer = open_level(item->way, ottl_context_depth(context));
    if (message == offsetof(struct ottl_item, resource))
        return open_beside(outer, GROUP_RESOURCE, &item->resource);
    if (message != offsetof(struct ottl_item, scope))
        return outer;
    ottl_item_find_scope(item);
    return open_beside(outer, SCOPE_SPANS_SCOPE, &item->scope);
}

void ottl_forget(struct ottl_item *item, enum ottl_context context)
{
    for (unsigned i = ottl_context_depth(context); i < OTTL_DEPTH_COUNT; i++)
        item->serials[i]++;
}

struct message_iter *ottl_item_open(struct ottl_item *item, size_t message,
                                    enum ottl_context context)
{
    struct message_iter *place = (struct message_iter *)(void *)((char *)item + message);
    *place = open_message(item, message, context);
    if (place == &item->profile)
        item->tables->has_indices = false;
    ottl_forget(item, context);
    item->is_changed = true;
    return place;
}

struct message_iter *ottl_open(struct ottl_evaluation *evaluation, const struct ottl_path_row *row)
{
    struct ottl_item *item = ottl_evaluation_target(evaluation);
    if (!ottl_evaluation_writes_around(evaluation))
        return ottl_item_open(item, row->message, row->context);
    if (row->is_indices_list)
        ottl_draft_write_indices(item);
    ottl_forget(item, row->context);
    return ottl_outer_change(item, row);
}

/* Copies what is in the writer, which is used again. */
static struct slice keep(struct ottl_evaluation *evaluation, struct slice bytes)
{
    uint8_t *copy = ottl_evaluation_alloc(evaluation, bytes.size + 1);
    if (bytes.size > 0)
        memcpy(copy, bytes.data, bytes.size);
    return slice_of(copy, bytes.size);
}

/* ---- inside an attribute ---- */

static bool wrong_key(struct ottl_evaluation *evaluation, const struct ottl_value *key,
                      const char *wanted)
{
    return error_set(ottl_evaluation_error(evaluation),
                     "could not resolve key for map/slice, expecting '%s' but got '%s'", wanted,
                     ottl_type_name(key));
}

static bool out_of_bounds(struct ottl_evaluation *evaluation, int64_t index)
{
    return error_set(ottl_evaluation_error(evaluation), "index %" PRId64 " out of bounds", index);
}

/* Writes the value at the keys of a path from `depth` on into what was there before. */
struct put {
    struct ottl_evaluation *evaluation;
    const struct ottl_node *path;
    struct slice value;
    struct wire_writer *out;
};
static bool put_value(const struct put *put, uint32_t depth, struct slice old);

static bool put_pair(const struct put *put, uint32_t depth, struct slice key, struct slice old)
{
    if (!ottl_check_key(key, ottl_evaluation_error(put->evaluation)))
        return false;
    size_t pair = wire_writer_begin(put->out, KEY_VALUE_LIST_VALUES);
    wire_writer_bytes(put->out, KEY_VALUE_KEY, key);
    size_t value = wire_writer_begin(put->out, KEY_VALUE_VALUE);
    if (!put_value(put, depth, old))
        return false;
    wire_writer_end(put->out, value);
    wire_writer_end(put->out, pair);
    return true;
}

static bool put_in_map(const struct put *put, uint32_t depth, struct slice list, struct slice key)
{
    struct wire_cursor cursor = wire_cursor(list);
    struct wire_field field;
    bool found = false;
    size_t begun = wire_writer_begin(put->out, ANY_VALUE_KVLIST);
    while (wire_next_bytes(&cursor, KEY_VALUE_LIST_VALUES, &field)) {
        struct key_value pair = key_value_read(field.bytes);
        bool is_it = !found && slice_equal(pair.key, key);
        if (!is_it)
            wire_writer_bytes(put->out, KEY_VALUE_LIST_VALUES, field.bytes);
        else if (!put_pair(put, depth + 1, key, pair.value))
            return false;
        found |= is_it;
    }
    if (!found && !put_pair(put, depth + 1, key, (struct slice){0}))
        return false;
    wire_writer_end(put->out, begun);
    return true;
}

static bool put_item(const struct put *put, uint32_t depth, struct slice old)
{
    size_t item = wire_writer_begin(put->out, ARRAY_VALUE_VALUES);
    if (!put_value(put, depth, old))
        return false;
    wire_writer_end(put->out, item);
    return true;
}

static bool put_in_list(const struct put *put, uint32_t depth, struct slice list, int64_t index)
{
    struct wire_cursor cursor = wire_cursor(list);
    struct wire_field field;
    bool found = false;
    size_t begun = wire_writer_begin(put->out, ANY_VALUE_ARRAY);
    for (int64_t i = 0; wire_next_bytes(&cursor, ARRAY_VALUE_VALUES, &field); i++) {
        found |= i == index;
        if (i != index)
            wire_writer_bytes(put->out, ARRAY_VALUE_VALUES, field.bytes);
        else if (!put_item(put, depth + 1, field.bytes))
            return false;
    }
    wire_writer_end(put->out, begun);
    return found || out_of_bounds(put->evaluation, index);
}

/* A new list has empty items before the index. */
static bool put_new_list(const struct put *put, uint32_t depth, int64_t index)
{
    size_t begun = wire_writer_begin(put->out, ANY_VALUE_ARRAY);
    if (index > 0 &&
        ((uint64_t)index > SIZE_MAX / 2 || !ottl_take_room(put->evaluation, (size_t)index * 2, 0)))
        return ottl_refuse_growth(ottl_evaluation_error(put->evaluation));
    for (int64_t i = 0; i < index; i++)
        wire_writer_bytes(put->out, ARRAY_VALUE_VALUES, (struct slice){0});
    if (!put_item(put, depth + 1, (struct slice){0}))
        return false;
    wire_writer_end(put->out, begun);
    return true;
}

static bool put_at_key(const struct put *put, uint32_t depth, const struct any_value *old,
                       const struct ottl_value *key)
{
    switch (old->kind) {
    case ANY_VALUE_KVLIST:
        return key->kind == OTTL_STRING ? put_in_map(put, depth, old->bytes, key->bytes)
                                        : wrong_key(put->evaluation, key, "string");
    case ANY_VALUE_ARRAY:
        return key->kind == OTTL_INT ? put_in_list(put, depth, old->bytes, key->integer)
                                     : wrong_key(put->evaluation, key, "int64");
    default:
        return key->kind == OTTL_STRING
                   ? put_in_map(put, depth, (struct slice){0}, key->bytes)
                   : (key->kind == OTTL_INT ? put_new_list(put, depth, key->integer)
                                            : wrong_key(put->evaluation, key, "string"));
    }
}

static bool put_value(const struct put *put, uint32_t depth, struct slice old)
{
    struct any_value any = any_value_read(old);
    struct ottl_value key, was = ottl_value_of_any(old);
    if (depth == put->path->key_count) {
        wire_writer_raw(put->out, put->value);
        return true;
    }
    if (any.kind != ANY_VALUE_EMPTY && any.kind != ANY_VALUE_KVLIST && any.kind != ANY_VALUE_ARRAY)
        return error_set(ottl_evaluation_error(put->evaluation),
                         "type %s does not support string indexing", ottl_data_type_name(&was));
    return ottl_node_evaluate(put->evaluation, put->path->keys[depth], &key) &&
           put_at_key(put, depth, &any, &key);
}

/* Sets *payload to the whole attribute, or cache, with the value at the keys from `depth` on. */
static bool put_inside(struct ottl_evaluation *evaluation, const struct ottl_node *path,
                       uint32_t depth, struct slice old, struct slice *payload)
{
    struct put put = {evaluation, path, *payload, ottl_evaluation_writer(evaluation)};
    if (!put_value(&put, depth, old))
        return false;
    *payload = wire_writer_slice(put.out);
    return true;
}

/* ---- attributes and the cache ---- */

static bool read_key(struct ottl_evaluation *evaluation, const struct ottl_node *path,
                     struct slice *out)
{
    struct ottl_value key;
    if (!ottl_node_evaluate(evaluation, path->keys[0], &key))
        return false;
    *out = key.bytes;
    return key.kind == OTTL_STRING || wrong_key(evaluation, &key, "string");
}

/* Counts what the cache gains. It is emptied for each item, but what the items of a request put
 * into it together is limited, too, because each reads it again and again. */
static bool take_cache(struct ottl_evaluation *evaluation, size_t bytes, size_t old)
{
    enum { FEW_BYTES = 256 };
    struct ottl_item *item = ottl_evaluation_target(evaluation);
    size_t more = bytes > old ? bytes - old : 0;
    size_t counted = more > FEW_BYTES ? more - FEW_BYTES : 0;
    if (bytes > FREE_BYTES + item->room)
        return ottl_refuse_growth(ottl_evaluation_error(evaluation));
    if (counted > item->cache_room)
        return error_set(ottl_evaluation_error(evaluation),
                         "the items of the request put too much into cache");
    item->cache_room -= counted;
    return true;
}

/* Several versions of a large cache are not kept. */
static void replace_cache(struct ottl_cache *cache, struct slice payload)
{
    enum { KEPT_BYTES = 4096 };
    struct arena old = cache->arena;
    if (old.reserved_bytes <= KEPT_BYTES) {
        cache->map = arena_copy(&cache->arena, payload);
        return;
    }
    arena_init(&cache->arena, NULL);
    cache->map = arena_copy(&cache->arena, payload);
    arena_deinit(&old);
}

static bool write_cache(struct ottl_evaluation *evaluation, const struct ottl_node *path,
                        struct slice payload)
{
    struct ottl_item *item = ottl_evaluation_target(evaluation);
    assert(item->cache);
    if ((path->key_count > 0 && !put_inside(evaluation, path, 0, item->cache->map, &payload)) ||
        !check_depth(evaluation, payload) ||
        !take_cache(evaluation, payload.size, item->cache->map.size))
        return false;
    replace_cache(item->cache, payload);
    ottl_forget(item, path->path->context);
    return true;
}

/* Puts the payload at the keys behind the first one into what the attribute was before. */
static bool put_in_attribute(struct ottl_evaluation *evaluation, const struct ottl_node *path,
                             const struct ottl_node *all, struct slice key, struct slice *payload)
{
    struct attribute_list *edit = ottl_edit_open(evaluation, all);
    struct slice old = {0};
    uint32_t at;
    if (!edit)
        return false;
    if (attribute_list_find(edit, key, &at))
        old = edit->entries[at].value;
    return ottl_take_around(evaluation, old.size) &&
           put_inside(evaluation, path, 1, old, payload) && check_depth(evaluation, *payload);
}

/* Counts what the attribute gains before it is there. */
static bool set_attribute(struct ottl_evaluation *evaluation, struct attribute_list *edit,
                          struct slice key, struct slice payload)
{
    uint32_t at;
    bool found = attribute_list_find(edit, key, &at);
    const struct attribute_entry *entry = found ? &edit->entries[at] : NULL;
    if (found && slice_equal(entry->value, payload))
        return true;
    if (!ottl_check_key(key, ottl_evaluation_error(evaluation)) ||
        !ottl_take_room(evaluation, key.size + payload.size,
                        found ? entry->key.size + entry->value.size : 0))
        return false;
    if (found)
        attribute_list_set_value(edit, at, payload);
    else
        attribute_list_add(edit, key, payload);
    return true;
}

static bool write_attribute(struct ottl_evaluation *evaluation, const struct ottl_node *path,
                            struct slice key, struct slice payload)
{
    struct ottl_node all = {.code = OTTL_PATH, .slot = OTTL_NO_SLOT, .path = path->path};
    if (path->key_count > 1 && !put_in_attribute(evaluation, path, &all, key, &payload))
        return false;
    if (path->path->is_indices)
        payload = keep(evaluation, payload); /* storing uses the writer, too */
    /* The keys may have read the whole map, so it is loaded again. */
    struct attribute_list *edit = ottl_edit_open(evaluation, &all);
    return edit && set_attribute(evaluation, edit, key, payload) &&
           ottl_edit_store_counted(evaluation, &all, edit);
}

bool ottl_write_payload(struct ottl_evaluation *evaluation, const struct ottl_node *path,
                        struct slice payload)
{
    struct slice key;
    assert(path->path->is_map);
    if (path->path->is_cache)
        return write_cache(evaluation, path, payload);
    assert(path->key_count > 0);
    if (!read_key(evaluation, path, &key))
        return false;
    return write_attribute(evaluation, path, key, payload);
}

/* ---- values ---- */

static bool encode(struct ottl_evaluation *evaluation, const struct ottl_value *value,
                   struct slice *out)
{
    struct wire_writer *writer = ottl_evaluation_writer(evaluation);
    if (!ottl_encode(value, FREE_BYTES + ottl_evaluation_target(evaluation)->room, writer,
                     ottl_evaluation_error(evaluation)))
        return false;
    *out = wire_writer_slice(writer);
    return (value->kind != OTTL_MAP && value->kind != OTTL_LIST) || check_depth(evaluation, *out);
}

bool ottl_encode_value(struct ottl_evaluation *evaluation, const struct ottl_value *value,
                       struct slice *out)
{
    if (!encode(evaluation, value, out))
        return false;
    *out = keep(evaluation, *out);
    return true;
}

struct slice ottl_valid_text(struct ottl_evaluation *evaluation, struct slice text)
{
    struct text valid = {0};
    if (utf8_is_valid(text))
        return text;
    utf8_append_repaired(text, &valid);
    return ottl_evaluation_text(evaluation, &valid);
}

struct slice ottl_encode_text(struct ottl_evaluation *evaluation, struct slice text)
{
    text = ottl_valid_text(evaluation, text);
    uint8_t *to = ottl_evaluation_alloc(evaluation, WIRE_HEADER_MAX + text.size);
    return slice_of(to, (size_t)(wire_write_bytes(to, ANY_VALUE_STRING, text) - to));
}

bool ottl_encode_entry(struct ottl_evaluation *evaluation, const struct ottl_entry *entry,
                       struct slice old, struct slice *payload_out)
{
    if (!ottl_check_key(entry->key, ottl_evaluation_error(evaluation)) ||
        !encode(evaluation, &entry->value, payload_out))
        return false;
    if (old.data && slice_equal(old, *payload_out)) {
        *payload_out = old;
        return true;
    }
    if (!ottl_take_room(evaluation, entry->key.size + payload_out->size, old.size))
        return false;
    *payload_out = keep(evaluation, *payload_out);
    return true;
}

/* Replaces all entries. What cannot be written at all is found before anything is removed. */
static bool write_map(struct ottl_evaluation *evaluation, const struct ottl_node *path,
                      const struct ottl_value *map)
{
    struct ottl_cursor cursor = ottl_cursor(map);
    struct ottl_entry entry;
    struct slice payload;
    struct attribute_list *edit = ottl_edit_load(evaluation, path);
    if (!edit)
        return false;
    attribute_list_remove_all(edit);
    while (ottl_cursor_next(&cursor, &entry)) {
        if (!ottl_take_entry(evaluation, &entry) || !ottl_draft_check(evaluation, edit) ||
            !ottl_encode_entry(evaluation, &entry, (struct slice){0}, &payload))
            return false;
        attribute_list_add(edit, entry.key, payload);
    }
    return ottl_edit_store_counted(evaluation, path, edit);
}

/* As the Collector, which leaves an attribute without a value behind. */
static void leave_empty(struct ottl_evaluation *evaluation, const struct ottl_node *path)
{
    struct error why = *ottl_evaluation_error(evaluation);
    struct ottl_value old;
    if (ottl_node_evaluate(evaluation, path, &old) && old.kind == OTTL_NIL)
        ottl_write_payload(evaluation, path, (struct slice){0});
    *ottl_evaluation_error(evaluation) = why;
}

static bool write_in_map(struct ottl_evaluation *evaluation, const struct ottl_node *path,
                         const struct ottl_value *value)
{
    static const struct ottl_value empty = {.kind = OTTL_MAP, .form = OTTL_FORM_BYTES};
    struct slice payload;
    if (path->key_count == 0 && value->kind != OTTL_MAP && value->kind != OTTL_NIL)
        return error_set(ottl_evaluation_error(evaluation),
                         "failed to convert type %s into pcommon.Map", ottl_type_name(value));
    if (path->key_count == 0)
        return write_map(evaluation, path, value->kind == OTTL_NIL ? &empty : value);
    bool ok = path->key_count > 1 || path->path->is_cache || path->path->is_indices
                  ? ottl_encode_value(evaluation, value, &payload)
                  : encode(evaluation, value, &payload);
    if (!ok && !ottl_is_data(value))
        leave_empty(evaluation, path);
    return ok && ottl_write_payload(evaluation, path, payload);
}

static bool write_trace_state(struct ottl_evaluation *evaluation, const struct ottl_node *path,
                              const struct ottl_value *value)
{
    struct ottl_value old, changed;
    struct slice key;
    struct text text = {0};
    if (!read_key(evaluation, path, &key) || !ottl_path_read(evaluation, path->path, &old))
        return false;
    if (value->kind != OTTL_STRING)
        return error_set(ottl_evaluation_error(evaluation), "expects string but got %s",
                         ottl_type_name(value));
    if (ottl_trace_state_set(old.bytes, key, value->bytes, &text)) {
        changed = ottl_string(ottl_evaluation_text(evaluation, &text));
        return path->path->write(evaluation, path->path, &changed);
    }
    text_deinit(&text);
    return true;
}

/* Replaces one item of a list of numbers. */
static bool write_item(struct ottl_evaluation *evaluation, const struct ottl_node *path,
                       const struct ottl_value *value)
{
    struct ottl_value index, list;
    uint32_t count;
    assert(path->key_count == 1);
    if (!ottl_node_evaluate(evaluation, path->keys[0], &index) ||
        !ottl_path_read(evaluation, path->path, &list))
        return false;
    if (index.kind != OTTL_INT)
        return wrong_key(evaluation, &index, "int64");
    struct ottl_entry *items = ottl_entries_copy(evaluation, &list, &count);
    if (index.integer < 0 || index.integer >= count)
        return out_of_bounds(evaluation, index.integer);
    items[index.integer].value = *value;
    list = ottl_entries_value(OTTL_LIST, items, count);
    return path->path->write(evaluation, path->path, &list);
}

/* Each item may set a field of a message around it. */
static bool open_field(struct ottl_evaluation *evaluation, const struct ottl_path_row *row)
{
    ottl_outer_open(ottl_evaluation_target(evaluation), row);
    const struct message_iter *field = ottl_message_of(evaluation, row);
    return ottl_take_around(evaluation, (size_t)(field->cursor.end - field->cursor.next));
}

bool ottl_write_value(struct ottl_evaluation *evaluation, const struct ottl_node *path,
                      const struct ottl_value *value)
{
    const struct ottl_path_row *row = path->path;
    if (row->is_map)
        return write_in_map(evaluation, path, value);
    if (value->kind == OTTL_NIL)
        return error_set(ottl_evaluation_error(evaluation),
                         "setting a value to nil is not supported");
    assert(row->write);
    if (ottl_evaluation_writes_around(evaluation) && !open_field(evaluation, row))
        return false;
    if (row->indexing == OTTL_TRACE_STATE_INDEXED && path->key_count > 0)
        return write_trace_state(evaluation, path, value);
    if (path->key_count > 0)
        return write_item(evaluation, path, value);
    return row->write(evaluation, row, value);
}
