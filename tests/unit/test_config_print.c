#include "config_fixture.h"

#include "config/service.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* ---- print-config ---- */

static char *print(const struct config *config)
{
    struct text out = {0};
    config_print(config, &out);
    return out.data;
}

static void all_defaults_are_written_out(void **state)
{
    (void)state;
    struct text report = {0};
    struct config *config = fixture_load_kinds("", &report);
    char *printed = print(config);
    assert_string_equal(printed, "receivers:\n"
                                 "  otlp: {}\n"
                                 "processors:\n"
                                 "  kinds:\n"
                                 "    flag: true\n"
                                 "    count: 5\n"
                                 "    offset: -1\n"
                                 "    ratio: 0.5\n"
                                 "    timeout: 200ms\n"
                                 "    named: localhost\n"
                                 "    level: normal\n"
                                 "    keys:\n"
                                 "      - x\n"
                                 "      - y\n"
                                 "    headers: {}\n"
                                 "    inner:\n"
                                 "      number: 3\n"
                                 "    off:\n"
                                 "      enabled: false\n"
                                 "    on:\n"
                                 "      enabled: true\n"
                                 "      number: 3\n"
                                 "    squashed_number: 7\n"
                                 "    rules: []\n"
                                 "    counters: {}\n"
                                 "exporters:\n"
                                 "  nop: {}\n"
                                 "service:\n"
                                 "  extensions: []\n"
                                 "  telemetry:\n"
                                 "    logs:\n"
                                 "      level: info\n"
                                 "      encoding: console\n"
                                 "      sampling:\n"
                                 "        enabled: true\n"
                                 "        initial: 10\n"
                                 "        thereafter: 100\n"
                                 "        tick: 10s\n"
                                 "      output_paths:\n"
                                 "        - stderr\n"
                                 "      error_output_paths:\n"
                                 "        - stderr\n"
                                 "      development: false\n"
                                 "      disable_caller: false\n"
                                 "      disable_stacktrace: false\n"
                                 "      disable_zap_resource: false\n"
                                 "    metrics:\n"
                                 "      level: normal\n"
                                 "      readers:\n"
                                 "        - pull:\n"
                                 "            enabled: true\n"
                                 "            exporter:\n"
                                 "              prometheus:\n"
                                 "                enabled: true\n"
                                 "                host: localhost\n"
                                 "                port: 8888\n"
                                 "                without_units: true\n"
                                 "                without_type_suffix: true\n"
                                 "                without_scope_info: true\n"
                                 "          periodic:\n"
                                 "            enabled: false\n"
                                 "    traces:\n"
                                 "      level: basic\n"
                                 "  pipelines:\n"
                                 "    traces:\n"
                                 "      receivers: [otlp]\n"
                                 "      processors: [kinds]\n"
                                 "      exporters: [nop]\n");
    free(printed);
    config_free(config);
    text_deinit(&report);
}

static const char *const bodies[] = {
    "",
    "count: 0, offset: 9223372036854775807, ratio: 0.1, timeout: 1h0m0.000000001s, flag: false",
    "text: '', named: '', level: none, keys: []",
    "text: 'a: b', named: 'true', keys: ['', '1', '~', ' x ', '#', \"\\n\"]",
    "text: '$$x $${y} $$$$', named: '0x10'",
    "text: \"1 \\x7f \\u0085 \\u00a0 \\u2028 \\uFEFF \\uFFFD \\U0001F600 \\\\ \\\" \\t\"",
    "text: '- a', named: ': b'",
    "headers: {Authorization: x, 'a b': y}, secret: z",
    "off: {number: 5, text: a, token: b}, on: {enabled: false, number: 7}",
    "rules: [{key: a}, {key: b, action: insert, extra: {c: d}}]",
    "counters: {a: {step: 2, rules: [{key: b}]}, 'b c': }",
    "raw: {a: [1, 'x', {b: ~}], c: {}, d: [], '$x': '$$y', 5: '5', e: 0x10, f: [[a], [[]]]}",
    "raw: '5'",
    "unused: 7, old_count: 3",
};

