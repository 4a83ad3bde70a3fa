#include "core/data/prune.h"

#include "core/base/arena.h"
#include "core/data/reference_rules.h"

struct pruned_table {
    uint8_t *marks;       /* a byte for each entry; 1: something refers to it */
    uint32_t count;       /* entries */
    uint32_t unmarked;    /* of them */
    uint32_t named;       /* entries up to the last one that an index names which does not count */
    uint32_t kept;        /* entries up to the last marked or named one */
    uint32_t runs;        /* of consecutive entries */
    const uint8_t *start; /* of the first entry's field */
    const uint8_t *end;   /* of the last one's; other tables may lie between */
};

struct pruning {
    struct pruned_table tables[DICTIONARY_TABLE_COUNT];
    bool has_original; /* a profile has an original_payload */
};

/* ---- reading the tables ---- */

static bool is_entry(const struct wire_field *field)
{
    return field->number < DICTIONARY_TABLE_COUNT && field->type == WIRE_BYTES;
}

/* Skips short entries with this tag, and counts them. */
static const uint8_t *skip_entries(const uint8_t *at, const uint8_t *end, uint8_t tag,
                                   uint32_t *count)
{
    uint32_t skipped = 0;
    for (; end - at >= 2 && at[0] == tag && at[1] < 0x80 && at[1] <= end - at - 2; at += 2 + at[1])
        skipped++;
    *count += skipped;
    return at;
}

static void find_tables(struct pruning *pruning, struct slice dictionary, struct arena *scratch)
{
    struct wire_cursor cursor = wire_cursor(dictionary);
    struct wire_field field;
    while (wire_next(&cursor, &field)) {
        if (!is_entry(&field))
            continue;
        struct pruned_table *table = &pruning->tables[field.number];
        if (table->count++ == 0)
            table->start = field.start;
        table->runs += table->end != field.start;
        if (*field.start < 0x80)
            cursor.next = skip_entries(cursor.next, cursor.end, *field.start, &table->count);
        table->end = cursor.next;
    }
    assert(!cursor.broken); /* scanned */
    for (int number = 1; number < DICTIONARY_TABLE_COUNT; number++) {
        struct pruned_table *table = &pruning->tables[number];
        table->marks = arena_array(scratch, table->count, sizeof *table->marks);
        if (table->count > 0)
            table->marks[0] = 1; /* the zero value */
        table->unmarked = table->count - (table->count > 0);
    }
}

/* ---- marking ---- */

static inline void mark_entry(struct pruned_table *table, uint32_t index)
{
    table->unmarked -= !table->marks[index];
    table->marks[index] = 1;
}

static void mark(struct pruning *pruning, int number, uint64_t index)
{
    struct pruned_table *table = &pruning->tables[number];
    assert(index < table->count || index == 0); /* scanned */
    if (index > 0)
        mark_entry(table, (uint32_t)index);
}

/* An index that another one replaced must still be inside the table. */
static void mark_named(struct pruning *pruning, int number, uint64_t index)
{
    struct pruned_table *table = &pruning->tables[number];
    assert(index < table->count || index == 0); /* scanned */
    if (index >= table->named && index < table->count)
        table->named = (uint32_t)index + 1;
}

static void mark_list(struct pruning *pruning, int number, struct slice list)
{
    struct wire_cursor packed = wire_cursor(list);
    struct pruned_table *table = &pruning->tables[number];
    uint32_t count = table->count;
    const uint8_t *at = packed.next;
    while (packed.end - at >= 2) { /* nearly all indices have up to two bytes */
        uint32_t index = *at, size = 1;
        if (index >= 0x80) {
            index = (index & 0x7f) | (uint32_t)at[1] << 7;
            size = 2;
        }
        if (index >= count || index >= 1 << 14)
            break;
        mark_entry(table, index);
        at += size;
    }
    packed.next = at;
    for (uint64_t index; wire_packed_varint(&packed, &index);) {
        assert(index < count || index == 0); /* scanned */
        if (index < count)
            mark_entry(table, (uint32_t)index);
    }
    assert(!packed.broken);
}

/* Indices of a message that are not repeated: the last one counts, so that one that was replaced by
 * appending another marks nothing. */
