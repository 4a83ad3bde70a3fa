#include "core/data/any_value.h"
#include "core/data/otlp.h"
#include "core/data/wire_writer.h"
#include "tests/unit/expect_text.h"
#include "tests/unit/pipeline_fixture.h"

#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

extern const struct component_type redaction_processor_type;

/* Redacts a request. out: the request that was forwarded. metric: the value of one, "name{labels}"
 * without profcol_processor_redaction_; NULL: not asked. */
static double redact(enum signal signal, const char *settings, const char *json, const char *metric,
                     const char *labels, struct text *out)
{
    struct fixture f;
    struct probe probe;
    struct text yaml = {0}, name = {0};
    fixture_init(&f, 1);
    text_clear(out);
    text_printf(&yaml, "processors: {redaction: %s}", settings);
    struct fixture_place *place = fixture_place(&f, &redaction_processor_type, "redaction",
                                                text_string(&yaml), signal_name(signal), signal);
    fixture_consume_json(&f, place->nodes[0], json, 1, &probe);
    fixture_advance(&f, 0);
    assert_int_equal(probe.settled, 1);
    assert_true(verdict_is_ok(&probe.verdict));
    char *got = fixture_recorded_json(&f, 0);
    text_append(out, got);
    free(got);
    text_printf(&name, "profcol_processor_redaction_%s", metric ? metric : "");
    double value = metrics_value(place->component->process->metrics, text_string(&name), labels);
    fixture_deinit(&f);
    text_deinit(&yaml);
    text_deinit(&name);
    return value;
}

#define TEXT(key, value) "{\"key\":\"" key "\",\"value\":{\"stringValue\":\"" value "\"}}"
#define NUMBER(key, value) "{\"key\":\"" key "\",\"value\":{\"intValue\":\"" value "\"}}"
#define SPAN(name, attributes, events)                                                             \
    "{\"traceId\":\"0102030405060708090a0b0c0d0e0f10\",\"spanId\":\"a1a2a3a4a5a6a7a8\",\"name\":"  \
    "\"" name "\",\"attributes\":[" attributes "],\"events\":[" events "]}"
#define TRACES(resource, scope, spans)                                                             \
    "{\"resourceSpans\":[{\"resource\":{\"attributes\":[" resource                                 \
    "]},\"scopeSpans\":[{\"scope\":{\"attributes\":[" scope "]},\"spans\":[" spans "]}]}]}"

#define MAP(members) "{\"kvlistValue\":{\"values\":[" members "]}}"
#define PAIR(key, value) "{\"key\":\"" key "\",\"value\":" value "}"
#define NESTED                                                                                     \
    PAIR("headers",                                                                                \
         MAP(TEXT("accept", "json") "," TEXT("api_token", "t1") "," PAIR(                          \
             "list",                                                                               \
             "{\"arrayValue\":{\"values\":[" MAP(TEXT("secret", "t2") "," NUMBER(                  \
                 "tokens", "5")) ",{\"stringValue\":\"plain\"}]}}") "," PAIR("credentials",        \
                                                                             MAP(TEXT("user",      \
                                                                                      "t3")))))

static const char traces[] =
    TRACES(TEXT("host", "h") "," TEXT("card", "r 4111"), TEXT("card", "s 4111"),
           SPAN("4111",
                TEXT("card", "no 4111 or 4222") "," NUMBER("count", "4111") "," TEXT(
                    "user_password", "x") "," NUMBER("input_tokens", "7") "," TEXT("note", "a\\nb"),
                "{\"name\":\"e\",\"attributes\":[" TEXT("card", "e 4111") "," NESTED "]}"));

struct row {
    const char *settings;
    const char *wanted[5]; /* texts that are there afterwards; "!x": x is not there */
};

#define ALL "allow_all_keys: true"
#define KEY "0123456789abcdef0123456789abcdef"
#define EXPECTED_HASH "1452ee7599a29d25"

