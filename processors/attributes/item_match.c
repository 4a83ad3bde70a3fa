#include "processors/attributes/item_match.h"

#include "config/node.h"
#include "core/base/memory.h"
#include "core/ottl/ottl_check.h"
#include "core/ottl/ottl_regex.h"
#include "core/ottl/ottl_value.h"
#include "core/pipeline/configured_value.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum match_type { MATCH_UNSET, MATCH_STRICT, MATCH_REGEXP };
static const char *const match_types[] = {"", "strict", "regexp", NULL};

static const struct field attribute_fields[] = {
    FIELD_STRING(match_attribute, key, "The key.", .required = true),
    FIELD_NODE(match_attribute, value,
               "The value, with the type that YAML gives it, or for regexp a pattern; without it, "
               "any value."),
    FIELD_END};

static const struct field library_fields[] = {
    FIELD_STRING(match_library, name, "The name of the instrumentation scope."),
    FIELD_NODE(match_library, version, "Its version; without it, any."), FIELD_END};

const struct field match_fields[] = {
    FIELD_ENUM(match_settings, match_type,
               "Whether texts are compared (strict), or patterns are searched for (regexp).",
               match_types, .fallback = ""),
    FIELD_NODE(match_settings, regexp, "The Collector's cache of results; profcol needs none.",
               .ignored = true),
    FIELD_STRINGS(match_settings, services, "Values of the resource attribute `service.name`."),
    FIELD_STRINGS(match_settings, span_names, "Names of spans. Samples have none."),
    FIELD_STRINGS(match_settings, span_kinds,
                  "Kinds of spans, such as SPAN_KIND_SERVER. Samples have none."),
    FIELD_LIST(match_settings, attributes, match_attribute, attribute_fields,
               "Attributes of the span or sample."),
    FIELD_LIST(match_settings, resources, match_attribute, attribute_fields,
               "Attributes of the resource."),
    FIELD_LIST(match_settings, libraries, match_library, library_fields, "Instrumentation scopes."),
    FIELD_END};

/* ---- checks ---- */

struct match_check {
    struct match_settings *settings;
    struct config_check *check;
    const char *name; /* "include" */
};

static const char *item_of(const struct match_check *c, const char *list, size_t i)
{
    return config_check_item(c->check, config_check_key(c->check, c->name, list), i);
}

static void check_pattern(const struct match_check *c, const char *list, size_t i,
                          const char *pattern)
{
    if (c->settings->match_type == MATCH_REGEXP)
        ottl_check_pattern(c->check, item_of(c, list, i), pattern);
}

static void check_texts(const struct match_check *c, const char *list,
                        const struct config_strings *texts)
{
    for (size_t i = 0; i < texts->count; i++)
        check_pattern(c, list, i, texts->items[i]);
}

static const char *text_or_empty(const char *text)
{
    return text ? text : "";
}

static bool is_text(const struct config_node *node)
{
    return node && config_node_kind(node) == CONFIG_NODE_SCALAR;
}

static void check_attributes(const struct match_check *c, const char *list,
                             const struct config_list *attributes)
{
    struct match_attribute *items = attributes->items;
    for (size_t i = 0; i < attributes->count; i++) {
        if (!items[i].value || config_node_kind(items[i].value) == CONFIG_NODE_NULL)
            continue;
        if (c->settings->match_type == MATCH_REGEXP && !is_text(items[i].value))
            config_check_error(c->check, item_of(c, list, i),
                               "with match_type regexp, value must be a pattern");
        else if (c->settings->match_type == MATCH_REGEXP)
            check_pattern(c, list, i, config_node_text(items[i].value));
        else
            items[i].value_bytes =
                configured_value_encode(config_check_arena(c->check), items[i].value);
    }
}

static void check_libraries(const struct match_check *c)
{
    const struct match_library *items = c->settings->libraries.items;
    for (size_t i = 0; i < c->settings->libraries.count; i++) {
        check_pattern(c, "libraries", i, text_or_empty(items[i].name));
        if (is_text(items[i].version))
            check_pattern(c, "libraries", i, config_node_text(items[i].version));
    }
}

static const char *const kind_names[] = {"SPAN_KIND_UNSPECIFIED", "SPAN_KIND_INTERNAL",
                                         "SPAN_KIND_SERVER",      "SPAN_KIND_CLIENT",
                                         "SPAN_KIND_PRODUCER",    "SPAN_KIND_CONSUMER"};
enum { KINDS = sizeof kind_names / sizeof *kind_names };

