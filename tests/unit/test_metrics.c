#include "core/base/metrics.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static double read_number(void *context)
{
    return *(double *)context;
}

static const double bounds[] = {1, 2.5, 1000000};

static void assert_page(struct metrics *metrics, const char *expected)
{
    struct text page = {0};
    metrics_write(metrics, 0, &page);
    assert_string_equal(text_string(&page), expected);
    text_deinit(&page);
}

static void a_newer_gauge_replaces_an_older_one_until_it_goes(void **state)
{
    (void)state;
    struct metrics *metrics = metrics_new(1);
    double numbers[] = {1, 2, 3};
    for (int i = 0; i < 3; i++)
        metrics_gauge_from(metrics, "g", "", "", read_number, &numbers[i]);
    assert_true(metrics_value(metrics, "g", "") > 2.5);
    metrics_forget(metrics, &numbers[1]);
    assert_true(metrics_value(metrics, "g", "") > 2.5);
    metrics_forget(metrics, &numbers[2]);
    assert_true(metrics_value(metrics, "g", "") < 1.5);
    metrics_gauge_from(metrics, "g", "", "", read_number, &numbers[1]);
    metrics_forget(metrics, &numbers[0]);
    assert_true(metrics_value(metrics, "g", "") > 1.5);
    metrics_forget(metrics, &numbers[1]);
    assert_page(metrics, "");
    metrics_gauge_from(metrics, "g", "", "", read_number, &numbers[0]);
    metrics_gauge_from(metrics, "g", "", "", read_number, &numbers[1]);
    metrics_free(metrics); /* both */
}

/* During a reload: what the older one has still counts. */
static void a_summed_gauge_is_that_of_all(void **state)
{
    (void)state;
    struct metrics *metrics = metrics_new(1);
    double numbers[] = {1, 2, 4};
    for (int i = 0; i < 3; i++)
        metrics_gauge_sum_from(metrics, "g", "", "", read_number, &numbers[i]);
    assert_int_equal((int)metrics_value(metrics, "g", ""), 7);
    metrics_forget(metrics, &numbers[1]);
    assert_int_equal((int)metrics_value(metrics, "g", ""), 5);
    metrics_forget(metrics, &numbers[2]);
    assert_int_equal((int)metrics_value(metrics, "g", ""), 1);
    metrics_free(metrics);
}

static void the_page_is_sorted_and_complete(void **state)
{
    (void)state;
    struct metrics *metrics = metrics_new(2);
    double number = 0.1;
    assert_page(metrics, "");
    gauge_set(metrics_gauge(metrics, "b_gauge", "A gauge.", ""), -3);
    struct counter *second = metrics_counter(metrics, "c_total", "A counter.", "x=\"2\"");
    struct counter *first = metrics_counter(metrics, "c_total", "Not used.", "x=\"1\"");
    metrics_gauge_from(metrics, "a_from", "Asked for.", "", read_number, &number);
    struct histogram *histogram = metrics_histogram(metrics, "h", "A histogram.", "", bounds, 3);
    counter_add(first, 0, 1);
    counter_add(second, 0, 20);
    counter_add(second, 1, 22);
    histogram_record(histogram, 0, 0.5);
    histogram_record(histogram, 1, 1); /* a value equal to a bound is in its bucket */
    histogram_record(histogram, 1, 2.6);
    histogram_record(histogram, 0, 1e9);
    assert_page(metrics, "# HELP a_from Asked for.\n# TYPE a_from gauge\n"
                         "a_from 0.10000000000000001\n"
                         "# HELP b_gauge A gauge.\n# TYPE b_gauge gauge\n"
                         "b_gauge -3\n"
                         "# HELP c_total A counter.\n# TYPE c_total counter\n"
                         "c_total{x=\"2\"} 42\n"
                         "c_total{x=\"1\"} 1\n"
                         "# HELP h A histogram.\n# TYPE h histogram\n"
                         "h_bucket{le=\"1\"} 2\n"
                         "h_bucket{le=\"2.5\"} 2\n"
                         "h_bucket{le=\"1e+06\"} 3\n"
                         "h_bucket{le=\"+Inf\"} 4\n"
                         "h_sum 1000000004.1\n"
                         "h_count 4\n");
    metrics_free(metrics);
}

