/*
 * wire_out: encoded fields written one behind the other into memory that grows.
 *
 * A message whose size is not known yet is opened with a guess; a guess of the right number of
 * digits saves moving it when it is closed.
 *
 * Owner: who made it; charged to its budget, which may be NULL. All zero is valid and empty.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_DATA_WIRE_OUT_H
#define PROFCOL_CORE_DATA_WIRE_OUT_H

#include "core/data/wire.h"

struct budget;

struct wire_out {
    uint8_t *data;
    size_t size;
    size_t capacity;
    struct budget *budget;
};

void wire_out_deinit(struct wire_out *out); /* empty again, and can be used again */
void wire_out_grow(struct wire_out *out, size_t more);

/* Where the next `more` bytes may be written; the caller adds to `size` what it wrote. */
static inline uint8_t *wire_out_room(struct wire_out *out, size_t more)
{
    if (out->capacity - out->size < more)
        wire_out_grow(out, more);
    return out->data + out->size;
}

static inline void wire_out_put(struct wire_out *out, struct slice bytes)
{
    if (bytes.size == 0)
        return;
    memcpy(wire_out_room(out, bytes.size), bytes.data, bytes.size);
    out->size += bytes.size;
}

/* A field with a number. */
void wire_out_varint(struct wire_out *out, uint32_t number, uint64_t value);

/* A BYTES field whose payload is what is written between the two; guess: its size, about. */
struct wire_out_field {
    size_t start;
    size_t payload;
};
struct wire_out_field wire_out_open(struct wire_out *out, uint32_t number, size_t guess);
void wire_out_close(struct wire_out *out, struct wire_out_field field, uint32_t number);

#endif
