#include "wire_text.h"

#include "core/data/wire.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

struct reader {
    const char *all;
    const char *next;
};

static void give_up(const struct reader *reader)
{
    fprintf(stderr, "wire_text: cannot read \"%s\" in \"%s\"\n", reader->next, reader->all);
    abort();
}

static bool accept(struct reader *reader, char c)
{
    while (isspace((unsigned char)*reader->next))
        reader->next++;
    if (*reader->next != c)
        return false;
    reader->next++;
    return true;
}

static uint64_t read_number(struct reader *reader)
{
    bool negative = accept(reader, '-');
    char *end;
    uint64_t value = strtoull(reader->next, &end, 10);

    if (end == reader->next)
        give_up(reader);
    reader->next = end;
    return negative ? 0 - value : value;
}

static void add(struct text *out, const uint8_t *from, const uint8_t *end)
{
    text_append_slice(out, slice_of(from, (size_t)(end - from)));
}

static void add_tag(struct text *out, uint32_t number, enum wire_type type)
{
    uint8_t bytes[WIRE_HEADER_MAX];

    add(out, bytes, wire_write_tag(bytes, number, type));
}

static void add_varint(struct text *out, uint64_t value)
{
    uint8_t bytes[WIRE_HEADER_MAX];

    add(out, bytes, wire_write_varint(bytes, value));
}

static void add_fixed(struct text *out, uint64_t value, unsigned size)
{
    for (unsigned i = 0; i < size; i++)
        text_append_char(out, (char)(value >> (8 * i)));
}

static void add_field(struct text *out, uint32_t number, struct text *payload)
{
    add_tag(out, number, WIRE_BYTES);
    add_varint(out, payload->size);
    text_append_slice(out, wire_text_slice(payload));
    text_deinit(payload);
}

static struct text read_quoted(struct reader *reader)
{
    const char *end = strchr(reader->next, '"');
    struct text payload = {0};

    if (!end)
        give_up(reader);
    text_append_slice(&payload, slice_of(reader->next, (size_t)(end - reader->next)));
    reader->next = end + 1;
    return payload;
}

static struct text read_hex(struct reader *reader)
{
    struct text payload = {0};
    char digits[3] = {0};

    while (isxdigit((unsigned char)reader->next[0]) && isxdigit((unsigned char)reader->next[1])) {
        memcpy(digits, reader->next, 2);
        text_append_char(&payload, (char)strtoul(digits, NULL, 16));
        reader->next += 2;
    }
    return payload;
}

static struct text read_packed(struct reader *reader)
{
    bool fixed = accept(reader, '#');
    struct text payload = {0};

    while (!accept(reader, ']')) {
        if (fixed)
            add_fixed(&payload, read_number(reader), 8);
        else
            add_varint(&payload, read_number(reader));
    }
    return payload;
}

static struct text read_fields(struct reader *reader, char end);

static void read_value(struct reader *reader, uint32_t number, struct text *out)
{
    struct text payload = {0};

    if (accept(reader, '=')) {
        add_tag(out, number, WIRE_VARINT);
        add_varint(out, read_number(reader));
        return;
    }
    if (accept(reader, '#')) {
        add_tag(out, number, WIRE_FIXED64);
        add_fixed(out, read_number(reader), 8);
        return;
    }
    if (accept(reader, '%')) {
        add_tag(out, number, WIRE_FIXED32);
        add_fixed(out, read_number(reader), 4);
        return;
    }
    if (accept(reader, '{'))
        payload = read_fields(reader, '}');
    else if (accept(reader, '['))
        payload = read_packed(reader);
    else if (accept(reader, '"'))
        payload = read_quoted(reader);
    else if (accept(reader, 'x'))
        payload = read_hex(reader);
    else
        give_up(reader);
    add_field(out, number, &payload);
}

static void read_item(struct reader *reader, struct text *out)
{
    uint64_t number;
    uint64_t times = 1;
    struct text once = {0};

    if (accept(reader, '!')) {
        once = read_hex(reader);
    } else {
        number = read_number(reader);
        if (accept(reader, '*')) {
            times = number;
            number = read_number(reader);
        }
        read_value(reader, (uint32_t)number, &once);
    }
    for (; times > 0; times--)
        text_append_slice(out, wire_text_slice(&once));
    text_deinit(&once);
}

static struct text read_fields(struct reader *reader, char end)
{
    struct text out = {0};

    while (!accept(reader, end))
        read_item(reader, &out);
    return out;
}

struct text wire_text(const char *notation)
{
    struct reader reader = {notation, notation};
    struct text out = {0};

    for (;;) {
        while (isspace((unsigned char)*reader.next))
            reader.next++;
        if (*reader.next == '\0')
            return out;
        read_item(&reader, &out);
    }
}

struct slice wire_text_slice(const struct text *encoded)
{
    return slice_of(encoded->data, encoded->size);
}
