#include "core/net/proxy.h"

#include "config/value.h"
#include "core/base/text.h"

#include <arpa/inet.h>
#include <assert.h>
#include <ctype.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { CREDENTIALS_MAX = 1024, ENTRY_MAX = 300 };

/* ---- the URL of a proxy ---- */

/* Returns false if an escape is broken. */
static bool decode_percent(struct slice from, char *to, size_t *size_out)
{
    return text_decode_percent(from, TEXT_PERCENT_STRICT, (uint8_t *)to, from.size, size_out);
}

/* The first colon separates user and password; encoded colons do not. */
static bool set_authorization(struct arena *arena, struct slice user_info, struct proxy *out)
{
    char plain[CREDENTIALS_MAX + 1], encoded[CREDENTIALS_MAX * 4 / 3 + 8];
    if (user_info.size >= CREDENTIALS_MAX)
        return false;
    const uint8_t *colon = memchr(user_info.data, ':', user_info.size);
    size_t name_size = colon ? (size_t)(colon - user_info.data) : user_info.size;
    size_t size = 0, more = 0;
    if (!decode_percent(slice_of(user_info.data, name_size), plain, &size))
        return false;
    plain[size++] = ':';
    if (colon &&
        !decode_percent(slice_of(colon + 1, user_info.size - name_size - 1), plain + size, &more))
        return false;
    assert(size + more <= CREDENTIALS_MAX);
    EVP_EncodeBlock((unsigned char *)encoded, (const unsigned char *)plain, (int)(size + more));
    out->authorization = arena_printf(arena, "Basic %s", encoded);
    return true;
}

/* Skips "http://". Returns false for another scheme. */
static bool skip_scheme(const char **text)
{
    const char *end = strstr(*text, "://");
    if (!end)
        return true;
    bool is_http = end - *text == 4 && strncasecmp(*text, "http", 4) == 0;
    *text = end + 3;
    return is_http;
}

static bool has_port(struct slice authority)
{
    size_t i = authority.size;
    while (i > 0 && isdigit(authority.data[i - 1]))
        i--;
    return i > 0 && i < authority.size && authority.data[i - 1] == ':';
}

bool proxy_parse(struct arena *arena, const char *url, struct proxy *out, struct error *err)
{
    *out = (struct proxy){0};
    const char *rest = url;
    char host[256], why[300];
    if (!skip_scheme(&rest))
        return error_set(err, "only proxies with http:// are supported (the connection to the "
                              "proxy itself is in cleartext)");
    struct slice authority = slice_of(rest, strcspn(rest, "/?#"));
    const uint8_t *at = authority.size > 0 ? memrchr(authority.data, '@', authority.size) : NULL;
    if (at) {
        struct slice user_info = slice_of(authority.data, (size_t)(at - authority.data));
        if (!set_authorization(arena, user_info, out))
            return error_set(err, "the user and password of the proxy are not valid in a URL");
        authority = slice_of(at + 1, authority.size - user_info.size - 1);
    }
    const char *full =
        arena_printf(arena, has_port(authority) ? "%.*s" : "%.*s:80", SLICE_ARG(authority));
    if (authority.size == 0 || full[0] == ':')
        return error_set(err, "the host of the proxy is missing");
    if (!config_parse_endpoint(slice_of_string(full), host, sizeof host, &out->port, why,
                               sizeof why))
        return error_set(err, "the address of the proxy is not valid: %s", why);
    if (host[0] == '\0')
        return error_set(err, "the host of the proxy is missing");
    if (out->port == 0)
        return error_set(err, "the port of the proxy must not be 0");
    out->host = arena_strdup(arena, host);
    return true;
}

/* ---- NO_PROXY ---- */

/* An address; IPv4 as ::ffff:a.b.c.d. */
struct address {
    uint8_t bytes[16];
    bool is_v4;
};

static bool parse_address(const char *text, struct address *out)
{
    static const uint8_t v4_prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    memcpy(out->bytes, v4_prefix, sizeof v4_prefix);
    out->is_v4 = inet_pton(AF_INET, text, out->bytes + 12) == 1;
    return out->is_v4 || inet_pton(AF_INET6, text, out->bytes) == 1;
}

static bool is_loopback(const struct address *address)
{
    static const uint8_t v6[16] = {[15] = 1};
    static const uint8_t v4_prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    return memcmp(address->bytes, v6, sizeof v6) == 0 ||
           (memcmp(address->bytes, v4_prefix, sizeof v4_prefix) == 0 && address->bytes[12] == 127);
}