struct single_indices {
    uint32_t given; /* bit per field number */
    uint64_t values[REFERENCE_RULES];
};

static void mark_singles(struct pruning *pruning, const struct reference_rule *rules,
                         const struct single_indices *singles)
{
    for (uint32_t left = singles->given; left != 0; left &= left - 1) {
        int number = __builtin_ctz(left);
        mark(pruning, rules[number].table, singles->values[number]);
    }
}

static void mark_bytes(struct pruning *pruning, const struct reference_rule *rules,
                       struct slice message);
static void mark_message(struct pruning *pruning, const struct reference_rule *rules,
                         struct message *message);

static void mark_payload(struct pruning *pruning, const struct reference_rule *rule,
                         struct slice payload)
{
    if (rule->tables != 0 && rule->table == 0)
        mark_bytes(pruning, rule->rules, payload);
    else if (rule->table != 0)
        mark_list(pruning, rule->table, payload);
}

/* Reads the number, or the size of the payload, after a tag of one byte. Returns the address after
 * it; NULL if it has more than two bytes. */
static inline const uint8_t *take_short_number(const uint8_t *at, const uint8_t *end, uint32_t *out)
{
    *out = end - at < 2 ? 0 : at[1];
    if (end - at >= 2 && at[1] < 0x80)
        return at + 2;
    if (end - at < 3 || at[2] >= 0x80)
        return NULL;
    *out = (at[1] & 0x7fu) | (uint32_t)at[2] << 7;
    return at + 3;
}

static bool is_original(const struct reference_rule *rules, uint32_t number)
{
    return rules == profile_references && number == PROFILE_ORIGINAL_PAYLOAD;
}

/* Marks what the fields at the start of some received bytes refer to, up to the first one that is
 * not as short as most, or was there before. Returns the address of that. */
static const uint8_t *mark_short_fields(struct pruning *pruning, const struct reference_rule *rules,
                                        const uint8_t *at, const uint8_t *end,
                                        struct single_indices *singles)
{
    while (at < end && at[0] < 0x80 && at[0] >= 8) {
        uint32_t number = at[0] >> 3, type = at[0] & 7, value;
        const uint8_t *after = take_short_number(at, end, &value);
        if (type == WIRE_FIXED64 && end - at > 8) {
            at += 9;
        } else if (!after) {
            break;
        } else if (type == WIRE_BYTES && value <= end - after && !is_original(rules, number)) {
            mark_payload(pruning, &rules[number], slice_of(after, value));
            at = after + value;
        } else if (type == WIRE_VARINT && !(singles->given & 1u << number)) {
            singles->given |= (uint32_t)(rules[number].table != 0) << number;
            singles->values[number] = value;
            at = after;
        } else {
            break;
        }
    }
    return at;
}

static void mark_field(struct pruning *pruning, const struct reference_rule *rules,
                       const struct message_field *field, struct single_indices *singles)
{
    uint32_t number = field->wire.number;
    if (number >= REFERENCE_RULES)
        return;
    const struct reference_rule *rule = &rules[number];
    if (rule->tables == 0) {
        pruning->has_original |= is_original(rules, number);
    } else if (rule->table == 0 && field->node) {
        mark_message(pruning, rule->rules, field->node);
    } else if (rule->table == 0) {
        mark_bytes(pruning, rule->rules, field->wire.bytes);
    } else if (field->wire.type == WIRE_BYTES) {
        mark_list(pruning, rule->table, field->wire.bytes);
    } else if (reference_is_repeated(rule->table)) {
        mark(pruning, rule->table, field->wire.value);
    } else {
        if (singles->given & 1u << number)
            mark_named(pruning, rule->table, singles->values[number]);
        singles->given |= 1u << number;
        singles->values[number] = field->wire.value;
    }
}

/* Mark what the message refers to, and the messages in it, which are of few levels. */
static void mark_bytes(struct pruning *pruning, const struct reference_rule *rules,
                       struct slice message)
{
    struct wire_cursor cursor = wire_cursor(message);
    struct message_field field = {.node = NULL};
    struct single_indices singles;
    singles.given = 0;
    for (;;) {
        cursor.next = mark_short_fields(pruning, rules, cursor.next, cursor.end, &singles);
        if (!wire_next(&cursor, &field.wire))
            break;
        mark_field(pruning, rules, &field, &singles);
    }
    assert(!cursor.broken); /* scanned */
    mark_singles(pruning, rules, &singles);
}

