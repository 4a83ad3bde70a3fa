#include "config/scalar_place.h"

#include "core/base/text.h"

#include <assert.h>

/* A place in the source; rest: what comes from there on. */
struct cursor {
    struct slice rest;
    unsigned line;
    unsigned column;
};

static uint8_t byte_at(const struct cursor *at, size_t i)
{
    return i < at->rest.size ? at->rest.data[i] : 0;
}

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static size_t character_size(struct slice text)
{
    size_t size = 1;
    while (size < text.size && (text.data[size] & 0xc0) == 0x80)
        size++;
    return size;
}

/* Moves over a character, or over a line end. */
static void step(struct cursor *at)
{
    uint8_t c = byte_at(at, 0);
    if (at->rest.size == 0)
        return;
    bool is_pair = c == '\r' && byte_at(at, 1) == '\n';
    size_t size = is_pair ? 2 : character_size(at->rest);
    at->rest = slice_of(at->rest.data + size, at->rest.size - size);
    bool is_line = c == '\n' || c == '\r';
    at->line += is_line;
    at->column = is_line ? 1 : at->column + 1;
}

static void skip_blanks(struct cursor *at)
{
    while (at->rest.size > 0 && is_blank(byte_at(at, 0)))
        step(at);
}

static void skip_line(struct cursor *at)
{
    for (unsigned line = at->line; at->rest.size > 0 && at->line == line;)
        step(at);
}

/* Returns the begin of the content: after an anchor or tag, the quote, the line with | or >. */
static struct cursor content(struct config_place begin, uint8_t *style_out)
{
    static const char mark[] = "\xef\xbb\xbf";
    struct slice yaml = begin.source->yaml;
    struct cursor at = {yaml, 1, 1};
    if (yaml.size >= 3 && memcmp(yaml.data, mark, 3) == 0)
        at.rest = slice_of(yaml.data + 3, yaml.size - 3);
    while (at.rest.size > 0 &&
           (at.line < begin.line || (at.line == begin.line && at.column < begin.column)))
        step(&at);
    while (byte_at(&at, 0) == '&' || byte_at(&at, 0) == '!') {
        while (at.rest.size > 0 && !is_blank(byte_at(&at, 0)))
            step(&at);
        skip_blanks(&at);
    }
    *style_out = byte_at(&at, 0);
    if (*style_out == '|' || *style_out == '>')
        skip_line(&at);
    else if (*style_out == '"' || *style_out == '\'')
        step(&at);
    return at;
}

/* Moves over an escape of a text in double quotes. Returns whether it stands for a blank, or for
 * nothing. */
static bool escape_is_blank(struct cursor *at)
{
    unsigned digits = 0, value = 0;
    step(at);
    uint8_t c = byte_at(at, 0);
    if (is_blank(c))
        return true; /* a line end that does not count, or a blank that does */
    step(at);
    if (c == 'x' || c == 'u' || c == 'U')
        digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
    for (; digits > 0; digits--) {
        int digit = text_hex_digit(byte_at(at, 0));
        value = value << 4 | (unsigned)(digit < 0 ? 0 : digit);
        step(at);
    }
    return c == 'n' || c == 't' || c == 'r' || value == ' ' || value == '\t' || value == '\n' ||
           value == '\r';
}

/* Moves over what is written for the next character of the text. Returns false if another one is
 * written. */
static bool step_character(struct cursor *at, uint8_t style, struct slice character)
{
    /* '' in single quotes, and $$ anywhere, are one character. */
    bool is_double = (style == '\'' && byte_at(at, 0) == '\'') ||
                     (byte_at(at, 0) == '$' && byte_at(at, 1) == '$');
    if (at->rest.size < character.size ||
        memcmp(at->rest.data, character.data, character.size) != 0)
        return false;
    step(at);
    if (is_double)
        step(at);
    return true;
}

/* Skips blanks, also those that are written as escapes; *start is where the next character is
 * written. Returns whether that is an escape, which is skipped, too. */
static bool skip_to_character(struct cursor *at, uint8_t style, struct cursor *start)
{
    for (;;) {
        skip_blanks(at);
        *start = *at;
        if (style != '"' || byte_at(at, 0) != '\\' || at->rest.size == 1)
            return false;
        if (!escape_is_blank(at))
            return true;
    }
}

/* Finds what is written from a byte of the text on. */
static bool find(struct config_place begin, struct slice text, size_t offset,
                 struct cursor *start_out)
{
    uint8_t style;
    assert(offset <= text.size);
    if (!begin.source || !begin.source->yaml.data)
        return false;
    struct cursor at = content(begin, &style), start = at;
    for (size_t i = 0; i <= offset && i < text.size;) {
        struct slice character =
            slice_of(text.data + i, character_size(slice_of(text.data + i, text.size - i)));
        bool is_text = !is_blank(text.data[i]);
        if (is_text && !skip_to_character(&at, style, &start) &&
            !step_character(&at, style, character))
            return false;
        if (!is_text || i + character.size <= offset)
            start = at;
        i += character.size;
    }
    *start_out = start;
    return true;
}

bool scalar_place(struct config_place begin, struct slice text, size_t offset,
                  struct config_place *out)
{
    struct cursor start;
    if (!find(begin, text, offset, &start))
        return false;
    *out = (struct config_place){begin.source, start.line, start.column};
    return true;
}

bool scalar_is_cut(struct config_place begin, struct slice text)
{
    struct cursor end;
    size_t blanks = 0;
    if (!find(begin, text, text.size, &end))
        return false;
    while (byte_at(&end, blanks) == ' ' || byte_at(&end, blanks) == '\t')
        blanks++;
    return blanks > 0 && byte_at(&end, blanks) == '#';
}
