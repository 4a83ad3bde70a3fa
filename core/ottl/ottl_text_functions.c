#include "core/ottl/ottl_functions.h"

#include <assert.h>
#include <inttypes.h>

#define FUNCTION(name)                                                                             \
    static bool name(struct ottl_evaluation *evaluation, const struct ottl_node *node,             \
                     struct ottl_value *out)

/* ---- questions ---- */

FUNCTION(is_match)
{
    struct slice text;
    bool is_nil, found = false;
    if (!ottl_node_text(evaluation, node->operands[0], &text, &is_nil))
        return false;
    if (!is_nil && !ottl_regex_find(node->regex, ottl_evaluation_matcher(evaluation), text, &found,
                                    ottl_evaluation_error(evaluation)))
        return false;
    *out = ottl_bool(found);
    return true;
}

static bool two_strings(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                        struct slice *first, struct slice *second)
{
    return ottl_argument_string(evaluation, node, 0, first) &&
           ottl_argument_string(evaluation, node, 1, second);
}

static bool ends_with(struct slice text, struct slice suffix)
{
    return text.size >= suffix.size &&
           slice_equal(slice_of(text.data + text.size - suffix.size, suffix.size), suffix);
}

FUNCTION(has_prefix)
{
    struct slice text, prefix;
    if (!two_strings(evaluation, node, &text, &prefix))
        return false;
    *out = ottl_bool(slice_begins_with(text, prefix));
    return true;
}

FUNCTION(has_suffix)
{
    struct slice text, suffix;
    if (!two_strings(evaluation, node, &text, &suffix))
        return false;
    *out = ottl_bool(ends_with(text, suffix));
    return true;
}

/* ---- parts ---- */

static bool is_character_start(uint8_t byte)
{
    return (byte & 0xc0) != 0x80;
}

/* Moves both ends inward to where characters begin. */
static struct slice cut_between_characters(struct slice text, size_t start, size_t end)
{
    while (start < text.size && !is_character_start(text.data[start]))
        start++;
    while (start < end && end < text.size && !is_character_start(text.data[end]))
        end--;
    return slice_of(text.data + start, end > start ? end - start : 0);
}

static bool check_start(struct ottl_evaluation *evaluation, int64_t start)
{
    return start >= 0 ||
           error_set(ottl_evaluation_error(evaluation),
                     "invalid start for substring function, %" PRId64 " cannot be negative", start);
}

static bool check_length(struct ottl_evaluation *evaluation, int64_t length)
{
    return length > 0 || error_set(ottl_evaluation_error(evaluation),
                                   "invalid length for substring function, %" PRId64
                                   " cannot be negative or zero",
                                   length);
}

FUNCTION(substring)
{
    struct slice text;
    int64_t start, length;
    if (!ottl_argument_int(evaluation, node, 1, &start) || !check_start(evaluation, start) ||
        !ottl_argument_int(evaluation, node, 2, &length) || !check_length(evaluation, length) ||
        !ottl_argument_string(evaluation, node, 0, &text))
        return false;
    if ((uint64_t)start > text.size || (uint64_t)length > text.size - (uint64_t)start)
        return error_set(ottl_evaluation_error(evaluation),
                         "invalid range for substring function, start(%" PRId64 ")+length(%" PRId64
                         ") cannot be greater than the length of target string(%zu)",
                         start, length, text.size);
    struct slice part = slice_of(text.data + start, (size_t)length);
    const struct ottl_node *utf8_safe = node->operands[3];
    if (utf8_safe && utf8_safe->constant.truth)
        part = cut_between_characters(text, (size_t)start, (size_t)(start + length));
    *out = ottl_string(part);
    return true;
}

FUNCTION(split)
{
    struct ottl_split *split = ottl_evaluation_alloc(evaluation, sizeof *split);
    if (!two_strings(evaluation, node, &split->text, &split->separator))
        return false;
    *out = (struct ottl_value){.kind = OTTL_LIST, .form = OTTL_FORM_SPLIT};
    out->split = split;
    return true;
}

/* The size of the first or last character of a text; of invalid UTF-8 a byte is one. */
static size_t first_size(struct slice text)
{
    size_t size = text_utf8_length(text.data, text.size);
    return size > 0 ? size : 1;
}

