/*
 * probabilistic_sampler: keeps a share of traces, chosen by their id, like the Collector's
 * processor of the same name; and of profiles the samples of these traces.
 *
 * trace_sampler.c decides, sample_spans.c and sample_profiles.c apply it. All instances with the
 * same settings keep the same traces, so that it needs no state.
 *
 * Owner: a node owns the batches that wait for a job (large_batches.h).
 *
 * Thread: that of the node; `sample` also in a job, for one batch at a time.
 */
#include "core/base/memory.h"
#include "core/pipeline/component_as.h"
#include "core/pipeline/large_batches.h"
#include "processors/probabilistic_sampler/sample_profiles.h"
#include "processors/probabilistic_sampler/sample_spans.h"

#include <math.h>
#include <stdlib.h>

enum { LARGE_BYTES = 1024 * 1024 }; /* a batch of this size is sampled in a job */

/* ---- settings ---- */

struct profiles_settings {
    int otherwise;
    int without_trace;
    struct config_strings fold_attributes;
};

struct sampler_settings {
    double sampling_percentage;
    uint64_t hash_seed;
    int mode;
    bool fail_closed;
    uint64_t sampling_precision;
    struct profiles_settings profiles;
    int attribute_source; /* of logs, as the next two */
    const char *from_attribute;
    const char *sampling_priority;
};

static const char *const mode_names[] = {"hash_seed", "equalizing", "proportional", NULL};
static const char *const otherwise_names[] = {"fold", "drop", NULL};
static const char *const without_trace_names[] = {"pass", "sample", NULL};
static const char *const source_names[] = {"traceID", "record", NULL};

static const struct field profiles_fields[] = {
    FIELD_ENUM(profiles_settings, otherwise,
               "What becomes of samples whose trace is not kept. `fold`: they lose their link and "
               "what names one span or says when it ran, and equal ones are combined; totals stay "
               "exact. `drop`: they are removed.",
               otherwise_names, .fallback = "fold"),
    FIELD_ENUM(profiles_settings, without_trace,
               "What becomes of samples without a trace. `sample`: stacks are kept with the "
               "probability of traces, and their values are divided by it, so that expected "
               "totals stay.",
               without_trace_names, .fallback = "pass"),
    FIELD_STRINGS(profiles_settings, fold_attributes,
                  "Attributes that folded samples lose in addition to ids, times and durations of "
                  "spans."),
    FIELD_END,
};

#define OF_LOGS "Of logs, which profcol only relays."

static const struct field sampler_fields[] = {
    FIELD_DOUBLE(sampler_settings, sampling_percentage,
                 "Percentage of traces that is kept; 100 and more: all.", .fallback = "0"),
    FIELD_UINT(sampler_settings, hash_seed,
               "Seed of the hash of `hash_seed`. All processors that should keep the same traces "
               "have the same one.",
               .fallback = "0", .max = "4294967295"),
    FIELD_ENUM(sampler_settings, mode,
               "`hash_seed`: by a hash of the trace id. The others are OpenTelemetry's consistent "
               "sampling: `equalizing` keeps at most the percentage of the original traces, "
               "`proportional` the percentage of what arrives.",
               mode_names, .fallback = "hash_seed"),
    FIELD_BOOL(sampler_settings, fail_closed,
               "Drop spans about which nothing can be decided: no trace id, or a tracestate that "
               "is not valid or contradicts the mode. Otherwise they are kept.",
               .fallback = "true"),
    FIELD_UINT(sampler_settings, sampling_precision,
               "Hexadecimal digits of a threshold in the tracestate.", .fallback = "4", .min = "1",
               .max = "14"),
    FIELD_BLOCK(sampler_settings, profiles, profiles_settings, profiles_fields,
                "Settings for profiles, which the Collector does not sample. A sample follows the "
                "trace of its link."),
    FIELD_ENUM(sampler_settings, attribute_source, OF_LOGS, source_names, .fallback = "traceID",
               .ignored = true),
    FIELD_STRING(sampler_settings, from_attribute, OF_LOGS, .ignored = true),
    FIELD_STRING(sampler_settings, sampling_priority, OF_LOGS, .ignored = true),
    FIELD_END,
};

