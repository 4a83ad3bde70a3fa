/*
 * profile_kinds: the sample types of the profiles that the extension serves, as Go names them, and
 * the page that lists the profiles.
 *
 * Owner: nobody; constant tables.
 *
 * Thread: any.
 */
#ifndef PROFCOL_EXTENSIONS_PPROF_PROFILE_KINDS_H
#define PROFCOL_EXTENSIONS_PPROF_PROFILE_KINDS_H

#include "extensions/pprof/own_profile.h"

extern const struct own_profile_kind profile_kind_cpu;
extern const struct own_profile_kind profile_kind_heap;
extern const struct own_profile_kind profile_kind_allocs;
extern const struct own_profile_kind profile_kind_mutex;

extern const char profile_kinds_page[];

#endif
