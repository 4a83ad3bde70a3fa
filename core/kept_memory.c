#include "core/kept_memory.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS UINT64_C(1000000000)

enum {
    ARENAS = 2, /* of malloc */
    KEEP_PART = 64,
    KEEP_MIN_BYTES = 512 * 1024,
    KEEP_MAX_BYTES = 8 * 1024 * 1024,
    LARGE_PART = 1024,
    LARGE_MIN_BYTES = 64 * 1024,
    BUSY_LOOKS_PER_S = 10,
    QUIET_SHARE = 100, /* the process is idle below a hundredth of a processor */
    QUIET_S = 10,
};

static size_t clamp(size_t size, size_t low, size_t high)
{
    return size < low ? low : size > high ? high : size;
}

static size_t keep_bytes(size_t limit_bytes)
{
    return clamp(limit_bytes / KEEP_PART, KEEP_MIN_BYTES, KEEP_MAX_BYTES);
}

size_t kept_memory_large_bytes(size_t limit_bytes)
{
    return clamp(limit_bytes / LARGE_PART, LARGE_MIN_BYTES, keep_bytes(limit_bytes) / 2);
}

bool kept_memory_is_short(size_t resident_bytes, size_t limit_bytes)
{
    return resident_bytes > limit_bytes / 8 * 5;
}

static uint64_t read_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

/* Returns the resident memory in bytes, without mapped files, which the kernel can reclaim itself;
 * 0 if it is not known. */
static size_t resident_bytes(void)
{
    char text[128] = {0}, *at = text;
    int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t size = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0)
        close(file);
    if (size <= 0)
        return 0;
    strtoul(at, &at, 10); /* skips the total number of pages */
    unsigned long resident = strtoul(at, &at, 10), shared = strtoul(at, &at, 10);
    return resident > shared ? (resident - shared) * (size_t)sysconf(_SC_PAGESIZE) : 0;
}

/* By default, glibc returns the end of a heap to the system as soon as 128 KiB are free there, and
 * gets it back page by page for the next request. */
void kept_memory_init(struct kept_memory *kept, size_t limit_bytes)
{
    *kept = (struct kept_memory){.limit_bytes = limit_bytes};
    mallopt(M_ARENA_MAX, ARENAS);
    mallopt(M_TRIM_THRESHOLD, (int)(keep_bytes(limit_bytes) / ARENAS)); /* of each arena */
    mallopt(M_MMAP_THRESHOLD, (int)kept_memory_large_bytes(limit_bytes));
}

/* Whether the process has been idle long enough to return the memory that a burst left: malloc_trim
 * locks the heaps. Returns true once for each idle period. */
static bool has_been_quiet(struct kept_memory *kept, uint64_t now, bool is_busy)
{
    if (is_busy) {
        kept->quiet_since_ns = now;
        return false;
    }
    if (kept->quiet_since_ns == 0 || now - kept->quiet_since_ns < QUIET_S * SECOND_NS)
        return false;
    kept->quiet_since_ns = 0;
    return true;
}

uint64_t kept_memory_look(struct kept_memory *kept)
{
    uint64_t now = read_clock(CLOCK_MONOTONIC), cpu = read_clock(CLOCK_PROCESS_CPUTIME_ID);
    bool is_busy = cpu - kept->looked_cpu_ns > (now - kept->looked_ns) / QUIET_SHARE;
    if (has_been_quiet(kept, now, is_busy) ||
        (is_busy && kept_memory_is_short(resident_bytes(), kept->limit_bytes)))
        malloc_trim(0);
    kept->looked_ns = now;
    kept->looked_cpu_ns = read_clock(CLOCK_PROCESS_CPUTIME_ID); /* excludes the time of this call */
    return is_busy ? SECOND_NS / BUSY_LOOKS_PER_S : SECOND_NS;
}
