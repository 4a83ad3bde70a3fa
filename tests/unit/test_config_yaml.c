#include "config_fixture.h"

#include "config/loading.h"

#include "core/base/memory.h"

#include <string.h>
#include <time.h>

/* ---- valid YAML ---- */

static const char *const raw_cases[][2] = {
    /* the value of `raw`, and what print-config prints after " raw:" */
    {"1", " 1\n"},
    {"'1'", " \"1\"\n"},
    {"!!str 1", " \"1\"\n"},
    {"! 1", " \"1\"\n"},
    {"!!int 1", " 1\n"},
    {"\"a\\u20acb\"", " \"a\xe2\x82\xac"
                      "b\"\n"},
    {"'tab\there'", " \"tab\\x09here\"\n"},
    {"[a, [b, {c: d}]]", "\n      - a\n      -\n        - b\n        -\n          c: d\n"},
    {"{}", " {}\n"},
    {"[]", " []\n"},
    {"[~, null]", "\n      - null\n      - null\n"},
    {"{a: &x {p: 1, q: 2}, b: *x}",
     "\n      a:\n        p: 1\n        q: 2\n      b:\n        p: 1\n        q: 2\n"},
    {"{a: &x {p: 1, q: 2}, b: {<<: *x, q: 3}}",
     "\n      a:\n        p: 1\n        q: 2\n      b:\n        q: 3\n        p: 1\n"},
    {"{a: {q: 3, <<: {p: 1, q: 2}}}", "\n      a:\n        q: 3\n        p: 1\n"},
    {"{a: {<<: [{p: 1}, {p: 2, q: 2}]}}", "\n      a:\n        p: 1\n        q: 2\n"},
    {"{a: {'<<': 1}}", "\n      a:\n        \"<<\": 1\n"},
    {"[&x 1, *x, &x 2, *x]", "\n      - 1\n      - 1\n      - 2\n      - 2\n"},
    {"a $$ b", " \"a $$ b\"\n"},
    {"{1: a, true: b, '': c}", "\n      \"1\": a\n      \"true\": b\n      \"\": c\n"},
};

static void yaml_becomes_the_same_tree(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof raw_cases / sizeof raw_cases[0]; i++) {
        struct text body = {0};
        struct text report = {0};
        struct text printed = {0};
        text_printf(&body, "raw: %s", raw_cases[i][0]);
        struct config *config = fixture_load_kinds(text_string(&body), &report);
        assert_string_equal(text_string(&report), "");
        config_print(config, &printed);
        char *start = strstr(printed.data, "    raw:");
        assert_non_null(start);
        *strstr(start, "exporters:") = '\0';
        assert_string_equal(start + strlen("    raw:"), raw_cases[i][1]);
        config_free(config);
        text_deinit(&body);
        text_deinit(&report);
        text_deinit(&printed);
    }
}

/* ---- invalid YAML ---- */

