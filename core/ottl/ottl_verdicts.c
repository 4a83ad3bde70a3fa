#include "core/ottl/ottl_verdicts.h"

#include "core/ottl/ottl_functions.h"
#include "core/ottl/ottl_profile_tables.h"

#include <assert.h>

bool ottl_is_of_stack(const struct ottl_evaluator *evaluator)
{
    const struct ottl_program *program = ottl_evaluator_program(evaluator);
    return program->context == OTTL_PROFILE_SAMPLE && program->reach <= OTTL_OF_STACK;
}

/* What fails is asked again, because it may fail for one sample only: the number of steps that a
 * batch may take is limited. */
static bool is_known(uint8_t verdict)
{
    return verdict != 0 && verdict != 1 + OTTL_FAILED;
}

static uint8_t ask(struct ottl_evaluator *evaluator, struct ottl_item *item, uint32_t stack)
{
    item->tables->stack = &stack;
    item->serials[ottl_context_depth(OTTL_PROFILE_SAMPLE)]++;
    uint8_t verdict = (uint8_t)(1 + ottl_evaluate(evaluator, item));
    item->tables->stack = NULL;
    return verdict;
}

/* ---- the function of the leaf ---- */

static bool reads_leaf(const struct ottl_evaluator *evaluator)
{
    return ottl_evaluator_program(evaluator)->reach == OTTL_OF_LEAF_FUNCTION;
}

/* Whether a condition is leaf.function == "..." or leaf.function != "...", as most are. */
static bool compares_leaf(const struct ottl_node *condition)
{
    if (condition->code != OTTL_COMPARE ||
        (condition->operators[1] != OTTL_EQUAL && condition->operators[1] != OTTL_NOT_EQUAL))
        return false;
    const struct ottl_node *left = condition->operands[0], *right = condition->operands[1];
    return left->code == OTTL_PATH && left->key_count == 0 && right->code == OTTL_CONSTANT &&
           right->constant.kind == OTTL_STRING;
}

static uint8_t compare(const struct ottl_node *comparison, struct slice name)
{
    bool is_equal = slice_equal(name, comparison->operands[1]->constant.bytes);
    bool matches = is_equal == (comparison->operators[1] == OTTL_EQUAL);
    return 1 + (matches ? OTTL_MATCH : OTTL_NO_MATCH);
}

/* Returns the verdict on a stack whose leaf has this name. */
static uint8_t judge_name(struct ottl_evaluator *evaluator, struct ottl_item *item, uint32_t stack,
                          uint32_t name)
{
    uint8_t *verdict = &ottl_evaluator_verdicts(evaluator)->names[name];
    const struct ottl_node *condition = ottl_evaluator_program(evaluator)->root;
    if (is_known(*verdict))
        return *verdict;
    if (compares_leaf(condition)) {
        *verdict = compare(condition, dictionary_string(item->tables->dictionary, name));
    } else {
        item->tables->leaf = &name;
        *verdict = ask(evaluator, item, stack);
        item->tables->leaf = NULL;
    }
    return *verdict;
}

static uint8_t ask_about_leaf(struct ottl_evaluator *evaluator, struct ottl_item *item,
                              uint32_t stack)
{
    struct ottl_profile_tables *tables = item->tables;
    tables->ran_out = false;
    uint32_t name = ottl_stack_leaf(tables, stack, OTTL_LEAF_FUNCTION);
    if (tables->ran_out || name >= ottl_evaluator_verdicts(evaluator)->name_count)
        return ask(evaluator, item, stack);
    return judge_name(evaluator, item, stack, name);
}

/* Judges all stacks, until one fails. */
static void judge_leaves(struct ottl_evaluator *evaluator, struct ottl_item *item)
{
    struct ottl_verdicts *verdicts = ottl_evaluator_verdicts(evaluator);
    uint32_t *names = arena_array(item->tables->arena, verdicts->stack_count, sizeof *names);
    item->tables->ran_out = false;
    uint32_t count = ottl_stack_leaves(item->tables, names);
    for (uint32_t i = 0; i < count; i++) {
        assert(names[i] < verdicts->name_count || names[i] == 0); /* scanned */
        uint8_t verdict = verdicts->names[names[i]];
        verdicts->stacks[i] =
            is_known(verdict) ? verdict : judge_name(evaluator, item, i, names[i]);
        if (!is_known(verdicts->stacks[i]))
            break;
    }
}

