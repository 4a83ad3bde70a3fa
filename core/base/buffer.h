/*
 * buffer: received or encoded bytes, shared by reference.
 *
 * The code that creates a buffer fills it; once it is passed on it is immutable. Slices into it
 * stay valid while a reference is held. Its whole capacity is charged to its budget, because a
 * slice keeps all of it in memory.
 *
 * Owner: everyone who holds a reference.
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

/* Returns a buffer with one reference and size 0, or NULL if the budget has no room. capacity, in
 * bytes, may be 0. */
struct buffer *buffer_new(size_t capacity, struct budget *budget);
/* Like buffer_new, but charges the budget without asking: for data made from a request that was
 * already admitted. Never returns NULL. */
struct buffer *buffer_new_charged(size_t capacity, struct budget *budget);
/* Returns a buffer that takes over memory from malloc, and frees the unused part of it. Charges the
 * budget without asking. */
struct buffer *buffer_adopt(void *data, size_t size, size_t capacity, struct budget *budget);
/* Adds a reference and returns the buffer. */
struct buffer *buffer_ref(struct buffer *buffer);
/* Drops a reference; the last one frees the buffer. NULL is allowed. */
void buffer_unref(struct buffer *buffer);

/* Whether there is one reference, so that its owner may change the bytes. */
static inline bool buffer_is_own(const struct buffer *buffer)
{
    return atomic_load_explicit(&buffer->references, memory_order_acquire) == 1;
}

/* The following three are for the code that fills the buffer, while there is one reference. */
/* Makes room for at least `more` bytes after size. Returns false if size plus more exceeds
 * max_capacity, or if the budget has no room. Never grows beyond max_capacity. */
bool buffer_reserve(struct buffer *buffer, size_t more, size_t max_capacity);
/* Reserves room and copies `size` bytes. Returns false in the same cases as buffer_reserve. */
bool buffer_append(struct buffer *buffer, const void *data, size_t size, size_t max_capacity);
/* Releases unused capacity if it is more than an eighth of the capacity. */
void buffer_trim(struct buffer *buffer);

/* Returns the bytes, valid as long as a reference is held. */
static inline struct slice buffer_slice(const struct buffer *buffer)
{
    return (struct slice){buffer->data, buffer->size};
}

#endif
