#include "core/ottl/ottl_parser.h"

#include "core/base/text.h"
#include "core/data/utf8.h"
#include "core/ottl/ottl_lexer.h"
#include "core/ottl/ottl_literals.h"

#include <assert.h>
#include <stdio.h>

struct parser {
    struct slice statement;
    const char *kind; /* "statement", "condition" */
    struct arena *arena;
    struct ottl_lexer lexer;
    struct ottl_token token;
    unsigned depth;
    /* Of several ways to read the text, the error of the one that came farthest is reported. */
    bool failed;
    bool is_final; /* no other way can succeed */
    uint32_t failed_at;
    struct error *err;
};

static struct ottl_ast *parse_value(struct parser *p);
static struct ottl_ast *parse_math(struct parser *p);
static struct ottl_ast *parse_or(struct parser *p);

/* ---- errors ---- */

/* Characters are counted as in UTF-8: continuation bytes do not count. */
static void locate(struct slice statement, uint32_t position, unsigned *line, unsigned *column)
{
    *line = *column = 1;
    for (size_t i = 0; i < position && i < statement.size; i++) {
        if (statement.data[i] == '\n') {
            ++*line;
            *column = 1;
        } else if ((statement.data[i] & 0xc0) != 0x80) {
            ++*column;
        }
    }
}

bool ottl_error_at(struct error *err, struct slice statement, uint32_t position, const char *format,
                   ...)
{
    unsigned line, column;
    va_list args;
    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    err->system = 0;
    locate(statement, position, &line, &column);
    return error_prefix(err, "%u:%u", line, column);
}

static uint32_t position_of(const struct parser *p, struct ottl_token token)
{
    assert(token.text.data >= p->statement.data || token.text.size == 0);
    return (uint32_t)(token.text.data - p->statement.data);
}

static bool is_worse(const struct parser *p, uint32_t position)
{
    return p->failed && (p->is_final || position < p->failed_at);
}

