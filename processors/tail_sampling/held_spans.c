#include "processors/tail_sampling/held_spans.h"

#include "core/base/memory.h"
#include "core/data/otlp.h"

#include <assert.h>

size_t held_request_memory(const struct trace_reader *reader, const struct batch *batch)
{
    return batch_memory(batch) + sizeof(struct held_request) +
           reader->span_count * sizeof(struct held_span) +
           reader->scope_count * sizeof(struct held_scope) +
           reader->group_count * sizeof(struct slice) + reader->trace_count * sizeof(struct piece);
}

/* ---- holding ---- */

/* Whether the bytes are in the request, and so live as long as it is held. */
static bool is_received(const struct batch *batch, struct slice bytes)
{
    for (size_t i = 0; i < batch->part_count; i++) {
        const struct buffer *buffer = batch->parts[i].buffer;
        if (bytes.data >= buffer->data && bytes.data < buffer->data + buffer->size)
            return true;
    }
    return bytes.size == 0;
}

static size_t joined_bytes(const struct trace_reader *reader, const struct batch *batch)
{
    size_t size = 0;
    for (uint32_t i = 0; i < reader->group_count; i++)
        size += is_received(batch, reader->groups[i]) ? 0 : reader->groups[i].size;
    for (uint32_t i = 0; i < reader->scope_count; i++)
        size += is_received(batch, reader->scopes[i].header) ? 0 : reader->scopes[i].header.size;
    return size;
}

static struct slice keep(const struct batch *batch, struct slice bytes, uint8_t **to)
{
    if (is_received(batch, bytes))
        return bytes;
    memcpy(*to, bytes.data, bytes.size);
    bytes.data = *to;
    *to += bytes.size;
    return bytes;
}

/* Sets the pieces, and puts the spans of each trace one after another. */
static void sort_spans(struct held_request *request, const struct trace_reader *reader)
{
    uint32_t first = 0;
    for (uint32_t i = 0; i < reader->trace_count; i++) {
        request->pieces[i] = (struct piece){.request = request, .first = first};
        first += reader->traces[i].spans;
    }
    for (uint32_t i = 0; i < reader->span_count; i++) {
        const struct read_span *span = &reader->spans[i];
        struct piece *piece = &request->pieces[span->trace];
        request->spans[piece->first + piece->count++] =
            (struct held_span){span->bytes.data, (uint32_t)span->bytes.size, span->scope};
    }
}

/* Everything is in one block of memory. */
static struct held_request *allocate(const struct trace_reader *reader, const struct batch *batch)
{
    size_t buffers = batch->part_count * sizeof(struct buffer *);
    size_t groups = reader->group_count * sizeof(struct slice);
    size_t scopes = reader->scope_count * sizeof(struct held_scope);
    size_t spans = reader->span_count * sizeof(struct held_span);
    size_t pieces = reader->trace_count * sizeof(struct piece);
    struct held_request *request = memory_zalloc(sizeof *request + buffers + groups + scopes +
                                                 spans + pieces + joined_bytes(reader, batch));
    uint8_t *at = (uint8_t *)(request + 1);
    request->buffers = (void *)at;
    request->groups = (void *)(at += buffers);
    request->scopes = (void *)(at += groups);
    request->spans = (void *)(at += scopes);
    request->pieces = (void *)(at + spans);
    return request;
}

struct held_request *held_request_new(const struct trace_reader *reader, const struct batch *batch,
                                      struct budget *held, size_t charged)
{
    struct held_request *request = allocate(reader, batch);
    request->held = held;
    request->charged = charged;
    request->span_count = reader->span_count;
    request->references = 1;
    request->buffer_count = batch->part_count;
    for (size_t i = 0; i < batch->part_count; i++)
        request->buffers[i] = buffer_ref(batch->parts[i].buffer);
    uint8_t *to = (uint8_t *)(request->pieces + reader->trace_count);
    for (uint32_t i = 0; i < reader->group_count; i++)
        request->groups[i] = keep(batch, reader->groups[i], &to);
    for (uint32_t i = 0; i < reader->scope_count; i++)
        request->scopes[i] = (struct held_scope){keep(batch, reader->scopes[i].header, &to),
                                                 reader->scopes[i].group};
    sort_spans(request, reader);
    return request;
}

void held_request_ref(struct held_request *request)
{
    request->references++;
}

void held_request_unref(struct held_request *request)
{
    assert(request->references > 0);
    if (--request->references > 0)
        return;
    if (request->link.list)
        list_remove(request->link.list, &request->link);
    for (size_t i = 0; i < request->buffer_count; i++)
        buffer_unref(request->buffers[i]);
    budget_release(request->held, request->charged);
    free(request);
}

void pieces_drop(struct piece *first)
{
    while (first) {
        struct piece *next = first->next; /* the request may go with the piece */
        held_request_unref(first->request);
        first = next;
    }
}

/* ---- joining ---- */

struct picked {
    const struct held_request *request;
    const struct held_span *span;
};

