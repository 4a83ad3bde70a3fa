/*
 * own_paths: paths of the join that OTTL does not have, so that a mistake in an expression can be
 * told better.
 *
 * Owner: constants.
 *
 * Thread: any.
 */
#ifndef PROFCOL_SPANJOIN_OWN_PATHS_H
#define PROFCOL_SPANJOIN_OWN_PATHS_H

/* Returns one of these paths that is in an expression, outside of what is quoted: "samples.sum".
 * NULL: there is none. */
const char *own_paths_find(const char *expression);

#endif
