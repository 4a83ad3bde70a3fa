/*
 * Converters that are called with constants: what they return, and how they fail.
 */
#include "core/base/hash.h"
#include "core/ottl/ottl.h"
#include "tests/unit/expect_text.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* wanted: "true", "false", "? MESSAGE" if it fails, "!" if it is not valid. */
struct row {
    const char *condition;
    const char *wanted;
};

static void evaluate(const struct ottl_program *program, char *got, size_t size)
{
    struct ottl_item item;
    struct ottl_evaluator *evaluator = ottl_evaluator_new(program);
    ottl_item_begin(&item);
    ottl_item_set_group(&item, message_iter_bytes((struct slice){0}));
    ottl_item_set_scope_group(&item, message_iter_bytes((struct slice){0}));
    ottl_item_set_span(&item, message_iter_bytes((struct slice){0}));
    enum ottl_result result = ottl_evaluate(evaluator, &item);
    if (result == OTTL_FAILED)
        snprintf(got, size, "? %s", ottl_evaluator_error(evaluator));
    else
        snprintf(got, size, "%s", result == OTTL_MATCH ? "true" : "false");
    ottl_evaluator_free(evaluator);
}

static void check(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char got[1000] = "!";
        struct error err;
        struct ottl_program *program = ottl_compile_condition(
            OTTL_SPAN, slice_of_string(rows[i].condition), OTTL_PREFIX_OPTIONAL, &err);
        if (program)
            evaluate(program, got, sizeof got);
        expect_text_of(rows[i].condition, got, rows[i].wanted);
        ottl_program_free(program);
    }
}

