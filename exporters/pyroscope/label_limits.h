/*
 * label_limits: how many values a label may have for a service.
 *
 * Pyroscope keeps a series for each set of labels; an id that got into a label costs it its index.
 * A label that has as many values for a service as it may is folded: further ones are sent as
 * `other`. A value that does not come for an hour gives its place up. What is remembered is
 * bounded, and shared by service: one that sends a great many labels and values is folded
 * before others feel it. Everything is remembered by a keyed hash.
 *
 * Owner: the exporter's component.
 *
 * Thread: any, under a lock of its own: callers ask once per request and value.
 */
#ifndef PROFCOL_PYROSCOPE_LABEL_LIMITS_H
#define PROFCOL_PYROSCOPE_LABEL_LIMITS_H

#include "core/base/metrics.h"
#include "core/base/slice.h"

struct label_limits;

/* max_values: 0: no limit. folded: counts the values that are not admitted. label: of the
 * component, for the log. Both must outlive it. */
struct label_limits *label_limits_new(uint64_t max_values, struct counter *folded,
                                      const char *label);
void label_limits_free(struct label_limits *limits); /* NULL is allowed */

/* False: the value is one too many, send `other`. Counts that, and logs the first time that a label
 * of a service is folded. now_ns: monotonic. */
bool label_limits_admit(struct label_limits *limits, struct slice service, struct slice label,
                        struct slice value, uint64_t now_ns);

#endif
