#include "core/base/container_of.h"
#include "core/base/job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { JOBS = 5 };

static struct worker worker;
static char story[100]; /* finished jobs, by number */
static atomic_uint at_once, at_once_max;

struct numbered {
    struct job job;
    int number;
    uv_sem_t *gate; /* `run` waits for it, unless it is NULL */
    bool is_unwanted;
    atomic_bool ran;
};

static void tell(char what, int number)
{
    size_t told = strlen(story);
    snprintf(story + told, sizeof story - told, "%c%d", what, number);
}

static void run(struct job *job)
{
    struct numbered *numbered = container_of(job, struct numbered, job);
    unsigned now = atomic_fetch_add(&at_once, 1) + 1;
    if (now > atomic_load(&at_once_max))
        atomic_store(&at_once_max, now);
    if (numbered->gate)
        uv_sem_wait(numbered->gate);
    atomic_fetch_sub(&at_once, 1);
    atomic_store(&numbered->ran, true);
}

static void on_done(struct job *job, bool did_run)
{
    tell(did_run ? 'd' : 'x', container_of(job, struct numbered, job)->number);
}

static bool is_wanted(const struct job *job)
{
    return !container_of(job, const struct numbered, job)->is_unwanted;
}

static struct numbered make(int number, uv_sem_t *gate)
{
    return (struct numbered){.job = {.run = run, .on_done = on_done, .is_wanted = is_wanted},
                             .number = number,
                             .gate = gate};
}

static int begin(void **state)
{
    (void)state;
    struct error err;
    story[0] = '\0';
    atomic_store(&at_once_max, 0);
    assert_true(worker_init(&worker, 0, &err));
    return 0;
}

static int end(void **state)
{
    (void)state;
    worker_deinit(&worker);
    return 0;
}

static void turn_until(size_t jobs)
{
    while (strlen(story) < 2 * jobs)
        uv_run(&worker.loop, UV_RUN_ONCE);
}

static void a_job_comes_back_to_its_worker(void **state)
{
    (void)state;
    struct numbered job = make(1, NULL);
    job_start(&worker, &job.job);
    assert_string_equal(story, "");
    turn_until(1);
    assert_string_equal(story, "d1");
    assert_true(atomic_load(&job.ran));
}

static void few_run_at_once_and_the_loop_turns_meanwhile(void **state)
{
    (void)state;
    uv_sem_t gate;
    struct numbered jobs[JOBS];
    uv_sem_init(&gate, 0);
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = make(i, &gate);
        job_start(&worker, &jobs[i].job);
    }
    assert_int_equal(worker.jobs_begun, JOBS_AT_ONCE);
    for (int i = 0; i < 3; i++)
        uv_run(&worker.loop, UV_RUN_NOWAIT);
    assert_string_equal(story, "");
    for (int i = 0; i < JOBS; i++)
        uv_sem_post(&gate);
    turn_until(JOBS);
    assert_true(atomic_load(&at_once_max) <= JOBS_AT_ONCE);
    assert_int_equal(worker.jobs_begun, 0);
    uv_sem_destroy(&gate);
}

static void what_nobody_wants_any_more_does_not_begin(void **state)
{
    (void)state;
    uv_sem_t gate;
    struct numbered jobs[JOBS];
    uv_sem_init(&gate, 0);
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = make(i, i < JOBS_AT_ONCE ? &gate : NULL);
        job_start(&worker, &jobs[i].job);
    }
    jobs[2].is_unwanted = jobs[4].is_unwanted = true;
    for (int i = 0; i < JOBS_AT_ONCE; i++)
        uv_sem_post(&gate);
    turn_until(JOBS);
    assert_non_null(strstr(story, "x2"));
    assert_non_null(strstr(story, "d3"));
    assert_non_null(strstr(story, "x4"));
    assert_false(atomic_load(&jobs[2].ran));
    uv_sem_destroy(&gate);
}

/* Cancels a job that runs, one that the pool has not begun, and one that waits. */
static void a_cancelled_job_does_not_call_back(void **state)
{
    (void)state;
    uv_sem_t gate;
    struct numbered *jobs[JOBS];
    uv_sem_init(&gate, 0);
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = malloc(sizeof *jobs[i]);
        *jobs[i] = make(i, &gate);
        job_start(&worker, &jobs[i]->job);
    }
    for (int i = 0; i < JOBS; i++)
        uv_sem_post(&gate); /* job_cancel waits for a job that has begun */
    for (int i = 0; i < JOBS; i++) {
        job_cancel(&jobs[i]->job);
        free(jobs[i]);
    }
    workers_settle(&worker, 1);
    assert_string_equal(story, "");
    assert_int_equal(worker.jobs_begun, 0);
    uv_sem_destroy(&gate);
}

static void settling_waits_for_jobs(void **state)
{
    (void)state;
    struct numbered jobs[JOBS];
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = make(i, NULL);
        job_start(&worker, &jobs[i].job);
    }
    workers_settle(&worker, 1);
    assert_int_equal(strlen(story), 2 * JOBS);
}

static void a_manual_worker_runs_it_at_once(void **state)
{
    (void)state;
    struct worker manual;
    struct numbered job = make(7, NULL);
    story[0] = '\0';
    worker_init_manual(&manual, 0, 1000);
    job_start(&manual, &job.job);
    assert_true(atomic_load(&job.ran));
    assert_string_equal(story, "");
    worker_advance(&manual, 1000);
    assert_string_equal(story, "d7");
    worker_deinit(&manual);
}

static void a_manual_worker_forgets_what_is_cancelled(void **state)
{
    (void)state;
    enum { CANCELLED = 5 };
    struct worker manual;
    struct numbered jobs[3];
    worker_init_manual(&manual, 0, 1000);
    for (int cancelled = 0; cancelled < 3; cancelled++) {
        story[0] = '\0';
        for (int i = 0; i < 3; i++) {
            jobs[i] = make(i == cancelled ? CANCELLED : i, NULL);
            job_start(&manual, &jobs[i].job);
        }
        job_cancel(&jobs[cancelled].job);
        worker_advance(&manual, 1000);
        assert_int_equal(strlen(story), 4);
        assert_null(strchr(story, '0' + CANCELLED));
    }
    worker_deinit(&manual);
}

static void lookups_find_a_thread(void **state)
{
    (void)state;
    assert_true(job_pool_size(1) > JOBS_AT_ONCE);
    assert_true(job_pool_size(WORKERS_MAX) > WORKERS_MAX * JOBS_AT_ONCE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_job_comes_back_to_its_worker, begin, end),
        cmocka_unit_test_setup_teardown(few_run_at_once_and_the_loop_turns_meanwhile, begin, end),
        cmocka_unit_test_setup_teardown(what_nobody_wants_any_more_does_not_begin, begin, end),
        cmocka_unit_test_setup_teardown(a_cancelled_job_does_not_call_back, begin, end),
        cmocka_unit_test_setup_teardown(settling_waits_for_jobs, begin, end),
        cmocka_unit_test(a_manual_worker_runs_it_at_once),
        cmocka_unit_test(a_manual_worker_forgets_what_is_cancelled),
        cmocka_unit_test(lookups_find_a_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
