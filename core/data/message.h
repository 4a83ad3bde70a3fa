/*
 * message: the lazy tree. One protobuf message as it was received, plus its changes.
 *
 * Reading uses the received bytes. A node (struct message) exists only for a message that is
 * changed, and for the messages that contain it. An unchanged message is sent with the bytes that
 * were received, so unknown fields survive and cost nothing. A changed one is written as its
 * unchanged runs, the changed children between them, and the appended fields.
 *
 *     struct message_iter it = message_iter(root, arena);
 *     struct message_field f;
 *     while (message_next(&it, &f)) {  // removed fields are skipped, appended ones come last
 *         if (f.wire.number != 1 || f.wire.type != WIRE_BYTES)
 *             continue;
 *         struct message_iter below = message_iter_into(&f, arena);  // to read on, without a node
 *         struct message *child = message_open(&it, &f);             // or to change it
 *         message_append(child, arena, slice_of(encoded, n));
 *     }
 *
 * The bytes of a message that was changed lack the change. If a field's node was appended to or has
 * a changed child, its bytes are `wire_stale`, which asserts when it is read as a message: use
 * message_iter_into, which shows the changes. docs/data.md has worked examples and what a node
 * costs.
 *
 * Owner: nodes and appended bytes live in the batch's arena; slices borrow from its buffers.
 *
 * Thread: the worker that owns the batch.
 */
#ifndef PROFCOL_CORE_DATA_MESSAGE_H
#define PROFCOL_CORE_DATA_MESSAGE_H

#include "core/data/wire.h"

#include <assert.h>

struct arena;

/* Whole encoded fields (tag included) after the received ones. */
struct message_tail {
    struct slice fields;
    uint32_t segment; /* 1, 2, ...; 0 is the received bytes */
    struct message_tail *next;
};

struct message {
    struct slice raw;         /* payload as received */
    struct message *parent;   /* NULL: the root */
    struct message *next;     /* sibling, in the order of the bytes */
    struct message *children; /* opened, replaced or removed ones only, in the order of the bytes */
    struct message_tail *tail; /* appended, in order */
    struct message_tail *tail_last;
    const uint8_t *field_start; /* where its field starts in the parent's bytes (NULL: the root) */
    const uint8_t *field_end;
    size_t size;       /* encoded payload; valid after message_measure */
    uint32_t number;   /* its field number in the parent */
    uint32_t segment;  /* where field_start is: 0, or the number of the parent's tail */
    bool changed;      /* it, or one of its descendants */
    bool raw_is_stale; /* raw lacks a change: it was appended to, or a descendant was changed */
    bool removed;
};

struct message_field {
    struct wire_field wire; /* bytes: wire_stale if the message was changed after it was received */
    struct message *node;   /* NULL: it was not opened */
};

struct message_iter {
    struct message *message; /* NULL: plain bytes */
    struct wire_cursor cursor;
    struct message *previous; /* last node passed, after which a new one is inserted; NULL: none */
    const struct message_tail *tail; /* being read; NULL: the received bytes are being read */
    struct arena *arena;             /* for message_open; may be NULL when only reading */
};

/* Initialises a root with received bytes. */
void message_init(struct message *message, struct slice raw);

/* Returns an iterator at the start of an open message. */
static inline struct message_iter message_iter(struct message *message, struct arena *arena)
{
    return (struct message_iter){
        .message = message, .cursor = wire_cursor(message->raw), .arena = arena};
}
/* Returns an iterator over bytes alone: nothing can be opened. */
static inline struct message_iter message_iter_bytes(struct slice raw)
{
    return (struct message_iter){.cursor = wire_cursor(raw)};
}
/* Returns an iterator into a BYTES field that the caller knows to be a message. To change something
 * in it, call message_open on the field first. */
static inline struct message_iter message_iter_into(const struct message_field *field,
                                                    struct arena *arena)
{
    assert(field->wire.type == WIRE_BYTES);
    return field->node ? message_iter(field->node, arena) : message_iter_bytes(field->wire.bytes);
}
/* Opens `field`, the current field of `parent`, for an iterator that message_iter_into returned for
 * it. Fields that the iterator returns afterwards can be opened, removed and replaced. */
void message_iter_open(struct message_iter *it, struct message_iter *parent,
                       struct message_field *field);
/* Reads the next field; false at the end. Asserts that the bytes are valid, because the input was
 * scanned (scan.h). */
bool message_next_in_tree(struct message_iter *it, struct message_field *field);
static inline bool message_next(struct message_iter *it, struct message_field *field)
{
    if (it->message && it->message->children)
        return message_next_in_tree(it, field);
    field->node = NULL;
    if (wire_next(&it->cursor, &field->wire))
        return true;
    assert(!it->cursor.broken);
    return it->message && message_next_in_tree(it, field); /* appended fields */
}

/* Reads the next field of this number that has a payload, like wire_next_bytes; false at the end.
 */
static inline bool message_next_bytes(struct message_iter *it, uint32_t number,
                                      struct message_field *field)
{
    while (message_next(it, field))
        if (field->wire.number == number && field->wire.type == WIRE_BYTES)
            return true;
    return false;
}

/* Fields without a node that lie together, or one node. */
struct message_piece {
    struct slice fields;
    struct message *node; /* NULL: they are fields */
};
/* Moves to the next piece: for whoever reads all fields, faster than field by field. Removed fields
 * are skipped. Returns false at the end. */
bool message_next_piece(struct message_iter *it, struct message_piece *piece);

/* Returns the end of the fields ahead, in the same run of bytes, that have no node. Whoever reads
 * them as bytes moves it->cursor.next on to the end of one of them. */
const uint8_t *message_plain_end(const struct message_iter *it);

/* Returns the node of the field that the iterator just returned; creates it if it does not exist
 * yet. Opening does not count as a change. */
struct message *message_open(struct message_iter *it, struct message_field *field);
/* Removes the field that the iterator just returned from the message. */
void message_remove(struct message_iter *it, struct message_field *field);
/* Replaces the payload of the BYTES field that the iterator just returned. `payload`
 * must exist as long as the arena. */
void message_replace(struct message_iter *it, struct message_field *field, struct slice payload);
/* The same for an open message: it gets other bytes, and what was opened in it is gone. No iterator
 * may be inside it. */
void message_rewrite(struct message *message, struct slice payload);
/* Appends whole encoded fields, which must exist as long as the arena. */
void message_append(struct message *message, struct arena *arena, struct slice fields);

/* Computes the sizes of all changed messages, and returns the encoded payload size of this one. */
size_t message_measure(struct message *message);
/* After message_measure: writes the payload, and returns the address after it. It may be written
 * over the received bytes if message_shrinks. */
uint8_t *message_write(const struct message *message, uint8_t *to);
/* Whether fields were only removed, or replaced by shorter ones, so that each byte that stays is
 * written at its old address or before it. */
bool message_shrinks(const struct message *message);

/* The payload as a list of slices, for writev or a compressor. Field headers are in the arena;
 * slices of less than 512 bytes are copied together. */
struct slice_list {
    struct slice *items;
    size_t count;
    size_t capacity;
    size_t size;      /* sum */
    uint8_t *scratch; /* where short runs are copied together */
    uint8_t *scratch_end;
    size_t scratch_size; /* of the current block */
};
/* Appends one slice to the list. Short slices are copied; empty ones are left out. */
void slice_list_add(struct slice_list *list, struct arena *arena, struct slice bytes);
/* After message_measure: appends the payload to the list. */
void message_gather(const struct message *message, struct arena *arena, struct slice_list *out);

#endif
