/* /api/explain: prepared reasons why a span has a profile or none, each with its answer. */
#include "core/data/scan.h"
#include "tests/unit/explore_fixture.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { TRACE = 7, SPAN = 42, OTHER = 43 };
#define SPAN_LARGE UINT64_C(9876543210987654321)

static SpanMessage *add_span(struct request *request, uint64_t span, uint64_t duration_ns)
{
    return traces_span(request, TRACE, span, WALL, WALL + duration_ns, "GET /a");
}

static void send_span(struct scene *scene, uint64_t span, uint64_t duration_ns)
{
    struct request request;
    traces_begin(&request, "shop");
    add_span(&request, span, duration_ns);
    scene_send(scene, &request);
}

static void send_child(struct scene *scene, uint64_t span, uint64_t parent)
{
    struct request request;
    traces_begin(&request, "shop");
    span_set_parent(&request, add_span(&request, span, SECOND), parent);
    scene_send(scene, &request);
}

static void begin_profile(struct request *request, const char *type)
{
    profiles_begin(request);
    profiles_resource_string(request, "service.name", "shop");
    profiles_profile(request, type, "nanoseconds");
}

static SampleMessage *add_sample(struct request *request, uint64_t span)
{
    SampleMessage *sample = profiles_sample(request, 1);
    if (span)
        sample_link(request, sample, TRACE, span);
    sample_value(request, sample, 30);
    return sample;
}

static void send_sample_of(struct scene *scene, uint64_t span, const char *type)
{
    struct request request;
    begin_profile(&request, type);
    add_sample(&request, span);
    scene_send(scene, &request);
}

static void send_sample(struct scene *scene, uint64_t span)
{
    send_sample_of(scene, span, "cpu");
}

/* ---- the cases ---- */

static void is_joined(struct scene *scene)
{
    send_span(scene, SPAN, SECOND);
    send_sample(scene, SPAN);
}

static void is_joined_after_samples(struct scene *scene)
{
    send_sample(scene, SPAN);
    send_span(scene, SPAN, SECOND);
}

static void waits_for_its_span(struct scene *scene)
{
    send_sample(scene, SPAN);
    scene_wait(scene, SECOND);
    send_span(scene, SPAN, SECOND);
}

/* The upload with the end of the span does not come. */
static void is_incomplete(struct scene *scene)
{
    struct request request;
    profiles_begin(&request);
    profiles_resource_string(&request, "service.name", "shop");
    ProfileMessage *profile = profiles_profile(&request, "cpu", "nanoseconds");
    profile->time_unix_nano = WALL;
    profile->duration_nano = SECOND / 2;
    add_sample(&request, SPAN);
    scene_send(scene, &request);
    send_span(scene, SPAN, SECOND);
}

static void is_late(struct scene *scene)
{
    send_sample(scene, SPAN);
    scene_wait(scene, 14 * SECOND);
    send_span(scene, SPAN, 14 * SECOND);
}

static void is_expired(struct scene *scene)
{
    send_span(scene, SPAN, SECOND);
    scene_wait(scene, 61 * SECOND);
    send_sample(scene, SPAN);
}

/* A span that waits for its samples has arrived before it leaves. */
static void waits_and_expires(struct scene *scene)
{
    send_span(scene, SPAN, SECOND);
    scene_wait(scene, 11 * SECOND);
    send_sample(scene, SPAN);
}

static void waits_and_is_late(struct scene *scene)
{
    send_sample(scene, SPAN);
    scene_wait(scene, 4 * SECOND);
    send_span(scene, SPAN, 4 * SECOND);
}

/* The samples wait for another span for longer than the window. */
static void expires_while_samples_wait(struct scene *scene)
{
    struct request request;
    send_span(scene, SPAN, SECOND);
    scene_wait(scene, 15 * SECOND);
    begin_profile(&request, "cpu");
    add_sample(&request, SPAN);
    add_sample(&request, OTHER);
    scene_send(scene, &request);
}

static void has_not_arrived(struct scene *scene)
{
    send_sample(scene, SPAN);
    scene_wait(scene, 14 * SECOND);
}

