/* What nothing refers to any more must not leave: checked with random requests, from which samples
 * and attributes are removed at random, and with small ones byte by byte. */
#include "core/base/hash.h"
#include "core/data/prune.h"
#include "core/pipeline/items.h"
#include "tests/unit/canonical_profiles.h"
#include "tests/unit/profiles_fixture.h"
#include "tests/unit/random_profiles.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct slice bytes_of(const struct text *text)
{
    return slice_of(text->data, text->size);
}

static struct text content(struct batch *batch)
{
    struct text bytes = profiles_fixture_sent(batch), out = {0};
    canonical_profiles(bytes_of(&bytes), CANONICAL_TEXT, &out);
    text_deinit(&bytes);
    return out;
}

/* ---- random requests ---- */

static enum attribute_decision decide_at_random(void *context, struct slice key,
                                                struct slice *value)
{
    struct batch *batch = context;
    char text[16];
    (void)key;
    switch (random_below(4)) {
    case 0:
        return ATTRIBUTE_REMOVE;
    case 1:
        snprintf(text, sizeof text, "v%uv", 1000000000 + random_below(1000));
        *value = any_value_encode(
            &batch->arena, any_value_string(arena_copy(&batch->arena, slice_of_string(text))));
        return ATTRIBUTE_SET;
    default:
        return ATTRIBUTE_KEEP;
    }
}

/* Removes about `share` of 32 samples, and changes attributes of others. */
static void change_at_random(struct batch *batch, uint32_t share)
{
    struct attribute_rule rule = {decide_at_random, batch};
    struct items items = items_of(batch);
    while (items_next(&items)) {
        if (random_below(32) < share)
            item_remove(&items);
        else if (random_below(3) == 0)
            item_edit_attributes(&items, &rule);
        else if (random_below(9) == 0)
            item_set_attribute(&items, SLICE("s1000s"),
                               any_value_encode(&batch->arena, any_value_int(7)));
    }
}

/* Whether a unique text (random_profiles.h) is part of what the request says, as a name or as a
 * value, which the content has in hex. */
static bool is_said(struct slice text, const char *content)
{
    struct text wanted = {0};
    if (text.data[0] == 's')
        text_append_slice(&wanted, text);
    else
        text_append_hex(&wanted, text);
    bool found = strstr(content, text_string(&wanted)) != NULL;
    text_deinit(&wanted);
    return found;
}

/* Returns the next unique text; an empty slice: there is none. */
static struct slice next_text(struct slice *rest)
{
    while (rest->size > 0) {
        const uint8_t *at = rest->data, *end = at + rest->size;
        const uint8_t *close = at + 1;
        while (close < end && *close >= '0' && *close <= '9')
            close++;
        *rest = slice_of(close, (size_t)(end - close));
        if ((*at == 's' || *at == 'v') && close > at + 1 && close < end && *close == *at)
            return slice_of(at, (size_t)(close + 1 - at));
    }
    return (struct slice){0};
}

static uint32_t count_texts(struct slice bytes)
{
    uint32_t count = 0;
    while (next_text(&bytes).size > 0)
        count++;
    return count;
}

static void assert_says_all(struct slice bytes, const char *content)
{
    for (struct slice text; (text = next_text(&bytes)).size > 0;)
        if (!is_said(text, content))
            fail_msg("%.*s is left", (int)text.size, (const char *)text.data);
}

struct seen {
    uint32_t pruned_texts, sparse, kept_texts;
};

static void check_pruning(struct batch *batch, struct seen *seen)
{
    struct buffer *received = batch->parts[0].buffer;
    struct text expected = content(batch), before = profiles_fixture_sent(batch);
    batch_prune(batch);
    struct text got = content(batch), after = profiles_fixture_sent(batch);
    assert_string_equal(text_string(&got), text_string(&expected));
    assert_int_equal(profiles_fixture_scan(bytes_of(&after)).items, batch->items);
    assert_true(after.size <= before.size);
    assert_says_all(bytes_of(&after), text_string(&got));
    uint32_t left = count_texts(bytes_of(&after));
    seen->pruned_texts += count_texts(bytes_of(&before)) - left;
    seen->kept_texts += left;
    seen->sparse += batch->parts[0].buffer != received;
    text_deinit(&expected);
    text_deinit(&before);
    text_deinit(&got);
    text_deinit(&after);
}

