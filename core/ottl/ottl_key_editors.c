#include "core/ottl/ottl_functions.h"
#include "core/ottl/ottl_map_edit.h"

#include <assert.h>
#include <inttypes.h>

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

/* Evaluates item `at` of a list of keys. */
static bool read_key(struct ottl_evaluation *evaluation, const struct ottl_node *list, uint32_t at,
                     struct slice *out)
{
    struct ottl_value key;
    if (!ottl_node_evaluate(evaluation, list->operands[at], &key))
        return false;
    *out = key.bytes;
    return key.kind == OTTL_STRING || error_set(ottl_evaluation_error(evaluation),
                                                "expected string but got %s", ottl_type_name(&key));
}

/* Returns the keys of a list; NULL with the error set. */
static const struct slice *read_keys(struct ottl_evaluation *evaluation,
                                     const struct ottl_node *list)
{
    if (list->names)
        return list->names;
    struct slice *keys =
        ottl_evaluation_alloc(evaluation, (list->operand_count + 1) * sizeof *keys);
    for (uint32_t i = 0; i < list->operand_count; i++)
        if (!read_key(evaluation, list, i, &keys[i]))
            return NULL;
    return keys;
}

static bool is_among(struct slice key, const struct slice *keys, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (slice_equal(key, keys[i]))
            return true;
    return false;
}

EDITOR(keep_keys)
{
    const struct ottl_node *list = node->operands[1];
    const struct slice *keys = read_keys(evaluation, list);
    struct attribute_list *edit;
    (void)out;
    if (!keys || !(edit = ottl_edit_load(evaluation, node->operands[0])))
        return false;
    for (uint32_t i = 0; attribute_list_next(edit, &i); i++)
        if (!is_among(edit->entries[i].key, keys, list->operand_count))
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
    const struct ottl_node *list = node->operands[2];
    const struct slice *keys = read_keys(evaluation, list);
    struct attribute_list *edit;
    uint32_t key_count = list->operand_count;
    (void)out;
    if (!keys || !(edit = ottl_edit_load(evaluation, node->operands[0])))
        return false;
    int64_t room = node->operands[1]->constant.integer;
    if (room >= edit->left)
        return true;
    for (uint32_t i = 0; attribute_list_next(edit, &i); i++)
        room -= is_among(edit->entries[i].key, keys, key_count);
    for (uint32_t i = 0; attribute_list_next(edit, &i); i++)
        if (!is_among(edit->entries[i].key, keys, key_count) && room-- <= 0)
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
     .call = keep_keys},
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
