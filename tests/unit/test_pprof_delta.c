#include "core/base/budget.h"
#include "core/base/hash.h"
#include "core/formats/pprof.h"
#include "core/formats/pprof_delta.h"
#include "tests/unit/pprof_fixture.h"
#include "tests/unit/wire_text.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct budget budget;

/* A cumulative and a present value; two functions with a location each. */
#define TYPES "1{1=1 2=3} 1{1=2 2=3} "
#define TABLES                                                                                     \
    "4{1=1 4{1=1 2=7}} 4{1=2 3=64 4{1=2 2=8}} 5{1=1 2=4} 5{1=2 2=5} 6\"\" 6\"alloc_space\" "       \
    "6\"inuse_space\" 6\"bytes\" 6\"a\" 6\"b\" 6\"key\""

struct step {
    const char *pprof, *expected; /* expected: a result or an error */
    bool has_base, kept;
};
#define FIRST(PPROF, EXPECTED)                                                                     \
    {                                                                                              \
        PPROF, EXPECTED, false, true                                                               \
    }
#define GAINED(PPROF, EXPECTED)                                                                    \
    {                                                                                              \
        PPROF, EXPECTED, true, true                                                                \
    }
#define DROPPED(PPROF, EXPECTED)                                                                   \
    {                                                                                              \
        PPROF, EXPECTED, true, false                                                               \
    }

static void take_steps(const char *name, const struct step *steps, size_t count)
{
    struct pprof_delta *delta = pprof_delta_new(&budget, pprof_delta_usual);
    for (size_t i = 0; i < count; i++) {
        struct text pprof = wire_text(steps[i].pprof);
        struct wire_writer out = {0};
        struct error err;
        if (!pprof_delta_next(delta, wire_text_slice(&pprof), &out, &err)) {
            if (strcmp(err.text, steps[i].expected) != 0)
                fail_msg("%s, %zu: %s", name, i, err.text);
        } else {
            struct text expected = wire_text(steps[i].expected);
            if (!slice_equal(wire_writer_slice(&out), wire_text_slice(&expected)) ||
                pprof_delta_has_base(delta) != steps[i].has_base)
                fail_msg("%s, %zu: another difference", name, i);
            text_deinit(&expected);
            if (steps[i].kept)
                pprof_delta_keep(delta);
        }
        wire_writer_deinit(&out);
        text_deinit(&pprof);
    }
    pprof_delta_free(delta);
    assert_int_equal(budget_used(&budget), 0);
}
#define STEPS(NAME, ...)                                                                           \
    do {                                                                                           \
        const struct step steps[] = {__VA_ARGS__};                                                 \
        take_steps(NAME, steps, sizeof steps / sizeof steps[0]);                                   \
    } while (0)

static void test_differences(void **state)
{
    (void)state;
    STEPS("what was gained, what is there",
          FIRST(TYPES "2{1=1 2[10 1]} 2{1=2 2[20 0]} " TABLES, TYPES "2{1=1 2[0 1]} " TABLES),
          GAINED(TYPES "2{1=1 2[15 2]} 2{1=2 2[20 0]} " TABLES, TYPES "2{1=1 2[5 2]} " TABLES),
          GAINED(TYPES "2{1=1 2[15 0]} 2{1=2 2[21 3]} " TABLES, TYPES "2{1=2 2[1 3]} " TABLES));
    STEPS(
        "a stack that is new", FIRST(TYPES "2{1=1 2[10 0]} " TABLES, TYPES TABLES),
        GAINED(TYPES "2{1=1 2[10 0]} 2{1[2 1] 2[7 0]} " TABLES, TYPES "2{1[2 1] 2[7 0]} " TABLES));
    STEPS("other ids and another order, the same stack",
          FIRST(TYPES "2{1=1 2[10 0]} 2{1=2 2[20 0]} " TABLES, TYPES TABLES),
          GAINED(TYPES "2{1=9 2[21 0]} 2{1=8 2[12 0]} 6\"\" 6\"alloc_space\" 6\"inuse_space\" "
                       "6\"bytes\" 6\"b\" 6\"a\" 5{1=5 2=5} 5{1=4 2=4} 4{1=9 3=64 4{1=4 2=8}} "
                       "4{1=8 4{1=5 2=7}}",
                 TYPES
                 "2{1=9 2[1 0]} 2{1=8 2[2 0]} 6\"\" 6\"alloc_space\" 6\"inuse_space\" 6\"bytes\" "
                 "6\"b\" 6\"a\" 5{1=5 2=5} 5{1=4 2=4} 4{1=9 3=64 4{1=4 2=8}} 4{1=8 4{1=5 2=7}}"));
    STEPS("equal samples are one, labels tell them apart",
          FIRST(TYPES "2{1=1 2[1 1]} 2{1=1 2[2 1]} 2{1=1 2[4 0] 3{1=6 3=1}} " TABLES,
                TYPES "2{1=1 2[0 1]} 2{1=1 2[0 1]} " TABLES),
          GAINED(TYPES "2{1=1 2[2 1]} 2{1=1 2[2 0]} 2{1=1 2[9 0] 3{1=6 3=1}} " TABLES,
                 TYPES "2{1=1 2[1 1]} 2{1=1 3{1=6 3=1} 2[5 0]} " TABLES));
    STEPS("values that are not packed", FIRST(TYPES "2{2=1 1=1 2=0} " TABLES, TYPES TABLES),
          GAINED(TYPES "2{2=3 1=1 2=0} " TABLES, TYPES "2{1=1 2[2 0]} " TABLES));
}

