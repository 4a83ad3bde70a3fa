/*
 * message_fields: a copy of the fields of a message that have one number, without the others.
 *
 *     size_t size = message_fields_size(message, SPAN_ATTRIBUTES);
 *     uint8_t *bytes = arena_alloc(arena, size);
 *     message_fields_write(message, SPAN_ATTRIBUTES, bytes);
 *
 * The copy is a message again. It has what was changed in the fields since they were received.
 *
 * Owner: the caller's memory.
 *
 * Thread: that of the message.
 */
#ifndef PROFCOL_CORE_DATA_MESSAGE_FIELDS_H
#define PROFCOL_CORE_DATA_MESSAGE_FIELDS_H

#include "core/data/message.h"

/* Returns the size of the copy, and writes it. `message` is at its start. */
size_t message_fields_size(struct message_iter message, uint32_t number);
void message_fields_write(struct message_iter message, uint32_t number, uint8_t *to);
/* The same for one field. Returns the address after it. */
size_t message_field_size(const struct message_field *field);
uint8_t *message_field_write(const struct message_field *field, uint8_t *to);

#endif
