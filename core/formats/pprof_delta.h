/*
 * pprof_delta: computes the difference between a cumulative pprof and the previous one.
 *
 *     struct pprof_delta *delta = pprof_delta_new(budget, pprof_delta_usual);
 *     if (pprof_delta_next(delta, pprof, &out, &err))  // out: a pprof again, for pprof_read
 *         pprof_delta_keep(delta);                     // it arrived: the next one begins here
 *     pprof_delta_free(delta);
 *
 * Two samples are the same when their stacks (functions, files, lines, addresses, mappings) and
 * their labels are. Values that count from the start of the process are replaced by the difference;
 * other values, such as inuse_space, stay. The first pprof has no difference. Neither has one with
 * a smaller value than before, because the process has restarted. If pprof_delta_keep is not called
 * for a pprof, the next difference covers both intervals. So nothing is lost if a pprof could not
 * be passed on.
 *
 * Everything except samples and duration is copied unchanged. Invalid pprofs are detected only if
 * they prevent computing a difference: read the result with pprof_read before you keep it.
 *
 * Owner: the caller; a hash and the values of each sample are kept and charged to the budget. One
 * delta may use at most a 32nd of the budget, or 1 MiB if that is more.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_FORMATS_PPROF_DELTA_H
#define PROFCOL_CORE_FORMATS_PPROF_DELTA_H

#include "core/base/error.h"
#include "core/data/wire_writer.h"

struct budget;
struct pprof_delta;

enum pprof_delta_kind {
    PPROF_DELTA_AS_IS,
    PPROF_DELTA_DIFFERENCE,
    PPROF_DELTA_LEAVE_OUT, /* set its values to 0 */
};
/* Returns PPROF_DELTA_DIFFERENCE for alloc_objects, alloc_space, contentions and delay,
 * PPROF_DELTA_AS_IS for all others. */
enum pprof_delta_kind pprof_delta_usual(struct slice sample_type);

/* Creates a delta without a previous pprof. kind_of returns the kind for the name of a sample
 * type. */
struct pprof_delta *pprof_delta_new(struct budget *budget,
                                    enum pprof_delta_kind (*kind_of)(struct slice sample_type));
void pprof_delta_free(struct pprof_delta *delta); /* NULL is allowed */

/* Appends the difference to `out`. pprof: plain bytes, not gzip. Returns false, with err set, if it
 * is not protobuf, if a sample does not have one value for each sample type, or if the budget has
 * no room. */
bool pprof_delta_next(struct pprof_delta *delta, struct slice pprof, struct wire_writer *out,
                      struct error *err);
/* Whether the last pprof had a previous one to compare with. */
bool pprof_delta_has_base(const struct pprof_delta *delta);
/* Makes the last pprof the one to compare the next one with. */
void pprof_delta_keep(struct pprof_delta *delta);

#endif
