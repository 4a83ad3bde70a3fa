/*
 * example_processor: sets an attribute of every span and every sample that does not have it yet.
 *
 * It is not part of profcol: CONTRIBUTING.md copies and explains it.
 *
 * Owner: a node owns the batches that wait for a job (core/pipeline/large_batches.h).
 *
 * Thread: that of the node; `set_missing` also in a job.
 */
#include "core/pipeline/component_as.h"
#include "core/pipeline/items.h"
#include "core/pipeline/large_batches.h"

enum { VALUE_MAX = 64 };            /* bytes that an item may gain */
enum { LARGE_BYTES = 1024 * 1024 }; /* a batch of this size is changed in a job */

struct example_settings {
    const char *key;
    const char *value;
};

struct example_node {
    struct node node; /* first */
    struct large_batches batches;
    struct counter *changed;
};

extern const struct component_type example_processor_type;

static struct example_node *node_of(struct node *node)
{
    return node_as(struct example_node, node, &example_processor_type);
}

static const struct field example_fields[] = {
    FIELD_STRING(example_settings, key, "Key of the attribute.", .required = true),
    FIELD_STRING(example_settings, value, "Its value.", .fallback = "unknown"),
    FIELD_END,
};

/* Rules that the table cannot express. */
static void check_settings(void *config, struct config_check *check)
{
    const struct example_settings *settings = config;
    if (strlen(settings->value) > VALUE_MAX)
        config_check_error(check, "value", "value must not be longer than %d bytes", VALUE_MAX);
}

/* ---- batches ---- */

static uint32_t set_missing(struct batch *batch, struct slice key, struct slice value)
{
    struct items items = items_of(batch);
    struct slice present;
    uint32_t changed = 0;
    while (items_next(&items)) {
        if (item_get_attribute(&items, key, &present))
            continue;
        item_set_attribute(&items, key, value);
        changed++;
    }
    return changed;
}

/* Runs in a job if the batch is large: it touches nothing but the settings and the batch. */
static uint64_t change(struct node *node, struct batch *batch)
{
    const struct example_settings *settings = node->component->settings;
    struct any_value text = any_value_string(slice_of_string(settings->value));
    struct slice value = any_value_encode(&batch->arena, text);
    return set_missing(batch, slice_of_string(settings->key), value);
}

static void count_and_forward(struct node *node, struct batch *batch, uint64_t changed)
{
    counter_add(node_of(node)->changed, node->worker->index, changed);
    node_forward(node, batch); /* takes over the batch, which must not be used any more */
}

static const struct batch_work changing = {
    .work = change, .forward = count_and_forward, .large_bytes = LARGE_BYTES};

static void example_consume(struct node *node, struct batch *batch)
{
    large_batches_add(&node_of(node)->batches, batch); /* takes it over, too */
}

/* ---- start and stop ---- */

static bool example_node_start(struct node *node, struct error *err)
{
    (void)err;
    struct example_node *example = node_of(node);
    struct text name = {0}, labels = {0};
    large_batches_init(&example->batches, node, &changing);
    text_printf(&name, "profcol_example_changed_%s", signal_item_name(node->signal));
    metrics_label(&labels, "processor", node->component->id);
    example->changed =
        metrics_counter(node->component->process->metrics, text_string(&name),
                        "Items that were given the attribute.", text_string(&labels));
    text_deinit(&name);
    text_deinit(&labels);
    return true;
}

static bool example_is_idle(const struct node *node)
{
    return large_batches_is_empty(
        &node_as(const struct example_node, node, &example_processor_type)->batches);
}

static void example_node_stop(struct node *node)
{
    large_batches_stop(&node_of(node)->batches);
}

const struct component_type example_processor_type = {
    .config =
        {
            .name = "example",
            .section = CONFIG_PROCESSORS,
            .stability = {[CONFIG_TRACES] = STABILITY_DEVELOPMENT,
                          [CONFIG_PROFILES] = STABILITY_DEVELOPMENT},
            .help = "Sets an attribute of every span and sample that does not have it.",
            .fields = example_fields,
            .config_size = sizeof(struct example_settings),
            .check = check_settings,
        },
    .component_size = sizeof(struct component),
    .node_size = sizeof(struct example_node),
    .node_start = example_node_start,
    .consume = example_consume,
    .is_idle = example_is_idle,
    .node_stop = example_node_stop,
};
