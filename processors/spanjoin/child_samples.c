#include "processors/spanjoin/child_samples.h"

#include "core/base/container_of.h"
#include "core/data/span_index.h"
#include "core/data/span_trees.h"
#include "processors/spanjoin/keep_samples.h"
#include "processors/spanjoin/root_spans.h"
#include "processors/spanjoin/upload_times.h"

#include <assert.h>

/* Each request has so many steps, and some more for each of its bytes. */
enum { STEPS_MIN = 1 << 22, STEPS_PER_BYTE = 40 };

struct child_source {
    struct link_source source;
    const struct sample_plan *plan;
    const struct tree_place *places; /* by key */
    struct span_trees *trees;
    uint64_t steps;
};

static void find_children(struct link_source *source, const struct timed_sample *samples,
                          uint32_t sample_count, struct thread_ask *asks, size_t ask_count)
{
    struct child_source *children = container_of(source, struct child_source, source);
    (void)ask_count;
    for (uint32_t i = 0; i < sample_count; i++) {
        const struct timed_sample *timed = &samples[i];
        uint32_t key = children->plan->samples[timed->sample] & SAMPLE_KEY;
        assert(key > 0 && timed->first_ask + timed->ask_count <= ask_count);
        if (timed->ask_count > 0)
            span_trees_find_running(children->trees, &children->places[key - 1],
                                    asks[timed->first_ask].thread, &asks[timed->first_ask],
                                    timed->ask_count, &children->steps);
    }
}

/* Returns for each key whether it is that of a local root with other spans in its tree. The times
 * of samples of a root without are not read. */
static const bool *find_roots(struct sample_plan *plan, struct span_trees *trees,
                              const struct tree_place *places)
{
    struct root_ask *asks = arena_array(&plan->arena, plan->key_count, sizeof *asks);
    bool *are_roots = arena_array(&plan->arena, plan->key_count, sizeof *are_roots);
    struct upload_range taken = upload_times_taken(plan);
    for (uint32_t k = 0; k < plan->key_count; k++)
        asks[k] = (struct root_ask){
            .place = places[k], .left_from_ns = taken.from_ns, .left_to_ns = taken.to_ns};
    span_trees_find_roots(trees, asks, plan->key_count);
    for (uint32_t k = 0; k < plan->key_count; k++)
        are_roots[k] = plan->keys[k].match && asks[k].is_known && asks[k].has_others &&
                       memcmp(asks[k].root_id, places[k].key.span_id, SPAN_ID_SIZE) == 0;
    return are_roots;
}

static void unmark(struct sample_plan *plan)
{
    for (uint32_t i = 0; i < plan->sample_count; i++)
        plan->samples[i] &= ~SAMPLE_HAS_THREAD;
}

/* Marks the samples that name a local root, and no others. Returns their number. */
static uint32_t mark(struct sample_plan *plan, const bool *are_roots)
{
    uint32_t count = 0;
    unmark(plan);
    for (uint32_t i = 0; i < plan->sample_count; i++) {
        uint32_t key = plan->samples[i] & SAMPLE_KEY;
        bool is_root = key > 0 && are_roots[key - 1];
        plan->samples[i] |= is_root ? SAMPLE_HAS_THREAD : 0;
        count += is_root;
    }
    return count;
}

bool child_samples_link(struct sample_plan *plan, struct span_index *index,
                        struct thread_links *links_out)
{
    struct child_source children = {
        .source = {.find = find_children, .keeps_links = true, .writes = true},
        .plan = plan,
        .trees = span_index_trees(index),
        .steps = STEPS_MIN};
    *links_out = (struct thread_links){.is_linked = NULL};
    if (plan->key_count == 0)
        return false;
    children.places = root_spans_places(plan);
    children.steps += STEPS_PER_BYTE * (uint64_t)dictionary_request_size(plan->dictionary);
    children.source.sample_count = mark(plan, find_roots(plan, children.trees, children.places));
    bool moves =
        children.source.sample_count > 0 && timed_samples_link(plan, &children.source, links_out);
    unmark(plan); /* a key means something else there */
    return moves;
}

/* Returns which keys have samples that keep their detail because of their root, and others. */
static const bool *find_mixed(struct sample_plan *plan, const struct thread_links *links)
{
    bool *has_kept = arena_array(&plan->arena, plan->key_count, sizeof *has_kept);
    bool *are_mixed = arena_array(&plan->arena, plan->key_count, sizeof *are_mixed);
    for (uint32_t i = 0; i < plan->sample_count; i++) {
        uint32_t key = plan->samples[i] & SAMPLE_KEY;
        if (key > 0 && (links->is_linked[i] & SAMPLE_IS_KEPT))
            has_kept[key - 1] = true;
    }
    for (uint32_t i = 0; i < plan->sample_count; i++) {
        uint32_t key = plan->samples[i] & SAMPLE_KEY;
        if (key > 0 && !(links->is_linked[i] & SAMPLE_IS_KEPT))
            are_mixed[key - 1] = has_kept[key - 1] && plan->keys[key - 1].match;
    }
    return are_mixed;
}

/* Lets samples whose root keeps its detail keep theirs. Other samples of the same child do not, so
 * that these get a key of their own. */
static void keep_moved(struct sample_plan *plan, const struct thread_links *links)
{
    if (!plan->settings->keep.enabled)
        return;
    const uint32_t *keys = sample_plan_double_keys(plan, find_mixed(plan, links));
    for (uint32_t i = 0; i < plan->sample_count; i++) {
        uint32_t key = plan->samples[i] & SAMPLE_KEY;
        if (key == 0 || !(links->is_linked[i] & SAMPLE_IS_KEPT))
            continue;
        uint32_t own = keys[key - 1];
        plan->samples[i] = (plan->samples[i] & ~SAMPLE_KEY) | (own + 1);
        plan->keys[key - 1].samples--;
        plan->keys[own].samples++;
        if (plan->finds[own].kept_by == 0)
            plan->finds[own].kept_by = KEEP_BY_ROOT;
    }
}

void child_samples_decide(struct sample_plan *plan, const struct sample_plan *before,
                          const struct thread_links *links)
{
    keep_moved(plan, links);
    keep_samples_decide_moved(plan, before);
}

void child_samples_finish(struct sample_plan *plan, const struct sample_plan *before)
{
    assert(plan->profile_count == before->profile_count &&
           plan->resource_count == before->resource_count);
    for (uint32_t i = 0; i < plan->profile_count; i++) {
        plan->profiles[i].span_taken |= before->profiles[i].span_taken;
        plan->profiles[i].trace_taken |= before->profiles[i].trace_taken;
    }
    for (uint32_t i = 0; i < plan->resource_count; i++) {
        plan->resources[i].span_taken |= before->resources[i].span_taken;
        plan->resources[i].trace_taken |= before->resources[i].trace_taken;
    }
    assert(plan->upload_count == before->upload_count);
    for (uint32_t i = 0; i < plan->upload_count; i++) {
        plan->uploads[i].service = before->uploads[i].service;
        plan->uploads[i].verdict = before->uploads[i].verdict;
        plan->uploads[i].unnamed = before->uploads[i].unnamed;
    }
    plan->by_thread = before->by_thread;
    plan->unnamed = before->unnamed;
    plan->not_split = before->not_split;
    plan->doubts = before->doubts;
    plan->doubt_count = before->doubt_count;
    plan->doubts_are_cut = before->doubts_are_cut;
}
