/*
 * metadata_keys: the setting of this name, of components that merge only data whose requests had
 * the same values of these headers.
 *
 * Owner: texts are in the configuration's arena.
 *
 * Thread: one at a time, while the configuration is loaded.
 */
#ifndef PROFCOL_CORE_PIPELINE_METADATA_KEYS_H
#define PROFCOL_CORE_PIPELINE_METADATA_KEYS_H

#include "config/check.h"

/* For a component's `check`: makes the names lower case, reports those that are there twice, and
 * warns of those that no request has. key: of the list ("metadata_keys"). */
void metadata_keys_check(const struct config_strings *names, struct config_check *check,
                         const char *key);

#endif
