#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/base/source_accounts.h"
#include "core/base/verdict.h"
#include "core/net/server_private.h"
#include "tls_fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* A server on real workers and sockets. /now answers at once, /later 20 ms later, /never when the
 * server stops. */

enum { WORKERS = 3 };

struct held {
    struct timer timer;
    struct exchange *exchange;
    struct held *next;
};

struct site {
    struct worker workers[WORKERS];
    unsigned count;
    struct budget budget;
    struct source_accounts accounts;
    struct metrics *metrics;
    struct server *server;
    struct held *never[WORKERS]; /* one for each worker */
    atomic_uint by_worker[WORKERS];
    atomic_uint requests;
    atomic_uint gone;
    atomic_uint drained;
    atomic_uint stopped;
    atomic_uint retired;
    atomic_uint standing; /* number of workers blocked until `go` */
    sem_t go;
};

/* Blocks the worker until the test sets `go`. */
static void stand_still(struct site *site)
{
    atomic_fetch_add(&site->standing, 1);
    sem_wait(&site->go);
}

static bool on_head(void *context, struct exchange *exchange)
{
    (void)context;
    (void)exchange;
    return true;
}

static void answer(struct held *held)
{
    if (exchange_dialect(held->exchange) == SERVER_GRPC)
        exchange_respond_grpc(held->exchange, &verdict_ok, SLICE("ok"));
    else
        exchange_respond(held->exchange, 200, "text/plain", SLICE("ok"), NULL, 0);
    free(held);
}

static void on_timer(struct timer *timer)
{
    answer((struct held *)(void *)timer);
}

static void on_request(void *context, struct exchange *exchange)
{
    struct site *site = context;
    struct worker *worker = exchange_worker(exchange);
    atomic_fetch_add(&site->requests, 1);
    atomic_fetch_add(&site->by_worker[worker->index], 1);
    buffer_unref(exchange_take_body(exchange));
    struct held *held = calloc(1, sizeof *held);
    held->exchange = exchange;
    held->timer.on_timer = on_timer;
    if (slice_is(exchange_path(exchange), "/later")) {
        worker_set_timer(worker, &held->timer, 20000000);
    } else if (slice_is(exchange_path(exchange), "/never")) {
        held->next = site->never[worker->index];
        site->never[worker->index] = held;
    } else {
        if (slice_is(exchange_path(exchange), "/stand"))
            stand_still(site);
        answer(held);
    }
}

static void on_gone(void *context, struct exchange *exchange)
{
    (void)exchange;
    struct site *site = context;
    atomic_fetch_add(&site->gone, 1);
}

static const struct server_handler handler = {
    .on_head = on_head, .on_request = on_request, .on_gone = on_gone};

static struct site *site_new(unsigned count, struct server_options options)
{
    struct site *site = calloc(1, sizeof *site);
    struct error err = {0};
    site->count = count;
    sem_init(&site->go, 0, 0);
    site->budget.limit_bytes = 64 << 20;
    source_accounts_init(&site->accounts, &site->budget);
    site->metrics = metrics_new(count);
    if (!options.endpoint)
        options.endpoint = "127.0.0.1:0";
    options.accept_http = options.accept_grpc = true;
    options.label = "site";
    options.budget = &site->budget;
    options.accounts = &site->accounts;
    options.metrics = site->metrics;
    for (unsigned i = 0; i < count; i++)
        assert_true(worker_init(&site->workers[i], i, &err));
    site->server = server_new(&options, &handler, site, site->workers, count, &err);
    if (!site->server)
        fail_msg("%s", err.text);
    for (unsigned i = 0; i < count; i++)
        assert_true(worker_start(&site->workers[i], &err));
    server_start(site->server);
    return site;
}

struct errand {
    struct post post;
    struct site *site;
};

static void wait_for(atomic_uint *value, unsigned expected)
{
    for (int i = 0; i < 5000 && atomic_load(value) < expected; i++)
        usleep(1000);
    assert_int_equal(atomic_load(value), expected);
}

static void on_drained(void *context)
{
    struct site *site = context;
    atomic_fetch_add(&site->drained, 1);
}

static void drain_here(struct worker *worker, struct post *post)
{
    struct site *site = ((struct errand *)(void *)post)->site;
    server_drain(site->server, worker, on_drained, site);
    free(post);
}

static void answer_never(struct site *site, const struct worker *worker)
{
    while (site->never[worker->index]) {
        struct held *held = site->never[worker->index];
        site->never[worker->index] = held->next;
        answer(held);
    }
}

static void stop_here(struct worker *worker, struct post *post)
{
    struct site *site = ((struct errand *)(void *)post)->site;
    server_stop(site->server, worker);
    answer_never(site, worker);
    atomic_fetch_add(&site->stopped, 1);
    free(post);
}

