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

struct process;
struct reload;
struct telemetry;

/* Call it when the process's graph runs. watch: reload_look also looks for changed files. */
struct reload *reload_new(struct process *process, struct telemetry *telemetry,
                          struct config_sources *sources, bool watch);
/* Loads the configuration again and applies it, unless it has errors or changes nothing. */
void reload_now(struct reload *reload);
/* Does what has become due. Returns the nanoseconds after which it shall be called again. */
uint64_t reload_look(struct reload *reload);
/* Frees everything, after graph_free. NULL is allowed. */
void reload_free(struct reload *reload);

#endif