static void mark_message(struct pruning *pruning, const struct reference_rule *rules,
                         struct message *message)
{
    struct message_iter it = message_iter(message, NULL);
    struct message_field field;
    struct single_indices singles;
    singles.given = 0;
    while (message_next(&it, &field))
        mark_field(pruning, rules, &field, &singles);
    mark_singles(pruning, rules, &singles);
}

/* Whether each entry of these tables is marked. */
static bool are_marked(const struct pruning *pruning, uint32_t tables)
{
    for (; tables != 0; tables &= tables - 1)
        if (pruning->tables[__builtin_ctz(tables)].unmarked > 0)
            return false;
    return true;
}

/* Marks what the marked entries of a table refer to, in tables below it, until nothing is left to
 * mark there. */
static void mark_from_table(struct pruning *pruning, int number)
{
    const struct pruned_table *table = &pruning->tables[number];
    struct wire_cursor cursor = {.next = table->start, .end = table->end};
    struct wire_field field;
    if (table->count == 0)
        return;
    for (uint32_t i = 0; !are_marked(pruning, entry_tables[number]) &&
                         wire_next_bytes(&cursor, (uint32_t)number, &field);)
        if (table->marks[i++])
            mark_bytes(pruning, entry_references[number], field.bytes);
    assert(!cursor.broken);
}

static void mark_all(struct pruning *pruning, struct message *root)
{
    mark_message(pruning, request_references, root);
    for (int i = TABLES_BOTTOM_UP - 1; i >= 0; i--) /* an entry is marked before it is read */
        mark_from_table(pruning, tables_bottom_up[i]);
}

/* ---- writing ---- */

enum { EMPTY_FIELD_BYTES = 2 }; /* of an entry without payload: the zero value */

/* Returns whether an entry is not written as it is. */
static bool goes(const struct pruned_table *table, uint32_t index)
{
    return index >= table->kept || !table->marks[index];
}

struct pruned_sizes {
    size_t size;       /* of the new dictionary */
    size_t kept_bytes; /* of entries that something refers to */
    size_t zero_bytes; /* of those that stay as zero values */
    bool changes;
};

/* Reads the next field of the dictionary; a table of which nothing goes is one field. */
static bool next_field(const struct pruning *pruning, struct wire_cursor *cursor,
                       struct wire_field *field)
{
    if (!wire_next(cursor, field))
        return false;
    const struct pruned_table *table = &pruning->tables[is_entry(field) ? field->number : 0];
    if (table->runs == 1 && table->unmarked == 0)
        field->end = cursor->next = table->end;
    return true;
}

static struct pruned_sizes measure(struct pruning *pruning, struct slice dictionary)
{
    struct pruned_sizes sizes = {0};
    uint32_t indices[DICTIONARY_TABLE_COUNT] = {0};
    struct wire_cursor cursor = wire_cursor(dictionary);
    struct wire_field field;
    for (int number = 1; number < DICTIONARY_TABLE_COUNT; number++) {
        struct pruned_table *table = &pruning->tables[number];
        table->kept = table->count;
        while (table->kept > table->named && !table->marks[table->kept - 1])
            table->kept--;
    }
    while (next_field(pruning, &cursor, &field)) {
        size_t size = (size_t)(field.end - field.start);
        if (!is_entry(&field) || !goes(&pruning->tables[field.number], indices[field.number]++)) {
            sizes.kept_bytes += size;
            continue;
        }
        bool stays = indices[field.number] <= pruning->tables[field.number].kept;
        sizes.zero_bytes += stays ? EMPTY_FIELD_BYTES : 0;
        sizes.changes |= !stays || size != EMPTY_FIELD_BYTES;
    }
    sizes.size = sizes.kept_bytes + sizes.zero_bytes;
    return sizes;
}

static uint8_t *copy_run(uint8_t *to, const uint8_t *from, const uint8_t *end)
{
    size_t size = (size_t)(end - from);
    if (size > 0)
        memcpy(to, from, size);
    return to + size;
}

