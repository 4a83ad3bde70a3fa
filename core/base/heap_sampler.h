/*
 * heap_sampler: counts where the process allocates memory, and what is not yet freed.
 *
 * On average one allocation in 512 KiB is sampled, as in Go: the distance between samples is
 * random, and each sample stands for as many allocations of its size as are needed on average to
 * hit one. All calls of the allocator count, also those of libraries (got_hook.h). Before the first
 * heap_sampler_start and after the last heap_sampler_stop it costs nothing.
 *
 * Owner: the process, which has one. Its memory is bounded; what finds no room is not sampled.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_BASE_HEAP_SAMPLER_H
#define PROFCOL_CORE_BASE_HEAP_SAMPLER_H

#include "core/base/error.h"
#include "core/base/stack_table.h"

enum { HEAP_SAMPLER_PERIOD_BYTES = 512 * 1024 };
enum { /* values of an entry; cumulative from the start; in use: allocated since, not yet freed */
       HEAP_ALLOCATED_OBJECTS,
       HEAP_ALLOCATED_BYTES,
       HEAP_OBJECTS_IN_USE,
       HEAP_BYTES_IN_USE,
};

/* Begins to sample, or counts one user more. Returns false, with err set, if the calls of the
 * allocator cannot be redirected. */
bool heap_sampler_start(struct error *err);
/* The last user ends the sampling, and what was sampled is forgotten. */
void heap_sampler_stop(void);
/* While it samples: returns a copy of what was counted so far, which the caller frees; NULL if
 * there is no memory. */
struct stack_table *heap_sampler_copy(void);

#endif
