#include "exporters/file/file_sink.h"

#include "core/base/container_of.h"
#include "core/base/job.h"
#include "core/base/log.h"
#include "core/base/memory.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define RETRY_AFTER_NS INT64_C(1000000000)

enum { RECORDS_PER_WRITE = 512 }; /* a record has two vectors; IOV_MAX is 1024 */
enum { LARGE_BYTES = 1 << 20 };   /* records of this size or more are written by a job */

struct record_list {
    struct file_record *first; /* oldest */
    struct file_record *last;
    size_t size_bytes;
};

struct file_sink {
    atomic_uint references;
    struct file_sink_options options;
    bool stopped; /* write at once, without timers and jobs */
    struct record_list pending;
    struct timer flush;
    /* For the job, which owns the file until it returns: */
    struct job job;
    struct record_list being_written; /* empty: no job is in progress */
    bool is_written;                  /* the job has run */
    int fd; /* -1: it could not be reopened after a rotation; the next write tries again */
    bool regular;
    uint64_t size_bytes;
    uint64_t rotate_at_bytes;
};

/* ---- records ---- */

static struct slice record_body(const struct file_record *record)
{
    return record->buffer ? buffer_slice(record->buffer)
                          : slice_of(record->text.data, record->text.size);
}

size_t file_record_size(const struct file_record *record)
{
    return record_body(record).size + (record->has_length ? sizeof record->length : 0);
}

void file_record_deinit(struct file_record *record)
{
    buffer_unref(record->buffer);
    text_deinit(&record->text);
}

static void append_record(struct record_list *list, struct file_record *record)
{
    assert(!record->next);
    if (list->last)
        list->last->next = record;
    else
        list->first = record;
    list->last = record;
    list->size_bytes += file_record_size(record);
}

static struct record_list take_all(struct record_list *list)
{
    struct record_list taken = *list;
    *list = (struct record_list){0};
    return taken;
}

/* ---- opening and closing ---- */

static uint64_t rotation_size(const struct file_sink *sink)
{
    const struct rotation_settings *rotation = sink->options.rotation;
    return rotation->enabled && sink->regular ? rotation->max_megabytes << 20 : UINT64_MAX;
}

static bool open_file(struct file_sink *sink, bool truncate, struct error *err)
{
    const char *path = sink->options.path;
    struct stat status;
    sink->fd =
        open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (truncate ? O_TRUNC : 0), 0600);
    if (sink->fd < 0)
        return error_set(err, "cannot open %s: %s", path, strerror(errno));
    sink->regular = fstat(sink->fd, &status) == 0 && S_ISREG(status.st_mode);
    sink->size_bytes = sink->regular ? (uint64_t)status.st_size : 0;
    sink->rotate_at_bytes = rotation_size(sink);
    return true;
}

static void close_file(struct file_sink *sink)
{
    if (sink->fd >= 0)
        close(sink->fd);
    sink->fd = -1;
}

static struct file_sink *sink_ref(struct file_sink *sink)
{
    atomic_fetch_add_explicit(&sink->references, 1, memory_order_relaxed);
    return sink;
}

void file_sink_unref(struct file_sink *sink)
{
    if (atomic_fetch_sub_explicit(&sink->references, 1, memory_order_acq_rel) > 1)
        return;
    assert(!sink->pending.first && !sink->being_written.first);
    close_file(sink);
    free(sink);
}

/* ---- writing, on the owner's worker or in a job ---- */

static bool rotate(struct file_sink *sink, struct error *err)
{
    /* If the file cannot be renamed, it exceeds its size, so that no data is lost. */
    if (!rotate_file(sink->options.rotation, sink->options.path, sink->options.label)) {
        sink->rotate_at_bytes = sink->size_bytes + rotation_size(sink);
        return true;
    }
    close_file(sink);
    return open_file(sink, false, err);
}

/* Opens and rotates the file if a record of this size requires it. */
static bool make_room(struct file_sink *sink, size_t size, struct error *err)
{
    if (sink->fd < 0 && !open_file(sink, false, err))
        return false;
    if (sink->size_bytes > 0 && sink->size_bytes + size > sink->rotate_at_bytes)
        return rotate(sink, err);
    return true;
}

