/*
 * telemetry: profcol's own metrics for Prometheus, on the Collector's port.
 *
 * GET /metrics in the text format 0.0.4, read-only, on a listener of its own
 * (service::telemetry::metrics, localhost:8888).
 *
 * Owner: main.
 *
 * Thread: made and freed on main, serves on worker 0.
 */
#ifndef PROFCOL_CORE_TELEMETRY_H
#define PROFCOL_CORE_TELEMETRY_H

#include "config/config.h"
#include "core/pipeline/component.h"

struct telemetry;

/* NULL with err set: the address cannot be had. When metrics are switched off: a telemetry that
 * does nothing. */
struct telemetry *telemetry_new(const struct config_telemetry *settings, struct process *process,
                                struct error *err);
/* On worker 0, before its loop ends. */
void telemetry_stop(struct telemetry *telemetry);
void telemetry_free(struct telemetry *telemetry);

#endif
