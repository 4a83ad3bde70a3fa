/*
 * share: how many of some things have a property, and whether chance explains that two such shares
 * differ.
 *
 * Owner: values only. Thread: any.
 */
#ifndef PROFCOL_CORE_DATA_SHARE_H
#define PROFCOL_CORE_DATA_SHARE_H

#include <stdbool.h>
#include <stdint.h>

/* So many of `known` samples are inside a span. */
struct share {
    int32_t inside;
    int32_t known;
};

static inline bool share_is_greater(struct share a, struct share b)
{
    return (int64_t)a.inside * b.known > (int64_t)b.inside * a.known;
}

/* Whether a share is so much smaller than another one that chance does not explain it: a test of
 * two proportions. deviations: standard deviations, squared. */
static inline bool share_is_worse(struct share share, struct share other, int deviations)
{
    if (share.known == 0 || other.known == 0 || !share_is_greater(other, share))
        return false;
    double mean = (double)(share.inside + other.inside) / (share.known + other.known);
    double apart = (double)other.inside / other.known - (double)share.inside / share.known;
    double variance = mean * (1 - mean) * (1.0 / share.known + 1.0 / other.known);
    return apart * apart > deviations * variance;
}

#endif
