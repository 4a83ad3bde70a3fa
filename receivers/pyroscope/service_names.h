/*
 * service_names: adds a service name to the resources of an OTLP request that have none.
 *
 * Pyroscope's Java agent can send OTLP to Pyroscope's address, and then does not name its service.
 *
 * A resource of two bytes can gain a name of a thousand bytes or more, so call service_names_fit
 * before service_names_set.
 *
 * Owner: added names live in the arena.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_PYROSCOPE_SERVICE_NAMES_H
#define PROFCOL_PYROSCOPE_SERVICE_NAMES_H

#include "core/data/message.h"

struct arena;

/* Whether adding the name to every resource takes at most 1 MiB plus 32 times the size of the
 * request, including the nodes of the tree. */
bool service_names_fit(struct slice request, struct slice name);
/* Adds the name. root: a profiles request. An empty name does nothing. */
void service_names_set(struct message *root, struct arena *arena, struct slice name);

#endif
