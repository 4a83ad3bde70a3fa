/*
 * graph: the pipelines of one configuration, as nodes on every worker.
 *
 * Nodes are started from the end: exporters, processors, receivers. They are stopped in the same
 * order, so that receipts are settled while the nodes before them still exist. To drain, all nodes
 * are called at once, so that no branch waits for another. A worker is drained when at one moment
 * none of its nodes and outlets holds anything. Nodes of one exporter id and signal are shared by
 * the pipelines of a worker; a processor has one node per pipeline.
 *
 * Exporters and connectors may hold half of the process's byte budget, partly in equal shares for
 * each of their signals (component->held), so that a dead backend cannot fill the memory for
 * requests; share.h says how the rest is lent.
 *
 * Owner: main.
 *
 * Thread: main; it posts calls of node functions to their workers and waits for them.
 */
#ifndef PROFCOL_CORE_PIPELINE_GRAPH_H
#define PROFCOL_CORE_PIPELINE_GRAPH_H

#include "core/pipeline/component.h"

struct config_diff;
struct graph;

/* Creates the components and calls their init. Returns NULL on an error; err then names the
 * component. */
struct graph *graph_new(const struct config *config, struct process *process, struct error *err);
/* Starts all nodes on all workers, whose loops must run, or be manual. Returns false, with err set,
 * if a node cannot start. */
bool graph_start(struct graph *graph, struct error *err);
/* Lets listeners that are made next take over the addresses of components that a reload retires,
 * until server_withdraw_addresses. */
void graph_offer_addresses(const struct graph *older, const struct config_diff *diff);
/* Replaces the graph by that of diff->after, while it runs: what is equal is carried over, what is
 * new starts, and the rest begins to drain. Returns the new graph, which owns the old one; NULL,
 * with err set and nothing changed, if something new cannot start. */
struct graph *graph_reload(struct graph *graph, const struct config_diff *diff, struct error *err);
/* Stops and frees what reloads have retired and what is drained. Returns whether it has to be
 * called again, because something is left. */
bool graph_reap(struct graph *graph);
/* Returns the number of components that are left. */
size_t graph_count_retired(const struct graph *graph);
/* Whether a component, or what is retired, still uses the configuration. */
bool graph_uses(const struct graph *graph, const struct config *config);
/* Begins to drain and returns at once. */
void graph_drain(struct graph *graph);
/* Waits until every node of every worker is drained, at most timeout_ns. Returns false if something
 * is still held. */
bool graph_wait_drained(struct graph *graph, uint64_t timeout_ns);
/* Whether every node of every worker is drained now. */
bool graph_is_drained(struct graph *graph);
/* Stops all nodes on their workers and waits for them. */
void graph_stop(struct graph *graph);
/* Frees the graph and deinitialises its components. All nodes must be stopped. */
void graph_free(struct graph *graph);
/* Returns the signal that a pipeline carries. */
enum signal graph_signal(const struct config_pipeline *pipeline);
/* Returns the component of a configured one; NULL if nothing uses it. */
struct component *graph_component(const struct graph *graph,
                                  const struct config_component *configured);

/* What passed a component, over all workers. */
struct graph_items {
    uint64_t in;  /* offered to it, without what it refused; 0 for a receiver */
    uint64_t out; /* passed on; 0 for an exporter */
};
/* Reads the items of a component's nodes. pipeline: that of a processor; NULL for a receiver or
 * exporter. Any thread, from graph_start to graph_free. */
struct graph_items graph_read_items(const struct graph *graph, const struct component *component,
                                    const char *pipeline, enum signal signal);
/* For tests: returns the node of a component on a worker. pipeline: NULL for a receiver or
 * exporter; then the signal selects the node. */
struct node *graph_node(struct graph *graph, unsigned worker, const char *id, const char *pipeline,
                        enum signal signal);

#endif
