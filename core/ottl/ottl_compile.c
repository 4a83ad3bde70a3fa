#include "core/base/memory.h"
#include "core/base/time_zone.h"
#include "core/ottl/ottl_functions.h"
#include "core/ottl/ottl_parser.h"
#include "core/ottl/ottl_paths.h"
#include "core/ottl/ottl_replace.h"

#include <assert.h>
#include <stdio.h>

struct compiler {
    struct slice text;
    enum ottl_prefix prefix;
    struct ottl_program *program;
    struct error *err;
};

static struct ottl_node *compile(struct compiler *c, const struct ottl_ast *ast);

const char *const ottl_context_names[OTTL_CONTEXT_COUNT] = {
    "resource", "scope", "span", "spanevent", "profile", "profilesample"};

unsigned ottl_context_depth(enum ottl_context context)
{
    static const unsigned char depths[OTTL_CONTEXT_COUNT] = {
        [OTTL_RESOURCE] = 0, [OTTL_SCOPE] = 1,      [OTTL_SPAN] = 2,
        [OTTL_PROFILE] = 2,  [OTTL_SPAN_EVENT] = 3, [OTTL_PROFILE_SAMPLE] = 3};
    assert(context < OTTL_CONTEXT_COUNT);
    return depths[context];
}

bool ottl_context_sees(enum ottl_context context, enum ottl_context other)
{
    static const enum ottl_context above[OTTL_CONTEXT_COUNT] = {
        [OTTL_RESOURCE] = OTTL_RESOURCE, [OTTL_SCOPE] = OTTL_RESOURCE,
        [OTTL_SPAN] = OTTL_SCOPE,        [OTTL_SPAN_EVENT] = OTTL_SPAN,
        [OTTL_PROFILE] = OTTL_SCOPE,     [OTTL_PROFILE_SAMPLE] = OTTL_PROFILE};
    assert(context < OTTL_CONTEXT_COUNT && other < OTTL_CONTEXT_COUNT);
    while (context != other && context != OTTL_RESOURCE)
        context = above[context];
    return context == other;
}

static enum ottl_level level_of(enum ottl_context context)
{
    return (enum ottl_level)(OTTL_LEVEL_RESOURCE + ottl_context_depth(context));
}

/* ---- nodes ---- */

/* Report an error at a position of the text. Return false, and NULL. */
#define REFUSE(compiler, position, ...)                                                            \
    ottl_error_at((compiler)->err, (compiler)->text, (position), __VA_ARGS__)
#define FAIL(compiler, position, ...)                                                              \
    (REFUSE(compiler, position, __VA_ARGS__) ? (void *)(compiler) : NULL)

static struct ottl_node *new_node(struct compiler *c, enum ottl_code code, uint32_t operands)
{
    struct ottl_node *node = arena_zalloc(&c->program->arena, sizeof *node);
    node->code = code;
    node->slot = OTTL_NO_SLOT;
    node->operand_count = operands;
    node->operands = arena_array(&c->program->arena, operands + 1, sizeof(struct ottl_node *));
    return node;
}

static struct ottl_node *constant(struct compiler *c, struct ottl_value value)
{
    struct ottl_node *node = new_node(c, OTTL_CONSTANT, 0);
    node->constant = value;
    return node;
}

static void depend_on(struct ottl_node *node, enum ottl_level level)
{
    node->level = level > node->level ? level : node->level;
}

static void depend_on_all(struct ottl_node *node)
{
    for (uint32_t i = 0; i < node->operand_count; i++)
        if (node->operands[i])
            depend_on(node, node->operands[i]->level);
    for (uint32_t i = 0; i < node->key_count; i++)
        depend_on(node, node->keys[i]->level);
}

/* Replaces what depends on no data by its value. What fails, fails when it is evaluated, because
 * the result may not be needed: `1/0 == 1 or true`. */
static struct ottl_node *fold(struct compiler *c, struct ottl_node *node)
{
    struct ottl_value value;
    struct error ignored;
    depend_on_all(node);
    if (node->level > OTTL_LEVEL_CONSTANT ||
        !ottl_node_fold(node, &c->program->arena, &value, &ignored))
        return node;
    return constant(c, value);
}

static bool compile_parts(struct compiler *c, const struct ottl_ast *ast, struct ottl_node *node)
{
    node->operators =
        arena_array(&c->program->arena, ast->part_count + 1, sizeof(enum ottl_operator));
    for (uint32_t i = 0; i < ast->part_count; i++) {
        node->operators[i] = ast->parts[i].operator;
        node->operands[i] = compile(c, ast->parts[i].value);
        if (!node->operands[i])
            return false;
    }
    return true;
}

static bool compile_keys(struct compiler *c, const struct ottl_keys *keys, struct ottl_node *node)
{
    node->key_count = keys->count;
    node->keys = arena_array(&c->program->arena, keys->count + 1, sizeof(struct ottl_node *));
    for (uint32_t i = 0; i < keys->count; i++)
        if (!(node->keys[i] = compile(c, keys->items[i])))
            return false;
    return true;
}

