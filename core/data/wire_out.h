/*
 * wire_out: writes encoded fields one after the other into memory that grows.
 *
 * A message whose size is not known yet is opened with a guess. If the length has as many bytes as
 * guessed, closing the message does not move it.
 *
 * Owner: the code that created it; charged to its budget, which may be NULL. All zero is valid and
 * empty.
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

/* Frees the memory. The struct is empty again and can be reused. */
void wire_out_deinit(struct wire_out *out);
/* Makes room for at least `more` bytes. */
void wire_out_grow(struct wire_out *out, size_t more);

/* Returns where the next `more` bytes may be written. The caller adds the number of bytes it wrote
 * to `size`. */
static inline uint8_t *wire_out_room(struct wire_out *out, size_t more)
{
    if (out->capacity - out->size < more)
        wire_out_grow(out, more);
    return out->size > 0 ? out->data + out->size : out->data; /* NULL, if `more` is 0 */
}

/* Appends bytes. */
static inline void wire_out_put(struct wire_out *out, struct slice bytes)
{
    if (bytes.size == 0)
        return;
    memcpy(wire_out_room(out, bytes.size), bytes.data, bytes.size);
    out->size += bytes.size;
}

/* Appends a varint field. */
void wire_out_varint(struct wire_out *out, uint32_t number, uint64_t value);

/* A BYTES field whose payload is written between wire_out_open and wire_out_close. guess: about its
 * size in bytes. */
struct wire_out_field {
    size_t start;
    size_t payload;
};
struct wire_out_field wire_out_open(struct wire_out *out, uint32_t number, size_t guess);
void wire_out_close(struct wire_out *out, struct wire_out_field field, uint32_t number);

#endif