static void check_kinds(const struct match_check *c)
{
    const struct config_strings *kinds = &c->settings->span_kinds;
    for (size_t i = 0; i < kinds->count && c->settings->match_type == MATCH_STRICT; i++) {
        size_t known = 0;
        while (known < KINDS && strcmp(kinds->items[i], kind_names[known]) != 0)
            known++;
        if (known == KINDS)
            config_check_error(
                c->check, item_of(c, "span_kinds", i),
                "with match_type strict, a span kind is SPAN_KIND_INTERNAL, _SERVER, "
                "_CLIENT, _PRODUCER, _CONSUMER or _UNSPECIFIED");
    }
}

static void check_signals(const struct match_check *c)
{
    const char *pipeline = config_check_pipeline(c->check, CONFIG_PROFILES);
    const char *given = c->settings->span_names.count > 0   ? "span_names"
                        : c->settings->span_kinds.count > 0 ? "span_kinds"
                                                            : NULL;
    if (pipeline && given)
        config_check_error(c->check, c->name,
                           "samples have no name and no kind, so %s cannot be used in the pipeline "
                           "%s. To match the name of the span that a sample was joined to, use "
                           "attributes: [{key: span.name, value: ...}] behind spanjoin",
                           given, pipeline);
}

void item_match_check(struct match_settings *settings, struct config_check *check, const char *name)
{
    const struct match_check c = {settings, check, name};
    if (settings->services.count + settings->span_names.count + settings->span_kinds.count +
            settings->attributes.count + settings->resources.count + settings->libraries.count ==
        0) {
        config_check_error(check, name,
                           "at least one of services, span_names, span_kinds, attributes, "
                           "libraries or resources must be specified");
        return;
    }
    if (settings->match_type == MATCH_UNSET) {
        config_check_error(check, name, "missing required field \"match_type\": strict or regexp");
        return;
    }
    check_texts(&c, "services", &settings->services);
    check_texts(&c, "span_names", &settings->span_names);
    check_texts(&c, "span_kinds", &settings->span_kinds);
    check_attributes(&c, "attributes", &settings->attributes);
    check_attributes(&c, "resources", &settings->resources);
    check_libraries(&c);
    check_kinds(&c);
    check_signals(&c);
}

/* ---- compiled ---- */

/* A text to compare, or a pattern. */
struct text_match {
    struct slice text;
    struct ottl_regex *regex; /* NULL: compare */
};

struct value_match {
    struct slice key;
    bool is_any;
    struct slice value; /* AnyValue payload */
    struct ottl_regex *regex;
};

struct library_match {
    struct text_match name;
    bool has_version;
    struct text_match version;
};

struct item_matcher {
    struct text_match *services, *names, *kinds;
    size_t service_count, name_count, kind_count;
    struct value_match *attributes, *resources;
    size_t attribute_count, resource_count;
    struct library_match *libraries;
    size_t library_count;
    bool is_regexp;
    struct ottl_matcher *matcher;
    struct text scratch;
    bool is_unsure; /* a pattern needed too many steps for the current item */
    struct arena *arena;
    /* The resource and scope of the last item, known by their bytes' addresses. */
    const uint8_t *resource, *scope;
    bool resource_matches, resource_is_unsure;
    bool scope_matches, scope_is_unsure;
};

static struct ottl_regex *pattern(const char *text)
{
    struct error err = {0};
    struct ottl_regex *regex = ottl_regex_new(slice_of_string(text), &err);
    assert(regex); /* item_match_check */
    return regex;
}

static struct text_match text_match(const char *text, bool is_regexp)
{
    return (struct text_match){slice_of_string(text), is_regexp ? pattern(text) : NULL};
}

static struct text_match *text_matches(const struct config_strings *texts, bool is_regexp,
                                       size_t *count_out)
{
    struct text_match *matches = memory_array(texts->count + 1, sizeof *matches);
    for (size_t i = 0; i < texts->count; i++)
        matches[i] = text_match(texts->items[i], is_regexp);
    *count_out = texts->count;
    return matches;
}

static struct value_match *value_matches(const struct config_list *list, bool is_regexp,
                                         size_t *count_out)
{
    const struct match_attribute *items = list->items;
    struct value_match *matches = memory_array(list->count + 1, sizeof *matches);
    for (size_t i = 0; i < list->count; i++) {
        matches[i].key = slice_of_string(items[i].key);
        matches[i].value = items[i].value_bytes;
        matches[i].is_any = !items[i].value || config_node_kind(items[i].value) == CONFIG_NODE_NULL;
        if (is_regexp && !matches[i].is_any)
            matches[i].regex = pattern(config_node_text(items[i].value));
    }
    *count_out = list->count;
    return matches;
}

