#include "core/http_get.h"

#include "core/base/text.h"
#include "core/net/http1_chunked.h"
#include "core/net/tls.h"
#include "core/pipeline/endpoint.h"
#include "extensions/basicauth/basic_credentials.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { HEAD_MAX = 64 << 10 };

/* Sets err after a failed call. errno is 0 if the peer closed the connection. Returns false. */
static bool fail(const char *where, const struct http_get_options *options, struct error *err)
{
    if (errno == EAGAIN || errno == EINPROGRESS)
        return error_set(err, "%s: no answer within %u s", where, options->timeout_s);
    return error_set(err, "%s: %s", where, errno ? strerror(errno) : "no answer");
}

/* Returns a connected socket with timeouts, or -1 with errno set. */
static int open_socket(const struct addrinfo *address, unsigned timeout_s)
{
    const struct timeval timeout = {.tv_sec = timeout_s};
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
static int connect_to(const struct endpoint *endpoint, const struct http_get_options *options,
                      struct error *err)
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
        fd = open_socket(address, options->timeout_s);
    if (fd < 0)
        fail(endpoint->url, options, err);
    freeaddrinfo(addresses);
    return fd;
}

static int connect_to_socket(const char *path, const struct http_get_options *options,
                             struct error *err)
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
    int fd = size >= sizeof place.sun_path ? -1 : open_socket(&address, options->timeout_s);
    if (fd < 0)
        fail(path, options, err);
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

