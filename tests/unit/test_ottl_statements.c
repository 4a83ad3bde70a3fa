/* Each statement is executed on the same request; a condition says what is there afterwards, in the
 * changed tree and in the bytes that would be sent. */
#include "core/base/arena.h"
#include "core/data/otlp.h"
#include "core/data/scan.h"
#include "core/ottl/ottl.h"
#include "tests/unit/expect_text.h"
#include "tests/unit/pipeline_fixture.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const char request_json[] =
    "{'resourceSpans':[{'schemaUrl':'https://r','resource':{'attributes':["
    "{'key':'service.name','value':{'stringValue':'shop'}},"
    "{'key':'host','value':{'stringValue':'h1'}}]},"
    "'scopeSpans':[{'scope':{'name':'lib','version':'1'},'spans':[{"
    "'traceId':'0102030405060708090a0b0c0d0e0f10','spanId':'a1a2a3a4a5a6a7a8',"
    "'traceState':'k=v,other=x','name':'GET /cart/123/item/45','kind':2,"
    "'startTimeUnixNano':'1000000000','endTimeUnixNano':'3500000000',"
    "'events':[{'name':'e','timeUnixNano':'2000000000','attributes':["
    "{'key':'k','value':{'stringValue':'in event'}}]}],"
    "'attributes':["
    "{'key':'s','value':{'stringValue':'text'}},"
    "{'key':'long','value':{'stringValue':'a\xc3\x84rgerlich long text'}},"
    "{'key':'i','value':{'intValue':'5'}},"
    "{'key':'d','value':{'doubleValue':1.5}},"
    "{'key':'t','value':{'boolValue':true}},"
    "{'key':'bytes','value':{'bytesValue':'AQL/'}},"
    "{'key':'none'},"
    "{'key':'list','value':{'arrayValue':{'values':[{'intValue':'1'},{'stringValue':'x'}]}}},"
    "{'key':'map','value':{'kvlistValue':{'values':["
    "{'key':'a','value':{'stringValue':'A'}},"
    "{'key':'in','value':{'kvlistValue':{'values':["
    "{'key':'deep','value':{'stringValue':'yes'}}]}}}]}}},"
    "{'key':'twice','value':{'stringValue':'first'}},"
    "{'key':'twice','value':{'stringValue':'second'}},"
    "{'key':'http.url','value':{'stringValue':'https://x/y?password=1&token=2'}},"
    "{'key':'json','value':{'stringValue':'{\\'n\\': 1, \\'o\\': {\\'p\\': [true]}}'}}"
    "]}]}]}]}";

struct sample {
    struct buffer *request;
    struct arena arena;
    struct message root;
    struct ottl_way way;
    struct ottl_item item;
    struct ottl_cache cache;
    struct ottl_draft *draft;
};

static void enter(struct sample *sample, unsigned level, uint32_t number)
{
    struct ottl_way *way = &sample->way;
    way->iters[level] = level == 0 ? message_iter(&sample->root, &sample->arena)
                                   : message_iter_into(&way->fields[level - 1], &sample->arena);
    assert_true(message_next_bytes(&way->iters[level], number, &way->fields[level]));
}

static struct message_iter inside(struct sample *sample, unsigned level)
{
    struct message_iter it = message_iter_into(&sample->way.fields[level], &sample->arena);
    it.arena = &sample->arena;
    return it;
}

static void read_sample(struct sample *sample)
{
    enter(sample, 0, REQUEST_GROUPS);
    enter(sample, 1, GROUP_SCOPES);
    enter(sample, 2, SCOPE_ITEMS);
    enter(sample, 3, SPAN_EVENTS);
    ottl_item_begin(&sample->item);
    ottl_item_set_group(&sample->item, inside(sample, 0));
    ottl_item_set_scope_group(&sample->item, inside(sample, 1));
    ottl_item_set_span(&sample->item, inside(sample, 2));
    ottl_item_set_span_event(&sample->item, inside(sample, 3));
    if (!sample->draft)
        sample->draft = ottl_draft_new();
    ottl_item_set_way(&sample->item, &sample->way, sample->draft, 1 << 20);
    sample->item.cache = &sample->cache;
}

static void sample_init(struct sample *sample)
{
    char json[sizeof request_json * 2];
    size_t size = 0;
    /* ' stands for ", and \' for \". */
    for (const char *c = request_json; *c; c++)
        json[size++] = (char)(*c == '\'' ? '"' : *c);
    json[size] = '\0';
    *sample = (struct sample){.request = fixture_encode(SIGNAL_TRACES, json)};
    arena_init(&sample->arena, NULL);
    message_init(&sample->root, buffer_slice(sample->request));
    read_sample(sample);
}

static void sample_deinit(struct sample *sample)
{
    ottl_cache_clear(&sample->cache);
    ottl_draft_free(sample->draft);
    arena_deinit(&sample->arena);
    buffer_unref(sample->request);
}

/* Reads what would be sent, which the next receiver accepts. */
static void send_sample(struct sample *sample)
{
    struct scan_result scanned;
    struct error err;
    ottl_item_leave(&sample->item, 0);
    size_t size = message_measure(&sample->root);
    uint8_t *bytes = arena_alloc(&sample->arena, size);
    assert_ptr_equal(message_write(&sample->root, bytes), bytes + size);
    if (!scan_traces(slice_of(bytes, size), &scan_limits_default, &scanned, &err))
        fail_msg("what is sent: %s", err.text);
    message_init(&sample->root, slice_of(bytes, size));
    read_sample(sample);
}

static void execute(enum ottl_context context, const char *statement, struct sample *sample,
                    struct text *out)
{
    struct error err;
    struct ottl_program *program =
        ottl_compile_statement(context, slice_of_string(statement), OTTL_PREFIX_OPTIONAL, &err);
    if (!program) {
        text_printf(out, "! %s", err.text);
        return;
    }
    struct ottl_evaluator *evaluator = ottl_evaluator_new(program);
    enum ottl_result result = ottl_execute(evaluator, &sample->item);
    if (result == OTTL_FAILED)
        text_printf(out, "? %s", ottl_evaluator_error(evaluator));
    else if (result == OTTL_NO_MATCH)
        text_append(out, "no match");
    ottl_evaluator_free(evaluator);
    ottl_program_free(program);
}

static bool holds(enum ottl_context context, const char *condition, struct ottl_item *item)
{
    struct error err;
    struct ottl_program *program =
        ottl_compile_condition(context, slice_of_string(condition), OTTL_PREFIX_OPTIONAL, &err);
    if (!program)
        fail_msg("%s", err.text);
    struct ottl_evaluator *evaluator = ottl_evaluator_new(program);
    enum ottl_result result = ottl_evaluate(evaluator, item);
    if (result == OTTL_FAILED)
        fail_msg("%s: %s", condition, ottl_evaluator_error(evaluator));
    ottl_evaluator_free(evaluator);
    ottl_program_free(program);
    return result == OTTL_MATCH;
}

struct row {
    const char *statement;
    const char *wanted; /* a condition; "? ...": the error, "! ...": that of the compiler */
};

static bool is_message(const char *wanted)
{
    return wanted[0] == '?' || wanted[0] == '!' || strcmp(wanted, "no match") == 0;
}

static void check_row(enum ottl_context context, const struct row *row)
{
    struct sample sample;
    struct text got = {0};
    sample_init(&sample);
    execute(context, row->statement, &sample, &got);
    if (is_message(row->wanted)) {
        if (!strstr(text_string(&got), row->wanted + (row->wanted[0] == 'n' ? 0 : 2)) ||
            text_string(&got)[0] != row->wanted[0])
            fail_msg("%s: got %s", row->statement, text_string(&got));
    } else {
        if (got.size > 0)
            fail_msg("%s: %s", row->statement, text_string(&got));
        ottl_item_finish(&sample.item);
        if (!holds(context, row->wanted, &sample.item))
            fail_msg("%s: not %s", row->statement, row->wanted);
        send_sample(&sample);
        if (!strstr(row->wanted, "cache") && !holds(context, row->wanted, &sample.item))
            fail_msg("%s: as sent, not %s", row->statement, row->wanted);
    }
    text_deinit(&got);
    sample_deinit(&sample);
}

static void check(enum ottl_context context, const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        check_row(context, &rows[i]);
}

#define CHECK(context, rows) check(context, rows, sizeof(rows) / sizeof *(rows))

