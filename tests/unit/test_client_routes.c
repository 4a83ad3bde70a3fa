/* How a client gets to its endpoint: proxies, several addresses, waiting for a backend. */
#include "core/base/clock.h"
#include "core/base/hash.h"
#include "core/net/client_private.h"
#include "loopback_peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND INT64_C(1000000000)

struct call {
    struct client_request request;
    struct slice body;
    bool done;
    enum client_failure failure;
    int status;
    char why[512];
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
    call->status = answer->status;
    snprintf(call->why, sizeof call->why, "%s", answer->failure_text ? answer->failure_text : "");
}

static void begin(struct call *call, struct client *client, int64_t timeout_ns)
{
    *call = (struct call){.body = SLICE("body")};
    call->request = (struct client_request){.method = "POST",
                                            .path = "/v1/traces",
                                            .body = &call->body,
                                            .body_count = 1,
                                            .body_size = 4,
                                            .timeout_ns = timeout_ns,
                                            .on_done = on_done};
    client_send(client, &call->request);
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

static void send_one(struct call *call, struct client *client)
{
    begin(call, client, 5 * SECOND);
    run_until(&call->done);
}

static void expect_success(struct client *client)
{
    struct call call;
    send_one(&call, client);
    assert_string_equal(call.why, "");
    assert_int_equal(call.status, 200);
}

static struct client *open_client(const struct client_options *options)
{
    struct error err;
    struct client *client = client_new(&worker, options, &err);
    assert_non_null(client);
    return client;
}

static void answer_ok(void *context, unsigned number, const struct peer_request *request,
                      struct peer_answer *answer)
{
    (void)context, (void)number, (void)request;
    answer->body = SLICE("hello");
}

/* ---- proxies ---- */

/* What a proxy does with a connection. */
struct fake_proxy {
    const char *answer;
    uint16_t to; /* relays to this port after its answer; 0: closes */
    bool hangs;  /* never answers */
    char request[512];
};

static void pump(int from, int to)
{
    char bytes[4096];
    ssize_t size = recv(from, bytes, sizeof bytes, 0);
    if (size > 0)
        send(to, bytes, (size_t)size, MSG_NOSIGNAL);
}

static bool has_ended(int socket)
{
    char byte;
    return recv(socket, &byte, 1, MSG_PEEK) <= 0;
}

static void relay(int one, uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int other = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(other, (struct sockaddr *)&address, sizeof address) != 0)
        abort();
    for (;;) {
        struct pollfd polls[] = {{.fd = one, .events = POLLIN}, {.fd = other, .events = POLLIN}};
        if (poll(polls, 2, 10000) <= 0 || (polls[0].revents && has_ended(one)))
            break;
        if (polls[0].revents)
            pump(one, other);
        if (polls[1].revents)
            pump(other, one);
    }
    close(other);
}

static void read_head(struct fake_proxy *proxy, int socket)
{
    size_t size = 0;
    while (size < sizeof proxy->request - 1 && !strstr(proxy->request, "\r\n\r\n")) {
        ssize_t n = recv(socket, proxy->request + size, sizeof proxy->request - 1 - size, 0);
        if (n <= 0)
            return;
        size += (size_t)n;
        proxy->request[size] = '\0';
    }
}

static void serve_as_proxy(void *context, int socket, unsigned connection)
{
    struct fake_proxy *proxy = context;
    (void)connection;
    read_head(proxy, socket);
    while (proxy->hangs && !has_ended(socket))
        recv(socket, &(char){0}, 1, 0);
    if (proxy->hangs)
        return;
    send(socket, proxy->answer, strlen(proxy->answer), MSG_NOSIGNAL);
    if (proxy->to)
        relay(socket, proxy->to);
}

static struct peer *open_proxy(struct fake_proxy *proxy)
{
    return peer_new(
        &(struct peer_options){.protocol = PEER_RAW, .serve = serve_as_proxy, .context = proxy});
}

static struct client *open_by_proxy(enum client_protocol protocol, const struct peer *proxy,
                                    const char *authorization)
{
    return open_client(&(struct client_options){
        .protocol = protocol,
        .host = "backend.invalid",
        .port = 4317,
        .proxy = {.host = "127.0.0.1", .port = peer_port(proxy), .authorization = authorization}});
}

static void http2_uses_a_tunnel(void **state)
{
    (void)state;
    struct peer *peer =
        peer_new(&(struct peer_options){.protocol = PEER_HTTP2, .answer = answer_ok});
    struct fake_proxy fake = {.answer = "HTTP/1.1 200 Connection established\r\nx: y\r\n\r\n",
                              .to = peer_port(peer)};
    struct peer *proxy = open_proxy(&fake);
    struct client *client = open_by_proxy(CLIENT_H2, proxy, "Basic dTpw");
    for (int i = 0; i < 3; i++)
        expect_success(client);
    assert_int_equal(peer_connections(proxy), 1);
    assert_string_equal(fake.request, "CONNECT backend.invalid:4317 HTTP/1.1\r\n"
                                      "host: backend.invalid:4317\r\n"
                                      "proxy-authorization: Basic dTpw\r\n\r\n");
    assert_string_equal(peer_header(peer_request(peer, 0), ":authority"), "backend.invalid:4317");
    assert_string_equal(peer_header(peer_request(peer, 0), "proxy-authorization"), "");
    client_free(client);
    run_for(SECOND / 100); /* closes the connection, so that the proxy's thread ends */
    peer_free(proxy);
    peer_free(peer);
}

