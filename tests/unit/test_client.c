#include "core/base/budget.h"
#include "core/base/clock.h"
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/net/client.h"
#include "loopback_peer.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND INT64_C(1000000000)

/* One request and its outcome. */
struct call {
    struct client_request request;
    struct slice body[3];
    bool done;
    enum client_failure failure;
    char why[512];
    int status;
    char answer[256];
    char message[64]; /* the header "grpc-message" */
    size_t answer_size;
    bool cut;
    struct call *next; /* sent when this one is done */
    struct client *client;
};

static struct worker worker;

static int set_up(void **state)
{
    struct error err;
    (void)state;
    hash_init_with(1);
    assert_true(worker_init(&worker, 0, &err));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    worker_deinit(&worker);
    return 0;
}

static void on_done(struct client_request *request, const struct client_answer *answer)
{
    struct call *call = (struct call *)request;
    assert_false(call->done);
    call->done = true;
    call->failure = answer->failure;
    snprintf(call->why, sizeof call->why, "%s", answer->failure_text ? answer->failure_text : "");
    call->status = answer->status;
    call->answer_size = answer->body.size;
    call->cut = answer->body_cut;
    snprintf(call->answer, sizeof call->answer, "%.*s", SLICE_ARG(answer->body));
    struct slice message = http_header_get(&answer->headers, "grpc-message");
    snprintf(call->message, sizeof call->message, "%.*s", SLICE_ARG(message));
    if (call->next)
        client_send(call->client, &call->next->request);
}

static void prepare(struct call *call, const char *path)
{
    static const struct http_header headers[] = {
        {{(const uint8_t *)"content-type", sizeof("content-type") - 1},
         {(const uint8_t *)"text/plain", sizeof("text/plain") - 1}},
    };
    *call = (struct call){0};
    call->body[0] = SLICE("one ");
    call->body[1] = SLICE("");
    call->body[2] = SLICE("two");
    call->request = (struct client_request){
        .method = "POST",
        .path = path,
        .headers = headers,
        .header_count = 1,
        .body = call->body,
        .body_count = 3,
        .body_size = 7,
        .timeout_ns = 5 * SECOND,
        .on_done = on_done,
    };
}

static void run_until(const bool *flag)
{
    uint64_t end = clock_monotonic_ns() + (uint64_t)(20 * SECOND);
    while (!*flag) {
        uv_run(&worker.loop, UV_RUN_ONCE);
        assert_true(clock_monotonic_ns() < end);
    }
}

static void run_for(int64_t ns)
{
    uint64_t end = clock_monotonic_ns() + (uint64_t)ns;
    while (clock_monotonic_ns() < end) {
        uv_run(&worker.loop, UV_RUN_NOWAIT);
        usleep(1000);
    }
}

static struct client *open_client(enum client_protocol protocol, uint16_t port)
{
    struct error err;
    struct client_options options = {.protocol = protocol, .host = "127.0.0.1", .port = port};
    struct client *client = client_new(&worker, &options, &err);
    assert_non_null(client);
    return client;
}

static enum client_protocol client_protocol_of(enum peer_protocol protocol)
{
    return protocol == PEER_HTTP2 ? CLIENT_H2 : CLIENT_HTTP1;
}

static struct call send_one(struct client *client)
{
    struct call call;
    prepare(&call, "/v1/traces");
    client_send(client, &call.request);
    assert_false(call.done);
    run_until(&call.done);
    return call;
}

static void answer_hello(void *context, unsigned number, const struct peer_request *request,
                         struct peer_answer *answer)
{
    (void)context, (void)number, (void)request;
    answer->headers[0] = (struct peer_header){"grpc-message", "hi"};
    answer->body = SLICE("hello");
}

static void a_request_and_its_answer(void **state)
{
    (void)state;
    for (int p = PEER_HTTP1; p <= PEER_HTTP2; p++) {
        struct peer *peer = peer_new(
            &(struct peer_options){.protocol = (enum peer_protocol)p, .answer = answer_hello});
        struct client *client =
            open_client(client_protocol_of((enum peer_protocol)p), peer_port(peer));
        for (int i = 0; i < 3; i++) {
            struct call call = send_one(client);
            assert_int_equal(call.failure, CLIENT_OK);
            assert_int_equal(call.status, 200);
            assert_string_equal(call.answer, "hello");
            assert_string_equal(call.message, "hi");
        }
        assert_int_equal(peer_connections(peer), 1);
        const struct peer_request *request = peer_request(peer, 2);
        char authority[64];
        snprintf(authority, sizeof authority, "127.0.0.1:%u", peer_port(peer));
        assert_string_equal(text_string(&request->body), "one two");
        assert_string_equal(peer_header(request, ":path"), "/v1/traces");
        assert_string_equal(peer_header(request, "content-type"), "text/plain");
        assert_string_equal(peer_header(request, p == PEER_HTTP2 ? ":authority" : "host"),
                            authority);
        client_free(client);
        peer_free(peer);
    }
}

