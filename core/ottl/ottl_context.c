#include "core/ottl/ottl_compiler.h"
#include "core/ottl/ottl_functions.h"

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

/* Returns the context that a path or function belongs to; OTTL_CONTEXT_COUNT: any. */
static enum ottl_context context_of(const struct ottl_ast *ast)
{
    if (ast->kind == OTTL_AST_PATH)
        return ottl_compiler_context(ast);
    const struct ottl_function *function =
        ast->kind == OTTL_AST_CALL ? ottl_function_find(ast->text) : NULL;
    return function && function->searches_stacks ? OTTL_PROFILE_SAMPLE : OTTL_CONTEXT_COUNT;
}

static void infer(const struct ottl_ast *ast, enum ottl_context *lowest, bool *found)
{
    enum ottl_context context = context_of(ast);
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
