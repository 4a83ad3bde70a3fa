#include "processors/redaction/redact_names.h"

#include "core/base/arena.h"
#include "core/data/any_value.h"
#include "core/data/function_fields.h"
#include "core/data/utf8.h"

#include <assert.h>

/* ---- which texts to test ---- */

/* Marks the text if words change it: most texts with a place for a word have none. */
static void mark_word(struct redact_names *names, uint32_t index)
{
    struct slice text = names->tables->strings[index];
    const struct secret_word *word = secret_words_find(&names->redactor->rules->words, text);
    if (!word && utf8_is_valid(text))
        return;
    names->decisions[index] = (struct string_decision){.state = NAME_TO_TEST, .word = word};
    names->to_test++;
}

static inline const uint8_t *string_end(const struct dictionary_tables *tables, uint32_t index)
{
    return tables->strings[index].data + tables->strings[index].size;
}

/* Marks the texts that have a secret word or are no UTF-8. */
static void mark_words(struct redact_names *names)
{
    const struct dictionary_tables *tables = names->tables;
    const struct table_range *range = &tables->ranges[DICTIONARY_STRING_TABLE];
    const struct secret_words *words = &names->redactor->rules->words;
    struct slice all = slice_of(range->start, (size_t)(range->end - range->start));
    uint32_t i = 0;
    for (size_t at = 0; (at = secret_words_next_place(words, all, at)) < all.size;) {
        while (string_end(tables, i) <= all.data + at) /* all end with the last string */
            i++;
        assert(i < tables->string_count);
        mark_word(names, i);
        at = (size_t)(string_end(tables, i) - all.data);
    }
}

static void mark_texts(struct redact_names *names)
{
    if (names->redactor->rules->blocked_values.texts->count == 0) {
        mark_words(names);
        return;
    }
    names->to_test = names->tables->string_count;
    for (uint32_t i = 0; i < names->to_test; i++)
        names->decisions[i].state = NAME_TO_TEST;
}

/* ---- names ---- */

static bool is_last_name(const struct redact_names *names, struct slice name)
{
    if (names->count == 0)
        return false;
    struct slice last = names->names[names->count - 1];
    return last.size == name.size && (last.data == name.data || slice_equal(last, name));
}

/* Returns which of the new names it is. Most are the same text, and then the last one. */
static uint32_t add_name(struct redact_names *names, struct slice name)
{
    if (is_last_name(names, name))
        return names->count - 1;
    names->names = arena_grow(names->scratch, names->names, names->count, &names->capacity,
                              sizeof *names->names);
    names->names[names->count] = name;
    return names->count++;
}

static inline bool is_to_test(const struct redact_names *names, uint64_t index)
{
    return index < names->tables->string_count && names->decisions[index].state == NAME_TO_TEST;
}

static void test_name(struct redact_names *names, enum redaction_kind kind, uint64_t index)
{
    struct string_decision *decision = &names->decisions[index];
    struct slice name = names->tables->strings[index];
    decision->state = NAME_STAYS;
    if (name.size == 0 || !redactor_rename_found(names->redactor, kind, decision->word, &name))
        return;
    decision->state = NAME_CHANGES;
    names->changed++;
    decision->name = add_name(names, name);
}

/* The fields of functions and mappings that are names, by table and number. */
static inline bool is_name(int table, uint32_t number, enum redaction_kind *kind_out)
{
    if (table == DICTIONARY_MAPPING_TABLE) {
        *kind_out = REDACTION_MAPPING;
        return number == MAPPING_FILENAME_STRINDEX;
    }
    *kind_out = number == FUNCTION_FILENAME_STRINDEX ? REDACTION_FILE : REDACTION_FUNCTION;
    return table == DICTIONARY_FUNCTION_TABLE && number >= FUNCTION_NAME_STRINDEX &&
           number <= FUNCTION_FILENAME_STRINDEX;
}

/* Reads a varint field with a tag of one byte and a value of up to three, as most are; leaves the
 * cursor at any other one. */
static inline bool next_short_varint(struct wire_cursor *cursor, uint32_t *number, uint64_t *value)
{
    const uint8_t *at = cursor->next;
    ptrdiff_t room = cursor->end - at;
    if (room < 2 || at[0] >= 0x80 || (at[0] & 7) != WIRE_VARINT || at[0] < 8)
        return false;
    *number = at[0] >> 3;
    *value = at[1] & 0x7f;
    if (at[1] < 0x80) {
        cursor->next = at + 2;
        return true;
    }
    if (room < 3)
        return false;
    *value |= (uint64_t)(at[2] & 0x7f) << 7;
    if (at[2] < 0x80) {
        cursor->next = at + 3;
        return true;
    }
    if (room < 4 || at[3] >= 0x80)
        return false;
    *value |= (uint64_t)at[3] << 14;
    cursor->next = at + 4;
    return true;
}

