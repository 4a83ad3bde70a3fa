/*
 * spanjoin_processor: joins profile samples to the spans in which they were taken, and adds the
 * totals of samples to spans.
 *
 * docs/spanjoin.md is the contract. The ids in a request are looked up in the index; then the
 * request is either sent on at once or waits (hold.h). Large requests are processed by jobs
 * (large_requests.h).
 *
 * Owner: the component, and messages being delivered, own struct spanjoin.
 *
 * Thread: each node on its worker.
 */
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/data/instances.h"
#include "core/data/sample_threads.h"
#include "core/data/span_index.h"
#include "core/pipeline/component_as.h"
#include "processors/spanjoin/enrich_spans.h"
#include "processors/spanjoin/hold.h"
#include "processors/spanjoin/join_group.h"
#include "processors/spanjoin/join_offer.h"
#include "processors/spanjoin/join_pipelines.h"
#include "processors/spanjoin/join_steps.h"
#include "processors/spanjoin/large_requests.h"
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

extern const struct component_type spanjoin_processor_type;

static struct spanjoin_component *component_of(struct component *component)
{
    return component_as(struct spanjoin_component, component, &spanjoin_processor_type);
}

static struct spanjoin_node *node_of(struct node *node)
{
    return node_as(struct spanjoin_node, node, &spanjoin_processor_type);
}

static uint64_t now_of(const struct spanjoin_node *node)
{
    return node->node.worker->now_ns;
}

bool spanjoin_has_other_side(const struct spanjoin_node *node)
{
    enum signal other = node->node.signal == SIGNAL_TRACES ? SIGNAL_PROFILES : SIGNAL_TRACES;
    return node->node.component->pipeline_count[other] > 0;
}

bool spanjoin_may_wait(const struct spanjoin_node *node)
{
    const struct spanjoin_settings *settings = node->join->settings;
    int64_t wait_ns =
        node->node.signal == SIGNAL_TRACES ? settings->spans.wait : settings->samples.wait;
    return wait_ns > 0 && !node->node.draining && spanjoin_has_other_side(node);
}

bool spanjoin_must_go_on(const struct batch *batch, enum hold_room room)
{
    return room == HOLD_NEVER || !batch->receipt || batch->reservation;
}

void spanjoin_refuse(struct spanjoin_node *node, struct batch *batch)
{
    struct verdict verdict = verdict_try_later(
        GRPC_UNAVAILABLE, RETRY_AFTER_NS, "%s: max_held_mib is reached, %.2f MiB are held",
        node->node.component->id, (double)budget_used(&node->join->held) / (1 << 20));
    node_refuse(&node->node, batch, REFUSED_FULL, &verdict);
}

/* Clones the batch, so that the clone can be held and the batch be answered. Sets *kept_out only
 * with HOLD_ROOM. */
static enum hold_room clone_to_hold(struct spanjoin_node *node, struct batch *batch, size_t waiters,
                                    struct batch **kept_out, size_t *charged_out)
{
    struct batch *kept = batch_clone(batch);
    enum hold_room room = holds_make_room(node, kept, waiters, charged_out);
    if (room != HOLD_ROOM)
        batch_free(kept);
    else
        *kept_out = kept;
    return room;
}

/* ---- profiles ---- */

enum hold_room spanjoin_hold_profiles(struct spanjoin_node *node, struct batch *batch,
                                      struct sample_plan *plan, uint32_t missing)
{
    assert(node->node.signal == SIGNAL_PROFILES && missing <= plan->key_count);
    bool has_threads = join_waits_for_threads(plan);
    struct batch *kept;
    size_t charged;
    enum hold_room room =
        clone_to_hold(node, batch, missing + plan->resource_count, &kept, &charged);
    if (room != HOLD_ROOM)
        return room;
    struct hold *hold = hold_new(node, holds_take_id(node), kept, charged);
    hold->request = plan->request;
    hold->arrived_ns = plan->arrived_ns;
    hold->since_ns = now_of(node);
    hold->before = sample_plan_before(plan);
    struct span_waiter waiter = {hold->id, node->node.worker->index};
    join_hold_uploads(node->join, plan, &hold->uploads);
    join_add_samples(node, plan, &waiter);
    spanjoin_settle(node);
    for (uint32_t k = 0; k < plan->key_count; k++)
        if (plan->finds[k].waits)
            waiting_keys_add(&hold->keys, k, plan->finds[k].place);
    sample_plan_free(plan);
    /* Nothing tells that all spans of a thread have arrived, so that nobody wakes this one. */
    if (hold->keys.count > 0 || has_threads)
        hold_wait(hold, hold->keys.count + has_threads, node->join->settings->samples.wait);
    else
        hold_leave(hold);
    /* Must be the last call: it may deliver the next request, which may need this one to be sent
     * on. */
    batch_drop(batch, &verdict_ok);
    return HOLD_ROOM;
}

