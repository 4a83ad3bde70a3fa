#include "core/data/sample_attributes.h"

#include "core/base/arena.h"
#include "core/base/hash.h"

#include <assert.h>

/* Values of more bytes are found by address, because encoding and hashing them costs more. */
enum { SHORT_VALUE_MAX = 64 };

struct long_value {
    struct slice value; /* compared by address */
    uint32_t key;
    uint32_t unit;
    uint32_t index; /* index in the attribute_table */
};

struct sample_attributes sample_attributes_init(struct dictionary *dictionary, struct arena *arena)
{
    return (struct sample_attributes){.dictionary = dictionary, .arena = arena};
}

/* ---- the list of a sample ---- */

static void add_index(struct sample_attributes *attributes, uint64_t index)
{
    attributes->indices = arena_grow(attributes->arena, attributes->indices, attributes->count,
                                     &attributes->capacity, sizeof *attributes->indices);
    attributes->indices[attributes->count++] = (uint32_t)index;
}

/* Moves to the next index of a sample, which may be packed or not. */
static bool next_index(struct sample_attribute_indices *indices, uint64_t *index_out)
{
    struct message_field field;
    while (!wire_packed_varint(&indices->packed, index_out)) {
        if (!message_next(&indices->sample, &field))
            return false;
        if (field.wire.number != SAMPLE_ATTRIBUTE_INDICES)
            continue;
        *index_out = field.wire.value;
        if (field.wire.type != WIRE_BYTES)
            return true;
        indices->packed = wire_cursor(field.wire.bytes);
    }
    return true;
}

static void read_indices(struct sample_attributes *attributes, struct message_iter sample)
{
    struct sample_attribute_indices indices = {.sample = sample};
    attributes->count = 0;
    for (uint64_t index; next_index(&indices, &index);)
        add_index(attributes, index);
}

/* Returns the key of an entry, which is read once if the entry was received. */
static uint32_t key_of(struct sample_attributes *attributes, uint32_t index)
{
    struct dictionary *dictionary = attributes->dictionary;
    if (!attributes->keys) {
        attributes->key_count = dictionary_count(dictionary, DICTIONARY_ATTRIBUTE_TABLE);
        attributes->keys =
            arena_array(attributes->arena, attributes->key_count, sizeof *attributes->keys);
    }
    if (index >= attributes->key_count)
        return dictionary_attribute(dictionary, index).key;
    if (attributes->keys[index] == 0)
        attributes->keys[index] = dictionary_attribute(dictionary, index).key + 1;
    return attributes->keys[index] - 1;
}

static bool has_key(struct sample_attributes *attributes, uint32_t index, struct slice key)
{
    uint32_t string = key_of(attributes, index);
    return slice_equal(dictionary_string(attributes->dictionary, string), key);
}

/* Returns the position of the first attribute with this key in the list, or its end. */
static uint32_t find(struct sample_attributes *attributes, struct slice key)
{
    uint32_t i = 0;
    while (i < attributes->count && !has_key(attributes, attributes->indices[i], key))
        i++;
    return i;
}

/* ---- entries of the attribute table ---- */

static uint32_t hash_place(const struct key_value_and_unit *entry)
{
    const uint64_t place[] = {(uint64_t)(uintptr_t)entry->value.data, entry->value.size,
                              (uint64_t)entry->key << 32 | entry->unit};
    return (uint32_t)hash_bytes(slice_of(place, sizeof place));
}

static bool is_at_place(const struct long_value *known, const struct key_value_and_unit *entry)
{
    return known->value.data == entry->value.data && known->value.size == entry->value.size &&
           known->key == entry->key && known->unit == entry->unit;
}

static uint32_t add_long_entry(struct sample_attributes *attributes,
                               const struct key_value_and_unit *entry)
{
    struct arena *arena = attributes->arena;
    index_table_reserve(&attributes->by_place, 1, arena);
    struct index_probe probe = index_table_probe(&attributes->by_place, hash_place(entry));
    for (uint32_t i; index_table_next(&attributes->by_place, &probe, &i);)
        if (is_at_place(&attributes->long_values[i], entry))
            return attributes->long_values[i].index;
    uint32_t i = attributes->long_value_count++,
             index = dictionary_add_entry(attributes->dictionary, entry);
    attributes->long_values =
        arena_grow(arena, attributes->long_values, i, &attributes->long_value_capacity,
                   sizeof *attributes->long_values);
    attributes->long_values[i] = (struct long_value){entry->value, entry->key, entry->unit, index};
    index_table_add(&attributes->by_place, &probe, i);
    return index;
}

/* ---- public functions ---- */

bool sample_attributes_get(struct sample_attributes *attributes, struct message_iter sample,
                           struct slice key, struct slice *value_out)
{
    read_indices(attributes, sample);
    uint32_t at = find(attributes, key);
    if (at == attributes->count)
        return false;
    *value_out = dictionary_attribute(attributes->dictionary, attributes->indices[at]).value;
    return true;
}

bool sample_attributes_set(struct sample_attributes *attributes, struct message_iter sample,
                           struct slice key, struct slice value)
{
    struct key_value_and_unit entry = {0};
    read_indices(attributes, sample);
    uint32_t at = find(attributes, key);
    bool exists = at < attributes->count;
    if (exists)
        entry = dictionary_attribute(attributes->dictionary, attributes->indices[at]);
    else
        entry.key = dictionary_add(attributes->dictionary, DICTIONARY_STRING_TABLE, key);
    entry.value = value;
    uint32_t index = value.size > SHORT_VALUE_MAX
                         ? add_long_entry(attributes, &entry)
                         : dictionary_add_entry(attributes->dictionary, &entry);
    if (!exists) {
        add_index(attributes, index);
        return true;
    }
    bool differs = attributes->indices[at] != index;
    attributes->indices[at] = index;
    return differs;
}

