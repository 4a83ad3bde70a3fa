/*
 * node: read access to the part of a configuration that a component gets unparsed
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
/* Returns the kind of a node. */
enum config_node_kind config_node_kind(const struct config_node *node);
/* Returns the text of a scalar; "" for null. */
const char *config_node_text(const struct config_node *node);
/* Whether the scalar was written in quotes, and so is a string even if it looks like a number. */
bool config_node_quoted(const struct config_node *node);
/* Returns the number of items of a list or map. */
size_t config_node_count(const struct config_node *node);
/* Returns the value at index i of a list or map, and the key at index i of a map. */
const struct config_node *config_node_at(const struct config_node *node, size_t i);
const char *config_node_key(const struct config_node *node, size_t i);
/* Whether a map is probably a text without quotes, which YAML has split: `- set(a, "b: c")`. */
bool config_node_is_split_text(const struct config_node *node);
#define CONFIG_SPLIT_TEXT                                                                          \
    "a map, because YAML splits a text at \": \"; put the whole text in single quotes"
/* Returns the value of a key of a map; NULL if the key is absent. */
const struct config_node *config_node_get(const struct config_node *node, const char *key);
#endif
