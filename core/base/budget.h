/*
 * budget: how many bytes something may hold, shared by all workers.
 *
 * Whoever grows by what arrives from outside (bodies, decompressed output, held requests) reserves
 * first and refuses the request when the answer is no. Arenas of an admitted request charge
 * without asking: their size is bounded by the request that was admitted, and when it was there had
 * to be room for them (core/data/unfold.h).
 *
 * Owner: the process or a component.
 *
 * Thread: any; one atomic each.
 */
#ifndef PROFCOL_CORE_BASE_BUDGET_H
#define PROFCOL_CORE_BASE_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct budget {
    atomic_size_t used_bytes;
    size_t limit_bytes; /* 0: no limit */
};

/* False, and nothing reserved, when it would go over the limit. A null budget always says yes. */
bool budget_reserve(struct budget *budget, size_t size_bytes);
/* The same with another limit than the budget's own; 0: no limit. */
bool budget_reserve_within(struct budget *budget, size_t size_bytes, size_t limit_bytes);
/* Whether so much could be reserved now, for what will charge it later. */
bool budget_has_room(const struct budget *budget, size_t size_bytes);
void budget_charge(struct budget *budget, size_t size_bytes);
void budget_release(struct budget *budget, size_t size_bytes);
size_t budget_used(const struct budget *budget);

#endif
