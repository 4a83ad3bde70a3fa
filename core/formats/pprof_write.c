#include "core/formats/pprof_write.h"

#include "core/base/arena.h"
#include "core/base/hash.h"
#include "core/base/index_table.h"
#include "core/base/memory.h"
#include "core/base/text.h"
#include "core/data/wire_writer.h"
#include "core/formats/pprof.h"
#include "core/formats/pprof_read.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

/* ---- what is kept ---- */

/* Samples with equal stack, link and labels; their values are in writer->values. */
struct row {
    uint32_t stack, link;
    uint32_t first_label, label_count; /* indices into writer->labels */
};

enum { INDEX_SIZES = 32 };

/* An index table that is emptied repeatedly. Emptying costs as much as the table has slots, so it
 * then has as many as the last use needed. When it grows, it uses the memory that it had before. */
struct reused_index {
    struct index_table table;
    void *slots[INDEX_SIZES]; /* by the logarithm of their number; NULL: not needed yet */
};

/* The entries of a table of the dictionary that are in the pprof, with their ids. */
struct id_table {
    uint32_t *ids;  /* by index; 0: not in the pprof */
    uint32_t *used; /* by id - 1 */
    uint32_t count;
};

enum section { HEADER, SAMPLES, MAPPINGS, LOCATIONS, FUNCTIONS, STRINGS, SECTION_COUNT };

/* A state of the pprof being written, to which return_to can go back. */
struct mark {
    size_t sizes[SECTION_COUNT];
    uint32_t mappings, locations, functions, strings;
};

/* A text in the pprof being written. */
struct kept_text {
    uint32_t pprof; /* the pprof for which `id` is valid; another one: not looked up yet */
    uint32_t id;
    uint32_t hash; /* 0: not computed yet */
};

struct string {
    struct slice text;
    uint32_t hash;
};

/* The result of `keep` for an attribute; without a name, it is left out. */
struct kept_label {
    struct pprof_label label;
    uint32_t generation;
    uint32_t key, unit; /* indices into the string_table */
    struct kept_text text;
};

/* The numbers of a mapping, and the values of its attributes. */
struct kept_mapping {
    uint64_t numbers[MAPPING_ATTRIBUTE_INDICES];
    struct slice build_id;
    uint8_t flags;
};

/* The numbers of an entry of the function_table. */
struct kept_function {
    uint64_t numbers[FUNCTION_START_LINE + 1];
};

/* The frames nearest the root of a stack that has too many. */
struct kept_stack {
    uint32_t count;
    uint32_t *locations;
};

struct line {
    uint64_t function, line, column;
};

/* An entry of the location_table. */
struct kept_location {
    uint64_t mapping, address;
    bool is_folded;
    uint32_t line_count;
    struct line *lines;
};

/* Iterates over the indices in a repeated field of an entry, packed or not. */
struct index_walk {
    struct wire_cursor entry, packed;
    uint32_t number;
};

struct pprof_writer {
    struct dictionary *dictionary;
    struct arena *arena;
    struct pprof_labels choice;     /* keep NULL: all attributes */
    struct kept_label **attributes; /* by index; NULL: not needed yet */
    uint32_t generation;            /* of the entries of `attributes` that are valid */
    uint8_t *mapping_flags;         /* by index, a bit for each flag; NULL: not needed yet */
    /* By index, for entries that are long, or occurred in another pprof. */
    struct kept_text *texts;
    struct kept_text span_key, trace_key; /* of labels */
    struct kept_mapping **kept_mappings;
    const struct kept_location **kept_locations;
    const struct kept_function **kept_functions;
    struct kept_stack **kept_stacks; /* NULL: none yet */
    uint32_t kept_stacks_max;        /* frames of each */

    /* the added data */
    struct pprof_header header;
    struct slice types[OTLP_SIBLINGS_MAX], units[OTLP_SIBLINGS_MAX];
    uint32_t type_count;
    struct row *rows;
    uint32_t row_count, row_capacity;
    int64_t *values; /* type_count for each row */
    uint32_t value_capacity;
    uint32_t *labels; /* attributes */
    uint32_t label_count, label_capacity;
    struct reused_index rows_by_hash;

    /* the pprof being written */
    uint32_t next_row;
    uint32_t pprof; /* its number */
    struct pprof_limits limits;
    struct wire_writer sections[SECTION_COUNT];
    struct wire_writer whole;
    struct id_table mappings, locations, functions;
    struct string *strings;
    uint32_t string_count, string_capacity;
    struct reused_index strings_by_hash; /* without "" */
};

/* ---- reused indices ---- */

enum { INDEX_ITEMS_MIN = 32, INDEX_ITEMS_SMALL = 4096, VARINT_U32_MAX = 5 };

static void resize_index(struct reused_index *index, struct arena *arena, size_t bytes)
{
    unsigned size = (unsigned)__builtin_ctzll(bytes / sizeof(struct index_slot));
    assert(size < INDEX_SIZES && sizeof(struct index_slot) << size == bytes);
    if (index->slots[size])
        memset(index->slots[size], 0, bytes);
    else
        index->slots[size] = arena_zalloc(arena, bytes);
    index_table_move(&index->table, index->slots[size], bytes);
}

static void empty_index(struct reused_index *index, struct arena *arena)
{
    uint32_t last = index->table.count;
    index->table = (struct index_table){0};
    resize_index(index, arena, index_table_bytes(last > INDEX_ITEMS_MIN ? last : INDEX_ITEMS_MIN));
}

/* A small table grows fourfold, because growing costs more than searching. */
static void grow_index(struct reused_index *index, struct arena *arena)
{
    uint32_t count = index->table.count;
    uint32_t more = count < INDEX_ITEMS_SMALL ? count + 1 : 1;
    resize_index(index, arena, index_table_growth(&index->table, more));
}

/* Begins a search that may end with an addition. */
static inline struct index_probe probe_index(struct reused_index *index, struct arena *arena,
                                             uint32_t hash)
{
    if (index_table_is_full(&index->table))
        grow_index(index, arena);
    return index_table_probe(&index->table, hash);
}

/* ---- strings ---- */

static uint32_t string_hash(struct slice text)
{
    uint32_t hash = (uint32_t)hash_bytes(text);
    return hash != 0 ? hash : 1;
}

static uint32_t add_string(struct pprof_writer *writer, struct slice text, uint32_t hash)
{
    assert((hash == 0) == (writer->string_count == 0)); /* the first one is "", which has no hash */
    writer->strings = arena_grow(writer->arena, writer->strings, writer->string_count,
                                 &writer->string_capacity, sizeof *writer->strings);
    writer->strings[writer->string_count] = (struct string){text, hash};
    wire_writer_bytes(&writer->sections[STRINGS], PPROF_STRING_TABLE, text);
    return writer->string_count++;
}

