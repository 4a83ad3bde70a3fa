/*
 * ottl_evaluation: what paths and functions use of an evaluation.
 *
 * ottl_evaluate.c implements it.
 *
 * Owner: the evaluator owns its scratch memory, which is empty again at the next evaluation. What
 * is kept for a resource or scope is in memory of its own.
 *
 * Thread: that of the evaluator.
 */
#ifndef PROFCOL_CORE_OTTL_OTTL_EVALUATION_H
#define PROFCOL_CORE_OTTL_OTTL_EVALUATION_H

#include "core/ottl/ottl_program.h"

struct ottl_locals;
struct ottl_evaluation; /* an evaluator that is evaluating */

/* Evaluates a node. Returns false with the error set. */
bool ottl_node_evaluate_any(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                            struct ottl_value *out);
static inline bool ottl_node_evaluate(struct ottl_evaluation *evaluation,
                                      const struct ottl_node *node, struct ottl_value *out)
{
    if (node->code != OTTL_CONSTANT)
        return ottl_node_evaluate_any(evaluation, node, out);
    *out = node->constant;
    return true;
}
/* Evaluates a node without data, at start. Results live in the arena. */
bool ottl_node_fold(const struct ottl_node *node, struct arena *arena, struct ottl_value *out,
                    struct error *err);

/* Counts what the function that is called does with a value, unless the value is about as large as
 * the item, or as the message around it, for which the result is computed the first time: that is
 * bounded by the request. Returns false with the error set if there are no steps left. */
bool ottl_take_work(struct ottl_evaluation *evaluation, const struct ottl_value *value);

/* Counts steps of writing what a client lets repeat, unless they are few. Returns false likewise.
 */
bool ottl_take_repeated(struct ottl_evaluation *evaluation, size_t steps);

const struct ottl_item *ottl_evaluation_item(const struct ottl_evaluation *evaluation);
struct error *ottl_evaluation_error(struct ottl_evaluation *evaluation);
struct ottl_matcher *ottl_evaluation_matcher(struct ottl_evaluation *evaluation);
/* Returns what a call that looks into stacks (ottl_function.searches_stacks) remembers of the
 * batch. */
struct ottl_stack_search *ottl_evaluation_search(struct ottl_evaluation *evaluation,
                                                 const struct ottl_node *call);
/* What the function that an editor was given is called with. */
struct ottl_value *ottl_evaluation_input(struct ottl_evaluation *evaluation);
/* While a statement is executed: the item to write to, an empty writer, an empty text, and entries
 * of a map. */
struct ottl_item *ottl_evaluation_target(struct ottl_evaluation *evaluation);
struct wire_writer *ottl_evaluation_writer(struct ottl_evaluation *evaluation);
struct text *ottl_evaluation_empty_text(struct ottl_evaluation *evaluation);
struct attribute_list *ottl_evaluation_list(struct ottl_evaluation *evaluation);
/* The lambdas that are evaluated. */
struct ottl_locals *ottl_evaluation_locals(struct ottl_evaluation *evaluation);
/* Returns the level of what the current result is computed for: an item of the program, or one of
 * those around it. */
enum ottl_level ottl_evaluation_level(struct ottl_evaluation *evaluation);
/* Bytes that the execution may still add without counting. */
size_t *ottl_evaluation_free_bytes(struct ottl_evaluation *evaluation);
/* Whether the statement's target is in a message around the items. */
bool ottl_evaluation_writes_around(const struct ottl_evaluation *evaluation);
/* Returns how many levels contain the items of the program. */
unsigned ottl_evaluation_depth(struct ottl_evaluation *evaluation);
/* Returns memory that lives as long as the result. */
void *ottl_evaluation_alloc(struct ottl_evaluation *evaluation, size_t size);
/* Returns a copy of the text, and frees the text. */
struct slice ottl_evaluation_text(struct ottl_evaluation *evaluation, struct text *text);

#endif
