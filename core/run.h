/*
 * run: the process from a checked configuration to a drained end.
 *
 * Owner: the configuration stays the caller's; everything else is made and freed within.
 *
 * Thread: main. Blocks until SIGINT or SIGTERM; the workers are threads of their own.
 */
#ifndef PROFCOL_CORE_RUN_H
#define PROFCOL_CORE_RUN_H

#include "config/config.h"

struct run_options {
    unsigned workers;         /* 0: one per core */
    int64_t drain_timeout_ns; /* after a signal; what remains then is counted, logged and lost */
};

/* The process' exit status: 0 after a clean end, 1 when it could not start or could not deliver
 * everything in time. */
int run(const struct config *config, const struct run_options *options);

#endif
