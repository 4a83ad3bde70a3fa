#include "core/data/dictionary.h"

#include "core/base/arena.h"
#include "core/base/hash.h"
#include "core/base/index_table.h"
#include "core/data/zero_entry.h"

#include <assert.h>

enum {
    CAPACITY_MIN = 16,
    CHUNK_MIN = 512,
    CHUNK_MAX = 16 * 1024,
    SEARCHES_MAX = 8,   /* linear searches of a table before it is hashed */
    SPARE_ENTRIES = 16, /* so that adding a few does not copy the others */
};

struct table {
    struct message_iter start; /* at its first entry */
    struct slice *entries;     /* NULL until needed */
    uint32_t count;
    uint32_t capacity; /* of entries */
    uint32_t searches;
    struct index_table by_content; /* without slots: not hashed yet */
};

struct dictionary {
    struct message *root;
    struct message *message; /* NULL until something is added */
    struct arena *arena;
    struct dictionary_layout received; /* of the bytes of the root */
    bool counted;
    struct slice last_run; /* the last appended run, to detect additions by others */
    struct table tables[DICTIONARY_TABLE_COUNT];
    /* Memory for appended entries, which are adjacent, so that the message has few runs of
     * bytes. */
    uint8_t *chunk;
    uint8_t *chunk_end;
    size_t chunk_size;
    uint8_t *scratch; /* memory for a payload being built */
    size_t scratch_size;
    /* Long entries that were read, by index. Allocated at the first one, for the entries of that
     * time. */
    struct key_value_and_unit **long_attributes;
    struct dictionary_link **long_links;
    uint32_t long_attribute_count, long_link_count;
};

/* Entries of more bytes are kept when read, because reading them again costs more. */
enum { SHORT_ENTRY_MAX = 64 };

struct dictionary *dictionary_new(struct message *root, struct arena *arena)
{
    struct dictionary *dictionary = arena_zalloc(arena, sizeof *dictionary);

    dictionary->root = root;
    dictionary->arena = arena;
    return dictionary;
}

void dictionary_know(struct dictionary *dictionary, const struct dictionary_layout *layout)
{
    assert(!dictionary->counted);
    dictionary->received = *layout;
}

/* Finds the dictionary field of the request. message_open can then be called with `it`. */
static bool find_field(struct dictionary *dictionary, struct message_iter *it,
                       struct message_field *field)
{
    *it = message_iter(dictionary->root, dictionary->arena);
    return message_next_bytes(it, PROFILES_DICTIONARY, field);
}

static struct slice last_run(const struct message *message)
{
    return message && message->tail_last ? message->tail_last->fields : (struct slice){0};
}

/* Whether the field is a short entry of a table, as most are. */
static inline bool is_short_entry(const uint8_t *at, const uint8_t *end, unsigned tag)
{
    return end - at >= 2 && at[0] == tag && at[1] < 0x80 && at[1] <= end - at - 2;
}

/* A fast message_next: reads following short entries of the same table that have no node, `most` at
 * most, and returns their number. */
static uint32_t take_short_entries(struct message_iter *it, int number, struct slice *entries,
                                   uint32_t most)
{
    enum { LONGEST = 2 + 0x7f };
    const uint8_t *at = it->cursor.next, *end = message_plain_end(it);
    unsigned tag = (unsigned)number << 3 | WIRE_BYTES;
    uint32_t count = 0;

    for (; count < most && end - at >= LONGEST && at[0] == tag && at[1] < 0x80; at += 2 + at[1])
        entries[count++] = (struct slice){at + 2, at[1]};
    for (; count < most && is_short_entry(at, end, tag); at += 2 + at[1])
        entries[count++] = (struct slice){at + 2, at[1]};
    it->cursor.next = at;
    return count;
}

