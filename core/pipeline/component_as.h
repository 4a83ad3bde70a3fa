/*
 * component_as: returns the struct of a component type that contains a given component or node.
 *
 *     static struct debug_node *node_of(struct node *node)
 *     {
 *         return node_as(struct debug_node, node, &debug_exporter_type);
 *     }
 *
 * An assert compares the component's type, by which the graph allocated the struct.
 *
 * Owner: nothing is owned.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_PIPELINE_COMPONENT_AS_H
#define PROFCOL_CORE_PIPELINE_COMPONENT_AS_H

#include "core/base/container_of.h"
#include "core/pipeline/component.h"

#include <assert.h>

/* own: the struct with the member `component`; type: the required type of the component.
 * Evaluates its arguments more than once. */
#define component_as(own, pointer, type)                                                           \
    (component_check((pointer), (type), sizeof(own)), container_of(pointer, own, component))

/* own: the struct with the member `node`; type: the required type of its component. */
#define node_as(own, pointer, type)                                                                \
    (node_check((pointer), (type), sizeof(own)), container_of(pointer, own, node))

static inline void component_check(const struct component *component,
                                   const struct component_type *type, size_t size)
{
    assert(component->type == type && type->component_size == size);
}

static inline void node_check(const struct node *node, const struct component_type *type,
                              size_t size)
{
    assert(node->component->type == type && type->node_size == size);
}

#endif
