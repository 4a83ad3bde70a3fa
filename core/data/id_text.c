#include "core/data/id_text.h"

#include "core/base/text.h"
#include "core/data/otlp.h"

bool id_from_hex(struct slice text, uint8_t *id, size_t id_size)
{
    if (text.size != 2 * id_size)
        return false;
    uint8_t any = 0;
    for (size_t i = 0; i < id_size; i++) {
        int byte = text_hex_byte(text.data + 2 * i);
        if (byte < 0)
            return false;
        id[i] = (uint8_t)byte;
        any |= id[i];
    }
    return any != 0;
}

bool id_from_number(uint64_t number, uint8_t *span_id)
{
    for (size_t i = 0; i < SPAN_ID_SIZE; i++)
        span_id[i] = (uint8_t)(number >> (8 * (SPAN_ID_SIZE - 1 - i)));
    return number != 0;
}

bool id_from_decimal(struct slice text, uint8_t *span_id)
{
    uint64_t number;
    return text_read_u64(text, &number) && id_from_number(number, span_id);
}