static void has_unread_id(struct scene *scene)
{
    struct request request;
    send_span(scene, SPAN, SECOND);
    begin_profile(&request, "cpu");
    sample_string(&request, add_sample(&request, 0), "dd.span", "0x000000000000002A");
    scene_send(scene, &request);
}

static void has_id_in_attribute(struct scene *scene, const char *key, const char *id)
{
    struct request request;
    send_span(scene, SPAN_LARGE, SECOND);
    begin_profile(&request, "cpu");
    sample_string(&request, add_sample(&request, 0), key, id);
    scene_send(scene, &request);
}

static void has_other_types(struct scene *scene)
{
    send_span(scene, SPAN, SECOND);
    send_sample(scene, OTHER);
    send_sample_of(scene, SPAN, "wall");
}

static void is_not_profiled(struct scene *scene)
{
    send_span(scene, SPAN, SECOND);
}

static void has_no_thread(struct scene *scene)
{
    send_span(scene, SPAN, SECOND);
    send_sample(scene, 0);
}

static void has_unknown_thread(struct scene *scene)
{
    struct request request;
    traces_begin(&request, "shop");
    span_int(&request, add_span(&request, SPAN, SECOND), "thread.id", 12);
    scene_send(scene, &request);
    send_sample(scene, 0);
}

/* An eBPF profiler sends threads of a process, but no service. */
static void is_of_unknown_process(struct scene *scene)
{
    struct request request;
    traces_begin(&request, "shop");
    SpanMessage *span = add_span(&request, SPAN, SECOND);
    span_int(&request, span, "thread.id", 12);
    span_string(&request, span, "thread.name", "wörk");
    scene_send(scene, &request);
    profiles_begin(&request);
    request_resource(&request, "process.pid=#77");
    profiles_profile(&request, "cpu", "nanoseconds");
    SampleMessage *sample = profiles_sample(&request, 1);
    sample_int(&request, sample, "thread.id", 12);
    sample_time(&request, sample, WALL + 1);
    sample_value(&request, sample, 30);
    scene_send(scene, &request);
}

static void is_below_root(struct scene *scene)
{
    send_span(scene, OTHER, SECOND);
    send_child(scene, SPAN, OTHER);
    send_sample(scene, OTHER);
}

/* A span of another process in its trace has samples. */
static void is_below_foreign_span(struct scene *scene)
{
    struct request request;
    traces_begin(&request, "web");
    add_span(&request, OTHER, SECOND);
    scene_send(scene, &request);
    send_child(scene, SPAN, OTHER);
    profiles_begin(&request);
    profiles_resource_string(&request, "service.name", "web");
    profiles_profile(&request, "cpu", "nanoseconds");
    add_sample(&request, OTHER);
    scene_send(scene, &request);
    send_sample(scene, 0);
}

static void is_short(struct scene *scene)
{
    struct request request;
    send_span(scene, SPAN, 3000000);
    begin_profile(&request, "cpu");
    sample_link(&request, profiles_sample(&request, 1), 99, 99);
    scene_send(scene, &request);
}

/* A span of a trace of its own on a thread. start_ns: after the first one's. */
static void send_thread_span(struct scene *scene, uint64_t span, uint64_t start_ns)
{
    struct request request;
    traces_begin(&request, "shop");
    traces_resource_string(&request, "telemetry.sdk.language", "cpp");
    uint64_t start = WALL + start_ns;
    SpanMessage *message =
        traces_span(&request, TRACE + span, span, start, start + SECOND, "GET /a");
    span_int(&request, message, "thread.id", 12);
    scene_send(scene, &request);
}

/* A sample of that thread. */
static void send_thread_sample(struct scene *scene, uint64_t ns)
{
    struct request request;
    profiles_begin(&request);
    profiles_resource_string(&request, "service.name", "shop");
    ProfileMessage *profile = profiles_profile(&request, "cpu", "nanoseconds");
    profile->time_unix_nano = WALL;
    profile->duration_nano = 10 * SECOND;
    SampleMessage *sample = add_sample(&request, 0);
    sample_int(&request, sample, "thread.id", 12);
    sample_time(&request, sample, WALL + ns);
    scene_send(scene, &request);
}