/* ---- paths ---- */

/* A path as it is written, without its keys, for messages. */
struct path_text {
    char all[200];
    char own[200]; /* without its context */
};

static void append_name(char *to, size_t size, struct slice name)
{
    size_t used = strlen(to);
    snprintf(to + used, size - used, "%s%.*s", used > 0 ? "." : "", SLICE_ARG(name));
}

static struct path_text text_of(const struct ottl_ast *path, uint32_t first)
{
    struct path_text text = {"", ""};
    for (uint32_t i = 0; i < path->segment_count; i++) {
        append_name(text.all, sizeof text.all, path->segments[i].name);
        if (i >= first)
            append_name(text.own, sizeof text.own, path->segments[i].name);
    }
    return text;
}

/* Returns the context that a word names, OTTL_CONTEXT_COUNT if none. */
static enum ottl_context context_named(struct slice name)
{
    if (slice_is(name, "instrumentation_scope"))
        return OTTL_SCOPE;
    enum ottl_context context = OTTL_RESOURCE;
    while (context < OTTL_CONTEXT_COUNT && !slice_is(name, ottl_context_names[context]))
        context++;
    return context;
}

/* The first segment is a context only if another one follows and it has no keys. */
static enum ottl_context context_of(const struct ottl_ast *path)
{
    if (path->segment_count < 2 || path->segments[0].keys.count > 0)
        return OTTL_CONTEXT_COUNT;
    return context_named(path->segments[0].name);
}

/* Whether the path may be a text without its quotes. What stands first is more probably a misspelt
 * path. */
static bool is_bare_word(const struct ottl_ast *path)
{
    return path->segment_count == 1 && path->segments[0].keys.count == 0 && path->position > 0 &&
           !slice_is(path->segments[0].name, "null");
}

/* Names the path with its context if it is one. */
static bool refuse_unprefixed(struct compiler *c, const struct ottl_ast *path, const char *text)
{
    enum ottl_context context = c->program->context;
    if (!ottl_path_find(context, slice_of_string(text)))
        return REFUSE(c, path->position, "missing context name for path \"%s\"%s", text,
                      is_bare_word(path) ? "; a text goes in quotes" : "");
    return REFUSE(c, path->position, "missing context name for path \"%s\"; write \"%s.%s\"", text,
                  ottl_context_names[context], text);
}

static bool find_context(struct compiler *c, const struct ottl_ast *path,
                         enum ottl_context *context_out, uint32_t *first_out)
{
    struct path_text text = text_of(path, 0);
    *context_out = context_of(path);
    *first_out = *context_out < OTTL_CONTEXT_COUNT;
    if (*first_out && ottl_context_sees(c->program->context, *context_out))
        return true;
    if (*first_out)
        return REFUSE(
            c, path->position,
            "context \"%s\" from path \"%s\" is not valid, it must be replaced by one of: "
            "\"%s\"",
            ottl_context_names[*context_out], text.all, ottl_context_names[c->program->context]);
    *context_out = c->program->context;
    if (path->segment_count > 1 && slice_is(path->segments[0].name, "otelcol"))
        return REFUSE(c, path->position, "path \"%s\": paths of otelcol are not supported here",
                      text.all);
    return c->prefix == OTTL_PREFIX_OPTIONAL || refuse_unprefixed(c, path, text.all);
}

static void *fail_unknown(struct compiler *c, const struct ottl_ast *path,
                          enum ottl_context context, uint32_t first)
{
    struct path_text text = text_of(path, first);
    const char *near = ottl_path_suggest(context, text.own);
    bool is_word = is_bare_word(path);
    return FAIL(c, path->segments[first].position,
                "segment \"%.*s\" from path \"%s\" is not a valid path nor a valid OTTL keyword "
                "for the %s context%s%s%s",
                SLICE_ARG(path->segments[first].name), text.all, ottl_context_names[context],
                near      ? "; did you mean \""
                : is_word ? "; a text goes in quotes: \""
                          : "",
                near      ? near
                : is_word ? text.all
                          : "",
                near      ? "\"?"
                : is_word ? "\""
                          : "");
}

static struct slice join(struct compiler *c, const struct ottl_ast *path, uint32_t first,
                         uint32_t end)
{
    struct text text = {0};
    for (uint32_t i = first; i < end; i++) {
        text_append(&text, i > first ? "." : "");
        text_append_slice(&text, path->segments[i].name);
    }
    struct slice name = arena_copy(&c->program->arena, slice_of(text_string(&text), text.size));
    text_deinit(&text);
    return name;
}

