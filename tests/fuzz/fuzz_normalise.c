/*
 * normalise against protobuf-c: the request is unpacked, normalised as structs, and packed;
 * normalise must give an equal result. For requests of the 1.9 layout, which protobuf-c does not
 * know, only the numbers of messages are compared.
 */
#include "core/data/normalise.h"

#include "core/base/arena.h"
#include "core/data/wire.h"
#include "core/data/zero_entry.h"
#include "opentelemetry/proto/collector/profiles/v1development/profiles_service.pb-c.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

typedef Opentelemetry__Proto__Collector__Profiles__V1development__ExportProfilesServiceRequest
    Request;
typedef Opentelemetry__Proto__Profiles__V1development__ProfilesDictionary Dictionary;
typedef Opentelemetry__Proto__Profiles__V1development__Profile Profile;
typedef Opentelemetry__Proto__Profiles__V1development__ValueType ValueType;
typedef Opentelemetry__Proto__Common__V1__AnyValue AnyValue;
typedef Opentelemetry__Proto__Common__V1__KeyValue KeyValue;

static struct arena arena;

static void *allocate(void *data, size_t size)
{
    (void)data;
    return arena_alloc(&arena, size);
}

static void keep(void *data, void *memory)
{
    (void)data;
    (void)memory;
}

static ProtobufCAllocator allocator = {allocate, keep, NULL};

static Request *unpack(struct slice bytes)
{
    Request *request =
        opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__unpack(
            &allocator, bytes.size, bytes.data);
    assert(request);
    return request;
}

static struct slice pack(const Request *request)
{
    size_t size = protobuf_c_message_get_packed_size(&request->base);
    uint8_t *bytes = arena_alloc(&arena, size);

    protobuf_c_message_pack(&request->base, bytes);
    return slice_of(bytes, size);
}

/* Shifts a list of indices that must refer to entries. */
static void shift_all(int32_t *indices, size_t count, bool shifted)
{
    for (size_t i = 0; i < count; i++)
        indices[i] += shifted;
}

static void shift_if_set(int32_t *index, bool shifted)
{
    *index += shifted && *index != 0;
}

/* ---- references ---- */

static char *string_at(const Dictionary *dictionary, int32_t index)
{
    static char empty[] = "";

    return dictionary && (size_t)index < dictionary->n_string_table
               ? dictionary->string_table[index]
               : empty;
}

static void resolve_key_value(const Dictionary *dictionary, KeyValue *key_value);

static void resolve_any_value(const Dictionary *dictionary, AnyValue *value)
{
    if (!value)
        return;
    switch (value->value_case) {
    case OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_STRING_VALUE_STRINDEX:
        value->string_value = string_at(dictionary, value->string_value_strindex);
        value->value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_STRING_VALUE;
        break;
    case OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_ARRAY_VALUE:
        for (size_t i = 0; i < value->array_value->n_values; i++)
            resolve_any_value(dictionary, value->array_value->values[i]);
        break;
    case OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_KVLIST_VALUE:
        for (size_t i = 0; i < value->kvlist_value->n_values; i++)
            resolve_key_value(dictionary, value->kvlist_value->values[i]);
        break;
    default:
        break;
    }
}

static void resolve_key_value(const Dictionary *dictionary, KeyValue *key_value)
{
    if (key_value->key_strindex != 0)
        key_value->key = string_at(dictionary, key_value->key_strindex);
    key_value->key_strindex = 0;
    resolve_any_value(dictionary, key_value->value);
}

static void resolve_request(Request *request)
{
    const Dictionary *dictionary = request->dictionary;

    for (size_t i = 0; i < request->n_resource_profiles; i++) {
        Opentelemetry__Proto__Profiles__V1development__ResourceProfiles *group =
            request->resource_profiles[i];

        for (size_t k = 0; group->resource && k < group->resource->n_attributes; k++)
            resolve_key_value(dictionary, group->resource->attributes[k]);
        for (size_t k = 0; k < group->n_scope_profiles; k++) {
            Opentelemetry__Proto__Common__V1__InstrumentationScope *scope =
                group->scope_profiles[k]->scope;
            for (size_t a = 0; scope && a < scope->n_attributes; a++)
                resolve_key_value(dictionary, scope->attributes[a]);
        }
    }
    for (size_t i = 0; dictionary && i < dictionary->n_attribute_table; i++)
        resolve_any_value(dictionary, dictionary->attribute_table[i]->value);
}

/* ---- indices ---- */

struct shifts {
    bool of[DICTIONARY_TABLE_COUNT];
};

