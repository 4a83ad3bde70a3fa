#include "tests/unit/pprof_fixture.h"

#include "core/base/arena.h"
#include "core/base/memory.h"
#include "core/data/normalise.h"
#include "core/formats/profiles_builder.h"
#include "core/net/compression.h"
#include "opentelemetry/proto/collector/profiles/v1development/profiles_service.pb-c.h"

#include <assert.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

typedef Opentelemetry__Proto__Collector__Profiles__V1development__ExportProfilesServiceRequest
    Request;
typedef Opentelemetry__Proto__Profiles__V1development__ProfilesDictionary Dictionary;
typedef Opentelemetry__Proto__Profiles__V1development__Profile Profile;
typedef Opentelemetry__Proto__Profiles__V1development__Sample Sample;

static void path_of(const char *name, char *path, size_t size)
{
    const char *source = getenv("PROFCOL_SOURCE");
    if (strchr(name, '/'))
        snprintf(path, size, "%s", name);
    else
        snprintf(path, size, "%s/tests/data/pprof/%s", source ? source : ".", name);
}

struct buffer *pprof_load(const char *name)
{
    char path[4096];
    path_of(name, path, sizeof path);
    FILE *file = fopen(path, "rb");
    assert(file);
    struct buffer *bytes = buffer_new_charged(1 << 20, NULL), *plain;
    bytes->size = fread(bytes->data, 1, bytes->capacity, file);
    assert(feof(file));
    fclose(file);
    if (bytes->size < 2 || bytes->data[0] != 0x1f)
        return bytes;
    struct error err;
    enum decompress_result result =
        decompress(COMPRESSION_GZIP, buffer_slice(bytes), (size_t)1 << 26, NULL, &plain, &err);
    assert(result == DECOMPRESS_OK);
    buffer_unref(bytes);
    return plain;
}

void pprof_each(void (*on_pprof)(const char *name))
{
    char path[4096];
    struct dirent **entries;
    unsigned count = 0;
    path_of("", path, sizeof path);
    int entry_count = scandir(path, &entries, NULL, alphasort);
    assert(entry_count > 0);
    for (int i = 0; i < entry_count; i++) {
        if (strstr(entries[i]->d_name, ".pb.gz")) {
            on_pprof(entries[i]->d_name);
            count++;
        }
        free(entries[i]);
    }
    free(entries);
    assert(count > 10);
}

struct buffer *pprof_to_otlp(struct slice pprof, const struct pprof_options *options,
                             struct error *err)
{
    struct profiles_builder *builder = profiles_builder_new(NULL, 64 << 20);
    struct built_attribute service = {SLICE("service.name"), SLICE("shop")};
    struct built_resource resource = {.attributes = &service, .attribute_count = 1};
    profiles_builder_resource(builder, &resource);
    struct buffer *request = NULL;
    uint32_t samples;
    if (pprof_read(builder, pprof, options, err))
        request = profiles_builder_finish(builder, &samples);
    profiles_builder_free(builder);
    if (request) {
        struct scan_result scan;
        bool passes = scan_profiles(buffer_slice(request), &scan_limits_default, &scan, err);
        assert(passes && scan.items == samples && !normalise_needed(&scan));
    }
    return request;
}

/* ---- printing ---- */

/* Whether mappings are printed with their has_ flags. */
static bool with_flags = true;

static const char *string_at(const Dictionary *d, int32_t index)
{
    return d->string_table[index];
}

static void print_attribute(struct text *out, const Dictionary *d, int32_t index)
{
    const __auto_type attribute = d->attribute_table[index];
    const char *key = string_at(d, attribute->key_strindex);
    const char *unit = string_at(d, attribute->unit_strindex);
    switch (attribute->value->value_case) {
    case OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_STRING_VALUE:
        text_printf(out, " %s=%s", key, attribute->value->string_value);
        return;
    case OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_INT_VALUE:
        text_printf(out, " %s=%" PRId64 " %s", key, attribute->value->int_value, unit);
        return;
    default:
        assert(attribute->value->bool_value);
        text_printf(out, " %s", key);
    }
}

static void print_mapping(struct text *out, const Dictionary *d, int32_t index)
{
    static const char flag[] = "pprof.mapping.", build[] = "process.executable.build_id.";
    const __auto_type m = d->mapping_table[index];
    text_printf(out, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %s", m->memory_start, m->memory_limit,
                m->file_offset, string_at(d, m->filename_strindex));
    for (size_t i = 0; i < m->n_attribute_indices; i++) {
        const __auto_type attribute = d->attribute_table[m->attribute_indices[i]];
        const char *key = string_at(d, attribute->key_strindex);
        if (strncmp(key, build, sizeof build - 1) == 0)
            text_printf(out, " build=%s", attribute->value->string_value);
        else if (with_flags)
            text_printf(out, " %s", key + sizeof flag - 1);
    }
}

