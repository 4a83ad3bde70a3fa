#include "processors/batch/held_requests.h"

#include "core/base/memory.h"
#include "processors/batch/batch_node.h"

#include <assert.h>

void held_requests_append(struct shard *shard, struct batch *batch, size_t held_bytes)
{
    assert(held_bytes >= HOLDING_BYTES && batch->signal == shard->node->node.signal);
    struct held_request *request = memory_zalloc(sizeof *request);
    request->batch = batch;
    request->acknowledged = batch->acknowledged || !batch->receipt;
    request->receipt = batch->receipt;
    batch->receipt = NULL;
    request->held_bytes = held_bytes;
    list_append(&shard->requests, &request->link);
    shard->items += batch->items;
}

struct held_request *held_requests_first(const struct shard *shard)
{
    struct list_link *first = shard->requests.first;
    return first ? container_of(first, struct held_request, link) : NULL;
}

void held_requests_remove_first(struct shard *shard)
{
    struct held_request *request = held_requests_first(shard);
    assert(request);
    list_remove(&shard->requests, &request->link);
    if (shard->due > 0)
        shard->due--;
    budget_release(batch_node_held(shard->node), request->held_bytes);
    cut_source_close(&request->source);
    if (request->batch)
        batch_free(request->batch);
    free(request);
}

static bool is_abandoned(const struct held_request *request)
{
    return request->taken == 0 && receipt_is_abandoned(request->receipt);
}

void held_requests_drop_abandoned(struct shard *shard)
{
    for (struct held_request *first;
         (first = held_requests_first(shard)) != NULL && is_abandoned(first);) {
        struct receipt *receipt = first->receipt;
        assert(shard->items >= first->batch->items);
        shard->items -= first->batch->items;
        held_requests_remove_first(shard);
        receipt_settle(receipt, &verdict_sender_is_gone);
    }
}

uint32_t held_requests_items_left(const struct held_request *request)
{
    assert(request->taken <= request->batch->items);
    return request->batch->items - request->taken;
}
