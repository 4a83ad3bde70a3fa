#include "core/data/dictionary.h"

#include "core/base/arena.h"
#include "core/base/hash.h"
#include "core/data/scan.h"
#include "wire_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

/* A request and its dictionary. */
struct fixture {
    struct text request;
    struct arena arena;
    struct message root;
    struct dictionary *dictionary;
};

static void set_up(struct fixture *f, const char *notation)
{
    *f = (struct fixture){.request = wire_text(notation)};
    arena_init(&f->arena, NULL);
    message_init(&f->root, wire_text_slice(&f->request));
    f->dictionary = dictionary_new(&f->root, &f->arena);
}

static void tear_down(struct fixture *f)
{
    arena_deinit(&f->arena);
    text_deinit(&f->request);
}

/* Compares the request, as it would be sent now, with the expected one. */
static void check_written(struct fixture *f, const char *expected)
{
    struct text wanted = wire_text(expected);
    size_t size = message_measure(&f->root);
    uint8_t *bytes = arena_alloc(&f->arena, size);

    message_write(&f->root, bytes);
    if (!slice_equal(slice_of(bytes, size), wire_text_slice(&wanted)))
        fail_msg("not written as %s", expected);
    text_deinit(&wanted);
}

#define LINK_A "1x0102030405060708090a0b0c0d0e0f10 2x0102030405060708"
#define ZERO_LINK "4{1x00000000000000000000000000000000 2x0000000000000000}"
#define TABLES "1{} 2{} 3{} 4{} 4{" LINK_A "} 5\"\" 5\"a\" 5\"b\" 6{} 6{1=1 2{1\"v\"} 3=2} 7{} 99=1"

static void test_reading(void **state)
{
    struct fixture f;
    struct key_value_and_unit attribute;
    struct dictionary_link link;

    (void)state;
    set_up(&f, "1{} 2{" TABLES "} 1{}");
    assert_int_equal(dictionary_count(f.dictionary, DICTIONARY_MAPPING_TABLE), 1);
    assert_int_equal(dictionary_count(f.dictionary, DICTIONARY_STRING_TABLE), 3);
    assert_true(slice_is(dictionary_string(f.dictionary, 0), ""));
    assert_true(slice_is(dictionary_string(f.dictionary, 1), "a"));
    assert_true(slice_is(dictionary_string(f.dictionary, 2), "b"));
    attribute = dictionary_attribute(f.dictionary, 1);
    assert_int_equal(attribute.key, 1);
    assert_int_equal(attribute.unit, 2);
    assert_true(slice_is(attribute.value, "\x0a\x01v"));
    attribute = dictionary_attribute(f.dictionary, 0);
    assert_int_equal(attribute.key + attribute.unit + attribute.value.size, 0);
    link = dictionary_link(f.dictionary, 1);
    assert_int_equal(link.trace_id.size, 16);
    assert_int_equal(link.trace_id.data[15], 0x10);
    assert_int_equal(link.span_id.data[7], 8);
    link = dictionary_link(f.dictionary, 0);
    assert_int_equal(link.trace_id.size + link.span_id.size, 0);
    assert_false(f.root.changed);
    tear_down(&f);
}

/* Tables may be in several pieces, mixed with other fields. */
static void test_mixed(void **state)
{
    struct fixture f;

    (void)state;
    set_up(&f, "2{5\"\" 7{} 5\"a\" 2{} 7{1[0]} 5\"b\"}");
    assert_int_equal(dictionary_entry(f.dictionary, DICTIONARY_STACK_TABLE, 1).size, 3);
    assert_true(slice_is(dictionary_string(f.dictionary, 2), "b"));
    assert_int_equal(dictionary_count(f.dictionary, DICTIONARY_FUNCTION_TABLE), 0);
    assert_int_equal(dictionary_entry(f.dictionary, DICTIONARY_FUNCTION_TABLE, 0).size, 0);
    tear_down(&f);
}

static void test_adding(void **state)
{
    struct fixture f;

    (void)state;
    set_up(&f, "1{} 2{" TABLES "} 1{}");
    assert_int_equal(dictionary_find(f.dictionary, DICTIONARY_STRING_TABLE, SLICE("b")), 2);
    assert_int_equal(dictionary_find(f.dictionary, DICTIONARY_STRING_TABLE, SLICE("c")), 0);
    assert_int_equal(dictionary_add(f.dictionary, DICTIONARY_STRING_TABLE, SLICE("")), 0);
    assert_int_equal(dictionary_add(f.dictionary, DICTIONARY_STRING_TABLE, SLICE("a")), 1);
    assert_false(f.root.changed);
    assert_int_equal(dictionary_add(f.dictionary, DICTIONARY_STRING_TABLE, SLICE("c")), 3);
    assert_int_equal(dictionary_add(f.dictionary, DICTIONARY_STRING_TABLE, SLICE("c")), 3);
    assert_int_equal(dictionary_find(f.dictionary, DICTIONARY_STRING_TABLE, SLICE("c")), 3);
    assert_true(slice_is(dictionary_string(f.dictionary, 3), "c"));
    assert_int_equal(dictionary_count(f.dictionary, DICTIONARY_STRING_TABLE), 4);
    /* The existing entry, and a new one with a new unit */
    assert_int_equal(
        dictionary_add_attribute(f.dictionary, SLICE("a"), SLICE("\x0a\x01v"), SLICE("b")), 1);
    assert_int_equal(
        dictionary_add_attribute(f.dictionary, SLICE("a"), SLICE("\x10\x01"), SLICE("ms")), 2);
    check_written(&f, "1{} 2{" TABLES " 5\"c\" 5\"ms\" 6{1=1 2{2=1} 3=4}} 1{}");
    tear_down(&f);
}