/* Truncates a text, not in the middle of a character; max 0: not at all. */
static struct slice cut_text(struct slice text, uint32_t max)
{
    if (max == 0 || text.size <= max)
        return text;
    return slice_of(text.data, text_utf8_cut(text, max));
}

static uint32_t hashed_string_id(struct pprof_writer *writer, struct slice text, uint32_t hash)
{
    struct index_table *table = &writer->strings_by_hash.table;
    struct index_probe probe = probe_index(&writer->strings_by_hash, writer->arena, hash);
    for (uint32_t id; index_table_next(table, &probe, &id);)
        if (slice_equal(writer->strings[id].text, text))
            return id;
    uint32_t id = add_string(writer, text, hash);
    index_table_add(table, &probe, id);
    return id;
}

static uint32_t string_id(struct pprof_writer *writer, struct slice text)
{
    text = cut_text(text, writer->limits.text_max);
    return text.size > 0 ? hashed_string_id(writer, text, string_hash(text)) : 0;
}

/* Returns the id of a text that is not truncated. It is hashed once for all pprofs. */
static uint32_t whole_string_id(struct pprof_writer *writer, struct kept_text *kept,
                                struct slice text)
{
    if (kept->hash == 0)
        kept->hash = string_hash(text);
    return hashed_string_id(writer, text, kept->hash);
}

static uint32_t find_or_add(struct pprof_writer *writer, struct kept_text *kept, struct slice text)
{
    uint32_t most = writer->limits.text_max;
    kept->pprof = writer->pprof;
    if (text.size == 0)
        kept->id = 0;
    else if (most == 0 || text.size <= most)
        kept->id = whole_string_id(writer, kept, text);
    else
        kept->id = string_id(writer, text);
    return kept->id;
}

/* Returns the id of a text, which is looked up once in each pprof. Texts that return_to removes are
 * not needed again, because the pprof ends there. */
static uint32_t kept_string_id(struct pprof_writer *writer, struct kept_text *kept,
                               struct slice text)
{
    return kept->pprof == writer->pprof ? kept->id : find_or_add(writer, kept, text);
}

/* Returns the id of a string of the dictionary. */
static uint32_t entry_string_id(struct pprof_writer *writer, uint64_t index)
{
    struct kept_text *kept = &writer->texts[index];
    if (kept->pprof == writer->pprof)
        return kept->id;
    return find_or_add(writer, kept, dictionary_string(writer->dictionary, (uint32_t)index));
}

/* Removes the last string that was added. */
static void drop_last_string(struct pprof_writer *writer)
{
    assert(writer->string_count > 1); /* "" stays */
    uint32_t id = --writer->string_count;
    index_table_remove(&writer->strings_by_hash.table, writer->strings[id].hash, id);
}

/* ---- entries of the dictionary ---- */

/* Reads the numbers of an entry. */
static void read_numbers(struct slice entry, uint64_t *numbers, uint32_t count)
{
    struct wire_cursor cursor = wire_cursor(entry);
    struct wire_field field;
    while (wire_next(&cursor, &field))
        if (field.type == WIRE_VARINT && field.number < count)
            numbers[field.number] = field.value;
}

static struct index_walk walk_indices(struct slice entry, uint32_t number)
{
    return (struct index_walk){.entry = wire_cursor(entry), .number = number};
}

static bool next_index(struct index_walk *walk, uint32_t *index)
{
    struct wire_field field;
    uint64_t value;
    while (!wire_packed_varint(&walk->packed, &value)) {
        do {
            if (!wire_next(&walk->entry, &field))
                return false;
        } while (field.number != walk->number);
        if (field.type == WIRE_VARINT) {
            *index = (uint32_t)field.value;
            return true;
        }
        assert(field.type == WIRE_BYTES); /* scanned */
        walk->packed = wire_cursor(field.bytes);
    }
    *index = (uint32_t)value;
    return true;
}

static struct id_table make_id_table(struct pprof_writer *writer, int table)
{
    uint32_t count = dictionary_count(writer->dictionary, table);
    count += count == 0; /* index 0 needs no entry */
    return (struct id_table){.ids = arena_array(writer->arena, count, sizeof(uint32_t)),
                             .used = arena_array(writer->arena, count, sizeof(uint32_t))};
}

/* Gets the id of an entry. Returns true if it is new, so that its record must be written. */
static bool take_id(struct id_table *table, uint32_t index, uint32_t *id_out)
{
    bool is_new = table->ids[index] == 0;
    if (is_new) {
        table->used[table->count++] = index;
        table->ids[index] = table->count;
    }
    *id_out = table->ids[index];
    return is_new;
}

static void drop_ids(struct id_table *table, uint32_t count)
{
    assert(count <= table->count);
    while (table->count > count)
        table->ids[table->used[--table->count]] = 0;
}

/* ---- records ---- */

/* A message of at most five numbers with field numbers below 16. It is written after its head, in
 * which one byte is enough for the length. */
enum { RECORD_HEAD = 2, NUMBER_MAX = 11, RECORD_MAX = RECORD_HEAD + 5 * NUMBER_MAX };

/* Writes a field like wire_writer_varint. */
static inline uint8_t *put_number(uint8_t *to, uint8_t number, uint64_t value)
{
    if (value == 0)
        return to;
    *to++ = (uint8_t)(number << 3 | WIRE_VARINT);
    return wire_write_varint(to, value);
}

static inline void put_head(uint8_t *record, uint8_t number, const uint8_t *end)
{
    size_t size = (size_t)(end - record) - RECORD_HEAD;
    assert(size < 0x80);
    record[0] = (uint8_t)(number << 3 | WIRE_BYTES);
    record[1] = (uint8_t)size;
}

/* ---- mappings ---- */

static const char *const flag_keys[PPROF_MAPPING_FIELD_COUNT] = {
    [PPROF_MAPPING_HAS_FUNCTIONS] = "pprof.mapping.has_functions",
    [PPROF_MAPPING_HAS_FILENAMES] = "pprof.mapping.has_filenames",
    [PPROF_MAPPING_HAS_LINE_NUMBERS] = "pprof.mapping.has_line_numbers",
    [PPROF_MAPPING_HAS_INLINE_FRAMES] = "pprof.mapping.has_inline_frames",
};

static uint8_t flag_bit(uint32_t field)
{
    assert(field >= PPROF_MAPPING_HAS_FUNCTIONS && field <= PPROF_MAPPING_HAS_INLINE_FRAMES);
    return (uint8_t)(1u << (field - PPROF_MAPPING_HAS_FUNCTIONS));
}

