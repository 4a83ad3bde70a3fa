#include "receivers/pprof/files.h"

#include "core/base/clock.h"
#include "core/base/container_of.h"
#include "core/base/job.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/pipeline/empty_profiles.h"
#include "core/pipeline/received.h"
#include "core/pipeline/threads_behind.h"
#include "receivers/pprof/path_pattern.h"
#include "receivers/pprof/profile_intake.h"
#include "receivers/pprof/static_labels.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_MAX = 100000, DEPTH_MAX = 16 };

enum outcome { OUTCOME_OK, OUTCOME_FAILED, OUTCOME_REFUSED, OUTCOME_COUNT };
static const char *const outcome_names[] = {"ok", "failed", "refused"};

struct file {
    char *path;
    ino_t inode;
    off_t size;
    struct timespec changed;
    enum { FILE_SETTLES, FILE_SETTLED, FILE_DONE } state;
};

struct files {
    struct file *items; /* by path */
    size_t count, capacity;
};

struct file_reading;

struct folder {
    struct node *node;
    const struct files_settings *settings;
    struct path_pattern *pattern;
    struct received_counters counters;
    struct counter *outcomes[OUTCOME_COUNT];
    struct timer timer; /* for the next search, or for the next file */
    struct files files;
    bool looking;         /* a pass through `files` is in progress */
    size_t left;          /* number of files left in this pass */
    struct file *next;    /* the next file of this pass */
    struct file *current; /* the file being read or forwarded */
    char *refused; /* path of the last refused file. The next pass begins after it, so that a file
                      that is always refused does not block the others */
    bool has_leftover;            /* this pass left a file that may still change, or was refused */
    struct file_reading *reading; /* the job that reads `current`; NULL: none */
    bool forwarding;
    struct receipt receipt;
    uint32_t samples;
    unsigned added_threads;        /* of `current`: bits of enum added_threads; 0: none */
    struct status_source readable; /* the folder itself */
    bool draining;
    void (*on_drained)(void *context);
    void *drain_context;
};

/* ---- looking ---- */

static int compare_files(const void *a, const void *b)
{
    return strcmp(((const struct file *)a)->path, ((const struct file *)b)->path);
}

static void free_files(struct files *files)
{
    for (size_t i = 0; i < files->count; i++)
        free(files->items[i].path);
    free(files->items);
    *files = (struct files){0};
}

static bool is_old(const struct folder *folder, const struct stat *stat)
{
    int64_t changed = stat->st_mtim.tv_sec * INT64_C(1000000000) + stat->st_mtim.tv_nsec;
    return !folder->settings->watch ||
           (int64_t)clock_wall_ns() - changed >= folder->settings->interval;
}

static bool is_unchanged(const struct file *file, const struct stat *stat)
{
    return file->inode == stat->st_ino && file->size == stat->st_size &&
           file->changed.tv_sec == stat->st_mtim.tv_sec &&
           file->changed.tv_nsec == stat->st_mtim.tv_nsec;
}

static void add_file(struct folder *folder, struct files *files, const FTSENT *entry)
{
    const struct stat *stat = entry->fts_statp;
    struct file file = {.path = memory_strdup(entry->fts_path),
                        .inode = stat->st_ino,
                        .size = stat->st_size,
                        .changed = stat->st_mtim};
    const struct file *known =
        folder->files.count > 0
            ? bsearch(&file, folder->files.items, folder->files.count, sizeof file, compare_files)
            : NULL;
    if (known && is_unchanged(known, stat))
        file.state = known->state == FILE_DONE ? FILE_DONE : FILE_SETTLED;
    else if (is_old(folder, stat))
        file.state = FILE_SETTLED;
    if (files->count == files->capacity) {
        files->capacity = files->capacity ? files->capacity * 2 : 64;
        files->items = memory_grow(files->items, files->capacity, sizeof *files->items);
    }
    assert(files->count < files->capacity);
    files->items[files->count++] = file;
}

