/*
 * jfr_names: makes names stable that a JVM generates anew in every run.
 *
 * Classes of lambdas, reflection and proxies, and libraries unpacked to temporary files, carry
 * numbers that differ between processes. As Pyroscope's server does with JFR, what differs is
 * replaced by "_", so that profiles of several processes, or of today and yesterday, add up.
 *
 * Owner: nothing is kept.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_FORMATS_JFR_NAMES_H
#define PROFCOL_CORE_FORMATS_JFR_NAMES_H

#include "core/base/slice.h"

/* The name is the first so many bytes of what it was, and then the ending. */
struct jfr_name {
    size_t kept;
    const char *ending;
};
struct jfr_name jfr_name_settled(struct slice name);

#endif
