#include "core/data/describe.h"

#include "core/base/memory.h"
#include "core/data/json.h"

#include <assert.h>
#include <inttypes.h>
#include <time.h>

/* Begins the text of a request. Until end_text, text_is_full applies to the share of this
 * request. */
static void begin_text(struct message *root, struct text *out)
{
    assert(out->limit == 0); /* one request at a time */
    size_t size = message_measure(root);
    size_t more = size < DESCRIBE_MAX_BYTES ? DESCRIBE_TIMES * size + DESCRIBE_MORE_BYTES
                                            : DESCRIBE_MAX_BYTES;
    size_t limit = out->size + more;
    out->limit = limit < DESCRIBE_MAX_BYTES ? limit : DESCRIBE_MAX_BYTES;
}

/* Counts the fields `numbers[depth - 1]` in nested messages. Nothing is printed, so this is
 * fast. */
static uint32_t count_below(struct message_iter it, const uint32_t *numbers, uint32_t depth)
{
    struct message_field field;
    uint32_t count = 0;
    while (message_next_bytes(&it, numbers[0], &field))
        count +=
            depth == 0 ? 1 : count_below(message_iter_into(&field, NULL), numbers + 1, depth - 1);
    return count;
}

/* Ends the text of a request. shown: number of items printed completely. */
static void end_text(struct message *root, const uint32_t *numbers, uint32_t depth,
                     const char *items, uint32_t shown, struct text *out)
{
    if (text_is_full(out)) {
        uint32_t total = count_below(message_iter(root, NULL), numbers, depth);
        assert(shown <= total);
        text_append(out, out->data[out->size - 1] == '\n' ? "" : "\n");
        text_printf(out, "... %" PRIu32 " of %" PRIu32 " %s are truncated or not shown\n",
                    total - shown, total, items);
    }
    out->limit = 0;
}

uint32_t describe_count(struct message *root)
{
    uint32_t count = 0;
    struct message_iter it = message_iter(root, NULL);
    struct message_field field;
    while (message_next_bytes(&it, TRACES_RESOURCE_SPANS,
                              &field)) /* the number is the same for both signals */
        count++;
    return count;
}

static struct message_field last_field(struct message_iter it, uint32_t number, enum wire_type type)
{
    struct message_field found = {0}, field;
    while (message_next(&it, &field))
        if (field.wire.number == number && field.wire.type == type)
            found = field;
    return found;
}

/* Returns an iterator into the last sub-message with this number; an empty one if there is none. */
static struct message_iter message_field(struct message_iter it, uint32_t number)
{
    struct message_field found = last_field(it, number, WIRE_BYTES);
    return found.wire.start ? message_iter_into(&found, NULL)
                            : message_iter_bytes((struct slice){0});
}

static struct slice string_field(struct message_iter it, uint32_t number)
{
    return last_field(it, number, WIRE_BYTES).wire.bytes;
}

static uint64_t number_field(struct message_iter it, uint32_t number, enum wire_type type)
{
    return last_field(it, number, type).wire.value;
}

/* ---- values ---- */

/* Prints a number, ten times as fast as printf. Most printed values are numbers. */
static void print_number(struct text *out, int64_t value)
{
    enum { DIGITS_MAX = 20 };
    char digits[DIGITS_MAX];
    char *start =
        text_write_u64(digits + sizeof digits, value < 0 ? -(uint64_t)value : (uint64_t)value);
    if (value < 0)
        *--start = '-';
    text_append_slice(out, slice_of(start, (size_t)(digits + sizeof digits - start)));
}

static void print_number_line(struct text *out, const char *before, int64_t value)
{
    text_append(out, before);
    print_number(out, value);
    text_append_char(out, '\n');
}

/* Writes `count` digits, with leading zeros. */
static char *put_digits(char *to, unsigned value, unsigned count)
{
    for (unsigned i = count; i-- > 0; value /= 10)
        to[i] = (char)('0' + value % 10);
    return to + count;
}

