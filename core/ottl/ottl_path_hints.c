#include "core/ottl/ottl_path_hints.h"

#include "config/suggest.h"
#include "core/ottl/ottl_paths.h"

#include <assert.h>
#include <stdio.h>
#include <strings.h>

static bool is_word(struct slice word, const char *other)
{
    return word.size == strlen(other) &&
           strncasecmp((const char *)word.data, other, word.size) == 0;
}

static bool is_one_of(struct slice word, const char *const *words)
{
    while (*words && !is_word(word, *words))
        words++;
    return *words != NULL;
}

const char *ottl_hint_literal(struct slice word)
{
    static const char *const nils[] = {"nil", "null", "none", "undefined", NULL};
    if (is_one_of(word, nils))
        return "nil";
    return is_word(word, "true") ? "true" : is_word(word, "false") ? "false" : NULL;
}

const char *ottl_hint_enum(struct slice symbol)
{
    static const char *const begins[] = {"SPAN_KIND_", "STATUS_CODE_"};
    char written[64], name[96];
    int64_t ignored;
    snprintf(written, sizeof written, "%.*s", SLICE_ARG(symbol));
    const char *near = ottl_enum_suggest(written);
    const char *last = strrchr(written, '_'); /* of STATUS_ERROR: ERROR */
    for (size_t i = 0; i < sizeof begins / sizeof *begins && !near; i++) {
        snprintf(name, sizeof name, "%s%s", begins[i], last ? last + 1 : written);
        near = ottl_enum_find(slice_of_string(name), &ignored) ? ottl_enum_suggest(name) : NULL;
    }
    return near;
}

/* ---- a path that is not there ---- */

struct wish {
    const struct ottl_ast *path;
    unsigned contexts;
    enum ottl_context own;
    struct text *out;
    char name[200]; /* all segments, without keys */
};

/* Writes the segments from `first` on, without keys. */
static void join(const struct ottl_ast *path, uint32_t first, char *to, size_t size)
{
    size_t used = 0;
    to[0] = '\0';
    for (uint32_t i = first; i < path->segment_count && used < size; i++)
        used += (size_t)snprintf(to + used, size - used, "%s%.*s", i > first ? "." : "",
                                 SLICE_ARG(path->segments[i].name));
}

static bool has_keys(const struct ottl_ast *path)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < path->segment_count; i++)
        count += path->segments[i].keys.count;
    return count > 0;
}

static void append_path(const struct wish *wish, enum ottl_context context, const char *name)
{
    bool is_own = context == wish->own;
    text_printf(wish->out, "\"%s%s%s\"", is_own ? "" : ottl_context_names[context],
                is_own ? "" : ".", name);
}

static uint32_t count_segments(const char *name)
{
    uint32_t count = 1;
    for (; *name; name++)
        count += *name == '.';
    return count;
}

/* If the name has fewer words than the path, the first of those stood for the context. */
static bool suggest(const struct wish *wish, enum ottl_context context, const char *name)
{
    struct wish written = *wish;
    if (count_segments(name) < wish->path->segment_count)
        written.own = OTTL_CONTEXT_COUNT;
    text_append(wish->out, "; did you mean ");
    append_path(&written, context, name);
    text_append(wish->out, "?");
    return true;
}

/* The beginnings of names of attributes. */
static const char *const of_resources[] = {"service", "k8s",       "host",       "container",
                                           "process", "telemetry", "deployment", "cloud",
                                           "os",      "device",    NULL};
static const char *const of_items[] = {"http", "url",    "rpc",       "db",   "messaging", "net",
                                       "user", "server", "exception", "code", "thread",    NULL};

static bool begins_attribute(struct slice word)
{
    return is_one_of(word, of_resources) || is_one_of(word, of_items);
}

/* Returns the context that an attribute without one is probably of. */
static enum ottl_context attribute_context(const struct wish *wish)
{
    static const enum ottl_context items[] = {OTTL_SPAN, OTTL_PROFILE_SAMPLE};
    if ((wish->contexts & OTTL_BIT(OTTL_RESOURCE)) &&
        is_one_of(wish->path->segments[0].name, of_resources))
        return OTTL_RESOURCE;
    for (size_t i = 0; i < sizeof items / sizeof *items && wish->own == OTTL_CONTEXT_COUNT; i++)
        if (wish->contexts & OTTL_BIT(items[i]))
            return items[i];
    return wish->own < OTTL_CONTEXT_COUNT ? wish->own : OTTL_RESOURCE;
}

static bool hint_attribute(const struct wish *wish, enum ottl_context context, const char *name)
{
    bool is_own = context == wish->own;
    text_printf(wish->out, "; an attribute is written %s%sattributes[\"%s\"]",
                is_own ? "" : ottl_context_names[context], is_own ? "" : ".", name);
    return true;
}

