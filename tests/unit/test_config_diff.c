/* What a reload does, for pairs of configurations. */
#include "tests/unit/config_fixture.h"

#include "config/diff.h"
#include "tests/unit/expect_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- settings ---- */

static const char *const fields[][3] = {
    {"", "", NULL},
    {"", "count: 5", NULL}, /* the default, written out */
    {"count: 5", "count: 6", "count"},
    {"flag: false", "", "flag"},
    {"offset: 1", "offset: 2", "offset"},
    {"ratio: 0.25", "ratio: 0.5", "ratio"},
    {"timeout: 1s", "timeout: 1000ms", NULL},
    {"timeout: 1s", "timeout: 2s", "timeout"},
    {"text: a", "", "text"},
    {"text: a", "text: b", "text"},
    {"text: a", "text: a", NULL},
    {"secret: a", "secret: b", "secret"},
    {"level: basic", "level: Basic", NULL},
    {"level: basic", "level: none", "level"},
    {"keys: [a]", "keys: [a, b]", "keys"},
    {"keys: [a, b]", "keys: [b, a]", "keys"},
    {"headers: {a: b}", "headers: {a: c}", "headers"},
    {"inner: {number: 4}", "inner: {number: 5}", "inner::number"},
    {"off: {number: 4}", "off: {number: 5}", "off::number"},
    {"", "off: {number: 3}", "off"},
    {"on: {enabled: false, number: 4}", "on: {enabled: false, number: 5}", NULL},
    {"squashed_number: 1", "squashed_number: 2", "squashed_number"},
    {"rules: [{key: a}]", "rules: [{key: a}, {key: b}]", "rules"},
    {"rules: [{key: a}]", "rules: [{key: a, action: delete}]", "rules[0]::action"},
    {"counters: {a: {}}", "counters: {a: {}}", NULL},
    {"counters: {a: {}}", "counters: {b: {}}", "counters"},
    {"counters: {a: {}}", "counters: {a: {step: 2}}", "counters::a::step"},
    {"counters: {a: {}}", "counters: {a: {}, b: {}}", "counters"},
    {"raw: {a: [1, {b: c}]}", "raw: {a: [1, {b: c}]}", NULL},
    {"raw: {a: [1, {b: c}]}", "raw: {a: [1, {b: d}]}", "raw"},
    {"raw: 1", "raw: \"1\"", "raw"},
};

static void differing_fields(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        struct arena arena = {0};
        struct text report = {0};
        struct config *before = fixture_load_kinds(fields[i][0], &report);
        struct config *after = fixture_load_kinds(fields[i][1], &report);
        assert_non_null(before);
        assert_non_null(after);
        const char *where = config_fields_differ(&arena, kinds_fields, true, fixture_kinds(before),
                                                 fixture_kinds(after));
        expect_text_of(fields[i][1], where ? where : "equal",
                       fields[i][2] ? fields[i][2] : "equal");
        arena_deinit(&arena);
        config_free(before);
        config_free(after);
        text_deinit(&report);
    }
}

/* All of them are named, up to a limit. */
static void several_fields_differ(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct text report = {0};
    struct config *before = fixture_load_kinds("raw: 1", &report);
    struct config *after = fixture_load_kinds("raw: 2, counters: {a: {step: 2}}", &report);
    assert_non_null(before);
    assert_non_null(after);
    const char *said = config_fields_difference(&arena, kinds_fields, true, fixture_kinds(before),
                                                fixture_kinds(after));
    assert_non_null(said);
    assert_non_null(strstr(said, "raw"));
    assert_non_null(strstr(said, "counters"));
    assert_string_equal(said + strlen(said) - strlen(" differ"), " differ");
    assert_null(config_fields_difference(&arena, kinds_fields, true, fixture_kinds(after),
                                         fixture_kinds(after)));
    arena_deinit(&arena);
    config_free(before);
    config_free(after);
    text_deinit(&report);
}

/* ---- configurations ---- */

