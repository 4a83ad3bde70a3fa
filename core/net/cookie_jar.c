#include "core/net/cookie_jar.h"

#include "core/base/memory.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define SECOND_NS UINT64_C(1000000000)
#define AGE_MAX_SECONDS (INT64_C(400) * 86400) /* as browsers */

/* Cuts off and returns what precedes the character; all if it is absent. */
static struct slice cut_at(struct slice *text, char at)
{
    const uint8_t *end = text->size > 0 ? memchr(text->data, at, text->size) : NULL;
    struct slice part = slice_of(text->data, end ? (size_t)(end - text->data) : text->size);
    size_t skipped = part.size + (end != NULL);
    *text = slice_of(text->data + skipped, text->size - skipped);
    return part;
}

static bool is_printable(struct slice text)
{
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] < ' ' || text.data[i] > '~')
            return false;
    return true;
}

static bool is_name(struct slice text)
{
    return text.size > 0 && is_printable(text) && !memchr(text.data, ' ', text.size) &&
           !memchr(text.data, ',', text.size);
}

/* ---- attributes of a cookie ---- */

struct attributes {
    struct slice path;
    uint64_t expires_ns;
    bool has_max_age;
    bool is_secure;
    bool is_foreign; /* for another domain */
};

static bool domain_matches(struct slice domain, const char *host)
{
    struct in6_addr address;
    if (domain.size > 0 && domain.data[0] == '.')
        domain = slice_of(domain.data + 1, domain.size - 1);
    size_t size = strlen(host);
    if (domain.size == 0 || slice_is_ignoring_case(domain, host))
        return true;
    if (inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1)
        return false;
    return size > domain.size && host[size - domain.size - 1] == '.' &&
           strncasecmp(host + size - domain.size, (const char *)domain.data, domain.size) == 0;
}

static void take_max_age(struct slice value, uint64_t wall_ns, struct attributes *out)
{
    char digits[24];
    if (value.size == 0 || value.size >= sizeof digits)
        return;
    memcpy(digits, value.data, value.size);
    digits[value.size] = '\0';
    char *end;
    long long seconds = strtoll(digits, &end, 10);
    if (*end != '\0')
        return;
    if (seconds > AGE_MAX_SECONDS)
        seconds = AGE_MAX_SECONDS;
    out->has_max_age = true;
    out->expires_ns = seconds > 0 ? wall_ns + (uint64_t)seconds * SECOND_NS : 0;
}

static void take_expires(struct slice value, struct attributes *out)
{
    static const char *const formats[] = {"%a, %d %b %Y %H:%M:%S", "%a, %d-%b-%Y %H:%M:%S"};
    char text[40];
    if (out->has_max_age || value.size >= sizeof text) /* Max-Age takes precedence */
        return;
    memcpy(text, value.data, value.size);
    text[value.size] = '\0';
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        struct tm tm = {0};
        if (!strptime(text, formats[i], &tm))
            continue;
        time_t seconds = timegm(&tm);
        uint64_t most = UINT64_MAX / SECOND_NS - 1;
        out->expires_ns = seconds <= 0               ? 0
                          : (uint64_t)seconds > most ? UINT64_MAX
                                                     : (uint64_t)seconds * SECOND_NS;
        return;
    }
}

static void read_attributes(struct slice rest, const char *host, uint64_t wall_ns,
                            struct attributes *out)
{
    *out = (struct attributes){.expires_ns = UINT64_MAX};
    while (rest.size > 0) {
        struct slice value = cut_at(&rest, ';');
        struct slice name = slice_trim(cut_at(&value, '='), SLICE_BLANKS);
        value = slice_trim(value, SLICE_BLANKS);
        if (slice_is_ignoring_case(name, "max-age"))
            take_max_age(value, wall_ns, out);
        else if (slice_is_ignoring_case(name, "expires"))
            take_expires(value, out);
        else if (slice_is_ignoring_case(name, "domain"))
            out->is_foreign = !domain_matches(value, host);
        else if (slice_is_ignoring_case(name, "path"))
            out->path = value;
        else if (slice_is_ignoring_case(name, "secure"))
            out->is_secure = true;
    }
}

