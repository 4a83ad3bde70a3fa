#include "core/ottl/ottl_parsing.h"

#include "core/base/text.h"
#include "core/ottl/ottl_syntax_hints.h"

#include <assert.h>
#include <stdio.h>

/* ---- errors ---- */

bool ottl_error_at(struct error *err, struct slice statement, uint32_t position, const char *format,
                   ...)
{
    unsigned line, column;
    va_list args;
    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    err->system = 0;
    err->offset = position;
    ottl_lexer_locate(statement, position, &line, &column);
    return error_prefix(err, "%u:%u", line, column);
}

enum { QUOTED_MAX = 120, SHOWN_MAX = 60 };

void ottl_error_quote(struct error *err, const char *what, const char *kind, struct slice text)
{
    error_prefix(err, "%s %s \"%.*s%s\"", what, kind, (int)text_utf8_cut(text, QUOTED_MAX),
                 (const char *)text.data, text.size > QUOTED_MAX ? "..." : "");
}

uint32_t ottl_parsing_position(const struct ottl_parsing *p, struct ottl_token token)
{
    assert(token.text.data >= p->statement.data || token.text.size == 0);
    return (uint32_t)(token.text.data - p->statement.data);
}

static bool is_worse(const struct ottl_parsing *p, uint32_t position)
{
    return p->failed && (p->is_final || position < p->failed_at);
}

static void set_error(struct ottl_parsing *p, uint32_t position, const char *format, va_list args)
{
    struct text text = {0};
    if (is_worse(p, position))
        return;
    p->failed = true;
    p->failed_at = position;
    text_vprintf(&text, format, args);
    ottl_error_at(p->err, p->statement, position, "%s", text_string(&text));
    text_deinit(&text);
}

void *ottl_parsing_unexpected(struct ottl_parsing *p, const char *expected)
{
    uint32_t position = ottl_parsing_position(p, p->token);
    struct ottl_unexpected unexpected = {p->statement, position, p->token.kind, expected};
    struct text hint = {0};
    if (is_worse(p, position))
        return NULL;
    bool is_end = p->token.kind == OTTL_TOKEN_END, has_hint = ottl_hint_token(&unexpected, &hint);
    struct slice word = ottl_hint_shown(&unexpected, p->token.text);
    size_t size = text_utf8_cut(word, SHOWN_MAX);
    p->failed = true;
    p->failed_at = position;
    ottl_error_at(p->err, p->statement, position, "unexpected %s%.*s%s%s%s%s",
                  is_end ? "end" : "\"", (int)size, (const char *)word.data,
                  size < word.size ? "..." : "", is_end ? "" : "\"",
                  has_hint ? ": " : " (expected ", has_hint ? text_string(&hint) : expected);
    if (!has_hint)
        strncat(p->err->text, ")", sizeof p->err->text - strlen(p->err->text) - 1);
    text_deinit(&hint);
    return NULL;
}

void *ottl_parsing_fail_finally(struct ottl_parsing *p, uint32_t position, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    set_error(p, position, format, args);
    va_end(args);
    p->is_final = true;
    return NULL;
}

/* ---- tokens ---- */

void ottl_parsing_advance(struct ottl_parsing *p)
{
    p->token = ottl_lexer_next(&p->lexer);
    p->steps++;
}

bool ottl_parsing_is_at(const struct ottl_parsing *p, char c)
{
    return p->token.kind == OTTL_TOKEN_PUNCTUATION && p->token.text.data[0] == (uint8_t)c;
}

bool ottl_parsing_accept(struct ottl_parsing *p, char c)
{
    if (!ottl_parsing_is_at(p, c))
        return false;
    ottl_parsing_advance(p);
    return true;
}

bool ottl_parsing_expect(struct ottl_parsing *p, char c, const char *expected)
{
    if (ottl_parsing_accept(p, c))
        return true;
    ottl_parsing_unexpected(p, expected);
    return false;
}

struct ottl_parsing_mark ottl_parsing_mark(const struct ottl_parsing *p)
{
    return (struct ottl_parsing_mark){p->lexer, p->token, p->depth};
}

void ottl_parsing_go_back(struct ottl_parsing *p, struct ottl_parsing_mark to)
{
    p->lexer = to.lexer;
    p->token = to.token;
    p->depth = to.depth;
}

/* A condition in parentheses may first be read as a value, also in lambdas in each other. */
enum { STEPS_MAX = 1 << 20 };

bool ottl_parsing_enter(struct ottl_parsing *p)
{
    if (p->depth == OTTL_DEPTH_MAX) {
        ottl_parsing_fail_finally(p, ottl_parsing_position(p, p->token),
                                  "nested too deeply, more than %d levels", OTTL_DEPTH_MAX);
        return false;
    }
    if (p->steps > STEPS_MAX) {
        ottl_parsing_fail_finally(p, ottl_parsing_position(p, p->token),
                                  "too many lambdas and parentheses in each other");
        return false;
    }
    p->depth++;
    return true;
}

void ottl_parsing_leave(struct ottl_parsing *p)
{
    assert(p->depth > 0);
    p->depth--;
}

/* ---- nodes ---- */

struct ottl_ast *ottl_parsing_ast_at(struct ottl_parsing *p, enum ottl_ast_kind kind,
                                     uint32_t position)
{
    struct ottl_ast *ast = arena_zalloc(p->arena, sizeof *ast);
    ast->kind = kind;
    ast->position = position;
    return ast;
}

struct ottl_ast *ottl_parsing_ast(struct ottl_parsing *p, enum ottl_ast_kind kind)
{
    return ottl_parsing_ast_at(p, kind, ottl_parsing_position(p, p->token));
}

struct ottl_part *ottl_parsing_add_part(struct ottl_parsing *p, struct ottl_ast *ast,
                                        struct ottl_ast *value)
{
    ast->parts =
        arena_grow(p->arena, ast->parts, ast->part_count, &ast->part_capacity, sizeof *ast->parts);
    struct ottl_part *part = &ast->parts[ast->part_count++];
    part->value = value;
    return part;
}

void ottl_parsing_add_key(struct ottl_parsing *p, struct ottl_keys *keys, struct ottl_ast *key)
{
    keys->items =
        arena_grow(p->arena, keys->items, keys->count, &keys->capacity, sizeof(struct ottl_ast *));
    keys->items[keys->count++] = key;
}