void spanjoin_tell_samples(struct spanjoin_node *node, struct sample_plan *plan)
{
    assert(node->node.signal == SIGNAL_PROFILES);
    struct join_counts counts = join_count_samples(plan);
    struct left_counts left;
    join_leave_threads(plan, now_of(node), &left);
    if (plan->index) {
        bool records = join_records_samples(plan);
        join_note_unjoined(node->join, plan, now_of(node));
        join_add_samples(node, plan, NULL);
        if (records)
            counts.keep.late = join_leave_samples(node->join, plan, now_of(node), NULL);
    }
    counts.span_open = left.late;
    counts.keep.late += left.late_detail;
    spanjoin_count(node, &counts);
}

void spanjoin_forward(struct spanjoin_node *node, struct batch *batch,
                      const struct join_counts *counts, struct join_report *report)
{
    spanjoin_count(node, counts);
    spanjoin_settle(node);
    join_offer_make(node, batch, report);
    if (batch->items == 0) /* it had no samples, or `keep` has dropped them all */
        batch_drop(batch, &verdict_ok);
    else
        node_forward(&node->node, batch);
}

/* Sends the request on at once, with its own receipt. */
static void pass_profiles(struct spanjoin_node *node, struct batch *batch, struct sample_plan *plan)
{
    struct join_counts counts = {0};
    struct moved_samples moved;
    struct join_lags lags;
    plan = join_link_threads(node->join, plan, now_of(node), plan->request);
    join_lags_note_threads(plan, now_of(node), &lags);
    join_lags_record(&lags, node->join->metrics.lag, node->node.worker->index);
    join_move_samples(node->join, plan, now_of(node), plan->request, &moved);
    join_add_moved(node->join, &moved, now_of(node));
    join_tell_moved(node->join, &moved, now_of(node));
    spanjoin_tell_samples(node, plan);
    struct sample_plan *applied = join_moved_plan(&moved, plan, &counts);
    struct join_report *report = join_report_of(node->join, applied);
    join_apply(applied, &counts);
    moved_samples_deinit(&moved);
    sample_plan_free(plan);
    spanjoin_forward(node, batch, &counts, report);
}

static void consume_profiles(struct spanjoin_node *node, struct batch *batch)
{
    struct spanjoin *join = node->join;
    bool asks = spanjoin_has_other_side(node);
    struct sample_plan *plan =
        join_plan_samples(join, batch, now_of(node), asks, spanjoin_next_request(join));
    if (asks) {
        join_find_spans(join, plan, now_of(node));
        join_lags_record_named(plan, now_of(node), join->metrics.lag, node->node.worker->index);
    }
    uint32_t missing = asks ? sample_plan_missing(plan) : 0;
    if ((missing == 0 && !join_waits_for_threads(plan)) || !spanjoin_may_wait(node)) {
        pass_profiles(node, batch, plan);
        return;
    }
    enum hold_room room = spanjoin_hold_profiles(node, batch, plan, missing);
    if (room == HOLD_ROOM)
        return;
    if (spanjoin_must_go_on(batch, room)) {
        plan->overflow = true;
        pass_profiles(node, batch, plan);
        return;
    }
    sample_plan_free(plan);
    spanjoin_refuse(node, batch);
}

/* ---- traces ---- */

enum hold_room spanjoin_hold_traces(struct spanjoin_node *node, struct batch *batch, uint64_t id,
                                    uint32_t waiting, struct instance_waiter *waiters)
{
    assert(node->node.signal == SIGNAL_TRACES && waiting > 0 && waiters);
    struct batch *kept;
    size_t charged;
    enum hold_room room = clone_to_hold(node, batch, waiting, &kept, &charged);
    if (room != HOLD_ROOM)
        return room;
    struct hold *hold = hold_new(node, id, kept, charged);
    hold->waiters = waiters;
    spanjoin_settle(node);
    hold_wait(hold, waiting, node->join->settings->spans.wait);
    batch_drop(batch, &verdict_ok); /* last, see spanjoin_hold_profiles */
    return HOLD_ROOM;
}

