/* What the values of a profile measure (core/data/profile_measure.h). */
#include "core/data/profile_measure.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static struct profile_values values_of(const char *type, const char *unit, const char *period_type,
                                       const char *period_unit, int64_t period)
{
    return (struct profile_values){slice_of_string(type), slice_of_string(unit),
                                   slice_of_string(period_type), slice_of_string(period_unit),
                                   period};
}

static const struct {
    const char *type, *unit, *period_type, *period_unit;
    int64_t period;
    int64_t cpu_ns, wall_ns; /* of a value */
} cases[] = {
    {"cpu", "nanoseconds", "cpu", "nanoseconds", 10, 1, 0},
    {"cpu", "nanoseconds", "wall", "nanoseconds", 10, 1, 0}, /* Node */
    {"cpu", "ns", "", "", 0, 1, 0},
    {"cpu", "microseconds", "", "", 0, 1000, 0},
    {"cpu", "us", "", "", 0, 1000, 0},
    {"cpu", "\xc2\xb5s", "", "", 0, 1000, 0},
    {"cpu", "milliseconds", "", "", 0, 1000000, 0},
    {"cpu", "ms", "", "", 0, 1000000, 0},
    {"cpu", "seconds", "", "", 0, 1000000000, 0},
    {"cpu", "s", "", "", 0, 1000000000, 0},
    {"itimer", "ns", "itimer", "ns", 10, 1, 0}, /* Java over OTLP */
    {"ctimer", "ns", "ctimer", "ns", 10, 1, 0},
    {"samples", "count", "cpu", "nanoseconds", 50, 50, 0}, /* eBPF */
    {"samples", "count", "cpu", "milliseconds", 50, 50000000, 0},
    {"samples", "count", "itimer", "ns", 50, 50, 0},
    {"cpu", "count", "cpu", "ns", 50, 50, 0},
    {"itimer", "count", "itimer", "ns", 50, 50, 0},
    {"samples", "count", "cpu", "s", INT64_MAX, INT64_MAX, 0},
    {"wall", "nanoseconds", "wall", "nanoseconds", 10, 0, 1},
    {"wall", "ms", "wall", "ms", 10, 0, 1000000},
    {"wall", "count", "wall", "ns", 10, 0, 10},
    {"samples", "count", "wall", "nanoseconds", 10, 0, 10},
    {"samples", "count", "cpu", "nanoseconds", 0, 0, 0},
    {"samples", "count", "cpu", "nanoseconds", -1, 0, 0},
    {"samples", "count", "", "", 10, 0, 0},
    {"samples", "count", "cpu", "cycles", 10, 0, 0},
    {"samples", "bytes", "cpu", "nanoseconds", 10, 0, 0},
    {"cpu", "count", "", "", 10, 0, 0},
    {"cpu", "cores", "cpu", "nanoseconds", 10, 0, 0},
    {"cpu", "", "cpu", "nanoseconds", 10, 0, 0},
    {"off_cpu", "nanoseconds", "", "", 0, 0, 0},
    {"cycles", "count", "cpu", "nanoseconds", 10, 0, 0},
    {"delay", "nanoseconds", "contentions", "count", 1, 0, 0},
    {"", "", "", "", 0, 0, 0},
};

static void test_values_of_profilers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct profile_values values = values_of(cases[i].type, cases[i].unit, cases[i].period_type,
                                                 cases[i].period_unit, cases[i].period);
        struct measured_time cpu = measured_cpu_time(&values), wall = measured_wall_time(&values);
        assert_int_equal(cpu.ns_per_value, cases[i].cpu_ns);
        assert_int_equal(wall.ns_per_value, cases[i].wall_ns);
        assert_int_equal(cpu.rank > 0, cases[i].cpu_ns > 0);
        assert_int_equal(wall.rank > 0, cases[i].wall_ns > 0);
    }
}

/* Ways to measure the same CPU time, in the order in which they count. */
static void test_the_best_measure_counts(void **state)
{
    static const char *const order[][4] = {
        {"cpu", "nanoseconds", "cpu", "nanoseconds"},
        {"cpu", "ms", "cpu", "nanoseconds"},
        {"ctimer", "ns", "ctimer", "ns"},
        {"itimer", "ns", "itimer", "ns"},
        {"itimer", "s", "itimer", "ns"},
        {"cpu", "count", "cpu", "ns"},
        {"samples", "count", "cpu", "ns"},
        {"itimer", "count", "itimer", "ns"},
        {"samples", "count", "itimer", "ns"},
        {"wall", "ns", "wall", "ns"},
    };
    enum { COUNT = sizeof order / sizeof *order, OF_CPU = COUNT - 1 };
    struct measured_time times[COUNT];
    (void)state;
    for (int i = 0; i < COUNT; i++) {
        struct profile_values values =
            values_of(order[i][0], order[i][1], order[i][2], order[i][3], 10);
        times[i] = measured_cpu_time(&values);
    }
    for (int own = 0; own < COUNT; own++)
        for (int other = 0; other < COUNT; other++)
            assert_int_equal(measured_time_yields(times[own], times[other]),
                             own < OF_CPU && other < own);
}

