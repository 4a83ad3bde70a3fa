/*
 * yaml_tree: reads a YAML document into a tree of nodes.
 *
 * It uses libyaml's events: its document API keeps no line numbers, and takes quadratic time for
 * nested flow collections, so depth is checked with each event. Anchors, aliases and merge keys
 * (`<<`) are resolved here; duplicate keys are errors.
 *
 * Owner: nodes live in the check's arena.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CONFIG_YAML_TREE_H
#define PROFCOL_CONFIG_YAML_TREE_H

#include "config/loading.h"

/* Parses the document of a source. Returns NULL after reporting errors to `check`. An empty
 * document gives a null node. */
struct config_node *yaml_tree_read(struct config_check *check, const struct config_source *source,
                                   struct slice yaml);

/* Parses the value of a placeholder; every node in it gets the placeholder's position. Returns NULL
 * if it is not YAML, which is no error, or if a limit was reached, which is reported as one. */
struct config_node *yaml_tree_read_value(struct config_check *check, struct config_place place,
                                         struct slice yaml);

#endif
