#include "core/formats/jfr_threads.h"

#include "core/base/memory.h"

#include <assert.h>
#include <stdlib.h>

enum { NAME_MAX_BYTES = 256 }; /* of a name that is used */

void jfr_threads_begin_chunk(struct jfr_threads *threads)
{
    threads->count = 0;
}

void jfr_threads_deinit(struct jfr_threads *threads)
{
    free(threads->attributes);
    wire_writer_deinit(&threads->name);
}

static uint32_t id_attribute(struct jfr_threads *threads, struct slice key, uint64_t id)
{
    if (id == 0)
        return 0;
    uint32_t key_index = profiles_builder_string(threads->builder, key);
    return profiles_builder_attribute_int(threads->builder, key_index, (int64_t)id, 0);
}

static struct slice name_at(struct jfr_threads *threads, uint64_t place)
{
    struct jfr_text text = jfr_pools_text(threads->pools, place);
    wire_writer_clear(&threads->name);
    if (text.bytes.size <= NAME_MAX_BYTES)
        jfr_text_append(&text, &threads->name);
    return wire_writer_slice(&threads->name);
}

static uint32_t name_attribute(struct jfr_threads *threads, const struct jfr_record *thread)
{
    struct slice name = name_at(threads, thread->values[JFR_JAVA_NAME]);
    if (name.size == 0)
        name = name_at(threads, thread->values[JFR_OS_NAME]);
    return name.size == 0 ? 0
                          : profiles_builder_attribute_string(threads->builder,
                                                              SLICE(SAMPLE_THREAD_NAME), name);
}

/* Reserves the attributes of another thread. Returns false if there is no room. */
static bool reserve(struct jfr_threads *threads)
{
    if (threads->count < threads->capacity)
        return true;
    uint32_t capacity = threads->capacity ? threads->capacity * 2 : 32;
    if (!profiles_builder_has_room(threads->builder, capacity * sizeof *threads->attributes))
        return false;
    threads->attributes = memory_grow(threads->attributes, capacity, sizeof *threads->attributes);
    threads->capacity = capacity;
    return true;
}

static void read_thread(struct jfr_threads *threads, struct id_entry *entry)
{
    struct jfr_record thread;
    if (!reserve(threads))
        return;
    jfr_pools_constant(threads->pools, JFR_POOL_THREAD, entry, &thread);
    uint32_t *attributes = threads->attributes[threads->count];
    attributes[0] =
        id_attribute(threads, SLICE(SAMPLE_THREAD_RUNTIME_ID), thread.values[JFR_JAVA_THREAD_ID]);
    attributes[1] =
        id_attribute(threads, SLICE(SAMPLE_THREAD_OS_ID), thread.values[JFR_OS_THREAD_ID]);
    attributes[2] = name_attribute(threads, &thread);
    entry->built = ++threads->count;
}

size_t jfr_threads_attributes(struct jfr_threads *threads, const struct jfr_record *event,
                              uint32_t *attributes_out)
{
    uint64_t id = event->values[JFR_SAMPLED_THREAD];
    if (id == 0)
        id = event->values[JFR_EVENT_THREAD];
    struct id_entry *entry = jfr_pools_find(threads->pools, JFR_POOL_THREAD, id);
    if (entry && entry->built == 0)
        read_thread(threads, entry);
    size_t count = 0;
    for (size_t i = 0; entry && entry->built > 0 && i < SAMPLE_THREAD_KEYS; i++) {
        assert(entry->built <= threads->count);
        uint32_t attribute = threads->attributes[entry->built - 1][i];
        if (attribute != 0)
            attributes_out[count++] = attribute;
    }
    return count;
}
