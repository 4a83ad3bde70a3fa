#include "core/base/arena.h"
#include "core/data/wire_writer.h"
#include "core/ottl/ottl.h"
#include "tests/unit/expect_text.h"
#include "tests/unit/pipeline_fixture.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* A profile with one sample. Its stack: `leaf`, inlined into `caller` (location 1), a location
 * without a function, `main` (location 3). */
static const char request_json[] =
    "{\"resourceProfiles\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":{"
    "\"stringValue\":\"shop\"}}]},\"scopeProfiles\":[{\"scope\":{\"name\":\"lib\"},\"profiles\":[{"
    "\"sampleType\":{\"typeStrindex\":1,\"unitStrindex\":2},\"timeUnixNano\":\"1000000000\","
    "\"durationNano\":\"2000000000\",\"periodType\":{\"typeStrindex\":3,\"unitStrindex\":2},"
    "\"period\":\"10000000\",\"profileId\":\"0102030405060708090a0b0c0d0e0f10\","
    "\"droppedAttributesCount\":4,\"originalPayloadFormat\":\"pprof\",\"originalPayload\":\"AQL/"
    "\",\"attributeIndices\":[1],\"samples\":[{\"stackIndex\":1,\"attributeIndices\":[2,3,4],"
    "\"linkIndex\":1,\"values\":[\"5\",\"-7\"],\"timestampsUnixNano\":[\"1500000000\","
    "\"1600000000\"]}]}]}]}],\"dictionary\":{\"stringTable\":[\"\",\"cpu\",\"nanoseconds\","
    "\"wall\","
    "\"leaf\",\"caller\",\"main\",\"leaf.c\",\"main.c\",\"/usr/bin/shop\",\"thread.name\",\"n\","
    "\"env\",\"list\"],\"mappingTable\":[{},{\"filenameStrindex\":9}],\"functionTable\":[{},{"
    "\"nameStrindex\":4,\"filenameStrindex\":7},{\"nameStrindex\":5,\"filenameStrindex\":7},{"
    "\"nameStrindex\":6,\"filenameStrindex\":8}],\"locationTable\":[{},{\"mappingIndex\":1,"
    "\"lines\":[{\"functionIndex\":1},{\"functionIndex\":2}]},{\"address\":\"77\"},{\"lines\":[{"
    "\"functionIndex\":3}]}],\"stackTable\":[{},{\"locationIndices\":[1,2,3]}],\"linkTable\":[{},{"
    "\"traceId\":\"5b8efff798038103d269b633813fc60c\",\"spanId\":\"eee19b7ec3c1b174\"}],"
    "\"attributeTable\":[{},{\"keyStrindex\":12,\"value\":{\"stringValue\":\"prod\"}},{"
    "\"keyStrindex\":10,\"value\":{\"stringValue\":\"worker\"}},{\"keyStrindex\":11,\"value\":{"
    "\"intValue\":\"3\"}},{\"keyStrindex\":13,\"value\":{\"arrayValue\":{\"values\":[{\"intValue\":"
    "\"1\"},{\"stringValue\":\"x\"}]}}}]}}";

/* A request, as far as its first sample. */
struct sample {
    struct buffer *request;
    struct arena arena;
    struct message root;
    struct dictionary *dictionary;
    struct ottl_item item;
    struct message_iter samples; /* after the first one */
};

static struct message_iter enter(struct message_iter message, uint32_t number)
{
    struct message_field field = {.node = NULL};
    assert_true(message_next_bytes(&message, number, &field));
    return message_iter_into(&field, NULL);
}

static void sample_init(struct sample *sample, struct slice request)
{
    arena_init(&sample->arena, NULL);
    message_init(&sample->root, request);
    sample->dictionary = dictionary_new(&sample->root, &sample->arena);
    struct message_iter group = enter(message_iter(&sample->root, &sample->arena), REQUEST_GROUPS),
                        scope = enter(group, GROUP_SCOPES), profile = enter(scope, SCOPE_ITEMS);
    struct message_field field = {.node = NULL};
    ottl_item_begin(&sample->item);
    ottl_item_set_dictionary(&sample->item, sample->dictionary, &sample->arena);
    ottl_item_set_group(&sample->item, group);
    ottl_item_set_scope_group(&sample->item, scope);
    ottl_item_set_profile(&sample->item, profile);
    sample->samples = profile;
    assert_true(message_next_bytes(&sample->samples, PROFILE_SAMPLES, &field));
    ottl_item_set_sample(&sample->item, message_iter_into(&field, NULL));
}

static void sample_deinit(struct sample *sample)
{
    arena_deinit(&sample->arena);
}

static struct ottl_program *compile(enum ottl_context context, const char *condition)
{
    struct error err;
    struct ottl_program *program =
        ottl_compile_condition(context, slice_of_string(condition), OTTL_PREFIX_OPTIONAL, &err);
    if (!program)
        fail_msg("%s", err.text);
    return program;
}

/* Returns "true", "false", or the error of the evaluation. */
static void result_of(enum ottl_context context, const char *condition, struct ottl_item *item,
                      struct text *out)
{
    struct ottl_program *program = compile(context, condition);
    struct ottl_evaluator *evaluator = ottl_evaluator_new(program);
    enum ottl_result result = ottl_evaluate(evaluator, item);
    assert_int_equal(ottl_evaluate(evaluator, item), result); /* what was kept is the same */
    text_clear(out);
    text_append(out, result == OTTL_MATCH      ? "true"
                     : result == OTTL_NO_MATCH ? "false"
                                               : ottl_evaluator_error(evaluator));
    ottl_evaluator_free(evaluator);
    ottl_program_free(program);
}

static const struct row {
    const char *condition, *wanted;
} rows[] = {
    /* of the profile */
    {"profile.sample_type.type == \"cpu\" and profile.sample_type.unit == \"nanoseconds\"", "true"},
    {"profile.period_type.type == \"wall\" and profile.period_type.unit == \"nanoseconds\"",
     "true"},
    {"profile.period == 10000000", "true"},
    {"profile.time_unix_nano == 1000000000", "true"},
    {"profile.time - profile.time == Duration(\"0s\")", "true"},
    {"profile.duration == 2000000000 and profile.duration_unix_nano == 2000000000", "true"},
    {"profile.profile_id.string == \"0102030405060708090a0b0c0d0e0f10\"", "true"},
    {"profile.profile_id == profile.profile_id", "true"},
    {"profile.profile_id == \"0102030405060708090a0b0c0d0e0f10\"", "false"},
    {"IsEmpty(profile.profile_id)", "false"},
    {"profile.dropped_attributes_count == 4", "true"},
    {"profile.original_payload_format == \"pprof\"", "true"},
    {"profile.original_payload == 0x0102ff", "true"},
    {"profile.attribute_indices == [1]", "true"},
    {"profile.attributes[\"env\"] == \"prod\"", "true"},
    {"profile.attributes == {\"env\": \"prod\"}", "true"},
    {"profile.attributes[\"thread.name\"] == nil", "true"},
    {"Len(profile.attributes) == 1", "true"},
    {"profile.sample_type != nil and profile.sample_type == profile.sample_type", "true"},
    {"profile.sample_type == profile.period_type", "false"},
    {"Len(profile.sample) == 1",
     "Len: unsupported target type a message of a profile. target arg must be of type string, "
     "[]any, map[string]any, pcommon.Map, pcommon.Slice, or pcommon.Value (of type String, Map, "
     "Slice)"},
    /* of the sample */
    {"values == [5, -7]", "true"},
    {"profilesample.values[1] == -7", "true"},
    {"values[2] == 1", "index 2 out of bounds"},
    {"Len(values) == 2", "true"},
    {"timestamps_unix_nano == [1500000000, 1600000000]", "true"},
    {"timestamps_unix_nano[1] - timestamps_unix_nano[0] == 100000000", "true"},
    {"timestamps[1] - timestamps[0] == Duration(\"100ms\")", "true"},
    {"timestamps == timestamps_unix_nano", "false"},
    {"link_index == 1", "true"},
    {"attribute_indices == [2, 3, 4]", "true"},
    {"attributes[\"thread.name\"] == \"worker\"", "true"},
    {"attributes[\"n\"] > 2", "true"},
    {"attributes[\"list\"][1] == \"x\"", "true"},
    {"attributes[\"env\"] == nil", "true"},
    {"Len(attributes) == 3", "true"},
    {"attributes == {\"n\": 3, \"thread.name\": \"worker\", \"list\": attributes[\"list\"]}",
     "true"},
    {"String(attributes) == \"{\\\"list\\\":[1,\\\"x\\\"],\\\"n\\\":3,\\\"thread.name\\\":"
     "\\\"worker\\\"}\"",
     "true"},
    /* our additions */
    {"link.trace_id.string == \"5b8efff798038103d269b633813fc60c\"", "true"},
    {"link.span_id.string == \"eee19b7ec3c1b174\"", "true"},
    {"link.trace_id == link.trace_id and link.span_id != link.trace_id", "true"},
    {"stack.depth == 4", "true"},
    {"Len(stack.functions) == 4", "true"},
    {"stack.functions == [\"leaf\", \"caller\", \"\", \"main\"]", "true"},
    {"stack.functions[3] == \"main\"", "true"},
    {"Concat(stack.functions, \";\") == \"leaf;caller;;main\"", "true"},
    {"Concat(profilesample.values, \"\") != Concat(timestamps, \";\")", "true"},
    {"stack.functions[4] == \"main\"", "index 4 out of bounds"},
    {"leaf.function == \"leaf\" and leaf.file == \"leaf.c\"", "true"},
    {"leaf.mapping == \"/usr/bin/shop\"", "true"},
    {"StackContains(\"^mai\")", "true"},
    {"StackContains(\"^caller$\") and StackContains(\"leaf\")", "true"},
    {"StackContains(\"shop\")", "false"}, /* names of functions only */
    /* with what is around it */
    {"leaf.function == \"leaf\" and profile.period == 10000000 and scope.name == \"lib\" and "
     "resource.attributes[\"service.name\"] == \"shop\"",
     "true"},
};

static void reads_profiles_and_samples(void **state)
{
    struct buffer *request = fixture_encode(SIGNAL_PROFILES, request_json);
    struct sample sample;
    struct text got = {0};
    (void)state;
    sample_init(&sample, buffer_slice(request));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        result_of(OTTL_PROFILE_SAMPLE, rows[i].condition, &sample.item, &got);
        expect_text_of(rows[i].condition, text_string(&got), rows[i].wanted);
    }
    result_of(OTTL_PROFILE, "period == 10000000 and attributes[\"env\"] == \"prod\"", &sample.item,
              &got);
    expect_text(text_string(&got), "true");
    text_deinit(&got);
    sample_deinit(&sample);
    buffer_unref(request);
}

