#include "core/pipeline/endpoint.h"

#include "config/config.h"

#include <ctype.h>

static bool take_prefix(struct slice *text, const char *prefix)
{
    size_t size = strlen(prefix);
    if (text->size < size || strncasecmp((const char *)text->data, prefix, size) != 0)
        return false;
    *text = slice_of(text->data + size, text->size - size);
    return true;
}

static bool parse_host_port(struct arena *arena, struct slice text, struct endpoint *out,
                            struct error *err)
{
    char host[256], why[300];
    if (!config_parse_endpoint(text, host, sizeof(host), &out->port, why, sizeof(why)))
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
    struct slice rest = slice_of_string(text);
    if (take_prefix(&rest, "unix://") || take_prefix(&rest, "unix:")) {
        out->unix_socket = true;
        out->host = arena_string(arena, rest);
        return rest.size > 0 || error_set(err, "\"%s\": the path of the socket is missing", text);
    }
    if (take_prefix(&rest, "https://"))
        out->scheme = ENDPOINT_HTTPS;
    else if (take_prefix(&rest, "http://"))
        out->scheme = ENDPOINT_HTTP;
    else if (!take_prefix(&rest, "dns:///"))
        take_prefix(&rest, "passthrough:///");
    while (rest.size > 0 && out->scheme != ENDPOINT_NO_SCHEME && rest.data[rest.size - 1] == '/')
        rest.size--;
    return parse_host_port(arena, rest, out, err);
}

/* A port that is not written is the scheme's. */
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

bool endpoint_parse_url(struct arena *arena, const char *text, struct endpoint *out,
                        struct error *err)
{
    *out = (struct endpoint){0};
    struct slice rest = slice_of_string(text);
    if (take_prefix(&rest, "https://"))
        out->scheme = ENDPOINT_HTTPS;
    else if (take_prefix(&rest, "http://"))
        out->scheme = ENDPOINT_HTTP;
    else
        return error_set(err, "\"%s\": a URL starts with http:// or https://", text);
    size_t end = 0;
    while (end < rest.size && !strchr("/?#", rest.data[end]))
        end++;
    struct slice authority = slice_of(rest.data, end);
    struct slice path = slice_of(rest.data + end, rest.size - end);
    if (memchr(rest.data, '@', end))
        return error_set(err, "a name and password do not go into the URL; use headers");
    if (memchr(path.data, '#', path.size) || !path_is_clean(path))
        return error_set(err, "\"%s\": the path of the URL has a character that must be encoded",
                         text);
    const char *port = out->scheme == ENDPOINT_HTTPS ? "443" : "80";
    const char *full = has_port(authority)
                           ? arena_string(arena, authority)
                           : arena_printf(arena, "%.*s:%s", SLICE_ARG(authority), port);
    if (authority.size == 0)
        return error_set(err, "\"%s\": the host is missing", text);
    if (!parse_host_port(arena, slice_of_string(full), out, err))
        return false;
    out->authority = arena_string(arena, authority);
    out->path = path.size > 0 && path.data[0] == '/'
                    ? arena_string(arena, path)
                    : arena_printf(arena, "/%.*s", SLICE_ARG(path));
    const char *query = memchr(path.data, '?', path.size);
    size_t shown = query ? (size_t)(query - text) : strlen(text); /* a query may hold a token */
    out->url = arena_printf(arena, "%.*s", (int)shown, text);
    return true;
}
