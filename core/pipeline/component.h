/*
 * component: the contract between a component and the rest of the program. This header includes
 * what a component needs of the pipelines.
 *
 * Each component is one file with one constant `struct component_type`. Parsing, reference and
 * errors follow from its tables (config/field.h). Its functions are called in this order: init
 * (once per id, on main) -> node_start (once per worker and place in the graph, on that worker) ->
 * consume... -> node_drain -> consume... -> node_stop -> deinit. During a reload, an old and a new
 * component of one id may exist side by side: the first drains, and may outlive the process's
 * configuration, but not its own (component->config). A component never includes another
 * component: it uses only core/pipeline/ and the layers below, and is called through this table.
 *
 * Owner: the graph owns components and nodes; settings belong to the configuration and outlive
 * them.
 *
 * Thread: `init` and `deinit` on main while no worker runs nodes of it; everything with a
 * node on the node's worker.
 */
#ifndef PROFCOL_CORE_PIPELINE_COMPONENT_H
#define PROFCOL_CORE_PIPELINE_COMPONENT_H

#include "config/check.h"
#include "config/model.h"
#include "core/base/budget.h"
#include "core/base/metrics.h"
#include "core/base/worker.h"
#include "core/pipeline/batch.h"
#include "core/pipeline/node.h"
#include "core/pipeline/outlet.h"

struct authenticator;

struct component_type {
    struct config_type config; /* name, section, stability, fields, check; the first member, so
                                * that a config_type can be cast */

    /* Of an extension that authenticates (auth.h); NULL: it does not. */
    const struct authenticator *authenticator;

    /* Size of the process-wide part, one per id: a struct whose first member is `struct
     * component`. It is zeroed before init. */
    size_t component_size;
    /* Called before the first `init`; may change the limits of the process. May be NULL. */
    void (*prepare)(struct component *component);
    /* Checks conditions that depend on the machine, and binds listeners. Returns false, with err
     * set, on failure. May be NULL. */
    bool (*init)(struct component *component, struct error *err);
    void (*deinit)(struct component *component); /* may be NULL */
    /* A reload has changed live settings (config/field.h) and nothing else, so the component is
     * carried over. `settings` are the new ones, of the configuration component->pipelines; they
     * are valid during the call, and longer if uses_config says so. component->settings stays as it
     * is. Called on main while all workers wait, but jobs do not. Not NULL if there are live
     * settings. */
    void (*update)(struct component *component, const void *settings);
    /* Whether the component still refers to settings of this configuration that `update` has given
     * it. Called on main. NULL: it does not. */
    bool (*uses_config)(struct component *component, const struct config *config);
    /* A reload replaces component->predecessor, whose type is the same, by this one, whose nodes
     * have started. Called on main while all workers wait, but jobs do not; cannot fail. May be
     * NULL. */
    void (*take_over)(struct component *component);
    /* A reload has changed pipeline_count of a receiver, which is carried over. Called on main
     * while all workers wait. May be NULL. */
    void (*pipelines_changed)(struct component *component);

    /* Size of the per-worker part: one per (worker, pipeline) for a processor, per (worker,
     * signal) for an exporter, per worker for a receiver (it forwards all its signals) and an
     * extension. It is a struct whose first member is `struct node`, zeroed before node_start. */
    size_t node_size;
    bool (*node_start)(struct node *node, struct error *err); /* may be NULL */
    /* Takes ownership of the batch. Never blocks, never answers the client; may settle the
     * receipt at once. Passes a batch that it cannot accept to node_refuse. A node that forwards
     * the batch after `consume` has returned keeps the batch's reservation until then
     * (reservation_keep), lends the batch to a job that uses it (batch_lend), and needs is_idle
     * and node_stop. NULL for receivers and extensions. */
    void (*consume)(struct node *node, struct batch *batch);
    /* Returns which samples need the threads and times that readers add, because it joins by them
     * and removes them (core/pipeline/threads_behind.h): enum added_threads. If none do, it also
     * removes them. NULL: it does neither. */
    unsigned (*joins_threads)(const struct component *component);
    /* It reads profiles requests without samples, and ends them, or it passes them on as they are;
     * both hold for all of its nodes. Nobody else gets such requests
     * (core/pipeline/empty_profiles.h). Where a batch has links_are_labels, one that reads them
     * also removes profiles without samples beside others. */
    bool reads_empty;
    bool passes_empty;
    /* The node holds data within its own limits, so reservations (block_on_overflow) end here. */
    bool holds;
    /* Called when the process ends: stops accepting data from outside, and passes on held and
     * arriving data without waiting for more. All nodes are called at once. NULL: the node never
     * holds anything. */
    void (*node_drain)(struct node *node);
    /* Called after node_drain: returns whether nothing is held now. If it is NULL, a node with
     * node_drain is idle after node_drained, and a node without always. */
    bool (*is_idle)(const struct node *node);
    /* Gives up the data still held (counts and logs it, settles its receipts), closes and frees
     * everything but the struct, which belongs to the graph. Afterwards nothing may call back.
     * Exporters are stopped first, so all receipts that a node passed on are settled when the
     * node itself is stopped. A stopped node refuses every batch. */
    void (*node_stop)(struct node *node);
};

/* Creates a node of the component, with outlets that have no branches yet. Call outlet_deinit
 * for its outlets before freeing it. */
struct node *component_node_new(struct component *component, struct worker *worker,
                                enum signal signal, const char *pipeline);

static inline const struct component_type *component_type_of(const struct config_type *type)
{
    return (const struct component_type *)type;
}

#endif
