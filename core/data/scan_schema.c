#include "core/data/scan_schema.h"

#include "core/data/otlp.h"
#include "core/data/wire.h"
#include "opentelemetry/proto/collector/logs/v1/logs_service.pb-c.h"
#include "opentelemetry/proto/collector/metrics/v1/metrics_service.pb-c.h"
#include "opentelemetry/proto/collector/profiles/v1development/profiles_service.pb-c.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.pb-c.h"

#include <assert.h>
#include <stdio.h>

static struct scan_schema_set sets[SCAN_FLAVOURS];

static const struct {
    const char *field;
    int table;
} index_fields[] = {
    {"stack_index", DICTIONARY_STACK_TABLE},
    {"link_index", DICTIONARY_LINK_TABLE},
    {"mapping_index", DICTIONARY_MAPPING_TABLE},
    {"function_index", DICTIONARY_FUNCTION_TABLE},
    {"attribute_indices", DICTIONARY_ATTRIBUTE_TABLE},
    {"location_indices", DICTIONARY_LOCATION_TABLE},
};

static bool has_dictionary(enum scan_flavour flavour)
{
    return flavour == SCAN_PROFILES || flavour == SCAN_PROFILES_V19;
}

/* Returns the DICTIONARY_ table that a field with this name points into; 0 if it is not an
 * index. */
static int table_of(const char *field)
{
    static const char strindex[] = "_strindex";
    size_t length = strlen(field);
    size_t suffix = sizeof strindex - 1;

    if (length > suffix && strcmp(field + length - suffix, strindex) == 0)
        return DICTIONARY_STRING_TABLE;
    for (size_t i = 0; i < sizeof index_fields / sizeof index_fields[0]; i++)
        if (strcmp(field, index_fields[i].field) == 0)
            return index_fields[i].table;
    return 0;
}

static uint8_t id_size(const char *field)
{
    if (strcmp(field, "trace_id") == 0)
        return TRACE_ID_SIZE;
    if (strcmp(field, "span_id") == 0 || strcmp(field, "parent_span_id") == 0)
        return SPAN_ID_SIZE;
    if (strcmp(field, "profile_id") == 0)
        return PROFILE_ID_SIZE;
    return 0;
}

static bool message_is(const ProtobufCMessageDescriptor *message, const char *name)
{
    return strcmp(message->short_name, name) == 0;
}

/* names: ends with NULL. */
static bool message_is_one_of(const ProtobufCMessageDescriptor *message, const char *const *names)
{
    while (*names && !message_is(message, *names))
        names++;
    return *names != NULL;
}

static enum scan_counter counter_of(const ProtobufCMessageDescriptor *message)
{
    static const char *const groups[] = {"ResourceSpans", "ResourceProfiles", "ResourceMetrics",
                                         "ResourceLogs", NULL};
    static const char *const items[] = {"Span",
                                        "Sample",
                                        "NumberDataPoint",
                                        "HistogramDataPoint",
                                        "ExponentialHistogramDataPoint",
                                        "SummaryDataPoint",
                                        "LogRecord",
                                        NULL};
    if (message_is_one_of(message, groups))
        return SCAN_COUNT_GROUPS;
    if (message_is(message, "Profile"))
        return SCAN_COUNT_PROFILES;
    if (message_is_one_of(message, items))
        return SCAN_COUNT_ITEMS;
    if (message_is(message, "Line"))
        return SCAN_COUNT_LINES;
    if (message_is(message, "ProfilesDictionary"))
        return SCAN_COUNT_DICTIONARIES;
    return SCAN_COUNT_OTHER;
}

/* Returns the action for a frequent repeated message, which has a fast path. */
static enum scan_action run_of(const ProtobufCMessageDescriptor *message, enum scan_flavour flavour)
{
    if (message_is(message, "KeyValue"))
        return SCAN_ATTRIBUTE;
    if (message_is(message, "Span"))
        return SCAN_SPAN;
    if (message_is(message, "Sample") && flavour == SCAN_PROFILES)
        return SCAN_SAMPLE;
    if (message_is(message, "Metric"))
        return SCAN_METRIC;
    if (message_is(message, "NumberDataPoint"))
        return SCAN_NUMBER_POINT;
    if (message_is(message, "HistogramDataPoint"))
        return SCAN_HISTOGRAM_POINT;
    if (message_is(message, "LogRecord"))
        return SCAN_LOG_RECORD;
    return SCAN_MESSAGE;
}

static enum wire_type wire_type_of(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return WIRE_FIXED64;
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return WIRE_FIXED32;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return WIRE_BYTES;
    default:
        return WIRE_VARINT;
    }
}

