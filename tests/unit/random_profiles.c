#include "tests/unit/random_profiles.h"

#include <stdio.h>

enum { TABLE_MAX = 120, VALUES = 6 };

static uint64_t state = 1;

uint32_t random_below(uint32_t limit)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((state >> 33) % limit);
}

/* ---- clients ---- */

static uint32_t any_index(const struct random_client *client, int table)
{
    return random_below(client->counts[table]);
}

/* Writes a number; sometimes also a zero. */
static void put_number(struct wire_out *out, uint32_t number, uint64_t value)
{
    if (value != 0 || random_below(8) == 0)
        wire_out_varint(out, number, value);
}

/* Writes indices packed, or one by one. */
static void put_indices(struct wire_out *out, uint32_t number, const struct random_client *client,
                        int table, uint32_t count)
{
    if (count == 0)
        return;
    if (random_below(4) == 0) {
        while (count-- > 0)
            wire_out_varint(out, number, any_index(client, table));
        return;
    }
    struct wire_out_field list = wire_out_open(out, number, count);
    while (count-- > 0)
        out->size += (size_t)(wire_write_varint(wire_out_room(out, WIRE_HEADER_MAX),
                                                any_index(client, table)) -
                              (out->data + out->size));
    wire_out_close(out, list, number);
}

static void put_text(struct wire_out *out, uint32_t number, uint32_t value)
{
    struct wire_out_field field = wire_out_open(out, number, 1);
    for (uint32_t i = 0; i < value; i++)
        wire_out_put(out, SLICE("x"));
    wire_out_close(out, field, number);
}

/* A text that no other entry has: "s17s". */
static void put_unique_text(struct wire_out *out, char letter)
{
    static uint32_t texts;
    uint8_t *to = wire_out_room(out, 16);
    out->size += (size_t)snprintf((char *)to, 16, "%c%u%c", letter, texts++, letter);
}

static void put_value(struct wire_out *out)
{
    struct wire_out_field value = wire_out_open(out, KEY_VALUE_AND_UNIT_VALUE, 16);
    struct wire_out_field text = wire_out_open(out, ANY_VALUE_STRING, 16);
    put_unique_text(out, 'v');
    wire_out_close(out, text, ANY_VALUE_STRING);
    wire_out_close(out, value, KEY_VALUE_AND_UNIT_VALUE);
}

static void put_location(struct wire_out *out, const struct random_client *client)
{
    put_number(out, LOCATION_MAPPING_INDEX, any_index(client, DICTIONARY_MAPPING_TABLE));
    put_number(out, LOCATION_ADDRESS, random_below(VALUES));
    for (uint32_t i = random_below(3); i > 0; i--) {
        struct wire_out_field line = wire_out_open(out, LOCATION_LINES, random_below(300));
        put_number(out, LINE_FUNCTION_INDEX, any_index(client, DICTIONARY_FUNCTION_TABLE));
        put_number(out, LINE_LINE, random_below(VALUES));
        wire_out_close(out, line, LOCATION_LINES);
    }
    put_indices(out, LOCATION_ATTRIBUTE_INDICES, client, DICTIONARY_ATTRIBUTE_TABLE,
                random_below(2));
}

static void put_link(struct wire_out *out)
{
    uint8_t id[TRACE_ID_SIZE] = {(uint8_t)random_below(40)};
    struct slice trace_id = slice_of(id, TRACE_ID_SIZE), span_id = slice_of(id, SPAN_ID_SIZE);
    uint8_t *to = wire_out_room(out, TRACE_ID_SIZE + SPAN_ID_SIZE + 2 * WIRE_HEADER_MAX);
    to = wire_write_bytes(to, LINK_TRACE_ID, trace_id);
    to = wire_write_bytes(to, LINK_SPAN_ID, span_id);
    out->size = (size_t)(to - out->data);
}

