#include "extensions/explore/join_late.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define NS_PER_S UINT64_C(1000000000)

/* Returns the spanjoin, NULL if it is not there. An id is complete before the count has it. */
static const struct join_late_of *find(const struct join_late *late, const char *id)
{
    unsigned count = atomic_load_explicit(&late->count, memory_order_acquire);
    for (unsigned i = 0; i < count; i++)
        if (strncmp(late->of[i].id, id, sizeof late->of[i].id - 1) == 0)
            return &late->of[i];
    return NULL;
}

static struct join_late_of *find_or_add(struct join_late *late, const char *id)
{
    const struct join_late_of *found = find(late, id);
    unsigned count = atomic_load_explicit(&late->count, memory_order_relaxed);
    if (found)
        return &late->of[found - late->of];
    if (count == JOIN_LATE_MAX)
        return NULL;
    snprintf(late->of[count].id, sizeof late->of[count].id, "%s", id);
    atomic_store_explicit(&late->count, count + 1, memory_order_release);
    return &late->of[count];
}

void join_late_add(struct join_late *late, const char *id, uint64_t after_ns)
{
    struct join_late_of *of = find_or_add(late, id);
    int step = 0;
    while (step < JOIN_LATE_STEPS - 1 && after_ns > join_late_seconds[step] * NS_PER_S)
        step++;
    if (of)
        atomic_fetch_add_explicit(&of->samples[step], 1, memory_order_relaxed);
}

void join_late_apply(const struct join_late *late, struct join_figures *figures)
{
    const struct join_late_of *of = find(late, figures->id);
    uint64_t *not_found = &figures->unjoined[JOIN_REASON_NOT_FOUND];
    for (int i = 0; of && i < JOIN_LATE_STEPS; i++) {
        uint64_t samples = atomic_load_explicit(&of->samples[i], memory_order_relaxed);
        samples = samples < *not_found ? samples : *not_found; /* the store may be ahead */
        *not_found -= samples;
        figures->late[i] = samples;
        figures->unjoined[JOIN_REASON_EXPIRED] += samples;
    }
}
