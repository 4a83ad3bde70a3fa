#include "config/inputs.h"

#include "core/base/memory.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static const char *environment(const char *name)
{
    return getenv(name);
}

/* Reads to the end of the file. Returns false if it is larger than the buffer. */
static bool read_all(int fd, uint8_t *buffer, size_t capacity, size_t *size_out)
{
    size_t size = 0;
    while (size < capacity) {
        ssize_t n = read(fd, buffer + size, capacity - size);
        if (n == 0)
            break;
        if (n > 0)
            size += (size_t)n;
        else if (errno != EINTR)
            return false;
    }
    assert(size <= capacity);
    *size_out = size;
    return true;
}

static bool read_file(struct arena *arena, const char *path, size_t max_bytes,
                      struct slice *content_out, struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set(err, "unable to read the file \"%s\": %s", path, strerror(errno));
    uint8_t *buffer = memory_alloc(max_bytes + 1);
    size_t size = 0;
    bool done = read_all(fd, buffer, max_bytes + 1, &size);
    if (!done)
        error_set(err, "unable to read the file \"%s\": %s", path, strerror(errno));
    else if (size > max_bytes)
        done = error_set(err, "the file \"%s\" is larger than %zu bytes", path, max_bytes);
    else
        *content_out = slice_of(arena_string(arena, slice_of(buffer, size)), size);
    free(buffer);
    close(fd);
    return done;
}

const struct config_inputs config_system_inputs = {
    .environment = environment,
    .read_file = read_file,
};
