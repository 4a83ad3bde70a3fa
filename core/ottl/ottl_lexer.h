/*
 * ottl_lexer: the tokens of an OTTL statement or condition.
 *
 * The rules are the Collector's, tried in its order: `0x` and hex digits are bytes, a float needs a
 * dot, names of functions are runs of upper-case and lower-case words. Blanks are skipped.
 *
 * Owner: tokens point into the statement.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_OTTL_OTTL_LEXER_H
#define PROFCOL_CORE_OTTL_OTTL_LEXER_H

#include "core/base/slice.h"

enum ottl_token_kind {
    OTTL_TOKEN_END,
    OTTL_TOKEN_INVALID, /* no token begins here */
    OTTL_TOKEN_BYTES,
    OTTL_TOKEN_FLOAT,
    OTTL_TOKEN_INT,
    OTTL_TOKEN_STRING,
    OTTL_TOKEN_NIL,
    OTTL_TOKEN_NOT,
    OTTL_TOKEN_OR,
    OTTL_TOKEN_AND,
    OTTL_TOKEN_BOOL,
    OTTL_TOKEN_COMPARISON,  /* == != >= <= > < */
    OTTL_TOKEN_ARROW,       /* => */
    OTTL_TOKEN_SIGN,        /* + - */
    OTTL_TOKEN_FACTOR,      /* * and / */
    OTTL_TOKEN_PUNCTUATION, /* = ( ) { } : , . [ ] */
    OTTL_TOKEN_UPPER,       /* [A-Z][A-Z0-9_]* */
    OTTL_TOKEN_LOWER,       /* [a-z][a-z0-9_]* */
    OTTL_TOKEN_UNDERSCORE,
};

struct ottl_token {
    enum ottl_token_kind kind;
    struct slice text;
};

struct ottl_lexer {
    struct slice statement;
    size_t next; /* offset of the first byte that was not read */
};

/* Returns the next token. At the end, and at a byte that begins no token, it returns the same token
 * again and again. */
struct ottl_token ottl_lexer_next(struct ottl_lexer *lexer);

/* Finds line and column of a byte of a statement; both count from 1. */
void ottl_lexer_locate(struct slice statement, size_t position, unsigned *line, unsigned *column);

#endif
