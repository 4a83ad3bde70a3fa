#include "config_fixture.h"

#include <string.h>

static const struct fixture_variable variables[] = {
    {"VALUE", "hello"},
    {"EMPTY", ""},
    {"NUM", "0123"},
    {"N", "7"},
    {"FLOAT", "7.0"},
    {"BOOL", "true"},
    {"YES", "yes"},
    {"QUOTED", "\"12\""},
    {"LIST", "[a, b]"},
    {"COMMAS", "a,b, c"},
    {"MAP", "{number: 4, text: '${env:VALUE}'}"},
    {"NAME", "VALUE"},
    {"TO_N", "${env:N}"},
    {"SELF", "${env:SELF}"},
    {"GROWING", "x${env:GROWING}"},
    {"BRANCHING", "['${env:BRANCHING}', '${env:BRANCHING}']"},
    {"DOLLARS", "a$$b"},
    {"PASSWORD", "*p&w!d{: [,"},
    {"KEY", "-----BEGIN KEY-----\nabc\n-----END KEY-----"},
    {"NULL_TEXT", "null"},
    {"DURATION", "3s"},
    {"BAD_UTF8", "a\xff"
                 "b"},
    {NULL, NULL},
};

static const struct fixture_variable files[] = {
    {"token.txt", "s3cret\n"},
    {"dir/number", "8\n"},
    {"list.yaml", "- p\n- q: r\n"},
    {NULL, NULL},
};

static int set_up(void **state)
{
    (void)state;
    fixture_environment = variables;
    fixture_files = files;
    return 0;
}

/* The first is the value of a text field, the second the result. NULL: the field stays empty. */
static const char *const texts[][2] = {
    {"${env:VALUE}", "hello"},
    {"${VALUE}", "hello"},
    {"'${VALUE}'", "hello"},
    {"\"${VALUE}\"", "hello"},
    {"a-${VALUE}-b-${N}", "a-hello-b-7"},
    {"${env:UNSET:-other}", "other"},
    {"${env:EMPTY:-other}", NULL},
    {"${env:VALUE:-other}", "hello"},
    {"'${env:UNSET:-a:-b}'", "a:-b"},
    {"${env:UNSET:-}", ""},
    {"${env:EMPTY}", NULL},
    {"x${env:EMPTY}", "x"},
    {"${env:UNSET:-${env:N}}", "7"},
    {"${env:${env:NAME}}", "hello"},
    {"${${NAME}}", "hello"},
    {"${env:UNSET:-${env:UNSET:-${VALUE}}}", "hello"},
    /* text stays text, even if YAML would read a number */
    {"${NUM}", "0123"},
    {"${BOOL}", "true"},
    {"${YES}", "yes"},
    {"${FLOAT}", "7.0"},
    {"${QUOTED}", "\"12\""},
    {"'${LIST}'", "[a, b]"},
    {"${MAP}", "{number: 4, text: 'hello'}"},
    {"${PASSWORD}", "*p&w!d{: [,"},
    {"${KEY}", "-----BEGIN KEY-----\nabc\n-----END KEY-----"},
    {"${NULL_TEXT}", "null"},
    {"${BAD_UTF8}", "a\xff"
                    "b"},
    {"${TO_N}", "7"},
    /* dollars */
    {"$VALUE", "$VALUE"},
    {"a$", "a$"},
    {"$$", "$"},
    {"$$$$", "$$"},
    {"$$$", "$$"},
    {"$${VALUE}", "${VALUE}"},
    {"$$$${VALUE}", "$${VALUE}"},
    {"$$${VALUE}", "$hello"},
    {"'$${VALUE} ${VALUE}'", "${VALUE} hello"},
    {"'$${a ${VALUE}}'", "${a hello}"},
    {"'$${env:${N}}'", "${env:7}"},
    {"${DOLLARS}", "a$b"},
    /* text that is not a placeholder */
    {"'}${VALUE}{'", "}hello{"},
    {"'{${VALUE}}'", "{hello}"},
    {"'$ {VALUE}'", "$ {VALUE}"},
    {"'$}{'", "$}{"},
    /* other schemes */
    {"${file:token.txt}", "s3cret"},
    {"'Bearer ${file:token.txt}'", "Bearer s3cret"},
    {"'${yaml:[1, 2]}'", "[1, 2]"},
    {"${file:dir/number}", "8"},
};

static void placeholders_in_text_fields(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct text body = {0};
        struct text report = {0};
        text_printf(&body, "text: %s", texts[i][0]);
        /* Block style, in which braces have no meaning. */
        struct text yaml = {0};
        text_printf(&yaml,
                    "processors:\n  kinds:\n    %s\nreceivers: {otlp: }\nexporters: {nop: "
                    "}\nservice: {pipelines: "
                    "{traces: {receivers: [otlp], processors: [kinds], exporters: [nop]}}}\n",
                    text_string(&body));
        struct config *config = fixture_load(text_string(&yaml), &report);
        if (!config || report.size)
            fail_msg("%s: %s", texts[i][0], text_string(&report));
        const char *text = fixture_kinds(config)->text;
        if ((text == NULL) != (texts[i][1] == NULL) || (text && strcmp(text, texts[i][1]) != 0))
            fail_msg("%s is %s", texts[i][0], text ? text : "NULL");
        config_free(config);
        text_deinit(&body);
        text_deinit(&report);
        text_deinit(&yaml);
    }
}

