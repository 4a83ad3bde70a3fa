/*
 * profile_measure: what the values of a Profile measure: CPU time, wall time, numbers of samples.
 *
 * CPU time is called `cpu`, `itimer` or `ctimer` (async-profiler's engines) and is in any unit of
 * time, or a number of samples whose period is CPU time. One upload often measures the same time in
 * several ways (Go: samples/count and cpu/nanoseconds). Each has a rank; only those of the lowest
 * rank in an upload count, so nothing counts twice.
 *
 * Profiles are of one upload if they are in the same scope, have samples and the same time, and are
 * near each other: a scope may have a million.
 *
 * Owner: plain values.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_DATA_PROFILE_MEASURE_H
#define PROFCOL_CORE_DATA_PROFILE_MEASURE_H

#include "core/base/slice.h"

/* The fields of a Profile that say what its values are. */
struct profile_values {
    struct slice type, unit, period_type, period_unit;
    int64_t period;
};

struct measured_time {
    int64_t ns_per_value; /* 0: not this kind of time */
    uint8_t rank;         /* lower counts before higher; 0: not this kind of time */
    bool is_wall;
};
/* Returns how values become nanoseconds of CPU time or wall time, or of whichever of the two they
 * are. Multiply by saturate_multiply. */
struct measured_time measured_cpu_time(const struct profile_values *values);
struct measured_time measured_wall_time(const struct profile_values *values);
struct measured_time measured_time_of(const struct profile_values *values);
/* Whether the other profile of the upload measures the same time, and counts instead. */
static inline bool measured_time_yields(struct measured_time own, struct measured_time other)
{
    return other.rank > 0 && other.rank < own.rank && other.is_wall == own.is_wall;
}

enum { PROFILE_UPLOAD_REACH = 16 };
struct profile_range {
    size_t begin, end;
};
/* Returns which profiles of a scope may be of one upload with profile i. i and count: only those
 * that have samples. */
static inline struct profile_range profile_upload_range(size_t i, size_t count)
{
    return (struct profile_range){
        i > PROFILE_UPLOAD_REACH ? i - PROFILE_UPLOAD_REACH : 0,
        count - i > PROFILE_UPLOAD_REACH ? i + PROFILE_UPLOAD_REACH + 1 : count,
    };
}

/* A profile of a scope. */
struct timed_profile {
    uint64_t time_ns; /* Profile.time_unix_nano */
    struct measured_time measured;
};
/* Returns the measure of profile i of a scope, zero if another one of its upload counts instead.
 * profiles: only those that have samples. */
struct measured_time timed_profile_settle(const struct timed_profile *profiles, size_t count,
                                          size_t i);

struct profile_measure {
    struct measured_time cpu;
    uint8_t counts; /* values are numbers of samples: 2: samples/count, 1: of other names; 0: not */
    bool has_period_type;
};
struct profile_measure profile_measure_of(const struct profile_values *values);

/* What a profile adds beside the others of its upload. Begin with a zeroed one. */
struct profile_role {
    bool yields_cpu;     /* another one has the CPU time */
    bool yields_samples; /* another one counts the samples */
};
/* Compares a profile with another one of its upload. is_later: it is after the other one.
 * same_period: their period types are equal, or they have none. */
void profile_role_compare(struct profile_role *role, const struct profile_measure *own,
                          const struct profile_measure *other, bool is_later, bool same_period);

/* What the samples of a profile add to totals. */
struct profile_sums {
    bool counts_samples;
    bool counts_values;    /* values are numbers of samples */
    int type_position;     /* of their sample type in totals, not of CPU time; -1: none */
    int64_t cpu_per_value; /* nanoseconds of CPU time for each unit of a value; 0: none */
};

#endif