static void test_set(void **state)
{
    static const struct row rows[] = {
        {"set(attributes[\"new\"], \"v\")",
         "attributes[\"new\"] == \"v\" and Len(attributes) == 14"},
        {"set(attributes[\"s\"], 7)", "attributes[\"s\"] == 7 and Len(attributes) == 13"},
        {"set(attributes[\"twice\"], 7)", "attributes[\"twice\"] == 7"},
        {"set(attributes[\"s\"], attributes[\"map\"])",
         "attributes[\"s\"][\"in\"][\"deep\"] == \"yes\""},
        {"set(attributes[\"s\"], [1, \"a\", {\"k\": 1.5}, nil, true, 0x01])",
         "attributes[\"s\"][2][\"k\"] == 1.5 and Len(attributes[\"s\"]) == 6"},
        {"set(attributes[\"n\"], attributes[\"absent\"])",
         "Len(attributes) == 14 and attributes[\"n\"] == nil"},
        {"set(attributes[\"n\"], trace_id)",
         "? unsupported type pcommon.TraceID for set operation"},
        {"set(attributes[\"map\"][\"in\"][\"deep\"], 1)",
         "attributes[\"map\"][\"in\"][\"deep\"] == 1 and attributes[\"map\"][\"a\"] == \"A\""},
        {"set(attributes[\"map\"][\"x\"][\"y\"], 1)", "attributes[\"map\"][\"x\"][\"y\"] == 1"},
        {"set(attributes[\"x\"][2], 1)",
         "attributes[\"x\"][2] == 1 and attributes[\"x\"][0] == nil and Len(attributes[\"x\"]) == "
         "3"},
        {"set(attributes[\"list\"][1], 1)", "attributes[\"list\"][1] == 1"},
        {"set(attributes[\"list\"][2], 1)", "? index 2 out of bounds"},
        {"set(attributes[\"s\"][\"x\"], 1)", "? type Str does not support string indexing"},
        {"set(attributes[\"x\"][9999999999], 1)", "? the request would grow too much"},
        {"set(attributes, {\"a\": 1})", "Len(attributes) == 1 and attributes[\"a\"] == 1"},
        {"set(attributes, attributes)", "Len(attributes) == 13"},
        {"set(attributes, resource.attributes)",
         "attributes[\"host\"] == \"h1\" and Len(attributes) == 2"},
        {"set(attributes, 1)", "? failed to convert type int64 into pcommon.Map"},
        {"set(attributes, nil)", "Len(attributes) == 0"},
        {"clear(attributes)", "Len(attributes) == 0"},
        {"set(name, \"n\")", "name == \"n\""},
        {"set(name, nil)", "? setting a value to nil is not supported"},
        {"set(name, 5)", "? expects string but got int64"},
        {"set(name, \"n\") where kind == 3", "no match"},
        {"set(name, \"n\") where 1 / 0 == 1", "? attempted to divide by 0"},
        {"set(kind, 99)", "kind == 99"},
        {"set(kind, -1)", "kind == -1"},
        {"set(kind.string, \"Client\")", "kind == SPAN_KIND_CLIENT"},
        {"set(kind.string, \"client\")", "? unknown span kind, 'client'"},
        {"set(kind.deprecated_string, \"SPAN_KIND_PRODUCER\")", "kind == 4"},
        {"set(dropped_events_count, -1)", "dropped_events_count == 4294967295"},
        {"set(flags, 257)", "flags == 257"},
        {"set(flags, -1)", "? flags must be a uint32"},
        {"set(status.code, STATUS_CODE_ERROR)", "status.code == 2"},
        {"set(status.message, \"m\")", "status.message == \"m\" and status.code == 0"},
        {"set(start_time_unix_nano, 5)", "start_time_unix_nano == 5"},
        {"set(end_time, start_time)", "end_time_unix_nano == 1000000000"},
        {"set(end_time, 5)", "? expects time.Time but got int64"},
        {"set(trace_id.string, \"ff\")", "? trace ids must be 32 hex characters"},
        {"set(trace_id.string, \"ffffffffffffffffffffffffffffffff\")",
         "trace_id.string == \"ffffffffffffffffffffffffffffffff\""},
        {"set(parent_span_id, span_id)", "parent_span_id.string == \"a1a2a3a4a5a6a7a8\""},
        {"set(span_id.string, \"0000000000000000\")", "span_id == parent_span_id"},
        {"set(trace_state, \"a=b\")", "trace_state[\"a\"] == \"b\""},
        {"set(trace_state[\"other\"], \"y\")", "trace_state == \"other=y,k=v\""},
        {"set(trace_state[\"n\"], \"=\")", "trace_state == \"k=v,other=x\""},
        {"set(events, events)", "Len(events) == 1"},
        {"set(events, links)", "? events are no links"},
        {"set(resource.attributes[\"host\"], name)", "resource.attributes[\"host\"] == name"},
        {"set(resource.schema_url, \"u\")", "resource.schema_url == \"u\""},
        {"set(scope.name, \"n\")", "scope.name == \"n\" and scope.version == \"1\""},
        {"set(scope.attributes[\"k\"], 1)", "scope.attributes[\"k\"] == 1"},
        {"set(cache[\"k\"], name)", "cache[\"k\"] == name"},
        {"set(cache, {\"a\": {\"b\": 1}})", "cache[\"a\"][\"b\"] == 1"},
        {"set(resource.cache[\"k\"], name)", "! access to cache must be performed using the same"},
        {"set(\"k\", name)", "! must be a path"},
        {"set(attributes[\"k\"])", "! incorrect number of arguments, 1; write set(target, value)"},
        {"sett(name, \"x\")", "! undefined function \"sett\"; did you mean \"set\"?"},
        {"Set(name, \"x\")", "! editor names must start with a lowercase letter but got 'Set'"},
        {"drop()", "! undefined function \"drop\""},
    };
    (void)state;
    CHECK(OTTL_SPAN, rows);
}

static void test_other_contexts(void **state)
{
    static const struct row events[] = {
        {"set(attributes[\"k\"], span.name)", "attributes[\"k\"] == span.name"},
        {"set(name, \"x\")", "name == \"x\""},
        {"set(time_unix_nano, 7)", "time_unix_nano == 7"},
        {"set(span.attributes[\"k\"], 1)", "span.attributes[\"k\"] == 1"},
        {"set(event_index, 1)", "? spanevent.event_index cannot be set"},
        {"set(event_index, \"x\")", "? spanevent.event_index cannot be set"},
        {"set(attributes[\"all\"], span.attributes)",
         "Len(attributes[\"all\"]) == 13 and attributes[\"all\"][\"map\"] == "
         "span.attributes[\"map\"]"},
        {"set(attributes, {\"s\": span.attributes, \"r\": [resource.attributes]})",
         "Len(attributes[\"s\"]) == 13 and attributes[\"r\"][0][\"host\"] == \"h1\""},
        {"merge_maps(attributes, span.attributes, \"insert\")",
         "attributes[\"s\"] == \"text\" and attributes[\"k\"] == \"in event\" and "
         "Len(attributes) == 13"},
        {"set(attributes[\"n\"], span.attributes[Concat([\"tw\", \"ice\"], \"\")])",
         "attributes[\"n\"] == \"first\""},
        {"set(name, \"twice\") where span.attributes[name] == nil", "name == \"twice\""},
        {"set(name, \"x\") where span.attributes[attributes[\"k\"]] != nil", "no match"},
        {"set(name, span.attributes[\"map\"][Concat([\"i\", TrimSuffix(attributes[\"k\"], \" "
         "event\")], \"\")][\"deep\"])",
         "? setting a value to nil"},
        {"set(name, span.attributes[\"map\"][TrimSuffix(attributes[\"k\"], \" "
         "event\")][\"deep\"])",
         "name == \"yes\""},
        {"set(name, span.attributes[\"list\"][Len(name)])", "name == \"x\""},
        {"set(name, span.attributes[\"none\"][name])", "? type Empty does not support"},
        {"set(name, span.attributes[Len(name)])", "? expecting 'string' but got 'int64'"},
        {"set(name, span.trace_state[TrimSuffix(\"other\", name)])", "name == \"x\""},
        {"set(attributes[\"n\"], Len(Filter(span.attributes, (k, v) => span.attributes[k] == v)))",
         "attributes[\"n\"] == 12"},
    };
    static const struct row resources[] = {
        {"set(attributes[\"k\"], 1)", "attributes[\"k\"] == 1 and Len(attributes) == 3"},
        {"set(dropped_attributes_count, 3)", "dropped_attributes_count == 3"},
        {"delete_key(attributes, \"host\")", "attributes[\"host\"] == nil"},
    };
    static const struct row scopes[] = {{"set(version, \"2\")", "version == \"2\""}};
    (void)state;
    CHECK(OTTL_SPAN_EVENT, events);
    CHECK(OTTL_RESOURCE, resources);
    CHECK(OTTL_SCOPE, scopes);
}

