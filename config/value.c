#include "config/value.h"

#include "core/base/text.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- integers ---- */

static unsigned digit_value(uint8_t c)
{
    if (isdigit(c))
        return (unsigned)(c - '0');
    if (c >= 'a' && c <= 'f')
        return (unsigned)(c - 'a') + 10;
    if (c >= 'A' && c <= 'F')
        return (unsigned)(c - 'A') + 10;
    return 99;
}

/* Returns the base of "0x1F", "0o17", "0b1" or "10", and removes the prefix. */
static unsigned take_base(struct slice *digits)
{
    if (digits->size < 3 || digits->data[0] != '0')
        return 10;
    unsigned base = 10;
    switch (digits->data[1]) {
    case 'x':
    case 'X':
        base = 16;
        break;
    case 'o':
    case 'O':
        base = 8;
        break;
    case 'b':
    case 'B':
        base = 2;
        break;
    default:
        return 10;
    }
    digits->data += 2;
    digits->size -= 2;
    return base;
}

/* Parses digits, with single underscores between them as in YAML. A leading zero is refused,
 * because it could mean octal. */
static bool parse_digits(struct slice digits, uint64_t *out)
{
    unsigned base = take_base(&digits);
    assert(base >= 2 && base <= 16);
    if (base == 10 && digits.size > 1 && digits.data[0] == '0')
        return false;
    uint64_t value = 0;
    bool after_digit = false;
    for (size_t i = 0; i < digits.size; i++) {
        uint8_t c = digits.data[i];
        if (c == '_' && after_digit) {
            after_digit = false;
            continue;
        }
        unsigned digit = digit_value(c);
        if (digit >= base || __builtin_mul_overflow(value, (uint64_t)base, &value) ||
            __builtin_add_overflow(value, (uint64_t)digit, &value))
            return false;
        after_digit = true;
    }
    *out = value;
    return after_digit;
}

static bool take_sign(struct slice *text)
{
    bool negative = text->size && text->data[0] == '-';
    if (text->size && (negative || text->data[0] == '+')) {
        text->data++;
        text->size--;
    }
    return negative;
}

/* Parses "12.0" and "1e4", which are whole numbers, too, within the exact range of a double. */
static bool parse_whole_double(struct slice text, int64_t *out)
{
    double value;
    if (!config_parse_double(text, &value) || value != floor(value) ||
        fabs(value) > 9007199254740992.0)
        return false;
    *out = (int64_t)value;
    return true;
}

bool config_parse_uint(struct slice text, uint64_t *out)
{
    struct slice digits = text;
    bool negative = take_sign(&digits);
    uint64_t value;
    if (parse_digits(digits, &value)) {
        *out = value;
        return !negative || value == 0;
    }
    int64_t whole;
    if (!parse_whole_double(text, &whole) || whole < 0)
        return false;
    *out = (uint64_t)whole;
    return true;
}

