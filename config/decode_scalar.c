#include "config/decode_value.h"

#include "config/node.h"
#include "config/suggest.h"
#include "config/value.h"

#include <assert.h>
#include <strings.h>

bool decode_fail(const struct decoding *at, const char *format, ...)
{
    struct config_check *check = at->check;
    va_list args;
    va_start(args, format);
    config_message_at(check, true, at->node->place, config_path_text(check->arena, at->path),
                      format, args);
    va_end(args);
    return false;
}

/* ---- numbers ---- */

/* Returns the text of a number; "0" for null. */
static const char *number_text(const struct config_node *node)
{
    return node->kind == CONFIG_NODE_NULL ? "0" : node->text;
}

static bool fail_bounds(const struct decoding *at)
{
    const struct field *field = at->field;
    if (at->check->lenient)
        return true;
    const char *least = field->min ? field->min : field->kind == FIELD_KIND_UINT ? "0" : NULL;
    assert(least || field->max); /* otherwise no value is out of range */
    const char *value =
        at->node->kind == CONFIG_NODE_NULL ? "no value means 0, which" : config_node_text(at->node);
    if (least && field->max)
        return decode_fail(at, "%s is out of range; it must be from %s to %s", value, least,
                           field->max);
    return decode_fail(at, "%s is out of range; it must be at %s %s", value,
                       least ? "least" : "most", least ? least : field->max);
}

static bool fail_kind(const struct decoding *at, const char *wanted)
{
    const struct config_node *node = at->node;
    if (node->kind != CONFIG_NODE_SCALAR)
        return decode_fail(at, "expected %s, got %s", wanted, config_node_describe(node));
    const char *text = config_quote(at->check->arena, node->text);
    if (node->style == CONFIG_STYLE_QUOTED)
        return decode_fail(at, "expected %s, got the text %s; write it without quotes", wanted,
                           text);
    return decode_fail(at, "expected %s, got %s", wanted, text);
}

static bool fail_whole_number(const struct decoding *at)
{
    const char *digits = at->node->text;
    if (*digits == '-' || *digits == '+')
        digits++;
    bool plain = at->node->kind == CONFIG_NODE_SCALAR && at->node->style == CONFIG_STYLE_PLAIN;
    bool only_digits = *digits && strspn(digits, "0123456789") == strlen(digits);
    if (plain && only_digits && digits[0] == '0')
        return decode_fail(at, "%s has a leading zero; write %s, or 0o%s if it is octal",
                           at->node->text, digits + strspn(digits, "0"),
                           digits + strspn(digits, "0"));
    if (plain && only_digits)
        return decode_fail(at, "%s is too large for 64 bits", at->node->text);
    return fail_kind(at, "a whole number");
}

static bool is_plain(const struct config_node *node)
{
    return node->kind == CONFIG_NODE_NULL ||
           (node->kind == CONFIG_NODE_SCALAR && node->style == CONFIG_STYLE_PLAIN);
}

/* Parses a bound from a table. config_table_check checks that bounds are valid. */
static uint64_t uint_bound(const char *text, uint64_t otherwise)
{
    uint64_t bound;
    return text && config_parse_uint(slice_of_string(text), &bound) ? bound : otherwise;
}

static int64_t int_bound(const char *text, int64_t otherwise)
{
    int64_t bound;
    return text && config_parse_int(slice_of_string(text), &bound) ? bound : otherwise;
}

static int64_t duration_bound(const char *text, int64_t otherwise)
{
    int64_t bound;
    char why[128];
    return text && config_parse_duration(slice_of_string(text), &bound, why, sizeof why)
               ? bound
               : otherwise;
}

bool decode_read_bool(const struct decoding *at, void *member)
{
    bool value = false;
    const struct config_node *node = at->node;
    if (!is_plain(node))
        return fail_kind(at, "true or false");
    if (node->kind == CONFIG_NODE_SCALAR && !config_parse_bool(slice_of_string(node->text), &value))
        return fail_kind(at, "true or false");
    *(bool *)member = value;
    return true;
}

