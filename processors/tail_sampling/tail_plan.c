#include "processors/tail_sampling/tail_plan.h"

#include "config/suggest.h"
#include "core/base/hash.h"
#include "core/base/index_table.h"
#include "processors/tail_sampling/leaf_checks.h"
#include "processors/tail_sampling/tail_probability.h"

static const char *const type_names[TAIL_TYPES] = {"always_sample",
                                                   "latency",
                                                   "numeric_attribute",
                                                   "probabilistic",
                                                   "status_code",
                                                   "string_attribute",
                                                   "boolean_attribute",
                                                   "rate_limiting",
                                                   "bytes_limiting",
                                                   "span_count",
                                                   "trace_state",
                                                   "trace_flags",
                                                   "ottl_condition",
                                                   "cpu_above",
                                                   "cpu_share_above",
                                                   "samples_above",
                                                   "function",
                                                   "and",
                                                   "not",
                                                   "drop",
                                                   "composite"};

#define BIT(type) (1U << (type))
#define LEAVES (BIT(TAIL_LEAF_TYPES) - 1)

struct making {
    struct tail_settings *settings;
    struct tail_plan *plan;
    struct config_check *check;
    struct arena *arena;
};

static const char *below(const struct making *m, const char *key, const char *name)
{
    return config_check_key(m->check, key, name);
}

static const char *item(const struct making *m, const char *key, size_t index)
{
    return config_check_item(m->check, key, index);
}

/* ---- leaves ---- */

/* How many bits of a trace's facts a leaf has. */
static uint32_t bits_of(enum tail_type type)
{
    switch (type) {
    case TAIL_NUMERIC_ATTRIBUTE:
    case TAIL_STATUS_CODE:
    case TAIL_STRING_ATTRIBUTE:
    case TAIL_BOOLEAN_ATTRIBUTE:
    case TAIL_TRACE_STATE:
    case TAIL_TRACE_FLAGS:
    case TAIL_FUNCTION:
        return 1;
    case TAIL_OTTL_CONDITION:
        return 2;
    default:
        return 0;
    }
}

static void add_leaf(const struct making *m, struct tail_policy *policy)
{
    struct tail_plan *plan = m->plan;
    uint32_t bits = bits_of(policy->type);
    policy->bit = bits > 0 ? plan->bit_count : TAIL_NO_BIT;
    plan->bit_count += bits;
    if (policy->type == TAIL_RATE_LIMITING || policy->type == TAIL_BYTES_LIMITING)
        policy->limit = plan->limit_count++;
    if (policy->type == TAIL_PROBABILISTIC)
        policy->threshold =
            tail_probability_threshold(policy->leaf->probabilistic.sampling_percentage);
    plan->reads_samples |= policy->type >= TAIL_CPU_ABOVE && policy->type <= TAIL_FUNCTION;
    plan->leaves = arena_grow(m->arena, plan->leaves, plan->leaf_count, &plan->leaf_capacity,
                              sizeof(struct tail_policy *));
    policy->number = plan->leaf_count;
    plan->leaves[plan->leaf_count++] = policy;
}

/* ---- types ---- */

