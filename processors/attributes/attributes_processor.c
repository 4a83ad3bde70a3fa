/*
 * attributes_processor: edits the attributes of spans, and of profile samples.
 *
 * It is the Collector's `attributes` processor: a list of actions
 * (core/pipeline/attribute_actions.h), for the items that `include` and `exclude` choose. A span or
 * sample that the actions do not change keeps its received bytes.
 *
 * Owner: each node has an editor, matchers, and the batches that wait for a job (large_batches.h).
 *
 * Thread: that of the node; editor and matchers also in a job, for one batch at a time.
 */
#include "core/pipeline/attribute_actions.h"
#include "core/pipeline/component_as.h"
#include "core/pipeline/large_batches.h"
#include "processors/attributes/item_match.h"

#include <stdlib.h>

/* A batch of this size or more is edited by a job; one whose texts are searched for patterns
 * earlier, because a match can take a hundred times as long as an edit. */
enum { LARGE_BYTES = 256 * 1024, LARGE_TO_MATCH_BYTES = 16 * 1024 };

struct attributes_settings {
    struct config_list actions;
    struct match_settings include;
    struct match_settings exclude;
};

struct attributes_node {
    struct node node;
    struct attribute_editor *editor;
    struct item_matcher *include; /* NULL: all */
    struct item_matcher *exclude; /* NULL: none */
    struct large_batches batches;
};

extern const struct component_type attributes_processor_type;

static struct attributes_node *node_of(struct node *node)
{
    return node_as(struct attributes_node, node, &attributes_processor_type);
}

static const struct field attributes_fields[] = {
    FIELD_LIST(attributes_settings, actions, attribute_action, attribute_action_fields,
               "What to do with attributes of spans or samples, in this order."),
    FIELD_OPTIONAL(attributes_settings, include, match_settings, match_fields,
                   "Only spans or samples with all of these properties are changed. Of services, "
                   "span_names, span_kinds and libraries, one entry must match, of attributes and "
                   "resources all."),
    FIELD_OPTIONAL(attributes_settings, exclude, match_settings, match_fields,
                   "Spans or samples with all of these properties are not changed, even if include "
                   "chooses them."),
    FIELD_END,
};

static void check_settings(void *config, struct config_check *check)
{
    struct attributes_settings *settings = config;
    if (settings->actions.count == 0)
        config_check_error(check, "", "missing required field \"actions\"");
    attribute_actions_check(&settings->actions, check, "actions");
    if (settings->include.enabled)
        item_match_check(&settings->include, check, "include");
    if (settings->exclude.enabled)
        item_match_check(&settings->exclude, check, "exclude");
}

/* ---- one batch ---- */

/* If a pattern needs too many steps for an item, the item is changed: what deletes or hashes must
 * not be avoidable by a text that a client chooses. */
static bool is_chosen(struct attributes_node *node, struct items *items)
{
    return (!node->include || item_matcher_matches(node->include, items, true)) &&
           (!node->exclude || !item_matcher_matches(node->exclude, items, false));
}

static bool edit_item(struct attributes_node *node, struct items *items)
{
    if (items->batch->signal == SIGNAL_PROFILES)
        return attribute_editor_apply_to_sample(node->editor, items);
    if (!attribute_editor_apply(node->editor, item_read(items), SPAN_ATTRIBUTES))
        return false;
    attribute_editor_write(node->editor, item_open(items), SPAN_ATTRIBUTES);
    return true;
}

static uint64_t edit_batch(struct node *node, struct batch *batch)
{
    struct attributes_node *editing = node_of(node);
    struct items items = items_of(batch);
    bool changes = false;
    attribute_editor_begin(editing->editor, &batch->arena, batch->context);
    if (editing->include)
        item_matcher_begin(editing->include, batch);
    if (editing->exclude)
        item_matcher_begin(editing->exclude, batch);
    while (items_next(&items))
        if (is_chosen(editing, &items))
            changes |= edit_item(editing, &items);
    const struct attributes_settings *settings = node->component->settings;
    if (changes && batch->signal == SIGNAL_PROFILES &&
        attribute_actions_take_away(&settings->actions))
        batch_prune(batch);
    return changes;
}

static const struct batch_work edit_work = {.work = edit_batch, .large_bytes = LARGE_BYTES};
static const struct batch_work match_work = {.work = edit_batch,
                                             .large_bytes = LARGE_TO_MATCH_BYTES};

static void attributes_consume(struct node *node, struct batch *batch)
{
    const struct attributes_settings *settings = node->component->settings;
    size_t bytes = attribute_actions_context_bytes(&settings->actions, batch->context);
    if (bytes > 0 && batch->items > items_values_room(batch) / bytes) {
        struct verdict verdict = verdict_of(GRPC_RESOURCE_EXHAUSTED,
                                            "%s: a header of %zu bytes cannot be copied into %u %s",
                                            node->component->label, bytes, (unsigned)batch->items,
                                            batch->signal == SIGNAL_PROFILES ? "samples" : "spans");
        node_refuse(node, batch, REFUSED_FAILED, &verdict);
        return;
    }
    large_batches_add(&node_of(node)->batches, batch);
}

/* ---- start and stop ---- */

static bool has_pattern(const struct attributes_settings *settings)
{
    const struct attribute_action *actions = settings->actions.items;
    for (size_t i = 0; i < settings->actions.count; i++)
        if (actions[i].compiled)
            return true;
    return settings->include.enabled || settings->exclude.enabled;
}

static bool attributes_node_start(struct node *node, struct error *err)
{
    (void)err;
    const struct attributes_settings *settings = node->component->settings;
    struct attributes_node *starting = node_of(node);
    starting->editor = attribute_editor_new(&settings->actions);
    if (settings->include.enabled)
        starting->include = item_matcher_new(&settings->include);
    if (settings->exclude.enabled)
        starting->exclude = item_matcher_new(&settings->exclude);
    large_batches_init(&starting->batches, node, has_pattern(settings) ? &match_work : &edit_work);
    return true;
}

static bool attributes_is_idle(const struct node *node)
{
    return large_batches_is_empty(
        &node_as(const struct attributes_node, node, &attributes_processor_type)->batches);
}

static void attributes_node_stop(struct node *node)
{
    large_batches_stop(&node_of(node)->batches);
    attribute_editor_free(node_of(node)->editor);
    item_matcher_free(node_of(node)->include);
    item_matcher_free(node_of(node)->exclude);
}

const struct component_type attributes_processor_type = {
    .config =
        {
            .name = "attributes",
            .section = CONFIG_PROCESSORS,
            .stability =
                {[CONFIG_TRACES] = STABILITY_BETA, [CONFIG_PROFILES] = STABILITY_DEVELOPMENT},
            .help = "Sets, deletes, hashes, extracts and converts attributes of spans and samples.",
            .fields = attributes_fields,
            .config_size = sizeof(struct attributes_settings),
            .check = check_settings,
            .checks_despite_mistakes = true,
        },
    .component_size = sizeof(struct component),
    .node_size = sizeof(struct attributes_node),
    .node_start = attributes_node_start,
    .consume = attributes_consume,
    .is_idle = attributes_is_idle,
    .node_stop = attributes_node_stop,
};
