#include "core/ottl/ottl_compiler.h"
#include "core/ottl/ottl_path_hints.h"
#include "core/ottl/ottl_paths.h"
#include "core/ottl/ottl_warnings.h"

#include <assert.h>

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
enum ottl_context ottl_compiler_context(const struct ottl_ast *path)
{
    if (path->segment_count < 2 || path->segments[0].keys.count > 0)
        return OTTL_CONTEXT_COUNT;
    return context_named(path->segments[0].name);
}

/* ---- messages ---- */

/* Appends a path as it is written, without its keys. */
static void append_path(struct text *out, const struct ottl_ast *path, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++) {
        text_append(out, i > first ? "." : "");
        text_append_slice(out, path->segments[i].name);
    }
}

/* Reports the text, and frees it. Returns false. */
static bool refuse_text(struct ottl_compiler *c, uint32_t position, struct text *why)
{
    REFUSE(c, position, "%s", text_string(why));
    text_deinit(why);
    return false;
}

/* Returns the contexts whose paths the program may have. */
static unsigned visible_contexts(const struct ottl_compiler *c)
{
    unsigned contexts = 0;
    for (int i = 0; i < OTTL_CONTEXT_COUNT; i++)
        if (ottl_context_sees(c->program->context, (enum ottl_context)i))
            contexts |= OTTL_BIT(i);
    return contexts;
}

static bool refuse_unprefixed(struct ottl_compiler *c, const struct ottl_ast *path)
{
    struct text why = {0};
    text_append(&why, "missing context name for path \"");
    append_path(&why, path, 0, path->segment_count);
    text_append(&why, "\"");
    ottl_hint_path(path, OTTL_CONTEXT_COUNT, visible_contexts(c), OTTL_CONTEXT_COUNT, &why);
    return refuse_text(c, path->position, &why);
}

/* The context is one that the program does not see. */
static bool refuse_context(struct ottl_compiler *c, const struct ottl_ast *path,
                           enum ottl_context context)
{
    const char *own = ottl_context_names[c->program->context];
    struct text why = {0};
    text_printf(&why, "context \"%s\" from path \"", ottl_context_names[context]);
    append_path(&why, path, 0, path->segment_count);
    text_printf(
        &why,
        "\" is not there: this is evaluated on the context %s, and sees only what contains it",
        own);
    if (ottl_context_sees(context, c->program->context))
        text_printf(&why, "; the context %s sees both", ottl_context_names[context]);
    return refuse_text(c, path->position, &why);
}

static bool find_context(struct ottl_compiler *c, const struct ottl_ast *path,
                         enum ottl_context *context_out, uint32_t *first_out)
{
    *context_out = ottl_compiler_context(path);
    *first_out = *context_out < OTTL_CONTEXT_COUNT;
    if (*first_out)
        return ottl_context_sees(c->program->context, *context_out) ||
               refuse_context(c, path, *context_out);
    *context_out = c->program->context;
    if (path->segment_count > 1 && slice_is(path->segments[0].name, "otelcol"))
        return REFUSE(c, path->position, "paths of otelcol are not supported here");
    return c->prefix == OTTL_PREFIX_OPTIONAL || refuse_unprefixed(c, path);
}

static void *fail_unknown(struct ottl_compiler *c, const struct ottl_ast *path,
                          enum ottl_context context, uint32_t first)
{
    struct text why = {0};
    text_printf(&why, "the context %s has no path \"", ottl_context_names[context]);
    append_path(&why, path, first, path->segment_count);
    text_append(&why, "\"");
    ottl_hint_path(path, first > 0 ? context : OTTL_CONTEXT_COUNT, visible_contexts(c),
                   c->program->context, &why);
    refuse_text(c, path->segments[first].position, &why);
    return NULL;
}

/* The path goes on after a row of the table. */
static void *fail_extra(struct ottl_compiler *c, const struct ottl_ast *path, uint32_t end,
                        const struct ottl_path_row *row)
{
    struct text why = {0};
    bool is_map = row->is_map && path->segments[end - 1].keys.count == 0;
    text_append(&why, "\"");
    append_path(&why, path, 0, end);
    text_append(&why, "\" has no part \"");
    append_path(&why, path, end, path->segment_count);
    text_append(&why, "\"");
    if (is_map) {
        text_append(&why, "; write ");
        append_path(&why, path, 0, end);
        text_append(&why, "[\"");
        append_path(&why, path, end, path->segment_count);
        text_append(&why, "\"]");
    } else if (row->is_map) {
        text_append(&why, "; what is in a map is written [\"key\"]");
    }
    refuse_text(c, path->segments[end].position, &why);
    return NULL;
}