static void pass_traces(struct spanjoin_node *node, struct batch *batch,
                        struct request_spans *spans)
{
    struct spanjoin *join = node->join;
    struct join_report *report = join_report_of_spans(join, spans);
    struct join_counts counts = {.spans_enriched = request_spans_enrich(
                                     batch, join->settings, &join->span_values, spans, report)};
    request_spans_deinit(spans);
    spanjoin_forward(node, batch, &counts, report);
}

/* Holds a request whose spans wait in the index under this id. */
static void hold_traces(struct spanjoin_node *node, struct batch *batch,
                        const struct span_waiter *waiter, struct learned_spans *learned)
{
    request_spans_deinit(&learned->spans);
    enum hold_room room =
        spanjoin_hold_traces(node, batch, waiter->hold, learned->waiting, learned->waiters);
    if (room == HOLD_ROOM)
        return;
    struct request_spans spans = join_collect_spans(node->join, batch, now_of(node));
    instances_stop_waiting(span_index_instances(node->join->index), learned->waiters);
    holds_return_id(node, waiter->hold);
    if (spanjoin_must_go_on(batch, room)) {
        pass_traces(node, batch, &spans);
        return;
    }
    request_spans_deinit(&spans);
    spanjoin_refuse(node, batch);
}

static void consume_traces(struct spanjoin_node *node, struct batch *batch)
{
    struct learned_spans learned;
    if (!spanjoin_may_wait(node)) {
        join_learn_spans(node->join, batch, now_of(node), NULL, &learned);
        join_tell_learned(node, &learned);
        pass_traces(node, batch, &learned.spans);
        return;
    }
    struct span_waiter waiter = {holds_take_id(node), node->node.worker->index};
    join_learn_spans(node->join, batch, now_of(node), &waiter, &learned);
    join_tell_learned(node, &learned);
    if (learned.waiting > 0) {
        hold_traces(node, batch, &waiter, &learned);
        return;
    }
    holds_return_id(node, waiter.hold);
    pass_traces(node, batch, &learned.spans);
}

/* ---- both signals ---- */

static void spanjoin_consume(struct node *base, struct batch *batch)
{
    struct spanjoin_node *node = node_of(base);
    assert(batch->signal == base->signal);
    batch_flatten(batch);
    if (spanjoin_is_large(node->join, batch))
        large_request_start(node, batch);
    else if (base->signal == SIGNAL_TRACES)
        consume_traces(node, batch);
    else
        consume_profiles(node, batch);
}

static void enrich_held_spans(struct spanjoin *join, struct hold *hold, struct batch *batch,
                              uint64_t now_ns)
{
    struct request_spans spans = join_collect_spans(join, batch, now_ns);
    hold->report = join_report_of_spans(join, &spans);
    hold->counts.spans_enriched =
        request_spans_enrich(batch, join->settings, &join->span_values, &spans, hold->report);
    request_spans_deinit(&spans);
}

void spanjoin_enrich_held(struct spanjoin_node *node, struct hold *hold, struct batch *batch,
                          uint64_t now_ns)
{
    struct spanjoin *join = node->join;
    if (node->node.signal == SIGNAL_TRACES) {
        enrich_held_spans(join, hold, batch, now_ns);
        return;
    }
    struct span_waiter waiter = {hold->id, node->node.worker->index};
    struct sample_plan *plan = join_plan_held(join, batch, now_ns, hold->arrived_ns, &hold->before);
    plan->overflow = hold->overflow;
    join_find_spans(join, plan, now_ns);
    for (uint32_t k = 0; k < plan->key_count; k++)
        plan->finds[k].place = waiting_keys_place(&hold->keys, k);
    if (join_has_threads(plan)) {
        join_stop_waiting(join, plan, now_ns, &waiter);
        plan = join_link_threads(join, plan, now_ns, hold->request);
        join_add_linked(join, plan, now_ns);
        join_lags_note_threads(plan, hold->since_ns, &hold->lags);
    }
    struct moved_samples moved;
    struct left_counts left;
    join_move_samples(join, plan, now_ns, hold->request, &moved);
    join_add_moved(join, &moved, now_ns);
    join_tell_moved(join, &moved, now_ns);
    join_leave_threads(plan, now_ns, &left);
    uint64_t late = 0;
    if (join_records_samples(plan)) /* before spans that wait for the upload leave */
        late = join_leave_samples(join, plan, now_ns, &waiter);
    join_note_unjoined(join, plan, now_ns);
    join_end_hold(join, &hold->uploads, now_ns);
    join_tell_uploads(join, plan, now_ns);
    hold->counts = join_count_samples(plan);
    struct sample_plan *applied = join_moved_plan(&moved, plan, &hold->counts);
    hold->report = join_report_of(join, applied);
    join_apply(applied, &hold->counts);
    hold->counts.span_open = left.late;
    hold->counts.keep.late = late + left.late_detail;
    moved_samples_deinit(&moved);
    sample_plan_free(plan);
}

