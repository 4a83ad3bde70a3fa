#include "processors/tail_sampling/leaf_tests.h"

#include "core/base/memory.h"
#include "core/data/attributes.h"
#include "core/ottl/ottl_trace_state.h"
#include "processors/tail_sampling/trace_facts.h"

#include <assert.h>

/* ---- programs ---- */

static bool compile_regexes(struct leaf_program *program, const struct config_strings *patterns,
                            struct error *err)
{
    program->regexes = memory_zalloc((patterns->count + 1) * sizeof(struct ottl_regex *));
    for (; program->regex_count < patterns->count; program->regex_count++) {
        uint32_t i = program->regex_count;
        program->regexes[i] = ottl_regex_new(slice_of_string(patterns->items[i]), err);
        if (!program->regexes[i])
            return false;
    }
    return true;
}

static bool compile_condition(struct leaf_program *program, enum ottl_context context,
                              const char *text, struct error *err)
{
    uint32_t i = program->condition_count;
    program->conditions[i] =
        ottl_compile_condition(context, slice_of_string(text), OTTL_PREFIX_OPTIONAL, err);
    if (!program->conditions[i])
        return false;
    program->condition_count++;
    return true;
}

/* Conditions on spans, then those on events. */
static bool compile_conditions(struct leaf_program *program, const struct tail_ottl_condition *ottl,
                               struct error *err)
{
    program->conditions = memory_zalloc((ottl->span.count + ottl->spanevent.count + 1) *
                                        sizeof(struct ottl_program *));
    for (size_t i = 0; i < ottl->span.count; i++)
        if (!compile_condition(program, OTTL_SPAN, ottl->span.items[i], err))
            return false;
    for (size_t i = 0; i < ottl->spanevent.count; i++)
        if (!compile_condition(program, OTTL_SPAN_EVENT, ottl->spanevent.items[i], err))
            return false;
    return true;
}

/* Writes an OTTL condition on samples that is true if a name of the stack matches. */
static const char *function_condition(struct arena *arena, const char *pattern)
{
    struct text text = {0};
    text_append(&text, "StackContains(");
    ottl_append_text(&text, pattern);
    text_append(&text, ")");
    char *condition = arena_strdup(arena, text_string(&text));
    text_deinit(&text);
    return condition;
}

static bool compile_function(struct leaf_program *program, const char *pattern, struct error *err)
{
    struct arena arena;
    arena_init(&arena, NULL);
    program->conditions = memory_zalloc(2 * sizeof(struct ottl_program *));
    bool compiled =
        compile_condition(program, OTTL_PROFILE_SAMPLE, function_condition(&arena, pattern), err);
    arena_deinit(&arena);
    return compiled;
}

static bool compile_leaf(struct leaf_program *program, const struct tail_policy *policy,
                         struct error *err)
{
    const struct tail_leaf *leaf = policy->leaf;
    switch (policy->type) {
    case TAIL_STRING_ATTRIBUTE:
        return !leaf->string_attribute.enabled_regex_matching ||
               compile_regexes(program, &leaf->string_attribute.values, err);
    case TAIL_OTTL_CONDITION:
        return compile_conditions(program, &leaf->ottl_condition, err);
    case TAIL_FUNCTION:
        return compile_function(program, leaf->function.pattern, err);
    default:
        return true;
    }
}

bool leaf_programs_init(struct leaf_programs *programs, const struct tail_plan *plan,
                        struct error *err)
{
    programs->plan = plan;
    programs->of = memory_zalloc((plan->leaf_count + 1) * sizeof *programs->of);
    for (uint32_t i = 0; i < plan->leaf_count; i++)
        if (!compile_leaf(&programs->of[i], plan->leaves[i], err)) {
            leaf_programs_deinit(programs);
            return false;
        }
    return true;
}

void leaf_programs_deinit(struct leaf_programs *programs)
{
    for (uint32_t i = 0; programs->of && i < programs->plan->leaf_count; i++) {
        struct leaf_program *program = &programs->of[i];
        for (uint32_t k = 0; k < program->regex_count; k++)
            ottl_regex_free(program->regexes[k]);
        for (uint32_t k = 0; k < program->condition_count; k++)
            ottl_program_free(program->conditions[k]);
        free(program->regexes);
        free(program->conditions);
    }
    free(programs->of);
    programs->of = NULL;
}

