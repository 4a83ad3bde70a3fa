#include "core/pipeline/endpoint.h"

#include "config/config.h"
#include "core/base/text.h"

#include <assert.h>
#include <ctype.h>

enum { LOCATION_MAX = 4096 };

static bool take_prefix(struct slice *text, const char *prefix)
{
    size_t size = strlen(prefix);
    if (text->size < size || strncasecmp((const char *)text->data, prefix, size) != 0)
        return false;
    *text = slice_of(text->data + size, text->size - size);
    return true;
}

/* Returns the text for messages, without user, password, query and fragment, even if it is
 * malformed. */
static const char *mask(struct arena *arena, const char *text)
{
    static const char hidden[] = "[REDACTED]";
    const char *at = strrchr(text, '@');
    const char *scheme_end = strstr(text, "://");
    size_t before = at && scheme_end && scheme_end < at ? (size_t)(scheme_end - text) + 3 : 0;
    const char *rest = at ? at + 1 : text;
    size_t shown = strcspn(rest, "?#");
    return arena_printf(arena, "%.*s%s%.*s%s", (int)before, text, at ? "[REDACTED]@" : "",
                        (int)shown, rest, rest[shown] != '\0' ? hidden : "");
}

static bool parse_host_port(struct arena *arena, struct slice text, struct endpoint *out,
                            struct error *err)
{
    char host[256], why[300];
    if (!config_parse_endpoint(text, host, sizeof host, &out->port, why, sizeof why))
        return error_set(err, "%s", why);
    if (out->port == 0)
        return error_set(err, "\"%.*s\": the port must not be 0", SLICE_ARG(text));
    out->host = arena_strdup(arena, host[0] ? host : "localhost");
    out->authority = arena_string(arena, text);
    return true;
}

bool endpoint_parse_grpc(struct arena *arena, const char *text, struct endpoint *out,
                         struct error *err)
{
    *out = (struct endpoint){.path = "/"};
    const char *shown = mask(arena, text);
    struct slice rest = slice_of_string(text);
    if (take_prefix(&rest, "unix://") || take_prefix(&rest, "unix:")) {
        out->unix_socket = true;
        out->host = arena_string(arena, rest);
        return rest.size > 0 || error_set(err, "\"%s\": the path of the socket is missing", shown);
    }
    if (take_prefix(&rest, "https://"))
        out->scheme = ENDPOINT_HTTPS;
    else if (take_prefix(&rest, "http://"))
        out->scheme = ENDPOINT_HTTP;
    else if (!take_prefix(&rest, "dns:///"))
        take_prefix(&rest, "passthrough:///");
    if (strpbrk(text, "@?#"))
        return error_set(err, "\"%s\": write host:port; put credentials into headers", shown);
    while (rest.size > 0 && out->scheme != ENDPOINT_NO_SCHEME && rest.data[rest.size - 1] == '/')
        rest.size--;
    return parse_host_port(arena, rest, out, err);
}

/* Whether a port is given; otherwise the scheme determines it. */
static bool has_port(struct slice authority)
{
    for (size_t i = authority.size; i > 0; i--) {
        if (authority.data[i - 1] == ':')
            return true;
        if (!isdigit(authority.data[i - 1]))
            return false;
    }
    return false;
}

static bool path_is_clean(struct slice path)
{
    for (size_t i = 0; i < path.size; i++)
        if (path.data[i] <= ' ' || path.data[i] >= 0x7f)
            return false;
    return true;
}

/* Whether each % of the path is followed by two hexadecimal digits. As in Go, the query may have
 * others. */
static bool escapes_are_valid(struct slice path)
{
    for (size_t i = 0; i < path.size && path.data[i] != '?'; i++)
        if (path.data[i] == '%' && text_percent_byte(slice_of(path.data + i, path.size - i)) < 0)
            return false;
    return true;
}

bool endpoint_ends_with(const char *url, const char *path)
{
    size_t size = strlen(url), end = strlen(path);
    while (size > 0 && url[size - 1] == '/')
        size--;
    return size > end && memcmp(url + size - end, path, end) == 0;
}

