/*
 * budget: how many bytes something may hold, shared by all workers.
 *
 * Whoever grows by what arrives from outside (bodies, decompressed output, held requests) reserves
 * first and refuses the request when the answer is no. Arenas of an admitted request charge
 * without asking: their size is bounded by the request that was admitted, and when it was there had
 * to be room for them (core/data/unfold.h).
 *
 * A budget may have a parent, and is then the account of one source (source_accounts.h): what it
 * holds counts at both. An account reserves only up to BUDGET_ACCOUNT_FACTOR times what is free at
 * its parent afterwards (dynamic thresholds, Choudhury and Hahne 1998). So one source alone gets
 * four fifths of the parent, two get four ninths each, and there is always room for a source that
 * holds little: whoever holds most is refused first, and nobody has to wait for a turn.
 *
 * What hogs hold is not taken from them, and what is charged without asking comes out of what they
 * leave. So there is a spare quarter of the limit above it, for accounts that hold no more than is
 * left of it: beside three hogs a fourth source gets a sixth of the limit, beside thirty a 25th.
 *
 * Owner: the process or a component.
 *
 * Thread: any; one atomic each, two with a parent.
 */
#ifndef PROFCOL_CORE_BASE_BUDGET_H
#define PROFCOL_CORE_BASE_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    BUDGET_ACCOUNT_FACTOR = 4,
    BUDGET_SPARE_PART = 4, /* of the limit, above it */
};

struct budget {
    atomic_size_t used_bytes;
    size_t limit_bytes;    /* 0: no limit; unused with a parent */
    struct budget *parent; /* NULL: none; has none itself */
};

/* False, and nothing reserved, when it would go over the limit. A null budget always says yes. */
bool budget_reserve(struct budget *budget, size_t size_bytes);
/* The same with another limit than the budget's own; 0: no limit. Not of an account. */
bool budget_reserve_within(struct budget *budget, size_t size_bytes, size_t limit_bytes);
/* Also more than the limit allows, when nothing else is reserved: for what has to go on however
 * large it is. Not of an account. */
bool budget_reserve_alone(struct budget *budget, size_t size_bytes);
/* Whether budget_reserve would say yes now, for what will charge it later. */
bool budget_has_room(const struct budget *budget, size_t size_bytes);
void budget_charge(struct budget *budget, size_t size_bytes);
void budget_release(struct budget *budget, size_t size_bytes);
size_t budget_used(const struct budget *budget);
/* The limit of the whole without the spare, also of an account; 0: none. NULL is allowed. */
size_t budget_limit(const struct budget *budget);
/* What something made of both is charged to: their common budget, else the parent. NULL is allowed.
 */
struct budget *budget_of_both(struct budget *one, struct budget *other);

#endif