/* Returns the flags of each function, computed once, however many lines refer to it. */
static uint8_t *flags_of_functions(struct pprof_writer *writer)
{
    uint32_t count = dictionary_count(writer->dictionary, DICTIONARY_FUNCTION_TABLE);
    uint8_t *flags = arena_zalloc(writer->arena, count + (size_t)1);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t function[FUNCTION_START_LINE] = {0};
        read_numbers(dictionary_entry(writer->dictionary, DICTIONARY_FUNCTION_TABLE, i), function,
                     FUNCTION_START_LINE);
        unsigned found =
            function[FUNCTION_NAME_STRINDEX] ? flag_bit(PPROF_MAPPING_HAS_FUNCTIONS) : 0u;
        found |= function[FUNCTION_FILENAME_STRINDEX] ? flag_bit(PPROF_MAPPING_HAS_FILENAMES) : 0u;
        flags[i] = (uint8_t)found;
    }
    return flags;
}

static uint8_t flags_of_location(struct slice location, const uint8_t *function_flags)
{
    struct wire_cursor cursor = wire_cursor(location);
    struct wire_field field;
    unsigned lines = 0, flags = 0;
    while (wire_next_bytes(&cursor, LOCATION_LINES, &field)) {
        uint64_t line[LINE_COLUMN] = {0};
        read_numbers(field.bytes, line, LINE_COLUMN);
        flags |= function_flags[line[LINE_FUNCTION_INDEX]];
        flags |= line[LINE_LINE] ? flag_bit(PPROF_MAPPING_HAS_LINE_NUMBERS) : 0u;
        flags |= lines++ > 0 ? flag_bit(PPROF_MAPPING_HAS_INLINE_FRAMES) : 0u;
    }
    return (uint8_t)flags;
}

/* Returns the flags of a mapping, from its locations. */
static uint8_t found_flags(struct pprof_writer *writer, uint32_t mapping)
{
    struct dictionary *dictionary = writer->dictionary;
    if (!writer->mapping_flags) {
        writer->mapping_flags = arena_zalloc(
            writer->arena, dictionary_count(dictionary, DICTIONARY_MAPPING_TABLE) + (size_t)1);
        uint32_t count = dictionary_count(dictionary, DICTIONARY_LOCATION_TABLE);
        const uint8_t *function_flags = flags_of_functions(writer);
        for (uint32_t i = 0; i < count; i++) {
            struct slice location = dictionary_entry(dictionary, DICTIONARY_LOCATION_TABLE, i);
            uint64_t numbers[LOCATION_LINES] = {0};
            read_numbers(location, numbers, LOCATION_LINES);
            writer->mapping_flags[numbers[LOCATION_MAPPING_INDEX]] |=
                flags_of_location(location, function_flags);
        }
    }
    return writer->mapping_flags[mapping];
}

/* Reads the attributes of a mapping: the build id, and flags if there are any. */
static uint8_t read_mapping_attributes(struct pprof_writer *writer, uint32_t mapping,
                                       struct slice entry, struct slice *build_id)
{
    struct index_walk walk = walk_indices(entry, MAPPING_ATTRIBUTE_INDICES);
    uint32_t index;
    unsigned flags = 0;
    bool has_flags = false;
    while (next_index(&walk, &index)) {
        struct key_value_and_unit attribute = dictionary_attribute(writer->dictionary, index);
        struct slice key = dictionary_string(writer->dictionary, attribute.key);
        struct any_value value = any_value_read(attribute.value);
        bool is_gnu = slice_is(key, "process.executable.build_id.gnu");
        if (value.kind == ANY_VALUE_STRING &&
            (is_gnu || (slice_is(key, "process.executable.build_id.go") && build_id->size == 0)))
            *build_id = value.bytes;
        for (uint32_t i = PPROF_MAPPING_HAS_FUNCTIONS; i <= PPROF_MAPPING_HAS_INLINE_FRAMES; i++)
            if (value.kind == ANY_VALUE_BOOL && slice_is(key, flag_keys[i])) {
                has_flags = true;
                flags |= value.truth ? flag_bit(i) : 0u;
            }
    }
    return has_flags ? (uint8_t)flags : found_flags(writer, mapping);
}

static const struct kept_mapping *read_mapping(struct pprof_writer *writer, uint32_t index,
                                               struct slice entry)
{
    struct kept_mapping **kept = &writer->kept_mappings[index];
    if (!*kept) {
        *kept = arena_zalloc(writer->arena, sizeof **kept);
        read_numbers(entry, (*kept)->numbers, MAPPING_ATTRIBUTE_INDICES);
        (*kept)->flags = read_mapping_attributes(writer, index, entry, &(*kept)->build_id);
    }
    return *kept;
}

static uint32_t mapping_id(struct pprof_writer *writer, uint32_t index)
{
    uint32_t id;
    if (index == 0)
        return 0;
    if (!take_id(&writer->mappings, index, &id))
        return id;
    struct slice entry = dictionary_entry(writer->dictionary, DICTIONARY_MAPPING_TABLE, index);
    const struct kept_mapping *kept = read_mapping(writer, index, entry);
    const uint64_t *from = kept->numbers;
    struct wire_writer *out = &writer->sections[MAPPINGS];
    size_t begun = wire_writer_begin(out, PPROF_MAPPING);
    wire_writer_varint(out, PPROF_MAPPING_ID, id);
    wire_writer_varint(out, PPROF_MAPPING_MEMORY_START, from[MAPPING_MEMORY_START]);
    wire_writer_varint(out, PPROF_MAPPING_MEMORY_LIMIT, from[MAPPING_MEMORY_LIMIT]);
    wire_writer_varint(out, PPROF_MAPPING_FILE_OFFSET, from[MAPPING_FILE_OFFSET]);
    wire_writer_varint(out, PPROF_MAPPING_FILENAME,
                       entry_string_id(writer, from[MAPPING_FILENAME_STRINDEX]));
    wire_writer_varint(out, PPROF_MAPPING_BUILD_ID, string_id(writer, kept->build_id));
    for (uint32_t i = PPROF_MAPPING_HAS_FUNCTIONS; i <= PPROF_MAPPING_HAS_INLINE_FRAMES; i++)
        wire_writer_varint(out, i, (kept->flags & flag_bit(i)) != 0);
    wire_writer_end(out, begun);
    return id;
}

/* ---- functions and locations ---- */

/* Longer entries are kept, because reading them takes longer. A shorter entry is kept when it
 * occurs in a second pprof: most requests become only one. */
enum { SHORT_ENTRY_MAX = 64 };
static const struct kept_function met_function;
static const struct kept_location met_location;

