/*
 * memory: allocation that cannot fail, for sizes that our own code chooses.
 *
 * If a small allocation fails, the process ends with a message. If the size of an
 * allocation comes from outside, it is bounded and reserved in a budget first (budget.h).
 *
 * Owner: the caller frees with free().
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_BASE_MEMORY_H
#define PROFCOL_CORE_BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Replaces the function that says why the process ends when there is no memory; by default it
 * prints to standard error. It must not allocate. `what` the value is: "bytes", "elements". Call it
 * before threads start. */
void memory_report_with(void (*function)(const char *message, const char *what, uint64_t value));

void *memory_alloc(size_t size);  /* not zeroed */
void *memory_zalloc(size_t size); /* zeroed */
void *memory_realloc(void *old, size_t size);
/* Returns a copy of the text, which the caller frees. */
char *memory_strdup(const char *text);
/* Returns a copy of the bytes with a NUL after them, which the caller frees. */
char *memory_strndup(const void *text, size_t size);
/* Allocate or resize an array of count elements. New elements are not zeroed. Both abort if the
 * product overflows. */
void *memory_array(size_t count, size_t element_size);
void *memory_grow(void *old, size_t count, size_t element_size);
/* Returns how many bytes these functions have allocated so far, freed or not. Each thread may have
 * up to 64 KiB more that are not counted yet. */
uint64_t memory_allocated(void);

#endif
