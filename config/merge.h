/*
 * merge: several sources become one tree, left to right.
 *
 * As the Collector does it: maps are merged key by key, anything else (lists too, and null) is
 * replaced by the later one.
 *
 * Owner: the result shares nodes with both.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CONFIG_MERGE_H
#define PROFCOL_CONFIG_MERGE_H

#include "config/tree.h"

/* earlier may be NULL. */
struct config_node *config_merge(struct arena *arena, struct config_node *earlier,
                                 struct config_node *later);

/* The keys of the outermost map that are paths, "processors::batch::timeout", become the maps that
 * they stand for. */
struct config_node *config_unfold_paths(struct arena *arena, struct config_node *root);

#endif
