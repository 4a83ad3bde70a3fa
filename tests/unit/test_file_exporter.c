#include "core/base/clock.h"
#include "core/base/memory.h"
#include "core/net/compression.h"
#include "tests/unit/pipeline_fixture.h"

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

extern const struct component_type file_exporter_type;

static char directory[64];
static char path[128]; /* directory/out.json */

static int make_directory(void **state)
{
    (void)state;
    snprintf(directory, sizeof directory, "/tmp/profcol-file-XXXXXX");
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/out.json", directory);
    return 0;
}

static int remove_directory(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", directory);
    return system(command) != 0;
}

static struct fixture_place *start(struct fixture *f, unsigned workers, const char *settings,
                                   enum signal signal)
{
    char yaml[512];
    snprintf(yaml, sizeof yaml, "exporters: {file: {path: %s%s%s}}", path, *settings ? ", " : "",
             settings);
    fixture_init(f, workers);
    return fixture_place(f, &file_exporter_type, "file", yaml, signal_name(signal), signal);
}

static void consume(struct fixture *f, struct node *node, const char *name, struct probe *probe)
{
    struct buffer *request = fixture_span(name);
    fixture_consume(f, node, buffer_slice(request), 1, probe);
    buffer_unref(request);
}

static struct slice read_file(const char *name)
{
    static uint8_t content[8 << 20];
    FILE *file = fopen(name, "rb");
    size_t size = file ? fread(content, 1, sizeof content - 1, file) : 0;
    if (file)
        fclose(file);
    content[size] = '\0';
    return slice_of(content, size);
}

#define LINE(name)                                                                                 \
    "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"name\":\"" name "\"}]}]}]}\n"

static void assert_file(const char *expected)
{
    struct slice content = read_file(path);
    assert_string_equal((const char *)content.data, expected);
}

static double metric(struct fixture *f, const char *name)
{
    return metrics_value(f->process.metrics, name, "exporter=\"file\"");
}

static void writes_lines(void **state)
{
    (void)state;
    struct fixture f;
    struct probe probes[3];
    struct fixture_place *place = start(&f, 1, "", SIGNAL_TRACES);
    consume(&f, place->nodes[0], "a", &probes[0]);
    consume(&f, place->nodes[0], "b", &probes[1]);
    assert_int_equal(probes[0].settled + probes[1].settled,
                     0); /* nothing is acknowledged before it is written */
    fixture_advance(&f, 0);
    assert_int_equal(probes[0].settled + probes[1].settled, 2);
    assert_true(verdict_is_ok(&probes[0].verdict) && verdict_is_ok(&probes[1].verdict));
    assert_file(LINE("a") LINE("b"));
    consume(&f, place->nodes[0], "c", &probes[2]);
    fixture_advance(&f, 0);
    assert_file(LINE("a") LINE("b") LINE("c"));
    assert_int_equal((int)metric(&f, "otelcol_exporter_sent_spans"), 3);
    fixture_deinit(&f);
}

static char *long_name(size_t size)
{
    char *name = memory_alloc(size + 1);
    memset(name, 'n', size);
    name[size] = '\0';
    return name;
}

/* Jobs encode large batches. A manual worker runs a job at once, but gets its end as a message. */
static void keeps_the_order_behind_a_large_batch(void **state)
{
    (void)state;
    struct fixture f;
    struct probe probes[3];
    struct text expected = {0};
    char *name = long_name(300000);
    struct fixture_place *place = start(&f, 1, "", SIGNAL_TRACES);
    consume(&f, place->nodes[0], "a", &probes[0]);
    consume(&f, place->nodes[0], name, &probes[1]);
    consume(&f, place->nodes[0], "b", &probes[2]);
    assert_false(fixture_is_idle(place->nodes[0]));
    fixture_advance(&f, 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(probes[i].settled, 1);
        assert_true(verdict_is_ok(&probes[i].verdict));
    }
    assert_true(fixture_is_idle(place->nodes[0]));
    text_append(&expected, LINE("a"));
    text_printf(&expected, LINE("%s"), name);
    text_append(&expected, LINE("b"));
    assert_file(text_string(&expected));
    text_deinit(&expected);
    free(name);
    fixture_deinit(&f);
}