static bool is_zero(int table, const ProtobufCMessage *entry)
{
    uint8_t *bytes = arena_alloc(&arena, protobuf_c_message_get_packed_size(entry));

    return zero_entry_is(table, slice_of(bytes, protobuf_c_message_pack(entry, bytes)));
}

static void shift_value_type(ValueType *type, const struct shifts *shifts)
{
    if (!type || is_zero(DICTIONARY_FUNCTION_TABLE, &type->base))
        return;
    type->type_strindex += shifts->of[DICTIONARY_STRING_TABLE];
    shift_if_set(&type->unit_strindex, shifts->of[DICTIONARY_STRING_TABLE]);
}

static void shift_profile(Profile *profile, const struct shifts *shifts)
{
    shift_value_type(profile->sample_type, shifts);
    shift_value_type(profile->period_type, shifts);
    shift_all(profile->attribute_indices, profile->n_attribute_indices,
              shifts->of[DICTIONARY_ATTRIBUTE_TABLE]);
    for (size_t i = 0; i < profile->n_samples; i++) {
        Opentelemetry__Proto__Profiles__V1development__Sample *sample = profile->samples[i];

        sample->stack_index += shifts->of[DICTIONARY_STACK_TABLE];
        shift_if_set(&sample->link_index, shifts->of[DICTIONARY_LINK_TABLE]);
        shift_all(sample->attribute_indices, sample->n_attribute_indices,
                  shifts->of[DICTIONARY_ATTRIBUTE_TABLE]);
    }
}

static void shift_locations(Dictionary *dictionary, const struct shifts *shifts)
{
    for (size_t i = 0; i < dictionary->n_location_table; i++) {
        Opentelemetry__Proto__Profiles__V1development__Location *location =
            dictionary->location_table[i];

        if (is_zero(DICTIONARY_LOCATION_TABLE, &location->base))
            continue;
        shift_if_set(&location->mapping_index, shifts->of[DICTIONARY_MAPPING_TABLE]);
        shift_all(location->attribute_indices, location->n_attribute_indices,
                  shifts->of[DICTIONARY_ATTRIBUTE_TABLE]);
        for (size_t k = 0; k < location->n_lines; k++)
            location->lines[k]->function_index += shifts->of[DICTIONARY_FUNCTION_TABLE];
    }
}

static void shift_dictionary(Dictionary *dictionary, const struct shifts *shifts)
{
    bool strings = shifts->of[DICTIONARY_STRING_TABLE];

    shift_locations(dictionary, shifts);
    for (size_t i = 0; i < dictionary->n_mapping_table; i++) {
        shift_if_set(&dictionary->mapping_table[i]->filename_strindex, strings);
        shift_all(dictionary->mapping_table[i]->attribute_indices,
                  dictionary->mapping_table[i]->n_attribute_indices,
                  shifts->of[DICTIONARY_ATTRIBUTE_TABLE]);
    }
    for (size_t i = 0; i < dictionary->n_function_table; i++) {
        if (is_zero(DICTIONARY_FUNCTION_TABLE, &dictionary->function_table[i]->base))
            continue;
        dictionary->function_table[i]->name_strindex += strings;
        shift_if_set(&dictionary->function_table[i]->system_name_strindex, strings);
        shift_if_set(&dictionary->function_table[i]->filename_strindex, strings);
    }
    for (size_t i = 0; i < dictionary->n_attribute_table; i++) {
        if (is_zero(DICTIONARY_ATTRIBUTE_TABLE, &dictionary->attribute_table[i]->base))
            continue;
        dictionary->attribute_table[i]->key_strindex += strings;
        shift_if_set(&dictionary->attribute_table[i]->unit_strindex, strings);
    }
    for (size_t i = 0; i < dictionary->n_stack_table; i++)
        shift_all(dictionary->stack_table[i]->location_indices,
                  dictionary->stack_table[i]->n_location_indices,
                  shifts->of[DICTIONARY_LOCATION_TABLE]);
}

/* ---- zero entries ---- */

static void *prepend(void *list, size_t *count, size_t element_size, const void *first)
{
    uint8_t *longer = arena_alloc(&arena, (*count + 1) * element_size);

    memcpy(longer, first, element_size);
    if (*count > 0)
        memcpy(longer + element_size, list, *count * element_size);
    ++*count;
    return longer;
}

static ProtobufCMessage *new_zero(const ProtobufCMessageDescriptor *descriptor)
{
    static uint8_t trace_id[TRACE_ID_SIZE];
    static uint8_t span_id[SPAN_ID_SIZE];
    ProtobufCMessage *message = arena_alloc(&arena, descriptor->sizeof_message);

    descriptor->message_init(message);
    if (descriptor == &opentelemetry__proto__profiles__v1development__link__descriptor) {
        Opentelemetry__Proto__Profiles__V1development__Link *link = (void *)message;
        link->trace_id = (ProtobufCBinaryData){sizeof trace_id, trace_id};
        link->span_id = (ProtobufCBinaryData){sizeof span_id, span_id};
    }
    return message;
}

