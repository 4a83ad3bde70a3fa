#include "tests/unit/spanjoin_requests.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* NOLINTNEXTLINE(bugprone-macro-parentheses): INIT is a list of members in braces. */
#define NEW(arena, NAME, INIT) memcpy(arena_alloc(arena, sizeof(NAME)), &(NAME)INIT, sizeof(NAME))

typedef Opentelemetry__Proto__Trace__V1__ResourceSpans ResourceSpans;
typedef Opentelemetry__Proto__Trace__V1__ScopeSpans ScopeSpans;
typedef Opentelemetry__Proto__Trace__V1__Status Status;
typedef Opentelemetry__Proto__Resource__V1__Resource Resource;
typedef Opentelemetry__Proto__Common__V1__InstrumentationScope Scope;
typedef Opentelemetry__Proto__Common__V1__AnyValue AnyValue;
typedef Opentelemetry__Proto__Profiles__V1development__ResourceProfiles ResourceProfiles;
typedef Opentelemetry__Proto__Profiles__V1development__ScopeProfiles ScopeProfiles;
typedef Opentelemetry__Proto__Profiles__V1development__ValueType ValueType;
typedef Opentelemetry__Proto__Profiles__V1development__Link Link;
typedef Opentelemetry__Proto__Profiles__V1development__KeyValueAndUnit Attribute;
typedef Opentelemetry__Proto__Profiles__V1development__Stack Stack;
typedef Opentelemetry__Proto__Profiles__V1development__Location Location;
typedef Opentelemetry__Proto__Profiles__V1development__Line Line;
typedef Opentelemetry__Proto__Profiles__V1development__Function Function;

/* Appends a zeroed element to a repeated field. */
static void *push(struct arena *arena, void *array_at, size_t *count, size_t size)
{
    void **array = array_at;
    uint8_t *grown = arena_alloc(arena, (*count + 1) * size);
    if (*count > 0)
        memcpy(grown, *array, *count * size);
    memset(grown + *count * size, 0, size);
    *array = grown;
    return grown + (*count)++ * size;
}

static void push_pointer(struct arena *arena, void *array_at, size_t *count, void *element)
{
    *(void **)push(arena, array_at, count, sizeof(void *)) = element;
}

static void write_number(uint8_t *to, uint64_t number)
{
    for (int i = 0; i < 8; i++)
        to[i] = (uint8_t)(number >> (56 - 8 * i));
}

static uint64_t read_number(const uint8_t *from)
{
    uint64_t number = 0;
    for (int i = 0; i < 8; i++)
        number = number << 8 | from[i];
    return number;
}

static ProtobufCBinaryData span_id(struct arena *arena, uint64_t number)
{
    ProtobufCBinaryData id = {number ? 8 : 0, arena_alloc(arena, 8)};
    write_number(id.data, number);
    return id;
}

static ProtobufCBinaryData trace_id(struct arena *arena, uint64_t number)
{
    ProtobufCBinaryData id = {number ? 16 : 0, arena_alloc(arena, 16)};
    memset(id.data, 0xaa, 8);
    write_number(id.data + 8, number);
    return id;
}

const char *span_hex(uint64_t span)
{
    static char text[17];
    snprintf(text, sizeof text, "%016" PRIx64, span);
    return text;
}

static AnyValue *any_string(struct arena *arena, const char *text)
{
    AnyValue *value = NEW(arena, AnyValue, OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__INIT);
    value->value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_STRING_VALUE;
    value->string_value = arena_strdup(arena, text);
    return value;
}

static KeyValueMessage *key_value(struct arena *arena, const char *key, const char *text)
{
    KeyValueMessage *attribute =
        NEW(arena, KeyValueMessage, OPENTELEMETRY__PROTO__COMMON__V1__KEY_VALUE__INIT);
    attribute->key = arena_strdup(arena, key);
    attribute->value = any_string(arena, text);
    return attribute;
}

/* ---- traces ---- */

