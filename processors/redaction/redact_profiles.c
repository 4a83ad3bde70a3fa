#include "processors/redaction/redact_profiles.h"

#include "core/base/memory.h"
#include "core/data/any_value.h"
#include "core/pipeline/batch.h"
#include "processors/redaction/strip_attributes.h"

#include <assert.h>

enum { NOT_TESTED, STAYS, RENAMED };

/* What was decided about an entry of the string table. */
struct string_decision {
    uint8_t state;
    uint32_t index; /* RENAMED: of the new entry */
};

struct attribute_entry {
    enum redaction_outcome outcome;
    struct slice value; /* REDACTION_MASKED */
};

/* Where the entries of a table are. */
struct table_range {
    const uint8_t *start;
    const uint8_t *end;
    uint32_t count;
};

struct profiles_redaction {
    struct table_range tables[DICTIONARY_TABLE_COUNT];
    struct redactor *redactor;
    struct arena *arena;
    struct arena scratch;
    struct slice *strings;
    uint32_t string_count;
    uint32_t string_capacity;
    struct string_decision *decisions; /* of each string */
    struct slice *names;               /* new entries */
    uint32_t name_count;
    uint32_t name_capacity;
    struct attribute_entry *attributes;
    uint32_t attribute_count;
    struct removed_entries removed; /* of the attribute table */
    bool changes_attributes;
};

/* ---- reading ---- */

/* Returns the dictionary as plain bytes, written out to scratch memory if it was changed. */
static struct slice plain_dictionary(const struct message_field *field, struct arena *scratch)
{
    if (!field->node || !field->node->changed)
        return field->wire.bytes;
    size_t size = message_measure(field->node);
    uint8_t *data = arena_alloc(scratch, size);
    message_write(field->node, data);
    return slice_of(data, size);
}

/* Reads the strings, and finds where the other tables are. */
static void read_strings(struct profiles_redaction *r, struct slice dictionary)
{
    struct wire_cursor cursor = wire_cursor(dictionary);
    struct wire_field field;
    while (wire_next(&cursor, &field)) {
        if (field.type != WIRE_BYTES || field.number >= DICTIONARY_TABLE_COUNT)
            continue;
        struct table_range *table = &r->tables[field.number];
        if (table->count++ == 0)
            table->start = field.start;
        table->end = field.end;
        if (field.number != DICTIONARY_STRING_TABLE)
            continue;
        if (r->string_count == r->string_capacity)
            r->strings = arena_grow(&r->scratch, r->strings, r->string_count, &r->string_capacity,
                                    sizeof *r->strings);
        r->strings[r->string_count++] = field.bytes;
    }
    assert(!cursor.broken); /* scanned */
    r->attribute_count = r->tables[DICTIONARY_ATTRIBUTE_TABLE].count;
    r->decisions = arena_array(&r->scratch, r->string_count, sizeof *r->decisions);
    r->attributes = arena_array(&r->scratch, r->attribute_count, sizeof *r->attributes);
    r->removed.is_removed = arena_array(&r->scratch, r->attribute_count, sizeof(bool));
    r->removed.count = r->attribute_count;
}

static struct slice string_at(const struct profiles_redaction *r, uint64_t index)
{
    assert(index < r->string_count || index == 0); /* scanned */
    return index < r->string_count ? r->strings[index] : (struct slice){0};
}

/* ---- names ---- */

/* Returns the index of a new entry. Most new names are the same text, and then the last one. */
static uint32_t add_name(struct profiles_redaction *r, struct slice name)
{
    if (r->name_count > 0 && slice_equal(r->names[r->name_count - 1], name))
        return r->string_count + r->name_count - 1;
    r->names =
        arena_grow(&r->scratch, r->names, r->name_count, &r->name_capacity, sizeof *r->names);
    r->names[r->name_count++] = name;
    return r->string_count + r->name_count - 1;
}

static void test_name(struct profiles_redaction *r, enum redaction_kind kind, uint64_t index)
{
    struct slice name = string_at(r, index);
    if (name.size == 0 || r->decisions[index].state != NOT_TESTED)
        return;
    struct string_decision *decision = &r->decisions[index];
    decision->state = STAYS;
    if (!redactor_rename(r->redactor, kind, &name))
        return;
    decision->state = RENAMED;
    decision->index = add_name(r, name);
}

/* The fields of functions and mappings that are names, by table and number. */
static bool is_name(int table, uint32_t number, enum redaction_kind *kind_out)
{
    if (table == DICTIONARY_MAPPING_TABLE) {
        *kind_out = REDACTION_MAPPING;
        return number == MAPPING_FILENAME_STRINDEX;
    }
    *kind_out = number == FUNCTION_FILENAME_STRINDEX ? REDACTION_FILE : REDACTION_FUNCTION;
    return table == DICTIONARY_FUNCTION_TABLE && number >= FUNCTION_NAME_STRINDEX &&
           number <= FUNCTION_FILENAME_STRINDEX;
}

static void test_names(struct profiles_redaction *r, int table, struct slice entry)
{
    enum redaction_kind kind;
    struct wire_cursor cursor = wire_cursor(entry);
    struct wire_field field;
    while (wire_next(&cursor, &field))
        if (field.type == WIRE_VARINT && is_name(table, field.number, &kind))
            test_name(r, kind, field.value);
}

/* ---- attributes ---- */

static void test_attribute(struct profiles_redaction *r, uint32_t index, struct slice payload)
{
    struct attribute_entry *entry = &r->attributes[index];
    struct key_value_and_unit attribute = key_value_and_unit_read(payload);
    if (index == 0)
        return; /* the zero value */
    entry->value = attribute.value;
    entry->outcome = redactor_decide(r->redactor, string_at(r, attribute.key), &entry->value);
    r->changes_attributes |= entry->outcome == REDACTION_MASKED;
    if (entry->outcome == REDACTION_REMOVED)
        r->removed.is_removed[index] = r->removed.any = true;
}

