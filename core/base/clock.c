#include "core/base/clock.h"

#include <stdatomic.h>
#include <time.h>

static _Atomic uint64_t fixed_wall_ns;

static uint64_t read_clock(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t clock_monotonic_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t clock_wall_ns(void)
{
    uint64_t fixed = atomic_load_explicit(&fixed_wall_ns, memory_order_relaxed);
    return fixed ? fixed : read_clock(CLOCK_REALTIME);
}

void clock_fix_wall(uint64_t wall_ns)
{
    atomic_store_explicit(&fixed_wall_ns, wall_ns, memory_order_relaxed);
}
