/*
 * label_limits: limits how many values a label may have for a service.
 *
 * Pyroscope keeps a series for each set of labels, so an id in a label would overload its index.
 * When a label has reached its limit for a service, it is folded: further values are sent as
 * `other`. A value that does not appear for an hour is forgotten. The memory is bounded, and shared
 * by service: a service that sends very many labels and values is folded before others are
 * affected. Everything is stored under a keyed hash.
 *
 * Owner: the exporter's component.
 *
 * Thread: any (it locks); called once per request and value.
 */
#ifndef PROFCOL_PYROSCOPE_LABEL_LIMITS_H
#define PROFCOL_PYROSCOPE_LABEL_LIMITS_H

#include "core/base/metrics.h"
#include "core/base/slice.h"

struct label_limits;

/* Creates an empty table. max_values: 0: no limit. folded: counts the values that are not admitted.
 * label: of the component, for the log. Both must outlive the table. */
struct label_limits *label_limits_new(uint64_t max_values, struct counter *folded,
                                      const char *label);
void label_limits_free(struct label_limits *limits); /* NULL is allowed */

/* Whether the value may be sent. If it returns false, there are too many: send `other`. Counts
 * refused values, and logs the first time that a label of a service is folded. now_ns:
 * monotonic. */
bool label_limits_admit(struct label_limits *limits, struct slice service, struct slice label,
                        struct slice value, uint64_t now_ns);

#endif
