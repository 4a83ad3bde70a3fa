#include "core/data/thread_match.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A pool whose threads run a span now and then. A thread is known by its number, and at first its
 * samples have that number plus OFFSET as id. */
enum { POOL = 8, OFFSET = 1000, SECONDS = 600, TENTHS = 10 };
#define TENTH_NS UINT64_C(100000000)

struct pool {
    struct thread_match match;
    uint32_t seed;
    unsigned busy;            /* percent of the time */
    uint32_t traces[POOL];    /* what runs now; 0: nothing */
    int runs_for[POOL];       /* a span of this thread; -1: its own */
    unsigned samples_outside; /* percent of its time without a span */
    int64_t ids[POOL];        /* of each thread's samples */
    int decided[POOL];        /* thread that each of these is; -1: not known */
    uint32_t next_trace;
    uint64_t tenth;                 /* of a second: now */
    unsigned samples, right, wrong; /* by what was known when they came */
};

static unsigned dice(struct pool *pool)
{
    pool->seed = pool->seed * 1664525u + 1013904223u;
    return (pool->seed >> 8) % 100;
}

static void pool_init(struct pool *pool, unsigned busy, unsigned outside)
{
    *pool = (struct pool){.seed = 7, .busy = busy, .samples_outside = outside};
    for (int i = 0; i < POOL; i++) {
        pool->decided[i] = pool->runs_for[i] = -1;
        pool->ids[i] = OFFSET + i;
        assert_int_equal(thread_match_place(&pool->match, 50 + (uint32_t)i), i);
    }
}

/* Spans begin and end: on average they take half a second. */
static void run_spans(struct pool *pool)
{
    for (int i = 0; i < POOL; i++) {
        if (pool->traces[i] != 0 && dice(pool) < 20)
            pool->traces[i] = 0;
        else if (pool->traces[i] == 0 && dice(pool) < 20 * pool->busy / (101 - pool->busy))
            pool->traces[i] = ++pool->next_trace;
    }
}

static int thread_of(const struct pool *pool, int64_t id)
{
    for (uint32_t i = 0; i < pool->match.id_count; i++)
        if (pool->match.ids[i].id == id)
            return pool->match.ids[i].thread;
    return -1;
}

static void count(struct pool *pool, int thread)
{
    int known = thread_of(pool, pool->ids[thread]);
    pool->samples++;
    pool->right += known == thread;
    pool->wrong += known >= 0 && known != thread;
}

static void sample(struct pool *pool, int thread, uint64_t time_ns)
{
    struct match_vote votes[MATCH_THREADS_MAX] = {{.is_known = false}};
    struct match_id *id = thread_match_begin(&pool->match, pool->ids[thread], time_ns);
    count(pool, thread);
    if (!id)
        return;
    for (int i = 0; i < POOL; i++)
        votes[i] = (struct match_vote){.is_known = true, .trace = pool->traces[i]};
    thread_match_vote(id, votes);
    int before = id->thread;
    bool changes = thread_match_judge(&pool->match, id);
    assert_true(changes || id->thread == before);
    for (int i = 0; changes && i < MATCH_THREADS_MAX; i++) {
        const struct match_id *of = thread_match_id_of(&pool->match, i);
        if (pool->match.changed >> i & 1)
            assert_true(!of || of == id);
    }
}

/* hidden: a thread whose spans are not known; -1: none. */
static void run_for(struct pool *pool, int hidden, unsigned seconds)
{
    pool->samples = pool->right = pool->wrong = 0;
    for (uint64_t end = pool->tenth + (uint64_t)seconds * TENTHS; pool->tenth < end;) {
        uint64_t tenth = ++pool->tenth;
        run_spans(pool);
        uint32_t own = hidden >= 0 ? pool->traces[hidden] : 0;
        if (hidden >= 0)
            pool->traces[hidden] = 0;
        for (int i = 0; i < POOL; i++) {
            int of = pool->runs_for[i] >= 0 ? pool->runs_for[i] : i;
            bool is_busy = of == hidden ? own != 0 : pool->traces[of] != 0;
            if (is_busy || dice(pool) < pool->samples_outside)
                sample(pool, i, tenth * TENTH_NS);
        }
        if (hidden >= 0)
            pool->traces[hidden] = own;
    }
    for (int i = 0; i < POOL; i++)
        pool->decided[i] = thread_of(pool, pool->ids[i]);
}

