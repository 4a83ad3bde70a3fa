#include "core/net/grpc_status.h"

#include <assert.h>
#include <stdio.h>

size_t grpc_percent_encode(struct slice text, char *out)
{
    static const char hex[] = "0123456789ABCDEF";
    size_t size = 0;
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        bool at_an_end =
            i == 0 || i + 1 == text.size; /* a field value must not begin or end with a space */
        if (c >= (at_an_end ? 0x21 : 0x20) && c <= 0x7e && c != '%') {
            out[size++] = (char)c;
            continue;
        }
        out[size++] = '%';
        out[size++] = hex[c >> 4];
        out[size++] = hex[c & 15];
    }
    return size;
}

/* A minimal protobuf writer, because core/net must not use core/data. */
static size_t put_varint(uint8_t *out, uint64_t value)
{
    size_t size = 0;
    for (; value >= 0x80; value >>= 7)
        out[size++] = (uint8_t)(value | 0x80);
    out[size++] = (uint8_t)value;
    return size;
}

static size_t put_number(uint8_t *out, unsigned field, uint64_t value)
{
    if (value == 0)
        return 0;
    out[0] = (uint8_t)(field << 3);
    return 1 + put_varint(out + 1, value);
}

static size_t put_bytes(uint8_t *out, unsigned field, const void *data, size_t size)
{
    out[0] = (uint8_t)(field << 3 | 2);
    size_t head = 1 + put_varint(out + 1, size);
    memcpy(out + head, data, size);
    return head + size;
}

/* Writes a google.protobuf.Any with google.rpc.RetryInfo{retry_delay}. */
static size_t put_retry_info(uint8_t *out, int64_t delay_ns)
{
    assert(delay_ns >= 0);
    uint8_t duration[24], info[32];
    size_t size = put_number(duration, 1, (uint64_t)(delay_ns / 1000000000));
    size += put_number(duration + size, 2, (uint64_t)(delay_ns % 1000000000));
    size = put_bytes(info, 1, duration, size);
    static const char type[] = "type.googleapis.com/google.rpc.RetryInfo";
    size_t head = put_bytes(out, 1, type, sizeof type - 1);
    return head + put_bytes(out + head, 2, info, size);
}

static size_t encode_base64(const uint8_t *data, size_t size, char *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t at = 0;
    for (size_t i = 0; i < size; i += 3) {
        size_t left = size - i;
        uint32_t bits = (uint32_t)data[i] << 16 | (left > 1 ? (uint32_t)data[i + 1] << 8 : 0) |
                        (left > 2 ? data[i + 2] : 0);
        out[at++] = digits[bits >> 18];
        out[at++] = digits[bits >> 12 & 63];
        if (left > 1)
            out[at++] = digits[bits >> 6 & 63];
        if (left > 2)
            out[at++] = digits[bits & 63];
    }
    return at;
}

size_t grpc_encode_details(const struct verdict *verdict, char out[GRPC_DETAILS_MAX_BYTES])
{
    if (verdict->retry_after_ns < 0)
        return 0;
    uint8_t status[448], any[128];
    size_t size = put_number(status, 1, verdict->code);
    size += put_bytes(status + size, 2, verdict->text, strlen(verdict->text));
    size_t any_size = put_retry_info(any, verdict->retry_after_ns);
    size += put_bytes(status + size, 3, any, any_size);
    assert(size <= sizeof status);
    assert((size + 2) / 3 * 4 <= GRPC_DETAILS_MAX_BYTES);
    return encode_base64(status, size, out);
}

enum { TIMEOUT_MAX_BYTES = 9 }; /* 8 digits and the unit */

/* Quotes a text like Go's %q, truncated to `size` bytes. */
static const char *quote(struct slice text, char *out, size_t size)
{
    size_t used = 0;
    out[used++] = '"';
    for (size_t i = 0; i < text.size && used + 6 < size; i++) {
        uint8_t c = text.data[i];
        if (c == '"' || c == '\\')
            out[used++] = '\\';
        if (c >= 0x20 && c < 0x7f)
            out[used++] = (char)c;
        else
            used += (size_t)snprintf(out + used, size - used, "\\x%02x", c);
    }
    out[used++] = '"';
    out[used] = '\0';
    return out;
}

/* Returns the nanoseconds of a unit; 0 if it is unknown. */
static int64_t unit_ns(uint8_t unit)
{
    switch (unit) {
    case 'H':
        return INT64_C(3600) * 1000000000;
    case 'M':
        return INT64_C(60) * 1000000000;
    case 'S':
        return 1000000000;
    case 'm':
        return 1000000;
    case 'u':
        return 1000;
    case 'n':
        return 1;
    default:
        return 0;
    }
}

bool grpc_parse_timeout(struct slice value, int64_t *ns_out, struct error *err)
{
    char text[80];
    if (value.size < 2)
        return error_set(err, "transport: timeout string is too short: %s",
                         quote(value, text, sizeof text));
    if (value.size > TIMEOUT_MAX_BYTES)
        return error_set(err, "transport: timeout string is too long: %s",
                         quote(value, text, sizeof text));
    int64_t unit = unit_ns(value.data[value.size - 1]);
    if (unit == 0)
        return error_set(err, "transport: timeout unit is not recognized: %s",
                         quote(value, text, sizeof text));
    struct slice digits = slice_of(value.data, value.size - 1);
    int64_t number = 0;
    for (size_t i = 0; i < digits.size; i++) {
        if (digits.data[i] < '0' || digits.data[i] > '9')
            return error_set(err, "strconv.ParseUint: parsing %s: invalid syntax",
                             quote(digits, text, sizeof text));
        number = number * 10 + (digits.data[i] - '0');
    }
    *ns_out = number > INT64_MAX / unit ? INT64_MAX : number * unit;
    assert(*ns_out >= 0);
    return true;
}

enum grpc_code grpc_code_from_http(int status)
{
    switch (status) {
    case 400:
        return GRPC_INTERNAL;
    case 401:
        return GRPC_UNAUTHENTICATED;
    case 403:
        return GRPC_PERMISSION_DENIED;
    case 404:
        return GRPC_UNIMPLEMENTED;
    case 429:
    case 502:
    case 503:
    case 504:
        return GRPC_UNAVAILABLE;
    default:
        return GRPC_UNKNOWN;
    }
}