/* Finds the row of the whole path, or says which segment is too much. */
static const struct ottl_path_row *find_row(struct compiler *c, const struct ottl_ast *path,
                                            enum ottl_context context, uint32_t first)
{
    for (uint32_t end = path->segment_count; end > first; end--) {
        const struct ottl_path_row *row = ottl_path_find(context, join(c, path, first, end));
        if (row && end == path->segment_count)
            return row;
        if (row)
            return FAIL(c, path->segments[end].position,
                        "the path section \"%.*s\" was not used by the context - this likely "
                        "means you are using extra path sections",
                        SLICE_ARG(path->segments[end].name));
    }
    return fail_unknown(c, path, context, first);
}

static bool check_keys(struct compiler *c, const struct ottl_ast *path,
                       const struct ottl_path_row *row)
{
    uint32_t last = path->segment_count - 1;
    for (uint32_t i = 0; i <= last; i++)
        if (path->segments[i].keys.count > 0 && (i < last || row->indexing == OTTL_NOT_INDEXED))
            return REFUSE(c, path->segments[i].position,
                          "the keys indexing \"%.*s\" were not used by the context - this likely "
                          "means you are trying to index a path that does not support indexing",
                          SLICE_ARG(path->segments[i].name));
    if (row->indexing == OTTL_TRACE_STATE_INDEXED && path->segments[last].keys.count > 1)
        return REFUSE(c, path->segments[last].position,
                      "must provide exactly 1 key when accessing trace_state");
    return true;
}

/* Each item has one cache, that of its own context. */
static bool check_cache(struct compiler *c, const struct ottl_ast *path,
                        const struct ottl_path_row *row)
{
    const char *own = ottl_context_names[c->program->context];
    return !row->is_cache || row->context == c->program->context ||
           REFUSE(c, path->position,
                  "access to cache must be performed using the same context, please replace "
                  "\"%s.cache\" with \"%s.cache\"",
                  ottl_context_names[row->context], own);
}

static struct ottl_node *compile_path(struct compiler *c, const struct ottl_ast *path)
{
    enum ottl_context context;
    uint32_t first;
    if (!find_context(c, path, &context, &first))
        return NULL;
    struct ottl_node *node = new_node(c, OTTL_PATH, 0);
    node->path = find_row(c, path, context, first);
    if (!node->path || !check_keys(c, path, node->path) || !check_cache(c, path, node->path) ||
        !compile_keys(c, &path->segments[path->segment_count - 1].keys, node))
        return NULL;
    depend_on(node, level_of(context));
    depend_on_all(node);
    return node;
}

static struct ottl_node *compile_enum(struct compiler *c, const struct ottl_ast *ast)
{
    int64_t value;
    if (!ottl_context_sees(c->program->context, OTTL_SPAN))
        return FAIL(c, ast->position, "the context %s has no enum symbols, but got \"%.*s\"",
                    ottl_context_names[c->program->context], SLICE_ARG(ast->text));
    if (!ottl_enum_find(ast->text, &value))
        return FAIL(c, ast->position, "enum symbol \"%.*s\" not found", SLICE_ARG(ast->text));
    return constant(c, ottl_int(value));
}

/* ---- calls ---- */

static uint32_t count_parameters(const struct ottl_function *function)
{
    uint32_t count = 0;
    while (function->parameters[count].kind != OTTL_PARAMETER_NONE)
        count++;
    return count;
}

static void *fail_argument(struct compiler *c, const struct ottl_ast *call, uint32_t index,
                           const char *why)
{
    return FAIL(c, call->parts[index].value->position,
                "error while parsing arguments for call to \"%.*s\": invalid argument at position "
                "%u: %s",
                SLICE_ARG(call->text), index, why);
}