static const struct kept_function *read_function(struct pprof_writer *writer, uint32_t index,
                                                 struct kept_function *here)
{
    const struct kept_function **kept = &writer->kept_functions[index];
    if (*kept && *kept != &met_function)
        return *kept;
    struct slice entry = dictionary_entry(writer->dictionary, DICTIONARY_FUNCTION_TABLE, index);
    struct kept_function *to = here;
    if (entry.size <= SHORT_ENTRY_MAX && !*kept)
        *kept = &met_function;
    else
        *kept = to = arena_alloc(writer->arena, sizeof *to);
    *to = (struct kept_function){.numbers = {0}};
    read_numbers(entry, to->numbers, FUNCTION_START_LINE + 1);
    return to;
}

static __attribute__((noinline)) uint32_t write_function(struct pprof_writer *writer,
                                                         uint32_t index)
{
    uint32_t id;
    bool is_new = take_id(&writer->functions, index, &id);
    assert(is_new); /* function_id looked it up */
    struct kept_function here;
    const uint64_t *from = read_function(writer, index, &here)->numbers;
    uint32_t name = entry_string_id(writer, from[FUNCTION_NAME_STRINDEX]);
    uint32_t system_name = entry_string_id(writer, from[FUNCTION_SYSTEM_NAME_STRINDEX]);
    uint32_t filename = entry_string_id(writer, from[FUNCTION_FILENAME_STRINDEX]);
    struct wire_writer *out = &writer->sections[FUNCTIONS];
    uint8_t *record = wire_writer_room(out, RECORD_MAX);
    uint8_t *to = put_number(record + RECORD_HEAD, PPROF_FUNCTION_ID, id);
    to = put_number(to, PPROF_FUNCTION_NAME, name);
    to = put_number(to, PPROF_FUNCTION_SYSTEM_NAME, system_name);
    to = put_number(to, PPROF_FUNCTION_FILENAME, filename);
    to = put_number(to, PPROF_FUNCTION_START_LINE, from[FUNCTION_START_LINE]);
    put_head(record, PPROF_FUNCTION, to);
    wire_writer_wrote(out, to);
    return id;
}

static uint32_t function_id(struct pprof_writer *writer, uint32_t index)
{
    uint32_t id = writer->functions.ids[index];
    return id != 0 ? id : write_function(writer, index);
}

static struct line read_line(struct slice line)
{
    uint64_t from[LINE_COLUMN + 1] = {0};
    read_numbers(line, from, LINE_COLUMN + 1);
    return (struct line){from[LINE_FUNCTION_INDEX], from[LINE_LINE], from[LINE_COLUMN]};
}

static uint8_t *put_line(struct pprof_writer *writer, uint8_t *record, const struct line *line)
{
    uint8_t *to = record + RECORD_HEAD;
    to = put_number(to, PPROF_LINE_FUNCTION_ID, function_id(writer, (uint32_t)line->function));
    to = put_number(to, PPROF_LINE_LINE, line->line);
    to = put_number(to, PPROF_LINE_COLUMN, line->column);
    put_head(record, PPROF_LOCATION_LINE, to);
    return to;
}

static bool is_folded(struct pprof_writer *writer, struct slice location)
{
    struct index_walk walk = walk_indices(location, LOCATION_ATTRIBUTE_INDICES);
    uint32_t index;
    while (next_index(&walk, &index)) {
        struct key_value_and_unit attribute = dictionary_attribute(writer->dictionary, index);
        struct any_value value = any_value_read(attribute.value);
        if (value.kind == ANY_VALUE_BOOL && value.truth &&
            slice_is(dictionary_string(writer->dictionary, attribute.key),
                     "pprof.location.is_folded"))
            return true;
    }
    return false;
}

/* Lines of a kept entry; more lines of one location are useless. */
enum { LINES_KEPT_MAX = 65536 };

static void read_lines(struct pprof_writer *writer, struct slice entry, struct kept_location *out)
{
    assert(out->line_count == 0 && !out->lines);
    struct wire_cursor cursor = wire_cursor(entry);
    struct wire_field field;
    uint32_t capacity = 0;
    while (out->line_count < LINES_KEPT_MAX && wire_next_bytes(&cursor, LOCATION_LINES, &field)) {
        out->lines =
            arena_grow(writer->arena, out->lines, out->line_count, &capacity, sizeof *out->lines);
        out->lines[out->line_count++] = read_line(field.bytes);
    }
}

/* Lines that fit into a short entry: a line has at least two bytes. */
enum { LINES_SHORT_MAX = SHORT_ENTRY_MAX / 2 };

/* Reads a short location in one pass. */
static void read_short_location(struct pprof_writer *writer, struct slice entry,
                                struct kept_location *out)
{
    assert(entry.size <= SHORT_ENTRY_MAX && out->line_count == 0);
    struct wire_cursor cursor = wire_cursor(entry);
    struct wire_field field;
    bool has_attributes = false;
    while (wire_next(&cursor, &field)) {
        assert(out->line_count < LINES_SHORT_MAX);
        if (field.type == WIRE_VARINT && field.number == LOCATION_MAPPING_INDEX)
            out->mapping = field.value;
        else if (field.type == WIRE_VARINT && field.number == LOCATION_ADDRESS)
            out->address = field.value;
        else if (field.type == WIRE_BYTES && field.number == LOCATION_LINES)
            out->lines[out->line_count++] = read_line(field.bytes);
        has_attributes |= field.number == LOCATION_ATTRIBUTE_INDICES;
    }
    out->is_folded = has_attributes && is_folded(writer, entry);
}

static struct line *copy_lines(struct arena *arena, const struct kept_location *from)
{
    struct line *lines = arena_array(arena, from->line_count + (size_t)1, sizeof *lines);
    memcpy(lines, from->lines, from->line_count * sizeof *lines);
    return lines;
}

static void read_long_location(struct pprof_writer *writer, struct slice entry,
                               struct kept_location *out)
{
    uint64_t from[LOCATION_LINES] = {0};
    read_numbers(entry, from, LOCATION_LINES);
    out->mapping = from[LOCATION_MAPPING_INDEX];
    out->address = from[LOCATION_ADDRESS];
    out->is_folded = is_folded(writer, entry);
    out->lines = NULL;
    read_lines(writer, entry, out);
}