/* Prints 2026-01-01 00:00:00.000000000 +0000 UTC. 64 bits of nanoseconds reach the year 2554. */
static void print_time(struct text *out, uint64_t unix_ns)
{
    enum { NS_PER_S = 1000000000, YEAR_0 = 1900 };
    time_t seconds = (time_t)(unix_ns / NS_PER_S);
    struct tm tm;
    if (!gmtime_r(&seconds, &tm)) {
        text_printf(out, "%" PRIu64, unix_ns);
        return;
    }
    const struct {
        unsigned value, count;
        char behind;
    } parts[] = {{(unsigned)tm.tm_year + YEAR_0, 4, '-'}, {(unsigned)tm.tm_mon + 1, 2, '-'},
                 {(unsigned)tm.tm_mday, 2, ' '},          {(unsigned)tm.tm_hour, 2, ':'},
                 {(unsigned)tm.tm_min, 2, ':'},           {(unsigned)tm.tm_sec, 2, '.'},
                 {(unsigned)(unix_ns % NS_PER_S), 9, ' '}};
    char text[40], *to = text;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        to = put_digits(to, parts[i].value, parts[i].count);
        *to++ = parts[i].behind;
    }
    text_append_slice(out, slice_of(text, (size_t)(to - text)));
    text_append(out, "+0000 UTC");
}

static void print_any_value(struct text *out, struct slice any, bool nested);

static void print_array(struct text *out, struct slice array)
{
    struct wire_cursor cursor = wire_cursor(array);
    struct wire_field field;
    const char *separator = "";
    text_append_char(out, '[');
    while (!text_is_full(out) && wire_next_bytes(&cursor, ARRAY_VALUE_VALUES, &field)) {
        text_append(out, separator);
        print_any_value(out, field.bytes, true);
        separator = ",";
    }
    text_append_char(out, ']');
}

static void print_kvlist(struct text *out, struct slice list)
{
    struct wire_cursor cursor = wire_cursor(list);
    struct wire_field field;
    const char *separator = "";
    text_append_char(out, '{');
    while (!text_is_full(out) && wire_next_bytes(&cursor, KEY_VALUE_LIST_VALUES, &field)) {
        struct key_value pair = key_value_read(field.bytes);
        text_append(out, separator);
        text_append_char(out, '"');
        text_append_json(out, pair.key);
        text_append(out, "\":");
        print_any_value(out, pair.value, true);
        separator = ",";
    }
    text_append_char(out, '}');
}

static void print_string(struct text *out, struct slice string, bool nested)
{
    if (nested)
        text_append_char(out, '"');
    text_append_json(out, string);
    if (nested)
        text_append_char(out, '"');
}

/* Prints a value without its type, as in `k=v` and inside lists and maps. */
static void print_any_value(struct text *out, struct slice any, bool nested)
{
    struct any_value value = any_value_read(any);
    switch (value.kind) {
    case ANY_VALUE_STRING:
        print_string(out, value.bytes, nested);
        break;
    case ANY_VALUE_BOOL:
        text_append(out, value.truth ? "true" : "false");
        break;
    case ANY_VALUE_INT:
        print_number(out, value.integer);
        break;
    case ANY_VALUE_DOUBLE:
        json_print_double(out, value.real);
        break;
    case ANY_VALUE_ARRAY:
        print_array(out, value.bytes);
        break;
    case ANY_VALUE_KVLIST:
        print_kvlist(out, value.bytes);
        break;
    case ANY_VALUE_BYTES:
        text_append_hex(out, value.bytes);
        break;
    default:
        if (nested)
            text_append(out, "null");
    }
}

static const char *any_value_type(struct slice any)
{
    static const char *const types[] = {"Empty",  "Str",   "Bool", "Int",
                                        "Double", "Slice", "Map",  "Bytes"};
    uint32_t kind = any_value_read(any).kind;
    assert(kind < sizeof types / sizeof types[0]);
    return types[kind];
}

/* `     -> key: Str(value)` on a line, or ` key=value`. */
static void print_attribute(struct text *out, enum describe_detail detail, const char *indent,
                            struct slice key, struct slice value, struct slice unit)
{
    if (detail == DESCRIBE_NORMAL) {
        text_append_char(out, ' ');
        text_append_json(out, key);
        text_append_char(out, '=');
        print_any_value(out, value, false);
        return;
    }
    text_append(out, indent);
    text_append(out, "     -> ");
    text_append_json(out, key);
    text_append(out, ": ");
    text_append(out, any_value_type(value));
    text_append_char(out, '(');
    print_any_value(out, value, false);
    text_append_char(out, ')');
    if (unit.size > 0) {
        text_append_char(out, ' ');
        text_append_json(out, unit);
    }
    text_append_char(out, '\n');
}

