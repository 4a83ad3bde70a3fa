#include "core/base/arena.h"
#include "core/data/any_value.h"
#include "core/data/otlp.h"
#include "core/data/wire_writer.h"
#include "core/ottl/ottl.h"
#include "tests/unit/expect_text.h"
#include "tests/unit/pipeline_fixture.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define TEXT(key, text) "{\"key\":\"" key "\",\"value\":{\"stringValue\":\"" text "\"}}"
#define VALUE(key, value) "{\"key\":\"" key "\",\"value\":{" value "}}"

static const char request_json[] =
    "{\"resourceSpans\":[{\"schemaUrl\":\"https://"
    "r\",\"resource\":{\"droppedAttributesCount\":7,"
    "\"attributes\":[" TEXT("service.name", "shop") "," VALUE(
        "replicas",
        "\"intValue\":\"3\"") "]},\"scopeSpans\":[{\"schemaUrl\":\"https://"
                              "s\",\"scope\":{\"name\":\"lib\",\"version\":\"1\","
                              "\"droppedAttributesCount\":8,\"attributes\":[" TEXT(
                                  "a",
                                  "in scope") "]},\"spans\":[{"
                                              "\"traceId\":"
                                              "\"0102030405060708090a0b0c0d0e"
                                              "0f10\",\"spanId\":"
                                              "\"a1a2a3a4a5a6a7a8\","
                                              "\"traceState\":\"k=v, "
                                              "other=x-y\",\"name\":\"GET "
                                              "/cart\",\"kind\":2,"
                                              "\"startTimeUnixNano\":"
                                              "\"1000000000\","
                                              "\"endTimeUnixNano\":"
                                              "\"3500000000\","
                                              "\"droppedAttributesCount\":1,"
                                              "\"droppedEventsCount\":2,"
                                              "\"droppedLinksCount\":3,"
                                              "\"flags\":257,"
                                              "\"events\":[{\"name\":\"e\",\"timeUnixNano\":"
                                              "\"2000000000\",\"droppedAttributesCount\":4,"
                                              "\"attributes\":[" TEXT(
                                                  "k",
                                                  "in event") "]},{"
                                                              "\"name\":\"f\"}],\"links\":[],"
                                                              "\"status\":{\"code\":2,"
                                                              "\"message\":\"bad\"},"
                                                              "\"attributes\":[" TEXT(
                                                                  "s",
                                                                  "t"
                                                                  "e"
                                                                  "x"
                                                                  "t") "," TEXT("empty",
                                                                                "") "," VALUE("i", "\"intValue\":"
                                                                                                   "\"5\"") "," VALUE("b"
                                                                                                                      "i"
                                                                                                                      "g",
                                                                                                                      "\"intValue\":"
                                                                                                                      "\"9007199254740993"
                                                                                                                      "\"") "," VALUE("d",
                                                                                                                                      "\"d"
                                                                                                                                      "oub"
                                                                                                                                      "leV"
                                                                                                                                      "alu"
                                                                                                                                      "e\""
                                                                                                                                      ":1."
                                                                                                                                      "5") "," VALUE("t",
                                                                                                                                                     "\"boolValue\":true") "," VALUE("f", "\"boolValue\":false") "," VALUE("bytes", "\"bytesValue\":\"AQL/\"") "," VALUE("nan", "\"doubleValue\":\"NaN\"") ","
                                                                                                                                                                                                                                                                                                           "{\"key\":\"none\"}," VALUE("list", "\"arrayValue\":{\"values\":[{\"intValue\":\"1\"},{\"stringValue\":\"x\"}]}") "," VALUE("maps", "\"arrayValue\":{\"values\":[{\"kvlistValue\":{\"values\":[" VALUE("a", "\"intValue\":\"1\"") "]}}]}") "," VALUE("map",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                "\"kvlistValue\":{\"values\":[" VALUE("b", "\"doubleValue\":2") "," TEXT("a", "<&>") "," VALUE(
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                    "in", "\"kvlistValue\":{\"values\":[" TEXT("deep", "yes") "]}") "]}") "," TEXT("twice",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                   "first") "," TEXT("twice",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                     "second") "," TEXT("key", "s") "," TEXT("umlaut", "\xc3\x84rger") "," VALUE("min",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                 "\"intValue\":\"-9223372036854775808\"") "]}]}]}]}";

/* The request, as far as its only span. */
struct sample {
    struct buffer *request;
    struct ottl_item item;
};

static struct message_field first(struct message_iter message, uint32_t number)
{
    struct message_field field;
    assert_true(message_next_bytes(&message, number, &field));
    return field;
}

static void sample_init(struct sample *sample)
{
    sample->request = fixture_encode(SIGNAL_TRACES, request_json);
    struct message_field fields[3], event;
    fields[0] = first(message_iter_bytes(buffer_slice(sample->request)), REQUEST_GROUPS);
    fields[1] = first(message_iter_bytes(fields[0].wire.bytes), GROUP_SCOPES);
    fields[2] = first(message_iter_bytes(fields[1].wire.bytes), SCOPE_ITEMS);
    ottl_item_begin(&sample->item);
    ottl_item_set_fields(&sample->item, fields, NULL);
    event = first(message_iter_bytes(fields[2].wire.bytes), SPAN_EVENTS);
    ottl_item_set_span_event(&sample->item, message_iter_bytes(event.wire.bytes));
}

/* Returns "true", "false", the error of the evaluation after "? ", or that of the compiler after
 * "! ". */
static const char *result_of(enum ottl_context context, const char *condition,
                             enum ottl_prefix prefix, struct ottl_item *item, struct text *out)
{
    struct error err;
    text_clear(out);
    struct ottl_program *program =
        ottl_compile_condition(context, slice_of_string(condition), prefix, &err);
    if (!program) {
        text_printf(out, "! %s", err.text);
        return text_string(out);
    }
    struct ottl_evaluator *evaluator = ottl_evaluator_new(program);
    enum ottl_result result = ottl_evaluate(evaluator, item);
    assert_int_equal(ottl_evaluate(evaluator, item), result); /* what was kept is the same */
    if (result == OTTL_FAILED)
        text_printf(out, "? %s", ottl_evaluator_error(evaluator));
    else
        text_append(out, result == OTTL_MATCH ? "true" : "false");
    ottl_evaluator_free(evaluator);
    ottl_program_free(program);
    return text_string(out);
}

struct row {
    const char *condition;
    const char *wanted;
};

static void check(enum ottl_context context, enum ottl_prefix prefix, const struct row *rows,
                  size_t count)
{
    struct sample sample;
    struct text got = {0};
    sample_init(&sample);
    for (size_t i = 0; i < count; i++)
        expect_text_of(rows[i].condition,
                       result_of(context, rows[i].condition, prefix, &sample.item, &got),
                       rows[i].wanted);
    text_deinit(&got);
    buffer_unref(sample.request);
}

#define CHECK(context, prefix, rows) check(context, prefix, rows, sizeof(rows) / sizeof *(rows))

/* ---- comparison ---- */

