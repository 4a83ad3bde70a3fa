#include "core/ottl/ottl_encode.h"

#include "core/data/any_value.h"
#include "core/data/utf8.h"

static bool encode_map(const struct ottl_value *map, size_t limit, struct wire_writer *out,
                       struct error *err)
{
    struct ottl_cursor cursor = ottl_cursor(map);
    struct ottl_entry entry;
    while (ottl_cursor_next(&cursor, &entry)) {
        size_t pair = wire_writer_begin(out, KEY_VALUE_LIST_VALUES);
        wire_writer_bytes(out, KEY_VALUE_KEY, entry.key);
        size_t value = wire_writer_begin(out, KEY_VALUE_VALUE);
        if (!ottl_check_key(entry.key, err) || !ottl_encode(&entry.value, limit, out, err))
            return false;
        wire_writer_end(out, value);
        wire_writer_end(out, pair);
    }
    return true;
}

static bool encode_list(const struct ottl_value *list, size_t limit, struct wire_writer *out,
                        struct error *err)
{
    struct ottl_cursor cursor = ottl_cursor(list);
    struct ottl_entry entry;
    while (ottl_cursor_next(&cursor, &entry)) {
        size_t value = wire_writer_begin(out, ARRAY_VALUE_VALUES);
        if (!ottl_encode(&entry.value, limit, out, err))
            return false;
        wire_writer_end(out, value);
    }
    return true;
}

static bool encode_several(const struct ottl_value *value, size_t limit, struct wire_writer *out,
                           struct error *err)
{
    bool is_map = value->kind == OTTL_MAP;
    size_t begun = wire_writer_begin(out, is_map ? ANY_VALUE_KVLIST : ANY_VALUE_ARRAY);
    if (value->form == OTTL_FORM_BYTES) {
        if (value->bytes.size > limit)
            return ottl_refuse_growth(err);
        wire_writer_raw(out, value->bytes);
    } else if (!(is_map ? encode_map : encode_list)(value, limit, out, err)) {
        return false;
    }
    wire_writer_end(out, begun);
    return true;
}

/* The next receiver would refuse a request with a text that is no UTF-8. */
static bool encode_text(struct slice bytes, size_t limit, struct wire_writer *out,
                        struct error *err)
{
    struct text text = {0};
    if (utf8_is_valid(bytes)) {
        wire_writer_bytes(out, ANY_VALUE_STRING, bytes);
        return true;
    }
    utf8_append_repaired(bytes, &text);
    bool is_small = text.size <= limit;
    if (is_small)
        wire_writer_bytes(out, ANY_VALUE_STRING, slice_of(text_string(&text), text.size));
    text_deinit(&text);
    return is_small || ottl_refuse_growth(err);
}

static void encode_float(double real, struct wire_writer *out)
{
    struct any_value value = any_value_double(real);
    uint8_t *to = wire_writer_room(out, any_value_size(&value));
    wire_writer_wrote(out, any_value_write(to, &value));
}

bool ottl_refuse_growth(struct error *err)
{
    return error_set(err, "the request would grow too much");
}

bool ottl_refuse_depth(struct error *err)
{
    return error_set(err, "the value would be nested too deep");
}

bool ottl_check_key(struct slice key, struct error *err)
{
    return utf8_is_valid(key) || error_set(err, "a key must be valid UTF-8");
}

bool ottl_is_data(const struct ottl_value *value)
{
    return value->kind <= OTTL_BYTES || value->kind == OTTL_MAP || value->kind == OTTL_LIST;
}

bool ottl_encode(const struct ottl_value *value, size_t limit, struct wire_writer *out,
                 struct error *err)
{
    bool has_bytes = value->kind == OTTL_STRING || value->kind == OTTL_BYTES;
    if (out->size > limit || (has_bytes && value->bytes.size > limit))
        return ottl_refuse_growth(err);
    switch (value->kind) {
    case OTTL_NIL:
        return true;
    case OTTL_BOOL:
        wire_writer_varint_set(out, ANY_VALUE_BOOL, value->truth);
        return true;
    case OTTL_INT:
        wire_writer_varint_set(out, ANY_VALUE_INT, (uint64_t)value->integer);
        return true;
    case OTTL_FLOAT:
        encode_float(value->real, out);
        return true;
    case OTTL_STRING:
        return encode_text(value->bytes, limit, out, err);
    case OTTL_BYTES:
        wire_writer_bytes(out, ANY_VALUE_BYTES, value->bytes);
        return true;
    case OTTL_MAP:
    case OTTL_LIST:
        return encode_several(value, limit, out, err);
    default:
        return error_set(err, "unsupported type %s for set operation", ottl_type_name(value));
    }
}
