#include "core/pipeline/node.h"

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

void node_drained(struct node *node)
{
    assert(worker_is_current(node->worker));
    assert(node->draining && !node->drained);
    node->drained = true;
}
