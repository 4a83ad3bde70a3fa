#include "processors/tail_sampling/tail_metrics.h"

#include "core/base/memory.h"

#define COLLECTOR METRICS_COLLECTOR "processor_tail_sampling_"
#define OWN METRICS_OWN "tail_sampling_"

static const double age_bounds[] = {1, 2, 5, 10, 20, 30, 40, 60, 120, 300, 600, 1800, 3600};

struct label {
    const char *key, *value;
};

static struct counter *counter(const struct component *component, const char *name,
                               const char *help, const struct label *more, size_t count)
{
    struct text labels = {0};
    metrics_label(&labels, "processor", component->id);
    for (size_t i = 0; i < count; i++)
        metrics_label(&labels, more[i].key, more[i].value);
    struct counter *made =
        metrics_counter(component->process->metrics, name, help, text_string(&labels));
    text_deinit(&labels);
    return made;
}

static struct counter *plain(const struct component *component, const char *name, const char *help)
{
    return counter(component, name, help, NULL, 0);
}

static struct counter *by(const struct component *component, const char *name, const char *help,
                          const char *key, const char *value)
{
    struct label label = {key, value};
    return counter(component, name, help, &label, 1);
}

static const char *const decisions[VOTE_ERROR] = {"not_sampled", "sampled", "dropped"};
static const char *const sampled[VOTE_ERROR] = {"false", "true", "false"};

static void init_policy(struct tail_policy_metrics *metrics, const struct component *component,
                        const char *policy)
{
    for (int vote = 0; vote < VOTE_ERROR; vote++) {
        struct label labels[] = {
            {"policy", policy}, {"sampled", sampled[vote]}, {"decision", decisions[vote]}};
        metrics->votes[vote] = counter(component, COLLECTOR "count_traces_sampled",
                                       "Traces by what a policy said about them.", labels, 3);
        metrics->spans[vote] =
            counter(component, COLLECTOR "count_spans_sampled",
                    "Spans of the traces by what a policy said about them.", labels, 3);
    }
    metrics->executions = by(component, COLLECTOR "sampling_policy_execution_count",
                             "Traces about which a policy was asked.", "policy", policy);
}

/* As the Collector names policies of a processor with a name: tail_sampling/x has x.POLICY. */
static void init_policies(struct tail_metrics *metrics, const struct component *component,
                          const struct tail_plan *plan)
{
    const char *slash = strchr(component->id, '/');
    metrics->policies = memory_array(plan->count + 1, sizeof *metrics->policies);
    for (uint32_t i = 0; i < plan->count; i++) {
        struct text name = {0};
        text_printf(&name, "%s%s%s", slash ? slash + 1 : "", slash ? "." : "",
                    plan->policies[i].name);
        init_policy(&metrics->policies[i], component, text_string(&name));
        text_deinit(&name);
    }
}

static void init_samples(struct tail_metrics *metrics, const struct component *component)
{
    static const char *const fates[SAMPLES_COUNT] = {"kept", "folded", "dropped", "unknown"};
    for (int i = 0; i < SAMPLES_COUNT; i++)
        metrics->samples[i] =
            by(component, OWN "profile_samples",
               "Samples that were kept, folded or dropped with their trace; unknown: no span of "
               "their trace arrived.",
               "decision", fates[i]);
    metrics->combined_samples =
        plain(component, OWN "combined_profile_samples", "Samples that folded samples became.");
    metrics->early_profiles =
        plain(component, OWN "profiles_sent_early",
              "Waiting requests of profiles that left early because memory was short.");
}

static void init_losses(struct tail_metrics *metrics, const struct component *component)
{
    static const char *const causes[EARLY_COUNT] = {"num_traces", "memory", "drain"};
    for (int i = 0; i < EARLY_COUNT; i++)
        metrics->early[i] = by(component, OWN "decided_early",
                               "Traces that were decided before decision_wait on what was there.",
                               "cause", causes[i]);
    metrics->pending_dropped =
        plain(component, OWN "pending_dropped_spans",
              "Spans dropped at the end because of drop_pending_traces_on_shutdown.");
    metrics->dropped_refused =
        by(component, OWN "dropped", "Held spans and samples that were lost.", "reason", "refused");
    metrics->dropped_stopped =
        by(component, OWN "dropped", "Held spans and samples that were lost.", "reason", "stopped");
}

void tail_metrics_init(struct tail_metrics *metrics, const struct component *component,
                       const struct tail_plan *plan)
{
    struct text labels = {0};
    metrics_label(&labels, "processor", component->id);
    const char *text = text_string(&labels);
    size_t bounds = sizeof age_bounds / sizeof *age_bounds;
    init_policies(metrics, component, plan);
    for (int vote = 0; vote < VOTE_ERROR; vote++) {
        struct label more[] = {{"sampled", sampled[vote]}, {"decision", decisions[vote]}};
        metrics->decisions[vote] = counter(component, COLLECTOR "global_count_traces_sampled",
                                           "Traces by the decision.", more, 2);
    }
    for (int i = 0; i < 2; i++)
        metrics->cached[i] = by(component, COLLECTOR "early_releases_from_cache_decision",
                                "Spans that followed a decision that was remembered.", "sampled",
                                i ? "true" : "false");
    metrics->new_traces =
        plain(component, COLLECTOR "new_trace_id_received", "Traces whose first span arrived.");
    metrics->too_large = plain(component, COLLECTOR "traces_dropped_too_large",
                               "Traces not sampled because of maximum_trace_size_bytes.");
    metrics->errors = plain(component, COLLECTOR "sampling_policy_evaluation_error",
                            "Policies that could not be evaluated for a trace.");
    init_losses(metrics, component);
    init_samples(metrics, component);
    metrics->late_age =
        metrics_histogram(component->process->metrics, COLLECTOR "sampling_late_span_age",
                          "Seconds from the decision to a late span.", text, age_bounds, bounds);
    metrics->removal_age = metrics_histogram(
        component->process->metrics, COLLECTOR "sampling_trace_removal_age",
        "Seconds from the first span of a trace until it is forgotten.", text, age_bounds, bounds);
    text_deinit(&labels);
}

void tail_metrics_deinit(struct tail_metrics *metrics)
{
    free(metrics->policies);
    metrics->policies = NULL;
}
