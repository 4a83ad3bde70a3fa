#include "config_fixture.h"

#include <string.h>

/* Body of `kinds: {...}`, and the report without "t.yaml:2:" and "processors::kinds"; "" is
 * success. */
static const char *const cases[][2] = {
    {"", ""},
    /* kinds */
    {"count: 12, offset: -3, ratio: 1, flag: false, timeout: 1m", ""},
    {"count: 12.0, ratio: 0.25, timeout: '5s', text: 5, named: true", ""},
    {"count: 12abc", "18: error: K::count: expected a whole number, got \"12abc\"\n"},
    {"count: '12'", "18: error: K::count: expected a whole number, got the text \"12\"; write it "
                    "without quotes\n"},
    {"count: 012",
     "18: error: K::count: 012 has a leading zero; write 12, or 0o12 if it is octal\n"},
    {"count: 99999999999999999999",
     "18: error: K::count: 99999999999999999999 is too large for 64 bits\n"},
    {"count: -1", "18: error: K::count: -1 is out of range; it must be from 0 to 1000\n"},
    {"count: 1001", "18: error: K::count: 1001 is out of range; it must be from 0 to 1000\n"},
    {"count: [1]", "18: error: K::count: expected a whole number, got a list\n"},
    {"count: {a: 1}", "18: error: K::count: expected a whole number, got a map\n"},
    {"count: true", "18: error: K::count: expected a whole number, got \"true\"\n"},
    {"offset: 1.5", "19: error: K::offset: expected a whole number, got \"1.5\"\n"},
    {"ratio: 1.01", "18: error: K::ratio: 1.01 is out of range; it must be from 0 to 1\n"},
    {"ratio: half", "18: error: K::ratio: expected a number, got \"half\"\n"},
    {"flag: yes", "17: error: K::flag: expected true or false, got \"yes\"\n"},
    {"flag: 'true'", "17: error: K::flag: expected true or false, got the text \"true\"; write it "
                     "without quotes\n"},
    {"flag: 1", "17: error: K::flag: expected true or false, got \"1\"\n"},
    {"timeout: 5", "20: error: K::timeout: 5 has no unit; write 5s or 5ms\n"},
    {"timeout: 5sec",
     "20: error: K::timeout: 5sec: unknown unit \"sec\"; the units are ns, us, ms, s, m and h\n"},
    {"timeout: -1s", "20: error: K::timeout: -1s is out of range; it must be at least 0s\n"},
    {"timeout: [5s]", "20: error: K::timeout: expected a duration like 5s, got a list\n"},
    {"timeout: 0", ""},
    {"text: [a]", "17: error: K::text: expected text, got a list\n"},
    {"level: Detailed", ""},
    {"level: detalied",
     "18: error: K::level: \"detalied\" is not one of none, basic, normal, detailed, did you "
     "mean \"detailed\"?\n"},
    {"level: 7", "18: error: K::level: \"7\" is not one of none, basic, normal, detailed\n"},
    {"level: ", ""},
    {"keys: [a, 1, ~]", ""},
    {"keys: 'a, b'", ""},
    {"keys: {a: b}", "17: error: K::keys: expected a list of texts, got a map\n"},
    {"keys: [a, [b]]", "21: error: K::keys::1: expected text, got a list\n"},
    {"headers: {a: b, c: 1, d: }", ""},
    {"headers: [{name: a, value: b}, {value: 1, name: c}]", ""},
    {"headers: a", "20: error: K::headers: expected a map, or a list of {name, value}, got text\n"},
    {"headers: {a: [b]}", "24: error: K::headers::a: expected text, got a list\n"},
    {"headers: [a]", "21: error: K::headers::0: expected a map with name and value, got text\n"},
    {"headers: [{name: a}]", "21: error: K::headers::0: the key \"value\" is missing\n"},
    {"headers: [{value: a}]", "21: error: K::headers::0: the key \"name\" is missing\n"},
    {"headers: [{name: '', value: a}]", "28: error: K::headers::0: the name cannot be empty\n"},
    {"headers: [{name: a, vlaue: b}]",
     "21: error: K::headers::0: unknown key \"vlaue\"; the keys are name and value\n"},
    {"headers: [{name: a, value: b}, {name: a, value: c}]",
     "59: error: K::headers::1: \"a\" is given twice\n"},
    /* blocks */
    {"inner: {number: 4}", ""},
    {"inner: ", ""},
    {"inner: 4",
     "18: error: K::inner: expected a map, got text; the keys are number, text, token\n"},
    {"inner: [a]",
     "18: error: K::inner: expected a map, got a list; the keys are number, text, token\n"},
    {"inner: {number: 11}",
     "27: error: K::inner::number: 11 is out of range; it must be from 1 to 10\n"},
    {"inner: {enabled: true}",
     "19: error: K::inner: unknown key \"enabled\"; the keys are number, text, token\n"},
    {"squashed_number: 8, squashed_text: a", ""},
    {"squashed_numbr: 8",
     "11: error: K: unknown key \"squashed_numbr\", did you mean \"squashed_number\"?\n"},
    {"rules: [{key: a, action: insert}, {key: b, extra: {x: y}}]", ""},
    {"rules: [{action: insert}]", "19: error: K::rules::0::key: is required but not set\n"},
    {"rules: [{key: a}, {key: ''}]",
     "35: error: K::rules::1::key: is required and cannot be empty\n"},
    {"rules: [{key: a}, ~]", "29: error: K::rules::1::key: is required but not set\n"},
    {"rules: {key: a}",
     "18: error: K::rules: expected a list, got a map; each item begins with \"- \"\n"},
    {"rules: [a]",
     "19: error: K::rules::0: expected a map, got text; the keys are key, action, extra\n"},
    {"rules: ", ""},
    {"counters: {a: {step: 2}, b: }", ""},
    {"counters: {a: {step: 0}}",
     "32: error: K::counters::a::step: 0 is out of range; it must be at least 1\n"},
    {"counters: {a: {rules: [{}]}}",
     "34: error: K::counters::a::rules::0::key: is required but not set\n"},
    {"counters: {a: {stap: 2}}",
     "26: error: K::counters::a: unknown key \"stap\", did you mean \"step\"?\n"},
    {"counters: {'': {step: 2}}", "22: error: K::counters: a name cannot be empty\n"},
    {"counters: {a: 2}",
     "25: error: K::counters::a: expected a map, got text; the keys are step, rules\n"},
    {"counters: [a]", "21: error: K::counters: expected a map, got a list\n"},
    {"counters: ", ""},
    /* keys */
    {"cuont: 1", "11: error: K: unknown key \"cuont\", did you mean \"count\"?\n"},
    {"Count: 1", "11: error: K: unknown key \"Count\", did you mean \"count\"?\n"},
    {"action: insert, zebra: 2", "11: error: K: unknown key \"action\"\n"
                                 "t.yaml:2:27: error: K: unknown key \"zebra\"\n"},
    {"token: abc", "11: error: K: unknown key \"token\", did you mean \"inner::token\"?\n"},
    {"old_count: 3",
     "11: warning: K::old_count: \"old_count\" is deprecated; use \"count\" instead\n"},
    {"unused: 3", "11: warning: K::unused: is accepted but has no effect in profcol\n"},
    {"unused: 1", ""},
    {"unused: x", "19: error: K::unused: expected a whole number, got \"x\"\n"},
    /* several errors, sorted */
    {"timeout: 5, count: a, flag: b",
     "20: error: K::timeout: 5 has no unit; write 5s or 5ms\n"
     "t.yaml:2:30: error: K::count: expected a whole number, got \"a\"\n"
     "t.yaml:2:39: error: K::flag: expected true or false, got \"b\"\n"},
    /* optional blocks */
    {"off: {numbr: 1}", "17: error: K::off: unknown key \"numbr\", did you mean \"number\"?\n"},
    {"off: {enabld: true}",
     "17: error: K::off: unknown key \"enabld\", did you mean \"enabled\"?\n"},
    {"off: {enabled: 1}", "26: error: K::off::enabled: expected true or false, got \"1\"\n"},
    {"off: {enabled: true, number: 0}",
     "40: error: K::off::number: 0 is out of range; it must be from 1 to 10\n"},
    {"off: {enabled: false, number: 0}", ""},
    {"off: {enabled: false, number: -1}", ""},
    {"off: {enabled: false, number: x}",
     "41: error: K::off::number: expected a whole number, got \"x\"\n"},
    {"off: {enabled: false, numbr: 1}",
     "33: error: K::off: unknown key \"numbr\", did you mean \"number\"?\n"},
    {"off: true",
     "16: error: K::off: expected a map, got text; the keys are number, text, token, enabled\n"},
    {"off: {other: 1}",
     "17: error: K::off: unknown key \"other\"; the keys are number, text, token, enabled\n"},
};