/* Two spans of one thread overlap. */
static void has_ambiguous_thread(struct scene *scene)
{
    send_thread_span(scene, SPAN, 0);
    send_thread_span(scene, OTHER, SECOND / 2);
    send_thread_sample(scene, 3 * SECOND / 4);
}

/* Spans of two of Java's threads with one name, as the operating system has it, run at a time. */
static void has_ambiguous_name(struct scene *scene)
{
    struct request request;
    traces_begin(&request, "shop");
    traces_resource_string(&request, "telemetry.sdk.language", "java");
    for (uint64_t i = 0; i < 2; i++) {
        SpanMessage *span =
            traces_span(&request, TRACE + i, SPAN + i, WALL, WALL + SECOND, "GET /a");
        span_int(&request, span, "thread.id", (int64_t)(31 + i));
        span_string(&request, span, "thread.name",
                    i ? "http-nio-8080-exec-2" : "http-nio-8080-exec-1");
    }
    scene_send(scene, &request);
    begin_profile(&request, "cpu");
    SampleMessage *sample = add_sample(&request, 0);
    sample_int(&request, sample, "thread.id", 4711);
    sample_string(&request, sample, "thread.name", "http-nio-8080-e");
    sample_time(&request, sample, WALL + SECOND / 2);
    scene_send(scene, &request);
}

/* Other spans overlap, when it had ended. */
static void has_ambiguous_thread_later(struct scene *scene)
{
    send_thread_span(scene, SPAN, 0);
    send_thread_span(scene, OTHER, 2 * SECOND);
    send_thread_span(scene, OTHER + 1, 5 * SECOND / 2);
    send_thread_sample(scene, 11 * SECOND / 4);
}

/* The other one has ended. */
static void has_one_sure_sample(struct scene *scene)
{
    send_thread_span(scene, OTHER, 0);
    send_thread_span(scene, SPAN, SECOND / 2);
    send_thread_sample(scene, 3 * SECOND / 4);
    send_thread_sample(scene, 5 * SECOND / 4);
}

/* More than a request tells of: they may have been of this span. */
static void has_many_ambiguous_samples(struct scene *scene)
{
    struct request request;
    uint64_t begin = WALL + 10 * SECOND, end = WALL + 1000 * SECOND;
    send_thread_span(scene, SPAN, 0);
    traces_begin(&request, "shop");
    traces_resource_string(&request, "telemetry.sdk.language", "cpp");
    for (uint64_t i = 0; i < 2; i++)
        span_int(&request, traces_span(&request, 90 + i, 90 + i, begin + i, end + i, "GET /b"),
                 "thread.id", 12);
    scene_send(scene, &request);
    begin_profile(&request, "cpu");
    for (uint64_t i = 0; i < 130; i++) {
        SampleMessage *sample = add_sample(&request, 0);
        sample_int(&request, sample, "thread.id", 12);
        sample_time(&request, sample, begin + (1 + i) * SECOND);
    }
    scene_send(scene, &request);
}

/* The samples that are not sure had left when it came. */
static void is_late_after_ambiguous_ones(struct scene *scene)
{
    send_thread_span(scene, OTHER, 3 * SECOND);
    send_thread_span(scene, OTHER + 1, 7 * SECOND / 2);
    send_thread_sample(scene, 15 * SECOND / 4);
    scene_wait(scene, SECOND);
    send_thread_sample(scene, SECOND / 2);
    scene_wait(scene, 14 * SECOND);
    send_thread_span(scene, SPAN, 0);
}

/* Its process is known by another span. */
static void is_late_by_thread(struct scene *scene)
{
    send_thread_span(scene, OTHER, 5 * SECOND);
    send_thread_sample(scene, SECOND / 2);
    scene_wait(scene, 14 * SECOND);
    send_thread_span(scene, SPAN, 0);
}

/* One of two uploads left before the span was worth its detail. */
static void is_kept_by_cpu(struct scene *scene)
{
    send_span(scene, SPAN, SECOND);
    for (int upload = 0; upload < 2; upload++) {
        struct request request;
        begin_profile(&request, "cpu");
        SampleMessage *sample = profiles_sample(&request, 1);
        sample_link(&request, sample, TRACE, SPAN);
        sample_value(&request, sample, 30000000 + upload);
        scene_send(scene, &request);
        scene_wait(scene, SECOND);
    }
}

