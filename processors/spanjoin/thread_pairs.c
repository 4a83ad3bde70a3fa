#include "processors/spanjoin/thread_pairs.h"

#include "core/data/any_value.h"
#include "core/data/thread_spans.h"
#include "processors/spanjoin/attribute_classes.h"

struct thread_pair {
    int64_t os_id;
    int64_t runtime_id;
    uint16_t process;
};

/* Finds the sample's attribute of this kind. Returns false if it has none, or not an integer. */
static bool find_id(struct sample_plan *plan, const struct sample_view *view,
                    enum thread_attribute which, uint32_t *index_out, int64_t *id_out)
{
    for (uint32_t i = 0; i < view->attribute_count; i++) {
        if (sample_plan_class(plan, view->attributes[i])->thread != which)
            continue;
        struct any_value value =
            any_value_read(dictionary_attribute(plan->dictionary, view->attributes[i]).value);
        *index_out = view->attributes[i];
        *id_out = value.integer;
        return value.kind == ANY_VALUE_INT;
    }
    return false;
}

static void add_pair(struct sample_plan *plan, struct thread_pair pair)
{
    plan->pairs = arena_grow(&plan->arena, plan->pairs, plan->pair_count, &plan->pair_capacity,
                             sizeof *plan->pairs);
    plan->pairs[plan->pair_count++] = pair;
}

void thread_pairs_note(struct sample_plan *plan, const struct sample_view *view)
{
    struct thread_pair pair = {.process = plan->process};
    uint32_t runtime, os;
    if (plan->process == 0 ||
        !find_id(plan, view, THREAD_ATTRIBUTE_RUNTIME_ID, &runtime, &pair.runtime_id) ||
        plan->classes[runtime].paired == plan->process)
        return;
    plan->classes[runtime].paired = plan->process;
    if (find_id(plan, view, THREAD_ATTRIBUTE_ID, &os, &pair.os_id))
        add_pair(plan, pair);
}

void thread_pairs_tell(const struct sample_plan *plan, struct thread_spans *threads)
{
    for (uint32_t i = 0; i < plan->pair_count; i++)
        thread_spans_pair(threads, plan->pairs[i].process, plan->pairs[i].os_id,
                          plan->pairs[i].runtime_id);
}
