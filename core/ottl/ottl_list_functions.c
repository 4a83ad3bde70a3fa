#include "core/ottl/ottl_functions.h"

#include <assert.h>
#include <stdlib.h>

#define FUNCTION(name)                                                                             \
    static bool name(struct ottl_evaluation *evaluation, const struct ottl_node *node,             \
                     struct ottl_value *out)

static bool read_kind(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                      enum ottl_kind kind, struct ottl_value *out)
{
    struct ottl_value wanted = {.kind = kind};
    return ottl_argument(evaluation, node, 0, out) &&
           (out->kind == kind ||
            error_set(ottl_evaluation_error(evaluation), "expected %s but got %s",
                      ottl_type_name(&wanted), ottl_type_name(out)));
}

/* Copies the entries of a map or list to scratch memory. */
static struct ottl_entry *copy_entries(struct ottl_evaluation *evaluation,
                                       const struct ottl_value *from, uint32_t *count_out)
{
    struct ottl_cursor cursor = ottl_cursor(from);
    struct ottl_entry *entries =
        ottl_evaluation_alloc(evaluation, ((size_t)ottl_value_count(from) + 1) * sizeof *entries);
    *count_out = 0;
    while (ottl_cursor_next(&cursor, &entries[*count_out]))
        ++*count_out;
    return entries;
}

static bool give_list(const struct ottl_entry *entries, uint32_t count, struct ottl_value *out)
{
    *out = (struct ottl_value){.kind = OTTL_LIST, .form = OTTL_FORM_ENTRIES};
    out->entries = entries;
    out->count = count;
    return true;
}

FUNCTION(keys)
{
    struct ottl_value map;
    uint32_t count;
    if (!read_kind(evaluation, node, OTTL_MAP, &map))
        return false;
    struct ottl_entry *entries = copy_entries(evaluation, &map, &count);
    for (uint32_t i = 0; i < count; i++)
        entries[i].value = ottl_string(entries[i].key);
    return give_list(entries, count, out);
}

FUNCTION(values)
{
    struct ottl_value map;
    uint32_t count;
    if (!read_kind(evaluation, node, OTTL_MAP, &map))
        return false;
    struct ottl_entry *entries = copy_entries(evaluation, &map, &count);
    return give_list(entries, count, out);
}

/* Returns the index of an item that is equal, -1 if there is none. */
static int64_t find_item(const struct ottl_value *list, const struct ottl_value *wanted)
{
    struct ottl_cursor cursor = ottl_cursor(list);
    struct ottl_entry entry;
    for (int64_t i = 0; ottl_cursor_next(&cursor, &entry); i++)
        if (ottl_compare(&entry.value, OTTL_EQUAL, wanted))
            return i;
    return -1;
}

FUNCTION(contains_value)
{
    struct ottl_value list, item;
    if (!read_kind(evaluation, node, OTTL_LIST, &list) ||
        !ottl_argument(evaluation, node, 1, &item))
        return false;
    *out = ottl_bool(find_item(&list, &item) >= 0);
    return true;
}

FUNCTION(index_of)
{
    struct ottl_value target, item;
    if (!ottl_argument(evaluation, node, 0, &target) || !ottl_argument(evaluation, node, 1, &item))
        return false;
    if (target.kind == OTTL_LIST) {
        *out = ottl_int(find_item(&target, &item));
        return true;
    }
    if (target.kind != OTTL_STRING)
        return error_set(ottl_evaluation_error(evaluation), "unsupported type: %s",
                         ottl_type_name(&target));
    if (item.kind != OTTL_STRING)
        return error_set(ottl_evaluation_error(evaluation), "invalid value type for Index: %s",
                         ottl_type_name(&item));
    const uint8_t *found =
        item.bytes.size > 0 && target.bytes.size > 0
            ? memmem(target.bytes.data, target.bytes.size, item.bytes.data, item.bytes.size)
            : NULL;
    bool is_empty = item.bytes.size == 0;
    *out = ottl_int(found ? found - target.bytes.data : (is_empty ? 0 : -1));
    return true;
}

/* ---- sorting ---- */

static bool is_number(const struct ottl_value *value)
{
    return value->kind == OTTL_INT || value->kind == OTTL_FLOAT;
}

static int ascending(const void *a, const void *b)
{
    const struct ottl_entry *left = a, *right = b;
    if (ottl_compare(&left->value, OTTL_LESS, &right->value))
        return -1;
    return ottl_compare(&left->value, OTTL_GREATER, &right->value);
}

static int descending(const void *a, const void *b)
{
    return ascending(b, a);
}

/* Items of several types are compared by their texts. */
static bool make_comparable(struct ottl_evaluation *evaluation, struct ottl_entry *entries,
                            uint32_t count)
{
    bool is_same = true;
    for (uint32_t i = 1; i < count; i++)
        is_same &= entries[i].value.kind == entries[0].value.kind ||
                   (is_number(&entries[i].value) && is_number(&entries[0].value));
    for (uint32_t i = 0; !is_same && i < count; i++) {
        struct text text = {0};
        if (!ottl_print(&entries[i].value, &text, ottl_evaluation_error(evaluation))) {
            text_deinit(&text);
            return false;
        }
        entries[i].value = ottl_string(ottl_evaluation_text(evaluation, &text));
    }
    return true;
}

static bool check_order(const struct ottl_node *node, struct error *err)
{
    struct slice order = node->operands[1] ? node->operands[1]->constant.bytes : SLICE("asc");
    return slice_is(order, "asc") || slice_is(order, "desc") ||
           error_set(err, "invalid arguments: %.*s. Order should be either \"asc\" or \"desc\"",
                     (int)text_utf8_cut(order, 100), (const char *)order.data);
}

FUNCTION(sort)
{
    struct ottl_value list;
    uint32_t count;
    if (!read_kind(evaluation, node, OTTL_LIST, &list))
        return false;
    struct ottl_entry *entries = copy_entries(evaluation, &list, &count);
    if (!make_comparable(evaluation, entries, count))
        return false;
    bool is_descending = node->operands[1] && slice_is(node->operands[1]->constant.bytes, "desc");
    qsort(entries, count, sizeof *entries, is_descending ? descending : ascending);
    return give_list(entries, count, out);
}

#define TARGET                                                                                     \
    {                                                                                              \
        "target", OTTL_PARAMETER_ANY, false                                                        \
    }

const struct ottl_function ottl_list_functions[] = {
    {.name = "ContainsValue",
     .parameters = {TARGET, {"item", OTTL_PARAMETER_ANY, false}},
     .call = contains_value},
    {.name = "Index",
     .parameters = {TARGET, {"value", OTTL_PARAMETER_ANY, false}},
     .call = index_of},
    {.name = "Keys", .parameters = {TARGET}, .call = keys},
    {.name = "Sort",
     .parameters = {TARGET, {"order", OTTL_PARAMETER_LITERAL_STRING, true}},
     .call = sort,
     .check = check_order},
    {.name = "Values", .parameters = {TARGET}, .call = values},
    {.name = NULL},
};