/* Reads a location. `here` has room for LINES_SHORT_MAX lines. */
static const struct kept_location *read_location(struct pprof_writer *writer, uint32_t index,
                                                 struct kept_location *here)
{
    const struct kept_location **kept = &writer->kept_locations[index];
    if (*kept && *kept != &met_location)
        return *kept;
    struct slice entry = dictionary_entry(writer->dictionary, DICTIONARY_LOCATION_TABLE, index);
    bool is_short = entry.size <= SHORT_ENTRY_MAX, is_first = !*kept;
    if (is_short)
        read_short_location(writer, entry, here);
    else
        read_long_location(writer, entry, here);
    if (is_short && is_first) {
        *kept = &met_location;
        return here;
    }
    struct kept_location *copy = arena_alloc(writer->arena, sizeof *copy);
    *copy = *here;
    if (is_short)
        copy->lines = copy_lines(writer->arena, here);
    *kept = copy;
    return copy;
}

/* Writes a location. The functions of its lines are written to another place, so the lines can be
 * written directly. */
static uint8_t *put_location(struct pprof_writer *writer, uint8_t *to, uint32_t id,
                             const struct kept_location *location, uint32_t lines)
{
    uint32_t mapping = mapping_id(writer, (uint32_t)location->mapping);
    to = put_number(to, PPROF_LOCATION_ID, id);
    to = put_number(to, PPROF_LOCATION_MAPPING_ID, mapping);
    to = put_number(to, PPROF_LOCATION_ADDRESS, location->address);
    for (uint32_t i = 0; i < lines; i++)
        to = put_line(writer, to, &location->lines[i]);
    return put_number(to, PPROF_LOCATION_IS_FOLDED, location->is_folded);
}

/* Not inlined, so that location_id stays short: stacks have many frames of few locations. */
static __attribute__((noinline)) uint32_t write_location(struct pprof_writer *writer,
                                                         uint32_t index)
{
    uint32_t id, most = writer->limits.lines_max;
    struct line lines[LINES_SHORT_MAX];
    struct kept_location here = {.lines = lines};
    struct wire_writer *out = &writer->sections[LOCATIONS];
    bool is_new = take_id(&writer->locations, index, &id);
    assert(is_new); /* it was looked up before */
    const struct kept_location *from = read_location(writer, index, &here);
    uint32_t count = most == 0 || from->line_count < most ? from->line_count : most;
    size_t begun = out->size + RECORD_HEAD;
    uint8_t *record = wire_writer_room(out, RECORD_MAX * ((size_t)1 + count));
    uint8_t *to = put_location(writer, record + RECORD_HEAD, id, from, count);
    wire_writer_wrote(out, to);
    if (out->size - begun < 0x80) {
        put_head(record, PPROF_LOCATION, to);
    } else {
        record[0] = PPROF_LOCATION << 3 | WIRE_BYTES;
        wire_writer_end(out, begun);
    }
    return id;
}

static uint32_t location_id(struct pprof_writer *writer, uint32_t index)
{
    uint32_t id = writer->locations.ids[index];
    return id != 0 ? id : write_location(writer, index);
}

/* ---- adding samples ---- */

static void read_label_value(struct pprof_label *label, struct any_value value)
{
    if (value.kind == ANY_VALUE_STRING)
        label->text = value.bytes;
    else if (value.kind == ANY_VALUE_INT)
        label->number = value.integer;
    else if (value.kind == ANY_VALUE_BOOL)
        label->text = value.truth ? SLICE("true") : SLICE("false");
}

static struct kept_label *label_of(struct pprof_writer *writer, uint32_t attribute)
{
    struct kept_label *kept = writer->attributes[attribute];
    if (kept && kept->generation == writer->generation)
        return kept;
    if (!kept)
        kept = writer->attributes[attribute] = arena_alloc(writer->arena, sizeof *kept);
    *kept = (struct kept_label){.generation = writer->generation};
    struct pprof_label *label = &kept->label;
    struct key_value_and_unit entry = dictionary_attribute(writer->dictionary, attribute);
    struct any_value value = any_value_read(entry.value);
    label->name = dictionary_string(writer->dictionary, entry.key);
    kept->key = entry.key;
    kept->unit = entry.unit;
    read_label_value(label, value);
    if (value.kind == ANY_VALUE_INT)
        label->unit = dictionary_string(writer->dictionary, entry.unit);
    /* In a pprof, an empty text, or 0 without a unit, looks like no value. */
    bool is_something = label->text.size > 0 || label->number != 0 || label->unit.size > 0;
    if (!is_something ||
        (writer->choice.keep && !writer->choice.keep(writer->choice.context, label)))
        label->name = (struct slice){0};
    return kept;
}

/* Selects the attributes that become labels, sorted by index, because they are a set. */
static uint32_t select_labels(struct pprof_writer *writer, const struct otlp_sample *sample,
                              uint32_t *out)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < sample->attribute_count && count < PPROF_LABELS_MAX; i++) {
        uint32_t attribute = sample->attributes[i];
        if (label_of(writer, attribute)->label.name.size == 0)
            continue;
        uint32_t at = count++;
        for (; at > 0 && out[at - 1] > attribute; at--)
            out[at] = out[at - 1];
        out[at] = attribute;
    }
    return count;
}

static bool is_of_row(const struct pprof_writer *writer, const struct row *row,
                      const struct row *wanted, const uint32_t *labels)
{
    return row->stack == wanted->stack && row->link == wanted->link &&
           row->label_count == wanted->label_count &&
           (row->label_count == 0 || memcmp(writer->labels + row->first_label, labels,
                                            row->label_count * sizeof *labels) == 0);
}

static void keep_row(struct pprof_writer *writer, const struct row *wanted, const uint32_t *labels)
{
    assert(wanted->label_count <= PPROF_LABELS_MAX);
    writer->rows = arena_grow(writer->arena, writer->rows, writer->row_count, &writer->row_capacity,
                              sizeof *writer->rows);
    struct row *row = &writer->rows[writer->row_count++];
    *row = *wanted;
    row->first_label = writer->label_count;
    for (uint32_t i = 0; i < wanted->label_count; i++) {
        writer->labels = arena_grow(writer->arena, writer->labels, writer->label_count,
                                    &writer->label_capacity, sizeof *writer->labels);
        writer->labels[writer->label_count++] = labels[i];
    }
    for (uint32_t i = 0; i < writer->type_count; i++) {
        uint32_t at = (writer->row_count - 1) * writer->type_count + i;
        writer->values = arena_grow(writer->arena, writer->values, at, &writer->value_capacity,
                                    sizeof *writer->values);
        writer->values[at] = 0;
    }
}