/* A list may be read or computed. */
static void test_list_arguments(void **state)
{
    static const struct row rows[] = {
        {"set(name, Concat(attributes[\"list\"], \"-\"))", "name == \"1-x\""},
        {"set(name, Concat(Split(attributes[\"s\"], \"e\"), \"_\"))", "name == \"t_xt\""},
        {"set(name, Concat(Split(\"a-b\", \"-\"), \"_\"))", "name == \"a_b\""},
        {"set(name, Concat(vals=Keys(resource.attributes), delimiter=\",\"))",
         "name == \"service.name,host\""},
        {"set(name, Concat(Filter(attributes[\"list\"], (i, v) => Concat(Split(\"1\", \",\"), "
         "\"\") == String(v)), \"\"))",
         "name == \"1\""},
        {"set(name, Concat(attributes[\"s\"], \"-\"))", "? expected pcommon.Slice but got string"},
        {"set(name, Concat(attributes[\"gone\"], \"-\"))", "? expected pcommon.Slice but got nil"},
        {"set(name, Concat(attributes[\"map\"], \"-\"))", "? expected pcommon.Slice but got"},
        {"set(name, Concat(name, \"-\"))", "! argument 1 of Concat: must be a list"},
        {"set(name, Concat(nil, \"-\"))", "! argument 1 of Concat: must be a list"},
        {"set(name, Concat(attributes, \"-\"))", "! argument 1 of Concat: must be a list"},
        {"keep_keys(attributes, Split(\"twice,s,gone\", \",\"))",
         "Len(attributes) == 3 and attributes[\"s\"] == \"text\" and attributes[\"i\"] == nil"},
        {"keep_keys(attributes, Keys(attributes))", "Len(attributes) == 13"},
        {"keep_keys(attributes, attributes[\"list\"])", "? expected string but got int64"},
        {"keep_keys(attributes, [attributes[\"gone\"]])", "? expected string but got nil"},
        {"set(name, Format(\"%v/%v/%v\", attributes[\"list\"]))", "name == \"1/x/%!v(MISSING)\""},
        {"set(name, Format(\"%v\", attributes[\"list\"]))", "name == \"1%!(EXTRA string=x)\""},
        {"set(name, Format(\"%v\", attributes[\"i\"]))", "? expected pcommon.Slice but got int64"},
        {"set(kind, Coalesce(attributes[\"list\"]))", "kind == 1"},
        {"set(attributes[\"s\"], Coalesce([nil, nil]))", "attributes[\"s\"] == nil"},
        {"set(name, \"in\") where IsInCIDR(\"10.0.0.1\", Split(\"::/0,10.0.0.0/8\", \",\"))",
         "name == \"in\""},
        {"set(name, \"in\") where IsInCIDR(\"10.0.0.1\", attributes[\"list\"])",
         "? expected string but got int64"},
        {"limit(attributes, 5, Split(\"s\", \",\"))", "! must be a list"},
    };
    (void)state;
    CHECK(OTTL_SPAN, rows);
}

