#include "exporters/file/file_rotation.h"

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DAY_NS (UINT64_C(86400) * 1000000000)
#define BACKUP_TIME_SIZE (sizeof "2026-01-31T23-59-59.000")

const struct field rotation_fields[] = {
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

struct backup_name {
    char directory[PATH_MAX];
    char prefix[NAME_MAX + 2]; /* including the dash */
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

/* Renames the file to a free backup name. */
static bool rename_to_backup(const struct rotation_settings *settings, const char *path,
                             const struct backup_name *name, const char *label)
{
    for (uint64_t wall_ns = clock_wall_ns();; wall_ns += 1000000) {
        char stamp[BACKUP_TIME_SIZE], backup[PATH_MAX * 2];
        print_backup_time(stamp, wall_ns, settings->localtime);
        snprintf(backup, sizeof backup, "%s/%s%s%s", name->directory, name->prefix, stamp,
                 name->extension);
        if (access(backup, F_OK) == 0)
            continue;
        if (rename(path, backup) == 0)
            return true;
        log_error(log_component(label), "Cannot rename a file to rotate it; it goes on growing",
                  LOG_TEXT("path", path), LOG_TEXT("backup", backup),
                  LOG_TEXT("error", strerror(errno)));
        return false;
    }
}

/* Reads the time from the name of a backup. Returns false if it is another file. */
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

static void delete_old_backups(const struct rotation_settings *settings,
                               const struct backup_name *name, const char *label)
{
    uint64_t now_ns = clock_wall_ns();
    size_t count;
    struct backup *backups = list_backups(name, settings->localtime, &count);
    for (size_t i = 0; i < count; i++) {
        bool too_many = settings->max_backups > 0 && i >= settings->max_backups;
        bool too_old = settings->max_days > 0 && backups[i].wall_ns < now_ns &&
                       (now_ns - backups[i].wall_ns) / DAY_NS >= settings->max_days;
        if (!too_many && !too_old)
            continue;
        char path[PATH_MAX * 2];
        snprintf(path, sizeof path, "%s/%s", name->directory, backups[i].entry);
        if (unlink(path) != 0)
            log_warn(log_component(label), "Cannot delete an old backup", LOG_TEXT("path", path),
                     LOG_TEXT("error", strerror(errno)));
    }
    free(backups);
}

bool rotate_file(const struct rotation_settings *settings, const char *path, const char *label)
{
    struct backup_name name;
    split_path(path, &name);
    if (!rename_to_backup(settings, path, &name, label))
        return false;
    delete_old_backups(settings, &name, label);
    return true;
}
