#include "core/ottl/ottl_functions.h"
#include "core/ottl/ottl_paths.h"
#include "core/ottl/ottl_profile_setters.h"
#include "core/ottl/ottl_profile_tables.h"

#include <assert.h>

/* The readers of the table. */
#define READER(name)                                                                               \
    static bool name(struct ottl_evaluation *evaluation, const struct ottl_path_row *row,          \
                     const struct message_iter *message, struct ottl_value *out)

/* Finds the last field of a number, which is the one that counts. */
static bool find_field(struct message_iter message, uint32_t number, enum wire_type type,
                       struct message_field *out)
{
    struct message_field field;
    bool found = false;
    while (message_next(&message, &field))
        if (field.wire.number == number && field.wire.type == type) {
            *out = field;
            found = true;
        }
    return found;
}

static struct slice last_bytes(struct message_iter message, uint32_t number)
{
    struct message_field field;
    return find_field(message, number, WIRE_BYTES, &field) ? field.wire.bytes : (struct slice){0};
}

static uint64_t last_number(struct message_iter message, uint32_t number, enum wire_type type)
{
    struct message_field field;
    return find_field(message, number, type, &field) ? field.wire.value : 0;
}

static struct ottl_profile_tables *tables_of(struct ottl_evaluation *evaluation)
{
    struct ottl_profile_tables *tables = ottl_evaluation_item(evaluation)->tables;
    assert(tables);
    return tables;
}

static bool give_string(struct ottl_evaluation *evaluation, uint32_t index, struct ottl_value *out)
{
    *out = ottl_string(ottl_table_string(tables_of(evaluation), index));
    return true;
}

/* ---- fields ---- */

READER(read_text)
{
    (void)evaluation;
    *out = ottl_string(last_bytes(*message, row->number));
    return true;
}

READER(read_bytes)
{
    read_text(evaluation, row, message, out);
    out->kind = OTTL_BYTES;
    return true;
}

READER(read_profile_id)
{
    read_text(evaluation, row, message, out);
    out->kind = OTTL_PROFILE_ID;
    return true;
}

/* An int32, uint32, int64 or uint64. */
READER(read_int)
{
    (void)evaluation;
    *out = ottl_int((int64_t)last_number(*message, row->number, WIRE_VARINT));
    return true;
}

READER(read_ns)
{
    (void)evaluation;
    *out = ottl_int((int64_t)last_number(*message, row->number, WIRE_FIXED64));
    return true;
}

READER(read_time)
{
    (void)evaluation;
    *out = ottl_time((int64_t)last_number(*message, row->number, WIRE_FIXED64), NULL);
    return true;
}

/* A ValueType, or the samples of a profile. */
READER(read_opaque)
{
    (void)evaluation;
    *out = (struct ottl_value){.kind = OTTL_OPAQUE, .form = OTTL_FORM_ATTRIBUTES};
    out->message = message;
    out->number = row->number;
    return true;
}

static bool read_value_type(struct ottl_evaluation *evaluation, const struct ottl_path_row *row,
                            const struct message_iter *profile, uint32_t member,
                            struct ottl_value *out)
{
    struct message_field field;
    if (!find_field(*profile, row->number, WIRE_BYTES, &field))
        return give_string(evaluation, 0, out);
    struct message_iter value_type = message_iter_into(&field, profile->arena);
    return give_string(evaluation, (uint32_t)last_number(value_type, member, WIRE_VARINT), out);
}

READER(read_type)
{
    return read_value_type(evaluation, row, message, VALUE_TYPE_TYPE_STRINDEX, out);
}

READER(read_unit)
{
    return read_value_type(evaluation, row, message, VALUE_TYPE_UNIT_STRINDEX, out);
}

/* ---- ids ---- */

static bool give_hex(struct ottl_evaluation *evaluation, struct slice id, size_t size,
                     struct ottl_value *out)
{
    static const char digits[] = "0123456789abcdef";
    uint8_t *text = ottl_evaluation_alloc(evaluation, 2 * size);
    assert(id.size == 0 || id.size == size);
    for (size_t i = 0; i < size; i++) {
        uint8_t byte = id.size > 0 ? id.data[i] : 0; /* an absent id is zeros */
        text[2 * i] = (uint8_t)digits[byte >> 4];
        text[2 * i + 1] = (uint8_t)digits[byte & 15];
    }
    *out = ottl_string(slice_of(text, 2 * size));
    return true;
}

READER(read_profile_id_text)
{
    return give_hex(evaluation, last_bytes(*message, row->number), PROFILE_ID_SIZE, out);
}

static struct dictionary_link link_of(struct ottl_evaluation *evaluation,
                                      const struct message_iter *sample)
{
    uint32_t index = (uint32_t)last_number(*sample, SAMPLE_LINK_INDEX, WIRE_VARINT);
    return dictionary_link(tables_of(evaluation)->dictionary, index);
}

