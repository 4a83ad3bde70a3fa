#include "core/ottl/ottl_functions.h"
#include "core/ottl/ottl_map_edit.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#define EDITOR(name)                                                                               \
    static bool name(struct ottl_evaluation *evaluation, const struct ottl_node *node,             \
                     struct ottl_value *out)

EDITOR(delete_key)
{
    struct attribute_list *edit;
    struct slice key;
    uint32_t at;
    (void)out;
    if (!ottl_argument_string(evaluation, node, 1, &key) ||
        !(edit = ottl_edit_open(evaluation, node->operands[0])))
        return false;
    if (attribute_list_find(edit, key, &at))
        attribute_list_remove(edit, at);
    return ottl_edit_store(evaluation, node->operands[0], edit);
}

/* Keys that an argument lists. Those of a value are sorted, because a client chooses how many there
 * are. */
struct keys {
    const struct slice *names;
    uint32_t count;
    bool is_sorted;
};

static int compare_names(const void *a, const void *b)
{
    const struct slice *left = a, *right = b;
    size_t size = left->size < right->size ? left->size : right->size;
    int order = size > 0 ? memcmp(left->data, right->data, size) : 0;
    return order != 0 ? order : (left->size > right->size) - (left->size < right->size);
}

/* Returns how many items there are at most. */
static uint32_t count_items(const struct ottl_items *items)
{
    return items->written ? items->written->operand_count : ottl_value_count(&items->cursor.of);
}

static bool read_names(struct ottl_items *items, struct slice *names, uint32_t *count_out)
{
    struct ottl_value name;
    uint32_t max = count_items(items);
    while (*count_out < max && ottl_items_next(items, &name)) {
        if (name.kind != OTTL_STRING)
            return error_set(ottl_evaluation_error(items->evaluation), "expected string but got %s",
                             ottl_type_name(&name));
        names[(*count_out)++] = name.bytes;
    }
    return !items->has_failed;
}

/* Reads the keys of argument `index`. Returns false with the error set. */
static bool read_keys(struct ottl_evaluation *evaluation, const struct ottl_node *call,
                      uint32_t index, struct keys *out)
{
    const struct ottl_node *list = call->operands[index];
    struct ottl_items items;
    *out = (struct keys){.names = list->names, .count = list->operand_count};
    if (list->code == OTTL_MAKE_LIST && list->names)
        return true;
    if (!ottl_argument_items(evaluation, call, index, &items))
        return false;
    struct slice *names =
        ottl_evaluation_alloc(evaluation, ((size_t)count_items(&items) + 1) * sizeof *names);
    *out = (struct keys){.names = names, .is_sorted = !items.written};
    if (!read_names(&items, names, &out->count))
        return false;
    if (out->is_sorted)
        qsort(names, out->count, sizeof *names, compare_names);
    return true;
}

static bool is_among(struct slice key, const struct keys *keys)
{
    if (keys->is_sorted)
        return bsearch(&key, keys->names, keys->count, sizeof key, compare_names) != NULL;
    for (uint32_t i = 0; i < keys->count; i++)
        if (slice_equal(key, keys->names[i]))
            return true;
    return false;
}

EDITOR(keep_keys)
{
    struct keys keys;
    struct attribute_list *edit;
    (void)out;
    if (!read_keys(evaluation, node, 1, &keys) ||
        !(edit = ottl_edit_load(evaluation, node->operands[0])))
        return false;
    for (uint32_t i = 0; attribute_list_next(edit, &i); i++)
        if (!is_among(edit->entries[i].key, &keys))
            attribute_list_remove(edit, i);
    return ottl_edit_store(evaluation, node->operands[0], edit);
}

static bool remove_matching(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                            bool removed)
{
    struct attribute_list *edit = ottl_edit_load(evaluation, node->operands[0]);
    bool found;
    if (!edit)
        return false;
    for (uint32_t i = 0; attribute_list_next(edit, &i); i++) {
        if (!ottl_regex_find(node->regex, ottl_evaluation_matcher(evaluation), edit->entries[i].key,
                             &found, ottl_evaluation_error(evaluation)))
            return false;
        if (found == removed)
            attribute_list_remove(edit, i);
    }
    return ottl_edit_store(evaluation, node->operands[0], edit);
}

EDITOR(delete_matching_keys)
{
    (void)out;
    return remove_matching(evaluation, node, true);
}

EDITOR(keep_matching_keys)
{
    (void)out;
    return remove_matching(evaluation, node, false);
}

/* ---- limit ---- */

static bool check_limit(const struct ottl_node *node, struct error *err)
{
    int64_t limit = node->operands[1]->constant.integer;
    if (limit < 0)
        return error_set(err, "invalid limit for limit function, %" PRId64 " cannot be negative",
                         limit);
    if (limit < node->operands[2]->operand_count)
        return error_set(err,
                         "invalid limit for limit function, %" PRId64 " cannot be less than number "
                         "of priority attributes %u",
                         limit, node->operands[2]->operand_count);
    return true;
}

/* Keys with priority stay, and of the others the first ones. */
EDITOR(limit)
{
    struct keys keys;
    struct attribute_list *edit;
    (void)out;
    if (!read_keys(evaluation, node, 2, &keys) ||
        !(edit = ottl_edit_load(evaluation, node->operands[0])))
        return false;
    int64_t room = node->operands[1]->constant.integer;
    if (room >= edit->left)
        return true;
    for (uint32_t i = 0; attribute_list_next(edit, &i); i++)
        room -= is_among(edit->entries[i].key, &keys);
    for (uint32_t i = 0; attribute_list_next(edit, &i); i++)
        if (!is_among(edit->entries[i].key, &keys) && room-- <= 0)
            attribute_list_remove(edit, i);
    return ottl_edit_store(evaluation, node->operands[0], edit);
}

#define MAP                                                                                        \
    {                                                                                              \
        "target", OTTL_PARAMETER_PATH, false                                                       \
    }

const struct ottl_function ottl_key_editors[] = {
    {.name = "delete_key",
     .parameters = {MAP, {"key", OTTL_PARAMETER_STRING, false}},
     .call = delete_key},
    {.name = "delete_matching_keys",
     .parameters = {MAP, {"pattern", OTTL_PARAMETER_PATTERN, false}},
     .call = delete_matching_keys},
    {.name = "keep_keys",
     .parameters = {MAP, {"keys", OTTL_PARAMETER_STRINGS, false}},
     .call = keep_keys,
     .work = 16},
    {.name = "keep_matching_keys",
     .parameters = {MAP, {"pattern", OTTL_PARAMETER_PATTERN, false}},
     .call = keep_matching_keys},
    {.name = "limit",
     .parameters = {MAP,
                    {"limit", OTTL_PARAMETER_LITERAL_INT, false},
                    {"priority_keys", OTTL_PARAMETER_LITERAL_STRINGS, false}},
     .call = limit,
     .check = check_limit},
    {.name = NULL},
};
