#include "core/base/clock.h"
#include "core/base/container_of.h"
#include "core/base/metrics.h"
#include "core/base/worker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define MS_NS ((uint64_t)1000000)

enum { SENDERS = 4, POSTS_EACH = 5000 };

/* ---- manual workers ---- */

struct note {
    struct post post; /* first */
    struct timer timer;
    int number;
    int answers; /* how many more notes it posts */
    uint64_t delay_ns;
};

static char story[200];
static struct worker manual;

static void tell(char what, int number)
{
    size_t size = strlen(story);
    snprintf(story + size, sizeof story - size, "%s%c%d", size > 0 ? " " : "", what, number);
}

static struct note *note_of(struct timer *timer)
{
    return container_of(timer, struct note, timer);
}

static void on_note_timer(struct timer *timer)
{
    tell('t', note_of(timer)->number);
}

static void on_note(struct worker *worker, struct post *post)
{
    struct note *note = (struct note *)post;
    tell('m', note->number);
    if (note->answers-- > 0) {
        note->number++;
        worker_post(worker, &note->post);
    } else if (note->timer.on_timer) {
        worker_set_timer(worker, &note->timer, note->delay_ns);
    }
}

static struct note make_note(int number)
{
    return (struct note){
        .post.on_post = on_note, .timer.on_timer = on_note_timer, .number = number};
}

static void begin_story(void)
{
    story[0] = '\0';
    worker_init_manual(&manual, 3, 1000);
}

static void messages_run_in_the_order_they_were_posted(void **state)
{
    (void)state;
    begin_story();
    struct note notes[4];
    for (int i = 0; i < 4; i++) {
        notes[i] = make_note(i);
        notes[i].timer.on_timer = NULL;
        worker_post(&manual, &notes[i].post);
    }
    assert_string_equal(story, ""); /* messages never run inside worker_post */
    worker_advance(&manual, 1000);
    assert_string_equal(story, "m0 m1 m2 m3");
    worker_advance(&manual, 5000);
    assert_string_equal(story, "m0 m1 m2 m3");
    worker_deinit(&manual);
}

static void a_manual_worker_goes_on_until_nothing_is_due(void **state)
{
    (void)state;
    begin_story();
    struct note note = make_note(0);
    note.answers = 3; /* the last one sets a timer that is due at once */
    worker_post(&manual, &note.post);
    worker_advance(&manual, 1000);
    assert_string_equal(story, "m0 m1 m2 m3 t3");
    worker_deinit(&manual);
}

static uint64_t seen_ns[3];

static void on_look_at_time(struct timer *timer)
{
    seen_ns[note_of(timer)->number] = manual.now_ns;
}

static void a_timer_sees_the_time_it_was_set_for(void **state)
{
    (void)state;
    begin_story();
    struct note notes[3];
    static const uint64_t delays[] = {500, 20, 700};
    for (int i = 0; i < 3; i++) {
        notes[i] = make_note(i);
        notes[i].timer.on_timer = on_look_at_time;
        worker_set_timer(&manual, &notes[i].timer, delays[i]);
    }
    worker_advance(&manual, 1600);
    assert_int_equal(seen_ns[0], 1500);
    assert_int_equal(seen_ns[1], 1020);
    assert_true(timer_is_set(&notes[2].timer));
    assert_int_equal(worker_now(&manual), 1600);
    worker_cancel_timer(&manual, &notes[2].timer);
    worker_deinit(&manual);
}

static void delays_do_not_overflow(void **state)
{
    (void)state;
    begin_story();
    struct note note = make_note(0);
    worker_set_timer(&manual, &note.timer, UINT64_MAX);
    assert_int_equal(timer_queue_next(&manual.timers), UINT64_MAX - 1);
    worker_advance(&manual, UINT64_MAX - 2);
    assert_string_equal(story, "");
    worker_cancel_timer(&manual, &note.timer);
    worker_deinit(&manual);
}

/* ---- threads ---- */

static struct worker real[2];

static void start_real(unsigned count)
{
    struct error err;
    for (unsigned i = 0; i < count; i++) {
        assert_true(worker_init(&real[i], i, &err));
        assert_true(worker_is_current(&real[i])); /* no thread runs it yet */
    }
    for (unsigned i = 0; i < count; i++) {
        assert_true(worker_start(&real[i], &err));
        assert_false(worker_is_current(&real[i])); /* from the start */
    }
}

