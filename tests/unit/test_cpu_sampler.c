#include "core/base/cpu_sampler.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

/* Uses CPU time until the thread has used this much more; nearly all of it here, not in the C
 * library, whose functions have no frame pointers. */
static __attribute__((noinline)) void burn(int64_t ns)
{
    struct timespec now;
    volatile unsigned steps = 0;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    int64_t end = now.tv_sec * INT64_C(1000000000) + now.tv_nsec + ns;
    do {
        for (unsigned i = 0; i < 20000; i++)
            steps = steps + i;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while (now.tv_sec * INT64_C(1000000000) + now.tv_nsec < end);
}

/* What a capture has found. */
struct seen {
    const char *thread; /* that is looked for */
    double samples;     /* of that thread */
    size_t deepest;
};

static void count(void *context, const char *thread, const struct stack_entry *entry)
{
    struct seen *seen = context;
    assert_true(thread[0] != '\0');
    assert_true(entry->depth >= 1 && entry->addresses[0] != 0);
    assert_true(entry->values[0] >= 1);
    if (strcmp(thread, seen->thread) != 0)
        return;
    seen->samples += entry->values[0];
    if (entry->depth > seen->deepest)
        seen->deepest = entry->depth;
}

static void busy_thread_is_sampled_once_at_a_time(void **state)
{
    (void)state;
    pthread_setname_np(pthread_self(), "main of test");
    for (int round = 0; round < 2; round++) {
        struct seen seen = {.thread = "main of test"};
        assert_true(cpu_sampler_start());
        assert_false(cpu_sampler_start());
        burn(300000000);
        cpu_sampler_stop();
        assert_int_equal(cpu_sampler_visit(count, &seen), 0);
        assert_true(seen.samples >= 10 && seen.samples <= 40); /* 30, by the thread's own clock */
        assert_true(seen.deepest >= 3);                        /* burn, this function, its caller */
        cpu_sampler_release();
    }
}

static atomic_bool is_named, is_looked;

static void *burn_as_late(void *nothing)
{
    (void)nothing;
    pthread_setname_np(pthread_self(), "late");
    atomic_store(&is_named, true);
    while (!atomic_load(&is_looked))
        burn(1000000);
    burn(300000000);
    return NULL;
}

static void *wait_for(void *is_over)
{
    while (!atomic_load((atomic_bool *)is_over))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return NULL;
}

static void thread_that_starts_later_is_sampled_after_a_look(void **state)
{
    (void)state;
    pthread_t late;
    struct seen seen = {.thread = "late"};
    assert_true(cpu_sampler_start());
    pthread_create(&late, NULL, burn_as_late, NULL);
    while (!atomic_load(&is_named))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    cpu_sampler_look();
    atomic_store(&is_looked, true);
    pthread_join(late, NULL);
    cpu_sampler_stop();
    cpu_sampler_visit(count, &seen);
    cpu_sampler_release();
    assert_true(seen.samples >= 10);
}

static void signals_of_others_are_ignored(void **state)
{
    (void)state;
    atomic_bool is_over = false;
    pthread_t idle;
    struct seen seen = {.thread = "idle"};
    pthread_create(&idle, NULL, wait_for, &is_over);
    pthread_setname_np(idle, "idle");
    assert_true(cpu_sampler_start());
    for (int i = 0; i < 100; i++)
        pthread_kill(idle, SIGPROF);
    raise(SIGPROF);
    cpu_sampler_stop();
    cpu_sampler_visit(count, &seen);
    cpu_sampler_release();
    raise(SIGPROF); /* a late one does not end the process either */
    atomic_store(&is_over, true);
    pthread_join(idle, NULL);
    assert_true(seen.samples < 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(busy_thread_is_sampled_once_at_a_time),
        cmocka_unit_test(thread_that_starts_later_is_sampled_after_a_look),
        cmocka_unit_test(signals_of_others_are_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
