#include "core/ottl/ottl_functions.h"
#include "core/ottl/ottl_time_format.h"

#include <assert.h>
#include <time.h>

#define FUNCTION(name)                                                                             \
    static bool name(struct ottl_evaluation *evaluation, const struct ottl_node *node,             \
                     struct ottl_value *out)

#define NS INT64_C(1000000000)

static bool argument_time(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                          struct ottl_value *out)
{
    return ottl_argument(evaluation, node, 0, out) &&
           (out->kind == OTTL_TIME || error_set(ottl_evaluation_error(evaluation),
                                                "expected time but got %s", ottl_type_name(out)));
}

FUNCTION(now)
{
    struct timespec at;
    (void)evaluation;
    (void)node;
    clock_gettime(CLOCK_REALTIME, &at);
    *out = ottl_time((int64_t)at.tv_sec * NS + at.tv_nsec, NULL);
    return true;
}

FUNCTION(unix_time)
{
    int64_t seconds, ns = 0;
    if (!ottl_argument_int(evaluation, node, 0, &seconds) ||
        (node->operands[1] && !ottl_argument_int(evaluation, node, 1, &ns)))
        return false;
    if (__builtin_mul_overflow(seconds, NS, &seconds) ||
        __builtin_add_overflow(seconds, ns, &seconds))
        return error_set(ottl_evaluation_error(evaluation), "the time is out of range");
    *out = ottl_time(seconds, NULL);
    return true;
}

/* ---- parts ---- */

static bool give_unix(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                      int64_t unit, struct ottl_value *out)
{
    struct ottl_value at;
    if (!argument_time(evaluation, node, &at))
        return false;
    *out = ottl_int(ottl_time_divide(at.integer, unit));
    return true;
}

FUNCTION(unix_nano)
{
    return give_unix(evaluation, node, 1, out);
}

FUNCTION(unix_micro)
{
    return give_unix(evaluation, node, 1000, out);
}

FUNCTION(unix_milli)
{
    return give_unix(evaluation, node, 1000000, out);
}

FUNCTION(unix_seconds)
{
    return give_unix(evaluation, node, NS, out);
}

static bool give_part(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                      size_t offset, int64_t base, struct ottl_value *out)
{
    struct ottl_value at;
    int part;
    if (!argument_time(evaluation, node, &at))
        return false;
    struct tm parts = ottl_time_parts(at.integer, at.zone);
    memcpy(&part, (const char *)&parts + offset, sizeof part);
    *out = ottl_int(part + base);
    return true;
}

FUNCTION(year)
{
    return give_part(evaluation, node, offsetof(struct tm, tm_year), 1900, out);
}

FUNCTION(month)
{
    return give_part(evaluation, node, offsetof(struct tm, tm_mon), 1, out);
}

FUNCTION(day)
{
    return give_part(evaluation, node, offsetof(struct tm, tm_mday), 0, out);
}

FUNCTION(weekday)
{
    return give_part(evaluation, node, offsetof(struct tm, tm_wday), 0, out);
}

FUNCTION(hour)
{
    return give_part(evaluation, node, offsetof(struct tm, tm_hour), 0, out);
}

FUNCTION(minute)
{
    return give_part(evaluation, node, offsetof(struct tm, tm_min), 0, out);
}

FUNCTION(second)
{
    return give_part(evaluation, node, offsetof(struct tm, tm_sec), 0, out);
}

FUNCTION(nanosecond)
{
    struct ottl_value at;
    if (!argument_time(evaluation, node, &at))
        return false;
    *out = ottl_int(at.integer - ottl_time_divide(at.integer, NS) * NS);
    return true;
}

/* As Go, from the year 1 on. */
FUNCTION(truncate_time)
{
    static const int64_t year_1 = INT64_C(-62135596800); /* seconds */
    struct ottl_value at, duration;
    if (!argument_time(evaluation, node, &at) || !ottl_argument(evaluation, node, 1, &duration))
        return false;
    if (duration.kind != OTTL_DURATION)
        return error_set(ottl_evaluation_error(evaluation), "expected duration but got %s",
                         ottl_type_name(&duration));
    __extension__ __int128 since = (__int128)at.integer - (__int128)year_1 * NS;
    int64_t rest = duration.integer > 0 ? (int64_t)(since % duration.integer) : 0;
    *out = ottl_time(at.integer - rest, at.zone);
    return true;
}

/* ---- texts ---- */

static int64_t now_seconds(void)
{
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    return (int64_t)at.tv_sec;
}

/* A time without a year is of this one, or of the last one if it were more than a week ahead. */
static int64_t with_year(int64_t local)
{
    enum { WEEK_SECONDS = 7 * 86400 };
    time_t now = (time_t)now_seconds(), seconds = (time_t)local;
    struct tm today, parts;
    gmtime_r(&now, &today);
    gmtime_r(&seconds, &parts);
    parts.tm_year = today.tm_year;
    struct tm last = parts;
    last.tm_year--;
    time_t found = timegm(&parts);
    return (int64_t)(found > now + WEEK_SECONDS ? timegm(&last) : found);
}

