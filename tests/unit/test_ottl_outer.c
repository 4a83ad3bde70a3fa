/* Statements on events and samples change the messages around them, which stay open for the next
 * item: the result is that of writing them after each statement. */
#include "core/base/worker.h"
#include "core/ottl/ottl.h"
#include "core/pipeline/batch.h"
#include "tests/unit/canonical_profiles.h"
#include "tests/unit/pipeline_fixture.h"

#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

/* ---- requests ---- */

#define TEXT(key, value) "{\"key\":\"" key "\",\"value\":{\"stringValue\":\"" value "\"}}"
#define MAP "{\"key\":\"map\",\"value\":{\"kvlistValue\":{\"values\":[" TEXT("a", "A") "]}}}"

static const char *const attribute_sets[] = {
    "", TEXT("k", "v1") "," TEXT("s", "new"), MAP "," TEXT("long", "a longer text"),
    TEXT("twice", "1") "," TEXT("k", "v2") "," TEXT("twice", "2")};
enum { SETS = sizeof attribute_sets / sizeof *attribute_sets };

static void add_spans(struct text *out, unsigned first)
{
    for (unsigned i = first; i < first + 3; i++) {
        text_printf(
            out,
            "%s{\"traceId\":\"0102030405060708090a0b0c0d0e0f10\",\"spanId\":\"a1a2a3a4a5a6"
            "a7a8\",\"traceState\":\"k=v,o=x\",\"name\":\"span%u\",\"kind\":2,"
            "\"startTimeUnixNano\":\"%u\",\"status\":{\"message\":\"m\",\"code\":1},"
            "\"links\":[{\"spanId\":\"a1a2a3a4a5a6a7a8\"}],\"attributes\":[%s],\"events\":[",
            i > first ? "," : "", i, i, attribute_sets[i % SETS]);
        for (unsigned k = 0; k < i % 4; k++)
            text_printf(out, "%s{\"name\":\"e%u\",\"timeUnixNano\":\"%u\",\"attributes\":[%s]}",
                        k > 0 ? "," : "", k, k, attribute_sets[(i + k) % SETS]);
        text_append(out, "]}");
    }
}

static void write_traces(struct text *out)
{
    text_append(out, "{\"resourceSpans\":[");
    for (unsigned i = 0; i < 2; i++) {
        text_printf(out,
                    "%s{\"schemaUrl\":\"https://r\",\"resource\":{\"attributes\":[%s]},"
                    "\"scopeSpans\":[{\"scope\":{\"name\":\"lib\"},\"schemaUrl\":\"https://s\","
                    "\"spans\":[",
                    i > 0 ? "," : "", attribute_sets[2 + i]);
        add_spans(out, 6 * i + 1);
        text_append(out, "]},{\"spans\":[");
        add_spans(out, 6 * i + 4);
        text_append(out, "]}]}");
    }
    text_append(out, "]}");
}

static void write_profiles(struct text *out)
{
    text_append(out, "{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[");
    for (unsigned i = 0; i < 4; i++) {
        text_printf(out,
                    "%s{\"period\":\"%u\",\"sampleType\":{\"typeStrindex\":1,\"unitStrindex\":2},"
                    "\"attributeIndices\":[%s],\"samples\":[",
                    i > 0 ? "," : "", i,
                    i == 0   ? ""
                    : i == 1 ? "1"
                             : "1,2,3");
        for (unsigned k = 0; k < i + 1; k++)
            text_printf(out, "%s{\"values\":[\"%u\"],\"attributeIndices\":[%u]}", k > 0 ? "," : "",
                        10 * i + k, 1 + k % 3);
        text_append(out, "]}");
    }
    text_append(out, "]}]}],\"dictionary\":{\"stringTable\":[\"\",\"k\",\"s\",\"twice\",\"unit\"],"
                     "\"mappingTable\":[{}],\"locationTable\":[{}],\"functionTable\":[{}],"
                     "\"linkTable\":[{}],\"stackTable\":[{}],\"attributeTable\":[{},"
                     "{\"keyStrindex\":1,\"value\":{\"stringValue\":\"v\"},\"unitStrindex\":4},"
                     "{\"keyStrindex\":2,\"value\":{\"intValue\":\"7\"}},"
                     "{\"keyStrindex\":3,\"value\":{\"stringValue\":\"second\"}}]}}");
}

