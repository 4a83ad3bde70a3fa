#include "core/pipeline/pace.h"

#include "core/base/container_of.h"
#include "core/base/worker.h"

#include <assert.h>

static void on_timer(struct timer *timer)
{
    pace_pump(container_of(timer, struct pace, timer));
}

void pace_init(struct pace *pace, struct worker *worker, bool (*next)(struct pace *pace))
{
    *pace = (struct pace){.worker = worker, .next = next, .timer.on_timer = on_timer};
}

/* Whether this turn of the loop may process one more item. If not, sets the timer for the next
 * turn. */
static bool has_share(struct pace *pace)
{
    struct worker *worker = pace->worker;
    if (pace->turn != worker->turn) {
        pace->turn = worker->turn;
        pace->in_turn = 0;
    }
    if (pace->in_turn < PACE_PER_TURN)
        return true;
    worker_set_timer(worker, &pace->timer, 0);
    return false;
}

void pace_pump(struct pace *pace)
{
    assert(worker_is_current(pace->worker));
    if (pace->pumping)
        return;
    pace->pumping = true;
    while (!timer_is_set(&pace->timer) && has_share(pace) && pace->next(pace))
        pace->in_turn++;
    pace->pumping = false;
}

void pace_pause(struct pace *pace, int64_t delay_ns)
{
    assert(delay_ns >= 0);
    worker_set_timer(pace->worker, &pace->timer, (uint64_t)delay_ns);
}

bool pace_is_paused(const struct pace *pace)
{
    return timer_is_set(&pace->timer);
}

void pace_resume(struct pace *pace)
{
    worker_cancel_timer(pace->worker, &pace->timer);
    pace_pump(pace);
}

void pace_count_bytes(struct pace *pace, size_t bytes)
{
    pace->in_turn += bytes / PACE_BYTES;
}

void pace_count_work(struct pace *pace, size_t bytes)
{
    pace->in_turn += bytes / (PACE_BYTES / 4);
}

void pace_stop(struct pace *pace)
{
    if (pace->worker)
        worker_cancel_timer(pace->worker, &pace->timer);
}
