/*
 * cost_memory: how much memory a program holds, and held at most since it was asked to look.
 *
 * A program that calls these has an allocator that counts; without glibc, or under a sanitizer, it
 * counts nothing and both are 0.
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
/* What follows is counted on top of what is held now. */
void cost_memory_begin(void);
/* The most since then. */
size_t cost_memory_peak(void);
/* Calls since then, and the bytes that calloc set to zero and realloc moved. */
size_t cost_memory_calls(void);
size_t cost_memory_written(void);

#endif
