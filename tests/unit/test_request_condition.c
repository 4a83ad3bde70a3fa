#include "connectors/routing/request_condition.h"
#include "tests/unit/expect_text.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define FORMAT "condition must have format 'request[\"<name>\"] <comparator> "

/* {condition, "yes" or "no" for a request with the header x-tenant: acme, or the error} */
static const struct row {
    const char *text;
    const char *wanted;
} rows[] = {
    {"request[\"X-Tenant\"] == \"acme\"", "yes"},
    {" request[\"x-tenant\"]==\"acme\" ", "yes"},
    {"request[\"x-tenant\"] == \"Acme\"", "no"},
    {"request[\"x-tenant\"] != \"acme\"", "no"},
    {"request[\"x-tenant\"] != \"\"", "yes"},
    {"request[\"other\"] == \"acme\"", "no"},
    {"request[\"other\"] != \"acme\"", "no"},
    {"request[\"x-tenant\"] == \"a\"b\"", "no"},
    {"request[\"x-tenant\"]", "condition does not contain a valid comparator"},
    {"request[\"x-tenant\"] = \"acme\"", "condition does not contain a valid comparator"},
    {"request[\"a\"] == \"b\" or request[\"c\"] != \"d\"",
     "condition contains multiple comparators"},
    {"request[x-tenant] == \"acme\"", FORMAT "<value>'"},
    {"attributes[\"a\"] == \"acme\"", FORMAT "<value>'"},
    {"request[\"x-tenant\"] == acme", FORMAT "\"<value>\"'"},
    {"request[\"x-tenant\"] == \"", FORMAT "\"<value>\"'"},
};

static void conditions_are_parsed_and_matched(void **state)
{
    struct context_entry entries[] = {{"x-tenant", "acme"}};
    struct context context = {.entries = entries, .entry_count = 1};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct arena arena;
        struct request_condition condition;
        struct error err;
        const char *got = err.text;
        arena_init(&arena, NULL);
        if (request_condition_parse(rows[i].text, &arena, &condition, &err)) {
            got = request_condition_matches(&condition, &context) ? "yes" : "no";
            assert_false(request_condition_matches(&condition, NULL));
        }
        expect_text_of(rows[i].text, got, rows[i].wanted);
        arena_deinit(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conditions_are_parsed_and_matched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
