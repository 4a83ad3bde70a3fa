#include "core/ottl/ottl_functions.h"
#include "core/ottl/ottl_literals.h"
#include "core/ottl/ottl_time_format.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- directives: %[flags][width][.precision]verb, as Go's fmt.Sprintf has them ---- */

enum { SIZE_MAX_VALUE = 500 }; /* of a width or precision: what a statement makes stays small */

struct directive {
    bool minus, plus, sharp, space, zero;
    bool has_width, has_precision;
    int width, precision;
    char verb; /* 0: the format ends */
};

static bool take_size(struct slice format, size_t *at, int *out)
{
    size_t start = *at;
    for (*out = 0; *at < format.size && isdigit(format.data[*at]); ++*at)
        *out = *out <= SIZE_MAX_VALUE ? *out * 10 + (format.data[*at] - '0') : *out;
    return *at > start;
}

/* After the percent sign. */
static struct directive take_directive(struct slice format, size_t *at)
{
    struct directive d = {.verb = 0};
    for (; *at < format.size; ++*at) {
        uint8_t c = format.data[*at];
        d.minus |= c == '-';
        d.plus |= c == '+';
        d.sharp |= c == '#';
        d.space |= c == ' ';
        d.zero |= c == '0';
        if (c == 0 || !strchr("-+# 0", c))
            break;
    }
    d.has_width = take_size(format, at, &d.width);
    if (*at < format.size && format.data[*at] == '.') {
        ++*at;
        d.has_precision = true;
        take_size(format, at, &d.precision);
    }
    if (*at < format.size)
        d.verb = (char)format.data[(*at)++];
    return d;
}

static bool check_format(const struct ottl_node *node, struct error *err)
{
    struct slice format = node->operands[0]->constant.bytes;
    for (size_t i = 0; i < format.size;) {
        if (format.data[i++] != '%')
            continue;
        struct directive d = take_directive(format, &i);
        if (d.verb == '*' || d.verb == '[' || (uint8_t)d.verb >= 0x80)
            return error_set(err, "the directive %%%c is not supported", d.verb);
        if (d.width > SIZE_MAX_VALUE || d.precision > SIZE_MAX_VALUE)
            return error_set(err, "a width of more than %d is not supported", SIZE_MAX_VALUE);
    }
    return true;
}

/* ---- numbers and texts ---- */

static size_t count_characters(struct slice text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.size; i++)
        count += (text.data[i] & 0xc0) != 0x80;
    return count;
}

/* Appends a text in the width. Zeros come after the sign of a number. */
static void append_padded(const struct directive *d, struct slice text, bool is_number,
                          struct text *out)
{
    size_t count = count_characters(text), width = d->has_width ? (size_t)d->width : 0;
    size_t padding = width > count ? width - count : 0;
    bool zeros = d->zero && !d->minus;
    if (is_number && zeros && padding > 0 && text.size > 0 && strchr("+- ", text.data[0])) {
        text_append_char(out, (char)text.data[0]);
        text = slice_of(text.data + 1, text.size - 1);
    }
    for (size_t i = 0; i < padding && !d->minus; i++)
        text_append_char(out, zeros ? '0' : ' ');
    text_append_slice(out, text);
    for (size_t i = 0; i < padding && d->minus; i++)
        text_append_char(out, ' ');
}

static void append_string(const struct directive *d, const char *text, struct text *out)
{
    append_padded(d, slice_of_string(text), false, out);
}

static const char *sign_of(const struct directive *d, bool is_negative)
{
    return is_negative ? "-" : d->plus ? "+" : d->space ? " " : "";
}

/* Writes the digits of a number to the end of a buffer; returns where they begin. */
static char *write_digits(uint64_t number, unsigned base, bool is_upper, char *end)
{
    const char *digits = is_upper ? "0123456789ABCDEF" : "0123456789abcdef";
    do
        *--end = digits[number % base];
    while ((number /= base) > 0);
    return end;
}

