#include "core/formats/pprof_delta.h"

#include "core/base/budget.h"
#include "core/base/hash.h"
#include "core/base/index_table.h"
#include "core/base/memory.h"
#include "core/base/verdict.h"
#include "core/formats/pprof.h"
#include "core/formats/pprof_read.h"

#include <assert.h>
#include <inttypes.h>

enum {
    SCRATCH_MAX = 8,
    /* The share of the budget that one delta may keep, so that a target with a growing number of
     * samples does not use up the memory of all others. */
    KEPT_SHARE = 32,
    KEPT_MIN_BYTES = 1 << 20,
};
#define NOT_FIRST UINT32_MAX /* no row: an equal sample occurred before */

/* The kept data of a pprof: each distinct sample once, with the sums of equal samples. */
struct table {
    uint64_t types; /* hash of the sample types; a pprof with other types is not compared */
    uint32_t width; /* number of values of a sample that are replaced by differences */
    uint32_t count; /* samples */
    struct index_table by_key;
    uint64_t *keys;
    int64_t *values;
    size_t charged;
};

struct pprof_delta {
    struct budget *budget;
    enum pprof_delta_kind (*kind_of)(struct slice sample_type);
    struct table base; /* of the pprof that was kept last */
    struct table now;  /* of the last pprof */
    bool has_base;     /* of the last pprof */
};

enum pprof_delta_kind pprof_delta_usual(struct slice sample_type)
{
    static const char *const cumulative[] = {"alloc_objects", "alloc_space", "contentions",
                                             "delay"};
    for (size_t i = 0; i < sizeof cumulative / sizeof cumulative[0]; i++)
        if (slice_is(sample_type, cumulative[i]))
            return PPROF_DELTA_DIFFERENCE;
    return PPROF_DELTA_AS_IS;
}

struct pprof_delta *pprof_delta_new(struct budget *budget,
                                    enum pprof_delta_kind (*kind_of)(struct slice sample_type))
{
    struct pprof_delta *delta = memory_zalloc(sizeof *delta);
    delta->budget = budget;
    delta->kind_of = kind_of;
    return delta;
}

/* ---- tables ---- */

static void free_table(struct pprof_delta *delta, struct table *table)
{
    budget_release(delta->budget, table->charged);
    free(table->by_key.slots);
    free(table->keys);
    free(table->values);
    *table = (struct table){0};
}

void pprof_delta_free(struct pprof_delta *delta)
{
    if (!delta)
        return;
    free_table(delta, &delta->base);
    free_table(delta, &delta->now);
    free(delta);
}

bool pprof_delta_has_base(const struct pprof_delta *delta)
{
    return delta->has_base;
}

static size_t table_bytes(uint32_t samples, uint32_t width)
{
    const struct table *table = NULL;
    uint64_t rows = (uint64_t)samples + 1;
    return index_table_bytes(samples) + rows * sizeof *table->keys +
           rows * width * sizeof *table->values;
}

static bool make_table(struct pprof_delta *delta, struct table *table, uint32_t samples,
                       uint32_t width)
{
    uint64_t rows = (uint64_t)samples + 1;
    size_t size = table_bytes(samples, width);
    if (!budget_reserve(delta->budget, size))
        return false;
    *table = (struct table){.width = width, .charged = size};
    index_table_move(&table->by_key, memory_zalloc(index_table_bytes(samples)),
                     index_table_bytes(samples));
    table->keys = memory_zalloc(rows * sizeof *table->keys);
    table->values = memory_zalloc(rows * width * sizeof *table->values + 1);
    return true;
}

static bool find_key(const struct table *table, uint64_t key, struct index_probe *probe,
                     uint32_t *row_out)
{
    *probe = index_table_probe(&table->by_key, (uint32_t)key);
    while (index_table_next(&table->by_key, probe, row_out))
        if (table->keys[*row_out] == key)
            return true;
    return false;
}