static void expand_short_form(struct text *out, const char *report)
{
    if (*report)
        text_append(out, "t.yaml:2:");
    for (; *report; report++)
        if (strncmp(report, " K", 2) == 0 && strchr(": ", report[2])) {
            text_append(out, " processors::kinds");
            report++;
        } else {
            text_append_char(out, *report);
        }
}

static void values_and_mistakes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct text expected = {0};
        expand_short_form(&expected, cases[i][1]);
        expect_kinds_report(cases[i][0], text_string(&expected));
        text_deinit(&expected);
    }
}

static void defaults_come_from_the_table(void **state)
{
    (void)state;
    struct text report = {0};
    struct config *config = fixture_load_kinds("", &report);
    const struct kinds_settings *kinds = fixture_kinds(config);
    assert_true(kinds->flag);
    assert_int_equal(kinds->count, 5);
    assert_int_equal(kinds->offset, -1);
    assert_true(kinds->ratio > 0.49 && kinds->ratio < 0.51);
    assert_int_equal(kinds->timeout, 200000000);
    assert_null(kinds->text);
    assert_string_equal(kinds->named, "localhost");
    assert_null(kinds->secret);
    assert_int_equal(kinds->level, 2);
    assert_int_equal(kinds->keys.count, 2);
    assert_string_equal(kinds->keys.items[1], "y");
    assert_int_equal(kinds->headers.count, 0);
    assert_int_equal(kinds->inner.number, 3);
    assert_false(kinds->off.enabled);
    assert_int_equal(kinds->off.number, 3);
    assert_true(kinds->on.enabled);
    assert_int_equal(kinds->squashed.number, 7);
    assert_int_equal(kinds->rules.count, 0);
    assert_null(kinds->raw);
    config_free(config);
    text_deinit(&report);
}

