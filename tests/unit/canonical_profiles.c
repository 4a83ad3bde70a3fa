#include "tests/unit/canonical_profiles.h"

#include "core/base/hash.h"
#include "opentelemetry/proto/collector/profiles/v1development/profiles_service.pb-c.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

typedef Opentelemetry__Proto__Collector__Profiles__V1development__ExportProfilesServiceRequest
    Request;
typedef Opentelemetry__Proto__Profiles__V1development__ProfilesDictionary Dictionary;
typedef Opentelemetry__Proto__Profiles__V1development__Profile Profile;
typedef Opentelemetry__Proto__Profiles__V1development__Sample Sample;
typedef Opentelemetry__Proto__Profiles__V1development__Location Location;
typedef Opentelemetry__Proto__Profiles__V1development__Function Function;
typedef Opentelemetry__Proto__Profiles__V1development__Mapping Mapping;
typedef Opentelemetry__Proto__Profiles__V1development__ValueType ValueType;
typedef Opentelemetry__Proto__Profiles__V1development__KeyValueAndUnit Attribute;
typedef Opentelemetry__Proto__Profiles__V1development__Link Link;

/* Prints a packed message as hex: equal fields give equal bytes. A message without fields is
 * printed like an absent one. */
static void print_packed(struct text *out, const ProtobufCMessage *message)
{
    size_t size = message ? protobuf_c_message_get_packed_size(message) : 0;
    uint8_t *bytes = malloc(size + 1);
    assert(bytes);
    if (message)
        protobuf_c_message_pack(message, bytes);
    text_append_char(out, '<');
    text_append_hex(out, slice_of(bytes, size));
    text_append_char(out, '>');
    free(bytes);
}

/* Whether an index refers to an entry. Index 0 is the zero value, even without a table. */
static bool is_entry(int32_t index, size_t count)
{
    assert(index == 0 || (index > 0 && (size_t)index < count));
    return index > 0;
}

static void print_string(struct text *out, const Dictionary *d, int32_t index)
{
    text_append_char(out, '"');
    if (is_entry(index, d->n_string_table))
        text_append_json(out, slice_of_string(d->string_table[index]));
    text_append_char(out, '"');
}

static void print_attributes(struct text *out, const Dictionary *d, const int32_t *indices,
                             size_t count)
{
    static const Attribute zero;
    text_append(out, " attributes[");
    for (size_t i = 0; i < count; i++) {
        const Attribute *a =
            is_entry(indices[i], d->n_attribute_table) ? d->attribute_table[indices[i]] : &zero;
        print_string(out, d, a->key_strindex);
        print_packed(out, a->value ? &a->value->base : NULL);
        print_string(out, d, a->unit_strindex);
        text_append_char(out, ';');
    }
    text_append_char(out, ']');
}

static void print_function(struct text *out, const Dictionary *d, int32_t index)
{
    static const Function zero;
    const Function *f = is_entry(index, d->n_function_table) ? d->function_table[index] : &zero;
    print_string(out, d, f->name_strindex);
    print_string(out, d, f->system_name_strindex);
    print_string(out, d, f->filename_strindex);
    text_printf(out, "%" PRId64, f->start_line);
}

static void print_mapping(struct text *out, const Dictionary *d, int32_t index)
{
    static const Mapping zero;
    const Mapping *m = is_entry(index, d->n_mapping_table) ? d->mapping_table[index] : &zero;
    text_printf(out, "mapping %" PRIu64 " %" PRIu64 " %" PRIu64, m->memory_start, m->memory_limit,
                m->file_offset);
    print_string(out, d, m->filename_strindex);
    print_attributes(out, d, m->attribute_indices, m->n_attribute_indices);
}

static void print_location(struct text *out, const Dictionary *d, int32_t index)
{
    static const Location zero;
    const Location *l = is_entry(index, d->n_location_table) ? d->location_table[index] : &zero;
    text_append_char(out, '{');
    print_mapping(out, d, l->mapping_index);
    text_printf(out, " %" PRIu64, l->address);
    for (size_t i = 0; i < l->n_lines; i++) {
        text_append(out, " line ");
        print_function(out, d, l->lines[i]->function_index);
        text_printf(out, " %" PRId64 " %" PRId64, l->lines[i]->line, l->lines[i]->column);
    }
    print_attributes(out, d, l->attribute_indices, l->n_attribute_indices);
    text_append_char(out, '}');
}

static bool is_zero(ProtobufCBinaryData bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        if (bytes.data[i])
            return false;
    return true;
}