/* Names that others, and the tables of spanjoin, have for what OTTL writes in another way. */
static bool hint_other_name(const struct wish *wish, enum ottl_context context, const char *name)
{
    static const struct {
        const char *name, *first, *second;
    } others[] = {{"duration", "end_time", "start_time"},
                  {"duration_ns", "end_time_unix_nano", "start_time_unix_nano"},
                  {"id", "span_id.string", NULL},
                  {"parent_id", "parent_span_id.string", NULL}};
    const char *prefix = context == wish->own ? "" : "span.";
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (strcmp(name, others[i].name) != 0 || !(wish->contexts & OTTL_BIT(OTTL_SPAN)))
            continue;
        if (others[i].second) /* in parentheses, because more may follow */
            text_printf(wish->out, "; write (%s%s - %s%s)", prefix, others[i].first, prefix,
                        others[i].second);
        else
            text_printf(wish->out, "; write %s%s", prefix, others[i].first);
        return true;
    }
    return false;
}

/* `span.resource.name`: the context contains another one. */
static bool hint_outer(const struct wish *wish)
{
    char rest[200];
    for (int context = 0; context < OTTL_CONTEXT_COUNT; context++) {
        if (wish->path->segment_count < 3 || !(wish->contexts & OTTL_BIT(context)) ||
            !slice_is(wish->path->segments[1].name, ottl_context_names[context]))
            continue;
        join(wish->path, 2, rest, sizeof rest);
        return suggest(wish, (enum ottl_context)context, rest);
    }
    return false;
}

/* `profilesample.function`, `profilesample.leaf`: one part is missing. */
static bool hint_part(const struct wish *wish, enum ottl_context context, const char *name)
{
    static const char *const before[] = {"leaf.", "stack.", "link.", "status.", "", NULL};
    char longer[220];
    for (size_t i = 0; before[i]; i++) {
        snprintf(longer, sizeof longer, "%s%s%s", before[i], name, before[i][0] ? "" : ".function");
        if (ottl_path_find(context, slice_of_string(longer)))
            return suggest(wish, context, longer);
    }
    return false;
}

/* `span.nme`: the context is known. */
static void hint_named(struct wish *wish, enum ottl_context context)
{
    char name[200];
    join(wish->path, 1, name, sizeof name);
    wish->own = OTTL_CONTEXT_COUNT;
    bool is_dotted = wish->path->segment_count > 2 && !has_keys(wish->path);
    const char *near = is_dotted && begins_attribute(wish->path->segments[1].name)
                           ? NULL
                           : ottl_path_suggest(context, name);
    if (near)
        suggest(wish, context, near);
    else if (!hint_outer(wish) && !hint_part(wish, context, name) &&
             !(context == OTTL_SPAN && hint_other_name(wish, context, name)) &&
             !has_keys(wish->path))
        hint_attribute(wish, context, name);
}

/* `resource["service.name"]`: a context is no map. */
static bool hint_context_alone(const struct wish *wish)
{
    const struct ottl_segment *first = &wish->path->segments[0];
    char key[100] = "key";
    for (int context = 0; context < OTTL_CONTEXT_COUNT; context++) {
        if (!slice_is(first->name, ottl_context_names[context]))
            continue;
        if (first->keys.count > 0 && first->keys.items[0]->kind == OTTL_AST_STRING)
            snprintf(key, sizeof key, "%.*s", SLICE_ARG(first->keys.items[0]->text));
        return hint_attribute(wish, (enum ottl_context)context, key);
    }
    return false;
}

/* The most probable first. */
static const enum ottl_context by_use[OTTL_CONTEXT_COUNT] = {
    OTTL_SPAN, OTTL_PROFILE_SAMPLE, OTTL_PROFILE, OTTL_RESOURCE, OTTL_SPAN_EVENT, OTTL_SCOPE};

/* `name`: contexts have it. */
static bool hint_prefix(const struct wish *wish)
{
    unsigned count = 0;
    for (int i = 0; i < OTTL_CONTEXT_COUNT; i++) {
        if (!(wish->contexts & OTTL_BIT(by_use[i])) ||
            !ottl_path_find(by_use[i], slice_of_string(wish->name)))
            continue;
        text_append(wish->out, count++ > 0 ? " or " : "; write ");
        append_path(wish, by_use[i], wish->name);
    }
    return count > 0;
}

