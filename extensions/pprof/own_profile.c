#include "extensions/pprof/own_profile.h"

#include "core/base/hash.h"
#include "core/base/index_table.h"
#include "core/base/memory.h"
#include "core/base/stack_walk.h"
#include "core/base/text.h"
#include "core/data/wire_writer.h"
#include "core/formats/pprof.h"
#include "core/net/compression.h"
#include "extensions/pprof/loaded_code.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CODE_MAX = 256 };

struct location {
    uint64_t address, function; /* function: its id; 0: not known yet */
    size_t code;                /* index of `code`; CODE_MAX: none */
};

struct own_profile {
    const struct own_profile_kind *kind;
    struct wire_writer out, strings;
    uint64_t string_count, function_count;
    struct arena arena;
    struct index_table location_table; /* of addresses */
    struct location *locations;        /* the id of a location is its index and 1 */
    uint32_t location_count, location_capacity;
    const char *thread; /* the last one, and its string */
    uint64_t thread_string, thread_key;
    struct loaded_code code[CODE_MAX];
    size_t code_count;
};

/* ---- strings and types ---- */

static uint64_t add_string(struct own_profile *profile, const char *text)
{
    wire_writer_bytes(&profile->strings, PPROF_STRING_TABLE, slice_of_string(text));
    return profile->string_count++;
}

static void add_type(struct own_profile *profile, uint32_t field, const char *type,
                     const char *unit)
{
    size_t begun = wire_writer_begin(&profile->out, field);
    wire_writer_varint(&profile->out, PPROF_VALUE_TYPE_TYPE, add_string(profile, type));
    wire_writer_varint(&profile->out, PPROF_VALUE_TYPE_UNIT, add_string(profile, unit));
    wire_writer_end(&profile->out, begun);
}

static void add_text(struct own_profile *profile, uint32_t field, const char *text)
{
    wire_writer_varint(&profile->out, field, add_string(profile, text));
}

struct own_profile *own_profile_new(const struct own_profile_kind *kind)
{
    struct own_profile *profile = memory_zalloc(sizeof *profile);
    assert(kind->column_count >= 1 && kind->column_count <= STACK_VALUES);
    profile->kind = kind;
    arena_init(&profile->arena, NULL);
    profile->code_count = loaded_code_list(profile->code, CODE_MAX, &profile->arena);
    add_string(profile, ""); /* the first one has to be empty */
    profile->thread_key = add_string(profile, "thread");
    for (unsigned i = 0; i < kind->column_count; i++)
        add_type(profile, PPROF_SAMPLE_TYPE, kind->columns[i].type, kind->columns[i].unit);
    add_type(profile, PPROF_PERIOD_TYPE, kind->period_type, kind->period_unit);
    wire_writer_varint(&profile->out, PPROF_PERIOD, (uint64_t)kind->period);
    add_text(profile, PPROF_DEFAULT_SAMPLE_TYPE, kind->default_type);
    if (kind->drop_frames)
        add_text(profile, PPROF_DROP_FRAMES, kind->drop_frames);
    return profile;
}

/* ---- samples ---- */

static uint64_t location_id(struct own_profile *profile, uint64_t address)
{
    uint32_t number;
    index_table_reserve(&profile->location_table, 1, &profile->arena);
    struct index_probe probe =
        index_table_probe(&profile->location_table, (uint32_t)hash_u64(address));
    while (index_table_next(&profile->location_table, &probe, &number))
        if (profile->locations[number].address == address)
            return number + 1;
    if (profile->location_count == profile->location_capacity) {
        profile->location_capacity = 2 * profile->location_capacity + 256;
        profile->locations =
            memory_grow(profile->locations, profile->location_capacity, sizeof *profile->locations);
    }
    number = profile->location_count++;
    profile->locations[number] = (struct location){.address = address, .code = CODE_MAX};
    index_table_add(&profile->location_table, &probe, number);
    return number + 1;
}

