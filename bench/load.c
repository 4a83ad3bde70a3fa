/*
 * bench_load: sends traces, profiles, metrics or logs over OTLP/gRPC or OTLP/HTTP, prints what
 * happened as one line of JSON.
 *
 *     bench_load --port PORT [options]
 *       --protocol grpc|http      gRPC; HTTP/1.1 has one request in flight per connection
 *       --signal traces|profiles|metrics|logs|both   both: each traces request is followed, when it
 * was accepted, by a profiles request whose samples name its spans
 *       --spans N, --samples N, --points N, --records N   in one request (500, 2000, 500, 500)
 *       --stacks N                different stacks of a profiles request, without times and threads
 *                                 (one for each sample, with them)
 *       --trace-requests N        the spans of a trace are in so many requests (1)
 *       --connections N, --in-flight N   (8, 4)
 *       --seconds N               (3); then what is under way is awaited
 *       --requests N              ends after that many requests instead of after a time
 *       --rate N                  items a second instead of as fast as answers come; latency is
 *                                 then counted from the time a request was due
 *       --pause N                 milliseconds between an answer and the next request in its place
 *       --gzip, --json            bodies prepared in advance, eight of each
 *       --frame N                 bytes in a DATA frame at most (256 KiB, or what the server
 * allows)
 *       --first N                 number of the first request: ids of two runs differ
 */
#include "bench/payload.h"
#include "bench/sockets.h"
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/base/text.h"
#include "core/data/json.h"
#include "core/data/signals.h"
#include "core/net/compression.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>

enum {
    PREFIX = 5,
    VARIANTS = 8,
    OUTPUT_BYTES = 1024 * 1024,
    FRAME_BYTES = 256 * 1024,
    ANSWERS_WAIT_S = 20
};
#define REFUSED_PAUSE_NS UINT64_C(2000000)
#define WINDOW_BYTES (16 * 1024 * 1024)

static struct {
    uint16_t port;
    enum signal signal; /* with both: traces */
    bool http, both, gzip, json;
    uint32_t items[SIGNAL_COUNT]; /* in one request */
    unsigned connections, in_flight;
    uint64_t seconds, requests, rate, pause_ms, first;
    uint32_t frame, trace_requests, stacks;
} options = {.frame = FRAME_BYTES,
             .items = {500, 2000, 500, 500},
             .connections = 8,
             .in_flight = 4,
             .seconds = 3};

static struct {
    uint64_t requests, items[SIGNAL_COUNT], bytes, refused, errors;
    uint32_t *latencies_us;
    size_t latency_count;
} totals;

/* A request's bytes, with room for gRPC's prefix in front. */
struct body {
    uint8_t *data;
    size_t size; /* prefix included */
};

/* One of the requests that may be in flight. */
struct slot {
    struct connection *connection;
    struct payload payloads[SIGNAL_COUNT]; /* stamped for each request; empty when bodies are
                                              prepared, and for signals that are not sent */
    struct body bodies[SIGNAL_COUNT];      /* the same bytes, behind a prefix */
    bool busy;
    bool profiles_next; /* with both: its spans were accepted */
    enum signal signal; /* what is under way */
    uint64_t request;
    uint64_t due_ns;
    uint64_t paused_until_ns;
    const struct body *body;
    size_t sent;
    int status; /* as it comes in */
    int grpc_status;
};

struct connection {
    int fd;
    nghttp2_session *h2;
    struct slot *slots;
    struct text answer; /* HTTP/1.1 */
    uint8_t *output;
    size_t output_from, output_to;
    bool waits_for_room;
};

static struct payload payloads[SIGNAL_COUNT]; /* those that are sent */
static struct body prepared[SIGNAL_COUNT][VARIANTS];
static struct connection *connections;
static uint64_t next_request, start_ns, end_ns, answered_ns, started;
static unsigned busy_count;
static int poll_fd;

/* ---- bodies ---- */