static void check_settings(void *config, struct config_check *check)
{
    const struct sampler_settings *settings = config;
    double percentage = settings->sampling_percentage;
    if (!isfinite(percentage))
        config_check_error(check, "sampling_percentage", "sampling rate is invalid: %f%%",
                           percentage);
    else if (percentage < 0)
        config_check_error(check, "sampling_percentage", "sampling rate is negative: %f%%",
                           percentage);
    else if (percentage > 0 && (double)(float)percentage / 100 < 1.0 / (double)SAMPLING_LIMIT)
        config_check_error(check, "sampling_percentage", "sampling rate is too small: %g%%",
                           percentage);
    else if (percentage == 0 && !config_check_is_written(check, "sampling_percentage"))
        config_check_warn(check, "", "without sampling_percentage, nothing is kept");
    else if (percentage > 100)
        config_check_warn(check, "sampling_percentage", "above 100, everything is kept");
}

/* ---- nodes ---- */

enum { KEPT_SAMPLES, FOLDED_SAMPLES, DROPPED_SAMPLES, COMBINED_SAMPLES, SAMPLE_COUNTERS };

struct sampler_node {
    struct node node; /* first */
    struct large_batches batches;
    struct trace_sampler sampler;
    struct profile_sampling profiles;
    struct slice *fold_attributes;
    /* What `sample` has counted in the batch that is forwarded next. */
    struct sampled_counts spans;
    struct fold_result samples;
    struct counter *processed_spans;
    struct counter *sampled_traces[POLICIES][2];
    struct counter *profile_samples[SAMPLE_COUNTERS];
};

extern const struct component_type probabilistic_sampler_processor_type;

static struct sampler_node *node_of(struct node *node)
{
    return node_as(struct sampler_node, node, &probabilistic_sampler_processor_type);
}

static uint64_t sample(struct node *node, struct batch *batch)
{
    struct sampler_node *sampling = node_of(node);
    sampling->spans = (struct sampled_counts){0};
    sampling->samples = (struct fold_result){0};
    if (batch->signal == SIGNAL_TRACES)
        sample_spans(batch, &sampling->sampler, &sampling->spans);
    else
        sampling->samples = sample_profiles(batch, &sampling->sampler, &sampling->profiles);
    return 0;
}

static void count_spans(struct sampler_node *sampling)
{
    unsigned worker = sampling->node.worker->index;
    for (int policy = 0; policy < POLICIES; policy++)
        for (int kept = 0; kept < 2; kept++) {
            uint64_t count = sampling->spans.of[policy][kept];
            counter_add(sampling->sampled_traces[policy][kept], worker, count);
            counter_add(sampling->processed_spans, worker, count);
        }
}

static void count_samples(struct sampler_node *sampling)
{
    const struct fold_result *samples = &sampling->samples;
    unsigned worker = sampling->node.worker->index;
    counter_add(sampling->profile_samples[KEPT_SAMPLES], worker, samples->kept);
    counter_add(sampling->profile_samples[FOLDED_SAMPLES], worker, samples->folded);
    counter_add(sampling->profile_samples[DROPPED_SAMPLES], worker, samples->dropped);
    counter_add(sampling->profile_samples[COMBINED_SAMPLES], worker, samples->combined);
}

static void count_and_forward(struct node *node, struct batch *batch, uint64_t result)
{
    (void)result;
    if (batch->signal == SIGNAL_TRACES)
        count_spans(node_of(node));
    else
        count_samples(node_of(node));
    if (batch->items > 0)
        node_forward(node, batch);
    else
        batch_drop(batch, &verdict_ok); /* nothing is left to send: success */
}

static const struct batch_work sampling_work = {
    .work = sample, .forward = count_and_forward, .large_bytes = LARGE_BYTES};

static void sampler_consume(struct node *node, struct batch *batch)
{
    large_batches_add(&node_of(node)->batches, batch);
}

/* ---- start and stop ---- */

static struct counter *new_counter(const struct node *node, const char *name, const char *help,
                                   const char *key, const char *value)
{
    struct text labels = {0};
    metrics_label(&labels, "processor", node->component->id);
    if (key)
        metrics_label(&labels, key, value);
    struct counter *counter =
        metrics_counter(node->component->process->metrics, name, help, text_string(&labels));
    text_deinit(&labels);
    return counter;
}

