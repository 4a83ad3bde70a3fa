#include "bench/payload.h"

#include "bench/payload_fields.h"
#include "core/base/memory.h"
#include "core/base/text.h"
#include "core/data/otlp.h"
#include "core/data/wire.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { DEPTH_MIN = 20, DEPTH_MAX = 60, SPANS_IN_TRACE = 10 };

static void put_ids(struct text *out, uint32_t i)
{
    uint8_t trace_id[TRACE_ID_SIZE], span_id[SPAN_ID_SIZE];
    payload_ids(0, i, trace_id, span_id);
    put_bytes(out, SPAN_TRACE_ID, slice_of(trace_id, sizeof trace_id));
    put_bytes(out, SPAN_SPAN_ID, slice_of(span_id, sizeof span_id));
}

/* ---- traces ---- */

static void put_span(struct text *out, uint32_t i, uint64_t *random)
{
    static const char *const routes[] = {"/api/v1/orders/{order_id}", "/api/v1/customers/{id}/cart",
                                         "/api/v1/products/search", "/internal/inventory/reserve"};
    const char *route = routes[pick(random, 4)];
    struct text span = {0};
    char path[64], address[32];
    uint8_t parent[SPAN_ID_SIZE], trace_id[TRACE_ID_SIZE];
    payload_ids(UINT64_C(1) << 40, i, trace_id, parent);
    uint64_t start = PAYLOAD_START_NS + pick(random, 1000000000);
    snprintf(path, sizeof path, "/api/v1/orders/%08u/items", pick(random, 100000000));
    snprintf(address, sizeof address, "10.%u.%u.%u", pick(random, 256), pick(random, 256),
             pick(random, 256));
    put_ids(&span, i);
    put_bytes(&span, SPAN_PARENT_SPAN_ID, slice_of(parent, sizeof parent));
    put_string(&span, SPAN_NAME, route);
    put_varint(&span, SPAN_KIND, 2);
    put_fixed64(&span, SPAN_START_TIME_UNIX_NANO, start);
    put_fixed64(&span, SPAN_END_TIME_UNIX_NANO, start + 1000000 + pick(random, 100000000));
    put_attribute(&span, SPAN_ATTRIBUTES, "http.request.method", "GET", 0);
    put_attribute(&span, SPAN_ATTRIBUTES, "http.route", route, 0);
    put_attribute(&span, SPAN_ATTRIBUTES, "http.response.status_code", NULL, 200);
    put_attribute(&span, SPAN_ATTRIBUTES, "url.path", path, 0);
    put_attribute(&span, SPAN_ATTRIBUTES, "server.address", "orders.shop.svc", 0);
    put_attribute(&span, SPAN_ATTRIBUTES, "network.peer.address", address, 0);
    put_attribute(&span, SPAN_ATTRIBUTES, "user_agent.original", "Mozilla/5.0 (X11; Linux)", 0);
    put_attribute(&span, SPAN_ATTRIBUTES, "thread.id", NULL, 1 + pick(random, 64));
    put_message(out, SCOPE_SPANS_SPANS, &span);
    text_deinit(&span);
}

/* Finds the trace ids, which are the fields that `way` leads to. */
static void find_ids(struct payload *payload, struct slice bytes, const uint32_t *way)
{
    struct wire_cursor cursor = wire_cursor(bytes);
    struct wire_field field;
    while (wire_next(&cursor, &field)) {
        if (field.number != way[0])
            continue;
        if (way[1] != 0)
            find_ids(payload, field.bytes, way + 1);
        else if (field.bytes.size == TRACE_ID_SIZE)
            payload->trace_ids[payload->id_count++] = (uint32_t)(field.bytes.data - payload->data);
    }
}

struct payload payload_finish(struct text *out, enum signal signal, uint32_t items, uint32_t ids,
                              const uint32_t *way)
{
    struct payload payload = {
        .signal = signal, .data = (uint8_t *)out->data, .size = out->size, .items = items};
    payload.trace_ids = memory_array(ids, sizeof(uint32_t));
    if (ids > 0)
        find_ids(&payload, payload_slice(&payload), way);
    assert(payload.id_count == ids);
    return payload;
}

