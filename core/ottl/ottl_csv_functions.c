#include "core/ottl/ottl_entries.h"
#include "core/ottl/ottl_functions.h"

#include <assert.h>

/* ---- rows: RFC 4180 as Go's encoding/csv reads it ---- */

enum csv_mode { CSV_STRICT, CSV_LAZY_QUOTES, CSV_IGNORE_QUOTES, CSV_MODES };

static const char *const csv_modes[CSV_MODES] = {"strict", "lazyQuotes", "ignoreQuotes"};

struct csv {
    struct slice rest; /* what was not read yet */
    struct slice delimiter;
    enum csv_mode mode;
    struct text fields; /* one after the other */
    size_t *ends;       /* of each field */
    uint32_t count;     /* also of fields that have no place in ends */
    uint32_t capacity;
    bool failed; /* in this line */
};

/* Takes a line with its end, which becomes "\n"; the text may end without one. */
static struct slice take_line(struct csv *csv, bool *has_end_out)
{
    const uint8_t *end = csv->rest.size > 0 ? memchr(csv->rest.data, '\n', csv->rest.size) : NULL;
    *has_end_out = end != NULL;
    struct slice line =
        slice_of(csv->rest.data, end ? (size_t)(end - csv->rest.data) : csv->rest.size);
    size_t used = line.size + (end != NULL);
    csv->rest = slice_of(csv->rest.data + used, csv->rest.size - used);
    if (line.size > 0 && line.data[line.size - 1] == '\r')
        line.size--;
    return line;
}

static void end_field(struct csv *csv)
{
    if (csv->count < csv->capacity)
        csv->ends[csv->count] = csv->fields.size;
    csv->count++;
}

/* Whether the line begins with a text, which is taken. */
static bool accept(struct slice *line, struct slice text)
{
    if (line->size < text.size || memcmp(line->data, text.data, text.size) != 0)
        return false;
    *line = slice_of(line->data + text.size, line->size - text.size);
    return true;
}

/* Reads a field without quotes. Returns whether another one follows. */
static bool read_bare(struct csv *csv, struct slice *line)
{
    const uint8_t *found =
        line->size > 0 ? memmem(line->data, line->size, csv->delimiter.data, csv->delimiter.size)
                       : NULL;
    struct slice field = slice_of(line->data, found ? (size_t)(found - line->data) : line->size);
    if (csv->mode == CSV_STRICT && field.size > 0 && memchr(field.data, '"', field.size)) {
        csv->failed = true;
        return false;
    }
    text_append_slice(&csv->fields, field);
    end_field(csv);
    *line = slice_of(line->data + field.size, line->size - field.size);
    return found && accept(line, csv->delimiter);
}

/* After a quote in a field in quotes. Returns whether the field goes on; *more_out: another one
 * follows. */
static bool read_quote(struct csv *csv, struct slice *line, bool *more_out)
{
    *more_out = false;
    if (accept(line, SLICE("\""))) {
        text_append_char(&csv->fields, '"');
        return true;
    }
    *more_out = accept(line, csv->delimiter);
    if (*more_out || line->size == 0) {
        end_field(csv);
        return false;
    }
    text_append_char(&csv->fields, '"');
    csv->failed = csv->mode != CSV_LAZY_QUOTES;
    return !csv->failed;
}

/* Takes the next line into a field in quotes; false: there is none. */
static bool continue_field(struct csv *csv, struct slice *line, bool *has_end)
{
    if (*has_end)
        text_append_char(&csv->fields, '\n');
    if (csv->rest.size > 0) {
        *line = take_line(csv, has_end);
        return true;
    }
    if (csv->mode == CSV_LAZY_QUOTES)
        end_field(csv);
    csv->failed = csv->mode != CSV_LAZY_QUOTES;
    return false;
}

/* Reads a field after its first quote; it may go on in the next lines. Returns whether another
 * field follows. */
static bool read_quoted(struct csv *csv, struct slice *line, bool *has_end)
{
    bool more = false;
    for (;;) {
        const uint8_t *quote = line->size > 0 ? memchr(line->data, '"', line->size) : NULL;
        size_t size = quote ? (size_t)(quote - line->data) : line->size;
        text_append_slice(&csv->fields, slice_of(line->data, size));
        *line = slice_of(line->data + size, line->size - size);
        if (quote && accept(line, SLICE("\"")) && !read_quote(csv, line, &more))
            return more;
        if (!quote && !continue_field(csv, line, has_end))
            return false;
    }
}

/* What a line that failed has of its last field does not count. */
static void drop_unfinished(struct csv *csv)
{
    uint32_t last = csv->count < csv->capacity ? csv->count : csv->capacity;
    csv->fields.size = last > 0 ? csv->ends[last - 1] : 0;
}

/* The first field of another line goes on with the last one of the line before it. */
static void join_lines(struct csv *csv)
{
    if (csv->count == 0)
        return;
    csv->count--;
    text_append_char(&csv->fields, '\n');
}

/* Reads a record. Returns false if it has no field because it is not valid. */
static bool read_record(struct csv *csv)
{
    bool has_end, more = true;
    struct slice line = take_line(csv, &has_end);
    if (line.size == 0)
        return true; /* an empty line is none */
    join_lines(csv);
    uint32_t first = csv->count;
    csv->failed = false;
    while (more)
        more =
            accept(&line, SLICE("\"")) ? read_quoted(csv, &line, &has_end) : read_bare(csv, &line);
    if (csv->failed && csv->count > first)
        drop_unfinished(csv);
    return !csv->failed || csv->count > first;
}

