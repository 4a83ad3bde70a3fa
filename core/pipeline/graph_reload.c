/*
 * Replacing a running graph: docs/architecture.md, Reload.
 */
#include "config/diff.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/net/server.h"
#include "core/pipeline/delivery.h"
#include "core/pipeline/graph_private.h"

#include <assert.h>

/* ---- what is carried over ---- */

struct component *graph_carried_component(const struct graph *graph,
                                          const struct config_component *configured)
{
    if (!graph->diff)
        return NULL;
    const struct config_change *change = config_diff_find(graph->diff, configured);
    assert(change); /* the graph has only components that are used */
    if (!config_change_goes_on(change))
        return NULL;
    struct component *component = graph_component(graph->older, change->before);
    assert(component && component->type == component_type_of(configured->type));
    return component;
}

struct component *graph_replaced_component(const struct graph *graph,
                                           const struct config_component *configured)
{
    const struct config_change *change =
        graph->diff ? config_diff_find(graph->diff, configured) : NULL;
    bool is_replaced =
        change && change->fate == CONFIG_REPLACED && change->before->type == change->after->type;
    return is_replaced ? graph_component(graph->older, change->before) : NULL;
}

static bool is_same_place(const struct node *node, const struct component *component,
                          enum signal signal, const char *pipeline)
{
    if (node->component != component || node->signal != signal || !node->pipeline != !pipeline)
        return false;
    return !pipeline || strcmp(node->pipeline, pipeline) == 0;
}

struct node *graph_carried_node(const struct worker_graph *target,
                                const struct component *component, enum signal signal,
                                const char *pipeline)
{
    const struct graph *older = target->graph->older;
    const struct worker_graph *before = &older->workers[target - target->graph->workers];
    for (size_t i = 0; i < before->count; i++)
        if (is_same_place(before->nodes[i], component, signal, pipeline))
            return before->nodes[i];
    assert(!"config_diff keeps only components in the same places");
    return NULL;
}

/* ---- listeners ---- */

void graph_offer_addresses(const struct graph *older, const struct config_diff *diff)
{
    for (size_t i = 0; i < diff->count; i++) {
        const struct config_change *change = &diff->changes[i];
        const struct component *component =
            change->before ? graph_component(older, change->before) : NULL;
        if (component && !config_change_goes_on(change))
            server_offer_addresses(component->label);
    }
}

/* ---- the switch, while all workers wait ---- */

static void reconnect_outlet(const struct worker_graph *target, struct outlet *outlet)
{
    struct node **to = NULL;
    size_t count = 0;
    for (size_t i = 0; i < target->link_count; i++) {
        const struct graph_link *link = &target->links[i];
        if (link->from != outlet->from || link->signal != outlet->signal)
            continue;
        to = memory_grow(to, count + 1, sizeof(struct node *));
        to[count++] = link->to;
    }
    outlet_reconnect(outlet, to, count);
    free(to);
}

static void reconnect_worker(struct worker_graph *target)
{
    for (size_t i = 0; i < target->count; i++) {
        struct node *node = target->nodes[i];
        if (graph_is_new(target->graph, node->component))
            continue;
        for (int s = 0; s < SIGNAL_COUNT; s++)
            reconnect_outlet(target, &node->outlets[s]);
    }
    free(target->links);
    target->links = NULL;
    target->link_count = 0;
}

static void look_behind(const struct worker_graph *target)
{
    for (size_t i = 0; i < target->count; i++)
        for (int s = 0; s < SIGNAL_COUNT; s++)
            outlet_look_behind(&target->nodes[i]->outlets[s]);
}

static void connect_all(struct graph *graph)
{
    unsigned workers = graph->process->worker_count;
    for (unsigned w = 0; w < workers; w++)
        reconnect_worker(&graph->workers[w]);
    for (const struct graph *each = graph; each; each = each->older)
        for (unsigned w = 0; w < workers; w++)
            look_behind(&each->workers[w]);
}

/* Removes from an older graph what the next one gets. */
static void keep_retired(struct worker_graph *older, const struct graph *next)
{
    size_t left = 0;
    for (size_t i = 0; i < older->count; i++) {
        struct node *node = older->nodes[i];
        if (!node->component->is_carried) {
            older->stage[left] = older->stage[i];
            older->nodes[left++] = node;
        }
    }
    assert(left <= older->count && next->older == older->graph);
    older->count = left;
}

