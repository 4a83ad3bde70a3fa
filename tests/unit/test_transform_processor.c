#include "tests/unit/expect_text.h"
#include "tests/unit/pipeline_fixture.h"

#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

extern const struct component_type transform_processor_type;

/* Executes the settings on a request. out: the request that was forwarded, or "refused: " and why.
 */
static void transform(enum signal signal, const char *settings, const char *json, struct text *out)
{
    struct fixture f;
    struct probe probe;
    struct text yaml = {0};
    fixture_init(&f, 1);
    text_clear(out);
    text_printf(&yaml, "processors: {transform: %s}", settings);
    struct fixture_place *place = fixture_place(&f, &transform_processor_type, "transform",
                                                text_string(&yaml), signal_name(signal), signal);
    fixture_consume_json(&f, place->nodes[0], json, 1, &probe);
    fixture_advance(&f, 0);
    assert_int_equal(probe.settled, 1);
    if (verdict_is_ok(&probe.verdict)) {
        char *got = fixture_recorded_json(&f, 0);
        text_append(out, got);
        free(got);
    } else {
        text_printf(out, "refused %d: %s", probe.verdict.code, probe.verdict.text);
    }
    fixture_deinit(&f);
    text_deinit(&yaml);
}

#define X20 "xxxxxxxxxxxxxxxxxxxx"
#define X80 X20 X20 X20 X20
#define ATTRIBUTE(key, value) "{\"key\":\"" key "\",\"value\":{\"stringValue\":\"" value "\"}}"
#define SPAN(name, attributes, events)                                                             \
    "{\"traceId\":\"0102030405060708090a0b0c0d0e0f10\",\"spanId\":\"a1a2a3a4a5a6a7a8\",\"name\":"  \
    "\"" name "\",\"attributes\":[" attributes "],\"events\":[" events "]}"
#define TRACES(resource, spans)                                                                    \
    "{\"resourceSpans\":[{\"resource\":{\"attributes\":[" resource                                 \
    "]},\"scopeSpans\":[{\"scope\":{\"name\":\"s\"},\"spans\":[" spans "]}]}]}"

static const char traces[] =
    TRACES(ATTRIBUTE("host", "h"), SPAN("a", ATTRIBUTE("k", "v"),
                                        "{\"name\":\"e\"}") "," SPAN("b", ATTRIBUTE("k", "w"), ""));

struct row {
    const char *settings;
    const char *wanted[2]; /* texts that are there afterwards; "!x": x is not there */
};