static bool read_all(struct csv *csv, struct error *err)
{
    while (csv->rest.size > 0)
        if (!read_record(csv))
            return error_set(err,
                             "read csv line: a quote is missing, or in a field without quotes");
    return csv->count > 0 || error_set(err, "no csv lines found");
}

static void split_all(struct csv *csv)
{
    struct slice line = csv->rest;
    while (read_bare(csv, &line))
        ;
}

/* ---- ParseCSV ---- */

static bool is_character(struct slice text)
{
    return text.size > 0 && text_utf8_length(text.data, text.size) == text.size;
}

static struct slice literal(const struct ottl_node *node, uint32_t index, struct slice fallback)
{
    return node->operands[index] ? node->operands[index]->constant.bytes : fallback;
}

static enum csv_mode mode_of(const struct ottl_node *node)
{
    struct slice name = literal(node, 4, SLICE("strict"));
    enum csv_mode mode = CSV_STRICT;
    while (mode < CSV_MODES && !slice_is(name, csv_modes[mode]))
        mode++;
    return mode;
}

static bool check_csv(const struct ottl_node *node, struct error *err)
{
    struct slice delimiter = literal(node, 2, SLICE(","));
    if (!is_character(delimiter))
        return error_set(err, "invalid arguments: delimiter must be a single character");
    if (!is_character(literal(node, 3, SLICE(","))))
        return error_set(err, "invalid arguments: header_delimiter must be a single character");
    if (slice_is_one_of(delimiter.data[0], "\"\r\n") && mode_of(node) != CSV_IGNORE_QUOTES)
        return error_set(err, "invalid arguments: delimiter must not be a quote or a line end");
    return mode_of(node) < CSV_MODES ||
           error_set(err, "unknown mode; there are strict, lazyQuotes, ignoreQuotes");
}

/* Takes the next name of a header. Returns whether another one follows. */
static bool take_name(struct slice *header, struct slice delimiter, struct slice *name_out)
{
    const uint8_t *found = header->size > 0
                               ? memmem(header->data, header->size, delimiter.data, delimiter.size)
                               : NULL;
    *name_out = slice_of(header->data, found ? (size_t)(found - header->data) : header->size);
    size_t used = name_out->size + (found ? delimiter.size : 0);
    *header = slice_of(header->data + used, header->size - used);
    return found != NULL;
}

static uint32_t count_names(struct slice header, struct slice delimiter)
{
    struct slice name;
    uint32_t count = 1;
    while (take_name(&header, delimiter, &name))
        count++;
    return count;
}

static bool give_row(struct ottl_evaluation *evaluation, struct csv *csv, struct slice header,
                     struct slice delimiter, struct ottl_value *out)
{
    if (csv->count != csv->capacity)
        return error_set(ottl_evaluation_error(evaluation),
                         "wrong number of fields: expected %u, found %u", csv->capacity,
                         csv->count);
    struct ottl_entry *entries =
        ottl_evaluation_alloc(evaluation, ((size_t)csv->count + 1) * sizeof *entries);
    struct slice fields = ottl_evaluation_text(evaluation, &csv->fields);
    for (uint32_t i = 0; i < csv->count; i++) {
        size_t start = i > 0 ? csv->ends[i - 1] : 0;
        take_name(&header, delimiter, &entries[i].key);
        entries[i].value = ottl_string(slice_of(fields.data + start, csv->ends[i] - start));
    }
    *out = ottl_entries_value(OTTL_MAP, entries,
                              ottl_entries_keep_last(evaluation, entries, csv->count));
    return true;
}

static bool parse_csv(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                      struct ottl_value *out)
{
    struct csv csv = {.delimiter = literal(node, 2, SLICE(",")), .mode = mode_of(node)};
    struct slice header, delimiter = literal(node, 3, csv.delimiter);
    bool ok = true;
    if (!ottl_argument_string(evaluation, node, 0, &csv.rest) ||
        !ottl_argument_string(evaluation, node, 1, &header))
        return false;
    if (header.size == 0)
        return error_set(ottl_evaluation_error(evaluation), "headers must not be an empty string");
    csv.capacity = count_names(header, delimiter);
    csv.ends = ottl_evaluation_alloc(evaluation, csv.capacity * sizeof *csv.ends);
    if (csv.mode == CSV_IGNORE_QUOTES)
        split_all(&csv);
    else
        ok = read_all(&csv, ottl_evaluation_error(evaluation));
    ok = ok && give_row(evaluation, &csv, header, delimiter, out);
    text_deinit(&csv.fields);
    return ok;
}

const struct ottl_function ottl_csv_functions[] = {
    {.name = "ParseCSV",
     .parameters = {{"target", OTTL_PARAMETER_STRING, false},
                    {"header", OTTL_PARAMETER_STRING, false},
                    {"delimiter", OTTL_PARAMETER_LITERAL_STRING, true},
                    {"header_delimiter", OTTL_PARAMETER_LITERAL_STRING, true},
                    {"mode", OTTL_PARAMETER_LITERAL_STRING, true}},
     .call = parse_csv,
     .check = check_csv},
    {.name = NULL},
};
