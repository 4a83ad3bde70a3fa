#include "core/pipeline/share.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { SIGNALS = 2, EXPORTERS = 6, POOL = 72900, OWN = 1000 };

/* An exporter with two signals. */
struct exporter {
    struct share_borrower borrower;
    struct share shares[SIGNALS];
    size_t lent[SIGNALS]; /* by take_all */
};

static struct share_pool pool;
static struct exporter exporters[EXPORTERS];

static int set_up(void **state)
{
    (void)state;
    memset(exporters, 0, sizeof exporters);
    pool = (struct share_pool){.limit_bytes = POOL};
    for (unsigned i = 0; i < EXPORTERS; i++) {
        exporters[i].borrower.pool = &pool;
        for (unsigned s = 0; s < SIGNALS; s++)
            exporters[i].shares[s] =
                (struct share){.own.limit_bytes = OWN, .borrower = &exporters[i].borrower};
    }
    return 0;
}

/* Reserves in steps until there is no room. Returns what was reserved. */
static size_t take_all_by(struct exporter *exporter, unsigned signal, size_t step)
{
    size_t taken = 0, lent;
    for (; share_reserve(&exporter->shares[signal], step, &lent); taken += step)
        exporter->lent[signal] += lent;
    return taken;
}

static size_t take_all(struct exporter *exporter, unsigned signal)
{
    return take_all_by(exporter, signal, 1);
}

static void release_all(struct exporter *exporter, unsigned signal)
{
    struct share *share = &exporter->shares[signal];
    share_release(share, share_used(share), exporter->lent[signal]);
    exporter->lent[signal] = 0;
}

static size_t lent_by_pool(void)
{
    return atomic_load(&pool.lent_bytes);
}

static void it_borrows_when_its_share_is_used(void **state)
{
    (void)state;
    struct share *share = &exporters[0].shares[0];
    size_t lent;
    assert_true(share_reserve(share, OWN - 10, &lent));
    assert_int_equal(lent, 0);
    assert_int_equal(lent_by_pool(), 0);
    assert_true(share_reserve(share, 100, &lent));
    assert_int_equal(lent, 90);
    assert_int_equal(lent_by_pool(), 90);
    assert_int_equal(share_used(share), OWN + 90);
    share_release(share, OWN - 10, 0); /* loans are given back with their reservation */
    assert_int_equal(lent_by_pool(), 90);
    share_release(share, 100, lent);
    assert_int_equal(lent_by_pool(), 0);
    assert_int_equal(atomic_load(&exporters[0].borrower.lent_bytes), 0);
    assert_int_equal(share_used(share), 0);
}

static void one_borrows_two_thirds(void **state)
{
    (void)state;
    assert_int_equal(share_limit(&exporters[0].shares[0]), OWN + POOL * 2 / 3);
    assert_int_equal(take_all(&exporters[0], 0), OWN + POOL * 2 / 3);
    assert_int_equal(share_limit(&exporters[0].shares[0]), OWN + POOL * 2 / 3);
    assert_int_equal(share_limit(&exporters[0].shares[1]), OWN);
    assert_int_equal(take_all(&exporters[0], 1), OWN); /* signals borrow together */
}

static void the_only_one_borrows_all(void **state)
{
    (void)state;
    exporters[0].borrower.is_only = true;
    assert_int_equal(share_limit(&exporters[0].shares[0]), OWN + POOL);
    assert_int_equal(take_all(&exporters[0], 0), OWN + POOL);
    assert_int_equal(take_all(&exporters[0], 1), OWN);
}

/* The table in docs/architecture.md: next to n dead backends, whose exporters took all they got one
 * after another, 2/3 of 1/3^n of the pool can be borrowed. */
static void dead_ones_leave_room(void **state)
{
    (void)state;
    static const size_t expected[] = {POOL * 2 / 3,  POOL * 2 / 9,   POOL * 2 / 27,
                                      POOL * 2 / 81, POOL * 2 / 243, POOL * 2 / 729};
    for (unsigned dead = 0; dead < EXPORTERS; dead++) {
        struct exporter *next = &exporters[dead];
        assert_int_equal(share_limit(&next->shares[0]), OWN + expected[dead]);
        assert_int_equal(take_all(next, dead % SIGNALS), OWN + expected[dead]);
        assert_int_equal(take_all(next, (dead + 1) % SIGNALS), OWN);
    }
}

static uint32_t random_state;

static uint32_t roll(uint32_t below)
{
    random_state = random_state * 1664525 + 1013904223;
    return (random_state >> 8) % below;
}

