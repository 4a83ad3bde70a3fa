/*
 * buffer: received or encoded bytes, shared by reference.
 *
 * Written by its maker until it is handed on, immutable afterwards. Slices into it stay valid
 * while a reference is held. Charged to its budget with its capacity, because a slice pins all of
 * it.
 *
 * Owner: whoever holds a reference.
 *
 * Thread: references may be taken and dropped on any thread.
 */
#ifndef PROFCOL_CORE_BASE_BUFFER_H
#define PROFCOL_CORE_BASE_BUFFER_H

#include "core/base/slice.h"

#include <stdatomic.h>

struct budget;

struct buffer {
    atomic_uint references;
    uint8_t *data;
    size_t size;
    size_t capacity;
    struct budget *budget;
};

/* NULL when the budget says no. capacity 0 is valid. Starts with one reference and size 0. */
struct buffer *buffer_new(size_t capacity, struct budget *budget);
/* The same, charged without asking: for what an already admitted request is turned into. Never
 * NULL. */
struct buffer *buffer_new_charged(size_t capacity, struct budget *budget);
/* Takes over memory of malloc, and gives back what of it is not used; charged likewise. */
struct buffer *buffer_adopt(void *data, size_t size, size_t capacity, struct budget *budget);
struct buffer *buffer_ref(struct buffer *buffer);
void buffer_unref(struct buffer *buffer); /* NULL is allowed */

/* The following three are for its maker, while there is one reference. */
/* Room for at least `more` bytes after size; false when size and more are over max_capacity, or
 * over the budget. Never grows over max_capacity. */
bool buffer_reserve(struct buffer *buffer, size_t more, size_t max_capacity);
/* Reserves and copies; the same answers. */
bool buffer_append(struct buffer *buffer, const void *data, size_t size, size_t max_capacity);
/* Gives back unused capacity when it is more than an eighth. */
void buffer_trim(struct buffer *buffer);

static inline struct slice buffer_slice(const struct buffer *buffer)
{
    return (struct slice){buffer->data, buffer->size};
}

#endif
