#include "core/base/text.h"

#include "core/base/memory.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

static char *room(struct text *text, size_t more)
{
    assert(more < SIZE_MAX / 2 - text->size);
    size_t need = text->size + more + 1;
    if (need > text->capacity) {
        size_t capacity = text->capacity < 128 ? 128 : text->capacity * 2;
        text->capacity = capacity < need ? need : capacity;
        text->data = memory_realloc(text->data, text->capacity);
    }
    return text->data + text->size;
}

void text_append_slice(struct text *text, struct slice bytes)
{
    char *to = room(text, bytes.size);
    if (bytes.size > 0)
        memcpy(to, bytes.data, bytes.size);
    text->size += bytes.size;
    text->data[text->size] = '\0';
}

void text_append_again(struct text *text, size_t start, size_t size)
{
    assert(start <= text->size && size <= text->size - start);
    char *to = room(text, size); /* may move the text */
    memcpy(to, text->data + start, size);
    text->size += size;
    text->data[text->size] = '\0';
}

void text_append(struct text *text, const char *string)
{
    text_append_slice(text, slice_of_string(string));
}

void text_append_char(struct text *text, char c)
{
    char *to = room(text, 1);
    to[0] = c;
    to[1] = '\0';
    text->size++;
}

char *text_write_u64(char *end, uint64_t number)
{
    do {
        *--end = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    return end;
}

void text_append_u64(struct text *text, uint64_t number)
{
    char digits[20];
    char *end = digits + sizeof digits;
    const char *first = text_write_u64(end, number);
    text_append_slice(text, slice_of(first, (size_t)(end - first)));
}

void text_vprintf(struct text *text, const char *format, va_list args)
{
    enum { USUAL_SIZE = 64 }; /* enough for most texts; longer ones are printed twice */
    va_list again;
    va_copy(again, args);
    char *to = room(text, USUAL_SIZE);
    size_t left = text->capacity - text->size;
    int size = vsnprintf(to, left, format, args);
    assert(size >= 0);
    if ((size_t)size >= left)
        vsnprintf(room(text, (size_t)size), (size_t)size + 1, format, again);
    va_end(again);
    text->size += (size_t)size;
}

void text_printf(struct text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    text_vprintf(text, format, args);
    va_end(args);
}

/* By table 3-7 of Unicode 15. */
size_t text_utf8_length(const uint8_t *p, size_t size)
{
    if (p[0] < 0x80)
        return 1;
    size_t length = p[0] >= 0xc2 && p[0] <= 0xdf   ? 2
                    : (p[0] & 0xf0) == 0xe0        ? 3
                    : p[0] >= 0xf0 && p[0] <= 0xf4 ? 4
                                                   : 0;
    if (length == 0 || length > size)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
    bool beyond = (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf4 && p[1] > 0x8f);
    return overlong || beyond ? 0 : length;
}

uint32_t text_utf8_decode(const uint8_t *p, size_t length)
{
    assert(length >= 1 && length <= 4);
    uint32_t c = length == 1 ? p[0] : p[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++)
        c = c << 6 | (p[i] & 0x3f);
    return c;
}

size_t text_utf8_cut(struct slice text, size_t max)
{
    size_t size = max;
    if (text.size <= max)
        return text.size;
    while (size > 0 && (text.data[size] & 0xc0) == 0x80)
        size--;
    return size;
}

void text_end_at_character(char *text)
{
    enum { TAIL_MAX = 3 }; /* continuation bytes of one character */
    size_t size = strlen(text), first = size;
    while (first > 0 && size - first < TAIL_MAX && ((uint8_t)text[first - 1] & 0xc0) == 0x80)
        first--;
    if (first == 0 || (uint8_t)text[first - 1] < 0xc0)
        return;
    const uint8_t *lead = (const uint8_t *)text + first - 1;
    if (text_utf8_length(lead, size - first + 1) == 0)
        text[first - 1] = '\0';
}

/* The most bytes that one byte of input becomes: \u001f. */
enum { ESCAPED_MAX = 6 };

/* For each ASCII character: 0 if it is not escaped, the letter after the backslash, or 'u' for
 * \u00XX. */
static const char escapes[128] = {
    [0x00] = 'u', [0x01] = 'u', [0x02] = 'u', [0x03] = 'u', [0x04] = 'u',  [0x05] = 'u',
    [0x06] = 'u', [0x07] = 'u', [0x08] = 'u', ['\t'] = 't', ['\n'] = 'n',  [0x0b] = 'u',
    [0x0c] = 'u', ['\r'] = 'r', [0x0e] = 'u', [0x0f] = 'u', [0x10] = 'u',  [0x11] = 'u',
    [0x12] = 'u', [0x13] = 'u', [0x14] = 'u', [0x15] = 'u', [0x16] = 'u',  [0x17] = 'u',
    [0x18] = 'u', [0x19] = 'u', [0x1a] = 'u', [0x1b] = 'u', [0x1c] = 'u',  [0x1d] = 'u',
    [0x1e] = 'u', [0x1f] = 'u', [0x7f] = 'u', ['"'] = '"',  ['\\'] = '\\',
};

static char *write_unicode_escape(char *to, unsigned character)
{
    static const char digits[] = "0123456789abcdef";
    *to++ = '\\';
    *to++ = 'u';
    for (int shift = 12; shift >= 0; shift -= 4)
        *to++ = digits[character >> shift & 15];
    return to;
}

static char *write_ascii(char *to, uint8_t c)
{
    if (escapes[c] == 0) {
        *to++ = (char)c;
        return to;
    }
    if (escapes[c] == 'u')
        return write_unicode_escape(to, c);
    *to++ = '\\';
    *to++ = escapes[c];
    return to;
}

/* Whether a character changes the direction of what follows (Unicode's Bidi_Control), so that a
 * text may look like another one. */
static bool is_direction(uint32_t c)
{
    return c == 0x061c || c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) ||
           (c >= 0x2066 && c <= 0x2069);
}

