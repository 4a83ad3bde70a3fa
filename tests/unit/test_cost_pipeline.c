/*
 * The cost per byte of an OTLP request behind the receiver, if its sender makes it as expensive as
 * possible.
 *
 * A shape describes a request of about the given size: one table entry or several large parts take
 * half of the bytes, references to them the other half. Each shape goes through each stage of its
 * signal. As a test, the program checks what every machine can: peak memory stays below a multiple
 * of the request's size and grows in proportion to it, and quadratic work runs into the timeout.
 * With the arguments CASE SIZE [CASE SIZE ...] it runs each of these once, for tests/cost/run,
 * which counts the instructions of cost_send under callgrind. With `write CASE SIZE` it prints the
 * request, for tests/cost/replay.
 */
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/data/scan.h"
#include "core/data/unfold.h"
#include "core/data/wire_writer.h"
#include "tests/unit/cost_fields.h"
#include "tests/unit/cost_result.h"
#include "tests/unit/cost_stages.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* ---- writing requests ---- */

enum { TEXT_MAX = 32 << 20 };

/* Returns a text of zeros, which is also a decimal number. */
static struct slice long_text(size_t size)
{
    static uint8_t text[TEXT_MAX];
    if (text[0] == 0)
        memset(text, '0', sizeof text);
    assert(size <= sizeof text);
    return slice_of(text, size);
}

static void put_repeated(struct wire_writer *out, struct slice bytes, size_t size)
{
    for (size_t end = out->size + size; out->size < end;)
        wire_writer_raw(out, bytes);
}
#define PUT(out, ...)                                                                              \
    wire_writer_raw(                                                                               \
        out, slice_of((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})))

/* A list of `size` indices, each 1. */
static void put_ones(struct wire_writer *out, uint32_t number, size_t size)
{
    static uint8_t ones[TEXT_MAX];
    if (ones[0] == 0)
        memset(ones, 1, sizeof ones);
    wire_writer_bytes(out, number, slice_of(ones, size));
}

/* An entry of the attribute table: a key of the string table and an encoded AnyValue. */
static void put_attribute(struct wire_writer *out, uint32_t key, struct slice any)
{
    size_t entry = wire_writer_begin(out, DICTIONARY_ATTRIBUTE_TABLE);
    wire_writer_varint(out, KEY_VALUE_AND_UNIT_KEY_STRINDEX, key);
    wire_writer_bytes(out, KEY_VALUE_AND_UNIT_VALUE, any);
    wire_writer_varint(out, KEY_VALUE_AND_UNIT_UNIT_STRINDEX, key);
    wire_writer_end(out, entry);
}

static void put_text_attribute(struct wire_writer *out, uint32_t key, struct slice text)
{
    struct wire_writer any = {0};
    wire_writer_bytes(&any, ANY_VALUE_STRING, text);
    put_attribute(out, key, wire_writer_slice(&any));
    wire_writer_deinit(&any);
}

static void put_string(struct wire_writer *out, struct slice text)
{
    wire_writer_bytes(out, DICTIONARY_STRING_TABLE, text);
}

/* What a request consists of. 0 or empty: it has nothing of that kind. */
struct shape {
    const char *name;
    /* Writes the dictionary, whose entries may take `size` bytes. Tables have their zero
     * entries. */
    void (*tables)(struct wire_writer *out, size_t size);
    /* Writes reference `i`; called many times. */
    void (*reference)(struct wire_writer *out, uint32_t i);
    /* What encloses each reference and is repeated with it. */
    enum { EACH_SAMPLE, EACH_PROFILE, EACH_SCOPE, EACH_RESOURCE, ENTRIES } each;
    void (*resource)(struct wire_writer *out, size_t size); /* of the first one one */
    void (*profile)(struct wire_writer *out, size_t size);  /* of the first one */
    void (*scope)(struct wire_writer *out, size_t size);    /* of the first */
    void (*span)(struct wire_writer *out, size_t size);     /* the only one; its events are the
                                                               references */
};

static void begin_tables(struct wire_writer *out)
{
    for (int table = 1; table < DICTIONARY_TABLE_COUNT; table++)
        PUT(out, (uint8_t)(table << 3 | WIRE_BYTES), 0);
}

static void put_keys(struct wire_writer *out)
{
    put_string(out, SLICE("span id"));      /* 1: decimal */
    put_string(out, SLICE("span_id"));      /* 2 */
    put_string(out, SLICE("service.name")); /* 3 */
    put_string(out, SLICE("__name__"));     /* 4 */
    put_string(out, SLICE("plain"));        /* 5 */
}
enum { KEY_DECIMAL = 1, KEY_HEX, KEY_SERVICE, KEY_NAME, KEY_PLAIN, TEXT_A, TEXT_B };

/* ---- dictionaries ---- */

static void two_texts(struct wire_writer *out, size_t size)
{
    put_string(out, long_text(size / 2));
    put_string(out, long_text(size / 2));
}

static void two_values(struct wire_writer *out, size_t size, uint32_t key)
{
    put_text_attribute(out, key, long_text(size / 2));
    put_text_attribute(out, key, long_text(size / 2));
}

static void decimal_values(struct wire_writer *out, size_t size)
{
    two_values(out, size, KEY_DECIMAL);
}

static void hex_values(struct wire_writer *out, size_t size)
{
    two_values(out, size, KEY_HEX);
}

