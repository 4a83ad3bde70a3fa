#include "core/base/clock.h"
#include "core/base/hash.h"
#include "core/base/log.h"
#include "core/base/log_output.h"
#include "tests/unit/expect_text.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#define NOON "2024-02-29T12:00:00.042Z"
#define NOON_NS ((uint64_t)1709208000042000000)

static int real_stderr;
static FILE *capture;
static char captured[65536];

static void begin_capture(void)
{
    capture = tmpfile();
    assert_non_null(capture);
    real_stderr = dup(STDERR_FILENO);
    dup2(fileno(capture), STDERR_FILENO);
}

static const char *end_capture(void)
{
    dup2(real_stderr, STDERR_FILENO);
    close(real_stderr);
    rewind(capture);
    size_t size = fread(captured, 1, sizeof captured - 1, capture);
    captured[size] = '\0';
    fclose(capture);
    assert_int_equal(strlen(captured), size);
    return captured;
}

static int begin(void **state)
{
    (void)state;
    hash_init_with(1); /* the sampler's slots are the same in every run */
    clock_fix_wall(NOON_NS);
    return 0;
}

static size_t count_of(const char *text, char what)
{
    size_t count = 0;
    for (; *text; text++)
        count += *text == what;
    return count;
}

/* ---- lines ---- */

static const char *const stderr_only[] = {"stderr"};
static const struct log_member resource[] = {{"service.instance.id", "1f"},
                                             {"service.name", "pro\"col"}};
static const struct log_member initial[] = {{"a", "{\"b\":[1,null]}"}, {"n", "7"}};

static struct log_options options_of(enum log_encoding encoding)
{
    return (struct log_options){.level = LOG_INFO,
                                .encoding = encoding,
                                .disable_caller = true,
                                .output_paths = stderr_only,
                                .output_count = 1,
                                .error_output_paths = stderr_only,
                                .error_output_count = 1,
                                .initial_fields = initial,
                                .initial_count = 2,
                                .resource = resource,
                                .resource_count = 2};
}

static void open_with(const struct log_options *options)
{
    struct error err;
    assert_true(log_open(options, &err));
}

/* One line of each kind. */
static void log_samples(void)
{
    const struct log_origin slow = {"processor batch/x", "traces", "traces/slow"};
    log_info(LOG_PROCESS, "Everything is ready.");
    log_warn(slow, "Sender failed.", LOG_TEXT("error", "a \"b\""), LOG_U64("dropped_items", 3));
    log_error(log_component("exporter otlp/x"), "down", LOG_DURATION("interval", 1500000000),
              LOG_BOOL("first", true), LOG_DOUBLE("share", 0.5));
    log_error(log_component("odd"), "no kind");
}

/* As the Collector 0.158 prints them, but for its callers. */
static void console_is_the_collectors(void **state)
{
    (void)state;
    const char *const fixed = "{\"a\": {\"b\":[1,null]}, \"n\": 7, \"resource\": "
                              "{\"service.instance.id\": \"1f\", \"service.name\": \"pro\\\"col\"}";
    char expected[2000];
    struct log_options options = options_of(LOG_CONSOLE);
    snprintf(expected, sizeof expected,
             NOON "\tinfo\tEverything is ready.\t%s}\n" NOON "\twarn\tSender failed.\t%s, "
                  "\"otelcol.component.id\": \"batch/x\", \"otelcol.component.kind\": "
                  "\"processor\", \"otelcol.pipeline.id\": \"traces/slow\", \"otelcol.signal\": "
                  "\"traces\", \"error\": \"a \\\"b\\\"\", \"dropped_items\": 3}\n" NOON
                  "\terror\tdown\t%s, \"otelcol.component.id\": \"otlp/x\", "
                  "\"otelcol.component.kind\": \"exporter\", \"interval\": \"1.5s\", \"first\": "
                  "true, \"share\": 0.5}\n" NOON
                  "\terror\tno kind\t%s, \"otelcol.component.id\": \"odd\"}\n",
             fixed, fixed, fixed, fixed);
    open_with(&options);
    begin_capture();
    log_samples();
    expect_text(end_capture(), expected);
}

