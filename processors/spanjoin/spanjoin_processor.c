/*
 * spanjoin_processor: joins profile samples to the spans they were taken under, and tells spans
 * what they cost.
 *
 * docs/spanjoin.md is the contract. A request is read once for the ids that it names, the index is
 * asked, and it either goes on at once or waits (hold.h).
 *
 * Owner: the component owns struct spanjoin together with messages under way.
 *
 * Thread: each node on its worker.
 */
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/data/span_index.h"
#include "processors/spanjoin/enrich_samples.h"
#include "processors/spanjoin/enrich_spans.h"
#include "processors/spanjoin/spanjoin.h"

#include <assert.h>
#include <inttypes.h>

#define SWEEP_MAX_NS UINT64_C(10000000000)
#define SWEEP_MIN_NS UINT64_C(250000000)
#define RETRY_AFTER_NS 1000000000

struct spanjoin_component {
    struct component component;
    struct spanjoin *join;
};

static uint64_t now_of(const struct spanjoin_node *node)
{
    return node->node.worker->now_ns;
}

static struct request_sender sender_of(const struct spanjoin_node *node, const struct batch *batch)
{
    return (struct request_sender){.settings = node->join->settings,
                                   .index = node->join->index,
                                   .batch = batch,
                                   .now_ns = now_of(node)};
}

static bool other_side_is_there(const struct spanjoin_node *node)
{
    enum signal other = node->node.signal == SIGNAL_TRACES ? SIGNAL_PROFILES : SIGNAL_TRACES;
    return node->node.component->pipeline_count[other] > 0;
}

/* --- messages to who waits --- */

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
    struct wake_post *wake = (struct wake_post *)post;
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
    atomic_fetch_add_explicit(&join->references, 1, memory_order_relaxed);
    worker_post(&join->process->workers[worker], &wake->post);
}

/* One message per worker, however many wait there. */
static void post_wakeups(struct spanjoin *join, struct span_wakeups *wakeups)
{
    size_t counts[WORKERS_MAX] = {0};
    for (size_t i = 0; i < wakeups->count; i++)
        counts[wakeups->items[i].waiter.worker]++;
    for (unsigned worker = 0; wakeups->count > 0 && worker < join->process->worker_count; worker++)
        if (counts[worker] > 0)
            post_to_worker(join, worker, counts[worker], wakeups);
    span_wakeups_deinit(wakeups);
}

static void count_evictions(struct spanjoin_node *node)
{
    for (unsigned i = 0; i < EVICTION_REASONS; i++) {
        uint64_t evicted = span_index_take_evicted(node->join->index, i);
        if (evicted > 0)
            counter_add(node->join->metrics.evicted[i], node->node.worker->index, evicted);
    }
}

/* --- profiles --- */

static void record_lags(struct spanjoin_node *node, const struct sample_plan *plan)
{
    for (uint32_t k = 0; k < plan->key_count; k++)
        if (plan->keys[k].match && plan->keys[k].samples > 0)
            histogram_record(node->join->metrics.lag, node->node.worker->index,
                             (double)(int64_t)(now_of(node) - plan->keys[k].match->arrived_ns) /
                                 1e9);
}

static struct join_counts count_samples(const struct sample_plan *plan, bool overflow)
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

/* Remembers what goes on without its span, so that it is counted when the span comes. */
static void leave_spans(struct spanjoin_node *node, struct sample_plan *plan,
                        const struct span_waiter *waiter)
{
    for (uint32_t k = 0; k < plan->key_count; k++)
        plan->finds[k].samples_left = plan->keys[k].match ? 0 : plan->keys[k].samples;
    span_index_leave_many(node->join->index, now_of(node), plan->finds, plan->key_count, waiter);
}

static void add_to_index(struct spanjoin_node *node, struct sample_plan *plan,
                         const struct span_waiter *waiter)
{
    struct span_wakeups wakeups = {0};
    sample_plan_remember_profiles(plan);
    span_index_add_many(node->join->index, now_of(node), plan->finds, plan->key_count, waiter,
                        &wakeups);
    post_wakeups(node->join, &wakeups);
    count_evictions(node);
}

static void hold_profiles(struct spanjoin_node *node, struct batch *batch, struct sample_plan *plan,
                          struct batch *kept, size_t charged)
{
    struct hold *hold = hold_new(node, holds_take_id(node), kept, charged);
    struct span_waiter waiter = {hold->id, node->node.worker->index};
    add_to_index(node, plan, &waiter);
    for (uint32_t k = 0; k < plan->key_count; k++)
        if (plan->finds[k].waits)
            waiting_keys_add(&hold->keys, k, plan->finds[k].place);
    sample_plan_free(plan);
    if (hold->keys.count > 0)
        hold_wait(hold, hold->keys.count, node->join->settings->samples.wait);
    else
        hold_leave(hold);
    /* Last: it may bring the next request, for which this one has to leave. */
    batch_drop(batch, &verdict_ok);
}

