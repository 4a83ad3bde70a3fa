#include "receivers/pyroscope/multipart.h"

#include <assert.h>
#include <strings.h>

/* An empty slice may be NULL, to which no offset may be added. */
static struct slice from(struct slice text, size_t offset)
{
    assert(offset <= text.size);
    return offset > 0 ? slice_of(text.data + offset, text.size - offset) : text;
}

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t';
}

static struct slice skip_blanks(struct slice text)
{
    while (text.size > 0 && is_blank(text.data[0]))
        text = from(text, 1);
    return text;
}

/* ---- parameters of a header: form-data; name="profile"; filename="p.pprof" ---- */

/* Takes a quoted value. A backslash escapes the next character, and stays in the value. */
static bool take_quoted(struct slice *text, struct slice *value)
{
    for (size_t i = 1; i < text->size; i++) {
        if (text->data[i] == '\\') {
            i++;
        } else if (text->data[i] == '"') {
            *value = slice_of(text->data + 1, i - 1);
            *text = from(*text, i + 1);
            return true;
        }
    }
    return false;
}

static bool take_token(struct slice *text, struct slice *value, const char *ends)
{
    size_t size = 0;
    while (size < text->size && !strchr(ends, text->data[size]))
        size++;
    *value = slice_of(text->data, size);
    *text = from(*text, size);
    return size > 0;
}

/* Takes the next `; name=value`. Returns false at the end, or if there is none. */
static bool next_parameter(struct slice *text, struct slice *name, struct slice *value)
{
    *text = skip_blanks(*text);
    if (!slice_begins_with(*text, SLICE(";")))
        return false;
    *text = skip_blanks(from(*text, 1));
    if (!take_token(text, name, "= \t;\"") || !slice_begins_with(*text, SLICE("=")))
        return false;
    *text = from(*text, 1);
    return slice_begins_with(*text, SLICE("\"")) ? take_quoted(text, value)
                                                 : take_token(text, value, "; \t");
}

/* ---- delimiters ---- */

/* Reads the text after a delimiter: the end of its line, or the mark of the last delimiter.
 * Anything else means that it is part of a longer line and no delimiter. */
static enum multipart_result read_delimiter(struct slice behind, struct slice *rest_out)
{
    if (slice_begins_with(behind, SLICE("--"))) {
        *rest_out = (struct slice){0};
        return MULTIPART_END;
    }
    struct slice end = skip_blanks(behind);
    if (!slice_begins_with(end, SLICE("\r\n")))
        return MULTIPART_BROKEN;
    *rest_out = from(end, 2);
    return MULTIPART_PART;
}

/* Finds the next delimiter, in a text that begins with a whole line. *size_out: bytes before it.
 * Returns BROKEN if there is none. */
static enum multipart_result find_delimiter(struct multipart *multipart, struct slice text,
                                            size_t *size_out)
{
    assert(multipart->boundary.size <=
           MULTIPART_BOUNDARY_MAX_BYTES); /* multipart_begin checks it */
    uint8_t line[4 + MULTIPART_BOUNDARY_MAX_BYTES] = "\r\n--";
    size_t size = 4 + multipart->boundary.size;
    memcpy(line + 4, multipart->boundary.data, multipart->boundary.size);
    *size_out = 0;
    if (text.size >= size - 2 && memcmp(text.data, line + 2, size - 2) == 0) {
        enum multipart_result next = read_delimiter(from(text, size - 2), &multipart->rest);
        if (next != MULTIPART_BROKEN)
            return next;
    }
    for (size_t start = 0; start < text.size;) {
        const uint8_t *found = memmem(text.data + start, text.size - start, line, size);
        if (!found)
            break;
        *size_out = (size_t)(found - text.data);
        start = *size_out + size;
        enum multipart_result next = read_delimiter(from(text, start), &multipart->rest);
        if (next != MULTIPART_BROKEN)
            return next;
    }
    return MULTIPART_BROKEN;
}

bool multipart_is(struct slice content_type)
{
    static const char type[] = "multipart/form-data";
    struct slice name = content_type;
    return take_token(&content_type, &name, "; \t") && slice_is_ignoring_case(name, type);
}