static void values_arrive(void **state)
{
    (void)state;
    struct text report = {0};
    struct config *config =
        fixture_load_kinds("flag: false, count: 0x10, offset: 1_000, ratio: 1e-1, timeout: 1h1s, "
                           "text: 007, named: '', secret: s, "
                           "level: BASIC, keys: [], headers: [{name: a, value: b}], inner: {text: "
                           "x}, off: {number: 9}, "
                           "on: {enabled: false}, squashed_text: q, rules: [{key: k}, {key: l, "
                           "action: delete, extra: {m: n}}], "
                           "raw: [1]",
                           &report);
    assert_string_equal(text_string(&report), "");
    const struct kinds_settings *kinds = fixture_kinds(config);
    assert_false(kinds->flag);
    assert_int_equal(kinds->count, 16);
    assert_int_equal(kinds->offset, 1000);
    assert_true(kinds->ratio > 0.09 && kinds->ratio < 0.11);
    assert_int_equal(kinds->timeout, INT64_C(3601000000000));
    assert_string_equal(kinds->text, "007");
    assert_string_equal(kinds->named, "");
    assert_string_equal(kinds->secret, "s");
    assert_int_equal(kinds->level, 1);
    assert_int_equal(kinds->keys.count, 0);
    assert_int_equal(kinds->headers.count, 1);
    assert_string_equal(kinds->headers.items[0].name, "a");
    assert_string_equal(kinds->headers.items[0].value, "b");
    assert_string_equal(kinds->inner.text, "x");
    assert_true(kinds->off.enabled);
    assert_int_equal(kinds->off.number, 9);
    assert_false(kinds->on.enabled);
    assert_string_equal(kinds->squashed.text, "q");
    assert_int_equal(kinds->rules.count, 2);
    const struct rule_settings *rules = kinds->rules.items;
    assert_string_equal(rules[0].key, "k");
    assert_int_equal(rules[0].action, 1);
    assert_int_equal(rules[1].action, 2);
    assert_string_equal(rules[1].extra.items[0].name, "m");
    assert_int_equal(config_node_kind(kinds->raw), CONFIG_NODE_LIST);
    config_free(config);
    text_deinit(&report);
}

