/*
 * ottl_draft: the attributes of one message around an item, as the statements have changed them so
 * far.
 *
 * Several statements change the attributes of a span. They are read once, and written once: when
 * the last statement was executed (ottl_item_finish), or one needs them as a part of the message,
 * or changes the attributes of another message. Until then paths with a key are read here.
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
#include "core/ottl/ottl_path.h"

/* A map with more entries is not changed: they take more memory than their bytes. */
enum { OTTL_EDIT_MAX = 100000 };

/* Returns whether a row is one of attributes in the message. */
static inline bool ottl_draft_takes(const struct ottl_path_row *row)
{
    return row->is_map && !row->is_cache && !row->is_indices;
}

/* Reads the attributes of a row, unless they are here already. */
struct attribute_list *ottl_draft_load(struct ottl_evaluation *evaluation,
                                       const struct ottl_path_row *row);
/* Makes the changes of a statement permanent. */
void ottl_draft_commit(struct ottl_evaluation *evaluation);
/* Takes back those of a statement that failed. */
void ottl_draft_undo(struct ottl_item *item);

/* Returns the draft if it has the attributes of a row, otherwise NULL. */
struct attribute_list *ottl_draft_of(const struct ottl_item *item, const struct ottl_path_row *row);
/* Returns whether something would be written. */
bool ottl_draft_is_changed(const struct ottl_item *item);
/* Writes the attributes to their message, and forgets them. */
void ottl_draft_write(struct ottl_item *item);

#endif
