#include "core/base/timer.h"

#include "core/base/memory.h"

#include <assert.h>

static bool earlier(const struct timer *a, const struct timer *b)
{
    return a->deadline_ns != b->deadline_ns ? a->deadline_ns < b->deadline_ns
                                            : a->sequence < b->sequence;
}

static void put(struct timer_queue *queue, size_t position, struct timer *timer)
{
    queue->heap[position] = timer;
    timer->position = position;
}

static void sift_up(struct timer_queue *queue, struct timer *timer)
{
    size_t position = timer->position;
    while (position > 1 && earlier(timer, queue->heap[position / 2])) {
        put(queue, position, queue->heap[position / 2]);
        position /= 2;
    }
    put(queue, position, timer);
}

static void sift_down(struct timer_queue *queue, struct timer *timer)
{
    size_t position = timer->position;
    for (;;) {
        size_t child = position * 2;
        if (child > queue->count)
            break;
        if (child < queue->count && earlier(queue->heap[child + 1], queue->heap[child]))
            child++;
        if (!earlier(queue->heap[child], timer))
            break;
        put(queue, position, queue->heap[child]);
        position = child;
    }
    put(queue, position, timer);
}

void timer_queue_deinit(struct timer_queue *queue)
{
    assert(queue->count == 0);
    free(queue->heap);
    *queue = (struct timer_queue){0};
}

static void insert(struct timer_queue *queue, struct timer *timer)
{
    if (queue->count + 1 >= queue->capacity) {
        queue->capacity = queue->capacity ? queue->capacity * 2 : 64;
        queue->heap = memory_grow(queue->heap, queue->capacity, sizeof(struct timer *));
    }
    put(queue, ++queue->count, timer);
}

void timer_queue_set(struct timer_queue *queue, struct timer *timer, uint64_t deadline_ns)
{
    assert(timer->on_timer);
    timer->deadline_ns = deadline_ns < queue->run_ns ? queue->run_ns : deadline_ns;
    timer->sequence = ++queue->sequence;
    if (!timer_is_set(timer))
        insert(queue, timer);
    sift_up(queue, timer);
    sift_down(queue, timer);
}

void timer_queue_cancel(struct timer_queue *queue, struct timer *timer)
{
    if (!timer_is_set(timer))
        return;
    size_t position = timer->position;
    assert(queue->heap[position] == timer);
    timer->position = 0;
    struct timer *last = queue->heap[queue->count--];
    if (last == timer)
        return;
    put(queue, position, last);
    sift_up(queue, last);
    sift_down(queue, last);
}

size_t timer_queue_run_some(struct timer_queue *queue, uint64_t now_ns, size_t most)
{
    assert(queue->run_ns == 0);        /* not from within a timer */
    uint64_t latest = queue->sequence; /* timers set from now on wait for the next run */
    size_t called = 0;
    queue->run_ns = now_ns;
    while (queue->count > 0 && called < most) {
        struct timer *first = queue->heap[1];
        if (first->deadline_ns > now_ns || first->sequence > latest)
            break;
        timer_queue_cancel(queue, first);
        first->on_timer(first);
        called++;
    }
    queue->run_ns = 0;
    return called;
}

size_t timer_queue_run(struct timer_queue *queue, uint64_t now_ns)
{
    return timer_queue_run_some(queue, now_ns, SIZE_MAX);
}

uint64_t timer_queue_next(const struct timer_queue *queue)
{
    return queue->count > 0 ? queue->heap[1]->deadline_ns : UINT64_MAX;
}
