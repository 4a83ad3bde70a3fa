/*
 * resource_processor: edits the attributes of resources, in traces and in profiles.
 *
 * It is the Collector's `resource` processor: a list of actions
 * (core/pipeline/attribute_actions.h). A resource that the actions do not change keeps its received
 * bytes.
 *
 * Owner: each node has an editor; nothing is kept of a batch.
 *
 * Thread: that of the node.
 */
#include "core/pipeline/attribute_actions.h"
#include "core/pipeline/component_as.h"

struct resource_settings {
    struct config_list attributes;
};

struct resource_node {
    struct node node;
    struct attribute_editor *editor;
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

/* Gives a group without a resource one, if the actions add an attribute to it. */
static void edit_missing_resource(struct resource_node *node, struct message *group,
                                  struct batch *batch)
{
    struct message resource;
    message_init(&resource, (struct slice){0});
    attribute_editor_apply(node->editor, &resource, RESOURCE_ATTRIBUTES, &batch->arena,
                           batch->context);
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
        attribute_editor_apply(node->editor, message_open(&it, &field), RESOURCE_ATTRIBUTES,
                               &batch->arena, batch->context);
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

static void resource_consume(struct node *node, struct batch *batch)
{
    struct resource_node *editing = node_of(node);
    for (size_t i = 0; i < batch->part_count; i++)
        edit_part(editing, &batch->parts[i].root, batch);
    node_forward(node, batch);
}

static bool resource_node_start(struct node *node, struct error *err)
{
    (void)err;
    const struct resource_settings *settings = node->component->settings;
    node_of(node)->editor = attribute_editor_new(&settings->attributes);
    return true;
}

static void resource_node_stop(struct node *node)
{
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
        },
    .component_size = sizeof(struct component),
    .node_size = sizeof(struct resource_node),
    .node_start = resource_node_start,
    .consume = resource_consume,
    .node_stop = resource_node_stop,
};
