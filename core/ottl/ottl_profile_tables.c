#include "core/ottl/ottl_profile_tables.h"

#include "core/base/arena.h"
#include "core/data/index_list.h"
#include "core/data/message_fields.h"
#include "core/data/usual_fields.h"
#include "core/data/wire_runs.h"
#include "core/ottl/ottl.h"
#include "core/ottl/ottl_regex.h"

#include <assert.h>

/* A frame takes so many steps, a text above the limit one for so many bytes. */
enum { STEPS_OF_FRAME = 32, SHORT_TEXT_MAX = 128, BYTES_OF_STEP = 4 };
const char *const ottl_steps_error =
    "reading the stacks and texts that samples of this request share "
    "takes too many steps";

/* Each batch has so many steps, and some more for each of its bytes. */
enum { STEPS_MIN = 4 << 20, STEPS_PER_BYTE = 40 };

void ottl_item_set_dictionary(struct ottl_item *item, struct dictionary *dictionary,
                              struct arena *arena)
{
    struct ottl_profile_tables *tables = arena_zalloc(arena, sizeof *tables);
    tables->dictionary = dictionary;
    tables->arena = arena;
    tables->steps = STEPS_MIN + STEPS_PER_BYTE * dictionary_request_size(dictionary);
    item->tables = tables;
}

static bool take_steps(struct ottl_profile_tables *tables, size_t steps)
{
    if (steps > tables->steps) {
        tables->ran_out = true;
        return false;
    }
    tables->steps -= steps;
    return true;
}

static struct slice charge(struct ottl_profile_tables *tables, struct slice text)
{
    if (text.size > SHORT_TEXT_MAX && !take_steps(tables, text.size / BYTES_OF_STEP))
        return (struct slice){0};
    return text;
}

struct slice ottl_table_string(struct ottl_profile_tables *tables, uint32_t index)
{
    return charge(tables, dictionary_string(tables->dictionary, index));
}

void *ottl_numbers_for(struct ottl_profile_tables *tables, int table, size_t size,
                       uint32_t *count_out)
{
    *count_out = dictionary_count(tables->dictionary, table);
    return arena_array(tables->arena, (size_t)*count_out + 1, size);
}

/* ---- numbers ---- */

bool ottl_numbers_next(struct ottl_numbers *numbers, uint64_t *out)
{
    struct message_field field;
    while (!(numbers->is_fixed ? wire_packed_fixed64(&numbers->packed, out)
                               : wire_packed_varint(&numbers->packed, out))) {
        do {
            if (!message_next(&numbers->message, &field))
                return false;
        } while (field.wire.number != numbers->number);
        *out = field.wire.value;
        if (field.wire.type != WIRE_BYTES)
            return true;
        numbers->packed = wire_cursor(field.wire.bytes);
    }
    return true;
}

/* The same for the indices of a dictionary entry, which is bytes. */
static bool next_index(struct wire_cursor *entry, struct wire_cursor *packed, uint32_t number,
                       uint32_t *out)
{
    struct wire_field field;
    uint64_t value;
    while (!wire_packed_varint(packed, &value)) {
        do {
            if (!wire_next(entry, &field))
                return false;
        } while (field.number != number);
        if (field.type != WIRE_BYTES) {
            *out = (uint32_t)field.value;
            return true;
        }
        *packed = wire_cursor(field.bytes);
    }
    *out = (uint32_t)value;
    return true;
}

/* ---- reading what was scanned, quickly ---- */

/* Returns the last value of a number in an entry or sample; 0 without one. Tags of one byte and
 * numbers of up to two are read here, as most are. */
static uint32_t last_number(struct slice entry, uint32_t number)
{
    const uint8_t *at = entry.data, *end = at + entry.size;
    unsigned wanted = number << 3 | WIRE_VARINT;
    uint32_t last = 0;
    while (end - at >= 3 || (end - at == 2 && at[1] < 0x80)) {
        unsigned tag = at[0], value = at[1], type = tag & 7;
        bool is_long = value >= 0x80;
        if (tag >= 0x80 || (is_long && at[2] >= 0x80) ||
            (type != WIRE_VARINT && type != WIRE_BYTES))
            break;
        value = is_long ? (value & 0x7f) | (unsigned)at[2] << 7 : value;
        const uint8_t *after = at + 2 + is_long;
        if (type == WIRE_BYTES && value > end - after)
            break;
        last = tag == wanted ? value : last;
        at = type == WIRE_BYTES ? after + value : after;
    }
    if (at == end)
        return last;
    struct wire_cursor cursor = wire_cursor(entry); /* there is an unusual field */
    struct wire_field field;
    for (last = 0; wire_next(&cursor, &field);)
        if (field.number == number && field.type == WIRE_VARINT)
            last = (uint32_t)field.value;
    return last;
}

