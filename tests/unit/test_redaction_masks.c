/*
 * What hides ids in URLs, and values in queries.
 */
#include "processors/redaction/command_mask.h"
#include "processors/redaction/database_mask.h"
#include "processors/redaction/json_mask.h"
#include "processors/redaction/sql_mask.h"
#include "processors/redaction/url_mask.h"
#include "tests/unit/expect_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct row {
    const char *text, *wanted;
};

typedef void mask_function(struct slice text, struct text *out);

static void check(const struct row *rows, size_t count, mask_function *mask)
{
    struct text out = {0};
    for (size_t i = 0; i < count; i++) {
        text_clear(&out);
        mask(slice_of_string(rows[i].text), &out);
        expect_text_of(rows[i].text, text_string(&out), rows[i].wanted);
    }
    text_deinit(&out);
}
#define CHECK(rows, mask) check(rows, sizeof(rows) / sizeof *(rows), mask)

/* ---- URLs ---- */

static void ids_in_urls_are_replaced(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"", ""},
        {"/users/fdklsd/j4elk/23993/job/2", "/users/*/j4elk/*/job/*"},
        {"123", "*"},
        {"123/", "*/"},
        {"123/ljgdflgjf", "*/*"},
        {"/**", "/*"},
        {"/v1/products/22j", "/v1/products/*"},
        {"/products//org/3", "/products//org/*"},
        {"/v1/k6-test-runs/1", "/v1/k6-test-runs/*"},
        {"/user_space/", "/user_space/"},
        {"/api.backup/hello.world", "/api.backup/hello.world"},
        {"DELETE /users/7", "DELETE /users/*"},
        {"/attach?session_id=ddfsdsf", "/attach"},
        {"/attach#section-1", "/attach"},
        {"GET /api/cart?sessionId=55f4e5ea", "GET /api/cart"},
        {"?", ""},
        {"attach12?", "*"},
        {"/a/b/c/d/e/f/g/h/i/j", "/a/b/c/d/e/f/g/h/i"},
        {"/u/123e4567-e89b-12d3-a456-426614174000/x", "/u/*/x"},
        {"/commit/deadbeef/dead/beef", "/commit/*/dead/beef"},
        {"/t/aGVsbG8gd29ybGQ", "/t/*"},
        {"/t/xKcDqWzPtYhJmNbV", "/t/*"},
        {"/name/J\xc3\xbcrgen/mail/a@b.c", "/name/*/mail/*"},
        {"/getHTTPUrlById/https/xml-rpc", "/getHTTPUrlById/https/xml-rpc"},
        {"/abcdefghijklmnopqrstuvwxyzabcdefgh", "/*"},
    };
    CHECK(rows, url_mask);
}

/* ---- SQL ---- */

static void mask_any(struct slice text, struct text *out)
{
    sql_mask(text, SQL_ANY, out);
}

static void mask_postgresql(struct slice text, struct text *out)
{
    sql_mask(text, SQL_POSTGRESQL, out);
}

static void mask_mysql(struct slice text, struct text *out)
{
    sql_mask(text, SQL_MYSQL, out);
}

static void values_in_sql_are_hidden(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {" SELECT * FROM users WHERE id = 42 AND name='Joe' ",
         "SELECT * FROM users WHERE id = ? AND name=?"},
        {"INSERT INTO t VALUES (-1, +2.5e-3, 0xFF, .5, null, TRUE, 'x')",
         "INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?)"},
        {"SELECT a1, t20.b FROM logs_2024_01", "SELECT a?, t?.b FROM logs_?_?"},
        {"SELECT 'it''s' x", "SELECT ?? x"},
        {"SELECT $1, :name, @p1, ?", "SELECT ?, :name, @p1, ?"},
        {"SELECT x -- secret\nFROM t", "SELECT x --?\nFROM t"},
        {"SELECT /* secret */ x /**/", "SELECT /*?*/ x /**/"},
        {"SELECT $$a'b$$, $f$x$$y$f$ FROM v$session", "SELECT ?, ? FROM v$session"},
        {"SELECT nullable, trueish FROM t", "SELECT nullable, trueish FROM t"},
        {"SELECT a-1 FROM t LIMIT 10;", "SELECT a? FROM t LIMIT ?;"},
        {"SELECT E'a' || N'b' || x'ff'", "SELECT E? || N? || x?"},
        {"SELECT \"Col1\".\"b\" FROM \"t\"", "SELECT \"Col?\".\"b\" FROM \"t\""},
        {"SELECT a #> '{x}' FROM t", "SELECT a #> ? FROM t"},
        {"", ""},
    };
    CHECK(rows, mask_postgresql);
    static const struct row mysql[] = {
        {"SELECT `a1` FROM t WHERE n = \"Joe\" # secret", "SELECT `a?` FROM t WHERE n = ? #?"},
        {"SELECT 'it\\'s', \"\\\"x\", 3", "SELECT ?, ?, ?"},
        {"SELECT @@version, 1e5", "SELECT @@version, ?"},
    };
    CHECK(mysql, mask_mysql);
}

