#include "core/formats/profiles_builder.h"

#include "core/base/arena.h"
#include "core/base/budget.h"
#include "core/base/hash.h"
#include "core/base/index_table.h"
#include "core/base/memory.h"
#include "core/base/saturate.h"
#include "core/base/text.h"
#include "core/data/dictionary.h"
#include "core/data/utf8.h"
#include "core/data/wire_writer.h"

#include <assert.h>

/* A request that contains only the zero value of every table. */
static const uint8_t zero_request[] = {
    /* clang-format off */
    PROFILES_DICTIONARY << 3 | WIRE_BYTES, 42,
    DICTIONARY_MAPPING_TABLE << 3 | WIRE_BYTES, 0,
    DICTIONARY_LOCATION_TABLE << 3 | WIRE_BYTES, 0,
    DICTIONARY_FUNCTION_TABLE << 3 | WIRE_BYTES, 0,
    DICTIONARY_LINK_TABLE << 3 | WIRE_BYTES, 28,
        LINK_TRACE_ID << 3 | WIRE_BYTES, TRACE_ID_SIZE, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        LINK_SPAN_ID << 3 | WIRE_BYTES, SPAN_ID_SIZE, 0, 0, 0, 0, 0, 0, 0, 0,
    DICTIONARY_STRING_TABLE << 3 | WIRE_BYTES, 0,
    DICTIONARY_ATTRIBUTE_TABLE << 3 | WIRE_BYTES, 0,
    DICTIONARY_STACK_TABLE << 3 | WIRE_BYTES, 0,
    /* clang-format on */
};

/* A value with its time, of a sum. */
struct timed_value {
    int64_t value;
    uint64_t time_unix_nano;
    uint32_t next; /* number + 1 of the next one of the sum; 0: none */
};

/* The timed values of a sum: numbers + 1. */
struct timed_values {
    uint32_t first, last;
    uint32_t count;
};

/* A sample to which profiles_builder_add may add. */
struct sum {
    uint32_t profile;
    uint32_t stack, link;
    uint32_t attribute_count : 31;
    uint32_t has_value : 1; /* `value` counts */
    int64_t value;
    struct timed_values *timed; /* NULL: none */
    uint32_t attributes[];
};

struct open_profile {
    struct open_profile *next; /* of the same resource */
    struct slice header;       /* encoded fields before the samples */
    struct wire_writer samples;
    uint32_t sample_count;
    bool is_sibling;
    bool is_wanted; /* it or a sibling has samples, or empty ones are kept */
};

struct open_resource {
    struct open_resource *next;
    struct slice resource, scope; /* payloads */
    struct open_profile *first, *last;
    size_t scope_size, size; /* of the payloads of ScopeProfiles and ResourceProfiles */
    bool is_wanted;          /* a profile of it is */
};

struct profiles_builder {
    struct budget *budget;
    size_t max_bytes;
    size_t admitted_bytes;
    uint64_t work;
    size_t charged_bytes; /* for samples; the arena charges its memory itself */
    enum profiles_builder_state state;
    bool keeps_empty;
    struct arena arena;
    struct message root;
    struct dictionary *dictionary;
    struct wire_writer scratch;
    struct open_resource *first, *last;
    struct open_profile **profiles; /* by number */
    uint32_t profile_count, profile_capacity;
    struct sum **sums; /* in the order of their first addition */
    struct index_table sums_by_hash;
    struct timed_value *timed; /* of all sums */
    uint32_t timed_count, timed_capacity;
    uint32_t *frames; /* for profiles_builder_frame: 1 + location, by string of the name */
    uint32_t frame_capacity;
};

struct profiles_builder *profiles_builder_new(struct budget *budget, size_t max_bytes)
{
    struct profiles_builder *builder = memory_zalloc(sizeof *builder);
    builder->budget = budget;
    builder->max_bytes = max_bytes;
    arena_init(&builder->arena, budget);
    message_init(&builder->root, slice_of(zero_request, sizeof zero_request));
    builder->dictionary = dictionary_new(&builder->root, &builder->arena);
    return builder;
}

