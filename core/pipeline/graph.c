#include "core/pipeline/graph_private.h"

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

/* ---- running a function on a worker ---- */

static void run_call(void *context)
{
    struct graph_call *call = context;
    call->run(call);
}

bool graph_call_worker(struct worker_graph *target, void (*run)(struct graph_call *call),
                       struct error *err)
{
    struct graph_call call = {.run = run, .target = target, .ok = true};
    worker_call(target->worker, run_call, &call);
    if (!call.ok && err)
        *err = call.err;
    return call.ok;
}

/* ---- components ---- */

/* Not by the settings: those of a component that is carried over are of an older configuration. */
static bool is_configured_as(const struct component *component,
                             const struct config_component *configured)
{
    return component->type->config.section == configured->type->section &&
           strcmp(component->id, configured->id) == 0;
}

static struct component *find_component(const struct graph *graph,
                                        const struct config_component *configured)
{
    for (size_t i = 0; i < graph->component_count; i++)
        if (is_configured_as(graph->components[i], configured))
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

static struct component *new_component(struct graph *graph,
                                       const struct config_component *configured)
{
    const struct component_type *type = component_type_of(configured->type);
    assert(type->component_size == 0 || type->component_size >= sizeof(struct component));
    struct component *component =
        memory_zalloc(type->component_size ? type->component_size : sizeof *component);
    component->type = type;
    component->id = configured->id;
    component->settings = configured->settings;
    component->config = graph->config;
    component->pipelines = graph->config;
    component->process = graph->process;
    component_status_set(&component->status, STATUS_STARTING, NULL);
    snprintf(component->label, sizeof component->label, "%s %s",
             config_section_kinds[type->config.section], configured->id);
    return component;
}

static struct component *add_component(struct graph *graph,
                                       const struct config_component *configured)
{
    struct component *component = find_component(graph, configured);
    if (component)
        return component;
    component = graph_carried_component(graph, configured);
    if (!component) {
        component = new_component(graph, configured);
        component->predecessor = graph_replaced_component(graph, configured);
    }
    memset(component->next_count, 0, sizeof component->next_count);
    insert_component(graph, component);
    return component;
}

static void add_components(struct graph *graph, const struct config_component **list, size_t count,
                           enum signal signal)
{
    for (size_t i = 0; i < count; i++)
        add_component(graph, list[i])->next_count[signal]++;
}

bool graph_owns(const struct graph *graph, const struct component *component)
{
    return !graph->is_shared || graph_is_new(graph, component);
}

bool graph_is_new(const struct graph *graph, const struct component *component)
{
    return component->config == graph->config;
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
    graph->extension_count = graph->component_count - others;
    for (size_t i = 0; i < graph->component_count; i++) {
        struct component *component = graph->components[i];
        if (graph_is_new(graph, component))
            memcpy(component->pipeline_count, component->next_count, sizeof component->next_count);
    }
}

/* Only extensions are looked up, on main, by the components that are initialised. */
void graph_show_extensions(const struct graph *graph)
{
    graph->process->extensions = graph->components; /* they come first; nothing is added later */
    graph->process->extension_count = graph->extension_count;
}

/* Deinitialises the first `count` ones that belong to this graph. */
static void deinit_components(struct graph *graph, size_t count)
{
    assert(count <= graph->component_count);
    while (count-- > 0) {
        struct component *component = graph->components[count];
        if (component->type->deinit && graph_owns(graph, component))
            component->type->deinit(component);
    }
}

static void prepare_components(struct graph *graph)
{
    for (size_t i = 0; i < graph->component_count; i++) {
        struct component *component = graph->components[i];
        if (component->type->prepare && graph_is_new(graph, component))
            component->type->prepare(component);
    }
}

static bool init_components(struct graph *graph, struct error *err)
{
    assert(!graph->components_ready);
    for (size_t i = 0; i < graph->component_count; i++) {
        struct component *component = graph->components[i];
        if (!graph_is_new(graph, component))
            continue;
        bool is_ready = !component->type->init || component->type->init(component, err);
        if (!is_ready) {
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
    struct node *node = graph_is_new(target->graph, component)
                            ? component_node_new(component, target->worker, signal, pipeline)
                            : graph_carried_node(target, component, signal, pipeline);
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

/* Connects a node to one that comes next. Data flows through nodes that are carried over, so they
 * are connected when everything has started (graph_reload.c). */
static void connect_nodes(struct worker_graph *target, struct node *from, enum signal signal,
                          struct node *to)
{
    if (graph_is_new(target->graph, from->component)) {
        outlet_add(&from->outlets[signal], to);
        return;
    }
    target->links = memory_grow(target->links, target->link_count + 1, sizeof *target->links);
    target->links[target->link_count++] = (struct graph_link){from, signal, to};
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
        if (is_configured_as(component, pipeline->exporters[i]))
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
                          struct node *from)
{
    for (size_t i = 0; i < pipeline->exporter_count; i++) {
        struct component *component = find_component(target->graph, pipeline->exporters[i]);
        connect_nodes(target, from, signal_of(pipeline),
                      exporter_node(target, component, signal_of(pipeline)));
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
            connect_nodes(target, node, signal, next);
        else
            add_exporters(target, pipeline, node);
        next = node;
    }
    return next;
}

/* Connects a node to a pipeline, which begins with the processor `first`, or has none if that is
 * NULL. */
static void begin_pipeline(struct worker_graph *target, struct node *node,
                           const struct config_pipeline *pipeline, struct node *first)
{
    if (first)
        connect_nodes(target, node, signal_of(pipeline), first);
    else
        add_exporters(target, pipeline, node);
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
    return is_exporter(component) && component->next_count[signal] > 0;
}

/* Exporters and connectors may hold half of the budget: half of that as equal shares, the rest as
 * loans (share.h). Components that are retired keep what they have. */
static size_t pool_bytes(const struct process *process)
{
    return process->budget ? process->budget->limit_bytes / 4 : 0;
}

/* Returns how many shares the component has in this graph. */
static size_t shares_of(const struct graph *graph, const struct component *component)
{
    size_t shares = 0;
    for (int s = 0; s < SIGNAL_COUNT; s++)
        shares += has_share(graph, component, (enum signal)s);
    return shares;
}

static void set_shares(struct process *process, struct component *component, size_t share_bytes,
                       bool is_only)
{
    component->borrower.pool = &process->loans;
    component->borrower.is_only = is_only;
    for (int s = 0; s < SIGNAL_COUNT; s++) {
        component->held[s].own.limit_bytes = share_bytes;
        component->held[s].borrower = &component->borrower;
    }
}

void graph_share_memory(struct graph *graph)
{
    size_t shares = 0, borrowers = 0;
    for (size_t i = 0; i < graph->component_count; i++) {
        size_t more = shares_of(graph, graph->components[i]);
        shares += more;
        borrowers += more > 0;
    }
    for (size_t i = 0; shares > 0 && i < graph->component_count; i++)
        if (graph_owns(graph, graph->components[i]))
            set_shares(graph->process, graph->components[i], pool_bytes(graph->process) / shares,
                       borrowers == 1);
}

struct graph *graph_alloc(const struct config *config, struct process *process)
{
    struct graph *graph = memory_zalloc(sizeof *graph);
    graph->config = config;
    graph->process = process;
    pthread_mutex_init(&graph->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&graph->all_drained, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return graph;
}

bool graph_build(struct graph *graph, struct error *err)
{
    const struct config *config = graph->config;
    graph->levels = memory_zalloc(config->pipeline_count * sizeof *graph->levels);
    for (size_t i = 0; i < config->pipeline_count; i++)
        level_of(graph, i);
    collect_components(graph);
    graph_show_extensions(graph);
    prepare_components(graph);
    graph_share_memory(graph);
    if (!init_components(graph, err))
        return false;
    graph->components_ready = true;
    graph->workers = memory_array(graph->process->worker_count, sizeof *graph->workers);
    for (unsigned i = 0; i < graph->process->worker_count; i++)
        build_worker(graph, i);
    return true;
}

struct graph *graph_new(const struct config *config, struct process *process, struct error *err)
{
    struct graph *graph = graph_alloc(config, process);
    process->config = config;
    process->graph = graph;
    process->started_ns = clock_wall_ns();
    if (graph_build(graph, err)) {
        process->loans.limit_bytes = pool_bytes(process);
        return graph;
    }
    graph_free(graph);
    return NULL;
}

/* ---- start and stop ---- */

/* Whether the node was started by, and is to be stopped with, this graph. */
static bool owns_node(const struct worker_graph *target, const struct node *node)
{
    return graph_owns(target->graph, node->component);
}

static void stop_node(struct node *node)
{
    assert(!node->stopped && worker_is_current(node->worker));
    for (int s = 0; s < SIGNAL_COUNT; s++)
        outlet_stop(&node->outlets[s]);
    node->stopped = true;
    if (node->component->type->node_stop)
        node->component->type->node_stop(node);
}

/* Stops the nodes from the end, because data that an exporter drops settles receipts of the nodes
 * before it. */
void graph_stop_nodes(struct worker_graph *target, size_t first)
{
    for (size_t i = target->count; i-- > first;)
        if (!target->nodes[i]->stopped && owns_node(target, target->nodes[i]))
            stop_node(target->nodes[i]);
}

static void stop_after_those_behind(struct node *node);

static void stop_branches(struct branch *const *branches, size_t count)
{
    for (size_t i = 0; i < count; i++)
        stop_after_those_behind(branches[i]->to);
}

/* The same for nodes of several graphs, which have no common order. */
static void stop_after_those_behind(struct node *node)
{
    if (node->stopping)
        return;
    node->stopping = true;
    for (int s = 0; s < SIGNAL_COUNT; s++) {
        stop_branches(node->outlets[s].branches, node->outlets[s].count);
        stop_branches(node->outlets[s].past, node->outlets[s].past_count);
    }
    if (!node->stopped)
        stop_node(node);
}

static void run_start(struct graph_call *call)
{
    struct worker_graph *target = call->target;
    assert(worker_is_current(target->worker));
    for (size_t i = target->count; i-- > 0;) {
        struct node *node = target->nodes[i];
        if (!owns_node(target, node))
            continue;
        for (int s = 0; s < SIGNAL_COUNT; s++)
            outlet_start(&node->outlets[s]);
        if (!node->component->type->node_start ||
            node->component->type->node_start(node, &call->err))
            continue;
        component_status_set(&node->component->status, STATUS_FATAL_ERROR, call->err.text);
        call->ok = error_prefix(&call->err, "%s", node->component->label);
        graph_stop_nodes(target, i + 1);
        return;
    }
}

static struct worker_graph *same_worker(struct graph *graph, const struct worker_graph *target)
{
    return &graph->workers[target - target->graph->workers];
}

/* Also stops what reloads have retired. */
static void run_stop(struct graph_call *call)
{
    worker_cancel_timer(call->target->worker, &call->target->drain_poll);
    for (struct graph *graph = call->target->graph; graph; graph = graph->older) {
        struct worker_graph *target = same_worker(graph, call->target);
        for (size_t i = target->count; i-- > 0;)
            stop_after_those_behind(target->nodes[i]);
    }
}

void graph_set_status(struct graph *graph, enum status_kind status)
{
    for (size_t i = 0; i < graph->component_count; i++)
        if (graph_owns(graph, graph->components[i]))
            component_status_set(&graph->components[i]->status, status, NULL);
}

static void run_stop_own(struct graph_call *call)
{
    graph_stop_nodes(call->target, 0);
}

void graph_stop_own(struct graph *graph)
{
    while (graph->started_workers > 0)
        graph_call_worker(&graph->workers[--graph->started_workers], run_stop_own, NULL);
    graph_set_status(graph, STATUS_STOPPED);
}

bool graph_start(struct graph *graph, struct error *err)
{
    assert(graph->started_workers == 0);
    for (unsigned i = 0; i < graph->process->worker_count; i++) {
        if (!graph_call_worker(&graph->workers[i], run_start, err)) {
            graph_stop_own(graph);
            return false;
        }
        graph->started_workers++;
    }
    graph_set_status(graph, STATUS_OK);
    return true;
}

void graph_stop(struct graph *graph)
{
    assert(graph->started_workers <= graph->process->worker_count);
    while (graph->started_workers > 0)
        graph_call_worker(&graph->workers[--graph->started_workers], run_stop, NULL);
    for (struct graph *each = graph; each; each = each->older) {
        each->started_workers = 0;
        graph_set_status(each, STATUS_STOPPED);
    }
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

bool graph_node_is_idle(const struct node *node)
{
    const struct component_type *type = node->component->type;
    for (int s = 0; s < SIGNAL_COUNT; s++)
        if (!outlet_is_idle(&node->outlets[s]))
            return false;
    if (type->is_idle)
        return type->is_idle(node);
    return !type->node_drain || node->drained;
}

static bool are_nodes_idle(const struct worker_graph *target)
{
    for (size_t i = 0; i < target->count; i++)
        if (!graph_node_is_idle(target->nodes[i]))
            return false;
    return true;
}

/* What reloads have retired must be idle, too: it passes data on to this graph. */
static void poll_drain(struct worker_graph *target)
{
    assert(worker_is_current(target->worker) && target->graph);
    for (struct graph *graph = target->graph; graph; graph = graph->older)
        if (!are_nodes_idle(same_worker(graph, target))) {
            worker_set_timer(target->worker, &target->drain_poll, DRAIN_POLL_NS);
            return;
        }
    worker_is_drained(target->graph);
}

static void on_drain_poll(struct timer *timer)
{
    poll_drain(container_of(timer, struct worker_graph, drain_poll));
}

void graph_drain_nodes(struct worker_graph *target)
{
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
}

static void run_drain(struct graph_call *call)
{
    graph_drain_nodes(call->target);
    call->target->drain_poll.on_timer = on_drain_poll;
    poll_drain(call->target);
}

void graph_drain(struct graph *graph)
{
    assert(graph->undrained_workers == 0);
    graph_set_status(graph, STATUS_STOPPING);
    graph->undrained_workers = graph->process->worker_count;
    for (unsigned i = 0; i < graph->process->worker_count; i++)
        graph_call_worker(&graph->workers[i], run_drain, NULL);
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
        if (!owns_node(target, target->nodes[i]))
            continue;
        for (int signal = 0; signal < SIGNAL_COUNT; signal++)
            outlet_deinit(&target->nodes[i]->outlets[signal]);
        free(target->nodes[i]);
    }
    free(target->nodes);
    free(target->stage);
    free(target->links);
}

static void free_components(struct graph *graph)
{
    if (graph->components_ready)
        deinit_components(graph, graph->component_count);
    for (size_t i = 0; i < graph->component_count; i++)
        if (graph_owns(graph, graph->components[i]))
            free(graph->components[i]);
    free(graph->components);
}

static void leave_process(struct graph *graph)
{
    struct process *process = graph->process;
    if (process->graph != graph)
        return;
    process->extensions = NULL;
    process->extension_count = 0;
    process->config = NULL;
    process->graph = NULL;
}

void graph_free_own(struct graph *graph)
{
    assert(graph->started_workers == 0);
    for (unsigned i = 0; graph->workers && i < graph->process->worker_count; i++)
        free_worker(&graph->workers[i]);
    free(graph->workers);
    free_components(graph);
    free(graph->levels);
    pthread_cond_destroy(&graph->all_drained);
    pthread_mutex_destroy(&graph->lock);
    free(graph);
}

void graph_free(struct graph *graph)
{
    if (graph)
        leave_process(graph);
    for (struct graph *older; graph; graph = older) {
        older = graph->older;
        graph_free_own(graph);
    }
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
