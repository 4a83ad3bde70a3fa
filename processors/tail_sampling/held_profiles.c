#include "processors/tail_sampling/held_profiles.h"

#include "core/base/memory.h"
#include "core/pipeline/outlet.h"
#include "core/pipeline/reservation.h"
#include "processors/tail_sampling/linked_samples.h"
#include "processors/tail_sampling/reread_profiles.h"

#include <assert.h>

enum {
    HOLD_BYTES = 1536,         /* memory of a waiting request besides its bytes and ids */
    LEAVING_PART = 4,          /* at most a quarter of the limit leaves early at a time */
    LARGE_BYTES = 1024 * 1024, /* decisions are applied to a request of this size in a job */
    ASKED_PER_MS = 256,        /* so many requests ask again after a reload */
    IDS_PER_TURN = 4096, /* so many traces of a request are asked about in a turn of the loop */
};

/* While decisions wait for spans or samples that are read again. */
#define ASK_AGAIN_NS UINT64_C(10000000)

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
    const struct tail_metrics *metrics = tail_metrics(node);
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

/* Folds or drops samples; also in a job, in which a reload does not wait for it. */
static struct linked_result apply_rules(const struct tail_node *node,
                                        const struct tail_rules *rules, struct batch *batch)
{
    struct table_user user = {rules->settings, &rules->metrics, node->node.worker->index};
    return linked_samples_apply(batch, node->tail->table, &user, batch->arrived_ns);
}

