/*
 * ottl_map_edit: the entries of a map that an editor changes.
 *
 *     struct attribute_list *list = ottl_edit_load(evaluation, path);
 *     if (!list)
 *         return false;
 *     for (uint32_t i = 0; attribute_list_next(list, &i); i++)
 *         if (...)
 *             attribute_list_remove(list, i);
 *     return ottl_edit_store(evaluation, path, list);
 *
 * Evaluate the arguments before the map is loaded: they may read the same map. A map whose entries
 * stay as they are is not written, and its message is not opened.
 *
 * Owner: attributes of a resource, scope, span or event are the draft of the item (ottl_draft.h),
 * other maps a list of the evaluator; both keep their memory. New keys and values may be in the
 * evaluator's scratch memory.
 *
 * Thread: that of the evaluator.
 */
#ifndef PROFCOL_CORE_OTTL_OTTL_MAP_EDIT_H
#define PROFCOL_CORE_OTTL_OTTL_MAP_EDIT_H

#include "core/data/attribute_list.h"
#include "core/ottl/ottl_evaluation.h"

/* Reads the map at a path, to go over its entries. Returns NULL with the error set if there is no
 * map. */
struct attribute_list *ottl_edit_load(struct ottl_evaluation *evaluation,
                                      const struct ottl_node *path);
/* The same to find entries by their keys, which takes few steps. */
struct attribute_list *ottl_edit_open(struct ottl_evaluation *evaluation,
                                      const struct ottl_node *path);
/* Counts what is new (ottl_take_room), and writes the changes. Returns false with the error set. */
bool ottl_edit_store(struct ottl_evaluation *evaluation, const struct ottl_node *path,
                     struct attribute_list *list);
/* The same for an editor that has counted what is new (ottl_encode_entry). */
bool ottl_edit_store_counted(struct ottl_evaluation *evaluation, const struct ottl_node *path,
                             struct attribute_list *list);

#endif
