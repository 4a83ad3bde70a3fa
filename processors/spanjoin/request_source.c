#include "processors/spanjoin/request_source.h"

#include "core/data/any_value.h"
#include "processors/spanjoin/joined_values.h"

static struct slice text_attribute(struct slice resource, struct slice key)
{
    struct any_value value = any_value_read(attribute_value(resource, RESOURCE_ATTRIBUTES, key));
    return value.kind == ANY_VALUE_STRING ? value.bytes : (struct slice){0};
}

static struct slice tenant_of(const struct request_sender *sender, struct slice resource)
{
    const struct spanjoin_settings *settings = sender->settings;
    struct slice tenant = {0};
    for (size_t i = 0; i < settings->tenant_count && tenant.size == 0; i++) {
        const struct tenant_place *place = &settings->tenants[i];
        const char *text = NULL;
        if (place->header && sender->batch->context)
            text = context_get(sender->batch->context, place->header);
        if (text)
            tenant = slice_of_string(text);
        else if (!place->header)
            tenant = text_attribute(resource, place->attribute);
    }
    return tenant;
}

struct span_source request_source(const struct request_sender *sender, struct slice resource)
{
    struct slice tenant = tenant_of(sender, resource), service = {0};
    if (tenant.size == 0)
        service = text_attribute(resource, SLICE("service.name"));
    return span_index_source(sender->index, tenant, sender->batch->peer, service, sender->now_ns);
}
