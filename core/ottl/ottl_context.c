#include "core/ottl/ottl_compiler.h"
#include "core/ottl/ottl_functions.h"
#include "core/ottl/ottl_path_hints.h"
#include "core/ottl/ottl_paths.h"
#include "core/ottl/ottl_syntax_hints.h"

#include <assert.h>

const char *const ottl_context_names[OTTL_CONTEXT_COUNT] = {
    "resource", "scope", "span", "spanevent", "profile", "profilesample"};

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

/* ---- the context of paths ---- */

struct inference {
    bool found;
    enum ottl_context lowest;
    const struct ottl_ast *lowest_at; /* the path or function that belongs to it */
    const struct ottl_ast *other;     /* the first path that names no context; NULL: none */
    const struct ottl_ast *unknown;   /* the first function that is not there; NULL: none */
    bool needs_spans;                 /* a function or symbol is there for spans only */
};

/* Returns the context that a path or function belongs to; OTTL_CONTEXT_COUNT: any. */
static enum ottl_context context_of(const struct ottl_ast *ast)
{
    if (ast->kind == OTTL_AST_PATH)
        return ottl_compiler_context(ast);
    const struct ottl_function *function =
        ast->kind == OTTL_AST_CALL ? ottl_function_find(ast->text) : NULL;
    return function && function->searches_stacks ? OTTL_PROFILE_SAMPLE : OTTL_CONTEXT_COUNT;
}

/* IsRootSpan, SPAN_KIND_SERVER */
static bool is_of_spans(const struct ottl_ast *ast)
{
    int64_t ignored;
    const struct ottl_function *function =
        ast->kind == OTTL_AST_CALL ? ottl_function_find(ast->text) : NULL;
    return ast->kind == OTTL_AST_ENUM ? ottl_enum_find(ast->text, &ignored)
                                      : function && function->is_of_spans;
}

static void take(struct inference *inference, const struct ottl_ast *ast)
{
    enum ottl_context context = context_of(ast);
    inference->needs_spans |= is_of_spans(ast);
    if (context == OTTL_CONTEXT_COUNT) {
        if (ast->kind == OTTL_AST_PATH && !inference->other)
            inference->other = ast;
        if (ast->kind == OTTL_AST_CALL && !inference->unknown && !ottl_function_find(ast->text) &&
            !ottl_editor_find(ast->text))
            inference->unknown = ast;
    } else if (!inference->found ||
               ottl_context_depth(inference->lowest) < ottl_context_depth(context)) {
        inference->found = true;
        inference->lowest = context;
        inference->lowest_at = ast;
    }
}

static void infer(struct inference *inference, const struct ottl_ast *ast)
{
    take(inference, ast);
    for (uint32_t i = 0; i < ast->part_count; i++)
        infer(inference, ast->parts[i].value);
    for (uint32_t i = 0; i < ast->keys.count; i++)
        infer(inference, ast->keys.items[i]);
    for (uint32_t i = 0; i < ast->segment_count; i++)
        for (uint32_t k = 0; k < ast->segments[i].keys.count; k++)
            infer(inference, ast->segments[i].keys.items[k]);
}

/* ---- what is wrong ---- */

static void append_contexts(struct text *out, unsigned contexts)
{
    const char *before = "";
    for (int i = 0; i < OTTL_CONTEXT_COUNT; i++)
        if (contexts & OTTL_BIT(i)) {
            text_printf(out, "%s%s", before, ottl_context_names[i]);
            before = ", ";
        }
}

static void append_path(struct text *out, const struct ottl_ast *path)
{
    for (uint32_t i = 0; i < path->segment_count; i++) {
        text_append(out, i > 0 ? "." : "");
        text_append_slice(out, path->segments[i].name);
    }
}

static uint32_t tell_nothing(const struct inference *inference, unsigned contexts, struct text *out)
{
    const struct ottl_ast *call = inference->unknown;
    text_append(out, "unable to infer context: ");
    if (inference->other) {
        text_append(out, "the path \"");
        append_path(out, inference->other);
        text_append(out, "\" does not begin with one of ");
        append_contexts(out, contexts);
        ottl_hint_path(inference->other, OTTL_CONTEXT_COUNT, contexts, OTTL_CONTEXT_COUNT, out);
        return inference->other->position;
    }
    if (call) {
        text_printf(out, "undefined function \"%.*s\"", SLICE_ARG(call->text));
        ottl_hint_call(call->text, out);
        return call->position;
    }
    text_append(out, "no path says what this is about; write a group with context, one of ");
    append_contexts(out, contexts);
    return 0;
}

static uint32_t tell_other(const struct inference *inference, unsigned contexts, struct text *out)
{
    bool is_path = inference->lowest_at->kind == OTTL_AST_PATH;
    text_printf(out, "context \"%s\" inferred from the %s \"",
                ottl_context_names[inference->lowest], is_path ? "path" : "function");
    append_path(out, inference->lowest_at);
    text_append_slice(out, is_path ? (struct slice){0} : inference->lowest_at->text);
    text_append(out, "\" is not a supported context here, which is one of ");
    append_contexts(out, contexts);
    return inference->lowest_at->position;
}

static enum ottl_inference judge(const struct inference *inference, struct slice text,
                                 unsigned contexts, struct error *err)
{
    if (inference->found && (contexts & OTTL_BIT(inference->lowest)))
        return OTTL_INFERRED;
    struct text why = {0};
    uint32_t position = inference->found ? tell_other(inference, contexts, &why)
                                         : tell_nothing(inference, contexts, &why);
    ottl_error_at(err, text, position, "%s", text_string(&why));
    text_deinit(&why);
    return inference->found ? OTTL_OTHER_CONTEXT : OTTL_NO_CONTEXT;
}

enum ottl_inference ottl_infer_context(struct slice text, bool is_statement, unsigned contexts,
                                       enum ottl_context *out, struct error *err)
{
    struct arena arena;
    struct ottl_statement statement;
    struct inference inference = {.found = false};
    enum ottl_inference result = OTTL_BAD_SYNTAX;
    arena_init(&arena, NULL);
    if (is_statement ? ottl_parse_statement(text, &arena, &statement, err)
                     : ottl_parse_condition(text, &arena, &statement, err)) {
        if (statement.editor)
            infer(&inference, statement.editor);
        if (statement.condition)
            infer(&inference, statement.condition);
        result = judge(&inference, text, contexts, err);
    }
    bool is_above = ottl_context_depth(inference.lowest) < ottl_context_depth(OTTL_SPAN);
    if (result == OTTL_INFERRED)
        *out = inference.needs_spans && is_above && (contexts & OTTL_BIT(OTTL_SPAN))
                   ? OTTL_SPAN
                   : inference.lowest;
    else
        ottl_error_quote(err, "unable to parse OTTL", is_statement ? "statement" : "condition",
                         text);
    arena_deinit(&arena);
    return result;
}