struct payload payload_traces(uint32_t spans)
{
    struct text out = {0}, group = {0}, scope = {0};
    uint64_t random = 1;
    put_resource(&group, RESOURCE_SPANS_RESOURCE);
    put_scope(&scope, SCOPE_SPANS_SCOPE);
    for (uint32_t i = 0; i < spans; i++)
        put_span(&scope, i, &random);
    put_message(&group, RESOURCE_SPANS_SCOPE_SPANS, &scope);
    put_message(&out, TRACES_RESOURCE_SPANS, &group);
    text_deinit(&group);
    text_deinit(&scope);
    static const uint32_t way[] = {TRACES_RESOURCE_SPANS, RESOURCE_SPANS_SCOPE_SPANS,
                                   SCOPE_SPANS_SPANS, SPAN_TRACE_ID, 0};
    return payload_finish(&out, SIGNAL_TRACES, spans, spans, way);
}

/* ---- profiles ---- */

/* What a profile consists of. */
struct shape {
    uint32_t samples, links, stacks, functions, locations;
    bool is_of_sdk; /* no times, no threads */
};

enum { STRING_CPU = 1, STRING_NANOSECONDS, STRING_THREAD, STRING_FILE, STRING_FIRST_FUNCTION };

/* A few names have a word that redaction looks for, some its rarest letters. */
static const char *type_name(unsigned function)
{
    if (function % 64 == 63)
        return "Token";
    return function % 16 == 5 ? "Broker" : "Type";
}

static void put_strings(struct text *dictionary, const struct shape *shape)
{
    static const char *const first[] = {"", "cpu", "nanoseconds", "thread.name", "/app/checkout"};
    for (size_t i = 0; i < STRING_FIRST_FUNCTION; i++)
        put_string(dictionary, DICTIONARY_STRING_TABLE, first[i]);
    for (unsigned i = 0; i < shape->functions; i++) {
        char name[80];
        snprintf(name, sizeof name, "github.com/example/shop/module%02u.(*%s%u).Method%u", i / 100,
                 type_name(i), i / 10, i);
        put_string(dictionary, DICTIONARY_STRING_TABLE, name);
    }
}

static void put_code_tables(struct text *dictionary, const struct shape *shape)
{
    struct text entry = {0}, line = {0};
    put_message(dictionary, DICTIONARY_MAPPING_TABLE, &entry);
    put_varint(&entry, MAPPING_MEMORY_START, 0x400000);
    put_varint(&entry, MAPPING_MEMORY_LIMIT, 0x1400000);
    put_varint(&entry, MAPPING_FILENAME_STRINDEX, STRING_FILE);
    put_message(dictionary, DICTIONARY_MAPPING_TABLE, &entry);
    put_message(dictionary, DICTIONARY_LOCATION_TABLE, &entry);
    for (unsigned i = 0; i < shape->locations; i++) {
        put_varint(&line, LINE_FUNCTION_INDEX, 1 + i % shape->functions);
        put_varint(&line, LINE_LINE, 10 + i % 900);
        put_varint(&entry, LOCATION_MAPPING_INDEX, 1);
        put_varint(&entry, LOCATION_ADDRESS, 0x400000 + i * 64);
        put_message(&entry, LOCATION_LINES, &line);
        put_message(dictionary, DICTIONARY_LOCATION_TABLE, &entry);
    }
    put_message(dictionary, DICTIONARY_FUNCTION_TABLE, &entry);
    for (unsigned i = 0; i < shape->functions; i++) {
        put_varint(&entry, FUNCTION_NAME_STRINDEX, STRING_FIRST_FUNCTION + i);
        put_varint(&entry, FUNCTION_FILENAME_STRINDEX, STRING_FILE);
        put_message(dictionary, DICTIONARY_FUNCTION_TABLE, &entry);
    }
    text_deinit(&entry);
    text_deinit(&line);
}

static void put_stacks(struct text *dictionary, const struct shape *shape, uint64_t *random)
{
    struct text entry = {0}, packed = {0};
    put_message(dictionary, DICTIONARY_STACK_TABLE, &entry);
    for (uint32_t i = 0; i < shape->stacks; i++) {
        uint32_t depth = DEPTH_MIN + pick(random, DEPTH_MAX - DEPTH_MIN + 1);
        for (uint32_t d = 0; d < depth; d++) {
            uint8_t index[WIRE_HEADER_MAX];
            uint8_t *end = wire_write_varint(index, 1 + pick(random, shape->locations));
            text_append_slice(&packed, slice_of(index, (size_t)(end - index)));
        }
        put_message(&entry, STACK_LOCATION_INDICES, &packed);
        put_message(dictionary, DICTIONARY_STACK_TABLE, &entry);
    }
    text_deinit(&entry);
    text_deinit(&packed);
}

