#include "core/data/merge_source.h"

#include "core/base/budget.h"
#include "core/base/memory.h"

#include <assert.h>

/* The index of an entry in the merged table, valid in this round. */
struct mapped {
    uint32_t round;
    uint32_t index;
};

struct merge_source_table {
    uint32_t references;
    uint32_t count;
    uint32_t capacity;
    struct merge_entry *entries;
    struct mapped *mapped;
    struct slice run;      /* received bytes of all entries; size 0: they are not adjacent */
    uint32_t round;        /* of the next two members */
    uint32_t mapped_count; /* index 0 does not count */
    bool moved;            /* an entry has got another index */
    struct budget *budget;
};

/* ---- looking through a dictionary ---- */

static struct merge_source_table *table_new(struct budget *budget)
{
    struct merge_source_table *table = memory_zalloc(sizeof *table);
    table->references = 1;
    table->budget = budget;
    return table;
}

static void table_unref(struct merge_source_table *table)
{
    if (!table)
        return;
    assert(table->references > 0);
    if (--table->references > 0)
        return;
    budget_release(table->budget, table->capacity * sizeof *table->entries +
                                      (table->mapped ? table->count * sizeof *table->mapped : 0));
    free(table->entries);
    free(table->mapped);
    free(table);
}

static void set_capacity(struct merge_source_table *table, uint32_t capacity)
{
    assert(capacity >= table->count);
    budget_release(table->budget, table->capacity * sizeof *table->entries);
    budget_charge(table->budget, capacity * sizeof *table->entries);
    table->entries = memory_grow(table->entries, capacity, sizeof *table->entries);
    table->capacity = capacity;
}

static void add_entry(struct merge_source_table *table, const struct wire_field *field)
{
    enum { CAPACITY_MIN = 32 };
    assert(field->type == WIRE_BYTES); /* scanned */
    if (table->count == table->capacity)
        set_capacity(table, table->capacity ? table->capacity * 2 : CAPACITY_MIN);
    table->entries[table->count++] =
        (struct merge_entry){field->bytes, (size_t)(field->bytes.data - field->start)};
}

/* The state of reading a dictionary. */
struct reading {
    struct budget *budget;
    struct merge_source_table *before[DICTIONARY_TABLE_COUNT];
    struct merge_source_table *tables[DICTIONARY_TABLE_COUNT]; /* NULL: no own entries yet */
    struct slice runs[DICTIONARY_TABLE_COUNT]; /* received bytes of each table so far */
    uint32_t apart;                            /* bit per table whose entries are not adjacent */
    uint32_t same; /* bit per table that begins with all bytes of the previous one */
};

static struct merge_source_table *own_table(struct reading *reading, unsigned number)
{
    const struct merge_source_table *before = reading->before[number];
    struct merge_source_table *table = reading->tables[number];
    if (table)
        return table;
    reading->tables[number] = table = table_new(reading->budget);
    if (before && reading->same >> number & 1 && before->count > 0) {
        set_capacity(table, before->count);
        memcpy(table->entries, before->entries, before->count * sizeof *table->entries);
        table->count = before->count;
    }
    return table;
}

static void extend_run(struct reading *reading, unsigned number, const uint8_t *start,
                       const uint8_t *end)
{
    struct slice *run = &reading->runs[number];
    if (run->size == 0)
        run->data = start;
    else if (run->data + run->size != start)
        reading->apart |= 1u << number;
    run->size = (size_t)(end - run->data);
}

/* If this is the beginning of a table, and its bytes begin with those of the whole previous table,
 * returns the address after them; otherwise NULL. */
static const uint8_t *skip_same(struct reading *reading, const struct wire_cursor *cursor)
{
    unsigned number = *cursor->next >> 3;
    if (number == 0 || number >= DICTIONARY_TABLE_COUNT || reading->runs[number].size > 0)
        return NULL;
    const struct merge_source_table *before = reading->before[number];
    if (!before || before->run.size == 0 ||
        (size_t)(cursor->end - cursor->next) < before->run.size ||
        memcmp(cursor->next, before->run.data, before->run.size) != 0)
        return NULL;
    extend_run(reading, number, cursor->next, cursor->next + before->run.size);
    reading->same |= 1u << number;
    return cursor->next + before->run.size;
}

