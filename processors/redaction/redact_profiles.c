#include "processors/redaction/redact_profiles.h"

#include "core/base/memory.h"
#include "core/data/any_value.h"
#include "core/data/originals.h"
#include "core/pipeline/batch.h"
#include "processors/redaction/redact_names.h"
#include "processors/redaction/strip_attributes.h"

#include <assert.h>

struct attribute_entry {
    enum redaction_outcome outcome;
    struct slice value; /* REDACTION_MASKED */
};

struct profiles_redaction {
    struct dictionary_tables tables;
    struct redactor *redactor;
    const struct batch *batch;
    struct arena *arena;
    struct arena scratch;
    struct redact_names names;
    struct attribute_entry *attributes;
    struct removed_entries removed; /* of the attribute table */
    struct text_uses uses;          /* read when it is needed */
    bool changes_attributes;
    bool changes_texts; /* other than names */
};

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

static void read_tables(struct profiles_redaction *r, const struct message_field *field)
{
    const struct batch *batch = r->batch;
    if (!field->node && batch->layout.are_known)
        dictionary_tables_read_received(&r->tables, field->wire.bytes, &batch->layout,
                                        batch->parts[0].root.raw.data, &r->scratch);
    else
        dictionary_tables_read(&r->tables, plain_dictionary(field, &r->scratch), &r->scratch);
}

/* ---- attributes ---- */

static void test_attribute(struct profiles_redaction *r, uint32_t index, struct slice payload)
{
    struct attribute_entry *entry = &r->attributes[index];
    struct key_value_and_unit attribute = key_value_and_unit_read(payload);
    if (index == 0)
        return; /* the zero value */
    entry->value = attribute.value;
    entry->outcome = redactor_decide(
        r->redactor, dictionary_tables_string(&r->tables, attribute.key), &entry->value);
    r->changes_attributes |= entry->outcome == REDACTION_MASKED;
    if (entry->outcome == REDACTION_REMOVED)
        r->removed.is_removed[index] = r->removed.any = true;
}

static void test_attributes(struct profiles_redaction *r)
{
    const uint32_t count = r->tables.ranges[DICTIONARY_ATTRIBUTE_TABLE].count;
    struct wire_cursor cursor = dictionary_tables_entries(&r->tables, DICTIONARY_ATTRIBUTE_TABLE);
    struct slice payload;
    r->attributes = arena_array(&r->scratch, count, sizeof *r->attributes);
    r->removed.is_removed = arena_array(&r->scratch, count, sizeof(bool));
    r->removed.count = count;
    for (uint32_t i = 0; i < count; i++) {
        bool exists = dictionary_next_entry(&cursor, DICTIONARY_ATTRIBUTE_TABLE, &payload);
        assert(exists);
        test_attribute(r, i, payload);
    }
}

/* ---- writing ---- */

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
    if (redact_names_in_entry(&r->names, table, &payload) || is_stripped)
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
    redact_names_append(&r->names, dictionary);
}

/* ---- the request ---- */

/* Changes keys, units and types, of which nothing must be left that refers to the old text. */
static void redact_other_texts(struct profiles_redaction *r, struct message_iter *it,
                               struct message_field *dictionary)
{
    redact_names_test_others(&r->names, &r->tables, &r->uses, r->redactor, &r->scratch);
    if (r->names.count == 0)
        return;
    redact_names_in_place(&r->names, it, dictionary);
    r->changes_texts = true;
    read_tables(r, dictionary);
}

static void read_uses(struct profiles_redaction *r, struct message *root)
{
    if (!r->uses.is_used)
        text_uses_read(&r->uses, &r->tables, root, &r->scratch);
}

/* Whether a text that nothing refers to would stay, though it would change as a name. */
static bool leaves_texts(struct profiles_redaction *r, struct message *root)
{
    if (!r->redactor->on_match && !redact_names_are_left(&r->names, NULL))
        return false;
    read_uses(r, root);
    return redact_names_are_left(&r->names, &r->uses);
}

/* Returns whether batch_prune is needed. */
static bool redact_dictionary(struct profiles_redaction *r, struct message *root, bool prunes)
{
    struct message_iter it = message_iter(root, r->arena);
    struct message_field field;
    if (!message_next_bytes(&it, PROFILES_DICTIONARY, &field))
        return prunes;
    read_tables(r, &field);
    test_attributes(r);
    if (r->redactor->rules->settings->redact_all_texts) {
        read_uses(r, root);
        redact_other_texts(r, &it, &field);
    }
    redact_names_test(&r->names, &r->tables, r->redactor, &r->scratch);
    prunes |= r->changes_attributes || r->removed.any;
    if (!prunes || r->redactor->on_match)
        prunes |= leaves_texts(r, root);
    if (!prunes && r->names.count == 0)
        return false;
    read_uses(r, root);
    if (!prunes && redact_names_fit_in_place(&r->names, &r->uses)) {
        redact_names_in_place(&r->names, &it, &field);
        return false;
    }
    if (r->names.count > 0 || r->changes_attributes || r->removed.any)
        write_tables(r, message_open(&it, &field));
    return true;
}

static void report_original(void *context, const struct original *original)
{
    struct redactor *redactor = context;
    struct text text = {0};
    text_append_slice(&text, original->format);
    text_printf(&text, "%s%zu bytes", original->format.size > 0 ? ", " : "", original->bytes);
    const struct redaction_match match = {.kind = REDACTION_ORIGINAL,
                                          .text = slice_of(text_string(&text), text.size),
                                          .rule = "always removed",
                                          .pattern = ""};
    text_rules_report(redactor, &match);
    text_deinit(&text);
}

bool redact_profiles_batch(struct redactor *redactor, struct batch *batch, bool prunes)
{
    struct profiles_redaction r = {.redactor = redactor, .batch = batch, .arena = &batch->arena};
    assert(batch->part_count == 1);
    redactor->database = (struct slice){0}; /* attributes of samples are not beside each other */
    struct message *root = &batch->parts[0].root;
    arena_init(&r.scratch, batch->arena.budget);
    prunes = redact_dictionary(&r, root, prunes);
    if (r.removed.any)
        strip_attributes_from_profiles(root, &r.removed, r.arena, &r.scratch);
    if (redactor->on_match)
        originals_each(root, report_original, redactor);
    if (originals_exist(root)) /* nobody has searched them */
        originals_remove(root, r.arena);
    if (r.names.count > 0 || r.changes_texts)
        batch->dictionary = NULL; /* it has the old names */
    arena_deinit(&r.scratch);
    return prunes;
}
