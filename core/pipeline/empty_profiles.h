/*
 * empty_profiles: profiles requests without samples, and where they go.
 *
 * Receivers answer requests without items themselves, and no component has to expect one. Uploads
 * without samples say something nevertheless: that a process took none until then. They go on to
 * the components that read this (`reads_empty` in component.h), and end there.
 *
 * Owner: nothing is allocated.
 *
 * Thread: the worker of the nodes.
 */
#ifndef PROFCOL_CORE_PIPELINE_EMPTY_PROFILES_H
#define PROFCOL_CORE_PIPELINE_EMPTY_PROFILES_H

#include <stdbool.h>
#include <stdint.h>

struct node;

/* Whether a receiver forwards a profiles request with so many samples: if it has some, or if a
 * component behind the receiver reads those without. */
bool profiles_are_wanted(const struct node *receiver, uint32_t samples);
/* Whether all profiles of the receiver reach such components. Then its readers may keep profiles
 * without samples beside others, which these components remove. */
bool empty_profiles_are_removed(const struct node *receiver);
/* Whether the node takes them: it reads them, or passes them on to one that does. */
bool node_takes_empty_profiles(const struct node *node);

#endif
