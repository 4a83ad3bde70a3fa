/*
 * jfr_names: makes generated names equal in all runs of a JVM.
 *
 * Classes of lambdas, reflection and proxies, and libraries unpacked to temporary files, have
 * numbers in their names that differ between processes. As in Pyroscope's server, these numbers are
 * replaced by "_", so that profiles of several processes or days add up.
 *
 * Owner: nothing is kept.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_FORMATS_JFR_NAMES_H
#define PROFCOL_CORE_FORMATS_JFR_NAMES_H

#include "core/base/slice.h"

/* The new name: the first `kept` bytes of the old one, then `ending`. */
struct jfr_name {
    size_t kept;
    const char *ending;
};
/* Returns the stable form of a name. */
struct jfr_name jfr_name_settled(struct slice name);

#endif