void traces_begin(struct request *request, const char *service)
{
    *request = (struct request){.items = 0};
    struct arena *arena = &request->arena;
    request->traces =
        NEW(arena, TracesMessage,
            OPENTELEMETRY__PROTO__COLLECTOR__TRACE__V1__EXPORT_TRACE_SERVICE_REQUEST__INIT);
    ResourceSpans *spans =
        NEW(arena, ResourceSpans, OPENTELEMETRY__PROTO__TRACE__V1__RESOURCE_SPANS__INIT);
    ScopeSpans *scope = NEW(arena, ScopeSpans, OPENTELEMETRY__PROTO__TRACE__V1__SCOPE_SPANS__INIT);
    spans->resource = NEW(arena, Resource, OPENTELEMETRY__PROTO__RESOURCE__V1__RESOURCE__INIT);
    if (service)
        push_pointer(arena, &spans->resource->attributes, &spans->resource->n_attributes,
                     key_value(arena, "service.name", service));
    scope->scope = NEW(arena, Scope, OPENTELEMETRY__PROTO__COMMON__V1__INSTRUMENTATION_SCOPE__INIT);
    scope->scope->name = arena_strdup(arena, "net/http");
    push_pointer(arena, &spans->scope_spans, &spans->n_scope_spans, scope);
    push_pointer(arena, &request->traces->resource_spans, &request->traces->n_resource_spans,
                 spans);
}

void traces_resource_string(struct request *request, const char *key, const char *value)
{
    Resource *resource = request->traces->resource_spans[0]->resource;
    push_pointer(&request->arena, &resource->attributes, &resource->n_attributes,
                 key_value(&request->arena, key, value));
}

SpanMessage *traces_span(struct request *request, uint64_t trace, uint64_t span, uint64_t start_ns,
                         uint64_t end_ns, const char *name)
{
    struct arena *arena = &request->arena;
    SpanMessage *message = NEW(arena, SpanMessage, OPENTELEMETRY__PROTO__TRACE__V1__SPAN__INIT);
    message->trace_id = trace_id(arena, trace);
    message->span_id = span_id(arena, span);
    message->start_time_unix_nano = start_ns;
    message->end_time_unix_nano = end_ns;
    message->name = arena_strdup(arena, name);
    message->kind = OPENTELEMETRY__PROTO__TRACE__V1__SPAN__SPAN_KIND__SPAN_KIND_SERVER;
    message->status = NEW(arena, Status, OPENTELEMETRY__PROTO__TRACE__V1__STATUS__INIT);
    message->status->code = OPENTELEMETRY__PROTO__TRACE__V1__STATUS__STATUS_CODE__STATUS_CODE_OK;
    ScopeSpans *scope = request->traces->resource_spans[0]->scope_spans[0];
    push_pointer(arena, &scope->spans, &scope->n_spans, message);
    request->items++;
    return message;
}

void span_set_parent(struct request *request, SpanMessage *span, uint64_t parent)
{
    span->parent_span_id = span_id(&request->arena, parent);
}

void span_string(struct request *request, SpanMessage *span, const char *key, const char *value)
{
    push_pointer(&request->arena, &span->attributes, &span->n_attributes,
                 key_value(&request->arena, key, value));
}

void span_int(struct request *request, SpanMessage *span, const char *key, int64_t value)
{
    KeyValueMessage *attribute = key_value(&request->arena, key, "");
    attribute->value->value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_INT_VALUE;
    attribute->value->int_value = value;
    push_pointer(&request->arena, &span->attributes, &span->n_attributes, attribute);
}

/* ---- profiles ---- */

static DictionaryMessage *dictionary(const struct request *request)
{
    return request->profiles->dictionary;
}

static int32_t add_string(struct request *request, const char *text)
{
    DictionaryMessage *d = dictionary(request);
    for (size_t i = 0; i < d->n_string_table; i++)
        if (strcmp(d->string_table[i], text) == 0)
            return (int32_t)i;
    push_pointer(&request->arena, &d->string_table, &d->n_string_table,
                 arena_strdup(&request->arena, text));
    return (int32_t)d->n_string_table - 1;
}

