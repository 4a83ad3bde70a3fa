#include "core/base/log_output.h"

#include "core/base/memory.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static const char file_scheme[] = "file://";
enum { FILE_SCHEME_SIZE = sizeof file_scheme - 1 };

static bool is_file_url(const char *path)
{
    return strncmp(path, file_scheme, FILE_SCHEME_SIZE) == 0;
}

const char *log_path_problem(const char *path)
{
    size_t scheme = 0;
    while (isalnum((unsigned char)path[scheme]))
        scheme++;
    if (path[0] == '\0')
        return "a path must not be empty";
    if (is_file_url(path))
        return path[FILE_SCHEME_SIZE] == '/' ? NULL
                                             : "a file:// URL must have an absolute path and no "
                                               "host: file:///var/log/profcol.log";
    if (scheme > 0 && strncmp(path + scheme, "://", 3) == 0)
        return "the log goes to stdout, stderr, paths of files and file:// URLs only";
    return NULL;
}

/* Returns a new descriptor; -1, with errno set. */
static int open_path(const char *path)
{
    if (strcmp(path, "stdout") == 0)
        return STDOUT_FILENO;
    if (strcmp(path, "stderr") == 0)
        return STDERR_FILENO;
    return open(is_file_url(path) ? path + FILE_SCHEME_SIZE : path,
                O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
}

static void close_fd(int fd)
{
    if (fd > STDERR_FILENO)
        close(fd);
}

bool log_outputs_init(struct log_outputs *outputs, const char *const *paths, size_t count,
                      struct error *err)
{
    *outputs = (struct log_outputs){.items = memory_array(count, sizeof *outputs->items)};
    for (size_t i = 0; i < count; i++) {
        int fd = open_path(paths[i]);
        if (fd < 0) {
            error_set(err, "cannot open the log %s: %s", paths[i], strerror(errno));
            log_outputs_deinit(outputs);
            return false;
        }
        outputs->items[outputs->count++] =
            (struct log_output){.path = memory_strdup(paths[i]), .fd = fd};
    }
    return true;
}

bool log_outputs_reopen(struct log_outputs *outputs, struct error *err)
{
    bool fine = true;
    for (size_t i = 0; i < outputs->count; i++) {
        struct log_output *output = &outputs->items[i];
        int fd = open_path(output->path);
        if (fd < 0) {
            fine = error_set(err, "cannot open the log %s: %s", output->path, strerror(errno));
            continue;
        }
        close_fd(output->fd);
        output->fd = fd;
    }
    return fine;
}

static bool write_all(int fd, struct slice line)
{
    while (line.size > 0) {
        ssize_t written = write(fd, line.data, line.size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        line.data += written;
        line.size -= (size_t)written;
    }
    return true;
}

const struct log_output *log_outputs_write(const struct log_outputs *outputs, struct slice line)
{
    const struct log_output *failed = NULL;
    int number = 0;
    for (size_t i = 0; i < outputs->count; i++) {
        if (write_all(outputs->items[i].fd, line))
            continue;
        failed = &outputs->items[i];
        number = errno;
    }
    errno = number;
    return failed;
}

void log_outputs_deinit(struct log_outputs *outputs)
{
    for (size_t i = 0; i < outputs->count; i++) {
        close_fd(outputs->items[i].fd);
        free(outputs->items[i].path);
    }
    free(outputs->items);
    *outputs = (struct log_outputs){0};
}