/* A sample without anything, of a request without a dictionary. */
static void reads_what_is_absent(void **state)
{
    static const char *const true_of_nothing[] = {
        "stack.depth == 0 and Len(stack.functions) == 0",
        "leaf.function == \"\" and leaf.file == \"\" and leaf.mapping == \"\"",
        "link_index == 0 and link.trace_id.string == \"00000000000000000000000000000000\"",
        "link.span_id.string == \"0000000000000000\" and IsEmpty(link.span_id)",
        "Len(values) == 0 and Len(timestamps) == 0 and Len(attributes) == 0",
        "attributes[\"x\"] == nil and profile.attributes[\"x\"] == nil",
        "profile.sample_type.type == \"\" and profile.period == 0 and profile.duration == 0",
        "IsEmpty(profile.profile_id) and IsEmpty(profile.original_payload)",
        "not StackContains(\"\")",
    };
    struct buffer *request = fixture_encode(
        SIGNAL_PROFILES,
        "{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{\"samples\":[{}]}]}]}]}");
    struct sample sample;
    struct text got = {0};
    (void)state;
    sample_init(&sample, buffer_slice(request));
    for (size_t i = 0; i < sizeof true_of_nothing / sizeof *true_of_nothing; i++) {
        result_of(OTTL_PROFILE_SAMPLE, true_of_nothing[i], &sample.item, &got);
        expect_text_of(true_of_nothing[i], text_string(&got), "true");
    }
    text_deinit(&got);
    sample_deinit(&sample);
    buffer_unref(request);
}

