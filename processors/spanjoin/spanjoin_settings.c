#include "processors/spanjoin/spanjoin_settings.h"

#include "config/diff.h"
#include "core/ottl/ottl.h"
#include "processors/spanjoin/own_paths.h"
#include "processors/spanjoin/resource_keys.h"
#include "processors/spanjoin/type_names.h"

#include <stdio.h>

static const char *const service_froms[] = {"span", "profile", NULL};

static const struct field samples_fields[] = {
    FIELD_DURATION(spanjoin_side, wait,
                   "Longest time that a profiles request waits for the spans that its samples "
                   "name; 0: it does not wait.",
                   .fallback = "10s", .min = "0s"),
    FIELD_NODE(spanjoin_side, attributes,
               "Attributes that a joined sample gains, as a list of {key, from}; an empty list: "
               "only the Link.",
               .fallback = "[{key: span_name, from: span.name}, {key: span_kind, from: span.kind}, "
                           "{key: span_status, from: span.status.code}, "
                           "{key: http.route, from: 'span.attributes[\"http.route\"]'}]"),
    FIELD_BOOL(spanjoin_side, by_thread,
               "Join samples that name no span to the span that was running on their thread at "
               "their time, where both name their thread.",
               .fallback = "true"),
    FIELD_END,
};

static const struct field spans_fields[] = {
    FIELD_DURATION(spanjoin_side, wait,
                   "Longest time that a traces request waits until profiles cover its spans; "
                   "0: it passes at once, with the totals seen so far.",
                   .fallback = "0s", .min = "0s"),
    FIELD_NODE(spanjoin_side, attributes,
               "Attributes that a span with samples gains, as a list of {key, from}.",
               .fallback = "[{key: pyroscope.profile.id, from: span.id}, "
                           "{key: profile.samples, from: samples.count}, "
                           "{key: profile.cpu_ns, from: 'samples.sum[\"cpu\"]'}]"),
    FIELD_STRINGS(spanjoin_side, profile_types,
                  "Sample types of which one must have been seen for a span before it gains "
                  "`pyroscope.profile.id`, so that the profile that a trace view opens is not "
                  "empty; an empty list: any.",
                  .fallback = "cpu"),
    FIELD_END,
};

static const struct field source_fields[] = {
    FIELD_STRINGS(
        spanjoin_source, tenant_from,
        "Where to find a request's tenant: `metadata.NAME` (a header, kept with include_metadata), "
        "`auth.NAME` (of an authenticated client, such as its `username`) or "
        "`resource.attributes[\"NAME\"]`. The first one present is used.",
        .fallback = "metadata.x-scope-orgid"),
    FIELD_END,
};

const struct field spanjoin_fields[] = {
    FIELD_DURATION(spanjoin_settings, window,
                   "How long a span, and the totals of its samples, can be joined after arrival.",
                   .fallback = "120s", .min = "1s", .max = "24h", .is_live = true),
    FIELD_UINT(spanjoin_settings, max_spans,
               "Most entries in the index. When it is full, the source with the most entries gives "
               "up its oldest ones. 0: an eighth of the memory limit at 256 bytes each, from "
               "10,000 to 4,000,000.",
               .fallback = "0", .max = "67108864"),
    FIELD_UINT(
        spanjoin_settings, max_held_mib,
        "Limit in MiB on requests that wait; 0: an eighth of the memory limit, from 8 to 512.",
        .fallback = "0", .max = "1048576"),
    FIELD_BLOCK(spanjoin_settings, samples, spanjoin_side, samples_fields, "Settings for samples."),
    FIELD_BLOCK(spanjoin_settings, spans, spanjoin_side, spans_fields, "Settings for spans."),
    FIELD_STRINGS(spanjoin_settings, sources,
                  "Attributes of a sample, its profile or its resource that name its span; the "
                  "first one present is used.",
                  .fallback = "span_id, profile_id, span.id, otel.span_id, "
                              "process.context.label.span_id, span id, local root span id"),
    FIELD_STRINGS(spanjoin_settings, trace_sources,
                  "Attributes that name the trace of a sample; the first one present is used.",
                  .fallback = "trace_id, otel.traceid, process.context.label.trace_id"),
    FIELD_DURATION(spanjoin_settings, clock_skew,
                   "How far clocks may differ when several spans have the same id and time decides "
                   "between them.",
                   .fallback = "5s", .min = "0s"),
    FIELD_BLOCK(spanjoin_settings, source, spanjoin_source, source_fields,
                "The senders that share the index. Tenants are joined separately."),
    FIELD_ENUM(spanjoin_settings, service_from,
               "The service of profiles. `span`: all profiles of a process get the service of the "
               "spans that its samples name; `profile`: profiles keep theirs.",
               service_froms, .fallback = "span"),
    FIELD_OPTIONAL(spanjoin_settings, keep, keep_settings, keep_fields,
                   "Keeps the detail of spans that are worth it only; see docs/spanjoin.md."),
    FIELD_BOOL(spanjoin_settings, attribute_children,
               "Samples with times (of recordings of Java, and OTLP's with timestamps) that name a "
               "local root go on to the child span that was running then; they are split if there "
               "were several.",
               .fallback = "false"),
    FIELD_STRING(spanjoin_settings, ack, "Not supported yet."),
    FIELD_STRING(spanjoin_settings, storage, "Not supported yet."),
    FIELD_END,
};

