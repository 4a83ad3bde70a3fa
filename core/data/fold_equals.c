#include "core/data/fold_equals.h"

#include "core/base/arena.h"
#include "core/base/hash.h"

struct fold_entry {
    uint32_t index;
    uint32_t key, unit; /* numbers of texts */
    struct slice value;
};

/* A key or unit. */
struct fold_text {
    uint32_t string; /* index in the string_table */
    uint32_t first;  /* number of the first equal one */
    struct slice text;
};

struct fold_equals *fold_equals_new(struct dictionary *dictionary, struct arena *arena)
{
    struct fold_equals *equals = arena_zalloc(arena, sizeof *equals);
    equals->dictionary = dictionary;
    equals->arena = arena;
    equals->attribute_count = dictionary_count(dictionary, DICTIONARY_ATTRIBUTE_TABLE);
    equals->first = arena_array(arena, equals->attribute_count, sizeof *equals->first);
    return equals;
}

static struct index_probe probe_of(struct fold_equals *equals, struct index_table *table,
                                   uint64_t hash)
{
    if (index_table_is_full(table))
        index_table_reserve(table, 1, equals->arena);
    return index_table_probe(table, (uint32_t)hash);
}

/* ---- texts ---- */

/* Returns the number of the first text that is equal; `number` if there is none before. */
static uint32_t first_text(struct fold_equals *equals, uint32_t number)
{
    struct slice text = equals->texts[number].text;
    struct index_probe probe = probe_of(equals, &equals->by_text, hash_bytes(text));
    for (uint32_t i; index_table_next(&equals->by_text, &probe, &i);)
        if (slice_equal(equals->texts[i].text, text))
            return i;
    index_table_add(&equals->by_text, &probe, number);
    return number;
}

static uint32_t add_text(struct fold_equals *equals, uint32_t string)
{
    uint32_t number = equals->text_count++;
    equals->texts = arena_grow(equals->arena, equals->texts, number, &equals->text_capacity,
                               sizeof *equals->texts);
    struct fold_text *text = &equals->texts[number];
    *text =
        (struct fold_text){.string = string, .text = dictionary_string(equals->dictionary, string)};
    text->first = first_text(equals, number);
    return text->first;
}

/* Returns the same number for strings with equal texts. */
static uint32_t text_of(struct fold_equals *equals, uint32_t string)
{
    struct index_probe probe = probe_of(equals, &equals->by_string, hash_u64(string));
    for (uint32_t i; index_table_next(&equals->by_string, &probe, &i);)
        if (equals->texts[i].string == string)
            return equals->texts[i].first;
    index_table_add(&equals->by_string, &probe, equals->text_count);
    return add_text(equals, string);
}

/* ---- entries ---- */

static bool are_equal(const struct fold_entry *one, const struct fold_entry *other)
{
    return one->key == other->key && one->unit == other->unit &&
           slice_equal(one->value, other->value);
}

static uint32_t first_entry(struct fold_equals *equals, const struct fold_entry *entry)
{
    uint64_t hash = hash_u64(((uint64_t)entry->key << 32 | entry->unit) ^ hash_bytes(entry->value));
    struct index_probe probe = probe_of(equals, &equals->by_content, hash);
    for (uint32_t i; index_table_next(&equals->by_content, &probe, &i);)
        if (are_equal(&equals->entries[i], entry))
            return equals->entries[i].index;
    index_table_add(&equals->by_content, &probe, equals->entry_count);
    equals->entries = arena_grow(equals->arena, equals->entries, equals->entry_count,
                                 &equals->entry_capacity, sizeof *equals->entries);
    equals->entries[equals->entry_count++] = *entry;
    return entry->index;
}

uint32_t fold_equals_find(struct fold_equals *equals, uint32_t index)
{
    struct key_value_and_unit attribute = dictionary_attribute(equals->dictionary, index);
    struct fold_entry entry = {.index = index,
                               .key = text_of(equals, attribute.key),
                               .unit = text_of(equals, attribute.unit),
                               .value = attribute.value};
    uint32_t first = first_entry(equals, &entry);
    assert(first < equals->attribute_count);
    equals->first[index] = 1 + first;
    return first;
}