/* Finds or adds the row of a sample, and returns its number. */
static uint32_t find_row(struct pprof_writer *writer, const struct otlp_sample *sample)
{
    uint32_t labels[PPROF_LABELS_MAX];
    struct row wanted = {.stack = sample->stack,
                         .link = sample->link,
                         .label_count = select_labels(writer, sample, labels)};
    uint32_t hash =
        (uint32_t)hash_u64(hash_u64((uint64_t)wanted.stack << 32 | wanted.link) ^
                           hash_bytes(slice_of(labels, wanted.label_count * sizeof *labels)));
    struct index_table *table = &writer->rows_by_hash.table;
    struct index_probe probe = probe_index(&writer->rows_by_hash, writer->arena, hash);
    for (uint32_t row; index_table_next(table, &probe, &row);)
        if (is_of_row(writer, &writer->rows[row], &wanted, labels))
            return row;
    index_table_add(table, &probe, writer->row_count);
    keep_row(writer, &wanted, labels);
    return writer->row_count - 1;
}

void pprof_writer_add(struct pprof_writer *writer, uint32_t sample_type,
                      const struct otlp_sample *sample, int64_t value)
{
    assert(sample_type < writer->type_count);
    uint32_t row = find_row(writer, sample);
    int64_t *sum = &writer->values[row * writer->type_count + sample_type];
    if (__builtin_add_overflow(*sum, value, sum))
        *sum = value > 0 ? INT64_MAX : INT64_MIN;
}

void pprof_writer_begin(struct pprof_writer *writer, const struct pprof_header *header)
{
    writer->header = *header;
    writer->type_count = writer->row_count = writer->label_count = writer->next_row = 0;
    empty_index(&writer->rows_by_hash, writer->arena);
}

uint32_t pprof_writer_sample_type(struct pprof_writer *writer, struct slice type, struct slice unit)
{
    assert(writer->type_count < OTLP_SIBLINGS_MAX && writer->row_count == 0);
    writer->types[writer->type_count] = type;
    writer->units[writer->type_count] = unit;
    return writer->type_count++;
}

/* Swaps the first and the last sample type: the default of pprof is the last one, that of OTLP the
 * first. */
static uint32_t changed_place(uint32_t place, uint32_t count)
{
    assert(place < count);
    return place == 0 ? count - 1 : place == count - 1 ? 0 : place;
}

void pprof_writer_add_profiles(struct pprof_writer *writer, const struct otlp_profile *profiles,
                               uint32_t count)
{
    assert(writer->type_count == 0); /* places in `profiles` are those of the sample types */
    for (uint32_t i = 0; i < count; i++) {
        const struct otlp_profile *profile = &profiles[changed_place(i, count)];
        pprof_writer_sample_type(writer,
                                 dictionary_string(writer->dictionary, profile->sample_type),
                                 dictionary_string(writer->dictionary, profile->sample_unit));
    }
    for (uint32_t i = 0; i < count; i++) {
        struct otlp_samples samples = otlp_profile_samples(&profiles[i], writer->arena);
        struct otlp_sample sample;
        while (otlp_samples_next(&samples, &sample))
            pprof_writer_add(writer, changed_place(i, count), &sample, sample.value);
    }
}

/* ---- writing a pprof ---- */

/* Returns the id of a text of a label: a string of the dictionary, unless `keep` has changed it. */
static uint32_t label_string_id(struct pprof_writer *writer, uint32_t index, struct slice text)
{
    struct slice entry = dictionary_string(writer->dictionary, index);
    bool is_entry = entry.data == text.data && entry.size == text.size;
    return is_entry ? entry_string_id(writer, index) : string_id(writer, text);
}

/* Writes a label. Its texts are looked up once in each pprof. */
static void write_kept_label(struct pprof_writer *writer, struct kept_label *kept)
{
    const struct pprof_label *label = &kept->label;
    struct wire_writer *out = &writer->sections[SAMPLES];
    size_t begun = wire_writer_begin(out, PPROF_SAMPLE_LABEL);
    wire_writer_varint(out, PPROF_LABEL_KEY, label_string_id(writer, kept->key, label->name));
    wire_writer_varint(out, PPROF_LABEL_STR, kept_string_id(writer, &kept->text, label->text));
    wire_writer_varint(out, PPROF_LABEL_NUM, (uint64_t)label->number);
    wire_writer_varint(out, PPROF_LABEL_NUM_UNIT, label_string_id(writer, kept->unit, label->unit));
    wire_writer_end(out, begun);
}

/* Returns the id of a text that is invalid after this call; copies it if it is new. */
static uint32_t id_string_id(struct pprof_writer *writer, struct slice text)
{
    text = cut_text(text, writer->limits.text_max);
    uint32_t id = hashed_string_id(writer, text, string_hash(text));
    if (writer->strings[id].text.data == text.data)
        writer->strings[id].text = arena_copy(writer->arena, text);
    return id;
}

/* Writes the label of an id. Returns false if the id is missing or all zero. */
static bool write_id_label(struct pprof_writer *writer, struct kept_text *key, struct slice name,
                           struct slice id)
{
    static const char digits[] = "0123456789abcdef";
    assert(id.size <= TRACE_ID_SIZE);
    char hex[2 * TRACE_ID_SIZE];
    uint8_t any = 0;
    for (size_t i = 0; i < id.size; i++) {
        hex[2 * i] = digits[id.data[i] >> 4];
        hex[2 * i + 1] = digits[id.data[i] & 15];
        any |= id.data[i];
    }
    if (any == 0)
        return false;
    struct wire_writer *out = &writer->sections[SAMPLES];
    size_t begun = wire_writer_begin(out, PPROF_SAMPLE_LABEL);
    wire_writer_varint(out, PPROF_LABEL_KEY, kept_string_id(writer, key, name));
    wire_writer_varint(out, PPROF_LABEL_STR, id_string_id(writer, slice_of(hex, 2 * id.size)));
    wire_writer_end(out, begun);
    return true;
}

static void write_labels(struct pprof_writer *writer, const struct row *row)
{
    struct dictionary_link link = {.span_id = {0}};
    if (row->link != 0)
        link = dictionary_link(writer->dictionary, row->link);
    bool has_span = write_id_label(writer, &writer->span_key, SLICE("span_id"), link.span_id);
    bool has_trace = write_id_label(writer, &writer->trace_key, SLICE("trace_id"), link.trace_id);
    uint32_t room = PPROF_LABELS_MAX - (uint32_t)has_span - (uint32_t)has_trace;
    for (uint32_t i = 0; i < row->label_count && i < room; i++) {
        struct kept_label *kept = label_of(writer, writer->labels[row->first_label + i]);
        if (!(has_span && slice_is(kept->label.name, "span_id")) &&
            !(has_trace && slice_is(kept->label.name, "trace_id")))
            write_kept_label(writer, kept);
    }
}

static struct index_walk walk_stack(const struct pprof_writer *writer, uint32_t stack)
{
    return walk_indices(dictionary_entry(writer->dictionary, DICTIONARY_STACK_TABLE, stack),
                        STACK_LOCATION_INDICES);
}