void profiles_builder_free(struct profiles_builder *builder)
{
    if (!builder)
        return;
    for (uint32_t i = 0; i < builder->profile_count; i++)
        wire_writer_deinit(&builder->profiles[i]->samples);
    if (builder->budget)
        budget_release(builder->budget, builder->charged_bytes);
    wire_writer_deinit(&builder->scratch);
    free(builder->profiles);
    free(builder->sums);
    free(builder->sums_by_hash.slots);
    free(builder->timed);
    free(builder->frames);
    arena_deinit(&builder->arena);
    free(builder);
}

enum profiles_builder_state profiles_builder_state(const struct profiles_builder *builder)
{
    return builder->state;
}

struct budget *profiles_builder_budget(const struct profiles_builder *builder)
{
    return builder->budget;
}

void profiles_builder_admit(struct profiles_builder *builder, size_t plain_bytes)
{
    assert(plain_bytes <= SIZE_MAX / PROFILES_BUILDER_BYTES_PER_BYTE / 4);
    builder->admitted_bytes += plain_bytes;
}

bool profiles_builder_work(struct profiles_builder *builder, uint64_t amount)
{
    uint64_t most = PROFILES_BUILDER_WORK_MIN +
                    (uint64_t)PROFILES_BUILDER_WORK_PER_BYTE * builder->admitted_bytes;
    if (most > PROFILES_BUILDER_WORK_MAX)
        most = PROFILES_BUILDER_WORK_MAX;
    builder->work += amount;
    if (builder->work > most && builder->state == PROFILES_BUILDER_FINE)
        builder->state = PROFILES_BUILDER_TOO_LARGE;
    return builder->state == PROFILES_BUILDER_FINE;
}

static size_t most_bytes(const struct profiles_builder *builder)
{
    size_t most = PROFILES_BUILDER_BYTES_MIN +
                  (size_t)PROFILES_BUILDER_BYTES_PER_BYTE * builder->admitted_bytes;
    return most < builder->max_bytes ? most : builder->max_bytes;
}

bool profiles_builder_has_room(struct profiles_builder *builder, size_t bytes)
{
    size_t held = builder->arena.reserved_bytes + builder->charged_bytes;
    size_t most = most_bytes(builder);
    if (builder->state != PROFILES_BUILDER_FINE)
        return false;
    if (held > most || bytes > most - held)
        builder->state = PROFILES_BUILDER_TOO_LARGE;
    else if (!budget_has_room(builder->budget, bytes))
        builder->state = PROFILES_BUILDER_OVER_BUDGET;
    return builder->state == PROFILES_BUILDER_FINE;
}

/* Whether there is room for something small. The last addition may have exceeded a limit by a
 * block, or by doubling a table. */
static bool has_room(struct profiles_builder *builder)
{
    return profiles_builder_has_room(builder, 0);
}

void *profiles_builder_scratch(struct profiles_builder *builder, size_t count, size_t element_size)
{
    size_t size;
    if (__builtin_mul_overflow(count, element_size, &size))
        size = SIZE_MAX / 2;
    return profiles_builder_has_room(builder, size)
               ? arena_array(&builder->arena, count, element_size)
               : NULL;
}

static void charge(struct profiles_builder *builder, size_t bytes)
{
    builder->charged_bytes += bytes;
    if (builder->budget)
        budget_charge(builder->budget, bytes);
}

/* ---- the dictionary ---- */

static uint32_t intern_scratch(struct profiles_builder *builder, int table)
{
    return dictionary_add(builder->dictionary, table, wire_writer_slice(&builder->scratch));
}

/* Starts an entry, and does not keep the memory of a large previous one. */
static struct wire_writer *start_entry(struct profiles_builder *builder)
{
    enum { KEPT_MAX = 64 << 10 };
    wire_writer_clear(&builder->scratch);
    if (builder->scratch.capacity > KEPT_MAX)
        wire_writer_deinit(&builder->scratch);
    return &builder->scratch;
}

static struct slice make_utf8(struct profiles_builder *builder, struct slice text)
{
    struct wire_writer *fixed = start_entry(builder);
    for (size_t i = 0; i < text.size;) {
        size_t length = text_utf8_length(text.data + i, text.size - i);
        wire_writer_raw(fixed,
                        length > 0 ? slice_of(text.data + i, length) : SLICE("\xef\xbf\xbd"));
        i += length > 0 ? length : 1;
    }
    return wire_writer_slice(fixed);
}

