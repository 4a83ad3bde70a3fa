#include "core/base/memory.h"
#include "core/ottl/ottl_regex.h"
#include "tests/unit/expect_text.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* Returns "yes", "no", or the error. */
static const char *find(const char *pattern, const char *text, struct error *err)
{
    bool found = false;
    struct ottl_regex *regex = ottl_regex_new(slice_of_string(pattern), err);
    if (!regex)
        return err->text;
    struct ottl_matcher *matcher = ottl_matcher_new();
    bool ok = ottl_regex_find(regex, matcher, slice_of_string(text), &found, err);
    ottl_matcher_free(matcher);
    ottl_regex_free(regex);
    if (!ok)
        return err->text;
    return found ? "yes" : "no";
}

static const struct row {
    const char *pattern;
    const char *text;
    const char *wanted;
} rows[] = {
    {"", "x", "yes"},
    {"^/(health|metrics)$", "/health", "yes"},
    {"^/(health|metrics)$", "/healthy", "no"},
    {"^/health(/|$)", "/health/x", "yes"},
    {"(?i).*password.*", "my_PassWord", "yes"},
    {"\\b(?:\\d[ -]*?){13,16}\\b", "card 4111 1111 1111 1111.", "yes"},
    /* where RE2 and PCRE2 differ */
    {"a$", "a\n", "no"},
    {"(?m)a$", "a\nb", "yes"},
    {"(?m)^$", "a\n", "yes"},
    {"^.$", "\r", "yes"},
    {"^.$", "\n", "no"},
    {"(?s)^.$", "\n", "yes"},
    {"\\s", "\v", "no"},
    {"[\\s]", "\v", "no"},
    {"\\S", "\v", "yes"},
    {"[\\S]", "\v", "yes"},
    {"[^\\s]", " ", "no"},
    {"[[:space:]]", "\v", "yes"},
    {"\\v", "\n", "no"},
    {"\\v", "\v", "yes"},
    {"^\\d$", "\xd9\xa1", "no"},
    {"^\\w$", "\xc3\xa4", "no"},
    {"(?i)^\xc3\xa4$", "\xc3\x84", "yes"},
    {"^\\pL\\p{Greek}\\p{^Greek}\\PN$", "\xc3\xa4\xce\xb1xx", "yes"},
    {"^\\123\\07\\x41\\x{1F600}$", "S\aA\xf0\x9f\x98\x80", "yes"},
    {"^\\Qa.b*\\E+$", "a.b***", "yes"},
    {"^\\Qa.b", "aXb", "no"},
    {"(?P<n>a)(?<m>b)(?P<1x>c)", "abc", "yes"},
    {"(?U)^a+(.)", "aab", "yes"},
    {"^a{,2}$", "a{,2}", "yes"},
    {"^a{2}$", "aa", "yes"},
    {"^{}x{y}$", "{}x{y}", "yes"},
    {"^[]a-c^-]+$", "]b^-", "yes"},
    {"^[^]]$", "x", "yes"},
    {"^[a\\-z\\]]+$", "-]z", "yes"},
    {"^[[.a.]]$", "a]", "yes"},
    {"^[\\x41-\\x43\\pN]+$", "AC7", "yes"},
    {"\\z", "x", "yes"},
    {"(a|)(?:)b*?", "", "yes"},
    {"^*$+", "x", "yes"},
    {"a\\.b\\/c\\_\\-", "a.b/c_-", "yes"},
    /* what RE2 refuses */
    {"(", "", "error parsing regexp: missing closing ): `(`"},
    {")", "", "error parsing regexp: unexpected ): `)`"},
    {"[a", "", "error parsing regexp: missing closing ]: `[a`"},
    {"[z-a]", "", "error parsing regexp: invalid character class range: `z-a`"},
    {"[[:foo:]]", "", "error parsing regexp: invalid character class range: `[:foo:]`"},
    {"*a", "",
     "error parsing regexp: missing argument to repetition operator: `*`; a pattern is no glob: "
     "any text is .*"},
    {"a|*", "", "error parsing regexp: missing argument to repetition operator: `*`"},
    {"(?i)*", "", "error parsing regexp: missing argument to repetition operator: `*`"},
    {"a**", "", "error parsing regexp: invalid nested repetition operator: `**`"},
    {"a++", "", "error parsing regexp: invalid nested repetition operator: `++`"},
    {"a{2}{3}", "", "error parsing regexp: invalid nested repetition operator: `{2}{`"},
    {"a{1001}", "", "error parsing regexp: invalid repeat count: `{1001}`"},
    {"a{3,2}", "", "error parsing regexp: invalid repeat count: `{3,2}`"},
    {"(?=a)", "",
     "error parsing regexp: invalid or unsupported Perl syntax: `(?=`; RE2 has no lookahead"},
    {"(?<!a)", "", "error parsing regexp: invalid named capture: `(?<`; RE2 has no lookbehind"},
    {"(?<>a)", "", "error parsing regexp: invalid named capture: `(?<`"},
    {"(?>a)", "",
     "error parsing regexp: invalid or unsupported Perl syntax: `(?>`; RE2 has no atomic "
     "groups"},
    {"(?|a)", "", "error parsing regexp: invalid or unsupported Perl syntax: `(?|`"},
    {"(?#a)", "", "error parsing regexp: invalid or unsupported Perl syntax: `(?#`"},
    {"(?x)a", "", "error parsing regexp: invalid or unsupported Perl syntax: `(?x`"},
    {"(?'n'a)", "", "error parsing regexp: invalid or unsupported Perl syntax: `(?'`"},
    {"(*UTF)", "", "error parsing regexp: missing argument to repetition operator: `*`"},
    {"(a)\\1", "",
     "error parsing regexp: invalid escape sequence: `\\`; RE2 has no backreferences"},
    {"\\K", "", "error parsing regexp: invalid escape sequence: `\\K`"},
    {"\\Z", "", "error parsing regexp: invalid escape sequence: `\\Z`"},
    {"\\h", "", "error parsing regexp: invalid escape sequence: `\\h`"},
    {"\\R", "", "error parsing regexp: invalid escape sequence: `\\R`"},
    {"\\C", "", "error parsing regexp: invalid escape sequence: `\\C`"},
    {"\\e", "", "error parsing regexp: invalid escape sequence: `\\e`"},
    {"\\cA", "", "error parsing regexp: invalid escape sequence: `\\c`"},
    {"\\N", "", "error parsing regexp: invalid escape sequence: `\\N`"},
    {"\\X", "", "error parsing regexp: invalid escape sequence: `\\X`"},
    {"\\G", "", "error parsing regexp: invalid escape sequence: `\\G`"},
    {"[\\b]", "", "error parsing regexp: invalid escape sequence: `\\b`"},
    {"\\x4", "", "error parsing regexp: invalid escape sequence: `\\x4`"},
    {"a\\", "", "error parsing regexp: trailing backslash at end of expression: `\\`"},
    {"\xff", "", "error parsing regexp: invalid UTF-8"},
};