enum { FIRST = 1, SECOND = 2, BOTH = 3, NONE = 0 };
static const struct {
    struct {
        const char *type, *unit, *period_type;
    } profiles[2];
    unsigned cpu, samples; /* which of the two count */
} uploads[] = {
    {{{"samples", "count", "cpu"}, {"cpu", "nanoseconds", "cpu"}}, SECOND, FIRST}, /* Go */
    {{{"samples", "count", ""}, {"cpu", "nanoseconds", "cpu"}}, SECOND, FIRST},
    {{{"samples", "count", "cpu"}, {"cpu", "nanoseconds", ""}}, SECOND, FIRST},
    {{{"samples", "count", ""}, {"cpu", "nanoseconds", ""}}, SECOND, FIRST},
    {{{"cpu", "nanoseconds", "cpu"}, {"samples", "count", ""}}, FIRST, SECOND},
    {{{"cpu", "nanoseconds", "cpu"}, {"itimer", "nanoseconds", "cpu"}}, FIRST, FIRST},
    {{{"cpu", "nanoseconds", "cpu"}, {"cpu", "nanoseconds", "cpu"}}, BOTH, FIRST},
    {{{"samples", "count", "cpu"}, {"cpu", "count", "cpu"}}, SECOND, FIRST},
    {{{"samples", "count", "cpu"}, {"samples", "count", "cpu"}}, BOTH, BOTH},
    {{{"samples", "count", "wall"}, {"wall", "nanoseconds", "wall"}}, NONE, FIRST},
    {{{"cpu", "nanoseconds", "cpu"}, {"wall", "nanoseconds", "wall"}}, FIRST, BOTH},
    {{{"samples", "count", "cpu"}, {"off_cpu", "nanoseconds", ""}}, FIRST, BOTH},
    {{{"samples", "count", ""}, {"alloc_space", "bytes", "space"}}, NONE, BOTH},
    {{{"samples", "count", ""}, {"alloc_space", "bytes", ""}}, NONE, BOTH},
};

static void test_an_upload_counts_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof uploads / sizeof *uploads; i++) {
        struct profile_values values[2];
        struct profile_measure measures[2];
        unsigned cpu = 0, samples = 0;
        for (int k = 0; k < 2; k++) {
            const char *period_type = uploads[i].profiles[k].period_type;
            values[k] = values_of(uploads[i].profiles[k].type, uploads[i].profiles[k].unit,
                                  period_type, *period_type ? "nanoseconds" : "", 10);
            measures[k] = profile_measure_of(&values[k]);
        }
        bool same_period = slice_equal(values[0].period_type, values[1].period_type);
        for (unsigned k = 0; k < 2; k++) {
            struct profile_role role = {.yields_cpu = false};
            profile_role_compare(&role, &measures[k], &measures[1 - k], k == 1, same_period);
            cpu |= measures[k].cpu.rank > 0 && !role.yields_cpu ? 1U << k : 0;
            samples |= role.yields_samples ? 0 : 1U << k;
        }
        assert_int_equal(cpu, uploads[i].cpu);
        assert_int_equal(samples, uploads[i].samples);
    }
}

static struct timed_profile timed(const char *type, const char *unit, const char *period_type,
                                  uint64_t time_ns)
{
    struct profile_values values =
        values_of(type, unit, period_type, *period_type ? "nanoseconds" : "", 10);
    return (struct timed_profile){time_ns, measured_time_of(&values)};
}

static bool counts(const struct timed_profile *profiles, size_t count, size_t i)
{
    struct measured_time time = timed_profile_settle(profiles, count, i);
    assert_true(time.rank == 0 || time.ns_per_value == profiles[i].measured.ns_per_value);
    return time.rank > 0;
}

/* Also if only one of them has a period type, and if profiles of other times are between them. */
static void test_the_same_time_counts_once(void **state)
{
    (void)state;
    const struct timed_profile profiles[] = {
        timed("samples", "count", "cpu", 1),     timed("cpu", "nanoseconds", "cpu", 2),
        timed("alloc_space", "bytes", "", 1),    timed("cpu", "nanoseconds", "", 1),
        timed("wall", "nanoseconds", "wall", 1), timed("samples", "count", "wall", 1),
    };
    static const bool expected[] = {false, true, false, true, true, false};
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(counts(profiles, 6, i), expected[i]);
}

static void test_an_upload_is_near(void **state)
{
    enum { COUNT = PROFILE_UPLOAD_REACH + 2 };
    struct timed_profile profiles[COUNT] = {{0}};
    (void)state;
    profiles[0] = timed("cpu", "nanoseconds", "", 0);
    profiles[COUNT - 2] = profiles[COUNT - 1] = timed("itimer", "nanoseconds", "", 0);
    assert_true(counts(profiles, COUNT, 0));
    assert_false(counts(profiles, COUNT, COUNT - 2));
    assert_true(counts(profiles, COUNT, COUNT - 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_of_profilers),
        cmocka_unit_test(test_the_best_measure_counts),
        cmocka_unit_test(test_an_upload_counts_once),
        cmocka_unit_test(test_the_same_time_counts_once),
        cmocka_unit_test(test_an_upload_is_near),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
