#include "tests/unit/heap_peak.h"

#include <malloc.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED
#endif

static _Thread_local size_t held, peak, before, calls, written;

#if defined(__GLIBC__) && !defined(IS_SANITIZED)
#define COUNTS_MEMORY true

/* The allocator's own functions; those below stand before them for the whole program. */
void *__libc_malloc(size_t size);               /* NOLINT(bugprone-reserved-identifier) */
void *__libc_calloc(size_t count, size_t size); /* NOLINT(bugprone-reserved-identifier) */
void *__libc_realloc(void *old, size_t size);   /* NOLINT(bugprone-reserved-identifier) */
void __libc_free(void *memory);                 /* NOLINT(bugprone-reserved-identifier) */

static void *count_memory(void *memory)
{
    calls++;
    held += malloc_usable_size(memory);
    /* What another thread allocated and this one freed can make it "negative". */
    peak = held > peak && held <= (size_t)-1 / 2 ? held : peak;
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
#define COUNTS_MEMORY false
#endif

bool heap_peak_is_counted(void)
{
    return COUNTS_MEMORY;
}

void heap_peak_begin(void)
{
    peak = before = held;
    calls = written = 0;
}

size_t heap_peak_bytes(void)
{
    return peak - before;
}

size_t heap_peak_calls(void)
{
    return calls;
}

size_t heap_peak_written(void)
{
    return written;
}
