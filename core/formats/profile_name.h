/*
 * profile_name: derives the name that Pyroscope gives a profile from its sample types.
 *
 * Pyroscope stores it as `__name__`, the first part of a profile type such as
 * process_cpu:cpu:nanoseconds:cpu:nanoseconds. SDKs that post to /ingest do not send it.
 *
 * Owner: slices point into the caller's arguments or to constants.
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

/* Returns `wall` if there is a sample type wall. Otherwise the first known display name (or type)
 * decides: process_cpu, memory, mutex, block or goroutines. Otherwise returns the last display name
 * or type. If there are no display names at all, Pyroscope's own types count: `samples` means
 * process_cpu, `contentions` and `delay` mean mutex. Returns an empty slice without types. */
struct slice profile_name(const struct sample_type_name *types, size_t count);

#endif
