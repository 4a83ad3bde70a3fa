#include "core/ottl/ottl_url.h"

#include <arpa/inet.h>
#include <assert.h>
#include <ctype.h>

static bool fail(struct ottl_evaluation *evaluation, const char *why)
{
    return error_set(ottl_evaluation_error(evaluation), "parse URL: %s", why);
}

static struct slice rest_from(struct slice text, size_t at)
{
    assert(at <= text.size);
    return slice_of(text.data + at, text.size - at);
}

/* Splits a text at the first of a character, which no part keeps. Returns whether there is one. */
static bool cut(struct slice text, char c, struct slice *before_out, struct slice *after_out)
{
    const uint8_t *found = text.size > 0 ? memchr(text.data, c, text.size) : NULL;
    size_t at = found ? (size_t)(found - text.data) : text.size;
    *before_out = slice_of(text.data, at);
    *after_out = rest_from(text, found ? at + 1 : at);
    return found != NULL;
}

static bool has(struct slice text, char c)
{
    return text.size > 0 && memchr(text.data, c, text.size) != NULL;
}

/* ---- escapes ---- */

/* Whether a character stands for itself in a part. */
static bool is_plain(uint8_t c, enum ottl_url_part part)
{
    if (isalnum(c) || slice_is_one_of(c, "-_.~"))
        return true;
    switch (part) {
    case OTTL_URL_PATH:
        return slice_is_one_of(c, "$&+,/:;=@");
    case OTTL_URL_USER:
        return slice_is_one_of(c, "$&+,;=");
    case OTTL_URL_HOST:
    case OTTL_URL_ZONE:
        return slice_is_one_of(c, "!$&'()*+,;=:[]<>\"");
    case OTTL_URL_FRAGMENT:
        return slice_is_one_of(c, "$&+,/:;=?@!()*");
    case OTTL_URL_QUERY:
        break;
    }
    return false;
}

/* In a host only bytes that are not ASCII may be escaped, in a zone those that may stand there. */
static bool may_escape(int byte, enum ottl_url_part part)
{
    if (part == OTTL_URL_HOST)
        return byte >= 0x80 || byte == '%';
    return part != OTTL_URL_ZONE || byte == '%' || byte == ' ' ||
           is_plain((uint8_t)byte, OTTL_URL_HOST);
}

bool ottl_url_unescape(struct ottl_evaluation *evaluation, struct slice text,
                       enum ottl_url_part part, struct slice *out)
{
    uint8_t *to = ottl_evaluation_alloc(evaluation, text.size + 1);
    bool is_host = part == OTTL_URL_HOST || part == OTTL_URL_ZONE;
    size_t size = 0;
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        int byte = c;
        if (c == '%') {
            byte = text_percent_byte(rest_from(text, i));
            if (byte < 0 || !may_escape(byte, part))
                return fail(evaluation, "invalid URL escape");
            i += 2;
        } else if (is_host && c < 0x80 && !is_plain(c, part)) {
            return fail(evaluation, "invalid character in host name");
        } else if (c == '+' && part == OTTL_URL_QUERY) {
            byte = ' ';
        }
        to[size++] = (uint8_t)byte;
    }
    *out = slice_of(to, size);
    return true;
}

static void escape(struct slice text, enum ottl_url_part part, struct text *out)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        if (!is_plain(c, part)) {
            text_append_char(out, '%');
            text_append_char(out, digits[c >> 4]);
            c = (uint8_t)digits[c & 15];
        }
        text_append_char(out, (char)c);
    }
}

/* Whether a path or fragment may be printed as it was written. */
static bool is_printable(struct slice raw, enum ottl_url_part part)
{
    for (size_t i = 0; i < raw.size; i++)
        if (!slice_is_one_of(raw.data[i], "!$&'()*+,;=:@[]%") && !is_plain(raw.data[i], part))
            return false;
    return true;
}

static void print_part(struct slice raw, struct slice value, enum ottl_url_part part,
                       struct text *out)
{
    if (is_printable(raw, part))
        text_append_slice(out, raw);
    else
        escape(value, part, out);
}

/* ---- parse ---- */

static bool has_control(struct slice text)
{
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] < ' ' || text.data[i] == 0x7f)
            return true;
    return false;
}

static struct slice to_lower(struct ottl_evaluation *evaluation, struct slice text)
{
    uint8_t *to = ottl_evaluation_alloc(evaluation, text.size + 1);
    for (size_t i = 0; i < text.size; i++)
        to[i] = (uint8_t)tolower(text.data[i]);
    return slice_of(to, text.size);
}