static void service_values(struct wire_writer *out, size_t size)
{
    two_values(out, size, KEY_SERVICE);
}

static void name_values(struct wire_writer *out, size_t size)
{
    two_values(out, size, KEY_NAME);
}

static void plain_values(struct wire_writer *out, size_t size)
{
    two_values(out, size, KEY_PLAIN);
}

static void repeated_value(struct wire_writer *out, size_t size, uint32_t key)
{
    struct wire_writer any = {0};
    static const uint8_t one[] = {ANY_VALUE_INT << 3 | WIRE_VARINT, 1};
    put_repeated(&any, slice_of(one, sizeof one), size);
    put_attribute(out, key, wire_writer_slice(&any));
    wire_writer_deinit(&any);
}

static void repeated_decimal(struct wire_writer *out, size_t size)
{
    repeated_value(out, size, KEY_DECIMAL);
}

static void repeated_name(struct wire_writer *out, size_t size)
{
    repeated_value(out, size, KEY_NAME);
}

static void array_value(struct wire_writer *out, size_t size, uint32_t key)
{
    struct wire_writer array = {0}, any = {0};
    static const uint8_t empty[] = {ARRAY_VALUE_VALUES << 3 | WIRE_BYTES, 0};
    put_repeated(&array, slice_of(empty, sizeof empty), size);
    wire_writer_bytes(&any, ANY_VALUE_ARRAY, wire_writer_slice(&array));
    put_attribute(out, key, wire_writer_slice(&any));
    wire_writer_deinit(&array);
    wire_writer_deinit(&any);
}

static void array_name(struct wire_writer *out, size_t size)
{
    array_value(out, size, KEY_NAME);
}

static void array_service(struct wire_writer *out, size_t size)
{
    array_value(out, size, KEY_SERVICE);
}

static void repeated_entry(struct wire_writer *out, uint8_t table, uint8_t number, size_t size)
{
    size_t entry = wire_writer_begin(out, table);
    uint8_t one[] = {(uint8_t)(number << 3 | WIRE_VARINT), 1};
    put_repeated(out, slice_of(one, sizeof one), size);
    wire_writer_end(out, entry);
}

static void repeated_attribute(struct wire_writer *out, size_t size)
{
    repeated_entry(out, DICTIONARY_ATTRIBUTE_TABLE, KEY_VALUE_AND_UNIT_KEY_STRINDEX, size);
}

static void large_link(struct wire_writer *out, size_t size)
{
    size_t entry = wire_writer_begin(out, DICTIONARY_LINK_TABLE);
    static const uint8_t id[] = {LINK_SPAN_ID << 3 | WIRE_BYTES, 8, 1, 2, 3, 4, 5, 6, 7, 8};
    put_repeated(out, slice_of(id, sizeof id), size);
    wire_writer_end(out, entry);
}

static void empty_link(struct wire_writer *out, size_t size)
{
    size_t entry = wire_writer_begin(out, DICTIONARY_LINK_TABLE);
    static const uint8_t id[] = {LINK_SPAN_ID << 3 | WIRE_BYTES, 0};
    put_repeated(out, slice_of(id, sizeof id), size);
    wire_writer_end(out, entry);
}

static void large_stack(struct wire_writer *out, size_t size)
{
    PUT(out, DICTIONARY_LOCATION_TABLE << 3 | WIRE_BYTES, 2, LOCATION_ADDRESS << 3, 7);
    size_t entry = wire_writer_begin(out, DICTIONARY_STACK_TABLE);
    put_ones(out, STACK_LOCATION_INDICES, size);
    wire_writer_end(out, entry);
}

enum { DISTINCT_MAX = 1000 }; /* frames of a stack that exporter pyroscope keeps */

/* Writes a stack of `count` locations: 1, 2, 3... An unused text takes the remaining bytes. */
static void put_distinct_stack(struct wire_writer *out, uint32_t count, size_t end)
{
    uint32_t locations[DISTINCT_MAX];
    for (uint32_t i = 0; i < count; i++)
        locations[i] = i + 1;
    size_t entry = wire_writer_begin(out, DICTIONARY_STACK_TABLE);
    wire_writer_packed_u32(out, STACK_LOCATION_INDICES, locations, count);
    wire_writer_end(out, entry);
    if (out->size < end)
        put_string(out, long_text(end - out->size));
}

static void distinct_locations(struct wire_writer *out, size_t size)
{
    size_t end = out->size + size;
    uint32_t count = size / 4 < DISTINCT_MAX ? (uint32_t)(size / 4) : DISTINCT_MAX;
    for (uint32_t i = 0; i < count; i++)
        PUT(out, DICTIONARY_LOCATION_TABLE << 3 | WIRE_BYTES, 0);
    put_distinct_stack(out, count, end);
}

