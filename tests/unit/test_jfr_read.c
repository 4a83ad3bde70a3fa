#include "core/base/budget.h"
#include "core/base/buffer.h"
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/base/text.h"
#include "core/data/normalise.h"
#include "core/data/sample_threads.h"
#include "core/data/scan.h"
#include "core/formats/jfr_read.h"
#include "core/net/compression.h"
#include "opentelemetry/proto/collector/profiles/v1development/profiles_service.pb-c.h"
#include "tests/unit/jfr_fixture.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

typedef Opentelemetry__Proto__Collector__Profiles__V1development__ExportProfilesServiceRequest
    request_message;
typedef Opentelemetry__Proto__Profiles__V1development__ProfilesDictionary dictionary_message;
typedef Opentelemetry__Proto__Profiles__V1development__Profile profile_message;
typedef Opentelemetry__Proto__Profiles__V1development__Sample sample_message;
#define unpack_request                                                                             \
    opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__unpack
#define free_request                                                                               \
    opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__free_unpacked

/* ---- reading, and printing the result ---- */

/* Reads a recording; returns NULL, with err set, if it is refused. */
static struct buffer *read_with(struct slice jfr, struct slice labels,
                                const struct jfr_options *options, struct error *err)
{
    struct profiles_builder *builder = profiles_builder_new(NULL, 1 << 26);
    struct built_attribute service = {SLICE("service.name"), SLICE("shop")};
    profiles_builder_resource(
        builder, &(struct built_resource){.attributes = &service, .attribute_count = 1});
    struct buffer *request = NULL;
    uint32_t samples;
    if (jfr_read(builder, jfr, labels, options, err))
        request = profiles_builder_finish(builder, &samples);
    if (profiles_builder_state(builder) == PROFILES_BUILDER_TOO_LARGE)
        error_set(err, "unfolds to too much");
    profiles_builder_free(builder);
    return request;
}

static const struct jfr_options at_100_hz = {
    .time_unix_nano = 1700000000000000000u, .duration_nano = 10000000000u, .sample_rate_hz = 100};

/* Checks that the result passes the scan and needs no normalising, and unpacks it. */
static request_message *check_and_unpack(struct buffer *request)
{
    struct scan_result scan;
    struct error err;
    assert_non_null(request);
    if (!scan_profiles(buffer_slice(request), &scan_limits_default, &scan, &err))
        fail_msg("%s", err.text);
    assert_false(normalise_needed(&scan));
    request_message *message = unpack_request(NULL, request->size, request->data);
    assert_non_null(message);
    return message;
}

static const char *attribute(const dictionary_message *dictionary, int32_t index, const char **key)
{
    *key = dictionary->string_table[dictionary->attribute_table[index]->key_strindex];
    return dictionary->attribute_table[index]->value->string_value;
}

static const char *attribute_of(const dictionary_message *dictionary,
                                const profile_message *profile, const char *name)
{
    for (size_t i = 0; i < profile->n_attribute_indices; i++) {
        const char *key;
        const char *value = attribute(dictionary, profile->attribute_indices[i], &key);
        if (strcmp(key, name) == 0)
            return value;
    }
    return NULL;
}

/* "frame:line;...;" leaf first */
static void print_stack(struct text *out, const dictionary_message *dictionary, int32_t index)
{
    for (size_t i = 0; i < dictionary->stack_table[index]->n_location_indices; i++) {
        int32_t location = dictionary->stack_table[index]->location_indices[i];
        assert_int_equal(dictionary->location_table[location]->n_lines, 1);
        int32_t function = dictionary->location_table[location]->lines[0]->function_index;
        text_printf(out, "%s:%" PRId64 ";",
                    dictionary->string_table[dictionary->function_table[function]->name_strindex],
                    dictionary->location_table[location]->lines[0]->line);
    }
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "|key=value|...|" with the link as span_id and trace_id, sorted */
static void print_labels(struct text *out, const dictionary_message *dictionary,
                         const sample_message *sample)
{
    char *labels[80];
    size_t count = 0;
    for (size_t i = 0; i < sample->n_attribute_indices; i++) {
        const char *key, *value = attribute(dictionary, sample->attribute_indices[i], &key);
        assert_true(asprintf(&labels[count++], "%s=%s", key, value) > 0);
    }
    for (int i = 0; i < 2 && sample->link_index != 0; i++) {
        const ProtobufCBinaryData *id = i ? &dictionary->link_table[sample->link_index]->trace_id
                                          : &dictionary->link_table[sample->link_index]->span_id;
        struct text hex = {0};
        text_append(&hex, i ? "trace_id=" : "span_id=");
        size_t name = hex.size;
        text_append_hex(&hex, slice_of(id->data, id->len));
        if (strspn(hex.data + name, "0") < hex.size - name)
            labels[count++] = memory_strdup(hex.data);
        text_deinit(&hex);
    }
    qsort(labels, count, sizeof *labels, by_text);
    text_append(out, "|");
    for (size_t i = 0; i < count; i++) {
        text_printf(out, "%s|", labels[i]);
        free(labels[i]);
    }
}

struct totals {
    int64_t value;
    uint64_t hash;
};

static uint64_t fnv1a(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *text; text++)
        hash = (hash ^ (uint8_t)*text) * 0x100000001b3u;
    return hash;
}

/* Prints the samples as lines, and returns their totals. */
static struct totals print_samples(struct text *lines, const dictionary_message *dictionary,
                                   const profile_message *profile)
{
    struct totals totals = {0};
    for (size_t i = 0; i < profile->n_samples; i++) {
        const sample_message *sample = profile->samples[i];
        struct text text = {0};
        print_stack(&text, dictionary, sample->stack_index);
        print_labels(&text, dictionary, sample);
        assert_int_equal(sample->n_values, 1);
        totals.value += sample->values[0];
        totals.hash += (uint64_t)sample->values[0] * fnv1a(text.data);
        text_printf(lines, "%" PRId64 " %s\n", sample->values[0], text.data);
        text_deinit(&text);
    }
    return totals;
}

/* Returns "metric type unit" and a line for each sample, for all profiles. */
static char *described(struct buffer *request)
{
    request_message *message = check_and_unpack(request);
    const dictionary_message *dictionary = message->dictionary;
    struct text text = {0};
    text_append(&text, "");
    if (message->n_resource_profiles > 0) {
        const Opentelemetry__Proto__Profiles__V1development__ScopeProfiles *scope =
            message->resource_profiles[0]->scope_profiles[0];
        for (size_t i = 0; i < scope->n_profiles; i++) {
            const profile_message *profile = scope->profiles[i];
            text_printf(&text, "%s %s %s", attribute_of(dictionary, profile, "__name__"),
                        dictionary->string_table[profile->sample_type->type_strindex],
                        dictionary->string_table[profile->sample_type->unit_strindex]);
            if (profile->period > 0)
                text_printf(&text, " every %" PRId64, profile->period);
            text_append(&text, "\n");
            print_samples(&text, dictionary, profile);
        }
    }
    free_request(message, NULL);
    buffer_unref(request);
    return text.data;
}

static void expect(const struct jfr_fixture *f, struct slice labels,
                   const struct jfr_options *options, const char *expected)
{
    struct error err = {0};
    struct buffer *request = read_with(jfr_fixture_slice(f), labels, options, &err);
    if (!request)
        fail_msg("%s", err.text);
    char *text = described(request);
    assert_string_equal(text, expected);
    free(text);
}

static void expect_error(const struct jfr_fixture *f, struct slice labels, const char *expected)
{
    struct error err = {0};
    assert_null(read_with(jfr_fixture_slice(f), labels, &at_100_hz, &err));
    assert_string_equal(err.text, expected);
}

/* ---- recordings of others ---- */

static struct slice read_file(const char *name)
{
    char path[4096];
    const char *source = getenv("PROFCOL_SOURCE");
    snprintf(path, sizeof path, "%s/tests/data/%s", source ? source : ".", name);
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("%s is not there", path);
    static uint8_t bytes[1 << 20];
    size_t size = fread(bytes, 1, sizeof bytes, file);
    assert_true(size > 0 && size < sizeof bytes);
    fclose(file);
    return slice_of(bytes, size);
}

static struct buffer *plain(struct slice bytes)
{
    struct buffer *out;
    struct error err;
    if (bytes.size < 2 || bytes.data[0] != 0x1f || bytes.data[1] != 0x8b) {
        out = buffer_new_charged(bytes.size, NULL);
        memcpy(out->data, bytes.data, bytes.size);
        out->size = bytes.size;
        return out;
    }
    assert_int_equal(decompress(COMPRESSION_GZIP, bytes, 1 << 26, NULL, &out, &err), DECOMPRESS_OK);
    return out;
}

