/* What the processor redaction reaches: the bytes that leave it are searched for what must be gone
 * (docs/redaction.md, What is reached). */
#include "core/data/wire_writer.h"
#include "tests/unit/pipeline_fixture.h"

#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

extern const struct component_type redaction_processor_type;

#define TEXT(key, value) "{\"key\":\"" key "\",\"value\":{\"stringValue\":\"" value "\"}}"
#define PAIR(key, value) "{\"key\":\"" key "\",\"value\":" value "}"
#define STRING(value) "{\"stringValue\":\"" value "\"}"
#define BYTES(base64) "{\"bytesValue\":\"" base64 "\"}"
#define NUMBER(value) "{\"intValue\":\"" value "\"}"
#define MAP(members) "{\"kvlistValue\":{\"values\":[" members "]}}"
#define LIST(values) "{\"arrayValue\":{\"values\":[" values "]}}"

/* A span with one attribute. */
#define SPAN_WITH(attribute)                                                                       \
    "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"traceId\":"                               \
    "\"0102030405060708090a0b0c0d0e0f10\",\"spanId\":\"a1a2a3a4a5a6a7a8\",\"name\":\"s\","         \
    "\"attributes\":[" attribute "]}]}]}]}"
/* A sample with one attribute. */
#define SAMPLE_WITH(value)                                                                         \
    "{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{\"samples\":[{\"values\":[\"1\"]," \
    "\"attributeIndices\":[1]}]}]}]}],\"dictionary\":{\"stringTable\":[\"\",\"a\"],"               \
    "\"mappingTable\":[{}],\"locationTable\":[{}],\"functionTable\":[{}],\"linkTable\":[{}],"      \
    "\"stackTable\":[{}],\"attributeTable\":[{},{\"keyStrindex\":1,\"value\":" value "}]}}"

struct row {
    const char *settings;
    const char *request;
    const char *wanted[6]; /* texts of the outgoing bytes; "!x": x is not there */
};

#define ALL "allow_all_keys: true"
#define CARD ALL ", blocked_values: ['4[0-9]{3}']"

static bool has(const struct recorded *recorded, const char *text)
{
    return memmem(recorded->bytes, recorded->size, text, strlen(text));
}

/* Sends the request in protobuf; checks what leaves. */
static void check_bytes(const struct row *row, struct slice request, enum signal signal)
{
    struct fixture f;
    struct probe probe;
    struct text yaml = {0};
    fixture_init(&f, 1);
    text_printf(&yaml, "processors: {redaction: {%s}}", row->settings);
    struct fixture_place *place = fixture_place(&f, &redaction_processor_type, "redaction",
                                                text_string(&yaml), signal_name(signal), signal);
    fixture_consume(&f, place->nodes[0], request, 1, &probe);
    fixture_advance(&f, 0);
    assert_int_equal(f.recorder.count, 1);
    for (size_t i = 0; i < 6 && row->wanted[i]; i++) {
        bool is_absent = row->wanted[i][0] == '!';
        if (has(&f.recorder.items[0], row->wanted[i] + is_absent) == is_absent) {
            char *got = fixture_recorded_json(&f, 0);
            fail_msg("%s: %s in %s", row->settings, row->wanted[i], got);
        }
    }
    fixture_deinit(&f);
    text_deinit(&yaml);
}

static void check_row(const struct row *row, enum signal signal)
{
    struct buffer *request = fixture_encode(signal, row->request);
    check_bytes(row, slice_of(request->data, request->size), signal);
    buffer_unref(request);
}

static void check_rows(const struct row *rows, size_t count, enum signal signal)
{
    for (size_t i = 0; i < count; i++)
        check_row(&rows[i], signal);
}
#define CHECK_ROWS(rows, signal) check_rows(rows, sizeof(rows) / sizeof *(rows), signal)

/* The values of keys, of maps in maps and of lists. "QUI0MTEx" is AB4111 in base64, "/zQxMTEA" the
 * bytes ff "4111" 00. */
#define DEEP                                                                                       \
    MAP(TEXT("card", "no 4111") "," PAIR(                                                          \
        "list",                                                                                    \
        LIST(                                                                                      \
            STRING("x 4222") "," MAP(TEXT("note", "y 4333") "," TEXT("user", "alice")) "," NUMBER( \
                "4444") "," STRING("plain"))) "," PAIR("credit",                                   \
                                                       MAP(TEXT("owner", "bob") "," PAIR(          \
                                                           "limit", NUMBER("77777")))))

