#include "core/data/wire_out.h"

#include "core/base/budget.h"
#include "core/base/memory.h"

#include <assert.h>

enum { CAPACITY_MIN = 256 };

void wire_out_grow(struct wire_out *out, size_t more)
{
    size_t capacity = out->capacity < CAPACITY_MIN ? CAPACITY_MIN : out->capacity * 2;
    if (capacity < out->size + more)
        capacity = out->size + more;
    budget_charge(out->budget, capacity - out->capacity);
    out->data = memory_realloc(out->data, capacity);
    out->capacity = capacity;
    assert(out->capacity - out->size >= more);
}

void wire_out_deinit(struct wire_out *out)
{
    budget_release(out->budget, out->capacity);
    free(out->data);
    *out = (struct wire_out){.budget = out->budget};
}

void wire_out_varint(struct wire_out *out, uint32_t number, uint64_t value)
{
    uint8_t *to = wire_out_room(out, WIRE_HEADER_MAX);
    to = wire_write_varint(wire_write_tag(to, number, WIRE_VARINT), value);
    out->size = (size_t)(to - out->data);
}

struct wire_out_field wire_out_open(struct wire_out *out, uint32_t number, size_t guess)
{
    struct wire_out_field field = {.start = out->size};
    uint8_t *payload = wire_write_header(wire_out_room(out, WIRE_HEADER_MAX), number, guess);
    field.payload = out->size = (size_t)(payload - out->data);
    return field;
}

void wire_out_close(struct wire_out *out, struct wire_out_field field, uint32_t number)
{
    assert(field.start < field.payload && field.payload <= out->size);
    uint8_t header[WIRE_HEADER_MAX];
    size_t payload = out->size - field.payload;
    size_t size = (size_t)(wire_write_header(header, number, payload) - header);
    if (field.start + size != field.payload) {
        wire_out_room(out, WIRE_HEADER_MAX); /* the length may have more bytes than guessed */
        memmove(out->data + field.start + size, out->data + field.payload, payload);
    }
    memcpy(out->data + field.start, header, size);
    out->size = field.start + size + payload;
}