void spanjoin_count(struct spanjoin_node *node, const struct join_counts *counts)
{
    const struct spanjoin_metrics *metrics = &node->join->metrics;
    unsigned worker = node->node.worker->index;
    counter_add(metrics->joined, worker, counts->joined);
    counter_add(metrics->by_thread, worker, counts->by_thread);
    if (counts->to_children > 0)
        counter_add(metrics->to_children, worker, counts->to_children);
    counter_add(metrics->unjoined[UNJOINED_NO_ID], worker, counts->no_id);
    counter_add(metrics->unjoined[UNJOINED_NO_PROCESS], worker, counts->unnamed.no_process);
    counter_add(metrics->unjoined[UNJOINED_NO_SPAN_ON_THREAD], worker,
                counts->unnamed.no_span_on_thread);
    counter_add(metrics->unjoined[UNJOINED_AMBIGUOUS_THREAD], worker,
                counts->unnamed.ambiguous_thread);
    counter_add(metrics->unjoined[UNJOINED_NOT_SPLIT], worker, counts->not_split);
    counter_add(metrics->unjoined[UNJOINED_NOT_FOUND], worker, counts->not_found);
    counter_add(metrics->unjoined[UNJOINED_SPAN_OPEN], worker, counts->span_open);
    counter_add(metrics->unjoined[UNJOINED_EXPIRED], worker, counts->expired);
    counter_add(metrics->unjoined[UNJOINED_OVERFLOW], worker, counts->overflow);
    counter_add(metrics->ambiguous, worker, counts->ambiguous);
    counter_add(metrics->spans_enriched, worker, counts->spans_enriched);
    counter_add(metrics->renamed, worker, counts->service.renamed);
    counter_add(metrics->service_conflicts, worker, counts->service.conflicts);
    if (!node->join->settings->keep.enabled)
        return;
    counter_add(metrics->keep[KEEP_RESULT_KEPT], worker, counts->keep.kept);
    counter_add(metrics->keep[KEEP_RESULT_FOLDED], worker, counts->keep.folded);
    counter_add(metrics->keep[KEEP_RESULT_COMBINED], worker, counts->keep.combined);
    counter_add(metrics->keep[KEEP_RESULT_DROPPED], worker, counts->keep.dropped);
    counter_add(metrics->keep[KEEP_RESULT_LATE], worker, counts->keep.late);
    for (int by = 1; by < KEEP_BY_END; by++)
        if (counts->keep.by[by] > 0 && metrics->kept_samples[by])
            counter_add(metrics->kept_samples[by], worker, counts->keep.by[by]);
}

/* ---- start and end of a node ---- */

static void warn_of_tenants(const struct spanjoin_node *node)
{
    enum signal with;
    if (!tenants_seen_differ(&node->join->group->tenants, &with))
        return;
    enum signal without = with == SIGNAL_TRACES ? SIGNAL_PROFILES : SIGNAL_TRACES;
    log_warn(node->node.origin,
             "Nothing is joined: requests of one signal name a tenant, and those of the other one "
             "none. Set include_metadata at all receivers, or source::tenant_from",
             LOG_TEXT("with_tenant", signal_name(with)),
             LOG_TEXT("without_tenant", signal_name(without)));
}

static void warn_of_types(const struct spanjoin_node *node)
{
    const struct spanjoin_settings *settings = node->join->settings;
    uint32_t missing =
        types_seen_missing(&node->join->types, settings->foreign_types, now_of(node));
    for (unsigned i = 0; i < settings->type_count; i++)
        if (missing >> i & 1)
            log_warn(node->node.origin,
                     "No samples of a type that spans::attributes or spans::profile_types name "
                     "have arrived: see how the profiler calls it",
                     LOG_SLICE("sample_type", settings->types[i]));
}

static void on_sweep(struct timer *timer)
{
    struct spanjoin_node *node = container_of(timer, struct spanjoin_node, sweep);
    uint64_t every = span_index_window(node->join->index) / 8;
    every = every < SWEEP_MIN_NS ? SWEEP_MIN_NS : every > SWEEP_MAX_NS ? SWEEP_MAX_NS : every;
    span_index_sweep(node->join->index, now_of(node));
    warn_of_tenants(node);
    warn_of_types(node);
    worker_set_timer(node->node.worker, &node->sweep, every);
}

