/*
 * file_exporter: every batch as one record of a file: a line of OTLP/JSON, or a length (4 bytes,
 * big-endian) and OTLP protobuf.
 *
 * A batch counts as delivered when write() has taken its record; if the disk is full, it is refused
 * with "try later" and what was half written is cut off again. Records that arrive in one round of
 * the loop are written together.
 *
 * Owner: the file belongs to a sink that the component and all records under way share.
 *
 * Thread: worker 0 writes; the others encode their records, post them there and get the verdict
 * posted back.
 */
#include "core/base/clock.h"
#include "core/base/container_of.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/data/json.h"
#include "core/net/compression.h"
#include "core/pipeline/component.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define RETRY_AFTER_NS INT64_C(1000000000)
#define DAY_NS (UINT64_C(86400) * 1000000000)
#define BACKUP_TIME_SIZE (sizeof "2026-01-31T23-59-59.000")

enum { RECORDS_PER_WRITE = 512 }; /* two vectors each: IOV_MAX is 1024 */

enum file_format { FORMAT_JSON, FORMAT_PROTO };
static const char *const format_names[] = {"json", "proto", NULL};

enum file_compression { FILE_COMPRESSION_NONE, FILE_COMPRESSION_ZSTD };
static const char *const file_compression_names[] = {"none", "zstd", NULL};

struct rotation_settings {
    bool enabled;
    uint64_t max_megabytes;
    uint64_t max_days;
    uint64_t max_backups;
    bool localtime;
};

struct file_settings {
    const char *path;
    int format;
    bool append;
    int compression;
    int64_t flush_interval;
    struct rotation_settings rotation;
    bool create_directory;
    const char *directory_permissions;
    const struct config_node *encoding;
    const struct config_node *group_by;
    mode_t directory_mode; /* derived from directory_permissions */
};

static const struct field rotation_fields[] = {
    FIELD_UINT(rotation_settings, max_megabytes, "Size in MiB at which a new file is started.",
               .fallback = "100", .min = "1"),
    FIELD_UINT(rotation_settings, max_days, "Days after which old files are deleted; 0 keeps them.",
               .fallback = "0"),
    FIELD_UINT(rotation_settings, max_backups, "Old files that are kept; 0 keeps all.",
               .fallback = "100"),
    FIELD_BOOL(rotation_settings, localtime, "Name old files by local time instead of UTC.",
               .fallback = "false"),
    FIELD_END,
};

static const struct field file_fields[] = {
    FIELD_STRING(file_settings, path, "The file to write.", .required = true),
    FIELD_ENUM(file_settings, format,
               "One OTLP/JSON object per line, or OTLP protobuf messages, each preceded by its "
               "length (4 bytes, big-endian).",
               format_names, .fallback = "json"),
    FIELD_BOOL(file_settings, append, "Append to an existing file instead of truncating it.",
               .fallback = "false"),
    FIELD_ENUM(file_settings, compression,
               "Compress each record on its own; every record is then preceded by its length.",
               file_compression_names, .fallback = "none"),
    FIELD_DURATION(
        file_settings, flush_interval,
        "Every record is written at once, because a batch counts as delivered only then.",
        .fallback = "1s", .ignored = true),
    FIELD_OPTIONAL(file_settings, rotation, rotation_settings, rotation_fields,
                   "Start a new file at a size and delete old ones."),
    FIELD_BOOL(file_settings, create_directory,
               "Create the directory of `path` when it is missing.", .fallback = "false"),
    FIELD_STRING(file_settings, directory_permissions, "Permissions of a created directory, octal.",
                 .fallback = "0755"),
    FIELD_NODE(file_settings, encoding, "Encoding extensions are not supported; use `format`."),
    FIELD_NODE(file_settings, group_by,
               "Writing one file per resource attribute is not supported."),
    FIELD_END,
};

struct file_sink {
    atomic_uint references;
    struct worker *owner;
    const struct file_settings *settings;
    const char *label;
    int fd; /* -1: could not be reopened after a rotation; tried again with the next write */
    bool regular;
    bool stopped; /* no more timers: write at once */
    uint64_t size_bytes;
    uint64_t rotate_at_bytes;
    struct file_record *pending; /* oldest first */
    struct file_record *pending_last;
    struct timer flush;
};