static void what_is_printed_loads_to_the_same(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        struct text report = {0};
        struct config *config = fixture_load_kinds(bodies[i], &report);
        if (!config)
            fail_msg("%s: %s", bodies[i], text_string(&report));
        char *printed = print(config);
        struct config *again = fixture_load(printed, &report);
        if (!again)
            fail_msg("%s: %s\n%s", bodies[i], text_string(&report), printed);
        char *printed_again = print(again);
        assert_string_equal(printed_again, printed);
        const struct kinds_settings *a = fixture_kinds(config);
        const struct kinds_settings *b = fixture_kinds(again);
        assert_int_equal(a->count, b->count);
        assert_int_equal(a->timeout, b->timeout);
        assert_int_equal(a->keys.count, b->keys.count);
        assert_int_equal(a->old_count, b->old_count);
        for (size_t k = 0; k < a->keys.count; k++)
            assert_string_equal(a->keys.items[k], b->keys.items[k]);
        assert_int_equal(a->text == NULL, b->text == NULL);
        if (a->text)
            assert_string_equal(a->text, b->text);
        assert_string_equal(a->named, b->named);
        free(printed);
        free(printed_again);
        config_free(config);
        config_free(again);
        text_deinit(&report);
    }
}

static void secrets_are_not_printed(void **state)
{
    (void)state;
    struct text report = {0};
    struct config *config = fixture_load_kinds(
        "secret: CANARY, headers: {a: CANARY, b: 'Bearer CANARY'}, inner: {token: "
        "CANARY}, on: {token: CANARY}, rules: [{key: a, extra: {x: CANARY}}]",
        &report);
    assert_string_equal(text_string(&report), "");
    char *printed = print(config);
    assert_null(strstr(printed, "CANARY"));
    assert_non_null(strstr(printed, "    secret: \"[REDACTED]\"\n"));
    assert_non_null(strstr(printed, "      a: \"[REDACTED]\"\n"));
    free(printed);
    config_free(config);
    text_deinit(&report);
}

static void expanded_values_are_printed(void **state)
{
    (void)state;
    static const struct fixture_variable variables[] = {
        {"HOST", "tempo$$1:4317"}, {"BAD", "a\xff"}, {NULL, NULL}};
    fixture_environment = variables;
    struct text report = {0};
    struct config *config = fixture_load_kinds("text: '${env:HOST}', named: '${BAD}'", &report);
    char *printed = print(config);
    assert_non_null(strstr(printed, "    text: \"tempo$$1:4317\"\n"));
    assert_non_null(strstr(printed, "    named: \"a\xef\xbf\xbd\"\n"));
    free(printed);
    config_free(config);
    text_deinit(&report);
}

/* ---- the reference, the list, the schema ---- */

static void expect_line(const struct text *text, const char *line)
{
    if (!strstr(text_string(text), line))
        fail_msg("%s is not in\n%s", line, text_string(text));
}

static void the_reference_has_every_field(void **state)
{
    (void)state;
    struct text out = {0};
    const struct config_shared_block none[] = {{0}};
    config_print_reference(fixture_types, none, &out);
    expect_line(&out, "\n- Receivers: [otlp](#otlp-receiver)");
    expect_line(&out, "\n## Receivers\n\n### otlp receiver\n\nIt is otlp.\n\nSignals: traces "
                      "(stable), profiles (alpha).\n\nExample: [examples/receivers/otlp.yaml]"
                      "(../examples/receivers/otlp.yaml)\n\nIt has no settings.\n");
    expect_line(&out, "\n### otlp_grpc exporter\n\nIt is otlp_grpc.\n\nSignals: traces (stable), "
                      "profiles (alpha).\n\nThe deprecated name `otlp` still works.\n\nExample: ");
    expect_line(&out, "\n| `endpoint` | text | **required** |  | Where to. |\n");
    expect_line(&out, "\n| `count` | number | `5` | at most `1000` | A count. |\n");
    expect_line(&out,
                "\n| `ratio` | number, may have a fraction | `0.5` | `0` to `1` | A ratio. |\n");
    expect_line(&out,
                "\n| `level` | `none`, `basic`, `normal`, `detailed` | `normal` |  | A level. |\n");
    expect_line(&out, "\n| `inner.token` | secret |  |  | A secret. |\n");
    expect_line(&out,
                "\n| `on` | optional block, with the keys of `inner` | on |  | On by default. |\n");
    expect_line(&out, "\n| `squashed_number` | number | `7` |  | A number. |\n");
    expect_line(&out, "\n| `rules[].action` |");
    expect_line(&out,
                "\n| `old_count` | number | `0` |  | The old count. Deprecated: use `count`. |\n");
    expect_line(
        &out,
        "\n| `unused` | number | `1` |  | Not used. Accepted, but has no effect in profcol. |\n");
    expect_line(
        &out,
        "\n## Extensions\n\n### health_check extension\n\nIt is health_check.\n\nThe deprecated "
        "name `healthcheck` still works.\n\nExample: ");
    expect_line(&out, "\n| `metrics.readers[].pull.exporter.prometheus.port` | number | `8888` | "
                      "`0` to `65535` |");
    assert_null(strstr(out.data, "squashed.squashed_number"));
    text_deinit(&out);
}