static void json_is_the_collectors(void **state)
{
    (void)state;
    struct log_options options = options_of(LOG_JSON);
    options.initial_count = 0;
    open_with(&options);
    begin_capture();
    log_samples();
    expect_text(end_capture(),
                "{\"level\":\"info\",\"ts\":\"" NOON
                "\",\"msg\":\"Everything is ready.\",\"resource\":"
                "{\"service.instance.id\":\"1f\",\"service.name\":\"pro\\\"col\"}}\n"
                "{\"level\":\"warn\",\"ts\":\"" NOON "\",\"msg\":\"Sender failed.\",\"resource\":"
                "{\"service.instance.id\":\"1f\",\"service.name\":\"pro\\\"col\"},"
                "\"otelcol.component.id\":\"batch/x\",\"otelcol.component.kind\":\"processor\","
                "\"otelcol.pipeline.id\":\"traces/slow\",\"otelcol.signal\":\"traces\","
                "\"error\":\"a \\\"b\\\"\",\"dropped_items\":3}\n"
                "{\"level\":\"error\",\"ts\":\"" NOON "\",\"msg\":\"down\",\"resource\":"
                "{\"service.instance.id\":\"1f\",\"service.name\":\"pro\\\"col\"},"
                "\"otelcol.component.id\":\"otlp/x\",\"otelcol.component.kind\":\"exporter\","
                "\"interval\":\"1.5s\",\"first\":true,\"share\":0.5}\n"
                "{\"level\":\"error\",\"ts\":\"" NOON "\",\"msg\":\"no kind\",\"resource\":"
                "{\"service.instance.id\":\"1f\",\"service.name\":\"pro\\\"col\"},"
                "\"otelcol.component.id\":\"odd\"}\n");
}

static void a_line_may_have_nothing_but_its_message(void **state)
{
    (void)state;
    struct log_options options = options_of(LOG_CONSOLE);
    options.initial_count = 0;
    options.disable_resource = true;
    open_with(&options);
    begin_capture();
    log_info(LOG_PROCESS, "ready");
    assert_string_equal(end_capture(), NOON "\tinfo\tready\n");
}

static void the_caller_is_the_last_folder_and_the_file(void **state)
{
    (void)state;
    char expected[200];
    for (int encoding = LOG_CONSOLE; encoding <= LOG_JSON; encoding++) {
        log_init(LOG_INFO, (enum log_encoding)encoding);
        begin_capture();
        unsigned line = __LINE__ + 1;
        log_info(LOG_PROCESS, "ready");
        snprintf(expected, sizeof expected,
                 encoding == LOG_JSON ? "{\"level\":\"info\",\"ts\":\"" NOON
                                        "\",\"caller\":\"unit/test_log.c:%u\",\"msg\":\"ready\"}\n"
                                      : NOON "\tinfo\tunit/test_log.c:%u\tready\n",
                 line);
        assert_string_equal(end_capture(), expected);
    }
}

static void no_memory_is_a_line_too(void **state)
{
    (void)state;
    begin_capture();
    log_init(LOG_INFO, LOG_CONSOLE);
    log_fatal("Out of memory", "bytes", 7);
    log_init(LOG_INFO, LOG_JSON);
    log_fatal("Out of memory", "bytes", 7);
    assert_string_equal(end_capture(), NOON "\tfatal\tOut of memory\t{\"bytes\": 7}\n"
                                            "{\"level\":\"fatal\",\"ts\":\"" NOON
                                            "\",\"msg\":\"Out of memory\",\"bytes\":7}\n");
}

static int evaluated;

static uint64_t evaluate(void)
{
    return (uint64_t)++evaluated;
}

static void levels_are_obeyed(void **state)
{
    (void)state;
    for (int level = LOG_DEBUG; level <= LOG_NOTHING; level++) {
        log_init((enum log_level)level, LOG_CONSOLE);
        evaluated = 0;
        begin_capture();
        log_debug(LOG_PROCESS, "said at 0", LOG_U64("n", evaluate()));
        log_info(LOG_PROCESS, "said at 1", LOG_U64("n", evaluate()));
        log_warn(LOG_PROCESS, "said at 2", LOG_U64("n", evaluate()));
        log_error(LOG_PROCESS, "said at 3", LOG_U64("n", evaluate()));
        const char *text = end_capture();
        assert_int_equal(count_of(text, '\n'), LOG_NOTHING - level);
        assert_int_equal(evaluated, LOG_NOTHING - level); /* hidden fields are not evaluated */
        for (int said = 0; said < LOG_NOTHING; said++) {
            char line[32];
            snprintf(line, sizeof line, "said at %d", said);
            assert_int_equal(strstr(text, line) != NULL, said >= level);
            assert_int_equal(log_enabled((enum log_level)said), said >= level);
        }
    }
}