static void put_entry(struct wire_out *out, const struct random_client *client, int table)
{
    switch (table) {
    case DICTIONARY_MAPPING_TABLE:
        put_number(out, MAPPING_MEMORY_START, random_below(VALUES));
        put_number(out, MAPPING_FILENAME_STRINDEX, any_index(client, DICTIONARY_STRING_TABLE));
        put_indices(out, MAPPING_ATTRIBUTE_INDICES, client, DICTIONARY_ATTRIBUTE_TABLE,
                    random_below(3));
        break;
    case DICTIONARY_LOCATION_TABLE:
        put_location(out, client);
        break;
    case DICTIONARY_FUNCTION_TABLE:
        put_number(out, FUNCTION_NAME_STRINDEX, any_index(client, DICTIONARY_STRING_TABLE));
        put_number(out, FUNCTION_FILENAME_STRINDEX, any_index(client, DICTIONARY_STRING_TABLE));
        break;
    case DICTIONARY_LINK_TABLE:
        put_link(out);
        break;
    case DICTIONARY_ATTRIBUTE_TABLE:
        put_number(out, KEY_VALUE_AND_UNIT_KEY_STRINDEX,
                   any_index(client, DICTIONARY_STRING_TABLE));
        put_number(out, KEY_VALUE_AND_UNIT_UNIT_STRINDEX,
                   any_index(client, DICTIONARY_STRING_TABLE));
        if (client->texts_are_unique)
            put_value(out);
        break;
    case DICTIONARY_STACK_TABLE:
        put_indices(out, STACK_LOCATION_INDICES, client, DICTIONARY_LOCATION_TABLE,
                    random_below(9));
        break;
    default:
        if (client->texts_are_unique) {
            put_unique_text(out, 's');
            break;
        }
        wire_out_put(out, slice_of("a name of some length, as they have", 20 + random_below(15)));
    }
}

static void grow_table(struct random_client *client, int table, uint32_t count)
{
    struct wire_out *out = &client->tables[table];
    for (; count > 0 && client->counts[table] < TABLE_MAX; count--) {
        struct wire_out_field entry = wire_out_open(out, (uint32_t)table, random_below(300));
        if (client->counts[table] > 0) /* the first entry is the zero entry */
            put_entry(out, client, table);
        wire_out_close(out, entry, (uint32_t)table);
        client->counts[table]++;
    }
}

/* Grows the tables in any order, so that entries may refer to all existing ones. */
static void grow_tables(struct random_client *client)
{
    for (int i = 0; i < 10; i++)
        grow_table(client, 1 + (int)random_below(DICTIONARY_TABLE_COUNT - 1), random_below(12));
}

static void clear_table(struct random_client *client, int table)
{
    client->tables[table].size = 0;
    client->counts[table] = 0;
}

void random_client_begin(struct random_client *client)
{
    for (int table = 1; table < DICTIONARY_TABLE_COUNT; table++)
        clear_table(client, table);
    for (int table = 1; table < DICTIONARY_TABLE_COUNT; table++)
        grow_table(client, table, 1);
    grow_tables(client);
}

void random_client_change(struct random_client *client)
{
    enum { STAYS, GROWS, OTHER_LINKS, OTHER_STRINGS, BEGINS, CHANGES };
    uint32_t strings = client->counts[DICTIONARY_STRING_TABLE];
    switch (random_below(CHANGES + 2)) {
    case GROWS:
        grow_tables(client);
        break;
    case OTHER_LINKS:
        clear_table(client, DICTIONARY_LINK_TABLE);
        grow_table(client, DICTIONARY_LINK_TABLE, 1 + random_below(20));
        break;
    case OTHER_STRINGS: /* changes all tables that refer to strings */
        clear_table(client, DICTIONARY_STRING_TABLE);
        grow_table(client, DICTIONARY_STRING_TABLE, strings);
        break;
    case BEGINS:
        if (random_below(4) == 0)
            random_client_begin(client);
        break;
    default: /* STAYS */
        break;
    }
}

/* ---- requests ---- */

static void put_values(struct wire_out *out, uint32_t count)
{
    struct wire_out_field list = wire_out_open(out, SAMPLE_VALUES, count);
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *to = wire_out_room(out, WIRE_HEADER_MAX);
        uint64_t value = random_below(20) ? random_below(100000) : (uint64_t)INT64_MAX / 2;
        out->size += (size_t)(wire_write_varint(to, random_below(9) ? value : 0 - value) - to);
    }
    wire_out_close(out, list, SAMPLE_VALUES);
}

/* Writes timestamps packed, or one by one. */
static void put_timestamps(struct wire_out *out, uint32_t count)
{
    bool is_packed = random_below(4) > 0;
    struct wire_out_field list;
    if (is_packed)
        list = wire_out_open(out, SAMPLE_TIMESTAMPS_UNIX_NANO, (size_t)count * 8);
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *to = wire_out_room(out, WIRE_HEADER_MAX), *start = to;
        to = wire_write_fixed64(to, SAMPLE_TIMESTAMPS_UNIX_NANO, random_below(1u << 30));
        if (is_packed)
            memmove(start, to - 8, 8);
        out->size += is_packed ? 8 : (size_t)(to - start);
    }
    if (is_packed)
        wire_out_close(out, list, SAMPLE_TIMESTAMPS_UNIX_NANO);
}