/* Reports an error at a position, unless one farther on is known. Returns NULL. */
static void *fail_at(struct parser *p, uint32_t position, const char *format, const char *word,
                     const char *expected)
{
    if (is_worse(p, position))
        return NULL;
    p->failed = true;
    p->failed_at = position;
    /* The formats are literals of this file. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    ottl_error_at(p->err, p->statement, position, format, word, expected);
#pragma GCC diagnostic pop
    return NULL;
}

static void *unexpected(struct parser *p, const char *expected)
{
    char word[64];
    struct slice text = p->token.text;
    size_t size = text.size < sizeof word ? text.size : text_utf8_cut(text, sizeof word - 4);
    snprintf(word, sizeof word, "%.*s%s", (int)size, (const char *)text.data,
             size < text.size ? "..." : "");
    uint32_t position = position_of(p, p->token);
    if (p->token.kind == OTTL_TOKEN_END)
        return fail_at(p, position, "unexpected token \"%s\" (expected %s)", "<EOF>", expected);
    if (p->token.kind == OTTL_TOKEN_INVALID)
        return fail_at(p, position, "lexer: invalid input text \"%s\" (expected %s)", word,
                       expected);
    if (p->token.kind == OTTL_TOKEN_ARROW)
        return fail_at(p, position, "unexpected token \"%s\": functions in line are not %s", word,
                       "supported");
    return fail_at(p, position, "unexpected token \"%s\" (expected %s)", word, expected);
}

static void *fail_finally(struct parser *p, uint32_t position, const char *format, const char *word)
{
    fail_at(p, position, format, word, "");
    p->is_final = true;
    return NULL;
}

/* ---- tokens ---- */

static void advance(struct parser *p)
{
    p->token = ottl_lexer_next(&p->lexer);
}

static bool is_punctuation(const struct parser *p, char c)
{
    return p->token.kind == OTTL_TOKEN_PUNCTUATION && p->token.text.data[0] == (uint8_t)c;
}

static bool accept(struct parser *p, char c)
{
    if (!is_punctuation(p, c))
        return false;
    advance(p);
    return true;
}

static bool expect(struct parser *p, char c, const char *expected)
{
    if (accept(p, c))
        return true;
    unexpected(p, expected);
    return false;
}

struct mark {
    struct ottl_lexer lexer;
    struct ottl_token token;
    unsigned depth;
};

static struct mark mark(const struct parser *p)
{
    return (struct mark){p->lexer, p->token, p->depth};
}

static void go_back(struct parser *p, struct mark to)
{
    p->lexer = to.lexer;
    p->token = to.token;
    p->depth = to.depth;
}

static bool enter(struct parser *p)
{
    if (p->depth == OTTL_DEPTH_MAX) {
        fail_finally(p, position_of(p, p->token), "nested too deeply, more than %s levels", "100");
        return false;
    }
    p->depth++;
    return true;
}

static void leave(struct parser *p)
{
    assert(p->depth > 0);
    p->depth--;
}

/* ---- nodes ---- */

static struct ottl_ast *new_ast(struct parser *p, enum ottl_ast_kind kind, uint32_t position)
{
    struct ottl_ast *ast = arena_zalloc(p->arena, sizeof *ast);
    ast->kind = kind;
    ast->position = position;
    return ast;
}

static struct ottl_ast *ast_here(struct parser *p, enum ottl_ast_kind kind)
{
    return new_ast(p, kind, position_of(p, p->token));
}

static struct ottl_part *add_part(struct parser *p, struct ottl_ast *ast, struct ottl_ast *value)
{
    ast->parts =
        arena_grow(p->arena, ast->parts, ast->part_count, &ast->part_capacity, sizeof *ast->parts);
    struct ottl_part *part = &ast->parts[ast->part_count++];
    part->value = value;
    return part;
}

static void add_key(struct parser *p, struct ottl_keys *keys, struct ottl_ast *key)
{
    keys->items =
        arena_grow(p->arena, keys->items, keys->count, &keys->capacity, sizeof(struct ottl_ast *));
    keys->items[keys->count++] = key;
}

/* ---- literals ---- */

static bool read_string(struct parser *p, struct slice *out)
{
    if (ottl_unquote(p->token.text, p->arena, out))
        return true;
    char text[64];
    size_t size = text_utf8_cut(p->token.text, sizeof text - 1);
    snprintf(text, sizeof text, "%.*s", (int)size, (const char *)p->token.text.data);
    fail_finally(p, position_of(p, p->token),
                 "invalid quoted string %s: unknown escape; a backslash is written \\\\", text);
    return false;
}

static struct ottl_ast *parse_string(struct parser *p)
{
    struct ottl_ast *ast = ast_here(p, OTTL_AST_STRING);
    if (!read_string(p, &ast->text))
        return NULL;
    advance(p);
    return ast;
}

static struct ottl_ast *parse_bytes(struct parser *p)
{
    struct ottl_ast *ast = ast_here(p, OTTL_AST_BYTES);
    if (!ottl_read_hex(p->token.text, p->arena, &ast->text))
        return fail_finally(p, ast->position, "bytes need an even number of hex digits%s", "");
    advance(p);
    return ast;
}

static struct ottl_ast *parse_number(struct parser *p)
{
    bool is_float = p->token.kind == OTTL_TOKEN_FLOAT;
    struct ottl_ast *ast = ast_here(p, is_float ? OTTL_AST_FLOAT : OTTL_AST_INT);
    if (is_float ? !ottl_read_float(p->token.text, &ast->real)
                 : !ottl_read_int(p->token.text, &ast->integer))
        return fail_finally(p, ast->position,
                            is_float ? "the number is too large%s"
                                     : "the number is not a 64-bit integer; a leading 0 means "
                                       "octal%s",
                            "");
    advance(p);
    return ast;
}

static struct ottl_ast *parse_bool(struct parser *p)
{
    struct ottl_ast *ast = ast_here(p, OTTL_AST_BOOL);
    ast->truth = slice_is(p->token.text, "true");
    advance(p);
    return ast;
}

/* ---- names ---- */

static bool is_name_part(const struct parser *p)
{
    return p->token.kind == OTTL_TOKEN_UPPER || p->token.kind == OTTL_TOKEN_LOWER;
}

/* Reads a run of words as one name: `Is` `Match`. Blanks between them do not count. */
static struct slice parse_name(struct parser *p)
{
    struct slice name = p->token.text;
    bool is_joined = true;
    assert(is_name_part(p));
    for (advance(p); is_name_part(p); advance(p)) {
        if (is_joined && p->token.text.data == name.data + name.size) {
            name.size += p->token.text.size;
            continue;
        }
        uint8_t *copy = arena_alloc(p->arena, name.size + p->token.text.size);
        memcpy(copy, name.data, name.size);
        memcpy(copy + name.size, p->token.text.data, p->token.text.size);
        name = slice_of(copy, name.size + p->token.text.size);
        is_joined = false;
    }
    return name;
}

/* ---- keys, paths, calls ---- */

static struct ottl_ast *parse_key(struct parser *p)
{
    if (p->token.kind == OTTL_TOKEN_STRING)
        return parse_string(p);
    if (p->token.kind == OTTL_TOKEN_INT)
        return parse_number(p);
    return parse_math(p);
}

static bool parse_keys(struct parser *p, struct ottl_keys *keys)
{
    while (is_punctuation(p, '[')) {
        if (!enter(p))
            return false;
        advance(p);
        struct ottl_ast *key = parse_key(p);
        if (!key || !expect(p, ']', "\"]\""))
            return false;
        add_key(p, keys, key);
        leave(p);
    }
    return true;
}

static struct ottl_ast *parse_path(struct parser *p)
{
    struct ottl_ast *path = ast_here(p, OTTL_AST_PATH);
    do {
        if (p->token.kind != OTTL_TOKEN_LOWER)
            return unexpected(p, "a field in lower case");
        path->segments = arena_grow(p->arena, path->segments, path->segment_count,
                                    &path->segment_capacity, sizeof *path->segments);
        struct ottl_segment *segment = &path->segments[path->segment_count++];
        segment->name = p->token.text;
        segment->position = position_of(p, p->token);
        advance(p);
        if (!parse_keys(p, &segment->keys))
            return NULL;
    } while (accept(p, '.'));
    return path;
}

/* Reads `name =` if it is there. */
static struct slice parse_argument_name(struct parser *p)
{
    struct mark start = mark(p);
    if (p->token.kind != OTTL_TOKEN_LOWER)
        return (struct slice){0};
    struct slice name = parse_name(p);
    if (accept(p, '='))
        return name;
    go_back(p, start);
    return (struct slice){0};
}

/* Reads the name of a function that is not called. One in capitals may be an enum, too. */
static struct ottl_ast *parse_function_name(struct parser *p)
{
    struct mark start = mark(p);
    struct ottl_ast *ast = ast_here(p, OTTL_AST_FUNCTION_NAME);
    ast->text = parse_name(p);
    if (ast->text.size == start.token.text.size)
        ast->kind = OTTL_AST_ENUM;
    if (is_punctuation(p, ',') || is_punctuation(p, ')'))
        return ast;
    go_back(p, start);
    return NULL;
}

static struct ottl_ast *parse_argument(struct parser *p, struct slice *name_out)
{
    *name_out = parse_argument_name(p);
    struct ottl_ast *name = p->token.kind == OTTL_TOKEN_UPPER ? parse_function_name(p) : NULL;
    return name ? name : parse_value(p);
}

/* After the opening parenthesis. */
static bool parse_arguments(struct parser *p, struct ottl_ast *call)
{
    if (accept(p, ')'))
        return true;
    do {
        struct slice name;
        struct ottl_ast *value = parse_argument(p, &name);
        if (!value)
            return false;
        add_part(p, call, value)->name = name;
    } while (accept(p, ','));
    return expect(p, ')', "\")\"");
}

/* After the name, at the opening parenthesis. */
static struct ottl_ast *parse_call(struct parser *p, struct slice name, uint32_t position)
{
    struct ottl_ast *call = new_ast(p, OTTL_AST_CALL, position);
    call->text = name;
    assert(is_punctuation(p, '('));
    if (!enter(p))
        return NULL;
    advance(p);
    if (!parse_arguments(p, call) || !parse_keys(p, &call->keys))
        return NULL;
    leave(p);
    return call;
}

/* A path, unless a parenthesis follows the words. */
static struct ottl_ast *parse_lower(struct parser *p)
{
    struct mark start = mark(p);
    struct slice name = parse_name(p);
    bool is_call = is_punctuation(p, '(');
    go_back(p, start);
    if (!is_call)
        return parse_path(p);
    char text[64];
    snprintf(text, sizeof text, "%.*s", SLICE_ARG(name));
    return fail_finally(p, position_of(p, p->token),
                        "converter names must start with an uppercase letter but got '%s'", text);
}

static struct ottl_ast *parse_converter(struct parser *p)
{
    uint32_t position = position_of(p, p->token);
    struct slice name = parse_name(p);
    if (!is_punctuation(p, '('))
        return unexpected(p, "\"(\"; a name in mixed case is a function");
    return parse_call(p, name, position);
}

/* ---- mathematics ---- */

static struct ottl_ast *parse_math_literal(struct parser *p)
{
    switch (p->token.kind) {
    case OTTL_TOKEN_FLOAT:
    case OTTL_TOKEN_INT:
        return parse_number(p);
    case OTTL_TOKEN_LOWER:
        return parse_lower(p);
    case OTTL_TOKEN_UPPER:
        return parse_converter(p);
    default:
        return unexpected(p, "a value");
    }
}

static struct ottl_ast *parse_operand(struct parser *p)
{
    if (!is_punctuation(p, '('))
        return parse_math_literal(p);
    if (!enter(p))
        return NULL;
    advance(p);
    struct ottl_ast *inner = parse_math(p);
    if (!inner || !expect(p, ')', "\")\""))
        return NULL;
    leave(p);
    return inner;
}

/* The sign of a literal is part of it, but for a literal argument `-1` is mathematics. */
static struct ottl_ast *parse_signed(struct parser *p)
{
    if (p->token.kind != OTTL_TOKEN_SIGN)
        return parse_operand(p);
    bool is_negative = p->token.text.data[0] == '-';
    uint32_t position = position_of(p, p->token);
    advance(p);
    struct ottl_ast *operand = parse_operand(p);
    if (!operand)
        return NULL;
    struct ottl_ast *ast = new_ast(p, is_negative ? OTTL_AST_NEGATE : OTTL_AST_MATH, position);
    add_part(p, ast, operand);
    return ast;
}

static enum ottl_operator math_operator(struct ottl_token token)
{
    static const char characters[] = "+-*/";
    assert(token.text.size == 1 && strchr(characters, token.text.data[0]));
    return (enum ottl_operator)(OTTL_ADD + (strchr(characters, token.text.data[0]) - characters));
}

/* Parses operands with operators of one rank between them. One operand alone stays as it is. */
static struct ottl_ast *parse_chain(struct parser *p, enum ottl_token_kind rank,
                                    struct ottl_ast *(*operand)(struct parser *p))
{
    struct ottl_ast *first = operand(p);
    if (!first || p->token.kind != rank)
        return first;
    struct ottl_ast *chain = new_ast(p, OTTL_AST_MATH, first->position);
    add_part(p, chain, first);
    while (p->token.kind == rank) {
        enum ottl_operator operator= math_operator(p->token);
        advance(p);
        struct ottl_ast *next = operand(p);
        if (!next)
            return NULL;
        add_part(p, chain, next)->operator= operator;
    }
    return chain;
}

static struct ottl_ast *parse_product(struct parser *p)
{
    return parse_chain(p, OTTL_TOKEN_FACTOR, parse_signed);
}

static struct ottl_ast *parse_math(struct parser *p)
{
    return parse_chain(p, OTTL_TOKEN_SIGN, parse_product);
}

/* ---- values ---- */

static struct ottl_ast *parse_list(struct parser *p)
{
    struct ottl_ast *list = ast_here(p, OTTL_AST_LIST);
    if (!enter(p))
        return NULL;
    advance(p);
    while (!is_punctuation(p, ']')) {
        if (list->part_count > 0 && !expect(p, ',', "\",\" or \"]\""))
            return NULL;
        struct ottl_ast *value = parse_value(p);
        if (!value)
            return NULL;
        add_part(p, list, value);
    }
    advance(p);
    leave(p);
    return list;
}

static bool parse_map_item(struct parser *p, struct ottl_ast *map)
{
    struct slice key;
    if (p->token.kind != OTTL_TOKEN_STRING) {
        unexpected(p, "a key in quotes or \"}\"");
        return false;
    }
    if (!read_string(p, &key))
        return false;
    advance(p);
    struct ottl_ast *value = expect(p, ':', "\":\"") ? parse_value(p) : NULL;
    if (!value)
        return false;
    add_part(p, map, value)->name = key;
    return true;
}

/* The commas may be missing, as in the Collector. */
static struct ottl_ast *parse_map(struct parser *p)
{
    struct ottl_ast *map = ast_here(p, OTTL_AST_MAP);
    if (!enter(p))
        return NULL;
    advance(p);
    while (!is_punctuation(p, '}')) {
        if (!parse_map_item(p, map))
            return NULL;
        accept(p, ',');
    }
    advance(p);
    leave(p);
    return map;
}

/* A word in capitals that is not called. */
static struct ottl_ast *parse_enum(struct parser *p)
{
    struct mark start = mark(p);
    struct ottl_ast *symbol = ast_here(p, OTTL_AST_ENUM);
    symbol->text = p->token.text;
    advance(p);
    if (!is_name_part(p) && !is_punctuation(p, '('))
        return symbol;
    go_back(p, start);
    return NULL;
}

static struct ottl_ast *parse_nil(struct parser *p)
{
    struct ottl_ast *nil = ast_here(p, OTTL_AST_NIL);
    advance(p);
    return nil;
}

static struct ottl_ast *parse_value(struct parser *p)
{
    struct ottl_ast *symbol = p->token.kind == OTTL_TOKEN_UPPER ? parse_enum(p) : NULL;
    if (symbol)
        return symbol;
    switch (p->token.kind) {
    case OTTL_TOKEN_NIL:
        return parse_nil(p);
    case OTTL_TOKEN_BYTES:
        return parse_bytes(p);
    case OTTL_TOKEN_STRING:
        return parse_string(p);
    case OTTL_TOKEN_BOOL:
        return parse_bool(p);
    default:
        if (is_punctuation(p, '['))
            return parse_list(p);
        return is_punctuation(p, '{') ? parse_map(p) : parse_math(p);
    }
}

/* ---- conditions ---- */

static enum ottl_operator comparison_operator(struct slice text)
{
    static const char *const texts[] = {"==", "!=", "<", "<=", ">", ">="};
    for (int i = OTTL_EQUAL; i <= OTTL_GREATER_OR_EQUAL; i++)
        if (slice_is(text, texts[i]))
            return (enum ottl_operator)i;
    assert(!"a comparison");
    return OTTL_EQUAL;
}

/* Parses what is true or false on its own, or two values with an operator between them. */
static struct ottl_ast *parse_comparison(struct parser *p)
{
    struct ottl_ast *left = parse_value(p);
    if (!left)
        return NULL;
    if (p->token.kind != OTTL_TOKEN_COMPARISON)
        return left->kind == OTTL_AST_BOOL || left->kind == OTTL_AST_CALL
                   ? left
                   : unexpected(p, "a comparison");
    struct ottl_ast *ast = new_ast(p, OTTL_AST_COMPARISON, left->position);
    add_part(p, ast, left);
    enum ottl_operator operator= comparison_operator(p->token.text);
    advance(p);
    struct ottl_ast *right = parse_value(p);
    if (!right)
        return NULL;
    add_part(p, ast, right)->operator= operator;
    return ast;
}

/* A parenthesis may begin a value that is compared, or a condition. Reading the value is linear,
 * because no condition is inside it. */
static struct ottl_ast *parse_parenthesis(struct parser *p)
{
    struct mark start = mark(p);
    struct ottl_ast *comparison = parse_comparison(p);
    /* `(Len(x))` is a condition in parentheses, as `(Len(x) > 1)` is. */
    if (p->is_final || (comparison && comparison->kind == OTTL_AST_COMPARISON))
        return comparison;
    go_back(p, start);
    if (!enter(p))
        return NULL;
    advance(p);
    struct ottl_ast *inner = parse_or(p);
    if (!inner || !expect(p, ')', "\")\""))
        return NULL;
    leave(p);
    return inner;
}

static struct ottl_ast *parse_not(struct parser *p)
{
    struct ottl_ast *ast = ast_here(p, OTTL_AST_NOT);
    bool is_negated = p->token.kind == OTTL_TOKEN_NOT;
    if (is_negated)
        advance(p);
    struct ottl_ast *condition =
        is_punctuation(p, '(') ? parse_parenthesis(p) : parse_comparison(p);
    if (!condition || !is_negated)
        return condition;
    add_part(p, ast, condition);
    return ast;
}

static struct ottl_ast *parse_joined(struct parser *p, enum ottl_token_kind token,
                                     enum ottl_ast_kind kind,
                                     struct ottl_ast *(*operand)(struct parser *p))
{
    struct ottl_ast *first = operand(p);
    if (!first || p->token.kind != token)
        return first;
    struct ottl_ast *ast = new_ast(p, kind, first->position);
    add_part(p, ast, first);
    while (p->token.kind == token) {
        advance(p);
        struct ottl_ast *next = operand(p);
        if (!next)
            return NULL;
        add_part(p, ast, next);
    }
    return ast;
}

static struct ottl_ast *parse_and(struct parser *p)
{
    return parse_joined(p, OTTL_TOKEN_AND, OTTL_AST_AND, parse_not);
}

static struct ottl_ast *parse_or(struct parser *p)
{
    return parse_joined(p, OTTL_TOKEN_OR, OTTL_AST_OR, parse_and);
}

/* ---- statements ---- */

static struct ottl_ast *parse_editor(struct parser *p)
{
    uint32_t position = position_of(p, p->token);
    if (!is_name_part(p))
        return unexpected(p, "the name of an editor");
    bool is_upper = p->token.kind == OTTL_TOKEN_UPPER;
    char text[64];
    struct slice name = parse_name(p);
    snprintf(text, sizeof text, "%.*s", SLICE_ARG(name));
    if (!is_punctuation(p, '('))
        return unexpected(p, "\"(\"");
    if (is_upper)
        return fail_finally(p, position,
                            "editor names must start with a lowercase letter but got '%s'", text);
    struct ottl_ast *editor = parse_call(p, name, position);
    if (editor && editor->keys.count > 0)
        return fail_finally(p, position,
                            "only paths and converters may be indexed, not editors, but got %s[]",
                            text);
    return editor;
}

static bool expect_end(struct parser *p, const char *expected)
{
    if (p->token.kind == OTTL_TOKEN_END)
        return true;
    unexpected(p, expected);
    return false;
}

static bool parse_where(struct parser *p, struct ottl_statement *out)
{
    if (p->token.kind == OTTL_TOKEN_END)
        return true;
    if (p->token.kind != OTTL_TOKEN_LOWER || !slice_is(p->token.text, "where"))
        return expect_end(p, "\"where\"");
    advance(p);
    return (out->condition = parse_or(p)) && expect_end(p, "\"and\", \"or\" or the end");
}

static bool begin(struct parser *p)
{
    if (p->statement.size > OTTL_SIZE_MAX)
        return error_set(p->err, "the %s is longer than %d bytes", p->kind, OTTL_SIZE_MAX);
    if (!utf8_is_valid(p->statement))
        return error_set(p->err, "the %s is not valid UTF-8", p->kind);
    advance(p);
    return true;
}

static bool fail(struct parser *p)
{
    assert(p->failed);
    return error_prefix(p->err, "%s has invalid syntax", p->kind);
}

static struct parser parser_of(struct slice text, const char *kind, struct arena *arena,
                               struct error *err)
{
    return (struct parser){
        .statement = text, .kind = kind, .arena = arena, .lexer = {text, 0}, .err = err};
}

bool ottl_parse_condition(struct slice text, struct arena *arena, struct ottl_statement *out,
                          struct error *err)
{
    struct parser p = parser_of(text, "condition", arena, err);
    *out = (struct ottl_statement){0};
    if (!begin(&p))
        return false;
    out->condition = parse_or(&p);
    return (out->condition && expect_end(&p, "\"and\", \"or\" or the end")) || fail(&p);
}

bool ottl_parse_statement(struct slice text, struct arena *arena, struct ottl_statement *out,
                          struct error *err)
{
    struct parser p = parser_of(text, "statement", arena, err);
    *out = (struct ottl_statement){0};
    if (!begin(&p))
        return false;
    return ((out->editor = parse_editor(&p)) && parse_where(&p, out)) || fail(&p);
}
