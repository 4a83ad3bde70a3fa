#include "core/pipeline/graph.h"

#include "config/connections.h"
#include "core/base/clock.h"
#include "core/base/container_of.h"
#include "core/base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <time.h>

/* Interval at which a draining worker checks whether it is done. */
#define DRAIN_POLL_NS UINT64_C(2000000)

/* The nodes on one worker. They are in the order in which data passes: receivers, then for each
 * level of pipelines the processors by their position and the connectors, exporters, extensions.
 * They are started from the end. */
struct worker_graph {
    struct graph *graph;
    struct worker *worker;
    struct node **nodes;
    size_t count;
    size_t *stage; /* stage of each node, ascending */
    struct timer drain_poll;
};

struct graph {
    const struct config *config;
    struct process *process;
    size_t *levels; /* of each pipeline: how many pipelines in a row lead to it */
    struct component **components;
    size_t component_count;
    bool components_ready; /* init was called for all components */
    struct worker_graph *workers;
    size_t started_workers;
    pthread_mutex_t lock;
    pthread_cond_t all_drained;
    size_t undrained_workers;
};

/* ---- running a function on a worker ---- */

struct call {
    void (*run)(struct call *call);
    struct worker_graph *target;
    struct error err;
    bool ok;
};

static void run_call(void *context)
{
    struct call *call = context;
    call->run(call);
}

static bool call_on_worker(struct worker_graph *target, void (*run)(struct call *call),
                           struct error *err)
{
    struct call call = {.run = run, .target = target, .ok = true};
    worker_call(target->worker, run_call, &call);
    if (!call.ok && err)
        *err = call.err;
    return call.ok;
}

/* ---- components ---- */

static struct component *find_component(const struct graph *graph,
                                        const struct config_component *configured)
{
    for (size_t i = 0; i < graph->component_count; i++)
        if (graph->components[i]->settings == configured->settings)
            return graph->components[i];
    return NULL;
}

/* Adds it in the order in which components are initialised: extensions first, receivers last, so
 * that no listener is bound before a processor is ready. */
static void insert_component(struct graph *graph, struct component *component)
{
    size_t at = graph->component_count++;
    graph->components =
        memory_grow(graph->components, graph->component_count, sizeof(struct component *));
    for (; at > 0 &&
           graph->components[at - 1]->type->config.section < component->type->config.section;
         at--)
        graph->components[at] = graph->components[at - 1];
    graph->components[at] = component;
}

static struct component *add_component(struct graph *graph,
                                       const struct config_component *configured)
{
    struct component *component = find_component(graph, configured);
    if (component)
        return component;
    const struct component_type *type = component_type_of(configured->type);
    assert(type->component_size == 0 || type->component_size >= sizeof(struct component));
    component = memory_zalloc(type->component_size ? type->component_size : sizeof *component);
    component->type = type;
    component->id = configured->id;
    component->settings = configured->settings;
    component->process = graph->process;
    component_status_set(&component->status, STATUS_STARTING, NULL);
    snprintf(component->label, sizeof component->label, "%s %s",
             config_section_kinds[type->config.section], configured->id);
    insert_component(graph, component);
    return component;
}

static void add_components(struct graph *graph, const struct config_component **list, size_t count,
                           enum signal signal)
{
    for (size_t i = 0; i < count; i++)
        add_component(graph, list[i])->pipeline_count[signal]++;
}

static enum signal signal_of(const struct config_pipeline *pipeline)
{
    _Static_assert(
        (int)CONFIG_TRACES == (int)SIGNAL_TRACES && (int)CONFIG_PROFILES == (int)SIGNAL_PROFILES &&
            (int)CONFIG_METRICS == (int)SIGNAL_METRICS && (int)CONFIG_LOGS == (int)SIGNAL_LOGS &&
            (int)CONFIG_SIGNAL_COUNT == (int)SIGNAL_COUNT,
        "the same order");
    return (enum signal)pipeline->signal;
}