/* Each location has a line of its own function, which has its own name. */
static void distinct_functions(struct wire_writer *out, size_t size)
{
    size_t end = out->size + size;
    uint32_t count = size / 24 < DISTINCT_MAX ? (uint32_t)(size / 24) : DISTINCT_MAX;
    for (uint32_t i = 0; i < count; i++) {
        put_string(out, slice_of((uint8_t[]){(uint8_t)('!' + i % 64), (uint8_t)('!' + i / 64)}, 2));
        size_t function = wire_writer_begin(out, DICTIONARY_FUNCTION_TABLE);
        wire_writer_varint(out, FUNCTION_NAME_STRINDEX, TEXT_A + i);
        wire_writer_end(out, function);
        size_t location = wire_writer_begin(out, DICTIONARY_LOCATION_TABLE);
        size_t line = wire_writer_begin(out, LOCATION_LINES);
        wire_writer_varint(out, LINE_FUNCTION_INDEX, i + 1);
        wire_writer_end(out, line);
        wire_writer_end(out, location);
    }
    put_distinct_stack(out, count, end);
}

/* Functions of equal names, locations of equal functions, and stacks of equal locations: as many
 * as there is room for. */
static uint32_t equal_stack_count;

static void equal_stacks(struct wire_writer *out, size_t size)
{
    size_t end = out->size + size;
    for (equal_stack_count = 0; out->size < end; equal_stack_count++) {
        uint32_t i = equal_stack_count;
        put_string(out, SLICE("a"));
        size_t function = wire_writer_begin(out, DICTIONARY_FUNCTION_TABLE);
        wire_writer_varint(out, FUNCTION_NAME_STRINDEX, TEXT_A + i);
        wire_writer_end(out, function);
        size_t location = wire_writer_begin(out, DICTIONARY_LOCATION_TABLE);
        size_t line = wire_writer_begin(out, LOCATION_LINES);
        wire_writer_varint(out, LINE_FUNCTION_INDEX, 1 + i);
        wire_writer_end(out, line);
        wire_writer_end(out, location);
        size_t stack = wire_writer_begin(out, DICTIONARY_STACK_TABLE);
        wire_writer_packed_u32(out, STACK_LOCATION_INDICES, &(uint32_t){1 + i}, 1);
        wire_writer_end(out, stack);
    }
}

static void put_stack(struct wire_writer *out)
{
    PUT(out, DICTIONARY_STACK_TABLE << 3 | WIRE_BYTES, 3, STACK_LOCATION_INDICES << 3 | WIRE_BYTES,
        1, 1);
}

static void large_location(struct wire_writer *out, size_t size)
{
    size_t entry = wire_writer_begin(out, DICTIONARY_LOCATION_TABLE);
    static const uint8_t line[] = {LOCATION_LINES << 3 | WIRE_BYTES, 2, LINE_LINE << 3, 1};
    put_repeated(out, slice_of(line, sizeof line), size);
    wire_writer_end(out, entry);
    put_stack(out);
}

static void location_attributes(struct wire_writer *out, size_t size)
{
    put_text_attribute(out, KEY_PLAIN, SLICE("x"));
    size_t entry = wire_writer_begin(out, DICTIONARY_LOCATION_TABLE);
    put_ones(out, LOCATION_ATTRIBUTE_INDICES, size);
    wire_writer_end(out, entry);
    put_stack(out);
}

static void mapping_attributes(struct wire_writer *out, size_t size)
{
    put_text_attribute(out, KEY_PLAIN, SLICE("x"));
    size_t entry = wire_writer_begin(out, DICTIONARY_MAPPING_TABLE);
    wire_writer_varint(out, MAPPING_MEMORY_START, 1);
    put_ones(out, MAPPING_ATTRIBUTE_INDICES, size);
    wire_writer_end(out, entry);
    PUT(out, DICTIONARY_LOCATION_TABLE << 3 | WIRE_BYTES, 2, LOCATION_MAPPING_INDEX << 3, 1);
    put_stack(out);
}

/* A function with a long name, on a stack. */
static void function_name(struct wire_writer *out, size_t size)
{
    two_texts(out, size);
    PUT(out, DICTIONARY_FUNCTION_TABLE << 3 | WIRE_BYTES, 6, FUNCTION_NAME_STRINDEX << 3, TEXT_A,
        FUNCTION_SYSTEM_NAME_STRINDEX << 3, TEXT_B, FUNCTION_FILENAME_STRINDEX << 3, TEXT_B);
    PUT(out, DICTIONARY_LOCATION_TABLE << 3 | WIRE_BYTES, 4, LOCATION_LINES << 3 | WIRE_BYTES, 2,
        LINE_FUNCTION_INDEX << 3, 1);
    put_stack(out);
}

/* ---- references ---- */

static void one_value(struct wire_writer *out)
{
    PUT(out, SAMPLE_VALUES << 3 | WIRE_BYTES, 1, 1);
}

static void attribute_1_or_2(struct wire_writer *out, uint32_t i)
{
    PUT(out, SAMPLE_ATTRIBUTE_INDICES << 3 | WIRE_BYTES, 1, (uint8_t)(1 + i % 2));
    one_value(out);
}

/* Samples that cannot be merged into one row. */
static void attribute_and_time(struct wire_writer *out, uint32_t i)
{
    PUT(out, SAMPLE_ATTRIBUTE_INDICES << 3 | WIRE_BYTES, 1, 1);
    PUT(out, SAMPLE_TIMESTAMPS_UNIX_NANO << 3 | WIRE_BYTES, 8);
    wire_writer_raw(out, slice_of(&(uint64_t){i}, 8));
}

static void attribute_1(struct wire_writer *out, uint32_t i)
{
    (void)i;
    PUT(out, SAMPLE_ATTRIBUTE_INDICES << 3 | WIRE_BYTES, 1, 1);
    one_value(out);
}