static struct counter *traces_counter(const struct node *node, const char *policy, bool kept)
{
    struct text labels = {0};
    metrics_label(&labels, "processor", node->component->id);
    metrics_label(&labels, "policy", policy);
    metrics_label(&labels, "sampled", kept ? "true" : "false");
    struct counter *counter =
        metrics_counter(node->component->process->metrics,
                        "otelcol_processor_probabilistic_sampler_count_traces_sampled",
                        "Spans that were kept or not.", text_string(&labels));
    text_deinit(&labels);
    return counter;
}

static void start_counters(struct sampler_node *sampling)
{
    static const char *const fates[SAMPLE_COUNTERS] = {
        [KEPT_SAMPLES] = "kept", [FOLDED_SAMPLES] = "folded", [DROPPED_SAMPLES] = "dropped"};
    const struct node *node = &sampling->node;
    if (node->signal == SIGNAL_TRACES) {
        sampling->processed_spans =
            new_counter(node, "otelcol_processor_probabilistic_sampler_count_spans_processed",
                        "Spans about which it was decided.", NULL, NULL);
        for (int policy = 0; policy < POLICIES; policy++)
            for (int kept = 0; kept < 2; kept++)
                sampling->sampled_traces[policy][kept] =
                    traces_counter(node, sampler_policy_names[policy], kept);
        return;
    }
    for (int i = 0; i < COMBINED_SAMPLES; i++)
        sampling->profile_samples[i] =
            new_counter(node, "profcol_probabilistic_sampler_profile_samples",
                        "Samples that were kept, folded or dropped.", "decision", fates[i]);
    sampling->profile_samples[COMBINED_SAMPLES] =
        new_counter(node, "profcol_probabilistic_sampler_combined_profile_samples",
                    "Samples that folded samples became.", NULL, NULL);
}

static bool sampler_node_start(struct node *node, struct error *err)
{
    (void)err;
    const struct sampler_settings *settings = node->component->settings;
    const struct config_strings *keys = &settings->profiles.fold_attributes;
    struct sampler_node *sampling = node_of(node);
    sampling->sampler =
        trace_sampler_init((enum sampler_mode)settings->mode, settings->sampling_percentage,
                           (uint32_t)settings->hash_seed, (unsigned)settings->sampling_precision,
                           settings->fail_closed);
    sampling->fold_attributes = memory_array(keys->count + 1, sizeof *sampling->fold_attributes);
    for (size_t i = 0; i < keys->count; i++)
        sampling->fold_attributes[i] = slice_of_string(keys->items[i]);
    sampling->profiles = (struct profile_sampling){
        .otherwise = (enum otherwise)settings->profiles.otherwise,
        .without_trace = (enum without_trace)settings->profiles.without_trace,
        .fold_attributes = sampling->fold_attributes,
        .fold_attribute_count = keys->count,
    };
    start_counters(sampling);
    large_batches_init(&sampling->batches, node, &sampling_work);
    return true;
}

static bool sampler_is_idle(const struct node *node)
{
    return large_batches_is_empty(
        &node_as(const struct sampler_node, node, &probabilistic_sampler_processor_type)->batches);
}

static void sampler_node_stop(struct node *node)
{
    large_batches_stop(&node_of(node)->batches);
    free(node_of(node)->fold_attributes);
}

const struct component_type probabilistic_sampler_processor_type = {
    .config =
        {
            .name = "probabilistic_sampler",
            .section = CONFIG_PROCESSORS,
            .stability =
                {[CONFIG_TRACES] = STABILITY_BETA, [CONFIG_PROFILES] = STABILITY_DEVELOPMENT},
            .help = "Keeps a share of traces by their id, and of profiles the samples of these "
                    "traces.",
            .fields = sampler_fields,
            .config_size = sizeof(struct sampler_settings),
            .check = check_settings,
            .checks_despite_mistakes = true,
        },
    .component_size = sizeof(struct component),
    .node_size = sizeof(struct sampler_node),
    .node_start = sampler_node_start,
    .consume = sampler_consume,
    .is_idle = sampler_is_idle,
    .node_stop = sampler_node_stop,
};
