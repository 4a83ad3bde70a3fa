/* Equal entries are found wherever they stand: checked with random requests in which each entry
 * stands at two places, also by folding them, and with small dictionaries. */
#include "core/data/equal_entries.h"

#include "core/base/hash.h"
#include "core/data/fold.h"
#include "core/data/profiles_merge.h"
#include "core/data/reference_rules.h"
#include "tests/unit/expect_text.h"
#include "tests/unit/profiles_fixture.h"
#include "tests/unit/random_profiles.h"
#include "tests/unit/wire_text.h"

#include <assert.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* ---- requests without and with equal entries ---- */

static struct buffer *merged(struct buffer *request)
{
    struct profiles_merge *merge = profiles_merge_new(&profiles_fixture.budget);
    profiles_merge_add(merge, request);
    struct buffer *result = profiles_merge_finish(merge);
    profiles_merge_free(merge);
    buffer_unref(request);
    return result;
}

/* Writes it in the one form that protobuf-c writes. */
static struct buffer *packed_again(struct buffer *request)
{
    struct batch *batch = profiles_fixture_batch(request);
    DecodedProfiles *decoded = profiles_fixture_decode(batch);
    size_t size = protobuf_c_message_get_packed_size(&decoded->base);
    struct buffer *buffer = buffer_new_charged(size, &profiles_fixture.budget);
    buffer->size = protobuf_c_message_pack(&decoded->base, buffer->data);
    profiles_fixture_release(decoded);
    batch_free(batch);
    return buffer;
}

static struct buffer *random_request_without_equals(struct random_client *client)
{
    random_client_change(client);
    return merged(packed_again(merged(random_request(client, &profiles_fixture.budget))));
}

/* Entry i of a table of n entries stands again at n + i. */
static uint32_t twin(const uint32_t *counts, int table, uint64_t index)
{
    assert_true(index < counts[table]);
    return (uint32_t)index + random_below(2) * counts[table];
}

static void put_twins(const uint32_t *counts, int table, struct slice list, struct wire_out *out)
{
    struct wire_cursor packed = wire_cursor(list);
    for (uint64_t index; wire_packed_varint(&packed, &index);) {
        uint8_t *to = wire_out_room(out, WIRE_HEADER_MAX);
        out->size += (size_t)(wire_write_varint(to, twin(counts, table, index)) - to);
    }
}

/* Copies a message, which refers to either place of each entry. */
static void put_doubled(const uint32_t *counts, const struct reference_rule *rules,
                        struct slice message, struct wire_out *out)
{
    struct wire_cursor cursor = wire_cursor(message);
    struct wire_field field;
    while (wire_next(&cursor, &field)) {
        const struct reference_rule *rule = &rules[field.number];
        assert(field.number < REFERENCE_RULES);
        if (rule->tables == 0) {
            wire_out_put(out, slice_of(field.start, (size_t)(field.end - field.start)));
        } else if (field.type == WIRE_VARINT) {
            wire_out_varint(out, field.number, twin(counts, rule->table, field.value));
        } else {
            assert(field.type == WIRE_BYTES);
            struct wire_out_field opened = wire_out_open(out, field.number, field.bytes.size);
            if (rule->table != 0)
                put_twins(counts, rule->table, field.bytes, out);
            else
                put_doubled(counts, rule->rules, field.bytes, out);
            wire_out_close(out, opened, field.number);
        }
    }
}

static void put_doubled_tables(const uint32_t *counts, struct slice dictionary,
                               struct wire_out *out)
{
    struct wire_out_field opened = wire_out_open(out, PROFILES_DICTIONARY, 2 * dictionary.size);
    for (int times = 0; times < 2; times++) {
        struct wire_cursor cursor = wire_cursor(dictionary);
        struct wire_field field;
        while (wire_next(&cursor, &field)) {
            assert(field.number < DICTIONARY_TABLE_COUNT && field.type == WIRE_BYTES);
            struct wire_out_field entry = wire_out_open(out, field.number, field.bytes.size);
            if (entry_tables[field.number] == 0)
                wire_out_put(out, field.bytes);
            else
                put_doubled(counts, entry_references[field.number], field.bytes, out);
            wire_out_close(out, entry, field.number);
        }
    }
    wire_out_close(out, opened, PROFILES_DICTIONARY);
}

