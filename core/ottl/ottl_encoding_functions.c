#include "core/data/utf8.h"
#include "core/ottl/ottl_functions.h"
#include "core/ottl/ottl_literals.h"

#include <assert.h>

#define FUNCTION(name)                                                                             \
    static bool name(struct ottl_evaluation *evaluation, const struct ottl_node *node,             \
                     struct ottl_value *out)

/* ---- base64, RFC 4648: with or without padding, in one of two alphabets ---- */

struct base64 {
    const char *name;
    bool is_padded;
    const char *last; /* the last two characters of the alphabet */
};

static const struct base64 base64_variants[] = {
    {"base64", true, "+/"},
    {"base64-raw", false, "+/"},
    {"base64-url", true, "-_"},
    {"base64-raw-url", false, "-_"},
};

static const struct base64 *find_base64(struct slice name)
{
    for (size_t i = 0; i < sizeof base64_variants / sizeof *base64_variants; i++)
        if (slice_is(name, base64_variants[i].name))
            return &base64_variants[i];
    return NULL;
}

static bool is_base64_digit(const struct base64 *variant, uint8_t c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           c == (uint8_t)variant->last[0] || c == (uint8_t)variant->last[1];
}

/* As in Go, line ends count nowhere, and padding is all or nothing. */
static bool decode_base64(const struct base64 *variant, struct slice text, uint8_t *to,
                          size_t *size_out)
{
    size_t size = 0, padding = 0;
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        if (c == '\r' || c == '\n')
            continue;
        bool is_padding = variant->is_padded && c == '=';
        padding += is_padding;
        if (!is_padding && (padding > 0 || !is_base64_digit(variant, c)))
            return false;
        to[size++] = c;
    }
    bool is_whole = !variant->is_padded || (size % 4 == 0 && padding <= 2);
    return is_whole && text_decode_base64(slice_of(to, size), to, size_out);
}

static bool give_base64_decoded(struct ottl_evaluation *evaluation, const struct base64 *variant,
                                struct slice text, struct ottl_value *out)
{
    size_t size = 0;
    uint8_t *to = ottl_evaluation_alloc(evaluation, text.size + 1);
    if (!decode_base64(variant, text, to, &size))
        return error_set(ottl_evaluation_error(evaluation), "could not decode: illegal base64");
    *out = ottl_string(slice_of(to, size));
    return true;
}

FUNCTION(base64_decode)
{
    struct slice text;
    return ottl_argument_string(evaluation, node, 0, &text) &&
           give_base64_decoded(evaluation, &base64_variants[0], text, out);
}

static void encode_base64(const struct base64 *variant, struct slice bytes, struct text *out)
{
    ottl_print_base64(bytes, out);
    while (!variant->is_padded && out->size > 0 && out->data[out->size - 1] == '=')
        out->size--;
    for (size_t i = 0; i < out->size; i++)
        if (out->data[i] == '+' || out->data[i] == '/')
            out->data[i] = variant->last[out->data[i] == '/'];
}

FUNCTION(base64_encode)
{
    struct slice bytes, name = SLICE("base64");
    struct text text = {0};
    if (!ottl_argument_string(evaluation, node, 0, &bytes) ||
        (node->operands[1] && !ottl_argument_string(evaluation, node, 1, &name)))
        return false;
    const struct base64 *variant = find_base64(name);
    if (!variant)
        return error_set(ottl_evaluation_error(evaluation), "unsupported base64 variant: %.*s",
                         (int)text_utf8_cut(name, 100), (const char *)name.data);
    encode_base64(variant, bytes, &text);
    *out = ottl_string(ottl_evaluation_text(evaluation, &text));
    return true;
}

/* ---- characters: what is none becomes U+FFFD ---- */

enum { REPLACEMENT = 0xfffd, UTF8_MAX = 4 };

/* A character set reads a character at the beginning of the text, which is not empty, and returns
 * how many bytes it has. */
typedef size_t (*read_character)(struct slice text, uint32_t *out);

static size_t read_byte(struct slice text, uint32_t *out)
{
    *out = text.data[0];
    return 1;
}

/* Windows-1252 differs from Latin 1 where that has control characters. */
static size_t read_windows_1252(struct slice text, uint32_t *out)
{
    static const uint16_t special[32] = {
        0x20ac,      REPLACEMENT, 0x201a, 0x0192, 0x201e, 0x2026,      0x2020, 0x2021,
        0x02c6,      0x2030,      0x0160, 0x2039, 0x0152, REPLACEMENT, 0x017d, REPLACEMENT,
        REPLACEMENT, 0x2018,      0x2019, 0x201c, 0x201d, 0x2022,      0x2013, 0x2014,
        0x02dc,      0x2122,      0x0161, 0x203a, 0x0153, REPLACEMENT, 0x017e, 0x0178};
    uint8_t c = text.data[0];
    *out = c >= 0x80 && c < 0xa0 ? special[c - 0x80] : c;
    return 1;
}

