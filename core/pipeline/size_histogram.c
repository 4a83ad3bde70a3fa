#include "core/pipeline/size_histogram.h"

struct histogram *size_histogram_items(struct metrics *metrics, const char *name, const char *help,
                                       const char *labels)
{
    static const double bounds[] = {10,   25,    50,    75,    100,   250,   500,  750,
                                    1000, 2000,  3000,  4000,  5000,  6000,  7000, 8000,
                                    9000, 10000, 20000, 30000, 50000, 100000};
    return metrics_histogram(metrics, name, help, labels, bounds, sizeof bounds / sizeof bounds[0]);
}

struct histogram *size_histogram_bytes(struct metrics *metrics, const char *name, const char *help,
                                       const char *labels)
{
    static const double bounds[] = {128,    256,     512,     1024,    2048,    4096,
                                    8192,   16384,   32768,   65536,   131072,  262144,
                                    524288, 1048576, 2097152, 4194304, 8388608, 16777216};
    return metrics_histogram(metrics, name, help, labels, bounds, sizeof bounds / sizeof bounds[0]);
}
