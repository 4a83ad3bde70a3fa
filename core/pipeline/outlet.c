#include "core/pipeline/outlet.h"

#include "core/base/memory.h"
#include "core/base/text.h"
#include "core/pipeline/outlet_private.h"
#include "core/pipeline/queues_behind.h"
#include "core/pipeline/threads_behind.h"

#include <assert.h>
#include <inttypes.h>

/* ---- passing on ---- */

/* Clients that have given up are not counted: their data was not refused. */
void outlet_log_rejected(struct outlet *outlet, const struct verdict *why, uint32_t items)
{
    if (why->code == GRPC_CANCELLED)
        return;
    uint64_t now = outlet_worker(outlet)->now_ns;
    uint64_t count = log_interval_add(&outlet->rejections, items, now);
    char error[VERDICT_ERROR_MAX];
    if (count > 0)
        log_error(outlet->from->origin, "Rejecting data: every exporter or pipeline refused it.",
                  LOG_TEXT("error", verdict_print(why, error)), LOG_U64("rejected_items", count));
}

static void forward_to(struct outlet *outlet, struct batch *batch, struct branch *const *branches,
                       size_t count)
{
    if (count == 1)
        branch_offer_in_order(branches[0], batch);
    else
        fanout_forward(outlet, batch, branches, count);
}

void outlet_forward_now(struct outlet *outlet, struct batch *batch)
{
    forward_to(outlet, batch, outlet->branches, outlet->count);
}

/* For a request that arrived before a reload removed the pipelines of its signal. */
static const struct verdict no_pipeline = {.code = GRPC_UNAVAILABLE,
                                           .retry_after_ns = -1,
                                           .text = "no pipeline takes this signal any more"};

static void forward(struct outlet *outlet, struct batch *batch)
{
    assert(batch->owner == outlet_worker(outlet));
    if (outlet->stopped)
        batch_drop(batch, &verdict_shutting_down);
    else if (outlet->count == 0)
        batch_drop(batch, &no_pipeline);
    else if (!outlet->blocks || batch->reservation)
        outlet_forward_now(outlet, batch);
    else
        outlet_forward_reserved(outlet, batch);
}

static void count_passed(struct outlet *outlet, const struct batch *batch)
{
    const struct node *node = outlet->from;
    node_count_items(&outlet->items, batch->items);
    if (node->outgoing)
        counter_add(node->outgoing, node->worker->index, batch->items);
}

void node_forward(struct node *node, struct batch *batch)
{
    assert(worker_is_current(node->worker) && batch->owner == node->worker);
    struct outlet *outlet = &node->outlets[batch->signal];
    node_end_duration(node);
    count_passed(outlet, batch);
    forward(outlet, batch);
}

void node_forward_to(struct node *node, struct batch *batch, struct branch *const *branches,
                     size_t count)
{
    assert(worker_is_current(node->worker) && batch->owner == node->worker && count > 0);
    struct outlet *outlet = &node->outlets[batch->signal];
    node_end_duration(node);
    count_passed(outlet, batch);
    if (outlet->stopped)
        batch_drop(batch, &verdict_shutting_down);
    else
        forward_to(outlet, batch, branches, count);
}

/* ---- start and stop ---- */

void outlet_init(struct outlet *outlet, struct node *from, enum signal signal)
{
    *outlet = (struct outlet){.from = from, .signal = signal};
    pace_init(&outlet->rooms, from->worker, outlet_forward_waiting);
}

static struct branch *branch_new(struct outlet *outlet, struct node *to)
{
    struct branch *branch = memory_zalloc(sizeof *branch);
    branch->outlet = outlet;
    branch->to = to;
    branch->refusal = outlet_no_room;
    pace_init(&branch->pace, outlet->from->worker, branch_offer_next);
    return branch;
}

static void append(struct branch ***list, size_t *count, struct branch *branch)
{
    *list = memory_grow(*list, *count + 1, sizeof(struct branch *));
    (*list)[(*count)++] = branch;
}

void outlet_add(struct outlet *outlet, struct node *to)
{
    append(&outlet->branches, &outlet->count, branch_new(outlet, to));
}

static void make_metrics(struct branch *branch)
{
    const struct node *from = branch->outlet->from, *to = branch->to;
    struct metrics *metrics = from->component->process->metrics;
    const char *item = signal_item_name(branch->outlet->signal);
    struct text labels = {0}, name = {0};
    metrics_label(&labels, "from", from->component->label);
    metrics_label(&labels, "to", to->component->label);
    if (to->pipeline)
        metrics_label(&labels, "pipeline", to->pipeline);
    text_printf(&name, "profcol_branch_lost_%s", item);
    branch->lost = metrics_counter(metrics, text_string(&name),
                                   "Items that this branch of a fan-out refused permanently or had "
                                   "no room for, while another branch accepted them.",
                                   text_string(&labels));
    branch->kept = metrics_gauge(metrics, "profcol_branch_kept_requests",
                                 "Acknowledged requests that this branch refused temporarily and "
                                 "that will be offered to it again.",
                                 text_string(&labels));
    text_deinit(&labels);
    text_deinit(&name);
}

void outlet_start(struct outlet *outlet)
{
    outlet_look_behind(outlet);
    for (size_t i = 0; i < outlet->count; i++)
        make_metrics(outlet->branches[i]);
}

static void drain_branch(struct branch *branch)
{
    for (struct list_link *link = branch->later.first; link; link = link->next)
        worker_set_timer(outlet_worker(branch->outlet),
                         &container_of(link, struct kept, link)->timer, 0);
}

