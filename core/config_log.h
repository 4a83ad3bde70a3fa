/*
 * config_log: writes what is wrong with a configuration to the log of a process that starts or
 * runs, one line for each message; and what of it is not used.
 *
 * Owner: the report belongs to the caller.
 *
 * Thread: main.
 */
#ifndef PROFCOL_CORE_CONFIG_LOG_H
#define PROFCOL_CORE_CONFIG_LOG_H

struct config;

/* report: from config_load, lines of "FILE:LINE:COLUMN: error: PATH: TEXT". */
void config_log(const char *report);
/* Tells which components are not started, because nothing uses them. */
void config_log_unused(const struct config *config);

#endif
