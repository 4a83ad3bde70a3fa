#include "processors/tail_sampling/trace_reader.h"

#include "core/base/hash.h"
#include "core/base/index_table.h"
#include "core/base/memory.h"
#include "core/data/otlp.h"

#include <assert.h>

void trace_reader_init(struct trace_reader *reader, const struct tail_plan *plan,
                       const struct leaf_programs *programs, const char *label)
{
    *reader = (struct trace_reader){.plan = plan, .words = facts_words(plan->bit_count)};
    leaf_tests_init(&reader->tests, programs, label);
    arena_init(&reader->arena, NULL);
}

void trace_reader_deinit(struct trace_reader *reader)
{
    if (!reader->plan)
        return;
    leaf_tests_deinit(&reader->tests);
    arena_deinit(&reader->arena);
    reader->plan = NULL;
}

void trace_reader_clear(struct trace_reader *reader)
{
    struct trace_reader kept = *reader;
    arena_deinit(&kept.arena);
    *reader = (struct trace_reader){
        .plan = kept.plan, .tests = kept.tests, .words = kept.words, .arena = kept.arena};
}

/* ---- traces ---- */

static uint32_t add_trace(struct trace_reader *reader, const uint8_t *id, uint32_t hash)
{
    uint32_t index = reader->trace_count, capacity = reader->trace_capacity;
    reader->traces = arena_grow(&reader->arena, reader->traces, index, &reader->trace_capacity,
                                sizeof *reader->traces);
    if (reader->trace_capacity != capacity) {
        uint64_t *bits = arena_array(
            &reader->arena, (size_t)reader->trace_capacity * (reader->words + 1), sizeof *bits);
        if (index > 0)
            memcpy(bits, reader->bits, (size_t)index * reader->words * sizeof *bits);
        reader->bits = bits;
    }
    index_table_reserve(&reader->by_id, 1, &reader->arena);
    index_table_add_new(&reader->by_id, hash, index);
    reader->traces[reader->trace_count++] = (struct read_trace){.id = id};
    return index;
}

static uint32_t find_trace(struct trace_reader *reader, const uint8_t *id)
{
    if (reader->span_count > 0) { /* most often that of the span before */
        uint32_t last = reader->spans[reader->span_count - 1].trace;
        if (memcmp(reader->traces[last].id, id, TRACE_ID_SIZE) == 0)
            return last;
    }
    uint32_t hash = (uint32_t)hash_bytes(slice_of(id, TRACE_ID_SIZE));
    if (reader->by_id.slots) {
        struct index_probe probe = index_table_probe(&reader->by_id, hash);
        for (uint32_t i; index_table_next(&reader->by_id, &probe, &i);)
            if (memcmp(reader->traces[i].id, id, TRACE_ID_SIZE) == 0)
                return i;
    }
    return add_trace(reader, id, hash);
}

/* ---- spans ---- */

struct span_fields {
    const uint8_t *id;
    struct trace_facts facts;
    struct tested_span tested;
};

static int read_status(struct slice status)
{
    struct wire_cursor cursor = wire_cursor(status);
    struct wire_field field;
    int code = 0;
    while (wire_next(&cursor, &field))
        if (field.number == STATUS_CODE && field.type == WIRE_VARINT)
            code = field.value > 2 ? 3 : (int)field.value;
    return code;
}

static void read_field(const struct wire_field *field, struct span_fields *span)
{
    switch (field->number) {
    case SPAN_TRACE_ID:
        if (field->bytes.size == TRACE_ID_SIZE)
            span->id = field->bytes.data;
        break;
    case SPAN_PARENT_SPAN_ID:
        for (size_t i = 0; i < field->bytes.size; i++)
            if (field->bytes.data[i])
                span->facts.has_root = false;
        break;
    case SPAN_TRACE_STATE:
        span->tested.trace_state = field->bytes;
        break;
    case SPAN_START_TIME_UNIX_NANO:
        span->facts.start_ns = field->value;
        break;
    case SPAN_END_TIME_UNIX_NANO:
        span->facts.end_ns = field->value;
        break;
    case SPAN_STATUS:
        span->tested.status = read_status(field->bytes);
        break;
    case SPAN_FLAGS:
        span->tested.flags = field->value;
        break;
    default:
        break;
    }
}

static struct span_fields read_fields(struct slice payload)
{
    static const uint8_t no_id[TRACE_ID_SIZE];
    struct span_fields span = {
        .id = no_id, .facts = {.spans = 1, .has_root = true}, .tested = {.bytes = payload}};
    struct wire_cursor cursor = wire_cursor(payload);
    struct wire_field field;
    while (wire_next(&cursor, &field))
        read_field(&field, &span);
    span.facts.bytes = wire_size_bytes(SCOPE_SPANS_SPANS, payload.size);
    return span;
}

