/* What the processor redaction reaches: the bytes that leave it are searched for what must be gone
 * (docs/redaction.md, What is reached). */
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

static void check_row(const struct row *row, enum signal signal)
{
    struct fixture f;
    struct probe probe;
    struct text yaml = {0};
    fixture_init(&f, 1);
    text_printf(&yaml, "processors: {redaction: {%s}}", row->settings);
    struct fixture_place *place = fixture_place(&f, &redaction_processor_type, "redaction",
                                                text_string(&yaml), signal_name(signal), signal);
    fixture_consume_json(&f, place->nodes[0], row->request, 1, &probe);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_inside_others_are_reached),
        cmocka_unit_test(attributes_of_samples_are_reached),
        cmocka_unit_test(attributes_of_links_are_reached),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
