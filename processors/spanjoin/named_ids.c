#include "processors/spanjoin/named_ids.h"

#include "processors/spanjoin/attribute_classes.h"
#include "processors/spanjoin/id_source.h"

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
        ids.has_span = id_source_read(&settings->span_ids[i], value, ids.span_id, SPAN_ID_SIZE);
    }
    for (size_t i = 0; i < settings->trace_sources.count && !ids.has_trace; i++) {
        struct slice value =
            attribute_value(resource, RESOURCE_ATTRIBUTES, settings->trace_ids[i].key);
        ids.has_trace = id_source_read(&settings->trace_ids[i], value, ids.trace_id, TRACE_ID_SIZE);
    }
    return ids;
}