static enum scan_action skip_of(unsigned wire_type)
{
    static const enum scan_action skips[8] = {
        [WIRE_VARINT] = SCAN_SKIP_VARINT,
        [WIRE_FIXED64] = SCAN_SKIP_FIXED64,
        [WIRE_BYTES] = SCAN_SKIP_BYTES,
        [WIRE_GROUP_START] = SCAN_REFUSE_GROUP,
        [WIRE_GROUP_END] = SCAN_REFUSE_GROUP,
        [WIRE_FIXED32] = SCAN_SKIP_FIXED32,
        [6] = SCAN_REFUSE_GROUP,
        [7] = SCAN_REFUSE_GROUP,
    };
    return skips[wire_type];
}

/* Makes all fields unknown. */
static void fill_defaults(struct scan_schema *schema)
{
    for (unsigned tag = 0; tag < SCAN_TAGS; tag++)
        schema->rules[tag].action = (uint8_t)(tag < 8 ? SCAN_REFUSE_NUMBER : skip_of(tag & 7));
}

/* Returns the number of the schema of a message in the set; adds it if necessary. */
static uint8_t schema_for(struct scan_schema_set *set, const ProtobufCMessageDescriptor *message)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->schemas[i].descriptor == message)
            return (uint8_t)i;
    assert(set->count < SCAN_SCHEMAS_MAX);
    set->schemas[set->count].descriptor = message;
    return (uint8_t)set->count++;
}

/* Returns the next free mark of a schema. */
static uint8_t take_mark(uint8_t *marks)
{
    unsigned mark = (unsigned)*marks + 1;

    assert(mark <= UINT8_MAX); /* eight are enough for every message of OTLP */
    *marks = (uint8_t)(*marks | mark);
    return (uint8_t)mark;
}

static struct scan_rule message_rule(struct scan_schema_set *set,
                                     const ProtobufCFieldDescriptor *field,
                                     enum scan_flavour flavour, uint8_t *marks)
{
    const ProtobufCMessageDescriptor *child = field->descriptor;
    struct scan_rule rule = {
        .action = SCAN_MESSAGE,
        .argument = schema_for(set, child),
        .counter = (uint8_t)counter_of(child),
    };

    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        rule.action = (uint8_t)run_of(child, flavour);
    else if (!message_is(child, "ProfilesDictionary")) /* normalise merges several dictionaries */
        rule.mark = take_mark(marks);
    return rule;
}

static struct scan_rule index_rule(const ProtobufCMessageDescriptor *message, int table)
{
    bool is_reference = message_is(message, "KeyValue") || message_is(message, "AnyValue");

    return (struct scan_rule){
        .action = SCAN_INDEX,
        .argument = (uint8_t)table,
        .counter = (uint8_t)(is_reference ? SCAN_COUNT_REFERENCES : SCAN_COUNT_OTHER),
    };
}

/* Returns the rule for a field with its own wire type. */
static struct scan_rule rule_for(struct scan_schema_set *set,
                                 const ProtobufCMessageDescriptor *message,
                                 const ProtobufCFieldDescriptor *field, enum scan_flavour flavour,
                                 uint8_t *marks)
{
    int table = has_dictionary(flavour) ? table_of(field->name) : 0;

    switch (field->type) {
    case PROTOBUF_C_TYPE_MESSAGE:
        return message_rule(set, field, flavour, marks);
    case PROTOBUF_C_TYPE_STRING:
        return (struct scan_rule){.action = SCAN_STRING};
    case PROTOBUF_C_TYPE_BYTES:
        if (id_size(field->name) > 0)
            return (struct scan_rule){.action = SCAN_ID, .argument = id_size(field->name)};
        break;
    default:
        if (table != 0)
            return index_rule(message, table);
        break;
    }
    return (struct scan_rule){.action = (uint8_t)skip_of(wire_type_of(field->type))};
}

static bool is_packable(const ProtobufCFieldDescriptor *field)
{
    return field->label == PROTOBUF_C_LABEL_REPEATED && wire_type_of(field->type) != WIRE_BYTES;
}

/* Sets the two rules of a repeated number: single and packed. */
static void set_packable(struct scan_schema *schema, const ProtobufCFieldDescriptor *field,
                         uint32_t number, struct scan_rule rule)
{
    struct scan_rule packed = rule;
    enum wire_type type = wire_type_of(field->type);

    assert(type != WIRE_FIXED32); /* OTLP has no such list */
    if (rule.action == SCAN_INDEX) {
        packed.action = SCAN_INDICES;
    } else if (schema->is_sample && strcmp(field->name, "values") == 0) {
        rule.action = SCAN_VALUE;
        packed.action = SCAN_VALUES;
    } else if (schema->is_sample && strcmp(field->name, "timestamps_unix_nano") == 0) {
        rule.action = SCAN_TIMESTAMP;
        packed.action = SCAN_TIMESTAMPS;
    } else {
        packed.action = type == WIRE_FIXED64 ? SCAN_PACKED_FIXED64 : SCAN_PACKED_VARINTS;
    }
    schema->rules[number << 3 | (uint32_t)type] = rule;
    schema->rules[number << 3 | WIRE_BYTES] = packed;
}