/* ---- paths ---- */

struct path_form {
    const char *text; /* up to the bracket, if there is one */
    enum join_path path;
    enum { NOTHING, NAME, BOUNDS, NUMBER } in_brackets; /* ["name"], [100ms,1s], [5] */
    bool of_samples; /* a path of samples, allowed for spans only */
};

static const struct path_form forms[] = {
    {"span.name", JOIN_SPAN_NAME, NOTHING, false},
    {"span.kind", JOIN_SPAN_KIND, NOTHING, false},
    {"span.id", JOIN_SPAN_ID, NOTHING, false},
    {"span.trace_id", JOIN_SPAN_TRACE_ID, NOTHING, false},
    {"span.parent_id", JOIN_SPAN_PARENT_ID, NOTHING, false},
    {"span.status.code", JOIN_SPAN_STATUS_CODE, NOTHING, false},
    {"span.status.message", JOIN_SPAN_STATUS_MESSAGE, NOTHING, false},
    {"span.start_time", JOIN_SPAN_START_TIME, NOTHING, false},
    {"span.duration_ns", JOIN_SPAN_DURATION_NS, NOTHING, false},
    {"span.duration_bucket", JOIN_SPAN_DURATION_BUCKET, BOUNDS, false},
    {"scope.name", JOIN_SCOPE_NAME, NOTHING, false},
    {"span.attributes", JOIN_SPAN_ATTRIBUTE, NAME, false},
    {"resource.attributes", JOIN_RESOURCE_ATTRIBUTE, NAME, false},
    {"root.name", JOIN_ROOT_NAME, NOTHING, false},
    {"root.attributes", JOIN_ROOT_ATTRIBUTE, NAME, false},
    {"samples.count", JOIN_SAMPLES_COUNT, NOTHING, true},
    {"samples.count", JOIN_SAMPLES_COUNT, NAME, true},
    {"samples.sum", JOIN_SAMPLES_SUM, NAME, true},
    {"samples.top_functions", JOIN_TOP_FUNCTIONS, NUMBER, true},
};
enum { FORM_COUNT = sizeof forms / sizeof *forms };

static const char *const names[] = {
    "span.name",           "span.kind",       "span.id",
    "span.trace_id",       "span.parent_id",  "span.status.code",
    "span.status.message", "span.start_time", "span.duration_ns",
    "scope.name",          "span.attributes", "resource.attributes",
    "samples.count",       "samples.sum",     "span.duration_bucket",
    "root.name",           "root.attributes", "samples.top_functions",
};

/* Reads ["name"] up to the end of the text. */
static bool read_brackets(const char *text, struct slice *name_out)
{
    size_t size = strlen(text);
    if (size < 5 || text[0] != '[' || text[size - 1] != ']' ||
        (text[1] != '"' && text[1] != '\'') || text[size - 2] != text[1])
        return false;
    *name_out = slice_of(text + 2, size - 4);
    return memchr(name_out->data, text[1], name_out->size) == NULL;
}

static const struct path_form *find_form(const char *text, struct slice *name_out)
{
    size_t size = strcspn(text, "[");
    *name_out = (struct slice){0};
    for (const struct path_form *form = forms; form < forms + FORM_COUNT; form++) {
        if (strlen(form->text) != size || strncmp(form->text, text, size) != 0)
            continue;
        if (form->in_brackets == NAME      ? read_brackets(text + size, name_out)
            : form->in_brackets == NOTHING ? text[size] == 0
                                           : true)
            return form;
    }
    return NULL;
}

