#include "tests/unit/cost_fields.h"

#include "core/base/memory.h"
#include "core/data/unfold.h"
#include "opentelemetry/proto/collector/profiles/v1development/profiles_service.pb-c.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.pb-c.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { ITEMS_MAX = 1000000 }; /* of scan_limits_default */

/* ---- the fields ---- */

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), more = strlen(end);
    return length >= more && strcmp(text + length - more, end) == 0;
}

static bool is_index(const ProtobufCFieldDescriptor *field)
{
    return ends_with(field->name, "_strindex") || ends_with(field->name, "_index") ||
           ends_with(field->name, "_indices");
}

static bool has_length(const ProtobufCFieldDescriptor *field)
{
    return field->type == PROTOBUF_C_TYPE_MESSAGE || field->type == PROTOBUF_C_TYPE_STRING ||
           field->type == PROTOBUF_C_TYPE_BYTES;
}

/* Whether a field gets a request. References in traces have no dictionary. */
static bool is_wanted(const ProtobufCFieldDescriptor *field, enum signal signal)
{
    return has_length(field) || (is_index(field) && signal == SIGNAL_PROFILES);
}

/* The state of the search: messages whose fields are in the list. */
struct search {
    enum signal signal;
    struct cost_field *fields;
    size_t count;
    const ProtobufCMessageDescriptor *seen[COST_FIELDS_MAX];
    size_t seen_count;
};

static bool is_seen(struct search *search, const ProtobufCMessageDescriptor *message)
{
    for (size_t i = 0; i < search->seen_count; i++)
        if (search->seen[i] == message)
            return true;
    assert(search->seen_count < COST_FIELDS_MAX);
    search->seen[search->seen_count++] = message;
    return false;
}

static void add_fields(struct search *search, const ProtobufCMessageDescriptor *message,
                       const struct cost_field *above)
{
    for (unsigned i = 0; i < message->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->fields[i];
        if (!is_wanted(field, search->signal))
            continue;
        assert(search->count < COST_FIELDS_MAX && above->depth < COST_PATH_MAX);
        struct cost_field *found = &search->fields[search->count++];
        *found = *above;
        found->path[found->depth++] = field;
        snprintf(found->name, sizeof found->name, "%s.%s", message->short_name, field->name);
    }
}

/* Breadth first, so that the path to each message is the shortest. */
size_t cost_fields(enum signal signal, struct cost_field *fields_out)
{
    struct search search = {.signal = signal, .fields = fields_out};
    const ProtobufCMessageDescriptor *root =
        signal == SIGNAL_TRACES
            ? &opentelemetry__proto__collector__trace__v1__export_trace_service_request__descriptor
            : &opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__descriptor;
    const struct cost_field none = {.depth = 0};
    is_seen(&search, root);
    add_fields(&search, root, &none);
    for (size_t i = 0; i < search.count; i++) {
        const struct cost_field above = fields_out[i];
        const ProtobufCFieldDescriptor *field = above.path[above.depth - 1];
        if (field->type == PROTOBUF_C_TYPE_MESSAGE && !is_seen(&search, field->descriptor))
            add_fields(&search, field->descriptor, &above);
    }
    return search.count;
}

/* ---- a dictionary ---- */

static void put_filled(struct wire_writer *out, uint32_t number, int c, size_t size)
{
    uint8_t *bytes = memory_alloc(size + 1);
    memset(bytes, c, size);
    wire_writer_bytes(out, number, slice_of(bytes, size));
    free(bytes);
}

