#include "core/data/span_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MANY = 30000 };

/* Maps numbers to distinct tags, like a hash. */
static uint32_t tag_of(uint32_t number)
{
    uint32_t tag = number * 2654435761u;
    tag ^= tag >> 15;
    tag *= 2246822519u;
    return span_table_tag(tag);
}

static uint32_t *find(const struct span_table *table, uint32_t tag, uint32_t number)
{
    struct span_probe probe = span_table_probe(table, tag);
    uint32_t *found = span_probe_next(&probe);
    while (found && *found != number)
        found = span_probe_next(&probe);
    return found;
}

static void test_against_an_array(void **state)
{
    (void)state;
    struct span_table table = {.pages = span_pages_new()};
    static bool there[MANY];
    uint32_t count = 0;
    srand(1);
    for (int step = 0; step < 10 * MANY; step++) {
        uint32_t number = (uint32_t)rand() % MANY;
        bool shrinks = step / MANY % 3 == 2; /* waves: the table becomes sparse at times */
        uint32_t *found = find(&table, tag_of(number), number);
        assert_int_equal(found != NULL, there[number]);
        if (found && (shrinks || rand() % 4 == 0)) {
            span_table_remove(&table, tag_of(number), number);
            there[number] = false;
            count--;
        } else if (!found && !shrinks) {
            assert_true(span_table_insert(&table, tag_of(number), number));
            there[number] = true;
            count++;
        }
        assert_int_equal(table.live, count);
    }
    assert_true(table.segment_count > 8);
    for (uint32_t number = 0; number < MANY; number++)
        if (there[number])
            span_table_remove(&table, tag_of(number), number);
    assert_int_equal(span_table_memory(&table), 0); /* an empty table has freed all memory */
    span_pages_free(table.pages);
}

/* A client that could choose hashes would get only the slots near one of them. */
static void test_a_crowd_is_refused(void **state)
{
    (void)state;
    struct span_table table = {.pages = span_pages_new()};
    for (uint32_t number = 0; number < SPAN_TABLE_PROBES; number++)
        assert_true(span_table_insert(&table, 77, number));
    for (int i = 0; i < 1000; i++)
        assert_false(span_table_insert(&table, 77, 1000));
    assert_int_equal(table.segment_count, 1);
    span_table_remove(&table, 77, 5);
    assert_true(span_table_insert(&table, 77, 1000));
    assert_non_null(find(&table, 77, 1000));
    span_table_deinit(&table);
    span_pages_free(table.pages);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_an_array),
        cmocka_unit_test(test_a_crowd_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