/* Returns the path that was probably meant; NULL if nothing is like it. Attributes are named in
 * brackets, and paths begin with what they are of. */
static const char *suggest_path(struct arena *arena, const char *text)
{
    static const char *const bracketed[] = {"span.attributes", "resource.attributes",
                                            "root.attributes"};
    for (size_t i = 0; i < sizeof bracketed / sizeof *bracketed; i++) {
        size_t size = strlen(bracketed[i]);
        if (strncmp(text, bracketed[i], size) == 0 && text[size] == '.' && text[size + 1])
            return arena_printf(arena, "%s[\"%s\"]", bracketed[i], text + size + 1);
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(names[i], "span.", 5) == 0 && strcmp(names[i] + 5, text) == 0)
            return names[i];
    return string_begins_with(text, "attributes[") ? arena_printf(arena, "span.%s", text) : NULL;
}

/* Returns the path of an attribute whose name was written alone, or behind what it is of:
 * "http.route", "resource.service.name". NULL: it is none. */
static const char *suggest_attribute(struct arena *arena, const char *text)
{
    static const char *const owners[] = {"span.", "resource.", "root."};
    static const char *const others[] = {"samples.", "scope.", "profile.", NULL};
    const char *owner = owners[0], *name = text;
    for (size_t i = 0; i < sizeof owners / sizeof *owners; i++)
        if (string_begins_with(text, owners[i])) {
            owner = owners[i];
            name = text + strlen(owner);
        }
    for (size_t i = 0; others[i]; i++)
        if (string_begins_with(name, others[i]))
            return NULL;
    if (key_is_of_resource(name))
        owner = "resource.";
    bool is_name =
        strchr(name, '.') && !string_begins_with(name, "span.") && !strpbrk(name, "[]\"' ");
    return is_name ? arena_printf(arena, "%sattributes[\"%s\"]", owner, name) : NULL;
}

static void tell_unknown_path(struct config_check *check, const struct config_node *node,
                              const char *text)
{
    char head[64];
    size_t size = strcspn(text, "[");
    snprintf(head, sizeof head, "%.*s", (int)(size < sizeof head ? size : sizeof head - 1), text);
    const char *near = config_suggest(head, names, sizeof names / sizeof *names);
    const char *meant = suggest_path(config_check_arena(check), text);
    if (!meant && !near)
        meant = suggest_attribute(config_check_arena(check), text);
    if (meant) {
        config_check_node_error(check, node, "\"%s\" is not a path, did you mean %s?", text, meant);
        return;
    }
    bool wants_brackets = near && strcmp(near, head) == 0;
    if (wants_brackets && (strcmp(near, "samples.count") == 0 || strstr(near, "attributes") ||
                           strcmp(near, "samples.sum") == 0))
        config_check_node_error(check, node, "\"%s\" is not a path: write %s[\"...\"]", text, near);
    else if (wants_brackets)
        config_check_node_error(check, node, "\"%s\" is not a path, did you mean \"%s\"?", text,
                                near);
    else
        config_check_node_error(check, node,
                                "\"%s\" is not a path%s%s%s (span.*, span.attributes[\"...\"], "
                                "resource.attributes[\"...\"], scope.name, root.name, "
                                "root.attributes[\"...\"], an OTTL "
                                "expression on the span, and for spans samples.*)",
                                text, near ? ", did you mean \"" : "", near ? near : "",
                                near ? "\"?" : "");
}

/* Whether a text is one of the join's own paths, without the brackets that it needs. */
static bool lacks_brackets(const char *text)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(text, names[i]) == 0)
            return true;
    return false;
}

/* Tells why an expression does not compile. */
static void tell_expression(struct config_check *check, const struct config_node *node,
                            const char *text, const struct error *err)
{
    const char *own = own_paths_find(text);
    if (own)
        config_check_node_error(check, node,
                                "%s stands alone: OTTL expressions read only the span, its scope "
                                "and its resource",
                                own);
    else
        config_check_node_error(check, node, "%s", err->text);
}