static const struct row comparisons[] = {
    {"1 == 1.0 and 1 <= 1.5 and 2.5 > 2", "true"},
    {"attributes[\"big\"] == 9007199254740992.0", "true"},
    {"attributes[\"i\"] >= 5 and attributes[\"i\"] < 6 and attributes[\"i\"] != 6", "true"},
    {"\"a\" < \"b\" and \"a\" <= \"a\" and \"b\" > \"a\" and \"a\" < \"aa\"", "true"},
    {"false < true and true >= true and not true < false", "true"},
    {"0x01 < 0x02 and 0x0102 > 0x01 and 0x01 == 0x01", "true"},
    {"nil == nil and nil <= nil and nil >= nil", "true"},
    {"nil < nil or nil > nil or nil != nil", "false"},
    {"attributes[\"gone\"] == nil and attributes[\"none\"] == nil", "true"},
    {"attributes[\"none\"] == attributes[\"gone\"]", "true"},
    {"attributes[\"s\"] == nil or attributes[\"s\"] < nil or nil > attributes[\"s\"]", "false"},
    {"attributes[\"s\"] != nil", "true"},
    /* other pairs: not equal, no error */
    {"attributes[\"s\"] != 1 and not attributes[\"s\"] < 1 and not 1 >= attributes[\"s\"]", "true"},
    {"attributes[\"empty\"] == nil", "false"},
    {"{} == nil or [] == nil or 0x61 == \"a\" or true == 1", "false"},
    {"attributes[\"nan\"] == attributes[\"nan\"] or attributes[\"nan\"] >= 0.0", "false"},
    {"attributes[\"nan\"] != attributes[\"nan\"]", "true"},
    /* maps and lists */
    {"attributes[\"map\"] == {\"in\": {\"deep\": \"yes\"}, \"a\": \"<&>\", \"b\": 2.0}", "true"},
    {"attributes[\"map\"] == {\"in\": {\"deep\": \"yes\"}, \"a\": \"<&>\", \"b\": 2}", "false"},
    {"attributes[\"map\"] != {\"b\": 2.0}", "true"},
    {"attributes[\"map\"] <= attributes[\"map\"]", "false"},
    {"attributes != attributes", "true"}, /* one of them is NaN */
    {"resource.attributes == resource.attributes and resource.attributes != attributes", "true"},
    {"attributes[\"list\"] == [1, \"x\"]", "true"},
    {"attributes[\"list\"] == [1.0, \"x\"] or attributes[\"list\"] == [1]", "false"},
    {"attributes[\"maps\"] == [{\"a\": 1}]", "false"}, /* as in the Collector */
    {"attributes[\"maps\"][0] == {\"a\": 1}", "true"},
    {"[] == [] and {} == {} and [nil] == [nil]", "true"},
    {"{\"a\": 1, \"a\": 2} == {\"a\": 2}", "true"},
    {"Split(\"a,b\", \",\") == Split(\"a;b\", \";\")", "true"},
    {"Split(\"a,b\", \",\") == [\"a\", \"b\"]", "false"},
    /* ids */
    {"trace_id == trace_id and span_id != parent_span_id", "true"},
    {"trace_id == 0x0102030405060708090a0b0c0d0e0f10 or parent_span_id == nil", "false"},
    {"trace_id < trace_id or span_id == trace_id", "false"},
    {"status == status and events == events and events != links", "true"},
    /* not, and, or */
    {"not attributes[\"i\"] == 5", "false"},
    {"not true or true and false or 1 == 1", "true"},
    {"1/0 == 1 or true", "true"},
    {"false and 1/0 == 1", "false"},
    {"1/0 == 1 or name == \"x\"", "? attempted to divide by 0"},
    {"name == \"GET /cart\" or 1/0 == 1", "true"},
    {"not (1/0 == 1)", "? attempted to divide by 0"},
};

static void values_are_compared(void **state)
{
    (void)state;
    CHECK(OTTL_SPAN, OTTL_PREFIX_OPTIONAL, comparisons);
}

/* ---- mathematics ---- */

static const struct row sums[] = {
    {"1 + 2 * 3 - 4 / 2 == 5 and (1 + 2) * 3 == 9", "true"},
    {"7 / 2 == 3 and -7 / 2 == -3 and 7 / 2.0 == 3.5", "true"},
    {"9223372036854775807 + 1 == attributes[\"min\"]", "true"},
    {"attributes[\"min\"] / -1 == attributes[\"min\"] and -attributes[\"min\"] < 0", "true"},
    {"attributes[\"i\"] - 1 == 4 and 1 + attributes[\"d\"] == 2.5", "true"},
    {"-attributes[\"i\"] == -5 and +attributes[\"i\"] == 5", "true"},
    {"1.0 / 0 == 1", "? attempted to divide by 0"},
    {"1 / 0.0 == 1", "? attempted to divide by 0"},
    {"end_time - start_time == Duration(\"2.5s\")", "true"},
    {"start_time + Duration(\"2500ms\") == end_time", "true"},
    {"Duration(\"2s\") + start_time < end_time and end_time - Duration(\"1s\") > start_time",
     "true"},
    {"Duration(\"1m\") - Duration(\"1s\") == Duration(\"59s\")", "true"},
    {"Duration(\"1m\") * 2 == Duration(\"2m\")",
     "? only addition and subtraction supported for time.Time and time.Duration"},
    {"start_time + end_time == 1", "? time.Time cannot be added to time.Time"},
    {"Duration(\"1s\") - start_time == 1", "? time.Time cannot be subtracted from time.Duration"},
    {"nil == attributes[\"gone\"] + 1",
     "? <nil> must be int64, float64, time.Time or time.Duration"},
    {"1 + attributes[\"gone\"] == 1", "? <nil> must be int64 or float64"},
    {"attributes[\"s\"] + 1 == 1", "? text must be int64, float64, time.Time or time.Duration"},
    {"-attributes[\"s\"] == 1", "? unsupported unary minus operation on type string"},
};

static void numbers_and_times_are_computed(void **state)
{
    (void)state;
    CHECK(OTTL_SPAN, OTTL_PREFIX_OPTIONAL, sums);
}

/* ---- paths ---- */

