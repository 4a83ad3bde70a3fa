#include "core/ottl/ottl_map_edit.h"
#include "core/ottl/ottl_paths.h"
#include "core/ottl/ottl_profile_tables.h"
#include "core/ottl/ottl_writing.h"

#include <assert.h>

static bool next_index(struct ottl_numbers *indices, uint64_t *out)
{
    while (ottl_numbers_next(indices, out))
        if (*out != 0)
            return true;
    return false;
}

/* Samples and profiles share the table, so a changed attribute becomes another entry. As in the
 * Collector, it has no unit. */
static uint32_t index_of(struct ottl_profile_tables *tables, const struct attribute_entry *entry)
{
    return dictionary_add_attribute(tables->dictionary, entry->key, entry->value,
                                    (struct slice){0});
}

bool ottl_write_indices(struct ottl_evaluation *evaluation, const struct ottl_path_row *row,
                        const struct attribute_list *edit)
{
    struct ottl_profile_tables *tables = ottl_evaluation_target(evaluation)->tables;
    struct wire_writer *writer = ottl_evaluation_writer(evaluation);
    struct ottl_numbers indices = ottl_attribute_indices(tables, row->number);
    size_t begun = wire_writer_begin(writer, row->number);
    for (uint32_t i = 0; i < edit->count; i++) {
        const struct attribute_entry *entry = &edit->entries[i];
        uint64_t index = 0;
        bool is_there = entry->state == ATTRIBUTE_IS_ADDED || next_index(&indices, &index);
        if (entry->state == ATTRIBUTE_IS_REMOVED || !is_there)
            continue;
        if (entry->state != ATTRIBUTE_IS_OLD)
            index = index_of(tables, entry);
        uint8_t *to = wire_writer_room(writer, WIRE_HEADER_MAX);
        wire_writer_wrote(writer, wire_write_varint(to, index));
    }
    wire_writer_end(writer, begun);
    bool is_own = ottl_context_depth(row->context) == ottl_evaluation_depth(evaluation);
    if (!is_own && !ottl_take_room(evaluation, writer->size, 0))
        return false; /* each sample would leave a list for the profile behind */
    struct message_iter *message = ottl_open(evaluation, row);
    struct message_iter at = *message;
    struct message_field field;
    while (message_next(&at, &field))
        if (field.wire.number == row->number)
            message_remove(&at, &field);
    message_append(message->message, message->arena,
                   arena_copy(message->arena, wire_writer_slice(writer)));
    return true;
}