static void tell_warnings(struct config_check *check, const struct config_node *node,
                          const struct ottl_program *program)
{
    const char *warning;
    size_t offset;
    for (uint32_t i = 0; (warning = ottl_program_warning(program, i, &offset)); i++)
        config_check_node_warn(check, node, "%s", warning);
}

/* Reads what is none of the join's own paths. */
static bool read_expression(const char *text, struct joined_attribute *out,
                            struct config_check *check, const struct config_node *node)
{
    struct error err;
    struct ottl_program *program =
        ottl_compile_value(OTTL_SPAN, slice_of_string(text), OTTL_PREFIX_REQUIRED, &err);
    bool compiles = program != NULL, is_expression = compiles && !lacks_brackets(text);
    if (is_expression)
        tell_warnings(check, node, program);
    ottl_program_free(program);
    if (is_expression) {
        out->path = JOIN_EXPRESSION;
        out->name = slice_of_string(text);
        out->type = -1;
        return true;
    }
    if (!compiles && strcspn(text, "( +-*/") < strlen(text))
        tell_expression(check, node, text, &err);
    else
        tell_unknown_path(check, node, text);
    return false;
}

/* Returns the index of a sample type in `types`; adds it if it is new. -1: too many. */
static int type_position(struct spanjoin_settings *settings, struct slice name)
{
    for (unsigned i = 0; i < settings->type_count; i++)
        if (slice_equal(settings->types[i], name))
            return (int)i;
    if (settings->type_count == JOIN_TYPES_MAX)
        return -1;
    settings->types[settings->type_count] = name;
    return (int)settings->type_count++;
}

/* ---- buckets ---- */

/* Names the buckets: "<100ms", "100ms-1s", ">=1s", by the bounds as written. */
static void name_buckets(struct joined_attribute *out, char **texts, struct arena *arena)
{
    size_t count = out->bound_count;
    const char **words = arena_array(arena, count + 1, sizeof *words);
    words[0] = arena_printf(arena, "<%s", texts[0]);
    for (size_t i = 1; i < count; i++)
        words[i] = arena_printf(arena, "%s-%s", texts[i - 1], texts[i]);
    words[count] = arena_printf(arena, ">=%s", texts[count - 1]);
    out->words = words;
}

/* Reads [100ms,1s,10s] up to the end of the text. */
static bool read_bounds(const char *text, struct joined_attribute *out, struct config_check *check,
                        const struct config_node *node)
{
    struct arena *arena = config_check_arena(check);
    char *texts[JOIN_BUCKETS_MAX], *rest = NULL;
    uint64_t *bounds = arena_array(arena, JOIN_BUCKETS_MAX, sizeof *bounds);
    size_t size = strlen(text);
    bool valid = size > 2 && text[0] == '[' && text[size - 1] == ']';
    char *list = valid ? arena_string(arena, slice_of(text + 1, size - 2)) : NULL;
    out->bound_count = 0;
    for (char *bound = valid ? strtok_r(list, ", ", &rest) : NULL; bound && valid;
         bound = strtok_r(NULL, ", ", &rest)) {
        char why[64];
        int64_t ns;
        size_t i = out->bound_count;
        valid = i < JOIN_BUCKETS_MAX &&
                config_parse_duration(slice_of_string(bound), &ns, why, sizeof why) && ns > 0 &&
                (i == 0 || (uint64_t)ns > bounds[i - 1]);
        if (!valid)
            break;
        bounds[i] = (uint64_t)ns;
        texts[out->bound_count++] = bound;
    }
    if (!valid || out->bound_count == 0) {
        config_check_node_error(check, node,
                                "expected span.duration_bucket[100ms,1s,10s]: up to %d durations, "
                                "the shortest first",
                                JOIN_BUCKETS_MAX);
        return false;
    }
    out->bounds = bounds;
    name_buckets(out, texts, arena);
    return true;
}

/* Reads [5] up to the end of the text. Whether CPU time is known decides what counts. */
static bool read_most(struct spanjoin_settings *settings, const char *text,
                      struct joined_attribute *out, struct config_check *check,
                      const struct config_node *node)
{
    unsigned most = 0;
    int end = 0;
    if (sscanf(text, "[%2u]%n", &most, &end) != 1 || end == 0 || text[end] != 0 || most == 0 ||
        most > JOIN_FUNCTIONS_MAX) {
        config_check_node_error(check, node, "expected samples.top_functions[5]: from 1 to %d",
                                JOIN_FUNCTIONS_MAX);
        return false;
    }
    if (type_position(settings, SLICE("cpu")) < 0) {
        config_check_node_error(check, node, "more than %d sample types are named", JOIN_TYPES_MAX);
        return false;
    }
    out->most = (uint8_t)most;
    settings->top_functions = most > settings->top_functions ? most : settings->top_functions;
    return true;
}

