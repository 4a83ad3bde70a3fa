#include "core/pipeline/share.h"

#include <assert.h>

static size_t load(const atomic_size_t *figure)
{
    return atomic_load_explicit(figure, memory_order_relaxed);
}

static void add(atomic_size_t *figure, size_t size_bytes)
{
    atomic_fetch_add_explicit(figure, size_bytes, memory_order_relaxed);
}

static void subtract(atomic_size_t *figure, size_t size_bytes)
{
    size_t before = atomic_fetch_sub_explicit(figure, size_bytes, memory_order_relaxed);
    assert(before >= size_bytes);
}

static size_t free_of(size_t limit_bytes, size_t used_bytes)
{
    return used_bytes < limit_bytes ? limit_bytes - used_bytes : 0;
}

/* ---- loans ---- */

/* Whether the borrower, whose loans include this one already, may have it, when others and the
 * borrower itself have pool_lent without it. */
static bool may_borrow(const struct share_borrower *borrower, size_t size_bytes, size_t pool_lent)
{
    size_t left = free_of(borrower->pool->limit_bytes, pool_lent);
    if (size_bytes > left)
        return false;
    left -= size_bytes;
    return borrower->is_only || load(&borrower->lent_bytes) <= left * SHARE_BORROWER_FACTOR;
}

/* A loan is visible in the borrower before it is in the pool, so whoever sees it in the pool also
 * sees it there: the order that acquire and release establish. */
static bool borrow(struct share_borrower *borrower, size_t size_bytes)
{
    struct share_pool *pool = borrower->pool;
    add(&borrower->lent_bytes, size_bytes);
    size_t lent = atomic_load_explicit(&pool->lent_bytes, memory_order_acquire);
    do {
        if (!may_borrow(borrower, size_bytes, lent)) {
            subtract(&borrower->lent_bytes, size_bytes);
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&pool->lent_bytes, &lent, lent + size_bytes,
                                                    memory_order_acq_rel, memory_order_acquire));
    return true;
}

static void give_back(struct share_borrower *borrower, size_t size_bytes)
{
    subtract(&borrower->pool->lent_bytes, size_bytes);
    subtract(&borrower->lent_bytes, size_bytes);
}

/* ---- reservations ---- */

/* Another worker may take what was free of the share, or give some of it back. Then this tries
 * again. */
static bool reserve_with_loan(struct share *share, size_t size_bytes, size_t *lent_out)
{
    for (;;) {
        size_t own = free_of(share->own.limit_bytes, budget_used(&share->own));
        own = own < size_bytes ? own : size_bytes;
        size_t lent = size_bytes - own;
        if (lent > 0 && !borrow(share->borrower, lent))
            return false;
        if (budget_reserve(&share->own, own)) {
            add(&share->lent_bytes, lent);
            *lent_out = lent;
            return true;
        }
        if (lent > 0)
            give_back(share->borrower, lent);
    }
}

bool share_reserve(struct share *share, size_t size_bytes, size_t *lent_out)
{
    *lent_out = 0;
    if (budget_reserve(&share->own, size_bytes))
        return true;
    return share->borrower && reserve_with_loan(share, size_bytes, lent_out);
}

void share_release(struct share *share, size_t size_bytes, size_t lent_bytes)
{
    assert(lent_bytes <= size_bytes);
    if (lent_bytes > 0) {
        subtract(&share->lent_bytes, lent_bytes);
        give_back(share->borrower, lent_bytes);
    }
    budget_release(&share->own, size_bytes - lent_bytes);
}

size_t share_used(const struct share *share)
{
    return budget_used(&share->own) + load(&share->lent_bytes);
}

/* Returns how much more could be borrowed. */
static size_t lendable(const struct share_borrower *borrower)
{
    size_t left = free_of(borrower->pool->limit_bytes, load(&borrower->pool->lent_bytes));
    size_t lent = load(&borrower->lent_bytes);
    if (borrower->is_only)
        return left;
    return free_of(left * SHARE_BORROWER_FACTOR, lent) / (SHARE_BORROWER_FACTOR + 1);
}

size_t share_limit(const struct share *share)
{
    if (share->own.limit_bytes == 0 || !share->borrower)
        return share->own.limit_bytes;
    return share->own.limit_bytes + load(&share->lent_bytes) + lendable(share->borrower);
}