/* What a path does not take compiles, with a warning, and fails. */
static void test_warnings(void **state)
{
    static const struct {
        const char *statement, *result, *warning;
    } rows[] = {
        {"set(kind, \"SERVER\")", "? expects int64",
         "OTTL statement \"set(kind, \"SERVER\")\": 1:11: kind takes an integer, and not a text; "
         "write SPAN_KIND_SERVER"},
        {"set(status.code, \"error\")", "? expects int64", "; write STATUS_CODE_ERROR"},
        {"set(start_time, \"now\")", "? expects time.Time", "; write Now(), or Time("},
        {"set(start_time_unix_nano, Now())", "? expects int64", "; write UnixNano(...)"},
        {"set(name, nil)", "? setting a value to nil", "name cannot be set to nil; write \"\""},
        {"set(parent_span_id, nil)", "? setting a value to nil",
         "; write SpanID(0x0000000000000000)"},
        {"set(parent_span_id, \"abc\")", "? expects pcommon.SpanID", "; use parent_span_id.string"},
        {"set(trace_id.string, \"abc\")", "? trace ids must be 32", "a trace id is 32 hex digits"},
        {"set(parent_span_id.string, \"\")", "? span ids must be 16", "a span id is 16 hex digits"},
        {"set(kind.string, \"SERVER\")", "? unknown span kind", "it is one of Unspecified"},
        {"set(kind.deprecated_string, \"Server\")", "? unknown span kind", "as SPAN_KIND_SERVER"},
        {"set(kind, 99)", "", "a kind of span is SPAN_KIND_UNSPECIFIED (0) to"},
        {"set(status.code, -1)", "", "a status is STATUS_CODE_UNSET (0), STATUS_CODE_OK (1) or"},
        {"set(dropped_events_count, -1)", "", "it must be between 0 and 4294967295"},
        {"set(flags, 4294967296)", "? flags", "it must be between 0 and 4294967295"},
        {"set(name, kind)", "? expects string", "name takes a text, and not an integer"},
        {"set(status, STATUS_CODE_OK)", "? expects ptrace.Status", "; use status.code"},
        {"set(attributes, \"x\")", "? ", "; a single entry is written with [\"key\"]"},
        {"set(attributes[\"a\"], end_time - start_time)", "? unsupported type",
         "an attribute cannot be a duration; write Milliseconds(...)"},
        {"set(attributes[\"a\"], trace_id)", "? unsupported type", "; use trace_id.string"},
        {"set(attributes[\"a\"], Now())", "? unsupported type", "; write FormatTime(...)"},
        {"set(value=5, target=name)", "? expects string", ":11: name takes a text"},
        {"truncate_all(name, 10)", "? ", "truncate_all changes a map, and name is a text"},
        {"append(name, \"x\")", "? ", "append changes a list, and name is a text"},
        {"replace_pattern(kind, \"a\", \"b\")", "", "changes a text, and kind is an integer"},
        {"set(kind, SPAN_KIND_SERVER)", "", NULL},
        {"set(attributes, nil)", "", NULL},
        {"set(attributes[\"a\"], nil)", "", NULL},
        {"set(kind.string, \"Server\")", "", NULL},
        {"set(trace_id.string, \"01020304050607080102030405060708\")", "", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error err;
        size_t offset;
        struct sample sample;
        struct text got = {0};
        sample_init(&sample);
        execute(OTTL_SPAN, rows[i].statement, &sample, &got);
        if (strncmp(text_string(&got), rows[i].result, strlen(rows[i].result)) != 0 ||
            (got.size > 0) != (rows[i].result[0] != '\0'))
            fail_msg("%s: got %s", rows[i].statement, text_string(&got));
        struct ottl_program *program = ottl_compile_statement(
            OTTL_SPAN, slice_of_string(rows[i].statement), OTTL_PREFIX_OPTIONAL, &err);
        const char *warning = ottl_program_warning(program, 0, &offset);
        if ((warning == NULL) != (rows[i].warning == NULL) ||
            (warning && !strstr(warning, rows[i].warning)))
            fail_msg("%s: %s", rows[i].statement, warning ? warning : "no warning");
        ottl_program_free(program);
        text_deinit(&got);
        sample_deinit(&sample);
    }
}

static void test_keys(void **state)
{
    static const struct row rows[] = {
        {"delete_key(attributes, \"s\")", "attributes[\"s\"] == nil and Len(attributes) == 12"},
        {"delete_key(attributes, \"absent\")", "Len(attributes) == 13"},
        {"delete_key(attributes, \"twice\")", "attributes[\"twice\"] == \"second\""},
        {"delete_key(attributes[\"map\"], \"a\")",
         "attributes[\"map\"][\"a\"] == nil and Len(attributes[\"map\"]) == 1"},
        {"delete_key(attributes[\"s\"], \"a\")", "? expected pcommon.Map but got string"},
        {"delete_key(attributes[\"absent\"], \"a\")", "? expected pcommon.Map but got nil"},
        {"delete_key(attributes, attributes[\"i\"])", "? expected string but got int64"},
        {"delete_key(attributes, 5)", "! expected string but got int64"},
        {"keep_keys(attributes, [\"s\", \"i\", \"absent\"])",
         "Len(attributes) == 2 and attributes[\"i\"] == 5"},
        {"keep_keys(attributes, [])", "Len(attributes) == 0"},
        {"delete_matching_keys(attributes, \"(?i)^S$|^twice\")",
         "Len(attributes) == 10 and attributes[\"s\"] == nil"},
        {"keep_matching_keys(attributes, \"^s$\")", "Len(attributes) == 1"},
        {"delete_matching_keys(attributes, \"(\")",
         "! the pattern of delete_matching_keys is not valid"},
        {"limit(attributes, 2, [\"json\"])",
         "Len(attributes) == 2 and attributes[\"json\"] != nil and attributes[\"s\"] == \"text\""},
        {"limit(attributes, 20, [])", "Len(attributes) == 13"},
        {"limit(attributes, 20)", "! incorrect number of arguments"},
        {"limit(attributes, 1, [name])", "! must be a string"},
        {"keep_keys(attributes, [1])", "! must be a string"},
        {"limit(attributes, 1, [\"a\", \"b\"])", "! cannot be less than number of priority"},
        {"limit(attributes, -1, [])", "! must be an int"},
        {"limit(attributes)", "! incorrect number of arguments"},
    };
    (void)state;
    CHECK(OTTL_SPAN, rows);
}

static void test_maps(void **state)
{
    static const struct row rows[] = {
        {"merge_maps(attributes, {\"s\": 1, \"x\": 2}, \"insert\")",
         "attributes[\"s\"] == \"text\" and attributes[\"x\"] == 2"},
        {"merge_maps(attributes, {\"s\": 1, \"x\": 2}, \"update\")",
         "attributes[\"s\"] == 1 and attributes[\"x\"] == nil"},
        {"merge_maps(attributes, {\"s\": 1, \"x\": 2}, \"upsert\")",
         "attributes[\"s\"] == 1 and attributes[\"x\"] == 2"},
        {"merge_maps(attributes, attributes, \"upsert\")", "Len(attributes) == 13"},
        {"merge_maps(attributes, resource.attributes, \"insert\")",
         "attributes[\"host\"] == \"h1\""},
        {"merge_maps(attributes, attributes[\"absent\"], \"insert\")",
         "? expected pcommon.Map but got nil"},
        {"merge_maps(attributes, {}, \"x\")", "! must be 'insert', 'update' or 'upsert'"},
        {"merge_maps(attributes[\"map\"][\"in\"], {\"n\": 1}, \"upsert\")",
         "attributes[\"map\"][\"in\"][\"n\"] == 1 and attributes[\"map\"][\"in\"][\"deep\"] == "
         "\"yes\""},
        {"merge_maps(cache, {\"n\": 1}, \"upsert\")", "cache[\"n\"] == 1"},
        {"truncate_all(attributes, 2)", "attributes[\"s\"] == \"te\" and attributes[\"long\"] == "
                                        "\"a\" and attributes[\"i\"] == 5"},
        {"truncate_all(attributes, 0)", "attributes[\"s\"] == \"\""},
        {"truncate_all(attributes, 100)", "attributes[\"s\"] == \"text\""},
        {"truncate_all(attributes, 3, true, \"..\")",
         "attributes[\"s\"] == \"t..\" and attributes[\"long\"] == \"a..\""},
        {"truncate_all(attributes, 2, utf8_safe=false)", "attributes[\"long\"] == \"a\""},
        {"stringify_all(attributes)",
         "attributes[\"i\"] == \"5\" and attributes[\"bytes\"] == \"AQL/\" and attributes[\"t\"] "
         "== \"true\" and attributes[\"list\"] == \"[1,\\\"x\\\"]\""},
        {"flatten(attributes)",
         "attributes[\"map.in.deep\"] == \"yes\" and attributes[\"list.1\"] == \"x\" and "
         "attributes[\"map\"] == nil and attributes[\"twice\"] == \"second\""},
        {"flatten(attributes, \"p\")",
         "attributes[\"p.s\"] == \"text\" and attributes[\"s\"] == nil"},
        {"flatten(attributes, depth=1)", "attributes[\"map.in\"][\"deep\"] == \"yes\""},
        {"flatten(attributes, resolve_conflicts=true)",
         "attributes[\"twice\"] == \"first\" and attributes[\"twice.0\"] == \"second\""},
        {"append(attributes[\"list\"], 2)",
         "attributes[\"list\"][2] == 2 and Len(attributes[\"list\"]) == 3"},
        {"append(attributes[\"s\"], values=[\"a\", \"b\"])",
         "attributes[\"s\"][0] == \"text\" and attributes[\"s\"][2] == \"b\""},
        {"append(attributes[\"new\"], \"a\")",
         "attributes[\"new\"][0] == \"a\" and Len(attributes[\"new\"]) == 1"},
        {"append(attributes[\"new\"])", "! at least one of the optional arguments"},
        {"delete_index(attributes[\"list\"], 0)",
         "attributes[\"list\"][0] == \"x\" and Len(attributes[\"list\"]) == 1"},
        {"delete_index(attributes[\"list\"], 0, 2)", "Len(attributes[\"list\"]) == 0"},
        {"delete_index(attributes[\"list\"], 2)", "? deletion index out of bounds"},
        {"delete_index(attributes[\"s\"], 0)", "? target must be a slice type, got string"},
    };
    (void)state;
    CHECK(OTTL_SPAN, rows);
}

static void test_replace(void **state)
{
    static const struct row rows[] = {
        {"replace_pattern(name, \"/[0-9]+\", \"/{id}\")", "name == \"GET /cart/{id}/item/{id}\""},
        {"replace_pattern(name, \"/(\\\\d+)\", \"/<$1>\")",
         "name == \"GET /cart/<123>/item/<45>\""},
        {"replace_pattern(name, \"/(?P<n>\\\\d+)\", \"/${n}x$nx$$\")",
         "name == \"GET /cart/123x$/item/45x$\""},
        {"replace_pattern(name, \"(\\\\d+)\", \"$1x $ ${} \\\\1\")",
         "name == \"GET /cart/ $ ${} \\\\1/item/ $ ${} \\\\1\""},
        {"replace_pattern(attributes[\"s\"], \"a*\", \"-\")", "attributes[\"s\"] == \"-t-e-x-t-\""},
        {"replace_pattern(attributes[\"s\"], \"x*\", \"-\")", "attributes[\"s\"] == \"-t-e-t-\""},
        {"replace_pattern(attributes[\"i\"], \"5\", \"6\")", "attributes[\"i\"] == 5"},
        {"replace_pattern(attributes[\"absent\"], \"5\", \"6\")", "attributes[\"absent\"] == nil"},
        {"replace_pattern(attributes[\"s\"], \"t\", \"$0\", ToUpperCase)",
         "attributes[\"s\"] == \"TexT\""},
        {"replace_pattern(attributes[\"s\"], \"t\", \"$0\", ToUpperCase, \"<%s>\")",
         "attributes[\"s\"] == \"<T>ex<T>\""},
        {"replace_pattern(attributes[\"s\"], \"t\", \"$0\", ToUpperCase, \"%d\")",
         "? replacementFormat must be format string"},
        {"replace_pattern(attributes[\"s\"], \"t\", \"$0\", ToUpperCase, \"%s%s\")",
         "? replacementFormat must be format string"},
        {"replace_pattern(attributes[\"s\"], \"zzz\", \"$0\", ToUpperCase, \"%d\")",
         "attributes[\"s\"] == \"text\""},
        {"replace_pattern(attributes[\"s\"], \"t\", \"T\", replacement_format=\"%d\")",
         "attributes[\"s\"] == \"TexT\""},
        {"replace_pattern(attributes[\"s\"], \"t\", \"$0\", ToUpperCase, Concat([\"<%s\", "
         "attributes[\"s\"]], \"\"))",
         "attributes[\"s\"] == \"<Ttextex<Ttext\""},
        {"replace_pattern(attributes[\"s\"], \"t\", \"$0\", ToUpperCase, attributes[\"absent\"])",
         "? expected string but got nil"},
        {"replace_pattern(attributes[\"s\"], \"zzz\", \"\", ToUpperCase, attributes[\"absent\"])",
         "attributes[\"s\"] == \"text\""},
        {"replace_pattern(attributes[\"s\"], \"t\", \"$0\", Concat)", "? it takes other arguments"},
        {"replace_pattern(attributes[\"s\"], \"t\", \"$0\", IsMatch)",
         "? it takes other arguments"},
        {"replace_pattern(attributes[\"s\"], \"t\", \"$0\", Now)", "? it takes no argument"},
        {"replace_pattern(attributes[\"s\"], \"t\", \"$0\", Len)",
         "? the replacement value must be a string"},
        {"replace_pattern(attributes[\"s\"], \"zzz\", \"$0\", Concat)",
         "attributes[\"s\"] == \"text\""},
        {"keep_keys(attributes, [\"s\", Len(\"abc\")])", "? expected string but got int64"},
        {"keep_keys(attributes, [\"s\", 1 + 1])", "? expected string but got int64"},
        {"flatten(attributes[\"map\"], resolveConflicts=true)",
         "attributes[\"map\"][\"in.deep\"] == \"yes\""},
        {"set(attributes[\"x\"], IsRootSpan(1, \"x\"))", "attributes[\"x\"] == true"},
        {"replace_pattern(attributes[\"s\"], \"t\", \"$0\", Nothing)", "! undefined function"},
        {"replace_pattern(attributes[\"s\"], \"(\", \"\")", "! missing closing )"},
        {"replace_all_patterns(attributes, \"value\", \"t\", \"T\")",
         "attributes[\"s\"] == \"TexT\" and attributes[\"map\"][\"a\"] == \"A\""},
        {"replace_all_patterns(attributes, \"key\", \"^(s|i)$\", \"k_$1\")",
         "attributes[\"k_s\"] == \"text\" and attributes[\"k_i\"] == 5 and Len(attributes) == 12"},
        {"replace_all_patterns(attributes, \"key\", \"^(s|i)$\", \"same\")",
         "attributes[\"same\"] == 5 and attributes[\"s\"] == nil"},
        {"replace_all_patterns(attributes, \"x\", \"t\", \"T\")", "! invalid mode x"},
        {"replace_match(name, \"GET /*/item/*\", \"GET item\")", "name == \"GET item\""},
        {"replace_match(name, \"/*/item/*\", \"x\")", "name == \"GET /cart/123/item/45\""},
        {"replace_match(name, \"{GET,PUT} /c??t/[0-9]*\", \"x\")", "name == \"x\""},
        {"replace_match(name, \"GET*\", \"x\", ToUpperCase, \"%s!\")", "name == \"X!\""},
        {"replace_all_matches(attributes, \"te*\", \"x\")",
         "attributes[\"s\"] == \"x\" and attributes[\"twice\"] == \"first\""},
        {"replace_all_matches(attributes, \"*second*\", \"x\")",
         "attributes[\"twice\"] == \"first\""},
    };
    (void)state;
    CHECK(OTTL_SPAN, rows);
}

/* Converters, as what a statement writes. */
static void test_converters(void **state)
{
    static const struct row rows[] = {
        {"set(name, SHA256(attributes[\"s\"]))",
         "name == \"982d9e3eb996f559e633f4d194def3761d909f5a3b647d1a851fead67c32c9d1\""},
        {"set(name, SHA1(\"a\"))", "name == \"86f7e437faa5a7fce15d1ddcb9eaeaea377667b8\""},
        {"set(name, MD5(\"a\"))", "name == \"0cc175b9c0f1b6a831c399e269772661\""},
        {"set(name, Substring(SHA512(\"a\"), 0, 8))", "name == \"1f40fc92\""},
        {"set(name, SHA256(attributes[\"i\"]))", "? expected string but got int64"},
        {"set(attributes[\"x\"], FNV(\"a\"))", "attributes[\"x\"] == -5808556873153909620"},
        {"set(attributes[\"x\"], Hex(255))", "attributes[\"x\"] == \"00000000000000ff\""},
        {"set(attributes[\"x\"], Hex(\"ab\"))", "attributes[\"x\"] == \"6162\""},
        {"set(attributes[\"x\"], Len(UUID()))", "attributes[\"x\"] == 36"},
        {"set(attributes[\"x\"], ParseJSON(attributes[\"json\"]))",
         "attributes[\"x\"][\"n\"] == 1.0 and attributes[\"x\"][\"o\"][\"p\"][0] == true"},
        {"merge_maps(attributes, ParseJSON(attributes[\"json\"]), \"upsert\")",
         "attributes[\"n\"] == 1.0"},
        {"set(attributes[\"x\"], ParseJSON(\"[1, null]\"))", "Len(attributes[\"x\"]) == 2"},
        {"set(attributes[\"x\"], ParseJSON(\"1\"))", "? could not parse JSON"},
        {"set(attributes[\"x\"], ParseJSON(\"{} x\"))", "? could not parse JSON"},
        {"set(attributes[\"x\"], ParseJSON(attributes[\"absent\"]))",
         "? expected string but got nil"},
        {"merge_maps(attributes, ExtractPatterns(name, \"/(?P<a>[0-9]+)/(?P<b>x)?\"), \"insert\")",
         "attributes[\"a\"] == \"123\" and attributes[\"b\"] == \"\""},
        {"set(attributes[\"x\"], Len(ExtractPatterns(name, \"(?P<a>zzz)\")))",
         "attributes[\"x\"] == 0"},
        {"set(attributes[\"x\"], ExtractPatterns(name, \"(a)\"))",
         "? at least 1 named capture group"},
        {"set(attributes[\"x\"], ParseSeverity(\"x\", {\"warn\": [\"w\"]}))",
         "? a criterion is a map"},
        {"set(attributes[\"x\"], ParseSeverity(\"x\", attributes[\"map\"]))",
         "? it must be a literal map"},
        {"set(attributes[\"x\"], ParseInt(\"ff\", 16))", "attributes[\"x\"] == 255"},
        {"set(attributes[\"x\"], ParseInt(\"-8000000000000000\", 16))",
         "attributes[\"x\"] == -9223372036854775807 - 1"},
        {"set(attributes[\"x\"], ParseInt(\"8000000000000000\", 16))", "? could not parse"},
        {"set(attributes[\"x\"], ParseInt(\"2\", 2))", "? could not parse an integer"},
        {"set(attributes[\"x\"], ParseKeyValue(\"a=1 b='x y' c=\"))",
         "attributes[\"x\"][\"b\"] == \"x y\" and attributes[\"x\"][\"c\"] == \"\" and "
         "attributes[\"x\"][\"a\"] == \"1\""},
        {"set(attributes[\"x\"], ParseKeyValue(\"a\"))", "? a pair has no delimiter"},
        {"set(attributes[\"x\"], Keys(attributes[\"map\"]))",
         "attributes[\"x\"] == [\"a\", \"in\"]"},
        {"set(attributes[\"x\"], Values(attributes[\"map\"])[0])", "attributes[\"x\"] == \"A\""},
        {"set(attributes[\"x\"], Sort([3, 1.5, 2]))",
         "attributes[\"x\"][0] == 1.5 and attributes[\"x\"][2] == 3"},
        {"set(attributes[\"x\"], Sort([\"b\", \"a\"], \"desc\"))", "attributes[\"x\"][0] == \"b\""},
        {"set(attributes[\"x\"], Sort([1], \"up\"))", "! Order should be either"},
        {"set(attributes[\"x\"], ContainsValue(attributes[\"list\"], \"x\"))",
         "attributes[\"x\"] == true"},
        {"set(attributes[\"x\"], Index(name, \"cart\"))", "attributes[\"x\"] == 5"},
        {"set(attributes[\"x\"], Index(attributes[\"list\"], 7))", "attributes[\"x\"] == -1"},
        {"set(trace_id, TraceID(0x0102030405060708090a0b0c0d0e0f11))",
         "trace_id == TraceID(\"0102030405060708090a0b0c0d0e0f11\")"},
        {"set(trace_id, TraceID(\"01\"))", "! an id must be 16 bytes or 32 hex characters"},
        {"set(parent_span_id, SpanID(\"a1a2a3a4a5a6a7a8\"))", "parent_span_id == span_id"},
        {"set(start_time, Unix(5, 7))", "start_time_unix_nano == 5000000007"},
        {"set(start_time, Time(\"2026-11-23T08:15:30.25+0100\", \"%Y-%m-%dT%H:%M:%S.%L%z\"))",
         "start_time_unix_nano == 1795418130250000000"},
        {"set(start_time, Time(\"23 Nov 26 12:00 AM\", \"%d %b %y %I:%M %p\"))",
         "Hour(start_time) == 0 and Month(start_time) == 11 and Year(start_time) == 2026 and "
         "Day(start_time) == 23 and Weekday(start_time) == 1"},
        {"set(start_time, Time(\"2026-02-30\", \"%F\"))", "? does not match the format"},
        {"set(start_time, Time(\"2026-02-03x\", \"%F\"))", "? does not match the format"},
        {"set(start_time, Time(\"x\", \"%Q\"))", "! invalid directive %Q"},
        {"set(name, FormatTime(end_time, \"%Y-%m-%dT%H:%M:%S.%fZ %a %b %e %p\"))",
         "name == \"1970-01-01T00:00:03.5Z Thu Jan  1 AM\""},
        {"set(name, FormatTime(Unix(5), \"%F %T.%L,%s %D %r %z %Z %j %i %o %q\"))",
         "name == \"1970-01-01 00:00:05 01/01/1970 12:00:05 am Z UTC +00:00 +00  1 1\""},
        {"set(name, FormatTime(Unix(5), \"%L\"))", "! must be preceded with"},
        {"set(name, FormatTime(Unix(5), \"2006\"))", "! should not contain decimals"},
        {"set(start_time, Time(\"2024-07-29 12:00\", \"%Y-%m-%d %H:%M\", \"Europe/Berlin\"))",
         "start_time_unix_nano == 1722247200000000000"},
        {"set(name, FormatTime(Time(\"2024-07-29 12\", \"%F %H\", \"Europe/Berlin\"), \"%H %z "
         "%Z\"))",
         "name == \"12 +0200 CEST\""},
        {"set(attributes[\"x\"], Hour(Time(\"12:00 -0730\", \"%H:%M %z\") + Duration(\"1h\")))",
         "attributes[\"x\"] == 13"},
        {"set(start_time, Time(\"1\", \"%m\", \"Nowhere/Here\"))", "! unknown time zone Nowhere"},
        {"set(start_time, Time(\"1\", \"%m\", \"../../etc/passwd\"))", "! unknown time zone"},
        {"set(start_time, Time(\"1\", \"%m\", \"\", \"fr\"))", "! only English"},
        {"set(attributes[\"x\"], UnixNano(\"x\"))", "! expected time but got string"},
        {"set(name, ConvertCase(\" HTTPServerID2go\", \"snake\"))",
         "name == \"http_server_id_2_go\""},
        {"set(name, ToSnakeCase(\"\\u00c4b.c-d e\"))", "name == \"\\u00c4b_c_d_e\""},
        {"set(name, ToCamelCase(\"some_snake-CASE.x2y\"))", "name == \"SomeSnakeCaseX2Y\""},
        {"set(name, ConvertCase(name, \"kebab\"))", "! invalid case: kebab"},
        {"set(name, Format(\"%05d|%-4s|%4s|%+d|%x|%q|%.2f|%v|%t|%%\", [42, \"a\", \"b\", 1, 255, "
         "\"c\\n\", 1.5, 1000000.0, true]))",
         "name == \"00042|a   |   b|+1|ff|\\\"c\\\\n\\\"|1.50|1e+06|true|%\""},
        {"set(name, Format(\"%d %s %z\", [\"a\", nil, 1.0]))",
         "name == \"%!d(string=a) %!s(<nil>) %!z(float64=1)\""},
        {"set(name, Format(\"%s%\", []))", "name == \"%!s(MISSING)%!(NOVERB)\""},
        {"set(name, Format(\"x\", [1, \"y\"]))", "name == \"x%!(EXTRA int64=1, string=y)\""},
        {"set(name, Format(\"%*d\", [1, 2]))", "! is not supported"},
        {"set(name, Format(\"%99999d\", [1]))", "! a width of more than"},
        {"set(attributes[\"x\"], IsInCIDR(\"10.1.2.3\", [\"192.168.0.0/16\", \"10.0.0.0/8\"]))",
         "attributes[\"x\"] == true"},
        {"set(attributes[\"x\"], IsInCIDR(\"10.1.2.3\", [\"::/0\"]))",
         "attributes[\"x\"] == false"},
        {"set(attributes[\"x\"], IsInCIDR(\"fe80::1\", [\"fe80::/10\"]))",
         "attributes[\"x\"] == true"},
        {"set(attributes[\"x\"], IsInCIDR(name, [\"10.0.0.0/33\"]))", "! invalid CIDR address"},
        {"set(attributes[\"x\"], IsInCIDR(\"::1\", [name]))", "? invalid CIDR address"},
        {"set(attributes[\"x\"], SliceToMap([{\"k\": \"a\", \"v\": {\"n\": 1}}], [\"k\"], [\"v\", "
         "\"n\"]))",
         "attributes[\"x\"] == {\"a\": 1}"},
        {"set(attributes[\"x\"], SliceToMap([5, 6]))", "attributes[\"x\"] == {\"0\": 5, \"1\": 6}"},
        {"set(attributes[\"x\"], SliceToMap([{\"k\": \"a\", \"v\": 1}, {\"k\": \"a\", \"v\": 2}], "
         "[\"k\"], [\"v\"]))",
         "attributes[\"x\"] == {\"a\": 2}"},
        {"set(attributes[\"x\"], SliceToMap([5], [\"k\"]))", "? slice elements must be maps"},
        {"set(name, ToKeyValueString({\"b\": 1, \"a\": \"x y\"}, sort_output=true))",
         "name == \"a=\\\"x y\\\" b=1\""},
        {"set(attributes[\"x\"], ParseInt(\"0x_ff\", 0))", "attributes[\"x\"] == 255"},
        {"set(attributes[\"x\"], ParseInt(\"077\", 0))", "attributes[\"x\"] == 63"},
        {"set(attributes[\"x\"], ParseInt(\"1__0\", 0))", "? could not parse an integer"},
        {"set(attributes[\"x\"], ParseKeyValue(name, \"=\", \"=\"))", "! must be different"},
        {"set(attributes[\"x\"], Sort([\"b\", 10, true, 9]))",
         "attributes[\"x\"] == [10, 9, \"b\", true]"},
        {"set(attributes[\"x\"], Coalesce([]))", "! at least one argument"},
        {"set(attributes[\"x\"], Hex(nil))", "attributes[\"x\"] == \"\""},
        {"replace_match(name, \"[\", \"x\")", "! unexpected end of input"},
        {"replace_pattern(name, \"\\\\W\", \"_\")", "name == \"GET__cart_123_item_45\""},
        {"flatten(attributes, depth=0)", "! must be greater than 0"},
        {"merge_maps(attributes, nil, \"upsert\")", "! expected pcommon.Map but got nil"},
        {"set(start_time, TruncateTime(end_time, Duration(\"1s\")))",
         "start_time_unix_nano == 3000000000"},
        {"set(attributes[\"x\"], UnixMilli(end_time))", "attributes[\"x\"] == 3500"},
        {"set(attributes[\"x\"], Nanosecond(end_time))", "attributes[\"x\"] == 500000000"},
        {"set(attributes[\"x\"], UnixSeconds(Now()) - UnixSeconds(Now()) < 2)", "! unexpected"},
        {"set(attributes[\"x\"], Now() - Now() < Duration(\"1h\"))", "! unexpected"},
        {"set(end_time, Now())", "end_time - Now() < Duration(\"1h\")"},
    };
    (void)state;
    CHECK(OTTL_SPAN, rows);
}

/* Many items must not each gain a large value. */
/* Texts that no receiver takes become valid where they are written, not before. */
static void test_invalid_utf8_is_not_written(void **state)
{
    static const struct row rows[] = {
        {"set(attributes[\"x\"], Decode(attributes[\"bytes\"], \"nop\"))",
         "attributes[\"x\"] == \"\\x01\\x02\\ufffd\""},
        {"set(attributes[\"x\"], Decode(\"Qf+A\", \"base64\"))",
         "attributes[\"x\"] == \"A\\ufffd\\ufffd\""},
        {"set(attributes[\"x\"], Decode(\"4oI\", \"base64-raw\"))",
         "attributes[\"x\"] == \"\\ufffd\""},
        {"set(attributes[\"x\"][1][\"k\"], [Base64Decode(\"/w==\")])",
         "attributes[\"x\"][1][\"k\"] == [\"\\ufffd\"]"},
        {"append(attributes[\"list\"], Base64Decode(\"/w==\"))",
         "attributes[\"list\"][2] == \"\\ufffd\""},
        {"set(attributes[\"x\"], Substring(attributes[\"long\"], 0, 2))",
         "attributes[\"x\"] == \"a\\ufffd\""},
        {"set(attributes[\"x\"], URL(\"http://h/%ff\")[\"url.path\"])",
         "attributes[\"x\"] == \"/\\ufffd\""},
        {"set(attributes[\"x\"], SHA256(Base64Decode(\"/w==\")))",
         "attributes[\"x\"] == "
         "\"a8100ae6aa1940d0b663bb31cd466142ebbdbd5187131b92d93818987832eb89\""},
        {"set(name, \"x\") where Base64Decode(\"/w==\") == \"\\ufffd\"", "no match"},
        {"set(cache[\"x\"], Base64Decode(\"/w==\"))", "cache[\"x\"] == \"\\ufffd\""},
        {"set(name, Base64Decode(\"/w==\"))", "name == \"\\ufffd\""},
        {"set(status.message, Base64Decode(\"/w==\"))", "status.message == \"\\ufffd\""},
        {"set(trace_state, Base64Decode(\"/w==\"))", "trace_state == \"\\ufffd\""},
        {"set(scope.name, Base64Decode(\"/w==\"))", "scope.name == \"\\ufffd\""},
        {"replace_match(attributes[\"s\"], \"*\", \"/w==\", Base64Decode)",
         "attributes[\"s\"] == \"\\ufffd\""},
        {"replace_pattern(name, \"^.*$\", \"/w==\", Base64Decode)", "name == \"\\ufffd\""},
        {"replace_all_matches(attributes, \"text\", \"/w==\", Base64Decode)",
         "attributes[\"s\"] == \"\\ufffd\""},
        {"replace_all_patterns(attributes, \"value\", \"^text$\", \"/w==\", Base64Decode)",
         "attributes[\"s\"] == \"\\ufffd\""},
        {"replace_all_patterns(attributes, \"key\", \"^s$\", \"/w==\", Base64Decode)",
         "? a key must be valid UTF-8"},
        {"merge_maps(attributes, MapKeys({\"a\": 1}, (k, v) => Base64Decode(\"/w==\")), "
         "\"insert\")",
         "? a key must be valid UTF-8"},
        {"set(attributes[\"x\"], MapKeys({\"a\": 1}, (k, v) => Base64Decode(\"/w==\")))",
         "? a key must be valid UTF-8"},
        {"set(attributes, MapKeys({\"a\": 1}, (k, v) => Base64Decode(\"/w==\")))",
         "? a key must be valid UTF-8"},
        {"set(attributes[Base64Decode(\"/w==\")], 1)", "? a key must be valid UTF-8"},
        {"set(attributes[\"map\"][Base64Decode(\"/w==\")], 1)", "? a key must be valid UTF-8"},
        {"flatten(attributes, Base64Decode(\"/w==\"))", "? a key must be valid UTF-8"},
    };
    (void)state;
    CHECK(OTTL_SPAN, rows);
}

static void test_room(void **state)
{
    static const struct row rows[] = {
        {"set(attributes[\"n\"], Concat([name, name, name, name], \"\"))",
         "? the request would grow too much"},
        {"set(attributes[\"n\"], \"small\")", "attributes[\"n\"] == \"small\""},
    };
    struct sample sample;
    struct text got = {0};
    (void)state;
    sample_init(&sample);
    sample.item.room = 0;
    for (size_t i = 0; i < 2; i++) {
        text_clear(&got);
        execute(OTTL_SPAN, rows[i].statement, &sample, &got);
        if (rows[i].wanted[0] == '?')
            expect_text(text_string(&got), rows[i].wanted);
        else {
            ottl_item_finish(&sample.item);
            assert_true(holds(OTTL_SPAN, rows[i].wanted, &sample.item));
        }
    }
    text_deinit(&got);
    sample_deinit(&sample);
}

/* ---- cache ---- */

/* Executes statements on one item after another. Returns how many of the executions failed. */
static unsigned fill_caches(struct sample *sample, const char *const *statements, size_t count,
                            unsigned items, struct text *why)
{
    struct ottl_program *programs[8];
    struct ottl_evaluator *evaluators[8];
    struct error err;
    unsigned failed = 0;
    for (size_t i = 0; i < count; i++) {
        programs[i] = ottl_compile_statement(OTTL_SPAN, slice_of_string(statements[i]),
                                             OTTL_PREFIX_OPTIONAL, &err);
        evaluators[i] = ottl_evaluator_new(programs[i]);
    }
    for (unsigned item = 0; item < items; item++) {
        ottl_cache_clear(&sample->cache);
        for (size_t i = 0; i < count; i++)
            if (ottl_execute(evaluators[i], &sample->item) == OTTL_FAILED) {
                failed++;
                text_clear(why);
                text_append(why, ottl_evaluator_error(evaluators[i]));
            }
    }
    ottl_item_finish(&sample->item);
    for (size_t i = 0; i < count; i++) {
        ottl_evaluator_free(evaluators[i]);
        ottl_program_free(programs[i]);
    }
    return failed;
}

/* The cache is emptied for each item, but not what the request may put into it. */
static void test_caches_have_an_end(void **state)
{
    static const char *const small[] = {
        "set(cache[\"name\"], name)",
        "merge_maps(cache, ParseJSON(attributes[\"json\"]), \"upsert\")",
        "set(cache[\"l\"], attributes[\"list\"])", "set(attributes[\"n\"], cache[\"name\"])"};
    static const char *const large[] = {
        "set(cache[\"v\"], attributes[\"big\"])",
        "set(cache[\"v\"], Concat([cache[\"v\"], cache[\"v\"]], \"\"))",
        "set(cache[\"v\"], Concat([cache[\"v\"], cache[\"v\"]], \"\"))"};
    struct sample sample;
    struct text why = {0};
    char big[1100];
    (void)state;
    sample_init(&sample);
    assert_int_equal(fill_caches(&sample, small, 4, 10000, &why), 0);
    assert_true(holds(OTTL_SPAN, "attributes[\"n\"] == name", &sample.item));
    snprintf(big, sizeof big, "set(attributes[\"big\"], \"%01000d\")", 0);
    execute(OTTL_SPAN, big, &sample, &why);
    expect_text(text_string(&why), "");
    sample.item.cache_room = 400000;
    assert_int_equal(fill_caches(&sample, large, 3, 100, &why), 0);
    assert_true(fill_caches(&sample, large, 3, 100, &why) > 0);
    expect_text(text_string(&why), "the items of the request put too much into cache");
    assert_int_equal(fill_caches(&sample, small, 4, 10000, &why), 0);
    text_deinit(&why);
    sample_deinit(&sample);
}

/* Who chooses the data does not choose how deep values are nested. */
static void test_values_are_not_nested_too_deep(void **state)
{
    static const char *const statements[] = {
        "set(attributes[\"x\"], Reduce(Split(attributes[\"big\"], \"0\"), [], (a, i, v) => [a]))",
        "set(attributes[\"x\"], Len(Reduce(Split(attributes[\"big\"], \"0\"), {}, (a, i, v) => "
        "{\"a\": MapEach([a], (j, w) => w)})))",
        "set(attributes[\"x\"], 1) where String(Reduce(Split(attributes[\"big\"], \"0\"), [], (a, "
        "i, "
        "v) => [a, v])) == \"\""};
    static const char *const inwards[] = {"set(attributes[\"in\"], [attributes[\"in\"]])",
                                          "set(attributes[\"in\"][\"a\"], attributes[\"in\"])",
                                          "set(cache[\"in\"], {\"a\": cache[\"in\"]})"};
    struct sample sample;
    struct text why = {0};
    char big[1100];
    (void)state;
    sample_init(&sample);
    snprintf(big, sizeof big, "set(attributes[\"big\"], \"%01000d\")", 0);
    execute(OTTL_SPAN, big, &sample, &why);
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
        text_clear(&why);
        execute(OTTL_SPAN, statements[i], &sample, &why);
        assert_non_null(strstr(text_string(&why), "the value would be nested too deep"));
    }
    for (size_t i = 0; i < sizeof inwards / sizeof *inwards; i++) {
        text_clear(&why);
        execute(OTTL_SPAN, "set(attributes[\"in\"], {})", &sample, &why);
        for (int k = 0; k < 28; k++) {
            execute(OTTL_SPAN, inwards[i], &sample, &why);
            expect_text(text_string(&why), "");
        }
        for (int k = 0; k < 30; k++)
            execute(OTTL_SPAN, inwards[i], &sample, &why);
        assert_non_null(strstr(text_string(&why), "the value would be nested too deep"));
    }
    text_deinit(&why);
    sample_deinit(&sample);
}