static void many_at_once(void **state)
{
    (void)state;
    for (int p = PEER_HTTP1; p <= PEER_HTTP2; p++) {
        struct peer *peer = peer_new(&(struct peer_options){
            .protocol = (enum peer_protocol)p, .answer = answer_hello, .max_streams = 7});
        struct client *client =
            open_client(client_protocol_of((enum peer_protocol)p), peer_port(peer));
        enum { COUNT = 500 };
        struct call *calls = memory_array(COUNT, sizeof *calls);
        for (int i = 0; i < COUNT; i++) {
            prepare(&calls[i], "/");
            client_send(client, &calls[i].request);
        }
        for (int i = 0; i < COUNT; i++) {
            run_until(&calls[i].done);
            assert_int_equal(calls[i].failure, CLIENT_OK);
            assert_string_equal(calls[i].answer, "hello");
        }
        assert_int_equal(peer_requests(peer), COUNT);
        assert_true(peer_connections(peer) <= (p == PEER_HTTP2 ? 1 : 16));
        free(calls);
        client_free(client);
        peer_free(peer);
    }
}

static void a_large_body_to_a_slow_reader(void **state)
{
    (void)state;
    enum { SIZE = 3000000, SLICES = 3000 };
    uint8_t *bytes = memory_alloc(SIZE);
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (uint8_t)(i * 2654435761u >> 13);
    struct slice *slices = memory_array(SLICES, sizeof *slices);
    for (size_t i = 0; i < SLICES; i++)
        slices[i] = slice_of(bytes + i * (SIZE / SLICES), SIZE / SLICES);
    for (int p = PEER_HTTP1; p <= PEER_HTTP2; p++) {
        struct peer *peer = peer_new(&(struct peer_options){
            .protocol = (enum peer_protocol)p, .answer = answer_hello, .slow_reader = true});
        struct client *client =
            open_client(client_protocol_of((enum peer_protocol)p), peer_port(peer));
        struct call call;
        prepare(&call, "/");
        call.request.body = slices;
        call.request.body_count = SLICES;
        call.request.body_size = SIZE;
        call.request.timeout_ns = 0;
        client_send(client, &call.request);
        run_until(&call.done);
        assert_int_equal(call.failure, CLIENT_OK);
        assert_true(slice_equal(
            slice_of(peer_request(peer, 0)->body.data, peer_request(peer, 0)->body.size),
            slice_of(bytes, SIZE)));
        client_free(client);
        peer_free(peer);
    }
    free(slices);
    free(bytes);
}

/* The caller frees the body of a cancelled request at once, even when half of it is sent. The
 * frames on the shared connection must stay well-formed. */
static void cancelled_while_being_sent(void **state)
{
    (void)state;
    enum { SIZE = 2000000, COUNT = 4 };
    for (int p = PEER_HTTP1; p <= PEER_HTTP2; p++) {
        struct peer *peer = peer_new(&(struct peer_options){
            .protocol = (enum peer_protocol)p, .answer = answer_hello, .slow_reader = true});
        struct client *client =
            open_client(client_protocol_of((enum peer_protocol)p), peer_port(peer));
        struct call calls[COUNT];
        uint8_t *bytes[COUNT];
        for (int i = 0; i < COUNT; i++) {
            prepare(&calls[i], "/");
            bytes[i] = memory_zalloc(SIZE);
            calls[i].body[0] = slice_of(bytes[i], SIZE);
            calls[i].body[2] = SLICE("");
            calls[i].request.body_size = SIZE;
            client_send(client, &calls[i].request);
        }
        run_for(SECOND / 20);
        for (int i = 0; i < COUNT; i++) {
            assert_false(calls[i].done);
            client_cancel(&calls[i].request);
            free(bytes[i]);
        }
        struct call call = send_one(client);
        assert_int_equal(call.failure, CLIENT_OK);
        if (p == PEER_HTTP2)
            assert_int_equal(peer_connections(peer), 1);
        client_free(client);
        peer_free(peer);
    }
}