static void link_1(struct wire_writer *out, uint32_t i)
{
    (void)i;
    PUT(out, SAMPLE_LINK_INDEX << 3, 1);
    one_value(out);
}

static void stack_1(struct wire_writer *out, uint32_t i)
{
    (void)i;
    PUT(out, SAMPLE_STACK_INDEX << 3, 1);
    one_value(out);
}

static void one_of_equal_stacks(struct wire_writer *out, uint32_t i)
{
    wire_writer_varint(out, SAMPLE_STACK_INDEX, 1 + i % equal_stack_count);
    one_value(out);
}

static void plain_sample(struct wire_writer *out)
{
    PUT(out, PROFILE_SAMPLES << 3 | WIRE_BYTES, 3);
    one_value(out);
}

static void stack_sample(struct wire_writer *out)
{
    PUT(out, PROFILE_SAMPLES << 3 | WIRE_BYTES, 5, SAMPLE_STACK_INDEX << 3, 1);
    one_value(out);
}

static uint8_t text_1_or_2(uint32_t i)
{
    return (uint8_t)(i % 2 ? TEXT_A : TEXT_B);
}

static void put_type(struct wire_writer *out, uint8_t field, uint8_t number, uint32_t i)
{
    PUT(out, (uint8_t)(field << 3 | WIRE_BYTES), 2, (uint8_t)(number << 3), text_1_or_2(i));
    plain_sample(out);
}

static void profile_type(struct wire_writer *out, uint32_t i)
{
    put_type(out, PROFILE_SAMPLE_TYPE, VALUE_TYPE_TYPE_STRINDEX, i);
}

static void profile_unit(struct wire_writer *out, uint32_t i)
{
    put_type(out, PROFILE_SAMPLE_TYPE, VALUE_TYPE_UNIT_STRINDEX, i);
}

static void profile_period_type(struct wire_writer *out, uint32_t i)
{
    put_type(out, PROFILE_PERIOD_TYPE, VALUE_TYPE_TYPE_STRINDEX, i);
}

static void profile_period_unit(struct wire_writer *out, uint32_t i)
{
    put_type(out, PROFILE_PERIOD_TYPE, VALUE_TYPE_UNIT_STRINDEX, i);
}

static void profile_attribute(struct wire_writer *out, uint32_t i)
{
    PUT(out, PROFILE_ATTRIBUTE_INDICES << 3 | WIRE_BYTES, 1, (uint8_t)(1 + i % 2));
    plain_sample(out);
}

static void profile_attribute_1(struct wire_writer *out, uint32_t i)
{
    (void)i;
    PUT(out, PROFILE_ATTRIBUTE_INDICES << 3 | WIRE_BYTES, 1, 1);
    plain_sample(out);
}

/* Each profile becomes a pprof of its own. */
static void profile_with_stack(struct wire_writer *out, uint32_t i)
{
    wire_writer_varint(out, PROFILE_PERIOD, i + 1);
    stack_sample(out);
}

static void empty_profile(struct wire_writer *out, uint32_t i)
{
    (void)i;
    plain_sample(out);
}

static void wide_sample(struct wire_writer *out, size_t size)
{
    size_t sample = wire_writer_begin(out, PROFILE_SAMPLES);
    one_value(out);
    put_ones(out, SAMPLE_ATTRIBUTE_INDICES, size);
    wire_writer_end(out, sample);
}

static void wide_profile(struct wire_writer *out, size_t size)
{
    put_ones(out, PROFILE_ATTRIBUTE_INDICES, size);
}

static void large_resource(struct wire_writer *out, size_t size)
{
    size_t entry = wire_writer_begin(out, RESOURCE_ATTRIBUTES);
    size_t value = out->size + 8;
    wire_writer_bytes(out, KEY_VALUE_KEY, SLICE("k"));
    (void)value;
    size_t any = wire_writer_begin(out, KEY_VALUE_VALUE);
    wire_writer_bytes(out, ANY_VALUE_STRING, long_text(size));
    wire_writer_end(out, any);
    wire_writer_end(out, entry);
}

static void put_attributes(struct wire_writer *out, uint32_t number, size_t size)
{
    for (size_t end = out->size + size; out->size < end;) {
        size_t entry = wire_writer_begin(out, number);
        char key[16];
        int length = snprintf(key, sizeof key, "%zx", out->size);
        wire_writer_bytes(out, KEY_VALUE_KEY, slice_of(key, (size_t)length));
        PUT(out, KEY_VALUE_VALUE << 3 | WIRE_BYTES, 2, ANY_VALUE_INT << 3, 1);
        wire_writer_end(out, entry);
    }
}

static void many_attributes(struct wire_writer *out, size_t size)
{
    put_attributes(out, RESOURCE_ATTRIBUTES, size);
}

static void large_scope(struct wire_writer *out, size_t size)
{
    wire_writer_bytes(out, SCOPE_NAME, long_text(size));
}

/* ---- profiles ---- */

static void one_of_each(struct wire_writer *out, const struct shape *shape, uint32_t i)
{
    if (shape->each == EACH_PROFILE || shape->each == EACH_SCOPE || shape->each == EACH_RESOURCE) {
        size_t profile = wire_writer_begin(out, SCOPE_PROFILES_PROFILES);
        shape->reference(out, i);
        wire_writer_end(out, profile);
    } else {
        size_t sample = wire_writer_begin(out, PROFILE_SAMPLES);
        shape->reference(out, i);
        wire_writer_end(out, sample);
    }
}

