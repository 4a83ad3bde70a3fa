#include "core/data/process_group.h"

#include <assert.h>

#define OVERLAP_MAX_NS UINT64_C(1000000000) /* of a process and the next one */

void process_spans_note(struct process_spans *spans, struct upload_range ran, uint64_t now_ns)
{
    assert(ran.from_ns <= ran.to_ns);
    spans->ran = spans->arrivals.last_ns == 0 ? ran : upload_ranges_union(spans->ran, ran);
    arrivals_note(&spans->arrivals, now_ns);
}

/* Whether a process runs beside the one that began last. */
static enum group_state state_of(const struct process_spans *other,
                                 const struct process_spans *last, uint64_t now_ns)
{
    if (other->ran.to_ns > last->ran.from_ns + OVERLAP_MAX_NS)
        return GROUP_RUNS_SEVERAL;
    return arrivals_have_ended(&other->arrivals, now_ns) ? GROUP_RUNS_ONE : GROUP_MAY_RUN_ONE;
}

static const struct group_member *last_begun(const struct group_member *members, unsigned count)
{
    const struct group_member *last = members;
    for (unsigned i = 1; i < count; i++)
        if (members[i].spans->ran.from_ns > last->spans->ran.from_ns)
            last = &members[i];
    return last;
}

/* Returns the process that ended last, of those before this one; NULL: there is none. */
static const struct group_member *last_ended(const struct group_member *members, unsigned count,
                                             const struct group_member *last)
{
    const struct group_member *before = NULL;
    for (unsigned i = 0; i < count; i++)
        if (&members[i] != last &&
            (!before || members[i].spans->ran.to_ns > before->spans->ran.to_ns))
            before = &members[i];
    return before;
}

/* Returns a time between the spans of two processes. */
static uint64_t middle_of(const struct process_spans *before, const struct process_spans *after)
{
    uint64_t from_ns = before->ran.to_ns, to_ns = after->ran.from_ns;
    return from_ns < to_ns ? from_ns + (to_ns - from_ns) / 2 : to_ns;
}

struct group_finding process_group_judge(const struct group_member *members, unsigned count,
                                         uint64_t now_ns)
{
    if (count == 0)
        return (struct group_finding){.state = GROUP_IS_EMPTY};
    const struct group_member *last = last_begun(members, count);
    const struct group_member *before = last_ended(members, count, last);
    struct group_finding finding = {.state = GROUP_RUNS_ONE, .number = last->number};
    for (unsigned i = 0; i < count; i++) {
        enum group_state state = GROUP_RUNS_ONE;
        if (&members[i] != last)
            state = state_of(members[i].spans, last->spans, now_ns);
        finding.state = state > finding.state ? state : finding.state;
    }
    if (before && finding.state < GROUP_RUNS_SEVERAL) {
        finding.before = before->number;
        finding.since_ns = middle_of(before->spans, last->spans);
    }
    return finding;
}
