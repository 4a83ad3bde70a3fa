/*
 * ottl_program: a compiled condition, as the compiler writes and the evaluator reads it.
 *
 * Owner: a program owns its arena, in which everything is, and its regular expressions.
 *
 * Thread: read-only after compilation.
 */
#ifndef PROFCOL_CORE_OTTL_OTTL_PROGRAM_H
#define PROFCOL_CORE_OTTL_OTTL_PROGRAM_H

#include "core/base/arena.h"
#include "core/ottl/ottl.h"
#include "core/ottl/ottl_regex.h"
#include "core/ottl/ottl_value.h"

enum ottl_code {
    OTTL_CONSTANT,
    OTTL_PATH, /* operands[0]: the path without its keys, if these are of a lower level */
    OTTL_CALL,
    OTTL_MATH,   /* operands, each but the first with an operator */
    OTTL_NEGATE, /* operands[0] */
    OTTL_MAKE_LIST,
    OTTL_MAKE_MAP, /* names for the operands */
    OTTL_COMPARE,  /* operands[0] operators[1] operands[1] */
    OTTL_AND,
    OTTL_OR,
    OTTL_NOT,
    OTTL_TRUTH,   /* operands[0] must be true or false */
    OTTL_INPUT,   /* what an editor hands to a function that it was given */
    OTTL_LAMBDA,  /* operands[0] is the body; only functions evaluate it (ottl_lambda.h) */
    OTTL_LOCAL,   /* a parameter of a lambda, or operands[0], computed once for a call */
    OTTL_FAILURE, /* what always fails; the constant says why */
};

/* What a node depends on: a context of depth 0, 1 and so on (ottl_context_depth). A node of a lower
 * level than its program is evaluated once for each resource, scope, span or profile. */
enum ottl_level {
    OTTL_LEVEL_CONSTANT,
    OTTL_LEVEL_RESOURCE,
    OTTL_LEVEL_SCOPE,
    OTTL_LEVEL_ITEM, /* a span or profile */
    OTTL_LEVEL_PART, /* an event or sample in it */
    OTTL_LEVEL_COUNT,
    OTTL_LEVEL_LOWEST = OTTL_LEVEL_COUNT - 1
};

/* What of a sample a node reads at most. */
enum ottl_reach {
    OTTL_OF_NOTHING,
    OTTL_OF_LEAF_FUNCTION, /* leaf.function */
    OTTL_OF_STACK,         /* any of its stack */
    OTTL_OF_ANYTHING,
};

enum { OTTL_NO_SLOT = UINT32_MAX };

struct ottl_node {
    enum ottl_code code;
    enum ottl_level level;
    uint32_t slot; /* where its result is kept; OTTL_NO_SLOT: nowhere */
    bool is_fixed; /* with a slot: no statement changes what it depends on */
    unsigned work; /* of a call, see ottl_function_work */
    struct ottl_value constant;
    bool is_computed; /* a constant that is no literal: the Collector finds out what it is later */
    const struct ottl_path_row *path;
    const struct ottl_function *function;
    struct ottl_regex *regex;              /* the pattern of a call */
    const struct time_zone *zone;          /* the time zone of a call */
    uint32_t search;                       /* number of a call that looks into stacks */
    uint32_t local;                        /* of a lambda: its first one */
    uint32_t local_count, parameter_count; /* of a lambda; the parameters come first */
    struct ottl_node **operands; /* arguments: in the order of the parameters, NULL: not given */
    enum ottl_operator *operators;
    struct slice *names; /* also of a list whose items are all constant strings: they */
    uint32_t operand_count;
    struct ottl_node **keys; /* after a path or a call */
    uint32_t key_count;
};

/* Whether it can be refused at start. What is computed fails when it is evaluated. */
static inline bool ottl_node_is_literal(const struct ottl_node *node)
{
    return node->code == OTTL_CONSTANT && !node->is_computed;
}

struct ottl_warning {
    uint32_t position; /* in the text */
    const char *text;
};

struct ottl_program {
    struct arena arena;
    enum ottl_context context;
    struct ottl_node *root;   /* the condition */
    struct ottl_node *editor; /* an OTTL_CALL; NULL: a condition alone */
    enum ottl_reach reach;    /* of the condition */
    bool is_always;           /* the condition is the constant true */
    bool reads_scope;         /* a path is in the scope */
    uint32_t slot_count;
    uint32_t search_count; /* calls that look into stacks */
    struct ottl_regex **regexes;
    uint32_t regex_count;
    uint32_t regex_capacity;
    struct ottl_warning *warnings; /* ottl_warnings.h */
    uint32_t warning_count;
    uint32_t warning_capacity;
};

#endif
