/* Nearly all entries and samples are usual: each field once at most, in the order of the numbers.
 * They are read at once; others field by field, with the rules. */
#include "core/data/prune.h"

#include "core/base/arena.h"
#include "core/data/function_fields.h"
#include "core/data/originals.h"
#include "core/data/reference_rules.h"
#include "core/data/usual_fields.h"

struct pruned_table {
    uint8_t *marks;       /* a byte for each entry, or for index 0, and a 0; 1: it is referred to */
    uint32_t count;       /* entries */
    uint32_t marked;      /* at the start of the table, as far as that was looked at */
    uint32_t named;       /* entries up to the last one that an index names which does not count */
    uint32_t kept;        /* entries up to the last marked or named one */
    uint32_t runs;        /* of consecutive entries; 0: not known */
    const uint8_t *start; /* of the first entry's field */
    const uint8_t *end;   /* of the last one's, or of all tables; others may lie between */
};

struct gone_entry {
    const uint8_t *start; /* of the field */
    int table;
    bool is_cut; /* else it becomes the zero value */
};

struct pruning {
    struct pruned_table tables[DICTIONARY_TABLE_COUNT];
    struct sample_marks samples; /* of the tables */
    bool knows_samples;          /* they are marked */
    bool has_original;           /* a profile has an original_payload */
    /* The entries that go, table by table; gone_max of them at most are noted. */
    struct gone_entry *gone;
    size_t gone_count, gone_max;
};

/* ---- reading the tables ---- */

static bool is_entry(const struct wire_field *field)
{
    return field->number < DICTIONARY_TABLE_COUNT && field->type == WIRE_BYTES;
}

/* Whether a short entry with this tag, as most are, is at the address. */
static inline bool is_short_entry(const uint8_t *at, const uint8_t *end, uint8_t tag)
{
    return end - at >= 2 && at[0] == tag && at[1] < 0x80 && at[1] <= end - at - 2;
}

static void count_tables(struct pruning *pruning, struct slice dictionary)
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
            cursor.next = wire_skip_short(cursor.next, cursor.end, *field.start, &table->count);
        table->end = cursor.next;
    }
    assert(!cursor.broken); /* scanned */
}

/* Takes what the scan has found. */
static void take_tables(struct pruning *pruning, struct slice dictionary,
                        const struct dictionary_layout *layout, const uint8_t *request)
{
    for (int number = 1; number < DICTIONARY_TABLE_COUNT; number++)
        if (layout->counts[number] > 0)
            pruning->tables[number] = (struct pruned_table){
                .count = layout->counts[number],
                .start = request + layout->starts[number],
                .end = dictionary.data + dictionary.size,
            };
}

static struct entry_marks marks_of(const struct pruned_table *table)
{
    return (struct entry_marks){table->marks, table->count};
}

static void take_marks(const struct entry_marks *to, const struct entry_marks *from)
{
    assert(to->count == from->count);
    memcpy(to->bytes, from->bytes, from->count);
    to->bytes[0] = 1;
}

static void take_samples(struct pruning *pruning, const struct sample_marks *marks)
{
    pruning->knows_samples = true;
    take_marks(&pruning->samples.stacks, &marks->stacks);
    take_marks(&pruning->samples.links, &marks->links);
    take_marks(&pruning->samples.attributes, &marks->attributes);
}

static void make_marks(struct pruning *pruning, struct arena *scratch)
{
    for (int number = 1; number < DICTIONARY_TABLE_COUNT; number++) {
        struct pruned_table *table = &pruning->tables[number];
        table->marks = arena_array(scratch, (size_t)table->count + 2, sizeof *table->marks);
        table->marks[0] = 1; /* the zero value */
    }
    pruning->samples = (struct sample_marks){
        .stacks = marks_of(&pruning->tables[DICTIONARY_STACK_TABLE]),
        .links = marks_of(&pruning->tables[DICTIONARY_LINK_TABLE]),
        .attributes = marks_of(&pruning->tables[DICTIONARY_ATTRIBUTE_TABLE]),
    };
}

struct entry {
    const uint8_t *start; /* of the field, which ends where the payload ends */
    struct slice payload;
};

