#include "processors/batch/next_batch.h"

#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/data/profiles_merge.h"
#include "core/data/signals.h"
#include "processors/batch/batch_node.h"
#include "processors/batch/held_requests.h"

#include <assert.h>

/* Requests smaller than this on average are copied into one buffer. */
enum { PART_MIN_BYTES = 4096 };

/* The state while a batch is made. */
struct filling {
    struct shard *shard;
    struct senders *senders;
    uint64_t items;
    uint64_t items_max;
    struct buffer **parts; /* except for profiles: encoded requests, to be concatenated */
    size_t part_count;
    bool links_are_labels;  /* in all of the requests (batch.h) */
    bool has_added_threads; /* in some of them */
};

/* ---- one request ---- */

static void add_part(struct filling *filling, struct buffer *part)
{
    filling->parts = memory_grow(filling->parts, filling->part_count + 1, sizeof(struct buffer *));
    filling->parts[filling->part_count++] = part;
}

static void add_whole(struct filling *filling, const struct held_request *request)
{
    const struct batch *batch = request->batch;
    if (batch->signal == SIGNAL_PROFILES) {
        profiles_merge_add(filling->shard->node->merge, batch->parts[0].buffer);
        return;
    }
    for (size_t i = 0; i < batch->part_count; i++)
        add_part(filling, buffer_ref(batch->parts[i].buffer));
}

static void open_source(struct filling *filling, struct held_request *request)
{
    size_t size = batch_memory(request->batch);
    request->room = cut_room_of(size);
    cut_source_open(&request->source, request->batch, filling->shard->node->merge);
    offers_count_work(&filling->shard->offers, size);
}

static void add_some(struct filling *filling, struct held_request *request, uint32_t count)
{
    size_t work;
    struct buffer *part = cut_source_part(&request->source, request->taken, count, &work);
    if (part)
        add_part(filling, part);
    cut_room_use(&request->room, work,
                 cut_source_item_bytes(&request->source, request->taken, count));
    offers_count_work(&filling->shard->offers, work);
    request->taken += count;
}

/* Adds the receipt of the request, or a part of it, to those of the batch. */
static void share_receipt(struct senders *senders, struct held_request *request, bool is_last)
{
    senders->were_told_success |= request->acknowledged;
    if (!request->receipt) {
        senders->have_no_receipt = true;
        return;
    }
    if (!is_last)
        receipt_add_parts(request->receipt, 1);
    senders->receipts = receipt_group_add(senders->receipts, request->receipt);
    if (is_last)
        request->receipt = NULL;
}

static void log_too_large(struct batch_node *node, uint32_t items)
{
    uint64_t all = log_interval_add(&node->too_large, items, node->node.worker->now_ns);
    if (all > 0)
        log_warn(node->node.origin,
                 "Requests larger than send_batch_max_size are sent: this signal is split only "
                 "between its resources",
                 LOG_U64("items", all));
}

/* Returns how many items of the request go into the batch. When its parts may repeat no more
 * bytes, all remaining items stay together. Returns 0 if the next resource of metrics or logs
 * does not fit into the rest of the batch. */
static uint32_t share_of(struct filling *filling, struct held_request *request)
{
    assert(filling->items < filling->items_max);
    uint64_t left = held_requests_items_left(request), fits = filling->items_max - filling->items;
    if (left <= fits)
        return (uint32_t)left;
    if (request->taken > 0 && cut_room_is_used_up(&request->room))
        return (uint32_t)left;
    if (!cut_source_is_open(&request->source))
        open_source(filling, request);
    uint32_t share = cut_source_fit(&request->source, request->taken, (uint32_t)fits, SIZE_MAX);
    if (share <= fits)
        return share;
    if (filling->items > 0)
        return 0;
    log_too_large(filling->shard->node, share);
    return share;
}

