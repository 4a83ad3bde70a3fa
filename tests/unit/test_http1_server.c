#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "server_fixture.h"

#include <ctype.h>
#include <stdio.h>

/* tests/data/http1/requests.txt */

struct raw_case {
    char name[128];
    char expected[64];
    struct text bytes;
};

/* Adds the byte of an escape sequence. Returns the position after it. */
static const char *add_escape(struct text *bytes, const char *at)
{
    static const char letters[] = "rnt0\\", meanings[] = "\r\n\t\0\\";
    if (*at == 'x') {
        const char hex[3] = {at[1], at[2], 0};
        const uint8_t byte = (uint8_t)strtoul(hex, NULL, 16);
        text_append_slice(bytes, slice_of(&byte, 1));
        return at + 3;
    }
    const char *letter = strchr(letters, *at);
    assert_true(letter && *letter);
    text_append_char(bytes, meanings[letter - letters]);
    return at + 1;
}

static const char *add_repeated(struct text *bytes, const char *at)
{
    char *end;
    char last = bytes->data[bytes->size - 1];
    for (unsigned long n = strtoul(at, &end, 10); n > 1; n--)
        text_append_char(bytes, last);
    assert_int_equal(*end, '}');
    return end + 1;
}

static void add_piece(struct text *bytes, const char *line)
{
    while (*line && *line != '\n') {
        if (line[0] == '{' && bytes->size > 0 && isdigit((unsigned char)line[1]))
            line = add_repeated(bytes, line + 1);
        else if (line[0] == '\\')
            line = add_escape(bytes, line + 1);
        else
            text_append_char(bytes, *line++);
    }
}

static FILE *open_table(void)
{
    char path[1024];
    const char *source = getenv("PROFCOL_SOURCE");
    snprintf(path, sizeof path, "%s/tests/data/http1/requests.txt", source ? source : ".");
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    return file;
}

static bool next_case(FILE *file, struct raw_case *out)
{
    char line[16384];
    text_clear(&out->bytes);
    bool found = false;
    while (fgets(line, sizeof line, file)) {
        if (!found) {
            found = sscanf(line, "case %127[^:]: %63[^\n]", out->name, out->expected) == 2;
            continue;
        }
        if (line[0] == '\n')
            break;
        add_piece(&out->bytes, line);
    }
    return found;
}

/* "200 404 open" */
static void describe(const struct raw_client *client, bool expects_more, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    const char *at = text_string(&client->received);
    while ((at = strstr(at, "HTTP/1.1 ")) != NULL) {
        used += (size_t)snprintf(out + used, size - used, "%.3s ", at + 9);
        at += 12;
    }
    snprintf(out + used, size - used, "%s",
             raw_client_is_closed(client) ? "closed"
             : expects_more               ? "waiting"
                                          : "open");
}

static void check_case(const struct raw_case *raw, size_t piece, size_t first)
{
    struct server_fixture fixture;
    struct raw_client client;
    server_fixture_init(&fixture);
    server_fixture_start(&fixture);
    raw_client_open(&client, &fixture);
    struct slice rest = slice_of(raw->bytes.data, raw->bytes.size);
    while (rest.size > 0) {
        size_t size = first ? first : piece;
        first = 0;
        if (size > rest.size)
            size = rest.size;
        raw_client_send(&client, slice_of(rest.data, size));
        rest = slice_of(rest.data + size, rest.size - size);
    }
    bool expects_more = strstr(raw->expected, "waiting") != NULL;
    char got[128];
    describe(&client, expects_more, got, sizeof got);
    if (strcmp(got, raw->expected) != 0)
        fail_msg("%s (pieces of %zu): expected %s, got %s", raw->name, piece, raw->expected, got);
    if (expects_more) {
        /* The server is in the middle of a request, which then times out. */
        server_fixture_advance(&fixture, 70);
        describe(&client, true, got, sizeof got);
        if (!strstr(got, "408 closed"))
            fail_msg("%s: did not wait, %s", raw->name, got);
    }
    raw_client_deinit(&client);
    server_fixture_end(&fixture);
}

