#include "core/base/memory.h"
#include "core/ottl/ottl_value.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* The Collector has two encoders of JSON: that of converters, and that of values of the data. */
enum style { OF_CONVERTER, OF_DATA };

/* ---- numbers ---- */

/* Writes the shortest digits that read back as the same number, as `d.ddde+xx`. */
static void shortest(double value, char *buffer, size_t size)
{
    for (int precision = 0; precision <= 17; precision++) {
        snprintf(buffer, size, "%.*e", precision, value);
        if (strtod(buffer, NULL) == value)
            return;
    }
}

/* As Go's JSON: digits without an exponent from 1e-6 to below 1e21. */
static bool print_float(double value, enum style style, struct text *out, struct error *err)
{
    char buffer[40];
    if (!isfinite(value))
        return error_set(err, "json: unsupported value: %s",
                         isnan(value) ? "NaN" : (value < 0 ? "-Inf" : "+Inf"));
    double size = fabs(value);
    shortest(value, buffer, sizeof buffer);
    char *exponent = strchr(buffer, 'e');
    assert(exponent);
    int power = atoi(exponent + 1);
    if (size != 0 && (size < 1e-6 || size >= 1e21)) {
        *exponent = '\0';
        text_printf(out,
                    power > 0          ? "%se+%02d"
                    : style == OF_DATA ? "%se-%d"
                                       : "%se-%02d",
                    buffer, power < 0 ? -power : power);
        return true;
    }
    int digits = (int)(exponent - buffer) - (buffer[0] == '-') - 1; /* with the dot, if any */
    int decimals = (digits > 0 ? digits - 1 : 0) - power;
    text_printf(out, "%.*f", decimals > 0 ? decimals : 0, value);
    return true;
}

/* ---- JSON ---- */

/* Whether U+2028 or U+2029, which are line ends for JavaScript, begin here. */
static bool is_line_separator(struct slice rest)
{
    return rest.size >= 3 && rest.data[0] == 0xe2 && rest.data[1] == 0x80 &&
           (rest.data[2] & 0xfe) == 0xa8;
}

/* As Go's encoder writes strings. A converter also escapes what HTML gives a meaning. */
static void print_string(struct slice bytes, enum style style, struct text *out)
{
    static const char special[] = "\b\f\n\r\t\"\\", letters[] = "bfnrt\"\\";
    text_append_char(out, '"');
    for (size_t i = 0; i < bytes.size; i++) {
        uint8_t c = bytes.data[i];
        const char *found = c ? strchr(special, c) : NULL;
        if (found) {
            text_printf(out, "\\%c", letters[found - special]);
        } else if (c < 0x20 || (style == OF_CONVERTER && (c == '<' || c == '>' || c == '&'))) {
            text_printf(out, "\\u%04x", c);
        } else if (is_line_separator(slice_of(bytes.data + i, bytes.size - i))) {
            text_printf(out, "\\u20%02x", bytes.data[i + 2] - 0x80);
            i += 2;
        } else {
            text_append_char(out, (char)c);
        }
    }
    text_append_char(out, '"');
}

void ottl_print_base64(struct slice bytes, struct text *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < bytes.size; i += 3) {
        size_t left = bytes.size - i;
        uint32_t group = (uint32_t)bytes.data[i] << 16 |
                         (left > 1 ? (uint32_t)bytes.data[i + 1] << 8 : 0) |
                         (left > 2 ? bytes.data[i + 2] : 0);
        text_append_char(out, digits[group >> 18]);
        text_append_char(out, digits[group >> 12 & 63]);
        text_append_char(out, (char)(left > 1 ? digits[group >> 6 & 63] : '='));
        text_append_char(out, (char)(left > 2 ? digits[group & 63] : '='));
    }
}

/* In quotes, in UTC, without zeros at the end of the fraction. */
static void print_time(int64_t ns, struct text *out)
{
    struct text utc = {0};
    text_append_utc(&utc, (uint64_t)ns);
    size_t size = utc.size - 1; /* the Z */
    while (size > 0 && utc.data[size - 1] == '0')
        size--;
    size -= size > 0 && utc.data[size - 1] == '.';
    text_printf(out, "\"%.*sZ\"", (int)size, utc.data);
    text_deinit(&utc);
}

/* A list of the bytes, as Go writes an array. */
static void print_id(const struct ottl_value *id, struct text *out)
{
    size_t size = id->kind == OTTL_SPAN_ID ? SPAN_ID_SIZE : TRACE_ID_SIZE; /* a profile's, too */
    for (size_t i = 0; i < size; i++)
        text_printf(out, "%c%u", i == 0 ? '[' : ',',
                    id->bytes.size > 0 ? (unsigned)id->bytes.data[i] : 0);
    text_append_char(out, ']');
}

