#include "processors/spanjoin/thread_of_span.h"

#include <assert.h>

bool thread_of_span(const struct span_view *span, const struct span_key *key, struct thread_ids ids,
                    struct thread_span *out)
{
    assert(span->wanted);
    int64_t id;
    struct any_value id_value = any_value_read(span->wanted->values[WANTED_THREAD_ID]);
    if (!thread_id_read(&id_value, &id))
        return false;
    struct slice name_value = span->wanted->values[WANTED_THREAD_NAME];
    *out = (struct thread_span){.key = *key,
                                .start_ns = span->fields.start_ns,
                                .end_ns = span->fields.end_ns,
                                .kind = thread_ids_kind(ids, id),
                                .id = id};
    struct any_value name =
        name_value.size > 0 ? any_value_read(name_value) : (struct any_value){.kind = 0};
    if (name.kind == ANY_VALUE_STRING)
        out->name = name.bytes;
    if (span->fields.parent_id.size == SPAN_ID_SIZE)
        memcpy(out->parent_id, span->fields.parent_id.data, SPAN_ID_SIZE);
    return true;
}
