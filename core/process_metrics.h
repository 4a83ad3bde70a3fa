/*
 * process_metrics: the metrics of the process itself (time, memory), and `target_info`, whose
 * labels are its resource.
 *
 * Owner: the telemetry.
 *
 * Thread: created and freed on main; the registry reads values on the thread that prints.
 */
#ifndef PROFCOL_CORE_PROCESS_METRICS_H
#define PROFCOL_CORE_PROCESS_METRICS_H

#include "config/field.h"
#include "core/pipeline/component.h"

struct process_metrics;

/* Adds all but target_info to the registry of the process. */
struct process_metrics *process_metrics_new(struct process *process);
/* Shows the resource, which must live until the next one is shown, in place of the one before. */
void process_metrics_show_resource(struct process_metrics *own,
                                   const struct config_pairs *resource);
/* Removes them from the registry. */
void process_metrics_free(struct process_metrics *own);

#endif