static struct slice keep_scratch(struct profiles_builder *builder)
{
    return arena_copy(&builder->arena, wire_writer_slice(&builder->scratch));
}

/* Whether a text may be repaired: the result may have three times its size, and needs much more
 * work than a check. */
static bool may_repair(struct profiles_builder *builder, struct slice text)
{
    enum { WORK_PER_BYTE = 4 };
    if (text.size > PROFILES_BUILDER_REPAIR_MAX && builder->state == PROFILES_BUILDER_FINE)
        builder->state = PROFILES_BUILDER_TOO_LARGE;
    return text.size <= PROFILES_BUILDER_REPAIR_MAX &&
           profiles_builder_work(builder, WORK_PER_BYTE * text.size);
}

struct slice profiles_builder_repair(struct profiles_builder *builder, struct slice text)
{
    if (utf8_is_valid(text))
        return text;
    if (!may_repair(builder, text))
        return (struct slice){0};
    make_utf8(builder, text);
    return keep_scratch(builder);
}

uint32_t profiles_builder_utf8_string(struct profiles_builder *builder, struct slice text)
{
    if (text.size == 0 || !profiles_builder_has_room(builder, text.size))
        return 0;
    return dictionary_add(builder->dictionary, DICTIONARY_STRING_TABLE, text);
}

uint32_t profiles_builder_string(struct profiles_builder *builder, struct slice text)
{
    if (text.size == 0 || !profiles_builder_has_room(builder, text.size))
        return 0;
    if (!utf8_is_valid(text)) {
        if (!may_repair(builder, text))
            return 0;
        text = make_utf8(builder, text);
    }
    return dictionary_add(builder->dictionary, DICTIONARY_STRING_TABLE, text);
}

static uint32_t intern_attribute(struct profiles_builder *builder, uint32_t key,
                                 struct any_value value, uint32_t unit)
{
    key_value_and_unit_append(start_entry(builder), key, value, unit);
    return intern_scratch(builder, DICTIONARY_ATTRIBUTE_TABLE);
}

uint32_t profiles_builder_attribute_string(struct profiles_builder *builder, struct slice key,
                                           struct slice value)
{
    uint32_t key_index = profiles_builder_string(builder, key);
    if (!profiles_builder_has_room(builder, value.size))
        return 0;
    return intern_attribute(builder, key_index,
                            any_value_string(profiles_builder_repair(builder, value)), 0);
}

uint32_t profiles_builder_attribute_int(struct profiles_builder *builder, uint32_t key,
                                        int64_t value, uint32_t unit)
{
    if (!has_room(builder))
        return 0;
    return intern_attribute(builder, key, any_value_int(value), unit);
}

uint32_t profiles_builder_attribute_bool(struct profiles_builder *builder, struct slice key,
                                         bool value)
{
    uint32_t key_index = profiles_builder_string(builder, key);
    if (!has_room(builder))
        return 0;
    return intern_attribute(builder, key_index, any_value_bool(value), 0);
}

uint32_t profiles_builder_link(struct profiles_builder *builder, const uint8_t *trace_id,
                               const uint8_t *span_id)
{
    if (!has_room(builder))
        return 0;
    return dictionary_add_link(builder->dictionary,
                               slice_of(trace_id, trace_id ? TRACE_ID_SIZE : 0),
                               slice_of(span_id, span_id ? SPAN_ID_SIZE : 0));
}

uint32_t profiles_builder_mapping(struct profiles_builder *builder,
                                  const struct built_mapping *mapping)
{
    if (!has_room(builder))
        return 0;
    struct wire_writer *entry = start_entry(builder);
    wire_writer_varint(entry, MAPPING_MEMORY_START, mapping->memory_start);
    wire_writer_varint(entry, MAPPING_MEMORY_LIMIT, mapping->memory_limit);
    wire_writer_varint(entry, MAPPING_FILE_OFFSET, mapping->file_offset);
    wire_writer_varint(entry, MAPPING_FILENAME_STRINDEX, mapping->filename);
    wire_writer_packed_u32(entry, MAPPING_ATTRIBUTE_INDICES, mapping->attributes,
                           mapping->attribute_count);
    return intern_scratch(builder, DICTIONARY_MAPPING_TABLE);
}

