/* Conditions that read only the stacks of samples are evaluated once for each stack or name. What
 * is left must be what is left by the same condition with a term that reads something else of each
 * sample, and is always true. */
#include "core/base/hash.h"
#include "core/data/scan.h"
#include "tests/unit/pipeline_fixture.h"
#include "tests/unit/random_profiles.h"

#include <setjmp.h>
#include <stdio.h>

#include <cmocka.h>

extern const struct component_type filter_processor_type;

enum { REQUESTS = 400 };

static const char *const conditions[] = {
    "profilesample.leaf.function == \"\"",
    "profilesample.leaf.function != \"\"",
    "StackContains(\"\")",
    "IsMatch(profilesample.leaf.function, \"[05]s$\")",
    "profilesample.leaf.function == profilesample.leaf.file or IsMatch(profilesample.leaf.file, "
    "\"[1-3]s$\")",
    "StackContains(\"1[0-4]s$\")",
    "StackContains(\"7s$\") and profilesample.stack.depth < 4",
    "profilesample.stack.depth > 2 and not StackContains(\"[0-6]s$\")",
    "profilesample.leaf.mapping != \"\" and profilesample.leaf.function != \"\"",
    "Len(profilesample.stack.functions) == 1 or Concat([profilesample.leaf.function], \"\") == "
    "\"\"",
};

static struct request {
    struct buffer *bytes;
    uint32_t items;
} requests[REQUESTS];

static int make_requests(void **state)
{
    struct random_client client = {.texts_are_unique = true, .shapes_differ = true};
    (void)state;
    random_client_begin(&client);
    for (int i = 0; i < REQUESTS; i++) {
        struct scan_result found;
        struct error err = {0};
        random_client_change(&client);
        requests[i].bytes = random_request(&client, NULL);
        if (!scan_profiles(buffer_slice(requests[i].bytes), &scan_limits_default, &found, &err))
            return -1;
        requests[i].items = found.items;
    }
    random_client_deinit(&client);
    return 0;
}

static int free_requests(void **state)
{
    (void)state;
    for (int i = 0; i < REQUESTS; i++)
        buffer_unref(requests[i].bytes);
    return 0;
}

static void filter_all(struct fixture *f, const char *condition, const char *term)
{
    static struct probe probes[REQUESTS];
    struct text yaml = {0};
    text_printf(&yaml, "processors: {filter: {profile_conditions: ['(%s)%s']}}", condition, term);
    fixture_init(f, 1);
    struct fixture_place *place = fixture_place(f, &filter_processor_type, "filter",
                                                text_string(&yaml), "profiles", SIGNAL_PROFILES);
    for (int i = 0; i < REQUESTS; i++)
        fixture_consume(f, place->nodes[0], buffer_slice(requests[i].bytes), requests[i].items,
                        &probes[i]);
    text_deinit(&yaml);
}

static void assert_same(const struct fixture *a, const struct fixture *b)
{
    assert_true(a->recorder.count > 0);
    assert_int_equal(a->recorder.count, b->recorder.count);
    for (size_t i = 0; i < a->recorder.count; i++) {
        const struct recorded *one = &a->recorder.items[i], *other = &b->recorder.items[i];
        assert_int_equal(one->items, other->items);
        assert_int_equal(one->size, other->size);
        assert_memory_equal(one->bytes, other->bytes, one->size);
    }
}

static uint64_t total_items(const struct fixture *f)
{
    uint64_t items = 0;
    for (size_t i = 0; i < f->recorder.count; i++)
        items += f->recorder.items[i].items;
    return items;
}

static void verdicts_on_stacks_are_those_on_samples(void **state)
{
    (void)state;
    struct fixture all, f, other;
    filter_all(&all, "profilesample.stack.depth < 0", "");
    for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++) {
        filter_all(&f, conditions[i], "");
        filter_all(&other, conditions[i], " and profilesample.link_index >= 0");
        print_message("%s: %lu of %lu samples are left\n", conditions[i],
                      (unsigned long)total_items(&f), (unsigned long)total_items(&all));
        assert_same(&f, &other);
        assert_true(total_items(&f) < total_items(&all));
        fixture_deinit(&other);
        fixture_deinit(&f);
    }
    fixture_deinit(&all);
}

int main(void)
{
    hash_init();
    scan_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts_on_stacks_are_those_on_samples),
    };
    return cmocka_run_group_tests(tests, make_requests, free_requests);
}
