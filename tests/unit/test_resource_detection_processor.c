#include "core/data/json.h"
#include "core/pipeline/batch.h"
#include "tests/unit/expect_text.h"
#include "tests/unit/pipeline_fixture.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

extern const struct component_type resource_detection_processor_type;

#define SECOND_NS UINT64_C(1000000000)
#define STRING(key, value) "{\"key\":\"" key "\",\"value\":{\"stringValue\":\"" value "\"}}"
#define INT(key, value) "{\"key\":\"" key "\",\"value\":{\"intValue\":\"" value "\"}}"
#define SCHEMA "https://opentelemetry.io/schemas/1.40.0"

static int set_up(void **state)
{
    (void)state;
    unsetenv("OTEL_RESOURCE");
    return setenv("OTEL_RESOURCE_ATTRIBUTES", "", 1);
}

static void detect_attributes(const char *text)
{
    assert_int_equal(setenv("OTEL_RESOURCE_ATTRIBUTES", text, 1), 0);
}

static struct fixture_place *place(struct fixture *f, const char *settings, enum signal signal)
{
    struct text yaml = {0};
    text_printf(&yaml, "processors: {resource_detection: %s}", settings);
    struct fixture_place *made =
        fixture_place(f, &resource_detection_processor_type, "resource_detection",
                      text_string(&yaml), signal_name(signal), signal);
    text_deinit(&yaml);
    return made;
}

/* Passes the request through worker `index`; returns the text of what comes out last. */
static char *pass(struct fixture *f, struct node *node, const char *json, bool *same_bytes)
{
    struct buffer *request = fixture_encode(node->signal, json);
    struct text out = {0};
    struct probe probe;
    fixture_consume(f, node, buffer_slice(request), 1, &probe);
    assert_int_equal(probe.settled, 1);
    const struct recorded *got = &f->recorder.items[f->recorder.count - 1];
    struct slice bytes = slice_of(got->bytes, got->size);
    json_from_protobuf(got->signal == SIGNAL_TRACES ? JSON_TRACES_REQUEST : JSON_PROFILES_REQUEST,
                       bytes, &out);
    if (same_bytes)
        *same_bytes = slice_equal(bytes, buffer_slice(request));
    buffer_unref(request);
    return out.data;
}

#define SPANS "\"scopeSpans\":[{\"spans\":[{\"name\":\"s\"}]}]"

static void print_request(struct text *out, const char *attributes)
{
    text_printf(out,
                "{\"resourceSpans\":[{\"resource\":{%s%s%s%s\"droppedAttributesCount\":7}," SPANS
                "}]}",
                attributes[0] ? "\"attributes\":[" : "", attributes, attributes[0] ? "]" : "",
                attributes[0] ? "," : "");
}

/* {OTEL_RESOURCE_ATTRIBUTES, override, attributes before, attributes after (NULL: the same)} */
static const struct edit {
    const char *detected;
    bool override;
    const char *before, *after;
} edits[] = {
    {"", true, STRING("a", "x"), NULL},
    {"a=1", true, "", STRING("a", "1")},
    {"a=1", true, STRING("b", "2"), STRING("b", "2") "," STRING("a", "1")},
    {"a=1", true, STRING("a", "1"), NULL},
    {"a=1", true, STRING("a", "2"), STRING("a", "1")},
    {"a=1", true, INT("a", "1"), STRING("a", "1")},
    {"a=1", false, STRING("a", "2"), NULL},
    {"a=1,b=2", false, STRING("a", "2"), STRING("a", "2") "," STRING("b", "2")},
    {"a=1,b=2,c=3", true, STRING("b", "x"),
     STRING("b", "2") "," STRING("a", "1") "," STRING("c", "3")},
    {"a=1,b=2", true, STRING("b", "x") "," STRING("z", "y") "," STRING("a", "x"),
     STRING("b", "2") "," STRING("z", "y") "," STRING("a", "1")},
    /* of a repeated key the first one counts */
    {"a=1", true, STRING("a", "2") "," STRING("a", "3"), STRING("a", "1") "," STRING("a", "3")},
};

static void attributes_are_merged(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        const struct edit *edit = &edits[i];
        struct fixture f;
        struct text before = {0}, after = {0};
        bool same_bytes = false;
        detect_attributes(edit->detected);
        print_request(&before, edit->before);
        print_request(&after, edit->after ? edit->after : edit->before);
        fixture_init(&f, 1);
        struct fixture_place *at =
            place(&f, edit->override ? "" : "{override: false}", SIGNAL_TRACES);
        char *got = pass(&f, at->nodes[0], text_string(&before), &same_bytes);
        expect_text_of(edit->detected, got, text_string(&after));
        assert_int_equal(same_bytes, edit->after == NULL);
        free(got);
        fixture_deinit(&f);
        text_deinit(&before);
        text_deinit(&after);
    }
}

#define MADE "\"resource\":{\"attributes\":[" STRING("a", "1") "," STRING("b", "2") "]}"

static void a_missing_resource_is_made(void **state)
{
    (void)state;
    struct fixture f;
    detect_attributes("a=1,b=2");
    fixture_init(&f, 1);
    struct fixture_place *at = place(&f, "", SIGNAL_TRACES);
    char *got =
        pass(&f, at->nodes[0],
             "{\"resourceSpans\":[{" SPANS
             "},{\"resource\":{\"attributes\":[" STRING("b", "2") "]}," SPANS "},{" SPANS "}]}",
             NULL);
    expect_text(got,
                "{\"resourceSpans\":[{" MADE "," SPANS "},{\"resource\":{\"attributes\":[" STRING(
                    "b", "2") "," STRING("a", "1") "]}," SPANS "},{" MADE "," SPANS "}]}");
    free(got);
    fixture_deinit(&f);
}

