/*
 * yaml_tree: from the text of a YAML document to a tree of nodes.
 *
 * On libyaml's events, because its documents know no places and its flow nesting costs quadratic
 * time: depth is checked as the events come. Anchors, aliases and merge keys (`<<`) are resolved
 * here; duplicate keys are errors.
 *
 * Owner: nodes live in the check's arena.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CONFIG_YAML_TREE_H
#define PROFCOL_CONFIG_YAML_TREE_H

#include "config/loading.h"

/* The document of a source, with places; NULL after errors (which are in check). An empty document
 * is a null node. */
struct config_node *yaml_tree_read(struct config_check *check, const struct config_source *source,
                                   struct slice yaml);

/* The value of a placeholder, all of it at the placeholder's place. NULL when it is not YAML, which
 * is no error, or when a limit was hit, which is one. */
struct config_node *yaml_tree_read_value(struct config_check *check, struct config_place place,
                                         struct slice yaml);

#endif
