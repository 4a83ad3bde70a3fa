#include "processors/redaction/nested_words.h"

#include "core/data/any_value.h"

/* Returns the word of a key that hides this value; NULL: none. */
static const struct secret_word *hiding_word(const struct nested_words *nested,
                                             const struct key_value *pair)
{
    uint32_t kind = any_value_read(pair->value).kind;
    bool is_number = kind == ANY_VALUE_EMPTY || kind == ANY_VALUE_BOOL || kind == ANY_VALUE_INT ||
                     kind == ANY_VALUE_DOUBLE;
    if (is_number && !nested->hides_numbers)
        return NULL;
    return secret_words_find(nested->words, pair->key);
}

/* ---- finding ---- */

static bool occur_in_list(const struct nested_words *nested, struct slice list)
{
    struct wire_cursor cursor = wire_cursor(list);
    struct wire_field field;
    while (wire_next_bytes(&cursor, ARRAY_VALUE_VALUES, &field))
        if (nested_words_occur(nested, field.bytes))
            return true;
    return false;
}

static bool occur_in_map(const struct nested_words *nested, struct slice map)
{
    struct wire_cursor cursor = wire_cursor(map);
    struct wire_field field;
    while (wire_next_bytes(&cursor, KEY_VALUE_LIST_VALUES, &field)) {
        struct key_value pair = key_value_read(field.bytes);
        if (hiding_word(nested, &pair) || nested_words_occur(nested, pair.value))
            return true;
    }
    return false;
}

bool nested_words_occur(const struct nested_words *nested, struct slice payload)
{
    struct any_value value = any_value_read(payload);
    if (value.kind == ANY_VALUE_ARRAY)
        return occur_in_list(nested, value.bytes);
    return value.kind == ANY_VALUE_KVLIST && occur_in_map(nested, value.bytes);
}

/* ---- masking ---- */

static void write_value(struct nested_words *nested, struct slice payload);

static void write_list(struct nested_words *nested, struct slice list)
{
    struct wire_cursor cursor = wire_cursor(list);
    struct wire_field field;
    while (wire_next_bytes(&cursor, ARRAY_VALUE_VALUES, &field)) {
        size_t begun = wire_writer_begin(&nested->writer, ARRAY_VALUE_VALUES);
        write_value(nested, field.bytes);
        wire_writer_end(&nested->writer, begun);
    }
}

static void write_masked(struct nested_words *nested, const struct key_value *pair,
                         const struct secret_word *word)
{
    struct text text = {0};
    nested->mask(nested->context, pair->key, pair->value, word, &text);
    wire_writer_bytes(&nested->writer, ANY_VALUE_STRING, slice_of(text.data, text.size));
    text_deinit(&text);
}

static void write_pair(struct nested_words *nested, const struct key_value *pair)
{
    const struct secret_word *word = hiding_word(nested, pair);
    wire_writer_bytes(&nested->writer, KEY_VALUE_KEY, pair->key);
    size_t begun = wire_writer_begin(&nested->writer, KEY_VALUE_VALUE);
    if (word)
        write_masked(nested, pair, word);
    else
        write_value(nested, pair->value);
    wire_writer_end(&nested->writer, begun);
}

static void write_map(struct nested_words *nested, struct slice map)
{
    struct wire_cursor cursor = wire_cursor(map);
    struct wire_field field;
    while (wire_next_bytes(&cursor, KEY_VALUE_LIST_VALUES, &field)) {
        struct key_value pair = key_value_read(field.bytes);
        size_t begun = wire_writer_begin(&nested->writer, KEY_VALUE_LIST_VALUES);
        write_pair(nested, &pair);
        wire_writer_end(&nested->writer, begun);
    }
}

static void write_value(struct nested_words *nested, struct slice payload)
{
    struct any_value value = any_value_read(payload);
    if (value.kind != ANY_VALUE_ARRAY && value.kind != ANY_VALUE_KVLIST) {
        wire_writer_raw(&nested->writer, payload);
        return;
    }
    size_t begun = wire_writer_begin(&nested->writer, value.kind);
    if (value.kind == ANY_VALUE_ARRAY)
        write_list(nested, value.bytes);
    else
        write_map(nested, value.bytes);
    wire_writer_end(&nested->writer, begun);
}

struct slice nested_words_mask(struct nested_words *nested, struct slice payload)
{
    wire_writer_clear(&nested->writer);
    write_value(nested, payload);
    return wire_writer_slice(&nested->writer);
}