static struct slice write_dictionary(const struct pruning *pruning, struct slice dictionary,
                                     size_t size, struct arena *arena)
{
    uint32_t indices[DICTIONARY_TABLE_COUNT] = {0};
    uint8_t *data = arena_alloc(arena, size), *to = data;
    struct wire_cursor cursor = wire_cursor(dictionary);
    const uint8_t *unwritten = cursor.next;
    struct wire_field field;
    while (next_field(pruning, &cursor, &field)) {
        if (!is_entry(&field))
            continue;
        const struct pruned_table *table = &pruning->tables[field.number];
        uint32_t index = indices[field.number]++;
        if (!goes(table, index))
            continue;
        to = copy_run(to, unwritten, field.start);
        if (index < table->kept)
            to = wire_write_header(to, field.number, 0);
        unwritten = field.end;
    }
    to = copy_run(to, unwritten, cursor.end);
    assert(to == data + size);
    return slice_of(data, size);
}

/* ---- originals ---- */

static void remove_original(struct message *profile, struct arena *arena)
{
    struct message_iter it = message_iter(profile, arena);
    struct message_field field;
    while (message_next(&it, &field))
        if (field.wire.number == PROFILE_ORIGINAL_PAYLOAD ||
            field.wire.number == PROFILE_ORIGINAL_PAYLOAD_FORMAT)
            message_remove(&it, &field);
}

static bool has_original(const struct message_field *profile)
{
    struct message_iter it = message_iter_into(profile, NULL);
    struct message_field field;
    return message_next_bytes(&it, PROFILE_ORIGINAL_PAYLOAD, &field);
}

static void remove_originals_of_scope(struct message *scope, struct arena *arena)
{
    struct message_iter it = message_iter(scope, arena);
    struct message_field field;
    while (message_next_bytes(&it, SCOPE_PROFILES_PROFILES, &field))
        if (has_original(&field))
            remove_original(message_open(&it, &field), arena);
}

static void remove_originals(struct message *root, struct arena *arena)
{
    struct message_iter groups = message_iter(root, arena);
    struct message_field group, scope;
    while (message_next_bytes(&groups, PROFILES_RESOURCE_PROFILES, &group)) {
        struct message_iter scopes = message_iter(message_open(&groups, &group), arena);
        while (message_next_bytes(&scopes, RESOURCE_PROFILES_SCOPE_PROFILES, &scope))
            remove_originals_of_scope(message_open(&scopes, &scope), arena);
    }
}

/* ---- pruning ---- */

/* Returns the dictionary as plain bytes, written out to scratch memory if it was changed. */
static struct slice plain_dictionary(const struct message_field *field, struct arena *scratch)
{
    if (!field->node || !field->node->changed)
        return field->wire.bytes;
    size_t size = message_measure(field->node);
    uint8_t *data = arena_alloc(scratch, size);
    message_write(field->node, data);
    return slice_of(data, size);
}

static enum prune_result prune(struct pruning *pruning, struct message *root, struct arena *arena,
                               struct arena *scratch)
{
    struct message_iter it = message_iter(root, arena);
    struct message_field field;
    struct slice dictionary = {0};
    bool exists = message_next_bytes(&it, PROFILES_DICTIONARY, &field);
    if (exists)
        dictionary = plain_dictionary(&field, scratch);
    find_tables(pruning, dictionary, scratch);
    mark_all(pruning, root);
    struct pruned_sizes sizes = measure(pruning, dictionary);
    if (sizes.changes)
        message_replace(&it, &field, write_dictionary(pruning, dictionary, sizes.size, arena));
    if (pruning->has_original)
        remove_originals(root, arena);
    if (sizes.changes && sizes.zero_bytes > sizes.kept_bytes)
        return PRUNE_SPARSE;
    return sizes.changes || pruning->has_original ? PRUNE_DONE : PRUNE_NOTHING;
}

enum prune_result dictionary_prune(struct message *root, struct arena *arena)
{
    struct pruning pruning = {0};
    struct arena scratch;
    arena_init(&scratch, arena->budget);
    enum prune_result result = prune(&pruning, root, arena, &scratch);
    arena_deinit(&scratch);
    return result;
}
