#include "core/data/json.h"
#include "core/pipeline/attribute_actions_private.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdlib.h>

/* Returns the bytes that the Collector hashes for a value; those of numbers are the
 * little-endian `number`. Returns false for lists, maps, bytes and the empty value, which it
 * does not hash. */
static bool hash_input(const struct any_value *value, uint64_t *number, struct slice *input)
{
    *input = slice_of(number, sizeof *number);
    switch (value->kind) {
    case ANY_VALUE_STRING:
        *input = value->bytes;
        return true;
    case ANY_VALUE_BOOL:
        *number = htole64(value->truth);
        input->size = 1;
        return true;
    case ANY_VALUE_INT:
        *number = htole64((uint64_t)value->integer);
        return true;
    case ANY_VALUE_DOUBLE:
        memcpy(number, &value->real, sizeof *number);
        *number = htole64(*number);
        return true;
    default:
        return false;
    }
}

struct slice attribute_hash_value(struct arena *arena, struct slice any)
{
    struct any_value value = any_value_read(any);
    uint64_t number;
    uint8_t digest[32];
    struct slice input;
    struct text hex = {0};
    if (!hash_input(&value, &number, &input))
        return attribute_encode_string(arena, (struct slice){0});
    int ok = EVP_Digest(input.data, input.size, digest, NULL, EVP_sha256(), NULL);
    assert(ok == 1);
    text_append_hex(&hex, slice_of(digest, sizeof digest));
    struct slice encoded = attribute_encode_string(arena, slice_of(hex.data, hex.size));
    text_deinit(&hex);
    return encoded;
}

/* Parses a number like Go's strconv: no spaces are allowed, and the whole text is used. */
static bool parse_number(struct slice text, bool real, int64_t *whole_out, double *real_out)
{
    char copy[64], *end;
    if (text.size == 0 || text.size >= sizeof copy || memchr(text.data, ' ', text.size))
        return false;
    memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    if (copy[0] == '\t' || copy[0] == '\n' || copy[0] == '\v' || copy[0] == '\f' || copy[0] == '\r')
        return false;
    errno = 0;
    if (real)
        *real_out = strtod(copy, &end);
    else
        *whole_out = strtoll(copy, &end, 10);
    return errno == 0 && *end == '\0';
}

static struct slice convert_to_number(struct arena *arena, const struct any_value *from, bool real,
                                      struct slice old)
{
    int64_t whole = 0;
    double value = 0;
    switch (from->kind) {
    case ANY_VALUE_STRING:
        if (!parse_number(from->bytes, real, &whole, &value))
            return old;
        break;
    case ANY_VALUE_BOOL:
        whole = from->truth;
        value = (double)whole;
        break;
    case ANY_VALUE_INT:
        whole = from->integer;
        value = (double)whole;
        break;
    case ANY_VALUE_DOUBLE:
        value = from->real;
        if (!real && !(value >= -9223372036854775808.0 && value < 9223372036854775808.0))
            return old;
        whole = real ? 0 : (int64_t)value;
        break;
    default:
        return old;
    }
    return any_value_encode(arena, real ? any_value_double(value) : any_value_int(whole));
}

static struct slice convert_to_string(struct arena *arena, const struct any_value *from,
                                      struct slice old)
{
    struct text text = {0};
    switch (from->kind) {
    case ANY_VALUE_BOOL:
        text_append(&text, from->truth ? "true" : "false");
        break;
    case ANY_VALUE_INT:
        text_printf(&text, "%" PRId64, from->integer);
        break;
    case ANY_VALUE_DOUBLE:
        json_print_double(&text, from->real);
        break;
    default: /* a string already; lists and maps are not converted */
        return old;
    }
    struct slice encoded = attribute_encode_string(arena, slice_of(text.data, text.size));
    text_deinit(&text);
    return encoded;
}

struct slice attribute_convert_value(struct arena *arena, struct slice value, enum converted type)
{
    struct any_value from = any_value_read(value);
    assert(type != CONVERTED_NONE); /* attribute_actions_check */
    if (type == CONVERTED_STRING)
        return convert_to_string(arena, &from, value);
    return convert_to_number(arena, &from, type == CONVERTED_DOUBLE, value);
}
