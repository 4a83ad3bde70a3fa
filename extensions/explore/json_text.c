#include "extensions/explore/json_text.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

/* Some readers refuse a NUL: it becomes U+FFFD. */
static void append_escaped(struct text *out, struct slice value)
{
    for (const uint8_t *nul; value.size > 0 && (nul = memchr(value.data, '\0', value.size));) {
        size_t before = (size_t)(nul - value.data);
        text_append_json(out, slice_of(value.data, before));
        text_append(out, "\xef\xbf\xbd");
        value = slice_of(nul + 1, value.size - before - 1);
    }
    text_append_json(out, value);
}

/* The same for what is escaped already. */
static void append_members(struct text *out, struct slice members)
{
    size_t done = 0;
    for (size_t at = 0; at + 1 < members.size; at++) {
        if (members.data[at] != '\\')
            continue;
        if (members.size - at >= 6 && memcmp(members.data + at, "\\u0000", 6) == 0) {
            text_append_slice(out, slice_of(members.data + done, at - done));
            text_append(out, "\\ufffd");
            done = at + 6;
        }
        at++;
    }
    text_append_slice(out, slice_of(members.data + done, members.size - done));
}

static void begin(struct json_text *json, const char *key)
{
    if (json->has_members)
        text_append_char(json->out, ',');
    json->has_members = true;
    if (!key)
        return;
    text_append_char(json->out, '"');
    text_append_json(json->out, slice_of_string(key)); /* of this project */
    text_append(json->out, "\":");
}

void json_text_open(struct json_text *json, const char *key, char bracket)
{
    assert(bracket == '{' || bracket == '[');
    begin(json, key);
    text_append_char(json->out, bracket);
    json->has_members = false;
}

void json_text_close(struct json_text *json, char bracket)
{
    assert(bracket == '}' || bracket == ']');
    text_append_char(json->out, bracket);
    json->has_members = true;
}

static void append_text(struct text *out, struct slice value)
{
    text_append_char(out, '"');
    append_escaped(out, value);
    text_append_char(out, '"');
}

void json_text_slice(struct json_text *json, const char *key, struct slice value)
{
    begin(json, key);
    append_text(json->out, value);
}

void json_text_string(struct json_text *json, const char *key, const char *value)
{
    json_text_slice(json, key, slice_of_string(value));
}

void json_text_number(struct json_text *json, const char *key, double value)
{
    begin(json, key);
    if (!isfinite(value))
        text_append(json->out, "null");
    else if (value == floor(value) && fabs(value) < 1e15)
        text_printf(json->out, "%.0f", value);
    else
        text_printf(json->out, "%.9g", value);
}

void json_text_time(struct json_text *json, const char *key, uint64_t ns)
{
    begin(json, key);
    text_printf(json->out, "\"%" PRIu64 "\"", ns);
}

void json_text_u64(struct json_text *json, const char *key, uint64_t value)
{
    begin(json, key);
    text_append_u64(json->out, value);
}

static void append_i64(struct text *out, int64_t value)
{
    if (value < 0)
        text_append_char(out, '-');
    text_append_u64(out, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void json_text_i64(struct json_text *json, const char *key, int64_t value)
{
    begin(json, key);
    append_i64(json->out, value);
}

/* Digits are written from the last one on. */
void json_text_numbers(struct json_text *json, const int64_t *values, unsigned count)
{
    char row[JSON_NUMBERS_MAX * 21 + 2], *end = row + sizeof row, *at = end;
    assert(count > 0 && count <= JSON_NUMBERS_MAX);
    begin(json, NULL);
    *--at = ']';
    while (count-- > 0) {
        int64_t value = values[count];
        at = text_write_u64(at, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
        if (value < 0)
            *--at = '-';
        *--at = count > 0 ? ',' : '[';
    }
    text_append_slice(json->out, slice_of(at, (size_t)(end - at)));
}

void json_text_bool(struct json_text *json, const char *key, bool value)
{
    begin(json, key);
    text_append(json->out, value ? "true" : "false");
}

void json_text_null(struct json_text *json, const char *key)
{
    begin(json, key);
    text_append(json->out, "null");
}

void json_text_hex(struct json_text *json, const char *key, const uint8_t *bytes, size_t size)
{
    bool is_zero = true;
    for (size_t i = 0; i < size; i++)
        is_zero &= bytes[i] == 0;
    begin(json, key);
    text_append_char(json->out, '"');
    if (!is_zero)
        text_append_hex(json->out, slice_of(bytes, size));
    text_append_char(json->out, '"');
}

void json_text_member(struct json_text *json, struct slice key, int64_t value)
{
    begin(json, NULL);
    append_text(json->out, key);
    text_append_char(json->out, ':');
    append_i64(json->out, value);
}

void json_text_members(struct json_text *json, const char *key, struct slice members)
{
    begin(json, key);
    text_append_char(json->out, '{');
    append_members(json->out, members);
    text_append_char(json->out, '}');
}