static const struct row rows[] = {
    {"{}", {"\"name\":\"a\"", "\"name\":\"b\""}},
    {"{trace_statements: ['set(span.name, \"x\")']}", {"\"name\":\"x\"", "!\"name\":\"a\""}},
    {"{trace_statements: ['set(span.name, \"x\") where span.attributes[\"k\"] == \"w\"']}",
     {"\"name\":\"x\"", "\"name\":\"a\""}},
    {"{trace_statements: [{context: span, statements: ['set(name, \"x\")']}]}",
     {"\"name\":\"x\"", "!\"name\":\"a\""}},
    {"{trace_statements: [{context: span, conditions: ['name == \"a\"', 'false'], statements: "
     "['set(name, \"x\")', 'set(attributes[\"k\"], \"x\")']}]}",
     {"\"name\":\"b\"", "!\"v\""}},
    /* The lowest context of all strings counts: without events, nothing happens. */
    {"{trace_statements: ['set(spanevent.name, \"x\")', 'set(span.name, \"y\")']}",
     {"\"name\":\"y\"", "\"name\":\"b\""}},
    /* Each group works on the whole request before the next one. */
    {"{trace_statements: [{statements: ['set(resource.attributes[\"n\"], span.name)']}, "
     "{statements: ['set(span.name, resource.attributes[\"n\"])']}]}",
     {"!\"name\":\"a\"", "\"name\":\"b\""}},
    {"{trace_statements: ['set(resource.attributes[\"host\"], \"new\")', "
     "'set(scope.name, resource.attributes[\"host\"])']}",
     {"\"name\":\"new\"", "!\"h\""}},
    /* A cache lives as long as a group works on an item. */
    {"{trace_statements: [{context: span, statements: ['set(cache[\"c\"], name)', "
     "'set(attributes[\"k\"], cache[\"c\"])']}, {context: span, statements: "
     "['set(attributes[\"gone\"], \"cached\") where cache[\"c\"] != nil']}]}",
     {"!\"w\"", "!cached"}},
    /* What fails is skipped. */
    {"{error_mode: silent, trace_statements: ['set(span.name, 1 / 0)', 'set(span.name, \"x\")']}",
     {"\"name\":\"x\"", "!\"name\":\"a\""}},
    {"{error_mode: propagate, trace_statements: ['set(span.name, 1 / 0)']}",
     {"refused 14: failed to execute statement: set(span.name, 1 / 0), attempted to divide by 0",
      "!name\""}},
    /* The hundredth byte is within the letter. */
    {"{error_mode: propagate, trace_statements: ['set(span.name, \"" X80 "123\xc3\xa4\") where 1 / "
     "0 == 1']}",
     {"set(span.name, \"" X80 "123..., attempted", "attempted to divide by 0"}},
    {"{error_mode: propagate, trace_statements: [{error_mode: silent, statements: ['set(span.name, "
     "1 / 0)']}]}",
     {"\"name\":\"a\"", "\"name\":\"b\""}},
    {"{trace_statements: [{context: resource, statements: ['keep_keys(attributes, [])']}, "
     "'set(span.name, \"x\")']}",
     {"\"name\":\"x\"", "!\"host\""}},
    /* Names by convention. */
    {"{trace_statements: [{context: span, statements: ['set(kind, 2)', "
     "'set(attributes[\"http.request.method\"], \"GET\")', 'set(attributes[\"http.route\"], "
     "\"/r\")', 'set_semconv_span_name(\"1.38\", \"was\")']}]}",
     {"\"name\":\"GET /r\"", "{\"key\":\"was\",\"value\":{\"stringValue\":\"a\"}}"}},
    {"{trace_statements: [{context: span, statements: ['set(kind, 3)', "
     "'set(attributes[\"http.method\"], \"PUT\")', 'set(attributes[\"http.route\"], \"/r\")', "
     "'set_semconv_span_name(\"1.37.0\")']}]}",
     {"\"name\":\"PUT\""}},
    {"{trace_statements: [{context: span, statements: ['set(kind, 3)', "
     "'set(attributes[\"rpc.system\"], \"grpc\")', 'set(attributes[\"rpc.service\"], \"S\")', "
     "'set(attributes[\"rpc.method\"], \"M\")', 'set_semconv_span_name(\"1.37.0\")']}]}",
     {"\"name\":\"S/M\""}},
    {"{trace_statements: [{context: span, statements: ['set(kind, 2)', "
     "'set(attributes[\"rpc.system.name\"], \"grpc\")', 'set(attributes[\"rpc.service\"], \"S\")', "
     "'set_semconv_span_name(\"1.37.0\")']}]}",
     {"\"name\":\"S/*\""}},
    {"{trace_statements: [{context: span, statements: ['set(kind, 2)', "
     "'set(attributes[\"rpc.system.name\"], \"grpc\")', 'set_semconv_span_name(\"1.37.0\")']}]}",
     {"\"name\":\"grpc\""}},
    {"{trace_statements: [{context: span, statements: ['set(kind, 3)', "
     "'set(attributes[\"db.system.name\"], \"mysql\")', 'set(attributes[\"db.operation\"], "
     "\"SELECT\")', 'set(attributes[\"db.namespace\"], \"d\")', "
     "'set(attributes[\"db.collection.name\"], \"t\")', 'set_semconv_span_name(\"1.37.0\")']}]}",
     {"\"name\":\"SELECT d.t\""}},
    {"{trace_statements: [{context: span, statements: ['set(kind, 3)', "
     "'set(attributes[\"db.system\"], \"mysql\")', 'set(attributes[\"server.address\"], \"h\")', "
     "'set(attributes[\"server.port\"], 33)', 'set_semconv_span_name(\"1.37.0\")']}]}",
     {"\"name\":\"h:33\""}},
    {"{trace_statements: [{context: span, statements: ['set(kind, 3)', "
     "'set(attributes[\"db.system\"], \"mysql\")', 'set_semconv_span_name(\"1.37.0\")']}]}",
     {"\"name\":\"mysql\""}},
    {"{trace_statements: [{context: span, statements: ['set(kind, 4)', "
     "'set(attributes[\"messaging.system\"], \"kafka\")', "
     "'set(attributes[\"messaging.operation.name\"], \"send\")', "
     "'set(attributes[\"messaging.destination.temporary\"], true)', "
     "'set_semconv_span_name(\"1.37.0\")']}]}",
     {"\"name\":\"send (temporary)\""}},
    {"{trace_statements: [{context: span, statements: ['set(kind, 5)', "
     "'set(attributes[\"messaging.system\"], \"kafka\")', "
     "'set(attributes[\"messaging.destination.name\"], \"orders\")', "
     "'set_semconv_span_name(\"1.37.0\")']}]}",
     {"\"name\":\"orders\""}},
    {"{trace_statements: [{context: span, statements: ['set(kind, 1)', "
     "'set(attributes[\"http.request.method\"], \"GET\")', 'set_semconv_span_name(\"1.40.0\", "
     "\"was\")']}]}",
     {"\"name\":\"a\"", "!\"was\""}},
};