static void only_waits(struct scene *scene)
{
    struct request request;
    send_span(scene, SPAN, SECOND);
    begin_profile(&request, "cpu");
    SampleMessage *sample = profiles_sample(&request, 1);
    sample_link(&request, sample, 99, 99);
    sample_value(&request, sample, 1);
    scene_send(scene, &request);
}

/* The profiler has the id of the span and that of another trace. */
static void is_of_other_trace(struct scene *scene)
{
    struct request request;
    send_span(scene, SPAN, SECOND);
    begin_profile(&request, "cpu");
    sample_link(&request, add_sample(&request, 0), 9, SPAN);
    scene_send(scene, &request);
}

/* Nothing is known of its process yet, so that it waits. */
static void still_waits(struct scene *scene)
{
    send_span(scene, SPAN, SECOND);
}

static void has_nothing(struct scene *scene)
{
    (void)scene;
}

#define WAITS "window: 60s, samples: {wait: 5s}"
#define KEEPS_DRY                                                                                  \
    WAITS ", keep: {span_detail_when: [{duration_above: 1h}], otherwise: fold, dry_run: true}"
#define KEEPS_CPU WAITS ", keep: {span_detail_when: [{cpu_above: 45ms}], otherwise: fold}"
#define KEEPS WAITS ", keep: {span_detail_when: [{duration_above: 1h}], otherwise: fold}"
#define KEEPS_LONG WAITS ", keep: {span_detail_when: [{duration_above: 2s}], otherwise: fold}"
#define DROPS WAITS ", keep: {span_detail_when: [{duration_above: 1h}], otherwise: drop}"
#define SAYS_NOTHING WAITS ", spans: {attributes: []}"
#define SAYS_OTHER_TYPE WAITS ", spans: {attributes: [{key: wall, from: 'samples.sum[\"wall\"]'}]}"
#define KEEPS_ALL WAITS ", keep: {span_detail_when: [{ratio: 1.0}], otherwise: fold}"
#define KEEPS_NAMELESS                                                                             \
    "window: 60s, samples: {wait: 5s, attributes: []}, "                                           \
    "keep: {span_detail_when: [{duration_above: 1h}], otherwise: fold}"
