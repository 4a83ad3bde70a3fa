#include "core/base/time_zone.h"
#include "core/ottl/ottl_compiler.h"
#include "core/ottl/ottl_functions.h"
#include "core/ottl/ottl_node_kinds.h"
#include "core/ottl/ottl_path.h"
#include "core/ottl/ottl_replace.h"
#include "core/ottl/ottl_setters.h"
#include "core/ottl/ottl_syntax_hints.h"
#include "core/ottl/ottl_warnings.h"

#include <ctype.h>
#include <stdio.h>

static uint32_t count_parameters(const struct ottl_function *function)
{
    uint32_t count = 0;
    while (function->parameters[count].kind != OTTL_PARAMETER_NONE)
        count++;
    return count;
}

static void *fail_argument(struct ottl_compiler *c, const struct ottl_ast *call, uint32_t index,
                           const char *why)
{
    return FAIL(c, call->parts[index].value->position, "argument %u of %.*s: %s", index + 1,
                SLICE_ARG(call->text), why);
}

static void *fail_function(struct ottl_compiler *c, const struct ottl_ast *call, bool is_editor)
{
    struct text hint = {0};
    if (is_editor)
        ottl_hint_editor(call->text, &hint);
    else
        ottl_hint_call(call->text, &hint);
    REFUSE(c, call->position, "undefined function \"%.*s\"%s", SLICE_ARG(call->text),
           text_string(&hint));
    text_deinit(&hint);
    return NULL;
}

/* Whether only another context has the function. */
static bool is_elsewhere(const struct ottl_compiler *c, const struct ottl_function *function)
{
    return (function->is_of_spans && c->program->context != OTTL_SPAN) ||
           (function->searches_stacks && c->program->context != OTTL_PROFILE_SAMPLE);
}

static const struct ottl_function *find_function(struct ottl_compiler *c,
                                                 const struct ottl_ast *call, bool is_editor)
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
    return fail_function(c, call, is_editor);
}

static const char not_a_list[] = "must be a list, as [a, b]";

/* A list that is written as such, so that the function can evaluate its items one by one. */
static struct ottl_node *compile_written_list(struct ottl_compiler *c, const struct ottl_ast *call,
                                              uint32_t index)
{
    const struct ottl_ast *list = call->parts[index].value;
    if (list->kind != OTTL_AST_LIST)
        return fail_argument(c, call, index, not_a_list);
    struct ottl_node *node = ottl_compiler_node(c, OTTL_MAKE_LIST, list->part_count);
    if (!ottl_compiler_parts(c, list, node))
        return NULL;
    ottl_compiler_depend_on_all(node);
    return node;
}

/* What is read or computed may be a list each time; what cannot be one is refused. */
static struct ottl_node *compile_list_argument(struct ottl_compiler *c, const struct ottl_ast *call,
                                               uint32_t index)
{
    const struct ottl_ast *ast = call->parts[index].value;
    if (ast->kind == OTTL_AST_LIST)
        return compile_written_list(c, call, index);
    struct ottl_node *node = ottl_compiler_value(c, ast);
    if (!node)
        return NULL;
    int kind = ottl_node_kind(node);
    return kind == OTTL_LIST || kind == OTTL_KIND_UNKNOWN
               ? node
               : fail_argument(c, call, index, not_a_list);
}

static void name_constants(struct ottl_compiler *c, struct ottl_node *list)
{
    list->names = arena_array(&c->program->arena, list->operand_count + 1, sizeof *list->names);
    for (uint32_t i = 0; i < list->operand_count; i++)
        list->names[i] = list->operands[i]->constant.bytes;
}

/* A literal item of another kind is refused. What is computed, or read, fails each time, as in the
 * Collector. */