static bool is_exporter(const struct component *component)
{
    return component->type->config.section == CONFIG_EXPORTERS;
}

static void collect_components(struct graph *graph)
{
    const struct config *config = graph->config;
    for (size_t i = 0; i < config->pipeline_count; i++) {
        const struct config_pipeline *pipeline = &config->pipelines[i];
        add_components(graph, pipeline->receivers, pipeline->receiver_count, signal_of(pipeline));
        add_components(graph, pipeline->processors, pipeline->processor_count, signal_of(pipeline));
        add_components(graph, pipeline->exporters, pipeline->exporter_count, signal_of(pipeline));
    }
    size_t others = graph->component_count;
    for (size_t i = 0; i < config->extension_count; i++)
        add_component(graph, config->extensions[i]);
    graph->process->extensions = graph->components; /* they come first; nothing is added later */
    graph->process->extension_count = graph->component_count - others;
}

static void deinit_components(struct graph *graph, size_t count)
{
    assert(count <= graph->component_count);
    while (count-- > 0)
        if (graph->components[count]->type->deinit)
            graph->components[count]->type->deinit(graph->components[count]);
}

static void prepare_components(struct graph *graph)
{
    for (size_t i = 0; i < graph->component_count; i++)
        if (graph->components[i]->type->prepare)
            graph->components[i]->type->prepare(graph->components[i]);
}

static bool init_components(struct graph *graph, struct error *err)
{
    assert(!graph->components_ready);
    for (size_t i = 0; i < graph->component_count; i++) {
        struct component *component = graph->components[i];
        if (component->type->init && !component->type->init(component, err)) {
            component_status_set(&component->status, STATUS_FATAL_ERROR, err->text);
            error_prefix(err, "%s", component->label);
            deinit_components(graph, i);
            return false;
        }
    }
    return true;
}

/* ---- nodes ---- */

static struct node *add_node(struct worker_graph *target, struct component *component,
                             enum signal signal, const char *pipeline, size_t stage)
{
    struct node *node = component_node_new(component, target->worker, signal, pipeline);
    size_t at = target->count;
    target->nodes = memory_grow(target->nodes, target->count + 1, sizeof(struct node *));
    target->stage = memory_grow(target->stage, target->count + 1, sizeof(size_t));
    /* Insert by stage, after nodes of the same stage. */
    for (; at > 0 && target->stage[at - 1] > stage; at--) {
        target->nodes[at] = target->nodes[at - 1];
        target->stage[at] = target->stage[at - 1];
    }
    assert(at == target->count || target->stage[at + 1] > stage);
    target->nodes[at] = node;
    target->stage[at] = stage;
    target->count++;
    return node;
}

static struct node *find_node(struct worker_graph *target, const struct component *component,
                              enum signal signal)
{
    for (size_t i = 0; i < target->count; i++)
        if (target->nodes[i]->component == component && !target->nodes[i]->pipeline &&
            target->nodes[i]->signal == signal)
            return target->nodes[i];
    return NULL;
}

/* ---- stages ---- */

enum {
    STAGE_RECEIVERS = 0,
    STAGE_PROCESSORS = 1,
    STAGES_OF_LEVEL = 1 << 12, /* the last one is that of connectors */
    STAGE_EXPORTERS = 1 << 30,
    STAGE_EXTENSIONS = STAGE_EXPORTERS + 1
};

static size_t level_of(const struct graph *graph, size_t index)
{
    const struct config_pipeline *pipelines = graph->config->pipelines;
    if (graph->levels[index] > 0)
        return graph->levels[index];
    size_t level = 1;
    for (size_t i = 0; i < graph->config->pipeline_count; i++)
        if (config_pipeline_leads_to(&pipelines[i], &pipelines[index])) {
            size_t before = level_of(graph, i); /* there is no cycle */
            level = before + 1 > level ? before + 1 : level;
        }
    return graph->levels[index] = level;
}