static bool shake_hands(struct link *link, const struct endpoint *endpoint,
                        const struct http_get_options *options, struct error *err)
{
    static const char *const alpn[] = {"http/1.1", NULL};
    const struct tls_client_settings settings = {.ca_file = options->ca_file,
                                                 .insecure_skip_verify = options->skip_verify};
    link->context = tls_context_client(&settings, alpn, err);
    link->tls = link->context ? tls_stream_new(link->context, endpoint->host, err) : NULL;
    if (!link->tls)
        return error_prefix(err, "%s", endpoint->url);
    bool ok = send_tls_output(link);
    errno = 0;
    while (ok && !tls_stream_ready(link->tls)) {
        uint8_t none;
        ok = receive_tls(link, &none, 1) == 0;
    }
    const char *why = tls_stream_error(link->tls);
    if (!ok && why[0])
        return error_set(err, "%s: %s", endpoint->url, why);
    return ok || fail(endpoint->url, options, err);
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

/* ---- the answer ---- */

/* Receives until the end of the head, or also the body. Sets *head_size to 0 if there is no head.
 * errno is 0 if the server closed the connection. */
static struct buffer *receive_answer(struct link *link, const struct http_get_options *options,
                                     size_t *head_size)
{
    uint8_t piece[16 << 10];
    struct buffer *answer = buffer_new(0, NULL);
    ssize_t received;
    errno = 0;
    *head_size = 0;
    while ((received = receive(link, piece, sizeof piece)) >= 0) {
        if (!buffer_append(answer, piece, (size_t)received, HEAD_MAX + options->body_max)) {
            errno = EFBIG;
            break;
        }
        const struct slice all = buffer_slice(answer);
        bool seeks = *head_size == 0 && all.size > 0; /* TLS may receive nothing at first */
        const uint8_t *end = seeks ? memmem(all.data, all.size, "\r\n\r\n", 4) : NULL;
        if (end)
            *head_size = (size_t)(end - all.data) + 4;
        if (*head_size && options->body_max == 0)
            break;
        errno = 0;
    }
    return answer;
}

/* Returns the value of a header; an empty slice without one. */
static struct slice header(struct slice head, const char *name)
{
    size_t size = strlen(name);
    const char *at = (const char *)head.data, *end = at + head.size;
    for (; (at = memmem(at, (size_t)(end - at), "\r\n", 2)) != NULL; at += 2) {
        const char *line = at + 2;
        if ((size_t)(end - line) <= size || strncasecmp(line, name, size) != 0 || line[size] != ':')
            continue;
        const char *value = line + size + 1;
        const char *stop = memmem(value, (size_t)(end - value), "\r\n", 2);
        return slice_trim(slice_of(value, (size_t)(stop - value)), SLICE_SPACES);
    }
    return (struct slice){0};
}

static struct buffer *decode_chunked(struct slice coded)
{
    struct http1_chunked chunked = {0};
    struct buffer *body = buffer_new(coded.size, NULL);
    struct slice payload;
    enum http1_chunked_result result = HTTP1_CHUNKED_MORE;
    while (result == HTTP1_CHUNKED_MORE && coded.size > 0) {
        result = http1_chunked_step(&chunked, &coded, &payload);
        buffer_append(body, payload.data, payload.size, SIZE_MAX);
    }
    if (result == HTTP1_CHUNKED_DONE)
        return body;
    buffer_unref(body);
    return NULL;
}

/* Returns NULL if the body is not complete. */
static struct buffer *decode_body(struct slice head, struct slice body)
{
    if (header(head, "transfer-encoding").size > 0) /* only "chunked" was asked for */
        return decode_chunked(body);
    struct slice length = header(head, "content-length");
    char text[24];
    snprintf(text, sizeof text, "%.*s", (int)length.size, (const char *)length.data);
    if (length.size > 0 && strtoull(text, NULL, 10) != body.size)
        return NULL;
    struct buffer *copy = buffer_new(body.size, NULL);
    buffer_append(copy, body.data, body.size, SIZE_MAX);
    return copy;
}

static bool read_status(struct slice head, struct http_answer *answer)
{
    char line[sizeof answer->version + sizeof answer->status];
    snprintf(line, sizeof line, "%.*s", (int)head.size, (const char *)head.data);
    line[strcspn(line, "\r\n")] = '\0';
    return sscanf(line, "%8s %127[^\r\n]", answer->version, answer->status) == 2 &&
           strncmp(answer->version, "HTTP/1.", 7) == 0;
}

static bool read_answer(struct link *link, const struct endpoint *endpoint,
                        const struct http_get_options *options, struct http_answer *answer,
                        struct error *err)
{
    size_t head_size;
    struct buffer *received = receive_answer(link, options, &head_size);
    const struct slice all = buffer_slice(received), head = slice_of(all.data, head_size);
    bool is_read = false;
    if (all.size == 0 || (errno != 0 && (options->body_max > 0 || head_size == 0)))
        fail(endpoint->url, options, err);
    else if (head_size == 0 || !read_status(head, answer))
        error_set(err, "%s: not an answer of HTTP", endpoint->url);
    else
        is_read = true;
    if (is_read && options->body_max > 0) {
        answer->body = decode_body(head, slice_of(all.data + head_size, all.size - head_size));
        is_read = answer->body || error_set(err, "%s: the answer is incomplete", endpoint->url);
    }
    buffer_unref(received);
    return is_read;
}

static bool ask(struct link *link, const struct endpoint *endpoint, const char *credentials,
                const struct http_get_options *options, struct http_answer *answer,
                struct error *err)
{
    char request[2048];
    int size = snprintf(request, sizeof request,
                        "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n%s%s%s\r\n",
                        endpoint->path, endpoint->authority, credentials ? "Authorization: " : "",
                        credentials ? credentials : "", credentials ? "\r\n" : "");
    if (size < 0 || (size_t)size >= sizeof request)
        return error_set(err, "%s: the URL is too long", endpoint->url);
    errno = 0;
    if (!send_request(link, slice_of(request, (size_t)size)))
        return fail(endpoint->url, options, err);
    return read_answer(link, endpoint, options, answer, err);
}

/* ---- the place ---- */

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

/* Returns where the host of a URL begins. */
static const char *find_host(const char *url)
{
    const char *scheme = strstr(url, "://");
    const char *authority = scheme ? scheme + 3 : url;
    const char *at = memrchr(authority, '@', strcspn(authority, "/?#"));
    return at ? at + 1 : authority;
}

const char *http_get_shown(const char *url)
{
    const char *host = find_host(url);
    return host > url && host[-1] == '@' ? host : url;
}

static const char *decode(struct arena *arena, struct slice text)
{
    uint8_t *plain = arena_alloc(arena, text.size + 1);
    size_t size;
    text_decode_percent(text, TEXT_PERCENT_KEEP_BROKEN, plain, text.size, &size);
    plain[size] = '\0';
    return (const char *)plain;
}

/* Takes user and password off a URL. Returns the value of the header; NULL if there are none. */
static const char *take_credentials(struct arena *arena, const char **url)
{
    const char *host = find_host(*url), *scheme = strstr(*url, "://");
    const char *user = scheme ? scheme + 3 : *url;
    if (host == user)
        return NULL;
    const char *end = host - 1, *colon = memchr(user, ':', (size_t)(end - user));
    const char *name_end = colon ? colon : end, *password = colon ? colon + 1 : end;
    *url = arena_printf(arena, "%.*s%s", (int)(user - *url), *url, host);
    return basic_credentials_print(arena, decode(arena, slice_of(user, (size_t)(name_end - user))),
                                   decode(arena, slice_of(password, (size_t)(end - password))));
}

/* Returns the value of an Authorization header; NULL: none. */
static const char *credentials_of(struct arena *arena, const char **url,
                                  const struct http_get_options *options)
{
    const char *of_url = strncmp(*url, "unix:", 5) == 0 ? NULL : take_credentials(arena, url);
    if (of_url || !options->bearer_token)
        return of_url;
    return arena_printf(arena, "Bearer %s", options->bearer_token);
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

static bool get(struct arena *arena, const char *url, const struct http_get_options *options,
                struct http_answer *answer, struct error *err)
{
    struct endpoint endpoint;
    const char *credentials = credentials_of(arena, &url, options);
    if (!parse(arena, url, &endpoint, err))
        return false;
    assert(endpoint.scheme == ENDPOINT_HTTP || endpoint.scheme == ENDPOINT_HTTPS);
    answer->is_https = endpoint.scheme == ENDPOINT_HTTPS;
    struct link link = {.fd = endpoint.unix_socket ? connect_to_socket(endpoint.host, options, err)
                                                   : connect_to(&endpoint, options, err)};
    if (link.fd < 0)
        return false;
    bool is_read = (!answer->is_https || shake_hands(&link, &endpoint, options, err)) &&
                   ask(&link, &endpoint, credentials, options, answer, err);
    close_link(&link);
    return is_read;
}

bool http_get(const char *url, const struct http_get_options *options, struct http_answer *answer,
              struct error *err)
{
    struct arena arena;
    arena_init(&arena, NULL);
    *answer = (struct http_answer){.body = NULL};
    bool is_read = get(&arena, url, options, answer, err);
    arena_deinit(&arena);
    return is_read;
}
