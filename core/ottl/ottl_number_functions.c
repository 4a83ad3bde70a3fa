#include "core/base/go_number.h"
#include "core/ottl/ottl_functions.h"

#include <math.h>

#define FUNCTION(name)                                                                             \
    static bool name(struct ottl_evaluation *evaluation, const struct ottl_node *node,             \
                     struct ottl_value *out)

/* ---- Log ---- */

FUNCTION(logarithm)
{
    struct ottl_value value;
    if (!ottl_argument(evaluation, node, 0, &value) || !ottl_to_double(evaluation, &value, &value))
        return false;
    if (value.kind == OTTL_NIL || !(value.real > 0))
        return error_set(ottl_evaluation_error(evaluation),
                         "invalid input: expected number greater than zero");
    *out = ottl_float(log(value.real));
    return true;
}

/* A literal that is no number would fail each time. */
static bool check_number(const struct ottl_node *node, struct error *err)
{
    const struct ottl_node *target = node->operands[0];
    double ignored;
    return !ottl_node_is_literal(target) || target->constant.kind != OTTL_STRING ||
           go_parse_float(target->constant.bytes, &ignored) ||
           error_set(err, "could not convert to a float");
}

/* ---- IsValidLuhn ---- */

/* Adds up the digits from the right, every second one twice; *sum_out is a multiple of ten if the
 * number is valid. Returns false if there is something else than digits and blanks. */
static bool add_digits(struct slice text, unsigned *sum_out, size_t *count_out)
{
    *sum_out = 0;
    *count_out = 0;
    for (size_t i = text.size; i > 0; i--) {
        uint8_t c = text.data[i - 1];
        if (c == ' ')
            continue;
        if (c < '0' || c > '9')
            return false;
        unsigned digit = (unsigned)(c - '0') << (*count_out % 2);
        *sum_out = (*sum_out + digit - (digit > 9 ? 9 : 0)) % 10;
        ++*count_out;
    }
    return true;
}

FUNCTION(is_valid_luhn)
{
    struct slice text;
    unsigned sum;
    size_t count;
    bool is_nil;
    if (!ottl_node_text(evaluation, node->operands[0], &text, &is_nil))
        return false;
    if (is_nil || !add_digits(text, &sum, &count))
        return error_set(ottl_evaluation_error(evaluation),
                         "invalid input: expected digits and blanks");
    *out = ottl_bool(count > 0 && sum == 0);
    return true;
}

/* ---- ParseSeverity: {"error": [{"equals": ["err"]}, {"range": {"min": 1, "max": 3}}]} ---- */

static bool find_entry(const struct ottl_value *map, const char *key, struct ottl_value *out)
{
    return ottl_map_get(map, slice_of_string(key), out);
}

static bool refuse_mapping(struct error *err, const char *why)
{
    return error_set(err, "invalid severity mapping: %s", why);
}

static bool read_range(const struct ottl_value *range, int64_t *min_out, int64_t *max_out,
                       struct error *err)
{
    struct ottl_value min, max;
    if (range->kind == OTTL_STRING) {
        struct slice text = range->bytes;
        if (text.size != 3 || text.data[0] < '2' || text.data[0] > '5' || text.data[1] != 'x' ||
            text.data[2] != 'x')
            return refuse_mapping(err, "a range is a map, or 2xx, 3xx, 4xx, 5xx");
        *min_out = (int64_t)(text.data[0] - '0') * 100;
        *max_out = *min_out + 99;
        return true;
    }
    if (range->kind != OTTL_MAP || !find_entry(range, "min", &min) ||
        !find_entry(range, "max", &max) || min.kind != OTTL_INT || max.kind != OTTL_INT)
        return refuse_mapping(err, "a range has an integer as min and one as max");
    *min_out = min.integer;
    *max_out = max.integer;
    return true;
}

static bool is_one_of(const struct ottl_value *list, const struct ottl_value *value)
{
    struct ottl_cursor cursor = ottl_cursor(list);
    struct ottl_entry item;
    while (ottl_cursor_next(&cursor, &item))
        if (value->kind == OTTL_STRING && slice_equal(item.value.bytes, value->bytes))
            return true;
    return false;
}

