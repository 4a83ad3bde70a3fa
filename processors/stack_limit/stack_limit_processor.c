/*
 * stack_limit: keeps profiles small. It cuts deep stacks, and combines the stacks that matter
 * least, so that totals stay exact.
 *
 * Owner: a node owns the batches that wait for a job (large_batches.h).
 *
 * Thread: that of the node; `limit` also in a job, for one batch at a time.
 */
#include "core/pipeline/component_as.h"
#include "core/pipeline/large_batches.h"
#include "processors/stack_limit/limit_profiles.h"

enum { LARGE_BYTES = 1024 * 1024 }; /* a batch of this size is limited in a job */

/* ---- settings ---- */

static const struct field stack_limit_fields[] = {
    FIELD_UINT(
        profile_limits, max_depth,
        "Frames that a stack has at most, at least 2. Of a deeper one, those next to the "
        "leaf stay, and those at the root become one frame, `[truncated]`. A function that was "
        "inlined is a frame, but a location is not cut in two, and that of the leaf stays. 0: "
        "no limit.",
        .fallback = "64"),
    FIELD_UINT(profile_limits, max_profile_bytes,
               "Size of a profile with all that it refers to. If it is larger, its smallest stacks "
               "become one, `[other]`, as many as make it fit. Their attributes and timestamps "
               "stay. 0: no limit.",
               .fallback = "10485760"),
    FIELD_DOUBLE(profile_limits, min_share,
                 "Share of a profile's total, from 0 to 1, below which a stack becomes part of "
                 "`[other]`. 0: none does.",
                 .fallback = "0"),
    FIELD_END,
};

static void check_settings(void *config, struct config_check *check)
{
    const struct profile_limits *settings = config;
    if (settings->max_depth == 1)
        config_check_error(check, "max_depth", "must be at least 2: a frame and `[truncated]`");
    if (!(settings->min_share >= 0 && settings->min_share < 1))
        config_check_error(check, "min_share", "must be a share of the total, from 0 to below 1");
}

/* ---- nodes ---- */

struct stack_limit_node {
    struct node node; /* first */
    struct large_batches batches;
    struct limited_samples samples; /* of the batch that is forwarded next */
    struct counter *truncated, *below_share, *beyond_size;
};

extern const struct component_type stack_limit_processor_type;

static struct stack_limit_node *node_of(struct node *node)
{
    return node_as(struct stack_limit_node, node, &stack_limit_processor_type);
}

static uint64_t limit(struct node *node, struct batch *batch)
{
    node_of(node)->samples = limit_profiles(batch, node->component->settings);
    return 0;
}

static void count_and_forward(struct node *node, struct batch *batch, uint64_t result)
{
    struct stack_limit_node *limit = node_of(node);
    unsigned worker = node->worker->index;
    (void)result;
    counter_add(limit->truncated, worker, limit->samples.truncated);
    counter_add(limit->below_share, worker, limit->samples.below_share);
    counter_add(limit->beyond_size, worker, limit->samples.beyond_size);
    node_forward(node, batch);
}

static const struct batch_work limit_work = {
    .work = limit, .forward = count_and_forward, .large_bytes = LARGE_BYTES};

static void stack_limit_consume(struct node *node, struct batch *batch)
{
    large_batches_add(&node_of(node)->batches, batch);
}

/* ---- start and stop ---- */

static struct counter *new_counter(const struct node *node, const char *name, const char *help,
                                   const char *limit)
{
    struct text labels = {0};
    metrics_label(&labels, "processor", node->component->id);
    if (limit)
        metrics_label(&labels, "limit", limit);
    struct counter *counter =
        metrics_counter(node->component->process->metrics, name, help, text_string(&labels));
    text_deinit(&labels);
    return counter;
}

static bool stack_limit_node_start(struct node *node, struct error *err)
{
    static const char folded[] = "profcol_stack_limit_folded_samples";
    static const char help[] = "Samples that became part of `[other]`.";
    struct stack_limit_node *limit = node_of(node);
    (void)err;
    limit->truncated = new_counter(node, "profcol_stack_limit_truncated_samples",
                                   "Samples whose stack was cut.", NULL);
    limit->below_share = new_counter(node, folded, help, "min_share");
    limit->beyond_size = new_counter(node, folded, help, "max_profile_bytes");
    large_batches_init(&limit->batches, node, &limit_work);
    return true;
}

static bool stack_limit_is_idle(const struct node *node)
{
    return large_batches_is_empty(
        &node_as(const struct stack_limit_node, node, &stack_limit_processor_type)->batches);
}

static void stack_limit_node_stop(struct node *node)
{
    large_batches_stop(&node_of(node)->batches);
}

const struct component_type stack_limit_processor_type = {
    .config =
        {
            .name = "stack_limit",
            .section = CONFIG_PROCESSORS,
            .stability = {[CONFIG_PROFILES] = STABILITY_DEVELOPMENT},
            .help = "Cuts deep stacks, and combines the smallest stacks of large profiles; totals "
                    "stay exact.",
            .fields = stack_limit_fields,
            .config_size = sizeof(struct profile_limits),
            .check = check_settings,
        },
    .component_size = sizeof(struct component),
    .node_size = sizeof(struct stack_limit_node),
    .node_start = stack_limit_node_start,
    .consume = stack_limit_consume,
    .is_idle = stack_limit_is_idle,
    .node_stop = stack_limit_node_stop,
};
