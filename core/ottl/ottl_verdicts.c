#include "core/ottl/ottl_verdicts.h"

#include "core/ottl/ottl_profile_tables.h"

#include <assert.h>

bool ottl_is_of_stack(const struct ottl_evaluator *evaluator)
{
    const struct ottl_program *program = ottl_evaluator_program(evaluator);
    return program->context == OTTL_PROFILE_SAMPLE && program->reach <= OTTL_OF_STACK;
}

static void begin_batch(struct ottl_verdicts *verdicts, const struct ottl_item *item)
{
    struct ottl_profile_tables *tables = item->tables;
    if (verdicts->batch == item->batch)
        return;
    *verdicts = (struct ottl_verdicts){.batch = item->batch};
    verdicts->stacks = ottl_numbers_for(tables, DICTIONARY_STACK_TABLE, 1, &verdicts->stack_count);
    verdicts->names = ottl_numbers_for(tables, DICTIONARY_STRING_TABLE, 1, &verdicts->name_count);
}

/* What fails is asked again, because it may fail for one sample only: the number of steps that a
 * batch may take is limited. */
static bool is_known(uint8_t verdict)
{
    return verdict != 0 && verdict != 1 + OTTL_FAILED;
}

static uint8_t ask(struct ottl_evaluator *evaluator, struct ottl_item *item)
{
    item->serials[ottl_context_depth(OTTL_PROFILE_SAMPLE)]++;
    return (uint8_t)(1 + ottl_evaluate(evaluator, item));
}

static uint8_t ask_about_leaf(struct ottl_evaluator *evaluator, struct ottl_item *item,
                              uint32_t stack)
{
    struct ottl_verdicts *verdicts = ottl_evaluator_verdicts(evaluator);
    struct ottl_profile_tables *tables = item->tables;
    tables->ran_out = false;
    uint32_t name = ottl_stack_leaf(tables, stack, OTTL_LEAF_FUNCTION);
    if (tables->ran_out || name >= verdicts->name_count)
        return ask(evaluator, item);
    if (!is_known(verdicts->names[name])) {
        tables->leaf = &name;
        verdicts->names[name] = ask(evaluator, item);
        tables->leaf = NULL;
    }
    return verdicts->names[name];
}

static uint8_t ask_about_stack(struct ottl_evaluator *evaluator, struct ottl_item *item,
                               uint32_t stack)
{
    bool is_of_leaf = ottl_evaluator_program(evaluator)->reach == OTTL_OF_LEAF_FUNCTION;
    item->tables->stack = &stack;
    uint8_t verdict = is_of_leaf ? ask_about_leaf(evaluator, item, stack) : ask(evaluator, item);
    item->tables->stack = NULL;
    return verdict;
}

enum ottl_result ottl_evaluate_stack(struct ottl_evaluator *evaluator, struct ottl_item *item,
                                     uint32_t stack)
{
    struct ottl_verdicts *verdicts = ottl_evaluator_verdicts(evaluator);
    uint8_t unkept = 0, *verdict = &unkept; /* of a stack that was added since */
    assert(ottl_is_of_stack(evaluator) && item->tables);
    begin_batch(verdicts, item);
    if (stack < verdicts->stack_count)
        verdict = &verdicts->stacks[stack];
    if (!is_known(*verdict))
        *verdict = ask_about_stack(evaluator, item, stack);
    return (enum ottl_result)(*verdict - 1);
}