#define SIMPLE "traces: {receivers: [otlp], processors: [kinds], exporters: [nop]}"

/* Returns whether the line for this component or pipeline is in the output. */
static void expect_line(const char *printed, const char *line)
{
    const char *at = strstr(printed, line);
    bool is_line = at && (at == printed || at[-1] == '\n') && at[strlen(line)] == '\n';
    if (!is_line)
        fail_msg("no line \"%s\" in\n%s", line, printed);
}

static char *with(const char *settings, const char *telemetry, const char *pipelines)
{
    struct text yaml = {0};
    text_printf(&yaml,
                "receivers: {otlp: , otlp/b: }\n"
                "processors: {kinds: {%s}, kinds/b: , kinds/c: }\n"
                "exporters: {nop: , debug: }\n"
                "connectors: {forward: }\n"
                "extensions: {health_check: }\n"
                "service: {%spipelines: {%s}}\n",
                settings, telemetry, pipelines);
    return yaml.data;
}

static char *diff_of(char *before, char *after)
{
    struct arena arena = {0};
    struct text report = {0}, out = {0};
    struct config *one = fixture_load(before, &report), *other = fixture_load(after, &report);
    expect_text(text_string(&report), "");
    assert_true(one && other);
    config_diff_print(config_diff_new(&arena, one, other), &out);
    arena_deinit(&arena);
    config_free(one);
    config_free(other);
    text_deinit(&report);
    free(before);
    free(after);
    return out.data;
}

static void what_a_reload_does(void **state)
{
    (void)state;
    char *printed = diff_of(with("count: 6", "", SIMPLE), with("count: 6", "", SIMPLE));
    expect_text(printed, "A reload changes nothing.\n");
    free(printed);
    printed = diff_of(with("count: 6", "", SIMPLE),
                      with("count: 7",
                           "extensions: [health_check], telemetry: {logs: {level: "
                           "debug}}, ",
                           SIMPLE));
    expect_text(
        printed,
        "receiver otlp: unchanged, goes on\n"
        "processor kinds: changed, a new one starts and the old one drains (count differs)\n"
        "exporter nop: unchanged, goes on\n"
        "extension health_check: new, starts\n"
        "pipeline traces: unchanged\n"
        "service::telemetry: changed, goes on with the new settings (logs::level differs)\n");
    free(printed);
}

#define LEVEL(NAME) "telemetry: {metrics: {level: " NAME "}}, "
#define LEVEL_CHANGED                                                                              \
    "service::telemetry: changed, goes on with the new settings (metrics::level differs)"
#define LEVEL_LATER                                                                                \
    "service::telemetry::metrics::level: takes full effect when profcol is restarted (components " \
    "that go on do not count what the level detailed adds)"

static void the_level_detailed_needs_a_restart(void **state)
{
    (void)state;
    char *printed = diff_of(with("", LEVEL("basic"), SIMPLE), with("", LEVEL("normal"), SIMPLE));
    expect_line(printed, LEVEL_CHANGED);
    assert_null(strstr(printed, "restarted"));
    free(printed);
    printed = diff_of(with("", LEVEL("normal"), SIMPLE), with("", LEVEL("detailed"), SIMPLE));
    expect_line(printed, LEVEL_CHANGED);
    expect_line(printed, LEVEL_LATER);
    free(printed);
    printed = diff_of(with("", LEVEL("detailed"), SIMPLE), with("", LEVEL("none"), SIMPLE));
    assert_null(strstr(printed, "restarted"));
    free(printed);
}

static void live_settings(void **state)
{
    (void)state;
    char *printed = diff_of(with("ratio: 0.25", "", SIMPLE), with("ratio: 0.75", "", SIMPLE));
    expect_line(printed, "processor kinds: changed, goes on with the new settings (ratio differs)");
    free(printed);
    printed = diff_of(with("ratio: 0.25", "", SIMPLE), with("ratio: 0.75, count: 7", "", SIMPLE));
    expect_line(
        printed,
        "processor kinds: changed, a new one starts and the old one drains (count differs)");
    free(printed);
}

