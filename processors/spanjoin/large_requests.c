#include "processors/spanjoin/large_requests.h"

#include "core/base/container_of.h"
#include "core/base/job.h"
#include "core/base/memory.h"
#include "core/data/instances.h"
#include "core/pipeline/reservation.h"
#include "processors/spanjoin/hold.h"
#include "processors/spanjoin/join_offer.h"
#include "processors/spanjoin/join_steps.h"
#include "processors/spanjoin/keep_samples.h"

#include <assert.h>

/* The outcome of a request that is not held. */
enum outcome { GOES_ON, IS_REFUSED, IS_DROPPED /* its sender is gone */ };

struct large_request {
    struct job job;
    struct list_link link;
    struct spanjoin_node *node;
    struct batch *batch;             /* lent to the job while one runs */
    struct buffer *bytes;            /* those of profiles, to which the plan points */
    struct reservation *reservation; /* the batch's reservation, kept meanwhile */
    uint64_t now_ns;                 /* when it came */
    bool may_wait;                   /* when it came */
    enum outcome outcome;
    struct join_counts counts;
    /* The function of the current job, and the one that follows on the worker. The last step frees
     * the request. */
    void (*work)(struct large_request *request);
    void (*next)(struct large_request *request);
    /* Traces: */
    struct span_waiter waiter; /* set if may_wait */
    struct learned_spans learned;
    /* Profiles: */
    struct held_uploads unread; /* of their time, until it is added or dropped */
    struct sample_plan *plan;   /* NULL: not built yet */
    bool waits;                 /* for spans, instead of being applied at once */
    struct moved_samples moved; /* all-zero: none yet */
    struct join_lags lags;      /* likewise */
    struct join_report *report; /* for the join feed; NULL: none */
    uint64_t number;
};

static bool is_abandoned(const struct large_request *request)
{
    return receipt_is_abandoned(request->batch->receipt);
}

/* ---- jobs ---- */

static void run(struct job *job)
{
    struct large_request *request = container_of(job, struct large_request, job);
    request->work(request);
}

static bool is_wanted(const struct job *job)
{
    return !is_abandoned(container_of(job, const struct large_request, job));
}

static void take_back(struct large_request *request)
{
    list_remove(&request->node->large, &request->link);
    batch_take_back(request->batch, request->node->node.worker);
}

static void drop_undone(struct large_request *request);

static void on_done(struct job *job, bool did_run)
{
    struct large_request *request = container_of(job, struct large_request, job);
    take_back(request);
    if (did_run)
        request->next(request);
    else
        drop_undone(request);
}

static void start(struct large_request *request, void (*work)(struct large_request *request),
                  void (*next)(struct large_request *request),
                  bool (*wanted)(const struct job *job))
{
    assert(!request->link.list && request->batch->owner == request->node->node.worker);
    request->work = work;
    request->next = next;
    request->job = (struct job){.run = run, .on_done = on_done, .is_wanted = wanted};
    list_append(&request->node->large, &request->link);
    batch_lend(request->batch);
    job_start(request->node->node.worker, &request->job);
}

/* ---- stop ---- */

/* Frees the request except its batch, and releases its reservation when the batch has been sent
 * on. */
static void end(struct large_request *request)
{
    struct spanjoin_node *node = request->node;
    join_end_hold(node->join, &request->unread, node->node.worker->now_ns);
    buffer_unref(request->bytes);
    join_lags_deinit(&request->lags);
    free(request->report);
    reservation_end_keep(request->reservation);
    free(request);
}

static void finish(struct large_request *request)
{
    struct spanjoin_node *node = request->node;
    struct batch *batch = request->batch;
    assert(!request->link.list && batch->owner == node->node.worker);
    if (is_abandoned(request))
        request->outcome = IS_DROPPED;
    switch (request->outcome) {
    case GOES_ON:
        spanjoin_forward(node, batch, &request->counts, request->report);
        request->report = NULL;
        break;
    case IS_REFUSED:
        spanjoin_refuse(node, batch);
        break;
    case IS_DROPPED:
        batch_drop(batch, &verdict_sender_is_gone);
        break;
    }
    end(request);
}

