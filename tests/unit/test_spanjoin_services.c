/* One process, one service (docs/spanjoin.md, "One process, one service"). */
#include "processors/spanjoin/spanjoin.h"
#include "tests/unit/spanjoin_fixture.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { TRACE = 7, SPAN = 42, OTHER = 43, NOTHING = 0 };

static void send_span(struct join *join, const char *service, uint64_t span)
{
    struct request request;
    traces_begin(&request, service);
    traces_span(&request, TRACE, span, WALL, WALL + SECOND, "work");
    join_send(join, &request);
}

static void add_profile(struct request *request, const char *type, uint64_t span)
{
    profiles_profile(request, type, "nanoseconds");
    SampleMessage *sample = profiles_sample(request, 1);
    sample_value(request, sample, 30);
    if (span != NOTHING)
        sample_link(request, sample, TRACE, span);
}

/* An upload of one sample. app NULL: its resource has no attributes. */
static void send_upload(struct join *join, const char *app, const char *type, uint64_t span)
{
    struct request request;
    profiles_begin(&request);
    if (app)
        profiles_resource_string(&request, "service.name", app);
    add_profile(&request, type, span);
    join_send(join, &request);
}

/* Checks the service of a resource of the last request that has left. NULL: it has none. */
static void expect_service(struct join *join, size_t resource, const char *service)
{
    struct request out;
    assert_true(join->fixture.recorder.count > 0);
    const struct recorded *last = &join->fixture.recorder.items[join->fixture.recorder.count - 1];
    assert_int_equal(last->signal, SIGNAL_PROFILES);
    request_read_profiles(&out, slice_of(last->bytes, last->size));
    const char *name = resource_attribute(&out, resource, "service.name");
    assert_string_equal(name ? name : "none", service ? service : "none");
    request_free(&out);
}

static double counted(struct join *join, const char *result)
{
    char labels[64];
    snprintf(labels, sizeof labels, "spanjoin=\"spanjoin\",result=\"%s\"", result);
    return metrics_value(join->fixture.process.metrics, "profcol_spanjoin_service_samples", labels);
}

static void memory_follows_cpu(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "");
    send_upload(&join, "app", "alloc_space", NOTHING);
    expect_service(&join, 0, "app"); /* not learned yet */
    send_span(&join, "shop", SPAN);
    send_upload(&join, "app", "cpu", SPAN);
    expect_service(&join, 0, "shop");
    send_upload(&join, "app", "alloc_space", NOTHING);
    expect_service(&join, 0, "shop");
    send_upload(&join, "other", "alloc_space", NOTHING);
    expect_service(&join, 0, "other");
    assert_true(counted(&join, "renamed") == 2);
    assert_true(counted(&join, "conflict") == 0);
    fixture_deinit(&join.fixture);
}

static void is_learned_when_a_span_arrives_later(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "");
    send_upload(&join, "app", "cpu", SPAN);
    assert_int_equal(join.fixture.recorder.count, 0);
    send_span(&join, "shop", SPAN);
    expect_service(&join, 0, "shop");
    fixture_deinit(&join.fixture);
}

static void profiles_without_a_service_get_one(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "");
    send_span(&join, "shop", SPAN);
    send_upload(&join, NULL, "cpu", SPAN);
    expect_service(&join, 0, "shop");
    fixture_deinit(&join.fixture);
}

static void each_resource_gets_its_own(void **state)
{
    (void)state;
    struct join join;
    struct request request;
    join_init(&join, "");
    send_span(&join, "shop", SPAN);
    send_span(&join, "cart", OTHER);
    profiles_begin(&request);
    profiles_resource_string(&request, "service.name", "a");
    add_profile(&request, "cpu", SPAN);
    profiles_resource(&request);
    profiles_resource_string(&request, "service.name", "b");
    profiles_profile(&request, "cpu", "nanoseconds"); /* without samples */
    profiles_resource(&request);
    profiles_resource_string(&request, "service.name", "c");
    profiles_resource_string(&request, "host.name", "h");
    add_profile(&request, "cpu", OTHER);
    join_send(&join, &request);
    expect_service(&join, 0, "shop");
    expect_service(&join, 1, "b");
    expect_service(&join, 2, "cart");
    fixture_deinit(&join.fixture);
}

