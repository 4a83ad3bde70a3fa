#include "core/formats/jfr_pools.h"

#include <assert.h>
#include <inttypes.h>

enum { CHECKPOINT_EVENT = 1 };

static const char *const class_names[JFR_POOL_COUNT] = {
    [JFR_POOL_STACK_TRACE] = "jdk.types.StackTrace",
    [JFR_POOL_METHOD] = "jdk.types.Method",
    [JFR_POOL_CLASS] = "java.lang.Class",
    [JFR_POOL_SYMBOL] = "jdk.types.Symbol",
    [JFR_POOL_THREAD_STATE] = "jdk.types.ThreadState",
    [JFR_POOL_STRING] = "java.lang.String",
    [JFR_POOL_THREAD] = "java.lang.Thread",
};

/* Returns the map for constants of a class; NULL if they are not used. */
static struct id_map *map_of(struct jfr_pools *pools, const struct jfr_class *type)
{
    for (int i = 0; i < JFR_POOL_COUNT; i++)
        if (pools->classes[i] == type)
            return &pools->maps[i];
    return NULL;
}

/* Checks the memory of the maps: an entry is larger than the few bytes of a hostile constant. */
static bool check_size(const struct jfr_pools *pools, struct error *err)
{
    size_t bytes = 0;
    for (int i = 0; i < JFR_POOL_COUNT; i++)
        bytes += id_map_bytes(&pools->maps[i]);
    return bytes <= 8 * pools->chunk->bytes.size + 65536 ||
           error_set(err, "has more constants than fit into its size");
}

static bool read_constants(struct jfr_pools *pools, const struct jfr_class *type, uint64_t count,
                           struct jfr_cursor *cursor, struct error *err)
{
    struct id_map *map = map_of(pools, type);
    for (; count > 0 && !cursor->broken; count--) {
        uint64_t id = jfr_number(cursor);
        uint32_t place = jfr_place(pools->chunk, cursor);
        jfr_class_skip(type, cursor);
        if (map && !cursor->broken) {
            size_t capacity = map->capacity;
            if (!profiles_builder_has_room(pools->metadata->builder, id_map_growth(map)))
                return error_set(err, "there is not enough room for its constants");
            id_map_put(map, id, place);
            if (map->capacity != capacity && !check_size(pools, err))
                return false;
        }
    }
    return true;
}

static bool read_pool(struct jfr_pools *pools, struct jfr_cursor *cursor, struct error *err)
{
    uint64_t id = jfr_number(cursor);
    struct jfr_class *type = jfr_metadata_class(pools->metadata, id);
    uint64_t count = jfr_number(cursor);
    if (cursor->broken)
        return error_set(err, "is truncated");
    if (!type)
        return error_set(err, "has constants of class %" PRIu64 ", which is not described", id);
    if (!jfr_class_prepare(pools->metadata, type, err) ||
        !read_constants(pools, type, count, cursor, err))
        return false;
    return !cursor->broken ||
           error_set(err, "its constants of %.*s extend past its end", SLICE_ARG(type->name));
}

/* Reads a checkpoint. before: the latest place where it may end. *delta_out: the distance back to
 * the next one; 0 if there is none. */
static bool read_checkpoint(struct jfr_pools *pools, uint64_t at, uint64_t before,
                            uint64_t *delta_out, struct error *err)
{
    assert(at >= JFR_HEADER_SIZE && at < before); /* so each is before the last one */
    struct jfr_cursor cursor = jfr_cursor(pools->chunk, at, before);
    uint64_t size = jfr_number(&cursor);
    if (size > before - at || size < jfr_place(pools->chunk, &cursor) - at)
        return error_set(err, "its size of %" PRIu64 " bytes is impossible", size);
    cursor.end = pools->chunk->bytes.data + at + size;
    if (jfr_number(&cursor) != CHECKPOINT_EVENT)
        return error_set(err, "is an event of another type");
    jfr_number(&cursor); /* start */
    jfr_number(&cursor); /* duration */
    uint64_t delta = jfr_number(&cursor);
    jfr_skip(&cursor, 1); /* kind of checkpoint */
    uint64_t pool_count = jfr_number(&cursor);
    if (cursor.broken)
        return error_set(err, "is truncated");
    for (; pool_count > 0; pool_count--)
        if (!read_pool(pools, &cursor, err))
            return false;
    *delta_out = 0 - delta;
    return delta == 0 || (0 - delta <= at && at - (0 - delta) >= JFR_HEADER_SIZE) ||
           error_set(err, "its offset to the previous checkpoint, %" PRId64 ", is impossible",
                     (int64_t)delta);
}