static bool is_wanted(const struct folder *folder, const FTSENT *entry)
{
    struct series_label labels[SERIES_LABELS_MAX];
    size_t count;
    return entry->fts_info == FTS_F &&
           path_pattern_match(folder->pattern, entry->fts_path, labels, &count);
}

/* The folder itself decides whether the receiver works; a file or subfolder in it does not. */
static void report_unreadable(struct folder *folder, const FTSENT *entry)
{
    struct error err;
    error_set(&err, "%s: %s", entry->fts_path, strerror(entry->fts_errno));
    log_warn(folder->node->origin, "Cannot read the folder or a file in it",
             LOG_TEXT("error", err.text));
    if (entry->fts_level == FTS_ROOTLEVEL)
        status_source_fail(&folder->readable, STATUS_RECOVERABLE_ERROR, err.text);
}

static void look(struct folder *folder)
{
    char *roots[] = {(char *)(uintptr_t)folder->settings->directory, NULL};
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, NULL);
    struct files files = {0};
    FTSENT *entry;
    while (tree && (entry = fts_read(tree)) && files.count < FILES_MAX) {
        if (entry->fts_info == FTS_D && entry->fts_level >= DEPTH_MAX)
            fts_set(tree, entry, FTS_SKIP);
        else if (entry->fts_info == FTS_NS || entry->fts_info == FTS_DNR)
            report_unreadable(folder, entry);
        else if (entry->fts_info == FTS_D && entry->fts_level == FTS_ROOTLEVEL)
            status_source_succeed(&folder->readable);
        else if (is_wanted(folder, entry))
            add_file(folder, &files, entry);
    }
    if (tree)
        fts_close(tree);
    if (files.count == FILES_MAX)
        log_warn(folder->node->origin,
                 "The folder has too many files: the others are read when the first are gone",
                 LOG_TEXT("directory", folder->settings->directory), LOG_U64("limit", FILES_MAX));
    if (files.count > 0)
        qsort(files.items, files.count, sizeof *files.items, compare_files);
    free_files(&folder->files);
    folder->files = files;
}

static void begin_look(struct folder *folder)
{
    assert(!folder->looking && !folder->reading && !folder->forwarding);
    look(folder);
    struct files *files = &folder->files;
    folder->looking = true;
    folder->left = files->count;
    folder->has_leftover = false;
    folder->next = files->items;
    while (folder->refused && folder->next < files->items + files->count &&
           strcmp(folder->next->path, folder->refused) <= 0)
        folder->next++;
    free(folder->refused);
    folder->refused = NULL;
}

/* Returns the next file; after the last one, the first. */
static struct file *take_next(struct folder *folder)
{
    struct files *files = &folder->files;
    assert(folder->left > 0 && files->count > 0);
    if (folder->next == files->items + files->count)
        folder->next = files->items;
    folder->left--;
    return folder->next++;
}

/* ---- reading ---- */