/* ---- tests ---- */

void leaf_tests_init(struct leaf_tests *tests, const struct leaf_programs *programs,
                     const char *label)
{
    uint32_t leaves = programs->plan->leaf_count;
    *tests = (struct leaf_tests){.programs = programs, .label = label};
    tests->matcher = ottl_matcher_new();
    tests->evaluators = memory_zalloc((leaves + 1) * sizeof(struct ottl_evaluator **));
    for (uint32_t i = 0; i < leaves; i++) {
        const struct leaf_program *program = &programs->of[i];
        tests->evaluators[i] =
            memory_zalloc((program->condition_count + 1) * sizeof(struct ottl_evaluator *));
        for (uint32_t k = 0; k < program->condition_count; k++)
            tests->evaluators[i][k] = ottl_evaluator_new(program->conditions[k]);
        tests->has_conditions |= programs->plan->leaves[i]->type == TAIL_OTTL_CONDITION;
    }
}

void leaf_tests_deinit(struct leaf_tests *tests)
{
    if (!tests->programs)
        return;
    for (uint32_t i = 0; i < tests->programs->plan->leaf_count; i++) {
        for (uint32_t k = 0; k < tests->programs->of[i].condition_count; k++)
            ottl_evaluator_free(tests->evaluators[i][k]);
        free(tests->evaluators[i]);
    }
    free(tests->evaluators);
    ottl_matcher_free(tests->matcher);
    tests->programs = NULL;
}

void leaf_tests_begin(struct leaf_tests *tests)
{
    ottl_matcher_begin(tests->matcher);
    ottl_item_begin(&tests->item);
    ottl_errors_begin(&tests->errors, tests->label);
}

/* ---- attributes ---- */

static bool find_attribute(struct slice message, uint32_t number, const char *key,
                           struct any_value *out)
{
    struct attribute attribute;
    if (!attributes_find(message_iter_bytes(message), number, slice_of_string(key), &attribute))
        return false;
    *out = any_value_read(attribute.pair.value);
    return true;
}

static bool is_any_of(const struct config_strings *values, struct slice text)
{
    if (text.size == 0)
        return false;
    for (size_t i = 0; i < values->count; i++)
        if (slice_is(text, values->items[i]))
            return true;
    return false;
}

/* A match that takes too many steps counts as none, with a warning. */
static bool matches_any(struct leaf_tests *tests, const struct leaf_program *program,
                        struct slice text)
{
    for (uint32_t i = 0; i < program->regex_count; i++) {
        struct error err;
        bool found = false;
        if (!ottl_regex_find(program->regexes[i], tests->matcher, text, &found, &err))
            ottl_errors_report(&tests->errors, OTTL_IGNORE, OTTL_OF_CONDITION, "string_attribute",
                               err.text);
        if (found)
            return true;
    }
    return false;
}

/* Whether an attribute of a span or resource matches a policy on attributes. A value of another
 * type never does. */
static bool attribute_matches(struct leaf_tests *tests, const struct tail_policy *policy,
                              struct slice message, uint32_t number)
{
    const struct tail_leaf *leaf = policy->leaf;
    struct any_value value;
    switch (policy->type) {
    case TAIL_NUMERIC_ATTRIBUTE:
        return find_attribute(message, number, leaf->numeric_attribute.key, &value) &&
               value.kind == ANY_VALUE_INT && value.integer >= leaf->numeric_attribute.min_value &&
               value.integer <= leaf->numeric_attribute.max_value;
    case TAIL_BOOLEAN_ATTRIBUTE:
        return find_attribute(message, number, leaf->boolean_attribute.key, &value) &&
               value.kind == ANY_VALUE_BOOL && value.truth == leaf->boolean_attribute.value;
    case TAIL_STRING_ATTRIBUTE:
        if (!find_attribute(message, number, leaf->string_attribute.key, &value) ||
            value.kind != ANY_VALUE_STRING)
            return false;
        return leaf->string_attribute.enabled_regex_matching
                   ? matches_any(tests, &tests->programs->of[policy->number], value.bytes)
                   : is_any_of(&leaf->string_attribute.values, value.bytes);
    default:
        return false;
    }
}