static const struct {
    void (*prepare)(struct scene *scene);
    const char *settings;
    const char *code;
    const char *text; /* part of the answer */
} cases[] = {
    {is_joined, WAITS, "joined", "1 sample (cpu) was joined"},
    {is_joined, KEEPS, "kept_out", "`keep`"},
    {is_joined, WAITS, "joined", "The span had left before them (spans.wait)"},
    {is_joined_after_samples, SAYS_OTHER_TYPE, "joined",
     "1 sample (cpu) was joined. spanjoin added nothing to the span: it has all of"},
    {waits_for_its_span, SAYS_NOTHING, "joined",
     "1 sample (cpu) was joined. spanjoin added nothing to the span: it has all of"},
    {is_joined_after_samples, KEEPS_ALL, "joined",
     "1 sample (cpu) was joined. It is worth its detail (keep): ratio: 1.0."},
    {is_incomplete, "window: 60s, spans: {wait: 5s}", "joined", "profile.complete: false"},
    {is_late_by_thread, "window: 60s, samples: {wait: 50ms}", "late_span",
     "it arrived 14.0 s after its start, and samples wait 0.05 s"},
    {is_joined, DROPS, "kept_out", "`keep`"},
    {is_below_root, KEEPS, "local_root", "`keep` took the detail of that span"},
    {is_below_root, DROPS, "local_root", "1 sample names \"GET /a\" of the same trace"},
    {is_below_root, KEEPS_NAMELESS, "local_root", "`keep` took the detail of that span"},
    {is_below_foreign_span, WAITS, "no_thread", "Samples of the service \"shop\" name no spans"},
    {is_kept_by_cpu, KEEPS_CPU, "joined",
     "2 samples (cpu) were joined. 1 of them left without detail (keep)"},
    {is_joined, KEEPS_DRY, "joined", "Without dry_run, `keep` would take their detail"},
    {is_late, WAITS, "late_span",
     "14.0 s after its samples, which had waited 5.0 s and left. "
     "samples.wait: 15s would join it"},
    {is_late, "window: 60s, samples: {wait: 50ms}", "late_span", "which had waited 0.05 s and"},
    {is_expired, WAITS, "expired", "61.0 s after the span; `window` is 60 s"},
    {is_expired, "window: 1.5s", "expired", "61.0 s after the span; `window` is 1.5 s"},
    {waits_and_expires, "window: 10s, spans: {wait: 5s}", "expired",
     "Its samples arrived 11.0 s after the span; `window` is 10 s"},
    {waits_and_is_late, "window: 10s, samples: {wait: 2s}, spans: {wait: 5s}", "late_span",
     "4.0 s after its samples, which had waited 2.0 s and left. samples.wait: 5s would join it"},
    {expires_while_samples_wait, "window: 20s, samples: {wait: 8s}", "expired",
     "arrived 15.0 s after the span, and waited 8.0 s for another one; `window` is 20 s"},
    {has_not_arrived, WAITS, "no_span", "waits in spanjoin (`spans.wait`)"},
    {has_unread_id, WAITS, "unread_id", "\"dd.span\""},
    {has_other_types, WAITS, "other_types", "of wall only"},
    {is_not_profiled, WAITS, "no_profiles", "No profiles of the service \"shop\""},
    {has_no_thread, WAITS, "no_thread", "does not name its thread"},
    {has_unknown_thread, WAITS, "thread_unknown", "none was taken on the span's thread"},
    {is_of_unknown_process, WAITS, "no_process",
     "profiles and spans both need the same service.name, service.instance.id"},
    {has_ambiguous_thread, WAITS, "ambiguous_thread",
     "of those that were taken on its thread while it ran it was not sure"},
    {has_ambiguous_name, WAITS, "ambiguous_thread", "of those that were taken on its thread"},
    {has_ambiguous_thread_later, WAITS, "thread_unknown", "none was taken on the span's thread"},
    {has_one_sure_sample, WAITS, "joined",
     "1 sample (cpu) was joined. Of others on its thread, taken while it ran, it was not sure"},
    {has_many_ambiguous_samples, WAITS, "ambiguous_thread",
     "of 130 samples of the service it was not sure"},
    {is_late_after_ambiguous_ones, WAITS, "late_span", "It says what its samples cost"},
    {is_late_after_ambiguous_ones, SAYS_NOTHING, "maybe_late", "15.0 s after its start"},
    {is_late_by_thread, SAYS_NOTHING, "maybe_late",
     "arrived 14.0 s after its start, and samples wait 5.0 s"},
    {is_below_root, WAITS, "local_root", "1 sample names \"GET /a\" of the same trace"},
    {only_waits, WAITS, "no_samples", "hardly used the processor"},
    {is_of_other_trace, WAITS, "other_trace",
     "in another trace, aaaaaaaaaaaaaaaa0000000000000009; this one is of "
     "aaaaaaaaaaaaaaaa0000000000000007"},
    {still_waits, "window: 60s, spans: {wait: 30s}", "unknown",
     "or it or its samples wait in spanjoin"},
    {has_nothing, WAITS, "unknown", "Neither the span nor a sample"},
};

static void check(size_t i, const char *query)
{
    struct scene scene;
    scene_begin(&scene, 4 << 20, cases[i].settings);
    cases[i].prepare(&scene);
    scene_wait(&scene, 10 * SECOND);
    json_t *answer = scene_ask(&scene, "explain", query);
    const char *code = json_text_at(answer, "reason.code");
    const char *text = json_text_at(answer, "reason.text");
    if (strcmp(code, cases[i].code) != 0 || !strstr(text, cases[i].text))
        fail_msg("%zu: %s: %s; not %s: %s", i, code, text, cases[i].code, cases[i].text);
    json_decref(answer);
    scene_end(&scene);
}

static void test_reasons(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(i, "id=000000000000002a");
}

