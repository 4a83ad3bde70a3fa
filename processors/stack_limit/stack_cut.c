#include "processors/stack_limit/stack_cut.h"

#include "core/base/arena.h"
#include "core/data/sample_fields.h"

struct cutting {
    struct dictionary *dictionary;
    struct arena scratch; /* of one stack */
    uint64_t max_depth;
    uint32_t *frames; /* of each location, plus 1; 0: not counted yet */
    uint32_t location_count;
    uint32_t marker; /* location; 0: not made yet */
};

/* ---- entries ---- */

enum { SMALL_ENTRY = 2 * WIRE_HEADER_MAX };

static uint32_t add_number(struct dictionary *dictionary, int table, uint32_t number,
                           uint32_t value)
{
    uint8_t payload[SMALL_ENTRY];
    uint8_t *end = wire_write_varint(wire_write_tag(payload, number, WIRE_VARINT), value);
    return dictionary_add(dictionary, table, slice_of(payload, (size_t)(end - payload)));
}

uint32_t stack_cut_add_marker(struct dictionary *dictionary, struct slice name)
{
    uint8_t line[SMALL_ENTRY], location[2 * SMALL_ENTRY];
    uint32_t string = dictionary_add(dictionary, DICTIONARY_STRING_TABLE, name);
    uint32_t function =
        add_number(dictionary, DICTIONARY_FUNCTION_TABLE, FUNCTION_NAME_STRINDEX, string);
    uint8_t *end =
        wire_write_varint(wire_write_tag(line, LINE_FUNCTION_INDEX, WIRE_VARINT), function);
    end = wire_write_bytes(location, LOCATION_LINES, slice_of(line, (size_t)(end - line)));
    return dictionary_add(dictionary, DICTIONARY_LOCATION_TABLE,
                          slice_of(location, (size_t)(end - location)));
}

/* Adds a stack of packed locations, and one more at the root. */
static uint32_t add_stack(struct dictionary *dictionary, struct slice locations, uint32_t root,
                          struct arena *scratch)
{
    size_t size = locations.size + wire_size_varint(root);
    uint8_t *payload = arena_alloc(scratch, size + WIRE_HEADER_MAX);
    uint8_t *to = wire_write_header(payload, STACK_LOCATION_INDICES, size);
    if (locations.size > 0)
        memcpy(to, locations.data, locations.size);
    to = wire_write_varint(to + locations.size, root);
    return dictionary_add(dictionary, DICTIONARY_STACK_TABLE,
                          slice_of(payload, (size_t)(to - payload)));
}

uint32_t stack_cut_add_stack(struct dictionary *dictionary, uint32_t location)
{
    struct arena scratch;
    arena_init(&scratch, NULL);
    uint32_t stack = add_stack(dictionary, (struct slice){0}, location, &scratch);
    arena_deinit(&scratch);
    return stack;
}

/* ---- depths ---- */

static uint32_t count_lines(struct slice location)
{
    struct wire_cursor cursor = wire_cursor(location);
    struct wire_field line;
    uint32_t count = 0;
    while (wire_next_bytes(&cursor, LOCATION_LINES, &line))
        count++;
    return count > 0 ? count : 1;
}

static uint32_t frames_of(struct cutting *cutting, uint32_t location)
{
    assert(location < cutting->location_count); /* scanned */
    if (cutting->frames[location] == 0)
        cutting->frames[location] =
            1 +
            count_lines(dictionary_entry(cutting->dictionary, DICTIONARY_LOCATION_TABLE, location));
    return cutting->frames[location] - 1;
}

/* Finds the part of a stack that stays. Returns false if that is all of it. */
static bool find_cut(struct cutting *cutting, struct slice locations, struct slice *kept_out)
{
    struct wire_cursor packed = wire_cursor(locations);
    uint64_t depth = 0, location;
    const uint8_t *end = NULL;
    while (depth <= cutting->max_depth && wire_packed_varint(&packed, &location)) {
        depth += frames_of(cutting, (uint32_t)location);
        if (!end || depth < cutting->max_depth) /* the marker is a frame, too */
            end = packed.next;
    }
    if (depth <= cutting->max_depth || end == locations.data + locations.size)
        return false;
    *kept_out = slice_of(locations.data, (size_t)(end - locations.data));
    return true;
}

/* ---- stacks ---- */

static uint32_t cut_one(struct cutting *cutting, uint32_t stack)
{
    struct slice entry = dictionary_entry(cutting->dictionary, DICTIONARY_STACK_TABLE, stack), kept;
    struct slice locations = sample_list(entry, STACK_LOCATION_INDICES, &cutting->scratch);
    if (!find_cut(cutting, locations, &kept))
        return stack;
    if (cutting->marker == 0)
        cutting->marker = stack_cut_add_marker(cutting->dictionary, SLICE("[truncated]"));
    return add_stack(cutting->dictionary, kept, cutting->marker, &cutting->scratch);
}

static void begin(struct cutting *cutting, struct dictionary *dictionary, struct arena *arena)
{
    *cutting = (struct cutting){.dictionary = dictionary};
    arena_init(&cutting->scratch, arena->budget);
    /* An empty table still has its zero value. */
    cutting->location_count = 1 + dictionary_count(dictionary, DICTIONARY_LOCATION_TABLE);
    cutting->frames = arena_array(arena, cutting->location_count, sizeof *cutting->frames);
}

struct stack_cut stack_cut_all(struct dictionary *dictionary, uint64_t max_depth,
                               struct arena *arena)
{
    struct stack_cut cut = {.stack_count = dictionary_count(dictionary, DICTIONARY_STACK_TABLE)};
    struct cutting cutting;
    if (max_depth == 0)
        return (struct stack_cut){0};
    assert(max_depth > 1);
    begin(&cutting, dictionary, arena);
    cutting.max_depth = max_depth;
    cut.becomes = arena_array(arena, (size_t)cut.stack_count + 1, sizeof *cut.becomes);
    for (uint32_t i = 0; i < cut.stack_count; i++) {
        cut.becomes[i] = cut_one(&cutting, i);
        cut.any |= cut.becomes[i] != i;
        arena_deinit(&cutting.scratch);
    }
    arena_deinit(&cutting.scratch);
    return cut;
}