/* Returns a file of a multipart body; empty if it is absent. */
static struct buffer *part(struct slice body, const char *name)
{
    char head[64];
    snprintf(head, sizeof head, "name=\"%s\"", name);
    const uint8_t *end = body.data + body.size;
    const uint8_t *boundary_end = memmem(body.data, body.size, "\r\n", 2);
    assert_non_null(boundary_end);
    size_t boundary = (size_t)(boundary_end - body.data);
    const uint8_t *at = memmem(body.data, body.size, head, strlen(head));
    if (!at)
        return buffer_new_charged(0, NULL);
    at = (const uint8_t *)memmem(at, (size_t)(end - at), "\r\n\r\n", 4) + 4;
    const uint8_t *next = memmem(at, (size_t)(end - at), body.data, boundary);
    assert_non_null(next);
    return plain(slice_of(at, (size_t)(next - 2 - at)));
}

static void load(const char *name, struct buffer **jfr, struct buffer **labels)
{
    struct slice file = read_file(name);
    bool is_multipart = strstr(name, ".body") != NULL;
    *jfr = is_multipart ? part(file, "jfr") : plain(file);
    *labels = is_multipart ? part(file, "labels") : buffer_new_charged(0, NULL);
}

/* Prints a line of expected.txt without the name of the recording. */
static void print_totals(struct text *out, const dictionary_message *dictionary,
                         const profile_message *profile)
{
    struct text samples = {0};
    struct totals totals = print_samples(&samples, dictionary, profile);
    text_printf(out, "%s %s %s %" PRId64 " %zu %016" PRIx64 "\n",
                attribute_of(dictionary, profile, "__name__"),
                dictionary->string_table[profile->sample_type->type_strindex],
                dictionary->string_table[profile->sample_type->unit_strindex], totals.value,
                profile->n_samples, totals.hash);
    text_deinit(&samples);
}

static int by_line(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    return strcmp(*x, *y);
}

/* Returns the totals of all profiles, sorted. */
static char *totals_of(struct buffer *request, const char *event)
{
    request_message *message = check_and_unpack(request);
    assert_int_equal(message->n_resource_profiles, 1);
    const Opentelemetry__Proto__Profiles__V1development__ScopeProfiles *scope =
        message->resource_profiles[0]->scope_profiles[0];
    char *lines[32];
    assert_true(scope->n_profiles <= 32);
    for (size_t i = 0; i < scope->n_profiles; i++) {
        struct text line = {0};
        const char *jfr_event = attribute_of(message->dictionary, scope->profiles[i], "jfr_event");
        assert_string_equal(jfr_event ? jfr_event : "", event);
        assert_int_equal(scope->profiles[i]->time_unix_nano, at_100_hz.time_unix_nano);
        assert_int_equal(scope->profiles[i]->duration_nano, at_100_hz.duration_nano);
        print_totals(&line, message->dictionary, scope->profiles[i]);
        lines[i] = line.data;
    }
    qsort(lines, scope->n_profiles, sizeof *lines, by_line);
    struct text all = {0};
    for (size_t i = 0; i < scope->n_profiles; i++) {
        text_append(&all, lines[i]);
        free(lines[i]);
    }
    free_request(message, NULL);
    buffer_unref(request);
    return all.data;
}

static void check_recording(const char *name, const char *expected)
{
    struct buffer *jfr, *labels;
    struct error err = {0};
    struct jfr_options options = at_100_hz;
    bool of_jdk = strstr(name, "jdk17") != NULL;
    options.sample_rate_hz = of_jdk ? 50 : 100;
    load(name, &jfr, &labels);
    struct buffer *request = read_with(buffer_slice(jfr), buffer_slice(labels), &options, &err);
    if (!request)
        fail_msg("%s: %s", name, err.text);
    char *totals = totals_of(request, of_jdk ? "" : "itimer");
    assert_string_equal(totals, expected);
    free(totals);
    buffer_unref(jfr);
    buffer_unref(labels);
}

/* Totals and sums over all stacks are equal to those of the JDK's own decoder. */
static void test_recordings_as_the_jdk_reads_them(void **state)
{
    (void)state;
    struct slice file = read_file("jfr/expected.txt");
    char *all = memory_strndup(file.data, file.size);
    char name[256] = "";
    struct text expected = {0};
    unsigned recordings = 0;
    for (char *line = all; *line;) {
        char *space = strchr(line, ' '), *end = strchr(line, '\n');
        assert_true(space && end);
        *space = '\0';
        if (strcmp(line, name) != 0) {
            if (expected.size > 0)
                check_recording(name, expected.data);
            text_clear(&expected);
            snprintf(name, sizeof name, "%s", line);
            recordings++;
        }
        text_append_slice(&expected, slice_of(space + 1, (size_t)(end - space)));
        line = end + 1;
    }
    check_recording(name, expected.data);
    assert_int_equal(recordings, 11);
    text_deinit(&expected);
    free(all);
}

static void test_a_recording_cut_anywhere_is_an_error(void **state)
{
    (void)state;
    struct buffer *jfr, *labels;
    load("pyroscope/java-grpc-jfr/pyroscope-ingest/019.body", &jfr, &labels);
    struct profiles_builder *builder = profiles_builder_new(NULL, 1 << 26);
    profiles_builder_resource(builder, &(struct built_resource){.attributes = NULL});
    for (size_t size = 0; size < jfr->size; size++) {
        uint8_t *copy = memory_alloc(size + 1); /* so that reading past the end is detected */
        memcpy(copy, jfr->data, size);
        struct error err = {0};
        assert_false(
            jfr_read(builder, slice_of(copy, size), buffer_slice(labels), &at_100_hz, &err));
        assert_string_not_equal(err.text, "");
        free(copy);
    }
    profiles_builder_free(builder);
    buffer_unref(jfr);
    buffer_unref(labels);
}

/* ---- recordings of our own ---- */

#define PRIMITIVES                                                                                 \
    "1 boolean; 2 byte; 3 char; 4 short; 5 int; 10 long; 7 float; 8 double; 9 java.lang.String; "
#define TYPES                                                                                      \
    PRIMITIVES "30 jdk.types.StackTrace truncated:1 frames:31*; "                                  \
               "31 jdk.types.StackFrame method:32# lineNumber:5 bytecodeIndex:5 type:36#; "        \
               "32 jdk.types.Method type:33# name:34# descriptor:34# modifiers:5 hidden:1; "       \
               "33 java.lang.Class name:34#; 34 jdk.types.Symbol string:9; "                       \
               "35 jdk.types.ThreadState name:9; 36 jdk.types.FrameType description:9"
#define EXECUTION_SAMPLE                                                                           \
    "; 101 jdk.ExecutionSample startTime:10 stackTrace:30# state:35# contextId:10 spanId:10 "      \
    "spanName:10 traceIdHi:10 traceIdLo:10"
#define SETTING "; 107 jdk.ActiveSetting startTime:10 id:10 name:9 value:9"

/* Stack 1 is a/B.run:7 under a/B.main:3, stack 2 only a/B.main:3; states 1 default, 2 sleeping, 3
 * runnable. */
static size_t write_constants(struct jfr_fixture *f)
{
    size_t place = jfr_fixture_event(f, 1);
    JFR_NUMBERS(f, 0, 0, 0, 0, 5);
    JFR_NUMBERS(f, 30, 2, 1, 0, 2, 11, 7, 0, 1, 12, 3, 0, 1, 2, 0, 1, 12, 3, 0, 1);
    JFR_NUMBERS(f, 32, 2, 11, 21, 41, 0, 0, 0, 12, 21, 42, 0, 0, 0);
    JFR_NUMBERS(f, 33, 1, 21, 43);
    JFR_NUMBERS(f, 34, 3, 41);
    jfr_fixture_text(f, "run");
    JFR_NUMBERS(f, 42);
    jfr_fixture_text(f, "main");
    JFR_NUMBERS(f, 43);
    jfr_fixture_text(f, "a/B");
    JFR_NUMBERS(f, 35, 3, 1);
    jfr_fixture_text(f, "STATE_DEFAULT");
    JFR_NUMBERS(f, 2);
    jfr_fixture_text(f, "STATE_SLEEPING");
    JFR_NUMBERS(f, 3);
    jfr_fixture_text(f, "STATE_RUNNABLE");
    jfr_fixture_event_end(f);
    return place;
}

