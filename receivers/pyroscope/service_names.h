/*
 * service_names: gives the resources of an OTLP request that do not name their service a name.
 *
 * Pyroscope's Java agent can send OTLP to Pyroscope's address, and then says nothing of itself.
 *
 * Owner: what a request gains lives in the batch's arena.
 *
 * Thread: the batch's worker.
 */
#ifndef PROFCOL_PYROSCOPE_SERVICE_NAMES_H
#define PROFCOL_PYROSCOPE_SERVICE_NAMES_H

#include "core/pipeline/batch.h"

/* batch: profiles. An empty name does nothing. */
void service_names_set(struct batch *batch, struct slice name);

#endif
