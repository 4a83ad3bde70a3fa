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
#include <strings.h>

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

/* Whether 8 bytes are the same. */
static inline bool slice_equal_8(const uint8_t *a, const uint8_t *b)
{
    uint64_t left, right;
    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    return left == right;
}

/* Like slice_equal, for texts that are usually too short for a call of memcmp. Most have 8 to 32
 * bytes: the pieces that are compared overlap. */
static inline bool slice_equal_short(struct slice a, struct slice b)
{
    size_t size = a.size;
    if (size < 8 || size > 32)
        return slice_equal(a, b);
    if (size != b.size || !slice_equal_8(a.data, b.data) ||
        !slice_equal_8(a.data + size - 8, b.data + size - 8))
        return false;
    return size <= 16 || (slice_equal_8(a.data + 8, b.data + 8) &&
                          slice_equal_8(a.data + size - 16, b.data + size - 16));
}

/* Whether the bytes are those of the text. */
static inline bool slice_is(struct slice a, const char *text)
{
    return slice_equal(a, slice_of_string(text));
}

/* Whether the first bytes are these. */
static inline bool slice_begins_with(struct slice a, struct slice beginning)
{
    return a.size >= beginning.size &&
           slice_equal((struct slice){a.data, beginning.size}, beginning);
}

/* The same for texts. */
static inline bool string_begins_with(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

/* Like slice_is, for ASCII letters of either case. */
static inline bool slice_is_ignoring_case(struct slice a, const char *text)
{
    return a.size == strlen(text) && strncasecmp((const char *)a.data, text, a.size) == 0;
}

/* Sets of characters for slice_trim: those of HTTP's optional whitespace, and all of isspace. */
#define SLICE_BLANKS " \t"
#define SLICE_SPACES " \t\n\v\f\r"

static inline bool slice_is_one_of(uint8_t byte, const char *characters)
{
    while (*characters && (uint8_t)*characters != byte)
        characters++;
    return *characters;
}

/* Returns the text without these characters at its beginning and end. */
static inline struct slice slice_trim(struct slice text, const char *characters)
{
    while (text.size > 0 && slice_is_one_of(text.data[0], characters))
        text = slice_of(text.data + 1, text.size - 1);
    while (text.size > 0 && slice_is_one_of(text.data[text.size - 1], characters))
        text.size--;
    return text;
}

/* For printf: "%.*s", SLICE_ARG(s). Truncates at INT_MAX bytes. */
#define SLICE_ARG(s) ((int)((s).size > 0x7fffffff ? 0x7fffffff : (s).size)), (const char *)(s).data

#endif