static void test_table_whole(void **state)
{
    (void)state;
    FILE *file = open_table();
    struct raw_case raw = {0};
    size_t count = 0;
    for (; next_case(file, &raw); count++)
        check_case(&raw, SIZE_MAX, 0);
    assert_true(count > 60);
    text_deinit(&raw.bytes);
    fclose(file);
}

static void test_table_byte_by_byte(void **state)
{
    (void)state;
    FILE *file = open_table();
    struct raw_case raw = {0};
    while (next_case(file, &raw))
        check_case(&raw, raw.bytes.size > 100000 ? 1000 : 1, 0);
    text_deinit(&raw.bytes);
    fclose(file);
}

static void test_table_split_once(void **state)
{
    (void)state;
    FILE *file = open_table();
    struct raw_case raw = {0};
    while (next_case(file, &raw))
        for (size_t first = 1; first < raw.bytes.size && raw.bytes.size < 400; first++)
            check_case(&raw, SIZE_MAX, first);
    text_deinit(&raw.bytes);
    fclose(file);
}

/* ---- timeouts ---- */

static void assert_received(const struct raw_client *client, const char *text)
{
    if (!strstr(text_string(&client->received), text))
        fail_msg("expected %s in %s", text, text_string(&client->received));
}

static size_t count_of(const struct raw_client *client, const char *text)
{
    size_t count = 0;
    for (const char *at = text_string(&client->received); (at = strstr(at, text)) != NULL; at++)
        count++;
    return count;
}

#define LATER SLICE("POST /later HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi")
#define SHORT SLICE("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nyo")

struct scene {
    struct server_fixture fixture;
    struct raw_client client;
};

static struct scene *scene_new(void)
{
    struct scene *scene = calloc(1, sizeof *scene);
    server_fixture_init(&scene->fixture);
    server_fixture_start(&scene->fixture);
    raw_client_open(&scene->client, &scene->fixture);
    return scene;
}

static void scene_free(struct scene *scene)
{
    raw_client_deinit(&scene->client);
    server_fixture_end(&scene->fixture);
    free(scene);
}

static void test_answer_later(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    raw_client_send(&scene->client, LATER);
    assert_int_equal(scene->client.received.size, 0);
    raw_client_send(&scene->client, SHORT);
    assert_int_equal(scene->fixture.requests, 1); /* one at a time */
    server_fixture_answer(&scene->fixture);
    assert_int_equal(scene->fixture.requests, 2);
    assert_received(&scene->client, "\r\n\r\nhiHTTP/1.1 200 OK");
    assert_received(&scene->client, "\r\n\r\nyo");
    scene_free(scene);
}

static void test_client_leaves_before_the_answer(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    raw_client_send(&scene->client, LATER);
    raw_client_reset(&scene->client);
    assert_int_equal(scene->fixture.gone, 1);
    server_fixture_answer(&scene->fixture);
    assert_true(server_fixture_closed(&scene->fixture, "reset") == 1);
    scene_free(scene);
}

static void test_server_stops_before_the_answer(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    raw_client_send(&scene->client, LATER);
    server_fixture_end(&scene->fixture); /* answers the waiting requests, after server_free */
    assert_int_equal(scene->fixture.gone, 1);
    text_deinit(&scene->client.received);
    free(scene);
}

static void test_half_closed_client_gets_its_answer(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    raw_client_send(&scene->client, LATER);
    raw_client_half_close(&scene->client);
    assert_int_equal(scene->fixture.gone, 0);
    server_fixture_answer(&scene->fixture);
    assert_received(&scene->client, "HTTP/1.1 200 OK\r\n");
    assert_null(strstr(text_string(&scene->client.received), "100 Continue"));
    assert_received(&scene->client, "Connection: close\r\n");
    assert_true(raw_client_is_closed(&scene->client));
    scene_free(scene);
}

