/* How answers read their parameters. Whatever is unknown is refused, so that a slip is not taken
 * for an answer. */
#include "core/base/arena.h"
#include "extensions/explore/api.h"

struct slice api_take_until(struct slice *rest, char end)
{
    size_t size = 0;
    while (size < rest->size && rest->data[size] != (uint8_t)end)
        size++;
    struct slice taken = slice_of(rest->data, size);
    size_t skipped = size < rest->size ? size + 1 : size;
    *rest = slice_of(rest->data + skipped, rest->size - skipped);
    return taken;
}

/* ---- which ones there are ---- */

/* The parameters of a selection. */
static const char selection_words[] = "service operation kind status version from to min_duration "
                                      "max_duration bucket attribute trace span type";

/* words: separated by blanks. */
static bool is_among(struct slice name, const char *words)
{
    struct slice rest = slice_of_string(words);
    while (rest.size > 0)
        if (slice_equal(api_take_until(&rest, ' '), name))
            return true;
    return false;
}

static bool is_of_selection(struct slice name, int selections)
{
    bool has_prefix =
        name.size > 2 && (name.data[0] == 'a' || name.data[0] == 'b') && name.data[1] == '.';
    if (selections == 2)
        return has_prefix && is_among(slice_of(name.data + 2, name.size - 2), selection_words);
    return selections == 1 && is_among(name, selection_words);
}

static bool refuse_name(struct api_request *request, const struct api_known *known,
                        struct slice name)
{
    static const char *const selections[] = {"", selection_words,
                                             "those of two selections after a. and b."};
    bool has_any = known->selections > 0 || known->words[0];
    return api_refuse(
        request, 400, "invalid_parameter", "%.*s: there is no such parameter; there %s%s%s%s",
        name.size > 64 ? 64 : (int)name.size, (const char *)name.data,
        has_any ? "are: " : "are none here", known->words,
        known->words[0] && known->selections > 0 ? ", " : "", selections[known->selections]);
}

/* Adds a parameter. Only an attribute may be there several times. */
static bool add_parameter(struct api_request *request, const struct api_known *known,
                          struct slice name, struct slice value)
{
    if (!is_of_selection(name, known->selections) && !is_among(name, known->words))
        return refuse_name(request, known, name);
    bool is_attribute = name.size >= 9 && memcmp(name.data + name.size - 9, "attribute", 9) == 0;
    for (unsigned i = 0; i < request->parameter_count && !is_attribute; i++)
        if (slice_equal(request->parameters[i].name, name))
            return api_refuse(request, 400, "invalid_parameter", "%.*s: is there twice",
                              SLICE_ARG(name));
    if (request->parameter_count == API_PARAMETERS_MAX)
        return api_refuse(request, 400, "invalid_parameter", "there are more than %d parameters",
                          API_PARAMETERS_MAX);
    request->parameters[request->parameter_count++] = (struct api_parameter){name, value};
    return true;
}

static bool decode(struct api_request *request, struct slice name, struct slice *value)
{
    size_t size;
    uint8_t *decoded = arena_alloc(&request->arena, value->size + 1);
    if (!text_decode_percent(*value, TEXT_PERCENT_KEEP_BROKEN | TEXT_PERCENT_PLUS_BLANK, decoded,
                             value->size, &size) ||
        size > API_VALUE_MAX || memchr(decoded, '\0', size))
        return api_refuse(request, 400, "invalid_parameter", "%.*s: the value is not valid",
                          name.size > 64 ? 64 : (int)name.size, (const char *)name.data);
    decoded[size] = '\0';
    *value = slice_of(decoded, size);
    return true;
}

bool api_read_parameters(struct api_request *request, const struct api_known *known,
                         struct slice query)
{
    while (query.size > 0) {
        struct slice value = api_take_until(&query, '&');
        struct slice name = api_take_until(&value, '=');
        if (name.size > 0 &&
            (!decode(request, name, &value) || !add_parameter(request, known, name, value)))
            return false;
    }
    return true;
}

/* ---- their values ---- */

struct slice api_parameter(const struct api_request *request, const char *name)
{
    for (unsigned i = 0; i < request->parameter_count; i++)
        if (slice_is(request->parameters[i].name, name))
            return request->parameters[i].value;
    return slice_of(NULL, 0);
}

bool api_has_parameter(const struct api_request *request, const char *name)
{
    for (unsigned i = 0; i < request->parameter_count; i++)
        if (slice_is(request->parameters[i].name, name))
            return true;
    return false;
}

bool api_number(struct api_request *request, const char *name, uint64_t fallback, uint64_t max,
                uint64_t *out)
{
    struct slice value = api_parameter(request, name);
    *out = fallback;
    if (value.size == 0 || (text_read_u64(value, out) && *out <= max))
        return true;
    return api_refuse(request, 400, "invalid_parameter", "%s: must be a number from 0 to %llu",
                      name, (unsigned long long)max);
}

/* A cursor is the number of items that were listed. */
bool api_page(struct api_request *request, uint64_t fallback, uint64_t *from_out,
              uint64_t *limit_out)
{
    return api_number(request, "cursor", 0, UINT32_MAX, from_out) &&
           api_number(request, "limit", fallback, API_LIST_MAX, limit_out);
}

/* Says what a parameter may be: the words, and the types where they are meant too. */
static bool refuse_value(struct api_request *request, const char *name, const char *const *words,
                         int count, bool or_type)
{
    struct text allowed = {0};
    const struct store_cells *cells = &request->store->cells;
    for (int i = 0; i < count; i++)
        text_printf(&allowed, "%s%s",
                    i == 0                     ? ""
                    : i + 1 < count || or_type ? ", "
                                               : " or ",
                    words[i]);
    if (or_type)
        text_printf(&allowed, "%sa profile type%s", count > 0 ? " or " : "",
                    cells->type_count > 0 ? ": " : ", of which there are none yet");
    for (uint32_t i = 0; or_type && i < cells->type_count; i++) {
        struct slice type = api_text(request, cells->types[i].label);
        text_append(&allowed, i > 0 ? ", " : "");
        text_append_slice(&allowed, slice_of(type.data, text_utf8_cut(type, 64)));
    }
    api_refuse(request, 400, "invalid_parameter", "%s: must be %s", name, text_string(&allowed));
    text_deinit(&allowed);
    return false;
}

static int find_word(struct slice value, const char *const *words, int count)
{
    for (int i = 0; i < count; i++)
        if (slice_is(value, words[i]))
            return i;
    return -1;
}

bool api_word(struct api_request *request, const char *name, const char *const *words, int count,
              int fallback, int *out)
{
    struct slice value = api_parameter(request, name);
    *out = value.size > 0 ? find_word(value, words, count) : fallback;
    return value.size == 0 || *out >= 0 || refuse_value(request, name, words, count, false);
}

bool api_word_or_type(struct api_request *request, const char *name, const char *const *words,
                      int count, int *word_out, uint8_t *type_out)
{
    struct slice value = api_parameter(request, name);
    *word_out = find_word(value, words, count);
    *type_out = store_query_type(request->store, value);
    return value.size == 0 || *word_out >= 0 || *type_out < STORE_TYPES_MAX ||
           refuse_value(request, name, words, count, true);
}
