#include "core/formats/pprof_read.h"

#include "core/base/memory.h"
#include "core/base/text.h"
#include "core/data/utf8.h"
#include "core/data/wire.h"
#include "core/formats/id_map.h"
#include "core/formats/pprof.h"
#include "core/formats/profiles_builder.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

/* ---- the messages ---- */

enum kind { UNKNOWN, NUMBER, NUMBERS, RECORD };

struct schema {
    uint32_t field_count;
    struct schema_field {
        const char *name;
        enum kind kind;
    } fields[PPROF_FIELD_COUNT];
};

static const struct schema profile_schema = {
    PPROF_FIELD_COUNT,
    {[PPROF_SAMPLE_TYPE] = {"sample_type", RECORD},
     [PPROF_SAMPLE] = {"sample", RECORD},
     [PPROF_MAPPING] = {"mapping", RECORD},
     [PPROF_LOCATION] = {"location", RECORD},
     [PPROF_FUNCTION] = {"function", RECORD},
     [PPROF_STRING_TABLE] = {"string_table", RECORD},
     [PPROF_DROP_FRAMES] = {"drop_frames", NUMBER},
     [PPROF_KEEP_FRAMES] = {"keep_frames", NUMBER},
     [PPROF_TIME_NANOS] = {"time_nanos", NUMBER},
     [PPROF_DURATION_NANOS] = {"duration_nanos", NUMBER},
     [PPROF_PERIOD_TYPE] = {"period_type", RECORD},
     [PPROF_PERIOD] = {"period", NUMBER},
     [PPROF_COMMENT] = {"comment", NUMBERS},
     [PPROF_DEFAULT_SAMPLE_TYPE] = {"default_sample_type", NUMBER},
     [PPROF_DOC_URL] = {"doc_url", NUMBER}}};

static const struct schema value_type_schema = {
    PPROF_VALUE_TYPE_FIELD_COUNT,
    {[PPROF_VALUE_TYPE_TYPE] = {"type", NUMBER}, [PPROF_VALUE_TYPE_UNIT] = {"unit", NUMBER}}};

static const struct schema sample_schema = {PPROF_SAMPLE_FIELD_COUNT,
                                            {[PPROF_SAMPLE_LOCATION_ID] = {"location_id", NUMBERS},
                                             [PPROF_SAMPLE_VALUE] = {"value", NUMBERS},
                                             [PPROF_SAMPLE_LABEL] = {"label", RECORD}}};

static const struct schema label_schema = {PPROF_LABEL_FIELD_COUNT,
                                           {[PPROF_LABEL_KEY] = {"key", NUMBER},
                                            [PPROF_LABEL_STR] = {"str", NUMBER},
                                            [PPROF_LABEL_NUM] = {"num", NUMBER},
                                            [PPROF_LABEL_NUM_UNIT] = {"num_unit", NUMBER}}};

static const struct schema mapping_schema = {
    PPROF_MAPPING_FIELD_COUNT,
    {[PPROF_MAPPING_ID] = {"id", NUMBER},
     [PPROF_MAPPING_MEMORY_START] = {"memory_start", NUMBER},
     [PPROF_MAPPING_MEMORY_LIMIT] = {"memory_limit", NUMBER},
     [PPROF_MAPPING_FILE_OFFSET] = {"file_offset", NUMBER},
     [PPROF_MAPPING_FILENAME] = {"filename", NUMBER},
     [PPROF_MAPPING_BUILD_ID] = {"build_id", NUMBER},
     [PPROF_MAPPING_HAS_FUNCTIONS] = {"has_functions", NUMBER},
     [PPROF_MAPPING_HAS_FILENAMES] = {"has_filenames", NUMBER},
     [PPROF_MAPPING_HAS_LINE_NUMBERS] = {"has_line_numbers", NUMBER},
     [PPROF_MAPPING_HAS_INLINE_FRAMES] = {"has_inline_frames", NUMBER}}};

static const struct schema location_schema = {PPROF_LOCATION_FIELD_COUNT,
                                              {[PPROF_LOCATION_ID] = {"id", NUMBER},
                                               [PPROF_LOCATION_MAPPING_ID] = {"mapping_id", NUMBER},
                                               [PPROF_LOCATION_ADDRESS] = {"address", NUMBER},
                                               [PPROF_LOCATION_LINE] = {"line", RECORD},
                                               [PPROF_LOCATION_IS_FOLDED] = {"is_folded", NUMBER}}};

static const struct schema line_schema = {PPROF_LINE_FIELD_COUNT,
                                          {[PPROF_LINE_FUNCTION_ID] = {"function_id", NUMBER},
                                           [PPROF_LINE_LINE] = {"line", NUMBER},
                                           [PPROF_LINE_COLUMN] = {"column", NUMBER}}};