/* If the client is gone, the first bytes of the answer provoke a reset. */
static void test_half_closed_client_is_probed(void **state)
{
    (void)state;
    static const struct {
        const char *version;
        bool is_away;
    } cases[] = {{"1.1", false}, {"1.1", true}, {"1.0", false}, {"1.0", true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *scene = scene_new();
        char text[64];
        int size =
            snprintf(text, sizeof text, "GET /later HTTP/%s\r\nHost: a\r\n\r\n", cases[i].version);
        raw_client_send(&scene->client, slice_of(text, (size_t)size));
        scene->client.is_away = cases[i].is_away;
        raw_client_half_close(&scene->client);
        assert_int_equal(scene->fixture.gone, cases[i].is_away);
        assert_int_equal(raw_client_is_closed(&scene->client), cases[i].is_away);
        assert_int_equal(exchange_is_abandoned(scene->fixture.waiting[0]), cases[i].is_away);
        if (!cases[i].is_away)
            assert_string_equal(text_string(&scene->client.received), "HTTP/1.1 ");
        server_fixture_answer(&scene->fixture);
        const char *answer = text_string(&scene->client.received);
        assert_int_equal(strncmp(answer, "HTTP/1.1 200 OK\r\n", 17) == 0, !cases[i].is_away);
        assert_true(raw_client_is_closed(&scene->client));
        scene_free(scene);
    }
}

static void test_half_closed_client_gets_all_of_its_answer(void **state)
{
    (void)state;
    static const char *const requests[] = {
        "GET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /none HTTP/1.1\r\nHost: a\r\n\r\nPOST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: "
        "2\r\n\r\nyo",
    };
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
        struct scene *scene = scene_new();
        scene->client.accepts = 10;
        raw_client_send(&scene->client, slice_of_string(requests[i]));
        raw_client_half_close(&scene->client);
        assert_false(raw_client_is_closed(&scene->client));
        scene->client.accepts = SIZE_MAX;
        server_connection_flush(scene->client.connection);
        server_fixture_advance(&scene->fixture, 0);
        assert_received(&scene->client, "200 OK");
        assert_received(&scene->client, i == 2 ? "\r\n\r\nyo" : "\r\n\r\n");
        assert_true(raw_client_is_closed(&scene->client));
        scene_free(scene);
    }
}

static void test_client_leaves_in_the_body(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    raw_client_send(&scene->client,
                    SLICE("POST /later HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhi"));
    raw_client_half_close(&scene->client);
    assert_true(raw_client_is_closed(&scene->client));
    assert_int_equal(scene->fixture.requests, 0);
    scene_free(scene);
}

static void test_pipelining_is_bounded(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    raw_client_send(&scene->client, LATER);
    for (int i = 0; i < 2000; i++)
        raw_client_send(&scene->client, SHORT);
    assert_false(scene->client.connection->reading);
    server_fixture_answer(&scene->fixture);
    assert_true(scene->client.connection->reading);
    size_t kept = count_of(&scene->client, "HTTP/1.1 200 OK") - 1;
    assert_in_range(kept * SHORT.size, (size_t)SERVER_PIPELINE_MAX_BYTES,
                    SERVER_PIPELINE_MAX_BYTES + 100);
    scene_free(scene);
}

static void test_slow_reader(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    scene->client.accepts = 10;
    raw_client_send(&scene->client, SHORT);
    raw_client_send(&scene->client, SHORT);
    assert_int_equal(scene->client.received.size, 10);
    assert_int_equal(scene->fixture.requests,
                     1); /* the second waits until the first one's answer is sent */
    server_fixture_advance(&scene->fixture, 29);
    assert_false(raw_client_is_closed(&scene->client));
    server_fixture_advance(&scene->fixture, 2);
    assert_true(raw_client_is_closed(&scene->client));
    assert_true(server_fixture_closed(&scene->fixture, "write_timeout") == 1);
    scene_free(scene);
}