/* Skips all but the last `most` frames of a stack. */
static void skip_leaves(struct index_walk *walk, uint32_t most)
{
    struct index_walk counting = *walk;
    uint32_t count = 0, location;
    while (next_index(&counting, &location))
        count++;
    for (; count > most; count--)
        next_index(walk, &location);
}

static struct kept_stack *read_root(struct pprof_writer *writer, struct index_walk walk,
                                    uint32_t most)
{
    struct kept_stack *kept = arena_zalloc(writer->arena, sizeof *kept);
    uint32_t location;
    skip_leaves(&walk, most);
    kept->locations = arena_array(writer->arena, most, sizeof *kept->locations);
    while (next_index(&walk, &location))
        kept->locations[kept->count++] = location;
    assert(kept->count <= most);
    return kept;
}

/* Returns the kept frames of a stack with too many frames; NULL if it has few enough. Only a stack
 * with more bytes than frames_max can have too many. It is read once. */
static const struct kept_stack *root_of(struct pprof_writer *writer, uint32_t stack)
{
    uint32_t most = writer->limits.frames_max;
    struct index_walk walk = walk_stack(writer, stack);
    if (most == 0 || (size_t)(walk.entry.end - walk.entry.next) <= most)
        return NULL;
    if (!writer->kept_stacks || writer->kept_stacks_max != most) {
        uint32_t count = dictionary_count(writer->dictionary, DICTIONARY_STACK_TABLE);
        writer->kept_stacks = arena_array(writer->arena, count, sizeof(void *));
        writer->kept_stacks_max = most;
    }
    if (!writer->kept_stacks[stack])
        writer->kept_stacks[stack] = read_root(writer, walk, most);
    return writer->kept_stacks[stack];
}

/* Writes the kept frames. Locations are written to another place, so ids can be written
 * directly. */
static void write_root(struct pprof_writer *writer, const struct kept_stack *root)
{
    struct wire_writer *out = &writer->sections[SAMPLES];
    uint8_t *to = wire_writer_room(out, root->count * (size_t)VARINT_U32_MAX);
    const uint32_t *ids = writer->locations.ids, *end = root->locations + root->count;
    for (const uint32_t *location = root->locations; location < end; location++) {
        uint32_t id = ids[*location];
        to = wire_write_varint(to, id != 0 ? id : write_location(writer, *location));
    }
    wire_writer_wrote(out, to);
}

static void write_frames(struct pprof_writer *writer, uint32_t stack)
{
    struct wire_writer *out = &writer->sections[SAMPLES];
    struct index_walk walk = walk_stack(writer, stack);
    uint32_t location;
    while (next_index(&walk, &location)) {
        uint8_t *to = wire_writer_room(out, VARINT_U32_MAX);
        wire_writer_wrote(out, wire_write_varint(to, location_id(writer, location)));
    }
}

static void write_stack(struct pprof_writer *writer, uint32_t stack)
{
    struct wire_writer *out = &writer->sections[SAMPLES];
    const struct kept_stack *root = root_of(writer, stack);
    size_t before = out->size, begun = wire_writer_begin(out, PPROF_SAMPLE_LOCATION_ID);
    if (root)
        write_root(writer, root);
    else
        write_frames(writer, stack);
    if (out->size > begun)
        wire_writer_end(out, begun);
    else
        out->size = before; /* a stack without frames */
}

static void write_row(struct pprof_writer *writer, uint32_t number)
{
    const struct row *row = &writer->rows[number];
    struct wire_writer *out = &writer->sections[SAMPLES];
    size_t begun = wire_writer_begin(out, PPROF_SAMPLE);
    write_stack(writer, row->stack);
    wire_writer_packed_u64(out, PPROF_SAMPLE_VALUE,
                           (const uint64_t *)writer->values + (size_t)number * writer->type_count,
                           writer->type_count);
    write_labels(writer, row);
    wire_writer_end(out, begun);
}

static void write_value_type(struct pprof_writer *writer, uint32_t field, struct slice type,
                             struct slice unit)
{
    struct wire_writer *out = &writer->sections[HEADER];
    size_t begun = wire_writer_begin(out, field);
    wire_writer_varint(out, PPROF_VALUE_TYPE_TYPE, string_id(writer, type));
    wire_writer_varint(out, PPROF_VALUE_TYPE_UNIT, string_id(writer, unit));
    wire_writer_end(out, begun);
}

static void write_header(struct pprof_writer *writer)
{
    const struct pprof_header *header = &writer->header;
    struct wire_writer *out = &writer->sections[HEADER];
    for (uint32_t i = 0; i < writer->type_count; i++)
        write_value_type(writer, PPROF_SAMPLE_TYPE, writer->types[i], writer->units[i]);
    wire_writer_varint(out, PPROF_DROP_FRAMES, string_id(writer, header->drop_frames));
    wire_writer_varint(out, PPROF_KEEP_FRAMES, string_id(writer, header->keep_frames));
    wire_writer_varint(out, PPROF_TIME_NANOS, header->time_unix_nano);
    wire_writer_varint(out, PPROF_DURATION_NANOS, header->duration_nano);
    if (header->period_type.size > 0 || header->period_unit.size > 0)
        write_value_type(writer, PPROF_PERIOD_TYPE, header->period_type, header->period_unit);
    wire_writer_varint(out, PPROF_PERIOD, (uint64_t)header->period);
    for (uint32_t i = 0; i < header->comment_count; i++)
        wire_writer_varint_set(out, PPROF_COMMENT, string_id(writer, header->comments[i]));
    wire_writer_varint(out, PPROF_DEFAULT_SAMPLE_TYPE,
                       string_id(writer, header->default_sample_type));
    wire_writer_varint(out, PPROF_DOC_URL, string_id(writer, header->doc_url));
}

static void start_pprof(struct pprof_writer *writer)
{
    for (int i = 0; i < SECTION_COUNT; i++)
        wire_writer_clear(&writer->sections[i]);
    drop_ids(&writer->mappings, 0);
    drop_ids(&writer->locations, 0);
    drop_ids(&writer->functions, 0);
    writer->string_count = 0;
    writer->pprof++;
    empty_index(&writer->strings_by_hash, writer->arena);
    add_string(writer, (struct slice){0}, 0);
    write_header(writer);
}

static struct mark mark_here(const struct pprof_writer *writer)
{
    struct mark mark = {.mappings = writer->mappings.count,
                        .locations = writer->locations.count,
                        .functions = writer->functions.count,
                        .strings = writer->string_count};
    for (int i = 0; i < SECTION_COUNT; i++)
        mark.sizes[i] = writer->sections[i].size;
    return mark;
}

