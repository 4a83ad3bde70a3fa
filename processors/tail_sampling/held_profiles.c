#include "processors/tail_sampling/held_profiles.h"

#include "core/base/memory.h"
#include "core/pipeline/outlet.h"
#include "processors/tail_sampling/linked_samples.h"

#include <assert.h>

enum {
    HOLD_BYTES = 1536,         /* memory of a waiting request besides its bytes and ids */
    LEAVING_PART = 4,          /* at most a quarter of the limit leaves early at a time */
    LARGE_BYTES = 1024 * 1024, /* decisions are applied to a request of this size in a job */
};
#define RETRY_AFTER_NS INT64_C(1000000000)

struct held_profile {
    struct offer offer;    /* first */
    struct list_link link; /* of `waiting`, `due` or `working` */
    struct timer timer;
    struct tail_node *node;
    struct batch *batch; /* NULL once it is sent on */
    uint64_t arrived_ns;
    size_t charged;
    uint32_t items;
    uint32_t id_count;
    uint8_t ids[]; /* 16 bytes each */
};

/* ---- how long ---- */

/* Returns until when a request waits that arrived then; 0: it need not.  */
static uint64_t waits_until(struct tail_node *node, const struct table_user *user,
                            const uint8_t *id, uint64_t arrived_ns, uint64_t now_ns,
                            enum trace_look look)
{
    const struct tail_settings *settings = user->settings;
    uint64_t known_ns = arrived_ns + (uint64_t)settings->profiles.wait;
    uint64_t most_ns = known_ns + (uint64_t)settings->decision_wait;
    struct trace_answer answer = trace_table_look(node->tail->table, user, id, now_ns, look);
    uint64_t until_ns = answer.state == TRACE_PENDING   ? answer.deadline_ns
                        : answer.state == TRACE_UNKNOWN ? known_ns
                                                        : 0;
    if (until_ns > most_ns)
        until_ns = most_ns;
    return until_ns > now_ns ? until_ns : 0;
}

/* ---- leaving ---- */

static void end(struct held_profile *hold)
{
    struct tail *tail = hold->node->tail;
    assert(!hold->batch && !hold->link.list);
    worker_cancel_timer(hold->node->node.worker, &hold->timer);
    budget_release(&tail->held[SIGNAL_PROFILES], hold->charged);
    free(hold);
}

static void count(struct tail_node *node, const struct linked_result *result)
{
    const struct tail_metrics *metrics = &node->tail->metrics;
    unsigned worker = node->node.worker->index;
    counter_add(metrics->samples[SAMPLES_KEPT], worker, result->fold.kept);
    counter_add(metrics->samples[SAMPLES_FOLDED], worker, result->fold.folded);
    counter_add(metrics->samples[SAMPLES_DROPPED], worker, result->fold.dropped);
    counter_add(metrics->samples[SAMPLES_UNKNOWN], worker, result->unknown);
    counter_add(metrics->combined_samples, worker, result->fold.combined);
}

static void on_sent(struct offer *offer, const struct verdict *verdict)
{
    struct held_profile *hold = container_of(offer, struct held_profile, offer);
    if (!verdict_is_ok(verdict))
        tail_count_refused(hold->node, verdict, hold->items);
    hold->node->profiles.leaving_bytes -= hold->charged;
    end(hold);
}

static uint64_t apply(struct node *base, struct batch *batch)
{
    struct tail_node *node = tail_node_of(base);
    struct table_user user = tail_user(node);
    node->profiles.applied =
        linked_samples_apply(batch, node->tail->table, &user, batch->arrived_ns);
    return 0;
}

/* `working` has the holds in the order of their batches. */
static void send_applied(struct node *base, struct batch *batch, uint64_t result)
{
    struct tail_node *node = tail_node_of(base);
    struct held_profiles *held = &node->profiles;
    struct held_profile *hold = container_of(list_pop(&held->working), struct held_profile, link);
    (void)result;
    assert(hold->batch == batch);
    count(node, &held->applied);
    hold->batch = NULL;
    hold->items = batch->items;
    if (batch->items > 0) {
        offer_send(&hold->offer, &held->offers, batch, true, on_sent);
        return;
    }
    batch_free(batch); /* all samples were dropped */
    held->leaving_bytes -= hold->charged;
    end(hold);
}

static const struct batch_work leaving_work = {
    .work = apply, .forward = send_applied, .large_bytes = LARGE_BYTES};

