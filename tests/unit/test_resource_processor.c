#include "core/data/json.h"
#include "core/data/signals.h"
#include "tests/unit/attribute_edits.h"
#include "tests/unit/expect_text.h"
#include "tests/unit/pipeline_fixture.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

extern const struct component_type resource_processor_type;

/* Runs the request through the processor. Returns its output as text. */
static char *process(enum signal signal, const char *actions, const char *json, bool *same_bytes)
{
    struct fixture f;
    struct text yaml = {0}, out = {0};
    fixture_init(&f, 1);
    text_printf(&yaml, "processors: {resource: {attributes: [%s]}}", actions);
    struct fixture_place *place = fixture_place(&f, &resource_processor_type, "resource",
                                                text_string(&yaml), signal_name(signal), signal);
    struct buffer *request = fixture_encode(signal, json);
    struct probe probe;
    fixture_consume(&f, place->nodes[0], buffer_slice(request), 1, &probe);
    assert_int_equal(probe.settled, 1);
    assert_int_equal(f.recorder.count, 1);
    struct slice got = slice_of(f.recorder.items[0].bytes, f.recorder.items[0].size);
    json_from_protobuf(signal_traits(signal)->request, got, &out);
    if (same_bytes)
        *same_bytes = slice_equal(got, buffer_slice(request));
    fixture_deinit(&f);
    buffer_unref(request);
    text_deinit(&yaml);
    return out.data;
}

static char *request_of(enum signal signal, const char *attributes)
{
    static const char *const groups[SIGNAL_COUNT] = {"Spans", "Profiles", "Metrics", "Logs"};
    struct text out = {0};
    text_printf(&out,
                "{\"resource%s\":[{\"resource\":{%s%s%s\"droppedAttributesCount\":7},\"scope%s\":[{"
                "\"scope\":{\"name\":"
                "\"n\"}}],\"schemaUrl\":\"s\"}]}",
                groups[signal], *attributes ? "\"attributes\":[" : "", attributes,
                *attributes ? "]," : "", groups[signal]);
    return out.data;
}

static void edits_resources(void **state)
{
    (void)state;
    for (size_t i = 0; i < ATTRIBUTE_EDITS; i++) {
        for (int signal = 0; signal < SIGNAL_COUNT; signal++) {
            bool same_bytes;
            char *before = request_of((enum signal)signal, attribute_edits[i].before);
            char *after = request_of((enum signal)signal, attribute_edits[i].after
                                                              ? attribute_edits[i].after
                                                              : attribute_edits[i].before);
            char *got =
                process((enum signal)signal, attribute_edits[i].actions, before, &same_bytes);
            expect_text_of(attribute_edits[i].actions, got, after);
            if (!attribute_edits[i].after && strstr(attribute_edits[i].actions, "}, {") == NULL)
                assert_true(same_bytes);
            free(before);
            free(after);
            free(got);
        }
    }
}

static void makes_a_resource(void **state)
{
    (void)state;
    char *got = process(SIGNAL_TRACES, "{key: a, action: upsert, value: 1}",
                        "{\"resourceSpans\":[{},{\"schemaUrl\":\"s\"}]}", NULL);
    expect_text(
        got,
        "{\"resourceSpans\":["
        "{\"resource\":{\"attributes\":[" ATTRIBUTE(
            "a", "\"intValue\":\"1\"") "]}},"
                                       "{\"resource\":{\"attributes\":[" ATTRIBUTE(
                                           "a", "\"intValue\":\"1\"") "]},\"schemaUrl\":\"s\"}]}");
    free(got);
    bool same_bytes;
    got =
        process(SIGNAL_TRACES, "{key: a, action: delete}", "{\"resourceSpans\":[{}]}", &same_bytes);
    assert_true(same_bytes);
    free(got);
}

/* The texts of attributes that came by reference are in the dictionary, too. */
static void what_is_taken_away_leaves_the_dictionary(void **state)
{
    (void)state;
    static const char request[] = "{\"resourceProfiles\":[{\"resource\":{\"attributes\":[" STRING(
        "secret_key",
        "hidden") "]},"
                  "\"scopeProfiles\":[{\"profiles\":[{\"sampleType\":{\"typeStrindex\":1}}]}]}],"
                  "\"dictionary\":{\"stringTable\":[\"\",\"cpu\",\"secret_key\",\"hidden\"]}}";
    static const char *const actions[] = {
        "{key: secret_key, action: delete}", "{key: secret_key, action: hash}",
        "{key: secret_key, action: upsert, value: x}", "{key: other, action: insert, value: x}"};
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
        char *got = process(SIGNAL_PROFILES, actions[i], request, NULL);
        bool takes_away = !strstr(actions[i], "insert");
        assert_non_null(strstr(got, "\"cpu\""));
        assert_int_equal(strstr(got, "\"hidden\"") == NULL, takes_away);
        assert_int_equal(strstr(got, "\"secret_key\",\"hidden\"") == NULL, takes_away);
        free(got);
    }
}

/* ---- configuration ---- */

