/*
 * tenants_seen: notices that only requests of one signal name a tenant, so that nothing is joined:
 * a header reaches the join only from receivers that keep it.
 *
 * Owner: the group of joins.
 *
 * Thread: tenants_seen_note: any. tenants_seen_differ: the worker that sweeps the index.
 */
#ifndef PROFCOL_SPANJOIN_TENANTS_SEEN_H
#define PROFCOL_SPANJOIN_TENANTS_SEEN_H

#include "core/data/otlp.h"

#include <stdatomic.h>
#include <stdbool.h>

/* All-zero: nothing has come yet. */
struct tenants_seen {
    atomic_uint seen;
    unsigned turns; /* for which they have differed */
};

/* Notes whether a resource of traces or profiles had a tenant. */
void tenants_seen_note(struct tenants_seen *tenants, enum signal signal, bool has_tenant);
/* Call it now and then. Returns true once, if it has been so for two calls. signal_out: the signal
 * whose requests have tenants; no request of the other one has. */
bool tenants_seen_differ(struct tenants_seen *tenants, enum signal *signal_out);

#endif
