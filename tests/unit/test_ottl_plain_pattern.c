/* Plain patterns, and what they find beside the same pattern that is not plain. */
#include "core/ottl/ottl_plain_pattern.h"

#include "core/ottl/ottl_regex.h"
#include "tests/unit/random_profiles.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void reads_what_is_just_a_text(void **state)
{
    static const struct {
        const char *pattern, *text; /* NULL: not plain */
        bool is_at_start, is_at_end;
    } rows[] = {
        {"a", "a", false, false},
        {"^runtime\\.", "runtime.", true, false},
        {"Method17$", "Method17", false, true},
        {"^a b/c:d$", "a b/c:d", true, true},
        {"\\(\\*T\\)", "(*T)", false, false},
        {"a\\-b", "a-b", false, false},
        {"", NULL, false, false},
        {"^", NULL, false, false},
        {"^$", NULL, false, false},
        {"a.b", NULL, false, false},
        {"a*", NULL, false, false},
        {"a|b", NULL, false, false},
        {"(a)", NULL, false, false},
        {"[a]", NULL, false, false},
        {"(?i)a", NULL, false, false},
        {"a{2}", NULL, false, false},
        {"a$b", NULL, false, false},
        {"a^", NULL, false, false},
        {"^^a", NULL, false, false},
        {"a$$", NULL, false, false},
        {"\\d", NULL, false, false},
        {"\\Qa\\E", NULL, false, false},
        {"a\\z", NULL, false, false},
        {"a\\", NULL, false, false},
        {"\xc3\xa4", NULL, false, false},
        {"a\nb", NULL, false, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ottl_plain_pattern plain;
        ottl_plain_pattern_read(&plain, slice_of_string(rows[i].pattern));
        if (!rows[i].text) {
            if (plain.text)
                fail_msg("%s is plain", rows[i].pattern);
            continue;
        }
        assert_non_null(plain.text);
        assert_true(slice_is(slice_of(plain.text, plain.size), rows[i].text));
        assert_int_equal(plain.is_at_start, rows[i].is_at_start);
        assert_int_equal(plain.is_at_end, rows[i].is_at_end);
        ottl_plain_pattern_deinit(&plain);
    }
}

static bool find(const char *pattern, struct ottl_matcher *matcher, struct slice text)
{
    struct error err = {0};
    bool found = false;
    struct ottl_regex *regex = ottl_regex_new(slice_of_string(pattern), &err);
    assert_non_null(regex);
    assert_true(ottl_regex_find(regex, matcher, text, &found, &err));
    ottl_regex_free(regex);
    return found;
}

/* Texts are not always valid UTF-8, and may have line ends. */
static struct slice random_text(char *room, uint32_t most)
{
    static const char characters[] = "aab.\n\xc3\xa4\xff";
    uint32_t size = random_below(most);
    for (uint32_t i = 0; i < size; i++)
        room[i] = characters[random_below(sizeof characters - 1)];
    return slice_of(room, size);
}

static void finds_what_the_regular_expression_finds(void **state)
{
    static const char *const texts[] = {"a", "b", "ab", "aa", "ba", "a\\.", "\\.b", "aab"};
    struct ottl_matcher *matcher = ottl_matcher_new();
    uint32_t found = 0;
    (void)state;
    for (int i = 0; i < 2000; i++) {
        char plain[32], other[32], room[8];
        const char *start = random_below(2) ? "^" : "", *end = random_below(2) ? "$" : "";
        const char *text = texts[random_below(sizeof texts / sizeof *texts)];
        snprintf(plain, sizeof plain, "%s%s%s", start, text, end);
        snprintf(other, sizeof other, "%s(?:%s)%s", start, text, end);
        struct slice in = random_text(room, sizeof room);
        bool is_found = find(plain, matcher, in);
        if (is_found != find(other, matcher, in))
            fail_msg("%s in \"%.*s\": %d", plain, (int)in.size, (const char *)in.data, is_found);
        found += is_found;
    }
    assert_in_range(found, 50, 1900);
    ottl_matcher_free(matcher);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_is_just_a_text),
        cmocka_unit_test(finds_what_the_regular_expression_finds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
