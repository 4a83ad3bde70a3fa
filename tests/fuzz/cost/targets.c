#include "tests/fuzz/cost/targets.h"

#include "core/base/container_of.h"
#include "core/base/memory.h"
#include "core/pipeline/otlp_request.h"
#include "tests/fuzz/cost/sequences.h"
#include "tests/unit/cost_stages.h"
#include "tests/unit/cost_uploads.h"

#include <assert.h>
#include <string.h>

/* ---- uploads ---- */

/* Sets the size in the header of the first chunk to that of the input; otherwise mutations that
 * change the size would never get past the header. */
static bool send_jfr_of_any_size(struct slice request, struct verdict *why)
{
    enum { SIZE_AT = 8 };
    uint8_t *jfr = (uint8_t *)request.data; /* a copy of the input */
    for (size_t i = 0; request.size >= SIZE_AT + 8 && i < 8; i++)
        jfr[SIZE_AT + i] = (uint8_t)((uint64_t)request.size >> (56 - 8 * i));
    return send_jfr(request, why);
}

static struct buffer *copy_of(struct slice request)
{
    struct buffer *body = buffer_new_charged(request.size, NULL);
    buffer_append(body, request.data, request.size, request.size);
    return body;
}

static bool send_otlp_scanned(struct slice request, struct verdict *why)
{
    struct otlp_request_content content;
    struct buffer *body =
        otlp_request_read(copy_of(request), SIGNAL_PROFILES, false, NULL, &content, why);
    bool fine = body && send_otlp(buffer_slice(body), why);
    buffer_unref(body);
    return fine;
}

/* ---- all ---- */

struct target {
    struct cost_target target; /* first */
    /* One of three is set: a function that sends a request, */
    bool (*send)(struct slice request, struct verdict *why);
    /* a function that plays a sequence, */
    struct measured (*play)(struct slice sequence);
    /* or the name of a stage (cost_stages.h). */
    const char *stage;
    enum signal signal;
    bool is_json;
};

