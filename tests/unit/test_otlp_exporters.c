#include "config/config.h"
#include "core/base/budget.h"
#include "core/base/clock.h"
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/data/otlp.h"
#include "core/data/wire_writer.h"
#include "core/net/compression.h"
#include "core/pipeline/component.h"
#include "loopback_peer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

/* One exporter with one node on a real loop, and a peer as its backend. */

#define SECOND UINT64_C(1000000000)

extern const struct component_type otlp_grpc_exporter_type;
extern const struct component_type otlp_http_exporter_type;

static const struct field no_fields[] = {FIELD_END};
static const struct config_type source_type = {
    .name = "source",
    .section = CONFIG_RECEIVERS,
    .fields = no_fields,
    .config_size = 1,
    .stability = {STABILITY_STABLE, STABILITY_STABLE, STABILITY_STABLE, STABILITY_STABLE}};

static struct worker worker;
static struct metrics *metrics;
static struct process process;
static struct config *config;
static struct component *component;
static struct node *node;
static struct budget budget;

static int set_up(void **state)
{
    struct error err;
    (void)state;
    hash_init_with(1);
    assert_true(worker_init(&worker, 0, &err));
    metrics = metrics_new(1);
    process = (struct process){.workers = &worker,
                               .worker_count = 1,
                               .metrics = metrics,
                               .budget = &budget,
                               .version = "1.2.3"};
    return 0;
}

/* Loads a configuration. body: flow YAML of the exporter; ~ is replaced by the port. */
static struct config *load(const char *name, const char *body, uint16_t port, enum signal signal,
                           struct text *report)
{
    const struct config_type *types[] = {&source_type, &otlp_grpc_exporter_type.config,
                                         &otlp_http_exporter_type.config, NULL};
    struct text yaml = {0};
    text_printf(&yaml, "receivers: {source: }\nexporters: {%s: {", name);
    for (const char *c = body; *c; c++) {
        if (*c == '~')
            text_printf(&yaml, "%u", port);
        else
            text_append_char(&yaml, *c);
    }
    text_printf(&yaml, "}}\nservice: {pipelines: {%s: {receivers: [source], exporters: [%s]}}}\n",
                signal_name(signal), name);
    struct config *loaded =
        config_load_text(types, "t.yaml", slice_of_string(text_string(&yaml)), report);
    text_deinit(&yaml);
    return loaded;
}

static void open_exporter(const char *name, const char *body, uint16_t port, enum signal signal)
{
    struct text report = {0};
    struct error err;
    config = load(name, body, port, signal, &report);
    if (!config)
        fail_msg("%s", text_string(&report));
    text_deinit(&report);
    const struct config_component *exporter = &config->components[CONFIG_EXPORTERS][0];
    const struct component_type *type = component_type_of(exporter->type);
    component = memory_zalloc(type->component_size);
    component->type = type;
    component->id = exporter->id;
    snprintf(component->label, sizeof component->label, "exporter %s", exporter->id);
    component->settings = exporter->settings;
    component->process = &process;
    component->pipeline_count[signal] = 1;
    if (!type->init(component, &err))
        fail_msg("%s", err.text);
    node = memory_zalloc(type->node_size);
    node->component = component;
    node->worker = &worker;
    node->signal = signal;
    assert_true(type->node_start(node, &err));
}

static void close_exporter(void)
{
    if (!component)
        return;
    node->draining = true;
    component->type->node_drain(node);
    component->type->node_stop(node);
    component->type->deinit(component);
    free(node);
    free(component);
    component = NULL;
    config_free(config);
}

static int tear_down(void **state)
{
    (void)state;
    close_exporter();
    worker_deinit(&worker);
    metrics_free(metrics);
    assert_int_equal(budget_used(&budget), 0);
    return 0;
}

static void run_for(uint64_t ns)
{
    uint64_t end = clock_monotonic_ns() + ns;
    while (clock_monotonic_ns() < end) {
        uv_run(&worker.loop, UV_RUN_NOWAIT);
        usleep(500);
    }
}

static struct slice large; /* if not empty, sent instead of small ones */

/* Traces: one span with a name of 100 bytes. Profiles: one empty sample. */
static struct slice request_of(enum signal signal)
{
    static uint8_t traces[] = {
        0x0a, 106, 0x12, 104, 0x12, 102, 0x2a, 100, 'x',
    };
    static uint8_t bytes[108];
    static const uint8_t profiles[] = {0x0a, 6, 0x12, 4, 0x12, 2, 0x12, 0, 0x12, 0};
    if (large.size > 0)
        return large;
    if (signal == SIGNAL_PROFILES)
        return slice_of(profiles, sizeof profiles);
    memset(bytes, 'x', sizeof bytes);
    memcpy(bytes, traces, sizeof traces);
    return slice_of(bytes, sizeof bytes);
}

struct probe {
    struct receipt receipt;
    bool settled;
    struct verdict verdict;
};

static void on_settled(struct receipt *receipt, const struct verdict *verdict)
{
    struct probe *probe = (struct probe *)receipt;
    assert_false(probe->settled);
    probe->settled = true;
    probe->verdict = *verdict;
}

