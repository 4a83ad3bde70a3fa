/*
 * thread_of_span: reads the thread on which a span began.
 *
 * Owner: names point into the span.
 *
 * Thread: any.
 */
#ifndef PROFCOL_SPANJOIN_THREAD_OF_SPAN_H
#define PROFCOL_SPANJOIN_THREAD_OF_SPAN_H

#include "core/data/thread_ids.h"
#include "core/data/thread_spans.h"
#include "processors/spanjoin/joined_values.h"

/* Reads `thread.id` and `thread.name`, the ids and the times of a span. Returns false if it has no
 * thread. The attributes of the span were looked for. The instance and the owner are the
 * caller's. */
bool thread_of_span(const struct span_view *span, const struct span_key *key, struct thread_ids ids,
                    struct thread_span *out);

#endif
