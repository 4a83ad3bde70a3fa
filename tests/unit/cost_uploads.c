#include "tests/unit/cost_uploads.h"

#include "core/base/budget.h"
#include "core/base/memory.h"
#include "core/data/message.h"
#include "core/data/sample_threads.h"
#include "core/pipeline/received_profiles.h"
#include "receivers/pprof/profile_intake.h"
#include "receivers/pyroscope/grpc_web.h"
#include "receivers/pyroscope/ingest.h"
#include "receivers/pyroscope/push.h"
#include "receivers/pyroscope/service_names.h"

static const struct pyroscope_settings *settings(void)
{
    static struct pyroscope_settings all = {.default_service_name = "unknown_service",
                                            .service_name_header_lower = "x-service"};
    all.server.max_request_body_size = COST_BODY_MAX;
    return &all;
}

/* Returns the longest service name that fits into a head. */
static struct slice long_name(void)
{
    static uint8_t text[12 << 10];
    memset(text, 'n', sizeof text);
    return slice_of(text, sizeof text);
}

typedef bool (*upload_reader)(struct upload *upload, struct slice body, struct verdict *why);

static unsigned added_threads; /* enum added_threads */

static bool send_upload(upload_reader read, const char *content_type, struct slice body,
                        struct verdict *why)
{
    struct http_header items[] = {{SLICE("content-type"), slice_of_string(content_type)},
                                  {SLICE("x-service"), long_name()}};
    struct http_headers headers = {.items = items, .count = 2};
    struct budget budget = {0};
    struct upload upload;
    struct buffer *profiles = NULL;
    uint32_t samples;
    upload_init(&upload, settings(), &headers, SIZE_MAX, &budget);
    upload.added_threads = added_threads;
    if (read(&upload, body, why))
        profiles = received_profiles_finish(upload.builder, &samples, why);
    upload_deinit(&upload);
    buffer_unref(profiles);
    return profiles != NULL;
}

static const char *ingest_query;

static bool read_ingest(struct upload *upload, struct slice body, struct verdict *why)
{
    struct ingest_query query;
    struct error err;
    if (ingest_query_parse(slice_of_string(ingest_query), upload->now_ns, &upload->arena, &query,
                           &err))
        return ingest_read(upload, &query, body, why);
    *why = verdict_of(GRPC_INVALID_ARGUMENT, "%s", err.text);
    return false;
}

static bool send_ingest(const char *query, const char *content_type, struct slice body,
                        struct verdict *why)
{
    ingest_query = query;
    return send_upload(read_ingest, content_type, body, why);
}

#define INGEST(format)                                                                             \
    bool send_##format(struct slice body, struct verdict *why)                                     \
    {                                                                                              \
        return send_ingest("name=shop.alloc_space&format=" #format, "text/plain", body, why);      \
    }
INGEST(pprof)
INGEST(jfr)

bool send_jfr_with_threads(struct slice body, struct verdict *why)
{
    added_threads = ADD_TIMES_OF_UNNAMED | ADD_TIMES_OF_NAMED;
    bool done = send_jfr(body, why);
    added_threads = 0;
    return done;
}

INGEST(lines)
INGEST(tree)
INGEST(trie)
INGEST(speedscope)
INGEST(folded) /* without a format, the Content-Type selects it */

bool send_form(struct slice body, struct verdict *why)
{
    return send_ingest("name=shop", "multipart/form-data; boundary=" COST_BOUNDARY, body, why);
}

bool send_jfr_form(struct slice body, struct verdict *why)
{
    return send_ingest("name=shop&format=jfr", "multipart/form-data; boundary=" COST_BOUNDARY, body,
                       why);
}

bool send_push(struct slice body, struct verdict *why)
{
    return send_upload(push_read, "application/proto", body, why);
}

bool send_push_json(struct slice body, struct verdict *why)
{
    return send_upload(push_read_json, "application/json", body, why);
}

static bool read_grpc_web(struct upload *upload, struct slice body, struct verdict *why)
{
    struct plain message = {0};
    bool fine = grpc_web_read(upload, body, &message, why) && push_read(upload, message.bytes, why);
    plain_close(&message);
    return fine;
}

bool send_grpc_web(struct slice body, struct verdict *why)
{
    return send_upload(read_grpc_web, "application/grpc-web", body, why);
}

bool send_delta(struct slice body, struct verdict *why)
{
    struct budget budget = {0};
    struct series series = {.attribute_count = 0};
    struct pprof_delta *delta = pprof_delta_new(&budget, pprof_delta_usual);
    struct profile_intake intake = {.bytes = body,
                                    .series = &series,
                                    .max_size = COST_BODY_MAX,
                                    .delta = delta,
                                    .budget = &budget};
    bool fine = true;
    for (int i = 0; i < 2 && fine; i++) {
        uint32_t samples;
        struct buffer *profiles = profile_intake_read(&intake, NULL, &samples, why);
        fine = profiles != NULL;
        pprof_delta_keep(delta);
        buffer_unref(profiles);
    }
    pprof_delta_free(delta);
    return fine;
}

/* Runs the receiver's own part: adds service names, and encodes the result. */
bool send_otlp(struct slice body, struct verdict *why)
{
    struct arena arena = {0};
    struct message root;
    if (!service_names_fit(body, long_name())) {
        *why = verdict_of(GRPC_RESOURCE_EXHAUSTED, "too many resources");
        return false;
    }
    message_init(&root, body);
    service_names_set(&root, &arena, long_name());
    struct buffer *request = buffer_new_charged(message_measure(&root), NULL);
    message_write(&root, request->data);
    buffer_unref(request);
    arena_deinit(&arena);
    return true;
}

void put_record(struct wire_writer *out, uint32_t number, const uint64_t *numbers, uint32_t count)
{
    size_t begun = wire_writer_begin(out, number);
    for (uint32_t i = 0; i < count; i++)
        wire_writer_varint(out, i + 1, numbers[i]);
    wire_writer_end(out, begun);
}

void put_repeated(struct wire_writer *out, uint32_t number, int c, size_t size)
{
    uint8_t *text = memory_alloc(size);
    memset(text, c, size);
    wire_writer_bytes(out, number, slice_of(text, size));
    free(text);
}
