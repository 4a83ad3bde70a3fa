#include "core/ottl/ottl_encode.h"
#include "core/ottl/ottl_functions.h"
#include "core/ottl/ottl_map_edit.h"
#include "core/ottl/ottl_replace.h"
#include "core/ottl/ottl_writing.h"

#include <assert.h>

#define EDITOR(name)                                                                               \
    static bool name(struct ottl_evaluation *evaluation, const struct ottl_node *node,             \
                     struct ottl_value *out)

/* Evaluates the argument at `at`, the template; a function and a format may come after it. */
static bool read_replacement(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                             uint32_t at, struct ottl_replacement *out)
{
    *out = (struct ottl_replacement){.regex = node->regex, .function = node->operands[at + 1]};
    out->has_format = out->function && node->operands[at + 2];
    return ottl_argument_string(evaluation, node, at, &out->template) &&
           (!out->has_format || ottl_argument(evaluation, node, at + 2, &out->format));
}

/* The format counts only with a function. */
static bool has_format(const struct ottl_node *node, struct error *err)
{
    const struct ottl_node *format = node->operands[node->operand_count - 1];
    const struct ottl_node *function = node->operands[node->operand_count - 2];
    return !format || !function || format->code != OTTL_CONSTANT ||
           format->constant.kind != OTTL_STRING ||
           ottl_replace_check_format(format->constant.bytes, err);
}

static bool matches(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                    struct slice text, bool *found_out)
{
    return ottl_regex_find(node->regex, ottl_evaluation_matcher(evaluation), text, found_out,
                           ottl_evaluation_error(evaluation));
}

static bool write_text(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                       const struct text *text)
{
    struct ottl_value value = ottl_string(slice_of(text_string(text), text->size));
    return ottl_write_value(evaluation, node->operands[0], &value);
}

/* ---- one text: what is not a text stays as it is ---- */

EDITOR(replace_pattern)
{
    struct ottl_value value;
    struct ottl_replacement replacement;
    struct text *text = ottl_evaluation_empty_text(evaluation);
    bool found;
    (void)out;
    if (!ottl_argument(evaluation, node, 0, &value))
        return false;
    if (value.kind != OTTL_STRING)
        return true;
    return read_replacement(evaluation, node, 2, &replacement) &&
           ottl_replace(evaluation, &replacement, value.bytes, text, &found) &&
           (!found || write_text(evaluation, node, text));
}

EDITOR(replace_match)
{
    struct ottl_value value;
    struct ottl_replacement replacement;
    struct text text = {0};
    bool found = false;
    (void)out;
    if (!ottl_argument(evaluation, node, 0, &value))
        return false;
    if (value.kind == OTTL_STRING && !matches(evaluation, node, value.bytes, &found))
        return false;
    if (!found)
        return true;
    bool ok = read_replacement(evaluation, node, 2, &replacement) &&
              ottl_replace_call(evaluation, &replacement, replacement.template, &text) &&
              write_text(evaluation, node, &text);
    text_deinit(&text);
    return ok;
}

/* ---- all texts of a map ---- */

EDITOR(replace_all_matches)
{
    struct attribute_list *edit = NULL;
    struct ottl_replacement replacement;
    struct text text = {0};
    bool ok = read_replacement(evaluation, node, 2, &replacement) &&
              ottl_replace_call(evaluation, &replacement, replacement.template, &text) &&
              (edit = ottl_edit_load(evaluation, node->operands[0]));
    (void)out;
    struct slice payload = {0};
    for (uint32_t i = 0; ok && attribute_list_next(edit, &i); i++) {
        struct any_value any = any_value_read(edit->entries[i].value);
        bool found = false;
        ok = any.kind != ANY_VALUE_STRING || matches(evaluation, node, any.bytes, &found);
        if (ok && found && payload.size == 0)
            payload = ottl_encode_text(evaluation, slice_of(text_string(&text), text.size));
        if (ok && found)
            attribute_list_set_value(edit, i, payload);
    }
    text_deinit(&text);
    return ok && ottl_edit_store(evaluation, node->operands[0], edit);
}

static bool replaces_keys(const struct ottl_node *node)
{
    return slice_is(node->operands[1]->constant.bytes, "key");
}

