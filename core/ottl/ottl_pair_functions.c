#include "core/ottl/ottl_entries.h"
#include "core/ottl/ottl_functions.h"

#include <stdio.h>
#include <stdlib.h>

#define FUNCTION(name)                                                                             \
    static bool name(struct ottl_evaluation *evaluation, const struct ottl_node *node,             \
                     struct ottl_value *out)

/* ---- texts of pairs: "a=1 b=2" ---- */

struct pairs {
    struct slice delimiter, separator;
};

/* Takes the next piece before a separator, which quotes hide. */
static struct slice take_piece(struct slice *rest, struct slice separator)
{
    uint8_t quote = 0;
    size_t i = 0;
    for (; i < rest->size; i++) {
        uint8_t c = rest->data[i];
        if (quote ? c == quote : c == '"' || c == '\'')
            quote = quote ? 0 : c;
        else if (!quote && rest->size - i >= separator.size &&
                 memcmp(rest->data + i, separator.data, separator.size) == 0)
            break;
    }
    struct slice piece = slice_of(rest->data, i);
    size_t used = i < rest->size ? i + separator.size : i;
    *rest = slice_of(rest->data + used, rest->size - used);
    return piece;
}

static struct slice unquote(struct slice text)
{
    text = slice_trim(text, SLICE_SPACES);
    bool is_quoted = text.size >= 2 && (text.data[0] == '"' || text.data[0] == '\'') &&
                     text.data[text.size - 1] == text.data[0];
    return is_quoted ? slice_of(text.data + 1, text.size - 2) : text;
}

static struct pairs separators_of(const struct ottl_node *node)
{
    struct pairs by = {SLICE("="), SLICE(" ")};
    if (node->operands[1])
        by.delimiter = node->operands[1]->constant.bytes;
    if (node->operands[2])
        by.separator = node->operands[2]->constant.bytes;
    return by;
}

static bool check_pairs(const struct ottl_node *node, struct error *err)
{
    struct pairs by = separators_of(node);
    return (by.delimiter.size > 0 && by.separator.size > 0 &&
            !slice_equal(by.delimiter, by.separator)) ||
           error_set(err, "the delimiters of pairs must be different, and not empty");
}

FUNCTION(parse_key_value)
{
    struct slice rest;
    struct pairs by = separators_of(node);
    if (!ottl_argument_string(evaluation, node, 0, &rest))
        return false;
    if (rest.size == 0)
        return error_set(ottl_evaluation_error(evaluation), "cannot parse from empty target");
    struct ottl_entry *entries =
        ottl_evaluation_alloc(evaluation, (rest.size / 2 + 2) * sizeof *entries);
    uint32_t count = 0;
    while (rest.size > 0) {
        struct slice value = take_piece(&rest, by.separator);
        if (slice_trim(value, SLICE_SPACES).size == 0)
            continue;
        struct slice key = take_piece(&value, by.delimiter);
        if (value.data == key.data + key.size)
            return error_set(ottl_evaluation_error(evaluation), "a pair has no delimiter");
        entries[count++] = (struct ottl_entry){unquote(key), ottl_string(unquote(value))};
    }
    *out = ottl_entries_value(OTTL_MAP, entries, count);
    return true;
}

/* ---- SliceToMap ---- */

/* Follows a path of keys into an item. */
static bool extract(struct ottl_evaluation *evaluation, const struct ottl_value *item,
                    const struct ottl_node *path, struct ottl_value *out)
{
    *out = *item;
    for (uint32_t i = 0; i < path->operand_count; i++) {
        struct ottl_value map = *out;
        if (map.kind != OTTL_MAP || !ottl_map_get(&map, path->operands[i]->constant.bytes, out))
            return error_set(ottl_evaluation_error(evaluation),
                             "provided object does not contain the path");
    }
    return path->operand_count > 0 ||
           error_set(ottl_evaluation_error(evaluation), "must provide at least one path item");
}

static struct slice number_text(struct ottl_evaluation *evaluation, uint32_t number)
{
    struct text text = {0};
    text_printf(&text, "%u", number);
    return ottl_evaluation_text(evaluation, &text);
}

static bool make_entry(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                       const struct ottl_value *item, uint32_t at, struct ottl_entry *out)
{
    const struct ottl_node *key_path = node->operands[1], *value_path = node->operands[2];
    struct ottl_value key;
    if ((key_path || value_path) && item->kind != OTTL_MAP)
        return error_set(ottl_evaluation_error(evaluation),
                         "slice elements must be maps when using `key_path` or `value_path`, but "
                         "could not cast element of type `%s` to a map",
                         ottl_data_type_name(item));
    out->value = *item;
    if (value_path && !extract(evaluation, item, value_path, &out->value))
        return false;
    if (!key_path) {
        out->key = number_text(evaluation, at);
        return true;
    }
    if (!extract(evaluation, item, key_path, &key))
        return false;
    out->key = key.bytes;
    return key.kind == OTTL_STRING ||
           error_set(ottl_evaluation_error(evaluation),
                     "element %u: extracted key attribute is not of type string, got \"%s\"", at,
                     ottl_data_type_name(&key));
}