/* The id may be written as other tools write it. */
static void test_spellings(void **state)
{
    (void)state;
    check(0, "id=000000000000002A");
    check(0, "id=0x000000000000002a");
    check(0, "id=0000000000000000042");
    check(0, "id=AAAAAAAAACo%3D");
    check(0, "id=00-AAAAAAAAAAAAAAAA0000000000000007-000000000000002A-01");
}

/* Names that do not say what they have: a long number that is the id of a span is one. */
static void test_ids_in_any_attribute(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value, *code;
    } attributes[] = {
        {"context", "9876543210987654321", "unread_id"},
        {"context", "891087b8e3b70cb2", "no_thread"}, /* another one */
        {"request", "891087b8e3b70cb1", "unread_id"},
        {"request", "iRCHuOO3DLE=", "no_thread"}, /* too many texts look like that */
        {"dd.span", "iRCHuOO3DLE=", "unread_id"},
        {"trace.id", "9876543210987654321", "no_thread"},
    };
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        struct scene scene;
        scene_begin(&scene, 4 << 20, WAITS);
        has_id_in_attribute(&scene, attributes[i].key, attributes[i].value);
        scene_wait(&scene, 10 * SECOND);
        json_t *answer = scene_ask(&scene, "explain", "id=9876543210987654321");
        assert_string_equal(json_text_at(answer, "reason.code"), attributes[i].code);
        json_decref(answer);
        scene_end(&scene);
    }
}

/* Samples without a trace id are looked up by their times, but are shown as one. */
static void test_samples_without_trace(void **state)
{
    (void)state;
    struct scene scene;
    struct request request;
    scene_begin(&scene, 4 << 20, WAITS);
    send_span(&scene, SPAN, SECOND);
    begin_profile(&request, "cpu");
    for (uint64_t i = 0; i < 3; i++) {
        SampleMessage *sample = add_sample(&request, 0);
        sample_string(&request, sample, "span_id", span_hex(SPAN));
        sample_time(&request, sample, WALL + i);
    }
    scene_send(&scene, &request);
    json_t *answer = scene_ask(&scene, "explain", "id=000000000000002a");
    assert_string_equal(json_text_at(answer, "reason.text"),
                        "3 samples (cpu) were joined. The span had left before them (spans.wait), "
                        "so spanjoin added nothing to it: its profile is found only if its SDK has "
                        "set pyroscope.profile.id.");
    assert_int_equal(json_array_size(json_object_get(answer, "samples")), 1);
    assert_int_equal(json_number_at(answer, "samples.0.samples"), 3);
    assert_string_equal(json_text_at(answer, "samples.0.profile_type"), "cpu");
    json_decref(answer);
    scene_end(&scene);
}

static void test_other_trace(void **state)
{
    (void)state;
    struct scene scene;
    scene_begin(&scene, 4 << 20, WAITS);
    is_of_other_trace(&scene);
    scene_wait(&scene, 10 * SECOND);
    json_t *answer = scene_ask(&scene, "explain", "id=000000000000002a");
    assert_string_equal(json_text_at(answer, "samples.0.text"), "its span had not arrived");
    json_decref(answer);
    scene_end(&scene);
}

static void test_thread_of_span(void **state)
{
    (void)state;
    struct scene scene;
    scene_begin(&scene, 4 << 20, WAITS);
    is_of_unknown_process(&scene);
    json_t *answer = scene_ask(&scene, "explain", "id=000000000000002a");
    assert_string_equal(json_text_at(answer, "facts.7.name"), "thread.id");
    assert_string_equal(json_text_at(answer, "facts.7.value"), "12");
    assert_string_equal(json_text_at(answer, "facts.8.name"), "thread.name");
    assert_string_equal(json_text_at(answer, "facts.8.value"), "wörk");
    json_decref(answer);
    scene_end(&scene);
}

/* A small id is compared with ids of the operating system only if the language says that it is
 * one. */