static void counters_get_their_type_suffix_where_asked(void **state)
{
    (void)state;
    struct metrics *metrics = metrics_new(1);
    counter_add(metrics_counter(metrics, "sent", "S.", "k=\"v\""), 0, 3);
    counter_add(metrics_counter(metrics, "seen_total", "T.", ""), 0, 4);
    gauge_set(metrics_gauge(metrics, "size", "G.", ""), 5);
    struct text page = {0};
    metrics_write(metrics, METRICS_SUFFIXES, &page);
    assert_string_equal(text_string(&page), "# HELP seen_total T.\n# TYPE seen_total counter\n"
                                            "seen_total 4\n"
                                            "# HELP sent_total S.\n# TYPE sent_total counter\n"
                                            "sent_total{k=\"v\"} 3\n"
                                            "# HELP size G.\n# TYPE size gauge\n"
                                            "size 5\n");
    text_deinit(&page);
    metrics_free(metrics);
}

static void suffixes_and_scopes_are_the_collectors(void **state)
{
    (void)state;
    struct metrics *metrics = metrics_new(1);
    double number = 7;
    metrics_counter_from(metrics, "otelcol_process_uptime", "U.", "", read_number, &number);
    gauge_set(metrics_gauge(metrics, "otelcol_process_memory_rss", "R.", ""), 1);
    gauge_set(metrics_gauge(metrics, "profcol_size_bytes", "S.", "k=\"v\""), 2);
    gauge_set(metrics_gauge(metrics, "target_info", "T.", ""), 1);
    struct text page = {0};
    metrics_write(metrics, METRICS_SUFFIXES | METRICS_SCOPES, &page);
#define SCOPE(name)                                                                                \
    "otel_scope_name=\"" name "\",otel_scope_schema_url=\"\",otel_scope_version=\"\""
    assert_string_equal(
        text_string(&page),
        "# HELP otelcol_process_memory_rss_bytes R.\n"
        "# TYPE otelcol_process_memory_rss_bytes gauge\n"
        "otelcol_process_memory_rss_bytes{" SCOPE(
            "go.opentelemetry.io/collector/"
            "service") "} 1\n"
                       "# HELP "
                       "otelcol_process_"
                       "uptime_seconds_total "
                       "U.\n"
                       "# TYPE "
                       "otelcol_process_"
                       "uptime_seconds_total "
                       "counter\n"
                       "otelcol_process_"
                       "uptime_seconds_"
                       "total{" SCOPE(
                           "go.opentelemetry."
                           "io/collector/"
                           "service") "} 7\n"
                                      "# "
                                      "HELP "
                                      "profco"
                                      "l_"
                                      "size_"
                                      "bytes "
                                      "S.\n# "
                                      "TYPE "
                                      "profco"
                                      "l_"
                                      "size_"
                                      "bytes "
                                      "gauge"
                                      "\n"
                                      "profco"
                                      "l_"
                                      "size_"
                                      "bytes{"
                                      "k="
                                      "\"v\""
                                      "," SCOPE(
                                          "pr"
                                          "of"
                                          "co"
                                          "l") "} 2\n"
                                               "# HELP target_info T.\n# TYPE target_info gauge\n"
                                               "target_info 1\n");
#undef SCOPE
    text_deinit(&page);
    metrics_free(metrics);
}

static void levels_leave_metrics_out(void **state)
{
    (void)state;
    static const struct {
        enum metrics_level level;
        const char *page;
    } cases[] = {
#define HEAD(name, labels) "# HELP " name " H.\n# TYPE " name " counter\n" name labels " 0\n"
        {METRICS_BASIC, HEAD("otelcol_exporter_sent_spans", "")},
        {METRICS_NORMAL, HEAD("otelcol_exporter_sent_spans", "")
                             HEAD("otelcol_processor_batch_timeout_trigger_send", "")},
        {METRICS_DETAILED, HEAD("http_requests", "") HEAD("otelcol_exporter_sent_spans", "")
                               HEAD("otelcol_processor_batch_timeout_trigger_send", "")},
#undef HEAD
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct metrics *metrics = metrics_new(1);
        metrics_set_level(metrics, cases[i].level);
        metrics_counter(metrics, "http_requests", "H.", "");
        metrics_counter(metrics, "otelcol_exporter_sent_spans", "H.", "");
        metrics_counter(metrics, "otelcol_processor_batch_timeout_trigger_send", "H.", "");
        assert_int_equal(metrics_are_detailed(metrics), cases[i].level == METRICS_DETAILED);
        assert_page(metrics, cases[i].page);
        metrics_free(metrics);
    }
}

