/*
 * tail_sampling: what the files of the processor share: the state of a component, and that of a
 * node.
 *
 * One id may be in a traces and in a profiles pipeline; both use the same table of traces.
 *
 * Owner: the component owns struct tail.
 *
 * Thread: a node stays on its worker. Of struct tail, a worker uses the table, which has locks, and
 * atomics.
 */
#ifndef PROFCOL_TAIL_SAMPLING_TAIL_SAMPLING_H
#define PROFCOL_TAIL_SAMPLING_TAIL_SAMPLING_H

#include "core/pipeline/component_as.h"
#include "core/pipeline/large_batches.h"
#include "processors/tail_sampling/held_state.h"
#include "processors/tail_sampling/trace_reader.h"

extern const struct component_type tail_sampling_processor_type;

struct tail {
    struct component component; /* first */
    /* With the rules. After a reload maybe shared with the component that this one replaced. */
    struct trace_table *table;
    struct budget held[SIGNAL_OPENED_COUNT]; /* memory of what waits or was not accepted yet */
    struct budget leaving; /* the part of the traces that does not wait any more; no limit */
};

struct tail_node {
    struct node node; /* first */
    struct tail *tail;
    struct large_batches arriving;
    struct tail_rules *read_by; /* rules of the reader, with a reference */
    struct trace_reader reader;
    struct held_traces traces; /* of a traces pipeline, like the next two */
    struct waiting_traces waiting;
    struct ready_spans ready;
    struct rereading rereading;
    struct held_profiles profiles; /* of a profiles pipeline */
    uint64_t lost;                 /* acknowledged items, counted at the stop */
};

static inline struct tail_node *tail_node_of(struct node *node)
{
    return node_as(struct tail_node, node, &tail_sampling_processor_type);
}

/* The rules, on the worker until it returns to its loop. */
static inline const struct tail_rules *tail_rules(const struct tail_node *node)
{
    return trace_table_rules(node->tail->table)->current;
}

static inline const struct tail_settings *tail_settings(const struct tail_node *node)
{
    return tail_rules(node)->settings;
}

static inline const struct tail_metrics *tail_metrics(const struct tail_node *node)
{
    return &tail_rules(node)->metrics;
}

static inline struct table_user tail_user(const struct tail_node *node)
{
    return (struct table_user){tail_settings(node), tail_metrics(node), node->node.worker->index};
}

/* Whether the reader has read by rules that are not the current ones any more. */
static inline bool tail_reader_is_stale(const struct tail_node *node)
{
    return node->read_by != tail_rules(node);
}

/* Refuse a request, which its sender may send again: for lack of memory, or at the stop. */
void tail_refuse_full(struct tail_node *node, struct batch *batch);
void tail_refuse_at_stop(struct tail_node *node, struct batch *batch);
/* Counts acknowledged items that the next component refused, or that were given up at the stop. */
void tail_count_refused(struct tail_node *node, const struct verdict *verdict, uint32_t items);
void tail_count_stopped(struct tail_node *node, uint64_t items);

#endif