/* Writes entry 1 of a table, with about `size` bytes. */
static void put_entry(struct wire_writer *out, uint32_t table, size_t size)
{
    size_t entry, value;
    if (table == DICTIONARY_STRING_TABLE) {
        put_filled(out, table, '0', size);
        return;
    }
    entry = wire_writer_begin(out, table);
    if (table == DICTIONARY_MAPPING_TABLE)
        put_filled(out, MAPPING_ATTRIBUTE_INDICES, 1, size);
    else if (table == DICTIONARY_STACK_TABLE)
        put_filled(out, STACK_LOCATION_INDICES, 1, size);
    for (size_t i = 0; i <= size / 4 && table == DICTIONARY_LOCATION_TABLE; i++) {
        size_t line = wire_writer_begin(out, LOCATION_LINES);
        wire_writer_varint(out, LINE_FUNCTION_INDEX, 1);
        wire_writer_end(out, line);
    }
    for (size_t i = 0; i <= size / 2 && table == DICTIONARY_FUNCTION_TABLE; i++)
        wire_writer_varint(out, FUNCTION_NAME_STRINDEX, 1);
    for (size_t i = 0; i <= size / 10 && table == DICTIONARY_LINK_TABLE; i++)
        put_filled(out, LINK_SPAN_ID, 7, SPAN_ID_SIZE);
    if (table == DICTIONARY_ATTRIBUTE_TABLE) {
        wire_writer_varint(out, KEY_VALUE_AND_UNIT_KEY_STRINDEX, 1);
        value = wire_writer_begin(out, KEY_VALUE_AND_UNIT_VALUE);
        put_filled(out, ANY_VALUE_STRING, '0', size);
        wire_writer_end(out, value);
    }
    wire_writer_end(out, entry);
}

/* Returns the table that a field refers to; 0 if none. */
static uint32_t table_of(const ProtobufCFieldDescriptor *field)
{
    static const struct {
        const char *end;
        uint32_t table;
    } tables[] = {
        {"strindex", DICTIONARY_STRING_TABLE},
        {"stack_index", DICTIONARY_STACK_TABLE},
        {"link_index", DICTIONARY_LINK_TABLE},
        {"mapping_index", DICTIONARY_MAPPING_TABLE},
        {"function_index", DICTIONARY_FUNCTION_TABLE},
        {"attribute_indices", DICTIONARY_ATTRIBUTE_TABLE},
        {"location_indices", DICTIONARY_LOCATION_TABLE},
    };
    for (size_t i = 0; is_index(field) && i < sizeof tables / sizeof *tables; i++)
        if (ends_with(field->name, tables[i].end))
            return tables[i].table;
    assert(!is_index(field)); /* a new table must be added above */
    return 0;
}

static void put_tables(struct wire_writer *out, uint32_t large, size_t size)
{
    for (uint32_t table = 1; table < DICTIONARY_TABLE_COUNT; table++)
        wire_writer_bytes(out, table, (struct slice){0});
    for (uint32_t table = 1; table < DICTIONARY_TABLE_COUNT; table++)
        put_entry(out, table, table == large ? size : 1);
}

/* ---- the field, again and again ---- */

/* Writes a sample with all kinds of references. */
static void put_sample(struct wire_writer *out)
{
    static const uint32_t nesting[] = {PROFILES_RESOURCE_PROFILES, RESOURCE_PROFILES_SCOPE_PROFILES,
                                       SCOPE_PROFILES_PROFILES, PROFILE_SAMPLES};
    size_t begun[4];
    for (size_t i = 0; i < 4; i++)
        begun[i] = wire_writer_begin(out, nesting[i]);
    wire_writer_varint(out, SAMPLE_STACK_INDEX, 1);
    wire_writer_varint(out, SAMPLE_LINK_INDEX, 1);
    put_filled(out, SAMPLE_ATTRIBUTE_INDICES, 1, 1);
    put_filled(out, SAMPLE_VALUES, 1, 1);
    for (size_t i = 4; i-- > 0;)
        wire_writer_end(out, begun[i]);
}

static void put_required(struct wire_writer *out, const ProtobufCMessageDescriptor *message)
{
    if (strcmp(message->short_name, "Sample") == 0)
        put_filled(out, SAMPLE_VALUES, 1, 1);
}

