#include "processors/tail_sampling/tail_fields.h"

#include "core/ottl/ottl_errors.h"
#include "processors/tail_sampling/tail_plan.h"

#define MIN_UNSET "-9223372036854775808"
#define MAX_UNSET "9223372036854775807"
#define NO_NEGATIVE .min = "0"

/* ---- policies ---- */

static const struct field latency_fields[] = {
    FIELD_INT(tail_latency, threshold_ms, "Shortest duration in ms, which itself is too short.",
              .fallback = "0"),
    FIELD_INT(tail_latency, upper_threshold_ms, "Longest duration in ms; 0: none.",
              .fallback = "0"),
    FIELD_END};
static const struct field numeric_fields[] = {
    FIELD_STRING(tail_numeric_attribute, key, "Attribute of a span or resource."),
    FIELD_INT(tail_numeric_attribute, min_value, "Lowest value; without it, only max_value counts.",
              .fallback = MIN_UNSET),
    FIELD_INT(tail_numeric_attribute, max_value,
              "Highest value; without it, only min_value counts.", .fallback = MAX_UNSET),
    FIELD_BOOL(tail_numeric_attribute, invert_match, "Samples traces that do not match.",
               .fallback = "false"),
    FIELD_END};
static const struct field probabilistic_fields[] = {
    FIELD_STRING(tail_probabilistic, hash_salt, "What the hash of the trace id begins with.",
                 .fallback = "default-hash-seed"),
    FIELD_DOUBLE(tail_probabilistic, sampling_percentage,
                 "Percentage of traces that is sampled; 100 and more: all.", .fallback = "0"),
    FIELD_END};
static const struct field status_fields[] = {
    FIELD_STRINGS(tail_status_code, status_codes, "Any of `OK`, `ERROR`, `UNSET`."), FIELD_END};
static const struct field string_fields[] = {
    FIELD_STRING(tail_string_attribute, key, "Attribute of a span or resource."),
    FIELD_STRINGS(tail_string_attribute, values, "Texts, or regular expressions."),
    FIELD_BOOL(tail_string_attribute, enabled_regex_matching,
               "`values` are regular expressions (RE2), which match anywhere.",
               .fallback = "false"),
    FIELD_INT(tail_string_attribute, cache_max_size, "Nothing is cached.", .fallback = "128",
              .ignored = true),
    FIELD_BOOL(tail_string_attribute, invert_match, "Samples traces that do not match.",
               .fallback = "false"),
    FIELD_END};
static const struct field boolean_fields[] = {
    FIELD_STRING(tail_boolean_attribute, key, "Attribute of a span or resource."),
    FIELD_BOOL(tail_boolean_attribute, value, "Its value.", .fallback = "false"),
    FIELD_BOOL(tail_boolean_attribute, invert_match, "Samples traces that do not match.",
               .fallback = "false"),
    FIELD_END};
static const struct field rate_fields[] = {
    FIELD_INT(tail_rate_limiting, spans_per_second, "Spans that pass in a second on average.",
              .fallback = "0", NO_NEGATIVE),
    FIELD_INT(
        tail_rate_limiting, burst_capacity,
        "Spans that may pass at once; 0: twice spans_per_second. A larger trace never passes.",
        .fallback = "0", NO_NEGATIVE),
    FIELD_END};
static const struct field bytes_fields[] = {
    FIELD_INT(tail_bytes_limiting, bytes_per_second, "Bytes that pass in a second on average.",
              .fallback = "0", NO_NEGATIVE),
    FIELD_INT(
        tail_bytes_limiting, burst_capacity,
        "Bytes that may pass at once; 0: twice bytes_per_second. A larger trace never passes.",
        .fallback = "0", NO_NEGATIVE),
    FIELD_END};
static const struct field span_count_fields[] = {
    FIELD_INT(tail_span_count, min_spans, "Fewest spans of a trace.", .fallback = "0"),
    FIELD_INT(tail_span_count, max_spans, "Most spans of a trace; 0: no limit.", .fallback = "0"),
    FIELD_END};