uint32_t profiles_builder_function(struct profiles_builder *builder,
                                   const struct built_function *function)
{
    if (!has_room(builder))
        return 0;
    struct wire_writer *entry = start_entry(builder);
    wire_writer_varint(entry, FUNCTION_NAME_STRINDEX, function->name);
    wire_writer_varint(entry, FUNCTION_SYSTEM_NAME_STRINDEX, function->system_name);
    wire_writer_varint(entry, FUNCTION_FILENAME_STRINDEX, function->filename);
    wire_writer_varint(entry, FUNCTION_START_LINE, (uint64_t)function->start_line);
    return intern_scratch(builder, DICTIONARY_FUNCTION_TABLE);
}

uint32_t profiles_builder_location(struct profiles_builder *builder,
                                   const struct built_location *location)
{
    if (!has_room(builder))
        return 0;
    struct wire_writer *entry = start_entry(builder);
    wire_writer_varint(entry, LOCATION_MAPPING_INDEX, location->mapping);
    wire_writer_varint(entry, LOCATION_ADDRESS, location->address);
    for (size_t i = 0; i < location->line_count; i++) {
        size_t line = wire_writer_begin(entry, LOCATION_LINES);
        wire_writer_varint(entry, LINE_FUNCTION_INDEX, location->lines[i].function);
        wire_writer_varint(entry, LINE_LINE, (uint64_t)location->lines[i].line);
        wire_writer_varint(entry, LINE_COLUMN, (uint64_t)location->lines[i].column);
        wire_writer_end(entry, line);
    }
    wire_writer_packed_u32(entry, LOCATION_ATTRIBUTE_INDICES, location->attributes,
                           location->attribute_count);
    return intern_scratch(builder, DICTIONARY_LOCATION_TABLE);
}

/* Returns the element of `frames` for a string; NULL if there is no room. */
static uint32_t *frame_of(struct profiles_builder *builder, uint32_t string)
{
    if (string >= builder->frame_capacity) {
        size_t capacity = string < 128 ? 256 : (size_t)string * 2;
        size_t more = (capacity - builder->frame_capacity) * sizeof *builder->frames;
        if (!profiles_builder_has_room(builder, more))
            return NULL;
        charge(builder, more);
        builder->frames = memory_grow(builder->frames, capacity, sizeof *builder->frames);
        memset(builder->frames + builder->frame_capacity, 0, more);
        builder->frame_capacity = (uint32_t)capacity;
    }
    assert(string < builder->frame_capacity);
    return &builder->frames[string];
}

uint32_t profiles_builder_frame(struct profiles_builder *builder, struct slice function_name)
{
    struct built_function function = {.name = profiles_builder_string(builder, function_name)};
    uint32_t *known = frame_of(builder, function.name);
    if (!known)
        return 0;
    if (*known == 0) {
        struct built_line line = {.function = profiles_builder_function(builder, &function)};
        struct built_location location = {.lines = &line, .line_count = 1};
        *known = 1 + profiles_builder_location(builder, &location);
    }
    return *known - 1;
}

uint32_t profiles_builder_stack(struct profiles_builder *builder, const uint32_t *locations,
                                size_t count)
{
    if (!has_room(builder))
        return 0;
    struct wire_writer *entry = start_entry(builder);
    wire_writer_packed_u32(entry, STACK_LOCATION_INDICES, locations, count);
    return intern_scratch(builder, DICTIONARY_STACK_TABLE);
}

/* ---- resources and profiles ---- */

static struct slice encode_resource(struct profiles_builder *builder,
                                    const struct built_resource *from)
{
    struct wire_writer resource = {0};
    for (size_t i = 0; i < from->attribute_count; i++) {
        struct slice key = profiles_builder_repair(builder, from->attributes[i].key);
        struct slice value = profiles_builder_repair(builder, from->attributes[i].value);
        key_value_append(&resource, RESOURCE_ATTRIBUTES, key, any_value_string(value));
    }
    struct slice kept = arena_copy(&builder->arena, wire_writer_slice(&resource));
    wire_writer_deinit(&resource);
    return kept;
}