bool config_parse_int(struct slice text, int64_t *out)
{
    struct slice digits = text;
    bool negative = take_sign(&digits);
    uint64_t value;
    if (!parse_digits(digits, &value))
        return parse_whole_double(text, out);
    if (value > (uint64_t)INT64_MAX + negative)
        return false;
    *out = negative ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

/* ---- fractions, booleans ---- */

/* Whether it is [+-] digits [. digits] [e [+-] digits]. */
static bool looks_like_double(struct slice text)
{
    take_sign(&text);
    size_t at = text_count_digits(text, 0);
    size_t digits = at;
    if (at > 1 && text.data[0] == '0')
        return false;
    if (at < text.size && text.data[at] == '.') {
        size_t fraction = text_count_digits(text, at + 1);
        at += 1 + fraction;
        digits += fraction;
    }
    if (digits == 0)
        return false;
    if (at < text.size && (text.data[at] == 'e' || text.data[at] == 'E')) {
        at++;
        if (at < text.size && (text.data[at] == '+' || text.data[at] == '-'))
            at++;
        size_t exponent = text_count_digits(text, at);
        if (exponent == 0)
            return false;
        at += exponent;
    }
    return at == text.size;
}

bool config_parse_double(struct slice text, double *out)
{
    char copy[64];
    if (text.size >= sizeof copy || !looks_like_double(text))
        return false;
    memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    double value = strtod(copy, NULL);
    if (!isfinite(value))
        return false;
    *out = value;
    return true;
}

bool config_parse_bool(struct slice text, bool *out)
{
    static const char *const spellings[2][3] = {{"false", "False", "FALSE"},
                                                {"true", "True", "TRUE"}};
    for (int value = 0; value < 2; value++)
        for (int i = 0; i < 3; i++)
            if (slice_is(text, spellings[value][i])) {
                *out = value;
                return true;
            }
    return false;
}

/* ---- durations ---- */

static const struct unit {
    const char *name;
    int64_t ns;
} units[] = {
    {"ns", 1},
    {"us", 1000},
    {"\xc2\xb5s", 1000}, /* micro sign */
    {"\xce\xbcs", 1000}, /* mu */
    {"ms", 1000000},
    {"s", 1000000000},
    {"m", 60 * INT64_C(1000000000)},
    {"h", 3600 * INT64_C(1000000000)},
};

struct duration_text {
    struct slice whole;
    struct slice rest;
    char *why;
    size_t why_size;
};

static bool explain(const struct duration_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static bool explain(const struct duration_text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(text->why, text->why_size, format, args);
    va_end(args);
    return false;
}

/* Truncates a text for messages. */
static struct slice shown(struct slice text)
{
    if (text.size > 40)
        text.size = 40;
    return text;
}

static bool explain_unit(const struct duration_text *text, struct slice unit)
{
    struct slice whole = shown(text->whole);
    struct slice name = shown(unit);
    if (slice_is(unit, "d"))
        return explain(text, "%.*s: there is no unit for days; write hours, such as 24h",
                       SLICE_ARG(whole));
    return explain(text, "%.*s: unknown unit \"%.*s\"; the units are ns, us, ms, s, m and h",
                   SLICE_ARG(whole), SLICE_ARG(name));
}

static bool explain_missing_unit(const struct duration_text *text, struct slice number)
{
    number = shown(number);
    if (text->rest.data - number.size <= text->whole.data + 1)
        return explain(text, "%.*s has no unit; write %.*ss or %.*sms",
                       SLICE_ARG(shown(text->whole)), SLICE_ARG(number), SLICE_ARG(number));
    return explain(text,
                   "%.*s: the %.*s at the end has no unit; the units are ns, us, ms, s, m and h",
                   SLICE_ARG(shown(text->whole)), SLICE_ARG(number));
}

/* Takes the unit after a number. */
static const struct unit *take_unit(struct duration_text *text, struct slice number)
{
    assert(text->rest.data + text->rest.size == text->whole.data + text->whole.size);
    struct slice unit = {text->rest.data, 0};
    while (unit.size < text->rest.size && !isdigit(unit.data[unit.size]) &&
           unit.data[unit.size] != '.')
        unit.size++;
    if (unit.size == 0) {
        explain_missing_unit(text, number);
        return NULL;
    }
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (slice_is(unit, units[i].name)) {
            text->rest = slice_of(unit.data + unit.size, text->rest.size - unit.size);
            return &units[i];
        }
    explain_unit(text, unit);
    return NULL;
}

/* One number of a duration, such as "12.5": the whole part, and the fraction in units of 1 /
 * fraction_unit. */
struct amount {
    uint64_t whole;
    uint64_t fraction;
    uint64_t fraction_unit; /* 10 to the number of significant digits of the fraction */
};

static bool take_amount(struct duration_text *text, struct amount *out)
{
    *out = (struct amount){.fraction_unit = 1};
    const uint8_t *at = text->rest.data;
    const uint8_t *end = at + text->rest.size;
    size_t digits = 0;
    for (; at < end && isdigit(*at); at++, digits++)
        if (__builtin_mul_overflow(out->whole, UINT64_C(10), &out->whole) ||
            __builtin_add_overflow(out->whole, (uint64_t)(*at - '0'), &out->whole))
            return explain(text, "%.*s... is too long, the longest is 292 years",
                           SLICE_ARG(shown(text->whole)));
    if (at < end && *at == '.')
        for (at++; at < end && isdigit(*at); at++, digits++)
            if (out->fraction_unit < UINT64_C(1000000000000000000)) {
                out->fraction = 10 * out->fraction + (uint64_t)(*at - '0');
                out->fraction_unit *= 10;
            }
    text->rest = slice_of(at, (size_t)(end - at));
    return digits > 0 || explain(text, "\"%.*s\" is not a duration; write 300ms, 5s or 1h30m",
                                 SLICE_ARG(shown(text->whole)));
}

static bool add_amount(const struct duration_text *text, struct amount amount,
                       const struct unit *unit, uint64_t *total)
{
    assert(amount.fraction < amount.fraction_unit && unit->ns > 0);
    uint64_t ns;
    __extension__ unsigned __int128 fraction =
        (unsigned __int128)amount.fraction * (uint64_t)unit->ns / amount.fraction_unit;
    if (__builtin_mul_overflow(amount.whole, (uint64_t)unit->ns, &ns) ||
        __builtin_add_overflow(ns, (uint64_t)fraction, &ns) ||
        __builtin_add_overflow(*total, ns, total) || *total > INT64_MAX)
        return explain(text, "%.*s is too long, the longest is 292 years",
                       SLICE_ARG(shown(text->whole)));
    return true;
}

bool config_parse_duration(struct slice text, int64_t *ns_out, char *why, size_t why_size)
{
    struct duration_text duration = {text, text, why, why_size};
    bool negative = take_sign(&duration.rest);
    if (slice_is(duration.rest, "0")) {
        *ns_out = 0;
        return true;
    }
    uint64_t total = 0;
    do {
        struct amount amount;
        const uint8_t *start = duration.rest.data;
        if (!take_amount(&duration, &amount))
            return false;
        const struct unit *unit =
            take_unit(&duration, slice_of(start, (size_t)(duration.rest.data - start)));
        if (!unit || !add_amount(&duration, amount, unit, &total))
            return false;
    } while (duration.rest.size);
    assert(total <= INT64_MAX); /* add_amount checks it */
    *ns_out = negative ? -(int64_t)total : (int64_t)total;
    return true;
}

/* ---- endpoints ---- */

static bool refuse(char *why, size_t why_size, struct slice text, const char *problem)
{
    snprintf(why, why_size, "\"%.*s\": %s", SLICE_ARG(shown(text)), problem);
    return false;
}

static bool parse_port(struct slice text, uint16_t *port_out)
{
    uint32_t port = 0;
    if (text.size == 0 || text.size > 5)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        if (!isdigit(text.data[i]))
            return false;
        port = 10 * port + (uint32_t)(text.data[i] - '0');
    }
    if (port > UINT16_MAX)
        return false;
    *port_out = (uint16_t)port;
    return true;
}

static bool has_odd_bytes(struct slice host)
{
    for (size_t i = 0; i < host.size; i++)
        if (host.data[i] <= ' ' || host.data[i] == 0x7f || strchr("/[]@\"'<>", host.data[i]))
            return true;
    return false;
}

static bool looks_like_ipv6(struct slice text)
{
    for (size_t i = 0; i < text.size; i++)
        if (!isxdigit(text.data[i]) && text.data[i] != ':')
            return false;
    return true;
}

/* Whether the text begins with a name that gRPC has for a resolver. */
static bool has_grpc_scheme(struct slice text)
{
    static const char *const schemes[] = {"dns:", "ipv4:", "ipv6:", "passthrough:", "xds:"};
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++)
        if (text.size > strlen(schemes[i]) &&
            memcmp(text.data, schemes[i], strlen(schemes[i])) == 0)
            return true;
    return false;
}

