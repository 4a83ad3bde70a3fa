/*
 * graph_private: what the files of graph share.
 *
 * graph.c builds, starts, drains and stops a graph; graph_reload.c replaces it by another one, to
 * which some of its components and nodes are carried over.
 *
 * Owner: each component and node belongs to one graph, also while the next one is built, which then
 * lists those that it will get (`is_shared`). After the switch, the older graph lists only what is
 * retired.
 *
 * Thread: as graph.h says. While a graph runs, its lists change only while all workers wait.
 */
#ifndef PROFCOL_CORE_PIPELINE_GRAPH_PRIVATE_H
#define PROFCOL_CORE_PIPELINE_GRAPH_PRIVATE_H

#include "core/pipeline/graph.h"

struct config_diff;

/* A connection that is made at the switch, because its beginning runs already. */
struct graph_link {
    struct node *from;
    enum signal signal;
    struct node *to;
};

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
    struct graph_link *links; /* of nodes that are carried over */
    size_t link_count;
};

struct graph {
    const struct config *config;
    struct process *process;
    size_t *levels; /* of each pipeline: how many pipelines in a row lead to it */
    struct component **components;
    size_t component_count;
    size_t extension_count; /* the first ones of `components` */
    bool components_ready;  /* init was called for all components */
    struct worker_graph *workers;
    size_t started_workers;
    pthread_mutex_t lock;
    pthread_cond_t all_drained;
    size_t undrained_workers;
    /* Of a reload: */
    const struct config_diff *diff; /* NULL after the switch, and without a reload */
    struct graph *older;            /* the one before, with what is retired; NULL: none is left */
    bool is_shared; /* before the switch: components that are carried over belong to `older` */
};

/* ---- graph.c ---- */

struct graph_call {
    void (*run)(struct graph_call *call);
    struct worker_graph *target;
    struct error err;
    bool ok;
};
/* Calls `run` on the worker and waits for it. Returns call->ok, and copies call->err if that is
 * false. */
bool graph_call_worker(struct worker_graph *target, void (*run)(struct graph_call *call),
                       struct error *err);

/* Creates an empty graph, and fills it: creates the components that are not carried over, calls
 * their init, creates nodes and connects them. graph_build returns false, with err set, if a
 * component cannot be initialised. */
struct graph *graph_alloc(const struct config *config, struct process *process);
bool graph_build(struct graph *graph, struct error *err);
/* Whether the component was made for this graph, and is not carried over. */
bool graph_is_new(const struct graph *graph, const struct component *component);
/* Whether this graph starts, stops and frees the component. */
bool graph_owns(const struct graph *graph, const struct component *component);
/* Lets components find the extensions of this graph. */
void graph_show_extensions(const struct graph *graph);
/* Sets the shares of memory of the exporters and connectors that the graph owns. */
void graph_share_memory(struct graph *graph);
/* Sets the life of the components that it owns. */
void graph_set_status(struct graph *graph, enum status_kind status);

/* On the worker: stop the nodes from `first` on, and drain all. */
void graph_stop_nodes(struct worker_graph *target, size_t first);
void graph_drain_nodes(struct worker_graph *target);
bool graph_node_is_idle(const struct node *node);
/* Stop and free what this graph owns, without the older ones. */
void graph_stop_own(struct graph *graph);
void graph_free_own(struct graph *graph);

/* ---- graph_reload.c ---- */

/* Returns the component that the one for `configured` replaces; NULL: none. */
struct component *graph_replaced_component(const struct graph *graph,
                                           const struct config_component *configured);
/* Returns the component that is carried over for a configured one; NULL: it is new. */
struct component *graph_carried_component(const struct graph *graph,
                                          const struct config_component *configured);
/* Returns its node on the worker. */
struct node *graph_carried_node(const struct worker_graph *target,
                                const struct component *component, enum signal signal,
                                const char *pipeline);

#endif
