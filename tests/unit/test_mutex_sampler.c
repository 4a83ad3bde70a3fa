#include "core/base/mutex_sampler.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <time.h>

#include <cmocka.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool is_trying;

static void *wait_for_mutex(void *nothing)
{
    (void)nothing;
    atomic_store(&is_trying, true);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    return NULL;
}

/* Holds the mutex while another thread wants it. */
static void contend(void)
{
    pthread_t thread;
    atomic_store(&is_trying, false);
    pthread_mutex_lock(&mutex);
    pthread_create(&thread, NULL, wait_for_mutex, NULL);
    while (!atomic_load(&is_trying))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, NULL);
}

static struct stack_entry sum(void)
{
    struct stack_entry total = {.depth = 0};
    struct stack_table *copy = mutex_sampler_copy();
    const struct stack_entry *entry = stack_table_first(copy);
    for (; entry; entry = stack_table_next(copy, entry))
        for (int i = 0; i < STACK_VALUES; i++)
            total.values[i] += entry->values[i];
    stack_table_free(copy);
    return total;
}

static void waits_are_counted(void **state)
{
    (void)state;
    struct error err;
    assert_true(mutex_sampler_start(1, &err));
    pthread_mutex_lock(&mutex); /* nobody has it: not counted */
    pthread_mutex_unlock(&mutex);
    assert_true(sum().values[MUTEX_WAITS] == 0);
    contend();
    assert_true(sum().values[MUTEX_WAITS] >= 1);
    assert_true(sum().values[MUTEX_WAIT_NS] > 0);
    assert_true(mutex_sampler_start(1000000, &err)); /* two users: the smaller fraction */
    contend();
    assert_true(sum().values[MUTEX_WAITS] >= 2);
    mutex_sampler_stop();
    mutex_sampler_stop();
    contend();
    assert_true(mutex_sampler_start(1, &err));
    assert_true(sum().values[MUTEX_WAITS] == 0);
    mutex_sampler_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(waits_are_counted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