/* Reading all attributes between two changes leaves no copy of them behind. */
static void test_whole_reads_leave_no_copies(void **state)
{
    enum { STATEMENTS = 100, SIZE = 100000 };
    struct sample sample;
    struct text statement = {0}, why = {0};
    (void)state;
    sample_init(&sample);
    text_printf(&statement, "set(attributes[\"big\"], \"%0*d\")", SIZE / 2, 0);
    execute(OTTL_SPAN, text_string(&statement), &sample, &why);
    size_t before = sample.arena.reserved_bytes;
    for (int i = 0; i < STATEMENTS; i++) {
        text_clear(&statement);
        text_printf(&statement, "set(attributes[\"n%d\"], Len(attributes))", i);
        execute(OTTL_SPAN, text_string(&statement), &sample, &why);
    }
    expect_text(text_string(&why), "");
    assert_true(sample.arena.reserved_bytes - before < 2 * (size_t)SIZE);
    ottl_item_finish(&sample.item);
    assert_true(holds(OTTL_SPAN, "attributes[\"n99\"] == attributes[\"n0\"] + 99", &sample.item));
    text_deinit(&statement);
    text_deinit(&why);
    sample_deinit(&sample);
}

/* ---- sequences ---- */

/* Statements that change attributes, read them in each way, change other fields, and fail. */
static const char *const mixed[] = {
    "set(attributes[\"x\"], \"1\")",
    "set(attributes[\"y\"], attributes[\"x\"])",
    "set(attributes[\"x\"], nil)",
    "set(attributes[\"s\"], \"longer than it was before\")",
    "set(attributes[\"map\"][\"a\"], attributes[\"s\"])",
    "set(attributes[\"map\"][\"in\"][\"n\"], 7)",
    "set(attributes[Keys(attributes)[0]], \"first\")",
    "set(attributes[\"map\"][Keys(attributes)[1]], \"k\")",
    "set(attributes[\"n\"], Len(attributes))",
    "set(attributes[\"copy\"], attributes)",
    "set(attributes, attributes[\"map\"]) where attributes[\"x\"] == nil",
    "set(name, attributes[\"s\"]) where attributes[\"s\"] != nil",
    "set(resource.attributes[\"of span\"], attributes[\"x\"])",
    "set(resource.attributes[\"service.name\"], attributes[\"y\"])",
    "set(attributes[\"res\"], resource.attributes[\"of span\"])",
    "set(instrumentation_scope.name, \"scope\")",
    "set(events, [])",
    "delete_key(attributes, \"twice\")",
    "delete_key(attributes, \"x\")",
    "delete_key(attributes[\"map\"], \"a\")",
    "delete_key(resource.attributes, \"service.name\")",
    "delete_matching_keys(attributes, \"^t\")",
    "keep_keys(attributes, [\"s\", \"x\", \"map\", \"twice\", \"y\"])",
    "keep_matching_keys(attributes, \"[a-m]\")",
    "limit(attributes, 6, [\"x\"])",
    "truncate_all(attributes, 5)",
    "stringify_all(attributes)",
    "flatten(attributes)",
    "merge_maps(attributes, attributes[\"map\"], \"upsert\")",
    "merge_maps(attributes, resource.attributes, \"insert\")",
    "merge_maps(attributes, attributes, \"update\")",
    "replace_all_patterns(attributes, \"key\", \"[a-z]$\", \"k\")",
    "replace_all_patterns(attributes, \"value\", \"[0-9]\", \"#\")",
    "replace_all_patterns(attributes, \"value\", \"e\", \"E\", SHA256)",
    "replace_pattern(attributes[\"s\"], \"[aeiou]\", \"*\")",
    "set(attributes[\"map\"][0], \"fails\")",
    "set(attributes[\"s\"][\"k\"], \"fails\")",
    "set(attributes[\"large\"], Concat([name, name, name, name, name, name], \" and \"))",
};
/* On an event, with what is around it: some read it as a whole, some change it. */
static const char *const around[] = {
    "set(span.attributes[\"a\"], name)",
    "delete_key(span.attributes, \"long\")",
    "set(resource.attributes[\"r\"], attributes[\"k\"])",
    "set(span.name, Concat([span.name, name], \"\"))",
    "set(attributes[\"all\"], span.attributes)",
    "set(attributes[\"both\"], {\"s\": span.attributes, \"r\": resource.attributes, \"e\": name})",
    "merge_maps(attributes, span.attributes, \"insert\")",
    "set(attributes[\"n\"], Len(span.attributes) + Len(attributes) + Len(span.events))",
    "set(attributes[\"l\"], [name, SHA1(span.name), String(span.attributes), MD5(span.name)])",
    "set(attributes[\"found\"], span.attributes[attributes[\"which\"]])",
    "set(attributes[\"which\"], \"s\")",
    "set(attributes[\"deep\"], span.attributes[\"map\"][attributes[\"part\"]])",
    "set(attributes[\"part\"], \"a\")",
    "set(attributes[\"state\"], span.trace_state[attributes[\"k\"]])",
    "set(attributes[\"where\"], true) where span.attributes == attributes[\"all\"]",
    "set(attributes[Concat([span.name, \"k\"], \"\")][Concat([span.name, \"j\"], \"\")], name)",
};
enum { MIXED_MAX = 64, PER_SEQUENCE = 8, SEQUENCES = 3000 };

