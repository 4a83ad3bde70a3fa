#include "core/data/dictionary.h"
#include "core/data/signals.h"
#include "tests/unit/expect_text.h"
#include "tests/unit/pipeline_fixture.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

extern const struct component_type filter_processor_type;

/* ---- requests as text ----
 *
 * a{s(x[e f] y) t()} is a resource with service.name a, and in it the scope s with the spans x,
 * which has the events e and f, and y, and the scope t without spans. Of profiles, 1[f g f] is a
 * profile with the period 1 and samples whose leaves are the functions f, g and f. */

static const char *const group_keys[SIGNAL_COUNT] = {"Spans", "Profiles", "Metrics", "Logs"};
static const char *const item_keys[SIGNAL_COUNT] = {"spans", "profiles", "metrics", "logRecords"};

static void begin_item(enum signal signal, char name, struct text *out)
{
    if (signal == SIGNAL_TRACES)
        text_printf(out,
                    "{\"name\":\"%c\",\"traceId\":\"0102030405060708090a0b0c0d0e0f10\",\"spanId\":"
                    "\"a1a2a3a4a5a6a7a8\",\"events\":[",
                    name);
    else if (signal == SIGNAL_PROFILES)
        text_printf(out, "{\"period\":\"%c\",\"samples\":[", name);
    else if (signal == SIGNAL_METRICS)
        text_printf(out, "{\"name\":\"%c\",\"gauge\":{\"dataPoints\":[{},{}]}}", name);
    else
        text_printf(out, "{\"eventName\":\"%c\"}", name);
}

static void put_part(enum signal signal, char name, struct text *out)
{
    if (signal == SIGNAL_TRACES)
        text_printf(out, "{\"name\":\"%c\"}", name);
    else
        text_printf(out, "{\"stackIndex\":%d,\"values\":[\"%d\"]}", name - 'a' + 1, name);
}

/* Of 26 functions with names of one letter, and what refers to them. */
static void put_dictionary(struct text *out)
{
    static const struct {
        const char *name, *format;
    } tables[] = {{"functionTable", ",{\"nameStrindex\":%d}"},
                  {"locationTable", ",{\"lines\":[{\"functionIndex\":%d}]}"},
                  {"stackTable", ",{\"locationIndices\":[%d]}"}};
    text_append(out, ",\"dictionary\":{\"stringTable\":[\"\"");
    for (int c = 'a'; c <= 'z'; c++)
        text_printf(out, ",\"%c\"", c);
    text_append(out, "],\"mappingTable\":[{}],\"linkTable\":[{}],\"attributeTable\":[{}]");
    for (size_t i = 0; i < 3; i++) {
        text_printf(out, ",\"%s\":[{}", tables[i].name);
        for (int k = 1; k <= 26; k++) {
            const char *number = strchr(tables[i].format, '%');
            text_printf(out, "%.*s%d%s", (int)(number - tables[i].format), tables[i].format, k,
                        number + 2);
        }
        text_append(out, "]");
    }
    text_append(out, "}");
}