/* Returns NULL, with *why set, if the file cannot be read. */
static struct buffer *read_file(const struct folder *folder, const struct file *file,
                                struct verdict *why)
{
    struct buffer *bytes = NULL;
    if ((uint64_t)file->size > folder->settings->max_file_size) {
        *why =
            verdict_of(GRPC_INVALID_ARGUMENT, "has %lld bytes, max_file_size is %llu",
                       (long long)file->size, (unsigned long long)folder->settings->max_file_size);
        return NULL;
    }
    int descriptor = open(file->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (descriptor < 0) {
        *why = verdict_of(GRPC_UNAVAILABLE, "%s", strerror(errno));
        return NULL;
    }
    bytes = buffer_new((size_t)file->size, folder->node->component->process->budget);
    if (!bytes) {
        *why = verdict_over_budget;
    } else {
        ssize_t got = 1;
        while (got > 0 && bytes->size < (size_t)file->size) {
            got = read(descriptor, bytes->data + bytes->size, (size_t)file->size - bytes->size);
            bytes->size += got > 0 ? (size_t)got : 0;
        }
    }
    close(descriptor);
    return bytes;
}

/* Labels from the path take precedence over those from the configuration. */
static bool label_file(const struct folder *folder, const struct file *file, struct series *series,
                       struct error *err)
{
    struct series_label labels[2 * SERIES_LABELS_MAX];
    const struct config_pairs *more = &folder->settings->labels;
    size_t named, count;
    path_pattern_match(folder->pattern, file->path, labels, &named);
    count = named;
    for (size_t i = 0; i < more->count && i < SERIES_LABELS_MAX; i++) {
        struct slice name = slice_of_string(more->items[i].name);
        bool is_taken = false;
        for (size_t j = 0; j < named; j++)
            is_taken |= slice_equal(labels[j].name, name);
        if (!is_taken)
            labels[count++] = (struct series_label){name, slice_of_string(more->items[i].value)};
    }
    assert(count <= sizeof labels / sizeof labels[0]);
    return static_labels_read_all(labels, count, series, err);
}

static struct buffer *convert(struct folder *folder, const struct file *file, struct verdict *why)
{
    struct series series;
    struct error err;
    if (!label_file(folder, file, &series, &err)) {
        *why = verdict_of(GRPC_INVALID_ARGUMENT, "%s", err.text);
        return NULL;
    }
    struct buffer *bytes = read_file(folder, file, why);
    if (!bytes)
        return NULL;
    struct profile_intake intake = {
        .bytes = buffer_slice(bytes),
        .series = &series,
        .max_size = (size_t)folder->settings->max_file_size,
        .time_unix_nano =
            (uint64_t)file->changed.tv_sec * 1000000000 + (uint64_t)file->changed.tv_nsec,
        .budget = folder->node->component->process->budget,
        .added_threads = folder->added_threads,
    };
    struct buffer *profiles = profile_intake_read(&intake, NULL, &folder->samples, why);
    buffer_unref(bytes);
    return profiles;
}

/* ---- the result ---- */

/* Whether the file has changed or is gone. */
static bool has_changed(const struct file *file)
{
    struct stat now;
    return lstat(file->path, &now) != 0 || !is_unchanged(file, &now);
}

/* Renames a file. Does not replace an existing one, if the file system supports that. */
static bool move(const char *from, const char *to)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return true;
    if (errno != EINVAL && errno != ENOSYS)
        return false;
    errno = EEXIST;
    return access(to, F_OK) != 0 && rename(from, to) == 0;
}

/* Moves a file to move_to. If a file with this name exists there (from another folder), appends the
 * time to the name. */
static void move_away(const struct folder *folder, const struct file *file)
{
    const char *slash = strrchr(file->path, '/'), *name = slash ? slash + 1 : file->path;
    char to[4096];
    size_t size = (size_t)snprintf(to, sizeof to - 32, "%s/%s", folder->settings->move_to, name);
    bool fits = size < sizeof to - 32;
    errno = ENAMETOOLONG;
    bool moved = fits && move(file->path, to);
    if (fits && !moved && errno == EEXIST) {
        snprintf(to + size, 32, ".%lld%09ld", (long long)file->changed.tv_sec,
                 file->changed.tv_nsec);
        moved = move(file->path, to);
    }
    if (!moved)
        log_error(folder->node->origin, "Cannot move a file that was read",
                  LOG_TEXT("path", file->path), LOG_TEXT("to", to),
                  LOG_TEXT("error", strerror(errno)));
}

/* Deletes or moves the file that was read. A file that has replaced it meanwhile stays, and is
 * read. */