static struct ottl_node *compile_strings(struct ottl_compiler *c, const struct ottl_ast *call,
                                         uint32_t index, bool are_literal)
{
    if (!are_literal && call->parts[index].value->kind != OTTL_AST_LIST)
        return compile_list_argument(c, call, index);
    struct ottl_node *list = compile_written_list(c, call, index);
    uint32_t constants = 0;
    for (uint32_t i = 0; list && i < list->operand_count; i++) {
        const struct ottl_node *item = list->operands[i];
        bool is_string = item->code == OTTL_CONSTANT && item->constant.kind == OTTL_STRING;
        char why[80];
        const struct ottl_ast *written = call->parts[index].value->parts[i].value;
        constants += is_string;
        if (is_string)
            continue;
        if (!are_literal && !ottl_node_is_literal(item)) {
            ottl_warn_item(c, written, item);
            continue;
        }
        snprintf(why, sizeof why, "error while parsing list argument at index %u: must be a string",
                 i);
        return fail_argument(c, call, index, why);
    }
    if (list && constants == list->operand_count)
        name_constants(c, list);
    return list;
}

static struct ottl_node *compile_literal(struct ottl_compiler *c, const struct ottl_ast *call,
                                         uint32_t index, enum ottl_ast_kind kind, const char *why)
{
    const struct ottl_ast *ast = call->parts[index].value;
    return ast->kind == kind ? ottl_compiler_value(c, ast) : fail_argument(c, call, index, why);
}

static bool is_pattern(enum ottl_parameter_kind kind)
{
    return kind == OTTL_PARAMETER_PATTERN || kind == OTTL_PARAMETER_CAPTURES ||
           kind == OTTL_PARAMETER_GLOB;
}