/* Goes on at once, with the receipt that it came with. */
static void pass_profiles(struct spanjoin_node *node, struct batch *batch, struct sample_plan *plan,
                          bool overflow)
{
    struct join_counts counts = count_samples(plan, overflow);
    if (plan->index) {
        uint32_t missing = sample_plan_missing(plan);
        add_to_index(node, plan, NULL);
        if (missing > 0)
            leave_spans(node, plan, NULL);
    }
    spanjoin_count(node, &counts);
    sample_plan_apply(plan);
    sample_plan_free(plan);
    node_forward(&node->node, batch);
}

static void refuse(struct spanjoin_node *node, struct batch *batch)
{
    struct verdict verdict = verdict_try_later(
        GRPC_RESOURCE_EXHAUSTED, RETRY_AFTER_NS, "%s: max_held_mib is reached, %zu MiB are held",
        node->node.component->id, budget_used(&node->join->held) >> 20);
    node_refuse(&node->node, batch, REFUSED_FULL, &verdict);
}

/* No room to wait in: it goes on as it is where sending it again would not help, or where room is
 * reserved for it already. */
static bool must_go_on(const struct batch *batch, enum hold_room room)
{
    return room == HOLD_NEVER || !batch->receipt || batch->reservation;
}

static bool may_wait(const struct spanjoin_node *node, int64_t wait_ns)
{
    return wait_ns > 0 && !node->node.draining && other_side_is_there(node);
}

static void consume_profiles(struct spanjoin_node *node, struct batch *batch)
{
    struct spanjoin *join = node->join;
    struct span_index *index = other_side_is_there(node) ? join->index : NULL;
    uint64_t request = atomic_fetch_add_explicit(&join->requests, 1, memory_order_relaxed) + 1;
    struct request_sender sender = sender_of(node, batch);
    struct sample_plan *plan = sample_plan_new(batch, &sender, index, request);
    if (index) {
        span_index_find_many(index, now_of(node), plan->finds, plan->key_count, &plan->arena);
        sample_plan_choose(plan);
        record_lags(node, plan);
    }
    uint32_t missing = index ? sample_plan_missing(plan) : 0;
    if (missing == 0 || !may_wait(node, join->settings->samples.wait)) {
        pass_profiles(node, batch, plan, false);
        return;
    }
    struct batch *kept = batch_clone(batch);
    size_t charged;
    enum hold_room room = holds_make_room(node, kept, missing, &charged);
    if (room == HOLD_ROOM) {
        hold_profiles(node, batch, plan, kept, charged);
        return;
    }
    batch_free(kept);
    if (must_go_on(batch, room)) {
        pass_profiles(node, batch, plan, true);
        return;
    }
    sample_plan_free(plan);
    refuse(node, batch);
}

/* --- traces --- */

struct learning {
    struct span_reader reader;
    struct spanjoin_node *node;
    const struct span_waiter *waiter;
    struct span_wakeups wakeups;
    struct waiting_keys keys;
    uint32_t count; /* spans so far */
    uint64_t late;  /* samples that had gone on without these spans */
};

static void learn_block(struct span_reader *reader, struct span_put *puts, size_t count,
                        struct arena *arena)
{
    struct learning *learning = (struct learning *)reader;
    struct spanjoin_node *node = learning->node;
    span_index_put_many(node->join->index, now_of(node), puts, count, learning->waiter, arena,
                        &learning->wakeups);
    for (size_t i = 0; i < count; i++) {
        learning->late += puts[i].samples_left;
        if (puts[i].waits)
            waiting_keys_add(&learning->keys, learning->count + (uint32_t)i, puts[i].place);
        if (puts[i].has_lag)
            histogram_record(node->join->metrics.lag, node->node.worker->index,
                             (double)puts[i].lag_ns / 1e9);
    }
    learning->count += (uint32_t)count;
}

/* keys_out: of waiter, the caller's; NULL: nobody waits. */
static struct request_spans learn_spans(struct spanjoin_node *node, struct batch *batch,
                                        const struct span_waiter *waiter,
                                        struct waiting_keys *keys_out)
{
    struct learning learning = {
        .reader = {.read = learn_block, .wants_values = true}, .node = node, .waiter = waiter};
    struct request_sender sender = sender_of(node, batch);
    struct request_spans spans = request_spans_read(batch, &sender, &learning.reader);
    post_wakeups(node->join, &learning.wakeups);
    count_evictions(node);
    if (learning.late > 0)
        counter_add(node->join->metrics.unjoined[UNJOINED_SPAN_OPEN], node->node.worker->index,
                    learning.late);
    assert(keys_out || learning.keys.count == 0);
    if (keys_out)
        *keys_out = learning.keys;
    return spans;
}