static bool print_json(const struct ottl_value *value, enum style style, struct text *out,
                       struct error *err);

static bool print_list(const struct ottl_value *list, enum style style, struct text *out,
                       struct error *err)
{
    struct ottl_cursor cursor = ottl_cursor(list);
    struct ottl_entry entry;
    text_append_char(out, '[');
    for (bool first = true; ottl_cursor_next(&cursor, &entry); first = false) {
        if (!first)
            text_append_char(out, ',');
        if (!print_json(&entry.value, style, out, err))
            return false;
    }
    text_append_char(out, ']');
    return true;
}

struct placed {
    struct ottl_entry entry;
    uint32_t place;
};

static int by_key(const void *a, const void *b)
{
    const struct placed *left = a, *right = b;
    struct ottl_value x = ottl_string(left->entry.key), y = ottl_string(right->entry.key);
    if (ottl_compare(&x, OTTL_EQUAL, &y))
        return (left->place > right->place) - (left->place < right->place);
    return ottl_compare(&x, OTTL_LESS, &y) ? -1 : 1;
}

/* Of several entries with one key the last one is printed. */
static bool print_sorted(const struct placed *sorted, uint32_t count, enum style style,
                         struct text *out, struct error *err)
{
    bool first = true;
    for (uint32_t i = 0; i < count; i++) {
        if (i + 1 < count && slice_equal(sorted[i].entry.key, sorted[i + 1].entry.key))
            continue;
        if (!first)
            text_append_char(out, ',');
        first = false;
        print_string(sorted[i].entry.key, style, out);
        text_append_char(out, ':');
        if (!print_json(&sorted[i].entry.value, style, out, err))
            return false;
    }
    return true;
}

static bool print_map(const struct ottl_value *map, enum style style, struct text *out,
                      struct error *err)
{
    uint32_t count = ottl_value_count(map);
    struct placed *sorted = memory_array(count + 1, sizeof *sorted);
    struct ottl_cursor cursor = ottl_cursor(map);
    for (uint32_t i = 0; i < count && ottl_cursor_next(&cursor, &sorted[i].entry); i++)
        sorted[i].place = i;
    qsort(sorted, count, sizeof *sorted, by_key);
    text_append_char(out, '{');
    bool ok = print_sorted(sorted, count, style, out, err);
    text_append_char(out, '}');
    free(sorted);
    return ok;
}

/* The depth of the data is limited by the scan, that of written values by the parser. */
static bool print_json(const struct ottl_value *value, enum style style, struct text *out,
                       struct error *err)
{
    switch (value->kind) {
    case OTTL_NIL:
        text_append(out, "null");
        return true;
    case OTTL_BOOL:
        text_append(out, value->truth ? "true" : "false");
        return true;
    case OTTL_TIME:
        print_time(value->integer, out);
        return true;
    case OTTL_TRACE_ID:
    case OTTL_SPAN_ID:
    case OTTL_PROFILE_ID:
        print_id(value, out);
        return true;
    case OTTL_INT:
    case OTTL_DURATION:
        text_printf(out, "%" PRId64, value->integer);
        return true;
    case OTTL_FLOAT:
        return print_float(value->real, style, out, err);
    case OTTL_STRING:
        print_string(value->bytes, style, out);
        return true;
    case OTTL_BYTES:
        if (value->bytes.size == 0) {
            text_append(out, "null");
            return true;
        }
        text_append_char(out, '"');
        ottl_print_base64(value->bytes, out);
        text_append_char(out, '"');
        return true;
    case OTTL_MAP:
        return print_map(value, style, out, err);
    case OTTL_LIST:
        return print_list(value, style, out, err);
    default:
        return error_set(err, "unsupported type: %s", ottl_type_name(value));
    }
}

bool ottl_print(const struct ottl_value *value, struct text *out, struct error *err)
{
    if (value->kind == OTTL_STRING) {
        text_append_slice(out, value->bytes);
        return true;
    }
    if (value->kind == OTTL_BYTES) {
        text_append_hex(out, value->bytes);
        return true;
    }
    return print_json(value, OF_CONVERTER, out, err);
}

void ottl_print_data(const struct ottl_value *value, struct text *out)
{
    struct error why;
    assert(out->size == 0);
    if (value->kind == OTTL_STRING) {
        text_append_slice(out, value->bytes);
    } else if (value->kind == OTTL_BYTES) {
        ottl_print_base64(value->bytes, out);
    } else if (value->kind != OTTL_NIL && !print_json(value, OF_DATA, out, &why)) {
        text_clear(out);
        text_append(out, value->kind != OTTL_FLOAT ? ""
                         : isnan(value->real)      ? "NaN"
                         : value->real < 0         ? "-Infinity"
                                                   : "Infinity");
    }
}
