#include "loopback_peer.h"

#include "core/base/memory.h"

#include <arpa/inet.h>
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { CONNECTIONS_MAX = 64, REQUESTS_MAX = 4096 };

struct peer {
    struct peer_options options;
    int listener;
    uint16_t port;
    pthread_t acceptor;
    pthread_mutex_t lock;
    pthread_t threads[CONNECTIONS_MAX];
    int sockets[CONNECTIONS_MAX];
    unsigned connections;
    struct peer_request *requests[REQUESTS_MAX];
    size_t request_count;
    bool stopping;
};

struct connection {
    struct peer *peer;
    int socket;
    unsigned number;
    bool over;
    struct h2_stream *streams; /* all streams so far */
};

static bool write_all(int s, const void *data, size_t size)
{
    const char *at = data;
    while (size > 0) {
        ssize_t n = send(s, at, size, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        at += n;
        size -= (size_t)n;
    }
    return true;
}

/* Takes over the request. */
static struct peer_answer ask(struct peer *peer, struct peer_request *request)
{
    struct peer_answer answer = {.status = 200};
    pthread_mutex_lock(&peer->lock);
    assert(peer->request_count < REQUESTS_MAX);
    unsigned number = (unsigned)peer->request_count;
    peer->requests[peer->request_count++] = request;
    pthread_mutex_unlock(&peer->lock);
    if (peer->options.answer)
        peer->options.answer(peer->options.context, number, request, &answer);
    return answer;
}

static void wait_for_end(struct connection *connection)
{
    char byte[256];
    while (recv(connection->socket, byte, sizeof byte, 0) > 0)
        ;
}

/* ---- HTTP/1.1 ---- */

static bool read_head(int s, struct text *head)
{
    char byte;
    while (head->size < 4 || memcmp(head->data + head->size - 4, "\r\n\r\n", 4) != 0) {
        if (recv(s, &byte, 1, 0) != 1)
            return false;
        text_append_char(head, byte);
    }
    return true;
}

static size_t take_lines(struct text *raw, struct peer_request *request)
{
    size_t length = 0;
    char *save = NULL;
    char *line = strtok_r(raw->data, "\r\n", &save);
    char method[16], path[512];
    assert(sscanf(line, "%15s %511s", method, path) == 2);
    text_printf(&request->head, ":method: %s\n:path: %s\n", method, path);
    while ((line = strtok_r(NULL, "\r\n", &save)) != NULL) {
        for (char *c = line; *c && *c != ':'; c++)
            *c = (char)tolower(*c);
        text_printf(&request->head, "%s\n", line);
        if (strncmp(line, "content-length:", 15) == 0)
            length = strtoul(line + 15, NULL, 10);
    }
    return length;
}

static struct peer_request *read_h1_request(struct connection *connection)
{
    struct text raw = {0};
    if (!read_head(connection->socket, &raw)) {
        text_deinit(&raw);
        return NULL;
    }
    struct peer_request *request = memory_zalloc(sizeof *request);
    request->connection = connection->number;
    size_t length = take_lines(&raw, request);
    text_deinit(&raw);
    while (request->body.size < length) {
        char buffer[16384];
        size_t want = length - request->body.size;
        if (connection->peer->options.slow_reader)
            usleep(500);
        ssize_t n =
            recv(connection->socket, buffer, want < sizeof buffer ? want : sizeof buffer, 0);
        if (n <= 0)
            break;
        text_append_slice(&request->body, slice_of(buffer, (size_t)n));
    }
    return request;
}

static void write_h1_answer(struct connection *connection, const struct peer_answer *answer)
{
    struct text out = {0};
    text_printf(&out, "HTTP/1.1 %d Text\r\n", answer->status);
    for (int i = 0; i < PEER_HEADERS_MAX && answer->headers[i].name; i++)
        text_printf(&out, "%s: %s\r\n", answer->headers[i].name, answer->headers[i].value);
    text_printf(&out, "Content-Length: %zu\r\n\r\n", answer->body.size);
    size_t size = answer->action == PEER_HALF ? answer->body.size / 2 : answer->body.size;
    text_append_slice(&out, slice_of(answer->body.data, size));
    if (answer->action == PEER_DRIP) {
        for (size_t i = 0; i < out.size; i++) {
            if (!write_all(connection->socket, out.data + i, 1))
                connection->over = true;
            usleep(20000);
        }
    } else if (!write_all(connection->socket, out.data, out.size)) {
        connection->over = true;
    }
    if (answer->action == PEER_HALF)
        connection->over = true;
    text_deinit(&out);
}

static void serve_h1(struct connection *connection)
{
    while (!connection->over) {
        struct peer_request *request = read_h1_request(connection);
        if (!request)
            return;
        struct peer_answer answer = ask(connection->peer, request);
        if (answer.action == PEER_SILENT)
            wait_for_end(connection);
        else if (answer.action == PEER_RAW_TEXT)
            connection->over =
                !write_all(connection->socket, answer.body.data, answer.body.size) || !answer.keep;
        else if (answer.action == PEER_CLOSE)
            return;
        else
            write_h1_answer(connection, &answer);
    }
}

/* ---- HTTP/2 ---- */

struct h2_stream {
    struct h2_stream *next;
    struct peer_request *request;
    struct peer_answer answer;
    size_t sent;
};

static ssize_t on_send(nghttp2_session *session, const uint8_t *data, size_t size, int flags,
                       void *context)
{
    struct connection *connection = context;
    (void)session, (void)flags;
    if (write_all(connection->socket, data, size))
        return (ssize_t)size;
    connection->over = true;
    return NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int on_begin(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
    struct connection *connection = context;
    struct h2_stream *stream = memory_zalloc(sizeof *stream);
    stream->request = memory_zalloc(sizeof *stream->request);
    stream->request->connection = connection->number;
    stream->next = connection->streams;
    connection->streams = stream;
    nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, stream);
    return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
                     void *context)
{
    struct h2_stream *stream = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    (void)flags, (void)context;
    text_printf(&stream->request->head, "%.*s: %.*s\n", (int)name_size, (const char *)name,
                (int)value_size, (const char *)value);
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
                   size_t size, void *context)
{
    struct h2_stream *stream = nghttp2_session_get_stream_user_data(session, id);
    (void)flags, (void)context;
    if (stream && stream->request)
        text_append_slice(&stream->request->body, slice_of(data, size));
    return 0;
}

static size_t make_nv(const struct peer_header *headers, nghttp2_nv *out)
{
    size_t count = 0;
    for (; count < PEER_HEADERS_MAX && headers[count].name; count++)
        out[count] = (nghttp2_nv){
            (uint8_t *)(uintptr_t)headers[count].name, (uint8_t *)(uintptr_t)headers[count].value,
            strlen(headers[count].name), strlen(headers[count].value), NGHTTP2_NV_FLAG_NONE};
    return count;
}

static ssize_t on_read(nghttp2_session *session, int32_t id, uint8_t *to, size_t size,
                       uint32_t *flags, nghttp2_data_source *source, void *context)
{
    struct h2_stream *stream = source->ptr;
    (void)context;
    size_t end = stream->answer.action == PEER_HALF ? stream->answer.body.size / 2
                                                    : stream->answer.body.size;
    size_t left = end - stream->sent;
    if (size > left)
        size = left;
    if (size > 0)
        memcpy(to, stream->answer.body.data + stream->sent, size);
    stream->sent += size;
    if (stream->sent < end)
        return (ssize_t)size;
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (stream->answer.action == PEER_HALF) {
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, id, NGHTTP2_INTERNAL_ERROR);
    } else if (stream->answer.trailers[0].name) {
        nghttp2_nv nv[PEER_HEADERS_MAX];
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        nghttp2_submit_trailer(session, id, nv, make_nv(stream->answer.trailers, nv));
    }
    return (ssize_t)size;
}

