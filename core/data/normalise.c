/*
 * The request is rewritten in one pass. The tables of scan_schema.h have the fields of each
 * message; a message in which nothing can change is copied. Recursion is bounded: the scan allows
 * at most SCAN_DEPTH_MAX levels.
 */
#include "core/data/normalise.h"

#include "core/base/budget.h"
#include "core/base/memory.h"
#include "core/data/any_value.h"
#include "core/data/scan_schema.h"
#include "core/data/scan_tables.h"
#include "core/data/wire.h"
#include "core/data/zero_entry.h"

#include <assert.h>

/* The changes to the fields of one kind of message. */
struct plan {
    uint32_t
        required; /* bit per field number: an index that must refer to an entry, so that 0 is one */
    bool changes; /* the message or one below it may have to change */
};

struct normaliser {
    const struct scan_schema_set *set;
    const struct scan_result *scan;
    struct slice request;
    uint32_t shifted; /* bit per table that gets a zero entry before its entries */
    struct plan plans[SCAN_SCHEMAS_MAX];
    uint32_t
        *strings; /* for each entry of the string_table: position of its length in the request */
    bool dictionary_written;
    struct buffer *out;
    struct slice run; /* bytes of the request that must be copied before anything else is written */
    size_t size_max;
    bool failed; /* set after an error: nothing is written any more */
    bool is_too_large;
};

bool normalise_needed(const struct scan_result *scan)
{
    return scan->layout != SCAN_LAYOUT_CURRENT || scan->has_references || scan->dictionaries ||
           scan->misses_zero_entries;
}

/* ---- writing ---- */

static void append(struct normaliser *n, const void *bytes, size_t size)
{
    if (n->failed || buffer_append(n->out, bytes, size, n->size_max))
        return;
    n->failed = true;
    n->is_too_large = size > n->size_max - n->out->size;
}

static void flush_run(struct normaliser *n)
{
    append(n, n->run.data, n->run.size);
    n->run = (struct slice){0};
}

static void emit(struct normaliser *n, const void *bytes, size_t size)
{
    if (n->run.size > 0)
        flush_run(n);
    append(n, bytes, size);
}

/* Copies bytes of the request; adjacent ones are copied together. */
static void emit_run(struct normaliser *n, const uint8_t *from, const uint8_t *end)
{
    if (n->run.size == 0 || n->run.data + n->run.size != from) {
        flush_run(n);
        n->run.data = from;
    }
    n->run.size += (size_t)(end - from);
}

static void emit_slice(struct normaliser *n, struct slice bytes)
{
    emit(n, bytes.data, bytes.size);
}

static void emit_tag(struct normaliser *n, uint32_t number, enum wire_type type)
{
    uint8_t tag[WIRE_HEADER_MAX];

    emit(n, tag, (size_t)(wire_write_tag(tag, number, type) - tag));
}

static void emit_varint(struct normaliser *n, uint64_t value)
{
    uint8_t bytes[WIRE_HEADER_MAX];

    emit(n, bytes, (size_t)(wire_write_varint(bytes, value) - bytes));
}

static void emit_bytes(struct normaliser *n, uint32_t number, struct slice payload)
{
    emit_tag(n, number, WIRE_BYTES);
    emit_varint(n, payload.size);
    emit_slice(n, payload);
}

/* Starts a field whose size is not known yet: leaves room for a length like that of `guess`. */
struct open_field {
    size_t start; /* of the payload */
    size_t room;
};

static struct open_field begin_field(struct normaliser *n, uint32_t number, size_t guess)
{
    struct open_field field = {0, wire_size_varint(guess)};
    static const uint8_t blank[WIRE_HEADER_MAX];

    emit_tag(n, number, WIRE_BYTES);
    emit(n, blank, field.room);
    field.start = n->out->size;
    return field;
}

