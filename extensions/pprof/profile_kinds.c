#include "extensions/pprof/profile_kinds.h"

#include "core/base/cpu_sampler.h"
#include "core/base/heap_sampler.h"
#include "core/base/mutex_sampler.h"

#define SECOND_NS UINT64_C(1000000000)

const struct own_profile_kind profile_kind_cpu = {
    .columns = {{"samples", "count", 0, 1},
                {"cpu", "nanoseconds", 0, (double)SECOND_NS / CPU_SAMPLER_HZ}},
    .column_count = 2,
    .default_type = "cpu",
    .period_type = "cpu",
    .period_unit = "nanoseconds",
    .period = SECOND_NS / CPU_SAMPLER_HZ,
};
#define HEAP_KIND(DEFAULT)                                                                         \
    {                                                                                              \
        .columns = {{"alloc_objects", "count", HEAP_ALLOCATED_OBJECTS, 1},                         \
                    {"alloc_space", "bytes", HEAP_ALLOCATED_BYTES, 1},                             \
                    {"inuse_objects", "count", HEAP_OBJECTS_IN_USE, 1},                            \
                    {"inuse_space", "bytes", HEAP_BYTES_IN_USE, 1}},                               \
        .column_count = 4, .default_type = (DEFAULT), .period_type = "space",                      \
        .period_unit = "bytes", .period = HEAP_SAMPLER_PERIOD_BYTES,                               \
        .drop_frames = "memory_(alloc|zalloc|realloc|strdup|strndup|array|grow)"                   \
    }
const struct own_profile_kind profile_kind_heap = HEAP_KIND("inuse_space");
const struct own_profile_kind profile_kind_allocs = HEAP_KIND("alloc_space");
const struct own_profile_kind profile_kind_mutex = {
    .columns = {{"contentions", "count", MUTEX_WAITS, 1},
                {"delay", "nanoseconds", MUTEX_WAIT_NS, 1}},
    .column_count = 2,
    .default_type = "delay",
    .period_type = "contentions",
    .period_unit = "count",
    .period = 1,
};

const char profile_kinds_page[] =
    "Profiles of profcol itself, for go tool pprof and Pyroscope:\n"
    "\n"
    "/debug/pprof/profile?seconds=30  processor time, by function\n"
    "/debug/pprof/heap                allocations: in use now, and all since the start\n"
    "/debug/pprof/allocs              the same, all since the start first\n"
    "/debug/pprof/mutex               waits for mutexes, with mutex_profile_fraction\n"
    "                                 ?seconds=30 of these three: only what changes meanwhile\n"
    "/debug/pprof/cmdline             path of the program\n"
    "\n"
    "A C program has no goroutines, and no profile of what blocks.\n";
