/* What a browser, or a stranger, may ask explore: a path and a query. Every answer is JSON, a file,
 * or an error, and the store stays as it is. */
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/data/json.h"
#include "core/data/wire_writer.h"
#include "core/formats/profiles_builder.h"
#include "extensions/explore/api.h"

#include <assert.h>
#include <jansson.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct api_context context = {
    .version = "fuzz",
    .links = {"http://g", "http://t/", "http://p/", "tempo", "profiles"},
    .limit_bytes = 1 << 20};

static void add(struct store *store, enum signal signal, struct buffer *buffer, uint32_t i)
{
    struct join_offer *offer = memory_zalloc(sizeof *offer + sizeof(struct buffer *));
    offer->signal = signal;
    offer->part_count = 1;
    offer->parts[0] = buffer;
    offer->report = join_report_new(signal == SIGNAL_PROFILES
                                        ? (struct join_report_size){.keys = 2, .resources = 1}
                                        : (struct join_report_size){.spans = 1});
    if (signal == SIGNAL_PROFILES)
        offer->report->keys[0].span_id[0] = offer->report->keys[0].trace_id[0] = 1;
    else
        offer->report->spans[0].span_id[0] = offer->report->spans[0].trace_id[0] = 1;
    store_add(store, offer, UINT64_C(1700000000000000000) + i * STORE_MINUTE_NS, 1);
    store_make_room(store);
    join_offer_free(offer);
}

/* One span, with the ids of profiles(). */
static struct buffer *traces(uint8_t id)
{
    const uint8_t trace_id[TRACE_ID_SIZE] = {id}, span_id[SPAN_ID_SIZE] = {id};
    struct wire_writer out = {0};
    size_t group = wire_writer_begin(&out, TRACES_RESOURCE_SPANS);
    size_t scope = wire_writer_begin(&out, RESOURCE_SPANS_SCOPE_SPANS);
    size_t span = wire_writer_begin(&out, SCOPE_SPANS_SPANS);
    wire_writer_bytes(&out, SPAN_TRACE_ID, slice_of(trace_id, sizeof trace_id));
    wire_writer_bytes(&out, SPAN_SPAN_ID, slice_of(span_id, sizeof span_id));
    wire_writer_bytes(&out, SPAN_NAME, id % 2 ? SLICE("a") : SLICE("b"));
    wire_writer_fixed64(&out, SPAN_END_TIME_UNIX_NANO, (uint64_t)id << 25);
    wire_writer_end(&out, span);
    wire_writer_end(&out, scope);
    wire_writer_end(&out, group);
    return buffer_adopt(out.data, out.size, out.capacity, NULL);
}

/* Some stacks of a span and of none. */
static struct buffer *profiles(uint8_t id)
{
    const uint8_t trace_id[TRACE_ID_SIZE] = {id}, span_id[SPAN_ID_SIZE] = {id};
    struct profiles_builder *builder = profiles_builder_new(NULL, (size_t)1 << 20);
    const struct built_attribute service = {SLICE("service.name"), SLICE("shop")};
    profiles_builder_resource(builder, &(struct built_resource){&service, 1, {0}, {0}});
    const struct built_profile header = {
        .sample_type = profiles_builder_string(builder, id % 2 ? SLICE("cpu") : SLICE("wall")),
        .sample_unit = profiles_builder_string(builder, SLICE("nanoseconds"))};
    uint32_t profile = profiles_builder_profile(builder, &header), samples;
    for (uint8_t i = 0; i < 8; i++) {
        const char name[] = {(char)('a' + (i + id) % 26), '\0'};
        const uint32_t stack[] = {profiles_builder_frame(builder, slice_of(name, 1)),
                                  profiles_builder_frame(builder, SLICE("main"))};
        const struct built_sample sample = {
            .stack = profiles_builder_stack(builder, stack, 2),
            .link = i % 2 ? profiles_builder_link(builder, trace_id, span_id) : 0};
        profiles_builder_sample(builder, profile, &sample, i + 1);
    }
    struct buffer *request = profiles_builder_finish(builder, &samples);
    profiles_builder_free(builder);
    return request;
}

static struct store *filled(void)
{
    struct store *store = store_new((size_t)1 << 20, UINT64_C(1700000000000000000));
    for (uint8_t i = 1; i <= 20; i++) {
        add(store, SIGNAL_PROFILES, profiles(i), i);
        add(store, SIGNAL_TRACES, traces(i), i);
    }
    assert(store->spans.spans.count > 0 && store->cells.entries.count > 0);
    return store;
}

static void check_json(const struct api_request *request)
{
    json_t *json = json_loadb(request->body.data, request->body.size, 0, NULL);
    assert(json);
    assert((request->status == 200) == !json_object_get(json, "error"));
    json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct store *store;
    if (!store)
        store = filled();
    const uint8_t *mark = size > 0 ? memchr(data, '?', size) : NULL;
    struct slice path = slice_of(data, mark ? (size_t)(mark - data) : size);
    struct slice query = mark ? slice_of(mark + 1, size - path.size - 1) : slice_of(NULL, 0);
    struct api_request request = {.store = store,
                                  .context = &context,
                                  .now_ns = UINT64_C(1700000000000000000) + 20 * STORE_MINUTE_NS};
    size_t before = store->names.texts.count;
    api_answer(&request, path, query);
    assert(request.status == 200 || request.status == 400 || request.status == 404 ||
           request.status == 503);
    if (strcmp(request.type, "application/json") == 0)
        check_json(&request);
    assert(store->names.texts.count == before);
    api_deinit(&request);
    return 0;
}
