/*
 * watched_file: a small file that is read again when it changes, such as a token that Kubernetes
 * replaces.
 *
 * libuv compares the file's status once a second, beside the loop, which also notices a symbolic
 * link that was replaced. The file is read a little later, so that a writer that truncates it first
 * can finish.
 *
 * Owner: the node of an extension; the contents belong to the file until the next change.
 *
 * Thread: its worker. watched_file_read on any.
 */
#ifndef PROFCOL_CORE_PIPELINE_WATCHED_FILE_H
#define PROFCOL_CORE_PIPELINE_WATCHED_FILE_H

#include "core/base/error.h"
#include "core/base/job.h"

struct watched_file {
    /* Set by watched_file_start: */
    struct worker *worker;
    const char *path;
    const char *label; /* for logs */
    /* The new contents, as a string of `size` bytes. They belong to the callee, which frees them.
     */
    void (*on_change)(struct watched_file *file, char *contents, size_t size);
    void *context; /* of on_change */
    /* Set by watched_file.c: */
    struct watched_status *status; /* NULL: a manual worker, which does not watch */
    struct timer settle;           /* from a change to the next reading */
    struct job job;
    bool is_reading;
    char *contents;
    size_t size;
    struct error err;
};

/* Reads a whole file of at most 1 MiB, as a string, which the caller frees. Returns NULL, with err
 * set, if it cannot be read. */
char *watched_file_read(const char *path, size_t *size_out, struct error *err);

/* Begins to watch; the caller has read the file once. `file` must exist until watched_file_stop. */
void watched_file_start(struct watched_file *file, struct worker *worker);
/* Does nothing if it was not started. */
void watched_file_stop(struct watched_file *file);

#endif
