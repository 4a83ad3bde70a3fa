#include "core/formats/id_map.h"

#include "core/base/budget.h"
#include "core/base/hash.h"
#include "core/base/memory.h"

#include <assert.h>

void id_map_deinit(struct id_map *map)
{
    free(map->entries);
    budget_release(map->budget, id_map_bytes(map));
    *map = (struct id_map){.budget = map->budget};
}

/* Returns the slot of an id, or the free slot where it would be added. */
static struct id_entry *slot_of(const struct id_map *map, uint64_t id)
{
    assert(map->count < map->capacity); /* so the search ends at a free slot */
    size_t mask = map->capacity - 1;
    size_t at = hash_u64(id) & mask;
    while (map->entries[at].place != 0 && map->entries[at].id != id)
        at = (at + 1) & mask;
    return &map->entries[at];
}

static size_t next_capacity(const struct id_map *map)
{
    if (map->count < map->capacity / 4 * 3)
        return map->capacity;
    return map->capacity ? map->capacity * 2 : 64;
}

size_t id_map_growth(const struct id_map *map)
{
    size_t capacity = next_capacity(map);
    return capacity == map->capacity ? 0 : capacity * sizeof *map->entries;
}

static void grow(struct id_map *map)
{
    struct id_map larger = {
        .budget = map->budget, .capacity = next_capacity(map), .count = map->count};
    budget_charge(map->budget, id_map_bytes(&larger) - id_map_bytes(map));
    assert(larger.capacity > map->capacity && (larger.capacity & (larger.capacity - 1)) == 0);
    larger.entries = memory_zalloc(id_map_bytes(&larger));
    for (size_t i = 0; i < map->capacity; i++)
        if (map->entries[i].place != 0)
            *slot_of(&larger, map->entries[i].id) = map->entries[i];
    free(map->entries);
    *map = larger;
}

void id_map_put(struct id_map *map, uint64_t id, uint32_t place)
{
    assert(place != 0);
    if (id_map_growth(map) > 0)
        grow(map);
    struct id_entry *entry = slot_of(map, id);
    map->count += entry->place == 0;
    *entry = (struct id_entry){.id = id, .place = place};
}

struct id_entry *id_map_find(const struct id_map *map, uint64_t id)
{
    if (map->count == 0)
        return NULL;
    struct id_entry *entry = slot_of(map, id);
    return entry->place != 0 ? entry : NULL;
}
