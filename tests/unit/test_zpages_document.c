#include "extensions/zpages/document.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define NOW_NS (UINT64_C(1795000000) * 1000000000)
#define EVIL "<script>alert(\"1\")</script>'&"

static const struct document_link links[] = {{"/a", "A"}, {"/b", "B"}, {NULL, NULL}};

/* A page with one of everything, and names from a stranger. */
static void print(struct text *out, bool is_json)
{
    struct document document;
    document_begin(&document, out, is_json, NOW_NS, EVIL, links, "/b");
    document_begin_fields(&document, "fields", EVIL);
    document_text(&document, "name", "Name", EVIL);
    document_number(&document, "count", "Count", 1234567);
    document_seconds(&document, "uptime", "Uptime", 61.5);
    document_share(&document, "used", "Used", 1536, 4096, true);
    document_time(&document, "since", "Since", NOW_NS - UINT64_C(65000000000));
    document_end_fields(&document);
    document_begin_table(&document, EVIL, "Rows");
    for (int row = 0; row < 2; row++) {
        document_row(&document);
        document_text(&document, "id", "Id", row ? "second" : EVIL);
        document_status(&document, "status", "Status", row ? STATUS_OK : STATUS_RECOVERABLE_ERROR);
        document_none(&document, "None");
        document_time(&document, "never", "Never", 0);
    }
    document_end_table(&document);
    document_begin_table(&document, "empty", "Empty");
    document_end_table(&document);
    document_begin_chain(&document, EVIL);
    document_box(&document, false, "receiver", EVIL, EVIL, STATUS_OK);
    document_end_chain(&document);
    document_paragraph(&document, "note", EVIL);
    document_verbatim(&document, "config", EVIL, SLICE("{\"a\":1}"));
    document_end(&document);
}

static void nothing_from_outside_is_markup(void **state)
{
    (void)state;
    struct text out = {0};
    print(&out, false);
    const char *page = text_string(&out);
    assert_null(strstr(page, "<script"));
    assert_null(strstr(page, "alert(\""));
    assert_non_null(strstr(page, "&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&#39;&amp;"));
    assert_non_null(strstr(page, "<th>Id</th><th>Status</th><th>None</th><th>Never</th>"));
    assert_non_null(strstr(page, ">1,234,567<"));
    assert_non_null(strstr(page, "1.5 KiB of 4.0 KiB"));
    assert_non_null(strstr(page, ">1m5s ago<"));
    assert_non_null(strstr(page, "<a href=\"/b\" aria-current=\"page\">B</a>"));
    assert_null(strstr(page, "http://")); /* nothing from elsewhere */
    assert_null(strstr(page, "https://"));
    text_deinit(&out);
}

static void json_says_the_same(void **state)
{
    (void)state;
    struct text out = {0};
    json_error_t error;
    print(&out, true);
    json_t *json = json_loads(text_string(&out), JSON_REJECT_DUPLICATES, &error);
    if (!json)
        fail_msg("%s:\n%s", error.text, text_string(&out));
    json_t *fields = json_object_get(json, "fields"), *rows = json_object_get(json, EVIL);
    assert_string_equal(json_string_value(json_object_get(fields, "name")), EVIL);
    assert_int_equal(json_integer_value(json_object_get(fields, "count")), 1234567);
    assert_int_equal(json_integer_value(json_object_get(fields, "used")), 1536);
    assert_int_equal(json_integer_value(json_object_get(fields, "used_limit")), 4096);
    assert_string_equal(json_string_value(json_object_get(fields, "since")),
                        "2026-11-18T11:05:35.000000000Z");
    assert_int_equal(json_array_size(rows), 2);
    assert_string_equal(json_string_value(json_object_get(json_array_get(rows, 0), "status")),
                        "StatusRecoverableError");
    assert_true(json_is_null(json_object_get(json_array_get(rows, 0), "never")));
    assert_int_equal(json_array_size(json_object_get(json, "empty")), 0);
    assert_string_equal(json_string_value(json_object_get(json, "page")), "/b");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(json, "config"), "a")), 1);
    json_decref(json);
    text_deinit(&out);
}

static void texts_are_escaped(void **state)
{
    (void)state;
    static const struct {
        const char *text, *escaped;
    } cases[] = {
        {"", ""},
        {"plain\n\ttext", "plain\n\ttext"},
        {"a<b>c&d\"e'f", "a&lt;b&gt;c&amp;d&quot;e&#39;f"},
        {"\xc3\xa4\xe2\x82\xac", "\xc3\xa4\xe2\x82\xac"},
        {"\x01\x1b[31m\x7f", "\xef\xbf\xbd\xef\xbf\xbd[31m\xef\xbf\xbd"},
        {"\xc2\x9b", "\xef\xbf\xbd"},
        {"\xff\xc3", "\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xc0\xbcscript>", "\xef\xbf\xbd\xef\xbf\xbdscript&gt;"}, /* overlong < */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct text out = {0};
        document_escape(&out, slice_of_string(cases[i].text));
        assert_string_equal(text_string(&out), cases[i].escaped);
        text_deinit(&out);
    }
}

static void counts_are_grouped(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *printed;
    } cases[] = {{0, "0"},          {999, "999"},          {1000, "1,000"}, {123456, "123,456"},
                 {-1000, "-1,000"}, {1e9, "1,000,000,000"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct text out = {0};
        document_print_count(&out, cases[i].value);
        assert_string_equal(text_string(&out), cases[i].printed);
        text_deinit(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_from_outside_is_markup),
        cmocka_unit_test(json_says_the_same),
        cmocka_unit_test(texts_are_escaped),
        cmocka_unit_test(counts_are_grouped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