static void return_to(struct pprof_writer *writer, const struct mark *mark)
{
    assert(writer->string_count >= mark->strings && mark->strings > 0);
    for (int i = 0; i < SECTION_COUNT; i++)
        writer->sections[i].size = mark->sizes[i];
    drop_ids(&writer->mappings, mark->mappings);
    drop_ids(&writer->locations, mark->locations);
    drop_ids(&writer->functions, mark->functions);
    while (writer->string_count > mark->strings)
        drop_last_string(writer);
}

static size_t pprof_size(const struct pprof_writer *writer)
{
    size_t size = 0;
    for (int i = 0; i < SECTION_COUNT; i++)
        size += writer->sections[i].size;
    return size;
}

static bool is_zero_row(const struct pprof_writer *writer, uint32_t row)
{
    assert(row < writer->row_count);
    for (uint32_t i = 0; i < writer->type_count; i++)
        if (writer->values[row * writer->type_count + i] != 0)
            return false;
    return true;
}

static void skip_zero_rows(struct pprof_writer *writer)
{
    while (writer->next_row < writer->row_count && is_zero_row(writer, writer->next_row))
        writer->next_row++;
}

bool pprof_writer_next(struct pprof_writer *writer, const struct pprof_limits *limits,
                       struct slice *pprof_out)
{
    uint32_t samples = 0;
    *pprof_out = (struct slice){0};
    skip_zero_rows(writer);
    if (writer->next_row == writer->row_count)
        return false;
    assert(writer->type_count > 0); /* a row has a value for each sample type */
    writer->limits = *limits;
    start_pprof(writer);
    for (; writer->next_row < writer->row_count; writer->next_row++) {
        if (limits->samples_max > 0 && samples == limits->samples_max)
            break;
        if (is_zero_row(writer, writer->next_row))
            continue;
        struct mark mark = mark_here(writer);
        write_row(writer, writer->next_row);
        if (limits->size_max > 0 && samples > 0 && pprof_size(writer) > limits->size_max) {
            return_to(writer, &mark);
            break;
        }
        samples++;
    }
    wire_writer_clear(&writer->whole);
    for (int i = 0; i < SECTION_COUNT; i++)
        wire_writer_raw(&writer->whole, wire_writer_slice(&writer->sections[i]));
    *pprof_out = wire_writer_slice(&writer->whole);
    assert(samples > 0);
    return true;
}

uint32_t pprof_writer_entries(const struct pprof_writer *writer)
{
    return writer->mappings.count + writer->locations.count + writer->functions.count +
           writer->string_count;
}

/* ---- the whole ---- */

struct pprof_writer *pprof_writer_new(struct dictionary *dictionary, struct arena *arena,
                                      const struct pprof_labels *labels)
{
    struct pprof_writer *writer = memory_zalloc(sizeof *writer);
    writer->dictionary = dictionary;
    writer->arena = arena;
    if (labels)
        writer->choice = *labels;
    writer->attributes =
        arena_array(arena, dictionary_count(dictionary, DICTIONARY_ATTRIBUTE_TABLE) + (size_t)1,
                    sizeof(void *));
    writer->mappings = make_id_table(writer, DICTIONARY_MAPPING_TABLE);
    writer->locations = make_id_table(writer, DICTIONARY_LOCATION_TABLE);
    writer->functions = make_id_table(writer, DICTIONARY_FUNCTION_TABLE);
    writer->texts =
        arena_array(arena, dictionary_count(dictionary, DICTIONARY_STRING_TABLE) + (size_t)1,
                    sizeof *writer->texts);
    writer->kept_functions = arena_array(
        arena, dictionary_count(dictionary, DICTIONARY_FUNCTION_TABLE) + (size_t)1, sizeof(void *));
    writer->kept_mappings = arena_array(
        arena, dictionary_count(dictionary, DICTIONARY_MAPPING_TABLE) + (size_t)1, sizeof(void *));
    writer->kept_locations = arena_array(
        arena, dictionary_count(dictionary, DICTIONARY_LOCATION_TABLE) + (size_t)1, sizeof(void *));
    return writer;
}

void pprof_writer_free(struct pprof_writer *writer)
{
    if (!writer)
        return;
    for (int i = 0; i < SECTION_COUNT; i++)
        wire_writer_deinit(&writer->sections[i]);
    wire_writer_deinit(&writer->whole);
    free(writer);
}

void pprof_writer_forget_labels(struct pprof_writer *writer)
{
    writer->generation++;
}

/* ---- headers ---- */

static const char comment_key[] = "pprof.profile.comment.";

/* Returns 1 + the number in the key of a comment; 0 if it is not a comment. */
static uint32_t comment_place(struct slice key)
{
    uint32_t number = 0;
    size_t prefix = sizeof comment_key - 1, digits = key.size - prefix;
    if (key.size <= prefix || digits > 6 || memcmp(key.data, comment_key, prefix) != 0)
        return 0;
    for (size_t i = prefix; i < key.size; i++) {
        if (key.data[i] < '0' || key.data[i] > '9')
            return 0;
        number = number * 10 + (uint32_t)(key.data[i] - '0');
    }
    return number + 1;
}

struct pprof_header pprof_header_of(const struct otlp_profile *profile,
                                    struct dictionary *dictionary, struct arena *arena)
{
    struct pprof_header header = {
        .period_type = dictionary_string(dictionary, profile->period_type),
        .period_unit = dictionary_string(dictionary, profile->period_unit),
        .period = profile->period,
        .time_unix_nano = profile->time_unix_nano,
        .duration_nano = profile->duration_nano};
    const struct {
        const char *key;
        struct slice *out;
    } texts[] = {{"pprof.profile.drop_frames", &header.drop_frames},
                 {"pprof.profile.keep_frames", &header.keep_frames},
                 {"pprof.profile.doc_url", &header.doc_url},
                 {"pprof.profile.default_sample_type", &header.default_sample_type}};
    struct slice *comments =
        arena_array(arena, profile->attribute_count + (size_t)1, sizeof *comments);
    for (uint32_t i = 0; i < profile->attribute_count; i++) {
        struct key_value_and_unit attribute =
            dictionary_attribute(dictionary, profile->attributes[i]);
        struct slice key = dictionary_string(dictionary, attribute.key);
        struct any_value value = any_value_read(attribute.value);
        if (value.kind != ANY_VALUE_STRING)
            continue;
        for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++)
            if (slice_is(key, texts[k].key))
                *texts[k].out = value.bytes;
        uint32_t place = comment_place(key);
        if (place == 0 || place > profile->attribute_count)
            continue;
        comments[place - 1] = value.bytes;
        if (place > header.comment_count)
            header.comment_count = place;
    }
    header.comments = comments;
    return header;
}