static const struct row functions[] = {
    {"XXH3(\"hello world\") == \"d447b1ea40e6988b\" and XXH3(\"\") == \"2d06800538d394c2\"",
     "true"},
    {"XXH128(\"hello world\") == \"df8d09e93f874900a99b8775cc15b6c7\"", "true"},
    {"XXH128(\"\") == \"99aa06d3014798d86001c324468d497f\"", "true"},
    {"Murmur3Hash(\"Hello World\") == \"ce837619\" and Murmur3Hash(\"\") == \"00000000\"", "true"},
    {"Murmur3Hash128(\"Hello World\") == \"dbc2a0c1ab26631a27b4c09fcf1fe683\"", "true"},
    {"Murmur3Hash128(\"\") == \"00000000000000000000000000000000\"", "true"},
    {"Len(UUIDv7()) == 36 and IsMatch(UUIDv7(), \"^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab]\")",
     "true"},
    {"CommunityID(\"128.232.110.120\", 34855, \"66.35.250.204\", 80) == "
     "\"1:LQU9qZlK+B5F3KDmev6m5PMibrg=\"",
     "true"},
    {"CommunityID(\"66.35.250.204\", 80, \"128.232.110.120\", 34855, \"TCP\", 0) == "
     "\"1:LQU9qZlK+B5F3KDmev6m5PMibrg=\"",
     "true"},
    {"CommunityID(\"1.2.3.4\", 65536, \"1.2.3.4\", 1) == \"\"",
     "? a port must be between 0 and 65535"},
    {"CommunityID(\"1.2.3\", 1, \"1.2.3.4\", 1) == \"\"", "? invalid IP: 1.2.3"},
    {"CommunityID(\"1.2.3.4\", 1, \"::1\", 1, \"HTTP\") == \"\"", "? unsupported protocol: HTTP"},
    {"Base64Encode(\"a?>b\") == \"YT8+Yg==\" and Base64Encode(\"a?>b\", \"base64-raw-url\") == "
     "\"YT8-Yg\"",
     "true"},
    {"Base64Encode(\"\", \"base64-url\") == \"\" and Base64Encode(\"???\", \"base64-url\") == "
     "\"Pz8_\"",
     "true"},
    {"Base64Encode(\"a\", \"hex\") == \"\"", "? unsupported base64 variant: hex"},
    {"Base64Decode(\"YT8+\\nYg==\") == \"a?>b\" and Base64Decode(\"\") == \"\"", "true"},
    {"Base64Decode(\"YT8+Yg\") == \"\"", "? could not decode: illegal base64"},
    {"Base64Decode(\"YT8-Yg==\") == \"\"", "? could not decode: illegal base64"},
    {"Base64Decode(\"YQ==YQ==\") == \"\"", "? could not decode: illegal base64"},
    {"Base64Decode(\"====\") == \"\"", "? could not decode: illegal base64"},
    {"Decode(\"YT8-Yg\", \"base64-raw-url\") == \"a?>b\" and Decode(0x61, \"us-ascii\") == \"a\"",
     "true"},
    {"Decode(0xe4, \"latin1\") == \"ä\" and Decode(0x80e4, \"Windows-1252\") == \"€ä\"", "true"},
    {"Decode(0x61003dd800de, \"utf-16\") == \"a😀\" and Decode(0xd83dde00, \"UTF-16BE\") == \"😀\"",
     "true"},
    {"Decode(0x3dd86100, \"utf-16le\") == \"�a\" and Decode(0x61ff62, \"utf-8\") == \"a�b\"",
     "true"},
    {"Decode(0x61ff, \"utf-16be\") == \"懿\" and Decode(0x610062, \"utf-16\") == \"a�\"", "true"},
    {"Decode(1, \"utf-8\") == \"\"", "? unsupported type provided to Decode function: int64"},
    {"Log(1) == 0.0 and Log(2.718281828459045) == 1.0", "true"},
    {"Format(\"%x|%.2X|%x|%010x\", [1.5, -0.1, 0.0, 1.0e21]) == "
     "\"0x1.8p+00|-0X1.9AP-04|0x0p+00|0x1.b1ae4d6e2ef5p+69\"",
     "true"},
    {"Log(0) == 0.0", "? invalid input: expected number greater than zero"},
    {"Log(\"x\") == 0.0", "!"},
    {"IsValidLuhn(\"4539 1488 0343 6467\") and IsValidLuhn(17893729974) and not "
     "IsValidLuhn(\"17893729975\")",
     "true"},
    {"IsValidLuhn(\" \")", "false"},
    {"IsValidLuhn(\"12a\")", "? invalid input: expected digits and blanks"},
    {"ParseCSV(\"a,b,c\", \"x,y,z\") == {\"x\": \"a\", \"y\": \"b\", \"z\": \"c\"}", "true"},
    {"ParseCSV(\"\\\"a,1\\\";\\\"b \\\"\\\" c\\\"\", \"x|y\", delimiter=\";\", "
     "header_delimiter=\"|\") == {\"x\": \"a,1\", \"y\": \"b \\\" c\"}",
     "true"},
    {"ParseCSV(\"a,\\\"b\\nc\\\",d\", \"x,y,z\")[\"y\"] == \"b\\nc\"", "true"},
    {"ParseCSV(\"aa,b\\nb,cc,d\\nd,ee\\n\", \"A,B,C,D,E\") == {\"A\": \"aa\", \"B\": \"b\\nb\", "
     "\"C\": \"cc\", \"D\": \"d\\nd\", \"E\": \"ee\"}",
     "true"},
    {"ParseCSV(\"a\\\"b,c\", \"x,y\", mode=\"lazyQuotes\") == {\"x\": \"a\\\"b\", \"y\": \"c\"}",
     "true"},
    {"ParseCSV(\"\\\"a\\\"b\\\",c\", \"x,y\", mode=\"lazyQuotes\") == {\"x\": \"a\\\"b\", \"y\": "
     "\"c\"}",
     "true"},
    {"ParseCSV(\"\\\"a,b\\\",c\", \"x,y,z\", mode=\"ignoreQuotes\") == {\"x\": \"\\\"a\", \"y\": "
     "\"b\\\"\", \"z\": \"c\"}",
     "true"},
    {"ParseCSV(\"a,,\", \"x,y,x\") == {\"y\": \"\", \"x\": \"\"}", "true"},
    {"ParseCSV(\"a,b\", \"x\") == {}", "? wrong number of fields: expected 1, found 2"},
    {"ParseCSV(\"a\\\"b\", \"x\") == {}",
     "? read csv line: a quote is missing, or in a field without quotes"},
    {"ParseCSV(\"\\\"ab\", \"x\") == {}",
     "? read csv line: a quote is missing, or in a field without quotes"},
    {"ParseCSV(\"a,b\\\"c\", \"x\") == {\"x\": \"a\"}", "true"},
    {"ParseCSV(\"\", \"x\") == {}", "? no csv lines found"},
    {"ParseCSV(\"a\", \"\") == {}", "? headers must not be an empty string"},
    {"ParseSeverity(404, {\"warn\": [{\"range\": \"4xx\"}], \"error\": [{\"range\": {\"min\": 500, "
     "\"max\": 599}}]}) == \"warn\"",
     "true"},
    {"ParseSeverity(\"crit\", {\"warn\": [{\"equals\": [\"w\"]}], \"error\": [{\"equals\": "
     "[\"err\", \"crit\"]}]}) == \"error\"",
     "true"},
    {"ParseSeverity(1, {\"warn\": [{\"range\": \"2xx\"}]}) == \"\"",
     "? could not map log level: no matching log level found"},
    {"ParseSeverity(true, {\"warn\": [{\"range\": \"2xx\"}]}) == \"\"",
     "? could not map log level: unsupported value type: bool"},
    {"URL(\"https://user:p%40ss@example.com:8080/a/b%20c.tar.gz?x=1&y=2#top\") == "
     "{\"url.original\": \"https://user:p%40ss@example.com:8080/a/b%20c.tar.gz?x=1&y=2#top\", "
     "\"url.scheme\": \"https\", \"url.domain\": \"example.com\", \"url.port\": 8080, "
     "\"url.path\": \"/a/b c.tar.gz\", \"url.extension\": \"gz\", \"url.query\": \"x=1&y=2\", "
     "\"url.fragment\": \"top\", \"url.user_info\": \"user:p%40ss\", \"url.username\": \"user\", "
     "\"url.password\": \"p@ss\"}",
     "true"},
    {"URL(\"http://[fe80::1%25en0]:80/\") == {\"url.original\": \"http://[fe80::1%25en0]:80/\", "
     "\"url.scheme\": \"http\", \"url.domain\": \"fe80::1%en0\", \"url.port\": 80, \"url.path\": "
     "\"/\"}",
     "true"},
    {"URL(\"mailto:a@b.c\")[\"url.original\"] == \"mailto:a@b.c\" and "
     "URL(\"//h/p\")[\"url.domain\"] == \"h\"",
     "true"},
    {"URL(\"/a b?\")[\"url.original\"] == \"/a%20b?\" and URL(\"FILE:/x\")[\"url.original\"] == "
     "\"file:/x\"",
     "true"},
    {"URL(\"mongodb://a:1,b:2/db\")[\"url.port\"] == 2", "true"},
    {"Decode(0xe28261, \"utf-8\") == \"�a\" and Decode(0xe2ff, \"utf-8\") == \"��\"", "true"},
    {"URL(\"*\") == {\"url.original\": \"*\", \"url.scheme\": \"\", \"url.domain\": \"\", "
     "\"url.path\": \"*\"}",
     "true"},
    {"URL(\"?a=1&b=x%20y+z&a=2&&c\") == {\"query\": {\"a\": [\"1\", \"2\"], \"b\": [\"x y z\"], "
     "\"c\": [\"\"]}}",
     "true"},
    {"URL(\"?\") == {}", "true"},
    {"URL(\"\") == {}", "? url cannot be empty"},
    {"URL(\"http://h:8x/\") == {}", "? parse URL: invalid port after host"},
    {"URL(\"http://[1.2.3.4]/\") == {}", "? parse URL: invalid IPv6 address"},
    {"URL(\"http://h%41/\") == {}", "? parse URL: invalid URL escape"},
    {"URL(\"/%zz\") == {}", "? parse URL: invalid URL escape"},
    {"URL(\":x\") == {}", "? parse URL: missing protocol scheme"},
    {"URL(\"a:b:c\")[\"url.original\"] == \"a:b:c\" and URL(\"a/b:c\")[\"url.path\"] == \"a/b:c\"",
     "true"},
    {"URL(\"1:b\") == {}", "? parse URL: first path segment in URL cannot contain colon"},
    {"URL(\"http://h:99999999999999999999/\") == {}", "? the port is too large"},
    {"URL(\"?a;b\") == {}", "? invalid semicolon separator in query"},
};