static size_t id_size(const char *name)
{
    if (strcmp(name, "trace_id") == 0 || strcmp(name, "profile_id") == 0)
        return TRACE_ID_SIZE;
    return strcmp(name, "span_id") == 0 || strcmp(name, "parent_span_id") == 0 ? SPAN_ID_SIZE : 0;
}

/* Writes the field. size: of a text or a list. */
static void put_leaf(struct wire_writer *out, const ProtobufCFieldDescriptor *field, size_t size)
{
    if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        size_t begun = wire_writer_begin(out, field->id);
        put_required(out, field->descriptor);
        wire_writer_end(out, begun);
    } else if (id_size(field->name) > 0)
        put_filled(out, field->id, 5, id_size(field->name));
    else if (has_length(field))
        put_filled(out, field->id, '0', size);
    else if (field->label == PROTOBUF_C_LABEL_REPEATED)
        put_filled(out, field->id, 1, size);
    else
        wire_writer_varint(out, field->id, 1);
}

static void put_path(struct wire_writer *out, const struct cost_field *field, size_t from,
                     size_t size)
{
    const ProtobufCFieldDescriptor *step = field->path[from];
    if (from + 1 == field->depth) {
        put_leaf(out, step, size);
        return;
    }
    size_t begun = wire_writer_begin(out, step->id);
    put_required(out, step->descriptor);
    put_path(out, field, from + 1, size);
    wire_writer_end(out, begun);
}

/* Returns the innermost repeated step of the path. */
static size_t repeated_step(const struct cost_field *field)
{
    size_t step = field->depth - 1;
    while (step > 0 && field->path[step]->label != PROTOBUF_C_LABEL_REPEATED)
        step--;
    return step;
}

static size_t repetitions_max(const ProtobufCFieldDescriptor *step)
{
    bool is_profile = ends_with(step->name, "profiles"), is_scope = ends_with(step->name, "_spans");
    return is_profile ? UNFOLD_PROFILES_SPARE : is_scope ? UNFOLD_SCOPES_MAX : ITEMS_MAX;
}

static void put_repeated(struct wire_writer *out, const struct cost_field *field, size_t size)
{
    const ProtobufCFieldDescriptor *leaf = field->path[field->depth - 1];
    size_t first = repeated_step(field), begun[COST_PATH_MAX];
    size_t most = repetitions_max(field->path[first]);
    bool is_list = leaf->label == PROTOBUF_C_LABEL_REPEATED && !has_length(leaf);
    for (size_t i = 0; i < first; i++) {
        begun[i] = wire_writer_begin(out, field->path[i]->id);
        put_required(out, field->path[i]->descriptor);
    }
    size_t left = size > out->size ? size - out->size : 1;
    put_path(out, field, first, is_list ? left : left / 2);
    for (size_t i = 1; out->size < size && i < most; i++)
        put_path(out, field, first, 1);
    for (size_t i = first; i-- > 0;)
        wire_writer_end(out, begun[i]);
}

void cost_field_write(struct wire_writer *out, const struct cost_field *field, size_t size)
{
    const ProtobufCFieldDescriptor *root = field->path[0];
    bool is_traces = strcmp(root->name, "resource_spans") == 0;
    bool is_entry = strcmp(root->name, "dictionary") == 0;
    if (!is_traces) {
        size_t dictionary = wire_writer_begin(out, PROFILES_DICTIONARY);
        put_tables(out, table_of(field->path[field->depth - 1]), size / 2);
        if (is_entry && field->depth > 1) {
            struct cost_field below = *field; /* without the first step */
            below.depth--;
            for (size_t i = 0; i < below.depth; i++)
                below.path[i] = field->path[i + 1];
            put_repeated(out, &below, size);
        }
        wire_writer_end(out, dictionary);
        put_sample(out);
    }
    if (!is_entry || field->depth == 1)
        put_repeated(out, field, size);
}
