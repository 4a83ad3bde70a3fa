/*
 * telemetry: serves profcol's own metrics to Prometheus, on the Collector's port.
 *
 * It answers GET /metrics in the text format 0.0.4, on a listener of its own
 * (service::telemetry::metrics, localhost:8888).
 *
 * Owner: main.
 *
 * Thread: created and freed on main; serves on worker 0.
 */
#ifndef PROFCOL_CORE_TELEMETRY_H
#define PROFCOL_CORE_TELEMETRY_H

#include "config/config.h"
#include "core/pipeline/component.h"

struct telemetry;

/* Starts listening. Returns NULL, with err set, if the address cannot be used. If metrics are
 * switched off, returns a telemetry that does nothing. */
struct telemetry *telemetry_new(const struct config_telemetry *settings, struct process *process,
                                struct error *err);
/* Stops serving. Call it on worker 0 before its loop ends. */
void telemetry_stop(struct telemetry *telemetry);
/* Frees the telemetry; call it after telemetry_stop. */
void telemetry_free(struct telemetry *telemetry);

#endif