static void divide(struct graph *older, struct graph *next)
{
    for (size_t i = 0; i < next->component_count; i++)
        next->components[i]->is_carried = !graph_is_new(next, next->components[i]);
    for (unsigned w = 0; w < older->process->worker_count; w++)
        keep_retired(&older->workers[w], next);
    size_t left = 0;
    for (size_t i = 0; i < older->component_count; i++)
        if (!older->components[i]->is_carried)
            older->components[left++] = older->components[i];
    older->component_count = left;
    older->extension_count = 0;
    for (size_t i = 0; i < next->component_count; i++)
        next->components[i]->is_carried = false;
    next->is_shared = false;
}

static void set_pipelines(const struct graph *graph)
{
    for (size_t i = 0; i < graph->component_count; i++) {
        struct component *component = graph->components[i];
        component->pipelines = graph->config;
        bool is_same = memcmp(component->pipeline_count, component->next_count,
                              sizeof component->next_count) == 0;
        memcpy(component->pipeline_count, component->next_count, sizeof component->next_count);
        if (!is_same && component->type->pipelines_changed)
            component->type->pipelines_changed(component);
    }
}

static void update_settings(const struct graph *graph)
{
    for (size_t i = 0; i < graph->diff->count; i++) {
        const struct config_change *change = &graph->diff->changes[i];
        if (change->fate != CONFIG_UPDATED)
            continue;
        struct component *component = graph_component(graph, change->after);
        component->type->update(component, change->after->settings);
    }
}

static void take_over(const struct graph *graph)
{
    for (size_t i = 0; i < graph->component_count; i++) {
        struct component *component = graph->components[i];
        if (component->predecessor && component->type->take_over)
            component->type->take_over(component);
        component->predecessor = NULL;
    }
}

/* The limits of queues follow the shares of their exporters. */
static void share_memory(struct graph *graph)
{
    graph_share_memory(graph);
    for (size_t i = 0; i < graph->workers[0].count; i++)
        if (graph->workers[0].nodes[i]->delivery)
            delivery_shared_limit(graph->workers[0].nodes[i]->delivery->shared);
}

static void switch_graphs(struct graph *older, struct graph *next)
{
    struct process *process = next->process;
    struct workers_pause *pause = workers_pause(process->workers, process->worker_count);
    set_pipelines(next);
    update_settings(next);
    take_over(next);
    connect_all(next);
    divide(older, next);
    share_memory(next);
    process->graph = next;
    process->config = next->config;
    next->diff = NULL;
    workers_resume(pause);
}

/* ---- what is retired ---- */

/* Nothing needs an extension that does not authenticate, so it makes room for its successor. */
static void stop_useless_extensions(struct worker_graph *target)
{
    for (size_t i = target->count; i-- > 0;) {
        const struct component_type *type = target->nodes[i]->component->type;
        if (type->config.section != CONFIG_EXTENSIONS)
            return; /* they are the last ones */
        if (!type->authenticator && i + 1 == target->count)
            graph_stop_nodes(target, i);
    }
}

/* Returns the node of the running graph with the same id; NULL: there is none. */
static struct node *successor_of(const struct node *retired)
{
    const struct process *process = retired->component->process;
    const struct worker_graph *current = &process->graph->workers[retired->worker->index];
    for (size_t i = 0; i < current->count; i++) {
        struct node *node = current->nodes[i];
        if (node->delivery && node->signal == retired->signal &&
            strcmp(node->component->label, retired->component->label) == 0)
            return node;
    }
    return NULL;
}

/* What an exporter has queued goes on with the one that has replaced it: its settings may be why
 * nothing could be sent. */
static void hand_over(const struct worker_graph *target)
{
    for (size_t i = 0; i < target->count; i++) {
        const struct node *node = target->nodes[i];
        const struct node *successor = node->delivery ? successor_of(node) : NULL;
        size_t count = successor ? delivery_hand_over(node->delivery, successor->delivery) : 0;
        if (count > 0)
            log_info(successor->origin,
                     "Requests in the queue of the replaced exporter go on with the new one",
                     LOG_U64("requests", count));
    }
}

static void run_retire(struct graph_call *call)
{
    hand_over(call->target);
    graph_drain_nodes(call->target);
    stop_useless_extensions(call->target);
}

static void retire(struct graph *older)
{
    graph_set_status(older, STATUS_STOPPING);
    for (unsigned w = 0; w < older->process->worker_count; w++)
        graph_call_worker(&older->workers[w], run_retire, NULL);
}

static bool holds_room(const struct node *node)
{
    const struct component *component = node->component;
    for (int s = 0; s < SIGNAL_COUNT; s++)
        if (share_used(&component->held[s]) > 0)
            return true;
    return node->queue &&
           (atomic_load(&node->queue->queued) > 0 || budget_used(&node->queue->waiting) > 0);
}