static void write_event(struct jfr_fixture *f, uint64_t type, const int64_t *values, size_t count)
{
    jfr_fixture_event(f, type);
    jfr_fixture_values(f, values, count);
    jfr_fixture_event_end(f);
}
#define EVENT(f, type, ...)                                                                        \
    write_event((f), (type), (const int64_t[]){__VA_ARGS__},                                       \
                sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static void write_setting(struct jfr_fixture *f, int64_t of, const char *name, const char *value)
{
    jfr_fixture_event(f, 107);
    JFR_NUMBERS(f, 0, of);
    jfr_fixture_text(f, name);
    jfr_fixture_text(f, value);
    jfr_fixture_event_end(f);
}

static const struct slice no_labels;

static void test_cpu_is_what_did_not_sleep(void **state)
{
    (void)state;
    struct jfr_fixture f = {0};
    jfr_fixture_chunk(&f, TYPES EXECUTION_SAMPLE SETTING);
    size_t constants = write_constants(&f);
    write_setting(&f, 0, "event", "cpu");
    EVENT(&f, 101, 0, 1, 1, 0, 0, 0, 0, 0);
    EVENT(&f, 101, 0, 2, 3, 0, 0, 0, 0, 0);
    EVENT(&f, 101, 0, 1, 1, 0, 0, 0, 0, 0);
    EVENT(&f, 101, 0, 1, 2, 0, 0, 0, 0, 0);  /* sleeps */
    EVENT(&f, 101, 0, 1, 77, 0, 0, 0, 0, 0); /* in an unknown state */
    EVENT(&f, 101, 0, 0, 1, 0, 0, 0, 0, 0);  /* no stack */
    EVENT(&f, 101, 0, 99, 1, 0, 0, 0, 0, 0);
    jfr_fixture_chunk_end(&f, constants);
    expect(&f, no_labels, &at_100_hz,
           "process_cpu cpu nanoseconds every 10000000\n"
           "20000000 a/B.run:7;a/B.main:3;|\n"
           "10000000 a/B.main:3;|\n");
    jfr_fixture_deinit(&f);
}

static void test_wall_clock(void **state)
{
    (void)state;
    struct jfr_fixture f = {0};
    jfr_fixture_chunk(
        &f, TYPES EXECUTION_SAMPLE SETTING
        "; 102 profiler.WallClockSample startTime:10 stackTrace:30# state:35# samples:5");
    size_t constants = write_constants(&f);
    EVENT(&f, 102, 0, 1, 3, 2); /* not yet known to be a recording of wall clock time */
    write_setting(&f, 0, "event", "wall");
    EVENT(&f, 102, 0, 1, 3, 5);
    EVENT(&f, 102, 0, 1, 2, 50);
    EVENT(&f, 101, 0, 2, 2, 0, 0, 0, 0, 0);
    EVENT(&f, 101, 0, 2, 1, 0, 0, 0, 0, 0);
    jfr_fixture_chunk_end(&f, constants);
    expect(&f, no_labels, &at_100_hz,
           "wall wall nanoseconds every 10000000\n"
           "570000000 a/B.run:7;a/B.main:3;|\n"
           "20000000 a/B.main:3;|\n"
           "process_cpu cpu nanoseconds every 10000000\n"
           "50000000 a/B.run:7;a/B.main:3;|\n"
           "10000000 a/B.main:3;|\n");
    jfr_fixture_deinit(&f);
}

static void test_other_events(void **state)
{
    (void)state;
    struct jfr_fixture f = {0};
    jfr_fixture_chunk(
        &f, TYPES "; 111 jdk.ObjectAllocationInNewTLAB stackTrace:30# allocationSize:10 tlabSize:10"
                  "; 112 jdk.ObjectAllocationOutsideTLAB stackTrace:30# allocationSize:10"
                  "; 113 jdk.ObjectAllocationSample stackTrace:30# weight:10"
                  "; 114 jdk.JavaMonitorEnter duration:10 stackTrace:30#"
                  "; 115 jdk.ThreadPark duration:10 stackTrace:30#"
                  "; 116 profiler.LiveObject stackTrace:30# allocationSize:10"
                  "; 117 profiler.Malloc stackTrace:30# address:10 size:10"
                  "; 118 profiler.Free stackTrace:30# address:10");
    size_t constants = write_constants(&f);
    EVENT(&f, 111, 2, 16, 1000);
    EVENT(&f, 112, 2, 2000);
    EVENT(&f, 113, 2, 3000);
    EVENT(&f, 114, 4000, 2);
    EVENT(&f, 115, 5000, 2);
    EVENT(&f, 115, 0, 2); /* without an amount, the count still counts */
    EVENT(&f, 116, 2, 6000);
    EVENT(&f, 116, 2, 6001);
    EVENT(&f, 117, 2, 0x1000, 7000);
    EVENT(&f, 118, 2, 0x1000);
    jfr_fixture_chunk_end(&f, constants);
    expect(&f, no_labels, &at_100_hz,
           "memory alloc_in_new_tlab_bytes bytes\n1000 a/B.main:3;|\n"
           "memory alloc_in_new_tlab_objects count\n1 a/B.main:3;|\n"
           "memory alloc_outside_tlab_bytes bytes\n2000 a/B.main:3;|\n"
           "memory alloc_outside_tlab_objects count\n1 a/B.main:3;|\n"
           "memory alloc_sample_bytes bytes\n3000 a/B.main:3;|\n"
           "memory alloc_sample_objects count\n1 a/B.main:3;|\n"
           "mutex delay nanoseconds\n4000 a/B.main:3;|\n"
           "mutex contentions count\n1 a/B.main:3;|\n"
           "block delay nanoseconds\n5000 a/B.main:3;|\n"
           "block contentions count\n2 a/B.main:3;|\n"
           "memory live count\n2 a/B.main:3;|\n"
           "memory malloc_bytes bytes\n7000 a/B.main:3;|\n"
           "memory malloc_objects count\n1 a/B.main:3;|\n");
    jfr_fixture_deinit(&f);
}

static void test_delays_are_nanoseconds_whatever_the_clock(void **state)
{
    (void)state;
    struct jfr_fixture f = {0};
    jfr_fixture_chunk(&f, TYPES "; 114 jdk.JavaMonitorEnter duration:10 stackTrace:30#");
    size_t constants = write_constants(&f);
    EVENT(&f, 114, 5000, 2);
    jfr_fixture_chunk_end(&f, constants);
    memcpy(f.out.data + 56, "\0\0\0\0\x95\x02\xf9\0", 8); /* 2.5 GHz */
    expect(&f, no_labels, &at_100_hz,
           "mutex delay nanoseconds\n2000 a/B.main:3;|\n"
           "mutex contentions count\n1 a/B.main:3;|\n");
    jfr_fixture_deinit(&f);
}

static void test_what_a_sample_stands_for_in_a_file(void **state)
{
    (void)state;
    static const struct {
        int64_t of;
        const char *name, *value, *every;
    } cases[] = {
        {101, "interval", "5000000", "5000000"}, {101, "period", "20 ms", "20000000"},
        {101, "period", "1 s", "1000000000"},    {101, "period", "500 us", "500000"},
        {99, "period", "20 ms", "10000000"},     {101, "period", "everyChunk", "10000000"},
        {101, "interval", "0", "10000000"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct jfr_fixture f = {0};
        char expected[128];
        jfr_fixture_chunk(&f, TYPES EXECUTION_SAMPLE SETTING);
        size_t constants = write_constants(&f);
        write_setting(&f, cases[i].of, cases[i].name, cases[i].value);
        EVENT(&f, 101, 0, 2, 1, 0, 0, 0, 0, 0);
        jfr_fixture_chunk_end(&f, constants);
        snprintf(expected, sizeof expected,
                 "process_cpu cpu nanoseconds every %s\n%s a/B.main:3;|\n", cases[i].every,
                 cases[i].every);
        expect(&f, no_labels, &(struct jfr_options){.sample_rate_hz = 0}, expected);
        jfr_fixture_deinit(&f);
    }
}

/* The times of a file are those of its chunks: one at 1.7e18 for 2 s, one 5 s later. */
static void test_times_of_a_file(void **state)
{
    (void)state;
    struct jfr_fixture f = {0};
    for (int i = 0; i < 2; i++) {
        jfr_fixture_chunk(&f, TYPES EXECUTION_SAMPLE);
        size_t constants = write_constants(&f);
        EVENT(&f, 101, 0, 2, 1, 0, 0, 0, 0, 0);
        jfr_fixture_chunk_end(&f, constants);
    }
    uint64_t later = 1700000005000000000u;
    for (size_t i = 0; i < 8; i++, later >>= 8)
        f.out.data[f.chunk + 39 - i] = (uint8_t)later;
    struct error err = {0};
    struct buffer *request = read_with(jfr_fixture_slice(&f), no_labels,
                                       &(struct jfr_options){.sample_rate_hz = 100}, &err);
    request_message *message = check_and_unpack(request);
    const profile_message *profile = message->resource_profiles[0]->scope_profiles[0]->profiles[0];
    assert_int_equal(profile->time_unix_nano, 1700000000000000000u);
    assert_int_equal(profile->duration_nano, 7000000000u);
    free_request(message, NULL);
    buffer_unref(request);
    jfr_fixture_deinit(&f);
}

/* LabelsSnapshot: strings 1 "GET /slow", 2 "tier", 3 "gold", 4 "span_id", 5 "00000000000000ff", 6
 * "trace_id", 7 32 digits, 8 "", 9 "span_name"; contexts -1 {tier: gold}, 2 {span_id, trace_id,
 * tier}, 3 {span_name: gold, "": gold, tier: nothing}. */
static void add_entry(struct wire_writer *out, uint32_t map, uint64_t key, struct slice value)
{
    size_t entry = wire_writer_begin(out, map);
    wire_writer_varint(out, 1, key);
    wire_writer_bytes(out, 2, value);
    wire_writer_end(out, entry);
}

static void add_context(struct wire_writer *out, uint64_t id, const uint64_t (*labels)[2],
                        size_t count)
{
    struct wire_writer context = {0};
    for (size_t i = 0; i < count; i++) {
        size_t label = wire_writer_begin(&context, 1);
        wire_writer_varint(&context, 1, labels[i][0]);
        wire_writer_varint(&context, 2, labels[i][1]);
        wire_writer_end(&context, label);
    }
    add_entry(out, 1, id, wire_writer_slice(&context));
    wire_writer_deinit(&context);
}

static void write_snapshot(struct wire_writer *out)
{
    static const char *const strings[] = {"GET /slow",
                                          "tier",
                                          "gold",
                                          "span_id",
                                          "00000000000000ff",
                                          "trace_id",
                                          "0123456789abcdef0123456789abcdef",
                                          "",
                                          "span_name"};
    add_context(out, (uint64_t)-1, (const uint64_t[][2]){{2, 3}, {2, 3}}, 2);
    add_context(out, 2, (const uint64_t[][2]){{4, 5}, {6, 7}, {2, 3}}, 3);
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++)
        add_entry(out, 2, i + 1, slice_of_string(strings[i]));
    add_context(out, 3, (const uint64_t[][2]){{9, 3}, {8, 3}, {77, 3}, {2, 77}}, 4);
}

static void test_labels_and_ids(void **state)
{
    (void)state;
    struct jfr_fixture f = {0};
    struct wire_writer labels = {0};
    write_snapshot(&labels);
    jfr_fixture_chunk(&f, TYPES EXECUTION_SAMPLE);
    size_t constants = write_constants(&f);
    EVENT(&f, 101, 0, 2, 1, 0, -2, 1, 0, 0);
    EVENT(&f, 101, 0, 2, 1, 0, -2, 1, 0, 0); /* again */
    EVENT(&f, 101, 0, 2, 1, 0, -2, 0, 1, -1);
    EVENT(&f, 101, 0, 2, 1, 0, 0, 1, 0, 0);
    EVENT(&f, 101, 0, 2, 1, 0, 0, 99, 0, 0); /* no such string */
    EVENT(&f, 101, 0, 2, 1, -1, 0, 8, 0, 0); /* an empty one */
    EVENT(&f, 101, 0, 2, 1, 2, 0, 0, 0, 0);
    EVENT(&f, 101, 0, 2, 1, 2, 1, 0, 0, 0);  /* the event's own span, the context's trace */
    EVENT(&f, 101, 0, 2, 1, 3, 0, 1, 0, 0);  /* the label span_name is not added twice */
    EVENT(&f, 101, 0, 2, 1, 55, 0, 0, 0, 0); /* no such context */
    jfr_fixture_chunk_end(&f, constants);
    expect(
        &f, wire_writer_slice(&labels), &at_100_hz,
        "process_cpu cpu nanoseconds every 10000000\n"
        "20000000 a/B.main:3;|span_id=fffffffffffffffe|span_name=GET /slow|\n"
        "10000000 a/B.main:3;|span_id=fffffffffffffffe|trace_id=0000000000000001ffffffffffffffff|\n"
        "10000000 a/B.main:3;|span_name=GET /slow|\n"
        "20000000 a/B.main:3;|\n"
        "10000000 a/B.main:3;|tier=gold|\n"
        "10000000 a/B.main:3;|span_id=00000000000000ff|tier=gold|"
        "trace_id=0123456789abcdef0123456789abcdef|\n"
        "10000000 a/B.main:3;|span_id=0000000000000001|tier=gold|"
        "trace_id=0123456789abcdef0123456789abcdef|\n"
        "10000000 a/B.main:3;|span_name=gold|tier=|\n");
    /* Ids of the upload are used for samples without their own. */
    struct jfr_options options = at_100_hz;
    options.upload = (struct span_labels){.has_span = true, .span_id = {1, 2, 3, 4, 5, 6, 7, 8}};
    jfr_fixture_deinit(&f);
    jfr_fixture_chunk(&f, TYPES EXECUTION_SAMPLE);
    constants = write_constants(&f);
    EVENT(&f, 101, 0, 2, 1, 0, -2, 0, 0, 0);
    EVENT(&f, 101, 0, 2, 1, 0, 0, 0, 0, 0);
    jfr_fixture_chunk_end(&f, constants);
    expect(&f, no_labels, &options,
           "process_cpu cpu nanoseconds every 10000000\n"
           "10000000 a/B.main:3;|span_id=fffffffffffffffe|\n"
           "10000000 a/B.main:3;|span_id=0102030405060708|\n");
    jfr_fixture_deinit(&f);
    wire_writer_deinit(&labels);
}

/* Null, empty, of the string pool, UTF-8, UTF-16, Latin-1. */
static void test_encodings_of_texts(void **state)
{
    (void)state;
    struct jfr_fixture f = {0};
    jfr_fixture_chunk(&f, TYPES EXECUTION_SAMPLE);
    size_t constants = jfr_fixture_event(&f, 1);
    JFR_NUMBERS(&f, 0, 0, 0, 0, 6);
    JFR_NUMBERS(&f, 30, 1, 1, 0, 7);
    for (int64_t method = 50; method < 57; method++)
        JFR_NUMBERS(&f, method, method - 48, 0, 0);
    JFR_NUMBERS(&f, 32, 7);
    for (int64_t method = 50; method < 57; method++)
        JFR_NUMBERS(&f, method, 21, method, 0, 0, 0);
    JFR_NUMBERS(&f, 33, 1, 21, 50);
    JFR_NUMBERS(&f, 34, 7, 50, 3, 1, 'c', 51, 0, 52, 1, 53, 2, 61, 54, 4, 6, 'u', 0xe9, 0x20ac,
                0xd83d, 0xde00, 0xde00);
    JFR_NUMBERS(&f, 55, 5, 3);
    jfr_fixture_bytes(&f, "l\xe9.", 3);
    JFR_NUMBERS(&f, 56, 2, 62);
    JFR_NUMBERS(&f, 9, 2, 61);
    jfr_fixture_text(&f, "pool");
    JFR_NUMBERS(&f, 62, 2, 62); /* refers to itself */
    JFR_NUMBERS(&f, 35, 1, 1);
    jfr_fixture_text(&f, "STATE_DEFAULT");
    jfr_fixture_event_end(&f);
    EVENT(&f, 101, 0, 1, 1, 0, 0, 0, 0, 0);
    jfr_fixture_chunk_end(&f, constants);
    expect(
        &f, no_labels, &at_100_hz,
        "process_cpu cpu nanoseconds every 10000000\n"
        "10000000 c.c:2;c.:3;c.:4;c.pool:5;c.u\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xef\xbf\xbd:6;"
        "c.l\xc3\xa9.:7;c.:8;|\n");
    jfr_fixture_deinit(&f);
}

/* Writes a my.Shape: points, the first one, names, ids, and a number of empty records, which take
 * no bytes. */
static void write_shape(struct jfr_fixture *f, int64_t points, int64_t nothings)
{
    static const uint8_t point[] = {1, 2, 3, 4, 1, 2, 3, 4, 5, 6, 7, 8, 1, 3, 1, 'p'};
    JFR_NUMBERS(f, points);
    for (int64_t i = 0; i <= points; i++)
        jfr_fixture_bytes(f, point, sizeof point);
    JFR_NUMBERS(f, 2, 0, 1, 3, 7, 800, 90000, nothings);
}

/* Everything that the metadata describes can be skipped: structs, lists, nested in each other. */
static void test_what_we_do_not_know_is_passed_over(void **state)
{
    (void)state;
    struct jfr_fixture f = {0};
    jfr_fixture_chunk(&f, TYPES "; 40 my.Empty; 41 my.Point x:7 y:8 on:1 label:9 none:40"
                                "; 42 my.Shape points:41* first:41 names:9* ids:5* nothing:40*"
                                "; 101 jdk.ExecutionSample before:42 shapes:42* stackTrace:30# b:2 "
                                "c:3 s:4 state:35#; 43 my.Constant shape:42");
    size_t other = jfr_fixture_event(&f, 1); /* constants that are not used */
    JFR_NUMBERS(&f, 0, 0, 0, 0, 1, 43, 1, 1000);
    write_shape(&f, 2, 1000000000000);
    jfr_fixture_event_end(&f);
    EVENT(&f, 999, 1, 2, 3); /* an event of no class */
    size_t constants = jfr_fixture_event(&f, 1);
    JFR_NUMBERS(&f, 0, 0, (int64_t)other - (int64_t)constants, 0, 5);
    JFR_NUMBERS(&f, 30, 1, 1, 0, 1, 12, 3, 0, 1, 32, 1, 12, 21, 42, 0, 0, 0, 33, 1, 21, 42, 34, 1,
                42, 3, 1, 'm', 35, 1, 1, 0);
    jfr_fixture_event_end(&f);
    jfr_fixture_event(&f, 101);
    write_shape(&f, 1, 0);
    JFR_NUMBERS(&f, 2);
    write_shape(&f, 0, 5);
    write_shape(&f, 3, 0);
    JFR_NUMBERS(&f, 1);
    jfr_fixture_bytes(&f, "\xff", 1); /* a byte is not a compressed number */
    JFR_NUMBERS(&f, 70000, 1, 1);
    jfr_fixture_event_end(&f);
    jfr_fixture_chunk_end(&f, constants);
    expect(&f, no_labels, &at_100_hz,
           "process_cpu cpu nanoseconds every 10000000\n"
           "10000000 m.m:3;|\n");
    jfr_fixture_deinit(&f);
}

/* The same ids mean something else in the next chunk. */
static void test_chunks_have_their_own_constants(void **state)
{
    (void)state;
    struct jfr_fixture f = {0};
    for (int64_t i = 0; i < 2; i++) {
        jfr_fixture_chunk(&f, TYPES EXECUTION_SAMPLE);
        size_t constants = jfr_fixture_event(&f, 1);
        JFR_NUMBERS(&f, 0, 0, 0, 0, 5);
        JFR_NUMBERS(&f, 30, 1, 1, 0, 1, 12, 3, 0, 1, 32, 1, 12, 21, 42, 0, 0, 0, 33, 1, 21, 42, 34,
                    1, 42, 3, 1, 'm' + i, 35, 1, 1, 1);
        jfr_fixture_event_end(&f);
        EVENT(&f, 101, 0, 1, 1, 0, 0, 0, 0, 0);
        jfr_fixture_chunk_end(&f, constants);
    }
    expect(&f, no_labels, &at_100_hz,
           "process_cpu cpu nanoseconds every 10000000\n"
           "10000000 m.m:3;|\n"
           "10000000 n.n:3;|\n");
    jfr_fixture_deinit(&f);
}

/* ---- invalid ones ---- */

static void write_good(struct jfr_fixture *f)
{
    jfr_fixture_chunk(f, TYPES EXECUTION_SAMPLE);
    size_t constants = write_constants(f);
    EVENT(f, 101, 0, 2, 1, 0, 0, 0, 0, 0);
    jfr_fixture_chunk_end(f, constants);
}

static void test_wrong_headers(void **state)
{
    (void)state;
    static const struct {
        size_t at, size;
        const char *bytes, *error;
    } cases[] = {
        {0, 1, "f", "chunk 1: is not a JFR recording: it does not begin with FLR"},
        {5, 1, "\3", "chunk 1: format version 3; only 2 can be read"},
        {15, 1, "\xff", "chunk 1: claims 1279 bytes, but has 1166"},
        {14, 2, "\0\x43", "chunk 1: claims 67 bytes, but has 1166"},
        {8, 1, "\1", "chunk 1: claims 72057594037929102 bytes, but has 1166"},
        {22, 1, "\0", "chunk 1: its checkpoint is at 8, outside of its 1166 bytes"},
        {67, 1, "\0",
         "chunk 1: its numbers are not compressed; profcol cannot read such recordings"},
        {24, 1, "\1", "chunk 1: its metadata is at 72057594037928004, outside of its 1166 bytes"},
        {60, 4, "\0\0\0\0", "chunk 1: has a clock of 0 ticks per second"},
    };
    struct jfr_fixture f = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_good(&f);
        memcpy(f.out.data + cases[i].at, cases[i].bytes, cases[i].size);
        expect_error(&f, no_labels, cases[i].error);
        jfr_fixture_deinit(&f);
    }
    expect_error(&f, no_labels, "chunk 1: is not a JFR recording: it does not begin with FLR");
    jfr_fixture_bytes(&f, "FLR\0\0\2", 6);
    expect_error(&f, no_labels, "chunk 1: its header is truncated after 6 bytes");
    jfr_fixture_deinit(&f);
    write_good(&f);
    jfr_fixture_bytes(&f, "FLR\0\0\2", 6); /* the valid chunk before it is not converted */
    expect_error(&f, no_labels, "chunk 2: its header is truncated after 6 bytes");
    jfr_fixture_deinit(&f);
}

