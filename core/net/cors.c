#include "core/net/cors.h"

#include "config/check.h"
#include "core/base/memory.h"
#include "core/base/text.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

enum { EMPTY_NAMES_MAX = 16 }; /* in a list of headers */

const struct field cors_fields[] = {
    FIELD_STRINGS(cors_settings, allowed_origins,
                  "Origins of pages that may send data, such as `https://*.example.com`, where * "
                  "stands for any characters, or `*` for any origin; empty: CORS is off."),
    FIELD_STRINGS(cors_settings, allowed_headers,
                  "Request headers that pages may set, or `*` for any; empty: Accept, Content-Type "
                  "and X-Requested-With."),
    FIELD_STRINGS(cors_settings, exposed_headers, "Response headers that pages may read."),
    FIELD_INT(cors_settings, max_age,
              "How many seconds browsers may remember the answer to a preflight request; 0: their "
              "own default."),
    FIELD_END,
};

/* ---- checking ---- */

/* Returns what prevents any browser from sending this origin; NULL if it may match. */
static const char *origin_problem(const char *origin)
{
    const char *scheme = strstr(origin, "://");
    if (strchr(origin, '*') || strcmp(origin, "null") == 0)
        return NULL;
    if (!scheme)
        return "begins with a scheme, such as https://";
    return strchr(scheme + 3, '/') ? "has no path, not even a slash at its end" : NULL;
}

static void check_origins(const struct cors_settings *settings, struct config_check *check,
                          const char *key)
{
    for (size_t i = 0; i < settings->allowed_origins.count; i++) {
        const char *origin = settings->allowed_origins.items[i];
        const char *problem = origin_problem(origin);
        if (problem)
            config_check_warn(check, config_check_key(check, key, "allowed_origins"),
                              "\"%s\" matches no page: an origin %s", origin, problem);
    }
}

static void check_names(const struct config_strings *names, struct config_check *check,
                        const char *key)
{
    for (size_t i = 0; i < names->count; i++)
        if (!http_is_field_value(slice_of_string(names->items[i])) || !names->items[i][0])
            config_check_error(check, key, "\"%s\" is not the name of a header", names->items[i]);
}

void cors_check(const struct cors_settings *settings, struct config_check *check, const char *key)
{
    if (!settings->enabled)
        return;
    check_origins(settings, check, key);
    check_names(&settings->allowed_headers, check, config_check_key(check, key, "allowed_headers"));
    check_names(&settings->exposed_headers, check, config_check_key(check, key, "exposed_headers"));
    bool has_rest = settings->allowed_headers.count + settings->exposed_headers.count > 0 ||
                    settings->max_age != 0;
    if (settings->allowed_origins.count == 0 && has_rest)
        config_check_warn(check, key, "has no effect without allowed_origins");
}

/* ---- making ---- */

struct cors {
    const struct cors_settings *settings;
    bool all_origins, all_headers;
    char **allowed_headers; /* in lower case, sorted, each one once */
    size_t allowed_count;
    struct text exposed;
    char max_age[24];
};

