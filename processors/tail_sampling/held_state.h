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
#include "core/pipeline/large_batches.h"
#include "core/pipeline/offer.h"
#include "processors/tail_sampling/linked_samples.h"
#include "processors/tail_sampling/profile_reader.h"

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
};

struct held_profiles {
    struct profile_reader reader;
    struct list waiting; /* of struct held_profile, oldest first */
    struct list due;     /* those that leave next */
    struct list working; /* those in `leaving` */
    struct large_batches leaving;
    struct linked_result applied; /* what `leaving` did to the batch that is sent next */
    struct linked_result arrived; /* the same of one that did not wait */
    size_t leaving_bytes;         /* of `due`, `working` and those not accepted yet */
    struct offers offers;
};

#endif