static const char *const errors[][2] = {
    {"", "t.yaml: error: empty configuration file\n"},
    {"# nothing\n", "t.yaml: error: empty configuration file\n"},
    {"null\n", "t.yaml: error: empty configuration file\n"},
    {"[]\n", "t.yaml:1:1: error: the configuration must be a map, got a list\n"},
    {"just text\n", "t.yaml:1:1: error: the configuration must be a map, got text\n"},
    {"a:\n\tb: 2\n",
     "t.yaml:2:1: error: not valid YAML: tabs are not allowed; YAML is indented with spaces\n"},
    {"a:\n  b: 1\n c: 2\n", "t.yaml:3:2: error: not valid YAML: the indentation does not match the "
                            "lines above (while parsing a block mapping from line 1)\n"},
    {"a: b: c\n",
     "t.yaml:1:5: error: not valid YAML: \": \" is not allowed here; check the indentation, the "
     "colon on the line above, and the quotes around text that contains \": \"\n"},
    {"a: [1, 2\n",
     "t.yaml:2:1: error: not valid YAML: a comma or ] is missing; text that has commas, "
     "quotes or brackets in it goes in single quotes (while parsing a flow sequence "
     "from line 1)\n"},
    {"a: [set(b, \"c\")]\n",
     "t.yaml:1:15: error: not valid YAML: the text ended at the quote before this; text that has "
     "double quotes in it goes in single quotes\n"},
    {"a: 'b'c'\n", "t.yaml:1:7: error: not valid YAML: the text ended at the quote before this; in "
                   "single quotes, "
                   "a single quote is written ''\n"},
    {"a:\n  - \"set(b, \"c\")\"\n",
     "t.yaml:2:14: error: not valid YAML: the text ended at the quote before this; text that has "
     "double quotes in it goes in single quotes\n"},
    {"a: \"x\n", "t.yaml:2:1: error: not valid YAML: found unexpected end of stream (while "
                 "scanning a quoted scalar from line 1)\n"},
    {"a: 1\nb\nc: 2\n", "t.yaml:3:1: error: not valid YAML: this line or the one above it lacks a "
                        "colon with a space after it (while scanning a simple key from line 2)\n"},
    {"a: \xff\n", "t.yaml:1:4: error: not valid YAML: invalid leading UTF-8 octet\n"},
    {"a: 1\nb: 1\na: 2\nb: 3\n", "t.yaml:3:1: error: the key \"a\" is already given at line 1\n"
                                 "t.yaml:4:1: error: the key \"b\" is already given at line 2\n"},
    {"a: *b\n",
     "t.yaml:1:4: error: this alias has no anchor above it; quote text that starts with *\n"},
    {"a: &b [*b]\n", "t.yaml:1:8: error: this alias is inside its own anchor\n"},
    {"a: !secret x\n",
     "t.yaml:1:4: error: this YAML tag is not supported; quote text that starts with !\n"},
    {"a: !!binary x\n",
     "t.yaml:1:4: error: this YAML tag is not supported; quote text that starts with !\n"},
    {"a: {<<: 1}\n", "t.yaml:1:9: error: \"<<\" takes a map or a list of maps, not text\n"},
    {"a: {<<: [1]}\n", "t.yaml:1:10: error: \"<<\" takes a map or a list of maps, not text\n"},
    {"[a]: 1\n", "t.yaml:1:1: error: a key must be text, not a list\n"},
    {"? {a: b}\n: 1\n", "t.yaml:1:3: error: a key must be text, not a map\n"},
    {"a: 1\n---\nb: 1\n",
     "t.yaml:2:1: error: the configuration must be a single YAML document; this starts another\n"},
    {"a: \"x\\0y\"\n", "t.yaml:1:4: error: text cannot contain a NUL byte\n"},
};

static void mistakes_are_told_with_their_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        expect_report(errors[i][0], errors[i][1]);
}

static void a_control_character_in_a_key_is_escaped(void **state)
{
    (void)state;
    struct text report = {0};
    assert_null(fixture_load("\"a\\e[31m\\nb\": 1\n", &report));
    assert_non_null(strstr(report.data, "t.yaml:1:1: error: unknown key \"a\\x1b[31m\\nb\""));
    text_deinit(&report);
}

/* ---- limits ---- */

/* Repeats `piece` `count` times. Expects one error with the text, within a few seconds of CPU
 * time. */
static void expect_limit(const char *before, const char *piece, size_t count, const char *expected)
{
    struct text yaml = {0};
    struct text report = {0};
    text_append(&yaml, before);
    for (size_t i = 0; i < count; i++)
        text_append(&yaml, piece);
    clock_t start = clock();
    assert_null(fixture_load(text_string(&yaml), &report));
    assert_true(clock() - start < 4 * CLOCKS_PER_SEC); /* under sanitizers and a busy machine */
    if (!strstr(text_string(&report), expected))
        fail_msg("%s instead of %s", text_string(&report), expected);
    text_deinit(&yaml);
    text_deinit(&report);
}