static bool is_abandoned(const struct receipt *receipt)
{
    (void)receipt;
    return true;
}

static void drops_what_its_sender_gave_up_meanwhile(void **state)
{
    (void)state;
    struct fixture f;
    struct probe probes[2];
    char *name = long_name(300000);
    struct fixture_place *place = start(&f, 1, "", SIGNAL_TRACES);
    consume(&f, place->nodes[0], name, &probes[0]);
    consume(&f, place->nodes[0], "b", &probes[1]);
    probes[1].receipt.is_abandoned = is_abandoned;
    fixture_advance(&f, 0);
    assert_true(verdict_is_ok(&probes[0].verdict));
    assert_int_equal(probes[1].settled, 1);
    assert_int_equal(probes[1].verdict.code, verdict_sender_is_gone.code);
    assert_null(strstr((const char *)read_file(path).data, "\"b\""));
    free(name);
    fixture_deinit(&f);
}

/* Of each node, at most 4 MiB of text and one more record wait for the file. All other records
 * wait as batches. */
static void bounds_what_is_not_written(void **state)
{
    (void)state;
    enum { RECORDS = 8 };
    struct fixture f;
    struct probe probes[RECORDS];
    char *name = long_name(3 << 20);
    struct fixture_place *place = start(&f, 2, "", SIGNAL_TRACES);
    for (int i = 0; i < RECORDS; i++)
        consume(&f, place->nodes[1], i % 2 ? "small" : name, &probes[i]);
    /* Worker 0, which writes, gets no turn. Worker 1 passes two of its large records to it. */
    worker_advance(&f.workers[1], fixture_now(&f));
    size_t handed_over = 0;
    for (struct post *post = atomic_load(&f.workers[0].inbox); post; post = post->next)
        handed_over++;
    assert_int_equal(handed_over, 3); /* large, small, large */
    fixture_advance(&f, 0);
    for (int i = 0; i < RECORDS; i++)
        assert_true(probes[i].settled == 1 && verdict_is_ok(&probes[i].verdict));
    free(name);
    fixture_deinit(&f);
}

static void writes_for_all_workers(void **state)
{
    (void)state;
    struct fixture f;
    struct probe probes[20];
    char name[8];
    struct fixture_place *place = start(&f, 3, "", SIGNAL_TRACES);
    for (unsigned i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "%02u", i);
        consume(&f, place->nodes[i % 3], name, &probes[i]);
    }
    fixture_advance(&f, 0);
    struct slice content = read_file(path);
    for (unsigned i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "\"%02u\"", i);
        assert_int_equal(probes[i].settled, 1);
        assert_true(verdict_is_ok(&probes[i].verdict));
        assert_non_null(strstr((const char *)content.data, name));
    }
    assert_int_equal((int)metric(&f, "otelcol_exporter_sent_spans"), 20);
    fixture_deinit(&f);
}

static void truncates_or_appends(void **state)
{
    (void)state;
    static const struct {
        const char *settings;
        const char *after;
    } runs[] = {{"", LINE("x")}, {"append: true", LINE("x") LINE("x")}, {"", LINE("x")}};
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        struct fixture f;
        struct fixture_place *place = start(&f, 1, runs[i].settings, SIGNAL_TRACES);
        consume(&f, place->nodes[0], "x", NULL);
        fixture_deinit(&f); /* drains */
        assert_file(runs[i].after);
    }
}

/* Returns the next record, which follows a length of four bytes. */
static struct slice next_record(struct slice *content)
{
    assert_true(content->size >= 4);
    size_t size = (size_t)content->data[0] << 24 | (size_t)content->data[1] << 16 |
                  (size_t)content->data[2] << 8 | content->data[3];
    assert_true(content->size >= 4 + size);
    struct slice record = slice_of(content->data + 4, size);
    *content = slice_of(content->data + 4 + size, content->size - 4 - size);
    return record;
}