static void append_integer(const struct directive *d, int64_t integer, unsigned base,
                           struct text *out)
{
    static const char *const prefixes[] = {[2] = "0b", [8] = "0", [10] = "", [16] = "0x"};
    char digits[72], *end = digits + sizeof digits;
    uint64_t number = integer < 0 ? -(uint64_t)integer : (uint64_t)integer;
    char *start = write_digits(number, base, d->verb == 'X', end);
    struct text text = {0};
    struct directive padded = *d;
    text_append(&text, sign_of(d, integer < 0));
    if (d->verb == 'O')
        text_append(&text, "0o");
    else if (d->sharp)
        text_append(&text, d->verb == 'X' ? "0X" : prefixes[base]);
    for (int i = (int)(end - start); d->has_precision && i < d->precision; i++)
        text_append_char(&text, '0');
    if (!d->has_precision || d->precision > 0 || integer != 0)
        text_append_slice(&text, slice_of(start, (size_t)(end - start)));
    padded.zero &= !d->has_precision;
    append_padded(&padded, slice_of(text_string(&text), text.size), true, out);
    text_deinit(&text);
}

/* The fewest digits that are read as the same number. */
static void print_shortest(double real, bool is_upper, char *out, size_t size)
{
    char digits[32];
    int precision = 0;
    do
        snprintf(digits, sizeof digits, "%.*e", precision, real);
    while (strtod(digits, NULL) != real && ++precision < 17);
    int exponent = atoi(strchr(digits, 'e') + 1);
    if (exponent < -4 || exponent >= 6)
        snprintf(out, size, is_upper ? "%.*E" : "%.*e", precision, real);
    else
        snprintf(out, size, "%.*f", precision > exponent ? precision - exponent : 0, real);
}

/* Go writes at least two digits of an exponent. */
static void print_hex(const struct directive *d, double real, char *out, size_t size)
{
    bool is_upper = d->verb == 'X';
    if (d->has_precision)
        snprintf(out, size, is_upper ? "%.*A" : "%.*a", d->precision, real);
    else
        snprintf(out, size, is_upper ? "%A" : "%a", real);
    char *exponent = strchr(out, is_upper ? 'P' : 'p');
    assert(exponent && (size_t)(exponent - out) + 5 < size);
    if (strlen(exponent) == 3)
        memcpy(exponent + 2, (char[]){'0', exponent[2], '\0'}, 3);
}

static void append_float(const struct directive *d, double real, struct text *out)
{
    char number[SIZE_MAX_VALUE + 400], sign[2] = "";
    char format[] = {'%', '.', '*', d->verb, '\0'};
    struct directive padded = *d;
    int precision = d->has_precision ? d->precision : 6;
    if (d->verb == 'v')
        format[3] = 'g';
    if (isnan(real) || isinf(real)) {
        padded.zero = false;
        snprintf(number, sizeof number, "%s",
                 isnan(real) ? (d->plus ? "+NaN" : "NaN") : (real < 0 ? "-Inf" : "+Inf"));
        append_string(&padded, number, out);
        return;
    }
    snprintf(sign, sizeof sign, "%s", sign_of(d, signbit(real) != 0));
    if (tolower(d->verb) == 'x')
        print_hex(d, fabs(real), number, sizeof number);
    else if (strchr("vgG", d->verb) && !d->has_precision)
        print_shortest(fabs(real), d->verb == 'G', number, sizeof number);
    else
        snprintf(number, sizeof number, format, precision, fabs(real));
    struct text text = {0};
    text_append(&text, sign);
    text_append(&text, number);
    append_padded(&padded, slice_of(text_string(&text), text.size), true, out);
    text_deinit(&text);
}

