/*
 * tail_settings: the types of the settings of tail_sampling, and of the plan that is made of its
 * policies.
 *
 * The plan is a list of trees. Its leaves that look at spans or samples have a number, their bit in
 * the facts of a trace (trace_facts.h).
 *
 * Owner: the configuration's arena.
 *
 * Thread: read-only once the configuration is loaded.
 */
#ifndef PROFCOL_TAIL_SAMPLING_TAIL_SETTINGS_H
#define PROFCOL_TAIL_SAMPLING_TAIL_SETTINGS_H

#include "core/ottl/ottl.h"
#include "core/pipeline/component.h"

enum tail_type {
    TAIL_ALWAYS_SAMPLE,
    TAIL_LATENCY,
    TAIL_NUMERIC_ATTRIBUTE,
    TAIL_PROBABILISTIC,
    TAIL_STATUS_CODE,
    TAIL_STRING_ATTRIBUTE,
    TAIL_BOOLEAN_ATTRIBUTE,
    TAIL_RATE_LIMITING,
    TAIL_BYTES_LIMITING,
    TAIL_SPAN_COUNT,
    TAIL_TRACE_STATE,
    TAIL_TRACE_FLAGS,
    TAIL_OTTL_CONDITION,
    TAIL_CPU_ABOVE,
    TAIL_CPU_SHARE_ABOVE,
    TAIL_SAMPLES_ABOVE,
    TAIL_FUNCTION,
    TAIL_LEAF_TYPES, /* those before it contain no other policy */
    TAIL_AND = TAIL_LEAF_TYPES,
    TAIL_NOT,
    TAIL_DROP,
    TAIL_COMPOSITE,
    TAIL_TYPES
};

/* ---- as written ---- */

struct tail_latency {
    int64_t threshold_ms, upper_threshold_ms;
};
struct tail_numeric_attribute {
    const char *key;
    int64_t min_value, max_value;
    bool invert_match;
};
struct tail_probabilistic {
    const char *hash_salt;
    double sampling_percentage;
};
struct tail_status_code {
    struct config_strings status_codes;
};
struct tail_string_attribute {
    const char *key;
    struct config_strings values;
    bool enabled_regex_matching;
    int64_t cache_max_size;
    bool invert_match;
};
struct tail_boolean_attribute {
    const char *key;
    bool value;
    bool invert_match;
};
struct tail_rate_limiting {
    int64_t spans_per_second, burst_capacity;
};
struct tail_bytes_limiting {
    int64_t bytes_per_second, burst_capacity;
};
struct tail_span_count {
    int64_t min_spans, max_spans;
};
struct tail_trace_state {
    const char *key;
    struct config_strings values;
};
struct tail_ottl_condition {
    int error_mode;
    struct config_strings span, spanevent;
};
struct tail_cpu_above {
    int64_t threshold;
};
struct tail_cpu_share_above {
    double threshold;
};
struct tail_samples_above {
    uint64_t threshold;
};
struct tail_function {
    const char *pattern;
};

/* The blocks of a policy that are written, by their names. */
struct tail_leaf_given {
    bool latency, numeric_attribute, probabilistic, status_code, string_attribute,
        boolean_attribute, rate_limiting, bytes_limiting, span_count, trace_state, ottl_condition,
        cpu_above, cpu_share_above, samples_above, function;
};
struct tail_leaf {
    struct tail_leaf_given given;
    const char *name;
    const char *type;
    struct tail_latency latency;
    struct tail_numeric_attribute numeric_attribute;
    struct tail_probabilistic probabilistic;
    struct tail_status_code status_code;
    struct tail_string_attribute string_attribute;
    struct tail_boolean_attribute boolean_attribute;
    struct tail_rate_limiting rate_limiting;
    struct tail_bytes_limiting bytes_limiting;
    struct tail_span_count span_count;
    struct tail_trace_state trace_state;
    struct tail_ottl_condition ottl_condition;
    struct tail_cpu_above cpu_above;
    struct tail_cpu_share_above cpu_share_above;
    struct tail_samples_above samples_above;
    struct tail_function function;
};
struct tail_not {
    struct tail_leaf not_sub_policy;
};
struct tail_and_sub {
    struct tail_leaf leaf;
    struct tail_not not ;
    bool not_is_given;
};
struct tail_and {
    struct config_list and_sub_policy;
};
struct tail_drop {
    struct config_list drop_sub_policy;
};
struct tail_composite_sub {
    struct tail_leaf leaf;
    struct tail_and and;
    bool and_is_given;
};
struct tail_rate_allocation {
    const char *policy;
    int64_t percent;
};
struct tail_composite {
    int64_t max_total_spans_per_second;
    struct config_strings policy_order;
    struct config_list composite_sub_policy;
    struct config_list rate_allocation;
};
struct tail_written {
    struct tail_leaf leaf;
    struct tail_and and;
    struct tail_not not ;
    struct tail_drop drop;
    struct tail_composite composite;
    bool and_is_given, not_is_given, drop_is_given, composite_is_given;
};

/* ---- the plan ---- */

#define TAIL_NO_BIT UINT32_MAX

struct tail_policy {
    enum tail_type type;
    const char *name;
    const struct tail_leaf *leaf; /* its settings */
    uint32_t number;              /* of a leaf, among all */
    uint32_t bit;                 /* TAIL_NO_BIT: nothing of spans or samples is kept for it.
                                     ottl_condition has two: matched, failed */
    struct tail_policy *subs;     /* of and, not, drop, composite */
    uint32_t sub_count;
    uint64_t threshold;     /* of probabilistic */
    uint32_t limit;         /* of rates: the number of its state */
    int64_t max_per_second; /* of composite; of its parts: their share */
};

struct tail_plan {
    struct tail_policy *policies; /* drop policies first */
    uint32_t count;
    struct tail_policy **leaves; /* all, by number */
    uint32_t leaf_count, leaf_capacity;
    uint32_t bit_count;
    uint32_t limit_count;
    bool has_drop;
    bool reads_samples; /* a policy from the join */
};

enum tail_strategy { TAIL_TRACE_COMPLETE, TAIL_SPAN_INGEST };
enum tail_fate { TAIL_FOLD, TAIL_DROP_SAMPLE, TAIL_PASS };

struct tail_profiles {
    int otherwise;
    int unknown_trace;
    int64_t wait;
    struct config_strings fold_attributes;
};

struct tail_cache {
    uint64_t sampled_cache_size, non_sampled_cache_size;
};

struct tail_settings {
    int64_t decision_wait, decision_wait_after_root_received;
    uint64_t num_traces;
    uint64_t max_held_mib;
    bool block_on_overflow;
    uint64_t expected_new_traces_per_sec;
    struct tail_cache decision_cache;
    bool sample_on_first_match;
    int sampling_strategy;
    bool drop_pending_traces_on_shutdown;
    uint64_t maximum_trace_size_bytes;
    uint64_t num_shards;
    const char *tail_storage;
    struct config_list policies;
    struct tail_profiles profiles;
    struct tail_plan plan;
};

#endif
