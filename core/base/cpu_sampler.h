/*
 * cpu_sampler: counts the stacks that the threads of the process have while they use a processor.
 *
 * Each thread has a timer of its own CPU time, whose signal (SIGPROF) is handled on that thread:
 * the handler walks the stack and adds it to the thread's table. While nobody samples it costs
 * nothing. docs/profiling.md says what it costs otherwise.
 *
 *     cpu_sampler_start();              // false: somebody else samples
 *     ... cpu_sampler_look() every second ...
 *     cpu_sampler_stop();
 *     cpu_sampler_visit(...);
 *     cpu_sampler_release();
 *
 * Owner: the process, which has one. Whoever has started it owns it until the release.
 *
 * Thread: start from any; the rest from one thread at a time, of the owner's choice.
 */
#ifndef PROFCOL_CORE_BASE_CPU_SAMPLER_H
#define PROFCOL_CORE_BASE_CPU_SAMPLER_H

#include "core/base/stack_table.h"

enum { CPU_SAMPLER_HZ = 100 };

/* Begins to sample all threads. Returns false if somebody else samples. */
bool cpu_sampler_start(void);
/* Begins to sample threads that have started since; call it now and then. */
void cpu_sampler_look(void);
/* Ends the sampling. No handler runs afterwards. */
void cpu_sampler_stop(void);
/* After stop: calls `visit` for each stack of each thread, with the thread's name. values[0] of an
 * entry is the number of samples. Returns the number of samples that were lost for want of
 * memory. */
uint64_t cpu_sampler_visit(void (*visit)(void *context, const char *thread,
                                         const struct stack_entry *entry),
                           void *context);
/* After stop: frees the stacks, and lets the next one start. */
void cpu_sampler_release(void);

#endif