/* As strconv.Quote, with double or single quotes. */
static void quote(struct slice text, char mark, struct text *out)
{
    static const char escapes[] = "\a\b\f\n\r\t\v\\", letters[] = "abfnrtv\\";
    text_append_char(out, mark);
    for (size_t i = 0; i < text.size;) {
        uint8_t c = text.data[i];
        size_t size = text_utf8_length(text.data + i, text.size - i);
        const char *escape = c > 0 ? strchr(escapes, c) : NULL;
        if (c == (uint8_t)mark)
            text_printf(out, "\\%c", mark);
        else if (escape)
            text_printf(out, "\\%c", letters[escape - escapes]);
        else if (size == 0 || c < ' ' || c == 0x7f)
            text_printf(out, "\\x%02x", c);
        else
            text_append_slice(out, slice_of(text.data + i, size));
        i += size > 0 ? size : 1;
    }
    text_append_char(out, mark);
}

static struct slice first_characters(struct slice text, size_t count)
{
    size_t i = 0;
    for (; i < text.size; i++)
        if ((text.data[i] & 0xc0) != 0x80 && count-- == 0)
            break;
    return slice_of(text.data, i);
}

static void append_text(const struct directive *d, struct slice text, struct text *out)
{
    struct text made = {0};
    if (d->has_precision)
        text = first_characters(text, (size_t)d->precision);
    if (d->verb == 'q') {
        quote(text, '"', &made);
    } else if (d->verb == 'x' || d->verb == 'X') {
        for (size_t i = 0; i < text.size; i++)
            text_printf(&made, d->verb == 'x' ? "%02x" : "%02X", text.data[i]);
    } else {
        append_padded(d, text, false, out);
        return;
    }
    append_padded(d, slice_of(text_string(&made), made.size), false, out);
    text_deinit(&made);
}

/* ---- values ---- */

static const char *go_type(const struct ottl_value *value)
{
    return value->kind == OTTL_BYTES ? "[]uint8" : ottl_type_name(value);
}

static bool takes(const struct ottl_value *value, char verb)
{
    static const char *const verbs[] = {
        [OTTL_BOOL] = "tv",      [OTTL_INT] = "vdbocqxXOU", [OTTL_FLOAT] = "veEfFgGxX",
        [OTTL_STRING] = "vsqxX", [OTTL_BYTES] = "vdsqxX",   [OTTL_DURATION] = "vsqxXdbo"};
    const char *known =
        value->kind <= OTTL_BYTES || value->kind == OTTL_DURATION ? verbs[value->kind] : "vsqxX";
    return known && strchr(known, verb) != NULL;
}

/* "1h2m3.5s", "1.5ms" */
static void print_duration(int64_t ns, struct text *out)
{
    uint64_t left = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
    uint64_t unit = left < 1000         ? 1
                    : left < 1000000    ? 1000
                    : left < 1000000000 ? 1000000
                                        : 1000000000;
    char number[40];
    text_append(out, ns < 0 ? "-" : "");
    if (left >= UINT64_C(3600000000000))
        text_printf(out, "%" PRIu64 "h", left / UINT64_C(3600000000000));
    if (left >= UINT64_C(60000000000))
        text_printf(out, "%" PRIu64 "m", left / UINT64_C(60000000000) % 60);
    left %= UINT64_C(60000000000);
    int digits = unit == 1 ? 0 : unit == 1000 ? 3 : unit == 1000000 ? 6 : 9;
    int size =
        snprintf(number, sizeof number, "%" PRIu64 ".%0*" PRIu64, left / unit, digits, left % unit);
    while (size > 0 && (number[size - 1] == '0' || digits == 0) &&
           strchr(number, '.') < number + size - 1)
        size--;
    size -= number[size - 1] == '.';
    text_append_slice(out, slice_of(number, (size_t)size));
    text_append(out, ns == 0           ? "s"
                     : unit == 1       ? "ns"
                     : unit == 1000    ? "\u00b5s"
                     : unit == 1000000 ? "ms"
                                       : "s");
}

