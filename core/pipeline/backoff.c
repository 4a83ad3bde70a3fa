#include "core/pipeline/backoff.h"

#include <assert.h>

int64_t retry_after_of(const struct verdict *verdict)
{
    if (verdict->retry_after_ns <= 0)
        return 0;
    return verdict->retry_after_ns < RETRY_AFTER_MAX_NS ? verdict->retry_after_ns
                                                        : RETRY_AFTER_MAX_NS;
}

int64_t backoff_next(struct backoff *backoff, int64_t min_ns, int64_t max_ns, int64_t asked_ns)
{
    assert(min_ns > 0 && min_ns <= max_ns);
    int64_t delay = backoff->next_ns < min_ns ? min_ns : backoff->next_ns;
    backoff->next_ns = delay < max_ns / 2 ? delay * 2 : max_ns;
    return delay > asked_ns ? delay : asked_ns;
}

void backoff_reset(struct backoff *backoff)
{
    backoff->next_ns = 0;
}
