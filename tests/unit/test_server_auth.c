#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "server_fixture.h"

/* ---- an authenticator that decides as the test says ---- */

struct gate {
    struct server_fixture fixture; /* its auth.context is the gate */
    struct exchange *waiting;
    size_t cancelled;
    int released;
};

static const struct verdict refusal = {
    .code = GRPC_UNAUTHENTICATED, .retry_after_ns = -1, .text = "no such user"};

static enum server_auth_result begin(const struct server_auth *auth, struct exchange *exchange,
                                     struct verdict *why)
{
    struct gate *gate = auth->context;
    struct slice value = http_header_get(exchange_headers(exchange), "authorization");
    if (slice_is(value, "later")) {
        assert_null(gate->waiting);
        gate->waiting = exchange;
        return SERVER_AUTH_LATER;
    }
    *why = refusal;
    if (!slice_is(value, "yes"))
        return SERVER_AUTH_REFUSED;
    exchange_set_identity(exchange, &gate->released);
    return SERVER_AUTH_ACCEPTED;
}

static void cancel(const struct server_auth *auth, struct exchange *exchange)
{
    struct gate *gate = auth->context;
    assert_ptr_equal(gate->waiting, exchange);
    gate->waiting = NULL;
    gate->cancelled++;
}

static void release(void *identity)
{
    ++*(int *)identity;
}

static void decide(struct gate *gate, const struct verdict *verdict)
{
    struct exchange *exchange = gate->waiting;
    assert_non_null(exchange);
    gate->waiting = NULL;
    if (verdict_is_ok(verdict))
        exchange_set_identity(exchange, &gate->released);
    exchange_authenticated(exchange, verdict);
    server_part_round(gate->fixture.server->parts);
}

static void open_gate(struct gate *gate, struct raw_client *one)
{
    *gate = (struct gate){0};
    server_fixture_init(&gate->fixture);
    gate->fixture.options.auth = (struct server_auth){.context = gate,
                                                      .begin = begin,
                                                      .cancel = cancel,
                                                      .release = release,
                                                      .challenge = "Basic realm=\"test\""};
    server_fixture_start(&gate->fixture);
    raw_client_open(one, &gate->fixture);
}

static void close_gate(struct gate *gate, struct raw_client *one)
{
    raw_client_deinit(one);
    server_fixture_end(&gate->fixture);
    assert_null(gate->waiting);
}

#define HEAD(path, authorization, length)                                                          \
    SLICE("POST " path " HTTP/1.1\r\nHost: a\r\nAuthorization: " authorization                     \
          "\r\nContent-Length: " length "\r\n\r\n")

static bool has(struct raw_client *one, const char *text)
{
    return strstr(text_string(&one->received), text) != NULL;
}

/* ---- tests ---- */

static void refused_before_the_body(void **state)
{
    (void)state;
    struct gate gate;
    struct raw_client one;
    open_gate(&gate, &one);
    raw_client_send(&one, HEAD("/echo", "no", "1000000"));
    assert_true(has(&one, "HTTP/1.1 401 Unauthorized\r\n"));
    assert_true(has(&one, "www-authenticate: Basic realm=\"test\"\r\n"));
    assert_true(has(&one, "no such user"));
    assert_int_equal(gate.fixture.requests, 0);
    assert_int_equal(metrics_value(gate.fixture.metrics, "profcol_server_unauthenticated_requests",
                                   "server=\"test\""),
                     1);
    close_gate(&gate, &one);
}

static void unknown_paths_are_refused_too(void **state)
{
    (void)state;
    struct gate gate;
    struct raw_client one;
    open_gate(&gate, &one);
    raw_client_send(&one, SLICE("GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n"));
    assert_true(has(&one, "HTTP/1.1 401 "));
    raw_client_send(&one, SLICE("GET /nothing HTTP/1.1\r\nHost: a\r\nAuthorization: yes\r\n\r\n"));
    assert_true(has(&one, "HTTP/1.1 404 "));
    assert_int_equal(gate.released, 1);
    close_gate(&gate, &one);
}