static void end_field(struct normaliser *n, struct open_field field)
{
    static const uint8_t blank[WIRE_HEADER_MAX];
    size_t size;
    size_t room;

    flush_run(n);
    assert(n->failed || field.start <= n->out->size);
    size = n->out->size - field.start;
    room = wire_size_varint(size);
    if (room > field.room)
        emit(n, blank, room - field.room);
    if (n->failed)
        return;
    if (room != field.room)
        memmove(n->out->data + field.start - field.room + room, n->out->data + field.start, size);
    wire_write_varint(n->out->data + field.start - field.room, size);
    n->out->size = field.start - field.room + room + size;
}

/* ---- the plan ---- */

static bool is_named(const struct scan_schema *schema, const char *message)
{
    return strcmp(schema->descriptor->short_name, message) == 0;
}

static bool is_required(const struct scan_schema *schema, const char *field)
{
    static const struct {
        const char *message;
        const char *field;
    } required[] = {
        {"Sample", "stack_index"},           {"Sample", "attribute_indices"},
        {"Profile", "attribute_indices"},    {"Mapping", "attribute_indices"},
        {"Location", "attribute_indices"},   {"Stack", "location_indices"},
        {"Line", "function_index"},          {"Function", "name_strindex"},
        {"KeyValueAndUnit", "key_strindex"}, {"ValueType", "type_strindex"},
    };

    for (size_t i = 0; i < sizeof required / sizeof required[0]; i++)
        if (is_named(schema, required[i].message) && strcmp(field, required[i].field) == 0)
            return true;
    return false;
}

/* Returns the rule for a field, whatever its wire type; NULL for an unknown field. */
static const struct scan_rule *rule_of(const struct scan_schema *schema, uint32_t number,
                                       enum wire_type type)
{
    return number < SCAN_NUMBERS && schema->fields[number]
               ? &schema->rules[number << 3 | (uint32_t)type]
               : NULL;
}

static bool is_index(const struct scan_rule *rule)
{
    return rule->action == SCAN_INDEX || rule->action == SCAN_INDICES;
}

static bool is_shifted(const struct normaliser *n, unsigned table)
{
    return n->shifted >> table & 1;
}

/* Whether fields of this kind of message change, or messages in it that are known to change. */
static bool plan_changes(const struct normaliser *n, const struct scan_schema *schema)
{
    if (schema->is_sample && n->scan->layout == SCAN_LAYOUT_V19)
        return true;
    if (n->scan->has_references && (is_named(schema, "KeyValue") || is_named(schema, "AnyValue")))
        return true;
    for (unsigned tag = 0; tag < SCAN_TAGS; tag++) {
        const struct scan_rule *rule = &schema->rules[tag];

        if (is_index(rule) && is_shifted(n, rule->argument))
            return true;
        if (rule->action >= SCAN_FIRST_MESSAGE && n->plans[rule->argument].changes)
            return true;
    }
    return false;
}

static void make_plans(struct normaliser *n)
{
    bool again = true;

    for (size_t i = 0; i < n->set->count; i++)
        for (uint32_t number = 1; number < SCAN_NUMBERS; number++) {
            const ProtobufCFieldDescriptor *field = n->set->schemas[i].fields[number];
            if (field && is_required(&n->set->schemas[i], field->name))
                n->plans[i].required |= 1u << number;
        }
    while (again) { /* until nested messages have reached all messages that contain them */
        again = false;
        for (size_t i = 0; i < n->set->count; i++)
            if (!n->plans[i].changes && plan_changes(n, &n->set->schemas[i]))
                again = n->plans[i].changes = true;
    }
}

/* ---- fields ---- */

static uint32_t current_number(const struct normaliser *n, const struct scan_schema *schema,
                               uint32_t number)
{
    static const uint32_t of_v19[] = {
        [SAMPLE_V19_STACK_INDEX] = SAMPLE_STACK_INDEX,
        [SAMPLE_V19_VALUES] = SAMPLE_VALUES,
        [SAMPLE_V19_ATTRIBUTE_INDICES] = SAMPLE_ATTRIBUTE_INDICES,
        [SAMPLE_V19_LINK_INDEX] = SAMPLE_LINK_INDEX,
        [SAMPLE_V19_TIMESTAMPS_UNIX_NANO] = SAMPLE_TIMESTAMPS_UNIX_NANO,
    };

    if (!schema->is_sample || n->scan->layout != SCAN_LAYOUT_V19 ||
        number >= sizeof of_v19 / sizeof of_v19[0])
        return number;
    return of_v19[number];
}