static const struct schema function_schema = {
    PPROF_FUNCTION_FIELD_COUNT,
    {[PPROF_FUNCTION_ID] = {"id", NUMBER},
     [PPROF_FUNCTION_NAME] = {"name", NUMBER},
     [PPROF_FUNCTION_SYSTEM_NAME] = {"system_name", NUMBER},
     [PPROF_FUNCTION_FILENAME] = {"filename", NUMBER},
     [PPROF_FUNCTION_START_LINE] = {"start_line", NUMBER}}};

/* ---- the reader ---- */

/* The ids of a table, each with its index in the builder. Nearly all writers number from 1, so most
 * ids are in an array. */
struct record_ids {
    uint32_t *dense; /* index + 1; 0: absent */
    uint64_t dense_size;
    struct id_map sparse; /* ids that are too large for the array; place: index + 1 */
};

struct value_type {
    uint64_t type, unit; /* indices into the string_table */
};

struct reader {
    struct profiles_builder *builder;
    struct slice pprof;
    const struct pprof_options *options;
    struct error *err;
    struct place {
        const char *record, *part; /* NULL: none */
        uint32_t index, part_index;
    } place;

    uint32_t counts[PPROF_FIELD_COUNT]; /* number of records */
    struct slice *strings;
    uint32_t *string_indices; /* indices in the builder; 0: not needed yet, or "" */
    struct record_ids mappings, functions, locations;
    struct id_map attributes_of; /* id: attribute_id; place: attribute in the builder + 1 */
    uint32_t flags[PPROF_MAPPING_FIELD_COUNT]; /* attributes of mappings; 0: not built yet */
    uint32_t folded;                           /* attribute of locations; 0: not built yet */

    struct value_type types[PPROF_SAMPLE_TYPES_MAX];
    uint32_t type_count;
    struct value_type period_type;
    uint64_t numbers[PPROF_FIELD_COUNT]; /* of the header */
    uint64_t *comments;
    uint32_t comment_count, comment_capacity;

    uint32_t profiles[PPROF_SAMPLE_TYPES_MAX]; /* profiles in the builder, by sample type */

    struct built_line *lines; /* of the location being read */
    uint32_t line_capacity;

    /* of the sample being read */
    uint32_t *frames;
    uint32_t frame_count, frame_capacity;
    int64_t values[PPROF_SAMPLE_TYPES_MAX];
    uint32_t value_count;
    uint32_t label_count, attribute_count;
    uint32_t attributes[PPROF_LABELS_MAX];
    uint32_t attribute_keys[PPROF_LABELS_MAX]; /* strings in the builder */
    struct span_labels ids;
};

/* Reports an error with its position, "sample[17].label[2].key: ...", and returns false. field may
 * be NULL. */