struct collecting {
    struct span_reader reader;
    struct spanjoin_node *node;
    struct span_waiter waiter;
    struct waiting_keys *keys;
    uint32_t count; /* spans so far */
};

static void collect_block(struct span_reader *reader, struct span_put *puts, size_t count,
                          struct arena *arena)
{
    struct collecting *collecting = (struct collecting *)reader;
    struct spanjoin_node *node = collecting->node;
    for (size_t i = 0; i < count; i++)
        puts[i].place = waiting_keys_place(collecting->keys, collecting->count + (uint32_t)i);
    collecting->count += (uint32_t)count;
    span_index_collect_many(node->join->index, now_of(node), puts, count, &collecting->waiter,
                            arena);
}

/* After learn_spans with this waiter, who waits no more. */
static struct request_spans collect_spans(struct spanjoin_node *node, struct batch *batch,
                                          uint64_t id, struct waiting_keys *keys)
{
    struct collecting collecting = {.reader.read = collect_block,
                                    .node = node,
                                    .waiter = {id, node->node.worker->index},
                                    .keys = keys};
    struct request_sender sender = sender_of(node, batch);
    return request_spans_read(batch, &sender, &collecting.reader);
}

static void pass_traces(struct spanjoin_node *node, struct batch *batch,
                        struct request_spans *spans)
{
    struct join_counts counts = {.spans_enriched =
                                     request_spans_enrich(batch, node->join->settings, spans)};
    request_spans_deinit(spans);
    spanjoin_count(node, &counts);
    node_forward(&node->node, batch);
}

/* The spans are in the index and wait under this id; true when the request is held or refused. */
static bool hold_traces(struct spanjoin_node *node, struct batch *batch,
                        struct request_spans *spans, uint64_t id, struct waiting_keys *keys)
{
    uint32_t waiting = spans->waiting;
    request_spans_deinit(spans);
    struct batch *kept = batch_clone(batch);
    size_t charged;
    enum hold_room room = holds_make_room(node, kept, waiting, &charged);
    if (room == HOLD_ROOM) {
        struct hold *hold = hold_new(node, id, kept, charged);
        hold->keys = *keys;
        hold_wait(hold, waiting, node->join->settings->spans.wait);
        batch_drop(batch, &verdict_ok); /* last, see hold_profiles */
        return true;
    }
    batch_free(kept);
    *spans = collect_spans(node, batch, id, keys);
    waiting_keys_deinit(keys);
    holds_return_id(node, id);
    if (must_go_on(batch, room))
        return false;
    request_spans_deinit(spans);
    refuse(node, batch);
    return true;
}

static void consume_traces(struct spanjoin_node *node, struct batch *batch)
{
    if (!may_wait(node, node->join->settings->spans.wait)) {
        struct request_spans spans = learn_spans(node, batch, NULL, NULL);
        pass_traces(node, batch, &spans);
        return;
    }
    struct span_waiter waiter = {holds_take_id(node), node->node.worker->index};
    struct waiting_keys keys;
    struct request_spans spans = learn_spans(node, batch, &waiter, &keys);
    if (spans.waiting == 0) {
        holds_return_id(node, waiter.hold);
        pass_traces(node, batch, &spans);
    } else if (!hold_traces(node, batch, &spans, waiter.hold, &keys)) {
        pass_traces(node, batch, &spans);
    }
}

/* --- both --- */

static void spanjoin_consume(struct node *node, struct batch *batch)
{
    batch_flatten(batch);
    if (node->signal == SIGNAL_TRACES)
        consume_traces((struct spanjoin_node *)node, batch);
    else
        consume_profiles((struct spanjoin_node *)node, batch);
}

void spanjoin_enrich_held(struct spanjoin_node *node, struct hold *hold, struct batch *batch)
{
    struct spanjoin *join = node->join;
    if (node->node.signal == SIGNAL_TRACES) {
        struct request_spans spans = collect_spans(node, batch, hold->id, &hold->keys);
        hold->counts.spans_enriched = request_spans_enrich(batch, join->settings, &spans);
        request_spans_deinit(&spans);
        return;
    }
    struct span_waiter waiter = {hold->id, node->node.worker->index};
    struct request_sender sender = sender_of(node, batch);
    struct sample_plan *plan = sample_plan_new(batch, &sender, NULL, 0);
    span_index_find_many(join->index, now_of(node), plan->finds, plan->key_count, &plan->arena);
    sample_plan_choose(plan);
    for (uint32_t k = 0; k < plan->key_count; k++)
        plan->finds[k].place = waiting_keys_place(&hold->keys, k);
    hold->counts = count_samples(plan, hold->overflow);
    if (sample_plan_missing(plan) > 0)
        leave_spans(node, plan, &waiter);
    sample_plan_apply(plan);
    sample_plan_free(plan);
}