#define PROFILES_INIT(NAME) OPENTELEMETRY__PROTO__PROFILES__V1DEVELOPMENT__##NAME##__INIT

static Attribute *push_attribute(struct request *request, const char *key)
{
    DictionaryMessage *d = dictionary(request);
    Attribute *attribute = NEW(&request->arena, Attribute, PROFILES_INIT(KEY_VALUE_AND_UNIT));
    attribute->key_strindex = add_string(request, key);
    push_pointer(&request->arena, &d->attribute_table, &d->n_attribute_table, attribute);
    return attribute;
}

static int32_t add_attribute(struct request *request, const char *key, const char *value)
{
    DictionaryMessage *d = dictionary(request);
    for (size_t i = 1; i < d->n_attribute_table; i++) {
        const Attribute *old = d->attribute_table[i];
        if (strcmp(d->string_table[old->key_strindex], key) == 0 &&
            old->value->value_case ==
                OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_STRING_VALUE &&
            strcmp(old->value->string_value, value) == 0)
            return (int32_t)i;
    }
    push_attribute(request, key)->value = any_string(&request->arena, value);
    return (int32_t)d->n_attribute_table - 1;
}

void profiles_begin(struct request *request)
{
    *request = (struct request){.items = 0};
    struct arena *arena = &request->arena;
    request->profiles = NEW(
        arena, ProfilesMessage,
        OPENTELEMETRY__PROTO__COLLECTOR__PROFILES__V1DEVELOPMENT__EXPORT_PROFILES_SERVICE_REQUEST__INIT);
    DictionaryMessage *d = NEW(arena, DictionaryMessage, PROFILES_INIT(PROFILES_DICTIONARY));
    request->profiles->dictionary = d;
    add_string(request, "");
    push_pointer(arena, &d->link_table, &d->n_link_table, NEW(arena, Link, PROFILES_INIT(LINK)));
    push_pointer(arena, &d->attribute_table, &d->n_attribute_table,
                 NEW(arena, Attribute, PROFILES_INIT(KEY_VALUE_AND_UNIT)));
    for (int i = 0; i < 16; i++)
        push_pointer(arena, &d->stack_table, &d->n_stack_table,
                     NEW(arena, Stack, PROFILES_INIT(STACK)));
    profiles_resource(request);
}

void profiles_resource(struct request *request)
{
    struct arena *arena = &request->arena;
    ResourceProfiles *resource = NEW(arena, ResourceProfiles, PROFILES_INIT(RESOURCE_PROFILES));
    resource->resource = NEW(arena, Resource, OPENTELEMETRY__PROTO__RESOURCE__V1__RESOURCE__INIT);
    push_pointer(arena, &resource->scope_profiles, &resource->n_scope_profiles,
                 NEW(arena, ScopeProfiles, PROFILES_INIT(SCOPE_PROFILES)));
    push_pointer(arena, &request->profiles->resource_profiles,
                 &request->profiles->n_resource_profiles, resource);
}

static ResourceProfiles *last_resource(const struct request *request)
{
    return request->profiles->resource_profiles[request->profiles->n_resource_profiles - 1];
}

void profiles_resource_string(struct request *request, const char *key, const char *value)
{
    Resource *resource = last_resource(request)->resource;
    push_pointer(&request->arena, &resource->attributes, &resource->n_attributes,
                 key_value(&request->arena, key, value));
}

static ValueType *value_type(struct request *request, const char *type, const char *unit)
{
    ValueType *message = NEW(&request->arena, ValueType, PROFILES_INIT(VALUE_TYPE));
    message->type_strindex = add_string(request, type);
    message->unit_strindex = add_string(request, unit);
    return message;
}