static void test_a_process_starts_again(void **state)
{
    (void)state;
    STEPS("a value falls", FIRST(TYPES "2{1=1 2[10 0]} 2{1=2 2[5 0]} " TABLES, TYPES TABLES),
          FIRST(TYPES "2{1=1 2[99 0]} 2{1=2 2[4 1]} " TABLES, TYPES "2{1=2 2[0 1]} " TABLES),
          GAINED(TYPES "2{1=1 2[100 0]} 2{1=2 2[4 0]} " TABLES, TYPES "2{1=1 2[1 0]} " TABLES));
    STEPS("a stack is gone", FIRST(TYPES "2{1=1 2[10 0]} 2{1=2 2[5 0]} " TABLES, TYPES TABLES),
          FIRST(TYPES "2{1=1 2[99 0]} " TABLES, TYPES TABLES));
    STEPS("other types", FIRST(TYPES "2{1=1 2[10 0]} " TABLES, TYPES TABLES),
          FIRST("1{1=1 2=3} 2{1=1 2=11} " TABLES, "1{1=1 2=3} " TABLES),
          GAINED("1{1=1 2=3} 2{1=1 2=12} " TABLES, "1{1=1 2=3} 2{1=1 2[1]} " TABLES));
}

static void test_what_was_not_kept_comes_again(void **state)
{
    (void)state;
    STEPS("dropped", FIRST(TYPES "2{1=1 2[10 0]} " TABLES, TYPES TABLES),
          DROPPED(TYPES "2{1=1 2[12 0]} " TABLES, TYPES "2{1=1 2[2 0]} " TABLES),
          GAINED(TYPES "2{1=1 2[15 0]} " TABLES, TYPES "2{1=1 2[5 0]} " TABLES));
    STEPS("refused", FIRST(TYPES "2{1=1 2[10 0]} " TABLES, TYPES TABLES),
          FIRST(TYPES "2{1=1 2[12 0 0]} " TABLES,
                "sample[0]: has 3 values, there are 2 sample types"),
          FIRST(TYPES "2{1=1 2[12 0]} " TABLES "!22", "the pprof is truncated, or not protobuf"),
          GAINED(TYPES "2{1=1 2[15 0]} " TABLES, TYPES "2{1=1 2[5 0]} " TABLES));
}

static void test_ends_of_the_numbers(void **state)
{
    (void)state;
    STEPS("from below 0 to the largest",
          FIRST(TYPES "2{1=1 2[-9223372036854775808 0]} " TABLES, TYPES TABLES),
          GAINED(TYPES "2{1=1 2[9223372036854775807 0]} " TABLES,
                 TYPES "2{1=1 2[9223372036854775807 0]} " TABLES));
    STEPS("sums", FIRST(TYPES "2{1=1 2[1 0]} " TABLES, TYPES TABLES),
          GAINED(TYPES "2{1=1 2[9223372036854775807 0]} 2{1=1 2[9223372036854775807 0]} " TABLES,
                 TYPES "2{1=1 2[9223372036854775806 0]} " TABLES));
}

static void test_durations_of_a_life_are_dropped(void **state)
{
    (void)state;
    STEPS("cumulative", FIRST(TYPES "9=5 10=77 " TABLES, TYPES "9=5 " TABLES));
    STEPS("not cumulative", FIRST("1{1=2 2=3} 9=5 10=77 " TABLES, "1{1=2 2=3} 9=5 10=77 " TABLES));
}