static int add_vectors(struct iovec *vectors, struct file_record *record)
{
    int count = 0;
    struct slice body = record_body(record);
    if (record->has_length)
        vectors[count++] = (struct iovec){record->length, sizeof record->length};
    vectors[count++] = (struct iovec){(void *)(uintptr_t)body.data, body.size};
    return count;
}

static void skip_written(struct iovec **vectors, int *count, size_t written)
{
    while (*count > 0 && written >= (*vectors)->iov_len) {
        written -= (*vectors)->iov_len;
        (*vectors)++;
        (*count)--;
    }
    assert(written == 0 || *count > 0);
    if (written > 0) {
        (*vectors)->iov_base = (uint8_t *)(*vectors)->iov_base + written;
        (*vectors)->iov_len -= written;
    }
}

/* Returns the number of bytes written; sets errno if that is fewer than all. */
static size_t write_vectors(int fd, struct iovec *vectors, int count)
{
    size_t total = 0;
    while (count > 0) {
        ssize_t n = writev(fd, vectors, count);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return total;
        total += (size_t)n;
        skip_written(&vectors, &count, (size_t)n);
    }
    return total;
}

/* Removes a partial record that a failed write left at the end, so that the file stays readable. */
static void cut_half_record(struct file_sink *sink)
{
    if (sink->regular && ftruncate(sink->fd, (off_t)sink->size_bytes) != 0)
        log_error(log_component(sink->options.label),
                  "Cannot remove an incomplete record; the file has a broken line",
                  LOG_TEXT("path", sink->options.path), LOG_TEXT("error", strerror(errno)));
}

/* Sets the verdicts of the records in [first, end), of which the first `written` bytes are in the
 * file. */
static void judge(struct file_sink *sink, struct file_record *first, const struct file_record *end,
                  size_t written, int error)
{
    struct verdict failed = verdict_ok;
    if (error != 0)
        failed = verdict_try_later(GRPC_UNAVAILABLE, RETRY_AFTER_NS, "%s: %s", sink->options.path,
                                   strerror(error));
    for (struct file_record *record = first; record != end; record = record->next) {
        size_t size = file_record_size(record);
        bool whole = error == 0 || size <= written;
        record->verdict = whole ? verdict_ok : failed;
        if (whole) {
            written -= size;
            sink->size_bytes += size;
        } else if (written > 0) {
            cut_half_record(sink);
            written = 0;
        }
    }
}

/* Writes the first records, as many as one call and the size limit of the file allow. Returns the
 * first one that is left. */
static struct file_record *write_some(struct file_sink *sink, struct file_record *first)
{
    struct iovec vectors[RECORDS_PER_WRITE * 2];
    struct file_record *end = first;
    struct error err;
    size_t total = 0;
    int count = 0;
    if (!make_room(sink, file_record_size(first), &err)) {
        first->verdict = verdict_try_later(GRPC_UNAVAILABLE, RETRY_AFTER_NS, "%s", err.text);
        return first->next;
    }
    assert(sink->fd >= 0); /* make_room */
    for (int n = 0; end && n < RECORDS_PER_WRITE; n++, end = end->next) {
        size_t size = file_record_size(end);
        if (end != first && sink->size_bytes + total + size > sink->rotate_at_bytes)
            break;
        count += add_vectors(vectors + count, end);
        total += size;
    }
    assert(end != first && count <= RECORDS_PER_WRITE * 2);
    size_t written = write_vectors(sink->fd, vectors, count);
    judge(sink, first, end, written, written < total ? errno : 0);
    return end;
}

static void write_records(struct file_sink *sink, struct file_record *record)
{
    while (record)
        record = write_some(sink, record);
}

/* ---- answering records ---- */

static void answer(struct file_record *record)
{
    struct file_sink *sink = record->sink;
    record->on_written(record);
    if (sink)
        file_sink_unref(sink);
}

static void on_answer(struct worker *worker, struct post *post)
{
    struct file_record *record = container_of(post, struct file_record, post);
    assert(worker == record->home);
    answer(record);
}

/* Calls on_written of the records. They may have the last references to the sink, so do not use it
 * afterwards. */
