#include "core/net/http_types.h"

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
