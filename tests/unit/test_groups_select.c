#include "core/base/text.h"
#include "core/data/groups_select.h"
#include "core/data/groups_split.h"
#include "tests/unit/expect_text.h"
#include "tests/unit/pipeline_fixture.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* Three resources, with the spans 0 1 | 2, none, and 3 | 4. */
static const char request_json[] = "{\"resourceSpans\":["
                                   "{\"resource\":{\"droppedAttributesCount\":1},\"scopeSpans\":["
                                   "{\"scope\":{\"name\":\"a\"},\"spans\":[{\"name\":\"0\"},{"
                                   "\"name\":\"1\"}],\"schemaUrl\":\"s\"},"
                                   "{\"spans\":[{\"name\":\"2\"}]}],\"schemaUrl\":\"r\"},"
                                   "{\"resource\":{\"droppedAttributesCount\":2}},"
                                   "{\"scopeSpans\":[{\"scope\":{\"name\":\"b\"}},{\"spans\":[{"
                                   "\"name\":\"3\"}]},{\"spans\":[{\"name\":\"4\"}]}]}]}";

/* Prints the resources (their count of dropped attributes) and names of a request: 1(0 1|2). */
static void print(const struct buffer *request, struct text *out)
{
    struct wire_cursor groups = wire_cursor(buffer_slice(request));
    struct wire_field group, scope, span;
    while (wire_next_bytes(&groups, REQUEST_GROUPS, &group)) {
        struct wire_cursor scopes = wire_cursor(group.bytes);
        text_printf(out, "%u%s(", groups_count_items(SIGNAL_TRACES, group.bytes),
                    wire_last_bytes(group.bytes, GROUP_SCHEMA_URL).size > 0 ? "r" : "");
        for (bool first = true; wire_next_bytes(&scopes, GROUP_SCOPES, &scope); first = false) {
            struct wire_cursor spans = wire_cursor(scope.bytes);
            text_printf(out, "%s%s", first ? "" : "|",
                        wire_last_bytes(scope.bytes, SCOPE_SPANS_SCHEMA_URL).size > 0 ? "s" : "");
            while (wire_next_bytes(&spans, SCOPE_ITEMS, &span))
                text_printf(out, "%.*s", SLICE_ARG(wire_last_bytes(span.bytes, SPAN_NAME)));
        }
        text_append(out, ")");
    }
}

typedef struct buffer *select_units(const struct slice *slices, size_t slice_count,
                                    const struct selection *units, struct budget *budget);

/* Selects the units whose numbers are digits of the text. The request is given twice. */
static void check(select_units *units_of, const char *numbers, const char *wanted)
{
    struct buffer *request = fixture_encode(SIGNAL_TRACES, request_json);
    struct slice slices[2] = {buffer_slice(request), buffer_slice(request)};
    struct budget budget = {.limit_bytes = 1 << 20};
    struct selection selection = {0};
    struct text got = {0};

    for (const char *c = numbers; *c; c++)
        selection_add(&selection, (uint32_t)(*c - '0'));
    assert_int_equal(selection.count, strlen(numbers));
    struct buffer *part = units_of(slices, 2, &selection, &budget);
    print(part, &got);
    expect_text_of(numbers, text_string(&got), wanted);
    buffer_unref(part);
    assert_int_equal(budget_used(&budget), 0);
    selection_deinit(&selection);
    buffer_unref(request);
    text_deinit(&got);
}

static void groups_are_copied_whole(void **state)
{
    (void)state;
    check(groups_select, "", "");
    check(groups_select, "0", "3r(s01|2)");
    check(groups_select, "1", "0()");
    check(groups_select, "25", "2(|3|4)2(|3|4)");
    check(groups_select, "013", "3r(s01|2)0()3r(s01|2)");
}

static void spans_keep_what_is_around_them(void **state)
{
    (void)state;
    check(groups_select_spans, "", "");
    check(groups_select_spans, "0", "1r(s0)");
    check(groups_select_spans, "12", "2r(s1|2)");
    check(groups_select_spans, "012", "3r(s01|2)");
    check(groups_select_spans, "4", "1(4)");
    check(groups_select_spans, "346", "2(3|4)1r(s1)");
    check(groups_select_spans, "01234567", "3r(s01|2)2(3|4)3r(s01|2)");
}

static void a_selection_grows(void **state)
{
    struct selection selection = {0};
    (void)state;
    assert_false(selection_has(&selection, 0));
    for (uint32_t i = 0; i < 100000; i += 7)
        selection_add(&selection, i);
    selection_add(&selection, 7);
    assert_int_equal(selection.count, 14286);
    for (uint32_t i = 0; i < 110000; i++)
        assert_int_equal(selection_has(&selection, i), i < 100000 && i % 7 == 0);
    selection_deinit(&selection);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_are_copied_whole),
        cmocka_unit_test(spans_keep_what_is_around_them),
        cmocka_unit_test(a_selection_grows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