static void put_part(struct wire_writer *out, uint32_t number,
                     void (*part)(struct wire_writer *out, size_t size), size_t size)
{
    if (!part)
        return;
    size_t begun = wire_writer_begin(out, number);
    part(out, size);
    wire_writer_end(out, begun);
}

enum { ITEMS_MAX = 1000000 }; /* scan_limits_default */

/* Returns how many references a request of this size may have. A request with more would be
 * refused. */
static size_t references_max(const struct shape *shape, bool is_traces, size_t size)
{
    if (shape->each == EACH_SAMPLE)
        return ITEMS_MAX;
    if (is_traces)
        return UNFOLD_SCOPES_MAX;
    if (shape->resource && shape->each == EACH_SCOPE) /* each scope repeats its labels */
        return size * UNFOLD_PER_BYTE / (size < UNFOLD_LABELS_MAX ? size : UNFOLD_LABELS_MAX);
    size_t more = shape->tables || shape->resource || shape->scope ? size : 0;
    size_t profiles = UNFOLD_PROFILES_SPARE + more / (UNFOLD_BYTES_PER_PROFILE + 1);
    return profiles < UNFOLD_PROFILES_MAX ? profiles : UNFOLD_PROFILES_MAX;
}

static size_t large_parts(const struct shape *shape)
{
    return (size_t)(shape->tables != NULL) + (shape->resource != NULL) + (shape->scope != NULL) +
           (shape->profile != NULL) + (shape->span != NULL);
}

static void write_profiles(struct wire_writer *out, const struct shape *shape, size_t size,
                           size_t part)
{
    static const uint32_t nesting[] = {PROFILES_RESOURCE_PROFILES, RESOURCE_PROFILES_SCOPE_PROFILES,
                                       SCOPE_PROFILES_PROFILES};
    size_t dictionary = wire_writer_begin(out, PROFILES_DICTIONARY), begun[3];
    size_t most = references_max(shape, false, size);
    begin_tables(out);
    put_keys(out);
    if (shape->tables)
        shape->tables(out, part);
    wire_writer_end(out, dictionary);
    uint32_t level = shape->each == EACH_SAMPLE ? 3u : shape->each == EACH_PROFILE ? 2u : 1u;
    if (shape->each == EACH_RESOURCE)
        level = 0;
    for (uint32_t i = 0; i < level; i++) {
        begun[i] = wire_writer_begin(out, nesting[i]);
        if (i == 0)
            put_part(out, RESOURCE_PROFILES_RESOURCE, shape->resource, part);
        if (i == 1)
            put_part(out, SCOPE_PROFILES_SCOPE, shape->scope, part);
        if (i == 2 && shape->profile)
            shape->profile(out, part);
    }
    for (uint32_t i = 0; out->size < size && i < most; i++) {
        size_t outer[2];
        for (uint32_t k = level; k < 2; k++)
            outer[k] = wire_writer_begin(out, nesting[k]);
        one_of_each(out, shape, i);
        for (uint32_t k = 2; k-- > level;)
            wire_writer_end(out, outer[k]);
    }
    while (level-- > 0)
        wire_writer_end(out, begun[level]);
}