static size_t last_size(struct slice text)
{
    size_t size = 1;
    while (size < 4 && size < text.size && !is_character_start(text.data[text.size - size]))
        size++;
    return text_utf8_length(text.data + text.size - size, size) == size ? size : 1;
}

static bool is_in(struct slice character, struct slice set)
{
    return memmem(set.data, set.size, character.data, character.size) != NULL;
}

FUNCTION(trim)
{
    struct slice text, set = SLICE(" ");
    if (!ottl_argument_string(evaluation, node, 0, &text))
        return false;
    if (node->operands[1])
        set = node->operands[1]->constant.bytes;
    while (text.size > 0 && is_in(slice_of(text.data, first_size(text)), set))
        text = slice_of(text.data + first_size(text), text.size - first_size(text));
    while (text.size > 0 &&
           is_in(slice_of(text.data + text.size - last_size(text), last_size(text)), set))
        text.size -= last_size(text);
    *out = ottl_string(text);
    return true;
}

FUNCTION(trim_prefix)
{
    struct slice text, prefix;
    if (!two_strings(evaluation, node, &text, &prefix))
        return false;
    size_t size = slice_begins_with(text, prefix) ? prefix.size : 0;
    *out = ottl_string(slice_of(size > 0 ? text.data + size : text.data, text.size - size));
    return true;
}

FUNCTION(trim_suffix)
{
    struct slice text, suffix;
    if (!two_strings(evaluation, node, &text, &suffix))
        return false;
    *out =
        ottl_string(slice_of(text.data, text.size - (ends_with(text, suffix) ? suffix.size : 0)));
    return true;
}

/* ---- new texts ---- */

/* nil is written as Go prints it. */
static bool join(struct ottl_items *items, struct slice separator, struct text *out)
{
    struct ottl_value item;
    struct slice part;
    bool is_nil;
    uint32_t count = 0;
    for (; ottl_items_next(items, &item); count++) {
        if (!ottl_value_text(items->evaluation, &item, &part, &is_nil) ||
            !ottl_items_fit(items, out->size + separator.size + part.size))
            return false;
        if (count > 0)
            text_append_slice(out, separator);
        text_append_slice(out, is_nil ? SLICE("<nil>") : part);
    }
    /* A client chooses how often the separator is written. */
    return !items->has_failed &&
           (items->written || ottl_take_repeated(items->evaluation, count * separator.size));
}

FUNCTION(concat)
{
    struct text text = {0};
    struct slice separator;
    struct ottl_items items;
    if (!ottl_argument_string(evaluation, node, 1, &separator) ||
        !ottl_argument_items(evaluation, node, 0, &items))
        return false;
    if (!join(&items, separator, &text)) {
        text_deinit(&text);
        return false;
    }
    *out = ottl_string(ottl_evaluation_text(evaluation, &text));
    return true;
}

#define STRING(name)                                                                               \
    {                                                                                              \
        name, OTTL_PARAMETER_STRING, false                                                         \
    }

const struct ottl_function ottl_text_functions[] = {
    {.name = "Concat",
     .parameters = {{"vals", OTTL_PARAMETER_LIST, false}, STRING("delimiter")},
     .call = concat},
    {.name = "HasPrefix", .parameters = {STRING("target"), STRING("prefix")}, .call = has_prefix},
    {.name = "HasSuffix", .parameters = {STRING("target"), STRING("suffix")}, .call = has_suffix},
    {.name = "IsMatch",
     .parameters = {{"target", OTTL_PARAMETER_STRING_LIKE, false},
                    {"pattern", OTTL_PARAMETER_PATTERN, false}},
     .call = is_match},
    {.name = "Split", .parameters = {STRING("target"), STRING("delimiter")}, .call = split},
    {.name = "Substring",
     .parameters = {STRING("target"),
                    {"start", OTTL_PARAMETER_INT, false},
                    {"length", OTTL_PARAMETER_INT, false},
                    {"utf8_safe", OTTL_PARAMETER_LITERAL_BOOL, true}},
     .call = substring},
    {.name = "Trim",
     .parameters = {STRING("target"), {"replacement", OTTL_PARAMETER_LITERAL_STRING, true}},
     .call = trim},
    {.name = "TrimPrefix", .parameters = {STRING("target"), STRING("prefix")}, .call = trim_prefix},
    {.name = "TrimSuffix", .parameters = {STRING("target"), STRING("suffix")}, .call = trim_suffix},
    {.name = NULL},
};
