#include "core/base/worker.h"

#include "core/base/clock.h"
#include "core/base/container_of.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/metrics.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool worker_is_current(const struct worker *worker)
{
    return !atomic_load(&worker->running) || pthread_equal(worker->self, pthread_self()) ||
           atomic_load(&worker->paused);
}

uint64_t worker_now(struct worker *worker)
{
    if (!worker->manual)
        worker->now_ns = clock_monotonic_ns();
    return worker->now_ns;
}

/* Runs all messages in the order they were posted; the inbox has the newest first. */
static size_t run_messages(struct worker *worker)
{
    struct post *newest = atomic_exchange_explicit(&worker->inbox, NULL, memory_order_acquire);
    struct post *oldest = NULL;
    while (newest) {
        struct post *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    size_t count = 0;
    while (oldest) {
        struct post *post = oldest;
        oldest = post->next; /* on_post may free it */
        post->on_post(worker, post);
        count++;
    }
    return count;
}

static void on_mail(uv_async_t *mail)
{
    worker_now(mail->data);
    run_messages(mail->data);
}

/* ---- how long turns take ---- */

enum { HELD_MS = 1000 }; /* a turn of this length is logged */

void worker_begin_timed_piece(struct worker *worker, struct worker_piece *piece)
{
    assert(worker_is_current(worker));
    struct worker_piece *outer = worker->piece;
    uint64_t now = clock_monotonic_ns();
    if (outer)
        outer->spent_ns += now - outer->resumed_ns;
    *piece = (struct worker_piece){.outer = outer, .label = piece->label, .resumed_ns = now};
    worker->piece = piece;
}

void worker_end_timed_piece(struct worker *worker, struct worker_piece *piece)
{
    uint64_t now = clock_monotonic_ns();
    assert(worker->piece == piece);
    piece->spent_ns += now - piece->resumed_ns;
    if (!worker->longest.label || piece->spent_ns > worker->longest.spent_ns)
        worker->longest = *piece;
    worker->piece = piece->outer;
    if (piece->outer)
        piece->outer->resumed_ns = now;
}

static void log_held(const struct worker *worker, uint64_t turn_ms)
{
    const struct worker_piece *longest = &worker->longest;
    uint64_t turn_ns = turn_ms * 1000000;
    if (longest->label)
        log_warn(log_component(longest->label),
                 "A worker was blocked; this component took the largest part",
                 LOG_U64("worker", worker->index), LOG_DURATION("blocked", turn_ns),
                 LOG_DURATION("component_took", longest->spent_ns));
    else
        log_warn(LOG_PROCESS, "A worker was blocked; no component took a large part",
                 LOG_U64("worker", worker->index), LOG_DURATION("blocked", turn_ns));
}

/* Records the duration of a turn, from the wake-up to before the next sleep, in milliseconds. It
 * uses the loop's clock, which libuv reads at the wake-up and again before the prepare handles, so
 * no extra call is needed. The work of the prepare handles (writing answers) is not included. */
static void end_turn(struct worker *worker)
{
    assert(!worker->piece);
    if (worker->lag && worker->woke_ms > 0) {
        uint64_t turn_ms = uv_now(&worker->loop) - worker->woke_ms;
        histogram_record(worker->lag, worker->index, (double)turn_ms / 1e3);
        if (turn_ms >= HELD_MS)
            log_held(worker, turn_ms);
    }
    worker->longest.label = NULL;
}

static void on_wake(uv_timer_t *wake)
{
    struct worker *worker = wake->data;
    worker->wake_ns = UINT64_MAX;
}

/* After polling: sets now_ns for the new turn, then handles messages and due timers. */
static void on_check(uv_check_t *check)
{
    struct worker *worker = check->data;
    worker->woke_ms = uv_now(check->loop);
    timer_queue_run(&worker->timers, worker_now(worker));
}

/* Before polling, after all other prepare handles (libuv calls the first one started last): makes
 * the loop wake up for the earliest timer. One libuv timer serves all of ours. */
static void on_prepare(uv_prepare_t *prepare)
{
    struct worker *worker = prepare->data;
    end_turn(worker);
    uint64_t next = timer_queue_next(&worker->timers);
    worker->turn++;
    if (next == worker->wake_ns)
        return;
    worker->wake_ns = next;
    if (next == UINT64_MAX) {
        uv_timer_stop(&worker->wake);
        return;
    }
    uint64_t now = clock_monotonic_ns();
    uint64_t delay_ms = next > now ? (next - now + 999999) / 1000000 : 0;
    uv_update_time(&worker->loop);
    uv_timer_start(&worker->wake, on_wake, delay_ms, 0);
}

bool worker_init(struct worker *worker, unsigned index, struct error *err)
{
    *worker =
        (struct worker){.index = index, .wake_ns = UINT64_MAX, .now_ns = clock_monotonic_ns()};
    int rc = uv_loop_init(&worker->loop);
    if (rc != 0)
        return error_set(err, "event loop: %s", uv_strerror(rc));
    rc = uv_async_init(&worker->loop, &worker->mail, on_mail);
    if (rc != 0)
        return error_set(err, "event loop: %s", uv_strerror(rc));
    uv_timer_init(&worker->loop, &worker->wake);
    uv_prepare_init(&worker->loop, &worker->prepare);
    uv_check_init(&worker->loop, &worker->check);
    worker->mail.data = worker->wake.data = worker->prepare.data = worker->check.data = worker;
    uv_prepare_start(&worker->prepare, on_prepare);
    uv_check_start(&worker->check, on_check);
    return true;
}

void worker_init_manual(struct worker *worker, unsigned index, uint64_t now_ns)
{
    *worker = (struct worker){.index = index, .manual = true, .now_ns = now_ns};
}

static bool has_work(const struct worker *workers, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (workers[i].jobs_begun > 0 ||
            atomic_load_explicit(&workers[i].inbox, memory_order_relaxed))
            return true;
    return false;
}

void workers_settle(struct worker *workers, unsigned count)
{
    do
        for (unsigned i = 0; i < count; i++) {
            assert(!atomic_load(&workers[i].running));
            if (!workers[i].manual)
                uv_run(&workers[i].loop, workers[i].jobs_begun > 0 ? UV_RUN_ONCE : UV_RUN_NOWAIT);
            run_messages(&workers[i]);
        }
    while (has_work(workers, count));
}

void worker_deinit(struct worker *worker)
{
    workers_settle(worker, 1);
    if (!worker->manual) {
        uv_close((uv_handle_t *)&worker->mail, NULL);
        uv_close((uv_handle_t *)&worker->wake, NULL);
        uv_close((uv_handle_t *)&worker->prepare, NULL);
        uv_close((uv_handle_t *)&worker->check, NULL);
        /* Handles closed by components are finished here, too. */
        uv_run(&worker->loop, UV_RUN_DEFAULT);
        int rc = uv_loop_close(&worker->loop);
        assert(rc == 0);
    }
    timer_queue_deinit(&worker->timers);
}

/* From here on, the worker belongs to this thread. */
static void begin_run(struct worker *worker)
{
    assert(!worker->manual);
    worker_now(worker);
    worker->self = pthread_self();
    atomic_store(&worker->running, true);
}

static void run_loop(struct worker *worker)
{
    while (!atomic_load_explicit(&worker->stopping, memory_order_acquire))
        uv_run(&worker->loop, UV_RUN_ONCE);
    run_messages(worker);
    atomic_store(&worker->running, false);
}

struct thread_start {
    struct worker *worker;
    uv_sem_t begun;
};

/* For profilers and debuggers. */
static void name_thread(const struct worker *worker)
{
    char name[16]; /* the most that the kernel keeps */
    snprintf(name, sizeof name, "worker %u", worker->index);
    pthread_setname_np(pthread_self(), name);
}

static void *thread_main(void *context)
{
    struct thread_start *start = context;
    struct worker *worker = start->worker;
    name_thread(worker);
    begin_run(worker);
    uv_sem_post(&start->begun); /* `start` is invalid from here on */
    run_loop(worker);
    return NULL;
}

bool worker_start(struct worker *worker, struct error *err)
{
    assert(!worker->manual && !atomic_load(&worker->running));
    struct thread_start start = {.worker = worker};
    uv_sem_init(&start.begun, 0);
    int rc = pthread_create(&worker->thread, NULL, thread_main, &start);
    /* Wait: until the thread has begun, worker_is_current would allow the caller to touch the
     * worker. */
    if (rc == 0)
        uv_sem_wait(&start.begun);
    uv_sem_destroy(&start.begun);
    return rc == 0 ||
           error_set(err, "worker %u: cannot start a thread: %s", worker->index, strerror(rc));
}

void worker_stop(struct worker *worker)
{
    atomic_store_explicit(&worker->stopping, true, memory_order_release);
    uv_async_send(&worker->mail);
}

void worker_join(struct worker *worker)
{
    pthread_join(worker->thread, NULL);
}

void worker_post(struct worker *worker, struct post *post)
{
    assert(post->on_post);
    struct post *head = atomic_load_explicit(&worker->inbox, memory_order_relaxed);
    do {
        post->next = head;
    } while (!atomic_compare_exchange_weak_explicit(&worker->inbox, &head, post,
                                                    memory_order_release, memory_order_relaxed));
    /* Only the first message in an empty inbox has to wake the worker. */
    if (!head && !worker->manual)
        uv_async_send(&worker->mail);
}

void worker_unpost(struct worker *worker, struct post *post)
{
    assert(worker->manual);
    struct post *newest = atomic_load_explicit(&worker->inbox, memory_order_relaxed), *one = newest;
    if (newest == post) {
        atomic_store_explicit(&worker->inbox, post->next, memory_order_relaxed);
        return;
    }
    while (one && one->next != post)
        one = one->next;
    assert(one);
    one->next = post->next;
}

struct call {
    struct post post;
    void (*run)(void *context);
    void *context;
    uv_sem_t done;
};

static void on_call(struct worker *worker, struct post *post)
{
    (void)worker;
    struct call *call = container_of(post, struct call, post);
    call->run(call->context);
    uv_sem_post(&call->done); /* `call` is invalid from here on */
}

void worker_call(struct worker *worker, void (*run)(void *context), void *context)
{
    if (worker_is_current(worker)) {
        run(context);
        return;
    }
    struct call call = {.post.on_post = on_call, .run = run, .context = context};
    uv_sem_init(&call.done, 0);
    worker_post(worker, &call.post);
    uv_sem_wait(&call.done);
    uv_sem_destroy(&call.done);
}

struct paused_worker {
    struct post post;
    struct worker *worker;
    uv_sem_t waits;
    uv_sem_t resumes;
};

struct workers_pause {
    unsigned count;
    struct paused_worker workers[];
};

static void on_pause(struct worker *worker, struct post *post)
{
    struct paused_worker *paused = container_of(post, struct paused_worker, post);
    assert(paused->worker == worker);
    uv_sem_post(&paused->waits);
    uv_sem_wait(&paused->resumes);
    atomic_store(&worker->paused, false);
    uv_sem_post(&paused->waits); /* `paused` is invalid from here on */
}

struct workers_pause *workers_pause(struct worker *workers, unsigned count)
{
    struct workers_pause *pause =
        memory_zalloc(sizeof *pause + count * sizeof(struct paused_worker));
    for (unsigned i = 0; i < count; i++) {
        if (worker_is_current(&workers[i]))
            continue; /* nobody runs it */
        struct paused_worker *paused = &pause->workers[pause->count++];
        paused->post.on_post = on_pause;
        paused->worker = &workers[i];
        uv_sem_init(&paused->waits, 0);
        uv_sem_init(&paused->resumes, 0);
        worker_post(&workers[i], &paused->post);
    }
    for (unsigned i = 0; i < pause->count; i++) {
        uv_sem_wait(&pause->workers[i].waits);
        atomic_store(&pause->workers[i].worker->paused, true);
    }
    return pause;
}

void workers_resume(struct workers_pause *pause)
{
    for (unsigned i = 0; i < pause->count; i++)
        uv_sem_post(&pause->workers[i].resumes);
    for (unsigned i = 0; i < pause->count; i++) {
        uv_sem_wait(&pause->workers[i].waits);
        uv_sem_destroy(&pause->workers[i].waits);
        uv_sem_destroy(&pause->workers[i].resumes);
    }
    free(pause);
}

void worker_set_timer(struct worker *worker, struct timer *timer, uint64_t delay_ns)
{
    uint64_t now = worker_now(worker);
    uint64_t deadline = delay_ns > UINT64_MAX - 1 - now ? UINT64_MAX - 1 : now + delay_ns;
    timer_queue_set(&worker->timers, timer, deadline);
}

void worker_cancel_timer(struct worker *worker, struct timer *timer)
{
    timer_queue_cancel(&worker->timers, timer);
}

void worker_advance(struct worker *worker, uint64_t now_ns)
{
    assert(worker->manual && now_ns >= worker->now_ns);
    /* Step from deadline to deadline, so that each timer sees the time it was set for. */
    for (;;) {
        worker->turn++;
        while (run_messages(worker) > 0)
            ; /* messages may answer with messages */
        uint64_t next = timer_queue_next(&worker->timers);
        if (next > now_ns)
            break;
        if (next > worker->now_ns)
            worker->now_ns = next;
        timer_queue_run(&worker->timers, worker->now_ns);
    }
    worker->now_ns = now_ns;
}
