#include "core/ottl/ottl_entries.h"
#include "core/ottl/ottl_functions.h"
#include "core/ottl/ottl_writing.h"

#include <assert.h>
#include <inttypes.h>

#define EDITOR(name)                                                                               \
    static bool name(struct ottl_evaluation *evaluation, const struct ottl_node *node,             \
                     struct ottl_value *out)

EDITOR(set)
{
    struct ottl_value value;
    (void)out;
    return ottl_argument(evaluation, node, 1, &value) &&
           ottl_write_value(evaluation, node->operands[0], &value);
}

EDITOR(clear)
{
    static const struct ottl_value nil = {.kind = OTTL_NIL};
    (void)out;
    return ottl_write_value(evaluation, node->operands[0], &nil);
}

/* ---- lists ---- */

/* Copies the items of a list; anything else is an item, nil none. */
static uint32_t copy_items(const struct ottl_value *from, struct ottl_entry *to)
{
    struct ottl_cursor cursor;
    uint32_t count = 0;
    if (from->kind != OTTL_LIST) {
        to[0] = (struct ottl_entry){.value = *from};
        return from->kind != OTTL_NIL;
    }
    cursor = ottl_cursor(from);
    while (ottl_cursor_next(&cursor, &to[count]))
        count++;
    return count;
}

static uint32_t count_items(const struct ottl_value *value)
{
    return value->kind == OTTL_LIST ? ottl_value_count(value) : 1;
}

EDITOR(append)
{
    struct ottl_value old, one = {.kind = OTTL_NIL}, several = one;
    (void)out;
    if (!ottl_argument(evaluation, node, 0, &old) ||
        (node->operands[1] && !ottl_argument(evaluation, node, 1, &one)) ||
        (node->operands[2] && !ottl_argument(evaluation, node, 2, &several)))
        return false;
    size_t size = (size_t)count_items(&old) + count_items(&several) + 2;
    /* The cursor's end writes an entry, too. */
    struct ottl_entry *entries = ottl_evaluation_alloc(evaluation, (size + 1) * sizeof *entries);
    uint32_t count = copy_items(&old, entries);
    if (node->operands[1])
        entries[count++] = (struct ottl_entry){.value = one};
    count += copy_items(&several, entries + count);
    assert(count <= size);
    struct ottl_value list = ottl_entries_value(OTTL_LIST, entries, count);
    return ottl_write_value(evaluation, node->operands[0], &list);
}

static bool check_append(const struct ottl_node *node, struct error *err)
{
    return node->operands[1] || node->operands[2] ||
           error_set(err, "at least one of the optional arguments ('value' or 'values') must be "
                          "provided");
}

EDITOR(delete_index)
{
    struct ottl_value old;
    int64_t start, end;
    (void)out;
    if (!ottl_argument(evaluation, node, 0, &old) ||
        !ottl_argument_int(evaluation, node, 1, &start))
        return false;
    if (old.kind != OTTL_LIST)
        return error_set(ottl_evaluation_error(evaluation), "target must be a slice type, got %s",
                         ottl_type_name(&old));
    int64_t size = ottl_value_count(&old);
    end = start < INT64_MAX ? start + 1 : start;
    if (node->operands[2] && !ottl_argument_int(evaluation, node, 2, &end))
        return false;
    bool is_all = start == 0 && end == size; /* of an empty list, too */
    if (!is_all && (start < 0 || start >= size || end < start || end > size))
        return error_set(ottl_evaluation_error(evaluation),
                         "deletion index out of bounds: %" PRId64 " to %" PRId64
                         " of a list of %" PRId64,
                         start, end, size);
    struct ottl_entry *entries =
        ottl_evaluation_alloc(evaluation, ((size_t)size + 1) * sizeof *entries);
    copy_items(&old, entries);
    memmove(entries + start, entries + end, (size_t)(size - end) * sizeof *entries);
    struct ottl_value list =
        ottl_entries_value(OTTL_LIST, entries, (uint32_t)(size - (end - start)));
    return ottl_write_value(evaluation, node->operands[0], &list);
}

#define PATH                                                                                       \
    {                                                                                              \
        "target", OTTL_PARAMETER_PATH, false                                                       \
    }

const struct ottl_function ottl_value_editors[] = {
    {.name = "append",
     .parameters = {PATH,
                    {"value", OTTL_PARAMETER_ANY, true},
                    {"values", OTTL_PARAMETER_ANY, true}},
     .call = append,
     .check = check_append},
    {.name = "clear", .parameters = {PATH}, .call = clear},
    {.name = "delete_index",
     .parameters = {PATH,
                    {"start_index", OTTL_PARAMETER_INT, false},
                    {"end_index", OTTL_PARAMETER_INT, true}},
     .call = delete_index},
    {.name = "set", .parameters = {PATH, {"value", OTTL_PARAMETER_ANY, false}}, .call = set},
    {.name = NULL},
};
