#include "core/base/clock.h"
#include "core/base/hash.h"
#include "core/base/murmur3.h"
#include "core/ottl/ottl_functions.h"

#include <assert.h>
#include <openssl/evp.h>
#include <sys/random.h>

#define FUNCTION(name)                                                                             \
    static bool name(struct ottl_evaluation *evaluation, const struct ottl_node *node,             \
                     struct ottl_value *out)

static bool give_hex(struct ottl_evaluation *evaluation, struct slice bytes, struct ottl_value *out)
{
    struct text text = {0};
    text_append_hex(&text, bytes);
    *out = ottl_string(ottl_evaluation_text(evaluation, &text));
    return true;
}

static bool digest(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                   const EVP_MD *method, struct ottl_value *out)
{
    struct slice text;
    uint8_t bytes[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    if (!ottl_argument_string(evaluation, node, 0, &text))
        return false;
    if (EVP_Digest(text.data, text.size, bytes, &size, method, NULL) != 1)
        return error_set(ottl_evaluation_error(evaluation), "the hash is not available");
    return give_hex(evaluation, slice_of(bytes, size), out);
}

FUNCTION(md5)
{
    return digest(evaluation, node, EVP_md5(), out);
}

FUNCTION(sha1)
{
    return digest(evaluation, node, EVP_sha1(), out);
}

FUNCTION(sha256)
{
    return digest(evaluation, node, EVP_sha256(), out);
}

FUNCTION(sha512)
{
    return digest(evaluation, node, EVP_sha512(), out);
}

/* FNV-1a, 64 bits. */
FUNCTION(fnv)
{
    struct slice text;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    if (!ottl_argument_string(evaluation, node, 0, &text))
        return false;
    for (size_t i = 0; i < text.size; i++)
        hash = (hash ^ text.data[i]) * UINT64_C(0x100000001b3);
    *out = ottl_int((int64_t)hash);
    return true;
}

FUNCTION(xxh3)
{
    struct slice text;
    uint8_t bytes[8];
    if (!ottl_argument_string(evaluation, node, 0, &text))
        return false;
    hash_xxh3(text, bytes);
    return give_hex(evaluation, slice_of(bytes, sizeof bytes), out);
}

FUNCTION(xxh128)
{
    struct slice text;
    uint8_t bytes[16];
    if (!ottl_argument_string(evaluation, node, 0, &text))
        return false;
    hash_xxh3_128(text, bytes);
    return give_hex(evaluation, slice_of(bytes, sizeof bytes), out);
}

/* The lowest byte first. */
FUNCTION(murmur3)
{
    struct slice text;
    uint8_t bytes[4];
    if (!ottl_argument_string(evaluation, node, 0, &text))
        return false;
    uint32_t hash = murmur3_32(text);
    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(hash >> (8 * i));
    return give_hex(evaluation, slice_of(bytes, sizeof bytes), out);
}

FUNCTION(murmur3_in_128_bits)
{
    struct slice text;
    uint8_t bytes[16];
    if (!ottl_argument_string(evaluation, node, 0, &text))
        return false;
    murmur3_128(text, bytes);
    return give_hex(evaluation, slice_of(bytes, sizeof bytes), out);
}

static bool give_hex_number(struct ottl_evaluation *evaluation, uint64_t number,
                            struct ottl_value *out)
{
    uint8_t bytes[8];
    for (unsigned i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(number >> (56 - 8 * i));
    return give_hex(evaluation, slice_of(bytes, sizeof bytes), out);
}

/* The bytes of a number, the highest first. */
FUNCTION(hex)
{
    struct ottl_value value;
    uint64_t number;
    uint8_t truth;
    if (!ottl_argument(evaluation, node, 0, &value))
        return false;
    switch (value.kind) {
    case OTTL_NIL:
        *out = ottl_string((struct slice){0});
        return true;
    case OTTL_STRING:
    case OTTL_BYTES:
        return give_hex(evaluation, value.bytes, out);
    case OTTL_BOOL:
        truth = value.truth;
        return give_hex(evaluation, slice_of(&truth, 1), out);
    case OTTL_INT:
        return give_hex_number(evaluation, (uint64_t)value.integer, out);
    case OTTL_FLOAT:
        memcpy(&number, &value.real, sizeof number);
        return give_hex_number(evaluation, number, out);
    default:
        return error_set(ottl_evaluation_error(evaluation), "unsupported type: %s",
                         ottl_type_name(&value));
    }
}

static bool give_uuid(struct ottl_evaluation *evaluation, const uint8_t bytes[16],
                      struct ottl_value *out)
{
    struct text text = {0};
    for (size_t i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            text_append_char(&text, '-');
        text_append_hex(&text, slice_of(&bytes[i], 1));
    }
    *out = ottl_string(ottl_evaluation_text(evaluation, &text));
    return true;
}

/* Fills in random bytes but for the version, RFC 9562. */
static bool make_uuid(struct ottl_evaluation *evaluation, unsigned version, uint8_t bytes[16])
{
    if (getrandom(bytes, 16, 0) != 16)
        return error_set(ottl_evaluation_error(evaluation), "no random numbers");
    bytes[6] = (uint8_t)((bytes[6] & 0x0f) | version << 4);
    bytes[8] = (uint8_t)((bytes[8] & 0x3f) | 0x80);
    return true;
}

FUNCTION(uuid)
{
    uint8_t bytes[16];
    (void)node;
    return make_uuid(evaluation, 4, bytes) && give_uuid(evaluation, bytes, out);
}

/* Begins with the milliseconds since 1970. */
FUNCTION(uuid_v7)
{
    uint8_t bytes[16];
    (void)node;
    if (!make_uuid(evaluation, 7, bytes))
        return false;
    uint64_t ms = clock_wall_ns() / 1000000;
    for (unsigned i = 0; i < 6; i++)
        bytes[i] = (uint8_t)(ms >> (40 - 8 * i));
    return give_uuid(evaluation, bytes, out);
}

/* ---- ids ---- */

static bool make_id(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                    enum ottl_kind kind, size_t size, struct ottl_value *out)
{
    struct ottl_value value;
    if (!ottl_argument(evaluation, node, 0, &value))
        return false;
    *out = (struct ottl_value){.kind = kind};
    if (value.kind == OTTL_BYTES && value.bytes.size == size) {
        out->bytes = value.bytes;
        return true;
    }
    uint8_t *id = ottl_evaluation_alloc(evaluation, size);
    int byte = value.kind == OTTL_STRING && value.bytes.size == 2 * size ? 0 : -1;
    for (size_t i = 0; i < size && byte >= 0; i++) {
        byte = text_hex_byte(value.bytes.data + 2 * i);
        id[i] = (uint8_t)byte;
    }
    if (byte < 0)
        return error_set(ottl_evaluation_error(evaluation),
                         "an id must be %zu bytes or %zu hex characters", size, 2 * size);
    out->bytes = slice_of(id, size);
    return true;
}

FUNCTION(trace_id)
{
    return make_id(evaluation, node, OTTL_TRACE_ID, TRACE_ID_SIZE, out);
}

FUNCTION(span_id)
{
    return make_id(evaluation, node, OTTL_SPAN_ID, SPAN_ID_SIZE, out);
}

FUNCTION(profile_id)
{
    return make_id(evaluation, node, OTTL_PROFILE_ID, PROFILE_ID_SIZE, out);
}

#define OF_TEXT                                                                                    \
    {                                                                                              \
        {                                                                                          \
            "target", OTTL_PARAMETER_STRING, false                                                 \
        }                                                                                          \
    }
#define OF_ANY                                                                                     \
    {                                                                                              \
        {                                                                                          \
            "target", OTTL_PARAMETER_ANY, false                                                    \
        }                                                                                          \
    }

const struct ottl_function ottl_hash_functions[] = {
    {.name = "FNV", .parameters = OF_TEXT, .call = fnv},
    {.name = "Hex", .parameters = OF_ANY, .call = hex, .checks_literals = true},
    {.name = "MD5", .parameters = OF_TEXT, .call = md5},
    {.name = "Murmur3Hash", .parameters = OF_TEXT, .call = murmur3},
    {.name = "Murmur3Hash128", .parameters = OF_TEXT, .call = murmur3_in_128_bits},
    {.name = "ProfileID", .parameters = OF_ANY, .call = profile_id, .checks_literals = true},
    {.name = "SHA1", .parameters = OF_TEXT, .call = sha1},
    {.name = "SHA256", .parameters = OF_TEXT, .call = sha256},
    {.name = "SHA512", .parameters = OF_TEXT, .call = sha512},
    {.name = "SpanID", .parameters = OF_ANY, .call = span_id, .checks_literals = true},
    {.name = "TraceID", .parameters = OF_ANY, .call = trace_id, .checks_literals = true},
    {.name = "UUID",
     .parameters = {{NULL, OTTL_PARAMETER_NONE, false}},
     .call = uuid,
     .level = OTTL_LEVEL_LOWEST},
    {.name = "UUIDv7",
     .parameters = {{NULL, OTTL_PARAMETER_NONE, false}},
     .call = uuid_v7,
     .level = OTTL_LEVEL_LOWEST},
    {.name = "XXH128", .parameters = OF_TEXT, .call = xxh128},
    {.name = "XXH3", .parameters = OF_TEXT, .call = xxh3},
    {.name = NULL},
};
