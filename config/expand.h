/*
 * expand: placeholders in values become what they stand for.
 *
 * The Collector's rules: ${env:X}, ${env:X:-default}, ${X}, ${file:path}, ${yaml:text}; innermost
 * first; what is inserted is expanded again; `$$` is a dollar sign, and an odd number of dollar
 * signs before `${` keeps it as text. A value that is one placeholder takes the type of what it
 * stands for, read as YAML, and fields that want text take that text as it is. Keys are not
 * expanded. A variable that is not set is a warning and null.
 *
 * Owner: new nodes live in the check's arena.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CONFIG_EXPAND_H
#define PROFCOL_CONFIG_EXPAND_H

#include "config/loading.h"

/* Expands everything below root and returns what root became. */
struct config_node *config_expand(struct config_check *check, struct config_node *root);

#endif
