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

/* Takes what a function of ottl.h returned for the text at `key`: a program, or NULL and an error.
 * Reports the error, or else what the program warns of, and frees the program. Returns whether it
 * was compiled. */
bool ottl_check_program(struct config_check *check, const char *key, struct ottl_program *program,
                        const struct error *err);

/* Reports at `key` what is wrong with a pattern (RE2). Returns whether it is valid. */
bool ottl_check_pattern(struct config_check *check, const char *key, const char *pattern);

#endif
