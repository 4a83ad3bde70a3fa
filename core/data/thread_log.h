/*
 * thread_log: spans that name their threads, of a process whose samples have not asked for them.
 *
 * Samples of most processes name their spans, so that nobody asks on which thread a span ran.
 * Adding a span to a log costs a tenth of what sorting it into the timeline of its thread costs.
 * When the process asks, thread_spans sorts what the log has.
 *
 * A log keeps the last THREAD_LOG_SPANS_MAX spans of its process, so that asking for the first time
 * takes some milliseconds at most.
 *
 * Owner: thread_spans.
 *
 * Thread: whoever holds its lock.
 */
#ifndef PROFCOL_CORE_DATA_THREAD_LOG_H
#define PROFCOL_CORE_DATA_THREAD_LOG_H

#include "core/base/list.h"
#include "core/data/clock_search.h"
#include "core/data/span_records.h"
#include "core/data/thread_sampler.h"

enum { THREAD_LOG_SPANS_MAX = 16384 };

/* A span and the thread on which it began. */
struct logged_span {
    struct span_key key;
    uint8_t parent_id[SPAN_ID_SIZE];
    uint64_t start_ns;
    uint64_t end_ns;
    int64_t id;    /* of the thread */
    uint64_t name; /* hash of the process and the name of the thread; 0: it has none */
    uint8_t kind;  /* of the id */
};

struct thread_log_block {
    struct thread_log_block *next;
    uint64_t arrived_ns; /* its newest span; monotonic */
    uint32_t count;
    uint32_t capacity;
    struct logged_span spans[];
};

struct thread_log {
    struct list_link link; /* of its owner, those without new spans for the longest time first;
                              only while it has spans */
    uint16_t instance;
    uint16_t owner;
    bool is_asked;    /* spans are sorted when they arrive; the log is empty */
    bool is_used;     /* somebody asked since the last sweep */
    uint64_t used_ns; /* the last sweep that found it used; monotonic */
    uint32_t count;
    struct thread_sampler sampler;
    struct clock_lag lag;           /* of its spans */
    struct thread_log_block *first; /* the oldest one */
    struct thread_log_block *last;
};

/* The logs of all processes. All-zero is empty. */
enum { THREAD_LOG_PAGE = 256, THREAD_LOG_PAGES = 256 };
struct thread_logs {
    struct thread_log **pages[THREAD_LOG_PAGES]; /* by number of the process */
};

/* Returns the log of a process; NULL if it has none. */
struct thread_log *thread_logs_find(const struct thread_logs *logs, uint16_t instance);
/* The same; creates it if it has none. */
struct thread_log *thread_logs_open(struct thread_logs *logs, uint16_t instance, uint16_t owner);
/* Frees an empty log. */
void thread_logs_remove(struct thread_logs *logs, struct thread_log *log);
/* Frees the pages; the logs are removed before. */
void thread_logs_deinit(struct thread_logs *logs);
/* Returns the log with the next number, beginning at *number, and moves *number behind it; NULL at
 * the end. */
struct thread_log *thread_logs_next(const struct thread_logs *logs, uint32_t *number);

/* Returns room for a span, which is the newest one. now_ns: monotonic. */
struct logged_span *thread_log_add(struct thread_log *log, uint64_t now_ns);
/* Takes out the block with the oldest spans, which the caller frees; NULL: it is empty. */
struct thread_log_block *thread_log_pop(struct thread_log *log);

/* Returns the memory in bytes. */
size_t thread_logs_memory(const struct thread_logs *logs);

#endif