static void null_is_zero_for_scalars_and_the_default_for_the_rest(void **state)
{
    (void)state;
    struct text report = {0};
    struct config *config = fixture_load_kinds("flag: , count: ~, offset: null, ratio: , timeout: "
                                               ", text: , named: , level: , keys: , headers: , "
                                               "inner: , off: , on: , rules: , raw: ",
                                               &report);
    assert_string_equal(text_string(&report), "");
    const struct kinds_settings *kinds = fixture_kinds(config);
    assert_false(kinds->flag);
    assert_int_equal(kinds->count, 0);
    assert_int_equal(kinds->offset, 0);
    assert_int_equal(kinds->timeout, 0);
    assert_null(kinds->text);
    assert_string_equal(kinds->named, "");
    assert_int_equal(kinds->level, 2);
    assert_int_equal(kinds->keys.count, 2);
    assert_int_equal(kinds->inner.number, 3);
    assert_true(kinds->off.enabled);
    assert_true(kinds->on.enabled);
    assert_null(kinds->raw);
    config_free(config);
    text_deinit(&report);
}

/* ---- rules of the component itself ---- */

static void complain(struct kinds_settings *settings, struct config_check *check)
{
    (void)settings;
    config_check_error(check, "", "whole");
    config_check_error(check, "count", "scalar %d", 1);
    config_check_error(check, "inner::number", "inner");
    config_check_error(check, "inner::text", "not written");
    config_check_error(check, "inner", "block");
    config_check_error(check, "rules::1::key", "in a list");
    config_check_error(check, "rules::7::key", "beyond the list");
    config_check_warn(check, "flag", "a warning");
    config_check_node_error(check, config_node_at(config_node_get(settings->raw, "a"), 1),
                            "a node");
    config_check_node_error(check, NULL, "no node");
}

static void messages_of_a_component_find_their_place(void **state)
{
    (void)state;
    fixture_check = complain;
    expect_kinds_report(
        "count: 1, inner: {number: 2}, rules: [{key: a}, {key: b}], raw: {a: [x, y]}",
        "t.yaml:2:3: error: processors::kinds: whole\n"
        "t.yaml:2:3: warning: processors::kinds::flag: a warning\n"
        "t.yaml:2:3: error: processors::kinds: no node\n"
        "t.yaml:2:18: error: processors::kinds::count: scalar 1\n"
        "t.yaml:2:21: error: processors::kinds::inner::text: not written\n"
        "t.yaml:2:21: error: processors::kinds::inner: block\n"
        "t.yaml:2:37: error: processors::kinds::inner::number: inner\n"
        "t.yaml:2:41: error: processors::kinds::rules::7::key: beyond the list\n"
        "t.yaml:2:65: error: processors::kinds::rules::1::key: in a list\n"
        "t.yaml:2:83: error: processors::kinds::raw::a::1: a node\n");
    fixture_check = NULL;
}