void outlet_drain(struct outlet *outlet)
{
    outlet->draining = true;
    for (size_t i = 0; i < outlet->count; i++)
        drain_branch(outlet->branches[i]);
    for (size_t i = 0; i < outlet->past_count; i++)
        drain_branch(outlet->past[i]);
}

static bool keeps_batches(const struct branch *branch)
{
    return branch->ready.count > 0 || branch->later.count > 0;
}

bool outlet_is_idle(const struct outlet *outlet)
{
    for (size_t i = 0; i < outlet->count; i++)
        if (keeps_batches(outlet->branches[i]))
            return false;
    for (size_t i = 0; i < outlet->past_count; i++)
        if (keeps_batches(outlet->past[i]))
            return false;
    return outlet->waiting.count == 0 && outlet->fanouts == 0;
}

static void give_up(struct outlet *outlet, struct kept *kept)
{
    if (kept->branch && fanout_is_accepted_elsewhere(kept->batch))
        atomic_fetch_add(&outlet->from->component->process->lost_items, kept->batch->items);
    batch_drop(kept_take(kept), &verdict_shutting_down);
}

static void give_up_list(struct outlet *outlet, struct list *list)
{
    while (list->count > 0)
        give_up(outlet, container_of(list_pop(list), struct kept, link));
}

static void stop_branch(struct branch *branch)
{
    give_up_list(branch->outlet, &branch->ready);
    give_up_list(branch->outlet, &branch->later);
    pace_stop(&branch->pace);
    branch->losses.logged_ns = 0; /* so that the rest is logged now */
    branch_log_lost(branch, 0);
}

/* Giving up a batch may make the node forward the next one; `stopped` ends that. */
void outlet_stop(struct outlet *outlet)
{
    outlet->stopped = true;
    give_up_list(outlet, &outlet->waiting);
    for (size_t i = 0; i < outlet->count; i++)
        stop_branch(outlet->branches[i]);
    for (size_t i = 0; i < outlet->past_count; i++)
        stop_branch(outlet->past[i]);
    pace_stop(&outlet->rooms);
}

void outlet_deinit(struct outlet *outlet)
{
    assert(outlet->fanouts == 0 && outlet->waiting.count == 0);
    for (size_t i = 0; i < outlet->count; i++)
        free(outlet->branches[i]);
    for (size_t i = 0; i < outlet->past_count; i++)
        free(outlet->past[i]);
    free(outlet->branches);
    free(outlet->past);
}

/* ---- reload ---- */

/* Removes a branch to the node from a list and returns it; NULL if there is none. */
static struct branch *take(struct branch **list, size_t *count, const struct node *to)
{
    for (size_t i = 0; i < *count; i++) {
        struct branch *branch = list[i];
        if (branch->to != to)
            continue;
        memmove(list + i, list + i + 1, (--*count - i) * sizeof(struct branch *));
        return branch;
    }
    return NULL;
}

static struct branch *branch_to(struct outlet *outlet, struct node *to)
{
    struct branch *branch = take(outlet->branches, &outlet->count, to);
    if (!branch)
        branch = take(outlet->past, &outlet->past_count, to);
    if (branch)
        return branch;
    branch = branch_new(outlet, to);
    make_metrics(branch);
    return branch;
}

/* Those that wait for room do not count at a queue that may be gone soon; a reload is rare. */
static void forget_full_queue(struct outlet *outlet)
{
    outlet->full = NULL;
    for (struct list_link *link = outlet->waiting.first; link; link = link->next) {
        struct kept *kept = container_of(link, struct kept, link);
        if (kept->charged)
            budget_release(kept->charged, kept->charged_bytes);
        kept->charged = NULL;
    }
}

void outlet_reconnect(struct outlet *outlet, struct node *const *to, size_t count)
{
    assert(worker_is_current(outlet_worker(outlet)) && !outlet->stopped);
    struct branch **fresh = NULL;
    size_t fresh_count = 0;
    for (size_t i = 0; i < count; i++)
        append(&fresh, &fresh_count, branch_to(outlet, to[i]));
    for (size_t i = 0; i < outlet->count; i++)
        append(&outlet->past, &outlet->past_count, outlet->branches[i]);
    free(outlet->branches);
    outlet->branches = fresh;
    outlet->count = fresh_count;
    forget_full_queue(outlet);
}

void outlet_look_behind(struct outlet *outlet)
{
    outlet->blocks = queues_behind_block(outlet);
    threads_look_behind(outlet);
}

bool outlet_has_users(const struct outlet *outlet)
{
    for (size_t i = 0; i < outlet->count; i++)
        if (outlet->branches[i]->users > 0)
            return true;
    for (size_t i = 0; i < outlet->past_count; i++)
        if (outlet->past[i]->users > 0)
            return true;
    return false;
}

bool outlet_leads_to_draining(const struct outlet *outlet)
{
    for (size_t i = 0; i < outlet->past_count; i++) {
        const struct branch *branch = outlet->past[i];
        if (branch->to->draining && (branch->users > 0 || keeps_batches(branch)))
            return true;
    }
    return false;
}

void outlet_forget_stopped(struct outlet *outlet)
{
    assert(worker_is_current(outlet_worker(outlet)));
    size_t left = 0;
    for (size_t i = 0; i < outlet->past_count; i++) {
        struct branch *branch = outlet->past[i];
        if (!branch->to->stopped) {
            outlet->past[left++] = branch;
            continue;
        }
        assert(branch->users == 0 && !keeps_batches(branch));
        pace_stop(&branch->pace);
        free(branch);
    }
    outlet->past_count = left;
}