static void consume(uint32_t items, struct probe *probe)
{
    struct slice request = request_of(node->signal);
    struct buffer *buffer = buffer_new(request.size, &budget);
    buffer_append(buffer, request.data, request.size, request.size);
    *probe = (struct probe){0};
    receipt_init(&probe->receipt, on_settled);
    component->type->consume(
        node, batch_new(&worker, node->signal, buffer, items, &probe->receipt, NULL));
}

/* Sends one batch without a queue, and returns its verdict. */
static struct verdict deliver(void)
{
    struct probe probe;
    consume(1, &probe);
    assert_false(probe.settled);
    uint64_t end = clock_monotonic_ns() + 20 * SECOND;
    while (!probe.settled) {
        uv_run(&worker.loop, UV_RUN_ONCE);
        assert_true(clock_monotonic_ns() < end);
    }
    return probe.verdict;
}

#define DIRECT "sending_queue: {enabled: false}, retry_on_failure: {enabled: false}"
#define GRPC_TO "endpoint: 'http://127.0.0.1:~', "
#define HTTP_TO "endpoint: 'http://127.0.0.1:~', "

/* ---- backends ---- */

static struct peer_answer scripted[4]; /* by number of the request; the last one repeats */
static size_t scripted_count;

static void answer_scripted(void *context, unsigned number, const struct peer_request *request,
                            struct peer_answer *answer)
{
    (void)context, (void)request;
    *answer = scripted[number < scripted_count ? number : scripted_count - 1];
}

static struct peer *open_peer(enum peer_protocol protocol, const struct peer_answer *answers,
                              size_t count)
{
    memcpy(scripted, answers, count * sizeof *answers);
    scripted_count = count;
    return peer_new(&(struct peer_options){.protocol = protocol, .answer = answer_scripted});
}

#define EMPTY_MESSAGE                                                                              \
    {                                                                                              \
        (const uint8_t *)"\0\0\0\0\0", 5                                                           \
    }
#define GRPC_TYPE                                                                                  \
    {                                                                                              \
        "content-type", "application/grpc"                                                         \
    }

static const struct peer_answer grpc_ok = {.status = 200,
                                           .headers = {GRPC_TYPE},
                                           .trailers = {{"grpc-status", "0"}},
                                           .body = EMPTY_MESSAGE};
static const struct peer_answer http_ok = {.status = 200,
                                           .headers = {{"content-type", "application/x-protobuf"}}};

/* ---- requests ---- */

static void expect_header(const struct peer_request *request, const char *name, const char *value)
{
    const char *got = peer_header(request, name);
    if (strcmp(got, value) != 0)
        fail_msg("%s: \"%s\", not \"%s\"", name, got, value);
}

static void check_body(const struct peer_request *request, enum compression compression, bool grpc,
                       enum signal signal)
{
    struct slice body = slice_of(request->body.data, request->body.size);
    if (grpc) {
        assert_true(body.size >= 5);
        assert_int_equal(body.data[0], compression != COMPRESSION_NONE);
        assert_int_equal(body.data[3] << 8 | body.data[4], body.size - 5);
        body = slice_of(body.data + 5, body.size - 5);
    }
    struct buffer *plain;
    struct error err;
    assert_int_equal(decompress(compression, body, 1000000, NULL, &plain, &err), DECOMPRESS_OK);
    assert_true(slice_equal(buffer_slice(plain), request_of(signal)));
    buffer_unref(plain);
}

static const char *const grpc_paths[SIGNAL_COUNT] = {
    "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
    "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",
    "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
    "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
};
static const char *const http_paths[SIGNAL_COUNT] = {"/v1/traces", "/v1development/profiles",
                                                     "/v1/metrics", "/v1/logs"};

static void grpc_requests(void **state)
{
    (void)state;
    static const char *const names[] = {"none", "gzip", "snappy", "zstd"};
    for (size_t i = 0; i < 4; i++) {
        for (int signal = 0; signal < SIGNAL_COUNT; signal++) {
            struct peer *peer = open_peer(PEER_HTTP2, &grpc_ok, 1);
            char body[256];
            snprintf(body, sizeof body,
                     GRPC_TO DIRECT ", compression: %s, headers: {X-Scope-OrgID: a b}", names[i]);
            open_exporter("otlp_grpc", body, peer_port(peer), (enum signal)signal);
            assert_int_equal(deliver().code, GRPC_OK);
            const struct peer_request *request = peer_request(peer, 0);
            expect_header(request, ":method", "POST");
            expect_header(request, ":scheme", "http");
            expect_header(request, ":path", grpc_paths[signal]);
            expect_header(request, "content-type", "application/grpc");
            expect_header(request, "te", "trailers");
            expect_header(request, "user-agent", "profcol/1.2.3");
            expect_header(request, "grpc-timeout", "5000000u");
            expect_header(request, "grpc-encoding", i == 0 ? "" : names[i]);
            expect_header(request, "x-scope-orgid", "a b");
            expect_header(request, "content-length", "");
            expect_header(request, "otlp-profiles-development-version",
                          signal == SIGNAL_PROFILES ? "1" : "");
            int compression = compression_by_name(slice_of_string(names[i]));
            check_body(request, (enum compression)compression, true, (enum signal)signal);
            close_exporter();
            peer_free(peer);
        }
    }
}