static struct body body_new(struct slice payload)
{
    struct body body = {memory_alloc(payload.size + PREFIX), payload.size + PREFIX};
    body.data[0] = options.gzip;
    for (int i = 0; i < 4; i++)
        body.data[1 + i] = (uint8_t)(payload.size >> (24 - 8 * i));
    memcpy(body.data + PREFIX, payload.data, payload.size);
    return body;
}

static struct body prepare(struct payload *payload, uint64_t request)
{
    struct text json = {0};
    payload_stamp(payload, request);
    struct slice bytes = payload_slice(payload);
    if (options.json) {
        json_from_protobuf(signal_traits(payload->signal)->request, bytes, &json);
        bytes = slice_of(json.data, json.size);
    }
    struct buffer *packed = NULL;
    if (options.gzip) {
        packed = compress_slices(COMPRESSION_GZIP, 0, false, &bytes, 1, NULL);
        bytes = buffer_slice(packed);
    }
    struct body body = body_new(bytes);
    buffer_unref(packed);
    text_deinit(&json);
    return body;
}

static bool bodies_are_prepared(void)
{
    return options.gzip || options.json;
}

static bool is_sent(enum signal signal)
{
    return signal == options.signal || (options.both && signal == SIGNAL_PROFILES);
}

static struct payload traces_over_requests(uint32_t spans)
{
    struct payload payload = payload_traces(spans);
    payload.trace_requests = options.trace_requests;
    return payload;
}

static struct payload make_payload(enum signal signal)
{
    uint32_t items = options.items[signal];
    switch (signal) {
    case SIGNAL_TRACES:
        return traces_over_requests(items);
    case SIGNAL_PROFILES:
        return payload_profiles(items, options.items[SIGNAL_TRACES], options.stacks);
    case SIGNAL_METRICS:
        return payload_metrics(items);
    default:
        return payload_logs(items);
    }
}

static void make_payloads(void)
{
    for (unsigned signal = 0; signal < SIGNAL_COUNT; signal++) {
        if (!is_sent((enum signal)signal))
            continue;
        payloads[signal] = make_payload((enum signal)signal);
        for (unsigned i = 0; bodies_are_prepared() && i < VARIANTS; i++)
            prepared[signal][i] = prepare(&payloads[signal], options.first + i);
    }
}

static void init_slot(struct slot *slot, struct connection *connection)
{
    slot->connection = connection;
    for (unsigned signal = 0; signal < SIGNAL_COUNT; signal++) {
        if (bodies_are_prepared() || !is_sent((enum signal)signal))
            continue;
        slot->bodies[signal] = body_new(payload_slice(&payloads[signal]));
        slot->payloads[signal] = payloads[signal];
        slot->payloads[signal].data = slot->bodies[signal].data + PREFIX;
    }
}

static void choose_body(struct slot *slot)
{
    slot->signal = slot->profiles_next ? SIGNAL_PROFILES : options.signal;
    if (!slot->profiles_next)
        slot->request = options.first + next_request++;
    if (bodies_are_prepared()) {
        slot->body = &prepared[slot->signal][slot->request % VARIANTS];
    } else {
        payload_stamp(&slot->payloads[slot->signal], slot->request);
        slot->body = &slot->bodies[slot->signal];
    }
}

/* ---- answers ---- */

static void finish(struct slot *slot)
{
    uint64_t now = answered_ns = now_ns();
    bool accepted = slot->status == 200 && (options.http || slot->grpc_status == 0);
    bool refused = slot->status == 429 || slot->status == 503 || slot->grpc_status == 8 ||
                   slot->grpc_status == 14;
    busy_count--;
    slot->busy = false;
    slot->paused_until_ns = now + options.pause_ms * 1000000;
    if (!accepted) {
        *(refused ? &totals.refused : &totals.errors) += 1;
        slot->paused_until_ns = now + REFUSED_PAUSE_NS;
        return;
    }
    totals.requests++;
    totals.bytes += slot->body->size;
    totals.items[slot->signal] += options.items[slot->signal];
    slot->profiles_next = options.both && slot->signal == SIGNAL_TRACES;
    if ((totals.latency_count & (totals.latency_count - 1)) == 0)
        totals.latencies_us =
            memory_grow(totals.latencies_us, totals.latency_count * 2 + 1, sizeof(uint32_t));
    totals.latencies_us[totals.latency_count++] = (uint32_t)((now - slot->due_ns) / 1000);
}

