/*
 * ottl_paths: the paths of each context, one row each, and the enums.
 *
 * ottl_profile_paths.c has those of profiles and samples, ottl_paths.c the others.
 *
 * Owner: constant tables.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_OTTL_OTTL_PATHS_H
#define PROFCOL_CORE_OTTL_OTTL_PATHS_H

#include "core/ottl/ottl_path.h"

/* The paths of profiles and samples, ended by a row without a name. */
extern const struct ottl_path_row ottl_profile_paths[];

/* Returns the row of a path in a context; NULL: there is none. */
const struct ottl_path_row *ottl_path_find(enum ottl_context context, struct slice name);
/* Returns the name of the context's path that was probably meant; NULL: none is close. */
const char *ottl_path_suggest(enum ottl_context context, const char *name);
/* Finds the value of an enum, which only spans and their events have. */
bool ottl_enum_find(struct slice symbol, int64_t *out);
/* Returns the symbol that is most like the name; NULL if none is. */
const char *ottl_enum_suggest(const char *name);

#endif
