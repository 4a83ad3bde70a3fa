#include "processors/redaction/json_mask.h"

#include <ctype.h>

enum { JSON_DEPTH_MAX = 200 };

struct json {
    struct slice rest;
    struct text *out;
};

static struct slice take(struct json *json, size_t size)
{
    struct slice taken = slice_of(json->rest.data, size);
    json->rest = slice_of(json->rest.data + size, json->rest.size - size);
    return taken;
}

static void skip_blanks(struct json *json)
{
    size_t at = 0;
    while (at < json->rest.size && slice_is_one_of(json->rest.data[at], " \t\r\n"))
        at++;
    take(json, at);
}

/* Takes a character, after blanks. */
static bool accept(struct json *json, char c)
{
    skip_blanks(json);
    if (json->rest.size == 0 || json->rest.data[0] != (uint8_t)c)
        return false;
    take(json, 1);
    return true;
}

/* ---- texts and numbers ---- */

/* Returns the size of an escape after its backslash, 0 if there is none. */
static size_t escape_size(struct slice text)
{
    if (text.size > 0 && text.data[0] != 'u')
        return slice_is_one_of(text.data[0], "\"\\/bfnrt");
    for (size_t i = 1; i < 5; i++)
        if (i >= text.size || text_hex_digit(text.data[i]) < 0)
            return 0;
    return 5;
}

/* Takes a text with its quotes. */
static bool take_text(struct json *json, struct slice *out)
{
    struct slice text = json->rest;
    size_t at = 1;
    if (text.size == 0 || text.data[0] != '"')
        return false;
    while (at < text.size && text.data[at] != '"') {
        size_t size = 1;
        if (text.data[at] < ' ')
            return false;
        if (text.data[at] == '\\') {
            size = escape_size(slice_of(text.data + at + 1, text.size - at - 1));
            if (size++ == 0)
                return false;
        }
        at += size;
    }
    if (at >= text.size)
        return false;
    *out = take(json, at + 1);
    return true;
}

static bool take_digits(struct json *json)
{
    size_t count = text_count_digits(json->rest, 0);
    take(json, count);
    return count > 0;
}

static bool take_one_of(struct json *json, const char *characters)
{
    bool is_there = json->rest.size > 0 && slice_is_one_of(json->rest.data[0], characters);
    take(json, is_there);
    return is_there;
}

static bool take_number(struct json *json)
{
    take_one_of(json, "-");
    bool is_zero = take_one_of(json, "0");
    if (!is_zero && !take_digits(json))
        return false;
    if (take_one_of(json, ".") && !take_digits(json))
        return false;
    if (!take_one_of(json, "eE"))
        return true;
    take_one_of(json, "+-");
    return take_digits(json);
}

static bool take_word(struct json *json)
{
    size_t size = 0;
    while (size < json->rest.size && isalpha(json->rest.data[size]))
        size++;
    struct slice word = take(json, size);
    return slice_is(word, "true") || slice_is(word, "false") || slice_is(word, "null");
}

/* ---- values ---- */

static bool mask_value(struct json *json, unsigned depth);

static bool mask_member(struct json *json, unsigned depth)
{
    struct slice key;
    skip_blanks(json);
    if (!take_text(json, &key) || !accept(json, ':'))
        return false;
    text_append_slice(json->out, key);
    text_append_char(json->out, ':');
    return mask_value(json, depth);
}

/* After the opening bracket. */
static bool mask_several(struct json *json, char close, unsigned depth,
                         bool (*item)(struct json *json, unsigned depth))
{
    bool is_first = true;
    while (is_first || accept(json, ',')) {
        if (is_first && accept(json, close)) {
            text_append_char(json->out, close);
            return true;
        }
        text_append(json->out, is_first ? "" : ",");
        is_first = false;
        if (!item(json, depth + 1))
            return false;
    }
    text_append_char(json->out, close);
    return accept(json, close);
}

static bool mask_value(struct json *json, unsigned depth)
{
    struct slice ignored;
    if (depth > JSON_DEPTH_MAX)
        return false;
    skip_blanks(json);
    uint8_t first = json->rest.size > 0 ? json->rest.data[0] : 0;
    if (first == '{' || first == '[') {
        text_append_slice(json->out, take(json, 1));
        return first == '{' ? mask_several(json, '}', depth, mask_member)
                            : mask_several(json, ']', depth, mask_value);
    }
    text_append(json->out, "\"?\"");
    if (first == '"')
        return take_text(json, &ignored);
    return isalpha(first) ? take_word(json) : take_number(json);
}

bool json_mask(struct slice text, struct text *out)
{
    struct json json = {text, out};
    if (!mask_value(&json, 0))
        return false;
    skip_blanks(&json);
    return json.rest.size == 0;
}
