/*
 * list: a doubly linked list whose links are members of its items.
 *
 *     struct item { struct list_link link; ... };
 *     list_append(&list, &item->link);
 *     struct item *first = container_of(list.first, struct item, link);
 *
 * Each link can be in only one list at a time. Every function takes constant time. All-zero is an
 * empty list.
 *
 * Owner: the list owns nothing; remove an item before you free it.
 *
 * Thread: that of the items.
 */
#ifndef PROFCOL_CORE_BASE_LIST_H
#define PROFCOL_CORE_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list;

struct list_link {
    struct list *list; /* NULL: in none */
    struct list_link *previous;
    struct list_link *next;
};

struct list {
    struct list_link *first;
    struct list_link *last;
    size_t count;
};

/* Puts the link, which is in no list, at the end. */
void list_append(struct list *list, struct list_link *link);
/* Puts the link, which is in no list, at the front. */
void list_prepend(struct list *list, struct list_link *link);
/* Puts the link, which is in no list, behind one of the list. */
void list_insert(struct list *list, struct list_link *link, struct list_link *previous);
/* Takes the link out of this list, in which it is. */
void list_remove(struct list *list, struct list_link *link);

/* Takes the first link out and returns it; NULL when the list is empty. */
static inline struct list_link *list_pop(struct list *list)
{
    struct list_link *first = list->first;
    if (first)
        list_remove(list, first);
    return first;
}

static inline bool list_has(const struct list *list, const struct list_link *link)
{
    return link->list == list;
}

#endif