static void nobody_listens(void **state)
{
    (void)state;
    uint16_t port = peer_unused_port();
    struct client *client = open_client(CLIENT_H2, port);
    struct call call = send_one(client);
    char expected[96];
    snprintf(expected, sizeof expected, "connect to 127.0.0.1:%u: connection refused", port);
    assert_int_equal(call.failure, CLIENT_CONNECT_FAILED);
    assert_string_equal(call.why, expected);
    /* The second one waits for the next attempt, which fails the same way. */
    call = send_one(client);
    assert_int_equal(call.failure, CLIENT_CONNECT_FAILED);
    client_free(client);
}

static void names_are_looked_up(void **state)
{
    (void)state;
    struct peer *peer = peer_new(&(struct peer_options){.answer = answer_hello});
    struct error err;
    struct client_options options = {.host = "localhost", .port = peer_port(peer)};
    struct client *client = client_new(&worker, &options, &err);
    struct call call = send_one(client);
    assert_int_equal(call.failure, CLIENT_OK);
    client_free(client);
    options.host = "\xff";
    client = client_new(&worker, &options, &err);
    call = send_one(client);
    assert_int_equal(call.failure, CLIENT_CONNECT_FAILED);
    assert_non_null(strstr(call.why, "not a host name"));
    client_free(client);
    options.host = "no-such-host.invalid";
    client = client_new(&worker, &options, &err);
    call = send_one(client);
    if (call.failure != CLIENT_TIMEOUT) { /* if no name server can be reached */
        assert_int_equal(call.failure, CLIENT_CONNECT_FAILED);
        assert_non_null(strstr(call.why, "look up no-such-host.invalid: "));
    }
    /* The client is freed during a look-up. */
    prepare(&call, "/");
    run_for(SECOND / 4);
    client_send(client, &call.request);
    run_for(SECOND / 1000);
    if (!call.done)
        client_cancel(&call.request);
    client_free(client);
    peer_free(peer);
}

static void unix_sockets(void **state)
{
    (void)state;
    char path[64];
    snprintf(path, sizeof path, "/tmp/profcol-test-client-%d", (int)getpid());
    for (int p = PEER_HTTP1; p <= PEER_HTTP2; p++) {
        struct peer *peer = peer_new(&(struct peer_options){
            .protocol = (enum peer_protocol)p, .unix_path = path, .answer = answer_hello});
        struct error err;
        struct client_options options = {.protocol = client_protocol_of((enum peer_protocol)p),
                                         .host = path,
                                         .unix_socket = true};
        struct client *client = client_new(&worker, &options, &err);
        struct call call = send_one(client);
        assert_int_equal(call.failure, CLIENT_OK);
        client_free(client);
        peer_free(peer);
        client = client_new(&worker, &options, &err);
        call = send_one(client);
        assert_int_equal(call.failure, CLIENT_CONNECT_FAILED);
        assert_non_null(strstr(call.why, "no such file or directory"));
        client_free(client);
    }
}

/* Malicious backends: what each does to one request and to the next one. */
struct evil {
    const char *name;
    enum peer_protocol protocol;
    struct peer_answer answer;
    enum client_failure failure;
    int status;
    const char *why; /* part of the error's text */
    bool cut;
};

static struct evil evil;

static void answer_evil_once(void *context, unsigned number, const struct peer_request *request,
                             struct peer_answer *answer)
{
    if (number == 0)
        *answer = evil.answer;
    else
        answer_hello(context, number, request, answer);
}

static char giant[200000];