static const struct row nested_rows[] = {
    {ALL, SPAN_WITH(PAIR("a", DEEP)), {"no 4111", "x 4222", "y 4333", "bob"}},
    {CARD, SPAN_WITH(PAIR("a", DEEP)), {"no ****", "x ****", "y ****", "!4111", "!4222", "plain"}},
    {CARD ", redact_all_types: true",
     SPAN_WITH(PAIR("a", DEEP)),
     {"no ****", "!4222", "!4333", "!4444", "plain", "[\"x ****\""}},
    {CARD ", hash_function: md5", SPAN_WITH(PAIR("a", DEEP)), {"!4111", "!4222", "plain"}},
    {ALL ", blocked_key_patterns: ['^credit$', '^user$']",
     SPAN_WITH(PAIR("a", DEEP)),
     {"!alice", "!bob", "!owner", "credit", "no 4111", "y 4333"}},
    {ALL ", blocked_key_patterns: [limit]", SPAN_WITH(PAIR("a", DEEP)), {"bob", "****"}},
    {ALL ", blocked_key_patterns: [limit], redact_all_types: true",
     SPAN_WITH(PAIR("a", DEEP)),
     {"bob", "!77777"}},
    {ALL ", blocked_key_patterns: ['^a$'], hash_function: md5",
     SPAN_WITH(PAIR("a", DEEP)),
     {"!bob", "!4111", "!plain"}},
    {CARD ", ignored_keys: [list]", SPAN_WITH(PAIR("a", DEEP)), {"no ****", "x 4222", "y 4333"}},
    {CARD ", allowed_values: ['^x ']", SPAN_WITH(PAIR("a", DEEP)), {"no ****", "x 4222", "!4333"}},
    {CARD ", allowed_values: ['^$', '^x ']",
     SPAN_WITH(PAIR("a", DEEP)),
     {"no ****", "x 4222", "!4333"}},
    {"allowed_keys: [a], blocked_values: ['4[0-9]{3}']",
     SPAN_WITH(PAIR("a", DEEP)),
     {"no ****", "!4222", "bob"}},
    {CARD, SPAN_WITH(PAIR("a", LIST(LIST(LIST(STRING("z4111")))))), {"z****", "!4111"}},
    /* Anchors and escapes that the JSON of the value hides. */
    {ALL ", blocked_values: ['^4111$'], redact_all_types: true",
     SPAN_WITH(PAIR("a", LIST(STRING("4111") "," STRING("x")))),
     {"!4111", "x"}},
    {ALL ", blocked_values: ['^4111$|5222'], redact_all_types: true",
     SPAN_WITH(PAIR("a", LIST(STRING("4111") "," STRING("5222")))),
     {"!4111", "!5222"}},
    {ALL ", blocked_values: ['a\"b'], redact_all_types: true",
     SPAN_WITH(PAIR("a", LIST(STRING("a\\\"b") "," STRING("x")))),
     {"!a\"b", "!a\\\"b"}},
    {ALL ", blocked_values: ['^7$'], redact_all_types: true",
     SPAN_WITH(PAIR("a", MAP(PAIR("n", NUMBER("7")) "," TEXT("m", "x")))),
     {"****", "x"}},
    /* Sanitizers, by the key that is nearest. */
    {ALL ", url_sanitizer: {attributes: [url], sanitize_span_name: false}",
     SPAN_WITH(PAIR("http", MAP(TEXT("url", "/users/42") "," TEXT("x", "/users/43")))),
     {"/users/*", "!/users/42", "/users/43"}},
    {ALL ", db_sanitizer: {sql: {attributes: [q]}}",
     SPAN_WITH(PAIR("q", LIST(STRING("SELECT 'secret'")))),
     {"SELECT ?", "!secret"}},
    /* Bytes: only with redact_all_types, as in the Collector, but then as the text that they are.
     */
    {CARD, SPAN_WITH(PAIR("a", BYTES("QUI0MTEx"))), {"AB4111"}},
    {CARD ", redact_all_types: true", SPAN_WITH(PAIR("a", BYTES("QUI0MTEx"))), {"AB****"}},
    {CARD ", redact_all_types: true",
     SPAN_WITH(PAIR("a", BYTES("/zQxMTEA"))),
     {"!4111", "!/zQx", "****"}},
    {CARD ", redact_all_types: true", SPAN_WITH(PAIR("a", BYTES("/zQxMQA="))), {"411"}},
    {CARD ", redact_all_types: true",
     SPAN_WITH(PAIR("a", LIST(BYTES("QUI0MTEx") "," BYTES("/zQxMTEA") "," STRING("x")))),
     {"!4111", "!QUI0", "!/zQx", "AB****", "x"}},
    {ALL ", blocked_values: ['QUI'], redact_all_types: true", /* its base64, as in the Collector */
     SPAN_WITH(PAIR("a", BYTES("QUI0MTEx"))),
     {"****0MTEx"}},
    {ALL ", secret_words: {}", SPAN_WITH(PAIR("my_token", BYTES("QUI0MTEx"))), {"!AB4111"}},
};

