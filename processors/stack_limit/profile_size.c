#include "processors/stack_limit/profile_size.h"

#include "core/base/arena.h"
#include "core/data/reference_rules.h"

/* Most requests read each byte of their entries once for each profile, and have few profiles. */
enum { STEPS_PER_BYTE = 16, STEPS_OF_ENTRY = 8 };

void profile_size_init(struct profile_size *size, struct dictionary *dictionary,
                       struct arena *arena)
{
    *size = (struct profile_size){.dictionary = dictionary};
    for (int table = 1; table < DICTIONARY_TABLE_COUNT; table++) {
        size->counts[table] = dictionary_count(dictionary, table);
        size->seen[table] = arena_array(arena, (size_t)size->counts[table] + 1, sizeof(uint32_t));
    }
    size->steps = STEPS_PER_BYTE * (uint64_t)dictionary_request_size(dictionary);
}

void profile_size_begin(struct profile_size *size)
{
    size->profile++;
}

static bool take_steps(struct profile_size *size, size_t bytes)
{
    if (size->steps < bytes + STEPS_OF_ENTRY) {
        size->steps = 0;
        return false;
    }
    size->steps -= bytes + STEPS_OF_ENTRY;
    return true;
}

/* Tables refer only to those below them, so the calls are few levels deep. */
static uint64_t add_references(struct profile_size *size, const struct reference_rule *rules,
                               struct slice message);

static uint64_t add_field(struct profile_size *size, const struct reference_rule *rule,
                          const struct wire_field *field)
{
    if (rule->tables == 0)
        return 0;
    if (field->type == WIRE_VARINT)
        return profile_size_add(size, rule->table, field->value);
    assert(field->type == WIRE_BYTES); /* scanned */
    if (rule->table == 0)
        return add_references(size, rule->rules, field->bytes);
    uint64_t bytes = 0;
    struct wire_cursor packed = wire_cursor(field->bytes);
    for (uint64_t index; wire_packed_varint(&packed, &index);)
        bytes += profile_size_add(size, rule->table, index);
    return bytes;
}

static uint64_t add_references(struct profile_size *size, const struct reference_rule *rules,
                               struct slice message)
{
    struct wire_cursor cursor = wire_cursor(message);
    struct wire_field field;
    uint64_t bytes = 0;
    while (wire_next(&cursor, &field))
        if (field.number < REFERENCE_RULES)
            bytes += add_field(size, &rules[field.number], &field);
    return bytes;
}

uint64_t profile_size_add(struct profile_size *size, int table, uint64_t index)
{
    if (index == 0 || index >= size->counts[table] || size->seen[table][index] == size->profile)
        return 0;
    size->seen[table][index] = size->profile;
    struct slice entry = dictionary_entry(size->dictionary, table, (uint32_t)index);
    uint64_t bytes = wire_size_bytes((uint32_t)table, entry.size);
    if (entry_tables[table] != 0 && take_steps(size, entry.size))
        bytes += add_references(size, entry_references[table], entry);
    return bytes;
}