static bool send_next(struct offers *offers)
{
    struct held_profiles *held = container_of(offers, struct held_profiles, offers);
    struct list_link *first = list_pop(&held->due);
    if (!first)
        return false;
    struct held_profile *hold = container_of(first, struct held_profile, link);
    list_append(&held->working, &hold->link);
    offers_count_work(offers, hold->charged);
    large_batches_add(&held->leaving, hold->batch);
    return true;
}

static void line_up(struct held_profile *hold)
{
    struct held_profiles *held = &hold->node->profiles;
    worker_cancel_timer(hold->node->node.worker, &hold->timer);
    list_remove(&held->waiting, &hold->link);
    list_append(&held->due, &hold->link);
    held->leaving_bytes += hold->charged;
    /* `apply` may run in a job, which cannot ask the worker for the time. */
    hold->batch->arrived_ns = hold->node->node.worker->now_ns;
}

/* Lets a request leave, or sets its timer. */
static void ask(struct held_profile *hold)
{
    struct tail_node *node = hold->node;
    struct table_user user = tail_user(node);
    uint64_t now_ns = node->node.worker->now_ns, until_ns = 0;
    for (uint32_t i = 0; i < hold->id_count; i++) {
        uint64_t until =
            waits_until(node, &user, hold->ids + (size_t)i * TRACE_ID_SIZE, hold->arrived_ns,
                        now_ns, node->node.draining ? LOOK_AND_DECIDE : LOOK_WHEN_DUE);
        until_ns = until > until_ns ? until : until_ns;
    }
    if (until_ns > 0 && !node->node.draining)
        worker_set_timer(node->node.worker, &hold->timer, until_ns - now_ns);
    else
        line_up(hold);
}

static void on_hold_timer(struct timer *timer)
{
    struct held_profile *hold = container_of(timer, struct held_profile, timer);
    struct tail_node *node = hold->node;
    ask(hold);
    offers_pump(&node->profiles.offers);
}

/* ---- arriving ---- */

static bool is_ready(struct tail_node *node, const struct batch *batch)
{
    const struct profile_reader *reader = &node->profiles.reader;
    struct table_user user = tail_user(node);
    for (uint32_t i = 0; i < reader->trace_count; i++)
        if (waits_until(node, &user, reader->traces[i].id, batch->arrived_ns, batch->arrived_ns,
                        LOOK_ONLY) > 0)
            return false;
    return true;
}

uint64_t held_profiles_read(struct node *base, struct batch *batch)
{
    struct tail_node *node = tail_node_of(base);
    batch_flatten(batch);
    profile_reader_read(&node->profiles.reader, batch);
    if (!is_ready(node, batch))
        return false;
    node->profiles.arrived = (struct linked_result){.fold.kept = batch->items};
    if (node->profiles.reader.trace_count > 0) {
        struct table_user user = tail_user(node);
        node->profiles.arrived =
            linked_samples_apply(batch, node->tail->table, &user, batch->arrived_ns);
    }
    return true;
}

static void forward(struct tail_node *node, struct batch *batch)
{
    count(node, &node->profiles.arrived);
    profile_reader_clear(&node->profiles.reader);
    if (batch->items > 0)
        node_forward(&node->node, batch);
    else
        batch_drop(batch, &verdict_ok);
}

static bool let_oldest_leave(struct tail_node *node)
{
    struct list_link *oldest = node->profiles.waiting.first;
    if (!oldest)
        return false;
    counter_add(node->tail->metrics.early_profiles, node->node.worker->index, 1);
    line_up(container_of(oldest, struct held_profile, link));
    offers_pump(&node->profiles.offers);
    return true;
}

/* As held_traces does. */
static bool make_room(struct tail_node *node, size_t size)
{
    struct budget *budget = &node->tail->held[SIGNAL_PROFILES];
    while (!budget_reserve(budget, size)) {
        if (node->profiles.leaving_bytes < budget->limit_bytes / LEAVING_PART &&
            let_oldest_leave(node))
            continue;
        if (size <= budget->limit_bytes || budget_used(budget) > budget->limit_bytes)
            return false;
        budget_charge(budget, size);
        break;
    }
    return true;
}

