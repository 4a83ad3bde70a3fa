#include "processors/spanjoin/enrich_spans.h"

#include <assert.h>

/* The payload of the field `number`; empty when there is none. */
static struct slice field_of(struct slice message, uint32_t number)
{
    struct message_iter it = message_iter_bytes(message);
    struct message_field field;
    struct slice found = {0};
    while (message_next(&it, &field))
        if (field.wire.number == number && field.wire.type == WIRE_BYTES)
            found = field.wire.bytes;
    return found;
}

/* --- reading --- */

struct reading {
    struct batch *batch;
    const struct spanjoin_settings *settings;
    struct span_learner *learner;
    struct request_spans *spans;
    size_t capacity;
    size_t learned;       /* spans that the learner has got */
    struct arena scratch; /* values of the others */
};

/* Values can be much larger than the spans that have them, where these share a resource. */
enum { LEARNED_TOGETHER = 256 };

static void learn_block(struct reading *reading)
{
    struct request_spans *spans = reading->spans;
    size_t count = spans->count - reading->learned;
    if (!reading->learner || count == 0)
        return;
    reading->learner->learn(reading->learner, spans->puts + reading->learned, count);
    for (; reading->learned < spans->count; reading->learned++)
        spans->puts[reading->learned].facts.values = (struct slice){0};
    arena_deinit(&reading->scratch);
    arena_init(&reading->scratch, reading->batch->arena.budget);
}

/* A span with both ids takes at least this many bytes; there can be many without. */
enum { SPAN_BYTES_MIN = 30 };

static void reserve_puts(struct reading *reading)
{
    size_t bytes = 0;
    for (size_t i = 0; i < reading->batch->part_count; i++)
        bytes += reading->batch->parts[i].root.raw.size;
    reading->capacity = bytes / SPAN_BYTES_MIN + 1;
    reading->spans->puts =
        arena_array(&reading->batch->arena, reading->capacity, sizeof *reading->spans->puts);
}

static void read_span(struct reading *reading, struct slice raw, const struct span_place *place)
{
    struct span_view span = span_view_read(raw);
    struct span_key key;
    if (!span_view_key(&span, &key))
        return;
    assert(reading->spans->count < reading->capacity);
    struct span_put *put = &reading->spans->puts[reading->spans->count];
    put->key = key;
    put->facts = (struct span_facts){
        .start_ns = span.start_ns, .end_ns = span.end_ns, .kind = span.kind, .status = span.status};
    if (reading->learner)
        put->facts.values =
            values_to_keep(&reading->settings->samples, &span, place, &reading->scratch);
    reading->spans->count++;
    if (reading->spans->count - reading->learned == LEARNED_TOGETHER)
        learn_block(reading);
}

static void read_scope(struct reading *reading, struct slice scope_spans, struct slice resource)
{
    struct span_place place = {resource, field_of(scope_spans, SCOPE_SPANS_SCOPE)};
    struct message_iter it = message_iter_bytes(scope_spans);
    struct message_field field;
    while (message_next(&it, &field))
        if (field.wire.number == SCOPE_SPANS_SPANS && field.wire.type == WIRE_BYTES)
            read_span(reading, field.wire.bytes, &place);
}

static void read_resource(struct reading *reading, struct slice resource_spans)
{
    struct slice resource = field_of(resource_spans, RESOURCE_SPANS_RESOURCE);
    struct message_iter it = message_iter_bytes(resource_spans);
    struct message_field field;
    while (message_next(&it, &field))
        if (field.wire.number == RESOURCE_SPANS_SCOPE_SPANS && field.wire.type == WIRE_BYTES)
            read_scope(reading, field.wire.bytes, resource);
}

struct request_spans request_spans_read(struct batch *batch,
                                        const struct spanjoin_settings *settings,
                                        struct span_learner *learner)
{
    assert(!batch_is_changed(batch));
    struct request_spans spans = {0};
    struct reading reading = {
        .batch = batch, .settings = settings, .learner = learner, .spans = &spans};
    arena_init(&reading.scratch, batch->arena.budget);
    reserve_puts(&reading);
    for (size_t i = 0; i < batch->part_count; i++) {
        struct message_iter it = message_iter_bytes(batch->parts[i].root.raw);
        struct message_field field;
        while (message_next(&it, &field))
            if (field.wire.number == TRACES_RESOURCE_SPANS && field.wire.type == WIRE_BYTES)
                read_resource(&reading, field.wire.bytes);
    }
    learn_block(&reading);
    arena_deinit(&reading.scratch);
    return spans;
}

/* --- enriching --- */