static inline void test_index(struct redact_names *names, int table, uint32_t number,
                              uint64_t index)
{
    enum redaction_kind kind;
    if (!is_to_test(names, index) || !is_name(table, number, &kind))
        return;
    names->to_test--;
    test_name(names, kind, index);
}

/* Returns false if the function is unusual. */
static inline bool test_usual_function(struct redact_names *names, struct slice function)
{
    struct function_names found = {UINT32_MAX, UINT32_MAX, UINT32_MAX};
    if (!function_names_read_usual(function, &found))
        return false;
    test_index(names, DICTIONARY_FUNCTION_TABLE, FUNCTION_NAME_STRINDEX, found.name);
    test_index(names, DICTIONARY_FUNCTION_TABLE, FUNCTION_SYSTEM_NAME_STRINDEX, found.system_name);
    test_index(names, DICTIONARY_FUNCTION_TABLE, FUNCTION_FILENAME_STRINDEX, found.file);
    return true;
}

static void test_entry(struct redact_names *names, int table, struct slice entry)
{
    struct wire_cursor cursor = wire_cursor(entry);
    struct wire_field field;
    for (;;) {
        if (!next_short_varint(&cursor, &field.number, &field.value)) {
            if (!wire_next(&cursor, &field))
                break;
            if (field.type != WIRE_VARINT)
                continue;
        }
        test_index(names, table, field.number, field.value);
    }
}

/* Tests the names in a table until nothing is left to test. */
static void test_table(struct redact_names *names, int table)
{
    struct wire_cursor cursor = dictionary_tables_entries(names->tables, table);
    const uint32_t count = names->tables->ranges[table].count;
    struct slice entry;
    for (uint32_t i = 0; i < count && names->to_test > 0; i++) {
        bool exists = dictionary_next_entry(&cursor, table, &entry);
        assert(exists);
        if (entry.size > 0 &&
            (table != DICTIONARY_FUNCTION_TABLE || !test_usual_function(names, entry)))
            test_entry(names, table, entry);
    }
}

void redact_names_test(struct redact_names *names, const struct dictionary_tables *tables,
                       struct redactor *redactor, struct arena *scratch)
{
    *names = (struct redact_names){.tables = tables, .redactor = redactor, .scratch = scratch};
    names->decisions = arena_array(scratch, tables->string_count, sizeof *names->decisions);
    if (tables->string_count == 0)
        return;
    mark_texts(names);
    test_table(names, DICTIONARY_FUNCTION_TABLE);
    test_table(names, DICTIONARY_MAPPING_TABLE);
}

bool redact_names_are_left(const struct redact_names *names, const struct text_uses *uses)
{
    bool reports = names->redactor->on_match != NULL, are_left = false;
    if (names->to_test == 0)
        return false;
    for (uint32_t i = 0; i < names->tables->string_count && (!are_left || reports); i++)
        if (names->decisions[i].state == NAME_TO_TEST && (!uses || !uses->is_used[i]))
            are_left |= redactor_would_rename(names->redactor, names->tables->strings[i]);
    return are_left;
}

void redact_names_test_others(struct redact_names *names, const struct dictionary_tables *tables,
                              const struct text_uses *uses, struct redactor *redactor,
                              struct arena *scratch)
{
    *names = (struct redact_names){.tables = tables, .redactor = redactor, .scratch = scratch};
    names->decisions = arena_array(scratch, tables->string_count, sizeof *names->decisions);
    for (uint32_t i = 0; i < tables->string_count; i++) {
        if (uses->is_used[i])
            test_name(names, REDACTION_TEXT, i);
    }
}

/* ---- in place ---- */

bool redact_names_fit_in_place(const struct redact_names *names, const struct text_uses *uses)
{
    for (uint32_t i = 0; i < names->tables->string_count; i++)
        if (names->decisions[i].state == NAME_CHANGES && uses->is_used[i])
            return false;
    return true;
}

/* Returns at least the size of the dictionary with the new names. */
static size_t written_size(const struct redact_names *names)
{
    size_t size = names->tables->bytes.size;
    for (uint32_t i = 0; i < names->tables->string_count; i++) {
        const struct string_decision *decision = &names->decisions[i];
        if (decision->state == NAME_CHANGES)
            size += wire_size_bytes(DICTIONARY_STRING_TABLE, names->names[decision->name].size) -
                    names->tables->strings[i].size;
    }
    return size;
}