static const struct row paths[] = {
    {"trace_id.string == \"0102030405060708090a0b0c0d0e0f10\"", "true"},
    {"span_id.string == \"a1a2a3a4a5a6a7a8\" and parent_span_id.string == \"0000000000000000\"",
     "true"},
    {"trace_state == \"k=v, other=x-y\" and trace_state[\"other\"] == \"x-y\"", "true"},
    {"trace_state[\"k\"] == \"v\" and trace_state[\"gone\"] == \"\"", "true"},
    {"name == \"GET /cart\" and span.name == name", "true"},
    {"kind == SPAN_KIND_SERVER and kind == 2 and kind.string == \"Server\"", "true"},
    {"kind.deprecated_string == \"SPAN_KIND_SERVER\"", "true"},
    {"start_time_unix_nano == 1000000000 and end_time_unix_nano == 3500000000", "true"},
    {"dropped_attributes_count == 1 and dropped_events_count == 2 and dropped_links_count == 3",
     "true"},
    {"flags == 257 and status.code == STATUS_CODE_ERROR and status.message == \"bad\"", "true"},
    {"Len(events) == 2 and Len(links) == 0", "true"},
    {"resource.attributes[\"service.name\"] == \"shop\" and resource.schema_url == \"https://r\"",
     "true"},
    {"resource.dropped_attributes_count == 7 and resource.attributes[\"replicas\"] == 3", "true"},
    {"scope.name == \"lib\" and instrumentation_scope.version == \"1\"", "true"},
    {"scope.schema_url == \"https://s\" and scope.dropped_attributes_count == 8", "true"},
    {"scope.attributes[\"a\"] == \"in scope\"", "true"},
    /* keys */
    {"attributes[\"map\"][\"in\"][\"deep\"] == \"yes\"", "true"},
    {"attributes[\"list\"][1] == \"x\" and attributes[\"list\"][0] == 1", "true"},
    {"attributes[attributes[\"key\"]] == \"text\"", "true"},
    {"attributes[\"list\"][attributes[\"i\"] - 4] == \"x\"", "true"},
    {"attributes[\"twice\"] == \"first\"", "true"},
    {"attributes[\"gone\"][\"deeper\"][1] == nil and attributes[\"map\"][\"x\"][\"y\"] == nil",
     "true"},
    {"attributes[\"s\"][\"x\"] == nil", "? type Str does not support string indexing"},
    {"attributes[\"none\"][\"x\"] == nil", "? type Empty does not support string indexing"},
    {"attributes[\"list\"][2] == nil", "? index 2 out of bounds"},
    {"attributes[\"list\"][-1] == nil", "? index -1 out of bounds"},
    {"attributes[\"list\"][\"x\"] == nil",
     "? could not resolve key for map/slice, expecting 'int64' but got 'string'"},
    {"attributes[1] == nil",
     "? could not resolve key for map/slice, expecting 'string' but got 'int64'"},
    {"Split(name, \" \")[1] == \"/cart\"", "true"},
    {"Split(name, \" \")[2] == \"\"", "? index 2 out of bounds"},
    {"Split(name, \" \")[\"a\"] == \"\"", "? type []string does not support string indexing"},
};

static void paths_are_read(void **state)
{
    (void)state;
    CHECK(OTTL_SPAN, OTTL_PREFIX_OPTIONAL, paths);
}

static const struct row resource_rows[] = {
    {"attributes[\"service.name\"] == \"shop\" and resource.attributes[\"x\"] == nil", "true"},
    {"dropped_attributes_count == 7", "true"},
    {"IsRootSpan()", "! unable to parse OTTL condition \"IsRootSpan()\": 1:1: the context resource "
                     "has no function \"IsRootSpan\""},
    {"span.name == \"x\"",
     "! unable to parse OTTL condition \"span.name == \"x\"\": 1:1: context \"span\" from path "
     "\"span.name\" is not there: this is evaluated on the context resource, and sees only what "
     "contains it; the context span sees both"},
    {"dropped_attributes_count == STATUS_CODE_OK",
     "! unable to parse OTTL condition \"dropped_attributes_count == STATUS_CODE_OK\": 1:29: the "
     "context resource has no enum symbols, but got \"STATUS_CODE_OK\""},
};

static const struct row scope_rows[] = {
    {"name == \"lib\" and scope.version == \"1\" and resource.attributes[\"replicas\"] == 3",
     "true"},
};

static const struct row prefixed[] = {
    {"span.name == \"GET /cart\" and resource.attributes[\"replicas\"] == 3", "true"},
    {"name == \"x\"", "! unable to parse OTTL condition \"name == \"x\"\": 1:1: missing context "
                      "name for path \"name\"; write \"span.name\" "
                      "or \"scope.name\""},
    {"span.status.code == 2 and span.trace_id.string != \"\"", "true"},
};

static const struct row scope_prefixed[] = {
    {"body == \"x\"", "! unable to parse OTTL condition \"body == \"x\"\": 1:1: missing context "
                      "name for path \"body\""},
};

static const struct row span_event_rows[] = {
    {"name == \"e\" and spanevent.name == \"e\" and span.name == \"GET /cart\"", "true"},
    {"attributes[\"k\"] == \"in event\" and span.attributes[\"k\"] == nil", "true"},
    {"time_unix_nano == 2000000000 and time - span.start_time == Duration(\"1s\")", "true"},
    {"dropped_attributes_count == 4 and span.kind == SPAN_KIND_SERVER", "true"},
    {"instrumentation_scope.name == \"lib\" and resource.attributes[\"replicas\"] == 3", "true"},
    {"event_index == 0", "? no 'event_index' property has been set"},
    {"Len(span.events) == 2 and ToUpperCase(span.attributes[\"s\"]) == \"TEXT\"", "true"},
    {"IsRootSpan()",
     "! unable to parse OTTL condition \"IsRootSpan()\": 1:1: the context spanevent "
     "has no function \"IsRootSpan\""},
    {"kind == 2", "! unable to parse OTTL condition \"kind == 2\": 1:1: the context spanevent "
                  "has no path \"kind\"; write \"span.kind\""},
};

static void each_context_has_its_paths(void **state)
{
    (void)state;
    CHECK(OTTL_RESOURCE, OTTL_PREFIX_OPTIONAL, resource_rows);
    CHECK(OTTL_SCOPE, OTTL_PREFIX_OPTIONAL, scope_rows);
    CHECK(OTTL_SPAN, OTTL_PREFIX_REQUIRED, prefixed);
    CHECK(OTTL_SCOPE, OTTL_PREFIX_REQUIRED, scope_prefixed);
    CHECK(OTTL_SPAN_EVENT, OTTL_PREFIX_OPTIONAL, span_event_rows);
}

/* ---- functions ---- */

