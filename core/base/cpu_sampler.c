#include "core/base/cpu_sampler.h"

#include "core/base/stack_walk.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A table of 512 KiB has room for 2,000 stacks of 26 frames. */
enum { THREADS_MAX = 256, TABLE_BYTES = 512 * 1024 };

/* A thread that is sampled. These are never freed: a signal that was already on its way when its
 * timer was deleted still points to one. */
struct sampled_thread {
    atomic_bool is_active; /* its handler may use the table */
    atomic_bool is_busy;   /* its handler is running */
    atomic_int tid;
    timer_t timer;
    struct stack_table *table;
    char name[16];
};

static struct sampled_thread threads[THREADS_MAX];
static size_t thread_count;
static atomic_bool is_taken;

/* ---- the handler ---- */

static void record(struct sampled_thread *thread, const void *context, int overrun)
{
    const struct stack_registers registers = stack_registers_of(context);
    uint64_t addresses[STACK_FRAMES_MAX];
    size_t depth = stack_walk(&registers, addresses);
    struct stack_entry *entry = stack_table_add(thread->table, addresses, depth);
    if (entry)
        entry->values[0] += 1 + overrun;
}

/* Async-signal-safe. The other end of is_busy and is_active is in cpu_sampler_stop: either this
 * finds the thread inactive, or that waits until this is done. */
static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)number;
    if (info->si_code != SI_TIMER || !info->si_value.sival_ptr)
        return;
    int saved = errno;
    struct sampled_thread *thread = info->si_value.sival_ptr;
    if (atomic_load(&thread->tid) == (int)syscall(SYS_gettid)) {
        atomic_store(&thread->is_busy, true);
        if (atomic_load(&thread->is_active))
            record(thread, context, info->si_overrun);
        atomic_store(&thread->is_busy, false);
    }
    errno = saved;
}

/* ---- start ---- */

static void read_name(struct sampled_thread *thread, int tid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/comm", tid);
    FILE *file = fopen(path, "re");
    if (!file || !fgets(thread->name, sizeof thread->name, file))
        snprintf(thread->name, sizeof thread->name, "?");
    thread->name[strcspn(thread->name, "\n")] = '\0';
    if (file)
        fclose(file);
}

static bool make_timer(struct sampled_thread *thread, int tid)
{
    /* The clock of a thread's CPU time, as pthread_getcpuclockid makes it of a pthread_t. */
    clockid_t clock = (clockid_t)((~(unsigned)tid << 3) | 6U);
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF};
    event.sigev_value.sival_ptr = thread;
    event._sigev_un._tid = tid;
    return timer_create(clock, &event, &thread->timer) == 0;
}

static void sample_thread(int tid)
{
    struct sampled_thread *thread = &threads[thread_count];
    thread->table = stack_table_new(TABLE_BYTES);
    if (!thread->table)
        return;
    if (!make_timer(thread, tid)) { /* the thread has ended */
        stack_table_free(thread->table);
        return;
    }
    thread_count++;
    read_name(thread, tid);
    atomic_store(&thread->tid, tid);
    atomic_store(&thread->is_active, true);
    const struct timespec period = {.tv_nsec = 1000000000 / CPU_SAMPLER_HZ};
    const struct itimerspec times = {.it_interval = period, .it_value = period};
    timer_settime(thread->timer, 0, &times, NULL);
}

static bool is_sampled(int tid)
{
    for (size_t i = 0; i < thread_count; i++)
        if (atomic_load(&threads[i].tid) == tid)
            return true;
    return false;
}

void cpu_sampler_look(void)
{
    assert(atomic_load(&is_taken));
    DIR *directory = opendir("/proc/self/task");
    const struct dirent *entry;
    while (directory && thread_count < THREADS_MAX && (entry = readdir(directory))) {
        int tid = (int)strtol(entry->d_name, NULL, 10); /* 0: "." and ".." */
        if (tid > 0 && !is_sampled(tid))
            sample_thread(tid);
    }
    if (directory)
        closedir(directory);
}

bool cpu_sampler_start(void)
{
    if (atomic_exchange(&is_taken, true))
        return false;
    assert(thread_count == 0);
    /* It stays: a late signal without it would end the process. */
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigfillset(&action.sa_mask);
    sigaction(SIGPROF, &action, NULL);
    cpu_sampler_look();
    return true;
}

/* ---- the end ---- */

void cpu_sampler_stop(void)
{
    assert(atomic_load(&is_taken));
    for (size_t i = 0; i < thread_count; i++) {
        timer_delete(threads[i].timer);
        atomic_store(&threads[i].is_active, false);
        while (atomic_load(&threads[i].is_busy))
            sched_yield();
    }
}

uint64_t cpu_sampler_visit(void (*visit)(void *context, const char *thread,
                                         const struct stack_entry *entry),
                           void *context)
{
    uint64_t lost = 0;
    for (size_t i = 0; i < thread_count; i++) {
        const struct stack_table *table = threads[i].table;
        const struct stack_entry *entry = stack_table_first(table);
        for (; entry; entry = stack_table_next(table, entry))
            visit(context, threads[i].name, entry);
        lost += table->lost;
    }
    return lost;
}

void cpu_sampler_release(void)
{
    assert(atomic_load(&is_taken));
    for (size_t i = 0; i < thread_count; i++) {
        assert(!atomic_load(&threads[i].is_active));
        stack_table_free(threads[i].table);
        threads[i].table = NULL;
    }
    thread_count = 0;
    atomic_store(&is_taken, false);
}
