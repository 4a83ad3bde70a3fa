#include "tests/unit/jfr_fixture.h"

#include "core/base/memory.h"

#include <assert.h>
#include <stdio.h>

enum { HEADER_SIZE = 68, SIZE_BYTES = 4 };

void jfr_fixture_bytes(struct jfr_fixture *f, const void *bytes, size_t size)
{
    wire_writer_raw(&f->out, slice_of(bytes, size));
}

void jfr_fixture_values(struct jfr_fixture *f, const int64_t *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t value = (uint64_t)values[i];
        uint8_t bytes[9];
        size_t size = 0;
        for (; size < 8 && value >= 0x80; value >>= 7)
            bytes[size++] = (uint8_t)(value | 0x80);
        bytes[size++] = (uint8_t)value;
        jfr_fixture_bytes(f, bytes, size);
    }
}

void jfr_fixture_text(struct jfr_fixture *f, const char *utf8)
{
    JFR_NUMBERS(f, 3, (int64_t)strlen(utf8));
    jfr_fixture_bytes(f, utf8, strlen(utf8));
}

size_t jfr_fixture_event(struct jfr_fixture *f, uint64_t type)
{
    f->event = f->out.size;
    jfr_fixture_bytes(f, "\0\0\0\0", SIZE_BYTES);
    JFR_NUMBERS(f, (int64_t)type);
    return f->event - f->chunk;
}

/* Writes the size as a number of always four bytes, as the JDK does. */
void jfr_fixture_event_end(struct jfr_fixture *f)
{
    size_t size = f->out.size - f->event;
    for (size_t i = 0; i < SIZE_BYTES; i++, size >>= 7)
        f->out.data[f->event + i] = (uint8_t)((size & 0x7f) | (i + 1 < SIZE_BYTES ? 0x80 : 0));
}

static void big_endian(struct jfr_fixture *f, size_t at, uint64_t value)
{
    for (size_t i = 8; i > 0; i--, value >>= 8)
        f->out.data[f->chunk + at + i - 1] = (uint8_t)value;
}

/* ---- metadata ---- */

/* Strings of the metadata, in the order in which elements use them. */
struct strings {
    char *texts[1024];
    size_t count;
};

static int64_t string_of(struct strings *strings, const char *text, size_t size)
{
    for (size_t i = 0; i < strings->count; i++)
        if (strlen(strings->texts[i]) == size && memcmp(strings->texts[i], text, size) == 0)
            return (int64_t)i;
    assert(strings->count < sizeof strings->texts / sizeof *strings->texts);
    strings->texts[strings->count] = memory_strndup(text, size);
    return (int64_t)strings->count++;
}

static int64_t known(struct strings *strings, const char *text)
{
    return string_of(strings, text, strlen(text));
}

/* Writes a field such as "stackTrace:30#". */
static void write_field(struct jfr_fixture *f, struct strings *strings, const char *word,
                        size_t size)
{
    const char *colon = memchr(word, ':', size);
    assert(colon);
    char last = word[size - 1];
    bool is_constant = last == '#', is_list = last == '*';
    size_t id_size = size - (size_t)(colon + 1 - word) - (is_constant || is_list ? 1 : 0);
    JFR_NUMBERS(f, known(strings, "field"), is_constant || is_list ? 3 : 2, known(strings, "name"),
                string_of(strings, word, (size_t)(colon - word)), known(strings, "class"),
                string_of(strings, colon + 1, id_size));
    if (is_constant)
        JFR_NUMBERS(f, known(strings, "constantPool"), known(strings, "true"));
    if (is_list)
        JFR_NUMBERS(f, known(strings, "dimension"), known(strings, "1"));
    JFR_NUMBERS(f, 1, known(strings, "annotation"), 0, 0); /* one child, which readers ignore */
}

static size_t count_words(const char *text, size_t size)
{
    size_t count = 0;
    for (size_t i = 0; i < size; i++)
        count += text[i] != ' ' && (i == 0 || text[i - 1] == ' ');
    return count;
}

/* Writes a class such as "20 jdk.ExecutionSample stackTrace:30# spanId:10". */
static void write_class(struct jfr_fixture *f, struct strings *strings, const char *text,
                        size_t size)
{
    const char *words[64];
    size_t sizes[64], count = 0;
    for (const char *at = text, *end = text + size; at < end && count < 64; at++) {
        words[count] = at;
        while (at < end && *at != ' ')
            at++;
        sizes[count] = (size_t)(at - words[count]);
        count += sizes[count] > 0;
    }
    assert(count == count_words(text, size) && count >= 2);
    JFR_NUMBERS(f, known(strings, "class"), 2, known(strings, "name"),
                string_of(strings, words[1], sizes[1]), known(strings, "id"),
                string_of(strings, words[0], sizes[0]), (int64_t)count - 2);
    for (size_t i = 2; i < count; i++)
        write_field(f, strings, words[i], sizes[i]);
}

static void write_elements(struct jfr_fixture *f, struct strings *strings, const char *classes)
{
    int64_t count = 1;
    for (const char *at = classes; (at = strchr(at, ';')); at++)
        count++;
    JFR_NUMBERS(f, known(strings, "root"), 0, 2, known(strings, "metadata"), 0, count);
    for (const char *at = classes; at;) {
        const char *end = strchr(at, ';');
        write_class(f, strings, at, end ? (size_t)(end - at) : strlen(at));
        at = end ? end + 2 : NULL;
    }
    JFR_NUMBERS(f, known(strings, "region"), 0, 0);
}

void jfr_fixture_chunk(struct jfr_fixture *f, const char *classes)
{
    static const uint8_t header[HEADER_SIZE] = {
        'F', 'L', 'R', 0, 0, 2, 0, 1, [67] = 1,
    };
    struct jfr_fixture elements = {0};
    struct strings strings = {.count = 0};
    write_elements(&elements, &strings, classes);
    f->chunk = f->out.size;
    jfr_fixture_bytes(f, header, sizeof header);
    big_endian(f, 24, HEADER_SIZE);
    big_endian(f, 32, 1700000000000000000u);
    big_endian(f, 40, 2000000000);
    big_endian(f, 48, 1000); /* ticks at its start */
    big_endian(f, 56, 1000000000);
    jfr_fixture_event(f, 0);
    JFR_NUMBERS(f, 0, 0, 1, (int64_t)strings.count);
    for (size_t i = 0; i < strings.count; i++) {
        jfr_fixture_text(f, strings.texts[i]);
        free(strings.texts[i]);
    }
    jfr_fixture_bytes(f, elements.out.data, elements.out.size);
    jfr_fixture_event_end(f);
    jfr_fixture_deinit(&elements);
}

void jfr_fixture_chunk_end(struct jfr_fixture *f, size_t checkpoint)
{
    big_endian(f, 8, f->out.size - f->chunk);
    big_endian(f, 16, checkpoint);
}

struct slice jfr_fixture_slice(const struct jfr_fixture *f)
{
    return wire_writer_slice(&f->out);
}

void jfr_fixture_deinit(struct jfr_fixture *f)
{
    wire_writer_deinit(&f->out);
}