static uint32_t function_of_line(struct slice line)
{
    const uint8_t *at = line.data, *end = at + line.size;
    uint32_t function = 0;
    if (line.size == 0)
        return 0;
    at = usual_index(at, end, LINE_FUNCTION_INDEX, &function);
    at = usual_number(at, end, LINE_LINE);
    at = usual_number(at, end, LINE_COLUMN);
    return at == end ? function : last_number(line, LINE_FUNCTION_INDEX);
}

/* Returns a cursor in a location before its first line. */
static struct wire_cursor lines_of(struct slice location)
{
    struct wire_cursor cursor = wire_cursor(location);
    uint32_t mapping;
    if (location.size == 0)
        return cursor;
    cursor.next = usual_index(cursor.next, cursor.end, LOCATION_MAPPING_INDEX, &mapping);
    cursor.next = usual_number(cursor.next, cursor.end, LOCATION_ADDRESS);
    return cursor;
}

/* Reads the next line of a location. Returns false at the end. */
static inline bool next_line(struct wire_cursor *lines, struct slice *out)
{
    struct wire_field line;
    const uint8_t *after = usual_bytes(lines->next, lines->end, LOCATION_LINES, out);
    if (after != lines->next) {
        lines->next = after;
        return true;
    }
    if (lines->next == lines->end || !wire_next_bytes(lines, LOCATION_LINES, &line))
        return false;
    *out = line.bytes;
    return true;
}

/* Reads the index of the function of the first line of a location. Returns false without one. */
static bool function_of_first_line(struct slice location, uint32_t *out)
{
    struct wire_cursor lines = lines_of(location);
    struct slice line;
    if (!next_line(&lines, &line))
        return false;
    *out = function_of_line(line);
    return true;
}

/* Reads the index of a string of a function. */
static uint32_t string_of_function(struct slice function, uint32_t number)
{
    const uint8_t *at = function.data, *end = at + function.size;
    uint32_t strings[FUNCTION_FILENAME_STRINDEX + 1] = {0};
    if (function.size == 0)
        return 0;
    for (uint32_t i = FUNCTION_NAME_STRINDEX; i <= FUNCTION_FILENAME_STRINDEX; i++)
        at = usual_index(at, end, i, &strings[i]);
    at = usual_number(at, end, FUNCTION_START_LINE);
    return at == end ? strings[number] : last_number(function, number);
}

uint32_t ottl_sample_stack(const struct ottl_profile_tables *tables)
{
    const struct wire_cursor *bytes = &tables->sample->cursor;
    struct message_field field;
    uint32_t stack = 0;
    if (tables->stack)
        return *tables->stack;
    if (!tables->sample->message)
        return last_number(slice_of(bytes->next, (size_t)(bytes->end - bytes->next)),
                           SAMPLE_STACK_INDEX);
    struct message_iter sample = *tables->sample;
    while (message_next(&sample, &field))
        if (field.wire.number == SAMPLE_STACK_INDEX && field.wire.type == WIRE_VARINT)
            stack = (uint32_t)field.wire.value;
    return stack;
}

/* ---- attributes ---- */

static void copy_indices(struct ottl_profile_tables *tables)
{
    size_t size = message_fields_size(*tables->profile, PROFILE_ATTRIBUTE_INDICES);
    uint8_t *to = (uint8_t *)tables->indices.data;
    if (size > tables->indices_capacity || !to) {
        tables->indices_capacity = 2 * size + 16;
        to = arena_alloc(tables->arena, tables->indices_capacity);
    }
    message_fields_write(*tables->profile, PROFILE_ATTRIBUTE_INDICES, to);
    tables->indices = slice_of(to, size);
    tables->has_indices = true;
}

void ottl_tables_set_indices(struct ottl_profile_tables *tables, struct slice indices)
{
    tables->indices = indices;
    tables->indices_capacity = 0; /* others may write to this memory */
    tables->has_indices = true;
}