static void on_worker(struct site *site, unsigned worker,
                      void (*what)(struct worker *worker, struct post *post))
{
    struct errand *errand = calloc(1, sizeof *errand);
    errand->site = site;
    errand->post.on_post = what;
    worker_post(&site->workers[worker], &errand->post);
}

static void on_all(struct site *site, void (*what)(struct worker *worker, struct post *post))
{
    for (unsigned i = 0; i < site->count; i++)
        on_worker(site, i, what);
}

static void site_free(struct site *site)
{
    on_all(site, stop_here);
    wait_for(&site->stopped, site->count);
    server_free(site->server);
    for (unsigned i = 0; i < site->count; i++)
        worker_stop(&site->workers[i]);
    for (unsigned i = 0; i < site->count; i++)
        worker_join(&site->workers[i]);
    for (unsigned i = 0; i < site->count; i++)
        worker_deinit(&site->workers[i]);
    metrics_free(site->metrics);
    assert_int_equal(budget_used(&site->budget), 0);
    assert_int_equal(source_accounts_most_used(&site->accounts), 0);
    for (size_t i = 0; i < SOURCE_ACCOUNTS; i++)
        assert_int_equal(site->accounts.items[i].connections, 0);
    source_accounts_deinit(&site->accounts);
    free(site);
}

static int dial(uint16_t port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"

/* Reads until the text arrives. Returns false if the connection ends first, or after 5 s. */
static bool hear(int fd, const char *text)
{
    char got[4096];
    size_t size = 0;
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    while (size < sizeof got - 1 && poll(&ready, 1, 5000) == 1) {
        ssize_t n = recv(fd, got + size, sizeof got - 1 - size, 0);
        if (n <= 0)
            return false;
        size += (size_t)n;
        got[size] = '\0';
        if (strstr(got, text))
            return true;
    }
    return false;
}

static void test_many_connections_on_several_workers(void **state)
{
    (void)state;
    enum { CONNECTIONS = 500 };
    struct site *site = site_new(WORKERS, (struct server_options){.max_connections = 2000});
    static int fds[CONNECTIONS];
    for (int i = 0; i < CONNECTIONS; i++)
        fds[i] = dial(server_port(site->server));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < CONNECTIONS; i++)
            say(fds[i], i % 2 ? GET("/later") : GET("/now"));
        for (int i = 0; i < CONNECTIONS; i++)
            assert_true(hear(fds[i], "\r\n\r\nok"));
    }
    assert_int_equal(atomic_load(&site->requests), 3 * CONNECTIONS);
    for (unsigned i = 0; i < WORKERS; i++) /* divided evenly */
        assert_in_range(atomic_load(&site->by_worker[i]), CONNECTIONS / 2, 2 * CONNECTIONS);
    assert_true(metrics_value(site->metrics, "profcol_server_connections", "server=\"site\"") ==
                CONNECTIONS);
    assert_true(metrics_value(site->metrics, "profcol_server_connections_limit",
                              "server=\"site\"") == 2000);
    for (int i = 0; i < CONNECTIONS; i++)
        close(fds[i]);
    site_free(site);
}