static void stop_real(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        worker_stop(&real[i]);
    for (unsigned i = 0; i < count; i++)
        worker_join(&real[i]);
    workers_settle(real, count);
    for (unsigned i = 0; i < count; i++) {
        assert_true(worker_is_current(&real[i]));
        worker_deinit(&real[i]);
    }
}

struct sent {
    struct post post; /* first */
    int sender;
    int number;
};

/* Written on the worker; read by the test after the join. */
static int last_of[SENDERS];
static int received, out_of_order, not_current;

static void on_sent(struct worker *worker, struct post *post)
{
    struct sent *sent = (struct sent *)post;
    out_of_order += last_of[sent->sender] != sent->number - 1;
    last_of[sent->sender] = sent->number;
    not_current += !worker_is_current(worker);
    received++;
    free(sent);
}

static void *send_many(void *context)
{
    int sender = (int)(intptr_t)context;
    for (int i = 1; i <= POSTS_EACH; i++) {
        struct sent *sent = malloc(sizeof *sent);
        *sent = (struct sent){{.on_post = on_sent}, sender, i};
        worker_post(&real[0], &sent->post);
    }
    return NULL;
}

static void posts_of_many_threads_arrive_once_and_in_order(void **state)
{
    (void)state;
    memset(last_of, 0, sizeof last_of);
    received = out_of_order = not_current = 0;
    start_real(1);
    pthread_t threads[SENDERS];
    for (int i = 0; i < SENDERS; i++)
        pthread_create(&threads[i], NULL, send_many, (void *)(intptr_t)i);
    for (int i = 0; i < SENDERS; i++)
        pthread_join(threads[i], NULL);
    stop_real(1); /* delivers earlier messages, on the worker or after it */
    assert_int_equal(received, SENDERS * POSTS_EACH);
    assert_int_equal(out_of_order, 0);
    assert_int_equal(not_current, 0);
}

struct waiting_post {
    struct post post; /* first */
    uv_sem_t done;
};

static void on_waiting_post(struct worker *worker, struct post *post)
{
    (void)worker;
    uv_sem_post(&((struct waiting_post *)post)->done);
}

/* Each message is posted to a sleeping worker: a lost wake-up would hang the test. */
static void a_sleeping_worker_wakes_for_each_message(void **state)
{
    (void)state;
    start_real(1);
    for (int i = 0; i < 2000; i++) {
        struct waiting_post waiting = {.post.on_post = on_waiting_post};
        uv_sem_init(&waiting.done, 0);
        worker_post(&real[0], &waiting.post);
        uv_sem_wait(&waiting.done);
        uv_sem_destroy(&waiting.done);
    }
    stop_real(1);
}

static void note_who_runs(void *context)
{
    *(pthread_t *)context = pthread_self();
}

static void a_call_runs_on_its_worker_and_is_waited_for(void **state)
{
    (void)state;
    pthread_t who = pthread_self();
    start_real(1);
    worker_call(&real[0], note_who_runs, &who);
    assert_true(pthread_equal(who, real[0].thread));
    stop_real(1);
    begin_story();
    worker_call(&manual, note_who_runs, &who);
    assert_true(pthread_equal(who, pthread_self()));
    worker_deinit(&manual);
}

enum { REAL_TIMERS = 8 };

static struct alarm {
    struct timer timer; /* first */
    uint64_t due_ns;
    int order; /* in which they fired */
    bool early;
} alarms[REAL_TIMERS];
static int fired;
static uv_sem_t all_fired;

static void on_alarm(struct timer *timer)
{
    struct alarm *alarm = (struct alarm *)timer;
    alarm->early = clock_monotonic_ns() < alarm->due_ns || real[0].now_ns < alarm->due_ns;
    alarm->order = fired++;
    if (fired == REAL_TIMERS)
        uv_sem_post(&all_fired);
}

static const uint64_t alarm_delays_ns[REAL_TIMERS] = {40 * MS_NS, 0,          1,         MS_NS - 1,
                                                      MS_NS + 1,  10 * MS_NS, 5 * MS_NS, 700000};

static void on_set_alarms(struct worker *worker, struct post *post)
{
    (void)post;
    for (int i = 0; i < REAL_TIMERS; i++) {
        alarms[i] = (struct alarm){.timer.on_timer = on_alarm};
        worker_set_timer(worker, &alarms[i].timer, alarm_delays_ns[i]);
        alarms[i].due_ns = alarms[i].timer.deadline_ns;
    }
}

