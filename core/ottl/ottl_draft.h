/*
 * ottl_draft: what the statements on an item have changed so far, and have not written yet.
 *
 * Several statements change the attributes of a span. They are read once, and written once: when
 * the last statement on the item was executed (ottl_item_finish) or, if they are those of a message
 * around the items, when the walk leaves that message (ottl_item_leave), because many items may
 * change them. Until then paths are read here. Other fields of the messages around the items wait
 * in the same way (ottl_outer.h).
 *
 * Owner: the caller of ottl_draft_new. The item borrows it (ottl_item_set_way). Keys and values
 * are in the data, or in the batch's arena once they are committed.
 *
 * Thread: that of the evaluator, while it executes a statement.
 */
#ifndef PROFCOL_CORE_OTTL_OTTL_DRAFT_H
#define PROFCOL_CORE_OTTL_OTTL_DRAFT_H

#include "core/data/attribute_list.h"
#include "core/ottl/ottl_evaluation.h"
#include "core/ottl/ottl_outer.h"

/* A map with more entries is not changed: they take more memory than their bytes. */
enum { OTTL_EDIT_MAX = 100000 };

/* The attributes of one message. */
struct ottl_draft_part {
    struct attribute_list list;
    const struct ottl_path_row *row; /* NULL: empty */
    bool is_refused;                 /* the attributes are too many to be read */
    bool is_changed;                 /* by a statement that succeeded */
};

struct ottl_draft {
    unsigned depth;                                 /* of the items */
    struct ottl_draft_part parts[OTTL_DEPTH_COUNT]; /* one for each depth */
    struct ottl_outers outers;
};

/* Returns false with the error set if there are more than OTTL_EDIT_MAX entries. */
bool ottl_draft_check(struct ottl_evaluation *evaluation, const struct attribute_list *list);

/* Begins statements on items of a depth. */
void ottl_draft_begin(struct ottl_item *item, unsigned depth);

/* Returns the attributes of a row if they are drafted, also because their message is open
 * (ottl_outer.h); NULL: they are read from it. */
struct attribute_list *ottl_draft_find(struct ottl_evaluation *evaluation,
                                       const struct ottl_path_row *row);
/* The same if the draft differs from the message. */
struct attribute_list *ottl_draft_find_changed(struct ottl_evaluation *evaluation,
                                               const struct ottl_path_row *row);
/* Reads the attributes of a row, unless they are here already. Returns NULL with the error set if
 * they are too many. */
struct attribute_list *ottl_draft_load(struct ottl_evaluation *evaluation,
                                       const struct ottl_path_row *row);
/* Whether changes of a row are drafted: those of attributes are, but for samples and profiles that
 * are the items themselves. */
static inline bool ottl_draft_takes(struct ottl_evaluation *evaluation,
                                    const struct ottl_path_row *row)
{
    return row->is_map && !row->is_cache &&
           (!row->is_indices ||
            ottl_context_depth(row->context) < ottl_evaluation_depth(evaluation));
}
/* Makes the changes of a statement permanent. */
void ottl_draft_commit(struct ottl_evaluation *evaluation, const struct ottl_path_row *row);
/* Takes back those of a statement that failed. */
void ottl_draft_undo(struct ottl_item *item);

/* Before a profile's indices of attributes are read or replaced: writes the attributes to them. */
void ottl_draft_write_indices(struct ottl_item *item);
/* Returns whether attributes of the item itself would be written. */
bool ottl_draft_is_changed(const struct ottl_item *item);

#endif
