/*
 * thread_spans: which span ran on a thread at a time.
 *
 * For samples that name no span but a thread and times (docs/spanjoin.md, "By thread and time").
 * The span of a sample is the innermost one that covers its time on its thread. A span names the
 * thread on which it began. It may go on elsewhere; then it overlaps with spans of other traces, or
 * with siblings, and no sample is given to it.
 *
 * Processes are numbers of instances (instances.h). Thread ids are compared within one kind: those
 * of the operating system, and those of the runtime, such as Java's. A thread that a sample names
 * by the other kind is found if both ids were seen together (thread_spans_pair), else by its name,
 * if no other thread of the process has that name.
 *
 * Samples may have ids of another pid namespace than the spans: those of the host, of a program in
 * a container. Then the names of threads decide, and also whether they are of this process at all:
 * other processes of the container may send samples, too. It is the one with most samples that have
 * names of its threads, if others have very few.
 *
 * If the samples of a process have another clock than its spans, their times are moved by an
 * estimate (process_clocks.h). If the clocks differ and it is not sure by how much, no sample of
 * the process is given to a span.
 *
 * Spans of a process whose samples have not asked are kept in a log (thread_log.h), and sorted when
 * they ask for the first time; after a window without a question, they are in a log again.
 *
 * Spans stay for the window after their arrival. At the limit, the owner with the most spans loses
 * some in logs, then those of the thread that has been without new ones for the longest time.
 *
 * Owner: a span_index.
 *
 * Thread: any (it locks); called once for many spans or samples.
 */
#ifndef PROFCOL_CORE_DATA_THREAD_SPANS_H
#define PROFCOL_CORE_DATA_THREAD_SPANS_H

#include "core/data/span_records.h"
#include "core/data/thread_hash.h"

struct thread_spans;

/* Creates an empty table for so many spans. */
struct thread_spans *thread_spans_new(uint64_t max_spans);
void thread_spans_free(struct thread_spans *threads); /* NULL is allowed */

/* A span and the thread on which it began. */
struct thread_span {
    struct span_key key;
    uint8_t parent_id[SPAN_ID_SIZE]; /* all zero: none */
    uint64_t start_ns;               /* since 1970 */
    uint64_t end_ns;
    uint16_t instance; /* not 0 */
    uint16_t owner;    /* number of its source's owner */
    enum thread_id_kind kind;
    int64_t id;
    struct slice name; /* empty: none */
};
/* Adds spans of one request. now_ns: monotonic. arrived_ns: since 1970; 0: not known. */
void thread_spans_put(struct thread_spans *threads, const struct thread_span *spans, size_t count,
                      uint64_t now_ns, uint64_t arrived_ns);

/* The thread of a sample. */
struct sample_thread {
    bool has_id[THREAD_ID_RUNTIME + 1]; /* by kind */
    int64_t id[THREAD_ID_RUNTIME + 1];
    struct slice name; /* empty: none */
    uint16_t instance; /* that of the spans */
    uint16_t sampler;  /* that of the samples, if ids are of another pid namespace than those of the
                          spans; 0: they are not */
};

/* Returns a slot for what is remembered of a thread, by its address. Of threads that follow one
 * another in memory, each has its own. slots: a power of two. */
static inline size_t sample_thread_slot(const struct sample_thread *thread, size_t slots)
{
    enum { APART = 16 };
    _Static_assert(sizeof *thread % APART == 0 && sizeof *thread / APART % 2 == 1,
                   "an odd number of steps apart");
    return (uintptr_t)thread / APART & (slots - 1);
}

enum thread_answer {
    THREAD_NO_SPAN,
    THREAD_SPAN,
    THREAD_AMBIGUOUS, /* only spans that went on elsewhere; or the name is that of several threads;
                         or the clocks differ by an unknown time */
};

/* A question: which span ran on this thread at this time? Questions about the same struct
 * sample_thread that are near each other are cheap. */
struct thread_ask {
    const struct sample_thread *thread;
    uint64_t time_ns;          /* since 1970 */
    enum thread_answer answer; /* result */
    bool has_spans;            /* result: spans of its thread are known */
    bool by_name;              /* result: only its name tells which thread it is */
    struct span_key key;       /* result, with THREAD_SPAN */
};
/* Answers the questions of one request. arrived_ns: since 1970; 0: not known. now_ns: monotonic. */
void thread_spans_find(struct thread_spans *threads, struct thread_ask *asks, size_t count,
                       uint64_t arrived_ns, uint64_t now_ns);
/* Answers questions about samples that came before: they say nothing of clocks any more, nor of
 * whose samples those of a process are. */
void thread_spans_find_again(struct thread_spans *threads, struct thread_ask *asks, size_t count);

/* What is added to the times of a process's samples for the search. */
int64_t thread_spans_offset(struct thread_spans *threads, uint16_t instance);

/* By what samples may name the thread of a span: hashes (thread_hash.h) of its id, of others that
 * are known of it, and of its name if no other thread has it; 0: none. THREAD_HASH_NAMED is that of
 * its name, too, if samples may be of it that name it by nothing else. */
struct thread_handles {
    uint64_t hashes[THREAD_HASH_KINDS];
    int64_t offset_ns; /* of its process, as above */
};
void thread_spans_handles(struct thread_spans *threads, const struct thread_span *spans,
                          size_t count, struct thread_handles *handles_out);

/* Notes that both ids are those of one thread, if spans of it are known by one of them. */
void thread_spans_pair(struct thread_spans *threads, uint16_t instance, int64_t os_id,
                       int64_t runtime_id);

/* Frees spans that arrived more than window_ns ago. Call it regularly. */
void thread_spans_sweep(struct thread_spans *threads, uint64_t now_ns, uint64_t window_ns);
/* Returns the number of spans. */
uint64_t thread_spans_count(struct thread_spans *threads);
/* Returns how many there is room for. */
uint64_t thread_spans_limit(const struct thread_spans *threads);
/* The processes whose clocks of spans and samples differ. */
struct thread_clocks {
    uint32_t moved;   /* by seconds: times of samples are moved */
    uint32_t unclear; /* by an unknown time */
};
struct thread_clocks thread_spans_clocks(struct thread_spans *threads);
/* Returns the memory in bytes. */
size_t thread_spans_memory(struct thread_spans *threads);

#endif