/* Where a query may be read in two ways, nothing of a value may be left. */
static void sql_that_is_not_clear_is_hidden(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"SELECT 'abc", "SELECT ?"},
        {"SELECT \"secret\"", "SELECT ?"},
        {"SELECT `secret", "SELECT ?"},
        {"SELECT /* secret", "SELECT /*?"},
        {"SELECT /* a /* b */ secret */ x", "SELECT /*?"},
        {"SELECT $x$secret", "SELECT ?"},
        {"SELECT 'a\\' AND name = 'secret' OR x", "SELECT ?"},
        {"SELECT 1 # it's a comment\n, 'secret'", "SELECT ? #?\n, ?"},
        {"SELECT LIKE\"secret\"", "SELECT LIKE?"},
    };
    CHECK(rows, mask_any);
    static const struct row postgresql[] = {
        {"SELECT \"secret", "SELECT ?"},
        {"SELECT E'a\\'secret' x", "SELECT E?"},
    };
    CHECK(postgresql, mask_postgresql);
}

/* ---- commands ---- */

static void values_in_commands_are_hidden(void **state)
{
    (void)state;
    static const struct row redis[] = {
        {"GET key", "GET key"},
        {"SET key secret EX 10", "SET key ? EX 10"},
        {"set key \"se cret\\\" x\" EX 10", "set key ? EX 10"},
        {"AUTH user secret", "AUTH ?"},
        {"HSET h f1 v1 f2 v2", "HSET h f1 ? f2 ?"},
        {"MSET a 1 b 2", "MSET a ? b ?"},
        {"GEOADD k 1 2 m 3 4 n", "GEOADD k 1 2 ? 3 4 ?"},
        {"ZADD k NX CH 1 a 2 b", "ZADD k NX CH 1 ? 2 ?"},
        {"ZADD k 1 a", "ZADD k 1 ?"},
        {"SADD s a b c", "SADD s ?"},
        {"CONFIG SET requirepass secret", "CONFIG SET requirepass ?"},
        {"CONFIG GET *", "CONFIG GET *"},
        {"BITFIELD k SET u8 0 255 GET u8 1 INCRBY u8 2 9",
         "BITFIELD k SET u8 0 ? GET u8 1 INCRBY u8 2 ?"},
        {"SET a 1\nGET b\n", "SET a ?\nGET b\n"},
        {"SET a \"x\ny\"\nGET b", "SET a ?\nGET b"},
        {"XADD stream * field secret", "XADD ?"},
        {"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$6\r\nsecret\r\n", "?\n?\nSET\n?\n?\n?\n?\n"},
        {"", ""},
    };
    CHECK(redis, redis_mask);
    static const struct row memcached[] = {
        {"set key 0 60 6\r\nsecret\r\n", "set key 0 60 6"},
        {"set key 0 60 6\nsecret", "set key 0 60 6"},
        {" get key ", "get key"},
    };
    CHECK(memcached, memcached_mask);
}

static void mask_json(struct slice text, struct text *out)
{
    if (!json_mask(text, out)) {
        text_clear(out);
        text_append(out, "!");
    }
}

