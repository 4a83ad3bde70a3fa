/*
 * attribute_list: attributes that are read once, changed any number of times, and written once.
 *
 *     attribute_list_read(&list, message_iter, SPAN_ATTRIBUTES, NULL, MAX);
 *     if (attribute_list_find(&list, key, &at))
 *         attribute_list_set_value(&list, at, value);
 *     if (list.change_count > 0)
 *         attribute_list_write(&list, message, SPAN_ATTRIBUTES, arena, true);
 *
 * Other maps are put in by attribute_list_push, and written by whoever reads the entries.
 *
 * Owner: the caller; attribute_list_deinit. The memory is kept for the next message. Keys and
 * values are borrowed; they must exist until the list is written.
 *
 * Thread: one at a time. A zeroed list is valid and empty.
 */
#ifndef PROFCOL_CORE_DATA_ATTRIBUTE_LIST_H
#define PROFCOL_CORE_DATA_ATTRIBUTE_LIST_H

#include "core/base/index_table.h"
#include "core/data/attributes.h"

enum attribute_state {
    ATTRIBUTE_IS_OLD,
    ATTRIBUTE_IS_CHANGED,
    ATTRIBUTE_IS_REMOVED,
    ATTRIBUTE_IS_ADDED
};

struct attribute_entry {
    struct slice key;
    struct slice value; /* the payload of an AnyValue */
    struct slice field; /* of the message it was read from; empty: it has none */
    enum attribute_state state;
    bool is_duplicate; /* the caller's */
    uint32_t number;   /* the caller's, of entries that were put in; 0 once they are changed */
};

/* A change of an entry since the last attribute_list_commit. */
struct attribute_list_change {
    uint32_t at;
    bool is_new; /* there was no entry before */
    struct attribute_entry before;
};

struct attribute_list {
    struct attribute_entry *entries;
    uint32_t count;
    uint32_t capacity;
    uint32_t left; /* entries that are not removed */
    struct attribute_list_change *changes;
    uint32_t change_count;
    uint32_t change_capacity;
    bool is_indexed;           /* by_key is up to date */
    bool has_duplicates;       /* by_key lacks entries */
    bool is_compacted;         /* entries that were removed are not here any more */
    struct index_table by_key; /* the first entry of each key that is not removed */
};

void attribute_list_deinit(struct attribute_list *list);
/* Empties the list; frees the memory that a large one needed. */
void attribute_list_clear(struct attribute_list *list);

/* Which attributes are read. */
struct attribute_filter {
    uint64_t key_sizes; /* a bit for each size modulo 64 that a wanted key may have */
    bool (*is_wanted)(void *context, struct slice key); /* asked for keys of these sizes */
    void *context;
};

/* Replaces the content by the attributes of a message that the filter wants, but by no more than
 * max + 1. filter NULL: all. */
void attribute_list_read(struct attribute_list *list, struct message_iter message, uint32_t number,
                         const struct attribute_filter *filter, uint32_t max);
/* Appends an old entry. */
void attribute_list_push(struct attribute_list *list, struct slice key, struct slice value,
                         uint32_t number);

/* Moves *at to the first entry from there on that is not removed. Returns false at the end. */
static inline bool attribute_list_next(const struct attribute_list *list, uint32_t *at)
{
    while (*at < list->count && list->entries[*at].state == ATTRIBUTE_IS_REMOVED)
        ++*at;
    return *at < list->count;
}

/* Finds the first entry with a key that is not removed. Returns false if there is none. */
bool attribute_list_find(struct attribute_list *list, struct slice key, uint32_t *at_out);

/* Remove an entry, give it another value or key, add one. The value that it has is no change. */
void attribute_list_remove(struct attribute_list *list, uint32_t at);
void attribute_list_set_value(struct attribute_list *list, uint32_t at, struct slice value);
void attribute_list_set_key(struct attribute_list *list, uint32_t at, struct slice key);
void attribute_list_add(struct attribute_list *list, struct slice key, struct slice value);
void attribute_list_remove_all(struct attribute_list *list);
/* Whether a change since the last commit removed or replaced what was read. */
bool attribute_list_takes_away(const struct attribute_list *list);

/* Keeps the changes; takes back those that were not kept. */
void attribute_list_commit(struct attribute_list *list);
void attribute_list_undo(struct attribute_list *list);
/* For a list that is changed again and again, after a commit: drops removed entries, once they are
 * more than the others. */
void attribute_list_compact(struct attribute_list *list);

/* Writes the entries that are not old to the open message they were read from, without a filter if
 * the list was compacted. may_rewrite: the message may get other bytes, so no iterator is inside
 * it; that is the fastest. Otherwise only the fields change. */
void attribute_list_write(const struct attribute_list *list, struct message *message,
                          uint32_t number, struct arena *arena, bool may_rewrite);

#endif