static void answer_h2(nghttp2_session *session, struct connection *connection, int32_t id,
                      struct h2_stream *stream)
{
    const struct peer_answer *answer = &stream->answer;
    if (answer->action == PEER_SILENT)
        return;
    if (answer->action == PEER_CLOSE) {
        connection->over = true;
        return;
    }
    if (answer->action == PEER_RESET) {
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, id, answer->code);
        return;
    }
    if (answer->action == PEER_GOAWAY) {
        nghttp2_submit_goaway(session, NGHTTP2_FLAG_NONE, id > 2 ? id - 2 : 0, answer->code, NULL,
                              0);
        return;
    }
    char status[16];
    snprintf(status, sizeof status, "%d", answer->status);
    nghttp2_nv nv[PEER_HEADERS_MAX + 1] = {{(uint8_t *)(uintptr_t) ":status", (uint8_t *)status, 7,
                                            strlen(status), NGHTTP2_NV_FLAG_NONE}};
    size_t count = 1 + make_nv(answer->headers, nv + 1);
    nghttp2_data_provider body = {.source = {.ptr = stream}, .read_callback = on_read};
    nghttp2_submit_response(session, id, nv, count, answer->no_body ? NULL : &body);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
    struct connection *connection = context;
    if ((frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) ||
        !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        return 0;
    struct h2_stream *stream = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    struct peer_request *request = stream->request;
    stream->request = NULL;
    stream->answer = ask(connection->peer, request);
    answer_h2(session, connection, frame->hd.stream_id, stream);
    return 0;
}

