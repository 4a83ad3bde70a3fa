#include "processors/spanjoin/upload_services.h"

#include "core/data/attributes.h"
#include "processors/spanjoin/upload_times.h"

#include <assert.h>

enum { NODE_BYTES = 512 }; /* memory of the messages that are opened to name a resource */

/* Sets the text of an attribute, and removes others with its key. */
static void set_text(struct message *resource, struct arena *arena, struct slice key,
                     struct slice text)
{
    struct attribute attribute =
        attribute_first(message_iter(resource, arena), RESOURCE_ATTRIBUTES);
    struct slice value = any_value_encode(arena, any_value_string(text));
    bool is_set = false;
    while (attribute_next_of_key(&attribute, key)) {
        if (is_set)
            attribute_remove(&attribute);
        else
            attribute_set_value(&attribute, value);
        is_set = true;
    }
    if (!is_set)
        attributes_append(resource, arena, RESOURCE_ATTRIBUTES, key, value);
}

static void name_resource(struct message *resource, struct arena *arena,
                          const struct service_id *service)
{
    set_text(resource, arena, SLICE("service.name"), service->name);
    if (service->space.size > 0)
        set_text(resource, arena, SLICE("service.namespace"), service->space);
}

static void add_resource(struct message *group, struct arena *arena,
                         const struct service_id *service)
{
    struct message resource;
    message_init(&resource, (struct slice){0});
    name_resource(&resource, arena, service);
    size_t size = message_measure(&resource);
    uint8_t *field = arena_alloc(arena, wire_size_bytes(GROUP_RESOURCE, size));
    uint8_t *end = message_write(&resource, wire_write_header(field, GROUP_RESOURCE, size));
    message_append(group, arena, slice_of(field, (size_t)(end - field)));
}

static void name_group(struct message *group, struct arena *arena, const struct service_id *service)
{
    struct message_iter it = message_iter(group, arena);
    struct message_field field;
    bool has_resource = false;
    while (message_next_bytes(&it, GROUP_RESOURCE, &field)) {
        name_resource(message_open(&it, &field), arena, service);
        has_resource = true;
    }
    if (!has_resource)
        add_resource(group, arena, service);
}

/* Whether there is room for the name. */
static bool takes_room(struct sample_plan *plan, const struct service_id *service)
{
    size_t size = NODE_BYTES + service->name.size + service->space.size;
    if (size > plan->room)
        return false;
    plan->room -= size;
    return true;
}

/* Decides about each upload; returns whether any of them changes. */
static bool choose(struct sample_plan *plan, struct service_counts *counts)
{
    bool any = false;
    for (uint32_t i = 0; i < plan->upload_count; i++) {
        struct resource_upload *upload = &plan->uploads[i];
        if (upload->verdict == SERVICE_IS_DISPUTED)
            counts->conflicts += upload->sample_count;
        bool changes = upload->verdict == SERVICE_CHANGES && upload->sample_count > 0 &&
                       takes_room(plan, &upload->service);
        if (!changes)
            upload->verdict = SERVICE_STAYS;
        else
            counts->renamed += upload->sample_count;
        any |= changes;
    }
    return any;
}

void upload_services_apply(struct sample_plan *plan, struct service_counts *counts)
{
    struct arena *arena = &plan->batch->arena;
    if (!choose(plan, counts))
        return;
    uint32_t position = 0;
    struct message_iter it = message_iter(&plan->batch->parts[0].root, arena);
    struct message_field field;
    while (message_next_bytes(&it, PROFILES_RESOURCE_PROFILES, &field)) {
        assert(position < plan->upload_count);
        const struct resource_upload *upload = &plan->uploads[position++];
        if (upload->verdict == SERVICE_CHANGES)
            name_group(message_open(&it, &field), arena, &upload->service);
    }
    assert(position == plan->upload_count);
}
