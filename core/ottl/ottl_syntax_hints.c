#include "core/ottl/ottl_syntax_hints.h"

#include "core/ottl/ottl_functions.h"
#include "core/ottl/ottl_path_hints.h"
#include "core/ottl/ottl_paths.h"

#include <ctype.h>
#include <stdio.h>
#include <strings.h>

static bool is_same(struct slice word, const char *other)
{
    return word.size == strlen(other) &&
           strncasecmp((const char *)word.data, other, word.size) == 0;
}

struct slice ottl_hint_word(struct slice text)
{
    size_t size = 0;
    while (size < text.size && (isalnum(text.data[size]) || text.data[size] == '_'))
        size++;
    return slice_of(text.data, size);
}

const char *ottl_hint_keyword(struct slice word)
{
    static const char *const keywords[] = {"and", "or", "not", "where"};
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (is_same(word, keywords[i]))
            return keywords[i];
    return ottl_hint_literal(word);
}

static struct slice rest_of(const struct ottl_unexpected *unexpected)
{
    struct slice statement = unexpected->statement;
    return slice_of(statement.data + unexpected->position, statement.size - unexpected->position);
}

/* ---- marks ---- */

static const char quotes[] = "a text goes in double quotes: \"text\"";

static const struct {
    const char *text, *hint;
} marks[] = {
    {"&&", "write and"},
    {"&", "write and"},
    {"||", "write or"},
    {"|", "write or"},
    {"!", "write not"},
    {"=~", "write IsMatch(path, \"regex\")"},
    {"'", quotes},
    {"`", quotes},
    {"\xe2\x80\x9c", quotes}, /* typographic quotes */
    {"\xe2\x80\x9d", quotes},
    {"\xe2\x80\x98", quotes},
    {"\xe2\x80\x99", quotes},
    {"#", "OTTL has no comments; YAML's stand outside the quotes"},
    {"//", "OTTL has no comments; YAML's stand outside the quotes"},
    {";", "write each statement as an item of its own in the list"},
    {"?", "OTTL has no such operator; write two statements with where"},
};

static bool is_argument(const struct ottl_unexpected *unexpected)
{
    return slice_begins_with(slice_of_string(unexpected->expected), SLICE("\",\""));
}

static bool is_after_condition(const struct ottl_unexpected *unexpected)
{
    return slice_begins_with(slice_of_string(unexpected->expected), SLICE("\"and\""));
}

static const char joined[] = "texts are joined by Concat([a, b], \"\")";

static bool is_after_plus(const struct ottl_unexpected *unexpected)
{
    size_t at = unexpected->position;
    while (at > 0 && unexpected->statement.data[at - 1] == ' ')
        at--;
    return at > 0 && unexpected->statement.data[at - 1] == '+';
}

static const char *hint_sign(const struct ottl_unexpected *unexpected, struct slice rest)
{
    if (unexpected->kind == OTTL_TOKEN_PUNCTUATION && slice_begins_with(rest, SLICE("=")))
        return is_argument(unexpected) ? "arguments are separated by commas"
                                       : "a comparison is written ==";
    if (slice_begins_with(rest, SLICE("+")) && !is_argument(unexpected))
        return joined;
    if (unexpected->kind == OTTL_TOKEN_STRING && is_after_plus(unexpected))
        return joined;
    if (slice_begins_with(rest, SLICE("\"")) && unexpected->kind == OTTL_TOKEN_INVALID)
        return "this quote is not closed";
    if (unexpected->kind != OTTL_TOKEN_COMPARISON || strcmp(unexpected->expected, "\"]\"") == 0)
        return NULL;
    size_t at = unexpected->position;
    if (rest.data[0] == '>' && at > 0 && unexpected->statement.data[at - 1] == '<')
        return "different is written !=";
    if (is_argument(unexpected))
        return "a comparison is no value; it comes after where";
    return is_after_condition(unexpected) ? "join comparisons by and: a < b and b < c" : NULL;
}

static const char *hint_mark(const struct ottl_unexpected *unexpected, struct slice rest)
{
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (slice_begins_with(rest, slice_of_string(marks[i].text)))
            return marks[i].hint;
    return hint_sign(unexpected, rest);
}

/* ---- words ---- */

