#include "core/ottl/ottl_replace.h"

#include "core/ottl/ottl_encode.h"

#include <assert.h>

/* ---- templates ---- */

static bool is_word(uint8_t c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_' ||
           c >= 0x80; /* a letter of any script */
}

/* Takes a name after a $, with or without braces; returns false if there is none. */
static bool take_name(struct slice *rest, struct slice *name)
{
    bool has_brace = rest->size > 0 && rest->data[0] == '{';
    size_t start = has_brace, end = start;
    while (end < rest->size && is_word(rest->data[end]))
        end++;
    if (end == start || (has_brace && (end == rest->size || rest->data[end] != '}')))
        return false;
    *name = slice_of(rest->data + start, end - start);
    *rest = slice_of(rest->data + end + has_brace, rest->size - end - has_brace);
    return true;
}

/* Returns the number that a name is, UINT32_MAX if it is not one. */
static uint32_t group_number(struct slice name)
{
    uint32_t number = 0;
    if (name.size > 8 || (name.size > 1 && name.data[0] == '0'))
        return UINT32_MAX;
    for (size_t i = 0; i < name.size; i++) {
        if (name.data[i] < '0' || name.data[i] > '9')
            return UINT32_MAX;
        number = number * 10 + (name.data[i] - '0');
    }
    return number;
}

static void append_group(const struct ottl_groups *groups, const struct ottl_match *match,
                         struct slice text, struct slice name, struct text *out)
{
    uint32_t number = group_number(name);
    for (uint32_t i = 0; number == UINT32_MAX && i < groups->count; i++)
        if (slice_equal(groups->names[i], name))
            number = i + 1;
    if (number >= match->count || match->spans[(size_t)2 * number] == OTTL_UNSET)
        return;
    const size_t *span = &match->spans[(size_t)2 * number];
    size_t start = span[0], end = span[1];
    text_append_slice(out, slice_of(text.data + start, end - start));
}

static void expand(const struct ottl_replacement *replacement, const struct ottl_match *match,
                   struct slice text, struct text *out)
{
    struct slice rest = replacement->template, name;
    while (rest.size > 0 && !text_is_full(out)) {
        const uint8_t *dollar = memchr(rest.data, '$', rest.size);
        size_t size = dollar ? (size_t)(dollar - rest.data) : rest.size;
        text_append_slice(out, slice_of(rest.data, size));
        if (!dollar)
            return;
        rest = slice_of(dollar + 1, rest.size - size - 1);
        if (rest.size > 0 && rest.data[0] == '$')
            rest = slice_of(rest.data + 1, rest.size - 1), text_append_char(out, '$');
        else if (take_name(&rest, &name))
            append_group(ottl_regex_groups(replacement->regex), match, text, name, out);
        else
            text_append_char(out, '$');
    }
}

/* ---- functions ---- */

bool ottl_replace_check_format(struct slice format, struct error *err)
{
    const uint8_t *percent = format.size > 0 ? memchr(format.data, '%', format.size) : NULL;
    size_t rest = percent ? format.size - (size_t)(percent - format.data) : 0;
    return (rest > 1 && percent[1] == 's' && !memchr(percent + 1, '%', rest - 1)) ||
           error_set(err, "replacementFormat must be format string containing a single %%s and no "
                          "other format specifiers");
}

static bool append_formatted(const struct ottl_value *value, struct slice text, struct text *out,
                             struct error *err)
{
    struct slice format = value->bytes;
    if (value->kind != OTTL_STRING)
        return error_set(err, "expected string but got %s", ottl_type_name(value));
    if (!ottl_replace_check_format(format, err))
        return false;
    size_t before = (size_t)((const uint8_t *)memchr(format.data, '%', format.size) - format.data);
    text_append_slice(out, slice_of(format.data, before));
    text_append_slice(out, text);
    text_append_slice(out, slice_of(format.data + before + 2, format.size - before - 2));
    return true;
}

bool ottl_replace_call(struct ottl_evaluation *evaluation,
                       const struct ottl_replacement *replacement, struct slice text,
                       struct text *out)
{
    struct ottl_value result;
    if (!replacement->function) {
        text_append_slice(out, text);
        return true;
    }
    *ottl_evaluation_input(evaluation) = ottl_string(text);
    if (!ottl_node_evaluate(evaluation, replacement->function, &result))
        return false;
    if (result.kind != OTTL_STRING)
        return error_set(ottl_evaluation_error(evaluation),
                         "the replacement value must be a string");
    if (replacement->has_format)
        return append_formatted(&replacement->format, result.bytes, out,
                                ottl_evaluation_error(evaluation));
    text_append_slice(out, result.bytes);
    return true;
}

