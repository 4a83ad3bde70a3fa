#include "bench/joinsim/encode.h"

#include "bench/payload_fields.h"
#include "core/base/memory.h"
#include "core/data/sample_threads.h"
#include "core/data/wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FUNCTIONS = 64, DEPTH = 12 };
enum {
    STRING_CPU = 1,
    STRING_NANOSECONDS,
    STRING_THREAD_NAME,
    STRING_THREAD_ID,
    STRING_SPAN_ID,
    STRING_TRACE_ID,
    STRING_SPAN_NAME,
    STRING_ADDED_NAME,
    STRING_ADDED_OS_ID,
    STRING_ADDED_RUNTIME_ID,
    STRING_FIRST_FUNCTION
};
enum { ATTRIBUTES_OF_SPAN = 3 }; /* span_id, trace_id, span_name */

void encode_route(uint16_t route, char name_out[32])
{
    snprintf(name_out, 32, "GET /api/v1/resource%02u/{id}", route);
}

static void put_be64(uint8_t *to, uint64_t number)
{
    for (int i = 0; i < 8; i++)
        to[i] = (uint8_t)(number >> (56 - 8 * i));
}

/* Fields 1 and 2 of spans and Links. */
static void put_ids(struct text *out, const struct sim_span *span)
{
    uint8_t trace[16], id[8];
    memset(trace, 0xaa, 8);
    put_be64(trace + 8, span->trace);
    put_be64(id, span->id);
    put_bytes(out, SPAN_TRACE_ID, slice_of(trace, sizeof trace));
    put_bytes(out, SPAN_SPAN_ID, slice_of(id, sizeof id));
}

/* What a profiler outside of containers knows of a process, or the process of itself. */
static void put_process(struct encoder *e, const struct sim_request *request, bool is_outside)
{
    char name[32], host[48];
    uint64_t pid = is_outside ? 30000 : 100;
    snprintf(name, sizeof name, "service-%05u", request->service);
    snprintf(host, sizeof host, "%s-7d9f8b6c5", name);
    if (!is_outside) {
        put_attribute(&e->item, RESOURCE_ATTRIBUTES, "service.name", name, 0);
        put_attribute(&e->item, RESOURCE_ATTRIBUTES, "service.instance.id", host, 0);
    }
    put_attribute(&e->item, RESOURCE_ATTRIBUTES, "process.pid", NULL, pid + request->service);
}

static void put_sender(struct encoder *e, const struct sim_request *request,
                       const struct schedule *schedule)
{
    char container[65];
    snprintf(container, sizeof container, "%012x%052x", request->service, request->service);
    put_process(e, request, request->is_profile && schedule->in_container);
    if (schedule->in_container)
        put_attribute(&e->item, RESOURCE_ATTRIBUTES, "container.id", container, 0);
    if (!request->is_profile)
        put_attribute(&e->item, RESOURCE_ATTRIBUTES, "telemetry.sdk.language", "java", 0);
    put_attribute(&e->item, RESOURCE_ATTRIBUTES, REQUEST_NUMBER_KEY, NULL, request->number + 1);
    put_message(&e->group, GROUP_RESOURCE, &e->item);
}

/* ---- traces ---- */

static const char *thread_name(uint32_t thread, const struct schedule *schedule, char name_out[32])
{
    snprintf(name_out, 32, schedule->in_pool ? "http-nio-8080-exec-%u" : "worker-%u", thread);
    return name_out;
}

