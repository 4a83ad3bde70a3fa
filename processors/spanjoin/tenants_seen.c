#include "processors/spanjoin/tenants_seen.h"

#include <assert.h>

enum { SOME_CALLS = 2 /* what the first requests of a start show may not last */ };

static unsigned bit_of(enum signal signal, bool has_tenant)
{
    assert(signal == SIGNAL_TRACES || signal == SIGNAL_PROFILES);
    return 1U << (2 * (signal == SIGNAL_PROFILES) + has_tenant);
}

void tenants_seen_note(struct tenants_seen *tenants, enum signal signal, bool has_tenant)
{
    unsigned bit = bit_of(signal, has_tenant);
    if (!(atomic_load_explicit(&tenants->seen, memory_order_relaxed) & bit))
        atomic_fetch_or_explicit(&tenants->seen, bit, memory_order_relaxed);
}

bool tenants_seen_differ(struct tenants_seen *tenants, enum signal *signal_out)
{
    unsigned seen = atomic_load_explicit(&tenants->seen, memory_order_relaxed);
    bool of_spans = seen == (bit_of(SIGNAL_TRACES, true) | bit_of(SIGNAL_PROFILES, false));
    bool of_samples = seen == (bit_of(SIGNAL_TRACES, false) | bit_of(SIGNAL_PROFILES, true));
    *signal_out = of_spans ? SIGNAL_TRACES : SIGNAL_PROFILES;
    if ((!of_spans && !of_samples) || tenants->turns == SOME_CALLS)
        return false;
    return ++tenants->turns == SOME_CALLS;
}