static void check_texts(const char *what, const char *got, const char *const *wanted)
{
    for (size_t i = 0; i < 2 && wanted[i]; i++) {
        bool is_absent = wanted[i][0] == '!';
        if (!strstr(got, wanted[i] + is_absent) != is_absent)
            fail_msg("%s: %s in %s", what, wanted[i], got);
    }
}

static void statements_change_traces(void **state)
{
    struct text got = {0};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        transform(SIGNAL_TRACES, rows[i].settings, traces, &got);
        check_texts(rows[i].settings, text_string(&got), rows[i].wanted);
    }
    text_deinit(&got);
}

static const char profiles[] = "{\"resourceProfiles\":[{\"resource\":{\"attributes\":[" ATTRIBUTE(
    "host", "h") "]},\"scopeProfiles\":[{\"profiles\":[{\"period\":\"1\",\"attributeIndices\":[1],"
                 "\"samples\":[{\"values\":[\"1\"],\"attributeIndices\":[1,2]},{\"values\":[\"2\"],"
                 "\"attributeIndices\":[2]}]}]}]}],\"dictionary\":{\"stringTable\":[\"\",\"user\","
                 "\"thread\","
                 "\"unit\"],\"mappingTable\":[{}],\"locationTable\":[{}],\"functionTable\":[{}],"
                 "\"linkTable\":"
                 "[{}],\"stackTable\":[{}],\"attributeTable\":[{},{\"keyStrindex\":1,\"value\":{"
                 "\"stringValue\":"
                 "\"secret\"}},{\"keyStrindex\":2,\"value\":{\"stringValue\":\"t1\"},"
                 "\"unitStrindex\":3}]}}";

