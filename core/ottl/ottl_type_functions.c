#include "config/value.h"
#include "core/base/go_number.h"
#include "core/ottl/ottl_functions.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define FUNCTION(name)                                                                             \
    static bool name(struct ottl_evaluation *evaluation, const struct ottl_node *node,             \
                     struct ottl_value *out)

static bool refuse_type(struct ottl_evaluation *evaluation, const struct ottl_value *value)
{
    return error_set(ottl_evaluation_error(evaluation), "unsupported type: %s",
                     ottl_type_name(value));
}

/* ---- what a value is ---- */

static bool is_kind(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                    enum ottl_kind kind, struct ottl_value *out)
{
    struct ottl_value value;
    if (!ottl_argument(evaluation, node, 0, &value))
        return false;
    *out = ottl_bool(value.kind == kind || (kind == OTTL_LIST && value.kind == OTTL_MESSAGES));
    return true;
}

FUNCTION(is_string)
{
    return is_kind(evaluation, node, OTTL_STRING, out);
}

FUNCTION(is_map)
{
    return is_kind(evaluation, node, OTTL_MAP, out);
}

FUNCTION(is_list)
{
    return is_kind(evaluation, node, OTTL_LIST, out);
}

FUNCTION(is_int)
{
    return is_kind(evaluation, node, OTTL_INT, out);
}

FUNCTION(is_double)
{
    return is_kind(evaluation, node, OTTL_FLOAT, out);
}

FUNCTION(is_bool)
{
    return is_kind(evaluation, node, OTTL_BOOL, out);
}

static bool is_zero(const struct ottl_value *value)
{
    switch (value->kind) {
    case OTTL_NIL:
        return true;
    case OTTL_BOOL:
        return !value->truth;
    case OTTL_INT:
    case OTTL_DURATION:
        return value->integer == 0;
    case OTTL_FLOAT:
        return value->real == 0 && !signbit(value->real);
    case OTTL_STRING:
    case OTTL_BYTES:
        return value->bytes.size == 0;
    case OTTL_MAP:
    case OTTL_LIST:
        return ottl_value_count(value) == 0;
    default:
        return false;
    }
}

FUNCTION(is_empty)
{
    struct ottl_value value;
    if (!ottl_argument(evaluation, node, 0, &value))
        return false;
    bool is_id =
        value.kind == OTTL_TRACE_ID || value.kind == OTTL_SPAN_ID || value.kind == OTTL_PROFILE_ID;
    struct ottl_value zeros = {.kind = value.kind};
    *out = ottl_bool(is_id ? ottl_compare(&value, OTTL_EQUAL, &zeros) : is_zero(&value));
    return true;
}

/* ---- conversions: nil stays nil ---- */

static void copy_number(struct slice text, char *copy, size_t size)
{
    assert(text.size < size);
    memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
}

/* Go takes no blanks, and no base but ten. */
static bool parse_int(struct slice text, int64_t *out)
{
    char copy[32], *end;
    size_t sign = text.size > 0 && (text.data[0] == '+' || text.data[0] == '-');
    if (text.size <= sign || text.size >= sizeof copy)
        return false;
    for (size_t i = sign; i < text.size; i++)
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
    copy_number(text, copy, sizeof copy);
    errno = 0;
    *out = strtoll(copy, &end, 10);
    return errno == 0 && *end == '\0';
}

/* Go's conversion of a float that has no int64 is not defined; on x86-64 it is the least one. */
static int64_t truncate_float(double real)
{
    return real >= -0x1p63 && real < 0x1p63 ? (int64_t)real : INT64_MIN;
}

FUNCTION(to_int)
{
    struct ottl_value value;
    int64_t integer;
    if (!ottl_argument(evaluation, node, 0, &value))
        return false;
    switch (value.kind) {
    case OTTL_NIL:
    case OTTL_INT:
        *out = value;
        return true;
    case OTTL_FLOAT:
        *out = ottl_int(truncate_float(value.real));
        return true;
    case OTTL_BOOL:
        *out = ottl_int(value.truth);
        return true;
    case OTTL_STRING: /* 0.158 returns nil for a text that is no number, 0.160 fails */
        if (!parse_int(value.bytes, &integer))
            return error_set(ottl_evaluation_error(evaluation), "could not convert to an integer");
        *out = ottl_int(integer);
        return true;
    default:
        return refuse_type(evaluation, &value);
    }
}

