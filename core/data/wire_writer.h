/*
 * wire_writer: the protobuf encoding of a message whose size is not known beforehand.
 *
 *     size_t line = wire_writer_begin(&writer, LOCATION_LINES);
 *     wire_writer_varint(&writer, LINE_FUNCTION_INDEX, function);
 *     wire_writer_end(&writer, line);
 *
 * Owner: who initialised it (all-zero is valid and empty); free with wire_writer_deinit.
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
/* What was written; valid until the next call that writes. */
static inline struct slice wire_writer_slice(const struct wire_writer *writer)
{
    return slice_of(writer->data, writer->size);
}
/* Empty again, with its memory. */
static inline void wire_writer_clear(struct wire_writer *writer)
{
    writer->size = 0;
}

/* A varint field; the default, 0, is left out as proto3 does. */
void wire_writer_varint(struct wire_writer *writer, uint32_t number, uint64_t value);
/* The same with the 0: for members of a oneof. */
void wire_writer_varint_set(struct wire_writer *writer, uint32_t number, uint64_t value);
/* Appends a fixed64 field; 0 is left out. */
void wire_writer_fixed64(struct wire_writer *writer, uint32_t number, uint64_t value);
/* Appends a string, bytes or message field, even if it is empty. */
void wire_writer_bytes(struct wire_writer *writer, uint32_t number, struct slice payload);
/* A packed repeated field; nothing for no values. */
void wire_writer_packed_u32(struct wire_writer *writer, uint32_t number, const uint32_t *values,
                            size_t count);
void wire_writer_packed_u64(struct wire_writer *writer, uint32_t number, const uint64_t *values,
                            size_t count);
/* Room for `more` bytes behind what was written, for the wire_write_ functions; then the end of
 * what they wrote. */
uint8_t *wire_writer_room(struct wire_writer *writer, size_t more);
void wire_writer_wrote(struct wire_writer *writer, const uint8_t *end);
/* Bytes as they are: whole fields. */
void wire_writer_raw(struct wire_writer *writer, struct slice fields);

/* A message (or a packed list) inside: what is written between the two calls is its payload. */
size_t wire_writer_begin(struct wire_writer *writer, uint32_t number);
void wire_writer_end(struct wire_writer *writer, size_t begun);

#endif