/* What a text is in a zone; NULL: UTC. */
static bool resolve(struct ottl_evaluation *evaluation, const struct ottl_time_text *text,
                    const struct time_zone *zone, struct ottl_value *out)
{
    int64_t ns = text->has_year ? text->local : with_year(text->local);
    if (text->has_offset) {
        zone = NULL;
        if (text->offset != 0)
            zone =
                time_zone_fixed(text->offset, ottl_evaluation_alloc(evaluation, time_zone_size()));
        ns -= text->offset;
    } else if (zone) {
        ns = time_zone_from_local(zone, ns);
    }
    if (__builtin_mul_overflow(ns, NS, &ns) || __builtin_add_overflow(ns, text->ns, &ns))
        return error_set(ottl_evaluation_error(evaluation), "the time is out of range");
    *out = ottl_time(ns, zone);
    return true;
}

FUNCTION(parse_time)
{
    struct slice text;
    struct ottl_time_text read;
    if (!ottl_argument_string(evaluation, node, 0, &text))
        return false;
    if (text.size == 0)
        return error_set(ottl_evaluation_error(evaluation), "time cannot be nil");
    if (!ottl_time_read(node->operands[1]->constant.bytes, text, &read))
        return error_set(ottl_evaluation_error(evaluation),
                         "parsing time \"%.*s\" does not match the format",
                         (int)text_utf8_cut(text, 100), (const char *)text.data);
    return resolve(evaluation, &read, node->zone, out);
}

FUNCTION(format_time)
{
    struct text text = {0};
    struct ottl_value at;
    if (!argument_time(evaluation, node, &at))
        return false;
    ottl_time_print(node->operands[1]->constant.bytes, at.integer, at.zone, &text);
    *out = ottl_string(ottl_evaluation_text(evaluation, &text));
    return true;
}

static bool check_format(const struct ottl_node *node, struct error *err)
{
    return ottl_time_check(node->operands[1]->constant.bytes, err);
}

/* Names of months and days are English. */
static bool check_time(const struct ottl_node *node, struct error *err)
{
    const struct ottl_node *locale = node->operands[3];
    struct slice name = locale ? locale->constant.bytes : SLICE("en");
    bool is_english = slice_is(name, "en") || (name.size > 3 && memcmp(name.data, "en-", 3) == 0);
    return check_format(node, err) &&
           (is_english || error_set(err, "unsupported locale '%.*s', only English is there",
                                    (int)text_utf8_cut(name, 100), (const char *)name.data));
}

#define OF_TIME                                                                                    \
    {                                                                                              \
        {                                                                                          \
            "time", OTTL_PARAMETER_TIME, false                                                     \
        }                                                                                          \
    }

const struct ottl_function ottl_time_functions[] = {
    {.name = "Day", .parameters = OF_TIME, .call = day},
    {.name = "FormatTime",
     .parameters = {{"time", OTTL_PARAMETER_TIME, false},
                    {"format", OTTL_PARAMETER_LITERAL_STRING, false}},
     .call = format_time,
     .check = check_format},
    {.name = "Hour", .parameters = OF_TIME, .call = hour},
    {.name = "Minute", .parameters = OF_TIME, .call = minute},
    {.name = "Month", .parameters = OF_TIME, .call = month},
    {.name = "Nanosecond", .parameters = OF_TIME, .call = nanosecond},
    {.name = "Now",
     .parameters = {{NULL, OTTL_PARAMETER_NONE, false}},
     .call = now,
     .level = OTTL_LEVEL_LOWEST},
    {.name = "Second", .parameters = OF_TIME, .call = second},
    {.name = "Time",
     .parameters = {{"time", OTTL_PARAMETER_STRING, false},
                    {"format", OTTL_PARAMETER_LITERAL_STRING, false},
                    {"location", OTTL_PARAMETER_ZONE, true},
                    {"locale", OTTL_PARAMETER_LITERAL_STRING, true}},
     .call = parse_time,
     .check = check_time},
    {.name = "TruncateTime",
     .parameters = {{"time", OTTL_PARAMETER_TIME, false},
                    {"duration", OTTL_PARAMETER_DURATION, false}},
     .call = truncate_time},
    {.name = "Unix",
     .parameters = {{"seconds", OTTL_PARAMETER_INT, false},
                    {"nanoseconds", OTTL_PARAMETER_INT, true}},
     .call = unix_time},
    {.name = "UnixMicro", .parameters = OF_TIME, .call = unix_micro},
    {.name = "UnixMilli", .parameters = OF_TIME, .call = unix_milli},
    {.name = "UnixNano", .parameters = OF_TIME, .call = unix_nano},
    {.name = "UnixSeconds", .parameters = OF_TIME, .call = unix_seconds},
    {.name = "Weekday", .parameters = OF_TIME, .call = weekday},
    {.name = "Year", .parameters = OF_TIME, .call = year},
    {.name = NULL},
};