static void functions_are_called(void **state)
{
    (void)state;
    check(functions, sizeof functions / sizeof *functions);
}

static const struct row lambdas[] = {
    {"Any([1, 2, 3], (i, v) => v == 2) and not Any([], (i, v) => true)", "true"},
    {"All([1, 2], (_, v) => v > 0) and All([], (_, v) => false) and not All([1, 2], (i, _) => i == "
     "0)",
     "true"},
    {"Any({\"a\": 1, \"b\": 2}, (k, v) => k == \"b\" and v == 2)", "true"},
    {"Find([5, 6, 7], (i, v) => v > 5) == 6 and Find([5], (i, v) => v > 5) == nil", "true"},
    {"Find({\"a\": 1, \"b\": 2}, (k, v) => v == 2, (k, v) => Concat([k, v], \"-\")) == \"b-2\"",
     "true"},
    {"Filter([1, \"x\", 2.5, nil], (i, v) => IsInt(v) or v == nil) == [1, nil]", "true"},
    {"Filter({\"a\": 1, \"b\": 2}, (k, v) => not (k == \"a\")) == {\"b\": 2}", "true"},
    {"MapEach([1, 2], (i, v) => v * 10 + i) == [10, 21]", "true"},
    {"MapEach({\"a\": \"x\"}, (k, v) => {\"key\": k, \"value\": [v]}) == {\"a\": {\"key\": \"a\", "
     "\"value\": [\"x\"]}}",
     "true"},
    {"MapKeys({\"a\": 1, \"b\": 2}, (k, v) => Concat([\"p\", k], \".\")) == {\"p.a\": 1, \"p.b\": "
     "2}",
     "true"},
    {"MapKeys({\"a\": 1, \"b\": 2}, (k, v) => \"x\") == {\"x\": 2}", "true"},
    {"MapKeys({\"a\": 1}, (k, v) => v) == {}",
     "? lambda expression must return a value of type string, got int64"},
    {"MapKeys(Split(\"a\", \"\"), (k, v) => \"x\") == {}",
     "? expected pcommon.Map but got []string"},
    {"MapKeys([1], (k, v) => \"x\") == {}", "!"},
    {"Reduce([1, 2, 3], 0, (acc, i, v) => acc + v) == 6 and Reduce({}, \"s\", (a, k, v) => k) == "
     "\"s\"",
     "true"},
    {"Reduce({\"a\": 1, \"b\": 2}, \"\", (acc, k, v) => Concat([acc, k, v], \"\")) == \"a1b2\"",
     "true"},
    {"When(() => 1 == 1, \"yes\", \"no\") == \"yes\" and When(() => false, 1 / 0, 2) == 2", "true"},
    {"When(() => 1, \"yes\", \"no\") == \"yes\"",
     "? lambda expression must return a value of type bool, got int64"},
    {"Any([1], (i, v) => v)", "? lambda expression must return a value of type bool, got int64"},
    {"Any([1, 2], (i, v) => Any([2, 3], (j, w) => v == w and i == 1))", "true"},
    {"Any([{\"a\": {\"b\": 5}}], (i, v) => v[\"a\"][\"b\"] == 5) and Any([[7]], (i, v) => v[0] == "
     "7)",
     "true"},
    {"Any([1], (i, v) => v[\"a\"] == 1)", "? type int64 does not support string indexing"},
    {"MapEach([1, 2], (i, name) => name) == [1, 2] and MapEach([1], (i, v) => name) == [\"\"]",
     "true"},
    {"MapEach([3, 1], (i, v) => Len(MapEach([1, 2], (i, w) => i)) + i) == [2, 3]", "true"},
    {"Any(\"x\", (i, v) => true)", "? unsupported type provided: string"},
    {"Any(nil, (i, v) => true)", "? unsupported type provided: nil"},
    {"Any([1], (i) => true)", "!"},
    {"Any([1], (v, v) => true)", "!"},
    {"Any([1], true)", "!"},
    {"Any([1], (i, v) => v.x == 1)", "!"},
    {"Len((i, v) => true) == 1", "!"},
    {"Any([1], (i, v) => x == 1)", "!"},
    {"Any([1], (i, v) => true) and v == 1", "!"},
    {"Filter([1, 2], predicate=(i, v) => (v + 1) * 2 == 4) == [1]", "true"},
    {"Filter([1, 2], (i, v) => (v == 1) or (v == 2 and (i == 0))) == [1]", "true"},
};