static void print_location(struct text *out, const Dictionary *d, int32_t index)
{
    const __auto_type l = d->location_table[index];
    text_append_char(out, '{');
    print_mapping(out, d, l->mapping_index);
    text_printf(out, " @%" PRIu64, l->address);
    for (size_t i = 0; i < l->n_lines; i++) {
        const __auto_type f = d->function_table[l->lines[i]->function_index];
        text_printf(out, " [%s %s %s %" PRId64 " %" PRId64 " %" PRId64 "]",
                    string_at(d, f->name_strindex), string_at(d, f->system_name_strindex),
                    string_at(d, f->filename_strindex), f->start_line, l->lines[i]->line,
                    l->lines[i]->column);
    }
    text_append(out, l->n_attribute_indices > 0 ? " folded}" : "}");
}

static bool is_zero(ProtobufCBinaryData bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        if (bytes.data[i])
            return false;
    return true;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void print_attributes(struct text *out, const Dictionary *d, const Sample *s)
{
    char *texts[PPROF_LABELS_MAX];
    for (size_t i = 0; i < s->n_attribute_indices; i++) {
        struct text one = {0};
        print_attribute(&one, d, s->attribute_indices[i]);
        texts[i] = one.data;
    }
    qsort(texts, s->n_attribute_indices, sizeof *texts, by_text);
    for (size_t i = 0; i < s->n_attribute_indices; i++) {
        text_append(out, texts[i]);
        free(texts[i]);
    }
}

struct line {
    int64_t value;
    char *text; /* the text after the value */
};

static char *sample_line(const Dictionary *d, const Sample *s)
{
    struct text line = {0};
    const __auto_type stack = d->stack_table[s->stack_index];
    for (size_t i = 0; i < stack->n_location_indices; i++)
        print_location(&line, d, stack->location_indices[i]);
    print_attributes(&line, d, s);
    const __auto_type link = d->link_table[s->link_index];
    text_append_char(&line, ' ');
    if (!is_zero(link->trace_id))
        text_append_hex(&line, slice_of(link->trace_id.data, link->trace_id.len));
    text_append_char(&line, '/');
    if (!is_zero(link->span_id))
        text_append_hex(&line, slice_of(link->span_id.data, link->span_id.len));
    return line.data;
}

static int by_line(const void *a, const void *b)
{
    const struct line *x = a, *y = b;
    int order = strcmp(x->text, y->text);
    return order != 0 ? order : (x->value > y->value) - (x->value < y->value);
}

/* Sums equal lines. Returns the number of lines that are not 0. */
static size_t sum_lines(struct line *lines, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count;) {
        struct line sum = lines[i];
        for (i++; i < count && strcmp(lines[i].text, sum.text) == 0; i++) {
            sum.value = (int64_t)((uint64_t)sum.value + (uint64_t)lines[i].value);
            free(lines[i].text);
        }
        if (sum.value != 0)
            lines[kept++] = sum;
        else
            free(sum.text);
    }
    return kept;
}

/* Returns the sorted lines of the samples. */
static struct line *sample_lines(const Dictionary *d, const Profile *p)
{
    struct line *lines = memory_array(p->n_samples + 1, sizeof *lines);
    for (size_t i = 0; i < p->n_samples; i++) {
        assert(p->samples[i]->n_values == 1 && p->samples[i]->n_timestamps_unix_nano == 0);
        lines[i] = (struct line){p->samples[i]->values[0], sample_line(d, p->samples[i])};
    }
    qsort(lines, p->n_samples, sizeof *lines, by_line);
    return lines;
}

static void report_profile(const Dictionary *d, const Profile *p, const char *name,
                           struct text *out)
{
    struct line *lines = sample_lines(d, p);
    struct text all = {0};
    int64_t sum = 0;
    for (size_t i = 0; i < p->n_samples; i++) {
        sum += lines[i].value;
        text_printf(&all, "%" PRId64 " %s\n", lines[i].value, lines[i].text);
        free(lines[i].text);
    }
    free(lines);
    text_printf(out, "%s %s %s %zu %" PRId64 " %08lx\n", name,
                string_at(d, p->sample_type->type_strindex),
                string_at(d, p->sample_type->unit_strindex), p->n_samples, sum,
                crc32(0, (const Bytef *)text_string(&all), (uInt)all.size));
    text_deinit(&all);
}

static void describe_header(const Dictionary *d, const Profile *p, struct text *out)
{
    text_printf(out, "%s/%s %" PRIu64 "+%" PRIu64, string_at(d, p->sample_type->type_strindex),
                string_at(d, p->sample_type->unit_strindex), p->time_unix_nano, p->duration_nano);
    if (p->period_type)
        text_printf(out, " every %" PRId64 " %s/%s", p->period,
                    string_at(d, p->period_type->type_strindex),
                    string_at(d, p->period_type->unit_strindex));
    for (size_t i = 0; i < p->n_attribute_indices; i++)
        print_attribute(out, d, p->attribute_indices[i]);
    text_append_char(out, '\n');
}