static const struct field trace_state_fields[] = {
    FIELD_STRING(tail_trace_state, key, "Key of the tracestate of a span."),
    FIELD_STRINGS(tail_trace_state, values, "Its values."), FIELD_END};
static const struct field ottl_fields[] = {
    FIELD_ENUM(tail_ottl_condition, error_mode,
               "What happens if a condition cannot be evaluated: it does not match, with a warning "
               "(ignore) or without (silent), or the policy has no vote (propagate).",
               ottl_error_modes, .fallback = "silent"),
    FIELD_STRINGS(tail_ottl_condition, span, "OTTL conditions on spans; any may match."),
    FIELD_STRINGS(tail_ottl_condition, spanevent, "OTTL conditions on events of spans."),
    FIELD_END};
static const struct field cpu_fields[] = {
    FIELD_DURATION(
        tail_cpu_above, threshold,
        "CPU time of the trace's samples, which is too little. docs/spanjoin.md says which "
        "types are CPU time.",
        .fallback = "0", NO_NEGATIVE),
    FIELD_END};
static const struct field cpu_share_fields[] = {
    FIELD_DOUBLE(tail_cpu_share_above, threshold,
                 "CPU time of the trace's samples, as a part of its duration (1: one processor).",
                 .fallback = "0", NO_NEGATIVE),
    FIELD_END};
static const struct field samples_fields[] = {
    FIELD_UINT(tail_samples_above, threshold, "Number of the trace's samples, which is too small.",
               .fallback = "0"),
    FIELD_END};
static const struct field function_fields[] = {
    FIELD_STRING(tail_function, pattern,
                 "Regular expression (RE2) for names of functions in the trace's stacks."),
    FIELD_END};

