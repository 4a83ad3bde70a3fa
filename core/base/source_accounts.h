/*
 * source_accounts: how much of the process' memory for requests each source holds.
 *
 * A source is a client as distinguished by core/net/peer_key.h. An account is a budget whose parent
 * is the budget of the process; budget.h says how much it may reserve. The table has a fixed size,
 * so no number of sources makes it grow. A source keeps its account while it has connections, and
 * until everything charged to it is released; a new source takes a free account. If no account near
 * its hash slot is free, it shares one. The hash is keyed, so no client can choose whom it shares
 * with.
 *
 * Owner: the process; it outlives every buffer and arena that is charged to an account.
 *
 * Thread: any, after source_accounts_init. Entering and leaving lock; reserving does not.
 */
#ifndef PROFCOL_CORE_BASE_SOURCE_ACCOUNTS_H
#define PROFCOL_CORE_BASE_SOURCE_ACCOUNTS_H

#include "core/base/budget.h"

#include <pthread.h>
#include <stdint.h>

enum { SOURCE_ACCOUNTS = 1024 };

struct source_account {
    struct budget budget;
    uint64_t key;
    unsigned connections;
};

struct source_accounts {
    pthread_mutex_t mutex;
    struct source_account items[SOURCE_ACCOUNTS];
};

/* Initialises all accounts, with `parent` as the budget that they share. */
void source_accounts_init(struct source_accounts *accounts, struct budget *parent);
/* Ends the use of the accounts. None may be in use afterwards. */
void source_accounts_deinit(struct source_accounts *accounts);
/* Returns the account for a new connection of this source. Never NULL. */
struct budget *source_accounts_enter(struct source_accounts *accounts, uint64_t key);
/* Call it when the connection has ended. Memory still charged to the account may be released
 * later. */
void source_accounts_leave(struct source_accounts *accounts, struct budget *account);
/* Returns the bytes held by the source that holds most. */
size_t source_accounts_most_used(const struct source_accounts *accounts);

#endif
