#include "config/expand.h"

#include "config/suggest.h"
#include "config/yaml_tree.h"

#include <assert.h>
#include <ctype.h>

/* The value being expanded, its path, and the depth of the placeholders in it. */
struct expansion {
    struct config_check *check;
    const struct config_path *path;
    struct config_place place;
    size_t depth;
    bool quiet; /* report nothing, because the same text was expanded before */
};

/* The value of a placeholder. */
struct provided {
    const char *text;
    bool is_text; /* not read as YAML */
};

static bool fail(const struct expansion *at, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static bool fail(const struct expansion *at, const char *format, ...)
{
    if (at->quiet)
        return false;
    va_list args;
    va_start(args, format);
    config_message_at(at->check, true, at->place, config_path_text(at->check->arena, at->path),
                      format, args);
    va_end(args);
    return false;
}

static bool stop(const struct expansion *at, const char *text, int limit)
{
    at->check->stopped = true;
    return config_error_at(at->check, at->place, at->path, text, limit);
}

/* ---- providers ---- */

static bool is_name(const char *text)
{
    if (!isalpha((unsigned char)*text) && *text != '_')
        return false;
    while (isalnum((unsigned char)*text) || *text == '_')
        text++;
    return *text == '\0';
}

static bool provide_environment(const struct expansion *at, const char *argument,
                                struct provided *out)
{
    struct arena *arena = at->check->arena;
    const char *fallback = strstr(argument, ":-");
    size_t size = fallback ? (size_t)(fallback - argument) : strlen(argument);
    const char *name = arena_string(arena, slice_of(argument, size));
    if (!is_name(name))
        return fail(
            at,
            "the environment variable %s has an invalid name: it may have letters, digits and _, "
            "and does not start with a digit%s",
            config_quote(arena, name),
            strchr(name, ':') || strchr(name, '-') ? "; a default is written ${env:NAME:-default}"
            : isdigit((unsigned char)name[0])      ? "; for a $ in a text, write $$"
                                                   : "");
    out->text = at->check->inputs->environment(name);
    if (out->text)
        return true;
    if (fallback) {
        out->text = fallback + 2;
        out->is_text = *out->text == '\0';
        return true;
    }
    if (!at->quiet)
        config_warn_unset(at->check, at->place, at->path, name);
    out->text = "";
    return true;
}

static bool provide_file(const struct expansion *at, const char *argument, struct provided *out)
{
    struct error err;
    struct slice content;
    if (!at->check->inputs->read_file(at->check->arena, argument, CONFIG_MAX_SOURCE_BYTES, &content,
                                      &err))
        return fail(at, "%s", err.text);
    if (content.size && memchr(content.data, '\0', content.size))
        return fail(at, "the file %s contains a NUL byte",
                    config_quote(at->check->arena, argument));
    /* A newline at the end of a file is not meant to be part of a password. */
    while (content.size &&
           (content.data[content.size - 1] == '\n' || content.data[content.size - 1] == '\r'))
        content.size--;
    out->text = arena_string(at->check->arena, content);
    return true;
}

static bool provide_yaml(const struct expansion *at, const char *argument, struct provided *out)
{
    (void)at;
    out->text = argument;
    return true;
}

static const struct {
    const char *scheme;
    bool (*provide)(const struct expansion *at, const char *argument, struct provided *out);
} providers[] = {
    {"env", provide_environment},
    {"file", provide_file},
    {"yaml", provide_yaml},
};

/* The text after the scheme is not shown, because it may be a secret default. */
static bool fail_scheme(const struct expansion *at, const char *scheme, const char *argument)
{
    struct arena *arena = at->check->arena;
    if (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0)
        return fail(
            at,
            "scheme \"%s\" is not supported: profcol reads its configuration from files and the "
            "environment, not from the network",
            scheme);
    if (*argument == '-' && is_name(scheme))
        return fail(
            at,
            "scheme \"%s\" is not supported; a variable with a default is written ${env:%s:-...}",
            scheme, scheme);
    const char *const names[] = {"env", "file", "yaml"};
    const char *near = config_suggest(scheme, names, 3);
    return fail(at, "scheme %s is not supported%s%s%s", config_quote(arena, scheme),
                near ? ", did you mean \"" : "; the schemes are env, file and yaml",
                near ? near : "", near ? "\"?" : "");
}

/* Gets the value of a placeholder. uri: the text between the braces. */
static bool provide(const struct expansion *at, const char *uri, struct provided *out)
{
    struct arena *arena = at->check->arena;
    *out = (struct provided){.text = ""};
    if (strchr(uri, '$'))
        return fail(at, "the text between ${ and } contains unsupported characters ('$')");
    const char *colon = strchr(uri, ':');
    if (!colon)
        return provide_environment(at, uri, out);
    const char *scheme = arena_string(arena, slice_of(uri, (size_t)(colon - uri)));
    for (size_t i = 0; i < sizeof providers / sizeof providers[0]; i++)
        if (strcmp(scheme, providers[i].scheme) == 0)
            return providers[i].provide(at, colon + 1, out);
    return fail_scheme(at, scheme, colon + 1);
}

/* ---- finding placeholders in a text ---- */

struct placeholder {
    size_t start; /* of "${" */
    size_t end;   /* after "}" */
};

static bool is_escaped(const char *text, size_t dollar)
{
    size_t count = 0;
    while (count < dollar && text[dollar - 1 - count] == '$')
        count++;
    return count % 2 == 1;
}

/* Finds the innermost placeholder that ends first at or after *from. Moves *from past escaped
 * ones. */
static bool find_placeholder(const char *text, size_t *from, struct placeholder *out)
{
    for (const char *close; (close = strchr(text + *from, '}')); *from = out->end) {
        out->end = (size_t)(close - text) + 1;
        size_t open = out->end;
        while (open >= *from + 2 && !(text[open - 1] == '{' && text[open - 2] == '$'))
            open--;
        if (open < *from + 2)
            continue;
        out->start = open - 2;
        if (!is_escaped(text, out->start))
            return true;
    }
    return false;
}

/* Returns a copy in which `$$` is replaced by `$`. */
static const char *unescape(struct arena *arena, const char *text)
{
    char *out = arena_strdup(arena, text);
    char *to = out;
    for (const char *from = text; *from; from++) {
        *to++ = *from;
        if (from[0] == '$' && from[1] == '$')
            from++;
    }
    *to = '\0';
    assert(to <= out + strlen(text));
    return out;
}

/* ---- values ---- */

static void expand_node(const struct expansion *at, struct config_node **slot);

/* Returns a node for the unescaped text of a placeholder that is not read as YAML. */
static struct config_node *text_node(const struct expansion *at, const char *text)
{
    struct arena *arena = at->check->arena;
    return config_node_scalar(arena, at->place, unescape(arena, text), CONFIG_STYLE_JOINED);
}

static bool expand_text(const struct expansion *at, struct text *text,
                        struct config_node **whole_out);

/* Returns the expanded text of a placeholder that is a list or map in YAML, for fields of text. */
static const char *expand_verbatim(const struct expansion *at, const char *verbatim)
{
    struct expansion quiet = *at;
    quiet.quiet = true;
    struct text text = {0};
    struct config_node *whole = NULL;
    text_append(&text, verbatim);
    expand_text(&quiet, &text, &whole);
    verbatim = whole ? config_node_verbatim(whole) : unescape(at->check->arena, text_string(&text));
    text_deinit(&text);
    return verbatim;
}

/* Returns the node for a scalar that is a single placeholder, if its text is more than a string in
 * YAML; otherwise NULL. */
static struct config_node *typed_node(const struct expansion *at, const struct provided *provided)
{
    if (provided->is_text)
        return NULL;
    struct config_check *check = at->check;
    struct config_node *node =
        yaml_tree_read_value(check, at->place, slice_of_string(provided->text));
    if (!node)
        return NULL;
    bool scalar = node->kind == CONFIG_NODE_SCALAR;
    if (scalar && (node->style != CONFIG_STYLE_PLAIN || !config_text_is_typed(node->text)))
        return NULL;
    if (!at->quiet && (node->kind == CONFIG_NODE_LIST || node->kind == CONFIG_NODE_MAP)) {
        struct expansion deeper = *at;
        deeper.depth++;
        expand_node(&deeper, &node);
    }
    node->verbatim = expand_verbatim(at, provided->text);
    return node;
}

static bool charge(const struct expansion *at, size_t bytes)
{
    at->check->expanded_bytes += bytes;
    return at->check->expanded_bytes <= CONFIG_MAX_EXPANDED_BYTES ||
           stop(at, "placeholders expand to more than %d bytes", CONFIG_MAX_EXPANDED_BYTES);
}

static void splice(struct text *text, struct placeholder where, const char *inserted)
{
    struct text result = {0};
    assert(where.end <= text->size);
    text_append_slice(&result, slice_of(text->data, where.start));
    text_append(&result, inserted);
    text_append(&result, text_string(text) + where.end);
    text_deinit(text);
    *text = result;
}

/* Expands a text completely. *whole_out: set if the whole text became a typed value. */
static bool expand_text(const struct expansion *at, struct text *text,
                        struct config_node **whole_out)
{
    struct placeholder found;
    size_t from = 0;
    for (int passes = 0; find_placeholder(text_string(text), &from, &found); passes++) {
        if (passes == CONFIG_MAX_EXPANSIONS)
            return stop(at, "too many recursive expansions, more than %d", CONFIG_MAX_EXPANSIONS);
        assert(found.start + 3 <= found.end && found.end <= text->size); /* ${...} */
        struct slice uri = slice_of(text->data + found.start + 2, found.end - found.start - 3);
        struct provided provided;
        if (!provide(at, arena_string(at->check->arena, uri), &provided))
            return false;
        if (!charge(at, strlen(provided.text) + uri.size))
            return false;
        if (found.start == 0 && found.end == text->size && (*whole_out = typed_node(at, &provided)))
            return true;
        if (at->check->stopped)
            return false;
        splice(text, found, provided.text);
    }
    return true;
}

/* The Collector takes such a text as it is written, too. */
static void warn_unclosed(const struct expansion *at, const char *text)
{
    const char *last = NULL;
    for (const char *open = text; (open = strstr(open, "${")) != NULL; open += 2)
        last = open;
    if (!last || at->quiet || strchr(last, '}') || is_escaped(text, (size_t)(last - text)))
        return;
    config_warn_at(
        at->check, at->place, at->path,
        "\"${\" without a closing \"}\": the text is taken as it is written; write $${ if "
        "that is meant");
}

static struct config_node *expand_scalar(const struct expansion *at, struct config_node *node)
{
    if (!strstr(node->text, "${")) {
        if (strstr(node->text, "$$"))
            node->text = unescape(at->check->arena, node->text);
        return node;
    }
    warn_unclosed(at, node->text);
    struct text text = {0};
    text_append(&text, node->text);
    struct config_node *whole = NULL;
    bool good = expand_text(at, &text, &whole);
    if (!whole)
        whole = text_node(at, text_string(&text));
    whole->broken = !good;
    text_deinit(&text);
    return whole;
}

static void expand_items(const struct expansion *at, struct config_node *node)
{
    for (size_t i = 0; i < node->count && !at->check->stopped; i++) {
        const char *name = node->kind == CONFIG_NODE_MAP ? node->keys[i]->text : NULL;
        struct config_path path = {.parent = at->path, .name = name, .position = i};
        struct expansion inner = *at;
        inner.path = &path;
        inner.depth++;
        expand_node(&inner, &node->items[i]);
    }
}

static void expand_node(const struct expansion *at, struct config_node **slot)
{
    struct expansion here = *at;
    here.place = (*slot)->place;
    if (here.depth > CONFIG_MAX_DEPTH) {
        here.path = NULL; /* paths are not shown for inserted values */
        stop(&here, "nested more than %d levels deep", CONFIG_MAX_DEPTH);
    } else if ((*slot)->kind == CONFIG_NODE_SCALAR) {
        *slot = expand_scalar(&here, *slot);
    } else {
        expand_items(&here, *slot);
    }
}

struct config_node *config_expand(struct config_check *check, struct config_node *root)
{
    struct expansion at = {.check = check};
    expand_node(&at, &root);
    return root;
}