static uint64_t apply(struct node *base, struct batch *batch)
{
    struct tail_node *node = tail_node_of(base);
    struct tail_rules *rules = rules_book_ref(trace_table_rules(node->tail->table));
    node->profiles.applied = apply_rules(node, rules, batch);
    tail_rules_unref(rules);
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

/* Asks about the next traces. Those that need not be waited for are not asked about again. Returns
 * whether these were the last. */
static bool ask_some(struct held_profile *hold)
{
    struct tail_node *node = hold->node;
    struct table_user user = tail_user(node);
    enum trace_look look = node->node.draining ? LOOK_AND_DECIDE : LOOK_WHEN_DUE;
    for (int n = 0; n < IDS_PER_TURN && hold->asked < hold->id_count; n++) {
        const uint8_t *id = hold->ids + (size_t)hold->asked++ * TRACE_ID_SIZE;
        uint64_t until =
            waits_until(node, &user, id, hold->arrived_ns, node->node.worker->now_ns, look);
        if (until > 0)
            memmove(hold->ids + (size_t)hold->open++ * TRACE_ID_SIZE, id, TRACE_ID_SIZE);
        hold->until_ns = until > hold->until_ns ? until : hold->until_ns;
    }
    return hold->asked == hold->id_count;
}

/* Lets a request leave, or sets its timer. */
static void ask(struct held_profile *hold)
{
    struct tail_node *node = hold->node;
    struct worker *worker = node->node.worker;
    bool is_behind = trace_holders_are_behind(trace_table_holders(node->tail->table));
    if (node->node.draining && is_behind) {
        worker_set_timer(worker, &hold->timer, ASK_AGAIN_NS);
        return;
    }
    if (!ask_some(hold)) {
        worker_set_timer(worker, &hold->timer, 0);
        return;
    }
    uint64_t until_ns = hold->until_ns;
    hold->id_count = hold->open;
    hold->asked = hold->open = 0;
    hold->until_ns = 0;
    if (until_ns > worker->now_ns && !node->node.draining)
        worker_set_timer(worker, &hold->timer, until_ns - worker->now_ns);
    else if (is_behind)
        worker_set_timer(worker, &hold->timer, ASK_AGAIN_NS);
    else
        line_up(hold);
}

static void wait_again(struct held_profile *hold)
{
    list_append(&hold->node->profiles.waiting, &hold->link);
    ask(hold);
    offers_pump(&hold->node->profiles.offers);
}

static void on_hold_timer(struct timer *timer)
{
    struct held_profile *hold = container_of(timer, struct held_profile, timer);
    struct tail_node *node = hold->node;
    ask(hold);
    offers_pump(&node->profiles.offers);
}

/* ---- arriving ---- */

static void drop_reader(struct tail_node *node)
{
    profile_reader_deinit(&node->profiles.reader);
    tail_rules_unref(node->read_by);
    node->read_by = NULL;
}

/* Makes the reader anew if a reload has changed the rules. */
static void follow_rules(struct tail_node *node)
{
    struct tail_rules *rules =
        rules_book_ref_if_new(trace_table_rules(node->tail->table), node->read_by);
    if (!rules)
        return;
    drop_reader(node);
    node->read_by = rules;
    profile_reader_init(&node->profiles.reader, &rules->settings->plan, &rules->programs,
                        node->node.component->label);
}

static bool is_ready(struct tail_node *node, const struct batch *batch)
{
    const struct profile_reader *reader = &node->profiles.reader;
    struct table_user user = {node->read_by->settings, &node->read_by->metrics,
                              node->node.worker->index};
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
    follow_rules(node);
    profile_reader_read(&node->profiles.reader, batch);
    if (!is_ready(node, batch))
        return false;
    node->profiles.arrived = (struct linked_result){.fold.kept = batch->items};
    if (node->profiles.reader.trace_count > 0)
        node->profiles.arrived = apply_rules(node, node->read_by, batch);
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
    counter_add(tail_metrics(node)->early_profiles, node->node.worker->index, 1);
    line_up(container_of(oldest, struct held_profile, link));
    offers_pump(&node->profiles.offers);
    return true;
}

enum room_result { ROOM_RESERVED, ROOM_LATER, ROOM_NONE };

/* As held_traces does; but a worker gets no memory from others. */
static enum room_result make_room(struct tail_node *node, size_t size)
{
    struct budget *budget = &node->tail->held[SIGNAL_PROFILES];
    struct held_profiles *held = &node->profiles;
    while (!budget_reserve(budget, size)) {
        if (held->leaving_bytes < budget->limit_bytes / LEAVING_PART && let_oldest_leave(node))
            continue;
        if (size > budget->limit_bytes && budget_used(budget) <= budget->limit_bytes) {
            budget_charge(budget, size);
            break;
        }
        bool more_leaves = held->due.count > 0 && held->offers.under_way == 0;
        return more_leaves ? ROOM_LATER : ROOM_NONE;
    }
    return ROOM_RESERVED;
}

/* Tells the table about the next samples, for the policies that read them. Returns whether these
 * were the last. */
static bool add_samples(struct tail_node *node)
{
    const struct profile_reader *reader = &node->profiles.reader;
    struct table_user user = tail_user(node);
    uint32_t *next = &node->profiles.arriving.next;
    uint32_t count = reader->plan->reads_samples ? reader->trace_count : 0;
    const uint64_t *none = NULL;
    if (tail_reader_is_stale(node)) /* a reload came between two turns */
        none = arena_array(&node->profiles.reader.arena,
                           facts_words(tail_settings(node)->plan.bit_count) + 1, sizeof *none);
    for (int n = 0; n < IDS_PER_TURN && *next < count; n++, ++*next) {
        struct trace_arrival samples = {
            .id = reader->traces[*next].id,
            .facts = reader->traces[*next].facts,
            .bits = none ? none : reader->bits + (size_t)*next * reader->words};
        trace_table_add_samples(node->tail->table, &user, &samples, node->node.worker->now_ns);
    }
    return *next >= count;
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
    hold->reading = node->read_by->sample_reading;
    hold->counted = reader->plan->reads_samples ? ALL_COUNTED : 0;
    hold->timer.on_timer = on_hold_timer;
    for (; hold->id_count < reader->trace_count; hold->id_count++)
        memcpy(hold->ids + (size_t)hold->id_count * TRACE_ID_SIZE,
               reader->traces[hold->id_count].id, TRACE_ID_SIZE);
    list_append(&node->profiles.waiting, &hold->link);
    return hold;
}

/* Takes the batch and the reader back: the next request may come. */
static struct batch *end_arriving(struct tail_node *node)
{
    struct arriving_profile *arriving = &node->profiles.arriving;
    struct batch *batch = arriving->batch;
    reservation_end_keep(arriving->reservation);
    *arriving = (struct arriving_profile){0};
    profile_reader_clear(&node->profiles.reader);
    return batch;
}

/* Reserves memory. Returns false if the request was settled, or waits for room. */
static bool admit(struct tail_node *node)
{
    struct arriving_profile *arriving = &node->profiles.arriving;
    if (receipt_is_abandoned(arriving->batch->receipt)) {
        batch_drop(end_arriving(node), &verdict_sender_is_gone);
        return false;
    }
    enum room_result room = make_room(node, arriving->size);
    if (room == ROOM_NONE)
        tail_refuse_full(node, end_arriving(node));
    return arriving->is_admitted = room == ROOM_RESERVED;
}

/* Goes on with the request that arrives. Returns whether it is settled. */
static bool go_on_arriving(struct tail_node *node)
{
    struct arriving_profile *arriving = &node->profiles.arriving;
    if (!arriving->is_admitted && !admit(node))
        return !arriving->batch;
    if (!add_samples(node))
        return false;
    struct batch *kept = batch_clone(arriving->batch);
    kept->arrived_ns = arriving->batch->arrived_ns;
    struct held_profile *hold = hold_new(node, kept, arriving->size);
    bool is_stale = tail_reader_is_stale(node);
    struct batch *batch = end_arriving(node);
    if (is_stale)
        reread_profiles_first(node, hold);
    ask(hold);
    offers_pump(&node->profiles.offers);
    /* The last call: the answer may deliver the next request. */
    batch_drop(batch, &verdict_ok);
    return true;
}

static void on_turn(struct timer *timer)
{
    struct held_profiles *held = container_of(timer, struct held_profiles, turn);
    struct tail_node *node = container_of(held, struct tail_node, profiles);
    if (go_on_arriving(node))
        large_batches_release(&node->arriving);
    else
        worker_set_timer(node->node.worker, &held->turn, 0);
}

void held_profiles_add(struct node *base, struct batch *batch, uint64_t was_applied)
{
    struct tail_node *node = tail_node_of(base);
    struct held_profiles *held = &node->profiles;
    if (was_applied) {
        forward(node, batch);
        return;
    }
    if (tail_reader_is_stale(node)) { /* a reload came while a job has read it */
        large_batches_add(&node->arriving, batch);
        return;
    }
    assert(!held->arriving.batch);
    held->arriving =
        (struct arriving_profile){.batch = batch,
                                  .reservation = reservation_keep(batch->reservation),
                                  .size = batch_memory(batch) + HOLD_BYTES +
                                          (size_t)held->reader.trace_count * TRACE_ID_SIZE};
    if (go_on_arriving(node))
        return;
    large_batches_hold(&node->arriving);
    worker_set_timer(node->node.worker, &held->turn, 0);
}

/* ---- start and end ---- */

/* Deadlines may be others after a reload: all requests ask again, some each millisecond. */
static void on_message(void *context, enum holder_message message, const uint8_t *id)
{
    struct tail_node *node = context;
    uint64_t count = 0;
    (void)id;
    if (message != RULES_CHANGED)
        return;
    reread_profiles_begin(node);
    for (struct list_link *link = node->profiles.waiting.first; link; link = link->next)
        worker_set_timer(node->node.worker, &container_of(link, struct held_profile, link)->timer,
                         count++ / ASKED_PER_MS * 1000000);
}

bool held_profiles_init(struct tail_node *node)
{
    const struct holder listener = {node->node.worker, on_message, node, false};
    struct held_profiles *held = &node->profiles;
    follow_rules(node);
    held->turn.on_timer = on_turn;
    large_batches_init(&held->leaving, &node->node, &leaving_work);
    offers_init(&held->offers, &node->node, send_next);
    reread_profiles_init(node, wait_again);
    held->listener = trace_holders_add_listener(trace_table_holders(node->tail->table), &listener);
    return held->listener >= 0;
}

void held_profiles_drain(struct tail_node *node)
{
    struct held_profiles *held = &node->profiles;
    for (struct list_link *link = held->waiting.first, *next; link; link = next) {
        next = link->next;
        ask(container_of(link, struct held_profile, link));
    }
    offers_pump(&held->offers);
}

bool held_profiles_are_idle(const struct tail_node *node)
{
    const struct held_profiles *held = &node->profiles;
    return !held->arriving.batch && !held->rereading.hold && held->waiting.count == 0 &&
           held->due.count == 0 && held->working.count == 0 && held->offers.under_way == 0;
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

static void stop_arriving(struct tail_node *node)
{
    struct arriving_profile *arriving = &node->profiles.arriving;
    worker_cancel_timer(node->node.worker, &node->profiles.turn);
    if (!arriving->batch)
        return;
    if (arriving->is_admitted)
        budget_release(&node->tail->held[SIGNAL_PROFILES], arriving->size);
    tail_refuse_at_stop(node, end_arriving(node));
}

void held_profiles_stop(struct tail_node *node)
{
    struct held_profiles *held = &node->profiles;
    stop_arriving(node);
    reread_profiles_stop(node);
    offers_stop(&held->offers);
    large_batches_stop(&held->leaving); /* drops the batches of `working`, and counts them */
    for (struct list_link *link = held->working.first; link; link = link->next)
        container_of(link, struct held_profile, link)->batch = NULL;
    give_up(&held->working);
    node->lost += give_up(&held->waiting) + give_up(&held->due);
    tail_count_stopped(node, node->lost);
    trace_holders_remove(trace_table_holders(node->tail->table), held->listener);
    drop_reader(node);
}
