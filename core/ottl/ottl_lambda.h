/*
 * ottl_lambda: functions that are arguments of others: `Filter(attributes, (k, v) => v != "")`.
 *
 * What a lambda says is evaluated for each entry of a map or list. Its parameters are locals of the
 * evaluation. What in it does not depend on them is a local, too, which is computed at its first
 * use and once for each call.
 *
 * A client chooses how many entries there are, and how large what they are compared with is. So
 * each use of a local takes steps, as many as it has bytes, and so does the memory that a lambda
 * needs. A call may take a number that grows with the entries it goes over; beyond that, all calls
 * of an evaluator share a number that grows with the batch, and without any left they fail.
 *
 * Owner: the evaluation.
 *
 * Thread: that of the evaluator.
 */
#ifndef PROFCOL_CORE_OTTL_OTTL_LAMBDA_H
#define PROFCOL_CORE_OTTL_OTTL_LAMBDA_H

#include "core/ottl/ottl_program.h"

enum { OTTL_LOCALS_MAX = 64 };

struct ottl_evaluation;

struct ottl_local {
    struct ottl_value value;
    bool is_known; /* of what is computed at its first use */
    size_t bytes;  /* of the value */
};

/* The lambdas of an evaluation. All zero: none. */
struct ottl_locals {
    struct ottl_local items[OTTL_LOCALS_MAX];
    unsigned depth;   /* calls that are evaluated inside each other */
    size_t free;      /* steps of the outermost call */
    size_t spare;     /* steps of the batch */
    bool has_no_more; /* the current call ran out of both */
};

/* Begins a batch: the spare steps are there again. */
void ottl_locals_begin(struct ottl_locals *locals);
/* Adds the spare steps of so many bytes of the batch. */
void ottl_locals_grow(struct ottl_locals *locals, size_t bytes);
/* Takes steps. Without any left, the call fails after this entry. */
void ottl_locals_take(struct ottl_locals *locals, size_t steps);

/* Takes steps for a search in a map or list that a lambda reads. */
void ottl_locals_take_value(struct ottl_locals *locals, const struct ottl_value *value);

/* A call of lambdas over entries. */
struct ottl_lambda_call {
    struct ottl_evaluation *evaluation;
    size_t free_before; /* of the call around it */
};
/* Begins a call of functions that are operands of a node, from `first` on, over the entries of
 * `over`, which is an operand, too. */
struct ottl_lambda_call ottl_lambda_begin(struct ottl_evaluation *evaluation,
                                          const struct ottl_node *node,
                                          const struct ottl_node *source,
                                          const struct ottl_value *over);
/* Evaluates a lambda with as many arguments as it has parameters. Returns false with the error of
 * the evaluation set. */
bool ottl_lambda_apply(const struct ottl_lambda_call *call, const struct ottl_node *lambda,
                       const struct ottl_value *arguments, struct ottl_value *out);
/* The same for a lambda that must say true or false. */
bool ottl_lambda_test(const struct ottl_lambda_call *call, const struct ottl_node *lambda,
                      const struct ottl_value *arguments, bool *out);
void ottl_lambda_end(const struct ottl_lambda_call *call);

/* Evaluates a local. Returns false with the error of the evaluation set. */
bool ottl_local_read(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                     struct ottl_value *out);

#endif
