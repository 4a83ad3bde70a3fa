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
    {"*a", "", "error parsing regexp: missing argument to repetition operator: `*`"},
    {"a|*", "", "error parsing regexp: missing argument to repetition operator: `*`"},
    {"(?i)*", "", "error parsing regexp: missing argument to repetition operator: `*`"},
    {"a**", "", "error parsing regexp: invalid nested repetition operator: `**`"},
    {"a++", "", "error parsing regexp: invalid nested repetition operator: `++`"},
    {"a{2}{3}", "", "error parsing regexp: invalid nested repetition operator: `{2}{`"},
    {"a{1001}", "", "error parsing regexp: invalid repeat count: `{1001}`"},
    {"a{3,2}", "", "error parsing regexp: invalid repeat count: `{3,2}`"},
    {"(?=a)", "", "error parsing regexp: invalid or unsupported Perl syntax: `(?=`"},
    {"(?<!a)", "", "error parsing regexp: invalid named capture: `(?<`"},
    {"(?>a)", "", "error parsing regexp: invalid or unsupported Perl syntax: `(?>`"},
    {"(?|a)", "", "error parsing regexp: invalid or unsupported Perl syntax: `(?|`"},
    {"(?#a)", "", "error parsing regexp: invalid or unsupported Perl syntax: `(?#`"},
    {"(?x)a", "", "error parsing regexp: invalid or unsupported Perl syntax: `(?x`"},
    {"(?'n'a)", "", "error parsing regexp: invalid or unsupported Perl syntax: `(?'`"},
    {"(*UTF)", "", "error parsing regexp: missing argument to repetition operator: `*`"},
    {"(a)\\1", "", "error parsing regexp: invalid escape sequence: `\\`"},
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_mean_what_they_mean_in_re2),
        cmocka_unit_test(too_many_steps_are_an_error),
        cmocka_unit_test(repeated_matches_are_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
