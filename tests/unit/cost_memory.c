#include "tests/unit/cost_memory.h"

#include <malloc.h>
#include <stdlib.h>

static size_t held, before, peak, calls, written;

void cost_memory_begin(void)
{
    before = peak = held;
    calls = written = 0;
}

size_t cost_memory_peak(void)
{
    return peak - before;
}

size_t cost_memory_calls(void)
{
    return calls;
}

size_t cost_memory_written(void)
{
    return written;
}

#if defined(__GLIBC__) && !defined(COST_IS_SANITIZED)
bool cost_memory_is_counted(void)
{
    return true;
}

/* The functions of glibc's allocator. The functions below replace them in the whole program. */
void *__libc_malloc(size_t size);               /* NOLINT(bugprone-reserved-identifier) */
void *__libc_calloc(size_t count, size_t size); /* NOLINT(bugprone-reserved-identifier) */
void *__libc_realloc(void *old, size_t size);   /* NOLINT(bugprone-reserved-identifier) */
void __libc_free(void *memory);                 /* NOLINT(bugprone-reserved-identifier) */

static void *count_memory(void *memory)
{
    calls++;
    held += malloc_usable_size(memory);
    peak = held > peak ? held : peak;
    return memory;
}

void *malloc(size_t size)
{
    return count_memory(__libc_malloc(size));
}

void *calloc(size_t count, size_t size)
{
    void *memory = count_memory(__libc_calloc(count, size));
    written += memory ? count * size : 0;
    return memory;
}

void *realloc(void *old, size_t size)
{
    size_t old_size = malloc_usable_size(old);
    held -= old_size;
    void *memory = count_memory(__libc_realloc(old, size));
    written += memory != old ? old_size : 0;
    return memory;
}

void free(void *memory)
{
    held -= malloc_usable_size(memory);
    __libc_free(memory);
}
#else
bool cost_memory_is_counted(void)
{
    return false;
}
#endif
