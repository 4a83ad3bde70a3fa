/*
 * lost_ids: the span ids whose totals of samples were evicted before their span arrived.
 *
 * Such a span has more samples than the index knows of, and says so. Ids are remembered for one to
 * two windows, as bits at places that follow from their hash. So none is missed, and few others are
 * taken for one: 1 % after as many evictions as the index has room for entries. Memory is allocated
 * with the first eviction, and freed when nothing was noted for two windows.
 *
 * Owner: a span_shard.
 *
 * Thread: whoever holds the shard's lock.
 */
#ifndef PROFCOL_CORE_DATA_LOST_IDS_H
#define PROFCOL_CORE_DATA_LOST_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All-zero has none. */
struct lost_ids {
    uint64_t *newer;   /* bits; NULL: none */
    uint64_t *older;   /* likewise, of the window before */
    uint64_t since_ns; /* of `newer`; monotonic */
    uint32_t size;     /* bits of each; a power of two */
};

void lost_ids_deinit(struct lost_ids *lost);
/* Notes an id by its hash. room: number of entries whose ids may be noted in a window. */
void lost_ids_add(struct lost_ids *lost, uint32_t hash, uint64_t room, uint64_t now_ns,
                  uint64_t window_ns);
/* Internals of lost_ids_has. */
bool lost_ids_find(struct lost_ids *lost, uint32_t hash, uint64_t now_ns, uint64_t window_ns);
/* Whether an id was noted within the window. */
static inline bool lost_ids_has(struct lost_ids *lost, uint32_t hash, uint64_t now_ns,
                                uint64_t window_ns)
{
    return lost->size > 0 && lost_ids_find(lost, hash, now_ns, window_ns);
}
/* Returns the memory in bytes, without the struct itself. */
size_t lost_ids_memory(const struct lost_ids *lost);

#endif