static void copy_field(struct normaliser *n, const struct wire_field *field)
{
    emit_run(n, field->start, field->end);
}

/* Copies a field under another number. */
static void copy_renumbered(struct normaliser *n, const struct wire_field *field, uint32_t number)
{
    const uint8_t *value = field->start;

    if (number == field->number) {
        copy_field(n, field);
        return;
    }
    while (*value++ >= 0x80) /* the tag */
        ;
    emit_tag(n, number, field->type);
    emit_run(n, value, field->end);
}

static uint64_t shift_index(uint64_t index, bool required)
{
    assert(index < UINT32_MAX); /* the scan has checked it */
    return index == 0 && !required ? 0 : index + 1;
}

static void write_index(struct normaliser *n, const struct wire_field *field, uint32_t number,
                        bool required)
{
    struct wire_cursor packed;
    struct open_field open;
    uint64_t index;

    if (field->type == WIRE_VARINT) {
        emit_tag(n, number, WIRE_VARINT);
        emit_varint(n, shift_index(field->value, required));
        return;
    }
    packed = wire_cursor(field->bytes);
    open = begin_field(n, number, field->bytes.size);
    while (wire_packed_varint(&packed, &index))
        emit_varint(n, shift_index(index, required));
    assert(!packed.broken);
    end_field(n, open);
}

static void rewrite_message(struct normaliser *n, unsigned schema, struct slice payload);

/* Whether a message with no field set stays empty: it means "none", whatever the tables contain. */
static bool stays_zero(const struct scan_schema *parent, const struct scan_schema *child,
                       const struct wire_field *field)
{
    if (is_named(parent, "ProfilesDictionary"))
        return zero_entry_is((int)field->number, field->bytes);
    return is_named(child, "ValueType") && zero_entry_is(DICTIONARY_FUNCTION_TABLE, field->bytes);
}

static void rewrite_child(struct normaliser *n, const struct scan_schema *parent,
                          const struct wire_field *field, unsigned schema)
{
    struct open_field open;

    assert(field->type == WIRE_BYTES); /* its rule says that it is a message */
    if (!n->plans[schema].changes || stays_zero(parent, &n->set->schemas[schema], field)) {
        copy_field(n, field);
        return;
    }
    open = begin_field(n, field->number, field->bytes.size);
    rewrite_message(n, schema, field->bytes);
    end_field(n, open);
}

/* Writes required indices that are absent: they are 0, which meant the first entry. */
static void write_missing(struct normaliser *n, unsigned schema_number, uint32_t seen)
{
    const struct scan_schema *schema = &n->set->schemas[schema_number];
    uint32_t missing = n->plans[schema_number].required & ~seen;

    for (uint32_t number = 1; number < SCAN_NUMBERS; number++) {
        const struct scan_rule *rule = &schema->rules[number << 3 | WIRE_VARINT];

        if (!(missing >> number & 1) || schema->fields[number]->label == PROTOBUF_C_LABEL_REPEATED)
            continue;
        assert(rule->action == SCAN_INDEX);
        if (!is_shifted(n, rule->argument))
            continue;
        emit_tag(n, current_number(n, schema, number), WIRE_VARINT);
        emit_varint(n, 1);
    }
}

