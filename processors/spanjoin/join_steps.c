#include "processors/spanjoin/join_steps.h"

#include "core/base/container_of.h"
#include "core/base/memory.h"
#include "processors/spanjoin/hold.h"
#include "processors/spanjoin/keep_samples.h"

#include <assert.h>

static struct request_sender sender_of(const struct spanjoin *join, const struct batch *batch,
                                       uint64_t now_ns)
{
    return (struct request_sender){.settings = join->settings,
                                   .index = join->index,
                                   .batch = batch,
                                   .now_ns = now_ns,
                                   .keep = &join->keep};
}

/* ---- messages to waiting requests ---- */

struct wake_post {
    struct post post;
    struct spanjoin *join;
    size_t count;
    struct woken {
        uint64_t hold;
        enum signal signal;
    } items[];
};

static void on_wake(struct worker *worker, struct post *post)
{
    struct wake_post *wake = container_of(post, struct wake_post, post);
    for (size_t i = 0; i < wake->count; i++) {
        struct spanjoin_node *node = wake->join->nodes[worker->index][wake->items[i].signal];
        if (node)
            holds_wake(node, wake->items[i].hold);
    }
    spanjoin_unref(wake->join);
    free(wake);
}

static void post_to_worker(struct spanjoin *join, unsigned worker, size_t count,
                           const struct span_wakeups *wakeups)
{
    struct wake_post *wake = memory_alloc(sizeof *wake + count * sizeof *wake->items);
    wake->post.on_post = on_wake;
    wake->join = join;
    wake->count = 0;
    for (size_t i = 0; i < wakeups->count; i++) {
        const struct span_wakeup *wakeup = &wakeups->items[i];
        if (wakeup->waiter.worker != worker)
            continue;
        enum signal signal =
            wakeup->waits_for == SPAN_WAITS_FOR_SPAN ? SIGNAL_PROFILES : SIGNAL_TRACES;
        wake->items[wake->count++] = (struct woken){wakeup->waiter.hold, signal};
    }
    assert(wake->count == count);
    atomic_fetch_add_explicit(&join->references, 1, memory_order_relaxed);
    worker_post(&join->process->workers[worker], &wake->post);
}

/* Sends one message to each worker, however many requests wait there. */
static void post_wakeups(struct spanjoin *join, struct span_wakeups *wakeups)
{
    size_t counts[WORKERS_MAX] = {0};
    for (size_t i = 0; i < wakeups->count; i++) {
        assert(wakeups->items[i].waiter.worker < join->process->worker_count);
        counts[wakeups->items[i].waiter.worker]++;
    }
    for (unsigned worker = 0; wakeups->count > 0 && worker < join->process->worker_count; worker++)
        if (counts[worker] > 0)
            post_to_worker(join, worker, counts[worker], wakeups);
    span_wakeups_deinit(wakeups);
}

static void count_evictions(struct spanjoin_node *node)
{
    assert(node->node.worker->index < node->join->process->worker_count);
    for (unsigned i = 0; i < SPAN_EVICTION_COUNT; i++) {
        uint64_t evicted = span_index_take_evicted(node->join->index, i);
        if (evicted > 0)
            counter_add(node->join->metrics.evicted[i], node->node.worker->index, evicted);
    }
}

/* ---- traces ---- */

struct learning {
    struct span_reader reader;
    struct spanjoin *join;
    uint64_t now_ns;
    const struct span_waiter *waiter;
    struct learned_spans *learned;
    uint32_t count; /* spans so far */
};

static void add_lag(struct learned_spans *learned, int64_t lag_ns, struct arena *arena)
{
    learned->lags = arena_grow(arena, learned->lags, learned->lag_count, &learned->lag_capacity,
                               sizeof *learned->lags);
    learned->lags[learned->lag_count++] = lag_ns;
}

static void learn_block(struct span_reader *reader, struct span_put *puts, size_t count,
                        struct arena *arena)
{
    struct learning *learning = container_of(reader, struct learning, reader);
    struct learned_spans *learned = learning->learned;
    span_index_put_many(learning->join->index, learning->now_ns, puts, count, learning->waiter,
                        arena, &learned->wakeups);
    for (size_t i = 0; i < count; i++) {
        learned->late += puts[i].samples_left;
        learned->late_detail += puts[i].facts.is_kept ? puts[i].samples_left : 0;
        if (puts[i].waits)
            waiting_keys_add(&learned->keys, learning->count + (uint32_t)i, puts[i].place);
        if (puts[i].has_lag)
            add_lag(learned, puts[i].lag_ns, arena);
    }
    learning->count += (uint32_t)count;
}

void join_learn_spans(struct spanjoin *join, struct batch *batch, uint64_t now_ns,
                      const struct span_waiter *waiter, struct learned_spans *learned_out)
{
    struct learning learning = {.reader = {.read = learn_block, .wants_values = true},
                                .join = join,
                                .now_ns = now_ns,
                                .waiter = waiter,
                                .learned = learned_out};
    struct request_sender sender = sender_of(join, batch, now_ns);
    *learned_out = (struct learned_spans){.late = 0};
    learned_out->spans = request_spans_read(batch, &sender, &learning.reader);
    assert(waiter || learned_out->keys.count == 0);
}