static void evil_backends(void **state)
{
    (void)state;
    memset(giant, 'x', sizeof giant - 1);
    struct slice start = SLICE("HTTP/1.1 200 OK\r\na: ");
    memcpy(giant, start.data, start.size);
    static char many_continues[60000];
    struct slice again = SLICE("HTTP/1.1 100 Continue\r\n\r\n");
    for (size_t i = 0; i + again.size < sizeof many_continues; i += again.size)
        memcpy(many_continues + i, again.data, again.size);
    static char long_value[20000];
    memset(long_value, 'v', sizeof long_value - 1);
    const struct evil table[] = {
        {"silent",
         PEER_HTTP1,
         {.action = PEER_SILENT},
         CLIENT_TIMEOUT,
         0,
         "no answer from 127.0.0.1",
         false},
        {"silent",
         PEER_HTTP2,
         {.action = PEER_SILENT},
         CLIENT_TIMEOUT,
         0,
         "no answer from 127.0.0.1",
         false},
        {"drip", PEER_HTTP1, {PEER_DRIP, .status = 200}, CLIENT_TIMEOUT, 0, "within 0.3s", false},
        {"close", PEER_HTTP1, {.action = PEER_CLOSE}, CLIENT_BROKEN, 0, "closed", false},
        {"close", PEER_HTTP2, {.action = PEER_CLOSE}, CLIENT_BROKEN, 0, "", false},
        {"half",
         PEER_HTTP1,
         {PEER_HALF, .status = 200, .body = SLICE("0123456789")},
         CLIENT_BROKEN,
         0,
         "closed",
         false},
        {"half",
         PEER_HTTP2,
         {PEER_HALF, .status = 200, .body = SLICE("0123456789")},
         CLIENT_BROKEN,
         0,
         "reset",
         false},
        {"reset", PEER_HTTP2, {PEER_RESET, .code = 2}, CLIENT_BROKEN, 0, "INTERNAL_ERROR", false},
        {"refused stream", PEER_HTTP2, {PEER_RESET, .code = 7}, CLIENT_OK, 200, "", false},
        {"goaway", PEER_HTTP2, {.action = PEER_GOAWAY}, CLIENT_OK, 200, "", false},
        {"redirect",
         PEER_HTTP1,
         {.status = 307, .headers = {{"location", "http://127.0.0.1:1/"}}},
         CLIENT_OK,
         307,
         "",
         false},
        {"redirect",
         PEER_HTTP2,
         {.status = 307, .headers = {{"location", "http://127.0.0.1:1/"}}},
         CLIENT_OK,
         307,
         "",
         false},
        {"giant body",
         PEER_HTTP1,
         {.status = 500, .body = {(uint8_t *)giant, sizeof giant}},
         CLIENT_OK,
         500,
         "",
         true},
        {"giant body",
         PEER_HTTP2,
         {.status = 500, .body = {(uint8_t *)giant, sizeof giant}},
         CLIENT_OK,
         500,
         "",
         true},
        {"giant header",
         PEER_HTTP1,
         {PEER_RAW_TEXT, .body = {(uint8_t *)giant, sizeof giant}},
         CLIENT_BROKEN,
         0,
         "header",
         false},
        {"large headers",
         PEER_HTTP2,
         {.status = 200, .headers = {{"a", long_value}, {"b", long_value}}},
         CLIENT_BROKEN,
         0,
         "too large",
         false},
        {"large headers",
         PEER_HTTP1,
         {.status = 200, .headers = {{"a", long_value}, {"b", long_value}}},
         CLIENT_BROKEN,
         0,
         "too large",
         false},
        {"continues",
         PEER_HTTP1,
         {PEER_RAW_TEXT, .body = {(uint8_t *)many_continues, sizeof many_continues - 25}},
         CLIENT_BROKEN,
         0,
         "too many",
         false},
        {"one continue",
         PEER_HTTP1,
         {PEER_RAW_TEXT,
          .body = SLICE("HTTP/1.1 100 Continue\r\nx: y\r\n\r\nHTTP/1.1 204 Fine\r\n\r\n")},
         CLIENT_OK,
         204,
         "",
         false},
        {"until the end",
         PEER_HTTP1,
         {PEER_RAW_TEXT, .body = SLICE("HTTP/1.0 200 OK\r\n\r\nall of it")},
         CLIENT_OK,
         200,
         "",
         false},
        {"two answers",
         PEER_HTTP1,
         {PEER_RAW_TEXT, .keep = true,
          .body = SLICE("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nHTTP/1.1 500 "
                        "OK\r\ncontent-length: 0\r\n\r\n")},
         CLIENT_OK,
         200,
         "",
         false},
        {"switched",
         PEER_HTTP1,
         {PEER_RAW_TEXT,
          .body = SLICE("HTTP/1.1 101 Other\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n")},
         CLIENT_BROKEN,
         0,
         "switched",
         false},
        {"no HTTP",
         PEER_HTTP1,
         {PEER_RAW_TEXT, .body = SLICE("SSH-2.0-OpenSSH_9.2\r\n")},
         CLIENT_BROKEN,
         0,
         "not an HTTP/1.1 response",
         false},
        {"two lengths",
         PEER_HTTP1,
         {PEER_RAW_TEXT, .body = SLICE("HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: "
                                       "chunked\r\n\r\n0\r\n\r\n")},
         CLIENT_BROKEN,
         0,
         "not an HTTP/1.1 response",
         false},
        {"head only",
         PEER_HTTP1,
         {PEER_RAW_TEXT, .body = SLICE("HTTP/1.1 200 OK\r\ncontent-")},
         CLIENT_BROKEN,
         0,
         "closed",
         false},
        {"trailers only",
         PEER_HTTP2,
         {.status = 200, .no_body = true, .headers = {{"grpc-status", "8"}}},
         CLIENT_OK,
         200,
         "",
         false},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        evil = table[i];
        struct peer *peer =
            peer_new(&(struct peer_options){.protocol = evil.protocol, .answer = answer_evil_once});
        struct client *client = open_client(client_protocol_of(evil.protocol), peer_port(peer));
        struct call call;
        prepare(&call, "/");
        if (evil.failure == CLIENT_TIMEOUT)
            call.request.timeout_ns = SECOND * 3 / 10;
        client_send(client, &call.request);
        run_until(&call.done);
        if (call.failure != evil.failure || call.status != evil.status ||
            !strstr(call.why, evil.why) || call.cut != evil.cut)
            fail_msg("%s (%d): failure %d, status %d, %s", evil.name, evil.protocol, call.failure,
                     call.status, call.why);
        assert_true(call.answer_size <= CLIENT_BODY_MAX);
        run_for(SECOND / 50); /* for the peer to hang up */
        call = send_one(client);
        if (call.failure != CLIENT_OK || call.status != 200)
            fail_msg("after %s (%d): failure %d, %s", evil.name, evil.protocol, call.failure,
                     call.why);
        client_free(client);
        peer_free(peer);
    }
}