static const char place[] = "t.yaml:2:18: error: processors::kinds::";

/* Placeholders in other fields, and the expected report without its position. */
static const char *const others[][2] = {
    {"count: '${N}'", ""},
    {"count: '${FLOAT}'", ""},
    {"count: '${TO_N}'", ""},
    {"count: '${env:UNSET:-9}'", ""},
    {"count: '${file:dir/number}'", ""},
    {"count: '${EMPTY}'", ""},
    {"count: '${NULL_TEXT}'", ""},
    {"count: '1${N}'", "count: expected a whole number, got \"17\"\n"},
    {"count: '${QUOTED}'", "count: expected a whole number, got \"\"12\"\"\n"},
    {"count: '${env:UNSET:-}'", "count: expected a whole number, got \"\"\n"},
    {"count: '${VALUE}'", "count: expected a whole number, got \"hello\"\n"},
    {"count: '${LIST}'", "count: expected a whole number, got a list\n"},
    {"flag:  '${BOOL}'", ""},
    {"flag:  '${YES}'", "flag: expected true or false, got \"yes\"\n"},
    {"keys:  '${LIST}'", ""},
    {"keys:  '${COMMAS}'", ""},
    {"inner: '${MAP}'", ""},
    {"timeout: '${DURATION}'", ""},
    {"raw:   '${file:list.yaml}'", ""},
    {"text:  '${a b}'",
     "text: the environment variable \"a b\" has an invalid name: it may have letters, digits and "
     "_, and does not start with a digit\n"},
    {"text:  '${}'",
     "text: the environment variable \"\" has an invalid name: it may have letters, digits and "
     "_, and does not start with a digit\n"},
    {"text:  '${env:1A}'",
     "text: the environment variable \"1A\" has an invalid name: it may have letters, digits "
     "and _, and does not start with a digit; for a $ in a text, write $$\n"},
    {"text:  '${env:A-b}'",
     "text: the environment variable \"A-b\" has an invalid name: it may have letters, digits "
     "and _, and does not start with a digit; a default is written ${env:NAME:-default}\n"},
    {"text:  '${VALUE:-x}'",
     "text: scheme \"VALUE\" is not supported; a variable with a default is written "
     "${env:VALUE:-...}\n"},
    {"text:  '${enf:X}'", "text: scheme \"enf\" is not supported, did you mean \"env\"?\n"},
    {"text:  '${vault:X}'",
     "text: scheme \"vault\" is not supported; the schemes are env, file and yaml\n"},
    {"text:  '${https://x/y}'",
     "text: scheme \"https\" is not supported: profcol reads its configuration from files "
     "and the environment, not from the network\n"},
    {"text:  '${env:UNSET:-$$x}'",
     "text: the text between ${ and } contains unsupported characters ('$')\n"},
    {"text:  '${file:nothing}'", "text: unable to read the file \"nothing\"\n"},
    {"text:  '${SELF}'", "text: too many recursive expansions, more than 1000\n"},
    {"text:  '${GROWING}'", "text: too many recursive expansions, more than 1000\n"},
};

static void placeholders_in_other_fields(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct text report = {0};
        struct config *config = fixture_load_kinds(others[i][0], &report);
        const char *text = text_string(&report);
        const char *colon = strstr(text, "error: ");
        if (colon)
            colon = strstr(colon, "kinds::");
        if (strcmp(others[i][1], colon ? colon + strlen("kinds::") : text) != 0)
            fail_msg("%s: %s", others[i][0], text);
        /* A message has the position of its placeholder. */
        if (strncmp(others[i][0], "text:  '", 8) == 0)
            assert_int_equal(strncmp(text, place, strlen(place)), 0);
        config_free(config);
        text_deinit(&report);
    }
}

static void what_a_placeholder_stands_for_has_its_type(void **state)
{
    (void)state;
    struct text report = {0};
    struct config *config =
        fixture_load_kinds("count: '${N}', flag: '${BOOL}', keys: '${COMMAS}', inner: '${MAP}', "
                           "timeout: '${EMPTY}', raw: '${file:list.yaml}'",
                           &report);
    assert_string_equal(text_string(&report), "");
    const struct kinds_settings *kinds = fixture_kinds(config);
    assert_int_equal(kinds->count, 7);
    assert_true(kinds->flag);
    assert_int_equal(kinds->keys.count, 3);
    assert_string_equal(kinds->keys.items[2], "c");
    assert_int_equal(kinds->inner.number, 4);
    assert_string_equal(kinds->inner.text, "hello");
    assert_int_equal(kinds->timeout, 0); /* not the default */
    assert_int_equal(config_node_kind(kinds->raw), CONFIG_NODE_LIST);
    assert_string_equal(config_node_text(config_node_get(config_node_at(kinds->raw, 1), "q")), "r");
    config_free(config);
    text_deinit(&report);
}

