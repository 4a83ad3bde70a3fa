#include "processors/tail_sampling/reread_turns.h"

#include "core/base/container_of.h"

/* A turn reads as many bytes on the loop; a request of this size is read in a job. */
enum { TURN_BYTES = 256 * 1024 };

static struct tail_rules *current_rules(const struct reread_turns *turns)
{
    return trace_table_rules(turns->node->tail->table)->current;
}

/* ---- the reader ---- */

static void drop_reader(struct reread_turns *turns)
{
    if (!turns->rules)
        return;
    turns->steps->deinit_reader(turns->node);
    tail_rules_unref(turns->rules);
    turns->rules = NULL;
}

static void use_current_rules(struct reread_turns *turns)
{
    if (turns->rules == current_rules(turns))
        return;
    drop_reader(turns);
    turns->rules = rules_book_ref(trace_table_rules(turns->node->tail->table));
    turns->steps->init_reader(turns->node);
}

static void read_request(struct queued_job *queued)
{
    struct reread_turns *turns = container_of(queued, struct reread_turns, job);
    turns->steps->read(turns->node);
}

static void on_read(struct queued_job *queued, bool did_run)
{
    struct reread_turns *turns = container_of(queued, struct reread_turns, job);
    turns->is_reading = false;
    turns->is_read = did_run && turns->rules == current_rules(turns);
    turns->next = 0;
    if (queued->is_large && did_run)
        reread_turns_begin(turns);
}

/* ---- turns ---- */

static bool take_next(struct reread_turns *turns)
{
    turns->has_request = turns->steps->take_next(turns->node);
    return turns->has_request;
}

/* Returns the bytes that were read on the loop. */
static size_t read_next(struct reread_turns *turns)
{
    size_t bytes = turns->steps->bytes_of_taken(turns->node);
    bool is_large = bytes >= TURN_BYTES;
    use_current_rules(turns);
    turns->is_reading = true;
    turns->job = (struct queued_job){
        .run = read_request, .done = on_read, .size_bytes = bytes, .is_large = is_large};
    job_queue_add(&turns->queue, &turns->job);
    return is_large ? 0 : bytes;
}

/* Does one step; returns the bytes that it counts for the turn. */
static size_t step(struct reread_turns *turns)
{
    if (turns->rules != current_rules(turns))
        turns->is_read = false; /* by rules that have changed again */
    if (!turns->is_read)
        return read_next(turns);
    if (!turns->steps->tell_table(turns->node))
        return TURN_BYTES;
    turns->has_request = turns->is_read = false;
    turns->steps->end_request(turns->node);
    return 0;
}

static void on_turn(struct timer *timer)
{
    struct reread_turns *turns = container_of(timer, struct reread_turns, turn);
    size_t done = 0;
    while (done < TURN_BYTES && !turns->is_reading && (turns->has_request || take_next(turns)))
        done += step(turns);
    if (turns->is_reading)
        return;
    if (turns->has_request || done >= TURN_BYTES) {
        worker_set_timer(turns->node->node.worker, &turns->turn, 0);
        return;
    }
    drop_reader(turns);
    turns->steps->catch_up(turns->node);
}

void reread_turns_init(struct reread_turns *turns, struct tail_node *node,
                       const struct reread_steps *steps)
{
    turns->steps = steps;
    turns->node = node;
    turns->queue.worker = node->node.worker;
    turns->turn.on_timer = on_turn;
}

void reread_turns_begin(struct reread_turns *turns)
{
    if (!turns->is_reading && !timer_is_set(&turns->turn))
        worker_set_timer(turns->node->node.worker, &turns->turn, 0);
}

void reread_turns_stop(struct reread_turns *turns)
{
    job_queue_stop(&turns->queue);
    worker_cancel_timer(turns->node->node.worker, &turns->turn);
    turns->has_request = false;
    drop_reader(turns);
}
