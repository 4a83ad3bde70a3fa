#include "config_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char base[] =
    "receivers: {otlp: }\n"
    "processors: {kinds: {count: 1, offset: 2, keys: [a, b], inner: {number: 4}}}\n"
    "exporters: {nop: }\n"
    "service:\n"
    "  pipelines:\n"
    "    traces: {receivers: [otlp], processors: [kinds], exporters: [nop]}\n";

static const struct fixture_variable files[] = {
    {"base.yaml", base},
    {"more.yaml", "processors: {kinds: {count: 10, keys: [c], inner: {text: t}}}\n"},
    {"empty.yaml", ""},
    {"wipe.yaml", "processors:\n"},
    {"bad.yaml", "processors: {kinds: {cuont: 1}}\n"},
    {"syntax.yaml", "a: [\n"},
    {"list.yaml", "[]\n"},
    {"scalar.yaml", "processors: {kinds: {count: '${env:UNSET}'}}\n"},
    {NULL, NULL},
};

static const struct fixture_variable variables[] = {
    {"CONFIG", "processors: {kinds: {count: 11}}"},
    {NULL, NULL},
};

static int set_up(void **state)
{
    (void)state;
    fixture_files = files;
    fixture_environment = variables;
    return 0;
}

static struct config *load(const char *const *uris, struct text *report)
{
    size_t count = 0;
    while (uris[count])
        count++;
    return config_load_from(&fixture_inputs, fixture_types, uris, count, (struct config_options){0},
                            report);
}

static void later_maps_add_and_later_lists_replace(void **state)
{
    (void)state;
    const char *const uris[] = {"base.yaml", "file:more.yaml", "empty.yaml", NULL};
    struct text report = {0};
    struct config *config = load(uris, &report);
    assert_string_equal(text_string(&report), "");
    const struct kinds_settings *kinds = fixture_kinds(config);
    assert_int_equal(kinds->count, 10);
    assert_int_equal(kinds->offset, 2);
    assert_int_equal(kinds->keys.count, 1);
    assert_string_equal(kinds->keys.items[0], "c");
    assert_int_equal(kinds->inner.number, 4);
    assert_string_equal(kinds->inner.text, "t");
    config_free(config);
    text_deinit(&report);
}

static void sources_can_be_variables_and_paths(void **state)
{
    (void)state;
    const char *const uris[] = {
        "base.yaml", "env:CONFIG", "yaml:processors::kinds::offset: 5",
        "yaml:processors::kinds::inner::number: 6\nprocessors::kinds::inner::text: z", NULL};
    struct text report = {0};
    struct config *config = load(uris, &report);
    assert_string_equal(text_string(&report), "");
    const struct kinds_settings *kinds = fixture_kinds(config);
    assert_int_equal(kinds->count, 11);
    assert_int_equal(kinds->offset, 5);
    assert_int_equal(kinds->inner.number, 6);
    assert_string_equal(kinds->inner.text, "z");
    config_free(config);
    text_deinit(&report);
}

/* A replaced value is not expanded. */
static void an_overwritten_placeholder_is_not_told(void **state)
{
    (void)state;
    const char *const uris[] = {"base.yaml", "scalar.yaml", "more.yaml", NULL};
    struct text report = {0};
    struct config *config = load(uris, &report);
    assert_string_equal(text_string(&report), "");
    assert_non_null(config);
    config_free(config);
    text_deinit(&report);
}

static const struct {
    const char *uris[4];
    const char *expected;
} cases[] = {
    {{"base.yaml", "bad.yaml"},
     "bad.yaml:1:22: error: processors::kinds: unknown key \"cuont\", did you mean \"count\"?\n"},
    {{"base.yaml", "wipe.yaml"},
     "base.yaml:6:46: error: service::pipelines::traces: references processor \"kinds\" which is "
     "not configured; it needs an entry under processors\n"},
    {{"syntax.yaml", "list.yaml"},
     "syntax.yaml:2:1: error: not valid YAML: did not find expected node content\n"
     "list.yaml:1:1: error: the configuration must be a map, got a list\n"},
    {{"base.yaml", "yaml:processors::kinds::cuont: 5"},
     "yaml:processors::kinds::cuont:1:1: error: processors::kinds: unknown key \"cuont\", did you "
     "mean \"count\"?\n"},
    {{"base.yaml", "yaml:{processors: {kinds: {secrte: hunter2}}}"},
     "yaml:1:23: error: processors::kinds: unknown key \"secrte\", did you mean \"secret\"?\n"},
    {{"missing.yaml"}, "missing.yaml: error: unable to read the file \"missing.yaml\"\n"},
    {{"env:NOT_SET"}, "env:NOT_SET: error: the environment variable \"NOT_SET\" is not set\n"},
    {{"http://example/config"},
     "--config: error: profcol reads its configuration from files and the environment, not from "
     "the network\n"},
    {{"empty.yaml"}, "empty.yaml: error: empty configuration file\n"},
    {{NULL}, "error: empty configuration file\n"},
};

static void mistakes_name_their_source(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct text report = {0};
        assert_null(load(cases[i].uris, &report));
        assert_string_equal(text_string(&report), cases[i].expected);
        text_deinit(&report);
    }
}

/* Uses the files and environment variables of the process. */
static void real_files_and_variables_are_read(void **state)
{
    (void)state;
    char path[] = "/tmp/test_config_merge.XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "w");
    assert_non_null(file);
    fputs(base, file);
    fclose(file);
    setenv("TEST_CONFIG_MERGE", "processors: {kinds: {count: 3}}", 1);
    const char *const uris[] = {path, "env:TEST_CONFIG_MERGE"};
    struct text report = {0};
    struct config *config =
        config_load(fixture_types, uris, 2, (struct config_options){0}, &report);
    assert_string_equal(text_string(&report), "");
    assert_int_equal(fixture_kinds(config)->count, 3);
    config_free(config);

    assert_int_equal(truncate(path, (1 << 20) + 1), 0);
    assert_null(config_load(fixture_types, uris, 1, (struct config_options){0}, &report));
    assert_non_null(strstr(report.data, "is larger than 1048576 bytes\n"));
    unlink(path);
    text_clear(&report);
    assert_null(config_load(fixture_types, uris, 1, (struct config_options){0}, &report));
    assert_non_null(strstr(report.data, "No such file or directory\n"));
    text_deinit(&report);

    const char *const directory[] = {"/tmp"};
    assert_null(config_load(fixture_types, directory, 1, (struct config_options){0}, &report));
    assert_string_equal(text_string(&report),
                        "/tmp: error: unable to read the file \"/tmp\": Is a directory\n");
    text_deinit(&report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(later_maps_add_and_later_lists_replace),
        cmocka_unit_test(sources_can_be_variables_and_paths),
        cmocka_unit_test(an_overwritten_placeholder_is_not_told),
        cmocka_unit_test(mistakes_name_their_source),
        cmocka_unit_test(real_files_and_variables_are_read),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