void spanjoin_count(struct spanjoin_node *node, const struct join_counts *counts)
{
    const struct spanjoin_metrics *metrics = &node->join->metrics;
    unsigned worker = node->node.worker->index;
    counter_add(metrics->joined, worker, counts->joined);
    counter_add(metrics->unjoined[UNJOINED_NO_ID], worker, counts->no_id);
    counter_add(metrics->unjoined[UNJOINED_NOT_FOUND], worker, counts->not_found);
    counter_add(metrics->unjoined[UNJOINED_EXPIRED], worker, counts->expired);
    counter_add(metrics->unjoined[UNJOINED_OVERFLOW], worker, counts->overflow);
    counter_add(metrics->ambiguous, worker, counts->ambiguous);
    counter_add(metrics->spans_enriched, worker, counts->spans_enriched);
}

/* --- life of a node --- */

static void on_sweep(struct timer *timer)
{
    struct spanjoin_node *node =
        (struct spanjoin_node *)(void *)((char *)timer - offsetof(struct spanjoin_node, sweep));
    uint64_t every = (uint64_t)node->join->settings->window / 8;
    every = every < SWEEP_MIN_NS ? SWEEP_MIN_NS : every > SWEEP_MAX_NS ? SWEEP_MAX_NS : every;
    span_index_sweep(node->join->index, now_of(node));
    worker_set_timer(node->node.worker, &node->sweep, every);
}

static bool spanjoin_node_start(struct node *base, struct error *err)
{
    (void)err;
    struct spanjoin_node *node = (struct spanjoin_node *)base;
    node->join = ((struct spanjoin_component *)base->component)->join;
    unsigned worker = base->worker->index;
    bool is_first = worker == 0 && !node->join->nodes[0][SIGNAL_TRACES] &&
                    !node->join->nodes[0][SIGNAL_PROFILES];
    node->join->nodes[worker][base->signal] = node;
    node->sweep.on_timer = on_sweep;
    holds_init(node);
    if (is_first)
        on_sweep(&node->sweep);
    return true;
}

static void spanjoin_node_drain(struct node *node)
{
    holds_drain((struct spanjoin_node *)node);
}

static bool spanjoin_is_idle(const struct node *node)
{
    return holds_are_idle((const struct spanjoin_node *)node);
}

static void spanjoin_node_stop(struct node *base)
{
    struct spanjoin_node *node = (struct spanjoin_node *)base;
    worker_cancel_timer(base->worker, &node->sweep);
    node->join->nodes[base->worker->index][base->signal] = NULL;
    uint64_t lost = holds_give_up(node);
    if (lost > 0) {
        atomic_fetch_add(&base->component->process->lost_items, lost);
        counter_add(node->join->metrics.dropped_stopped, base->worker->index, lost);
        log_error(base->component->label, "Lost %" PRIu64 " held %s: the process ends", lost,
                  signal_item_name(base->signal));
    }
}

/* --- life of the component --- */

static bool spanjoin_init(struct component *component, struct error *err)
{
    for (int signal = 0; signal < SIGNAL_COUNT; signal++)
        if (component->pipeline_count[signal] > 1)
            return error_set(err,
                             "is in %zu %s pipelines, but only one is allowed: samples would be "
                             "counted once for each",
                             component->pipeline_count[signal], signal_name((enum signal)signal));
    ((struct spanjoin_component *)component)->join = spanjoin_new(component);
    return true;
}

static void spanjoin_deinit(struct component *component)
{
    struct spanjoin *join = ((struct spanjoin_component *)component)->join;
    metrics_forget(component->process->metrics, join);
    spanjoin_unref(join);
}

const struct component_type spanjoin_processor_type = {
    .config =
        {
            .name = "spanjoin",
            .section = CONFIG_PROCESSORS,
            .stability = {[CONFIG_TRACES] = STABILITY_ALPHA, [CONFIG_PROFILES] = STABILITY_ALPHA},
            .help =
                "Joins profile samples to the spans that were running when they were taken: "
                "samples gain a Link and attributes of their span, spans gain their cost. Put the "
                "same id into a traces pipeline and a profiles pipeline; see docs/spanjoin.md.",
            .fields = spanjoin_fields,
            .config_size = sizeof(struct spanjoin_settings),
            .check = spanjoin_check,
            .one_pipeline_per_signal = true,
        },
    .component_size = sizeof(struct spanjoin_component),
    .init = spanjoin_init,
    .deinit = spanjoin_deinit,
    .node_size = sizeof(struct spanjoin_node),
    .node_start = spanjoin_node_start,
    .consume = spanjoin_consume,
    .node_drain = spanjoin_node_drain,
    .is_idle = spanjoin_is_idle,
    .node_stop = spanjoin_node_stop,
};
