/*
 * span_thread: the thread that a span of the store names, and whether samples of it are in doubt.
 *
 * Owner: texts live in the arena of the call.
 *
 * Thread: that of the store.
 */
#ifndef PROFCOL_EXPLORE_SPAN_THREAD_H
#define PROFCOL_EXPLORE_SPAN_THREAD_H

#include "core/base/arena.h"
#include "extensions/explore/store.h"

struct span_thread {
    bool has_id;
    int64_t id;
    const char *name; /* NULL: none */
};

/* Reads it from the attributes of the span, as the store keeps them: members of a JSON object. */
struct span_thread span_thread_read(struct slice attributes, struct arena *arena);

/* Whether samples were taken on the thread, while the span ran, of which it is not known whether
 * they are of this span: as far as the store remembers (store_has_all_doubts). */
bool span_thread_is_doubted(const struct span_thread *thread, const struct store *store,
                            const struct store_span *span);

#endif
