/*
 * ottl_node_kinds: the kind of value that a node or path always has, as far as it is known at
 * start.
 *
 * Owner: constant tables.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_OTTL_OTTL_NODE_KINDS_H
#define PROFCOL_CORE_OTTL_OTTL_NODE_KINDS_H

#include "core/ottl/ottl_program.h"

enum { OTTL_KIND_UNKNOWN = -1 };

/* Return an enum ottl_kind, or OTTL_KIND_UNKNOWN. */
int ottl_path_kind(const struct ottl_path_row *row);
int ottl_node_kind(const struct ottl_node *node);
/* Returns the kind for messages: "an integer", "a text". */
const char *ottl_kind_name(enum ottl_kind kind);

#endif