static void print_attributes(struct text *out, enum describe_detail detail, const char *indent,
                             const char *title, struct message_iter it, uint32_t number)
{
    struct message_field field;
    bool any = false;
    while (!text_is_full(out) && message_next_bytes(&it, number, &field)) {
        struct key_value pair = key_value_read(field.wire.bytes);
        if (!any && detail == DESCRIBE_DETAILED)
            text_printf(out, "%s:\n", title);
        any = true;
        print_attribute(out, detail, indent, pair.key, pair.value, (struct slice){0});
    }
}

/* `    Name           : value` */
static void print_label(struct text *out, const char *indent, const char *name)
{
    enum { MARGIN = 4, NAME_WIDTH = 15, INDENT_MAX = 8 };
    char label[INDENT_MAX + MARGIN + NAME_WIDTH + 2];
    size_t indented = strlen(indent), size = strlen(name);
    assert(indented <= INDENT_MAX && size <= NAME_WIDTH);
    memset(label, ' ', sizeof label); /* indents consist of blanks */
    for (size_t i = 0; i < size; i++)
        label[indented + MARGIN + i] = name[i];
    label[indented + MARGIN + NAME_WIDTH] = ':';
    text_append_slice(out, slice_of(label, indented + MARGIN + NAME_WIDTH + 2));
}

static void print_word_line(struct text *out, const char *name, const char *word)
{
    print_label(out, "", name);
    text_append(out, word);
    text_append_char(out, '\n');
}

static void print_string_line(struct text *out, const char *indent, const char *name,
                              struct slice value)
{
    print_label(out, indent, name);
    text_append_json(out, value);
    text_append_char(out, '\n');
}

static void print_id_line(struct text *out, const char *indent, const char *name, struct slice id)
{
    print_label(out, indent, name);
    text_append_hex(out, id);
    text_append_char(out, '\n');
}

static void print_time_line(struct text *out, const char *indent, const char *name,
                            uint64_t unix_ns)
{
    print_label(out, indent, name);
    print_time(out, unix_ns);
    text_append_char(out, '\n');
}

/* ---- what both signals share: resource and scope stand in fields 1, schema_url in fields 3 ----
 */

static void print_resource(struct text *out, enum describe_detail detail, const char *kind,
                           uint32_t index, struct message_iter it)
{
    struct slice schema = string_field(it, RESOURCE_SPANS_SCHEMA_URL);
    struct message_iter resource = message_field(it, RESOURCE_SPANS_RESOURCE);
    text_printf(out, "Resource%s #%" PRIu32, kind, index);
    if (detail == DESCRIBE_DETAILED) {
        text_append(out, "\nResource SchemaURL: ");
        text_append_json(out, schema);
        text_append_char(out, '\n');
    } else if (schema.size > 0) {
        text_append(out, " [");
        text_append_json(out, schema);
        text_append_char(out, ']');
    }
    print_attributes(out, detail, "", "Resource attributes", resource, RESOURCE_ATTRIBUTES);
    if (detail == DESCRIBE_NORMAL)
        text_append_char(out, '\n');
}

static void print_scope_name(struct text *out, struct message_iter scope, const char *separator)
{
    struct slice name = string_field(scope, SCOPE_NAME);
    struct slice version = string_field(scope, SCOPE_VERSION);
    text_append_char(out, ' ');
    text_append_json(out, name);
    if (version.size > 0) {
        text_append(out, separator);
        text_append_json(out, version);
    }
}

static void print_scope(struct text *out, enum describe_detail detail, const char *kind,
                        uint32_t index, struct message_iter it)
{
    struct slice schema = string_field(it, SCOPE_SPANS_SCHEMA_URL);
    struct message_iter scope = message_field(it, SCOPE_SPANS_SCOPE);
    text_printf(out, "Scope%s #%" PRIu32, kind, index);
    if (detail == DESCRIBE_DETAILED) {
        text_printf(out, "\nScope%s SchemaURL: ", kind);
        text_append_json(out, schema);
        text_append(out, "\nInstrumentationScope");
        print_scope_name(out, scope, " ");
        text_append_char(out, '\n');
    } else {
        print_scope_name(out, scope, "@");
        if (schema.size > 0) {
            text_append(out, " [");
            text_append_json(out, schema);
            text_append_char(out, ']');
        }
    }
    print_attributes(out, detail, "", "InstrumentationScope attributes", scope, SCOPE_ATTRIBUTES);
    if (detail == DESCRIBE_NORMAL)
        text_append_char(out, '\n');
}