/* ---- walks ---- */

static struct worker worker;

struct walk {
    struct batch *batch;
    struct ottl_way way;
    struct ottl_item item;
    struct ottl_draft *draft;
    struct ottl_evaluator *const *evaluators;
    const unsigned *sequence;
    bool one_by_one; /* nothing stays open after a statement */
    unsigned failed;
};
enum { PER_SEQUENCE = 5, ROOM = 4000 };

static void execute(struct walk *walk)
{
    for (int i = 0; i < PER_SEQUENCE; i++) {
        walk->failed +=
            ottl_execute(walk->evaluators[walk->sequence[i]], &walk->item) == OTTL_FAILED;
        if (walk->one_by_one)
            ottl_item_leave(&walk->item, 0);
    }
    ottl_item_finish(&walk->item);
}

static void enter(struct walk *walk, unsigned depth)
{
    bool is_traces = walk->batch->signal == SIGNAL_TRACES;
    struct message_iter message = message_iter_into(&walk->way.fields[depth], &walk->batch->arena);
    message.arena = &walk->batch->arena;
    if (depth == 0)
        ottl_item_set_group(&walk->item, message);
    else if (depth == 1)
        ottl_item_set_scope_group(&walk->item, message);
    else if (depth == 2)
        (is_traces ? ottl_item_set_span : ottl_item_set_profile)(&walk->item, message);
    else
        (is_traces ? ottl_item_set_span_event : ottl_item_set_sample)(&walk->item, message);
}

static void walk_depth(struct walk *walk, unsigned depth)
{
    const uint32_t numbers[] = {REQUEST_GROUPS, GROUP_SCOPES, SCOPE_ITEMS,
                                walk->batch->signal == SIGNAL_TRACES ? (uint32_t)SPAN_EVENTS
                                                                     : (uint32_t)PROFILE_SAMPLES};
    struct ottl_way *way = &walk->way;
    while (message_next_bytes(&way->iters[depth], numbers[depth], &way->fields[depth])) {
        enter(walk, depth);
        if (depth == 3) {
            execute(walk);
            continue;
        }
        way->iters[depth + 1] = message_iter_into(&way->fields[depth], &walk->batch->arena);
        walk_depth(walk, depth + 1);
        ottl_item_leave(&walk->item, depth);
    }
}

/* Appends what the request becomes. Returns how many statements failed. */
static unsigned run(enum signal signal, const char *json, struct ottl_evaluator *const *evaluators,
                    const unsigned *sequence, bool one_by_one, struct text *out)
{
    struct walk walk = {.batch =
                            batch_new(&worker, signal, fixture_encode(signal, json), 1, NULL, NULL),
                        .draft = ottl_draft_new(),
                        .evaluators = evaluators,
                        .sequence = sequence,
                        .one_by_one = one_by_one};
    ottl_item_begin(&walk.item);
    if (signal == SIGNAL_PROFILES)
        ottl_item_set_dictionary(&walk.item, batch_dictionary(walk.batch), &walk.batch->arena);
    ottl_item_set_way(&walk.item, &walk.way, walk.draft, ROOM);
    walk.way.iters[0] = message_iter(&walk.batch->parts[0].root, &walk.batch->arena);
    walk_depth(&walk, 0);
    batch_flatten(walk.batch);
    if (signal == SIGNAL_TRACES) /* without the order of fields */
        json_from_protobuf(JSON_TRACES_REQUEST, walk.batch->parts[0].root.raw, out);
    else
        canonical_profiles(walk.batch->parts[0].root.raw, CANONICAL_TEXT, out);
    ottl_draft_free(walk.draft);
    batch_free(walk.batch);
    return walk.failed;
}