static void set_field(struct scan_schema_set *set, size_t index,
                      const ProtobufCFieldDescriptor *field, uint32_t number,
                      enum scan_flavour flavour, uint8_t *marks)
{
    /* The set's array does not move, so this stays valid while rule_for adds schemas. */
    struct scan_schema *schema = &set->schemas[index];
    struct scan_rule rule = rule_for(set, schema->descriptor, field, flavour, marks);

    assert(number > 0 && number < SCAN_NUMBERS);
    schema->fields[number] = field;
    for (uint32_t type = 0; type < 8; type++)
        if (type != WIRE_GROUP_START && type != WIRE_GROUP_END && type < 6)
            schema->rules[number << 3 | type].action = SCAN_REFUSE_TYPE;
    if (is_packable(field))
        set_packable(schema, field, number, rule);
    else
        schema->rules[number << 3 | (uint32_t)wire_type_of(field->type)] = rule;
}

/* key and key_strindex exclude each other where both are defined. */
static void exclude_both_keys(struct scan_schema *schema, uint8_t *marks)
{
    struct scan_rule *key = &schema->rules[KEY_VALUE_KEY << 3 | WIRE_BYTES];
    struct scan_rule *reference = &schema->rules[KEY_VALUE_KEY_STRINDEX << 3 | WIRE_VARINT];

    assert(key->action == SCAN_STRING && reference->action == SCAN_INDEX);
    key->mark = take_mark(marks);
    reference->mark = take_mark(marks);
    schema->excluding = (uint8_t)(key->mark | reference->mark);
}

/* Every field of the dictionary is a table, whose entries are counted. */
static void count_entries(struct scan_schema *dictionary)
{
    static const uint8_t runs[DICTIONARY_TABLE_COUNT] = {
        [DICTIONARY_MAPPING_TABLE] = SCAN_MESSAGE,
        [DICTIONARY_LOCATION_TABLE] = SCAN_LOCATION,
        [DICTIONARY_FUNCTION_TABLE] = SCAN_FUNCTION,
        [DICTIONARY_LINK_TABLE] = SCAN_LINK,
        [DICTIONARY_STRING_TABLE] = SCAN_ENTRY_STRING,
        [DICTIONARY_ATTRIBUTE_TABLE] = SCAN_ATTRIBUTE_ENTRY,
        [DICTIONARY_STACK_TABLE] = SCAN_STACK,
    };

    for (unsigned table = 1; table < DICTIONARY_TABLE_COUNT; table++) {
        struct scan_rule *rule = &dictionary->rules[table << 3 | WIRE_BYTES];

        rule->action = runs[table];
        rule->counter = (uint8_t)(SCAN_COUNT_ENTRIES + table);
    }
}

/* Returns the number of a field of Sample in OTLP 1.9. */
static uint32_t number_in_v19(const ProtobufCFieldDescriptor *field)
{
    switch (field->id) {
    case SAMPLE_ATTRIBUTE_INDICES:
        return SAMPLE_V19_ATTRIBUTE_INDICES;
    case SAMPLE_LINK_INDEX:
        return SAMPLE_V19_LINK_INDEX;
    case SAMPLE_VALUES:
        return SAMPLE_V19_VALUES;
    default:
        return field->id;
    }
}

static void build_schema(struct scan_schema_set *set, size_t index, enum scan_flavour flavour)
{
    const ProtobufCMessageDescriptor *message = set->schemas[index].descriptor;
    bool is_sample = message_is(message, "Sample");
    uint8_t marks = 0;

    fill_defaults(&set->schemas[index]);
    set->schemas[index].is_sample = is_sample;
    for (unsigned i = 0; i < message->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->fields[i];
        uint32_t number =
            is_sample && flavour == SCAN_PROFILES_V19 ? number_in_v19(field) : field->id;

        set_field(set, index, field, number, flavour, &marks);
    }
    if (message_is(message, "KeyValue") && has_dictionary(flavour))
        exclude_both_keys(&set->schemas[index], &marks);
    if (message_is(message, "ProfilesDictionary"))
        count_entries(&set->schemas[index]);
}

static void build_set(enum scan_flavour flavour, const ProtobufCMessageDescriptor *root)
{
    struct scan_schema_set *set = &sets[flavour];

    if (set->count > 0)
        return;
    schema_for(set, root);
    for (size_t i = 0; i < set->count; i++) /* the set grows meanwhile */
        build_schema(set, i, flavour);
}

