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

/* Returns bytes: the lowest limit of the cgroup (v2, v1) and its ancestors, at most the machine's
 * memory. */
size_t memory_limit_bytes(void);
/* For tests: returns the limit of the cgroups alone, with proc and sys in `root` ("": the real
 * ones); SIZE_MAX if there is none. */
size_t memory_limit_under(const char *root);

#endif
