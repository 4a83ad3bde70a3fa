#include "processors/spanjoin/named_ids.h"

#include "core/data/any_value.h"
#include "core/data/id_text.h"

#include <assert.h>

/* From an AnyValue payload. */
static bool parse_id(const struct id_source *source, struct slice any, uint8_t *id, size_t size)
{
    struct any_value value = any_value_read(any);
    bool is_decimal = source->is_decimal && size == SPAN_ID_SIZE;
    if (value.kind == ANY_VALUE_INT)
        return is_decimal && id_from_number((uint64_t)value.integer, id);
    if (value.kind != ANY_VALUE_STRING)
        return false;
    return is_decimal ? id_from_decimal(value.bytes, id) : id_from_hex(value.bytes, id, size);
}

/* --- attributes --- */

static uint8_t position_of(struct slice key, const struct id_source *sources, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (slice_equal(key, sources[i].key))
            return (uint8_t)i;
    return UINT8_MAX;
}

static struct attribute_class class_of_key(const struct spanjoin_settings *settings,
                                           struct slice key)
{
    struct attribute_class class = {.role = ATTRIBUTE_PLAIN, .joined = JOIN_ATTRIBUTES_MAX};
    for (size_t i = 0; i < settings->samples.joined_count; i++)
        if (slice_equal(key, settings->samples.joined[i].key))
            class.joined = (uint8_t)i;
    class.rank = position_of(key, settings->span_ids, settings->sources.count);
    if (class.rank != UINT8_MAX) {
        class.role = ATTRIBUTE_SPAN_ID;
        return class;
    }
    class.rank = position_of(key, settings->trace_ids, settings->trace_sources.count);
    if (class.rank != UINT8_MAX) {
        class.role = ATTRIBUTE_TRACE_ID;
        return class;
    }
    for (size_t i = 0; i < settings->beside_count; i++)
        if (slice_equal(key, settings->beside[i]))
            class.role = ATTRIBUTE_SPAN_NAME;
    return class;
}

static void read_id(struct sample_plan *plan, struct attribute_class *class, struct slice value)
{
    const struct spanjoin_settings *settings = plan->settings;
    if (class->role == ATTRIBUTE_SPAN_ID)
        class->has_id = parse_id(&settings->span_ids[class->rank], value, class->id, SPAN_ID_SIZE);
    else if (class->role == ATTRIBUTE_TRACE_ID)
        class->has_id =
            parse_id(&settings->trace_ids[class->rank], value, class->id, TRACE_ID_SIZE);
}

const struct attribute_class *sample_plan_classify(struct sample_plan *plan, uint32_t attribute)
{
    if (!plan->classes) {
        plan->class_count = dictionary_count(plan->dictionary, DICTIONARY_ATTRIBUTE_TABLE);
        plan->classes = arena_array(&plan->arena, plan->class_count + 1, sizeof *plan->classes);
    }
    assert(attribute < plan->class_count || attribute == 0);
    struct attribute_class *class = &plan->classes[attribute];
    if (class->role == ATTRIBUTE_UNREAD) {
        struct key_value_and_unit entry = dictionary_attribute(plan->dictionary, attribute);
        *class = class_of_key(plan->settings, dictionary_string(plan->dictionary, entry.key));
        class->is_plain = class->role == ATTRIBUTE_PLAIN && class->joined == JOIN_ATTRIBUTES_MAX;
        read_id(plan, class, entry.value);
    }
    return class;
}

struct named_ids named_ids_of_attributes(struct sample_plan *plan, const uint32_t *attributes,
                                         uint32_t count)
{
    struct named_ids ids = {.has_span = false};
    uint8_t span_rank = UINT8_MAX, trace_rank = UINT8_MAX;
    for (uint32_t i = 0; i < count; i++) {
        const struct attribute_class *class = sample_plan_class(plan, attributes[i]);
        bool is_span = class->role == ATTRIBUTE_SPAN_ID;
        if (!class->has_id || class->rank >= (is_span ? span_rank : trace_rank))
            continue;
        if (is_span) {
            memcpy(ids.span_id, class->id, SPAN_ID_SIZE);
            span_rank = class->rank;
            ids.has_span = true;
        } else {
            memcpy(ids.trace_id, class->id, TRACE_ID_SIZE);
            trace_rank = class->rank;
            ids.has_trace = true;
        }
    }
    return ids;
}

struct named_ids named_ids_of_resource(const struct spanjoin_settings *settings,
                                       struct slice resource)
{
    struct named_ids ids = {.has_span = false};
    for (size_t i = 0; i < settings->sources.count && !ids.has_span; i++) {
        struct slice value =
            attribute_value(resource, RESOURCE_ATTRIBUTES, settings->span_ids[i].key);
        ids.has_span = parse_id(&settings->span_ids[i], value, ids.span_id, SPAN_ID_SIZE);
    }
    for (size_t i = 0; i < settings->trace_sources.count && !ids.has_trace; i++) {
        struct slice value =
            attribute_value(resource, RESOURCE_ATTRIBUTES, settings->trace_ids[i].key);
        ids.has_trace = parse_id(&settings->trace_ids[i], value, ids.trace_id, TRACE_ID_SIZE);
    }
    return ids;
}
