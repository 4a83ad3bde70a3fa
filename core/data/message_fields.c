#include "core/data/message_fields.h"

#include <string.h>

size_t message_field_size(const struct message_field *field)
{
    const struct wire_field *wire = &field->wire;
    if (wire->type != WIRE_BYTES)
        return (size_t)(wire->end - wire->start);
    bool is_stale = wire->bytes.data == wire_stale;
    return wire_size_bytes(wire->number,
                           is_stale ? message_measure(field->node) : wire->bytes.size);
}

/* The bytes of a field may have been replaced since it was received. */
uint8_t *message_field_write(const struct message_field *field, uint8_t *to)
{
    const struct wire_field *wire = &field->wire;
    if (wire->type == WIRE_BYTES && wire->bytes.data == wire_stale) {
        to = wire_write_header(to, wire->number, message_measure(field->node));
        return message_write(field->node, to);
    }
    if (wire->type == WIRE_BYTES)
        return wire_write_bytes(to, wire->number, wire->bytes);
    size_t size = (size_t)(wire->end - wire->start);
    memcpy(to, wire->start, size);
    return to + size;
}

size_t message_fields_size(struct message_iter message, uint32_t number)
{
    struct message_field field;
    size_t size = 0;
    while (message_next(&message, &field))
        if (field.wire.number == number)
            size += message_field_size(&field);
    return size;
}

void message_fields_write(struct message_iter message, uint32_t number, uint8_t *to)
{
    struct message_field field;
    while (message_next(&message, &field))
        if (field.wire.number == number)
            to = message_field_write(&field, to);
}
