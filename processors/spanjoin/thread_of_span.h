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

/* Which values of the attribute thread.id of spans are ids of the operating system. Others are
 * those of a runtime with threads of its own, such as Java. */
struct thread_ids {
    int64_t os_first;
    int64_t os_last; /* less than os_first: none are */
};
/* Says so by the language of the spans' SDK. Python has both: get_ident is an address, and larger
 * than any get_native_id. Without a language, by the number of the process: threads begin after it,
 * and a runtime's ids are small. */
struct thread_ids thread_ids_of(struct slice resource);

/* Reads what an attribute says that has the id of a thread: an integer, or its decimal digits as
 * text, as they come through senders that only know texts (Zipkin). Returns false if it is neither.
 */
bool thread_id_read(const struct any_value *value, int64_t *id_out);

/* Reads `thread.id` and `thread.name`, the ids and the times of a span. Returns false if it has no
 * thread. The attributes of the span were looked for. The instance and the owner are the
 * caller's. */
bool thread_of_span(const struct span_view *span, const struct span_key *key, struct thread_ids ids,
                    struct thread_span *out);

#endif