static bool refuse(struct reader *reader, const char *field, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static bool refuse(struct reader *reader, const char *field, const char *format, ...)
{
    struct text text = {0};
    const struct place *place = &reader->place;
    if (place->record)
        text_printf(&text, "%s[%" PRIu32 "]", place->record, place->index);
    if (place->part)
        text_printf(&text, ".%s[%" PRIu32 "]", place->part, place->part_index);
    if (field)
        text_printf(&text, "%s%s", text.size > 0 ? "." : "", field);
    text_append(&text, text.size > 0 ? ": " : "");
    va_list args;
    va_start(args, format);
    text_vprintf(&text, format, args);
    va_end(args);
    error_set(reader->err, "%s", text_string(&text));
    text_deinit(&text);
    return false;
}

/* Reads the next known field, which has the right wire type. Returns false at the end, and with
 * cursor->broken if something was refused. */
static bool next_field(struct reader *reader, struct wire_cursor *cursor,
                       const struct schema *schema, struct wire_field *field)
{
    while (wire_next(cursor, field)) {
        if (field->number >= schema->field_count)
            continue;
        const struct schema_field *known = &schema->fields[field->number];
        assert(known->kind != UNKNOWN); /* the schema has each number below its count */
        bool fits = (field->type == WIRE_VARINT && known->kind != RECORD) ||
                    (field->type == WIRE_BYTES && known->kind != NUMBER);
        if (fits)
            return true;
        refuse(reader, known->name, "has the wrong wire type: %u", (unsigned)field->type);
        cursor->broken = true;
        return false;
    }
    if (cursor->broken)
        refuse(reader, NULL, "is truncated, or not protobuf");
    return false;
}

/* Calls `take` for each value of a repeated number, packed or not. */
static bool each_number(struct reader *reader, const char *name, const struct wire_field *field,
                        bool (*take)(struct reader *reader, uint64_t number))
{
    if (field->type == WIRE_VARINT)
        return take(reader, field->value);
    struct wire_cursor packed = wire_cursor(field->bytes);
    uint64_t number;
    while (wire_packed_varint(&packed, &number))
        if (!take(reader, number))
            return false;
    return !packed.broken || refuse(reader, name, "is cut");
}

/* ---- ids ---- */

static bool make_ids(struct reader *reader, struct record_ids *ids, uint32_t table_size)
{
    ids->dense_size = (uint64_t)table_size * 2 + 16;
    ids->dense = profiles_builder_scratch(reader->builder, ids->dense_size, sizeof *ids->dense);
    ids->sparse.budget = profiles_builder_budget(reader->builder);
    return ids->dense != NULL;
}

static bool find_id(const struct record_ids *ids, uint64_t id, uint32_t *index_out)
{
    if (id < ids->dense_size) {
        *index_out = ids->dense[id] - 1;
        return ids->dense[id] != 0;
    }
    const struct id_entry *entry = id_map_find(&ids->sparse, id);
    *index_out = entry ? entry->place - 1 : 0;
    return entry != NULL;
}

static bool check_new_id(struct reader *reader, const struct record_ids *ids, uint64_t id)
{
    uint32_t index;
    if (id == 0)
        return refuse(reader, "id", "is 0");
    if (find_id(ids, id, &index))
        return refuse(reader, "id", "%" PRIu64 " appears twice", id);
    return true;
}

/* Adds an id to a map. Returns false if there is no room. */
static bool put_in_map(struct reader *reader, struct id_map *map, uint64_t id, uint32_t index)
{
    if (!profiles_builder_has_room(reader->builder, id_map_growth(map)))
        return false;
    id_map_put(map, id, index + 1);
    return true;
}

static bool put_new_id(struct reader *reader, struct record_ids *ids, uint64_t id, uint32_t index)
{
    if (id >= ids->dense_size)
        return put_in_map(reader, &ids->sparse, id, index);
    assert(ids->dense[id] == 0); /* check_new_id has checked it */
    ids->dense[id] = index + 1;
    return true;
}

static bool find_reference(struct reader *reader, const struct record_ids *ids, const char *field,
                           uint64_t id, uint32_t *index_out)
{
    return find_id(ids, id, index_out) ||
           refuse(reader, field, "%" PRIu64 " is not in the profile", id);
}

/* ---- strings ---- */

static bool check_string(struct reader *reader, const char *field, uint64_t index)
{
    return index < reader->counts[PPROF_STRING_TABLE] ||
           refuse(reader, field, "%" PRIu64 " is outside the string_table, which has %" PRIu32,
                  index, reader->counts[PPROF_STRING_TABLE]);
}

static bool check_strings(struct reader *reader, const struct schema *schema, uint32_t first,
                          uint32_t last, const uint64_t *numbers)
{
    for (uint32_t i = first; i <= last; i++)
        if (!check_string(reader, schema->fields[i].name, numbers[i]))
            return false;
    return true;
}

/* Returns the index of a string in the builder. */
static uint32_t string_index(struct reader *reader, uint64_t index)
{
    assert(index < reader->counts[PPROF_STRING_TABLE]); /* check_string has checked it */
    uint32_t *known = &reader->string_indices[index];
    if (*known == 0)
        *known = profiles_builder_utf8_string(reader->builder, reader->strings[index]);
    return *known;
}

/* Returns the id of an attribute with a text. An attribute contains its whole value, so each is
 * built once, however many labels or mappings have it. Keys are strings of the builder, which are
 * distinct; values are entries of the string_table, of which two may be equal. */
static uint64_t attribute_id(uint32_t key, uint64_t value)
{
    return (uint64_t)key << 32 | value;
}

static uint32_t make_attribute(struct reader *reader, struct slice key, struct slice text)
{
    if (!profiles_builder_work(reader->builder, key.size + text.size))
        return 0;
    return profiles_builder_attribute_string(reader->builder, key, text);
}

static uint32_t attribute_of(struct reader *reader, uint32_t key_index, struct slice key,
                             uint64_t value)
{
    assert(value < reader->counts[PPROF_STRING_TABLE]); /* check_string has checked it, too */
    uint64_t id = attribute_id(key_index, value);
    const struct id_entry *known = id_map_find(&reader->attributes_of, id);
    if (known)
        return known->place - 1;
    uint32_t attribute = make_attribute(reader, key, reader->strings[value]);
    put_in_map(reader, &reader->attributes_of, id, attribute);
    return attribute;
}

static bool read_string(struct reader *reader, struct slice text)
{
    assert(reader->place.index < reader->counts[PPROF_STRING_TABLE]);
    if (reader->place.index == 0 && text.size > 0)
        return refuse(reader, NULL, "is not empty");
    if (!utf8_is_valid(text))
        return refuse(reader, NULL, "is not valid UTF-8");
    reader->strings[reader->place.index] = text;
    return true;
}

/* ---- tables ---- */

/* Calls a function for each record of a table. survey has checked their outer structure. */
static bool each_record(struct reader *reader, uint32_t number,
                        bool (*read)(struct reader *reader, struct slice record))
{
    struct wire_cursor cursor = wire_cursor(reader->pprof);
    struct wire_field field;
    reader->place = (struct place){.record = profile_schema.fields[number].name};
    for (; wire_next_bytes(&cursor, number, &field); reader->place.index++)
        if (!read(reader, field.bytes))
            return false;
    assert(reader->place.index == reader->counts[number]); /* survey counted the same number */
    reader->place = (struct place){0};
    return true;
}

/* Reads a message of single numbers. */
static bool read_numbers(struct reader *reader, const struct schema *schema, struct slice record,
                         uint64_t *numbers)
{
    struct wire_cursor cursor = wire_cursor(record);
    struct wire_field field;
    while (next_field(reader, &cursor, schema, &field))
        numbers[field.number] = field.value;
    return !cursor.broken;
}

static bool is_hex(struct slice text)
{
    for (size_t i = 0; i < text.size; i++)
        if (text_hex_digit(text.data[i]) < 0)
            return false;
    return true;
}

/* Returns the attribute for a build id, whose key is one of two. */
static uint32_t build_id_attribute(struct reader *reader, uint64_t value)
{
    enum { BUILD_ID = 0 }; /* not the index of a key in the builder */
    const struct id_entry *known =
        id_map_find(&reader->attributes_of, attribute_id(BUILD_ID, value));
    if (known)
        return known->place - 1;
    struct slice key = is_hex(reader->strings[value]) ? SLICE("process.executable.build_id.gnu")
                                                      : SLICE("process.executable.build_id.go");
    return attribute_of(reader, BUILD_ID, key, value);
}

static size_t mapping_attributes(struct reader *reader, const uint64_t *numbers, uint32_t *out)
{
    static const char *const flags[PPROF_MAPPING_FIELD_COUNT] = {
        [PPROF_MAPPING_HAS_FUNCTIONS] = "pprof.mapping.has_functions",
        [PPROF_MAPPING_HAS_FILENAMES] = "pprof.mapping.has_filenames",
        [PPROF_MAPPING_HAS_LINE_NUMBERS] = "pprof.mapping.has_line_numbers",
        [PPROF_MAPPING_HAS_INLINE_FRAMES] = "pprof.mapping.has_inline_frames",
    };
    size_t count = 0;
    if (reader->strings[numbers[PPROF_MAPPING_BUILD_ID]].size > 0)
        out[count++] = build_id_attribute(reader, numbers[PPROF_MAPPING_BUILD_ID]);
    for (uint32_t i = PPROF_MAPPING_HAS_FUNCTIONS; i <= PPROF_MAPPING_HAS_INLINE_FRAMES; i++) {
        if (!numbers[i])
            continue;
        if (reader->flags[i] == 0)
            reader->flags[i] =
                profiles_builder_attribute_bool(reader->builder, slice_of_string(flags[i]), true);
        out[count++] = reader->flags[i];
    }
    return count;
}

static bool read_mapping(struct reader *reader, struct slice record)
{
    uint64_t numbers[PPROF_MAPPING_FIELD_COUNT] = {0};
    uint32_t attributes[PPROF_MAPPING_FIELD_COUNT];
    if (!read_numbers(reader, &mapping_schema, record, numbers) ||
        !check_new_id(reader, &reader->mappings, numbers[PPROF_MAPPING_ID]) ||
        !check_strings(reader, &mapping_schema, PPROF_MAPPING_FILENAME, PPROF_MAPPING_BUILD_ID,
                       numbers))
        return false;
    struct built_mapping mapping = {
        .memory_start = numbers[PPROF_MAPPING_MEMORY_START],
        .memory_limit = numbers[PPROF_MAPPING_MEMORY_LIMIT],
        .file_offset = numbers[PPROF_MAPPING_FILE_OFFSET],
        .filename = string_index(reader, numbers[PPROF_MAPPING_FILENAME]),
        .attributes = attributes,
        .attribute_count = mapping_attributes(reader, numbers, attributes)};
    return put_new_id(reader, &reader->mappings, numbers[PPROF_MAPPING_ID],
                      profiles_builder_mapping(reader->builder, &mapping));
}

static bool read_function(struct reader *reader, struct slice record)
{
    uint64_t numbers[PPROF_FUNCTION_FIELD_COUNT] = {0};
    if (!read_numbers(reader, &function_schema, record, numbers) ||
        !check_new_id(reader, &reader->functions, numbers[PPROF_FUNCTION_ID]) ||
        !check_strings(reader, &function_schema, PPROF_FUNCTION_NAME, PPROF_FUNCTION_FILENAME,
                       numbers))
        return false;
    struct built_function function = {
        .name = string_index(reader, numbers[PPROF_FUNCTION_NAME]),
        .system_name = string_index(reader, numbers[PPROF_FUNCTION_SYSTEM_NAME]),
        .filename = string_index(reader, numbers[PPROF_FUNCTION_FILENAME]),
        .start_line = (int64_t)numbers[PPROF_FUNCTION_START_LINE]};
    return put_new_id(reader, &reader->functions, numbers[PPROF_FUNCTION_ID],
                      profiles_builder_function(reader->builder, &function));
}

static bool read_line(struct reader *reader, struct slice record, struct built_line *line)
{
    uint64_t numbers[PPROF_LINE_FIELD_COUNT] = {0};
    if (!read_numbers(reader, &line_schema, record, numbers) ||
        !find_reference(reader, &reader->functions, "function_id", numbers[PPROF_LINE_FUNCTION_ID],
                        &line->function))
        return false;
    line->line = (int64_t)numbers[PPROF_LINE_LINE];
    line->column = (int64_t)numbers[PPROF_LINE_COLUMN];
    return true;
}

/* Makes room for one more line. */
static void grow_lines(struct reader *reader, size_t count)
{
    if (count < reader->line_capacity)
        return;
    reader->line_capacity = reader->line_capacity ? reader->line_capacity * 2 : 16;
    reader->lines = memory_grow(reader->lines, reader->line_capacity, sizeof *reader->lines);
    assert(count < reader->line_capacity);
}

static bool read_lines(struct reader *reader, struct slice record, struct built_location *location,
                       uint64_t *numbers)
{
    struct wire_cursor cursor = wire_cursor(record);
    struct wire_field field;
    while (next_field(reader, &cursor, &location_schema, &field)) {
        if (field.number != PPROF_LOCATION_LINE) {
            numbers[field.number] = field.value;
            continue;
        }
        if (location->line_count == PPROF_LINES_MAX)
            return refuse(reader, "line", "there are more than %d", PPROF_LINES_MAX);
        grow_lines(reader, location->line_count);
        reader->place.part = "line";
        reader->place.part_index = (uint32_t)location->line_count;
        if (!read_line(reader, field.bytes, &reader->lines[location->line_count++]))
            return false;
        reader->place.part = NULL;
    }
    return !cursor.broken;
}

static bool read_location(struct reader *reader, struct slice record)
{
    uint64_t numbers[PPROF_LOCATION_FIELD_COUNT] = {0};
    struct built_location location = {.line_count = 0};
    if (!read_lines(reader, record, &location, numbers) ||
        !check_new_id(reader, &reader->locations, numbers[PPROF_LOCATION_ID]))
        return false;
    if (numbers[PPROF_LOCATION_MAPPING_ID] != 0 &&
        !find_reference(reader, &reader->mappings, "mapping_id", numbers[PPROF_LOCATION_MAPPING_ID],
                        &location.mapping))
        return false;
    location.lines = reader->lines;
    location.address = numbers[PPROF_LOCATION_ADDRESS];
    if (numbers[PPROF_LOCATION_IS_FOLDED]) {
        if (reader->folded == 0)
            reader->folded = profiles_builder_attribute_bool(
                reader->builder, SLICE("pprof.location.is_folded"), true);
        location.attributes = &reader->folded;
        location.attribute_count = 1;
    }
    return put_new_id(reader, &reader->locations, numbers[PPROF_LOCATION_ID],
                      profiles_builder_location(reader->builder, &location));
}

/* ---- the header ---- */

static bool take_comment(struct reader *reader, uint64_t string)
{
    if (reader->comment_count == PPROF_COMMENTS_MAX)
        return refuse(reader, "comment", "there are more than %d", PPROF_COMMENTS_MAX);
    if (reader->comment_count == reader->comment_capacity) {
        reader->comment_capacity = reader->comment_capacity ? reader->comment_capacity * 2 : 16;
        reader->comments =
            memory_grow(reader->comments, reader->comment_capacity, sizeof *reader->comments);
    }
    assert(reader->comment_count < reader->comment_capacity);
    reader->comments[reader->comment_count++] = string;
    return true;
}

static bool read_value_type(struct reader *reader, struct slice record, struct value_type *out)
{
    uint64_t numbers[] = {0, out->type, out->unit};
    if (!read_numbers(reader, &value_type_schema, record, numbers))
        return false;
    *out = (struct value_type){numbers[PPROF_VALUE_TYPE_TYPE], numbers[PPROF_VALUE_TYPE_UNIT]};
    return true;
}

static bool survey_field(struct reader *reader, const struct wire_field *field)
{
    if (field->type == WIRE_VARINT)
        reader->numbers[field->number] = field->value;
    reader->counts[field->number]++;
    if (field->number == PPROF_COMMENT)
        return each_number(reader, "comment", field, take_comment);
    if (field->number == PPROF_PERIOD_TYPE)
        return read_value_type(reader, field->bytes, &reader->period_type);
    if (field->number != PPROF_SAMPLE_TYPE)
        return true;
    if (reader->type_count == PPROF_SAMPLE_TYPES_MAX)
        return refuse(reader, "sample_type", "there are more than %d", PPROF_SAMPLE_TYPES_MAX);
    return read_value_type(reader, field->bytes, &reader->types[reader->type_count++]);
}

/* The first pass: reads everything but tables and samples, and counts those. */
static bool survey(struct reader *reader)
{
    struct wire_cursor cursor = wire_cursor(reader->pprof);
    struct wire_field field;
    if (reader->pprof.size > UINT32_MAX)
        return refuse(reader, NULL, "is larger than 4 GiB");
    while (next_field(reader, &cursor, &profile_schema, &field))
        if (!survey_field(reader, &field))
            return false;
    if (cursor.broken)
        return false;
    if (reader->counts[PPROF_STRING_TABLE] == 0)
        return refuse(reader, "string_table", "is empty, must start with \"\"");
    return reader->type_count > 0 || refuse(reader, "sample_type", "there is none");
}

static bool check_value_type(struct reader *reader, const struct value_type *type)
{
    return check_string(reader, "type", type->type) && check_string(reader, "unit", type->unit);
}

static bool check_header(struct reader *reader)
{
    static const uint32_t strings[] = {PPROF_DROP_FRAMES, PPROF_KEEP_FRAMES,
                                       PPROF_DEFAULT_SAMPLE_TYPE, PPROF_DOC_URL};
    for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++)
        if (!check_strings(reader, &profile_schema, strings[i], strings[i], reader->numbers))
            return false;
    for (uint32_t i = 0; i < reader->comment_count; i++)
        if (!check_string(reader, "comment", reader->comments[i]))
            return false;
    reader->place.record = "sample_type";
    for (; reader->place.index < reader->type_count; reader->place.index++)
        if (!check_value_type(reader, &reader->types[reader->place.index]))
            return false;
    reader->place = (struct place){.record = "period_type"};
    if (!check_value_type(reader, &reader->period_type))
        return false;
    reader->place = (struct place){0};
    return true;
}

