/*
 * memory: allocation that cannot fail, for what our own code sizes.
 *
 * A small allocation that fails ends the process with a message: there is nothing better to do. An
 * allocation whose size comes from outside is bounded and reserved in a budget first (budget.h).
 *
 * Owner: the caller frees with free().
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_BASE_MEMORY_H
#define PROFCOL_CORE_BASE_MEMORY_H

#include <stddef.h>
#include <stdlib.h>

void *memory_alloc(size_t size);  /* not zeroed */
void *memory_zalloc(size_t size); /* zeroed */
void *memory_realloc(void *old, size_t size);
char *memory_strdup(const char *text);
char *memory_strndup(const void *text, size_t size); /* adds the NUL */
/* For an array of count elements; aborts when the product overflows. */
void *memory_array(size_t count, size_t element_size);
void *memory_grow(void *old, size_t count, size_t element_size);

#endif