FUNCTION(slice_to_map)
{
    struct ottl_value list;
    struct ottl_entry item;
    uint32_t count = 0;
    if (!ottl_argument(evaluation, node, 0, &list))
        return false;
    if (list.kind != OTTL_LIST)
        return error_set(ottl_evaluation_error(evaluation), "expected pcommon.Slice but got %s",
                         ottl_type_name(&list));
    struct ottl_entry *entries =
        ottl_evaluation_alloc(evaluation, ((size_t)ottl_value_count(&list) + 1) * sizeof *entries);
    struct ottl_cursor cursor = ottl_cursor(&list);
    for (; ottl_cursor_next(&cursor, &item); count++)
        if (!make_entry(evaluation, node, &item.value, count, &entries[count]))
            return false;
    *out =
        ottl_entries_value(OTTL_MAP, entries, ottl_entries_keep_last(evaluation, entries, count));
    return true;
}

/* ---- ToKeyValueString ---- */

/* In quotes if it has a delimiter in it. */
static void append_part(struct slice part, const struct pairs *by, struct text *out)
{
    part = part.data ? part : SLICE("");
    bool is_quoted = memmem(part.data, part.size, by->delimiter.data, by->delimiter.size) != NULL ||
                     memmem(part.data, part.size, by->separator.data, by->separator.size) != NULL;
    text_append(out, is_quoted ? "\"" : "");
    for (size_t i = 0; i < part.size; i++) {
        text_append(out, part.data[i] == '"' ? "\\" : "");
        text_append_char(out, (char)part.data[i]);
    }
    text_append(out, is_quoted ? "\"" : "");
}

static void append_pair(const struct ottl_entry *entry, const struct pairs *by, struct text *out)
{
    struct text value = {0};
    ottl_print_data(&entry->value, &value);
    append_part(entry->key, by, out);
    text_append_slice(out, by->delimiter);
    append_part(slice_of(text_string(&value), value.size), by, out);
    text_deinit(&value);
}

FUNCTION(to_key_value_string)
{
    struct ottl_value map;
    struct ottl_entry entry;
    struct pairs by = separators_of(node);
    struct text text = {0};
    uint32_t count = 0;
    if (!ottl_argument(evaluation, node, 0, &map))
        return false;
    if (map.kind != OTTL_MAP)
        return error_set(ottl_evaluation_error(evaluation), "expected pcommon.Map but got %s",
                         ottl_type_name(&map));
    size_t size = (size_t)ottl_value_count(&map) + 1;
    struct ottl_entry *entries = ottl_evaluation_alloc(evaluation, size * sizeof *entries);
    struct ottl_entry **sorted =
        ottl_evaluation_alloc(evaluation, size * sizeof(struct ottl_entry *));
    for (struct ottl_cursor cursor = ottl_cursor(&map); ottl_cursor_next(&cursor, &entry);) {
        entries[count] = entry;
        sorted[count] = &entries[count];
        count++;
    }
    if (node->operands[3] && node->operands[3]->constant.truth)
        qsort(sorted, count, sizeof(struct ottl_entry *), ottl_entries_by_key);
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0)
            text_append_slice(&text, by.separator);
        append_pair(sorted[i], &by, &text);
    }
    *out = ottl_string(ottl_evaluation_text(evaluation, &text));
    return true;
}

#define SEPARATORS                                                                                 \
    {"delimiter", OTTL_PARAMETER_LITERAL_STRING, true},                                            \
    {                                                                                              \
        "pair_delimiter", OTTL_PARAMETER_LITERAL_STRING, true                                      \
    }

const struct ottl_function ottl_pair_functions[] = {
    {.name = "ParseKeyValue",
     .parameters = {{"target", OTTL_PARAMETER_STRING, false}, SEPARATORS},
     .call = parse_key_value,
     .check = check_pairs},
    {.name = "SliceToMap",
     .parameters = {{"target", OTTL_PARAMETER_ANY, false},
                    {"key_path", OTTL_PARAMETER_LITERAL_STRINGS, true},
                    {"value_path", OTTL_PARAMETER_LITERAL_STRINGS, true}},
     .call = slice_to_map},
    {.name = "ToKeyValueString",
     .parameters = {{"target", OTTL_PARAMETER_MAP, false},
                    SEPARATORS,
                    {"sort_output", OTTL_PARAMETER_LITERAL_BOOL, true}},
     .call = to_key_value_string,
     .check = check_pairs},
    {.name = NULL},
};
