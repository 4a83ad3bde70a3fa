#include "core/base/mutex_sampler.h"

#include "core/base/clock.h"
#include "core/base/got_hook.h"
#include "core/base/stack_walk.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

enum { TABLE_BYTES = 256 * 1024 };

/* Taken with real_lock: the hook must not wait for itself. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned users;
static struct stack_table *table;
static _Atomic uint32_t one_in;
static int (*real_lock)(pthread_mutex_t *mutex);

static pthread_mutex_t users_lock = PTHREAD_MUTEX_INITIALIZER;

/* The time of the wait decides, whose nanoseconds are as good as random. */
static bool is_chosen(uint64_t began_ns, uint32_t fraction)
{
    return (began_ns * UINT64_C(0x9e3779b97f4a7c15) >> 32) % fraction == 0;
}

static __attribute__((noinline)) void count_wait(uint64_t waited_ns, uint32_t fraction,
                                                 const struct stack_registers *caller)
{
    uint64_t addresses[STACK_FRAMES_MAX];
    size_t depth = stack_walk(caller, addresses);
    real_lock(&lock);
    struct stack_entry *entry = users > 0 ? stack_table_add(table, addresses, depth) : NULL;
    if (entry) {
        entry->values[MUTEX_WAITS] += fraction;
        entry->values[MUTEX_WAIT_NS] += (double)waited_ns * fraction;
    }
    pthread_mutex_unlock(&lock);
}

static int hook_lock(pthread_mutex_t *mutex)
{
    int rc = pthread_mutex_trylock(mutex);
    if (rc != EBUSY)
        return rc;
    uint64_t began_ns = clock_monotonic_ns();
    uint32_t fraction = atomic_load_explicit(&one_in, memory_order_relaxed);
    rc = real_lock(mutex);
    if (fraction > 0 && is_chosen(began_ns, fraction)) {
        const struct stack_registers caller = stack_registers_of_caller();
        count_wait(clock_monotonic_ns() - began_ns, fraction, &caller);
    }
    return rc;
}

static const struct got_hook hooks[] = {{"pthread_mutex_lock", (got_function *)hook_lock}};

/* ---- for callers ---- */

static void set_users(unsigned count, uint32_t fraction)
{
    atomic_store(&one_in, fraction);
    real_lock(&lock);
    users = count;
    if (count == 0)
        stack_table_clear(table);
    pthread_mutex_unlock(&lock);
}

/* Before there are threads: nothing orders what a hook reads after the change that led to it. */
__attribute__((constructor)) static void find_real(void)
{
    real_lock = (int (*)(pthread_mutex_t *))got_function_named("pthread_mutex_lock");
}

static bool make_table(struct error *err)
{
    if (!table)
        table = stack_table_new(TABLE_BYTES);
    return table || error_set(err, "no memory for its table");
}

bool mutex_sampler_start(uint32_t fraction, struct error *err)
{
    assert(fraction > 0);
    pthread_mutex_lock(&users_lock);
    uint32_t before = atomic_load(&one_in);
    bool ok = users > 0 || make_table(err);
    if (ok)
        set_users(users + 1, before > 0 && before < fraction ? before : fraction);
    if (ok && users == 1 && !got_hook_set(hooks, 1, err)) {
        set_users(0, 0);
        ok = false;
    }
    pthread_mutex_unlock(&users_lock);
    return ok;
}

void mutex_sampler_stop(void)
{
    pthread_mutex_lock(&users_lock);
    assert(users > 0);
    if (users == 1)
        got_hook_clear(hooks, 1);
    set_users(users - 1, users > 1 ? atomic_load(&one_in) : 0);
    pthread_mutex_unlock(&users_lock);
}

struct stack_table *mutex_sampler_copy(void)
{
    real_lock(&lock);
    assert(users > 0);
    struct stack_table *copy = stack_table_copy(table);
    pthread_mutex_unlock(&lock);
    return copy;
}
