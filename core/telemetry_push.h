/*
 * telemetry_push: pushes profcol's own metrics as OTLP, for one periodic reader of
 * service::telemetry::metrics.
 *
 * It sends one request per interval and keeps nothing for later: values are cumulative, or count
 * from the last push that succeeded, so what a failed push had is in the next one. While a request
 * is under way, no other begins. The log says when pushes begin to fail and when they work again;
 * profcol_telemetry_pushes counts them.
 *
 * Owner: the telemetry. The push copies settings and resource.
 *
 * Thread: created, waited for, asked and freed on main; start, last and stop on worker 0.
 */
#ifndef PROFCOL_CORE_TELEMETRY_PUSH_H
#define PROFCOL_CORE_TELEMETRY_PUSH_H

#include "config/model.h"
#include "core/base/error.h"

struct process;
struct telemetry_push;

/* start_ns: since 1970, when counting began. Returns NULL, with err set, if the endpoint, a header
 * or a file of certificates cannot be used. */
struct telemetry_push *telemetry_push_new(const struct config_push *settings,
                                          struct process *process,
                                          const struct config_pairs *resource, uint64_t start_ns,
                                          struct error *err);
/* Whether the push was made with these settings. */
bool telemetry_push_has(const struct telemetry_push *push, const struct config_push *settings);
/* The first push is one interval from now. Deltas count from now. */
void telemetry_push_start(struct telemetry_push *push);
/* Begins the last push; a request under way is given up for it. */
void telemetry_push_last(struct telemetry_push *push);
/* Waits for the end of the last push, at most its time limit. */
void telemetry_push_wait(struct telemetry_push *push);
/* Whether the last push has ended, so that the wait would return at once. */
bool telemetry_push_is_done(struct telemetry_push *push);
/* Closes connections. Call it after the last push, or before the start. */
void telemetry_push_stop(struct telemetry_push *push);
void telemetry_push_free(struct telemetry_push *push);

#endif