static void warn_of_type(struct config_check *check, const struct config_node *node,
                         struct slice name)
{
    struct arena *arena = config_check_arena(check);
    const char *text = arena_string(arena, name);
    const char *meant = type_name_suggest(arena, text);
    if (meant)
        config_check_node_warn(check, node, TYPE_NAME_UNKNOWN, text, meant);
}

static bool read_path(struct spanjoin_settings *settings, const char *text, bool of_spans,
                      struct joined_attribute *out, struct config_check *check,
                      const struct config_node *node)
{
    struct slice name;
    const struct path_form *form = find_form(text, &name);
    if (!form)
        return read_expression(text, out, check, node);
    if (form->of_samples && !of_spans) {
        config_check_node_error(check, node,
                                "\"%s\" can only be used for spans: a sample has no totals", text);
        return false;
    }
    out->path = form->path;
    out->name = name;
    out->type = -1;
    if (form->in_brackets == NUMBER)
        return read_most(settings, text + strlen(form->text), out, check, node);
    if (form->in_brackets == BOUNDS)
        return read_bounds(text + strlen(form->text), out, check, node);
    if (form->of_samples && form->in_brackets) {
        warn_of_type(check, node, name);
        out->type = type_position(settings, name);
        if (out->type < 0)
            config_check_node_error(check, node, "more than %d sample types are named",
                                    JOIN_TYPES_MAX);
    }
    return !form->of_samples || !form->in_brackets || out->type >= 0;
}

bool join_path_is_kept(enum join_path path)
{
    switch (path) {
    case JOIN_SPAN_NAME:
    case JOIN_SPAN_PARENT_ID:
    case JOIN_SPAN_STATUS_MESSAGE:
    case JOIN_SCOPE_NAME:
    case JOIN_SPAN_ATTRIBUTE:
    case JOIN_RESOURCE_ATTRIBUTE:
    case JOIN_EXPRESSION:
    case JOIN_SPAN_DURATION_BUCKET: /* so that spans of one bucket share their values */
        return true;
    default:
        return false;
    }
}

bool join_path_is_of_one_span(enum join_path path)
{
    return path == JOIN_SPAN_ID || path == JOIN_SPAN_TRACE_ID || path == JOIN_SPAN_PARENT_ID ||
           path == JOIN_SPAN_START_TIME || path == JOIN_SPAN_DURATION_NS;
}

/* ---- lists of attributes ---- */

struct written_attribute {
    const char *key;
    const char *from;
};

static const struct field written_fields[] = {
    FIELD_STRING(written_attribute, key, "The attribute's key.", .required = true),
    FIELD_STRING(written_attribute, from, "Where its value comes from.", .required = true),
    FIELD_END,
};

static bool is_taken(const struct spanjoin_side *side, const char *key)
{
    for (size_t i = 0; i < side->joined_count; i++)
        if (slice_is(side->joined[i].key, key))
            return true;
    return false;
}

static void warn_of_profile_type(struct config_check *check, size_t i, const char *name)
{
    const char *meant = type_name_suggest(config_check_arena(check), name);
    if (meant)
        config_check_warn(check, config_check_item(check, "spans::profile_types", i),
                          TYPE_NAME_UNKNOWN, name, meant);
}

static void read_profile_types(struct spanjoin_settings *settings, struct config_check *check)
{
    const struct config_strings *types = &settings->spans.profile_types;
    for (size_t i = 0; i < types->count; i++) {
        warn_of_profile_type(check, i, types->items[i]);
        int type = type_position(settings, slice_of_string(types->items[i]));
        if (type < 0)
            config_check_error(check, "spans::profile_types", "more than %d sample types are named",
                               JOIN_TYPES_MAX);
        else
            settings->profile_types |= UINT32_C(1) << type;
    }
}

