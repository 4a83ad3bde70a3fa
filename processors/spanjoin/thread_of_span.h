/*
 * thread_of_span: reads the thread on which a span began.
 *
 * Owner: names point into the span.
 *
 * Thread: any.
 */
#ifndef PROFCOL_SPANJOIN_THREAD_OF_SPAN_H
#define PROFCOL_SPANJOIN_THREAD_OF_SPAN_H

#include "core/data/thread_spans.h"
#include "processors/spanjoin/joined_values.h"

/* What the attribute thread.id of spans means. Runtimes with threads of their own, such as Java,
 * send their ids; others those of the operating system. Python has both: get_ident is an address,
 * and larger than any get_native_id. */
enum thread_ids { THREAD_IDS_OS, THREAD_IDS_RUNTIME, THREAD_IDS_BY_SIZE };
enum thread_ids thread_ids_of(struct slice resource);

/* Reads what an attribute says that has the id of a thread: an integer, or its decimal digits as
 * text, as they come through senders that only know texts (Zipkin). Returns false if it is neither.
 */
bool thread_id_read(const struct any_value *value, int64_t *id_out);

/* Reads `thread.id` and `thread.name`, the ids and the times of a span. Returns false if it has no
 * thread. The attributes of the span were looked for. The instance and the owner are the
 * caller's. */
bool thread_of_span(const struct span_view *span, const struct span_key *key, enum thread_ids ids,
                    struct thread_span *out);

#endif