static void test_no_room(void **state)
{
    (void)state;
    struct budget small = {.limit_bytes = 1000};
    struct pprof_delta *delta = pprof_delta_new(&small, pprof_delta_usual);
    struct text pprof = wire_text(TYPES "100*2{1=1 2[1 1]} " TABLES);
    struct wire_writer out = {0};
    struct error err;
    assert_false(pprof_delta_next(delta, wire_text_slice(&pprof), &out, &err));
    assert_string_equal(err.text, "data refused due to high memory usage");
    assert_int_equal(budget_used(&small), 0);
    wire_writer_deinit(&out);
    text_deinit(&pprof);
    pprof_delta_free(delta);
}

/* The difference of a recording to itself is empty, whatever its values mean. */
/* Returns `count` samples, with distinct labels if they should differ. */
static struct wire_writer samples_of(uint32_t count, bool are_different)
{
    static const char tables[] = "1{1=1 2=2} 6\"\" 6\"delay\" 6\"nanoseconds\" 6\"n\"";
    struct text head = wire_text(tables);
    struct wire_writer pprof = {0};
    wire_writer_raw(&pprof, wire_text_slice(&head));
    text_deinit(&head);
    for (uint32_t i = 0; i < count; i++) {
        size_t sample = wire_writer_begin(&pprof, PPROF_SAMPLE);
        wire_writer_varint(&pprof, PPROF_SAMPLE_VALUE, 1);
        size_t label = wire_writer_begin(&pprof, PPROF_SAMPLE_LABEL);
        wire_writer_varint(&pprof, PPROF_LABEL_KEY, 3);
        wire_writer_varint(&pprof, PPROF_LABEL_NUM, are_different ? 1 + i : 1);
        wire_writer_end(&pprof, label);
        wire_writer_end(&pprof, sample);
    }
    return pprof;
}

/* The kept data is limited by the number of distinct samples and by a share of the budget. */
static void test_what_is_remembered_is_bounded(void **state)
{
    (void)state;
    struct budget large = {.limit_bytes = 64 << 20};
    struct pprof_delta *delta = pprof_delta_new(&large, pprof_delta_usual);
    struct wire_writer pprof = samples_of(300000, false), out = {0};
    struct error err;
    assert_true(pprof_delta_next(delta, wire_writer_slice(&pprof), &out, &err));
    assert_in_range(budget_used(&large), 1, 1000);
    pprof_delta_keep(delta);
    assert_in_range(budget_used(&large), 1, 1000);
    assert_true(pprof_delta_next(delta, wire_writer_slice(&pprof), &out, &err));
    assert_true(pprof_delta_has_base(delta));
    wire_writer_deinit(&pprof);
    pprof = samples_of(300000, true);
    assert_false(pprof_delta_next(delta, wire_writer_slice(&pprof), &out, &err));
    assert_string_equal(err.text, "has 300000 different samples, more than fit into memory");
    assert_in_range(budget_used(&large), 1, 1000);
    wire_writer_deinit(&pprof);
    wire_writer_deinit(&out);
    pprof_delta_free(delta);
    assert_int_equal(budget_used(&large), 0);
}

static enum pprof_delta_kind all_differ(struct slice sample_type)
{
    (void)sample_type;
    return PPROF_DELTA_DIFFERENCE;
}

static size_t count_samples(struct slice pprof)
{
    struct wire_cursor cursor = wire_cursor(pprof);
    struct wire_field field;
    size_t count = 0;
    while (wire_next(&cursor, &field))
        count += field.number == PPROF_SAMPLE;
    assert_false(cursor.broken);
    return count;
}

static void twice(const char *name)
{
    struct buffer *pprof = pprof_load(name);
    struct pprof_delta *delta = pprof_delta_new(&budget, all_differ);
    for (int i = 0; i < 2; i++) {
        struct wire_writer out = {0};
        struct error err;
        assert_true(pprof_delta_next(delta, buffer_slice(pprof), &out, &err));
        assert_int_equal(pprof_delta_has_base(delta), i == 1);
        assert_int_equal(count_samples(wire_writer_slice(&out)), 0);
        assert_int_not_equal(count_samples(buffer_slice(pprof)), 0);
        pprof_delta_keep(delta);
        wire_writer_deinit(&out);
    }
    pprof_delta_free(delta);
    buffer_unref(pprof);
}

static void test_recordings(void **state)
{
    (void)state;
    pprof_each(twice);
    assert_int_equal(budget_used(&budget), 0);
}

int main(void)
{
    hash_init_with(1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_differences),
        cmocka_unit_test(test_a_process_starts_again),
        cmocka_unit_test(test_what_was_not_kept_comes_again),
        cmocka_unit_test(test_ends_of_the_numbers),
        cmocka_unit_test(test_durations_of_a_life_are_dropped),
        cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_what_is_remembered_is_bounded),
        cmocka_unit_test(test_recordings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
