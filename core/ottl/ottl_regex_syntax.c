#include "core/base/arena.h"
#include "core/data/utf8.h"
#include "core/ottl/ottl_literals.h"
#include "core/ottl/ottl_regex.h"

#include <assert.h>
#include <stdio.h>

enum { REPEAT_MAX = 1000, GROUP_DEPTH_MAX = 200 };

struct reader {
    struct slice pattern;
    size_t at;
    unsigned depth;
    struct text *out;
    struct ottl_groups *groups; /* NULL: groups capture nothing */
    struct error *err;
};

/* ---- reading ---- */

static bool at_end(const struct reader *r)
{
    return r->at >= r->pattern.size;
}

static uint8_t peek(const struct reader *r, size_t ahead)
{
    return r->at + ahead < r->pattern.size ? r->pattern.data[r->at + ahead] : 0;
}

static bool next_is(const struct reader *r, const char *text)
{
    size_t size = strlen(text);
    return r->pattern.size - r->at >= size && memcmp(r->pattern.data + r->at, text, size) == 0;
}

static bool take(struct reader *r, const char *text)
{
    if (!next_is(r, text))
        return false;
    r->at += strlen(text);
    return true;
}

static bool fail(struct reader *r, const char *problem, size_t from)
{
    size_t end = r->at < r->pattern.size ? r->at : r->pattern.size;
    return error_set(r->err, "error parsing regexp: %s: `%.*s`", problem, (int)(end - from),
                     (const char *)r->pattern.data + from);
}

/* Reads one character of UTF-8, which was checked. */
static uint32_t take_character(struct reader *r)
{
    size_t size = text_utf8_length(r->pattern.data + r->at, r->pattern.size - r->at);
    const uint8_t *p = r->pattern.data + r->at;
    assert(size > 0);
    r->at += size;
    return text_utf8_decode(p, size);
}

/* ---- writing ---- */

/* Letters and digits as they are, everything else by its number, so it has no other meaning. */
static void put_character(struct reader *r, uint32_t c)
{
    bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (plain)
        text_append_char(r->out, (char)c);
    else
        text_printf(r->out, "\\x{%x}", c);
}

/* ---- escapes ---- */

static bool is_octal(uint8_t c)
{
    return c >= '0' && c <= '7';
}

/* \x41 or \x{1F600}, after the x. */
static bool take_hex(struct reader *r, uint32_t *out)
{
    uint32_t value = 0;
    size_t digits = 0;
    bool in_braces = take(r, "{");
    while (text_hex_digit(peek(r, 0)) >= 0 && !at_end(r) && (in_braces || digits < 2)) {
        value = value * 16 + (uint32_t)text_hex_digit(peek(r, 0));
        if (value > 0x10ffff)
            return false;
        r->at++;
        digits++;
    }
    *out = value;
    return in_braces ? digits > 0 && take(r, "}") : digits == 2;
}

/* \0, \12, \123; a single digit would be a reference to a group. */
static bool take_octal(struct reader *r, uint32_t *out)
{
    uint32_t value = 0;
    if (peek(r, 0) != '0' && !is_octal(peek(r, 1)))
        return false;
    for (int i = 0; i < 3 && is_octal(peek(r, 0)); i++, r->at++)
        value = value * 8 + (uint32_t)(peek(r, 0) - '0');
    *out = value;
    return true;
}

/* Reads an escape that is one character, after the backslash. */
static bool take_escape(struct reader *r, uint32_t *out)
{
    static const char names[] = "afnrtv", values[] = "\a\f\n\r\t\v";
    size_t from = r->at - 1;
    uint8_t c = peek(r, 0);
    const char *found = c ? strchr(names, c) : NULL;
    bool ok;
    if (is_octal(c)) {
        ok = take_octal(r, out);
    } else if (c == 'x') {
        r->at++;
        ok = take_hex(r, out);
    } else {
        *out = found ? (uint8_t)values[found - names] : c;
        r->at++;
        ok = found || (c > 0 && c < 0x80 && !(c >= '0' && c <= '9') &&
                       !((c | 0x20) >= 'a' && (c | 0x20) <= 'z'));
    }
    return ok || fail(r,
                      at_end(r) && c == 0 ? "trailing backslash at end of expression"
                                          : "invalid escape sequence",
                      from);
}