/* Returns the values of a sample; NULL if it is absent. */
static const int64_t *find_values(const struct table *table, uint64_t key)
{
    struct index_probe probe;
    uint32_t row;
    return find_key(table, key, &probe, &row) ? &table->values[(size_t)row * table->width] : NULL;
}

static uint32_t put_key(struct table *table, uint64_t key)
{
    struct index_probe probe;
    uint32_t row;
    if (find_key(table, key, &probe, &row))
        return row;
    table->keys[table->count] = key;
    index_table_add(&table->by_key, &probe, table->count);
    return table->count++;
}

/* Shrinks a table, which was allocated with one row per sample. */
static void shrink(struct pprof_delta *delta, struct table *table)
{
    struct table small;
    if (table_bytes(table->count, table->width) == table->charged ||
        !make_table(delta, &small, table->count, table->width))
        return;
    small.types = table->types;
    for (uint32_t i = 0; i < table->count; i++)
        put_key(&small, table->keys[i]);
    assert(small.count == table->count);
    memcpy(small.values, table->values, (size_t)table->count * table->width * sizeof *small.values);
    free_table(delta, table);
    *table = small;
}

void pprof_delta_keep(struct pprof_delta *delta)
{
    if (!delta->now.keys)
        return;
    free_table(delta, &delta->base);
    delta->base = delta->now;
    delta->now = (struct table){0};
}

static bool may_keep(const struct pprof_delta *delta, const struct table *table)
{
    const struct budget *budget = delta->budget;
    size_t most = budget ? budget->limit_bytes / KEPT_SHARE : 0;
    if (most < KEPT_MIN_BYTES)
        most = KEPT_MIN_BYTES;
    return !budget || budget->limit_bytes == 0 || table_bytes(table->count, table->width) <= most;
}

/* Whether no value of a sample is smaller than in the base. */
static bool continues(const struct table *base, const struct table *now)
{
    if (!base->keys || now->width == 0 || base->types != now->types || base->width != now->width)
        return false;
    for (uint32_t i = 0; i < base->count; i++) {
        const int64_t *was = &base->values[(size_t)i * base->width];
        const int64_t *is = find_values(now, base->keys[i]);
        for (uint32_t v = 0; v < base->width; v++)
            if ((is ? is[v] : 0) < was[v])
                return false;
    }
    return true;
}

/* ---- reading ---- */

/* The ids of a table of the pprof, with a hash of the content of each. */
struct id_hashes {
    struct id_hash {
        uint64_t id, hash;
    } * items;
    struct index_table by_id;
};

struct reader {
    struct pprof_delta *delta;
    struct slice pprof;
    struct error *err;
    uint32_t counts[PPROF_FIELD_COUNT]; /* number of records */
    uint64_t *strings;                  /* hashes */
    struct id_hashes mappings, functions, locations;
    uint32_t *rows;             /* rows of the samples in the table */
    void *scratch[SCRATCH_MAX]; /* all of the allocations above */
    uint32_t scratch_count;
    size_t charged;
    uint32_t index; /* of the record being read */
    uint64_t types; /* hash */
    struct sample_type_name names[PPROF_SAMPLE_TYPES_MAX];
    uint32_t type_count;
    enum pprof_delta_kind kinds[PPROF_SAMPLE_TYPES_MAX];
    uint32_t width;
    int64_t values[PPROF_SAMPLE_TYPES_MAX]; /* of a sample */
    uint32_t value_count;
};

static uint64_t mix(uint64_t hash, uint64_t more)
{
    uint64_t both[] = {hash, more};
    return hash_bytes(slice_of(both, sizeof both));
}

/* Allocates zeroed memory. Returns NULL if there is no room. */
static void *take(struct reader *reader, uint64_t count, size_t element_size)
{
    size_t size = (size_t)(count + 1) * element_size;
    if (!budget_reserve(reader->delta->budget, size)) {
        error_set(reader->err, "%s", verdict_over_budget.text);
        return NULL;
    }
    reader->charged += size;
    assert(reader->scratch_count < SCRATCH_MAX);
    return reader->scratch[reader->scratch_count++] = memory_zalloc(size);
}

