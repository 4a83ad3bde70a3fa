/*
 * tail_sampling: keeps traces by what is in them, when they are complete.
 *
 * Like the Collector's processor of the same name. A trace waits for decision_wait; then the
 * policies decide by what was seen of its spans (trace_reader.h) whether they are sent on. There is
 * one decision for each trace of the process (trace_table.h).
 *
 * Owner: tail_sampling.h.
 *
 * Thread: each node on its worker; large requests are read in a job.
 */
#include "config/diff.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/pipeline/outlet.h"
#include "processors/tail_sampling/held_profiles.h"
#include "processors/tail_sampling/held_traces.h"
#include "processors/tail_sampling/tail_fields.h"

#include <assert.h>

enum {
    LARGE_BYTES = 256 * 1024, /* a request of this size is read in a job */
    DEFAULT_HELD_MIB = 64,    /* without a limit on the memory for requests */
};

#define RETRY_AFTER_NS INT64_C(1000000000)

static struct tail *tail_of(struct component *component)
{
    return component_as(struct tail, component, &tail_sampling_processor_type);
}

/* ---- refusals and losses ---- */

void tail_refuse_full(struct tail_node *node, struct batch *batch)
{
    struct verdict verdict =
        verdict_try_later(GRPC_UNAVAILABLE, RETRY_AFTER_NS,
                          "%s: max_held_mib is reached, and the next component accepts nothing",
                          node->node.component->id);
    node_refuse(&node->node, batch, REFUSED_FULL, &verdict);
}

void tail_refuse_at_stop(struct tail_node *node, struct batch *batch)
{
    if (!batch->receipt) /* with one, whoever gets it back sends it again or counts it */
        atomic_fetch_add(&node->node.component->process->lost_items, batch->items);
    node_refuse(&node->node, batch, REFUSED_FAILED, &verdict_shutting_down);
}

void tail_count_refused(struct tail_node *node, const struct verdict *verdict, uint32_t items)
{
    if (verdict_is_retryable(verdict)) { /* of acknowledged data only at the stop */
        node->lost += items;
        return;
    }
    counter_add(tail_metrics(node)->dropped_refused, node->node.worker->index, items);
    char error[VERDICT_ERROR_MAX];
    log_error(node->node.origin, "Held data is lost: the next component refused it.",
              LOG_TEXT("error", verdict_print(verdict, error)), LOG_U64("dropped_items", items));
}

void tail_count_stopped(struct tail_node *node, uint64_t items)
{
    if (items == 0)
        return;
    atomic_fetch_add(&node->node.component->process->lost_items, items);
    counter_add(tail_metrics(node)->dropped_stopped, node->node.worker->index, items);
    log_error(node->node.origin,
              "Held data is lost: it was not accepted before the end. Raise --drain-timeout.",
              LOG_U64("dropped_items", items));
}

/* ---- nodes ---- */

static void drop_reader(struct tail_node *node)
{
    trace_reader_deinit(&node->reader);
    tail_rules_unref(node->read_by);
    node->read_by = NULL;
}

/* Makes the reader anew if a reload has changed the rules. */
static void follow_rules(struct tail_node *node)
{
    struct tail_rules *rules =
        rules_book_ref_if_new(trace_table_rules(node->tail->table), node->read_by);
    if (!rules)
        return;
    drop_reader(node);
    node->read_by = rules;
    trace_reader_init(&node->reader, &rules->settings->plan, &rules->programs,
                      node->node.component->label);
}

static uint64_t read_batch(struct node *base, struct batch *batch)
{
    struct tail_node *node = tail_node_of(base);
    batch_flatten(batch);
    follow_rules(node);
    trace_reader_read(&node->reader, batch);
    return 0;
}

static void hold_batch(struct node *base, struct batch *batch, uint64_t result)
{
    struct tail_node *node = tail_node_of(base);
    (void)result;
    if (tail_reader_is_stale(node)) /* a reload came while a job has read it */
        large_batches_add(&node->arriving, batch);
    else
        held_traces_add(node, batch);
}

static const struct batch_work traces_work = {
    .work = read_batch, .forward = hold_batch, .large_bytes = LARGE_BYTES};
static const struct batch_work profiles_work = {
    .work = held_profiles_read, .forward = held_profiles_add, .large_bytes = LARGE_BYTES};

static void tail_consume(struct node *node, struct batch *batch)
{
    large_batches_add(&tail_node_of(node)->arriving, batch);
}

static bool tail_node_start(struct node *base, struct error *err)
{
    struct tail_node *node = tail_node_of(base);
    bool is_profiles = base->signal == SIGNAL_PROFILES;
    node->tail = tail_of(base->component);
    large_batches_init(&node->arriving, base, is_profiles ? &profiles_work : &traces_work);
    if (!is_profiles)
        follow_rules(node);
    if (is_profiles ? held_profiles_init(node) : held_traces_init(node))
        return true;
    return error_set(err, "is in too many pipelines");
}

static void tail_node_drain(struct node *base)
{
    if (base->signal == SIGNAL_PROFILES)
        held_profiles_drain(tail_node_of(base));
    else
        held_traces_drain(tail_node_of(base));
}

static bool tail_is_idle(const struct node *base)
{
    const struct tail_node *node =
        node_as(const struct tail_node, base, &tail_sampling_processor_type);
    return large_batches_is_empty(&node->arriving) &&
           (base->signal == SIGNAL_PROFILES ? held_profiles_are_idle(node)
                                            : held_traces_are_idle(node));
}

