#include "core/net/http_types.h"

#include <strings.h>

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

bool http_is_media_type(struct slice content_type, const char *type)
{
    const uint8_t *semicolon =
        content_type.size > 0 ? memchr(content_type.data, ';', content_type.size) : NULL;
    size_t size = semicolon ? (size_t)(semicolon - content_type.data) : content_type.size;
    while (size > 0 && (content_type.data[size - 1] == ' ' || content_type.data[size - 1] == '\t'))
        size--;
    return size == strlen(type) && strncasecmp((const char *)content_type.data, type, size) == 0;
}