struct file_exporter {
    struct component component;
    struct file_sink *sink;
};

struct file_node {
    struct node node;
    struct file_record *under_way; /* not yet settled */
    struct counter *sent;
    struct counter *send_failed;
};

struct file_record {
    struct post post;
    struct file_sink *sink; /* one reference */
    struct worker *home;    /* whose node and batch these are; only it touches them */
    struct file_node *node; /* NULL: given up when the node was stopped */
    struct batch *batch;
    struct file_record *next_under_way;
    struct file_record **link_under_way;
    struct file_record *next_pending;
    struct text text;      /* what is written: this, */
    struct buffer *buffer; /* or this */
    bool has_length;
    uint8_t length[4];
    struct verdict verdict;
};

/* ---- settings ---- */

static void check_settings(void *config, struct config_check *check)
{
    struct file_settings *settings = config;
    char *end;
    unsigned long mode = strtoul(settings->directory_permissions, &end, 8);
    if (*end != '\0' || end == settings->directory_permissions || mode > 0777)
        config_check_error(check, "directory_permissions",
                           "\"%s\" is not an octal mode such as 0755",
                           settings->directory_permissions);
    settings->directory_mode = (mode_t)(mode & 0777);
    if (settings->append && settings->rotation.enabled)
        config_check_error(check, "append", "append and rotation cannot be used together");
    if (settings->append && settings->compression != FILE_COMPRESSION_NONE)
        config_check_error(check, "append", "append and compression cannot be used together");
    config_check_refuse(check, settings->encoding, "encoding",
                        "encoding extensions are not supported; use format: json or proto");
    config_check_refuse(
        check, settings->group_by, "group_by",
        "group_by is not supported: profcol writes one file; use one file exporter per path");
}

/* ---- the file ---- */

static bool create_directories(const char *path, mode_t mode, struct error *err)
{
    char directory[PATH_MAX];
    if ((size_t)snprintf(directory, sizeof directory, "%s", path) >= sizeof directory)
        return error_set(err, "%s: %s", path, strerror(ENAMETOOLONG));
    for (char *slash = strchr(directory + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(directory, mode) != 0 && errno != EEXIST)
            return error_set(err, "cannot create %s: %s", directory, strerror(errno));
        *slash = '/';
    }
    return true;
}

static uint64_t rotation_size(const struct file_sink *sink)
{
    const struct rotation_settings *rotation = &sink->settings->rotation;
    return rotation->enabled && sink->regular ? rotation->max_megabytes << 20 : UINT64_MAX;
}

static bool sink_open(struct file_sink *sink, bool truncate, struct error *err)
{
    const char *path = sink->settings->path;
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

static void sink_close(struct file_sink *sink)
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

static void sink_unref(struct file_sink *sink)
{
    if (atomic_fetch_sub_explicit(&sink->references, 1, memory_order_acq_rel) > 1)
        return;
    assert(!sink->pending);
    sink_close(sink);
    free(sink);
}

/* ---- rotation: PATH-WITHOUT-EXTENSION-TIME.EXTENSION, as lumberjack names old files ---- */

struct backup_name {
    char directory[PATH_MAX];
    char prefix[NAME_MAX + 2]; /* with the dash */
    char extension[NAME_MAX + 1];
};

static void split_path(const char *path, struct backup_name *name)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    if (!dot)
        dot = base + strlen(base);
    if (slash == path)
        strcpy(name->directory, "/");
    else
        snprintf(name->directory, sizeof name->directory, "%.*s", slash ? (int)(slash - path) : 1,
                 slash ? path : ".");
    snprintf(name->prefix, sizeof name->prefix, "%.*s-", (int)(dot - base), base);
    snprintf(name->extension, sizeof name->extension, "%s", dot);
}

