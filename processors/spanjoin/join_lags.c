#include "processors/spanjoin/join_lags.h"

#include "core/base/memory.h"

#include <assert.h>

/* Spans of one request arrive at the same time, so that equal lags follow one another. */
struct lag_run {
    struct histogram *histogram;
    unsigned worker;
    int64_t lag_ns;
    uint64_t times;
};

static void end_run(struct lag_run *run)
{
    if (run->times > 0)
        histogram_record_many(run->histogram, run->worker, (double)run->lag_ns / 1e9, run->times);
    run->times = 0;
}

static void record_lag(struct lag_run *run, int64_t lag_ns)
{
    if (lag_ns != run->lag_ns)
        end_run(run);
    run->lag_ns = lag_ns;
    run->times++;
}

static bool has_lag(const struct sample_key *key, bool by_thread)
{
    return key->match && key->samples > 0 && key->by_thread == by_thread;
}

void join_lags_record_named(const struct sample_plan *plan, uint64_t now_ns,
                            struct histogram *histogram, unsigned worker)
{
    struct lag_run run = {.histogram = histogram, .worker = worker};
    for (uint32_t k = 0; k < plan->key_count; k++)
        if (has_lag(&plan->keys[k], false))
            record_lag(&run, (int64_t)(now_ns - plan->keys[k].match->arrived_ns));
    end_run(&run);
}

void join_lags_note_threads(const struct sample_plan *plan, uint64_t arrived_ns,
                            struct join_lags *out)
{
    *out = (struct join_lags){.count = 0};
    if (plan->by_thread == 0)
        return;
    out->items_ns = memory_array(plan->key_count, sizeof *out->items_ns);
    for (uint32_t k = 0; k < plan->key_count; k++)
        if (has_lag(&plan->keys[k], true))
            out->items_ns[out->count++] = (int64_t)(arrived_ns - plan->keys[k].match->arrived_ns);
    assert(out->count <= plan->key_count);
}

void join_lags_record(struct join_lags *lags, struct histogram *histogram, unsigned worker)
{
    struct lag_run run = {.histogram = histogram, .worker = worker};
    for (uint32_t i = 0; i < lags->count; i++)
        record_lag(&run, lags->items_ns[i]);
    end_run(&run);
    join_lags_deinit(lags);
}

void join_lags_deinit(struct join_lags *lags)
{
    free(lags->items_ns);
    *lags = (struct join_lags){.count = 0};
}
