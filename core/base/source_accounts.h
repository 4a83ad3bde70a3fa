/*
 * source_accounts: what each source of requests holds of the process' memory for them.
 *
 * A source is a client as core/net/peer_key.h tells them apart. An account is a budget whose parent
 * is the budget of the process; how much it may reserve is told in budget.h. The table is fixed, so
 * that no number of sources makes it grow. A source has its account while it has connections, and
 * until everything is released that it was charged; a new source takes one that is free. Where none
 * is free near its place, sources share one. The places are hashed with a key, so nobody can choose
 * with whom.
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

void source_accounts_init(struct source_accounts *accounts, struct budget *parent);
void source_accounts_deinit(struct source_accounts *accounts);
/* The account of a new connection of this source. */
struct budget *source_accounts_enter(struct source_accounts *accounts, uint64_t key);
/* The connection is over. What is still charged to the account may be released later. */
void source_accounts_leave(struct source_accounts *accounts, struct budget *account);
/* What the source holds that holds most. */
size_t source_accounts_most_used(const struct source_accounts *accounts);

#endif
