#include "extensions/basicauth/basic_credentials.h"
#include "extensions/basicauth/htpasswd.h"

#include "core/base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void on_problem(void *context, uint32_t line, const char *problem)
{
    text_printf(context, "%u: %s\n", line, problem);
}

static const char *hash_of(const struct htpasswd *table, const char *name)
{
    long at = htpasswd_find(table, slice_of_string(name));
    return at < 0 ? NULL : table->users[at].hash;
}

static void last_line_of_a_user_counts(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct htpasswd table = {0};
    struct error err;
    assert_true(htpasswd_add(&table, SLICE("b:1\na:2\r\n  a:3  \nc:x:y"), &arena, NULL, &err));
    assert_true(htpasswd_add(&table, SLICE("b:4\nd:5\n"), &arena, NULL, &err));
    htpasswd_finish(&table);
    assert_int_equal(table.count, 4);
    assert_string_equal(hash_of(&table, "a"), "3");
    assert_string_equal(hash_of(&table, "b"), "4");
    assert_string_equal(hash_of(&table, "c"), "x:y");
    assert_string_equal(hash_of(&table, "d"), "5");
    assert_null(hash_of(&table, "A"));
    assert_null(hash_of(&table, "aa"));
    assert_null(hash_of(&table, ""));
    arena_deinit(&arena);
}

static void lines_without_a_password_are_left_out(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct htpasswd table = {0};
    struct text said = {0};
    const struct htpasswd_problems problems = {on_problem, &said};
    struct error err;
    assert_true(htpasswd_add(&table, SLICE("# a:b\n\n:\nname:\n:word\nneither\na:b\n"), &arena,
                             &problems, &err));
    htpasswd_finish(&table);
    assert_int_equal(table.count, 1);
    assert_string_equal(text_string(&said), "3: it has no user name\n4: it has no password\n"
                                            "5: it has no user name\n6: it has no colon\n");
    text_deinit(&said);
    arena_deinit(&arena);
}

static void an_error_names_the_line_but_no_secret(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct htpasswd table = {0};
    struct error err;
    assert_false(htpasswd_add(&table, SLICE("a:b\nb:{SHA}topsecret\n"), &arena, NULL, &err));
    assert_string_equal(err.text, "line 2: malformed hash");
    arena_deinit(&arena);
}

static void headers(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        const char *wrong; /* NULL: username and password follow */
        const char *username, *password;
    } cases[] = {
        {"", "no basic auth provided", NULL, NULL},
        {"Bearer abc", "invalid authorization scheme prefix", NULL, NULL},
        {"Basic", "invalid authorization scheme prefix", NULL, NULL},
        {"Basic ", "invalid authorization format", NULL, NULL},
        {"Basic  YTpi", "invalid authorization format", NULL, NULL},
        {"Basic YTpi YTpi", "invalid authorization format", NULL, NULL},
        {"Basic YTp", "invalid authorization format", NULL, NULL},
        {"Basic YTpi====", "invalid authorization format", NULL, NULL},
        {"Basic ====", "invalid authorization format", NULL, NULL},
        {"Basic Y=pi", "invalid authorization format", NULL, NULL},
        {"Basic YT\xff\xfe", "invalid authorization format", NULL, NULL},
        {"Basic YWI=", "invalid authorization format", NULL, NULL}, /* ab */
        {"Basic YTpi", NULL, "a", "b"},
        {"bAsIc YTpi", NULL, "a", "b"},
        {"Basic Og==", NULL, "", ""},
        {"Basic YTo=", NULL, "a", ""},
        {"Basic YTpiOmM=", NULL, "a", "b:c"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t room[BASIC_ROOM_BYTES];
        struct basic_credentials read;
        const char *wrong = basic_credentials_read(slice_of_string(cases[i].header), room, &read);
        if (cases[i].wrong) {
            assert_non_null(wrong);
            assert_string_equal(wrong, cases[i].wrong);
            continue;
        }
        assert_null(wrong);
        assert_true(slice_is(read.username, cases[i].username));
        assert_true(slice_is(read.password, cases[i].password));
        assert_true(slice_is(read.raw, cases[i].header + 6));
    }
}

static void a_long_header_is_refused(void **state)
{
    (void)state;
    static char header[6 + BASIC_ENCODED_MAX + 4] = "Basic ";
    uint8_t room[BASIC_ROOM_BYTES];
    struct basic_credentials read;
    static const char colon[4] = {'O', 'g', '=', '='};
    memset(header + 6, 'O', BASIC_ENCODED_MAX + 4);
    memcpy(header + 6 + BASIC_ENCODED_MAX, colon, sizeof colon);
    assert_string_equal(basic_credentials_read(slice_of(header, sizeof header), room, &read),
                        "invalid authorization format");
    memcpy(header + 6 + BASIC_ENCODED_MAX - 4, colon, sizeof colon);
    assert_null(basic_credentials_read(slice_of(header, 6 + BASIC_ENCODED_MAX), room, &read));
}

static void what_is_printed_is_read(void **state)
{
    (void)state;
    struct arena arena = {0};
    uint8_t room[BASIC_ROOM_BYTES];
    struct basic_credentials read;
    const char *header = basic_credentials_print(&arena, "name", "pass:w\303\266rd");
    assert_null(basic_credentials_read(slice_of_string(header), room, &read));
    assert_true(slice_is(read.username, "name"));
    assert_true(slice_is(read.password, "pass:w\303\266rd"));
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(last_line_of_a_user_counts),
        cmocka_unit_test(lines_without_a_password_are_left_out),
        cmocka_unit_test(an_error_names_the_line_but_no_secret),
        cmocka_unit_test(headers),
        cmocka_unit_test(a_long_header_is_refused),
        cmocka_unit_test(what_is_printed_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
