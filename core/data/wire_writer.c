#include "core/data/wire_writer.h"

#include "core/base/memory.h"

#include <assert.h>
#include <stdlib.h>

uint8_t *wire_writer_room(struct wire_writer *writer, size_t more)
{
    if (writer->capacity - writer->size < more) {
        size_t capacity = writer->capacity * 2 > 256 ? writer->capacity * 2 : 256;

        while (capacity - writer->size < more)
            capacity *= 2;
        writer->data = memory_realloc(writer->data, capacity);
        writer->capacity = capacity;
        assert(writer->capacity - writer->size >= more);
    }
    return writer->data + writer->size;
}

void wire_writer_wrote(struct wire_writer *writer, const uint8_t *end)
{
    assert((size_t)(end - writer->data) <= writer->capacity);
    writer->size = (size_t)(end - writer->data);
}

void wire_writer_deinit(struct wire_writer *writer)
{
    free(writer->data);
    *writer = (struct wire_writer){0};
}

void wire_writer_varint_set(struct wire_writer *writer, uint32_t number, uint64_t value)
{
    uint8_t *to = wire_writer_room(writer, WIRE_HEADER_MAX);
    wire_writer_wrote(writer, wire_write_varint(wire_write_tag(to, number, WIRE_VARINT), value));
}

void wire_writer_varint(struct wire_writer *writer, uint32_t number, uint64_t value)
{
    if (value != 0)
        wire_writer_varint_set(writer, number, value);
}

void wire_writer_fixed64(struct wire_writer *writer, uint32_t number, uint64_t value)
{
    if (value != 0)
        wire_writer_wrote(
            writer, wire_write_fixed64(wire_writer_room(writer, WIRE_HEADER_MAX), number, value));
}

void wire_writer_bytes(struct wire_writer *writer, uint32_t number, struct slice payload)
{
    uint8_t *to = wire_writer_room(writer, WIRE_HEADER_MAX + payload.size);
    wire_writer_wrote(writer, wire_write_bytes(to, number, payload));
}

void wire_writer_packed_u32(struct wire_writer *writer, uint32_t number, const uint32_t *values,
                            size_t count)
{
    if (count == 0)
        return;
    size_t begun = wire_writer_begin(writer, number);
    uint8_t *to = wire_writer_room(writer, count * 5);
    for (size_t i = 0; i < count; i++)
        to = wire_write_varint(to, values[i]);
    wire_writer_wrote(writer, to);
    wire_writer_end(writer, begun);
}

void wire_writer_packed_u64(struct wire_writer *writer, uint32_t number, const uint64_t *values,
                            size_t count)
{
    if (count == 0)
        return;
    size_t begun = wire_writer_begin(writer, number);
    uint8_t *to = wire_writer_room(writer, count * 10);
    for (size_t i = 0; i < count; i++)
        to = wire_write_varint(to, values[i]);
    wire_writer_wrote(writer, to);
    wire_writer_end(writer, begun);
}

void wire_writer_raw(struct wire_writer *writer, struct slice fields)
{
    if (fields.size == 0)
        return; /* a writer without memory stays so */
    memcpy(wire_writer_room(writer, fields.size), fields.data, fields.size);
    writer->size += fields.size;
}

size_t wire_writer_begin(struct wire_writer *writer, uint32_t number)
{
    wire_writer_wrote(
        writer, wire_write_tag(wire_writer_room(writer, WIRE_HEADER_MAX), number, WIRE_BYTES));
    writer->data[writer->size++] =
        0; /* most lengths have one byte; otherwise wire_writer_end moves the payload */
    return writer->size;
}

void wire_writer_end(struct wire_writer *writer, size_t begun)
{
    assert(begun > 0 && begun <= writer->size);
    size_t payload = writer->size - begun;
    size_t more = wire_size_varint(payload) - 1;
    if (more > 0) {
        wire_writer_room(writer, more);
        memmove(writer->data + begun + more, writer->data + begun, payload);
        writer->size += more;
    }
    wire_write_varint(writer->data + begun - 1, payload);
}