static void print_backup_time(char *to, uint64_t wall_ns, bool local)
{
    time_t seconds = (time_t)(wall_ns / 1000000000);
    struct tm tm;
    if (local)
        localtime_r(&seconds, &tm);
    else
        gmtime_r(&seconds, &tm);
    size_t size = strftime(to, BACKUP_TIME_SIZE, "%Y-%m-%dT%H-%M-%S", &tm);
    snprintf(to + size, BACKUP_TIME_SIZE - size, ".%03u", (unsigned)(wall_ns / 1000000 % 1000));
}

/* Moves the file out of the way, to a name that is free. */
static bool rename_to_backup(const struct file_sink *sink, const struct backup_name *name)
{
    for (uint64_t wall_ns = clock_wall_ns();; wall_ns += 1000000) {
        char stamp[BACKUP_TIME_SIZE], path[PATH_MAX * 2];
        print_backup_time(stamp, wall_ns, sink->settings->rotation.localtime);
        snprintf(path, sizeof path, "%s/%s%s%s", name->directory, name->prefix, stamp,
                 name->extension);
        if (access(path, F_OK) == 0)
            continue;
        if (rename(sink->settings->path, path) == 0)
            return true;
        log_error(sink->label, "cannot rename %s to %s: %s", sink->settings->path, path,
                  strerror(errno));
        return false;
    }
}

/* The time in the name of a backup, or false: some other file. */
static bool parse_backup_name(const struct backup_name *name, const char *entry, bool local,
                              uint64_t *wall_ns_out)
{
    size_t prefix = strlen(name->prefix), extension = strlen(name->extension);
    if (strlen(entry) != prefix + BACKUP_TIME_SIZE - 1 + extension ||
        memcmp(entry, name->prefix, prefix) != 0 ||
        strcmp(entry + prefix + BACKUP_TIME_SIZE - 1, name->extension) != 0)
        return false;
    struct tm tm = {.tm_isdst = -1};
    const char *rest = strptime(entry + prefix, "%Y-%m-%dT%H-%M-%S", &tm);
    if (!rest || *rest != '.')
        return false;
    time_t seconds = local ? mktime(&tm) : timegm(&tm);
    *wall_ns_out = (uint64_t)seconds * 1000000000 + strtoull(rest + 1, NULL, 10) * 1000000;
    return true;
}

struct backup {
    char entry[NAME_MAX + 1];
    uint64_t wall_ns;
};

static int compare_newest_first(const void *a, const void *b)
{
    const struct backup *left = a, *right = b;
    return (left->wall_ns < right->wall_ns) - (left->wall_ns > right->wall_ns);
}

static struct backup *list_backups(const struct backup_name *name, bool local, size_t *count_out)
{
    struct backup *backups = NULL;
    size_t count = 0;
    DIR *directory = opendir(name->directory);
    struct dirent *entry;
    while (directory && (entry = readdir(directory))) {
        uint64_t wall_ns;
        if (!parse_backup_name(name, entry->d_name, local, &wall_ns))
            continue;
        backups = memory_grow(backups, count + 1, sizeof *backups);
        backups[count].wall_ns = wall_ns;
        snprintf(backups[count++].entry, sizeof backups->entry, "%s", entry->d_name);
    }
    if (directory)
        closedir(directory);
    if (count > 0)
        qsort(backups, count, sizeof *backups, compare_newest_first);
    *count_out = count;
    return backups;
}

static void delete_old_backups(const struct file_sink *sink, const struct backup_name *name)
{
    const struct rotation_settings *rotation = &sink->settings->rotation;
    uint64_t now_ns = clock_wall_ns();
    size_t count;
    struct backup *backups = list_backups(name, rotation->localtime, &count);
    for (size_t i = 0; i < count; i++) {
        bool too_many = rotation->max_backups > 0 && i >= rotation->max_backups;
        bool too_old = rotation->max_days > 0 && backups[i].wall_ns < now_ns &&
                       (now_ns - backups[i].wall_ns) / DAY_NS >= rotation->max_days;
        if (!too_many && !too_old)
            continue;
        char path[PATH_MAX * 2];
        snprintf(path, sizeof path, "%s/%s", name->directory, backups[i].entry);
        if (unlink(path) != 0)
            log_warn(sink->label, "cannot delete %s: %s", path, strerror(errno));
    }
    free(backups);
}