#define OF(type) "Of type `" type "`."
/* A block of settings that print-config leaves out where it is not written: a policy has one. */
#define LEAF(type, block, fields)                                                                  \
    FIELD_BLOCK(tail_leaf, type, block, fields, OF(#type),                                         \
                .given = FIELD_GIVEN(tail_leaf, given.type))
#define SUB(sub, type, block, fields)                                                              \
    FIELD_BLOCK(sub, type, block, fields, OF(#type), .given = FIELD_GIVEN(sub, type##_is_given))

const struct field tail_policy_fields[] = {
    FIELD_STRING(tail_leaf, name, "Name of the policy, for metrics."),
    FIELD_STRING(tail_leaf, type,
                 "What it decides by; the settings are in a block of the same name. From the "
                 "Collector: `always_sample`, `latency`, `numeric_attribute`, `probabilistic`, "
                 "`status_code`, `string_attribute`, `boolean_attribute`, `rate_limiting`, "
                 "`bytes_limiting`, `span_count`, `trace_state`, `trace_flags`, `ottl_condition`, "
                 "`and`, `not`, `drop`, `composite`. By the samples of the trace: `cpu_above`, "
                 "`cpu_share_above`, `samples_above`, `function`."),
    LEAF(latency, tail_latency, latency_fields),
    LEAF(numeric_attribute, tail_numeric_attribute, numeric_fields),
    LEAF(probabilistic, tail_probabilistic, probabilistic_fields),
    LEAF(status_code, tail_status_code, status_fields),
    LEAF(string_attribute, tail_string_attribute, string_fields),
    LEAF(boolean_attribute, tail_boolean_attribute, boolean_fields),
    LEAF(rate_limiting, tail_rate_limiting, rate_fields),
    LEAF(bytes_limiting, tail_bytes_limiting, bytes_fields),
    LEAF(span_count, tail_span_count, span_count_fields),
    LEAF(trace_state, tail_trace_state, trace_state_fields),
    LEAF(ottl_condition, tail_ottl_condition, ottl_fields),
    LEAF(cpu_above, tail_cpu_above, cpu_fields),
    LEAF(cpu_share_above, tail_cpu_share_above, cpu_share_fields),
    LEAF(samples_above, tail_samples_above, samples_fields),
    LEAF(function, tail_function, function_fields),
    FIELD_END};

static const struct field not_fields[] = {FIELD_BLOCK(tail_not, not_sub_policy, tail_leaf,
                                                      tail_policy_fields,
                                                      "The policy that is negated."),
                                          FIELD_END};
static const struct field and_sub_fields[] = {
    FIELD_BLOCK(tail_and_sub, leaf, tail_leaf, tail_policy_fields, "The policy.", .inlined = true),
    SUB(tail_and_sub, not, tail_not, not_fields), FIELD_END};
const struct field tail_and_fields[] = {
    FIELD_LIST(tail_and, and_sub_policy, tail_and_sub, and_sub_fields,
               "The policies that all have to sample; `not` may be among them."),
    FIELD_END};
static const struct field drop_fields[] = {
    FIELD_LIST(tail_drop, drop_sub_policy, tail_and_sub, and_sub_fields,
               "The policies that all have to sample for the trace to be dropped."),
    FIELD_END};
static const struct field composite_sub_fields[] = {
    FIELD_BLOCK(tail_composite_sub, leaf, tail_leaf, tail_policy_fields, "The policy.",
                .inlined = true),
    SUB(tail_composite_sub, and, tail_and, tail_and_fields), FIELD_END};
static const struct field allocation_fields[] = {
    FIELD_STRING(tail_rate_allocation, policy, "Name of a policy of the list."),
    FIELD_INT(tail_rate_allocation, percent,
              "Its part of max_total_spans_per_second; 0: the same for all.", .fallback = "0"),
    FIELD_END};
static const struct field composite_fields[] = {
    FIELD_INT(tail_composite, max_total_spans_per_second, "Spans that pass in a second.",
              .fallback = "0", NO_NEGATIVE),
    FIELD_STRINGS(tail_composite, policy_order,
                  "Names of the policies in the order in which they are asked; by default that of "
                  "the list."),
    FIELD_LIST(tail_composite, composite_sub_policy, tail_composite_sub, composite_sub_fields,
               "The policies. The first that samples decides, within its part of the rate."),
    FIELD_LIST(tail_composite, rate_allocation, tail_rate_allocation, allocation_fields,
               "Parts of the rate; a policy without one gets the same as if all had the same."),
    FIELD_END};
static const struct field policy_fields[] = {
    FIELD_BLOCK(tail_written, leaf, tail_leaf, tail_policy_fields, "The policy.", .inlined = true),
    SUB(tail_written, and, tail_and, tail_and_fields),
    SUB(tail_written, not, tail_not, not_fields),
    SUB(tail_written, drop, tail_drop, drop_fields),
    SUB(tail_written, composite, tail_composite, composite_fields),
    FIELD_END};

/* ---- the processor ---- */

static const char *const strategy_names[] = {"trace-complete", "span-ingest", NULL};
static const char *const otherwise_names[] = {"fold", "drop", NULL};
static const char *const unknown_names[] = {"fold", "drop", "pass", NULL};

static const struct field profiles_fields[] = {
    FIELD_ENUM(tail_profiles, otherwise,
               "What becomes of samples whose trace is not sampled. `fold`: they lose their link "
               "and what names one span or says when it ran, and equal ones are combined; totals "
               "stay exact. `drop`: they are removed.",
               otherwise_names, .fallback = "fold"),
    FIELD_ENUM(tail_profiles, unknown_trace,
               "What becomes of samples with a link to a trace of which no span has arrived.",
               unknown_names, .fallback = "pass"),
    FIELD_DURATION(tail_profiles, wait,
                   "How long a request waits for spans of traces that are not known. Traces that "
                   "are known are waited for until their decision.",
                   .fallback = "10s", .min = "0", .max = "8760h"),
    FIELD_STRINGS(tail_profiles, fold_attributes,
                  "Attributes that folded samples lose in addition to ids, times and durations of "
                  "spans."),
    FIELD_END};

static const struct field cache_fields[] = {
    FIELD_UINT(tail_cache, sampled_cache_size,
               "Ids of sampled traces that are remembered after `num_traces`; 0: none.",
               .fallback = "0", .max = "100000000"),
    FIELD_UINT(tail_cache, non_sampled_cache_size,
               "Ids of the others that are remembered after `num_traces`; 0: none.",
               .fallback = "0", .max = "100000000"),
    FIELD_END};

/* A reload may change all of them: see tail_rules.h. */
#define LIVE .is_live = true

const struct field tail_fields[] = {
    FIELD_DURATION(tail_settings, decision_wait,
                   "Time from the first span of a trace to the decision.", .fallback = "30s",
                   .min = "0", .max = "8760h", LIVE),
    FIELD_DURATION(tail_settings, decision_wait_after_root_received,
                   "Time from the root span to the decision, if that is earlier; 0: no difference.",
                   .fallback = "0", .min = "0", .max = "8760h", LIVE),
    FIELD_UINT(tail_settings, num_traces,
               "Traces that are known, over all workers, decided ones included. The oldest leaves; "
               "if it was not decided, it is decided early.",
               .fallback = "50000", .min = "1", .max = "100000000", LIVE),
    FIELD_UINT(
        tail_settings, max_held_mib,
        "Limit in MiB on waiting data, over all workers; above it, the oldest traces are "
        "decided early, and if what comes next accepts nothing, requests are refused. 0: half of "
        "the memory for requests.",
        .fallback = "0", .max = "16777216", LIVE),
    FIELD_BOOL(tail_settings, block_on_overflow,
               "Nothing waits here: the oldest trace is decided early instead.",
               .fallback = "false", .ignored = true, LIVE),
    FIELD_UINT(tail_settings, expected_new_traces_per_sec, "Tables grow when they have to.",
               .fallback = "0", .ignored = true, LIVE),
    FIELD_BLOCK(tail_settings, decision_cache, tail_cache, cache_fields,
                "How many decisions are remembered.", LIVE),
    FIELD_BOOL(tail_settings, sample_on_first_match, "Ask no further policy after one has sampled.",
               .fallback = "false", LIVE),
    FIELD_ENUM(
        tail_settings, sampling_strategy,
        "`trace-complete` decides after decision_wait, `span-ingest` also samples a trace as "
        "soon as its spans suffice.",
        strategy_names, .fallback = "trace-complete", LIVE),
    FIELD_BOOL(tail_settings, drop_pending_traces_on_shutdown,
               "Drop waiting traces at the end of the process; otherwise they are decided early.",
               .fallback = "false", LIVE),
    FIELD_UINT(tail_settings, maximum_trace_size_bytes,
               "A larger trace is not sampled, which is decided at once; 0: no limit.",
               .fallback = "0", LIVE),
    FIELD_UINT(tail_settings, num_shards, "All workers share the traces.", .fallback = "1",
               .min = "1", .max = "256", .ignored = true, LIVE),
    FIELD_STRING(tail_settings, tail_storage, "Not supported.", .unlisted = true, LIVE),
    FIELD_LIST(tail_settings, policies, tail_written, policy_fields,
               "The policies. One that drops counts more than all others; otherwise a trace is "
               "sampled if one of them samples it.",
               LIVE),
    FIELD_BLOCK(tail_settings, profiles, tail_profiles, profiles_fields,
                "Settings for profiles, which the Collector does not sample. A sample follows the "
                "trace of its link.",
                LIVE),
    FIELD_END};

/* ---- checks ---- */

static void check_join(const struct tail_settings *settings, struct config_check *check)
{
    const int64_t upload_interval_ns = 15 * INT64_C(1000000000);
    if (!settings->plan.reads_samples || !config_check_is_used(check))
        return;
    if (!config_check_pipeline(check, CONFIG_PROFILES))
        config_check_warn(check, "policies",
                          "policies read samples, but no profiles pipeline has this processor: "
                          "name the same id there");
    else if (settings->decision_wait <= upload_interval_ns)
        config_check_warn(check, "decision_wait",
                          "policies read samples, which arrive up to 15s after their spans: a "
                          "longer decision_wait sees them");
}

void tail_check(void *config, struct config_check *check)
{
    struct tail_settings *settings = config;
    if (settings->tail_storage && settings->tail_storage[0])
        config_check_error(
            check, "tail_storage",
            "is not supported: waiting spans are in memory, limited by max_held_mib");
    if (settings->policies.count == 0)
        config_check_warn(check, "policies", "there are no policies, so no trace is sampled");
    tail_plan_make(settings, check);
    check_join(settings, check);
}