/* \d and \w mean the same; \s has no vertical tab. Returns false if it is another escape. */
static bool put_perl_class(struct reader *r, bool in_class)
{
    uint8_t c = peek(r, 0);
    /* Outside a class, PCRE2 10.42 does not find letters of several bytes by \D and \W. */
    if (!in_class && (c == 'D' || c == 'W'))
        text_append(r->out, c == 'D' ? "[^0-9]" : "[^0-9A-Za-z_]");
    else if (c == 'd' || c == 'D' || c == 'w' || c == 'W')
        text_printf(r->out, "\\%c", c);
    else if (c == 's')
        text_append(r->out, in_class ? "\\t\\n\\f\\r\\x20" : "[\\t\\n\\f\\r\\x20]");
    else if (c == 'S')
        text_append(r->out, in_class ? "\\S\\x0b" : "[^\\t\\n\\f\\r\\x20]");
    else
        return false;
    r->at++;
    return true;
}

/* \pL, \PL, \p{Greek}, \p{^Greek}, after the backslash. */
static bool put_unicode_class(struct reader *r)
{
    size_t from = r->at - 1, start = r->at++;
    if (peek(r, 0) == '{') {
        while (!at_end(r) && peek(r, 0) != '}')
            r->at++;
        if (at_end(r))
            return fail(r, "invalid character class range", from);
    } else if (at_end(r) || peek(r, 0) >= 0x80) {
        return fail(r, "invalid character class range", from);
    }
    r->at++;
    text_append_char(r->out, '\\');
    text_append_slice(r->out, slice_of(r->pattern.data + start, r->at - start));
    return true;
}

/* ---- classes ---- */

static bool put_posix_class(struct reader *r)
{
    static const char *const names[] = {"alnum", "alpha", "ascii", "blank", "cntrl",
                                        "digit", "graph", "lower", "print", "punct",
                                        "space", "upper", "word",  "xdigit"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int negated = 0; negated < 2; negated++) {
            char text[24];
            snprintf(text, sizeof text, "[:%s%s:]", negated ? "^" : "", names[i]);
            if (take(r, text)) {
                text_append(r->out, text);
                return true;
            }
        }
    return false;
}

static bool take_class_character(struct reader *r, size_t from, uint32_t *out)
{
    if (at_end(r))
        return fail(r, "missing closing ]", from);
    if (take(r, "\\"))
        return take_escape(r, out);
    *out = take_character(r);
    return true;
}

static bool put_range(struct reader *r, size_t from)
{
    uint32_t low = 0, high = 0;
    size_t start = r->at;
    if (!take_class_character(r, from, &low))
        return false;
    put_character(r, low);
    if (peek(r, 0) != '-' || peek(r, 1) == ']' || r->at + 1 >= r->pattern.size)
        return true;
    r->at++;
    if (!take_class_character(r, from, &high))
        return false;
    if (high < low)
        return fail(r, "invalid character class range", start);
    text_append_char(r->out, '-');
    put_character(r, high);
    return true;
}

/* One item of a class that is no range; returns false if it is one. */
static bool put_class_item(struct reader *r, bool *ok)
{
    size_t from = r->at;
    *ok = true;
    if (next_is(r, "[:")) {
        if (put_posix_class(r))
            return true;
        for (size_t i = r->at + 2; i + 1 < r->pattern.size; i++)
            if (r->pattern.data[i] == ':' && r->pattern.data[i + 1] == ']') {
                r->at = i + 2;
                *ok = fail(r, "invalid character class range", from);
                return true;
            }
        return false;
    }
    if (peek(r, 0) != '\\')
        return false;
    r->at++;
    if (peek(r, 0) == 'p' || peek(r, 0) == 'P') {
        *ok = put_unicode_class(r);
        return true;
    }
    if (put_perl_class(r, true))
        return true;
    r->at = from;
    return false;
}