static void count_calls(struct kinds_settings *settings, struct config_check *check)
{
    (void)settings;
    config_check_error(check, "", "called");
}

static void rules_wait_until_the_fields_are_right(void **state)
{
    (void)state;
    fixture_check = count_calls;
    expect_kinds_report("count: 1", "t.yaml:2:3: error: processors::kinds: called\n");
    expect_kinds_report(
        "count: x",
        "t.yaml:2:18: error: processors::kinds::count: expected a whole number, got \"x\"\n");
    expect_kinds_report("inner: {text: '${x:}'}",
                        "t.yaml:2:25: error: processors::kinds::inner::text: scheme \"x\" is not "
                        "supported; the schemes are env, file and yaml\n");
    fixture_check = NULL;
}

struct shape {
    uint64_t width;
    const char *name;
};

static const struct field shape_fields[] = {
    FIELD_UINT(shape, width, "How wide it is.", .fallback = "3", .min = "1"),
    FIELD_STRING(shape, name, "What it is called.", .required = true),
    FIELD_END,
};

static void decode_shapes(struct kinds_settings *settings, struct config_check *check)
{
    struct shape shape;
    assert_true(config_decode(check, config_node_at(settings->raw, 0), shape_fields, &shape));
    assert_int_equal(shape.width, 3);
    assert_string_equal(shape.name, "a");
    assert_false(config_decode(check, config_node_at(settings->raw, 1), shape_fields, &shape));
    assert_false(config_decode(check, NULL, shape_fields, &shape));
    assert_int_equal(shape.width, 3);
    assert_non_null(config_check_arena(check));
}

static void a_component_can_decode_by_another_table(void **state)
{
    (void)state;
    fixture_check = decode_shapes;
    expect_kinds_report(
        "raw: [{name: a}, {width: 0, nam: x}]",
        "t.yaml:2:3: error: processors::kinds::name: is required but not set\n"
        "t.yaml:2:28: error: processors::kinds::raw::1::name: is required but not set\n"
        "t.yaml:2:36: error: processors::kinds::raw::1::width: 0 is out of range; it must be at "
        "least 1\n"
        "t.yaml:2:39: error: processors::kinds::raw::1: unknown key \"nam\", did you mean "
        "\"name\"?\n");
    fixture_check = NULL;
}

/* ---- secrets ---- */

static void no_message_shows_a_secret(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "secret: [CANARY]",
        "secret: {a: CANARY}",
        "headers: CANARY",
        "headers: [CANARY]",
        "headers: {a: [CANARY]}",
        "headers: [{name: a, value: {b: CANARY}}]",
        "headers: [{name: a, value: CANARY}, {name: a, value: CANARY}]",
        "headers: [{name: a, value: CANARY, x: y}]",
        "secret: *CANARY",
        "secret: !CANARY x",
        "secret: '${env:X:-CANARY$$}'",
        "secret: '${X:-CANARY}'",
        "secret: \"CANARY",
        "secret: CANARY: x",
        "inner: {token: [CANARY]}",
        "secret: CANARY, secret: CANARY",
    };
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        struct text report = {0};
        assert_null(fixture_load_kinds(bodies[i], &report));
        if (strstr(report.data, "CANARY"))
            fail_msg("%s: %s", bodies[i], report.data);
        text_deinit(&report);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_and_mistakes),
        cmocka_unit_test(defaults_come_from_the_table),
        cmocka_unit_test(values_arrive),
        cmocka_unit_test(null_is_zero_for_scalars_and_the_default_for_the_rest),
        cmocka_unit_test(messages_of_a_component_find_their_place),
        cmocka_unit_test(rules_wait_until_the_fields_are_right),
        cmocka_unit_test(a_component_can_decode_by_another_table),
        cmocka_unit_test(no_message_shows_a_secret),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
