#include "tests/unit/pipeline_fixture.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

extern const struct component_type memory_limiter_processor_type;

static struct fixture_place *place(struct fixture *f, const char *id, const char *settings)
{
    struct text yaml = {0};
    text_printf(&yaml, "processors: {%s: {check_interval: 1s, %s}}", id, settings);
    struct fixture_place *made =
        fixture_place(f, &memory_limiter_processor_type, id, text_string(&yaml), id, SIGNAL_TRACES);
    text_deinit(&yaml);
    return made;
}

/* {settings, limit of the process in MiB, limit of requests in MiB}, if the system has 1 GiB */
static const struct {
    const char *settings;
    size_t limit_mib, requests_mib;
} shares[] = {
    {"limit_mib: 400, spike_limit_mib: 80", 400, 180}, /* (320 - 50) * 2 / 3 */
    {"limit_mib: 400", 400, 180},
    {"limit_mib: 400, limit_percentage: 10", 400, 180},
    {"limit_mib: 4000, spike_limit_mib: 100", 1024, 530}, /* more than the system has */
    {"limit_percentage: 80, spike_limit_percentage: 25", 819, 307},
    {"limit_percentage: 50", 512, 230},
    {"limit_mib: 400, spike_limit_mib: 390", 400, 2}, /* a quarter of what is left */
};

static void settings_become_the_limits_of_the_process(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        struct fixture f;
        fixture_init(&f, 1);
        place(&f, "memory_limiter", shares[i].settings);
        assert_int_equal(f.process.memory_limit_bytes >> 20, shares[i].limit_mib);
        assert_int_equal(f.budget.limit_bytes >> 20, shares[i].requests_mib);
        fixture_deinit(&f);
    }
}

static void the_largest_limiter_is_that_of_the_process(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    f.process.memory_limit_bytes = f.budget.limit_bytes = 1 << 20; /* without a limiter */
    place(&f, "memory_limiter/a", "limit_mib: 200");
    place(&f, "memory_limiter/b", "limit_mib: 400");
    place(&f, "memory_limiter/c", "limit_mib: 300");
    assert_int_equal(f.process.memory_limit_bytes >> 20, 400);
    assert_int_equal(f.budget.limit_bytes >> 20, 180);
    fixture_deinit(&f);
}

static void offer(struct fixture *f, struct fixture_place *to, struct probe *probe)
{
    struct buffer *request = fixture_span("a");
    fixture_consume(f, to->nodes[0], buffer_slice(request), 1, probe);
    buffer_unref(request);
}

static void a_smaller_limiter_refuses_in_its_own_pipeline(void **state)
{
    (void)state;
    struct fixture f;
    struct probe probe;
    fixture_init(&f, 1);
    struct fixture_place *small = place(&f, "memory_limiter/small", "limit_mib: 100");
    struct fixture_place *large = place(&f, "memory_limiter/large", "limit_mib: 400");
    offer(&f, small, &probe);
    assert_true(verdict_is_ok(&probe.verdict));
    budget_charge(&f.budget, 60 << 20);
    offer(&f, small, &probe);
    assert_int_equal(probe.verdict.code, GRPC_UNAVAILABLE);
    assert_int_equal(probe.verdict.retry_after_ns, 1000000000);
    assert_string_equal(probe.verdict.text, "data refused due to high memory usage");
    offer(&f, large, &probe);
    assert_true(verdict_is_ok(&probe.verdict));
    budget_release(&f.budget, 60 << 20);
    offer(&f, small, &probe);
    assert_true(verdict_is_ok(&probe.verdict));
    fixture_deinit(&f);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    const struct component_type *type = &memory_limiter_processor_type;
    fixture_refuses(type, "{limit_mib: 100}", "check_interval: must be greater than zero");
    fixture_refuses(type, "{check_interval: 1s}",
                    "limit_mib or limit_percentage must be greater than zero");
    fixture_refuses(type, "{check_interval: 1s, limit_mib: 10, spike_limit_mib: 10}",
                    "spike_limit_mib: must be smaller than limit_mib");
    fixture_refuses(type, "{check_interval: 1s, limit_percentage: 10, spike_limit_percentage: 25}",
                    "spike_limit_percentage: must be smaller than limit_percentage");
    fixture_refuses(type, "{check_interval: 1s, limit_percentage: 101}", "limit_percentage");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_become_the_limits_of_the_process),
        cmocka_unit_test(the_largest_limiter_is_that_of_the_process),
        cmocka_unit_test(a_smaller_limiter_refuses_in_its_own_pipeline),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
