/*
 * node: reads a part of the configuration that a component gets as it was written
 * (FIELD_KIND_NODE). Implemented in tree.c.
 *
 * Owner: the configuration's arena owns all nodes and their texts.
 *
 * Thread: any; nodes are read-only once the configuration is loaded.
 */
#ifndef PROFCOL_CONFIG_NODE_H
#define PROFCOL_CONFIG_NODE_H

#include <stdbool.h>
#include <stddef.h>

struct config_node;

enum config_node_kind { CONFIG_NODE_NULL, CONFIG_NODE_SCALAR, CONFIG_NODE_LIST, CONFIG_NODE_MAP };
enum config_node_kind config_node_kind(const struct config_node *node);
/* The text of a scalar ("" for null). */
const char *config_node_text(const struct config_node *node);
/* Whether it was written in quotes (then it is a string whatever it looks like). */
bool config_node_quoted(const struct config_node *node);
size_t config_node_count(const struct config_node *node); /* of a list or map */
const struct config_node *config_node_at(const struct config_node *node, size_t i); /* value */
const char *config_node_key(const struct config_node *node, size_t i);              /* of a map */
const struct config_node *config_node_get(const struct config_node *node,
                                          const char *key); /* NULL: not there */
#endif