static const struct shape profile_shapes[] = {
    {.name = "profile.sample_type.type",
     .tables = two_texts,
     .reference = profile_type,
     .each = EACH_PROFILE},
    {.name = "profile.sample_type.unit",
     .tables = two_texts,
     .reference = profile_unit,
     .each = EACH_PROFILE},
    {.name = "profile.period_type.type",
     .tables = two_texts,
     .reference = profile_period_type,
     .each = EACH_PROFILE},
    {.name = "profile.period_type.unit",
     .tables = two_texts,
     .reference = profile_period_unit,
     .each = EACH_PROFILE},
    {.name = "profile.attribute_indices.name",
     .tables = name_values,
     .reference = profile_attribute,
     .each = EACH_PROFILE},
    {.name = "profile.attribute_indices.name_repeated",
     .tables = repeated_name,
     .reference = profile_attribute_1,
     .each = EACH_PROFILE},
    {.name = "profile.attribute_indices.name_array",
     .tables = array_name,
     .reference = profile_attribute_1,
     .each = EACH_PROFILE},
    {.name = "profile.attribute_indices.decimal",
     .tables = decimal_values,
     .reference = profile_attribute,
     .each = EACH_PROFILE},
    {.name = "profile.attribute_indices.entry",
     .tables = repeated_attribute,
     .reference = profile_attribute_1,
     .each = EACH_PROFILE},
    {.name = "profile.attribute_indices.wide",
     .tables = plain_values,
     .reference = attribute_1,
     .each = EACH_SAMPLE,
     .profile = wide_profile},
    {.name = "profile", .tables = NULL, .reference = empty_profile, .each = EACH_PROFILE},
    {.name = "scope", .tables = NULL, .reference = empty_profile, .each = EACH_SCOPE},
    {.name = "resource", .tables = NULL, .reference = empty_profile, .each = EACH_RESOURCE},
    {.name = "resource.value.scope",
     .tables = NULL,
     .reference = empty_profile,
     .each = EACH_SCOPE,
     .resource = large_resource},
    {.name = "resource.attributes.scope",
     .tables = NULL,
     .reference = empty_profile,
     .each = EACH_SCOPE,
     .resource = many_attributes},
    {.name = "resource.value.profile",
     .tables = NULL,
     .reference = empty_profile,
     .each = EACH_PROFILE,
     .resource = large_resource},
    {.name = "resource.value.sample",
     .tables = plain_values,
     .reference = attribute_1_or_2,
     .each = EACH_SAMPLE,
     .resource = large_resource},
    {.name = "scope.name.profile",
     .tables = NULL,
     .reference = empty_profile,
     .each = EACH_PROFILE,
     .scope = large_scope},
    {.name = "sample.attribute_indices.decimal",
     .tables = decimal_values,
     .reference = attribute_1_or_2,
     .each = EACH_SAMPLE},
    {.name = "sample.attribute_indices.decimal_repeated",
     .tables = repeated_decimal,
     .reference = attribute_1,
     .each = EACH_SAMPLE},
    {.name = "sample.attribute_indices.hex",
     .tables = hex_values,
     .reference = attribute_1_or_2,
     .each = EACH_SAMPLE},
    {.name = "sample.attribute_indices.service",
     .tables = service_values,
     .reference = attribute_1_or_2,
     .each = EACH_SAMPLE},
    {.name = "sample.attribute_indices.service_array",
     .tables = array_service,
     .reference = attribute_1,
     .each = EACH_SAMPLE},
    {.name = "sample.attribute_indices.text",
     .tables = plain_values,
     .reference = attribute_1_or_2,
     .each = EACH_SAMPLE},
    {.name = "sample.attribute_indices.timestamp",
     .tables = plain_values,
     .reference = attribute_and_time,
     .each = EACH_SAMPLE},
    {.name = "sample.attribute_indices.entry",
     .tables = repeated_attribute,
     .reference = attribute_1,
     .each = EACH_SAMPLE},
    {.name = "sample.attribute_indices.wide",
     .tables = plain_values,
     .reference = attribute_1,
     .each = EACH_SAMPLE,
     .profile = wide_sample},
    {.name = "sample.link_index", .tables = large_link, .reference = link_1, .each = EACH_SAMPLE},
    {.name = "sample.link_index.empty",
     .tables = empty_link,
     .reference = link_1,
     .each = EACH_SAMPLE},
    {.name = "sample.stack_index",
     .tables = large_stack,
     .reference = stack_1,
     .each = EACH_SAMPLE},
    {.name = "sample.stack_index.equal",
     .tables = equal_stacks,
     .reference = one_of_equal_stacks,
     .each = EACH_SAMPLE},
    {.name = "profile.stack",
     .tables = large_stack,
     .reference = profile_with_stack,
     .each = EACH_PROFILE},
    {.name = "profile.stack.locations",
     .tables = distinct_locations,
     .reference = profile_with_stack,
     .each = EACH_PROFILE},
    {.name = "profile.stack.functions",
     .tables = distinct_functions,
     .reference = profile_with_stack,
     .each = EACH_PROFILE},
    {.name = "profile.location",
     .tables = large_location,
     .reference = profile_with_stack,
     .each = EACH_PROFILE},
    {.name = "profile.location.attribute_indices",
     .tables = location_attributes,
     .reference = profile_with_stack,
     .each = EACH_PROFILE},
    {.name = "profile.mapping.attribute_indices",
     .tables = mapping_attributes,
     .reference = profile_with_stack,
     .each = EACH_PROFILE},
    {.name = "profile.function",
     .tables = function_name,
     .reference = profile_with_stack,
     .each = EACH_PROFILE},
};
enum { PROFILE_SHAPES = sizeof profile_shapes / sizeof *profile_shapes };

/* ---- traces ---- */

static void put_span(struct wire_writer *out, uint32_t i)
{
    uint8_t id[16] = {1};
    memcpy(id + 4, &i, sizeof i);
    size_t span = wire_writer_begin(out, SCOPE_SPANS_SPANS);
    wire_writer_bytes(out, SPAN_TRACE_ID, slice_of(id, 16));
    wire_writer_bytes(out, SPAN_SPAN_ID, slice_of(id, 8));
    wire_writer_end(out, span);
}

static void span_with_text(struct wire_writer *out, uint32_t i)
{
    (void)i;
    size_t span = wire_writer_begin(out, SCOPE_SPANS_SPANS);
    key_value_append(out, SPAN_ATTRIBUTES, SLICE("k"), any_value_string(SLICE("ab")));
    wire_writer_end(out, span);
}

/* Each has another value. */
static void span_with_number(struct wire_writer *out, uint32_t i)
{
    size_t span = wire_writer_begin(out, SCOPE_SPANS_SPANS);
    key_value_append(out, SPAN_ATTRIBUTES, SLICE("k"), any_value_int(i));
    wire_writer_end(out, span);
}

static void empty_span(struct wire_writer *out, uint32_t i)
{
    (void)i;
    PUT(out, SCOPE_SPANS_SPANS << 3 | WIRE_BYTES, 0);
}

static void span_with_attributes(struct wire_writer *out, size_t size)
{
    wire_writer_bytes(out, SPAN_NAME, SLICE("s"));
    put_attributes(out, SPAN_ATTRIBUTES, size);
}

