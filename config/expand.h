/*
 * expand: replaces the placeholders in values.
 *
 * It follows the Collector's rules: ${env:X}, ${env:X:-default}, ${X}, ${file:path}, ${yaml:text};
 * innermost first; inserted text is expanded again; `$$` is a dollar sign, and an odd number of
 * dollar signs before `${` keeps it as text. If a value is a single placeholder, its text is read
 * as YAML and has the type found there; fields of text take the text unchanged. Keys are not
 * expanded. A variable that is not set gives a warning and null.
 *
 * Owner: new nodes live in the check's arena.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CONFIG_EXPAND_H
#define PROFCOL_CONFIG_EXPAND_H

#include "config/loading.h"

/* Expands all values below root, and returns the node that replaces root. */
struct config_node *config_expand(struct config_check *check, struct config_node *root);

#endif