static void writes_protobuf(void **state)
{
    (void)state;
    struct fixture f;
    struct fixture_place *place = start(&f, 1, "format: proto", SIGNAL_TRACES);
    struct buffer *a = fixture_span("a"), *b = fixture_span("bcd");
    consume(&f, place->nodes[0], "a", NULL);
    consume(&f, place->nodes[0], "bcd", NULL);
    fixture_advance(&f, 0);
    struct slice content = read_file(path);
    assert_true(slice_equal(next_record(&content), buffer_slice(a)));
    assert_true(slice_equal(next_record(&content), buffer_slice(b)));
    assert_int_equal(content.size, 0);
    buffer_unref(a);
    buffer_unref(b);
    fixture_deinit(&f);
}

/* Each compressed record has its length before it. */
static void appends_compressed_records(void **state)
{
    (void)state;
    const char *const settings[] = {"compression: zstd", "append: true, compression: zstd"};
    for (size_t i = 0; i < 2; i++) {
        struct fixture f;
        struct fixture_place *place = start(&f, 1, settings[i], SIGNAL_TRACES);
        consume(&f, place->nodes[0], "x", NULL);
        fixture_deinit(&f); /* drains */
    }
    struct slice content = read_file(path);
    struct slice first = next_record(&content);
    assert_true(slice_equal(next_record(&content), first));
    assert_int_equal(content.size, 0);
}

static void compresses(void **state)
{
    (void)state;
    static const char *const formats[] = {"format: json, compression: zstd",
                                          "format: proto, compression: zstd"};
    for (int i = 0; i < 2; i++) {
        struct fixture f;
        struct error err;
        struct buffer *plain, *span = fixture_span("a");
        struct fixture_place *place = start(&f, 1, formats[i], SIGNAL_TRACES);
        consume(&f, place->nodes[0], "a", NULL);
        fixture_advance(&f, 0);
        struct slice content = read_file(path);
        assert_int_equal(
            decompress(COMPRESSION_ZSTD, next_record(&content), 1000, NULL, &plain, &err),
            DECOMPRESS_OK);
        struct slice expected = buffer_slice(span);
        if (i == 0)
            expected = slice_of(LINE("a"), sizeof LINE("a") - 2); /* without the newline */
        assert_true(slice_equal(buffer_slice(plain), expected));
        buffer_unref(plain);
        buffer_unref(span);
        fixture_deinit(&f);
    }
}

/* ---- errors of the disk ---- */

static void asks_to_try_later_when_the_disk_is_full(void **state)
{
    (void)state;
    struct fixture f;
    struct probe probe;
    snprintf(path, sizeof path, "/dev/full");
    struct fixture_place *place = start(&f, 1, "", SIGNAL_TRACES);
    consume(&f, place->nodes[0], "a", &probe);
    fixture_advance(&f, 0);
    assert_int_equal(probe.settled, 1);
    assert_int_equal(probe.verdict.code, GRPC_UNAVAILABLE);
    assert_true(verdict_is_retryable(&probe.verdict));
    assert_non_null(strstr(probe.verdict.text, "No space left on device"));
    assert_int_equal((int)metric(&f, "otelcol_exporter_send_failed_spans"), 1);
    fixture_deinit(&f);
}

static void asks_to_try_later_for_large_batches(void **state)
{
    (void)state;
    struct fixture f;
    struct probe probes[2];
    char *name = long_name(2 << 20);
    snprintf(path, sizeof path, "/dev/full");
    struct fixture_place *place = start(&f, 1, "", SIGNAL_TRACES);
    consume(&f, place->nodes[0], name, &probes[0]);
    consume(&f, place->nodes[0], "b", &probes[1]);
    fixture_advance(&f, 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(probes[i].settled, 1);
        assert_int_equal(probes[i].verdict.code, GRPC_UNAVAILABLE);
        assert_true(verdict_is_retryable(&probes[i].verdict));
    }
    free(name);
    fixture_deinit(&f);
}

