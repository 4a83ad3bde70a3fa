/*
 * reload: loads the configuration again, on SIGHUP or when a file changes, and applies it.
 *
 * A configuration with errors changes nothing; its errors are logged, counted and shown by the
 * health status. docs/architecture.md, Reload, describes what a reload does.
 *
 * Owner: run. The first configuration belongs to the caller; the reload frees those that it loads.
 *
 * Thread: main.
 */
#ifndef PROFCOL_CORE_RELOAD_H
#define PROFCOL_CORE_RELOAD_H

#include "core/config_sources.h"

struct graph;
struct process;
struct reload;

/* watch: reload_look also looks for changed files. config: what the graph was made from. */
struct reload *reload_new(struct process *process, struct graph *graph, const struct config *config,
                          struct config_sources *sources, bool watch);
/* Loads the configuration again and applies it, unless it has errors or changes nothing. */
void reload_now(struct reload *reload);
/* Call it now and then, at most a few seconds apart: does what has become due. */
void reload_look(struct reload *reload);
/* Frees everything, after graph_free. NULL is allowed. */
void reload_free(struct reload *reload);

#endif
