#include "core/pipeline/node.h"

#include "core/base/metrics.h"
#include "core/base/worker.h"
#include "core/pipeline/batch.h"

#include <assert.h>

void node_begin_piece(const struct node *node, const struct batch *batch,
                      struct worker_piece *piece)
{
    enum { PARTS = 16 };
    assert(batch->part_count > 0);
    bool is_large = batch->part_count > PARTS || batch->parts[0].buffer->size >= WORKER_PIECE_BYTES;
    worker_begin_piece(node->worker, piece, is_large ? node->component->label : NULL);
}

void node_begin_timed(struct node *node)
{
    assert(node->duration && worker_is_current(node->worker));
    node->consuming_ns = worker_now(node->worker);
}

void node_end_timed(struct node *node)
{
    uint64_t elapsed_ns = worker_now(node->worker) - node->consuming_ns;
    histogram_record(node->duration, node->worker->index, (double)elapsed_ns / 1e9);
    node->consuming_ns = 0;
}

void node_drained(struct node *node)
{
    assert(worker_is_current(node->worker));
    assert(node->draining && !node->drained);
    node->drained = true;
}