static struct slice join(struct ottl_compiler *c, const struct ottl_ast *path, uint32_t first,
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
static const struct ottl_path_row *find_row(struct ottl_compiler *c, const struct ottl_ast *path,
                                            enum ottl_context context, uint32_t first)
{
    for (uint32_t end = path->segment_count; end > first; end--) {
        const struct ottl_path_row *row = ottl_path_find(context, join(c, path, first, end));
        if (row && end == path->segment_count)
            return row;
        if (row)
            return fail_extra(c, path, end, row);
    }
    return fail_unknown(c, path, context, first);
}

static bool check_keys(struct ottl_compiler *c, const struct ottl_ast *path,
                       const struct ottl_path_row *row)
{
    uint32_t last = path->segment_count - 1;
    for (uint32_t i = 0; i <= last; i++)
        if (path->segments[i].keys.count > 0 && (i < last || row->indexing == OTTL_NOT_INDEXED))
            return REFUSE(c, path->segments[i].position,
                          "\"%.*s\" is no map and no list, so it takes no [...]",
                          SLICE_ARG(path->segments[i].name));
    if (row->indexing == OTTL_TRACE_STATE_INDEXED && path->segments[last].keys.count > 1)
        return REFUSE(c, path->segments[last].position,
                      "must provide exactly 1 key when accessing trace_state");
    return true;
}

/* Each item has one cache, that of its own context. */
static bool check_cache(struct ottl_compiler *c, const struct ottl_ast *path,
                        const struct ottl_path_row *row)
{
    const char *own = ottl_context_names[c->program->context];
    return !row->is_cache || row->context == c->program->context ||
           REFUSE(c, path->position,
                  "access to cache must be performed using the same context, please replace "
                  "\"%s.cache\" with \"%s.cache\"",
                  ottl_context_names[row->context], own);
}

/* If a key is of the items, and the map that it is of around them, the map is an operand, which is
 * read once for all of them. */
static void keep_map(struct ottl_compiler *c, struct ottl_node *node, enum ottl_level level)
{
    if (node->level <= level)
        return;
    struct ottl_node *map = ottl_compiler_node(c, OTTL_PATH, 0);
    map->path = node->path;
    ottl_compiler_depend(map, level);
    node->operands = arena_array(&c->program->arena, 1, sizeof(struct ottl_node *));
    node->operands[node->operand_count++] = map;
}

struct ottl_node *ottl_compiler_path(struct ottl_compiler *c, const struct ottl_ast *path)
{
    enum ottl_context context;
    uint32_t first;
    struct ottl_node *local;
    if (ottl_compiler_local(c, path, &local))
        return local;
    if (!find_context(c, path, &context, &first))
        return NULL;
    struct ottl_node *node = ottl_compiler_node(c, OTTL_PATH, 0);
    node->path = find_row(c, path, context, first);
    if (!node->path || !check_keys(c, path, node->path) || !check_cache(c, path, node->path) ||
        !ottl_compiler_keys(c, &path->segments[path->segment_count - 1].keys, node))
        return NULL;
    ottl_warn_keys(c, path, node);
    c->program->reads_scope |= context == OTTL_SCOPE;
    ottl_compiler_depend(node, ottl_compiler_level(context));
    ottl_compiler_depend_on_all(node);
    keep_map(c, node, ottl_compiler_level(context));
    return node;
}

static void *fail_enum(struct ottl_compiler *c, const struct ottl_ast *ast)
{
    const char *literal = ottl_hint_literal(ast->text), *near = ottl_hint_enum(ast->text);
    if (literal)
        return FAIL(c, ast->position, "enum symbol \"%.*s\" not found; write %s",
                    SLICE_ARG(ast->text), literal);
    return FAIL(c, ast->position, "enum symbol \"%.*s\" not found%s%s%s", SLICE_ARG(ast->text),
                near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

struct ottl_node *ottl_compiler_enum(struct ottl_compiler *c, const struct ottl_ast *ast)
{
    int64_t value;
    if (!ottl_context_sees(c->program->context, OTTL_SPAN) && !ottl_hint_literal(ast->text))
        return FAIL(c, ast->position, "the context %s has no enum symbols, but got \"%.*s\"",
                    ottl_context_names[c->program->context], SLICE_ARG(ast->text));
    if (!ottl_enum_find(ast->text, &value))
        return fail_enum(c, ast);
    return ottl_compiler_constant(c, ottl_int(value));
}
