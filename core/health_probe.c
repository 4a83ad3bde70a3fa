#include "core/health_probe.h"

#include "core/pipeline/endpoint.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { TIMEOUT_S = 5, STATUS_LINE_MAX = 256 };

/* Returns the text of errno after a failed call. errno is 0 if the peer closed the connection. */
static const char *problem(void)
{
    if (errno == EAGAIN || errno == EINPROGRESS)
        return "no answer within 5 s";
    return errno ? strerror(errno) : "no answer";
}

/* Returns a connected socket with timeouts, or -1 with errno set. */
static int open_socket(const struct addrinfo *address)
{
    const struct timeval timeout = {.tv_sec = TIMEOUT_S};
    int fd = socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC, address->ai_protocol);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout); /* connect uses it, too */
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    if (connect(fd, address->ai_addr, address->ai_addrlen) == 0)
        return fd;
    int why = errno;
    close(fd);
    errno = why;
    return -1;
}

/* Tries the addresses of the host in turn. Returns a connected socket, or -1 with err set. */
static int connect_to(const struct endpoint *endpoint, struct error *err)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *addresses;
    char port[8];
    snprintf(port, sizeof port, "%u", (unsigned)endpoint->port);
    int rc = getaddrinfo(endpoint->host, port, &hints, &addresses);
    if (rc != 0) {
        error_set(err, "%s: %s", endpoint->url, gai_strerror(rc));
        return -1;
    }
    int fd = -1;
    for (const struct addrinfo *address = addresses; address && fd < 0; address = address->ai_next)
        fd = open_socket(address);
    if (fd < 0)
        error_set(err, "%s: %s", endpoint->url, problem());
    freeaddrinfo(addresses);
    return fd;
}

/* Reads the first line of the answer, without its line end. */
static bool read_status_line(int fd, char line[STATUS_LINE_MAX])
{
    size_t size = 0;
    while (size + 1 < STATUS_LINE_MAX) {
        ssize_t received = recv(fd, line + size, STATUS_LINE_MAX - 1 - size, 0);
        if (received <= 0)
            return false;
        size += (size_t)received;
        line[size] = '\0';
        char *end = strpbrk(line, "\r\n");
        if (end) {
            *end = '\0';
            return true;
        }
    }
    return false;
}

static bool ask(int fd, const struct endpoint *endpoint, struct error *err)
{
    char request[1024], line[STATUS_LINE_MAX];
    int size = snprintf(request, sizeof request,
                        "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", endpoint->path,
                        endpoint->authority);
    if (size < 0 || (size_t)size >= sizeof request)
        return error_set(err, "%s: the URL is too long", endpoint->url);
    errno = 0;
    if (send(fd, request, (size_t)size, MSG_NOSIGNAL) != size || !read_status_line(fd, line))
        return error_set(err, "%s: %s", endpoint->url, problem());
    const char *status = strncmp(line, "HTTP/1.", 7) == 0 ? strchr(line, ' ') : NULL;
    if (!status)
        return error_set(err, "%s: not an answer of HTTP", endpoint->url);
    return status[1] == '2' || error_set(err, "%s: status %s%s", endpoint->url, status + 1,
                                         strncmp(status + 1, "404", 3) == 0
                                             ? "; give the URL with the `path` of health_check"
                                             : "");
}

static bool probe(struct arena *arena, const char *url, struct error *err)
{
    struct endpoint endpoint;
    if (!strstr(url, "://"))
        url = arena_printf(arena, "http://%s", url);
    if (!endpoint_parse_url(arena, url, &endpoint, err))
        return error_prefix(err, "%s", url);
    if (endpoint.scheme != ENDPOINT_HTTP)
        return error_set(err, "%s: only http:// is supported", endpoint.url);
    int fd = connect_to(&endpoint, err);
    if (fd < 0)
        return false;
    bool is_healthy = ask(fd, &endpoint, err);
    close(fd);
    return is_healthy;
}

bool health_probe(const char *url, struct error *err)
{
    struct arena arena;
    arena_init(&arena, NULL);
    bool is_healthy = probe(&arena, url, err);
    arena_deinit(&arena);
    return is_healthy;
}