static uint8_t *copy_run(uint8_t *to, const uint8_t *from, const uint8_t *end)
{
    size_t size = (size_t)(end - from);
    if (size > 0)
        memcpy(to, from, size);
    return to + size;
}

/* Returns the dictionary with the new names, in one piece. */
static struct slice write_dictionary(const struct redact_names *names)
{
    const struct slice old = names->tables->bytes;
    const uint8_t *unwritten = old.data;
    size_t size = written_size(names);
    uint8_t *start = arena_alloc(names->redactor->arena, size), *to = start;
    for (uint32_t i = 0; i < names->tables->string_count; i++) {
        if (names->decisions[i].state != NAME_CHANGES)
            continue;
        struct slice field = dictionary_tables_string_field(names->tables, i);
        to = copy_run(to, unwritten, field.data);
        to = wire_write_bytes(to, DICTIONARY_STRING_TABLE, names->names[names->decisions[i].name]);
        unwritten = field.data + field.size;
    }
    to = copy_run(to, unwritten, old.data + old.size);
    assert(to <= start + size);
    return slice_of(start, (size_t)(to - start));
}

/* Replaces single entries; the iterator steps from one to the next. */
static void replace_names(const struct redact_names *names, struct message *dictionary)
{
    struct message_iter it = message_iter(dictionary, names->redactor->arena);
    struct message_field field;
    for (uint32_t i = 0; i < names->tables->string_count; i++) {
        if (names->decisions[i].state != NAME_CHANGES)
            continue;
        it.cursor.next = dictionary_tables_string_field(names->tables, i).data;
        bool exists = message_next(&it, &field);
        assert(exists && field.wire.bytes.data == names->tables->strings[i].data);
        message_replace(&it, &field, names->names[names->decisions[i].name]);
    }
}

void redact_names_in_place(const struct redact_names *names, struct message_iter *it,
                           struct message_field *dictionary)
{
    enum { NODE_BYTES = 256 }; /* what a node costs as much as to copy */
    bool is_read = names->tables->bytes.data == dictionary->wire.bytes.data; /* as received */
    if (is_read && (uint64_t)names->changed * NODE_BYTES < names->tables->bytes.size)
        replace_names(names, message_open(it, dictionary));
    else
        message_replace(it, dictionary, write_dictionary(names));
}

/* ---- appended ---- */

static bool field_changes(const struct redact_names *names, int table,
                          const struct wire_field *field)
{
    enum redaction_kind kind;
    return field->type == WIRE_VARINT && is_name(table, field->number, &kind) &&
           field->value < names->tables->string_count &&
           names->decisions[field->value].state == NAME_CHANGES;
}

static bool entry_changes(const struct redact_names *names, int table, struct slice entry)
{
    struct wire_cursor cursor = wire_cursor(entry);
    struct wire_field field;
    while (wire_next(&cursor, &field))
        if (field_changes(names, table, &field))
            return true;
    return false;
}

bool redact_names_in_entry(const struct redact_names *names, int table, struct slice *entry)
{
    enum { LONGER_MAX = 5 }; /* bytes that an index may gain, of which a field has at least two */
    if (names->count == 0 || !entry_changes(names, table, *entry))
        return false;
    uint8_t *start = arena_alloc(names->redactor->arena, (1 + LONGER_MAX) * entry->size);
    uint8_t *to = start;
    struct wire_cursor cursor = wire_cursor(*entry);
    struct wire_field field;
    while (wire_next(&cursor, &field)) {
        if (field_changes(names, table, &field)) {
            to = wire_write_tag(to, field.number, WIRE_VARINT);
            to = wire_write_varint(to, names->tables->string_count +
                                           names->decisions[field.value].name);
        } else {
            to = copy_run(to, field.start, field.end);
        }
    }
    *entry = slice_of(start, (size_t)(to - start));
    return true;
}

void redact_names_append(const struct redact_names *names, struct message *dictionary)
{
    for (uint32_t i = 0; i < names->count; i++) {
        size_t size = wire_size_bytes(DICTIONARY_STRING_TABLE, names->names[i].size);
        uint8_t *bytes = arena_alloc(names->redactor->arena, size);
        wire_write_bytes(bytes, DICTIONARY_STRING_TABLE, names->names[i]);
        message_append(dictionary, names->redactor->arena, slice_of(bytes, size));
    }
}