static size_t resource_bytes(const struct built_resource *from)
{
    size_t bytes = from->scope_name.size + from->scope_version.size;
    for (size_t i = 0; i < from->attribute_count; i++)
        bytes += from->attributes[i].key.size + from->attributes[i].value.size;
    return bytes;
}

void profiles_builder_resource(struct profiles_builder *builder, const struct built_resource *from)
{
    if (!profiles_builder_has_room(builder, resource_bytes(from)))
        return;
    struct open_resource *resource = arena_zalloc(&builder->arena, sizeof *resource);
    resource->resource = encode_resource(builder, from);
    struct slice name = profiles_builder_repair(builder, from->scope_name);
    struct slice version = profiles_builder_repair(builder, from->scope_version);
    struct wire_writer *scope = start_entry(builder);
    if (name.size > 0)
        wire_writer_bytes(scope, SCOPE_NAME, name);
    if (version.size > 0)
        wire_writer_bytes(scope, SCOPE_VERSION, version);
    resource->scope = keep_scratch(builder);
    *(builder->last ? &builder->last->next : &builder->first) = resource;
    builder->last = resource;
}

static void write_value_type(struct wire_writer *header, uint32_t field, uint32_t type,
                             uint32_t unit)
{
    size_t begun = wire_writer_begin(header, field);
    wire_writer_varint(header, VALUE_TYPE_TYPE_STRINDEX, type);
    wire_writer_varint(header, VALUE_TYPE_UNIT_STRINDEX, unit);
    wire_writer_end(header, begun);
}

static struct slice encode_profile(struct profiles_builder *builder,
                                   const struct built_profile *from)
{
    struct wire_writer *header = start_entry(builder);
    write_value_type(header, PROFILE_SAMPLE_TYPE, from->sample_type, from->sample_unit);
    wire_writer_fixed64(header, PROFILE_TIME_UNIX_NANO, from->time_unix_nano);
    wire_writer_varint(header, PROFILE_DURATION_NANO, from->duration_nano);
    if (from->period_type != 0 || from->period_unit != 0)
        write_value_type(header, PROFILE_PERIOD_TYPE, from->period_type, from->period_unit);
    wire_writer_varint(header, PROFILE_PERIOD, (uint64_t)from->period);
    wire_writer_packed_u32(header, PROFILE_ATTRIBUTE_INDICES, from->attributes,
                           from->attribute_count);
    return keep_scratch(builder);
}

uint32_t profiles_builder_profile(struct profiles_builder *builder,
                                  const struct built_profile *from)
{
    if (!has_room(builder))
        return 0;
    struct open_resource *resource = builder->last;
    assert(resource); /* profiles_builder_resource must be called first */
    if (builder->profile_count == builder->profile_capacity) {
        builder->profile_capacity = builder->profile_capacity ? builder->profile_capacity * 2 : 8;
        builder->profiles = memory_grow(builder->profiles, builder->profile_capacity,
                                        sizeof(struct open_profile *));
    }
    struct open_profile *profile = arena_zalloc(&builder->arena, sizeof *profile);
    profile->header = encode_profile(builder, from);
    profile->is_sibling = from->is_sibling;
    *(resource->last ? &resource->last->next : &resource->first) = profile;
    resource->last = profile;
    assert(builder->profile_count < builder->profile_capacity);
    builder->profiles[builder->profile_count] = profile;
    return builder->profile_count++;
}

void profiles_builder_keep_empty(struct profiles_builder *builder)
{
    builder->keeps_empty = true;
}

bool profiles_builder_keeps_empty(const struct profiles_builder *builder)
{
    return builder->keeps_empty;
}

/* ---- samples ---- */

/* Returns by how many bytes a writer grows for this many more bytes; writers double. */
static size_t growth_for(const struct wire_writer *writer, size_t more)
{
    return writer->capacity - writer->size < more ? writer->capacity + more : 0;
}

/* The values of a sample, and as many times or none. */
struct sample_values {
    const uint64_t *values;
    const uint64_t *times;
    size_t count;
};

static void write_times(struct wire_writer *samples, const uint64_t *times, size_t count)
{
    size_t begun = wire_writer_begin(samples, SAMPLE_TIMESTAMPS_UNIX_NANO);
    uint8_t *to = wire_writer_room(samples, count * sizeof *times);
    for (size_t i = 0; i < count; i++, to += sizeof *times)
        memcpy(to, &times[i], sizeof *times);
    wire_writer_wrote(samples, to);
    wire_writer_end(samples, begun);
}