static const struct mistake {
    const char *settings;
    const char *error;
} mistakes[] = {
    {"{}", "missing required field \"attributes\""},
    {"{attributes: []}", "missing required field \"attributes\""},
    {"{attributes: [{key: a, action: upsrt, value: 1}]}", "upsert"},
    {"{attributes: [{key: a, value: 1}]}", "action"},
    {"{attributes: [{key: a, action: insert}]}",
     "insert needs one of value, from_attribute or from_context"},
    {"{attributes: [{key: a, action: insert, value: 1, from_attribute: b}]}",
     "insert takes only one of"},
    {"{attributes: [{action: insert, value: 1}]}", "insert needs a key"},
    {"{attributes: [{action: delete}]}", "delete needs a key or a pattern"},
    {"{attributes: [{key: a, action: delete, value: 1}]}", "delete does not use value"},
    {"{attributes: [{key: a, action: insert, value: 1, pattern: x}]}",
     "insert does not use a pattern"},
    {"{attributes: [{key: a, action: extract}]}", "extract needs a pattern"},
    {"{attributes: [{key: a, action: extract, pattern: x}]}", "named groups"},
    {"{attributes: [{key: a, action: extract, pattern: '(?P<a>x)(y)'}]}", "has no name"},
    {"{attributes: [{key: a, action: delete, pattern: 'x('}]}",
     "attributes::0::pattern: not a regular expression, at character 3"},
    {"{attributes: [{key: a, action: convert}]}", "convert needs a converted_type"},
};

static void refuses_mistakes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++)
        fixture_refuses(&resource_processor_type, mistakes[i].settings, mistakes[i].error);
}

/* ---- from_context ---- */

static void check_from_request(const char *tenant, const char *expected)
{
    struct fixture f;
    fixture_init(&f, 1);
    struct fixture_place *place =
        fixture_place(&f, &resource_processor_type, "resource",
                      "processors: {resource: {attributes: [{key: t, action: upsert, from_context: "
                      "metadata.X-Tenant}, {key: u, action: upsert, from_context: X-Tenant}, "
                      "{key: d, action: insert, default_value: e}, "
                      "{key: c, action: upsert, from_context: client.address}]}}",
                      "traces", SIGNAL_TRACES);
    struct buffer *request =
        fixture_encode(SIGNAL_TRACES, "{\"resourceSpans\":[{\"resource\":{}}]}");
    struct context *context = context_new();
    context->entries = arena_array(&context->arena, 1, sizeof *context->entries);
    context->entries[0] = (struct context_entry){"x-tenant", tenant};
    context->entry_count = 1;
    snprintf(context->peer, sizeof context->peer, "192.0.2.7");
    struct batch *batch = batch_new(&f.workers[0], SIGNAL_TRACES, request, 0, NULL, context);
    place->nodes[0]->component->type->consume(place->nodes[0], batch);
    struct text out = {0};
    json_from_protobuf(JSON_TRACES_REQUEST,
                       slice_of(f.recorder.items[0].bytes, f.recorder.items[0].size), &out);
    expect_text(text_string(&out), expected);
    text_deinit(&out);
    fixture_deinit(&f);
}

static void takes_values_from_the_request(void **state)
{
    (void)state;
    check_from_request(
        "blue",
        "{\"resourceSpans\":[{\"resource\":{\"attributes\":[" STRING("t", "blue") "," STRING(
            "u", "blue") "," STRING("d", "e") "," STRING("c", "192.0.2.7") "]}}]}");
    /* A backend would refuse the whole request because of a string that is not UTF-8. */
    check_from_request("bl\xfc", "{\"resourceSpans\":[{\"resource\":{\"attributes\":[" STRING(
                                     "d", "e") "," STRING("c", "192.0.2.7") "]}}]}");
}

/* Whether a resource of this size is edited in a job, and so is forwarded later. */
static bool is_job(const char *action, int kib)
{
    struct fixture f;
    struct probe probe;
    struct text yaml = {0}, json = {0};
    fixture_init(&f, 1);
    text_printf(&yaml, "processors: {resource: {attributes: [%s]}}", action);
    struct fixture_place *place = fixture_place(&f, &resource_processor_type, "resource",
                                                text_string(&yaml), "traces", SIGNAL_TRACES);
    text_printf(&json,
                "{\"resourceSpans\":[{\"resource\":{\"attributes\":[" STRING(
                    "k", "%0*d") "]},\"scopeSpans\":[{\"spans\":[{}]}]}]}",
                kib * 1024, 0);
    fixture_consume_json(&f, place->nodes[0], text_string(&json), 1, &probe);
    bool is_later = f.recorder.count == 0;
    assert_int_equal(fixture_is_idle(place->nodes[0]), !is_later);
    fixture_advance(&f, 0);
    assert_int_equal(f.recorder.count, 1);
    char *got = fixture_recorded_json(&f, 0);
    assert_null(strstr(got, "\"k\""));
    free(got);
    text_deinit(&yaml);
    text_deinit(&json);
    fixture_deinit(&f);
    return is_later;
}

static void large_requests_are_edited_in_jobs(void **state)
{
    (void)state;
    static const char remove[] = "{key: k, action: delete}";
    static const char match[] = "{pattern: '^k', action: delete}";
    assert_false(is_job(remove, 100));
    assert_true(is_job(remove, 1024));
    assert_false(is_job(match, 15));
    assert_true(is_job(match, 16));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edits_resources),
        cmocka_unit_test(makes_a_resource),
        cmocka_unit_test(what_is_taken_away_leaves_the_dictionary),
        cmocka_unit_test(refuses_mistakes),
        cmocka_unit_test(takes_values_from_the_request),
        cmocka_unit_test(large_requests_are_edited_in_jobs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
