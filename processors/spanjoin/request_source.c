#include "processors/spanjoin/request_source.h"

#include "core/base/text.h"
#include "core/data/any_value.h"
#include "core/data/json.h"
#include "core/pipeline/identity.h"
#include "processors/spanjoin/joined_values.h"

#include <inttypes.h>

static struct slice text_attribute(struct slice resource, struct slice key)
{
    struct any_value value = any_value_read(attribute_value(resource, RESOURCE_ATTRIBUTES, key));
    return value.kind == ANY_VALUE_STRING ? value.bytes : (struct slice){0};
}

/* Returns the name of the tenant that an attribute names. A list or bytes, which have no text, name
 * one of their own, by their encoding. `scratch` is empty, and has the text of a number. */
static struct slice tenant_attribute(struct slice resource, struct slice key, struct text *scratch)
{
    struct slice payload = attribute_value(resource, RESOURCE_ATTRIBUTES, key);
    struct any_value value = any_value_read(payload);
    switch (value.kind) {
    case ANY_VALUE_STRING:
        return value.bytes;
    case ANY_VALUE_BOOL:
        return value.truth ? SLICE("true") : SLICE("false");
    case ANY_VALUE_INT:
        text_printf(scratch, "%" PRId64, value.integer);
        return slice_of(scratch->data, scratch->size);
    case ANY_VALUE_DOUBLE:
        json_print_double(scratch, value.real);
        return slice_of(scratch->data, scratch->size);
    default:
        return any_value_last_member(payload);
    }
}

/* Returns the tenant that the context names; NULL if there is none. */
static const char *tenant_in_context(const struct context *context,
                                     const struct tenant_place *place)
{
    if (place->header)
        return context_get(context, place->header);
    return context ? identity_get(context->identity, place->identity) : NULL;
}

static struct slice tenant_of(const struct request_sender *sender, struct slice resource,
                              struct text *scratch)
{
    const struct spanjoin_settings *settings = sender->settings;
    struct slice tenant = {0};
    for (size_t i = 0; i < settings->tenant_count && tenant.size == 0; i++) {
        const struct tenant_place *place = &settings->tenants[i];
        if (!place->header && !place->identity) {
            tenant = tenant_attribute(resource, place->attribute, scratch);
            continue;
        }
        const char *text = tenant_in_context(sender->batch->context, place);
        tenant = text ? slice_of_string(text) : (struct slice){0};
    }
    return tenant;
}

struct span_source request_source(const struct request_sender *sender, struct slice resource)
{
    struct text scratch = {0};
    struct slice tenant = tenant_of(sender, resource, &scratch), service = {0};
    if (sender->tenants)
        tenants_seen_note(sender->tenants, sender->batch->signal, tenant.size > 0);
    if (tenant.size == 0)
        service = text_attribute(resource, SLICE("service.name"));
    struct span_source source =
        span_index_source(sender->index, tenant, sender->batch->peer, service, sender->now_ns);
    text_deinit(&scratch);
    return source;
}
