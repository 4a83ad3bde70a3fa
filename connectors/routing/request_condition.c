#include "connectors/routing/request_condition.h"

/* Removes a prefix and a suffix; returns false if the text does not have both. */
static bool strip(struct slice *text, struct slice prefix, struct slice suffix)
{
    if (text->size < prefix.size + suffix.size ||
        !slice_equal(slice_of(text->data, prefix.size), prefix) ||
        !slice_equal(slice_of(text->data + text->size - suffix.size, suffix.size), suffix))
        return false;
    *text = slice_of(text->data + prefix.size, text->size - prefix.size - suffix.size);
    return true;
}

/* Returns the first comparison operator from a position on; NULL: there is none. */
static const char *find_operator(const char *text)
{
    const char *equal = strstr(text, "=="), *other = strstr(text, "!=");
    return equal && (!other || equal < other) ? equal : other;
}

bool request_condition_parse(const char *text, struct arena *arena, struct request_condition *out,
                             struct error *err)
{
    const char *operator= find_operator(text);
    if (!operator)
        return error_set(err, "condition does not contain a valid comparator");
    if (find_operator(operator+ 2))
        return error_set(err, "condition contains multiple comparators");
    struct slice key = slice_trim(slice_of(text, (size_t)(operator- text)), SLICE_SPACES);
    struct slice value = slice_trim(slice_of_string(operator+ 2), SLICE_SPACES);
    if (!strip(&key, SLICE("request[\""), SLICE("\"]")))
        return error_set(err,
                         "condition must have format 'request[\"<name>\"] <comparator> <value>'");
    if (!strip(&value, SLICE("\""), SLICE("\"")))
        return error_set(
            err, "condition must have format 'request[\"<name>\"] <comparator> \"<value>\"'");
    out->key = arena_lower_case(arena, arena_string(arena, key));
    out->value = arena_string(arena, value);
    out->is_negated = operator[0] == '!';
    return true;
}

bool request_condition_matches(const struct request_condition *condition,
                               const struct context *context)
{
    const char *value = context_get(context, condition->key);
    return value && (strcmp(value, condition->value) == 0) != condition->is_negated;
}
