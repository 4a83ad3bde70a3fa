/*
 * config_log: writes what is wrong with a configuration to the log of a process that starts or
 * runs, one line for each message.
 *
 * Owner: the report belongs to the caller.
 *
 * Thread: main.
 */
#ifndef PROFCOL_CORE_CONFIG_LOG_H
#define PROFCOL_CORE_CONFIG_LOG_H

/* report: from config_load, lines of "FILE:LINE:COLUMN: error: PATH: TEXT". */
void config_log(const char *report);

#endif
