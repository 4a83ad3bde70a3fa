#include "core/data/json.h"
#include "core/data/signals.h"
#include "tests/unit/attribute_edits.h"
#include "tests/unit/expect_text.h"
#include "tests/unit/pipeline_fixture.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

extern const struct component_type attributes_processor_type;

/* Runs a request through the processor. Returns its output as text. */
static char *process(enum signal signal, const char *settings, const char *json, bool *same_bytes)
{
    struct fixture f;
    struct text yaml = {0}, out = {0};
    fixture_init(&f, 1);
    text_printf(&yaml, "processors: {attributes: {%s}}", settings);
    struct fixture_place *place = fixture_place(&f, &attributes_processor_type, "attributes",
                                                text_string(&yaml), signal_name(signal), signal);
    struct buffer *request = fixture_encode(signal, json);
    struct probe probe;
    fixture_consume(&f, place->nodes[0], buffer_slice(request), 1, &probe);
    if (probe.settled == 0)
        fixture_advance(&f, 0); /* a job */
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

/* ---- spans ---- */

static char *span_with(const char *attributes)
{
    struct text out = {0};
    text_printf(&out,
                "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"name\":\"n\"%s%s%s,"
                "\"droppedAttributesCount\":7}]}]}]}",
                *attributes ? ",\"attributes\":[" : "", attributes, *attributes ? "]" : "");
    return out.data;
}

static void edits_spans(void **state)
{
    (void)state;
    for (size_t i = 0; i < ATTRIBUTE_EDITS; i++) {
        const struct attribute_edit *edit = &attribute_edits[i];
        struct text settings = {0};
        bool same_bytes;
        text_printf(&settings, "actions: [%s]", edit->actions);
        char *before = span_with(edit->before);
        char *got = process(SIGNAL_TRACES, text_string(&settings), before, &same_bytes);
        char *after = span_with(edit->after ? edit->after : edit->before);
        /* The attributes that are added come last, behind other fields of the span. */
        char *tail = strstr(got, ",\"droppedAttributesCount\":7");
        assert_non_null(tail);
        expect_text_of(edit->actions, got, after);
        if (!edit->after && strstr(edit->actions, "}, {") == NULL)
            assert_true(same_bytes);
        text_deinit(&settings);
        free(before);
        free(after);
        free(got);
    }
}

/* ---- samples ---- */

/* Returns a request with two samples that share these attributes, which are written as of a span.
 * Each gets an entry of the attribute table. */
static char *samples_with(const char *attributes)
{
    struct text array = {0}, strings = {0}, table = {0}, indices = {0}, out = {0};
    text_printf(&array, "[%s]", attributes);
    json_t *list = json_loads(text_string(&array), JSON_DECODE_ANY, NULL);
    assert_non_null(list);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *attribute = json_array_get(list, i);
        char *value = json_dumps(json_object_get(attribute, "value"), JSON_COMPACT);
        text_printf(&strings, ",\"%s\"", json_string_value(json_object_get(attribute, "key")));
        text_printf(&table, ",{\"keyStrindex\":%zu,\"value\":%s}", i + 1, value);
        text_printf(&indices, "%s%zu", i ? "," : "", i + 1);
        free(value);
    }
    text_printf(&out,
                "{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{\"samples\":["
                "{\"attributeIndices\":[%s],\"values\":[\"3\"]},"
                "{\"attributeIndices\":[%s],\"values\":[\"4\"]}]}]}]}],"
                "\"dictionary\":{\"stringTable\":[\"\"%s],\"attributeTable\":[{}%s]}}",
                text_string(&indices), text_string(&indices), text_string(&strings),
                text_string(&table));
    json_decref(list);
    text_deinit(&array);
    text_deinit(&strings);
    text_deinit(&table);
    text_deinit(&indices);
    return out.data;
}

static json_t *path(json_t *from, const char *first, const char *second, const char *third)
{
    json_t *groups = json_array_get(json_object_get(from, first), 0);
    json_t *scopes = json_array_get(json_object_get(groups, second), 0);
    return json_array_get(json_object_get(scopes, third), 0);
}

/* Returns the attributes of a sample, written as those of a span. */
static json_t *attributes_of(json_t *request, size_t sample)
{
    json_t *profile = path(request, "resourceProfiles", "scopeProfiles", "profiles");
    json_t *dictionary = json_object_get(request, "dictionary");
    const json_t *strings = json_object_get(dictionary, "stringTable");
    const json_t *table = json_object_get(dictionary, "attributeTable");
    const json_t *indices = json_object_get(
        json_array_get(json_object_get(profile, "samples"), sample), "attributeIndices");
    json_t *out = json_array();
    for (size_t i = 0; i < json_array_size(indices); i++) {
        size_t index = (size_t)json_integer_value(json_array_get(indices, i));
        const json_t *entry = json_array_get(table, index);
        size_t key = (size_t)json_integer_value(json_object_get(entry, "keyStrindex"));
        json_t *value = json_object_get(entry, "value");
        json_array_append_new(out, json_pack("{s:O, s:O}", "key", json_array_get(strings, key),
                                             "value", value ? value : json_object()));
    }
    return out;
}