static bool check_mode(const struct ottl_node *node, struct error *err)
{
    struct slice mode = node->operands[1]->constant.bytes;
    return replaces_keys(node) || slice_is(mode, "value") ||
           error_set(err, "invalid mode %.*s, must be either 'key' or 'value'",
                     (int)text_utf8_cut(mode, 100), (const char *)mode.data);
}

static struct slice keep_text(struct ottl_evaluation *evaluation, const struct text *text)
{
    uint8_t *copy = ottl_evaluation_alloc(evaluation, text->size + 1);
    memcpy(copy, text_string(text), text->size);
    return slice_of(copy, text->size);
}

/* Several keys may become the same: the value of the last one counts, at the place of the first. */
static void unite_keys(struct attribute_list *edit)
{
    uint32_t at;
    for (uint32_t i = 0; attribute_list_next(edit, &i); i++) {
        bool is_there = attribute_list_find(edit, edit->entries[i].key, &at);
        assert(is_there);
        edit->entries[i].is_duplicate = at != i;
        if (at != i)
            attribute_list_set_value(edit, at, edit->entries[i].value);
    }
    for (uint32_t i = 0; attribute_list_next(edit, &i); i++)
        if (edit->entries[i].is_duplicate)
            attribute_list_remove(edit, i);
}

/* Sets *changed_out if the key or value at a place was replaced. */
static bool replace_entry(struct ottl_evaluation *evaluation,
                          const struct ottl_replacement *replacement, struct attribute_list *edit,
                          uint32_t at, bool of_key, struct text *text, bool *changed_out)
{
    struct any_value any = any_value_read(edit->entries[at].value);
    struct slice old = of_key ? edit->entries[at].key : any.bytes;
    bool found;
    if (!of_key && any.kind != ANY_VALUE_STRING)
        return true;
    text_clear(text);
    if (!ottl_replace(evaluation, replacement, old, text, &found))
        return false;
    struct slice new = slice_of(text_string(text), text->size);
    if (!found || slice_equal(new, old))
        return true;
    if (of_key && !ottl_check_key(new, ottl_evaluation_error(evaluation)))
        return false;
    if (of_key)
        attribute_list_set_key(edit, at, keep_text(evaluation, text));
    else
        attribute_list_set_value(edit, at, ottl_encode_text(evaluation, new));
    *changed_out = true;
    return true;
}

EDITOR(replace_all_patterns)
{
    struct attribute_list *edit = NULL;
    struct ottl_replacement replacement;
    struct text text = {0};
    bool of_key = replaces_keys(node), changed = false;
    bool ok = read_replacement(evaluation, node, 3, &replacement) &&
              (edit = ottl_edit_load(evaluation, node->operands[0]));
    (void)out;
    for (uint32_t i = 0; ok && attribute_list_next(edit, &i); i++)
        ok = replace_entry(evaluation, &replacement, edit, i, of_key, &text, &changed);
    text_deinit(&text);
    if (ok && changed && of_key)
        unite_keys(edit);
    return ok && ottl_edit_store(evaluation, node->operands[0], edit);
}

#define PATH                                                                                       \
    {                                                                                              \
        "target", OTTL_PARAMETER_PATH, false                                                       \
    }
#define REPLACEMENT                                                                                \
    {"replacement", OTTL_PARAMETER_STRING, false}, {"function", OTTL_PARAMETER_FUNCTION, true},    \
    {                                                                                              \
        "replacement_format", OTTL_PARAMETER_STRING, true                                          \
    }

const struct ottl_function ottl_replace_editors[] = {
    {.name = "replace_all_matches",
     .parameters = {PATH, {"pattern", OTTL_PARAMETER_GLOB, false}, REPLACEMENT},
     .call = replace_all_matches,
     .doubt = has_format},
    {.name = "replace_all_patterns",
     .parameters = {PATH,
                    {"mode", OTTL_PARAMETER_LITERAL_STRING, false},
                    {"regex", OTTL_PARAMETER_CAPTURES, false},
                    REPLACEMENT},
     .call = replace_all_patterns,
     .check = check_mode,
     .doubt = has_format},
    {.name = "replace_match",
     .parameters = {PATH, {"pattern", OTTL_PARAMETER_GLOB, false}, REPLACEMENT},
     .call = replace_match,
     .doubt = has_format},
    {.name = "replace_pattern",
     .parameters = {PATH, {"regex", OTTL_PARAMETER_CAPTURES, false}, REPLACEMENT},
     .call = replace_pattern,
     .doubt = has_format},
    {.name = NULL},
};
