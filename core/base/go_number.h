/*
 * go_number: numbers in text, as Go's strconv reads them. The Collector converts attributes with
 * it.
 *
 * Owner: plain data.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_BASE_GO_NUMBER_H
#define PROFCOL_CORE_BASE_GO_NUMBER_H

#include "core/base/slice.h"

#include <stdbool.h>

/* ParseFloat: decimal and hexadecimal floats, Inf and NaN. Returns false if the text is something
 * else, or a number that is too large. */
bool go_parse_float(struct slice text, double *out);

#endif