static void edits_samples(void **state)
{
    (void)state;
    for (size_t i = 0; i < ATTRIBUTE_EDITS; i++) {
        const struct attribute_edit *edit = &attribute_edits[i];
        struct text settings = {0}, wanted = {0};
        bool same_bytes;
        text_printf(&settings, "actions: [%s]", edit->actions);
        text_printf(&wanted, "[%s]", edit->after ? edit->after : edit->before);
        char *before = samples_with(edit->before);
        char *got = process(SIGNAL_PROFILES, text_string(&settings), before, &same_bytes);
        json_t *request = json_loads(got, 0, NULL);
        json_t *expected = json_loads(text_string(&wanted), 0, NULL);
        for (size_t sample = 0; sample < 2; sample++) {
            json_t *found = attributes_of(request, sample);
            char *text = json_dumps(found, JSON_COMPACT);
            if (!json_equal(found, expected))
                expect_text_of(edit->actions, text, text_string(&wanted));
            free(text);
            json_decref(found);
        }
        if (!edit->after && strstr(edit->actions, "}, {") == NULL)
            assert_true(same_bytes);
        json_decref(request);
        json_decref(expected);
        text_deinit(&settings);
        text_deinit(&wanted);
        free(before);
        free(got);
    }
}

/* What was deleted or hashed is in no table of the dictionary. */
static void deleted_texts_do_not_leave(void **state)
{
    (void)state;
    char *before = samples_with(
        STRING("topsecret", "hunter2") "," STRING("other", "kept") "," STRING("user", "alice"));
    char *got = process(SIGNAL_PROFILES,
                        "actions: [{key: topsecret, action: delete}, {key: user, action: hash}]",
                        before, NULL);
    assert_non_null(strstr(got, "kept"));
    assert_non_null(strstr(got, "user"));
    assert_null(strstr(got, "topsecret"));
    assert_null(strstr(got, "hunter2"));
    assert_null(strstr(got, "alice"));
    free(before);
    free(got);
}

/* ---- include and exclude ---- */

/* {include or exclude, the names of the spans that are changed} */
static const struct choice {
    const char *settings;
    const char *names;
} choices[] = {
    {"", "abcdef"},
    {"include: {match_type: strict, services: [shop]}", "abcd"},
    {"include: {match_type: strict, services: [sho]}", ""},
    {"include: {match_type: regexp, services: [sho]}", "abcd"},
    {"include: {match_type: regexp, services: ['^nil', '^sh']}", "abcd"},
    {"include: {match_type: strict, services: [<nil-service-name>]}", "ef"},
    {"include: {match_type: strict, span_names: [a, e]}", "ae"},
    {"include: {match_type: regexp, span_names: ['[bc]']}", "bc"},
    {"include: {match_type: strict, span_kinds: [SPAN_KIND_SERVER]}", "ae"},
    {"include: {match_type: regexp, span_kinds: [CLIENT, PRODUCER]}", "bd"},
    {"include: {match_type: strict, attributes: [{key: k}]}", "acdf"},
    {"include: {match_type: strict, attributes: [{key: k, value: v}]}", "a"},
    {"include: {match_type: strict, attributes: [{key: k, value: 5}]}", "c"},
    {"include: {match_type: strict, attributes: [{key: k, value: 5.0}]}", "d"},
    {"include: {match_type: strict, attributes: [{key: k, value: '5'}]}", ""},
    {"include: {match_type: strict, attributes: [{key: k, value: true}]}", "f"},
    {"include: {match_type: regexp, attributes: [{key: k, value: '^5$'}]}", "cd"},
    {"include: {match_type: regexp, attributes: [{key: k, value: 'tr|v'}]}", "af"},
    {"include: {match_type: strict, attributes: [{key: k}, {key: other}]}", "c"},
    {"include: {match_type: strict, resources: [{key: service.name, value: shop}]}", "abcd"},
    {"include: {match_type: regexp, resources: [{key: service.name, value: '^s.*p$'}]}", "abcd"},
    {"include: {match_type: strict, libraries: [{name: lib}]}", "ab"},
    {"include: {match_type: strict, libraries: [{name: lib, version: v1}]}", "ab"},
    {"include: {match_type: strict, libraries: [{name: lib, version: ''}]}", ""},
    {"include: {match_type: strict, libraries: [{name: other, version: ''}]}", "cd"},
    {"include: {match_type: regexp, libraries: [{name: 'l.b', version: 'v\\d'}]}", "ab"},
    {"include: {match_type: strict, services: [shop], span_names: [a, f]}", "a"},
    {"exclude: {match_type: strict, services: [shop]}", "ef"},
    {"exclude: {match_type: strict, span_names: [a, b], services: [shop]}", "cdef"},
    {"include: {match_type: strict, services: [shop]}, exclude: {match_type: strict, span_names: "
     "[b, d]}",
     "ac"},
};