static size_t first_stage(const struct graph *graph, const struct config_pipeline *pipeline)
{
    size_t level = graph->levels[pipeline - graph->config->pipelines];
    assert(level > 0);
    return (level - 1) * STAGES_OF_LEVEL;
}

static bool exports_to(const struct config_pipeline *pipeline, const struct component *component)
{
    for (size_t i = 0; i < pipeline->exporter_count; i++)
        if (pipeline->exporters[i]->settings == component->settings)
            return true;
    return false;
}

/* Returns the stage of a connector after all pipelines of a signal that lead to it; 0 if none does.
 */
static size_t connector_stage(const struct graph *graph, const struct component *connector,
                              enum signal signal)
{
    size_t stage = 0;
    for (size_t i = 0; i < graph->config->pipeline_count; i++) {
        const struct config_pipeline *pipeline = &graph->config->pipelines[i];
        if (signal_of(pipeline) != signal || !exports_to(pipeline, connector))
            continue;
        size_t after = first_stage(graph, pipeline) + STAGES_OF_LEVEL - 1;
        stage = after > stage ? after : stage;
    }
    return stage;
}

static bool is_connector(const struct component *component)
{
    return component->type->config.section == CONFIG_CONNECTORS;
}

/* ---- the nodes of a pipeline ---- */

/* Returns the node of an exporter or connector that consumes a signal. Adds it if necessary. */
static struct node *exporter_node(struct worker_graph *target, struct component *component,
                                  enum signal signal)
{
    struct node *node = find_node(target, component, signal);
    if (node)
        return node;
    size_t stage = is_connector(component) ? connector_stage(target->graph, component, signal)
                                           : STAGE_EXPORTERS;
    return add_node(target, component, signal, NULL, stage);
}

static void add_exporters(struct worker_graph *target, const struct config_pipeline *pipeline,
                          struct outlet *outlet)
{
    for (size_t i = 0; i < pipeline->exporter_count; i++) {
        struct component *component = find_component(target->graph, pipeline->exporters[i]);
        outlet_add(outlet, exporter_node(target, component, signal_of(pipeline)));
    }
}

/* Adds the processors of a pipeline, from the last one, which passes data to `next`. Returns the
 * first; NULL if there are none. */
static struct node *add_processors(struct worker_graph *target,
                                   const struct config_pipeline *pipeline)
{
    enum signal signal = signal_of(pipeline);
    struct node *next = NULL;
    for (size_t i = pipeline->processor_count; i-- > 0;) {
        struct component *component = find_component(target->graph, pipeline->processors[i]);
        size_t stage = first_stage(target->graph, pipeline) + STAGE_PROCESSORS + i;
        struct node *node = add_node(target, component, signal, pipeline->id, stage);
        if (next)
            outlet_add(&node->outlets[signal], next);
        else
            add_exporters(target, pipeline, &node->outlets[signal]);
        next = node;
    }
    return next;
}

/* Connects a node to a pipeline, which begins with the processor `first`, or has none if that is
 * NULL. */
static void begin_pipeline(struct worker_graph *target, struct node *node,
                           const struct config_pipeline *pipeline, struct node *first)
{
    struct outlet *outlet = &node->outlets[signal_of(pipeline)];
    if (first)
        outlet_add(outlet, first);
    else
        add_exporters(target, pipeline, outlet);
}

/* Connects the nodes of a connector that emit the signal of the pipeline. */
static void connect_connector(struct worker_graph *target, struct component *connector,
                              const struct config_pipeline *pipeline, struct node *first)
{
    for (int signal = 0; signal < SIGNAL_COUNT; signal++)
        if (config_connector_leads(&connector->type->config, (enum config_signal)signal,
                                   pipeline->signal) &&
            connector_stage(target->graph, connector, (enum signal)signal) > 0)
            begin_pipeline(target, exporter_node(target, connector, (enum signal)signal), pipeline,
                           first);
}