static void run(struct pool *pool, int hidden)
{
    run_for(pool, hidden, SECONDS);
}

static void test_samples_show_their_threads(void **state)
{
    (void)state;
    static const unsigned outside[] = {0, 2};
    for (unsigned i = 0; i < 2; i++) {
        struct pool pool;
        pool_init(&pool, 20, outside[i]);
        run(&pool, -1);
        for (int k = 0; k < POOL; k++)
            assert_int_equal(pool.decided[k], k);
        thread_match_deinit(&pool.match);
    }
}

/* A thread that runs code of its own at any time, and one whose spans do not arrive. */
static void test_what_fits_no_thread_is_of_none(void **state)
{
    (void)state;
    struct pool pool;
    pool_init(&pool, 20, 100);
    run(&pool, -1);
    for (int k = 0; k < POOL; k++)
        assert_int_equal(pool.decided[k], -1);
    thread_match_deinit(&pool.match);
    pool_init(&pool, 20, 0);
    run(&pool, 3);
    for (int k = 0; k < POOL; k++)
        assert_int_equal(pool.decided[k], k == 3 ? -1 : k);
    thread_match_deinit(&pool.match);
}

/* A thread works for the spans of another one, which works itself, too. */
static void test_two_ids_that_fit_one_thread(void **state)
{
    (void)state;
    struct pool pool;
    pool_init(&pool, 20, 0);
    pool.runs_for[5] = 2;
    run(&pool, -1);
    assert_int_equal(pool.decided[2], -1);
    assert_int_equal(pool.decided[5], -1);
    assert_int_equal(pool.decided[4], 4);
    thread_match_deinit(&pool.match);
}

static void test_one_id_alone_shows_nothing(void **state)
{
    (void)state;
    struct pool pool;
    pool_init(&pool, 20, 0);
    for (uint64_t tenth = 1; tenth <= 6000; tenth++) {
        run_spans(&pool);
        if (pool.traces[1] != 0)
            sample(&pool, 1, tenth * TENTH_NS);
    }
    assert_int_equal(pool.decided[1], -1);
    thread_match_deinit(&pool.match);
}

/* Votes in one trace, and those that are near to each other, count once. */
static void test_votes_that_count_once(void **state)
{
    (void)state;
    struct thread_match match = {.ids = NULL};
    struct match_vote votes[MATCH_THREADS_MAX] = {{.is_known = true, .trace = 9}};
    struct match_id *id = NULL;
    assert_int_equal(thread_match_place(&match, 1), 0);
    for (uint64_t i = 1; i <= 100; i++) {
        id = thread_match_begin(&match, 31, i * MATCH_APART_NS);
        assert_non_null(id);
        thread_match_vote(id, votes);
        assert_null(thread_match_begin(&match, 31, i * MATCH_APART_NS + 1));
    }
    assert_int_equal(id->scores[0].hits, 1);
    votes[0].trace = 0;
    thread_match_vote(id, votes);
    votes[0].is_known = false;
    thread_match_vote(id, votes);
    assert_int_equal(id->scores[0].misses, 1);
    thread_match_deinit(&match);
}

static void assert_all_known(const struct pool *pool)
{
    for (int k = 0; k < POOL; k++)
        assert_int_equal(pool->decided[k], k);
}

/* A pool of a program that starts again once its threads are known: the runtime's ids are the same,
 * and those of samples become these. */
static void start_again(const int64_t ids[POOL], unsigned busy)
{
    struct pool pool;
    pool_init(&pool, busy, 2);
    run(&pool, -1);
    assert_all_known(&pool);
    memcpy(pool.ids, ids, sizeof pool.ids);
    pool.tenth += UINT64_C(5) * TENTHS;
    run(&pool, -1);
    assert_all_known(&pool);
    assert_true(pool.wrong * 10 <= pool.samples);
    run(&pool, -1);
    assert_int_equal(pool.wrong, 0);
    assert_int_equal(pool.right, pool.samples);
    thread_match_deinit(&pool.match);
}

