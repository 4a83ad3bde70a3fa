#include "processors/batch/batch_sending.h"

#include "core/base/log.h"
#include "core/base/memory.h"
#include "processors/batch/batch_node.h"
#include "processors/batch/held_requests.h"
#include "processors/batch/next_batch.h"

#include <assert.h>
#include <inttypes.h>

/* Making a batch of more items may take so long that the log names this component. */
enum { PIECE_ITEMS = 1024 };

/* A batch that is being sent. */
struct sent_batch {
    struct offer offer;
    struct shard *shard;
    struct senders senders;
    size_t held_bytes;
    uint32_t items;
};

/* ---- verdicts ---- */

/* Counts lost items. The verdict on acknowledged data is "try later" only at the stop. */
static void count_lost(const struct sent_batch *sent, const struct verdict *verdict)
{
    struct batch_node *node = sent->shard->node;
    assert(sent->senders.have_no_receipt); /* otherwise the senders get the verdict */
    if (verdict_is_retryable(verdict)) {
        node->lost += sent->items;
        return;
    }
    counter_add(node->dropped, node->node.worker->index, sent->items);
    char error[VERDICT_ERROR_MAX];
    log_warn(node->node.origin, "Sender failed. Dropping data.",
             LOG_TEXT("error", verdict_print(verdict, error)),
             LOG_U64("dropped_items", sent->items));
}

static void on_batch_settled(struct offer *offer, const struct verdict *verdict)
{
    struct sent_batch *sent = container_of(offer, struct sent_batch, offer);
    struct shard *shard = sent->shard;
    bool at_stop = sent->senders.were_told_success && verdict_is_retryable(verdict);
    if (!verdict_is_ok(verdict) && sent->senders.have_no_receipt)
        count_lost(sent, verdict);
    budget_release(batch_node_held(shard->node), sent->held_bytes);
    if (sent->senders.receipts)
        receipt_settle(receipt_of_group(sent->senders.receipts), verdict);
    free(sent);
    if (!at_stop)
        offers_pump(&shard->offers);
}

/* ---- sending ---- */

static struct batch *make_batch(struct shard *shard, struct senders *senders_out)
{
    struct node *node = &shard->node->node;
    struct worker_piece piece;
    worker_begin_piece(node->worker, &piece,
                       shard->items > PIECE_ITEMS ? node->component->label : NULL);
    struct batch *batch = next_batch(shard, senders_out);
    worker_end_piece(node->worker, &piece);
    context_unref(batch->context);
    batch->context = context_ref(shard->context);
    return batch;
}

static void send_batch(struct shard *shard)
{
    struct batch_node *node = shard->node;
    assert(shard->requests.count > 0);
    struct sent_batch *sent = memory_zalloc(sizeof *sent);
    unsigned worker = node->node.worker->index;
    struct batch *batch = make_batch(shard, &sent->senders);
    sent->shard = shard;
    sent->items = batch->items;
    if (!sent->senders.have_no_receipt)
        sent->offer.senders = receipt_of_group(sent->senders.receipts);
    sent->held_bytes = batch_memory(batch) + HOLDING_BYTES;
    budget_charge(batch_node_held(node), sent->held_bytes);
    histogram_record(node->send_size, worker, batch->items);
    if (node->send_bytes)
        histogram_record(node->send_bytes, worker, (double)batch_size(batch));
    counter_add(shard->by_timeout ? node->timeout_triggers : node->size_triggers, worker, 1);
    offer_send(&sent->offer, &shard->offers, batch, sent->senders.were_told_success,
               on_batch_settled);
}

static bool is_due(const struct shard *shard)
{
    assert(shard->due <= shard->requests.count);
    return shard->requests.count > 0 &&
           (shard->due > 0 || shard->items >= batch_node_settings(shard->node)->send_batch_size);
}

static bool may_send(const struct shard *shard)
{
    const struct budget *held = batch_node_held(shard->node);
    return is_due(shard) && (shard->offers.under_way == 0 || budget_used(held) < held->limit_bytes);
}

static void set_timeout(struct shard *shard)
{
    struct worker *worker = shard->node->node.worker;
    int64_t timeout = batch_node_settings(shard->node)->timeout;
    if (shard->requests.count == 0)
        worker_cancel_timer(worker, &shard->timeout);
    else if (shard->due == 0 && !timer_is_set(&shard->timeout))
        worker_set_timer(worker, &shard->timeout, (uint64_t)timeout);
}

static bool send_next(struct offers *offers)
{
    struct shard *shard = container_of(offers, struct shard, offers);
    held_requests_drop_abandoned(shard);
    if (!may_send(shard)) {
        shard->by_timeout = false;
        set_timeout(shard);
        return false;
    }
    worker_cancel_timer(shard->node->node.worker, &shard->timeout);
    send_batch(shard);
    return true;
}

void batch_sending_pump(struct shard *shard)
{
    offers_pump(&shard->offers);
}

void batch_sending_flush(struct shard *shard)
{
    shard->due = shard->requests.count;
    shard->by_timeout = true;
    offers_pump(&shard->offers);
}

static void on_timeout(struct timer *timer)
{
    batch_sending_flush(container_of(timer, struct shard, timeout));
}

void batch_sending_init(struct shard *shard)
{
    offers_init(&shard->offers, &shard->node->node, send_next);
    shard->timeout.on_timer = on_timeout;
}

void batch_sending_stop(struct shard *shard)
{
    worker_cancel_timer(shard->node->node.worker, &shard->timeout);
    offers_stop(&shard->offers);
    for (struct held_request *first; (first = held_requests_first(shard)) != NULL;) {
        struct receipt *receipt = first->receipt;
        shard->node->lost += receipt ? 0 : held_requests_items_left(first);
        held_requests_remove_first(shard);
        if (receipt)
            receipt_settle(receipt, &verdict_shutting_down);
    }
}
