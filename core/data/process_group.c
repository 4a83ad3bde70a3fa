#include "core/data/process_group.h"

#include <assert.h>

#define OVERLAP_MAX_NS UINT64_C(1000000000) /* of a process and the next one */
#define SILENCE_MIN_NS UINT64_C(10000000000)

enum { PAUSE_DECAY = 8 };

/* Times between arrivals vary, so that a short one makes the pause only a little shorter. */
static uint64_t next_pause(uint64_t pause_ns, uint64_t latest_ns)
{
    return latest_ns > pause_ns ? latest_ns : pause_ns - (pause_ns - latest_ns) / PAUSE_DECAY;
}

void process_spans_note(struct process_spans *spans, struct upload_range ran, uint64_t now_ns)
{
    assert(ran.from_ns <= ran.to_ns);
    if (spans->arrived_ns == 0) {
        *spans = (struct process_spans){.ran = ran, .arrived_ns = happened_at(now_ns)};
        return;
    }
    spans->ran = upload_ranges_union(spans->ran, ran);
    if (now_ns <= spans->arrived_ns)
        return;
    spans->pause_ns = next_pause(spans->pause_ns, now_ns - spans->arrived_ns);
    spans->arrived_ns = now_ns;
}

static bool is_silent(const struct process_spans *spans, uint64_t now_ns)
{
    return spans->pause_ns != 0 &&
           !is_within(spans->arrived_ns, now_ns, 2 * spans->pause_ns + SILENCE_MIN_NS);
}

/* Whether a process runs beside the one that began last. */
static enum group_state state_of(const struct process_spans *other,
                                 const struct process_spans *last, uint64_t now_ns)
{
    if (other->ran.to_ns > last->ran.from_ns + OVERLAP_MAX_NS)
        return GROUP_RUNS_SEVERAL;
    return is_silent(other, now_ns) ? GROUP_RUNS_ONE : GROUP_MAY_RUN_ONE;
}

static const struct group_member *last_begun(const struct group_member *members, unsigned count)
{
    const struct group_member *last = members;
    for (unsigned i = 1; i < count; i++)
        if (members[i].spans->ran.from_ns > last->spans->ran.from_ns)
            last = &members[i];
    return last;
}

struct group_finding process_group_judge(const struct group_member *members, unsigned count,
                                         uint64_t now_ns)
{
    if (count == 0)
        return (struct group_finding){GROUP_IS_EMPTY, 0};
    const struct group_member *last = last_begun(members, count);
    struct group_finding finding = {GROUP_RUNS_ONE, last->number};
    for (unsigned i = 0; i < count; i++) {
        enum group_state state = GROUP_RUNS_ONE;
        if (&members[i] != last)
            state = state_of(members[i].spans, last->spans, now_ns);
        finding.state = state > finding.state ? state : finding.state;
    }
    return finding;
}