static void test_language_is_missing(void **state)
{
    (void)state;
    static const struct {
        const char *resource;
        int64_t thread;
        bool is_told;
    } spans[] = {{"", 12, true},
                 {"process.pid=#5000", 12, true},
                 {"process.pid=#5000", 5003, false},
                 {"telemetry.sdk.language=cpp", 12, false},
                 {"telemetry.sdk.language=java", 12, false}};
    for (size_t i = 0; i < sizeof spans / sizeof *spans; i++) {
        struct scene scene;
        struct request request;
        scene_begin(&scene, 4 << 20, WAITS);
        traces_begin(&request, "shop");
        if (spans[i].resource[0])
            request_resource(&request, spans[i].resource);
        span_int(&request, add_span(&request, SPAN, SECOND), "thread.id", spans[i].thread);
        scene_send(&scene, &request);
        send_thread_sample(&scene, 2 * SECOND);
        scene_wait(&scene, 10 * SECOND);
        json_t *answer = scene_ask(&scene, "explain", "id=000000000000002a");
        assert_string_equal(json_text_at(answer, "reason.code"), "thread_unknown");
        const char *text = json_text_at(answer, "reason.text");
        if (spans[i].is_told != (strstr(text, "has no telemetry.sdk.language") != NULL))
            fail_msg("%zu: %s", i, text);
        json_decref(answer);
        scene_end(&scene);
    }
}

static void test_short_span(void **state)
{
    (void)state;
    struct scene scene;
    scene_begin(&scene, 4 << 20, WAITS);
    is_short(&scene);
    send_sample(&scene, OTHER);
    scene_wait(&scene, 10 * SECOND);
    json_t *answer = scene_ask(&scene, "explain", "id=000000000000002a");
    assert_string_equal(json_text_at(answer, "reason.code"), "too_short");
    json_decref(answer);
    scene_end(&scene);
}

static void test_trace(void **state)
{
    (void)state;
    struct scene scene;
    scene_begin(&scene, 4 << 20, WAITS);
    is_below_root(&scene);
    scene_wait(&scene, 10 * SECOND);
    json_t *answer = scene_ask(&scene, "explain", "id=AAAAaaaaaaaaaaaa0000000000000007");
    assert_string_equal(json_text_at(answer, "kind"), "trace");
    assert_string_equal(json_text_at(answer, "reason.text"),
                        "1 of its 2 spans that have arrived have samples.");
    assert_string_equal(json_text_at(answer, "samples.0.outcome"), "joined");
    json_decref(answer);
    scene_end(&scene);
}

/* The samples of its only span with any have lost their detail. */
static void test_trace_kept_out(void **state)
{
    (void)state;
    struct scene scene;
    scene_begin(&scene, 4 << 20, KEEPS);
    is_below_root(&scene);
    scene_wait(&scene, 10 * SECOND);
    json_t *answer = scene_ask(&scene, "explain", "id=AAAAaaaaaaaaaaaa0000000000000007");
    assert_string_equal(json_text_at(answer, "reason.code"), "kept_out");
    assert_non_null(strstr(json_text_at(answer, "reason.text"), "1 of its 2 spans had samples"));
    assert_string_equal(json_text_at(answer, "samples.0.text"),
                        "joined, without its detail (keep)");
    json_decref(answer);
    scene_end(&scene);
}

/* One span is worth its detail, another one is not. */
static void test_trace_partly_kept_out(void **state)
{
    (void)state;
    struct scene scene;
    scene_begin(&scene, 4 << 20, KEEPS_LONG);
    send_span(&scene, OTHER, 3 * SECOND);
    send_child(&scene, SPAN, OTHER);
    send_sample(&scene, OTHER);
    send_sample(&scene, SPAN);
    json_t *answer = scene_ask(&scene, "explain", "id=AAAAaaaaaaaaaaaa0000000000000007");
    assert_string_equal(json_text_at(answer, "reason.code"), "joined");
    assert_non_null(strstr(json_text_at(answer, "reason.text"), "Of 1 more, `keep`"));
    json_decref(answer);
    scene_end(&scene);
}

/* Returns the value of a fact; empty: there is none. */
static const char *fact_of(const json_t *answer, const char *name)
{
    const json_t *fact;
    size_t i;
    json_array_foreach(json_object_get(answer, "facts"), i, fact)
    {
        if (strcmp(json_text_at(fact, "name"), name) == 0)
            return json_text_at(fact, "value");
    }
    return "";
}