static void read_dictionary(struct reading *reading, struct slice dictionary,
                            struct wire_out *unknown)
{
    struct wire_cursor cursor = wire_cursor(dictionary);
    struct wire_field field;
    for (;;) {
        const uint8_t *behind = cursor.next < cursor.end ? skip_same(reading, &cursor) : NULL;
        if (behind) {
            cursor.next = behind;
            continue;
        }
        if (!wire_next(&cursor, &field))
            break;
        if (field.number >= DICTIONARY_TABLE_COUNT) {
            wire_out_put(unknown, slice_of(field.start, (size_t)(field.end - field.start)));
            continue;
        }
        add_entry(own_table(reading, field.number), &field);
        extend_run(reading, field.number, field.start, field.end);
    }
    assert(!cursor.broken); /* scanned */
}

/* Copies entries and mappings of the previous table. */
static void take_over(struct merge_source_table *table, const struct merge_source_table *before)
{
    assert(table->count >= before->count); /* the table begins with all of them */
    if (before->count > 0)
        memcpy(table->mapped, before->mapped, before->count * sizeof *table->mapped);
    table->round = before->round;
    table->mapped_count = before->mapped_count;
    table->moved = before->moved;
}

static struct merge_source_table *finish_table(struct reading *reading, unsigned number,
                                               bool keeps_mapped)
{
    struct merge_source_table *before = reading->before[number];
    assert(before || !keeps_mapped);
    if (!reading->tables[number] && keeps_mapped) {
        before->references++;
        return before;
    }
    struct merge_source_table *table = own_table(reading, number);
    size_t size = table->count * sizeof *table->mapped;
    if (table->count > 0)
        set_capacity(table, table->count); /* returns unused capacity */
    budget_charge(table->budget, size);
    table->mapped = memory_zalloc(size);
    table->run = reading->apart >> number & 1 ? (struct slice){0} : reading->runs[number];
    if (keeps_mapped)
        take_over(table, before);
    return table;
}

void merge_source_init(struct merge_source *source, struct merge_target *target,
                       struct slice dictionary, const struct merge_source *before,
                       struct wire_out *unknown)
{
    struct reading reading = {.budget = target->tables.arena.budget};
    uint32_t kept = 0;
    *source = (struct merge_source){.target = target};
    for (unsigned table = 1; before && table < DICTIONARY_TABLE_COUNT; table++) {
        reading.before[table] = before->tables[table];
        if (before->tables[table]->count == 0)
            reading.same |= 1u << table;
    }
    read_dictionary(&reading, dictionary, unknown);
    for (int i = 0; i < TABLES_BOTTOM_UP; i++) {
        unsigned table = (unsigned)tables_bottom_up[i];
        bool keeps_mapped = reading.same >> table & 1 && (entry_tables[table] & ~kept) == 0;
        source->tables[table] = finish_table(&reading, table, keeps_mapped);
        kept |= (uint32_t)keeps_mapped << table;
    }
}

/* A hostile request consists almost only of tiny entries; keeping two such requests would need too
 * much memory. */
bool merge_source_is_worth_keeping(const struct merge_source *source)
{
    enum { ENTRY_MIN_BYTES = 8 }; /* on average */
    size_t size = 0, count = 0;
    for (int table = 1; table < DICTIONARY_TABLE_COUNT; table++) {
        size += source->tables[table]->run.size;
        count += source->tables[table]->count;
    }
    return size >= count * ENTRY_MIN_BYTES;
}

void merge_source_deinit(struct merge_source *source)
{
    for (int table = 1; table < DICTIONARY_TABLE_COUNT; table++)
        table_unref(source->tables[table]);
    *source = (struct merge_source){0};
}

uint32_t merge_source_count(const struct merge_source *source, int table)
{
    assert(table > 0 && table < DICTIONARY_TABLE_COUNT);
    return source->tables[table]->count;
}

/* ---- mapping ---- */

