#include "processors/probabilistic_sampler/sample_spans.h"

#include "core/data/attributes.h"
#include "core/data/wire_out.h"

#include <assert.h>

struct span_sampling {
    const struct trace_sampler *sampler;
    struct sampled_counts *counts;
    struct arena *arena;
    struct arena scratch; /* of the scope that is being written */
    uint32_t kept;
    struct wire_out out; /* the new scope */
    bool changes;
};

/* ---- a span ---- */

#define PRIORITY "sampling.priority"

/* Whether the attribute certainly has another key: a short one of another length, a short value,
 * and nothing else, as most have. */
static bool has_other_key(struct slice payload)
{
    const uint8_t *at = payload.data;
    if (payload.size < 4 || at[0] != (KEY_VALUE_KEY << 3 | WIRE_BYTES) ||
        at[1] == sizeof PRIORITY - 1 || at[1] >= 0x80 || at[1] > payload.size - 4)
        return false;
    size_t value = 2 + (size_t)at[1];
    return at[value] == (KEY_VALUE_VALUE << 3 | WIRE_BYTES) && at[value + 1] < 0x80 &&
           value + 2 + at[value + 1] == payload.size;
}

static void read_attribute(struct sampled_span *span, struct slice payload)
{
    if (span->has_priority || has_other_key(payload))
        return;
    struct key_value pair = key_value_read(payload);
    if (!slice_is(pair.key, PRIORITY))
        return;
    span->has_priority = true;
    span->priority = pair.value;
}

static struct sampled_span read_span(struct slice payload)
{
    struct wire_cursor cursor = wire_cursor(payload);
    struct wire_field field;
    struct sampled_span span = {0};
    while (wire_next(&cursor, &field)) {
        if (field.type != WIRE_BYTES)
            continue;
        if (field.number == SPAN_TRACE_ID)
            span.trace_id = field.bytes;
        else if (field.number == SPAN_TRACE_STATE)
            span.tracestate = field.bytes;
        else if (field.number == SPAN_ATTRIBUTES)
            read_attribute(&span, field.bytes);
    }
    assert(!cursor.broken); /* scanned */
    return span;
}

/* Writes a span with another tracestate, which is its last field. */
static void write_span(struct wire_out *out, struct slice payload, struct slice tracestate)
{
    struct wire_out_field span =
        wire_out_open(out, SCOPE_SPANS_SPANS, payload.size + tracestate.size);
    struct wire_cursor cursor = wire_cursor(payload);
    const uint8_t *unwritten = cursor.next;
    struct wire_field field;
    while (wire_next(&cursor, &field)) {
        if (field.number != SPAN_TRACE_STATE)
            continue;
        wire_out_put(out, slice_of(unwritten, (size_t)(field.start - unwritten)));
        unwritten = field.end;
    }
    wire_out_put(out, slice_of(unwritten, (size_t)(cursor.end - unwritten)));
    if (tracestate.size > 0) {
        uint8_t *to = wire_out_room(out, wire_size_bytes(SPAN_TRACE_STATE, tracestate.size));
        out->size += (size_t)(wire_write_bytes(to, SPAN_TRACE_STATE, tracestate) - to);
    }
    wire_out_close(out, span, SCOPE_SPANS_SPANS);
}

/* Writes what becomes of a span; nothing if it is not kept. */
static void sample_span(struct span_sampling *sampling, const struct wire_field *field)
{
    enum { TRACESTATE_MAX = 1024 + SAMPLING_STATE_ROOM };
    uint8_t text[TRACESTATE_MAX];
    struct sampling_state state;
    struct sampled_span span = read_span(field->bytes);
    struct sampler_decision decision = trace_sampler_decide(sampling->sampler, &span, &state);
    sampling->counts->of[decision.policy][decision.is_kept]++;
    sampling->kept += decision.is_kept;
    if (!decision.is_kept) {
        sampling->changes = true;
        return;
    }
    struct slice tracestate = span.tracestate;
    if (decision.writes_state)
        tracestate = slice_of(text, (size_t)(sampling_state_write(&state, text) - text));
    if (slice_equal(tracestate, span.tracestate)) {
        wire_out_put(&sampling->out, slice_of(field->start, (size_t)(field->end - field->start)));
        return;
    }
    sampling->changes = true;
    write_span(&sampling->out, field->bytes, tracestate);
}

/* ---- scopes and resources ---- */

/* Returns the payload as plain bytes, written out to scratch memory if it was changed. */
static struct slice plain_bytes(struct span_sampling *sampling, const struct message_field *field)
{
    if (!field->node || !field->node->changed)
        return field->wire.bytes;
    size_t size = message_measure(field->node);
    uint8_t *data = arena_alloc(&sampling->scratch, size);
    message_write(field->node, data);
    return slice_of(data, size);
}

/* Samples the spans of one ScopeSpans into `out`. Returns whether spans are left. */
static bool sample_scope(struct span_sampling *sampling, struct slice scope)
{
    struct wire_cursor cursor = wire_cursor(scope);
    struct wire_field field;
    uint32_t before = sampling->kept;
    sampling->out.size = 0;
    sampling->changes = false;
    while (wire_next(&cursor, &field))
        if (field.number == SCOPE_SPANS_SPANS && field.type == WIRE_BYTES)
            sample_span(sampling, &field);
        else
            wire_out_put(&sampling->out, slice_of(field.start, (size_t)(field.end - field.start)));
    assert(!cursor.broken);
    return sampling->kept > before;
}

/* Returns whether scopes are left. */
static bool sample_group(struct span_sampling *sampling, struct message *group)
{
    struct message_iter it = message_iter(group, sampling->arena);
    struct message_field scope;
    bool any = false;
    while (message_next_bytes(&it, RESOURCE_SPANS_SCOPE_SPANS, &scope)) {
        bool stays = sample_scope(sampling, plain_bytes(sampling, &scope));
        any |= stays;
        if (!stays)
            message_remove(&it, &scope);
        else if (sampling->changes)
            message_replace(
                &it, &scope,
                arena_copy(sampling->arena, slice_of(sampling->out.data, sampling->out.size)));
        arena_deinit(&sampling->scratch);
    }
    return any;
}

static void sample_part(struct span_sampling *sampling, struct message *root)
{
    struct message_iter it = message_iter(root, sampling->arena);
    struct message_field group;
    while (message_next_bytes(&it, TRACES_RESOURCE_SPANS, &group))
        if (!sample_group(sampling, message_open(&it, &group)))
            message_remove(&it, &group);
}

void sample_spans(struct batch *batch, const struct trace_sampler *sampler,
                  struct sampled_counts *counts)
{
    struct span_sampling sampling = {.sampler = sampler, .counts = counts, .arena = &batch->arena};
    arena_init(&sampling.scratch, batch->arena.budget);
    sampling.out.budget = batch->arena.budget;
    for (size_t i = 0; i < batch->part_count; i++)
        sample_part(&sampling, &batch->parts[i].root);
    wire_out_deinit(&sampling.out);
    arena_deinit(&sampling.scratch);
    batch->items = sampling.kept;
}
