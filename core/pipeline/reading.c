#include "core/pipeline/reading.h"

#include "core/base/container_of.h"

#include <assert.h>

static void run(struct job *job)
{
    struct reading *reading = container_of(job, struct reading, job);
    reading->read(reading);
    reading->body = NULL;
}

static bool is_wanted(const struct job *job)
{
    return !exchange_is_abandoned(container_of(job, const struct reading, job)->exchange);
}

static void on_done(struct job *job, bool did_run)
{
    struct reading *reading = container_of(job, struct reading, job);
    if (!did_run) {
        buffer_unref(reading->body);
        reading->body = NULL;
        reading->why = verdict_sender_is_gone;
    }
    assert(!reading->body);
    assert(reading->request || !verdict_is_ok(&reading->why));
    reading->done(reading);
}

void reading_start(struct reading *reading)
{
    assert(reading->body && !reading->request);
    reading->why = verdict_ok;
    reading->job = (struct job){.run = run, .on_done = on_done, .is_wanted = is_wanted};
    job_start(exchange_worker(reading->exchange), &reading->job);
}

void reading_drop_abandoned(struct reading *reading, struct counter *refused)
{
    struct exchange *exchange = reading->exchange;
    if (!reading->request || reading->items == 0 || !exchange_is_abandoned(exchange))
        return;
    buffer_unref(reading->request);
    reading->request = NULL;
    reading->why = verdict_sender_is_gone;
    counter_add(refused, exchange_worker(exchange)->index, reading->items);
}