/* What closes an opened bracket. */
static void put_json(enum signal signal, const char *at, struct text *out)
{
    int depth = 'r'; /* resource, scope, item, part */
    bool first = true, is_open = false;
    text_printf(out, "{\"resource%s\":[", group_keys[signal]);
    for (; *at; at++) {
        if (strchr(" ", *at))
            continue;
        if (strchr("{([", *at)) {
            first = true;
            depth = *at == '{' ? 's' : *at == '(' ? 'i' : 'p';
            continue;
        }
        if (depth == 'i' && is_open) {
            if (signal <= SIGNAL_PROFILES)
                text_append(out, "]}");
            is_open = false;
        }
        if (strchr("})]", *at)) {
            depth = *at == '}' ? 'r' : *at == ')' ? 's' : 'i';
            if (*at != ']')
                text_append(out, "]}");
            first = false;
            continue;
        }
        text_append(out, first ? "" : ",");
        first = false;
        if (depth == 'r')
            text_printf(out,
                        "{\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":{"
                        "\"stringValue\":\"%c\"}}]},\"scope%s\":[",
                        *at, group_keys[signal]);
        else if (depth == 's')
            text_printf(out, "{\"scope\":{\"name\":\"%c\"},\"%s\":[", *at, item_keys[signal]);
        else if (depth == 'i')
            begin_item(signal, *at, out);
        else
            put_part(signal, *at, out);
        is_open |= depth == 'i';
    }
    text_append(out, "]");
    if (signal == SIGNAL_PROFILES)
        put_dictionary(out);
    text_append(out, "}");
}

/* ---- and back ---- */

static struct slice inside(struct slice message, uint32_t number)
{
    return wire_last_bytes(message, number);
}

static uint32_t number_in(struct slice message, uint32_t number)
{
    struct wire_cursor cursor = wire_cursor(message);
    struct wire_field field;
    uint32_t last = 0;
    while (wire_next(&cursor, &field))
        if (field.number == number)
            last = field.type == WIRE_BYTES ? field.bytes.data[0] : (uint32_t)field.value;
    return last;
}

static void print_sample(struct dictionary *dictionary, struct slice sample, struct text *out)
{
    struct slice stack = dictionary_entry(dictionary, DICTIONARY_STACK_TABLE,
                                          number_in(sample, SAMPLE_STACK_INDEX)),
                 location = dictionary_entry(dictionary, DICTIONARY_LOCATION_TABLE,
                                             number_in(stack, STACK_LOCATION_INDICES)),
                 function = dictionary_entry(
                     dictionary, DICTIONARY_FUNCTION_TABLE,
                     number_in(inside(location, LOCATION_LINES), LINE_FUNCTION_INDEX)),
                 name = dictionary_string(dictionary, number_in(function, FUNCTION_NAME_STRINDEX));
    text_append_slice(out, name);
    assert_int_equal(number_in(sample, SAMPLE_VALUES), name.data[0]); /* its own value */
}

static void print_item(enum signal signal, struct slice item, struct dictionary *dictionary,
                       struct text *out)
{
    struct wire_cursor parts = wire_cursor(item);
    struct wire_field part;
    bool first = true;
    if (signal == SIGNAL_PROFILES)
        text_printf(out, "%u", number_in(item, PROFILE_PERIOD));
    else
        text_append_slice(out, inside(item, signal == SIGNAL_TRACES    ? (uint32_t)SPAN_NAME
                                            : signal == SIGNAL_METRICS ? (uint32_t)METRIC_NAME
                                                                       : LOG_RECORD_EVENT_NAME));
    if (signal > SIGNAL_PROFILES)
        return;
    while (wire_next_bytes(
        &parts, signal == SIGNAL_TRACES ? (uint32_t)SPAN_EVENTS : (uint32_t)PROFILE_SAMPLES,
        &part)) {
        text_append(out, first ? "[" : " ");
        first = false;
        if (signal == SIGNAL_TRACES)
            text_append_slice(out, inside(part.bytes, EVENT_NAME));
        else
            print_sample(dictionary, part.bytes, out);
    }
    text_append(out, first ? "" : "]");
}

static void print_request(enum signal signal, struct slice request, struct text *out)
{
    struct wire_cursor groups = wire_cursor(request), scopes, items;
    struct wire_field group, scope, item;
    struct arena arena;
    struct message root;
    const char *before_group = "";
    arena_init(&arena, NULL);
    message_init(&root, request);
    struct dictionary *dictionary = dictionary_new(&root, &arena);
    for (; wire_next_bytes(&groups, REQUEST_GROUPS, &group); before_group = " ") {
        struct slice pair = inside(inside(group.bytes, GROUP_RESOURCE), RESOURCE_ATTRIBUTES);
        const char *before = "";
        text_append(out, before_group);
        text_append_slice(out, inside(inside(pair, KEY_VALUE_VALUE), ANY_VALUE_STRING));
        text_append(out, "{");
        scopes = wire_cursor(group.bytes);
        for (; wire_next_bytes(&scopes, GROUP_SCOPES, &scope); before = " ") {
            const char *between = "";
            text_append(out, before);
            text_append_slice(out, inside(inside(scope.bytes, SCOPE_SPANS_SCOPE), SCOPE_NAME));
            text_append(out, "(");
            items = wire_cursor(scope.bytes);
            for (; wire_next_bytes(&items, SCOPE_ITEMS, &item); between = " ") {
                text_append(out, between);
                print_item(signal, item.bytes, dictionary, out);
            }
            text_append(out, ")");
        }
        text_append(out, "}");
    }
    arena_deinit(&arena);
}

/* ---- what becomes of a request ---- */

static uint32_t count_items(enum signal signal, const char *request)
{
    uint32_t count = 0;
    bool in_scope = false, in_item = false;
    for (; *request; request++) {
        in_scope = *request == '(' || (in_scope && *request != ')');
        in_item = *request == '[' || (in_item && *request != ']');
        if (isalnum((unsigned char)*request) && in_scope && in_item == (signal == SIGNAL_PROFILES))
            count += signal == SIGNAL_METRICS ? 2 : 1;
    }
    return count;
}

struct outcome {
    struct text text; /* the request that was forwarded, "nothing", or "refused: " and why */
    uint32_t items;   /* of the batch that was forwarded */
    struct text metrics;
};

static void filter(enum signal signal, const char *settings, const char *request,
                   struct outcome *outcome)
{
    struct fixture f;
    struct probe probe;
    struct text yaml = {0}, json = {0};
    *outcome = (struct outcome){0};
    fixture_init(&f, 1);
    text_printf(&yaml, "processors: {filter: %s}", settings);
    struct fixture_place *place = fixture_place(&f, &filter_processor_type, "filter",
                                                text_string(&yaml), signal_name(signal), signal);
    put_json(signal, request, &json);
    fixture_consume_json(&f, place->nodes[0], text_string(&json), count_items(signal, request),
                         &probe);
    fixture_advance(&f, 0);
    assert_int_equal(probe.settled, 1);
    if (!verdict_is_ok(&probe.verdict)) {
        text_printf(&outcome->text, "refused %d: %s", probe.verdict.code, probe.verdict.text);
    } else if (f.recorder.count == 0) {
        text_append(&outcome->text, "nothing");
    } else {
        struct slice got = slice_of(f.recorder.items[0].bytes, f.recorder.items[0].size);
        print_request(signal, got, &outcome->text);
        outcome->items = f.recorder.items[0].items;
    }
    metrics_write(f.process.metrics, 0, &outcome->metrics);
    fixture_deinit(&f);
    text_deinit(&yaml);
    text_deinit(&json);
}

static void outcome_deinit(struct outcome *outcome)
{
    text_deinit(&outcome->text);
    text_deinit(&outcome->metrics);
}

struct row {
    enum signal signal;
    const char *settings;
    const char *request;
    const char *wanted;
};

static const char all[] = "a{s(x[e f] y) t(z)} b{u(x[e]) v()} c{}";

static const struct row rows[] = {
    /* Nothing asked: nothing changes, whatever is empty. */
    {SIGNAL_TRACES, "{}", all, all},
    {SIGNAL_TRACES, "{trace_conditions: []}", all, all},
    {SIGNAL_TRACES, "{profile_conditions: [profile.period == 1]}", all, all},
    /* Each level, in both styles. */
    {SIGNAL_TRACES, "{trace_conditions: ['span.name == \"x\"']}", all, "a{s(y) t(z)}"},
    {SIGNAL_TRACES, "{traces: {span: ['name == \"x\"']}}", all, "a{s(y) t(z)}"},
    {SIGNAL_TRACES, "{traces: {span: ['span.name == \"x\"']}}", all, "a{s(y) t(z)}"},
    {SIGNAL_TRACES, "{trace_conditions: [{context: span, conditions: ['name == \"x\"']}]}", all,
     "a{s(y) t(z)}"},
    {SIGNAL_TRACES, "{trace_conditions: ['resource.attributes[\"service.name\"] == \"a\"']}", all,
     "b{u(x[e]) v()}"},
    {SIGNAL_TRACES, "{traces: {resource: ['attributes[\"service.name\"] == \"a\"']}}", all,
     "b{u(x[e]) v()}"},
    {SIGNAL_TRACES, "{trace_conditions: ['scope.name == \"s\"']}", all, "a{t(z)} b{u(x[e])}"},
    {SIGNAL_TRACES, "{trace_conditions: ['instrumentation_scope.name == \"s\"']}", all,
     "a{t(z)} b{u(x[e])}"},
    {SIGNAL_TRACES, "{traces: {spanevent: ['name == \"e\"']}}", all, "a{s(x[f] y) t(z)} b{u(x)}"},
    /* Conditions are ORed. */
    {SIGNAL_TRACES, "{trace_conditions: ['span.name == \"x\"', 'span.name == \"y\"']}", all,
     "a{t(z)}"},
    {SIGNAL_TRACES, "{trace_conditions: ['span.name != \"x\"', 'span.name != \"y\"']}", all,
     "nothing"},
    {SIGNAL_TRACES,
     "{traces: {resource: ['attributes[\"service.name\"] == \"b\"'], span: ['name == \"y\"'], "
     "spanevent: ['name == \"f\"']}}",
     all, "a{s(x[e]) t(z)}"},
    /* Strings are inferred one by one, and several levels of one condition give the lowest. */
    {SIGNAL_TRACES,
     "{trace_conditions: ['resource.attributes[\"service.name\"] == \"b\" or spanevent.name == "
     "\"f\"']}",
     all, "a{s(x[e] y) t(z)} b{u(x)}"},
    {SIGNAL_TRACES,
     "{trace_conditions: [{conditions: ['resource.attributes[\"service.name\"] == \"b\"', "
     "'span.name == \"y\"']}]}",
     all, "a{s(x[e f]) t(z)}"},
    {SIGNAL_TRACES, "{trace_conditions: ['spanevent.name == \"e\" and span.name == \"x\"']}", all,
     "a{s(x[f] y) t(z)} b{u(x)}"},
    /* Groups run in their order, each over what the ones before it left. */
    {SIGNAL_TRACES,
     "{trace_conditions: [{context: spanevent, conditions: ['name == \"e\"']}, {context: span, "
     "conditions: ['Len(events) == 0']}]}",
     all, "a{s(x[f])}"},
    {SIGNAL_TRACES,
     "{trace_conditions: [{context: span, conditions: ['Len(events) == 0']}, {context: spanevent, "
     "conditions: ['true']}]}",
     all, "a{s(x)} b{u(x)}"},
    {SIGNAL_TRACES, "{trace_conditions: [{context: span, conditions: ['IsRootSpan()']}]}", all,
     "nothing"},
    /* Errors: not matched, the other conditions decide. */
    {SIGNAL_TRACES, "{trace_conditions: ['1 / Len(span.events) == 7', 'span.name == \"x\"']}", all,
     "a{s(y) t(z)}"},
    {SIGNAL_TRACES,
     "{error_mode: Silent, traces: {span: ['1 / Len(events) == 7', 'name == \"x\"']}}", all,
     "a{s(y) t(z)}"},
    {SIGNAL_TRACES, "{error_mode: propagate, traces: {span: ['1 / Len(events) == 7']}}", all,
     "refused 14: failed to eval condition: 1 / Len(events) == 7, attempted to divide by 0"},
    {SIGNAL_TRACES,
     "{error_mode: propagate, trace_conditions: [{context: span, error_mode: ignore, conditions: "
     "['1 / Len(events) == 7', 'name == \"x\"']}]}",
     all, "a{s(y) t(z)}"},
    {SIGNAL_TRACES,
     "{trace_conditions: [{context: span, error_mode: propagate, conditions: ['1 / Len(events) == "
     "7']}]}",
     all, "refused 14: failed to eval condition: 1 / Len(events) == 7, attempted to divide by 0"},
    /* A true condition before the one that fails decides; all gone is success. */
    {SIGNAL_TRACES,
     "{error_mode: propagate, traces: {span: ['name != \"\"', '1 / Len(events) == 7']}}", all,
     "nothing"},
    /* Profiles. */
    {SIGNAL_PROFILES, "{profiles: {profile: ['period == 1']}}", "a{s(1[f g] 2[f])}", "a{s(2[f])}"},
    {SIGNAL_PROFILES, "{profile_conditions: ['profile.period == 1']}",
     "a{s(1[f g] 2[f]) t(1[h])} b{}", "a{s(2[f])}"},
    {SIGNAL_PROFILES, "{profile_conditions: ['profilesample.leaf.function == \"f\"']}",
     "a{s(1[f g f h] 2[f]) t(1[f])} b{}", "a{s(1[g h])}"},
    {SIGNAL_PROFILES, "{profiles: {profilesample: ['leaf.function == \"f\"']}}",
     "a{s(1[f g f h] 2[f]) t(1[f])} b{}", "a{s(1[g h])}"},
    /* A profile that came without samples is no worse than before. */
    {SIGNAL_PROFILES, "{profile_conditions: ['profilesample.leaf.function == \"f\"']}",
     "a{s(1[f] 2)}", "a{s(2)}"},
    {SIGNAL_PROFILES, "{profile_conditions: ['resource.attributes[\"service.name\"] == \"a\"']}",
     "a{s(1[f])} b{s(2[g])}", "b{s(2[g])}"},
    {SIGNAL_PROFILES,
     "{profile_conditions: [{context: profilesample, conditions: ['StackContains(\"[fg]\") and "
     "values[0] == 102']}]}",
     "a{s(1[f g f h] 2[f])}", "a{s(1[g h])}"},
    {SIGNAL_PROFILES, "{profile_conditions: ['profilesample.stack.depth == 1']}", "a{s(1[f] 2[g])}",
     "nothing"},
    /* Metrics and logs. */
    {SIGNAL_METRICS, "{metrics: {resource: ['attributes[\"service.name\"] == \"a\"']}}",
     "a{s(m)} b{s(n)}", "b{s(n)}"},
    {SIGNAL_METRICS, "{metric_conditions: ['scope.name == \"s\"']}", "a{s(m) t(n)} b{s(n)}",
     "a{t(n)}"},
    {SIGNAL_LOGS, "{log_conditions: ['resource.attributes[\"service.name\"] == \"a\"']}",
     "a{s(m)} b{s(n)}", "b{s(n)}"},
    {SIGNAL_LOGS, "{logs: {resource: ['true']}}", "a{s(m)} b{s(n)}", "nothing"},
};

static void drops_what_conditions_are_true_for(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct outcome outcome;
        filter(rows[i].signal, rows[i].settings, rows[i].request, &outcome);
        expect_text_of(rows[i].settings, text_string(&outcome.text), rows[i].wanted);
        if (outcome.items > 0)
            assert_int_equal(outcome.items, count_items(rows[i].signal, rows[i].wanted));
        outcome_deinit(&outcome);
    }
}

