#include "processors/spanjoin/thread_of_span.h"

#include "core/data/any_value.h"

enum thread_id_kind thread_id_kind_of(struct slice resource)
{
    static const char *const of_os[] = {"cpp", "swift", "erlang", "go", "php"};
    struct any_value language = any_value_read(
        attribute_value(resource, RESOURCE_ATTRIBUTES, SLICE("telemetry.sdk.language")));
    if (language.kind != ANY_VALUE_STRING)
        return THREAD_ID_OS;
    for (size_t i = 0; i < sizeof of_os / sizeof *of_os; i++)
        if (slice_is(language.bytes, of_os[i]))
            return THREAD_ID_OS;
    return THREAD_ID_RUNTIME;
}

bool thread_of_span(const struct span_view *span, const struct span_key *key,
                    struct thread_span *out)
{
    bool has_id = false;
    struct wire_cursor cursor = wire_cursor(span->attributes);
    struct wire_field field;
    *out = (struct thread_span){.key = *key, .start_ns = span->start_ns, .end_ns = span->end_ns};
    while (wire_next_bytes(&cursor, SPAN_ATTRIBUTES, &field)) {
        struct key_value pair = key_value_read(field.bytes);
        if (slice_is(pair.key, "thread.id")) {
            struct any_value id = any_value_read(pair.value);
            has_id = id.kind == ANY_VALUE_INT;
            out->id = id.integer;
        } else if (slice_is(pair.key, "thread.name")) {
            struct any_value name = any_value_read(pair.value);
            out->name = name.kind == ANY_VALUE_STRING ? name.bytes : (struct slice){0};
        }
    }
    if (span->parent_id.size == SPAN_ID_SIZE)
        memcpy(out->parent_id, span->parent_id.data, SPAN_ID_SIZE);
    return has_id;
}