static void free_streams(struct connection *connection)
{
    while (connection->streams) {
        struct h2_stream *stream = connection->streams;
        connection->streams = stream->next;
        if (stream->request) {
            text_deinit(&stream->request->head);
            text_deinit(&stream->request->body);
            free(stream->request);
        }
        free(stream);
    }
}

static nghttp2_session *new_h2(struct connection *connection)
{
    nghttp2_session_callbacks *callbacks;
    nghttp2_session *session;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_send_callback(callbacks, on_send);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_server_new(&session, callbacks, connection);
    nghttp2_session_callbacks_del(callbacks);
    uint32_t streams = connection->peer->options.max_streams;
    nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, streams ? streams : 100}};
    nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings, 1);
    return session;
}

static void serve_h2(struct connection *connection)
{
    nghttp2_session *session = new_h2(connection);
    nghttp2_session_send(session);
    while (!connection->over) {
        uint8_t buffer[16384];
        if (connection->peer->options.slow_reader)
            usleep(500);
        ssize_t n = recv(connection->socket, buffer, sizeof buffer, 0);
        if (n <= 0 || nghttp2_session_mem_recv(session, buffer, (size_t)n) < 0 ||
            nghttp2_session_send(session) != 0)
            break;
    }
    nghttp2_session_del(session);
    free_streams(connection);
}

/* ---- connections ---- */

static void *serve(void *context)
{
    struct connection *connection = context;
    struct peer *peer = connection->peer;
    if (peer->options.protocol == PEER_HTTP1)
        serve_h1(connection);
    else if (peer->options.protocol == PEER_HTTP2)
        serve_h2(connection);
    else
        peer->options.serve(peer->options.context, connection->socket, connection->number);
    pthread_mutex_lock(&peer->lock);
    close(connection->socket);
    peer->sockets[connection->number] = -1;
    pthread_mutex_unlock(&peer->lock);
    free(connection);
    return NULL;
}

static void *accept_all(void *context)
{
    struct peer *peer = context;
    for (;;) {
        int s = accept(peer->listener, NULL, NULL);
        if (s < 0)
            return NULL;
        int on = 1;
        setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        pthread_mutex_lock(&peer->lock);
        assert(peer->connections < CONNECTIONS_MAX);
        struct connection *connection = memory_zalloc(sizeof *connection);
        *connection = (struct connection){.peer = peer, .socket = s, .number = peer->connections};
        peer->sockets[peer->connections] = s;
        pthread_create(&peer->threads[peer->connections++], NULL, serve, connection);
        pthread_mutex_unlock(&peer->lock);
    }
}