/* Classes that are impossible, or that would take forever. */
static void test_wrong_classes(void **state)
{
    (void)state;
    static const struct {
        const char *classes, *error;
    } cases[] = {
        {"x jdk.ExecutionSample",
         "chunk 1: metadata: class jdk.ExecutionSample: its id \"x\" is not a number"},
        {"1 jdk.ExecutionSample a:x",
         "chunk 1: metadata: class jdk.ExecutionSample, field a: its class \"x\" is not a number"},
        {"1 jdk.ExecutionSample a:7",
         "chunk 1: jdk.ExecutionSample.a: its class 7 is not described"},
        {"1 jdk.ExecutionSample a:1*", "chunk 1: jdk.ExecutionSample.a: a jdk.ExecutionSample "
                                       "contains itself"},
        {"1 jdk.ExecutionSample a:2*; 2 A b:3*; 3 B a:2*",
         "chunk 1: jdk.ExecutionSample.a: A.b: B.a: a A contains itself"},
        {"1 jdk.ExecutionSample a:2; 2 A b:2",
         "chunk 1: jdk.ExecutionSample.a: A.b: A.b: A.b: A.b: A.b: A.b: A.b: A.b: A.b: A.b: A.b: "
         "A.b: A.b: A.b: A.b: A.b: classes are nested deeper than 16"},
        {"1 jdk.ExecutionSample a:2 b:2 c:2 d:2; 2 A a:3 b:3 c:3 d:3; 3 B a:4 b:4 c:4 d:4; "
         "4 C a:5 b:5 c:5 d:5; 5 D a:6 b:6 c:6 d:6; 6 E a:7 b:7 c:7 d:7; 7 int",
         "chunk 1: jdk.ExecutionSample.a: A.b: B.b: C.a: D.c: the classes are too large for their "
         "description"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct jfr_fixture f = {0};
        jfr_fixture_chunk(&f, cases[i].classes);
        size_t constants = jfr_fixture_event(&f, 1);
        JFR_NUMBERS(&f, 0, 0, 0, 0, 0);
        jfr_fixture_event_end(&f);
        jfr_fixture_chunk_end(&f, constants);
        expect_error(&f, no_labels, cases[i].error);
        jfr_fixture_deinit(&f);
    }
}

static void test_wrong_metadata(void **state)
{
    (void)state;
    static const struct {
        int64_t numbers[16];
        size_t count;
        const char *error;
    } cases[] = {
        {{0}, 0, "chunk 1: metadata: its strings are truncated"},
        {{1}, 1, "chunk 1: metadata: its strings are truncated"},
        {{1000000}, 1, "chunk 1: metadata: its strings are truncated"},
        {{1, 1, 1, 0, 0},
         5,
         "chunk 1: metadata: is truncated, or refers to a string that it does not have"},
        {{1, 1, 0, 1, 0, 0},
         6,
         "chunk 1: metadata: is truncated, or refers to a string that it does not have"},
        {{1, 1, 0, 0, 2, 0, 0, 0},
         8,
         "chunk 1: metadata: is truncated, or refers to a string that it does not have"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct jfr_fixture f = {0};
        jfr_fixture_chunk(&f, "1 int");
        f.out.size = f.chunk + 68;
        jfr_fixture_event(&f, 0);
        JFR_NUMBERS(&f, 0, 0, 0);
        jfr_fixture_values(&f, cases[i].numbers, cases[i].count);
        jfr_fixture_event_end(&f);
        jfr_fixture_chunk_end(&f, 68);
        expect_error(&f, no_labels, cases[i].error);
        jfr_fixture_deinit(&f);
    }
    struct jfr_fixture f = {0};
    jfr_fixture_chunk(&f, "1 int");
    f.out.size = f.chunk + 68;
    jfr_fixture_event(&f, 0);
    JFR_NUMBERS(&f, 0, 0, 0, 1, 1);
    for (int i = 0; i < 20; i++) /* elements, each nested in the last one */
        JFR_NUMBERS(&f, 0, 0, 1);
    jfr_fixture_event_end(&f);
    jfr_fixture_chunk_end(&f, 68);
    expect_error(&f, no_labels, "chunk 1: metadata: is nested deeper than 16 elements");
    f.out.data[68] = 0x84; /* its size, the smallest possible */
    expect_error(&f, no_labels, "chunk 1: metadata: its strings are truncated");
    f.out.data[72] = 1;
    f.out.data[68] = 0x85;
    expect_error(&f, no_labels, "chunk 1: metadata: is an event of another type");
    f.out.data[68] = 0x83;
    expect_error(&f, no_labels, "chunk 1: metadata: its size of 3 bytes is impossible");
    f.out.data[70] = 0xff;
    expect_error(&f, no_labels, "chunk 1: metadata: its size of 2080771 bytes is impossible");
    jfr_fixture_deinit(&f);
}

static void test_wrong_checkpoints(void **state)
{
    (void)state;
    static const struct {
        int64_t numbers[16];
        size_t count;
        const char *error;
    } cases[] = {
        {{0, 0, 0}, 3, "is truncated"},
        {{0, 0, 0, 0, 1}, 5, "is truncated"},
        {{0, 0, 0, 0, 1, 77, 1}, 7, "has constants of class 77, which is not described"},
        {{0, 0, 0, 0, 1, 34, 2, 1, 0}, 9, "its constants of jdk.types.Symbol extend past its end"},
        {{0, 0, 0, 0, 1, 34, 1, 1, 3, 100},
         10,
         "its constants of jdk.types.Symbol extend past its end"},
        {{0, 0, 0, 0, 1, 34, 1, 1, 9}, 9, "its constants of jdk.types.Symbol extend past its end"},
        {{0, 0, 0, 0, 1, 30, 1, 1, 0, 1000000000000, 1},
         11,
         "its constants of jdk.types.StackTrace extend past its end"},
        {{0, 0, 1, 0, 0}, 5, "its offset to the previous checkpoint, 1, is impossible"},
        {{0, 0, -1000000, 0, 0},
         5,
         "its offset to the previous checkpoint, -1000000, is impossible"},
        {{0, 0, INT64_MIN, 0, 0},
         5,
         "its offset to the previous checkpoint, -9223372036854775808, is impossible"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct jfr_fixture f = {0};
        char error[256];
        jfr_fixture_chunk(&f, TYPES);
        size_t constants = jfr_fixture_event(&f, 1);
        jfr_fixture_values(&f, cases[i].numbers, cases[i].count);
        jfr_fixture_event_end(&f);
        jfr_fixture_chunk_end(&f, constants);
        snprintf(error, sizeof error, "chunk 1: checkpoint at %zu: %s", constants, cases[i].error);
        expect_error(&f, no_labels, error);
        jfr_fixture_deinit(&f);
    }
    struct jfr_fixture f = {0};
    char error[256];
    jfr_fixture_chunk(&f, TYPES);
    size_t constants = write_constants(&f), second = jfr_fixture_event(&f, 1);
    JFR_NUMBERS(&f, 0, 0, (int64_t)constants - (int64_t)second + 1, 0, 0);
    jfr_fixture_event_end(&f);
    jfr_fixture_chunk_end(&f, second);
    snprintf(error, sizeof error, "chunk 1: checkpoint at %zu: its size of 0 bytes is impossible",
             constants + 1);
    expect_error(&f, no_labels, error);
    jfr_fixture_chunk_end(&f, 68);
    expect_error(&f, no_labels, "chunk 1: checkpoint at 68: is an event of another type");
    jfr_fixture_deinit(&f);
}

static void test_wrong_events(void **state)
{
    (void)state;
    struct jfr_fixture f = {0};
    write_good(&f);
    f.out.data[f.event] = 0x8a; /* one byte less than its fields have */
    expect_error(&f, no_labels,
                 "chunk 1: event at 1153: jdk.ExecutionSample: its fields extend past its end");
    f.out.data[f.event] = 0x84;
    expect_error(&f, no_labels, "chunk 1: event at 1153: its size of 4 bytes is impossible");
    f.out.data[f.event] = 0x80;
    expect_error(&f, no_labels, "chunk 1: event at 1153: its size of 0 bytes is impossible");
    f.out.data[f.event] = 0xff;
    expect_error(&f, no_labels, "chunk 1: event at 1153: its size of 127 bytes is impossible");
    jfr_fixture_deinit(&f);
}

static void test_wrong_labels(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
        const char *error;
    } cases[] = {
        {"\x12", 1, "labels: not a LabelsSnapshot"},
        {"\x12\x05\x08\x01", 4, "labels: not a LabelsSnapshot"},
        {"\x10\x01", 2, "labels: the entry at 0 is not an entry of a LabelsSnapshot"},
        {"\x18\x01\x12\x02\x0a\x00", 6,
         "labels: the entry at 2 is not an entry of a LabelsSnapshot"},
        {"\x12\x04\x08\x01\x10\x01", 6,
         "labels: the entry at 0 is not an entry of a LabelsSnapshot"},
        {"\x0a\x06\x08\x01\x12\x02\x0a\x05", 8,
         "labels: the entry at 0 is not an entry of a LabelsSnapshot"},
        {"\x0a\x06\x08\x01\x12\x02\x08\x05", 8,
         "labels: the entry at 0 is not an entry of a LabelsSnapshot"},
    };
    struct jfr_fixture f = {0};
    write_good(&f);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_error(&f, slice_of(cases[i].bytes, cases[i].size), cases[i].error);
    uint64_t pairs[65][2];
    struct wire_writer labels = {0};
    for (uint64_t i = 0; i < 65; i++) {
        char name[16];
        snprintf(name, sizeof name, "label%d", (int)i);
        pairs[i][0] = pairs[i][1] = i;
        add_entry(&labels, 2, i, slice_of_string(name));
    }
    add_context(&labels, 0, pairs, 65);
    expect_error(&f, wire_writer_slice(&labels),
                 "chunk 1: event at 1153: labels: a context has more than 64 labels");
    jfr_fixture_deinit(&f);
    wire_writer_deinit(&labels);
}

/* ---- few bytes that unfold to much ---- */

static void test_large_names_again_and_again(void **state)
{
    (void)state;
    enum { SIZE = 100000, METHODS = 2000 };
    struct jfr_fixture f = {0};
    jfr_fixture_chunk(&f, TYPES EXECUTION_SAMPLE);
    size_t constants = jfr_fixture_event(&f, 1);
    char *name = memory_alloc(SIZE);
    memset(name, 'x', SIZE);
    JFR_NUMBERS(&f, 0, 0, 0, 0, 5, 34, 1, 42, 3, SIZE);
    jfr_fixture_bytes(&f, name, SIZE);
    JFR_NUMBERS(&f, 33, 1, 21, 42, 35, 1, 1, 1, 32, METHODS);
    for (int64_t i = 0; i < METHODS; i++)
        JFR_NUMBERS(&f, 100 + i, 21, 42, 0, 0, 0);
    JFR_NUMBERS(&f, 30, 1, 1, 0, METHODS);
    for (int64_t i = 0; i < METHODS; i++)
        JFR_NUMBERS(&f, 100 + i, 3, 0, 1);
    jfr_fixture_event_end(&f);
    EVENT(&f, 101, 0, 1, 1, 0, 0, 0, 0, 0);
    jfr_fixture_chunk_end(&f, constants);
    expect_error(&f, no_labels, "unfolds to too much");
    free(name);
    jfr_fixture_deinit(&f);
}

/* Frames of a method without a class, from which nothing is built. It is read only once. */
static void test_a_large_method_again_and_again(void **state)
{
    (void)state;
    enum { SIZE = 100000, FRAMES = 2000 };
    struct jfr_fixture f = {0};
    jfr_fixture_chunk(&f, PRIMITIVES
                      "30 jdk.types.StackTrace frames:31*; 31 jdk.types.StackFrame method:32#; "
                      "32 jdk.types.Method type:33# name:34# more:9; "
                      "33 java.lang.Class name:34#; 34 jdk.types.Symbol string:9; "
                      "35 jdk.types.ThreadState name:9" EXECUTION_SAMPLE);
    size_t constants = jfr_fixture_event(&f, 1);
    char *text = memory_alloc(SIZE);
    memset(text, 'x', SIZE);
    JFR_NUMBERS(&f, 0, 0, 0, 0, 3, 35, 1, 1);
    jfr_fixture_text(&f, "STATE_RUNNABLE");
    JFR_NUMBERS(&f, 32, 1, 11, 21, 41, 3, SIZE);
    jfr_fixture_bytes(&f, text, SIZE);
    JFR_NUMBERS(&f, 30, 1, 1, FRAMES);
    for (int64_t i = 0; i < FRAMES; i++)
        JFR_NUMBERS(&f, 11);
    jfr_fixture_event_end(&f);
    EVENT(&f, 101, 0, 1, 1, 0, 0, 0, 0, 0);
    jfr_fixture_chunk_end(&f, constants);
    expect(&f, no_labels, &at_100_hz, "process_cpu cpu nanoseconds every 10000000\n10000000 |\n");
    free(text);
    jfr_fixture_deinit(&f);
}

static void test_settings_with_a_large_name(void **state)
{
    (void)state;
    enum { SIZE = 100000, SETTINGS = 1500, UTF_16 = 4, REFERENCE = 2 };
    struct jfr_fixture f = {0};
    jfr_fixture_chunk(&f, TYPES SETTING);
    size_t constants = jfr_fixture_event(&f, 1);
    JFR_NUMBERS(&f, 0, 0, 0, 0, 1, 9, 1, 1, UTF_16, SIZE);
    for (int i = 0; i < SIZE; i++)
        JFR_NUMBERS(&f, 'x');
    jfr_fixture_event_end(&f);
    for (int i = 0; i < SETTINGS; i++)
        EVENT(&f, 107, 0, 0, REFERENCE, 1, REFERENCE, 1);
    jfr_fixture_chunk_end(&f, constants);
    expect_error(&f, no_labels, "unfolds to too much");
    jfr_fixture_deinit(&f);
}

static void test_a_long_name(void **state)
{
    (void)state;
    enum { SIZE = PROFILES_BUILDER_REPAIR_MAX + 1 };
    struct jfr_fixture f = {0};
    struct error err = {0};
    jfr_fixture_chunk(&f, TYPES EXECUTION_SAMPLE);
    size_t constants = jfr_fixture_event(&f, 1);
    char *name = memory_alloc(SIZE);
    memset(name, 'x', SIZE);
    JFR_NUMBERS(&f, 0, 0, 0, 0, 5, 35, 1, 1);
    jfr_fixture_text(&f, "STATE_RUNNABLE");
    JFR_NUMBERS(&f, 34, 1, 42, 3, SIZE);
    jfr_fixture_bytes(&f, name, SIZE);
    JFR_NUMBERS(&f, 33, 1, 21, 42, 32, 1, 100, 21, 42, 0, 0, 0, 30, 1, 1, 0, 1, 100, 3, 0, 1);
    jfr_fixture_event_end(&f);
    EVENT(&f, 101, 0, 1, 1, 0, 0, 0, 0, 0);
    jfr_fixture_chunk_end(&f, constants);
    assert_null(read_with(jfr_fixture_slice(&f), no_labels, &at_100_hz, &err));
    assert_non_null(strstr(err.text, "a name has 1048577 bytes, at most 1048576 are allowed"));
    free(name);
    jfr_fixture_deinit(&f);
}

/* Readers reserve memory for constants, classes and labels before they allocate it. Without room,
 * the verdict does not blame the recording. */
static void expect_over_budget(struct slice jfr, struct slice labels, size_t limit)
{
    struct budget budget = {.limit_bytes = limit};
    struct jfr_options options = at_100_hz;
    struct error err = {0};
    options.budget = &budget;
    struct profiles_builder *builder = profiles_builder_new(&budget, 1 << 26);
    profiles_builder_resource(builder, &(struct built_resource){.attributes = NULL});
    assert_true(jfr_read(builder, jfr, labels, &options, &err));
    assert_int_equal(profiles_builder_state(builder), PROFILES_BUILDER_OVER_BUDGET);
    profiles_builder_free(builder);
    assert_int_equal(budget_used(&budget), 0);
}

static void test_no_memory_for_constants(void **state)
{
    (void)state;
    enum { CONSTANTS = 20000 };
    struct jfr_fixture f = {0};
    jfr_fixture_chunk(&f, TYPES);
    size_t constants = jfr_fixture_event(&f, 1);
    JFR_NUMBERS(&f, 0, 0, 0, 0, 1, 34, CONSTANTS);
    for (int64_t i = 0; i < CONSTANTS; i++) {
        JFR_NUMBERS(&f, i);
        jfr_fixture_text(&f, "a name as long as that of a class");
    }
    jfr_fixture_event_end(&f);
    jfr_fixture_chunk_end(&f, constants);
    expect_over_budget(jfr_fixture_slice(&f), no_labels, 200000);
    jfr_fixture_deinit(&f);
}

static void test_no_memory_for_labels(void **state)
{
    (void)state;
    enum { STRINGS = 20000 };
    struct jfr_fixture f = {0};
    struct wire_writer labels = {0};
    write_good(&f);
    for (uint64_t i = 0; i < STRINGS; i++)
        add_entry(&labels, 2, i, SLICE("text"));
    expect_over_budget(jfr_fixture_slice(&f), wire_writer_slice(&labels), 200000);
    wire_writer_deinit(&labels);
    jfr_fixture_deinit(&f);
}

static void test_no_memory_for_classes(void **state)
{
    (void)state;
    enum { CLASSES = 4000 };
    struct jfr_fixture f = {0};
    struct text classes = {0};
    text_append(&classes, TYPES);
    for (int i = 0; i < CLASSES; i++)
        text_printf(&classes, "; %d c", 200 + i % 500);
    jfr_fixture_chunk(&f, text_string(&classes));
    size_t constants = jfr_fixture_event(&f, 1);
    JFR_NUMBERS(&f, 0, 0, 0, 0, 0);
    jfr_fixture_event_end(&f);
    jfr_fixture_chunk_end(&f, constants);
    expect_over_budget(jfr_fixture_slice(&f), no_labels, 100000);
    text_deinit(&classes);
    jfr_fixture_deinit(&f);
}

static void test_more_constants_than_can_be(void **state)
{
    (void)state;
    struct jfr_fixture f = {0};
    struct budget budget = {.limit_bytes = 1 << 30};
    struct jfr_options options = at_100_hz;
    struct error err = {0};
    options.budget = &budget;
    jfr_fixture_chunk(&f, TYPES);
    size_t constants = jfr_fixture_event(&f, 1);
    JFR_NUMBERS(&f, 0, 0, 0, 0, 1, 34, 13000);
    for (int64_t i = 0; i < 13000; i++)
        JFR_NUMBERS(&f, i, 1);
    jfr_fixture_event_end(&f);
    jfr_fixture_chunk_end(&f, constants);
    assert_null(read_with(jfr_fixture_slice(&f), no_labels, &options, &err));
    assert_non_null(strstr(err.text, "has more constants than fit into its size"));
    assert_int_equal(budget_used(&budget), 0);
    jfr_fixture_deinit(&f);
}

/* A full builder ends the reading, without an error of the recording. */
static void test_a_full_builder(void **state)
{
    (void)state;
    struct buffer *jfr, *labels;
    uint32_t samples;
    struct error err = {0};
    load("pyroscope/java-grpc-jfr/pyroscope-ingest/005.body", &jfr, &labels);
    struct profiles_builder *builder = profiles_builder_new(NULL, 20000);
    profiles_builder_resource(builder, &(struct built_resource){.attributes = NULL});
    assert_true(jfr_read(builder, buffer_slice(jfr), buffer_slice(labels), &at_100_hz, &err));
    assert_null(profiles_builder_finish(builder, &samples));
    assert_int_equal(profiles_builder_state(builder), PROFILES_BUILDER_TOO_LARGE);
    profiles_builder_free(builder);
    buffer_unref(jfr);
    buffer_unref(labels);
}

/* ---- threads and times ---- */

#define THREADS                                                                                    \
    "; 37 java.lang.Thread osName:9 osThreadId:10 javaName:9 javaThreadId:10"                      \
    "; 101 jdk.ExecutionSample startTime:10 sampledThread:37# stackTrace:30# state:35# spanId:10"  \
    "; 114 jdk.JavaMonitorEnter startTime:10 duration:10 eventThread:37# stackTrace:30#"

/* Thread 5 is "worker" of Java, 6 one of the operating system only. */
static size_t write_constants_and_threads(struct jfr_fixture *f)
{
    size_t first = write_constants(f);
    size_t second = jfr_fixture_event(f, 1);
    JFR_NUMBERS(f, 0, 0, (int64_t)first - (int64_t)second, 0, 1, 37, 2, 5);
    jfr_fixture_text(f, "worker-os");
    JFR_NUMBERS(f, 4711);
    jfr_fixture_text(f, "worker");
    JFR_NUMBERS(f, 31, 6);
    jfr_fixture_text(f, "GC");
    JFR_NUMBERS(f, 4712, 0, 0);
    jfr_fixture_event_end(f);
    return second;
}

static void print_any(struct text *out, const dictionary_message *dictionary, int32_t index)
{
    const Opentelemetry__Proto__Common__V1__AnyValue *value =
        dictionary->attribute_table[index]->value;
    int32_t key = dictionary->attribute_table[index]->key_strindex;
    text_printf(out, " %s=", dictionary->string_table[key]);
    if (value->value_case == OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_INT_VALUE)
        text_printf(out, "%" PRId64, value->int_value);
    else
        text_append(out, value->string_value);
}

static void print_with_thread(struct text *out, const dictionary_message *dictionary,
                              const sample_message *sample)
{
    for (size_t v = 0; v < sample->n_values; v++)
        text_printf(out, " %" PRId64, sample->values[v]);
    for (size_t t = 0; t < sample->n_timestamps_unix_nano; t++)
        text_printf(out, " @%" PRIu64, sample->timestamps_unix_nano[t] - 1700000000000000000u);
    text_append(out, sample->link_index ? " linked" : "");
    for (size_t a = 0; a < sample->n_attribute_indices; a++)
        print_any(out, dictionary, sample->attribute_indices[a]);
    text_append(out, "\n");
}

/* Prints each sample: values, times after the beginning of the chunk, Link, attributes. */
static char *described_with_threads(struct buffer *request)
{
    request_message *message = check_and_unpack(request);
    struct text text = {0};
    const Opentelemetry__Proto__Profiles__V1development__ScopeProfiles *scope =
        message->resource_profiles[0]->scope_profiles[0];
    for (size_t i = 0; i < scope->n_profiles; i++)
        for (size_t k = 0; k < scope->profiles[i]->n_samples; k++) {
            text_printf(&text, "profile %zu:", i);
            print_with_thread(&text, message->dictionary, scope->profiles[i]->samples[k]);
        }
    free_request(message, NULL);
    buffer_unref(request);
    return text.data;
}

static void expect_threads(const struct jfr_options *options, const char *expected)
{
    struct jfr_fixture f = {0};
    struct error err = {0};
    jfr_fixture_chunk(&f, TYPES THREADS);
    size_t constants = write_constants_and_threads(&f);
    EVENT(&f, 101, 1500, 5, 1, 1, 0);
    EVENT(&f, 101, 1700, 5, 1, 1, 0);
    EVENT(&f, 101, 1600, 6, 1, 1, 0);
    EVENT(&f, 101, 1800, 5, 1, 1, 99); /* names a span */
    EVENT(&f, 101, 1900, 77, 1, 1, 0); /* an unknown thread */
    EVENT(&f, 101, 400, 5, 2, 1, 0);   /* before the chunk */
    EVENT(&f, 114, 2000, 50, 5, 1);
    jfr_fixture_chunk_end(&f, constants);
    struct buffer *request = read_with(jfr_fixture_slice(&f), no_labels, options, &err);
    char *text = described_with_threads(request);
    assert_string_equal(text, expected);
    free(text);
    jfr_fixture_deinit(&f);
}

static void test_threads_and_times(void **state)
{
    (void)state;
    struct jfr_options options = at_100_hz;
    options.added_threads = ADD_TIMES_OF_UNNAMED;
#define WORKER                                                                                     \
    " profcol.thread.runtime_id=31 profcol.thread.os_id=4711 profcol.thread.name=worker\n"
    expect_threads(&options, "profile 0: 10000000 10000000 @500 @700" WORKER
                             "profile 0: 10000000 @600 profcol.thread.os_id=4712 "
                             "profcol.thread.name=GC\n"
                             "profile 0: 10000000 linked" WORKER "profile 0: 10000000\n"
                             "profile 0: 10000000 @0" WORKER "profile 1: 50 @1000" WORKER
                             "profile 2: 1 @1000" WORKER);
}

static void test_times_of_samples_that_name_a_span(void **state)
{
    (void)state;
    struct jfr_options options = at_100_hz;
    options.added_threads = ADD_TIMES_OF_NAMED;
    expect_threads(&options, "profile 0: 40000000\nprofile 0: 10000000 @800 linked" WORKER
                             "profile 0: 10000000\nprofile 1: 50\nprofile 2: 1\n");
    options.added_threads |= ADD_TIMES_OF_UNNAMED;
    expect_threads(&options, "profile 0: 10000000 10000000 @500 @700" WORKER
                             "profile 0: 10000000 @600 profcol.thread.os_id=4712 "
                             "profcol.thread.name=GC\n"
                             "profile 0: 10000000 @800 linked" WORKER "profile 0: 10000000\n"
                             "profile 0: 10000000 @0" WORKER "profile 1: 50 @1000" WORKER
                             "profile 2: 1 @1000" WORKER);
}

static void test_without_threads_nothing_is_added(void **state)
{
    (void)state;
    expect_threads(&at_100_hz, "profile 0: 40000000\nprofile 0: 10000000 linked\n"
                               "profile 0: 10000000\nprofile 1: 50\nprofile 2: 1\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recordings_as_the_jdk_reads_them),
        cmocka_unit_test(test_a_recording_cut_anywhere_is_an_error),
        cmocka_unit_test(test_cpu_is_what_did_not_sleep),
        cmocka_unit_test(test_wall_clock),
        cmocka_unit_test(test_other_events),
        cmocka_unit_test(test_delays_are_nanoseconds_whatever_the_clock),
        cmocka_unit_test(test_what_a_sample_stands_for_in_a_file),
        cmocka_unit_test(test_times_of_a_file),
        cmocka_unit_test(test_labels_and_ids),
        cmocka_unit_test(test_encodings_of_texts),
        cmocka_unit_test(test_what_we_do_not_know_is_passed_over),
        cmocka_unit_test(test_chunks_have_their_own_constants),
        cmocka_unit_test(test_wrong_headers),
        cmocka_unit_test(test_wrong_classes),
        cmocka_unit_test(test_wrong_metadata),
        cmocka_unit_test(test_wrong_checkpoints),
        cmocka_unit_test(test_wrong_events),
        cmocka_unit_test(test_wrong_labels),
        cmocka_unit_test(test_large_names_again_and_again),
        cmocka_unit_test(test_a_large_method_again_and_again),
        cmocka_unit_test(test_settings_with_a_large_name),
        cmocka_unit_test(test_a_long_name),
        cmocka_unit_test(test_more_constants_than_can_be),
        cmocka_unit_test(test_no_memory_for_constants),
        cmocka_unit_test(test_no_memory_for_labels),
        cmocka_unit_test(test_no_memory_for_classes),
        cmocka_unit_test(test_a_full_builder),
        cmocka_unit_test(test_threads_and_times),
        cmocka_unit_test(test_times_of_samples_that_name_a_span),
        cmocka_unit_test(test_without_threads_nothing_is_added),
    };
    hash_init_with(1);
    scan_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