static void rewrite_fields(struct normaliser *n, unsigned schema_number, struct slice payload)
{
    const struct scan_schema *schema = &n->set->schemas[schema_number];
    uint32_t required = n->plans[schema_number].required;
    struct wire_cursor cursor = wire_cursor(payload);
    struct wire_field field;
    uint32_t seen = 0;

    while (wire_next(&cursor, &field)) {
        const struct scan_rule *rule = rule_of(schema, field.number, field.type);

        if (!rule) {
            copy_field(n, &field);
            continue;
        }
        seen |= 1u << field.number;
        if (rule->action >= SCAN_FIRST_MESSAGE)
            rewrite_child(n, schema, &field, rule->argument);
        else if (is_index(rule) && is_shifted(n, rule->argument))
            write_index(n, &field, current_number(n, schema, field.number),
                        required >> field.number & 1);
        else
            copy_renumbered(n, &field, current_number(n, schema, field.number));
    }
    assert(!cursor.broken);
    write_missing(n, schema_number, seen);
}

/* ---- references ---- */

static void find_strings(struct normaliser *n)
{
    struct wire_cursor request = wire_cursor(n->request);
    struct wire_field dictionary;
    struct wire_field entry;
    uint32_t count = 0;

    while (wire_next_bytes(&request, PROFILES_DICTIONARY, &dictionary)) {
        struct wire_cursor cursor = wire_cursor(dictionary.bytes);

        while (wire_next_bytes(&cursor, DICTIONARY_STRING_TABLE, &entry))
            n->strings[count++] = (uint32_t)(entry.start - n->request.data);
    }
    assert(count == n->scan->table_sizes[DICTIONARY_STRING_TABLE]);
}

static struct slice string_at(const struct normaliser *n, uint64_t index)
{
    uint32_t count = n->scan->table_sizes[DICTIONARY_STRING_TABLE];
    struct wire_cursor cursor;
    struct wire_field field;
    bool found;

    if (index == 0 && count == 0)
        return (struct slice){0};
    assert(index < count);
    cursor = wire_cursor(
        slice_of(n->request.data + n->strings[index], n->request.size - n->strings[index]));
    found = wire_next(&cursor, &field);
    assert(found && field.number == DICTIONARY_STRING_TABLE);
    return field.bytes;
}

static void rewrite_key_value(struct normaliser *n, unsigned schema_number, struct slice payload)
{
    const struct scan_schema *schema = &n->set->schemas[schema_number];
    struct wire_cursor cursor = wire_cursor(payload);
    uint64_t reference = key_value_reference(payload);
    struct wire_field field;

    if (reference != 0)
        emit_bytes(n, KEY_VALUE_KEY, string_at(n, reference));
    while (wire_next(&cursor, &field)) {
        const struct scan_rule *rule = rule_of(schema, field.number, field.type);

        if (field.number == KEY_VALUE_KEY_STRINDEX ||
            (field.number == KEY_VALUE_KEY && reference != 0))
            continue;
        if (rule && rule->action >= SCAN_FIRST_MESSAGE)
            rewrite_child(n, schema, &field, rule->argument);
        else
            copy_field(n, &field);
    }
}

static void rewrite_any_value(struct normaliser *n, unsigned schema_number, struct slice payload)
{
    const struct scan_schema *schema = &n->set->schemas[schema_number];
    struct wire_cursor cursor = wire_cursor(payload);
    struct any_value value = any_value_read_received(payload);
    bool is_reference = value.kind == ANY_VALUE_STRING_STRINDEX;
    struct wire_field field;

    if (is_reference)
        emit_bytes(n, ANY_VALUE_STRING, string_at(n, value.reference));
    while (wire_next(&cursor, &field)) {
        const struct scan_rule *rule = rule_of(schema, field.number, field.type);

        if (!rule)
            copy_field(n, &field);
        else if (is_reference || field.number == ANY_VALUE_STRING_STRINDEX)
            continue;
        else if (rule->action >= SCAN_FIRST_MESSAGE)
            rewrite_child(n, schema, &field, rule->argument);
        else
            copy_field(n, &field);
    }
}

