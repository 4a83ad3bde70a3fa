/*
 * profile_name: the name that Pyroscope gives a profile, from its sample types.
 *
 * What it stores as `__name__`, the first part of a profile type such as
 * process_cpu:cpu:nanoseconds:cpu:nanoseconds. SDKs that post to /ingest do not say it.
 *
 * Owner: slices point to what the caller gave, or to constants.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_FORMATS_PROFILE_NAME_H
#define PROFCOL_CORE_FORMATS_PROFILE_NAME_H

#include "core/base/slice.h"

struct sample_type_name {
    struct slice type, unit;
    struct slice display_name; /* of the upload's sample_type_config; empty: none */
};

/* `wall` with a sample type wall; else by the first whose display name (or type) is known:
 * process_cpu, memory, mutex, block, goroutines; else the last display name or type. Where there
 * is no display name at all Pyroscope's own count, for which `samples` are of the CPU, and
 * `contentions` and `delay` of mutexes. No types: empty. */
struct slice profile_name(const struct sample_type_name *types, size_t count);

#endif