static void timers_fire_in_order_and_never_early(void **state)
{
    (void)state;
    fired = 0;
    uv_sem_init(&all_fired, 0);
    start_real(1);
    struct post post = {.on_post = on_set_alarms};
    worker_post(&real[0], &post);
    uv_sem_wait(&all_fired);
    stop_real(1);
    uv_sem_destroy(&all_fired);
    for (int i = 0; i < REAL_TIMERS; i++) {
        assert_false(alarms[i].early);
        for (int j = 0; j < REAL_TIMERS; j++)
            if (alarms[i].due_ns < alarms[j].due_ns)
                assert_true(alarms[i].order < alarms[j].order);
    }
}

/* A short timer is set while the loop sleeps until a long one, which is then cancelled. */
static void on_set_long(struct worker *worker, struct post *post)
{
    (void)post;
    fired = REAL_TIMERS - 1;
    alarms[0] = (struct alarm){.timer.on_timer = on_alarm};
    worker_set_timer(worker, &alarms[0].timer, 3600000 * MS_NS);
}

static void on_set_short(struct worker *worker, struct post *post)
{
    (void)post;
    alarms[1] = (struct alarm){.timer.on_timer = on_alarm};
    worker_set_timer(worker, &alarms[1].timer, 2 * MS_NS);
}

static void on_cancel_long(struct worker *worker, struct post *post)
{
    (void)post;
    worker_cancel_timer(worker, &alarms[0].timer);
}

static void an_earlier_timer_is_not_slept_over(void **state)
{
    (void)state;
    uv_sem_init(&all_fired, 0);
    start_real(1);
    struct post longer = {.on_post = on_set_long}, shorter = {.on_post = on_set_short};
    struct post cancel = {.on_post = on_cancel_long};
    worker_post(&real[0], &longer);
    usleep(5000); /* so that it sleeps; the result does not depend on it */
    worker_post(&real[0], &shorter);
    uv_sem_wait(&all_fired);
    worker_post(&real[0], &cancel);
    stop_real(1); /* deinit asserts that no timer is left */
    uv_sem_destroy(&all_fired);
}

struct ball {
    struct post post; /* first */
    int throws;
};

static void on_ball(struct worker *worker, struct post *post)
{
    struct ball *ball = (struct ball *)post;
    if (ball->throws-- > 0)
        worker_post(&real[1 - worker->index], &ball->post);
}

static void messages_between_stopped_workers_are_delivered(void **state)
{
    (void)state;
    start_real(2);
    struct ball balls[2] = {{{.on_post = on_ball}, 100000}, {{.on_post = on_ball}, 100001}};
    worker_post(&real[0], &balls[0].post);
    worker_post(&real[1], &balls[1].post);
    stop_real(2);
    assert_int_equal(balls[0].throws, -1);
    assert_int_equal(balls[1].throws, -1);
}

static void on_closed(uv_handle_t *handle)
{
    struct ball *ball = handle->data;
    worker_post(&real[0], &ball->post);
}

struct closing {
    struct post post; /* first */
    uv_prepare_t handle;
};

static void on_close_handle(struct worker *worker, struct post *post)
{
    (void)worker;
    uv_close((uv_handle_t *)&((struct closing *)post)->handle, on_closed);
}

/* The second worker's handle ends after both have stopped, and posts to the first. */
static void a_handle_that_ends_late_may_still_post(void **state)
{
    (void)state;
    start_real(2);
    struct closing closing = {.post.on_post = on_close_handle};
    struct ball ball = {{.on_post = on_ball}, 3};
    closing.handle.data = &ball;
    for (unsigned i = 0; i < 2; i++)
        worker_stop(&real[i]);
    for (unsigned i = 0; i < 2; i++)
        worker_join(&real[i]);
    uv_prepare_init(&real[1].loop, &closing.handle);
    worker_post(&real[1], &closing.post);
    workers_settle(real, 2);
    for (unsigned i = 0; i < 2; i++)
        worker_deinit(&real[i]);
    assert_int_equal(ball.throws, -1);
}