static size_t profile_attributes(struct reader *reader, uint32_t *out)
{
    static const struct {
        uint32_t field;
        const char *key;
    } texts[] = {{PPROF_DROP_FRAMES, "pprof.profile.drop_frames"},
                 {PPROF_KEEP_FRAMES, "pprof.profile.keep_frames"},
                 {PPROF_DOC_URL, "pprof.profile.doc_url"},
                 {PPROF_DEFAULT_SAMPLE_TYPE, "pprof.profile.default_sample_type"}};
    size_t count = 0;
    if (reader->options->metric_name.size > 0)
        out[count++] = profiles_builder_attribute_string(reader->builder, SLICE("__name__"),
                                                         reader->options->metric_name);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct slice text = reader->strings[reader->numbers[texts[i].field]];
        if (text.size > 0)
            out[count++] = profiles_builder_attribute_string(reader->builder,
                                                             slice_of_string(texts[i].key), text);
    }
    for (uint32_t i = 0; i < reader->comment_count; i++) {
        char key[64];
        snprintf(key, sizeof key, "pprof.profile.comment.%" PRIu32, i);
        out[count++] =
            make_attribute(reader, slice_of_string(key), reader->strings[reader->comments[i]]);
    }
    return count;
}

static uint64_t positive_or(uint64_t number, uint64_t otherwise)
{
    return (int64_t)number > 0 ? number : otherwise;
}