static struct library_match *library_matches(const struct config_list *list, bool is_regexp,
                                             size_t *count_out)
{
    const struct match_library *items = list->items;
    struct library_match *matches = memory_array(list->count + 1, sizeof *matches);
    for (size_t i = 0; i < list->count; i++) {
        matches[i].name = text_match(text_or_empty(items[i].name), is_regexp);
        matches[i].has_version = is_text(items[i].version);
        if (matches[i].has_version)
            matches[i].version = text_match(config_node_text(items[i].version), is_regexp);
    }
    *count_out = list->count;
    return matches;
}

struct item_matcher *item_matcher_new(const struct match_settings *settings)
{
    struct item_matcher *m = memory_zalloc(sizeof *m);
    m->is_regexp = settings->match_type == MATCH_REGEXP;
    m->services = text_matches(&settings->services, m->is_regexp, &m->service_count);
    m->names = text_matches(&settings->span_names, m->is_regexp, &m->name_count);
    m->kinds = text_matches(&settings->span_kinds, m->is_regexp, &m->kind_count);
    m->attributes = value_matches(&settings->attributes, m->is_regexp, &m->attribute_count);
    m->resources = value_matches(&settings->resources, m->is_regexp, &m->resource_count);
    m->libraries = library_matches(&settings->libraries, m->is_regexp, &m->library_count);
    m->matcher = ottl_matcher_new();
    return m;
}

static void free_texts(struct text_match *matches, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ottl_regex_free(matches[i].regex);
    free(matches);
}

static void free_values(struct value_match *matches, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ottl_regex_free(matches[i].regex);
    free(matches);
}

void item_matcher_free(struct item_matcher *m)
{
    if (!m)
        return;
    free_texts(m->services, m->service_count);
    free_texts(m->names, m->name_count);
    free_texts(m->kinds, m->kind_count);
    free_values(m->attributes, m->attribute_count);
    free_values(m->resources, m->resource_count);
    for (size_t i = 0; i < m->library_count; i++) {
        ottl_regex_free(m->libraries[i].name.regex);
        ottl_regex_free(m->libraries[i].version.regex);
    }
    free(m->libraries);
    ottl_matcher_free(m->matcher);
    text_deinit(&m->scratch);
    free(m);
}

/* ---- matching ---- */

static bool found(struct item_matcher *m, const struct ottl_regex *regex, struct slice text)
{
    struct error err;
    bool is_found = false;
    if (!ottl_regex_find(regex, m->matcher, text, &is_found, &err))
        m->is_unsure = true;
    return is_found;
}

static bool text_is(struct item_matcher *m, const struct text_match *match, struct slice text)
{
    return match->regex ? found(m, match->regex, text) : slice_equal(match->text, text);
}

static bool any_text_is(struct item_matcher *m, const struct text_match *matches, size_t count,
                        struct slice text)
{
    for (size_t i = 0; i < count; i++)
        if (text_is(m, &matches[i], text))
            return true;
    return count == 0;
}

/* As strconv.FormatFloat(value, 'f', -1, 64) does. */
static void print_double(struct text *out, double value)
{
    enum { DIGITS_MAX = 340 };
    char buffer[2 * DIGITS_MAX + 16];
    int digits = 0;
    do
        snprintf(buffer, sizeof buffer, "%.*f", digits, value);
    while (strtod(buffer, NULL) != value && ++digits < DIGITS_MAX);
    text_append(out, buffer);
}

/* Returns false for a value that has no text. */
static bool value_text(struct item_matcher *m, struct slice payload, struct slice *out)
{
    struct any_value value = any_value_read(payload);
    text_clear(&m->scratch);
    switch (value.kind) {
    case ANY_VALUE_STRING:
        *out = value.bytes;
        return true;
    case ANY_VALUE_BOOL:
        text_append(&m->scratch, value.truth ? "true" : "false");
        break;
    case ANY_VALUE_INT:
        text_printf(&m->scratch, "%" PRId64, value.integer);
        break;
    case ANY_VALUE_DOUBLE:
        print_double(&m->scratch, value.real);
        break;
    default:
        return false;
    }
    *out = slice_of(m->scratch.data, m->scratch.size);
    return true;
}

/* Unlike OTTL, an integer never equals a double. */
static bool values_equal(struct slice one, struct slice other)
{
    if (any_value_read(one).kind != any_value_read(other).kind)
        return false;
    struct ottl_value left = ottl_value_of_any(one), right = ottl_value_of_any(other);
    return ottl_compare(&left, OTTL_EQUAL, &right);
}