static const struct row functions[] = {
    {"IsMatch(name, \"^GET /c[a-z]+$\") and not IsMatch(name, \"cart.\")", "true"},
    {"IsMatch(attributes[\"gone\"], \".*\")", "false"},
    {"IsMatch(attributes[\"i\"], \"^5$\") and IsMatch(attributes[\"d\"], \"^1\\\\.5$\")", "true"},
    {"IsMatch(attributes[\"t\"], \"true\") and IsMatch(attributes[\"bytes\"], \"^0102ff$\")",
     "true"},
    {"IsMatch(1.0, \"^1$\") and IsMatch(\"x\", \"\")", "true"},
    {"String(attributes[\"map\"]) == "
     "\"{\\\"a\\\":\\\"\\\\u003c\\\\u0026\\\\u003e\\\",\\\"b\\\":2,\\\"in\\\":{\\\"deep\\\":"
     "\\\"yes\\\"}}\"",
     "true"},
    {"String(attributes[\"list\"]) == \"[1,\\\"x\\\"]\"", "true"},
    {"String([1.5, .000001, .0000001, 1000000000000000000000.0, nil, 0x01]) == "
     "\"[1.5,0.000001,1e-07,1e+21,null,\\\"AQ==\\\"]\"",
     "true"},
    {"String(nil) == nil", "true"},
    {"String(attributes[\"nan\"]) == \"\"", "? json: unsupported value: NaN"},
    {"String(start_time) == \"\\\"1970-01-01T00:00:01Z\\\"\" and String(Duration(\"1s\")) == "
     "\"1000000000\"",
     "true"},
    {"String(span_id) == \"[161,162,163,164,165,166,167,168]\"", "true"},
    {"String(status) == \"\"", "? unsupported type: ptrace.Status"},
    {"IsString(name) and IsInt(attributes[\"i\"]) and IsDouble(attributes[\"d\"])", "true"},
    {"IsBool(attributes[\"f\"]) and IsMap(attributes) and IsList(attributes[\"list\"])", "true"},
    {"IsString(nil) or IsMap(nil) or IsString(attributes[\"i\"]) or IsInt(1.0)", "false"},
    {"IsList(Split(\"a\", \",\")) and IsList(events) and IsList([1])", "true"},
    {"IsEmpty(nil) and IsEmpty(\"\") and IsEmpty(0) and IsEmpty(false) and IsEmpty({})", "true"},
    {"IsEmpty(parent_span_id) and not IsEmpty(span_id) and not IsEmpty(1)", "true"},
    {"Concat([name, attributes[\"i\"], nil], \"-\") == \"GET /cart-5-<nil>\"", "true"},
    {"Concat([], \"-\") == \"\"", "true"},
    {"Concat([name], attributes[\"i\"]) == \"\"", "? expected string but got int64"},
    {"HasPrefix(name, \"GET\") and HasSuffix(name, \"cart\") and not HasPrefix(\"a\", \"ab\")",
     "true"},
    {"HasPrefix(attributes[\"gone\"], \"x\")", "? expected string but got nil"},
    {"Len(name) == 9 and Len(attributes[\"list\"]) == 2 and Len(attributes[\"map\"]) == 3", "true"},
    {"Len(Split(\"a,b,\", \",\")) == 3 and Len(Split(\"\", \",\")) == 1", "true"},
    {"Len(Split(\"\", \"\")) == 0 and Split(\"a\xc3\xa4\", \"\")[1] == \"\xc3\xa4\"", "true"},
    {"Int(\"12\") == 12 and Int(2.9) == 2 and Int(true) == 1 and Int(nil) == nil", "true"},
    {"Int(\"-5\") == -5 and Int(\"+5\") == 5 and Int(attributes[\"d\"]) == 1", "true"},
    {"Int(\"12x\") == nil",
     "! unable to parse OTTL condition \"Int(\"12x\") == nil\": 1:5: argument 1 of Int: "
     "could not convert to an integer"},
    {"Int(attributes[\"map\"]) == nil", "? unsupported type: pcommon.Map"},
    {"Double(\"1.5\") == 1.5 and Double(1) == 1.0 and Double(false) == 0.0", "true"},
    {"Double(\"1.5 \") == 1.5",
     "! unable to parse OTTL condition \"Double(\"1.5 \") == 1.5\": 1:8: argument 1 of "
     "Double: could not convert to a float"},
    {"Bool(\"true\") and Bool(1) and not Bool(0.0) and not Bool(\"F\")", "true"},
    {"Bool(\"yes\")", "! unable to parse OTTL condition \"Bool(\"yes\")\": 1:6: argument 1 of "
                      "Bool: could not convert to a bool"},
    {"Bool(nil)",
     "? value returned from Converter in constant expression must be bool but got <nil>"},
    {"Len(name)",
     "? value returned from Converter in constant expression must be bool but got int64"},
    {"Duration(\"1h2m3.5s\") == Duration(\"3723.5s\") and Seconds(Duration(\"1500ms\")) == 1.5",
     "true"},
    {"Milliseconds(end_time - start_time) == 2500 and Hours(Duration(\"90m\")) == 1.5", "true"},
    {"Duration(\"1d\") == Duration(\"24h\")", "? time: invalid duration \"1d\""},
    {"IsRootSpan()", "true"},
    {"Substring(name, 4, 5) == \"/cart\" and Substring(target=name, length=3, start=0) == \"GET\"",
     "true"},
    {"Substring(attributes[\"umlaut\"], 0, 3, utf8_safe=true) == \"\xc3\x84r\"", "true"},
    {"Substring(attributes[\"umlaut\"], 1, 2, true) == \"r\"", "true"},
    {"Substring(name, 5, 5) == \"\"",
     "? invalid range for substring function, start(5)+length(5) cannot be greater than the length "
     "of target string(9)"},
    {"Substring(name, 0, 0) == \"\"",
     "? invalid length for substring function, 0 cannot be negative or zero"},
    {"Substring(name, -1, 1) == \"\"",
     "? invalid start for substring function, -1 cannot be negative"},
    {"ToUpperCase(attributes[\"umlaut\"]) == \"\xc3\x84RGER\"", "true"},
    {"ToLowerCase(attributes[\"umlaut\"]) == \"\xc3\xa4rger\"", "true"},
    {"Trim(\"  a b \") == \"a b\" and Trim(\"xyaxy\", \"yx\") == \"a\"", "true"},
    {"TrimPrefix(name, \"GET \") == \"/cart\" and TrimSuffix(name, \"/cart\") == \"GET \"", "true"},
    {"Coalesce([nil, attributes[\"gone\"], attributes[\"i\"], 1/0]) == 5", "true"},
};

static void functions_are_called(void **state)
{
    (void)state;
    CHECK(OTTL_SPAN, OTTL_PREFIX_OPTIONAL, functions);
}

/* ---- mistakes ---- */

#define BAD(condition, quoted, error)                                                              \
    {                                                                                              \
        condition, "! unable to parse OTTL condition \"" quoted "\": " error                       \
    }

