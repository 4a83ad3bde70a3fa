#include "core/data/json_reader.h"

#include "core/base/text.h"

#include <assert.h>

static bool broken(struct json_reader *reader, const char *problem)
{
    reader->problem = problem;
    return false;
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static void skip_space(struct json_reader *reader)
{
    while (reader->next < reader->end && (*reader->next == ' ' || *reader->next == '\n' ||
                                          *reader->next == '\r' || *reader->next == '\t'))
        reader->next++;
}

static bool starts_with(const struct json_reader *reader, const char *literal)
{
    size_t size = strlen(literal);
    return (size_t)(reader->end - reader->next) >= size && memcmp(reader->next, literal, size) == 0;
}

enum json_kind json_peek(struct json_reader *reader)
{
    skip_space(reader);
    if (reader->next == reader->end)
        return JSON_BROKEN;
    switch (*reader->next) {
    case '{':
        return JSON_OBJECT;
    case '[':
        return JSON_LIST;
    case '"':
        return JSON_STRING;
    case 't':
        return starts_with(reader, "true") ? JSON_TRUE : JSON_BROKEN;
    case 'f':
        return starts_with(reader, "false") ? JSON_FALSE : JSON_BROKEN;
    case 'n':
        return starts_with(reader, "null") ? JSON_NULL : JSON_BROKEN;
    default:
        return *reader->next == '-' || is_digit(*reader->next) ? JSON_NUMBER : JSON_BROKEN;
    }
}

void json_take_literal(struct json_reader *reader, enum json_kind kind)
{
    assert(kind == JSON_TRUE || kind == JSON_FALSE || kind == JSON_NULL);
    assert(reader->end - reader->next >=
           (kind == JSON_FALSE ? 5 : 4)); /* json_peek has checked it */
    reader->next += kind == JSON_FALSE ? 5 : 4;
}

/* Takes digits; returns false without at least one. */
static bool take_digits(struct json_reader *reader)
{
    const uint8_t *start = reader->next;
    while (reader->next < reader->end && is_digit(*reader->next))
        reader->next++;
    return reader->next > start || broken(reader, "a number without digits");
}

static bool take_char(struct json_reader *reader, uint8_t c)
{
    if (reader->next == reader->end || *reader->next != c)
        return false;
    reader->next++;
    return true;
}

bool json_take_number(struct json_reader *reader, struct slice *out)
{
    const uint8_t *start = reader->next;
    take_char(reader, '-');
    if (!take_char(reader, '0') && !take_digits(reader))
        return false;
    if (take_char(reader, '.') && !take_digits(reader))
        return false;
    if (take_char(reader, 'e') || take_char(reader, 'E')) {
        if (!take_char(reader, '+'))
            take_char(reader, '-');
        if (!take_digits(reader))
            return false;
    }
    *out = slice_of(start, (size_t)(reader->next - start));
    return true;
}

bool json_is_number(struct slice text)
{
    struct json_reader reader = json_reader(text);
    struct slice number;
    return text.size > 0 && json_take_number(&reader, &number) && reader.next == reader.end;
}

/* Returns the value of four hex digits; -1 if they are not. */
static int32_t hex_quad(const uint8_t *from)
{
    int32_t value = 0;
    for (int i = 0; i < 4; i++) {
        int digit = text_hex_digit(from[i]);
        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

/* Takes the part of an escape after the backslash. */
static bool take_escape(struct json_reader *reader)
{
    if (reader->next == reader->end)
        return broken(reader, "unterminated string");
    uint8_t c = *reader->next++;
    if (c == 'u') {
        if (reader->end - reader->next < 4 || hex_quad(reader->next) < 0)
            return broken(reader, "\\u without four hex digits");
        reader->next += 4;
        return true;
    }
    return (c != '\0' && strchr("\"\\/bfnrt", c)) ||
           broken(reader, "an unknown escape in a string");
}

bool json_take_string(struct json_reader *reader, struct slice *raw_out, bool *has_escapes_out)
{
    assert(*reader->next == '"');
    const uint8_t *start = ++reader->next;
    *has_escapes_out = false;
    while (reader->next < reader->end) {
        uint8_t c = *reader->next++;
        if (c == '"') {
            *raw_out = slice_of(start, (size_t)(reader->next - 1 - start));
            return true;
        }
        if (c < 0x20)
            return broken(reader, "a control character in a string");
        if (c != '\\')
            continue;
        *has_escapes_out = true;
        if (!take_escape(reader))
            return false;
    }
    return broken(reader, "unterminated string");
}

/* Called after the opening bracket or a value: returns true if another item follows. */
static bool next_item(struct json_reader *reader, bool *first, uint8_t open, uint8_t close,
                      const char *problem)
{
    bool is_first = *first;
    *first = false;
    if (is_first) {
        assert(*reader->next == open);
        reader->next++;
    }
    skip_space(reader);
    if (take_char(reader, close))
        return false;
    if (is_first)
        return true;
    if (!take_char(reader, ','))
        return broken(reader, problem);
    skip_space(reader);
    return true;
}

bool json_next_member(struct json_reader *reader, bool *first, struct slice *raw_key_out,
                      bool *has_escapes_out)
{
    if (!next_item(reader, first, '{', '}', "expected , or } after a member of an object"))
        return false;
    if (json_peek(reader) != JSON_STRING)
        return broken(reader, "a member of an object without a name");
    if (!json_take_string(reader, raw_key_out, has_escapes_out))
        return false;
    skip_space(reader);
    return take_char(reader, ':') || broken(reader, "expected : after the name of a member");
}

bool json_next_element(struct json_reader *reader, bool *first)
{
    return next_item(reader, first, '[', ']', "expected , or ] after an element of a list");
}

static bool skip_object(struct json_reader *reader, unsigned depth)
{
    bool first = true, has_escapes;
    struct slice key;
    while (json_next_member(reader, &first, &key, &has_escapes))
        if (!json_skip(reader, depth))
            return false;
    return !reader->problem;
}

static bool skip_list(struct json_reader *reader, unsigned depth)
{
    bool first = true;
    while (json_next_element(reader, &first))
        if (!json_skip(reader, depth))
            return false;
    return !reader->problem;
}

bool json_skip(struct json_reader *reader, unsigned depth)
{
    struct slice ignored;
    bool has_escapes;
    enum json_kind kind = json_peek(reader);
    if ((kind == JSON_OBJECT || kind == JSON_LIST) && depth == 0)
        return broken(reader, "nested too deeply");
    switch (kind) {
    case JSON_OBJECT:
        return skip_object(reader, depth - 1);
    case JSON_LIST:
        return skip_list(reader, depth - 1);
    case JSON_STRING:
        return json_take_string(reader, &ignored, &has_escapes);
    case JSON_NUMBER:
        return json_take_number(reader, &ignored);
    case JSON_TRUE:
    case JSON_FALSE:
    case JSON_NULL:
        json_take_literal(reader, kind);
        return true;
    case JSON_BROKEN:
        break;
    }
    return broken(reader, reader->next == reader->end ? "unexpected end" : "not a value");
}

static uint8_t *write_utf8(uint8_t *to, uint32_t c)
{
    assert(c <= 0x10ffff);
    if (c < 0x80) {
        *to++ = (uint8_t)c;
    } else if (c < 0x800) {
        *to++ = (uint8_t)(0xc0 | c >> 6);
        *to++ = (uint8_t)(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        *to++ = (uint8_t)(0xe0 | c >> 12);
        *to++ = (uint8_t)(0x80 | (c >> 6 & 0x3f));
        *to++ = (uint8_t)(0x80 | (c & 0x3f));
    } else {
        *to++ = (uint8_t)(0xf0 | c >> 18);
        *to++ = (uint8_t)(0x80 | (c >> 12 & 0x3f));
        *to++ = (uint8_t)(0x80 | (c >> 6 & 0x3f));
        *to++ = (uint8_t)(0x80 | (c & 0x3f));
    }
    return to;
}

/* Returns the code point of the \uXXXX (or a pair of them) whose digits start at *from; moves *from
 * after it. */
static uint32_t unescape_unicode(const uint8_t **from, const uint8_t *end)
{
    uint32_t c = (uint32_t)hex_quad(*from);
    assert(c <= 0xffff); /* json_take_string has checked the digits */
    *from += 4;
    if (c < 0xd800 || c > 0xdfff)
        return c;
    if (c >= 0xdc00 || end - *from < 6 || (*from)[0] != '\\' || (*from)[1] != 'u')
        return 0xfffd;
    uint32_t low = (uint32_t)hex_quad(*from + 2);
    if (low < 0xdc00 || low > 0xdfff)
        return 0xfffd;
    *from += 6;
    return 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
}

static uint8_t unescape_short(uint8_t c)
{
    switch (c) {
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    default:
        return c;
    }
}

size_t json_unescape(struct slice raw, uint8_t *to)
{
    const uint8_t *from = raw.data, *end = raw.data + raw.size;
    uint8_t *start = to;
    while (from < end) {
        if (*from != '\\') {
            *to++ = *from++;
            continue;
        }
        uint8_t c = from[1];
        from += 2;
        if (c == 'u')
            to = write_utf8(to, unescape_unicode(&from, end));
        else
            *to++ = unescape_short(c);
    }
    assert((size_t)(to - start) <= raw.size);
    return (size_t)(to - start);
}
