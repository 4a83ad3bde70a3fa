/*
 * id_map: a hash table from the ids of records to their places, and to the numbers of the entries
 * built from them.
 *
 * The sender of a profile chooses the ids, so they are hashed with the process' key. A place is any
 * number other than 0.
 *
 * Owner: whoever initialised it (all-zero, or with a budget, is valid and empty); free it with
 * id_map_deinit.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_FORMATS_ID_MAP_H
#define PROFCOL_CORE_FORMATS_ID_MAP_H

#include <stddef.h>
#include <stdint.h>

struct budget;

struct id_entry {
    uint64_t id;
    uint32_t place; /* 0: a free slot */
    uint32_t built; /* free for the owner: number of the entry built from the record; 0 at first */
};

struct id_map {
    struct budget *budget; /* charged with id_map_bytes; may be NULL */
    struct id_entry *entries;
    size_t capacity; /* a power of two, or 0 */
    size_t count;
};

/* Frees the map and releases its charge; it is empty again. */
void id_map_deinit(struct id_map *map);
/* Returns the number of bytes that the next id_map_put allocates; 0 if none. */
size_t id_map_growth(const struct id_map *map);
/* Stores the place of an id; replaces an earlier one. */
void id_map_put(struct id_map *map, uint64_t id, uint32_t place);
/* Returns the entry of an id, valid until the next id_map_put; NULL if there is none. */
struct id_entry *id_map_find(const struct id_map *map, uint64_t id);
/* Returns the memory of the map in bytes. */
static inline size_t id_map_bytes(const struct id_map *map)
{
    return map->capacity * sizeof *map->entries;
}

#endif