static void lambdas_are_called(void **state)
{
    (void)state;
    check(lambdas, sizeof lambdas / sizeof *lambdas);
}

/* A literal that a function does not take is refused. What is computed, if only from literals,
 * fails when it is evaluated, as in the Collector. */
static void computed_arguments_fail_later(void **state)
{
    static const struct row rows[] = {
        {"Len(MapKeys(ParseJSON(String([1, 2])), (k, v) => k)) == 0",
         "? expected pcommon.Map but got []interface {}"},
        {"Decode(\"YQ\", \"bogus\") == \"\"", "!"},
        {"Decode(\"YQ\", Concat([\"bog\", \"us\"], \"\")) == \"\"",
         "? unsupported encoding 'bogus'"},
        {"Decode(\"YQ\", Len(\"abc\")) == \"\"", "? expected string but got int64"},
        {"ParseKeyValue(\"a=1\", \"=\", \"=\") == {}", "!"},
        {"ParseKeyValue(\"a=1\", Trim(\" = \"), \"-\") == {}", "!"},
        {"ParseKeyValue(\"a=1\", Len(\"abc\"), 1 + 1) == {}", "!"},
        {"IsInCIDR(\"1.2.3.4\", [\"x\"])", "!"},
        {"IsInCIDR(\"1.2.3.4\", [Trim(\" x \")])", "? invalid CIDR address: x"},
        {"Int(\"x\") == 1", "!"},
        {"Int(Trim(\" x \")) == 1", "? could not convert to an integer"},
        {"Log(\"x\") == 1", "!"},
        {"Log(Trim(\" x \")) == 1", "? could not convert to a float"},
        {"TraceID(\"x\") == nil", "!"},
        {"TraceID(Trim(\" x \")) == nil", "? an id must be 16 bytes or 32 hex characters"},
    };
    (void)state;
    check(rows, sizeof rows / sizeof *rows);
}

