#include "core/base/memory.h"

#include <stdio.h>
#include <string.h>

static void *checked(void *memory, size_t size)
{
    if (!memory && size > 0) {
        fprintf(stderr, "profcol: out of memory (%zu bytes)\n", size);
        abort();
    }
    return memory;
}

static size_t product(size_t count, size_t element_size)
{
    size_t size;
    if (__builtin_mul_overflow(count, element_size, &size)) {
        fprintf(stderr, "profcol: out of memory (%zu elements of %zu bytes)\n", count,
                element_size);
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