static void add_thread(struct own_profile *profile, const char *thread)
{
    if (profile->thread != thread) {
        profile->thread = thread;
        profile->thread_string = add_string(profile, thread);
    }
    size_t label = wire_writer_begin(&profile->out, PPROF_SAMPLE_LABEL);
    wire_writer_varint(&profile->out, PPROF_LABEL_KEY, profile->thread_key);
    wire_writer_varint(&profile->out, PPROF_LABEL_STR, profile->thread_string);
    wire_writer_end(&profile->out, label);
}

/* Returns false if all are 0. What is in use may become less over some seconds. */
static bool read_values(const struct own_profile_kind *kind, const struct stack_entry *entry,
                        uint64_t values_out[STACK_VALUES])
{
    bool is_any = false;
    for (unsigned i = 0; i < kind->column_count; i++) {
        double value = round(entry->values[kind->columns[i].value] * kind->columns[i].factor);
        values_out[i] = (uint64_t)(int64_t)value;
        is_any = is_any || values_out[i] != 0;
    }
    return is_any;
}

static bool is_code(const struct own_profile *profile, uint64_t address)
{
    for (size_t i = 0; i < profile->code_count; i++)
        if (address >= profile->code[i].start && address < profile->code[i].limit)
            return true;
    return false;
}

/* Returns how many frames are real. Below a library without frame pointers, anything may have
 * looked like a frame. The innermost may be code that was made at run time, of regular
 * expressions. */
static size_t real_depth(const struct own_profile *profile, const struct stack_entry *entry)
{
    size_t depth = 1;
    while (depth < entry->depth && is_code(profile, entry->addresses[depth]))
        depth++;
    return depth;
}

void own_profile_add(struct own_profile *profile, const struct stack_entry *entry,
                     const char *thread)
{
    uint64_t ids[STACK_FRAMES_MAX], values[STACK_VALUES];
    assert(entry->depth <= STACK_FRAMES_MAX);
    if (!read_values(profile->kind, entry, values))
        return;
    size_t depth = real_depth(profile, entry);
    for (size_t i = 0; i < depth; i++)
        ids[i] = location_id(profile, entry->addresses[i]);
    size_t sample = wire_writer_begin(&profile->out, PPROF_SAMPLE);
    wire_writer_packed_u64(&profile->out, PPROF_SAMPLE_LOCATION_ID, ids, depth);
    wire_writer_packed_u64(&profile->out, PPROF_SAMPLE_VALUE, values, profile->kind->column_count);
    if (thread)
        add_thread(profile, thread);
    wire_writer_end(&profile->out, sample);
}

/* ---- names ---- */

static uint64_t add_function(struct own_profile *profile, const char *name)
{
    uint64_t id = ++profile->function_count, string = add_string(profile, name);
    size_t begun = wire_writer_begin(&profile->out, PPROF_FUNCTION);
    wire_writer_varint(&profile->out, PPROF_FUNCTION_ID, id);
    wire_writer_varint(&profile->out, PPROF_FUNCTION_NAME, string);
    wire_writer_varint(&profile->out, PPROF_FUNCTION_SYSTEM_NAME, string);
    wire_writer_end(&profile->out, begun);
    return id;
}

static uint64_t add_file_as_function(struct own_profile *profile, const struct loaded_code *code)
{
    const char *slash = strrchr(code->path, '/');
    return add_function(profile,
                        arena_printf(&profile->arena, "[%s]", slash ? slash + 1 : code->path));
}

static void name_locations(struct own_profile *profile, size_t index)
{
    const struct loaded_code *code = &profile->code[index];
    struct symbol_table symbols;
    struct symbol rest = {0};
    symbol_table_open(&symbols, code);
    for (uint32_t i = 0; i < profile->location_count; i++) {
        struct location *location = &profile->locations[i];
        if (location->code != index)
            continue;
        struct symbol *symbol = symbol_table_find(&symbols, location->address - code->base);
        if (!symbol)
            symbol = &rest;
        if (symbol->number == 0)
            symbol->number = symbol == &rest ? add_file_as_function(profile, code)
                                             : add_function(profile, symbol->name);
        location->function = symbol->number;
    }
    symbol_table_close(&symbols);
}