/* "2006-01-02 15:04:05.5 +0100 CET" */
static void print_time(const struct ottl_value *at, struct text *out)
{
    int64_t seconds = ottl_time_divide(at->ns, 1000000000);
    int offset = at->zone ? time_zone_at(at->zone, seconds).offset : 0;
    int minutes = (offset < 0 ? -offset : offset) / 60;
    ottl_time_print(SLICE("%F %T.%s "), at->ns, at->zone, out);
    text_printf(out, "%c%02d%02d ", offset < 0 ? '-' : '+', minutes / 60, minutes % 60);
    ottl_time_print(SLICE("%Z"), at->ns, at->zone, out);
}

static bool print_other(const struct ottl_value *value, struct text *out, struct error *err)
{
    static const uint8_t zeros[TRACE_ID_SIZE];
    size_t id_size = value->kind == OTTL_SPAN_ID ? SPAN_ID_SIZE : TRACE_ID_SIZE;
    switch (value->kind) {
    case OTTL_TIME:
        print_time(value, out);
        return true;
    case OTTL_DURATION:
        print_duration(value->integer, out);
        return true;
    case OTTL_TRACE_ID:
    case OTTL_SPAN_ID:
    case OTTL_PROFILE_ID:
        text_append_hex(out, value->bytes.size > 0 ? value->bytes : slice_of(zeros, id_size));
        return true;
    default:
        return ottl_print(value, out, err);
    }
}

/* Lists and maps are JSON, and not Go's notation, which for most of them is an address. */
static bool append_other(const struct directive *d, const struct ottl_value *value,
                         struct text *out, struct error *err)
{
    struct text text = {0};
    bool ok = print_other(value, &text, err);
    if (ok)
        append_text(d, slice_of(text_string(&text), text.size), out);
    text_deinit(&text);
    return ok;
}

/* %c and %q of a number */
static void append_character(const struct directive *d, int64_t integer, struct text *out)
{
    bool is_valid = integer >= 0 && integer < 0x110000 && (integer < 0xd800 || integer > 0xdfff);
    uint8_t bytes[4];
    uint32_t c = is_valid ? (uint32_t)integer : 0xfffd;
    struct slice character = slice_of(bytes, ottl_write_utf8(c, bytes));
    struct text quoted = {0};
    if (d->verb == 'q') {
        quote(character, '\'', &quoted);
        character = slice_of(text_string(&quoted), quoted.size);
    }
    append_padded(d, character, false, out);
    text_deinit(&quoted);
}

/* [1 2 3] */
static void append_bytes(const struct directive *d, struct slice bytes, struct text *out)
{
    text_append_char(out, '[');
    for (size_t i = 0; i < bytes.size; i++) {
        text_append(out, i > 0 ? " " : "");
        append_integer(d, bytes.data[i], 10, out);
    }
    text_append_char(out, ']');
}

/* U+00E4 */
static void append_code_point(const struct directive *d, int64_t integer, struct text *out)
{
    char text[24];
    snprintf(text, sizeof text, "U+%04" PRIX64, (uint64_t)integer);
    append_string(d, text, out);
}

static bool append_value(const struct directive *d, const struct ottl_value *value,
                         struct text *out, struct error *err)
{
    switch (value->kind) {
    case OTTL_BOOL:
        append_string(d, value->truth ? "true" : "false", out);
        return true;
    case OTTL_INT:
        if (d->verb == 'c' || d->verb == 'q')
            append_character(d, value->integer, out);
        else if (d->verb == 'U')
            append_code_point(d, value->integer, out);
        else
            append_integer(d, value->integer,
                           d->verb == 'b'                     ? 2
                           : d->verb == 'o' || d->verb == 'O' ? 8
                           : tolower(d->verb) == 'x'          ? 16
                                                              : 10,
                           out);
        return true;
    case OTTL_FLOAT:
        append_float(d, value->real, out);
        return true;
    case OTTL_BYTES:
        if (d->verb == 'v' || d->verb == 'd') {
            append_bytes(d, value->bytes, out);
            return true;
        }
        /* fall through */
    case OTTL_STRING:
        append_text(d, value->bytes, out);
        return true;
    case OTTL_DURATION:
        if (strchr("dbo", d->verb)) {
            append_integer(d, value->integer, d->verb == 'b' ? 2 : d->verb == 'o' ? 8 : 10, out);
            return true;
        }
        return append_other(d, value, out, err);
    default:
        return append_other(d, value, out, err);
    }
}

