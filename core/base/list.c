#include "core/base/list.h"

#include <assert.h>

/* Behind `previous`; NULL is the front. */
static void insert(struct list *list, struct list_link *link, struct list_link *previous)
{
    assert(!link->list);
    struct list_link *next = previous ? previous->next : list->first;
    *link = (struct list_link){.list = list, .previous = previous, .next = next};
    if (previous)
        previous->next = link;
    else
        list->first = link;
    if (next)
        next->previous = link;
    else
        list->last = link;
    list->count++;
}

void list_append(struct list *list, struct list_link *link)
{
    insert(list, link, list->last);
}

void list_prepend(struct list *list, struct list_link *link)
{
    insert(list, link, NULL);
}

void list_insert(struct list *list, struct list_link *link, struct list_link *previous)
{
    assert(previous && previous->list == list);
    insert(list, link, previous);
}

void list_remove(struct list *list, struct list_link *link)
{
    assert(link->list == list && list->count > 0);
    if (link->previous)
        link->previous->next = link->next;
    else
        list->first = link->next;
    if (link->next)
        link->next->previous = link->previous;
    else
        list->last = link->previous;
    list->count--;
    assert((list->count == 0) == (list->first == NULL));
    *link = (struct list_link){0};
}
