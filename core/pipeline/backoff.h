/*
 * backoff: the pause after a refusal, used by every component that offers or sends data again.
 *
 * Owner: a member of the struct that waits.
 *
 * Thread: that of its owner.
 */
#ifndef PROFCOL_CORE_PIPELINE_BACKOFF_H
#define PROFCOL_CORE_PIPELINE_BACKOFF_H

#include "core/base/verdict.h"

/* The longest wait that a backend or a node can ask for (Retry-After, RetryInfo). */
#define RETRY_AFTER_MAX_NS (INT64_C(300) * 1000000000)

/* Returns the pause that the verdict asks for, in nanoseconds: at most RETRY_AFTER_MAX_NS, 0 if it
 * asks for none. */
int64_t retry_after_of(const struct verdict *verdict);

/* An all-zero value starts with the shortest pause. */
struct backoff {
    int64_t next_ns;
};

/* Returns the next pause in nanoseconds. It doubles from min_ns to max_ns, and is never shorter
 * than `asked_ns`. */
int64_t backoff_next(struct backoff *backoff, int64_t min_ns, int64_t max_ns, int64_t asked_ns);
/* Starts again with the shortest pause. */
void backoff_reset(struct backoff *backoff);

#endif