/* Samples of a span keep their values under their index, those that spans gain follow. */
static void add_root_path(struct spanjoin_settings *settings, struct spanjoin_side *side,
                          struct joined_attribute *joined)
{
    const struct spanjoin_side *samples = &settings->samples;
    joined->kept_as =
        (uint8_t)(side == samples ? side->joined_count : JOIN_ATTRIBUTES_MAX + side->joined_count);
    for (size_t r = 0; side != samples && r < samples->root_count; r++) {
        const struct joined_attribute *same = &samples->joined[samples->roots[r]];
        if (same->path == joined->path && slice_equal(same->name, joined->name))
            joined->kept_as = same->kept_as;
    }
    side->roots[side->root_count++] = (uint8_t)side->joined_count;
}

static void add_attribute(struct spanjoin_settings *settings, struct spanjoin_side *side,
                          const struct written_attribute *written, struct config_check *check,
                          const struct config_node *node)
{
    const struct config_node *from = config_node_get(node, "from");
    if (is_taken(side, written->key)) {
        config_check_node_error(check, node, "\"%s\" is added twice", written->key);
        return;
    }
    struct joined_attribute *joined = &side->joined[side->joined_count];
    if (!read_path(settings, written->from, side == &settings->spans, joined, check, from))
        return;
    joined->key = slice_of_string(written->key);
    joined->is_profile_id =
        side == &settings->spans && slice_is(joined->key, "pyroscope.profile.id");
    if (joined->is_profile_id)
        read_profile_types(settings, check);
    if (join_path_is_kept(joined->path))
        side->kept[side->kept_count++] = (uint8_t)side->joined_count;
    if (join_path_is_of_root(joined->path))
        add_root_path(settings, side, joined);
    side->joined_count++;
}

static void read_side(struct spanjoin_settings *settings, struct spanjoin_side *side,
                      struct config_check *check)
{
    const struct config_node *list = side->attributes;
    side->joined =
        arena_array(config_check_arena(check), JOIN_ATTRIBUTES_MAX, sizeof *side->joined);
    side->joined_count = side->kept_count = side->root_count = 0;
    if (config_node_kind(list) != CONFIG_NODE_LIST) {
        config_check_node_error(check, list, "expected a list of {key: ..., from: ...}");
        return;
    }
    size_t count = config_node_count(list);
    if (count > JOIN_ATTRIBUTES_MAX) {
        config_check_node_error(check, list, "more than %d attributes", JOIN_ATTRIBUTES_MAX);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        struct written_attribute written = {0};
        const struct config_node *node = config_node_at(list, i);
        if (config_decode(check, node, written_fields, &written))
            add_attribute(settings, side, &written, check, node);
    }
}

/* ---- sources of ids ---- */

static struct id_source *read_sources(const struct config_strings *sources, const char *key,
                                      struct config_check *check)
{
    if (sources->count > JOIN_SOURCES_MAX) {
        config_check_error(check, key, "has more than %d keys", JOIN_SOURCES_MAX);
        return NULL;
    }
    struct id_source *ids = arena_array(config_check_arena(check), sources->count + 1, sizeof *ids);
    for (size_t i = 0; i < sources->count; i++) {
        if (*sources->items[i] == 0)
            config_check_error(check, config_check_item(check, key, i), "is an empty key");
        ids[i].key = slice_of_string(sources->items[i]);
        ids[i].is_decimal =
            slice_is(ids[i].key, "span id") || slice_is(ids[i].key, "local root span id");
    }
    return ids;
}

/* Derives the keys of span names: "span_name" for "span_id", "process.context.label.span_name" for
 * "process.context.label.span_id". */
static void read_beside(struct spanjoin_settings *settings, struct arena *arena)
{
    size_t count = settings->sources.count;
    settings->beside = arena_array(arena, count + 1, sizeof *settings->beside);
    settings->beside[settings->beside_count++] = SLICE("span_name");
    for (size_t i = 0; i < count; i++) {
        size_t size = settings->span_ids[i].key.size;
        const char *key = settings->sources.items[i];
        if (size < 7 || strcmp(key + size - 2, "id") != 0 ||
            strncmp(key + size - 7, "span", 4) != 0)
            continue;
        char *name = arena_printf(arena, "%.*sname", (int)size - 2, key);
        settings->beside[settings->beside_count++] = slice_of_string(name);
    }
}

