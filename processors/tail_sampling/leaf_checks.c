#include "processors/tail_sampling/leaf_checks.h"

#include "config/suggest.h"
#include "core/ottl/ottl_check.h"
#include "core/pipeline/cpu_share.h"

#include <strings.h>

static void warn_of_no_match(struct config_check *check, const char *key, const char *why,
                             bool inverts)
{
    config_check_warn(check, key, "%s, so %s trace is sampled", why, inverts ? "every" : "no");
}

/* As in the Collector, nothing has an attribute without a key, or equals one of no values. Returns
 * whether something may match. values: NULL: there are none to compare with. */
static bool check_match(struct config_check *check, const char *key, const char *attribute,
                        const struct config_strings *values, bool inverts)
{
    if (!attribute || !attribute[0])
        warn_of_no_match(check, key, "has no key", inverts);
    else if (values && values->count == 0)
        warn_of_no_match(check, key, "has no values", inverts);
    else
        return true;
    return false;
}

static void check_numeric(struct config_check *check, const char *key,
                          const struct tail_numeric_attribute *numeric)
{
    bool may_match = check_match(check, key, numeric->key, NULL, numeric->invert_match);
    if (numeric->min_value == INT64_MIN && numeric->max_value == INT64_MAX)
        config_check_error(check, key, "at least one of min_value and max_value is required");
    else if (may_match && numeric->min_value > numeric->max_value)
        warn_of_no_match(check, key, "min_value is greater than max_value", numeric->invert_match);
}

static const char *const status_names[] = {"OK", "ERROR", "UNSET"};
enum { STATUSES = sizeof status_names / sizeof *status_names };

/* Returns the index of a status code, STATUSES if it is none. `STATUS_CODE_ERROR` is one of OTTL.
 */
static unsigned find_status(const char *name)
{
    unsigned i = 0;
    while (i < STATUSES && strcmp(name, status_names[i]) != 0)
        i++;
    return i;
}

static const char *suggest_status(const char *name)
{
    static const char beginning[] = "STATUS_CODE_";
    size_t size = sizeof beginning - 1;
    return config_suggest(strncasecmp(name, beginning, size) == 0 ? name + size : name,
                          status_names, STATUSES);
}