/* Returns the table of the block with this name; NULL: there is none. */
static const struct field *block_named(const char *name)
{
    for (const struct config_type *const *types = fixture_types; *types; types++)
        for (const struct field *field = (*types)->fields; field && field->kind; field++)
            if (field->block && strcmp(field->name, name) == 0)
                return field->block;
    return NULL;
}

static void the_reference_describes_a_shared_block_once(void **state)
{
    (void)state;
    struct text out = {0};
    const struct config_shared_block shared[] = {
        {"Small blocks", "They are small.", block_named("off")},
        {"Squashed", "They are inlined.", block_named("squashed")},
        {0}};
    config_print_reference(fixture_types, shared, &out);
    expect_line(&out, "\n- Shared blocks: [Small blocks](#small-blocks), [Squashed](#squashed)\n");
    expect_line(&out, "\n| `off` | optional block, see [Small blocks](#small-blocks) | off |  | "
                      "Off by default. |\n");
    expect_line(&out, "\n| `*` | all keys of [Squashed](#squashed) |  |  | Inlined. |\n");
    expect_line(&out, "\n### Small blocks\n\nThey are small.\n\n| key |");
    assert_null(strstr(out.data, ".token"));
    text_deinit(&out);
}

static void the_components_are_listed_like_the_collectors(void **state)
{
    (void)state;
    struct text out = {0};
    config_print_components(fixture_types, &out);
    expect_line(&out, "buildinfo:\n  command: profcol\n");
    expect_line(&out, "\nreceivers:\n  - name: otlp\n    stability:\n      traces: Stable\n      "
                      "profiles: Alpha\n");
    expect_line(
        &out, "\n  - name: batch\n    stability:\n      traces: Beta\n      profiles: Undefined\n");
    expect_line(&out, "\n  - name: otlp_grpc\n    deprecated_alias: otlp\n");
    expect_line(&out, "\nextensions:\n  - name: health_check\n");
    text_clear(&out);
    const struct config_type *const none[] = {NULL};
    config_print_components(none, &out);
    expect_line(&out, "\nprocessors: []\n");
    text_deinit(&out);
}

static json_t *at(json_t *json, const char *first, const char *second, const char *third)
{
    return json_object_get(json_object_get(json_object_get(json, first), second), third);
}

static void the_schema_is_json_and_complete(void **state)
{
    (void)state;
    struct text out = {0};
    json_error_t error;
    config_print_schema(fixture_types, &out);
    json_t *schema = json_loads(text_string(&out), JSON_REJECT_DUPLICATES, &error);
    assert_non_null(schema);
    assert_string_equal(json_string_value(json_object_get(schema, "$schema")),
                        "https://json-schema.org/draft/2020-12/schema");
    json_t *kinds = at(schema, "$defs", "processors.kinds", "properties");
    for (const struct field *field = kinds_fields; field->kind != FIELD_KIND_END; field++)
        if (!field->inlined && !json_object_get(kinds, field->name))
            fail_msg("%s is missing", field->name);
    assert_non_null(json_object_get(kinds, "squashed_number"));
    assert_true(json_is_true(json_object_get(json_object_get(kinds, "old_count"), "deprecated")));
    json_t *count = json_array_get(json_object_get(json_object_get(kinds, "count"), "anyOf"), 0);
    assert_int_equal(json_integer_value(json_object_get(count, "minimum")), 0);
    assert_int_equal(json_integer_value(json_object_get(count, "maximum")), 1000);
    json_t *required = at(schema, "$defs", "exporters.otlp_grpc", "required");
    assert_string_equal(json_string_value(json_array_get(required, 0)), "endpoint");
    json_decref(schema);
    text_deinit(&out);
}

