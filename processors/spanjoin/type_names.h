/*
 * type_names: the sample types that settings name, compared with those that profilers are known to
 * send.
 *
 * Owner: static texts, or the arena of the call.
 *
 * Thread: one at a time, while the configuration is loaded.
 */
#ifndef PROFCOL_SPANJOIN_TYPE_NAMES_H
#define PROFCOL_SPANJOIN_TYPE_NAMES_H

#include "core/base/arena.h"

#include <stdbool.h>

/* Whether profilers are known to send samples of this type. */
bool type_name_is_known(const char *name);
/* Returns the sample type that was probably meant; NULL if the name is known, or like none that is
 * known: profilers may have types of their own. With a colon it is none: the unit is not part of a
 * type. */
const char *type_name_suggest(struct arena *arena, const char *name);

/* The warning of a name with a suggestion: a format for both. */
#define TYPE_NAME_UNKNOWN                                                                          \
    "profilers send no samples of the type \"%s\" as far as is known; did you mean \"%s\"?"

#endif