/* Takes the scheme and its colon, if there is one. Returns false if only the colon is there. */
static bool take_scheme(struct slice *rest, struct slice *out)
{
    *out = (struct slice){0};
    size_t at = 0;
    while (at < rest->size &&
           (isalpha(rest->data[at]) ||
            (at > 0 && (isdigit(rest->data[at]) || slice_is_one_of(rest->data[at], "+-.")))))
        at++;
    if (at == rest->size || rest->data[at] != ':')
        return true;
    *out = slice_of(rest->data, at);
    *rest = rest_from(*rest, at + 1);
    return at > 0;
}

static bool is_port(struct slice text)
{
    return text.size == 0 || (text.data[0] == ':' && 1 + text_count_digits(text, 1) == text.size);
}

/* Whether a text is an IPv6 address, which may have a zone. */
static bool is_ipv6(struct slice text)
{
    char copy[INET6_ADDRSTRLEN];
    uint8_t bytes[16];
    struct slice address, zone;
    bool has_zone = cut(text, '%', &address, &zone);
    if ((has_zone && zone.size == 0) || address.size == 0 || address.size >= sizeof copy ||
        has(address, '\0'))
        return false;
    memcpy(copy, address.data, address.size);
    copy[address.size] = '\0';
    return inet_pton(AF_INET6, copy, bytes) == 1;
}

/* Unescapes what is between brackets; the zone begins with "%25". */
static bool unescape_address(struct ottl_evaluation *evaluation, struct slice text,
                             struct slice *out)
{
    const uint8_t *found = text.size > 0 ? memmem(text.data, text.size, "%25", 3) : NULL;
    size_t at = found ? (size_t)(found - text.data) : text.size;
    struct slice address, zone;
    if (!ottl_url_unescape(evaluation, slice_of(text.data, at), OTTL_URL_HOST, &address) ||
        !ottl_url_unescape(evaluation, rest_from(text, at), OTTL_URL_ZONE, &zone))
        return false;
    struct text whole = {0};
    text_append_slice(&whole, address);
    text_append_slice(&whole, zone);
    *out = ottl_evaluation_text(evaluation, &whole);
    return is_ipv6(*out) || fail(evaluation, "invalid IPv6 address");
}

static size_t last_of(struct slice text, char c)
{
    size_t at = text.size;
    while (at > 0 && text.data[at - 1] != (uint8_t)c)
        at--;
    return at > 0 ? at - 1 : text.size; /* the size: none */
}

static bool parse_bracketed(struct ottl_evaluation *evaluation, struct slice text,
                            struct slice *out)
{
    struct slice address;
    size_t end = last_of(text, ']');
    if (end == text.size)
        return fail(evaluation, "missing ']' in host");
    struct slice port = rest_from(text, end + 1);
    if (!is_port(port))
        return fail(evaluation, "invalid port after host");
    if (!unescape_address(evaluation, slice_of(text.data + 1, end - 1), &address))
        return false;
    struct text whole = {0};
    text_append_char(&whole, '[');
    text_append_slice(&whole, address);
    text_append_char(&whole, ']');
    text_append_slice(&whole, port);
    *out = ottl_evaluation_text(evaluation, &whole);
    return true;
}

/* Lists of hosts, "mongodb://a:1,b:2", have several colons. */
static bool parse_host(struct ottl_evaluation *evaluation, struct slice text, struct slice *out)
{
    size_t bracket = last_of(text, '[');
    if (bracket == 0 && text.size > 0)
        return parse_bracketed(evaluation, text, out);
    if (bracket < text.size)
        return fail(evaluation, "invalid IP-literal");
    return (is_port(rest_from(text, last_of(text, ':'))) ||
            fail(evaluation, "invalid port after host")) &&
           ottl_url_unescape(evaluation, text, OTTL_URL_HOST, out);
}

static bool parse_user(struct ottl_evaluation *evaluation, struct slice text, struct ottl_url *out)
{
    struct slice user, password;
    for (size_t i = 0; i < text.size; i++)
        if (!isalnum(text.data[i]) && !slice_is_one_of(text.data[i], "-._:~!$&'()*+,;=%@"))
            return fail(evaluation, "invalid userinfo");
    out->has_user = true;
    out->has_password = cut(text, ':', &user, &password);
    return ottl_url_unescape(evaluation, user, OTTL_URL_USER, &out->user) &&
           ottl_url_unescape(evaluation, password, OTTL_URL_USER, &out->password);
}

