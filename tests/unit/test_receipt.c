#include "core/pipeline/receipt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct watched {
    struct receipt receipt; /* first */
    bool is_gone;
    unsigned settled;
    struct verdict verdict;
};

static void on_settled(struct receipt *receipt, const struct verdict *verdict)
{
    struct watched *watched = (struct watched *)receipt;
    watched->settled++;
    watched->verdict = *verdict;
}

static struct verdict verdict_by_name(const char *name)
{
    if (strcmp(name, "ok") == 0)
        return verdict_ok;
    if (strncmp(name, "later", 5) == 0)
        return verdict_try_later(GRPC_UNAVAILABLE, 1000, "%s", name);
    if (strncmp(name, "full", 4) == 0) /* without a delay, it is permanent */
        return verdict_of(GRPC_RESOURCE_EXHAUSTED, "%s", name);
    return verdict_of(GRPC_INVALID_ARGUMENT, "%s", name);
}

static const struct {
    const char *verdicts[4];
    const char *expected;
} cases[] = {
    {{"ok"}, ""},
    {{"bad"}, "bad"},
    {{"later"}, "later"},
    {{"ok", "ok", "ok", "ok"}, ""},
    {{"ok", "bad", "ok"}, "bad"},
    {{"ok", "later", "ok"}, "later"},
    /* of equal ones, the first */
    {{"bad1", "bad2"}, "bad1"},
    {{"later1", "later2"}, "later1"},
    {{"full", "bad"}, "full"},
    /* a permanent refusal outweighs "try later", in any order */
    {{"later", "bad"}, "bad"},
    {{"bad", "later"}, "bad"},
    {{"later", "full", "ok"}, "full"},
};

static void it_settles_once_with_the_worst(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct watched watched = {0};
        receipt_init(&watched.receipt, on_settled);
        uint32_t parts = 0;
        while (parts < 4 && cases[i].verdicts[parts])
            parts++;
        receipt_add_parts(&watched.receipt, parts - 1);
        for (uint32_t part = 0; part < parts; part++) {
            assert_int_equal(watched.settled, 0);
            struct verdict verdict = verdict_by_name(cases[i].verdicts[part]);
            receipt_settle(&watched.receipt, &verdict);
        }
        assert_int_equal(watched.settled, 1);
        assert_string_equal(watched.verdict.text, cases[i].expected);
        assert_int_equal(verdict_is_ok(&watched.verdict), cases[i].expected[0] == '\0');
    }
}

static void the_delay_comes_with_the_verdict(void **state)
{
    (void)state;
    struct watched watched = {0};
    receipt_init(&watched.receipt, on_settled);
    struct verdict later = verdict_try_later(GRPC_UNAVAILABLE, 7, "busy");
    receipt_settle(&watched.receipt, &later);
    assert_int_equal(watched.verdict.retry_after_ns, 7);
    assert_int_equal(watched.verdict.code, GRPC_UNAVAILABLE);
}

/* A fan-out behind a fan-out: parts are added after others have settled. */
static void parts_can_be_added_on_the_way(void **state)
{
    (void)state;
    struct watched watched = {0};
    receipt_init(&watched.receipt, on_settled);
    receipt_add_parts(&watched.receipt, 1);
    receipt_settle(&watched.receipt, &verdict_ok);
    receipt_add_parts(&watched.receipt, 2);
    receipt_settle(&watched.receipt, &verdict_ok);
    receipt_settle(&watched.receipt, &verdict_ok);
    assert_int_equal(watched.settled, 0);
    receipt_settle(&watched.receipt, &verdict_ok);
    assert_int_equal(watched.settled, 1);
}

static char freed_with[300];

static void on_settled_free(struct receipt *receipt, const struct verdict *verdict)
{
    free(receipt);
    /* The verdict outlives the receipt. */
    snprintf(freed_with, sizeof freed_with, "%s", verdict->text);
}

static void settling_may_free_the_receipt(void **state)
{
    (void)state;
    struct receipt *receipt = malloc(sizeof *receipt);
    receipt_init(receipt, on_settled_free);
    struct verdict verdict = verdict_of(GRPC_INTERNAL, "gone");
    receipt_settle(receipt, &verdict);
    assert_string_equal(freed_with, "gone");
}

static bool say_abandoned(const struct receipt *receipt)
{
    return ((const struct watched *)receipt)->is_gone;
}

static void what_a_part_has_taken_is_not_abandoned(void **state)
{
    (void)state;
    struct watched watched = {0};
    receipt_init(&watched.receipt, on_settled);
    assert_false(receipt_is_abandoned(NULL));
    assert_false(receipt_is_abandoned(&watched.receipt));
    watched.receipt.is_abandoned = say_abandoned;
    assert_false(receipt_is_abandoned(&watched.receipt));
    watched.is_gone = true;
    assert_true(receipt_is_abandoned(&watched.receipt));
    receipt_add_parts(&watched.receipt, 2);
    struct verdict bad = verdict_by_name("bad");
    receipt_settle(&watched.receipt, &bad);
    assert_true(receipt_is_abandoned(&watched.receipt));
    receipt_settle(&watched.receipt, &verdict_ok);
    assert_false(receipt_is_abandoned(&watched.receipt));
    receipt_settle(&watched.receipt, &verdict_ok);
}

static void count_receipt(const struct receipt *receipt, void *context)
{
    (void)receipt;
    ++*(unsigned *)context;
}

static void a_group_stands_for_its_members(void **state)
{
    (void)state;
    struct receipt *members[3];
    struct receipt_group *inner = NULL, *outer = NULL;
    unsigned visited = 0;
    for (int i = 0; i < 3; i++) {
        members[i] = malloc(sizeof(struct receipt));
        receipt_init(members[i], on_settled_free);
    }
    inner = receipt_group_add(receipt_group_add(inner, members[0]), members[1]);
    outer = receipt_group_add(receipt_group_add(outer, receipt_of_group(inner)), members[2]);
    receipt_visit(NULL, count_receipt, &visited);
    assert_int_equal(visited, 0);
    receipt_visit(members[0], count_receipt, &visited);
    assert_int_equal(visited, 1);
    receipt_visit(receipt_of_group(outer), count_receipt, &visited);
    assert_int_equal(visited, 4);
    receipt_settle(receipt_of_group(outer), &verdict_ok);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_settles_once_with_the_worst),
        cmocka_unit_test(the_delay_comes_with_the_verdict),
        cmocka_unit_test(parts_can_be_added_on_the_way),
        cmocka_unit_test(settling_may_free_the_receipt),
        cmocka_unit_test(what_a_part_has_taken_is_not_abandoned),
        cmocka_unit_test(a_group_stands_for_its_members),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
