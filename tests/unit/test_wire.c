#include "core/base/memory.h"
#include "core/data/wire.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Returns a copy of exactly this size, so that a sanitizer detects reads past its end. */
static uint8_t *exact_copy(struct slice bytes)
{
    uint8_t *copy = memory_alloc(bytes.size ? bytes.size : 1);
    if (bytes.size > 0)
        memcpy(copy, bytes.data, bytes.size);
    return copy;
}

static void varints_of_all_lengths(void **state)
{
    (void)state;
    for (unsigned length = 1; length <= 10; length++) {
        uint64_t lowest = length == 1 ? 0 : (uint64_t)1 << (7 * (length - 1));
        uint64_t highest = length == 10 ? UINT64_MAX : ((uint64_t)1 << (7 * length)) - 1;
        const uint64_t values[] = {lowest, lowest + 1, highest - 1, highest};
        for (size_t i = 0; i < 4; i++) {
            uint8_t bytes[16];
            assert_int_equal(wire_size_varint(values[i]), length);
            assert_ptr_equal(wire_write_varint(bytes, values[i]), bytes + length);
            struct wire_cursor cursor = wire_cursor(slice_of(bytes, length));
            uint64_t read = ~values[i];
            assert_true(wire_packed_varint(&cursor, &read));
            assert_true(read == values[i]);
            assert_ptr_equal(cursor.next, bytes + length);
            assert_false(wire_packed_varint(&cursor, &read));
            assert_false(cursor.broken);
        }
    }
}

