/*
 * ottl_ast: a parsed OTTL statement or condition, before its names have a meaning.
 *
 * Owner: everything lives in the arena that was given to the parser; paths and names point into the
 * statement.
 *
 * Thread: plain data.
 */
#ifndef PROFCOL_CORE_OTTL_OTTL_AST_H
#define PROFCOL_CORE_OTTL_OTTL_AST_H

#include "core/base/slice.h"

enum ottl_ast_kind {
    OTTL_AST_NIL,
    OTTL_AST_BOOL,
    OTTL_AST_INT,
    OTTL_AST_FLOAT,
    OTTL_AST_STRING,
    OTTL_AST_BYTES,
    OTTL_AST_ENUM,          /* text; may also name a function, as an argument */
    OTTL_AST_FUNCTION_NAME, /* text; only as an argument */
    OTTL_AST_PATH,
    OTTL_AST_CALL,
    OTTL_AST_MATH,       /* parts, each but the first with an operator */
    OTTL_AST_NEGATE,     /* parts[0] */
    OTTL_AST_LIST,       /* parts */
    OTTL_AST_MAP,        /* parts with names */
    OTTL_AST_COMPARISON, /* parts[0] and parts[1] with an operator */
    OTTL_AST_AND,        /* parts */
    OTTL_AST_OR,         /* parts */
    OTTL_AST_NOT,        /* parts[0] */
    OTTL_AST_LAMBDA,     /* segments: the parameters, "_" without a name; parts[0] */
};

enum ottl_operator {
    OTTL_EQUAL,
    OTTL_NOT_EQUAL,
    OTTL_LESS,
    OTTL_LESS_OR_EQUAL,
    OTTL_GREATER,
    OTTL_GREATER_OR_EQUAL,
    OTTL_ADD,
    OTTL_SUBTRACT,
    OTTL_MULTIPLY,
    OTTL_DIVIDE,
};

struct ottl_ast;

/* An operand of `and`, `or` or mathematics, an item of a list or map, an argument. */
struct ottl_part {
    struct slice name;           /* of an argument or of a map's item; empty: none */
    enum ottl_operator operator; /* before it */
    struct ottl_ast *value;
};

struct ottl_keys {
    struct ottl_ast **items; /* STRING, INT or what is computed */
    uint32_t count;
    uint32_t capacity;
};

struct ottl_segment {
    struct slice name;
    uint32_t position;
    struct ottl_keys keys;
};

struct ottl_ast {
    enum ottl_ast_kind kind;
    uint32_t position; /* byte offset in the statement */
    union {
        bool truth;
        int64_t integer;
        double real;
    };
    struct slice text;       /* STRING, BYTES: the value; ENUM, FUNCTION_NAME, CALL: the name */
    struct ottl_part *parts; /* and the arguments of a CALL */
    uint32_t part_count;
    uint32_t part_capacity;
    struct ottl_segment *segments; /* of a PATH */
    uint32_t segment_count;
    uint32_t segment_capacity;
    struct ottl_keys keys; /* of a CALL */
};

/* `editor(arguments) where condition`, or a condition alone. */
struct ottl_statement {
    struct ottl_ast *editor;    /* a CALL; NULL: a condition */
    struct ottl_ast *condition; /* NULL: none, always true */
};

#endif