static void write_sample(struct profiles_builder *builder, uint32_t number,
                         const struct built_sample *sample, const struct sample_values *values)
{
    enum { SAMPLE_ROOM = 64, ATTRIBUTE_ROOM = 5, VALUE_ROOM = 10 };
    if (builder->state != PROFILES_BUILDER_FINE)
        return;
    assert(number < builder->profile_count);
    assert(sample->stack < dictionary_count(builder->dictionary, DICTIONARY_STACK_TABLE));
    assert(sample->link < dictionary_count(builder->dictionary, DICTIONARY_LINK_TABLE));
    struct open_profile *profile = builder->profiles[number];
    struct wire_writer *samples = &profile->samples;
    size_t room = SAMPLE_ROOM + ATTRIBUTE_ROOM * sample->attribute_count;
    if (values->times)
        room += (VALUE_ROOM + sizeof(uint64_t)) * values->count;
    if (!profiles_builder_has_room(builder, growth_for(samples, room)))
        return;
    size_t capacity = samples->capacity;
    size_t begun = wire_writer_begin(samples, PROFILE_SAMPLES);
    wire_writer_varint(samples, SAMPLE_STACK_INDEX, sample->stack);
    wire_writer_packed_u32(samples, SAMPLE_ATTRIBUTE_INDICES, sample->attributes,
                           sample->attribute_count);
    wire_writer_varint(samples, SAMPLE_LINK_INDEX, sample->link);
    wire_writer_packed_u64(samples, SAMPLE_VALUES, values->values, values->count);
    if (values->times)
        write_times(samples, values->times, values->count);
    wire_writer_end(samples, begun);
    profile->sample_count++;
    charge(builder, samples->capacity - capacity);
}

void profiles_builder_sample(struct profiles_builder *builder, uint32_t number,
                             const struct built_sample *sample, int64_t value)
{
    const uint64_t values[] = {(uint64_t)value};
    write_sample(builder, number, sample, &(struct sample_values){.values = values, .count = 1});
}

static uint64_t sample_hash(uint32_t profile, const struct built_sample *sample)
{
    const uint32_t head[] = {profile, sample->stack, sample->link};
    uint64_t hash = hash_bytes(slice_of(head, sizeof head));
    if (sample->attribute_count == 0)
        return hash;
    return hash_u64(hash ^
                    hash_bytes(slice_of(sample->attributes,
                                        sample->attribute_count * sizeof *sample->attributes)));
}

static bool is_of(const struct sum *sum, uint32_t profile, const struct built_sample *sample)
{
    return sum->profile == profile && sum->stack == sample->stack && sum->link == sample->link &&
           sum->attribute_count == sample->attribute_count &&
           (sum->attribute_count == 0 || memcmp(sum->attributes, sample->attributes,
                                                sum->attribute_count * sizeof(uint32_t)) == 0);
}

/* There is room for as many sums as the table may have items. */
static void grow_sums(struct profiles_builder *builder)
{
    enum { SUMS_MIN = 128 };
    struct index_table *table = &builder->sums_by_hash;
    size_t bytes = index_table_growth(table, table->slots ? 1 : SUMS_MIN);
    size_t slots = bytes / sizeof *table->slots, old_slots = table->slots ? table->mask + 1 : 0;
    assert(slots > old_slots);
    charge(builder, (slots - old_slots) * (sizeof *table->slots + sizeof(struct sum *) / 2));
    builder->sums = memory_grow(builder->sums, slots / 2, sizeof(struct sum *));
    free(index_table_move(table, memory_zalloc(bytes), bytes));
}

static struct sum *new_sum(struct profiles_builder *builder, uint32_t profile,
                           const struct built_sample *sample)
{
    size_t list = sample->attribute_count * sizeof(uint32_t);
    struct sum *sum = arena_zalloc(&builder->arena, sizeof *sum + list);
    *sum = (struct sum){.profile = profile,
                        .stack = sample->stack,
                        .link = sample->link,
                        .attribute_count = (uint32_t)sample->attribute_count & INT32_MAX};
    if (list > 0)
        memcpy(sum->attributes, sample->attributes, list);
    return sum;
}

