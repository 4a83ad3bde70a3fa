#include "core/data/describe.h"

#include "core/data/json.h"

#include <assert.h>
#include <inttypes.h>
#include <time.h>

/* A stack is printed with every sample that has it, so a small request can ask for a very large
 * text. */
static bool is_full(const struct text *out)
{
    return out->size > DESCRIBE_MAX_BYTES;
}

static void end_text(struct text *out)
{
    if (is_full(out))
        text_append(out, "... and more, which is left out\n");
}

uint32_t describe_count(struct message *root)
{
    uint32_t count = 0;
    struct message_iter it = message_iter(root, NULL);
    struct message_field field;
    while (message_next_bytes(&it, TRACES_RESOURCE_SPANS, &field)) /* both signals' number */
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

/* Into the last sub-message with this number; empty when there is none. */
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

static void print_time(struct text *out, uint64_t unix_ns)
{
    time_t seconds = (time_t)(unix_ns / 1000000000);
    struct tm tm;
    char text[40];
    if (!gmtime_r(&seconds, &tm) || strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm) == 0) {
        text_printf(out, "%" PRIu64, unix_ns);
        return;
    }
    text_printf(out, "%s.%09u +0000 UTC", text, (unsigned)(unix_ns % 1000000000));
}

static void print_any_value(struct text *out, struct slice any, bool nested);