/* Returns the request that results, in the sample's arena. */
static struct slice execute_sequence(struct sample *sample,
                                     struct ottl_evaluator *const *evaluators,
                                     const unsigned *sequence, bool one_by_one, unsigned *failed)
{
    sample_init(sample);
    sample->item.room = 300;
    for (int i = 0; i < PER_SEQUENCE; i++) {
        *failed += ottl_execute(evaluators[sequence[i]], &sample->item) == OTTL_FAILED;
        if (one_by_one)
            ottl_item_leave(&sample->item, 0);
    }
    ottl_item_leave(&sample->item, 0);
    size_t size = message_measure(&sample->root);
    uint8_t *bytes = arena_alloc(&sample->arena, size);
    assert_ptr_equal(message_write(&sample->root, bytes), bytes + size);
    return slice_of(bytes, size);
}

static void check_sequence(struct ottl_evaluator *const *evaluators, const unsigned *sequence,
                           const char *const *statements, unsigned *failed)
{
    struct sample at_once, one_by_one;
    unsigned failed_then = *failed;
    struct slice got = execute_sequence(&at_once, evaluators, sequence, false, failed);
    struct slice wanted = execute_sequence(&one_by_one, evaluators, sequence, true, &failed_then);
    struct text got_json = {0}, wanted_json = {0}; /* without the order of fields */
    assert_int_equal(*failed, failed_then);
    json_from_protobuf(JSON_TRACES_REQUEST, got, &got_json);
    json_from_protobuf(JSON_TRACES_REQUEST, wanted, &wanted_json);
    if (strcmp(text_string(&got_json), text_string(&wanted_json)) != 0)
        for (int i = 0; i < PER_SEQUENCE; i++)
            print_error("%s\n", statements[sequence[i]]);
    assert_string_equal(text_string(&got_json), text_string(&wanted_json));
    text_deinit(&got_json);
    text_deinit(&wanted_json);
    sample_deinit(&at_once);
    sample_deinit(&one_by_one);
}