/* Takes what the scan has found of the bytes of a dictionary that nobody has opened. */
static void take_tables(struct dictionary *dictionary, const struct message_field *field)
{
    for (unsigned number = 1; number < DICTIONARY_TABLE_COUNT; number++) {
        struct table *table = &dictionary->tables[number];
        table->count = dictionary->received.counts[number];
        if (table->count == 0)
            continue;
        table->start = message_iter_into(field, NULL);
        table->start.cursor.next = dictionary->root->raw.data + dictionary->received.starts[number];
        assert(table->start.cursor.next >= field->wire.bytes.data &&
               table->start.cursor.next < table->start.cursor.end);
    }
}

/* Counts the entries of every table, and notes where it starts. */
static void count_tables(struct dictionary *dictionary)
{
    struct message_iter it;
    struct message *previous;
    struct message_field field;
    struct table *table;

    if (dictionary->counted)
        return;
    dictionary->counted = true;
    if (!find_field(dictionary, &it, &field))
        return;
    dictionary->last_run = last_run(field.node);
    if (dictionary->received.are_known && !field.node) {
        take_tables(dictionary, &field);
        return;
    }
    it = message_iter_into(&field, NULL);
    for (previous = it.previous; message_next(&it, &field); previous = it.previous) {
        if (field.wire.number >= DICTIONARY_TABLE_COUNT)
            continue;
        assert(field.wire.type == WIRE_BYTES); /* scanned */
        table = &dictionary->tables[field.wire.number];
        if (table->count++ == 0) {
            table->start = it;
            table->start.cursor.next = field.wire.start;
            table->start.previous = previous;
        }
        if (*field.wire.start < 0x80)
            it.cursor.next = wire_skip_short(it.cursor.next, message_plain_end(&it),
                                             *field.wire.start, &table->count);
    }
}

/* Returns a table with its entries. */
static struct table *open_table(struct dictionary *dictionary, int number)
{
    struct table *table;
    struct message_iter it;
    struct message_field field;

    assert(number > 0 && number < DICTIONARY_TABLE_COUNT);
    count_tables(dictionary);
    table = &dictionary->tables[number];
    if (table->entries || table->count == 0)
        return table;
    table->capacity = table->count + SPARE_ENTRIES;
    table->entries =
        arena_alloc(dictionary->arena, (size_t)table->capacity * sizeof *table->entries);
    it = table->start;
    for (uint32_t i = 0; i < table->count;) {
        bool more = message_next(&it, &field);
        assert(more); /* nobody else removes entries */
        if (field.wire.number == (uint32_t)number && field.wire.type == WIRE_BYTES)
            table->entries[i++] = field.wire.bytes;
        i += take_short_entries(&it, number, table->entries + i, table->count - i);
    }
    return table;
}

size_t dictionary_request_size(const struct dictionary *dictionary)
{
    return dictionary->root->raw.size;
}

uint32_t dictionary_count(struct dictionary *dictionary, int table)
{
    assert(table > 0 && table < DICTIONARY_TABLE_COUNT);
    count_tables(dictionary);
    return dictionary->tables[table].count;
}

struct slice dictionary_entry(struct dictionary *dictionary, int table, uint32_t index)
{
    assert(table > 0 && table < DICTIONARY_TABLE_COUNT);
    const struct table *opened = &dictionary->tables[table];
    if (!opened->entries)
        opened = open_table(dictionary, table);
    if (index == 0 && opened->count == 0)
        return (struct slice){0};
    assert(index < opened->count);
    return opened->entries[index];
}

const struct slice *dictionary_entries(struct dictionary *dictionary, int table)
{
    return open_table(dictionary, table)->entries;
}

/* Finds the first equal entry. Returns false if there is none; the probe is then at the slot where
 * it would be added. */
static bool find_equal(const struct table *table, struct slice payload, struct index_probe *probe,
                       uint32_t *index_out)
{
    while (index_table_next(&table->by_content, probe, index_out))
        if (slice_equal(table->entries[*index_out], payload))
            return true;
    return false;
}

