#include "processors/spanjoin/keep_samples.h"

#include "core/base/hash.h"
#include "core/base/index_table.h"
#include "core/base/saturate.h"
#include "core/data/fold.h"
#include "core/data/sample_threads.h"
#include "core/pipeline/cpu_share.h"

#include <assert.h>

/* ---- keys ---- */

static bool is_same_span(const struct span_match *a, const struct span_match *b)
{
    return a->source == b->source && memcmp(&a->key, &b->key, sizeof a->key) == 0;
}

/* Keys of a plan, by the span that they match. */
static struct index_probe probe_span(const struct index_table *by_span,
                                     const struct span_match *match)
{
    return index_table_probe(by_span,
                             (uint32_t)hash_bytes(slice_of(&match->key, sizeof match->key)));
}

/* Returns the first key that matches the span of key k, and adds k if it is this one. */
static uint32_t first_key(const struct sample_plan *plan, struct index_table *by_span, uint32_t k)
{
    struct index_probe probe = probe_span(by_span, plan->keys[k].match);
    for (uint32_t first; index_table_next(by_span, &probe, &first);)
        if (is_same_span(plan->keys[first].match, plan->keys[k].match))
            return first;
    index_table_add(by_span, &probe, k);
    return k;
}

/* The CPU time in ns of the samples of each key's span, or 0 if the key has none. */
struct span_cpu {
    const struct sample_plan *plan;
    struct index_table by_span; /* the first key of each span */
    int64_t *by_key;
};

/* Returns what is known of a span: also what an earlier plan has added. */
static int64_t known_cpu(const struct span_cpu *before, const struct span_match *match)
{
    struct index_probe probe = probe_span(&before->by_span, match);
    int64_t cpu_ns = 0;
    for (uint32_t k; index_table_next(&before->by_span, &probe, &k);)
        if (is_same_span(before->plan->keys[k].match, match))
            cpu_ns = before->by_key[k];
    return cpu_ns > match->sum ? cpu_ns : match->sum;
}

/* Several keys mean one span if its samples differ in what they name beside its id, or in their
 * time. A held request was added to the index before; then the keys have no totals. before: of the
 * plan before samples went on to children, whose totals may not be in the index yet; NULL: none. */
static struct span_cpu cpu_of_keys(const struct sample_plan *plan, const struct span_cpu *before,
                                   struct arena *arena)
{
    uint32_t count = plan->key_count;
    struct span_cpu cpu = {.plan = plan, .by_key = arena_array(arena, count, sizeof *cpu.by_key)};
    uint32_t *first = arena_array(arena, count, sizeof *first);
    index_table_reserve(&cpu.by_span, count, arena);
    for (uint32_t k = 0; k < count; k++) {
        const struct span_match *match = plan->keys[k].match;
        const uint64_t *totals = plan->finds[k].totals;
        first[k] = match ? first_key(plan, &cpu.by_span, k) : k;
        if (match && first[k] == k)
            cpu.by_key[k] = before ? known_cpu(before, match) : match->sum;
        if (match && totals)
            cpu.by_key[first[k]] = saturate_add(cpu.by_key[first[k]],
                                                (int64_t)totals[2 + 2 * plan->settings->cpu_type]);
    }
    for (uint32_t k = 0; k < count; k++)
        cpu.by_key[k] = cpu.by_key[first[k]];
    return cpu;
}

static bool is_true_of_cpu(const struct keep_condition *condition, uint64_t duration_ns,
                           int64_t cpu_ns)
{
    if (condition->kind == KEEP_CPU_ABOVE)
        return cpu_ns > condition->cpu_above;
    return condition->kind == KEEP_CPU_SHARE_ABOVE &&
           cpu_share_is_above(cpu_ns, duration_ns, condition->cpu_share_above);
}

uint8_t keep_by_cpu(const struct keep_settings *keep, const struct span_facts *facts,
                    int64_t cpu_ns)
{
    const struct keep_condition *conditions = keep->span_detail_when.items;
    uint64_t duration_ns = facts->end_ns > facts->start_ns ? facts->end_ns - facts->start_ns : 0;
    for (size_t i = 0; i < keep->span_detail_when.count; i++)
        if (is_true_of_cpu(&conditions[i], duration_ns, cpu_ns))
            return keep_by_condition(i);
    return 0;
}

/* Returns which condition the span itself met. since_ns: as in struct keep_programs. */
static uint8_t kept_by_span(const struct span_match *match, uint64_t since_ns)
{
    uint8_t kept_by = match->facts.kept_by;
    return kept_by && match->arrived_ns < since_ns ? KEEP_BY_EARLIER : kept_by;
}

void keep_samples_decide(struct sample_plan *plan, uint64_t since_ns)
{
    const struct keep_settings *keep = &plan->settings->keep;
    if (!keep->enabled || plan->key_count == 0)
        return;
    struct span_cpu cpu = {.by_key = NULL};
    if (keep->reads_cpu)
        cpu = cpu_of_keys(plan, NULL, &plan->arena);
    plan->span_cpu = cpu.by_key;
    plan->span_cpu_count = cpu.by_key ? plan->key_count : 0;
    for (uint32_t k = 0; k < plan->key_count; k++) {
        const struct span_match *match = plan->keys[k].match;
        plan->finds[k].kept_by = match ? kept_by_span(match, since_ns) : 0;
        if (match && cpu.by_key && !plan->finds[k].kept_by)
            plan->finds[k].kept_by = keep_by_cpu(keep, &match->facts, cpu.by_key[k]);
    }
    keep_samples_note_detail(plan);
}

