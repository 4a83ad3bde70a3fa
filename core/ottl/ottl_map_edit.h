/*
 * ottl_map_edit: the entries of a map that an editor changes.
 *
 *     if (!ottl_edit_load(evaluation, path, &edit))
 *         return false;
 *     for (uint32_t i = 0; i < edit->count; i++)
 *         if (...)
 *             ottl_edit_remove(edit, i);
 *     return ottl_edit_store(evaluation, path, edit);
 *
 * A map whose entries stay as they are is not written, and its message is not opened.
 *
 * Owner: the evaluator has one edit, and keeps its memory. Keys and values point into the data, or
 * to the evaluator's scratch memory.
 *
 * Thread: that of the evaluator.
 */
#ifndef PROFCOL_CORE_OTTL_OTTL_MAP_EDIT_H
#define PROFCOL_CORE_OTTL_OTTL_MAP_EDIT_H

#include "core/base/index_table.h"
#include "core/ottl/ottl_evaluation.h"

enum ottl_edit_state { OTTL_ENTRY_KEPT, OTTL_ENTRY_SET, OTTL_ENTRY_REMOVED, OTTL_ENTRY_ADDED };

struct ottl_edit_entry {
    struct slice key;
    struct slice value; /* the payload of an AnyValue */
    enum ottl_edit_state state;
    size_t old_size;   /* of key and value as loaded */
    bool is_duplicate; /* the editors' */
};

struct ottl_edit {
    struct ottl_edit_entry *entries;
    uint32_t count;
    uint32_t capacity;
    uint32_t left; /* entries that are not removed */
    bool is_changed;
    bool is_charged;           /* what is new was counted already (ottl_take_room) */
    bool is_indexed;           /* by_key is up to date */
    struct index_table by_key; /* the first entry of each key that is not removed */
};

void ottl_edit_deinit(struct ottl_edit *edit);

/* A map with more entries is not changed: they take more memory than their bytes. */
enum { OTTL_EDIT_MAX = 100000 };
/* Returns false with the error set if there are more. */
bool ottl_edit_check(struct ottl_evaluation *evaluation, const struct ottl_edit *edit);

/* Reads the map at a path. Returns false with the error set if there is no map. */
bool ottl_edit_load(struct ottl_evaluation *evaluation, const struct ottl_node *path,
                    struct ottl_edit *edit);
/* Writes the changes. Returns false with the error set. */
bool ottl_edit_store(struct ottl_evaluation *evaluation, const struct ottl_node *path,
                     struct ottl_edit *edit);

/* Remove an entry, give it another value or key, add one. */
void ottl_edit_remove(struct ottl_edit *edit, uint32_t at);
void ottl_edit_set_value(struct ottl_edit *edit, uint32_t at, struct slice value);
void ottl_edit_set_key(struct ottl_edit *edit, uint32_t at, struct slice key);
void ottl_edit_add(struct ottl_edit *edit, struct slice key, struct slice value);
/* Removes all entries. */
void ottl_edit_clear(struct ottl_edit *edit);
/* Finds the first entry with a key that is not removed. Returns false if there is none. */
bool ottl_edit_find(struct ottl_edit *edit, struct slice key, uint32_t *at_out);

#endif
