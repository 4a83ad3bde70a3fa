#include "core/base/source_accounts.h"

#include "core/base/container_of.h"
#include "core/base/hash.h"

#include <assert.h>

enum { PLACES = 16 }; /* slots that are checked for a source */

void source_accounts_init(struct source_accounts *accounts, struct budget *parent)
{
    assert(parent && !parent->parent);
    pthread_mutex_init(&accounts->mutex, NULL);
    for (size_t i = 0; i < SOURCE_ACCOUNTS; i++)
        accounts->items[i] = (struct source_account){.budget.parent = parent};
}

void source_accounts_deinit(struct source_accounts *accounts)
{
    pthread_mutex_destroy(&accounts->mutex);
}

static bool is_free(const struct source_account *account)
{
    return account->connections == 0 && budget_used(&account->budget) == 0;
}

/* Returns the account of a source, otherwise a free one, otherwise one that it shares. */
static struct source_account *find(struct source_accounts *accounts, uint64_t key)
{
    size_t first = (size_t)(hash_u64(key) % SOURCE_ACCOUNTS);
    struct source_account *unused = NULL;
    for (size_t i = 0; i < PLACES; i++) {
        struct source_account *account = &accounts->items[(first + i) % SOURCE_ACCOUNTS];
        if (account->key == key && !is_free(account))
            return account;
        if (!unused && is_free(account))
            unused = account;
    }
    if (!unused)
        return &accounts->items[first];
    unused->key = key;
    return unused;
}

struct budget *source_accounts_enter(struct source_accounts *accounts, uint64_t key)
{
    pthread_mutex_lock(&accounts->mutex);
    struct source_account *account = find(accounts, key);
    account->connections++;
    pthread_mutex_unlock(&accounts->mutex);
    return &account->budget;
}

void source_accounts_leave(struct source_accounts *accounts, struct budget *account)
{
    struct source_account *left = container_of(account, struct source_account, budget);
    assert(left >= accounts->items && left < accounts->items + SOURCE_ACCOUNTS);
    pthread_mutex_lock(&accounts->mutex);
    assert(left->connections > 0);
    left->connections--;
    pthread_mutex_unlock(&accounts->mutex);
}

size_t source_accounts_most_used(const struct source_accounts *accounts)
{
    size_t most = 0;
    for (size_t i = 0; i < SOURCE_ACCOUNTS; i++) {
        size_t used = budget_used(&accounts->items[i].budget);
        most = used > most ? used : most;
    }
    return most;
}