static void put_span(struct encoder *e, const struct sim_span *span,
                     const struct schedule *schedule)
{
    char name[32];
    encode_route(span->route, name);
    put_ids(&e->item, span);
    put_string(&e->item, SPAN_NAME, name);
    put_varint(&e->item, SPAN_KIND, 2);
    put_fixed64(&e->item, SPAN_START_TIME_UNIX_NANO, TRAFFIC_WALL_NS + span->start_ns);
    put_fixed64(&e->item, SPAN_END_TIME_UNIX_NANO, TRAFFIC_WALL_NS + span->end_ns);
    put_attribute(&e->item, SPAN_ATTRIBUTES, "http.request.method", "GET", 0);
    put_attribute(&e->item, SPAN_ATTRIBUTES, "http.route", name + 4, 0);
    put_attribute(&e->item, SPAN_ATTRIBUTES, "http.response.status_code", NULL, 200);
    put_attribute(&e->item, SPAN_ATTRIBUTES, "thread.id", NULL, span->java_thread);
    if (schedule->by_thread)
        put_attribute(&e->item, SPAN_ATTRIBUTES, "thread.name",
                      thread_name(span->java_thread, schedule, name), 0);
    put_message(&e->scope, SCOPE_SPANS_SPANS, &e->item);
}

/* ---- profiles ---- */

static uint32_t add_string(struct encoder *e, const char *string)
{
    put_string(&e->strings, DICTIONARY_STRING_TABLE, string);
    return e->string_count++;
}

static uint32_t add_attribute(struct encoder *e, uint32_t key, const char *value)
{
    if (key > 0) {
        put_string(&e->part, ANY_VALUE_STRING, value);
        put_varint(&e->item, KEY_VALUE_AND_UNIT_KEY_STRINDEX, key);
        put_message(&e->item, KEY_VALUE_AND_UNIT_VALUE, &e->part);
    }
    put_message(&e->attributes, DICTIONARY_ATTRIBUTE_TABLE, &e->item);
    return e->attribute_count++;
}

enum { FUNCTION_NAME_SIZE = 64 };

static void name_function(uint32_t function, char name_out[FUNCTION_NAME_SIZE])
{
    snprintf(name_out, FUNCTION_NAME_SIZE, "com.example.shop.Module%02u.handle%u", function / 8,
             function);
}

static void put_functions(struct encoder *e)
{
    put_message(&e->dictionary, DICTIONARY_FUNCTION_TABLE, &e->item);
    put_message(&e->dictionary, DICTIONARY_LOCATION_TABLE, &e->item);
    put_message(&e->dictionary, DICTIONARY_MAPPING_TABLE, &e->item);
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        char name[FUNCTION_NAME_SIZE];
        name_function(i, name);
        put_varint(&e->item, FUNCTION_NAME_STRINDEX, add_string(e, name));
        put_message(&e->dictionary, DICTIONARY_FUNCTION_TABLE, &e->item);
        put_varint(&e->part, LINE_FUNCTION_INDEX, 1 + i);
        put_message(&e->item, LOCATION_LINES, &e->part);
        put_message(&e->dictionary, DICTIONARY_LOCATION_TABLE, &e->item);
    }
}

/* The function of a frame; every stack has another leaf. */
static uint32_t function_of(uint32_t stack, uint32_t depth)
{
    return (stack * 7 + depth * depth) % FUNCTIONS;
}

uint64_t encoded_stack(struct slice leaf)
{
    char name[FUNCTION_NAME_SIZE];
    for (uint32_t i = 0; i < STACKS; i++) {
        name_function(function_of(i, 0), name);
        if (slice_is(leaf, name))
            return i + 1;
    }
    return 0;
}

static void put_stacks(struct encoder *e)
{
    put_message(&e->dictionary, DICTIONARY_STACK_TABLE, &e->item);
    for (uint32_t i = 0; i < STACKS; i++) {
        for (uint32_t d = 0; d < DEPTH; d++)
            text_append_char(&e->packed, (char)(1 + function_of(i, d)));
        put_message(&e->item, STACK_LOCATION_INDICES, &e->packed);
        put_message(&e->dictionary, DICTIONARY_STACK_TABLE, &e->item);
    }
}

static void begin_dictionary(struct encoder *e)
{
    static const char *const first[] = {"",
                                        "cpu",
                                        "nanoseconds",
                                        "thread.name",
                                        "thread.id",
                                        "span_id",
                                        "trace_id",
                                        "span_name",
                                        SAMPLE_THREAD_NAME,
                                        SAMPLE_THREAD_OS_ID,
                                        SAMPLE_THREAD_RUNTIME_ID};
    e->string_count = e->attribute_count = 0;
    e->link_count = 1;
    for (size_t i = 0; i < STRING_FIRST_FUNCTION; i++)
        add_string(e, first[i]);
    add_attribute(e, 0, NULL);
    put_message(&e->links, DICTIONARY_LINK_TABLE, &e->item);
    put_functions(e);
    put_stacks(e);
}