static void answer_giant(void *context, unsigned number, const struct peer_request *request,
                         struct peer_answer *answer)
{
    (void)context, (void)number, (void)request;
    answer->body = slice_of(giant, sizeof giant);
}

static void larger_answers_when_asked_for(void **state)
{
    (void)state;
    static const struct {
        size_t body_max, budget, size;
    } table[] = {
        {sizeof giant, sizeof giant, sizeof giant},
        {sizeof giant - 1, sizeof giant, sizeof giant - 1},
        {sizeof giant, sizeof giant - 1, 0},
        {0, sizeof giant, CLIENT_BODY_MAX},
    };
    for (size_t i = 0; i < 2 * sizeof table / sizeof table[0]; i++) {
        enum peer_protocol protocol = i % 2 ? PEER_HTTP2 : PEER_HTTP1;
        struct peer *peer =
            peer_new(&(struct peer_options){.protocol = protocol, .answer = answer_giant});
        struct client *client = open_client(client_protocol_of(protocol), peer_port(peer));
        struct budget budget = {.limit_bytes = table[i / 2].budget};
        struct call call;
        prepare(&call, "/");
        call.request.body_max = table[i / 2].body_max;
        call.request.budget = &budget;
        client_send(client, &call.request);
        run_until(&call.done);
        assert_int_equal(call.status, 200);
        assert_int_equal(call.cut, table[i / 2].size < sizeof giant);
        if (table[i / 2].size > 0)
            assert_int_equal(call.answer_size, table[i / 2].size);
        else
            assert_true(call.answer_size < sizeof giant);
        assert_int_equal(budget_used(&budget), 0);
        client_free(client);
        peer_free(peer);
    }
}

static void answer_goaway_always(void *context, unsigned number, const struct peer_request *request,
                                 struct peer_answer *answer)
{
    (void)context, (void)number, (void)request;
    answer->action = PEER_GOAWAY;
    answer->code = 11;
}

static void goaway_storms_end(void **state)
{
    (void)state;
    struct peer *peer =
        peer_new(&(struct peer_options){.protocol = PEER_HTTP2, .answer = answer_goaway_always});
    struct client *client = open_client(CLIENT_H2, peer_port(peer));
    struct call call = send_one(client);
    assert_int_equal(call.failure, CLIENT_BROKEN);
    if (!strstr(call.why, "GOAWAY, ENHANCE_YOUR_CALM"))
        fail_msg("%s", call.why);
    assert_int_equal(peer_requests(peer), 4);
    client_free(client);
    peer_free(peer);
}

