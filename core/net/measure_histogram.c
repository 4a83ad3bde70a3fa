#include "core/net/measure_histogram.h"

struct histogram *measure_histogram_seconds(struct metrics *metrics, const char *name,
                                            const char *help, const char *labels)
{
    static const double bounds[] = {0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25,
                                    0.5,   0.75, 1,     2.5,  5,     7.5, 10};
    return metrics_histogram(metrics, name, help, labels, bounds, sizeof bounds / sizeof bounds[0]);
}

struct histogram *measure_histogram_bytes(struct metrics *metrics, const char *name,
                                          const char *help, const char *labels)
{
    static const double bounds[] = {0,   5,   10,   25,   50,   75,   100,  250,
                                    500, 750, 1000, 2500, 5000, 7500, 10000};
    return metrics_histogram(metrics, name, help, labels, bounds, sizeof bounds / sizeof bounds[0]);
}