/* Adds the receivers of a pipeline, with one node each for all signals. */
static void add_receivers(struct worker_graph *target, const struct config_pipeline *pipeline,
                          struct node *first)
{
    for (size_t i = 0; i < pipeline->receiver_count; i++) {
        struct component *component = find_component(target->graph, pipeline->receivers[i]);
        if (is_connector(component)) {
            connect_connector(target, component, pipeline, first);
            continue;
        }
        struct node *node = find_node(target, component, SIGNAL_TRACES);
        if (!node)
            node = add_node(target, component, SIGNAL_TRACES, NULL, STAGE_RECEIVERS);
        begin_pipeline(target, node, pipeline, first);
    }
}

static void build_worker(struct graph *graph, unsigned index)
{
    struct worker_graph *target = &graph->workers[index];
    *target = (struct worker_graph){.graph = graph, .worker = &graph->process->workers[index]};
    const struct config *config = graph->config;
    for (size_t i = 0; i < config->pipeline_count; i++) {
        struct node *first = add_processors(target, &config->pipelines[i]);
        add_receivers(target, &config->pipelines[i], first);
    }
    for (size_t i = 0; i < config->extension_count; i++)
        add_node(target, find_component(graph, config->extensions[i]), SIGNAL_TRACES, NULL,
                 STAGE_EXTENSIONS);
}

/* Whether a component keeps the data of a signal until another one has accepted what it made of it:
 * an exporter, and a connector that emits another signal. */
static bool has_share(const struct graph *graph, const struct component *component,
                      enum signal signal)
{
    if (is_connector(component) && component->type->config.emits[signal])
        return connector_stage(graph, component, signal) > 0;
    return is_exporter(component) && component->pipeline_count[signal] > 0;
}

/* Gives each of them an equal share of half the budget. */
static void share_memory(struct graph *graph)
{
    size_t budget = graph->process->budget ? graph->process->budget->limit_bytes : 0;
    size_t shares = 0;
    for (size_t i = 0; i < graph->component_count; i++)
        for (int s = 0; s < SIGNAL_COUNT; s++)
            shares += has_share(graph, graph->components[i], (enum signal)s);
    for (size_t i = 0; shares > 0 && i < graph->component_count; i++)
        for (int s = 0; s < SIGNAL_COUNT; s++)
            graph->components[i]->held[s].limit_bytes = budget / 2 / shares;
}

struct graph *graph_new(const struct config *config, struct process *process, struct error *err)
{
    struct graph *graph = memory_zalloc(sizeof *graph);
    graph->config = config;
    graph->process = process;
    process->config = config;
    process->graph = graph;
    process->started_ns = clock_wall_ns();
    pthread_mutex_init(&graph->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&graph->all_drained, &monotonic);
    pthread_condattr_destroy(&monotonic);
    graph->levels = memory_zalloc(config->pipeline_count * sizeof *graph->levels);
    for (size_t i = 0; i < config->pipeline_count; i++)
        level_of(graph, i);
    collect_components(graph);
    prepare_components(graph);
    share_memory(graph);
    if (!init_components(graph, err)) {
        graph_free(graph);
        return NULL;
    }
    graph->components_ready = true;
    graph->workers = memory_array(process->worker_count, sizeof *graph->workers);
    for (unsigned i = 0; i < process->worker_count; i++)
        build_worker(graph, i);
    return graph;
}

/* ---- start and stop ---- */

/* Stops the nodes from the end, because data that an exporter drops settles receipts of the nodes
 * before it. */
static void stop_nodes(struct worker_graph *target, size_t first)
{
    assert(worker_is_current(target->worker));
    worker_cancel_timer(target->worker, &target->drain_poll);
    for (size_t i = target->count; i-- > first;) {
        struct node *node = target->nodes[i];
        assert(!node->stopped);
        for (int s = 0; s < SIGNAL_COUNT; s++)
            outlet_stop(&node->outlets[s]);
        node->stopped = true;
        if (node->component->type->node_stop)
            node->component->type->node_stop(node);
    }
}