/* Reads the next entry of a table. Returns false at the end. */
static inline bool next_entry(struct wire_cursor *cursor, int number, struct entry *out)
{
    struct wire_field field;
    const uint8_t *at = cursor->next;
    if (is_short_entry(at, cursor->end, (uint8_t)(number << 3 | WIRE_BYTES))) {
        *out = (struct entry){at, {at + 2, at[1]}};
        cursor->next = at + 2 + at[1];
        return true;
    }
    if (!wire_next_bytes(cursor, (uint32_t)number, &field))
        return false;
    *out = (struct entry){field.start, field.bytes};
    return true;
}

/* Whether each entry is marked. It is asked often, and looks at each mark once. */
static inline bool is_all_marked(struct pruned_table *table)
{
    uint8_t *next = table->marks + table->marked;
    if (*next) {
        next = memchr(next, 0, table->count + 2 - table->marked);
        table->marked = (uint32_t)(next - table->marks);
    }
    return table->marked >= table->count;
}

/* ---- marking ---- */

static inline void mark(struct pruning *pruning, int number, uint64_t index)
{
    struct pruned_table *table = &pruning->tables[number];
    assert(index < table->count || index == 0); /* scanned */
    table->marks[index] = 1;
}

/* An index that another one replaced must still be inside the table. */
static void mark_named(struct pruning *pruning, int number, uint64_t index)
{
    struct pruned_table *table = &pruning->tables[number];
    assert(index < table->count || index == 0); /* scanned */
    if (index >= table->named && index < table->count)
        table->named = (uint32_t)index + 1;
}

static inline void mark_list(struct pruning *pruning, int number, struct slice list)
{
    const struct entry_marks marks = marks_of(&pruning->tables[number]);
    entry_marks_set_all(&marks, list);
}

/* ---- usual messages ---- */

/* Each returns false if the message is unusual, and then has marked only what it refers to in any
 * case. */

static bool mark_usual_sample(struct pruning *pruning, struct slice sample)
{
    struct sample_references references;
    if (!sample_references_read_usual(sample, &references))
        return false;
    sample_marks_add(&pruning->samples, &references);
    return true;
}

static bool mark_usual_stack(struct pruning *pruning, struct slice stack)
{
    struct wire_cursor cursor = wire_cursor(stack);
    struct entry locations;
    if (!next_entry(&cursor, STACK_LOCATION_INDICES, &locations) || locations.start != stack.data ||
        cursor.next != cursor.end)
        return stack.size == 0;
    mark_list(pruning, DICTIONARY_LOCATION_TABLE, locations.payload);
    return true;
}

static inline bool mark_usual_line(struct pruning *pruning, const uint8_t *at, const uint8_t *end)
{
    uint32_t function = 0;
    at = usual_index(at, end, LINE_FUNCTION_INDEX, &function);
    at = usual_number(at, end, LINE_LINE);
    at = usual_number(at, end, LINE_COLUMN);
    if (at == end)
        mark(pruning, DICTIONARY_FUNCTION_TABLE, function);
    return at == end;
}

static bool mark_usual_location(struct pruning *pruning, struct slice location)
{
    const uint8_t *at = location.data, *end = at + location.size, *after;
    struct slice line = {0}, attributes = {0};
    uint32_t mapping = 0;
    at = usual_index(at, end, LOCATION_MAPPING_INDEX, &mapping);
    at = usual_number(at, end, LOCATION_ADDRESS);
    for (; (after = usual_bytes(at, end, LOCATION_LINES, &line)) != at; at = after)
        if (!mark_usual_line(pruning, line.data, after))
            return false;
    after = usual_bytes(at, end, LOCATION_ATTRIBUTE_INDICES, &attributes);
    if (after != at)
        mark_list(pruning, DICTIONARY_ATTRIBUTE_TABLE, attributes);
    at = after;
    if (at == end)
        mark(pruning, DICTIONARY_MAPPING_TABLE, mapping);
    return at == end;
}

static bool mark_usual_function(struct pruning *pruning, struct slice function)
{
    struct function_names names = {0};
    if (!function_names_read_usual(function, &names))
        return false;
    mark(pruning, DICTIONARY_STRING_TABLE, names.name);
    mark(pruning, DICTIONARY_STRING_TABLE, names.system_name);
    mark(pruning, DICTIONARY_STRING_TABLE, names.file);
    return true;
}