static void put_event(struct wire_writer *out, uint32_t i)
{
    char name[16];
    int length = snprintf(name, sizeof name, "%x", i);
    size_t event = wire_writer_begin(out, SPAN_EVENTS);
    wire_writer_bytes(out, EVENT_NAME, slice_of(name, (size_t)length));
    key_value_append(out, EVENT_ATTRIBUTES, SLICE("k"), any_value_string(SLICE("ab")));
    wire_writer_end(out, event);
}

static void write_traces(struct wire_writer *out, const struct shape *shape, size_t size,
                         size_t part)
{
    static const uint32_t nesting[] = {TRACES_RESOURCE_SPANS, RESOURCE_SPANS_SCOPE_SPANS,
                                       SCOPE_SPANS_SPANS};
    uint32_t level = shape->each == EACH_SAMPLE ? 2u : shape->each == EACH_SCOPE ? 1u : 0u;
    size_t begun[3], most = references_max(shape, true, size);
    for (uint32_t i = 0; i < level; i++) {
        begun[i] = wire_writer_begin(out, nesting[i]);
        put_part(out, i == 0 ? RESOURCE_SPANS_RESOURCE : SCOPE_SPANS_SCOPE,
                 i == 0 ? shape->resource : shape->scope, part);
    }
    if (shape->span) {
        begun[level] = wire_writer_begin(out, nesting[level]);
        level++;
        shape->span(out, part);
    }
    for (uint32_t i = 0; out->size < size && i < most; i++) {
        size_t outer[2];
        for (uint32_t k = level; k < 2; k++)
            outer[k] = wire_writer_begin(out, nesting[k]);
        shape->reference(out, i);
        for (uint32_t k = 2; k-- > level;)
            wire_writer_end(out, outer[k]);
    }
    while (level-- > 0)
        wire_writer_end(out, begun[level]);
}

static const struct shape trace_shapes[] = {
    {.name = "span.resource.value",
     .tables = NULL,
     .reference = put_span,
     .each = EACH_SAMPLE,
     .resource = large_resource},
    {.name = "span.resource.attributes",
     .tables = NULL,
     .reference = put_span,
     .each = EACH_SAMPLE,
     .resource = many_attributes},
    {.name = "span.scope.name",
     .tables = NULL,
     .reference = put_span,
     .each = EACH_SAMPLE,
     .scope = large_scope},
    {.name = "span", .tables = NULL, .reference = put_span, .each = EACH_SAMPLE},
    {.name = "span.text", .tables = NULL, .reference = span_with_text, .each = EACH_SAMPLE},
    {.name = "span.number", .tables = NULL, .reference = span_with_number, .each = EACH_SAMPLE},
    {.name = "span.text.resource",
     .tables = NULL,
     .reference = span_with_text,
     .each = EACH_SAMPLE,
     .resource = large_resource},
    {.name = "span.empty",
     .tables = NULL,
     .reference = empty_span,
     .each = EACH_SAMPLE,
     .resource = large_resource},
    {.name = "scope_spans.resource",
     .tables = NULL,
     .reference = put_span,
     .each = EACH_SCOPE,
     .resource = large_resource},
    {.name = "event.span.attributes",
     .tables = NULL,
     .reference = put_event,
     .each = EACH_SAMPLE,
     .span = span_with_attributes},
    {.name = "scope_spans", .tables = NULL, .reference = empty_span, .each = EACH_SCOPE},
    {.name = "resource_spans", .tables = NULL, .reference = empty_span, .each = EACH_RESOURCE},
};
enum { TRACE_SHAPES = sizeof trace_shapes / sizeof *trace_shapes };

/* ---- cases ---- */

/* A sanitizer looks for other faults than peak memory, and is slow. */
#ifdef COST_IS_SANITIZED
enum { SMALL = 8 << 10, LARGE = 2 * SMALL };
#else
enum { SMALL = 64 << 10, LARGE = 2 * SMALL };
#endif

struct cost_case {
    char name[96];
    const struct shape *shape;      /* or */
    const struct cost_field *field; /* the field that is repeated */
    const struct cost_stage *stage;
    enum signal signal;
};

/* tests/cost/run counts the instructions of this function. */
bool cost_send(const struct cost_case *c, struct buffer *body, struct verdict *why);

bool __attribute__((noinline))
cost_send(const struct cost_case *c, struct buffer *body, struct verdict *why)
{
    return cost_stage_take(c->stage, c->signal, body, false, why);
}

/* Writes the request. Each of its large parts gets as many bytes as all references together, or
 * more if the number of references is limited. */
static void build(const struct cost_case *c, struct wire_writer *out, size_t size)
{
    if (c->field) {
        cost_field_write(out, c->field, size);
        return;
    }
    void (*write)(struct wire_writer *, const struct shape *, size_t, size_t) =
        c->signal == SIGNAL_TRACES ? write_traces : write_profiles;
    size_t parts = large_parts(c->shape), part = size / (parts + 1);
    write(out, c->shape, size, part);
    if (parts == 0 || out->size >= size)
        return;
    part += (size - out->size) / parts;
    wire_writer_clear(out);
    write(out, c->shape, size, part);
}