static bool rotate(struct file_sink *sink, struct error *err)
{
    struct backup_name name;
    split_path(sink->settings->path, &name);
    /* When the file cannot be moved it grows past its size, rather than losing data. */
    if (!rename_to_backup(sink, &name)) {
        sink->rotate_at_bytes = sink->size_bytes + rotation_size(sink);
        return true;
    }
    sink_close(sink);
    delete_old_backups(sink, &name);
    return sink_open(sink, false, err);
}

/* ---- writing, on the owner ---- */

static struct slice record_body(const struct file_record *record)
{
    return record->buffer ? buffer_slice(record->buffer)
                          : slice_of(record->text.data, record->text.size);
}

static size_t record_size(const struct file_record *record)
{
    return record_body(record).size + (record->has_length ? sizeof record->length : 0);
}

/* Makes the file ready for a record of this size. */
static bool make_room(struct file_sink *sink, size_t size, struct error *err)
{
    if (sink->fd < 0 && !sink_open(sink, false, err))
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

/* Returns how many bytes were written; fewer than all with errno set. */
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

static void settle(struct file_record *record);

static void on_settled_at_home(struct worker *worker, struct post *post)
{
    struct file_record *record = (struct file_record *)post;
    assert(worker == record->home);
    settle(record);
}

static void answer(struct file_record *record, const struct verdict *verdict)
{
    record->verdict = *verdict;
    if (record->home == record->sink->owner) {
        settle(record);
        return;
    }
    record->post = (struct post){.on_post = on_settled_at_home};
    worker_post(record->home, &record->post);
}

/* Cuts off what a failed write left behind the last whole record, so that the file stays readable.
 */
static void cut_half_record(struct file_sink *sink)
{
    if (sink->regular && ftruncate(sink->fd, (off_t)sink->size_bytes) != 0)
        log_error(sink->label, "cannot remove an incomplete record from %s: %s",
                  sink->settings->path, strerror(errno));
}

/* Answers the records in [first, end): the first `written` bytes of them are in the file. */
static void answer_written(struct file_sink *sink, struct file_record *first,
                           const struct file_record *end, size_t written, int error)
{
    struct verdict failed = verdict_ok;
    if (error != 0) {
        failed = verdict_try_later(GRPC_UNAVAILABLE, RETRY_AFTER_NS, "%s: %s", sink->settings->path,
                                   strerror(error));
        log_error(sink->label, "cannot write to %s: %s", sink->settings->path, strerror(error));
    }
    for (struct file_record *record = first, *next; record != end; record = next) {
        size_t size = record_size(record);
        bool whole = error == 0 || size <= written;
        next = record->next_pending;
        if (whole) {
            written -= size;
            sink->size_bytes += size;
        } else if (written > 0) {
            cut_half_record(sink);
            written = 0;
        }
        answer(record, whole ? &verdict_ok : &failed);
    }
}

/* Writes the first records, as many as one call and the file's size allow; returns the first that
 * is left. */
static struct file_record *write_some(struct file_sink *sink, struct file_record *first)
{
    struct iovec vectors[RECORDS_PER_WRITE * 2];
    struct file_record *end = first;
    struct error err;
    size_t total = 0;
    int count = 0;
    if (!make_room(sink, record_size(first), &err)) {
        struct file_record *next = first->next_pending;
        struct verdict failed = verdict_try_later(GRPC_UNAVAILABLE, RETRY_AFTER_NS, "%s", err.text);
        log_error(sink->label, "%s", err.text);
        answer(first, &failed);
        return next;
    }
    for (int n = 0; end && n < RECORDS_PER_WRITE; n++, end = end->next_pending) {
        size_t size = record_size(end);
        if (end != first && sink->size_bytes + total + size > sink->rotate_at_bytes)
            break;
        count += add_vectors(vectors + count, end);
        total += size;
    }
    size_t written = write_vectors(sink->fd, vectors, count);
    answer_written(sink, first, end, written, written < total ? errno : 0);
    return end;
}

static void flush(struct file_sink *sink)
{
    sink_ref(sink); /* the records may hold the last references */
    struct file_record *record = sink->pending;
    sink->pending = sink->pending_last = NULL;
    while (record)
        record = write_some(sink, record);
    sink_unref(sink);
}

static void on_flush(struct timer *timer)
{
    flush(container_of(timer, struct file_sink, flush));
}

static void take_record(struct file_record *record)
{
    struct file_sink *sink = record->sink;
    if (sink->pending_last)
        sink->pending_last->next_pending = record;
    else
        sink->pending = record;
    sink->pending_last = record;
    if (sink->stopped)
        flush(sink);
    else if (!timer_is_set(&sink->flush))
        worker_set_timer(sink->owner, &sink->flush, 0); /* at the end of this round */
}

static void on_record(struct worker *worker, struct post *post)
{
    struct file_record *record = (struct file_record *)post;
    assert(worker == record->sink->owner);
    take_record(record);
}

/* ---- records, on their own worker ---- */

static void unlink_record(struct file_record *record)
{
    *record->link_under_way = record->next_under_way;
    if (record->next_under_way)
        record->next_under_way->link_under_way = record->link_under_way;
}

static void link_record(struct file_node *node, struct file_record *record)
{
    record->next_under_way = node->under_way;
    record->link_under_way = &node->under_way;
    if (node->under_way)
        node->under_way->link_under_way = &record->next_under_way;
    node->under_way = record;
}

static void drop_batch(struct file_record *record, const struct verdict *verdict)
{
    struct file_node *node = record->node;
    assert(node);
    struct counter *counter = verdict_is_ok(verdict) ? node->sent : node->send_failed;
    counter_add(counter, node->node.worker->index, record->batch->items);
    unlink_record(record);
    if (verdict_is_ok(verdict))
        batch_drop(record->batch, verdict);
    else
        node_refuse(&node->node, record->batch, REFUSED_FAILED, verdict);
    record->node = NULL;
    record->batch = NULL;
}

static void settle(struct file_record *record)
{
    struct file_node *node = record->node;
    if (node)
        drop_batch(record, &record->verdict);
    buffer_unref(record->buffer);
    text_deinit(&record->text);
    sink_unref(record->sink);
    free(record);
}

/* The encoded request in one piece. */
static struct buffer *encode_request(struct batch *batch)
{
    batch_flatten(batch);
    if (batch->part_count == 1)
        return buffer_ref(batch->parts[0].buffer);
    struct buffer *whole = buffer_new_charged(batch_size(batch), batch->arena.budget);
    for (size_t i = 0; i < batch->part_count; i++) {
        struct slice part = buffer_slice(batch->parts[i].buffer);
        if (part.size > 0)
            memcpy(whole->data + whole->size, part.data, part.size);
        whole->size += part.size;
    }
    return whole;
}

static struct slice encode_body(struct file_record *record, const struct file_settings *settings)
{
    record->buffer = encode_request(record->batch);
    if (settings->format == FORMAT_PROTO)
        return buffer_slice(record->buffer);
    bool traces = record->batch->signal == SIGNAL_TRACES;
    json_from_protobuf(traces ? JSON_TRACES_REQUEST : JSON_PROFILES_REQUEST,
                       buffer_slice(record->buffer), &record->text);
    buffer_unref(record->buffer);
    record->buffer = NULL;
    return slice_of(record->text.data, record->text.size);
}

/* False: over budget. */
static bool encode_record(struct file_record *record, const struct file_settings *settings)
{
    struct slice body = encode_body(record, settings);
    if (settings->compression == FILE_COMPRESSION_ZSTD) {
        struct buffer *compressed =
            compress_slices(COMPRESSION_ZSTD, 0, false, &body, 1, record->batch->arena.budget);
        if (!compressed)
            return false;
        buffer_unref(record->buffer);
        text_deinit(&record->text);
        record->buffer = compressed;
        body = buffer_slice(compressed);
    }
    /* Compressed bytes may hold newlines, so lines no longer separate records. */
    record->has_length =
        settings->format == FORMAT_PROTO || settings->compression != FILE_COMPRESSION_NONE;
    for (unsigned i = 0; i < sizeof record->length; i++)
        record->length[i] = (uint8_t)(body.size >> (24 - 8 * i));
    if (!record->has_length)
        text_append_char(&record->text, '\n');
    return true;
}

static void file_consume(struct node *node, struct batch *batch)
{
    struct file_exporter *exporter = (struct file_exporter *)node->component;
    struct file_record *record = memory_zalloc(sizeof *record);
    record->sink = sink_ref(exporter->sink);
    record->home = node->worker;
    record->node = (struct file_node *)node;
    record->batch = batch;
    link_record(record->node, record);
    if (!encode_record(record, node->component->settings)) {
        record->verdict = verdict_try_later(GRPC_RESOURCE_EXHAUSTED, RETRY_AFTER_NS,
                                            "not enough memory to compress a record");
        settle(record);
    } else if (record->home == record->sink->owner) {
        take_record(record);
    } else {
        record->post.on_post = on_record;
        worker_post(record->sink->owner, &record->post);
    }
}

static struct counter *make_counter(struct node *node, const char *what, const char *help)
{
    struct text name = {0}, labels = {0};
    text_printf(&name, "otelcol_exporter_%s_%s", what, signal_item_name(node->signal));
    metrics_label(&labels, "exporter", node->component->id);
    struct counter *counter = metrics_counter(node->component->process->metrics, text_string(&name),
                                              help, text_string(&labels));
    text_deinit(&name);
    text_deinit(&labels);
    return counter;
}

static bool file_node_start(struct node *node, struct error *err)
{
    (void)err;
    struct file_node *file = (struct file_node *)node;
    file->sent = make_counter(node, "sent", "Items that were written.");
    file->send_failed = make_counter(node, "send_failed", "Items that could not be written.");
    return true;
}

static bool file_is_idle(const struct node *node)
{
    return !((const struct file_node *)node)->under_way;
}

static void file_node_stop(struct node *node)
{
    struct file_node *file = (struct file_node *)node;
    struct file_sink *sink = ((struct file_exporter *)node->component)->sink;
    if (node->worker == sink->owner) {
        sink->stopped = true;
        worker_cancel_timer(sink->owner, &sink->flush);
        flush(sink);
    }
    while (file->under_way)
        drop_batch(
            file->under_way,
            &verdict_shutting_down); /* the record itself comes back later and is freed then */
}

static bool file_init(struct component *component, struct error *err)
{
    struct file_exporter *exporter = (struct file_exporter *)component;
    const struct file_settings *settings = component->settings;
    if (settings->create_directory &&
        !create_directories(settings->path, settings->directory_mode, err))
        return false;
    struct file_sink *sink = memory_zalloc(sizeof *sink);
    atomic_init(&sink->references, 1);
    sink->owner = &component->process->workers[0];
    sink->settings = settings;
    sink->label = component->label;
    sink->flush.on_timer = on_flush;
    if (!sink_open(sink, !settings->append && !settings->rotation.enabled, err)) {
        sink_unref(sink);
        return false;
    }
    exporter->sink = sink;
    return true;
}

static void file_deinit(struct component *component)
{
    sink_unref(((struct file_exporter *)component)->sink);
}

extern const struct component_type file_exporter_type;
const struct component_type file_exporter_type = {
    .config =
        {
            .name = "file",
            .section = CONFIG_EXPORTERS,
            .stability =
                {[CONFIG_TRACES] = STABILITY_ALPHA, [CONFIG_PROFILES] = STABILITY_DEVELOPMENT},
            .help = "Writes every batch to a file, as a line of OTLP/JSON or as length-prefixed "
                    "OTLP protobuf.",
            .fields = file_fields,
            .config_size = sizeof(struct file_settings),
            .check = check_settings,
        },
    .component_size = sizeof(struct file_exporter),
    .init = file_init,
    .deinit = file_deinit,
    .node_size = sizeof(struct file_node),
    .node_start = file_node_start,
    .consume = file_consume,
    .is_idle = file_is_idle,
    .node_stop = file_node_stop,
};