static void on_settle(struct timer *timer)
{
    spanjoin_settle(container_of(timer, struct spanjoin_node, settle));
}

/* Returns the list of the group that the node is in until it has stopped. */
static struct list *list_of_node(const struct spanjoin_node *node)
{
    unsigned signal = node->node.signal;
    assert(signal < SIGNAL_OPENED_COUNT);
    return &node->join->group->nodes[node->node.worker->index][signal];
}

static bool spanjoin_node_start(struct node *base, struct error *err)
{
    (void)err;
    struct spanjoin_node *node = node_of(base);
    node->join = component_of(base->component)->join;
    list_append(list_of_node(node), &node->link);
    keep_programs_begin(&node->join->keep, base->worker->now_ns);
    node->sweep.on_timer = on_sweep;
    node->settle.on_timer = on_settle;
    holds_init(node);
    if (base->worker->index == 0 && !node->join->sweeper) {
        node->join->sweeper = node;
        on_sweep(&node->sweep);
    }
    return true;
}

static void spanjoin_node_drain(struct node *node)
{
    holds_drain(node_of(node));
}

static bool spanjoin_is_idle(const struct node *node)
{
    const struct spanjoin_node *join_node =
        node_as(const struct spanjoin_node, node, &spanjoin_processor_type);
    return join_node->large.count == 0 && holds_are_idle(join_node);
}

static void spanjoin_node_stop(struct node *base)
{
    struct spanjoin_node *node = node_of(base);
    worker_cancel_timer(base->worker, &node->sweep);
    worker_cancel_timer(base->worker, &node->settle);
    if (base->worker->index == 0 && node->join->sweeper == node)
        node->join->sweeper = NULL;
    uint64_t lost = large_requests_give_up(node);
    lost += holds_give_up(node);
    if (node->link.list)
        list_remove(list_of_node(node), &node->link);
    if (lost > 0) {
        atomic_fetch_add(&base->component->process->lost_items, lost);
        counter_add(node->join->metrics.dropped_stopped, base->worker->index, lost);
        log_error(base->origin,
                  "Held data is lost: it was not accepted before the end. Raise --drain-timeout.",
                  LOG_U64("dropped_items", lost));
    }
}

/* ---- start and end of the component ---- */

static void check_all(void *settings, struct config_check *check)
{
    spanjoin_check(settings, check);
    join_pipelines_check(settings, check);
}

static bool spanjoin_init(struct component *component, struct error *err)
{
    for (int signal = 0; signal < SIGNAL_OPENED_COUNT; signal++)
        if (component->pipeline_count[signal] > 1)
            return error_set(err,
                             "is in %zu %s pipelines, but only one is allowed: samples would be "
                             "counted once for each",
                             component->pipeline_count[signal], signal_name((enum signal)signal));
    struct component *predecessor = component->predecessor;
    component_of(component)->join =
        spanjoin_new(component, predecessor ? component_of(predecessor)->join : NULL);
    return true;
}

static unsigned spanjoin_joins_threads(const struct component *component)
{
    const struct spanjoin_settings *settings = component->settings;
    if (component->pipeline_count[SIGNAL_TRACES] == 0)
        return 0;
    return (settings->samples.by_thread ? ADD_TIMES_OF_UNNAMED : 0) |
           (settings->attribute_children ? ADD_TIMES_OF_NAMED : 0);
}

/* The window is the only live setting; each operation on the index reads it. */
static void spanjoin_update(struct component *component, const void *settings)
{
    const struct spanjoin_settings *changed = settings;
    span_index_set_window(component_of(component)->join->index, (uint64_t)changed->window);
}

static void spanjoin_deinit(struct component *component)
{
    struct spanjoin *join = component_of(component)->join;
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
            .check = check_all,
            .one_pipeline_per_signal = true,
            .says_of_successor = spanjoin_says_of_successor,
        },
    .component_size = sizeof(struct spanjoin_component),
    .init = spanjoin_init,
    .deinit = spanjoin_deinit,
    .update = spanjoin_update,
    .node_size = sizeof(struct spanjoin_node),
    .node_start = spanjoin_node_start,
    .consume = spanjoin_consume,
    .joins_threads = spanjoin_joins_threads,
    .reads_empty = true,
    .node_drain = spanjoin_node_drain,
    .is_idle = spanjoin_is_idle,
    .node_stop = spanjoin_node_stop,
};