static const struct row rows[] = {
    {"{" ALL "}", {"no 4111 or 4222", "r 4111", "s 4111", "e 4111", "!redaction."}},
    {"{" ALL ", blocked_values: ['4[0-9]{3}']}",
     {"no **** or ****", "r ****", "s ****", "e ****", "\"name\":\"4111\""}},
    {"{" ALL ", blocked_values: ['4[0-9]{3}'], summary: debug}",
     {"redaction.masked.keys", "redaction.masked.count", "\"intValue\":\"4111\""}},
    {"{" ALL ", blocked_values: ['4[0-9]{3}'], summary: info}",
     {"!redaction.masked.keys", "redaction.masked.count"}},
    {"{" ALL ", blocked_values: ['4[0-9]{3}'], redact_all_types: true}", {"!\"4111\"}"}},
    {"{" ALL ", blocked_key_patterns: ['^c'], allowed_values: ['^r']}",
     {"r 4111", "!s 4111", "!4222", "!\"intValue\":\"4111\""}},
    {"{" ALL ", blocked_key_patterns: [note]}", {"****\\n****"}},
    {"{" ALL ", blocked_key_patterns: [note], hash_function: md5}",
     {"0cc175b9c0f1b6a831c399e269772661\\n92eb5ffee6ae2fec3ad71c777531578f"}},
    {"{" ALL ", blocked_values: [x], hash_function: sha1}",
     {"11f6ad8ec52a2984abaafd7c3b516503785c2072"}},
    {"{" ALL ", blocked_values: [x], hash_function: sha3}",
     {"741efa311f97686956946758e0d95f70f11ff2da4f2feb7c54314f44134ac49f", "!\"x\""}},
    {"{allowed_keys: [card], ignored_keys: [host]}",
     {"no 4111", "\"host\"", "!user_password", "!count", "!note"}},
    {"{}", {"!card", "!host", "!note", "\"name\":\"4111\""}},
    {"{ignored_key_patterns: [ar]}", {"no 4111", "!host"}},
    {"{" ALL ", secret_words: {}}",
     {"[REDACTED]", "!\"x\"", "\"intValue\":\"7\"", "user_password", "no 4111"}},
    {"{" ALL ", secret_words: {}}", {"!t1", "!t2", "!t3", "json", "plain"}},
    {"{" ALL ", secret_words: {}}", {"api_token", "\"intValue\":\"5\"", "!\"user\""}},
    {"{" ALL ", secret_words: {}, redact_all_types: true}", {"!\"intValue\":\"5\"", "plain"}},
    {"{" ALL ", secret_words: {hmac_key: " KEY "}}", {"[REDACTED:", "!\"x\""}},
    {"{" ALL ", secret_words: {words: [user_password], hmac_key: " KEY "}}", {"[REDACTED:"}},
    {"{" ALL ", secret_words: {words: [card]}, ignored_keys: [card]}", {"no 4111"}},
};

static void check_texts(const char *what, const char *got, const char *const *wanted)
{
    for (size_t i = 0; i < 5 && wanted[i]; i++) {
        bool is_absent = wanted[i][0] == '!';
        if (!strstr(got, wanted[i] + is_absent) != is_absent)
            fail_msg("%s: %s in %s", what, wanted[i], got);
    }
}

static void attributes_of_traces_are_redacted(void **state)
{
    struct text got = {0};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        redact(SIGNAL_TRACES, rows[i].settings, traces, NULL, "", &got);
        check_texts(rows[i].settings, text_string(&got), rows[i].wanted);
    }
    text_deinit(&got);
}

/* The function `vault.getPassword` has a file and an attribute key with the same text as others;
 * the key `password` is also the name of a function. */
