#include "core/data/sample_attributes.h"

#include "core/base/arena.h"
#include "core/base/hash.h"
#include "tests/unit/wire_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define REQUEST                                                                                    \
    "2{1{} 2{} 3{} 4{} 5\"\" 5\"a\" 5\"a\" 5\"ms\" 6{} 6{1=1 2{3=1}} 6{1=2 2{3=2} 3=3} 7{}}"

static const char long_text[] = "0123456789012345678901234567890123456789012345678901234567890123";

/* A dictionary, and samples that are read from bytes. */
struct fixture {
    struct text request;
    struct arena arena;
    struct message root;
    struct sample_attributes attributes;
};

static void set_up(struct fixture *f)
{
    hash_init();
    *f = (struct fixture){.request = wire_text(REQUEST)};
    arena_init(&f->arena, NULL);
    message_init(&f->root, wire_text_slice(&f->request));
    f->attributes = sample_attributes_init(dictionary_new(&f->root, &f->arena), &f->arena);
}

static void tear_down(struct fixture *f)
{
    arena_deinit(&f->arena);
    text_deinit(&f->request);
}

static struct message_iter sample_of(struct fixture *f, const char *notation)
{
    struct text encoded = wire_text(notation);
    struct slice copy = arena_copy(&f->arena, wire_text_slice(&encoded));
    text_deinit(&encoded);
    return message_iter_bytes(copy);
}

/* Equal texts may be in the string table twice. */
static void keys_are_compared_by_their_text(void **state)
{
    (void)state;
    struct fixture f;
    struct slice value;
    set_up(&f);
    assert_true(
        sample_attributes_get(&f.attributes, sample_of(&f, "2[0 2 1]"), SLICE("a"), &value));
    assert_true(slice_is(value, "\x18\x02"));
    assert_true(sample_attributes_get(&f.attributes, sample_of(&f, "2=1"), SLICE("a"), &value));
    assert_true(slice_is(value, "\x18\x01"));
    assert_false(sample_attributes_get(&f.attributes, sample_of(&f, "2[0]"), SLICE("a"), &value));
    assert_false(sample_attributes_get(&f.attributes, sample_of(&f, ""), SLICE("a"), &value));
    assert_true(sample_attributes_remove(&f.attributes, sample_of(&f, "2[0 2 1]"), SLICE("a")));
    assert_int_equal(f.attributes.count, 1);
    assert_false(f.root.changed);
    tear_down(&f);
}

/* One entry for each value and unit; a long value is looked up once. */
static void entries_are_shared(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    struct dictionary *dictionary = f.attributes.dictionary;
    struct slice value = any_value_encode(&f.arena, any_value_string(slice_of_string(long_text)));
    for (int i = 0; i < 3; i++) {
        assert_true(sample_attributes_set(&f.attributes, sample_of(&f, "2[2]"), SLICE("a"), value));
        assert_int_equal(f.attributes.indices[0], 3);
        assert_true(sample_attributes_set(&f.attributes, sample_of(&f, "2[1]"), SLICE("a"), value));
        assert_int_equal(f.attributes.indices[0], 4); /* another unit */
        assert_false(
            sample_attributes_set(&f.attributes, sample_of(&f, "2[4]"), SLICE("a"), value));
    }
    assert_int_equal(f.attributes.long_value_count, 2);
    assert_int_equal(dictionary_count(dictionary, DICTIONARY_ATTRIBUTE_TABLE), 5);
    struct key_value_and_unit entry = dictionary_attribute(dictionary, 3);
    assert_true(entry.key == 2 && entry.unit == 3 && slice_equal(entry.value, value));
    entry = dictionary_attribute(dictionary, 4);
    assert_true(entry.key == 1 && entry.unit == 0 && slice_equal(entry.value, value));
    tear_down(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_compared_by_their_text),
        cmocka_unit_test(entries_are_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