/* {what was sent, seconds it may take, the reason} */
static void test_time_limits(void **state)
{
    (void)state;
    static const struct {
        const char *sent;
        unsigned stays_s;
        unsigned gone_s;
        const char *reason;
    } cases[] = {
        {"", 9, 11, "head_timeout"},
        {"G", 9, 11, "head_timeout"},
        {"PRI", 9, 11, "head_timeout"},
        {"GET /echo HTTP/1.1\r\nHost: a\r\n", 9, 11, "head_timeout"},
        {"GET /echo HTTP/1.1\r\nHost: a\r\n\r\n", 59, 61, "idle"},
        {"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhi", 4, 6, "body_timeout"},
        {"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhi", 4, 6,
         "body_timeout"},
        {"POST /refuse HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhi", 4, 6, "body_timeout"},
        {"POST /refuse HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhi", 4, 6,
         "body_timeout"},
        {"POST /refuse HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi", 59, 61, "idle"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *scene = scene_new();
        if (cases[i].sent[0])
            raw_client_send(&scene->client, slice_of_string(cases[i].sent));
        server_fixture_advance(&scene->fixture, cases[i].stays_s);
        assert_false(raw_client_is_closed(&scene->client));
        server_fixture_advance(&scene->fixture, cases[i].gone_s - cases[i].stays_s);
        if (!raw_client_is_closed(&scene->client) ||
            server_fixture_closed(&scene->fixture, cases[i].reason) != 1)
            fail_msg("case %zu: not closed for %s", i, cases[i].reason);
        scene_free(scene);
    }
}

#define REFUSED_CHUNKED                                                                            \
    SLICE("POST /refuse HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")

/* The bound counts what arrives, so it holds for a body of any length. */
static void test_long_body_after_a_refusal(void **state)
{
    (void)state;
    enum { CHUNK = 16 * 1024, HEAD = 6, SKIPPED = 256 * 1024 };
    static char chunk[HEAD + CHUNK + 2] = "4000\r\n";
    chunk[sizeof chunk - 2] = '\r';
    chunk[sizeof chunk - 1] = '\n';
    struct scene *scene = scene_new();
    raw_client_send(&scene->client, REFUSED_CHUNKED);
    size_t sent = 0;
    for (; sent < (size_t)2 * SKIPPED && !raw_client_is_closed(&scene->client);
         sent += sizeof chunk)
        raw_client_send(&scene->client, slice_of(chunk, sizeof chunk));
    assert_in_range(sent, SKIPPED, SKIPPED + sizeof chunk);
    assert_int_equal(count_of(&scene->client, "HTTP/1.1 "), 1);
    assert_true(server_fixture_closed(&scene->fixture, "refused") == 1);
    scene_free(scene);
}

/* Bytes that arrive one after the other do not extend the time. */
static void test_slow_body_after_a_refusal(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    raw_client_send(&scene->client, REFUSED_CHUNKED);
    unsigned seconds = 0;
    for (; seconds < 60 && !raw_client_is_closed(&scene->client); seconds++) {
        raw_client_send(&scene->client, SLICE("1\r\na\r\n"));
        server_fixture_advance(&scene->fixture, 1);
    }
    assert_in_range(seconds, 5, 6);
    assert_true(server_fixture_closed(&scene->fixture, "body_timeout") == 1);
    scene_free(scene);
}

/* Refusals are not collected for a client that does not read them. */
static void test_refusals_wait_for_a_slow_reader(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    scene->client.accepts = 10;
    for (int i = 0; i < 2000 && scene->client.connection->reading; i++)
        raw_client_send(&scene->client, SLICE("POST /refuse HTTP/1.1\r\nHost: a\r\n"
                                              "Content-Length: 5\r\n\r\nhello"));
    assert_false(scene->client.connection->reading);
    assert_in_range(scene->client.connection->out.size, 1, 400);
    scene_free(scene);
}

static void test_configured_limits(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct scene *scene = calloc(1, sizeof *scene);
        struct server_options *options = &scene->fixture.options;
        server_fixture_init(&scene->fixture);
        options->read_header_timeout_ns = options->read_timeout_ns = options->write_timeout_ns =
            options->idle_timeout_ns = 2 * (int64_t)SECOND_NS;
        server_fixture_start(&scene->fixture);
        raw_client_open(&scene->client, &scene->fixture);
        scene->client.accepts = i == 3 ? 5 : SIZE_MAX;
        static const char *const sent[] = {
            "GET /echo", "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n",
            "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx",
            "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n"};
        static const char *const reasons[] = {"head_timeout", "idle", "body_timeout",
                                              "write_timeout"};
        raw_client_send(&scene->client, slice_of_string(sent[i]));
        server_fixture_advance(&scene->fixture, 1);
        assert_false(raw_client_is_closed(&scene->client));
        server_fixture_advance(&scene->fixture, 2);
        if (server_fixture_closed(&scene->fixture, reasons[i]) != 1)
            fail_msg("not closed for %s", reasons[i]);
        scene_free(scene);
    }
}

