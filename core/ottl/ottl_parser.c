#include "core/ottl/ottl_parser.h"

#include "core/base/text.h"
#include "core/data/utf8.h"
#include "core/ottl/ottl_functions.h"
#include "core/ottl/ottl_literals.h"
#include "core/ottl/ottl_syntax_hints.h"

#include <assert.h>
#include <stdio.h>

static struct ottl_ast *parse_value(struct ottl_parsing *p);
static struct ottl_ast *parse_math(struct ottl_parsing *p);
static struct ottl_ast *parse_or(struct ottl_parsing *p);

/* ---- literals ---- */

static bool read_string(struct ottl_parsing *p, struct slice *out)
{
    if (ottl_unquote(p->token.text, p->arena, out))
        return true;
    char text[64];
    size_t size = text_utf8_cut(p->token.text, sizeof text - 1);
    snprintf(text, sizeof text, "%.*s", (int)size, (const char *)p->token.text.data);
    ottl_parsing_fail_finally(
        p, ottl_parsing_position(p, p->token),
        "invalid quoted string %s: unknown escape; a backslash is written \\\\", text);
    return false;
}

static struct ottl_ast *parse_string(struct ottl_parsing *p)
{
    struct ottl_ast *ast = ottl_parsing_ast(p, OTTL_AST_STRING);
    if (!read_string(p, &ast->text))
        return NULL;
    ottl_parsing_advance(p);
    return ast;
}

static struct ottl_ast *parse_bytes(struct ottl_parsing *p)
{
    struct ottl_ast *ast = ottl_parsing_ast(p, OTTL_AST_BYTES);
    if (!ottl_read_hex(p->token.text, p->arena, &ast->text))
        return ottl_parsing_fail_finally(p, ast->position,
                                         "bytes need an even number of hex digits");
    ottl_parsing_advance(p);
    return ast;
}

static struct ottl_ast *parse_number(struct ottl_parsing *p)
{
    bool is_float = p->token.kind == OTTL_TOKEN_FLOAT;
    struct ottl_ast *ast = ottl_parsing_ast(p, is_float ? OTTL_AST_FLOAT : OTTL_AST_INT);
    if (is_float ? !ottl_read_float(p->token.text, &ast->real)
                 : !ottl_read_int(p->token.text, &ast->integer))
        return ottl_parsing_fail_finally(
            p, ast->position, "%s",
            is_float ? "the number is too large"
                     : "the number is not a 64-bit integer; a leading 0 means octal");
    ottl_parsing_advance(p);
    return ast;
}

static struct ottl_ast *parse_bool(struct ottl_parsing *p)
{
    struct ottl_ast *ast = ottl_parsing_ast(p, OTTL_AST_BOOL);
    ast->truth = slice_is(p->token.text, "true");
    ottl_parsing_advance(p);
    return ast;
}

/* ---- names ---- */

static bool is_name_part(const struct ottl_parsing *p)
{
    return p->token.kind == OTTL_TOKEN_UPPER || p->token.kind == OTTL_TOKEN_LOWER;
}