static void patterns_mean_what_they_mean_in_re2(void **state)
{
    struct error err;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_text_of(rows[i].pattern, find(rows[i].pattern, rows[i].text, &err), rows[i].wanted);
}

static char *many(char c, size_t count)
{
    char *text = memory_alloc(count + 2);
    memset(text, c, count);
    text[count] = 'b';
    text[count + 1] = '\0';
    return text;
}

static void too_many_steps_are_an_error(void **state)
{
    struct error err;
    (void)state;
    char *text = many('a', 60);
    expect_text(find("^(?:a+)+$", text, &err),
                "the regular expression takes too many steps for a text of 61 bytes");
    free(text);
    text = many('a', 1 << 20); /* long, but simple */
    expect_text(find("^[ac]+b$", text, &err), "yes");
    expect_text(find("c$", text, &err), "no");
    free(text);
}

/* A match of a few thousand steps may be repeated, but not for each of many texts. */
static void repeated_matches_are_limited(void **state)
{
    struct error err;
    (void)state;
    bool found;
    unsigned failed = 0;
    char *text = many('a', 12);
    struct ottl_regex *regex = ottl_regex_new(SLICE("^(?:a+)+$"), &err);
    struct ottl_matcher *matcher = ottl_matcher_new();
    for (int i = 0; i < 2 * REGEX_RETRIES; i++)
        failed += !ottl_regex_find(regex, matcher, slice_of_string(text), &found, &err);
    assert_int_equal(failed, REGEX_RETRIES);
    ottl_matcher_begin(matcher);
    assert_true(ottl_regex_find(regex, matcher, slice_of_string(text), &found, &err));
    assert_false(found);
    ottl_matcher_free(matcher);
    ottl_regex_free(regex);
    free(text);
}

/* PCRE2 counts steps from each place of a text anew: 65,536 * 2,048 of them. */
static void steps_are_those_of_the_whole_text(void **state)
{
    static const char word[] = "QQQQQQQQQQQw+\\s?)*!?QQQwor";
    struct error err;
    (void)state;
    bool found;
    struct text text = {0};
    while (text.size < 65536)
        text_append(&text, word);
    struct ottl_regex *regex = ottl_regex_new(SLICE("(\\w+\\s?)*!?$"), &err);
    struct ottl_regex *other = ottl_regex_new(SLICE("(w+o)+r!?$|x$"), &err);
    struct ottl_regex *square = ottl_regex_new(SLICE("(.*)(.*!)*[0-9](.*)"), &err);
    struct ottl_matcher *matcher = ottl_matcher_new();
    struct slice all = slice_of(text_string(&text), text.size);
    assert_false(ottl_regex_find(regex, matcher, all, &found, &err));
    expect_text(err.text, "the regular expression takes too many steps for a text of 65546 bytes");
    assert_false(ottl_regex_find(square, matcher, all, &found, &err)); /* of n^2 characters */
    assert_true(ottl_regex_find(other, matcher, all, &found, &err));
    assert_true(found);
    ottl_matcher_free(matcher);
    ottl_regex_free(regex);
    ottl_regex_free(other);
    ottl_regex_free(square);
    text_deinit(&text);
}