/* With ' for ". */
static const char chosen_from[] =
    "{'resourceSpans':["
    "{'resource':{'attributes':[{'key':'service.name','value':{'stringValue':'shop'}}]},"
    "'scopeSpans':["
    "{'scope':{'name':'lib','version':'v1'},'spans':["
    "{'name':'a','kind':2,'attributes':[{'key':'k','value':{'stringValue':'v'}}]},"
    "{'name':'b','kind':3}]},"
    "{'scope':{'name':'other'},'spans':["
    "{'name':'c','kind':1,'attributes':[{'key':'k','value':{'intValue':'5'}},"
    "{'key':'other','value':{'stringValue':''}}]},"
    "{'name':'d','kind':4,'attributes':[{'key':'k','value':{'doubleValue':5}}]}]}]},"
    "{'scopeSpans':[{'spans':["
    "{'name':'e','kind':2},"
    "{'name':'f','attributes':[{'key':'k','value':{'boolValue':true}}]}]}]}]}";

static char *with_quotes(const char *text)
{
    char *copy = strdup(text);
    for (char *c = copy; *c; c++)
        if (*c == '\'')
            *c = '"';
    return copy;
}

/* Returns the names of the spans that have the attribute `mark`. */
static char *marked_names(const char *json)
{
    struct text names = {0};
    json_t *request = json_loads(json, 0, NULL), *group, *scope, *span, *attribute;
    size_t g, s, i, a;
    json_array_foreach(json_object_get(request, "resourceSpans"), g,
                       group) json_array_foreach(json_object_get(group, "scopeSpans"), s, scope)
        json_array_foreach(json_object_get(scope, "spans"), i, span) json_array_foreach(
            json_object_get(span, "attributes"), a,
            attribute) if (strcmp(json_string_value(json_object_get(attribute, "key")), "mark") ==
                           0) text_append(&names, json_string_value(json_object_get(span, "name")));
    json_decref(request);
    return names.data;
}

static void chooses_items(void **state)
{
    (void)state;
    char *request = with_quotes(chosen_from);
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++) {
        struct text settings = {0};
        text_printf(&settings, "actions: [{key: mark, action: insert, value: 1}]%s%s",
                    *choices[i].settings ? ", " : "", choices[i].settings);
        char *got = process(SIGNAL_TRACES, text_string(&settings), request, NULL);
        char *names = marked_names(got);
        expect_text_of(choices[i].settings, names ? names : "", choices[i].names);
        free(names);
        free(got);
        text_deinit(&settings);
    }
    free(request);
}

/* A pattern that takes too many steps for a text must not spare the text. */
static void changes_what_it_cannot_decide(void **state)
{
    (void)state;
    static const char slow[] = "{match_type: regexp, span_names: ['^(a|aa)+$']}";
    static const char *const lists[] = {"include", "exclude"};
    struct text name = {0}, request = {0};
    for (int i = 0; i < 60; i++)
        text_append(&name, "a");
    text_printf(&request,
                "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"name\":\"%sb\"}]}]}]}",
                text_string(&name));
    for (size_t i = 0; i < 2; i++) {
        struct text settings = {0};
        text_printf(&settings, "actions: [{key: mark, action: insert, value: 1}], %s: %s", lists[i],
                    slow);
        char *got = process(SIGNAL_TRACES, text_string(&settings), text_string(&request), NULL);
        assert_non_null(strstr(got, "\"mark\""));
        free(got);
        text_deinit(&settings);
    }
    text_deinit(&name);
    text_deinit(&request);
}

/* Returns what becomes of a span whose attribute has a key "k" and letters, and a value of letters
 * and the end. */
static char *process_long(const char *actions, size_t key_letters, size_t value_letters,
                          const char *end)
{
    struct text request = {0};
    text_append(&request, "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"attributes\":"
                          "[{\"key\":\"k");
    for (size_t i = 0; i < key_letters; i++)
        text_append_char(&request, 'a');
    text_append(&request, "\",\"value\":{\"stringValue\":\"");
    for (size_t i = 0; i < value_letters; i++)
        text_append_char(&request, 'a');
    text_printf(&request, "%s\"}}]}]}]}]}", end);
    char *got = process(SIGNAL_TRACES, actions, text_string(&request), NULL);
    text_deinit(&request);
    return got;
}

