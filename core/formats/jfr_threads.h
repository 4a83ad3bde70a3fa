/*
 * jfr_threads: the threads of a recording's events, as attributes for the join
 * (core/data/sample_threads.h).
 *
 * A thread is a constant (java.lang.Thread) with the ids that Java and the operating system give
 * it, and its names. Each is read once in a chunk.
 *
 * Owner: the caller; all-zero but for builder and pools is empty; free it with jfr_threads_deinit.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_FORMATS_JFR_THREADS_H
#define PROFCOL_CORE_FORMATS_JFR_THREADS_H

#include "core/data/sample_threads.h"
#include "core/formats/jfr_pools.h"

struct jfr_threads {
    struct profiles_builder *builder;
    struct jfr_pools *pools; /* of the current chunk */
    /* `built` of a constant: 1 + index of the thread's attributes; 0: it has no such one */
    uint32_t (*attributes)[SAMPLE_THREAD_KEYS];
    uint32_t count, capacity;
    struct wire_writer name;
};

/* Call it before the events of each chunk. */
void jfr_threads_begin_chunk(struct jfr_threads *threads);
void jfr_threads_deinit(struct jfr_threads *threads);

/* Writes the attributes of an event's thread, and returns their number, at most SAMPLE_THREAD_KEYS;
 * 0 if the event names no thread that is known. */
size_t jfr_threads_attributes(struct jfr_threads *threads, const struct jfr_record *event,
                              uint32_t *attributes_out);

#endif
