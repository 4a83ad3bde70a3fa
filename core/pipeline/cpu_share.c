#include "core/pipeline/cpu_share.h"

#include "config/check.h"

/* Spans that keep so many processors busy are rare. */
enum { PERCENT_MIN = 10 };

bool cpu_share_is_above(int64_t cpu_ns, uint64_t duration_ns, double share)
{
    return (double)cpu_ns > share * (double)duration_ns;
}

void cpu_share_check(struct config_check *check, const char *key, double share)
{
    if (share >= PERCENT_MIN)
        config_check_warn(check, key, "%g is the time of %g processors; for %g %% write %g", share,
                          share, share, share / 100);
}
