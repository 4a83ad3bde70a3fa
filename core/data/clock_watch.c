#include "core/data/clock_watch.h"

enum {
    TOGETHER = 64,  /* samples, at least */
    KEPT = 1 << 14, /* samples; then all count half */
    /* Samples near each other are not independent, so that so many count as one. */
    OF_ONE = 2,
    SURELY = 16, /* standard deviations, squared */
};

static struct share of_independent(struct share samples)
{
    return (struct share){samples.inside / OF_ONE, samples.known / OF_ONE};
}

static void remember(struct clock_watch *watch)
{
    watch->before.inside += watch->now.inside;
    watch->before.known += watch->now.known;
    while (watch->before.known > KEPT) {
        watch->before.inside /= 2;
        watch->before.known /= 2;
    }
    watch->now = (struct share){0, 0};
}

bool clock_watch_is_set(struct clock_watch *watch)
{
    if (watch->now.known < TOGETHER)
        return false;
    if (share_is_worse(of_independent(watch->now), of_independent(watch->before), SURELY)) {
        *watch = (struct clock_watch){.now = {0, 0}};
        return true;
    }
    remember(watch);
    return false;
}
