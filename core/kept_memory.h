/*
 * kept_memory: decides how much freed memory the process keeps, so that the next request need not
 * get it from the system again.
 *
 * The allocator keeps a 64th of the memory limit. It also keeps free memory that lies between small
 * allocations still in use: after minutes of mixed requests of some MB, that can be as much as is
 * in use. So large allocations are mapped one by one and returned to the system when freed. Free
 * pages between allocations are returned while resident memory is above five eighths of the limit,
 * and whenever the process is idle.
 *
 * Owner: the process, which has one.
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
    uint64_t looked_ns;      /* time of the last call of kept_memory_look */
    uint64_t looked_cpu_ns;  /* processor time then */
    uint64_t quiet_since_ns; /* 0: busy, or returned already */
};

/* Sets the allocator's limits. Call it before the first thread starts. limit_bytes: the memory
 * limit of the process. */
void kept_memory_init(struct kept_memory *kept, size_t limit_bytes);
/* Returns free memory to the system if it is time to. Returns the delay until the next call, in
 * ns. */
uint64_t kept_memory_look(struct kept_memory *kept);

/* Returns the size in bytes from which an allocation is mapped by itself. */
size_t kept_memory_large_bytes(size_t limit_bytes);
/* Whether the process has too little room left to keep free memory. */
bool kept_memory_is_short(size_t resident_bytes, size_t limit_bytes);

#endif
