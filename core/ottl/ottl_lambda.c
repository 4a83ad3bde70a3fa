#include "core/ottl/ottl_lambda.h"

#include "core/ottl/ottl_evaluation.h"

#include <assert.h>

enum {
    SPARE_STEPS = 4 << 20,
    SPARE_PER_BYTE = 16, /* memory, too */
    ENTRY_STEPS = 64,    /* that an entry takes at least */
    FREE_FACTOR = 32     /* times what is gone over may be read */
};

/* ---- steps ---- */

static bool has_entries(const struct ottl_value *value)
{
    return value->kind == OTTL_MAP || value->kind == OTTL_LIST;
}

/* Returns about how many bytes a value has. */
static size_t size_of(const struct ottl_value *value)
{
    if (value->kind == OTTL_STRING || value->kind == OTTL_BYTES)
        return value->bytes.size;
    if (!has_entries(value))
        return 0;
    return value->form == OTTL_FORM_BYTES ? value->bytes.size
                                          : (size_t)ottl_value_count(value) * ENTRY_STEPS;
}

/* Returns what a call over a value may take. */
static size_t free_steps(const struct ottl_value *over)
{
    size_t entries = has_entries(over) ? ottl_value_count(over) : 0;
    return FREE_FACTOR * (size_of(over) + ENTRY_STEPS * (entries + 1));
}

void ottl_locals_begin(struct ottl_locals *locals)
{
    locals->spare = SPARE_STEPS;
}

void ottl_locals_grow(struct ottl_locals *locals, size_t bytes)
{
    locals->spare += SPARE_PER_BYTE * bytes;
}

void ottl_locals_take(struct ottl_locals *locals, size_t steps)
{
    size_t from_free = steps < locals->free ? steps : locals->free;
    locals->free -= from_free;
    steps -= from_free;
    locals->has_no_more |= steps > locals->spare;
    locals->spare -= steps < locals->spare ? steps : locals->spare;
}

void ottl_locals_take_value(struct ottl_locals *locals, const struct ottl_value *value)
{
    ottl_locals_take(locals, size_of(value));
}

static bool has_steps(struct ottl_evaluation *evaluation)
{
    return !ottl_evaluation_locals(evaluation)->has_no_more ||
           error_set(ottl_evaluation_error(evaluation),
                     "the functions in line read too much of too many entries");
}

/* ---- calls ---- */

/* What is computed once for a call is not known yet. */
static void forget(struct ottl_locals *locals, const struct ottl_node *lambda)
{
    for (uint32_t i = 0; i < lambda->local_count; i++) {
        assert(lambda->local + i < OTTL_LOCALS_MAX);
        locals->items[lambda->local + i].is_known = false;
    }
}

struct ottl_lambda_call ottl_lambda_begin(struct ottl_evaluation *evaluation,
                                          const struct ottl_node *node,
                                          const struct ottl_node *source,
                                          const struct ottl_value *over)
{
    struct ottl_locals *locals = ottl_evaluation_locals(evaluation);
    struct ottl_lambda_call call = {evaluation, locals->free};
    for (uint32_t i = 0; i < node->operand_count; i++)
        if (node->operands[i] && node->operands[i]->code == OTTL_LAMBDA)
            forget(locals, node->operands[i]);
    /* What many items share is not paid for by each of them. */
    bool is_own =
        source->level == OTTL_LEVEL_CONSTANT || source->level >= ottl_evaluation_level(evaluation);
    if (locals->depth++ == 0) {
        locals->has_no_more = false;
        locals->free = is_own ? free_steps(over) : 0;
    }
    return call;
}

void ottl_lambda_end(const struct ottl_lambda_call *call)
{
    struct ottl_locals *locals = ottl_evaluation_locals(call->evaluation);
    assert(locals->depth > 0);
    if (--locals->depth == 0)
        locals->free = call->free_before;
}

static void set_local(struct ottl_local *local, const struct ottl_value *value)
{
    local->value = *value;
    local->bytes = size_of(value);
    local->is_known = true;
}

bool ottl_lambda_apply(const struct ottl_lambda_call *call, const struct ottl_node *lambda,
                       const struct ottl_value *arguments, struct ottl_value *out)
{
    struct ottl_locals *locals = ottl_evaluation_locals(call->evaluation);
    assert(lambda->code == OTTL_LAMBDA && lambda->parameter_count <= lambda->local_count);
    ottl_locals_take(locals, ENTRY_STEPS);
    for (uint32_t i = 0; i < lambda->parameter_count; i++)
        set_local(&locals->items[lambda->local + i], &arguments[i]);
    return ottl_node_evaluate(call->evaluation, lambda->operands[0], out) &&
           has_steps(call->evaluation);
}

bool ottl_lambda_test(const struct ottl_lambda_call *call, const struct ottl_node *lambda,
                      const struct ottl_value *arguments, bool *out)
{
    struct ottl_value value;
    if (!ottl_lambda_apply(call, lambda, arguments, &value))
        return false;
    *out = value.truth;
    return value.kind == OTTL_BOOL ||
           error_set(ottl_evaluation_error(call->evaluation),
                     "lambda expression must return a value of type bool, got %s",
                     ottl_type_name(&value));
}

bool ottl_local_read(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                     struct ottl_value *out)
{
    struct ottl_locals *locals = ottl_evaluation_locals(evaluation);
    struct ottl_local *local = &locals->items[node->local];
    assert(node->local < OTTL_LOCALS_MAX && (local->is_known || node->operand_count == 1));
    if (!local->is_known) {
        if (!ottl_node_evaluate(evaluation, node->operands[0], out))
            return false;
        set_local(local, out);
    }
    ottl_locals_take(locals, local->bytes);
    *out = local->value;
    return has_steps(evaluation);
}