/* ---- gRPC ---- */

static struct slot *slot_of(nghttp2_session *session, int32_t stream_id)
{
    return nghttp2_session_get_stream_user_data(session, stream_id);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
                     void *context)
{
    (void)value_size, (void)flags, (void)context;
    struct slot *slot = slot_of(session, frame->hd.stream_id);
    if (slot && name_size == 7 && memcmp(name, ":status", 7) == 0)
        slot->status = atoi((const char *)value);
    if (slot && name_size == 11 && memcmp(name, "grpc-status", 11) == 0)
        slot->grpc_status = atoi((const char *)value);
    return 0;
}

static int on_close(nghttp2_session *session, int32_t stream_id, uint32_t code, void *context)
{
    (void)code, (void)context;
    struct slot *slot = slot_of(session, stream_id);
    if (slot)
        finish(slot);
    return 0;
}

static ssize_t read_body(nghttp2_session *session, int32_t stream_id, uint8_t *to, size_t room,
                         uint32_t *flags, nghttp2_data_source *source, void *context)
{
    (void)session, (void)stream_id, (void)context;
    struct slot *slot = source->ptr;
    size_t size = slot->body->size - slot->sent;
    if (size > room)
        size = room;
    memcpy(to, slot->body->data + slot->sent, size);
    slot->sent += size;
    if (slot->sent == slot->body->size)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)size;
}

/* As large as the server allows, like most gRPC clients; those in Go send 16 KiB in any case. */
static ssize_t frame_length(nghttp2_session *session, uint8_t type, int32_t stream_id,
                            int32_t session_window, int32_t stream_window, uint32_t frame_max,
                            void *context)
{
    (void)session, (void)type, (void)stream_id, (void)session_window, (void)stream_window;
    (void)context;
    return frame_max < options.frame ? frame_max : options.frame; /* nghttp2 minds the windows */
}

static void start_h2(struct connection *connection)
{
    nghttp2_session_callbacks *callbacks;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_session_callbacks_set_data_source_read_length_callback(callbacks, frame_length);
    nghttp2_session_client_new(&connection->h2, callbacks, connection);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW_BYTES}};
    nghttp2_submit_settings(connection->h2, NGHTTP2_FLAG_NONE, settings, 1);
    nghttp2_session_set_local_window_size(connection->h2, NGHTTP2_FLAG_NONE, 0, WINDOW_BYTES);
}

static nghttp2_nv header(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value), 0};
}

static void send_grpc(struct slot *slot)
{
    char path[128];
    snprintf(path, sizeof path, "%sExport", signal_traits(slot->signal)->grpc_service);
    nghttp2_nv headers[8] = {header(":method", "POST"),
                             header(":scheme", "http"),
                             header(":path", path),
                             header(":authority", "localhost"),
                             header("content-type", "application/grpc"),
                             header("te", "trailers"),
                             header("grpc-encoding", "gzip")};
    nghttp2_data_provider provider = {.source.ptr = slot, .read_callback = read_body};
    if (nghttp2_submit_request(slot->connection->h2, NULL, headers, options.gzip ? 7 : 6, &provider,
                               slot) < 0)
        totals.errors++;
}

static bool take_h2(struct connection *connection, const uint8_t *data, size_t size)
{
    return nghttp2_session_mem_recv(connection->h2, data, size) >= 0;
}

/* Fills the connection's output with frames. */
static void gather_h2(struct connection *connection)
{
    const uint8_t *frames;
    ssize_t size;
    while (OUTPUT_BYTES - connection->output_to > FRAME_BYTES + 64 &&
           (size = nghttp2_session_mem_send(connection->h2, &frames)) > 0) {
        memcpy(connection->output + connection->output_to, frames, (size_t)size);
        connection->output_to += (size_t)size;
    }
}

