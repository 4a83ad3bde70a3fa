/*
 * sample_threads: the threads that readers add to samples for the join.
 *
 * Some formats name the thread and the time of each observation. Their readers add attributes with
 * these keys, and timestamps, if a join is behind them (core/pipeline/threads_behind.h), which
 * removes both (docs/architecture.md, "Threads of recordings").
 *
 * Owner: constants; results live in the arena.
 *
 * Thread: that of the batch.
 */
#ifndef PROFCOL_CORE_DATA_SAMPLE_THREADS_H
#define PROFCOL_CORE_DATA_SAMPLE_THREADS_H

#include "core/data/dictionary.h"

/* Which samples get them, as bits; none: no sample. */
enum added_threads {
    /* Samples that name no span get their thread and times, the others only their thread. */
    ADD_TIMES_OF_UNNAMED = 1,
    /* Samples that name a span get their thread and times. */
    ADD_TIMES_OF_NAMED = 2,
};

/* The id that the runtime gives to its thread (Java's), and that of the operating system: integers.
 */
#define SAMPLE_THREAD_RUNTIME_ID "profcol.thread.runtime_id"
#define SAMPLE_THREAD_OS_ID "profcol.thread.os_id"
#define SAMPLE_THREAD_NAME "profcol.thread.name"

enum { SAMPLE_THREAD_KEYS = 3 };
extern const struct slice sample_thread_keys[SAMPLE_THREAD_KEYS];

/* Whether it is one of them. */
bool sample_threads_is_key(struct slice key);
/* Whether a dictionary has any of these attributes. */
bool sample_threads_are_in(struct dictionary *dictionary);
/* Removes these attributes from all samples of a scanned, normalised request, and the timestamps of
 * samples that have one. Samples of a profile that are equal then become one. Returns the number of
 * samples that are left. Call batch_prune afterwards. */
uint32_t sample_threads_remove(struct message *root, struct dictionary *dictionary,
                               struct arena *arena);

#endif
