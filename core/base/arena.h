/*
 * arena: memory that is given back all at once.
 *
 * One per batch and per configuration: whoever builds something in several steps allocates from
 * one arena and drops it on failure, instead of ladders of cleanup.
 *
 * Owner: who initialised it.
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

void arena_init(struct arena *arena, struct budget *budget);
/* From here on charged to another one, with what it holds. */
void arena_set_budget(struct arena *arena, struct budget *budget);
void arena_deinit(struct arena *arena);

/* Aligned for any type. arena_zalloc zeroes. Never NULL. */
void *arena_alloc(struct arena *arena, size_t size);
void *arena_zalloc(struct arena *arena, size_t size);
/* count elements, zeroed; aborts when the product overflows. */
void *arena_array(struct arena *arena, size_t count, size_t element_size);
/* An array with room for one more behind `count`: the same one, or a copy of twice the capacity,
 * whose new elements are zero. NULL with capacity 0 is valid and empty. */
void *arena_grow(struct arena *arena, void *array, uint32_t count, uint32_t *capacity,
                 size_t element_size);

char *arena_strdup(struct arena *arena, const char *text);
/* A copy, A to Z as a to z. */
char *arena_lower_case(struct arena *arena, const char *text);
char *arena_string(struct arena *arena, struct slice text); /* adds the NUL */
struct slice arena_copy(struct arena *arena, struct slice bytes);
char *arena_printf(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
char *arena_vprintf(struct arena *arena, const char *format, va_list args);

#endif
