/*
 * telemetry: what service::telemetry describes while the process runs: serves profcol's own metrics
 * to Prometheus, on the Collector's port, and pushes them where periodic readers say so
 * (telemetry_push.h). A reload changes it, together with the log.
 *
 * It answers GET /metrics in the text format 0.0.4, on a listener of its own
 * (service::telemetry::metrics, localhost:8888).
 *
 * Owner: main. Copies what it needs of the settings.
 *
 * Thread: all functions on main; serves and pushes on worker 0.
 */
#ifndef PROFCOL_CORE_TELEMETRY_H
#define PROFCOL_CORE_TELEMETRY_H

#include "config/config.h"
#include "core/pipeline/component.h"
#include "core/process_resource.h"

struct telemetry;
struct telemetry_change;

/* Starts listening; clients wait until telemetry_start. Returns NULL, with err set, if the address
 * cannot be used. If metrics are switched off, returns a telemetry that does nothing. Takes over
 * the resource. */
struct telemetry *telemetry_new(const struct config_telemetry *settings,
                                struct process_resource *resource, struct process *process,
                                struct error *err);

/* Begins to serve and to push. Call it once, when the components run: while they are made, nothing
 * may read what their gauges show. */
void telemetry_start(struct telemetry *telemetry);

/* For a reload: makes what the settings need and the telemetry lacks: opens the files of the log
 * and the listener, and makes readers. Of what runs, only the level of metrics changes, because
 * components that are made now ask for it. Returns NULL, with err set and nothing changed, if
 * something cannot be used. */
struct telemetry_change *telemetry_prepare(struct telemetry *telemetry,
                                           const struct config_telemetry *settings,
                                           struct error *err);
/* Lets components that are made next listen where the metrics are no longer served, until
 * server_withdraw_addresses. */
void telemetry_offer_address(const struct telemetry_change *change);
/* Puts the change into use and frees it: log lines that begin from now on, the resource, the
 * listener and the readers. What has the same settings goes on. What is replaced or removed ends:
 * a listener finishes its requests, a periodic reader pushes a last time. */
void telemetry_apply(struct telemetry_change *change);
/* Frees a change that is not used; all is as before telemetry_prepare. */
void telemetry_discard(struct telemetry_change *change);
/* Frees what has ended since. Returns whether something still ends. */
bool telemetry_reap(struct telemetry *telemetry);

/* Pushes the last metrics, waits until they are answered or a time limit ends, and stops serving;
 * it may never have been started. Call it when the components are stopped, before the loops end. */
void telemetry_stop(struct telemetry *telemetry);
/* Frees the telemetry; call it after telemetry_stop. */
void telemetry_free(struct telemetry *telemetry);

#endif
