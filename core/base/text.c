#include "core/base/text.h"

#include "core/base/memory.h"

#include <assert.h>
#include <stdio.h>

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
    char *to = room(text, size); /* which moves what is there */
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
    text_append_slice(text, slice_of(&c, 1));
}

void text_vprintf(struct text *text, const char *format, va_list args)
{
    enum { USUAL_SIZE = 64 }; /* of most; others are printed twice */
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

/* Bytes of the well-formed UTF-8 sequence at the start; 0: none (Unicode 15, table 3-7). */
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

/* What a terminal or a reader of lines could take for more than text. Two and three bytes: C1,
 * U+2028, U+2029. */
static bool needs_escape(const uint8_t *p, size_t length)
{
    if (length == 1)
        return p[0] < 0x20 || p[0] == '"' || p[0] == '\\' || p[0] == 0x7f;
    if (length == 2)
        return p[0] == 0xc2 && p[1] < 0xa0;
    return length == 3 && p[0] == 0xe2 && p[1] == 0x80 && (p[2] == 0xa8 || p[2] == 0xa9);
}

static void append_escaped(struct text *text, const uint8_t *p, size_t length)
{
    static const char *const shorts[128] = {
        ['"'] = "\\\"", ['\\'] = "\\\\", ['\n'] = "\\n", ['\r'] = "\\r", ['\t'] = "\\t",
    };
    if (length == 1 && shorts[p[0]])
        text_append(text, shorts[p[0]]);
    else if (length < 3) /* of two bytes the second is the character: they begin at U+0080 */
        text_printf(text, "\\u%04x", p[length - 1]);
    else
        text_printf(text, "\\u20%02x", p[2] - 0x80);
}

void text_append_json(struct text *text, struct slice bytes)
{
    size_t plain = 0; /* start of the run that needs no change */
    size_t i = 0;
    while (i < bytes.size) {
        size_t length = text_utf8_length(bytes.data + i, bytes.size - i);
        if (length > 0 && !needs_escape(bytes.data + i, length)) {
            i += length;
            continue;
        }
        text_append_slice(text, slice_of(bytes.data + plain, i - plain));
        if (length == 0)
            text_append(text, "\xef\xbf\xbd");
        else
            append_escaped(text, bytes.data + i, length);
        i += length ? length : 1;
        plain = i;
    }
    if (plain < i)
        text_append_slice(text, slice_of(bytes.data + plain, i - plain));
    else
        room(text, 0)[0] = '\0';
}

int text_hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
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