/* Also prunes twice, and after other changes. */
static void leaves_what_is_referred_to(void **unused)
{
    enum { REQUESTS = 5000 };
    (void)unused;
    struct random_client client = {.texts_are_unique = true, .shapes_differ = true};
    struct seen seen = {0};
    random_client_begin(&client);
    for (int i = 0; i < REQUESTS; i++) {
        random_client_change(&client);
        struct batch *batch =
            profiles_fixture_batch(random_request(&client, &profiles_fixture.budget));
        for (uint32_t times = random_below(3); times > 0; times--) {
            change_at_random(batch, random_below(3) ? random_below(33) : 31);
            if (random_below(4) == 0)
                batch_flatten(batch);
            check_pruning(batch, &seen);
        }
        batch_free(batch);
    }
    random_client_deinit(&client);
    print_message("%u texts pruned, %u kept, %u requests written anew\n", seen.pruned_texts,
                  seen.kept_texts, seen.sparse);
    assert_true(seen.pruned_texts > REQUESTS && seen.kept_texts > REQUESTS && seen.sparse > 10);
}

/* ---- small requests ---- */

static void assert_sent(struct batch *batch, struct slice expected)
{
    struct text got = profiles_fixture_sent(batch);
    assert_int_equal(got.size, expected.size);
    assert_memory_equal(got.data, expected.data, expected.size);
    text_deinit(&got);
}

/* One profile with two samples, of stacks 1 and 2. Stack 1 has function "a", stack 2 "secret". */
#define SAMPLE_1 "\x12\x05\x08\x01\x22\x01\x07"
#define SAMPLE_2 "\x12\x05\x08\x02\x22\x01\x09"
#define RESOURCE_HEAD(profile_size, scope_size, resource_size)                                     \
    "\x0a" resource_size "\x12" scope_size "\x12" profile_size
#define TABLES                                                                                     \
    "\x0a\x00\x22\x00"         /* mapping 0, link 0 */                                             \
    "\x12\x00"                 /* location 0 */                                                    \
    "\x12\x04\x1a\x02\x08\x01" /* location 1: function 1 */                                        \
    "\x12\x04\x1a\x02\x08\x02" /* location 2: function 2 */                                        \
    "\x1a\x00\x1a\x02\x08\x02" /* function 1: string 2 */                                          \
    "\x1a\x02\x08\x01"         /* function 2: string 1 */                                          \
    "\x2a\x00\x2a\x06"                                                                             \
    "secret\x2a\x01"                                                                               \
    "a"                                                                                            \
    "\x3a\x00\x3a\x03\x0a\x01\x01\x3a\x03\x0a\x01\x02"
#define PRUNED_TABLES                                                                              \
    "\x0a\x00\x22\x00"                                                                             \
    "\x12\x00\x12\x04\x1a\x02\x08\x01\x1a\x00\x1a\x02\x08\x02\x2a\x00\x2a\x00\x2a\x01"             \
    "a"                                                                                            \
    "\x3a\x00\x3a\x03\x0a\x01\x01"
#define REQUEST RESOURCE_HEAD("\x0e", "\x10", "\x12") SAMPLE_1 SAMPLE_2 "\x12\x35" TABLES

static void remove_sample(struct batch *batch, int position)
{
    struct items items = items_of(batch);
    for (int i = 0; i <= position; i++)
        assert_true(items_next(&items));
    item_remove(&items);
}

static void orphans_become_zero_or_are_cut(void **unused)
{
    (void)unused;
    struct batch *batch = profiles_fixture_batch_of(SLICE(REQUEST));
    remove_sample(batch, 1);
    batch_prune(batch);
    assert_sent(batch,
                SLICE(RESOURCE_HEAD("\x07", "\x09", "\x0b") SAMPLE_1 "\x12\x20" PRUNED_TABLES));
    batch_free(batch);
}

static struct entry_marks no_marks(struct batch *batch, int table)
{
    uint32_t count = dictionary_count(batch_dictionary(batch), table);
    return (struct entry_marks){arena_array(&batch->arena, count + (size_t)1, 1), count};
}