static void answer_records(const struct worker *owner, struct file_record *first)
{
    for (struct file_record *record = first, *next; record; record = next) {
        next = record->next;
        if (record->home == owner) {
            answer(record);
            continue;
        }
        record->post = (struct post){.on_post = on_answer};
        worker_post(record->home, &record->post);
    }
}

/* ---- scheduling writes, on the owner's worker ---- */

static void write_pending(struct file_sink *sink)
{
    struct record_list records = take_all(&sink->pending);
    write_records(sink, records.first);
    answer_records(sink->options.owner, records.first);
}

static void flush_soon(struct file_sink *sink)
{
    if (!timer_is_set(&sink->flush))
        worker_set_timer(sink->options.owner, &sink->flush, 0); /* at the end of this round */
}

static void write_beside_loop(struct job *job)
{
    struct file_sink *sink = container_of(job, struct file_sink, job);
    write_records(sink, sink->being_written.first);
    sink->is_written = true;
}

static void on_job_done(struct job *job, bool did_run)
{
    struct file_sink *sink = container_of(job, struct file_sink, job);
    assert(did_run && sink->is_written && !sink->stopped);
    struct record_list records = take_all(&sink->being_written);
    if (sink->pending.first)
        flush_soon(sink);
    answer_records(sink->options.owner, records.first);
}

static void on_flush(struct timer *timer)
{
    struct file_sink *sink = container_of(timer, struct file_sink, flush);
    assert(!sink->stopped && !sink->being_written.first);
    if (sink->pending.size_bytes < LARGE_BYTES) {
        write_pending(sink);
        return;
    }
    sink->being_written = take_all(&sink->pending);
    assert(sink->being_written.first && !sink->pending.first);
    sink->is_written = false;
    sink->job = (struct job){.run = write_beside_loop, .on_done = on_job_done};
    job_start(sink->options.owner, &sink->job);
}

static void take_record(struct file_sink *sink, struct file_record *record)
{
    append_record(&sink->pending, record);
    if (sink->stopped)
        write_pending(sink);
    else if (!sink->being_written.first)
        flush_soon(sink);
}

static void on_record(struct worker *worker, struct post *post)
{
    struct file_record *record = container_of(post, struct file_record, post);
    assert(worker == record->sink->options.owner);
    take_record(record->sink, record);
}

/* ---- public functions ---- */

struct file_sink *file_sink_open(const struct file_sink_options *options, struct error *err)
{
    struct file_sink *sink = memory_zalloc(sizeof *sink);
    atomic_init(&sink->references, 1);
    sink->options = *options;
    sink->flush.on_timer = on_flush;
    if (open_file(sink, options->truncate, err))
        return sink;
    file_sink_unref(sink);
    return NULL;
}

void file_sink_write(struct file_sink *sink, struct file_record *record)
{
    assert(worker_is_current(record->home) && record->on_written);
    record->sink = sink_ref(sink);
    if (record->home == sink->options.owner) {
        take_record(sink, record);
        return;
    }
    record->post = (struct post){.on_post = on_record};
    worker_post(sink->options.owner, &record->post);
}

void file_sink_take(struct file_sink *sink, struct file_record *record)
{
    assert(!record->sink && record->on_written);
    record->sink = sink_ref(sink);
    take_record(sink, record);
}

void file_record_answer(const struct worker *owner, struct file_record *record)
{
    assert(!record->sink && !record->next);
    answer_records(owner, record);
}

/* Ends the job and returns its records. Writes those that the job has not written. */
static struct record_list take_back_job(struct file_sink *sink)
{
    job_cancel(&sink->job);
    if (!sink->is_written)
        write_records(sink, sink->being_written.first);
    return take_all(&sink->being_written);
}

void file_sink_stop(struct file_sink *sink)
{
    const struct worker *owner = sink->options.owner;
    struct record_list earlier = {0};
    sink->stopped = true;
    worker_cancel_timer(sink->options.owner, &sink->flush);
    if (sink->being_written.first)
        earlier = take_back_job(sink);
    struct record_list records = take_all(&sink->pending);
    write_records(sink, records.first);
    answer_records(owner, earlier.first);
    answer_records(owner, records.first);
}