enum ottl_context ottl_hint_context(struct slice word, unsigned contexts)
{
    static const struct {
        const char *word;
        enum ottl_context context;
    } others[] = {{"sample", OTTL_PROFILE_SAMPLE},
                  {"samples", OTTL_PROFILE_SAMPLE},
                  {"event", OTTL_SPAN_EVENT},
                  {"events", OTTL_SPAN_EVENT},
                  {"trace", OTTL_SPAN},
                  {"traces", OTTL_SPAN},
                  {"library", OTTL_SCOPE},
                  {"instrumentation_scope", OTTL_SCOPE},
                  {"instrumentation_library", OTTL_SCOPE}};
    const char *names[OTTL_CONTEXT_COUNT];
    char copy[64];
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (is_word(word, others[i].word) && (contexts & OTTL_BIT(others[i].context)))
            return others[i].context;
    for (int i = 0; i < OTTL_CONTEXT_COUNT; i++)
        names[i] = contexts & OTTL_BIT(i) ? ottl_context_names[i] : "";
    snprintf(copy, sizeof copy, "%.*s", SLICE_ARG(word));
    const char *near = config_suggest(copy, names, OTTL_CONTEXT_COUNT);
    int context = 0;
    while (context < OTTL_CONTEXT_COUNT && names[context] != near)
        context++;
    return (enum ottl_context)context;
}

/* `sample.attributes` */
static bool hint_context(const struct wish *wish)
{
    char rest[200];
    enum ottl_context context = ottl_hint_context(wish->path->segments[0].name, wish->contexts);
    if (wish->path->segment_count < 2 || context == OTTL_CONTEXT_COUNT)
        return false;
    join(wish->path, 1, rest, sizeof rest);
    return suggest(wish, context, rest);
}

/* `atributes`: a context has a path that is like it. */
static bool hint_near(const struct wish *wish)
{
    for (int i = 0; i < OTTL_CONTEXT_COUNT; i++) {
        const char *near =
            wish->contexts & OTTL_BIT(by_use[i]) ? ottl_path_suggest(by_use[i], wish->name) : NULL;
        if (near)
            return suggest(wish, by_use[i], near);
    }
    return false;
}

/* A text without its quotes. What stands first is more probably a misspelt path. */
static bool hint_quotes(const struct wish *wish)
{
    if (wish->path->segment_count > 1 || has_keys(wish->path) || wish->path->position == 0)
        return false;
    text_printf(wish->out, "; a text goes in quotes: \"%s\"", wish->name);
    return true;
}

static bool hint_dotted(const struct wish *wish)
{
    return wish->path->segment_count > 1 && !has_keys(wish->path) &&
           hint_attribute(wish, attribute_context(wish), wish->name);
}

static bool hint_own(const struct wish *wish)
{
    const char *near =
        wish->own < OTTL_CONTEXT_COUNT ? ottl_path_suggest(wish->own, wish->name) : NULL;
    return near ? suggest(wish, wish->own, near) : hint_other_name(wish, OTTL_SPAN, wish->name);
}

/* `log.body`, `metric.name` beside spans or profiles; where only resources and scopes are seen, the
 * caller says why. */
static bool hint_relayed(struct slice first, unsigned contexts, struct text *out)
{
    const unsigned always = OTTL_BIT(OTTL_RESOURCE) | OTTL_BIT(OTTL_SCOPE);
    static const char *const of_logs[] = {"log", "logs", "log_record", "body", NULL};
    static const char *const of_metrics[] = {"metric", "metrics", "datapoint", "datapoints", NULL};
    bool is_relayed = is_one_of(first, of_logs) || is_one_of(first, of_metrics);
    if (is_relayed && (contexts & ~always) == 0)
        return true;
    if (is_one_of(first, of_logs))
        text_append(out, "; profcol does not open log records, only their resource and scope");
    else if (is_one_of(first, of_metrics))
        text_append(out, "; profcol does not open metrics, only their resource and scope");
    else
        return slice_is(first, "otelcol");
    return true;
}

void ottl_hint_path(const struct ottl_ast *path, enum ottl_context named, unsigned contexts,
                    enum ottl_context own, struct text *out)
{
    struct wish wish = {.path = path, .contexts = contexts, .own = own, .out = out};
    struct slice first = path->segments[0].name;
    assert(path->kind == OTTL_AST_PATH && path->segment_count > 0);
    join(path, 0, wish.name, sizeof wish.name);
    if (named < OTTL_CONTEXT_COUNT) {
        hint_named(&wish, named);
        return;
    }
    if (path->segment_count > 1 && hint_relayed(first, contexts, out))
        return;
    if (path->segment_count == 1 && ottl_hint_literal(first)) {
        text_printf(out, "; write %s", ottl_hint_literal(first));
        return;
    }
    bool is_attribute = path->segment_count > 1 && begins_attribute(first) && hint_dotted(&wish);
    if (!is_attribute && !hint_context_alone(&wish) && !hint_prefix(&wish) && !hint_own(&wish) &&
        !hint_context(&wish) && !hint_near(&wish) && !hint_quotes(&wish))
        hint_dotted(&wish);
}
