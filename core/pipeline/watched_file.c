#include "core/pipeline/watched_file.h"

#include "core/base/container_of.h"
#include "core/base/log.h"
#include "core/base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { POLL_MS = 1000, FILE_MAX_BYTES = 1 << 20 };
#define SETTLE_NS UINT64_C(200000000)

/* libuv's handle, which outlives the watched_file until the loop has closed it. */
struct watched_status {
    uv_fs_poll_t poll;
    struct watched_file *file; /* NULL: stopped */
};

char *watched_file_read(const char *path, size_t *size_out, struct error *err)
{
    FILE *file = fopen(path, "re");
    if (!file) {
        error_set_system(err, errno);
        error_prefix(err, "%s", path);
        return NULL;
    }
    char *contents = memory_alloc(FILE_MAX_BYTES + 1);
    size_t size = fread(contents, 1, FILE_MAX_BYTES + 1, file);
    int failure = ferror(file) ? errno : 0;
    fclose(file);
    if (failure != 0 || size > FILE_MAX_BYTES) {
        free(contents);
        failure ? error_set_system(err, failure) : error_set(err, "larger than 1 MiB");
        error_prefix(err, "%s", path);
        return NULL;
    }
    contents = memory_realloc(contents, size + 1);
    contents[size] = '\0';
    *size_out = size;
    return contents;
}

static void run_reading(struct job *job)
{
    struct watched_file *file = container_of(job, struct watched_file, job);
    file->contents = watched_file_read(file->path, &file->size, &file->err);
}

static void on_read(struct job *job, bool did_run)
{
    struct watched_file *file = container_of(job, struct watched_file, job);
    assert(did_run && file->is_reading);
    char *contents = file->contents;
    file->is_reading = false;
    file->contents = NULL;
    if (contents)
        file->on_change(file, contents, file->size);
    else
        log_error(log_component(file->label),
                  "Cannot read the changed file; its last contents stay in use",
                  LOG_TEXT("error", file->err.text));
}

static void on_settled(struct timer *timer)
{
    struct watched_file *file = container_of(timer, struct watched_file, settle);
    if (file->is_reading) {
        worker_set_timer(file->worker, &file->settle, SETTLE_NS);
        return;
    }
    assert(worker_is_current(file->worker) && !file->contents);
    file->is_reading = true;
    file->job = (struct job){.run = run_reading, .on_done = on_read};
    job_start(file->worker, &file->job);
}

static void on_status(uv_fs_poll_t *poll, int status, const uv_stat_t *before, const uv_stat_t *now)
{
    struct watched_status *self = container_of(poll, struct watched_status, poll);
    (void)before;
    (void)now;
    if (self->file && status == 0) {
        worker_now(self->file->worker);
        worker_set_timer(self->file->worker, &self->file->settle, SETTLE_NS);
    } else if (self->file) {
        log_error(log_component(self->file->label),
                  "Cannot watch the file; its last contents stay in use",
                  LOG_TEXT("path", self->file->path), LOG_TEXT("error", uv_strerror(status)));
    }
}

void watched_file_start(struct watched_file *file, struct worker *worker)
{
    assert(worker_is_current(worker) && !file->worker && file->path && file->on_change);
    file->worker = worker;
    file->settle.on_timer = on_settled;
    if (worker->manual)
        return;
    file->status = memory_zalloc(sizeof *file->status);
    file->status->file = file;
    uv_fs_poll_init(&worker->loop, &file->status->poll);
    uv_fs_poll_start(&file->status->poll, on_status, file->path, POLL_MS);
    uv_unref((uv_handle_t *)&file->status->poll);
    /* It may have changed since the caller read it, before libuv has its first status. */
    worker_set_timer(worker, &file->settle, SETTLE_NS);
}

static void on_closed(uv_handle_t *handle)
{
    free(container_of((uv_fs_poll_t *)handle, struct watched_status, poll));
}

void watched_file_stop(struct watched_file *file)
{
    if (!file->worker)
        return;
    assert(worker_is_current(file->worker));
    if (file->status) {
        file->status->file = NULL;
        uv_close((uv_handle_t *)&file->status->poll, on_closed);
    }
    worker_cancel_timer(file->worker, &file->settle);
    if (file->is_reading)
        job_cancel(&file->job);
    free(file->contents);
    file->contents = NULL;
    file->status = NULL;
    file->worker = NULL;
}