/* Attributes are written once for all statements: the result is that of writing them each time. */
static void check_sequences(enum ottl_context context, const char *const *statements,
                            unsigned count)
{
    struct ottl_program *programs[MIXED_MAX];
    struct ottl_evaluator *evaluators[MIXED_MAX];
    struct error err;
    unsigned sequence[PER_SEQUENCE], failed = 0;
    assert_true(count <= MIXED_MAX);
    for (unsigned i = 0; i < count; i++) {
        programs[i] = ottl_compile_statement(context, slice_of_string(statements[i]),
                                             OTTL_PREFIX_OPTIONAL, &err);
        if (!programs[i])
            fail_msg("%s: %s", statements[i], err.text);
        evaluators[i] = ottl_evaluator_new(programs[i]);
    }
    srandom(1);
    for (int i = 0; i < SEQUENCES; i++) {
        for (int k = 0; k < PER_SEQUENCE; k++)
            sequence[k] = (unsigned)random() % count;
        check_sequence(evaluators, sequence, statements, &failed);
    }
    assert_true(failed > SEQUENCES / 2 && failed < SEQUENCES * PER_SEQUENCE / 2);
    for (unsigned i = 0; i < count; i++) {
        ottl_evaluator_free(evaluators[i]);
        ottl_program_free(programs[i]);
    }
}

static void test_sequences(void **state)
{
    (void)state;
    check_sequences(OTTL_SPAN, mixed, sizeof mixed / sizeof *mixed);
}

static void test_sequences_around(void **state)
{
    (void)state;
    check_sequences(OTTL_SPAN_EVENT, around, sizeof around / sizeof *around);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_other_contexts),
        cmocka_unit_test(test_list_arguments),
        cmocka_unit_test(test_warnings),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_maps),
        cmocka_unit_test(test_replace),
        cmocka_unit_test(test_converters),
        cmocka_unit_test(test_invalid_utf8_is_not_written),
        cmocka_unit_test(test_room),
        cmocka_unit_test(test_sequences),
        cmocka_unit_test(test_sequences_around),
        cmocka_unit_test(test_caches_have_an_end),
        cmocka_unit_test(test_values_are_not_nested_too_deep),
        cmocka_unit_test(test_whole_reads_leave_no_copies),
    };
    scan_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