/* ---- traces ---- */

static const char *span_kind_name(uint64_t kind)
{
    static const char *const names[] = {"Unspecified", "Internal", "Server",
                                        "Client",      "Producer", "Consumer"};
    return kind < sizeof names / sizeof names[0] ? names[kind] : "Unknown";
}

static const char *status_code_name(uint64_t code)
{
    static const char *const names[] = {"Unset", "Ok", "Error"};
    return code < sizeof names / sizeof names[0] ? names[code] : "Unknown";
}

static void print_span_normal(struct text *out, struct message_iter it)
{
    text_append_json(out, string_field(it, SPAN_NAME));
    text_append_char(out, ' ');
    text_append_hex(out, string_field(it, SPAN_TRACE_ID));
    text_append_char(out, ' ');
    text_append_hex(out, string_field(it, SPAN_SPAN_ID));
    print_attributes(out, DESCRIBE_NORMAL, "", "", it, SPAN_ATTRIBUTES);
    text_append_char(out, '\n');
}

static void print_event(struct text *out, uint32_t index, struct message_iter it)
{
    text_printf(out, "SpanEvent #%" PRIu32 "\n     -> Name: ", index);
    text_append_json(out, string_field(it, EVENT_NAME));
    text_append(out, "\n     -> Timestamp: ");
    print_time(out, number_field(it, EVENT_TIME_UNIX_NANO, WIRE_FIXED64));
    text_printf(out, "\n     -> DroppedAttributesCount: %" PRIu64 "\n",
                number_field(it, EVENT_DROPPED_ATTRIBUTES_COUNT, WIRE_VARINT));
    print_attributes(out, DESCRIBE_DETAILED, "    ", "     -> Attributes", it, EVENT_ATTRIBUTES);
}

static void print_span_link(struct text *out, uint32_t index, struct message_iter it)
{
    text_printf(out, "SpanLink #%" PRIu32 "\n     -> Trace ID: ", index);
    text_append_hex(out, string_field(it, SPAN_LINK_TRACE_ID));
    text_append(out, "\n     -> ID: ");
    text_append_hex(out, string_field(it, SPAN_LINK_SPAN_ID));
    text_append(out, "\n     -> TraceState: ");
    text_append_json(out, string_field(it, SPAN_LINK_TRACE_STATE));
    text_printf(out, "\n     -> DroppedAttributesCount: %" PRIu64 "\n",
                number_field(it, SPAN_LINK_DROPPED_ATTRIBUTES_COUNT, WIRE_VARINT));
    print_attributes(out, DESCRIBE_DETAILED, "    ", "     -> Attributes", it,
                     SPAN_LINK_ATTRIBUTES);
}

static void print_span_parts(struct text *out, const char *title, struct message_iter it,
                             uint32_t number,
                             void (*print)(struct text *, uint32_t, struct message_iter))
{
    struct message_field field;
    uint32_t index = 0;
    while (!text_is_full(out) && message_next_bytes(&it, number, &field)) {
        if (index == 0)
            text_printf(out, "%s:\n", title);
        print(out, index++, message_iter_into(&field, NULL));
    }
}

static void print_span_detailed(struct text *out, uint32_t index, struct message_iter it)
{
    struct message_iter status = message_field(it, SPAN_STATUS);
    struct slice trace_state = string_field(it, SPAN_TRACE_STATE);
    print_number_line(out, "Span #", index);
    print_id_line(out, "", "Trace ID", string_field(it, SPAN_TRACE_ID));
    print_id_line(out, "", "Parent ID", string_field(it, SPAN_PARENT_SPAN_ID));
    print_id_line(out, "", "ID", string_field(it, SPAN_SPAN_ID));
    print_string_line(out, "", "Name", string_field(it, SPAN_NAME));
    print_word_line(out, "Kind", span_kind_name(number_field(it, SPAN_KIND, WIRE_VARINT)));
    if (trace_state.size > 0)
        print_string_line(out, "", "TraceState", trace_state);
    print_time_line(out, "", "Start time",
                    number_field(it, SPAN_START_TIME_UNIX_NANO, WIRE_FIXED64));
    print_time_line(out, "", "End time", number_field(it, SPAN_END_TIME_UNIX_NANO, WIRE_FIXED64));
    print_word_line(out, "Status code",
                    status_code_name(number_field(status, STATUS_CODE, WIRE_VARINT)));
    print_string_line(out, "", "Status message", string_field(status, STATUS_MESSAGE));
    print_attributes(out, DESCRIBE_DETAILED, "", "Attributes", it, SPAN_ATTRIBUTES);
    print_span_parts(out, "Events", it, SPAN_EVENTS, print_event);
    print_span_parts(out, "Links", it, SPAN_LINKS, print_span_link);
}