#define UPLOAD(n, f, s)                                                                            \
    {                                                                                              \
        .target = {.name = #n, .format = (f)}, .send = (s)                                         \
    }
#define SEQUENCE(n, p)                                                                             \
    {                                                                                              \
        .target = {.name = #n, .format = COST_PROTOBUF}, .play = (p)                               \
    }
#define OTLP(n, s, g)                                                                              \
    {                                                                                              \
        .target = {.name = #n, .format = COST_PROTOBUF}, .stage = (s), .signal = (g)               \
    }
#define OTLP_JSON(n, g)                                                                            \
    {                                                                                              \
        .target = {.name = #n, .format = COST_TEXT}, .stage = "scan", .signal = (g),               \
        .is_json = true                                                                            \
    }

/* Add new targets at the end: seeds name them by number. */
static const struct target targets[] = {
    OTLP(otlp_traces, "scan", SIGNAL_TRACES),
    OTLP(otlp_profiles, "scan", SIGNAL_PROFILES),
    OTLP_JSON(otlp_traces_json, SIGNAL_TRACES),
    OTLP_JSON(otlp_profiles_json, SIGNAL_PROFILES),
    UPLOAD(otlp_names, COST_PROTOBUF, send_otlp_scanned),
    UPLOAD(pprof, COST_PROTOBUF, send_pprof),
    UPLOAD(pprof_delta, COST_PROTOBUF, send_delta),
    UPLOAD(jfr, COST_JFR, send_jfr_of_any_size),
    UPLOAD(jfr_form, COST_TEXT, send_jfr_form),
    UPLOAD(folded, COST_TEXT, send_folded),
    UPLOAD(lines, COST_TEXT, send_lines),
    UPLOAD(tree, COST_TEXT, send_tree),
    UPLOAD(trie, COST_TEXT, send_trie),
    UPLOAD(speedscope, COST_TEXT, send_speedscope),
    UPLOAD(push, COST_PROTOBUF, send_push),
    UPLOAD(push_json, COST_TEXT, send_push_json),
    UPLOAD(push_grpc_web, COST_TEXT, send_grpc_web),
    UPLOAD(form, COST_TEXT, send_form),
    OTLP(spanjoin_traces, "spanjoin", SIGNAL_TRACES),
    OTLP(spanjoin_profiles, "spanjoin", SIGNAL_PROFILES),
    OTLP(resource_traces, "resource", SIGNAL_TRACES),
    OTLP(resource_profiles, "resource", SIGNAL_PROFILES),
    OTLP(cut_1_traces, "cut_1", SIGNAL_TRACES),
    OTLP(cut_1_profiles, "cut_1", SIGNAL_PROFILES),
    OTLP(cut_100_traces, "cut_100", SIGNAL_TRACES),
    OTLP(cut_100_profiles, "cut_100", SIGNAL_PROFILES),
    OTLP(merge_traces, "merge", SIGNAL_TRACES),
    OTLP(merge_profiles, "merge", SIGNAL_PROFILES),
    OTLP(json_traces, "json", SIGNAL_TRACES),
    OTLP(json_profiles, "json", SIGNAL_PROFILES),
    OTLP(describe_traces, "describe", SIGNAL_TRACES),
    OTLP(describe_profiles, "describe", SIGNAL_PROFILES),
    OTLP(pyroscope, "pyroscope", SIGNAL_PROFILES),
    SEQUENCE(spanjoin, cost_sequence_spanjoin),
    SEQUENCE(batch, cost_sequence_batch),
    OTLP(items_traces, "items", SIGNAL_TRACES),
    OTLP(items_profiles, "items", SIGNAL_PROFILES),
    OTLP(cut_bytes_traces, "cut_bytes", SIGNAL_TRACES),
    OTLP(cut_bytes_profiles, "cut_bytes", SIGNAL_PROFILES),
    OTLP(attributes_traces, "attributes", SIGNAL_TRACES),
    OTLP(attributes_profiles, "attributes", SIGNAL_PROFILES),
    OTLP(resource_detection_traces, "resource_detection", SIGNAL_TRACES),
    OTLP(resource_detection_profiles, "resource_detection", SIGNAL_PROFILES),
    OTLP(count_traces, "count", SIGNAL_TRACES),
    OTLP(count_profiles, "count", SIGNAL_PROFILES),
    OTLP(routing_traces, "routing", SIGNAL_TRACES),
    OTLP(routing_profiles, "routing", SIGNAL_PROFILES),
    OTLP(sampler_traces, "probabilistic_sampler", SIGNAL_TRACES),
    OTLP(sampler_profiles, "probabilistic_sampler", SIGNAL_PROFILES),
    OTLP(prune_profiles, "prune", SIGNAL_PROFILES),
    OTLP(fold_profiles, "fold", SIGNAL_PROFILES),
    OTLP(tail_sampling_traces, "tail_sampling", SIGNAL_TRACES),
    OTLP(tail_sampling_profiles, "tail_sampling", SIGNAL_PROFILES),
    OTLP(stack_limit, "stack_limit", SIGNAL_PROFILES),
    OTLP(redaction_traces, "redaction", SIGNAL_TRACES),
    OTLP(redaction_profiles, "redaction", SIGNAL_PROFILES),
};
enum { TARGETS = sizeof targets / sizeof *targets };

const struct cost_target *cost_target_at(size_t number)
{
    return number < TARGETS ? &targets[number].target : NULL;
}

const struct cost_target *cost_target_of(uint8_t first)
{
    return &targets[first % TARGETS].target;
}

void cost_targets_start(void)
{
    cost_stages_start();
}

static const struct cost_stage *stage_named(const char *name)
{
    for (size_t i = 0; i < cost_stage_count; i++)
        if (strcmp(cost_stages[i].name, name) == 0)
            return &cost_stages[i];
    abort();
}

static struct measured send_upload(const struct target *target, struct slice input,
                                   struct verdict *why)
{
    uint8_t *copy = memory_alloc(input.size + 1);
    memcpy(copy, input.data, input.size);
    meter_begin();
    bool is_taken = target->send(slice_of(copy, input.size), why);
    struct measured measured = meter_end();
    assert(is_taken == verdict_is_ok(why));
    free(copy);
    return measured;
}

static struct measured take_stage(const struct target *target, struct slice input,
                                  struct verdict *why)
{
    struct buffer *body = copy_of(input);
    meter_begin();
    cost_stage_take(stage_named(target->stage), target->signal, body, target->is_json, why);
    return meter_end();
}

struct measured cost_target_run(const struct cost_target *cost_target, struct slice input,
                                struct verdict *why)
{
    const struct target *target = container_of(cost_target, struct target, target);
    *why = verdict_ok;
    if (target->play)
        return target->play(input);
    return target->send ? send_upload(target, input, why) : take_stage(target, input, why);
}

static size_t peak_more(const struct cost_target *cost_target)
{
    const struct target *target = container_of(cost_target, struct target, target);
    enum { UPLOAD_MORE = 8 << 20 };
    size_t more = target->stage ? stage_named(target->stage)->peak_more : 0;
    return more > UPLOAD_MORE ? more : UPLOAD_MORE;
}

size_t cost_target_bytes_max(const struct cost_target *target, size_t size)
{
    return size * COST_STAGE_PEAK_PER_BYTE + peak_more(target);
}

/* The constants are for work that the limits allow for any size (profiles_builder.h), and for the
 * text of a description (describe.h). */
uint64_t cost_target_steps_max(const struct cost_target *target, size_t size)
{
    enum { PER_BYTE = 500, MORE_PER_BYTE = 8 };
    return (uint64_t)size * PER_BYTE + peak_more(target) * MORE_PER_BYTE;
}
