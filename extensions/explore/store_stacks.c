#include "extensions/explore/store_stacks.h"

#include "core/base/arena.h"
#include "core/data/otlp.h"
#include "core/data/wire.h"

#include <stdio.h>

/* Frames of stacks that a request may have, besides eight for each of its bytes: a small table of
 * locations can make very many. Further stacks are merged. */
enum { FRAMES_FREE = 1 << 20, FRAMES_FOR_BYTE = 8 };

/* ---- texts and frames ---- */

uint32_t store_stacks_text(struct store_stacks *stacks, uint32_t index)
{
    if (stacks->texts[index] == 0)
        stacks->texts[index] =
            store_names_text(stacks->names, dictionary_string(stacks->dictionary, index),
                             STORE_TEXT_MAX) +
            1;
    return stacks->texts[index] - 1;
}

static void push(struct store_stacks *stacks, struct indices *list, uint32_t item)
{
    if (list->count == list->capacity)
        list->items = arena_grow(stacks->arena, list->items, list->count, &list->capacity,
                                 sizeof *list->items);
    list->items[list->count++] = item;
}

/* Reads the numbers of an entry: field i to numbers[i]. */
static void read_numbers(struct slice payload, uint64_t *numbers, uint32_t count)
{
    struct wire_cursor cursor = wire_cursor(payload);
    struct wire_field field;
    while (wire_next(&cursor, &field))
        if (field.type == WIRE_VARINT && field.number < count)
            numbers[field.number] = field.value;
}

static uint32_t read_function(struct store_stacks *stacks, uint64_t index)
{
    uint64_t numbers[FUNCTION_START_LINE] = {0};
    read_numbers(dictionary_entry(stacks->dictionary, DICTIONARY_FUNCTION_TABLE, (uint32_t)index),
                 numbers, FUNCTION_START_LINE);
    uint64_t name = numbers[FUNCTION_NAME_STRINDEX];
    name = name ? name : numbers[FUNCTION_SYSTEM_NAME_STRINDEX];
    return store_names_frame(
        stacks->names, store_stacks_text(stacks, (uint32_t)name),
        store_stacks_text(stacks, (uint32_t)numbers[FUNCTION_FILENAME_STRINDEX]));
}

static uint32_t mapping_file(struct store_stacks *stacks, uint64_t index)
{
    uint64_t numbers[MAPPING_ATTRIBUTE_INDICES] = {0};
    read_numbers(dictionary_entry(stacks->dictionary, DICTIONARY_MAPPING_TABLE, (uint32_t)index),
                 numbers, MAPPING_ATTRIBUTE_INDICES);
    return (uint32_t)numbers[MAPPING_FILENAME_STRINDEX];
}

static struct slice base_name(struct slice path)
{
    for (size_t i = path.size; i > 0; i--)
        if (path.data[i - 1] == '/')
            return slice_of(path.data + i, path.size - i);
    return path;
}

/* A location without lines is its mapping and address: "libc.so.6 0x1f2e3". */
static uint32_t frame_of_address(struct store_stacks *stacks, uint64_t mapping, uint64_t address)
{
    uint32_t file = mapping_file(stacks, mapping);
    struct slice path = dictionary_string(stacks->dictionary, file);
    struct slice base = base_name(path);
    char name[160];
    int size = snprintf(name, sizeof name, "%.*s%s0x%llx", base.size > 100 ? 100 : (int)base.size,
                        base.data ? (const char *)base.data : "", base.size ? " " : "",
                        (unsigned long long)address);
    uint32_t text = store_names_text(stacks->names, slice_of(name, (size_t)size), STORE_TEXT_MAX);
    return store_names_frame(stacks->names, text, store_stacks_text(stacks, file));
}

/* Lines come innermost first; frames are kept outermost first. */
static void reverse(uint32_t *items, uint32_t count)
{
    for (uint32_t i = 0; i + 1 < count - i; i++) {
        uint32_t item = items[i];
        items[i] = items[count - 1 - i];
        items[count - 1 - i] = item;
    }
}