static void profiles_are_treated_alike(void **state)
{
    (void)state;
    struct fixture f;
    detect_attributes("a=1");
    fixture_init(&f, 1);
    struct fixture_place *at = place(&f, "", SIGNAL_PROFILES);
    char *got = pass(&f, at->nodes[0],
                     "{\"resourceProfiles\":[{\"resource\":{\"attributes\":[" STRING(
                         "a", "0") "]},\"scopeProfiles\":[{\"profiles\":[{\"samples\":[{}]}]}]}],"
                                   "\"dictionary\":{\"stringTable\":[\"\"]}}",
                     NULL);
    assert_non_null(strstr(got, "\"resource\":{\"attributes\":[" STRING("a", "1") "]}"));
    free(got);
    fixture_deinit(&f);
}

/* A detector that names a schema sets it where the request names none. */
static void the_schema_is_set_once(void **state)
{
    (void)state;
    struct fixture f;
    char host[256] = "";
    struct text wanted = {0};
    bool same_bytes = false;
    assert_int_equal(gethostname(host, sizeof host - 1), 0);
    fixture_init(&f, 1);
    struct fixture_place *at =
        place(&f, "{detectors: [env, system], system: {hostname_sources: [os]}}", SIGNAL_TRACES);
    text_printf(&wanted,
                "{\"resourceSpans\":[{\"resource\":{\"attributes\":["
                "{\"key\":\"host.name\",\"value\":{\"stringValue\":\"%s\"}}," STRING(
                    "os.type", "linux") "]}," SPANS ",\"schemaUrl\":\"" SCHEMA "\"}]}",
                host);
    char *got = pass(&f, at->nodes[0], "{\"resourceSpans\":[{" SPANS "}]}", NULL);
    expect_text(got, text_string(&wanted));
    free(pass(&f, at->nodes[0], got, &same_bytes));
    assert_true(same_bytes); /* everything is there already */
    free(got);
    got = pass(&f, at->nodes[0], "{\"resourceSpans\":[{" SPANS ",\"schemaUrl\":\"x\"}]}", NULL);
    assert_non_null(strstr(got, "\"schemaUrl\":\"x\""));
    assert_null(strstr(got, SCHEMA));
    free(got);
    text_deinit(&wanted);
    fixture_deinit(&f);
}

static void expect_attribute(struct fixture *f, struct node *node, const char *wanted)
{
    char *got = pass(f, node, "{\"resourceSpans\":[{" SPANS "}]}", NULL);
    if (!strstr(got, wanted))
        fail_msg("want %s\n got %s", wanted, got);
    free(got);
}

static void a_refresh_reaches_every_node(void **state)
{
    (void)state;
    struct fixture f;
    detect_attributes("a=1");
    fixture_init(&f, 2);
    struct fixture_place *first = place(&f, "{refresh_interval: 10s}", SIGNAL_TRACES);
    struct fixture_place *second =
        fixture_place(&f, &resource_detection_processor_type, "resource_detection", NULL,
                      "traces/2", SIGNAL_TRACES);
    for (int i = 0; i < 2; i++)
        expect_attribute(&f, first->nodes[i], STRING("a", "1"));
    detect_attributes("a=2");
    fixture_advance(&f, 9 * SECOND_NS);
    expect_attribute(&f, first->nodes[1], STRING("a", "1"));
    fixture_advance(&f, SECOND_NS);
    for (int i = 0; i < 2; i++) {
        expect_attribute(&f, first->nodes[i], STRING("a", "2"));
        expect_attribute(&f, second->nodes[i], STRING("a", "2"));
    }
    detect_attributes("malformed"); /* what was found before stays */
    fixture_advance(&f, 10 * SECOND_NS);
    expect_attribute(&f, first->nodes[0], STRING("a", "2"));
    detect_attributes("a=3");
    fixture_advance(&f, 10 * SECOND_NS);
    expect_attribute(&f, second->nodes[1], STRING("a", "3"));
    fixture_deinit(&f);
}

static void mistakes_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *settings, *wanted;
    } mistakes[] = {
        {"{detectors: [sytem]}", "unknown detector \"sytem\"; did you mean \"system\"?"},
        {"{detectors: [kubernetes]}", "unknown detector \"kubernetes\"; profcol has env, system"},
        {"{system: {hostname_sources: [file]}}", "\"file\" is none of os, dns, cname and lookup"},
        {"{ec2: {tags: ['(']}}", "\"(\" is not a regular expression, at character 2"},
        {"{azure: {tags: ['a', '[']}}", "\"[\" is not a regular expression"},
        {"{system: {resource_attributes: {host.nam: {enabled: true}}}}", "host.name"},
        {"{ec2: {resource_attributes: {os.type: {enabled: true}}}}", "os.type"},
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
        fixture_refuses(&resource_detection_processor_type, mistakes[i].settings,
                        mistakes[i].wanted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(attributes_are_merged, set_up),
        cmocka_unit_test_setup(a_missing_resource_is_made, set_up),
        cmocka_unit_test_setup(profiles_are_treated_alike, set_up),
        cmocka_unit_test_setup(the_schema_is_set_once, set_up),
        cmocka_unit_test_setup(a_refresh_reaches_every_node, set_up),
        cmocka_unit_test(mistakes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
