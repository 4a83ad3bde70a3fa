/* The fields of a Span, in any order, several times, and beyond what OTLP knows. */
#include "core/data/otlp.h"
#include "core/data/span_fields.h"
#include "core/data/wire_writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const uint8_t trace_id[TRACE_ID_SIZE] = {1, 2}, span_id[SPAN_ID_SIZE] = {3, 4},
                     parent_id[SPAN_ID_SIZE] = {5, 6};

static void write_status(struct wire_writer *out, uint64_t code)
{
    size_t status = wire_writer_begin(out, SPAN_STATUS);
    wire_writer_bytes(out, STATUS_MESSAGE, SLICE("why"));
    wire_writer_varint(out, STATUS_CODE, code);
    wire_writer_end(out, status);
}

enum { FIELDS = 9 };

/* Writes one of the fields. */
static void write_field(struct wire_writer *out, int number)
{
    switch (number) {
    case 0:
        wire_writer_bytes(out, SPAN_TRACE_ID, slice_of(trace_id, sizeof trace_id));
        break;
    case 1:
        wire_writer_bytes(out, SPAN_SPAN_ID, slice_of(span_id, sizeof span_id));
        break;
    case 2:
        wire_writer_bytes(out, SPAN_PARENT_SPAN_ID, slice_of(parent_id, sizeof parent_id));
        break;
    case 3:
        wire_writer_bytes(out, SPAN_NAME, SLICE("GET /"));
        break;
    case 4:
        wire_writer_varint(out, SPAN_KIND, 2);
        break;
    case 5:
        wire_writer_fixed64(out, SPAN_START_TIME_UNIX_NANO, 1000);
        break;
    case 6:
        wire_writer_fixed64(out, SPAN_END_TIME_UNIX_NANO, 3000);
        break;
    case 7:
        wire_writer_bytes(out, SPAN_ATTRIBUTES, SLICE("\n\1k"));
        break;
    default:
        write_status(out, 2);
    }
}

static void check_all(struct slice bytes)
{
    struct span_fields span = span_fields_read(bytes);
    assert_true(slice_equal(span.trace_id, slice_of(trace_id, sizeof trace_id)));
    assert_true(slice_equal(span.span_id, slice_of(span_id, sizeof span_id)));
    assert_true(slice_equal(span.parent_id, slice_of(parent_id, sizeof parent_id)));
    assert_true(slice_is(span.name, "GET /") && slice_is(span.status_message, "why"));
    assert_true(span.start_ns == 1000 && span.end_ns == 3000);
    assert_true(span.kind == 2 && span.status == 2 && span.attributes.size == 5);
}

static void fields_come_in_any_order(void **state)
{
    (void)state;
    for (int first = 0; first < FIELDS; first++) {
        struct wire_writer out = {0};
        for (int i = 0; i < FIELDS; i++)
            write_field(&out, (first + i) % FIELDS);
        check_all(wire_writer_slice(&out));
        wire_writer_deinit(&out);
    }
}

static void the_last_one_counts(void **state)
{
    (void)state;
    struct wire_writer out = {0};
    wire_writer_bytes(&out, SPAN_NAME, SLICE("another"));
    wire_writer_varint(&out, SPAN_KIND, 5);
    write_status(&out, 1);
    for (int i = 0; i < FIELDS; i++)
        write_field(&out, i);
    check_all(wire_writer_slice(&out));
    wire_writer_deinit(&out);
}

static void numbers_beyond_a_byte_are_the_largest(void **state)
{
    (void)state;
    static const uint64_t cases[][2] = {{3, 3}, {200, 200}, {255, 255}, {256, 255}, {1 << 20, 255}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wire_writer out = {0};
        wire_writer_varint(&out, SPAN_KIND, cases[i][0]);
        write_status(&out, cases[i][0]);
        struct span_fields span = span_fields_read(wire_writer_slice(&out));
        assert_int_equal(span.kind, cases[i][1]);
        assert_int_equal(span.status, cases[i][1]);
        wire_writer_deinit(&out);
    }
}

static void nothing_is_all_zero(void **state)
{
    (void)state;
    struct span_fields span = span_fields_read(slice_of(NULL, 0));
    assert_true(span.name.size == 0 && span.trace_id.size == 0 && span.attributes.size == 0);
    assert_true(span.kind == 0 && span.status == 0 && span.flags == 0 && span.end_ns == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_come_in_any_order),
        cmocka_unit_test(the_last_one_counts),
        cmocka_unit_test(numbers_beyond_a_byte_are_the_largest),
        cmocka_unit_test(nothing_is_all_zero),
    };
    return cmocka_run_group_tests_name("fields of spans", tests, NULL, NULL);
}