static void test_no_keep_alive(void **state)
{
    (void)state;
    struct scene *scene = calloc(1, sizeof *scene);
    server_fixture_init(&scene->fixture);
    scene->fixture.options.no_keep_alive = true;
    server_fixture_start(&scene->fixture);
    raw_client_open(&scene->client, &scene->fixture);
    raw_client_send(&scene->client, SHORT);
    assert_received(&scene->client, "Connection: close\r\n");
    assert_true(raw_client_is_closed(&scene->client));
    scene_free(scene);
}

static void test_waiting_for_the_handler_has_no_limit(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    raw_client_send(&scene->client, LATER);
    server_fixture_advance(&scene->fixture, 600);
    server_fixture_answer(&scene->fixture);
    assert_received(&scene->client, "200 OK");
    scene_free(scene);
}

static void test_steady_body_is_let_through(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    char piece[1100];
    memset(piece, 'x', sizeof piece);
    raw_client_send(&scene->client,
                    SLICE("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 110000\r\n\r\n"));
    for (int i = 0; i < 100; i++) {
        server_fixture_advance(&scene->fixture, 1);
        raw_client_send(&scene->client, slice_of(piece, sizeof piece));
    }
    assert_received(&scene->client, "200 OK");
    scene_free(scene);
}

static void on_drained(void *context)
{
    *(bool *)context = true;
}

static void test_drain(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    struct raw_client idle, halfway;
    raw_client_open(&idle, &scene->fixture);
    raw_client_open(&halfway, &scene->fixture);
    raw_client_send(&idle, SHORT);
    raw_client_send(&halfway, SLICE("POST /echo HTTP/1.1\r\nHost: a\r\n"));
    raw_client_send(&scene->client, LATER);
    server_drain(scene->fixture.server, &scene->fixture.worker, on_drained,
                 &scene->fixture.drained);
    server_fixture_advance(&scene->fixture, 0);
    assert_true(raw_client_is_closed(&idle));
    assert_false(scene->fixture.drained);
    raw_client_send(&halfway, SLICE("Content-Length: 1\r\n\r\nx"));
    assert_received(&halfway, "Connection: close\r\n");
    assert_true(raw_client_is_closed(&halfway));
    server_fixture_answer(&scene->fixture);
    assert_received(&scene->client, "Connection: close\r\n");
    assert_true(scene->fixture.drained);
    raw_client_deinit(&idle);
    raw_client_deinit(&halfway);
    scene_free(scene);
}

static void test_drain_of_nothing(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    raw_client_reset(&scene->client);
    server_drain(scene->fixture.server, &scene->fixture.worker, on_drained,
                 &scene->fixture.drained);
    assert_true(scene->fixture.drained);
    scene_free(scene);
}

static void test_over_budget(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    scene->fixture.budget.limit_bytes = 100 << 10;
    raw_client_send(&scene->client,
                    SLICE("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\nx"));
    assert_received(&scene->client, "503 Service Unavailable");
    assert_received(&scene->client, "retry-after: 1\r\n");
    scene->fixture.budget.limit_bytes = 100;
    struct raw_client other;
    raw_client_open(&other, &scene->fixture);
    raw_client_send(&other, SHORT);
    assert_received(&other, "503 Service Unavailable");
    raw_client_deinit(&other);
    scene_free(scene);
}

/* Incomplete heads are charged. A connection whose head does not fit the budget is closed. */
static void test_waiting_heads_are_charged(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    static const char filler[10000] = {[0 ... 9999] = 'a'};
    size_t before = budget_used(&scene->fixture.budget);
    raw_client_send(&scene->client, SLICE("POST /echo HTTP/1.1\r\nHost: a\r\nX-A: "));
    assert_in_range(budget_used(&scene->fixture.budget) - before, 30, 1000);
    raw_client_send(&scene->client, slice_of(filler, sizeof filler));
    assert_in_range(budget_used(&scene->fixture.budget) - before, 10000, 40000);
    raw_client_send(&scene->client, SLICE("\r\nContent-Length: 2\r\n\r\nyo"));
    assert_received(&scene->client, "200 OK");
    assert_int_equal(budget_used(&scene->fixture.budget), before);
    scene->fixture.budget.limit_bytes = 10000;
    raw_client_send(&scene->client, SLICE("POST /echo HTTP/1.1\r\nHost: a\r\nX-A: "));
    assert_received(&scene->client, "200 OK");
    raw_client_send(&scene->client, slice_of(filler, sizeof filler));
    assert_received(&scene->client, "503 Service Unavailable");
    assert_received(&scene->client, "Retry-After: 1\r\n");
    assert_true(raw_client_is_closed(&scene->client));
    assert_int_equal(budget_used(&scene->fixture.budget), before);
    scene_free(scene);
}