/* Entries of one table, between which those of others may lie. */
static void test_table(struct profiles_redaction *r, int number)
{
    const struct table_range *table = &r->tables[number];
    struct wire_cursor cursor = {.next = table->start, .end = table->end};
    struct wire_field field;
    for (uint32_t i = 0; i < table->count && wire_next_bytes(&cursor, (uint32_t)number, &field);
         i++)
        if (number == DICTIONARY_ATTRIBUTE_TABLE)
            test_attribute(r, i, field.bytes);
        else
            test_names(r, number, field.bytes);
}

/* ---- writing ---- */

static bool refers_to_renamed(const struct profiles_redaction *r, int table, struct slice entry)
{
    struct wire_cursor cursor = wire_cursor(entry);
    struct wire_field field;
    enum redaction_kind kind;
    while (wire_next(&cursor, &field))
        if (field.type == WIRE_VARINT && is_name(table, field.number, &kind) &&
            field.value < r->string_count && r->decisions[field.value].state == RENAMED)
            return true;
    return false;
}

static struct slice renamed_entry(const struct profiles_redaction *r, int table, struct slice entry)
{
    enum { LONGER_MAX = 5 }; /* bytes that an index may gain, of which a field has at least two */
    uint8_t *start = arena_alloc(r->arena, (1 + LONGER_MAX) * entry.size), *to = start;
    struct wire_cursor cursor = wire_cursor(entry);
    struct wire_field field;
    enum redaction_kind kind;
    while (wire_next(&cursor, &field)) {
        bool is_renamed = field.type == WIRE_VARINT && is_name(table, field.number, &kind) &&
                          field.value < r->string_count &&
                          r->decisions[field.value].state == RENAMED;
        if (is_renamed) {
            to = wire_write_tag(to, field.number, WIRE_VARINT);
            to = wire_write_varint(to, r->decisions[field.value].index);
        } else {
            memcpy(to, field.start, (size_t)(field.end - field.start));
            to += field.end - field.start;
        }
    }
    return slice_of(start, (size_t)(to - start));
}

static struct slice masked_entry(const struct profiles_redaction *r, struct slice payload,
                                 struct slice value)
{
    struct key_value_and_unit entry = key_value_and_unit_read(payload);
    entry.value = value;
    uint8_t *start = arena_alloc(r->arena, KEY_VALUE_AND_UNIT_ROOM + value.size);
    return slice_of(start, (size_t)(key_value_and_unit_write(start, &entry) - start));
}

static void write_entry(struct profiles_redaction *r, struct message_iter *it,
                        struct message_field *field, uint32_t *attribute)
{
    int table = (int)field->wire.number;
    struct slice payload = field->wire.bytes;
    if (table == DICTIONARY_ATTRIBUTE_TABLE) {
        const struct attribute_entry *entry = &r->attributes[(*attribute)++];
        if (entry->outcome == REDACTION_MASKED)
            message_replace(it, field, masked_entry(r, payload, entry->value));
        return;
    }
    bool is_stripped = r->removed.any &&
                       strip_attributes_from_entry(table, payload, &r->removed, r->arena, &payload);
    bool is_renamed = r->name_count > 0 && refers_to_renamed(r, table, payload);
    if (is_renamed)
        payload = renamed_entry(r, table, payload);
    if (is_stripped || is_renamed)
        message_replace(it, field, payload);
}

static void write_tables(struct profiles_redaction *r, struct message *dictionary)
{
    struct message_iter it = message_iter(dictionary, r->arena);
    struct message_field field;
    uint32_t attribute = 0;
    while (message_next(&it, &field))
        if (field.wire.type == WIRE_BYTES && field.wire.number != DICTIONARY_STRING_TABLE)
            write_entry(r, &it, &field, &attribute);
    for (uint32_t i = 0; i < r->name_count; i++) {
        size_t size = wire_size_bytes(DICTIONARY_STRING_TABLE, r->names[i].size);
        uint8_t *bytes = arena_alloc(r->arena, size);
        wire_write_bytes(bytes, DICTIONARY_STRING_TABLE, r->names[i]);
        message_append(dictionary, r->arena, slice_of(bytes, size));
    }
}

/* ---- the request ---- */

static bool redact_dictionary(struct profiles_redaction *r, struct message *root)
{
    struct message_iter it = message_iter(root, r->arena);
    struct message_field field;
    if (!message_next_bytes(&it, PROFILES_DICTIONARY, &field))
        return false;
    read_strings(r, plain_dictionary(&field, &r->scratch));
    test_table(r, DICTIONARY_FUNCTION_TABLE);
    test_table(r, DICTIONARY_MAPPING_TABLE);
    test_table(r, DICTIONARY_ATTRIBUTE_TABLE);
    if (r->name_count == 0 && !r->changes_attributes && !r->removed.any)
        return false;
    write_tables(r, message_open(&it, &field));
    return true;
}

bool redact_profiles_batch(struct redactor *redactor, struct batch *batch)
{
    struct profiles_redaction r = {.redactor = redactor, .arena = &batch->arena};
    assert(batch->part_count == 1);
    struct message *root = &batch->parts[0].root;
    arena_init(&r.scratch, batch->arena.budget);
    bool changed = redact_dictionary(&r, root);
    if (r.removed.any)
        strip_attributes_from_profiles(root, &r.removed, r.arena, &r.scratch);
    arena_deinit(&r.scratch);
    return changed;
}