/* ---- tables ---- */

static const char *const some_names[] = {"a", "b", NULL};
static const char *const no_names[] = {NULL};

struct table {
    bool flag;
    uint64_t number;
    double fraction;
    int64_t time;
    const char *text;
    int choice;
    struct config_strings list;
    struct config_pairs pairs;
    struct kinds_block block;
};

static const struct field block_of_optional[] = {
    FIELD_UINT(kinds_block, number, "A number."),
    FIELD_END,
};

static const struct field block_with_enabled[] = {
    FIELD_BOOL(kinds_block, enabled, "Whether it is on."),
    FIELD_END,
};

static const struct field no_fields[] = {FIELD_END};

static const struct {
    struct field field;
    const char *problem;
} tables[] = {
    {FIELD_UINT(table, number, "A number.", .fallback = "5", .min = "1", .max = "9"), ""},
    {FIELD_UINT(table, number, "A number"), "number: the help does not end with a full stop\n"},
    {FIELD_UINT(table, number, ""), "number: there is no help\n"},
    {FIELD_UINT(table, number, NULL), "number: there is no help\n"},
    {FIELD_UINT(table, number, "A.", .fallback = "5x"),
     "number: the default does not fit: expected a whole number, got \"5x\"\n"},
    {FIELD_UINT(table, number, "A.", .fallback = "0", .min = "1"),
     "number: the default does not fit: 0 is out of range; it must be at least 1\n"},
    {FIELD_UINT(table, number, "A.", .min = "one"),
     "number: the lower bound does not fit: expected a whole number, got \"one\"\n"},
    {FIELD_UINT(table, number, "A.", .max = "-1"),
     "number: the upper bound does not fit: -1 is out of range; it must be at least 0\n"},
    {FIELD_UINT(table, number, "A.", .required = true, .fallback = "1"),
     "number: a required field cannot have a default\n"},
    {FIELD_UINT(table, number, "A.", .given = FIELD_GIVEN(table, flag)), ""},
    {FIELD_UINT(table, number, "A.", .given = FIELD_GIVEN(table, flag), .fallback = "1"),
     "number: a field that may be absent cannot have a default\n"},
    {FIELD_BOOL(table, flag, "A.", .fallback = "yes"),
     "flag: the default does not fit: expected true or false, got \"yes\"\n"},
    {FIELD_DOUBLE(table, fraction, "A.", .fallback = "2", .max = "1.5"),
     "fraction: the default does not fit: 2 is out of range; it must be at most 1.5\n"},
    {FIELD_DURATION(table, time, "A.", .fallback = "5"),
     "time: the default does not fit: 5 has no unit; write 5s or 5ms\n"},
    {FIELD_DURATION(table, time, "A.", .fallback = "5s", .min = "1"),
     "time: the lower bound does not fit: 1 has no unit; write 1s or 1ms\n"},
    {FIELD_STRING(table, text, "A.", .fallback = "", .min = "1"),
     "text: this kind has no bounds\n"},
    {FIELD_ENUM(table, choice, "A.", some_names, .fallback = "b"), ""},
    {FIELD_ENUM(table, choice, "A.", some_names, .fallback = "c"),
     "choice: the default does not fit: \"c\" is not one of a, b\n"},
    {FIELD_ENUM(table, choice, "A.", no_names), "choice: there are no names to choose from\n"},
    {FIELD_STRINGS(table, list, "A.", .fallback = "a,b"), ""},
    {FIELD_PAIRS(table, pairs, "A.", .fallback = "a"), "pairs: this kind has no default\n"},
    {FIELD_OPTIONAL(table, block, kinds_block, block_of_optional, "A.", .fallback = "true"), ""},
    {FIELD_OPTIONAL(table, block, kinds_block, no_fields, "A.", .fallback = "on"),
     "block: the default of an optional block is true or false\n"},
    {FIELD_OPTIONAL(table, block, kinds_block, block_with_enabled, "A."),
     "block: the first member of an optional block is `bool enabled`, and not in its table\n"},
    {FIELD_BLOCK(table, block, kinds_block, NULL, "A."), "block: there is no block\n"},
    {FIELD_STRING(table, text, "A.", .inlined = true), "text: this kind has no block\n"},
};