static const char profiles[] = "{\"resourceProfiles\":[{\"resource\":{\"attributes\":[" TEXT(
    "api_token",
    "r1") "]},\"scopeProfiles\":[{\"profiles\":[{\"sampleType\":{\"typeStrindex\":8},"
          "\"originalPayloadFormat\":\"pprof\",\"originalPayload\":\"Z2V0UGFzc3dvcmQ=\","
          "\"attributeIndices\":[1],\"samples\":[{\"stackIndex\":1,\"values\":[\"1\"],"
          "\"attributeIndices\":[1,2,3]},{\"stackIndex\":1,\"values\":[\"2\"],"
          "\"attributeIndices\":[1]}]}]}]}],\"dictionary\":{\"stringTable\":[\"\",\"user\","
          "\"password\",\"vault.getPassword\",\"tokenize\",\"/src/token.go\",\"main.go\","
          "\"libsecret.so\",\"cpu\",\"libc.so\"],\"mappingTable\":[{},{\"filenameStrindex\":7,"
          "\"attributeIndices\":[1]},{\"filenameStrindex\":9}],\"locationTable\":[{},"
          "{\"mappingIndex\":1,\"attributeIndices\":[1,3],\"lines\":[{\"functionIndex\":1},"
          "{\"functionIndex\":2},{\"functionIndex\":3}]},{\"mappingIndex\":2}],"
          "\"functionTable\":[{},{\"nameStrindex\":3,\"systemNameStrindex\":3,"
          "\"filenameStrindex\":5},{\"nameStrindex\":4,\"filenameStrindex\":6},"
          "{\"nameStrindex\":2,\"filenameStrindex\":6,\"startLine\":\"7\"}],\"linkTable\":[{}],"
          "\"stackTable\":[{},{\"locationIndices\":[1,2]}],\"attributeTable\":[{},"
          "{\"keyStrindex\":1,\"value\":{\"stringValue\":\"alice\"}},{\"keyStrindex\":2,"
          "\"value\":{\"stringValue\":\"hunter2\"}},{\"keyStrindex\":4,\"value\":{"
          "\"intValue\":\"5\"},\"unitStrindex\":8}]}}";

static const struct row profile_rows[] = {
    {"{" ALL "}", {"vault.getPassword", "alice", "hunter2", "!Z2V0UGFzc3dvcmQ="}},
    {"{" ALL ", secret_words: {}}",
     {"!getPassword", "!Z2V0UGFzc3dvcmQ=", "!hunter2", "!/src/token.go", "!\"r1\""}},
    {"{" ALL ", secret_words: {}}",
     {"tokenize", "main.go", "libsecret.so", "alice", "\"password\""}}, /* the key stays */
    {"{" ALL ", secret_words: {words: [libsecret]}}", {"!libsecret", "[REDACTED]", "libc.so"}},
    {"{" ALL ", secret_words: {hmac_key: " KEY "}}",
     {"[REDACTED:", "!getPassword", "!\"[REDACTED]\""}},
    {"{" ALL ", blocked_values: ['[Pp]assword']}", {"vault.get****", "\"****\"", "!getPassword"}},
    {"{" ALL ", secret_words: {}, allowed_values: ['^vault']}",
     {"vault.getPassword", "!/src/token.go"}},
    {"{allowed_keys: [password]}", {"!alice", "hunter2", "!\"user\"", "!\"intValue\"", "!r1"}},
    {"{}", {"!alice", "!hunter2", "!attributeIndices", "vault.getPassword", "!r1"}},
    {"{" ALL ", blocked_key_patterns: [user]}",
     {"!alice", "****", "\"unitStrindex\"", "hunter2", "!Z2V0UGFzc3dvcmQ="}},
};

static void profiles_are_redacted(void **state)
{
    struct text got = {0};
    (void)state;
    for (size_t i = 0; i < sizeof profile_rows / sizeof *profile_rows; i++) {
        redact(SIGNAL_PROFILES, profile_rows[i].settings, profiles, NULL, "", &got);
        check_texts(profile_rows[i].settings, text_string(&got), profile_rows[i].wanted);
    }
    text_deinit(&got);
}

#define NAMES(strings, more)                                                                       \
    "{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{\"sampleType\":{\"typeStrindex\":" \
    "1},"                                                                                          \
    "\"samples\":[{\"stackIndex\":1,\"values\":[\"1\"]}]" more "}]}]}],\"dictionary\":{"           \
    "\"mappingTable\":[{}],\"locationTable\":[{},{\"lines\":[{\"functionIndex\":1},"               \
    "{\"functionIndex\":2}]}],\"functionTable\":[{},{\"nameStrindex\":2,\"filenameStrindex\":3},"  \
    "{\"nameStrindex\":4,\"systemNameStrindex\":2}],\"linkTable\":[{}],\"stringTable\":["          \
    "\"\",\"cpu\"," strings "],\"attributeTable\":[{}],\"stackTable\":[{},{\"locationIndices\":["  \
    "1]}]}}"