/* Begins a profile for each sample type. The first and the last type are swapped, because the
 * default of OTLP is the first. */
static void begin_profiles(struct reader *reader)
{
    enum { HEADER_TEXTS_MAX = 5 };
    uint32_t attributes[PPROF_COMMENTS_MAX + HEADER_TEXTS_MAX];
    struct built_profile profile = {
        .period = (int64_t)reader->numbers[PPROF_PERIOD],
        .time_unix_nano =
            positive_or(reader->numbers[PPROF_TIME_NANOS], reader->options->time_unix_nano),
        .duration_nano =
            positive_or(reader->numbers[PPROF_DURATION_NANOS], reader->options->duration_nano),
        .attributes = attributes,
        .attribute_count = profile_attributes(reader, attributes)};
    assert(profile.attribute_count <= sizeof attributes / sizeof attributes[0]);
    for (uint32_t i = 0; i < reader->type_count; i++) {
        uint32_t last = reader->type_count - 1;
        uint32_t type = i == 0 ? last : i == last ? 0 : i;
        profile.sample_type = string_index(reader, reader->types[type].type);
        profile.sample_unit = string_index(reader, reader->types[type].unit);
        profile.period_type = string_index(reader, reader->period_type.type);
        profile.period_unit = string_index(reader, reader->period_type.unit);
        profile.is_sibling = i > 0;
        reader->profiles[type] = profiles_builder_profile(reader->builder, &profile);
    }
}