/* The zone of an empty name is UTC. */
static struct ottl_node *compile_zone(struct ottl_compiler *c, const struct ottl_ast *call,
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

static bool compile_pattern(struct ottl_compiler *c, const struct ottl_ast *call, uint32_t index,
                            enum ottl_parameter_kind kind, struct ottl_node *node)
{
    const struct ottl_ast *pattern = call->parts[index].value;
    struct ottl_program *program = c->program;
    struct error why;
    struct ottl_node *text = ottl_compiler_value(c, pattern);
    if (!text)
        return false;
    if (text->code != OTTL_CONSTANT || text->constant.kind != OTTL_STRING)
        return fail_argument(c, call, index, "a pattern must be a literal string") != NULL;
    node->regex = new_regex(text->constant.bytes, kind, &why);
    if (!node->regex)
        return REFUSE(c, pattern->position, "the pattern of %.*s is not valid: %s",
                      SLICE_ARG(call->text), why.text);
    program->regexes = arena_grow(&program->arena, program->regexes, program->regex_count,
                                  &program->regex_capacity, sizeof(struct ottl_regex *));
    program->regexes[program->regex_count++] = node->regex;
    return true;
}

/* A literal of another kind is refused. What is computed, or read, fails each time, as in the
 * Collector. */
static bool check_kind(struct ottl_compiler *c, const struct ottl_ast *call, uint32_t index,
                       const struct ottl_node *argument, enum ottl_kind kind, const char *name)
{
    char why[80];
    if (argument->code == OTTL_CONSTANT && argument->constant.kind == kind)
        return true;
    if (!ottl_node_is_literal(argument)) {
        ottl_warn_argument(c, call, index, argument, kind);
        return true;
    }
    snprintf(why, sizeof why, "expected %s but got %s", name, ottl_type_name(&argument->constant));
    return fail_argument(c, call, index, why) != NULL;
}

static bool is_writable(const struct ottl_node *node)
{
    const struct ottl_path_row *row = node->path;
    if (row->is_map || !row->write)
        return row->is_map;
    return node->key_count == 0 || row->indexing == OTTL_TRACE_STATE_INDEXED ||
           (row->has_items && node->key_count == 1);
}

/* A path that can be written. */
static struct ottl_node *compile_target(struct ottl_compiler *c, const struct ottl_ast *call,
                                        uint32_t index)
{
    const struct ottl_ast *path = call->parts[index].value;
    if (path->kind != OTTL_AST_PATH)
        return fail_argument(c, call, index, "must be a path");
    struct ottl_node *node = ottl_compiler_path(c, path);
    if (node && !is_writable(node))
        return fail_argument(c, call, index, "this path can only be read");
    if (node && node->path->write == ottl_set_never)
        ottl_warn_text(c, path->position, "this path cannot be set");
    return node;
}

/* A call of a function that fails each time. The Collector starts with it, too. */
static struct ottl_node *compile_failure(struct ottl_compiler *c, const struct ottl_ast *name,
                                         const char *why)
{
    struct ottl_node *node = ottl_compiler_node(c, OTTL_FAILURE, 0);
    node->constant = ottl_string(slice_of_string(arena_strdup(&c->program->arena, why)));
    ottl_compiler_depend(node, OTTL_LEVEL_LOWEST);
    ottl_warn_text(c, name->position, "%.*s cannot be called on a text alone: %s",
                   SLICE_ARG(name->text), why);
    return node;
}

/* Returns what a function needs besides one text; NULL: nothing. */
static const char *find_more_needed(const struct ottl_function *function)
{
    uint32_t count = count_parameters(function);
    for (uint32_t i = 0; i < count; i++)
        if (is_pattern(function->parameters[i].kind) ||
            function->parameters[i].is_optional != (i > 0))
            return "it takes other arguments";
    return count == 0                              ? "it takes no argument"
           : is_list(function->parameters[0].kind) ? "it takes a list"
                                                   : NULL;
}

/* A function that is called on a text of the editor's own. */
static struct ottl_node *compile_function_argument(struct ottl_compiler *c,
                                                   const struct ottl_ast *call, uint32_t index)
{
    const struct ottl_ast *name = call->parts[index].value;
    if (name->kind != OTTL_AST_ENUM && name->kind != OTTL_AST_FUNCTION_NAME)
        return fail_argument(c, call, index, "must be the name of a function, as SHA256");
    const struct ottl_function *function = find_function(c, name, false);
    if (!function)
        return NULL;
    const char *more = find_more_needed(function);
    if (more)
        return compile_failure(c, name, more);
    struct ottl_node *node = ottl_compiler_node(c, OTTL_CALL, count_parameters(function));
    node->function = function;
    node->operands[0] = ottl_compiler_node(c, OTTL_INPUT, 0);
    ottl_compiler_depend(node->operands[0], OTTL_LEVEL_LOWEST);
    ottl_compiler_depend_on_all(node);
    ottl_warn_result(c, name, node);
    return node;
}

static struct ottl_node *compile_argument(struct ottl_compiler *c, const struct ottl_ast *call,
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
    case OTTL_PARAMETER_LAMBDA_0:
        return ottl_compiler_lambda(c, call->parts[index].value, 0);
    case OTTL_PARAMETER_LAMBDA_2:
        return ottl_compiler_lambda(c, call->parts[index].value, 2);
    case OTTL_PARAMETER_LAMBDA_3:
        return ottl_compiler_lambda(c, call->parts[index].value, 3);
    default:
        break;
    }
    struct ottl_node *node = ottl_compiler_value(c, call->parts[index].value);
    if (!node)
        return NULL;
    bool ok = true;
    if (parameter->kind == OTTL_PARAMETER_STRING)
        ok = check_kind(c, call, index, node, OTTL_STRING, "string");
    else if (parameter->kind == OTTL_PARAMETER_INT)
        ok = check_kind(c, call, index, node, OTTL_INT, "int64");
    else if (parameter->kind == OTTL_PARAMETER_DURATION)
        ok = check_kind(c, call, index, node, OTTL_DURATION, "duration");
    else if (parameter->kind == OTTL_PARAMETER_TIME)
        ok = check_kind(c, call, index, node, OTTL_TIME, "time");
    else if (parameter->kind == OTTL_PARAMETER_MAP)
        ok = check_kind(c, call, index, node, OTTL_MAP, "pcommon.Map");
    return ok ? node : NULL;
}

/* The Collector has the names of its fields, as sourceIP or source_i_p. */
static bool is_named(struct slice name, const char *parameter)
{
    size_t i = 0;
    for (; *parameter; parameter++) {
        if (*parameter == '_')
            continue;
        while (i < name.size && name.data[i] == '_')
            i++;
        if (i == name.size || tolower(name.data[i++]) != *parameter)
            return false;
    }
    return i == name.size;
}

/* Returns the parameter that argument `index` is for; UINT32_MAX after reporting an error. */
static uint32_t find_parameter(struct ottl_compiler *c, const struct ottl_ast *call, uint32_t index,
                               const struct ottl_function *function)
{
    struct slice name = call->parts[index].name;
    if (name.size == 0)
        return index;
    for (uint32_t i = 0; i < count_parameters(function); i++)
        if (is_named(name, function->parameters[i].name))
            return i;
    REFUSE(c, call->parts[index].value->position, "%s has no parameter %.*s", function->name,
           SLICE_ARG(name));
    return UINT32_MAX;
}

