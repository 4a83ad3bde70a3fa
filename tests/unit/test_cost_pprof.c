/* Each table and each reference of a pprof, and of one that is scraped: see cost.h. */
#include "core/formats/pprof_read.h"
#include "tests/unit/cost_uploads.h"

#include <stdio.h>

static void put_string(struct wire_writer *out, const char *text)
{
    wire_writer_bytes(out, PPROF_STRING_TABLE, slice_of_string(text));
}

/* Strings: 0 "", 1 alloc_space, 2 key, 3 a long text of c. A location, so that samples have a
 * stack. */
static void put_pprof_head(struct wire_writer *out, const char *key, int c, size_t size)
{
    RECORD(out, PPROF_SAMPLE_TYPE, 1, 1);
    put_string(out, "");
    put_string(out, "alloc_space");
    put_string(out, key);
    put_repeated(out, PPROF_STRING_TABLE, c, size);
    RECORD(out, PPROF_LOCATION, 1);
}

/* Writes a sample of one frame with a label. */
static void put_labelled(struct wire_writer *out, uint64_t key, uint64_t text, uint64_t number,
                         uint64_t unit)
{
    size_t sample = wire_writer_begin(out, PPROF_SAMPLE);
    wire_writer_varint(out, PPROF_SAMPLE_LOCATION_ID, 1);
    wire_writer_varint(out, PPROF_SAMPLE_VALUE, 1);
    RECORD(out, PPROF_SAMPLE_LABEL, key, text, number, unit);
    wire_writer_end(out, sample);
}

static void label_texts(struct wire_writer *out, size_t size)
{
    put_pprof_head(out, "key", 'x', size / 2);
    while (out->size < size)
        put_labelled(out, 2, 3, 0, 0);
}

static void label_keys(struct wire_writer *out, size_t size)
{
    put_pprof_head(out, "value", 'x', size / 2);
    while (out->size < size)
        put_labelled(out, 3, 2, 0, 0);
}

static void label_keys_of_numbers(struct wire_writer *out, size_t size)
{
    put_pprof_head(out, "", 'x', size / 2);
    for (uint64_t i = 1; out->size < size; i++)
        put_labelled(out, 3, 0, i, 0);
}

static void label_units(struct wire_writer *out, size_t size)
{
    put_pprof_head(out, "key", 'x', size / 2);
    for (uint64_t i = 1; out->size < size; i++)
        put_labelled(out, 2, 0, i, 3);
}

static void label_decimal_ids(struct wire_writer *out, size_t size)
{
    put_pprof_head(out, "span id", '0', size / 2);
    while (out->size < size)
        put_labelled(out, 2, 3, 0, 0);
}

static void put_names(struct wire_writer *out, size_t size)
{
    char name[16];
    for (unsigned i = 0; out->size < size; i++) {
        snprintf(name, sizeof name, "%u", i);
        put_string(out, name);
    }
}

/* Every key refers to the one long text, so each attribute contains all of it. */
static void label_keys_by_texts(struct wire_writer *out, size_t size)
{
    put_pprof_head(out, "key", 'x', size / 4);
    put_names(out, size / 2);
    for (uint64_t i = 4; out->size < size; i++)
        put_labelled(out, i, 3, 0, 0);
}

/* Many strings with the same text: they give one result, however many there are. */
static void label_equal_keys(struct wire_writer *out, size_t size)
{
    put_pprof_head(out, "key", 'x', size / 4);
    uint64_t count = 0;
    do
        put_string(out, "key of a label");
    while (count++, out->size < size / 2);
    for (uint64_t i = 0; out->size < size; i++)
        put_labelled(out, 4 + i % count, 3, 0, 0);
}

static void label_texts_by_texts(struct wire_writer *out, size_t size)
{
    enum { TEXTS = 64, KEYS = 64 };
    put_pprof_head(out, "", 'x', 1);
    for (int i = 0; i < TEXTS; i++)
        put_repeated(out, PPROF_STRING_TABLE, 'x', size / 2 / TEXTS);
    for (int i = 0; i < KEYS; i++)
        put_string(out, (const char[]){'k', (char)('0' + i), 0});
    for (uint64_t i = 0; out->size < size; i++)
        put_labelled(out, 4 + TEXTS + i % KEYS, 4 + i / KEYS % TEXTS, 0, 0);
}

static void labels_hundred_a_sample(struct wire_writer *out, size_t size)
{
    put_pprof_head(out, "x", 'x', 1);
    for (int i = 0; i < PPROF_LABELS_MAX; i++)
        put_string(out, (const char[]){'k', (char)('0' + i / 10), (char)('0' + i % 10), 0});
    while (out->size < size) {
        size_t sample = wire_writer_begin(out, PPROF_SAMPLE);
        wire_writer_varint(out, PPROF_SAMPLE_VALUE, 1);
        for (uint64_t i = 0; i < PPROF_LABELS_MAX; i++)
            RECORD(out, PPROF_SAMPLE_LABEL, 4 + i, 2);
        wire_writer_end(out, sample);
    }
}

