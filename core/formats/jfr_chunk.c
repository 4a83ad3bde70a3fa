#include "core/formats/jfr_chunk.h"

#include <assert.h>
#include <inttypes.h>

/* ---- chunks ---- */

static uint64_t big_endian(const uint8_t *from, size_t size)
{
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++)
        value = value << 8 | from[i];
    return value;
}

static bool check_offset(const char *name, uint64_t offset, uint64_t size, struct error *err)
{
    return (offset >= JFR_HEADER_SIZE && offset < size) ||
           error_set(err, "its %s is at %" PRIu64 ", outside of its %" PRIu64 " bytes", name,
                     offset, size);
}

bool jfr_chunk_take(struct slice *rest, struct jfr_chunk *chunk, struct error *err)
{
    if (rest->size < 4 || memcmp(rest->data, "FLR\0", 4) != 0)
        return error_set(err, "is not a JFR recording: it does not begin with FLR");
    if (rest->size < JFR_HEADER_SIZE)
        return error_set(err, "its header is truncated after %zu bytes", rest->size);
    const uint8_t *header = rest->data;
    uint64_t major = big_endian(header + 4, 2);
    uint64_t size = big_endian(header + 8, 8);
    uint64_t checkpoint_at = big_endian(header + 16, 8);
    uint64_t metadata_at = big_endian(header + 24, 8);
    bool compressed = header[67] & 1;
    if (major != 2)
        return error_set(err, "format version %" PRIu64 "; only 2 can be read", major);
    if (size < JFR_HEADER_SIZE || size > rest->size)
        return error_set(err, "claims %" PRIu64 " bytes, but has %zu", size, rest->size);
    if (size > UINT32_MAX)
        return error_set(err, "has %" PRIu64 " bytes; 4 GiB and more cannot be read", size);
    if (!compressed)
        return error_set(err,
                         "its numbers are not compressed; profcol cannot read such recordings");
    if (!check_offset("metadata", metadata_at, size, err) ||
        !check_offset("checkpoint", checkpoint_at, size, err))
        return false;
    *chunk = (struct jfr_chunk){
        .bytes = slice_of(rest->data, size),
        .checkpoint_at = (uint32_t)checkpoint_at,
        .metadata_at = (uint32_t)metadata_at,
        .start_unix_nano = big_endian(header + 32, 8),
        .duration_nano = big_endian(header + 40, 8),
        .start_ticks = big_endian(header + 48, 8),
        .ticks_per_second = big_endian(header + 56, 8),
    };
    if (chunk->ticks_per_second == 0)
        return error_set(err, "has a clock of 0 ticks per second");
    *rest = slice_of(rest->data + size, rest->size - size);
    return true;
}

/* ---- numbers ---- */

static void go_broken(struct jfr_cursor *cursor)
{
    cursor->broken = true;
    cursor->next = cursor->end;
}

uint64_t jfr_number_any(struct jfr_cursor *cursor)
{
    uint64_t value = 0;
    for (unsigned shift = 0; cursor->next < cursor->end; shift += 7) {
        uint64_t byte = *cursor->next++;
        if (shift == 56)
            return value | byte << 56;
        value |= (byte & 0x7f) << shift;
        if (byte < 0x80)
            return value;
    }
    go_broken(cursor);
    return 0;
}

void jfr_skip(struct jfr_cursor *cursor, uint64_t bytes)
{
    if (bytes > (uint64_t)(cursor->end - cursor->next))
        go_broken(cursor);
    else
        cursor->next += bytes;
}

/* ---- texts ---- */

enum { REPLACEMENT = 0xfffd };

static uint8_t take_byte(struct jfr_cursor *cursor)
{
    const uint8_t *byte = cursor->next;
    jfr_skip(cursor, 1);
    return cursor->broken ? 0 : *byte;
}

struct jfr_text jfr_text(struct jfr_cursor *cursor)
{
    struct jfr_text text = {.encoding = (enum jfr_encoding)take_byte(cursor)};
    uint64_t count;
    const uint8_t *start;
    switch (text.encoding) {
    case JFR_TEXT_NULL:
    case JFR_TEXT_EMPTY:
        return text;
    case JFR_TEXT_REFERENCE:
        text.reference = jfr_number(cursor);
        return text;
    case JFR_TEXT_UTF8:
    case JFR_TEXT_LATIN1:
        count = jfr_number(cursor);
        start = cursor->next;
        jfr_skip(cursor, count);
        break;
    case JFR_TEXT_CHARS:
        count = jfr_number(cursor);
        start = cursor->next;
        for (uint64_t i = 0; i < count && !cursor->broken; i++)
            jfr_number(cursor);
        break;
    default:
        go_broken(cursor);
        return (struct jfr_text){0};
    }
    text.bytes = slice_of(start, (size_t)(cursor->next - start));
    return text;
}

static void append_character(struct wire_writer *out, uint32_t c)
{
    assert(c <= 0x10ffff);
    uint8_t utf8[4];
    size_t size = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint8_t first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = size - 1; i > 0; i--, c >>= 6)
        utf8[i] = (uint8_t)(0x80 | (c & 0x3f));
    utf8[0] = (uint8_t)(first[size] | c);
    wire_writer_raw(out, slice_of(utf8, size));
}

static void append_utf16(struct wire_writer *out, struct slice units)
{
    struct jfr_cursor cursor = {units.data, units.data + units.size, false};
    uint32_t high = 0; /* a high surrogate whose low surrogate comes next */
    while (cursor.next < cursor.end) {
        uint32_t unit = (uint32_t)jfr_number(&cursor) & 0xffff;
        bool is_low = unit >= 0xdc00 && unit < 0xe000;
        if (high != 0 && is_low) {
            append_character(out, 0x10000 + ((high - 0xd800) << 10) + (unit - 0xdc00));
            high = 0;
            continue;
        }
        if (high != 0)
            append_character(out, REPLACEMENT);
        high = unit >= 0xd800 && unit < 0xdc00 ? unit : 0;
        if (high == 0)
            append_character(out, is_low ? REPLACEMENT : unit);
    }
    if (high != 0)
        append_character(out, REPLACEMENT);
}

void jfr_text_append(const struct jfr_text *text, struct wire_writer *out)
{
    if (text->encoding == JFR_TEXT_UTF8)
        wire_writer_raw(out, text->bytes);
    else if (text->encoding == JFR_TEXT_CHARS)
        append_utf16(out, text->bytes);
    else if (text->encoding == JFR_TEXT_LATIN1)
        for (size_t i = 0; i < text->bytes.size; i++)
            append_character(out, text->bytes.data[i]);
}