static bool make_hashes(struct reader *reader, struct id_hashes *hashes, uint32_t field)
{
    uint32_t count = reader->counts[field];
    size_t bytes = index_table_bytes(count);
    hashes->items = take(reader, count, sizeof *hashes->items);
    void *slots = hashes->items ? take(reader, bytes, 1) : NULL;
    if (slots)
        index_table_move(&hashes->by_id, slots, bytes);
    return slots != NULL;
}

static struct id_hash *find_id(const struct id_hashes *hashes, uint64_t id,
                               struct index_probe *probe)
{
    *probe = index_table_probe(&hashes->by_id, (uint32_t)hash_u64(id));
    for (uint32_t number; index_table_next(&hashes->by_id, probe, &number);)
        if (hashes->items[number].id == id)
            return &hashes->items[number];
    return NULL;
}

/* Returns the hash of an id; 0 if no record has it. */
static uint64_t hash_of_id(const struct id_hashes *hashes, uint64_t id)
{
    struct index_probe probe;
    const struct id_hash *found = find_id(hashes, id, &probe);
    return found ? found->hash : 0;
}

/* Stores the hash of an id. The last record with an id counts. */
static void put_hash(struct id_hashes *hashes, uint64_t id, uint64_t hash)
{
    struct index_probe probe;
    struct id_hash *found = find_id(hashes, id, &probe);
    if (!found) {
        found = &hashes->items[hashes->by_id.count];
        index_table_add(&hashes->by_id, &probe, hashes->by_id.count);
    }
    *found = (struct id_hash){id, hash};
}

static uint64_t string_hash(const struct reader *reader, uint64_t index)
{
    return index < reader->counts[PPROF_STRING_TABLE] ? reader->strings[index] : 0;
}

static bool check_whole(struct reader *reader, const struct wire_cursor *cursor)
{
    return !cursor->broken || error_set(reader->err, "the pprof is truncated, or not protobuf");
}

/* Reads a message of single numbers. */
static bool read_numbers(struct reader *reader, struct slice record, uint64_t *numbers,
                         uint32_t count)
{
    struct wire_cursor cursor = wire_cursor(record);
    struct wire_field field;
    while (wire_next(&cursor, &field))
        if (field.number < count && field.type == WIRE_VARINT)
            numbers[field.number] = field.value;
    return check_whole(reader, &cursor);
}

static bool count_records(struct reader *reader)
{
    struct wire_cursor cursor = wire_cursor(reader->pprof);
    struct wire_field field;
    if (reader->pprof.size > UINT32_MAX)
        return error_set(reader->err, "the pprof is larger than 4 GiB");
    while (wire_next(&cursor, &field))
        if (field.number < PPROF_FIELD_COUNT && field.type == WIRE_BYTES)
            reader->counts[field.number]++;
    return check_whole(reader, &cursor);
}

static bool each_record(struct reader *reader, uint32_t number,
                        bool (*read)(struct reader *reader, struct slice record))
{
    struct wire_cursor cursor = wire_cursor(reader->pprof);
    struct wire_field field;
    reader->index = 0;
    for (; wire_next_bytes(&cursor, number, &field); reader->index++)
        if (!read(reader, field.bytes))
            return false;
    return true;
}

static bool read_string(struct reader *reader, struct slice text)
{
    assert(reader->index < reader->counts[PPROF_STRING_TABLE]);
    reader->strings[reader->index] = hash_bytes(text);
    return true;
}

static bool read_sample_type(struct reader *reader, struct slice record)
{
    uint64_t numbers[PPROF_VALUE_TYPE_FIELD_COUNT] = {0};
    if (reader->type_count == PPROF_SAMPLE_TYPES_MAX)
        return error_set(reader->err, "sample_type: there are more than %d",
                         PPROF_SAMPLE_TYPES_MAX);
    if (!read_numbers(reader, record, numbers, PPROF_VALUE_TYPE_FIELD_COUNT))
        return false;
    assert(reader->index == reader->type_count);
    enum pprof_delta_kind kind = reader->delta->kind_of(reader->names[reader->index].type);
    reader->kinds[reader->type_count++] = kind;
    reader->width += kind == PPROF_DELTA_DIFFERENCE;
    reader->types = mix(mix(reader->types, string_hash(reader, numbers[PPROF_VALUE_TYPE_TYPE])),
                        string_hash(reader, numbers[PPROF_VALUE_TYPE_UNIT]));
    return true;
}

