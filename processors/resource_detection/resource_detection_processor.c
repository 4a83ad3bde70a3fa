/*
 * resource_detection: adds attributes of the host and of the cloud that profcol runs in to every
 * resource, like the Collector's processor of that name.
 *
 * The detectors run at the start, on worker 0, and the start waits for them as long as `timeout`
 * says. With refresh_interval they run again later; a result that differs replaces the one before.
 * What is found is merged and encoded once; a request is changed only where it lacks something
 * (resource_edit.h). The Resource is the same message in all signals, so this code does not ask
 * which it is.
 *
 * Owner: the component has a reference to the newest result, and each node one to that which it
 * uses. The first node of worker 0 repeats the detection.
 *
 * Thread: `init` waits on main; a node is on its worker. `newest` is behind a lock, which a node
 * takes only when `version` says that there is a new one.
 */
#include "core/base/log.h"
#include "core/pipeline/component_as.h"
#include "processors/resource_detection/detection.h"
#include "processors/resource_detection/resource_edit.h"

#include <assert.h>

struct resource_detection {
    struct component component;
    pthread_mutex_t lock;
    struct detected *newest; /* a reference */
    atomic_uint version;     /* changes with `newest` */
    struct node *refreshing; /* the node that repeats the detection; set on worker 0 */
};

struct resource_detection_node {
    struct node node;
    struct detected *detected; /* a reference */
    unsigned version;
    struct resource_edit edit;
    struct timer refresh;
    struct detection detection; /* of the refresh */
};

extern const struct component_type resource_detection_processor_type;

static struct resource_detection *component_of(struct component *component)
{
    return component_as(struct resource_detection, component, &resource_detection_processor_type);
}

static struct resource_detection_node *node_of(struct node *node)
{
    return node_as(struct resource_detection_node, node, &resource_detection_processor_type);
}

static const struct resource_detection_settings *settings_of(const struct component *component)
{
    return component->settings;
}

/* ---- the newest result ---- */

static void publish(struct resource_detection *component, struct detected *detected)
{
    pthread_mutex_lock(&component->lock);
    struct detected *before = component->newest;
    assert(detected->fields.data || detected->count == 0); /* it is encoded */
    bool is_same = before && detected_equal(before, detected);
    if (!is_same) {
        component->newest = detected_ref(detected);
        atomic_fetch_add_explicit(&component->version, 1, memory_order_release);
    }
    pthread_mutex_unlock(&component->lock);
    if (!is_same)
        detected_unref(before);
}

static void take_newest(struct resource_detection_node *node)
{
    struct resource_detection *component = component_of(node->node.component);
    struct detected *before = node->detected;
    pthread_mutex_lock(&component->lock);
    assert(component->newest); /* since init */
    node->detected = detected_ref(component->newest);
    node->version = atomic_load_explicit(&component->version, memory_order_relaxed);
    pthread_mutex_unlock(&component->lock);
    detected_unref(before);
    node->edit.detected = node->detected;
}

/* ---- requests ---- */

static void resource_detection_consume(struct node *node, struct batch *batch)
{
    struct resource_detection_node *detecting = node_of(node);
    struct resource_detection *component = component_of(node->component);
    if (atomic_load_explicit(&component->version, memory_order_acquire) != detecting->version)
        take_newest(detecting);
    if (!detected_is_empty(detecting->detected)) {
        resource_edit_begin(&detecting->edit, &batch->arena);
        for (size_t i = 0; i < batch->part_count; i++)
            resource_edit_apply(&detecting->edit, &batch->parts[i].root);
    }
    node_forward(node, batch);
}

/* ---- the detection at the start ---- */

struct first_detection {
    struct detection detection; /* first, for on_first_done */
    uv_sem_t done;
};

static void on_first_done(struct detection *detection)
{
    uv_sem_post(&container_of(detection, struct first_detection, detection)->done);
}

static void run_start(void *context)
{
    detection_start(context);
}

static void run_stop(void *context)
{
    detection_stop(context);
}

/* Waits for worker 0. On a manual worker, the detection ends in the call. */
static void detect(struct first_detection *first)
{
    worker_call(first->detection.worker, run_start, &first->detection);
    uv_sem_wait(&first->done);
}