/* Prints spans, and returns how many were printed completely. */
static uint32_t print_spans(struct text *out, enum describe_detail detail, struct message_iter it)
{
    struct message_field field;
    uint32_t index = 0, shown = 0;
    while (!text_is_full(out) && message_next_bytes(&it, SCOPE_SPANS_SPANS, &field)) {
        struct message_iter span = message_iter_into(&field, NULL);
        if (detail == DESCRIBE_DETAILED)
            print_span_detailed(out, index++, span);
        else
            print_span_normal(out, span);
        shown += !text_is_full(out);
    }
    return shown;
}

static const uint32_t to_spans[] = {TRACES_RESOURCE_SPANS, RESOURCE_SPANS_SCOPE_SPANS,
                                    SCOPE_SPANS_SPANS};

void describe_traces(struct message *root, enum describe_detail detail, uint32_t first,
                     struct text *out)
{
    struct message_iter it = message_iter(root, NULL);
    struct message_field group, scope;
    uint32_t shown = 0;
    begin_text(root, out);
    while (!text_is_full(out) && message_next_bytes(&it, TRACES_RESOURCE_SPANS, &group)) {
        struct message_iter scopes = message_iter_into(&group, NULL);
        uint32_t scope_index = 0;
        print_resource(out, detail, "Spans", first++, scopes);
        while (!text_is_full(out) &&
               message_next_bytes(&scopes, RESOURCE_SPANS_SCOPE_SPANS, &scope)) {
            print_scope(out, detail, "Spans", scope_index++, message_iter_into(&scope, NULL));
            shown += print_spans(out, detail, message_iter_into(&scope, NULL));
        }
    }
    end_text(root, to_spans, 2, "spans", shown, out);
}

/* ---- profiles ---- */

/* Entries of the dictionary that are printed for each reference. */
enum repeated {
    REPEATED_LOCATION,
    REPEATED_STACK,
    REPEATED_LINK,
    REPEATED_PROFILE_ATTRIBUTE,
    REPEATED_SAMPLE_ATTRIBUTE,
    REPEATED_COUNT
};
static const int repeated_tables[REPEATED_COUNT] = {
    [REPEATED_LOCATION] = DICTIONARY_LOCATION_TABLE,
    [REPEATED_STACK] = DICTIONARY_STACK_TABLE,
    [REPEATED_LINK] = DICTIONARY_LINK_TABLE,
    [REPEATED_PROFILE_ATTRIBUTE] = DICTIONARY_ATTRIBUTE_TABLE,
    [REPEATED_SAMPLE_ATTRIBUTE] = DICTIONARY_ATTRIBUTE_TABLE,
};

/* The position of a printed entry in the text; size 0: not printed yet. */
struct printed {
    uint32_t start, size;
};

struct profile_printer {
    struct text *out;
    struct dictionary *dictionary;
    enum describe_detail detail;
    uint32_t shown; /* number of samples printed completely; without details, of profiles */
    struct printed *printed[REPEATED_COUNT]; /* by index; NULL: none yet */
};

/* Returns where an entry was printed. It is printed once and then copied, because printing takes a
 * hundred times as long. */
static struct printed *printed_of(struct profile_printer *printer, enum repeated what,
                                  uint32_t index)
{
    uint32_t count = dictionary_count(printer->dictionary, repeated_tables[what]) + 1;
    if (!printer->printed[what])
        printer->printed[what] = memory_zalloc(count * sizeof(struct printed));
    assert(index < count);
    return &printer->printed[what][index];
}

/* Copies an entry that was printed before. Returns false if it was not. */
static bool print_again(struct profile_printer *printer, const struct printed *printed)
{
    struct text *out = printer->out;
    size_t left = out->limit + 1 - out->size;
    if (printed->size > 0)
        text_append_again(out, printed->start, printed->size < left ? printed->size : left);
    return printed->size > 0;
}

static void note_printed(const struct profile_printer *printer, struct printed *printed,
                         size_t start)
{
    *printed = (struct printed){(uint32_t)start, (uint32_t)(printer->out->size - start)};
}

