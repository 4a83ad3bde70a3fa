#include "core/base/timer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TIMERS = 60, ROUNDS = 20000 };

/* The expected behaviour, implemented in the slow and obvious way: all timers in an array. */
struct model {
    struct entry {
        bool set;
        uint64_t deadline_ns;
        uint64_t sequence;
    } entries[TIMERS];
    uint64_t sequence;
};

struct numbered {
    struct timer timer; /* first */
    int number;
};

static struct numbered timers[TIMERS];
static int called[TIMERS * 2];
static size_t called_count;

static uint64_t random_state = 7;

static unsigned random_below(unsigned limit)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(random_state >> 33) % limit;
}

static void on_numbered(struct timer *timer)
{
    assert_false(timer_is_set(timer));
    called[called_count++] = ((struct numbered *)timer)->number;
}

static void reset_timers(void)
{
    memset(timers, 0, sizeof timers);
    for (int i = 0; i < TIMERS; i++)
        timers[i] = (struct numbered){{.on_timer = on_numbered}, i};
    called_count = 0;
}

/* Returns the index of the next timer, or -1. */
static int model_first(const struct model *model)
{
    int first = -1;
    for (int i = 0; i < TIMERS; i++) {
        const struct entry *entry = &model->entries[i],
                           *best = &model->entries[first < 0 ? 0 : first];
        if (!entry->set)
            continue;
        if (first < 0 || entry->deadline_ns < best->deadline_ns ||
            (entry->deadline_ns == best->deadline_ns && entry->sequence < best->sequence))
            first = i;
    }
    return first;
}

static void model_set(struct model *model, int number, uint64_t deadline_ns)
{
    model->entries[number] = (struct entry){true, deadline_ns, ++model->sequence};
}

static void run_both(struct timer_queue *queue, struct model *model, uint64_t now_ns)
{
    called_count = 0;
    size_t count = timer_queue_run(queue, now_ns);
    assert_int_equal(count, called_count);
    for (size_t i = 0; i < count; i++) {
        int expected = model_first(model);
        assert_int_equal(called[i], expected);
        assert_true(model->entries[expected].deadline_ns <= now_ns);
        model->entries[expected].set = false;
    }
    int left = model_first(model);
    assert_true(left < 0 || model->entries[left].deadline_ns > now_ns);
}

static void compare(const struct timer_queue *queue, const struct model *model)
{
    int first = model_first(model);
    assert_int_equal(timer_queue_next(queue),
                     first < 0 ? UINT64_MAX : model->entries[first].deadline_ns);
    size_t count = 0;
    for (int i = 0; i < TIMERS; i++) {
        assert_int_equal(timer_is_set(&timers[i].timer), model->entries[i].set);
        count += model->entries[i].set;
    }
    assert_int_equal(queue->count, count);
}

static void order_is_that_of_a_naive_model(void **state)
{
    (void)state;
    struct timer_queue queue = {0};
    struct model model = {0};
    uint64_t now_ns = 1000;
    reset_timers();
    for (int round = 0; round < ROUNDS; round++) {
        int number = (int)random_below(TIMERS);
        switch (random_below(8)) {
        case 0:
        case 1:
            timer_queue_cancel(&queue, &timers[number].timer);
            model.entries[number].set = false;
            break;
        case 2:
            now_ns += random_below(40);
            run_both(&queue, &model, now_ns);
            break;
        default: {
            uint64_t deadline_ns = now_ns + random_below(100); /* many equal ones */
            timer_queue_set(&queue, &timers[number].timer, deadline_ns);
            model_set(&model, number, deadline_ns);
        }
        }
        compare(&queue, &model);
    }
    run_both(&queue, &model, UINT64_MAX);
    assert_int_equal(queue.count, 0);
    timer_queue_deinit(&queue);
}

static struct timer_queue shared;
static struct numbered *victim;
static uint64_t again_ns;

static void on_cancel_other(struct timer *timer)
{
    on_numbered(timer);
    timer_queue_cancel(&shared, &victim->timer);
}

