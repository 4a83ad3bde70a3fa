/* Clients send random requests, which are merged whole and in parts. Their dictionaries stay,
 * grow, change in one table or start anew. Each result must have the same samples as its input,
 * with every index resolved by protobuf-c. */
#include "core/base/budget.h"
#include "core/base/hash.h"
#include "core/data/normalise.h"
#include "core/data/profiles_merge.h"
#include "core/data/scan.h"
#include "tests/unit/canonical_profiles.h"
#include "tests/unit/random_profiles.h"

#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

enum { CLIENTS = 3, STEPS = 3000 };

static struct budget budget;

/* ---- merging ---- */

/* Adds a line for each sample of a request or of a part of it. */
static void expect(struct text *expected, struct buffer *request, uint32_t first, uint32_t count)
{
    struct text all = {0};
    canonical_profiles(buffer_slice(request), CANONICAL_SAMPLES, &all);
    const char *from = text_string(&all);
    for (uint32_t i = 0; i < first; i++)
        from = strchr(from, '\n') + 1;
    const char *end = from;
    for (uint32_t i = 0; i < count; i++)
        end = strchr(end, '\n') + 1;
    text_append_slice(expected, slice_of(from, (size_t)(end - from)));
    text_deinit(&all);
}

struct scenario {
    struct profiles_merge *merge;
    struct text expected;
    uint32_t items;
};

static void check_finish(struct scenario *scenario)
{
    struct scan_result scan;
    struct error err = {0};
    struct text got = {0};
    assert_int_equal(profiles_merge_items(scenario->merge), scenario->items);
    struct buffer *result = profiles_merge_finish(scenario->merge);
    if (!scan_profiles(buffer_slice(result), &scan_limits_default, &scan, &err))
        fail_msg("%s", err.text);
    assert_false(normalise_needed(&scan));
    assert_int_equal(scan.items, scenario->items);
    canonical_profiles(buffer_slice(result), CANONICAL_SAMPLES, &got);
    assert_string_equal(text_string(&got), text_string(&scenario->expected));
    text_deinit(&got);
    buffer_unref(result);
    text_clear(&scenario->expected);
    scenario->items = 0;
}

static void add_whole(struct scenario *scenario, struct buffer *request, uint32_t items)
{
    expect(&scenario->expected, request, 0, items);
    profiles_merge_add(scenario->merge, request);
    scenario->items += items;
}

/* A result may also end between two parts. */
static void add_parts(struct scenario *scenario, struct buffer *request, uint32_t items)
{
    struct profiles_source *source = profiles_source_new(scenario->merge, request);
    assert_int_equal(profiles_source_items(source), items);
    for (uint32_t first = 0; first < items;) {
        uint32_t count = 1 + random_below(items - first);
        expect(&scenario->expected, request, first, count);
        profiles_source_add(source, first, count);
        scenario->items += count;
        first += count;
        if (random_below(3) == 0)
            check_finish(scenario);
    }
    profiles_source_free(source);
}

static void send(struct scenario *scenario, struct random_client *client)
{
    struct scan_result scan;
    struct error err = {0};
    random_client_change(client);
    struct buffer *request = random_request(client, &budget);
    if (!scan_profiles(buffer_slice(request), &scan_limits_default, &scan, &err))
        fail_msg("%s", err.text);
    assert_false(normalise_needed(&scan));
    if (random_below(5) == 0)
        add_parts(scenario, request, scan.items);
    else
        add_whole(scenario, request, scan.items);
    buffer_unref(request);
}

static void says_what_was_added(void **unused)
{
    (void)unused;
    struct random_client clients[CLIENTS] = {0};
    struct scenario scenario = {.merge = profiles_merge_new(&budget)};
    for (int i = 0; i < CLIENTS; i++)
        random_client_begin(&clients[i]);
    for (int step = 0, client = 0; step < STEPS; step++) {
        client = random_below(3) > 0 ? client
                                     : (int)random_below(CLIENTS); /* often the same client again */
        send(&scenario, &clients[client]);
        if (random_below(6) == 0)
            check_finish(&scenario);
    }
    check_finish(&scenario);
    profiles_merge_free(scenario.merge);
    text_deinit(&scenario.expected);
    for (int i = 0; i < CLIENTS; i++)
        random_client_deinit(&clients[i]);
    assert_int_equal(budget_used(&budget), 0);
}

int main(void)
{
    hash_init();
    scan_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_what_was_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