static void describe_profile(const Dictionary *d, const Profile *p, bool sums, struct text *out)
{
    struct line *lines = sample_lines(d, p);
    size_t count = sums ? sum_lines(lines, p->n_samples) : p->n_samples;
    if (count > 0 || !sums)
        describe_header(d, p, out);
    for (size_t i = 0; i < count; i++) {
        text_printf(out, "%" PRId64 " %s\n", lines[i].value, lines[i].text);
        free(lines[i].text);
    }
    free(lines);
}

/* Prints each profile. name: for a report; NULL: a description. */
static void each_profile(struct slice request, const char *name, bool sums, struct text *out)
{
    Request *r =
        opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__unpack(
            NULL, request.size, request.data);
    assert(r && r->n_resource_profiles <= 1);
    if (r->n_resource_profiles > 0) {
        const __auto_type scope = r->resource_profiles[0]->scope_profiles[0];
        for (size_t i = 0; i < scope->n_profiles; i++)
            if (name)
                report_profile(r->dictionary, scope->profiles[i], name, out);
            else
                describe_profile(r->dictionary, scope->profiles[i], sums, out);
    }
    opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__free_unpacked(
        r, NULL);
}

void pprof_report(struct slice request, const char *name, struct text *out)
{
    each_profile(request, name, false, out);
}

void pprof_describe(struct slice request, struct text *out)
{
    each_profile(request, NULL, false, out);
}

void pprof_describe_sums(struct slice request, bool flags, struct text *out)
{
    with_flags = flags;
    each_profile(request, NULL, true, out);
    with_flags = true;
}

/* ---- parsing ---- */

static uint32_t read_profiles(struct slice request, struct message *root, struct arena *arena,
                              struct otlp_profile *out, uint32_t max)
{
    uint32_t count = 0;
    struct message_field group, scope, profile;
    message_init(root, request);
    struct message_iter groups = message_iter(root, arena);
    while (message_next(&groups, &group)) {
        if (group.wire.number != PROFILES_RESOURCE_PROFILES)
            continue;
        struct message_iter scopes = message_iter_into(&group, arena);
        while (message_next(&scopes, &scope)) {
            if (scope.wire.number != RESOURCE_PROFILES_SCOPE_PROFILES)
                continue;
            struct message_iter profiles = message_iter_into(&scope, arena);
            while (message_next(&profiles, &profile))
                if (profile.wire.number == SCOPE_PROFILES_PROFILES && count < max)
                    otlp_profile_read(&out[count++], &profile, arena);
        }
    }
    return count;
}

/* Writes all parts. */
static void write_pprofs(struct pprof_writer *writer, const struct pprof_header *header,
                         const struct otlp_profile *profiles, uint32_t count,
                         const struct pprof_limits *limits, struct wire_writer *out)
{
    struct slice pprof;
    wire_writer_clear(out);
    pprof_writer_begin(writer, header);
    pprof_writer_add_profiles(writer, profiles, count);
    while (pprof_writer_next(writer, limits, &pprof))
        wire_writer_raw(out, pprof);
}

/* Checks that the entries which a writer keeps give the same result when used again. */
static void check_again(struct pprof_writer *writer, const struct pprof_header *header,
                        const struct otlp_profile *profiles, uint32_t count,
                        const struct pprof_limits *limits, const struct wire_writer *first)
{
    struct wire_writer again = {0};
    for (int i = 0; i < 2; i++) {
        write_pprofs(writer, header, profiles, count, limits, &again);
        assert(slice_equal(wire_writer_slice(&again), wire_writer_slice(first)));
    }
    wire_writer_deinit(&again);
}

void pprof_from_otlp(struct slice request, const struct pprof_labels *labels,
                     const struct pprof_limits *limits,
                     void (*on_pprof)(struct slice pprof, void *context), void *context)
{
    struct arena arena = {0};
    struct message root;
    struct otlp_profile profiles[OTLP_SIBLINGS_MAX];
    uint32_t count = read_profiles(request, &root, &arena, profiles, OTLP_SIBLINGS_MAX);
    struct dictionary *dictionary = dictionary_new(&root, &arena);
    struct pprof_writer *writer = pprof_writer_new(dictionary, &arena, labels);
    struct wire_writer all = {0};
    struct slice pprof;
    for (uint32_t i = 0, siblings; i < count; i += siblings) {
        siblings = otlp_profile_siblings(&profiles[i], count - i);
        struct pprof_header header = pprof_header_of(&profiles[i], dictionary, &arena);
        pprof_writer_begin(writer, &header);
        pprof_writer_add_profiles(writer, &profiles[i], siblings);
        wire_writer_clear(&all);
        while (pprof_writer_next(writer, limits, &pprof)) {
            wire_writer_raw(&all, pprof);
            on_pprof(pprof, context);
        }
        check_again(writer, &header, &profiles[i], siblings, limits, &all);
    }
    wire_writer_deinit(&all);
    pprof_writer_free(writer);
    arena_deinit(&arena);
}