static const char *const hostile[] = {
    "two\nlines",
    "carriage\rreturn",
    "tab\there",
    "escape \x1b[2J\x1b[1;1H",
    "bell\a delete\x7f",
    "next line \xc2\x85 csi \xc2\x9b 31m",
    "separators \xe2\x80\xa8 and \xe2\x80\xa9",
    "broken \xff\xc3( \xed\xa0\x80",
    "quote \" backslash \\ \\n",
    "}\n{\"level\":\"error\"}",
};

/* The fields start after the fourth tab, so a line must not have a fifth one, or control characters
 * for a terminal. */
static void no_line_can_be_forged(void **state)
{
    (void)state;
    log_init(LOG_INFO, LOG_CONSOLE);
    for (size_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++) {
        begin_capture();
        log_info(LOG_PROCESS, "x", LOG_TEXT("text", hostile[i]));
        log_info(log_component(hostile[i]), "x", LOG_TEXT(hostile[i], "y"));
        const char *text = end_capture();
        assert_int_equal(count_of(text, '\n'), 2);
        assert_int_equal(count_of(text, '\t'), 4 + 4);
        for (const char *c = text; *c; c++) {
            assert_true((uint8_t)*c >= 0x20 || *c == '\n' || *c == '\t');
            assert_int_not_equal(*c, 0x7f);
        }
        assert_null(strstr(text, "\xc2\x85"));
        assert_null(strstr(text, "\xc2\x9b"));
        assert_null(strstr(text, "\xe2\x80\xa8"));
    }
}

static const char *member(const json_t *record, const char *key)
{
    const char *value = json_string_value(json_object_get(record, key));
    return value ? value : "(none)";
}

static void json_lines_parse(void **state)
{
    (void)state;
    log_init(LOG_INFO, LOG_JSON);
    for (size_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++) {
        begin_capture();
        log_error(log_component("receiver otlp"), "odd", LOG_TEXT("text", hostile[i]));
        const char *text = end_capture();
        assert_int_equal(count_of(text, '\n'), 1);
        assert_int_equal(text[strlen(text) - 1], '\n');
        json_t *record = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(record);
        assert_string_equal(member(record, "level"), "error");
        assert_string_equal(member(record, "ts"), NOON);
        assert_string_equal(member(record, "otelcol.component.id"), "otlp");
        assert_string_equal(member(record, "otelcol.component.kind"), "receiver");
        if (!strchr(hostile[i], '\xff'))
            assert_string_equal(member(record, "text"), hostile[i]);
        assert_int_equal(json_object_size(record), 7);
        json_decref(record);
    }
}

static void a_long_value_is_cut_between_characters(void **state)
{
    (void)state;
    enum { MAX = 8192 };
    char value[MAX + 5] = "";
    log_init(LOG_INFO, LOG_JSON);
    memset(value, 'x', MAX - 1);
    memcpy(value + MAX - 1, "\xc3\xa4y", 4); /* the second byte of this character is beyond */
    begin_capture();
    log_info(LOG_PROCESS, "long", LOG_TEXT("text", value));
    json_t *record = json_loads(end_capture(), 0, NULL);
    assert_non_null(record);
    assert_int_equal(strlen(member(record, "text")), MAX - 1);
    json_decref(record);
}

/* ---- sampling ---- */

static size_t lines_of(const struct log_sampling *sampling, const char *message)
{
    struct log_options options = options_of(LOG_CONSOLE);
    const struct log_site site = {.level = LOG_INFO, .message = message, .is_sampled = true};
    const struct log_field none[] = {{.kind = LOG_KIND_END}};
    options.sampling = *sampling;
    open_with(&options);
    begin_capture();
    for (int i = 0; i < 250; i++)
        log_write(&site, LOG_PROCESS, none);
    return count_of(end_capture(), '\n');
}

