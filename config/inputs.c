#include "config/inputs.h"

#include "core/base/memory.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

static const char *environment(const char *name)
{
    return getenv(name);
}

/* Waits until there is something to read, which can take a while only for a pipe: for one that
 * nobody writes to, a reload must not wait for ever. */
static bool wait_for_input(int fd)
{
    enum { PATIENCE_MS = 10000 };
    struct pollfd input = {.fd = fd, .events = POLLIN};
    int ready = poll(&input, 1, PATIENCE_MS);
    if (ready == 0)
        errno = ETIMEDOUT;
    return ready > 0 || (ready < 0 && errno == EINTR);
}

/* Reads to the end of the file, or until the buffer is full. Returns false, with errno set, if
 * that fails. */
static bool read_all(int fd, uint8_t *buffer, size_t capacity, size_t *size_out)
{
    size_t size = 0;
    while (size < capacity) {
        if (!wait_for_input(fd))
            return false;
        ssize_t n = read(fd, buffer + size, capacity - size);
        if (n == 0)
            break;
        if (n > 0)
            size += (size_t)n;
        else if (errno != EINTR && errno != EAGAIN)
            return false;
    }
    assert(size <= capacity);
    *size_out = size;
    return true;
}

static bool read_file(struct arena *arena, const char *path, size_t max_bytes,
                      struct slice *content_out, struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
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