static void run_start(struct call *call)
{
    struct worker_graph *target = call->target;
    assert(worker_is_current(target->worker));
    for (size_t i = target->count; i-- > 0;) {
        struct node *node = target->nodes[i];
        for (int s = 0; s < SIGNAL_COUNT; s++)
            outlet_start(&node->outlets[s]);
        if (!node->component->type->node_start ||
            node->component->type->node_start(node, &call->err))
            continue;
        component_status_set(&node->component->status, STATUS_FATAL_ERROR, call->err.text);
        call->ok = error_prefix(&call->err, "%s", node->component->label);
        stop_nodes(target, i + 1);
        return;
    }
}

static void run_stop(struct call *call)
{
    stop_nodes(call->target, 0);
}

static void set_status_of_all(struct graph *graph, enum status_kind status)
{
    for (size_t i = 0; i < graph->component_count; i++)
        component_status_set(&graph->components[i]->status, status, NULL);
}

bool graph_start(struct graph *graph, struct error *err)
{
    assert(graph->started_workers == 0);
    for (unsigned i = 0; i < graph->process->worker_count; i++) {
        if (!call_on_worker(&graph->workers[i], run_start, err)) {
            graph_stop(graph);
            return false;
        }
        graph->started_workers++;
    }
    set_status_of_all(graph, STATUS_OK);
    return true;
}

void graph_stop(struct graph *graph)
{
    assert(graph->started_workers <= graph->process->worker_count);
    while (graph->started_workers > 0)
        call_on_worker(&graph->workers[--graph->started_workers], run_stop, NULL);
    set_status_of_all(graph, STATUS_STOPPED);
}

/* ---- drain ---- */

static void worker_is_drained(struct graph *graph)
{
    pthread_mutex_lock(&graph->lock);
    assert(graph->undrained_workers > 0);
    if (--graph->undrained_workers == 0)
        pthread_cond_broadcast(&graph->all_drained);
    pthread_mutex_unlock(&graph->lock);
}

static bool is_idle(const struct node *node)
{
    const struct component_type *type = node->component->type;
    for (int s = 0; s < SIGNAL_COUNT; s++)
        if (!outlet_is_idle(&node->outlets[s]))
            return false;
    if (type->is_idle)
        return type->is_idle(node);
    return !type->node_drain || node->drained;
}

static void poll_drain(struct worker_graph *target)
{
    assert(worker_is_current(target->worker));
    for (size_t i = 0; i < target->count; i++)
        if (!is_idle(target->nodes[i])) {
            worker_set_timer(target->worker, &target->drain_poll, DRAIN_POLL_NS);
            return;
        }
    worker_is_drained(target->graph);
}

static void on_drain_poll(struct timer *timer)
{
    poll_drain(container_of(timer, struct worker_graph, drain_poll));
}

static void run_drain(struct call *call)
{
    struct worker_graph *target = call->target;
    for (size_t i = 0; i < target->count; i++) {
        struct node *node = target->nodes[i];
        assert(!node->draining && !node->stopped);
        node->draining = true;
        for (int s = 0; s < SIGNAL_COUNT; s++)
            outlet_drain(&node->outlets[s]);
    }
    for (size_t i = 0; i < target->count; i++)
        if (target->nodes[i]->component->type->node_drain)
            target->nodes[i]->component->type->node_drain(target->nodes[i]);
    target->drain_poll.on_timer = on_drain_poll;
    poll_drain(target);
}

void graph_drain(struct graph *graph)
{
    assert(graph->undrained_workers == 0);
    set_status_of_all(graph, STATUS_STOPPING);
    graph->undrained_workers = graph->process->worker_count;
    for (unsigned i = 0; i < graph->process->worker_count; i++)
        call_on_worker(&graph->workers[i], run_drain, NULL);
}

