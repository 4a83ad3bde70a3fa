/*
 * The exporter pyroscope with any request that a receiver accepts: every push must contain a pprof
 * that our own reader accepts.
 */
#include "core/base/hash.h"
#include "core/base/worker.h"
#include "core/data/normalise.h"
#include "core/data/scan.h"
#include "core/formats/pprof_read.h"
#include "core/formats/profiles_builder.h"
#include "exporters/pyroscope/pushes.h"

#include <stdio.h>
#include <stdlib.h>

static struct worker worker;
/* volatile, because nothing reads it: otherwise it is optimised away, and its memory counts as
 * leaked. */
static struct metrics *volatile metrics;
static struct label_limits *limits;
static const struct label_settings labels;

static void get_ready(void)
{
    if (limits)
        return;
    hash_init_with(1);
    scan_init();
    worker_init_manual(&worker, 0, 1);
    metrics = metrics_new(1);
    limits = label_limits_new(5, metrics_counter(metrics, "folded", "Folded.", ""), "fuzz");
}

/* Returns the payload of the first field with this number. */
static struct slice field_of(struct slice message, uint32_t number)
{
    struct wire_cursor cursor = wire_cursor(message);
    struct wire_field field;
    while (wire_next(&cursor, &field))
        if (field.number == number && field.type == WIRE_BYTES)
            return field.bytes;
    return (struct slice){0};
}

static void check_push(struct slice request)
{
    enum { SERIES = 1, SAMPLES = 2, RAW_PROFILE = 1 };
    struct slice pprof = field_of(field_of(field_of(request, SERIES), SAMPLES), RAW_PROFILE);
    struct pprof_options options = {.time_unix_nano = 1};
    struct error err;
    struct profiles_builder *builder = profiles_builder_new(NULL, 64 << 20);
    profiles_builder_resource(builder, &(struct built_resource){.scope_name = {0}});
    if (!pprof_read(builder, pprof, &options, &err)) {
        fprintf(stderr, "%s\n", err.text);
        abort();
    }
    profiles_builder_free(builder);
}

static struct buffer *receive(const uint8_t *data, size_t size, uint32_t *items)
{
    struct scan_result scan;
    struct error err;
    struct buffer *body = buffer_new_charged(size, NULL);
    if (size > 0)
        memcpy(body->data, data, size);
    body->size = size;
    bool fine = scan_profiles(buffer_slice(body), &scan_limits_default, &scan, &err);
    struct buffer *normal =
        fine && normalise_needed(&scan)
            ? normalise_profiles(buffer_slice(body), &scan, NULL, &(bool){false})
            : NULL;
    *items = scan.items;
    if (!fine || normal) {
        buffer_unref(body);
        body = normal;
    }
    return body;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    get_ready();
    uint32_t items;
    struct buffer *body = receive(data, size, &items);
    if (!body)
        return 0;
    struct batch *batch = batch_new(&worker, SIGNAL_PROFILES, body, items, NULL, NULL);
    struct push_options options = {.labels = &labels,
                                   .limits = limits,
                                   .label = "fuzz",
                                   .max_profile_bytes = 4096,
                                   .max_samples = 100,
                                   .now_ns = 1};
    struct pushes *pushes = pushes_new(batch, &options);
    bool is_gzip;
    struct buffer *push;
    while ((push = pushes_next(pushes, &is_gzip)) != NULL) {
        check_push(buffer_slice(push));
        buffer_unref(push);
    }
    pushes_free(pushes);
    batch_free(batch);
    return 0;
}