bool ottl_to_double(struct ottl_evaluation *evaluation, const struct ottl_value *value,
                    struct ottl_value *out)
{
    double real;
    switch (value->kind) {
    case OTTL_NIL:
    case OTTL_FLOAT:
        *out = *value;
        return true;
    case OTTL_INT:
        *out = ottl_float((double)value->integer);
        return true;
    case OTTL_BOOL:
        *out = ottl_float(value->truth);
        return true;
    case OTTL_STRING:
        if (!go_parse_float(value->bytes, &real))
            return error_set(ottl_evaluation_error(evaluation), "could not convert to a float");
        *out = ottl_float(real);
        return true;
    default:
        return refuse_type(evaluation, value);
    }
}

FUNCTION(to_double)
{
    struct ottl_value value;
    return ottl_argument(evaluation, node, 0, &value) && ottl_to_double(evaluation, &value, out);
}

/* As Go's strconv.ParseBool. */
static bool parse_bool(struct slice text, bool *out)
{
    static const char *const words[] = {"1", "t", "T", "true",  "TRUE",  "True",
                                        "0", "f", "F", "false", "FALSE", "False"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (slice_is(text, words[i])) {
            *out = i < 6;
            return true;
        }
    return false;
}

FUNCTION(to_bool)
{
    struct ottl_value value;
    bool truth;
    if (!ottl_argument(evaluation, node, 0, &value))
        return false;
    switch (value.kind) {
    case OTTL_NIL:
    case OTTL_BOOL:
        *out = value;
        return true;
    case OTTL_INT:
        *out = ottl_bool(value.integer != 0);
        return true;
    case OTTL_FLOAT:
        *out = ottl_bool(value.real != 0);
        return true;
    case OTTL_STRING:
        if (!parse_bool(value.bytes, &truth))
            return error_set(ottl_evaluation_error(evaluation), "could not convert to a bool");
        *out = ottl_bool(truth);
        return true;
    default:
        return refuse_type(evaluation, &value);
    }
}

FUNCTION(to_string)
{
    struct slice text;
    bool is_nil;
    if (!ottl_node_text(evaluation, node->operands[0], &text, &is_nil))
        return false;
    *out = is_nil ? (struct ottl_value){.kind = OTTL_NIL} : ottl_string(text);
    return true;
}

/* ---- durations ---- */

FUNCTION(to_duration)
{
    struct slice text;
    int64_t ns;
    char why[200];
    if (!ottl_argument_string(evaluation, node, 0, &text))
        return false;
    if (!config_parse_duration(text, &ns, why, sizeof why))
        return error_set(ottl_evaluation_error(evaluation), "time: invalid duration \"%.*s\"",
                         (int)text_utf8_cut(text, 100), (const char *)text.data);
    *out = (struct ottl_value){.kind = OTTL_DURATION, .integer = ns};
    return true;
}

static bool argument_duration(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                              int64_t *out)
{
    struct ottl_value value;
    if (!ottl_argument(evaluation, node, 0, &value))
        return false;
    *out = value.integer;
    return value.kind == OTTL_DURATION ||
           error_set(ottl_evaluation_error(evaluation), "expected duration but got %s",
                     ottl_type_name(&value));
}

static bool divide_duration(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                            int64_t unit, bool is_float, struct ottl_value *out)
{
    int64_t ns;
    if (!argument_duration(evaluation, node, &ns))
        return false;
    /* As Go: the whole units, and the rest as a fraction. */
    int64_t whole = ns / unit, rest = ns % unit;
    *out = is_float ? ottl_float((double)whole + (double)rest / (double)unit) : ottl_int(whole);
    return true;
}

FUNCTION(hours)
{
    return divide_duration(evaluation, node, INT64_C(3600000000000), true, out);
}

FUNCTION(minutes)
{
    return divide_duration(evaluation, node, INT64_C(60000000000), true, out);
}

FUNCTION(seconds)
{
    return divide_duration(evaluation, node, INT64_C(1000000000), true, out);
}

FUNCTION(milliseconds)
{
    return divide_duration(evaluation, node, 1000000, false, out);
}

FUNCTION(microseconds)
{
    return divide_duration(evaluation, node, 1000, false, out);
}

FUNCTION(nanoseconds)
{
    return divide_duration(evaluation, node, 1, false, out);
}

/* ---- the rest ---- */

FUNCTION(length)
{
    struct ottl_value value;
    if (!ottl_argument(evaluation, node, 0, &value))
        return false;
    switch (value.kind) {
    case OTTL_STRING:
    case OTTL_BYTES:
        *out = ottl_int((int64_t)value.bytes.size);
        return true;
    case OTTL_MAP:
    case OTTL_LIST:
    case OTTL_MESSAGES:
        *out = ottl_int(ottl_value_count(&value));
        return true;
    default:
        return error_set(ottl_evaluation_error(evaluation),
                         "Len: unsupported target type %s. target arg must be of type string, "
                         "[]any, map[string]any, pcommon.Map, pcommon.Slice, or pcommon.Value "
                         "(of type String, Map, Slice)",
                         ottl_type_name(&value));
    }
}

FUNCTION(coalesce)
{
    struct ottl_items items;
    if (!ottl_argument_items(evaluation, node, 0, &items))
        return false;
    *out = (struct ottl_value){.kind = OTTL_NIL};
    while (out->kind == OTTL_NIL && ottl_items_next(&items, out))
        continue;
    return !items.has_failed;
}

static bool has_values(const struct ottl_node *node, struct error *err)
{
    return node->operands[0]->code != OTTL_MAKE_LIST || node->operands[0]->operand_count > 0 ||
           error_set(err, "Coalesce requires at least one argument");
}

FUNCTION(is_root_span)
{
    (void)node;
    const struct ottl_item *item = ottl_evaluation_item(evaluation);
    struct message_iter span = item->span;
    struct message_field field;
    struct ottl_value parent = {.kind = OTTL_SPAN_ID}, zeros = parent;
    while (message_next_bytes(&span, SPAN_PARENT_SPAN_ID, &field))
        parent.bytes = field.wire.bytes;
    *out = ottl_bool(ottl_compare(&parent, OTTL_EQUAL, &zeros));
    return true;
}

#define TARGET(kind)                                                                               \
    {                                                                                              \
        {                                                                                          \
            "target", OTTL_PARAMETER_##kind, false                                                 \
        }                                                                                          \
    }
#define OF_DURATION                                                                                \
    {                                                                                              \
        {                                                                                          \
            "duration", OTTL_PARAMETER_DURATION, false                                             \
        }                                                                                          \
    }

const struct ottl_function ottl_type_functions[] = {
    {.name = "Bool", .parameters = TARGET(ANY), .call = to_bool, .checks_literals = true},
    {.name = "Coalesce",
     .parameters = {{"values", OTTL_PARAMETER_LIST, false}},
     .call = coalesce,
     .check = has_values},
    {.name = "Double", .parameters = TARGET(ANY), .call = to_double, .checks_literals = true},
    {.name = "Duration",
     .parameters = {{"duration", OTTL_PARAMETER_STRING, false}},
     .call = to_duration},
    {.name = "Hours", .parameters = OF_DURATION, .call = hours},
    {.name = "Int", .parameters = TARGET(ANY), .call = to_int, .checks_literals = true},
    {.name = "IsBool", .parameters = TARGET(ANY), .call = is_bool},
    {.name = "IsDouble", .parameters = TARGET(ANY), .call = is_double},
    {.name = "IsEmpty", .parameters = TARGET(ANY), .call = is_empty},
    {.name = "IsInt", .parameters = TARGET(ANY), .call = is_int},
    {.name = "IsList", .parameters = TARGET(ANY), .call = is_list},
    {.name = "IsMap", .parameters = TARGET(ANY), .call = is_map},
    {.name = "IsRootSpan",
     .parameters = {{NULL, OTTL_PARAMETER_NONE, false}},
     .call = is_root_span,
     .level = OTTL_LEVEL_ITEM,
     .is_of_spans = true},
    {.name = "IsString", .parameters = TARGET(ANY), .call = is_string},
    {.name = "Len", .parameters = TARGET(ANY), .call = length},
    {.name = "Microseconds", .parameters = OF_DURATION, .call = microseconds},
    {.name = "Milliseconds", .parameters = OF_DURATION, .call = milliseconds},
    {.name = "Minutes", .parameters = OF_DURATION, .call = minutes},
    {.name = "Nanoseconds", .parameters = OF_DURATION, .call = nanoseconds},
    {.name = "Seconds", .parameters = OF_DURATION, .call = seconds},
    {.name = "String", .parameters = TARGET(STRING_LIKE), .call = to_string},
    {.name = NULL},
};
