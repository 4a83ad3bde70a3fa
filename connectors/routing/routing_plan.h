/*
 * routing_plan: decides which parts of a batch go where, and makes the parts.
 *
 * What is routed is a resource with all below it, or a span if a route has a condition on spans.
 * A destination is a set of pipelines; routes to the same set share it, and what goes there leaves
 * as one batch. A destination that gets everything gets the batch's own bytes; other parts are
 * copied, and profiles get a dictionary with the entries that they need.
 *
 * Owner: the node owns the plan, whose buffers are taken by the code that forwards the parts.
 *
 * Thread: the node's worker, or the job that works on the batch.
 */
#ifndef PROFCOL_CONNECTORS_ROUTING_ROUTING_PLAN_H
#define PROFCOL_CONNECTORS_ROUTING_ROUTING_PLAN_H

#include "connectors/routing/routing_settings.h"
#include "core/data/groups_select.h"

struct route {
    const char *text; /* the condition, for messages */
    struct route_condition condition;
    bool is_copy;
    uint32_t destination;
};

struct destination {
    const struct config_strings *pipelines;
};

/* Those of a component. Read-only after init. */
struct routes {
    const char *label; /* of the component, for the log */
    enum ottl_error_mode error_mode;
    struct route *items;
    uint32_t count;
    struct destination *destinations;
    uint32_t destination_count;
    uint32_t fallback; /* destination of what no route moved; UINT32_MAX: none */
    bool has_spans;    /* a route has a condition on spans */
    bool has_groups;   /* or on resources */
};

struct routed_part {
    struct selection units; /* resources or spans, in the order of the request */
    uint32_t items;
    bool is_whole;
    struct buffer *buffer; /* the part, unless it is the whole */
};

struct routing_plan {
    const struct routes *routes;
    struct ottl_evaluator **evaluators; /* of each route; NULL: it has a condition on requests */
    struct routed_part *parts;          /* of each destination */
    uint32_t *group_items;              /* of each resource, for profiles */
    uint32_t group_count;
    uint32_t unit_count;
    uint32_t dropped_items; /* that no destination gets */
    struct ottl_errors errors;
    /* While it decides: */
    struct batch *batch;
    struct ottl_item item;
    signed char *results; /* of each route for the current request or resource; -1: not known */
};

void routing_plan_init(struct routing_plan *plan, const struct routes *routes);
/* Frees the plan, with the buffers that were not taken. */
void routing_plan_deinit(struct routing_plan *plan);
/* Decides about a batch, and makes the parts. May write out its changes (batch_flatten). What was
 * planned before is forgotten. */
void routing_plan_make(struct routing_plan *plan, struct batch *batch);

#endif
