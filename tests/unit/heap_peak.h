/*
 * heap_peak: how much memory a part of a test holds at most.
 *
 * A program that is linked with it has its own malloc, calloc, realloc and free, which count what
 * the calling thread holds. Under sanitizers, and without glibc, nothing is counted.
 *
 * Owner: none.
 *
 * Thread: any; each counts for itself.
 */
#ifndef PROFCOL_TESTS_HEAP_PEAK_H
#define PROFCOL_TESTS_HEAP_PEAK_H

#include <stdbool.h>
#include <stddef.h>

bool heap_peak_is_counted(void);
/* From here on. */
void heap_peak_begin(void);
/* The most that was held at once since then, without what was held before. */
size_t heap_peak_bytes(void);
/* Calls since then, and the bytes that calloc set to zero and realloc moved. */
size_t heap_peak_calls(void);
size_t heap_peak_written(void);

#endif