void keep_samples_decide_moved(struct sample_plan *plan, const struct sample_plan *before)
{
    const struct keep_settings *keep = &plan->settings->keep;
    if (!keep->reads_cpu || before->key_count == 0 || plan->key_count == 0)
        return;
    struct span_cpu earlier = cpu_of_keys(before, NULL, &plan->arena);
    struct span_cpu cpu = cpu_of_keys(plan, &earlier, &plan->arena);
    plan->span_cpu = cpu.by_key;
    plan->span_cpu_count = plan->key_count;
    for (uint32_t k = 0; k < plan->key_count; k++) {
        const struct span_match *match = plan->keys[k].match;
        if (match && !plan->finds[k].kept_by)
            plan->finds[k].kept_by = keep_by_cpu(keep, &match->facts, cpu.by_key[k]);
    }
}

/* ---- samples ---- */

/* What samples of a key gain that sample_plan_apply left as they came: those with all of these bits
 * of the plan, and none of the others. */
struct key_gains {
    struct fold_gain plain;    /* SAMPLE_IS_PLAIN */
    struct fold_gain stripped; /* and SAMPLE_IS_STRIPPED */
    struct fold_gain threaded; /* and SAMPLE_HAS_THREAD */
};

/* What becomes of the samples of a key: small, because samples name keys in any order. */
struct keeping {
    const struct sample_plan *plan;
    uint32_t next;           /* sample, in wire order */
    uint32_t named;          /* what the plan says of the one before */
    uint8_t *decisions;      /* by key + 1; enum fold_decision; of 0: of samples without a key */
    struct key_gains *gains; /* likewise */
};

static enum fold_decision decision_of(int fate)
{
    return fate == KEEP_FOLD ? FOLD_FOLD : fate == KEEP_DROP ? FOLD_DROP : FOLD_KEEP;
}

/* Nothing is lost because memory is short: samples that leave before their spans for that pass. */
static enum fold_decision decision_of_unjoined(const struct sample_plan *plan)
{
    return plan->overflow ? FOLD_KEEP : decision_of(plan->settings->keep.unjoined);
}

static enum fold_decision decision_of_key(const struct sample_plan *plan, uint32_t k)
{
    const struct keep_settings *keep = &plan->settings->keep;
    if (!plan->keys[k].match)
        return decision_of_unjoined(plan);
    return plan->finds[k].kept_by ? FOLD_KEEP : decision_of(keep->otherwise);
}

void keep_samples_note_detail(struct sample_plan *plan)
{
    if (!keep_takes_any(&plan->settings->keep))
        return;
    for (uint32_t k = 0; k < plan->key_count; k++)
        plan->finds[k].with_detail =
            plan->keys[k].is_shown && decision_of_key(plan, k) == FOLD_KEEP;
}

static struct key_gains gains_of_key(const struct sample_plan *plan, uint32_t k)
{
    struct key_gains gains = {.plain.link = 0};
    const struct sample_key *key = &plan->keys[k];
    if (keep_takes_detail(plan, k))
        gains.plain.attributes = key->gain->packed;
    if (keep_takes_sample(plan, (k + 1) | SAMPLE_IS_PLAIN | SAMPLE_IS_STRIPPED)) {
        gains.stripped.attributes = gains.threaded.attributes = key->gain->packed;
        gains.threaded.link = key->link;
    }
    return gains;
}

static void keeping_init(struct keeping *keeping, struct sample_plan *plan, bool keeps_all)
{
    uint32_t count = plan->key_count + 1;
    *keeping =
        (struct keeping){.plan = plan,
                         .decisions = arena_array(&plan->arena, count, sizeof *keeping->decisions),
                         .gains = arena_array(&plan->arena, count, sizeof *keeping->gains)};
    /* Samples that are not looked up for lack of memory are among those without a key. */
    bool keeps_unnamed = keeps_all || plan->beyond_keys > 0;
    keeping->decisions[0] = (uint8_t)(keeps_unnamed ? FOLD_KEEP : decision_of_unjoined(plan));
    for (uint32_t k = 0; k < plan->key_count; k++) {
        keeping->decisions[k + 1] = (uint8_t)(keeps_all ? FOLD_KEEP : decision_of_key(plan, k));
        keeping->gains[k + 1] = gains_of_key(plan, k);
    }
}

static enum fold_decision decide(void *context, const struct fold_sample *sample)
{
    struct keeping *keeping = context;
    (void)sample;
    assert(keeping->next < keeping->plan->sample_count);
    keeping->named = keeping->plan->samples[keeping->next++];
    return (enum fold_decision)keeping->decisions[keeping->named & SAMPLE_KEY];
}

