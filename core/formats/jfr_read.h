/*
 * jfr_read: a JFR recording as profiles, the ones that Pyroscope's server makes of it.
 *
 * Read are the events of async-profiler, of Grafana's fork of it (Pyroscope's Java agent), and
 * those of the JDK that have the same names:
 *
 *     jdk.ExecutionSample              process_cpu cpu, unless the thread slept; in a recording of
 *                                      wall clock time also wall wall
 *     profiler.WallClockSample         wall wall; in such a recording process_cpu too, of running
 * ones jdk.ObjectAllocationInNewTLAB    memory alloc_in_new_tlab_objects, _bytes (of the whole
 * TLAB) jdk.ObjectAllocationOutsideTLAB  memory alloc_outside_tlab_objects, _bytes
 *     jdk.ObjectAllocationSample       memory alloc_sample_objects, _bytes
 *     jdk.JavaMonitorEnter             mutex contentions, delay
 *     jdk.ThreadPark                   block contentions, delay
 *     profiler.LiveObject              memory live
 *     profiler.Malloc                  memory malloc_objects, _bytes (profiler.Free takes none
 * away)
 *
 * An event without a stack is left out; jfr_stacks.h has what stacks become. Differently from
 * Pyroscope, delays are nanoseconds also where the recording's clock ticks otherwise, constants are
 * those of their own chunk, and a count is not what the wall clock event before it had.
 *
 * Owner: nothing is kept.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_FORMATS_JFR_READ_H
#define PROFCOL_CORE_FORMATS_JFR_READ_H

#include "core/base/error.h"
#include "core/formats/profiles_builder.h"
#include "core/formats/span_labels.h"

struct jfr_options {
    uint64_t time_unix_nano, duration_nano; /* both 0: what the recording says */
    uint32_t sample_rate_hz;   /* of cpu and wall; 0: what the recording says, else 100 */
    struct span_labels upload; /* ids that the upload as a whole names */
    struct budget *budget;     /* charged for what reading takes; may be NULL */
};

/* Into the builder's resource; labels_snapshot: see jfr_labels.h, may be empty. A recording that
 * was cut anywhere is an error. When the builder is full it stops, and profiles_builder_finish
 * tells.
 */
bool jfr_read(struct profiles_builder *builder, struct slice jfr, struct slice labels_snapshot,
              const struct jfr_options *options, struct error *err);

#endif