/* Hashes all entries. Of equal entries, the first one is found. */
static void index_entries(struct table *table, struct arena *arena)
{
    index_table_reserve(&table->by_content, table->count + 1, arena);
    for (uint32_t i = 0; i < table->count; i++) {
        uint32_t equal, hash = (uint32_t)hash_bytes(table->entries[i]);
        struct index_probe probe = index_table_probe(&table->by_content, hash);
        if (!find_equal(table, table->entries[i], &probe, &equal))
            index_table_add(&table->by_content, &probe, i);
    }
}

/* Returns a table with its entries and a hash index that has room for one more. */
static struct table *open_indexed(struct dictionary *dictionary, int number)
{
    struct table *table = open_table(dictionary, number);

    if (!table->by_content.slots)
        index_entries(table, dictionary->arena);
    if (index_table_is_full(&table->by_content))
        index_table_reserve(&table->by_content, 1, dictionary->arena);
    return table;
}

/* Returns the index of the first equal entry by linear search; `count` if there is none. */
static uint32_t search(const struct table *table, struct slice payload)
{
    uint32_t i = 0;

    while (i < table->count && !slice_equal(table->entries[i], payload))
        i++;
    return i;
}

static bool searches_suffice(struct table *table)
{
    return !table->by_content.slots && table->searches++ < SEARCHES_MAX;
}

uint32_t dictionary_find(struct dictionary *dictionary, int table, struct slice payload)
{
    struct table *opened;
    struct index_probe probe;
    uint32_t index;

    if (zero_entry_is(table, payload))
        return 0;
    opened = open_table(dictionary, table);
    if (searches_suffice(opened)) {
        index = search(opened, payload);
        return index < opened->count ? index : 0;
    }
    opened = open_indexed(dictionary, table);
    probe = index_table_probe(&opened->by_content, (uint32_t)hash_bytes(payload));
    return find_equal(opened, payload, &probe, &index) ? index : 0;
}

/* Returns the node of the dictionary; creates an empty dictionary if the request has none. */
static struct message *open_message(struct dictionary *dictionary)
{
    static const uint8_t empty[] = {PROFILES_DICTIONARY << 3 | WIRE_BYTES, 0};
    struct message_iter it;
    struct message_field field;
    bool found;

    if (dictionary->message)
        return dictionary->message;
    found = find_field(dictionary, &it, &field);
    if (!found) {
        message_append(dictionary->root, dictionary->arena, slice_of(empty, sizeof empty));
        found = find_field(dictionary, &it, &field);
    }
    assert(found);
    dictionary->message = message_open(&it, &field);
    return dictionary->message;
}

/* Returns memory for `size` bytes, after the last appended entry if there is room. */
static uint8_t *reserve_chunk(struct dictionary *dictionary, size_t size)
{
    if (!dictionary->chunk || (size_t)(dictionary->chunk_end - dictionary->chunk) < size) {
        size_t chunk_size = dictionary->chunk_size * 2;

        if (chunk_size < CHUNK_MIN)
            chunk_size = CHUNK_MIN;
        if (chunk_size > CHUNK_MAX)
            chunk_size = CHUNK_MAX;
        dictionary->chunk_size = chunk_size;
        if (chunk_size < size)
            chunk_size = size;
        dictionary->chunk = arena_alloc(dictionary->arena, chunk_size);
        dictionary->chunk_end = dictionary->chunk + chunk_size;
    }
    assert((size_t)(dictionary->chunk_end - dictionary->chunk) >= size);
    return dictionary->chunk;
}

/* Appends an encoded entry, and returns the slice of its payload there. */
static struct slice append_to_message(struct dictionary *dictionary, int table,
                                      struct slice payload)
{
    struct message *message = open_message(dictionary);
    size_t size = wire_size_bytes((uint32_t)table, payload.size);
    uint8_t *field = reserve_chunk(dictionary, size);
    struct slice run = last_run(message);

    /* Otherwise the indices would be wrong. */
    assert(run.data == dictionary->last_run.data && run.size == dictionary->last_run.size);
    dictionary->chunk = wire_write_bytes(field, (uint32_t)table, payload);
    assert(dictionary->chunk == field + size);
    message_append(message, dictionary->arena, slice_of(field, size));
    dictionary->last_run = last_run(message);
    return slice_of(dictionary->chunk - payload.size, payload.size);
}