static const struct row mistakes[] = {
    BAD("span.nme == 1", "span.nme == 1",
        "1:6: the context span has no path \"nme\"; did you mean \"span.name\"?"),
    BAD("duration > 1", "duration > 1",
        "1:1: the context span has no path \"duration\"; write (end_time - start_time)"),
    BAD("attributes.foo == 1", "attributes.foo == 1",
        "1:12: \"attributes\" has no part \"foo\"; write attributes[\"foo\"]"),
    BAD("name[\"a\"] == 1", "name[\"a\"] == 1",
        "1:1: \"name\" is no map and no list, so it takes no [...]"),
    BAD("trace_state[\"a\"][\"b\"] == 1", "trace_state[\"a\"][\"b\"] == 1",
        "1:1: must provide exactly 1 key when accessing trace_state"),
    BAD("true and IsMach(name, \"x\")", "true and IsMach(name, \"x\")",
        "1:10: undefined function \"IsMach\"; did you mean \"IsMatch\"?"),
    BAD("ExtractGrokPatterns(name) == 1", "ExtractGrokPatterns(name) == 1",
        "1:1: the function ExtractGrokPatterns is not supported yet"),
    BAD("kind == SPAN_KIND_SERVRE", "kind == SPAN_KIND_SERVRE",
        "1:9: enum symbol \"SPAN_KIND_SERVRE\" not found; did you mean \"SPAN_KIND_SERVER\"?"),
    BAD("status.code == STATUS_ERROR", "status.code == STATUS_ERROR",
        "1:16: enum symbol \"STATUS_ERROR\" not found; did you mean \"STATUS_CODE_ERROR\"?"),
    BAD("kind == KIND_SERVER", "kind == KIND_SERVER",
        "1:9: enum symbol \"KIND_SERVER\" not found; did you mean \"SPAN_KIND_SERVER\"?"),
    BAD("name == \"a\" or \"b\"", "name == \"a\" or \"b\"",
        "1:19: unexpected end: a value alone is no condition; write each comparison whole: path == "
        "a or path == b"),
    BAD("kind == 1 or SPAN_KIND_SERVER", "kind == 1 or SPAN_KIND_SERVER",
        "1:30: unexpected end: a value alone is no condition; write each comparison whole: path == "
        "a or path == b"),
    BAD("name == \"a\" and name", "name == \"a\" and name",
        "1:21: unexpected end: a path alone is no condition; compare it, as != nil"),
    BAD("name + \"x\" == \"ax\"", "name + \"x\" == \"ax\"",
        "1:8: unexpected \"\"x\"\": texts are joined by Concat([a, b], \"\")"),
    BAD("kind > 1_000", "kind > 1_000", "1:9: unexpected \"_\": a number is written without _"),
    BAD("kind == SPAN_KIND_X", "kind == SPAN_KIND_X", "1:9: enum symbol \"SPAN_KIND_X\" not found"),
    BAD("IsMatch(name, \"(\")", "IsMatch(name, \"(\")",
        "1:15: the pattern of IsMatch is not valid: error parsing regexp: missing closing ): `(`"),
    BAD("IsMatch(name, name)", "IsMatch(name, name)",
        "1:15: argument 2 of IsMatch: a pattern must be a literal string"),
    BAD("Concat([name])== 1", "Concat([name])== 1",
        "1:1: incorrect number of arguments, 1; write Concat(vals, delimiter)"),
    BAD("Concat(name, \"\") == 1", "Concat(name, \"\") == 1",
        "1:8: argument 1 of Concat: must be a list, as [a, b]"),
    BAD("Split(name, x=\"\") == 1", "Split(name, x=\"\") == 1", "1:15: Split has no parameter x"),
    BAD("Split(target=name, \"\") == 1", "Split(target=name, \"\") == 1",
        "1:20: Split: unnamed argument used after named argument"),
    BAD("Split(name, target=name) == 1", "Split(name, target=name) == 1",
        "1:1: argument \"delimiter\" of Split is missing"),
    BAD("HasPrefix(1, \"a\")", "HasPrefix(1, \"a\")",
        "1:11: argument 1 of HasPrefix: expected string but got int64"),
    BAD("Substring(name, 0, 1, name) == 1", "Substring(name, 0, 1, name) == 1",
        "1:23: argument 4 of Substring: must be a bool"),
    BAD("otelcol.client.addr == 1", "otelcol.client.addr == 1",
        "1:1: paths of otelcol are not supported here"),
    BAD("limit(attributes, 100)", "limit(attributes, 100)",
        "1:1: converter names must start with an uppercase letter but got 'limit'; limit is an "
        "editor, which begins a statement and has no value; a condition is a comparison or a "
        "converter"),
    BAD("Concat([name, \"-x\"]) == 1", "Concat([name, \"-x\"]) == 1",
        "1:1: incorrect number of arguments, 1; write Concat(vals, delimiter)"),
    BAD("name == prod-eu", "name == prod-eu",
        "1:9: the context span has no path \"prod\"; a text goes in quotes: \"prod\""),
    BAD("attributes[\"a\"] == null", "attributes[\"a\"] == null",
        "1:20: the context span has no path \"null\"; write nil"),
};

static void mistakes_are_reported_at_start(void **state)
{
    (void)state;
    CHECK(OTTL_SPAN, OTTL_PREFIX_OPTIONAL, mistakes);
}

/* ---- warnings ---- */