static const struct {
    const char *word, *hint;
} words[] = {
    {"matches", "write IsMatch(path, \"regex\")"},
    {"match", "write IsMatch(path, \"regex\")"},
    {"like", "write IsMatch(path, \"regex\")"},
    {"regex", "write IsMatch(path, \"regex\")"},
    {"contains", "write IsMatch(path, \"regex\")"},
    {"startswith", "write HasPrefix(path, \"text\")"},
    {"starts_with", "write HasPrefix(path, \"text\")"},
    {"endswith", "write HasSuffix(path, \"text\")"},
    {"ends_with", "write HasSuffix(path, \"text\")"},
    {"in", "write path == \"a\" or path == \"b\""},
    {"exists", "write path != nil"},
    {"exist", "write path != nil"},
    {"isset", "write path != nil"},
    {"between", "write path >= a and path <= b"},
    {"is", "a comparison is written =="},
    {"eq", "a comparison is written =="},
    {"if", "a condition comes after where"},
    {"when", "a condition comes after where"},
    {"unless", "a condition comes after where not"},
};

static const char *hint_word(struct slice word)
{
    if (slice_is(word, "not"))
        return "write not once, before the whole comparison";
    if (slice_is(word, "where"))
        return "only statements have where; a condition joins with and";
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (is_same(word, words[i].word))
            return words[i].hint;
    return NULL;
}

/* `1s`, `1e5`: letters right after a number. */
static const char *hint_number(const struct ottl_unexpected *unexpected, struct slice word)
{
    size_t at = unexpected->position;
    if (at == 0 || !isdigit(unexpected->statement.data[at - 1]) || word.size == 0)
        return NULL;
    if (word.data[0] == '_')
        return "a number is written without _";
    return (word.data[0] | 0x20) == 'e' ? "a number with an exponent needs a point: 1.0e5"
                                        : "a duration is written Duration(\"1s\")";
}

static bool begins_value(enum ottl_token_kind kind, struct slice rest)
{
    return kind == OTTL_TOKEN_STRING || kind == OTTL_TOKEN_INT || kind == OTTL_TOKEN_FLOAT ||
           kind == OTTL_TOKEN_BYTES || kind == OTTL_TOKEN_LOWER || kind == OTTL_TOKEN_UPPER ||
           kind == OTTL_TOKEN_NIL || kind == OTTL_TOKEN_BOOL ||
           slice_begins_with(rest, SLICE("[")) || slice_begins_with(rest, SLICE("{"));
}

/* ---- brackets ---- */

/* Finds the last bracket that is not closed before the end. Returns SIZE_MAX if there is none. */
static size_t find_open(struct slice statement)
{
    size_t open[64];
    size_t depth = 0;
    struct ottl_lexer lexer = {statement, 0};
    for (;;) {
        struct ottl_token token = ottl_lexer_next(&lexer);
        if (token.kind == OTTL_TOKEN_END || token.kind == OTTL_TOKEN_INVALID)
            break;
        bool is_mark = token.kind == OTTL_TOKEN_PUNCTUATION;
        if (is_mark && strchr("([{", token.text.data[0])) {
            if (depth == sizeof open / sizeof *open)
                return SIZE_MAX;
            open[depth++] = (size_t)(token.text.data - statement.data);
        } else if (is_mark && strchr(")]}", token.text.data[0]) && depth > 0) {
            depth--;
        }
    }
    return depth > 0 ? open[depth - 1] : SIZE_MAX;
}

/* Whether the last token is a literal or the name of a constant, as in `a == 1 or 2`. */
static bool ends_with_value(struct slice statement)
{
    struct ottl_lexer lexer = {statement, 0};
    struct ottl_token last = {0}, token = ottl_lexer_next(&lexer);
    for (; token.kind != OTTL_TOKEN_END && token.kind != OTTL_TOKEN_INVALID;
         token = ottl_lexer_next(&lexer))
        last = token;
    int64_t ignored;
    return last.kind == OTTL_TOKEN_STRING || last.kind == OTTL_TOKEN_INT ||
           last.kind == OTTL_TOKEN_FLOAT || ottl_enum_find(last.text, &ignored);
}

static bool hint_end(const struct ottl_unexpected *unexpected, struct text *out)
{
    struct slice statement = unexpected->statement;
    size_t open = find_open(statement);
    unsigned line, column;
    if (open != SIZE_MAX) {
        ottl_lexer_locate(statement, open, &line, &column);
        text_printf(out, "the \"%c\" at %u:%u is not closed", statement.data[open], line, column);
    } else if (strcmp(unexpected->expected, "a comparison") == 0) {
        text_append(out, ends_with_value(statement)
                             ? "a value alone is no condition; write each comparison whole: path "
                               "== a or path == b"
                             : "a path alone is no condition; compare it, as != nil");
    }
    return out->size > 0;
}

/* Returns the word after another one and a blank. */
static struct slice next_word(struct slice rest, struct slice word)
{
    size_t at = word.size + 1;
    return at < rest.size ? ottl_hint_word(slice_of(rest.data + at, rest.size - at))
                          : (struct slice){0};
}