static void http1_sends_whole_urls(void **state)
{
    (void)state;
    struct peer *proxy = peer_new(&(struct peer_options){.answer = answer_ok});
    struct client *client = open_by_proxy(CLIENT_HTTP1, proxy, "Basic dTpw");
    expect_success(client);
    const struct peer_request *request = peer_request(proxy, 0);
    assert_string_equal(peer_header(request, ":path"), "http://backend.invalid:4317/v1/traces");
    assert_string_equal(peer_header(request, "host"), "backend.invalid:4317");
    assert_string_equal(peer_header(request, "proxy-authorization"), "Basic dTpw");
    client_free(client);
    peer_free(proxy);
}

static void answer_407(void *context, unsigned number, const struct peer_request *request,
                       struct peer_answer *answer)
{
    (void)context, (void)number, (void)request;
    answer->status = 407;
}

static void a_proxy_wants_a_password(void **state)
{
    (void)state;
    struct peer *proxy = peer_new(&(struct peer_options){.answer = answer_407});
    struct client *client = open_by_proxy(CLIENT_HTTP1, proxy, NULL);
    struct call call;
    char expected[200];
    send_one(&call, client);
    snprintf(expected, sizeof expected,
             "the proxy 127.0.0.1:%u answered with status 407; write user and password into the "
             "URL of the proxy",
             peer_port(proxy));
    assert_int_equal(call.failure, CLIENT_CONNECT_FAILED);
    assert_string_equal(call.why, expected);
    client_free(client);
    peer_free(proxy);
}

static void what_proxies_refuse(void **state)
{
    (void)state;
    static char huge[40000];
    memset(huge, 'x', sizeof huge - 1);
    const struct slice head = SLICE("HTTP/1.1 200 OK\r\na: ");
    memcpy(huge, head.data, head.size);
    static const struct {
        const char *answer, *why;
    } cases[] = {
        {"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n",
         "the proxy answered CONNECT with status 407 Proxy Authentication Required; write user and "
         "password into the URL of the proxy"},
        {"HTTP/1.0 503 \033[31m\n\n", "the proxy answered CONNECT with status 503 ?[31m"},
        {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
         "the proxy answered CONNECT with status 100 Continue"},
        {"SSH-2.0-OpenSSH_9.2\r\n\r\n", "the proxy's answer to CONNECT is not HTTP/1.1"},
        {"HTTP/1.1 2000 OK\r\n\r\n", "the proxy's answer to CONNECT is not HTTP/1.1"},
        {"HTTP/1.1 200 OK\r\n", "the proxy closed the connection"},
        {"", "the proxy closed the connection"},
        {huge, "the headers of the proxy's answer to CONNECT are too large"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fake_proxy fake = {.answer = cases[i].answer};
        struct peer *proxy = open_proxy(&fake);
        struct client *client = open_by_proxy(CLIENT_H2, proxy, NULL);
        struct call call;
        char expected[300];
        send_one(&call, client);
        snprintf(expected, sizeof expected, "connect to the proxy 127.0.0.1:%u: %s",
                 peer_port(proxy), cases[i].why);
        assert_int_equal(call.failure, CLIENT_CONNECT_FAILED);
        assert_string_equal(call.why, expected);
        client_free(client);
        run_for(SECOND / 100);
        peer_free(proxy);
    }
}

static void a_proxy_that_hangs(void **state)
{
    (void)state;
    struct fake_proxy fake = {.hangs = true};
    struct peer *proxy = open_proxy(&fake);
    struct client *client = open_by_proxy(CLIENT_H2, proxy, NULL);
    struct call call;
    begin(&call, client, SECOND / 4);
    run_until(&call.done);
    assert_int_equal(call.failure, CLIENT_TIMEOUT);
    assert_non_null(strstr(call.why, "connect to backend.invalid:4317: no success within 0.25s"));
    client_free(client);
    run_for(SECOND / 100);
    peer_free(proxy);
}

/* ---- several addresses ---- */

/* Opens a client whose name has these addresses, all with one port. */
static struct client *open_with_addresses(enum client_balance balance, uint16_t port,
                                          const char *const addresses[3])
{
    struct client *client = open_client(&(struct client_options){
        .protocol = CLIENT_H2, .host = addresses[0], .port = port, .balance = balance});
    struct client_resolver *resolver = &client->resolver;
    for (resolver->count = 0; resolver->count < 3; resolver->count++) {
        struct client_address *address = &resolver->addresses[resolver->count];
        struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(port)};
        assert_int_equal(inet_pton(AF_INET, addresses[resolver->count], &name.sin_addr), 1);
        *address = (struct client_address){.size = sizeof name};
        memcpy(&address->storage, &name, sizeof name);
    }
    return client;
}

