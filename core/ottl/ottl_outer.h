/*
 * ottl_outer: fields of a message around the items that statements on the items change.
 *
 * A span contains its events, a profile its samples. A statement on events that sets a field of
 * their span would search the whole span for each of them. So the first write of an item finds the
 * fields of the message once, and keeps those that paths name apart: each is a small message, with
 * the fields of one number. All items in it read and write these. ottl_item_leave writes what has
 * changed to the message. Its attributes are a draft meanwhile (ottl_draft.h); the items, and
 * fields that no path names, stay where they are.
 *
 * Owner: the draft that an item borrows; bytes are in the batch's arena.
 *
 * Thread: that of the evaluator, while it executes a statement.
 */
#ifndef PROFCOL_CORE_OTTL_OTTL_OUTER_H
#define PROFCOL_CORE_OTTL_OTTL_OUTER_H

#include "core/data/message.h"
#include "core/ottl/ottl_path.h"

enum {
    OTTL_OUTER_COUNT = 5,  /* group, resource, scope group, scope, span or profile */
    OTTL_OUTER_FIELDS = 17 /* a number is below this */
};

/* The fields of one number. */
struct ottl_outer_field {
    struct message message;
    struct message_iter iter; /* over it, at its start */
    uint8_t *buffers[2];      /* of which one has its bytes, once it was written */
    size_t capacities[2];
    unsigned next; /* the one that is written next */
};

struct ottl_outer {
    bool is_open;
    uint32_t changed; /* a bit for each number */
    struct ottl_outer_field fields[OTTL_OUTER_FIELDS];
};

struct ottl_outers {
    struct ottl_outer items[OTTL_OUTER_COUNT];
    struct ottl_outer_field *written; /* by the statement; NULL: none */
    struct arena changes;             /* of `written` */
};

/* Opens the message of a row, which is around the item, to read and write it here. */
void ottl_outer_open(struct ottl_item *item, const struct ottl_path_row *row);
/* Whether it is open. */
bool ottl_outer_is_open(const struct ottl_item *item, const struct ottl_path_row *row);
/* Returns the message in which the row's field is; NULL: in the item's. */
struct message_iter *ottl_outer_message(const struct ottl_item *item,
                                        const struct ottl_path_row *row);
/* Returns the same, for a change that ottl_outer_settle ends: until then, fields that are added are
 * in the arena of the changes. */
struct message_iter *ottl_outer_change(struct ottl_item *item, const struct ottl_path_row *row);
void ottl_outer_settle(struct ottl_item *item);
/* Writes what has changed to the messages of a depth, and closes them. */
void ottl_outer_close(struct ottl_item *item, unsigned depth);

/* Returns the message that a row reads. */
static inline const struct message_iter *ottl_message_of(struct ottl_evaluation *evaluation,
                                                         const struct ottl_path_row *row)
{
    const struct ottl_item *item = ottl_evaluation_item(evaluation);
    const struct message_iter *outer = item->kept ? ottl_outer_message(item, row) : NULL;
    return outer ? outer : (const void *)((const char *)item + row->message);
}

#endif