enum { THREADS = 32 };

static void put_links_and_attributes(struct text *dictionary, uint32_t links)
{
    struct text entry = {0}, value = {0};
    put_message(dictionary, DICTIONARY_LINK_TABLE, &entry);
    for (uint32_t i = 0; i < links; i++) {
        put_ids(&entry, i); /* a Link's fields 1 and 2, like a Span's */
        put_message(dictionary, DICTIONARY_LINK_TABLE, &entry);
    }
    put_message(dictionary, DICTIONARY_ATTRIBUTE_TABLE, &entry);
    for (unsigned i = 0; i < THREADS; i++) {
        char name[32];
        snprintf(name, sizeof name, "worker-%u", i);
        put_string(&value, ANY_VALUE_STRING, name);
        put_varint(&entry, KEY_VALUE_AND_UNIT_KEY_STRINDEX, STRING_THREAD);
        put_message(&entry, KEY_VALUE_AND_UNIT_VALUE, &value);
        put_message(dictionary, DICTIONARY_ATTRIBUTE_TABLE, &entry);
    }
    text_deinit(&entry);
    text_deinit(&value);
}

static void put_value_type(struct text *profile, uint32_t number)
{
    struct text type = {0};
    put_varint(&type, VALUE_TYPE_TYPE_STRINDEX, STRING_CPU);
    put_varint(&type, VALUE_TYPE_UNIT_STRINDEX, STRING_NANOSECONDS);
    put_message(profile, number, &type);
    text_deinit(&type);
}

static void put_sample(struct text *profile, uint32_t stack, const struct shape *shape,
                       uint64_t *random)
{
    struct text sample = {0}, packed = {0};
    uint32_t link = 1 + pick(random, shape->links);
    put_varint(&sample, SAMPLE_STACK_INDEX, stack);
    text_append_char(&packed, (char)(1 + pick(random, THREADS)));
    if (!shape->is_of_sdk)
        put_message(&sample, SAMPLE_ATTRIBUTE_INDICES, &packed);
    text_clear(&packed);
    put_varint(&sample, SAMPLE_LINK_INDEX, link);
    uint8_t value[WIRE_HEADER_MAX];
    uint8_t *end = wire_write_varint(value, 10000000);
    text_append_slice(&packed, slice_of(value, (size_t)(end - value)));
    put_message(&sample, SAMPLE_VALUES, &packed);
    uint64_t time = PAYLOAD_START_NS + pick(random, 1000000000);
    text_append_slice(&packed, slice_of((uint8_t *)&time, sizeof time));
    if (!shape->is_of_sdk)
        put_message(&sample, SAMPLE_TIMESTAMPS_UNIX_NANO, &packed);
    put_message(profile, PROFILE_SAMPLES, &sample);
    text_deinit(&sample);
    text_deinit(&packed);
}

static void put_profile(struct text *scope, const struct shape *shape, uint64_t *random)
{
    struct text profile = {0};
    put_value_type(&profile, PROFILE_SAMPLE_TYPE);
    for (uint32_t i = 0; i < shape->samples; i++)
        put_sample(&profile, 1 + i % shape->stacks, shape, random);
    put_fixed64(&profile, PROFILE_TIME_UNIX_NANO, PAYLOAD_START_NS);
    put_varint(&profile, PROFILE_DURATION_NANO, 10000000000);
    put_value_type(&profile, PROFILE_PERIOD_TYPE);
    put_varint(&profile, PROFILE_PERIOD, 10000000);
    put_message(scope, SCOPE_PROFILES_PROFILES, &profile);
    text_deinit(&profile);
}

