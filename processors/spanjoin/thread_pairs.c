#include "processors/spanjoin/thread_pairs.h"

#include "core/data/any_value.h"
#include "core/data/thread_spans.h"
#include "processors/spanjoin/attribute_classes.h"
#include "processors/spanjoin/thread_of_span.h"

struct thread_pair {
    int64_t os_id;
    int64_t runtime_id;
    uint16_t process;
};

/* Returns the sample's attribute of this kind; 0 if it has none. */
static uint32_t find_attribute(struct sample_plan *plan, const struct sample_view *view,
                               enum thread_attribute which)
{
    for (uint32_t i = 0; i < view->attribute_count; i++)
        if (sample_plan_class(plan, view->attributes[i])->thread == which)
            return view->attributes[i];
    return 0;
}

static bool read_id(struct sample_plan *plan, uint32_t attribute, int64_t *id_out)
{
    struct any_value value =
        any_value_read(dictionary_attribute(plan->dictionary, attribute).value);
    return thread_id_read(&value, id_out);
}

static void add_pair(struct sample_plan *plan, struct thread_pair pair)
{
    plan->pairs = arena_grow(&plan->arena, plan->pairs, plan->pair_count, &plan->pair_capacity,
                             sizeof *plan->pairs);
    plan->pairs[plan->pair_count++] = pair;
}

static inline bool notes_pairs(const struct sample_plan *plan)
{
    return plan->process != 0 && !plan->is_doubted && plan->has_added_threads &&
           thread_pairs_count(plan);
}

bool thread_pairs_find_new(struct sample_plan *plan, struct slice attributes)
{
    struct wire_cursor packed = wire_cursor(attributes);
    if (!notes_pairs(plan))
        return false;
    for (uint64_t index; wire_packed_varint(&packed, &index);) {
        const struct attribute_class *class = sample_plan_class(plan, (uint32_t)index);
        if (class->thread == THREAD_ATTRIBUTE_RUNTIME_ID)
            return class->paired != plan->process;
    }
    return false;
}

void thread_pairs_note(struct sample_plan *plan, const struct sample_view *view)
{
    struct thread_pair pair = {.process = plan->process};
    uint32_t runtime =
        notes_pairs(plan) ? find_attribute(plan, view, THREAD_ATTRIBUTE_RUNTIME_ID) : 0;
    if (runtime == 0 || plan->classes[runtime].paired == plan->process)
        return;
    plan->classes[runtime].paired = plan->process;
    if (plan->pairs_process == 0)
        plan->pairs_process = plan->process;
    if (plan->pairs_process == plan->process)
        plan->classes[runtime].traits &= (uint8_t)~TRAIT_UNPAIRED;
    uint32_t os = find_attribute(plan, view, THREAD_ATTRIBUTE_ID);
    if (os != 0 && read_id(plan, runtime, &pair.runtime_id) && read_id(plan, os, &pair.os_id))
        add_pair(plan, pair);
}

void thread_pairs_tell(const struct sample_plan *plan, struct thread_spans *threads)
{
    for (uint32_t i = 0; i < plan->pair_count; i++)
        thread_spans_pair(threads, plan->pairs[i].process, plan->pairs[i].os_id,
                          plan->pairs[i].runtime_id);
}