static struct sum *find_or_add_sum(struct profiles_builder *builder, uint32_t profile,
                                   const struct built_sample *sample)
{
    struct index_table *table = &builder->sums_by_hash;
    if (index_table_is_full(table))
        grow_sums(builder);
    struct index_probe probe = index_table_probe(table, (uint32_t)sample_hash(profile, sample));
    for (uint32_t i; index_table_next(table, &probe, &i);)
        if (is_of(builder->sums[i], profile, sample))
            return builder->sums[i];
    struct sum *sum = new_sum(builder, profile, sample);
    builder->sums[table->count] = sum;
    index_table_add(table, &probe, table->count);
    return sum;
}

void profiles_builder_add(struct profiles_builder *builder, uint32_t profile,
                          const struct built_sample *sample, int64_t value)
{
    if (!has_room(builder))
        return;
    assert(profile < builder->profile_count);
    struct sum *sum = find_or_add_sum(builder, profile, sample);
    sum->value = saturate_add(sum->value, value);
    sum->has_value = true;
}

/* Makes room for another timed value. Returns false if there is none. */
static bool reserve_timed(struct profiles_builder *builder)
{
    if (builder->timed_count < builder->timed_capacity)
        return true;
    uint32_t capacity = builder->timed_capacity ? builder->timed_capacity * 2 : 256;
    size_t more = (capacity - builder->timed_capacity) * sizeof *builder->timed;
    if (!profiles_builder_has_room(builder, more))
        return false;
    charge(builder, more);
    builder->timed = memory_grow(builder->timed, capacity, sizeof *builder->timed);
    builder->timed_capacity = capacity;
    return true;
}

void profiles_builder_add_at(struct profiles_builder *builder, uint32_t profile,
                             const struct built_sample *sample, int64_t value,
                             uint64_t time_unix_nano)
{
    if (!has_room(builder) || !reserve_timed(builder))
        return;
    assert(profile < builder->profile_count);
    struct sum *sum = find_or_add_sum(builder, profile, sample);
    builder->timed[builder->timed_count++] =
        (struct timed_value){.value = value, .time_unix_nano = time_unix_nano};
    if (!sum->timed)
        sum->timed = arena_zalloc(&builder->arena, sizeof *sum->timed);
    struct timed_values *timed = sum->timed;
    if (timed->count == 0)
        timed->first = builder->timed_count;
    else
        builder->timed[timed->last - 1].next = builder->timed_count;
    timed->last = builder->timed_count;
    timed->count++;
}

/* Writes the timed values of a sum. */
static void write_timed(struct profiles_builder *builder, const struct sum *sum,
                        const struct built_sample *sample)
{
    size_t size = sum->timed->count * sizeof(uint64_t);
    if (!profiles_builder_has_room(builder, 2 * size))
        return;
    uint64_t *values = memory_alloc(2 * size), *times = values + sum->timed->count;
    size_t count = 0;
    for (uint32_t i = sum->timed->first; i != 0; i = builder->timed[i - 1].next, count++) {
        values[count] = (uint64_t)builder->timed[i - 1].value;
        times[count] = builder->timed[i - 1].time_unix_nano;
    }
    assert(count == sum->timed->count);
    write_sample(builder, sum->profile, sample, &(struct sample_values){values, times, count});
    free(values);
}

static void write_sums(struct profiles_builder *builder)
{
    for (uint32_t i = 0; i < builder->sums_by_hash.count; i++) {
        const struct sum *sum = builder->sums[i];
        struct built_sample sample = {.stack = sum->stack,
                                      .link = sum->link,
                                      .attributes = sum->attributes,
                                      .attribute_count = sum->attribute_count};
        if (sum->has_value)
            profiles_builder_sample(builder, sum->profile, &sample, sum->value);
        if (sum->timed)
            write_timed(builder, sum, &sample);
    }
}

/* ---- the whole ---- */

/* Whether this profile or a sibling after it has samples. */
static bool has_samples(const struct open_profile *profile)
{
    const struct open_profile *p = profile;
    do
        if (p->sample_count > 0)
            return true;
    while ((p = p->next) && p->is_sibling);
    return false;
}