/* ---- HTTP/1.1 ---- */

static void send_http(struct slot *slot)
{
    struct connection *connection = slot->connection;
    int size =
        snprintf((char *)connection->output, OUTPUT_BYTES,
                 "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/%s\r\n"
                 "%sContent-Length: %zu\r\n\r\n",
                 signal_traits(slot->signal)->url_path, options.json ? "json" : "x-protobuf",
                 options.gzip ? "Content-Encoding: gzip\r\n" : "", slot->body->size - PREFIX);
    connection->output_from = 0;
    connection->output_to = (size_t)size;
    slot->sent = PREFIX;
}

/* An answer is a head with Content-Length, or without a body. */
static bool take_h1(struct connection *connection, const uint8_t *data, size_t size)
{
    struct slot *slot = connection->slots;
    text_append_slice(&connection->answer, slice_of(data, size));
    const char *text = text_string(&connection->answer);
    const char *end = strstr(text, "\r\n\r\n");
    if (!end)
        return true;
    const char *length = strcasestr(text, "\r\nContent-Length:");
    size_t body = length && length < end ? strtoull(length + 17, NULL, 10) : 0;
    if (connection->answer.size < (size_t)(end + 4 - text) + body)
        return true;
    slot->status = atoi(text + strlen("HTTP/1.1 "));
    text_clear(&connection->answer);
    if (slot->busy)
        finish(slot);
    return true;
}

/* ---- connections ---- */

static bool write_some(struct connection *connection, const uint8_t *data, size_t size,
                       size_t *done, bool more)
{
    ssize_t sent = send(connection->fd, data, size, MSG_NOSIGNAL | (more ? MSG_MORE : 0));
    if (sent < 0 && errno != EAGAIN)
        die("send: the server closed a connection");
    *done += sent > 0 ? (size_t)sent : 0;
    return sent == (ssize_t)size;
}

/* False: the socket is full. */
static bool write_output(struct connection *connection)
{
    size_t size = connection->output_to - connection->output_from;
    bool all = size == 0 || write_some(connection, connection->output + connection->output_from,
                                       size, &connection->output_from, options.http);
    if (all)
        connection->output_from = connection->output_to = 0;
    return all;
}

static void flush_connection(struct connection *connection)
{
    bool full = !write_output(connection);
    struct slot *slot = connection->slots;
    if (options.http && !full && slot->busy && slot->sent < slot->body->size)
        full = !write_some(connection, slot->body->data + slot->sent, slot->body->size - slot->sent,
                           &slot->sent, false);
    while (!options.http && !full) {
        gather_h2(connection);
        if (connection->output_to == 0)
            break;
        full = !write_output(connection);
    }
    if (full != connection->waits_for_room) {
        connection->waits_for_room = full;
        poll_change(poll_fd, connection->fd, EPOLLIN | (full ? (uint32_t)EPOLLOUT : 0), connection);
    }
}

static void on_readable(struct connection *connection)
{
    uint8_t data[16 * 1024];
    ssize_t got = recv(connection->fd, data, sizeof data, 0);
    if (got == 0 || (got < 0 && errno != EAGAIN))
        die("recv: the server closed a connection");
    if (got < 0)
        return;
    bool fine = options.http ? take_h1(connection, data, (size_t)got)
                             : take_h2(connection, data, (size_t)got);
    if (!fine)
        die("the server broke the protocol");
}

static void open_connections(void)
{
    connections = memory_zalloc(options.connections * sizeof(struct connection));
    for (unsigned i = 0; i < options.connections; i++) {
        struct connection *connection = &connections[i];
        connection->fd = socket_connect(options.port);
        if (connection->fd < 0)
            die("connect");
        connection->output = memory_alloc(OUTPUT_BYTES);
        connection->slots = memory_zalloc(options.in_flight * sizeof(struct slot));
        for (unsigned s = 0; s < options.in_flight; s++)
            init_slot(&connection->slots[s], connection);
        if (!options.http)
            start_h2(connection);
        poll_add(poll_fd, connection->fd, EPOLLIN, connection);
    }
}