/* A name that is nothing else changes in place; if it has to stay elsewhere, or is there twice,
 * functions refer to a new entry. */
static void names_change_in_place(void **state)
{
    static const struct {
        const char *request;
        const char *wanted; /* of the string table */
    } cases[] = {
        {NAMES("\"getToken\",\"a.c\",\"main\"", ""),
         "\"\",\"cpu\",\"[REDACTED]\",\"a.c\",\"main\"]"},
        {NAMES("\"getToken\",\"token.c\",\"\xc3\xa9\"", ""),
         "\"\",\"cpu\",\"[REDACTED]\",\"[REDACTED]\",\"\xc3\xa9\"]"},
        {NAMES("\"book\",\"a.c\",\"main\"", ""), "\"\",\"cpu\",\"book\",\"a.c\",\"main\"]"},
        {NAMES("\"getToken\",\"a.c\",\"main\",\"getToken\"", ""),
         "\"\",\"cpu\",\"\",\"a.c\",\"main\",\"\",\"[REDACTED]\"]"},
        {NAMES("\"getToken\",\"a.c\",\"main\"", ",\"periodType\":{\"unitStrindex\":2}"),
         "\"\",\"cpu\",\"getToken\",\"a.c\",\"main\",\"[REDACTED]\"]"},
        {NAMES("\"getToken\",\"a.c\",\"main\"", ",\"originalPayload\":\"Z2V0\""),
         "\"\",\"cpu\",\"[REDACTED]\",\"a.c\",\"main\"]"},
    };
    struct text got = {0};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        redact(SIGNAL_PROFILES, "{" ALL ", secret_words: {}}", cases[i].request, NULL, "", &got);
        if (!strstr(text_string(&got), cases[i].wanted))
            fail_msg("case %zu: %s", i, text_string(&got));
        assert_null(strstr(text_string(&got), "Z2V0"));
    }
    text_deinit(&got);
}

/* The same key and name give the same hash in each process; another key gives another one. */
static void hashes_are_stable(void **state)
{
    struct text first = {0}, second = {0};
    (void)state;
    redact(SIGNAL_PROFILES, "{" ALL ", secret_words: {hmac_key: " KEY "}}", profiles, NULL, "",
           &first);
    redact(SIGNAL_PROFILES, "{" ALL ", secret_words: {hmac_key: " KEY "}}", profiles, NULL, "",
           &second);
    assert_string_equal(text_string(&first), text_string(&second));
    /* printf vault.getPassword | openssl dgst -sha256 -hmac KEY */
    assert_non_null(strstr(text_string(&first), "[REDACTED:" EXPECTED_HASH "]"));
    redact(SIGNAL_PROFILES, "{" ALL ", secret_words: {hmac_key: " KEY "x}}", profiles, NULL, "",
           &second);
    assert_null(strstr(text_string(&second), EXPECTED_HASH));
    text_deinit(&first);
    text_deinit(&second);
}

static void metrics_count(void **state)
{
    static const char with_words[] = "{" ALL ", secret_words: {}}";
    struct text got = {0};
    (void)state;
#define COUNT(settings, metric, labels)                                                            \
    ((int)redact(SIGNAL_PROFILES, settings, profiles, metric, "processor=\"redaction\"" labels,    \
                 &got))
    assert_int_equal(COUNT(with_words, "masked", ",kind=\"function\""), 2);
    assert_int_equal(COUNT(with_words, "masked", ",kind=\"file\""), 1);
    assert_int_equal(COUNT(with_words, "masked", ",kind=\"attribute\""), 2);
    assert_int_equal(COUNT("{" ALL ", blocked_values: [so]}", "masked", ",kind=\"mapping\""), 2);
    assert_int_equal(COUNT("{}", "removed", ""), 4);
    assert_int_equal(COUNT("{}", "gave_up", ""), 0);
    text_deinit(&got);
}

