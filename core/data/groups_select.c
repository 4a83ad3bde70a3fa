#include "core/data/groups_select.h"

#include "core/base/budget.h"
#include "core/base/memory.h"
#include "core/data/wire_out.h"

#include <assert.h>

/* ---- selections ---- */

void selection_add(struct selection *selection, uint32_t number)
{
    size_t word = number / 64;
    if (word >= selection->word_count) {
        size_t count = word + word / 2 + 1;
        selection->bits = memory_grow(selection->bits, count, sizeof *selection->bits);
        memset(selection->bits + selection->word_count, 0,
               (count - selection->word_count) * sizeof *selection->bits);
        selection->word_count = count;
    }
    selection->count += !selection_has(selection, number);
    selection->bits[word] |= UINT64_C(1) << (number % 64);
}

void selection_deinit(struct selection *selection)
{
    free(selection->bits);
    *selection = (struct selection){0};
}

/* ---- groups ---- */

struct selector {
    const struct selection *wanted;
    uint32_t next; /* number of the next group or span */
    struct wire_out out;
};

static struct slice field_bytes(const struct wire_field *field)
{
    return slice_of(field->start, (size_t)(field->end - field->start));
}

static struct buffer *finish(struct selector *selector)
{
    struct wire_out *out = &selector->out;
    struct budget *budget = out->budget;
    if (!out->data)
        return buffer_new_charged(0, budget);
    struct buffer *buffer = buffer_adopt(out->data, out->size, out->capacity, budget);
    budget_release(budget, out->capacity); /* the buffer has charged its own */
    return buffer;
}

static size_t size_of(const struct slice *slices, size_t count)
{
    size_t size = 0;
    for (size_t i = 0; i < count; i++)
        size += slices[i].size;
    return size;
}

struct buffer *groups_select(const struct slice *slices, size_t slice_count,
                             const struct selection *groups, struct budget *budget)
{
    struct buffer *part = buffer_new_charged(size_of(slices, slice_count), budget);
    uint32_t number = 0;
    for (size_t i = 0; i < slice_count; i++) {
        struct wire_cursor cursor = wire_cursor(slices[i]);
        struct wire_field field;
        while (wire_next_bytes(&cursor, REQUEST_GROUPS, &field)) {
            struct slice bytes = field_bytes(&field);
            if (!selection_has(groups, number++))
                continue;
            memcpy(part->data + part->size, bytes.data, bytes.size);
            part->size += bytes.size;
        }
        assert(!cursor.broken); /* scanned */
    }
    buffer_trim(part);
    return part;
}

/* ---- spans ---- */

/* Counts the spans of a scope that are wanted. */
static uint32_t count_wanted(const struct selector *selector, struct slice scope, uint32_t *all_out)
{
    struct wire_cursor cursor = wire_cursor(scope);
    struct wire_field field;
    uint32_t wanted = 0;
    *all_out = 0;
    while (wire_next_bytes(&cursor, SCOPE_ITEMS, &field))
        wanted += selection_has(selector->wanted, selector->next + (*all_out)++);
    return wanted;
}

static void put_some_spans(struct selector *selector, struct slice scope)
{
    struct wire_out_field opened = wire_out_open(&selector->out, GROUP_SCOPES, scope.size);
    struct wire_cursor cursor = wire_cursor(scope);
    struct wire_field field;
    uint32_t number = selector->next;
    while (wire_next(&cursor, &field)) {
        bool is_span = field.number == SCOPE_ITEMS && field.type == WIRE_BYTES;
        if (!is_span || selection_has(selector->wanted, number++))
            wire_out_put(&selector->out, field_bytes(&field));
    }
    wire_out_close(&selector->out, opened, GROUP_SCOPES);
}

static bool put_scope(struct selector *selector, const struct wire_field *scope)
{
    uint32_t all, wanted = count_wanted(selector, scope->bytes, &all);
    if (wanted > 0 && wanted == all)
        wire_out_put(&selector->out, field_bytes(scope));
    else if (wanted > 0)
        put_some_spans(selector, scope->bytes);
    selector->next += all;
    return wanted > 0;
}

static void put_group(struct selector *selector, struct slice group)
{
    size_t before = selector->out.size;
    struct wire_out_field opened = wire_out_open(&selector->out, REQUEST_GROUPS, group.size);
    struct wire_cursor cursor = wire_cursor(group);
    struct wire_field field;
    bool has_spans = false;
    while (wire_next(&cursor, &field)) {
        if (field.number == GROUP_SCOPES && field.type == WIRE_BYTES)
            has_spans |= put_scope(selector, &field);
        else
            wire_out_put(&selector->out, field_bytes(&field));
    }
    if (has_spans)
        wire_out_close(&selector->out, opened, REQUEST_GROUPS);
    else
        selector->out.size = before;
}

struct buffer *groups_select_spans(const struct slice *slices, size_t slice_count,
                                   const struct selection *spans, struct budget *budget)
{
    struct selector selector = {.wanted = spans, .out = {.budget = budget}};
    for (size_t i = 0; i < slice_count; i++) {
        struct wire_cursor cursor = wire_cursor(slices[i]);
        struct wire_field field;
        while (wire_next_bytes(&cursor, REQUEST_GROUPS, &field))
            put_group(&selector, field.bytes);
        assert(!cursor.broken); /* scanned */
    }
    return finish(&selector);
}