static void check_status(struct config_check *check, const char *key,
                         const struct config_strings *codes)
{
    unsigned known = 0;
    if (codes->count == 0)
        config_check_error(check, key, "expected at least one status code to filter on");
    for (size_t i = 0; i < codes->count; i++) {
        unsigned status = find_status(codes->items[i]);
        const char *near = status == STATUSES ? suggest_status(codes->items[i]) : NULL;
        known |= 1U << status;
        if (status == STATUSES)
            config_check_error(
                check, config_check_item(check, config_check_key(check, key, "status_codes"), i),
                "unknown status code \"%s\", supported: OK, ERROR, UNSET%s%s%s", codes->items[i],
                near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    }
    if (known == (1U << STATUSES) - 1)
        config_check_warn(check, key, "has every status code, so every trace is sampled");
}

static void check_string(struct config_check *check, const char *key,
                         const struct tail_string_attribute *string)
{
    check_match(check, key, string->key, &string->values, string->invert_match);
    for (size_t i = 0; string->enabled_regex_matching && i < string->values.count; i++)
        ottl_check_pattern(check,
                           config_check_item(check, config_check_key(check, key, "values"), i),
                           string->values.items[i]);
}

static void check_conditions(struct config_check *check, const char *key,
                             const struct config_strings *conditions, enum ottl_context context)
{
    for (size_t i = 0; i < conditions->count; i++) {
        struct error err;
        struct ottl_program *program = ottl_compile_condition(
            context, slice_of_string(conditions->items[i]), OTTL_PREFIX_OPTIONAL, &err);
        ottl_check_program(check, config_check_item(check, key, i), program, &err);
    }
}

static void check_ottl(struct config_check *check, const char *key,
                       const struct tail_ottl_condition *ottl)
{
    if (ottl->span.count == 0 && ottl->spanevent.count == 0)
        config_check_error(check, key, "expected at least one OTTL condition to filter on");
    check_conditions(check, config_check_key(check, key, "span"), &ottl->span, OTTL_SPAN);
    check_conditions(check, config_check_key(check, key, "spanevent"), &ottl->spanevent,
                     OTTL_SPAN_EVENT);
}

/* ---- what the Collector takes, too: warnings ---- */

static void check_latency(struct config_check *check, const char *key,
                          const struct tail_latency *latency)
{
    if (latency->upper_threshold_ms != 0 && latency->upper_threshold_ms <= latency->threshold_ms)
        config_check_warn(check, config_check_key(check, key, "upper_threshold_ms"),
                          "is not above threshold_ms, so no trace is sampled");
    else if (latency->threshold_ms < 0)
        config_check_warn(check, config_check_key(check, key, "threshold_ms"),
                          "is negative, so every trace is sampled");
}

static void check_span_count(struct config_check *check, const char *key,
                             const struct tail_span_count *count)
{
    if (count->max_spans != 0 && count->max_spans < count->min_spans)
        config_check_warn(check, config_check_key(check, key, "max_spans"),
                          "is below min_spans, so no trace is sampled");
    else if (count->max_spans == 0 && count->min_spans <= 1)
        config_check_warn(check, config_check_key(check, key, "min_spans"),
                          "is not above 1, so every trace is sampled");
}

static void check_percentage(struct config_check *check, const char *key, double percentage)
{
    if (percentage < 0)
        config_check_warn(check, config_check_key(check, key, "sampling_percentage"),
                          "is negative, so no trace is sampled");
    else if (percentage == 0)
        config_check_warn(check, config_check_key(check, key, "sampling_percentage"),
                          "is 0, so no trace is sampled");
    else if (percentage > 100)
        config_check_warn(check, config_check_key(check, key, "sampling_percentage"),
                          "is above 100, so every trace is sampled");
}

static void check_rate(struct config_check *check, const char *key, const char *name, int64_t rate)
{
    if (rate == 0)
        config_check_warn(check, config_check_key(check, key, name),
                          "is 0, so no trace is sampled");
}

/* Types whose settings have defaults: what they mean, and an example of what may be missing. */
static const struct {
    const char *means, *example;
} without_block[TAIL_LEAF_TYPES] = {
    [TAIL_LATENCY] = {"every trace of 1 ms or more is sampled", "threshold_ms: 500"},
    [TAIL_PROBABILISTIC] = {"no trace is sampled", "sampling_percentage: 10"},
    [TAIL_RATE_LIMITING] = {"no trace is sampled", "spans_per_second: 1000"},
    [TAIL_BYTES_LIMITING] = {"no trace is sampled", "bytes_per_second: 1000000"},
    [TAIL_SPAN_COUNT] = {"every trace is sampled", "min_spans: 2"},
    [TAIL_CPU_ABOVE] = {"every trace with CPU time is sampled", "threshold: 100ms"},
    [TAIL_CPU_SHARE_ABOVE] = {"every trace with CPU time is sampled", "threshold: 0.5"},
    [TAIL_SAMPLES_ABOVE] = {"every trace with a sample is sampled", "threshold: 10"},
};

static bool warn_without_block(struct config_check *check, const char *place, enum tail_type type,
                               const struct tail_leaf *leaf)
{
    if (without_block[type].means &&
        !config_check_is_written(check, config_check_key(check, place, leaf->type))) {
        config_check_warn(check, place, "has no settings, so %s; expected %s: {%s}",
                          without_block[type].means, leaf->type, without_block[type].example);
        return true;
    }
    return false;
}

/* ---- policies ---- */

void leaf_check(struct config_check *check, const char *place, enum tail_type type,
                const struct tail_leaf *leaf)
{
    const char *key = config_check_key(check, place, leaf->type);
    if (warn_without_block(check, place, type, leaf))
        return;
    switch (type) {
    case TAIL_LATENCY:
        check_latency(check, key, &leaf->latency);
        break;
    case TAIL_PROBABILISTIC:
        check_percentage(check, key, leaf->probabilistic.sampling_percentage);
        break;
    case TAIL_RATE_LIMITING:
        check_rate(check, key, "spans_per_second", leaf->rate_limiting.spans_per_second);
        break;
    case TAIL_BYTES_LIMITING:
        check_rate(check, key, "bytes_per_second", leaf->bytes_limiting.bytes_per_second);
        break;
    case TAIL_SPAN_COUNT:
        check_span_count(check, key, &leaf->span_count);
        break;
    case TAIL_CPU_SHARE_ABOVE:
        cpu_share_check(check, config_check_key(check, key, "threshold"),
                        leaf->cpu_share_above.threshold);
        break;
    case TAIL_NUMERIC_ATTRIBUTE:
        check_numeric(check, key, &leaf->numeric_attribute);
        break;
    case TAIL_STATUS_CODE:
        check_status(check, key, &leaf->status_code.status_codes);
        break;
    case TAIL_STRING_ATTRIBUTE:
        check_string(check, key, &leaf->string_attribute);
        break;
    case TAIL_BOOLEAN_ATTRIBUTE:
        check_match(check, key, leaf->boolean_attribute.key, NULL,
                    leaf->boolean_attribute.invert_match);
        break;
    case TAIL_TRACE_STATE:
        check_match(check, key, leaf->trace_state.key, &leaf->trace_state.values, false);
        break;
    case TAIL_OTTL_CONDITION:
        check_ottl(check, key, &leaf->ottl_condition);
        break;
    case TAIL_FUNCTION:
        if (!leaf->function.pattern || !leaf->function.pattern[0])
            config_check_error(check, key, "pattern is required");
        else
            ottl_check_pattern(check, config_check_key(check, key, "pattern"),
                               leaf->function.pattern);
        break;
    default:
        break;
    }
}
