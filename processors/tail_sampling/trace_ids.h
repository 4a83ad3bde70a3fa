/*
 * trace_ids: finds items by their trace id.
 *
 * Owner: the items are the caller's, and have a struct trace_id as a member; remove one before you
 * free it.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_TAIL_SAMPLING_TRACE_IDS_H
#define PROFCOL_TAIL_SAMPLING_TRACE_IDS_H

#include "core/base/index_table.h"
#include "core/data/otlp.h"

struct trace_id {
    uint8_t bytes[TRACE_ID_SIZE];
    uint32_t hash;
    uint32_t number; /* in the table */
};

/* All-zero is empty. */
struct trace_ids {
    struct index_table by_hash;
    struct trace_id **items; /* by number; NULL: free */
    uint32_t item_count, item_capacity;
    uint32_t *free_numbers;
    uint32_t free_count;
};

/* Returns a keyed hash; its lower half is the one that the table uses. */
uint64_t trace_id_hash(const uint8_t *id);
/* Returns the item with this id of 16 bytes, or NULL. */
struct trace_id *trace_ids_find(const struct trace_ids *ids, const uint8_t *id, uint32_t hash);
/* Adds an item with this id, which is not in the table. */
void trace_ids_add(struct trace_ids *ids, struct trace_id *item, const uint8_t *id, uint32_t hash);
void trace_ids_remove(struct trace_ids *ids, const struct trace_id *item);
/* Frees the table, not its items. */
void trace_ids_deinit(struct trace_ids *ids);

#endif