/* Spans of a scope are in the order of their addresses. */
static int compare(const void *one, const void *other)
{
    const struct picked *a = one, *b = other;
    if (a->request != b->request)
        return a->request->ordinal < b->request->ordinal ? -1 : 1;
    if (a->span->scope != b->span->scope)
        return a->span->scope < b->span->scope ? -1 : 1;
    return a->span->data < b->span->data ? -1 : a->span->data > b->span->data;
}

static const struct held_scope *scope_of(const struct picked *picked)
{
    return &picked->request->scopes[picked->span->scope];
}

static bool same_group(const struct picked *a, const struct picked *b)
{
    return a->request == b->request && scope_of(a)->group == scope_of(b)->group;
}

static bool same_scope(const struct picked *a, const struct picked *b)
{
    return a->request == b->request && a->span->scope == b->span->scope;
}

/* Returns the end of the spans from `from` that have the same group, or scope. */
static uint32_t end_of(const struct picked *picked, uint32_t from, uint32_t end,
                       bool (*same)(const struct picked *a, const struct picked *b))
{
    uint32_t at = from + 1;
    while (at < end && same(&picked[from], &picked[at]))
        at++;
    return at;
}

static size_t measure_scope(const struct picked *picked, uint32_t from, uint32_t end)
{
    size_t size = scope_of(&picked[from])->header.size;
    for (uint32_t i = from; i < end; i++)
        size += wire_size_bytes(SCOPE_SPANS_SPANS, picked[i].span->size);
    return size;
}

static size_t measure_group(const struct picked *picked, uint32_t from, uint32_t end)
{
    size_t size = picked[from].request->groups[scope_of(&picked[from])->group].size;
    for (uint32_t at = from; at < end;) {
        uint32_t next = end_of(picked, at, end, same_scope);
        size += wire_size_bytes(RESOURCE_SPANS_SCOPE_SPANS, measure_scope(picked, at, next));
        at = next;
    }
    return size;
}

static uint8_t *write_slice(uint8_t *to, struct slice bytes)
{
    if (bytes.size > 0)
        memcpy(to, bytes.data, bytes.size);
    return to + bytes.size;
}

static uint8_t *write_scope(uint8_t *to, const struct picked *picked, uint32_t from, uint32_t end)
{
    to = wire_write_header(to, RESOURCE_SPANS_SCOPE_SPANS, measure_scope(picked, from, end));
    to = write_slice(to, scope_of(&picked[from])->header);
    for (uint32_t i = from; i < end; i++)
        to = wire_write_bytes(to, SCOPE_SPANS_SPANS,
                              slice_of(picked[i].span->data, picked[i].span->size));
    return to;
}

static uint8_t *write_group(uint8_t *to, const struct picked *picked, uint32_t from, uint32_t end)
{
    to = wire_write_header(to, TRACES_RESOURCE_SPANS, measure_group(picked, from, end));
    to = write_slice(to, picked[from].request->groups[scope_of(&picked[from])->group]);
    for (uint32_t at = from; at < end;) {
        uint32_t next = end_of(picked, at, end, same_scope);
        to = write_scope(to, picked, at, next);
        at = next;
    }
    return to;
}

static struct buffer *write_all(const struct picked *picked, uint32_t count, struct budget *budget)
{
    size_t size = 0;
    for (uint32_t at = 0; at < count;) {
        uint32_t next = end_of(picked, at, count, same_group);
        size += wire_size_bytes(TRACES_RESOURCE_SPANS, measure_group(picked, at, next));
        at = next;
    }
    struct buffer *buffer = buffer_new_charged(size, budget);
    uint8_t *to = buffer->data;
    for (uint32_t at = 0; at < count;) {
        uint32_t next = end_of(picked, at, count, same_group);
        to = write_group(to, picked, at, next);
        at = next;
    }
    assert(to == buffer->data + size);
    buffer->size = size;
    return buffer;
}

/* Takes spans from the front of a list. The pieces stay. */
static void pick(struct picked *picked, uint32_t count, const struct piece *piece)
{
    for (uint32_t taken = 0; taken < count; piece = piece->next)
        for (uint32_t i = 0; i < piece->count && taken < count; i++)
            picked[taken++] =
                (struct picked){piece->request, &piece->request->spans[piece->first + i]};
}

/* Removes spans from the front of a list, and drops the references of pieces that have none left.
 */
static struct piece *skip(struct piece *piece, uint32_t count)
{
    while (count > 0) {
        uint32_t taken = piece->count < count ? piece->count : count;
        struct piece *next = piece->next; /* the request may go with the piece */
        count -= taken;
        piece->first += taken;
        piece->count -= taken;
        if (piece->count > 0)
            return piece;
        held_request_unref(piece->request);
        piece = next;
    }
    return piece;
}

static bool is_sorted(const struct picked *picked, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        if (compare(&picked[i - 1], &picked[i]) > 0)
            return false;
    return true;
}

struct buffer *pieces_join(struct piece **first, uint32_t count, struct budget *budget)
{
    struct picked *picked = memory_array(count, sizeof *picked);
    assert(count > 0);
    pick(picked, count, *first);
    if (!is_sorted(picked, count))
        qsort(picked, count, sizeof *picked, compare);
    struct buffer *buffer = write_all(picked, count, budget);
    free(picked);
    *first = skip(*first, count);
    return buffer;
}
