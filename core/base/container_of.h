/*
 * container_of: converts a pointer to an embedded timer, message or list link to the struct that
 * contains it.
 *
 * A pointer to anything but that member does not compile. Only the caller knows whether the member
 * is part of such a struct. For a component and its nodes, core/pipeline/component_as.h checks it.
 *
 * Owner: nothing is owned.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_BASE_CONTAINER_OF_H
#define PROFCOL_CORE_BASE_CONTAINER_OF_H

#include <stddef.h>

/* 0 if the pointer has the type of a pointer to `member`; otherwise a compile error. */
#define CONTAINER_OF_CHECK(pointer, type, member)                                                  \
    (0 * sizeof(struct {                                                                           \
         _Static_assert(__builtin_types_compatible_p(__typeof__(*(pointer)),                       \
                                                     __typeof__(((type *)0)->member)),             \
                        "container_of: the pointer is not to this member");                        \
         char unused;                                                                              \
     }))

/* Returns the `type` whose `member` the pointer points to: container_of(timer, struct job_queue,
 * turn). */
#define container_of(pointer, type, member)                                                        \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member) +                                   \
                      CONTAINER_OF_CHECK(pointer, type, member)))

#endif