static void keeps_contexts_apart(void **state)
{
    static const struct {
        enum ottl_context context;
        const char *condition, *wanted;
    } wrong[] = {
        {OTTL_PROFILE, "profilesample.link_index == 1",
         "context \"profilesample\" from path \"profilesample.link_index\" is not there: this is "
         "evaluated on the context profile"},
        {OTTL_PROFILE_SAMPLE, "span.name == \"x\"", "context \"span\" from path"},
        {OTTL_PROFILE_SAMPLE, "spanevent.name == \"x\"", "context \"spanevent\" from path"},
        {OTTL_SPAN, "profile.period == 1", "context \"profile\" from path"},
        {OTTL_SPAN_EVENT, "profilesample.link_index == 1", "context \"profilesample\" from path"},
        {OTTL_PROFILE, "profile.period == SPAN_KIND_SERVER", "the context profile has no enum"},
        {OTTL_PROFILE_SAMPLE, "IsRootSpan()", "has no function \"IsRootSpan\""},
        {OTTL_PROFILE, "StackContains(\"x\")", "has no function \"StackContains\""},
        {OTTL_SPAN, "StackContains(\"x\")", "has no function \"StackContains\""},
        {OTTL_PROFILE_SAMPLE, "StackContains(leaf.function)", "a pattern must be a literal string"},
        {OTTL_PROFILE_SAMPLE, "stack.dept == 1", "did you mean \"stack.depth\"?"},
        {OTTL_PROFILE, "period[1] == 1", "\"period\" is no map and no list"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct error err;
        assert_null(ottl_compile_condition(wrong[i].context, slice_of_string(wrong[i].condition),
                                           OTTL_PREFIX_OPTIONAL, &err));
        if (!strstr(err.text, wrong[i].wanted))
            expect_text_of(wrong[i].condition, err.text, wrong[i].wanted);
    }
}

static void infers_contexts(void **state)
{
    static const struct {
        const char *condition;
        enum ottl_context wanted;
    } inferred[] = {
        {"StackContains(\"x\")", OTTL_PROFILE_SAMPLE},
        {"StackContains(\"x\") and resource.attributes[\"a\"] == 1", OTTL_PROFILE_SAMPLE},
        {"profile.period == 1", OTTL_PROFILE},
        {"profilesample.link_index == 1", OTTL_PROFILE_SAMPLE},
        {"resource.attributes[\"x\"] == profile.period", OTTL_PROFILE},
        {"profilesample.link_index == profile.period", OTTL_PROFILE_SAMPLE},
        {"StackContains(\"x\") and profilesample.link_index == 1", OTTL_PROFILE_SAMPLE},
    };
    (void)state;
    for (size_t i = 0; i < sizeof inferred / sizeof *inferred; i++) {
        enum ottl_context context;
        struct error err;
        assert_int_equal(ottl_infer_context(slice_of_string(inferred[i].condition), false,
                                            OTTL_BIT(OTTL_CONTEXT_COUNT) - 1, &context, &err),
                         OTTL_INFERRED);
        assert_int_equal(context, inferred[i].wanted);
    }
}

/* ---- what a hostile sender makes expensive ---- */

enum { SAMPLES = 30000 };

/* A request of one profile whose samples share one stack of so many frames, and one long text that
 * is the name of all its functions and the value of their attribute. */
static void put_request(struct wire_writer *out, uint32_t frames, size_t text_size)
{
    static const uint8_t one = 1;
    size_t group = wire_writer_begin(out, REQUEST_GROUPS),
           scope = wire_writer_begin(out, GROUP_SCOPES),
           profile = wire_writer_begin(out, SCOPE_ITEMS);
    for (uint32_t i = 0; i < SAMPLES; i++) {
        size_t sample = wire_writer_begin(out, PROFILE_SAMPLES);
        wire_writer_varint(out, SAMPLE_STACK_INDEX, 1);
        wire_writer_bytes(out, SAMPLE_ATTRIBUTE_INDICES, slice_of(&one, 1));
        wire_writer_end(out, sample);
    }
    wire_writer_end(out, profile);
    wire_writer_end(out, scope);
    wire_writer_end(out, group);
    size_t dictionary = wire_writer_begin(out, PROFILES_DICTIONARY);
    for (uint32_t table = 1; table < DICTIONARY_TABLE_COUNT; table++)
        wire_writer_bytes(out, table, (struct slice){0});
    char *text = calloc(text_size + 1, 1);
    memset(text, 'x', text_size);
    wire_writer_bytes(out, DICTIONARY_STRING_TABLE, slice_of_string(text));
    size_t function = wire_writer_begin(out, DICTIONARY_FUNCTION_TABLE);
    wire_writer_varint(out, FUNCTION_NAME_STRINDEX, 1);
    wire_writer_end(out, function);
    size_t location = wire_writer_begin(out, DICTIONARY_LOCATION_TABLE),
           line = wire_writer_begin(out, LOCATION_LINES);
    wire_writer_varint(out, LINE_FUNCTION_INDEX, 1);
    wire_writer_end(out, line);
    wire_writer_end(out, location);
    uint8_t *ones = calloc(frames + 1, 1);
    memset(ones, 1, frames);
    size_t stack = wire_writer_begin(out, DICTIONARY_STACK_TABLE);
    wire_writer_bytes(out, STACK_LOCATION_INDICES, slice_of(ones, frames));
    wire_writer_end(out, stack);
    size_t attribute = wire_writer_begin(out, DICTIONARY_ATTRIBUTE_TABLE);
    wire_writer_varint(out, KEY_VALUE_AND_UNIT_KEY_STRINDEX, 1);
    size_t value = wire_writer_begin(out, KEY_VALUE_AND_UNIT_VALUE);
    wire_writer_bytes(out, ANY_VALUE_STRING, slice_of_string(text));
    wire_writer_end(out, value);
    wire_writer_end(out, attribute);
    wire_writer_end(out, dictionary);
    free(text);
    free(ones);
}

/* Evaluates the condition on all samples; returns how many failed, and counts those that matched.
 */
static uint32_t evaluate_all(struct slice request, const char *condition, uint32_t *matched_out)
{
    struct ottl_program *program = compile(OTTL_PROFILE_SAMPLE, condition);
    struct ottl_evaluator *evaluator = ottl_evaluator_new(program);
    struct sample sample;
    struct message_field field = {.node = NULL};
    uint32_t failed = 0;
    *matched_out = 0;
    sample_init(&sample, request);
    do {
        enum ottl_result result = ottl_evaluate(evaluator, &sample.item);
        failed += result == OTTL_FAILED;
        *matched_out += result == OTTL_MATCH;
        if (result == OTTL_FAILED)
            assert_non_null(strstr(ottl_evaluator_error(evaluator), "too many"));
        if (!message_next_bytes(&sample.samples, PROFILE_SAMPLES, &field))
            break;
        ottl_item_set_sample(&sample.item, message_iter_into(&field, NULL));
    } while (true);
    sample_deinit(&sample);
    ottl_evaluator_free(evaluator);
    ottl_program_free(program);
    return failed;
}

/* What is remembered costs nothing again, whatever the size of the stack and its texts; quadratic
 * work would run into the test's timeout. */
static void remembers_stacks(void **state)
{
    static const char *const conditions[] = {"StackContains(\"y\")", "stack.depth == 7",
                                             "Len(stack.functions) == 7",
                                             "StackContains(\"^(x+x+)+[yz]\")"};
    (void)state;
    for (uint32_t frames = 50000; frames <= 200000; frames *= 4) {
        struct wire_writer request = {0};
        uint32_t matched;
        put_request(&request, frames, 3000);
        for (size_t i = 0; i < 3; i++) {
            assert_int_equal(evaluate_all(wire_writer_slice(&request), conditions[i], &matched), 0);
            assert_int_equal(matched, 0);
        }
        /* A pattern that gives up does so for all samples of the stack. */
        assert_int_equal(evaluate_all(wire_writer_slice(&request), conditions[3], &matched),
                         SAMPLES);
        wire_writer_deinit(&request);
    }
}

/* What cannot be remembered has an end: then the condition fails, it does not become false. */
static void limits_steps(void **state)
{
    static const char *const conditions[] = {
        "stack.functions == stack.functions",
        "IsMatch(profilesample.leaf.function, \"y\")",
        "Len(ToUpperCase(profilesample.leaf.function)) == 1",
        "profilesample.stack.functions[Len(profilesample.values) + 90000] == \"\"",
    };
    (void)state;
    for (uint32_t frames = 100000; frames <= 200000; frames *= 2) {
        struct wire_writer request = {0};
        uint32_t matched;
        put_request(&request, frames, 100000);
        for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++) {
            uint32_t failed = evaluate_all(wire_writer_slice(&request), conditions[i], &matched);
            assert_in_range(failed, SAMPLES / 2, SAMPLES);
        }
        wire_writer_deinit(&request);
    }
}

/* Requests as they are have steps enough. */
static void leaves_steps_to_usual_requests(void **state)
{
    struct wire_writer request = {0};
    uint32_t matched;
    (void)state;
    put_request(&request, 64, 200);
    assert_int_equal(evaluate_all(wire_writer_slice(&request),
                                  "stack.functions[3] == leaf.function and IsMatch(leaf.function, "
                                  "\"x$\")",
                                  &matched),
                     0);
    assert_int_equal(matched, SAMPLES);
    wire_writer_deinit(&request);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_profiles_and_samples),
        cmocka_unit_test(reads_what_is_absent),
        cmocka_unit_test(keeps_contexts_apart),
        cmocka_unit_test(infers_contexts),
        cmocka_unit_test(remembers_stacks),
        cmocka_unit_test(limits_steps),
        cmocka_unit_test(leaves_steps_to_usual_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
