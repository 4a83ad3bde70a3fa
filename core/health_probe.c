#include "core/health_probe.h"

#include "core/net/tls.h"
#include "core/pipeline/endpoint.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
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

static int connect_to_socket(const char *path, struct error *err)
{
    struct sockaddr_un place = {.sun_family = AF_UNIX};
    const struct addrinfo address = {.ai_family = AF_UNIX,
                                     .ai_socktype = SOCK_STREAM,
                                     .ai_addr = (struct sockaddr *)&place,
                                     .ai_addrlen = sizeof place};
    size_t size = strlen(path);
    if (size >= sizeof place.sun_path)
        errno = ENAMETOOLONG;
    else
        memcpy(place.sun_path, path, size + 1);
    int fd = size >= sizeof place.sun_path ? -1 : open_socket(&address);
    if (fd < 0)
        error_set(err, "%s: %s", path, problem());
    return fd;
}

/* ---- bytes, with or without TLS ---- */

struct link {
    int fd;
    struct tls_context *context; /* NULL: cleartext */
    struct tls_stream *tls;
    uint8_t received[4096];
};

static bool send_all(int fd, struct slice bytes)
{
    while (bytes.size > 0) {
        ssize_t sent = send(fd, bytes.data, bytes.size, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        bytes = slice_of(bytes.data + sent, bytes.size - (size_t)sent);
    }
    return true;
}

static bool send_tls_output(struct link *link)
{
    struct slice output = tls_stream_output(link->tls);
    bool ok = send_all(link->fd, output);
    tls_stream_sent(link->tls, output.size);
    return ok;
}

/* Reads from TLS. Returns the number of bytes, 0 also when only the handshake went on; -1 at the
 * end. */
static ssize_t receive_tls(struct link *link, void *out, size_t size)
{
    size_t got;
    bool was_ready = tls_stream_ready(link->tls);
    enum tls_status status = tls_stream_read(link->tls, out, size, &got);
    if (!send_tls_output(link) || (status != TLS_STATUS_OK && status != TLS_STATUS_WANT_INPUT))
        return -1;
    if (status == TLS_STATUS_OK)
        return (ssize_t)got;
    if (!was_ready && tls_stream_ready(link->tls))
        return 0; /* it is our turn to send */
    ssize_t received = recv(link->fd, link->received, sizeof link->received, 0);
    if (received <= 0)
        return -1;
    tls_stream_feed(link->tls, slice_of(link->received, (size_t)received));
    return 0;
}

/* Like receive_tls. */
static ssize_t receive(struct link *link, void *out, size_t size)
{
    if (link->tls)
        return receive_tls(link, out, size);
    ssize_t received = recv(link->fd, out, size, 0);
    return received > 0 ? received : -1;
}

static bool shake_hands(struct link *link, const char *host,
                        const struct health_probe_options *options, struct error *err)
{
    static const char *const alpn[] = {"http/1.1", NULL};
    const struct tls_client_settings settings = {.ca_file = options->ca_file,
                                                 .insecure_skip_verify = options->skip_verify};
    link->context = tls_context_client(&settings, alpn, err);
    link->tls = link->context ? tls_stream_new(link->context, host, err) : NULL;
    if (!link->tls)
        return false;
    bool ok = send_tls_output(link);
    errno = 0;
    while (ok && !tls_stream_ready(link->tls)) {
        uint8_t none;
        ok = receive_tls(link, &none, 1) == 0;
    }
    const char *why = tls_stream_error(link->tls);
    return ok || error_set(err, "%s", why[0] ? why : problem());
}

static void close_link(struct link *link)
{
    tls_stream_free(link->tls);
    tls_context_free(link->context);
    close(link->fd);
}

static bool send_request(struct link *link, struct slice request)
{
    if (!link->tls)
        return send_all(link->fd, request);
    return tls_stream_write(link->tls, request) && send_tls_output(link);
}

/* ---- the question ---- */

/* Reads the first line of the answer, without its line end. */
static bool read_status_line(struct link *link, char line[STATUS_LINE_MAX])
{
    size_t size = 0;
    while (size + 1 < STATUS_LINE_MAX) {
        ssize_t received = receive(link, line + size, STATUS_LINE_MAX - 1 - size);
        if (received < 0)
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

/* What to try after this status. */
static const char *advice(const char *line, const struct endpoint *endpoint)
{
    const char *status = strchr(line, ' ') + 1;
    if (strncmp(status, "404", 3) == 0)
        return "; give the URL with the `path` of health_check";
    /* That is what servers of TLS answer. Other errors come with HTTP/1.1. */
    if (strncmp(line, "HTTP/1.0 400", 12) == 0 && endpoint->scheme == ENDPOINT_HTTP)
        return "; the port expects TLS: write https://";
    return "";
}

static bool ask(struct link *link, const struct endpoint *endpoint, struct error *err)
{
    char request[1024], line[STATUS_LINE_MAX];
    int size = snprintf(request, sizeof request,
                        "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", endpoint->path,
                        endpoint->authority);
    if (size < 0 || (size_t)size >= sizeof request)
        return error_set(err, "%s: the URL is too long", endpoint->url);
    errno = 0;
    if (!send_request(link, slice_of(request, (size_t)size)) || !read_status_line(link, line))
        return error_set(err, "%s: %s", endpoint->url, problem());
    const char *status = strncmp(line, "HTTP/1.", 7) == 0 ? strchr(line, ' ') : NULL;
    if (!status)
        return error_set(err, "%s: not an answer of HTTP", endpoint->url);
    return status[1] == '2' ||
           error_set(err, "%s: status %s%s", endpoint->url, status + 1, advice(line, endpoint));
}

/* Parses unix:///run/a.sock:/path. */
static void parse_socket(struct arena *arena, const char *url, struct endpoint *out)
{
    const char *place = url + strlen("unix:");
    place += strncmp(place, "//", 2) == 0 ? 2 : 0;
    const char *path = strstr(place, ":/");
    size_t size = path ? (size_t)(path - place) : strlen(place);
    *out = (struct endpoint){.scheme = ENDPOINT_HTTP,
                             .unix_socket = true,
                             .host = arena_string(arena, slice_of(place, size)),
                             .authority = "localhost",
                             .path = path ? path + 1 : "/",
                             .url = url};
}

static bool parse(struct arena *arena, const char *url, struct endpoint *out, struct error *err)
{
    if (strncmp(url, "unix:", 5) == 0) {
        parse_socket(arena, url, out);
        return true;
    }
    if (!strstr(url, "://"))
        url = arena_printf(arena, "http://%s", url);
    return endpoint_parse_url(arena, url, out, err) || error_prefix(err, "%s", url);
}

static bool probe(struct arena *arena, const char *url, const struct health_probe_options *options,
                  struct error *err)
{
    struct endpoint endpoint;
    if (!parse(arena, url, &endpoint, err))
        return false;
    assert(endpoint.scheme == ENDPOINT_HTTP || endpoint.scheme == ENDPOINT_HTTPS);
    struct link link = {.fd = endpoint.unix_socket ? connect_to_socket(endpoint.host, err)
                                                   : connect_to(&endpoint, err)};
    if (link.fd < 0)
        return false;
    bool is_healthy = endpoint.scheme == ENDPOINT_HTTP ||
                      shake_hands(&link, endpoint.host, options, err) ||
                      error_prefix(err, "%s", endpoint.url);
    is_healthy = is_healthy && ask(&link, &endpoint, err);
    close_link(&link);
    return is_healthy;
}

bool health_probe(const char *url, const struct health_probe_options *options, struct error *err)
{
    struct arena arena;
    arena_init(&arena, NULL);
    bool is_healthy = probe(&arena, url, options, err);
    arena_deinit(&arena);
    return is_healthy;
}