static void tail_node_stop(struct node *base)
{
    struct tail_node *node = tail_node_of(base);
    large_batches_stop(&node->arriving);
    if (base->signal == SIGNAL_PROFILES) {
        held_profiles_stop(node);
        return;
    }
    held_traces_stop(node);
    drop_reader(node);
}

/* ---- the component ---- */

static double read_count(void *context)
{
    return (double)trace_table_count(((const struct tail *)context)->table);
}

static double read_held(void *context)
{
    const struct tail *tail = context;
    size_t used = 0;
    for (int signal = 0; signal < SIGNAL_OPENED_COUNT; signal++)
        used += budget_used(&tail->held[signal]);
    return (double)used;
}

static void make_gauges(struct tail *tail)
{
    struct metrics *metrics = tail->component.process->metrics;
    struct text labels = {0};
    metrics_label(&labels, "processor", tail->component.id);
    metrics_gauge_from(
        metrics, METRICS_COLLECTOR "processor_tail_sampling_sampling_traces_on_memory",
        "Traces that are known, decided ones included.", text_string(&labels), read_count, tail);
    metrics_gauge_from(metrics, METRICS_OWN "tail_sampling_held_bytes",
                       "Memory of the spans and profiles that wait.", text_string(&labels),
                       read_held, tail);
    text_deinit(&labels);
}

static const struct tail_settings *settings_of(const struct tail *tail)
{
    return trace_table_rules(tail->table)->current->settings;
}

static bool follows(const struct tail *tail, const struct tail_settings *settings)
{
    struct arena arena;
    arena_init(&arena, NULL);
    bool is_equal = !config_fields_differ(&arena, tail_fields, true, settings_of(tail), settings);
    arena_deinit(&arena);
    return is_equal;
}

/* A reload replaces a component if processors around it change. What is decided stays decided: with
 * equal settings, both use one table. */
static struct trace_table *make_table(struct tail *tail, struct error *err)
{
    struct component *component = &tail->component, *predecessor = component->predecessor;
    const struct tail *before = predecessor ? tail_of(predecessor) : NULL;
    if (before && follows(before, component->settings) &&
        trace_holders_room(trace_table_holders(before->table)) >= component->process->worker_count)
        return trace_table_ref(before->table);
    struct tail_rules *rules =
        tail_rules_new(component, component->settings, component->config, err);
    return rules ? trace_table_new(rules) : NULL;
}

/* Profiles, if there is a pipeline for them, get a quarter of the memory. */
static void limit_memory(struct tail *tail)
{
    const struct budget *budget = tail->component.process->budget;
    size_t limit = (size_t)settings_of(tail)->max_held_mib << 20;
    if (limit == 0)
        limit = budget && budget_limit(budget) ? budget_limit(budget) / 2
                                               : (size_t)DEFAULT_HELD_MIB << 20;
    bool has_profiles = tail->component.pipeline_count[SIGNAL_PROFILES] > 0;
    tail->held[SIGNAL_PROFILES].limit_bytes = limit / 4;
    tail->held[SIGNAL_TRACES].limit_bytes = has_profiles ? limit - limit / 4 : limit;
}

static bool tail_init(struct component *component, struct error *err)
{
    struct tail *tail = tail_of(component);
    for (int signal = 0; signal < SIGNAL_OPENED_COUNT; signal++)
        if (component->pipeline_count[signal] > 1)
            return error_set(err,
                             "is in %zu %s pipelines, but only one is allowed: a trace would be "
                             "counted once for each",
                             component->pipeline_count[signal], signal_name((enum signal)signal));
    tail->table = make_table(tail, err);
    if (!tail->table)
        return false;
    limit_memory(tail);
    make_gauges(tail);
    return true;
}

static void tail_update(struct component *component, const void *settings)
{
    struct tail *tail = tail_of(component);
    struct error err;
    struct tail_rules *rules = tail_rules_new(component, settings, component->pipelines, &err);
    assert(rules); /* they have been compiled while the configuration was checked */
    trace_table_follow(tail->table, rules);
    limit_memory(tail);
}

static void tail_take_over(struct component *component)
{
    struct tail *tail = tail_of(component);
    const struct tail *before = tail_of(component->predecessor);
    if (tail->table != before->table)
        trace_table_copy_decisions(tail->table, before->table);
}

static bool tail_uses_config(struct component *component, const struct config *config)
{
    return rules_book_uses(trace_table_rules(tail_of(component)->table), config);
}

static void tail_deinit(struct component *component)
{
    struct tail *tail = tail_of(component);
    metrics_forget(component->process->metrics, tail);
    trace_table_unref(tail->table);
}

const struct component_type tail_sampling_processor_type = {
    .config =
        {
            .name = "tail_sampling",
            .section = CONFIG_PROCESSORS,
            .stability = {[CONFIG_TRACES] = STABILITY_DEVELOPMENT,
                          [CONFIG_PROFILES] = STABILITY_DEVELOPMENT},
            .help = "Keeps traces by what is in them: each waits until it is complete, and then "
                    "the policies decide; and of profiles the samples of these traces. Put the "
                    "same id into a traces pipeline and a profiles pipeline.",
            .fields = tail_fields,
            .config_size = sizeof(struct tail_settings),
            .check = tail_check,
            .checks_despite_mistakes = true,
            .one_pipeline_per_signal = true,
        },
    .component_size = sizeof(struct tail),
    .init = tail_init,
    .deinit = tail_deinit,
    .update = tail_update,
    .take_over = tail_take_over,
    .uses_config = tail_uses_config,
    .node_size = sizeof(struct tail_node),
    .node_start = tail_node_start,
    .consume = tail_consume,
    .holds = true,
    .node_drain = tail_node_drain,
    .is_idle = tail_is_idle,
    .node_stop = tail_node_stop,
};