static const struct row profile_rows[] = {
    {"{profile_statements: ['set(profilesample.attributes[\"thread\"], \"x\")']}",
     {"\"stringValue\":\"x\"", "!t1"}},
    {"{profile_statements: ['set(profilesample.attributes[\"thread\"], \"x\") where "
     "profilesample.values[0] == 1']}",
     {"\"stringValue\":\"x\"", "\"t1\""}},
    {"{profile_statements: ['delete_key(profilesample.attributes, \"user\")']}",
     {"secret", "\"attributeIndices\":[2]"}}, /* the profile has it, too */
    {"{profile_statements: ['delete_key(profilesample.attributes, \"user\")', "
     "'delete_key(profile.attributes, \"user\")']}",
     {"!secret", "!user"}},
    {"{profile_statements: [{statements: ['replace_all_patterns(profile.attributes, \"value\", "
     "\"s.*\", \"masked\")']}, {statements: ['keep_keys(profilesample.attributes, "
     "[\"thread\"])']}]}",
     {"!secret", "masked"}},
    /* What a sample reads of its profile is what the statements have made of it. */
    {"{profile_statements: ['set(profilesample.attributes[\"was\"], profile.attributes)', "
     "'set(profile.attributes[\"user\"], \"new\")', "
     "'merge_maps(profilesample.attributes, profile.attributes, \"upsert\")', "
     "'set(profilesample.attributes[\"n\"], Len(profile.attributes))', "
     "'delete_key(profilesample.attributes, \"was\")']}",
     {"!secret", "\"stringValue\":\"new\""}},
    {"{profile_statements: ['set(profile.attributes[profilesample.attributes[\"thread\"]], 7)', "
     "'set(profilesample.attributes[\"found\"], "
     "profile.attributes[profilesample.attributes[\"thread\"]])']}",
     {"\"t1\"", "\"found\""}},
    {"{profile_statements: ['set(resource.attributes[\"host\"], \"x\")']}", {"!\"h\"", "secret"}},
    {"{profile_statements: ['set(profile.attributes[\"new\"][\"in\"], 5)']}",
     {"\"kvlistValue\"", "\"new\""}},
    /* Fields. */
    {"{profile_statements: ['set(profile.period, 7)', 'set(profile.duration, 8)']}",
     {"\"period\":\"7\"", "\"durationNano\":\"8\""}},
    {"{profile_statements: ['set(profile.duration_unix_nano, -1)']}", {"!durationNano"}},
    {"{profile_statements: ['set(profile.time_unix_nano, 9)', "
     "'set(profile.dropped_attributes_count, 3)']}",
     {"\"timeUnixNano\":\"9\"", "\"droppedAttributesCount\":3"}},
    {"{profile_statements: ['set(profile.time, Time(\"1970-01-02\", \"%Y-%m-%d\"))']}",
     {"\"timeUnixNano\":\"86400000000000\""}},
    {"{profile_statements: ['set(profile.sample_type.type, \"wall\")', "
     "'set(profile.sample_type.unit, \"wall\")']}",
     {"\"sampleType\":{\"typeStrindex\":4,\"unitStrindex\":4}", "\"wall\""}},
    {"{profile_statements: ['set(profile.sample_type.unit, Base64Decode(\"/w==\"))']}",
     {"\"sampleType\":{\"unitStrindex\":4}", "\"unit\",\"\xef\xbf\xbd\""}},
    {"{profile_statements: ['set(profile.period_type.unit, \"user\")', "
     "'set(profile.sample_type, profile.period_type)']}",
     {"\"sampleType\":{\"unitStrindex\":1}", "\"periodType\":{\"unitStrindex\":1}"}},
    {"{profile_statements: ['set(profile.profile_id, "
     "ProfileID(0x0102030405060708090a0b0c0d0e0f10))']}",
     {"\"profileId\":\"0102030405060708090a0b0c0d0e0f10\""}},
    {"{profile_statements: ['set(profile.profile_id.string, "
     "\"ff02030405060708090a0b0c0d0e0f10\")', 'set(profile.profile_id.string, "
     "\"00000000000000000000000000000000\")']}",
     {"\"profileId\":\"ff02030405060708090a0b0c0d0e0f10\""}},
    {"{profile_statements: ['set(profile.attribute_indices, [2, 2])']}",
     {"\"period\":\"1\",\"attributeIndices\":[2,2]"}},
    {"{profile_statements: ['set(profile.attribute_indices, [3])', "
     "'set(profile.attribute_indices, [-1])']}",
     {"\"period\":\"1\",\"attributeIndices\":[1]", "secret"}},
    {"{profile_statements: ['set(profilesample.values, [3, -4]) where profilesample.values[0] == "
     "1']}",
     {"\"values\":[\"3\",\"-4\"]", "\"values\":[\"2\"]"}},
    {"{profile_statements: ['set(profilesample.timestamps_unix_nano, [5])', "
     "'set(profilesample.timestamps_unix_nano, [6, 7])', 'set(profilesample.values, [8, 9])']}",
     {"\"values\":[\"2\"],\"timestampsUnixNano\":[\"5\"]", "!\"8\""}},
    {"{profile_statements: ['set(profilesample.timestamps, [Time(\"1970-01-02\", "
     "\"%Y-%m-%d\")])', 'set(profilesample.values, [])']}",
     {"\"timestampsUnixNano\":[\"86400000000000\"]", "!values"}},
    {"{profile_statements: ['set(profilesample.values, [])', 'set(profilesample.values, "
     "[\"x\"])', 'set(profilesample.values, 1)']}",
     {"\"values\":[\"1\"]", "\"values\":[\"2\"]"}},
    /* One item. */
    {"{profile_statements: ['set(profilesample.values, [3, -4]) where profilesample.values[0] == "
     "1', 'set(profilesample.values[Len(profilesample.values) - 1], 7)']}",
     {"\"values\":[\"3\",\"7\"]", "\"values\":[\"7\"]"}},
    {"{profile_statements: ['set(profilesample.values[1], 7)', 'set(profilesample.values[-1], 7)', "
     "'set(profilesample.values[0], \"x\")', 'set(profilesample.timestamps[0], 7)']}",
     {"\"values\":[\"1\"]", "\"values\":[\"2\"]"}},
    {"{profile_statements: ['set(profilesample.timestamps_unix_nano, [5])', "
     "'set(profilesample.timestamps[0], Time(\"1970-01-02\", \"%Y-%m-%d\")) where "
     "profilesample.values[0] == 2']}",
     {"\"timestampsUnixNano\":[\"86400000000000\"]", "\"timestampsUnixNano\":[\"5\"]"}},
    /* What stays as it was keeps its unit. */
    {"{profile_statements: ['set(profilesample.attributes[\"m\"], {\"a\": 1})', "
     "'flatten(profilesample.attributes)']}",
     {"\"attributeIndices\":[1,2,", "\"m.a\""}},
    {"{profile_statements: ['set(profilesample.attributes[\"m\"], [1])', "
     "'flatten(profilesample.attributes)', 'set(profilesample.attributes[\"thread\"], \"t2\")', "
     "'flatten(profilesample.attributes, \"p\")']}",
     {"!unitStrindex", "\"p.thread\""}},
    {"{profile_statements: ['set(profilesample.link_index, 1)', 'set(profilesample.link_index, "
     "-1)']}",
     {"!linkIndex"}},
    {"{profile_statements: ['set(profilesample.link_index, 0)', "
     "'set(profilesample.attribute_indices, [1]) where profilesample.values[0] == 2']}",
     {"\"attributeIndices\":[1],\"values\":[\"2\"]", "!linkIndex"}},
};