#define PROCESSORS(LIST) "traces: {receivers: [otlp], processors: [" LIST "], exporters: [nop]}"
#define KEPT(ID) "processor " ID ": unchanged, goes on"
#define MOVED(ID)                                                                                  \
    "processor " ID ": changed, a new one starts and the old one drains (the order of the "        \
    "processors differs)"
#define ELSEWHERE(ID)                                                                              \
    "processor " ID ": changed, a new one starts and the old one drains (it is in other "          \
    "pipelines)"

static const char *const pipelines[][3] = {
    {PROCESSORS("kinds"), PROCESSORS("kinds, kinds/b"), KEPT("kinds")},
    {PROCESSORS("kinds"), PROCESSORS("kinds/b, kinds"), KEPT("kinds")},
    {PROCESSORS("kinds, kinds/b"), PROCESSORS("kinds"), KEPT("kinds")},
    {PROCESSORS("kinds, kinds/b"), PROCESSORS("kinds"), "processor kinds/b: gone, drains"},
    {PROCESSORS("kinds, kinds/b"), PROCESSORS("kinds/b, kinds"), MOVED("kinds")},
    {PROCESSORS("kinds, kinds/b"), PROCESSORS("kinds/b, kinds"), MOVED("kinds/b")},
    {PROCESSORS("kinds, kinds/b, kinds/c"), PROCESSORS("kinds, kinds/c, kinds/b"), KEPT("kinds")},
    /* what kinds holds has not passed kinds/c, and would not pass kinds/b any more */
    {PROCESSORS("kinds, kinds/b"), PROCESSORS("kinds/c, kinds"), MOVED("kinds")},
    {PROCESSORS("kinds, kinds/b"), PROCESSORS("kinds, kinds/c"), KEPT("kinds")},
    {PROCESSORS("kinds"),
     PROCESSORS("kinds") ", traces/b: {receivers: [otlp/b], processors: [kinds], exporters: [nop]}",
     ELSEWHERE("kinds")},
    {PROCESSORS("kinds"),
     PROCESSORS("") ", traces/b: {receivers: [otlp/b], processors: [kinds], "
                    "exporters: [nop]}",
     ELSEWHERE("kinds")},
    {PROCESSORS("kinds"), PROCESSORS("kinds") ", profiles: {receivers: [otlp], exporters: [nop]}",
     "exporter nop: changed, a new one starts and the old one drains (it gets other signals)"},
    {PROCESSORS("kinds"), PROCESSORS("kinds") ", profiles: {receivers: [otlp], exporters: [debug]}",
     "receiver otlp: unchanged, goes on"},
    {PROCESSORS("kinds"), PROCESSORS("kinds") ", profiles: {receivers: [otlp], exporters: [debug]}",
     "pipeline profiles: new"},
    {PROCESSORS("kinds") ", profiles: {receivers: [otlp], exporters: [debug]}", PROCESSORS("kinds"),
     "pipeline profiles: gone"},
    {PROCESSORS("kinds"), PROCESSORS("kinds, kinds/b"), "pipeline traces: changed"},
    {"traces: {receivers: [otlp], exporters: [forward]}, "
     "traces/b: {receivers: [forward], exporters: [nop]}",
     "traces: {receivers: [otlp], exporters: [forward]}, "
     "traces/b: {receivers: [forward], exporters: [debug]}",
     "connector forward: unchanged, goes on"},
};

static void changed_pipelines(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof pipelines / sizeof pipelines[0]; i++) {
        char *printed = diff_of(with("", "", pipelines[i][0]), with("", "", pipelines[i][1]));
        expect_line(printed, pipelines[i][2]);
        free(printed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(differing_fields),
        cmocka_unit_test(several_fields_differ),
        cmocka_unit_test(what_a_reload_does),
        cmocka_unit_test(live_settings),
        cmocka_unit_test(the_level_detailed_needs_a_restart),
        cmocka_unit_test(changed_pipelines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