static void varints_may_be_longer_than_needed(void **state)
{
    (void)state;
    static const struct {
        struct slice bytes;
        bool good;
        uint64_t value;
    } cases[] = {
        {{(const uint8_t *)"\x81\x00", 2}, true, 1},
        {{(const uint8_t *)"\x81\x80\x80\x80\x80\x80\x80\x80\x80\x00", 10}, true, 1},
        /* the tenth byte has one bit; higher ones are ignored, as in the reference parsers */
        {{(const uint8_t *)"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10}, true, UINT64_MAX},
        {{(const uint8_t *)"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x02", 10}, true, 0},
        {{(const uint8_t *)"\x81\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 11}, false, 0},
        {{(const uint8_t *)"\x80", 1}, false, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wire_cursor cursor = wire_cursor(cases[i].bytes);
        uint64_t value;
        assert_int_equal(wire_packed_varint(&cursor, &value), cases[i].good);
        assert_int_equal(cursor.broken, !cases[i].good);
        if (cases[i].good)
            assert_true(value == cases[i].value);
    }
}

/* Writes one field of each type: 5 varint, 6 fixed64, 7 fixed32, 300 bytes, the largest number.
 * Returns the size. */
static size_t write_example(uint8_t *to)
{
    uint8_t *at = wire_write_varint(wire_write_tag(to, 5, WIRE_VARINT), UINT64_MAX);
    at = wire_write_fixed64(at, 6, 0x1122334455667788);
    at = wire_write_tag(at, 7, WIRE_FIXED32);
    static const uint8_t fixed32[] = {0xd4, 0xc3, 0xb2, 0xa1};
    memcpy(at, fixed32, sizeof fixed32);
    at = wire_write_bytes(at + 4, 300, SLICE("payload"));
    at = wire_write_bytes(at, 0x1fffffff, SLICE(""));
    return (size_t)(at - to);
}

static void fields_of_all_types_are_read(void **state)
{
    (void)state;
    uint8_t bytes[100];
    size_t size = write_example(bytes);
    struct wire_cursor cursor = wire_cursor(slice_of(bytes, size));
    struct wire_field field;
    const uint8_t *behind = bytes;
    static const struct {
        uint32_t number;
        enum wire_type type;
        uint64_t value;
        const char *payload;
    } expected[] = {
        {5, WIRE_VARINT, UINT64_MAX, NULL},  {6, WIRE_FIXED64, 0x1122334455667788, NULL},
        {7, WIRE_FIXED32, 0xa1b2c3d4, NULL}, {300, WIRE_BYTES, 0, "payload"},
        {0x1fffffff, WIRE_BYTES, 0, ""},
    };
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        assert_true(wire_next(&cursor, &field));
        assert_int_equal(field.number, expected[i].number);
        assert_int_equal(field.type, expected[i].type);
        assert_ptr_equal(field.start, behind); /* fields are adjacent */
        behind = field.end;
        if (expected[i].payload)
            assert_true(slice_is(field.bytes, expected[i].payload));
        else
            assert_true(field.value == expected[i].value);
    }
    assert_false(wire_next(&cursor, &field));
    assert_false(cursor.broken);
    assert_ptr_equal(behind, bytes + size);
}

/* A message cut at the border of a field is a shorter message. Cut elsewhere, it is broken. */
static void a_message_cut_anywhere_is_not_misread(void **state)
{
    (void)state;
    uint8_t whole[100];
    size_t size = write_example(whole);
    struct wire_cursor cursor = wire_cursor(slice_of(whole, size));
    struct wire_field field;
    bool is_border[100] = {true};
    while (wire_next(&cursor, &field))
        is_border[field.end - whole] = true;
    for (size_t cut = 0; cut < size; cut++) {
        uint8_t *bytes = exact_copy(slice_of(whole, cut));
        cursor = wire_cursor(slice_of(bytes, cut));
        while (wire_next(&cursor, &field))
            assert_true(field.end <= bytes + cut);
        assert_int_equal(cursor.broken, !is_border[cut]);
        assert_false(wire_next(&cursor, &field)); /* the cursor stays at its end */
        free(bytes);
    }
}

#define BYTES(literal)                                                                             \
    {                                                                                              \
        (const uint8_t *)("" literal), sizeof(literal) - 1                                         \
    }

static void what_is_no_message_is_broken(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        struct slice bytes;
        bool good;
    } cases[] = {
        {"empty", BYTES(""), true},
        {"field number 0", BYTES("\x00\x01"), false},
        {"field number 0, long", BYTES("\x80\x00\x01"), false},
        {"field number 1", BYTES("\x08\x01"), true},
        {"field number 1, long tag", BYTES("\x88\x00\x01"), true},
        {"largest field number", BYTES("\xf8\xff\xff\xff\x0f\x01"), true},
        {"field number over 29 bits", BYTES("\x80\x80\x80\x80\x10\x01"), false},
        {"tag over 64 bits", BYTES("\x88\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00\x01"), false},
        {"group start", BYTES("\x0b\x0c"), false},
        {"group end", BYTES("\x0c"), false},
        {"wire type 6", BYTES("\x0e\x01"), false},
        {"wire type 7", BYTES("\x0f\x01"), false},
        {"length past the end", BYTES("\x0a\x02x"), false},
        {"length of 2^64 - 1", BYTES("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01x"), false},
        {"length of 2^63", BYTES("\x0a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01x"), false},
        {"no length", BYTES("\x0a"), false},
        {"long length", BYTES("\x0a\x81\x00x"), true},
        {"short fixed64", BYTES("\x09\x01\x02\x03\x04\x05\x06\x07"), false},
        {"short fixed32", BYTES("\x0d\x01\x02\x03"), false},
        {"no value", BYTES("\x08"), false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t *bytes = exact_copy(cases[i].bytes);
        struct wire_cursor cursor = wire_cursor(slice_of(bytes, cases[i].bytes.size));
        struct wire_field field;
        while (wire_next(&cursor, &field))
            ;
        if (cursor.broken == cases[i].good)
            fail_msg("%s: %s", cases[i].what, cases[i].good ? "refused" : "accepted");
        free(bytes);
    }
}

static void fields_of_one_number_are_found(void **state)
{
    (void)state;
    /* 1="a" 2="b" 1=5 (a varint) 1="c" 1="" */
    struct slice message = SLICE("\x0a\x01"
                                 "a\x12\x01"
                                 "b\x08\x05\x0a\x01"
                                 "c\x0a\x00");
    struct wire_cursor cursor = wire_cursor(message);
    struct wire_field field;
    assert_true(wire_next_bytes(&cursor, 1, &field) && slice_is(field.bytes, "a"));
    assert_true(wire_next_bytes(&cursor, 1, &field) && slice_is(field.bytes, "c"));
    assert_ptr_equal(field.end, message.data + 11);
    assert_true(wire_next_bytes(&cursor, 1, &field) && slice_is(field.bytes, ""));
    assert_false(wire_next_bytes(&cursor, 1, &field));
    assert_false(cursor.broken);
    message.size -= 2;
    assert_true(slice_is(wire_last_bytes(message, 1), "c"));
    assert_true(slice_is(wire_last_bytes(message, 2), "b"));
    assert_int_equal(wire_last_bytes(message, 3).size, 0);
    assert_int_equal(wire_last_bytes((struct slice){0}, 1).size, 0);
    /* Truncation is detected. */
    cursor = wire_cursor(slice_of(message.data, message.size - 1));
    assert_true(wire_next_bytes(&cursor, 1, &field));
    assert_false(wire_next_bytes(&cursor, 1, &field));
    assert_true(cursor.broken);
}

static void packed_numbers_are_read(void **state)
{
    (void)state;
    struct wire_cursor cursor = wire_cursor(SLICE("\x01\xac\x02\x00"));
    uint64_t value;
    static const uint64_t expected[] = {1, 300, 0};
    for (size_t i = 0; i < 3; i++) {
        assert_true(wire_packed_varint(&cursor, &value));
        assert_true(value == expected[i]);
    }
    assert_false(wire_packed_varint(&cursor, &value));
    assert_false(cursor.broken);
    cursor = wire_cursor(SLICE("\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0"));
    assert_true(wire_packed_fixed64(&cursor, &value));
    assert_true(value == 1);
    assert_false(wire_packed_fixed64(&cursor, &value));
    assert_true(cursor.broken);
    assert_false(wire_packed_fixed64(&cursor, &value));
}

static void sizes_are_those_of_what_is_written(void **state)
{
    (void)state;
    static const uint32_t numbers[] = {1, 15, 16, 2047, 2048, 0x1fffffff};
    static const size_t payloads[] = {0, 1, 127, 128, 16383, 16384};
    uint8_t *payload = memory_zalloc(16384), *to = memory_alloc(17000);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(wire_write_tag(to, numbers[i], WIRE_FIXED32) - to,
                         (ptrdiff_t)wire_size_tag(numbers[i]));
        assert_int_equal(wire_write_fixed64(to, numbers[i], 1) - to,
                         (ptrdiff_t)wire_size_tag(numbers[i]) + 8);
        for (size_t j = 0; j < 6; j++) {
            struct slice bytes = slice_of(payload, payloads[j]);
            size_t size = wire_size_bytes(numbers[i], payloads[j]);
            assert_ptr_equal(wire_write_bytes(to, numbers[i], bytes), to + size);
            assert_in_range(wire_write_header(to, numbers[i], payloads[j]) - to, 2,
                            WIRE_HEADER_MAX);
            struct wire_cursor cursor = wire_cursor(slice_of(to, size));
            struct wire_field field = {0};
            assert_true(wire_next(&cursor, &field));
            assert_int_equal(field.bytes.size, payloads[j]);
            assert_false(wire_next(&cursor, &field));
        }
    }
    free(payload);
    free(to);
}

/* Numbers of all lengths, alone and beside others, and cut short. */
static void single_packed_numbers_are_read(void **state)
{
    (void)state;
    for (size_t length = 1; length <= 10; length++) {
        uint64_t highest = length == 10 ? UINT64_MAX : ((uint64_t)1 << (7 * length)) - 1;
        const uint64_t values[] = {highest, highest / 3, highest ^ 0x2a, highest - (highest >> 7)};
        for (size_t i = 0; i < 4; i++) {
            uint8_t bytes[16];
            uint64_t read = ~values[i];
            size_t size = (size_t)(wire_write_varint(bytes, values[i]) - bytes);
            uint8_t *exact = exact_copy(slice_of(bytes, size));
            assert_int_equal(wire_packed_single(slice_of(exact, size), &read), size <= 8);
            assert_true(size > 8 || read == values[i]);
            assert_false(size > 1 && wire_packed_single(slice_of(exact, size - 1), &read));
            free(exact);
            bytes[size] = 1;
            assert_false(wire_packed_single(slice_of(bytes, size + 1), &read));
        }
    }
    uint64_t read;
    assert_true(wire_packed_single(SLICE("\x81\x80\x00"), &read) && read == 1);
    assert_false(wire_packed_single((struct slice){0}, &read));
}

static void short_messages_are_taken(void **state)
{
    (void)state;
    struct slice bytes = SLICE("\x12\x01"
                               "a\x12\x81\x00"
                               "b\x1a\x00\x12\x05"
                               "cc");
    struct wire_cursor cursor = wire_cursor(bytes);
    struct slice payload;
    assert_true(wire_next_payload(&cursor, 2, &payload) && slice_is(payload, "a"));
    assert_false(wire_take_short(&cursor, 2 << 3 | WIRE_BYTES, &payload));
    assert_true(wire_next_payload(&cursor, 2, &payload) && slice_is(payload, "b"));
    assert_false(wire_take_short(&cursor, 2 << 3 | WIRE_BYTES, &payload)); /* another field */
    assert_false(wire_next_payload(&cursor, 2, &payload));                 /* it is cut */
    assert_true(cursor.broken);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(varints_of_all_lengths),
        cmocka_unit_test(varints_may_be_longer_than_needed),
        cmocka_unit_test(fields_of_all_types_are_read),
        cmocka_unit_test(a_message_cut_anywhere_is_not_misread),
        cmocka_unit_test(what_is_no_message_is_broken),
        cmocka_unit_test(fields_of_one_number_are_found),
        cmocka_unit_test(packed_numbers_are_read),
        cmocka_unit_test(single_packed_numbers_are_read),
        cmocka_unit_test(short_messages_are_taken),
        cmocka_unit_test(sizes_are_those_of_what_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