void scan_schema_init(void)
{
    const ProtobufCMessageDescriptor *traces =
        &opentelemetry__proto__collector__trace__v1__export_trace_service_request__descriptor;
    const ProtobufCMessageDescriptor *profiles =
        &opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__descriptor;

    build_set(SCAN_TRACES, traces);
    build_set(SCAN_PROFILES, profiles);
    build_set(SCAN_PROFILES_V19, profiles);
    build_set(
        SCAN_METRICS,
        &opentelemetry__proto__collector__metrics__v1__export_metrics_service_request__descriptor);
    build_set(SCAN_LOGS,
              &opentelemetry__proto__collector__logs__v1__export_logs_service_request__descriptor);
}

const struct scan_schema_set *scan_schema_set(enum scan_flavour flavour)
{
    assert(sets[flavour].count > 0); /* scan_init must be called first */
    return &sets[flavour];
}

/* A path of limited length while it is built. */
struct place {
    char *to;
    size_t size;
    size_t used;
    bool is_cut;
};

static void add_to_place(struct place *place, const char *name, bool indexed, size_t index)
{
    char part[96];
    int length = snprintf(part, sizeof part, indexed ? "%s%s[%zu]" : "%s%s",
                          place->used > 0 ? "." : "", name, index);

    assert(length > 0 && (size_t)length < sizeof part);
    if (place->is_cut)
        return;
    if (place->used + (size_t)length + sizeof "..." > place->size) {
        memcpy(place->to + place->used, "...", sizeof "...");
        place->is_cut = true;
        return;
    }
    memcpy(place->to + place->used, part, (size_t)length + 1);
    place->used += (size_t)length;
}

/* Returns how many elements of a repeated field this occurrence contains. */
static size_t count_elements(const ProtobufCFieldDescriptor *field, const struct wire_field *found)
{
    size_t count = 0;

    if (found->type != WIRE_BYTES || !is_packable(field))
        return 1;
    if (wire_type_of(field->type) == WIRE_FIXED64)
        return found->bytes.size / 8;
    for (size_t i = 0; i < found->bytes.size; i++)
        count += found->bytes.data[i] < 0x80;
    return count;
}

/* Returns the field number of the tag at `at`, as far as it can be read. */
static uint32_t number_at(const uint8_t *at, const uint8_t *end)
{
    uint32_t tag = 0;

    for (unsigned i = 0; i < 5 && at + i < end; i++) {
        tag |= (uint32_t)(at[i] & 0x7f) << (7 * i);
        if (at[i] < 0x80)
            return tag >> 3;
    }
    return 0;
}

/* Walks one message up to `at`. Returns the schema of the child that contains it; NULL if the field
 * is in this message. */
static const struct scan_schema *find_in_message(const struct scan_schema_set *set,
                                                 const struct scan_schema *schema,
                                                 struct slice *bytes, const uint8_t *at,
                                                 size_t element, struct place *place)
{
    size_t counts[SCAN_NUMBERS] = {0};
    struct wire_cursor cursor = wire_cursor(*bytes);
    struct wire_field found = {0};
    const ProtobufCFieldDescriptor *field;
    uint32_t number;

    while (cursor.next != at) {
        bool more = wire_next(&cursor, &found);
        assert(more && found.start < at); /* the caller guarantees well-formed bytes up to `at` */
        field = found.number < SCAN_NUMBERS ? schema->fields[found.number] : NULL;
        if (at < found.end) {
            assert(field && field->type == PROTOBUF_C_TYPE_MESSAGE);
            add_to_place(place, field->name, field->label == PROTOBUF_C_LABEL_REPEATED,
                         counts[found.number]);
            *bytes = found.bytes;
            return &set->schemas[schema->rules[found.number << 3 | WIRE_BYTES].argument];
        }
        if (field)
            counts[found.number] += count_elements(field, &found);
    }
    number = number_at(at, cursor.end);
    field = number < SCAN_NUMBERS ? schema->fields[number] : NULL;
    if (field)
        add_to_place(place, field->name, field->label == PROTOBUF_C_LABEL_REPEATED,
                     counts[number] + element);
    return NULL;
}

void scan_schema_place(const struct scan_schema_set *set, struct slice request, const uint8_t *at,
                       size_t element, char *to, size_t size)
{
    struct place place = {to, size, 0, false};
    const struct scan_schema *schema = &set->schemas[0];

    assert(size > sizeof "..." && at >= request.data && at <= request.data + request.size);
    to[0] = '\0';
    while (schema)
        schema = find_in_message(set, schema, &request, at, element, &place);
}
