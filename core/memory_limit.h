/*
 * memory_limit: how much memory this process may use.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_MEMORY_LIMIT_H
#define PROFCOL_CORE_MEMORY_LIMIT_H

#include <stddef.h>

/* Bytes: the limit of the cgroup (v2, v1), else the machine's memory. */
size_t memory_limit_bytes(void);

#endif