/* Whether a multi-byte character could control a terminal, end a line or change its direction: C1,
 * U+2028, U+2029 and the like. */
static bool is_control(uint32_t c)
{
    return (c >= 0x80 && c < 0xa0) || c == 0x2028 || c == 0x2029 || is_direction(c);
}

/* Writes the sequence that begins with p[0], which is not ASCII. *length_out: number of bytes
 * read. */
static char *write_sequence(char *to, const uint8_t *p, size_t size, size_t *length_out)
{
    static const uint8_t replacement[] = {0xef, 0xbf, 0xbd}; /* U+FFFD */
    size_t length = text_utf8_length(p, size);
    *length_out = length ? length : 1;
    if (length == 0) {
        memcpy(to, replacement, sizeof replacement);
        return to + sizeof replacement;
    }
    uint32_t character = text_utf8_decode(p, length);
    if (is_control(character))
        return write_unicode_escape(to, character);
    memcpy(to, p, length);
    return to + length;
}

/* Appends the characters that begin before `end`; the last may extend past it, up to `limit`.
 * Returns the rest. */
static const uint8_t *append_escaped(struct text *text, const uint8_t *p, const uint8_t *end,
                                     const uint8_t *limit)
{
    char *to = room(text, (size_t)(end - p) * ESCAPED_MAX);
    while (p < end) {
        size_t length = 1;
        if (*p < 0x80)
            to = write_ascii(to, *p);
        else
            to = write_sequence(to, p, (size_t)(limit - p), &length);
        p += length;
    }
    *to = '\0';
    text->size = (size_t)(to - text->data);
    assert(text->size < text->capacity);
    return p;
}

void text_append_json(struct text *text, struct slice bytes)
{
    enum {
        AT_ONCE = 512
    }; /* text is appended in parts, because room is made for the worst case, and most texts need
          less */
    room(text, 0)[0] = '\0';
    if (bytes.size == 0)
        return;
    const uint8_t *p = bytes.data, *limit = p + bytes.size;
    while (p < limit) {
        size_t left = (size_t)(limit - p);
        p = append_escaped(text, p, p + (left < AT_ONCE ? left : AT_ONCE), limit);
    }
}

bool text_read_u64(struct slice text, uint64_t *out)
{
    uint64_t number = 0;
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] < '0' || text.data[i] > '9' ||
            __builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(text.data[i] - '0'), &number))
            return false;
    *out = number;
    return text.size > 0;
}

size_t text_count_digits(struct slice text, size_t from)
{
    size_t at = from;
    while (at < text.size && isdigit(text.data[at]))
        at++;
    return at - from;
}

