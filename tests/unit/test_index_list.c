/* index_list: the bytes of the same numbers as were written. */
#include "core/data/index_list.h"

#include "tests/unit/random_profiles.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { NUMBERS_MAX = 300, TABLE = 1 << 22 };

static uint8_t marks[TABLE], table[TABLE];

/* A number with as many bytes as wanted; longer ones are padded with zeros, which protobuf allows.
 */
static uint8_t *write_number(uint8_t *to, uint32_t number, unsigned bytes)
{
    for (unsigned i = 1; i < bytes || number >= 0x80; i++, number >>= 7)
        *to++ = (uint8_t)(number | 0x80);
    *to++ = (uint8_t)number;
    return to;
}

static uint32_t random_number(uint32_t kind)
{
    static const uint32_t below[] = {1 << 7, 1 << 14, 1 << 21, TABLE};
    return random_below(below[kind % 4]);
}

/* Checks lists in memory of exactly their size, so that a sanitizer sees what is read after it. */
static void check(const uint32_t *numbers, size_t count, const uint8_t *encoded, size_t size)
{
    uint8_t *exact = malloc(size + (size == 0));
    if (size > 0)
        memcpy(exact, encoded, size);
    uint8_t all = 0;
    index_list_mark(slice_of(exact, size), marks, TABLE);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(marks[numbers[i]], 1);
    for (size_t i = 0; i < count; i++)
        marks[numbers[i]] = 0;
    if (count > 0) {
        uint32_t one = numbers[random_below((uint32_t)count)];
        table[one] = 0x24;
        assert_int_equal(index_list_or(slice_of(exact, size), table, TABLE), 0x24);
        table[one] = 0;
    }
    for (size_t i = 0; i < count; i++)
        table[numbers[i]] = (uint8_t)(1U << i % 8);
    for (size_t i = 0; i < count; i++)
        all |= table[numbers[i]];
    assert_int_equal(index_list_or(slice_of(exact, size), table, TABLE), all);
    for (size_t i = 0; i < count; i++)
        table[numbers[i]] = 0;
    free(exact);
}

static void visits_what_was_written(void **unused)
{
    (void)unused;
    for (int round = 0; round < 20000; round++) {
        uint32_t numbers[NUMBERS_MAX] = {0}, kinds = 1 + random_below(4),
                 rare = 1 + random_below(40);
        uint8_t encoded[NUMBERS_MAX * 10], *end = encoded;
        size_t count = random_below(random_below(4) ? 60 : NUMBERS_MAX);
        uint32_t usual = random_below(2);
        for (size_t i = 0; i < count; i++) {
            bool is_rare = random_below(rare) == 0;
            numbers[i] = random_number(is_rare ? random_below(kinds) : usual);
            end = write_number(end, numbers[i], is_rare && random_below(20) == 0 ? 10 : 1);
        }
        check(numbers, count, encoded, (size_t)(end - encoded));
    }
}

/* Nothing else was marked. */
static int end(void **state)
{
    (void)state;
    for (size_t i = 0; i < TABLE; i++)
        if (marks[i] != 0)
            return -1;
    return 0;
}

static void the_largest_of_each_length(void **unused)
{
    static const uint32_t numbers[] = {0, 1, 127, 128, 129, 16383, 16384, 2097151, 2097152};
    (void)unused;
    for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++) {
        uint32_t list[40];
        uint8_t encoded[400], *end = encoded;
        for (size_t i = 0; i < 40; i++)
            end = write_number(end, list[i] = numbers[n], 1);
        check(list, 40, encoded, (size_t)(end - encoded));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(visits_what_was_written),
        cmocka_unit_test(the_largest_of_each_length),
    };
    return cmocka_run_group_tests(tests, NULL, end);
}