static void http_requests(void **state)
{
    (void)state;
    for (int c = 0; c < COMPRESSION_COUNT; c++) {
        for (int signal = 0; signal < SIGNAL_COUNT; signal++) {
            struct peer *peer = open_peer(PEER_HTTP1, &http_ok, 1);
            char body[256];
            snprintf(body, sizeof body,
                     HTTP_TO DIRECT ", compression: %s, headers: {Host: example.org, "
                                    "otlp-profiles-development-version: '7'}",
                     compression_names[c]);
            open_exporter("otlp_http", body, peer_port(peer), (enum signal)signal);
            assert_int_equal(deliver().code, GRPC_OK);
            const struct peer_request *request = peer_request(peer, 0);
            expect_header(request, ":path", http_paths[signal]);
            expect_header(request, "host", "example.org");
            expect_header(request, "content-type", "application/x-protobuf");
            expect_header(request, "content-encoding", c == 0 ? "" : compression_names[c]);
            expect_header(request, "user-agent", "profcol/1.2.3");
            expect_header(request, "otlp-profiles-development-version",
                          signal == SIGNAL_PROFILES ? "1" : "7");
            check_body(request, (enum compression)c, false, (enum signal)signal);
            close_exporter();
            peer_free(peer);
        }
    }
}

static void http_json(void **state)
{
    (void)state;
    struct peer *peer = open_peer(PEER_HTTP1, &http_ok, 1);
    open_exporter("otlphttp",
                  HTTP_TO DIRECT
                  ", compression: '', encoding: json, timeout: 0, headers: [{name: a, value: b}]",
                  peer_port(peer), SIGNAL_TRACES);
    assert_int_equal(deliver().code, GRPC_OK);
    const struct peer_request *request = peer_request(peer, 0);
    expect_header(request, "content-type", "application/json");
    expect_header(request, "a", "b");
    assert_non_null(strstr(text_string(&request->body), "{\"resourceSpans\":[{"));
    peer_free(peer);
}

