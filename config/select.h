/*
 * select: leaves of a configuration only the pipelines of some signals, and what they use
 * (--signals).
 *
 * So a Collector's file runs that has pipelines, components and connectors which profcol does not
 * know. What is left out is not read at all: neither its settings nor its placeholders. One warning
 * names all of it. A connector between a pipeline that stays and one that does not is left out, and
 * so is a pipeline that had nothing else on one of its sides. Of service::extensions, those of
 * unknown type leave.
 *
 * Owner: the tree; new nodes live in the check's arena.
 *
 * Thread: one at a time, while the configuration is loaded.
 */
#ifndef PROFCOL_CONFIG_SELECT_H
#define PROFCOL_CONFIG_SELECT_H

#include "config/loading.h"

/* Changes the merged tree, before its placeholders are expanded. signals: a bit 1 << CONFIG_TRACES
 * and so on for each that stays. Reports an error if no pipeline is left. */
void config_select(struct config_check *check, struct config_node *root, unsigned signals);

#endif