static struct batch *doubled(struct slice request, const uint32_t *counts)
{
    struct wire_out out = {0};
    struct wire_cursor cursor = wire_cursor(request);
    struct wire_field field;
    while (wire_next(&cursor, &field))
        if (field.number == PROFILES_DICTIONARY && field.type == WIRE_BYTES)
            put_doubled_tables(counts, field.bytes, &out);
        else
            put_doubled(counts, request_references,
                        slice_of(field.start, (size_t)(field.end - field.start)), &out);
    struct batch *batch = profiles_fixture_batch_of(slice_of(out.data, out.size));
    wire_out_deinit(&out);
    return batch;
}

/* ---- finding ---- */

/* Begins with any table: those below it are read then. */
static int table_number(int at, int begins_at)
{
    return 1 + (at + begins_at) % (DICTIONARY_TABLE_COUNT - 1);
}

static void check_entries(struct batch *batch, const uint32_t *counts, bool are_doubled)
{
    struct equal_entries equals;
    int begins_at = (int)random_below(DICTIONARY_TABLE_COUNT - 1);
    equal_entries_init(&equals, batch_dictionary(batch), &batch->arena);
    for (int at = 0; at < DICTIONARY_TABLE_COUNT - 1; at++) {
        int table = table_number(at, begins_at);
        uint32_t count = counts[table];
        for (uint32_t i = 0; i < count; i++) {
            uint32_t first = equal_entries_first(&equals, table, i);
            assert_int_equal(first % count, i);
            if (are_doubled)
                assert_int_equal(equal_entries_first(&equals, table, count + i), first);
            assert_true(i > 0 || first == 0);
        }
    }
    equal_entries_deinit(&equals);
}

/* ---- folding ---- */

enum { DECISIONS_MAX = 4096 };
static enum fold_decision decisions[DECISIONS_MAX];

static enum fold_decision decide_as_listed(void *context, const struct fold_sample *sample)
{
    size_t *next = context;
    (void)sample;
    assert_true(*next < DECISIONS_MAX);
    return decisions[(*next)++];
}

static int compare_ints(const void *a, const void *b)
{
    return *(const int32_t *)a - *(const int32_t *)b;
}

/* Prints a sample as if each entry were at its first place. The order of attributes says nothing.
 */
static void print_sample(struct text *out, const uint32_t *counts,
                         const Opentelemetry__Proto__Profiles__V1development__Sample *s)
{
    uint32_t attributes = counts[DICTIONARY_ATTRIBUTE_TABLE];
    text_printf(out, "sample %u link %u", (uint32_t)s->stack_index % counts[DICTIONARY_STACK_TABLE],
                (uint32_t)s->link_index % counts[DICTIONARY_LINK_TABLE]);
    for (size_t i = 0; i < s->n_attribute_indices; i++)
        s->attribute_indices[i] = (int32_t)((uint32_t)s->attribute_indices[i] % attributes);
    if (s->n_attribute_indices > 0)
        qsort(s->attribute_indices, s->n_attribute_indices, sizeof(int32_t), compare_ints);
    for (size_t i = 0; i < s->n_attribute_indices; i++)
        text_printf(out, " a%d", s->attribute_indices[i]);
    for (size_t i = 0; i < s->n_values; i++)
        text_printf(out, " %" PRId64, s->values[i]);
    for (size_t i = 0; i < s->n_timestamps_unix_nano; i++)
        text_printf(out, " @%" PRIu64, s->timestamps_unix_nano[i]);
    text_append_char(out, '\n');
}

