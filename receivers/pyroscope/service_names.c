#include "receivers/pyroscope/service_names.h"

#include "core/base/arena.h"
#include "core/data/any_value.h"
#include "core/data/otlp.h"

static bool has_service_name(struct message *resource, struct arena *arena)
{
    struct message_iter it = message_iter(resource, arena);
    struct message_field field;
    while (message_next_bytes(&it, RESOURCE_ATTRIBUTES, &field))
        if (slice_is(key_value_read(field.wire.bytes).key, "service.name"))
            return true;
    return false;
}

/* Adds the attribute, an encoded field of a Resource, to the resource of a ResourceProfiles if it
 * has no service name. */
static void name_group(struct message *group, struct arena *arena, struct slice attribute)
{
    struct message_iter it = message_iter(group, arena);
    struct message_field field;
    while (message_next_bytes(&it, RESOURCE_PROFILES_RESOURCE, &field)) {
        struct message *resource = message_open(&it, &field);
        if (!has_service_name(resource, arena))
            message_append(resource, arena, attribute);
        return;
    }
    size_t size = wire_size_bytes(RESOURCE_PROFILES_RESOURCE, attribute.size);
    uint8_t *resource = arena_alloc(arena, size);
    wire_write_bytes(resource, RESOURCE_PROFILES_RESOURCE, attribute);
    message_append(group, arena, slice_of(resource, size));
}

bool service_names_fit(struct slice request, struct slice name)
{
    enum { NODES = 2, ROOM_MIN = 1 << 20, ROOM_PER_BYTE = 32 };
    size_t each = NODES * sizeof(struct message) + sizeof(struct message_tail) + name.size;
    size_t room = ROOM_MIN + ROOM_PER_BYTE * request.size;
    struct wire_cursor cursor = wire_cursor(request);
    struct wire_field field;
    size_t groups = 0;
    while (wire_next_bytes(&cursor, PROFILES_RESOURCE_PROFILES, &field))
        groups++;
    return name.size == 0 || groups <= room / each;
}

void service_names_set(struct message *root, struct arena *arena, struct slice name)
{
    if (name.size == 0)
        return;
    struct slice value = any_value_encode(arena, any_value_string(name));
    struct slice attribute =
        key_value_encode_field(arena, RESOURCE_ATTRIBUTES, SLICE("service.name"), value);
    struct message_iter it = message_iter(root, arena);
    struct message_field field;
    while (message_next_bytes(&it, PROFILES_RESOURCE_PROFILES, &field))
        name_group(message_open(&it, &field), arena, attribute);
}
