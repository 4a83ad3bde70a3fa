#include "processors/resource_detection/detected.h"

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/data/any_value.h"
#include "core/data/utf8.h"

#include <assert.h>

struct detected *detected_new(void)
{
    struct detected *detected = memory_zalloc(sizeof *detected);
    atomic_init(&detected->references, 1);
    index_table_reserve(&detected->table, DETECTED_MAX, &detected->arena);
    return detected;
}

struct detected *detected_ref(struct detected *detected)
{
    unsigned before = atomic_fetch_add_explicit(&detected->references, 1, memory_order_relaxed);
    assert(before > 0);
    return detected;
}

void detected_unref(struct detected *detected)
{
    if (!detected)
        return;
    unsigned before = atomic_fetch_sub_explicit(&detected->references, 1, memory_order_acq_rel);
    assert(before > 0);
    if (before > 1)
        return;
    arena_deinit(&detected->arena);
    free(detected);
}

static uint32_t hash_key(struct slice key)
{
    return (uint32_t)hash_bytes(key);
}

bool detected_find(const struct detected *detected, struct slice key, uint32_t *number_out)
{
    struct index_probe probe = index_table_probe(&detected->table, hash_key(key));
    while (index_table_next(&detected->table, &probe, number_out))
        if (slice_equal(detected->items[*number_out].key, key))
            return true;
    return false;
}

static bool fits(const struct detected *detected, struct slice key, size_t value_size)
{
    return detected->count < DETECTED_MAX && key.size > 0 && key.size <= DETECTED_KEY_MAX &&
           utf8_is_valid(key) && value_size <= DETECTED_VALUE_MAX &&
           detected->bytes + key.size + value_size <= DETECTED_BYTES_MAX;
}

/* value: the payload of an AnyValue. */
static void add(struct detected *detected, struct slice key, struct slice value)
{
    uint32_t number;
    assert(!detected->fields.data);
    if (detected_find(detected, key, &number))
        return;
    if (!fits(detected, key, value.size)) {
        detected->left_out++;
        return;
    }
    struct detected_attribute *attribute = &detected->items[detected->count];
    attribute->key = arena_copy(&detected->arena, key);
    attribute->value = arena_copy(&detected->arena, value);
    detected->bytes += key.size + value.size;
    index_table_add_new(&detected->table, hash_key(key), detected->count++);
}

void detected_add_text(struct detected *detected, struct slice key, struct slice text)
{
    struct arena scratch = {0};
    if (text.size <= DETECTED_VALUE_MAX && utf8_is_valid(text))
        add(detected, key, any_value_encode(&scratch, any_value_string(text)));
    else
        detected->left_out++;
    arena_deinit(&scratch);
}

void detected_add_int(struct detected *detected, struct slice key, int64_t number)
{
    struct arena scratch = {0};
    add(detected, key, any_value_encode(&scratch, any_value_int(number)));
    arena_deinit(&scratch);
}

void detected_add_texts(struct detected *detected, struct slice key, const struct slice *texts,
                        size_t count)
{
    struct arena scratch = {0};
    struct wire_writer list = {0};
    for (size_t i = 0; i < count; i++) {
        assert(utf8_is_valid(texts[i]));
        wire_writer_bytes(&list, ARRAY_VALUE_VALUES,
                          any_value_encode(&scratch, any_value_string(texts[i])));
    }
    struct any_value array = {.kind = ANY_VALUE_ARRAY, .bytes = wire_writer_slice(&list)};
    add(detected, key, any_value_encode(&scratch, array));
    wire_writer_deinit(&list);
    arena_deinit(&scratch);
}

void detected_merge(struct detected *detected, const struct detected *from)
{
    assert(detected != from);
    for (uint32_t i = 0; i < from->count; i++)
        add(detected, from->items[i].key, from->items[i].value);
    detected->left_out += from->left_out;
    detected->has_schema = detected->has_schema || from->has_schema;
}

void detected_encode(struct detected *detected)
{
    struct arena scratch = {0};
    struct wire_writer writer = {0};
    size_t sizes[DETECTED_MAX] = {0}, pair_sizes[DETECTED_MAX] = {0};
    assert(!detected->fields.data && detected->count <= DETECTED_MAX);
    for (uint32_t i = 0; i < detected->count; i++) {
        const struct detected_attribute *attribute = &detected->items[i];
        struct slice pair = key_value_encode(&scratch, attribute->key, attribute->value);
        size_t before = writer.size;
        wire_writer_bytes(&writer, RESOURCE_ATTRIBUTES, pair);
        pair_sizes[i] = pair.size;
        sizes[i] = writer.size - before;
    }
    detected->fields = arena_copy(&detected->arena, wire_writer_slice(&writer));
    const uint8_t *end = detected->fields.data;
    for (uint32_t i = 0; i < detected->count; i++) {
        detected->items[i].field = slice_of(end, sizes[i]);
        end += sizes[i];
        detected->items[i].pair = slice_of(end - pair_sizes[i], pair_sizes[i]);
    }
    assert((size_t)(end - detected->fields.data) == detected->fields.size);
    wire_writer_deinit(&writer);
    arena_deinit(&scratch);
}

bool detected_is_empty(const struct detected *detected)
{
    return detected->count == 0 && !detected->has_schema;
}

bool detected_equal(const struct detected *a, const struct detected *b)
{
    if (a->count != b->count || a->has_schema != b->has_schema)
        return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (!slice_equal(a->items[i].key, b->items[i].key) ||
            !slice_equal(a->items[i].value, b->items[i].value))
            return false;
    return true;
}
