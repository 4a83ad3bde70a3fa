#include "receivers/pyroscope/ingest_name.h"

#include "core/base/text.h"

#include <assert.h>
#include <ctype.h>
#include <time.h>

#define SECOND_NS UINT64_C(1000000000)
#define DAY_S UINT64_C(86400)

/* Takes the text before the first character of `ends`, and that character, which it returns; 0 if
 * the text ended. */
static char take_until(struct slice *text, const char *ends, struct slice *out)
{
    size_t size = 0;
    while (size < text->size && (text->data[size] == '\0' || !strchr(ends, text->data[size])))
        size++;
    *out = slice_trim(slice_of(text->data, size), " ");
    if (size == text->size) {
        *text = (struct slice){0};
        return '\0';
    }
    char end = (char)text->data[size++];
    *text = slice_of(text->data + size, text->size - size);
    return end;
}

static bool has_only(struct slice text, const char *besides)
{
    for (size_t i = 0; i < text.size; i++)
        if (!(text.data[i] < 0x80 && isalnum(text.data[i])) &&
            (text.data[i] == '\0' || !strchr(besides, text.data[i])))
            return false;
    return true;
}

static struct slice shown(struct slice text)
{
    return slice_of(text.data, text.size > 64 ? 64 : text.size);
}

static bool set_label(struct ingest_name *name, struct series_label label, struct error *err)
{
    if (slice_is(label.name, "__name__")) {
        name->application = label.value;
        return true;
    }
    for (size_t i = 0; i < name->label_count; i++)
        if (slice_equal(name->labels[i].name, label.name)) {
            name->labels[i] = label;
            return true;
        }
    if (name->label_count == SERIES_LABELS_MAX)
        return error_set(err, "more than %d labels", SERIES_LABELS_MAX);
    name->labels[name->label_count++] = label;
    return true;
}

/* Parses key=value from `rest`, up to a comma or the brace. *last_out: it was the brace. */
static bool parse_label(struct slice *rest, struct ingest_name *name, bool *last_out,
                        struct error *err)
{
    struct series_label label;
    char end = take_until(rest, "=}", &label.name);
    *last_out = end == '}';
    if (*last_out && label.name.size == 0) /* "{}", "{a=b,}" */
        return true;
    if (end != '=')
        return error_set(err, "a label without a value: \"%.*s\"", SLICE_ARG(shown(label.name)));
    if (label.name.size == 0 || !has_only(label.name, "_."))
        return error_set(err,
                         "\"%.*s\" is not a valid label name: letters, digits, \"_\" and \".\"",
                         SLICE_ARG(shown(label.name)));
    end = take_until(rest, ",}", &label.value);
    if (end == '\0')
        return error_set(err, "the brace is not closed");
    *last_out = end == '}';
    return set_label(name, label, err);
}

bool ingest_name_parse(struct slice text, struct ingest_name *name, struct error *err)
{
    struct slice rest = text;
    *name = (struct ingest_name){0};
    bool last = take_until(&rest, "{", &name->application) == '\0';
    while (!last)
        if (!parse_label(&rest, name, &last, err))
            return false;
    if (slice_trim(rest, " ").size > 0)
        return error_set(err, "there is text after the brace: \"%.*s\"", SLICE_ARG(shown(rest)));
    if (name->application.size == 0)
        return error_set(err, "the application name is missing");
    if (!has_only(name->application, "_.-/"))
        return error_set(
            err,
            "\"%.*s\" is not a valid application name: letters, digits, \"_\", \".\", \"-\" and "
            "\"/\"",
            SLICE_ARG(shown(name->application)));
    return true;
}

/* ---- times ---- */

/* Parses at most 19 digits, whose value is below 2^64. */
static bool parse_number(struct slice text, uint64_t *out)
{
    *out = 0;
    if (text.size == 0 || text.size > 19)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        if (!isdigit(text.data[i]))
            return false;
        *out = *out * 10 + (uint64_t)(text.data[i] - '0');
    }
    return true;
}

static bool parse_date(uint64_t number, uint64_t *time_ns_out)
{
    uint64_t year = number / 10000, month = number / 100 % 100, day = number % 100;
    if (year < 1970 || year > 2261 || month < 1 || month > 12 || day < 1 || day > 31)
        return false;
    struct tm date = {.tm_year = (int)year - 1900, .tm_mon = (int)month - 1, .tm_mday = (int)day};
    *time_ns_out = (uint64_t)timegm(&date) * SECOND_NS;
    return true;
}