static void what_repeats_is_sampled(void **state)
{
    (void)state;
    log_init(LOG_INFO, LOG_CONSOLE);
    begin_capture();
    for (int i = 0; i < 250; i++) {
        log_info(log_component("exporter a"), "again and again", LOG_U64("i", i));
        if (i < 10) /* counted separately */
            log_info(log_component("exporter b"), "again and again", LOG_U64("i", i));
        if (i < 20)
            log_each_warn(LOG_PROCESS, "not sampled");
    }
    const char *text = end_capture();
    /* a: the first 10, the 110th, the 210th */
    assert_int_equal(count_of(text, '\n'), 10 + 10 + 2 + 20);
    assert_non_null(strstr(text, "\"i\": 9}"));
    assert_null(strstr(text, "\"i\": 10}"));
    assert_non_null(strstr(text, "\"i\": 109}"));
    assert_non_null(strstr(text, "\"i\": 209}"));
}

static void sampling_can_be_set(void **state)
{
    (void)state;
    const uint64_t hour = UINT64_C(3600000000000);
    assert_int_equal(lines_of(&(struct log_sampling){false, 1, 1000, hour}, "off"), 250);
    assert_int_equal(lines_of(&(struct log_sampling){true, 5, 100, hour}, "5 and 2"), 7);
    assert_int_equal(lines_of(&(struct log_sampling){true, 5, 0, hour}, "5 and none"), 5);
    assert_int_equal(lines_of(&(struct log_sampling){true, 0, 0, hour}, "none"), 0);
    assert_int_equal(lines_of(&(struct log_sampling){true, 1, 0, 0}, "every tick is new"), 250);
}

/* ---- outputs ---- */

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t size = fread(captured, 1, sizeof captured - 1, file);
    captured[size] = '\0';
    fclose(file);
    return captured;
}

static void files_are_appended_to_and_opened_again(void **state)
{
    (void)state;
    char folder[] = "/tmp/test_log.XXXXXX", one[64], other[64], url[80], renamed[64];
    assert_non_null(mkdtemp(folder));
    snprintf(one, sizeof one, "%s/one", folder);
    snprintf(other, sizeof other, "%s/other", folder);
    snprintf(renamed, sizeof renamed, "%s/renamed", folder);
    snprintf(url, sizeof url, "file://%s", other);
    const char *const paths[] = {one, url};
    struct log_options options = options_of(LOG_CONSOLE);
    options.initial_count = options.resource_count = 0;
    options.output_paths = paths;
    options.output_count = 2;
    open_with(&options);
    log_info(LOG_PROCESS, "first");
    open_with(&options);
    log_info(LOG_PROCESS, "second");
    rename(one, renamed);
    log_info(LOG_PROCESS, "third");
    mkdir(one, 0700);
    struct error err;
    assert_false(log_reopen(&err));
    assert_non_null(strstr(err.text, one));
    rmdir(one);
    assert_true(log_reopen(&err));
    log_info(LOG_PROCESS, "fourth");
    log_close();
    assert_string_equal(read_file(renamed),
                        NOON "\tinfo\tfirst\n" NOON "\tinfo\tsecond\n" NOON "\tinfo\tthird\n");
    assert_string_equal(read_file(one), NOON "\tinfo\tfourth\n");
    assert_int_equal(count_of(read_file(other), '\n'), 4);
    unlink(one);
    unlink(other);
    unlink(renamed);
    rmdir(folder);
}

static void a_file_that_cannot_be_opened_is_an_error(void **state)
{
    (void)state;
    static const char *const nowhere[] = {"stderr", "/nonexistent/profcol.log"};
    struct log_options options = options_of(LOG_JSON);
    struct error err;
    log_init(LOG_WARN, LOG_CONSOLE);
    options.output_paths = nowhere;
    options.output_count = 2;
    assert_false(log_open(&options, &err));
    assert_string_equal(err.text,
                        "cannot open the log /nonexistent/profcol.log: No such file or directory");
    options = options_of(LOG_JSON);
    options.error_output_paths = nowhere;
    options.error_output_count = 2;
    assert_false(log_open(&options, &err));
    assert_false(log_enabled(LOG_INFO)); /* nothing has changed */
}