/* The request before them is still answered. The closed connection then tells the client that
 * the others were not. */
static void test_requests_behind_one_are_charged(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    raw_client_send(&scene->client, LATER);
    size_t before = budget_used(&scene->fixture.budget);
    for (int i = 0; i < 100; i++)
        raw_client_send(&scene->client, SHORT);
    assert_in_range(budget_used(&scene->fixture.budget) - before, 100 * SHORT.size,
                    400 * SHORT.size);
    scene->fixture.budget.limit_bytes = budget_used(&scene->fixture.budget);
    for (int i = 0; i < 200; i++)
        raw_client_send(&scene->client, SHORT);
    assert_int_equal(budget_used(&scene->fixture.budget), before);
    assert_false(raw_client_is_closed(&scene->client));
    server_fixture_answer(&scene->fixture);
    assert_received(&scene->client, "Connection: close\r\n");
    assert_int_equal(count_of(&scene->client, "HTTP/1.1 "), 1);
    assert_true(raw_client_is_closed(&scene->client));
    assert_int_equal(scene->fixture.requests, 1);
    scene_free(scene);
}

static void test_promised_length_is_not_reserved(void **state)
{
    (void)state;
    static const struct slice large =
        SLICE("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1048576\r\n\r\nx");
    struct scene *scene = scene_new();
    struct budget *budget = &scene->fixture.budget;
    size_t taken = budget->limit_bytes / 4;
    budget_charge(budget, taken); /* by others */
    raw_client_send(&scene->client, large);
    assert_in_range(budget_used(budget) - taken, 1, 300 << 10);
    budget_release(budget, taken);
    scene_free(scene);
}

static void test_promised_length_is_reserved_while_memory_is_free(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    struct budget *budget = &scene->fixture.budget;
    raw_client_send(&scene->client,
                    SLICE("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nx"));
    assert_in_range(budget_used(budget), 1000000, 1050000);
    scene_free(scene);
}

static void test_grpc_only_listener(void **state)
{
    (void)state;
    struct scene *scene = calloc(1, sizeof *scene);
    server_fixture_init(&scene->fixture);
    scene->fixture.options.accept_http = false;
    server_fixture_start(&scene->fixture);
    raw_client_open(&scene->client, &scene->fixture);
    raw_client_send(&scene->client, SHORT);
    assert_received(&scene->client, "415 Unsupported Media Type");
    assert_received(&scene->client, "needs HTTP/2");
    scene_free(scene);
}

static void test_response_headers(void **state)
{
    (void)state;
    struct scene *scene = calloc(1, sizeof *scene);
    struct config_pair pair = {"X-Served-By", "us"};
    server_fixture_init(&scene->fixture);
    scene->fixture.options.response_headers = (struct config_pairs){&pair, 1};
    server_fixture_start(&scene->fixture);
    raw_client_open(&scene->client, &scene->fixture);
    raw_client_send(&scene->client, SHORT);
    assert_received(&scene->client, "X-Served-By: us\r\n");
    scene_free(scene);
}

/* The requests of these clients, 200 kB each, are all complete in one turn of the loop. */
enum { CROWD = 12, CROWD_BYTES = 200000, TURN_REQUESTS = 6 /* 1 MiB, rounded up */ };

struct crowd {
    struct server_fixture fixture;
    struct raw_client clients[CROWD];
};