ProfileMessage *profiles_profile(struct request *request, const char *type, const char *unit)
{
    ProfileMessage *profile = NEW(&request->arena, ProfileMessage, PROFILES_INIT(PROFILE));
    profile->sample_type = value_type(request, type, unit);
    profile->time_unix_nano = WALL;
    profile->duration_nano = 10 * SECOND;
    ScopeProfiles *scope = last_resource(request)->scope_profiles[0];
    push_pointer(&request->arena, &scope->profiles, &scope->n_profiles, profile);
    return profile;
}

void profile_period(struct request *request, ProfileMessage *profile, const char *type,
                    const char *unit, int64_t period)
{
    profile->period_type = value_type(request, type, unit);
    profile->period = period;
}

void profile_id(struct request *request, ProfileMessage *profile, uint64_t id)
{
    profile->profile_id = trace_id(&request->arena, id);
}

static void push_index(struct request *request, int32_t **indices, size_t *count, int32_t index)
{
    *(int32_t *)push(&request->arena, indices, count, sizeof(int32_t)) = index;
}

void profile_attribute(struct request *request, ProfileMessage *profile, const char *key,
                       const char *value)
{
    push_index(request, &profile->attribute_indices, &profile->n_attribute_indices,
               add_attribute(request, key, value));
}

static int32_t add_location(struct request *request, const char *name)
{
    struct arena *arena = &request->arena;
    DictionaryMessage *d = dictionary(request);
    while (d->n_function_table == 0 || d->n_location_table == 0) { /* the zero values */
        push_pointer(arena, &d->function_table, &d->n_function_table,
                     NEW(arena, Function, PROFILES_INIT(FUNCTION)));
        push_pointer(arena, &d->location_table, &d->n_location_table,
                     NEW(arena, Location, PROFILES_INIT(LOCATION)));
    }
    Function *function = NEW(arena, Function, PROFILES_INIT(FUNCTION));
    Location *location = NEW(arena, Location, PROFILES_INIT(LOCATION));
    Line *line = NEW(arena, Line, PROFILES_INIT(LINE));
    function->name_strindex = add_string(request, name);
    line->function_index = (int32_t)d->n_function_table;
    push_pointer(arena, &d->function_table, &d->n_function_table, function);
    push_pointer(arena, &location->lines, &location->n_lines, line);
    push_pointer(arena, &d->location_table, &d->n_location_table, location);
    return (int32_t)d->n_location_table - 1;
}

void profiles_stack(struct request *request, int32_t stack, const char *function)
{
    Stack *message = dictionary(request)->stack_table[stack];
    push_index(request, &message->location_indices, &message->n_location_indices,
               add_location(request, function));
    push_index(request, &message->location_indices, &message->n_location_indices,
               add_location(request, "main"));
}

int32_t profiles_add_stack(struct request *request, const char *const *functions, size_t count)
{
    DictionaryMessage *d = dictionary(request);
    Stack *stack = NEW(&request->arena, Stack, PROFILES_INIT(STACK));
    for (size_t i = 0; i < count; i++)
        push_index(request, &stack->location_indices, &stack->n_location_indices,
                   add_location(request, functions[i]));
    push_pointer(&request->arena, &d->stack_table, &d->n_stack_table, stack);
    return (int32_t)d->n_stack_table - 1;
}

SampleMessage *profiles_sample(struct request *request, int32_t stack)
{
    ScopeProfiles *scope = last_resource(request)->scope_profiles[0];
    ProfileMessage *profile = scope->profiles[scope->n_profiles - 1];
    SampleMessage *sample = NEW(&request->arena, SampleMessage, PROFILES_INIT(SAMPLE));
    sample->stack_index = stack;
    push_pointer(&request->arena, &profile->samples, &profile->n_samples, sample);
    request->items++;
    return sample;
}

