#include "processors/tail_sampling/plan_change.h"

#include "config/diff.h"
#include "core/base/memory.h"
#include "processors/tail_sampling/tail_fields.h"
#include "processors/tail_sampling/trace_facts.h"

#include <assert.h>

/* Whether both say the same of a span or sample; their names do not matter. */
static bool reads_the_same(struct arena *arena, const struct tail_policy *one,
                           const struct tail_policy *other)
{
    struct tail_leaf named = *one->leaf;
    named.name = other->leaf->name;
    return one->type == other->type &&
           !config_fields_differ(arena, tail_policy_fields, true, &named, other->leaf);
}

/* Searches from `from` on and around, because most often only a few policies differ. */
static const struct tail_policy *find_same(struct arena *arena, const struct tail_plan *before,
                                           uint32_t from, const struct tail_policy *policy)
{
    for (uint32_t i = 0; i < before->leaf_count; i++) {
        const struct tail_policy *other = before->leaves[(from + i) % before->leaf_count];
        if (reads_the_same(arena, policy, other))
            return other;
    }
    return NULL;
}

void plan_change_init(struct plan_change *change, const struct tail_plan *before,
                      const struct tail_plan *after)
{
    struct arena arena;
    uint32_t next = 0;
    arena_init(&arena, NULL);
    *change = (struct plan_change){
        .before = before, .after = after, .moves_bits = before->bit_count != after->bit_count};
    change->same = memory_zalloc((after->leaf_count + 1) * sizeof(struct tail_policy *));
    for (uint32_t i = 0; i < after->leaf_count; i++) {
        const struct tail_policy *policy = after->leaves[i];
        const struct tail_policy *same = find_same(&arena, before, next, policy);
        change->same[i] = same;
        next = same ? same->number + 1 : next;
        change->moves_bits |= policy->bit != TAIL_NO_BIT && (!same || same->bit != policy->bit);
        change->reads_more |= !same && policy->bit != TAIL_NO_BIT && policy->type != TAIL_FUNCTION;
        change->reads_more_samples |= !same && policy->type == TAIL_FUNCTION;
    }
    change->reads_more_samples |= after->reads_samples && !before->reads_samples;
    arena_deinit(&arena);
}

void plan_change_deinit(struct plan_change *change)
{
    free(change->same);
    change->same = NULL;
}

static void copy_bit(const uint64_t *before, uint32_t from, uint64_t *after, uint32_t to)
{
    if (facts_has(before, from))
        facts_set(after, to);
}

void plan_change_bits(const struct plan_change *change, const uint64_t *before, uint64_t *after)
{
    for (uint32_t i = 0; i < change->after->leaf_count; i++) {
        const struct tail_policy *policy = change->after->leaves[i], *same = change->same[i];
        if (!same || policy->bit == TAIL_NO_BIT)
            continue;
        copy_bit(before, same->bit, after, policy->bit);
        if (policy->type == TAIL_OTTL_CONDITION)
            copy_bit(before, same->bit + 1, after, policy->bit + 1);
    }
}