static bool read_tenant_place(const char *text, struct tenant_place *out, struct arena *arena)
{
    static const char header[] = "metadata.", attribute[] = "resource.attributes";
    static const char identity[] = "auth.";
    if (strncmp(text, header, sizeof header - 1) == 0 && text[sizeof header - 1] != '\0') {
        char *name = arena_printf(arena, "%s", text + sizeof header - 1);
        out->header = name;
        for (; *name; name++)
            *name = (char)(*name >= 'A' && *name <= 'Z' ? *name | 0x20 : *name);
        return true;
    }
    if (strncmp(text, identity, sizeof identity - 1) == 0 && text[sizeof identity - 1] != '\0') {
        out->identity = text + sizeof identity - 1;
        return true;
    }
    return strncmp(text, attribute, sizeof attribute - 1) == 0 &&
           read_brackets(text + sizeof attribute - 1, &out->attribute);
}

static void read_tenant_places(struct spanjoin_settings *settings, struct config_check *check)
{
    const struct config_strings *texts = &settings->source.tenant_from;
    struct arena *arena = config_check_arena(check);
    settings->tenants = arena_array(arena, texts->count + 1, sizeof *settings->tenants);
    for (size_t i = 0; i < texts->count; i++)
        if (read_tenant_place(texts->items[i], &settings->tenants[settings->tenant_count], arena))
            settings->tenant_count++;
        else
            config_check_error(check, config_check_item(check, "source::tenant_from", i),
                               "\"%s\" is neither metadata.NAME, auth.NAME nor "
                               "resource.attributes[\"NAME\"]",
                               texts->items[i]);
}

static void refuse_what_comes_later(const struct spanjoin_settings *settings,
                                    struct config_check *check)
{
    if (settings->ack)
        config_check_error(check, "ack", "is not supported yet: remove it");
    if (settings->storage)
        config_check_error(check, "storage", "is not supported yet: remove it");
}

/* Limits a wait to the window: entries older than the window are not found any more. */
static void bound_wait(int64_t *wait, int64_t window, const char *key, struct config_check *check)
{
    if (*wait <= window)
        return;
    config_check_warn(check, key, "is longer than window; window is used instead");
    *wait = window;
}

static void check_profile_types(const struct spanjoin_settings *settings,
                                struct config_check *check)
{
    const struct config_node *list = settings->spans.attributes;
    size_t count = config_node_kind(list) == CONFIG_NODE_LIST ? config_node_count(list) : 0;
    bool has_profile_id = false;
    for (size_t i = 0; i < count; i++) { /* also with another mistake, which is reported */
        const struct config_node *item = config_node_at(list, i);
        const char *key = config_node_kind(item) == CONFIG_NODE_MAP
                              ? config_node_text(config_node_get(item, "key"))
                              : NULL;
        has_profile_id |= key && strcmp(key, "pyroscope.profile.id") == 0;
    }
    if (!has_profile_id && config_check_is_chosen(check, "spans::profile_types"))
        config_check_warn(check, "spans::profile_types",
                          "has no effect, because spans::attributes does not add "
                          "pyroscope.profile.id");
}

static void check_wait_of_spans(const struct spanjoin_settings *settings,
                                struct config_check *check)
{
    if (settings->spans.wait > 0 &&
        config_node_kind(settings->spans.attributes) == CONFIG_NODE_LIST &&
        config_node_count(settings->spans.attributes) == 0)
        config_check_warn(check, "spans::wait",
                          "delays spans for nothing, because spans::attributes adds nothing");
}

/* ---- what finds nothing ---- */

static bool has_key(const struct config_strings *keys, const char *key)
{
    for (size_t i = 0; i < keys->count; i++)
        if (strcmp(keys->items[i], key) == 0)
            return true;
    return false;
}

static void check_sources(const struct spanjoin_settings *settings, struct config_check *check)
{
    const struct config_strings *sources = &settings->sources;
    if (sources->count == 0)
        config_check_warn(check, "sources",
                          "is empty, so no attribute names a span: %s are joined; remove it for "
                          "the usual attributes",
                          settings->samples.by_thread
                              ? "only samples with a Link, or with a thread and times,"
                              : "only samples with a Link");
    for (size_t i = 0; i < sources->count; i++)
        if (has_key(&settings->trace_sources, sources->items[i]))
            config_check_warn(check, config_check_item(check, "sources", i),
                              "\"%s\" is also one of trace_sources, but it names either a span or "
                              "a trace; remove it from one of them",
                              sources->items[i]);
}