static inline bool mark_usual_entry(struct pruning *pruning, int number, struct slice entry)
{
    if (number == DICTIONARY_STACK_TABLE)
        return mark_usual_stack(pruning, entry);
    if (entry.size == 0)
        return true;
    if (number == DICTIONARY_LOCATION_TABLE)
        return mark_usual_location(pruning, entry);
    return number == DICTIONARY_FUNCTION_TABLE && mark_usual_function(pruning, entry);
}

/* ---- any message ---- */

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

static bool is_original(const struct reference_rule *rules, uint32_t number)
{
    return rules == profile_references && number == PROFILE_ORIGINAL_PAYLOAD;
}

static void mark_payload(struct pruning *pruning, const struct reference_rule *rules,
                         uint32_t number, struct slice payload)
{
    const struct reference_rule *rule = &rules[number];
    if (rule->table != 0)
        mark_list(pruning, rule->table, payload);
    else if (rule->tables != 0)
        mark_bytes(pruning, rule->rules, payload);
    else
        pruning->has_original |= is_original(rules, number);
}

static void mark_field(struct pruning *pruning, const struct reference_rule *rules,
                       const struct wire_field *field, struct single_indices *singles)
{
    uint32_t number = field->number;
    if (number >= REFERENCE_RULES)
        return;
    const struct reference_rule *rule = &rules[number];
    if (field->type == WIRE_BYTES) {
        mark_payload(pruning, rules, number, field->bytes);
    } else if (rule->table == 0) {
        return;
    } else if (reference_is_repeated(rule->table)) {
        mark(pruning, rule->table, field->value);
    } else {
        if (singles->given & 1u << number)
            mark_named(pruning, rule->table, singles->values[number]);
        singles->given |= 1u << number;
        singles->values[number] = field->value;
    }
}

/* Marks what the usual samples at the start of some fields refer to. Returns the address after
 * them. */
static const uint8_t *mark_samples(struct pruning *pruning, const uint8_t *at, const uint8_t *end)
{
    enum { TAG = PROFILE_SAMPLES << 3 | WIRE_BYTES };
    if (pruning->knows_samples)
        return wire_skip_short(at, end, TAG, &(uint32_t){0});
    while (is_short_entry(at, end, TAG) &&
           mark_usual_sample(pruning, (struct slice){at + 2, at[1]}))
        at += 2 + at[1];
    return at;
}

/* Marks what some fields of a message refer to. */
static void mark_fields(struct pruning *pruning, const struct reference_rule *rules,
                        struct slice fields, struct single_indices *singles)
{
    struct wire_cursor cursor = wire_cursor(fields);
    struct wire_field field;
    for (;;) {
        if (rules == profile_references)
            cursor.next = mark_samples(pruning, cursor.next, cursor.end);
        if (!wire_next(&cursor, &field))
            break;
        mark_field(pruning, rules, &field, singles);
    }
    assert(!cursor.broken); /* scanned */
}

/* Mark what the message refers to, and the messages in it, which are of few levels. */
static void mark_bytes(struct pruning *pruning, const struct reference_rule *rules,
                       struct slice message)
{
    struct single_indices singles;
    singles.given = 0;
    mark_fields(pruning, rules, message, &singles);
    mark_singles(pruning, rules, &singles);
}

static void mark_message(struct pruning *pruning, const struct reference_rule *rules,
                         struct message *message);

static void mark_node(struct pruning *pruning, const struct reference_rule *rules,
                      struct message *node)
{
    if (node->number >= REFERENCE_RULES)
        return;
    const struct reference_rule *rule = &rules[node->number];
    if (rule->tables != 0 && rule->table == 0)
        mark_message(pruning, rule->rules, node);
    else
        mark_payload(pruning, rules, node->number, node->raw);
}

static void mark_message(struct pruning *pruning, const struct reference_rule *rules,
                         struct message *message)
{
    struct message_iter it = message_iter(message, NULL);
    struct message_piece piece;
    struct single_indices singles;
    singles.given = 0;
    while (message_next_piece(&it, &piece))
        if (piece.node)
            mark_node(pruning, rules, piece.node);
        else
            mark_fields(pruning, rules, piece.fields, &singles);
    mark_singles(pruning, rules, &singles);
}