/* ---- the jar ---- */

static void free_cookie(struct cookie *cookie)
{
    free(cookie->name);
    free(cookie->value);
    free(cookie->path);
}

static void remove_cookie(struct cookie_jar *jar, size_t at)
{
    assert(at < jar->count);
    free_cookie(&jar->items[at]);
    jar->count--;
    memmove(&jar->items[at], &jar->items[at + 1], (jar->count - at) * sizeof jar->items[0]);
}

static char *copy(struct slice text)
{
    return memory_strndup((const char *)text.data, text.size);
}

/* The directory of a request's path. */
static struct slice default_path(const char *path)
{
    size_t size = strcspn(path, "?");
    while (size > 1 && path[size - 1] != '/')
        size--;
    return size > 1 ? slice_of(path, size - 1) : SLICE("/");
}

static void remove_same(struct cookie_jar *jar, struct slice name, struct slice path)
{
    for (size_t i = jar->count; i > 0; i--)
        if (slice_is(name, jar->items[i - 1].name) && slice_is(path, jar->items[i - 1].path))
            remove_cookie(jar, i - 1);
}

void cookie_jar_store(struct cookie_jar *jar, struct slice set_cookie, const char *host,
                      const char *path, uint64_t wall_ns)
{
    struct slice rest = set_cookie;
    struct slice pair = cut_at(&rest, ';');
    if (set_cookie.size > COOKIE_BYTES_MAX || !memchr(pair.data, '=', pair.size))
        return;
    struct slice name = slice_trim(cut_at(&pair, '='), SLICE_BLANKS),
                 value = slice_trim(pair, SLICE_BLANKS);
    struct attributes attributes;
    if (!is_name(name) || !is_printable(value))
        return;
    read_attributes(rest, host, wall_ns, &attributes);
    if (attributes.is_foreign)
        return;
    if (attributes.path.size == 0 || attributes.path.data[0] != '/' ||
        !is_printable(attributes.path))
        attributes.path = default_path(path);
    remove_same(jar, name, attributes.path);
    if (attributes.expires_ns <= wall_ns)
        return;
    if (jar->count == COOKIES_MAX)
        remove_cookie(jar, 0);
    assert(jar->count < COOKIES_MAX);
    jar->items[jar->count++] = (struct cookie){.name = copy(name),
                                               .value = copy(value),
                                               .path = copy(attributes.path),
                                               .expires_ns = attributes.expires_ns,
                                               .is_secure = attributes.is_secure};
}

static bool path_matches(const char *path, const char *of_cookie)
{
    size_t size = strcspn(path, "?"), of_cookie_size = strlen(of_cookie);
    assert(of_cookie_size > 0);
    return size >= of_cookie_size && memcmp(path, of_cookie, of_cookie_size) == 0 &&
           (size == of_cookie_size || of_cookie[of_cookie_size - 1] == '/' ||
            path[of_cookie_size] == '/');
}

void cookie_jar_print(const struct cookie_jar *jar, const char *path, bool is_tls, uint64_t wall_ns,
                      struct text *out)
{
    size_t begin = out->size;
    for (size_t i = 0; i < jar->count; i++) {
        const struct cookie *cookie = &jar->items[i];
        size_t size = strlen(cookie->name) + strlen(cookie->value) + 3;
        if (cookie->expires_ns <= wall_ns || (cookie->is_secure && !is_tls) ||
            !path_matches(path, cookie->path) || out->size - begin + size > COOKIE_HEADER_MAX)
            continue;
        text_printf(out, "%s%s=%s", out->size > begin ? "; " : "", cookie->name, cookie->value);
    }
    assert(out->size - begin <= COOKIE_HEADER_MAX);
}

void cookie_jar_deinit(struct cookie_jar *jar)
{
    while (jar->count > 0)
        free_cookie(&jar->items[--jar->count]);
}
