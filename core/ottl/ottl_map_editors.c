#include "core/ottl/ottl_draft.h"
#include "core/ottl/ottl_encode.h"
#include "core/ottl/ottl_functions.h"
#include "core/ottl/ottl_map_edit.h"
#include "core/ottl/ottl_writing.h"

#include <assert.h>
#include <inttypes.h>

#define EDITOR(name)                                                                               \
    static bool name(struct ottl_evaluation *evaluation, const struct ottl_node *node,             \
                     struct ottl_value *out)

static struct slice copy(struct ottl_evaluation *evaluation, struct slice bytes)
{
    uint8_t *to = ottl_evaluation_alloc(evaluation, bytes.size + 1);
    if (bytes.size > 0)
        memcpy(to, bytes.data, bytes.size);
    return slice_of(to, bytes.size);
}

/* ---- merge_maps ---- */

enum strategy { INSERT = 1, UPDATE = 2, UPSERT = 3 };

static enum strategy strategy_of(const struct ottl_node *node)
{
    struct slice name = node->operands[2]->constant.bytes;
    return slice_is(name, "insert")   ? INSERT
           : slice_is(name, "update") ? UPDATE
           : slice_is(name, "upsert") ? UPSERT
                                      : (enum strategy)0;
}

static bool check_merge(const struct ottl_node *node, struct error *err)
{
    struct slice name = node->operands[2]->constant.bytes;
    return strategy_of(node) != 0 ||
           error_set(err,
                     "invalid value for strategy, %.*s, must be 'insert', 'update' or 'upsert'",
                     (int)text_utf8_cut(name, 100), (const char *)name.data);
}

EDITOR(merge_maps)
{
    struct attribute_list *edit;
    enum strategy strategy = strategy_of(node);
    struct ottl_value source;
    struct ottl_entry entry;
    struct slice payload;
    uint32_t at;
    (void)out;
    if (!ottl_argument(evaluation, node, 1, &source))
        return false;
    if (source.kind != OTTL_MAP)
        return error_set(ottl_evaluation_error(evaluation), "expected pcommon.Map but got %s",
                         ottl_type_name(&source));
    if (!(edit = ottl_edit_open(evaluation, node->operands[0])))
        return false;
    struct ottl_cursor cursor = ottl_cursor(&source);
    while (ottl_cursor_next(&cursor, &entry)) {
        if (!ottl_take_entry(evaluation, &entry) || !ottl_draft_check(evaluation, edit))
            return false;
        bool found = attribute_list_find(edit, entry.key, &at);
        if (!(strategy & (found ? UPDATE : INSERT)))
            continue;
        if (!ottl_encode_entry(evaluation, &entry,
                               found ? edit->entries[at].value : (struct slice){0}, &payload))
            return false;
        if (found)
            attribute_list_set_value(edit, at, payload);
        else
            attribute_list_add(edit, entry.key, payload);
    }
    return ottl_edit_store_counted(evaluation, node->operands[0], edit);
}

/* ---- truncate_all ---- */

static size_t marker_size(const struct ottl_node *node)
{
    return node->operands[3] ? node->operands[3]->constant.bytes.size : 0;
}

static bool check_truncate(const struct ottl_node *node, struct error *err)
{
    int64_t limit = node->operands[1]->constant.integer;
    if (limit < 0)
        return error_set(
            err, "invalid limit for truncate_all function, %" PRId64 " cannot be negative", limit);
    return (uint64_t)limit >= marker_size(node) ||
           error_set(err,
                     "invalid limit for truncate_all function, %" PRId64
                     " cannot be less than the size of the marker",
                     limit);
}

EDITOR(truncate_all)
{
    struct attribute_list *edit = ottl_edit_load(evaluation, node->operands[0]);
    size_t limit = (size_t)node->operands[1]->constant.integer, marker = marker_size(node);
    (void)out;
    if (!edit)
        return false;
    for (uint32_t i = 0; attribute_list_next(edit, &i); i++) {
        struct any_value any = any_value_read(edit->entries[i].value);
        if (any.kind != ANY_VALUE_STRING || any.bytes.size <= limit)
            continue;
        /* Also without utf8_safe, because a part of a character cannot be sent. */
        size_t size = text_utf8_cut(any.bytes, limit - marker);
        uint8_t *text = ottl_evaluation_alloc(evaluation, size + marker + 1);
        memcpy(text, any.bytes.data, size);
        if (marker > 0)
            memcpy(text + size, node->operands[3]->constant.bytes.data, marker);
        attribute_list_set_value(edit, i,
                                 ottl_encode_text(evaluation, slice_of(text, size + marker)));
    }
    return ottl_edit_store(evaluation, node->operands[0], edit);
}