/* Drops a request whose sender gave up before the job began. */
static void drop_undone(struct large_request *request)
{
    if (request->node->node.signal == SIGNAL_TRACES && request->may_wait)
        holds_return_id(request->node, request->waiter.hold);
    if (request->plan)
        sample_plan_free(request->plan);
    request->outcome = IS_DROPPED;
    finish(request);
}

/* Returns the outcome of a request that cannot wait, because there is no room or no time left. */
static enum outcome outcome_without_wait(const struct large_request *request, enum hold_room room)
{
    if (is_abandoned(request))
        return IS_DROPPED;
    return spanjoin_must_go_on(request->batch, room) ? GOES_ON : IS_REFUSED;
}

/* ---- traces ---- */

static void enrich_spans(struct large_request *request, const struct request_spans *spans)
{
    const struct spanjoin *join = request->node->join;
    request->report = join_report_of_spans(join, spans);
    request->counts.spans_enriched = request_spans_enrich(
        request->batch, join->settings, &join->span_values, spans, request->report);
    batch_flatten(request->batch); /* the next node would do it on the loop */
}

static void learn(struct large_request *request)
{
    const struct span_waiter *waiter = request->may_wait ? &request->waiter : NULL;
    join_learn_spans(request->node->join, request->batch, request->now_ns, waiter,
                     &request->learned);
    if (request->learned.waiting == 0)
        enrich_spans(request, &request->learned.spans);
}

static void collect(struct large_request *request)
{
    assert(request->may_wait && request->waiter.worker == request->node->node.worker->index);
    struct request_spans spans =
        join_collect_spans(request->node->join, request->batch, request->now_ns);
    if (request->outcome == GOES_ON)
        enrich_spans(request, &spans);
    request_spans_deinit(&spans);
}

static void after_collect(struct large_request *request)
{
    instances_stop_waiting(span_index_instances(request->node->join->index),
                           request->learned.waiters);
    holds_return_id(request->node, request->waiter.hold);
    finish(request);
}

/* Holds spans that are in the index: they wait for samples, or are collected at once. */
static void hold_spans(struct large_request *request)
{
    struct spanjoin_node *node = request->node;
    uint32_t waiting = request->learned.waiting;
    assert(request->may_wait);
    request_spans_deinit(&request->learned.spans);
    enum hold_room room = HOLD_NEVER;
    if (spanjoin_may_wait(node) && !is_abandoned(request))
        room = spanjoin_hold_traces(node, request->batch, request->waiter.hold, waiting,
                                    request->learned.waiters);
    if (room == HOLD_ROOM) {
        end(request);
        return;
    }
    request->outcome = outcome_without_wait(request, room);
    start(request, collect, after_collect, NULL);
}

static void after_learn(struct large_request *request)
{
    join_tell_learned(request->node, &request->learned);
    if (request->learned.waiting > 0) {
        hold_spans(request);
        return;
    }
    if (request->may_wait)
        holds_return_id(request->node, request->waiter.hold);
    request_spans_deinit(&request->learned.spans);
    finish(request);
}

/* ---- profiles ---- */

/* Keeps the bytes of the request, to which the plan points. */
static void keep_bytes(struct large_request *request)
{
    struct buffer *before = request->bytes;
    assert(request->batch->part_count == 1); /* profiles are flat here: they are all of its bytes */
    request->bytes = buffer_ref(request->batch->parts[0].buffer);
    buffer_unref(before);
}

static void apply(struct large_request *request)
{
    struct spanjoin *join = request->node->join;
    assert(request->outcome == GOES_ON);
    request->plan = join_link_threads(join, request->plan, request->now_ns, request->number);
    join_lags_note_threads(request->plan, request->now_ns, &request->lags);
    keep_bytes(request);
    join_move_samples(join, request->plan, request->now_ns, request->number, &request->moved);
    join_learn_services(join, request->plan, request->now_ns);
    struct sample_plan *applied = join_moved_plan(&request->moved, request->plan, &request->counts);
    request->report = join_report_of(join, applied);
    join_apply(applied, &request->counts);
    batch_flatten(request->batch); /* the next node would do it on the loop */
}

static bool waits_for_spans(const struct large_request *request)
{
    return request->may_wait &&
           (sample_plan_missing(request->plan) > 0 || join_waits_for_threads(request->plan));
}