static void statements_change_profiles(void **state)
{
    struct text got = {0};
    (void)state;
    for (size_t i = 0; i < sizeof profile_rows / sizeof *profile_rows; i++) {
        transform(SIGNAL_PROFILES, profile_rows[i].settings, profiles, &got);
        check_texts(profile_rows[i].settings, text_string(&got), profile_rows[i].wanted);
    }
    text_deinit(&got);
}

static void metrics_and_logs_have_resources(void **state)
{
    static const char *const wanted[] = {"\"x\"", "!\"h\""};
    struct text got = {0};
    (void)state;
    transform(SIGNAL_METRICS, "{metric_statements: ['set(resource.attributes[\"host\"], \"x\")']}",
              "{\"resourceMetrics\":[{\"resource\":{\"attributes\":[" ATTRIBUTE(
                  "host", "h") "]},\"scopeMetrics\":[{\"metrics\":[{\"name\":\"m\",\"gauge\":{"
                               "\"dataPoints\":[{}]}}]}]}]}",
              &got);
    check_texts("metrics", text_string(&got), wanted);
    transform(SIGNAL_LOGS, "{log_statements: ['set(resource.attributes[\"host\"], \"x\")']}",
              "{\"resourceLogs\":[{\"resource\":{\"attributes\":[" ATTRIBUTE(
                  "host", "h") "]},\"scopeLogs\":[{\"logRecords\":[{}]}]}]}",
              &got);
    check_texts("logs", text_string(&got), wanted);
    text_deinit(&got);
}