static void labels_of_histograms_stand_before_le(void **state)
{
    (void)state;
    struct metrics *metrics = metrics_new(1);
    histogram_record(metrics_histogram(metrics, "h", "H.", "k=\"v\"", bounds, 1), 0, 1);
    assert_page(metrics, "# HELP h H.\n# TYPE h histogram\n"
                         "h_bucket{k=\"v\",le=\"1\"} 1\n"
                         "h_bucket{k=\"v\",le=\"+Inf\"} 1\n"
                         "h_sum{k=\"v\"} 1\n"
                         "h_count{k=\"v\"} 1\n");
    metrics_free(metrics);
}

static void the_same_name_and_labels_are_the_same_series(void **state)
{
    (void)state;
    struct metrics *metrics = metrics_new(1);
    struct counter *counter = metrics_counter(metrics, "c", "C.", "a=\"1\"");
    assert_ptr_equal(counter, metrics_counter(metrics, "c", "C.", "a=\"1\""));
    assert_ptr_not_equal(counter, metrics_counter(metrics, "c", "C.", "a=\"2\""));
    struct gauge *gauge = metrics_gauge(metrics, "g", "G.", "");
    gauge_add(gauge, 5);
    gauge_add(metrics_gauge(metrics, "g", "G.", ""), -7);
    assert_int_equal(gauge_read(gauge), -2);
    struct histogram *histogram = metrics_histogram(metrics, "h", "H.", "", bounds, 3);
    assert_ptr_equal(histogram, metrics_histogram(metrics, "h", "H.", "", bounds, 3));
    metrics_free(metrics);
}

static void labels_are_escaped(void **state)
{
    (void)state;
    struct text labels = {0};
    metrics_label(&labels, "a", "plain");
    metrics_label(&labels, "b", "\"quoted\" back\\slash\nline");
    metrics_label(&labels, "c", "");
    assert_string_equal(text_string(&labels),
                        "a=\"plain\",b=\"\\\"quoted\\\" back\\\\slash\\nline\",c=\"\"");
    text_deinit(&labels);
}

static void values_can_be_asked_for(void **state)
{
    (void)state;
    struct metrics *metrics = metrics_new(3);
    double number = 2.5;
    for (unsigned worker = 0; worker < 3; worker++)
        counter_add(metrics_counter(metrics, "c", "C.", "a=\"1\""), worker, 10 + worker);
    metrics_gauge_from(metrics, "f", "F.", "", read_number, &number);
    assert_true(metrics_value(metrics, "c", "a=\"1\"") == 33);
    assert_true(metrics_value(metrics, "c", "") == 0);
    assert_true(metrics_value(metrics, "f", "") == 2.5);
    assert_true(metrics_value(metrics, "nobody", "") == 0);
    counter_add(metrics_counter(metrics, "c", "C.", "a=\"1\",b=\"2\""), 0, 100);
    counter_add(metrics_counter(metrics, "c", "C.", "aa=\"1\",b=\"a=\\\"1\\\",\""), 0, 1000);
    assert_true(metrics_sum(metrics, "c", "a=\"1\"") == 133);
    assert_true(metrics_sum(metrics, "c", "b=\"2\"") == 100);
    assert_true(metrics_sum(metrics, "c", "") == 1133);
    assert_true(metrics_sum(metrics, "nobody", "") == 0);
    metrics_free(metrics);
}

