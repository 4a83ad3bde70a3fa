#include "core/base/memory.h"
#include "core/base/text.h"
#include "core/data/any_value.h"
#include "processors/spanjoin/joined_values.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* A key longer than the sizes that are told apart. */
#define LONG_KEY "a.key.of.more.than.sixty.three.bytes.which.is.not.cut.off.anywhere.at.all"

static struct joined_attribute joined[] = {
    {.key = SLICE("name"), .path = JOIN_SPAN_NAME},
    {.key = SLICE("route"), .path = JOIN_SPAN_ATTRIBUTE, .name = SLICE("http.route")},
    {.key = SLICE("long"), .path = JOIN_SPAN_ATTRIBUTE, .name = SLICE(LONG_KEY)},
    {.key = SLICE("again"), .path = JOIN_SPAN_ATTRIBUTE, .name = SLICE("http.route")},
    {.key = SLICE("short"), .path = JOIN_SPAN_ATTRIBUTE, .name = SLICE("k")},
};
enum { NAME, ROUTE, LONG, AGAIN, SHORT, JOINED_COUNT };

static void put_field(struct text *out, uint32_t number, struct slice payload)
{
    uint8_t header[WIRE_HEADER_MAX];
    uint8_t *end = wire_write_header(header, number, payload.size);
    text_append_slice(out, slice_of(header, (size_t)(end - header)));
    text_append_slice(out, payload);
}

static void put_attribute(struct text *out, const char *key, const char *value)
{
    struct arena arena = {0};
    struct any_value text = any_value_string(slice_of_string(value));
    struct slice payload = value ? any_value_encode(&arena, text) : (struct slice){0};
    text_append_slice(
        out, key_value_encode_field(&arena, SPAN_ATTRIBUTES, slice_of_string(key), payload));
    arena_deinit(&arena);
}

static void assert_text(struct slice payload, const char *text)
{
    struct any_value value = any_value_read(payload);
    assert_int_equal(value.kind, ANY_VALUE_STRING);
    assert_true(slice_is(value.bytes, text));
}

/* Parts of a span, in the order in which they are written. */
enum part { IDS, TIMES, FIRST, MORE, PART_COUNT };

static void put_part(struct text *out, enum part part)
{
    uint8_t bytes[2 * WIRE_HEADER_MAX], *end;
    switch (part) {
    case IDS:
        put_field(out, SPAN_TRACE_ID, SLICE("0123456789abcdef"));
        put_field(out, SPAN_SPAN_ID, SLICE("01234567"));
        put_field(out, SPAN_NAME, SLICE("GET /"));
        break;
    case TIMES:
        end = wire_write_varint(wire_write_tag(bytes, SPAN_KIND, WIRE_VARINT), 2);
        end = wire_write_fixed64(end, SPAN_START_TIME_UNIX_NANO, UINT64_C(0x1122334455667788));
        end = wire_write_fixed64(end, SPAN_END_TIME_UNIX_NANO, UINT64_C(0xff22334455667788));
        text_append_slice(out, slice_of(bytes, (size_t)(end - bytes)));
        break;
    case FIRST:
        put_attribute(out, "http.route", "/a");
        put_attribute(out, "http.host", "b");
        put_attribute(out, LONG_KEY, "long");
        put_attribute(out, "thread.id", NULL);
        break;
    default:
        put_attribute(out, "http.route", "/second");
        put_attribute(out, "http_route", "/other");
        put_attribute(out, "thread.name", "worker");
        put_attribute(out, "k", "v");
    }
}

static void assert_read(const enum part *order)
{
    const struct spanjoin_side side = {.joined = joined, .joined_count = JOINED_COUNT};
    struct wanted_attributes wanted;
    struct text out = {0};
    for (unsigned i = 0; i < PART_COUNT; i++)
        put_part(&out, order[i]);
    uint8_t *exact = memory_alloc(out.size); /* so that a sanitizer detects reads past its end */
    memcpy(exact, out.data, out.size);
    wanted_attributes_init(&wanted, &side, true);
    for (unsigned turn = 0; turn < 2; turn++) {
        struct span_view span = span_view_read(slice_of(exact, out.size), &wanted);
        assert_true(slice_is(span.fields.name, "GET /"));
        assert_true(slice_is(span.fields.trace_id, "0123456789abcdef"));
        assert_true(slice_is(span.fields.span_id, "01234567"));
        assert_int_equal(span.fields.kind, 2);
        assert_true(span.fields.start_ns == UINT64_C(0x1122334455667788));
        assert_true(span.fields.end_ns == UINT64_C(0xff22334455667788));
        assert_text(wanted.values[ROUTE], order[0] == MORE ? "/second" : "/a");
        assert_text(wanted.values[AGAIN], order[0] == MORE ? "/second" : "/a");
        assert_text(wanted.values[LONG], "long");
        assert_text(wanted.values[SHORT], "v");
        assert_int_equal(wanted.values[WANTED_THREAD_ID].size, 0);
        assert_text(wanted.values[WANTED_THREAD_NAME], "worker");
        for (unsigned i = ROUTE; i < JOINED_COUNT; i++) {
            struct slice one =
                attribute_value(span.fields.attributes, SPAN_ATTRIBUTES, joined[i].name);
            assert_true(slice_equal(one, wanted.values[i]));
        }
    }
    free(exact);
    text_deinit(&out);
}

static void a_span_is_read_whatever_the_order_of_its_fields(void **state)
{
    static const enum part orders[][PART_COUNT] = {
        {IDS, TIMES, FIRST, MORE}, {FIRST, TIMES, IDS, MORE}, {FIRST, IDS, MORE, TIMES},
        {MORE, IDS, FIRST, TIMES}, {IDS, FIRST, TIMES, MORE}, {TIMES, IDS, FIRST, MORE},
    };
    (void)state;
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        assert_read(orders[i]);
}

static void values_are_those_of_the_present_span(void **state)
{
    const struct spanjoin_side side = {.joined = joined, .joined_count = JOINED_COUNT};
    struct wanted_attributes wanted;
    struct text out = {0};
    (void)state;
    put_part(&out, FIRST);
    wanted_attributes_init(&wanted, &side, false);
    span_view_read(slice_of(out.data, out.size), &wanted);
    assert_text(wanted.values[ROUTE], "/a");
    span_view_read((struct slice){0}, &wanted);
    assert_int_equal(wanted.values[ROUTE].size, 0);
    text_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_span_is_read_whatever_the_order_of_its_fields),
        cmocka_unit_test(values_are_those_of_the_present_span),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