static bool append_replaced(struct ottl_evaluation *evaluation,
                            const struct ottl_replacement *replacement,
                            const struct ottl_match *match, struct slice text, struct text *out)
{
    struct text expanded = {.limit = out->limit};
    if (!replacement->function) {
        expand(replacement, match, text, out);
        return true;
    }
    expand(replacement, match, text, &expanded);
    bool ok = ottl_replace_call(evaluation, replacement,
                                slice_of(text_string(&expanded), expanded.size), out);
    text_deinit(&expanded);
    return ok;
}

/* ---- matches ---- */

/* Returns where the next search begins: after the match, and at least a character further on. */
static size_t advance(struct slice text, size_t from, size_t end)
{
    size_t width = from < text.size ? text_utf8_length(text.data + from, text.size - from) : 1;
    width = width > 0 ? width : 1;
    return from + width > end ? from + width : end;
}

bool ottl_replace(struct ottl_evaluation *evaluation, const struct ottl_replacement *replacement,
                  struct slice text, struct text *out, bool *found_out)
{
    struct error *err = ottl_evaluation_error(evaluation);
    struct ottl_match match;
    size_t copied = 0;
    *found_out = false;
    text = text.data ? text : SLICE("");
    out->limit = out->size + text.size + (1 << 16) + ottl_evaluation_target(evaluation)->room;
    for (size_t from = 0; from <= text.size;) {
        if (!ottl_regex_match(replacement->regex, ottl_evaluation_matcher(evaluation), text, from,
                              &match, err))
            return false;
        if (match.count == 0)
            break;
        size_t start = match.spans[0], end = match.spans[1];
        *found_out = true;
        text_append_slice(out, slice_of(text.data + copied, start - copied));
        /* An empty match right after another match does not count. */
        if ((end > copied || start == 0) &&
            !append_replaced(evaluation, replacement, &match, text, out))
            return false;
        if (text_is_full(out))
            return ottl_refuse_growth(err);
        copied = end;
        from = advance(text, from, end);
    }
    text_append_slice(out, slice_of(text.data + copied, text.size - copied));
    return true;
}

/* ---- globs ---- */

static void put_literal(uint8_t c, struct text *out)
{
    bool is_plain = is_word(c);
    if (!is_plain)
        text_append_char(out, '\\');
    text_append_char(out, (char)c);
}

/* Returns the offset after a class; 0: it is not closed, or empty. */
static size_t put_class(struct slice glob, size_t at, struct text *out)
{
    const uint8_t *end = memchr(glob.data + at, ']', glob.size - at);
    if (!end || end == glob.data + at + 1)
        return 0;
    size_t stop = (size_t)(end - glob.data);
    text_append_char(out, '[');
    for (size_t i = at + 1; i < stop; i++) {
        if (i == at + 1 && glob.data[i] == '!' && stop > i + 1)
            text_append_char(out, '^');
        else if (glob.data[i] == '-')
            text_append_char(out, '-');
        else
            put_literal(glob.data[i], out);
    }
    text_append_char(out, ']');
    return stop + 1;
}

bool ottl_glob_translate(struct slice glob, struct text *out, struct error *err)
{
    unsigned depth = 0;
    text_append(out, "\\A(?s:");
    for (size_t i = 0; i < glob.size;) {
        uint8_t c = glob.data[i++];
        if (c == '*')
            text_append(out, ".*");
        else if (c == '?')
            text_append_char(out, '.');
        else if (c == '[')
            i = put_class(glob, i - 1, out);
        else if (c == '{')
            text_append(out, "(?:"), depth++;
        else if (c == '}' && depth > 0)
            text_append_char(out, ')'), depth--;
        else if (c == ',' && depth > 0)
            text_append_char(out, '|');
        else
            put_literal(c == '\\' && i < glob.size ? glob.data[i++] : c, out);
        if (i == 0)
            return error_set(err, "unexpected end of input");
    }
    while (depth-- > 0)
        text_append_char(out, ')');
    text_append(out, ")\\z");
    return true;
}