static void tables_are_checked(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        const struct field fields[] = {tables[i].field, FIELD_END};
        struct text problems = {0};
        bool good = config_table_check(fields, &problems);
        assert_string_equal(text_string(&problems), tables[i].problem);
        assert_int_equal(good, problems.size == 0);
        text_deinit(&problems);
    }
}

static void a_name_that_is_there_twice_is_told(void **state)
{
    (void)state;
    static const struct field inlined[] = {FIELD_UINT(kinds_block, number, "A number."), FIELD_END};
    static const struct field fields[] = {
        FIELD_UINT(table, number, "A number."),
        FIELD_BLOCK(table, block, kinds_block, inlined, "A block.", .inlined = true),
        FIELD_END,
    };
    struct text problems = {0};
    assert_false(config_table_check(fields, &problems));
    assert_string_equal(problems.data,
                        "number: the name is used twice\nblock::number: the name is used twice\n");
    text_deinit(&problems);
}

static void the_tables_of_these_tests_are_good(void **state)
{
    (void)state;
    struct text problems = {0};
    for (size_t i = 0; fixture_types[i]; i++)
        config_table_check(fixture_types[i]->fields, &problems);
    config_table_check(config_telemetry_fields, &problems);
    assert_string_equal(text_string(&problems), "");
}

/* {endpoint, as it is printed} */
static const char *const addresses[][2] = {
    {"localhost:4317", "localhost:4317"},
    {"http://a:1/x", "http://a:1/x"},
    {"http://a:1/x?key=CANARY", "http://a:1/x?[REDACTED]"},
    {"https://user:CANARY@a:1", "https://[REDACTED]@a:1"},
    {"https://user:CANARY@a:1/@?key=CANARY", "https://[REDACTED]@a:1/@?[REDACTED]"},
};

static void secrets_of_addresses_are_not_printed(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
        struct text yaml = {0}, report = {0};
        text_printf(&yaml,
                    "receivers: {otlp: }\n"
                    "exporters: {otlp_grpc: {endpoint: '%s'}}\n"
                    "service: {pipelines: {traces: {receivers: [otlp], exporters: [otlp_grpc]}}}\n",
                    addresses[i][0]);
        struct config *config = fixture_load(text_string(&yaml), &report);
        assert_string_equal(text_string(&report), "");
        char *printed = print(config);
        assert_null(strstr(printed, "CANARY"));
        if (!strstr(printed, addresses[i][1]))
            fail_msg("%s in: %s", addresses[i][1], printed);
        free(printed);
        config_free(config);
        text_deinit(&yaml);
        text_deinit(&report);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_defaults_are_written_out),
        cmocka_unit_test(what_is_printed_loads_to_the_same),
        cmocka_unit_test(secrets_are_not_printed),
        cmocka_unit_test(secrets_of_addresses_are_not_printed),
        cmocka_unit_test(expanded_values_are_printed),
        cmocka_unit_test(the_reference_has_every_field),
        cmocka_unit_test(the_reference_describes_a_shared_block_once),
        cmocka_unit_test(the_components_are_listed_like_the_collectors),
        cmocka_unit_test(the_schema_is_json_and_complete),
        cmocka_unit_test(tables_are_checked),
        cmocka_unit_test(a_name_that_is_there_twice_is_told),
        cmocka_unit_test(the_tables_of_these_tests_are_good),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