/* From each of n places, a run of n letters is read to its end: n^2 characters, which take days
 * unless they count. */
static void runs_from_each_place_count(void **state)
{
    static const char *const patterns[] = {"\\w+\\s",         "[a-z]+[0-9]",  "a+\\d",
                                           "(\\w+)\\s(\\d+)", "[^x]*x[^y]*y", "a*b$\\d",
                                           "\\w+?\\s",        "\\w{2,}\\s"};
    struct error err;
    (void)state;
    bool found;
    char *text = many('a', 1 << 20);
    struct ottl_matcher *matcher = ottl_matcher_new();
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        struct ottl_regex *regex = ottl_regex_new(slice_of_string(patterns[i]), &err);
        assert_non_null(regex);
        if (ottl_regex_find(regex, matcher, slice_of_string(text), &found, &err))
            assert_false(found);
        ottl_regex_free(regex);
    }
    ottl_matcher_free(matcher);
    free(text);
}

/* With few steps from each place, the match is still the first one, at its place. */
static void a_second_attempt_finds_the_same(void **state)
{
    struct error err;
    struct ottl_match match;
    (void)state;
    struct text text = {0};
    while (text.size < 1 << 20)
        text_append(&text, "a");
    text_append(&text, "bcc");
    struct ottl_regex *regex = ottl_regex_new_capturing(SLICE("((?:a|b)+)(c)"), &err);
    struct ottl_matcher *matcher = ottl_matcher_new();
    size_t from = text.size - 1000;
    assert_true(ottl_regex_match(regex, matcher, slice_of(text_string(&text), text.size), from,
                                 &match, &err));
    assert_int_equal(match.count, 3);
    assert_int_equal(match.spans[0], from);
    assert_int_equal(match.spans[1], text.size - 1);
    assert_int_equal(match.spans[4], text.size - 2);
    ottl_matcher_free(matcher);
    ottl_regex_free(regex);
    text_deinit(&text);
}

/* Returns the number of matches, -1 if one takes too many steps. */
static int count_matches(const char *pattern, const struct text *text)
{
    struct error err;
    struct ottl_match match = {.count = 1};
    struct ottl_regex *regex = ottl_regex_new_capturing(slice_of_string(pattern), &err);
    struct ottl_matcher *matcher = ottl_matcher_new();
    struct slice all = slice_of(text_string(text), text->size);
    int count = 0;
    for (size_t from = 0; match.count > 0 && count >= 0; from = match.spans[1]) {
        if (!ottl_regex_match(regex, matcher, all, from, &match, &err))
            count = -1;
        else
            count += match.count > 0;
    }
    ottl_matcher_free(matcher);
    ottl_regex_free(regex);
    return count;
}

/* PCRE2 looks for invalid UTF-8 in the rest of a text at each match: n^2 bytes, which take minutes,
 * unless it is done once. A text that has some runs into a limit instead. */
static void many_matches_of_one_text(void **state)
{
    (void)state;
    struct text text = {0};
    while (text.size < 1 << 19)
        text_append(&text, "/1\xc3\xa4");
    int count = (int)(text.size / 4);
    assert_int_equal(count_matches("/[0-9]+", &text), count);
    assert_int_equal(count_matches("(\\w)\\b*", &text), count);
    text_append(&text, "\xff");
    assert_int_equal(count_matches("/[0-9]+", &text), -1);
    assert_int_equal(count_matches("/[0-9]", &text), count);
    text_clear(&text);
    text_append(&text, "/1\xff/2");
    assert_int_equal(count_matches("(?:/[0-9]+){1,}(?:a*b*c*d*e*f*g*h*i*)*", &text), 2);
    text_deinit(&text);
}

/* Each of n matches looks at the rest of the text for an end that is not there: n^2 steps. All
 * matches of a text together have a limit. */
static void steps_of_all_matches_count(void **state)
{
    (void)state;
    struct text text = {0};
    while (text.size < 2000)
        text_append(&text, "a b ");
    assert_int_equal(count_matches("(\\w)(?: .*end)?", &text), 1000);
    while (text.size < 1 << 16)
        text_append(&text, "a b ");
    assert_int_equal(count_matches("(\\w)(?: .*end)?", &text), -1);
    assert_int_equal(count_matches("\\w \\w+(?: [c-d]*end)?", &text), text.size / 4);
    text_deinit(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_mean_what_they_mean_in_re2),
        cmocka_unit_test(too_many_steps_are_an_error),
        cmocka_unit_test(repeated_matches_are_limited),
        cmocka_unit_test(steps_are_those_of_the_whole_text),
        cmocka_unit_test(runs_from_each_place_count),
        cmocka_unit_test(a_second_attempt_finds_the_same),
        cmocka_unit_test(many_matches_of_one_text),
        cmocka_unit_test(steps_of_all_matches_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