bool sample_attributes_remove(struct sample_attributes *attributes, struct message_iter sample,
                              struct slice key)
{
    uint32_t kept = 0;
    read_indices(attributes, sample);
    uint32_t count = attributes->count;
    for (uint32_t i = 0; i < count; i++)
        if (!has_key(attributes, attributes->indices[i], key))
            attributes->indices[kept++] = attributes->indices[i];
    attributes->count = kept;
    return kept < count;
}

bool sample_attributes_next(const struct sample_attributes *attributes,
                            struct sample_attribute_indices *indices, uint32_t *entry_out,
                            struct slice *key_out, struct slice *value_out)
{
    uint64_t index;
    do {
        if (!next_index(indices, &index))
            return false;
    } while (index == 0); /* stands for no attribute */
    *entry_out = (uint32_t)index;
    struct key_value_and_unit entry = dictionary_attribute(attributes->dictionary, *entry_out);
    *key_out = dictionary_string(attributes->dictionary, entry.key);
    *value_out = entry.value;
    return true;
}

/* ---- a decision about each entry ---- */

#define REMOVED_ENTRY UINT32_MAX

/* Returns the index of the entry that takes the place of this one, or its own, plus 1; or
 * REMOVED_ENTRY. */
static uint32_t decide(struct sample_attributes *attributes, const struct attribute_rule *rule,
                       uint32_t index)
{
    struct dictionary *dictionary = attributes->dictionary;
    struct key_value_and_unit entry = dictionary_attribute(dictionary, index);
    switch (attribute_decide(rule, dictionary_string(dictionary, entry.key), &entry.value)) {
    case ATTRIBUTE_SET:
        return dictionary_add_entry(dictionary, &entry) + 1;
    case ATTRIBUTE_REMOVE:
        return REMOVED_ENTRY;
    case ATTRIBUTE_KEEP:
        break;
    }
    return index + 1;
}

/* Makes room for decisions about all entries of the table, and as many again. */
static void reserve_decisions(struct sample_attributes *attributes)
{
    uint32_t *old = attributes->decisions, old_count = attributes->decision_count;
    uint32_t count = dictionary_count(attributes->dictionary, DICTIONARY_ATTRIBUTE_TABLE);
    attributes->decision_count = old ? 2 * count : count; /* first, only received entries */
    attributes->decisions =
        arena_array(attributes->arena, attributes->decision_count, sizeof *attributes->decisions);
    if (old)
        memcpy(attributes->decisions, old, old_count * sizeof *old);
}

/* Like `decide`, but once for each entry. */
static uint32_t decision_about(struct sample_attributes *attributes,
                               const struct attribute_rule *rule, uint32_t index)
{
    if (index == 0)
        return 1; /* stands for no attribute */
    if (index >= attributes->decision_count)
        reserve_decisions(attributes);
    assert(index < attributes->decision_count);
    if (attributes->decisions[index] == 0)
        attributes->decisions[index] = decide(attributes, rule, index);
    return attributes->decisions[index];
}

uint32_t sample_attributes_edit(struct sample_attributes *attributes, struct message_iter sample,
                                const struct attribute_rule *rule)
{
    uint32_t kept = 0, changed = 0;
    assert(!attributes->rule.decide ||
           (attributes->rule.decide == rule->decide && attributes->rule.context == rule->context));
    attributes->rule = *rule;
    read_indices(attributes, sample);
    for (uint32_t i = 0; i < attributes->count; i++) {
        uint32_t index = attributes->indices[i];
        uint32_t decision = decision_about(attributes, rule, index);
        changed += decision != index + 1;
        if (decision != REMOVED_ENTRY)
            attributes->indices[kept++] = decision - 1;
    }
    attributes->count = kept;
    return changed;
}

/* ---- writing ---- */

static struct slice pack(const struct sample_attributes *attributes)
{
    size_t size = 0;
    for (uint32_t i = 0; i < attributes->count; i++)
        size += wire_size_varint(attributes->indices[i]);
    uint8_t *packed = arena_alloc(attributes->arena, size), *to = packed;
    for (uint32_t i = 0; i < attributes->count; i++)
        to = wire_write_varint(to, attributes->indices[i]);
    return slice_of(packed, size);
}

static void append_indices(struct sample_attributes *attributes, struct message *sample,
                           struct slice packed)
{
    size_t size = wire_size_bytes(SAMPLE_ATTRIBUTE_INDICES, packed.size);
    uint8_t *field = arena_alloc(attributes->arena, size);
    wire_write_bytes(field, SAMPLE_ATTRIBUTE_INDICES, packed);
    message_append(sample, attributes->arena, slice_of(field, size));
}

void sample_attributes_write(struct sample_attributes *attributes, struct message *sample)
{
    struct slice packed = pack(attributes);
    struct message_iter it = message_iter(sample, attributes->arena);
    struct message_field field;
    bool is_placed = attributes->count == 0;
    while (message_next(&it, &field)) {
        if (field.wire.number != SAMPLE_ATTRIBUTE_INDICES)
            continue;
        if (!is_placed && field.wire.type == WIRE_BYTES) {
            message_replace(&it, &field, packed);
            is_placed = true;
        } else {
            message_remove(&it, &field);
        }
    }
    if (!is_placed)
        append_indices(attributes, sample, packed);
}