static void a_worker_that_never_ran_ends_cleanly(void **state)
{
    (void)state;
    struct error err;
    assert_true(worker_init(&real[0], 0, &err));
    worker_deinit(&real[0]);
    assert_true(worker_init(&real[0], 0, &err));
    worker_stop(&real[0]); /* before the start, so it ends at once */
    assert_true(worker_start(&real[0], &err));
    worker_join(&real[0]);
    worker_deinit(&real[0]);
}

/* ---- how long turns take ---- */

struct slow {
    struct post post; /* first */
    uv_sem_t done;
};

static void spin(uint64_t ms)
{
    uint64_t until = clock_monotonic_ns() + ms * MS_NS;
    while (clock_monotonic_ns() < until)
        ;
}

/* The inner piece takes longer than the rest of the outer one, but ends first. */
static void on_slow(struct worker *worker, struct post *post)
{
    (void)post;
    struct worker_piece outer, small, inner;
    worker_begin_piece(worker, &outer, "receiver quick");
    spin(100);
    worker_begin_piece(worker, &small, NULL);
    worker_begin_piece(worker, &inner, "exporter slow");
    spin(1000);
    worker_end_piece(worker, &inner);
    worker_end_piece(worker, &small);
    spin(100);
    worker_end_piece(worker, &outer);
}

static void on_after(struct worker *worker, struct post *post)
{
    (void)worker;
    uv_sem_post(&((struct slow *)post)->done);
}

static double measured(struct metrics *metrics, const char *bucket)
{
    struct text page = {0};
    metrics_write(metrics, 0, &page);
    const char *line = strstr(text_string(&page), bucket);
    double value = line ? strtod(line + strlen(bucket), NULL) : -1;
    text_deinit(&page);
    return value;
}

/* Writes what the worker logs if its loop is blocked for more than a second and then turns once
 * more. */
static void hold_loop(struct metrics *metrics, FILE *log)
{
    static const double bounds[] = {1};
    struct error err;
    int standard_error = dup(STDERR_FILENO);
    struct slow slow = {.post.on_post = on_slow};
    struct slow after = {.post.on_post = on_after};
    dup2(fileno(log), STDERR_FILENO);
    uv_sem_init(&after.done, 0);
    assert_true(worker_init(&real[0], 0, &err));
    real[0].lag = metrics_histogram(metrics, "lag", "Lag.", "", bounds, 1);
    assert_true(worker_start(&real[0], &err));
    worker_post(&real[0], &slow.post);
    worker_post(&real[0], &after.post);
    uv_sem_wait(&after.done);
    worker_stop(&real[0]);
    worker_join(&real[0]);
    worker_deinit(&real[0]);
    uv_sem_destroy(&after.done);
    dup2(standard_error, STDERR_FILENO);
    close(standard_error);
}

static void a_held_loop_is_measured_and_its_holder_named(void **state)
{
    (void)state;
    struct metrics *metrics = metrics_new(1);
    FILE *log = tmpfile();
    char line[1024] = "";
    hold_loop(metrics, log);
    double quick = measured(metrics, "lag_bucket{le=\"1\"} ");
    double all = measured(metrics, "lag_bucket{le=\"+Inf\"} ");
    assert_true(quick >= 0 && all >= 1 && quick < all);
    rewind(log);
    size_t size = fread(line, 1, sizeof line - 1, log);
    line[size] = '\0';
    assert_non_null(strstr(line, "A worker was blocked; this component took the largest part"));
    assert_non_null(strstr(line, "slow"));
    assert_null(strstr(line, "quick"));
    fclose(log);
    metrics_free(metrics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_run_in_the_order_they_were_posted),
        cmocka_unit_test(a_manual_worker_goes_on_until_nothing_is_due),
        cmocka_unit_test(a_timer_sees_the_time_it_was_set_for),
        cmocka_unit_test(delays_do_not_overflow),
        cmocka_unit_test(posts_of_many_threads_arrive_once_and_in_order),
        cmocka_unit_test(a_sleeping_worker_wakes_for_each_message),
        cmocka_unit_test(a_call_runs_on_its_worker_and_is_waited_for),
        cmocka_unit_test(timers_fire_in_order_and_never_early),
        cmocka_unit_test(an_earlier_timer_is_not_slept_over),
        cmocka_unit_test(messages_between_stopped_workers_are_delivered),
        cmocka_unit_test(a_handle_that_ends_late_may_still_post),
        cmocka_unit_test(a_worker_that_never_ran_ends_cleanly),
        cmocka_unit_test(a_held_loop_is_measured_and_its_holder_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