void leaf_tests_resource(struct leaf_tests *tests, struct slice resource, uint64_t *bits)
{
    const struct tail_plan *plan = tests->programs->plan;
    for (uint32_t i = 0; i < plan->leaf_count; i++)
        if (attribute_matches(tests, plan->leaves[i], resource, RESOURCE_ATTRIBUTES))
            facts_set(bits, plan->leaves[i]->bit);
}

/* ---- spans ---- */

static bool has_status(const struct config_strings *codes, int status)
{
    static const char *const names[] = {"UNSET", "OK", "ERROR"};
    for (size_t i = 0; status >= 0 && status < 3 && i < codes->count; i++)
        if (strcmp(codes->items[i], names[status]) == 0)
            return true;
    return false;
}

static bool has_state(const struct tail_trace_state *state, struct slice trace_state)
{
    struct slice value;
    return ottl_trace_state_get(trace_state, slice_of_string(state->key), &value) &&
           is_any_of(&state->values, value);
}

/* Evaluates one condition, and sets the bit of failure if it fails. */
static bool is_true(struct leaf_tests *tests, const struct tail_policy *policy, uint32_t condition,
                    const char *text, uint64_t *bits)
{
    struct ottl_evaluator *evaluator = tests->evaluators[policy->number][condition];
    enum ottl_result result = ottl_evaluate(evaluator, &tests->item);
    int mode = policy->leaf->ottl_condition.error_mode;
    if (result == OTTL_FAILED && mode == OTTL_PROPAGATE)
        facts_set(bits, policy->bit + 1);
    else if (result == OTTL_FAILED)
        ottl_errors_report(&tests->errors, (enum ottl_error_mode)mode, OTTL_OF_CONDITION, text,
                           ottl_evaluator_error(evaluator));
    return result == OTTL_MATCH;
}

static bool events_match(struct leaf_tests *tests, const struct tail_policy *policy,
                         struct slice span, uint64_t *bits)
{
    const struct tail_ottl_condition *ottl = &policy->leaf->ottl_condition;
    struct message_iter it = message_iter_bytes(span);
    struct message_field event;
    while (ottl->spanevent.count > 0 && message_next_bytes(&it, SPAN_EVENTS, &event)) {
        ottl_item_set_span_event(&tests->item, message_iter_bytes(event.wire.bytes));
        for (uint32_t i = 0; i < ottl->spanevent.count; i++)
            if (is_true(tests, policy, (uint32_t)ottl->span.count + i, ottl->spanevent.items[i],
                        bits))
                return true;
    }
    return false;
}

static bool condition_matches(struct leaf_tests *tests, const struct tail_policy *policy,
                              struct slice span, uint64_t *bits)
{
    const struct tail_ottl_condition *ottl = &policy->leaf->ottl_condition;
    for (uint32_t i = 0; i < ottl->span.count; i++)
        if (is_true(tests, policy, i, ottl->span.items[i], bits))
            return true;
    return events_match(tests, policy, span, bits);
}

static bool span_matches(struct leaf_tests *tests, const struct tail_policy *policy,
                         const struct tested_span *span, uint64_t *bits)
{
    const struct tail_leaf *leaf = policy->leaf;
    switch (policy->type) {
    case TAIL_STATUS_CODE:
        return has_status(&leaf->status_code.status_codes, span->status);
    case TAIL_TRACE_STATE:
        return has_state(&leaf->trace_state, span->trace_state);
    case TAIL_TRACE_FLAGS:
        return span->flags & 1;
    case TAIL_OTTL_CONDITION:
        return condition_matches(tests, policy, span->bytes, bits);
    default:
        return attribute_matches(tests, policy, span->bytes, SPAN_ATTRIBUTES);
    }
}

void leaf_tests_span(struct leaf_tests *tests, const struct tested_span *span,
                     const uint64_t *known, uint64_t *bits)
{
    const struct tail_plan *plan = tests->programs->plan;
    for (uint32_t i = 0; i < plan->leaf_count; i++) {
        const struct tail_policy *policy = plan->leaves[i];
        if (policy->bit == TAIL_NO_BIT || policy->type == TAIL_FUNCTION ||
            facts_has(known, policy->bit))
            continue;
        if (span_matches(tests, policy, span, bits))
            facts_set(bits, policy->bit);
    }
}
