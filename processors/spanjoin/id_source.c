#include "processors/spanjoin/id_source.h"

#include "core/data/any_value.h"
#include "core/data/id_text.h"
#include "core/data/otlp.h"

bool id_source_read(const struct id_source *source, struct slice any, uint8_t *id, size_t size)
{
    struct any_value value = any_value_read(any);
    bool is_decimal = source->is_decimal && size == SPAN_ID_SIZE;
    if (value.kind == ANY_VALUE_INT)
        return is_decimal && id_from_number((uint64_t)value.integer, id);
    if (value.kind != ANY_VALUE_STRING)
        return false;
    return is_decimal ? id_from_decimal(value.bytes, id) : id_from_hex(value.bytes, id, size);
}
