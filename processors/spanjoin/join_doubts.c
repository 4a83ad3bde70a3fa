#include "processors/spanjoin/join_doubts.h"

#include "processors/spanjoin/left_upload.h"
#include "processors/spanjoin/upload_times.h"

#include <assert.h>
#include <string.h>

/* Samplers look at a thread 10 times a second or more often: what is between is of the same. */
#define TOGETHER_NS UINT64_C(100000000)

/* Returns the first resource of a process. */
static uint32_t resource_of(const struct sample_plan *plan, uint16_t process)
{
    for (uint32_t i = 0; i < plan->upload_count; i++)
        if (plan->uploads[i].process == process || plan->uploads[i].before == process)
            return i;
    return 0;
}

static struct join_doubt doubt_of(const struct sample_plan *plan, const struct left_thread *thread)
{
    struct join_doubt doubt = {.resource = resource_of(plan, thread->thread.instance)};
    struct slice name = thread->thread.name;
    for (int kind = 0; kind < JOIN_DOUBT_IDS; kind++) {
        doubt.has_id[kind] = thread->thread.has_id[kind];
        doubt.ids[kind] = thread->thread.id[kind];
    }
    doubt.name_size = (uint8_t)(name.size < sizeof doubt.name ? name.size : sizeof doubt.name);
    if (name.size > 0)
        memcpy(doubt.name, name.data, doubt.name_size);
    return doubt;
}

static bool is_near(const struct join_doubt *doubt, uint64_t from_ns, uint64_t to_ns)
{
    return from_ns <= doubt->to_ns + TOGETHER_NS && to_ns + TOGETHER_NS >= doubt->from_ns;
}

/* Adds a range of the thread, after those that were added of it: since `first`. */
static void add_range(struct sample_plan *plan, uint32_t first, const struct join_doubt *thread,
                      const struct time_range *range, int64_t offset_ns)
{
    uint64_t from_ns = range->start_ns + (uint64_t)offset_ns;
    uint64_t to_ns = range->end_ns + (uint64_t)offset_ns;
    struct join_doubt *last =
        plan->doubt_count > first ? &plan->doubts[plan->doubt_count - 1] : NULL;
    if (last && is_near(last, from_ns, to_ns)) {
        last->from_ns = from_ns < last->from_ns ? from_ns : last->from_ns;
        last->to_ns = to_ns > last->to_ns ? to_ns : last->to_ns;
        return;
    }
    plan->doubts_are_cut |= plan->doubt_count == JOIN_DOUBTS_MAX;
    if (plan->doubts_are_cut)
        return;
    struct join_doubt *doubt = &plan->doubts[plan->doubt_count++];
    *doubt = *thread;
    doubt->from_ns = from_ns;
    doubt->to_ns = to_ns;
}

void join_doubts_note(struct sample_plan *plan)
{
    const struct left_upload *left = plan->left;
    assert(left);
    for (uint32_t i = 0; i < left->thread_count && !plan->doubts_are_cut; i++) {
        const struct left_thread *thread = &left->threads[i];
        if (thread->doubt_count == 0)
            continue;
        if (!plan->doubts)
            plan->doubts = arena_array(&plan->arena, JOIN_DOUBTS_MAX, sizeof *plan->doubts);
        const struct join_doubt doubt = doubt_of(plan, thread);
        uint32_t first = plan->doubt_count;
        for (uint32_t k = 0; k < thread->doubt_count && !plan->doubts_are_cut; k++)
            add_range(plan, first, &doubt, &thread->doubts[k], thread->offset_ns);
    }
}