static void values_inside_others_are_reached(void **state)
{
    (void)state;
    CHECK_ROWS(nested_rows, SIGNAL_TRACES);
}

static const struct row sample_rows[] = {
    {CARD, SAMPLE_WITH(DEEP), {"no ****", "x ****", "!4111", "!4222", "!4333", "plain"}},
    {ALL ", blocked_key_patterns: ['^credit$']", SAMPLE_WITH(DEEP), {"!bob", "no 4111"}},
    {ALL ", secret_words: {words: [credit, user]}", SAMPLE_WITH(DEEP), {"!bob", "!alice", "plain"}},
    {CARD ", redact_all_types: true", SAMPLE_WITH(BYTES("QUI0MTEx")), {"AB****", "!4111"}},
};

static void attributes_of_samples_are_reached(void **state)
{
    (void)state;
    CHECK_ROWS(sample_rows, SIGNAL_PROFILES);
}

#define LINKED                                                                                     \
    "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"traceId\":"                               \
    "\"0102030405060708090a0b0c0d0e0f10\",\"spanId\":\"a1a2a3a4a5a6a7a8\",\"name\":\"s\","         \
    "\"links\":[{\"traceId\":\"0102030405060708090a0b0c0d0e0f11\",\"spanId\":"                     \
    "\"a1a2a3a4a5a6a7a9\",\"attributes\":[" TEXT("card", "l 4111") "," TEXT(                       \
        "api_token", "t") "]}],\"events\":[{\"name\":\"e\",\"attributes\":[" TEXT("card",          \
                                                                                  "e 4222") "]}"   \
                                                                                            "]}]"  \
                                                                                            "}]}]" \
                                                                                            "}"
static const struct row link_rows[] = {
    {CARD, LINKED, {"l ****", "e ****", "!4111", "!4222"}},
    {ALL ", secret_words: {}", LINKED, {"l 4111", "[REDACTED]"}},
    {"allowed_keys: [card]", LINKED, {"l 4111", "!api_token"}},
    {CARD ", summary: debug", LINKED, {"redaction.masked.keys"}},
};

static void attributes_of_links_are_reached(void **state)
{
    (void)state;
    CHECK_ROWS(link_rows, SIGNAL_TRACES);
}

/* Texts that the Collector leaves, each with a number of its own. */
#define TEXTS                                                                                      \
    "{\"resourceSpans\":[{\"schemaUrl\":\"https://x/4100\",\"resource\":{\"entityRefs\":[{"        \
    "\"schemaUrl\":\"u4111\",\"type\":\"t4112\",\"idKeys\":[\"host\",\"i4113\"],"                  \
    "\"descriptionKeys\":[\"d4114\"]}],\"attributes\":[" TEXT(                                     \
        "host",                                                                                    \
        "h") "]},"                                                                                 \
             "\"scopeSpans\":[{\"schemaUrl\":\"https://x/4101\",\"scope\":{\"name\":\"n4102\","    \
             "\"version\":\"v4103\"},\"spans\":[{\"traceId\":"                                     \
             "\"0102030405060708090a0b0c0d0e0f10\","                                               \
             "\"spanId\":\"a1a2a3a4a5a6a7a8\",\"name\":\"GET 4104\",\"traceState\":\"a=4105\","    \
             "\"status\":{\"code\":2,\"message\":\"no card 4109\"},\"attributes\":[" TEXT(         \
                 "k4106",                                                                          \
                 "v") "," PAIR("m",                                                                \
                               MAP(TEXT(                                                           \
                                   "deep4110",                                                     \
                                   "plain"))) "],\"events\":[{\"name\":\"e4107\",\"attributes\":"  \
                                              "[" TEXT("ek4115",                                   \
                                                       "x") "]}],\"links\":[{"                     \
                                                            "\"traceId\":"                         \
                                                            "\"0102030405060708090a0b0c0d0e0f11\"" \
                                                            ",\"spanId\":\"a1a2a3a4a5a6a7a9\","    \
                                                            "\"traceState\":\"b=4108\"}]}]}]}]}"