static void test_a_program_that_starts_again(void **state)
{
    (void)state;
    int64_t shifted[POOL], permuted[POOL], others[POOL];
    for (int i = 0; i < POOL; i++) {
        shifted[i] = OFFSET + i + 1;
        permuted[i] = OFFSET + (i * 3 + 2) % POOL;
        others[i] = 5 * OFFSET + i;
    }
    for (unsigned busy = 20; busy <= 60; busy += 20) {
        start_again(shifted, busy);
        start_again(permuted, busy);
        start_again(others, busy);
    }
}

/* The operating system gave the id of a thread to a new one, which has no spans. */
static void test_an_id_that_is_of_no_thread_any_more(void **state)
{
    (void)state;
    struct pool pool;
    pool_init(&pool, 20, 2);
    run(&pool, -1);
    assert_all_known(&pool);
    run(&pool, 3);
    for (int k = 0; k < POOL; k++)
        assert_int_equal(pool.decided[k], k == 3 ? -1 : k);
    thread_match_deinit(&pool.match);
}

/* Some threads are idle for minutes, while others work. */
static void test_idle_threads_stay_known(void **state)
{
    (void)state;
    struct pool pool;
    pool_init(&pool, 20, 0);
    run(&pool, -1);
    for (uint64_t end = pool.tenth + (uint64_t)SECONDS * TENTHS; pool.tenth < end;) {
        pool.tenth++;
        run_spans(&pool);
        for (int i = 0; i < POOL; i++) {
            if (i % 2 == 0)
                pool.traces[i] = 0;
            if (pool.traces[i] != 0)
                sample(&pool, i, pool.tenth * TENTH_NS);
        }
    }
    run(&pool, -1);
    assert_int_equal(pool.wrong, 0);
    assert_int_equal(pool.right, pool.samples);
    thread_match_deinit(&pool.match);
}

/* Threads that come to work outside of spans more and more are not mistaken, and not forgotten
 * while more than chance says which they are. */
static void test_threads_that_work_outside_of_spans(void **state)
{
    (void)state;
    struct pool pool;
    pool_init(&pool, 10, 0);
    run(&pool, -1);
    for (unsigned outside = 2; outside <= 100; outside += outside < 20 ? 4 : 20) {
        pool.samples_outside = outside;
        run(&pool, -1);
        assert_int_equal(pool.wrong, 0);
        if (outside <= 14)
            assert_int_equal(pool.right, pool.samples);
    }
    thread_match_deinit(&pool.match);
}

static void test_there_is_room_for_some(void **state)
{
    (void)state;
    struct thread_match match = {.ids = NULL};
    for (uint32_t i = 0; i < MATCH_THREADS_MAX; i++)
        assert_int_equal(thread_match_place(&match, 100 + i), i);
    assert_int_equal(thread_match_place(&match, 99), -1);
    assert_int_equal(thread_match_place(&match, 107), 7);
    thread_match_remove(&match, 107);
    assert_int_equal(thread_match_place(&match, 99), 7);
    for (int64_t i = 0; i < MATCH_IDS_MAX + 10; i++)
        assert_int_equal(thread_match_begin(&match, i, (uint64_t)(i + 1) * MATCH_APART_NS)->id, i);
    assert_int_equal(match.id_count, MATCH_IDS_MAX);
    assert_true(thread_match_memory(&match) <= MATCH_IDS_MAX * sizeof(struct match_id));
    thread_match_deinit(&match);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples_show_their_threads),
        cmocka_unit_test(test_what_fits_no_thread_is_of_none),
        cmocka_unit_test(test_two_ids_that_fit_one_thread),
        cmocka_unit_test(test_one_id_alone_shows_nothing),
        cmocka_unit_test(test_votes_that_count_once),
        cmocka_unit_test(test_a_program_that_starts_again),
        cmocka_unit_test(test_an_id_that_is_of_no_thread_any_more),
        cmocka_unit_test(test_idle_threads_stay_known),
        cmocka_unit_test(test_threads_that_work_outside_of_spans),
        cmocka_unit_test(test_there_is_room_for_some),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