static void note_fixed(struct merge_source *source, int number)
{
    const struct merge_source_table *table = source->tables[number];
    if (!table->moved && table->mapped_count + 1 >= table->count)
        source->fixed |= 1u << number;
}

void merge_source_begin(struct merge_source *source)
{
    assert(source->target->round > 0); /* 0 in a table means that it was never mapped */
    source->fixed = 0;
    for (int number = 1; number < DICTIONARY_TABLE_COUNT; number++) {
        struct merge_source_table *table = source->tables[number];
        if (table->round != source->target->round) {
            table->round = source->target->round;
            table->mapped_count = 0;
            table->moved = false;
        }
        note_fixed(source, number);
    }
}

/* Makes entries for the merged table: received ones if nothing in them changes, otherwise rewritten
 * ones. */
static void make_entries(struct merge_source *source, int number, uint32_t first, uint32_t count,
                         struct merge_entry *entries_out)
{
    const struct merge_entry *received = &source->tables[number]->entries[first];
    struct wire_out *made = &source->target->made[number];
    if ((entry_tables[number] & ~source->fixed) == 0) {
        memcpy(entries_out, received, count * sizeof *received);
        return;
    }
    made->size = 0;
    wire_out_room(made, 1); /* so that there is an address even if nothing is written */
    for (uint32_t i = 0; i < count; i++) {
        size_t start = made->size;
        merge_source_rewrite(source, entry_references[number], received[i].payload, made);
        entries_out[i] = (struct merge_entry){.payload.size = made->size - start};
    }
    const uint8_t *data = made->data;
    for (uint32_t i = 0; i < count; data += entries_out[i++].payload.size)
        entries_out[i].payload.data = data;
    assert(data == made->data + made->size);
}

/* Empties the buffer of rewritten entries, which were copied. Frees it if it is large. */
static void forget_made(struct wire_out *made)
{
    enum { KEPT_BYTES = 256 * 1024 };
    made->size = 0;
    if (made->capacity > KEPT_BYTES)
        wire_out_deinit(made);
}

/* Maps at most MERGE_BLOCK entries that are not mapped yet. */
static void map_block(struct merge_source *source, int number, uint32_t first, uint32_t count)
{
    struct merge_source_table *table = source->tables[number];
    struct merge_entry entries[MERGE_BLOCK];
    uint32_t indices[MERGE_BLOCK];
    assert(first > 0 && count > 0 && count <= MERGE_BLOCK && count <= table->count - first);
    make_entries(source, number, first, count, entries);
    merge_tables_intern(&source->target->tables, number, entries, count, indices);
    forget_made(&source->target->made[number]);
    for (uint32_t i = 0; i < count; i++) {
        size_t size = table->entries[first + i].payload.size;
        source->target->read_bytes += size > MERGE_ENTRY_BYTES ? size : MERGE_ENTRY_BYTES;
        table->mapped[first + i] = (struct mapped){source->target->round, indices[i]};
        table->moved |= indices[i] != first + i;
    }
    table->mapped_count += count;
    assert(table->mapped_count < table->count); /* index 0 does not count */
    note_fixed(source, number);
}

/* Returns the index in the merged table for an index of the source. */
static inline uint32_t map_index(struct merge_source *source, int number, uint64_t index)
{
    const struct merge_source_table *table = source->tables[number];
    if (index == 0)
        return 0;
    assert(index < table->count); /* scanned */
    const struct mapped *mapped = &table->mapped[index];
    if (mapped->round == source->target->round)
        return mapped->index;
    map_block(source, number, (uint32_t)index, 1);
    return mapped->index;
}

static void map_table(struct merge_source *source, int number)
{
    const struct merge_source_table *table = source->tables[number];
    uint32_t first = 1, end;
    if (table->mapped_count + 1 >= table->count)
        return;
    merge_tables_expect(&source->target->tables, number, table->count - 1 - table->mapped_count);
    for (; first < table->count; first = end) {
        end = first;
        while (end < table->count && end - first < MERGE_BLOCK &&
               table->mapped[end].round != source->target->round)
            end++;
        if (end > first)
            map_block(source, number, first, end - first);
        else
            end++;
    }
}