/* What a span cost, and which condition of `keep` is true of it: also of samples that are folded.
 */
static void test_costs(void **state)
{
    (void)state;
    static const struct {
        void (*prepare)(struct scene *scene);
        const char *settings, *cpu_ns, *keep, *gained, *sample;
    } expected[] = {
        {is_joined_after_samples, WAITS, "30", "", "attributes, pyroscope.profile.id", "joined"},
        {is_joined_after_samples, KEEPS_ALL, "30", "ratio: 1.0", "attributes, pyroscope.profile.id",
         "joined, worth its detail (keep, ratio: 1.0)"},
        {is_joined_after_samples, KEEPS, "30", "no condition",
         "attributes, no pyroscope.profile.id", "joined, without its detail (keep)"},
        {is_joined_after_samples, KEEPS_DRY, "30", "no condition",
         "attributes, pyroscope.profile.id", "joined, would lose its detail (keep, dry_run)"},
        {is_joined, WAITS, "30", "", "nothing", "joined"},
        {is_joined, KEEPS_CPU, "30", "no condition", "nothing",
         "joined, without its detail (keep)"},
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        struct scene scene;
        scene_begin(&scene, 4 << 20, expected[i].settings);
        expected[i].prepare(&scene);
        json_t *answer = scene_ask(&scene, "explain", "id=000000000000002a");
        assert_string_equal(fact_of(answer, "cpu_ns"), expected[i].cpu_ns);
        assert_string_equal(fact_of(answer, "keep"), expected[i].keep);
        assert_string_equal(fact_of(answer, "gained"), expected[i].gained);
        assert_string_equal(json_text_at(answer, "samples.0.text"), expected[i].sample);
        json_decref(answer);
        scene_end(&scene);
    }
}

/* A sample that names the root goes on to the child that was running. */
static void test_child(void **state)
{
    (void)state;
    struct scene scene;
    struct request request;
    scene_begin(&scene, 4 << 20, WAITS ", attribute_children: true");
    traces_begin(&request, "shop");
    add_span(&request, OTHER, SECOND);
    SpanMessage *child = add_span(&request, SPAN, SECOND);
    child->kind = OPENTELEMETRY__PROTO__TRACE__V1__SPAN__SPAN_KIND__SPAN_KIND_INTERNAL;
    span_set_parent(&request, child, OTHER);
    scene_send(&scene, &request);
    begin_profile(&request, "cpu");
    sample_time(&request, add_sample(&request, OTHER), WALL + 1);
    scene_send(&scene, &request);
    json_t *answer = scene_ask(&scene, "explain", "id=000000000000002a");
    assert_string_equal(json_text_at(answer, "samples.0.text"),
                        "joined, went on from its local root");
    json_decref(answer);
    scene_end(&scene);
}

static void test_wrong_ids(void **state)
{
    (void)state;
    static const char *const queries[] = {"", "id=", "id=xyz", "id=%00", "id=000000000000002"};
    struct scene scene;
    scene_begin(&scene, 4 << 20, WAITS);
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
        struct text body;
        int status = scene_ask_raw(&scene, "explain", queries[i], &body);
        if (i < 4)
            assert_int_equal(status, 400);
        text_deinit(&body);
    }
    scene_end(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids_in_any_attribute),
        cmocka_unit_test(test_reasons),
        cmocka_unit_test(test_spellings),
        cmocka_unit_test(test_language_is_missing),
        cmocka_unit_test(test_short_span),
        cmocka_unit_test(test_samples_without_trace),
        cmocka_unit_test(test_other_trace),
        cmocka_unit_test(test_thread_of_span),
        cmocka_unit_test(test_trace),
        cmocka_unit_test(test_costs),
        cmocka_unit_test(test_child),
        cmocka_unit_test(test_trace_kept_out),
        cmocka_unit_test(test_trace_partly_kept_out),
        cmocka_unit_test(test_wrong_ids),
    };
    scan_init();
    return cmocka_run_group_tests_name("explain", tests, NULL, NULL);
}