/* Reads a run of words as one name: `Is` `Match`. Blanks between them do not count. */
static struct slice parse_name(struct ottl_parsing *p)
{
    struct slice name = p->token.text;
    bool is_joined = true;
    assert(is_name_part(p));
    for (ottl_parsing_advance(p); is_name_part(p); ottl_parsing_advance(p)) {
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

static struct ottl_ast *parse_key(struct ottl_parsing *p)
{
    if (p->token.kind == OTTL_TOKEN_STRING)
        return parse_string(p);
    if (p->token.kind == OTTL_TOKEN_INT)
        return parse_number(p);
    return parse_math(p);
}

static bool parse_keys(struct ottl_parsing *p, struct ottl_keys *keys)
{
    while (ottl_parsing_is_at(p, '[')) {
        if (!ottl_parsing_enter(p))
            return false;
        ottl_parsing_advance(p);
        struct ottl_ast *key = parse_key(p);
        if (!key || !ottl_parsing_expect(p, ']', "\"]\""))
            return false;
        ottl_parsing_add_key(p, keys, key);
        ottl_parsing_leave(p);
    }
    return true;
}

static struct ottl_ast *parse_path(struct ottl_parsing *p)
{
    struct ottl_ast *path = ottl_parsing_ast(p, OTTL_AST_PATH);
    do {
        if (p->token.kind != OTTL_TOKEN_LOWER)
            return ottl_parsing_unexpected(p, "a field in lower case");
        path->segments = arena_grow(p->arena, path->segments, path->segment_count,
                                    &path->segment_capacity, sizeof *path->segments);
        struct ottl_segment *segment = &path->segments[path->segment_count++];
        segment->name = p->token.text;
        segment->position = ottl_parsing_position(p, p->token);
        ottl_parsing_advance(p);
        if (!parse_keys(p, &segment->keys))
            return NULL;
    } while (ottl_parsing_accept(p, '.'));
    return path;
}

/* Reads `name =` if it is there. */
static struct slice parse_argument_name(struct ottl_parsing *p)
{
    struct ottl_parsing_mark start = ottl_parsing_mark(p);
    if (p->token.kind != OTTL_TOKEN_LOWER)
        return (struct slice){0};
    struct slice name = parse_name(p);
    if (ottl_parsing_accept(p, '='))
        return name;
    ottl_parsing_go_back(p, start);
    return (struct slice){0};
}

/* Reads the name of a function that is not called. One in capitals may be an enum, too. */
static struct ottl_ast *parse_function_name(struct ottl_parsing *p)
{
    struct ottl_parsing_mark start = ottl_parsing_mark(p);
    struct ottl_ast *ast = ottl_parsing_ast(p, OTTL_AST_FUNCTION_NAME);
    ast->text = parse_name(p);
    if (ast->text.size == start.token.text.size)
        ast->kind = OTTL_AST_ENUM;
    if (ottl_parsing_is_at(p, ',') || ottl_parsing_is_at(p, ')'))
        return ast;
    ottl_parsing_go_back(p, start);
    return NULL;
}

/* ---- lambdas ---- */

static bool is_parameter(const struct ottl_parsing *p)
{
    return p->token.kind == OTTL_TOKEN_LOWER || p->token.kind == OTTL_TOKEN_UNDERSCORE;
}

/* Whether parameters in parentheses and an arrow follow. */
static bool is_at_lambda(struct ottl_parsing *p)
{
    struct ottl_parsing_mark start = ottl_parsing_mark(p);
    if (!ottl_parsing_accept(p, '('))
        return false;
    while (is_parameter(p)) {
        ottl_parsing_advance(p);
        ottl_parsing_accept(p, ',');
    }
    bool is_lambda = ottl_parsing_accept(p, ')') && p->token.kind == OTTL_TOKEN_ARROW;
    ottl_parsing_go_back(p, start);
    return is_lambda;
}

static bool parse_parameters(struct ottl_parsing *p, struct ottl_ast *lambda)
{
    while (!ottl_parsing_is_at(p, ')')) {
        if (lambda->segment_count > 0 && !ottl_parsing_expect(p, ',', "\",\" or \")\""))
            return false;
        if (!is_parameter(p)) {
            ottl_parsing_unexpected(p, "a parameter in lower case");
            return false;
        }
        lambda->segments = arena_grow(p->arena, lambda->segments, lambda->segment_count,
                                      &lambda->segment_capacity, sizeof *lambda->segments);
        struct ottl_segment *parameter = &lambda->segments[lambda->segment_count++];
        *parameter = (struct ottl_segment){.name = p->token.text,
                                           .position = ottl_parsing_position(p, p->token)};
        ottl_parsing_advance(p);
    }
    return true;
}

static bool is_at_operator(const struct ottl_parsing *p)
{
    return p->token.kind == OTTL_TOKEN_COMPARISON || p->token.kind == OTTL_TOKEN_AND ||
           p->token.kind == OTTL_TOKEN_OR;
}

/* A value, or what is true or false. */
static struct ottl_ast *parse_lambda_body(struct ottl_parsing *p)
{
    struct ottl_parsing_mark start = ottl_parsing_mark(p);
    struct ottl_ast *value = p->token.kind == OTTL_TOKEN_NOT ? NULL : parse_value(p);
    if (p->is_final || (value && !is_at_operator(p)))
        return p->is_final ? NULL : value;
    ottl_parsing_go_back(p, start);
    return parse_or(p);
}

static struct ottl_ast *parse_lambda(struct ottl_parsing *p)
{
    struct ottl_ast *lambda = ottl_parsing_ast(p, OTTL_AST_LAMBDA);
    if (!ottl_parsing_enter(p))
        return NULL;
    ottl_parsing_advance(p);
    if (!parse_parameters(p, lambda))
        return NULL;
    ottl_parsing_advance(p);
    assert(p->token.kind == OTTL_TOKEN_ARROW);
    ottl_parsing_advance(p);
    struct ottl_ast *body = parse_lambda_body(p);
    if (!body)
        return NULL;
    ottl_parsing_add_part(p, lambda, body);
    ottl_parsing_leave(p);
    return lambda;
}

static struct ottl_ast *parse_argument(struct ottl_parsing *p, struct slice *name_out)
{
    *name_out = parse_argument_name(p);
    if (is_at_lambda(p))
        return parse_lambda(p);
    struct ottl_ast *name = p->token.kind == OTTL_TOKEN_UPPER ? parse_function_name(p) : NULL;
    return name ? name : parse_value(p);
}

/* After the opening parenthesis. */
static bool parse_arguments(struct ottl_parsing *p, struct ottl_ast *call)
{
    if (ottl_parsing_accept(p, ')'))
        return true;
    do {
        struct slice name;
        struct ottl_ast *value = parse_argument(p, &name);
        if (!value)
            return false;
        ottl_parsing_add_part(p, call, value)->name = name;
    } while (ottl_parsing_accept(p, ','));
    return ottl_parsing_expect(p, ')', "\",\" or \")\"");
}

/* After the name, at the opening parenthesis. */
static struct ottl_ast *parse_call(struct ottl_parsing *p, struct slice name, uint32_t position)
{
    struct ottl_ast *call = ottl_parsing_ast_at(p, OTTL_AST_CALL, position);
    call->text = name;
    assert(ottl_parsing_is_at(p, '('));
    if (!ottl_parsing_enter(p))
        return NULL;
    ottl_parsing_advance(p);
    if (!parse_arguments(p, call) || !parse_keys(p, &call->keys))
        return NULL;
    ottl_parsing_leave(p);
    return call;
}

/* A path, unless a parenthesis follows the words. */
static struct ottl_ast *parse_lower(struct ottl_parsing *p)
{
    struct ottl_parsing_mark start = ottl_parsing_mark(p);
    struct slice name = parse_name(p);
    bool is_call = ottl_parsing_is_at(p, '(');
    ottl_parsing_go_back(p, start);
    if (!is_call)
        return parse_path(p);
    struct text hint = {0};
    ottl_hint_call(name, &hint);
    if (strcmp(p->kind, "condition") == 0 && (hint.size == 0 || ottl_editor_find(name)))
        text_append(&hint, "; a condition is a comparison or a converter");
    ottl_parsing_fail_finally(p, ottl_parsing_position(p, p->token),
                              "converter names must start with an uppercase letter but got "
                              "'%.*s'%s",
                              SLICE_ARG(name), text_string(&hint));
    text_deinit(&hint);
    return NULL;
}

static struct ottl_ast *parse_converter(struct ottl_parsing *p)
{
    uint32_t position = ottl_parsing_position(p, p->token);
    struct slice word =
        ottl_hint_word(slice_of(p->statement.data + position, p->statement.size - position));
    struct slice name = parse_name(p);
    if (!ottl_parsing_is_at(p, '(') && ottl_hint_keyword(word))
        return ottl_parsing_fail_finally(p, position, "unexpected \"%.*s\": write %s",
                                         SLICE_ARG(word), ottl_hint_keyword(word));
    if (!ottl_parsing_is_at(p, '('))
        return ottl_parsing_unexpected(p, "\"(\"; a name in mixed case is a function");
    return parse_call(p, name, position);
}

/* ---- mathematics ---- */

static struct ottl_ast *parse_math_literal(struct ottl_parsing *p)
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
        return ottl_parsing_unexpected(p, "a value");
    }
}

