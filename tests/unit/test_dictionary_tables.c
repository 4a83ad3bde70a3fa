#include "processors/redaction/dictionary_tables.h"

#include "core/base/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* A tag may have more bytes than it needs: the scan takes it, and a field is found by its number.
 */
static void entries_have_tags_of_any_size(void **state)
{
    (void)state;
    static const char *const wanted[] = {"", "abc", "x", "", "yz"};
    struct arena arena = {0};
    struct dictionary_tables tables;
    dictionary_tables_read(&tables,
                           SLICE("\xaa\x00\x00"
                                 "\xaa\x00\x03"
                                 "abc"
                                 "\x2a\x01"
                                 "x"
                                 "\xaa\x00\x00"
                                 "\x12\x00"
                                 "\xaa\x80\x00\x02"
                                 "yz"),
                           &arena);
    assert_int_equal(tables.string_count, sizeof wanted / sizeof *wanted);
    assert_int_equal(tables.ranges[DICTIONARY_LOCATION_TABLE].count, 1);
    for (uint32_t i = 0; i < tables.string_count; i++)
        assert_true(slice_is(dictionary_tables_string(&tables, i), wanted[i]));
    assert_int_equal(dictionary_tables_string_field(&tables, 1).size, 6);
    assert_int_equal(dictionary_tables_string_field(&tables, 4).size, 6);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_have_tags_of_any_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
