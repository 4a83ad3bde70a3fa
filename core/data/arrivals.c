#include "core/data/arrivals.h"

#define SILENCE_MIN_NS UINT64_C(10000000000)

enum { PAUSE_DECAY = 8 };

/* Times between arrivals vary, so that a short one makes the pause only a little shorter. */
static uint64_t next_pause(uint64_t pause_ns, uint64_t latest_ns)
{
    return latest_ns > pause_ns ? latest_ns : pause_ns - (pause_ns - latest_ns) / PAUSE_DECAY;
}

void arrivals_note(struct arrivals *arrivals, uint64_t now_ns)
{
    if (arrivals->last_ns == 0) {
        arrivals->last_ns = happened_at(now_ns);
        return;
    }
    if (now_ns <= arrivals->last_ns)
        return;
    arrivals->pause_ns = next_pause(arrivals->pause_ns, now_ns - arrivals->last_ns);
    arrivals->last_ns = now_ns;
}

bool arrivals_have_ended(const struct arrivals *arrivals, uint64_t now_ns)
{
    return arrivals->pause_ns != 0 &&
           !is_within(arrivals->last_ns, now_ns, 2 * arrivals->pause_ns + SILENCE_MIN_NS);
}
