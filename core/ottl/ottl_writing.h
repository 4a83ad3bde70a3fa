/*
 * ottl_writing: sets what a path names (ottl_write.c).
 *
 * A message is opened when it is written first (core/data/message.h), with those around it. After a
 * write, what was kept for this level and those inside it counts no more.
 *
 * Owner: what is written is copied to the batch's arena, or to that of the cache.
 *
 * Thread: that of the evaluator, while it executes a statement.
 */
#ifndef PROFCOL_CORE_OTTL_OTTL_WRITING_H
#define PROFCOL_CORE_OTTL_OTTL_WRITING_H

#include "core/ottl/ottl_evaluation.h"

struct attribute_list;
struct wire_writer;

/* Sets the value at a path (OTTL_PATH). nil empties a map, and is an empty attribute; no other path
 * takes it. Returns false with the error set. */
bool ottl_write_value(struct ottl_evaluation *evaluation, const struct ottl_node *path,
                      const struct ottl_value *value);
/* The same for an attribute, or the whole cache, and the payload of an AnyValue. */
bool ottl_write_payload(struct ottl_evaluation *evaluation, const struct ottl_node *path,
                        struct slice payload);
/* Encodes a value in scratch memory. Returns false with the error set. */
bool ottl_encode_value(struct ottl_evaluation *evaluation, const struct ottl_value *value,
                       struct slice *out);

/* The same for a text. */
struct slice ottl_encode_text(struct ottl_evaluation *evaluation, struct slice text);
/* Returns the text as it can be sent: what is no UTF-8 becomes U+FFFD, in scratch memory. */
struct slice ottl_valid_text(struct ottl_evaluation *evaluation, struct slice text);

/* The same for an entry that an edit gains: sets *payload_out, in scratch memory, and counts it, if
 * the value is not `old`, which is what the entry had before. */
bool ottl_encode_entry(struct ottl_evaluation *evaluation, const struct ottl_entry *entry,
                       struct slice old, struct slice *payload_out);

/* Opens the message in which a row's field is, to change it. Returns its iterator, at the start. */
struct message_iter *ottl_open(struct ottl_evaluation *evaluation, const struct ottl_path_row *row);
/* Opens the message at an offset in struct ottl_item, on the way of the item. */
struct message_iter *ottl_item_open(struct ottl_item *item, size_t message,
                                    enum ottl_context context);
/* What was kept for this level and those inside it is not up to date any more. */
void ottl_forget(struct ottl_item *item, enum ottl_context context);
/* Counts bytes of a key and a value that take the place of `old` bytes, which stay in memory if
 * they are in a message around the item; each execution has 64 that do not count. Returns false
 * with the error set if there is no room for them. */
bool ottl_take_room(struct ottl_evaluation *evaluation, size_t bytes, size_t old);
/* Count steps of what an item does with what other items share: any; those of an entry of a map;
 * those of so many bytes in a message around the item, if the statement writes to it. Return false
 * with the error set if there are none left. */
bool ottl_take_steps(struct ottl_evaluation *evaluation, size_t steps);
bool ottl_take_entry(struct ottl_evaluation *evaluation, const struct ottl_entry *entry);
bool ottl_take_around(struct ottl_evaluation *evaluation, size_t bytes);
/* Writes the attributes of a profile or sample. */
bool ottl_write_indices(struct ottl_evaluation *evaluation, const struct ottl_path_row *row,
                        const struct attribute_list *edit);
/* Writes them as a list of indices of the dictionary, which gains those that are new. */
void ottl_encode_indices(struct ottl_profile_tables *tables, const struct attribute_list *list,
                         uint32_t number, struct wire_writer *writer);

/* Write a field of an open message; an empty text and 0 remove it. The bytes are copied. */
void ottl_put_bytes(struct message_iter message, uint32_t number, struct slice bytes);
void ottl_put_number(struct message_iter message, uint32_t number, enum wire_type type,
                     uint64_t value);
/* Opens a message inside an open one; adds it if there is none. */
struct message_iter ottl_open_inner(struct message_iter message, uint32_t number);

#endif
