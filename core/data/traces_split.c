#include "core/data/traces_split.h"

#include "core/base/arena.h"
#include "core/base/memory.h"
#include "core/data/otlp.h"
#include "core/data/wire.h"

#include <assert.h>

struct source_scope {
    struct slice header; /* the fields of the ScopeSpans that are not spans */
    uint32_t first_span;
    uint32_t end_span;
    uint32_t group;
};

struct traces_source {
    struct arena arena;
    struct budget *budget;
    struct slice *groups; /* for each ResourceSpans, the fields that are not scopes */
    struct source_scope *scopes;
    struct slice *spans; /* payloads */
    uint32_t group_count, scope_count, span_count;
};

static void count_group(struct traces_source *source, struct slice group)
{
    struct wire_cursor scopes = wire_cursor(group);
    struct wire_field scope, span;
    source->group_count++;
    while (wire_next_bytes(&scopes, RESOURCE_SPANS_SCOPE_SPANS, &scope)) {
        struct wire_cursor spans = wire_cursor(scope.bytes);
        source->scope_count++;
        while (wire_next_bytes(&spans, SCOPE_SPANS_SPANS, &span))
            source->span_count++;
    }
}

/* Returns the fields of a message without those of this number, joined: in place if they are
 * adjacent, otherwise copied. Calls `found` for the fields of this number. */
static struct slice split_off(struct traces_source *source, struct slice payload, uint32_t number,
                              void (*found)(struct traces_source *source, struct slice payload))
{
    struct wire_cursor cursor = wire_cursor(payload);
    struct wire_field field;
    struct slice header = {0};
    uint8_t *copy = NULL;
    while (wire_next(&cursor, &field)) {
        size_t size = (size_t)(field.end - field.start);
        if (field.number == number) {
            found(source, field.bytes);
            continue;
        }
        if (!copy && header.size > 0 && header.data + header.size != field.start) {
            copy = arena_alloc(&source->arena, header.size + (size_t)(cursor.end - field.start));
            memcpy(copy, header.data, header.size);
            header.data = copy;
        }
        if (copy)
            memcpy(copy + header.size, field.start, size);
        else if (header.size == 0)
            header.data = field.start;
        header.size += size;
    }
    assert(!cursor.broken);
    assert(header.size <= payload.size);
    return header;
}

static void read_span(struct traces_source *source, struct slice payload)
{
    source->spans[source->span_count++] = payload;
}

static void read_scope(struct traces_source *source, struct slice payload)
{
    struct source_scope *scope = &source->scopes[source->scope_count++];
    scope->group = source->group_count;
    scope->first_span = source->span_count;
    scope->header = split_off(source, payload, SCOPE_SPANS_SPANS, read_span);
    scope->end_span = source->span_count;
}

static void read_group(struct traces_source *source, struct slice payload)
{
    struct slice header = split_off(source, payload, RESOURCE_SPANS_SCOPE_SPANS, read_scope);
    source->groups[source->group_count++] = header;
}

static void each_group(struct traces_source *source, struct slice piece,
                       void (*visit)(struct traces_source *source, struct slice group))
{
    struct wire_cursor cursor = wire_cursor(piece);
    struct wire_field field;
    while (wire_next_bytes(&cursor, TRACES_RESOURCE_SPANS, &field))
        visit(source, field.bytes);
    assert(!cursor.broken);
}

struct traces_source *traces_source_new(const struct slice *pieces, size_t piece_count,
                                        struct budget *budget)
{
    struct traces_source *source = memory_zalloc(sizeof *source);
    source->budget = budget;
    arena_init(&source->arena, budget);
    for (size_t i = 0; i < piece_count; i++)
        each_group(source, pieces[i], count_group);
    source->groups = arena_array(&source->arena, source->group_count, sizeof *source->groups);
    source->scopes = arena_array(&source->arena, source->scope_count, sizeof *source->scopes);
    source->spans = arena_array(&source->arena, source->span_count, sizeof *source->spans);
    uint32_t scopes = source->scope_count, spans = source->span_count;
    source->group_count = source->scope_count = source->span_count = 0;
    for (size_t i = 0; i < piece_count; i++)
        each_group(source, pieces[i], read_group);
    assert(source->scope_count == scopes && source->span_count == spans);
    return source;
}

void traces_source_free(struct traces_source *source)
{
    if (!source)
        return;
    arena_deinit(&source->arena);
    free(source);
}

uint32_t traces_source_items(const struct traces_source *source)
{
    return source->span_count;
}