static void http_urls(void **state)
{
    (void)state;
    static const struct {
        const char *yaml;
        enum signal signal;
        const char *path;
    } table[] = {
        {"endpoint: 'http://127.0.0.1:~/'", SIGNAL_TRACES, "/v1/traces"},
        {"endpoint: 'http://127.0.0.1:~/otlp'", SIGNAL_PROFILES, "/otlp/v1development/profiles"},
        {"traces_endpoint: 'http://127.0.0.1:~/here?x=1'", SIGNAL_TRACES, "/here?x=1"},
        {"profiles_endpoint: 'HTTP://127.0.0.1:~'", SIGNAL_PROFILES, "/"},
        {"endpoint: 'http://127.0.0.1:1', profiles_endpoint: 'http://127.0.0.1:~/p/'",
         SIGNAL_PROFILES, "/p/"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct peer *peer = open_peer(PEER_HTTP1, &http_ok, 1);
        char body[256];
        snprintf(body, sizeof body, "%s, " DIRECT, table[i].yaml);
        open_exporter("otlp_http", body, peer_port(peer), table[i].signal);
        assert_int_equal(deliver().code, GRPC_OK);
        expect_header(peer_request(peer, 0), ":path", table[i].path);
        close_exporter();
        peer_free(peer);
    }
}

/* ---- answers ---- */

struct meaning {
    const char *name;
    struct peer_answer answer;
    enum grpc_code code;
    int64_t retry_after_ns;
    const char *text; /* contained */
};

/* Opens it with a timeout that only a silent peer reaches, however busy the machine is. */
static void open_for(const struct peer_answer *answer, const char *exporter, struct peer *peer)
{
    open_exporter(exporter,
                  answer->action == PEER_SILENT ? GRPC_TO DIRECT ", timeout: 300ms"
                                                : GRPC_TO DIRECT,
                  peer_port(peer), SIGNAL_TRACES);
}

static void check_meanings(const struct meaning *table, size_t count, enum peer_protocol protocol,
                           const char *exporter)
{
    for (size_t i = 0; i < count; i++) {
        struct peer *peer = open_peer(protocol, &table[i].answer, 1);
        open_for(&table[i].answer, exporter, peer);
        struct verdict verdict = deliver();
        if (verdict.code != table[i].code || verdict.retry_after_ns != table[i].retry_after_ns ||
            !strstr(verdict.text, table[i].text))
            fail_msg("%s: %d, %lld, \"%s\"", table[i].name, verdict.code,
                     (long long)verdict.retry_after_ns, verdict.text);
        close_exporter();
        peer_free(peer);
    }
}

#define DETAILS_5S "CAgSAWEaMAoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxIECgIIBQ=="

static void grpc_meanings(void **state)
{
    (void)state;
    const struct meaning table[] = {
        {"ok", grpc_ok, GRPC_OK, -1, ""},
        {"unavailable",
         {.status = 200,
          .headers = {GRPC_TYPE},
          .trailers = {{"grpc-status", "14"}, {"grpc-message", "a%20b%zz%C3%BC"}},
          .body = EMPTY_MESSAGE},
         GRPC_UNAVAILABLE,
         -1,
         "a b%zz\xc3\xbc"},
        {"trailers only",
         {.status = 200,
          .no_body = true,
          .headers = {GRPC_TYPE, {"grpc-status", "3"}, {"grpc-message", "bad"}}},
         GRPC_INVALID_ARGUMENT,
         -1,
         "bad"},
        {"exhausted",
         {.status = 200, .no_body = true, .headers = {GRPC_TYPE, {"grpc-status", "8"}}},
         GRPC_RESOURCE_EXHAUSTED,
         -1,
         ""},
        {"retry info",
         {.status = 200,
          .no_body = true,
          .headers = {GRPC_TYPE, {"grpc-status", "8"}, {"grpc-status-details-bin", DETAILS_5S}}},
         GRPC_RESOURCE_EXHAUSTED,
         INT64_C(5000000000),
         ""},
        {"broken details",
         {.status = 200,
          .no_body = true,
          .headers = {GRPC_TYPE,
                      {"grpc-status", "8"},
                      {"grpc-status-details-bin", "CAgSAWEaMAood"}}},
         GRPC_RESOURCE_EXHAUSTED,
         -1,
         ""},
        {"odd status",
         {.status = 200, .no_body = true, .headers = {GRPC_TYPE, {"grpc-status", "0x"}}},
         GRPC_UNKNOWN,
         -1,
         ""},
        {"unknown status",
         {.status = 200,
          .no_body = true,
          .headers = {GRPC_TYPE, {"grpc-status", "99999999999999999999"}}},
         GRPC_UNKNOWN,
         -1,
         ""},
        {"no trailers",
         {.status = 200, .headers = {GRPC_TYPE}, .body = EMPTY_MESSAGE},
         GRPC_INTERNAL,
         -1,
         "without sending trailers"},
        {"a web page",
         {.status = 200, .headers = {{"content-type", "text/html"}}, .body = SLICE("<html>")},
         GRPC_UNKNOWN,
         -1,
         "unexpected content-type \"text/html\""},
        {"a proxy",
         {.status = 503, .headers = {{"content-type", "text/html"}}},
         GRPC_UNAVAILABLE,
         -1,
         "unexpected HTTP status code received from server: 503"},
        {"not found", {.status = 404}, GRPC_UNIMPLEMENTED, -1, "404"},
        {"redirect",
         {.status = 302, .headers = {{"location", "http://127.0.0.1:1/"}}},
         GRPC_UNKNOWN,
         -1,
         "302"},
        {"silence",
         {.action = PEER_SILENT, .status = 0},
         GRPC_DEADLINE_EXCEEDED,
         -1,
         "context deadline exceeded: no answer from 127.0.0.1"},
        {"reset",
         {.action = PEER_RESET, .code = 2},
         GRPC_UNAVAILABLE,
         -1,
         "the stream was reset: INTERNAL_ERROR"},
    };
    check_meanings(table, sizeof table / sizeof table[0], PEER_HTTP2, "otlp_grpc");
}

static void http_meanings(void **state)
{
    (void)state;
    clock_fix_wall(UINT64_C(1600000000) * SECOND); /* Sun, 13 Sep 2020 12:26:40 GMT */
    const struct meaning table[] = {
        {"200", http_ok, GRPC_OK, -1, ""},
        {"202 without a type", {.status = 202, .body = SLICE("whatever")}, GRPC_OK, -1, ""},
        {"204", {.status = 204}, GRPC_OK, -1, ""},
        {"partial",
         {.status = 200,
          .headers = {{"content-type", "application/x-protobuf"}},
          .body = SLICE("\x0a\x06\x08\x05\x12\x02hi")},
         GRPC_OK,
         -1,
         ""},
        {"partial JSON",
         {.status = 200,
          .headers = {{"content-type", "application/json; charset=utf-8"}},
          .body = SLICE("{\"partialSuccess\":{\"rejectedSpans\":\"5\"}}")},
         GRPC_OK,
         -1,
         ""},
        {"unreadable",
         {.status = 200,
          .headers = {{"content-type", "application/x-protobuf"}},
          .body = SLICE("\x0a\x7f")},
         GRPC_INTERNAL,
         -1,
         "cannot be read"},
        {"unreadable JSON",
         {.status = 200, .headers = {{"content-type", "application/json"}}, .body = SLICE("{")},
         GRPC_INTERNAL,
         -1,
         "cannot be read"},
        {"400",
         {.status = 400,
          .headers = {{"content-type", "application/x-protobuf"}},
          .body = SLICE("\x08\x03\x12\x03"
                        "bad")},
         GRPC_INVALID_ARGUMENT,
         -1,
         "responded with HTTP Status Code 400, Message=bad, Details=[]"},
        {"401",
         {.status = 401},
         GRPC_UNAUTHENTICATED,
         -1,
         "/v1/traces responded with HTTP Status Code 401"},
        {"301", {.status = 301, .headers = {{"location", "/x"}}}, GRPC_UNKNOWN, -1, "301"},
        {"404",
         {.status = 404,
          .headers = {{"content-type", "text/plain"}},
          .body = SLICE("404 page not found")},
         GRPC_UNIMPLEMENTED,
         -1,
         "Message=404 page not found"},
        {"429", {.status = 429}, GRPC_RESOURCE_EXHAUSTED, 0, "429"},
        {"429 after",
         {.status = 429, .headers = {{"retry-after", "7"}}},
         GRPC_RESOURCE_EXHAUSTED,
         INT64_C(7000000000),
         "429"},
        {"503 after",
         {.status = 503, .headers = {{"retry-after", "Sun, 13 Sep 2020 12:27:40 GMT"}}},
         GRPC_UNAVAILABLE,
         INT64_C(60000000000),
         "503"},
        {"503 past",
         {.status = 503, .headers = {{"retry-after", "Sun, 06 Nov 1994 08:49:37 GMT"}}},
         GRPC_UNAVAILABLE,
         0,
         "503"},
        {"503 far",
         {.status = 503, .headers = {{"retry-after", "1000000000"}}},
         GRPC_UNAVAILABLE,
         INT64_C(1000000000000000000),
         "503"},
        {"503 farther",
         {.status = 503, .headers = {{"retry-after", "99999999999999999999999"}}},
         GRPC_UNAVAILABLE,
         INT64_MAX,
         "503"},
        {"503 nonsense",
         {.status = 503, .headers = {{"retry-after", "soon"}}},
         GRPC_UNAVAILABLE,
         -1,
         "503"},
        {"502 after",
         {.status = 502, .headers = {{"retry-after", "7"}}},
         GRPC_UNAVAILABLE,
         -1,
         "502"},
        {"504", {.status = 504}, GRPC_UNAVAILABLE, -1, "504"},
        {"500", {.status = 500}, GRPC_UNKNOWN, -1, "500"},
        {"silence",
         {.action = PEER_SILENT, .status = 0},
         GRPC_UNAVAILABLE,
         -1,
         "failed to make an HTTP request: no answer"},
        {"close",
         {.action = PEER_CLOSE, .status = 0},
         GRPC_UNAVAILABLE,
         -1,
         "the connection was closed"},
    };
    check_meanings(table, sizeof table / sizeof table[0], PEER_HTTP1, "otlp_http");
    clock_fix_wall(0);
}

/* exporterhelper, determineErrorType */
static void failures_have_the_collectors_error_type(void **state)
{
    (void)state;
    static const struct {
        const char *exporter;
        enum peer_protocol protocol;
        struct peer_answer answer;
        const char *error_type;
    } cases[] = {
        {"otlp_http", PEER_HTTP1, {.action = PEER_CLOSE}, "_OTHER"},
        {"otlp_http", PEER_HTTP1, {.action = PEER_SILENT}, "Deadline_Exceeded"},
        {"otlp_http", PEER_HTTP1, {.status = 503}, "Unavailable"},
        {"otlp_http",
         PEER_HTTP1,
         {.status = 200,
          .headers = {{"content-type", "application/x-protobuf"}},
          .body = SLICE("\7")},
         "_OTHER"},
        {"otlp_grpc", PEER_HTTP2, {.action = PEER_RESET, .code = 2}, "Unavailable"},
        {"otlp_grpc", PEER_HTTP2, {.action = PEER_SILENT}, "DeadlineExceeded"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct peer *peer = open_peer(cases[i].protocol, &cases[i].answer, 1);
        open_for(&cases[i].answer, cases[i].exporter, peer);
        struct verdict verdict = deliver();
        assert_string_equal(verdict_error_type(&verdict), cases[i].error_type);
        close_exporter();
        peer_free(peer);
    }
}

static void compressed_answers_are_read(void **state)
{
    (void)state;
    struct slice message = SLICE("\x0a\x06\x08\x05\x12\x02hi");
    struct buffer *packed = compress_slices(COMPRESSION_GZIP, 0, true, &message, 1, NULL);
    struct text body = {0};
    text_append_slice(&body, slice_of("\1\0\0\0", 4));
    text_append_char(&body, (char)packed->size);
    text_append_slice(&body, buffer_slice(packed));
    struct peer_answer answer = grpc_ok;
    answer.headers[1] = (struct peer_header){"grpc-encoding", "gzip"};
    answer.body = slice_of(body.data, body.size);
    struct peer *peer = open_peer(PEER_HTTP2, &answer, 1);
    open_exporter("otlp_grpc", GRPC_TO DIRECT, peer_port(peer), SIGNAL_TRACES);
    assert_int_equal(deliver().code, GRPC_OK);
    peer_free(peer);
    text_deinit(&body);
    buffer_unref(packed);
}

/* ---- redirects and cookies ---- */

static void redirects_are_followed_once(void **state)
{
    (void)state;
    static const struct {
        const char *location, *path; /* NULL: it is an error */
    } cases[] = {
        {"/other/v1/traces?x=1", "/other/v1/traces?x=1"},
        {"more", "/v1/more"},
        {"http://elsewhere.invalid/v1/traces", NULL},
        {"https://127.0.0.1/v1/traces", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct peer_answer answers[] = {
            {.status = i % 2 ? 307 : 308, .headers = {{"location", cases[i].location}}}, http_ok};
        struct peer *peer = open_peer(PEER_HTTP1, answers, 2);
        open_exporter("otlp_http", HTTP_TO DIRECT, peer_port(peer), SIGNAL_TRACES);
        struct verdict verdict = deliver();
        assert_int_equal(verdict_is_ok(&verdict), cases[i].path != NULL);
        assert_int_equal(peer_requests(peer), cases[i].path ? 2 : 1);
        if (cases[i].path) {
            assert_string_equal(peer_header(peer_request(peer, 1), ":path"), cases[i].path);
            assert_string_equal(text_string(&peer_request(peer, 0)->body),
                                text_string(&peer_request(peer, 1)->body));
        } else {
            assert_non_null(strstr(verdict.text, "307 and 308 to the same origin"));
        }
        close_exporter();
        peer_free(peer);
    }
}

static void redirects_in_circles(void **state)
{
    (void)state;
    const struct peer_answer answer = {.status = 308,
                                       .headers = {{"location", "/v1/traces?secret"}}};
    struct peer *peer = open_peer(PEER_HTTP1, &answer, 1);
    open_exporter("otlp_http", HTTP_TO DIRECT, peer_port(peer), SIGNAL_TRACES);
    struct verdict verdict = deliver();
    assert_non_null(strstr(verdict.text, "Status Code 308, a redirect to /v1/traces; only"));
    assert_null(strstr(verdict.text, "secret"));
    assert_int_equal(peer_requests(peer), 2);
    /* Another attempt begins at the configured path. */
    deliver();
    assert_string_equal(peer_header(peer_request(peer, 2), ":path"), "/v1/traces");
    close_exporter();
    peer_free(peer);
}

static void cookies_come_back(void **state)
{
    (void)state;
    struct peer_answer answer = http_ok;
    answer.headers[1] = (struct peer_header){"set-cookie", "route=a.1; Path=/; HttpOnly"};
    answer.headers[2] = (struct peer_header){"set-cookie", "far=1; Domain=elsewhere"};
    for (int kept = 0; kept <= 1; kept++) {
        struct peer *peer = open_peer(PEER_HTTP1, &answer, 1);
        open_exporter("otlp_http",
                      kept ? HTTP_TO DIRECT ", cookies: {enabled: true}" : HTTP_TO DIRECT,
                      peer_port(peer), SIGNAL_TRACES);
        for (int i = 0; i < 3; i++)
            assert_int_equal(deliver().code, GRPC_OK);
        assert_string_equal(peer_header(peer_request(peer, 0), "cookie"), "");
        assert_string_equal(peer_header(peer_request(peer, 2), "cookie"), kept ? "route=a.1" : "");
        close_exporter();
        peer_free(peer);
    }
}

/* ---- queue and retries, end to end ---- */

static void retried_until_taken(void **state)
{
    (void)state;
    const struct peer_answer answers[] = {{.status = 503}, {.status = 429}, http_ok};
    struct peer *peer = open_peer(PEER_HTTP1, answers, 3);
    open_exporter("otlp_http", HTTP_TO "retry_on_failure: {initial_interval: 10ms}",
                  peer_port(peer), SIGNAL_TRACES);
    struct probe probe;
    consume(3, &probe);
    assert_true(probe.settled); /* the queue has it */
    assert_int_equal(probe.verdict.code, GRPC_OK);
    uint64_t end = clock_monotonic_ns() + 10 * SECOND;
    char labels[200];
    snprintf(labels, sizeof labels,
             "exporter=\"otlp_http\",server_address=\"127.0.0.1\",server_port=\"%u\",url_path=\"/"
             "v1/traces\"",
             peer_port(peer));
    while (metrics_value(metrics, "otelcol_exporter_sent_spans", labels) < 3) {
        uv_run(&worker.loop, UV_RUN_ONCE);
        assert_true(clock_monotonic_ns() < end);
    }
    assert_int_equal(peer_requests(peer), 3);
    close_exporter();
    peer_free(peer);
}

static void stopped_while_sending(void **state)
{
    (void)state;
    const struct peer_answer silent = {.action = PEER_SILENT};
    for (int p = PEER_HTTP1; p <= PEER_HTTP2; p++) {
        struct peer *peer = open_peer((enum peer_protocol)p, &silent, 1);
        open_exporter(p == PEER_HTTP1 ? "otlp_http" : "otlp_grpc",
                      GRPC_TO "sending_queue: {num_consumers: 3, wait_for_result: true}",
                      peer_port(peer), SIGNAL_TRACES);
        struct probe probes[8];
        for (int i = 0; i < 8; i++)
            consume(1, &probes[i]);
        run_for(SECOND / 20);
        close_exporter();
        for (int i = 0; i < 8; i++) {
            assert_true(probes[i].settled);
            assert_int_equal(probes[i].verdict.code, GRPC_UNAVAILABLE);
        }
        run_for(SECOND / 100);
        peer_free(peer);
    }
}

/* ---- large requests ---- */

enum { LARGE_BYTES = 600000 };

/* Begins a request with one span whose name is long. */
static void begin_large(struct wire_writer *request)
{
    static uint8_t name[LARGE_BYTES];
    memset(name, 'x', sizeof name);
    size_t resource = wire_writer_begin(request, TRACES_RESOURCE_SPANS);
    size_t scope = wire_writer_begin(request, RESOURCE_SPANS_SCOPE_SPANS);
    size_t span = wire_writer_begin(request, SCOPE_SPANS_SPANS);
    wire_writer_bytes(request, SPAN_NAME, slice_of(name, sizeof name));
    wire_writer_end(request, span);
    wire_writer_end(request, scope);
    wire_writer_end(request, resource);
    large = wire_writer_slice(request);
}

static void end_large(struct wire_writer *request)
{
    large = (struct slice){0};
    wire_writer_deinit(request);
}

static void large_requests_are_compressed_beside_the_loop(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum compression compression;
        unsigned jobs;
    } table[] = {{"gzip", COMPRESSION_GZIP, 1}, {"zstd", COMPRESSION_ZSTD, 0}};
    for (size_t i = 0; i < 2; i++) {
        struct peer *peer = open_peer(PEER_HTTP1, &http_ok, 1);
        struct wire_writer request = {0};
        char body[200];
        snprintf(body, sizeof body, HTTP_TO DIRECT ", compression: %s", table[i].name);
        open_exporter("otlp_http", body, peer_port(peer), SIGNAL_TRACES);
        begin_large(&request);
        struct probe probe;
        consume(1, &probe);
        assert_int_equal(worker.jobs_begun, table[i].jobs);
        while (!probe.settled)
            uv_run(&worker.loop, UV_RUN_ONCE);
        assert_int_equal(probe.verdict.code, GRPC_OK);
        check_body(peer_request(peer, 0), table[i].compression, false, SIGNAL_TRACES);
        end_large(&request);
        close_exporter();
        peer_free(peer);
    }
}

static void stopped_while_compressing(void **state)
{
    (void)state;
    struct peer *peer = open_peer(PEER_HTTP1, &http_ok, 1);
    struct wire_writer request = {0};
    struct probe probes[4]; /* more than jobs that run at once */
    open_exporter("otlp_http", HTTP_TO DIRECT, peer_port(peer), SIGNAL_TRACES);
    begin_large(&request);
    for (int i = 0; i < 4; i++)
        consume(1, &probes[i]);
    close_exporter();
    for (int i = 0; i < 4; i++) {
        assert_true(probes[i].settled);
        assert_int_equal(probes[i].verdict.code, GRPC_UNAVAILABLE);
    }
    end_large(&request);
    workers_settle(&worker, 1);
    assert_int_equal(peer_requests(peer), 0);
    peer_free(peer);
}

static void throughput(void **state)
{
    (void)state;
    struct peer *peer = open_peer(PEER_HTTP2, &grpc_ok, 1);
    open_exporter("otlp_grpc", GRPC_TO "sending_queue: {queue_size: 5000}", peer_port(peer),
                  SIGNAL_TRACES);
    struct probe probes[2000];
    for (int i = 0; i < 2000; i++) {
        consume(1, &probes[i]);
        assert_int_equal(probes[i].verdict.code, GRPC_OK);
    }
    uint64_t end = clock_monotonic_ns() + 20 * SECOND;
    while (peer_requests(peer) < 2000) {
        uv_run(&worker.loop, UV_RUN_ONCE);
        assert_true(clock_monotonic_ns() < end);
    }
    assert_int_equal(peer_connections(peer), 1);
    run_for(SECOND / 50);
    close_exporter();
    peer_free(peer);
}

/* ---- settings ---- */

static void wrong_settings(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *yaml;
        const char *error; /* part of the error; NULL: none */
    } table[] = {
        {"otlp_grpc", "timeout: 1s", "endpoint"},
        {"otlp_grpc", "endpoint: backend", "the port is missing"},
        {"otlp_grpc", "endpoint: 'http://backend:4317/'", NULL},
        {"otlp_grpc", "endpoint: 'dns:///backend:4317'", NULL},
        {"otlp_grpc", "endpoint: 'unix:///run/x.sock'", NULL},
        {"otlp_grpc", "endpoint: 'unix://'", "the path of the socket is missing"},
        {"otlp_grpc", "endpoint: '[::1]:4317'", NULL},
        {"otlp_grpc", "endpoint: 'backend:0'", "port must not be 0"},
        {"otlp_grpc", "endpoint: 'a:1', compression: lz4",
         "gRPC supports none, gzip, snappy and zstd"},
        {"otlp_grpc", "endpoint: 'a:1', compression: none", NULL},
        {"otlp_grpc", "endpoint: 'a:1', headers: {grpc-timeout: 1S}",
         "\"grpc-timeout\" is set by the exporter"},
        {"otlp_grpc", "endpoint: 'a:1', headers: {'a b': c}",
         "\"a b\" cannot be the name of a header"},
        {"otlp_grpc", "endpoint: 'a:1', headers: {a: \"b\\nc\"}", "printable ASCII"},
        {"otlp_grpc", "endpoint: 'a:1', sending_queue: {batch: {}}", NULL},
        {"otlp_grpc", "endpoint: 'a:1', sending_queue: {batch: {max_size: 10}}",
         "must not be less than min_size"},
        {"otlp_grpc", "endpoint: 'a:1', sending_queue: {sizer: items, batch: {}}",
         "must not be greater than queue_size"},
        {"otlp_grpc", "endpoint: 'a:1', sending_queue: {batch: {partition: {metadata_keys: [a]}}}",
         NULL},
        {"otlp_grpc",
         "endpoint: 'a:1', sending_queue: {batch: {partition: {metadata_keys: [a, A]}}}",
         "duplicate entry in metadata_keys: \"a\" (case-insensitive)"},
        {"otlp_grpc", "endpoint: 'a:1', balancer_name: grpclb", "balancer_name"},
        {"otlp_grpc", "endpoint: 'a:1', sending_queue: {storage: file_storage}",
         "not supported yet"},
        {"otlp_grpc", "endpoint: 'a:1', sending_queue: {num_consumers: 0}", "num_consumers"},
        {"otlp_grpc", "endpoint: 'a:1', retry_on_failure: {max_elapsed_time: 1s}",
         "must not be less than initial_interval"},
        {"otlp_grpc", "endpoint: 'a:1', retry_on_failure: {max_elapsed_time: 0}", NULL},
        {"otlp_grpc",
         "endpoint: 'a:1', keepalive: {time: 30s}, wait_for_ready: true, balancer_name: pick_first",
         NULL},
        {"otlp_grpc", "endpoint: 'a:1', auth: {authenticator: x}",
         "failed to resolve authenticator \"x\": profcol has no extension of type \"x\""},
        {"otlp_http", "metrics_endpoint: 'http://a/m'",
         "either endpoint or traces_endpoint must be specified, for the pipeline \"traces\""},
        {"otlp_http", "encoding: proto", "at least one endpoint must be specified"},
        {"otlp_http", "endpoint: 'a:1'", "a URL must start with http:// or https://"},
        {"otlp_http", "endpoint: 'http://'", "the host is missing"},
        {"otlp_http", "endpoint: 'http://u:p@a/'", "use headers"},
        {"otlp_http", "endpoint: 'http://a/b c'", "must be encoded"},
        {"otlp_http", "endpoint: 'https://[::1]/x'", NULL},
        {"otlp_http", "endpoint: 'http://a:99999'", "port"},
        {"otlp_http", "endpoint: 'http://a', compression_params: {level: 10}",
         "10 is not a level of \"gzip\""},
        {"otlp_http", "endpoint: 'http://a', compression: zstd, compression_params: {level: 10}",
         NULL},
        {"otlp_http", "endpoint: 'http://a', compression: snappy, compression_params: {level: 1}",
         "1 is not a level of \"snappy\""},
        {"otlp_http", "endpoint: 'http://a', proxy_url: 'http://b'", NULL},
        {"otlp_http", "endpoint: 'http://a', proxy_url: 'b:3128'",
         "the URL of the proxy must start with http://"},
        {"otlp_http", "endpoint: 'http://a/%zz'",
         "\"http://a/%zz\": % needs two hexadecimal digits, as in %2F"},
        {"otlp_http", "endpoint: 'http://a/%2'",
         "\"http://a/%2\": % needs two hexadecimal digits, as in %2F"},
        {"otlp_http", "endpoint: 'http://a/%2F?%zz'", NULL},
        {"otlp_http", "endpoint: 'http://a', proxy_url: 'socks5://b'",
         "only proxies with http:// are supported"},
        {"otlp_http", "endpoint: 'http://a', headers: {Content-Length: '1'}",
         "set by the exporter"},
        {"otlp_http", "endpoint: 'http://a', cookies: {enabled: true}", NULL},
        {"otlp_http", "endpoint: 'http://a', cookies: {enabled: true, jar: x}", "jar"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct text report = {0};
        struct config *loaded = load(table[i].name, table[i].yaml, 0, SIGNAL_TRACES, &report);
        bool as_expected = table[i].error ? !loaded && strstr(text_string(&report), table[i].error)
                                          : loaded != NULL;
        if (!as_expected)
            fail_msg("%s: {%s}: %s", table[i].name, table[i].yaml, text_string(&report));
        text_deinit(&report);
        if (loaded)
            config_free(loaded);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(grpc_requests, set_up, tear_down),
        cmocka_unit_test_setup_teardown(http_requests, set_up, tear_down),
        cmocka_unit_test_setup_teardown(http_json, set_up, tear_down),
        cmocka_unit_test_setup_teardown(http_urls, set_up, tear_down),
        cmocka_unit_test_setup_teardown(grpc_meanings, set_up, tear_down),
        cmocka_unit_test_setup_teardown(http_meanings, set_up, tear_down),
        cmocka_unit_test_setup_teardown(failures_have_the_collectors_error_type, set_up, tear_down),
        cmocka_unit_test_setup_teardown(compressed_answers_are_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(redirects_are_followed_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(redirects_in_circles, set_up, tear_down),
        cmocka_unit_test_setup_teardown(cookies_come_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(retried_until_taken, set_up, tear_down),
        cmocka_unit_test_setup_teardown(stopped_while_sending, set_up, tear_down),
        cmocka_unit_test_setup_teardown(large_requests_are_compressed_beside_the_loop, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(stopped_while_compressing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(throughput, set_up, tear_down),
        cmocka_unit_test_setup_teardown(wrong_settings, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