/* ---- stringify_all ---- */

EDITOR(stringify_all)
{
    struct attribute_list *edit = ottl_edit_load(evaluation, node->operands[0]);
    struct text text = {0};
    (void)out;
    if (!edit)
        return false;
    for (uint32_t i = 0; attribute_list_next(edit, &i); i++) {
        struct ottl_value value = ottl_value_of_any(edit->entries[i].value);
        if (value.kind == OTTL_STRING)
            continue;
        text_clear(&text);
        ottl_print_data(&value, &text);
        attribute_list_set_value(
            edit, i, ottl_encode_text(evaluation, slice_of(text_string(&text), text.size)));
    }
    text_deinit(&text);
    return ottl_edit_store(evaluation, node->operands[0], edit);
}

/* ---- flatten ---- */

enum { CONFLICTS_MAX = 1000 }; /* of one key */

struct flattening {
    struct ottl_evaluation *evaluation;
    struct attribute_list *edit;
    int64_t depth_max;
    bool resolves_conflicts;
};

static bool flatten_value(struct flattening *f, struct slice key, struct slice payload,
                          int64_t depth);

static struct slice join(struct flattening *f, struct slice prefix, struct slice key)
{
    if (prefix.size == 0)
        return key;
    uint8_t *to = ottl_evaluation_alloc(f->evaluation, prefix.size + key.size + 1);
    memcpy(to, prefix.data, prefix.size);
    to[prefix.size] = '.';
    if (key.size > 0)
        memcpy(to + prefix.size + 1, key.data, key.size);
    return slice_of(to, prefix.size + key.size + 1);
}

static struct slice join_number(struct flattening *f, struct slice prefix, uint64_t number)
{
    char digits[20], *start = text_write_u64(digits + sizeof digits, number);
    return join(f, prefix,
                copy(f->evaluation, slice_of(start, (size_t)(digits + sizeof digits - start))));
}

/* The last value of a key counts, or each gets a number of its own. */
static bool add(struct flattening *f, struct slice key, struct slice payload)
{
    uint32_t at;
    struct slice free_key = key;
    bool is_taken = attribute_list_find(f->edit, key, &at);
    if (is_taken && !f->resolves_conflicts) {
        attribute_list_set_value(f->edit, at, payload);
        return true;
    }
    for (uint64_t i = 0; attribute_list_find(f->edit, free_key, &at); i++) {
        if (i == CONFLICTS_MAX)
            return error_set(ottl_evaluation_error(f->evaluation), "too many keys are the same");
        free_key = join_number(f, key, i);
    }
    if (!ottl_take_room(f->evaluation, free_key.size, 0) ||
        !ottl_draft_check(f->evaluation, f->edit))
        return false;
    attribute_list_add(f->edit, free_key, payload);
    return true;
}

static bool flatten_map(struct flattening *f, struct slice prefix, struct slice map, int64_t depth)
{
    struct wire_cursor cursor = wire_cursor(map);
    struct wire_field field;
    while (wire_next_bytes(&cursor, KEY_VALUE_LIST_VALUES, &field)) {
        struct key_value pair = key_value_read(field.bytes);
        if (!flatten_value(f, join(f, prefix, pair.key), pair.value, depth))
            return false;
    }
    return true;
}

static bool is_flattened(const struct flattening *f, struct slice payload, int64_t depth)
{
    struct any_value any = any_value_read(payload);
    return depth < f->depth_max && (any.kind == ANY_VALUE_KVLIST || any.kind == ANY_VALUE_ARRAY);
}

static bool flatten_list(struct flattening *f, struct slice prefix, struct slice list,
                         int64_t depth)
{
    struct wire_cursor cursor = wire_cursor(list);
    struct wire_field field;
    for (uint64_t i = 0; wire_next_bytes(&cursor, ARRAY_VALUE_VALUES, &field); i++) {
        /* Where conflicts are resolved, the items of a list are one. */
        bool is_item = f->resolves_conflicts && !is_flattened(f, field.bytes, depth);
        if (!(is_item ? add(f, prefix, field.bytes)
                      : flatten_value(f, join_number(f, prefix, i), field.bytes, depth)))
            return false;
    }
    return true;
}