static void set_file_limit(rlim_t bytes)
{
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    setrlimit(RLIMIT_FSIZE, &limit);
}

static void leaves_no_half_records(void **state)
{
    (void)state;
    struct fixture f;
    struct probe probes[4];
    signal(SIGXFSZ, SIG_IGN);
    struct fixture_place *place = start(&f, 1, "", SIGNAL_TRACES);
    set_file_limit(2 * (sizeof LINE("a") - 1) + 10);
    for (int i = 0; i < 4; i++)
        consume(&f, place->nodes[0], "a", &probes[i]);
    fixture_advance(&f, 0);
    assert_true(verdict_is_ok(&probes[0].verdict) && verdict_is_ok(&probes[1].verdict));
    assert_int_equal(probes[2].verdict.code, GRPC_UNAVAILABLE);
    assert_int_equal(probes[3].verdict.code, GRPC_UNAVAILABLE);
    assert_file(LINE("a") LINE("a"));
    set_file_limit(RLIM_INFINITY);
    consume(&f, place->nodes[0], "b", &probes[2]);
    fixture_advance(&f, 0);
    assert_file(LINE("a") LINE("a") LINE("b"));
    fixture_deinit(&f);
}

/* The same with a job: the second of two large records does not fit. */
static void leaves_no_half_of_a_large_record(void **state)
{
    (void)state;
    struct fixture f;
    struct probe probes[2];
    struct text expected = {0};
    char *name = long_name(2 << 20);
    signal(SIGXFSZ, SIG_IGN);
    struct fixture_place *place = start(&f, 1, "", SIGNAL_TRACES);
    set_file_limit(3 << 20);
    consume(&f, place->nodes[0], name, &probes[0]);
    consume(&f, place->nodes[0], name, &probes[1]);
    fixture_advance(&f, 0);
    set_file_limit(RLIM_INFINITY);
    assert_true(verdict_is_ok(&probes[0].verdict));
    assert_int_equal(probes[1].verdict.code, GRPC_UNAVAILABLE);
    text_printf(&expected, LINE("%s"), name);
    assert_file(text_string(&expected));
    text_deinit(&expected);
    free(name);
    fixture_deinit(&f);
}

/* ---- rotation ---- */

static unsigned count_files(void)
{
    unsigned count = 0;
    DIR *listing = opendir(directory);
    for (struct dirent *entry; (entry = readdir(listing));)
        count += entry->d_name[0] != '.';
    closedir(listing);
    return count;
}

static void rotates(void **state)
{
    (void)state;
    struct fixture f;
    struct text name = {0};
    char backup[256];
    for (int i = 0; i < 400000; i++)
        text_append_char(&name, 'n');
    struct fixture_place *place =
        start(&f, 1, "rotation: {max_megabytes: 1, max_backups: 2}", SIGNAL_TRACES);
    clock_fix_wall(1767225599123000000); /* 2025-12-31T23:59:59.123 */
    for (int i = 0; i < 9; i++) {
        consume(&f, place->nodes[0], text_string(&name), NULL);
        if (i % 2)
            fixture_advance(&f, 0);
        if (i == 3) { /* 2 + 2: the third did not fit */
            assert_int_equal(count_files(), 2);
            snprintf(backup, sizeof backup, "%s/out-2025-12-31T23-59-59.123.json", directory);
            assert_int_equal(access(backup, F_OK), 0);
        }
    }
    fixture_advance(&f, 0);
    assert_int_equal(count_files(),
                     3); /* at the same time, but with different names; the oldest is deleted */
    assert_int_not_equal(access(backup, F_OK), 0);
    assert_true(read_file(path).size > 400000);
    clock_fix_wall(0);
    fixture_deinit(&f);
    text_deinit(&name);
}