static void test_clients_that_vanish(void **state)
{
    (void)state;
    struct site *site = site_new(WORKERS, (struct server_options){0});
    const struct linger hard = {.l_onoff = 1};
    for (int i = 0; i < 60; i++) {
        int fd = dial(server_port(site->server));
        say(fd, i % 3 == 0 ? GET("/never")
                : i % 3 == 1
                    ? "POST /now HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nhello"
                    : "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        if (i % 3 == 0)
            wait_for(&site->requests, (unsigned)i / 3 + 1);
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
        close(fd);
    }
    wait_for(&site->gone, 20);
    site_free(site);
}

static void test_half_close(void **state)
{
    (void)state;
    struct site *site = site_new(1, (struct server_options){0});
    int fd = dial(server_port(site->server));
    say(fd, GET("/later"));
    shutdown(fd, SHUT_WR);
    assert_true(hear(fd, "\r\n\r\nok"));
    assert_false(hear(fd, "more"));
    assert_int_equal(atomic_load(&site->gone), 0);
    close(fd);
    site_free(site);
}

/* A client of either protocol, with TLS or without. */
struct peer {
    int fd;
    bool is_h2;
    struct tls_context *context;
    struct tls_stream *tls; /* NULL: cleartext */
    char got[4096];
    size_t size;
};

#define H2_BEGIN "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"
#define H2_GET_NEVER "\0\0\x0d\1\5\0\0\0\1\x82\x86\1\1a\4\6/never"
#define H2_RESET "\0\0\4\3\0\0\0\0\1\0\0\0\x08"
#define H2_GOAWAY "\0\0\x08\7\0\0\0\0\0\0\0\0\0\0\0\0\0"
#define H2_OK "\0\0\2\0\1\0\0\0\1ok" /* DATA that ends the stream */

static void flush_peer(struct peer *peer)
{
    struct slice output = tls_stream_output(peer->tls);
    while (output.size > 0) {
        ssize_t n = send(peer->fd, output.data, output.size, MSG_NOSIGNAL);
        assert_true(n > 0);
        tls_stream_sent(peer->tls, (size_t)n);
        output = tls_stream_output(peer->tls);
    }
}

/* Reads from the socket once. Returns false at its end. */
static bool peer_read(struct peer *peer)
{
    char bytes[2048];
    struct pollfd ready = {.fd = peer->fd, .events = POLLIN};
    assert_int_equal(poll(&ready, 1, 5000), 1);
    ssize_t n = recv(peer->fd, bytes, sizeof bytes, 0);
    if (n <= 0)
        return false;
    if (!peer->tls) {
        assert_true(peer->size + (size_t)n < sizeof peer->got);
        memcpy(peer->got + peer->size, bytes, (size_t)n);
        peer->size += (size_t)n;
        return true;
    }
    tls_stream_feed(peer->tls, slice_of(bytes, (size_t)n));
    size_t size;
    while (tls_stream_read(peer->tls, peer->got + peer->size, sizeof peer->got - peer->size,
                           &size) == TLS_STATUS_OK)
        peer->size += size;
    peer->size += size;
    flush_peer(peer);
    return true;
}

static bool peer_hears(struct peer *peer, struct slice expected)
{
    while (!memmem(peer->got, peer->size, expected.data, expected.size))
        if (!peer_read(peer))
            return false;
    return true;
}

static void peer_say(struct peer *peer, struct slice bytes)
{
    if (!peer->tls) {
        assert_int_equal(send(peer->fd, bytes.data, bytes.size, MSG_NOSIGNAL), bytes.size);
        return;
    }
    assert_true(tls_stream_write(peer->tls, bytes));
    flush_peer(peer);
}

static void peer_open(struct peer *peer, uint16_t port, bool is_h2,
                      const struct tls_fixture_identity *authority)
{
    static const char *const h2[] = {"h2", NULL}, *const h1[] = {"http/1.1", NULL};
    struct error err = {0};
    *peer = (struct peer){.fd = dial(port), .is_h2 = is_h2};
    if (!authority)
        return;
    struct tls_client_settings settings = {.ca_pem = authority->certificate};
    peer->context = tls_context_client(&settings, is_h2 ? h2 : h1, &err);
    assert_non_null(peer->context);
    peer->tls = tls_stream_new(peer->context, "localhost", &err);
    assert_non_null(peer->tls);
    size_t size;
    tls_stream_read(peer->tls, peer->got, sizeof peer->got, &size); /* the handshake begins */
    flush_peer(peer);
    while (!tls_stream_ready(peer->tls))
        assert_true(peer_read(peer));
}

static void peer_ask(struct peer *peer)
{
    peer_say(peer, peer->is_h2 ? SLICE(H2_BEGIN H2_GET_NEVER) : SLICE(GET("/never")));
}

static void peer_deinit(struct peer *peer)
{
    tls_stream_free(peer->tls);
    tls_context_free(peer->context);
    if (peer->fd >= 0)
        close(peer->fd);
}

static void peer_close(struct peer *peer)
{
    close(peer->fd);
    peer->fd = -1;
}

static void leave_by_close(struct peer *peer)
{
    peer_close(peer);
}

static void leave_by_reset(struct peer *peer)
{
    const struct linger hard = {.l_onoff = 1};
    setsockopt(peer->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    peer_close(peer);
}

static void leave_politely(struct peer *peer)
{
    if (peer->is_h2)
        peer_say(peer, SLICE(H2_GOAWAY));
    if (peer->tls) {
        tls_stream_shutdown(peer->tls);
        flush_peer(peer);
    }
    peer_close(peer);
}

static void leave_by_stream_reset(struct peer *peer)
{
    if (peer->is_h2)
        peer_say(peer, SLICE(H2_RESET));
    else
        peer_close(peer);
}

/* The server knows of the half close before the rest. */
static void half_close(struct peer *peer)
{
    shutdown(peer->fd, SHUT_WR);
    struct slice probe = peer->is_h2 ? SLICE("\0\0\x08\6\0\0\0\0\0") : SLICE("HTTP/1.1 ");
    assert_true(peer_hears(peer, probe));
}

static void half_close_and_reset(struct peer *peer)
{
    half_close(peer);
    leave_by_reset(peer);
}

static struct site *site_of(bool is_secure, struct tls_server_settings *settings)
{
    return site_new(2, (struct server_options){.tls = is_secure ? settings : NULL});
}

struct identities {
    struct tls_fixture_identity authority, server;
    struct tls_server_settings settings;
};

static void make_identities(struct identities *out)
{
    tls_fixture_authority(&out->authority, "authority");
    tls_fixture_issue(&out->server, &out->authority, "server", "DNS:localhost");
    out->settings = (struct tls_server_settings){
        .enabled = true, .cert_pem = out->server.certificate, .key_pem = out->server.key};
}

static void free_identities(struct identities *identities)
{
    tls_fixture_free(&identities->server);
    tls_fixture_free(&identities->authority);
}

/* The handler learns when a client leaves during its request, in whatever way it leaves. */
static void test_clients_that_leave(void **state)
{
    (void)state;
    static void (*const leaves[])(struct peer *) = {leave_by_close, leave_by_reset, leave_politely,
                                                    leave_by_stream_reset, half_close_and_reset};
    struct identities identities;
    make_identities(&identities);
    for (int kind = 0; kind < 4; kind++) {
        bool is_h2 = kind & 1, is_secure = kind & 2;
        struct site *site = site_of(is_secure, &identities.settings);
        for (unsigned i = 0; i < sizeof leaves / sizeof leaves[0]; i++) {
            struct peer peer;
            peer_open(&peer, server_port(site->server), is_h2,
                      is_secure ? &identities.authority : NULL);
            peer_ask(&peer);
            wait_for(&site->requests, i + 1);
            leaves[i](&peer);
            wait_for(&site->gone, i + 1);
            peer_deinit(&peer);
        }
        site_free(site);
    }
    free_identities(&identities);
}

static void stand_here(struct worker *worker, struct post *post)
{
    (void)worker;
    stand_still(((struct errand *)(void *)post)->site);
    free(post);
}

/* Prepares a client: the first message of its handshake is ready, but not sent. */
static void peer_prepare(struct peer *peer, uint16_t port,
                         const struct tls_fixture_identity *authority)
{
    static const char *const h1[] = {"http/1.1", NULL};
    struct error err = {0};
    struct tls_client_settings settings = {.ca_pem = authority->certificate};
    *peer = (struct peer){.fd = dial(port)};
    peer->context = tls_context_client(&settings, h1, &err);
    peer->tls = tls_stream_new(peer->context, "localhost", &err);
    assert_non_null(peer->tls);
    tls_stream_read(peer->tls, peer->got, sizeof peer->got, &peer->size);
}

static unsigned count_answered(const struct peer *peers, size_t count)
{
    unsigned answered = 0;
    char byte;
    for (size_t i = 0; i < count; i++)
        answered += recv(peers[i].fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
    return answered;
}

/* A request that arrives behind twenty handshakes is served after four of them. */
static void test_handshakes_take_turns(void **state)
{
    (void)state;
    enum { CROWD = 20 };
    static struct peer crowd[CROWD];
    struct peer good;
    struct identities identities;
    make_identities(&identities);
    struct site *site = site_new(1, (struct server_options){.tls = &identities.settings});
    peer_open(&good, server_port(site->server), false, &identities.authority);
    for (unsigned i = 0; i < CROWD; i++)
        peer_prepare(&crowd[i], server_port(site->server), &identities.authority);
    wait_for(&site->server->connections, CROWD + 1);
    on_all(site, stand_here);
    wait_for(&site->standing, 1);
    for (unsigned i = 0; i < CROWD; i++)
        flush_peer(&crowd[i]);
    peer_say(&good, SLICE(GET("/stand")));
    sem_post(&site->go);
    wait_for(&site->standing, 2);
    assert_in_range(count_answered(crowd, CROWD), 1, 4);
    sem_post(&site->go);
    assert_true(peer_hears(&good, SLICE("\r\n\r\nok")));
    for (unsigned i = 0; i < CROWD; i++) {
        while (!tls_stream_ready(crowd[i].tls))
            assert_true(peer_read(&crowd[i]));
        peer_deinit(&crowd[i]);
    }
    peer_deinit(&good);
    site_free(site);
    free_identities(&identities);
}

static void answer_all_here(struct worker *worker, struct post *post)
{
    struct site *site = ((struct errand *)(void *)post)->site;
    answer_never(site, worker);
    free(post);
}

static void test_half_closed_clients_get_their_answer(void **state)
{
    (void)state;
    struct identities identities;
    make_identities(&identities);
    for (int kind = 0; kind < 4; kind++) {
        bool is_h2 = kind & 1, is_secure = kind & 2;
        struct site *site = site_of(is_secure, &identities.settings);
        struct peer peer;
        peer_open(&peer, server_port(site->server), is_h2,
                  is_secure ? &identities.authority : NULL);
        peer_ask(&peer);
        wait_for(&site->requests, 1);
        half_close(&peer);
        on_all(site, answer_all_here);
        assert_true(peer_hears(&peer, is_h2 ? SLICE(H2_OK) : SLICE("\r\n\r\nok")));
        assert_false(peer_hears(&peer, SLICE("more")));
        assert_int_equal(atomic_load(&site->gone), 0);
        peer_deinit(&peer);
        site_free(site);
    }
    free_identities(&identities);
}

static void test_unix_clients_that_leave(void **state)
{
    (void)state;
    char path[64];
    snprintf(path, sizeof path, "/tmp/profcol-test-%d.sock", getpid());
    struct site *site = site_new(1, (struct server_options){.endpoint = path, .transport = "unix"});
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, path, strlen(path) + 1);
    for (unsigned i = 0; i < 2; i++) {
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
        say(fd, i == 0 ? GET("/never") : "GET /never HTTP/1.0\r\n\r\n");
        wait_for(&site->requests, i + 1);
        close(fd);
        wait_for(&site->gone, i + 1);
    }
    site_free(site);
}

static size_t put_field(char *out, const char *name, const char *value)
{
    size_t name_size = strlen(name), value_size = strlen(value);
    out[0] = 0; /* literal, not indexed */
    out[1] = (char)name_size;
    memcpy(out + 2, name, name_size);
    out[2 + name_size] = (char)value_size;
    memcpy(out + 3 + name_size, value, value_size);
    return 3 + name_size + value_size;
}

static size_t put_frame_head(char *out, size_t size, int type, int flags, int stream)
{
    const char head[9] = {0, 0, (char)size,          (char)type,  (char)flags,
                          0, 0, (char)(stream >> 8), (char)stream};
    memcpy(out, head, sizeof head);
    return sizeof head;
}

/* Sends a call with an empty message and a deadline. */
static void say_call(int fd, int stream, const char *path, const char *timeout)
{
    char block[128], frames[256];
    size_t size = put_field(block, ":method", "POST");
    size += put_field(block + size, ":scheme", "http");
    size += put_field(block + size, ":authority", "a");
    size += put_field(block + size, ":path", path);
    size += put_field(block + size, "content-type", "application/grpc");
    size += put_field(block + size, "grpc-timeout", timeout);
    size_t used = put_frame_head(frames, size, 1, 4, stream);
    memcpy(frames + used, block, size);
    used += size;
    used += put_frame_head(frames + used, 5, 0, 1, stream);
    memset(frames + used, 0, 5);
    used += 5;
    assert_int_equal(send(fd, frames, used, MSG_NOSIGNAL), used);
}

static void receive_all(int fd, uint8_t *out, size_t size)
{
    size_t got = 0;
    while (got < size) {
        ssize_t n = recv(fd, out + got, size - got, 0);
        assert_true(n > 0);
        got += (size_t)n;
    }
}

/* Reads frames until `count` streams have ended. */
static void hear_ends(int fd, unsigned count)
{
    uint8_t head[9], payload[1024] = {0};
    while (count > 0) {
        receive_all(fd, head, sizeof head);
        size_t size = (size_t)head[1] << 8 | head[2];
        assert_true(head[0] == 0 && size <= sizeof payload);
        receive_all(fd, payload, size);
        if (head[3] == 3 || head[3] == 7) /* RST_STREAM, GOAWAY */
            fail_msg("frame %u of stream %u: %u", head[3], (unsigned)head[7] << 8 | head[8],
                     payload[size - 1]);
        if (head[3] <= 1 && (head[4] & 1))
            count--;
    }
}

/* Thousands of calls with deadlines close to the time of their answers: each is answered once.
 * Calls to /never are released after the server has stopped. */
static void test_short_deadlines(void **state)
{
    (void)state;
    enum { CONNECTIONS = 8, CALLS = 50, ROUNDS = 10 };
    static const char *const timeouts[] = {"1n", "100u", "1m", "19m", "20m", "21m", "0S", "40m"};
    struct site *site = site_new(2, (struct server_options){0});
    int fds[CONNECTIONS];
    for (int i = 0; i < CONNECTIONS; i++) {
        fds[i] = dial(server_port(site->server));
        assert_int_equal(send(fds[i], H2_BEGIN, sizeof(H2_BEGIN) - 1, 0), sizeof(H2_BEGIN) - 1);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int call = 0; call < CALLS; call++)
            for (int i = 0; i < CONNECTIONS; i++)
                say_call(fds[i], 2 * (round * CALLS + call) + 1,
                         (call + i) % 5 == 0 ? "/never" : "/later", timeouts[(call * 3 + i) % 8]);
        for (int i = 0; i < CONNECTIONS; i++)
            hear_ends(fds[i], CALLS);
    }
    for (int i = 0; i < CONNECTIONS; i++)
        close(fds[i]);
    site_free(site);
}

/* A client that is refused while it still sends can read the reason. */
static void test_lingering_close(void **state)
{
    (void)state;
    struct site *site = site_new(1, (struct server_options){.max_body_bytes = 1000});
    int fd = dial(server_port(site->server));
    say(fd, "POST /now HTTP/1.1\r\nHost: a\r\nContent-Length: 500000\r\n\r\n");
    char piece[10000];
    memset(piece, 'x', sizeof piece);
    for (int i = 0; i < 50; i++) {
        send(fd, piece, sizeof piece, MSG_NOSIGNAL);
        usleep(1000);
    }
    assert_true(hear(fd, "413 Content Too Large"));
    close(fd);
    site_free(site);
}

static void test_body_in_pieces(void **state)
{
    (void)state;
    struct site *site = site_new(1, (struct server_options){0});
    int fd = dial(server_port(site->server));
    char *body = malloc(3000000);
    memset(body, 'x', 3000000);
    for (int i = 0; i < 3; i++) {
        say(fd, "POST /now HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n");
        size_t sent = 0;
        while (sent < 3000000) {
            size_t size = 3000000 - sent < 70001 ? 3000000 - sent : 70001;
            ssize_t n = send(fd, body + sent, size, MSG_NOSIGNAL);
            assert_true(n > 0);
            sent += (size_t)n;
        }
        assert_true(hear(fd, "\r\n\r\nok"));
    }
    free(body);
    close(fd);
    site_free(site);
}

static void test_drain(void **state)
{
    (void)state;
    struct site *site = site_new(WORKERS, (struct server_options){0});
    int busy[30], idle[30];
    for (int i = 0; i < 30; i++) {
        idle[i] = dial(server_port(site->server));
        say(idle[i], GET("/now"));
        assert_true(hear(idle[i], "\r\n\r\nok"));
        busy[i] = dial(server_port(site->server));
        say(busy[i], GET("/later"));
    }
    wait_for(&site->requests, 60);
    on_all(site, drain_here);
    for (int i = 0; i < 30; i++) {
        bool done = hear(busy[i], "\r\n\r\nok");
        assert_true(done);
        assert_false(hear(idle[i], "x"));
        close(busy[i]);
        close(idle[i]);
    }
    wait_for(&site->drained, WORKERS);
    site_free(site);
}

static void test_connection_limit(void **state)
{
    (void)state;
    struct site *site = site_new(2, (struct server_options){.max_connections = 4});
    int fds[6];
    for (int i = 0; i < 6; i++) {
        fds[i] = dial(server_port(site->server)); /* two connections wait in the kernel */
        say(fds[i], GET("/now"));
    }
    for (int i = 0; i < 4; i++)
        assert_true(hear(fds[i], "\r\n\r\nok"));
    struct pollfd waits = {.fd = fds[4], .events = POLLIN};
    assert_int_equal(poll(&waits, 1, 50), 0);
    close(fds[0]);
    assert_true(hear(fds[4], "\r\n\r\nok"));
    close(fds[1]);
    assert_true(hear(fds[5], "\r\n\r\nok"));
    for (int i = 2; i < 6; i++)
        close(fds[i]);
    site_free(site);
}

/* Connections that are silent or in the middle of a request give way; a request that waits for its
 * answer does not. */
static void test_connections_that_make_room(void **state)
{
    (void)state;
    enum { LIMIT = 6, SILENT = 12 };
    static const char *const starts[] = {
        "", "GET /now HTTP/1.1\r\nHost:", "PRI * HTTP/2.0\r\n",
        "POST /now HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n1"};
    struct site *site =
        site_new(2, (struct server_options){.max_connections = LIMIT, .makes_room = true});
    int later = dial(server_port(site->server)), fds[SILENT];
    say(later, GET("/never"));
    wait_for(&site->requests, 1);
    for (int i = 0; i < SILENT; i++) {
        fds[i] = dial(server_port(site->server));
        say(fds[i], starts[i % 4]);
        int fd = dial(server_port(site->server));
        say(fd, GET("/now"));
        assert_true(hear(fd, "\r\n\r\nok"));
        close(fd);
    }
    assert_int_equal(atomic_load(&site->gone), 0);
    int closed = 0;
    for (int i = 0; i < SILENT; i++) {
        struct pollfd silent = {.fd = fds[i], .events = POLLIN};
        closed += poll(&silent, 1, 0);
        close(fds[i]);
    }
    assert_true(closed >= SILENT + 1 - LIMIT);
    close(later);
    site_free(site);
}

static void test_connection_limit_for_each_address(void **state)
{
    (void)state;
    struct site *site = site_new(2, (struct server_options){.max_connections_per_ip = 3});
    int fds[3];
    for (int i = 0; i < 3; i++) {
        fds[i] = dial(server_port(site->server));
        say(fds[i], GET("/now"));
        assert_true(hear(fds[i], "\r\n\r\nok"));
    }
    int late = dial(server_port(site->server));
    assert_false(hear(late, "x")); /* closed */
    close(late);
    close(fds[0]);
    for (int i = 0;; i++) { /* until the server has noticed */
        assert_in_range(i, 0, 1000);
        fds[0] = dial(server_port(site->server));
        say(fds[0], GET("/now"));
        if (hear(fds[0], "\r\n\r\nok"))
            break;
        close(fds[0]);
        usleep(5000);
    }
    for (int i = 0; i < 3; i++)
        close(fds[i]);
    site_free(site);
}

static void test_out_of_descriptors(void **state)
{
    (void)state;
    struct site *site = site_new(1, (struct server_options){0});
    int good = dial(server_port(site->server));
    say(good, GET("/now"));
    assert_true(hear(good, "\r\n\r\nok"));
    int late = socket(AF_INET, SOCK_STREAM, 0);
    struct rlimit old, few;
    getrlimit(RLIMIT_NOFILE, &old);
    few = old;
    int top = dup(0);
    close(top);
    few.rlim_cur = (rlim_t)top; /* no free descriptor below */
    setrlimit(RLIMIT_NOFILE, &few);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(server_port(site->server)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(connect(late, (struct sockaddr *)&address, sizeof address), 0);
    assert_false(hear(late, "x")); /* closed, not left waiting */
    say(good, GET("/now"));
    assert_true(hear(good, "\r\n\r\nok"));
    setrlimit(RLIMIT_NOFILE, &old);
    close(late);
    late = dial(server_port(site->server));
    say(late, GET("/now"));
    assert_true(hear(late, "\r\n\r\nok"));
    close(late);
    close(good);
    site_free(site);
}

static void test_unix_socket(void **state)
{
    (void)state;
    char path[64];
    snprintf(path, sizeof path, "/tmp/profcol-test-%d.sock", getpid());
    struct server_options options = {.endpoint = path, .transport = "unix"};
    struct site *site = site_new(2, options);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    say(fd, GET("/now"));
    assert_true(hear(fd, "\r\n\r\nok"));
    close(fd);
    struct error err;
    options.accept_http = true;
    assert_null(server_new(&options, &handler, NULL, site->workers, 1, &err)); /* in use */
    assert_non_null(strstr(err.text, "Address already in use"));
    site_free(site);
    assert_int_equal(access(path, F_OK), -1);
    /* A socket that a crash left behind. */
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    close(fd);
    site = site_new(1, options);
    site_free(site);
}

/* {endpoint, transport} -> expected error; "": none */
static void test_endpoints(void **state)
{
    (void)state;
    static const struct {
        const char *endpoint;
        const char *transport;
        const char *error;
    } cases[] = {
        {"localhost:0", "tcp", ""},
        {"localhost:0", NULL, ""},
        {"0.0.0.0:0", "tcp", ""},
        {":0", "tcp4", ""},
        {":0", "tcp", ""},
        {"127.0.0.1:0", "tcp4", ""},
        {"127.0.0.1", "tcp", "listen on 127.0.0.1: "},
        {"nowhere.invalid:0", "tcp", "listen on nowhere.invalid:0: nowhere.invalid: "},
        {"192.0.2.1:0", "tcp", "listen on 192.0.2.1:0: Cannot assign requested address"},
        {"/dev/null", "unix", "listen on /dev/null: the path exists and is not a socket"},
        {"/nonexistent/x.sock", "unix", "listen on /nonexistent/x.sock: No such file or directory"},
    };
    static struct worker worker;
    worker_init_manual(&worker, 0, 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct server_options options = {.endpoint = cases[i].endpoint,
                                         .transport = cases[i].transport};
        struct error err = {0};
        struct server *server = server_new(&options, &handler, NULL, &worker, 1, &err);
        if ((server == NULL) != (cases[i].error[0] != '\0') ||
            strncmp(err.text, cases[i].error, strlen(cases[i].error)) != 0)
            fail_msg("%s: %s", cases[i].endpoint, err.text);
        server_free(server);
    }
    worker_deinit(&worker);
}

static void test_port_in_use(void **state)
{
    (void)state;
    struct site *site = site_new(1, (struct server_options){0});
    char endpoint[32];
    snprintf(endpoint, sizeof endpoint, "127.0.0.1:%u", server_port(site->server));
    struct server_options options = {.endpoint = endpoint};
    struct error err;
    assert_null(server_new(&options, &handler, NULL, site->workers, 1, &err));
    assert_non_null(strstr(err.text, "Address already in use"));
    site_free(site);
}

static void retire_here(struct worker *worker, struct post *post)
{
    struct site *site = ((struct errand *)(void *)post)->site;
    server_retire(site->server, worker, on_drained, site);
    atomic_fetch_add(&site->retired, 1);
    free(post);
}

/* The first worker first, as server.h says. */
static void retire(struct site *site)
{
    for (unsigned i = 0; i < site->count; i++) {
        on_worker(site, i, retire_here);
        wait_for(&site->retired, i + 1);
    }
}

/* Clients that wait in the kernel's queue when a listener ends are served. */
static void test_retired_with_clients_in_the_queue(void **state)
{
    (void)state;
    enum { CLIENTS = 200 }; /* more than one event accepts */
    int fds[CLIENTS];
    struct site *site = site_new(2, (struct server_options){0});
    uint16_t port = server_port(site->server);
    int first = dial(port);
    say(first, GET("/stand"));
    wait_for(&site->standing, 1); /* the first worker, which accepts */
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = dial(port);
        say(fds[i], GET("/now"));
    }
    on_worker(site, 0, retire_here); /* before the rest of the queue is accepted */
    sem_post(&site->go);
    wait_for(&site->retired, 1);
    on_worker(site, 1, retire_here);
    for (int i = 0; i < CLIENTS; i++) {
        assert_true(hear(fds[i], "\r\n\r\nok"));
        close(fds[i]);
    }
    assert_true(hear(first, "\r\n\r\nok"));
    close(first);
    wait_for(&site->drained, 2);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int late = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(late, (struct sockaddr *)&address, sizeof address), -1);
    assert_int_equal(errno, ECONNREFUSED);
    close(late);
    site_free(site);
}

