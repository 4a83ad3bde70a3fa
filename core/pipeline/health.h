/*
 * health: the status of the whole process, of each pipeline and of the extensions, made of that of
 * their components as the Collector's extension healthcheckv2 does it.
 *
 *     process -> "extensions", "pipeline:traces" -> "receiver:otlp", "exporter:otlp_grpc"
 *
 * Owner: the caller's arena.
 *
 * Thread: any, while the graph exists.
 */
#ifndef PROFCOL_CORE_PIPELINE_HEALTH_H
#define PROFCOL_CORE_PIPELINE_HEALTH_H

#include "core/base/arena.h"
#include "core/pipeline/component_status.h"

struct component;
struct process;

struct health {
    const char *name;            /* "" for the process */
    struct component *component; /* NULL unless it is one */
    enum status_kind status;
    uint64_t since_ns;  /* since 1970: of an error its first occurrence, else the latest change */
    const char *error;  /* "" unless the status is an error */
    bool is_only_shown; /* the error is that of a reload, and says nothing of the data: the process
                           goes on as before, so that a restart would not help */
    struct health *children;
    size_t child_count;
};

/* Reads the status of everything. recoverable_first: a recoverable error counts more than a
 * permanent one. */
struct health *health_read(struct arena *arena, const struct process *process,
                           bool recoverable_first);
/* Returns the child of a pipeline ("traces/slow"), or of "extensions"; NULL if there is none. */
const struct health *health_find(const struct health *process, const char *scope);

#endif
