/*
 * configured_value: converts a value of any type in a configuration (FIELD_KIND_NODE) to an
 * AnyValue.
 *
 * Owner: the caller's arena owns the result.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_PIPELINE_CONFIGURED_VALUE_H
#define PROFCOL_CORE_PIPELINE_CONFIGURED_VALUE_H

#include "core/base/slice.h"

struct arena;
struct config_node;

/* Returns the payload of an AnyValue with the type that YAML gives the node: a scalar, a list or a
 * map. Null is the empty value. */
struct slice configured_value_encode(struct arena *arena, const struct config_node *node);

#endif