static struct text print(struct batch *batch, const uint32_t *counts)
{
    DecodedProfiles *r = profiles_fixture_decode(batch);
    struct text out = {0};
    for (size_t i = 0; i < r->n_resource_profiles; i++)
        for (size_t j = 0; j < r->resource_profiles[i]->n_scope_profiles; j++)
            for (size_t k = 0; k < r->resource_profiles[i]->scope_profiles[j]->n_profiles; k++) {
                const __auto_type p = r->resource_profiles[i]->scope_profiles[j]->profiles[k];
                text_append(&out, "profile\n");
                for (size_t s = 0; s < p->n_samples; s++)
                    print_sample(&out, counts, p->samples[s]);
            }
    profiles_fixture_release(r);
    return out;
}

static struct fold_result fold(struct batch *batch, enum fold_decision otherwise)
{
    size_t next = 0;
    struct fold_rule rule = {.decide = decide_as_listed, .context = &next};
    for (size_t i = 0; otherwise != FOLD_FOLD && i < DECISIONS_MAX; i++)
        decisions[i] = decisions[i] == FOLD_FOLD ? otherwise : decisions[i];
    return profiles_fold(&batch->parts[0].root, batch_dictionary(batch), &batch->arena, &rule);
}

/* Returns how many samples became part of others. */
static uint32_t check_folding(struct batch *batch, struct batch *twice, const uint32_t *counts)
{
    for (size_t i = 0; i < DECISIONS_MAX; i++)
        decisions[i] = random_below(6) ? FOLD_FOLD : (enum fold_decision)random_below(3);
    enum fold_decision otherwise = random_below(3) ? FOLD_FOLD : FOLD_MOVE;
    struct fold_result result = fold(batch, otherwise), of_twice = fold(twice, otherwise);
    struct text expected = print(batch, counts), got = print(twice, counts);
    expect_text(text_string(&got), text_string(&expected));
    assert_int_equal(of_twice.combined, result.combined);
    text_deinit(&expected);
    text_deinit(&got);
    return result.folded + result.moved - result.combined;
}

/* ---- random requests ---- */

static uint32_t check_request(struct buffer *request)
{
    struct batch *batch = profiles_fixture_batch(request);
    uint32_t counts[DICTIONARY_TABLE_COUNT];
    for (int table = 1; table < DICTIONARY_TABLE_COUNT; table++)
        counts[table] = dictionary_count(batch_dictionary(batch), table);
    struct batch *twice = doubled(buffer_slice(request), counts);
    check_entries(batch, counts, false);
    check_entries(twice, counts, true);
    uint32_t combined = check_folding(batch, twice, counts);
    batch_free(twice);
    batch_free(batch);
    return combined;
}

static void each_entry_stands_at_two_places(void **unused)
{
    enum { REQUESTS = 1500 };
    (void)unused;
    struct random_client client = {.shapes_differ = true};
    uint32_t combined = 0;
    random_client_begin(&client);
    for (int i = 0; i < REQUESTS; i++) {
        client.samples_are_alike = random_below(4) > 0;
        client.texts_are_unique = random_below(4) == 0;
        combined += check_request(random_request_without_equals(&client));
    }
    random_client_deinit(&client);
    print_message("%u samples became part of another one\n", combined);
    assert_true(combined > REQUESTS);
}

/* ---- one by one ---- */

/* Asks for all entries of a table, and compares the answers, which end with -1. */
static void assert_first(struct equal_entries *equals, int table, const int *expected)
{
    uint32_t count = dictionary_count(equals->dictionary, table);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(equal_entries_first(equals, table, i), expected[i]);
    assert_int_equal(expected[count], -1);
    assert_int_equal(equal_entries_first(equals, table, count), count); /* added later */
}