/* ---- the run ---- */

static uint64_t due_time(void)
{
    if (!options.rate)
        return 0;
    uint64_t items = options.items[options.signal];
    return start_ns + (uint64_t)((double)started * (double)items * 1e9 / (double)options.rate);
}

static bool all_started(uint64_t now)
{
    return options.requests ? started >= options.requests : now >= end_ns;
}

static void start_request(struct slot *slot, uint64_t now)
{
    slot->due_ns = options.rate ? due_time() : now;
    started++;
    choose_body(slot);
    slot->busy = true;
    slot->sent = 0;
    slot->status = 0;
    slot->grpc_status = options.http ? 0 : 2; /* until it says otherwise */
    busy_count++;
    if (options.http)
        send_http(slot);
    else
        send_grpc(slot);
}

/* First slots of all connections before second ones, so that a fixed rate uses all of them. */
static void start_due(void)
{
    uint64_t now = now_ns();
    for (unsigned s = 0; s < options.in_flight; s++)
        for (unsigned i = 0; i < options.connections; i++) {
            struct slot *slot = &connections[(i + started) % options.connections].slots[s];
            if (all_started(now) || due_time() > now)
                return;
            if (!slot->busy && slot->paused_until_ns <= now)
                start_request(slot, now);
        }
}

static struct timespec wait_time(void)
{
    uint64_t now = now_ns(), until = now + 1000000;
    if (options.rate && due_time() < until)
        until = due_time() < now ? now + 50000 : due_time();
    return (struct timespec){.tv_nsec = (long)(until - now)};
}

static void run(void)
{
    start_ns = answered_ns = now_ns();
    end_ns = start_ns + options.seconds * 1000000000;
    while (!all_started(now_ns()) || busy_count > 0) {
        uint64_t awaited_since_ns = options.requests ? answered_ns : end_ns;
        if (now_ns() > awaited_since_ns + ANSWERS_WAIT_S * UINT64_C(1000000000))
            die("answers are missing");
        start_due();
        for (unsigned i = 0; i < options.connections; i++)
            flush_connection(&connections[i]);
        struct epoll_event events[64];
        struct timespec timeout = wait_time();
        int count = epoll_pwait2(poll_fd, events, 64, &timeout, NULL);
        for (int i = 0; i < count; i++)
            if (events[i].events & ~(uint32_t)EPOLLOUT)
                on_readable(events[i].data.ptr);
    }
}