static bool shares_prefix(const struct address *one, const struct address *other, unsigned bits)
{
    assert(bits <= 128);
    if (memcmp(one->bytes, other->bytes, bits / 8) != 0)
        return false;
    unsigned rest = bits % 8;
    return rest == 0 || (one->bytes[bits / 8] ^ other->bytes[bits / 8]) >> (8 - rest) == 0;
}

/* The endpoint that is compared with the entries of NO_PROXY. */
struct destination {
    const char *host;
    uint16_t port;
    bool is_address;
    struct address address;
};

/* "10.0.0.0/8". Returns false if the entry is not of this form. */
static bool match_network(const char *entry, const struct destination *to, bool *matches_out)
{
    char text[ENTRY_MAX];
    snprintf(text, sizeof text, "%s", entry);
    char *slash = strchr(text, '/'), *end;
    struct address network;
    if (!slash || !isdigit((unsigned char)slash[1]))
        return false;
    *slash = '\0';
    unsigned long bits = strtoul(slash + 1, &end, 10);
    if (*end != '\0' || !parse_address(text, &network) || bits > (network.is_v4 ? 32 : 128))
        return false;
    if (network.is_v4)
        bits += 96;
    *matches_out = to->is_address && shares_prefix(&network, &to->address, (unsigned)bits);
    return true;
}

/* Cuts ":port" off a host. Returns the port, 0 without one. */
static unsigned long cut_port(char *host)
{
    char *colon = strrchr(host, ':');
    struct address address;
    if (!colon || parse_address(host, &address) || (host[0] == '[' && colon[-1] != ']'))
        return 0;
    *colon = '\0';
    return strtoul(colon + 1, NULL, 10);
}

static void cut_brackets(char *host)
{
    size_t size = strlen(host);
    if (size < 2 || host[0] != '[' || host[size - 1] != ']')
        return;
    memmove(host, host + 1, size - 2);
    host[size - 2] = '\0';
}

/* "example.com" means the domain and what is below it, ".example.com" and "*.example.com" only what
 * is below. */
static bool match_domain(const char *entry, const char *host)
{
    bool is_exact = entry[0] != '.' && strncmp(entry, "*.", 2) != 0;
    if (entry[0] == '*')
        entry++;
    if (is_exact && strcasecmp(entry, host) == 0)
        return true;
    size_t size = strlen(entry), host_size = strlen(host);
    return size > 0 && host_size > size && strcasecmp(host + host_size - size, entry) == 0 &&
           (!is_exact || host[host_size - size - 1] == '.');
}

static bool match_entry(const char *entry, const struct destination *to)
{
    bool matches = false;
    assert(strlen(entry) < ENTRY_MAX); /* so that copies are complete */
    if (strcmp(entry, "*") == 0)
        return true;
    if (match_network(entry, to, &matches))
        return matches;
    char host[ENTRY_MAX];
    snprintf(host, sizeof host, "%s", entry);
    unsigned long port = cut_port(host);
    cut_brackets(host);
    if (port != 0 && port != to->port)
        return false;
    struct address address;
    if (parse_address(host, &address))
        return to->is_address && shares_prefix(&address, &to->address, 128);
    return !to->is_address && host[0] != '\0' && match_domain(host, to->host);
}

bool proxy_is_excluded(const char *list, const char *host, uint16_t port)
{
    struct destination to = {.host = host, .port = port};
    to.is_address = parse_address(host, &to.address);
    if (strcasecmp(host, "localhost") == 0 || (to.is_address && is_loopback(&to.address)))
        return true;
    while (*list) {
        char entry[ENTRY_MAX];
        list += strspn(list, ", \t");
        size_t size = strcspn(list, ",");
        size_t whole = size;
        while (size > 0 && (list[size - 1] == ' ' || list[size - 1] == '\t'))
            size--;
        if (size < sizeof entry && size > 0) {
            snprintf(entry, sizeof entry, "%.*s", (int)size, list);
            if (match_entry(entry, &to))
                return true;
        }
        list += whole;
    }
    return false;
}

/* ---- the environment ---- */

static const char *get_either(const char *name, const char *other)
{
    const char *value = getenv(name);
    if (!value || !value[0])
        value = getenv(other);
    return value ? value : "";
}

bool proxy_from_environment(struct arena *arena, bool is_https, const char *host, uint16_t port,
                            struct proxy *out, struct error *err)
{
    *out = (struct proxy){0};
    const char *name = is_https ? "HTTPS_PROXY" : "HTTP_PROXY";
    const char *url = get_either(name, is_https ? "https_proxy" : "http_proxy");
    struct error why;
    if (!url[0] || proxy_is_excluded(get_either("NO_PROXY", "no_proxy"), host, port))
        return true;
    return proxy_parse(arena, url, out, &why) ||
           error_set(err, "the environment's %s: %s", name, why.text);
}