static void the_form_of_an_entry_does_not_matter(void **unused)
{
    (void)unused;
    struct text request =
        wire_text("2{1{}4{}6{}"
                  "5\"\"5\"a\"5\"a\"5\"b\"5\"\""
                  "3{}3{1=1}3{1=2}3{1=2 2=0}3{1=1 1=0}3{4=0}3{1=3}3{1=4}3{1=1 15=7}"
                  "2{}2{3{1=1 2=5}}2{3{1=3 2=5}4[]}2{3{1=6 2=5}}2{3{}}2{2=0 3{1=5}}"
                  "7{}7{1[1 2]}7{1[2 1]}7{1=1 1=2}7{1[1]1[1]}7{1[1 2 0]}7{1[3]}"
                  "7{1[0]}7{1[]}7{1[0]15=1}}");
    struct batch *batch = profiles_fixture_batch_of(wire_text_slice(&request));
    struct equal_entries equals;
    for (int stacks_first = 0; stacks_first < 2; stacks_first++) {
        equal_entries_init(&equals, batch_dictionary(batch), &batch->arena);
        const int stacks[] = {0, 1, 1, 1, 1, 5, 6, 7, 0, 9, -1};
        if (stacks_first)
            assert_first(&equals, DICTIONARY_STACK_TABLE, stacks);
        assert_first(&equals, DICTIONARY_STRING_TABLE, (const int[]){0, 1, 1, 3, 0, -1});
        assert_first(&equals, DICTIONARY_FUNCTION_TABLE,
                     (const int[]){0, 1, 1, 1, 4, 0, 6, 0, 8, -1});
        assert_first(&equals, DICTIONARY_LOCATION_TABLE, (const int[]){0, 1, 1, 3, 4, 4, -1});
        assert_first(&equals, DICTIONARY_STACK_TABLE, stacks);
        equal_entries_deinit(&equals);
    }
    batch_free(batch);
    text_deinit(&request);
}

/* Stacks 1 and 2 are equal only if locations 1 and 2 are. */
static void stacks_of_equal_locations_are_equal(void **unused)
{
    (void)unused;
    static const struct {
        const char *locations;
        int second;
    } cases[] = {
        {"2{}2{2=7}2{2=7}", 1},           {"2{}2{2=7}2{2=8}", 2},
        {"2{}2{2=7}2{1=1 2=7}", 2},       {"2{}2{1=1 2=7}2{1=2 2=7}", 1},
        {"2{}2{1=1 4[1]}2{1=1 4[2]}", 1}, {"2{}2{1=1 4[1]}2{1=1 4[3]}", 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct text notation = {0};
        text_printf(&notation,
                    "2{1{}1{5=1}1{5=2}%s3{}4{}5\"\"5\"k\"5\"k\"5\"u\""
                    "6{}6{1=1 2{1\"v\"}}6{1=2 2{1\"v\"}}6{1=1 2{1\"v\"}3=3}7{}7{1[1]}7{1[2]}}",
                    cases[i].locations);
        struct text request = wire_text(text_string(&notation));
        struct batch *batch = profiles_fixture_batch_of(wire_text_slice(&request));
        struct equal_entries equals;
        equal_entries_init(&equals, batch_dictionary(batch), &batch->arena);
        assert_first(&equals, DICTIONARY_STACK_TABLE, (const int[]){0, 1, cases[i].second, -1});
        equal_entries_deinit(&equals);
        batch_free(batch);
        text_deinit(&request);
        text_deinit(&notation);
    }
}

int main(void)
{
    hash_init();
    scan_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_entry_stands_at_two_places, profiles_fixture_begin,
                                        profiles_fixture_end),
        cmocka_unit_test_setup_teardown(the_form_of_an_entry_does_not_matter,
                                        profiles_fixture_begin, profiles_fixture_end),
        cmocka_unit_test_setup_teardown(stacks_of_equal_locations_are_equal, profiles_fixture_begin,
                                        profiles_fixture_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