static void labels_by_sample_types(struct wire_writer *out, size_t size)
{
    put_pprof_head(out, "x", 'x', 1);
    for (int i = 1; i < PPROF_SAMPLE_TYPES_MAX; i++)
        RECORD(out, PPROF_SAMPLE_TYPE, 1, 1);
    for (int i = 0; i < PPROF_LABELS_MAX; i++)
        put_string(out, (const char[]){'k', (char)('0' + i / 10), (char)('0' + i % 10), 0});
    while (out->size < size) {
        size_t sample = wire_writer_begin(out, PPROF_SAMPLE);
        for (int i = 0; i < PPROF_SAMPLE_TYPES_MAX; i++)
            wire_writer_varint(out, PPROF_SAMPLE_VALUE, 1);
        for (uint64_t i = 0; i < PPROF_LABELS_MAX; i++)
            RECORD(out, PPROF_SAMPLE_LABEL, 4 + i, 2);
        wire_writer_end(out, sample);
    }
}

/* Writes a sample at the end, so that the profile is not empty. */
static void put_sample(struct wire_writer *out)
{
    RECORD(out, PPROF_SAMPLE, 1, 1);
}

static void mapping_build_ids(struct wire_writer *out, size_t size)
{
    put_pprof_head(out, "", 'a', size / 2);
    for (uint64_t i = 1; out->size < size; i++)
        RECORD(out, PPROF_MAPPING, i, i, 0, 0, 0, 3);
    put_sample(out);
}

static void mapping_build_ids_no_hex(struct wire_writer *out, size_t size)
{
    put_pprof_head(out, "", 'x', size / 2);
    for (uint64_t i = 1; out->size < size; i++)
        RECORD(out, PPROF_MAPPING, i, i, 0, 0, 0, 3);
    put_sample(out);
}

static void mapping_filenames(struct wire_writer *out, size_t size)
{
    put_pprof_head(out, "", 'x', size / 2);
    for (uint64_t i = 1; out->size < size; i++)
        RECORD(out, PPROF_MAPPING, i, i, 0, 0, 3, 0, 1, 1, 1, 1);
    put_sample(out);
}

static void function_texts(struct wire_writer *out, size_t size)
{
    put_pprof_head(out, "", 'x', size / 2);
    for (uint64_t i = 1; out->size < size; i++)
        RECORD(out, PPROF_FUNCTION, i, 3, 3, 3, i);
    put_sample(out);
}

static void location_references(struct wire_writer *out, size_t size)
{
    put_pprof_head(out, "", 'x', size / 8);
    RECORD(out, PPROF_MAPPING, 1, 0, 0, 0, 3);
    RECORD(out, PPROF_FUNCTION, 1, 3);
    for (uint64_t i = 2; out->size < size; i++) {
        size_t location = wire_writer_begin(out, PPROF_LOCATION);
        wire_writer_varint(out, PPROF_LOCATION_ID, i);
        wire_writer_varint(out, PPROF_LOCATION_MAPPING_ID, 1);
        RECORD(out, PPROF_LOCATION_LINE, 1, i);
        wire_writer_varint(out, PPROF_LOCATION_IS_FOLDED, 1);
        wire_writer_end(out, location);
    }
    put_sample(out);
}

static void location_lines(struct wire_writer *out, size_t size)
{
    put_pprof_head(out, "", 'x', 1);
    RECORD(out, PPROF_FUNCTION, 1, 3);
    for (uint64_t i = 2; out->size < size; i++) {
        size_t location = wire_writer_begin(out, PPROF_LOCATION);
        wire_writer_varint(out, PPROF_LOCATION_ID, i);
        for (int k = 0; k < PPROF_LINES_MAX; k++)
            RECORD(out, PPROF_LOCATION_LINE, 1);
        wire_writer_end(out, location);
    }
    put_sample(out);
}

/* Location ids of one byte; the location itself is at the end of its table. */
static void sample_locations(struct wire_writer *out, size_t size)
{
    enum { FRAMES = 4000 };
    uint64_t ids[FRAMES];
    put_pprof_head(out, "", 'x', 1);
    RECORD(out, PPROF_FUNCTION, 1, 3);
    for (uint64_t i = 200; out->size < size / 4; i++)
        RECORD(out, PPROF_LOCATION, i, 0, i);
    for (uint64_t i = 2; i < 128; i++)
        RECORD(out, PPROF_LOCATION, i, 0, i);
    for (uint64_t n = 0; out->size < size; n++) {
        size_t sample = wire_writer_begin(out, PPROF_SAMPLE);
        for (uint64_t i = 0; i < FRAMES; i++)
            ids[i] = 2 + (i + (i < 8 ? n >> (4 * i) : 0)) % 126;
        wire_writer_packed_u64(out, PPROF_SAMPLE_LOCATION_ID, ids, FRAMES);
        wire_writer_varint(out, PPROF_SAMPLE_VALUE, 1);
        wire_writer_end(out, sample);
    }
}

static void sparse_ids(struct wire_writer *out, size_t size)
{
    put_pprof_head(out, "", 'x', 1);
    for (uint64_t i = 1; out->size < size; i++) {
        uint64_t id = i << 40;
        RECORD(out, PPROF_FUNCTION, id, 3);
        RECORD(out, PPROF_LOCATION, id);
        RECORD(out, PPROF_MAPPING, id);
    }
    put_sample(out);
}