static bool is_finished(const struct node *node)
{
    for (int s = 0; s < SIGNAL_COUNT; s++)
        if (outlet_has_users(&node->outlets[s]))
            return false;
    return graph_node_is_idle(node) && !holds_room(node);
}

/* Whether data is on its way from a running node to one that is retired. */
static bool leads_to_retired(const struct worker_graph *target)
{
    for (size_t i = 0; i < target->count; i++)
        for (int s = 0; s < SIGNAL_COUNT; s++)
            if (outlet_leads_to_draining(&target->nodes[i]->outlets[s]))
                return true;
    return false;
}

static void run_is_finished(struct graph_call *call)
{
    const struct worker_graph *target = call->target;
    const struct graph *current = target->graph->process->graph;
    hand_over(target); /* what failed meanwhile, or found no room before */
    for (size_t i = 0; i < target->count; i++)
        if (!is_finished(target->nodes[i])) {
            call->ok = false;
            return;
        }
    call->ok = !leads_to_retired(&current->workers[target->worker->index]);
}

static bool is_retired_finished(struct graph *retired)
{
    bool is_done = true;
    for (unsigned w = 0; w < retired->process->worker_count; w++) /* each hands something over */
        is_done = graph_call_worker(&retired->workers[w], run_is_finished, NULL) && is_done;
    return is_done;
}

static void run_stop_retired(struct graph_call *call)
{
    struct worker_graph *target = call->target;
    graph_stop_nodes(target, 0);
    for (struct graph *each = target->graph->process->graph; each; each = each->older) {
        struct worker_graph *other = &each->workers[target->worker->index];
        for (size_t i = 0; i < other->count; i++)
            for (int s = 0; s < SIGNAL_COUNT && !other->nodes[i]->stopped; s++)
                outlet_forget_stopped(&other->nodes[i]->outlets[s]);
    }
}

static void run_nothing(struct graph_call *call)
{
    (void)call;
}

/* After the stop, messages between workers may still refer to it: two rounds deliver them, and the
 * answers to them. */
static void stop_and_free(struct graph *retired)
{
    unsigned workers = retired->process->worker_count;
    for (unsigned w = workers; w-- > 0;)
        graph_call_worker(&retired->workers[w], run_stop_retired, NULL);
    retired->started_workers = 0;
    for (unsigned i = 0; i < 2 * workers; i++)
        graph_call_worker(&retired->workers[i % workers], run_nothing, NULL);
    graph_free_own(retired);
}

size_t graph_count_retired(const struct graph *graph)
{
    size_t count = 0;
    for (const struct graph *older = graph->older; older; older = older->older)
        count += older->component_count;
    return count;
}

/* Older ones first: they may send data to newer ones. */
bool graph_reap(struct graph *graph)
{
    while (graph->older) {
        struct graph *newer = graph;
        while (newer->older->older)
            newer = newer->older;
        if (!is_retired_finished(newer->older))
            return true;
        struct graph *finished = newer->older;
        stop_and_free(finished);
        newer->older = NULL;
    }
    return false;
}

static bool uses(struct component *component, const struct config *config)
{
    return component->config == config ||
           (component->type->uses_config && component->type->uses_config(component, config));
}

static bool has_made_any(const struct graph *graph, const struct config *config)
{
    for (size_t i = 0; i < graph->component_count; i++)
        if (uses(graph->components[i], config))
            return true;
    return graph->config == config;
}

bool graph_uses(const struct graph *graph, const struct config *config)
{
    for (; graph; graph = graph->older)
        if (has_made_any(graph, config))
            return true;
    return false;
}

/* ---- all of it ---- */

/* Leaves the graph as if nothing had been tried. */
static struct graph *give_up(struct graph *older, struct graph *next)
{
    next->older = NULL;
    graph_free_own(next);
    graph_show_extensions(older);
    return NULL;
}

struct graph *graph_reload(struct graph *graph, const struct config_diff *diff, struct error *err)
{
    struct graph *next = graph_alloc(diff->after, graph->process);
    assert(graph->config == diff->before && graph->started_workers > 0);
    next->older = graph;
    next->diff = diff;
    next->is_shared = true;
    graph_offer_addresses(graph, diff);
    bool is_built = graph_build(next, err);
    server_withdraw_addresses();
    if (!is_built || !graph_start(next, err))
        return give_up(graph, next);
    switch_graphs(graph, next);
    retire(graph);
    return next;
}
