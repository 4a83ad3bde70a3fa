#include "core/base/hash.h"
#include "core/net/compression.h"
#include "exporters/pyroscope/label_limits.h"
#include "exporters/pyroscope/push_answer.h"
#include "exporters/pyroscope/series_labels.h"
#include "tests/unit/wire_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define HOUR (UINT64_C(3600) * 1000000000)

/* ---- label_limits ---- */

static struct metrics *metrics;

static int make_metrics(void **state)
{
    (void)state;
    metrics = metrics_new(1);
    return 0;
}

static int free_metrics(void **state)
{
    (void)state;
    metrics_free(metrics);
    return 0;
}

static struct label_limits *limits_of(uint64_t max_values)
{
    return label_limits_new(max_values, metrics_counter(metrics, "folded", "Folded.", ""),
                            "exporter pyroscope");
}

static bool admit(struct label_limits *limits, const char *service, const char *value, uint64_t now)
{
    return label_limits_admit(limits, slice_of_string(service), SLICE("user"),
                              slice_of_string(value), now);
}

static void test_values_beyond_the_limit_are_folded(void **state)
{
    (void)state;
    struct label_limits *limits = limits_of(2);
    assert_true(admit(limits, "a", "1", HOUR));
    assert_true(admit(limits, "a", "2", HOUR));
    assert_false(admit(limits, "a", "3", HOUR));
    assert_true(admit(limits, "a", "1", HOUR)); /* known already */
    assert_true(admit(limits, "b", "3", HOUR)); /* of another service */
    assert_false(admit(limits, "a", "3", 2 * HOUR - 1));
    assert_true(metrics_value(metrics, "folded", "") == 2);
    label_limits_free(limits);
}

/* Values are never all forgotten at once: those in use stay, unused ones are replaced. */
static void test_values_age(void **state)
{
    (void)state;
    struct label_limits *limits = limits_of(2);
    assert_true(admit(limits, "a", "1", HOUR));
    assert_true(admit(limits, "a", "2", HOUR));
    for (uint64_t now = HOUR; now < 3 * HOUR; now += HOUR / 32)
        assert_true(admit(limits, "a", "1", now));
    assert_true(admit(limits, "a", "3", 3 * HOUR));
    assert_true(admit(limits, "a", "1", 3 * HOUR));
    assert_false(admit(limits, "a", "2", 3 * HOUR));
    /* Everything is forgotten, also services. Then they come again. */
    assert_true(admit(limits, "b", "1", 5 * HOUR));
    assert_true(admit(limits, "a", "2", 5 * HOUR));
    label_limits_free(limits);
}

static void test_no_limit(void **state)
{
    (void)state;
    struct label_limits *limits = limits_of(0);
    char value[16];
    for (int i = 0; i < 1000; i++) {
        snprintf(value, sizeof value, "%d", i);
        assert_true(admit(limits, "a", value, HOUR));
    }
    label_limits_free(limits);
}

/* A client that invents services gets a limited share of memory. */
static void test_memory_is_bounded(void **state)
{
    (void)state;
    struct label_limits *limits = limits_of(200);
    char service[24];
    int admitted = 0;
    for (int i = 0; i < 300000; i++) {
        snprintf(service, sizeof service, "%d", i);
        admitted += admit(limits, service, "v", HOUR);
    }
    assert_in_range(admitted, 60000, 1 << 17);
    label_limits_free(limits);
}

static int admit_many(struct label_limits *limits, const char *service, int labels, int values,
                      uint64_t now)
{
    int admitted = 0;
    char label[24], value[24];
    for (int i = 0; i < labels; i++)
        for (int k = 0; k < values; k++) {
            snprintf(label, sizeof label, "label %d", i);
            snprintf(value, sizeof value, "%d", k);
            admitted += label_limits_admit(limits, slice_of_string(service), slice_of_string(label),
                                           slice_of_string(value), now);
        }
    return admitted;
}