static void check_sequence(enum signal signal, const char *json,
                           struct ottl_evaluator *const *evaluators, const unsigned *sequence,
                           const char *const *statements)
{
    struct text got = {0}, wanted = {0};
    unsigned failed = run(signal, json, evaluators, sequence, false, &got);
    unsigned failed_then = run(signal, json, evaluators, sequence, true, &wanted);
    if (failed != failed_then || strcmp(text_string(&got), text_string(&wanted)) != 0)
        for (int i = 0; i < PER_SEQUENCE; i++)
            print_error("%s\n", statements[sequence[i]]);
    assert_string_equal(text_string(&got), text_string(&wanted));
    assert_int_equal(failed, failed_then);
    text_deinit(&got);
    text_deinit(&wanted);
}

static void check_sequences(enum signal signal, const char *json, enum ottl_context context,
                            const char *const *statements, unsigned count)
{
    enum { STATEMENTS_MAX = 64, SEQUENCES = 400 };
    struct ottl_program *programs[STATEMENTS_MAX];
    struct ottl_evaluator *evaluators[STATEMENTS_MAX];
    struct error err;
    unsigned sequence[PER_SEQUENCE];
    assert_true(count <= STATEMENTS_MAX);
    for (unsigned i = 0; i < count; i++) {
        programs[i] = ottl_compile_statement(context, slice_of_string(statements[i]),
                                             OTTL_PREFIX_REQUIRED, &err);
        if (!programs[i])
            fail_msg("%s: %s", statements[i], err.text);
        evaluators[i] = ottl_evaluator_new(programs[i]);
    }
    for (int i = 0; i < SEQUENCES; i++) {
        for (int k = 0; k < PER_SEQUENCE; k++)
            sequence[k] = (unsigned)random() % count;
        check_sequence(signal, json, evaluators, sequence, statements);
    }
    for (unsigned i = 0; i < count; i++) {
        ottl_evaluator_free(evaluators[i]);
        ottl_program_free(programs[i]);
    }
}

static const char *const on_events[] = {
    "set(span.attributes[\"last\"], spanevent.name)",
    "set(span.attributes[\"k\"], spanevent.attributes[\"k\"])",
    "set(span.attributes[spanevent.name], spanevent.attributes)",
    "set(span.attributes[\"map\"][\"b\"], spanevent.name)",
    "set(span.attributes, spanevent.attributes) where spanevent.name == \"e1\"",
    "set(spanevent.attributes[\"was\"], span.attributes[\"last\"])",
    "set(spanevent.attributes[\"all\"], span.attributes)",
    "set(spanevent.attributes[\"n\"], Len(span.attributes))",
    "set(spanevent.attributes[\"f\"], [span.name, span.kind, span.status.code])",
    "set(spanevent.attributes[\"g\"], [Len(span.events), span.trace_state[\"k\"]])",
    "set(spanevent.attributes[\"h\"], Len(span.links))",
    "set(spanevent.attributes[\"found\"], span.attributes[spanevent.name])",
    "set(spanevent.name, span.attributes[\"k\"]) where span.attributes[\"k\"] != nil",
    "delete_key(span.attributes, \"last\")",
    "delete_key(span.attributes, \"twice\")",
    "keep_keys(span.attributes, [\"k\", \"e0\", \"map\"])",
    "delete_matching_keys(span.attributes, \"^e\")",
    "limit(span.attributes, 2, [\"k\"])",
    "truncate_all(span.attributes, 3)",
    "flatten(span.attributes)",
    "merge_maps(span.attributes, spanevent.attributes, \"upsert\")",
    "merge_maps(span.attributes, span.attributes, \"insert\")",
    "replace_all_patterns(span.attributes, \"value\", \"[a-m]\", \"$$0$$0\")",
    "replace_all_patterns(span.attributes, \"key\", \"t\", \"T\")",
    "replace_pattern(span.name, \"[0-9]\", \"##\")",
    "append(span.attributes[\"list\"], spanevent.name)",
    "set(span.name, Concat([span.name, spanevent.name], \"\"))",
    "set(span.name, span.trace_state)",
    "set(span.kind, Len(spanevent.name))",
    "set(span.status.code, 2) where spanevent.name == \"e1\"",
    "set(span.status.code, 0) where spanevent.name == \"e2\"",
    "set(span.status.message, spanevent.name)",
    "set(span.trace_state[\"k\"], spanevent.name)",
    "set(span.start_time, spanevent.time)",
    "set(span.end_time_unix_nano, span.start_time_unix_nano + 1)",
    "set(span.span_id.string, \"0000000000000000\")",
    "set(span.dropped_events_count, span.dropped_events_count + 1)",
    "set(scope.name, Concat([scope.name, spanevent.name], \"\"))",
    "set(scope.attributes[\"last\"], span.name)",
    "set(scope.schema_url, spanevent.name)",
    "set(resource.schema_url, scope.schema_url)",
    "set(resource.attributes[span.name], resource.attributes[\"map\"])",
    "set(resource.dropped_attributes_count, Len(resource.attributes))",
    "keep_keys(resource.attributes, [\"k\", \"long\"])",
    "set(spanevent.attributes[\"r\"], [resource.attributes, scope.name, resource.schema_url])",
    "set(span.attributes[\"k\"][\"fails\"], 1)",
    "set(span.kind, \"fails\")",
};

