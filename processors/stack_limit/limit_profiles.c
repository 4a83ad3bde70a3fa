#include "processors/stack_limit/limit_profiles.h"

#include "core/data/fold.h"
#include "processors/stack_limit/small_stacks.h"

struct limiting {
    struct dictionary *dictionary;
    struct stack_cut cut;
    struct profile_size size;
    struct equal_entries equals; /* with min_share */
    struct small_stacks small;
    bool folds;     /* min_share or max_profile_bytes may apply */
    uint32_t other; /* stack; 0: not made yet */
    struct limited_samples counts;
};

static void begin_profile(void *context, struct slice profile)
{
    struct limiting *limiting = context;
    if (!limiting->folds)
        return;
    small_stacks_decide(&limiting->small, profile);
    if (limiting->small.any && limiting->other == 0)
        limiting->other = stack_cut_add_stack(
            limiting->dictionary, stack_cut_add_marker(limiting->dictionary, SLICE("[other]")));
}

static enum stack_fate fate_of(const struct limiting *limiting, uint32_t stack)
{
    return limiting->folds ? small_stacks_fate(&limiting->small, stack) : STACK_STAYS;
}

/* What arrived on the stack of the rest joins it. */
static bool joins_other(const struct limiting *limiting, uint32_t stack)
{
    return fate_of(limiting, stack) != STACK_STAYS ||
           (limiting->folds && limiting->small.any && stack == limiting->other);
}

static enum fold_decision decide(void *context, const struct fold_sample *sample)
{
    struct limiting *limiting = context;
    uint32_t stack = stack_cut_of(&limiting->cut, sample->stack);
    enum stack_fate fate = fate_of(limiting, stack);
    limiting->counts.below_share += fate == STACK_BELOW_SHARE;
    limiting->counts.beyond_size += fate == STACK_BEYOND_SIZE;
    if (joins_other(limiting, stack))
        return FOLD_FOLD;
    if (stack == sample->stack)
        return FOLD_KEEP;
    limiting->counts.truncated++;
    return FOLD_MOVE;
}

static uint32_t new_stack(void *context, uint32_t stack)
{
    const struct limiting *limiting = context;
    stack = stack_cut_of(&limiting->cut, stack);
    return joins_other(limiting, stack) ? limiting->other : stack;
}

/* Prepares what decides about stacks, unless no limit can apply. */
static void begin_folding(struct limiting *limiting, const struct profile_limits *limits,
                          size_t request_size, struct arena *scratch)
{
    bool is_large = limits->max_profile_bytes > 0 && request_size > limits->max_profile_bytes;
    limiting->folds = is_large || limits->min_share > 0;
    if (!limiting->folds)
        return;
    if (is_large)
        profile_size_init(&limiting->size, limiting->dictionary, scratch);
    limiting->small = small_stacks_init(&limiting->cut, limiting->dictionary,
                                        is_large ? &limiting->size : NULL, scratch);
    if (limits->min_share > 0) {
        equal_entries_init(&limiting->equals, limiting->dictionary, scratch);
        small_stacks_set_share(&limiting->small, limits->min_share, &limiting->equals);
    }
    if (is_large)
        limiting->small.max_bytes = limits->max_profile_bytes;
}

struct limited_samples limit_profiles(struct batch *batch, const struct profile_limits *limits)
{
    struct limiting limiting = {.dictionary = batch_dictionary(batch)};
    struct fold_rule rule = {
        .decide = decide, .begin_profile = begin_profile, .stack = new_stack, .context = &limiting};
    struct message *root = &batch->parts[0].root;
    struct arena scratch;
    arena_init(&scratch, batch->arena.budget);
    limiting.cut = stack_cut_all(limiting.dictionary, limits->max_depth, &scratch);
    begin_folding(&limiting, limits, batch_size(batch), &scratch);
    if (limiting.cut.any || limiting.folds) {
        struct fold_result result = profiles_fold(root, limiting.dictionary, &batch->arena, &rule);
        batch->items = result.kept + result.combined;
        if (limiting.cut.any || result.folded > 0)
            batch_prune(batch);
    }
    equal_entries_deinit(&limiting.equals);
    arena_deinit(&scratch);
    return limiting.counts;
}