/* From each of its letters, the key is read to its end. */
static void long_runs_take_steps(void **state)
{
    (void)state;
    char *got = process_long("actions: [{pattern: '\\w+\\s', action: delete}]", 1 << 16, 1, "");
    assert_null(strstr(got, "aaa"));
    free(got);
    got = process_long("actions: [{pattern: '\\w+\\s', action: delete}]", 1000, 1, "");
    assert_non_null(strstr(got, "aaa"));
    free(got);
}

/* `.*` goes back through all of the text, from one place. */
static void extracts_at_the_end_of_a_long_text(void **state)
{
    (void)state;
    char *got = process_long("actions: [{key: k, pattern: '.*=(?P<end>\\d+)', action: extract}]", 0,
                             20000, "=17bbb");
    assert_non_null(strstr(got, "\"end\""));
    assert_non_null(strstr(got, "\"17\""));
    free(got);
}

/* ---- limits ---- */

/* A header of 10 kB for 100,000 spans of two bytes would become a gigabyte. */
static void refuses_to_copy_a_large_header_often(void **state)
{
    (void)state;
    enum { SPANS = 100000, HEADER_BYTES = 10000 };
    struct fixture f;
    struct probe probe;
    fixture_init(&f, 1);
    struct fixture_place *place =
        fixture_place(&f, &attributes_processor_type, "attributes",
                      "processors: {attributes: {actions: [{key: t, action: upsert, from_context: "
                      "metadata.x}]}}",
                      "traces", SIGNAL_TRACES);
    struct text json = {0};
    text_append(&json, "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{}");
    for (int i = 1; i < SPANS; i++)
        text_append(&json, ",{}");
    text_append(&json, "]}]}]}");
    struct buffer *request = fixture_encode(SIGNAL_TRACES, text_string(&json));
    struct context *context = context_new();
    char *header = calloc(1, HEADER_BYTES + 1);
    memset(header, 'h', HEADER_BYTES);
    context->entries = arena_array(&context->arena, 1, sizeof *context->entries);
    context->entries[0] = (struct context_entry){"x", header};
    context->entry_count = 1;
    (void)probe;
    struct batch *batch = batch_new(&f.workers[0], SIGNAL_TRACES, request, SPANS, NULL, context);
    place->nodes[0]->component->type->consume(place->nodes[0], batch);
    fixture_advance(&f, 0);
    assert_int_equal(f.recorder.count, 0);
    text_deinit(&json);
    fixture_deinit(&f);
    free(header);
}

/* ---- configuration ---- */

static const struct mistake {
    const char *settings;
    const char *error;
} mistakes[] = {
    {"{}", "missing required field \"actions\""},
    {"{actions: [{key: a, action: upsrt, value: 1}]}", "upsert"},
    {"{actions: [{key: a, action: delete}], include: {match_type: strict}}",
     "at least one of services, span_names, span_kinds, attributes, libraries or resources must be "
     "specified"},
    {"{actions: [{key: a, action: delete}], include: {services: [a]}}",
     "missing required field \"match_type\": strict or regexp"},
    {"{actions: [{key: a, action: delete}], include: {match_type: strict, span_kinds: [SERVER]}}",
     "include::span_kinds::0: with match_type strict, a span kind is SPAN_KIND_INTERNAL"},
    {"{actions: [{key: a, action: delete}], exclude: {match_type: regexp, services: ['(']}}",
     "exclude::services::0"},
    {"{actions: [{key: a, action: delete}], exclude: {match_type: regexp, attributes: [{key: a, "
     "value: '['}]}}",
     "exclude::attributes::0"},
    {"{actions: [{key: a, action: delete}], exclude: {match_type: strict, attributes: [{value: "
     "a}]}}",
     "key"},
};

static void refuses_mistakes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++)
        fixture_refuses(&attributes_processor_type, mistakes[i].settings, mistakes[i].error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edits_spans),
        cmocka_unit_test(edits_samples),
        cmocka_unit_test(deleted_texts_do_not_leave),
        cmocka_unit_test(chooses_items),
        cmocka_unit_test(changes_what_it_cannot_decide),
        cmocka_unit_test(long_runs_take_steps),
        cmocka_unit_test(extracts_at_the_end_of_a_long_text),
        cmocka_unit_test(refuses_to_copy_a_large_header_often),
        cmocka_unit_test(refuses_mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