static void append_to_table(struct table *table, struct arena *arena, struct slice payload)
{
    if (table->count == table->capacity) {
        struct slice *old = table->entries;

        table->capacity = table->capacity < CAPACITY_MIN ? CAPACITY_MIN : table->capacity * 2;
        table->entries = arena_array(arena, table->capacity, sizeof *table->entries);
        if (table->count > 0)
            memcpy(table->entries, old, table->count * sizeof *old);
    }
    assert(table->count < table->capacity);
    table->entries[table->count++] = payload;
}

/* Adds the zero entry to an empty table. */
static void append_zero_entry(struct dictionary *dictionary, int number, struct table *table)
{
    append_to_table(table, dictionary->arena,
                    append_to_message(dictionary, number, zero_entry_payload(number)));
}

uint32_t dictionary_add(struct dictionary *dictionary, int table, struct slice payload)
{
    struct table *opened;
    struct index_probe probe;
    uint32_t index;
    bool is_searched;

    if (zero_entry_is(table, payload))
        return 0;
    opened = open_table(dictionary, table);
    is_searched = searches_suffice(opened);
    if (is_searched) {
        index = search(opened, payload);
        if (index < opened->count)
            return index;
    } else {
        open_indexed(dictionary, table);
        probe = index_table_probe(&opened->by_content, (uint32_t)hash_bytes(payload));
        if (find_equal(opened, payload, &probe, &index))
            return index;
    }
    if (opened->count == 0)
        append_zero_entry(dictionary, table, opened);
    append_to_table(opened, dictionary->arena, append_to_message(dictionary, table, payload));
    assert(opened->count > 1); /* the zero value is before it */
    if (!is_searched)
        index_table_add(&opened->by_content, &probe, opened->count - 1);
    return opened->count - 1;
}

static uint8_t *reserve_scratch(struct dictionary *dictionary, size_t size)
{
    if (dictionary->scratch_size < size) {
        dictionary->scratch_size = size < CHUNK_MIN ? CHUNK_MIN : size * 2;
        dictionary->scratch = arena_alloc(dictionary->arena, dictionary->scratch_size);
    }
    return dictionary->scratch;
}

uint32_t dictionary_add_entry(struct dictionary *dictionary, const struct key_value_and_unit *entry)
{
    uint8_t *payload = reserve_scratch(dictionary, KEY_VALUE_AND_UNIT_ROOM + entry->value.size);
    uint8_t *end = key_value_and_unit_write(payload, entry);
    assert((size_t)(end - payload) <= dictionary->scratch_size);
    return dictionary_add(dictionary, DICTIONARY_ATTRIBUTE_TABLE,
                          slice_of(payload, (size_t)(end - payload)));
}

uint32_t dictionary_add_attribute(struct dictionary *dictionary, struct slice key,
                                  struct slice any_value, struct slice unit)
{
    struct key_value_and_unit entry = {.value = any_value};
    entry.key = dictionary_add(dictionary, DICTIONARY_STRING_TABLE, key);
    entry.unit = dictionary_add(dictionary, DICTIONARY_STRING_TABLE, unit);
    return dictionary_add_entry(dictionary, &entry);
}

uint32_t dictionary_add_link(struct dictionary *dictionary, struct slice trace_id,
                             struct slice span_id)
{
    uint8_t payload[2 * WIRE_HEADER_MAX + TRACE_ID_SIZE + SPAN_ID_SIZE];
    uint8_t *end = payload;

    assert(trace_id.size == TRACE_ID_SIZE || trace_id.size == 0);
    assert(span_id.size == SPAN_ID_SIZE || span_id.size == 0);
    if (trace_id.size > 0)
        end = wire_write_bytes(end, LINK_TRACE_ID, trace_id);
    if (span_id.size > 0)
        end = wire_write_bytes(end, LINK_SPAN_ID, span_id);
    return dictionary_add(dictionary, DICTIONARY_LINK_TABLE,
                          slice_of(payload, (size_t)(end - payload)));
}