static bool parse_authority(struct ottl_evaluation *evaluation, struct slice text,
                            struct ottl_url *out)
{
    size_t at = last_of(text, '@');
    bool has_user = at < text.size;
    struct slice host = has_user ? rest_from(text, at + 1) : text;
    return parse_host(evaluation, host, &out->host) &&
           (!has_user || parse_user(evaluation, slice_of(text.data, at), out));
}

/* After the scheme, without query and fragment. */
static bool parse_rest(struct ottl_evaluation *evaluation, struct slice rest, struct ottl_url *out)
{
    bool has_scheme = out->scheme.size > 0;
    struct slice segment, after;
    if (!slice_begins_with(rest, SLICE("/"))) {
        out->opaque = has_scheme ? rest : (struct slice){0};
        if (has_scheme)
            return true;
        cut(rest, '/', &segment, &after);
        if (has(segment, ':'))
            return fail(evaluation, "first path segment in URL cannot contain colon");
    }
    if (slice_begins_with(rest, SLICE("//")) &&
        (has_scheme || !slice_begins_with(rest, SLICE("///")))) {
        struct slice authority;
        rest = rest_from(rest, 2);
        cut(rest, '/', &authority, &after);
        rest = rest_from(rest, authority.size);
        if (!parse_authority(evaluation, authority, out))
            return false;
    } else {
        out->omits_host = has_scheme && slice_begins_with(rest, SLICE("/"));
    }
    out->raw_path = rest;
    return ottl_url_unescape(evaluation, rest, OTTL_URL_PATH, &out->path);
}

bool ottl_url_parse(struct ottl_evaluation *evaluation, struct slice text, struct ottl_url *out)
{
    struct slice rest, scheme;
    *out = (struct ottl_url){0};
    cut(text, '#', &rest, &out->raw_fragment);
    if (has_control(rest))
        return fail(evaluation, "invalid control character in URL");
    if (slice_is(rest, "*"))
        out->path = out->raw_path = rest;
    else if (!take_scheme(&rest, &scheme))
        return fail(evaluation, "missing protocol scheme");
    else {
        out->scheme = to_lower(evaluation, scheme);
        out->has_query = cut(rest, '?', &rest, &out->raw_query);
        if (!parse_rest(evaluation, rest, out))
            return false;
    }
    return ottl_url_unescape(evaluation, out->raw_fragment, OTTL_URL_FRAGMENT, &out->fragment);
}

/* ---- what it consists of ---- */

struct slice ottl_url_host_name(const struct ottl_url *url, struct slice *port_out)
{
    struct slice host = url->host;
    size_t colon = last_of(host, ':');
    *port_out = (struct slice){0};
    if (colon < host.size && is_port(rest_from(host, colon))) {
        *port_out = rest_from(host, colon + 1);
        host.size = colon;
    }
    if (host.size >= 2 && host.data[0] == '[' && host.data[host.size - 1] == ']')
        host = slice_of(host.data + 1, host.size - 2);
    return host;
}

void ottl_url_print_user(const struct ottl_url *url, struct text *out)
{
    escape(url->user, OTTL_URL_USER, out);
    if (!url->has_password)
        return;
    text_append_char(out, ':');
    escape(url->password, OTTL_URL_USER, out);
}

static void print_authority(const struct ottl_url *url, struct text *out)
{
    bool is_named = url->host.size > 0 || url->has_user;
    if ((url->scheme.size == 0 && !is_named) || (url->omits_host && !is_named))
        return;
    if (is_named || url->path.size > 0)
        text_append(out, "//");
    if (url->has_user) {
        ottl_url_print_user(url, out);
        text_append_char(out, '@');
    }
    escape(url->host, OTTL_URL_HOST, out);
}

void ottl_url_print(const struct ottl_url *url, struct text *out)
{
    if (url->scheme.size > 0) {
        text_append_slice(out, url->scheme);
        text_append_char(out, ':');
    }
    text_append_slice(out, url->opaque);
    if (url->opaque.size == 0) {
        print_authority(url, out);
        print_part(url->raw_path, url->path, OTTL_URL_PATH, out);
    }
    if (url->has_query) {
        text_append_char(out, '?');
        text_append_slice(out, url->raw_query);
    }
    if (url->fragment.size > 0) {
        text_append_char(out, '#');
        print_part(url->raw_fragment, url->fragment, OTTL_URL_FRAGMENT, out);
    }
}