bool decode_read_uint(const struct decoding *at, void *member)
{
    struct slice text = slice_of_string(number_text(at->node));
    uint64_t value;
    int64_t negative;
    if (!is_plain(at->node))
        return fail_whole_number(at);
    if (!config_parse_uint(text, &value))
        return config_parse_int(text, &negative) ? fail_bounds(at) : fail_whole_number(at);
    if (value < uint_bound(at->field->min, 0) || value > uint_bound(at->field->max, UINT64_MAX))
        return fail_bounds(at);
    *(uint64_t *)member = value;
    return true;
}

bool decode_read_int(const struct decoding *at, void *member)
{
    int64_t value;
    if (!is_plain(at->node) || !config_parse_int(slice_of_string(number_text(at->node)), &value))
        return fail_whole_number(at);
    if (value < int_bound(at->field->min, INT64_MIN) ||
        value > int_bound(at->field->max, INT64_MAX))
        return fail_bounds(at);
    *(int64_t *)member = value;
    return true;
}

bool decode_read_double(const struct decoding *at, void *member)
{
    double value;
    double bound;
    const struct field *field = at->field;
    if (!is_plain(at->node) || !config_parse_double(slice_of_string(number_text(at->node)), &value))
        return fail_kind(at, at->node->kind == CONFIG_NODE_SCALAR && strpbrk(at->node->text, ",%")
                                 ? "a number such as 0.5"
                                 : "a number");
    if (field->min && config_parse_double(slice_of_string(field->min), &bound) && value < bound)
        return fail_bounds(at);
    if (field->max && config_parse_double(slice_of_string(field->max), &bound) && value > bound)
        return fail_bounds(at);
    *(double *)member = value;
    return true;
}

bool decode_read_duration(const struct decoding *at, void *member)
{
    int64_t value;
    char why[256];
    if (at->node->kind == CONFIG_NODE_LIST || at->node->kind == CONFIG_NODE_MAP)
        return fail_kind(at, "a duration like 5s");
    if (!config_parse_duration(slice_of_string(number_text(at->node)), &value, why, sizeof why))
        return decode_fail(at, "%s", why);
    if (value < duration_bound(at->field->min, INT64_MIN) ||
        value > duration_bound(at->field->max, INT64_MAX))
        return fail_bounds(at);
    *(int64_t *)member = value;
    return true;
}

/* ---- text ---- */

const char *decode_take_text(const struct decoding *at)
{
    const struct config_node *node = at->node;
    if (node->kind == CONFIG_NODE_SCALAR || node->verbatim || node->kind == CONFIG_NODE_NULL)
        return config_node_verbatim(node);
    decode_fail(at, "expected text, got %s", config_node_describe(node));
    return NULL;
}

bool decode_read_string(const struct decoding *at, void *member)
{
    const char *text = decode_take_text(at);
    if (!text)
        return false;
    bool nothing = at->node->kind == CONFIG_NODE_NULL && !*text && !at->field->fallback;
    *(const char **)member = nothing ? NULL : text;
    if (at->field->required && !*text && !at->check->lenient)
        return decode_fail(at, "is required and cannot be empty");
    return true;
}

static size_t count_names(const char *const *names)
{
    size_t count = 0;
    while (names[count])
        count++;
    return count;
}

static const char *list_names(struct arena *arena, const char *const *names)
{
    struct text out = {0};
    for (size_t i = 0; names[i]; i++)
        text_printf(&out, "%s%s", i ? ", " : "", *names[i] ? names[i] : "\"\"");
    const char *copy = arena_strdup(arena, text_string(&out));
    text_deinit(&out);
    return copy;
}

static int find_name(const char *const *names, const char *text)
{
    for (int i = 0; names[i]; i++)
        if (strcasecmp(names[i], text) == 0)
            return i;
    return -1;
}

bool decode_read_enum(const struct decoding *at, void *member)
{
    struct arena *arena = at->check->arena;
    const char *const *names = at->field->names;
    const char *text = decode_take_text(at);
    if (!text)
        return false;
    int found = find_name(names, text);
    if (found < 0 && at->node->kind == CONFIG_NODE_NULL && at->field->fallback)
        return true; /* the member has its default already */
    if (found < 0) {
        const char *near = config_suggest(text, names, count_names(names));
        return decode_fail(at, "%s is not one of %s%s%s%s", config_quote(arena, text),
                           list_names(arena, names), near ? ", did you mean \"" : "",
                           near ? near : "", near ? "\"?" : "");
    }
    *(int *)member = found;
    return true;
}