/* Tells the table about the samples, for the policies that read them. */
static void add_samples(struct tail_node *node)
{
    const struct profile_reader *reader = &node->profiles.reader;
    struct table_user user = tail_user(node);
    for (uint32_t i = 0; reader->plan->reads_samples && i < reader->trace_count; i++) {
        struct trace_arrival samples = {.id = reader->traces[i].id,
                                        .facts = reader->traces[i].facts,
                                        .bits = reader->bits + (size_t)i * reader->words};
        trace_table_add_samples(node->tail->table, &user, &samples, node->node.worker->now_ns);
    }
}

static struct held_profile *hold_new(struct tail_node *node, struct batch *kept, size_t charged)
{
    const struct profile_reader *reader = &node->profiles.reader;
    size_t ids = (size_t)reader->trace_count * TRACE_ID_SIZE;
    struct held_profile *hold = memory_zalloc(sizeof *hold + ids);
    hold->node = node;
    hold->batch = kept;
    hold->arrived_ns = kept->arrived_ns;
    hold->charged = charged;
    hold->items = kept->items;
    hold->timer.on_timer = on_hold_timer;
    for (; hold->id_count < reader->trace_count; hold->id_count++)
        memcpy(hold->ids + (size_t)hold->id_count * TRACE_ID_SIZE,
               reader->traces[hold->id_count].id, TRACE_ID_SIZE);
    list_append(&node->profiles.waiting, &hold->link);
    return hold;
}

static void refuse(struct tail_node *node, struct batch *batch)
{
    profile_reader_clear(&node->profiles.reader);
    struct verdict verdict =
        verdict_try_later(GRPC_RESOURCE_EXHAUSTED, RETRY_AFTER_NS,
                          "%s: max_held_mib is reached, and the next component accepts nothing",
                          node->node.component->id);
    node_refuse(&node->node, batch, REFUSED_FULL, &verdict);
}

void held_profiles_add(struct node *base, struct batch *batch, uint64_t was_applied)
{
    struct tail_node *node = tail_node_of(base);
    if (was_applied) {
        forward(node, batch);
        return;
    }
    size_t ids = (size_t)node->profiles.reader.trace_count * TRACE_ID_SIZE;
    size_t size = batch_memory(batch) + HOLD_BYTES + ids;
    if (!make_room(node, size)) {
        refuse(node, batch);
        return;
    }
    add_samples(node);
    struct batch *kept = batch_clone(batch);
    kept->arrived_ns = batch->arrived_ns;
    ask(hold_new(node, kept, size));
    profile_reader_clear(&node->profiles.reader);
    offers_pump(&node->profiles.offers);
    /* The last call: the answer may deliver the next request. */
    batch_drop(batch, &verdict_ok);
}

/* ---- start and end ---- */

void held_profiles_init(struct tail_node *node)
{
    struct held_profiles *held = &node->profiles;
    profile_reader_init(&held->reader, &node->tail->settings->plan, &node->tail->programs,
                        node->node.component->label);
    large_batches_init(&held->leaving, &node->node, &leaving_work);
    offers_init(&held->offers, &node->node, send_next);
}

void held_profiles_drain(struct tail_node *node)
{
    struct held_profiles *held = &node->profiles;
    while (held->waiting.first)
        ask(container_of(held->waiting.first, struct held_profile, link));
    offers_pump(&held->offers);
}

bool held_profiles_are_idle(const struct tail_node *node)
{
    const struct held_profiles *held = &node->profiles;
    return held->waiting.count == 0 && held->due.count == 0 && held->working.count == 0 &&
           held->offers.under_way == 0;
}

static uint64_t give_up(struct list *list)
{
    uint64_t lost = 0;
    for (struct list_link *link; (link = list_pop(list));) {
        struct held_profile *hold = container_of(link, struct held_profile, link);
        lost += hold->batch ? hold->items : 0;
        if (hold->batch)
            batch_free(hold->batch);
        hold->batch = NULL;
        end(hold);
    }
    return lost;
}

void held_profiles_stop(struct tail_node *node)
{
    struct held_profiles *held = &node->profiles;
    offers_stop(&held->offers);
    large_batches_stop(&held->leaving); /* drops the batches of `working`, and counts them */
    for (struct list_link *link = held->working.first; link; link = link->next)
        container_of(link, struct held_profile, link)->batch = NULL;
    give_up(&held->working);
    node->lost += give_up(&held->waiting) + give_up(&held->due);
    tail_count_stopped(node, node->lost);
    profile_reader_deinit(&held->reader);
}
