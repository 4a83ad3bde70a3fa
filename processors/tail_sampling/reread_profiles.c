#include "processors/tail_sampling/reread_profiles.h"

#include "core/base/container_of.h"

#include <assert.h>

/* A turn reads as many bytes on the loop; a request of this size is read in a job. */
enum { TURN_BYTES = 256 * 1024 };

static struct tail_rules *current_rules(const struct tail_node *node)
{
    return trace_table_rules(node->tail->table)->current;
}

/* ---- the reader ---- */

static void drop_reader(struct rereading_profiles *reading)
{
    if (!reading->rules)
        return;
    profile_reader_deinit(&reading->reader);
    tail_rules_unref(reading->rules);
    reading->rules = NULL;
}

static void use_current_rules(struct tail_node *node)
{
    struct rereading_profiles *reading = &node->profiles.rereading;
    if (reading->rules == current_rules(node))
        return;
    drop_reader(reading);
    reading->rules = rules_book_ref(trace_table_rules(node->tail->table));
    profile_reader_init(&reading->reader, &reading->rules->settings->plan,
                        &reading->rules->programs, node->node.component->label);
}

static void read_request(struct queued_job *queued)
{
    struct rereading_profiles *reading = container_of(queued, struct rereading_profiles, job);
    profile_reader_read(&reading->reader, reading->hold->batch);
}

static void on_read(struct queued_job *queued, bool did_run)
{
    struct rereading_profiles *reading = container_of(queued, struct rereading_profiles, job);
    struct tail_node *node = reading->hold->node;
    reading->is_reading = false;
    reading->is_read = did_run && reading->rules == current_rules(node);
    reading->next = 0;
    if (queued->is_large && did_run)
        reread_profiles_begin(node);
}

/* ---- one request ---- */

static struct held_profile *first_to_read(struct tail_node *node)
{
    struct list_link *first = node->profiles.waiting.first;
    struct held_profile *hold = first ? container_of(first, struct held_profile, link) : NULL;
    const struct tail_rules *rules = current_rules(node);
    bool is_read =
        !hold || !rules->settings->plan.reads_samples || hold->reading == rules->sample_reading;
    return is_read ? NULL : hold;
}

/* Takes the next request; returns false if there is none. */
static bool take_next(struct tail_node *node)
{
    struct held_profile *hold = first_to_read(node);
    if (!hold)
        return false;
    worker_cancel_timer(node->node.worker, &hold->timer);
    list_remove(&node->profiles.waiting, &hold->link);
    node->profiles.rereading.hold = hold;
    return true;
}

/* Returns the bytes that were read on the loop. */
static size_t read_next(struct tail_node *node)
{
    struct rereading_profiles *reading = &node->profiles.rereading;
    size_t bytes = batch_memory(reading->hold->batch);
    bool is_large = bytes >= TURN_BYTES;
    use_current_rules(node);
    reading->is_reading = true;
    reading->job = (struct queued_job){
        .run = read_request, .done = on_read, .size_bytes = bytes, .is_large = is_large};
    job_queue_add(&reading->queue, &reading->job);
    return is_large ? 0 : bytes;
}

/* Tells the table about the next trace. Its sums count once, whoever reads them. */
static void tell_trace(struct tail_node *node, uint32_t i)
{
    struct rereading_profiles *reading = &node->profiles.rereading;
    const struct profile_reader *reader = &reading->reader;
    struct table_user user = tail_user(node);
    struct trace_arrival samples = {.id = reader->traces[i].id,
                                    .bits = reader->bits + (size_t)i * reader->words};
    if (i >= reading->hold->counted) {
        samples.facts = reader->traces[i].facts;
        reading->hold->counted = i + 1;
    }
    trace_table_add_samples(node->tail->table, &user, &samples, node->node.worker->now_ns);
}

/* Returns whether these were the last traces. */
static bool tell_table(struct tail_node *node)
{
    struct rereading_profiles *reading = &node->profiles.rereading;
    uint32_t count = reading->rules->settings->plan.reads_samples ? reading->reader.trace_count : 0;
    for (int n = 0; n < TRACES_PER_TURN && reading->next < count; n++)
        tell_trace(node, reading->next++);
    return reading->next >= count;
}

static void end_request(struct tail_node *node)
{
    struct rereading_profiles *reading = &node->profiles.rereading;
    struct held_profile *hold = reading->hold;
    hold->reading = reading->rules->sample_reading;
    if (reading->rules->settings->plan.reads_samples)
        hold->counted = ALL_COUNTED;
    profile_reader_clear(&reading->reader);
    reading->hold = NULL;
    reading->is_read = false;
    reading->wait_again(hold);
}

/* ---- turns ---- */

/* Does one step; returns the bytes that it counts for the turn. */
static size_t step(struct tail_node *node)
{
    struct rereading_profiles *reading = &node->profiles.rereading;
    if (reading->rules != current_rules(node))
        reading->is_read = false; /* by rules that have changed again */
    if (!reading->is_read)
        return read_next(node);
    if (!tell_table(node))
        return TURN_BYTES;
    end_request(node);
    return 0;
}

static void on_turn(struct timer *timer)
{
    struct rereading_profiles *reading = container_of(timer, struct rereading_profiles, turn);
    struct held_profiles *held = container_of(reading, struct held_profiles, rereading);
    struct tail_node *node = container_of(held, struct tail_node, profiles);
    size_t done = 0;
    while (done < TURN_BYTES && !reading->is_reading && (reading->hold || take_next(node)))
        done += step(node);
    if (reading->is_reading)
        return;
    if (reading->hold || done >= TURN_BYTES) {
        worker_set_timer(node->node.worker, &reading->turn, 0);
        return;
    }
    assert(!first_to_read(node));
    drop_reader(reading);
    trace_holders_catch_up(trace_table_holders(node->tail->table), held->listener);
}

void reread_profiles_init(struct tail_node *node, void (*wait_again)(struct held_profile *hold))
{
    node->profiles.rereading.wait_again = wait_again;
    node->profiles.rereading.queue.worker = node->node.worker;
    node->profiles.rereading.turn.on_timer = on_turn;
}

void reread_profiles_begin(struct tail_node *node)
{
    struct rereading_profiles *reading = &node->profiles.rereading;
    if (!reading->is_reading && !timer_is_set(&reading->turn))
        worker_set_timer(node->node.worker, &reading->turn, 0);
}

void reread_profiles_first(struct tail_node *node, struct held_profile *hold)
{
    struct held_profiles *held = &node->profiles;
    if (hold->reading == current_rules(node)->sample_reading)
        return;
    list_remove(&held->waiting, &hold->link);
    list_prepend(&held->waiting, &hold->link);
    trace_holders_fall_behind(trace_table_holders(node->tail->table), held->listener);
    reread_profiles_begin(node);
}

void reread_profiles_stop(struct tail_node *node)
{
    struct rereading_profiles *reading = &node->profiles.rereading;
    job_queue_stop(&reading->queue);
    worker_cancel_timer(node->node.worker, &reading->turn);
    if (reading->hold)
        list_append(&node->profiles.waiting, &reading->hold->link);
    reading->hold = NULL;
    drop_reader(reading);
}