int text_hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int text_hex_byte(const uint8_t digits[2])
{
    int high = text_hex_digit(digits[0]), low = text_hex_digit(digits[1]);
    return high < 0 || low < 0 ? -1 : high << 4 | low;
}

int text_percent_byte(struct slice text)
{
    return text.size >= 3 && text.data[0] == '%' ? text_hex_byte(text.data + 1) : -1;
}

void text_append_percent(struct text *text, struct slice bytes)
{
    for (size_t i = 0; i < bytes.size; i++) {
        uint8_t c = bytes.data[i];
        if (isalnum(c) || (c && strchr("-._~", c)))
            text_append_char(text, (char)c);
        else
            text_printf(text, "%%%02X", c);
    }
}

bool text_decode_percent(struct slice text, unsigned how, uint8_t *out, size_t room,
                         size_t *size_out)
{
    *size_out = 0;
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        int byte = c == '%' ? text_percent_byte(slice_of(text.data + i, text.size - i)) : -1;
        if (*size_out == room || (c == '%' && byte < 0 && !(how & TEXT_PERCENT_KEEP_BROKEN)))
            return false;
        if (byte >= 0)
            i += 2;
        else if (c == '+' && (how & TEXT_PERCENT_PLUS_BLANK))
            byte = ' ';
        out[(*size_out)++] = (uint8_t)(byte < 0 ? c : byte);
    }
    return true;
}

static int base64_digit(uint8_t c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == '+' || c == '-')
        return 62;
    return c == '/' || c == '_' ? 63 : -1;
}

bool text_decode_base64(struct slice text, uint8_t *out, size_t *size_out)
{
    uint32_t bits = 0;
    unsigned bit_count = 0;
    uint8_t *to = out;
    if (text.size % 4 == 0)
        for (int padding = 0; padding < 2 && text.size > 0 && text.data[text.size - 1] == '=';
             padding++)
            text.size--;
    if (text.size % 4 == 1)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        int value = base64_digit(text.data[i]);
        if (value < 0)
            return false;
        bits = (bits << 6 | (uint32_t)value) & 0xffff;
        bit_count += 6;
        if (bit_count >= 8) {
            bit_count -= 8;
            *to++ = (uint8_t)(bits >> bit_count);
        }
    }
    *size_out = (size_t)(to - out);
    return true;
}

void text_append_hex(struct text *text, struct slice bytes)
{
    static const char digits[] = "0123456789abcdef";
    char *to = room(text, bytes.size * 2);
    for (size_t i = 0; i < bytes.size; i++) {
        *to++ = digits[bytes.data[i] >> 4];
        *to++ = digits[bytes.data[i] & 15];
    }
    *to = '\0';
    text->size += bytes.size * 2;
}

void text_append_utc(struct text *text, uint64_t wall_ns)
{
    time_t seconds = (time_t)(wall_ns / 1000000000);
    struct tm utc;
    char date[40];
    gmtime_r(&seconds, &utc);
    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &utc);
    text_printf(text, "%s.%09" PRIu64 "Z", date, wall_ns % 1000000000);
}

void text_append_duration(struct text *text, uint64_t ns)
{
    uint64_t ms = ns / 1000000, minutes = ms / 60000, hours = minutes / 60;
    if (ms > 0 && ms < 1000) {
        text_printf(text, "%" PRIu64 "ms", ms);
        return;
    }
    if (hours > 0)
        text_printf(text, "%" PRIu64 "h", hours);
    if (minutes > 0)
        text_printf(text, "%" PRIu64 "m", minutes % 60);
    char fraction[8];
    int digits = snprintf(fraction, sizeof(fraction), ".%03u", (unsigned)(ms % 1000));
    while (fraction[digits - 1] == '0')
        fraction[--digits] = '\0';
    text_printf(text, "%" PRIu64 "%ss", ms / 1000 % 60, digits > 1 ? fraction : "");
}

const char *text_string(const struct text *text)
{
    return text->data ? text->data : "";
}

void text_clear(struct text *text)
{
    text->size = 0;
    if (text->data)
        text->data[0] = '\0';
}

void text_deinit(struct text *text)
{
    free(text->data);
    *text = (struct text){0};
}