/* A service that sends more values than the table holds is folded; all others keep their room. */
static void test_a_service_takes_no_room_of_others(void **state)
{
    (void)state;
    struct label_limits *limits = limits_of(200);
    char service[24];
    assert_int_equal(admit_many(limits, "before", 2, 10, HOUR), 20);
    assert_in_range(admit_many(limits, "flood", 2000, 200, HOUR), 100000, 1 << 17);
    assert_int_equal(admit_many(limits, "before", 4, 60, HOUR), 240);
    for (int i = 0; i < 400; i++) {
        snprintf(service, sizeof service, "service %d", i);
        assert_int_equal(admit_many(limits, service, 5, 50, HOUR), 250);
    }
    assert_int_equal(admit_many(limits, "flood", 1, 300, HOUR), 200);
    assert_in_range(admit_many(limits, "flood", 2001, 1, HOUR), 600, 700); /* those known */
    label_limits_free(limits);
}

/* However many new services come, existing ones keep their room. */
static void test_invented_services_share_one_room(void **state)
{
    (void)state;
    struct label_limits *limits = limits_of(200);
    char service[24];
    assert_int_equal(admit_many(limits, "before", 2, 10, HOUR), 20);
    for (int i = 0; i < 300000; i++) {
        snprintf(service, sizeof service, "%d", i);
        admit(limits, service, "v", HOUR);
    }
    assert_int_equal(admit_many(limits, "before", 4, 60, HOUR), 240);
    assert_int_equal(admit_many(limits, "after", 1, 10, HOUR), 0);
    /* After the flood, its effects end. */
    assert_int_equal(admit_many(limits, "after", 4, 60, 3 * HOUR), 240);
    label_limits_free(limits);
}

/* ---- push_answer ---- */

static struct verdict answer(int status, struct slice body, const char *encoding, const char *after)
{
    struct http_header headers[] = {
        {SLICE("content-encoding"), slice_of_string(encoding)},
        {SLICE("retry-after"), slice_of_string(after)},
    };
    struct client_answer given = {.status = status, .headers = {headers, 2}, .body = body};
    return push_answer(&given, "http://p/Push", 0);
}

