#include "core/ottl/ottl_literals.h"

#include "core/base/arena.h"
#include "core/base/memory.h"
#include "core/base/text.h"
#include "core/ottl/ottl.h"

#include <assert.h>
#include <math.h>

/* ---- strings ---- */

size_t ottl_write_utf8(uint32_t c, uint8_t *to)
{
    if (c < 0x80) {
        to[0] = (uint8_t)c;
        return 1;
    }
    if (c < 0x800) {
        to[0] = (uint8_t)(0xc0 | c >> 6);
        to[1] = (uint8_t)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return 0;
    if (c < 0x10000) {
        to[0] = (uint8_t)(0xe0 | c >> 12);
        to[1] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
        to[2] = (uint8_t)(0x80 | (c & 0x3f));
        return 3;
    }
    to[0] = (uint8_t)(0xf0 | c >> 18);
    to[1] = (uint8_t)(0x80 | (c >> 12 & 0x3f));
    to[2] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
    to[3] = (uint8_t)(0x80 | (c & 0x3f));
    return 4;
}

/* Reads `count` digits of a base; returns false if there are fewer. */
static bool read_digits(struct slice digits, size_t count, unsigned base, uint32_t *out)
{
    uint32_t value = 0;
    if (digits.size < count)
        return false;
    for (size_t i = 0; i < count; i++) {
        int digit = text_hex_digit(digits.data[i]);
        if (digit < 0 || (unsigned)digit >= base || value > UINT32_MAX / base - 1)
            return false;
        value = value * base + (unsigned)digit;
    }
    *out = value;
    return true;
}

/* Reads the escape after a backslash; returns its size, 0 if there is no such escape. */
static size_t read_escape(struct slice rest, uint32_t *out)
{
    static const char names[] = "abfnrtv\\\"", values[] = "\a\b\f\n\r\t\v\\\"";
    assert(rest.size > 0);
    const char *simple = rest.data[0] ? strchr(names, rest.data[0]) : NULL;
    if (simple) {
        *out = (uint8_t)values[simple - names];
        return 1;
    }
    struct slice digits = slice_of(rest.data + 1, rest.size - 1);
    switch (rest.data[0]) {
    case 'x':
        return read_digits(digits, 2, 16, out) ? 3 : 0;
    case 'u':
        return read_digits(digits, 4, 16, out) ? 5 : 0;
    case 'U':
        return read_digits(digits, 8, 16, out) ? 9 : 0;
    default:
        return read_digits(rest, 3, 8, out) && *out <= 0xff ? 3 : 0;
    }
}

bool ottl_unquote(struct slice quoted, struct arena *arena, struct slice *out)
{
    assert(quoted.size >= 2 && quoted.data[0] == '"' && quoted.data[quoted.size - 1] == '"');
    struct slice text = slice_of(quoted.data + 1, quoted.size - 2);
    *out = text;
    if (!memchr(text.data, '\\', text.size))
        return true;
    uint8_t *to = arena_alloc(arena, text.size), *start = to;
    for (size_t i = 0; i < text.size;) {
        uint32_t character;
        if (text.data[i] != '\\') {
            *to++ = text.data[i++];
            continue;
        }
        size_t used = read_escape(slice_of(text.data + i + 1, text.size - i - 1), &character);
        size_t written = used > 0 ? ottl_write_utf8(character, to) : 0;
        if (written == 0)
            return false;
        to += written; /* never longer than its escape */
        i += used + 1;
    }
    *out = slice_of(start, (size_t)(to - start));
    return true;
}

/* ---- bytes and numbers ---- */

bool ottl_read_hex(struct slice text, struct arena *arena, struct slice *out)
{
    assert(text.size > 2);
    size_t size = (text.size - 2) / 2;
    if (text.size % 2 != 0)
        return false;
    uint8_t *bytes = arena_alloc(arena, size);
    for (size_t i = 0; i < size; i++) {
        const uint8_t *pair = text.data + 2 + 2 * i;
        bytes[i] = (uint8_t)(text_hex_digit(pair[0]) << 4 | text_hex_digit(pair[1]));
    }
    *out = slice_of(bytes, size);
    return true;
}

bool ottl_read_int(struct slice digits, int64_t *out)
{
    unsigned base = digits.size > 1 && digits.data[0] == '0' ? 8 : 10;
    uint64_t value = 0;
    for (size_t i = 0; i < digits.size; i++) {
        unsigned digit = (unsigned)(digits.data[i] - '0');
        if (digit >= base || value > ((uint64_t)INT64_MAX - digit) / base)
            return false;
        value = value * base + digit;
    }
    *out = (int64_t)value;
    return true;
}

bool ottl_read_float(struct slice text, double *out)
{
    char *copy = memory_strndup(text.data, text.size);
    *out = strtod(copy, NULL);
    free(copy);
    return isfinite(*out);
}

void ottl_append_text(struct text *out, const char *text)
{
    text_append_char(out, '"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            text_append_char(out, '\\');
        text_append_char(out, *text);
    }
    text_append_char(out, '"');
}
