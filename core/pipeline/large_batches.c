#include "core/pipeline/large_batches.h"

#include "core/base/container_of.h"
#include "core/base/memory.h"
#include "core/pipeline/batch.h"
#include "core/pipeline/component.h"
#include "core/pipeline/reservation.h"

#include <assert.h>

/* A batch that waits, or that a job works on. */
struct waiting_batch {
    struct queued_job queued;
    struct large_batches *batches;
    struct batch *batch;             /* lent */
    struct reservation *reservation; /* the batch's, kept meanwhile */
    uint64_t result;
};

static void forward(const struct large_batches *batches, struct batch *batch, uint64_t result)
{
    if (batches->work->forward)
        batches->work->forward(batches->node, batch, result);
    else
        node_forward(batches->node, batch);
}

/* ---- jobs ---- */

static void run_in_job(struct queued_job *queued)
{
    struct waiting_batch *waiting = container_of(queued, struct waiting_batch, queued);
    assert(queued->is_large && !waiting->batch->owner);
    waiting->result = waiting->batches->work->work(waiting->batches->node, waiting->batch);
    batch_flatten(waiting->batch);
}

/* A small batch whose turn has come. */
static void run_on_loop(struct queued_job *queued)
{
    struct waiting_batch *waiting = container_of(queued, struct waiting_batch, queued);
    struct node *node = waiting->batches->node;
    struct worker_piece piece;
    assert(!queued->is_large && worker_is_current(node->worker));
    node_begin_piece(node, waiting->batch, &piece);
    waiting->result = waiting->batches->work->work(node, waiting->batch);
    worker_end_piece(node->worker, &piece);
}

static bool is_wanted(const struct queued_job *queued)
{
    return !receipt_is_abandoned(
        container_of(queued, const struct waiting_batch, queued)->batch->receipt);
}

static void refuse_at_stop(struct node *node, struct batch *batch)
{
    if (!batch->receipt) /* with one, whoever gets it back sends it again or counts it */
        atomic_fetch_add(&node->component->process->lost_items, batch->items);
    node_refuse(node, batch, REFUSED_FAILED, &verdict_shutting_down);
}

static void on_done(struct queued_job *queued, bool did_run)
{
    struct waiting_batch *waiting = container_of(queued, struct waiting_batch, queued);
    struct node *node = waiting->batches->node;
    struct batch *batch = waiting->batch;
    assert(worker_is_current(node->worker));
    batch_take_back(batch, node->worker);
    if (receipt_is_abandoned(batch->receipt))
        batch_drop(batch, &verdict_sender_is_gone);
    else if (did_run)
        forward(waiting->batches, batch, waiting->result);
    else
        refuse_at_stop(node, batch);
    reservation_end_keep(waiting->reservation);
    free(waiting);
}

static void add_to_queue(struct large_batches *batches, struct batch *batch, size_t size_bytes)
{
    struct waiting_batch *waiting = memory_zalloc(sizeof *waiting);
    bool is_large = size_bytes >= batches->work->large_bytes;
    waiting->batches = batches;
    waiting->batch = batch;
    waiting->reservation = reservation_keep(batch->reservation);
    waiting->queued = (struct queued_job){.run = is_large ? run_in_job : run_on_loop,
                                          .done = on_done,
                                          .is_wanted = is_wanted,
                                          .size_bytes = size_bytes,
                                          .is_large = is_large};
    batch_lend(batch);
    job_queue_add(&batches->queue, &waiting->queued);
}

/* ---- public functions ---- */

void large_batches_init(struct large_batches *batches, struct node *node,
                        const struct batch_work *work)
{
    assert(!batches->node && work->work && work->large_bytes > 0);
    *batches = (struct large_batches){node, work, {.worker = node->worker}};
}

static size_t received_size(const struct batch *batch)
{
    size_t size = 0;
    for (size_t i = 0; i < batch->part_count; i++)
        size += batch->parts[i].root.raw.size;
    return size;
}

void large_batches_add(struct large_batches *batches, struct batch *batch)
{
    size_t size_bytes = received_size(batch);
    assert(batch->owner == batches->node->worker);
    if (size_bytes < batches->work->large_bytes && job_queue_is_empty(&batches->queue) &&
        !batches->queue.is_held)
        forward(batches, batch, batches->work->work(batches->node, batch));
    else
        add_to_queue(batches, batch, size_bytes);
}

void large_batches_hold(struct large_batches *batches)
{
    job_queue_hold(&batches->queue);
}

void large_batches_release(struct large_batches *batches)
{
    job_queue_release(&batches->queue);
}

bool large_batches_is_empty(const struct large_batches *batches)
{
    return job_queue_is_empty(&batches->queue);
}

void large_batches_stop(struct large_batches *batches)
{
    job_queue_stop(&batches->queue);
    assert(large_batches_is_empty(batches));
}