static void plan(struct large_request *request)
{
    struct spanjoin *join = request->node->join;
    bool asks = spanjoin_has_other_side(request->node);
    request->plan = join_plan_samples(join, request->batch, request->now_ns, asks, request->number);
    if (asks)
        join_find_spans(join, request->plan, request->now_ns);
    request->waits = waits_for_spans(request);
    if (!request->waits)
        apply(request); /* spans that have arrived meanwhile get samples: the plan changes */
}

/* After the plan was applied, or not. The index is updated last: if the sender gave up, it sends
 * the samples again, and they count then. */
static void after_apply(struct large_request *request)
{
    struct spanjoin_node *node = request->node;
    assert(request->plan);
    if (is_abandoned(request))
        request->outcome = IS_DROPPED;
    if (request->outcome == GOES_ON) {
        join_add_moved(node->join, &request->moved, request->now_ns);
        join_tell_moved(node->join, &request->moved, request->now_ns);
        spanjoin_tell_samples(node, request->plan);
        join_lags_record(&request->lags, node->join->metrics.lag, node->node.worker->index);
    }
    moved_samples_deinit(&request->moved);
    sample_plan_free(request->plan);
    finish(request);
}

static void hold_samples(struct large_request *request)
{
    struct spanjoin_node *node = request->node;
    assert(request->may_wait && request->outcome == GOES_ON);
    bool may_wait = spanjoin_may_wait(node);
    enum hold_room room = HOLD_NEVER;
    if (may_wait)
        room = spanjoin_hold_profiles(node, request->batch, request->plan,
                                      sample_plan_missing(request->plan));
    if (room == HOLD_ROOM) {
        end(request);
        return;
    }
    request->plan->overflow = may_wait;
    request->outcome = outcome_without_wait(request, room);
    if (request->outcome == GOES_ON)
        start(request, apply, after_apply, is_wanted);
    else
        after_apply(request);
}

static void after_plan(struct large_request *request)
{
    assert(request->plan && request->outcome == GOES_ON);
    bool asked = spanjoin_has_other_side(request->node);
    if (asked && !is_abandoned(request))
        join_lags_record_named(request->plan, request->now_ns, request->node->join->metrics.lag,
                               request->node->node.worker->index);
    if (request->waits && !is_abandoned(request))
        hold_samples(request);
    else
        after_apply(request);
}

/* ---- start and end ---- */

void large_request_start(struct spanjoin_node *node, struct batch *batch)
{
    struct large_request *request = memory_zalloc(sizeof *request);
    request->node = node;
    request->batch = batch;
    request->reservation = reservation_keep(batch->reservation);
    request->now_ns = node->node.worker->now_ns;
    request->may_wait = spanjoin_may_wait(node);
    if (node->node.signal == SIGNAL_PROFILES) {
        request->number = spanjoin_next_request(node->join);
        keep_bytes(request);
        if (spanjoin_has_other_side(node))
            join_hold_unread(node->join, batch, request->now_ns, &request->unread);
        start(request, plan, after_plan, is_wanted);
        return;
    }
    if (request->may_wait)
        request->waiter = (struct span_waiter){holds_take_id(node), node->node.worker->index};
    start(request, learn, after_learn, is_wanted);
}

/* Frees the results of all steps so far. */
static void free_steps(struct large_request *request)
{
    if (request->node->node.signal == SIGNAL_TRACES) {
        join_tell_learned(request->node, &request->learned);
        request_spans_deinit(&request->learned.spans);
        instances_stop_waiting(span_index_instances(request->node->join->index),
                               request->learned.waiters);
    }
    if (request->plan)
        sample_plan_free(request->plan);
    upload_times_give_up_hold(&request->unread, request->node->join->index,
                              request->node->node.worker->now_ns);
}

uint64_t large_requests_give_up(struct spanjoin_node *node)
{
    uint64_t lost = 0;
    while (node->large.first) {
        struct large_request *request = container_of(node->large.first, struct large_request, link);
        struct batch *batch = request->batch;
        job_cancel(&request->job);
        take_back(request);
        free_steps(request);
        lost += batch->receipt ? 0 : batch->items;
        node_refuse(&node->node, batch, REFUSED_FAILED, &verdict_shutting_down);
        end(request);
    }
    return lost;
}
