/*
 * bench_sink: a backend that takes everything at once, over OTLP/HTTP and OTLP/gRPC on one port.
 *
 *     bench_sink [--count]     prints the port it listens on; with SIGUSR1 what it has got so far,
 *                              one JSON line; ends with SIGTERM, printing it again
 *
 * --count looks into the (uncompressed) requests and counts spans, samples, data points and
 * log records, until SIGUSR2;
 * otherwise bodies of HTTP/1.1 are thrown away without being copied out of the kernel.
 */
#include "bench/payload.h"
#include "bench/sockets.h"
#include "core/base/memory.h"
#include "core/base/text.h"
#include "core/data/signals.h"

#include <errno.h>
#include <inttypes.h>
#include <nghttp2/nghttp2.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BUFFER_BYTES = 1024 * 1024, HEAD_MAX = 16 * 1024, WINDOW_BYTES = 64 * 1024 * 1024 };

static struct {
    uint64_t requests, bytes, items[SIGNAL_COUNT], errors;
} totals;
static bool counting;
static int poll_fd;
static uint8_t buffer[BUFFER_BYTES];

struct connection {
    int fd;
    bool known; /* which protocol it speaks */
    nghttp2_session *h2;
    struct text input;  /* HTTP/1.1: head, then the body when it is counted */
    struct text output; /* what the socket did not take */
    bool waits_for_room;
    uint64_t body_left; /* HTTP/1.1 */
    bool in_body;
    enum signal signal;
};

struct stream {
    struct text body;
    enum signal signal;
};

/* "/v1/logs" and "/opentelemetry.proto.collector.logs.v1.LogsService/Export" have the signal's
 * name; what has none is taken for traces. */
static enum signal signal_of_path(const char *path, size_t size)
{
    for (unsigned i = 0; i < SIGNAL_COUNT; i++) {
        const char *name = signal_traits((enum signal)i)->name;
        if (memmem(path, size, name, strlen(name)))
            return (enum signal)i;
    }
    return SIGNAL_TRACES;
}

static void take_body(const struct text *body, size_t skip, enum signal signal)
{
    size_t items = 0;
    if (counting) {
        if (body->size < skip)
            items = SIZE_MAX;
        else
            items = payload_count_items(slice_of(body->data + skip, body->size - skip), signal);
    }
    if (items == SIZE_MAX)
        totals.errors++;
    else
        totals.items[signal] += items;
    totals.requests++;
}

static void flush_output(struct connection *connection)
{
    struct text *out = &connection->output;
    ssize_t sent = out->size ? send(connection->fd, out->data, out->size, MSG_NOSIGNAL) : 0;
    if (sent > 0) {
        memmove(out->data, out->data + sent, out->size - (size_t)sent);
        out->size -= (size_t)sent;
    }
    if ((out->size > 0) != connection->waits_for_room) {
        connection->waits_for_room = out->size > 0;
        poll_change(poll_fd, connection->fd,
                    EPOLLIN | (connection->waits_for_room ? (uint32_t)EPOLLOUT : 0), connection);
    }
}

/* ---- HTTP/2 ---- */

static int on_begin(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
    (void)context;
    nghttp2_session_set_stream_user_data(session, frame->hd.stream_id,
                                         memory_zalloc(sizeof(struct stream)));
    return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
                     void *context)
{
    (void)flags, (void)context;
    struct stream *stream = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (stream && name_size == 5 && memcmp(name, ":path", 5) == 0)
        stream->signal = signal_of_path((const char *)value, value_size);
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream_id, const uint8_t *data,
                   size_t size, void *context)
{
    (void)flags, (void)context;
    struct stream *stream = nghttp2_session_get_stream_user_data(session, stream_id);
    totals.bytes += size;
    if (counting && stream)
        text_append_slice(&stream->body, slice_of(data, size));
    return 0;
}

#define HEADER(name, value)                                                                        \
    {                                                                                              \
        (uint8_t *)(name), (uint8_t *)(value), sizeof(name) - 1, sizeof(value) - 1, 0              \
    }

static ssize_t read_answer(nghttp2_session *session, int32_t stream_id, uint8_t *to, size_t room,
                           uint32_t *flags, nghttp2_data_source *source, void *context)
{
    (void)room, (void)source, (void)context;
    static const nghttp2_nv trailers[] = {HEADER("grpc-status", "0")};
    memset(to, 0, 5);
    *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
    nghttp2_submit_trailer(session, stream_id, trailers, 1);
    return 5;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
    (void)context;
    if (!(frame->hd.flags & NGHTTP2_FLAG_END_STREAM) ||
        (frame->hd.type != NGHTTP2_DATA && frame->hd.type != NGHTTP2_HEADERS))
        return 0;
    struct stream *stream = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    take_body(&stream->body, 5, stream->signal);
    static const nghttp2_nv headers[] = {HEADER(":status", "200"),
                                         HEADER("content-type", "application/grpc")};
    nghttp2_data_provider provider = {.read_callback = read_answer};
    nghttp2_submit_response(session, frame->hd.stream_id, headers, 2, &provider);
    return 0;
}

static int on_close(nghttp2_session *session, int32_t stream_id, uint32_t code, void *context)
{
    (void)code, (void)context;
    struct stream *stream = nghttp2_session_get_stream_user_data(session, stream_id);
    if (stream)
        text_deinit(&stream->body);
    free(stream);
    return 0;
}