static void values_in_json_are_hidden(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"{\"find\": \"users\", \"filter\": {\"age\": {\"$gt\": 30}, \"a\": [1, \"x\", {}]}}",
         "{\"find\":\"?\",\"filter\":{\"age\":{\"$gt\":\"?\"},\"a\":[\"?\",\"?\",{}]}}"},
        {" [true, null, -1.5e+3, \"\\u00e4\\\"\"] ", "[\"?\",\"?\",\"?\",\"?\"]"},
        {"\"secret\"", "\"?\""},
        {"{}", "{}"},
        {"{\"a\": secret}", "!"},
        {"{\"a\": 1} secret", "!"},
        {"{\"a\": \"x", "!"},
        {"{\"a\" 1}", "!"},
        {"{\"a\": 1,}", "!"},
        {"[1 2]", "!"},
        {"[01]", "!"},
        {"\"\\x\"", "!"},
        {"", "!"},
    };
    CHECK(rows, mask_json);
    char deep[1000];
    memset(deep, '[', sizeof deep);
    struct text out = {0};
    assert_false(json_mask(slice_of(deep, sizeof deep), &out));
    text_deinit(&out);
}

/* ---- databases ---- */

static void the_database_says_what_is_hidden(void **state)
{
    (void)state;
    static char *keys[] = {"q"}, *others[] = {"cmd", "q"};
    const struct db_sanitizer_settings settings = {
        .sql = {true, {.items = (void *)keys, .count = 1}},
        .redis = {true, {.items = (void *)others, .count = 2}},
        .mongo = {false, {.items = (void *)others, .count = 2}},
        .es = {true, {.items = (void *)others, .count = 1}}};
    static const struct {
        const char *system, *key, *value, *wanted; /* NULL: it stays */
    } rows[] = {
        {"mysql", "q", "SELECT \"a\"", "SELECT ?"},
        {"PostgreSQL", "q", "SELECT \"a\"", "SELECT \"a\""},
        {"redis", "q", "SET k v", "SET k ?"},
        {"", "q", "SELECT \"a\" = 1", "SELECT ? = ?"},
        {"oracle", "q", "SELECT 1", "SELECT ?"},
        {"neo4j", "q", "MATCH (n) RETURN n", "?"},
        {"mongodb", "q", "{}", "?"},
        {"mysql", "cmd", "SELECT 1", "?"},
        {"elasticsearch", "cmd", "{\"a\": 1}", "{\"a\":\"?\"}"},
        {"elasticsearch", "cmd", "{\"a\": 1", "?"},
        {"mysql", "other", "SELECT 1", NULL},
    };
    struct text out = {0};
    assert_true(database_mask_is_enabled(&settings));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        text_clear(&out);
        bool changes = database_mask_attribute(&settings, slice_of_string(rows[i].system),
                                               slice_of_string(rows[i].key),
                                               slice_of_string(rows[i].value), &out);
        assert_int_equal(changes, rows[i].wanted != NULL);
        if (changes)
            expect_text_of(rows[i].value, text_string(&out), rows[i].wanted);
    }
    assert_false(database_mask_name(&settings, SLICE("mongodb"), SLICE("{}"), &out));
    assert_false(database_mask_name(&settings, SLICE("neo4j"), SLICE("MATCH"), &out));
    text_deinit(&out);
}

/* Texts may not become longer, so that nobody has to count. */
static void masks_do_not_grow(void **state)
{
    (void)state;
    static const char characters[] = "a1 '\"`-#/*\n$@\\e+.,?&|";
    struct text out = {0};
    char text[16];
    uint32_t random = 1;
    for (unsigned i = 0; i < 200000; i++) {
        size_t size = i % sizeof text;
        for (size_t k = 0; k < size; k++) {
            random = random * 1664525 + 1013904223;
            text[k] = characters[(random >> 16) % (sizeof characters - 1)];
        }
        static mask_function *const masks[] = {mask_any,   mask_postgresql, mask_mysql,
                                               redis_mask, memcached_mask,  url_mask};
        for (size_t m = 0; m < sizeof masks / sizeof *masks; m++) {
            text_clear(&out);
            masks[m](slice_of(text, size), &out);
            assert_true(out.size <= size);
        }
    }
    text_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_in_urls_are_replaced),
        cmocka_unit_test(values_in_sql_are_hidden),
        cmocka_unit_test(sql_that_is_not_clear_is_hidden),
        cmocka_unit_test(values_in_commands_are_hidden),
        cmocka_unit_test(values_in_json_are_hidden),
        cmocka_unit_test(the_database_says_what_is_hidden),
        cmocka_unit_test(masks_do_not_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
