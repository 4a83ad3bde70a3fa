/*
 * ottl_map_edit: the entries of a map that an editor changes.
 *
 *     struct ottl_edit *edit = ottl_edit_load(evaluation, path);
 *     if (!edit)
 *         return false;
 *     for (uint32_t i = 0; ottl_edit_next(edit, &i); i++)
 *         if (...)
 *             ottl_edit_remove(edit, i);
 *     return ottl_edit_store(evaluation, path, edit);
 *
 * Evaluate the arguments before the map is loaded: they may read the same map. A map whose entries
 * stay as they are is not written, and its message is not opened.
 *
 * Owner: attributes of a resource, scope, span or event are the draft of the item (ottl_draft.h),
 * other maps an edit of the evaluator; both keep their memory. Keys and values point into the data,
 * or until they are stored to the evaluator's scratch memory.
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
    struct slice field; /* of the message it was loaded from; empty: it has none */
    enum ottl_edit_state state;
    bool is_duplicate; /* the editors' */
};

/* One change of an entry that is not stored yet. */
struct ottl_edit_change {
    uint32_t at;
    bool is_new; /* there was no entry before */
    struct ottl_edit_entry before;
};

struct ottl_edit {
    struct ottl_edit_entry *entries;
    uint32_t count;
    uint32_t capacity;
    uint32_t left; /* entries that are not removed */
    struct ottl_edit_change *changes;
    uint32_t change_count;
    uint32_t change_capacity;
    bool is_charged;           /* what is new was counted already (ottl_take_room) */
    bool is_indexed;           /* by_key is up to date */
    struct index_table by_key; /* the first entry of each key that is not removed */
};

void ottl_edit_deinit(struct ottl_edit *edit);
/* Frees the memory that a large map needed. */
void ottl_edit_trim(struct ottl_edit *edit);

/* A map with more entries is not changed: they take more memory than their bytes. */
enum { OTTL_EDIT_MAX = 100000 };
/* Returns false with the error set if there are more. */
bool ottl_edit_check(struct ottl_evaluation *evaluation, const struct ottl_edit *edit);

/* Reads the map at a path. Returns NULL with the error set if there is no map. */
struct ottl_edit *ottl_edit_load(struct ottl_evaluation *evaluation, const struct ottl_node *path);
/* Writes the changes. Returns false with the error set. */
bool ottl_edit_store(struct ottl_evaluation *evaluation, const struct ottl_node *path,
                     struct ottl_edit *edit);

/* Moves *at to the first entry from there on that is not removed. Returns false at the end. */
static inline bool ottl_edit_next(const struct ottl_edit *edit, uint32_t *at)
{
    while (*at < edit->count && edit->entries[*at].state == OTTL_ENTRY_REMOVED)
        ++*at;
    return *at < edit->count;
}

/* Remove an entry, give it another value or key, add one. */
void ottl_edit_remove(struct ottl_edit *edit, uint32_t at);
void ottl_edit_set_value(struct ottl_edit *edit, uint32_t at, struct slice value);
void ottl_edit_set_key(struct ottl_edit *edit, uint32_t at, struct slice key);
void ottl_edit_add(struct ottl_edit *edit, struct slice key, struct slice value);
/* Removes all entries. */
void ottl_edit_clear(struct ottl_edit *edit);
/* Finds the first entry with a key that is not removed. Returns false if there is none. */
bool ottl_edit_find(struct ottl_edit *edit, struct slice key, uint32_t *at_out);

/* ---- for those who keep an edit ---- */

/* Empties it. */
void ottl_edit_begin(struct ottl_edit *edit);
/* Reads a map that has no keys. */
void ottl_edit_read(struct ottl_edit *edit, const struct ottl_value *map);
/* Takes back the changes that were not stored. */
void ottl_edit_undo(struct ottl_edit *edit);

#endif