static void start_h2(struct connection *connection)
{
    nghttp2_session_callbacks *callbacks;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_session_server_new(&connection->h2, callbacks, connection);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW_BYTES},
                                         {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, BUFFER_BYTES}};
    nghttp2_submit_settings(connection->h2, NGHTTP2_FLAG_NONE, settings, 2);
    nghttp2_session_set_local_window_size(connection->h2, NGHTTP2_FLAG_NONE, 0, WINDOW_BYTES);
}

static bool take_h2(struct connection *connection, size_t size)
{
    const uint8_t *out;
    ssize_t got = nghttp2_session_mem_recv(connection->h2, buffer, size);
    while (got >= 0 && (got = nghttp2_session_mem_send(connection->h2, &out)) > 0)
        text_append_slice(&connection->output, slice_of(out, (size_t)got));
    return got >= 0;
}

/* ---- HTTP/1.1 ---- */

static void answer_h1(struct connection *connection)
{
    take_body(&connection->input, 0, connection->signal);
    connection->in_body = false;
    text_clear(&connection->input);
    text_append(
        &connection->output,
        "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n");
}

static void take_body_bytes(struct connection *connection, const void *data, size_t size)
{
    connection->body_left -= size;
    totals.bytes += size;
    if (counting)
        text_append_slice(&connection->input, slice_of(data, size));
    if (connection->body_left == 0)
        answer_h1(connection);
}

/* One request after the other: behind a body no second head is expected in the same read. */
static bool take_h1(struct connection *connection, const uint8_t *data, size_t size)
{
    if (connection->in_body) {
        if (size > connection->body_left)
            return false;
        take_body_bytes(connection, data, size);
        return true;
    }
    text_append_slice(&connection->input, slice_of(data, size));
    char *end = strstr(connection->input.data, "\r\n\r\n");
    if (!end)
        return connection->input.size < HEAD_MAX;
    *end = 0;
    const char *length = strcasestr(connection->input.data, "\r\nContent-Length:");
    if (!length)
        return false;
    connection->body_left = strtoull(length + strlen("\r\nContent-Length:"), NULL, 10);
    connection->signal =
        signal_of_path(connection->input.data, strcspn(connection->input.data, "\r"));
    connection->in_body = true;
    size_t head = (size_t)(end + 4 - connection->input.data);
    size_t rest = connection->input.size - head;
    memcpy(buffer, connection->input.data + head, rest); /* at most what came from there */
    text_clear(&connection->input);
    if (rest > connection->body_left)
        return false;
    take_body_bytes(connection, buffer, rest);
    return true;
}

/* ---- connections ---- */

static bool take(struct connection *connection, size_t size)
{
    if (!connection->known) {
        connection->known = true;
        if (size >= 3 && memcmp(buffer, "PRI", 3) == 0)
            start_h2(connection);
    }
    return connection->h2 ? take_h2(connection, size) : take_h1(connection, buffer, size);
}

static bool on_readable(struct connection *connection)
{
    bool skips = connection->in_body && !counting;
    size_t room = sizeof buffer / 2;
    if (skips && connection->body_left < room)
        room = connection->body_left;
    ssize_t got = recv(connection->fd, skips ? NULL : buffer, room, skips ? MSG_TRUNC : 0);
    if (got <= 0)
        return got < 0 && errno == EAGAIN;
    if (skips)
        take_body_bytes(connection, NULL, (size_t)got);
    else if (!take(connection, (size_t)got)) {
        totals.errors++;
        return false;
    }
    return true;
}

static void close_connection(struct connection *connection)
{
    close(connection->fd);
    nghttp2_session_del(connection->h2); /* the bodies of open streams are lost with it */
    text_deinit(&connection->input);
    text_deinit(&connection->output);
    free(connection);
}

static void print_totals(void)
{
    printf("{\"requests\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"spans\": %" PRIu64
           ", \"samples\": %" PRIu64 ", \"points\": %" PRIu64 ", \"records\": %" PRIu64
           ", \"errors\": %" PRIu64 "}\n",
           totals.requests, totals.bytes, totals.items[SIGNAL_TRACES],
           totals.items[SIGNAL_PROFILES], totals.items[SIGNAL_METRICS], totals.items[SIGNAL_LOGS],
           totals.errors);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    counting = argc > 1 && strcmp(argv[1], "--count") == 0;
    uint16_t port;
    int listener = socket_listen(0, &port);
    poll_fd = epoll_create1(EPOLL_CLOEXEC);
    int signals = poll_signals(poll_fd);
    poll_add(poll_fd, listener, EPOLLIN, &listener);
    printf("%u\n", port);
    fflush(stdout);
    for (;;) {
        struct epoll_event events[64];
        int count = epoll_wait(poll_fd, events, 64, -1);
        for (int i = 0; i < count; i++) {
            struct connection *connection = events[i].data.ptr;
            struct signalfd_siginfo info;
            if (!connection) {
                if (read(signals, &info, sizeof info) != (ssize_t)sizeof info)
                    die("signalfd");
                if (info.ssi_signo == SIGUSR2) {
                    counting = false;
                    continue;
                }
                print_totals();
                if (info.ssi_signo != SIGUSR1)
                    return 0;
            } else if (events[i].data.ptr == &listener) {
                connection = memory_zalloc(sizeof *connection);
                connection->fd = socket_accept(listener);
                poll_add(poll_fd, connection->fd, EPOLLIN, connection);
            } else if (events[i].events & ~(uint32_t)EPOLLOUT && !on_readable(connection)) {
                close_connection(connection);
            } else {
                flush_output(connection);
            }
        }
    }
}
