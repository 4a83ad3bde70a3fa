#include "core/ottl/ottl_entries.h"
#include "core/ottl/ottl_functions.h"

#include <assert.h>
#include <jansson.h>

#define FUNCTION(name)                                                                             \
    static bool name(struct ottl_evaluation *evaluation, const struct ottl_node *node,             \
                     struct ottl_value *out)

/* A value of the data is not nested deeper, or the next receiver refuses it. */
enum { JSON_DEPTH_MAX = 64 };

static struct slice copy(struct ottl_evaluation *evaluation, const void *bytes, size_t size)
{
    uint8_t *to = ottl_evaluation_alloc(evaluation, size + 1);
    if (size > 0)
        memcpy(to, bytes, size);
    return slice_of(to, size);
}

/* ---- JSON ---- */

static bool convert(struct ottl_evaluation *evaluation, json_t *json, unsigned depth,
                    struct ottl_value *out);

static bool convert_object(struct ottl_evaluation *evaluation, json_t *json, unsigned depth,
                           struct ottl_value *out)
{
    struct ottl_entry *entries =
        ottl_evaluation_alloc(evaluation, (json_object_size(json) + 1) * sizeof *entries);
    uint32_t count = 0;
    const char *key;
    json_t *value;
    json_object_foreach(json, key, value)
    {
        entries[count].key = copy(evaluation, key, strlen(key));
        if (!convert(evaluation, value, depth + 1, &entries[count++].value))
            return false;
    }
    *out = ottl_entries_value(OTTL_MAP, entries, count);
    return true;
}

static bool convert_array(struct ottl_evaluation *evaluation, json_t *json, unsigned depth,
                          struct ottl_value *out)
{
    size_t count = json_array_size(json);
    struct ottl_entry *entries = ottl_evaluation_alloc(evaluation, (count + 1) * sizeof *entries);
    for (size_t i = 0; i < count; i++) {
        entries[i].key = (struct slice){0};
        if (!convert(evaluation, json_array_get(json, i), depth + 1, &entries[i].value))
            return false;
    }
    *out = ottl_entries_value(OTTL_LIST, entries, (uint32_t)count);
    return true;
}

static bool convert(struct ottl_evaluation *evaluation, json_t *json, unsigned depth,
                    struct ottl_value *out)
{
    if (depth > JSON_DEPTH_MAX)
        return error_set(ottl_evaluation_error(evaluation), "JSON is nested too deeply");
    switch (json_typeof(json)) {
    case JSON_OBJECT:
        return convert_object(evaluation, json, depth, out);
    case JSON_ARRAY:
        return convert_array(evaluation, json, depth, out);
    case JSON_STRING:
        *out = ottl_string(copy(evaluation, json_string_value(json), json_string_length(json)));
        return true;
    case JSON_NULL:
        *out = (struct ottl_value){.kind = OTTL_NIL};
        return true;
    case JSON_TRUE:
    case JSON_FALSE:
        *out = ottl_bool(json_is_true(json));
        return true;
    default:
        *out = ottl_float(json_number_value(json));
        return true;
    }
}

/* Numbers are floats, as in Go. */
FUNCTION(parse_json)
{
    struct slice text;
    json_error_t why;
    if (!ottl_argument_string(evaluation, node, 0, &text))
        return false;
    json_t *json = json_loadb(text.size > 0 ? (const char *)text.data : "", text.size,
                              JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, &why);
    if (!json)
        return error_set(ottl_evaluation_error(evaluation), "could not parse JSON: %s", why.text);
    bool ok = convert(evaluation, json, 0, out);
    json_decref(json);
    return ok;
}

/* ---- patterns ---- */

static bool has_name(const struct ottl_node *node, struct error *err)
{
    const struct ottl_groups *groups = ottl_regex_groups(node->regex);
    for (uint32_t i = 0; i < groups->count; i++)
        if (groups->names[i].size > 0)
            return true;
    return error_set(err, "at least 1 named capture group must be supplied in the given regex");
}