/* After the opening bracket. */
static bool put_class(struct reader *r)
{
    size_t from = r->at - 1;
    bool ok = true;
    text_append(r->out, take(r, "^") ? "[^" : "[");
    for (bool first = true; first || peek(r, 0) != ']'; first = false) {
        if (at_end(r))
            return fail(r, "missing closing ]", from);
        if (!put_class_item(r, &ok))
            ok = put_range(r, from);
        if (!ok)
            return false;
    }
    r->at++;
    text_append_char(r->out, ']');
    return true;
}

/* ---- groups ---- */

/* Opens a group that captures, if those are asked for. name: where the pattern has it; empty: none.
 */
static bool put_capture(struct reader *r, struct slice name, size_t from)
{
    if (!r->groups) {
        text_append(r->out, "(?:");
        return true;
    }
    if (r->groups->count == OTTL_GROUPS_MAX)
        return fail(r, "too many groups for a replacement", from);
    for (uint32_t i = 0; name.size > 0 && i < r->groups->count; i++)
        if (slice_equal(r->groups->names[i], name))
            return fail(r, "duplicate capture group name", from);
    r->groups->names[r->groups->count++] = name;
    text_append_char(r->out, '(');
    return true;
}

static bool is_word(uint8_t c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_';
}

/* (?P<name> or (?<name>, after the bracket. */
static bool open_named(struct reader *r, size_t from)
{
    size_t start = r->at;
    while (is_word(peek(r, 0)))
        r->at++;
    struct slice name = slice_of(r->pattern.data + start, r->at - start);
    if (name.size == 0 || !take(r, ">"))
        return fail(r, "invalid named capture", from);
    return put_capture(r, name, from);
}

/* (?i), (?i-s:...), after the question mark. *is_group_out: whether a group begins. */
static bool put_flags(struct reader *r, size_t from, bool *is_group_out)
{
    bool negative = false, some = false;
    text_append(r->out, "(?");
    for (; !at_end(r); r->at++) {
        uint8_t c = peek(r, 0);
        if (c == ')' || c == ':') {
            *is_group_out = c == ':';
            r->at++;
            text_append_char(r->out, (char)c);
            return (!negative || some) || fail(r, "invalid or unsupported Perl syntax", from);
        }
        if (c == '-' ? negative : !strchr("imsU", c))
            break;
        some = c != '-';
        negative |= c == '-';
        text_append_char(r->out, (char)c);
    }
    r->at++;
    return fail(r, "invalid or unsupported Perl syntax", from);
}

/* After the opening parenthesis. */
static bool open_group(struct reader *r, bool *is_group_out)
{
    size_t from = r->at - 1;
    *is_group_out = true;
    if (!take(r, "?"))
        return put_capture(r, (struct slice){0}, from);
    if (take(r, "P<") || take(r, "<"))
        return open_named(r, from);
    return put_flags(r, from, is_group_out);
}

/* ---- repetition ---- */

/* Reads {2}, {2,} or {2,3}; returns false, and stays, if it is not one: a brace is a character
 * then. */
static bool take_repeat(struct reader *r, unsigned *min, unsigned *max)
{
    size_t from = r->at++;
    unsigned long numbers[2] = {0, 0};
    size_t digits[2] = {0, 0};
    int count = 1;
    for (; !at_end(r) && peek(r, 0) != '}'; r->at++) {
        uint8_t c = peek(r, 0);
        if (c == ',' && count == 1) {
            count = 2;
        } else if (c >= '0' && c <= '9' && digits[count - 1]++ < 5) {
            numbers[count - 1] = numbers[count - 1] * 10 + (c - '0');
        } else {
            r->at = from;
            return false;
        }
    }
    if (digits[0] == 0 || !take(r, "}")) {
        r->at = from;
        return false;
    }
    *min = (unsigned)numbers[0];
    *max = count == 1 ? *min : (digits[1] > 0 ? (unsigned)numbers[1] : UINT32_MAX);
    return true;
}

static bool put_counts(struct reader *r, size_t from, unsigned min, unsigned max)
{
    if (min > REPEAT_MAX || (max != UINT32_MAX && (max > REPEAT_MAX || max < min)))
        return fail(r, "invalid repeat count", from);
    if (max == UINT32_MAX)
        text_printf(r->out, "{%u,}", min);
    else
        text_printf(r->out, "{%u,%u}", min, max);
    return true;
}

