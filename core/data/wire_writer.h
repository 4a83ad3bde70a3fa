/*
 * wire_writer: encodes a protobuf message whose size is not known in advance.
 *
 *     size_t line = wire_writer_begin(&writer, LOCATION_LINES);
 *     wire_writer_varint(&writer, LINE_FUNCTION_INDEX, function);
 *     wire_writer_end(&writer, line);
 *
 * Owner: whoever initialised it (all-zero is valid and empty); free it with wire_writer_deinit.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_DATA_WIRE_WRITER_H
#define PROFCOL_CORE_DATA_WIRE_WRITER_H

#include "core/data/wire.h"

struct wire_writer {
    uint8_t *data;
    size_t size;
    size_t capacity;
};

/* Frees the memory; the writer is empty again. */
void wire_writer_deinit(struct wire_writer *writer);
/* Returns the bytes written so far; valid until the next call that writes. */
static inline struct slice wire_writer_slice(const struct wire_writer *writer)
{
    return slice_of(writer->data, writer->size);
}
/* Empties the writer and keeps its memory. */
static inline void wire_writer_clear(struct wire_writer *writer)
{
    writer->size = 0;
}

/* Appends a varint field; 0, the default, is left out as in proto3. */
void wire_writer_varint(struct wire_writer *writer, uint32_t number, uint64_t value);
/* Appends a varint field even if it is 0: for members of a oneof. */
void wire_writer_varint_set(struct wire_writer *writer, uint32_t number, uint64_t value);
/* Appends a fixed64 field; 0 is left out. */
void wire_writer_fixed64(struct wire_writer *writer, uint32_t number, uint64_t value);
/* Appends a string, bytes or message field, even if it is empty. */
void wire_writer_bytes(struct wire_writer *writer, uint32_t number, struct slice payload);
/* Append a packed repeated field; without values, nothing. */
void wire_writer_packed_u32(struct wire_writer *writer, uint32_t number, const uint32_t *values,
                            size_t count);
/* Like wire_writer_packed_u32, for 64-bit numbers. */
void wire_writer_packed_u64(struct wire_writer *writer, uint32_t number, const uint64_t *values,
                            size_t count);
/* wire_writer_room returns memory for `more` bytes after those written, for the wire_write_
 * functions. Then call wire_writer_wrote with the end of the bytes that they wrote. */
uint8_t *wire_writer_room(struct wire_writer *writer, size_t more);
void wire_writer_wrote(struct wire_writer *writer, const uint8_t *end);
/* Appends whole encoded fields. */
void wire_writer_raw(struct wire_writer *writer, struct slice fields);

/* Begin and end a nested message or packed list: its payload is written between the two calls.
 * `begun` is the result of wire_writer_begin. */
size_t wire_writer_begin(struct wire_writer *writer, uint32_t number);
void wire_writer_end(struct wire_writer *writer, size_t begun);

#endif