/* Iterates over the numbers of a repeated varint or fixed64 field, packed or not. */
struct number_iter {
    struct message_iter fields;
    struct wire_cursor packed;
    uint32_t number;
    bool fixed;
};

static struct number_iter number_iter(struct message_iter fields, uint32_t number, bool fixed)
{
    return (struct number_iter){.fields = fields, .number = number, .fixed = fixed};
}

static bool next_number(struct number_iter *it, uint64_t *out)
{
    for (;;) {
        if (it->packed.next < it->packed.end)
            return it->fixed ? wire_packed_fixed64(&it->packed, out)
                             : wire_packed_varint(&it->packed, out);
        struct message_field field;
        if (!message_next(&it->fields, &field))
            return false;
        if (field.wire.number != it->number)
            continue;
        if (field.wire.type == WIRE_BYTES) {
            it->packed = wire_cursor(field.wire.bytes);
        } else {
            *out = field.wire.value;
            return true;
        }
    }
}

static void print_attribute_of(struct profile_printer *printer, const char *indent,
                               struct printed *printed, uint32_t index)
{
    struct dictionary *dictionary = printer->dictionary;
    struct key_value_and_unit attribute = dictionary_attribute(dictionary, index);
    size_t start = printer->out->size;
    print_attribute(printer->out, printer->detail, indent,
                    dictionary_string(dictionary, attribute.key), attribute.value,
                    dictionary_string(dictionary, attribute.unit));
    note_printed(printer, printed, start);
}

static void print_indexed_attributes(struct profile_printer *printer, enum repeated what,
                                     struct message_iter it, uint32_t number)
{
    const char *indent = what == REPEATED_SAMPLE_ATTRIBUTE ? "    " : "";
    struct number_iter indices = number_iter(it, number, false);
    uint64_t index;
    bool any = false;
    while (!text_is_full(printer->out) && next_number(&indices, &index)) {
        assert(index <= UINT32_MAX); /* the scan has checked all indices */
        struct printed *printed = printed_of(printer, what, (uint32_t)index);
        if (!any && printer->detail == DESCRIBE_DETAILED)
            text_printf(printer->out, "%s    Attributes:\n", indent);
        any = true;
        if (!print_again(printer, printed))
            print_attribute_of(printer, indent, printed, (uint32_t)index);
    }
}

static void print_dictionary_string(struct profile_printer *printer, uint64_t index)
{
    text_append_json(printer->out, dictionary_string(printer->dictionary, (uint32_t)index));
}

static void print_value_type(struct profile_printer *printer, const char *name,
                             struct message_iter it, uint32_t number)
{
    struct message_iter type = message_field(it, number);
    print_label(printer->out, "", name);
    print_dictionary_string(printer, number_field(type, VALUE_TYPE_TYPE_STRINDEX, WIRE_VARINT));
    text_append_char(printer->out, ' ');
    print_dictionary_string(printer, number_field(type, VALUE_TYPE_UNIT_STRINDEX, WIRE_VARINT));
    text_append_char(printer->out, '\n');
}

static void print_line(struct profile_printer *printer, struct message_iter line,
                       struct slice binary)
{
    struct message_iter function = message_iter_bytes(
        dictionary_entry(printer->dictionary, DICTIONARY_FUNCTION_TABLE,
                         (uint32_t)number_field(line, LINE_FUNCTION_INDEX, WIRE_VARINT)));
    uint64_t name = number_field(function, FUNCTION_NAME_STRINDEX, WIRE_VARINT);
    uint64_t file = number_field(function, FUNCTION_FILENAME_STRINDEX, WIRE_VARINT);
    if (name == 0)
        name = number_field(function, FUNCTION_SYSTEM_NAME_STRINDEX, WIRE_VARINT);
    text_append(printer->out, "             ");
    print_dictionary_string(printer, name);
    if (file != 0) {
        text_append_char(printer->out, ' ');
        print_dictionary_string(printer, file);
        text_printf(printer->out, ":%" PRId64, (int64_t)number_field(line, LINE_LINE, WIRE_VARINT));
    }
    if (binary.size > 0) {
        text_append(printer->out, " (");
        text_append_json(printer->out, binary);
        text_append_char(printer->out, ')');
    }
    text_append_char(printer->out, '\n');
}

