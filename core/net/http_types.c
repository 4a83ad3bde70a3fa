#include "core/net/http_types.h"

#include "core/base/saturate.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <strings.h>
#include <time.h>

#define SECOND_NS INT64_C(1000000000)

struct slice http_header_get(const struct http_headers *headers, const char *name)
{
    struct slice wanted = slice_of_string(name);
    for (size_t i = 0; i < headers->count; i++)
        if (slice_equal(headers->items[i].name, wanted))
            return headers->items[i].value;
    return (struct slice){NULL, 0};
}

size_t http_header_count(const struct http_headers *headers, const char *name)
{
    struct slice wanted = slice_of_string(name);
    size_t count = 0;
    for (size_t i = 0; i < headers->count; i++)
        count += slice_equal(headers->items[i].name, wanted);
    return count;
}

/* Whether it is one of unreserved, "%" and sub-delims (RFC 3986); the tables have a bit per
 * character. */
static bool is_name_char(uint8_t c)
{
    static const uint64_t chars[4] = {UINT64_C(0x2bff7ff200000000), UINT64_C(0x47fffffe87fffffe)};
    return chars[c / 64] >> c % 64 & 1;
}

/* Returns the length of "[" IP-literal "]"; 0 if it is not one. */
static size_t literal_size(struct slice text)
{
    assert(text.size > 0 && text.data[0] == '[');
    size_t i = 1;
    while (i < text.size && (is_name_char(text.data[i]) || text.data[i] == ':'))
        i++;
    return i > 1 && i < text.size && text.data[i] == ']' ? i + 1 : 0;
}

bool http_is_authority(struct slice text)
{
    size_t i = 0;
    if (text.size > 0 && text.data[0] == '[') {
        i = literal_size(text);
        if (i == 0)
            return false;
    } else {
        while (i < text.size && is_name_char(text.data[i]))
            i++;
    }
    if (i < text.size && text.data[i] != ':')
        return false;
    for (i++; i < text.size; i++)
        if (!isdigit(text.data[i]))
            return false;
    return true;
}

bool http_is_media_type(struct slice content_type, const char *type)
{
    const uint8_t *semicolon =
        content_type.size > 0 ? memchr(content_type.data, ';', content_type.size) : NULL;
    size_t size = semicolon ? (size_t)(semicolon - content_type.data) : content_type.size;
    return slice_is_ignoring_case(slice_trim(slice_of(content_type.data, size), SLICE_BLANKS),
                                  type);
}

static int64_t parse_seconds(struct slice value)
{
    int64_t seconds = 0;
    for (size_t i = 0; i < value.size; i++) {
        if (!isdigit(value.data[i]))
            return -1;
        seconds = saturate_add(saturate_multiply(seconds, 10), value.data[i] - '0');
    }
    return value.size > 0 ? seconds : -1;
}

static int64_t parse_date(struct slice value, uint64_t wall_ns)
{
    char text[64];
    struct tm date = {0};
    snprintf(text, sizeof text, "%.*s", (int)(value.size < 60 ? value.size : 60),
             (const char *)value.data);
    const char *end = strptime(text, "%a, %d %b %Y %H:%M:%S ", &date); /* the locale is C */
    if (value.size == 0 || !end || (strcmp(end, "GMT") != 0 && strcmp(end, "UTC") != 0))
        return -1;
    int64_t wait = timegm(&date) - (int64_t)(wall_ns / (uint64_t)SECOND_NS);
    return wait < 0 ? 0 : wait;
}

int64_t http_retry_after_ns(const struct http_headers *headers, uint64_t wall_ns)
{
    struct slice value = http_header_get(headers, "retry-after");
    int64_t seconds = parse_seconds(value);
    if (seconds < 0)
        seconds = parse_date(value, wall_ns);
    return seconds < 0 ? -1 : saturate_multiply(seconds, SECOND_NS);
}

bool http_is_field_name(struct slice text)
{
    for (size_t i = 0; i < text.size; i++)
        if (!isalnum(text.data[i]) &&
            (text.data[i] == '\0' || !strchr("!#$%&'*+-.^_`|~", text.data[i])))
            return false;
    return text.size > 0;
}

bool http_is_field_value(struct slice text)
{
    for (size_t i = 0; i < text.size; i++)
        if ((text.data[i] < 0x20 && text.data[i] != '\t') || text.data[i] == 0x7f)
            return false;
    return true;
}

bool http_is_trimmed_value(struct slice text)
{
    return http_is_field_value(text) && slice_trim(text, SLICE_BLANKS).size == text.size;
}