static bool are_strings(const struct ottl_value *list)
{
    struct ottl_cursor cursor = ottl_cursor(list);
    struct ottl_entry item;
    while (ottl_cursor_next(&cursor, &item))
        if (item.value.kind != OTTL_STRING)
            return false;
    return true;
}

/* Sets *met_out to whether the value, or nil, is what a criterion asks for. Returns false with err
 * set if it is none. */
static bool check_criterion(const struct ottl_value *criterion, const struct ottl_value *value,
                            bool *met_out, struct error *err)
{
    struct ottl_value part;
    int64_t min, max;
    *met_out = false;
    if (criterion->kind != OTTL_MAP)
        return refuse_mapping(err, "a criterion is a map");
    if (find_entry(criterion, "equals", &part)) {
        if (part.kind != OTTL_LIST || !are_strings(&part))
            return refuse_mapping(err, "\"equals\" is a list of strings");
        *met_out = is_one_of(&part, value);
    }
    if (!find_entry(criterion, "range", &part))
        return true;
    if (!read_range(&part, &min, &max, err))
        return false;
    *met_out |= value->kind == OTTL_INT && value->integer >= min && value->integer <= max;
    return true;
}

static bool check_criteria(const struct ottl_value *list, const struct ottl_value *value,
                           bool *met_out, struct error *err)
{
    struct ottl_entry item;
    *met_out = false;
    if (list->kind != OTTL_LIST)
        return refuse_mapping(err, "each level has a list of criteria");
    for (struct ottl_cursor cursor = ottl_cursor(list);
         !*met_out && ottl_cursor_next(&cursor, &item);)
        if (!check_criterion(&item.value, value, met_out, err))
            return false;
    return true;
}

/* Finds the first level whose criteria the value meets; nil meets none, which checks all. */
static bool find_level(const struct ottl_value *mapping, const struct ottl_value *value,
                       struct slice *level_out, bool *met_out, struct error *err)
{
    struct ottl_entry level;
    *met_out = false;
    for (struct ottl_cursor cursor = ottl_cursor(mapping);
         !*met_out && ottl_cursor_next(&cursor, &level);) {
        if (!check_criteria(&level.value, value, met_out, err))
            return false;
        *level_out = level.key;
    }
    return true;
}

static bool check_mapping(const struct ottl_node *node, struct error *err)
{
    static const struct ottl_value nil = {.kind = OTTL_NIL};
    struct slice level;
    bool is_met;
    const struct ottl_node *mapping = node->operands[1];
    if (mapping->code != OTTL_CONSTANT || mapping->constant.kind != OTTL_MAP)
        return refuse_mapping(err, "it must be a literal map");
    return find_level(&mapping->constant, &nil, &level, &is_met, err);
}

FUNCTION(parse_severity)
{
    const struct ottl_node *mapping = node->operands[1];
    struct ottl_value value;
    struct slice level;
    bool is_met = false;
    if (!ottl_argument(evaluation, node, 0, &value))
        return false;
    if (mapping->code != OTTL_CONSTANT)
        return refuse_mapping(ottl_evaluation_error(evaluation), "it must be a literal map");
    if (value.kind != OTTL_STRING && value.kind != OTTL_INT)
        return error_set(ottl_evaluation_error(evaluation),
                         "could not map log level: unsupported value type: %s",
                         ottl_type_name(&value));
    if (!find_level(&mapping->constant, &value, &level, &is_met, ottl_evaluation_error(evaluation)))
        return false;
    *out = ottl_string(level);
    return is_met || error_set(ottl_evaluation_error(evaluation),
                               "could not map log level: no matching log level found");
}

const struct ottl_function ottl_number_functions[] = {
    {.name = "IsValidLuhn",
     .parameters = {{"target", OTTL_PARAMETER_STRING_LIKE, false}},
     .call = is_valid_luhn},
    {.name = "Log",
     .parameters = {{"target", OTTL_PARAMETER_ANY, false}},
     .call = logarithm,
     .check = check_number},
    {.name = "ParseSeverity",
     .parameters = {{"target", OTTL_PARAMETER_ANY, false}, {"mapping", OTTL_PARAMETER_MAP, false}},
     .call = parse_severity,
     .doubt = check_mapping},
    {.name = NULL},
};
