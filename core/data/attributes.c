#include "core/data/attributes.h"

bool attribute_next(struct attribute *attribute)
{
    if (!message_next_bytes(&attribute->it, attribute->number, &attribute->field))
        return false;
    attribute->pair = key_value_read(attribute->field.wire.bytes);
    return true;
}

bool attributes_find(struct message_iter message, uint32_t number, struct slice key,
                     struct attribute *attribute_out)
{
    *attribute_out = attribute_first(message, number);
    while (attribute_next(attribute_out))
        if (slice_equal(attribute_out->pair.key, key))
            return true;
    return false;
}

void attribute_set_value(struct attribute *attribute, struct slice value)
{
    if (slice_equal(attribute->pair.value, value))
        return;
    message_replace(&attribute->it, &attribute->field,
                    key_value_encode(attribute->it.arena, attribute->pair.key, value));
}

void attribute_remove(struct attribute *attribute)
{
    message_remove(&attribute->it, &attribute->field);
}

void attributes_append(struct message *message, struct arena *arena, uint32_t number,
                       struct slice key, struct slice value)
{
    message_append(message, arena, key_value_encode_field(arena, number, key, value));
}
