/* The answer to /api/export: the stacks of a selection as a file. */
#include "core/base/memory.h"
#include "core/base/saturate.h"
#include "core/formats/pprof_write.h"
#include "core/formats/profiles_builder.h"
#include "core/net/compression.h"
#include "extensions/explore/api.h"
#include "extensions/explore/largest.h"

#define EXPORT_BYTES_MAX ((size_t)256 << 20) /* while a file is made */
/* Of a file: bytes of its stacks as text, and stacks. */
enum { EXPORT_TEXT_MAX = 16 << 20, EXPORT_STACKS_MAX = 100000 };

struct exporting {
    struct api_request *request;
    const struct store_names *names;
    struct store_values values;
    uint64_t begin_ns, duration_ns; /* of what is selected */
    uint8_t type;
    /* The frames of a stack, leaf first. */
    uint32_t stack[STORE_DEPTH_MAX + 1];
    uint32_t depth;
    uint32_t *places; /* of the frames in a list, + 1 */
};

/* A span has its own time; otherwise it is as much of the selected time as the store knows. */
static void set_time(struct exporting *file, const struct store_selection *selection)
{
    struct store *store = file->request->store;
    uint32_t number = selection->has_span
                          ? store_spans_find(&store->spans, selection->trace_id, selection->span_id)
                          : STORE_NONE;
    const struct store_span *span =
        number == STORE_NONE ? NULL : store_span_at(&store->spans, number);
    uint64_t now_ns = file->request->now_ns, to_ns = selection->to_ns;
    uint64_t end_ns = to_ns > 0 && to_ns < now_ns ? to_ns : now_ns;
    file->begin_ns =
        selection->from_ns > store->started_ns ? selection->from_ns : store->started_ns;
    /* The clock may have been set back. */
    file->duration_ns = end_ns > file->begin_ns ? end_ns - file->begin_ns : 0;
    if (!span || !store_span_has_arrived(span))
        return;
    file->begin_ns = span->start_ns;
    file->duration_ns = span->duration_ns;
}

/* Names that others choose are in no name of a file. */
static const char *file_name(const struct exporting *file, const struct store_selection *selection,
                             const char *ending)
{
    struct api_request *request = file->request;
    if (!selection->has_span)
        return arena_printf(&request->arena, "profile.%s", ending);
    return arena_printf(&request->arena, "span-%s.%s",
                        api_hex(request, selection->span_id, SPAN_ID_SIZE), ending);
}

static struct slice type_name(const struct exporting *file)
{
    return api_text(file->request, file->request->store->cells.types[file->type].name);
}

static struct slice type_unit(const struct exporting *file)
{
    return api_text(file->request, file->request->store->cells.types[file->type].unit);
}

/* ---- files that would be too large ---- */

