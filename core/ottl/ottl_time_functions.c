#include "core/ottl/ottl_functions.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <time.h>

#define FUNCTION(name)                                                                             \
    static bool name(struct ottl_evaluation *evaluation, const struct ottl_node *node,             \
                     struct ottl_value *out)

#define NS INT64_C(1000000000)

static struct ottl_value time_of(int64_t ns)
{
    return (struct ottl_value){.kind = OTTL_TIME, .integer = ns};
}

static bool argument_time(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                          int64_t *out)
{
    struct ottl_value value;
    if (!ottl_argument(evaluation, node, 0, &value))
        return false;
    *out = value.integer;
    return value.kind == OTTL_TIME || error_set(ottl_evaluation_error(evaluation),
                                                "expected time but got %s", ottl_type_name(&value));
}

/* Divides and rounds down, for times before 1970. */
static int64_t divide(int64_t ns, int64_t unit)
{
    return ns / unit - (ns % unit < 0);
}

FUNCTION(now)
{
    struct timespec at;
    (void)evaluation;
    (void)node;
    clock_gettime(CLOCK_REALTIME, &at);
    *out = time_of((int64_t)at.tv_sec * NS + at.tv_nsec);
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
    *out = time_of(seconds);
    return true;
}

/* ---- parts ---- */