static int listen_unix(const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    snprintf(name.sun_path, sizeof name.sun_path, "%s", path);
    unlink(path);
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    assert(bind(s, (struct sockaddr *)&name, sizeof name) == 0);
    return s;
}

static int listen_tcp(uint16_t *port, bool small, bool any)
{
    struct sockaddr_in name = {.sin_family = AF_INET,
                               .sin_addr = {htonl(any ? INADDR_ANY : INADDR_LOOPBACK)}};
    socklen_t size = sizeof name;
    int s = socket(AF_INET, SOCK_STREAM, 0), bytes = 4096;
    if (small)
        setsockopt(s, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    assert(bind(s, (struct sockaddr *)&name, sizeof name) == 0);
    assert(getsockname(s, (struct sockaddr *)&name, &size) == 0);
    *port = ntohs(name.sin_port);
    return s;
}

struct peer *peer_new(const struct peer_options *options)
{
    struct peer *peer = memory_zalloc(sizeof *peer);
    peer->options = *options;
    pthread_mutex_init(&peer->lock, NULL);
    peer->listener = options->unix_path
                         ? listen_unix(options->unix_path)
                         : listen_tcp(&peer->port, options->slow_reader, options->any_address);
    assert(listen(peer->listener, 64) == 0);
    pthread_create(&peer->acceptor, NULL, accept_all, peer);
    return peer;
}

uint16_t peer_port(const struct peer *peer)
{
    return peer->port;
}

void peer_free(struct peer *peer)
{
    shutdown(peer->listener, SHUT_RDWR);
    pthread_join(peer->acceptor, NULL);
    close(peer->listener);
    pthread_mutex_lock(&peer->lock);
    for (unsigned i = 0; i < peer->connections; i++)
        if (peer->sockets[i] >= 0)
            shutdown(peer->sockets[i], SHUT_RDWR);
    pthread_mutex_unlock(&peer->lock);
    for (unsigned i = 0; i < peer->connections; i++)
        pthread_join(peer->threads[i], NULL);
    for (size_t i = 0; i < peer->request_count; i++) {
        text_deinit(&peer->requests[i]->head);
        text_deinit(&peer->requests[i]->body);
        free(peer->requests[i]);
    }
    if (peer->options.unix_path)
        unlink(peer->options.unix_path);
    pthread_mutex_destroy(&peer->lock);
    free(peer);
}

unsigned peer_connections(struct peer *peer)
{
    pthread_mutex_lock(&peer->lock);
    unsigned count = peer->connections;
    pthread_mutex_unlock(&peer->lock);
    return count;
}

size_t peer_requests(struct peer *peer)
{
    pthread_mutex_lock(&peer->lock);
    size_t count = peer->request_count;
    pthread_mutex_unlock(&peer->lock);
    return count;
}

const struct peer_request *peer_request(struct peer *peer, size_t number)
{
    pthread_mutex_lock(&peer->lock);
    assert(number < peer->request_count);
    const struct peer_request *request = peer->requests[number];
    pthread_mutex_unlock(&peer->lock);
    return request;
}

const char *peer_header(const struct peer_request *request, const char *name)
{
    static char value[1024];
    char key[128];
    snprintf(key, sizeof key, "%s: ", name);
    const char *at = text_string(&request->head);
    while (at && *at) {
        if (strncmp(at, key, strlen(key)) == 0) {
            const char *start = at + strlen(key);
            snprintf(value, sizeof value, "%.*s", (int)strcspn(start, "\n"), start);
            return value;
        }
        at = strchr(at, '\n');
        at = at ? at + 1 : NULL;
    }
    return "";
}

uint16_t peer_unused_port(void)
{
    uint16_t port;
    close(listen_tcp(&port, false, false));
    return port;
}