static bool resource_detection_init(struct component *component, struct error *err)
{
    struct resource_detection *self = component_of(component);
    struct first_detection first = {.detection = {.worker = &component->process->workers[0],
                                                  .settings = settings_of(component),
                                                  .label = component->label,
                                                  .on_done = on_first_done}};
    pthread_mutex_init(&self->lock, NULL);
    uv_sem_init(&first.done, 0);
    log_info(log_component(component->label), "began detecting resource information");
    detect(&first);
    assert(first.detection.is_done && first.detection.detected);
    bool fine = !first.detection.must_fail;
    if (fine)
        publish(self, first.detection.detected);
    else
        *err = first.detection.err;
    worker_call(first.detection.worker, run_stop, &first.detection);
    uv_sem_destroy(&first.done);
    if (!fine)
        pthread_mutex_destroy(&self->lock);
    return fine;
}

static void resource_detection_deinit(struct component *component)
{
    struct resource_detection *self = component_of(component);
    assert(!self->refreshing);
    detected_unref(self->newest);
    pthread_mutex_destroy(&self->lock);
}

/* ---- the detection later ---- */

static void set_refresh(struct resource_detection_node *node)
{
    const struct resource_detection_settings *settings = settings_of(node->node.component);
    worker_set_timer(node->node.worker, &node->refresh, (uint64_t)settings->refresh_interval);
}

/* A result that lacks something is taken only where there was none before. */
static void on_refreshed(struct detection *detection)
{
    struct resource_detection_node *node =
        container_of(detection, struct resource_detection_node, detection);
    struct resource_detection *component = component_of(node->node.component);
    assert(component->refreshing == &node->node && worker_is_current(node->node.worker));
    if (detection->has_failed && component->newest->count > 0)
        log_warn(log_component(component->component.label),
                 "resource refresh failed; keeping previous snapshot",
                 LOG_TEXT("error", detection->err.text));
    else
        publish(component, detection->detected);
    set_refresh(node);
}

static void on_refresh(struct timer *timer)
{
    struct resource_detection_node *node =
        container_of(timer, struct resource_detection_node, refresh);
    const struct component *component = node->node.component;
    detection_stop(&node->detection); /* frees the results of the one before */
    node->detection = (struct detection){.worker = node->node.worker,
                                         .settings = settings_of(component),
                                         .label = component->label,
                                         .on_done = on_refreshed};
    detection_start(&node->detection);
}

static bool resource_detection_node_start(struct node *node, struct error *err)
{
    struct resource_detection_node *detecting = node_of(node);
    struct resource_detection *component = component_of(node->component);
    const struct resource_detection_settings *settings = settings_of(node->component);
    (void)err;
    detecting->edit.override = settings->override;
    take_newest(detecting);
    if (node->worker->index > 0 || component->refreshing || settings->refresh_interval == 0)
        return true;
    component->refreshing = node;
    detecting->refresh.on_timer = on_refresh;
    set_refresh(detecting);
    return true;
}

static void resource_detection_node_stop(struct node *node)
{
    struct resource_detection_node *detecting = node_of(node);
    struct resource_detection *component = component_of(node->component);
    if (node->worker->index == 0 && component->refreshing == node) {
        worker_cancel_timer(node->worker, &detecting->refresh);
        detection_stop(&detecting->detection);
        component->refreshing = NULL;
    }
    detected_unref(detecting->detected);
    detecting->detected = NULL;
}

const struct component_type resource_detection_processor_type = {
    .config =
        {
            .name = "resource_detection",
            .alias = "resourcedetection",
            .section = CONFIG_PROCESSORS,
            .stability = {[CONFIG_TRACES] = STABILITY_BETA,
                          [CONFIG_PROFILES] = STABILITY_DEVELOPMENT,
                          [CONFIG_METRICS] = STABILITY_ALPHA,
                          [CONFIG_LOGS] = STABILITY_ALPHA},
            .help = "Adds attributes of the host and of the cloud that profcol runs in to "
                    "resources.",
            .fields = resource_detection_fields,
            .config_size = sizeof(struct resource_detection_settings),
            .check = resource_detection_check,
        },
    .component_size = sizeof(struct resource_detection),
    .init = resource_detection_init,
    .deinit = resource_detection_deinit,
    .node_size = sizeof(struct resource_detection_node),
    .node_start = resource_detection_node_start,
    .consume = resource_detection_consume,
    .passes_empty = true,
    .node_stop = resource_detection_node_stop,
};
