/*
 * held_state: the state of what waits at a node (held_traces.h, held_profiles.h).
 *
 * Owner: the node.
 *
 * Thread: the node's worker.
 */
#ifndef PROFCOL_TAIL_SAMPLING_HELD_STATE_H
#define PROFCOL_TAIL_SAMPLING_HELD_STATE_H

#include "core/base/index_table.h"
#include "core/base/list.h"
#include "core/pipeline/offer.h"

struct held_trace;
struct piece;

struct held_traces {
    int holder;          /* number in the table */
    struct list waiting; /* of struct held_trace, in the order of their arrival here */
    struct index_table by_id;
    struct held_trace **items; /* by number */
    uint32_t item_count, item_capacity;
    uint32_t *free_numbers;
    uint32_t free_count;
    uint64_t requests; /* number of the last one */
    /* Sampled, not sent yet: */
    struct piece *ready, *ready_last;
    uint32_t ready_spans;
    size_t ready_bytes;
    bool is_due;
    struct timer gather;
    struct offers offers;
    uint64_t lost; /* items */
};

#endif
