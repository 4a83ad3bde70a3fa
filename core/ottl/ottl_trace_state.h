/*
 * ottl_trace_state: the members of a trace state (W3C Trace Context, section 3.3).
 *
 * Owner: values point into the trace state.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_OTTL_OTTL_TRACE_STATE_H
#define PROFCOL_CORE_OTTL_OTTL_TRACE_STATE_H

#include "core/base/text.h"

/* Finds the value of a trace state's member, an empty one if there is none. Returns false if the
 * trace state does not have the form of W3C Trace Context. */
bool ottl_trace_state_get(struct slice trace_state, struct slice key, struct slice *out);
/* Appends the trace state with this member in front, and without what it had under its key. A
 * member above the 32nd is left out. Returns false if the trace state, key or value has not the
 * form. */
bool ottl_trace_state_set(struct slice trace_state, struct slice key, struct slice value,
                          struct text *out);

#endif
