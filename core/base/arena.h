/*
 * arena: memory that is freed all at once.
 *
 * There is one per batch and per configuration. Code that builds something in several steps
 * allocates from one arena and frees the arena on failure, so it needs no cleanup for each step.
 *
 * Owner: whoever initialised it.
 *
 * Thread: one at a time. A zeroed arena is valid and empty.
 */
#ifndef PROFCOL_CORE_BASE_ARENA_H
#define PROFCOL_CORE_BASE_ARENA_H

#include "core/base/slice.h"

#include <stdarg.h>
#include <stddef.h>

struct budget;
struct arena_block;

struct arena {
    struct arena_block *blocks; /* newest first */
    uint8_t *next;
    uint8_t *end;
    size_t reserved_bytes; /* of all blocks */
    struct budget *budget; /* charged with reserved_bytes; may be NULL */
};

/* Initialises an empty arena. Its memory is charged to the budget, which may be NULL. */
void arena_init(struct arena *arena, struct budget *budget);
/* Moves the charge for all memory of the arena, and for later growth, to another budget. */
void arena_set_budget(struct arena *arena, struct budget *budget);
/* Frees all memory of the arena and releases its charge. The arena is empty again and can be used.
 */
void arena_deinit(struct arena *arena);

/* Allocate `size` bytes, aligned for any type. Never NULL. arena_zalloc also zeroes them. */
void *arena_alloc(struct arena *arena, size_t size);
void *arena_zalloc(struct arena *arena, size_t size);
/* Allocates count elements, zeroed. Aborts if the product overflows. */
void *arena_array(struct arena *arena, size_t count, size_t element_size);
/* Returns an array with room for one more element after `count`: the same array, or a copy with
 * twice the capacity, whose new elements are zero. NULL with capacity 0 is a valid empty array. */
void *arena_grow_now(struct arena *arena, void *array, uint32_t count, uint32_t *capacity,
                     size_t element_size);
static inline void *arena_grow(struct arena *arena, void *array, uint32_t count, uint32_t *capacity,
                               size_t element_size)
{
    return count < *capacity ? array : arena_grow_now(arena, array, count, capacity, element_size);
}

/* Returns a copy of the text. */
char *arena_strdup(struct arena *arena, const char *text);
/* Returns a copy in which A to Z are a to z. */
char *arena_lower_case(struct arena *arena, const char *text);
char *arena_string(struct arena *arena,
                   struct slice text); /* Returns a copy of the bytes with a NUL after them. */
/* Returns a copy of the bytes. */
struct slice arena_copy(struct arena *arena, struct slice bytes);
/* Returns the formatted text, NUL-terminated. */
char *arena_printf(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Like arena_printf, with a va_list. */
char *arena_vprintf(struct arena *arena, const char *format, va_list args);

#endif
