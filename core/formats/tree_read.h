/*
 * tree_read: reads Pyroscope's two binary formats of a flame graph.
 *
 * Both are nodes in depth-first order, each as varint(size of the name), name, varint(value),
 * varint(number of children). In a tree, a name is one frame, and the value is the frame's own
 * value; in a trie, a name is the next piece of a folded stack, split anywhere. A body that ends
 * before its last node, or continues after it, is an error.
 *
 * Owner: nothing is kept.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_FORMATS_TREE_READ_H
#define PROFCOL_CORE_FORMATS_TREE_READ_H

#include "core/formats/stacks.h"

/* Add the body to the builder's resource. Return true even if the builder is full
 * (profiles_builder_state). */
bool tree_read(struct profiles_builder *builder, struct slice body,
               const struct stacks_options *options, struct error *err);
bool trie_read(struct profiles_builder *builder, struct slice body,
               const struct stacks_options *options, struct error *err);

#endif