bool graph_is_drained(struct graph *graph)
{
    pthread_mutex_lock(&graph->lock);
    bool drained = graph->undrained_workers == 0;
    pthread_mutex_unlock(&graph->lock);
    return drained;
}

bool graph_wait_drained(struct graph *graph, uint64_t timeout_ns)
{
    uint64_t deadline_ns = clock_monotonic_ns() + timeout_ns;
    struct timespec deadline = {(time_t)(deadline_ns / 1000000000u),
                                (long)(deadline_ns % 1000000000u)};
    pthread_mutex_lock(&graph->lock);
    int rc = 0;
    while (graph->undrained_workers > 0 && rc != ETIMEDOUT)
        rc = pthread_cond_timedwait(&graph->all_drained, &graph->lock, &deadline);
    bool drained = graph->undrained_workers == 0;
    pthread_mutex_unlock(&graph->lock);
    return drained;
}

/* ---- end ---- */

static void free_worker(struct worker_graph *target)
{
    for (size_t i = 0; i < target->count; i++) {
        for (int signal = 0; signal < SIGNAL_COUNT; signal++)
            outlet_deinit(&target->nodes[i]->outlets[signal]);
        free(target->nodes[i]);
    }
    free(target->nodes);
    free(target->stage);
}

void graph_free(struct graph *graph)
{
    if (!graph)
        return;
    assert(graph->started_workers == 0);
    for (unsigned i = 0; graph->workers && i < graph->process->worker_count; i++)
        free_worker(&graph->workers[i]);
    free(graph->workers);
    if (graph->components_ready)
        deinit_components(graph, graph->component_count);
    graph->process->extensions = NULL;
    graph->process->extension_count = 0;
    for (size_t i = 0; i < graph->component_count; i++)
        free(graph->components[i]);
    free(graph->components);
    free(graph->levels);
    graph->process->config = NULL;
    graph->process->graph = NULL;
    pthread_cond_destroy(&graph->all_drained);
    pthread_mutex_destroy(&graph->lock);
    free(graph);
}

/* ---- reading it ---- */

enum signal graph_signal(const struct config_pipeline *pipeline)
{
    return signal_of(pipeline);
}

struct component *graph_component(const struct graph *graph,
                                  const struct config_component *configured)
{
    return find_component(graph, configured);
}

static bool is_at(const struct node *node, const struct component *component, const char *pipeline)
{
    return node->component == component &&
           (!pipeline || (node->pipeline && strcmp(node->pipeline, pipeline) == 0));
}

static uint64_t read_items(const _Atomic uint64_t *items)
{
    return atomic_load_explicit(items, memory_order_relaxed);
}

struct graph_items graph_read_items(const struct graph *graph, const struct component *component,
                                    const char *pipeline, enum signal signal)
{
    struct graph_items sum = {0};
    for (unsigned w = 0; w < graph->process->worker_count; w++)
        for (size_t i = 0; i < graph->workers[w].count; i++) {
            const struct node *node = graph->workers[w].nodes[i];
            if (!is_at(node, component, pipeline))
                continue;
            sum.in += node->signal == signal ? read_items(&node->items) : 0;
            sum.out += read_items(&node->outlets[signal].items);
        }
    return sum;
}

struct node *graph_node(struct graph *graph, unsigned worker, const char *id, const char *pipeline,
                        enum signal signal)
{
    assert(worker < graph->process->worker_count);
    struct worker_graph *target = &graph->workers[worker];
    for (size_t i = 0; i < target->count; i++) {
        struct node *node = target->nodes[i];
        bool is_receiver = node->component->type->config.section == CONFIG_RECEIVERS;
        bool placed = pipeline ? node->pipeline && strcmp(node->pipeline, pipeline) == 0
                               : !node->pipeline && (is_receiver || node->signal == signal);
        if (placed && strcmp(node->component->id, id) == 0)
            return node;
    }
    return NULL;
}
