/*
 * jfr_map: where in a recording something with an id stands.
 *
 * Constants, classes and labels of a recording refer to each other by 64-bit ids that its sender
 * chose, so ids are hashed with the process' key. A place is a number that is not 0.
 *
 * Owner: who initialised it (all-zero, or with a budget, is valid and empty); free with
 * jfr_map_deinit.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_FORMATS_JFR_MAP_H
#define PROFCOL_CORE_FORMATS_JFR_MAP_H

#include <stddef.h>
#include <stdint.h>

struct budget;

struct jfr_entry {
    uint64_t id;
    uint32_t place; /* 0: a free slot */
    uint32_t built; /* for the owner: what it made of it, 0 at first */
};

struct jfr_map {
    struct budget *budget; /* charged with jfr_map_bytes; may be NULL */
    struct jfr_entry *entries;
    size_t capacity; /* a power of two, or 0 */
    size_t count;
};

void jfr_map_deinit(struct jfr_map *map);
/* What the next put allocates; 0: nothing. */
size_t jfr_map_growth(const struct jfr_map *map);
/* The last place of an id wins. */
void jfr_map_put(struct jfr_map *map, uint64_t id, uint32_t place);
/* NULL: there is none. Valid until the next put. */
struct jfr_entry *jfr_map_find(const struct jfr_map *map, uint64_t id);
static inline size_t jfr_map_bytes(const struct jfr_map *map)
{
    return map->capacity * sizeof *map->entries;
}

#endif
