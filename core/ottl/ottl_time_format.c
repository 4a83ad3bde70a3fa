#include "core/ottl/ottl_time_format.h"

#include "core/base/slice.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define NS INT64_C(1000000000)
#define DIRECTIVES "YymoqbhBdegaAHlIpPMSLfsZzwijkDxFTXrRntc%"

static const char *const months[] = {"January",   "February", "March",    "April",
                                     "May",       "June",     "July",     "August",
                                     "September", "October",  "November", "December"};
static const char *const days[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                   "Thursday", "Friday", "Saturday"};

int64_t ottl_time_divide(int64_t ns, int64_t unit)
{
    return ns / unit - (ns % unit < 0);
}

/* What directives stand for that are made of others. */
static const char *expansion_of(char directive)
{
    switch (directive) {
    case 'F':
        return "%Y-%m-%d";
    case 'T':
    case 'X':
        return "%H:%M:%S";
    case 'D':
    case 'x':
        return "%m/%d/%Y";
    case 'R':
        return "%H:%M";
    case 'r':
        return "%I:%M:%S %P";
    case 'c':
        return "%a %b %d %H:%M:%S %Y";
    case 'n':
        return "\n";
    case 't':
        return "\t";
    default:
        return NULL;
    }
}

static bool is_separator(uint8_t c)
{
    return c == '.' || c == ',';
}

static bool is_fraction(struct slice format, size_t at)
{
    return at + 2 < format.size && is_separator(format.data[at]) && format.data[at + 1] == '%' &&
           format.data[at + 2] > 0 && strchr("Lfs", format.data[at + 2]);
}

bool ottl_time_check(struct slice format, struct error *err)
{
    if (format.size == 0)
        return error_set(err, "format cannot be nil");
    for (size_t i = 0; i < format.size; i++) {
        uint8_t c = format.data[i], directive = i + 1 < format.size ? format.data[i + 1] : 0;
        if (isdigit(c))
            return error_set(err, "format string should not contain decimals");
        if (c != '%' || directive == 0)
            continue;
        if (!strchr(DIRECTIVES, directive))
            return error_set(err, "invalid directive %%%c in the format", directive);
        if (strchr("Lfs", directive) && (i == 0 || !is_separator(format.data[i - 1])))
            return error_set(err,
                             "invalid fractional seconds directive: '%%%c'. must be preceded with "
                             "'.' or ','",
                             directive);
        i++;
    }
    return true;
}

/* ---- reading ---- */

struct reading {
    struct slice rest;
    bool after_space;
    struct ottl_time_text *result;
    int year, month, day, hour, minute, second;
    bool is_pm, is_am;
};

static void skip(struct reading *r, size_t size)
{
    r->rest = slice_of(r->rest.data + size, r->rest.size - size);
}

static bool next_is(const struct reading *r, uint8_t c)
{
    return r->rest.size > 0 && r->rest.data[0] == c;
}

static void skip_spaces(struct reading *r)
{
    while (next_is(r, ' ') || next_is(r, '\t'))
        skip(r, 1);
}

/* Reads up to `max` digits, and at least `min`, in a range. */
static bool take_digits(struct reading *r, size_t min, size_t max, int low, int high, int *out)
{
    size_t size = 0;
    skip_spaces(r);
    for (*out = 0; size < max && size < r->rest.size && isdigit(r->rest.data[size]); size++)
        *out = *out * 10 + (r->rest.data[size] - '0');
    skip(r, size);
    return size >= min && *out >= low && *out <= high;
}

/* Reads a name, or its first letters. */
static bool take_name(struct reading *r, const char *const *names, int count, size_t letters,
                      int *out)
{
    for (int i = 0; i < count; i++) {
        size_t size = letters > 0 ? letters : strlen(names[i]);
        if (r->rest.size < size || strncasecmp((const char *)r->rest.data, names[i], size) != 0)
            continue;
        skip(r, size);
        *out = i;
        return true;
    }
    return false;
}

