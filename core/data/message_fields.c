#include "core/data/message_fields.h"

#include <assert.h>
#include <string.h>

static size_t size_of_field(const struct wire_field *field)
{
    return field->type == WIRE_BYTES ? wire_size_bytes(field->number, field->bytes.size)
                                     : (size_t)(field->end - field->start);
}

/* The bytes of a field may have been replaced since it was received. */
static uint8_t *write_field(uint8_t *to, const struct wire_field *field)
{
    if (field->type == WIRE_BYTES) {
        assert(field->bytes.data != wire_stale);
        return wire_write_bytes(to, field->number, field->bytes);
    }
    size_t size = (size_t)(field->end - field->start);
    memcpy(to, field->start, size);
    return to + size;
}

size_t message_fields_size(struct message_iter message, uint32_t number)
{
    struct message_field field;
    size_t size = 0;
    while (message_next(&message, &field))
        if (field.wire.number == number)
            size += size_of_field(&field.wire);
    return size;
}

void message_fields_write(struct message_iter message, uint32_t number, uint8_t *to)
{
    struct message_field field;
    while (message_next(&message, &field))
        if (field.wire.number == number)
            to = write_field(to, &field.wire);
}
