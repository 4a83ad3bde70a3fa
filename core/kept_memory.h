/*
 * kept_memory: how much of what was freed the process keeps, so that it need not ask the system for
 * it again for the next request.
 *
 * The allocator keeps a 64th of the memory limit. More than that stays when small pieces that are
 * still in use lie between free ones: after minutes of mixed requests of some MB that can be as
 * much as is in use. So what is large is taken from the system by itself and given back at once,
 * and the pages in between are given back while resident memory is above five eighths of the limit,
 * and whenever the process is quiet.
 *
 * Owner: the process, one.
 *
 * Thread: main.
 */
#ifndef PROFCOL_CORE_KEPT_MEMORY_H
#define PROFCOL_CORE_KEPT_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kept_memory {
    size_t limit_bytes;
    uint64_t looked_ns;      /* the last look */
    uint64_t looked_cpu_ns;  /* processor time at it */
    uint64_t quiet_since_ns; /* 0: not quiet, or given back already */
};

/* Before the first thread starts. limit_bytes: the memory limit of the process. */
void kept_memory_init(struct kept_memory *kept, size_t limit_bytes);
/* Gives back what should be given back. Returns when to look again, in ns from now. */
uint64_t kept_memory_look(struct kept_memory *kept);

/* From how many bytes on an allocation is taken from the system by itself. */
size_t kept_memory_large_bytes(size_t limit_bytes);
/* Whether so much resident memory is too much to keep any. */
bool kept_memory_is_short(size_t resident_bytes, size_t limit_bytes);

#endif
