/*
 * run: runs the process from a checked configuration until everything is drained.
 *
 * Owner: the configuration belongs to the caller; run() creates and frees everything else.
 *
 * Thread: main. Blocks until SIGINT or SIGTERM; the workers are threads of their own.
 */
#ifndef PROFCOL_CORE_RUN_H
#define PROFCOL_CORE_RUN_H

#include "core/config_sources.h"

struct run_options {
    unsigned workers;         /* 0: one per core */
    int64_t drain_timeout_ns; /* time to drain after a signal; data that remains then is counted,
                                 logged and lost */
    bool watch;               /* reload the configuration when one of its files changes */
};

/* Runs until SIGINT or SIGTERM; SIGHUP loads the configuration again from its sources. Returns the
 * exit status of the process: 0 after a clean end, 1 if it could not start or could not deliver
 * everything in time. warnings: the report of the configuration, for the log. */
int run(const struct config *config, const char *warnings, struct config_sources *sources,
        const struct run_options *options);

#endif
