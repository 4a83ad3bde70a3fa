#include "core/ottl/ottl_around.h"

#include "core/data/message_fields.h"

/* ---- copies ---- */

static bool is_in_message(const struct ottl_value *value)
{
    return (value->kind == OTTL_MAP && value->form == OTTL_FORM_ATTRIBUTES) ||
           (value->kind == OTTL_LIST &&
            (value->form == OTTL_FORM_INTS || value->form == OTTL_FORM_FIXED_INTS ||
             value->form == OTTL_FORM_TIMES));
}

void ottl_around_copy(struct ottl_evaluation *evaluation, struct ottl_value *value)
{
    if (!is_in_message(value))
        return;
    size_t size = message_fields_size(*value->message, value->number);
    struct message_iter *copy = ottl_evaluation_alloc(evaluation, sizeof *copy);
    uint8_t *bytes = ottl_evaluation_alloc(evaluation, size + 1);
    message_fields_write(*value->message, value->number, bytes);
    *copy = message_iter_bytes(slice_of(bytes, size));
    value->message = copy;
}

/* ---- steps ---- */

/* What it takes to read an entry of an array, and a byte in which much may be: a map or list may
 * have an entry in two, a text that is split or a list of numbers in one, and an index leads to an
 * attribute of the dictionary. */
enum { ENTRY_STEPS = 16, ENCODED_STEPS = 2, SPLIT_STEPS = 4, NUMBER_STEPS = 8, INDEX_STEPS = 32 };

static size_t size_of_message(const struct message_iter *message)
{
    return (size_t)(message->cursor.end - message->cursor.next);
}

/* The parser limits the depth. */
static size_t steps_of_entries(const struct ottl_value *value)
{
    size_t steps = 0;
    for (uint32_t i = 0; i < value->count; i++)
        steps +=
            ENTRY_STEPS + value->entries[i].key.size + ottl_around_steps(&value->entries[i].value);
    return steps;
}

static size_t steps_of_indices(const struct ottl_value *value)
{
    struct ottl_numbers indices = ottl_attribute_indices(value->tables, value->index);
    return INDEX_STEPS * size_of_message(&indices.message);
}

static size_t steps_of_several(const struct ottl_value *value)
{
    switch (value->form) {
    case OTTL_FORM_BYTES:
        return ENCODED_STEPS * value->bytes.size;
    case OTTL_FORM_ATTRIBUTES:
        return ENCODED_STEPS * size_of_message(value->message);
    case OTTL_FORM_ENTRIES:
        return steps_of_entries(value);
    case OTTL_FORM_SPLIT:
        return SPLIT_STEPS * value->split->text.size;
    case OTTL_FORM_INDICES:
        return steps_of_indices(value);
    case OTTL_FORM_FRAMES: /* take steps of the tables */
        return 0;
    default:
        return NUMBER_STEPS * size_of_message(value->message);
    }
}

size_t ottl_around_steps(const struct ottl_value *value)
{
    switch (value->kind) {
    case OTTL_STRING:
    case OTTL_BYTES:
        return value->bytes.size;
    case OTTL_MAP:
    case OTTL_LIST:
        return steps_of_several(value);
    case OTTL_MESSAGES:
        return ENCODED_STEPS * size_of_message(value->message);
    default:
        return 0;
    }
}