static void marks_stand_for_samples(void **unused)
{
    (void)unused;
    struct batch *batch = profiles_fixture_batch_of(SLICE(REQUEST));
    struct sample_marks marks = {.stacks = no_marks(batch, DICTIONARY_STACK_TABLE),
                                 .links = no_marks(batch, DICTIONARY_LINK_TABLE),
                                 .attributes = no_marks(batch, DICTIONARY_ATTRIBUTE_TABLE)};
    sample_marks_add(&marks, &(struct sample_references){.stack = 1});
    remove_sample(batch, 1);
    batch_prune_marked(batch, &marks);
    assert_sent(batch,
                SLICE(RESOURCE_HEAD("\x07", "\x09", "\x0b") SAMPLE_1 "\x12\x20" PRUNED_TABLES));
    batch_free(batch);
}

static void what_is_referred_to_stays(void **unused)
{
    (void)unused;
    struct batch *batch = profiles_fixture_batch_of(SLICE(REQUEST));
    assert_int_equal(dictionary_prune(&batch->parts[0].root, &batch->layout, NULL, &batch->arena),
                     PRUNE_NOTHING);
    assert_false(batch_is_changed(batch));
    batch_prune(batch);
    assert_sent(batch, SLICE(REQUEST));
    batch_free(batch);
}

/* The last one counts; the other one must be inside the table, too. */
static void an_index_that_is_given_twice_refers_once(void **unused)
{
    (void)unused;
#define TWICE "\x12\x07\x08\x02\x08\x01\x22\x01\x07"
    struct batch *batch = profiles_fixture_batch_of(
        SLICE(RESOURCE_HEAD("\x09", "\x0b", "\x0d") TWICE "\x12\x35" TABLES));
    batch_prune(batch);
    assert_sent(batch, SLICE(RESOURCE_HEAD("\x09", "\x0b", "\x0d") TWICE "\x12\x22" PRUNED_TABLES
                                                                         "\x3a\x00" /* stack 2 */));
    batch_free(batch);
}

/* It has what was removed, and no longer says what the profile says. */
static void an_original_goes(void **unused)
{
    (void)unused;
#define ORIGINAL "\x4a\x05pprof\x52\x06secret"
    struct batch *batch = profiles_fixture_batch_of(
        SLICE(RESOURCE_HEAD("\x1d", "\x1f", "\x21") SAMPLE_1 ORIGINAL SAMPLE_2 "\x12\x35" TABLES));
    remove_sample(batch, 1);
    batch_prune(batch);
    assert_sent(batch,
                SLICE(RESOURCE_HEAD("\x07", "\x09", "\x0b") SAMPLE_1 "\x12\x20" PRUNED_TABLES));
    batch_free(batch);
}

static void other_signals_stay(void **unused)
{
    (void)unused;
    struct buffer *buffer = buffer_new_charged(2, &profiles_fixture.budget);
    buffer_append(buffer, "\x0a\x00", 2, 2);
    struct batch *batch = batch_new(&profiles_fixture.worker, SIGNAL_TRACES, buffer, 0, NULL, NULL);
    batch_prune(batch);
    assert_sent(batch, SLICE("\x0a\x00"));
    batch_free(batch);
}

static void a_request_without_dictionary_stays(void **unused)
{
    (void)unused;
    struct batch *batch = profiles_fixture_batch_of(SLICE("\x0a\x00"));
    batch_prune(batch);
    assert_sent(batch, SLICE("\x0a\x00"));
    batch_free(batch);
}

int main(void)
{
    hash_init();
    scan_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(leaves_what_is_referred_to, profiles_fixture_begin,
                                        profiles_fixture_end),
        cmocka_unit_test_setup_teardown(orphans_become_zero_or_are_cut, profiles_fixture_begin,
                                        profiles_fixture_end),
        cmocka_unit_test_setup_teardown(marks_stand_for_samples, profiles_fixture_begin,
                                        profiles_fixture_end),
        cmocka_unit_test_setup_teardown(what_is_referred_to_stays, profiles_fixture_begin,
                                        profiles_fixture_end),
        cmocka_unit_test_setup_teardown(an_index_that_is_given_twice_refers_once,
                                        profiles_fixture_begin, profiles_fixture_end),
        cmocka_unit_test_setup_teardown(an_original_goes, profiles_fixture_begin,
                                        profiles_fixture_end),
        cmocka_unit_test_setup_teardown(other_signals_stay, profiles_fixture_begin,
                                        profiles_fixture_end),
        cmocka_unit_test_setup_teardown(a_request_without_dictionary_stays, profiles_fixture_begin,
                                        profiles_fixture_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