static void print_location_of(struct profile_printer *printer, uint32_t index)
{
    struct message_iter location =
        message_iter_bytes(dictionary_entry(printer->dictionary, DICTIONARY_LOCATION_TABLE, index));
    struct message_iter mapping = message_iter_bytes(
        dictionary_entry(printer->dictionary, DICTIONARY_MAPPING_TABLE,
                         (uint32_t)number_field(location, LOCATION_MAPPING_INDEX, WIRE_VARINT)));
    struct slice binary =
        dictionary_string(printer->dictionary,
                          (uint32_t)number_field(mapping, MAPPING_FILENAME_STRINDEX, WIRE_VARINT));
    uint64_t address = number_field(location, LOCATION_ADDRESS, WIRE_VARINT);
    struct message_field field;
    bool any = false;
    while (!text_is_full(printer->out) && message_next_bytes(&location, LOCATION_LINES, &field)) {
        print_line(printer, message_iter_into(&field, NULL), binary);
        any = true;
    }
    if (any)
        return;
    text_printf(printer->out, "             0x%" PRIx64, address);
    if (binary.size > 0) {
        text_append(printer->out, " (");
        text_append_json(printer->out, binary);
        text_append_char(printer->out, ')');
    }
    text_append_char(printer->out, '\n');
}

static void print_location(struct profile_printer *printer, uint32_t index)
{
    struct printed *printed = printed_of(printer, REPEATED_LOCATION, index);
    size_t start = printer->out->size;
    if (print_again(printer, printed))
        return;
    print_location_of(printer, index);
    note_printed(printer, printed, start);
}

static void print_stack(struct profile_printer *printer, uint32_t index)
{
    struct number_iter locations = number_iter(
        message_iter_bytes(dictionary_entry(printer->dictionary, DICTIONARY_STACK_TABLE, index)),
        STACK_LOCATION_INDICES, false);
    struct printed *printed = printed_of(printer, REPEATED_STACK, index);
    size_t start = printer->out->size;
    uint64_t location;
    if (print_again(printer, printed))
        return;
    text_append(printer->out, "        Stack (leaf first):\n");
    while (!text_is_full(printer->out) && next_number(&locations, &location))
        print_location(printer, (uint32_t)location);
    note_printed(printer, printed, start);
}

static void print_link(struct profile_printer *printer, uint32_t index)
{
    struct printed *printed = printed_of(printer, REPEATED_LINK, index);
    size_t start = printer->out->size;
    if (print_again(printer, printed))
        return;
    struct dictionary_link link = dictionary_link(printer->dictionary, index);
    print_id_line(printer->out, "    ", "Trace ID", link.trace_id);
    print_id_line(printer->out, "    ", "Span ID", link.span_id);
    note_printed(printer, printed, start);
}

static void print_numbers(struct profile_printer *printer, const char *name, struct message_iter it,
                          uint32_t number, bool times)
{
    struct number_iter numbers = number_iter(it, number, times);
    uint64_t value;
    bool any = false;
    while (!text_is_full(printer->out) && next_number(&numbers, &value)) {
        if (!any)
            print_label(printer->out, "    ", name);
        else
            text_append(printer->out, ", ");
        any = true;
        if (times)
            print_time(printer->out, value);
        else
            print_number(printer->out, (int64_t)value);
    }
    if (any)
        text_append_char(printer->out, '\n');
}

static void print_sample(struct profile_printer *printer, uint32_t index, struct message_iter it)
{
    uint64_t link = number_field(it, SAMPLE_LINK_INDEX, WIRE_VARINT);
    uint64_t stack = number_field(it, SAMPLE_STACK_INDEX, WIRE_VARINT);
    print_number_line(printer->out, "    Sample #", index);
    print_numbers(printer, "Values", it, SAMPLE_VALUES, false);
    print_numbers(printer, "Timestamps", it, SAMPLE_TIMESTAMPS_UNIX_NANO, true);
    if (link != 0)
        print_link(printer, (uint32_t)link);
    print_indexed_attributes(printer, REPEATED_SAMPLE_ATTRIBUTE, it, SAMPLE_ATTRIBUTE_INDICES);
    if (stack != 0)
        print_stack(printer, (uint32_t)stack);
}

static void print_samples(struct profile_printer *printer, struct message_iter it)
{
    struct message_field field;
    uint32_t index = 0;
    while (!text_is_full(printer->out) && message_next_bytes(&it, PROFILE_SAMPLES, &field)) {
        print_sample(printer, index++, message_iter_into(&field, NULL));
        printer->shown += !text_is_full(printer->out);
    }
}