static bool read_mapping(struct reader *reader, struct slice record)
{
    uint64_t numbers[PPROF_MAPPING_FIELD_COUNT] = {0};
    if (!read_numbers(reader, record, numbers, PPROF_MAPPING_FIELD_COUNT))
        return false;
    put_hash(&reader->mappings, numbers[PPROF_MAPPING_ID],
             mix(string_hash(reader, numbers[PPROF_MAPPING_FILENAME]),
                 string_hash(reader, numbers[PPROF_MAPPING_BUILD_ID])));
    return true;
}

static bool read_function(struct reader *reader, struct slice record)
{
    uint64_t numbers[PPROF_FUNCTION_FIELD_COUNT] = {0};
    if (!read_numbers(reader, record, numbers, PPROF_FUNCTION_FIELD_COUNT))
        return false;
    uint64_t hash = numbers[PPROF_FUNCTION_START_LINE];
    for (uint32_t i = PPROF_FUNCTION_NAME; i <= PPROF_FUNCTION_FILENAME; i++)
        hash = mix(hash, string_hash(reader, numbers[i]));
    put_hash(&reader->functions, numbers[PPROF_FUNCTION_ID], hash);
    return true;
}

static bool read_line(struct reader *reader, struct slice record, uint64_t *hash)
{
    uint64_t numbers[PPROF_LINE_FIELD_COUNT] = {0};
    if (!read_numbers(reader, record, numbers, PPROF_LINE_FIELD_COUNT))
        return false;
    *hash = mix(*hash, hash_of_id(&reader->functions, numbers[PPROF_LINE_FUNCTION_ID]));
    *hash = mix(*hash, mix(numbers[PPROF_LINE_LINE], numbers[PPROF_LINE_COLUMN]));
    return true;
}

static bool read_location(struct reader *reader, struct slice record)
{
    uint64_t numbers[PPROF_LOCATION_FIELD_COUNT] = {0}, hash = 0;
    struct wire_cursor cursor = wire_cursor(record);
    struct wire_field field;
    while (wire_next(&cursor, &field)) {
        if (field.number < PPROF_LOCATION_FIELD_COUNT && field.type == WIRE_VARINT)
            numbers[field.number] = field.value;
        if (field.number == PPROF_LOCATION_LINE && field.type == WIRE_BYTES &&
            !read_line(reader, field.bytes, &hash))
            return false;
    }
    hash = mix(hash, mix(numbers[PPROF_LOCATION_ADDRESS],
                         hash_of_id(&reader->mappings, numbers[PPROF_LOCATION_MAPPING_ID])));
    put_hash(&reader->locations, numbers[PPROF_LOCATION_ID], hash);
    return check_whole(reader, &cursor);
}

/* ---- samples ---- */

static void take_number(struct reader *reader, uint32_t field, uint64_t number, uint64_t *hash)
{
    if (field == PPROF_SAMPLE_LOCATION_ID)
        *hash = mix(*hash, hash_of_id(&reader->locations, number));
    else if (reader->value_count++ < reader->type_count)
        reader->values[reader->value_count - 1] = (int64_t)number;
}

/* Adds the hash of a label; the order of labels does not matter. */
static bool add_label(struct reader *reader, struct slice record, uint64_t *labels)
{
    uint64_t numbers[PPROF_LABEL_FIELD_COUNT] = {0};
    if (!read_numbers(reader, record, numbers, PPROF_LABEL_FIELD_COUNT))
        return false;
    uint64_t name = mix(string_hash(reader, numbers[PPROF_LABEL_KEY]),
                        string_hash(reader, numbers[PPROF_LABEL_NUM_UNIT]));
    *labels +=
        mix(name, mix(string_hash(reader, numbers[PPROF_LABEL_STR]), numbers[PPROF_LABEL_NUM]));
    return true;
}

