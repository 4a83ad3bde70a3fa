#include "core/data/fold_groups.h"

#include "core/base/arena.h"
#include "core/base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { STACKS = 200, LINKS = 150, KEYS = STACKS * LINKS, SAMPLES = 3 * KEYS };

static struct fold_key key_of(uint32_t number)
{
    return (struct fold_key){.stack = number % STACKS,
                             .link = number / STACKS,
                             .list = number % 3,
                             .shape = number % 7 ? SHAPE_SUM : SHAPE_TIMESTAMPS};
}

/* More groups than have places: some are found by their place, some by their key, while their
 * number grows, and groups that nobody finds are made between. */
static void test_a_key_has_one_group(void **state)
{
    (void)state;
    uint32_t *group_of = calloc(KEYS, sizeof *group_of); /* plus one */
    struct arena arena;
    unsigned seed = 1;
    arena_init(&arena, NULL);
    struct fold_groups groups = {.arena = &arena};
    for (uint32_t i = 0; i < SAMPLES; i++) {
        uint32_t number = (uint32_t)rand_r(&seed) % (i < KEYS / 4 ? 64 + i / 4 : KEYS);
        struct fold_key key = key_of(number), apart = {.shape = SHAPE_APART};
        uint32_t before = groups.count;
        bool is_new;
        uint32_t group = fold_groups_find(&groups, &key, &is_new);
        assert_int_equal(is_new, group_of[number] == 0);
        assert_int_equal(group, is_new ? before : group_of[number] - 1);
        assert_int_equal(groups.count, before + is_new);
        group_of[number] = group + 1;
        if (key.shape == SHAPE_SUM && i % 16 == 0) /* another one with this key, if it is full */
            fold_groups_sum(&groups, group, INT64_MAX);
        if (i % 32 == 0)
            fold_groups_keep_value(&groups, &apart, 1, (struct slice){0});
    }
    arena_deinit(&arena);
    free(group_of);
}

int main(void)
{
    hash_init();
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_key_has_one_group),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
