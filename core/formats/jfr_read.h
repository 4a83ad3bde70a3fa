/*
 * jfr_read: converts a JFR recording to the same profiles as Pyroscope's server does.
 *
 * It reads the events of async-profiler, of Grafana's fork of it (Pyroscope's Java agent), and
 * those of the JDK that have the same names:
 *
 *     jdk.ExecutionSample              process_cpu cpu, unless the thread slept;
 *                                      also wall wall, in a recording of wall clock time
 *     profiler.WallClockSample         wall wall; of running threads also process_cpu,
 *                                      in a recording of wall clock time
 *     jdk.ObjectAllocationInNewTLAB    memory alloc_in_new_tlab_objects, _bytes (whole TLAB)
 *     jdk.ObjectAllocationOutsideTLAB  memory alloc_outside_tlab_objects, _bytes
 *     jdk.ObjectAllocationSample       memory alloc_sample_objects, _bytes
 *     jdk.JavaMonitorEnter             mutex contentions, delay
 *     jdk.ThreadPark                   block contentions, delay
 *     profiler.LiveObject              memory live
 *     profiler.Malloc                  memory malloc_objects, _bytes (profiler.Free is ignored)
 *
 * Events without a stack are left out; jfr_stacks.h converts the stacks. Unlike in Pyroscope,
 * delays are always converted to nanoseconds, constants are those of their own chunk, and an event
 * without a count does not take that of the wall clock event before it.
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
    uint64_t time_unix_nano, duration_nano; /* both 0: as in the recording */
    uint32_t sample_rate_hz;   /* of cpu and wall; 0: as in the recording, otherwise 100 */
    struct span_labels upload; /* ids that the upload as a whole names */
    struct budget *budget;     /* charged for memory used while reading; may be NULL */
    unsigned added_threads;    /* which samples get the attributes of core/data/sample_threads.h
                                  (enum added_threads), and a timestamp and a value for each event */
};

/* Adds the recording to the builder's resource. labels_snapshot: see jfr_labels.h, may be empty.
 * Returns false, with err set, if the recording is invalid or truncated. If the builder is full,
 * reading stops, and profiles_builder_finish reports that. */
bool jfr_read(struct profiles_builder *builder, struct slice jfr, struct slice labels_snapshot,
              const struct jfr_options *options, struct error *err);

#endif
