/*
 * profile_type: chooses the profile type under which Pyroscope stores a Profile.
 *
 * name:sample_type:sample_unit:period_type:period_unit, such as
 * process_cpu:cpu:nanoseconds:cpu:nanoseconds. CPU time gets the one type that Pyroscope's views
 * query, whatever its name and unit in the profiler (core/data/profile_measure.h). Profiles of
 * Pyroscope's SDKs keep their type. The table is in docs/pyroscope.md.
 *
 * Owner: slices point into the caller's arguments or to constants.
 *
 * Thread: any.
 */
#ifndef PROFCOL_PYROSCOPE_PROFILE_TYPE_H
#define PROFCOL_PYROSCOPE_PROFILE_TYPE_H

#include "core/data/profile_measure.h"

/* What determines the type of a Profile. */
struct profile_facts {
    struct slice name; /* its attribute __name__; empty: none */
    struct profile_values values;
    struct measured_time time; /* zero: none, or another one of its upload counts instead */
};

struct profile_type {
    struct slice name, sample_type, sample_unit, period_type, period_unit;
    int64_t scale; /* factor for the values */
};

/* All Profiles that were one pprof (otlp_profile_siblings). What they have in common is determined
 * once. */
struct profile_siblings {
    const struct profile_facts *facts;
    size_t count;
    bool is_named;
    struct slice name;
};

/* Returns the type of a profile, which is one of the siblings. */
struct profile_type profile_type_of(const struct profile_facts *profile,
                                    struct profile_siblings *siblings);

#endif