static void endpoint_of_free_port(char *endpoint, size_t size)
{
    static struct worker worker;
    struct error err;
    worker_init_manual(&worker, 0, 1);
    struct server *server = server_new(&(struct server_options){.endpoint = "127.0.0.1:0"},
                                       &handler, NULL, &worker, 1, &err);
    snprintf(endpoint, size, "127.0.0.1:%u", server_port(server));
    server_free(server);
    worker_deinit(&worker);
}

/* While a listener ends, anyone may have its address. */
static void test_address_of_a_retired_server(void **state)
{
    (void)state;
    char endpoint[32];
    endpoint_of_free_port(endpoint, sizeof endpoint);
    struct site *site = site_new(1, (struct server_options){.endpoint = endpoint});
    int before = dial(server_port(site->server));
    say(before, GET("/now"));
    assert_true(hear(before, "\r\n\r\nok")); /* it has started */
    retire(site);
    struct site *next = site_new(1, (struct server_options){.endpoint = endpoint});
    int after = dial(server_port(next->server));
    say(after, GET("/now"));
    assert_true(hear(after, "\r\n\r\nok"));
    say(before, GET("/now"));
    assert_true(hear(before, "Connection: close\r\n"));
    close(before);
    close(after);
    wait_for(&site->drained, 1);
    site_free(site);
    after = dial(server_port(next->server));
    say(after, GET("/now"));
    assert_true(hear(after, "\r\n\r\nok"));
    close(after);
    site_free(next);
}