/* Samples that sample_plan_apply left as they came gain what the others have gained. No branch
 * would predict which samples have a key. */
static const struct fold_gain *gain_of(void *context)
{
    const struct keeping *keeping = context;
    uint32_t named = keeping->named, stripped = SAMPLE_IS_PLAIN | SAMPLE_IS_STRIPPED;
    uint32_t of_attributes = named & (stripped | SAMPLE_PROMOTED);
    const struct key_gains *gains = &keeping->gains[named & SAMPLE_KEY];
    if ((of_attributes == stripped) | ((named & SAMPLE_KEY) == 0))
        return named & SAMPLE_HAS_THREAD ? &gains->threaded : &gains->stripped;
    return of_attributes == SAMPLE_IS_PLAIN ? &gains->plain : NULL;
}

/* Adds the attributes of one span that the samples of a key have gained. */
static size_t add_detail(const struct sample_plan *plan, const struct sample_gain *gain,
                         uint32_t *indices)
{
    const struct spanjoin_side *side = &plan->settings->samples;
    size_t count = 0;
    for (size_t i = 0; gain && i < side->joined_count; i++)
        if (gain->attributes[i] != 0 && join_path_is_of_one_span(side->joined[i].path))
            indices[count++] = gain->attributes[i];
    return count;
}

/* Sets the attributes of one span that samples have gained, because a dry run changes nothing. */
static void take_detail(struct sample_plan *plan, struct fold_rule *rule)
{
    const struct spanjoin_side *side = &plan->settings->samples;
    size_t most = 0;
    for (size_t i = 0; i < side->joined_count; i++)
        most += join_path_is_of_one_span(side->joined[i].path) ? plan->key_count : 0;
    if (most == 0)
        return;
    uint32_t *indices = arena_array(&plan->arena, most, sizeof *indices);
    for (uint32_t k = 0; k < plan->key_count; k++)
        rule->taken_count += add_detail(plan, plan->keys[k].gain, indices + rule->taken_count);
    rule->taken = indices;
}

static struct entry_marks make_marks(struct sample_plan *plan, int table)
{
    uint32_t count = dictionary_count(batch_dictionary(plan->batch), table);
    return (struct entry_marks){arena_array(&plan->arena, (size_t)count + 1, 1), count};
}

/* What samples refer to, for pruning: nothing yet. */
static struct sample_marks new_marks(struct sample_plan *plan)
{
    return (struct sample_marks){.stacks = make_marks(plan, DICTIONARY_STACK_TABLE),
                                 .links = make_marks(plan, DICTIONARY_LINK_TABLE),
                                 .attributes = make_marks(plan, DICTIONARY_ATTRIBUTE_TABLE)};
}

/* marks: NULL: nothing changes, samples are counted only. */
static struct fold_result fold(struct sample_plan *plan, bool keeps_all,
                               const struct sample_marks *marks)
{
    struct batch *batch = plan->batch;
    struct keeping keeping;
    keeping_init(&keeping, plan, keeps_all);
    struct fold_rule rule = {.decide = decide,
                             .ignores_ids = true,
                             .gains = gain_of,
                             .context = &keeping,
                             .stripped_keys = sample_thread_keys,
                             .stripped_count = plan->has_added_threads ? SAMPLE_THREAD_KEYS : 0,
                             .known = plan->known.samples ? &plan->known : NULL,
                             .counts_only = !marks,
                             .marks = marks};
    if (!marks)
        take_detail(plan, &rule);
    struct fold_result result =
        profiles_fold(&batch->parts[0].root, batch_dictionary(batch), &batch->arena, &rule);
    assert(keeping.next == plan->sample_count);
    return result;
}

static void count_conditions(const struct sample_plan *plan, uint32_t by[KEEP_BY_END])
{
    for (uint32_t k = 0; k < plan->key_count; k++) {
        assert(plan->finds[k].kept_by < KEEP_BY_END);
        by[plan->finds[k].kept_by] += plan->keys[k].samples;
    }
}

void keep_samples_apply(struct sample_plan *plan, struct keep_counts *counts)
{
    const struct keep_settings *keep = &plan->settings->keep;
    struct batch *batch = plan->batch;
    struct fold_result result = {.kept = 0};
    batch->has_added_threads = false; /* the pass below removes them */
    if (!keep->enabled && !plan->has_added_threads)
        return;
    const struct sample_marks marks = new_marks(plan);
    if (keep->enabled) {
        result = fold(plan, false, keep->dry_run ? NULL : &marks);
        counts->kept = result.kept;
        counts->folded = result.folded;
        counts->combined = result.combined;
        counts->dropped = result.dropped;
        count_conditions(plan, counts->by);
    }
    bool keeps_all = !keep->enabled || keep->dry_run;
    if (keeps_all && !plan->has_added_threads)
        return;
    if (keeps_all) /* only removes the threads that readers added */
        result = fold(plan, true, &marks);
    batch->items = result.kept - result.merged + result.combined;
    if (batch->items > 0 && (plan->has_added_threads || result.folded + result.dropped > 0))
        batch_prune_marked(batch, &marks);
}
