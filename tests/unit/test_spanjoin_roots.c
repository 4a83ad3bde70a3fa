/* Attributes of the local root above a span (docs/spanjoin.md, "Local roots"). */
#include "processors/spanjoin/spanjoin.h"
#include "tests/unit/spanjoin_fixture.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { TRACE = 7, ROOT = 41, CHILD = 42, GRANDCHILD = 43, OTHER = 44 };

static const char settings[] =
    "samples: {wait: 5s, attributes: ["
    "{key: span_name, from: span.name}, {key: endpoint, from: root.name}, "
    "{key: route, from: 'root.attributes[\"http.route\"]'}]}, "
    "spans: {attributes: [{key: samples, from: samples.count}, {key: endpoint, from: root.name}, "
    "{key: tier, from: 'root.attributes[\"tier\"]'}]}";

/* Adds an internal span below another one; 0: it has no parent. */
static SpanMessage *add_span(struct request *request, uint64_t span, uint64_t parent,
                             const char *name)
{
    SpanMessage *message = traces_span(request, TRACE, span, WALL, WALL + SECOND, name);
    message->kind = OPENTELEMETRY__PROTO__TRACE__V1__SPAN__SPAN_KIND__SPAN_KIND_INTERNAL;
    if (parent)
        span_set_parent(request, message, parent);
    return message;
}

static void send_span(struct join *join, const char *service, uint64_t span, uint64_t parent,
                      const char *name)
{
    struct request request;
    traces_begin(&request, service);
    add_span(&request, span, parent, name);
    join_send(join, &request);
}

/* The parent of the root is in another process. */
static void add_root(struct request *request)
{
    SpanMessage *root = add_span(request, ROOT, OTHER, "GET /cart");
    root->kind = OPENTELEMETRY__PROTO__TRACE__V1__SPAN__SPAN_KIND__SPAN_KIND_SERVER;
    span_string(request, root, "http.route", "/cart");
    span_string(request, root, "tier", "gold");
}

static void send_root(struct join *join)
{
    struct request request;
    traces_begin(&request, "shop");
    add_root(&request);
    join_send(join, &request);
}

static void send_sample(struct join *join, uint64_t span)
{
    struct request request;
    profiles_begin(&request);
    profiles_profile(&request, "cpu", "nanoseconds");
    SampleMessage *sample = profiles_sample(&request, 1);
    sample_link(&request, sample, TRACE, span);
    sample_value(&request, sample, 10);
    join_send(join, &request);
}

static void read_last(const struct join *join, enum signal signal, struct request *out)
{
    const struct recorder *recorder = &join->fixture.recorder;
    size_t i = recorder->count;
    while (i-- > 0 && recorder->items[i].signal != signal)
        assert_true(i > 0);
    struct slice bytes = slice_of(recorder->items[i].bytes, recorder->items[i].size);
    if (signal == SIGNAL_TRACES)
        request_read_traces(out, bytes);
    else
        request_read_profiles(out, bytes);
}

/* Checks the attributes of the last sample. */
static void expect_sample(const struct join *join, const char *name, const char *endpoint,
                          const char *route)
{
    struct request out;
    const char *const keys[] = {"span_name", "endpoint", "route"};
    const char *const wanted[] = {name, endpoint, route};
    read_last(join, SIGNAL_PROFILES, &out);
    for (size_t i = 0; i < 3; i++) {
        const char *value = sample_attribute(&out, request_sample(&out, 0, 0), keys[i]);
        assert_string_equal(value ? value : "none", wanted[i]);
    }
    request_free(&out);
}

static void samples_gain_values_of_the_local_root(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, settings);
    send_span(&join, "shop", GRANDCHILD, CHILD, "query"); /* a span ends before its parent */
    send_span(&join, "shop", CHILD, ROOT, "load");
    send_root(&join);
    send_sample(&join, GRANDCHILD);
    expect_sample(&join, "query", "GET /cart", "/cart");
    send_sample(&join, CHILD);
    expect_sample(&join, "load", "GET /cart", "/cart");
    send_sample(&join, ROOT);
    expect_sample(&join, "GET /cart", "GET /cart", "/cart");
    fixture_deinit(&join.fixture);
}

