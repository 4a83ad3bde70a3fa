/*
 * resource_processor: edits the attributes of resources, in traces and in profiles.
 *
 * It is the Collector's `resource` processor: a list of actions
 * (core/pipeline/attribute_actions.h). A resource that the actions do not change keeps its received
 * bytes.
 *
 * Owner: each node has an editor, and the batches that wait for a job (large_batches.h).
 *
 * Thread: that of the node; the editor also in a job, for one batch at a time.
 */
#include "core/pipeline/attribute_actions.h"
#include "core/pipeline/component_as.h"
#include "core/pipeline/large_batches.h"

/* A batch of this size or more is edited by a job. That of profiles may be pruned. To match a
 * pattern with an attribute takes up to 1.6 ms (MATCH_LIMIT), which is 100 times as long as to set
 * one. */
enum {
    LARGE_BYTES = 1024 * 1024,
    LARGE_PROFILES_BYTES = 256 * 1024,
    LARGE_TO_MATCH_BYTES = 16 * 1024
};

struct resource_settings {
    struct config_list attributes;
};

struct resource_node {
    struct node node;
    struct attribute_editor *editor;
    bool took_away; /* something of a resource of this batch */
    struct large_batches batches;
};

extern const struct component_type resource_processor_type;

static struct resource_node *node_of(struct node *node)
{
    return node_as(struct resource_node, node, &resource_processor_type);
}

static const struct field resource_fields[] = {
    FIELD_LIST(resource_settings, attributes, attribute_action, attribute_action_fields,
               "What to do with attributes of resources, in this order."),
    FIELD_END,
};

static void check_settings(void *config, struct config_check *check)
{
    struct resource_settings *settings = config;
    if (settings->attributes.count == 0)
        config_check_error(check, "", "missing required field \"attributes\"");
    attribute_actions_check(&settings->attributes, check, "attributes");
}

static void edit(struct resource_node *node, struct message *resource, struct batch *batch)
{
    struct message_iter it = message_iter(resource, &batch->arena);
    if (!attribute_editor_apply(node->editor, it, RESOURCE_ATTRIBUTES))
        return;
    node->took_away |= attribute_editor_took_away(node->editor);
    attribute_editor_write(node->editor, resource, RESOURCE_ATTRIBUTES);
}

/* Gives a group without a resource one, if the actions add an attribute to it. */
static void edit_missing_resource(struct resource_node *node, struct message *group,
                                  struct batch *batch)
{
    struct message resource;
    message_init(&resource, (struct slice){0});
    edit(node, &resource, batch);
    size_t size = message_measure(&resource);
    if (size == 0)
        return;
    uint8_t *field = arena_alloc(&batch->arena, wire_size_bytes(GROUP_RESOURCE, size));
    uint8_t *end = message_write(&resource, wire_write_header(field, GROUP_RESOURCE, size));
    message_append(group, &batch->arena, slice_of(field, (size_t)(end - field)));
}

/* The groups of all signals have their resource in the same field. */
static void edit_group(struct resource_node *node, struct message *group, struct batch *batch)
{
    struct message_iter it = message_iter(group, &batch->arena);
    struct message_field field;
    if (message_next_bytes(&it, GROUP_RESOURCE, &field)) {
        edit(node, message_open(&it, &field), batch);
        return;
    }
    edit_missing_resource(node, group, batch);
}

static void edit_part(struct resource_node *node, struct message *root, struct batch *batch)
{
    struct message_iter it = message_iter(root, &batch->arena);
    struct message_field field;
    while (message_next_bytes(&it, REQUEST_GROUPS, &field))
        edit_group(node, message_open(&it, &field), batch);
}

static uint64_t edit_batch(struct node *node, struct batch *batch)
{
    struct resource_node *editing = node_of(node);
    attribute_editor_begin(editing->editor, &batch->arena, batch->context);
    editing->took_away = false;
    for (size_t i = 0; i < batch->part_count; i++)
        edit_part(editing, &batch->parts[i].root, batch);
    if (editing->took_away)
        batch_prune(batch); /* the dictionary may have it, too: attributes by reference */
    return 0;               /* nothing is counted */
}

static const struct batch_work edit_work = {.work = edit_batch, .large_bytes = LARGE_BYTES};
static const struct batch_work profiles_work = {.work = edit_batch,
                                                .large_bytes = LARGE_PROFILES_BYTES};
static const struct batch_work match_work = {.work = edit_batch,
                                             .large_bytes = LARGE_TO_MATCH_BYTES};

static void resource_consume(struct node *node, struct batch *batch)
{
    large_batches_add(&node_of(node)->batches, batch);
}

static bool has_pattern(const struct resource_settings *settings)
{
    const struct attribute_action *actions = settings->attributes.items;
    for (size_t i = 0; i < settings->attributes.count; i++)
        if (actions[i].compiled)
            return true;
    return false;
}

static bool resource_node_start(struct node *node, struct error *err)
{
    (void)err;
    const struct resource_settings *settings = node->component->settings;
    const struct batch_work *work = node->signal == SIGNAL_PROFILES ? &profiles_work : &edit_work;
    node_of(node)->editor = attribute_editor_new(&settings->attributes);
    large_batches_init(&node_of(node)->batches, node, has_pattern(settings) ? &match_work : work);
    return true;
}

static bool resource_is_idle(const struct node *node)
{
    return large_batches_is_empty(
        &node_as(const struct resource_node, node, &resource_processor_type)->batches);
}

static void resource_node_stop(struct node *node)
{
    large_batches_stop(&node_of(node)->batches);
    attribute_editor_free(node_of(node)->editor);
}

const struct component_type resource_processor_type = {
    .config =
        {
            .name = "resource",
            .section = CONFIG_PROCESSORS,
            .stability = {[CONFIG_TRACES] = STABILITY_BETA,
                          [CONFIG_PROFILES] = STABILITY_DEVELOPMENT,
                          [CONFIG_METRICS] = STABILITY_ALPHA,
                          [CONFIG_LOGS] = STABILITY_ALPHA},
            .help = "Sets, deletes, hashes, extracts and converts attributes of resources.",
            .fields = resource_fields,
            .config_size = sizeof(struct resource_settings),
            .check = check_settings,
            .checks_despite_mistakes = true,
        },
    .component_size = sizeof(struct component),
    .node_size = sizeof(struct resource_node),
    .node_start = resource_node_start,
    .consume = resource_consume,
    .passes_empty = true,
    .is_idle = resource_is_idle,
    .node_stop = resource_node_stop,
};
