/*
 * slice: a view of bytes that have another owner.
 *
 * Owner: nobody; a slice lives as long as the buffer, arena or literal that it points into.
 *
 * Thread: plain data, any thread that may read what it points into.
 */
#ifndef PROFCOL_CORE_BASE_SLICE_H
#define PROFCOL_CORE_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct slice {
    const uint8_t *data;
    size_t size;
};

/* The bytes of a string literal, without its final NUL. */
#define SLICE(literal) ((struct slice){(const uint8_t *)("" literal), sizeof(literal) - 1})

static inline struct slice slice_of(const void *data, size_t size)
{
    return (struct slice){data, size};
}

/* text: NULL gives an empty slice. */
static inline struct slice slice_of_string(const char *text)
{
    return (struct slice){(const uint8_t *)text, text ? strlen(text) : 0};
}

/* Whether both have the same bytes. */
static inline bool slice_equal(struct slice a, struct slice b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* Whether the bytes are those of the text. */
static inline bool slice_is(struct slice a, const char *text)
{
    return slice_equal(a, slice_of_string(text));
}

/* For printf: "%.*s", SLICE_ARG(s). Truncates at INT_MAX bytes. */
#define SLICE_ARG(s) ((int)((s).size > 0x7fffffff ? 0x7fffffff : (s).size)), (const char *)(s).data

#endif
