/* How the store reads traces requests. */
#include "core/base/buffer.h"
#include "core/base/saturate.h"
#include "core/base/text.h"
#include "core/data/any_value.h"
#include "core/data/attributes.h"
#include "core/data/message.h"
#include "core/data/span_fields.h"
#include "core/data/span_trees.h"
#include "core/data/thread_ids.h"
#include "extensions/explore/percentiles.h"
#include "extensions/explore/store.h"

#include <math.h>

enum { ATTRIBUTES_MAX = 64 /* of a span or resource that are kept */ };

/* The resource and scope being read. */
struct reading {
    struct store *store;
    const struct join_offer *offer;
    uint64_t arrived_ns;
    uint32_t service;                  /* number */
    uint32_t version, resource, scope; /* texts */
    struct thread_ids thread_ids;
    bool guesses_threads;
};

/* ---- attributes ---- */

static void print_any(struct text *out, const struct any_value *value)
{
    switch (value->kind) {
    case ANY_VALUE_BOOL:
        text_append(out, value->truth ? "true" : "false");
        break;
    case ANY_VALUE_INT:
        text_printf(out, "%lld", (long long)value->integer);
        break;
    case ANY_VALUE_DOUBLE:
        if (isfinite(value->real))
            text_printf(out, "%.17g", value->real);
        else
            text_append(out, "null");
        break;
    default: /* STRING; the kinds that are lists are shown as what they are */
        text_append_char(out, '"');
        if (value->kind == ANY_VALUE_STRING)
            text_append_json(out, slice_of(value->bytes.data, value->bytes.size > STORE_TEXT_MAX
                                                                  ? STORE_TEXT_MAX
                                                                  : value->bytes.size));
        else if (value->kind != ANY_VALUE_EMPTY)
            text_append(out, value->kind == ANY_VALUE_BYTES ? "(bytes)" : "(list)");
        text_append_char(out, '"');
    }
}

static bool has_key(const struct slice *keys, size_t count, struct slice key)
{
    for (size_t i = 0; i < count; i++)
        if (slice_equal(keys[i], key))
            return true;
    return false;
}

/* Appends attributes as members of a JSON object, as far as they fit. */
static void print_attributes(struct text *out, struct slice message, uint32_t number,
                             bool *has_thread)
{
    struct message_iter it = message_iter_bytes(message);
    struct message_field field;
    struct slice keys[ATTRIBUTES_MAX];
    size_t count = 0;
    while (count < ATTRIBUTES_MAX && message_next_bytes(&it, number, &field)) {
        struct key_value pair = key_value_read(field.wire.bytes);
        struct any_value value = any_value_read(pair.value);
        size_t before = out->size;
        *has_thread |= slice_is(pair.key, "thread.id") || slice_is(pair.key, "thread.name");
        if (pair.key.size > STORE_TEXT_MAX || has_key(keys, count, pair.key))
            continue;
        keys[count++] = pair.key;
        text_append(out, before > 0 ? ",\"" : "\"");
        text_append_json(out, pair.key);
        text_append(out, "\":");
        print_any(out, &value);
        if (out->size > STORE_JSON_MAX) {
            out->size = before;
            return;
        }
    }
}

static uint32_t read_attributes(struct store *store, struct slice message, uint32_t number,
                                bool *has_thread)
{
    struct text out = {0};
    print_attributes(&out, message, number, has_thread);
    uint32_t text = store_names_text(&store->names, slice_of(out.data, out.size), STORE_JSON_MAX);
    text_deinit(&out);
    return text == STORE_TEXT_MERGED ? STORE_TEXT_EMPTY : text; /* it has to be JSON */
}

/* ---- spans ---- */

/* What OTLP does not know is as if it were not set. */
static struct span_fields read_span(struct slice bytes)
{
    struct span_fields span = span_fields_read(bytes);
    span.kind = span.kind < SPAN_KINDS ? span.kind : 0;
    span.status = span.status < SPAN_STATUSES ? span.status : 0;
    return span;
}

static void count_span(struct reading *reading, const struct store_span *span)
{
    struct store_cells *cells = &reading->store->cells;
    struct store_service *service = store_service_at(cells, reading->service);
    service->spans++;
    service->errors += span->status == 2;
    store_versions_note(&service->versions, reading->version);
    store_versions_note(&store_operation_at(cells, span->operation)->versions, reading->version);
    store_cell_add_spans(store_cell_at(cells, span->cell), 1);
    struct store_entry entry = {1, span->cell, fine_bucket_of(span->duration_ns),
                                STORE_ENTRY_DURATION, STORE_BUCKET_ANY};
    store_cells_add(cells, &entry);
    entry.type = STORE_ENTRY_CPU;
    entry.node = store_bucket_of((uint64_t)span->cpu_ns);
    store_cells_add(cells, &entry);
}

/* Whether its thread is compared by name only, for want of a language of the resource. */
static bool lacks_language(const struct reading *reading, struct slice span)
{
    int64_t id;
    if (!reading->guesses_threads)
        return false;
    struct any_value value =
        any_value_read(attribute_value(span, SPAN_ATTRIBUTES, SLICE("thread.id")));
    return thread_id_read(&value, &id) &&
           thread_ids_kind(reading->thread_ids, id) == THREAD_ID_RUNTIME;
}