/* Returns whether a location lies in it. */
static bool find_locations(struct own_profile *profile, size_t index)
{
    const struct loaded_code *code = &profile->code[index];
    bool is_any = false;
    for (uint32_t i = 0; i < profile->location_count; i++) {
        struct location *location = &profile->locations[i];
        if (location->address < code->start || location->address >= code->limit)
            continue;
        location->code = index;
        is_any = true;
    }
    return is_any;
}

static void write_mapping(struct own_profile *profile, size_t index)
{
    const struct loaded_code *code = &profile->code[index];
    struct text build_id = {0};
    text_append_hex(&build_id, code->build_id);
    size_t begun = wire_writer_begin(&profile->out, PPROF_MAPPING);
    wire_writer_varint(&profile->out, PPROF_MAPPING_ID, index + 1);
    wire_writer_varint(&profile->out, PPROF_MAPPING_MEMORY_START, code->start);
    wire_writer_varint(&profile->out, PPROF_MAPPING_MEMORY_LIMIT, code->limit);
    wire_writer_varint(&profile->out, PPROF_MAPPING_FILE_OFFSET, code->file_offset);
    wire_writer_varint(&profile->out, PPROF_MAPPING_FILENAME, add_string(profile, code->path));
    wire_writer_varint(&profile->out, PPROF_MAPPING_BUILD_ID,
                       add_string(profile, text_string(&build_id)));
    wire_writer_varint(&profile->out, PPROF_MAPPING_HAS_FUNCTIONS, 1);
    wire_writer_end(&profile->out, begun);
    text_deinit(&build_id);
}

static void write_location(struct own_profile *profile, uint32_t index)
{
    const struct location *location = &profile->locations[index];
    size_t begun = wire_writer_begin(&profile->out, PPROF_LOCATION);
    wire_writer_varint(&profile->out, PPROF_LOCATION_ID, index + 1);
    if (location->code < CODE_MAX)
        wire_writer_varint(&profile->out, PPROF_LOCATION_MAPPING_ID, location->code + 1);
    wire_writer_varint(&profile->out, PPROF_LOCATION_ADDRESS, location->address);
    if (location->function != 0) {
        size_t line = wire_writer_begin(&profile->out, PPROF_LOCATION_LINE);
        wire_writer_varint(&profile->out, PPROF_LINE_FUNCTION_ID, location->function);
        wire_writer_end(&profile->out, line);
    }
    wire_writer_end(&profile->out, begun);
}

/* Mappings keep the order of the process, with the program first. */
static void write_code(struct own_profile *profile)
{
    for (size_t i = 0; i < profile->code_count; i++) {
        bool is_used = find_locations(profile, i);
        if (is_used || profile->code[i].is_program)
            write_mapping(profile, i);
        if (is_used)
            name_locations(profile, i);
    }
    for (uint32_t i = 0; i < profile->location_count; i++)
        write_location(profile, i);
}

static void write_times(struct own_profile *profile, const struct own_profile_times *times)
{
    char text[64];
    wire_writer_varint(&profile->out, PPROF_TIME_NANOS, times->time_unix_nano);
    wire_writer_varint(&profile->out, PPROF_DURATION_NANOS, times->duration_nano);
    snprintf(text, sizeof text, "%" PRIu64 " samples were lost", times->lost);
    if (times->lost > 0)
        add_text(profile, PPROF_COMMENT, text);
}

struct buffer *own_profile_finish(struct own_profile *profile,
                                  const struct own_profile_times *times)
{
    write_code(profile);
    write_times(profile, times);
    const struct slice parts[] = {wire_writer_slice(&profile->out),
                                  wire_writer_slice(&profile->strings)};
    struct buffer *pprof = compress_slices(COMPRESSION_GZIP, 0, false, parts, 2, NULL);
    wire_writer_deinit(&profile->out);
    wire_writer_deinit(&profile->strings);
    arena_deinit(&profile->arena);
    free(profile->locations);
    free(profile);
    return pprof;
}
