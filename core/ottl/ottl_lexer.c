#include "core/ottl/ottl_lexer.h"

#include "core/base/text.h"

#include <assert.h>
#include <ctype.h>

static bool is_upper(uint8_t c)
{
    return c >= 'A' && c <= 'Z';
}

static bool is_lower(uint8_t c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_word(uint8_t c)
{
    return isdigit(c) || is_upper(c) || is_lower(c) || c == '_';
}

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
}

/* Each function returns the size of its token at the beginning of the rest, 0 if it is another
 * one. */
static size_t bytes_size(struct slice rest)
{
    size_t size = 2;
    if (rest.size < 3 || rest.data[0] != '0' || rest.data[1] != 'x')
        return 0;
    while (size < rest.size && text_hex_digit(rest.data[size]) >= 0)
        size++;
    return size > 2 ? size : 0;
}

static size_t exponent_size(struct slice rest, size_t at)
{
    size_t size = 1;
    if (at >= rest.size || (rest.data[at] | 0x20) != 'e')
        return 0;
    if (at + size < rest.size && (rest.data[at + size] == '+' || rest.data[at + size] == '-'))
        size++;
    size_t digits = text_count_digits(rest, at + size);
    return digits > 0 ? size + digits : 0;
}

static size_t float_size(struct slice rest)
{
    size_t whole = text_count_digits(rest, 0);
    if (whole >= rest.size || rest.data[whole] != '.')
        return 0;
    size_t fraction = text_count_digits(rest, whole + 1);
    if (whole + fraction == 0)
        return 0;
    size_t size = whole + 1 + fraction;
    return size + exponent_size(rest, size);
}

/* A backslash takes the character after it, but no line end. */
static size_t string_size(struct slice rest)
{
    for (size_t at = 1; at < rest.size; at++) {
        if (rest.data[at] == '"')
            return at + 1;
        if (rest.data[at] == '\\' && (++at == rest.size || rest.data[at] == '\n'))
            return 0;
    }
    return 0;
}

static size_t run_size(struct slice rest, bool (*first)(uint8_t c))
{
    size_t size = 1;
    assert(first(rest.data[0]));
    while (size < rest.size &&
           (first(rest.data[size]) || isdigit(rest.data[size]) || rest.data[size] == '_'))
        size++;
    return size;
}

static const struct keyword {
    const char *text;
    enum ottl_token_kind kind;
} keywords[] = {
    {"nil", OTTL_TOKEN_NIL},      {"not", OTTL_TOKEN_NOT},   {"or", OTTL_TOKEN_OR},
    {"and", OTTL_TOKEN_AND},      {"true", OTTL_TOKEN_BOOL}, {"false", OTTL_TOKEN_BOOL},
    {"_", OTTL_TOKEN_UNDERSCORE},
};

/* A keyword ends where the word ends: `nil_x` and `nilX` are other words. */
static enum ottl_token_kind keyword_at(struct slice rest, size_t *size_out)
{
    size_t size = 0;
    while (size < rest.size && is_word(rest.data[size]))
        size++;
    *size_out = size;
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (slice_is(slice_of(rest.data, size), keywords[i].text))
            return keywords[i].kind;
    return OTTL_TOKEN_INVALID;
}

static const struct operator
{
    const char *text;
    enum ottl_token_kind kind;
}
operators[] = {
    {"==", OTTL_TOKEN_COMPARISON}, {"!=", OTTL_TOKEN_COMPARISON}, {">=", OTTL_TOKEN_COMPARISON},
    {"<=", OTTL_TOKEN_COMPARISON}, {">", OTTL_TOKEN_COMPARISON},  {"<", OTTL_TOKEN_COMPARISON},
    {"=>", OTTL_TOKEN_ARROW},      {"+", OTTL_TOKEN_SIGN},        {"-", OTTL_TOKEN_SIGN},
    {"*", OTTL_TOKEN_FACTOR},      {"/", OTTL_TOKEN_FACTOR},      {"=", OTTL_TOKEN_PUNCTUATION},
    {"(", OTTL_TOKEN_PUNCTUATION}, {")", OTTL_TOKEN_PUNCTUATION}, {"{", OTTL_TOKEN_PUNCTUATION},
    {"}", OTTL_TOKEN_PUNCTUATION}, {":", OTTL_TOKEN_PUNCTUATION}, {",", OTTL_TOKEN_PUNCTUATION},
    {".", OTTL_TOKEN_PUNCTUATION}, {"[", OTTL_TOKEN_PUNCTUATION}, {"]", OTTL_TOKEN_PUNCTUATION},
};

static enum ottl_token_kind operator_at(struct slice rest, size_t *size_out)
{
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        size_t size = strlen(operators[i].text);
        if (rest.size >= size && memcmp(rest.data, operators[i].text, size) == 0) {
            *size_out = size;
            return operators[i].kind;
        }
    }
    *size_out = 0;
    return OTTL_TOKEN_INVALID;
}

static enum ottl_token_kind word_at(struct slice rest, size_t *size_out)
{
    enum ottl_token_kind keyword = keyword_at(rest, size_out);
    if (keyword != OTTL_TOKEN_INVALID)
        return keyword;
    if (is_upper(rest.data[0])) {
        *size_out = run_size(rest, is_upper);
        return OTTL_TOKEN_UPPER;
    }
    if (is_lower(rest.data[0])) {
        *size_out = run_size(rest, is_lower);
        return OTTL_TOKEN_LOWER;
    }
    return operator_at(rest, size_out);
}

static enum ottl_token_kind token_at(struct slice rest, size_t *size_out)
{
    if ((*size_out = bytes_size(rest)) > 0)
        return OTTL_TOKEN_BYTES;
    if ((*size_out = float_size(rest)) > 0)
        return OTTL_TOKEN_FLOAT;
    if ((*size_out = text_count_digits(rest, 0)) > 0)
        return OTTL_TOKEN_INT;
    if (rest.data[0] == '"') {
        *size_out = string_size(rest);
        return *size_out > 0 ? OTTL_TOKEN_STRING : OTTL_TOKEN_INVALID;
    }
    return word_at(rest, size_out);
}

struct ottl_token ottl_lexer_next(struct ottl_lexer *lexer)
{
    const uint8_t *data = lexer->statement.data;
    size_t size = lexer->statement.size, length;
    while (lexer->next < size && is_blank(data[lexer->next]))
        lexer->next++;
    struct slice rest = slice_of(size > 0 ? data + lexer->next : data, size - lexer->next);
    if (rest.size == 0)
        return (struct ottl_token){OTTL_TOKEN_END, rest};
    struct ottl_token token = {.kind = token_at(rest, &length)};
    token.text = token.kind == OTTL_TOKEN_INVALID ? rest : slice_of(rest.data, length);
    if (token.kind != OTTL_TOKEN_INVALID)
        lexer->next += length;
    assert(token.text.size > 0);
    return token;
}

/* Characters are counted as in UTF-8: continuation bytes do not count. */
void ottl_lexer_locate(struct slice statement, size_t position, unsigned *line, unsigned *column)
{
    *line = *column = 1;
    for (size_t i = 0; i < position && i < statement.size; i++) {
        if (statement.data[i] == '\n') {
            ++*line;
            *column = 1;
        } else if ((statement.data[i] & 0xc0) != 0x80) {
            ++*column;
        }
    }
}
