#include "core/base/budget.h"

#include <assert.h>
#include <stdint.h>

static size_t load(const struct budget *budget)
{
    return atomic_load_explicit(&budget->used_bytes, memory_order_relaxed);
}

static void add(struct budget *budget, size_t size_bytes)
{
    atomic_fetch_add_explicit(&budget->used_bytes, size_bytes, memory_order_relaxed);
}

static void subtract(struct budget *budget, size_t size_bytes)
{
    size_t before =
        atomic_fetch_sub_explicit(&budget->used_bytes, size_bytes, memory_order_relaxed);
    assert(before >= size_bytes);
}

static size_t most(size_t limit_bytes)
{
    return limit_bytes ? limit_bytes : SIZE_MAX;
}

static bool fits(size_t used_bytes, size_t size_bytes, size_t limit_bytes)
{
    return size_bytes <= limit_bytes && used_bytes <= limit_bytes - size_bytes;
}

static bool add_within(struct budget *budget, size_t size_bytes, size_t limit_bytes)
{
    size_t used = load(budget);
    do {
        if (!fits(used, size_bytes, limit_bytes))
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&budget->used_bytes, &used, used + size_bytes,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

/* Returns the limit of a parent for its accounts, including the spare. */
static size_t limit_with_spare(const struct budget *parent)
{
    size_t limit = most(parent->limit_bytes), spare = limit / BUDGET_SPARE_PART;
    return limit < SIZE_MAX - spare ? limit + spare : SIZE_MAX;
}

/* Returns the bytes of the limit that are left after taking size_bytes. */
static size_t free_after(size_t used_bytes, size_t size_bytes, size_t limit_bytes)
{
    return fits(used_bytes, size_bytes, limit_bytes) ? limit_bytes - used_bytes - size_bytes : 0;
}

/* Returns how much an account may hold after taking size_bytes more; 0 if there is no room. */
static size_t account_limit(const struct budget *account, size_t size_bytes)
{
    const struct budget *parent = account->parent;
    size_t used = load(parent);
    assert(!parent->parent);
    if (parent->limit_bytes == 0)
        return SIZE_MAX;
    size_t left = free_after(used, size_bytes, parent->limit_bytes);
    size_t share =
        left < SIZE_MAX / BUDGET_ACCOUNT_FACTOR ? left * BUDGET_ACCOUNT_FACTOR : SIZE_MAX;
    size_t spare = free_after(used, size_bytes, limit_with_spare(parent));
    /* Otherwise hogs that come one after another would take most of the spare. */
    if (spare > parent->limit_bytes / BUDGET_SPARE_ACCOUNT_PART)
        spare = parent->limit_bytes / BUDGET_SPARE_ACCOUNT_PART;
    return share > spare ? share : spare;
}

/* Reserves in the account first, so that a refused source never takes room from others, even
 * briefly. */
static bool reserve_in_account(struct budget *account, size_t size_bytes)
{
    if (!add_within(account, size_bytes, account_limit(account, size_bytes)))
        return false;
    if (add_within(account->parent, size_bytes, limit_with_spare(account->parent)))
        return true;
    subtract(account, size_bytes);
    return false;
}

bool budget_reserve(struct budget *budget, size_t size_bytes)
{
    if (!budget || size_bytes == 0)
        return true;
    return budget->parent ? reserve_in_account(budget, size_bytes)
                          : budget_reserve_within(budget, size_bytes, budget->limit_bytes);
}

bool budget_reserve_within(struct budget *budget, size_t size_bytes, size_t limit_bytes)
{
    assert(!budget->parent);
    return add_within(budget, size_bytes, most(limit_bytes));
}

bool budget_reserve_alone(struct budget *budget, size_t size_bytes)
{
    size_t nothing = 0;
    assert(!budget->parent);
    return atomic_compare_exchange_strong_explicit(&budget->used_bytes, &nothing, size_bytes,
                                                   memory_order_relaxed, memory_order_relaxed);
}

bool budget_has_room(const struct budget *budget, size_t size_bytes)
{
    if (!budget)
        return true;
    size_t limit = budget->parent ? account_limit(budget, size_bytes) : most(budget->limit_bytes);
    return fits(load(budget), size_bytes, limit);
}

bool budget_is_mostly_free(const struct budget *budget, size_t size_bytes)
{
    if (!budget)
        return true;
    const struct budget *whole = budget->parent ? budget->parent : budget;
    return whole->limit_bytes == 0 || fits(load(whole), size_bytes, whole->limit_bytes / 4);
}

void budget_charge(struct budget *budget, size_t size_bytes)
{
    if (!budget)
        return;
    add(budget, size_bytes);
    if (budget->parent)
        add(budget->parent, size_bytes);
}

void budget_release(struct budget *budget, size_t size_bytes)
{
    if (!budget)
        return;
    subtract(budget, size_bytes);
    if (budget->parent)
        subtract(budget->parent, size_bytes);
}

size_t budget_used(const struct budget *budget)
{
    return load(budget);
}

size_t budget_limit(const struct budget *budget)
{
    if (!budget)
        return 0;
    return budget->parent ? budget->parent->limit_bytes : budget->limit_bytes;
}

struct budget *budget_of_both(struct budget *one, struct budget *other)
{
    return one != other && one && one->parent ? one->parent : one;
}