static void a_line_that_cannot_be_written_is_reported(void **state)
{
    (void)state;
    static const char *const full[] = {"/dev/full"};
    struct log_options options = options_of(LOG_CONSOLE);
    options.initial_count = options.resource_count = 0;
    options.output_paths = full;
    open_with(&options);
    begin_capture();
    log_info(LOG_PROCESS, "one");
    log_info(LOG_PROCESS, "two"); /* less than 10 s later */
    assert_string_equal(end_capture(),
                        NOON "\terror\tCannot write the log\t{\"path\": \"/dev/full\", \"error\": "
                             "\"No space left on device\", \"dropped_lines\": 1}\n");
}

static void paths_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        bool fine;
    } cases[] = {
        {"stderr", true}, {"stdout", true},         {"log/x.log", true},   {"file:///x", true},
        {"", false},      {"file://host/x", false}, {"http://x/y", false}, {"lumberjack://", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(!log_path_problem(cases[i].path), cases[i].fine);
}

/* ---- threads ---- */

static void *log_from_a_thread(void *context)
{
    for (int i = 0; i < 200; i++)
        log_each_warn(log_component(context), "line", LOG_U64("i", i));
    return NULL;
}

/* Returns how many lines the file has, which all begin and end like this. */
static size_t count_whole_lines(const char *path, const char *begin, const char *end)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t count = 0, room = 0;
    char *line = NULL;
    for (ssize_t size; (size = getline(&line, &room, file)) > 0; count++) {
        assert_int_equal(strncmp(line, begin, strlen(begin)), 0);
        assert_true((size_t)size > strlen(begin) + strlen(end));
        assert_string_equal(line + size - strlen(end), end);
    }
    free(line);
    fclose(file);
    return count;
}

