#include "core/data/json.h"
#include "core/data/signals.h"
#include "tests/unit/expect_text.h"
#include "tests/unit/pipeline_fixture.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

extern const struct component_type resource_processor_type;

/* Runs the request through the processor; the text of what comes out. */
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

#define STRING(key, value) "{\"key\":\"" key "\",\"value\":{\"stringValue\":\"" value "\"}}"
#define ATTRIBUTE(key, value) "{\"key\":\"" key "\",\"value\":{" value "}}"

/* {actions, attributes before, attributes after} */
static const struct edit {
    const char *actions;
    const char *before;
    const char *after; /* NULL: the same */
} edits[] = {
    /* insert, update, upsert */
    {"{key: a, action: insert, value: x}", "", STRING("a", "x")},
    {"{key: a, action: insert, value: x}", STRING("a", "y"), NULL},
    {"{key: a, action: update, value: x}", STRING("b", "y"), NULL},
    {"{key: a, action: update, value: x}", STRING("a", "y") "," STRING("b", "z"),
     STRING("a", "x") "," STRING("b", "z")},
    {"{key: a, action: UPSERT, value: x}", STRING("b", "y"), STRING("b", "y") "," STRING("a", "x")},
    {"{key: a, action: upsert, value: x}", STRING("b", "y") "," STRING("a", ""),
     STRING("b", "y") "," STRING("a", "x")},
    /* the types of YAML */
    {"{key: a, action: insert, value: 5}", "", ATTRIBUTE("a", "\"intValue\":\"5\"")},
    {"{key: a, action: insert, value: -5}", "", ATTRIBUTE("a", "\"intValue\":\"-5\"")},
    {"{key: a, action: insert, value: '5'}", "", STRING("a", "5")},
    {"{key: a, action: insert, value: 5.0}", "", ATTRIBUTE("a", "\"doubleValue\":5")},
    {"{key: a, action: insert, value: 0.0}", "", ATTRIBUTE("a", "\"doubleValue\":0")},
    {"{key: a, action: insert, value: []}", "", ATTRIBUTE("a", "\"arrayValue\":{}")},
    {"{key: a, action: insert, value: 1e3}", "", ATTRIBUTE("a", "\"doubleValue\":1000")},
    {"{key: a, action: insert, value: true}", "", ATTRIBUTE("a", "\"boolValue\":true")},
    {"{key: a, action: insert, value: \"\"}", "", STRING("a", "")},
    {"{key: a, action: insert, value: [1, x]}", "",
     ATTRIBUTE("a", "\"arrayValue\":{\"values\":[{\"intValue\":\"1\"},{\"stringValue\":\"x\"}]}")},
    {"{key: a, action: insert, value: {k: false}}", "",
     ATTRIBUTE("a",
               "\"kvlistValue\":{\"values\":[{\"key\":\"k\",\"value\":{\"boolValue\":false}}]}")},
    /* other sources */
    {"{key: a, action: insert, from_attribute: b}", STRING("b", "y"),
     STRING("b", "y") "," STRING("a", "y")},
    {"{key: a, action: insert, from_attribute: b}", STRING("c", "y"), NULL},
    {"{key: a, action: insert, from_attribute: b, default_value: 1}", STRING("c", "y"),
     STRING("c", "y") "," ATTRIBUTE("a", "\"intValue\":\"1\"")},
    {"{key: a, action: insert, from_context: metadata.x}", STRING("c", "y"), NULL},
    /* delete */
    {"{key: a, action: delete}", STRING("a", "1") "," STRING("b", "2") "," STRING("a", "3"),
     STRING("b", "2")},
    {"{pattern: '^k8s\\.', action: delete}",
     STRING("k8s.pod", "1") "," STRING("b", "2") "," STRING("xk8s.", "3"),
     STRING("b", "2") "," STRING("xk8s.", "3")},
    {"{key: b, pattern: '^a', action: delete}",
     STRING("a", "1") "," STRING("b", "2") "," STRING("c", "3"), STRING("c", "3")},
    {"{key: a, action: delete}, {key: a, action: insert, value: n}", STRING("a", "1"),
     STRING("a", "n")},
    {"{key: a, action: insert, value: n}, {key: a, action: delete}", STRING("b", "1"), NULL},
    /* hash */
    {"{key: a, action: hash}", STRING("a", "abc"),
     STRING("a", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")},
    {"{pattern: a, action: hash}", ATTRIBUTE("xa", "\"boolValue\":true"),
     STRING("xa", "4bf5122f344554c53bde2ebb8cd2b7e3d1600ad631c385a5d7cce23c7785459a")},
    {"{key: a, action: hash}", ATTRIBUTE("a", "\"intValue\":\"1\""),
     STRING("a", "7c9fa136d4413fa6173637e883b6998d32e1d675f88cddff9dcbcf331820f4b8")},
    {"{key: a, action: hash}", ATTRIBUTE("a", "\"doubleValue\":1"),
     STRING("a", "6c3c396ed6b5c36dcae172271f462051b1266b851e92df3deea8ac65478fd712")},
    {"{key: a, action: hash}", ATTRIBUTE("a", "\"arrayValue\":{}"), STRING("a", "")},
    {"{key: a, action: hash}", STRING("b", "abc"), NULL},
    /* extract */
    {"{key: a, action: extract, pattern: '^(?P<host>[^:]+):(?P<port>\\d+)(?P<rest>x)?$'}",
     STRING("a", "h:80"),
     STRING("a", "h:80") "," STRING("host", "h") "," STRING("port", "80") "," STRING("rest", "")},
    {"{key: a, action: extract, pattern: '(?P<host>z)'}", STRING("a", "h:80"), NULL},
    {"{key: a, action: extract, pattern: '(?P<host>.*)'}", ATTRIBUTE("a", "\"intValue\":\"1\""),
     NULL},
    {"{key: a, action: extract, pattern: '(?P<a>.)'}", STRING("a", "xyz"), STRING("a", "x")},
    /* a match that would take for ever is no match */
    {"{key: a, action: extract, pattern: '(?P<x>(?:a+)+)$'}",
     STRING("a", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"), NULL},
    /* convert */
    {"{key: a, action: convert, converted_type: int}", STRING("a", "12"),
     ATTRIBUTE("a", "\"intValue\":\"12\"")},
    {"{key: a, action: convert, converted_type: int}", STRING("a", "12x"), NULL},
    {"{key: a, action: convert, converted_type: int}", STRING("a", " 12"), NULL},
    {"{key: a, action: convert, converted_type: int}", ATTRIBUTE("a", "\"doubleValue\":2.9"),
     ATTRIBUTE("a", "\"intValue\":\"2\"")},
    {"{key: a, action: convert, converted_type: int}", ATTRIBUTE("a", "\"doubleValue\":1e+300"),
     NULL},
    {"{key: a, action: convert, converted_type: double}", STRING("a", "1.5"),
     ATTRIBUTE("a", "\"doubleValue\":1.5")},
    {"{key: a, action: convert, converted_type: double}", ATTRIBUTE("a", "\"boolValue\":true"),
     ATTRIBUTE("a", "\"doubleValue\":1")},
    {"{key: a, action: convert, converted_type: string}", ATTRIBUTE("a", "\"intValue\":\"-3\""),
     STRING("a", "-3")},
    {"{key: a, action: convert, converted_type: string}", ATTRIBUTE("a", "\"doubleValue\":0.1"),
     STRING("a", "0.1")},
    {"{key: a, action: convert, converted_type: string}", ATTRIBUTE("a", "\"arrayValue\":{}"),
     NULL},
};

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
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        for (int signal = 0; signal < SIGNAL_COUNT; signal++) {
            bool same_bytes;
            char *before = request_of((enum signal)signal, edits[i].before);
            char *after =
                request_of((enum signal)signal, edits[i].after ? edits[i].after : edits[i].before);
            char *got = process((enum signal)signal, edits[i].actions, before, &same_bytes);
            expect_text_of(edits[i].actions, got, after);
            if (!edits[i].after && strstr(edits[i].actions, "}, {") == NULL)
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
    {"{attributes: [{key: a, action: insert, from_context: x}]}",
     "neither metadata.NAME nor client.address"},
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
                      "metadata.X-Tenant}, "
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
    check_from_request("blue", "{\"resourceSpans\":[{\"resource\":{\"attributes\":[" STRING(
                                   "t", "blue") "," STRING("c", "192.0.2.7") "]}}]}");
    /* A backend would refuse the whole request for a string that is no UTF-8. */
    check_from_request("bl\xfc", "{\"resourceSpans\":[{\"resource\":{\"attributes\":[" STRING(
                                     "c", "192.0.2.7") "]}}]}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edits_resources),
        cmocka_unit_test(makes_a_resource),
        cmocka_unit_test(refuses_mistakes),
        cmocka_unit_test(takes_values_from_the_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