static bool refuse_count(struct ottl_compiler *c, const struct ottl_ast *call,
                         const struct ottl_function *function)
{
    const struct ottl_parameter *parameter = function->parameters;
    struct text names = {0};
    for (; parameter->kind != OTTL_PARAMETER_NONE; parameter++)
        text_printf(&names, "%s%s%s%s", parameter > function->parameters ? ", " : "",
                    parameter->is_optional ? "[" : "", parameter->name,
                    parameter->is_optional ? "]" : "");
    REFUSE(c, call->position, "incorrect number of arguments, %u; write %s(%s)", call->part_count,
           function->name, text_string(&names));
    text_deinit(&names);
    return false;
}

static bool check_count(struct ottl_compiler *c, const struct ottl_ast *call,
                        const struct ottl_function *function)
{
    uint32_t count = count_parameters(function), required = 0;
    if (count == 0 && call->part_count > 0)
        ottl_warn_text(c, call->parts[0].value->position,
                       "%s takes no arguments, so this is ignored", function->name);
    if (count == 0)
        return true;
    for (uint32_t i = 0; i < count; i++)
        required += !function->parameters[i].is_optional;
    if (call->part_count < required || call->part_count > count)
        return refuse_count(c, call, function);
    for (uint32_t i = 1; i < call->part_count; i++)
        if (call->parts[i].name.size == 0 && call->parts[i - 1].name.size > 0)
            return REFUSE(c, call->parts[i].value->position,
                          "%s: unnamed argument used after named argument", function->name);
    return true;
}

static bool compile_arguments(struct ottl_compiler *c, const struct ottl_ast *call,
                              struct ottl_node *node)
{
    const struct ottl_function *function = node->function;
    for (uint32_t i = 0; i < call->part_count && node->operand_count > 0; i++) {
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
static bool check_given(struct ottl_compiler *c, const struct ottl_ast *call,
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

static bool check_literal(struct ottl_compiler *c, const struct ottl_ast *call,
                          const struct ottl_node *node)
{
    struct ottl_value value;
    struct error why;
    if (!node->function->checks_literals || !ottl_node_is_literal(node->operands[0]) ||
        ottl_node_fold(node, &c->program->arena, &value, &why))
        return true;
    return fail_argument(c, call, 0, why.text) != NULL;
}

struct ottl_node *ottl_compiler_call_unfolded(struct ottl_compiler *c, const struct ottl_ast *call,
                                              bool is_editor)
{
    struct error why;
    const struct ottl_function *function = find_function(c, call, is_editor);
    if (!function || !check_count(c, call, function))
        return NULL;
    struct ottl_node *node = ottl_compiler_node(c, OTTL_CALL, count_parameters(function));
    node->function = function;
    node->work = ottl_function_work(function);
    ottl_compiler_depend(node, function->level);
    if (function->searches_stacks)
        node->search = c->program->search_count++;
    if (!compile_arguments(c, call, node) || !check_given(c, call, node) ||
        !check_literal(c, call, node) || !ottl_compiler_keys(c, &call->keys, node))
        return NULL;
    if (function->check && !function->check(node, &why))
        return FAIL(c, call->position, "%s", why.text);
    if (function->doubt && !function->doubt(node, &why))
        ottl_warn_text(c, call->position, "%s", why.text);
    if (is_editor)
        ottl_warn_editor(c, call, node);
    return node;
}

struct ottl_node *ottl_compiler_call(struct ottl_compiler *c, const struct ottl_ast *call)
{
    uint32_t warnings = c->program->warning_count; /* one is enough */
    struct ottl_node *node = ottl_compiler_call_unfolded(c, call, false);
    node = node ? ottl_compiler_fold(c, node) : NULL;
    if (node && node->code != OTTL_CONSTANT && node->level == OTTL_LEVEL_CONSTANT &&
        c->program->warning_count == warnings)
        ottl_warn_failure(c, call->position, node);
    return node;
}
