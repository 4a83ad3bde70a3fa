/*
 * budget: how many bytes something may hold, shared by all workers.
 *
 * Memory for data from outside (bodies, decompressed output, held requests) is reserved before it
 * grows; if the reservation fails, the request is refused. Arenas of an admitted request charge the
 * budget without a reservation: the request bounds their size, and it was admitted only because
 * there was room for them (core/data/unfold.h).
 *
 * A budget may have a parent, and is then the account of one source (source_accounts.h): what it
 * holds counts at both. An account reserves only up to BUDGET_ACCOUNT_FACTOR times what is free at
 * its parent afterwards (dynamic thresholds, Choudhury and Hahne 1998). So one source alone gets
 * four fifths of the parent, two get four ninths each, and there is always room for a source that
 * holds little: the source that holds most is refused first, and no source waits for a turn.
 *
 * What hogs hold is not taken from them, and what is charged without asking comes out of what they
 * leave. So there is a spare quarter of the limit above it. An account may use it while it holds at
 * most an eighth of the limit, and no more than is left of it. Hogs that come one after another
 * leave least to the next source: one leaves it 16 % of the limit, two 12 %, three 8 %, four 4 %,
 * and each further one half as much. Memory that was charged without asking, and one reservation
 * for each further worker that reserves at the same moment, may reduce this.
 *
 * Owner: the process or a component.
 *
 * Thread: any. A call takes one atomic operation, two with a parent.
 */
#ifndef PROFCOL_CORE_BASE_BUDGET_H
#define PROFCOL_CORE_BASE_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    BUDGET_ACCOUNT_FACTOR = 4,
    BUDGET_SPARE_PART = 4,         /* of the limit, above it */
    BUDGET_SPARE_ACCOUNT_PART = 8, /* of the limit: what an account holds that uses the spare */
};

struct budget {
    atomic_size_t used_bytes;
    size_t limit_bytes;    /* 0: no limit; unused with a parent */
    struct budget *parent; /* NULL: none; has none itself */
};

/* Reserves size_bytes. Returns false, and reserves nothing, if this would exceed the limit. NULL
 * has no limit: true. */
bool budget_reserve(struct budget *budget, size_t size_bytes);
/* Like budget_reserve, with limit_bytes instead of the budget's own limit; 0: no limit. Not for an
 * account. */
bool budget_reserve_within(struct budget *budget, size_t size_bytes, size_t limit_bytes);
/* Like budget_reserve, but may exceed the limit if nothing else is reserved: for work that must
 * continue, however large it is. Not for an account. */
bool budget_reserve_alone(struct budget *budget, size_t size_bytes);
/* Whether budget_reserve would succeed now. For memory that will be charged later. */
bool budget_has_room(const struct budget *budget, size_t size_bytes);
/* Whether three quarters of the limit would still be free with size_bytes more; of an account, of
 * its parent's limit. For memory that is only likely to be needed. NULL is allowed: true. */
bool budget_is_mostly_free(const struct budget *budget, size_t size_bytes);
/* Charges size_bytes without asking, even beyond the limit. NULL is allowed. */
void budget_charge(struct budget *budget, size_t size_bytes);
/* Gives back size_bytes that were reserved or charged. NULL is allowed. */
void budget_release(struct budget *budget, size_t size_bytes);
/* Returns the bytes that are reserved and charged now. */
size_t budget_used(const struct budget *budget);
/* Returns the limit in bytes, without the spare; of an account, its parent's. 0: no limit. NULL is
 * allowed. */
size_t budget_limit(const struct budget *budget);
/* Returns the budget for data made from both: their common budget, otherwise the parent. NULL is
 * allowed. */
struct budget *budget_of_both(struct budget *one, struct budget *other);

#endif