static bool read_sample_field(struct reader *reader, const struct wire_field *field,
                              uint64_t *stack, uint64_t *labels)
{
    if (field->number == PPROF_SAMPLE_LABEL && field->type == WIRE_BYTES)
        return add_label(reader, field->bytes, labels);
    if (field->number != PPROF_SAMPLE_LOCATION_ID && field->number != PPROF_SAMPLE_VALUE)
        return true;
    if (field->type == WIRE_VARINT) {
        take_number(reader, field->number, field->value, stack);
        return true;
    }
    if (field->type != WIRE_BYTES)
        return true;
    struct wire_cursor packed = wire_cursor(field->bytes);
    uint64_t number;
    while (wire_packed_varint(&packed, &number))
        take_number(reader, field->number, number, stack);
    return check_whole(reader, &packed);
}

/* Reads a sample, and its values to reader->values. */
static bool read_sample(struct reader *reader, struct slice record, uint64_t *key_out)
{
    uint64_t stack = 0, labels = 0;
    struct wire_cursor cursor = wire_cursor(record);
    struct wire_field field;
    reader->value_count = 0;
    while (wire_next(&cursor, &field))
        if (!read_sample_field(reader, &field, &stack, &labels))
            return false;
    *key_out = mix(stack, labels);
    if (cursor.broken || reader->value_count == reader->type_count)
        return check_whole(reader, &cursor);
    return error_set(reader->err,
                     "sample[%" PRIu32 "]: has %" PRIu32 " values, there are %" PRIu32
                     " sample types",
                     reader->index, reader->value_count, reader->type_count);
}

static int64_t add_within(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? (b > 0 ? INT64_MAX : INT64_MIN) : sum;
}

static int64_t subtract_within(int64_t a, int64_t b)
{
    int64_t difference;
    return __builtin_sub_overflow(a, b, &difference) ? (b < 0 ? INT64_MAX : INT64_MIN) : difference;
}

static bool note_sample(struct reader *reader, struct slice record)
{
    struct table *now = &reader->delta->now;
    uint64_t key;
    if (!read_sample(reader, record, &key))
        return false;
    assert(reader->index < reader->counts[PPROF_SAMPLE] && now->count <= reader->index);
    uint32_t known = now->count, row = put_key(now, key);
    reader->rows[reader->index] = now->count > known ? row : NOT_FIRST;
    int64_t *sums = &now->values[(size_t)row * now->width];
    for (uint32_t i = 0; i < reader->type_count; i++)
        if (reader->kinds[i] == PPROF_DELTA_DIFFERENCE) {
            *sums = add_within(*sums, reader->values[i]);
            sums++;
        }
    return true;
}

/* ---- writing ---- */

/* Replaces the values of a sample by the difference of its row. The first of several equal samples
 * gets the whole difference. */
static void take_difference(struct reader *reader, int64_t *values)
{
    const struct pprof_delta *delta = reader->delta;
    uint32_t row = reader->rows[reader->index], v = 0;
    assert(row == NOT_FIRST || row < delta->now.count);
    const int64_t *is = NULL, *was = NULL;
    if (row != NOT_FIRST && delta->has_base) {
        is = &delta->now.values[(size_t)row * delta->now.width];
        was = find_values(&delta->base, delta->now.keys[row]);
    }
    for (uint32_t i = 0; i < reader->type_count; i++) {
        if (reader->kinds[i] != PPROF_DELTA_AS_IS)
            values[i] = 0;
        if (reader->kinds[i] == PPROF_DELTA_DIFFERENCE && is)
            values[i] = subtract_within(is[v], was ? was[v] : 0);
        v += reader->kinds[i] == PPROF_DELTA_DIFFERENCE;
    }
}