void sample_link(struct request *request, SampleMessage *sample, uint64_t trace, uint64_t span)
{
    DictionaryMessage *d = dictionary(request);
    Link *link = NEW(&request->arena, Link, PROFILES_INIT(LINK));
    link->trace_id = trace_id(&request->arena, trace);
    link->span_id = span_id(&request->arena, span);
    push_pointer(&request->arena, &d->link_table, &d->n_link_table, link);
    sample->link_index = (int32_t)d->n_link_table - 1;
}

void sample_string(struct request *request, SampleMessage *sample, const char *key,
                   const char *value)
{
    push_index(request, &sample->attribute_indices, &sample->n_attribute_indices,
               add_attribute(request, key, value));
}

void sample_int(struct request *request, SampleMessage *sample, const char *key, int64_t value)
{
    Attribute *attribute = push_attribute(request, key);
    attribute->value =
        NEW(&request->arena, AnyValue, OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__INIT);
    attribute->value->value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_INT_VALUE;
    attribute->value->int_value = value;
    push_index(request, &sample->attribute_indices, &sample->n_attribute_indices,
               (int32_t)dictionary(request)->n_attribute_table - 1);
}

void sample_value(struct request *request, SampleMessage *sample, int64_t value)
{
    *(int64_t *)push(&request->arena, &sample->values, &sample->n_values, sizeof value) = value;
}

void sample_time(struct request *request, SampleMessage *sample, uint64_t time_ns)
{
    *(uint64_t *)push(&request->arena, &sample->timestamps_unix_nano,
                      &sample->n_timestamps_unix_nano, sizeof time_ns) = time_ns;
}

struct slice request_encode(struct request *request)
{
    const ProtobufCMessage *message =
        request->traces ? &request->traces->base : &request->profiles->base;
    size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = arena_alloc(&request->arena, size + 1);
    assert_int_equal(protobuf_c_message_pack(message, bytes), size);
    return slice_of(bytes, size);
}

void request_free(struct request *request)
{
    bool is_built = request->arena.blocks != NULL;
    arena_deinit(&request->arena);
    if (!is_built && request->traces)
        protobuf_c_message_free_unpacked(&request->traces->base, NULL);
    if (!is_built && request->profiles)
        protobuf_c_message_free_unpacked(&request->profiles->base, NULL);
    *request = (struct request){.items = 0};
}

/* ---- reading ---- */

void request_read_traces(struct request *request, struct slice bytes)
{
    *request = (struct request){.items = 0};
    request->traces =
        opentelemetry__proto__collector__trace__v1__export_trace_service_request__unpack(
            NULL, bytes.size, bytes.data);
    assert_non_null(request->traces);
}

void request_read_profiles(struct request *request, struct slice bytes)
{
    *request = (struct request){.items = 0};
    request->profiles =
        opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__unpack(
            NULL, bytes.size, bytes.data);
    assert_non_null(request->profiles);
}

SpanMessage *request_span(const struct request *request, size_t i)
{
    for (size_t r = 0; r < request->traces->n_resource_spans; r++) {
        const ResourceSpans *resource = request->traces->resource_spans[r];
        for (size_t s = 0; s < resource->n_scope_spans; s++) {
            const ScopeSpans *scope = resource->scope_spans[s];
            if (i < scope->n_spans)
                return scope->spans[i];
            i -= scope->n_spans;
        }
    }
    return NULL;
}

ProfileMessage *request_profile(const struct request *request, size_t i)
{
    for (size_t r = 0; r < request->profiles->n_resource_profiles; r++) {
        const ResourceProfiles *resource = request->profiles->resource_profiles[r];
        for (size_t s = 0; s < resource->n_scope_profiles; s++) {
            const ScopeProfiles *scope = resource->scope_profiles[s];
            if (i < scope->n_profiles)
                return scope->profiles[i];
            i -= scope->n_profiles;
        }
    }
    return NULL;
}

SampleMessage *request_sample(const struct request *request, size_t profile, size_t i)
{
    const ProfileMessage *message = request_profile(request, profile);
    return message && i < message->n_samples ? message->samples[i] : NULL;
}