READER(read_link_trace)
{
    (void)row;
    *out = (struct ottl_value){.kind = OTTL_TRACE_ID};
    out->bytes = link_of(evaluation, message).trace_id;
    return true;
}

READER(read_link_span)
{
    (void)row;
    *out = (struct ottl_value){.kind = OTTL_SPAN_ID};
    out->bytes = link_of(evaluation, message).span_id;
    return true;
}

READER(read_link_trace_text)
{
    (void)row;
    return give_hex(evaluation, link_of(evaluation, message).trace_id, TRACE_ID_SIZE, out);
}

READER(read_link_span_text)
{
    (void)row;
    return give_hex(evaluation, link_of(evaluation, message).span_id, SPAN_ID_SIZE, out);
}

/* ---- lists and maps ---- */

static bool give_list(const struct ottl_path_row *row, const struct message_iter *message,
                      enum ottl_form form, struct ottl_value *out)
{
    *out = (struct ottl_value){.kind = OTTL_LIST, .form = form};
    out->message = message;
    out->number = row->number;
    return true;
}

READER(read_ints)
{
    (void)evaluation;
    return give_list(row, message, OTTL_FORM_INTS, out);
}

READER(read_fixed_ints)
{
    (void)evaluation;
    return give_list(row, message, OTTL_FORM_FIXED_INTS, out);
}

READER(read_times)
{
    (void)evaluation;
    return give_list(row, message, OTTL_FORM_TIMES, out);
}

READER(read_attributes)
{
    (void)message;
    *out = (struct ottl_value){.kind = OTTL_MAP, .form = OTTL_FORM_INDICES};
    out->tables = tables_of(evaluation);
    out->index = row->number;
    return true;
}

/* ---- stacks ---- */

static uint32_t stack_of(struct ottl_evaluation *evaluation)
{
    return ottl_sample_stack(tables_of(evaluation));
}

READER(read_depth)
{
    (void)row;
    (void)message;
    *out = ottl_int(ottl_stack_depth(tables_of(evaluation), stack_of(evaluation)));
    return true;
}

READER(read_functions)
{
    (void)row;
    (void)message;
    *out = (struct ottl_value){.kind = OTTL_LIST, .form = OTTL_FORM_FRAMES};
    out->tables = tables_of(evaluation);
    out->index = stack_of(evaluation);
    return true;
}

/* The row's number says which. */
READER(read_leaf)
{
    struct ottl_profile_tables *tables = tables_of(evaluation);
    (void)message;
    uint32_t name = ottl_stack_leaf(tables, ottl_sample_stack(tables), (enum ottl_leaf)row->number);
    *out = ottl_string(ottl_table_string(tables, name));
    return true;
}

/* ---- the table ---- */

/* writer: NULL if the path can only be read. */
#define PROFILE(name, reader, number, writer)                                                      \
    {                                                                                              \
        name, OTTL_PROFILE, OTTL_NOT_INDEXED, reader, offsetof(struct ottl_item, profile), number, \
            .write = (writer)                                                                      \
    }
#define SAMPLE(name, reader, number, writer)                                                       \
    {                                                                                              \
        name, OTTL_PROFILE_SAMPLE, OTTL_NOT_INDEXED, reader, offsetof(struct ottl_item, sample),   \
            number, .write = (writer)                                                              \
    }
#define STACK(name, reader, number, its_reach)                                                     \
    {                                                                                              \
        name, OTTL_PROFILE_SAMPLE, OTTL_NOT_INDEXED, reader, offsetof(struct ottl_item, sample),   \
            number, .reach = (its_reach)                                                           \
    }