struct ottl_numbers ottl_attribute_indices(struct ottl_profile_tables *tables, uint32_t number)
{
    bool is_profile = number == PROFILE_ATTRIBUTE_INDICES;
    assert(is_profile || number == SAMPLE_ATTRIBUTE_INDICES);
    if (is_profile && !tables->has_indices)
        copy_indices(tables);
    return (struct ottl_numbers){.message = is_profile ? message_iter_bytes(tables->indices)
                                                       : *tables->sample,
                                 .number = number};
}

/* Returns false at the end. Index 0 stands for no attribute. */
static bool next_entry(struct ottl_profile_tables *tables, struct ottl_numbers *indices,
                       struct key_value_and_unit *entry_out)
{
    uint64_t index;
    do {
        if (!ottl_numbers_next(indices, &index))
            return false;
    } while (index == 0);
    indices->last = index;
    *entry_out = dictionary_attribute(tables->dictionary, (uint32_t)index);
    return true;
}

bool ottl_table_attribute_next(struct ottl_profile_tables *tables, struct ottl_numbers *indices,
                               struct slice *key_out, struct slice *value_out)
{
    struct key_value_and_unit entry;
    if (!next_entry(tables, indices, &entry))
        return false;
    *key_out = ottl_table_string(tables, entry.key);
    *value_out = charge(tables, entry.value);
    return true;
}

bool ottl_table_attribute_get(struct ottl_profile_tables *tables, uint32_t number, struct slice key,
                              struct slice *value_out)
{
    struct ottl_numbers indices = ottl_attribute_indices(tables, number);
    struct key_value_and_unit entry;
    while (next_entry(tables, &indices, &entry)) {
        struct slice text = dictionary_string(tables->dictionary, entry.key);
        if (text.size != key.size || !slice_equal(charge(tables, text), key))
            continue;
        *value_out = charge(tables, entry.value);
        return true;
    }
    return false;
}

/* ---- frames ---- */

static struct slice entry_of(struct ottl_profile_tables *tables, int table, uint32_t index)
{
    return charge(tables, dictionary_entry(tables->dictionary, table, index));
}

struct ottl_frames ottl_frames(struct ottl_profile_tables *tables, uint32_t stack)
{
    return (struct ottl_frames){
        .stack = wire_cursor(dictionary_entry(tables->dictionary, DICTIONARY_STACK_TABLE, stack)),
        .packed = wire_cursor((struct slice){0})};
}

static uint32_t name_of_line(struct ottl_profile_tables *tables, struct slice line)
{
    return string_of_function(entry_of(tables, DICTIONARY_FUNCTION_TABLE, function_of_line(line)),
                              FUNCTION_NAME_STRINDEX);
}

bool ottl_frames_next(struct ottl_profile_tables *tables, struct ottl_frames *frames,
                      uint32_t *name_out)
{
    struct wire_field line;
    uint32_t location;
    *name_out = 0;
    if (!take_steps(tables, STEPS_OF_FRAME))
        return false;
    if (frames->in_location && wire_next_bytes(&frames->lines, LOCATION_LINES, &line)) {
        *name_out = name_of_line(tables, line.bytes);
        return true;
    }
    const uint8_t *before = frames->stack.next;
    if (!next_index(&frames->stack, &frames->packed, STACK_LOCATION_INDICES, &location) ||
        !take_steps(tables, (size_t)(frames->stack.next - before)))
        return false;
    frames->in_location = true;
    frames->lines = wire_cursor(entry_of(tables, DICTIONARY_LOCATION_TABLE, location));
    if (wire_next_bytes(&frames->lines, LOCATION_LINES, &line))
        *name_out = name_of_line(tables, line.bytes);
    return true;
}

static uint32_t count_lines(struct slice location)
{
    struct wire_cursor cursor = lines_of(location);
    struct wire_field line;
    uint32_t count = 0;
    while (wire_next_bytes(&cursor, LOCATION_LINES, &line))
        count++;
    return count > 0 ? count : 1;
}

static uint32_t frames_of_location(struct ottl_profile_tables *tables, uint32_t location)
{
    if (!tables->lines)
        tables->lines = ottl_numbers_for(tables, DICTIONARY_LOCATION_TABLE, sizeof *tables->lines,
                                         &tables->location_count);
    struct slice entry = dictionary_entry(tables->dictionary, DICTIONARY_LOCATION_TABLE, location);
    if (location >= tables->location_count) /* it was added since */
        return count_lines(entry);
    if (tables->lines[location] == 0)
        tables->lines[location] = 1 + count_lines(entry);
    return tables->lines[location] - 1;
}