static void write_sample(struct reader *reader, struct slice record, struct wire_writer *out)
{
    assert(reader->index < reader->counts[PPROF_SAMPLE]);
    uint64_t key, said = 0;
    bool fine = read_sample(reader, record, &key);
    assert(fine); /* the scan before has checked it */
    (void)fine;
    take_difference(reader, reader->values);
    for (uint32_t i = 0; i < reader->type_count; i++)
        said |= (uint64_t)reader->values[i];
    if (said == 0)
        return;
    size_t begun = wire_writer_begin(out, PPROF_SAMPLE);
    struct wire_cursor cursor = wire_cursor(record);
    struct wire_field field;
    while (wire_next(&cursor, &field))
        if (field.number != PPROF_SAMPLE_VALUE)
            wire_writer_raw(out, slice_of(field.start, (size_t)(field.end - field.start)));
    wire_writer_packed_u64(out, PPROF_SAMPLE_VALUE, (const uint64_t *)reader->values,
                           reader->type_count);
    wire_writer_end(out, begun);
}

/* Writes the difference. If there are cumulative values, the duration is left out, because it is
 * the lifetime of the process. */
static void write_pprof(struct reader *reader, struct wire_writer *out)
{
    struct wire_cursor cursor = wire_cursor(reader->pprof);
    struct wire_field field;
    reader->index = 0;
    while (wire_next(&cursor, &field)) {
        if (field.number == PPROF_SAMPLE && field.type == WIRE_BYTES) {
            write_sample(reader, field.bytes, out);
            reader->index++;
        } else if (field.number != PPROF_DURATION_NANOS || reader->width == 0) {
            wire_writer_raw(out, slice_of(field.start, (size_t)(field.end - field.start)));
        }
    }
}

/* ---- all of it ---- */

static bool read_tables(struct reader *reader)
{
    reader->strings = take(reader, reader->counts[PPROF_STRING_TABLE], sizeof *reader->strings);
    reader->rows = take(reader, reader->counts[PPROF_SAMPLE], sizeof *reader->rows);
    return reader->strings && reader->rows &&
           make_hashes(reader, &reader->mappings, PPROF_MAPPING) &&
           make_hashes(reader, &reader->functions, PPROF_FUNCTION) &&
           make_hashes(reader, &reader->locations, PPROF_LOCATION) &&
           each_record(reader, PPROF_STRING_TABLE, read_string) &&
           each_record(reader, PPROF_SAMPLE_TYPE, read_sample_type) &&
           each_record(reader, PPROF_MAPPING, read_mapping) &&
           each_record(reader, PPROF_FUNCTION, read_function) &&
           each_record(reader, PPROF_LOCATION, read_location);
}

static bool note_samples(struct reader *reader)
{
    struct pprof_delta *delta = reader->delta;
    free_table(delta, &delta->now);
    if (!make_table(delta, &delta->now, reader->counts[PPROF_SAMPLE], reader->width))
        return error_set(reader->err, "%s", verdict_over_budget.text);
    delta->now.types = reader->types;
    if (!each_record(reader, PPROF_SAMPLE, note_sample))
        return false;
    return may_keep(delta, &delta->now) ||
           error_set(reader->err, "has %" PRIu32 " different samples, more than fit into memory",
                     delta->now.count);
}

bool pprof_delta_next(struct pprof_delta *delta, struct slice pprof, struct wire_writer *out,
                      struct error *err)
{
    struct reader reader = {.delta = delta, .pprof = pprof, .err = err};
    pprof_sample_types(pprof, reader.names, PPROF_SAMPLE_TYPES_MAX);
    bool fine = count_records(&reader) && read_tables(&reader) && note_samples(&reader);
    if (fine) {
        delta->has_base = continues(&delta->base, &delta->now);
        write_pprof(&reader, out);
        shrink(delta, &delta->now);
    } else {
        free_table(delta, &delta->now);
    }
    for (uint32_t i = 0; i < reader.scratch_count; i++)
        free(reader.scratch[i]);
    budget_release(delta->budget, reader.charged);
    return fine;
}
