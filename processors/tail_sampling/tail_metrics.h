/*
 * tail_metrics: what tail_sampling counts. Names that begin with otelcol_ are the Collector's.
 *
 * Owner: the process's registry owns the series, the component this struct.
 *
 * Thread: any; counters take the index of the worker.
 */
#ifndef PROFCOL_TAIL_SAMPLING_TAIL_METRICS_H
#define PROFCOL_TAIL_SAMPLING_TAIL_METRICS_H

#include "processors/tail_sampling/tail_settings.h"

/* What a policy says about a trace. */
enum tail_vote { VOTE_NOT_SAMPLED, VOTE_SAMPLED, VOTE_DROPPED, VOTE_ERROR, VOTE_COUNT };
/* Why a trace was decided before its time. */
enum tail_early { EARLY_NUM_TRACES, EARLY_MEMORY, EARLY_DRAIN, EARLY_COUNT };
/* What became of samples. */
enum tail_samples { SAMPLES_KEPT, SAMPLES_FOLDED, SAMPLES_DROPPED, SAMPLES_UNKNOWN, SAMPLES_COUNT };

struct tail_policy_metrics {
    struct counter *votes[VOTE_ERROR]; /* traces */
    struct counter *spans[VOTE_ERROR];
    struct counter *executions;
};

struct tail_metrics {
    struct tail_policy_metrics *policies;
    struct counter *decisions[VOTE_ERROR];
    struct counter *cached[2]; /* spans that followed a remembered decision: dropped, sampled */
    struct counter *new_traces;
    struct counter *too_large;
    struct counter *errors;
    struct counter *early[EARLY_COUNT];
    struct counter *pending_dropped; /* spans, at the end of the process */
    struct counter *dropped_refused;
    struct counter *dropped_stopped;
    struct counter *samples[SAMPLES_COUNT];
    struct counter *combined_samples;
    struct counter *early_profiles;
    struct histogram *late_age;
    struct histogram *removal_age;
};

/* Creates the series. */
void tail_metrics_init(struct tail_metrics *metrics, const struct component *component,
                       const struct tail_plan *plan);
void tail_metrics_deinit(struct tail_metrics *metrics);

#endif