static void test_statuses(void **state)
{
    (void)state;
    static const struct {
        int status;
        bool is_ok, is_retryable;
    } cases[] = {{200, true, false},  {204, true, false},  {400, false, false}, {401, false, false},
                 {403, false, false}, {404, false, false}, {408, false, true},  {413, false, false},
                 {415, false, false}, {422, false, false}, {429, false, true},  {499, false, true},
                 {500, false, true},  {501, false, false}, {502, false, true},  {503, false, true},
                 {504, false, true},  {302, false, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct verdict verdict = answer(cases[i].status, SLICE(""), "", "");
        assert_int_equal(verdict_is_ok(&verdict), cases[i].is_ok);
        assert_int_equal(!cases[i].is_ok && verdict_is_retryable(&verdict), cases[i].is_retryable);
    }
    struct client_answer none = {.failure = CLIENT_TIMEOUT, .failure_text = "timeout"};
    struct verdict verdict = push_answer(&none, "http://p/Push", 0);
    assert_true(verdict_is_retryable(&verdict));
}

static void test_text_and_delay(void **state)
{
    (void)state;
    struct slice body = SLICE("{\"code\":\"invalid_argument\",\"details\":[{}],"
                              "\"message\":\"label \\\"a\\\" is bad\"}");
    struct verdict verdict = answer(400, body, "", "");
    assert_string_equal(verdict.text, "request to http://p/Push responded with HTTP Status Code "
                                      "400: label \"a\" is bad");
    struct buffer *packed = compress_slices(COMPRESSION_GZIP, 0, false, &body, 1, NULL);
    verdict = answer(400, buffer_slice(packed), "gzip", "");
    assert_non_null(strstr(verdict.text, ": label \"a\" is bad"));
    buffer_unref(packed);
    assert_non_null(strstr(answer(502, SLICE("<html>"), "", "").text, "502: <html>"));
    assert_non_null(strstr(answer(502, SLICE("{\"message\":"), "", "").text, "502: {"));
    assert_true(answer(429, SLICE(""), "", "7").retry_after_ns == INT64_C(7000000000));
    assert_true(answer(429, SLICE(""), "", "soon").retry_after_ns == -1);
}

/* ---- series_labels ---- */

static bool wanted(const char *include, const char *exclude, const char *key)
{
    const char *in[] = {include}, *out[] = {exclude};
    struct label_settings settings = {.include = {in, include ? 1 : 0},
                                      .exclude = {out, exclude ? 1 : 0}};
    return label_is_wanted(&settings, slice_of_string(key));
}

static void test_which_attributes_become_labels(void **state)
{
    (void)state;
    assert_true(wanted(NULL, NULL, "region"));
    assert_false(wanted(NULL, "process.*", "process.pid"));
    assert_true(wanted(NULL, "process.pid", "process.pids"));
    assert_true(wanted("k8s.*", NULL, "k8s.pod.name"));
    assert_false(wanted("k8s.*", NULL, "region"));
    assert_false(wanted("k8s.*", "k8s.pod.uid", "k8s.pod.uid"));
    assert_false(wanted("*", NULL, "__session_id__"));
    assert_false(wanted("*", NULL, ""));
}

/* Compares the AnyValue as a label; "none": it is not one. */
static void expect_label(const char *notation, const char *expected)
{
    struct text any = wire_text(notation);
    struct arena arena;
    struct slice value = {0};
    arena_init(&arena, NULL);
    if (!label_value(wire_text_slice(&any), &arena, &value))
        value = SLICE("none");
    if (!slice_is(value, expected))
        fail_msg("%s: %.*s", notation, SLICE_ARG(value));
    arena_deinit(&arena);
    text_deinit(&any);
}

static void test_which_values_become_labels(void **state)
{
    (void)state;
    expect_label("1\"text\"", "text");
    expect_label("1\"\"", "none");
    expect_label("2=1", "true");
    expect_label("3=-7", "-7");
    expect_label("4#1", "none");
    expect_label("", "none");
    expect_label("5{1{1\"only\"}}", "only");
    expect_label("5{1{1\"one\"} 1{1\"two\"}}", "none");
    expect_label("5{1{}}", "none");
    expect_label("5{}", "none");
    /* The last of several members counts. Unknown fields may follow it. */
    expect_label("1\"first\" 1\"last\"", "last");
    expect_label("3=5 1\"last\"", "last");
    expect_label("1\"first\" 3=5 9\"new\"", "5");
    expect_label("9\"new\" 1\"text\"", "text");
    expect_label("1\"first\" 4#1", "none");
    expect_label("5{1{1\"first\" 1\"last\"}}", "last");
    expect_label("1\"first\" 5{1{2=1}}", "true");
    /* Such fields are not elements of a list, either. */
    expect_label("5{2=1}", "none");
    expect_label("5{2#1}", "none");
    expect_label("5{2=1 1{1\"only\"} 3\"new\"}", "only");
}

int main(void)
{
    hash_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_beyond_the_limit_are_folded),
        cmocka_unit_test(test_values_age),
        cmocka_unit_test(test_a_service_takes_no_room_of_others),
        cmocka_unit_test(test_invented_services_share_one_room),
        cmocka_unit_test(test_no_limit),
        cmocka_unit_test(test_memory_is_bounded),
        cmocka_unit_test(test_statuses),
        cmocka_unit_test(test_text_and_delay),
        cmocka_unit_test(test_which_attributes_become_labels),
        cmocka_unit_test(test_which_values_become_labels),
    };
    return cmocka_run_group_tests(tests, make_metrics, free_metrics);
}
