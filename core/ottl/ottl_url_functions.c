#include "core/ottl/ottl_entries.h"
#include "core/ottl/ottl_functions.h"
#include "core/ottl/ottl_url.h"

#include <assert.h>
#include <stdlib.h>

/* ---- of a URL: the attributes of OpenTelemetry's conventions ---- */

enum { URL_ENTRIES_MAX = 11 };

struct url_map {
    struct ottl_entry *entries;
    uint32_t count;
};

static void put(struct url_map *map, const char *key, struct ottl_value value)
{
    assert(map->count < URL_ENTRIES_MAX);
    map->entries[map->count++] = (struct ottl_entry){slice_of_string(key), value};
}

static void put_text(struct url_map *map, const char *key, struct slice text)
{
    put(map, key, ottl_string(text));
}

static bool put_host(struct ottl_evaluation *evaluation, struct url_map *map,
                     const struct ottl_url *url)
{
    struct slice port;
    int64_t number = 0;
    put_text(map, "url.domain", ottl_url_host_name(url, &port));
    for (size_t i = 0; i < port.size; i++)
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, port.data[i] - '0', &number))
            return error_set(ottl_evaluation_error(evaluation), "the port is too large");
    if (port.size > 0)
        put(map, "url.port", ottl_int(number));
    return true;
}

static void put_user(struct ottl_evaluation *evaluation, struct url_map *map,
                     const struct ottl_url *url)
{
    struct text text = {0};
    if (!url->has_user)
        return;
    ottl_url_print_user(url, &text);
    put_text(map, "url.user_info", ottl_evaluation_text(evaluation, &text));
    if (url->user.size > 0)
        put_text(map, "url.username", url->user);
    if (url->has_password)
        put_text(map, "url.password", url->password);
}

/* What follows the last point of the path. */
static void put_extension(struct url_map *map, struct slice path)
{
    size_t at = path.size;
    while (at > 0 && path.data[at - 1] != '.')
        at--;
    if (at > 0 && at < path.size)
        put_text(map, "url.extension", slice_of(path.data + at, path.size - at));
}

static bool give_url(struct ottl_evaluation *evaluation, struct slice text, struct ottl_value *out)
{
    struct url_map map = {0};
    struct ottl_url url;
    struct text original = {0};
    if (!ottl_url_parse(evaluation, text, &url))
        return false;
    map.entries = ottl_evaluation_alloc(evaluation, URL_ENTRIES_MAX * sizeof *map.entries);
    ottl_url_print(&url, &original);
    put_text(&map, "url.original", ottl_evaluation_text(evaluation, &original));
    put_text(&map, "url.scheme", url.scheme);
    put_text(&map, "url.path", url.path);
    if (!put_host(evaluation, &map, &url))
        return false;
    put_user(evaluation, &map, &url);
    if (url.raw_query.size > 0)
        put_text(&map, "url.query", url.raw_query);
    if (url.fragment.size > 0)
        put_text(&map, "url.fragment", url.fragment);
    put_extension(&map, url.path);
    *out = ottl_entries_value(OTTL_MAP, map.entries, map.count);
    return true;
}

/* ---- of a query: "?a=1&b=2" ---- */

/* Takes a part before a character. */
static struct slice take_until(struct slice *rest, char c)
{
    const uint8_t *found = rest->size > 0 ? memchr(rest->data, c, rest->size) : NULL;
    struct slice part = slice_of(rest->data, found ? (size_t)(found - rest->data) : rest->size);
    size_t used = part.size + (found != NULL);
    *rest = slice_of(rest->data + used, rest->size - used);
    return part;
}

static bool read_parameter(struct ottl_evaluation *evaluation, struct slice text,
                           struct ottl_entry *out)
{
    struct slice value;
    if (memchr(text.data, ';', text.size))
        return error_set(ottl_evaluation_error(evaluation), "invalid semicolon separator in query");
    struct slice key = take_until(&text, '=');
    if (!ottl_url_unescape(evaluation, key, OTTL_URL_QUERY, &out->key) ||
        !ottl_url_unescape(evaluation, text, OTTL_URL_QUERY, &value))
        return false;
    out->value = ottl_string(value);
    return true;
}

static uint32_t count_parameters(struct slice query)
{
    uint32_t count = 1;
    for (size_t i = 0; i < query.size; i++)
        count += query.data[i] == '&';
    return count;
}

static bool read_parameters(struct ottl_evaluation *evaluation, struct slice query,
                            struct ottl_entry *entries, uint32_t *count_out)
{
    *count_out = 0;
    while (query.size > 0) {
        struct slice text = take_until(&query, '&');
        if (text.size > 0 && !read_parameter(evaluation, text, &entries[(*count_out)++]))
            return false;
    }
    return true;
}

/* Makes a list of the values of each key. */
static uint32_t gather(struct ottl_evaluation *evaluation, const struct ottl_entry *entries,
                       uint32_t count, struct ottl_entry *to)
{
    size_t size = ((size_t)count + 1) * sizeof(struct ottl_entry *);
    const struct ottl_entry **sorted = ottl_evaluation_alloc(evaluation, size);
    struct ottl_entry *values =
        ottl_evaluation_alloc(evaluation, ((size_t)count + 1) * sizeof *values);
    uint32_t keys = 0;
    for (uint32_t i = 0; i < count; i++)
        sorted[i] = &entries[i];
    qsort(sorted, count, sizeof(struct ottl_entry *), ottl_entries_by_key);
    for (uint32_t i = 0, start = 0; i < count; i++) {
        values[i] = (struct ottl_entry){.value = sorted[i]->value};
        if (i + 1 < count && slice_equal(sorted[i]->key, sorted[i + 1]->key))
            continue;
        to[keys].key = sorted[i]->key;
        to[keys++].value = ottl_entries_value(OTTL_LIST, values + start, i + 1 - start);
        start = i + 1;
    }
    return keys;
}

static bool give_query(struct ottl_evaluation *evaluation, struct slice query,
                       struct ottl_value *out)
{
    uint32_t room = count_parameters(query), count;
    struct ottl_entry *entries = ottl_evaluation_alloc(evaluation, room * sizeof *entries),
                      *parameters = ottl_evaluation_alloc(evaluation, room * sizeof *parameters),
                      *whole = ottl_evaluation_alloc(evaluation, sizeof *whole);
    if (!read_parameters(evaluation, query, entries, &count))
        return false;
    uint32_t keys = gather(evaluation, entries, count, parameters);
    whole->key = SLICE("query");
    whole->value = ottl_entries_value(OTTL_MAP, parameters, keys);
    *out = ottl_entries_value(OTTL_MAP, whole, keys > 0);
    return true;
}

static bool url(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                struct ottl_value *out)
{
    struct slice text;
    if (!ottl_argument_string(evaluation, node, 0, &text))
        return false;
    if (text.size == 0)
        return error_set(ottl_evaluation_error(evaluation), "url cannot be empty");
    return text.data[0] == '?' ? give_query(evaluation, slice_of(text.data + 1, text.size - 1), out)
                               : give_url(evaluation, text, out);
}

const struct ottl_function ottl_url_functions[] = {
    {.name = "URL", .parameters = {{"uri", OTTL_PARAMETER_STRING, false}}, .call = url},
    {.name = NULL},
};