static void counts_what_it_drops(void **state)
{
    static const struct {
        enum signal signal;
        const char *settings, *request, *wanted;
    } counts[] = {
        {SIGNAL_TRACES, "{trace_conditions: ['span.name == \"x\"', 'span.name == \"y\"']}", all,
         "otelcol_processor_filter_spans_filtered{filter=\"filter\"} 3\n"},
        {SIGNAL_TRACES, "{trace_conditions: ['span.name == \"x\"', 'span.name == \"y\"']}", all,
         "profcol_filter_dropped_spans{processor=\"filter\",condition=\"trace_conditions[0]\"} 2\n"
         "profcol_filter_dropped_spans{processor=\"filter\",condition=\"trace_conditions[1]\"} 1"
         "\n"},
        /* Events do not count as spans. */
        {SIGNAL_TRACES, "{traces: {spanevent: ['name == \"e\"']}}", all,
         "otelcol_processor_filter_spans_filtered{filter=\"filter\"} 0\n"},
        {SIGNAL_TRACES, "{traces: {spanevent: ['name == \"e\"']}}", all,
         "profcol_filter_dropped_span_events{processor=\"filter\",condition=\"traces.spanevent[0]"
         "\"} 2\n"},
        /* What is dropped with its resource counts, too; of profiles, samples. */
        {SIGNAL_TRACES, "{traces: {resource: ['attributes[\"service.name\"] == \"a\"']}}", all,
         "otelcol_processor_filter_spans_filtered{filter=\"filter\"} 3\n"},
        {SIGNAL_PROFILES, "{profiles: {profile: ['period == 1']}}", "a{s(1[f g] 2[f])}",
         "otelcol_processor_filter_profiles_filtered{filter=\"filter\"} 2\n"},
        {SIGNAL_PROFILES,
         "{profile_conditions: [{context: profilesample, conditions: ['leaf.function == \"f\"']}]}",
         "a{s(1[f g f] 2[f])}",
         "profcol_filter_dropped_profile_samples{processor=\"filter\",condition=\"profile_"
         "conditions[0].conditions[0]\"} 3\n"},
        {SIGNAL_METRICS, "{metric_conditions: ['scope.name == \"s\"']}", "a{s(m n) t(n)}",
         "otelcol_processor_filter_datapoints_filtered{filter=\"filter\"} 4\n"},
        {SIGNAL_LOGS, "{log_conditions: ['scope.name == \"s\"']}", "a{s(m n) t(n)}",
         "otelcol_processor_filter_logs_filtered{filter=\"filter\"} 2\n"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct outcome outcome;
        filter(counts[i].signal, counts[i].settings, counts[i].request, &outcome);
        if (!strstr(text_string(&outcome.metrics), counts[i].wanted))
            expect_text_of(counts[i].settings, text_string(&outcome.metrics), counts[i].wanted);
        outcome_deinit(&outcome);
    }
}

/* Also when the sender cannot mend it. */
static void refuses_acknowledged_data_for_good(void **state)
{
    (void)state;
    struct fixture f;
    struct text json = {0};
    fixture_init(&f, 1);
    struct fixture_place *place = fixture_place(
        &f, &filter_processor_type, "filter",
        "processors: {filter: {error_mode: propagate, traces: {span: ['1 / Len(events) == 7']}}}",
        "traces", SIGNAL_TRACES);
    put_json(SIGNAL_TRACES, all, &json);
    fixture_consume_json(&f, place->nodes[0], text_string(&json), 4, NULL);
    fixture_advance(&f, 0);
    assert_int_equal(f.recorder.count, 0);
    fixture_deinit(&f);
    text_deinit(&json);
}

static void refuses_wrong_settings(void **state)
{
    static const struct {
        const char *settings, *wanted;
    } wrong[] = {
        {"{trace_conditions: ['span.nme == \"y\"']}",
         "unable to parse OTTL condition \"span.nme == \"y\"\": 1:6: the context span has no "
         "path \"nme\"; did you mean \"span.name\"?"},
        {"{trace_conditions: ['name == \"y\"']}",
         "1:1: unable to infer context: the path \"name\" does not begin with one of resource, "
         "scope, span, spanevent; write \"span.name\" or \"spanevent.name\" or \"scope.name\""},
        {"{trace_conditions: ['IsRootSpan()']}", "unable to infer context: "},
        {"{trace_conditions: ['log.body == \"y\"']}", "unable to infer context: "},
        {"{trace_conditions: ['profile.period == 1']}",
         "context \"profile\" inferred from the path \"profile.period\" is not a supported context "
         "here, which is one of resource, scope, span, spanevent"},
        {"{profile_conditions: ['span.name == \"\"']}", "is not a supported context"},
        {"{trace_conditions: ['span.name = \"x\"']}", "1:11: unexpected"},
        {"{trace_conditions: ['']}", "condition cannot be empty"},
        {"{trace_conditions: [{context: spans, conditions: [a]}]}", "unknown context \"spans\""},
        {"{trace_conditions: [{context: profile, conditions: [a]}]}",
         "unknown context \"profile\""},
        {"{error_mode: drop}", "\"drop\" is not one of ignore, silent, propagate"},
        {"{trace_conditions: [{context: span, error_mode: drop, conditions: ['true']}]}",
         "\"drop\" is not one of ignore, silent, propagate"},
        {"{trace_conditions: ['span.name == \"x\"', {context: span, conditions: ['true']}]}",
         "strings and groups cannot stand in one list"},
        {"{trace_conditions: ['span.name == \"x\"'], traces: {span: ['true']}}",
         "cannot use context inferred trace conditions \"trace_conditions\" and the settings "
         "\"traces.resource\", \"traces.span\", \"traces.spanevent\" at the same time"},
        {"{traces: {scope: ['true']}}", "scope"},
        {"{metric_conditions: ['metric.name == \"x\"']}",
         "profcol relays metrics and logs unopened"},
        {"{metric_conditions: [{context: datapoint, conditions: ['true']}]}",
         "profcol relays metrics and logs unopened"},
        {"{log_conditions: ['log.body == \"x\"']}", "profcol relays metrics and logs unopened"},
        {"{metrics: {metric: ['name == \"x\"']}}", "profcol relays metrics and logs unopened"},
        {"{logs: {log_record: ['body == \"x\"']}}", "profcol relays metrics and logs unopened"},
        {"{spans: {include: {match_type: strict, services: [x]}}}", "write OTTL conditions"},
        {"{metrics: {exclude: {match_type: strict}}}", "write OTTL conditions"},
        {"{profile_conditions: ['profilesample.leaf.functions == \"f\"']}",
         "did you mean \"profilesample.leaf.function\"?"},
        {"{profile_conditions: [{context: profile, conditions: ['period == 1 and "
         "StackContains(\"x\")']}]}",
         "the context profile has no function \"StackContains\""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        fixture_refuses(&filter_processor_type, wrong[i].settings, wrong[i].wanted);
}

/* A name of a function that only dropped samples had. */
static void leaves_nothing_of_dropped_samples(void **state)
{
    (void)state;
    struct fixture f;
    struct probe probe;
    struct text json = {0};
    fixture_init(&f, 1);
    struct fixture_place *place =
        fixture_place(&f, &filter_processor_type, "filter",
                      "processors: {filter: {profile_conditions: "
                      "['IsMatch(profilesample.leaf.function, \"^secret\")']}}",
                      "profiles", SIGNAL_PROFILES);
    text_append(
        &json, "{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{\"samples\":["
               "{\"stackIndex\":1,\"values\":[\"1\"]},{\"stackIndex\":2,\"values\":[\"2\"]}]}]}]}],"
               "\"dictionary\":{\"stringTable\":[\"\",\"secret_function\",\"main\"],"
               "\"functionTable\":[{},{\"nameStrindex\":1},{\"nameStrindex\":2}],"
               "\"locationTable\":[{},{\"lines\":[{\"functionIndex\":1}]},{\"lines\":[{"
               "\"functionIndex\":2}]}],\"stackTable\":[{},{\"locationIndices\":[1]},{"
               "\"locationIndices\":[2]}],\"mappingTable\":[{}],\"linkTable\":[{}],"
               "\"attributeTable\":[{}]}}");
    fixture_consume_json(&f, place->nodes[0], text_string(&json), 2, &probe);
    assert_int_equal(f.recorder.count, 1);
    const struct recorded *got = &f.recorder.items[0];
    assert_int_equal(got->items, 1);
    assert_non_null(memmem(got->bytes, got->size, "main", 4));
    assert_null(memmem(got->bytes, got->size, "secret", 6));
    fixture_deinit(&f);
    text_deinit(&json);
}

/* A batch that is large enough for a job. */
static void filters_large_batches(void **state)
{
    (void)state;
    struct text request = {0};
    struct outcome outcome;
    text_append(&request, "a{s(");
    for (int i = 0; i < 12000; i++)
        text_append(&request, i % 3 ? "x " : "y ");
    text_append(&request, ")}");
    filter(SIGNAL_TRACES, "{trace_conditions: ['span.name == \"x\"']}", text_string(&request),
           &outcome);
    assert_int_equal(outcome.items, 4000);
    assert_non_null(strstr(text_string(&outcome.metrics),
                           "otelcol_processor_filter_spans_filtered{filter=\"filter\"} 8000\n"));
    outcome_deinit(&outcome);
    text_deinit(&request);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drops_what_conditions_are_true_for),
        cmocka_unit_test(counts_what_it_drops),
        cmocka_unit_test(refuses_acknowledged_data_for_good),
        cmocka_unit_test(refuses_wrong_settings),
        cmocka_unit_test(leaves_nothing_of_dropped_samples),
        cmocka_unit_test(filters_large_batches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
