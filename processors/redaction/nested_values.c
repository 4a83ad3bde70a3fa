#include "processors/redaction/nested_values.h"

#include "core/data/any_value.h"

/* ---- repeated fields ---- */

static bool repeats_in_list(struct slice list)
{
    struct wire_cursor cursor = wire_cursor(list);
    struct wire_field field;
    while (wire_next_bytes(&cursor, ARRAY_VALUE_VALUES, &field))
        if (nested_values_repeat(field.bytes))
            return true;
    return false;
}

static bool repeats_in_map(struct slice map)
{
    struct wire_cursor cursor = wire_cursor(map);
    struct wire_field field;
    while (wire_next_bytes(&cursor, KEY_VALUE_LIST_VALUES, &field))
        if (key_value_repeats(field.bytes) ||
            nested_values_repeat(key_value_read(field.bytes).value))
            return true;
    return false;
}

bool nested_values_repeat(struct slice payload)
{
    if (any_value_is_short_string(payload))
        return false;
    if (any_value_repeats(payload))
        return true;
    struct any_value value = any_value_read(payload);
    if (value.kind == ANY_VALUE_ARRAY)
        return repeats_in_list(value.bytes);
    return value.kind == ANY_VALUE_KVLIST && repeats_in_map(value.bytes);
}

/* ---- writing ---- */

static void write_inside(struct nested_values *nested, struct slice key,
                         const struct any_value *of);

static void write_part(struct nested_values *nested, const struct nested_part *part)
{
    struct slice text;
    struct any_value value = any_value_read(part->payload);
    switch (nested->decide(nested->context, part, &text)) {
    case NESTED_STAYS:
        wire_writer_raw(&nested->writer, any_value_last_member(part->payload));
        break;
    case NESTED_OPENS:
        write_inside(nested, part->key, &value);
        break;
    case NESTED_CHANGES:
        wire_writer_bytes(&nested->writer, ANY_VALUE_STRING, text);
        nested->changed = true;
        break;
    }
}

static void write_list(struct nested_values *nested, struct slice key, struct slice list)
{
    struct wire_cursor cursor = wire_cursor(list);
    struct wire_field field;
    while (wire_next_bytes(&cursor, ARRAY_VALUE_VALUES, &field)) {
        struct nested_part part = {.key = key, .payload = field.bytes};
        size_t begun = wire_writer_begin(&nested->writer, ARRAY_VALUE_VALUES);
        write_part(nested, &part);
        wire_writer_end(&nested->writer, begun);
    }
}

static void write_key(struct nested_values *nested, struct slice key)
{
    struct slice name = nested->rename ? nested->rename(nested->context, key) : key;
    nested->changed |= !slice_equal(name, key);
    wire_writer_bytes(&nested->writer, KEY_VALUE_KEY, name);
}

static void write_map(struct nested_values *nested, struct slice map)
{
    struct wire_cursor cursor = wire_cursor(map);
    struct wire_field field;
    while (wire_next_bytes(&cursor, KEY_VALUE_LIST_VALUES, &field)) {
        struct key_value pair = key_value_read(field.bytes);
        struct nested_part part = {.key = pair.key, .is_member = true, .payload = pair.value};
        size_t begun = wire_writer_begin(&nested->writer, KEY_VALUE_LIST_VALUES);
        write_key(nested, pair.key);
        size_t value = wire_writer_begin(&nested->writer, KEY_VALUE_VALUE);
        write_part(nested, &part);
        wire_writer_end(&nested->writer, value);
        wire_writer_end(&nested->writer, begun);
    }
}

static void write_inside(struct nested_values *nested, struct slice key, const struct any_value *of)
{
    size_t begun = wire_writer_begin(&nested->writer, of->kind);
    if (of->kind == ANY_VALUE_ARRAY)
        write_list(nested, key, of->bytes);
    else
        write_map(nested, of->bytes);
    wire_writer_end(&nested->writer, begun);
}

bool nested_values_rewrite(struct nested_values *nested, struct slice key, struct slice *payload)
{
    struct any_value value = any_value_read(*payload);
    wire_writer_clear(&nested->writer);
    nested->changed = false;
    write_inside(nested, key, &value);
    if (nested->changed)
        *payload = wire_writer_slice(&nested->writer);
    return nested->changed;
}