/* Sets `shifts`, and adds a zero entry to tables that are empty or do not start with one. */
static void add_zero_entries(Dictionary *dictionary, struct shifts *shifts)
{
    static char *empty = "";

    for (unsigned i = 0; i < dictionary->base.descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &dictionary->base.descriptor->fields[i];
        size_t *count = (void *)((uint8_t *)dictionary + field->quantifier_offset);
        void **list = (void *)((uint8_t *)dictionary + field->offset);
        bool strings = field->id == DICTIONARY_STRING_TABLE;
        bool starts_with_zero = false;

        if (*count > 0 && strings)
            starts_with_zero = dictionary->string_table[0][0] == '\0';
        else if (*count > 0)
            starts_with_zero = is_zero((int)field->id, *(ProtobufCMessage **)*list);
        if (starts_with_zero)
            continue;
        shifts->of[field->id] = *count > 0;
        void *zero = strings ? (void *)empty : (void *)new_zero(field->descriptor);
        *list = prepend(*list, count, sizeof zero, &zero);
    }
}

static void normalise_structs(Request *request, const struct scan_result *scan)
{
    struct shifts shifts = {0};

    resolve_request(request);
    if (scan->misses_zero_entries && !request->dictionary)
        request->dictionary = (void *)new_zero(
            &opentelemetry__proto__profiles__v1development__profiles_dictionary__descriptor);
    if (!request->dictionary)
        return;
    add_zero_entries(request->dictionary, &shifts);
    shift_dictionary(request->dictionary, &shifts);
    for (size_t i = 0; i < request->n_resource_profiles; i++)
        for (size_t k = 0; k < request->resource_profiles[i]->n_scope_profiles; k++) {
            Opentelemetry__Proto__Profiles__V1development__ScopeProfiles *scope =
                request->resource_profiles[i]->scope_profiles[k];
            for (size_t p = 0; p < scope->n_profiles; p++)
                shift_profile(scope->profiles[p], &shifts);
        }
}

/* protobuf-c loses them when it merges dictionaries. */
static void drop_unknown(Request *request)
{
    if (request->dictionary)
        request->dictionary->base.n_unknown_fields = 0;
}

/* Whether a string contains a zero byte, where protobuf-c's strings end. */
static bool has_zero_bytes(struct slice request)
{
    struct wire_cursor cursor = wire_cursor(request);
    struct wire_field dictionary;

    while (wire_next(&cursor, &dictionary)) {
        struct wire_cursor entries;
        struct wire_field entry;

        if (dictionary.number != PROFILES_DICTIONARY)
            continue;
        entries = wire_cursor(dictionary.bytes);
        while (wire_next(&entries, &entry))
            if (entry.number == DICTIONARY_STRING_TABLE &&
                memchr(entry.bytes.data, 0, entry.bytes.size))
                return true;
    }
    return false;
}

static void compare(struct slice original, struct slice normalised, const struct scan_result *scan)
{
    Request *expected = unpack(original);
    Request *got = unpack(normalised);

    normalise_structs(expected, scan);
    if (scan->dictionaries) {
        drop_unknown(expected);
        drop_unknown(got);
    }
    if (!slice_equal(pack(expected), pack(got))) {
        fprintf(stderr, "not what protobuf-c makes of it\n");
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct scan_limits limits = {.items_max = 10000, .elements_max = 30000};
    static const struct scan_limits limits_after = {.items_max = 10000, .elements_max = 30007};
    struct slice request = slice_of(data, size);
    struct scan_result before;
    struct scan_result after;
    struct error err;
    struct buffer *result;

    scan_init();
    if (!scan_profiles(request, &limits, &before, &err) || !normalise_needed(&before))
        return 0;
    result = normalise_profiles(request, &before, NULL, &(bool){false});
    if (!result) /* too large */
        return 0;
    if (!scan_profiles(buffer_slice(result), &limits_after, &after, &err)) {
        fprintf(stderr, "the result is refused: %s\n", err.text);
        abort();
    }
    assert(!normalise_needed(&after));
    assert(after.items == before.items && after.groups == before.groups &&
           after.profiles == before.profiles);
    if (before.layout == SCAN_LAYOUT_CURRENT && !has_zero_bytes(request))
        compare(request, buffer_slice(result), &before);
    buffer_unref(result);
    arena_deinit(&arena);
    return 0;
}