static bool has_star(const struct config_strings *names)
{
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->items[i], "*") == 0)
            return true;
    return false;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *lower_copy(const char *name)
{
    char *copy = memory_strdup(name);
    for (char *c = copy; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return copy;
}

static void set_allowed_headers(struct cors *cors)
{
    static const char *usual[] = {"accept", "content-type", "x-requested-with"};
    static const struct config_strings usual_headers = {usual, 3};
    const struct config_strings *names = &cors->settings->allowed_headers;
    if (names->count == 0)
        names = &usual_headers;
    cors->allowed_headers = memory_array(names->count, sizeof(char *));
    for (size_t i = 0; i < names->count; i++)
        cors->allowed_headers[i] = lower_copy(names->items[i]);
    qsort(cors->allowed_headers, names->count, sizeof(char *), compare_names);
    for (size_t i = 0; i < names->count; i++) {
        char *name = cors->allowed_headers[i];
        size_t count = cors->allowed_count;
        if (count > 0 && strcmp(cors->allowed_headers[count - 1], name) == 0)
            free(name);
        else
            cors->allowed_headers[cors->allowed_count++] = name;
    }
    assert(cors->allowed_count > 0 && cors->allowed_count <= names->count);
}

/* "x-request-id" becomes "X-Request-Id", as by http.CanonicalHeaderKey. */
static void add_exposed(struct text *out, const char *name)
{
    text_append(out, out->size > 0 ? ", " : "");
    for (size_t i = 0; name[i]; i++) {
        bool begins = i == 0 || name[i - 1] == '-';
        int c = (unsigned char)name[i];
        text_append_char(out, (char)(begins ? toupper(c) : tolower(c)));
    }
}

struct cors *cors_new(const struct cors_settings *settings)
{
    if (!settings || !settings->enabled || settings->allowed_origins.count == 0)
        return NULL;
    struct cors *cors = memory_zalloc(sizeof *cors);
    cors->settings = settings;
    cors->all_origins = has_star(&settings->allowed_origins);
    cors->all_headers = has_star(&settings->allowed_headers);
    set_allowed_headers(cors);
    for (size_t i = 0; i < settings->exposed_headers.count; i++)
        add_exposed(&cors->exposed, settings->exposed_headers.items[i]);
    if (settings->max_age != 0)
        snprintf(cors->max_age, sizeof cors->max_age, "%" PRId64,
                 settings->max_age > 0 ? settings->max_age : 0);
    return cors;
}

void cors_free(struct cors *cors)
{
    if (!cors)
        return;
    for (size_t i = 0; i < cors->allowed_count; i++)
        free(cors->allowed_headers[i]);
    free(cors->allowed_headers);
    text_deinit(&cors->exposed);
    free(cors);
}

/* ---- matching ---- */

static bool same_letters(const void *a, const char *b, size_t size)
{
    return size == 0 || strncasecmp(a, b, size) == 0;
}

/* Only the first * of a pattern stands for other characters. */
static bool matches_origin(const char *pattern, struct slice origin)
{
    const char *star = strchr(pattern, '*');
    size_t size = strlen(pattern);
    if (!star)
        return origin.size == size && same_letters(origin.data, pattern, size);
    size_t before = (size_t)(star - pattern), after = size - before - 1;
    return origin.size >= before + after && same_letters(origin.data, pattern, before) &&
           same_letters(origin.data + origin.size - after, star + 1, after);
}

static bool allows_origin(const struct cors *cors, struct slice origin)
{
    const struct config_strings *allowed = &cors->settings->allowed_origins;
    if (origin.size == 0)
        return false;
    for (size_t i = 0; !cors->all_origins && i < allowed->count; i++)
        if (matches_origin(allowed->items[i], origin))
            return true;
    return cors->all_origins;
}

static bool allows_method(struct slice method)
{
    return slice_is(method, "GET") || slice_is(method, "POST") || slice_is(method, "HEAD") ||
           slice_is(method, "OPTIONS");
}

/* Returns the position of a name in the sorted list, from 1; 0 if it is not there. */
static size_t find_name(const struct cors *cors, struct slice name)
{
    size_t low = 0, high = cors->allowed_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const char *known = cors->allowed_headers[middle];
        int order = strncmp((const char *)name.data, known, name.size);
        if (order == 0 && known[name.size] == '\0')
            return middle + 1;
        if (order > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t';
}

/* Removes one blank at each side. */
static struct slice trim(struct slice name)
{
    if (name.size > 0 && is_blank(name.data[0]))
        name = slice_of(name.data + 1, name.size - 1);
    if (name.size > 0 && is_blank(name.data[name.size - 1]))
        name.size--;
    return name;
}

static struct slice take_name(struct slice *rest)
{
    assert(rest->size > 0);
    const uint8_t *comma = memchr(rest->data, ',', rest->size);
    size_t size = comma ? (size_t)(comma - rest->data) : rest->size;
    struct slice name = slice_of(rest->data, size);
    size += comma != NULL;
    *rest = slice_of(rest->data + size, rest->size - size);
    return trim(name);
}

/* How far the names of a preflight request are read. */
struct name_reader {
    size_t last; /* position of the last name */
    unsigned empty;
};

/* The specification says that browsers send the names in lower case, sorted and each one once, so
 * one pass over both lists is enough. */
static bool allows_list(const struct cors *cors, struct name_reader *reader, struct slice list)
{
    while (list.size > 0) {
        struct slice name = take_name(&list);
        if (name.size == 0) {
            if (++reader->empty > EMPTY_NAMES_MAX)
                return false;
            continue;
        }
        size_t position = find_name(cors, name);
        if (position <= reader->last)
            return false;
        assert(position <= cors->allowed_count);
        reader->last = position;
    }
    return true;
}

/* ---- answers ---- */

static void add(struct http_header *out, size_t *count, const char *name, struct slice value)
{
    assert(*count < CORS_HEADERS_MAX);
    out[(*count)++] = (struct http_header){slice_of_string(name), value};
}

/* Adds the lists of names to allow, which are those of the request. Returns false if one is not
 * allowed. */
static bool add_lists(const struct cors *cors, const struct http_headers *request,
                      struct http_header *out, size_t *count)
{
    struct name_reader reader = {0};
    size_t lists = 0;
    for (size_t i = 0; i < request->count; i++) {
        const struct http_header *header = &request->items[i];
        if (!slice_is(header->name, "access-control-request-headers"))
            continue;
        if (++lists > CORS_LISTS_MAX ||
            (!cors->all_headers && !allows_list(cors, &reader, header->value)))
            return false;
        if (header->value.size > 0)
            add(out, count, "Access-Control-Allow-Headers", header->value);
    }
    return true;
}

static void add_origin(const struct cors *cors, struct slice origin, struct http_header *out,
                       size_t *count)
{
    add(out, count, "Access-Control-Allow-Origin", cors->all_origins ? SLICE("*") : origin);
    add(out, count, "Access-Control-Allow-Credentials", SLICE("true"));
}

bool cors_is_preflight(struct slice method, const struct http_headers *request)
{
    return slice_is(method, "OPTIONS") &&
           http_header_get(request, "access-control-request-method").size > 0;
}

size_t cors_preflight(const struct cors *cors, const struct http_headers *request,
                      struct http_header out[CORS_HEADERS_MAX])
{
    struct slice origin = http_header_get(request, "origin");
    struct slice method = http_header_get(request, "access-control-request-method");
    size_t count = 0;
    add(out, &count, "Vary",
        SLICE("Origin, Access-Control-Request-Method, Access-Control-Request-Headers"));
    if (!allows_origin(cors, origin) || !allows_method(method) ||
        !add_lists(cors, request, out, &count))
        return 1;
    add_origin(cors, origin, out, &count);
    add(out, &count, "Access-Control-Allow-Methods", method);
    if (cors->max_age[0])
        add(out, &count, "Access-Control-Max-Age", slice_of_string(cors->max_age));
    return count;
}

size_t cors_headers(const struct cors *cors, struct slice method,
                    const struct http_headers *request, struct http_header out[CORS_HEADERS_MAX])
{
    struct slice origin = http_header_get(request, "origin");
    size_t count = 0;
    add(out, &count, "Vary", SLICE("Origin"));
    if (!allows_origin(cors, origin) || !allows_method(method))
        return count;
    add_origin(cors, origin, out, &count);
    if (cors->exposed.size > 0)
        add(out, &count, "Access-Control-Expose-Headers",
            slice_of(cors->exposed.data, cors->exposed.size));
    return count;
}
