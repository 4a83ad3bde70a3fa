/*
 * build_info: what `profcol version` prints, for reports of problems.
 *
 * No date: the same source and the same compiler give the same program.
 *
 * Owner: the caller owns the text.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_BUILD_INFO_H
#define PROFCOL_CORE_BUILD_INFO_H

#include "core/base/text.h"

/* Prints the version, the commit, the compiler and the libraries, a line each. */
void build_info_print(struct text *out);

#endif