static uint32_t count_frames(struct ottl_profile_tables *tables, uint32_t stack)
{
    struct ottl_frames frames = ottl_frames(tables, stack);
    uint64_t depth = 0;
    for (uint32_t at; next_index(&frames.stack, &frames.packed, STACK_LOCATION_INDICES, &at);)
        depth += frames_of_location(tables, at);
    return depth < UINT32_MAX ? (uint32_t)depth : UINT32_MAX - 1;
}

uint32_t ottl_stack_depth(struct ottl_profile_tables *tables, uint32_t stack)
{
    if (!tables->depths)
        tables->depths = ottl_numbers_for(tables, DICTIONARY_STACK_TABLE, sizeof *tables->depths,
                                          &tables->stack_count);
    if (stack >= tables->stack_count)
        return count_frames(tables, stack);
    if (tables->depths[stack] == 0)
        tables->depths[stack] = 1 + count_frames(tables, stack);
    return tables->depths[stack] - 1;
}

static __attribute__((noinline)) bool first_location_of_any(struct slice stack, uint32_t *out)
{
    struct ottl_frames frames = {.stack = wire_cursor(stack),
                                 .packed = wire_cursor((struct slice){0})};
    return next_index(&frames.stack, &frames.packed, STACK_LOCATION_INDICES, out);
}

/* Finds the first location of a stack. Returns false if it is empty. */
static inline bool first_location(struct slice stack, uint32_t *out)
{
    enum { TAG = STACK_LOCATION_INDICES << 3 | WIRE_BYTES };
    struct slice list = {0};
    if (stack.size == 0)
        return false;
    wire_short_payload(stack.data, stack.data + stack.size, TAG, &list);
    if (list.size < 2 || (list.data[0] & list.data[1]) >= 0x80) /* as few are */
        return first_location_of_any(stack, out);
    *out = list.data[0] & 0x7fu;
    if (list.data[0] >= 0x80)
        *out |= (uint32_t)list.data[1] << 7;
    return true;
}

static uint32_t find_leaf(struct ottl_profile_tables *tables, uint32_t location,
                          enum ottl_leaf leaf)
{
    struct slice entry = entry_of(tables, DICTIONARY_LOCATION_TABLE, location);
    uint32_t function;
    if (leaf == OTTL_LEAF_MAPPING)
        return last_number(
            entry_of(tables, DICTIONARY_MAPPING_TABLE, last_number(entry, LOCATION_MAPPING_INDEX)),
            MAPPING_FILENAME_STRINDEX);
    if (!function_of_first_line(entry, &function))
        return 0;
    return string_of_function(entry_of(tables, DICTIONARY_FUNCTION_TABLE, function),
                              leaf == OTTL_LEAF_FUNCTION ? FUNCTION_NAME_STRINDEX
                                                         : FUNCTION_FILENAME_STRINDEX);
}

/* Returns what is known of each location as the leaf, which many stacks begin with. */
static uint32_t *known_leaves(struct ottl_profile_tables *tables, enum ottl_leaf leaf)
{
    if (!tables->leaves[leaf])
        tables->leaves[leaf] = ottl_numbers_for(tables, DICTIONARY_LOCATION_TABLE, sizeof(uint32_t),
                                                &tables->leaf_count);
    return tables->leaves[leaf];
}

static uint32_t leaf_of_location(struct ottl_profile_tables *tables, uint32_t location,
                                 enum ottl_leaf leaf)
{
    uint32_t *known = known_leaves(tables, leaf);
    if (location >= tables->leaf_count)
        return find_leaf(tables, location, leaf);
    if (known[location] != 0)
        return known[location] - 1;
    uint32_t string = find_leaf(tables, location, leaf);
    if (!tables->ran_out)
        known[location] = string + 1;
    return string;
}

uint32_t ottl_stack_leaf(struct ottl_profile_tables *tables, uint32_t stack, enum ottl_leaf leaf)
{
    uint32_t location;
    if (tables->leaf && leaf == OTTL_LEAF_FUNCTION)
        return *tables->leaf;
    bool exists = first_location(
        dictionary_entry(tables->dictionary, DICTIONARY_STACK_TABLE, stack), &location);
    return exists ? leaf_of_location(tables, location, leaf) : 0;
}