const struct ottl_path_row ottl_profile_paths[] = {
    {"attributes", OTTL_PROFILE, OTTL_MAP_INDEXED, read_attributes,
     offsetof(struct ottl_item, profile), PROFILE_ATTRIBUTE_INDICES, .is_map = true,
     .is_indices = true},
    {"attribute_indices", OTTL_PROFILE, OTTL_NOT_INDEXED, read_ints,
     offsetof(struct ottl_item, profile), PROFILE_ATTRIBUTE_INDICES,
     .write = ottl_set_attribute_indices, .is_indices_list = true},
    PROFILE("dropped_attributes_count", read_int, PROFILE_DROPPED_ATTRIBUTES_COUNT, ottl_set_count),
    PROFILE("duration", read_int, PROFILE_DURATION_NANO, ottl_set_duration),
    PROFILE("duration_unix_nano", read_int, PROFILE_DURATION_NANO, ottl_set_duration),
    PROFILE("original_payload", read_bytes, PROFILE_ORIGINAL_PAYLOAD, ottl_set_never),
    PROFILE("original_payload_format", read_text, PROFILE_ORIGINAL_PAYLOAD_FORMAT, ottl_set_never),
    PROFILE("period", read_int, PROFILE_PERIOD, ottl_set_int),
    PROFILE("period_type", read_opaque, PROFILE_PERIOD_TYPE, ottl_set_value_type),
    PROFILE("period_type.type", read_type, PROFILE_PERIOD_TYPE, ottl_set_type),
    PROFILE("period_type.unit", read_unit, PROFILE_PERIOD_TYPE, ottl_set_unit),
    PROFILE("profile_id", read_profile_id, PROFILE_PROFILE_ID, ottl_set_profile_id),
    PROFILE("profile_id.string", read_profile_id_text, PROFILE_PROFILE_ID,
            ottl_set_profile_id_text),
    PROFILE("sample", read_opaque, PROFILE_SAMPLES, ottl_set_never),
    PROFILE("sample_type", read_opaque, PROFILE_SAMPLE_TYPE, ottl_set_value_type),
    PROFILE("sample_type.type", read_type, PROFILE_SAMPLE_TYPE, ottl_set_type),
    PROFILE("sample_type.unit", read_unit, PROFILE_SAMPLE_TYPE, ottl_set_unit),
    PROFILE("time", read_time, PROFILE_TIME_UNIX_NANO, ottl_set_time),
    PROFILE("time_unix_nano", read_ns, PROFILE_TIME_UNIX_NANO, ottl_set_ns),

    {"attributes", OTTL_PROFILE_SAMPLE, OTTL_MAP_INDEXED, read_attributes,
     offsetof(struct ottl_item, sample), SAMPLE_ATTRIBUTE_INDICES, .is_map = true,
     .is_indices = true},
    {"values", OTTL_PROFILE_SAMPLE, OTTL_MAP_INDEXED, read_ints, offsetof(struct ottl_item, sample),
     SAMPLE_VALUES, .write = ottl_set_values, .has_items = true},
    {"timestamps", OTTL_PROFILE_SAMPLE, OTTL_MAP_INDEXED, read_times,
     offsetof(struct ottl_item, sample), SAMPLE_TIMESTAMPS_UNIX_NANO, .write = ottl_set_timestamps,
     .has_items = true},
    {"timestamps_unix_nano", OTTL_PROFILE_SAMPLE, OTTL_MAP_INDEXED, read_fixed_ints,
     offsetof(struct ottl_item, sample), SAMPLE_TIMESTAMPS_UNIX_NANO, .write = ottl_set_timestamps,
     .has_items = true},
    SAMPLE("attribute_indices", read_ints, SAMPLE_ATTRIBUTE_INDICES, ottl_set_attribute_indices),
    SAMPLE("link_index", read_int, SAMPLE_LINK_INDEX, ottl_set_link_index),
    /* Ours: */
    STACK("leaf.file", read_leaf, OTTL_LEAF_FILE, OTTL_OF_STACK),
    STACK("leaf.function", read_leaf, OTTL_LEAF_FUNCTION, OTTL_OF_LEAF_FUNCTION),
    STACK("leaf.mapping", read_leaf, OTTL_LEAF_MAPPING, OTTL_OF_STACK),
    SAMPLE("link.span_id", read_link_span, 0, NULL),
    SAMPLE("link.span_id.string", read_link_span_text, 0, NULL),
    SAMPLE("link.trace_id", read_link_trace, 0, NULL),
    SAMPLE("link.trace_id.string", read_link_trace_text, 0, NULL),
    STACK("stack.depth", read_depth, 0, OTTL_OF_STACK),
    {"stack.functions", OTTL_PROFILE_SAMPLE, OTTL_MAP_INDEXED, read_functions,
     offsetof(struct ottl_item, sample), 0, .reach = OTTL_OF_STACK},
    {.name = NULL},
};

/* ---- functions ---- */

static bool stack_contains(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                           struct ottl_value *out)
{
    const struct ottl_item *item = ottl_evaluation_item(evaluation);
    bool found;
    if (!ottl_stack_contains(item->tables, ottl_evaluation_search(evaluation, node), item->batch,
                             ottl_sample_stack(item->tables), node->regex,
                             ottl_evaluation_matcher(evaluation), &found,
                             ottl_evaluation_error(evaluation)))
        return false;
    *out = ottl_bool(found);
    return true;
}

const struct ottl_function ottl_profile_functions[] = {
    {.name = "StackContains",
     .parameters = {{"pattern", OTTL_PARAMETER_PATTERN, false}},
     .call = stack_contains,
     .level = OTTL_LEVEL_PART,
     .searches_stacks = true},
    {.name = NULL},
};
