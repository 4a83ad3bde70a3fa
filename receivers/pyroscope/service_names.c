#include "receivers/pyroscope/service_names.h"

#include "core/data/wire_writer.h"

static bool is_field(const struct message_field *field, uint32_t number)
{
    return field->wire.number == number && field->wire.type == WIRE_BYTES;
}

static bool is_service_name(struct slice attribute)
{
    struct message_iter it = message_iter_bytes(attribute);
    struct message_field field;
    while (message_next(&it, &field))
        if (is_field(&field, KEY_VALUE_KEY) && slice_is(field.wire.bytes, "service.name"))
            return true;
    return false;
}

static bool has_service_name(struct message *resource, struct arena *arena)
{
    struct message_iter it = message_iter(resource, arena);
    struct message_field field;
    while (message_next(&it, &field))
        if (is_field(&field, RESOURCE_ATTRIBUTES) && is_service_name(field.wire.bytes))
            return true;
    return false;
}

/* attribute: a field of a Resource. */
static void name_group(struct message *group, struct arena *arena, struct slice attribute)
{
    struct message_iter it = message_iter(group, arena);
    struct message_field field;
    while (message_next(&it, &field)) {
        if (!is_field(&field, RESOURCE_PROFILES_RESOURCE))
            continue;
        struct message *resource = message_open(&it, &field);
        if (!has_service_name(resource, arena))
            message_append(resource, arena, attribute);
        return;
    }
    struct wire_writer resource = {0};
    wire_writer_bytes(&resource, RESOURCE_PROFILES_RESOURCE, attribute);
    message_append(group, arena, arena_copy(arena, wire_writer_slice(&resource)));
    wire_writer_deinit(&resource);
}

static struct slice encode_attribute(struct slice name, struct arena *arena)
{
    struct wire_writer out = {0};
    size_t attribute = wire_writer_begin(&out, RESOURCE_ATTRIBUTES);
    wire_writer_bytes(&out, KEY_VALUE_KEY, SLICE("service.name"));
    size_t value = wire_writer_begin(&out, KEY_VALUE_VALUE);
    wire_writer_bytes(&out, ANY_VALUE_STRING, name);
    wire_writer_end(&out, value);
    wire_writer_end(&out, attribute);
    struct slice encoded = arena_copy(arena, wire_writer_slice(&out));
    wire_writer_deinit(&out);
    return encoded;
}

void service_names_set(struct batch *batch, struct slice name)
{
    if (name.size == 0)
        return;
    struct arena *arena = &batch->arena;
    struct slice attribute = encode_attribute(name, arena);
    struct message_iter it = message_iter(&batch->parts[0].root, arena);
    struct message_field field;
    while (message_next(&it, &field))
        if (is_field(&field, PROFILES_RESOURCE_PROFILES))
            name_group(message_open(&it, &field), arena, attribute);
}
