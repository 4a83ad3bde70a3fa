#include "connectors/count/count_shapes.h"

#include <assert.h>

static const struct shape event = {
    .number = SPAN_EVENTS,
    .kind = COUNTED_SPAN_EVENTS,
    .attributes = EVENT_ATTRIBUTES,
    .times = {EVENT_TIME_UNIX_NANO},
};

static const struct shape span = {
    .number = SCOPE_ITEMS,
    .kind = COUNTED_SPANS,
    .attributes = SPAN_ATTRIBUTES,
    .times = {SPAN_START_TIME_UNIX_NANO, SPAN_END_TIME_UNIX_NANO},
    .children = {&event},
};

static const struct shape sample = {
    .number = PROFILE_SAMPLES,
    .kind = COUNTED_SAMPLES,
    .attributes = SAMPLE_ATTRIBUTE_INDICES,
    .has_indices = true,
    .has_parents_time = true,
};

static const struct shape profile = {
    .number = SCOPE_ITEMS,
    .kind = COUNTED_PROFILES,
    .attributes = PROFILE_ATTRIBUTE_INDICES,
    .has_indices = true,
    .times = {PROFILE_TIME_UNIX_NANO},
    .children = {&sample},
};

static const struct shape log_record = {
    .number = SCOPE_ITEMS,
    .kind = COUNTED_LOGS,
    .attributes = LOG_RECORD_ATTRIBUTES,
    .times = {LOG_RECORD_TIME_UNIX_NANO},
};

#define POINT(PREFIX)                                                                              \
    {                                                                                              \
        .number = METRIC_DATA_DATA_POINTS, .kind = COUNTED_DATA_POINTS,                            \
        .attributes = PREFIX##_ATTRIBUTES, .times = {PREFIX##_TIME_UNIX_NANO},                     \
    }

static const struct shape number_point = POINT(NUMBER_POINT);
static const struct shape histogram_point = POINT(HISTOGRAM_POINT);
static const struct shape exponential_histogram_point = POINT(EXPONENTIAL_HISTOGRAM_POINT);
static const struct shape summary_point = POINT(SUMMARY_POINT);

static const struct shape gauge = {.number = METRIC_GAUGE, .children = {&number_point}};
static const struct shape sum = {.number = METRIC_SUM, .children = {&number_point}};
static const struct shape histogram = {.number = METRIC_HISTOGRAM, .children = {&histogram_point}};
static const struct shape exponential_histogram = {.number = METRIC_EXPONENTIAL_HISTOGRAM,
                                                   .children = {&exponential_histogram_point}};
static const struct shape summary = {.number = METRIC_SUMMARY, .children = {&summary_point}};

static const struct shape metric = {
    .number = SCOPE_ITEMS,
    .kind = COUNTED_METRICS,
    .children = {&gauge, &sum, &histogram, &exponential_histogram, &summary},
};

const struct shape *shape_of_signal(enum signal signal)
{
    static const struct shape *const shapes[SIGNAL_COUNT] = {[SIGNAL_TRACES] = &span,
                                                             [SIGNAL_PROFILES] = &profile,
                                                             [SIGNAL_METRICS] = &metric,
                                                             [SIGNAL_LOGS] = &log_record};
    assert(signal < SIGNAL_COUNT);
    return shapes[signal];
}