static void test_never_started(void **state)
{
    (void)state;
    static struct worker worker;
    worker_init_manual(&worker, 0, 1);
    struct server_options options = {.endpoint = "127.0.0.1:0"};
    struct error err;
    struct server *server = server_new(&options, &handler, NULL, &worker, 1, &err);
    server_stop(server, &worker);
    server_free(server);
    worker_deinit(&worker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_connections_on_several_workers),
        cmocka_unit_test(test_clients_that_vanish),
        cmocka_unit_test(test_half_close),
        cmocka_unit_test(test_clients_that_leave),
        cmocka_unit_test(test_half_closed_clients_get_their_answer),
        cmocka_unit_test(test_handshakes_take_turns),
        cmocka_unit_test(test_unix_clients_that_leave),
        cmocka_unit_test(test_short_deadlines),
        cmocka_unit_test(test_lingering_close),
        cmocka_unit_test(test_body_in_pieces),
        cmocka_unit_test(test_drain),
        cmocka_unit_test(test_connection_limit),
        cmocka_unit_test(test_connections_that_make_room),
        cmocka_unit_test(test_connection_limit_for_each_address),
        cmocka_unit_test(test_out_of_descriptors),
        cmocka_unit_test(test_unix_socket),
        cmocka_unit_test(test_endpoints),
        cmocka_unit_test(test_port_in_use),
        cmocka_unit_test(test_retired_with_clients_in_the_queue),
        cmocka_unit_test(test_address_of_a_retired_server),
        cmocka_unit_test(test_never_started),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
