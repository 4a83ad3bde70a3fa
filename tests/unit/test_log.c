#include "core/base/clock.h"
#include "core/base/hash.h"
#include "core/base/log.h"
#include "core/base/worker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static void console_looks_like_the_collectors(void **state)
{
    (void)state;
    log_init(LOG_INFO, LOG_CONSOLE);
    begin_capture();
    log_info(NULL, "Everything is %s.", "ready");
    log_warn("exporter otlp/x", "slow");
    log_error("odd", "no kind");
    assert_string_equal(end_capture(),
                        NOON "\tinfo\tEverything is ready.\n" NOON
                             "\twarn\tslow\t{\"otelcol.component.id\":\"otlp/x\","
                             "\"otelcol.component.kind\":\"exporter\"}\n" NOON
                             "\terror\tno kind\t{\"otelcol.component.id\":\"odd\"}\n");
}

static void levels_are_obeyed(void **state)
{
    (void)state;
    for (int level = LOG_DEBUG; level <= LOG_ERROR; level++) {
        log_init((enum log_level)level, LOG_CONSOLE);
        begin_capture();
        log_debug(NULL, "said at 0");
        log_info(NULL, "said at 1");
        log_warn(NULL, "said at 2");
        log_error(NULL, "said at 3");
        const char *text = end_capture();
        assert_int_equal(count_of(text, '\n'), 4 - level);
        for (int said = 0; said < 4; said++) {
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

/* The message starts after the second tab, so a line must not have a third one, or control
 * characters for a terminal. */
static void no_line_can_be_forged(void **state)
{
    (void)state;
    log_init(LOG_INFO, LOG_CONSOLE);
    for (size_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++) {
        begin_capture();
        log_info(NULL, "%s", hostile[i]);
        log_info(hostile[i], "x");
        const char *text = end_capture();
        assert_int_equal(count_of(text, '\n'), 2);
        assert_int_equal(count_of(text, '\t'), 2 + 3);
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
        log_error("receiver otlp", "%s", hostile[i]);
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
            assert_string_equal(member(record, "msg"), hostile[i]);
        assert_int_equal(json_object_size(record), 5);
        json_decref(record);
    }
}

static void what_repeats_is_sampled(void **state)
{
    (void)state;
    log_init(LOG_INFO, LOG_CONSOLE);
    begin_capture();
    for (int i = 0; i < 250; i++) {
        log_info("exporter a", "again and again %d", i);
        if (i < 10)
            log_info("exporter b", "again and again %d", i); /* counted separately */
    }
    const char *text = end_capture();
    assert_int_equal(count_of(text, '\n'), 10 + 10 + 2); /* a: the first 10, the 110th, the 210th */
    assert_non_null(strstr(text, "again and again 9\t"));
    assert_null(strstr(text, "again and again 10\t"));
    assert_non_null(strstr(text, "again and again 109\t"));
    assert_non_null(strstr(text, "again and again 209\t"));
}

static void a_long_message_is_one_line(void **state)
{
    (void)state;
    log_init(LOG_INFO, LOG_CONSOLE);
    begin_capture();
    log_info(NULL, "%05000d", 7);
    const char *text = end_capture();
    assert_int_equal(strlen(text), strlen(NOON "\tinfo\t\n") + 5000);
}

static void *log_from_a_thread(void *context)
{
    const char *component = context;
    for (int i = 0; i < 200; i++) {
        char format[40]; /* a different text each time, so that none is sampled */
        snprintf(format, sizeof format, "line %d of %s", i, component);
        log_write(LOG_INFO, component, format);
    }
    return NULL;
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

static void the_last_warnings_are_kept(void **state)
{
    (void)state;
    static struct log_record records[LOG_RECENT_MAX];
    char long_text[2000];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    begin_capture();
    for (int i = 0; i < LOG_RECENT_MAX + 5; i++)
        log_write_all(i % 2 ? LOG_WARN : LOG_ERROR, "exporter a", "message %d", i);
    log_write_all(LOG_INFO, NULL, "not kept");
    log_write_all(LOG_ERROR, NULL, "%s", long_text);
    end_capture();
    assert_int_equal(log_recent(records), LOG_RECENT_MAX);
    assert_int_equal(strlen(records[0].message), sizeof records[0].message - 1);
    assert_string_equal(records[0].component, "");
    assert_string_equal(records[1].message, "message 104");
    assert_string_equal(records[1].component, "exporter a");
    assert_string_equal(log_level_name(records[1].level), "error");
    assert_string_equal(log_level_name(records[2].level), "warn");
    assert_string_equal(records[LOG_RECENT_MAX - 1].message, "message 6");
    assert_true(records[0].wall_ns > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(console_looks_like_the_collectors),
        cmocka_unit_test(levels_are_obeyed),
        cmocka_unit_test(no_line_can_be_forged),
        cmocka_unit_test(json_lines_parse),
        cmocka_unit_test(what_repeats_is_sampled),
        cmocka_unit_test(a_long_message_is_one_line),
        cmocka_unit_test(lines_of_threads_do_not_mix),
        cmocka_unit_test(the_last_warnings_are_kept),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
