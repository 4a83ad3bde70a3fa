/*
 * suggest: the name that was probably meant.
 *
 * Owner: nothing is kept.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CONFIG_SUGGEST_H
#define PROFCOL_CONFIG_SUGGEST_H

#include <stddef.h>

/* Closest of names to what was written, for "did you mean"; NULL when none is near. */
const char *config_suggest(const char *written, const char *const *names, size_t count);

#endif
