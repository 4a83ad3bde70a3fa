/*
 * process_log: the log as service::telemetry describes it.
 *
 * Owner: the caller, of the result.
 *
 * Thread: main.
 */
#ifndef PROFCOL_CORE_PROCESS_LOG_H
#define PROFCOL_CORE_PROCESS_LOG_H

#include "config/model.h"
#include "core/base/log.h"
#include "core/process_resource.h"

/* Opens the files. Returns NULL, with err set, if one cannot be opened. Use it with log_use. */
struct log_setup *process_log_new(const struct config_telemetry *settings,
                                  const struct process_resource *resource, struct error *err);

#endif