/* ---- samples ---- */

static bool take_frame(struct reader *reader, uint64_t id)
{
    if (reader->frame_count == PPROF_FRAMES_MAX)
        return refuse(reader, "location_id", "there are more than %d", PPROF_FRAMES_MAX);
    if (reader->frame_count == reader->frame_capacity) {
        reader->frame_capacity = reader->frame_capacity ? reader->frame_capacity * 2 : 128;
        reader->frames =
            memory_grow(reader->frames, reader->frame_capacity, sizeof *reader->frames);
    }
    assert(reader->frame_count < reader->frame_capacity);
    return find_reference(reader, &reader->locations, "location_id", id,
                          &reader->frames[reader->frame_count++]);
}

static bool take_value(struct reader *reader, uint64_t value)
{
    if (reader->value_count < reader->type_count)
        reader->values[reader->value_count] = (int64_t)value;
    reader->value_count++;
    return true;
}

/* Whether the sample has no label with this key yet. Attributes of OTLP have one value, so the
 * first label counts. */
static bool is_new_attribute(struct reader *reader, uint32_t key)
{
    for (uint32_t i = 0; i < reader->attribute_count; i++)
        if (reader->attribute_keys[i] == key)
            return false;
    reader->attribute_keys[reader->attribute_count] = key;
    return true;
}

