#include "processors/redaction/span_names.h"

#include "core/data/any_value.h"
#include "core/data/attributes.h"

/* Of enum SpanKind. */
enum { KIND_INTERNAL = 1, KIND_SERVER = 2, KIND_CLIENT = 3 };

struct span_summary {
    struct slice name;
    uint64_t kind;
};

static struct span_summary read_span(struct message_iter span)
{
    struct span_summary summary = {0};
    struct message_field field;
    while (message_next(&span, &field))
        if (field.wire.number == SPAN_NAME && field.wire.type == WIRE_BYTES)
            summary.name = field.wire.bytes;
        else if (field.wire.number == SPAN_KIND && field.wire.type == WIRE_VARINT)
            summary.kind = field.wire.value;
    return summary;
}

static struct slice find_text(struct message_iter message, uint32_t number, struct slice key)
{
    struct attribute attribute;
    if (!attributes_find(message, number, key, &attribute))
        return (struct slice){0};
    struct any_value value = any_value_read(attribute.pair.value);
    return value.kind == ANY_VALUE_STRING ? value.bytes : (struct slice){0};
}

struct slice span_names_database(struct message_iter message, uint32_t number)
{
    struct slice system = find_text(message, number, SLICE("db.system.name"));
    return system.size > 0 ? system : find_text(message, number, SLICE("db.system"));
}

static bool is_of_http(struct message_iter span, struct slice name)
{
    static const char *const keys[] = {"http.route",
                                       "http.request.method",
                                       "http.request.method_original",
                                       "http.response.status_code",
                                       "url.full",
                                       "http.scheme",
                                       "http.target",
                                       "http.method",
                                       "http.url"};
    struct attribute attribute;
    if (name.size > 0 && memchr(name.data, '/', name.size))
        return true;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (attributes_find(span, SPAN_ATTRIBUTES, slice_of_string(keys[i]), &attribute))
            return true;
    return false;
}

bool span_names_sanitize(struct redactor *redactor, struct message_iter span,
                         struct slice *name_out)
{
    const struct redaction_settings *settings = redactor->rules->settings;
    bool urls = settings->url_sanitizer.enabled && settings->url_sanitizer.sanitize_span_name;
    bool queries = redactor->has_databases && settings->db_sanitizer.sanitize_span_name;
    if (!urls && !queries)
        return false;
    struct span_summary summary = read_span(span);
    bool is_remote = summary.kind == KIND_CLIENT || summary.kind == KIND_SERVER;
    bool is_url = urls && is_remote && is_of_http(span, summary.name);
    bool is_query = queries && (is_remote || summary.kind == KIND_INTERNAL);
    if (summary.name.size == 0 || (!is_url && !is_query))
        return false;
    redactor->database = is_query ? span_names_database(span, SPAN_ATTRIBUTES) : (struct slice){0};
    *name_out = summary.name;
    return redactor_sanitize_name(redactor, is_url, name_out);
}

void span_names_set(struct message_iter span, struct slice name)
{
    struct message_iter at = span;
    struct message_field field;
    while (message_next(&at, &field)) /* only the last one counts, but nothing may be left */
        if (field.wire.number == SPAN_NAME)
            message_remove(&at, &field);
    uint8_t *to = arena_alloc(span.arena, wire_size_bytes(SPAN_NAME, name.size));
    uint8_t *end = wire_write_bytes(to, SPAN_NAME, name);
    message_append(span.message, span.arena, slice_of(to, (size_t)(end - to)));
}
