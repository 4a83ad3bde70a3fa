#include "processors/redaction/sql_mask.h"

#include <ctype.h>

/* The query that is read, and what comes of it. */
struct sql {
    struct slice query;
    size_t at;
    enum sql_dialect dialect;
    struct text *out;
};

static uint8_t peek(const struct sql *s, size_t ahead)
{
    return s->at + ahead < s->query.size ? s->query.data[s->at + ahead] : 0;
}

static void copy_to(struct sql *s, size_t end)
{
    text_append_slice(s->out, slice_of(s->query.data + s->at, end - s->at));
    s->at = end;
}

/* Replaces the text up to `end` by a question mark. */
static void mask_to(struct sql *s, size_t end)
{
    text_append_char(s->out, '?');
    s->at = end;
}

static void mask_rest(struct sql *s)
{
    mask_to(s, s->query.size);
}

/* Letters of other alphabets are letters. */
static bool is_letter(uint8_t c)
{
    return isalpha(c) || c == '_' || c >= 0x80;
}

static bool is_name(uint8_t c)
{
    return is_letter(c) || isdigit(c);
}

/* ---- names ---- */

/* Names have values in them, too: a table for each day or customer. */
static void copy_without_digits(struct sql *s, size_t end)
{
    bool was_digit = false;
    for (; s->at < end; s->at++) {
        uint8_t c = s->query.data[s->at];
        if (!isdigit(c))
            text_append_char(s->out, (char)c);
        else if (!was_digit)
            text_append_char(s->out, '?');
        was_digit = isdigit(c);
    }
}

static bool is_constant(struct slice word)
{
    return slice_is_ignoring_case(word, "true") || slice_is_ignoring_case(word, "false") ||
           slice_is_ignoring_case(word, "null");
}

static void take_word(struct sql *s)
{
    size_t end = s->at;
    while (end < s->query.size && (is_name(s->query.data[end]) || s->query.data[end] == '$'))
        end++;
    if (is_constant(slice_of(s->query.data + s->at, end - s->at)))
        mask_to(s, end);
    else
        copy_without_digits(s, end);
}

static void take_quoted_name(struct sql *s, uint8_t quote)
{
    const uint8_t *found = s->at + 1 < s->query.size
                               ? memchr(s->query.data + s->at + 1, quote, s->query.size - s->at - 1)
                               : NULL;
    if (found)
        copy_without_digits(s, (size_t)(found - s->query.data) + 1);
    else
        mask_rest(s);
}

/* A variable or parameter: @name, @@name. */
static void take_parameter(struct sql *s)
{
    size_t end = s->at + 1;
    while (end < s->query.size && (is_name(s->query.data[end]) || s->query.data[end] == '@'))
        end++;
    copy_to(s, end);
}

/* ---- values ---- */

/* Digits, a point, an exponent with its sign; hexadecimal digits after 0x. */
static void take_number(struct sql *s)
{
    size_t end = s->at + (peek(s, 0) == '+' || peek(s, 0) == '-');
    bool is_hex = s->query.size - end > 1 && s->query.data[end] == '0' &&
                  (s->query.data[end + 1] | 0x20) == 'x';
    end += is_hex ? 2 : 0;
    for (; end < s->query.size; end++) {
        uint8_t c = s->query.data[end];
        bool is_sign = !is_hex && (c == '+' || c == '-') &&
                       (s->query.data[end - 1] | 0x20) == 'e' && end > s->at + 1;
        bool is_part = is_hex ? isxdigit(c) : isdigit(c) || c == '.' || (c | 0x20) == 'e';
        if (!is_part && !is_sign)
            break;
    }
    mask_to(s, end);
}

/* Returns where a string ends. A quote after a backslash is a part of it in MySQL; elsewhere nobody
 * knows, so there the rest of the query is part of it. */
static size_t string_end(const struct sql *s, uint8_t quote)
{
    for (size_t at = s->at + 1; at < s->query.size; at++) {
        uint8_t c = s->query.data[at];
        if (c == quote)
            return at + 1;
        if (c != '\\')
            continue;
        at++;
        if (s->dialect != SQL_MYSQL && at < s->query.size && s->query.data[at] == quote)
            return s->query.size;
    }
    return s->query.size;
}

/* $tag$text$tag$ of PostgreSQL, or $1. */
static void take_dollar(struct sql *s)
{
    size_t end = s->at + 1;
    if (isdigit(peek(s, 1))) {
        while (end < s->query.size && isdigit(s->query.data[end]))
            end++;
        mask_to(s, end);
        return;
    }
    while (end < s->query.size && is_name(s->query.data[end]))
        end++;
    if (end == s->query.size || s->query.data[end] != '$') {
        copy_to(s, s->at + 1);
        return;
    }
    struct slice tag = slice_of(s->query.data + s->at, end + 1 - s->at);
    const uint8_t *found =
        memmem(s->query.data + end + 1, s->query.size - end - 1, tag.data, tag.size);
    mask_to(s, found ? (size_t)(found - s->query.data) + tag.size : s->query.size);
}

/* ---- comments ---- */

/* Up to the end of the line; the mark stays. */
static void take_line_comment(struct sql *s, size_t mark)
{
    copy_to(s, s->at + mark);
    const uint8_t *found =
        s->at < s->query.size ? memchr(s->query.data + s->at, '\n', s->query.size - s->at) : NULL;
    size_t end = found ? (size_t)(found - s->query.data) : s->query.size;
    if (end > s->at)
        mask_to(s, end);
}

/* Some databases nest comments, and others do not. */
static void take_comment(struct sql *s)
{
    copy_to(s, s->at + 2);
    struct slice rest = slice_of(s->query.data + s->at, s->query.size - s->at);
    const uint8_t *end = rest.size > 0 ? memmem(rest.data, rest.size, "*/", 2) : NULL;
    size_t size = end ? (size_t)(end - rest.data) : rest.size;
    bool is_clear = end && !memmem(rest.data, size, "/*", 2);
    if (rest.size > 0 && size > 0)
        mask_to(s, is_clear ? s->at + size : s->query.size);
    if (is_clear)
        copy_to(s, s->at + 2);
}

/* ---- the query ---- */

static bool has_line_comment(const struct sql *s)
{
    return (peek(s, 0) == '-' && peek(s, 1) == '-') ||
           (peek(s, 0) == '#' && s->dialect != SQL_POSTGRESQL);
}

static bool has_number(const struct sql *s)
{
    uint8_t first = peek(s, 0), second = peek(s, 1);
    return isdigit(first) ||
           ((first == '+' || first == '-') && (isdigit(second) || second == '.')) ||
           (first == '.' && isdigit(second));
}

static void take_token(struct sql *s)
{
    uint8_t c = peek(s, 0);
    if (c == '\'' || (c == '"' && s->dialect != SQL_POSTGRESQL))
        mask_to(s, string_end(s, c));
    else if (c == '"' || c == '`')
        take_quoted_name(s, c);
    else if (has_line_comment(s))
        take_line_comment(s, c == '#' ? 1 : 2);
    else if (c == '/' && peek(s, 1) == '*')
        take_comment(s);
    else if (has_number(s))
        take_number(s);
    else if (is_letter(c))
        take_word(s);
    else if (c == '$')
        take_dollar(s);
    else if (c == '@' && is_name(peek(s, 1)))
        take_parameter(s);
    else
        copy_to(s, s->at + 1);
}

void sql_mask(struct slice query, enum sql_dialect dialect, struct text *out)
{
    struct sql s = {.query = slice_trim(query, SLICE_SPACES), .dialect = dialect, .out = out};
    while (s.at < s.query.size)
        take_token(&s);
}