static void set_fields(struct reading *reading, struct store_span *span,
                       const struct span_fields *fields, struct slice bytes)
{
    struct store *store = reading->store;
    uint32_t name = store_names_text(&store->names, fields->name, STORE_TEXT_MAX);
    span->name = name;
    span->start_ns = fields->start_ns;
    span->duration_ns = fields->end_ns > fields->start_ns ? fields->end_ns - fields->start_ns : 0;
    span->arrived_ns = reading->arrived_ns;
    span->minute = (uint32_t)(store->now_ns / STORE_MINUTE_NS);
    span->tenant = reading->offer->tenant;
    span->kind = fields->kind;
    span->status = fields->status;
    span->version = reading->version;
    span->resource = reading->resource;
    span->scope = reading->scope;
    span->status_message = store_names_text(&store->names, fields->status_message, STORE_TEXT_MAX);
    span->attributes = read_attributes(store, bytes, SPAN_ATTRIBUTES, &span->has_thread);
    span->lacks_language = span->has_thread && lacks_language(reading, bytes);
    span->operation = store_cells_operation(&store->cells, reading->service, name, fields->kind);
    const struct store_cell key = {.operation = span->operation,
                                   .version = reading->version,
                                   .minute = span->minute,
                                   .status = span->status};
    span->cell = store_cells_cell(&store->cells, &key);
    if (fields->parent_id.size == SPAN_ID_SIZE)
        memcpy(span->parent_id, fields->parent_id.data, SPAN_ID_SIZE);
    span->is_entry =
        !store_span_has_parent(span) || span_parent_is_remote(fields->flags, fields->kind);
}

/* A span that is sent again counts once, while the store remembers it. */
static void add_span(struct reading *reading, struct slice bytes)
{
    struct store_spans *spans = &reading->store->spans;
    struct span_fields fields = read_span(bytes);
    if (fields.trace_id.size != TRACE_ID_SIZE || fields.span_id.size != SPAN_ID_SIZE)
        return;
    uint32_t number = store_spans_find(spans, fields.trace_id.data, fields.span_id.data);
    if (number == STORE_NONE)
        number = store_spans_add(spans, fields.trace_id.data, fields.span_id.data);
    if (store_span_has_arrived(store_span_at(spans, number)))
        return;
    store_spans_set_trace(spans, number, fields.trace_id.data);
    struct store_span *span = store_span_at(spans, number);
    set_fields(reading, span, &fields, bytes);
    count_span(reading, span);
    store_spans_settle(spans, number);
    store_spans_note(spans, number);
}

/* ---- groups ---- */

static uint32_t read_scope_name(struct store *store, struct slice scope)
{
    struct message_iter it = message_iter_bytes(scope);
    struct message_field field;
    struct slice name = {0};
    while (message_next_bytes(&it, SCOPE_NAME, &field))
        name = field.wire.bytes;
    return store_names_text(&store->names, name, STORE_TEXT_MAX);
}

static void read_scope(struct reading *reading, struct slice bytes)
{
    struct message_iter it = message_iter_bytes(bytes);
    struct message_field field;
    reading->scope = STORE_TEXT_EMPTY;
    while (message_next_bytes(&it, SCOPE_SPANS_SCOPE, &field))
        reading->scope = read_scope_name(reading->store, field.wire.bytes);
    it = message_iter_bytes(bytes);
    while (message_next_bytes(&it, SCOPE_SPANS_SPANS, &field))
        add_span(reading, field.wire.bytes);
}

static void read_group(struct reading *reading, struct slice bytes)
{
    struct store *store = reading->store;
    struct message_iter it = message_iter_bytes(bytes);
    struct message_field field;
    struct slice resource = {0};
    uint32_t service;
    bool ignored = false;
    while (message_next_bytes(&it, RESOURCE_SPANS_RESOURCE, &field))
        resource = field.wire.bytes;
    store_read_service(store, resource, &service, &reading->version);
    reading->service = store_cells_service(&store->cells, service);
    reading->resource = read_attributes(store, resource, RESOURCE_ATTRIBUTES, &ignored);
    reading->thread_ids = thread_ids_of(resource);
    reading->guesses_threads = thread_ids_are_guessed(resource);
    it = message_iter_bytes(bytes);
    while (message_next_bytes(&it, RESOURCE_SPANS_SCOPE_SPANS, &field))
        read_scope(reading, field.wire.bytes);
}

/* Reads what spans have gained. */
static void read_gains(struct store *store, const struct join_report *report)
{
    for (uint32_t i = 0; i < report->size.spans; i++) {
        const struct join_span *left = &report->spans[i];
        uint32_t number = store_spans_find(&store->spans, left->trace_id, left->span_id);
        if (number == STORE_NONE)
            continue;
        struct store_span *span = store_span_at(&store->spans, number);
        if (left->cpu_ns > span->told_cpu_ns)
            span->told_cpu_ns = left->cpu_ns;
        span->gains = (uint8_t)(STORE_HAD_SAMPLES | (left->has_gained ? STORE_GAINED : 0) |
                                (left->gains_profile_id ? STORE_GAINED_PROFILE_ID : 0) |
                                (left->is_incomplete ? STORE_IS_INCOMPLETE : 0));
    }
}

void store_read_traces(struct store *store, const struct join_offer *offer, uint64_t arrived_ns)
{
    struct reading reading = {.store = store, .offer = offer, .arrived_ns = arrived_ns};
    assert(offer->signal == SIGNAL_TRACES);
    for (size_t i = 0; i < offer->part_count; i++) {
        struct message_iter it = message_iter_bytes(buffer_slice(offer->parts[i]));
        struct message_field field;
        while (message_next_bytes(&it, TRACES_RESOURCE_SPANS, &field))
            read_group(&reading, field.wire.bytes);
    }
    if (offer->report)
        read_gains(store, offer->report);
}