static struct ottl_ast *parse_operand(struct ottl_parsing *p)
{
    if (!ottl_parsing_is_at(p, '('))
        return parse_math_literal(p);
    if (!ottl_parsing_enter(p))
        return NULL;
    ottl_parsing_advance(p);
    struct ottl_ast *inner = parse_math(p);
    if (!inner || !ottl_parsing_expect(p, ')', "\")\""))
        return NULL;
    ottl_parsing_leave(p);
    return inner;
}

/* The sign of a literal is part of it, but for a literal argument `-1` is mathematics. */
static struct ottl_ast *parse_signed(struct ottl_parsing *p)
{
    if (p->token.kind != OTTL_TOKEN_SIGN)
        return parse_operand(p);
    bool is_negative = p->token.text.data[0] == '-';
    uint32_t position = ottl_parsing_position(p, p->token);
    ottl_parsing_advance(p);
    struct ottl_ast *operand = parse_operand(p);
    if (!operand)
        return NULL;
    struct ottl_ast *ast =
        ottl_parsing_ast_at(p, is_negative ? OTTL_AST_NEGATE : OTTL_AST_MATH, position);
    ottl_parsing_add_part(p, ast, operand);
    return ast;
}

static enum ottl_operator math_operator(struct ottl_token token)
{
    static const char characters[] = "+-*/";
    assert(token.text.size == 1 && strchr(characters, token.text.data[0]));
    return (enum ottl_operator)(OTTL_ADD + (strchr(characters, token.text.data[0]) - characters));
}