/* "string=a": an argument that the format cannot use. */
static bool append_typed(const struct ottl_value *value, struct text *out, struct error *err)
{
    static const struct directive plain = {.verb = 'v'};
    if (value->kind == OTTL_NIL) {
        text_append(out, "<nil>");
        return true;
    }
    text_printf(out, "%s=", go_type(value));
    return append_value(&plain, value, out, err);
}

static bool append_argument(const struct directive *d, const struct ottl_value *value,
                            struct text *out, struct error *err)
{
    if (value->kind == OTTL_NIL && d->verb == 'v') {
        append_string(d, "<nil>", out);
        return true;
    }
    if (d->verb == 'T') {
        append_string(d, value->kind == OTTL_NIL ? "<nil>" : go_type(value), out);
        return true;
    }
    if (value->kind != OTTL_NIL && takes(value, d->verb))
        return append_value(d, value, out, err);
    text_printf(out, "%%!%c(", d->verb);
    bool ok = append_typed(value, out, err);
    text_append_char(out, ')');
    return ok;
}

/* ---- the function ---- */

static bool append_extra(struct ottl_items *items, struct text *out)
{
    struct ottl_value value;
    bool is_first = true;
    for (; ottl_items_next(items, &value); is_first = false) {
        text_append(out, is_first ? "%!(EXTRA " : ", ");
        if (!ottl_take_work(items->evaluation, &value) ||
            !append_typed(&value, out, ottl_evaluation_error(items->evaluation)) ||
            !ottl_items_fit(items, out->size))
            return false;
    }
    text_append(out, is_first ? "" : ")");
    return !items->has_failed;
}

/* An item for each directive, as long as there are some. */
static bool append_next(struct ottl_items *items, const struct directive *d, struct text *out)
{
    struct ottl_value value;
    if (ottl_items_next(items, &value))
        return ottl_take_work(items->evaluation, &value) &&
               append_argument(d, &value, out, ottl_evaluation_error(items->evaluation));
    text_printf(out, "%%!%c(MISSING)", d->verb);
    return !items->has_failed;
}

static bool append_format(struct ottl_items *items, struct slice format, struct text *out)
{
    for (size_t i = 0; i < format.size;) {
        if (format.data[i] != '%') {
            text_append_char(out, (char)format.data[i++]);
            continue;
        }
        i++;
        struct directive d = take_directive(format, &i);
        if (d.verb == 0)
            text_append(out, "%!(NOVERB)");
        else if (d.verb == '%')
            text_append_char(out, '%');
        else if (!append_next(items, &d, out))
            return false;
    }
    return append_extra(items, out);
}

static bool format_values(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                          struct ottl_value *out)
{
    struct text text = {0};
    struct ottl_items items;
    bool ok = ottl_argument_items(evaluation, node, 1, &items) &&
              append_format(&items, node->operands[0]->constant.bytes, &text);
    if (ok)
        *out = ottl_string(ottl_evaluation_text(evaluation, &text));
    else
        text_deinit(&text);
    return ok;
}

const struct ottl_function ottl_format_functions[] = {
    {.name = "Format",
     .parameters = {{"format", OTTL_PARAMETER_LITERAL_STRING, false},
                    {"vals", OTTL_PARAMETER_LIST, false}},
     .call = format_values,
     .check = check_format},
    {.name = NULL},
};
