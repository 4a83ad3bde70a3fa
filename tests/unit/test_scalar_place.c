#include "config/scalar_place.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* A file in which a text begins at line:column. `at` is the rest of the text whose place is asked
 * for; wanted: NULL if the file has another text there. */
static const struct {
    const char *yaml;
    unsigned line, column;
    const char *text, *at, *wanted;
} rows[] = {
    {"a: one two\n", 1, 4, "one two", "two", "1:8"},
    {"a: one two\n", 1, 4, "one two", "one two", "1:4"},
    {"a: one two\n", 1, 4, "one two", " two", "1:7"},
    {"a: one two\n", 1, 4, "one two", "", "1:11"},
    {"a: one\n   two  # comment\n", 1, 4, "one two", "two", "2:4"},
    {"\xef\xbb\xbf"
     "a: \xc3\xa4 \xe2\x82\xac b\n",
     1, 4, "\xc3\xa4 \xe2\x82\xac b", "b", "1:8"},
    {"a: 'x = ''y'' z'\n", 1, 4, "x = 'y' z", "z", "1:15"},
    {"a: 'x = ''y'' z'\n", 1, 4, "x = 'y' z", "'y' z", "1:9"},
    {"a: 'one\n\n  two\n  three'\n", 1, 4, "one\ntwo three", "three", "4:3"},
    {"a: \"x == \\\"y\\\" z\"\n", 1, 4, "x == \"y\" z", "z", "1:16"},
    {"a: \"x == \\\"y\\\" z\"\n", 1, 4, "x == \"y\" z", "\"y\" z", "1:10"},
    {"a: \"\\\\d+\\n\\x41\\u00e4\\t\\x20z\"\n", 1, 4, "\\d+\nA\xc3\xa4\t z", "z", "1:27"},
    {"a: \"one \\\n     two\"\n", 1, 4, "one two", "two", "2:6"},
    {"- |\n  set(a,\n    b)\n  where c\n", 1, 3, "set(a,\n  b)\nwhere c\n", "b)\nwhere c\n", "3:5"},
    {"- |\n  set(a,\n    b)\n  where c\n", 1, 3, "set(a,\n  b)\nwhere c\n", "c\n", "4:9"},
    {"- |\n  set(a,\n    b)\n  where c\n", 1, 3, "set(a,\n  b)\nwhere c\n", "", "4:10"},
    {"- >-  # comment\n  set(a,\n  b)\n\n  where c\n", 1, 3, "set(a, b)\nwhere c", "c", "5:9"},
    {"- >-\r\n  set(a,\r\n  b)\r\n", 1, 3, "set(a, b)", "b)", "3:3"},
    {"- |2\n    # no comment\n   x\n", 1, 3, "  # no comment\n x\n", "x\n", "3:4"},
    {"x: &name 'one two'\n", 1, 4, "one two", "two", "1:15"},
    {"x: !!str one two\n", 1, 4, "one two", "two", "1:14"},
    {"x: &name\n  |\n  one two\n", 1, 4, "one two\n", "two\n", "3:7"},
    {"a: '^(.*)$$ $${1} z'\n", 1, 4, "^(.*)$ ${1} z", "z", "1:19"},
    /* placeholders */
    {"a: one ${env:TWO} three\n", 1, 4, "one 2 three", "one 2 three", "1:4"},
    {"a: one ${env:TWO} three\n", 1, 4, "one 2 three", "three", NULL},
    {"a: ${env:ALL}\n", 1, 4, "one two", "two", NULL},
    {"a: 'one", 1, 4, "one two", "two", NULL},
    {"a: \"one\\", 1, 4, "one two", "two", NULL},
    {"a", 7, 9, "one", "one", NULL},
    {"", 1, 1, "one", "one", NULL},
};

static void finds_the_place_of_a_byte(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct config_source source = {.name = "t.yaml", .yaml = slice_of_string(rows[i].yaml)};
        struct config_place begin = {&source, rows[i].line, rows[i].column}, place;
        char found[32] = "none";
        size_t offset = strlen(rows[i].text) - strlen(rows[i].at);
        if (scalar_place(begin, slice_of_string(rows[i].text), offset, &place))
            snprintf(found, sizeof found, "%u:%u", place.line, place.column);
        if (strcmp(found, rows[i].wanted ? rows[i].wanted : "none") != 0)
            fail_msg("%s, at \"%s\": %s", rows[i].yaml, rows[i].at, found);
    }
}

static void a_place_without_a_file_is_none(void **state)
{
    struct config_place begin = {NULL, 1, 1}, place;
    (void)state;
    assert_false(scalar_place(begin, SLICE("a"), 0, &place));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(finds_the_place_of_a_byte),
                                       cmocka_unit_test(a_place_without_a_file_is_none)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
