/*
 * cost_memory: measures the memory that a program holds, and its peak.
 *
 * A program that uses it has a counting allocator. Without glibc, or under a sanitizer, nothing is
 * counted, and all results are 0.
 *
 * Owner: the program.
 *
 * Thread: one.
 */
#ifndef PROFCOL_TESTS_COST_MEMORY_H
#define PROFCOL_TESTS_COST_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define COST_IS_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COST_IS_SANITIZED
#endif

bool cost_memory_is_counted(void);
/* Begins a measurement, relative to the memory held now. */
void cost_memory_begin(void);
/* Returns the peak since cost_memory_begin, in bytes. */
size_t cost_memory_peak(void);
/* Return the number of allocator calls since then, and the bytes that calloc zeroed and realloc
 * moved. */
size_t cost_memory_calls(void);
size_t cost_memory_written(void);

#endif