/* Comparisons that are never, or always, true, and what is said of them. */
static const struct {
    const char *condition, *result, *warning;
} warned[] = {
    {"kind == \"SERVER\"", "false",
     "1:9: always false: kind is an integer, and is compared with a text; write SPAN_KIND_SERVER"},
    {"\"server\" != span.kind", "true",
     "1:1: always true: span.kind is an integer, and is compared with a text; write "
     "SPAN_KIND_SERVER"},
    {"status.code == \"FAILED\"", "false", "; write a constant, as STATUS_CODE_ERROR"},
    {"status == 2", "false", "; use status.code"},
    {"status == nil", "false", "; use status.code"},
    {"trace_id == \"01\"", "false", "; use trace_id.string"},
    {"trace_id == 0x01020304050607080102030405060708", "false", "; write TraceID(0x...)"},
    {"span_id == nil", "false", "; an absent id is zeros"},
    {"parent_span_id == nil", "false", "; a span without a parent has zeros: IsRootSpan()"},
    {"name == nil", "false", "; an absent text is \"\""},
    {"name >= nil", "false", "name is a text, and is compared with nil"},
    {"name == 5", "false", "; a text goes in quotes"},
    {"name == kind", "false", "; write String(...)"},
    {"trace_state[\"k\"] == nil", "false", "trace_state is a text"},
    {"end_time - start_time > \"1s\"", "false", "this is a duration, and is compared with a text"},
    {"end_time - start_time <= 1000", "false", "; write Duration(\"1s\")"},
    {"start_time > \"2024-01-01\"", "false", "; write Now(), or Time("},
    {"start_time > 5", "false", "; use start_time_unix_nano"},
    {"start_time_unix_nano < Now()", "false", "; write UnixNano(...)"},
    {"end_time_unix_nano - start_time_unix_nano > Duration(\"1s\")", "false",
     "1:45: always false: this is an integer, and is compared with a duration; write "
     "Nanoseconds(...)"},
    {"(end_time_unix_nano - start_time_unix_nano) / 1000000.0 < Duration(\"1s\")", "false",
     "this is a float, and is compared with a duration; write Nanoseconds(...)"},
    {"end_time_unix_nano - start_time_unix_nano > attributes[\"i\"]", "true", NULL},
    {"1 + kind + attributes[\"i\"] == 8 and kind * 2 / 1.5 != name", "true",
     "1:55: always true: this is a float, and is compared with a text"},
    {"Milliseconds(end_time - start_time) > Duration(\"1s\")", "false",
     "1:39: always false: this is an integer, and is compared with a duration; write a number"},
    {"Seconds(end_time - start_time) > \"0.5\"", "false",
     "this is a float, and is compared with a text; write it without quotes"},
    {"Len(events) > \"0\"", "false", "; write it without quotes"},
    {"Hour(start_time) == \"noon\"", "false", "this is an integer, and is compared with a text"},
    {"IsMatch(name, \"a\") == \"true\"", "false",
     "1:23: always false: this is a bool, and is compared with a text; it is a condition without "
     "a comparison"},
    {"IsRootSpan() == 1", "false", "; it is a condition without a comparison"},
    {"IsRootSpan() == true and HasPrefix(name, \"GET\") == true", "true", NULL},
    {"Milliseconds(end_time - start_time) >= 0 and Seconds(end_time - start_time) >= 0", "true",
     NULL},
    {"name == [\"a\", \"b\"]", "false",
     "; compare it with each text, and join the comparisons by or"},
    {"status.code == 3", "false",
     "1:16: always false: status.code cannot be this: a status is STATUS_CODE_UNSET (0), "
     "STATUS_CODE_OK (1) or STATUS_CODE_ERROR (2)"},
    {"6 != kind", "true", "1:1: always true: kind cannot be this: a kind of span is "},
    {"status.code < 3 and kind != SPAN_KIND_CLIENT", "true", NULL},
    {"kind.string == \"SERVER\"", "false", "it is one of Unspecified, Internal, Server, "},
    {"kind.deprecated_string == \"Server\"", "false", "write a text as SPAN_KIND_SERVER"},
    {"trace_id.string == \"0102\"", "false", "a trace id is 32 hex digits"},
    {"span_id.string == \"A1A2A3A4A5A6A7A8\"", "false",
     "1:19: always false: span_id.string cannot be this: its hex digits are lower case"},
    {"parent_span_id.string == \"\"", "false",
     "a span id is 16 hex digits; a span without a parent has zeros: IsRootSpan()"},
    {"parent_span_id.string != \"\" and kind.string != \"\" and span_id.string >= \"a\"", "true",
     NULL},
    {"kind.string == \"\"", "false", NULL},
    {"dropped_attributes_count == -1", "false", "it must be between 0 and 4294967295"},
    {"attributes == nil", "false", "attributes is a map, and is compared with nil"},
    {"attributes != \"x\"", "true", "attributes is a map, and is compared with a text"},
    {"events == nil", "false", "events is events or links"},
    {"end_time - start_time > Duration(\"1d\")", "? time: invalid duration \"1d\"",
     "1:25: fails each time it is evaluated: time: invalid duration \"1d\""},
    {"1 / 0 == 1", "? attempted to divide by 0", "1:1: fails each time it is evaluated"},
    {"SHA256(kind) == \"a\"", "? expected string but got int64",
     "1:8: argument 1 of SHA256 takes a text, and kind is an integer; write String(...)"},
    {"HasPrefix(Len(\"abc\"), \"a\")", "? expected string but got int64",
     "1:11: argument 1 of HasPrefix takes a text"},
    {"name + 1 == 2", "? GET /cart must be int64",
     "1:1: fails each time it is evaluated: + takes numbers and times, and name is a text; write "
     "Concat([...], \"\")"},
    {"5 * kind - name == 2", "? GET /cart must be int64",
     "1:12: fails each time it is evaluated: - takes numbers and times, and name is a text; write "
     "Int(...)"},
    {"attributes[\"i\"] + span_id == 2", "? pcommon.SpanID must be int64",
     "1:19: fails each time it is evaluated: + takes numbers and times, and span_id is a span id"},
    {"(end_time - start_time) / 1000 > 5", "? only addition and subtraction",
     "1:2: fails each time it is evaluated: numbers and times do not mix, and this is a duration; "
     "write Nanoseconds(...)"},
    {"1 + start_time > Now()", "? time.Time must be int64",
     "1:5: fails each time it is evaluated: numbers and times do not mix, and start_time is a "
     "time; use start_time_unix_nano"},
    {"Now() - 5 > start_time", "? int64 cannot be subtracted",
     "1:1: fails each time it is evaluated: numbers and times do not mix, and this is a time; "
     "write UnixNano(...)"},
    {"attributes[\"i\"] + 1 == 6 and end_time - start_time >= Duration(\"0s\")", "true", NULL},
    {"attributes[1] == 1", "? ", "1:12: attributes is a map, and an integer is no key of it"},
    {"kind >= 0.0 and name != \"\" and attributes[\"gone\"] == nil", "true", NULL},
    {"start_time != Now() and end_time - start_time > Duration(\"0s\")", "true", NULL},
};

static void what_cannot_be_is_warned_of(void **state)
{
    struct sample sample;
    struct text got = {0};
    (void)state;
    sample_init(&sample);
    for (size_t i = 0; i < sizeof warned / sizeof *warned; i++) {
        struct error err;
        size_t offset;
        const char *condition = warned[i].condition, *wanted = warned[i].result;
        result_of(OTTL_SPAN, condition, OTTL_PREFIX_OPTIONAL, &sample.item, &got);
        if (strncmp(text_string(&got), wanted, strlen(wanted)) != 0)
            expect_text_of(condition, text_string(&got), wanted);
        struct ottl_program *program = ottl_compile_condition(OTTL_SPAN, slice_of_string(condition),
                                                              OTTL_PREFIX_OPTIONAL, &err);
        const char *warning = program ? ottl_program_warning(program, 0, &offset) : NULL;
        if ((warning == NULL) != (warned[i].warning == NULL) ||
            (warning && !strstr(warning, warned[i].warning)))
            fail_msg("%s: %s", condition, warning ? warning : "no warning");
        assert_true(!warning || !ottl_program_warning(program, 1, &offset));
        ottl_program_free(program);
    }
    text_deinit(&got);
    buffer_unref(sample.request);
}

/* ---- statements, contexts ---- */

static void a_statement_has_a_condition(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"route()", "true"},
        {"route() where name == \"x\"", "false"},
        {"rout() where name == \"x\"",
         "unable to parse OTTL statement \"rout() where name == \"x\"\": 1:1: undefined function "
         "\"rout\"; the only one here is route()"},
        {"route(name)",
         "unable to parse OTTL statement \"route(name)\": 1:7: incorrect number of arguments, 1; "
         "write route()"},
    };
    struct sample sample;
    sample_init(&sample);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error err;
        struct ottl_program *program = ottl_compile_where(
            OTTL_SPAN, slice_of_string(rows[i].condition), "route", OTTL_PREFIX_OPTIONAL, &err);
        if (!program) {
            expect_text(err.text, rows[i].wanted);
            continue;
        }
        struct ottl_evaluator *evaluator = ottl_evaluator_new(program);
        bool matches = ottl_evaluate(evaluator, &sample.item) == OTTL_MATCH;
        expect_text(matches ? "true" : "false", rows[i].wanted);
        ottl_evaluator_free(evaluator);
        ottl_program_free(program);
    }
    buffer_unref(sample.request);
}