static void mistakes_are_refused(void **state)
{
    static const struct {
        const char *settings;
        const char *wanted;
    } wrong[] = {
        {"{trace_statements: ['set(span.nme, \"x\")']}", "did you mean \"span.name\"?"},
        {"{trace_statements: ['set(name, \"x\")']}", "unable to infer context: "},
        {"{trace_statements: ['set(span.name, \"x\"']}", "unable to parse OTTL statement"},
        {"{trace_statements: ['sett(span.name, \"x\")']}", "did you mean \"set\"?"},
        {"{trace_statements: ['set(profile.period, 1)']}", "is not a supported context"},
        {"{trace_statements: [{context: span, statements: ['set_semconv_span_name(\"1.36.0\")']}]}",
         "must be between 1.37.0 and 1.40.0"},
        {"{profile_statements: ['set(profilesample.stack.depth, 1)']}", "can only be read"},
        {"{profile_statements: ['set(profilesample.values[0][0], 1)']}", "can only be read"},
        {"{profile_statements: ['set(profilesample.attribute_indices[0], 1)']}",
         "is no map and no list"},
        {"{trace_statements: [{context: log, statements: ['set(name, \"x\")']}]}",
         "unknown context \"log\""},
        {"{trace_statements: {context: span, statements: [a]}}", "must be a list"},
        {"{trace_statements: [{context: span, error_mode: drop, statements: ['set(name, "
         "\"x\")']}]}",
         "error_mode"},
        {"{trace_statements: ['set(span.name, \"x\")', {context: span, statements: ['set(name, "
         "\"x\")']}]}",
         "strings and groups cannot stand in one list"},
        {"{log_statements: [{context: log, statements: ['set(body, \"x\")']}]}",
         "profcol relays metrics and logs unopened"},
        {"{flatten_data: true}", "which profcol does not open"},
        /* Seen in public documentation. */
        {"{trace_statements: ['set(span.name, \"x\") where span.name =~ \"x\"']}", "IsMatch"},
        {"{trace_statements: ['set(span.name, \"x\") where span.attributes.foo == \"x\"']}",
         "attributes"},
        {"{trace_statements: ['limit(span.attributes, 100)', 'drop()']}", "undefined function"},
        {"{trace_statements: ['set(span.name, Concat([span.name, \"-x\"]))']}",
         "incorrect number of arguments"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        fixture_refuses(&transform_processor_type, wrong[i].settings, wrong[i].wanted);
}

/* Each event changes its span, each sample its profile, and reads what the one before has written.
 */
static void many_items_change_the_message_around_them(void **state)
{
    enum { ITEMS = 5000 };
    static const char on_events[] =
        "{error_mode: propagate, trace_statements: ['set(spanevent.name, "
        "span.attributes[\"last\"])', "
        "'set(span.attributes[\"last\"], span.name)', 'set(span.name, "
        "spanevent.attributes[\"k\"])', "
        "'set(span.status.code, 3 - span.status.code)', 'delete_key(span.attributes, \"gone\")', "
        "'set(span.attributes[\"gone\"], Len(span.attributes))', "
        "'keep_keys(span.attributes, [\"last\", \"gone\"])', "
        "'set(scope.schema_url, span.attributes[\"last\"])']}";
    static const char on_samples[] =
        "{error_mode: propagate, profile_statements: ["
        "'set(profile.attributes[\"last\"], profilesample.values[0])', "
        "'set(profilesample.attributes[\"was\"], profile.period)', "
        "'set(profile.period, profile.attributes[\"last\"])', "
        "'set(scope.name, profile.sample_type.type)']}";
    struct text events = {0}, samples = {0}, json = {0}, got = {0};
    (void)state;
    for (int i = 0; i < ITEMS; i++) {
        text_printf(&events,
                    "%s{\"name\":\"e\",\"attributes\":[{\"key\":\"k\",\"value\":{"
                    "\"stringValue\":\"value%d\"}}]}",
                    i > 0 ? "," : "", i);
        text_printf(&samples, "%s{\"values\":[\"%d\"]}", i > 0 ? "," : "", i);
    }
    text_printf(&json, TRACES("", SPAN("a", ATTRIBUTE("last", "none"), "%s")),
                text_string(&events));
    transform(SIGNAL_TRACES, on_events, text_string(&json), &got);
    check_texts("events", text_string(&got),
                (const char *const[]){"\"value4999\",\"attributes\"", "\"name\":\"value4997\""});
    text_clear(&json);
    text_printf(
        &json,
        "{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{\"samples\":[%s]}]}]}],"
        "\"dictionary\":{\"stringTable\":[\"\"],\"mappingTable\":[{}],\"locationTable\":[{}],"
        "\"functionTable\":[{}],\"linkTable\":[{}],\"stackTable\":[{}],"
        "\"attributeTable\":[{}]}}",
        text_string(&samples));
    transform(SIGNAL_PROFILES, on_samples, text_string(&json), &got);
    check_texts("samples", text_string(&got),
                (const char *const[]){"\"period\":\"4999\"", "\"intValue\":\"4998\""});
    text_deinit(&events);
    text_deinit(&samples);
    text_deinit(&json);
    text_deinit(&got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statements_change_traces),
        cmocka_unit_test(many_items_change_the_message_around_them),
        cmocka_unit_test(statements_change_profiles),
        cmocka_unit_test(metrics_and_logs_have_resources),
        cmocka_unit_test(mistakes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
