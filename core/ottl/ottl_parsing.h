/*
 * ottl_parsing: the text that the parser reads: its tokens, its errors, and the nodes that are made
 * of it.
 *
 * Owner: nodes live in the arena.
 *
 * Thread: one, at start.
 */
#ifndef PROFCOL_CORE_OTTL_OTTL_PARSING_H
#define PROFCOL_CORE_OTTL_OTTL_PARSING_H

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/ottl/ottl_ast.h"
#include "core/ottl/ottl_lexer.h"

enum { OTTL_DEPTH_MAX = 100 };

struct ottl_parsing {
    struct slice statement;
    const char *kind; /* "statement", "condition" */
    struct arena *arena;
    struct ottl_lexer lexer;
    struct ottl_token token;
    unsigned depth;
    uint32_t steps; /* tokens that were read, some of them several times */
    /* Of several ways to read the text, the error of the one that came farthest is reported. */
    bool failed;
    bool is_final; /* no other way can succeed */
    uint32_t failed_at;
    struct error *err;
};

struct ottl_parsing_mark {
    struct ottl_lexer lexer;
    struct ottl_token token;
    unsigned depth;
};

/* ---- tokens ---- */
void ottl_parsing_advance(struct ottl_parsing *p);
bool ottl_parsing_is_at(const struct ottl_parsing *p, char c);
/* Takes a punctuation mark if it is the next token; otherwise returns false. */
bool ottl_parsing_accept(struct ottl_parsing *p, char c);
/* The same, and reports an error. */
bool ottl_parsing_expect(struct ottl_parsing *p, char c, const char *expected);
/* Remember a place, and return to it. */
struct ottl_parsing_mark ottl_parsing_mark(const struct ottl_parsing *p);
void ottl_parsing_go_back(struct ottl_parsing *p, struct ottl_parsing_mark to);
/* Count the depth of what is nested; false after reporting an error. */
bool ottl_parsing_enter(struct ottl_parsing *p);
void ottl_parsing_leave(struct ottl_parsing *p);

/* ---- errors: those farther on count. Return NULL. ---- */
uint32_t ottl_parsing_position(const struct ottl_parsing *p, struct ottl_token token);
void *ottl_parsing_unexpected(struct ottl_parsing *p, const char *expected);
/* No other way to read the text can succeed. */
void *ottl_parsing_fail_finally(struct ottl_parsing *p, uint32_t position, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- nodes ---- */
struct ottl_ast *ottl_parsing_ast_at(struct ottl_parsing *p, enum ottl_ast_kind kind,
                                     uint32_t position);
struct ottl_ast *ottl_parsing_ast(struct ottl_parsing *p, enum ottl_ast_kind kind);
struct ottl_part *ottl_parsing_add_part(struct ottl_parsing *p, struct ottl_ast *ast,
                                        struct ottl_ast *value);
void ottl_parsing_add_key(struct ottl_parsing *p, struct ottl_keys *keys, struct ottl_ast *key);

/* Sets err to "LINE:COLUMN: " and the text; a column counts characters, from 1. Returns false. */
bool ottl_error_at(struct error *err, struct slice statement, uint32_t position, const char *format,
                   ...) __attribute__((format(printf, 4, 5)));

/* Puts 'WHAT KIND "TEXT": ' before the error: 'unable to parse OTTL statement "...": '. */
void ottl_error_quote(struct error *err, const char *what, const char *kind, struct slice text);

#endif
