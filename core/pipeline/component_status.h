/*
 * component_status: whether a component works, as in the Collector's componentstatus.
 *
 * The graph sets the state of its life: starting, running, stopping. What can fail while the
 * process runs (a backend, a target, a file) is a source of its own. The component's status is that
 * of its life or, while it runs, the worst of its sources. A success costs one load and one compare
 * as long as the source works.
 *
 * All-zero structs are valid: the status is STATUS_NONE, without sources.
 *
 * Owner: the component owns its status (node.h); whoever reports owns the source, and removes it
 * before it frees it.
 *
 * Thread: any; a lock guards everything except the compare on success.
 */
#ifndef PROFCOL_CORE_PIPELINE_COMPONENT_STATUS_H
#define PROFCOL_CORE_PIPELINE_COMPONENT_STATUS_H

#include "core/base/list.h"
#include "core/base/verdict.h"

#include <pthread.h>
#include <stdatomic.h>

enum status_kind {
    STATUS_NONE,
    STATUS_STARTING,
    STATUS_OK,
    STATUS_RECOVERABLE_ERROR, /* may end by itself: a backend that does not answer */
    STATUS_PERMANENT_ERROR, /* somebody has to act: wrong credentials, a path that is not served */
    STATUS_FATAL_ERROR,     /* the process cannot start, or ends */
    STATUS_STOPPING,
    STATUS_STOPPED,
    STATUS_KIND_COUNT
};

enum { STATUS_ERROR_MAX = 512 };

/* A status since a time, in nanoseconds since 1970. error: "" unless the status is an error. */
struct status_event {
    enum status_kind status;
    uint64_t since_ns;
    char error[STATUS_ERROR_MAX];
};

struct component_status {
    pthread_mutex_t lock;
    struct status_event life;
    struct list sources;
};

enum { STATUS_ALL_SIGNALS = -1 };

struct status_source {
    struct list_link link; /* of the status's sources */
    struct component_status *owner;
    int signal;        /* enum signal, or STATUS_ALL_SIGNALS: whose pipelines it concerns */
    atomic_int status; /* OK, or one of the two errors that are not fatal */
    uint64_t since_ns;
    char *error;            /* the last one, also when it works again; NULL: none yet */
    uint64_t failed_ns;     /* when that was */
    uint64_t failures;      /* since it last worked */
    uint64_t down_since_ns; /* monotonic; valid if there are failures */
};

/* What a report to a source has changed. */
enum status_change { STATUS_UNCHANGED, STATUS_WENT_AWAY, STATUS_CAME_BACK };
struct status_outage {
    enum status_change change;
    uint64_t failures; /* that it has had, or had before it came back */
    uint64_t duration_ns;
};

/* Returns "StatusOK" and so on, the Collector's names. */
const char *status_name(enum status_kind status);
bool status_is_error(enum status_kind status);

/* Sets the state of the component's life. error: NULL unless it is an error. */
void component_status_set(struct component_status *status, enum status_kind life,
                          const char *error);
/* Reads the status in the pipelines of this signal; STATUS_ALL_SIGNALS: in all. Of several errors
 * that are equally bad, the one that began first counts. */
void component_status_read(struct component_status *status, int signal, struct status_event *out);
/* Copies the last error of any source for this signal, also if that works again. Returns its time
 * in nanoseconds since 1970; 0: there was none. */
uint64_t component_status_last_error(struct component_status *status, int signal,
                                     char out[STATUS_ERROR_MAX]);

/* Adds an all-zero source, which works, and removes it. Removing one that was not added does
 * nothing. */
void status_source_add(struct status_source *source, struct component_status *owner, int signal);
void status_source_remove(struct status_source *source);
/* Reports that it failed. kind: recoverable or permanent. The time of an error that repeats is that
 * of its first occurrence. */
void status_source_fail(struct status_source *source, enum status_kind kind, const char *error);
/* Reports that it works, but data was refused, by it or by others. Only component_status_last_error
 * returns the error. */
void status_source_refuse(struct status_source *source, const char *error);
/* Reports the outcome of a request to a backend: unless the verdict is about the data, it says
 * whether the backend works. Returns whether that has changed: to one caller, if several threads
 * report. */
struct status_outage status_source_settle(struct status_source *source,
                                          const struct verdict *verdict);

/* Internal to status_source_succeed. */
void status_source_recover(struct status_source *source);
/* Reports that it works. */
static inline void status_source_succeed(struct status_source *source)
{
    if (atomic_load_explicit(&source->status, memory_order_relaxed) != STATUS_OK)
        status_source_recover(source);
}

#endif
