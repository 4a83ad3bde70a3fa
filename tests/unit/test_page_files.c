#include "extensions/explore/page_files.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { PAGE_BYTES_MAX = 150 * 1024 };

static struct slice file_at(const char *path)
{
    const char *type = NULL;
    struct slice file = explore_page_file(slice_of_string(path), &type);
    assert_true(file.data == NULL || type != NULL);
    return file;
}

static bool contains(struct slice text, const char *part)
{
    return memmem(text.data, text.size, part, strlen(part)) != NULL;
}

static void expect_type(const char *path, const char *expected)
{
    const char *type = NULL;
    assert_non_null(explore_page_file(slice_of_string(path), &type).data);
    assert_string_equal(type, expected);
}

static void files_have_their_type(void **state)
{
    (void)state;
    expect_type("/", "text/html; charset=utf-8");
    expect_type("/index.html", "text/html; charset=utf-8");
    expect_type("/app.css", "text/css; charset=utf-8");
    expect_type("/main.js", "text/javascript; charset=utf-8");
    expect_type("/icon.svg", "image/svg+xml");
    assert_ptr_equal(file_at("/").data, file_at("/index.html").data);
}

static void other_paths_have_no_file(void **state)
{
    (void)state;
    static const char *const paths[] = {"",         "index.html", "//",        "/../main.js",
                                        "/main.j",  "/MAIN.JS",   "/main.js/", "/main.js?",
                                        "/page.css"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        assert_null(file_at(paths[i]).data);
}

static void the_page_is_small(void **state)
{
    (void)state;
    size_t total = 0;
    for (size_t i = 0; explore_page_path(i); i++)
        total += file_at(explore_page_path(i)).size;
    assert_in_range(total, 1, PAGE_BYTES_MAX);
}

/* What the policy forbids, or what would weaken it. */
static void nothing_is_inline(void **state)
{
    (void)state;
    static const char *const forbidden[] = {
        "<style",
        " style=\"",
        "<script>",
        "javascript:",
        "innerHTML",
        "outerHTML",
        "eval(",
        "new Function",
        "document.write",
        "@import",
        "url(",
        "insertAdjacentHTML",
        "setAttribute(\"style\"",
    };
    for (size_t i = 0; explore_page_path(i); i++)
        for (size_t f = 0; f < sizeof forbidden / sizeof forbidden[0]; f++)
            if (contains(file_at(explore_page_path(i)), forbidden[f]))
                fail_msg("%s has %s", explore_page_path(i), forbidden[f]);
    struct slice html = file_at("/");
    assert_false(contains(html, " onclick") || contains(html, " onload"));
}

static bool begins_with(struct slice text, const char *prefix)
{
    size_t size = strlen(prefix);
    return text.size >= size && memcmp(text.data, prefix, size) == 0;
}

/* Every URL with a host is a name of XML, or this machine, as an example for people. */
static void nothing_comes_from_elsewhere(void **state)
{
    (void)state;
    for (size_t i = 0; explore_page_path(i); i++) {
        struct slice rest = file_at(explore_page_path(i));
        const uint8_t *found;
        while ((found = memmem(rest.data, rest.size, "://", 3)) != NULL) {
            rest.size -= (size_t)(found + 3 - rest.data);
            rest.data = found + 3;
            if (!begins_with(rest, "www.w3.org/2000/svg") && !begins_with(rest, "localhost"))
                fail_msg("%s: %.40s", explore_page_path(i), (const char *)found);
        }
        assert_false(contains(file_at(explore_page_path(i)), "\"//"));
    }
}

static void the_policy_is_strict(void **state)
{
    (void)state;
    assert_null(strstr(EXPLORE_PAGE_POLICY, "unsafe"));
    assert_null(strstr(EXPLORE_PAGE_POLICY, "*"));
    assert_non_null(strstr(EXPLORE_PAGE_POLICY, "default-src 'none'"));
    assert_non_null(strstr(EXPLORE_PAGE_POLICY, "frame-ancestors 'none'"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_have_their_type),
        cmocka_unit_test(other_paths_have_no_file),
        cmocka_unit_test(the_page_is_small),
        cmocka_unit_test(nothing_is_inline),
        cmocka_unit_test(nothing_comes_from_elsewhere),
        cmocka_unit_test(the_policy_is_strict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
