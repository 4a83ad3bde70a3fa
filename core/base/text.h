/*
 * text: a string that grows as text is appended.
 *
 * For text that people read (reports, errors, metrics pages), not for the data path. Always
 * NUL-terminated once something has been appended.
 *
 * Owner: whoever initialised it (all-zero is valid and empty); free it with text_deinit.
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
    size_t limit; /* bytes, for code that stops printing when text_is_full; 0: none */
};

/* Append a string, or bytes. */
void text_append(struct text *text, const char *string);
void text_append_slice(struct text *text, struct slice bytes);
/* Appends bytes [start, start + size) of the text itself once more. */
void text_append_again(struct text *text, size_t start, size_t size);
/* Append a character, a number in decimal, or formatted text. */
void text_append_char(struct text *text, char c);
void text_append_u64(struct text *text, uint64_t number);
void text_printf(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_vprintf(struct text *text, const char *format, va_list args);
/* Writes a number in decimal, without a NUL, into the at most 20 bytes before `end`. Returns the
 * address of its first digit. */
char *text_write_u64(char *end, uint64_t number);
/* Appends the bytes as the content of a JSON string: quotes, backslashes, control characters (C0,
 * DEL, C1), the line separators U+2028 and U+2029, and what changes the direction of text are
 * escaped, invalid UTF-8 becomes U+FFFD. */
void text_append_json(struct text *text, struct slice bytes);
/* Returns the length in bytes of the well-formed UTF-8 sequence at p[0..size), size > 0; 0 if there
 * is none. */
size_t text_utf8_length(const uint8_t *p, size_t size);
/* Returns the character of such a sequence of `length` bytes. */
uint32_t text_utf8_decode(const uint8_t *p, size_t length);
/* Returns the size in bytes of the longest beginning of a valid UTF-8 text that has at most max
 * bytes and splits no character. */
size_t text_utf8_cut(struct slice text, size_t max);
/* Reads a number that is all of the text, in decimal digits. Returns false if there are others, or
 * none, or too many. */
bool text_read_u64(struct slice text, uint64_t *out);
/* Returns how many decimal digits the text has from a position on. */
size_t text_count_digits(struct slice text, size_t from);
/* Removes a character that is cut off at the end of a text, as snprintf leaves it. */
void text_end_at_character(char *text);
/* Returns the value of a hex digit of either case, 0 to 15; -1 if it is not one. */
int text_hex_digit(uint8_t c);
/* Returns the byte that two hex digits stand for; -1 if one of them is no hex digit. */
int text_hex_byte(const uint8_t digits[2]);
/* Returns the byte that "%41" at the beginning of the text stands for (RFC 3986, section 2.1); -1
 * if the text begins otherwise. */
int text_percent_byte(struct slice text);
/* How text_decode_percent reads; a sum of these. */
enum text_percent {
    TEXT_PERCENT_STRICT = 0,
    TEXT_PERCENT_KEEP_BROKEN = 1, /* a % without two hex digits stands for itself */
    TEXT_PERCENT_PLUS_BLANK = 2,  /* + is a blank, as in a query */
};
/* Decodes "%41" (RFC 3986, section 2.1) into `out`, which may be the text itself; at most `room`
 * bytes, without a NUL. Sets *size_out to their number. Returns false at a broken escape, or if the
 * result has more bytes; what was decoded before is there. how: enum text_percent. */
bool text_decode_percent(struct slice text, unsigned how, uint8_t *out, size_t room,
                         size_t *size_out);
/* Appends the bytes for a part of a URL: what is not unreserved (RFC 3986, section 2.3) as "%2F".
 */
void text_append_percent(struct text *text, struct slice bytes);
/* Decodes base64 (RFC 4648) in the standard or URL alphabet, with or without padding. `out` has
 * room for three quarters of the text, and may be the text itself. Returns false if it is invalid.
 */
bool text_decode_base64(struct slice text, uint8_t *out, size_t *size_out);
/* Appends the bytes as lower-case hex digits. */
void text_append_hex(struct text *text, struct slice bytes);
/* Appends a wall-clock time in UTC, in the format of RFC 3339: 2026-01-02T03:04:05.000000006Z. */
void text_append_utc(struct text *text, uint64_t wall_ns);
/* Appends a duration in Go's format, truncated to milliseconds: 1h2m3.004s, 250ms. */
void text_append_duration(struct text *text, uint64_t ns);
/* Whether the text is longer than its limit. Appending does not check the limit. */
static inline bool text_is_full(const struct text *text)
{
    return text->limit > 0 && text->size > text->limit;
}
/* Returns the text, NUL-terminated; "" if it is empty. Valid until the text changes. */
const char *text_string(const struct text *text);
/* Makes the text empty and keeps its memory. */
void text_clear(struct text *text);
/* Frees the memory; the text is empty again. */
void text_deinit(struct text *text);

#endif