static void print_link(struct text *out, const Dictionary *d, int32_t index)
{
    if (!is_entry(index, d->n_link_table))
        return;
    const Link *link = d->link_table[index];
    if (is_zero(link->trace_id) && is_zero(link->span_id))
        return;
    text_append_hex(out, slice_of(link->trace_id.data, link->trace_id.len));
    text_append_char(out, '/');
    text_append_hex(out, slice_of(link->span_id.data, link->span_id.len));
}

static void print_value_type(struct text *out, const Dictionary *d, const ValueType *type)
{
    print_string(out, d, type ? type->type_strindex : 0);
    print_string(out, d, type ? type->unit_strindex : 0);
}

void canonical_stack(const Dictionary *d, int32_t index, struct text *out)
{
    if (is_entry(index, d->n_stack_table))
        for (size_t i = 0; i < d->stack_table[index]->n_location_indices; i++)
            print_location(out, d, d->stack_table[index]->location_indices[i]);
}

static void print_sample(struct text *out, const Dictionary *d, const Sample *s)
{
    canonical_stack(d, s->stack_index, out);
    print_attributes(out, d, s->attribute_indices, s->n_attribute_indices);
    print_link(out, d, s->link_index);
    for (size_t i = 0; i < s->n_values; i++)
        text_printf(out, " %" PRId64, s->values[i]);
    for (size_t i = 0; i < s->n_timestamps_unix_nano; i++)
        text_printf(out, " @%" PRIu64, s->timestamps_unix_nano[i]);
}

static void print_header(struct text *out, const Dictionary *d, const Profile *p,
                         enum canonical_detail detail)
{
    print_value_type(out, d, p->sample_type);
    text_printf(out, " %" PRIu64 " %" PRIu64 " ", p->time_unix_nano, p->duration_nano);
    print_value_type(out, d, p->period_type);
    text_printf(out, " %" PRId64 " %" PRIu32, p->period, p->dropped_attributes_count);
    print_attributes(out, d, p->attribute_indices, p->n_attribute_indices);
    if (detail == CANONICAL_SAMPLES)
        return;
    text_append_hex(out, slice_of(p->profile_id.data, p->profile_id.len));
    text_append_json(out, slice_of_string(p->original_payload_format));
    text_append_hex(out, slice_of(p->original_payload.data, p->original_payload.len));
}

static void print_line(struct text *out, const char *what, struct slice line,
                       enum canonical_detail detail)
{
    text_append(out, what);
    if (detail == CANONICAL_TEXT)
        text_append_slice(out, line);
    else
        text_printf(out, "%016" PRIx64, hash_bytes(line));
    text_append_char(out, '\n');
}

static void print_profile(struct text *out, const Dictionary *d, const Profile *p,
                          struct text *line, enum canonical_detail detail)
{
    size_t outer = line->size;
    print_header(line, d, p, detail);
    if (detail != CANONICAL_SAMPLES)
        print_line(out, "profile ", slice_of(line->data, line->size), detail);
    size_t from = detail == CANONICAL_TEXT ? line->size : 0; /* a hash includes the profile */
    for (size_t i = 0; i < p->n_samples; i++) {
        size_t start = line->size;
        print_sample(line, d, p->samples[i]);
        print_line(out, "sample ", slice_of(line->data + from, line->size - from), detail);
        line->size = start;
    }
    line->size = outer;
}

void canonical_profiles(struct slice request, enum canonical_detail detail, struct text *out)
{
    static const Dictionary empty;
    Request *r =
        opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__unpack(
            NULL, request.size, request.data);
    assert(r);
    struct text line = {0};
    for (size_t i = 0; i < r->n_resource_profiles; i++) {
        line.size = 0;
        print_packed(&line, r->resource_profiles[i]->resource
                                ? &r->resource_profiles[i]->resource->base
                                : NULL);
        text_append_json(&line, slice_of_string(r->resource_profiles[i]->schema_url));
        size_t group = line.size;
        for (size_t j = 0; j < r->resource_profiles[i]->n_scope_profiles; j++) {
            line.size = group;
            print_packed(&line, r->resource_profiles[i]->scope_profiles[j]->scope
                                    ? &r->resource_profiles[i]->scope_profiles[j]->scope->base
                                    : NULL);
            text_append_json(
                &line, slice_of_string(r->resource_profiles[i]->scope_profiles[j]->schema_url));
            for (size_t k = 0; k < r->resource_profiles[i]->scope_profiles[j]->n_profiles; k++)
                print_profile(out, r->dictionary ? r->dictionary : &empty,
                              r->resource_profiles[i]->scope_profiles[j]->profiles[k], &line,
                              detail);
        }
    }
    text_deinit(&line);
    opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__free_unpacked(
        r, NULL);
}