static bool value_is(struct item_matcher *m, const struct value_match *match, struct slice value)
{
    struct slice text;
    if (match->is_any)
        return true;
    if (!match->regex)
        return values_equal(match->value, value);
    return value_text(m, value, &text) && found(m, match->regex, text);
}

static bool attributes_match(struct item_matcher *m, struct items *items)
{
    struct slice value;
    for (size_t i = 0; i < m->attribute_count; i++)
        if (!item_get_attribute(items, m->attributes[i].key, &value) ||
            !value_is(m, &m->attributes[i], value))
            return false;
    return true;
}

static bool service_matches(struct item_matcher *m, struct message_iter resource)
{
    struct attribute attribute;
    struct slice text = SLICE("<nil-service-name>"); /* as in the Collector */
    if (m->service_count == 0)
        return true;
    if (attributes_find(resource, RESOURCE_ATTRIBUTES, SLICE("service.name"), &attribute) &&
        !value_text(m, attribute.pair.value, &text))
        text = (struct slice){0};
    return any_text_is(m, m->services, m->service_count, text);
}

static bool resource_matches(struct item_matcher *m, struct message_iter group)
{
    struct message_field field;
    struct attribute attribute;
    struct message_iter resource = message_iter_bytes((struct slice){0});
    if (message_next_bytes(&group, GROUP_RESOURCE, &field))
        resource = message_iter_into(&field, m->arena);
    for (size_t i = 0; i < m->resource_count; i++)
        if (!attributes_find(resource, RESOURCE_ATTRIBUTES, m->resources[i].key, &attribute) ||
            !value_is(m, &m->resources[i], attribute.pair.value))
            return false;
    return service_matches(m, resource);
}

static bool libraries_match(struct item_matcher *m, struct message_iter scope_group)
{
    struct message_field field;
    struct slice name = {0}, version = {0};
    if (m->library_count == 0)
        return true;
    if (message_next_bytes(&scope_group, SCOPE_SPANS_SCOPE, &field)) {
        struct message_iter scope = message_iter_into(&field, m->arena);
        while (message_next(&scope, &field)) {
            if (field.wire.type != WIRE_BYTES)
                continue;
            if (field.wire.number == SCOPE_NAME)
                name = field.wire.bytes;
            else if (field.wire.number == SCOPE_VERSION)
                version = field.wire.bytes;
        }
    }
    for (size_t i = 0; i < m->library_count; i++)
        if (text_is(m, &m->libraries[i].name, name) &&
            (!m->libraries[i].has_version || text_is(m, &m->libraries[i].version, version)))
            return true;
    return false;
}

static struct slice kind_name(uint64_t kind)
{
    return slice_of_string(kind < KINDS ? kind_names[kind] : "");
}

static bool span_matches(struct item_matcher *m, struct message_iter span)
{
    struct message_field field;
    struct slice name = {0};
    uint64_t kind = 0;
    if (m->name_count + m->kind_count == 0)
        return true;
    while (message_next(&span, &field)) {
        if (field.wire.number == SPAN_NAME && field.wire.type == WIRE_BYTES)
            name = field.wire.bytes;
        else if (field.wire.number == SPAN_KIND && field.wire.type == WIRE_VARINT)
            kind = field.wire.value;
    }
    return any_text_is(m, m->names, m->name_count, name) &&
           any_text_is(m, m->kinds, m->kind_count, kind_name(kind));
}

void item_matcher_begin(struct item_matcher *m, struct batch *batch)
{
    m->arena = &batch->arena;
    m->resource = m->scope = NULL;
    ottl_matcher_begin(m->matcher);
}

/* Resource and scope are looked at once for all items in them. */
static bool groups_match(struct item_matcher *m, const struct items *items)
{
    const struct message_field *resource = &items->fields[0], *scope = &items->fields[1];
    if (m->resource != resource->wire.bytes.data) {
        m->is_unsure = false;
        m->resource_matches = resource_matches(m, message_iter_into(resource, m->arena));
        m->resource_is_unsure = m->is_unsure;
        m->resource = resource->wire.bytes.data;
    }
    if (m->scope != scope->wire.bytes.data) {
        m->is_unsure = false;
        m->scope_matches = libraries_match(m, message_iter_into(scope, m->arena));
        m->scope_is_unsure = m->is_unsure;
        m->scope = scope->wire.bytes.data;
    }
    m->is_unsure = m->resource_is_unsure || m->scope_is_unsure;
    return m->resource_matches && m->scope_matches;
}

bool item_matcher_matches(struct item_matcher *m, struct items *items, bool when_unsure)
{
    bool matches =
        groups_match(m, items) && span_matches(m, item_read(items)) && attributes_match(m, items);
    return m->is_unsure ? when_unsure : matches;
}
