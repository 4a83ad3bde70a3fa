#include "processors/tail_sampling/reread_profiles.h"

#include "core/base/container_of.h"
#include "processors/tail_sampling/reread_turns.h"

/* ---- the reader ---- */

static void init_reader(struct tail_node *node)
{
    struct rereading_profiles *reading = &node->profiles.rereading;
    profile_reader_init(&reading->reader, &reading->turns.rules->settings->plan,
                        &reading->turns.rules->programs, node->node.component->label);
}

static void deinit_reader(struct tail_node *node)
{
    profile_reader_deinit(&node->profiles.rereading.reader);
}

static void read_request(struct tail_node *node)
{
    struct rereading_profiles *reading = &node->profiles.rereading;
    profile_reader_read(&reading->reader, reading->hold->batch);
}

/* ---- one request ---- */

static struct held_profile *first_to_read(struct tail_node *node)
{
    struct list_link *first = node->profiles.waiting.first;
    struct held_profile *hold = first ? container_of(first, struct held_profile, link) : NULL;
    const struct tail_rules *rules = tail_rules(node);
    bool is_read =
        !hold || !rules->settings->plan.reads_samples || hold->reading == rules->sample_reading;
    return is_read ? NULL : hold;
}

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

static size_t bytes_of_taken(struct tail_node *node)
{
    return batch_memory(node->profiles.rereading.hold->batch);
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

static bool tell_table(struct tail_node *node)
{
    struct rereading_profiles *reading = &node->profiles.rereading;
    struct reread_turns *turns = &reading->turns;
    uint32_t count = turns->rules->settings->plan.reads_samples ? reading->reader.trace_count : 0;
    for (int n = 0; n < TRACES_PER_TURN && turns->next < count; n++)
        tell_trace(node, turns->next++);
    return turns->next >= count;
}

static void end_request(struct tail_node *node)
{
    struct rereading_profiles *reading = &node->profiles.rereading;
    const struct tail_rules *rules = reading->turns.rules;
    struct held_profile *hold = reading->hold;
    hold->reading = rules->sample_reading;
    if (rules->settings->plan.reads_samples)
        hold->counted = ALL_COUNTED;
    profile_reader_clear(&reading->reader);
    reading->hold = NULL;
    reading->wait_again(hold);
}

static void catch_up(struct tail_node *node)
{
    trace_holders_catch_up(trace_table_holders(node->tail->table), node->profiles.listener);
}

void reread_profiles_init(struct tail_node *node, void (*wait_again)(struct held_profile *hold))
{
    static const struct reread_steps steps = {
        .take_next = take_next,
        .bytes_of_taken = bytes_of_taken,
        .init_reader = init_reader,
        .deinit_reader = deinit_reader,
        .read = read_request,
        .tell_table = tell_table,
        .end_request = end_request,
        .catch_up = catch_up,
    };
    node->profiles.rereading.wait_again = wait_again;
    reread_turns_init(&node->profiles.rereading.turns, node, &steps);
}

void reread_profiles_begin(struct tail_node *node)
{
    reread_turns_begin(&node->profiles.rereading.turns);
}

void reread_profiles_first(struct tail_node *node, struct held_profile *hold)
{
    struct held_profiles *held = &node->profiles;
    if (hold->reading == tail_rules(node)->sample_reading)
        return;
    list_remove(&held->waiting, &hold->link);
    list_prepend(&held->waiting, &hold->link);
    trace_holders_fall_behind(trace_table_holders(node->tail->table), held->listener);
    reread_profiles_begin(node);
}

void reread_profiles_stop(struct tail_node *node)
{
    struct rereading_profiles *reading = &node->profiles.rereading;
    reread_turns_stop(&reading->turns);
    if (reading->hold)
        list_append(&node->profiles.waiting, &reading->hold->link);
    reading->hold = NULL;
}