void join_tell_learned(struct spanjoin_node *node, struct learned_spans *learned)
{
    assert(node->node.signal == SIGNAL_TRACES);
    const struct spanjoin_metrics *metrics = &node->join->metrics;
    unsigned worker = node->node.worker->index;
    post_wakeups(node->join, &learned->wakeups);
    count_evictions(node);
    for (uint32_t i = 0; i < learned->lag_count; i++)
        histogram_record(metrics->lag, worker, (double)learned->lags[i] / 1e9);
    if (learned->late > 0)
        counter_add(metrics->unjoined[UNJOINED_SPAN_OPEN], worker, learned->late);
    if (learned->late_detail > 0 && node->join->settings->keep.unjoined != KEEP_PASS)
        counter_add(metrics->keep[KEEP_RESULT_LATE], worker, learned->late_detail);
    learned->late = learned->late_detail = 0;
    learned->lag_count = 0;
}

struct collecting {
    struct span_reader reader;
    struct spanjoin *join;
    uint64_t now_ns;
    const struct span_waiter *waiter;
    struct waiting_keys *keys;
    uint32_t count; /* spans so far */
};

static void collect_block(struct span_reader *reader, struct span_put *puts, size_t count,
                          struct arena *arena)
{
    struct collecting *collecting = container_of(reader, struct collecting, reader);
    for (size_t i = 0; i < count; i++)
        puts[i].place = waiting_keys_place(collecting->keys, collecting->count + (uint32_t)i);
    collecting->count += (uint32_t)count;
    span_index_collect_many(collecting->join->index, collecting->now_ns, puts, count,
                            collecting->waiter, arena);
}

struct request_spans join_collect_spans(struct spanjoin *join, struct batch *batch, uint64_t now_ns,
                                        const struct span_waiter *waiter, struct waiting_keys *keys)
{
    assert(waiter && keys); /* of join_learn_spans */
    struct collecting collecting = {.reader.read = collect_block,
                                    .join = join,
                                    .now_ns = now_ns,
                                    .waiter = waiter,
                                    .keys = keys};
    struct request_sender sender = sender_of(join, batch, now_ns);
    return request_spans_read(batch, &sender, &collecting.reader);
}

/* ---- profiles ---- */

struct sample_plan *join_plan_samples(struct spanjoin *join, struct batch *batch, uint64_t now_ns,
                                      bool with_totals, uint64_t request)
{
    struct request_sender sender = sender_of(join, batch, now_ns);
    return sample_plan_new(batch, &sender, with_totals ? join->index : NULL, request);
}

void join_find_spans(struct spanjoin *join, struct sample_plan *plan, uint64_t now_ns)
{
    span_index_find_many(join->index, now_ns, plan->finds, plan->key_count, &plan->arena);
    sample_plan_choose(plan);
    keep_samples_decide(plan);
}

bool join_records_samples(const struct sample_plan *plan)
{
    return plan->settings->keep.reads_cpu || sample_plan_missing(plan) > 0;
}

uint64_t join_leave_samples(struct spanjoin *join, struct sample_plan *plan, uint64_t now_ns,
                            const struct span_waiter *waiter)
{
    bool reads_cpu = plan->settings->keep.reads_cpu;
    uint64_t late = 0;
    for (uint32_t k = 0; k < plan->key_count; k++) {
        bool leaves = !plan->keys[k].match || (reads_cpu && !plan->finds[k].is_kept);
        plan->finds[k].samples_left = leaves ? plan->keys[k].samples : 0;
    }
    span_index_leave_many(join->index, now_ns, plan->finds, plan->key_count, waiter);
    for (uint32_t k = 0; k < plan->key_count; k++)
        late += plan->finds[k].samples_late;
    return late;
}

struct join_counts join_count_samples(const struct sample_plan *plan, bool overflow)
{
    struct join_counts counts = {.no_id = plan->without_id, .overflow = plan->beyond_keys};
    for (uint32_t k = 0; k < plan->key_count; k++) {
        const struct sample_key *key = &plan->keys[k];
        if (key->match)
            counts.joined += key->samples;
        else if (plan->finds[k].presence == SPAN_EXPIRED)
            counts.expired += key->samples;
        else if (overflow)
            counts.overflow += key->samples;
        else
            counts.not_found += key->samples;
        counts.ambiguous += key->ambiguous ? key->samples : 0;
    }
    return counts;
}

void join_add_samples(struct spanjoin_node *node, struct sample_plan *plan,
                      const struct span_waiter *waiter)
{
    assert(node->node.signal == SIGNAL_PROFILES && plan->index == node->join->index);
    struct span_wakeups wakeups = {0};
    sample_plan_remember_profiles(plan);
    span_index_add_many(node->join->index, node->node.worker->now_ns, plan->finds, plan->key_count,
                        waiter, &wakeups);
    post_wakeups(node->join, &wakeups);
    count_evictions(node);
}

void join_record_lags(struct spanjoin_node *node, const struct sample_plan *plan, uint64_t now_ns)
{
    for (uint32_t k = 0; k < plan->key_count; k++)
        if (plan->keys[k].match && plan->keys[k].samples > 0)
            histogram_record(node->join->metrics.lag, node->node.worker->index,
                             (double)(int64_t)(now_ns - plan->keys[k].match->arrived_ns) / 1e9);
}