static void end_dictionary(struct encoder *e)
{
    struct text *const parts[] = {&e->strings, &e->attributes, &e->links};
    for (int i = 0; i < 3; i++) {
        text_append_slice(&e->dictionary, slice_of(parts[i]->data, parts[i]->size));
        text_clear(parts[i]);
    }
}

/* Returns the first attribute, or the link, of a span in this request. */
static uint32_t number_span(struct encoder *e, const struct traffic *traffic,
                            const struct sim_request *request, uint32_t index)
{
    const struct sim_span *span = &traffic->spans[index];
    if (e->request_of_span[index] == request->number + 1)
        return e->number_of_span[index];
    e->request_of_span[index] = request->number + 1;
    if (!traffic->schedule->is_labelled) {
        put_ids(&e->item, span);
        put_message(&e->links, DICTIONARY_LINK_TABLE, &e->item);
        return e->number_of_span[index] = e->link_count++;
    }
    char id[17], trace[33], name[32];
    snprintf(id, sizeof id, "%016" PRIx64, span->id);
    snprintf(trace, sizeof trace, "aaaaaaaaaaaaaaaa%016" PRIx64, span->trace);
    encode_route(span->route, name);
    e->number_of_span[index] = add_attribute(e, STRING_SPAN_ID, id);
    add_attribute(e, STRING_TRACE_ID, trace);
    add_attribute(e, STRING_SPAN_NAME, name);
    return e->number_of_span[index];
}

static void append_varint(struct text *out, uint64_t value)
{
    uint8_t bytes[WIRE_HEADER_MAX];
    uint8_t *end = wire_write_varint(bytes, value);
    text_append_slice(out, slice_of(bytes, (size_t)(end - bytes)));
}

static void add_number(struct encoder *e, uint32_t key, uint64_t value)
{
    put_varint(&e->part, ANY_VALUE_INT, value);
    put_varint(&e->item, KEY_VALUE_AND_UNIT_KEY_STRINDEX, key);
    put_message(&e->item, KEY_VALUE_AND_UNIT_VALUE, &e->part);
    put_message(&e->attributes, DICTIONARY_ATTRIBUTE_TABLE, &e->item);
    e->attribute_count++;
}

/* Returns the attribute with the name of a sample's thread; the next one is its id, and in a
 * recording the one after it Java's. */
static uint32_t number_thread(struct encoder *e, const struct sim_sample *sample,
                              const struct schedule *schedule)
{
    uint32_t thread = sample->java_thread;
    bool is_recording = schedule->is_recording;
    for (uint32_t i = 0; i < e->thread_count; i++)
        if (e->threads[i].thread == thread)
            return e->threads[i].attribute;
    char name[32];
    e->threads = memory_grow(e->threads, e->thread_count + 1, sizeof *e->threads);
    e->threads[e->thread_count].thread = thread;
    e->threads[e->thread_count].attribute =
        add_attribute(e, is_recording ? STRING_ADDED_NAME : STRING_THREAD_NAME,
                      thread_name(thread, schedule, name));
    add_number(e, is_recording ? STRING_ADDED_OS_ID : STRING_THREAD_ID, sample->os_thread);
    if (is_recording)
        add_number(e, STRING_ADDED_RUNTIME_ID, thread);
    return e->threads[e->thread_count++].attribute;
}

