/*
 * type_names: the sample types that settings name, compared with those that profilers are known to
 * send.
 *
 * Owner: nothing is kept.
 *
 * Thread: one at a time, while the configuration is loaded.
 */
#ifndef PROFCOL_SPANJOIN_TYPE_NAMES_H
#define PROFCOL_SPANJOIN_TYPE_NAMES_H

/* Returns the sample type that was probably meant; NULL if the name is known, or like none that is
 * known: profilers may have types of their own. */
const char *type_name_suggest(const char *name);

/* The warning of a name with a suggestion: a format for both. */
#define TYPE_NAME_UNKNOWN                                                                          \
    "profilers send no samples of the type \"%s\" as far as is known; did you mean \"%s\"?"

#endif
