#include "core/base/container_of.h"
#include "core/base/job_queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { PIECES = 40 };

static struct worker worker;
static struct job_queue queue;
static char story[PIECES * 2 + 1]; /* finished pieces, by letter; 'x' before a letter: no result */

struct piece {
    struct queued_job queued;
    char letter;
    uv_sem_t *gate; /* `run` waits for it, unless it is NULL */
    bool is_unwanted;
    bool holds; /* holds the queue in `done` */
    pthread_t ran_on;
};

static void run(struct queued_job *queued)
{
    struct piece *piece = container_of(queued, struct piece, queued);
    if (piece->gate)
        uv_sem_wait(piece->gate);
    piece->ran_on = pthread_self();
}

static void done(struct queued_job *queued, bool did_run)
{
    const struct piece *piece = container_of(queued, struct piece, queued);
    size_t size = strlen(story);
    if (!did_run)
        story[size++] = 'x';
    story[size++] = piece->letter;
    story[size] = '\0';
    if (piece->holds)
        job_queue_hold(&queue);
}

static bool is_wanted(const struct queued_job *queued)
{
    return !container_of(queued, const struct piece, queued)->is_unwanted;
}

static struct piece make(char letter, bool is_large)
{
    return (struct piece){.queued = {.run = run,
                                     .done = done,
                                     .is_wanted = is_wanted,
                                     .size_bytes = 1,
                                     .is_large = is_large},
                          .letter = letter};
}

static void add(struct piece *piece)
{
    job_queue_add(&queue, &piece->queued);
}

static int begin(void **state)
{
    (void)state;
    struct error err;
    story[0] = '\0';
    queue = (struct job_queue){.worker = &worker};
    assert_true(worker_init(&worker, 0, &err));
    return 0;
}

static int begin_manual(void **state)
{
    (void)state;
    story[0] = '\0';
    queue = (struct job_queue){.worker = &worker};
    worker_init_manual(&worker, 0, 1000);
    return 0;
}

static int end(void **state)
{
    (void)state;
    worker_deinit(&worker);
    return 0;
}

static void turn_until_empty(void)
{
    while (!job_queue_is_empty(&queue))
        uv_run(&worker.loop, UV_RUN_ONCE);
}

static void small_pieces_are_done_at_once(void **state)
{
    (void)state;
    struct piece a = make('a', false), b = make('b', false);
    add(&a);
    assert_string_equal(story, "a");
    add(&b);
    assert_string_equal(story, "ab");
    assert_true(pthread_equal(a.ran_on, pthread_self()));
    assert_true(job_queue_is_empty(&queue));
}

static void large_ones_run_beside_the_loop_and_in_order(void **state)
{
    (void)state;
    uv_sem_t gate;
    struct piece a = make('a', true), b = make('b', false), c = make('c', true);
    uv_sem_init(&gate, 0);
    a.gate = &gate;
    add(&a);
    add(&b);
    add(&c);
    for (int i = 0; i < 3; i++)
        uv_run(&worker.loop, UV_RUN_NOWAIT);
    assert_string_equal(story, "");
    assert_false(job_queue_is_empty(&queue));
    uv_sem_post(&gate);
    turn_until_empty();
    assert_string_equal(story, "abc");
    assert_false(pthread_equal(a.ran_on, pthread_self()));
    assert_true(pthread_equal(b.ran_on, pthread_self()));
    uv_sem_destroy(&gate);
}

static void what_nobody_wants_any_more_does_not_begin(void **state)
{
    (void)state;
    struct piece a = make('a', true), b = make('b', true), c = make('c', false);
    b.is_unwanted = true;
    add(&a);
    add(&b);
    add(&c);
    turn_until_empty();
    assert_string_equal(story, "axbc");
}

static void the_stop_waits_for_what_has_begun(void **state)
{
    (void)state;
    uv_sem_t gate;
    struct piece a = make('a', true), b = make('b', true), c = make('c', false);
    uv_sem_init(&gate, 0);
    a.gate = &gate;
    add(&a);
    add(&b);
    add(&c);
    uv_sem_post(&gate);
    job_queue_stop(&queue);
    assert_string_equal(story, "xaxbxc");
    assert_true(job_queue_is_empty(&queue));
    workers_settle(&worker, 1);
    assert_string_equal(story, "xaxbxc");
    uv_sem_destroy(&gate);
}

static void a_held_queue_begins_nothing(void **state)
{
    (void)state;
    struct piece a = make('a', false), b = make('b', false), c = make('c', false);
    a.holds = true;
    add(&a);
    add(&b);
    worker_advance(&worker, 2000);
    assert_string_equal(story, "a");
    assert_false(job_queue_is_empty(&queue));
    job_queue_release(&queue);
    assert_string_equal(story, "ab");
    add(&c);
    assert_string_equal(story, "abc");
}

/* Adds small pieces of size_bytes each behind a large one. Returns how many of them are done in
 * the same turn as the large one. */
static size_t count_first_turn(size_t size_bytes)
{
    static struct piece pieces[PIECES];
    struct piece large = make('-', true);
    story[0] = '\0';
    add(&large);
    for (int i = 0; i < PIECES; i++) {
        pieces[i] = make('.', false);
        pieces[i].queued.size_bytes = size_bytes;
        add(&pieces[i]);
    }
    struct post *post = atomic_exchange(&worker.inbox, NULL);
    post->on_post(&worker, post); /* the end of the job; there is no timer */
    size_t done_first = strlen(story) - 1;
    worker_advance(&worker, worker.now_ns);
    assert_int_equal(strlen(story), PIECES + 1);
    assert_true(job_queue_is_empty(&queue));
    return done_first;
}

static void a_turn_does_a_bounded_part_of_what_waited(void **state)
{
    (void)state;
    assert_int_equal(count_first_turn(1), 16);
    assert_int_equal(count_first_turn(1 << 20), 4);
    assert_int_equal(count_first_turn(8 << 20), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(small_pieces_are_done_at_once, begin, end),
        cmocka_unit_test_setup_teardown(large_ones_run_beside_the_loop_and_in_order, begin, end),
        cmocka_unit_test_setup_teardown(what_nobody_wants_any_more_does_not_begin, begin, end),
        cmocka_unit_test_setup_teardown(the_stop_waits_for_what_has_begun, begin, end),
        cmocka_unit_test_setup_teardown(a_held_queue_begins_nothing, begin_manual, end),
        cmocka_unit_test_setup_teardown(a_turn_does_a_bounded_part_of_what_waited, begin_manual,
                                        end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
