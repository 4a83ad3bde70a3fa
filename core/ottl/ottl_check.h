/*
 * ottl_check: reports what is wrong with a text of OTTL in a configuration, at its place in the
 * file.
 *
 * Owner: nothing is kept.
 *
 * Thread: one at a time, while the configuration is loaded.
 */
#ifndef PROFCOL_CORE_OTTL_OTTL_CHECK_H
#define PROFCOL_CORE_OTTL_OTTL_CHECK_H

#include "config/check.h"
#include "core/ottl/ottl.h"

/* Reports an error of a text at `key`, which a function of ottl.h has set; `limits` follows it. */
void ottl_check_error(struct config_check *check, const char *key, const struct error *err,
                      const char *limits);

/* Takes what a function of ottl.h returned for the text at `key`: a program, or NULL and an error.
 * Reports the error, or else what the program warns of, and frees the program. Returns whether it
 * was compiled. */
bool ottl_check_program(struct config_check *check, const char *key, struct ottl_program *program,
                        const struct error *err);

/* Finds the context that a setting `context` at `key` names, which must be one of a set of contexts
 * (OTTL_BIT). Otherwise reports an error, which ends with `limits`, and returns false. */
bool ottl_check_context(struct config_check *check, const char *key, const char *name,
                        unsigned contexts, const char *limits, enum ottl_context *out);

/* Reports at `key` what is wrong with a pattern (RE2). Returns whether it is valid. */
bool ottl_check_pattern(struct config_check *check, const char *key, const char *pattern);

#endif