static void read_lines(struct store_stacks *stacks, uint32_t index)
{
    struct slice payload = dictionary_entry(stacks->dictionary, DICTIONARY_LOCATION_TABLE, index);
    struct wire_cursor cursor = wire_cursor(payload);
    struct wire_field field;
    uint32_t first = stacks->frames.count;
    while (wire_next_bytes(&cursor, LOCATION_LINES, &field)) {
        uint64_t line[LINE_LINE] = {0};
        read_numbers(field.bytes, line, LINE_LINE);
        push(stacks, &stacks->frames, read_function(stacks, line[LINE_FUNCTION_INDEX]));
    }
    if (stacks->frames.count == first) {
        uint64_t numbers[LOCATION_LINES] = {0};
        read_numbers(payload, numbers, LOCATION_LINES);
        push(stacks, &stacks->frames,
             frame_of_address(stacks, numbers[LOCATION_MAPPING_INDEX], numbers[LOCATION_ADDRESS]));
    }
    uint32_t count = stacks->frames.count - first;
    reverse(stacks->frames.items + first, count);
    stacks->locations[index] = (struct store_location){first, count + 1};
}

/* ---- stacks ---- */

static void read_indices(struct store_stacks *stacks, const struct wire_field *field)
{
    if (field->type == WIRE_VARINT) {
        push(stacks, &stacks->stack, (uint32_t)field->value);
        return;
    }
    assert(field->type == WIRE_BYTES); /* the scan refuses others */
    struct wire_cursor packed = wire_cursor(field->bytes);
    for (uint64_t index; wire_packed_varint(&packed, &index);)
        push(stacks, &stacks->stack, (uint32_t)index);
}

/* Adds the frames of a location below a node. */
static uint32_t descend(struct store_stacks *stacks, uint32_t node, uint32_t location,
                        uint32_t *depth_left)
{
    if (stacks->locations[location].count == 0)
        read_lines(stacks, location);
    const struct store_location memo = stacks->locations[location];
    for (uint32_t i = 0; i + 1 < memo.count && *depth_left > 0; i++, --*depth_left)
        node = store_names_node(stacks->names, node, stacks->frames.items[memo.first + i]);
    return node;
}

static uint32_t make_node(struct store_stacks *stacks)
{
    uint32_t node = STORE_NODE_ROOT, depth_left = STORE_DEPTH_MAX;
    if (stacks->frames_left < STORE_DEPTH_MAX)
        return STORE_NODE_MERGED;
    for (uint32_t i = stacks->stack.count; i > 0 && depth_left > 0; i--)
        node = descend(stacks, node, stacks->stack.items[i - 1], &depth_left);
    stacks->frames_left -= STORE_DEPTH_MAX - depth_left;
    return node;
}

uint32_t store_stacks_node(struct store_stacks *stacks, uint32_t index)
{
    if (stacks->nodes[index] != 0)
        return stacks->nodes[index] - 1;
    struct slice payload = dictionary_entry(stacks->dictionary, DICTIONARY_STACK_TABLE, index);
    struct wire_cursor cursor = wire_cursor(payload);
    struct wire_field field;
    stacks->stack.count = 0;
    while (wire_next(&cursor, &field))
        if (field.number == STACK_LOCATION_INDICES)
            read_indices(stacks, &field);
    uint32_t node = make_node(stacks);
    stacks->nodes[index] = node + 1;
    return node;
}

void store_stacks_init(struct store_stacks *stacks, struct store_names *names,
                       struct dictionary *dictionary, struct arena *arena)
{
    /* Empty tables have an entry 0. */
    uint32_t texts = dictionary_count(dictionary, DICTIONARY_STRING_TABLE) + 1;
    uint32_t nodes = dictionary_count(dictionary, DICTIONARY_STACK_TABLE) + 1;
    uint32_t locations = dictionary_count(dictionary, DICTIONARY_LOCATION_TABLE) + 1;
    *stacks = (struct store_stacks){
        .names = names,
        .dictionary = dictionary,
        .arena = arena,
        .frames_left = FRAMES_FREE + FRAMES_FOR_BYTE * dictionary_request_size(dictionary),
        .texts = arena_array(arena, texts, sizeof *stacks->texts),
        .nodes = arena_array(arena, nodes, sizeof *stacks->nodes),
        .locations = arena_array(arena, locations, sizeof *stacks->locations),
    };
}