static void hostile_files_are_refused_quickly(void **state)
{
    (void)state;
    expect_limit("a: ", "[", 100000, "t.yaml:1:67: error: nested more than 64 levels deep");
    expect_limit("a: ", "{a: ", 100000, "nested more than 64 levels deep");
    expect_limit("", "- ", 100000, "nested more than 64 levels deep");
    expect_limit("", "? ", 100000, "a key must be text");
    expect_limit("a: [", "1,", 200000, "the configuration has more than 100000 values");
    expect_limit("a: ", "1234567890", 200000, "t.yaml:1:1: error: larger than 1048576 bytes");
    expect_limit("a: &a 1\nb: [", "*a,", 101, "the configuration has more than 100 aliases");
    expect_limit("a: [", "&a 1,", 100000, "the configuration has more than 100000 values");
}

static void aliases_of_aliases_are_counted(void **state)
{
    (void)state;
    struct text yaml = {0};
    text_append(&yaml, "l0: &l0 [x, x, x, x, x, x, x, x, x, x]\n");
    for (int level = 1; level < 9; level++) {
        text_printf(&yaml, "l%d: &l%d [", level, level);
        for (int i = 0; i < 10; i++)
            text_printf(&yaml, "*l%d,", level - 1);
        text_append(&yaml, "]\n");
    }
    expect_limit(text_string(&yaml), "", 0, "the configuration has more than 100000 values");
    text_deinit(&yaml);
}

static void an_alias_cannot_go_deeper_than_the_limit(void **state)
{
    (void)state;
    struct text yaml = {0};
    text_append(&yaml, "a: &a ");
    for (int i = 0; i < 40; i++)
        text_append(&yaml, "[");
    for (int i = 0; i < 40; i++)
        text_append(&yaml, "]");
    text_append(&yaml, "\nb: ");
    for (int i = 0; i < 40; i++)
        text_append(&yaml, "[");
    text_append(&yaml, "*a");
    expect_limit(text_string(&yaml), "", 0, "nested more than 64 levels deep");
    text_deinit(&yaml);
}

static void many_errors_are_cut(void **state)
{
    (void)state;
    struct text yaml = {0};
    struct text report = {0};
    for (int i = 0; i < 5000; i++)
        text_printf(&yaml, "zzz%d: 1\n", i);
    assert_null(fixture_load(text_string(&yaml), &report));
    size_t lines = 0;
    for (const char *c = report.data; *c; c++)
        lines += *c == '\n';
    assert_int_equal(lines, CONFIG_MAX_MESSAGES + 1);
    /* The count includes the missing receiver, exporter and pipeline. */
    assert_non_null(strstr(report.data, "... and 4903 more\n"));
    text_deinit(&yaml);
    text_deinit(&report);
}

static void a_large_map_is_indexed(void **state)
{
    (void)state;
    struct text yaml = {0};
    struct text report = {0};
    text_append(&yaml, "raw: {");
    for (int i = 0; i < 20000; i++)
        text_printf(&yaml, "k%d: %d,", i, i);
    text_append(&yaml, "}");
    clock_t start = clock();
    struct config *config = fixture_load_kinds(text_string(&yaml), &report);
    assert_true(clock() - start < 4 * CLOCKS_PER_SEC);
    assert_non_null(config);
    const struct config_node *raw = fixture_kinds(config)->raw;
    assert_int_equal(config_node_count(raw), 20000);
    assert_string_equal(config_node_text(config_node_get(raw, "k12345")), "12345");
    assert_string_equal(config_node_key(raw, 777), "k777");
    assert_null(config_node_get(raw, "k20000"));
    config_free(config);
    text_deinit(&yaml);
    text_deinit(&report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(yaml_becomes_the_same_tree),
        cmocka_unit_test(mistakes_are_told_with_their_place),
        cmocka_unit_test(a_control_character_in_a_key_is_escaped),
        cmocka_unit_test(hostile_files_are_refused_quickly),
        cmocka_unit_test(aliases_of_aliases_are_counted),
        cmocka_unit_test(an_alias_cannot_go_deeper_than_the_limit),
        cmocka_unit_test(many_errors_are_cut),
        cmocka_unit_test(a_large_map_is_indexed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