/* Parses operands with operators of one rank between them. One operand alone stays as it is. */
static struct ottl_ast *parse_chain(struct ottl_parsing *p, enum ottl_token_kind rank,
                                    struct ottl_ast *(*operand)(struct ottl_parsing *p))
{
    struct ottl_ast *first = operand(p);
    if (!first || p->token.kind != rank)
        return first;
    struct ottl_ast *chain = ottl_parsing_ast_at(p, OTTL_AST_MATH, first->position);
    ottl_parsing_add_part(p, chain, first);
    while (p->token.kind == rank) {
        enum ottl_operator operator= math_operator(p->token);
        ottl_parsing_advance(p);
        struct ottl_ast *next = operand(p);
        if (!next)
            return NULL;
        ottl_parsing_add_part(p, chain, next)->operator= operator;
    }
    return chain;
}

static struct ottl_ast *parse_product(struct ottl_parsing *p)
{
    return parse_chain(p, OTTL_TOKEN_FACTOR, parse_signed);
}

static struct ottl_ast *parse_math(struct ottl_parsing *p)
{
    return parse_chain(p, OTTL_TOKEN_SIGN, parse_product);
}

/* ---- values ---- */

static struct ottl_ast *parse_list(struct ottl_parsing *p)
{
    struct ottl_ast *list = ottl_parsing_ast(p, OTTL_AST_LIST);
    if (!ottl_parsing_enter(p))
        return NULL;
    ottl_parsing_advance(p);
    while (!ottl_parsing_is_at(p, ']')) {
        if (list->part_count > 0 && !ottl_parsing_expect(p, ',', "\",\" or \"]\""))
            return NULL;
        struct ottl_ast *value = parse_value(p);
        if (!value)
            return NULL;
        ottl_parsing_add_part(p, list, value);
    }
    ottl_parsing_advance(p);
    ottl_parsing_leave(p);
    return list;
}

static bool parse_map_item(struct ottl_parsing *p, struct ottl_ast *map)
{
    struct slice key;
    if (p->token.kind != OTTL_TOKEN_STRING) {
        ottl_parsing_unexpected(p, "a key in quotes or \"}\"");
        return false;
    }
    if (!read_string(p, &key))
        return false;
    ottl_parsing_advance(p);
    struct ottl_ast *value = ottl_parsing_expect(p, ':', "\":\"") ? parse_value(p) : NULL;
    if (!value)
        return false;
    ottl_parsing_add_part(p, map, value)->name = key;
    return true;
}

/* The commas may be missing, as in the Collector. */
static struct ottl_ast *parse_map(struct ottl_parsing *p)
{
    struct ottl_ast *map = ottl_parsing_ast(p, OTTL_AST_MAP);
    if (!ottl_parsing_enter(p))
        return NULL;
    ottl_parsing_advance(p);
    while (!ottl_parsing_is_at(p, '}')) {
        if (!parse_map_item(p, map))
            return NULL;
        ottl_parsing_accept(p, ',');
    }
    ottl_parsing_advance(p);
    ottl_parsing_leave(p);
    return map;
}