bool ottl_hint_token(const struct ottl_unexpected *unexpected, struct text *out)
{
    struct slice rest = rest_of(unexpected);
    if (unexpected->kind == OTTL_TOKEN_END)
        return hint_end(unexpected, out);
    struct slice word = ottl_hint_word(rest);
    const char *hint = hint_number(unexpected, word);
    if (!hint && is_same(word, "is") && is_same(next_word(rest, word), "not"))
        hint = "different is written !=";
    if (!hint && unexpected->kind == OTTL_TOKEN_ARROW)
        hint = "a lambda can only be an argument of a function";
    if (!hint)
        hint = word.size > 0 ? hint_word(word) : hint_mark(unexpected, rest);
    const char *keyword = ottl_hint_keyword(word);
    if (keyword && !slice_is(word, keyword)) {
        text_printf(out, "write %s", keyword);
        return true;
    }
    if (!hint && begins_value(unexpected->kind, rest))
        hint = is_argument(unexpected)                          ? "a comma is missing before it"
               : strcmp(unexpected->expected, "\"where\"") == 0 ? "where is missing before it"
                                                                : NULL;
    if (!hint && strcmp(unexpected->expected, "\"]\"") == 0)
        hint = "the [ or a quote before it is not closed";
    text_append(out, hint ? hint : "");
    return hint != NULL;
}

/* What is no token: a quoted text with its quotes, two equal signs, or one character. */
struct slice ottl_hint_shown(const struct ottl_unexpected *unexpected, struct slice token)
{
    struct slice rest = rest_of(unexpected);
    size_t size = 1;
    if (slice_begins_with(rest, SLICE("=~")))
        return slice_of(rest.data, 2);
    if (unexpected->kind != OTTL_TOKEN_INVALID)
        return token;
    if (rest.data[0] == '\'' || rest.data[0] == '"') {
        while (size < rest.size && rest.data[size] != rest.data[0] && rest.data[size] != '\n')
            size++;
        size += size < rest.size;
    } else {
        while (size < rest.size && (rest.data[size] & 0xc0) == 0x80)
            size++;
        size += size == 1 && rest.size > 1 && rest.data[1] == rest.data[0];
    }
    return slice_of(rest.data, size);
}

/* ---- functions ---- */

static const struct {
    const char *word, *name;
} other_names[] = {{"startswith", "HasPrefix"},
                   {"starts_with", "HasPrefix"},
                   {"endswith", "HasSuffix"},
                   {"ends_with", "HasSuffix"},
                   {"match", "IsMatch"},
                   {"matches", "IsMatch"},
                   {"regex", "IsMatch"},
                   {"regexp", "IsMatch"},
                   {"length", "Len"},
                   {"size", "Len"},
                   {"lower", "ToLowerCase"},
                   {"upper", "ToUpperCase"},
                   {"remove", "delete_key"},
                   {"delete", "delete_key"},
                   {"delete_attribute", "delete_key"},
                   {"rename", "set"},
                   {"add", "set"},
                   {"insert", "set"},
                   {"upsert", "set"},
                   {"update", "set"},
                   {"truncate", "truncate_all"},
                   {"replace", "replace_pattern"}};

/* Returns what other languages' name of a function is here. */
static const char *other_name(struct slice name, bool is_editor)
{
    for (size_t i = 0; i < sizeof other_names / sizeof *other_names; i++)
        if (is_same(name, other_names[i].word) &&
            (islower((unsigned char)other_names[i].name[0]) != 0) == is_editor)
            return other_names[i].name;
    return NULL;
}

static void append_near(const char *near, struct text *out)
{
    if (near)
        text_printf(out, "; did you mean \"%s\"?", near);
}

void ottl_hint_call(struct slice name, struct text *out)
{
    char copy[64];
    snprintf(copy, sizeof copy, "%.*s", SLICE_ARG(name));
    const char *near = other_name(name, false);
    if (is_same(name, "exists") || is_same(name, "has") || is_same(name, "isset"))
        text_append(out, "; write path != nil");
    else if (ottl_editor_find(name))
        text_printf(out, "; %s is an editor, which begins a statement and has no value", copy);
    else
        append_near(near ? near : ottl_function_suggest(copy), out);
}

void ottl_hint_editor(struct slice name, struct text *out)
{
    char copy[64];
    snprintf(copy, sizeof copy, "%.*s", SLICE_ARG(name));
    const char *near = other_name(name, true);
    if (ottl_function_find(name))
        text_printf(out, "; %s is a converter, whose value an editor takes: set(path, %s(...))",
                    copy, copy);
    else if (is_same(name, "drop"))
        text_append(out, "; the processor filter drops data");
    else
        append_near(near ? near : ottl_editor_suggest(copy), out);
}