static void a_variable_that_is_not_set_is_a_warning_and_null(void **state)
{
    (void)state;
    struct text report = {0};
    struct config *config =
        fixture_load_kinds("named: '${env:UNSET}', timeout: '${UNSET}', offset: 3", &report);
    assert_non_null(config);
    assert_string_equal(text_string(&report),
                        "t.yaml:2:18: warning: processors::kinds::named: the environment variable "
                        "\"UNSET\" is not set, the value "
                        "is empty\n"
                        "t.yaml:2:43: warning: processors::kinds::timeout: the environment "
                        "variable \"UNSET\" is not set, the "
                        "value is empty\n");
    assert_string_equal(fixture_kinds(config)->named, "");
    assert_int_equal(fixture_kinds(config)->timeout, 0);
    config_free(config);
    text_deinit(&report);
}

static void a_placeholder_without_an_end_is_a_warning(void **state)
{
    (void)state;
    static const struct {
        const char *text, *value;
        bool warns;
    } cases[] = {
        {"'${VALUE'", "${VALUE", true},
        {"'${VALUE}${NUM'", "hello${NUM", true},
        {"'$${VALUE'", "${VALUE", false},
        {"'}${VALUE}{'", "}hello{", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct text yaml = {0}, report = {0};
        text_printf(&yaml,
                    "processors:\n  kinds:\n    text: %s\nreceivers: {otlp: }\nexporters: {nop: "
                    "}\nservice: {pipelines: "
                    "{traces: {receivers: [otlp], processors: [kinds], exporters: [nop]}}}\n",
                    cases[i].text);
        struct config *config = fixture_load(text_string(&yaml), &report);
        assert_non_null(config);
        assert_string_equal(fixture_kinds(config)->text, cases[i].value);
        assert_string_equal(text_string(&report),
                            cases[i].warns
                                ? "t.yaml:3:11: warning: processors::kinds::text: \"${\" without a "
                                  "closing \"}\": the text is taken as it is written; write $${ if "
                                  "that is meant\n"
                                : "");
        config_free(config);
        text_deinit(&yaml);
        text_deinit(&report);
    }
}

static void keys_are_not_expanded(void **state)
{
    (void)state;
    struct text report = {0};
    struct config *config = fixture_load_kinds("raw: {'${env:N}': 1, '$$': 2}", &report);
    assert_string_equal(text_string(&report), "");
    assert_string_equal(config_node_key(fixture_kinds(config)->raw, 0), "${env:N}");
    assert_string_equal(config_node_key(fixture_kinds(config)->raw, 1), "$$");
    config_free(config);
    text_deinit(&report);
}

static void a_list_of_itself_ends(void **state)
{
    (void)state;
    struct text report = {0};
    assert_null(fixture_load_kinds("raw: '${BRANCHING}'", &report));
    assert_non_null(strstr(report.data, "nested more than 64 levels deep\n"));
    text_deinit(&report);
}

static void errors_inside_an_expanded_map_stand_at_the_placeholder(void **state)
{
    (void)state;
    static const struct fixture_variable own[] = {{"BLOCK", "{\n  number: 3,\n  txt: 4}"},
                                                  {NULL, NULL}};
    fixture_environment = own;
    expect_kinds_report("inner: '${BLOCK}'", "t.yaml:2:18: error: processors::kinds::inner: "
                                             "unknown key \"txt\", did you mean \"text\"?\n");
    fixture_environment = variables;
}

static void sections_and_lists_of_ids_may_be_placeholders(void **state)
{
    (void)state;
    static const struct fixture_variable own[] = {
        {"R", "{otlp: }"}, {"E", "[nop]"}, {"X", "nop"}, {"S", "{nop: }"}, {NULL, NULL}};
    fixture_environment = own;
    expect_report("receivers: ${env:R}\nexporters: ${env:S}\n"
                  "service: {pipelines: {traces: {receivers: [otlp], exporters: '${env:E}'},\n"
                  " profiles: {receivers: [otlp], exporters: ['${env:X}']}}}\n",
                  "");
    fixture_environment = variables;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(placeholders_in_text_fields),
        cmocka_unit_test(placeholders_in_other_fields),
        cmocka_unit_test(what_a_placeholder_stands_for_has_its_type),
        cmocka_unit_test(a_variable_that_is_not_set_is_a_warning_and_null),
        cmocka_unit_test(a_placeholder_without_an_end_is_a_warning),
        cmocka_unit_test(keys_are_not_expanded),
        cmocka_unit_test(a_list_of_itself_ends),
        cmocka_unit_test(errors_inside_an_expanded_map_stand_at_the_placeholder),
        cmocka_unit_test(sections_and_lists_of_ids_may_be_placeholders),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