/* Samples of one request whose spans are alike and have different roots. */
static void a_root_that_was_not_seen_adds_nothing(void **state)
{
    (void)state;
    struct join join;
    struct request request, out;
    join_init(&join, settings);
    send_span(&join, "shop", CHILD, ROOT, "load");
    send_span(&join, "shop", GRANDCHILD, OTHER, "load");
    send_sample(&join, CHILD);
    expect_sample(&join, "load", "none", "none");
    send_root(&join);
    profiles_begin(&request);
    profiles_profile(&request, "cpu", "nanoseconds");
    for (uint64_t span = CHILD; span <= GRANDCHILD; span++) {
        SampleMessage *sample = profiles_sample(&request, 1);
        sample_link(&request, sample, TRACE, span);
        sample_value(&request, sample, 10);
    }
    join_send(&join, &request);
    read_last(&join, SIGNAL_PROFILES, &out);
    assert_string_equal(sample_attribute(&out, request_sample(&out, 0, 0), "endpoint"),
                        "GET /cart");
    assert_null(sample_attribute(&out, request_sample(&out, 0, 1), "endpoint"));
    request_free(&out);
    fixture_deinit(&join.fixture);
}

/* The spans of another service have roots of their own. */
static void the_root_is_of_the_same_process(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, settings);
    send_root(&join);
    send_span(&join, "stock", CHILD, ROOT, "load"); /* an internal span: its root is not known */
    send_sample(&join, CHILD);
    expect_sample(&join, "load", "none", "none");
    fixture_deinit(&join.fixture);
}

static void flags_tell_whether_the_parent_is_remote(void **state)
{
    (void)state;
    struct join join;
    struct request request;
    join_init(&join, settings);
    traces_begin(&request, "shop");
    add_span(&request, ROOT, OTHER, "consume")->flags = 0x300; /* remote */
    SpanMessage *child = add_span(&request, CHILD, ROOT, "handle");
    child->kind = OPENTELEMETRY__PROTO__TRACE__V1__SPAN__SPAN_KIND__SPAN_KIND_SERVER;
    child->flags = 0x100; /* not remote */
    join_send(&join, &request);
    send_sample(&join, CHILD);
    expect_sample(&join, "handle", "consume", "none");
    fixture_deinit(&join.fixture);
}

/* A circle of parents has no root, and ends. */
static void a_circle_has_no_root(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, settings);
    send_span(&join, "shop", CHILD, GRANDCHILD, "a");
    send_span(&join, "shop", GRANDCHILD, CHILD, "b");
    send_sample(&join, CHILD);
    expect_sample(&join, "a", "none", "none");
    fixture_deinit(&join.fixture);
}

/* Also if the root comes after the span, in the same request. */
static void spans_gain_values_of_the_local_root(void **state)
{
    (void)state;
    struct join join;
    struct request request, out;
    join_init(&join, settings);
    send_sample(&join, CHILD);
    traces_begin(&request, "shop");
    add_span(&request, CHILD, ROOT, "load");
    add_root(&request);
    join_send(&join, &request);
    read_last(&join, SIGNAL_TRACES, &out);
    assert_string_equal(span_attribute(request_span(&out, 0), "endpoint"), "GET /cart");
    assert_string_equal(span_attribute(request_span(&out, 0), "tier"), "gold");
    assert_null(span_attribute(request_span(&out, 1), "endpoint")); /* without samples */
    request_free(&out);
    fixture_deinit(&join.fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_gain_values_of_the_local_root),
        cmocka_unit_test(a_root_that_was_not_seen_adds_nothing),
        cmocka_unit_test(the_root_is_of_the_same_process),
        cmocka_unit_test(flags_tell_whether_the_parent_is_remote),
        cmocka_unit_test(a_circle_has_no_root),
        cmocka_unit_test(spans_gain_values_of_the_local_root),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    spanjoin_set_large_bytes(0); /* jobs process each request */
    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