static void the_context_is_the_lowest_prefix(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"resource.attributes[\"a\"] == 1", "resource"},
        {"resource.attributes[span.name] == 1", "span"},
        {"IsMatch(instrumentation_scope.name, \"a\") or resource.attributes[\"a\"] == 1", "scope"},
        {"Concat([span.name], \"\") == resource.schema_url", "span"},
        {"span.name == \"a\" and spanevent.name == resource.schema_url", "spanevent"},
        {"resource.attributes[\"a\"] == 1 and IsRootSpan()", "span"},
        {"resource.attributes[\"a\"] == SPAN_KIND_SERVER", "span"},
        {"spanevent.name == \"a\" and span.kind == SPAN_KIND_SERVER", "spanevent"},
        {"IsRootSpan()", NULL},
        {"attributes[\"a\"] == 1", NULL},
        {"true", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        enum ottl_context context;
        struct error err;
        bool ok =
            ottl_infer_context(slice_of_string(rows[i].condition), false,
                               OTTL_BIT(OTTL_CONTEXT_COUNT) - 1, &context, &err) == OTTL_INFERRED;
        assert_int_equal(ok, rows[i].wanted != NULL);
        if (ok)
            expect_text(ottl_context_names[context], rows[i].wanted);
    }
}

/* ---- what is kept for a resource ---- */

static struct message_iter group_with(struct arena *arena, const char *service)
{
    char json[200];
    snprintf(json, sizeof json, "{\"resourceSpans\":[{\"resource\":{\"attributes\":[%s%s%s]}}]}",
             "{\"key\":\"service.name\",\"value\":{\"stringValue\":\"", service, "\"}}");
    struct buffer *request = fixture_encode(SIGNAL_TRACES, json);
    struct slice copy = arena_copy(arena, buffer_slice(request));
    buffer_unref(request);
    return message_iter_bytes(first(message_iter_bytes(copy), REQUEST_GROUPS).wire.bytes);
}

static void another_resource_is_evaluated_anew(void **state)
{
    (void)state;
    struct arena arena;
    struct error err;
    arena_init(&arena, NULL);
    struct ottl_program *program = ottl_compile_condition(
        OTTL_SPAN,
        SLICE("ToUpperCase(resource.attributes[\"service.name\"]) == \"B\" or span.name == \"x\""),
        OTTL_PREFIX_REQUIRED, &err);
    assert_non_null(program);
    struct ottl_evaluator *evaluator = ottl_evaluator_new(program);
    for (int batch = 0; batch < 3; batch++) {
        struct ottl_item item;
        ottl_item_begin(&item);
        for (int i = 0; i < 4; i++) {
            ottl_item_set_group(&item, group_with(&arena, i % 2 == batch % 2 ? "a" : "b"));
            ottl_item_set_scope_group(&item, message_iter_bytes((struct slice){0}));
            for (int span = 0; span < 3; span++) {
                ottl_item_set_span(&item, message_iter_bytes((struct slice){0}));
                assert_int_equal(ottl_evaluate(evaluator, &item),
                                 i % 2 == batch % 2 ? OTTL_NO_MATCH : OTTL_MATCH);
            }
        }
    }
    ottl_evaluator_free(evaluator);
    ottl_program_free(program);
    arena_deinit(&arena);
}

/* What depends on the span is computed once for each. */
static void another_span_is_evaluated_anew(void **state)
{
    (void)state;
    static const uint8_t names[][3] = {{0x2a, 1, 'a'}, {0x2a, 1, 'b'}};
    static const uint8_t events[][3] = {{0x12, 1, 'x'}, {0x12, 1, 'y'}};
    struct error err;
    struct ottl_item item;
    struct ottl_program *program = ottl_compile_condition(
        OTTL_SPAN_EVENT, SLICE("ToUpperCase(span.name) == \"B\" and name == \"y\""),
        OTTL_PREFIX_OPTIONAL, &err);
    assert_non_null(program);
    struct ottl_evaluator *evaluator = ottl_evaluator_new(program);
    ottl_item_begin(&item);
    ottl_item_set_group(&item, message_iter_bytes((struct slice){0}));
    ottl_item_set_scope_group(&item, message_iter_bytes((struct slice){0}));
    for (unsigned span = 0; span < 6; span++) {
        ottl_item_set_span(&item, message_iter_bytes(slice_of(names[span % 2], 3)));
        for (unsigned event = 0; event < 4; event++) {
            ottl_item_set_span_event(&item, message_iter_bytes(slice_of(events[event % 2], 3)));
            assert_int_equal(ottl_evaluate(evaluator, &item),
                             span % 2 && event % 2 ? OTTL_MATCH : OTTL_NO_MATCH);
        }
    }
    ottl_evaluator_free(evaluator);
    ottl_program_free(program);
}

/* A group with a resource whose attribute "k" is a text of this size. */
static struct message_iter group_with_text(struct arena *arena, size_t size)
{
    struct wire_writer writer = {0};
    uint8_t *text = arena_alloc(arena, size);
    memset(text, 'a', size);
    size_t resource = wire_writer_begin(&writer, GROUP_RESOURCE);
    key_value_append(&writer, RESOURCE_ATTRIBUTES, SLICE("k"),
                     any_value_string(slice_of(text, size)));
    wire_writer_end(&writer, resource);
    struct slice copy = arena_copy(arena, wire_writer_slice(&writer));
    wire_writer_deinit(&writer);
    return message_iter_bytes(copy);
}

/* Returns on how many spans the condition is evaluated before it fails, up to `most`. */
static unsigned spans_until_failure(const char *condition, size_t text_size, unsigned most,
                                    struct text *why)
{
    static const uint8_t span[] = {0x2a, 1, 'a'};
    struct arena arena;
    struct error err;
    struct ottl_item item;
    unsigned count = 0;
    struct ottl_program *program =
        ottl_compile_condition(OTTL_SPAN, slice_of_string(condition), OTTL_PREFIX_REQUIRED, &err);
    assert_non_null(program);
    struct ottl_evaluator *evaluator = ottl_evaluator_new(program);
    arena_init(&arena, NULL);
    for (int batch = 0; batch < 2; batch++) { /* the second one begins anew */
        ottl_item_begin(&item);
        ottl_item_set_group(&item, group_with_text(&arena, text_size));
        ottl_item_set_scope_group(&item, message_iter_bytes((struct slice){0}));
        for (count = 0; count < most; count++) {
            ottl_item_set_span(&item, message_iter_bytes(slice_of(span, sizeof span)));
            if (ottl_evaluate(evaluator, &item) == OTTL_FAILED)
                break;
        }
    }
    text_clear(why);
    text_append(why, ottl_evaluator_error(evaluator));
    ottl_evaluator_free(evaluator);
    ottl_program_free(program);
    arena_deinit(&arena);
    return count;
}

