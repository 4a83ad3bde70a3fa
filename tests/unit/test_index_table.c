/* Compares core/base/index_table.h with a list that is searched item by item. */

#include "core/base/arena.h"
#include "core/base/hash.h"
#include "core/base/index_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { ITEMS = 512 };

/* The expected content of the table: the hash of each item, and whether the table has it. */
struct model {
    uint32_t hashes[ITEMS];
    bool is_in[ITEMS];
};

static void check_equal(const struct index_table *table, const struct model *model)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < ITEMS; i++) {
        uint32_t found = 0;
        struct index_probe probe = index_table_probe(table, model->hashes[i]);
        for (uint32_t number; index_table_next(table, &probe, &number);) {
            assert_true(model->is_in[number]);
            assert_int_equal(model->hashes[number], model->hashes[i]);
            found += number == i;
        }
        assert_int_equal(found, model->is_in[i]);
        count += model->is_in[i];
    }
    assert_int_equal(table->count, count);
}

/* There are few different hashes, so that runs are long, meet, and wrap around the end of the
 * slots. */
static void test_against_a_list(void **state)
{
    (void)state;
    for (uint32_t hashes = 1; hashes <= 4096; hashes *= 4) {
        struct arena arena = {0};
        struct index_table table = {0};
        struct model model = {0};
        for (uint32_t i = 0; i < ITEMS; i++)
            model.hashes[i] = UINT32_MAX - (uint32_t)(hash_u64(i) % hashes);
        index_table_reserve(&table, 1, &arena);
        for (uint32_t step = 0; step < 4 * ITEMS; step++) {
            uint32_t item = (uint32_t)(hash_u64(step + 7 * hashes) % ITEMS);
            index_table_reserve(&table, 1, &arena);
            if (model.is_in[item])
                index_table_remove(&table, model.hashes[item], item);
            else
                index_table_add_new(&table, model.hashes[item], item);
            model.is_in[item] = !model.is_in[item];
            if (step % 64 == 0)
                check_equal(&table, &model);
        }
        check_equal(&table, &model);
        arena_deinit(&arena);
    }
}

static bool is_in(const struct index_table *table, uint32_t hash, uint32_t wanted)
{
    struct index_probe probe = index_table_probe(table, hash);
    for (uint32_t number; index_table_next(table, &probe, &number);)
        if (number == wanted)
            return true;
    return false;
}

/* Items with several hashes, such as those of their ids, stay with those that are left. */
static void test_items_with_several_hashes(void **state)
{
    (void)state;
    enum { HASHES = 4, PAIRS = 32 * HASHES };
    struct arena arena = {0};
    struct index_table table = {0};
    uint32_t hashes[PAIRS];
    index_table_reserve(&table, PAIRS, &arena);
    for (uint32_t i = 0; i < PAIRS; i++) {
        hashes[i] = (uint32_t)(hash_u64(i / HASHES) % 32) + i % HASHES * 3;
        index_table_add_new(&table, hashes[i], i / HASHES);
    }
    for (uint32_t left = PAIRS; left-- > 0;) {
        index_table_remove(&table, hashes[left], left / HASHES);
        for (uint32_t i = 0; i < PAIRS; i++)
            assert_int_equal(is_in(&table, hashes[i], i / HASHES), i < left);
    }
    assert_int_equal(table.count, 0);
    arena_deinit(&arena);
}

static void test_room(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct index_table table = {0};
    assert_int_equal(index_table_growth(&table, 0), index_table_bytes(0));
    index_table_reserve(&table, 100, &arena);
    assert_int_equal(index_table_growth(&table, 100), 0);
    uint32_t slots = table.mask + 1;
    assert_int_equal(index_table_growth(&table, slots / 2), 0);
    assert_int_equal(index_table_growth(&table, slots / 2 + 1),
                     2 * sizeof(struct index_slot) * slots);
    arena_deinit(&arena);
}

/* A missing item is added where the search for it ended. */
static void test_adding_where_the_search_ended(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct index_table table = {0};
    for (uint32_t i = 0; i < 30000; i++) {
        uint32_t hash = (uint32_t)hash_u64(i), number = 0;
        index_table_reserve(&table, 1, &arena);
        struct index_probe probe = index_table_probe(&table, hash);
        while (index_table_next(&table, &probe, &number))
            assert_int_not_equal(number, i);
        index_table_add(&table, &probe, i);
        probe = index_table_probe(&table, hash);
        do
            assert_true(index_table_next(&table, &probe, &number));
        while (number != i);
    }
    assert_int_equal(table.count, 30000);
    arena_deinit(&arena);
}

static void test_peek(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct index_table table = {0};
    index_table_reserve(&table, 1, &arena);
    assert_int_equal(index_table_peek(&table, 5), 0);
    index_table_add_new(&table, 5, 17);
    assert_int_equal(index_table_peek(&table, 5), 17);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_a_list), cmocka_unit_test(test_items_with_several_hashes),
        cmocka_unit_test(test_room),           cmocka_unit_test(test_adding_where_the_search_ended),
        cmocka_unit_test(test_peek),
    };
    hash_init_with(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
