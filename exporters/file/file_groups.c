#include "exporters/file/file_groups.h"

#include "core/base/container_of.h"
#include "core/base/hash.h"
#include "core/base/list.h"
#include "core/base/log.h"
#include "core/base/memory.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RETRY_AFTER_NS INT64_C(1000000000)

enum { COMPONENT_MAX = 200, SEGMENT_MAX = 1000 };

struct grouped_file {
    struct list_link link; /* of groups->files */
    char *path;
    uint64_t hash; /* of the path */
    struct file_sink *sink;
};

struct file_groups {
    atomic_uint references;
    struct file_groups_options options;
    struct list files; /* the one that was used last is the first */
    bool stopped;
};

/* ---- paths ---- */

bool file_segment_is_valid(struct slice segment)
{
    size_t begin = 0;
    if (segment.size == 0 || segment.size > SEGMENT_MAX)
        return false;
    for (size_t i = 0; i <= segment.size; i++) {
        if (i < segment.size && segment.data[i] != '/') {
            if (segment.data[i] < ' ' || segment.data[i] == 0x7f)
                return false;
            continue;
        }
        struct slice part = slice_of(segment.data + begin, i - begin);
        if (part.size == 0 || part.size > COMPONENT_MAX || slice_is(part, ".") ||
            slice_is(part, ".."))
            return false;
        begin = i + 1;
    }
    return true;
}

bool file_create_directories(const char *path, mode_t mode, struct error *err)
{
    char directory[PATH_MAX];
    if ((size_t)snprintf(directory, sizeof directory, "%s", path) >= sizeof directory) {
        errno = ENAMETOOLONG;
        return error_set(err, "%s: %s", path, strerror(ENAMETOOLONG));
    }
    for (char *slash = strchr(directory + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(directory, mode) != 0 && errno != EEXIST) {
            int error = errno;
            error_set(err, "cannot create %s: %s", directory, strerror(error));
            errno = error;
            return false;
        }
        *slash = '/';
    }
    return true;
}

static char *path_of(const struct file_groups *groups, const char *segment)
{
    const char *pattern = groups->options.sink.path;
    const char *asterisk = strchr(pattern, '*');
    struct text path = {0};
    assert(asterisk); /* the settings were checked */
    text_printf(&path, "%.*s%s%s", (int)(asterisk - pattern), pattern, segment, asterisk + 1);
    char *copy = memory_strndup(path.data, path.size);
    text_deinit(&path);
    return copy;
}

/* ---- open files, on the owner's worker ---- */

static struct grouped_file *file_of_link(struct list_link *link)
{
    return container_of(link, struct grouped_file, link);
}

static void close_file(struct file_groups *groups, struct grouped_file *file)
{
    list_remove(&groups->files, &file->link);
    if (!groups->stopped)
        file_sink_stop(file->sink); /* what waits is written now */
    file_sink_unref(file->sink);
    free(file->path);
    free(file);
}

static struct grouped_file *find_file(struct file_groups *groups, const char *path, uint64_t hash)
{
    for (struct list_link *link = groups->files.first; link; link = link->next) {
        struct grouped_file *file = file_of_link(link);
        if (file->hash == hash && strcmp(file->path, path) == 0)
            return file;
    }
    return NULL;
}

static struct grouped_file *open_file(struct file_groups *groups, char *path, uint64_t hash,
                                      struct error *err)
{
    struct grouped_file *file = memory_zalloc(sizeof *file);
    struct file_sink_options options = groups->options.sink;
    file->path = path;
    file->hash = hash;
    options.path = path;
    options.truncate = false;
    if (file_create_directories(path, groups->options.directory_mode, err))
        file->sink = file_sink_open(&options, err);
    if (!file->sink) {
        int error = errno;
        free(file);
        errno = error;
        return NULL;
    }
    if (groups->files.count >= groups->options.max_open_files)
        close_file(groups, file_of_link(groups->files.last));
    assert(groups->files.count < groups->options.max_open_files);
    list_prepend(&groups->files, &file->link);
    return file;
}

/* Whether this path can never be opened, so that sending the data again is of no use: another
 * segment has made a file where this one needs a directory, or the reverse. */
static bool is_permanent(int error)
{
    return error == ENOTDIR || error == EISDIR || error == ENAMETOOLONG || error == ELOOP ||
           error == EINVAL || error == ENXIO;
}

static void refuse(const struct file_groups *groups, struct grouped_record *record,
                   const struct error *err, int error)
{
    if (is_permanent(error))
        log_error(log_component(groups->options.sink.label),
                  "The file of a group cannot have this path. Rejecting data.",
                  LOG_TEXT("error", err->text));
    record->record.verdict =
        is_permanent(error) ? verdict_of(GRPC_INVALID_ARGUMENT, "%s", err->text)
                            : verdict_try_later(GRPC_UNAVAILABLE, RETRY_AFTER_NS, "%s", err->text);
    file_record_answer(groups->options.sink.owner, &record->record);
}

/* Passes the record on to its file. */
static void take_record(struct file_groups *groups, struct grouped_record *record)
{
    struct error err = {0};
    char *path = path_of(groups, record->segment);
    uint64_t hash = hash_bytes(slice_of_string(path));
    struct grouped_file *file = find_file(groups, path, hash);
    if (file) {
        free(path);
        list_remove(&groups->files, &file->link);
        list_prepend(&groups->files, &file->link);
    } else {
        file = open_file(groups, path, hash, &err);
    }
    if (!file) {
        int error = errno;
        free(path);
        refuse(groups, record, &err, error);
        return;
    }
    if (groups->stopped)
        file_sink_stop(file->sink);
    file_sink_take(file->sink, &record->record);
}

static void on_record(struct worker *worker, struct post *post)
{
    struct file_record *record = container_of(post, struct file_record, post);
    struct grouped_record *grouped = container_of(record, struct grouped_record, record);
    struct file_groups *groups = grouped->groups;
    assert(worker == groups->options.sink.owner);
    take_record(groups, grouped);
    file_groups_unref(groups);
}

/* ---- public functions ---- */

struct file_groups *file_groups_new(const struct file_groups_options *options)
{
    struct file_groups *groups = memory_zalloc(sizeof *groups);
    assert(options->max_open_files > 0);
    atomic_init(&groups->references, 1);
    groups->options = *options;
    return groups;
}

void file_groups_unref(struct file_groups *groups)
{
    if (!groups || atomic_fetch_sub_explicit(&groups->references, 1, memory_order_acq_rel) > 1)
        return;
    while (groups->files.first)
        close_file(groups, file_of_link(groups->files.first));
    free(groups);
}

void file_groups_write(struct file_groups *groups, struct grouped_record *record)
{
    assert(worker_is_current(record->record.home) && record->record.on_written);
    assert(file_segment_is_valid(slice_of_string(record->segment)));
    atomic_fetch_add_explicit(&groups->references, 1, memory_order_relaxed);
    record->groups = groups;
    record->record.post = (struct post){.on_post = on_record};
    worker_post(groups->options.sink.owner, &record->record.post);
}

void file_groups_stop(struct file_groups *groups)
{
    groups->stopped = true;
    for (struct list_link *link = groups->files.first; link; link = link->next)
        file_sink_stop(file_of_link(link)->sink);
}