static struct cost measure(const struct cost_case *c, size_t size)
{
    struct wire_writer request = {0};
    build(c, &request, size);
    size_t plain_bytes = request.size;
    struct buffer *body = buffer_new(request.size, NULL);
    buffer_append(body, request.data, request.size, request.size);
    wire_writer_deinit(&request);
    struct cost cost = cost_begin(plain_bytes);
    cost_end(&cost, cost_send(c, body, &cost.why));
    return cost;
}

/* Returns the peak as a share of its limit, in percent; more than 100 if the answer is wrong.
 * Prints what failed. */
static double run_case(const struct cost_case *c)
{
    struct cost cost;
    for (size_t size = SMALL; size <= LARGE; size *= 2) {
        cost = measure(c, size);
        if (!cost.is_taken && cost.why.code != GRPC_RESOURCE_EXHAUSTED) {
            printf("FAILED %s, %zu bytes: refused (code %d: %s)\n", c->name, cost.plain_bytes,
                   (int)cost.why.code, cost.why.text);
            return 1000;
        }
    }
    size_t limit = cost.plain_bytes * COST_STAGE_PEAK_PER_BYTE + c->stage->peak_more;
    if (cost.peak_bytes > limit)
        printf("FAILED %s, %zu bytes: holds %zu bytes, limit %zu\n", c->name, cost.plain_bytes,
               cost.peak_bytes, limit);
    return 100.0 * (double)cost.peak_bytes / (double)limit;
}

static int write_one(const struct cost_case *c, size_t size)
{
    struct wire_writer request = {0};
    build(c, &request, size);
    bool written = cost_write_request(&request);
    wire_writer_deinit(&request);
    return !written;
}

static struct cost_case *cases;
static size_t case_count;

static void reserve_cases(void)
{
    size_t per_stage = PROFILE_SHAPES + TRACE_SHAPES + 2 * COST_FIELDS_MAX;
    cases = memory_array(per_stage * cost_stage_count, sizeof *cases);
}

static void make_cases(enum signal signal, const struct shape *shapes, size_t count)
{
    for (size_t s = 0; s < cost_stage_count; s++)
        for (size_t i = 0; i < count; i++) {
            if (signal == SIGNAL_TRACES && cost_stages[s].is_for_profiles_only)
                continue;
            struct cost_case *c = &cases[case_count++];
            *c =
                (struct cost_case){.shape = &shapes[i], .stage = &cost_stages[s], .signal = signal};
            snprintf(c->name, sizeof c->name, "%s/%s", cost_stages[s].name, shapes[i].name);
        }
}

static void make_field_cases(enum signal signal)
{
    static struct cost_field all[SIGNAL_OPENED_COUNT][COST_FIELDS_MAX];
    size_t count = cost_fields(signal, all[signal]);
    for (size_t s = 0; s < cost_stage_count; s++)
        for (size_t i = 0; i < count; i++) {
            if (signal == SIGNAL_TRACES && cost_stages[s].is_for_profiles_only)
                continue;
            struct cost_case *c = &cases[case_count++];
            *c = (struct cost_case){
                .field = &all[signal][i], .stage = &cost_stages[s], .signal = signal};
            snprintf(c->name, sizeof c->name, "%s/%s.%s", cost_stages[s].name, signal_name(signal),
                     all[signal][i].name);
        }
}

/* Pairs of a case and a size. */
static int run_named(char **words, int word_count)
{
    for (int k = 0; k + 1 < word_count; k += 2) {
        size_t i = 0;
        while (i < case_count && strcmp(words[k], cases[i].name) != 0)
            i++;
        if (i == case_count) {
            fprintf(stderr, "no case \"%s\"; `list` prints their names\n", words[k]);
            return 1;
        }
        struct cost cost = measure(&cases[i], strtoul(words[k + 1], NULL, 10));
        cost_print(&cost);
    }
    return word_count % 2;
}

static int run_all(void)
{
    size_t failed = 0;
    const char *closest = "";
    double most = 0;
    for (size_t i = 0; i < case_count; i++) {
        double percent = run_case(&cases[i]);
        failed += percent > 100;
        if (percent > most)
            closest = cases[i].name;
        most = percent > most ? percent : most;
    }
    printf("%zu cases, %zu failed; closest to its limit: %s, %.0f %%\n", case_count, failed,
           closest, most);
    return failed > 0;
}

int main(int argc, char **argv)
{
    int failed = argc >= 2 && strcmp(argv[1], "list") != 0;
    hash_init_with(1);
    scan_init();
    cost_stages_start();
    reserve_cases();
    make_cases(SIGNAL_PROFILES, profile_shapes, PROFILE_SHAPES);
    make_cases(SIGNAL_TRACES, trace_shapes, TRACE_SHAPES);
    make_field_cases(SIGNAL_PROFILES);
    make_field_cases(SIGNAL_TRACES);
    if (argc < 2)
        failed = run_all();
    else if (argc % 2 == 1)
        failed = run_named(argv + 1, argc - 1);
    for (size_t i = 0; argc % 2 == 0 && i < case_count; i++) {
        if (strcmp(argv[1], "list") == 0)
            puts(cases[i].name);
        else if (argc == 4 && strcmp(argv[1], "write") == 0 && strcmp(argv[2], cases[i].name) == 0)
            failed = write_one(&cases[i], strtoul(argv[3], NULL, 10));
    }
    cost_stages_stop();
    free(cases);
    return failed;
}
