#include "core/base/clock.h"
#include "core/pipeline/component_status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { TRACES = 0, PROFILES = 1 };

static struct component_status status;
static struct status_source one, other;

static int set_up(void **state)
{
    (void)state;
    status = (struct component_status){0};
    one = other = (struct status_source){0};
    clock_fix_wall(100);
    status_source_add(&one, &status, TRACES);
    status_source_add(&other, &status, STATUS_ALL_SIGNALS);
    component_status_set(&status, STATUS_OK, NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    status_source_remove(&one);
    status_source_remove(&other);
    status_source_remove(&other); /* which does nothing */
    assert_int_equal(status.sources.count, 0);
    clock_fix_wall(0);
    return 0;
}

static void expect(int signal, enum status_kind kind, uint64_t since_ns, const char *error)
{
    struct status_event event;
    component_status_read(&status, signal, &event);
    assert_string_equal(status_name(event.status), status_name(kind));
    assert_int_equal(event.since_ns, since_ns);
    assert_string_equal(event.error, error);
}

static void settle(struct status_source *source, enum grpc_code code, const char *text)
{
    struct verdict verdict = verdict_of(code, "%s", text);
    status_source_settle(source, &verdict);
}

static void an_error_lasts_until_a_success(void **state)
{
    (void)state;
    expect(TRACES, STATUS_OK, 100, "");
    clock_fix_wall(200);
    settle(&one, GRPC_UNAVAILABLE, "dead");
    clock_fix_wall(300);
    settle(&one, GRPC_UNAVAILABLE, "still dead");
    expect(TRACES, STATUS_RECOVERABLE_ERROR, 200,
           "rpc error: code = Unavailable desc = still dead");
    clock_fix_wall(400);
    settle(&one, GRPC_OK, "");
    settle(&one, GRPC_OK, "");
    expect(TRACES, STATUS_OK, 400, "");
    char last[STATUS_ERROR_MAX];
    assert_int_equal(component_status_last_error(&status, TRACES, last), 300);
    assert_string_equal(last, "rpc error: code = Unavailable desc = still dead");
}

static void expect_change(enum grpc_code code, enum status_change change, uint64_t failures)
{
    struct verdict verdict = verdict_of(code, "x");
    struct status_outage outage = status_source_settle(&one, &verdict);
    assert_int_equal(outage.change, change);
    assert_int_equal(outage.failures, failures);
}

/* So that the log has one line for each. */
static void a_change_is_told_once(void **state)
{
    (void)state;
    for (int round = 0; round < 2; round++) {
        expect_change(GRPC_OK, STATUS_UNCHANGED, 0);
        expect_change(GRPC_UNAVAILABLE, STATUS_WENT_AWAY, 1);
        expect_change(GRPC_UNAUTHENTICATED, STATUS_UNCHANGED, 2);
        expect_change(GRPC_UNAVAILABLE, STATUS_UNCHANGED, 3);
        expect_change(GRPC_OK, STATUS_CAME_BACK, 3);
        expect_change(GRPC_INVALID_ARGUMENT, STATUS_UNCHANGED, 0); /* about the data */
        expect_change(GRPC_UNAVAILABLE, STATUS_WENT_AWAY, 1);
        expect_change(GRPC_INVALID_ARGUMENT, STATUS_CAME_BACK, 1);
    }
}

static void a_signal_has_its_own(void **state)
{
    (void)state;
    clock_fix_wall(200);
    status_source_fail(&one, STATUS_RECOVERABLE_ERROR, "no traces");
    expect(TRACES, STATUS_RECOVERABLE_ERROR, 200, "no traces");
    expect(PROFILES, STATUS_OK, 100, "");
    expect(STATUS_ALL_SIGNALS, STATUS_RECOVERABLE_ERROR, 200, "no traces");
    char last[STATUS_ERROR_MAX];
    assert_int_equal(component_status_last_error(&status, PROFILES, last), 0);
    assert_string_equal(last, "");
    status_source_fail(&other, STATUS_RECOVERABLE_ERROR, "nothing");
    expect(PROFILES, STATUS_RECOVERABLE_ERROR, 200, "nothing");
}

static void the_worst_counts_and_then_the_first(void **state)
{
    (void)state;
    clock_fix_wall(300);
    status_source_fail(&other, STATUS_RECOVERABLE_ERROR, "later");
    clock_fix_wall(200);
    status_source_fail(&one, STATUS_RECOVERABLE_ERROR, "earlier");
    expect(TRACES, STATUS_RECOVERABLE_ERROR, 200, "earlier");
    clock_fix_wall(400);
    status_source_fail(&other, STATUS_PERMANENT_ERROR, "worse");
    expect(TRACES, STATUS_PERMANENT_ERROR, 400, "worse");
    status_source_succeed(&other);
    expect(TRACES, STATUS_RECOVERABLE_ERROR, 200, "earlier");
}

/* Otherwise a client could decide what the component's status is. */
static void refused_data_is_not_an_error_of_the_backend(void **state)
{
    (void)state;
    static const enum grpc_code codes[] = {GRPC_INVALID_ARGUMENT, GRPC_RESOURCE_EXHAUSTED,
                                           GRPC_FAILED_PRECONDITION};
    char last[STATUS_ERROR_MAX];
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        settle(&one, GRPC_UNAVAILABLE, "dead");
        settle(&one, codes[i], "bad data");
        expect(TRACES, STATUS_OK, 100, "");
    }
    assert_int_equal(component_status_last_error(&status, TRACES, last), 100);
    assert_non_null(strstr(last, "bad data"));
}

static void what_needs_action_is_permanent(void **state)
{
    (void)state;
    static const enum grpc_code codes[] = {GRPC_UNAUTHENTICATED, GRPC_PERMISSION_DENIED,
                                           GRPC_UNIMPLEMENTED, GRPC_NOT_FOUND};
    struct status_event event;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        settle(&one, codes[i], "x");
        component_status_read(&status, TRACES, &event);
        assert_int_equal(event.status, STATUS_PERMANENT_ERROR);
        settle(&one, GRPC_OK, "");
    }
    settle(&one, GRPC_INTERNAL, "status 500");
    component_status_read(&status, TRACES, &event);
    assert_int_equal(event.status, STATUS_RECOVERABLE_ERROR);
}

static void the_life_comes_first(void **state)
{
    (void)state;
    status_source_fail(&one, STATUS_PERMANENT_ERROR, "dead");
    clock_fix_wall(200);
    component_status_set(&status, STATUS_STOPPING, NULL);
    expect(TRACES, STATUS_STOPPING, 200, "");
    component_status_set(&status, STATUS_FATAL_ERROR, "cannot listen");
    component_status_set(&status, STATUS_STOPPED, NULL);
    expect(TRACES, STATUS_FATAL_ERROR, 200, "cannot listen");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(an_error_lasts_until_a_success),
        TEST(a_change_is_told_once),
        TEST(a_signal_has_its_own),
        TEST(the_worst_counts_and_then_the_first),
        TEST(refused_data_is_not_an_error_of_the_backend),
        TEST(what_needs_action_is_permanent),
        TEST(the_life_comes_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