static void print_array(struct text *out, struct slice array)
{
    struct wire_cursor cursor = wire_cursor(array);
    struct wire_field field;
    const char *separator = "";
    text_append_char(out, '[');
    while (!is_full(out) && wire_next_bytes(&cursor, ARRAY_VALUE_VALUES, &field)) {
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
    while (!is_full(out) && wire_next_bytes(&cursor, KEY_VALUE_LIST_VALUES, &field)) {
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

/* Without its type: as in `k=v` and inside of lists and maps. */
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
        text_printf(out, "%" PRId64, value.integer);
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
    text_printf(out, "%s     -> ", indent);
    text_append_json(out, key);
    text_printf(out, ": %s(", any_value_type(value));
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
    while (!is_full(out) && message_next_bytes(&it, number, &field)) {
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
    text_printf(out, "%s    %-15s: ", indent, name);
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

/* Span.Event: time_unix_nano 1, name 2, attributes 3, dropped 4 */
static void print_event(struct text *out, uint32_t index, struct message_iter it)
{
    text_printf(out, "SpanEvent #%" PRIu32 "\n     -> Name: ", index);
    text_append_json(out, string_field(it, 2));
    text_append(out, "\n     -> Timestamp: ");
    print_time(out, number_field(it, 1, WIRE_FIXED64));
    text_printf(out, "\n     -> DroppedAttributesCount: %" PRIu64 "\n",
                number_field(it, 4, WIRE_VARINT));
    print_attributes(out, DESCRIBE_DETAILED, "    ", "     -> Attributes", it, 3);
}

/* Span.Link: trace_id 1, span_id 2, trace_state 3, attributes 4, dropped 5 */
static void print_span_link(struct text *out, uint32_t index, struct message_iter it)
{
    text_printf(out, "SpanLink #%" PRIu32 "\n     -> Trace ID: ", index);
    text_append_hex(out, string_field(it, 1));
    text_append(out, "\n     -> ID: ");
    text_append_hex(out, string_field(it, 2));
    text_append(out, "\n     -> TraceState: ");
    text_append_json(out, string_field(it, 3));
    text_printf(out, "\n     -> DroppedAttributesCount: %" PRIu64 "\n",
                number_field(it, 5, WIRE_VARINT));
    print_attributes(out, DESCRIBE_DETAILED, "    ", "     -> Attributes", it, 4);
}

static void print_span_parts(struct text *out, const char *title, struct message_iter it,
                             uint32_t number,
                             void (*print)(struct text *, uint32_t, struct message_iter))
{
    struct message_field field;
    uint32_t index = 0;
    while (!is_full(out) && message_next_bytes(&it, number, &field)) {
        if (index == 0)
            text_printf(out, "%s:\n", title);
        print(out, index++, message_iter_into(&field, NULL));
    }
}

static void print_span_detailed(struct text *out, uint32_t index, struct message_iter it)
{
    struct message_iter status = message_field(it, SPAN_STATUS);
    struct slice trace_state = string_field(it, SPAN_TRACE_STATE);
    text_printf(out, "Span #%" PRIu32 "\n", index);
    print_id_line(out, "", "Trace ID", string_field(it, SPAN_TRACE_ID));
    print_id_line(out, "", "Parent ID", string_field(it, SPAN_PARENT_SPAN_ID));
    print_id_line(out, "", "ID", string_field(it, SPAN_SPAN_ID));
    print_string_line(out, "", "Name", string_field(it, SPAN_NAME));
    print_label(out, "", "Kind");
    text_printf(out, "%s\n", span_kind_name(number_field(it, SPAN_KIND, WIRE_VARINT)));
    if (trace_state.size > 0)
        print_string_line(out, "", "TraceState", trace_state);
    print_time_line(out, "", "Start time",
                    number_field(it, SPAN_START_TIME_UNIX_NANO, WIRE_FIXED64));
    print_time_line(out, "", "End time", number_field(it, SPAN_END_TIME_UNIX_NANO, WIRE_FIXED64));
    print_label(out, "", "Status code");
    text_printf(out, "%s\n", status_code_name(number_field(status, STATUS_CODE, WIRE_VARINT)));
    print_string_line(out, "", "Status message", string_field(status, STATUS_MESSAGE));
    print_attributes(out, DESCRIBE_DETAILED, "", "Attributes", it, SPAN_ATTRIBUTES);
    print_span_parts(out, "Events", it, SPAN_EVENTS, print_event);
    print_span_parts(out, "Links", it, SPAN_LINKS, print_span_link);
}

static void print_spans(struct text *out, enum describe_detail detail, struct message_iter it)
{
    struct message_field field;
    uint32_t index = 0;
    while (!is_full(out) && message_next_bytes(&it, SCOPE_SPANS_SPANS, &field)) {
        struct message_iter span = message_iter_into(&field, NULL);
        if (detail == DESCRIBE_DETAILED)
            print_span_detailed(out, index++, span);
        else
            print_span_normal(out, span);
    }
}

void describe_traces(struct message *root, enum describe_detail detail, uint32_t first,
                     struct text *out)
{
    struct message_iter it = message_iter(root, NULL);
    struct message_field group, scope;
    while (!is_full(out) && message_next_bytes(&it, TRACES_RESOURCE_SPANS, &group)) {
        struct message_iter scopes = message_iter_into(&group, NULL);
        uint32_t scope_index = 0;
        print_resource(out, detail, "Spans", first++, scopes);
        while (!is_full(out) && message_next_bytes(&scopes, RESOURCE_SPANS_SCOPE_SPANS, &scope)) {
            print_scope(out, detail, "Spans", scope_index++, message_iter_into(&scope, NULL));
            print_spans(out, detail, message_iter_into(&scope, NULL));
        }
    }
    end_text(out);
}

/* ---- profiles ---- */

struct profile_printer {
    struct text *out;
    struct dictionary *dictionary;
    enum describe_detail detail;
};

/* The numbers of a repeated varint or fixed64 field, packed or not, one call each. */
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

static void print_indexed_attributes(struct profile_printer *printer, const char *indent,
                                     struct message_iter it, uint32_t number)
{
    struct number_iter indices = number_iter(it, number, false);
    uint64_t index;
    bool any = false;
    while (!is_full(printer->out) && next_number(&indices, &index)) {
        assert(index <= UINT32_MAX); /* scanned, as all indices: it is in its table */
        struct key_value_and_unit attribute =
            dictionary_attribute(printer->dictionary, (uint32_t)index);
        if (!any && printer->detail == DESCRIBE_DETAILED)
            text_printf(printer->out, "%s    Attributes:\n", indent);
        any = true;
        print_attribute(printer->out, printer->detail, indent,
                        dictionary_string(printer->dictionary, attribute.key), attribute.value,
                        dictionary_string(printer->dictionary, attribute.unit));
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

static void print_location(struct profile_printer *printer, uint32_t index)
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
    while (!is_full(printer->out) && message_next_bytes(&location, LOCATION_LINES, &field)) {
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

static void print_stack(struct profile_printer *printer, uint32_t index)
{
    struct number_iter locations = number_iter(
        message_iter_bytes(dictionary_entry(printer->dictionary, DICTIONARY_STACK_TABLE, index)),
        STACK_LOCATION_INDICES, false);
    uint64_t location;
    text_append(printer->out, "        Stack (leaf first):\n");
    while (!is_full(printer->out) && next_number(&locations, &location))
        print_location(printer, (uint32_t)location);
}

static void print_link(struct profile_printer *printer, uint32_t index)
{
    struct dictionary_link link = dictionary_link(printer->dictionary, index);
    print_id_line(printer->out, "    ", "Trace ID", link.trace_id);
    print_id_line(printer->out, "    ", "Span ID", link.span_id);
}

static void print_numbers(struct profile_printer *printer, const char *name, struct message_iter it,
                          uint32_t number, bool times)
{
    struct number_iter numbers = number_iter(it, number, times);
    uint64_t value;
    bool any = false;
    while (!is_full(printer->out) && next_number(&numbers, &value)) {
        if (!any)
            print_label(printer->out, "    ", name);
        else
            text_append(printer->out, ", ");
        any = true;
        if (times)
            print_time(printer->out, value);
        else
            text_printf(printer->out, "%" PRId64, (int64_t)value);
    }
    if (any)
        text_append_char(printer->out, '\n');
}

static void print_sample(struct profile_printer *printer, uint32_t index, struct message_iter it)
{
    uint64_t link = number_field(it, SAMPLE_LINK_INDEX, WIRE_VARINT);
    uint64_t stack = number_field(it, SAMPLE_STACK_INDEX, WIRE_VARINT);
    text_printf(printer->out, "    Sample #%" PRIu32 "\n", index);
    print_numbers(printer, "Values", it, SAMPLE_VALUES, false);
    print_numbers(printer, "Timestamps", it, SAMPLE_TIMESTAMPS_UNIX_NANO, true);
    if (link != 0)
        print_link(printer, (uint32_t)link);
    print_indexed_attributes(printer, "    ", it, SAMPLE_ATTRIBUTE_INDICES);
    if (stack != 0)
        print_stack(printer, (uint32_t)stack);
}

static void print_samples(struct profile_printer *printer, struct message_iter it)
{
    struct message_field field;
    uint32_t index = 0;
    while (!is_full(printer->out) && message_next_bytes(&it, PROFILE_SAMPLES, &field))
        print_sample(printer, index++, message_iter_into(&field, NULL));
}

static uint32_t count_fields(struct message_iter it, uint32_t number)
{
    struct message_field field;
    uint32_t count = 0;
    while (message_next_bytes(&it, number, &field))
        count++;
    return count;
}

static void print_profile_detailed(struct profile_printer *printer, uint32_t index,
                                   struct message_iter it)
{
    struct text *out = printer->out;
    struct slice format = string_field(it, PROFILE_ORIGINAL_PAYLOAD_FORMAT);
    text_printf(out, "Profile #%" PRIu32 "\n", index);
    print_id_line(out, "", "Profile ID", string_field(it, PROFILE_PROFILE_ID));
    print_time_line(out, "", "Start time", number_field(it, PROFILE_TIME_UNIX_NANO, WIRE_FIXED64));
    print_label(out, "", "Duration");
    text_printf(out, "%.9gs\n", (double)number_field(it, PROFILE_DURATION_NANO, WIRE_VARINT) / 1e9);
    print_value_type(printer, "Sample type", it, PROFILE_SAMPLE_TYPE);
    print_value_type(printer, "Period type", it, PROFILE_PERIOD_TYPE);
    print_label(out, "", "Period");
    text_printf(out, "%" PRId64 "\n", (int64_t)number_field(it, PROFILE_PERIOD, WIRE_VARINT));
    print_label(out, "", "Dropped attrs");
    text_printf(out, "%" PRIu64 "\n",
                number_field(it, PROFILE_DROPPED_ATTRIBUTES_COUNT, WIRE_VARINT));
    if (format.size > 0)
        print_string_line(out, "", "Original format", format);
    print_indexed_attributes(printer, "", it, PROFILE_ATTRIBUTE_INDICES);
    print_samples(printer, it);
}

static void print_profiles(struct profile_printer *printer, struct message_iter it)
{
    struct message_field field;
    uint32_t index = 0;
    while (!is_full(printer->out) && message_next_bytes(&it, SCOPE_PROFILES_PROFILES, &field)) {
        struct message_iter profile = message_iter_into(&field, NULL);
        if (printer->detail == DESCRIBE_DETAILED) {
            print_profile_detailed(printer, index++, profile);
            continue;
        }
        text_append_hex(printer->out, string_field(profile, PROFILE_PROFILE_ID));
        text_printf(printer->out, " samples=%" PRIu32, count_fields(profile, PROFILE_SAMPLES));
        print_indexed_attributes(printer, "", profile, PROFILE_ATTRIBUTE_INDICES);
        text_append_char(printer->out, '\n');
    }
}

void describe_profiles(struct message *root, struct dictionary *dictionary,
                       enum describe_detail detail, struct text *out)
{
    struct profile_printer printer = {.out = out, .dictionary = dictionary, .detail = detail};
    struct message_iter it = message_iter(root, NULL);
    struct message_field group, scope;
    uint32_t index = 0;
    while (!is_full(out) && message_next_bytes(&it, PROFILES_RESOURCE_PROFILES, &group)) {
        struct message_iter scopes = message_iter_into(&group, NULL);
        uint32_t scope_index = 0;
        print_resource(out, detail, "Profiles", index++, scopes);
        while (!is_full(out) &&
               message_next_bytes(&scopes, RESOURCE_PROFILES_SCOPE_PROFILES, &scope)) {
            print_scope(out, detail, "Profiles", scope_index++, message_iter_into(&scope, NULL));
            print_profiles(&printer, message_iter_into(&scope, NULL));
        }
    }
    end_text(out);
}