/* A word in capitals that is not called. */
static struct ottl_ast *parse_enum(struct ottl_parsing *p)
{
    struct ottl_parsing_mark start = ottl_parsing_mark(p);
    struct ottl_ast *symbol = ottl_parsing_ast(p, OTTL_AST_ENUM);
    symbol->text = p->token.text;
    ottl_parsing_advance(p);
    if (!is_name_part(p) && !ottl_parsing_is_at(p, '('))
        return symbol;
    ottl_parsing_go_back(p, start);
    return NULL;
}

static struct ottl_ast *parse_nil(struct ottl_parsing *p)
{
    struct ottl_ast *nil = ottl_parsing_ast(p, OTTL_AST_NIL);
    ottl_parsing_advance(p);
    return nil;
}

static struct ottl_ast *parse_value(struct ottl_parsing *p)
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
        if (ottl_parsing_is_at(p, '['))
            return parse_list(p);
        return ottl_parsing_is_at(p, '{') ? parse_map(p) : parse_math(p);
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
static struct ottl_ast *parse_comparison(struct ottl_parsing *p)
{
    struct ottl_ast *left = parse_value(p);
    if (!left)
        return NULL;
    if (p->token.kind != OTTL_TOKEN_COMPARISON)
        return left->kind == OTTL_AST_BOOL || left->kind == OTTL_AST_CALL
                   ? left
                   : ottl_parsing_unexpected(p, "a comparison");
    struct ottl_ast *ast = ottl_parsing_ast_at(p, OTTL_AST_COMPARISON, left->position);
    ottl_parsing_add_part(p, ast, left);
    enum ottl_operator operator= comparison_operator(p->token.text);
    ottl_parsing_advance(p);
    struct ottl_ast *right = parse_value(p);
    if (!right)
        return NULL;
    ottl_parsing_add_part(p, ast, right)->operator= operator;
    return ast;
}

/* A parenthesis may begin a value that is compared, or a condition. Reading the value is linear,
 * because no condition is inside it. */
static struct ottl_ast *parse_parenthesis(struct ottl_parsing *p)
{
    struct ottl_parsing_mark start = ottl_parsing_mark(p);
    struct ottl_ast *comparison = parse_comparison(p);
    /* `(Len(x))` is a condition in parentheses, as `(Len(x) > 1)` is. */
    if (p->is_final || (comparison && comparison->kind == OTTL_AST_COMPARISON))
        return comparison;
    ottl_parsing_go_back(p, start);
    if (!ottl_parsing_enter(p))
        return NULL;
    ottl_parsing_advance(p);
    struct ottl_ast *inner = parse_or(p);
    if (!inner || !ottl_parsing_expect(p, ')', "\")\""))
        return NULL;
    ottl_parsing_leave(p);
    return inner;
}

static struct ottl_ast *parse_not(struct ottl_parsing *p)
{
    struct ottl_ast *ast = ottl_parsing_ast(p, OTTL_AST_NOT);
    bool is_negated = p->token.kind == OTTL_TOKEN_NOT;
    if (is_negated)
        ottl_parsing_advance(p);
    struct ottl_ast *condition =
        ottl_parsing_is_at(p, '(') ? parse_parenthesis(p) : parse_comparison(p);
    if (!condition || !is_negated)
        return condition;
    ottl_parsing_add_part(p, ast, condition);
    return ast;
}

static struct ottl_ast *parse_joined(struct ottl_parsing *p, enum ottl_token_kind token,
                                     enum ottl_ast_kind kind,
                                     struct ottl_ast *(*operand)(struct ottl_parsing *p))
{
    struct ottl_ast *first = operand(p);
    if (!first || p->token.kind != token)
        return first;
    struct ottl_ast *ast = ottl_parsing_ast_at(p, kind, first->position);
    ottl_parsing_add_part(p, ast, first);
    while (p->token.kind == token) {
        ottl_parsing_advance(p);
        struct ottl_ast *next = operand(p);
        if (!next)
            return NULL;
        ottl_parsing_add_part(p, ast, next);
    }
    return ast;
}

static struct ottl_ast *parse_and(struct ottl_parsing *p)
{
    return parse_joined(p, OTTL_TOKEN_AND, OTTL_AST_AND, parse_not);
}

