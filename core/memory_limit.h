/*
 * memory_limit: how much memory this process may use.
 *
 * Owner: nothing is kept.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_MEMORY_LIMIT_H
#define PROFCOL_CORE_MEMORY_LIMIT_H

#include <stddef.h>

/* Bytes: the lowest limit of the cgroup (v2, v1) and those around it, else the machine's memory. */
size_t memory_limit_bytes(void);
/* For tests: of the cgroups alone, with proc and sys in `root` ("": the real ones); SIZE_MAX when
 * nothing limits. */
size_t memory_limit_under(const char *root);

#endif
