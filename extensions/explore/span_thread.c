#include "extensions/explore/span_thread.h"

#include "core/base/saturate.h"
#include "core/data/thread_ids.h"

#include <jansson.h>

static bool read_id(const json_t *value, int64_t *id_out)
{
    struct any_value id = {.kind = ANY_VALUE_EMPTY};
    if (json_is_integer(value))
        id = any_value_int(json_integer_value(value));
    else if (json_is_string(value))
        id = any_value_string(slice_of_string(json_string_value(value)));
    return thread_id_read(&id, id_out);
}

struct span_thread span_thread_read(struct slice attributes, struct arena *arena)
{
    struct span_thread thread = {.name = NULL};
    const char *text =
        arena_printf(arena, "{%.*s}", (int)attributes.size, (const char *)attributes.data);
    json_t *object = json_loads(text, JSON_ALLOW_NUL, NULL);
    const char *name = json_string_value(json_object_get(object, "thread.name"));
    thread.has_id = read_id(json_object_get(object, "thread.id"), &thread.id);
    if (name)
        thread.name = arena_strdup(arena, name);
    json_decref(object);
    return thread;
}

/* The samples may have other ids of the thread than the span, and a shorter name. */
static bool is_same(const struct span_thread *thread, const struct join_doubt *doubt)
{
    for (int kind = 0; kind < JOIN_DOUBT_IDS && thread->has_id; kind++)
        if (doubt->has_id[kind] && doubt->ids[kind] == thread->id)
            return true;
    if (!thread->name || doubt->name_size == 0)
        return false;
    struct slice name = slice_of_string(thread->name);
    name.size = name.size < sizeof doubt->name ? name.size : sizeof doubt->name;
    return slice_equal(name, slice_of(doubt->name, doubt->name_size));
}

bool span_thread_is_doubted(const struct span_thread *thread, const struct store *store,
                            const struct store_span *span)
{
    uint32_t service = store_operation_at(&store->cells, span->operation)->service;
    uint64_t end_ns = saturate_sum(span->start_ns, span->duration_ns);
    for (uint32_t i = 0; i < store_doubts_used(store); i++) {
        const struct store_doubt *doubt = &store->doubts[i];
        if (doubt->service == service && doubt->of.to_ns >= span->start_ns &&
            doubt->of.from_ns <= end_ns && is_same(thread, &doubt->of))
            return true;
    }
    return false;
}