FUNCTION(extract_patterns)
{
    const struct ottl_groups *groups = ottl_regex_groups(node->regex);
    struct ottl_match match;
    struct slice text;
    uint32_t count = 0;
    if (!ottl_argument_string(evaluation, node, 0, &text) ||
        !has_name(node, ottl_evaluation_error(evaluation)) ||
        !ottl_regex_match(node->regex, ottl_evaluation_matcher(evaluation), text, 0, &match,
                          ottl_evaluation_error(evaluation)))
        return false;
    struct ottl_entry *entries =
        ottl_evaluation_alloc(evaluation, (groups->count + 1) * sizeof *entries);
    for (uint32_t i = 0; match.count > 0 && i < groups->count; i++) {
        const size_t *span = &match.spans[(size_t)2 * (i + 1)];
        bool is_set = i + 1 < match.count && span[0] != OTTL_UNSET;
        if (groups->names[i].size == 0)
            continue;
        entries[count++] = (struct ottl_entry){
            groups->names[i], ottl_string(is_set ? slice_of(text.data + span[0], span[1] - span[0])
                                                 : (struct slice){0})};
    }
    *out = ottl_entries_value(OTTL_MAP, entries, count);
    return true;
}

/* ---- numbers ---- */

static int digit_of(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'z' ? (c | 0x20) - 'a' + 10 : 99;
}

/* Finds out the base of a number as Go writes it, "0x1f", and takes the prefix away. */
static int64_t take_base(struct slice *digits)
{
    static const struct {
        char letter;
        uint8_t base;
    } bases[] = {{'b', 2}, {'o', 8}, {'x', 16}};
    if (digits->size < 2 || digits->data[0] != '0')
        return 10;
    for (size_t i = 0; i < sizeof bases / sizeof *bases; i++)
        if (digits->size > 2 && (digits->data[1] | 0x20) == bases[i].letter) {
            *digits = slice_of(digits->data + 2, digits->size - 2);
            return bases[i].base;
        }
    *digits = slice_of(digits->data + 1, digits->size - 1);
    return 8;
}

/* Whether each underscore of a number in Go's notation is between digits, or after its prefix. */
static bool has_valid_underscores(struct slice text)
{
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] == '_' && (i == 0 || i + 1 == text.size || text.data[i - 1] == '_' ||
                                    text.data[i - 1] == '+' || text.data[i - 1] == '-'))
            return false;
    return true;
}

static bool read_digits(struct slice digits, int64_t base, bool is_negative, bool underscores,
                        int64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < digits.size; i++) {
        int digit = digit_of(digits.data[i]);
        if (underscores && digits.data[i] == '_')
            continue;
        if (digit >= base || __builtin_mul_overflow(*out, base, out) ||
            (is_negative ? __builtin_sub_overflow(*out, (int64_t)digit, out)
                         : __builtin_add_overflow(*out, (int64_t)digit, out)))
            return false;
    }
    return digits.size > 0;
}

/* Base 0: the prefix of the number says it, and it may have underscores. */
FUNCTION(parse_int)
{
    struct slice text;
    int64_t base, value;
    if (!ottl_argument_string(evaluation, node, 0, &text) ||
        !ottl_argument_int(evaluation, node, 1, &base))
        return false;
    bool is_negative = text.size > 0 && text.data[0] == '-', is_literal = base == 0;
    size_t start = text.size > 0 && (is_negative || text.data[0] == '+');
    struct slice digits = slice_of(text.data + start, text.size - start);
    if (is_literal)
        base = take_base(&digits);
    if (base < 2 || base > 36 || (is_literal && !has_valid_underscores(text)) ||
        !read_digits(digits, base, is_negative, is_literal, &value))
        return error_set(ottl_evaluation_error(evaluation), "could not parse an integer");
    *out = ottl_int(value);
    return true;
}

const struct ottl_function ottl_parse_functions[] = {
    {.name = "ExtractPatterns",
     .parameters = {{"target", OTTL_PARAMETER_STRING, false},
                    {"pattern", OTTL_PARAMETER_CAPTURES, false}},
     .call = extract_patterns,
     .doubt = has_name},
    {.name = "ParseInt",
     .parameters = {{"target", OTTL_PARAMETER_STRING, false}, {"base", OTTL_PARAMETER_INT, false}},
     .call = parse_int},
    {.name = "ParseJSON",
     .parameters = {{"target", OTTL_PARAMETER_STRING, false}},
     .call = parse_json},
    {.name = NULL},
};