static void rewrite_message(struct normaliser *n, unsigned schema_number, struct slice payload)
{
    const struct scan_schema *schema = &n->set->schemas[schema_number];

    if (n->failed)
        return;
    if (n->scan->has_references && is_named(schema, "KeyValue"))
        rewrite_key_value(n, schema_number, payload);
    else if (n->scan->has_references && is_named(schema, "AnyValue"))
        rewrite_any_value(n, schema_number, payload);
    else
        rewrite_fields(n, schema_number, payload);
}

/* ---- the request ---- */

static void write_zero_entries(struct normaliser *n)
{
    for (uint32_t table = 1; table < DICTIONARY_TABLE_COUNT; table++)
        if (n->scan->table_sizes[table] == 0 || is_shifted(n, table))
            emit_bytes(n, table, zero_entry_payload((int)table));
}

/* Writes all dictionaries of the request as one, with a zero entry at the front of each table. */
static void write_dictionary(struct normaliser *n)
{
    const struct scan_rule *rule = &n->set->schemas[0].rules[PROFILES_DICTIONARY << 3 | WIRE_BYTES];
    struct open_field open = begin_field(n, PROFILES_DICTIONARY, n->request.size);
    struct wire_cursor cursor = wire_cursor(n->request);
    struct wire_field field;

    n->dictionary_written = true;
    write_zero_entries(n);
    while (wire_next_bytes(&cursor, PROFILES_DICTIONARY, &field)) {
        if (n->plans[rule->argument].changes)
            rewrite_message(n, rule->argument, field.bytes);
        else
            emit_run(n, field.bytes.data, field.bytes.data + field.bytes.size);
    }
    end_field(n, open);
}

static void rewrite_request(struct normaliser *n)
{
    const struct scan_schema *schema = &n->set->schemas[0];
    struct wire_cursor cursor = wire_cursor(n->request);
    struct wire_field field;

    while (wire_next(&cursor, &field)) {
        const struct scan_rule *rule = rule_of(schema, field.number, field.type);

        if (!rule)
            copy_field(n, &field);
        else if (field.number != PROFILES_DICTIONARY)
            rewrite_child(n, schema, &field, rule->argument);
        else if (!n->dictionary_written)
            write_dictionary(n);
    }
    assert(!cursor.broken);
    if (n->scan->misses_zero_entries && !n->dictionary_written)
        write_dictionary(n);
}

static struct buffer *run(struct normaliser *n, struct budget *budget)
{
    n->out = buffer_new(n->request.size + n->request.size / 16 + 256, budget);
    if (!n->out)
        return NULL;
    n->size_max = n->request.size * NORMALISE_GROWTH + NORMALISE_SPARE_BYTES;
    make_plans(n);
    if (n->scan->has_references)
        find_strings(n);
    rewrite_request(n);
    flush_run(n);
    assert(!n->is_too_large || n->failed);
    if (n->failed) {
        buffer_unref(n->out);
        return NULL;
    }
    buffer_trim(n->out);
    return n->out;
}

struct buffer *normalise_profiles(struct slice request, const struct scan_result *scan,
                                  struct budget *budget, bool *is_too_large_out)
{
    struct normaliser n = {
        .set = scan_schema_set(scan->layout == SCAN_LAYOUT_V19 ? SCAN_PROFILES_V19 : SCAN_PROFILES),
        .scan = scan,
        .request = request,
    };
    struct scan_tables tables;
    size_t strings_size =
        scan->has_references ? scan->table_sizes[DICTIONARY_STRING_TABLE] * sizeof *n.strings : 0;
    struct buffer *out;

    *is_too_large_out = false;
    assert(normalise_needed(scan));
    assert(request.size <= UINT32_MAX);
    if (!budget_reserve(budget, strings_size))
        return NULL;
    scan_tables_count(request, &tables);
    n.shifted = tables.nonzero_starts;
    n.strings = memory_array(strings_size / sizeof *n.strings + 1, sizeof *n.strings);
    out = run(&n, budget);
    *is_too_large_out = n.is_too_large;
    free(n.strings);
    budget_release(budget, strings_size);
    return out;
}