/* Finds the type, which must be one of `allowed` (bits). */
static bool find_type(const struct making *m, const char *place, const struct tail_leaf *leaf,
                      unsigned allowed, enum tail_type *out)
{
    const char *key = below(m, place, "type"), *names[TAIL_TYPES];
    size_t count = 0;
    for (int i = 0; i < TAIL_TYPES; i++)
        if (allowed & BIT(i))
            names[count++] = type_names[i];
    if (!leaf->type || !leaf->type[0]) {
        config_check_error(m->check, key, "type is required");
        return false;
    }
    for (int i = 0; i < TAIL_TYPES; i++)
        if (strcmp(leaf->type, type_names[i]) == 0) {
            *out = (enum tail_type)i;
            if (allowed & BIT(i))
                return true;
            config_check_error(m->check, key, "a policy of type %s is not allowed here",
                               leaf->type);
            return false;
        }
    const char *near = config_suggest(leaf->type, names, count);
    config_check_error(m->check, key, "unknown sampling policy type %s%s%s%s", leaf->type,
                       near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    return false;
}

/* Settings of another type have no effect, here as in the Collector. */
static void check_other_blocks(const struct making *m, const char *place, const char *type)
{
    for (int i = 0; i < TAIL_TYPES; i++)
        if (strcmp(type, type_names[i]) != 0 &&
            config_check_is_written(m->check, below(m, place, type_names[i])))
            config_check_warn(m->check, below(m, place, type_names[i]),
                              "has no effect, because the policy is of type %s", type);
}

/* Makes a policy that contains no other; false: its type is one that does, in *type_out, or was
 * reported. */
static bool make_leaf(const struct making *m, const char *place, const struct tail_leaf *leaf,
                      unsigned allowed, struct tail_policy *policy)
{
    *policy = (struct tail_policy){
        .type = TAIL_TYPES, .name = leaf->name ? leaf->name : "", .leaf = leaf, .bit = TAIL_NO_BIT};
    enum tail_type type;
    if (!find_type(m, place, leaf, allowed, &type))
        return false;
    policy->type = type;
    check_other_blocks(m, place, leaf->type);
    if (type >= TAIL_LEAF_TYPES)
        return false;
    leaf_check(m->check, place, type, leaf);
    add_leaf(m, policy);
    return true;
}

static struct tail_policy *make_subs(const struct making *m, struct tail_policy *policy,
                                     size_t count)
{
    policy->subs = arena_array(m->arena, count, sizeof *policy->subs);
    policy->sub_count = (uint32_t)count;
    return policy->subs;
}

static void make_not(const struct making *m, const char *place, const struct tail_not *written,
                     struct tail_policy *policy)
{
    make_leaf(m, below(m, place, "not::not_sub_policy"), &written->not_sub_policy, LEAVES,
              make_subs(m, policy, 1));
}

/* The policies of `and` and `drop`. */
static void make_all_of(const struct making *m, const char *key, const struct config_list *list,
                        struct tail_policy *policy)
{
    const struct tail_and_sub *written = list->items;
    if (list->count == 0)
        config_check_error(m->check, key, "at least one policy is required");
    make_subs(m, policy, list->count);
    for (size_t i = 0; i < list->count; i++) {
        const char *place = item(m, key, i);
        if (!make_leaf(m, place, &written[i].leaf, LEAVES | BIT(TAIL_NOT), &policy->subs[i]) &&
            policy->subs[i].type == TAIL_NOT)
            make_not(m, place, &written[i].not, &policy->subs[i]);
    }
}

/* ---- composite ---- */

static const struct tail_policy *find_sub(const struct tail_policy *policy, const char *name)
{
    for (uint32_t i = 0; i < policy->sub_count; i++)
        if (strcmp(policy->subs[i].name, name) == 0)
            return &policy->subs[i];
    return NULL;
}

static bool is_sub(const struct making *m, const char *key, const struct tail_policy *policy,
                   const char *name)
{
    const char **names = arena_array(m->arena, policy->sub_count + 1, sizeof *names);
    if (find_sub(policy, name))
        return true;
    for (uint32_t i = 0; i < policy->sub_count; i++)
        names[i] = policy->subs[i].name;
    const char *near = config_suggest(name, names, policy->sub_count);
    config_check_warn(m->check, key,
                      "\"%s\" is not a policy of composite_sub_policy, so this is ignored%s%s%s",
                      name, near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    return false;
}

static int64_t whole(double spans)
{
    return spans < 0x1p63 ? (int64_t)spans : INT64_MAX;
}

/* Shares of the rate: as allocated; all others the same. */
static void allocate(const struct making *m, const char *key, const struct tail_composite *written,
                     struct tail_policy *policy)
{
    const struct tail_rate_allocation *allocations = written->rate_allocation.items;
    double total = (double)written->max_total_spans_per_second;
    if (total == 0)
        config_check_warn(m->check, key, "max_total_spans_per_second is 0, so no trace is sampled");
    for (uint32_t i = 0; i < policy->sub_count; i++)
        policy->subs[i].max_per_second = whole(total / policy->sub_count);
    for (size_t i = 0; i < written->rate_allocation.count; i++) {
        const char *name = allocations[i].policy ? allocations[i].policy : "";
        const char *place = item(m, below(m, key, "rate_allocation"), i);
        int64_t percent = allocations[i].percent;
        if (percent < 0 || percent > 100)
            config_check_warn(m->check, below(m, place, "percent"), "is not from 0 to 100");
        if (is_sub(m, place, policy, name) && percent > 0)
            ((struct tail_policy *)find_sub(policy, name))->max_per_second =
                whole((double)percent / 100 * total);
    }
}

/* Puts those that policy_order names first, in its order. Leaves are known by their address. */
static void order(const struct making *m, const char *key, const struct config_strings *names,
                  struct tail_policy *policy)
{
    bool differs = false;
    uint32_t done = 0;
    for (size_t i = 0; i < names->count; i++) {
        if (!is_sub(m, item(m, below(m, key, "policy_order"), i), policy, names->items[i]))
            continue;
        uint32_t at = (uint32_t)(find_sub(policy, names->items[i]) - policy->subs);
        if (at < done)
            continue; /* named twice */
        struct tail_policy moved = policy->subs[at];
        differs |= at != done;
        memmove(&policy->subs[done + 1], &policy->subs[done], (at - done) * sizeof *policy->subs);
        policy->subs[done++] = moved;
    }
    if (differs)
        config_check_warn(m->check, below(m, key, "policy_order"),
                          "policies are asked in this order; the Collector ignores it and asks in "
                          "the order of composite_sub_policy");
}

static void relist_leaves(const struct making *m, struct tail_policy *policy)
{
    if (policy->type < TAIL_LEAF_TYPES)
        m->plan->leaves[policy->number] = policy;
    for (uint32_t i = 0; i < policy->sub_count; i++)
        relist_leaves(m, &policy->subs[i]);
}

static void make_composite(const struct making *m, const char *place,
                           const struct tail_composite *written, struct tail_policy *policy)
{
    const char *key = below(m, place, "composite");
    const char *list = below(m, key, "composite_sub_policy");
    const struct tail_composite_sub *subs = written->composite_sub_policy.items;
    size_t count = written->composite_sub_policy.count;
    if (count == 0)
        config_check_error(m->check, list, "at least one policy is required");
    policy->max_per_second = written->max_total_spans_per_second;
    make_subs(m, policy, count);
    for (size_t i = 0; i < count; i++) {
        if (!make_leaf(m, item(m, list, i), &subs[i].leaf, LEAVES | BIT(TAIL_AND),
                       &policy->subs[i]) &&
            policy->subs[i].type == TAIL_AND)
            make_all_of(m, below(m, item(m, list, i), "and::and_sub_policy"),
                        &subs[i].and.and_sub_policy, &policy->subs[i]);
    }
    allocate(m, key, written, policy);
    order(m, key, &written->policy_order, policy);
    policy->limit = m->plan->limit_count; /* one for the sum, then one for each part */
    m->plan->limit_count += (uint32_t)count + 1;
    relist_leaves(m, policy);
}

/* ---- policies ---- */

/* Whether what it decides about a part of a trace may differ from what it decides about all. */
static bool is_stateful(const struct tail_policy *policy)
{
    const struct tail_leaf *leaf = policy->leaf;
    for (uint32_t i = 0; i < policy->sub_count; i++)
        if (is_stateful(&policy->subs[i]))
            return true;
    switch (policy->type) {
    case TAIL_RATE_LIMITING:
    case TAIL_BYTES_LIMITING:
        return true;
    case TAIL_LATENCY:
        return leaf->latency.upper_threshold_ms > 0;
    case TAIL_SPAN_COUNT:
        return leaf->span_count.max_spans > 0;
    default:
        return false;
    }
}

static void make_policy(const struct making *m, size_t index, const struct tail_written *written,
                        struct tail_policy *policy)
{
    const char *place = item(m, "policies", index);
    if (policy->name[0] == '\0')
        config_check_error(m->check, below(m, place, "name"), "policy name cannot be empty");
    switch (policy->type) {
    case TAIL_AND:
        make_all_of(m, below(m, place, "and::and_sub_policy"), &written->and.and_sub_policy,
                    policy);
        break;
    case TAIL_NOT:
        make_not(m, place, &written->not, policy);
        break;
    case TAIL_DROP:
        make_all_of(m, below(m, place, "drop::drop_sub_policy"), &written->drop.drop_sub_policy,
                    policy);
        m->plan->has_drop = true;
        break;
    case TAIL_COMPOSITE:
        make_composite(m, place, &written->composite, policy);
        break;
    default:
        break;
    }
    if (m->settings->sampling_strategy == TAIL_SPAN_INGEST && is_stateful(policy))
        config_check_error(m->check, place,
                           "sampling_strategy span-ingest requires all policies to be stateless, "
                           "but policy \"%s\" is stateful",
                           policy->name);
}

/* Names may be many: a hash finds equal ones. */
static void check_names(const struct making *m, const struct tail_written *written, uint32_t count)
{
    struct index_table by_name = {0};
    index_table_reserve(&by_name, count, m->arena);
    for (uint32_t i = 0; i < count; i++) {
        const char *name = written[i].leaf.name ? written[i].leaf.name : "";
        struct index_probe probe =
            index_table_probe(&by_name, (uint32_t)hash_bytes(slice_of_string(name)));
        uint32_t other;
        bool found = false;
        while (!found && index_table_next(&by_name, &probe, &other))
            found = strcmp(name, written[other].leaf.name) == 0;
        if (found)
            config_check_error(m->check, item(m, "policies", i), "duplicate policy name \"%s\"",
                               name);
        else if (name[0])
            index_table_add(&by_name, &probe, i);
    }
}

/* Drop policies come first, as in the Collector: one that drops ends the decision. */
static void put_drops_first(const struct making *m)
{
    struct tail_plan *plan = m->plan;
    struct tail_policy *sorted = arena_array(m->arena, plan->count, sizeof *sorted);
    uint32_t count = 0;
    for (int drops = 1; drops >= 0; drops--)
        for (uint32_t i = 0; i < plan->count; i++)
            if ((plan->policies[i].type == TAIL_DROP) == drops)
                sorted[count++] = plan->policies[i];
    plan->policies = sorted;
    for (uint32_t i = 0; i < plan->count; i++)
        relist_leaves(m, &sorted[i]);
}

void tail_plan_make(struct tail_settings *settings, struct config_check *check)
{
    struct making making = {settings, &settings->plan, check, config_check_arena(check)};
    const struct making *m = &making;
    const struct tail_written *written = settings->policies.items;
    struct tail_plan *plan = m->plan;
    unsigned errors = config_check_error_count(check);
    *plan = (struct tail_plan){.count = (uint32_t)settings->policies.count};
    plan->policies = arena_array(m->arena, plan->count, sizeof *plan->policies);
    for (size_t i = 0; i < plan->count; i++) {
        make_leaf(m, item(m, "policies", i), &written[i].leaf, ~0U, &plan->policies[i]);
        make_policy(m, i, &written[i], &plan->policies[i]);
    }
    check_names(m, written, plan->count);
    if (config_check_error_count(check) == errors)
        put_drops_first(m);
}