void merge_source_map_all(struct merge_source *source)
{
    for (int i = 0; i < TABLES_BOTTOM_UP; i++)
        map_table(source, tables_bottom_up[i]);
}

/* ---- rewriting ---- */

/* Reads the next index; most have one byte or two. */
static inline uint64_t next_index(struct wire_cursor *packed)
{
    const uint8_t *next = packed->next;
    uint64_t index = next[0];
    if (index < 0x80) {
        packed->next = next + 1;
    } else if (packed->end - next > 1 && next[1] < 0x80) {
        index = (index & 0x7f) | (uint64_t)next[1] << 7;
        packed->next = next + 2;
    } else {
        bool is_whole = wire_packed_varint(packed, &index);
        assert(is_whole); /* scanned */
    }
    return index;
}

static inline uint8_t *write_index(uint8_t *to, uint32_t index)
{
    if (index < 0x80) {
        *to++ = (uint8_t)index;
    } else if (index < 0x4000) {
        *to++ = (uint8_t)(index | 0x80);
        *to++ = (uint8_t)(index >> 7);
    } else {
        to = wire_write_varint(to, index);
    }
    return to;
}

/* Rewrites a list of indices; most of the rewriting is here. Mapping an index does not write to
 * `out`, because a table refers only to other tables. Lists are written in pieces, so that a long
 * list does not reserve memory that it does not need. */
static void rewrite_list(struct merge_source *source, int number, struct slice list,
                         struct wire_out *out)
{
    enum { INDEX_MAX_BYTES = 5, PIECE_BYTES = 4096 };
    const struct mapped *mapped = source->tables[number]->mapped;
    uint32_t round = source->target->round, count = source->tables[number]->count;
    struct wire_cursor packed = wire_cursor(list);
    while (packed.next < packed.end) {
        size_t size = (size_t)(packed.end - packed.next);
        const uint8_t *end = packed.next + (size < PIECE_BYTES ? size : PIECE_BYTES);
        uint8_t *to = wire_out_room(out, (size_t)(end - packed.next) * INDEX_MAX_BYTES);
        while (packed.next < end) {
            uint64_t index = next_index(&packed);
            assert(index < count || index == 0); /* scanned */
            bool is_known = index != 0 && mapped[index].round == round;
            to = write_index(to, is_known ? mapped[index].index : map_index(source, number, index));
        }
        out->size = (size_t)(to - out->data);
    }
}

/* A repeated index keeps its zeros; a single one that becomes zero is left out. */
static void rewrite_field(struct merge_source *source, const struct reference_rule *rule,
                          const struct wire_field *field, struct wire_out *out)
{
    if (rule->table != 0 && field->type == WIRE_VARINT) {
        uint32_t index = map_index(source, rule->table, field->value);
        if (index != 0 || field->value == 0 || reference_is_repeated(rule->table))
            wire_out_varint(out, field->number, index);
        return;
    }
    assert(field->type == WIRE_BYTES); /* scanned */
    struct wire_out_field opened = wire_out_open(out, field->number, field->bytes.size);
    if (rule->table == 0)
        merge_source_rewrite(source, rule->rules, field->bytes, out);
    else
        rewrite_list(source, rule->table, field->bytes, out);
    wire_out_close(out, opened, field->number);
}

void merge_source_rewrite(struct merge_source *source, const struct reference_rule *rules,
                          struct slice payload, struct wire_out *out)
{
    struct wire_cursor cursor = wire_cursor(payload);
    struct wire_field field;
    const uint8_t *copied = cursor.next;
    while (wire_next(&cursor, &field)) {
        if (field.number >= REFERENCE_RULES || (rules[field.number].tables & ~source->fixed) == 0)
            continue;
        wire_out_put(out, slice_of(copied, (size_t)(field.start - copied)));
        copied = field.end;
        rewrite_field(source, &rules[field.number], &field, out);
    }
    assert(!cursor.broken);
    wire_out_put(out, slice_of(copied, (size_t)(cursor.end - copied)));
}
