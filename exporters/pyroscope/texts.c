#include "exporters/pyroscope/texts.h"

#include "core/base/hash.h"

/* Finds a text. Returns false if it is absent. */
static bool find(const struct texts *texts, struct slice text, struct index_probe *probe,
                 struct slice *found_out)
{
    for (uint32_t i; index_table_next(&texts->by_hash, probe, &i);)
        if (slice_equal(texts->items[i], text)) {
            *found_out = texts->items[i];
            return true;
        }
    return false;
}

static struct slice add(struct texts *texts, struct slice text, bool is_copied)
{
    if (text.size == 0)
        return text;
    if (index_table_is_full(&texts->by_hash))
        index_table_reserve(&texts->by_hash, 1, texts->arena);
    struct index_probe probe = index_table_probe(&texts->by_hash, (uint32_t)hash_bytes(text));
    struct slice found;
    if (find(texts, text, &probe, &found))
        return found;
    uint32_t count = texts->by_hash.count;
    texts->items =
        arena_grow(texts->arena, texts->items, count, &texts->capacity, sizeof *texts->items);
    texts->items[count] = is_copied ? arena_copy(texts->arena, text) : text;
    index_table_add(&texts->by_hash, &probe, count);
    return texts->items[count];
}

struct slice texts_of(struct texts *texts, struct slice text)
{
    return add(texts, text, false);
}

struct slice texts_copy_of(struct texts *texts, struct slice text)
{
    return add(texts, text, true);
}

struct slice texts_find(const struct texts *texts, struct slice text)
{
    if (texts->by_hash.count == 0 || text.size == 0)
        return (struct slice){0};
    struct index_probe probe = index_table_probe(&texts->by_hash, (uint32_t)hash_bytes(text));
    struct slice found;
    return find(texts, text, &probe, &found) ? found : (struct slice){0};
}

uint64_t texts_hash(struct slice text)
{
    return text.size <= TEXTS_SHORT_MAX ? hash_bytes(text)
                                        : hash_u64((uint64_t)(uintptr_t)text.data);
}