static void cancel_inside_a_callback(void **state)
{
    (void)state;
    reset_timers();
    timers[0].timer.on_timer = on_cancel_other;
    victim = &timers[2];
    for (int i = 0; i < 4; i++)
        timer_queue_set(&shared, &timers[i].timer, 10);
    assert_int_equal(timer_queue_run(&shared, 10), 3);
    assert_memory_equal(called, ((int[]){0, 1, 3}), 3 * sizeof(int));
    timer_queue_deinit(&shared);
}

static void on_set_self(struct timer *timer)
{
    on_numbered(timer);
    timer_queue_set(&shared, timer, again_ns);
}

static void on_move_other(struct timer *timer)
{
    on_numbered(timer);
    timer_queue_set(&shared, &victim->timer, again_ns);
}

/* A timer that its callback sets again is due in the next run, so the run ends. */
static void set_inside_a_callback_waits_for_the_next_run(void **state)
{
    (void)state;
    static const uint64_t again[] = {0, 5, 10, 11};
    for (size_t i = 0; i < sizeof again / sizeof again[0]; i++) {
        reset_timers();
        again_ns = again[i];
        timers[0].timer.on_timer = on_set_self;
        timer_queue_set(&shared, &timers[0].timer, 6);
        timer_queue_set(&shared, &timers[1].timer, 7);
        timer_queue_set(&shared, &timers[2].timer, 10);
        /* A deadline in the past does not delay timers that are due already. */
        assert_int_equal(timer_queue_run(&shared, 10), 3);
        assert_memory_equal(called, ((int[]){0, 1, 2}), 3 * sizeof(int));
        assert_true(timer_is_set(&timers[0].timer));
        assert_int_equal(timer_queue_next(&shared), again_ns < 10 ? 10 : again_ns);
        timers[0].timer.on_timer = on_numbered;
        assert_int_equal(timer_queue_run(&shared, 11), 1);
        assert_int_equal(called[3], 0);
        timer_queue_deinit(&shared);
    }
}

static void one_that_is_due_can_be_moved_away(void **state)
{
    (void)state;
    reset_timers();
    again_ns = 100;
    victim = &timers[1];
    timers[0].timer.on_timer = on_move_other;
    for (int i = 0; i < 3; i++)
        timer_queue_set(&shared, &timers[i].timer, 10);
    assert_int_equal(timer_queue_run(&shared, 50), 2);
    assert_memory_equal(called, ((int[]){0, 2}), 2 * sizeof(int));
    assert_int_equal(timer_queue_next(&shared), 100);
    assert_int_equal(timer_queue_run(&shared, 99), 0);
    assert_int_equal(timer_queue_run(&shared, 100), 1);
    timer_queue_deinit(&shared);
}

static void on_free_self(struct timer *timer)
{
    free(timer);
}

static void a_callback_may_free_its_timer(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 100; i++) {
        struct timer *timer = calloc(1, sizeof *timer);
        timer->on_timer = on_free_self;
        timer_queue_set(&shared, timer, i);
    }
    assert_int_equal(timer_queue_run(&shared, 49), 50);
    assert_int_equal(timer_queue_run(&shared, 1000), 50);
    timer_queue_deinit(&shared);
}

static void a_run_may_be_limited(void **state)
{
    (void)state;
    reset_timers();
    for (int i = 0; i < 5; i++)
        timer_queue_set(&shared, &timers[i].timer, (uint64_t)(5 - i));
    assert_int_equal(timer_queue_run_some(&shared, 4, 3), 3);
    assert_memory_equal(called, ((int[]){4, 3, 2}), 3 * sizeof *called);
    assert_int_equal(timer_queue_run_some(&shared, 4, 3), 1);
    assert_int_equal(timer_queue_next(&shared), 5);
    assert_int_equal(timer_queue_run_some(&shared, 5, 1), 1);
    timer_queue_deinit(&shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_is_that_of_a_naive_model),
        cmocka_unit_test(cancel_inside_a_callback),
        cmocka_unit_test(set_inside_a_callback_waits_for_the_next_run),
        cmocka_unit_test(one_that_is_due_can_be_moved_away),
        cmocka_unit_test(a_callback_may_free_its_timer),
        cmocka_unit_test(a_run_may_be_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
