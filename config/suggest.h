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

/* Returns the name closest to the written text, or the only one that begins with it, for "did you
 * mean"; NULL if there is none. */
const char *config_suggest(const char *written, const char *const *names, size_t count);

#endif