static void answer_trailers(void *context, unsigned number, const struct peer_request *request,
                            struct peer_answer *answer)
{
    (void)context, (void)number, (void)request;
    answer->headers[0] = (struct peer_header){"content-type", "application/grpc"};
    answer->trailers[0] = (struct peer_header){"grpc-status", "14"};
    answer->trailers[1] = (struct peer_header){"grpc-message", "try later"};
    answer->body = SLICE("\0\0\0\0\0");
}

static void trailers_are_headers(void **state)
{
    (void)state;
    struct peer *peer =
        peer_new(&(struct peer_options){.protocol = PEER_HTTP2, .answer = answer_trailers});
    struct client *client = open_client(CLIENT_H2, peer_port(peer));
    struct call call = send_one(client);
    assert_int_equal(call.failure, CLIENT_OK);
    assert_string_equal(call.message, "try later");
    assert_int_equal(call.answer_size, 5);
    client_free(client);
    peer_free(peer);
}

static void hang_up(void *context, int socket, unsigned connection)
{
    (void)context, (void)socket, (void)connection;
}

static void a_peer_that_only_hangs_up(void **state)
{
    (void)state;
    for (int protocol = CLIENT_HTTP1; protocol <= CLIENT_H2; protocol++) {
        struct peer *peer =
            peer_new(&(struct peer_options){.protocol = PEER_RAW, .serve = hang_up});
        struct client *client = open_client((enum client_protocol)protocol, peer_port(peer));
        for (int i = 0; i < 3; i++) {
            struct call call = send_one(client);
            assert_true(call.failure == CLIENT_BROKEN || call.failure == CLIENT_CONNECT_FAILED);
        }
        client_free(client);
        peer_free(peer);
    }
}

/* The peer behaves like a proxy without a backend: the client treats it as unreachable and does
 * not reconnect endlessly. */
static void a_peer_that_hangs_up_first(void **state)
{
    (void)state;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), connection, count = 0;
    assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(listener, 16), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    struct client *client = open_client(CLIENT_HTTP1, ntohs(address.sin_port));
    struct call call;
    prepare(&call, "/");
    client_send(client, &call.request);
    while (!call.done) {
        uv_run(&worker.loop, UV_RUN_NOWAIT);
        while ((connection = accept(listener, NULL, NULL)) >= 0) {
            close(connection);
            count++;
        }
    }
    assert_int_equal(call.failure, CLIENT_CONNECT_FAILED);
    assert_in_range(count, 1, 3);
    client_free(client);
    close(listener);
}

static void say_nothing(void *context, int socket, unsigned connection)
{
    char bytes[4096];
    (void)context, (void)connection;
    while (recv(socket, bytes, sizeof bytes, 0) > 0)
        ;
}

/* The peer accepts and then is silent. Later requests use a new connection, and a ping detects
 * the dead one even without requests. */
static void a_dead_connection_is_left(void **state)
{
    (void)state;
    struct peer *peer =
        peer_new(&(struct peer_options){.protocol = PEER_RAW, .serve = say_nothing});
    struct client *client = open_client(CLIENT_H2, peer_port(peer));
    struct call call;
    for (int i = 0; i < 2; i++) {
        prepare(&call, "/");
        call.request.timeout_ns = SECOND / 10;
        client_send(client, &call.request);
        run_until(&call.done);
        assert_int_equal(call.failure, CLIENT_TIMEOUT);
    }
    assert_int_equal(peer_connections(peer), 2);
    client_free(client);

    struct error err;
    struct client_options options = {.protocol = CLIENT_H2,
                                     .host = "127.0.0.1",
                                     .port = peer_port(peer),
                                     .keepalive_time_ns = SECOND / 10,
                                     .keepalive_timeout_ns = SECOND / 10};
    client = client_new(&worker, &options, &err);
    call = send_one(client);
    assert_int_equal(call.failure, CLIENT_BROKEN);
    assert_non_null(strstr(call.why, "keepalive"));
    client_free(client);
    peer_free(peer);
}