static void forgetting_removes_what_belongs_to_the_context(void **state)
{
    (void)state;
    struct metrics *metrics = metrics_new(1);
    double mine = 1, other = 2;
    metrics_gauge_from(metrics, "f", "F.", "a=\"1\"", read_number, &mine);
    metrics_gauge_from(metrics, "f", "F.", "a=\"2\"", read_number, &other);
    metrics_gauge_from(metrics, "f", "F.", "a=\"3\"", read_number, &mine);
    metrics_gauge_from(metrics, "g", "G.", "", read_number, &mine);
    metrics_forget(metrics, &mine);
    assert_page(metrics, "# HELP f F.\n# TYPE f gauge\nf{a=\"2\"} 2\n");
    metrics_gauge_from(metrics, "g", "G.", "", read_number, &other); /* it can be added again */
    assert_true(metrics_value(metrics, "g", "") == 2);
    metrics_free(metrics);
}

static void many_families_are_found(void **state)
{
    (void)state;
    struct metrics *metrics = metrics_new(1);
    for (unsigned i = 0; i < 200; i++) {
        char name[16];
        snprintf(name, sizeof name, "m%03u", i * 37 % 200);
        counter_add(metrics_counter(metrics, name, "M.", ""), 0, i * 37 % 200);
    }
    struct text page = {0};
    metrics_write(metrics, 0, &page);
    const char *at = text_string(&page);
    for (int i = 0; i < 200; i++) {
        char line[32];
        snprintf(line, sizeof line, "\nm%03d %d\n", i, i);
        at = strstr(at, line);
        assert_non_null(at); /* each once, and in order */
    }
    text_deinit(&page);
    metrics_free(metrics);
}

enum { THREADS = 4, ADDS = 20000 };

struct adder {
    struct metrics *metrics;
    unsigned worker;
};

/* Each thread is a worker. It creates the series, which all threads share, and adds to its own
 * cell. */
static void *add_many(void *context)
{
    struct adder *adder = context;
    struct counter *counter = metrics_counter(adder->metrics, "c", "C.", "");
    struct gauge *gauge = metrics_gauge(adder->metrics, "g", "G.", "");
    struct histogram *histogram = metrics_histogram(adder->metrics, "h", "H.", "", bounds, 3);
    for (int i = 0; i < ADDS; i++) {
        counter_add(counter, adder->worker, 2);
        gauge_add(gauge, adder->worker % 2 ? -1 : 1);
        histogram_record(histogram, adder->worker, i % 4);
    }
    return NULL;
}

static void adding_and_printing_at_once_loses_nothing(void **state)
{
    (void)state;
    struct metrics *metrics = metrics_new(THREADS);
    pthread_t threads[THREADS];
    struct adder adders[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        adders[i] = (struct adder){metrics, i};
        pthread_create(&threads[i], NULL, add_many, &adders[i]);
    }
    for (int i = 0; i < 50; i++) {
        struct text page = {0};
        metrics_write(metrics, 0, &page);
        text_deinit(&page);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_page(metrics, "# HELP c C.\n# TYPE c counter\nc 160000\n"
                         "# HELP g G.\n# TYPE g gauge\ng 0\n"
                         "# HELP h H.\n# TYPE h histogram\n"
                         "h_bucket{le=\"1\"} 40000\n"
                         "h_bucket{le=\"2.5\"} 60000\n"
                         "h_bucket{le=\"1e+06\"} 80000\n"
                         "h_bucket{le=\"+Inf\"} 80000\n"
                         "h_sum 120000\n"
                         "h_count 80000\n");
    metrics_free(metrics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_summed_gauge_is_that_of_all),
        cmocka_unit_test(the_page_is_sorted_and_complete),
        cmocka_unit_test(a_newer_gauge_replaces_an_older_one_until_it_goes),
        cmocka_unit_test(counters_get_their_type_suffix_where_asked),
        cmocka_unit_test(suffixes_and_scopes_are_the_collectors),
        cmocka_unit_test(levels_leave_metrics_out),
        cmocka_unit_test(labels_of_histograms_stand_before_le),
        cmocka_unit_test(the_same_name_and_labels_are_the_same_series),
        cmocka_unit_test(labels_are_escaped),
        cmocka_unit_test(values_can_be_asked_for),
        cmocka_unit_test(forgetting_removes_what_belongs_to_the_context),
        cmocka_unit_test(many_families_are_found),
        cmocka_unit_test(adding_and_printing_at_once_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
