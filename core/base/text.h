/*
 * text: a string that grows while something is printed into it.
 *
 * For what people read (reports, errors, metrics pages), not for the data path. Always
 * NUL-terminated once appended to.
 *
 * Owner: who initialised it (all-zero is valid and empty); free with text_deinit.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_BASE_TEXT_H
#define PROFCOL_CORE_BASE_TEXT_H

#include "core/base/slice.h"

#include <stdarg.h>

struct text {
    char *data; /* NULL while empty */
    size_t size;
    size_t capacity;
    size_t limit; /* for who prints, who asks text_is_full; 0: none */
};

void text_append(struct text *text, const char *string);
void text_append_slice(struct text *text, struct slice bytes);
/* What stands in the text already, once more. */
void text_append_again(struct text *text, size_t start, size_t size);
void text_append_char(struct text *text, char c);
void text_printf(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_vprintf(struct text *text, const char *format, va_list args);
/* As the inside of a JSON string: quotes, backslashes, control characters (C0, DEL, C1) and the
 * line separators U+2028 and U+2029 escaped, invalid UTF-8 as U+FFFD. */
void text_append_json(struct text *text, struct slice bytes);
/* Bytes of the well-formed UTF-8 sequence at p[0..size), size > 0; 0: there is none. */
size_t text_utf8_length(const uint8_t *p, size_t size);
/* 0 to 15; -1: not a hex digit of either case. */
int text_hex_digit(uint8_t c);
/* Lower-case hex. */
void text_append_hex(struct text *text, struct slice bytes);
static inline bool text_is_full(const struct text *text)
{
    return text->limit > 0 && text->size > text->limit;
}
const char *text_string(const struct text *text); /* "" when empty */
void text_clear(struct text *text);
void text_deinit(struct text *text);

#endif