static void accepted_before_the_body_is_complete(void **state)
{
    (void)state;
    struct gate gate;
    struct raw_client one;
    open_gate(&gate, &one);
    raw_client_send(&one, HEAD("/echo", "later", "4"));
    raw_client_send(&one, SLICE("ab"));
    decide(&gate, &verdict_ok);
    assert_int_equal(gate.fixture.requests, 0);
    raw_client_send(&one, SLICE("cd"));
    assert_true(has(&one, "HTTP/1.1 200 "));
    assert_true(has(&one, "abcd"));
    assert_int_equal(gate.released, 1);
    close_gate(&gate, &one);
}

static void a_complete_body_waits(void **state)
{
    (void)state;
    struct gate gate;
    struct raw_client one;
    open_gate(&gate, &one);
    raw_client_send(&one, HEAD("/echo", "later", "4"));
    raw_client_send(&one, SLICE("abcdPOST /echo HTTP/1.1\r\n")); /* and the next request */
    server_fixture_advance(&gate.fixture, 100);
    assert_int_equal(gate.fixture.requests, 0);
    assert_int_equal(one.received.size, 0);
    decide(&gate, &verdict_ok);
    assert_true(has(&one, "abcd"));
    assert_int_equal(gate.fixture.requests, 1);
    close_gate(&gate, &one);
}

static void refused_after_a_while(void **state)
{
    (void)state;
    static const char *const bodies[] = {"", "ab", "abcd"};
    for (size_t i = 0; i < 3; i++) {
        struct gate gate;
        struct raw_client one;
        open_gate(&gate, &one);
        raw_client_send(&one, HEAD("/echo", "later", "4"));
        raw_client_send(&one, slice_of_string(bodies[i]));
        decide(&gate, &refusal);
        assert_true(has(&one, "HTTP/1.1 401 "));
        assert_true(has(&one, "www-authenticate"));
        server_fixture_advance(&gate.fixture, 100); /* one answer only */
        assert_null(strstr(text_string(&one.received) + 1, "HTTP/1.1"));
        assert_int_equal(gate.fixture.requests, 0);
        assert_int_equal(gate.released, 0);
        close_gate(&gate, &one);
    }
}

static void cancelled(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct gate gate;
        struct raw_client one;
        open_gate(&gate, &one);
        raw_client_send(&one, HEAD("/echo", "later", "4"));
        if (i > 0)
            raw_client_send(&one, SLICE("abcd"));
        if (i < 2)
            raw_client_reset(&one);
        else
            server_stop(gate.fixture.server, &gate.fixture.worker);
        assert_null(gate.waiting);
        assert_int_equal(gate.cancelled, 1);
        if (i < 2) {
            close_gate(&gate, &one);
            continue;
        }
        raw_client_deinit(&one);
        server_free(gate.fixture.server);
        worker_deinit(&gate.fixture.worker);
        metrics_free(gate.fixture.metrics);
        source_accounts_deinit(&gate.fixture.accounts);
    }
}

static void slow_bodies_end_while_it_waits(void **state)
{
    (void)state;
    struct gate gate;
    struct raw_client one;
    open_gate(&gate, &one);
    raw_client_send(&one, HEAD("/echo", "later", "4"));
    server_fixture_advance(&gate.fixture, 100);
    assert_true(has(&one, "HTTP/1.1 408 "));
    assert_int_equal(gate.cancelled, 1);
    close_gate(&gate, &one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused_before_the_body),
        cmocka_unit_test(unknown_paths_are_refused_too),
        cmocka_unit_test(accepted_before_the_body_is_complete),
        cmocka_unit_test(a_complete_body_waits),
        cmocka_unit_test(refused_after_a_while),
        cmocka_unit_test(cancelled),
        cmocka_unit_test(slow_bodies_end_while_it_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
