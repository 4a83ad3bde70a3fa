/* index_list: the same numbers as the reader of single varints. */
#include "core/data/index_list.h"

#include "tests/unit/random_profiles.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { NUMBERS_MAX = 300 };

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
    static const uint32_t below[] = {1 << 7, 1 << 14, 1 << 21, INT32_MAX};
    return random_below(below[kind % 4]);
}

/* Checks lists in memory of exactly their size, so that a sanitizer sees what is read after it. */
static void check(const uint32_t *numbers, size_t count, const uint8_t *encoded, size_t size)
{
    uint8_t *exact = malloc(size + (size == 0));
    if (size > 0)
        memcpy(exact, encoded, size);
    struct wire_cursor packed = wire_cursor(slice_of(exact, size));
    uint32_t out[INDEX_LIST_ROOM], read;
    size_t at = 0;
    while ((read = index_list_read(&packed, out)) > 0) {
        assert_true(read <= INDEX_LIST_ROOM && read <= count - at);
        for (uint32_t i = 0; i < read; i++)
            assert_int_equal(out[i], numbers[at++]);
    }
    assert_int_equal(at, count);
    assert_ptr_equal(packed.next, packed.end);
    free(exact);
}

static void reads_what_single_varints_say(void **unused)
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
        cmocka_unit_test(reads_what_single_varints_say),
        cmocka_unit_test(the_largest_of_each_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
