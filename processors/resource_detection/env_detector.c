#include "processors/resource_detection/env_detector.h"

#include "core/base/text.h"
#include "core/data/utf8.h"
#include "processors/resource_detection/detector.h"
#include "processors/resource_detection/metadata_client.h"

enum { PART_MAX = 256 };

struct pair {
    struct slice key, value;
};

/* Takes the text up to the separator, or all of it, away from *rest. */
static struct slice take_until(struct slice *rest, char separator)
{
    const uint8_t *at = rest->size > 0 ? memchr(rest->data, separator, rest->size) : NULL;
    size_t size = at ? (size_t)(at - rest->data) : rest->size;
    struct slice taken = slice_of(rest->data, size);
    size_t gone = at ? size + 1 : size;
    *rest = slice_of(rest->data + gone, rest->size - gone);
    return taken;
}

static bool is_part(struct slice text)
{
    return text.size <= PART_MAX && utf8_is_ascii(text.data, text.size);
}

static bool read_pair(struct slice text, struct pair *out, struct error *err)
{
    struct slice rest = text;
    bool has_sign = text.size > 0 && memchr(text.data, '=', text.size);
    out->key = slice_trim(take_until(&rest, '='), SLICE_SPACES);
    out->value = slice_trim(rest, SLICE_SPACES);
    if (!has_sign || out->key.size == 0 || !is_part(out->key) || !is_part(out->value))
        return error_set(err, "invalid resource format, want key=value of ASCII: \"%.*s\"",
                         SLICE_ARG(text));
    return true;
}

/* Decodes the value in the manner of a URL's query. */
static bool decode(struct slice value, struct text *out)
{
    text_append_slice(out, value);
    return text_decode_percent(slice_of(out->data, out->size), TEXT_PERCENT_PLUS_BLANK,
                               (uint8_t *)out->data, out->size, &out->size);
}

static bool add_pair(const struct pair *pair, struct detected *found, struct error *err)
{
    struct text value = {0};
    bool fine = decode(pair->value, &value);
    if (fine)
        detected_add_text(found, pair->key, slice_of(value.data, value.size));
    text_deinit(&value);
    return fine || error_set(err, "invalid percent-encoding in the value of \"%.*s\"",
                             SLICE_ARG(pair->key));
}

/* Whether a later pair has the same key. */
static bool is_replaced(const struct pair *pairs, size_t at, size_t count)
{
    for (size_t i = at + 1; i < count; i++)
        if (slice_equal(pairs[i].key, pairs[at].key))
            return true;
    return false;
}

bool env_read_attributes(struct slice text, struct detected *found, struct error *err)
{
    struct pair pairs[DETECTED_MAX];
    size_t count = 0;
    struct slice rest = slice_trim(text, SLICE_SPACES);
    while (rest.size > 0) {
        if (count == DETECTED_MAX)
            return error_set(err, "more than %d attributes", DETECTED_MAX);
        if (!read_pair(take_until(&rest, ','), &pairs[count++], err))
            return false;
    }
    for (size_t i = 0; i < count; i++)
        if (!is_replaced(pairs, i, count) && !add_pair(&pairs[i], found, err))
            return false;
    return true;
}

static void env_start(struct detector_run *run)
{
    struct error err;
    const char *text =
        metadata_environment("OTEL_RESOURCE_ATTRIBUTES", metadata_environment("OTEL_RESOURCE", ""));
    if (env_read_attributes(slice_of_string(text), run->found, &err))
        detector_succeeded(run);
    else
        detector_gives_up(run, &err);
}

const struct detector_type env_detector = {.name = "env", .start = env_start};
