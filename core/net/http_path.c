#include "core/net/http_path.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

/* pchar, "/" and "?" (RFC 3986, section 3.3), with escapes as they are. */
static bool belongs_in_a_url(struct slice text)
{
    for (size_t i = 0; i < text.size; i++)
        if (!isalnum(text.data[i]) &&
            (text.data[i] == '\0' || !strchr("-._~!$&'()*+,;=:@/?%", text.data[i])))
            return false;
    return true;
}

/* Returns the segment at the beginning of the rest, without its slashes, and removes it. */
static struct slice take_segment(struct slice *rest)
{
    assert(rest->size > 0 && rest->data[0] == '/');
    struct slice inner = slice_of(rest->data + 1, rest->size - 1);
    const uint8_t *slash = inner.size > 0 ? memchr(inner.data, '/', inner.size) : NULL;
    struct slice segment = slash ? slice_of(inner.data, (size_t)(slash - inner.data)) : inner;
    *rest = slice_of(segment.data + segment.size, inner.size - segment.size);
    return segment;
}

/* Removes the last segment and the slash before it. */
static size_t go_up(const char *out, size_t size)
{
    while (size > 0 && out[size - 1] != '/')
        size--;
    return size > 0 ? size - 1 : 0;
}

/* Returns the size of the clean path, which is at most that of the path. As in Go, a slash at the
 * end stays. */
static size_t clean(struct slice path, char *out)
{
    size_t size = 0;
    struct slice rest = path;
    while (rest.size > 0) {
        struct slice segment = take_segment(&rest);
        if (slice_is(segment, "..")) {
            size = go_up(out, size);
        } else if (segment.size > 0 && !slice_is(segment, ".")) {
            out[size++] = '/';
            memcpy(out + size, segment.data, segment.size);
            size += segment.size;
        }
    }
    if (size == 0 || path.data[path.size - 1] == '/')
        out[size++] = '/';
    assert(size <= path.size);
    return size;
}

bool http_path_redirect(struct slice path, struct slice query, char out[HTTP_PATH_MAX_BYTES],
                        struct slice *location_out)
{
    if (path.size == 0 || path.data[0] != '/' || path.size + query.size + 1 > HTTP_PATH_MAX_BYTES ||
        !belongs_in_a_url(path) || !belongs_in_a_url(query))
        return false;
    size_t size = clean(path, out);
    if (size == path.size && memcmp(out, path.data, size) == 0)
        return false;
    if (query.size > 0) {
        out[size++] = '?';
        memcpy(out + size, query.data, query.size);
        size += query.size;
    }
    assert(size <= HTTP_PATH_MAX_BYTES);
    *location_out = slice_of(out, size);
    return true;
}