static void deletes_by_age(void **state)
{
    (void)state;
    struct fixture f;
    struct text name = {0};
    char old[256], other[256];
    for (int i = 0; i < 600000; i++)
        text_append_char(&name, 'n');
    snprintf(old, sizeof old, "%s/out-2025-12-01T00-00-00.000.json", directory);
    snprintf(other, sizeof other, "%s/out-2025-12-01.json", directory);
    fclose(fopen(old, "w"));
    fclose(fopen(other, "w"));
    clock_fix_wall(1767225599123000000);
    struct fixture_place *place =
        start(&f, 1, "rotation: {max_megabytes: 1, max_days: 7}", SIGNAL_TRACES);
    consume(&f, place->nodes[0], text_string(&name), NULL);
    consume(&f, place->nodes[0], text_string(&name), NULL);
    fixture_advance(&f, 0);
    assert_int_not_equal(access(old, F_OK), 0);
    assert_int_equal(access(other, F_OK), 0);
    assert_int_equal(count_files(), 3);
    clock_fix_wall(0);
    fixture_deinit(&f);
    text_deinit(&name);
}

static void creates_directories(void **state)
{
    (void)state;
    struct fixture f;
    struct stat status;
    char deep[96];
    snprintf(path, sizeof path, "%s/a/b/out.json", directory);
    snprintf(deep, sizeof deep, "%s/a/b", directory);
    struct fixture_place *place =
        start(&f, 1, "create_directory: true, directory_permissions: '0700'", SIGNAL_TRACES);
    consume(&f, place->nodes[0], "a", NULL);
    fixture_deinit(&f);
    assert_file(LINE("a"));
    assert_int_equal(stat(deep, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
}

/* ---- configuration ---- */

static const struct mistake {
    const char *settings;
    const char *error;
} mistakes[] = {
    {"{}", "path"},
    {"{path: x, format: xml}", "format"},
    {"{path: x, append: true, rotation: {}}", "append and rotation cannot be used together"},
    {"{path: x, directory_permissions: '999'}", "\"999\" is not an octal mode such as 0755"},
    {"{path: x, group_by: {enabled: true}}",
     "path must contain exactly one * when group_by is enabled"},
    {"{path: 'a*b*', group_by: {enabled: true}}",
     "path must contain exactly one * when group_by is enabled"},
    {"{path: '*/x', group_by: {enabled: true}}",
     "path must not start with * when group_by is enabled"},
    {"{path: 'x*', group_by: {enabled: true, resource_attribute: ''}}",
     "resource_attribute must not be empty"},
    {"{path: 'x*', group_by: {enabled: true, max_open_files: 0}}", "max_open_files"},
    {"{path: x, encoding: otlp}", "encoding extensions are not supported"},
};

/* ---- group_by ---- */

static struct fixture_place *start_groups(struct fixture *f, const char *settings,
                                          enum signal signal)
{
    char yaml[512];
    snprintf(yaml, sizeof yaml,
             "exporters: {file: {path: '%s/out-*.json', group_by: {enabled: true, "
             "resource_attribute: k%s}}}",
             directory, settings);
    fixture_init(f, 2);
    return fixture_place(f, &file_exporter_type, "file", yaml, signal_name(signal), signal);
}

static void expect_group(const char *segment, const char *expected)
{
    char name[256];
    snprintf(name, sizeof name, "%s/out-%s.json", directory, segment);
    assert_string_equal((const char *)read_file(name).data, expected);
}

#define RESOURCE(value, span)                                                                      \
    "{\"resource\":{\"attributes\":[{\"key\":\"k\",\"value\":{" value "}}]},"                      \
    "\"scopeSpans\":[{\"spans\":[{\"name\":\"" span "\"}]}]}"
#define TEXT(value) "\"stringValue\":\"" value "\""
#define REQUEST(resources) "{\"resourceSpans\":[" resources "]}"

static void divides_by_an_attribute(void **state)
{
    (void)state;
    struct fixture f;
    struct probe probes[2];
    struct fixture_place *place = start_groups(&f, "", SIGNAL_TRACES);
    for (unsigned i = 0; i < 2; i++)
        fixture_consume_json(&f, place->nodes[i],
                             REQUEST(RESOURCE(TEXT("a"), "1") "," RESOURCE(
                                 TEXT("b/c"), "2") "," RESOURCE(TEXT("a"), "3")),
                             3, &probes[i]);
    fixture_advance(&f, 0);
    for (unsigned i = 0; i < 2; i++)
        assert_true(probes[i].settled == 1 && verdict_is_ok(&probes[i].verdict));
    expect_group("a", REQUEST(RESOURCE(TEXT("a"), "1") "," RESOURCE(TEXT("a"), "3")) "\n" REQUEST(
                          RESOURCE(TEXT("a"), "1") "," RESOURCE(TEXT("a"), "3")) "\n");
    expect_group("b/c",
                 REQUEST(RESOURCE(TEXT("b/c"), "2")) "\n" REQUEST(RESOURCE(TEXT("b/c"), "2")) "\n");
    assert_int_equal((int)metric(&f, "otelcol_exporter_sent_spans"), 6);
    fixture_deinit(&f);
}

static void leaves_out_what_is_no_path(void **state)
{
    (void)state;
    static const char *const values[] = {
        TEXT(".."), TEXT("../x"),      TEXT("a/../../x"), TEXT("/etc/x"), TEXT("a//b"),
        TEXT(""),   TEXT("a\\u0000b"), TEXT("."),         TEXT("a/"),     "\"intValue\":\"1\"",
    };
    struct fixture f;
    struct fixture_place *place = start_groups(&f, "", SIGNAL_TRACES);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        char json[512];
        struct probe probe;
        snprintf(json, sizeof json,
                 REQUEST("{\"resource\":{\"attributes\":[{\"key\":\"k\",\"value\":{%s}}]},"
                         "\"scopeSpans\":[{\"spans\":[{\"name\":\"s\"}]}]}"),
                 values[i]);
        fixture_consume_json(&f, place->nodes[0], json, 1, &probe);
        fixture_advance(&f, 0);
        assert_true(probe.settled == 1 && verdict_is_ok(&probe.verdict));
    }
    fixture_deinit(&f);
    DIR *listing = opendir(directory);
    unsigned entries = 0;
    for (const struct dirent *entry; (entry = readdir(listing));)
        entries += entry->d_name[0] != '.';
    closedir(listing);
    assert_int_equal(entries, 0);
}

static void keeps_few_files_open(void **state)
{
    (void)state;
    struct fixture f;
    struct fixture_place *place = start_groups(&f, ", max_open_files: 1", SIGNAL_TRACES);
    for (unsigned i = 0; i < 3; i++) {
        struct probe probe;
        fixture_consume_json(&f, place->nodes[0],
                             REQUEST(RESOURCE(TEXT("a"), "1") "," RESOURCE(TEXT("b"), "2")), 2,
                             &probe);
        fixture_advance(&f, 0);
        assert_true(probe.settled == 1 && verdict_is_ok(&probe.verdict));
    }
#define A REQUEST(RESOURCE(TEXT("a"), "1")) "\n"
#define B REQUEST(RESOURCE(TEXT("b"), "2")) "\n"
    expect_group("a", A A A);
    expect_group("b", B B B);
    fixture_deinit(&f);
}

/* The dictionary goes to each file. */
static void divides_profiles(void **state)
{
    (void)state;
    struct fixture f;
    struct probe probe;
    struct fixture_place *place = start_groups(&f, "", SIGNAL_PROFILES);
#define PROFILES_OF(value)                                                                         \
    "{\"resource\":{\"attributes\":[{\"key\":\"k\",\"value\":{" TEXT(value) "}}]}}"
    fixture_consume_json(&f, place->nodes[0],
                         "{\"resourceProfiles\":[" PROFILES_OF("a") "," PROFILES_OF(
                             "b") "],"
                                  "\"dictionary\":{\"stringTable\":[\"\",\"word\"]}}",
                         0, &probe);
    fixture_advance(&f, 0);
    assert_true(probe.settled == 1 && verdict_is_ok(&probe.verdict));
    char name[256];
    for (const char *segment = "ab"; *segment; segment++) {
        snprintf(name, sizeof name, "%s/out-%c.json", directory, *segment);
        assert_non_null(strstr((const char *)read_file(name).data, "\"word\""));
    }
    fixture_deinit(&f);
}

static void limits_repeated_dictionaries(void **state)
{
    (void)state;
    enum { WORD_SIZE = 300000, RESOURCES = 20 };
    struct fixture f;
    struct probe probe;
    struct text json = {0};
    struct fixture_place *place = start_groups(&f, "", SIGNAL_PROFILES);
    text_append(&json, "{\"resourceProfiles\":[");
    for (int i = 0; i < RESOURCES; i++)
        text_printf(&json,
                    "%s{\"resource\":{\"attributes\":[{\"key\":\"k\",\"value\":{\"stringValue"
                    "\":\"%d\"}}]}}",
                    i > 0 ? "," : "", i);
    text_append(&json, "],\"dictionary\":{\"stringTable\":[\"\",\"");
    for (int i = 0; i < WORD_SIZE; i++)
        text_append_char(&json, 'w');
    text_append(&json, "\"]}}");
    fixture_consume_json(&f, place->nodes[0], text_string(&json), 0, &probe);
    fixture_advance(&f, 0);
    assert_int_equal(probe.settled, 1);
    assert_int_equal(probe.verdict.code, GRPC_RESOURCE_EXHAUSTED);
    assert_false(verdict_is_retryable(&probe.verdict));
    text_deinit(&json);
    fixture_deinit(&f);
}

/* Sending again what can never be written would go on for ever. */
static void segments_that_clash(void **state)
{
    (void)state;
    struct fixture f;
    struct probe probes[2];
    char yaml[512];
    snprintf(yaml, sizeof yaml,
             "exporters: {file: {path: '%s/*', group_by: {enabled: true, resource_attribute: k}}}",
             directory);
    fixture_init(&f, 1);
    struct fixture_place *place =
        fixture_place(&f, &file_exporter_type, "file", yaml, "traces", SIGNAL_TRACES);
    fixture_consume_json(&f, place->nodes[0], REQUEST(RESOURCE(TEXT("a"), "1")), 1, &probes[0]);
    fixture_consume_json(&f, place->nodes[0], REQUEST(RESOURCE(TEXT("a/b"), "1")), 1, &probes[1]);
    fixture_advance(&f, 0);
    assert_true(verdict_is_ok(&probes[0].verdict));
    assert_int_equal(probes[1].settled, 1);
    assert_int_equal(probes[1].verdict.code, GRPC_INVALID_ARGUMENT);
    fixture_deinit(&f);
}

static void refuses_mistakes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++)
        fixture_refuses(&file_exporter_type, mistakes[i].settings, mistakes[i].error);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(writes_lines),
        TEST(keeps_the_order_behind_a_large_batch),
        TEST(drops_what_its_sender_gave_up_meanwhile),
        TEST(bounds_what_is_not_written),
        TEST(writes_for_all_workers),
        TEST(truncates_or_appends),
        TEST(writes_protobuf),
        TEST(compresses),
        TEST(appends_compressed_records),
        TEST(asks_to_try_later_when_the_disk_is_full),
        TEST(asks_to_try_later_for_large_batches),
        TEST(leaves_no_half_records),
        TEST(leaves_no_half_of_a_large_record),
        TEST(rotates),
        TEST(deletes_by_age),
        TEST(creates_directories),
        TEST(refuses_mistakes),
        TEST(divides_by_an_attribute),
        TEST(leaves_out_what_is_no_path),
        TEST(keeps_few_files_open),
        TEST(divides_profiles),
        TEST(limits_repeated_dictionaries),
        TEST(segments_that_clash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