static struct crowd *crowd_new(void)
{
    struct crowd *crowd = calloc(1, sizeof *crowd);
    struct text request = {0};
    text_printf(&request, "POST /later HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n",
                CROWD_BYTES);
    for (int i = 0; i < CROWD_BYTES; i++)
        text_append_char(&request, 'a');
    server_fixture_init(&crowd->fixture);
    server_fixture_start(&crowd->fixture);
    for (int i = 0; i < CROWD; i++) {
        raw_client_open(&crowd->clients[i], &crowd->fixture);
        raw_client_send(&crowd->clients[i], slice_of(request.data, request.size));
    }
    text_deinit(&request);
    return crowd;
}

static void crowd_free(struct crowd *crowd)
{
    while (crowd->fixture.waiting_count > 0)
        server_fixture_answer(&crowd->fixture);
    for (int i = 0; i < CROWD; i++)
        raw_client_deinit(&crowd->clients[i]);
    server_fixture_end(&crowd->fixture);
    free(crowd);
}

static void test_large_requests_wait_for_their_turn(void **state)
{
    (void)state;
    struct crowd *crowd = crowd_new();
    assert_int_equal(crowd->fixture.requests, TURN_REQUESTS);
    struct raw_client small;
    raw_client_open(&small, &crowd->fixture);
    raw_client_send(&small, SHORT);
    assert_received(&small, "\r\n\r\nyo"); /* before them */
    server_fixture_advance(&crowd->fixture, 0);
    assert_int_equal(crowd->fixture.requests, CROWD + 1);
    raw_client_deinit(&small);
    crowd_free(crowd);
}

static void test_clients_leave_before_their_turn(void **state)
{
    (void)state;
    struct crowd *crowd = crowd_new();
    raw_client_reset(&crowd->clients[TURN_REQUESTS]);
    raw_client_reset(&crowd->clients[CROWD - 1]);
    server_fixture_advance(&crowd->fixture, 0);
    assert_int_equal(crowd->fixture.requests, CROWD - 2);
    assert_int_equal(crowd->fixture.gone, 0);
    crowd_free(crowd);
}

static void test_server_stops_before_their_turn(void **state)
{
    (void)state;
    struct crowd *crowd = crowd_new();
    assert_int_equal(crowd->fixture.server->parts->ready.count, CROWD - TURN_REQUESTS);
    crowd_free(crowd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table_whole),
        cmocka_unit_test(test_table_byte_by_byte),
        cmocka_unit_test(test_table_split_once),
        cmocka_unit_test(test_answer_later),
        cmocka_unit_test(test_client_leaves_before_the_answer),
        cmocka_unit_test(test_server_stops_before_the_answer),
        cmocka_unit_test(test_half_closed_client_gets_its_answer),
        cmocka_unit_test(test_half_closed_client_is_probed),
        cmocka_unit_test(test_half_closed_client_gets_all_of_its_answer),
        cmocka_unit_test(test_client_leaves_in_the_body),
        cmocka_unit_test(test_pipelining_is_bounded),
        cmocka_unit_test(test_slow_reader),
        cmocka_unit_test(test_time_limits),
        cmocka_unit_test(test_long_body_after_a_refusal),
        cmocka_unit_test(test_slow_body_after_a_refusal),
        cmocka_unit_test(test_refusals_wait_for_a_slow_reader),
        cmocka_unit_test(test_configured_limits),
        cmocka_unit_test(test_no_keep_alive),
        cmocka_unit_test(test_waiting_for_the_handler_has_no_limit),
        cmocka_unit_test(test_steady_body_is_let_through),
        cmocka_unit_test(test_drain),
        cmocka_unit_test(test_drain_of_nothing),
        cmocka_unit_test(test_over_budget),
        cmocka_unit_test(test_waiting_heads_are_charged),
        cmocka_unit_test(test_requests_behind_one_are_charged),
        cmocka_unit_test(test_promised_length_is_not_reserved),
        cmocka_unit_test(test_promised_length_is_reserved_while_memory_is_free),
        cmocka_unit_test(test_grpc_only_listener),
        cmocka_unit_test(test_response_headers),
        cmocka_unit_test(test_large_requests_wait_for_their_turn),
        cmocka_unit_test(test_clients_leave_before_their_turn),
        cmocka_unit_test(test_server_stops_before_their_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