/* ---- StackContains ---- */

/* Returns the call of StackContains that a condition begins with, and without which it is false;
 * NULL: it does not begin with one. */
static const struct ottl_node *leading_search(const struct ottl_node *condition)
{
    while (condition->code == OTTL_AND || condition->code == OTTL_TRUTH)
        condition = condition->operands[0];
    bool is_search = condition->code == OTTL_CALL && condition->function->searches_stacks;
    return is_search && condition->key_count == 0 ? condition : NULL;
}

/* Takes over what the evaluation of the condition on one stack has found out about the others. */
static void take_misses(struct ottl_evaluator *evaluator)
{
    struct ottl_verdicts *verdicts = ottl_evaluator_verdicts(evaluator);
    const struct ottl_node *call = leading_search(ottl_evaluator_program(evaluator)->root);
    verdicts->has_misses = true;
    if (!call)
        return;
    const struct ottl_stack_search *search = ottl_evaluator_search(evaluator, call);
    assert(search->batch == verdicts->batch && search->stack_count == verdicts->stack_count);
    for (uint32_t i = 0; i < search->stack_count; i++)
        if (search->stacks[i] == OTTL_STACK_MISSES)
            verdicts->stacks[i] = 1 + OTTL_NO_MATCH;
}

/* ---- stacks ---- */

static void begin(struct ottl_evaluator *evaluator, struct ottl_item *item)
{
    struct ottl_verdicts *verdicts = ottl_evaluator_verdicts(evaluator);
    struct ottl_profile_tables *tables = item->tables;
    assert(ottl_is_of_stack(evaluator) && tables);
    if (verdicts->batch == item->batch)
        return;
    *verdicts = (struct ottl_verdicts){.batch = item->batch};
    verdicts->stacks = ottl_numbers_for(tables, DICTIONARY_STACK_TABLE, 1, &verdicts->stack_count);
    verdicts->names = ottl_numbers_for(tables, DICTIONARY_STRING_TABLE, 1, &verdicts->name_count);
    if (reads_leaf(evaluator))
        judge_leaves(evaluator, item);
}

static uint8_t ask_about_stack(struct ottl_evaluator *evaluator, struct ottl_item *item,
                               uint32_t stack)
{
    if (reads_leaf(evaluator))
        return ask_about_leaf(evaluator, item, stack);
    uint8_t verdict = ask(evaluator, item, stack);
    if (!ottl_evaluator_verdicts(evaluator)->has_misses)
        take_misses(evaluator);
    return verdict;
}

enum ottl_result ottl_evaluate_stack(struct ottl_evaluator *evaluator, struct ottl_item *item,
                                     uint32_t stack)
{
    struct ottl_verdicts *verdicts = ottl_evaluator_verdicts(evaluator);
    uint8_t unkept = 0, *verdict = &unkept; /* of a stack that was added since */
    begin(evaluator, item);
    if (stack < verdicts->stack_count)
        verdict = &verdicts->stacks[stack];
    if (!is_known(*verdict))
        *verdict = ask_about_stack(evaluator, item, stack);
    return (enum ottl_result)(*verdict - 1);
}

void ottl_miss_stacks(struct ottl_evaluator *evaluator, struct ottl_item *item, uint8_t *missed,
                      uint32_t count)
{
    const struct ottl_verdicts *verdicts = ottl_evaluator_verdicts(evaluator);
    begin(evaluator, item);
    assert(count == verdicts->stack_count);
    if (!reads_leaf(evaluator) && count > 0)
        ottl_evaluate_stack(evaluator, item, 0); /* StackContains searches all of them */
    for (uint32_t i = 0; i < count; i++)
        missed[i] &= verdicts->stacks[i] == 1 + OTTL_NO_MATCH;
}