static const char *list_text(const AnyValue *list)
{
    static char text[1024];
    size_t size = 0;
    text[0] = '\0';
    for (size_t i = 0; i < list->array_value->n_values; i++) {
        const char *item = list->array_value->values[i]->string_value;
        size += (size_t)snprintf(text + size, sizeof text - size, "%s%s", i ? ", " : "", item);
        assert_true(size < sizeof text);
    }
    return text;
}

static const char *value_text(const AnyValue *value)
{
    static char text[32];
    if (!value)
        return "";
    if (value->value_case == OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_STRING_VALUE)
        return value->string_value;
    if (value->value_case == OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_BOOL_VALUE)
        return value->bool_value ? "true" : "false";
    if (value->value_case == OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_ARRAY_VALUE)
        return list_text(value);
    assert_int_equal(value->value_case,
                     OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_INT_VALUE);
    snprintf(text, sizeof text, "%" PRId64, value->int_value);
    return text;
}

static const char *find_attribute(KeyValueMessage *const *attributes, size_t count, const char *key)
{
    const char *found = NULL;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(attributes[i]->key, key) != 0)
            continue;
        assert_null(found);
        found = value_text(attributes[i]->value);
    }
    return found;
}

const char *span_attribute(const SpanMessage *span, const char *key)
{
    return find_attribute(span->attributes, span->n_attributes, key);
}

const char *resource_attribute(const struct request *request, size_t resource, const char *key)
{
    const Resource *message = request->profiles->resource_profiles[resource]->resource;
    return find_attribute(message->attributes, message->n_attributes, key);
}

static const char *find_indexed(const struct request *request, const int32_t *indices, size_t count,
                                const char *key)
{
    const DictionaryMessage *d = dictionary(request);
    const char *found = NULL;
    for (size_t i = 0; i < count; i++) {
        assert_in_range(indices[i], 0, d->n_attribute_table - 1);
        const Attribute *attribute = d->attribute_table[indices[i]];
        if (strcmp(d->string_table[attribute->key_strindex], key) != 0)
            continue;
        assert_null(found);
        found = value_text(attribute->value);
    }
    return found;
}

const char *sample_attribute(const struct request *request, const SampleMessage *sample,
                             const char *key)
{
    return find_indexed(request, sample->attribute_indices, sample->n_attribute_indices, key);
}

const char *profile_attribute_of(const struct request *request, const ProfileMessage *profile,
                                 const char *key)
{
    return find_indexed(request, profile->attribute_indices, profile->n_attribute_indices, key);
}

void sample_read_link(const struct request *request, const SampleMessage *sample,
                      uint64_t *trace_out, uint64_t *span_out)
{
    const DictionaryMessage *d = dictionary(request);
    *trace_out = *span_out = 0;
    if (sample->link_index == 0)
        return;
    assert_in_range(sample->link_index, 0, d->n_link_table - 1);
    const Link *link = d->link_table[sample->link_index];
    if (link->span_id.len > 0) {
        assert_int_equal(link->span_id.len, 8);
        *span_out = read_number(link->span_id.data);
    }
    if (link->trace_id.len > 0) {
        assert_int_equal(link->trace_id.len, 16);
        *trace_out = read_number(link->trace_id.data + 8);
    }
}

static void make_number(struct request *request, int64_t number)
{
    Resource *resource = request->traces ? request->traces->resource_spans[0]->resource
                                         : last_resource(request)->resource;
    AnyValue *value = resource->attributes[resource->n_attributes - 1]->value;
    value->value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_INT_VALUE;
    value->int_value = number;
}

void request_resource(struct request *request, const char *text)
{
    char key[64], value[64];
    int size = 0;
    for (; sscanf(text, " %63[^=]=%63s%n", key, value, &size) == 2; text += size) {
        if (request->traces)
            traces_resource_string(request, key, value);
        else
            profiles_resource_string(request, key, value);
        if (*value == '#')
            make_number(request, strtol(value + 1, NULL, 10));
    }
}
