/*
 * mutex_sampler: counts where threads wait for a mutex of the process, and how long.
 *
 * While nobody samples it costs nothing; otherwise a free mutex is taken as before, and only a wait
 * is measured. Read-write locks and condition variables are not counted.
 *
 * Owner: the process, which has one, in bounded memory.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_BASE_MUTEX_SAMPLER_H
#define PROFCOL_CORE_BASE_MUTEX_SAMPLER_H

#include "core/base/error.h"
#include "core/base/stack_table.h"

enum { MUTEX_WAITS, MUTEX_WAIT_NS }; /* values of an entry, from the start on */

/* Begins to sample one wait in `fraction`, at least 1, at random; each counts `fraction` times. If
 * somebody samples already, counts one user more, and the smaller fraction. Returns false, with err
 * set, if the calls cannot be redirected. */
bool mutex_sampler_start(uint32_t fraction, struct error *err);
/* The last user ends the sampling, and what was sampled is forgotten. */
void mutex_sampler_stop(void);
/* While it samples: returns a copy of what was counted so far, which the caller frees; NULL if
 * there is no memory. */
struct stack_table *mutex_sampler_copy(void);

#endif
