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

void *memory_alloc(size_t size)
{
    return checked(malloc(size), size);
}

void *memory_zalloc(size_t size)
{
    return checked(calloc(1, size), size);
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
