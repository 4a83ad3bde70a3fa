#include "core/base/memory.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* Bytes allocated by all threads. A thread adds its own when they are many, so that threads rarely
 * write to the same cache line. */
static _Atomic uint64_t allocated;
static _Thread_local size_t uncounted;

enum { COUNTED_AT_ONCE = 64 * 1024 };

static void count(size_t size)
{
    uncounted += size;
    if (uncounted < COUNTED_AT_ONCE)
        return;
    atomic_fetch_add_explicit(&allocated, uncounted, memory_order_relaxed);
    uncounted = 0;
}

uint64_t memory_allocated(void)
{
    return atomic_load_explicit(&allocated, memory_order_relaxed);
}

static void print_report(const char *message, const char *what, uint64_t value)
{
    fprintf(stderr, "profcol: %s (%s: %llu)\n", message, what, (unsigned long long)value);
}

static void (*report)(const char *message, const char *what, uint64_t value) = print_report;

void memory_report_with(void (*function)(const char *message, const char *what, uint64_t value))
{
    report = function;
}

static void *checked(void *memory, size_t size)
{
    count(size);
    if (!memory && size > 0) {
        report("Out of memory", "bytes", size);
        abort();
    }
    return memory;
}

static size_t product(size_t count, size_t element_size)
{
    size_t size;
    if (__builtin_mul_overflow(count, element_size, &size)) {
        report("Out of memory: too many elements", "elements", count);
        abort();
    }
    return size;
}

/* Not inlined: in memory_zalloc, the compiler would make calloc of malloc and memset. */
__attribute__((noinline)) void *memory_alloc(size_t size)
{
    return checked(malloc(size), size);
}

/* Before glibc 2.41, calloc does not use the thread's cache of free blocks, which keeps blocks of
 * up to 1 KiB. Larger ones are left to calloc, because it does not clear pages that are new. */
void *memory_zalloc(size_t size)
{
    enum { CACHED_MAX = 1024 };
    if (size > CACHED_MAX)
        return checked(calloc(1, size), size);
    void *memory = memory_alloc(size);
    return size > 0 ? memset(memory, 0, size) : memory;
}

void *memory_realloc(void *old, size_t size)
{
    return checked(realloc(old, size), size);
}

char *memory_strdup(const char *text)
{
    return memory_strndup(text, strlen(text));
}

char *memory_strndup(const void *text, size_t size)
{
    char *copy = memory_alloc(size + 1);
    if (size > 0)
        memcpy(copy, text, size);
    copy[size] = '\0';
    return copy;
}

void *memory_array(size_t count, size_t element_size)
{
    return memory_zalloc(product(count, element_size));
}

void *memory_grow(void *old, size_t count, size_t element_size)
{
    return memory_realloc(old, product(count, element_size));
}