/* Adds the request or a part of it. Returns false if nothing of it fits. */
static bool add_request(struct filling *filling, struct held_request *request)
{
    struct shard *shard = filling->shard;
    uint32_t left = held_requests_items_left(request), count = share_of(filling, request);
    if (count == 0)
        return false;
    if (request->taken == 0 && count == left)
        add_whole(filling, request);
    else
        add_some(filling, request, count);
    filling->items += count;
    filling->links_are_labels &= request->batch->links_are_labels;
    filling->has_added_threads |= request->batch->has_added_threads;
    assert(shard->items >= count);
    shard->items -= count;
    share_receipt(filling->senders, request, count == left);
    if (count == left)
        held_requests_remove_first(shard);
    return true;
}

/* ---- the whole batch ---- */

static void fill(struct filling *filling)
{
    struct shard *shard = filling->shard;
    uint64_t enough = batch_node_settings(shard->node)->send_batch_size;
    bool fits;
    do {
        fits = add_request(filling, held_requests_first(shard));
        held_requests_drop_abandoned(shard);
    } while (fits && shard->requests.first && filling->items < enough &&
             filling->items < filling->items_max);
}

static struct buffer *copy_parts(struct filling *filling, size_t size)
{
    struct budget *budget = filling->parts[0]->budget;
    for (size_t i = 1; i < filling->part_count; i++)
        budget = budget_of_both(budget, filling->parts[i]->budget);
    struct buffer *joined = buffer_new_charged(size, budget);
    for (size_t i = 0; i < filling->part_count; i++) {
        struct slice part = buffer_slice(filling->parts[i]);
        if (part.size > 0)
            memcpy(joined->data + joined->size, part.data, part.size);
        joined->size += part.size;
        buffer_unref(filling->parts[i]);
    }
    return joined;
}

/* Concatenates the parts. Small requests are copied into one buffer, because many small buffers
 * would cost memory and make every write slower. Large ones are not copied. */
static struct batch *join_parts(struct filling *filling, const struct node *node)
{
    struct worker *worker = node->worker;
    enum signal signal = node->signal;
    size_t size = 0;
    assert(filling->parts);
    for (size_t i = 0; i < filling->part_count; i++)
        size += filling->parts[i]->size;
    if (filling->part_count > 1 && size / filling->part_count < PART_MIN_BYTES) {
        filling->parts[0] = copy_parts(filling, size);
        filling->part_count = 1;
    }
    struct batch *batch =
        batch_new(worker, signal, filling->parts[0], (uint32_t)filling->items, NULL, NULL);
    for (size_t i = 1; i < filling->part_count; i++)
        batch_append(batch, batch_new(worker, signal, filling->parts[i], 0, NULL, NULL));
    free(filling->parts);
    return batch;
}

/* Returns the first request unchanged. */
static struct batch *take_whole(struct shard *shard, struct senders *senders)
{
    struct held_request *request = held_requests_first(shard);
    struct batch *batch = request->batch;
    request->batch = NULL;
    batch->peer = 0; /* as for merged requests: their peers differ */
    shard->items -= batch->items;
    share_receipt(senders, request, true);
    held_requests_remove_first(shard);
    return batch;
}

static bool goes_alone(const struct shard *shard, uint64_t items_max)
{
    const struct held_request *first = held_requests_first(shard);
    uint64_t enough = batch_node_settings(shard->node)->send_batch_size;
    return first->taken == 0 && first->batch->items <= items_max &&
           (shard->requests.count == 1 || first->batch->items >= enough);
}

struct batch *next_batch(struct shard *shard, struct senders *senders)
{
    const struct node *node = &shard->node->node;
    uint64_t max = batch_node_settings(shard->node)->send_batch_max_size;
    struct filling filling = {.shard = shard,
                              .senders = senders,
                              .items_max = max ? max : UINT32_MAX,
                              .links_are_labels = true};
    assert(shard->requests.count > 0);
    *senders = (struct senders){.receipts = NULL};
    if (goes_alone(shard, filling.items_max))
        return take_whole(shard, senders);
    fill(&filling);
    if (signal_concatenates(node->signal))
        return join_parts(&filling, node);
    struct batch *batch =
        batch_new(node->worker, node->signal, profiles_merge_finish(shard->node->merge),
                  (uint32_t)filling.items, NULL, NULL);
    batch->links_are_labels = filling.links_are_labels;
    batch->has_added_threads = filling.has_added_threads;
    return batch;
}
