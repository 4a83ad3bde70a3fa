#include "core/base/time_zone.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct arena arena;

static int begin(void **state)
{
    (void)state;
    arena_init(&arena, NULL);
    return 0;
}

static int end(void **state)
{
    (void)state;
    arena_deinit(&arena);
    return 0;
}

/* What the Collector's Time() returns for these (Go 1.25's time.Date). */
static void finds_the_time_of_a_clock(void **state)
{
    static const struct {
        const char *zone;
        int64_t local, expected; /* seconds since 1970 */
    } cases[] = {
        {"UTC", 1000, 1000},
        {"Europe/Berlin", 1709164800, 1709161200},       /* winter */
        {"Europe/Berlin", 1722254400, 1722247200},       /* summer */
        {"Europe/Berlin", 1711852200, 1711848600},       /* 2024-03-31 02:30 does not exist */
        {"Europe/Berlin", 1729996200, 1729992600},       /* 2024-10-27 02:30 is twice */
        {"America/New_York", 1710037800, 1710052200},    /* 2024-03-10 02:30 does not exist */
        {"Asia/Shanghai", -618019200, -618048000},       /* 1950 */
        {"Australia/Lord_Howe", 2540332800, 2540295000}, /* 2050, by the rule */
        {"America/New_York", 7274232000, 7274246400},    /* July 2200, by the rule */
        {"America/Sao_Paulo", 4102444800, 4102455600},   /* no daylight saving time any more */
        {"Asia/Kathmandu", 1700000000, 1699979300},
    };
    (void)state;
    struct error err;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct time_zone *zone = time_zone_load(slice_of_string(cases[i].zone), &arena, &err);
        assert_non_null(zone);
        int64_t found = time_zone_from_local(zone, cases[i].local);
        if (found != cases[i].expected)
            fail_msg("%s %lld: %lld", cases[i].zone, (long long)cases[i].local, (long long)found);
    }
}

static void names_periods(void **state)
{
    (void)state;
    struct error err;
    const struct time_zone *zone = time_zone_load(SLICE("Europe/Berlin"), &arena, &err);
    assert_non_null(zone);
    struct time_zone_period summer = time_zone_at(zone, 1722247200);
    assert_string_equal(summer.name, "CEST");
    assert_int_equal(summer.offset, 7200);
    assert_int_equal(summer.start, 1711846800);
    assert_int_equal(summer.end, 1729990800);
    assert_string_equal(time_zone_at(zone, 4102444800).name, "CET"); /* 2100 */
    assert_int_equal(time_zone_at(zone, 4102444800).end, 4109878800);
    assert_string_equal(time_zone_at(zone, INT64_MIN / 2000000000).name, "LMT");
}

static void refuses_other_files(void **state)
{
    static const char *const names[] = {"",        "/etc/passwd", "../../etc/passwd",
                                        "Nowhere", "zone.tab",    "Europe",
                                        "Europe/", "tzdata.zi",   "iso3166tab"};
    (void)state;
    struct error err;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (time_zone_load(slice_of_string(names[i]), &arena, &err))
            fail_msg("%s is a zone", names[i]);
}

static void makes_fixed_zones(void **state)
{
    (void)state;
    const struct time_zone *zone = time_zone_fixed(-3600, arena_alloc(&arena, time_zone_size()));
    assert_int_equal(time_zone_at(zone, 5).offset, -3600);
    assert_string_equal(time_zone_at(zone, 5).name, "");
    assert_int_equal(time_zone_from_local(zone, 0), 3600);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(finds_the_time_of_a_clock, begin, end),
        cmocka_unit_test_setup_teardown(names_periods, begin, end),
        cmocka_unit_test_setup_teardown(refuses_other_files, begin, end),
        cmocka_unit_test_setup_teardown(makes_fixed_zones, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