static uint64_t size_of(int64_t value)
{
    return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

/* Returns the size of each stack as text; of small ones more, because there are not too many. */
static uint32_t *measure_stacks(const struct exporting *file)
{
    enum { COST_MIN = EXPORT_TEXT_MAX / EXPORT_STACKS_MAX };
    const struct store_names *names = file->names;
    uint32_t *costs = memory_zalloc(file->values.count * sizeof *costs);
    for (uint32_t i = STORE_NODE_ROOT + 1; i < file->values.count; i++) {
        const struct store_node *node = store_node_at(names, i);
        uint32_t name = store_frame_at(names, node->frame)->name;
        costs[i] = costs[node->parent] + (uint32_t)store_names_read(names, name).size + 1;
    }
    for (uint32_t i = 0; i < file->values.count; i++)
        costs[i] = file->values.self[i] == 0 ? 0 : costs[i] < COST_MIN ? COST_MIN : costs[i];
    return costs;
}

/* The smallest stacks become "(other)". */
static void merge_small(struct exporting *file, const uint32_t *costs)
{
    int64_t *self = file->values.self, others = self[STORE_NODE_MERGED];
    uint64_t *weights = memory_zalloc(file->values.count * sizeof *weights);
    for (uint32_t i = 0; i < file->values.count; i++)
        weights[i] = size_of(self[i]);
    weights[STORE_NODE_MERGED] = 0;
    struct largest left = largest_of(weights, costs, file->values.count, EXPORT_TEXT_MAX);
    for (uint32_t i = 0; i < file->values.count; i++)
        if (weights[i] > 0 && !largest_takes(&left, weights[i], costs[i])) {
            others = saturate_add(others, self[i]);
            self[i] = 0;
        }
    self[STORE_NODE_MERGED] = others;
    free(weights);
}

static void limit_stacks(struct exporting *file)
{
    uint64_t size = 0;
    uint32_t *costs = measure_stacks(file);
    for (uint32_t i = 0; i < file->values.count; i++)
        size += costs[i];
    if (size - costs[STORE_NODE_MERGED] > EXPORT_TEXT_MAX)
        merge_small(file, costs);
    free(costs);
}

/* ---- stacks ---- */

static void read_stack(struct exporting *file, uint32_t node)
{
    file->depth = 0;
    for (; node != STORE_NODE_ROOT; node = store_node_at(file->names, node)->parent) {
        assert(file->depth <= STORE_DEPTH_MAX);
        file->stack[file->depth++] = store_node_at(file->names, node)->frame;
    }
}

/* Moves to the next stack that has a value; returns false at the end, or if the answer has ended.
 */
static bool next_stack(struct exporting *file, uint32_t *node)
{
    for (;;) {
        ++*node;
        if (*node >= file->values.count || ((*node & 1023) == 0 && api_must_stop(file->request)))
            return false;
        if (file->values.self[*node] == 0)
            continue;
        read_stack(file, *node);
        return true;
    }
}

static struct slice frame_name(const struct exporting *file, uint32_t frame)
{
    return api_text(file->request, store_frame_at(file->names, frame)->name);
}

static struct slice frame_file(const struct exporting *file, uint32_t frame)
{
    return api_text(file->request, store_frame_at(file->names, frame)->file);
}

/* ---- pprof ---- */

/* Locations are made once for each frame. */
static uint32_t location_of(struct exporting *file, struct profiles_builder *builder,
                            uint32_t *locations, uint32_t frame)
{
    if (locations[frame] == 0) {
        const struct built_function function = {
            .name = profiles_builder_string(builder, frame_name(file, frame)),
            .filename = profiles_builder_string(builder, frame_file(file, frame))};
        const struct built_line line = {.function = profiles_builder_function(builder, &function)};
        const struct built_location location = {.lines = &line, .line_count = 1};
        locations[frame] = profiles_builder_location(builder, &location);
    }
    return locations[frame];
}

static void add_samples(struct exporting *file, struct profiles_builder *builder, uint32_t profile)
{
    uint32_t *locations =
        arena_array(&file->request->arena, file->names->frames.count, sizeof *locations);
    for (uint32_t node = UINT32_MAX; next_stack(file, &node);) {
        for (uint32_t i = 0; i < file->depth; i++)
            file->stack[i] = location_of(file, builder, locations, file->stack[i]);
        const struct built_sample sample = {
            .stack = profiles_builder_stack(builder, file->stack, file->depth)};
        profiles_builder_sample(builder, profile, &sample, file->values.self[node]);
    }
}

/* Returns the stacks as a profiles request; NULL if there are none, or too many. */
static struct buffer *build_request(struct exporting *file)
{
    uint32_t samples = 0;
    struct profiles_builder *builder = profiles_builder_new(NULL, EXPORT_BYTES_MAX);
    const struct built_profile profile = {
        .sample_type = profiles_builder_string(builder, type_name(file)),
        .sample_unit = profiles_builder_string(builder, type_unit(file)),
        .time_unix_nano = file->begin_ns,
        .duration_nano = file->duration_ns};
    const struct built_resource resource = {.attributes = NULL};
    profiles_builder_admit(builder, EXPORT_BYTES_MAX / PROFILES_BUILDER_BYTES_PER_BYTE);
    profiles_builder_resource(builder, &resource);
    add_samples(file, builder, profiles_builder_profile(builder, &profile));
    struct buffer *request = NULL;
    if (profiles_builder_state(builder) == PROFILES_BUILDER_FINE)
        request = profiles_builder_finish(builder, &samples);
    profiles_builder_free(builder);
    return request;
}

/* Returns the only profile of a request. */
static bool find_profile(struct slice request, struct arena *arena, struct otlp_profile *profile)
{
    struct message_iter groups = message_iter_bytes(request);
    struct message_field group, scope, field;
    if (!message_next_bytes(&groups, PROFILES_RESOURCE_PROFILES, &group))
        return false;
    struct message_iter scopes = message_iter_into(&group, arena);
    if (!message_next_bytes(&scopes, RESOURCE_PROFILES_SCOPE_PROFILES, &scope))
        return false;
    struct message_iter profiles = message_iter_into(&scope, arena);
    if (!message_next_bytes(&profiles, SCOPE_PROFILES_PROFILES, &field))
        return false;
    otlp_profile_read(profile, &field, arena);
    return true;
}

static void write_pprof(struct exporting *file, struct slice request)
{
    struct arena *arena = &file->request->arena;
    struct message root;
    struct otlp_profile profile;
    struct slice pprof;
    message_init(&root, request);
    struct dictionary *dictionary = dictionary_new(&root, arena);
    struct pprof_writer *writer = pprof_writer_new(dictionary, arena, NULL);
    struct pprof_header header = {.time_unix_nano = file->begin_ns,
                                  .duration_nano = file->duration_ns};
    pprof_writer_begin(writer, &header);
    if (find_profile(request, arena, &profile))
        pprof_writer_add_profiles(writer, &profile, 1);
    else
        pprof_writer_sample_type(writer, type_name(file), type_unit(file));
    const struct pprof_limits limits = {.samples_max = 0};
    if (pprof_writer_next(writer, &limits, &pprof)) {
        struct buffer *packed = compress_slices(COMPRESSION_GZIP, 1, false, &pprof, 1, NULL);
        text_append_slice(&file->request->body, buffer_slice(packed));
        buffer_unref(packed);
    }
    pprof_writer_free(writer);
}

static void export_pprof(struct exporting *file)
{
    struct buffer *request = build_request(file);
    file->request->type = "application/octet-stream";
    if (request)
        write_pprof(file, buffer_slice(request));
    else if (!file->request->is_late)
        api_refuse(file->request, 503, "too_large", "there is too much for a file");
    buffer_unref(request);
}

/* ---- collapsed stacks ---- */

/* Separators become something else. */
static void append_frame(struct text *out, struct slice name)
{
    size_t from = out->size;
    text_append_slice(out, name);
    for (size_t i = from; i < out->size; i++)
        if (out->data[i] == ';')
            out->data[i] = ':';
        else if ((uint8_t)out->data[i] < 0x20 || out->data[i] == 0x7f)
            out->data[i] = ' ';
}

static void export_collapsed(struct exporting *file)
{
    struct text *out = &file->request->body;
    file->request->type = "text/plain; charset=utf-8";
    for (uint32_t node = UINT32_MAX; next_stack(file, &node);) {
        for (uint32_t i = file->depth; i > 0; i--) {
            append_frame(out, frame_name(file, file->stack[i - 1]));
            text_append(out, i > 1 ? ";" : "");
        }
        text_printf(out, " %lld\n", (long long)file->values.self[node]);
    }
}

/* ---- speedscope ---- */

/* Prints the frames of all stacks, and notes their places. */
static void print_frames(struct exporting *file)
{
    struct json_text *json = &file->request->json;
    uint32_t count = 0;
    file->places =
        arena_array(&file->request->arena, file->names->frames.count + 1, sizeof *file->places);
    json_text_open(json, "shared", '{');
    json_text_open(json, "frames", '[');
    for (uint32_t node = UINT32_MAX; next_stack(file, &node);)
        for (uint32_t i = 0; i < file->depth; i++) {
            uint32_t frame = file->stack[i];
            if (file->places[frame] != 0)
                continue;
            file->places[frame] = ++count;
            json_text_open(json, NULL, '{');
            json_text_slice(json, "name", frame_name(file, frame));
            json_text_slice(json, "file", frame_file(file, frame));
            json_text_close(json, '}');
        }
    json_text_close(json, ']');
    json_text_close(json, '}');
}

static void print_samples(struct exporting *file)
{
    struct json_text *json = &file->request->json;
    json_text_open(json, "samples", '[');
    for (uint32_t node = UINT32_MAX; next_stack(file, &node);) {
        if (file->values.self[node] < 0)
            continue; /* the format has no negative weights */
        json_text_open(json, NULL, '[');
        for (uint32_t i = file->depth; i > 0; i--)
            json_text_u64(json, NULL, file->places[file->stack[i - 1]] - 1);
        json_text_close(json, ']');
    }
    if (file->request->is_late)
        return;
    json_text_close(json, ']');
    json_text_open(json, "weights", '[');
    for (uint32_t node = UINT32_MAX; next_stack(file, &node);)
        if (file->values.self[node] > 0)
            json_text_i64(json, NULL, file->values.self[node]);
    if (!file->request->is_late)
        json_text_close(json, ']');
}

static void export_speedscope(struct exporting *file)
{
    struct json_text *json = &file->request->json;
    struct slice unit = type_unit(file);
    json_text_open(json, NULL, '{');
    json_text_string(json, "$schema", "https://www.speedscope.app/file-format-schema.json");
    print_frames(file);
    if (file->request->is_late)
        return;
    json_text_open(json, "profiles", '[');
    json_text_open(json, NULL, '{');
    json_text_string(json, "type", "sampled");
    json_text_slice(json, "name", type_name(file));
    json_text_string(json, "unit",
                     slice_is(unit, "nanoseconds") ? "nanoseconds"
                     : slice_is(unit, "bytes")     ? "bytes"
                                                   : "none");
    json_text_u64(json, "startValue", 0);
    json_text_i64(json, "endValue", file->values.sum);
    print_samples(file);
    if (file->request->is_late)
        return;
    json_text_close(json, '}');
    json_text_close(json, ']');
    json_text_close(json, '}');
}

/* ---- all ---- */

void api_export(struct api_request *request)
{
    static const char *const formats[] = {"pprof", "collapsed", "speedscope"};
    static const char *const endings[] = {"pb.gz", "collapsed.txt", "speedscope.json"};
    static void (*const writers[])(struct exporting * file) = {export_pprof, export_collapsed,
                                                               export_speedscope};
    struct store_selection selection;
    struct exporting file = {.request = request, .names = &request->store->names};
    int format;
    if (!api_word(request, "format", formats, 3, 0, &format) ||
        !api_selection(request, "", &selection, &file.type))
        return;
    if (file.type == STORE_TYPES_MAX) {
        api_refuse(request, 404, "not_found", "there are no profiles yet");
        return;
    }
    file.values = store_query_values(request->store, &selection, file.type);
    limit_stacks(&file);
    set_time(&file, &selection);
    request->file_name = file_name(&file, &selection, endings[format]);
    writers[format](&file);
    store_values_deinit(&file.values);
}