/* What all items share is large for each of them: reading it takes steps of the request. */
static void reading_what_items_share_has_an_end(void **state)
{
    enum { LARGE = 1 << 20, MANY = 200 };
    static const char reads[] = "Index(resource.attributes[\"k\"], span.name) < 0",
                      searches[] = "resource.attributes[span.name] != nil",
                      compares[] = "resource.attributes[\"k\"] == span.name",
                      computes[] = "Len(resource.attributes[\"k\"]) < 5 and span.name == \"a\"",
                      sorts[] = "Len(Sort(Split(resource.attributes[\"k\"], span.name))) < 0",
                      joins[] =
                          "Len(Concat(Split(resource.attributes[\"k\"], \"a\"), span.name)) < "
                          "0",
                      joins_itself[] = "Len(Concat(Split(resource.attributes[\"k\"], \"\"), "
                                       "resource.attributes[\"k\"])) < 0",
                      sorts_once[] = "Len(Sort(Split(resource.attributes[\"k\"], \"a\"))) > 0 and "
                                     "span.name != \"\"";
    struct text why = {0};
    (void)state;
    assert_int_equal(spans_until_failure(reads, LARGE, MANY, &why), 65); /* 1 MiB and 64 a byte */
    expect_text(text_string(&why), "too many items of the request read the same large data");
    assert_true(spans_until_failure(searches, LARGE, MANY, &why) < 65);
    /* What takes no time for a large text does not count, nor what is computed once. */
    assert_int_equal(spans_until_failure(compares, LARGE, MANY, &why), MANY);
    assert_int_equal(spans_until_failure(computes, LARGE, MANY, &why), MANY);
    /* Work that takes much longer than reading counts as often. */
    assert_true(spans_until_failure(sorts, LARGE / 16, MANY, &why) < 8);
    assert_int_equal(spans_until_failure(sorts_once, LARGE / 16, MANY, &why), MANY);
    /* A separator is written as often as a client's list has items. */
    assert_true(spans_until_failure(joins, LARGE / 16, MANY, &why) < 20);
    assert_int_equal(spans_until_failure(joins, 64, 10000, &why), 10000);
    assert_int_equal(spans_until_failure(joins_itself, 2048, MANY, &why), 0);
    expect_text(text_string(&why), "a list makes a text above 1 MiB");
    /* Values of ordinary size do not count. */
    assert_int_equal(spans_until_failure(reads, 256, 100000, &why), 100000);
    assert_int_equal(spans_until_failure(sorts, 64, 10000, &why), 10000);
    text_deinit(&why);
}

/* ---- values ---- */

/* Returns an encoded value as a text; otherwise like result_of. */
static const char *value_of(const char *text, struct ottl_item *item, size_t limit,
                            struct text *out)
{
    struct error err;
    text_clear(out);
    struct ottl_program *program =
        ottl_compile_value(OTTL_SPAN, slice_of_string(text), OTTL_PREFIX_REQUIRED, &err);
    if (!program) {
        text_printf(out, "! %s", err.text);
        return text_string(out);
    }
    struct ottl_evaluator *evaluator = ottl_evaluator_new(program);
    struct wire_writer writer = {0};
    enum ottl_result result = ottl_evaluate_value(evaluator, item, limit, &writer);
    struct any_value value = any_value_read(wire_writer_slice(&writer));
    if (result == OTTL_FAILED)
        text_printf(out, "? %s", ottl_evaluator_error(evaluator));
    else if (result == OTTL_NO_MATCH)
        text_append(out, "none");
    else if (value.kind == ANY_VALUE_INT)
        text_printf(out, "int %lld", (long long)value.integer);
    else
        text_printf(out, "%s %.*s", value.kind == ANY_VALUE_STRING ? "text" : "other",
                    SLICE_ARG(value.bytes));
    wire_writer_deinit(&writer);
    ottl_evaluator_free(evaluator);
    ottl_program_free(program);
    return text_string(out);
}

static const struct row values[] = {
    {"span.name", "text GET /cart"},
    {"ConvertCase(span.name, \"lower\")", "text get /cart"},
    {"Concat([resource.attributes[\"service.name\"], span.name], \" \")", "text shop GET /cart"},
    {"span.status.message", "text bad"},
    {"span.attributes[\"i\"] + 1", "int 6"},
    {"Len(span.events)", "int 2"},
    {"span.attributes[\"gone\"]", "none"},
    {"nil", "none"},
    {"\"fixed\"", "text fixed"},
    {"span.trace_id.string", "text 0102030405060708090a0b0c0d0e0f10"},
    {"span.trace_id", "? unsupported type pcommon.TraceID for set operation"},
    {"span.attributes[\"s\"] + 1", "? text must be int64, float64, time.Time or time.Duration"},
    {"Concat([span.name, span.name, span.name, span.name], \"\")",
     "? the request would grow too much"},
    {"name", "! "},
    {"span.name == \"x\"", "! "},
    {"span.name where true", "! "},
    {"", "! "},
};

static void values_are_encoded(void **state)
{
    (void)state;
    struct sample sample;
    struct text got = {0};
    sample_init(&sample);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        const char *wanted = values[i].wanted;
        const char *text = value_of(values[i].condition, &sample.item, 34, &got);
        if (strcmp(wanted, "! ") == 0)
            assert_memory_equal(text, "! ", 2);
        else
            expect_text_of(values[i].condition, text, wanted);
    }
    text_deinit(&got);
    buffer_unref(sample.request);
}

/* What never is a value of an attribute. wanted: NULL: nothing is said. */
static void values_that_never_are_are_warned_of(void **state)
{
    static const struct row rows[] = {
        {"span.span_id", "OTTL value \"span.span_id\": 1:1: an attribute cannot be a span id; use "
                         "span.span_id.string"},
        {"span.end_time", "an attribute cannot be a time; write FormatTime(...) or UnixNano(...)"},
        {"span.end_time - span.start_time", "an attribute cannot be a duration; write Millisec"},
        {"span.status", "an attribute cannot be a status; use span.status.code"},
        {"span.events", "an attribute cannot be events or links"},
        {"nil", "1:1: there is no value: this is nil"},
        {"span.name + 1", "+ takes numbers and times, and span.name is a text"},
        {"span.attributes[\"i\"] + 1", NULL},
        {"span.attributes", NULL},
        {"Len(span.events)", NULL},
        {"Concat([span.name], \"\")", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error err;
        size_t offset;
        struct ottl_program *program = ottl_compile_value(
            OTTL_SPAN, slice_of_string(rows[i].condition), OTTL_PREFIX_REQUIRED, &err);
        assert_non_null(program);
        const char *warning = ottl_program_warning(program, 0, &offset);
        if ((warning == NULL) != (rows[i].wanted == NULL) ||
            (warning && !strstr(warning, rows[i].wanted)))
            fail_msg("%s: %s", rows[i].condition, warning ? warning : "no warning");
        assert_true(!warning || !ottl_program_warning(program, 1, &offset));
        ottl_program_free(program);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_encoded),
        cmocka_unit_test(values_that_never_are_are_warned_of),
        cmocka_unit_test(values_are_compared),
        cmocka_unit_test(numbers_and_times_are_computed),
        cmocka_unit_test(paths_are_read),
        cmocka_unit_test(each_context_has_its_paths),
        cmocka_unit_test(functions_are_called),
        cmocka_unit_test(mistakes_are_reported_at_start),
        cmocka_unit_test(what_cannot_be_is_warned_of),
        cmocka_unit_test(a_statement_has_a_condition),
        cmocka_unit_test(the_context_is_the_lowest_prefix),
        cmocka_unit_test(another_resource_is_evaluated_anew),
        cmocka_unit_test(another_span_is_evaluated_anew),
        cmocka_unit_test(reading_what_items_share_has_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