#define CODES "blocked_values: ['4[12][0-9]{2}']"

static const struct row text_rows[] = {
    {ALL "," CODES, TEXTS, {"4100", "4101", "n4102", "v4103", "4104", "a=4105"}},
    {ALL "," CODES, TEXTS, {"k4106", "e4107", "b=4108", "no card 4109", "deep4110", "u4111"}},
    {ALL "," CODES ", redact_all_texts: true",
     TEXTS,
     {"!410", "!411", "GET ****", "no card ****", "plain", "https://x/****"}},
    {ALL "," CODES ", redact_all_texts: true, allowed_values: ['^GET ', '^k']",
     TEXTS,
     {"GET 4104", "k4106", "!4107", "!4110"}},
    {ALL "," CODES ", redact_all_texts: true, ignored_keys: [k4106]",
     TEXTS,
     {"GET ****", "k4106", "!4107"}},
    {"allowed_keys: [m, ek4115], " CODES ", redact_all_texts: true, summary: debug",
     TEXTS,
     {"!410", "!411", "ek****", "redaction.redacted.keys"}},
    {ALL ", redact_all_texts: true, secret_words: {words: [card, get]}",
     TEXTS,
     {"no card 4109", "GET 4104"}},
    {ALL "," CODES ", redact_all_texts: true, redact_all_types: true", TEXTS, {"!410", "!411"}},
    {ALL "," CODES ", redact_all_texts: true, hash_function: md5", TEXTS, {"!410", "!411"}},
};

static void texts_of_traces_are_reached(void **state)
{
    (void)state;
    CHECK_ROWS(text_rows, SIGNAL_TRACES);
}

/* `strings`: further ones. */
#define CODE(strings, profile)                                                                     \
    "{\"resourceProfiles\":[{\"schemaUrl\":\"s4108\",\"scopeProfiles\":[{\"scope\":{\"name\":"     \
    "\"n4107\"},\"profiles\":[{\"sampleType\":{\"typeStrindex\":1,\"unitStrindex\":2}," profile    \
    "\"samples\":[{\"stackIndex\":1,\"values\":[\"1\"],\"attributeIndices\":[1]}]}]}]}],"          \
    "\"dictionary\":{\"stringTable\":[\"\",\"t4201\",\"u4202\",\"k4203\",\"f4204\","               \
    "\"main\"" strings                                                                             \
    "],\"mappingTable\":[{}],\"locationTable\":[{},{\"lines\":[{\"functionIndex\":1},"             \
    "{\"functionIndex\":2}]}],\"functionTable\":[{},{\"nameStrindex\":4},{\"nameStrindex\":5}],"   \
    "\"linkTable\":[{}],\"stackTable\":[{},{\"locationIndices\":[1]}],\"attributeTable\":[{},{"    \
    "\"keyStrindex\":3,\"unitStrindex\":2,\"value\":{\"stringValue\":\"v4205\"}}]}}"

static const struct row code_rows[] = {
    {ALL, CODE(",\"w4206\"", ""), {"t4201", "u4202", "k4203", "f4204", "v4205", "w4206"}},
    {ALL "," CODES, CODE(",\"w4206\"", ""), {"t4201", "u4202", "k4203", "!4204", "!4205", "!4206"}},
    {ALL "," CODES ", redact_all_texts: true",
     CODE(",\"w4206\"", ""),
     {"!42", "!4107", "!4108", "main", "t****", "k****"}},
    {ALL "," CODES ", redact_all_texts: true, blocked_key_patterns: [k4203], hash_function: md5",
     CODE("", ""),
     {"!42", "main"}},
    {ALL "," CODES ", redact_all_texts: true, secret_words: {words: [main]}",
     CODE("", ""),
     {"!42", "!main", "[REDACTED]"}},
    {"allowed_keys: [k4203], blocked_values: ['4203'], redact_all_texts: true",
     CODE("", ""),
     {"!k4203", "k****", "v4205"}},
    /* Nothing refers to it, and nothing else changes. */
    {ALL ", secret_words: {}", CODE(",\"getPassword\"", ""), {"!getPassword", "f4204", "main"}},
    {ALL ", blocked_values: [w4206]", CODE(",\"w4206\"", ""), {"!w4206", "v4205", "main"}},
    /* Originals leave, whatever is in them: "Z2V0" is get. */
    {ALL,
     CODE("", "\"originalPayloadFormat\":\"pprof\",\"originalPayload\":\"Z2V0\","),
     {"!get", "!pprof", "main"}},
    {ALL ", secret_words: {}",
     CODE("", "\"originalPayloadFormat\":\"pprof\","),
     {"!pprof", "main"}},
};