/* Appends list after list: [1,1,...]. */
static void append_list(struct text *out, unsigned count)
{
    text_append(out, "[1");
    for (unsigned i = 1; i < count; i++)
        text_append(out, ",1");
    text_append_char(out, ']');
}

/* What a client makes long may not make a lambda take time or memory beyond a limit. */
static void lambdas_have_an_end(void **state)
{
    static const struct {
        const char *before, *between, *after;
        unsigned size;
        const char *wanted;
    } rows[] = {
        {"Len(Reduce(", ", \"a\", (acc, i, v) => Concat([acc, acc], \"\"))) > 0", "", 100,
         "? the functions in line read too much of too many entries"},
        {"Len(Reduce(", ", \"a\", (acc, i, v) => Concat([acc, acc], \"\"))) == 1024", "", 10,
         "true"},
        {"Any(", ", (i, v) => Any(", ", (j, w) => v != w))", 2000,
         "? the functions in line read too much of too many entries"},
        {"Any(", ", (i, v) => Any(", ", (j, w) => v != w))", 200, "false"},
        {"Len(MapEach(", ", (i, v) => Concat([v, i], \"-\"))) == 20000", "", 20000, "true"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct text condition = {0};
        text_append(&condition, rows[i].before);
        append_list(&condition, rows[i].size);
        text_append(&condition, rows[i].between);
        if (rows[i].after[0]) {
            append_list(&condition, rows[i].size);
            text_append(&condition, rows[i].after);
        }
        struct row row = {text_string(&condition), rows[i].wanted};
        check(&row, 1);
        text_deinit(&condition);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_are_called),
        cmocka_unit_test(lambdas_are_called),
        cmocka_unit_test(computed_arguments_fail_later),
        cmocka_unit_test(lambdas_have_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