/* However reservations and releases of `dead` others follow one another, 1/3^dead of the pool is
 * left after each step. */
static void left_after_steps_of(unsigned dead)
{
    size_t least = POOL;
    for (unsigned i = 0; i < dead; i++)
        least /= SHARE_BORROWER_FACTOR + 1;
    for (unsigned step = 0; step < 500; step++) {
        struct exporter *exporter = &exporters[roll(dead)];
        unsigned signal = roll(SIGNALS);
        if (roll(3) == 0)
            release_all(exporter, signal);
        else
            take_all_by(exporter, signal, 10 + roll(roll(2) ? 90 : POOL));
        assert_true(POOL - lent_by_pool() >= least);
        assert_true(share_limit(&exporters[dead].shares[0]) >= OWN + least * 2 / 3);
    }
}

static void any_order_leaves_room(void **state)
{
    random_state = 1;
    for (unsigned schedule = 0; schedule < 50; schedule++) {
        set_up(state);
        left_after_steps_of(1 + schedule % (EXPORTERS - 1));
    }
}

static void a_request_may_be_larger_than_the_share(void **state)
{
    (void)state;
    size_t lent;
    assert_true(share_reserve(&exporters[0].shares[0], (size_t)10 * OWN, &lent));
    assert_int_equal(lent, (size_t)9 * OWN);
    assert_false(share_reserve(&exporters[0].shares[0], POOL, &lent));
    assert_int_equal(lent, 0);
    assert_int_equal(lent_by_pool(), 9 * OWN);
    assert_int_equal(share_used(&exporters[0].shares[0]), 10 * OWN);
    share_release(&exporters[0].shares[0], (size_t)10 * OWN, (size_t)9 * OWN);
}

/* A request beyond the share (queue.c) is charged to it. */
static void an_overfull_share_borrows(void **state)
{
    (void)state;
    struct share *share = &exporters[0].shares[0];
    size_t lent;
    budget_charge(&share->own, (size_t)2 * OWN);
    assert_true(share_reserve(share, 10, &lent));
    assert_int_equal(lent, 10);
    share_release(share, 10, 10);
    budget_release(&share->own, (size_t)2 * OWN);
}

static void without_a_limit_it_has_room(void **state)
{
    (void)state;
    struct share unlimited = {0}, alone = {.own.limit_bytes = OWN};
    size_t lent;
    assert_true(share_reserve(&unlimited, SIZE_MAX / 2, &lent));
    assert_int_equal(lent, 0);
    assert_int_equal(share_limit(&unlimited), 0);
    share_release(&unlimited, SIZE_MAX / 2, 0);
    assert_false(share_reserve(&alone, OWN + 1, &lent)); /* it has nobody to borrow from */
    assert_int_equal(share_limit(&alone), OWN);
}

/* ---- several workers ---- */

enum { ROUNDS = 20000 };

/* Takes and releases for one exporter, as a worker does. */
static void *take_and_release(void *context)
{
    struct exporter *exporter = context;
    for (unsigned i = 0; i < ROUNDS; i++) {
        size_t lent, size = 1 + i * 7919 % (POOL / 2);
        struct share *share = &exporter->shares[i % SIGNALS];
        if (share_reserve(share, size, &lent))
            share_release(share, size, lent);
    }
    return NULL;
}

/* Whoever sees the pool sees what the workers have left of it: never less than the dead leave. */
static void workers_keep_to_the_rule(void **state)
{
    (void)state;
    pthread_t threads[4];
    for (unsigned i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, take_and_release, &exporters[i % 2]);
    for (unsigned i = 0; i < ROUNDS; i++)
        assert_true(POOL - lent_by_pool() >= POOL / 9);
    for (unsigned i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(lent_by_pool(), 0);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(atomic_load(&exporters[i].borrower.lent_bytes), 0);
        assert_int_equal(share_used(&exporters[i].shares[0]), 0);
        assert_int_equal(share_used(&exporters[i].shares[1]), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(it_borrows_when_its_share_is_used, set_up),
        cmocka_unit_test_setup(one_borrows_two_thirds, set_up),
        cmocka_unit_test_setup(the_only_one_borrows_all, set_up),
        cmocka_unit_test_setup(dead_ones_leave_room, set_up),
        cmocka_unit_test_setup(any_order_leaves_room, set_up),
        cmocka_unit_test_setup(a_request_may_be_larger_than_the_share, set_up),
        cmocka_unit_test_setup(an_overfull_share_borrows, set_up),
        cmocka_unit_test_setup(without_a_limit_it_has_room, set_up),
        cmocka_unit_test_setup(workers_keep_to_the_rule, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