uint32_t ottl_stack_leaves(struct ottl_profile_tables *tables, uint32_t *names)
{
    const struct slice *stacks = dictionary_entries(tables->dictionary, DICTIONARY_STACK_TABLE);
    const uint32_t count = dictionary_count(tables->dictionary, DICTIONARY_STACK_TABLE);
    const uint32_t *known = known_leaves(tables, OTTL_LEAF_FUNCTION);
    uint32_t location;
    for (uint32_t i = 0; i < count && !tables->ran_out; i++) {
        names[i] = 0;
        if (!first_location(stacks[i], &location))
            continue;
        bool is_known = location < tables->leaf_count && known[location] != 0;
        names[i] =
            is_known ? known[location] - 1 : leaf_of_location(tables, location, OTTL_LEAF_FUNCTION);
    }
    return tables->ran_out ? 0 : count;
}

/* ---- patterns ---- */

enum found { UNKNOWN, NOT_FOUND = OTTL_STACK_MISSES, FOUND, FAILED };

struct searching {
    struct ottl_profile_tables *tables;
    struct ottl_stack_search *search;
    const struct ottl_regex *regex;
    struct ottl_matcher *matcher;
    struct error *err;
};

/* Returns where a result is kept; *unkept for an entry that was added since. */
static uint8_t *result_of(uint8_t *results, uint32_t count, uint32_t index, uint8_t *unkept)
{
    *unkept = UNKNOWN;
    return index < count ? &results[index] : unkept;
}

/* Keeps a result. Returns whether there is one. */
static bool keep(const struct searching *s, uint8_t *result, bool ok, bool found)
{
    bool is_certain = ok && (found || !s->tables->ran_out);
    *result = !is_certain ? FAILED : found ? FOUND : NOT_FOUND;
    return is_certain;
}

/* What was too much once would be too much for each sample. */
static bool is_kept(const struct searching *s, const uint8_t *result, bool *ok_out, bool *found_out)
{
    *found_out = *result == FOUND;
    *ok_out = *result != FAILED || error_set(s->err, "%s", ottl_steps_error);
    return *result != UNKNOWN;
}

static bool search_name(const struct searching *s, uint32_t name, bool *found_out)
{
    uint8_t unkept, *result = result_of(s->search->strings, s->search->string_count, name, &unkept);
    bool ok;
    if (is_kept(s, result, &ok, found_out))
        return ok;
    ok = ottl_regex_find(s->regex, s->matcher, dictionary_string(s->tables->dictionary, name),
                         found_out, s->err);
    return keep(s, result, ok, ok && *found_out);
}

static bool search_function(const struct searching *s, uint32_t function, bool *found_out)
{
    uint8_t unkept,
        *result = result_of(s->search->functions, s->search->function_count, function, &unkept);
    bool ok;
    if (is_kept(s, result, &ok, found_out))
        return ok;
    struct slice entry = entry_of(s->tables, DICTIONARY_FUNCTION_TABLE, function);
    ok = search_name(s, string_of_function(entry, FUNCTION_NAME_STRINDEX), found_out);
    return keep(s, result, ok, *found_out);
}

static bool search_location(const struct searching *s, uint32_t location, bool *found_out)
{
    uint8_t unkept,
        *result = result_of(s->search->locations, s->search->location_count, location, &unkept);
    struct wire_field line;
    bool ok;
    if (is_kept(s, result, &ok, found_out))
        return ok;
    struct wire_cursor lines =
        lines_of(dictionary_entry(s->tables->dictionary, DICTIONARY_LOCATION_TABLE, location));
    while (ok && !*found_out && wire_next_bytes(&lines, LOCATION_LINES, &line))
        ok = search_function(s, function_of_line(line.bytes), found_out);
    return keep(s, result, ok, *found_out);
}

static bool search_list(const struct searching *s, struct slice list, bool *found_out)
{
    struct wire_cursor packed = wire_cursor(list);
    uint64_t location;
    bool ok = true;
    while (ok && !*found_out && wire_packed_varint(&packed, &location))
        ok = search_location(s, (uint32_t)location, found_out);
    return ok;
}

static bool search_locations(const struct searching *s, uint32_t stack, bool *found_out)
{
    struct wire_cursor entry =
        wire_cursor(dictionary_entry(s->tables->dictionary, DICTIONARY_STACK_TABLE, stack));
    struct wire_field field;
    bool ok = true;
    while (ok && !*found_out && wire_next(&entry, &field))
        if (field.number == STACK_LOCATION_INDICES)
            ok = field.type == WIRE_BYTES ? search_list(s, field.bytes, found_out)
                                          : search_location(s, (uint32_t)field.value, found_out);
    return ok;
}