static uint32_t count_fields(struct message_iter it, uint32_t number)
{
    struct message_field field;
    uint32_t count = 0;
    while (message_next_bytes(&it, number, &field))
        count++;
    return count;
}

static void print_duration(struct text *out, uint64_t ns)
{
    if (ns == 0)
        text_append(out, "0s\n");
    else
        text_printf(out, "%.9gs\n", (double)ns / 1e9);
}

static void print_profile_detailed(struct profile_printer *printer, uint32_t index,
                                   struct message_iter it)
{
    struct text *out = printer->out;
    struct slice format = string_field(it, PROFILE_ORIGINAL_PAYLOAD_FORMAT);
    print_number_line(out, "Profile #", index);
    print_id_line(out, "", "Profile ID", string_field(it, PROFILE_PROFILE_ID));
    print_time_line(out, "", "Start time", number_field(it, PROFILE_TIME_UNIX_NANO, WIRE_FIXED64));
    print_label(out, "", "Duration");
    print_duration(out, number_field(it, PROFILE_DURATION_NANO, WIRE_VARINT));
    print_value_type(printer, "Sample type", it, PROFILE_SAMPLE_TYPE);
    print_value_type(printer, "Period type", it, PROFILE_PERIOD_TYPE);
    print_label(out, "", "Period");
    print_number_line(out, "", (int64_t)number_field(it, PROFILE_PERIOD, WIRE_VARINT));
    print_label(out, "", "Dropped attrs");
    print_number_line(out, "",
                      (int64_t)number_field(it, PROFILE_DROPPED_ATTRIBUTES_COUNT, WIRE_VARINT));
    if (format.size > 0)
        print_string_line(out, "", "Original format", format);
    print_indexed_attributes(printer, REPEATED_PROFILE_ATTRIBUTE, it, PROFILE_ATTRIBUTE_INDICES);
    print_samples(printer, it);
}

static void print_profiles(struct profile_printer *printer, struct message_iter it)
{
    struct message_field field;
    uint32_t index = 0;
    while (!text_is_full(printer->out) &&
           message_next_bytes(&it, SCOPE_PROFILES_PROFILES, &field)) {
        struct message_iter profile = message_iter_into(&field, NULL);
        if (printer->detail == DESCRIBE_DETAILED) {
            print_profile_detailed(printer, index++, profile);
            continue;
        }
        text_append_hex(printer->out, string_field(profile, PROFILE_PROFILE_ID));
        text_printf(printer->out, " samples=%" PRIu32, count_fields(profile, PROFILE_SAMPLES));
        print_indexed_attributes(printer, REPEATED_PROFILE_ATTRIBUTE, profile,
                                 PROFILE_ATTRIBUTE_INDICES);
        text_append_char(printer->out, '\n');
        printer->shown += !text_is_full(printer->out);
    }
}

static const uint32_t to_samples[] = {PROFILES_RESOURCE_PROFILES, RESOURCE_PROFILES_SCOPE_PROFILES,
                                      SCOPE_PROFILES_PROFILES, PROFILE_SAMPLES};

void describe_profiles(struct message *root, struct dictionary *dictionary,
                       enum describe_detail detail, struct text *out)
{
    struct profile_printer printer = {.out = out, .dictionary = dictionary, .detail = detail};
    struct message_iter it = message_iter(root, NULL);
    struct message_field group, scope;
    uint32_t index = 0;
    begin_text(root, out);
    while (!text_is_full(out) && message_next_bytes(&it, PROFILES_RESOURCE_PROFILES, &group)) {
        struct message_iter scopes = message_iter_into(&group, NULL);
        uint32_t scope_index = 0;
        print_resource(out, detail, "Profiles", index++, scopes);
        while (!text_is_full(out) &&
               message_next_bytes(&scopes, RESOURCE_PROFILES_SCOPE_PROFILES, &scope)) {
            print_scope(out, detail, "Profiles", scope_index++, message_iter_into(&scope, NULL));
            print_profiles(&printer, message_iter_into(&scope, NULL));
        }
    }
    bool is_detailed = detail == DESCRIBE_DETAILED;
    end_text(root, to_samples, is_detailed ? 3 : 2, is_detailed ? "samples" : "profiles",
             printer.shown, out);
    for (int i = 0; i < REPEATED_COUNT; i++)
        free(printer.printed[i]);
}
