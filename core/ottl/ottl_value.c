#include "core/ottl/ottl_value.h"

#include <assert.h>

static enum ottl_kind kind_of(uint32_t kind)
{
    static const enum ottl_kind kinds[] = {
        [ANY_VALUE_STRING] = OTTL_STRING, [ANY_VALUE_BOOL] = OTTL_BOOL,
        [ANY_VALUE_INT] = OTTL_INT,       [ANY_VALUE_DOUBLE] = OTTL_FLOAT,
        [ANY_VALUE_ARRAY] = OTTL_LIST,    [ANY_VALUE_KVLIST] = OTTL_MAP,
        [ANY_VALUE_BYTES] = OTTL_BYTES};
    return kind < sizeof kinds / sizeof *kinds ? kinds[kind] : OTTL_NIL;
}

void ottl_value_read(struct slice payload, struct ottl_value *out)
{
    struct any_value any = any_value_read(payload);
    out->kind = kind_of(any.kind);
    out->form = OTTL_FORM_BYTES;
    if (any.kind == ANY_VALUE_INT)
        out->integer = any.integer;
    else if (any.kind == ANY_VALUE_BOOL)
        out->truth = any.truth;
    else if (any.kind == ANY_VALUE_DOUBLE)
        out->real = any.real;
    else
        out->bytes = any.bytes;
}

const char *ottl_type_name(const struct ottl_value *value)
{
    static const char *const names[] = {
        [OTTL_NIL] = "nil",
        [OTTL_BOOL] = "bool",
        [OTTL_INT] = "int64",
        [OTTL_FLOAT] = "float64",
        [OTTL_STRING] = "string",
        [OTTL_BYTES] = "[]uint8",
        [OTTL_TIME] = "time.Time",
        [OTTL_DURATION] = "time.Duration",
        [OTTL_TRACE_ID] = "pcommon.TraceID",
        [OTTL_SPAN_ID] = "pcommon.SpanID",
        [OTTL_PROFILE_ID] = "pprofile.ProfileID",
        [OTTL_MAP] = "pcommon.Map",
        [OTTL_LIST] = "pcommon.Slice",
        [OTTL_STATUS] = "ptrace.Status",
        [OTTL_MESSAGES] = "ptrace.SpanEventSlice",
        [OTTL_OPAQUE] = "a message of a profile",
    };
    if (value->kind == OTTL_LIST && value->form != OTTL_FORM_BYTES)
        return value->form == OTTL_FORM_SPLIT || value->form == OTTL_FORM_FRAMES ? "[]string"
               : value->form == OTTL_FORM_ENTRIES                                ? "[]interface {}"
               : value->form == OTTL_FORM_TIMES                                  ? "[]time.Time"
                                                                                 : "[]int64";
    return names[value->kind];
}

const char *ottl_data_type_name(const struct ottl_value *value)
{
    switch (value->kind) {
    case OTTL_NIL:
        return "Empty";
    case OTTL_BOOL:
        return "Bool";
    case OTTL_INT:
        return "Int";
    case OTTL_FLOAT:
        return "Double";
    case OTTL_STRING:
        return "Str";
    case OTTL_BYTES:
        return "Bytes";
    default:
        return ottl_type_name(value);
    }
}

/* ---- maps and lists ---- */

static bool has_entries(const struct ottl_value *value)
{
    return value->form == OTTL_FORM_ENTRIES;
}

/* The next string ends at a separator or, without one, after a character. */
static bool split_next(struct ottl_cursor *cursor, struct ottl_entry *out)
{
    const struct ottl_split *split = cursor->of.split;
    struct slice rest = {0};
    if (cursor->next < split->text.size)
        rest = slice_of(split->text.data + cursor->next, split->text.size - cursor->next);
    if (cursor->is_ended || (split->separator.size == 0 && rest.size == 0))
        return false;
    size_t size;
    if (split->separator.size == 0) {
        size = text_utf8_length(rest.data, rest.size);
        size = size > 0 ? size : 1;
    } else {
        const uint8_t *end = rest.size > 0 ? memmem(rest.data, rest.size, split->separator.data,
                                                    split->separator.size)
                                           : NULL;
        cursor->is_ended = !end;
        size = end ? (size_t)(end - rest.data) : rest.size;
    }
    cursor->next += size + split->separator.size;
    out->value = ottl_string(slice_of(rest.data, size));
    return true;
}

static bool is_of_numbers(const struct ottl_value *value)
{
    return value->form == OTTL_FORM_INTS || value->form == OTTL_FORM_FIXED_INTS ||
           value->form == OTTL_FORM_TIMES;
}