static void put_sample(struct encoder *e, const struct sim_sample *sample, uint32_t thread,
                       uint32_t span, const struct schedule *schedule)
{
    bool is_labelled = schedule->is_labelled;
    if (thread > 0)
        append_varint(&e->packed, thread);
    if (schedule->by_thread)
        append_varint(&e->packed, thread + 1);
    if (schedule->is_recording)
        append_varint(&e->packed, thread + 2);
    for (uint32_t i = 0; span > 0 && is_labelled && i < ATTRIBUTES_OF_SPAN; i++)
        append_varint(&e->packed, span + i);
    put_varint(&e->item, SAMPLE_STACK_INDEX, sample->stack);
    put_message(&e->item, SAMPLE_ATTRIBUTE_INDICES, &e->packed);
    if (span > 0 && !is_labelled)
        put_varint(&e->item, SAMPLE_LINK_INDEX, span);
    append_varint(&e->packed, (uint64_t)SAMPLE_VALUE);
    put_message(&e->item, SAMPLE_VALUES, &e->packed);
    uint64_t time_ns = TRAFFIC_WALL_NS + sample->told_ns;
    text_append_slice(&e->packed, slice_of((const uint8_t *)&time_ns, sizeof time_ns));
    if (!schedule->is_timeless)
        put_message(&e->item, SAMPLE_TIMESTAMPS_UNIX_NANO, &e->packed);
    text_clear(&e->packed);
    put_message(&e->profile, PROFILE_SAMPLES, &e->item);
}

static void put_type(struct encoder *e, uint32_t number)
{
    put_varint(&e->item, VALUE_TYPE_TYPE_STRINDEX, STRING_CPU);
    put_varint(&e->item, VALUE_TYPE_UNIT_STRINDEX, STRING_NANOSECONDS);
    put_message(&e->profile, number, &e->item);
}

static void put_profile(struct encoder *e, const struct traffic *traffic,
                        const struct sim_request *request)
{
    const struct schedule *schedule = traffic->schedule;
    put_type(e, PROFILE_SAMPLE_TYPE);
    e->thread_count = 0;
    for (uint32_t i = 0; i < request->count; i++) {
        const struct sim_sample *sample = &traffic->samples[request->first + i];
        uint32_t thread = schedule->is_timeless ? 0 : number_thread(e, sample, schedule);
        uint32_t span = sample->is_linked ? number_span(e, traffic, request, sample->span) : 0;
        put_sample(e, sample, thread, span, schedule);
    }
    put_fixed64(&e->profile, PROFILE_TIME_UNIX_NANO, TRAFFIC_WALL_NS + request->begin_ns);
    put_varint(&e->profile, PROFILE_DURATION_NANO, schedule->upload_interval * MILLISECOND_NS);
    put_type(e, PROFILE_PERIOD_TYPE);
    put_varint(&e->profile, PROFILE_PERIOD, (uint64_t)SAMPLE_VALUE);
    put_message(&e->scope, SCOPE_PROFILES_PROFILES, &e->profile);
}

struct slice encoder_encode(struct encoder *e, const struct traffic *traffic,
                            const struct sim_request *request)
{
    if (!e->request_of_span) {
        e->request_of_span = memory_zalloc((traffic->span_count + 1) * sizeof(uint64_t));
        e->number_of_span = memory_zalloc((traffic->span_count + 1) * sizeof(uint32_t));
    }
    text_clear(&e->out);
    put_sender(e, request, traffic->schedule);
    if (request->is_profile) {
        begin_dictionary(e);
        put_profile(e, traffic, request);
        end_dictionary(e);
    } else {
        for (uint32_t i = 0; i < request->count; i++)
            put_span(e, &traffic->spans[request->first + i], traffic->schedule);
    }
    put_message(&e->group, GROUP_SCOPES, &e->scope);
    put_message(&e->out, REQUEST_GROUPS, &e->group);
    if (request->is_profile)
        put_message(&e->out, PROFILES_DICTIONARY, &e->dictionary);
    return slice_of((uint8_t *)e->out.data, e->out.size);
}

void encoder_deinit(struct encoder *e)
{
    struct text *const texts[] = {&e->out,   &e->group,      &e->scope,   &e->item,
                                  &e->part,  &e->packed,     &e->strings, &e->attributes,
                                  &e->links, &e->dictionary, &e->profile};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        text_deinit(texts[i]);
    free(e->threads);
    free(e->request_of_span);
    free(e->number_of_span);
    *e = (struct encoder){0};
}