/* Writes one value, or timestamps, or pairs of both. */
static void put_shape(struct wire_out *out)
{
    uint32_t count = 1 + random_below(4);
    switch (random_below(4)) {
    case 0:
        put_timestamps(out, count);
        break;
    case 1:
        put_timestamps(out, count);
        put_values(out, count);
        break;
    case 2:
        put_values(out, count);
        break;
    default:
        put_values(out, 1);
    }
}

static void put_sample(struct wire_out *out, const struct random_client *client)
{
    struct random_client few = *client;
    for (int table = 1; client->samples_are_alike && table < DICTIONARY_TABLE_COUNT; table++)
        few.counts[table] = client->counts[table] < 3 ? client->counts[table] : 3;
    client = &few;
    struct wire_out_field sample = wire_out_open(out, PROFILE_SAMPLES, 10);
    put_number(out, SAMPLE_STACK_INDEX, any_index(client, DICTIONARY_STACK_TABLE));
    put_indices(out, SAMPLE_ATTRIBUTE_INDICES, client, DICTIONARY_ATTRIBUTE_TABLE, random_below(3));
    put_number(out, SAMPLE_LINK_INDEX, any_index(client, DICTIONARY_LINK_TABLE));
    if (client->shapes_differ)
        put_shape(out);
    else
        wire_out_varint(out, SAMPLE_VALUES, random_below(100000));
    wire_out_close(out, sample, PROFILE_SAMPLES);
}

static void put_value_type(struct wire_out *out, const struct random_client *client,
                           uint32_t number)
{
    struct wire_out_field type = wire_out_open(out, number, 2);
    put_number(out, VALUE_TYPE_TYPE_STRINDEX, any_index(client, DICTIONARY_STRING_TABLE));
    put_number(out, VALUE_TYPE_UNIT_STRINDEX, any_index(client, DICTIONARY_STRING_TABLE));
    wire_out_close(out, type, number);
}

static void put_profile(struct wire_out *out, const struct random_client *client)
{
    struct wire_out_field profile = wire_out_open(out, SCOPE_PROFILES_PROFILES, 400);
    uint32_t samples = random_below(30);
    put_value_type(out, client, PROFILE_SAMPLE_TYPE);
    while (samples-- > 0)
        put_sample(out, client);
    put_number(out, PROFILE_DURATION_NANO, random_below(VALUES));
    put_value_type(out, client, PROFILE_PERIOD_TYPE);
    put_indices(out, PROFILE_ATTRIBUTE_INDICES, client, DICTIONARY_ATTRIBUTE_TABLE,
                random_below(3));
    wire_out_close(out, profile, SCOPE_PROFILES_PROFILES);
}

static void put_group(struct wire_out *out, const struct random_client *client)
{
    struct wire_out_field group = wire_out_open(out, PROFILES_RESOURCE_PROFILES, 1000);
    struct wire_out_field scope = wire_out_open(out, RESOURCE_PROFILES_SCOPE_PROFILES, 1000);
    for (uint32_t i = random_below(3); i > 0; i--)
        put_profile(out, client);
    wire_out_close(out, scope, RESOURCE_PROFILES_SCOPE_PROFILES);
    put_text(out, RESOURCE_PROFILES_SCHEMA_URL, random_below(VALUES));
    wire_out_close(out, group, PROFILES_RESOURCE_PROFILES);
}

/* Writes the tables one after another, or one of them in two pieces. */
static void put_dictionary(struct wire_out *out, const struct random_client *client)
{
    struct wire_out_field dictionary = wire_out_open(out, PROFILES_DICTIONARY, 10000);
    for (int table = 1; table < DICTIONARY_TABLE_COUNT; table++) {
        const struct wire_out *entries = &client->tables[table];
        wire_out_put(out, slice_of(entries->data, entries->size));
    }
    if (random_below(10) == 0) {
        struct wire_out_field entry = wire_out_open(out, DICTIONARY_STRING_TABLE, 1);
        wire_out_put(out, SLICE("apart"));
        wire_out_close(out, entry, DICTIONARY_STRING_TABLE);
    }
    wire_out_close(out, dictionary, PROFILES_DICTIONARY);
}

struct buffer *random_request(const struct random_client *client, struct budget *budget)
{
    struct wire_out out = {0};
    bool dictionary_first = random_below(2);
    if (dictionary_first)
        put_dictionary(&out, client);
    for (uint32_t i = random_below(3); i > 0; i--)
        put_group(&out, client);
    if (!dictionary_first)
        put_dictionary(&out, client);
    struct buffer *request = buffer_new_charged(out.size, budget);
    buffer_append(request, out.data, out.size, out.size);
    wire_out_deinit(&out);
    return request;
}

void random_client_deinit(struct random_client *client)
{
    for (int table = 0; table < DICTIONARY_TABLE_COUNT; table++)
        wire_out_deinit(&client->tables[table]);
}