/* Keeps a label, unless it has no text, number or unit: as in pprof itself, such a label means
 * nothing. */
static void keep_label(struct reader *reader, const uint64_t *numbers)
{
    struct slice key = reader->strings[numbers[PPROF_LABEL_KEY]];
    struct slice text = reader->strings[numbers[PPROF_LABEL_STR]];
    struct slice unit = reader->strings[numbers[PPROF_LABEL_NUM_UNIT]];
    int64_t number = (int64_t)numbers[PPROF_LABEL_NUM];
    bool is_text = text.size > 0;
    if (key.size == 0 || (!is_text && number == 0 && unit.size == 0))
        return;
    if (is_text ? span_labels_take(&reader->ids, key, text)
                : span_labels_take_number(&reader->ids, key, number))
        return;
    uint32_t key_index = string_index(reader, numbers[PPROF_LABEL_KEY]);
    if (!is_new_attribute(reader, key_index))
        return;
    assert(reader->attribute_count < PPROF_LABELS_MAX);
    reader->attributes[reader->attribute_count++] =
        is_text
            ? attribute_of(reader, key_index, key, numbers[PPROF_LABEL_STR])
            : profiles_builder_attribute_int(reader->builder, key_index, number,
                                             string_index(reader, numbers[PPROF_LABEL_NUM_UNIT]));
}

static bool read_label(struct reader *reader, struct slice record)
{
    uint64_t numbers[PPROF_LABEL_FIELD_COUNT] = {0};
    if (reader->label_count == PPROF_LABELS_MAX)
        return refuse(reader, "label", "there are more than %d", PPROF_LABELS_MAX);
    reader->place.part = "label";
    reader->place.part_index = reader->label_count++;
    if (!read_numbers(reader, &label_schema, record, numbers) ||
        !check_strings(reader, &label_schema, PPROF_LABEL_KEY, PPROF_LABEL_STR, numbers) ||
        !check_string(reader, "num_unit", numbers[PPROF_LABEL_NUM_UNIT]))
        return false;
    if (numbers[PPROF_LABEL_STR] != 0 && numbers[PPROF_LABEL_NUM] != 0)
        return refuse(reader, NULL, "has both str and num");
    keep_label(reader, numbers);
    reader->place.part = NULL;
    return true;
}

static bool read_sample_field(struct reader *reader, const struct wire_field *field)
{
    switch (field->number) {
    case PPROF_SAMPLE_LOCATION_ID:
        return each_number(reader, "location_id", field, take_frame);
    case PPROF_SAMPLE_VALUE:
        return each_number(reader, "value", field, take_value);
    default:
        return read_label(reader, field->bytes);
    }
}

static void build_samples(struct reader *reader)
{
    assert(reader->value_count == reader->type_count);
    bool any = false;
    for (uint32_t i = 0; i < reader->type_count; i++)
        any |= reader->values[i] != 0;
    if (!any)
        return;
    span_labels_inherit(&reader->ids, &reader->options->upload);
    struct built_sample sample = {
        .stack = profiles_builder_stack(reader->builder, reader->frames, reader->frame_count),
        .link = span_labels_link(&reader->ids, reader->builder),
        .attributes = reader->attributes,
        .attribute_count = reader->attribute_count};
    for (uint32_t i = 0; i < reader->type_count; i++)
        if (reader->values[i] != 0)
            profiles_builder_sample(reader->builder, reader->profiles[i], &sample,
                                    reader->values[i]);
}