static uint32_t unit_at(struct slice text, size_t at, bool is_big)
{
    assert(at + 2 <= text.size);
    return is_big ? (uint32_t)text.data[at] << 8 | text.data[at + 1]
                  : (uint32_t)text.data[at + 1] << 8 | text.data[at];
}

static size_t read_utf16(struct slice text, bool is_big, uint32_t *out)
{
    *out = REPLACEMENT;
    if (text.size < 2)
        return 1;
    uint32_t first = unit_at(text, 0, is_big);
    bool is_surrogate = first >= 0xd800 && first < 0xe000;
    if (!is_surrogate)
        *out = first;
    if (!is_surrogate || first >= 0xdc00 || text.size < 4)
        return 2;
    uint32_t second = unit_at(text, 2, is_big);
    if (second < 0xdc00 || second >= 0xe000)
        return 2;
    *out = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
    return 4;
}

static size_t read_utf16_le(struct slice text, uint32_t *out)
{
    return read_utf16(text, false, out);
}

static size_t read_utf16_be(struct slice text, uint32_t *out)
{
    return read_utf16(text, true, out);
}

static const struct charset {
    const char *name;    /* in lower case */
    read_character read; /* NULL: the text stays as it is */
    bool is_utf8;        /* but becomes valid */
} charsets[] = {
    {"", NULL, true},
    {"ascii", NULL, true},
    {"us-ascii", NULL, true},
    {"utf8", NULL, true},
    {"utf-8", NULL, true},
    {"nop", NULL, false},
    {"utf8-raw", NULL, false},
    {"utf-8-raw", NULL, false},
    {"utf16", read_utf16_le, false},
    {"utf-16", read_utf16_le, false},
    {"utf-16le", read_utf16_le, false},
    {"utf-16be", read_utf16_be, false},
    {"iso-8859-1", read_byte, false},
    {"iso_8859-1", read_byte, false},
    {"latin1", read_byte, false},
    {"l1", read_byte, false},
    {"windows-1252", read_windows_1252, false},
    {"cswindows1252", read_windows_1252, false},
};

static const struct charset *find_charset(struct slice name)
{
    for (size_t i = 0; i < sizeof charsets / sizeof *charsets; i++)
        if (slice_is_ignoring_case(name, charsets[i].name))
            return &charsets[i];
    return NULL;
}

static void append_character(uint32_t c, struct text *out)
{
    uint8_t bytes[UTF8_MAX];
    text_append_slice(out, slice_of(bytes, ottl_write_utf8(c, bytes)));
}

static void decode_characters(read_character read, struct slice from, struct text *out)
{
    for (size_t at = 0; at < from.size;) {
        struct slice rest = slice_of(from.data + at, from.size - at);
        uint32_t c;
        at += read(rest, &c);
        append_character(c, out);
    }
}

static bool refuse_encoding(struct slice name, struct error *err)
{
    return error_set(err, "unsupported encoding '%.*s'", (int)text_utf8_cut(name, 100),
                     (const char *)name.data);
}

static bool check_encoding(const struct ottl_node *node, struct error *err)
{
    const struct ottl_node *name = node->operands[1];
    return !ottl_node_is_literal(name) || find_base64(name->constant.bytes) ||
           find_charset(name->constant.bytes) || refuse_encoding(name->constant.bytes, err);
}

FUNCTION(decode)
{
    struct ottl_value value;
    struct slice name;
    struct text text = {0};
    if (!ottl_argument(evaluation, node, 0, &value) ||
        !ottl_argument_string(evaluation, node, 1, &name))
        return false;
    if (value.kind != OTTL_STRING && value.kind != OTTL_BYTES)
        return error_set(ottl_evaluation_error(evaluation),
                         "unsupported type provided to Decode function: %s",
                         ottl_type_name(&value));
    const struct base64 *variant = find_base64(name);
    if (variant)
        return give_base64_decoded(evaluation, variant, value.bytes, out);
    const struct charset *charset = find_charset(name);
    if (!charset)
        return refuse_encoding(name, ottl_evaluation_error(evaluation));
    *out = ottl_string(value.bytes);
    if (!charset->read && !charset->is_utf8)
        return true;
    if (charset->read)
        decode_characters(charset->read, value.bytes, &text);
    else
        utf8_append_repaired(value.bytes, &text);
    *out = ottl_string(ottl_evaluation_text(evaluation, &text));
    return true;
}

const struct ottl_function ottl_encoding_functions[] = {
    {.name = "Base64Decode",
     .parameters = {{"target", OTTL_PARAMETER_STRING, false}},
     .call = base64_decode},
    {.name = "Base64Encode",
     .parameters = {{"target", OTTL_PARAMETER_STRING, false},
                    {"variant", OTTL_PARAMETER_STRING, true}},
     .call = base64_encode},
    {.name = "Decode",
     .parameters = {{"target", OTTL_PARAMETER_ANY, false},
                    {"encoding", OTTL_PARAMETER_STRING, false}},
     .call = decode,
     .check = check_encoding},
    {.name = NULL},
};