bool jfr_pools_read(struct jfr_pools *pools, const struct jfr_chunk *chunk,
                    struct jfr_metadata *metadata, bool with_threads, struct budget *budget,
                    struct error *err)
{
    *pools = (struct jfr_pools){.chunk = chunk, .metadata = metadata};
    for (int i = 0; i < JFR_POOL_COUNT; i++) {
        pools->maps[i].budget = budget;
        if (i != JFR_POOL_THREAD || with_threads)
            pools->classes[i] = jfr_metadata_class_named(metadata, class_names[i]);
    }
    uint64_t before = chunk->bytes.size;
    uint64_t at = chunk->checkpoint_at;
    uint64_t back = 0;
    do {
        if (!read_checkpoint(pools, at, before, &back, err))
            return error_prefix(err, "checkpoint at %" PRIu64, at);
        before = at;
        at -= back;
    } while (back != 0);
    return true;
}

void jfr_pools_deinit(struct jfr_pools *pools)
{
    for (int i = 0; i < JFR_POOL_COUNT; i++)
        id_map_deinit(&pools->maps[i]);
}

struct id_entry *jfr_pools_find(const struct jfr_pools *pools, enum jfr_pool pool, uint64_t id)
{
    return id_map_find(&pools->maps[pool], id);
}

static void count_bytes(struct jfr_pools *pools, size_t from, const struct jfr_cursor *cursor)
{
    assert(jfr_place(pools->chunk, cursor) >= from);
    profiles_builder_work(pools->metadata->builder, jfr_place(pools->chunk, cursor) - from);
}

void jfr_pools_constant(struct jfr_pools *pools, enum jfr_pool pool, const struct id_entry *entry,
                        struct jfr_record *record)
{
    assert(pools->classes[pool] && entry->place <= pools->chunk->bytes.size);
    struct jfr_cursor cursor = jfr_cursor(pools->chunk, entry->place, pools->chunk->bytes.size);
    jfr_class_read(pools->classes[pool], pools->chunk, &cursor, record);
    count_bytes(pools, entry->place, &cursor);
}

static struct jfr_text text_at(struct jfr_pools *pools, uint64_t place)
{
    struct jfr_cursor cursor = jfr_cursor(pools->chunk, place, pools->chunk->bytes.size);
    struct jfr_text text = jfr_text(&cursor);
    count_bytes(pools, place, &cursor);
    return text;
}

struct id_entry *jfr_pools_reference(struct jfr_pools *pools, uint64_t place)
{
    assert(place < pools->chunk->bytes.size); /* it was skipped successfully before */
    if (place == 0 || pools->chunk->bytes.data[place] != JFR_TEXT_REFERENCE)
        return NULL;
    return jfr_pools_find(pools, JFR_POOL_STRING, text_at(pools, place).reference);
}

struct jfr_text jfr_pools_text(struct jfr_pools *pools, uint64_t place)
{
    if (place == 0)
        return (struct jfr_text){0};
    struct jfr_text text = text_at(pools, place);
    if (text.encoding != JFR_TEXT_REFERENCE)
        return text;
    const struct id_entry *entry = jfr_pools_find(pools, JFR_POOL_STRING, text.reference);
    return entry ? text_at(pools, entry->place) : (struct jfr_text){0};
}
