/*
 * share: how much of the memory for requests the data of an exporter may take, for one signal.
 *
 * Exporters and connectors (graph.h) may hold half of the process's budget. Half of that is divided
 * into equal shares, one for each of their signals, which nothing else can use. The other half is a
 * common pool to borrow from. A borrower, with all its signals, may borrow as long as it then has
 * borrowed at most SHARE_BORROWER_FACTOR times what is left of the pool. So one takes at most two
 * thirds of the pool, and leaves the next one a third of what it found. Nothing is taken back. So
 * next to n dead backends, in whatever order they came, at least 1/3^n of the pool is left, and two
 * thirds of that can be borrowed. A borrower without others may borrow the whole pool.
 *
 * This is exact, for any number of workers: a loan is checked against all loans before it.
 *
 * Owner: the process owns the pool, a component its borrower and its shares.
 *
 * Thread: any; the figures are atomics. Limits and is_only change only while no worker runs. A
 * reservation within the share takes one atomic operation.
 */
#ifndef PROFCOL_CORE_PIPELINE_SHARE_H
#define PROFCOL_CORE_PIPELINE_SHARE_H

#include "core/base/budget.h"

enum { SHARE_BORROWER_FACTOR = 2 };

/* All-zero: there is nothing to borrow. */
struct share_pool {
    atomic_size_t lent_bytes;
    size_t limit_bytes;
};

struct share_borrower {
    struct share_pool *pool;
    atomic_size_t lent_bytes;
    bool is_only;
};

/* All-zero: has no limit. */
struct share {
    struct budget own;               /* what only this share can use */
    struct share_borrower *borrower; /* NULL: cannot borrow */
    atomic_size_t lent_bytes;        /* to this share */
};

/* Reserves size_bytes, as much of it as possible within the share, and borrows the rest:
 * *lent_out, which share_release needs. Returns false, and reserves nothing, if there is no
 * room. */
bool share_reserve(struct share *share, size_t size_bytes, size_t *lent_out);
/* Gives back size_bytes, of which lent_bytes were borrowed. */
void share_release(struct share *share, size_t size_bytes, size_t lent_bytes);
/* Returns the bytes that are reserved now, borrowed ones included. */
size_t share_used(const struct share *share);
/* Returns the bytes that could be reserved now if none were: the share, what it has borrowed, and
 * what it could borrow. 0: no limit. */
size_t share_limit(const struct share *share);

#endif