static bool parse_absolute(struct slice text, uint64_t *time_ns_out)
{
    uint64_t number, unit = SECOND_NS;
    if (!parse_number(text, &number))
        return false;
    if (text.size == 8)
        return parse_date(number, time_ns_out);
    if (text.size == 13)
        unit = SECOND_NS / 1000;
    else if (text.size == 16)
        unit = SECOND_NS / 1000000;
    else if (text.size == 19)
        unit = 1;
    return !__builtin_mul_overflow(number, unit, time_ns_out);
}

static uint64_t unit_seconds(struct slice unit)
{
    static const struct {
        const char *name;
        uint64_t seconds;
    } units[] = {{"s", 1},     {"m", 60},        {"min", 60},         {"h", 3600},
                 {"d", DAY_S}, {"w", 7 * DAY_S}, {"mon", 30 * DAY_S}, {"y", 365 * DAY_S}};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (slice_is(unit, units[i].name))
            return units[i].seconds;
    return 0;
}

/* "now-1h" */
static bool parse_relative(struct slice text, uint64_t now_ns, uint64_t *time_ns_out)
{
    if (text.size < 3 || memcmp(text.data, "now", 3) != 0)
        return false;
    *time_ns_out = now_ns;
    if (text.size == 3)
        return true;
    size_t digits = 4 + text_count_digits(text, 4);
    uint64_t count = 0, distance;
    uint64_t seconds = unit_seconds(slice_of(text.data + digits, text.size - digits));
    if (text.data[3] != '-' || seconds == 0 ||
        !parse_number(slice_of(text.data + 4, digits - 4), &count) ||
        __builtin_mul_overflow(count, seconds * SECOND_NS, &distance))
        return false;
    *time_ns_out = distance < now_ns ? now_ns - distance : 0;
    return true;
}

bool ingest_time_parse(struct slice text, uint64_t now_ns, uint64_t *time_ns_out)
{
    return parse_absolute(text, time_ns_out) || parse_relative(text, now_ns, time_ns_out);
}

/* ---- the query ---- */

/* Decodes %41, and + for a blank, as in forms. Returns false for a % without two digits. */
static bool unescape(struct slice text, struct arena *arena, struct slice *out)
{
    *out = text;
    if (text.size == 0 ||
        (!memchr(text.data, '%', text.size) && !memchr(text.data, '+', text.size)))
        return true;
    uint8_t *to = arena_alloc(arena, text.size);
    size_t size;
    if (!text_decode_percent(text, TEXT_PERCENT_PLUS_BLANK, to, text.size, &size))
        return false;
    *out = slice_of(to, size);
    return true;
}

/* Gets the first value of a parameter; empty if there is none. */
static bool parameter(struct slice query, const char *key, struct arena *arena, struct slice *out,
                      struct error *err)
{
    *out = (struct slice){0};
    size_t key_size = strlen(key);
    while (query.size > 0) {
        const uint8_t *end = memchr(query.data, '&', query.size);
        size_t size = end ? (size_t)(end - query.data) : query.size;
        if (size > key_size && memcmp(query.data, key, key_size) == 0 &&
            query.data[key_size] == '=')
            return unescape(slice_of(query.data + key_size + 1, size - key_size - 1), arena, out) ||
                   error_set(err, "%s: broken percent-encoding", key);
        size += end ? 1 : 0;
        query = slice_of(query.data + size, query.size - size);
    }
    return true;
}

static bool time_parameter(struct slice query, const char *key, uint64_t now_ns,
                           struct arena *arena, uint64_t *out, struct error *err)
{
    struct slice text;
    if (!parameter(query, key, arena, &text, err))
        return false;
    *out = now_ns;
    return text.size == 0 || ingest_time_parse(text, now_ns, out) ||
           error_set(err, "%s: \"%.*s\" is not a time", key, SLICE_ARG(shown(text)));
}

bool ingest_query_parse(struct slice query, uint64_t now_ns, struct arena *arena,
                        struct ingest_query *out, struct error *err)
{
    struct slice name, rate;
    uint64_t rate_hz = 0;
    *out = (struct ingest_query){0};
    if (!parameter(query, "name", arena, &name, err) ||
        !parameter(query, "format", arena, &out->format, err) ||
        !parameter(query, "spyName", arena, &out->spy_name, err) ||
        !parameter(query, "sampleRate", arena, &rate, err) ||
        !time_parameter(query, "from", now_ns, arena, &out->from_ns, err) ||
        !time_parameter(query, "until", now_ns, arena, &out->until_ns, err))
        return false;
    if (parse_number(rate, &rate_hz) && rate_hz <= UINT32_MAX)
        out->sample_rate_hz = (uint32_t)rate_hz;
    return ingest_name_parse(name, &out->name, err) || error_prefix(err, "name");
}
