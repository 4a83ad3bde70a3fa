#include "core/data/lost_ids.h"

#include "core/base/memory.h"

#include <stdlib.h>

enum {
    WORD = 64,
    SIZE_MIN = 1024,
    SIZE_MAX_LOG = 28,
    BITS_PER_ID = 16, /* with two places each, 1.4 % of them are set by chance */
};

void lost_ids_deinit(struct lost_ids *lost)
{
    free(lost->newer);
    free(lost->older);
    lost->newer = lost->older = NULL;
    lost->size = 0;
}

static uint32_t size_for(uint64_t room)
{
    uint32_t size = SIZE_MIN;
    while (size < UINT32_C(1) << SIZE_MAX_LOG && size / BITS_PER_ID < room)
        size *= 2;
    return size;
}

/* Forgets what was noted more than a window before the last one. */
static void forget_old(struct lost_ids *lost, uint64_t now_ns, uint64_t window_ns)
{
    uint64_t age_ns = now_ns > lost->since_ns ? now_ns - lost->since_ns : 0;
    if (lost->size == 0 || age_ns <= window_ns)
        return;
    if (age_ns / 2 > window_ns) {
        lost_ids_deinit(lost);
        return;
    }
    uint64_t *oldest = lost->older;
    lost->older = lost->newer;
    lost->newer = NULL;
    lost->since_ns += window_ns;
    free(oldest);
}

/* Returns two places of an id, the second one in the upper half. Hashes of one shard may have bits
 * in common. */
static uint64_t places_of(uint32_t hash)
{
    uint64_t mixed = hash * UINT64_C(0x9e3779b97f4a7c15);
    return mixed ^ mixed >> 29;
}

static bool is_set(const uint64_t *bits, uint32_t place)
{
    return bits[place / WORD] >> place % WORD & 1;
}

static bool has(const struct lost_ids *lost, const uint64_t *bits, uint64_t places)
{
    uint32_t first = (uint32_t)places & (lost->size - 1);
    uint32_t second = (uint32_t)(places >> 32) & (lost->size - 1);
    return bits && is_set(bits, first) && is_set(bits, second);
}

static void set(uint64_t *bits, uint32_t place)
{
    bits[place / WORD] |= UINT64_C(1) << place % WORD;
}

void lost_ids_add(struct lost_ids *lost, uint32_t hash, uint64_t room, uint64_t now_ns,
                  uint64_t window_ns)
{
    forget_old(lost, now_ns, window_ns);
    if (lost->size == 0) {
        lost->size = size_for(room);
        lost->since_ns = now_ns;
    }
    if (!lost->newer)
        lost->newer = memory_zalloc(lost->size / WORD * sizeof *lost->newer);
    uint64_t places = places_of(hash);
    set(lost->newer, (uint32_t)places & (lost->size - 1));
    set(lost->newer, (uint32_t)(places >> 32) & (lost->size - 1));
}

bool lost_ids_find(struct lost_ids *lost, uint32_t hash, uint64_t now_ns, uint64_t window_ns)
{
    forget_old(lost, now_ns, window_ns);
    uint64_t places = places_of(hash);
    return lost->size > 0 && (has(lost, lost->newer, places) || has(lost, lost->older, places));
}

size_t lost_ids_memory(const struct lost_ids *lost)
{
    size_t each = lost->size / WORD * sizeof *lost->newer;
    return (lost->newer ? each : 0) + (lost->older ? each : 0);
}