static struct ottl_ast *parse_or(struct ottl_parsing *p)
{
    return parse_joined(p, OTTL_TOKEN_OR, OTTL_AST_OR, parse_and);
}

/* ---- statements ---- */

static void *fail_editor(struct ottl_parsing *p, uint32_t position, struct slice name)
{
    struct text hint = {0};
    ottl_hint_editor(name, &hint);
    ottl_parsing_fail_finally(p, position,
                              "editor names must start with a lowercase letter but got '%.*s'%s",
                              SLICE_ARG(name), text_string(&hint));
    text_deinit(&hint);
    return NULL;
}

static struct ottl_ast *parse_editor(struct ottl_parsing *p)
{
    uint32_t position = ottl_parsing_position(p, p->token);
    if (!is_name_part(p))
        return ottl_parsing_unexpected(p, "the name of an editor");
    bool is_upper = p->token.kind == OTTL_TOKEN_UPPER;
    struct slice name = parse_name(p);
    if (!ottl_parsing_is_at(p, '('))
        return ottl_parsing_fail_finally(
            p, position, "a statement begins with an editor, as set(span.name, \"x\") where ...");
    if (is_upper)
        return fail_editor(p, position, name);
    struct ottl_ast *editor = parse_call(p, name, position);
    if (editor && editor->keys.count > 0)
        return ottl_parsing_fail_finally(
            p, position, "only paths and converters may be indexed, not editors, but got %.*s[]",
            SLICE_ARG(name));
    return editor;
}

static bool expect_end(struct ottl_parsing *p, const char *expected)
{
    if (p->token.kind == OTTL_TOKEN_END)
        return true;
    ottl_parsing_unexpected(p, expected);
    return false;
}

static bool parse_where(struct ottl_parsing *p, struct ottl_statement *out)
{
    if (p->token.kind == OTTL_TOKEN_END)
        return true;
    if (p->token.kind != OTTL_TOKEN_LOWER || !slice_is(p->token.text, "where"))
        return expect_end(p, "\"where\"");
    ottl_parsing_advance(p);
    return (out->condition = parse_or(p)) && expect_end(p, "\"and\", \"or\" or the end");
}

static bool begin(struct ottl_parsing *p)
{
    if (p->statement.size > OTTL_SIZE_MAX)
        return error_set(p->err, "the %s is longer than %d bytes", p->kind, OTTL_SIZE_MAX);
    if (!utf8_is_valid(p->statement))
        return error_set(p->err, "the %s is not valid UTF-8", p->kind);
    if (slice_trim(p->statement, SLICE_SPACES).size == 0)
        return error_set(p->err, "the %s is empty", p->kind);
    ottl_parsing_advance(p);
    return true;
}

static bool failed(const struct ottl_parsing *p)
{
    assert(p->failed);
    return !p->failed;
}

static struct ottl_parsing parser_of(struct slice text, const char *kind, struct arena *arena,
                                     struct error *err)
{
    return (struct ottl_parsing){
        .statement = text, .kind = kind, .arena = arena, .lexer = {text, 0}, .err = err};
}

bool ottl_parse_condition(struct slice text, struct arena *arena, struct ottl_statement *out,
                          struct error *err)
{
    struct ottl_parsing p = parser_of(text, "condition", arena, err);
    *out = (struct ottl_statement){0};
    if (!begin(&p))
        return false;
    out->condition = parse_or(&p);
    return (out->condition && expect_end(&p, "\"and\", \"or\" or the end")) || failed(&p);
}

bool ottl_parse_statement(struct slice text, struct arena *arena, struct ottl_statement *out,
                          struct error *err)
{
    struct ottl_parsing p = parser_of(text, "statement", arena, err);
    *out = (struct ottl_statement){0};
    if (!begin(&p))
        return false;
    return ((out->editor = parse_editor(&p)) && parse_where(&p, out)) || failed(&p);
}

bool ottl_parse_value(struct slice text, struct arena *arena, struct ottl_ast **out,
                      struct error *err)
{
    struct ottl_parsing p = parser_of(text, "value", arena, err);
    if (!begin(&p))
        return false;
    *out = parse_value(&p);
    return (*out && expect_end(&p, "the end")) || failed(&p);
}
