/*
 * load: config_load with other inputs (environment and files), for tests and fuzzers.
 *
 * Owner: the caller, as with config_load (config.h).
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CONFIG_LOAD_H
#define PROFCOL_CONFIG_LOAD_H

#include "config/config.h"
#include "config/inputs.h"

/* Like config_load and config_load_text, with these inputs. */
struct config *config_load_from(const struct config_inputs *inputs,
                                const struct config_type *const *types, const char *const *uris,
                                size_t uri_count, struct config_options options,
                                struct text *report);
struct config *config_load_text_from(const struct config_inputs *inputs,
                                     const struct config_type *const *types, const char *name,
                                     struct slice yaml, struct text *report);

#endif