static const char *const on_samples[] = {
    "set(profile.attributes[\"n\"], profilesample.values[0])",
    "set(profile.attributes[\"k\"], profilesample.attributes[\"k\"])",
    "set(profile.attributes[\"map\"][\"b\"], profilesample.values)",
    "set(profile.attributes, profilesample.attributes) where profilesample.values[0] > 30",
    "set(profilesample.attributes[\"was\"], profile.attributes[\"n\"])",
    "set(profilesample.attributes[\"all\"], profile.attributes)",
    "set(profilesample.attributes[\"n\"], Len(profile.attributes))",
    "set(profilesample.attributes[\"i\"], Len(profile.attribute_indices))",
    "set(profilesample.attributes[\"f\"], [profile.period, profile.sample_type.type])",
    "set(profilesample.attributes[\"g\"], [profile.duration, profile.profile_id.string])",
    "merge_maps(profile.attributes, profilesample.attributes, \"upsert\")",
    "merge_maps(profilesample.attributes, profile.attributes, \"insert\")",
    "delete_key(profile.attributes, \"k\")",
    "keep_keys(profile.attributes, [\"s\", \"n\"])",
    "truncate_all(profile.attributes, 2)",
    "replace_all_patterns(profile.attributes, \"value\", \"[a-m]\", \"x\")",
    "set(profile.attribute_indices, profilesample.attribute_indices)",
    "set(profile.attribute_indices, profile.attribute_indices)",
    "set(profile.period, profile.period + profilesample.values[0])",
    "set(profile.duration, profilesample.values[0])",
    "set(profile.sample_type.type, \"t\")",
    "set(profile.period_type, profile.sample_type)",
    "set(profile.profile_id.string, \"0102030405060708090a0b0c0d0e0f10\")",
    "set(resource.attributes[\"n\"], profilesample.values[0])",
    "set(scope.name, \"x\") where profile.attributes[\"n\"] == 11",
    "set(profile.attributes[\"k\"][\"fails\"], 1)",
};

static void events_change_spans(void **state)
{
    struct text json = {0};
    (void)state;
    write_traces(&json);
    check_sequences(SIGNAL_TRACES, text_string(&json), OTTL_SPAN_EVENT, on_events,
                    sizeof on_events / sizeof *on_events);
    text_deinit(&json);
}

static void samples_change_profiles(void **state)
{
    struct text json = {0};
    (void)state;
    write_profiles(&json);
    check_sequences(SIGNAL_PROFILES, text_string(&json), OTTL_PROFILE_SAMPLE, on_samples,
                    sizeof on_samples / sizeof *on_samples);
    text_deinit(&json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_change_spans),
        cmocka_unit_test(samples_change_profiles),
    };
    worker_init_manual(&worker, 0, 1);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    worker_deinit(&worker);
    return failed;
}