static bool give_unix(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                      int64_t unit, struct ottl_value *out)
{
    int64_t ns;
    if (!argument_time(evaluation, node, &ns))
        return false;
    *out = ottl_int(divide(ns, unit));
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

/* In UTC. */
static struct tm parts_of(int64_t ns)
{
    struct tm parts;
    time_t seconds = (time_t)divide(ns, NS);
    gmtime_r(&seconds, &parts);
    return parts;
}

static bool give_part(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                      size_t offset, int64_t base, struct ottl_value *out)
{
    int64_t ns;
    int part;
    if (!argument_time(evaluation, node, &ns))
        return false;
    struct tm parts = parts_of(ns);
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
    int64_t ns;
    if (!argument_time(evaluation, node, &ns))
        return false;
    *out = ottl_int(ns - divide(ns, NS) * NS);
    return true;
}

/* As Go, from the year 1 on. */
FUNCTION(truncate_time)
{
    static const int64_t year_1 = INT64_C(-62135596800); /* seconds */
    struct ottl_value duration;
    int64_t ns;
    if (!argument_time(evaluation, node, &ns) || !ottl_argument(evaluation, node, 1, &duration))
        return false;
    if (duration.kind != OTTL_DURATION)
        return error_set(ottl_evaluation_error(evaluation), "expected duration but got %s",
                         ottl_type_name(&duration));
    __extension__ __int128 since = (__int128)ns - (__int128)year_1 * NS;
    *out = time_of(duration.integer > 0 ? ns - (int64_t)(since % duration.integer) : ns);
    return true;
}

/* ---- formats ---- */

static const char *const months[] = {"January",   "February", "March",    "April",
                                     "May",       "June",     "July",     "August",
                                     "September", "October",  "November", "December"};
static const char *const days[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                   "Thursday", "Friday", "Saturday"};

/* What directives stand for that are made of others. */
static const char *expansion_of(char directive)
{
    switch (directive) {
    case 'F':
        return "%Y-%m-%d";
    case 'T':
        return "%H:%M:%S";
    case 'D':
        return "%m/%d/%y";
    case 'R':
        return "%H:%M";
    case 'r':
        return "%I:%M:%S %p";
    case 'c':
        return "%a %b %e %H:%M:%S %Y";
    default:
        return NULL;
    }
}

/* A time that is being read. */
struct reading {
    struct slice rest;
    struct tm parts;
    int64_t ns, offset; /* of the zone, seconds */
    bool is_pm, is_am;
};

/* Reads up to `max` digits, and at least `min`. */
static bool take_digits(struct reading *r, size_t min, size_t max, int *out, size_t *size_out)
{
    size_t size = 0;
    *out = 0;
    while (size < max && size < r->rest.size && isdigit(r->rest.data[size]))
        *out = *out * 10 + (r->rest.data[size++] - '0');
    r->rest = slice_of(r->rest.data + size, r->rest.size - size);
    if (size_out)
        *size_out = size;
    return size >= min;
}

/* Reads a name or its first three letters. */
static bool take_name(struct reading *r, const char *const *names, int count, int *out)
{
    for (int i = 0; i < count; i++) {
        size_t size = strlen(names[i]);
        bool is_whole =
            r->rest.size >= size && slice_is_ignoring_case(slice_of(r->rest.data, size), names[i]);
        if (!is_whole &&
            (r->rest.size < 3 || strncasecmp((const char *)r->rest.data, names[i], 3) != 0))
            continue;
        size = is_whole ? size : 3;
        r->rest = slice_of(r->rest.data + size, r->rest.size - size);
        *out = i;
        return true;
    }
    return false;
}

static bool take_fraction(struct reading *r, size_t digits)
{
    int value;
    size_t size;
    if (!take_digits(r, 1, digits, &value, &size))
        return false;
    for (r->ns = value; size < 9; size++)
        r->ns *= 10;
    return true;
}

/* Z, +hhmm or +hh:mm */
static bool take_zone(struct reading *r)
{
    int hours, minutes;
    if (r->rest.size > 0 && r->rest.data[0] == 'Z') {
        r->rest = slice_of(r->rest.data + 1, r->rest.size - 1);
        return true;
    }
    if (r->rest.size < 5 || (r->rest.data[0] != '+' && r->rest.data[0] != '-'))
        return false;
    bool is_negative = r->rest.data[0] == '-';
    r->rest = slice_of(r->rest.data + 1, r->rest.size - 1);
    if (!take_digits(r, 2, 2, &hours, NULL))
        return false;
    if (r->rest.size > 0 && r->rest.data[0] == ':')
        r->rest = slice_of(r->rest.data + 1, r->rest.size - 1);
    if (!take_digits(r, 2, 2, &minutes, NULL))
        return false;
    r->offset = ((int64_t)hours * 60 + minutes) * (is_negative ? -60 : 60);
    return true;
}

static bool take_half(struct reading *r)
{
    static const char *const halves[] = {"AM", "PM"};
    int half;
    for (half = 0; half < 2; half++)
        if (r->rest.size >= 2 && slice_is_ignoring_case(slice_of(r->rest.data, 2), halves[half]))
            break;
    if (half == 2)
        return false;
    r->is_am = half == 0;
    r->is_pm = half == 1;
    r->rest = slice_of(r->rest.data + 2, r->rest.size - 2);
    return true;
}

static bool in_range(int value, int min, int max)
{
    return value >= min && value <= max;
}

static bool read_directive(struct reading *r, char directive)
{
    int *mday = &r->parts.tm_mday, ignored;
    switch (directive) {
    case 'Y':
        return take_digits(r, 4, 4, &r->parts.tm_year, NULL) && ((r->parts.tm_year -= 1900), true);
    case 'y':
        return take_digits(r, 2, 2, &r->parts.tm_year, NULL) &&
               ((r->parts.tm_year += r->parts.tm_year < 69 ? 100 : 0), true);
    case 'm':
        return take_digits(r, 1, 2, &r->parts.tm_mon, NULL) && in_range(r->parts.tm_mon--, 1, 12);
    case 'e':
        r->rest = slice_trim(r->rest, " ");
        return take_digits(r, 1, 2, mday, NULL) && in_range(*mday, 1, 31);
    case 'd':
        return take_digits(r, 1, 2, mday, NULL) && in_range(*mday, 1, 31);
    case 'H':
    case 'k':
    case 'I':
    case 'l':
        return take_digits(r, 1, 2, &r->parts.tm_hour, NULL) && in_range(r->parts.tm_hour, 0, 23);
    case 'M':
        return take_digits(r, 1, 2, &r->parts.tm_min, NULL) && in_range(r->parts.tm_min, 0, 59);
    case 'S':
        return take_digits(r, 1, 2, &r->parts.tm_sec, NULL) && in_range(r->parts.tm_sec, 0, 59);
    case 'L':
        return take_fraction(r, 3);
    case 'f':
        return take_fraction(r, 6);
    case 's':
        return take_fraction(r, 9);
    case 'b':
    case 'B':
    case 'h':
        return take_name(r, months, 12, &r->parts.tm_mon);
    case 'a':
    case 'A':
        return take_name(r, days, 7, &ignored);
    case 'p':
        return take_half(r);
    case 'z':
    case 'Z':
        return take_zone(r);
    default:
        return false;
    }
}

static bool take_character(struct reading *r, char c)
{
    if (r->rest.size == 0 || r->rest.data[0] != (uint8_t)c)
        return false;
    r->rest = slice_of(r->rest.data + 1, r->rest.size - 1);
    return true;
}

static bool read_format(struct reading *r, struct slice format)
{
    for (size_t i = 0; i < format.size; i++) {
        char c = (char)format.data[i];
        if (c != '%' || i + 1 == format.size) {
            if (!take_character(r, c))
                return false;
            continue;
        }
        c = (char)format.data[++i];
        const char *expansion = expansion_of(c);
        bool ok = expansion  ? read_format(r, slice_of_string(expansion))
                  : c == '%' ? take_character(r, '%')
                             : read_directive(r, c);
        if (!ok)
            return false;
    }
    return true;
}

static bool is_date(const struct tm *parts)
{
    static const int sizes[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int year = parts->tm_year + 1900;
    bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return parts->tm_mday <= sizes[parts->tm_mon] - (parts->tm_mon == 1 && !is_leap);
}

/* Without a year, Go's is 0. */
FUNCTION(parse_time)
{
    struct slice text;
    struct reading r = {.parts = {.tm_mday = 1, .tm_year = -1900}};
    struct error *err = ottl_evaluation_error(evaluation);
    if (!ottl_argument_string(evaluation, node, 0, &text))
        return false;
    r.rest = text;
    if (!read_format(&r, node->operands[1]->constant.bytes) || r.rest.size > 0 ||
        !is_date(&r.parts))
        return error_set(err, "parsing time \"%.*s\" does not match the format",
                         (int)text_utf8_cut(text, 100), (const char *)text.data);
    if (r.is_pm && r.parts.tm_hour < 12)
        r.parts.tm_hour += 12;
    if (r.is_am && r.parts.tm_hour == 12)
        r.parts.tm_hour = 0;
    int64_t ns = (int64_t)timegm(&r.parts) - r.offset;
    if (__builtin_mul_overflow(ns, NS, &ns) || __builtin_add_overflow(ns, r.ns, &ns))
        return error_set(err, "the time is out of range");
    *out = time_of(ns);
    return true;
}

static void print_directive(char directive, const struct tm *t, int64_t ns, struct text *out)
{
    int hour = t->tm_hour % 12 == 0 ? 12 : t->tm_hour % 12;
    switch (directive) {
    case 'Y':
        text_printf(out, "%04d", t->tm_year + 1900);
        break;
    case 'y':
        text_printf(out, "%02d", (t->tm_year + 1900) % 100);
        break;
    case 'm':
        text_printf(out, "%02d", t->tm_mon + 1);
        break;
    case 'd':
        text_printf(out, "%02d", t->tm_mday);
        break;
    case 'e':
        text_printf(out, "%2d", t->tm_mday);
        break;
    case 'j':
        text_printf(out, "%03d", t->tm_yday + 1);
        break;
    case 'H':
        text_printf(out, "%02d", t->tm_hour);
        break;
    case 'I':
        text_printf(out, "%02d", hour);
        break;
    case 'l':
        text_printf(out, "%d", hour);
        break;
    case 'M':
        text_printf(out, "%02d", t->tm_min);
        break;
    case 'S':
        text_printf(out, "%02d", t->tm_sec);
        break;
    case 'L':
        text_printf(out, "%03d", (int)(ns / 1000000));
        break;
    case 'f':
        text_printf(out, "%06d", (int)(ns / 1000));
        break;
    case 's':
        text_printf(out, "%09d", (int)ns);
        break;
    case 'B':
        text_append(out, months[t->tm_mon]);
        break;
    case 'b':
    case 'h':
        text_printf(out, "%.3s", months[t->tm_mon]);
        break;
    case 'A':
        text_append(out, days[t->tm_wday]);
        break;
    case 'a':
        text_printf(out, "%.3s", days[t->tm_wday]);
        break;
    case 'p':
        text_append(out, t->tm_hour < 12 ? "AM" : "PM");
        break;
    case 'z':
        text_append(out, "+0000");
        break;
    case 'Z':
        text_append(out, "UTC");
        break;
    default:
        text_append_char(out, directive);
    }
}

static void print_format(struct slice format, const struct tm *parts, int64_t ns, struct text *out)
{
    for (size_t i = 0; i < format.size; i++) {
        char c = (char)format.data[i];
        if (c != '%' || i + 1 == format.size) {
            text_append_char(out, c);
            continue;
        }
        const char *expansion = expansion_of((char)format.data[++i]);
        if (expansion)
            print_format(slice_of_string(expansion), parts, ns, out);
        else
            print_directive((char)format.data[i], parts, ns, out);
    }
}

FUNCTION(format_time)
{
    struct text text = {0};
    struct slice format;
    int64_t ns;
    if (!argument_time(evaluation, node, &ns) ||
        !ottl_argument_string(evaluation, node, 1, &format))
        return false;
    struct tm parts = parts_of(ns);
    print_format(format, &parts, ns - divide(ns, NS) * NS, &text);
    *out = ottl_string(ottl_evaluation_text(evaluation, &text));
    return true;
}

/* Only what strptime knows and the table has. */
static bool check_format(const struct ottl_node *node, struct error *err)
{
    struct slice format = node->operands[1]->constant.bytes;
    if (format.size == 0)
        return error_set(err, "format cannot be nil");
    for (size_t i = 0; i + 1 < format.size; i++)
        if (format.data[i] == '%' &&
            (format.data[++i] == 0 || !strchr("YymdeHIklMSLfsbBhaApzZFTDRrc%", format.data[i])))
            return error_set(err, "invalid directive %%%c in the format", format.data[i]);
    if (node->operands[2] && !slice_is(node->operands[2]->constant.bytes, "UTC"))
        return error_set(err, "only the location UTC is supported; write %%z for an offset");
    return true;
}

#define OF_TIME                                                                                    \
    {                                                                                              \
        {                                                                                          \
            "time", OTTL_PARAMETER_ANY, false                                                      \
        }                                                                                          \
    }

const struct ottl_function ottl_time_functions[] = {
    {.name = "Day", .parameters = OF_TIME, .call = day},
    {.name = "FormatTime",
     .parameters = {{"time", OTTL_PARAMETER_ANY, false}, {"format", OTTL_PARAMETER_STRING, false}},
     .call = format_time},
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
                    {"location", OTTL_PARAMETER_LITERAL_STRING, true}},
     .call = parse_time,
     .check = check_format},
    {.name = "TruncateTime",
     .parameters = {{"time", OTTL_PARAMETER_ANY, false},
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