struct ottl_cursor ottl_cursor(const struct ottl_value *of)
{
    struct ottl_cursor cursor = {.of = *of};
    assert(of->kind == OTTL_MAP || of->kind == OTTL_LIST || of->kind == OTTL_MESSAGES);
    if (is_of_numbers(of))
        cursor.numbers = (struct ottl_numbers){
            .message = *of->message, .number = of->number, .is_fixed = of->form != OTTL_FORM_INTS};
    else if (of->form == OTTL_FORM_INDICES)
        cursor.numbers = ottl_attribute_indices(of->tables, of->index);
    else if (of->form == OTTL_FORM_FRAMES)
        cursor.frames = ottl_frames(of->tables, of->index);
    else if (of->form == OTTL_FORM_ATTRIBUTES)
        cursor.attribute = attribute_first(*of->message, of->number);
    else if (of->form == OTTL_FORM_BYTES)
        cursor.attribute = attribute_first(message_iter_bytes(of->bytes),
                                           of->kind == OTTL_MAP ? (uint32_t)KEY_VALUE_LIST_VALUES
                                                                : (uint32_t)ARRAY_VALUE_VALUES);
    return cursor;
}

/* Of the forms that only profiles have. */
static bool profile_next(struct ottl_cursor *cursor, struct ottl_entry *out)
{
    struct ottl_profile_tables *tables = cursor->of.tables;
    uint64_t number;
    uint32_t name;
    struct slice value;
    if (is_of_numbers(&cursor->of)) {
        if (!ottl_numbers_next(&cursor->numbers, &number))
            return false;
        out->value = cursor->of.form == OTTL_FORM_TIMES ? ottl_time((int64_t)number, NULL)
                                                        : ottl_int((int64_t)number);
        return true;
    }
    if (cursor->of.form == OTTL_FORM_INDICES) {
        if (!ottl_table_attribute_next(tables, &cursor->numbers, &out->key, &value))
            return false;
        out->value = ottl_value_of_any(value);
        return true;
    }
    if (!ottl_frames_next(tables, &cursor->frames, &name))
        return false;
    out->value = ottl_string(ottl_table_string(tables, name));
    return true;
}

bool ottl_cursor_next(struct ottl_cursor *cursor, struct ottl_entry *out)
{
    struct attribute *attribute = &cursor->attribute;
    *out = (struct ottl_entry){0};
    if (cursor->of.form == OTTL_FORM_SPLIT)
        return split_next(cursor, out);
    if (cursor->of.form >= OTTL_FORM_INTS)
        return profile_next(cursor, out);
    if (has_entries(&cursor->of)) {
        if (cursor->next == cursor->of.count)
            return false;
        *out = cursor->of.entries[cursor->next++];
        return true;
    }
    if (cursor->of.kind == OTTL_MAP) {
        if (!attribute_next(attribute))
            return false;
        *out = (struct ottl_entry){attribute->pair.key, ottl_value_of_any(attribute->pair.value)};
        return true;
    }
    if (!message_next_bytes(&attribute->it, attribute->number, &attribute->field))
        return false;
    if (cursor->of.kind == OTTL_LIST)
        out->value = ottl_value_of_any(attribute->field.wire.bytes);
    return true;
}

uint32_t ottl_value_count(const struct ottl_value *value)
{
    struct ottl_cursor cursor = ottl_cursor(value);
    struct ottl_entry entry;
    uint32_t count = 0;
    if (has_entries(value))
        return value->count;
    if (value->form == OTTL_FORM_FRAMES)
        return ottl_stack_depth(value->tables, value->index);
    while (ottl_cursor_next(&cursor, &entry))
        count++;
    return count;
}

static bool entry_get(const struct ottl_value *map, struct slice key, struct ottl_value *out)
{
    struct ottl_cursor cursor = ottl_cursor(map);
    struct ottl_entry entry;
    while (ottl_cursor_next(&cursor, &entry))
        if (slice_equal(entry.key, key)) {
            *out = entry.value;
            return true;
        }
    return false;
}

bool ottl_map_get(const struct ottl_value *map, struct slice key, struct ottl_value *out)
{
    struct attribute attribute;
    struct slice value;
    assert(map->kind == OTTL_MAP);
    if (map->form == OTTL_FORM_ATTRIBUTES) {
        if (!attributes_find(*map->message, map->number, key, &attribute))
            return false;
        *out = ottl_value_of_any(attribute.pair.value);
        return true;
    }
    if (map->form == OTTL_FORM_INDICES) {
        if (!ottl_table_attribute_get(map->tables, map->index, key, &value))
            return false;
        *out = ottl_value_of_any(value);
        return true;
    }
    return entry_get(map, key, out);
}

/* Reads no names but the one that is wanted. */
static bool frame_get(const struct ottl_value *list, int64_t index, struct ottl_value *out)
{
    struct ottl_frames frames = ottl_frames(list->tables, list->index);
    for (uint32_t name; ottl_frames_next(list->tables, &frames, &name);)
        if (index-- == 0) {
            *out = ottl_string(ottl_table_string(list->tables, name));
            return true;
        }
    return false;
}

bool ottl_list_get(const struct ottl_value *list, int64_t index, struct ottl_value *out)
{
    struct ottl_cursor cursor = ottl_cursor(list);
    struct ottl_entry entry;
    assert(list->kind == OTTL_LIST);
    if (index < 0)
        return false;
    if (list->form == OTTL_FORM_FRAMES)
        return frame_get(list, index, out);
    if (has_entries(list)) {
        if (index >= list->count)
            return false;
        *out = list->entries[index].value;
        return true;
    }
    while (ottl_cursor_next(&cursor, &entry))
        if (index-- == 0) {
            *out = entry.value;
            return true;
        }
    return false;
}
