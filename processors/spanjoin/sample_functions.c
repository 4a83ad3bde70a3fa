#include "processors/spanjoin/sample_functions.h"

#include "core/base/text.h"
#include "core/data/span_index.h"
#include "core/ottl/ottl.h"
#include "core/ottl/ottl_profile_tables.h"

#include <assert.h>

/* What a sample adds. */
struct function_use {
    uint64_t weight;
    uint32_t key;
    uint32_t name; /* number + 1; 0: not known */
    bool is_cpu;
};

struct sample_functions {
    struct ottl_profile_tables *tables; /* only while the plan is built */
    /* Copies: the dictionary is gone when the totals of a large request are added. */
    struct slice *names;
    uint32_t name_count;
    uint32_t name_capacity;
    uint32_t *name_numbers; /* by index in the string_table: number + 1; 0: none yet */
    struct function_use *uses;
    uint32_t count;
    uint32_t capacity;
};

static struct sample_functions *functions_of(struct sample_plan *plan)
{
    if (plan->functions)
        return plan->functions;
    struct ottl_item item;
    ottl_item_set_dictionary(&item, plan->dictionary, &plan->arena);
    plan->functions = arena_zalloc(&plan->arena, sizeof *plan->functions);
    plan->functions->tables = item.tables;
    plan->functions->name_numbers =
        arena_array(&plan->arena, dictionary_count(plan->dictionary, DICTIONARY_STRING_TABLE) + 1,
                    sizeof(uint32_t));
    return plan->functions;
}

/* Returns the number + 1 of the name of a stack's innermost function; 0: it is not known. */
static uint32_t name_of(struct sample_plan *plan, uint32_t stack)
{
    struct sample_functions *functions = functions_of(plan);
    functions->tables->ran_out = false;
    uint32_t string = ottl_stack_leaf(functions->tables, stack, OTTL_LEAF_FUNCTION);
    struct slice name = dictionary_string(plan->dictionary, string);
    uint32_t *number = &functions->name_numbers[string];
    if (*number > 0 || name.size == 0)
        return *number;
    name.size = text_utf8_cut(name, TOP_FUNCTIONS_NAME_MAX);
    functions->names = arena_grow(&plan->arena, functions->names, functions->name_count,
                                  &functions->name_capacity, sizeof *functions->names);
    functions->names[functions->name_count++] = arena_copy(&plan->arena, name);
    return *number = functions->name_count;
}

static uint32_t stack_of(struct slice sample)
{
    struct wire_cursor cursor = wire_cursor(sample);
    struct wire_field field;
    uint32_t stack = 0;
    while (wire_next(&cursor, &field))
        if (field.number == SAMPLE_STACK_INDEX && field.type == WIRE_VARINT)
            stack = (uint32_t)field.value;
    return stack;
}

/* Sets CPU time, or observations of a profile that counts samples. Sums come from outside: one that
 * is not positive adds nothing. */
static void weigh(const struct profile_sums *sums, const struct sample_view *view,
                  struct function_use *use)
{
    struct sample_amount amount = sample_view_amount(view);
    use->is_cpu = sums->cpu_per_value > 0;
    if (use->is_cpu)
        use->weight = profile_sums_cpu(sums, amount.sum);
    else if (sums->counts_samples)
        use->weight = sums->counts_values ? amount.sum : amount.count;
    if ((int64_t)use->weight < 0)
        use->weight = 0;
}

void sample_functions_note(struct sample_plan *plan, uint32_t key, const struct profile_sums *sums,
                           struct slice sample)
{
    struct function_use use = {.key = key};
    struct sample_view view = sample_view_read(plan, sample);
    weigh(sums, &view, &use);
    if (use.weight == 0)
        return;
    use.name = name_of(plan, stack_of(sample));
    struct sample_functions *functions = plan->functions;
    functions->uses = arena_grow(&plan->arena, functions->uses, functions->count,
                                 &functions->capacity, sizeof *functions->uses);
    functions->uses[functions->count++] = use;
}

void sample_functions_note_all(struct sample_plan *plan, const struct profile_plan *profile,
                               struct slice raw)
{
    uint32_t sample = profile->first_sample;
    struct message_iter it = message_iter_bytes(raw);
    struct message_field field;
    for (; message_next_bytes(&it, PROFILE_SAMPLES, &field); sample++) {
        uint32_t key = plan->samples[sample] & SAMPLE_KEY;
        if (key > 0 && (!plan->counts || plan->counts[sample]))
            sample_functions_note(plan, key - 1, &profile->sums, field.wire.bytes);
    }
    assert(sample == profile->first_sample + profile->sample_count);
}

void sample_functions_add(const struct sample_plan *plan, struct span_index *index, uint64_t now_ns)
{
    enum { TOGETHER = 256 };
    const struct sample_functions *functions = plan->functions;
    struct function_weight weights[TOGETHER];
    size_t count = 0;
    for (uint32_t i = 0; functions && i < functions->count; i++) {
        const struct function_use *use = &functions->uses[i];
        const struct span_find *find = &plan->finds[use->key];
        weights[count++] = (struct function_weight){
            .key = &find->key,
            .source = &find->source,
            .name = use->name > 0 ? functions->names[use->name - 1] : (struct slice){0},
            .weight = use->weight,
            .is_cpu = use->is_cpu};
        if (count < TOGETHER && i + 1 < functions->count)
            continue;
        top_functions_add(span_index_functions(index), weights, count, now_ns);
        count = 0;
    }
}