/* Returns the size of a profile in its scope, with tag and length. */
static size_t profile_size(const struct open_profile *profile)
{
    return wire_size_bytes(SCOPE_PROFILES_PROFILES, profile->header.size + profile->samples.size);
}

/* Computes all sizes, and returns that of the resource in the request; 0 if it is left out. */
static size_t measure_resource(struct open_resource *resource, bool with_empty)
{
    assert(resource->size == 0); /* measure_resource is called once */
    bool are_wanted = false;
    resource->scope_size =
        resource->scope.size > 0 ? wire_size_bytes(SCOPE_PROFILES_SCOPE, resource->scope.size) : 0;
    for (struct open_profile *p = resource->first; p; p = p->next) {
        if (!p->is_sibling)
            are_wanted = with_empty || has_samples(p);
        p->is_wanted = are_wanted;
        resource->is_wanted |= are_wanted;
        resource->scope_size += are_wanted ? profile_size(p) : 0;
    }
    resource->size = wire_size_bytes(RESOURCE_PROFILES_RESOURCE, resource->resource.size) +
                     wire_size_bytes(RESOURCE_PROFILES_SCOPE_PROFILES, resource->scope_size);
    return resource->is_wanted ? wire_size_bytes(PROFILES_RESOURCE_PROFILES, resource->size) : 0;
}

static uint8_t *write_begin(uint8_t *to, uint32_t number, size_t payload)
{
    return wire_write_varint(wire_write_tag(to, number, WIRE_BYTES), payload);
}

static uint8_t *write_raw(uint8_t *to, struct slice bytes)
{
    if (bytes.size > 0)
        memcpy(to, bytes.data, bytes.size);
    return to + bytes.size;
}

/* Writes a profile, and frees its samples, so that they are not in memory twice. */
static uint8_t *write_profile(uint8_t *to, struct open_profile *profile)
{
    assert(profile->is_wanted);
    to = write_begin(to, SCOPE_PROFILES_PROFILES, profile->header.size + profile->samples.size);
    to = write_raw(to, profile->header);
    to = write_raw(to, wire_writer_slice(&profile->samples));
    wire_writer_deinit(&profile->samples);
    return to;
}

static uint8_t *write_resource(uint8_t *to, const struct open_resource *resource)
{
    to = write_begin(to, PROFILES_RESOURCE_PROFILES, resource->size);
    to = wire_write_bytes(to, RESOURCE_PROFILES_RESOURCE, resource->resource);
    to = write_begin(to, RESOURCE_PROFILES_SCOPE_PROFILES, resource->scope_size);
    if (resource->scope.size > 0)
        to = wire_write_bytes(to, SCOPE_PROFILES_SCOPE, resource->scope);
    for (struct open_profile *p = resource->first; p; p = p->next)
        if (p->is_wanted)
            to = write_profile(to, p);
    return to;
}

static struct buffer *take_buffer(struct profiles_builder *builder, size_t size)
{
    struct buffer *request = buffer_new(size, builder->budget);
    if (!request)
        builder->state = PROFILES_BUILDER_OVER_BUDGET;
    return request;
}

static uint32_t count_samples(const struct profiles_builder *builder)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < builder->profile_count; i++)
        count += builder->profiles[i]->sample_count;
    return count;
}

struct buffer *profiles_builder_finish(struct profiles_builder *builder, uint32_t *samples)
{
    size_t size = 0;
    write_sums(builder);
    *samples = count_samples(builder);
    if (!has_room(builder))
        return NULL;
    wire_writer_deinit(&builder->scratch);
    for (struct open_resource *r = builder->first; r; r = r->next)
        size += measure_resource(r, builder->keeps_empty || *samples == 0);
    size_t dictionary_size = message_measure(&builder->root);
    struct buffer *request = take_buffer(builder, size + dictionary_size);
    if (!request)
        return NULL;
    uint8_t *to = request->data;
    for (const struct open_resource *r = builder->first; r; r = r->next)
        if (r->is_wanted)
            to = write_resource(to, r);
    assert(to == request->data + size);
    to = message_write(&builder->root, to);
    assert(to == request->data + size + dictionary_size);
    request->size = size + dictionary_size;
    return request;
}
