#include "core/ottl/ottl_compiler.h"
#include "core/ottl/ottl_paths.h"

#include <assert.h>
#include <stdio.h>

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
enum ottl_context ottl_compiler_context(const struct ottl_ast *path)
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
static bool refuse_unprefixed(struct ottl_compiler *c, const struct ottl_ast *path,
                              const char *text)
{
    enum ottl_context context = c->program->context;
    if (!ottl_path_find(context, slice_of_string(text)))
        return REFUSE(c, path->position, "missing context name for path \"%s\"%s", text,
                      is_bare_word(path) ? "; a text goes in quotes" : "");
    return REFUSE(c, path->position, "missing context name for path \"%s\"; write \"%s.%s\"", text,
                  ottl_context_names[context], text);
}

static bool find_context(struct ottl_compiler *c, const struct ottl_ast *path,
                         enum ottl_context *context_out, uint32_t *first_out)
{
    struct path_text text = text_of(path, 0);
    *context_out = ottl_compiler_context(path);
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

static void *fail_unknown(struct ottl_compiler *c, const struct ottl_ast *path,
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
            return FAIL(c, path->segments[end].position,
                        "the path section \"%.*s\" was not used by the context - this likely "
                        "means you are using extra path sections",
                        SLICE_ARG(path->segments[end].name));
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
                          "the keys indexing \"%.*s\" were not used by the context - this likely "
                          "means you are trying to index a path that does not support indexing",
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
    c->program->reads_scope |= context == OTTL_SCOPE;
    ottl_compiler_depend(node, ottl_compiler_level(context));
    ottl_compiler_depend_on_all(node);
    return node;
}

struct ottl_node *ottl_compiler_enum(struct ottl_compiler *c, const struct ottl_ast *ast)
{
    int64_t value;
    if (!ottl_context_sees(c->program->context, OTTL_SPAN))
        return FAIL(c, ast->position, "the context %s has no enum symbols, but got \"%.*s\"",
                    ottl_context_names[c->program->context], SLICE_ARG(ast->text));
    if (!ottl_enum_find(ast->text, &value)) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", SLICE_ARG(ast->text));
        const char *near = ottl_enum_suggest(name);
        return FAIL(c, ast->position, "enum symbol \"%.*s\" not found%s%s%s", SLICE_ARG(ast->text),
                    near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    }
    return ottl_compiler_constant(c, ottl_int(value));
}
