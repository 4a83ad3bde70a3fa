/*
 * thread_ids: which ids of threads are those of the operating system.
 *
 * Samples have ids of the operating system. The attribute `thread.id` of a span is either that, or
 * one of a runtime with threads of its own, such as Java. The two are never compared.
 *
 * Owner: nothing is kept.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_DATA_THREAD_IDS_H
#define PROFCOL_CORE_DATA_THREAD_IDS_H

#include "core/data/any_value.h"
#include "core/data/thread_hash.h"

/* Which values of `thread.id` are ids of the operating system; others are those of the runtime. */
struct thread_ids {
    int64_t os_first;
    int64_t os_last; /* less than os_first: none are */
};
/* Says so by the language of the spans' SDK. Python has both: get_ident is an address, and larger
 * than any get_native_id. Without a language, by the number of the process: threads begin after it,
 * and a runtime's ids are small. resource: encoded. */
struct thread_ids thread_ids_of(struct slice resource);
static inline enum thread_id_kind thread_ids_kind(struct thread_ids ids, int64_t id)
{
    return id >= ids.os_first && id <= ids.os_last ? THREAD_ID_OS : THREAD_ID_RUNTIME;
}
/* Whether the resource does not say the language. */
bool thread_ids_are_guessed(struct slice resource);

bool thread_id_read_text(const struct any_value *value, int64_t *id_out);
/* Reads what an attribute says that has the id of a thread: an integer, or its decimal digits as
 * text, as they come through senders that only know texts (Zipkin). Returns false if it is neither.
 */
static inline bool thread_id_read(const struct any_value *value, int64_t *id_out)
{
    if (value->kind != ANY_VALUE_INT)
        return thread_id_read_text(value, id_out);
    *id_out = value->integer;
    return true;
}

#endif