/* Each line is in one of the files, and whole in its encoding. */
static void a_setup_is_exchanged_while_threads_log(void **state)
{
    (void)state;
    char folder[] = "/tmp/test_log_XXXXXX", paths[2][64];
    assert_non_null(mkdtemp(folder));
    pthread_t threads[2];
    static char names[2][2] = {"a", "b"};
    for (int i = 0; i < 2; i++)
        snprintf(paths[i], sizeof paths[i], "%s/%d", folder, i);
    for (int round = 0; round < 20; round++) {
        const char *const path[] = {paths[round % 2]};
        struct log_options options = options_of(round % 2 ? LOG_JSON : LOG_CONSOLE);
        options.output_paths = path;
        open_with(&options);
        for (int i = 0; i < 2 && round == 0; i++)
            pthread_create(&threads[i], NULL, log_from_a_thread, names[i]);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    log_close();
    size_t console = count_whole_lines(paths[0], NOON "\twarn\tline\t{\"", "}\n");
    size_t json = count_whole_lines(paths[1], "{\"level\":\"warn\",\"ts\":\"" NOON, "}\n");
    assert_int_equal(console + json, 400);
    for (int i = 0; i < 2; i++)
        unlink(paths[i]);
    rmdir(folder);
}

static void a_setup_that_is_not_used_changes_nothing(void **state)
{
    (void)state;
    struct log_options options = options_of(LOG_JSON);
    struct error err;
    log_init(LOG_WARN, LOG_CONSOLE);
    options.level = LOG_DEBUG;
    struct log_setup *made = log_setup_new(&options, &err);
    assert_non_null(made);
    assert_false(log_enabled(LOG_INFO));
    log_setup_free(made);
    log_setup_free(NULL);
    made = log_setup_new(&options, &err);
    log_use(made);
    assert_true(log_enabled(LOG_DEBUG));
    log_close();
    assert_false(log_enabled(LOG_DEBUG));
}

static void lines_of_threads_do_not_mix(void **state)
{
    (void)state;
    log_init(LOG_INFO, LOG_JSON);
    begin_capture();
    pthread_t threads[2];
    static char names[2][2] = {"a", "b"};
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, log_from_a_thread, names[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    char *text = strdup(end_capture());
    char *rest = NULL;
    int lines = 0;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        json_t *record = json_loads(line, 0, NULL);
        assert_non_null(record);
        json_decref(record);
        lines++;
    }
    assert_int_equal(lines, 400);
    free(text);
}

/* ---- the last ones ---- */

static void the_last_warnings_are_kept(void **state)
{
    (void)state;
    static struct log_record records[LOG_RECENT_MAX];
    char long_text[2000];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    log_init(LOG_INFO, LOG_JSON);
    begin_capture();
    for (int i = 0; i < LOG_RECENT_MAX + 5; i++)
        if (i % 2)
            log_each_warn(log_component("exporter a"), "message", LOG_U64("n", i));
        else
            log_each_error(log_component("exporter a"), "message", LOG_U64("n", i),
                           LOG_TEXT("error", "x \"y\""));
    log_info(LOG_PROCESS, "not kept");
    log_each_error(LOG_PROCESS, "long", LOG_TEXT("error", long_text));
    end_capture();
    assert_int_equal(log_recent(records), LOG_RECENT_MAX);
    assert_int_equal(strlen(records[0].message), sizeof records[0].message - 1);
    assert_string_equal(records[0].component, "");
    assert_string_equal(records[1].message, "message (n: 104, error: x \"y\")");
    assert_string_equal(records[1].component, "exporter a");
    assert_string_equal(log_level_name(records[1].level), "error");
    assert_string_equal(log_level_name(records[2].level), "warn");
    assert_string_equal(records[LOG_RECENT_MAX - 1].message, "message (n: 6, error: x \"y\")");
    assert_true(records[0].wall_ns > 0);
}

/* Warns with a text that has a € after so many bytes of the kept message. */
static void warn_with_euro_at(struct log_origin origin, size_t size)
{
    char text[2000];
    size_t blanks = size - strlen("long (error: ");
    assert_true(blanks < sizeof text - 10);
    snprintf(text, sizeof text, "%*s%s", (int)blanks, "", "€ and more");
    log_each_warn(origin, "long", LOG_TEXT("error", text));
}

static void a_kept_warning_ends_with_a_whole_character(void **state)
{
    (void)state;
    static struct log_record records[LOG_RECENT_MAX];
    enum {
        MESSAGE_MAX = sizeof records->message - 1,
        COMPONENT_MAX = sizeof records->component - 1
    };
    char component[COMPONENT_MAX + 10];
    snprintf(component, sizeof component, "%*s%s", COMPONENT_MAX - 1, "", "é");
    begin_capture();
    warn_with_euro_at(log_component("exporter otlp/é"), MESSAGE_MAX - 2);
    warn_with_euro_at(LOG_PROCESS, MESSAGE_MAX - 3);
    log_each_warn(log_component(component), "short");
    end_capture();
    log_recent(records);
    assert_int_equal(strlen(records[0].component), COMPONENT_MAX - 1);
    assert_int_equal(strlen(records[1].message), MESSAGE_MAX); /* the character just fits */
    assert_int_equal(strlen(records[2].message), MESSAGE_MAX - 2);
    assert_string_equal(records[2].component, "exporter otlp/é");
}

static int end(void **state)
{
    (void)state;
    log_close();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(console_is_the_collectors),
        cmocka_unit_test(json_is_the_collectors),
        cmocka_unit_test(a_line_may_have_nothing_but_its_message),
        cmocka_unit_test(the_caller_is_the_last_folder_and_the_file),
        cmocka_unit_test(no_memory_is_a_line_too),
        cmocka_unit_test(levels_are_obeyed),
        cmocka_unit_test(no_line_can_be_forged),
        cmocka_unit_test(json_lines_parse),
        cmocka_unit_test(a_long_value_is_cut_between_characters),
        cmocka_unit_test(what_repeats_is_sampled),
        cmocka_unit_test(sampling_can_be_set),
        cmocka_unit_test(files_are_appended_to_and_opened_again),
        cmocka_unit_test(a_file_that_cannot_be_opened_is_an_error),
        cmocka_unit_test(a_line_that_cannot_be_written_is_reported),
        cmocka_unit_test(paths_are_checked),
        cmocka_unit_test(a_setup_is_exchanged_while_threads_log),
        cmocka_unit_test(a_setup_that_is_not_used_changes_nothing),
        cmocka_unit_test(lines_of_threads_do_not_mix),
        cmocka_unit_test(the_last_warnings_are_kept),
        cmocka_unit_test(a_kept_warning_ends_with_a_whole_character),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
