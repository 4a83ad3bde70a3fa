/*
 * ottl_time_format: times as text, by the directives of strptime that the Collector has.
 *
 * Of numbers, leading zeros and spaces do not count. A fraction of a second belongs to the point or
 * comma before it, and is absent if it is zero.
 *
 * Owner: plain data.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_OTTL_OTTL_TIME_FORMAT_H
#define PROFCOL_CORE_OTTL_OTTL_TIME_FORMAT_H

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/time_zone.h"

/* What a text says. */
struct ottl_time_text {
    int64_t local;   /* what clocks show, in seconds since 1970 */
    int64_t ns;      /* of the second */
    bool has_year;   /* or its year is 0 */
    bool has_offset; /* it names its zone */
    int32_t offset;  /* seconds east of UTC */
};

/* Returns false with err set if a directive is not known. */
bool ottl_time_check(struct slice format, struct error *err);
/* Reads a text. Returns false if it does not have the format, or there is no such time. */
bool ottl_time_read(struct slice format, struct slice text, struct ottl_time_text *out);
/* Appends a time (nanoseconds since 1970) as clocks of the zone show it; NULL: UTC. */
void ottl_time_print(struct slice format, int64_t ns, const struct time_zone *zone,
                     struct text *out);

/* Returns the year, month and so on that clocks of the zone show. */
struct tm ottl_time_parts(int64_t ns, const struct time_zone *zone);
/* Divides and rounds down, for times before 1970. */
int64_t ottl_time_divide(int64_t ns, int64_t unit);

#endif