static void texts_of_profiles_are_reached(void **state)
{
    (void)state;
    CHECK_ROWS(code_rows, SIGNAL_PROFILES);
}

/* ---- fields that are there several times, of which the last counts ---- */

/* The payloads of attributes, in protobuf. */
#define OK "\x0a\x02ok"
#define HUNTER "\x0a\x07hunter2"
#define KEY "\x0a\x01k"
#define MEMBER "\x0a\x01m"
#define TWO_STRINGS KEY "\x12\x0d" HUNTER OK
#define STRING_AND_INT KEY "\x12\x0b" HUNTER "\x18\x05"
#define MAP_AND_STRING KEY "\x12\x16\x32\x10\x0a\x0e" MEMBER "\x12\x09" HUNTER OK
#define STRING_AND_MAP KEY "\x12\x16" HUNTER "\x32\x0b\x0a\x09" MEMBER "\x12\x04" OK
#define TWO_IN_LIST KEY "\x12\x11\x2a\x0f\x0a\x0d" HUNTER OK
#define TWO_IN_MAP KEY "\x12\x16\x32\x14\x0a\x12" MEMBER "\x12\x0d" HUNTER OK
#define TWO_KEYS HUNTER KEY "\x12\x04" OK
#define TWO_KEYS_IN_MAP KEY "\x12\x16\x32\x14\x0a\x12" HUNTER MEMBER "\x12\x04" OK
#define EVERYTHING CARD ", redact_all_texts: true, redact_all_types: true"

static const struct row repeated_rows[] = {
    {ALL, TWO_STRINGS, {"!hunter2", "****", "k"}},
    {EVERYTHING, TWO_STRINGS, {"!hunter2", "****"}},
    {ALL ", secret_words: {}", TWO_STRINGS, {"!hunter2", "****"}},
    {"allowed_keys: [k]", TWO_STRINGS, {"!hunter2", "****"}},
    {ALL ", allowed_values: [ok]", TWO_STRINGS, {"!hunter2", "****"}},
    {ALL ", ignored_keys: [k]", TWO_STRINGS, {"hunter2", "ok"}}, /* it stays as it is */
    {EVERYTHING, STRING_AND_INT, {"!hunter2", "****"}},
    {EVERYTHING, MAP_AND_STRING, {"!hunter2", "****"}},
    {EVERYTHING, STRING_AND_MAP, {"!hunter2", "****"}},
    {EVERYTHING, TWO_IN_LIST, {"!hunter2", "****"}},
    {EVERYTHING, TWO_IN_MAP, {"!hunter2", "****"}},
    {EVERYTHING, TWO_KEYS_IN_MAP, {"!hunter2", "****"}},
    {ALL, TWO_KEYS, {"!hunter2", KEY, "ok"}},
    {EVERYTHING, TWO_KEYS, {"!hunter2", KEY, "ok"}},
    {ALL ", ignored_keys: [k]", TWO_KEYS, {"!hunter2", KEY, "ok"}},
    {ALL ", blocked_values: [ok]", TWO_KEYS, {"!hunter2", KEY, "****"}},
    {"allowed_keys: [x]", TWO_KEYS, {"!hunter2", "!ok"}},
};

static void repeated_fields_are_reached(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof repeated_rows / sizeof *repeated_rows; i++) {
        struct wire_writer request = {0};
        size_t group = wire_writer_begin(&request, REQUEST_GROUPS);
        size_t scope = wire_writer_begin(&request, GROUP_SCOPES);
        size_t span = wire_writer_begin(&request, SCOPE_ITEMS);
        wire_writer_bytes(&request, SPAN_ATTRIBUTES, slice_of_string(repeated_rows[i].request));
        wire_writer_end(&request, span);
        wire_writer_end(&request, scope);
        wire_writer_end(&request, group);
        check_bytes(&repeated_rows[i], wire_writer_slice(&request), SIGNAL_TRACES);
        wire_writer_deinit(&request);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_inside_others_are_reached),
        cmocka_unit_test(attributes_of_samples_are_reached),
        cmocka_unit_test(attributes_of_links_are_reached),
        cmocka_unit_test(texts_of_traces_are_reached),
        cmocka_unit_test(texts_of_profiles_are_reached),
        cmocka_unit_test(repeated_fields_are_reached),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