static void pings_are_answered(void **state)
{
    (void)state;
    struct peer *peer =
        peer_new(&(struct peer_options){.protocol = PEER_HTTP2, .answer = answer_hello});
    struct error err;
    struct client_options options = {.protocol = CLIENT_H2,
                                     .host = "127.0.0.1",
                                     .port = peer_port(peer),
                                     .keepalive_time_ns = SECOND / 50,
                                     .keepalive_timeout_ns = 5 * SECOND,
                                     .keepalive_without_stream = true};
    struct client *client = client_new(&worker, &options, &err);
    send_one(client);
    run_for(SECOND / 2);
    struct call call = send_one(client);
    assert_int_equal(call.failure, CLIENT_OK);
    assert_int_equal(peer_connections(peer), 1);
    client_free(client);
    peer_free(peer);
}

static void idle_connections_close(void **state)
{
    (void)state;
    for (int p = PEER_HTTP1; p <= PEER_HTTP2; p++) {
        struct peer *peer = peer_new(
            &(struct peer_options){.protocol = (enum peer_protocol)p, .answer = answer_hello});
        struct error err;
        struct client_options options = {.protocol = client_protocol_of((enum peer_protocol)p),
                                         .host = "127.0.0.1",
                                         .port = peer_port(peer),
                                         .idle_timeout_ns = SECOND / 20};
        struct client *client = client_new(&worker, &options, &err);
        send_one(client);
        run_for(SECOND / 5);
        struct call call = send_one(client);
        assert_int_equal(call.failure, CLIENT_OK);
        assert_int_equal(peer_connections(peer), 2);
        client_free(client);
        peer_free(peer);
    }
}

static void keep_alive_can_be_off(void **state)
{
    (void)state;
    struct peer *peer = peer_new(&(struct peer_options){.answer = answer_hello});
    struct error err;
    struct client_options options = {
        .host = "127.0.0.1", .port = peer_port(peer), .close_after_answer = true};
    struct client *client = client_new(&worker, &options, &err);
    send_one(client);
    send_one(client);
    assert_int_equal(peer_connections(peer), 2);
    assert_string_equal(peer_header(peer_request(peer, 0), "connection"), "close");
    client_free(client);
    peer_free(peer);
}

static void sent_from_an_answer(void **state)
{
    (void)state;
    for (int p = PEER_HTTP1; p <= PEER_HTTP2; p++) {
        struct peer *peer = peer_new(
            &(struct peer_options){.protocol = (enum peer_protocol)p, .answer = answer_hello});
        struct client *client =
            open_client(client_protocol_of((enum peer_protocol)p), peer_port(peer));
        struct call calls[20];
        for (size_t i = 0; i < 20; i++) {
            prepare(&calls[i], "/");
            calls[i].client = client;
            calls[i].next = i + 1 < 20 ? &calls[i + 1] : NULL;
        }
        client_send(client, &calls[0].request);
        run_until(&calls[19].done);
        assert_int_equal(peer_connections(peer), 1);
        client_free(client);
        peer_free(peer);
    }
}

static void cancelled_before_connecting(void **state)
{
    (void)state;
    struct client *client = open_client(CLIENT_H2, peer_unused_port());
    struct call call;
    prepare(&call, "/");
    client_send(client, &call.request);
    client_cancel(&call.request);
    run_for(SECOND / 100);
    assert_false(call.done);
    client_free(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_request_and_its_answer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(many_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_large_body_to_a_slow_reader, set_up, tear_down),
        cmocka_unit_test_setup_teardown(cancelled_while_being_sent, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nobody_listens, set_up, tear_down),
        cmocka_unit_test_setup_teardown(names_are_looked_up, set_up, tear_down),
        cmocka_unit_test_setup_teardown(unix_sockets, set_up, tear_down),
        cmocka_unit_test_setup_teardown(evil_backends, set_up, tear_down),
        cmocka_unit_test_setup_teardown(larger_answers_when_asked_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(goaway_storms_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(trailers_are_headers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_peer_that_only_hangs_up, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_peer_that_hangs_up_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_dead_connection_is_left, set_up, tear_down),
        cmocka_unit_test_setup_teardown(pings_are_answered, set_up, tear_down),
        cmocka_unit_test_setup_teardown(idle_connections_close, set_up, tear_down),
        cmocka_unit_test_setup_teardown(keep_alive_can_be_off, set_up, tear_down),
        cmocka_unit_test_setup_teardown(sent_from_an_answer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(cancelled_before_connecting, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