static int compare_latencies(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static double percentile_ms(double part)
{
    if (totals.latency_count == 0)
        return 0;
    return totals.latencies_us[(size_t)((double)(totals.latency_count - 1) * part)] / 1e3;
}

static void print_result(void)
{
    qsort(totals.latencies_us, totals.latency_count, sizeof(uint32_t), compare_latencies);
    printf("{\"requests\": %" PRIu64 ", \"spans\": %" PRIu64 ", \"samples\": %" PRIu64
           ", \"points\": %" PRIu64 ", \"records\": %" PRIu64 ", \"bytes\": %" PRIu64
           ", \"refused\": %" PRIu64 ", \"errors\": %" PRIu64
           ", \"seconds\": %.3f, \"p50_ms\": %.3f, \"p99_ms\": %.3f, \"max_ms\": %.3f}\n",
           totals.requests, totals.items[SIGNAL_TRACES], totals.items[SIGNAL_PROFILES],
           totals.items[SIGNAL_METRICS], totals.items[SIGNAL_LOGS], totals.bytes, totals.refused,
           totals.errors, (double)(now_ns() - start_ns) / 1e9, percentile_ms(0.5),
           percentile_ms(0.99), percentile_ms(1));
}

/* ---- arguments ---- */

static void usage(void)
{
    fprintf(stderr, "usage: bench_load --port PORT [options]; bench/load.c says which\n");
    exit(1);
}

static void parse_signal(const char *name)
{
    options.both = strcmp(name, "both") == 0;
    options.signal = SIGNAL_TRACES;
    while (!options.both && strcmp(signal_traits(options.signal)->name, name) != 0)
        if (++options.signal == SIGNAL_COUNT)
            usage();
}

static void parse_arguments(int argc, char **argv)
{
    enum {
        PORT = 1,
        PROTOCOL,
        SIGNAL,
        SPANS,
        SAMPLES,
        POINTS,
        RECORDS,
        CONNECTIONS,
        IN_FLIGHT,
        SECONDS,
        REQUESTS,
        RATE,
        PAUSE,
        FIRST,
        TRACE_REQUESTS,
        STACKS,
        FRAME,
        GZIP,
        JSON
    };
    static const struct option names[] = {{"port", 1, NULL, PORT},
                                          {"protocol", 1, NULL, PROTOCOL},
                                          {"signal", 1, NULL, SIGNAL},
                                          {"spans", 1, NULL, SPANS},
                                          {"samples", 1, NULL, SAMPLES},
                                          {"points", 1, NULL, POINTS},
                                          {"records", 1, NULL, RECORDS},
                                          {"connections", 1, NULL, CONNECTIONS},
                                          {"in-flight", 1, NULL, IN_FLIGHT},
                                          {"seconds", 1, NULL, SECONDS},
                                          {"requests", 1, NULL, REQUESTS},
                                          {"rate", 1, NULL, RATE},
                                          {"pause", 1, NULL, PAUSE},
                                          {"first", 1, NULL, FIRST},
                                          {"trace-requests", 1, NULL, TRACE_REQUESTS},
                                          {"stacks", 1, NULL, STACKS},
                                          {"frame", 1, NULL, FRAME},
                                          {"gzip", 0, NULL, GZIP},
                                          {"json", 0, NULL, JSON},
                                          {0}};
    int option;
    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        uint64_t number =
            option == PORT || (option >= SPANS && option <= FRAME) ? number_argument(optarg) : 0;
        switch (option) {
        case PORT:
            options.port = (uint16_t)number;
            break;
        case PROTOCOL:
            options.http = strcmp(optarg, "http") == 0;
            break;
        case SIGNAL:
            parse_signal(optarg);
            break;
        case SPANS:
            options.items[SIGNAL_TRACES] = (uint32_t)number;
            break;
        case SAMPLES:
            options.items[SIGNAL_PROFILES] = (uint32_t)number;
            break;
        case POINTS:
            options.items[SIGNAL_METRICS] = (uint32_t)number;
            break;
        case RECORDS:
            options.items[SIGNAL_LOGS] = (uint32_t)number;
            break;
        case CONNECTIONS:
            options.connections = (unsigned)number;
            break;
        case IN_FLIGHT:
            options.in_flight = (unsigned)number;
            break;
        case SECONDS:
            options.seconds = number;
            break;
        case REQUESTS:
            options.requests = number;
            break;
        case RATE:
            options.rate = number;
            break;
        case PAUSE:
            options.pause_ms = number;
            break;
        case FIRST:
            options.first = number;
            break;
        case TRACE_REQUESTS:
            options.trace_requests = (uint32_t)number;
            break;
        case STACKS:
            options.stacks = (uint32_t)number;
            break;
        case FRAME:
            options.frame = (uint32_t)number;
            break;
        case GZIP:
            options.gzip = true;
            break;
        case JSON:
            options.json = true;
            break;
        default:
            usage();
        }
    }
    for (unsigned signal = 0; signal < SIGNAL_COUNT; signal++)
        if (!options.items[signal])
            usage();
    if (!options.port || !options.connections || !options.in_flight || optind != argc)
        usage();
    if (options.http)
        options.in_flight = 1;
}

int main(int argc, char **argv)
{
    parse_arguments(argc, argv);
    hash_init();
    poll_fd = epoll_create1(EPOLL_CLOEXEC);
    make_payloads();
    open_connections();
    run();
    print_result();
    return totals.errors > 0 || totals.requests == 0;
}