static void read_span(struct trace_reader *reader, struct slice payload)
{
    struct span_fields span = read_fields(payload);
    uint32_t index = find_trace(reader, span.id);
    struct read_trace *trace = &reader->traces[index];
    uint64_t *bits = reader->bits + (size_t)index * reader->words;
    if (trace->group != reader->group_count) {
        trace->group = reader->group_count;
        span.facts.bytes += reader->groups[reader->group_count - 1].size;
        for (uint32_t i = 0; i < reader->words; i++)
            bits[i] |= reader->group_bits[i];
    }
    if (reader->words > 0) {
        memset(reader->span_bits, 0, reader->words * sizeof *bits);
        if (reader->tests.has_conditions)
            ottl_item_set_span(&reader->tests.item, message_iter_bytes(payload));
        leaf_tests_span(&reader->tests, &span.tested, bits, reader->span_bits);
    }
    facts_add(&trace->facts, bits, &span.facts, reader->span_bits, reader->words);
    trace->spans++;
    reader->spans[reader->span_count++] =
        (struct read_span){payload, reader->scope_count - 1, index};
}

/* ---- scopes and groups ---- */

/* Returns the fields of a message but those of this number, one after another: in place if they are
 * adjacent, otherwise copied. */
static struct slice other_fields(struct trace_reader *reader, struct slice payload, uint32_t number)
{
    struct wire_cursor cursor = wire_cursor(payload);
    struct wire_field field;
    struct slice header = {0};
    uint8_t *copy = NULL;
    while (wire_next(&cursor, &field)) {
        size_t size = (size_t)(field.end - field.start);
        if (field.number == number)
            continue;
        if (!copy && header.size > 0 && header.data + header.size != field.start) {
            copy = arena_alloc(&reader->arena, header.size + (size_t)(cursor.end - field.start));
            memcpy(copy, header.data, header.size);
            header.data = copy;
        }
        if (copy)
            memcpy(copy + header.size, field.start, size);
        else if (header.size == 0)
            header.data = field.start;
        header.size += size;
    }
    return header;
}

static void read_scope(struct trace_reader *reader, struct slice payload)
{
    reader->scopes = arena_grow(&reader->arena, reader->scopes, reader->scope_count,
                                &reader->scope_capacity, sizeof *reader->scopes);
    reader->scopes[reader->scope_count++] = (struct read_scope){
        other_fields(reader, payload, SCOPE_SPANS_SPANS), reader->group_count - 1};
    if (reader->tests.has_conditions)
        ottl_item_set_scope_group(&reader->tests.item, message_iter_bytes(payload));
    struct wire_cursor cursor = wire_cursor(payload);
    struct wire_field field;
    while (wire_next_bytes(&cursor, SCOPE_SPANS_SPANS, &field))
        read_span(reader, field.bytes);
}

static void read_group(struct trace_reader *reader, struct slice payload)
{
    reader->groups = arena_grow(&reader->arena, reader->groups, reader->group_count,
                                &reader->group_capacity, sizeof *reader->groups);
    reader->groups[reader->group_count++] =
        other_fields(reader, payload, RESOURCE_SPANS_SCOPE_SPANS);
    memset(reader->group_bits, 0, reader->words * sizeof *reader->group_bits);
    if (reader->words > 0)
        leaf_tests_resource(&reader->tests, wire_last_bytes(payload, RESOURCE_SPANS_RESOURCE),
                            reader->group_bits);
    if (reader->tests.has_conditions)
        ottl_item_set_group(&reader->tests.item, message_iter_bytes(payload));
    struct wire_cursor cursor = wire_cursor(payload);
    struct wire_field field;
    while (wire_next_bytes(&cursor, RESOURCE_SPANS_SCOPE_SPANS, &field))
        read_scope(reader, field.bytes);
}

static void read_buffer(struct trace_reader *reader, const struct buffer *buffer)
{
    struct wire_cursor cursor = wire_cursor(buffer_slice(buffer));
    struct wire_field field;
    while (wire_next_bytes(&cursor, TRACES_RESOURCE_SPANS, &field))
        read_group(reader, field.bytes);
}

static void begin(struct trace_reader *reader, uint32_t spans)
{
    trace_reader_clear(reader);
    reader->spans = arena_array(&reader->arena, spans + 1, sizeof *reader->spans);
    reader->group_bits = arena_array(&reader->arena, reader->words + 1, sizeof(uint64_t));
    reader->span_bits = arena_array(&reader->arena, reader->words + 1, sizeof(uint64_t));
    leaf_tests_begin(&reader->tests);
}

void trace_reader_read(struct trace_reader *reader, struct batch *batch)
{
    begin(reader, batch->items);
    for (size_t i = 0; i < batch->part_count; i++)
        read_buffer(reader, batch->parts[i].buffer);
    assert(reader->span_count == batch->items);
}

void trace_reader_read_buffers(struct trace_reader *reader, struct buffer *const *buffers,
                               size_t buffer_count, uint32_t spans)
{
    begin(reader, spans);
    for (size_t i = 0; i < buffer_count; i++)
        read_buffer(reader, buffers[i]);
    assert(reader->span_count == spans);
}
