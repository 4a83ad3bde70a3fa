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

/* What the scan has noted says how many entries a table has, and where the first one is. */
static void tables_of_a_received_request_are_where_the_scan_found_them(void **state)
{
    (void)state;
    const struct slice request = SLICE("\x12\x10" /* the dictionary */
                                       "\x2a\x00"
                                       "\x12\x00"
                                       "\x2a\x03"
                                       "abc"
                                       "\x12\x01"
                                       "x"
                                       "\x32\x00");
    struct dictionary_layout layout = {.are_known = true};
    struct arena arena = {0};
    struct dictionary_tables tables;
    struct slice entry = {0};
    layout.counts[DICTIONARY_STRING_TABLE] = layout.counts[DICTIONARY_LOCATION_TABLE] = 2;
    layout.counts[DICTIONARY_ATTRIBUTE_TABLE] = 1;
    layout.starts[DICTIONARY_STRING_TABLE] = 2;
    layout.starts[DICTIONARY_LOCATION_TABLE] = 4;
    layout.starts[DICTIONARY_ATTRIBUTE_TABLE] = 14;
    dictionary_tables_read_received(&tables, slice_of(request.data + 2, request.size - 2), &layout,
                                    request.data, &arena);
    assert_int_equal(tables.string_count, 2);
    assert_true(slice_is(tables.strings[1], "abc"));
    assert_ptr_equal(tables.ranges[DICTIONARY_STRING_TABLE].end, request.data + 11);
    struct wire_cursor cursor = dictionary_tables_entries(&tables, DICTIONARY_LOCATION_TABLE);
    assert_true(dictionary_next_entry(&cursor, DICTIONARY_LOCATION_TABLE, &entry));
    assert_true(slice_is(entry, ""));
    assert_true(dictionary_next_entry(&cursor, DICTIONARY_LOCATION_TABLE, &entry));
    assert_true(slice_is(entry, "x"));
    assert_int_equal(tables.ranges[DICTIONARY_FUNCTION_TABLE].count, 0);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_have_tags_of_any_size),
        cmocka_unit_test(tables_of_a_received_request_are_where_the_scan_found_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