/* Whether each entry of these tables is marked. */
static bool are_marked(struct pruning *pruning, uint32_t tables)
{
    for (; tables != 0; tables &= tables - 1)
        if (!is_all_marked(&pruning->tables[__builtin_ctz(tables)]))
            return false;
    return true;
}

/* Marks what the marked entries of a table refer to, in tables below it, until nothing is left to
 * mark there, which is looked at now and then. */
static void mark_from_table(struct pruning *pruning, int number)
{
    enum { LOOK_EVERY = 16 };
    const struct pruned_table *table = &pruning->tables[number];
    struct wire_cursor cursor = {.next = table->start, .end = table->end};
    struct entry entry;
    for (uint32_t i = 0; i < table->count; i++) {
        if (i % LOOK_EVERY == 0 && are_marked(pruning, entry_tables[number]))
            return;
        bool exists = next_entry(&cursor, number, &entry);
        assert(exists);
        if (table->marks[i] && !mark_usual_entry(pruning, number, entry.payload))
            mark_bytes(pruning, entry_references[number], entry.payload);
    }
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

struct pruned_sizes {
    size_t size;       /* of the new dictionary */
    size_t kept_bytes; /* of entries that something refers to */
    size_t zero_bytes; /* of those that stay as zero values */
};

/* Moves on to the next entry that does not stay, or to one that is not short. */
static void skip_kept(const struct pruned_table *table, struct wire_cursor *cursor, uint8_t tag,
                      uint32_t *index)
{
    const uint8_t *at = cursor->next;
    uint32_t i = *index;
    for (; tag < 0x80 && table->marks[i] && is_short_entry(at, cursor->end, tag); at += 2 + at[1])
        i++;
    *index = i;
    cursor->next = at;
}

/* Notes an entry that goes, unless it is the zero value, and stays. */
static void note_gone(struct pruning *pruning, struct pruned_sizes *sizes, struct gone_entry gone,
                      size_t size)
{
    sizes->kept_bytes -= size;
    sizes->zero_bytes += gone.is_cut ? 0 : EMPTY_FIELD_BYTES;
    if (!gone.is_cut && size == EMPTY_FIELD_BYTES)
        return;
    if (pruning->gone_count < pruning->gone_max)
        pruning->gone[pruning->gone_count] = gone;
    pruning->gone_count++;
}

/* Adds what goes of a table. */
static void measure_table(struct pruning *pruning, int number, struct pruned_sizes *sizes)
{
    struct pruned_table *table = &pruning->tables[number];
    struct wire_cursor cursor = {.next = table->start, .end = table->end};
    struct entry entry;
    table->kept = table->count;
    if (is_all_marked(table))
        return;
    while (table->kept > table->named && !table->marks[table->kept - 1])
        table->kept--;
    for (uint32_t i = 0; i < table->count; i++) {
        skip_kept(table, &cursor, (uint8_t)(number << 3 | WIRE_BYTES), &i);
        if (i == table->count)
            break;
        bool exists = next_entry(&cursor, number, &entry);
        assert(exists);
        if (!table->marks[i])
            note_gone(pruning, sizes, (struct gone_entry){entry.start, number, i >= table->kept},
                      (size_t)(cursor.next - entry.start));
    }
}

static struct pruned_sizes measure(struct pruning *pruning, struct slice dictionary)
{
    struct pruned_sizes sizes = {.kept_bytes = dictionary.size};
    for (int number = 1; number < DICTIONARY_TABLE_COUNT; number++)
        measure_table(pruning, number, &sizes);
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

/* A table of which nothing goes is skipped at once. */
static struct slice write_dictionary(struct pruning *pruning, struct slice dictionary, size_t size,
                                     struct arena *arena)
{
    uint32_t indices[DICTIONARY_TABLE_COUNT] = {0};
    uint8_t *data = arena_alloc(arena, size), *to = data;
    struct wire_cursor cursor = wire_cursor(dictionary);
    const uint8_t *unwritten = cursor.next;
    struct wire_field field;
    while (wire_next(&cursor, &field)) {
        if (!is_entry(&field))
            continue;
        struct pruned_table *table = &pruning->tables[field.number];
        uint32_t index = indices[field.number]++;
        if (table->runs == 1 && is_all_marked(table)) {
            cursor.next = table->end;
        } else if (table->marks[index]) {
            skip_kept(table, &cursor, *field.start, &indices[field.number]);
        } else {
            to = copy_run(to, unwritten, field.start);
            if (index < table->kept)
                to = wire_write_header(to, field.number, 0);
            unwritten = field.end;
        }
    }
    to = copy_run(to, unwritten, cursor.end);
    assert(to == data + size);
    return slice_of(data, size);
}

/* Changes single entries, which leaves the others where they are. */
static void take_out(const struct pruning *pruning, struct message *dictionary, struct arena *arena)
{
    struct message_iter it = message_iter(dictionary, arena);
    struct message_field field;
    for (size_t i = 0; i < pruning->gone_count; i++) {
        const struct gone_entry *gone = &pruning->gone[i];
        if (i > 0 && gone->table != gone[-1].table) /* which may be before it */
            it = message_iter(dictionary, arena);
        it.cursor.next = gone->start;
        bool exists = message_next(&it, &field);
        assert(exists && field.wire.start == gone->start);
        if (gone->is_cut)
            message_remove(&it, &field);
        else
            message_replace(&it, &field, (struct slice){0});
    }
}

/* ---- pruning ---- */

static void find_tables(struct pruning *pruning, const struct message *root,
                        const struct message_field *field, struct slice dictionary,
                        const struct dictionary_layout *layout)
{
    if (layout->are_known && !field->node)
        take_tables(pruning, dictionary, layout, root->raw.data);
    else
        count_tables(pruning, dictionary);
}

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

/* What a node costs as much as to copy, in bytes. */
enum { NODE_BYTES = 256 };

/* Takes what goes out of the dictionary, which is received bytes if it was not changed before. */
static void change_dictionary(struct pruning *pruning, struct message_iter *it,
                              struct message_field *field, struct slice dictionary, size_t size)
{
    bool is_received = dictionary.data == field->wire.bytes.data;
    if (is_received && pruning->gone_count <= pruning->gone_max)
        take_out(pruning, message_open(it, field), it->arena);
    else
        message_replace(it, field, write_dictionary(pruning, dictionary, size, it->arena));
}

static enum prune_result prune(struct pruning *pruning, struct message *root,
                               const struct dictionary_layout *layout,
                               const struct sample_marks *marks, struct arena *arena,
                               struct arena *scratch)
{
    struct message_iter it = message_iter(root, arena);
    struct message_field field;
    struct slice dictionary = {0};
    bool exists = message_next_bytes(&it, PROFILES_DICTIONARY, &field);
    if (exists) {
        dictionary = plain_dictionary(&field, scratch);
        find_tables(pruning, root, &field, dictionary, layout);
    }
    make_marks(pruning, scratch);
    if (marks)
        take_samples(pruning, marks);
    mark_all(pruning, root);
    pruning->gone_max = dictionary.size / NODE_BYTES;
    pruning->gone = arena_alloc(scratch, pruning->gone_max * sizeof *pruning->gone);
    struct pruned_sizes sizes = measure(pruning, dictionary);
    bool changes = pruning->gone_count > 0;
    if (changes)
        change_dictionary(pruning, &it, &field, dictionary, sizes.size);
    if (pruning->has_original)
        originals_remove(root, arena);
    if (changes && sizes.zero_bytes > sizes.kept_bytes)
        return PRUNE_SPARSE;
    return changes || pruning->has_original ? PRUNE_DONE : PRUNE_NOTHING;
}

enum prune_result dictionary_prune(struct message *root, const struct dictionary_layout *layout,
                                   const struct sample_marks *marks, struct arena *arena)
{
    struct pruning pruning = {0};
    struct arena scratch;
    arena_init(&scratch, arena->budget);
    enum prune_result result = prune(&pruning, root, layout, marks, arena, &scratch);
    arena_deinit(&scratch);
    return result;
}