static void put_away(const struct folder *folder, const struct file *file)
{
    if (folder->settings->after_reading == AFTER_KEEP || has_changed(file))
        return;
    if (folder->settings->after_reading == AFTER_MOVE)
        move_away(folder, file);
    else if (unlink(file->path) != 0)
        log_error(folder->node->origin, "Cannot delete a file that was read",
                  LOG_TEXT("path", file->path), LOG_TEXT("error", strerror(errno)));
}

static void finish_file(struct folder *folder, const struct verdict *verdict)
{
    struct file *file = folder->current;
    assert(file->state == FILE_SETTLED);
    enum outcome outcome = verdict_is_ok(verdict)          ? OUTCOME_OK
                           : verdict_is_retryable(verdict) ? OUTCOME_REFUSED
                                                           : OUTCOME_FAILED;
    counter_add(folder->outcomes[outcome], folder->node->worker->index, 1);
    if (outcome == OUTCOME_REFUSED) {
        log_warn(folder->node->origin, "A file was refused; it will be read again later",
                 LOG_TEXT("path", file->path), LOG_TEXT("error", verdict->text));
        folder->left = 0; /* the others would be refused, too */
        folder->refused = memory_strdup(file->path);
        folder->has_leftover = true;
        return;
    }
    file->state = FILE_DONE;
    if (outcome == OUTCOME_OK)
        put_away(folder, file);
    else
        log_error(folder->node->origin, "Cannot use a file", LOG_TEXT("path", file->path),
                  LOG_TEXT("error", verdict->text));
}

static void go_on(struct folder *folder)
{
    if (!folder->draining)
        worker_set_timer(folder->node->worker, &folder->timer, 0);
    else if (folder->on_drained)
        folder->on_drained(folder->drain_context);
}

static void on_settled(struct receipt *receipt, const struct verdict *verdict)
{
    struct folder *folder = container_of(receipt, struct folder, receipt);
    assert(folder->forwarding && worker_is_current(folder->node->worker));
    bool is_ok = verdict_is_ok(verdict);
    counter_add(is_ok ? folder->counters.accepted : folder->counters.refused,
                folder->node->worker->index, folder->samples);
    folder->forwarding = false;
    finish_file(folder, verdict);
    go_on(folder);
}

/* profiles: the request for the pipelines; NULL: it is refused, see *why. */
static void finish_reading(struct folder *folder, struct buffer *profiles,
                           const struct verdict *why)
{
    struct file *file = folder->current;
    assert(!folder->reading && !folder->forwarding);
    if (has_changed(file)) { /* it may have changed while it was read */
        buffer_unref(profiles);
        file->state = FILE_SETTLES;
        folder->has_leftover = true;
        go_on(folder);
        return;
    }
    if (!profiles || !profiles_are_wanted(folder->node, folder->samples)) {
        buffer_unref(profiles);
        if (why->code == GRPC_INVALID_ARGUMENT)
            counter_add(folder->counters.invalid, folder->node->worker->index, 1);
        finish_file(folder, why);
        go_on(folder);
        return;
    }
    folder->forwarding = true;
    receipt_init(&folder->receipt, on_settled);
    struct batch *batch = batch_new(folder->node->worker, SIGNAL_PROFILES, profiles,
                                    folder->samples, &folder->receipt, NULL);
    batch->links_are_labels = true;
    batch->arrived_empty = folder->samples == 0;
    batch->has_added_threads = folder->added_threads != 0;
    node_forward(folder->node, batch);
}

/* A job reads and converts a file; the disk may take as long as the conversion. */
struct file_reading {
    struct job job;
    struct folder *folder;
    struct buffer *profiles;
    struct verdict why;
};

static void read_beside_loop(struct job *job)
{
    struct file_reading *reading = container_of(job, struct file_reading, job);
    reading->profiles = convert(reading->folder, reading->folder->current, &reading->why);
}

static void on_read(struct job *job, bool did_run)
{
    struct file_reading *reading = container_of(job, struct file_reading, job);
    struct folder *folder = reading->folder;
    assert(did_run && folder->reading == reading);
    folder->reading = NULL;
    finish_reading(folder, reading->profiles, &reading->why);
    free(reading);
}

