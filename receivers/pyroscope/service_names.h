/*
 * service_names: adds a service name to the resources of an OTLP request that have none.
 *
 * Pyroscope's Java agent can send OTLP to Pyroscope's address, and then does not name its service.
 *
 * A resource of two bytes can gain a name of a thousand bytes or more, so service_names_fit checks
 * the size of all names before anything is changed.
 *
 * Owner: what a request gains lives in the arena.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_PYROSCOPE_SERVICE_NAMES_H
#define PROFCOL_PYROSCOPE_SERVICE_NAMES_H

#include "core/data/message.h"

struct arena;

/* Whether the names stay below 4 MiB and 32 times the request. */
bool service_names_fit(struct slice request, struct slice name);
/* root: a request of profiles. An empty name does nothing. */
void service_names_set(struct message *root, struct arena *arena, struct slice name);

#endif