static void test_links(void **state)
{
    static const uint8_t trace_id[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    static const uint8_t zeroes[16];
    struct slice trace = slice_of(trace_id, sizeof trace_id);
    struct slice span = slice_of(trace_id, 8);
    struct fixture f;

    (void)state;
    set_up(&f, "2{" TABLES "}");
    assert_int_equal(dictionary_add_link(f.dictionary, trace, span), 1);
    assert_int_equal(dictionary_add_link(f.dictionary, slice_of(zeroes, 16), slice_of(zeroes, 8)),
                     0);
    assert_int_equal(dictionary_add_link(f.dictionary, (struct slice){0}, (struct slice){0}), 0);
    assert_int_equal(dictionary_add_link(f.dictionary, (struct slice){0}, span), 2);
    assert_int_equal(dictionary_link(f.dictionary, 2).trace_id.size, 0);
    assert_true(slice_equal(dictionary_link(f.dictionary, 2).span_id, span));
    tear_down(&f);
}

/* The first entry added to an empty table is not entry 0. */
static void test_empty_tables(void **state)
{
    static const uint8_t span_id[8] = {1};
    struct slice span = slice_of(span_id, 8);
    struct fixture f;

    (void)state;
    set_up(&f, "1{} 2{7{}} 3=1");
    assert_int_equal(dictionary_find(f.dictionary, DICTIONARY_STRING_TABLE, SLICE("a")), 0);
    assert_int_equal(dictionary_add(f.dictionary, DICTIONARY_STRING_TABLE, SLICE("a")), 1);
    assert_int_equal(dictionary_add_link(f.dictionary, (struct slice){0}, span), 1);
    check_written(&f, "1{} 2{7{} 5\"\" 5\"a\" " ZERO_LINK " 4{2x0100000000000000}} 3=1");
    tear_down(&f);
}

static void test_no_dictionary(void **state)
{
    struct fixture f;

    (void)state;
    set_up(&f, "1{}");
    assert_int_equal(dictionary_count(f.dictionary, DICTIONARY_STRING_TABLE), 0);
    assert_int_equal(dictionary_string(f.dictionary, 0).size, 0);
    assert_int_equal(dictionary_add(f.dictionary, DICTIONARY_STRING_TABLE, SLICE("a")), 1);
    assert_int_equal(dictionary_add(f.dictionary, DICTIONARY_STRING_TABLE, SLICE("b")), 2);
    check_written(&f, "1{} 2{5\"\" 5\"a\" 5\"b\"}");
    tear_down(&f);
}

/* A second dictionary of the same request sees what the first one added. */
static void test_again(void **state)
{
    struct fixture f;
    struct dictionary *second;

    (void)state;
    set_up(&f, "2{5\"\"}");
    assert_int_equal(dictionary_add(f.dictionary, DICTIONARY_STRING_TABLE, SLICE("a")), 1);
    second = dictionary_new(&f.root, &f.arena);
    assert_int_equal(dictionary_count(second, DICTIONARY_STRING_TABLE), 2);
    assert_int_equal(dictionary_add(second, DICTIONARY_STRING_TABLE, SLICE("a")), 1);
    assert_int_equal(dictionary_add(second, DICTIONARY_STRING_TABLE, SLICE("b")), 2);
    check_written(&f, "2{5\"\" 5\"a\" 5\"b\"}");
    tear_down(&f);
}

/* Of equal entries, the first is used. An entry with an unusual encoding counts as a different
 * one. */
static void test_duplicates(void **state)
{
    struct fixture f;

    (void)state;
    set_up(&f, "2{5\"\" 5\"a\" 5\"a\" 5\"b\" 3{} 3{2=1 1=3}}");
    assert_int_equal(dictionary_add(f.dictionary, DICTIONARY_STRING_TABLE, SLICE("a")), 1);
    assert_int_equal(
        dictionary_find(f.dictionary, DICTIONARY_FUNCTION_TABLE, SLICE("\x10\x01\x08\x03")), 1);
    assert_int_equal(
        dictionary_find(f.dictionary, DICTIONARY_FUNCTION_TABLE, SLICE("\x08\x03\x10\x01")), 0);
    tear_down(&f);
}

/* Many entries: the hash table grows, and appended entries stay in few runs. */
static void test_many(void **state)
{
    enum { COUNT = 20000 };
    struct fixture f;
    unsigned runs = 0;
    char name[32];

    (void)state;
    set_up(&f, "2{}");
    for (int round = 0; round < 2; round++)
        for (int i = 1; i <= COUNT; i++) {
            snprintf(name, sizeof name, "name %d", i);
            assert_int_equal(
                dictionary_add(f.dictionary, DICTIONARY_STRING_TABLE, slice_of_string(name)), i);
        }
    assert_true(slice_is(dictionary_string(f.dictionary, COUNT), "name 20000"));
    assert_int_equal(dictionary_count(f.dictionary, DICTIONARY_STRING_TABLE), COUNT + 1);
    for (const struct message_tail *tail = f.root.children->tail; tail; tail = tail->next)
        runs++;
    assert_true(runs < 30);
    tear_down(&f);
}

static int init(void **state)
{
    (void)state;
    hash_init_with(1);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reading),      cmocka_unit_test(test_mixed),
        cmocka_unit_test(test_adding),       cmocka_unit_test(test_links),
        cmocka_unit_test(test_empty_tables), cmocka_unit_test(test_no_dictionary),
        cmocka_unit_test(test_again),        cmocka_unit_test(test_duplicates),
        cmocka_unit_test(test_many),
    };

    return cmocka_run_group_tests(tests, init, NULL);
}