static const char *why_too_many_colons(struct slice text)
{
    if (looks_like_ipv6(text))
        return "an IPv6 address goes in brackets; write [::1]:4317";
    if (has_grpc_scheme(text))
        return "gRPC's target schemes are not supported; write host:port";
    return "there are too many colons; write host:port";
}

bool config_parse_endpoint(struct slice text, char *host, size_t host_size, uint16_t *port_out,
                           char *why, size_t why_size)
{
    assert(host_size > 0 && why_size > 0);
    const uint8_t *colon = text.size ? memrchr(text.data, ':', text.size) : NULL;
    bool bracketed = text.size && text.data[0] == '[';
    if (text.size && memmem(text.data, text.size, "://", 3))
        return refuse(why, why_size, text, "expected host:port, without a scheme such as http://");
    if (!colon || (bracketed && colon > text.data && colon[-1] != ']'))
        return refuse(why, why_size, text, "the port is missing; write host:port");
    struct slice name = slice_of(text.data, (size_t)(colon - text.data));
    if (bracketed)
        name = slice_of(name.data + 1, name.size - 2);
    else if (name.size && memchr(name.data, ':', name.size))
        return refuse(why, why_size, text, why_too_many_colons(text));
    if (has_odd_bytes(name))
        return refuse(why, why_size, text, "expected host:port");
    if (name.size >= host_size)
        return refuse(why, why_size, text, "the host name is too long");
    if (!parse_port(slice_of(colon + 1, (size_t)(text.data + text.size - colon) - 1), port_out))
        return refuse(why, why_size, text, "the port must be a number up to 65535");
    memcpy(host, name.data, name.size);
    host[name.size] = '\0';
    return true;
}