static bool read_sample(struct reader *reader, struct slice record)
{
    struct wire_cursor cursor = wire_cursor(record);
    struct wire_field field;
    reader->frame_count = reader->value_count = 0;
    reader->label_count = reader->attribute_count = 0;
    reader->ids = (struct span_labels){0};
    while (next_field(reader, &cursor, &sample_schema, &field))
        if (!read_sample_field(reader, &field))
            return false;
    if (cursor.broken)
        return false;
    if (reader->value_count != reader->type_count)
        return refuse(reader, "value", "has %" PRIu32 ", must have %" PRIu32 " like sample_type",
                      reader->value_count, reader->type_count);
    build_samples(reader);
    return profiles_builder_state(reader->builder) == PROFILES_BUILDER_FINE;
}

/* ---- the whole ---- */

static bool make_tables(struct reader *reader)
{
    uint32_t strings = reader->counts[PPROF_STRING_TABLE];
    reader->strings = profiles_builder_scratch(reader->builder, strings, sizeof *reader->strings);
    reader->string_indices =
        profiles_builder_scratch(reader->builder, strings, sizeof *reader->string_indices);
    return reader->strings && reader->string_indices &&
           make_ids(reader, &reader->mappings, reader->counts[PPROF_MAPPING]) &&
           make_ids(reader, &reader->functions, reader->counts[PPROF_FUNCTION]) &&
           make_ids(reader, &reader->locations, reader->counts[PPROF_LOCATION]);
}

static void free_reader(struct reader *reader)
{
    id_map_deinit(&reader->mappings.sparse);
    id_map_deinit(&reader->functions.sparse);
    id_map_deinit(&reader->locations.sparse);
    id_map_deinit(&reader->attributes_of);
    free(reader->frames);
    free(reader->lines);
    free(reader->comments);
    free(reader);
}

static bool read_profile(struct reader *reader)
{
    if (!survey(reader) || !make_tables(reader) ||
        !each_record(reader, PPROF_STRING_TABLE, read_string) || !check_header(reader) ||
        !each_record(reader, PPROF_MAPPING, read_mapping) ||
        !each_record(reader, PPROF_FUNCTION, read_function) ||
        !each_record(reader, PPROF_LOCATION, read_location))
        return false;
    begin_profiles(reader);
    return each_record(reader, PPROF_SAMPLE, read_sample);
}

bool pprof_read(struct profiles_builder *builder, struct slice pprof,
                const struct pprof_options *options, struct error *err)
{
    struct reader *reader = memory_zalloc(sizeof *reader);
    reader->builder = builder;
    reader->pprof = pprof;
    reader->options = options;
    reader->err = err;
    reader->attributes_of.budget = profiles_builder_budget(builder);
    profiles_builder_admit(builder, pprof.size);
    bool ok = read_profile(reader);
    free_reader(reader);
    return ok || profiles_builder_state(builder) != PROFILES_BUILDER_FINE;
}

/* A string that a sample type refers to. */
struct wanted_string {
    uint64_t index;
    struct slice *out;
};

static int by_index(const void *a, const void *b)
{
    const struct wanted_string *x = a, *y = b;
    return (x->index > y->index) - (x->index < y->index);
}

static void find_strings(struct slice pprof, struct wanted_string *wanted, size_t count)
{
    struct wire_cursor cursor = wire_cursor(pprof);
    struct wire_field field;
    uint64_t index = 0;
    qsort(wanted, count, sizeof *wanted, by_index);
    while (count > 0 && wire_next_bytes(&cursor, PPROF_STRING_TABLE, &field)) {
        for (; count > 0 && wanted->index == index; wanted++, count--)
            *wanted->out = field.bytes;
        index++;
    }
}

size_t pprof_sample_types(struct slice pprof, struct sample_type_name *out, size_t max)
{
    struct wanted_string wanted[2 * PPROF_SAMPLE_TYPES_MAX];
    struct error ignored;
    struct reader *reader = memory_zalloc(sizeof *reader);
    reader->pprof = pprof;
    reader->err = &ignored;
    size_t count = 0;
    if (survey(reader))
        count = reader->type_count < max ? reader->type_count : max;
    for (size_t i = 0; i < count; i++) {
        out[i] = (struct sample_type_name){.display_name = {0}};
        wanted[2 * i] = (struct wanted_string){reader->types[i].type, &out[i].type};
        wanted[2 * i + 1] = (struct wanted_string){reader->types[i].unit, &out[i].unit};
    }
    find_strings(pprof, wanted, 2 * count);
    free_reader(reader);
    return count;
}