/* A pattern that takes too many steps masks the whole value. */
static void no_answer_masks_the_value(void **state)
{
    struct text json = {0}, got = {0};
    char value[4001];
    (void)state;
    memset(value, 'a', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    text_printf(&json, TRACES("", "", SPAN("s", TEXT("key", "open %s!"), "")), value);
    double count = redact(SIGNAL_TRACES, "{" ALL ", blocked_values: ['(a|a?)+$']}",
                          text_string(&json), "gave_up", "processor=\"redaction\"", &got);
    assert_int_equal((int)count, 1);
    assert_null(strstr(text_string(&got), "open"));
    assert_non_null(strstr(text_string(&got), "\"****\""));
    text_deinit(&json);
    text_deinit(&got);
}

/* Values may not grow without bound: a hash for each character of a long value. */
static void growth_is_bounded(void **state)
{
    struct text json = {0}, got = {0};
    char value[60001];
    (void)state;
    memset(value, 'a', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    text_printf(&json, TRACES("", "", SPAN("s", TEXT("key", "%s"), "")), value);
    double count = redact(SIGNAL_TRACES, "{" ALL ", blocked_values: ['.'], hash_function: sha3}",
                          text_string(&json), "gave_up", "processor=\"redaction\"", &got);
    assert_int_equal((int)count, 1);
    assert_non_null(strstr(text_string(&got), "\"****\""));
    text_deinit(&json);
    text_deinit(&got);
}

static void relayed_signals_have_resources(void **state)
{
    static const char *const wanted[] = {"[REDACTED]", "!\"x\"", NULL, NULL, NULL};
    struct text got = {0};
    (void)state;
    redact(SIGNAL_METRICS, "{" ALL ", secret_words: {}}",
           "{\"resourceMetrics\":[{\"resource\":{\"attributes\":[" TEXT(
               "api_token", "x") "]},\"scopeMetrics\":[{\"metrics\":[{\"name\":\"m\",\"gauge\":{"
                                 "\"dataPoints\":[{}]}}]}]}]}",
           NULL, "", &got);
    check_texts("metrics", text_string(&got), wanted);
    text_deinit(&got);
}

/* ---- sanitizers ---- */

#define SPAN_OF(kind, name, attributes)                                                            \
    "{\"traceId\":\"0102030405060708090a0b0c0d0e0f10\",\"spanId\":\"a1a2a3a4a5a6a7a8\",\"kind\":"  \
    "" kind ",\"name\":\"" name "\",\"attributes\":[" attributes "],\"events\":[{\"name\":\"e\","  \
    "\"attributes\":[" TEXT("q", "SELECT 7") "]}]}"

static const char sanitized[] =
    TRACES("", "",
           SPAN_OF("2", "GET /users/7", TEXT("url", "/users/7?x=1")) "," SPAN_OF(
               "3", "SELECT 'a'",
               TEXT("db.system", "mysql") "," TEXT("q", "SELECT 'b'") "," TEXT("url", "/a")));

static void sanitizers_change_values_and_names(void **state)
{
    static const struct {
        const char *settings;
        const char *wanted[6]; /* "!text": absent */
    } cases[] = {
        {"{" ALL ", url_sanitizer: {enabled: true, attributes: [url]}, summary: debug}",
         {"\"GET /users/*\"", "\"/users/*\"", "\"/a\"", "\"redaction.masked.keys\"", "SELECT 'a'"}},
        {"{" ALL ", url_sanitizer: {attributes: [url], sanitize_span_name: false}}",
         {"\"GET /users/7\"", "\"/users/*\""}},
        {"{" ALL ", url_sanitizer: {enabled: false, attributes: [url]}}",
         {"\"GET /users/7\"", "\"/users/7?x=1\""}},
        {"{" ALL ", db_sanitizer: {sql: {enabled: true, attributes: [q]}}}",
         {"\"SELECT ?\"", "!'a'", "!'b'", "!SELECT 7", "\"GET /users/7\""}},
        {"{" ALL ", db_sanitizer: {sanitize_span_name: false, sql: {attributes: [q]}}}",
         {"SELECT 'a'", "!'b'", "!SELECT 7"}},
        {"{" ALL ", db_sanitizer: {redis: {attributes: [q]}}}",
         {"SELECT 'a'", "!'b'", "\"?\""}}, /* in MySQL, nobody knows what it is */
        {"{" ALL ", db_sanitizer: {sql: {attributes: [q]}}, allowed_values: ['^SELECT .[ab]']}",
         {"SELECT 'a'", "SELECT 'b'", "!SELECT 7"}},
        {"{" ALL ", db_sanitizer: {sql: {attributes: [q]}}, ignored_keys: [q]}",
         {"\"SELECT ?\"", "SELECT 'b'", "SELECT 7"}},
    };
    struct text got = {0};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        redact(SIGNAL_TRACES, cases[i].settings, sanitized, NULL, "", &got);
        check_texts(cases[i].settings, text_string(&got), cases[i].wanted);
    }
    assert_float_equal(redact(SIGNAL_TRACES, cases[0].settings, sanitized, "masked",
                              "processor=\"redaction\",kind=\"span_name\"", &got),
                       1, 0);
    text_deinit(&got);
}

/* Only the last of several names counts, but the others are sent, too. */
static struct slice span_with_two_names(struct wire_writer *writer)
{
    size_t group = wire_writer_begin(writer, REQUEST_GROUPS);
    size_t scope = wire_writer_begin(writer, GROUP_SCOPES);
    size_t span = wire_writer_begin(writer, SCOPE_ITEMS);
    wire_writer_bytes(writer, SPAN_NAME, SLICE("SELECT 'first'"));
    wire_writer_bytes(writer, SPAN_NAME, SLICE("SELECT 'last'"));
    wire_writer_varint_set(writer, SPAN_KIND, 3);
    key_value_append(writer, SPAN_ATTRIBUTES, SLICE("db.system"), any_value_string(SLICE("mysql")));
    wire_writer_end(writer, span);
    wire_writer_end(writer, scope);
    wire_writer_end(writer, group);
    return wire_writer_slice(writer);
}

static void no_name_is_left(void **state)
{
    struct fixture f;
    struct probe probe;
    struct wire_writer writer = {0};
    (void)state;
    fixture_init(&f, 1);
    struct fixture_place *place = fixture_place(
        &f, &redaction_processor_type, "redaction",
        "processors: {redaction: {" ALL ", db_sanitizer: {sql: {}}}}", "traces", SIGNAL_TRACES);
    fixture_consume(&f, place->nodes[0], span_with_two_names(&writer), 1, &probe);
    fixture_advance(&f, 0);
    assert_int_equal(f.recorder.count, 1);
    const struct recorded *recorded = &f.recorder.items[0];
    assert_non_null(memmem(recorded->bytes, recorded->size, "SELECT ?", 8));
    assert_null(memmem(recorded->bytes, recorded->size, "first", 5));
    assert_null(memmem(recorded->bytes, recorded->size, "last", 4));
    fixture_deinit(&f);
    wire_writer_deinit(&writer);
}

static void mistakes_are_refused(void **state)
{
    static const struct {
        const char *settings;
        const char *wanted;
    } wrong[] = {
        {"{" ALL ", blocked_values: ['(']}", "failed to process block list"},
        {"{" ALL ", blocked_values: ['(?=x)']}", "failed to process block list"},
        {"{" ALL ", ignored_key_patterns: ['[']}", "failed to process ignore keys list"},
        {"{" ALL ", hash_function: sha256}", "hash_function"},
        {"{" ALL ", hash_function: hmac-sha256}", "must not be empty"},
        {"{" ALL ", hash_function: hmac-sha512, hmac_key: " KEY "}", "at least 64 bytes"},
        {"{" ALL ", secret_words: {hmac_key: short}}", "at least 32 bytes"},
        {"{" ALL ", secret_words: {words: ['_']}}", "must have letters or digits"},
        {"{" ALL ", db_sanitizer: {sqll: {enabled: true}}}", "sql"},
        {"{" ALL ", blocked_value: ['x']}", "blocked_values"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        fixture_refuses(&redaction_processor_type, wrong[i].settings, wrong[i].wanted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attributes_of_traces_are_redacted),
        cmocka_unit_test(profiles_are_redacted),
        cmocka_unit_test(names_change_in_place),
        cmocka_unit_test(hashes_are_stable),
        cmocka_unit_test(metrics_count),
        cmocka_unit_test(no_answer_masks_the_value),
        cmocka_unit_test(growth_is_bounded),
        cmocka_unit_test(relayed_signals_have_resources),
        cmocka_unit_test(sanitizers_change_values_and_names),
        cmocka_unit_test(no_name_is_left),
        cmocka_unit_test(mistakes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