static void send_slowly(struct client *client, int count)
{
    for (int i = 0; i < count; i++) {
        expect_success(client);
        run_for(SECOND / 500);
    }
}

static void requests_take_turns(void **state)
{
    static const char *const addresses[] = {"127.0.0.1", "127.0.0.2", "127.0.0.3"};
    (void)state;
    struct peer *peer = peer_new(
        &(struct peer_options){.protocol = PEER_HTTP2, .answer = answer_ok, .any_address = true});
    struct client *client =
        open_with_addresses(CLIENT_BALANCE_ROUND_ROBIN, peer_port(peer), addresses);
    send_slowly(client, 30);
    assert_int_equal(peer_connections(peer), 3);
    unsigned counts[3] = {0};
    for (size_t i = 15; i < 30; i++)
        counts[peer_request(peer, i)->connection]++;
    for (int i = 0; i < 3; i++)
        assert_int_equal(counts[i], 5);
    client_free(client);
    client = open_with_addresses(CLIENT_BALANCE_PICK_FIRST, peer_port(peer), addresses);
    send_slowly(client, 5);
    assert_int_equal(peer_connections(peer), 3 + 1);
    client_free(client);
    peer_free(peer);
}

static void a_dead_address_is_skipped(void **state)
{
    /* The peer listens on 127.0.0.1 only. */
    static const char *const addresses[] = {"127.0.0.3", "127.0.0.2", "127.0.0.1"};
    (void)state;
    struct peer *peer =
        peer_new(&(struct peer_options){.protocol = PEER_HTTP2, .answer = answer_ok});
    for (int balance = CLIENT_BALANCE_ANY; balance <= CLIENT_BALANCE_ROUND_ROBIN; balance++) {
        struct client *client =
            open_with_addresses((enum client_balance)balance, peer_port(peer), addresses);
        send_slowly(client, 10);
        client_free(client);
    }
    assert_int_equal(peer_connections(peer), 3);
    peer_free(peer);
}

static void old_addresses_are_left(void **state)
{
    static const char *const addresses[] = {"127.0.0.1", "127.0.0.2", "127.0.0.3"};
    (void)state;
    struct peer *peer = peer_new(
        &(struct peer_options){.protocol = PEER_HTTP2, .answer = answer_ok, .any_address = true});
    struct client *client =
        open_with_addresses(CLIENT_BALANCE_ROUND_ROBIN, peer_port(peer), addresses);
    send_slowly(client, 9);
    assert_int_equal(client->open_count, 3);
    client->resolver.count = 1; /* as a look-up says */
    client_ref(client);
    client->resolver.on_resolved(&client->resolver);
    send_slowly(client, 3);
    assert_int_equal(client->open_count, 1);
    client_free(client);
    peer_free(peer);
}

/* ---- waiting, idle connections ---- */

static void requests_wait_for_a_backend(void **state)
{
    (void)state;
    struct client *client = open_client(&(struct client_options){.protocol = CLIENT_H2,
                                                                 .host = "127.0.0.1",
                                                                 .port = peer_unused_port(),
                                                                 .wait_for_ready = true});
    struct call call;
    begin(&call, client, SECOND / 2);
    run_until(&call.done);
    assert_int_equal(call.failure, CLIENT_TIMEOUT);
    assert_non_null(strstr(call.why, "last error: connect to 127.0.0.1"));
    client_free(client);
}

static void idle_connections_are_closed(void **state)
{
    (void)state;
    struct peer *peer = peer_new(&(struct peer_options){.answer = answer_ok});
    struct client *client = open_client(
        &(struct client_options){.host = "127.0.0.1", .port = peer_port(peer), .max_idle = 2});
    struct call calls[6];
    for (int i = 0; i < 6; i++)
        begin(&calls[i], client, 5 * SECOND);
    for (int i = 0; i < 6; i++)
        run_until(&calls[i].done);
    run_for(SECOND / 50);
    assert_true(peer_connections(peer) > 2);
    assert_int_equal(client->open_count, 2);
    expect_success(client);
    client_free(client);
    peer_free(peer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(http2_uses_a_tunnel, set_up, tear_down),
        cmocka_unit_test_setup_teardown(http1_sends_whole_urls, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_proxy_wants_a_password, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_proxies_refuse, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_proxy_that_hangs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(requests_take_turns, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_dead_address_is_skipped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(old_addresses_are_left, set_up, tear_down),
        cmocka_unit_test_setup_teardown(requests_wait_for_a_backend, set_up, tear_down),
        cmocka_unit_test_setup_teardown(idle_connections_are_closed, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
