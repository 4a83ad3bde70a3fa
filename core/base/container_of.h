/*
 * container_of: from an embedded timer, message or list link back to the struct that holds it.
 *
 * Needed where the member is not the first one; for a first member, a cast does the same.
 *
 * Owner: nothing is owned.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_BASE_CONTAINER_OF_H
#define PROFCOL_CORE_BASE_CONTAINER_OF_H

#include <stddef.h>

/* pointer: to `member` of a `type`, as container_of(timer, struct shipment, timer). */
#define container_of(pointer, type, member)                                                        \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

#endif