/* The depth of the data is limited by the scan; the keys by the room of the batch. */
static bool flatten_value(struct flattening *f, struct slice key, struct slice payload,
                          int64_t depth)
{
    struct any_value any = any_value_read(payload);
    if (!is_flattened(f, payload, depth))
        return add(f, key, payload);
    return ottl_take_room(f->evaluation, key.size, 0) &&
           (any.kind == ANY_VALUE_KVLIST ? flatten_map(f, key, any.bytes, depth + 1)
                                         : flatten_list(f, key, any.bytes, depth + 1));
}

static bool is_flat(const struct attribute_list *edit)
{
    for (uint32_t i = 0; attribute_list_next(edit, &i); i++) {
        struct any_value any = any_value_read(edit->entries[i].value);
        if (any.kind == ANY_VALUE_KVLIST || any.kind == ANY_VALUE_ARRAY)
            return false;
    }
    return true;
}

static bool check_flatten(const struct ottl_node *node, struct error *err)
{
    return !node->operands[2] || node->operands[2]->constant.integer > 0 ||
           error_set(err,
                     "invalid depth '%" PRId64 "' for flatten function, must be greater than 0",
                     node->operands[2]->constant.integer);
}

/* What stays as it was is the same entry of a dictionary, with its unit. */
static bool flatten_entry(struct flattening *f, struct slice prefix,
                          const struct attribute_entry *old)
{
    uint32_t at = f->edit->count;
    if (!flatten_value(f, join(f, prefix, old->key), old->value, 0))
        return false;
    bool is_one = f->edit->count == at + 1;
    struct attribute_entry *entry = is_one ? &f->edit->entries[at] : NULL;
    if (entry && slice_equal(entry->key, old->key) && slice_equal(entry->value, old->value))
        entry->number = old->number;
    return true;
}

/* Removes the old entries, and adds what they become. */
EDITOR(flatten)
{
    struct attribute_list *edit;
    struct slice prefix = {0};
    (void)out;
    if ((node->operands[1] && !ottl_argument_string(evaluation, node, 1, &prefix)) ||
        !(edit = ottl_edit_load(evaluation, node->operands[0])))
        return false;
    if (!ottl_check_key(prefix, ottl_evaluation_error(evaluation)))
        return false;
    if (prefix.size == 0 && is_flat(edit))
        return true;
    struct attribute_entry *old = ottl_evaluation_alloc(evaluation, (edit->left + 1) * sizeof *old);
    uint32_t count = 0;
    for (uint32_t i = 0; attribute_list_next(edit, &i); i++)
        old[count++] = edit->entries[i];
    attribute_list_remove_all(edit);
    struct flattening f = {evaluation, edit, INT64_MAX, false};
    if (node->operands[2])
        f.depth_max = node->operands[2]->constant.integer;
    if (node->operands[3])
        f.resolves_conflicts = node->operands[3]->constant.truth;
    for (uint32_t i = 0; i < count; i++)
        if (!flatten_entry(&f, prefix, &old[i]))
            return false;
    return ottl_edit_store(evaluation, node->operands[0], edit);
}

#define MAP                                                                                        \
    {                                                                                              \
        "target", OTTL_PARAMETER_PATH, false                                                       \
    }

const struct ottl_function ottl_map_editors[] = {
    {.name = "flatten",
     .parameters = {MAP,
                    {"prefix", OTTL_PARAMETER_STRING, true},
                    {"depth", OTTL_PARAMETER_LITERAL_INT, true},
                    {"resolve_conflicts", OTTL_PARAMETER_LITERAL_BOOL, true}},
     .call = flatten,
     .check = check_flatten},
    {.name = "merge_maps",
     .parameters = {MAP,
                    {"source", OTTL_PARAMETER_MAP, false},
                    {"strategy", OTTL_PARAMETER_LITERAL_STRING, false}},
     .call = merge_maps,
     .check = check_merge},
    {.name = "stringify_all", .parameters = {MAP}, .call = stringify_all},
    {.name = "truncate_all",
     .parameters = {MAP,
                    {"limit", OTTL_PARAMETER_LITERAL_INT, false},
                    {"utf8_safe", OTTL_PARAMETER_LITERAL_BOOL, true},
                    {"truncation_marker", OTTL_PARAMETER_LITERAL_STRING, true}},
     .call = truncate_all,
     .check = check_truncate},
    {.name = NULL},
};
