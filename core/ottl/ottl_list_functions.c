#include "core/ottl/ottl_entries.h"
#include "core/ottl/ottl_functions.h"

#include <assert.h>
#include <math.h>
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

FUNCTION(keys)
{
    struct ottl_value map;
    uint32_t count;
    if (!read_kind(evaluation, node, OTTL_MAP, &map))
        return false;
    struct ottl_entry *entries = ottl_entries_copy(evaluation, &map, &count);
    for (uint32_t i = 0; i < count; i++)
        entries[i].value = ottl_string(entries[i].key);
    *out = ottl_entries_value(OTTL_LIST, entries, count);
    return true;
}

FUNCTION(values)
{
    struct ottl_value map;
    uint32_t count;
    if (!read_kind(evaluation, node, OTTL_MAP, &map))
        return false;
    struct ottl_entry *entries = ottl_entries_copy(evaluation, &map, &count);
    *out = ottl_entries_value(OTTL_LIST, entries, count);
    return true;
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

/* What the items of a list are compared as. */
enum order { AS_INTS, AS_FLOATS, AS_TEXTS, NOT_AT_ALL };

struct sortable {
    struct ottl_entry entry;
    uint32_t place;
    enum order order;
    bool is_descending;
    double real;
    struct slice text;
};

/* Mixed numbers are floats, and anything else is text; a list of maps, lists or bytes stays as it
 * is. Returns false if an item has a type that data has not. */
static bool find_order(const struct ottl_entry *entries, uint32_t count, enum order *out)
{
    bool has_float = false, has_text = false, is_fixed = false;
    for (uint32_t i = 0; i < count; i++) {
        enum ottl_kind kind = entries[i].value.kind;
        has_float |= kind == OTTL_FLOAT;
        has_text |= kind == OTTL_STRING || kind == OTTL_BOOL || kind == OTTL_NIL;
        is_fixed |= kind == OTTL_MAP || kind == OTTL_LIST || kind == OTTL_BYTES;
        if (kind > OTTL_BYTES && kind != OTTL_MAP && kind != OTTL_LIST)
            return false;
    }
    *out = is_fixed ? NOT_AT_ALL : has_text ? AS_TEXTS : has_float ? AS_FLOATS : AS_INTS;
    return true;
}

static int compare_floats(double a, double b)
{
    if (isnan(a) || isnan(b)) /* before all others */
        return isnan(b) - isnan(a);
    return (a > b) - (a < b);
}

static int compare_texts(struct slice a, struct slice b)
{
    size_t size = a.size < b.size ? a.size : b.size;
    int result = size > 0 ? memcmp(a.data, b.data, size) : 0;
    return result != 0 ? result : (a.size > b.size) - (a.size < b.size);
}

static int compare(const void *a, const void *b)
{
    const struct sortable *left = a, *right = b;
    int64_t x = left->entry.value.integer, y = right->entry.value.integer;
    int result = left->order == AS_INTS     ? (x > y) - (x < y)
                 : left->order == AS_FLOATS ? compare_floats(left->real, right->real)
                                            : compare_texts(left->text, right->text);
    if (result != 0)
        return left->is_descending ? -result : result;
    return (left->place > right->place) - (left->place < right->place);
}

static void prepare(struct ottl_evaluation *evaluation, struct sortable *item)
{
    const struct ottl_value *value = &item->entry.value;
    struct text text = {0};
    item->real = value->kind == OTTL_FLOAT ? value->real : (double)value->integer;
    if (item->order != AS_TEXTS)
        return;
    ottl_print_data(value, &text);
    item->text = ottl_evaluation_text(evaluation, &text);
}

static bool check_order(const struct ottl_node *node, struct error *err)
{
    struct slice order = node->operands[1] ? node->operands[1]->constant.bytes : SLICE("asc");
    return slice_is(order, "asc") || slice_is(order, "desc") ||
           error_set(err, "invalid arguments: %.*s. Order should be either \"asc\" or \"desc\"",
                     (int)text_utf8_cut(order, 100), (const char *)order.data);
}

static void sort_entries(struct ottl_evaluation *evaluation, struct ottl_entry *entries,
                         uint32_t count, enum order order, bool is_descending)
{
    struct sortable *items = ottl_evaluation_alloc(evaluation, (count + 1) * sizeof *items);
    for (uint32_t i = 0; i < count; i++) {
        items[i] = (struct sortable){
            .entry = entries[i], .place = i, .order = order, .is_descending = is_descending};
        prepare(evaluation, &items[i]);
    }
    qsort(items, count, sizeof *items, compare);
    for (uint32_t i = 0; i < count; i++)
        entries[i] = items[i].entry;
}

FUNCTION(sort)
{
    struct ottl_value list;
    enum order order;
    uint32_t count;
    if (!read_kind(evaluation, node, OTTL_LIST, &list))
        return false;
    struct ottl_entry *entries = ottl_entries_copy(evaluation, &list, &count);
    bool is_descending = node->operands[1] && slice_is(node->operands[1]->constant.bytes, "desc");
    if (!find_order(entries, count, &order))
        return error_set(ottl_evaluation_error(evaluation),
                         "sort with unsupported type: the list has items that no data has");
    if (order != NOT_AT_ALL)
        sort_entries(evaluation, entries, count, order, is_descending);
    *out = ottl_entries_value(OTTL_LIST, entries, count);
    return true;
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
     .check = check_order,
     .work = 16},
    {.name = "Values", .parameters = {TARGET}, .call = values},
    {.name = NULL},
};