/* Up to nine digits after a point or comma, if there are any. */
static bool take_fraction(struct reading *r)
{
    size_t size = 0;
    if (r->rest.size < 2 || !is_separator(r->rest.data[0]) || !isdigit(r->rest.data[1]))
        return true;
    skip(r, 1);
    r->result->ns = 0;
    for (; size < 9; size++) {
        bool has_digit = r->rest.size > 0 && isdigit(r->rest.data[0]);
        r->result->ns = r->result->ns * 10 + (has_digit ? r->rest.data[0] - '0' : 0);
        if (has_digit)
            skip(r, 1);
    }
    return true;
}

static bool take_half(struct reading *r, const char *am, const char *pm)
{
    if (r->rest.size < 2)
        return false;
    struct slice half = slice_of(r->rest.data, 2);
    r->is_am = slice_is(half, am);
    r->is_pm = slice_is(half, pm);
    skip(r, 2);
    return r->is_am || r->is_pm;
}

/* Z or ±hh, ±hhmm, ±hh:mm and so on. parts: 1 to 3 of hours, minutes and seconds must be there; 0:
 * any of them, and Z. */
static bool take_offset(struct reading *r, int parts, bool has_colons)
{
    int hours, part = 0;
    if (parts == 0)
        skip_spaces(r);
    r->result->has_offset = true;
    if (parts == 0 && next_is(r, 'Z')) {
        skip(r, 1);
        return true;
    }
    int sign = next_is(r, '-') ? -1 : 1;
    if (!next_is(r, '-') && !next_is(r, '+'))
        return false;
    skip(r, 1);
    if (!take_digits(r, 2, 2, 0, 24, &hours))
        return false;
    r->result->offset = sign * hours * 3600;
    bool any = parts == 0;
    if (any)
        has_colons = next_is(r, ':');
    for (int unit = 60, i = 1; any ? i == 1 && r->rest.size > 0 : i < parts; i++, unit /= 60) {
        if (any && !has_colons && !isdigit(r->rest.data[0]))
            return true;
        if (has_colons && !next_is(r, ':'))
            return false;
        skip(r, has_colons);
        if (!take_digits(r, 2, 2, 0, 60, &part))
            return false;
        r->result->offset += sign * part * unit;
    }
    return true;
}

/* Names of other zones are not unique, and only a database knows them. */
static bool take_zone_name(struct reading *r)
{
    bool is_known = r->rest.size >= 3 && (slice_is(slice_of(r->rest.data, 3), "UTC") ||
                                          slice_is(slice_of(r->rest.data, 3), "GMT"));
    skip(r, is_known ? 3 : 0);
    r->result->has_offset = true;
    return is_known;
}

/* Seconds may have a fraction that the format does not name. */
static bool take_second(struct reading *r, struct slice format, size_t next)
{
    return take_digits(r, 1, 2, 0, 59, &r->second) &&
           (is_fraction(format, next) || take_fraction(r));
}

static bool take_date_part(struct reading *r, char directive)
{
    int ignored;
    switch (directive) {
    case 'Y':
        r->result->has_year = true;
        return take_digits(r, 4, 4, 0, 9999, &r->year);
    case 'y':
        r->result->has_year = true;
        return take_digits(r, 2, 2, 0, 99, &r->year) &&
               ((r->year += r->year >= 69 ? 1900 : 2000), true);
    case 'm':
    case 'o':
    case 'q':
        return take_digits(r, 1, 2, 1, 12, &r->month) && (r->month--, true);
    case 'd':
    case 'e':
    case 'g':
        return take_digits(r, 1, 2, 1, 31, &r->day);
    case 'b':
    case 'h':
        return take_name(r, months, 12, 3, &r->month);
    case 'B':
        return take_name(r, months, 12, 0, &r->month);
    case 'a':
        return take_name(r, days, 7, 3, &ignored);
    default: /* 'A' */
        return take_name(r, days, 7, 0, &ignored);
    }
}