static void small_samples(struct wire_writer *out, size_t size)
{
    put_pprof_head(out, "", 'x', 1);
    while (out->size < size)
        put_sample(out);
}

static void empty_strings(struct wire_writer *out, size_t size)
{
    put_pprof_head(out, "", 'x', 1);
    put_sample(out);
    while (out->size < size)
        put_string(out, "");
}

static void sample_types(struct wire_writer *out, size_t size)
{
    put_pprof_head(out, "", 'x', size);
    for (int i = 1; i < PPROF_SAMPLE_TYPES_MAX; i++)
        RECORD(out, PPROF_SAMPLE_TYPE, 3, 3);
    RECORD(out, PPROF_PERIOD_TYPE, 3, 3);
    size_t sample = wire_writer_begin(out, PPROF_SAMPLE);
    for (int i = 0; i < PPROF_SAMPLE_TYPES_MAX; i++)
        wire_writer_varint(out, PPROF_SAMPLE_VALUE, 1);
    wire_writer_end(out, sample);
}

static void header_texts(struct wire_writer *out, size_t size)
{
    put_pprof_head(out, "", 'x', size);
    put_sample(out);
    wire_writer_varint(out, PPROF_DROP_FRAMES, 3);
    wire_writer_varint(out, PPROF_KEEP_FRAMES, 3);
    wire_writer_varint(out, PPROF_DOC_URL, 3);
    wire_writer_varint(out, PPROF_DEFAULT_SAMPLE_TYPE, 3);
}

static void header_comments(struct wire_writer *out, size_t size)
{
    put_pprof_head(out, "", 'x', size);
    put_sample(out);
    for (int i = 0; i < PPROF_COMMENTS_MAX; i++)
        wire_writer_varint(out, PPROF_COMMENT, 3);
}

/* The names of the sample types are the last strings. */
static void late_sample_types(struct wire_writer *out, size_t size)
{
    put_string(out, "");
    while (out->size < size)
        put_string(out, "");
    uint64_t last = (out->size - 2) / 2;
    for (int i = 0; i < PPROF_SAMPLE_TYPES_MAX; i++)
        RECORD(out, PPROF_SAMPLE_TYPE, last, last);
}

int main(int argc, char **argv)
{
    static const struct cost_case cases[] = {
        {"pprof_label_str", label_texts, send_pprof, GRPC_OK},
        {"pprof_label_key", label_keys, send_pprof, GRPC_OK},
        {"pprof_label_key_of_num", label_keys_of_numbers, send_pprof, GRPC_OK},
        {"pprof_label_num_unit", label_units, send_pprof, GRPC_OK},
        {"pprof_label_str_decimal_id", label_decimal_ids, send_pprof, GRPC_OK},
        {"pprof_label_keys_by_str", label_keys_by_texts, send_pprof, GRPC_RESOURCE_EXHAUSTED},
        {"pprof_label_equal_keys", label_equal_keys, send_pprof, GRPC_OK},
        {"pprof_label_keys_by_strs", label_texts_by_texts, send_pprof, GRPC_OK},
        {"pprof_label_100_a_sample", labels_hundred_a_sample, send_pprof, GRPC_OK},
        {"pprof_label_by_sample_types", labels_by_sample_types, send_pprof, GRPC_OK},
        {"pprof_mapping_build_id", mapping_build_ids, send_pprof, GRPC_OK},
        {"pprof_mapping_build_id_no_hex", mapping_build_ids_no_hex, send_pprof, GRPC_OK},
        {"pprof_mapping_filename", mapping_filenames, send_pprof, GRPC_OK},
        {"pprof_function_name_system_filename", function_texts, send_pprof, GRPC_OK},
        {"pprof_location_mapping_line", location_references, send_pprof, GRPC_OK},
        {"pprof_location_1000_lines", location_lines, send_pprof, GRPC_OK},
        {"pprof_sample_location", sample_locations, send_pprof, GRPC_OK},
        {"pprof_sparse_ids", sparse_ids, send_pprof, GRPC_OK},
        {"pprof_sample_value", small_samples, send_pprof, GRPC_OK},
        {"pprof_string_table", empty_strings, send_pprof, GRPC_OK},
        {"pprof_sample_type_period_type", sample_types, send_pprof, GRPC_OK},
        {"pprof_drop_keep_doc_default", header_texts, send_pprof, GRPC_OK},
        {"pprof_comment", header_comments, send_pprof, GRPC_RESOURCE_EXHAUSTED},
        {"delta_label_str", label_texts, send_delta, GRPC_OK},
        {"delta_mapping_build_id", mapping_build_ids, send_delta, GRPC_OK},
        {"delta_function_names", function_texts, send_delta, GRPC_OK},
        {"delta_sample_location", sample_locations, send_delta, GRPC_OK},
        {"delta_sample_type", late_sample_types, send_delta, GRPC_OK},
        {"delta_sample_value", small_samples, send_delta, GRPC_OK},
    };
    return cost_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