static void take_file(struct folder *folder, struct file *file)
{
    assert(file->state == FILE_SETTLED && !folder->reading && !folder->forwarding);
    struct file_reading *reading = memory_zalloc(sizeof *reading);
    reading->job = (struct job){.run = read_beside_loop, .on_done = on_read};
    reading->folder = folder;
    reading->why = verdict_ok;
    folder->reading = reading;
    folder->current = file;
    folder->samples = 0;
    folder->added_threads = threads_behind_receiver(folder->node);
    job_start(folder->node->worker, &reading->job);
}

/* Cancels the job. For the stop, if the drain took too long. */
static void stop_reading(struct folder *folder)
{
    struct file_reading *reading = folder->reading;
    if (!reading)
        return;
    job_cancel(&reading->job);
    buffer_unref(reading->profiles);
    free(reading);
    folder->reading = NULL;
}

static void end_look(struct folder *folder)
{
    assert(folder->looking && folder->left == 0);
    folder->looking = false;
    if (folder->settings->watch || folder->has_leftover)
        worker_set_timer(folder->node->worker, &folder->timer,
                         (uint64_t)folder->settings->interval);
    else
        log_info(folder->node->origin, "All files of the folder have been read",
                 LOG_U64("files", folder->files.count),
                 LOG_TEXT("directory", folder->settings->directory));
}

static void on_timer(struct timer *timer)
{
    struct folder *folder = container_of(timer, struct folder, timer);
    assert(!folder->draining); /* draining cancels the timer */
    if (!folder->looking)
        begin_look(folder);
    while (folder->left > 0) {
        struct file *file = take_next(folder);
        if (file->state == FILE_SETTLED) {
            take_file(folder, file);
            return;
        }
    }
    end_look(folder);
}

/* ---- start and stop ---- */

static void make_counters(struct folder *folder)
{
    const struct component *component = folder->node->component;
    received_counters_init(&folder->counters, component, "file", SIGNAL_PROFILES);
    for (int outcome = 0; outcome < OUTCOME_COUNT; outcome++) {
        struct text labels = {0};
        metrics_label(&labels, "receiver", component->id);
        metrics_label(&labels, "result", outcome_names[outcome]);
        folder->outcomes[outcome] = metrics_counter(
            component->process->metrics, "profcol_receiver_files",
            "Files read; refused: kept, and read again later.", text_string(&labels));
        text_deinit(&labels);
    }
}

struct folder *folder_start(struct node *node, const struct files_settings *settings,
                            struct error *err)
{
    struct path_pattern *pattern = path_pattern_new(settings->pattern, err);
    if (!pattern)
        return NULL;
    struct folder *folder = memory_zalloc(sizeof *folder);
    folder->node = node;
    folder->settings = settings;
    folder->pattern = pattern;
    folder->timer.on_timer = on_timer;
    make_counters(folder);
    status_source_add(&folder->readable, &node->component->status, STATUS_ALL_SIGNALS);
    worker_set_timer(node->worker, &folder->timer, 0);
    return folder;
}

void folder_drain(struct folder *folder, void (*on_drained)(void *context), void *context)
{
    assert(!folder->draining && worker_is_current(folder->node->worker));
    folder->draining = true;
    worker_cancel_timer(folder->node->worker, &folder->timer);
    if (!folder->forwarding && !folder->reading) {
        on_drained(context);
        return;
    }
    folder->on_drained = on_drained;
    folder->drain_context = context;
}

void folder_free(struct folder *folder)
{
    if (!folder)
        return;
    stop_reading(folder);
    assert(!folder->forwarding);
    worker_cancel_timer(folder->node->worker, &folder->timer);
    free_files(&folder->files);
    free(folder->refused);
    status_source_remove(&folder->readable);
    path_pattern_free(folder->pattern);
    free(folder);
}
