/* Clients send random requests, which are merged whole and in parts. Their dictionaries stay,
 * grow, change in one table or start anew. Each result must have the same samples as its input,
 * with every index resolved by protobuf-c. */
#include "core/base/budget.h"
#include "core/base/hash.h"
#include "core/data/normalise.h"
#include "core/data/profiles_merge.h"
#include "core/data/scan.h"
#include "core/data/wire_out.h"
#include "tests/unit/canonical_profiles.h"

#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

enum { CLIENTS = 3, STEPS = 3000, TABLE_MAX = 120, VALUES = 6 };

static struct budget budget;
static uint64_t state = 1;

static uint32_t below(uint32_t limit)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((state >> 33) % limit);
}

/* ---- clients ---- */

struct client {
    struct wire_out tables[DICTIONARY_TABLE_COUNT]; /* encoded entries, concatenated */
    uint32_t counts[DICTIONARY_TABLE_COUNT];
};

static uint32_t any_index(const struct client *client, int table)
{
    return below(client->counts[table]);
}

/* Writes a number; sometimes also a zero. */
static void put_number(struct wire_out *out, uint32_t number, uint64_t value)
{
    if (value != 0 || below(8) == 0)
        wire_out_varint(out, number, value);
}

/* Writes indices packed, or one by one. */
static void put_indices(struct wire_out *out, uint32_t number, const struct client *client,
                        int table, uint32_t count)
{
    if (count == 0)
        return;
    if (below(4) == 0) {
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

static void put_location(struct wire_out *out, const struct client *client)
{
    put_number(out, LOCATION_MAPPING_INDEX, any_index(client, DICTIONARY_MAPPING_TABLE));
    put_number(out, LOCATION_ADDRESS, below(VALUES));
    for (uint32_t i = below(3); i > 0; i--) {
        struct wire_out_field line = wire_out_open(out, LOCATION_LINES, below(300));
        put_number(out, LINE_FUNCTION_INDEX, any_index(client, DICTIONARY_FUNCTION_TABLE));
        put_number(out, LINE_LINE, below(VALUES));
        wire_out_close(out, line, LOCATION_LINES);
    }
    put_indices(out, LOCATION_ATTRIBUTE_INDICES, client, DICTIONARY_ATTRIBUTE_TABLE, below(2));
}

static void put_link(struct wire_out *out)
{
    uint8_t id[TRACE_ID_SIZE] = {(uint8_t)below(40)};
    struct slice trace_id = slice_of(id, TRACE_ID_SIZE), span_id = slice_of(id, SPAN_ID_SIZE);
    uint8_t *to = wire_out_room(out, TRACE_ID_SIZE + SPAN_ID_SIZE + 2 * WIRE_HEADER_MAX);
    to = wire_write_bytes(to, LINK_TRACE_ID, trace_id);
    to = wire_write_bytes(to, LINK_SPAN_ID, span_id);
    out->size = (size_t)(to - out->data);
}

static void put_entry(struct wire_out *out, const struct client *client, int table)
{
    switch (table) {
    case DICTIONARY_MAPPING_TABLE:
        put_number(out, MAPPING_MEMORY_START, below(VALUES));
        put_number(out, MAPPING_FILENAME_STRINDEX, any_index(client, DICTIONARY_STRING_TABLE));
        put_indices(out, MAPPING_ATTRIBUTE_INDICES, client, DICTIONARY_ATTRIBUTE_TABLE, below(3));
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
        break;
    case DICTIONARY_STACK_TABLE:
        put_indices(out, STACK_LOCATION_INDICES, client, DICTIONARY_LOCATION_TABLE, below(9));
        break;
    default:
        wire_out_put(out, slice_of("a name of some length, as they have", 20 + below(15)));
    }
}

static void grow_table(struct client *client, int table, uint32_t count)
{
    struct wire_out *out = &client->tables[table];
    for (; count > 0 && client->counts[table] < TABLE_MAX; count--) {
        struct wire_out_field entry = wire_out_open(out, (uint32_t)table, below(300));
        if (client->counts[table] > 0) /* the first entry is the zero entry */
            put_entry(out, client, table);
        wire_out_close(out, entry, (uint32_t)table);
        client->counts[table]++;
    }
}

/* Grows the tables in any order, so that entries may refer to all existing ones. */
static void grow_tables(struct client *client)
{
    for (int i = 0; i < 10; i++)
        grow_table(client, 1 + (int)below(DICTIONARY_TABLE_COUNT - 1), below(12));
}

static void clear_table(struct client *client, int table)
{
    client->tables[table].size = 0;
    client->counts[table] = 0;
}

static void begin_client(struct client *client)
{
    for (int table = 1; table < DICTIONARY_TABLE_COUNT; table++)
        clear_table(client, table);
    for (int table = 1; table < DICTIONARY_TABLE_COUNT; table++)
        grow_table(client, table, 1);
    grow_tables(client);
}

static void change_client(struct client *client)
{
    enum { STAYS, GROWS, OTHER_LINKS, OTHER_STRINGS, BEGINS, CHANGES };
    uint32_t strings = client->counts[DICTIONARY_STRING_TABLE];
    switch (below(CHANGES + 2)) {
    case GROWS:
        grow_tables(client);
        break;
    case OTHER_LINKS:
        clear_table(client, DICTIONARY_LINK_TABLE);
        grow_table(client, DICTIONARY_LINK_TABLE, 1 + below(20));
        break;
    case OTHER_STRINGS: /* changes all tables that refer to strings */
        clear_table(client, DICTIONARY_STRING_TABLE);
        grow_table(client, DICTIONARY_STRING_TABLE, strings);
        break;
    case BEGINS:
        if (below(4) == 0)
            begin_client(client);
        break;
    default: /* STAYS */
        break;
    }
}

/* ---- requests ---- */

static void put_sample(struct wire_out *out, const struct client *client)
{
    struct wire_out_field sample = wire_out_open(out, PROFILE_SAMPLES, 10);
    put_number(out, SAMPLE_STACK_INDEX, any_index(client, DICTIONARY_STACK_TABLE));
    put_indices(out, SAMPLE_ATTRIBUTE_INDICES, client, DICTIONARY_ATTRIBUTE_TABLE, below(3));
    put_number(out, SAMPLE_LINK_INDEX, any_index(client, DICTIONARY_LINK_TABLE));
    wire_out_varint(out, SAMPLE_VALUES, below(100000));
    wire_out_close(out, sample, PROFILE_SAMPLES);
}

static void put_value_type(struct wire_out *out, const struct client *client, uint32_t number)
{
    struct wire_out_field type = wire_out_open(out, number, 2);
    put_number(out, VALUE_TYPE_TYPE_STRINDEX, any_index(client, DICTIONARY_STRING_TABLE));
    put_number(out, VALUE_TYPE_UNIT_STRINDEX, any_index(client, DICTIONARY_STRING_TABLE));
    wire_out_close(out, type, number);
}

static void put_profile(struct wire_out *out, const struct client *client)
{
    struct wire_out_field profile = wire_out_open(out, SCOPE_PROFILES_PROFILES, 400);
    uint32_t samples = below(30);
    put_value_type(out, client, PROFILE_SAMPLE_TYPE);
    while (samples-- > 0)
        put_sample(out, client);
    put_number(out, PROFILE_DURATION_NANO, below(VALUES));
    put_value_type(out, client, PROFILE_PERIOD_TYPE);
    put_indices(out, PROFILE_ATTRIBUTE_INDICES, client, DICTIONARY_ATTRIBUTE_TABLE, below(3));
    wire_out_close(out, profile, SCOPE_PROFILES_PROFILES);
}

static void put_group(struct wire_out *out, const struct client *client)
{
    struct wire_out_field group = wire_out_open(out, PROFILES_RESOURCE_PROFILES, 1000);
    struct wire_out_field scope = wire_out_open(out, RESOURCE_PROFILES_SCOPE_PROFILES, 1000);
    for (uint32_t i = below(3); i > 0; i--)
        put_profile(out, client);
    wire_out_close(out, scope, RESOURCE_PROFILES_SCOPE_PROFILES);
    put_text(out, RESOURCE_PROFILES_SCHEMA_URL, below(VALUES));
    wire_out_close(out, group, PROFILES_RESOURCE_PROFILES);
}

/* Writes the tables one after another, or one of them in two pieces. */
static void put_dictionary(struct wire_out *out, const struct client *client)
{
    struct wire_out_field dictionary = wire_out_open(out, PROFILES_DICTIONARY, 10000);
    for (int table = 1; table < DICTIONARY_TABLE_COUNT; table++) {
        const struct wire_out *entries = &client->tables[table];
        wire_out_put(out, slice_of(entries->data, entries->size));
    }
    if (below(10) == 0) {
        struct wire_out_field entry = wire_out_open(out, DICTIONARY_STRING_TABLE, 1);
        wire_out_put(out, SLICE("apart"));
        wire_out_close(out, entry, DICTIONARY_STRING_TABLE);
    }
    wire_out_close(out, dictionary, PROFILES_DICTIONARY);
}

static struct buffer *make_request(const struct client *client)
{
    struct wire_out out = {0};
    bool dictionary_first = below(2);
    if (dictionary_first)
        put_dictionary(&out, client);
    for (uint32_t i = below(3); i > 0; i--)
        put_group(&out, client);
    if (!dictionary_first)
        put_dictionary(&out, client);
    struct buffer *request = buffer_new_charged(out.size, &budget);
    buffer_append(request, out.data, out.size, out.size);
    wire_out_deinit(&out);
    return request;
}

/* ---- merging ---- */

/* Adds a line for each sample of a request or of a part of it. */
static void expect(struct text *expected, struct buffer *request, uint32_t first, uint32_t count)
{
    struct text all = {0};
    canonical_profiles(buffer_slice(request), CANONICAL_SAMPLES, &all);
    const char *from = text_string(&all);
    for (uint32_t i = 0; i < first; i++)
        from = strchr(from, '\n') + 1;
    const char *end = from;
    for (uint32_t i = 0; i < count; i++)
        end = strchr(end, '\n') + 1;
    text_append_slice(expected, slice_of(from, (size_t)(end - from)));
    text_deinit(&all);
}

struct scenario {
    struct profiles_merge *merge;
    struct text expected;
    uint32_t items;
};

static void check_finish(struct scenario *scenario)
{
    struct scan_result scan;
    struct error err = {0};
    struct text got = {0};
    assert_int_equal(profiles_merge_items(scenario->merge), scenario->items);
    struct buffer *result = profiles_merge_finish(scenario->merge);
    if (!scan_profiles(buffer_slice(result), &scan_limits_default, &scan, &err))
        fail_msg("%s", err.text);
    assert_false(normalise_needed(&scan));
    assert_int_equal(scan.items, scenario->items);
    canonical_profiles(buffer_slice(result), CANONICAL_SAMPLES, &got);
    assert_string_equal(text_string(&got), text_string(&scenario->expected));
    text_deinit(&got);
    buffer_unref(result);
    text_clear(&scenario->expected);
    scenario->items = 0;
}

static void add_whole(struct scenario *scenario, struct buffer *request, uint32_t items)
{
    expect(&scenario->expected, request, 0, items);
    profiles_merge_add(scenario->merge, request);
    scenario->items += items;
}

/* A result may also end between two parts. */
static void add_parts(struct scenario *scenario, struct buffer *request, uint32_t items)
{
    struct profiles_source *source = profiles_source_new(scenario->merge, request);
    assert_int_equal(profiles_source_items(source), items);
    for (uint32_t first = 0; first < items;) {
        uint32_t count = 1 + below(items - first);
        expect(&scenario->expected, request, first, count);
        profiles_source_add(source, first, count);
        scenario->items += count;
        first += count;
        if (below(3) == 0)
            check_finish(scenario);
    }
    profiles_source_free(source);
}

static void send(struct scenario *scenario, struct client *client)
{
    struct scan_result scan;
    struct error err = {0};
    change_client(client);
    struct buffer *request = make_request(client);
    if (!scan_profiles(buffer_slice(request), &scan_limits_default, &scan, &err))
        fail_msg("%s", err.text);
    assert_false(normalise_needed(&scan));
    if (below(5) == 0)
        add_parts(scenario, request, scan.items);
    else
        add_whole(scenario, request, scan.items);
    buffer_unref(request);
}

static void says_what_was_added(void **unused)
{
    (void)unused;
    struct client clients[CLIENTS] = {0};
    struct scenario scenario = {.merge = profiles_merge_new(&budget)};
    for (int i = 0; i < CLIENTS; i++)
        begin_client(&clients[i]);
    for (int step = 0, client = 0; step < STEPS; step++) {
        client = below(3) > 0 ? client : (int)below(CLIENTS); /* often the same client again */
        send(&scenario, &clients[client]);
        if (below(6) == 0)
            check_finish(&scenario);
    }
    check_finish(&scenario);
    profiles_merge_free(scenario.merge);
    text_deinit(&scenario.expected);
    for (int i = 0; i < CLIENTS; i++)
        for (int table = 0; table < DICTIONARY_TABLE_COUNT; table++)
            wire_out_deinit(&clients[i].tables[table]);
    assert_int_equal(budget_used(&budget), 0);
}

int main(void)
{
    hash_init();
    scan_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_what_was_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
