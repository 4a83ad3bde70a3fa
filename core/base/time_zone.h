/*
 * time_zone: the zones of the system's database ("Europe/Berlin"), read from its files (RFC 8536).
 *
 * Owner: a zone lives in the arena that it was loaded to.
 *
 * Thread: read-only after loading.
 */
#ifndef PROFCOL_CORE_BASE_TIME_ZONE_H
#define PROFCOL_CORE_BASE_TIME_ZONE_H

#include "core/base/arena.h"
#include "core/base/error.h"

struct time_zone;

/* What is valid in a zone from one change to the next. */
struct time_zone_period {
    int64_t start, end; /* seconds since 1970; INT64_MIN, INT64_MAX: no change before or after */
    int32_t offset;     /* seconds east of UTC */
    const char *name;   /* "CEST" */
};

/* Loads a zone. Returns NULL with err set if there is none of this name, or its file is damaged. */
const struct time_zone *time_zone_load(struct slice name, struct arena *arena, struct error *err);
/* Makes a zone without changes in memory of time_zone_size() bytes. Its name is empty. */
struct time_zone *time_zone_fixed(int32_t offset, void *memory);
size_t time_zone_size(void);
/* Returns what is valid at a time (seconds since 1970). */
struct time_zone_period time_zone_at(const struct time_zone *zone, int64_t seconds);
/* Returns the time (seconds since 1970) at which clocks of the zone show `local`, which is the same
 * as if it were in UTC. Of two such times, or none, it returns the one that Go's time.Date does. */
int64_t time_zone_from_local(const struct time_zone *zone, int64_t local);

#endif
