#include "core/base/budget.h"

#include <assert.h>

bool budget_reserve(struct budget *budget, size_t size_bytes)
{
    return !budget || budget_reserve_within(budget, size_bytes, budget->limit_bytes);
}

bool budget_reserve_within(struct budget *budget, size_t size_bytes, size_t limit_bytes)
{
    size_t used = atomic_load_explicit(&budget->used_bytes, memory_order_relaxed);
    do {
        if (limit_bytes && (size_bytes > limit_bytes || used > limit_bytes - size_bytes))
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&budget->used_bytes, &used, used + size_bytes,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

bool budget_has_room(const struct budget *budget, size_t size_bytes)
{
    if (!budget || budget->limit_bytes == 0)
        return true;
    size_t used = budget_used(budget);
    return size_bytes <= budget->limit_bytes && used <= budget->limit_bytes - size_bytes;
}

void budget_charge(struct budget *budget, size_t size_bytes)
{
    if (budget)
        atomic_fetch_add_explicit(&budget->used_bytes, size_bytes, memory_order_relaxed);
}

void budget_release(struct budget *budget, size_t size_bytes)
{
    if (!budget)
        return;
    size_t before =
        atomic_fetch_sub_explicit(&budget->used_bytes, size_bytes, memory_order_relaxed);
    assert(before >= size_bytes);
}

size_t budget_used(const struct budget *budget)
{
    return atomic_load_explicit(&budget->used_bytes, memory_order_relaxed);
}