/* Returns the URL without its fragment, relative ones completed; NULL if it is not valid. */
static const char *complete_url(struct arena *arena, const struct endpoint *from, const char *path,
                                struct slice location)
{
    const char *scheme = from->scheme == ENDPOINT_HTTPS ? "https" : "http";
    const uint8_t *fragment = location.size > 0 ? memchr(location.data, '#', location.size) : NULL;
    if (fragment)
        location.size = (size_t)(fragment - location.data);
    if (location.size == 0 || location.size > LOCATION_MAX || !path_is_clean(location))
        return NULL;
    struct slice rest = location;
    if (take_prefix(&rest, "http://") || take_prefix(&rest, "https://"))
        return arena_string(arena, location);
    if (take_prefix(&rest, "//"))
        return arena_printf(arena, "%s:%.*s", scheme, SLICE_ARG(location));
    size_t query = strcspn(path, "?"), directory = query;
    while (directory > 0 && path[directory - 1] != '/')
        directory--;
    size_t kept = location.data[0] == '/' ? 0 : location.data[0] == '?' ? query : directory;
    if (location.data[0] == '.' || (kept == directory && memchr(rest.data, ':', rest.size)))
        return NULL; /* dot segments, another scheme */
    return arena_printf(arena, "%s://%s%.*s%.*s", scheme, from->authority, (int)kept, path,
                        SLICE_ARG(location));
}

const char *endpoint_redirect(struct arena *arena, const struct endpoint *from, const char *path,
                              struct slice location)
{
    struct endpoint to;
    struct error err;
    assert(from->url && path[0] == '/');
    const char *url = complete_url(arena, from, path, location);
    if (!url || !endpoint_parse_url(arena, url, &to, &err))
        return NULL;
    bool is_same =
        to.scheme == from->scheme && to.port == from->port && strcasecmp(to.host, from->host) == 0;
    return is_same ? to.path : NULL;
}

bool endpoint_parse_url(struct arena *arena, const char *text, struct endpoint *out,
                        struct error *err)
{
    *out = (struct endpoint){0};
    const char *masked = mask(arena, text);
    struct slice rest = slice_of_string(text);
    if (take_prefix(&rest, "https://"))
        out->scheme = ENDPOINT_HTTPS;
    else if (take_prefix(&rest, "http://"))
        out->scheme = ENDPOINT_HTTP;
    else
        return error_set(err, "\"%s\": a URL must start with http:// or https://", masked);
    size_t end = 0;
    while (end < rest.size && !strchr("/?#", rest.data[end]))
        end++;
    struct slice authority = slice_of(rest.data, end);
    struct slice path = slice_of(rest.data + end, rest.size - end);
    if (memchr(rest.data, '@', end))
        return error_set(err, "a user name and password in the URL are not supported; use headers");
    if (memchr(path.data, '#', path.size) || !path_is_clean(path))
        return error_set(err, "\"%s\": the path of the URL has a character that must be encoded",
                         masked);
    if (!escapes_are_valid(path))
        return error_set(err, "\"%s\": %% needs two hexadecimal digits, as in %%2F", masked);
    const char *port = out->scheme == ENDPOINT_HTTPS ? "443" : "80";
    const char *full = has_port(authority)
                           ? arena_string(arena, authority)
                           : arena_printf(arena, "%.*s:%s", SLICE_ARG(authority), port);
    if (authority.size == 0)
        return error_set(err, "\"%s\": the host is missing", masked);
    if (!parse_host_port(arena, slice_of_string(full), out, err))
        return false;
    out->authority = arena_string(arena, authority);
    out->path = path.size > 0 && path.data[0] == '/'
                    ? arena_string(arena, path)
                    : arena_printf(arena, "/%.*s", SLICE_ARG(path));
    assert(out->path[0] == '/' && out->port > 0);
    const char *query = memchr(path.data, '?', path.size);
    size_t shown = query ? (size_t)(query - text) : strlen(text); /* a query may contain a token */
    out->url = arena_printf(arena, "%.*s", (int)shown, text);
    return true;
}