size_t traces_source_item_bytes(const struct traces_source *source, uint32_t first, uint32_t count)
{
    size_t size = 0;
    assert(first <= source->span_count && count <= source->span_count - first);
    for (uint32_t i = first; i < first + count; i++)
        size += source->spans[i].size;
    return size;
}

/* Returns the first scope that ends after the span. */
static uint32_t find_scope(const struct traces_source *source, uint32_t span)
{
    uint32_t low = 0, high = source->scope_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (source->scopes[middle].end_span > span)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The spans of a scope that are in [first, end). */
struct cut {
    const struct source_scope *scope;
    uint32_t first;
    uint32_t end;
};

static struct cut cut_scope(const struct source_scope *scope, uint32_t first, uint32_t end)
{
    return (struct cut){scope, scope->first_span > first ? scope->first_span : first,
                        scope->end_span < end ? scope->end_span : end};
}

static size_t measure_scope(const struct traces_source *source, const struct cut *cut)
{
    size_t size = cut->scope->header.size;
    for (uint32_t i = cut->first; i < cut->end; i++)
        size += wire_size_bytes(SCOPE_SPANS_SPANS, source->spans[i].size);
    return size;
}

static uint8_t *write_slice(uint8_t *to, struct slice bytes)
{
    if (bytes.size > 0)
        memcpy(to, bytes.data, bytes.size);
    return to + bytes.size;
}

static uint8_t *write_scope(const struct traces_source *source, const struct cut *cut, uint8_t *to)
{
    to = wire_write_header(to, RESOURCE_SPANS_SCOPE_SPANS, measure_scope(source, cut));
    to = write_slice(to, cut->scope->header);
    for (uint32_t i = cut->first; i < cut->end; i++)
        to = wire_write_bytes(to, SCOPE_SPANS_SPANS, source->spans[i]);
    return to;
}

/* Returns the end of the scopes from `at` that belong to one group and begin before `end`. */
static uint32_t end_of_group(const struct traces_source *source, uint32_t at, uint32_t end)
{
    assert(at < source->scope_count && source->scopes[at].first_span < end);
    uint32_t group = source->scopes[at].group;
    while (at < source->scope_count && source->scopes[at].group == group &&
           source->scopes[at].first_span < end)
        at++;
    return at;
}

static size_t measure_group(const struct traces_source *source, uint32_t at, uint32_t scope_end,
                            uint32_t first, uint32_t end)
{
    size_t size = source->groups[source->scopes[at].group].size;
    for (; at < scope_end; at++) {
        struct cut cut = cut_scope(&source->scopes[at], first, end);
        if (cut.first < cut.end)
            size += wire_size_bytes(RESOURCE_SPANS_SCOPE_SPANS, measure_scope(source, &cut));
    }
    return size;
}

static uint8_t *write_group(const struct traces_source *source, uint32_t at, uint32_t scope_end,
                            uint32_t first, uint32_t end, uint8_t *to)
{
    to = wire_write_header(to, TRACES_RESOURCE_SPANS,
                           measure_group(source, at, scope_end, first, end));
    to = write_slice(to, source->groups[source->scopes[at].group]);
    for (; at < scope_end; at++) {
        struct cut cut = cut_scope(&source->scopes[at], first, end);
        if (cut.first < cut.end)
            to = write_scope(source, &cut, to);
    }
    return to;
}

/* Returns the next scope with spans. There may be very many without. */
static uint32_t next_with_spans(const struct traces_source *source, uint32_t at)
{
    return at < source->scope_count ? find_scope(source, source->scopes[at].first_span) : at;
}

struct buffer *traces_source_part(const struct traces_source *source, uint32_t first,
                                  uint32_t count)
{
    assert(first <= source->span_count && count <= source->span_count - first);
    uint32_t end = first + count;
    size_t size = 0;
    uint32_t start = find_scope(source, first);
    for (uint32_t at = start; at < source->scope_count && source->scopes[at].first_span < end;) {
        uint32_t scope_end = end_of_group(source, at, end);
        size += wire_size_bytes(TRACES_RESOURCE_SPANS,
                                measure_group(source, at, scope_end, first, end));
        at = next_with_spans(source, scope_end);
    }
    struct buffer *part = buffer_new_charged(size, source->budget);
    uint8_t *to = part->data;
    for (uint32_t at = start; at < source->scope_count && source->scopes[at].first_span < end;) {
        uint32_t scope_end = end_of_group(source, at, end);
        to = write_group(source, at, scope_end, first, end, to);
        at = next_with_spans(source, scope_end);
    }
    assert(to == part->data + size);
    part->size = size;
    return part;
}