struct enriching {
    struct arena *arena;
    const struct spanjoin_settings *settings;
    const struct span_put *next; /* of the spans that have ids */
    const struct span_put *end;
    uint64_t enriched;
};

/* Spans without ids have no put. */
static bool has_key(struct slice raw)
{
    struct span_view span = span_view_read(raw);
    struct span_key key;
    return span_view_key(&span, &key);
}

static void append_attribute(struct message *span, struct arena *arena, struct slice key,
                             struct slice value)
{
    size_t inner =
        wire_size_bytes(KEY_VALUE_KEY, key.size) + wire_size_bytes(KEY_VALUE_VALUE, value.size);
    size_t size = wire_size_bytes(SPAN_ATTRIBUTES, inner);
    uint8_t *fields = arena_alloc(arena, size);
    uint8_t *to = wire_write_header(fields, SPAN_ATTRIBUTES, inner);
    to = wire_write_bytes(to, KEY_VALUE_KEY, key);
    wire_write_bytes(to, KEY_VALUE_VALUE, value);
    message_append(span, arena, slice_of(fields, size));
}

/* Whether the key is among the span's attributes, with or without a value. */
static bool has_attribute(struct slice span, struct slice key)
{
    struct message_iter it = message_iter_bytes(span);
    struct message_field field;
    while (message_next(&it, &field))
        if (field.wire.number == SPAN_ATTRIBUTES && field.wire.type == WIRE_BYTES &&
            slice_equal(field_of(field.wire.bytes, KEY_VALUE_KEY), key))
            return true;
    return false;
}

static void enrich_span(struct enriching *enriching, struct message_iter *it,
                        struct message_field *field, const struct span_place *place,
                        const uint64_t *totals)
{
    const struct spanjoin_side *side = &enriching->settings->spans;
    struct span_view span = span_view_read(field->wire.bytes);
    struct message *node = NULL;
    for (size_t i = 0; i < side->joined_count; i++) {
        if (has_attribute(span.raw, side->joined[i].key))
            continue;
        struct slice value = value_for_span(side, i, &span, place, totals, enriching->arena);
        if (value.size == 0)
            continue;
        if (!node)
            node = message_open(it, field);
        append_attribute(node, enriching->arena, side->joined[i].key, value);
    }
    enriching->enriched += node != NULL;
}

/* Opens the way down only where a span has totals. */
static void enrich_scope(struct enriching *enriching, struct message_iter *parent,
                         struct message_field *scope, struct slice resource)
{
    struct span_place place = {resource, field_of(scope->wire.bytes, SCOPE_SPANS_SCOPE)};
    struct message *node = message_open(parent, scope);
    struct message_iter it = message_iter(node, enriching->arena);
    struct message_field field;
    while (message_next(&it, &field)) {
        if (field.wire.number != SCOPE_SPANS_SPANS || field.wire.type != WIRE_BYTES ||
            !has_key(field.wire.bytes))
            continue;
        assert(enriching->next < enriching->end);
        const uint64_t *totals = enriching->next++->totals;
        if (totals)
            enrich_span(enriching, &it, &field, &place, totals);
    }
}

static void enrich_resource(struct enriching *enriching, struct message_iter *parent,
                            struct message_field *resource_spans)
{
    struct slice resource = field_of(resource_spans->wire.bytes, RESOURCE_SPANS_RESOURCE);
    struct message *node = message_open(parent, resource_spans);
    struct message_iter it = message_iter(node, enriching->arena);
    struct message_field field;
    while (message_next(&it, &field))
        if (field.wire.number == RESOURCE_SPANS_SCOPE_SPANS && field.wire.type == WIRE_BYTES)
            enrich_scope(enriching, &it, &field, resource);
}

static bool any_totals(const struct request_spans *spans)
{
    for (size_t i = 0; i < spans->count; i++)
        if (spans->puts[i].totals)
            return true;
    return false;
}

uint64_t request_spans_enrich(struct batch *batch, const struct spanjoin_settings *settings,
                              const struct request_spans *spans)
{
    if (!any_totals(spans) || settings->spans.joined_count == 0)
        return 0;
    struct enriching enriching = {.arena = &batch->arena,
                                  .settings = settings,
                                  .next = spans->puts,
                                  .end = spans->puts + spans->count};
    for (size_t i = 0; i < batch->part_count; i++) {
        struct message_iter it = message_iter(&batch->parts[i].root, &batch->arena);
        struct message_field field;
        while (message_next(&it, &field))
            if (field.wire.number == TRACES_RESOURCE_SPANS && field.wire.type == WIRE_BYTES)
                enrich_resource(&enriching, &it, &field);
    }
    assert(enriching.next == enriching.end);
    return enriching.enriched;
}