static void two_services_are_counted(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "");
    send_span(&join, "shop", SPAN);
    send_span(&join, "cart", OTHER);
    send_upload(&join, "app", "cpu", SPAN);
    expect_service(&join, 0, "shop");
    send_upload(&join, "app", "cpu", OTHER);
    expect_service(&join, 0, "app");
    send_upload(&join, "app", "alloc_space", NOTHING);
    expect_service(&join, 0, "app");
    assert_true(counted(&join, "renamed") == 1);
    assert_true(counted(&join, "conflict") == 2);
    fixture_deinit(&join.fixture);
}

/* Nothing has named the first one for a window, while uploads went on. */
static void a_process_changes_its_service(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "window: 100s");
    send_span(&join, "shop", SPAN);
    send_upload(&join, "app", "cpu", SPAN);
    expect_service(&join, 0, "shop");
    for (int i = 0; i < 3; i++) {
        fixture_advance(&join.fixture, 40 * SECOND);
        send_upload(&join, "app", "alloc_space", NOTHING);
        expect_service(&join, 0, "shop");
    }
    send_span(&join, "cart", OTHER);
    send_upload(&join, "app", "cpu", OTHER);
    expect_service(&join, 0, "cart");
    send_upload(&join, "app", "alloc_space", NOTHING);
    expect_service(&join, 0, "cart");
    assert_true(counted(&join, "conflict") == 0);
    fixture_deinit(&join.fixture);
}

static void a_conflict_lasts_for_a_window(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "window: 100s");
    send_span(&join, "shop", SPAN);
    send_upload(&join, "app", "cpu", SPAN);
    fixture_advance(&join.fixture, 40 * SECOND);
    send_span(&join, "cart", OTHER);
    send_upload(&join, "app", "cpu", OTHER);
    expect_service(&join, 0, "app");
    fixture_advance(&join.fixture, 50 * SECOND);
    send_upload(&join, "app", "cpu", OTHER);
    expect_service(&join, 0, "app");
    fixture_advance(&join.fixture, 20 * SECOND);
    send_upload(&join, "app", "cpu", OTHER);
    expect_service(&join, 0, "cart");
    assert_true(counted(&join, "conflict") == 2);
    fixture_deinit(&join.fixture);
}

static void equal_names_change_nothing(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "samples: {attributes: []}");
    send_span(&join, "shop", SPAN);
    struct request request;
    profiles_begin(&request);
    profiles_resource_string(&request, "service.name", "shop");
    add_profile(&request, "cpu", SPAN);
    struct slice sent = request_encode(&request);
    struct probe probe;
    fixture_consume(&join.fixture, join.profiles->nodes[0], sent, request.items, &probe);
    fixture_advance(&join.fixture, 0);
    const struct recorded *last = &join.fixture.recorder.items[join.fixture.recorder.count - 1];
    assert_int_equal(last->size, sent.size);
    assert_memory_equal(last->bytes, sent.data, sent.size);
    request_free(&request);
    assert_true(counted(&join, "renamed") == 0);
    fixture_deinit(&join.fixture);
}

static void names_stay_if_the_profile_decides(void **state)
{
    (void)state;
    struct join join;
    join_init(&join, "service_from: profile");
    send_span(&join, "shop", SPAN);
    send_upload(&join, "app", "cpu", SPAN);
    expect_service(&join, 0, "app");
    fixture_deinit(&join.fixture);
}

/* The id of the span is removed from the same resource. */
static void a_resource_that_names_a_span_is_renamed(void **state)
{
    (void)state;
    struct join join;
    struct request request;
    join_init(&join, "");
    send_span(&join, "shop", SPAN);
    profiles_begin(&request);
    profiles_resource_string(&request, "span_id", span_hex(SPAN));
    profiles_resource_string(&request, "service.name", "app");
    add_profile(&request, "cpu", NOTHING);
    join_send(&join, &request);
    expect_service(&join, 0, "shop");
    fixture_deinit(&join.fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_follows_cpu),
        cmocka_unit_test(is_learned_when_a_span_arrives_later),
        cmocka_unit_test(profiles_without_a_service_get_one),
        cmocka_unit_test(each_resource_gets_its_own),
        cmocka_unit_test(two_services_are_counted),
        cmocka_unit_test(a_process_changes_its_service),
        cmocka_unit_test(a_conflict_lasts_for_a_window),
        cmocka_unit_test(equal_names_change_nothing),
        cmocka_unit_test(names_stay_if_the_profile_decides),
        cmocka_unit_test(a_resource_that_names_a_span_is_renamed),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    /* Jobs process each request, and update the index after they have changed it. */
    spanjoin_set_large_bytes(0);
    return failed + cmocka_run_group_tests_name("large", tests, NULL, NULL);
}