static bool take_directive(struct reading *r, struct slice format, size_t at)
{
    char directive = (char)format.data[at];
    switch (directive) {
    case 'H':
        return take_digits(r, 1, 2, 0, 23, &r->hour);
    case 'I':
    case 'l':
        return take_digits(r, 1, 2, 0, 12, &r->hour);
    case 'M':
        return take_digits(r, 1, 2, 0, 59, &r->minute);
    case 'S':
        return take_second(r, format, at + 1);
    case 'p':
        return take_half(r, "AM", "PM");
    case 'P':
        return take_half(r, "am", "pm");
    case 'z':
        return take_offset(r, 0, false);
    case 'i':
        return take_offset(r, 1, false);
    case 'j':
        return take_offset(r, 2, true);
    case 'k':
        return take_offset(r, 3, true);
    case 'w':
        return take_offset(r, 3, false);
    case 'Z':
        return take_zone_name(r);
    default:
        return take_date_part(r, directive);
    }
}

/* Spaces of the format, however many, stand for any number of them; for none only at the end. */
static bool take_literal(struct reading *r, uint8_t c)
{
    if (c != ' ') {
        r->after_space = false;
        if (!next_is(r, c))
            return false;
        skip(r, 1);
        return true;
    }
    if (r->rest.size > 0 && !next_is(r, ' ') && !r->after_space)
        return false;
    r->after_space = true;
    while (next_is(r, ' '))
        skip(r, 1);
    return true;
}

static bool take_format(struct reading *r, struct slice format);

/* %D takes a year of two or four digits. */
static bool take_expansion(struct reading *r, char directive)
{
    struct reading before = *r;
    if (take_format(r, slice_of_string(expansion_of(directive))))
        return true;
    *r = before;
    return (directive == 'D' || directive == 'x') && take_format(r, SLICE("%m/%d/%y"));
}

static bool take_format(struct reading *r, struct slice format)
{
    bool ok = true;
    for (size_t i = 0; i < format.size && ok; i++) {
        uint8_t c = format.data[i];
        if (is_fraction(format, i)) {
            ok = take_fraction(r);
            i += 2;
        } else if (c != '%' || i + 1 == format.size) {
            ok = take_literal(r, c);
        } else if (format.data[++i] == '%') {
            ok = take_literal(r, '%');
        } else {
            r->after_space = false;
            ok = expansion_of((char)format.data[i]) ? take_expansion(r, (char)format.data[i])
                                                    : take_directive(r, format, i);
        }
    }
    return ok;
}