static bool search_stack(const struct searching *s, uint32_t stack, bool *found_out)
{
    uint8_t unkept, *result = result_of(s->search->stacks, s->search->stack_count, stack, &unkept);
    bool ok;
    if (is_kept(s, result, &ok, found_out))
        return ok;
    ok = search_locations(s, stack, found_out);
    return keep(s, result, ok, *found_out);
}

/* ---- all stacks at once ---- */

/* Searches the names of all functions. Returns false if a match takes too many steps; what is left
 * is then searched when it is asked for. */
static bool search_functions(const struct searching *s)
{
    const struct slice *functions =
        dictionary_entries(s->tables->dictionary, DICTIONARY_FUNCTION_TABLE);
    bool ok = true, found;
    for (uint32_t i = 0; ok && i < s->search->function_count; i++) {
        uint32_t name = string_of_function(functions[i], FUNCTION_NAME_STRINDEX);
        ok = search_name(s, name, &found);
        if (ok)
            s->search->functions[i] = found ? FOUND : NOT_FOUND;
        else if (name < s->search->string_count)
            s->search->strings[name] = UNKNOWN; /* the error is for who asks */
    }
    return ok;
}

/* Returns the result of a whole from those of its parts. */
static uint8_t result_of_parts(unsigned results)
{
    static_assert((FOUND & NOT_FOUND) == 0, "each is a bit");
    return results & FOUND ? FOUND : NOT_FOUND;
}

static uint8_t result_of_location(const struct ottl_stack_search *search, struct slice location)
{
    struct wire_cursor lines = lines_of(location);
    struct slice line;
    unsigned results = NOT_FOUND;
    while (next_line(&lines, &line)) {
        uint32_t function = function_of_line(line);
        assert(function < search->function_count); /* scanned */
        results |= search->functions[function];
    }
    return result_of_parts(results);
}

static uint8_t result_of_stack(const struct ottl_stack_search *search, struct slice stack)
{
    struct wire_cursor cursor = wire_cursor(stack);
    struct wire_field field;
    unsigned results = NOT_FOUND;
    while (wire_next(&cursor, &field)) {
        if (field.number != STACK_LOCATION_INDICES)
            continue;
        assert(field.type == WIRE_BYTES || field.value < search->location_count); /* scanned */
        results |= field.type == WIRE_BYTES
                       ? index_list_or(field.bytes, search->locations, search->location_count)
                       : search->locations[field.value];
    }
    return result_of_parts(results);
}

/* Reads each table once, in its order. An index into an empty table is 0. */
static void search_all(const struct searching *s)
{
    struct ottl_stack_search *search = s->search;
    struct dictionary *dictionary = s->tables->dictionary;
    const struct slice *locations = dictionary_entries(dictionary, DICTIONARY_LOCATION_TABLE);
    const struct slice *stacks = dictionary_entries(dictionary, DICTIONARY_STACK_TABLE);
    bool has_empty = search->function_count == 0 || search->location_count == 0;
    if (has_empty || !search_functions(s))
        return;
    for (uint32_t i = 0; i < search->location_count; i++)
        search->locations[i] = result_of_location(search, locations[i]);
    for (uint32_t i = 0; i < search->stack_count; i++)
        search->stacks[i] = result_of_stack(search, stacks[i]);
}

static void begin_search(const struct searching *s, uint64_t batch)
{
    struct ottl_stack_search *search = s->search;
    *search = (struct ottl_stack_search){.batch = batch};
    search->stacks = ottl_numbers_for(s->tables, DICTIONARY_STACK_TABLE, 1, &search->stack_count);
    search->locations =
        ottl_numbers_for(s->tables, DICTIONARY_LOCATION_TABLE, 1, &search->location_count);
    search->functions =
        ottl_numbers_for(s->tables, DICTIONARY_FUNCTION_TABLE, 1, &search->function_count);
    search->strings =
        ottl_numbers_for(s->tables, DICTIONARY_STRING_TABLE, 1, &search->string_count);
    search_all(s);
}

bool ottl_stack_contains(struct ottl_profile_tables *tables, struct ottl_stack_search *search,
                         uint64_t batch, uint32_t stack, const struct ottl_regex *regex,
                         struct ottl_matcher *matcher, bool *found_out, struct error *err)
{
    struct searching searching = {tables, search, regex, matcher, err};
    if (search->batch != batch)
        begin_search(&searching, batch);
    return search_stack(&searching, stack, found_out);
}