static void check_wait_by_thread(const struct spanjoin_settings *settings,
                                 struct config_check *check)
{
    if (settings->samples.wait == 0 && settings->samples.by_thread &&
        config_check_is_chosen(check, "samples::by_thread"))
        config_check_warn(check, "samples::wait",
                          "is 0, so samples are joined by thread only if their spans arrive before "
                          "them, but most arrive later; write 10s, or by_thread: false");
}

static void check_wait_of_children(const struct spanjoin_settings *settings,
                                   struct config_check *check)
{
    if (settings->samples.wait == 0 && settings->attribute_children)
        config_check_warn(check, "samples::wait",
                          "is 0, so with attribute_children samples whose root has not arrived "
                          "leave at once, and do not go on to its children; write 10s");
}

/* Samples that are joined by thread wait for all of samples::wait. By default most are joined by
 * ids, and then a span may be complete before. */
static void check_wait_for_threads(const struct spanjoin_settings *settings,
                                   struct config_check *check)
{
    if (settings->spans.wait > 0 && settings->spans.wait < settings->samples.wait &&
        settings->samples.by_thread && config_check_is_chosen(check, "samples::by_thread"))
        config_check_warn(check, "spans::wait",
                          "is shorter than samples::wait, for which samples that are joined by "
                          "thread wait themselves, so most of their spans leave incomplete; write "
                          "the time between uploads + samples::wait + 5s");
}

/* Once all types are known that the settings name. */
static void find_types(struct spanjoin_settings *settings, struct arena *arena)
{
    settings->cpu_type = -1;
    for (unsigned i = 0; i < settings->type_count; i++) {
        if (slice_is(settings->types[i], "cpu"))
            settings->cpu_type = (int)i;
        if (!type_name_is_known(arena_string(arena, settings->types[i])))
            settings->foreign_types |= UINT32_C(1) << i;
    }
}

void spanjoin_check(void *config, struct config_check *check)
{
    struct spanjoin_settings *settings = config;
    refuse_what_comes_later(settings, check);
    bound_wait(&settings->samples.wait, settings->window, "samples::wait", check);
    bound_wait(&settings->spans.wait, settings->window, "spans::wait", check);

    settings->span_ids = read_sources(&settings->sources, "sources", check);
    settings->trace_ids = read_sources(&settings->trace_sources, "trace_sources", check);
    if (settings->span_ids)
        read_beside(settings, config_check_arena(check));

    check_sources(settings, check);
    check_wait_by_thread(settings, check);
    check_wait_of_children(settings, check);
    check_wait_for_threads(settings, check);
    read_tenant_places(settings, check);
    read_side(settings, &settings->samples, check);
    read_side(settings, &settings->spans, check);
    check_profile_types(settings, check);
    check_wait_of_spans(settings, check);
    if (settings->keep.enabled)
        keep_check(&settings->keep, settings->samples.wait, check);
    if (settings->keep.reads_cpu && type_position(settings, SLICE("cpu")) < 0)
        config_check_error(check, "keep",
                           "conditions on CPU need a sample type of their own, but "
                           "spans.attributes name %d others",
                           JOIN_TYPES_MAX);
    find_types(settings, config_check_arena(check));
}

/* ---- reload ---- */

/* Whether entries that were made for one `keep` serve another one: spans that have arrived keep
 * their verdict. */
static bool keep_goes_on(const struct keep_settings *before, const struct keep_settings *after)
{
    bool has_verdicts = before->enabled || !after->enabled;
    return has_verdicts && before->reads_cpu == after->reads_cpu;
}

/* A reload replaces a component with equal settings if processors around it change: what it holds
 * must not pass them in a new order. What it knows can stay. It can, too, if only `window` differs,
 * or `keep`. */
bool spanjoin_index_goes_on(const struct spanjoin_settings *before,
                            const struct spanjoin_settings *after)
{
    struct arena arena;
    struct spanjoin_settings same = *before;
    same.keep = after->keep;
    arena_init(&arena, NULL);
    bool differs = config_fields_differ(&arena, spanjoin_fields, false, &same, after) != NULL;
    arena_deinit(&arena);
    return !differs && keep_goes_on(&before->keep, &after->keep);
}

const char *spanjoin_says_of_successor(const void *before, const void *after)
{
    return spanjoin_index_goes_on(before, after)
               ? "the index goes on"
               : "its index is empty: samples of spans that came before are not joined";
}