static bool is_date(const struct reading *r)
{
    static const int sizes[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = (r->year % 4 == 0 && r->year % 100 != 0) || r->year % 400 == 0;
    return r->day <= sizes[r->month] - (r->month == 1 && !is_leap);
}

bool ottl_time_read(struct slice format, struct slice text, struct ottl_time_text *out)
{
    struct reading r = {.rest = text, .result = out, .day = 1};
    *out = (struct ottl_time_text){.local = 0};
    if (!take_format(&r, format) || r.rest.size > 0 || !is_date(&r))
        return false;
    if (r.is_pm && r.hour < 12)
        r.hour += 12;
    if (r.is_am && r.hour == 12)
        r.hour = 0;
    struct tm parts = {.tm_year = r.year - 1900,
                       .tm_mon = r.month,
                       .tm_mday = r.day,
                       .tm_hour = r.hour,
                       .tm_min = r.minute,
                       .tm_sec = r.second};
    out->has_year &= r.year > 0;
    out->local = (int64_t)timegm(&parts);
    return true;
}

/* ---- printing ---- */

struct tm ottl_time_parts(int64_t ns, const struct time_zone *zone)
{
    struct tm parts;
    time_t seconds = (time_t)ottl_time_divide(ns, NS);
    if (zone)
        seconds += time_zone_at(zone, seconds).offset;
    gmtime_r(&seconds, &parts);
    return parts;
}

struct printing {
    const struct tm *parts;
    int64_t ns; /* of the second */
    struct time_zone_period period;
    struct text *out;
};

static void print_offset(const struct printing *p, int parts, const char *separator)
{
    int offset = p->period.offset, size = offset < 0 ? -offset : offset;
    text_printf(p->out, "%c%02d", offset < 0 ? '-' : '+', size / 3600);
    if (parts > 1)
        text_printf(p->out, "%s%02d", separator, size / 60 % 60);
    if (parts > 2)
        text_printf(p->out, "%s%02d", separator, size % 60);
}

/* Without zeros at its end, and without the separator if nothing is left. */
static void print_fraction(const struct printing *p, char separator, char directive)
{
    char digits[16];
    size_t size = directive == 'L' ? 3 : directive == 'f' ? 6 : 9;
    snprintf(digits, sizeof digits, "%09d", (int)p->ns);
    while (size > 0 && digits[size - 1] == '0')
        size--;
    if (size > 0)
        text_printf(p->out, "%c%.*s", separator, (int)size, digits);
}

static void print_zone(const struct printing *p, char directive)
{
    switch (directive) {
    case 'z':
        if (p->period.offset == 0)
            text_append_char(p->out, 'Z');
        else
            print_offset(p, 2, "");
        break;
    case 'Z':
        if (*p->period.name)
            text_append(p->out, p->period.name);
        else
            print_offset(p, 2, "");
        break;
    case 'i':
        print_offset(p, 1, "");
        break;
    case 'j':
        print_offset(p, 2, ":");
        break;
    case 'k':
        print_offset(p, 3, ":");
        break;
    default: /* 'w' */
        print_offset(p, 3, "");
    }
}

/* Returns what a directive prints as a number, and how; NULL: it is none. */
static const char *number_of(const struct tm *t, char directive, int *out)
{
    int hour = t->tm_hour % 12 == 0 ? 12 : t->tm_hour % 12;
    const struct {
        char directive;
        const char *format;
        int number;
    } numbers[] = {
        {'Y', "%04d", t->tm_year + 1900},
        {'y', "%02d", (t->tm_year + 1900) % 100},
        {'m', "%02d", t->tm_mon + 1},
        {'o', "%2d", t->tm_mon + 1},
        {'q', "%d", t->tm_mon + 1},
        {'d', "%02d", t->tm_mday},
        {'e', "%2d", t->tm_mday},
        {'g', "%d", t->tm_mday},
        {'H', "%02d", t->tm_hour},
        {'I', "%02d", hour},
        {'l', "%d", hour},
        {'M', "%02d", t->tm_min},
        {'S', "%02d", t->tm_sec},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].directive == directive) {
            *out = numbers[i].number;
            return numbers[i].format;
        }
    return NULL;
}

static void print_name(const struct printing *p, char directive)
{
    const struct tm *t = p->parts;
    switch (directive) {
    case 'B':
        text_append(p->out, months[t->tm_mon]);
        break;
    case 'b':
    case 'h':
        text_printf(p->out, "%.3s", months[t->tm_mon]);
        break;
    case 'A':
        text_append(p->out, days[t->tm_wday]);
        break;
    case 'a':
        text_printf(p->out, "%.3s", days[t->tm_wday]);
        break;
    case 'p':
        text_append(p->out, t->tm_hour < 12 ? "AM" : "PM");
        break;
    case 'P':
        text_append(p->out, t->tm_hour < 12 ? "am" : "pm");
        break;
    case '%':
        text_append_char(p->out, '%');
        break;
    default:
        print_zone(p, directive);
    }
}

static void print_format(const struct printing *p, struct slice format)
{
    for (size_t i = 0; i < format.size; i++) {
        char c = (char)format.data[i];
        int number;
        if (is_fraction(format, i)) {
            print_fraction(p, c, (char)format.data[i + 2]);
            i += 2;
            continue;
        }
        if (c != '%' || i + 1 == format.size) {
            text_append_char(p->out, c);
            continue;
        }
        c = (char)format.data[++i];
        const char *as_number = number_of(p->parts, c, &number);
        if (as_number)
            text_printf(p->out, as_number, number);
        else if (expansion_of(c))
            print_format(p, slice_of_string(expansion_of(c)));
        else
            print_name(p, c);
    }
}

void ottl_time_print(struct slice format, int64_t ns, const struct time_zone *zone,
                     struct text *out)
{
    struct tm parts = ottl_time_parts(ns, zone);
    int64_t seconds = ottl_time_divide(ns, NS);
    struct printing p = {.parts = &parts, .ns = ns - seconds * NS, .out = out};
    p.period = (struct time_zone_period){.name = "UTC"};
    if (zone)
        p.period = time_zone_at(zone, seconds);
    print_format(&p, format);
}
