#include "core/data/attribute_list.h"
#include "core/ottl/ottl_path.h"
#include "core/ottl/ottl_profile_tables.h"
#include "core/ottl/ottl_writing.h"

/* Samples and profiles share the table, so a changed attribute becomes another entry. As in the
 * Collector, it has no unit. One that was removed and added as it was has its number. */
static uint32_t index_of(struct ottl_profile_tables *tables, const struct attribute_entry *entry)
{
    if (entry->state == ATTRIBUTE_IS_OLD || entry->number > 0)
        return entry->number;
    return dictionary_add_attribute(tables->dictionary, entry->key, entry->value,
                                    (struct slice){0});
}

void ottl_encode_indices(struct ottl_profile_tables *tables, const struct attribute_list *list,
                         uint32_t number, struct wire_writer *writer)
{
    size_t begun = wire_writer_begin(writer, number);
    for (uint32_t i = 0; attribute_list_next(list, &i); i++) {
        uint32_t index = index_of(tables, &list->entries[i]);
        uint8_t *to = wire_writer_room(writer, WIRE_HEADER_MAX);
        wire_writer_wrote(writer, wire_write_varint(to, index));
    }
    wire_writer_end(writer, begun);
}

bool ottl_write_indices(struct ottl_evaluation *evaluation, const struct ottl_path_row *row,
                        const struct attribute_list *edit)
{
    struct wire_writer *writer = ottl_evaluation_writer(evaluation);
    ottl_encode_indices(ottl_evaluation_target(evaluation)->tables, edit, row->number, writer);
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