static void *fail_function(struct compiler *c, const struct ottl_ast *call, const char *near)
{
    return FAIL(c, call->position, "undefined function \"%.*s\"%s%s%s", SLICE_ARG(call->text),
                near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

/* Whether only another context has the function. */
static bool is_elsewhere(const struct compiler *c, const struct ottl_function *function)
{
    return (function->is_of_spans && c->program->context != OTTL_SPAN) ||
           (function->searches_stacks && c->program->context != OTTL_PROFILE_SAMPLE);
}

static const struct ottl_function *find_function(struct compiler *c, const struct ottl_ast *call,
                                                 bool is_editor)
{
    char name[64];
    const struct ottl_function *function =
        is_editor ? ottl_editor_find(call->text) : ottl_function_find(call->text);
    snprintf(name, sizeof name, "%.*s", SLICE_ARG(call->text));
    if (function && is_elsewhere(c, function))
        return FAIL(c, call->position, "the context %s has no function \"%s\"",
                    ottl_context_names[c->program->context], name);
    if (function)
        return function;
    if (!is_editor && ottl_function_is_missing(call->text))
        return FAIL(c, call->position, "the function %s is not supported yet", name);
    return fail_function(c, call,
                         is_editor ? ottl_editor_suggest(name) : ottl_function_suggest(name));
}

/* A list that is written as such, so that the function can evaluate its items one by one. */
static struct ottl_node *compile_list_argument(struct compiler *c, const struct ottl_ast *call,
                                               uint32_t index)
{
    const struct ottl_ast *list = call->parts[index].value;
    if (list->kind != OTTL_AST_LIST)
        return fail_argument(c, call, index, "must be a list, as [a, b]");
    struct ottl_node *node = new_node(c, OTTL_MAKE_LIST, list->part_count);
    if (!compile_parts(c, list, node))
        return NULL;
    depend_on_all(node);
    return node;
}

/* A constant item of another type would fail each time. */
static struct ottl_node *compile_strings(struct compiler *c, const struct ottl_ast *call,
                                         uint32_t index, bool are_literal)
{
    struct ottl_node *list = compile_list_argument(c, call, index);
    for (uint32_t i = 0; list && i < list->operand_count; i++) {
        const struct ottl_node *item = list->operands[i];
        bool is_string = item->code == OTTL_CONSTANT && item->constant.kind == OTTL_STRING;
        char why[80];
        if (is_string || (item->code != OTTL_CONSTANT && !are_literal))
            continue;
        snprintf(why, sizeof why, "error while parsing list argument at index %u: must be a string",
                 i);
        return fail_argument(c, call, index, why);
    }
    return list;
}

static struct ottl_node *compile_literal(struct compiler *c, const struct ottl_ast *call,
                                         uint32_t index, enum ottl_ast_kind kind, const char *why)
{
    const struct ottl_ast *ast = call->parts[index].value;
    return ast->kind == kind ? compile(c, ast) : fail_argument(c, call, index, why);
}

static bool is_pattern(enum ottl_parameter_kind kind)
{
    return kind == OTTL_PARAMETER_PATTERN || kind == OTTL_PARAMETER_CAPTURES ||
           kind == OTTL_PARAMETER_GLOB;
}

/* The zone of an empty name is UTC. */
static struct ottl_node *compile_zone(struct compiler *c, const struct ottl_ast *call,
                                      uint32_t index, struct ottl_node *node)
{
    struct error why;
    struct ottl_node *name = compile_literal(c, call, index, OTTL_AST_STRING, "must be a string");
    if (!name || name->constant.bytes.size == 0 || slice_is(name->constant.bytes, "Local"))
        return name;
    node->zone = time_zone_load(name->constant.bytes, &c->program->arena, &why);
    return node->zone ? name : fail_argument(c, call, index, why.text);
}

static bool is_list(enum ottl_parameter_kind kind)
{
    return kind == OTTL_PARAMETER_LIST || kind == OTTL_PARAMETER_STRINGS ||
           kind == OTTL_PARAMETER_LITERAL_STRINGS;
}

static struct ottl_regex *new_regex(struct slice pattern, enum ottl_parameter_kind kind,
                                    struct error *err)
{
    struct text translated = {0};
    if (kind == OTTL_PARAMETER_PATTERN)
        return ottl_regex_new(pattern, err);
    if (kind == OTTL_PARAMETER_CAPTURES)
        return ottl_regex_new_capturing(pattern, err);
    struct ottl_regex *regex = NULL;
    if (ottl_glob_translate(pattern, &translated, err))
        regex = ottl_regex_new(slice_of(text_string(&translated), translated.size), err);
    text_deinit(&translated);
    return regex;
}

static bool compile_pattern(struct compiler *c, const struct ottl_ast *call, uint32_t index,
                            enum ottl_parameter_kind kind, struct ottl_node *node)
{
    const struct ottl_ast *pattern = call->parts[index].value;
    struct ottl_program *program = c->program;
    struct error why;
    struct ottl_node *text = compile(c, pattern);
    if (!text)
        return false;
    if (text->code != OTTL_CONSTANT || text->constant.kind != OTTL_STRING)
        return fail_argument(c, call, index, "a pattern must be a literal string") != NULL;
    node->regex = new_regex(text->constant.bytes, kind, &why);
    if (!node->regex)
        return REFUSE(
            c, pattern->position,
            "couldn't create function: the regex pattern supplied to %.*s '%.*s' is not a "
            "valid pattern: %.500s",
            SLICE_ARG(call->text), (int)text_utf8_cut(text->constant.bytes, 200),
            (const char *)text->constant.bytes.data, why.text);
    program->regexes = arena_grow(&program->arena, program->regexes, program->regex_count,
                                  &program->regex_capacity, sizeof(struct ottl_regex *));
    program->regexes[program->regex_count++] = node->regex;
    return true;
}

/* A constant of another type would fail each time. */
static bool check_constant(struct compiler *c, const struct ottl_ast *call, uint32_t index,
                           const struct ottl_node *argument, enum ottl_kind kind, const char *name)
{
    char why[80];
    if (argument->code != OTTL_CONSTANT || argument->constant.kind == kind)
        return true;
    snprintf(why, sizeof why, "expected %s but got %s", name, ottl_type_name(&argument->constant));
    return fail_argument(c, call, index, why) != NULL;
}

/* A path that can be written. */
static struct ottl_node *compile_target(struct compiler *c, const struct ottl_ast *call,
                                        uint32_t index)
{
    const struct ottl_ast *path = call->parts[index].value;
    if (path->kind != OTTL_AST_PATH)
        return fail_argument(c, call, index, "must be a path");
    struct ottl_node *node = compile_path(c, path);
    bool has_keys = node && node->key_count > 0;
    if (node && !node->path->is_map &&
        (!node->path->write || (has_keys && node->path->indexing == OTTL_MAP_INDEXED)))
        return fail_argument(c, call, index, "this path can only be read");
    return node;
}

/* A function that is called on a text of the editor's own. */
static struct ottl_node *compile_function_argument(struct compiler *c, const struct ottl_ast *call,
                                                   uint32_t index)
{
    const struct ottl_ast *name = call->parts[index].value;
    if (name->kind != OTTL_AST_ENUM && name->kind != OTTL_AST_FUNCTION_NAME)
        return fail_argument(c, call, index, "must be the name of a function, as SHA256");
    const struct ottl_function *function = find_function(c, name, false);
    if (!function)
        return NULL;
    uint32_t count = count_parameters(function);
    for (uint32_t i = 0; i < count; i++)
        if (is_pattern(function->parameters[i].kind) ||
            function->parameters[i].is_optional != (i > 0))
            return fail_argument(c, call, index, "the function must take one argument");
    if (count == 0 || is_list(function->parameters[0].kind))
        return fail_argument(c, call, index, "the function must take one text");
    struct ottl_node *node = new_node(c, OTTL_CALL, count);
    node->function = function;
    node->operands[0] = new_node(c, OTTL_INPUT, 0);
    depend_on(node->operands[0], OTTL_LEVEL_LOWEST);
    depend_on_all(node);
    return node;
}

static struct ottl_node *compile_argument(struct compiler *c, const struct ottl_ast *call,
                                          uint32_t index, const struct ottl_parameter *parameter,
                                          struct ottl_node *of)
{
    switch (parameter->kind) {
    case OTTL_PARAMETER_ZONE:
        return compile_zone(c, call, index, of);
    case OTTL_PARAMETER_LIST:
        return compile_list_argument(c, call, index);
    case OTTL_PARAMETER_STRINGS:
    case OTTL_PARAMETER_LITERAL_STRINGS:
        return compile_strings(c, call, index, parameter->kind == OTTL_PARAMETER_LITERAL_STRINGS);
    case OTTL_PARAMETER_LITERAL_BOOL:
        return compile_literal(c, call, index, OTTL_AST_BOOL, "must be a bool");
    case OTTL_PARAMETER_LITERAL_STRING:
        return compile_literal(c, call, index, OTTL_AST_STRING, "must be a string");
    case OTTL_PARAMETER_LITERAL_INT:
        return compile_literal(c, call, index, OTTL_AST_INT, "must be an int");
    case OTTL_PARAMETER_PATH:
        return compile_target(c, call, index);
    case OTTL_PARAMETER_FUNCTION:
        return compile_function_argument(c, call, index);
    default:
        break;
    }
    struct ottl_node *node = compile(c, call->parts[index].value);
    if (!node)
        return NULL;
    bool ok = true;
    if (parameter->kind == OTTL_PARAMETER_STRING)
        ok = check_constant(c, call, index, node, OTTL_STRING, "string");
    else if (parameter->kind == OTTL_PARAMETER_INT)
        ok = check_constant(c, call, index, node, OTTL_INT, "int64");
    else if (parameter->kind == OTTL_PARAMETER_DURATION)
        ok = check_constant(c, call, index, node, OTTL_DURATION, "duration");
    else if (parameter->kind == OTTL_PARAMETER_TIME)
        ok = check_constant(c, call, index, node, OTTL_TIME, "time");
    else if (parameter->kind == OTTL_PARAMETER_MAP)
        ok = check_constant(c, call, index, node, OTTL_MAP, "pcommon.Map");
    return ok ? node : NULL;
}

/* Returns the parameter that argument `index` is for; UINT32_MAX after reporting an error. */
static uint32_t find_parameter(struct compiler *c, const struct ottl_ast *call, uint32_t index,
                               const struct ottl_function *function)
{
    struct slice name = call->parts[index].name;
    if (name.size == 0)
        return index;
    for (uint32_t i = 0; i < count_parameters(function); i++)
        if (slice_is(name, function->parameters[i].name))
            return i;
    REFUSE(c, call->parts[index].value->position,
           "error while parsing arguments for call to \"%s\": no such parameter: %.*s",
           function->name, SLICE_ARG(name));
    return UINT32_MAX;
}

static bool check_count(struct compiler *c, const struct ottl_ast *call,
                        const struct ottl_function *function)
{
    uint32_t count = count_parameters(function), required = 0;
    for (uint32_t i = 0; i < count; i++)
        required += !function->parameters[i].is_optional;
    if (call->part_count < required || call->part_count > count)
        return REFUSE(c, call->position,
                      "error while parsing arguments for call to \"%s\": incorrect number of "
                      "arguments. Expected: %u Received: %u",
                      function->name, count, call->part_count);
    for (uint32_t i = 1; i < call->part_count; i++)
        if (call->parts[i].name.size == 0 && call->parts[i - 1].name.size > 0)
            return REFUSE(c, call->parts[i].value->position,
                          "error while parsing arguments for call to \"%s\": unnamed argument used "
                          "after named argument",
                          function->name);
    return true;
}

static bool compile_arguments(struct compiler *c, const struct ottl_ast *call,
                              struct ottl_node *node)
{
    const struct ottl_function *function = node->function;
    for (uint32_t i = 0; i < call->part_count; i++) {
        uint32_t at = find_parameter(c, call, i, function);
        if (at == UINT32_MAX)
            return false;
        const struct ottl_parameter *parameter = &function->parameters[at];
        if (is_pattern(parameter->kind)) {
            if (!node->regex && !compile_pattern(c, call, i, parameter->kind, node))
                return false;
        } else if (!(node->operands[at] = compile_argument(c, call, i, parameter, node))) {
            return false;
        }
    }
    return true;
}

/* One argument may be given twice, and another one not at all. */
static bool check_given(struct compiler *c, const struct ottl_ast *call,
                        const struct ottl_node *node)
{
    const struct ottl_parameter *parameters = node->function->parameters;
    for (uint32_t i = 0; i < node->operand_count; i++) {
        bool is_given =
            is_pattern(parameters[i].kind) ? node->regex != NULL : node->operands[i] != NULL;
        if (!is_given && !parameters[i].is_optional)
            return REFUSE(c, call->position, "argument \"%s\" of %s is missing", parameters[i].name,
                          node->function->name);
    }
    return true;
}

static bool check_literal(struct compiler *c, const struct ottl_ast *call,
                          const struct ottl_node *node)
{
    struct ottl_value value;
    struct error why;
    if (!node->function->checks_literals || node->operands[0]->code != OTTL_CONSTANT ||
        ottl_node_fold(node, &c->program->arena, &value, &why))
        return true;
    return fail_argument(c, call, 0, why.text) != NULL;
}

static struct ottl_node *compile_unfolded(struct compiler *c, const struct ottl_ast *call,
                                          bool is_editor)
{
    struct error why;
    const struct ottl_function *function = find_function(c, call, is_editor);
    if (!function || !check_count(c, call, function))
        return NULL;
    struct ottl_node *node = new_node(c, OTTL_CALL, count_parameters(function));
    node->function = function;
    depend_on(node, function->level);
    if (function->searches_stacks)
        node->search = c->program->search_count++;
    if (!compile_arguments(c, call, node) || !check_given(c, call, node) ||
        !check_literal(c, call, node) || !compile_keys(c, &call->keys, node))
        return NULL;
    if (function->check && !function->check(node, &why))
        return FAIL(c, call->position, "couldn't create function: %s", why.text);
    return node;
}

static struct ottl_node *compile_call(struct compiler *c, const struct ottl_ast *call)
{
    struct ottl_node *node = compile_unfolded(c, call, false);
    return node ? fold(c, node) : NULL;
}

/* ---- operators ---- */

static struct ottl_node *compile_node(struct compiler *c, const struct ottl_ast *ast,
                                      enum ottl_code code)
{
    struct ottl_node *node = new_node(c, code, ast->part_count);
    return compile_parts(c, ast, node) ? fold(c, node) : NULL;
}

/* Of several items with the same key the last one counts. */
static struct ottl_node *compile_map(struct compiler *c, const struct ottl_ast *ast)
{
    struct ottl_node *node = new_node(c, OTTL_MAKE_MAP, ast->part_count);
    node->names = arena_array(&c->program->arena, ast->part_count + 1, sizeof(struct slice));
    if (!compile_parts(c, ast, node))
        return NULL;
    uint32_t count = 0;
    for (uint32_t i = 0; i < ast->part_count; i++) {
        uint32_t at = 0;
        while (at < count && !slice_equal(node->names[at], ast->parts[i].name))
            at++;
        node->names[at] = arena_copy(&c->program->arena, ast->parts[i].name);
        node->operands[at] = node->operands[i];
        count += at == count;
    }
    node->operand_count = count;
    return fold(c, node);
}

/* What is true or false: a comparison, a literal, or a function that may return something else. */
static struct ottl_node *compile_condition(struct compiler *c, const struct ottl_ast *ast)
{
    struct ottl_node *node = compile(c, ast);
    if (!node || ast->kind != OTTL_AST_CALL)
        return node;
    struct ottl_node *truth = new_node(c, OTTL_TRUTH, 1);
    truth->operands[0] = node;
    return fold(c, truth);
}

/* Whether there is nothing to compute. */
static bool is_literal(const struct ottl_ast *ast)
{
    if (ast->kind == OTTL_AST_CALL || ast->kind == OTTL_AST_MATH || ast->kind == OTTL_AST_PATH)
        return false;
    for (uint32_t i = 0; i < ast->part_count; i++)
        if (!is_literal(ast->parts[i].value))
            return false;
    return true;
}

/* Literals decide at start, and those that do not are left out. What is computed waits for the
 * operands before it, which may fail, as in the Collector. */
static struct ottl_node *compile_joined(struct compiler *c, const struct ottl_ast *ast, bool is_or)
{
    struct ottl_node *node = new_node(c, is_or ? OTTL_OR : OTTL_AND, ast->part_count);
    uint32_t count = 0;
    bool is_decided = false;
    for (uint32_t i = 0; i < ast->part_count; i++) {
        struct ottl_node *operand = compile_condition(c, ast->parts[i].value);
        if (!operand)
            return NULL;
        if (operand->code != OTTL_CONSTANT || !is_literal(ast->parts[i].value))
            node->operands[count++] = operand;
        else
            is_decided |= operand->constant.truth == is_or;
    }
    node->operand_count = count;
    if (is_decided || count == 0)
        return constant(c, ottl_bool(is_decided == is_or));
    if (count == 1)
        return node->operands[0];
    depend_on_all(node);
    return node;
}

static struct ottl_node *compile_not(struct compiler *c, const struct ottl_ast *ast)
{
    struct ottl_node *node = new_node(c, OTTL_NOT, 1);
    node->operands[0] = compile_condition(c, ast->parts[0].value);
    return node->operands[0] ? fold(c, node) : NULL;
}

static struct ottl_node *compile_literal_value(struct compiler *c, const struct ottl_ast *ast)
{
    struct ottl_value value = {.kind = OTTL_NIL};
    if (ast->kind == OTTL_AST_BOOL)
        value = ottl_bool(ast->truth);
    else if (ast->kind == OTTL_AST_INT)
        value = ottl_int(ast->integer);
    else if (ast->kind == OTTL_AST_FLOAT)
        value = ottl_float(ast->real);
    else if (ast->kind != OTTL_AST_NIL)
        value = ottl_string(arena_copy(&c->program->arena, ast->text));
    if (ast->kind == OTTL_AST_BYTES)
        value.kind = OTTL_BYTES;
    return constant(c, value);
}

/* The parser limits the depth. */
static struct ottl_node *compile(struct compiler *c, const struct ottl_ast *ast)
{
    switch (ast->kind) {
    case OTTL_AST_NIL:
    case OTTL_AST_BOOL:
    case OTTL_AST_INT:
    case OTTL_AST_FLOAT:
    case OTTL_AST_STRING:
    case OTTL_AST_BYTES:
        return compile_literal_value(c, ast);
    case OTTL_AST_ENUM:
        return compile_enum(c, ast);
    case OTTL_AST_PATH:
        return compile_path(c, ast);
    case OTTL_AST_CALL:
        return compile_call(c, ast);
    case OTTL_AST_MATH:
        return compile_node(c, ast, OTTL_MATH);
    case OTTL_AST_NEGATE:
        return compile_node(c, ast, OTTL_NEGATE);
    case OTTL_AST_LIST:
        return compile_node(c, ast, OTTL_MAKE_LIST);
    case OTTL_AST_MAP:
        return compile_map(c, ast);
    case OTTL_AST_COMPARISON:
        return compile_node(c, ast, OTTL_COMPARE);
    case OTTL_AST_AND:
    case OTTL_AST_OR:
        return compile_joined(c, ast, ast->kind == OTTL_AST_OR);
    case OTTL_AST_NOT:
        return compile_not(c, ast);
    case OTTL_AST_FUNCTION_NAME:
        break;
    }
    return FAIL(c, ast->position, "a value is needed here, but got the function name \"%.*s\"",
                SLICE_ARG(ast->text));
}

/* ---- programs ---- */

/* Gives a slot to each node that changes less often than the one above it. */
static void assign_slots(struct ottl_program *program, struct ottl_node *node,
                         enum ottl_level above)
{
    if (node->level > OTTL_LEVEL_CONSTANT && node->level < above)
        node->slot = program->slot_count++;
    for (uint32_t i = 0; i < node->operand_count; i++)
        if (node->operands[i])
            assign_slots(program, node->operands[i], node->level);
    for (uint32_t i = 0; i < node->key_count; i++)
        assign_slots(program, node->keys[i], node->level);
}

static bool check_editor(const struct ottl_statement *statement, struct slice text,
                         const char *editor, struct error *err)
{
    const struct ottl_ast *call = statement->editor;
    if (!slice_is(call->text, editor))
        return ottl_error_at(err, text, call->position,
                             "undefined function \"%.*s\"; the only one here is %s()",
                             SLICE_ARG(call->text), editor);
    return call->part_count == 0 ||
           ottl_error_at(err, text, call->parts[0].value->position,
                         "error while parsing arguments for call to \"%s\": incorrect number of "
                         "arguments. Expected: 0 Received: %u",
                         editor, call->part_count);
}

/* What a text is, and what its editor must be. */
enum form { FORM_CONDITION, FORM_WHERE, FORM_STATEMENT };

static bool compile_parsed(struct compiler *c, const struct ottl_statement *statement,
                           enum form form)
{
    struct ottl_program *program = c->program;
    program->root = statement->condition ? compile_condition(c, statement->condition)
                                         : constant(c, ottl_bool(true));
    if (!program->root)
        return false;
    if (form == FORM_STATEMENT && !(program->editor = compile_unfolded(c, statement->editor, true)))
        return false;
    /* A condition on resources or scopes may be asked for each item in them. */
    enum ottl_level level = level_of(program->context);
    level = level < OTTL_LEVEL_ITEM ? OTTL_LEVEL_ITEM : level;
    assign_slots(program, program->root, level);
    for (uint32_t i = 0; program->editor && i < program->editor->operand_count; i++)
        if (program->editor->operands[i])
            assign_slots(program, program->editor->operands[i], level);
    return true;
}

static bool compile_program(struct compiler *c, enum form form, const char *editor)
{
    struct arena parsed;
    struct ottl_statement statement;
    arena_init(&parsed, NULL);
    bool ok = form == FORM_CONDITION
                  ? ottl_parse_condition(c->text, &parsed, &statement, c->err)
                  : ottl_parse_statement(c->text, &parsed, &statement, c->err) &&
                        (!editor || check_editor(&statement, c->text, editor, c->err));
    ok = ok && compile_parsed(c, &statement, form);
    arena_deinit(&parsed);
    return ok;
}

static struct ottl_program *new_program(enum ottl_context context, struct slice text,
                                        enum form form, const char *editor, enum ottl_prefix prefix,
                                        struct error *err)
{
    struct ottl_program *program = memory_zalloc(sizeof *program);
    struct compiler c = {.text = text, .prefix = prefix, .program = program, .err = err};
    arena_init(&program->arena, NULL);
    program->context = context;
    if (compile_program(&c, form, editor))
        return program;
    ottl_program_free(program);
    error_prefix(err, "unable to parse OTTL %s \"%.*s%s\"",
                 form == FORM_CONDITION ? "condition" : "statement", (int)text_utf8_cut(text, 300),
                 (const char *)text.data, text.size > 300 ? "..." : "");
    return NULL;
}

struct ottl_program *ottl_compile_statement(enum ottl_context context, struct slice text,
                                            enum ottl_prefix prefix, struct error *err)
{
    return new_program(context, text, FORM_STATEMENT, NULL, prefix, err);
}

struct ottl_program *ottl_compile_condition(enum ottl_context context, struct slice text,
                                            enum ottl_prefix prefix, struct error *err)
{
    return new_program(context, text, FORM_CONDITION, NULL, prefix, err);
}

struct ottl_program *ottl_compile_where(enum ottl_context context, struct slice text,
                                        const char *editor, enum ottl_prefix prefix,
                                        struct error *err)
{
    return new_program(context, text, FORM_WHERE, editor, prefix, err);
}

void ottl_program_free(struct ottl_program *program)
{
    if (!program)
        return;
    for (uint32_t i = 0; i < program->regex_count; i++)
        ottl_regex_free(program->regexes[i]);
    arena_deinit(&program->arena);
    free(program);
}

/* ---- the context of paths ---- */

static void infer(const struct ottl_ast *ast, enum ottl_context *lowest, bool *found)
{
    enum ottl_context context = ast->kind == OTTL_AST_PATH ? context_of(ast) : OTTL_CONTEXT_COUNT;
    if (context < OTTL_CONTEXT_COUNT) {
        *lowest =
            *found && ottl_context_depth(*lowest) > ottl_context_depth(context) ? *lowest : context;
        *found = true;
    }
    for (uint32_t i = 0; i < ast->part_count; i++)
        infer(ast->parts[i].value, lowest, found);
    for (uint32_t i = 0; i < ast->keys.count; i++)
        infer(ast->keys.items[i], lowest, found);
    for (uint32_t i = 0; i < ast->segment_count; i++)
        for (uint32_t k = 0; k < ast->segments[i].keys.count; k++)
            infer(ast->segments[i].keys.items[k], lowest, found);
}

bool ottl_infer_context(struct slice text, bool is_statement, enum ottl_context *out,
                        struct error *err)
{
    struct arena arena;
    struct ottl_statement statement;
    bool found = false;
    arena_init(&arena, NULL);
    bool ok = is_statement ? ottl_parse_statement(text, &arena, &statement, err)
                           : ottl_parse_condition(text, &arena, &statement, err);
    if (ok && statement.condition)
        infer(statement.condition, out, &found);
    if (ok && statement.editor)
        infer(statement.editor, out, &found);
    if (ok && !found)
        error_set(err, "unable to infer context from the paths: none begins with \"resource\", "
                       "\"scope\", \"span\", \"spanevent\", \"profile\" or \"profilesample\"");
    arena_deinit(&arena);
    return ok && found;
}
