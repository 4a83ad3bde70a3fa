#include "core/net/url_query.h"

#include "core/base/text.h"

#include <assert.h>

/* Returns the bytes up to the next `end`, and moves the rest behind it. */
static struct slice take_until(struct slice *rest, char end)
{
    const uint8_t *found = rest->size > 0 ? memchr(rest->data, end, rest->size) : NULL;
    size_t size = found ? (size_t)(found - rest->data) : rest->size;
    struct slice taken = slice_of(rest->data, size);
    size_t skipped = found ? size + 1 : size;
    *rest = rest->size > 0 ? slice_of(rest->data + skipped, rest->size - skipped) : *rest;
    return taken;
}

static bool decode(struct slice text, char *out, size_t size)
{
    size_t written;
    if (!text_decode_percent(text, TEXT_PERCENT_KEEP_BROKEN | TEXT_PERCENT_PLUS_BLANK,
                             (uint8_t *)out, size - 1, &written) ||
        memchr(out, '\0', written))
        return false;
    assert(written < size);
    out[written] = '\0';
    return true;
}

bool url_query_get(struct slice query, const char *name, char *value_out, size_t size)
{
    assert(size > 0);
    while (query.size > 0) {
        struct slice value = take_until(&query, '&');
        struct slice key = take_until(&value, '=');
        if (!slice_is(key, name))
            continue;
        if (decode(value, value_out, size))
            return true;
        break;
    }
    value_out[0] = '\0';
    return false;
}
