#include "core/ottl/ottl_functions.h"
#include "core/ottl/ottl_literals.h"

#include <locale.h>
#include <pthread.h>
#include <wctype.h>

#define FUNCTION(name)                                                                             \
    static bool name(struct ottl_evaluation *evaluation, const struct ottl_node *node,             \
                     struct ottl_value *out)

static locale_t unicode;
static pthread_once_t unicode_once = PTHREAD_ONCE_INIT;

static void open_unicode(void)
{
    unicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
}

static uint32_t change_case(uint32_t c, bool to_upper)
{
    if (c < 0x80) {
        bool changes = to_upper ? c >= 'a' && c <= 'z' : c >= 'A' && c <= 'Z';
        return changes ? c ^ 0x20 : c;
    }
    if (!unicode)
        return c;
    return (uint32_t)(to_upper ? towupper_l((wint_t)c, unicode) : towlower_l((wint_t)c, unicode));
}

/* A byte that is no UTF-8 becomes U+FFFD, as in Go. */
static void append_in_case(struct slice text, bool to_upper, struct text *out)
{
    pthread_once(&unicode_once, open_unicode);
    for (size_t i = 0; i < text.size;) {
        uint8_t bytes[4];
        size_t size = text_utf8_length(text.data + i, text.size - i);
        uint32_t c =
            size > 0 ? change_case(text_utf8_decode(text.data + i, size), to_upper) : 0xfffd;
        text_append_slice(out, slice_of(bytes, ottl_write_utf8(c, bytes)));
        i += size > 0 ? size : 1;
    }
}

static void append_lower(struct slice text, struct text *out)
{
    append_in_case(text, false, out);
}

static void append_upper(struct slice text, struct text *out)
{
    append_in_case(text, true, out);
}

/* ---- words: as the package strcase, whose letters and digits are ASCII ---- */

/* Of Unicode, as Go's strings.TrimSpace. */
static bool is_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
           c == 0x205f || c == 0x3000;
}

static struct slice trim_spaces(struct slice text)
{
    for (size_t size; text.size > 0; text = slice_of(text.data + size, text.size - size)) {
        size = text_utf8_length(text.data, text.size);
        if (size == 0 || !is_space(text_utf8_decode(text.data, size)))
            break;
    }
    while (text.size > 0) {
        size_t size = 1;
        while (size < 4 && size < text.size && (text.data[text.size - size] & 0xc0) == 0x80)
            size++;
        const uint8_t *last = text.data + text.size - size;
        if (text_utf8_length(last, size) != size || !is_space(text_utf8_decode(last, size)))
            break;
        text.size -= size;
    }
    return text;
}

static bool is_capital(uint8_t c)
{
    return c >= 'A' && c <= 'Z';
}

static bool is_small(uint8_t c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static bool is_between_words(uint8_t c)
{
    return c == ' ' || c == '_' || c == '-' || c == '.';
}

/* Whether a word ends between two characters: their kinds differ. */
static bool is_boundary(uint8_t c, uint8_t next)
{
    return (is_capital(c) && (is_small(next) || is_digit(next))) ||
           (is_small(c) && (is_capital(next) || is_digit(next))) ||
           (is_digit(c) && (is_capital(next) || is_small(next)));
}

/* "HTTPServerID" is http_server_id. */
static void append_snake(struct slice text, struct text *out)
{
    text = trim_spaces(text);
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i], next = i + 1 < text.size ? text.data[i + 1] : 0;
        char lower = (char)(uint8_t)(is_capital(c) ? c | 0x20u : c);
        if (is_between_words(c))
            lower = '_';
        if (next == 0 || !is_boundary(c, next)) {
            text_append_char(out, lower);
            continue;
        }
        if (is_capital(c) && is_small(next) && i > 0 && is_capital(text.data[i - 1]))
            text_append_char(out, '_'); /* the last capital begins a word */
        text_append_char(out, lower);
        if (!is_capital(c) || is_digit(next))
            text_append_char(out, '_');
    }
}

/* "some_name" is SomeName; of several capitals only the first stays one. */
static void append_camel(struct slice text, struct text *out)
{
    bool begins_word = true, after_capital = false;
    text = trim_spaces(text);
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        bool was_capital = after_capital;
        after_capital = is_capital(c);
        if (!is_capital(c) && !is_small(c)) {
            if (is_digit(c))
                text_append_char(out, (char)c);
            begins_word = is_digit(c) || is_between_words(c);
            continue;
        }
        if (begins_word)
            c = is_small(c) ? c ^ 0x20 : c;
        else if (was_capital && is_capital(c))
            c |= 0x20;
        text_append_char(out, (char)c);
        begins_word = false;
    }
}

/* ---- functions ---- */

typedef void (*append_function)(struct slice text, struct text *out);

static bool convert(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                    append_function append, struct ottl_value *out)
{
    struct slice text;
    struct text converted = {0};
    if (!ottl_argument_string(evaluation, node, 0, &text))
        return false;
    append(text, &converted);
    *out = ottl_string(ottl_evaluation_text(evaluation, &converted));
    return true;
}

FUNCTION(to_lower_case)
{
    return convert(evaluation, node, append_lower, out);
}

FUNCTION(to_upper_case)
{
    return convert(evaluation, node, append_upper, out);
}

FUNCTION(to_snake_case)
{
    return convert(evaluation, node, append_snake, out);
}

FUNCTION(to_camel_case)
{
    return convert(evaluation, node, append_camel, out);
}

static append_function find_case(const struct ottl_node *node)
{
    struct slice name = node->operands[1]->constant.bytes;
    return slice_is(name, "lower")   ? append_lower
           : slice_is(name, "upper") ? append_upper
           : slice_is(name, "snake") ? append_snake
           : slice_is(name, "camel") ? append_camel
                                     : NULL;
}

static bool check_case(const struct ottl_node *node, struct error *err)
{
    struct slice name = node->operands[1]->constant.bytes;
    return find_case(node) != NULL ||
           error_set(err, "invalid case: %.*s, allowed cases are: lower, upper, snake, camel",
                     (int)text_utf8_cut(name, 100), (const char *)name.data);
}

FUNCTION(convert_case)
{
    return convert(evaluation, node, find_case(node), out);
}

#define TARGET                                                                                     \
    {                                                                                              \
        "target", OTTL_PARAMETER_STRING, false                                                     \
    }

const struct ottl_function ottl_case_functions[] = {
    {.name = "ConvertCase",
     .parameters = {TARGET, {"to_case", OTTL_PARAMETER_LITERAL_STRING, false}},
     .call = convert_case,
     .check = check_case},
    {.name = "ToCamelCase", .parameters = {TARGET}, .call = to_camel_case},
    {.name = "ToLowerCase", .parameters = {TARGET}, .call = to_lower_case},
    {.name = "ToSnakeCase", .parameters = {TARGET}, .call = to_snake_case},
    {.name = "ToUpperCase", .parameters = {TARGET}, .call = to_upper_case},
    {.name = NULL},
};