static bool find_boundary(struct slice content_type, struct slice *boundary_out)
{
    struct slice name, value;
    take_token(&content_type, &name, "; \t");
    while (next_parameter(&content_type, &name, &value))
        if (slice_is_ignoring_case(name, "boundary")) {
            *boundary_out = value;
            return value.size > 0;
        }
    return false;
}

bool multipart_begin(struct multipart *multipart, struct slice content_type, struct slice body,
                     struct error *err)
{
    *multipart = (struct multipart){0};
    if (!find_boundary(content_type, &multipart->boundary))
        return error_set(err, "Content-Type: multipart/form-data without a boundary");
    if (multipart->boundary.size > MULTIPART_BOUNDARY_MAX_BYTES)
        return error_set(err, "Content-Type: a boundary has at most %d bytes",
                         MULTIPART_BOUNDARY_MAX_BYTES);
    size_t preamble;
    if (find_delimiter(multipart, body, &preamble) == MULTIPART_BROKEN)
        return error_set(err, "the boundary of the Content-Type is not in the body");
    return true;
}

/* ---- a part ---- */

static void read_disposition(struct slice value, struct multipart_part *part)
{
    struct slice kind, name, parameter;
    if (!take_token(&value, &kind, "; \t") || !slice_is_ignoring_case(kind, "form-data"))
        return;
    while (next_parameter(&value, &name, &parameter)) {
        if (slice_is_ignoring_case(name, "name"))
            part->name = parameter;
        else if (slice_is_ignoring_case(name, "filename") ||
                 slice_is_ignoring_case(name, "filename*"))
            part->is_file = parameter.size > 0;
    }
}

static bool changes_nothing(struct slice encoding)
{
    return slice_is_ignoring_case(encoding, "binary") || slice_is_ignoring_case(encoding, "8bit") ||
           slice_is_ignoring_case(encoding, "7bit");
}

static bool read_header(struct slice line, struct multipart_part *part, struct error *err)
{
    struct slice name;
    if (!take_token(&line, &name, ": \t") || !slice_begins_with(line, SLICE(":")))
        return error_set(err, "a header line without a colon");
    struct slice value = skip_blanks(from(line, 1));
    while (value.size > 0 && is_blank(value.data[value.size - 1]))
        value.size--;
    if (slice_is_ignoring_case(name, "content-disposition"))
        read_disposition(value, part);
    else if (slice_is_ignoring_case(name, "content-transfer-encoding") && !changes_nothing(value))
        return error_set(err, "Content-Transfer-Encoding \"%.*s\" is not understood",
                         (int)(value.size > 32 ? 32 : value.size), (const char *)value.data);
    return true;
}

/* Reads header lines up to an empty line. */
static bool read_head(struct slice *text, struct multipart_part *part, struct error *err)
{
    size_t limit = text->size < MULTIPART_HEAD_MAX_BYTES ? text->size : MULTIPART_HEAD_MAX_BYTES;
    for (size_t start = 0; start < limit;) {
        const uint8_t *end = memmem(text->data + start, limit - start, "\r\n", 2);
        if (!end)
            break;
        size_t size = (size_t)(end - text->data) - start;
        struct slice line = slice_of(text->data + start, size);
        start += size + 2;
        if (size == 0) {
            *text = from(*text, start);
            return true;
        }
        if (!read_header(line, part, err))
            return false;
    }
    return error_set(err, "its headers are longer than %d bytes", MULTIPART_HEAD_MAX_BYTES);
}

enum multipart_result multipart_next(struct multipart *multipart, struct multipart_part *part,
                                     struct error *err)
{
    *part = (struct multipart_part){0};
    if (!multipart->rest.data)
        return MULTIPART_END;
    unsigned number = ++multipart->part_count;
    if (number > MULTIPART_PARTS_MAX) {
        error_set(err, "the form has more than %d parts", MULTIPART_PARTS_MAX);
        return MULTIPART_BROKEN;
    }
    struct slice text = multipart->rest;
    if (!read_head(&text, part, err)) {
        error_prefix(err, "part %u", number);
        return MULTIPART_BROKEN;
    }
    part->body.data = text.data;
    if (find_delimiter(multipart, text, &part->body.size) != MULTIPART_BROKEN)
        return MULTIPART_PART;
    error_set(err, "part %u: the body ends before the part's delimiter", number);
    return MULTIPART_BROKEN;
}