struct payload payload_profiles(uint32_t samples, uint32_t links, uint32_t stacks)
{
    const struct shape shape = {.samples = samples,
                                .links = links,
                                .stacks = stacks ? stacks : samples,
                                .functions = stacks ? 300 : 2000,
                                .locations = stacks ? 600 : 4000,
                                .is_of_sdk = stacks > 0};
    struct text out = {0}, group = {0}, scope = {0}, dictionary = {0};
    uint64_t random = 2;
    put_resource(&group, RESOURCE_PROFILES_RESOURCE);
    put_scope(&scope, SCOPE_PROFILES_SCOPE);
    put_profile(&scope, &shape, &random);
    put_message(&group, RESOURCE_PROFILES_SCOPE_PROFILES, &scope);
    put_message(&out, PROFILES_RESOURCE_PROFILES, &group);
    put_code_tables(&dictionary, &shape);
    put_links_and_attributes(&dictionary, links);
    put_strings(&dictionary, &shape);
    put_stacks(&dictionary, &shape, &random);
    put_message(&out, PROFILES_DICTIONARY, &dictionary);
    text_deinit(&group);
    text_deinit(&scope);
    text_deinit(&dictionary);
    static const uint32_t way[] = {PROFILES_DICTIONARY, DICTIONARY_LINK_TABLE, LINK_TRACE_ID, 0};
    return payload_finish(&out, SIGNAL_PROFILES, samples, links, way);
}

/* ---- using ---- */

struct payload payload_copy(const struct payload *payload)
{
    struct payload copy = *payload;
    copy.data = memory_alloc(payload->size);
    memcpy(copy.data, payload->data, payload->size);
    copy.trace_ids = memory_array(payload->id_count, sizeof(uint32_t));
    memcpy(copy.trace_ids, payload->trace_ids, payload->id_count * sizeof(uint32_t));
    return copy;
}

void payload_deinit(struct payload *payload)
{
    free(payload->data);
    free(payload->trace_ids);
    *payload = (struct payload){0};
}

void payload_ids(uint64_t request, uint32_t i, uint8_t trace_id[16], uint8_t span_id[8])
{
    uint64_t trace[2] = {(request + 1) * UINT64_C(0x9E3779B97F4A7C15), i / SPANS_IN_TRACE + 1};
    uint64_t span = (request << 14) + i + 1;
    memcpy(trace_id, trace, TRACE_ID_SIZE);
    memcpy(span_id, &span, SPAN_ID_SIZE);
}

void payload_stamp(struct payload *payload, uint64_t request)
{
    uint8_t trace_id[TRACE_ID_SIZE], span_id[SPAN_ID_SIZE];
    uint64_t first =
        payload->trace_requests ? request - request % payload->trace_requests : request;
    for (uint32_t i = 0; i < payload->id_count; i++) {
        uint8_t *at = payload->data + payload->trace_ids[i];
        payload_ids(first, i, at, span_id);
        payload_ids(request, i, trace_id, at + TRACE_ID_SIZE + 2);
    }
}

/* Any of a metric's five kinds of data. */
#define METRIC_DATA UINT32_MAX

static bool is_next(uint32_t wanted, const struct wire_field *field)
{
    if (field->type != WIRE_BYTES)
        return false;
    if (wanted != METRIC_DATA)
        return field->number == wanted;
    return field->number == METRIC_GAUGE || field->number == METRIC_SUM ||
           field->number == METRIC_HISTOGRAM || field->number == METRIC_EXPONENTIAL_HISTOGRAM ||
           field->number == METRIC_SUMMARY;
}

static bool count_below(struct slice bytes, const uint32_t *way, size_t *count)
{
    struct wire_cursor cursor = wire_cursor(bytes);
    struct wire_field field;
    while (wire_next(&cursor, &field)) {
        if (!is_next(way[0], &field))
            continue;
        if (way[1] == 0)
            ++*count;
        else if (!count_below(field.bytes, way + 1, count))
            return false;
    }
    return !cursor.broken;
}

size_t payload_count_items(struct slice request, enum signal signal)
{
    static const uint32_t ways[SIGNAL_COUNT][6] = {
        [SIGNAL_TRACES] = {REQUEST_GROUPS, GROUP_SCOPES, SCOPE_ITEMS},
        [SIGNAL_PROFILES] = {REQUEST_GROUPS, GROUP_SCOPES, SCOPE_ITEMS, PROFILE_SAMPLES},
        [SIGNAL_METRICS] = {REQUEST_GROUPS, GROUP_SCOPES, SCOPE_ITEMS, METRIC_DATA,
                            METRIC_DATA_DATA_POINTS},
        [SIGNAL_LOGS] = {REQUEST_GROUPS, GROUP_SCOPES, SCOPE_ITEMS}};
    size_t count = 0;
    return count_below(request, ways[signal], &count) ? count : SIZE_MAX;
}