static bool is_repeat(struct reader *r)
{
    unsigned min, max;
    size_t from = r->at;
    uint8_t c = peek(r, 0);
    if (c == '*' || c == '+' || c == '?')
        return true;
    bool found = c == '{' && take_repeat(r, &min, &max);
    r->at = from;
    return found;
}

/* Writes the repetition after an atom, if there is one. */
static bool put_repeat(struct reader *r)
{
    size_t from = r->at;
    unsigned min, max;
    if (!is_repeat(r))
        return true;
    if (peek(r, 0) != '{')
        text_append_char(r->out, (char)r->pattern.data[r->at++]);
    else if (!take_repeat(r, &min, &max) || !put_counts(r, from, min, max))
        return false;
    if (take(r, "?"))
        text_append_char(r->out, '?');
    if (!is_repeat(r))
        return true;
    r->at++;
    return fail(r, "invalid nested repetition operator", from);
}

/* ---- everything ---- */

/* \Q...\E; the end may be missing. */
static bool put_quoted(struct reader *r)
{
    while (!at_end(r) && !take(r, "\\E")) {
        put_character(r, take_character(r));
        /* Only the last character is repeated. */
        if (next_is(r, "\\E")) {
            r->at += 2;
            return put_repeat(r);
        }
    }
    return true;
}

/* After the backslash. */
static bool put_escape(struct reader *r)
{
    uint32_t character = 0;
    uint8_t c = peek(r, 0);
    if (c == 'A' || c == 'b' || c == 'B' || c == 'z') {
        r->at++;
        text_printf(r->out, "(?:\\%c)", c);
        return put_repeat(r);
    }
    if (c == 'p' || c == 'P')
        return put_unicode_class(r) && put_repeat(r);
    if (put_perl_class(r, false))
        return put_repeat(r);
    if (!take_escape(r, &character))
        return false;
    put_character(r, character);
    return put_repeat(r);
}

static bool close_group(struct reader *r)
{
    if (r->depth == 0)
        return fail(r, "unexpected )", r->at - 1);
    r->depth--;
    text_append_char(r->out, ')');
    return put_repeat(r);
}

static bool put_group(struct reader *r)
{
    bool is_group;
    if (!open_group(r, &is_group))
        return false;
    r->depth += is_group;
    if (r->depth > GROUP_DEPTH_MAX)
        return error_set(r->err, "error parsing regexp: expression nests too deeply");
    if (!is_repeat(r))
        return true;
    r->at++;
    return fail(r, "missing argument to repetition operator", r->at - 1);
}

static bool put_next(struct reader *r)
{
    size_t from = r->at;
    if (take(r, "\\Q"))
        return put_quoted(r);
    if (take(r, "\\"))
        return put_escape(r);
    if (take(r, "("))
        return put_group(r);
    if (take(r, ")"))
        return close_group(r);
    if (take(r, "["))
        return put_class(r) && put_repeat(r);
    if (take(r, "|")) {
        text_append_char(r->out, '|');
        if (!is_repeat(r))
            return true;
        r->at++;
        return fail(r, "missing argument to repetition operator", r->at - 1);
    }
    if (is_repeat(r)) {
        r->at++;
        return fail(r, "missing argument to repetition operator", from);
    }
    uint32_t c = take_character(r);
    if (c == '^' || c == '$')
        text_printf(r->out, "(?:%c)", (char)c);
    else if (c == '.')
        text_append_char(r->out, '.');
    else
        put_character(r, c);
    return put_repeat(r);
}

bool ottl_regex_translate(struct slice pattern, struct text *out, struct ottl_groups *groups,
                          struct error *err)
{
    struct reader r = {.pattern = pattern, .out = out, .groups = groups, .err = err};
    if (!utf8_is_valid(pattern))
        return error_set(err, "error parsing regexp: invalid UTF-8");
    while (!at_end(&r))
        if (!put_next(&r))
            return false;
    return r.depth == 0 || fail(&r, "missing closing )", 0);
}