static struct key_value_and_unit *read_long_attribute(struct dictionary *dictionary,
                                                      struct slice entry)
{
    struct key_value_and_unit *read = arena_alloc(dictionary->arena, sizeof *read);

    *read = key_value_and_unit_read(entry);
    read->value = any_value_last_member(read->value);
    return read;
}

static struct key_value_and_unit long_attribute(struct dictionary *dictionary, struct slice entry,
                                                uint32_t index)
{
    struct key_value_and_unit **known;

    if (!dictionary->long_attributes) {
        dictionary->long_attribute_count = dictionary_count(dictionary, DICTIONARY_ATTRIBUTE_TABLE);
        dictionary->long_attributes =
            arena_array(dictionary->arena, dictionary->long_attribute_count, sizeof(void *));
    }
    if (index >= dictionary->long_attribute_count)
        return key_value_and_unit_read(entry); /* it was added by this dictionary since */
    known = &dictionary->long_attributes[index];
    if (!*known)
        *known = read_long_attribute(dictionary, entry);
    return **known;
}

struct key_value_and_unit dictionary_attribute(struct dictionary *dictionary, uint32_t index)
{
    struct slice entry = dictionary_entry(dictionary, DICTIONARY_ATTRIBUTE_TABLE, index);

    return entry.size > SHORT_ENTRY_MAX ? long_attribute(dictionary, entry, index)
                                        : key_value_and_unit_read(entry);
}

/* Whether a link is both ids and nothing else, as nearly all are. */
static inline bool is_whole_link(struct slice entry)
{
    enum { SPAN_FIELD = 2 + TRACE_ID_SIZE, WHOLE = SPAN_FIELD + 2 + SPAN_ID_SIZE };
    const uint8_t *at = entry.data;

    return entry.size == WHOLE && at[0] == (LINK_TRACE_ID << 3 | WIRE_BYTES) &&
           at[1] == TRACE_ID_SIZE && at[SPAN_FIELD] == (LINK_SPAN_ID << 3 | WIRE_BYTES) &&
           at[SPAN_FIELD + 1] == SPAN_ID_SIZE;
}

static struct dictionary_link read_link(struct slice entry)
{
    struct wire_cursor cursor = wire_cursor(entry);
    struct dictionary_link link = {0};
    struct wire_field field;

    if (is_whole_link(entry))
        return (struct dictionary_link){.trace_id = slice_of(entry.data + 2, TRACE_ID_SIZE),
                                        .span_id =
                                            slice_of(entry.data + 4 + TRACE_ID_SIZE, SPAN_ID_SIZE)};

    while (wire_next(&cursor, &field)) {
        if (field.number == LINK_TRACE_ID)
            link.trace_id = field.bytes;
        else if (field.number == LINK_SPAN_ID)
            link.span_id = field.bytes;
    }
    assert(!cursor.broken); /* scanned */
    return link;
}

static struct dictionary_link long_link(struct dictionary *dictionary, struct slice entry,
                                        uint32_t index)
{
    struct dictionary_link **known;

    if (!dictionary->long_links) {
        dictionary->long_link_count = dictionary_count(dictionary, DICTIONARY_LINK_TABLE);
        dictionary->long_links =
            arena_array(dictionary->arena, dictionary->long_link_count, sizeof(void *));
    }
    if (index >= dictionary->long_link_count)
        return read_link(entry);
    known = &dictionary->long_links[index];
    if (!*known) {
        *known = arena_alloc(dictionary->arena, sizeof **known);
        **known = read_link(entry);
    }
    return **known;
}

struct dictionary_link dictionary_link(struct dictionary *dictionary, uint32_t index)
{
    struct slice entry = dictionary_entry(dictionary, DICTIONARY_LINK_TABLE, index);

    return entry.size > SHORT_ENTRY_MAX ? long_link(dictionary, entry, index) : read_link(entry);
}
