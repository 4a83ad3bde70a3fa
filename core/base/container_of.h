/*
 * container_of: from an embedded timer, message or list link back to the struct that holds it.
 *
 * A pointer to anything but that member does not compile. Whether this member is part of such a
 * struct only the caller knows; of a component and its nodes, core/pipeline/component_as.h checks
 * it.
 *
 * Owner: nothing is owned.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_BASE_CONTAINER_OF_H
#define PROFCOL_CORE_BASE_CONTAINER_OF_H

#include <stddef.h>

/* 0, if the pointer has the type of a pointer to `member`; else an error of the compiler. */
#define CONTAINER_OF_CHECK(pointer, type, member)                                                  \
    (0 * sizeof(struct {                                                                           \
         _Static_assert(__builtin_types_compatible_p(__typeof__(*(pointer)),                       \
                                                     __typeof__(((type *)0)->member)),             \
                        "container_of: the pointer is not to this member");                        \
         char unused;                                                                              \
     }))

/* pointer: to `member` of a `type`, as container_of(timer, struct shipment, timer). */
#define container_of(pointer, type, member)                                                        \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member) +                                   \
                      CONTAINER_OF_CHECK(pointer, type, member)))

#endif
