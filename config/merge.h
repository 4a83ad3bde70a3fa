/*
 * merge: merges the trees of several sources, left to right.
 *
 * As in the Collector, maps are merged key by key. Any other value (also a list or null) is
 * replaced by the later one.
 *
 * Owner: the result shares nodes with both trees.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CONFIG_MERGE_H
#define PROFCOL_CONFIG_MERGE_H

#include "config/tree.h"

/* Returns the merged tree. Changes `earlier`, which may be NULL. */
struct config_node *config_merge(struct arena *arena, struct config_node *earlier,
                                 struct config_node *later);

/* Returns a tree in which each key of the outermost map that is a path
 * ("processors::batch::timeout") is replaced by nested maps. */
struct config_node *config_unfold_paths(struct arena *arena, struct config_node *root);

#endif
