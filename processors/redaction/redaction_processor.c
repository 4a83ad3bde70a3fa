/*
 * redaction_processor: removes attributes, masks values, and hides names of functions, files and
 * mappings.
 *
 * It is the Collector's `redaction` processor, for traces and profiles; of metrics and logs it sees
 * resources and scopes. `secret_words` is an addition.
 *
 * Owner: the component owns the rules; each node a redactor.
 *
 * Thread: that of each node; large batches are redacted in a job.
 */
#include "core/base/memory.h"
#include "core/pipeline/component_as.h"
#include "core/pipeline/large_batches.h"
#include "processors/redaction/redact_lists.h"
#include "processors/redaction/redact_profiles.h"

/* A pattern may take a microsecond for each attribute. Words alone take a fraction of a nanosecond
 * for each byte, less than handing the batch to another thread. */
enum { LARGE_BYTES = 64 << 10, LARGE_BYTES_OF_WORDS = 512 << 10 };

extern const struct component_type redaction_processor_type;

struct redaction_component {
    struct component component; /* first */
    struct redaction_rules *rules;
    struct counter *masked[REDACTION_KINDS];
    struct counter *removed;
    struct counter *gave_up;
};

struct redaction_node {
    struct node node; /* first */
    struct large_batches batches;
    struct redactor redactor;
    struct redact_lists lists;
};

static struct redaction_component *component_of(struct component *component)
{
    return component_as(struct redaction_component, component, &redaction_processor_type);
}

static struct redaction_node *node_of(struct node *node)
{
    return node_as(struct redaction_node, node, &redaction_processor_type);
}

/* ---- the component ---- */

static struct counter *make_counter(struct component *component, const char *name, const char *help,
                                    const char *kind)
{
    struct text labels = {0};
    metrics_label(&labels, "processor", component->id);
    if (kind)
        metrics_label(&labels, "kind", kind);
    struct counter *counter =
        metrics_counter(component->process->metrics, name, help, text_string(&labels));
    text_deinit(&labels);
    return counter;
}

static bool redaction_init(struct component *component, struct error *err)
{
    struct redaction_component *redaction = component_of(component);
    redaction->rules = redaction_rules_new(component->settings, err);
    if (!redaction->rules)
        return false;
    for (int i = 0; i < REDACTION_KINDS; i++)
        redaction->masked[i] = make_counter(
            component, METRICS_OWN "processor_redaction_masked",
            "Values and names that the processor redaction has masked, each entry of a dictionary "
            "once.",
            redaction_kind_names[i]);
    redaction->removed = make_counter(component, METRICS_OWN "processor_redaction_removed",
                                      "Attributes that the processor redaction has removed.", NULL);
    redaction->gave_up = make_counter(
        component, METRICS_OWN "processor_redaction_gave_up",
        "Values that the processor redaction has masked as a whole, because a pattern took too "
        "many steps, or the result would have been too large.",
        NULL);
    return true;
}

static void redaction_deinit(struct component *component)
{
    redaction_rules_free(component_of(component)->rules);
}

/* ---- nodes ---- */

static uint64_t redact_batch(struct node *node, struct batch *batch)
{
    struct redaction_node *redacting = node_of(node);
    redactor_begin(&redacting->redactor, batch);
    redact_lists_batch(&redacting->lists, batch);
    bool prunes = redacting->lists.changed;
    if (batch->signal == SIGNAL_PROFILES)
        prunes = redact_profiles_batch(&redacting->redactor, batch, prunes);
    if (prunes)
        batch_prune(batch); /* what was replaced must not leave in the dictionary or an original */
    return 0;               /* the redactor has the counts */
}

static void forward_redacted(struct node *node, struct batch *batch, uint64_t result)
{
    const struct redaction_component *redaction = component_of(node->component);
    const struct redactor *redactor = &node_of(node)->redactor;
    unsigned worker = node->worker->index;
    (void)result;
    for (int i = 0; i < REDACTION_KINDS; i++)
        if (redactor->masked[i] > 0)
            counter_add(redaction->masked[i], worker, redactor->masked[i]);
    if (redactor->removed > 0)
        counter_add(redaction->removed, worker, redactor->removed);
    if (redactor->gave_up > 0)
        counter_add(redaction->gave_up, worker, redactor->gave_up);
    node_forward(node, batch);
}

static const struct batch_work redaction_work = {
    .work = redact_batch, .forward = forward_redacted, .large_bytes = LARGE_BYTES};
static const struct batch_work words_work = {
    .work = redact_batch, .forward = forward_redacted, .large_bytes = LARGE_BYTES_OF_WORDS};

static bool has_patterns(const struct redaction_rules *rules)
{
    return rules->ignored_keys.texts->count > 0 || rules->blocked_keys.texts->count > 0 ||
           rules->blocked_values.texts->count > 0 || rules->allowed_values.texts->count > 0 ||
           rules->settings->url_sanitizer.enabled ||
           database_mask_is_enabled(&rules->settings->db_sanitizer);
}

static void redaction_consume(struct node *node, struct batch *batch)
{
    large_batches_add(&node_of(node)->batches, batch);
}

static bool redaction_node_start(struct node *node, struct error *err)
{
    struct redaction_node *starting = node_of(node);
    (void)err;
    const struct redaction_rules *rules = component_of(node->component)->rules;
    redactor_init(&starting->redactor, rules);
    starting->lists = (struct redact_lists){.redactor = &starting->redactor};
    large_batches_init(&starting->batches, node,
                       has_patterns(rules) ? &redaction_work : &words_work);
    return true;
}

static bool redaction_is_idle(const struct node *node)
{
    return large_batches_is_empty(
        &node_as(const struct redaction_node, node, &redaction_processor_type)->batches);
}

static void redaction_node_stop(struct node *node)
{
    large_batches_stop(&node_of(node)->batches);
    redactor_deinit(&node_of(node)->redactor);
}

const struct component_type redaction_processor_type = {
    .config =
        {
            .name = "redaction",
            .section = CONFIG_PROCESSORS,
            .stability = {[CONFIG_TRACES] = STABILITY_BETA,
                          [CONFIG_PROFILES] = STABILITY_DEVELOPMENT,
                          [CONFIG_METRICS] = STABILITY_DEVELOPMENT,
                          [CONFIG_LOGS] = STABILITY_DEVELOPMENT},
            .help = "Removes attributes, masks values, and hides names of functions, files and "
                    "mappings of profiles. Of metrics and logs, it redacts resources and scopes.",
            .fields = redaction_fields,
            .config_size = sizeof(struct redaction_settings),
            .check = redaction_check,
            .checks_despite_mistakes = true,
        },
    .component_size = sizeof(struct redaction_component),
    .init = redaction_init,
    .deinit = redaction_deinit,
    .node_size = sizeof(struct redaction_node),
    .node_start = redaction_node_start,
    .consume = redaction_consume,
    .is_idle = redaction_is_idle,
    .node_stop = redaction_node_stop,
};
