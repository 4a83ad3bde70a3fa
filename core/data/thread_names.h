/*
 * thread_names: the names that threads of processes have.
 *
 * A name is a hash, of a process and a text. Samples may know threads by their names only; what
 * they tell about a name is kept with it. Several threads may have one: then a name has a match
 * (thread_match.h) while samples with it vote.
 *
 * Threads are numbers; a thread has at most one name.
 *
 * Owner: thread_spans.
 *
 * Thread: whoever holds its lock.
 */
#ifndef PROFCOL_CORE_DATA_THREAD_NAMES_H
#define PROFCOL_CORE_DATA_THREAD_NAMES_H

#include "core/base/index_table.h"
#include "core/data/thread_match.h"

struct thread_name {
    uint64_t hash;
    uint32_t threads; /* that have it */
    uint32_t first;   /* number of one of them, from 1 */
    bool has_os_id;
    bool is_shared;             /* samples of several threads had it */
    int64_t os_id;              /* of the samples with this name */
    uint64_t sampled_ns;        /* the time of one of them */
    struct thread_match *match; /* NULL: nobody needs it */
    uint64_t match_used_ns;     /* the last sweep that found it used; monotonic */
    bool match_is_used;         /* since the last sweep */
    uint32_t next_free;
};

/* The name of a thread, and its neighbours among those that have it; numbers from 1, 0: none. */
struct named_thread {
    uint32_t name, next, previous;
};

/* All-zero is empty. */
struct thread_names {
    struct thread_name *items;
    uint32_t capacity;
    uint32_t used;
    uint32_t free;    /* number + 1 */
    uint32_t matches; /* names with one */
    struct index_table by_hash;
    struct named_thread *threads; /* by number */
    uint32_t thread_capacity;
};

/* Gives a thread a name, instead of the one that it has. hash: 0: none. */
void thread_names_set(struct thread_names *names, uint32_t thread, uint64_t hash);
/* Returns the name with this hash; NULL: no thread has it. Valid until the next thread_names_set.
 */
struct thread_name *thread_names_find(struct thread_names *names, uint64_t hash);
/* Returns the name of a thread; NULL: none. Likewise. */
struct thread_name *thread_names_of(struct thread_names *names, uint32_t thread);
/* Notes that a sample of a thread with this id of the operating system had the name at a time.
 * Returns whether samples with this name are of one thread, as far as is known. */
static inline bool thread_name_note(struct thread_name *name, int64_t os_id, uint64_t time_ns);
/* Returns the match of a name, which gets one if it has none; NULL: as many names as `most` have
 * one. Its places are those of threads. */
struct thread_match *thread_names_match(struct thread_names *names, struct thread_name *name,
                                        uint64_t most);
/* Frees matches that were not used for a window. */
void thread_names_sweep(struct thread_names *names, uint64_t now_ns, uint64_t window_ns);
/* No thread has a name any more. */
void thread_names_deinit(struct thread_names *names);
/* Returns the memory in bytes, without the struct itself. */
size_t thread_names_memory(const struct thread_names *names);

/* Does what thread_name_note does, if the sample before was of another thread. */
bool thread_name_note_other(struct thread_name *name, int64_t os_id, uint64_t time_ns);

static inline bool thread_name_note(struct thread_name *name, int64_t os_id, uint64_t time_ns)
{
    if (!name->has_os_id || name->os_id != os_id)
        return thread_name_note_other(name, os_id, time_ns);
    name->sampled_ns = time_ns;
    return !name->is_shared;
}

#endif
