/*
 * join_pipelines: warnings about the pipelines around a join, in which it joins less than it could,
 * or nothing.
 *
 * Owner: the configuration.
 *
 * Thread: one at a time, while the configuration is loaded.
 */
#ifndef PROFCOL_SPANJOIN_JOIN_PIPELINES_H
#define PROFCOL_SPANJOIN_JOIN_PIPELINES_H

#include "processors/spanjoin/spanjoin_settings.h"

/* Call it when all settings are read. */
void join_pipelines_check(const struct spanjoin_settings *settings, struct config_check *check);

#endif
