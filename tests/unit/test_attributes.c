#include "core/data/attributes.h"

#include "core/base/arena.h"
#include "core/data/otlp.h"
#include "tests/unit/wire_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* A resource that the test changes. */
struct fixture {
    struct text raw;
    struct arena arena;
    struct message message;
};

static void set_up(struct fixture *f, const char *notation)
{
    *f = (struct fixture){.raw = wire_text(notation)};
    arena_init(&f->arena, NULL);
    message_init(&f->message, wire_text_slice(&f->raw));
}

static void tear_down(struct fixture *f, const char *written)
{
    struct text wanted = wire_text(written);
    size_t size = message_measure(&f->message);
    uint8_t *bytes = arena_alloc(&f->arena, size);
    message_write(&f->message, bytes);
    if (!slice_equal(slice_of(bytes, size), wire_text_slice(&wanted)))
        fail_msg("not written as %s", written);
    text_deinit(&wanted);
    arena_deinit(&f->arena);
    text_deinit(&f->raw);
}

static bool find(struct fixture *f, const char *key, struct attribute *attribute)
{
    return attributes_find(message_iter(&f->message, &f->arena), RESOURCE_ATTRIBUTES,
                           slice_of_string(key), attribute);
}

#define RESOURCE "1{1\"a\" 2{1\"x\"}} 2=3 1{1\"b\"} 1{1\"a\" 2{3=1}}"

static void attributes_are_read_without_a_node(void **state)
{
    (void)state;
    struct fixture f;
    struct attribute attribute;
    set_up(&f, RESOURCE);
    struct message_iter bytes = message_iter_bytes(f.message.raw);
    assert_true(attributes_find(bytes, RESOURCE_ATTRIBUTES, SLICE("a"), &attribute));
    assert_true(slice_is(attribute.pair.value, "\x0a\x01x"));
    assert_true(attribute_next(&attribute) && slice_is(attribute.pair.key, "b"));
    assert_int_equal(attribute.pair.value.size, 0);
    assert_true(attribute_next(&attribute) && slice_is(attribute.pair.key, "a"));
    assert_false(attribute_next(&attribute));
    assert_false(attributes_find(bytes, RESOURCE_ATTRIBUTES, SLICE("c"), &attribute));
    assert_null(f.message.children);
    tear_down(&f, RESOURCE);
}

/* Encoded fields; half of them are attributes (field 1), some with the key "ab" in an unusual form.
 */
#define FIELD(bytes)                                                                               \
    {                                                                                              \
        (const uint8_t *)(bytes), sizeof(bytes) - 1                                                \
    }
#define TEN "0123456789"
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
static const struct slice mixed[] = {
    FIELD("\x0a\x08\x0a\x02"
          "ab"
          "\x12\x02\x10\x01"),
    FIELD("\x0a\x08\x0a\x02"
          "ac"
          "\x12\x02\x10\x02"),
    FIELD("\x0a\x07\x0a\x01"
          "a"
          "\x12\x02\x10\x03"),
    FIELD("\x0a\x08\x12\x02\x10\x04\x0a\x02"
          "ab"), /* the value first */
    FIELD("\x0a\x0c\x0a\x02"
          "ac"
          "\x12\x02\x10\x05\x0a\x02"
          "ab"), /* the last key counts */
    FIELD("\x0a\x0c\x0a\x02"
          "ab"
          "\x12\x02\x10\x06\x0a\x02"
          "ac"),
    FIELD("\x0a\x04\x0a\x02"
          "ab"), /* without a value */
    FIELD("\x0a\x00"),
    FIELD("\x8a\x00\x04\x0a\x02"
          "ab"), /* a tag of two bytes */
    FIELD("\x0a\x6c\x0a\x02"
          "ab"
          "\x12\x66\x0a\x64" HUNDRED),
    FIELD("\x0a\xd5\x01\x0a\x02"
          "ab"
          "\x12\xce\x01\x0a\xcb\x01" HUNDRED HUNDRED "012"),
    FIELD("\x10\x07"),
    FIELD("\x10\x87\x07"),
    FIELD("\x19"
          "01234567"),
    FIELD("\x25"
          "0123"),
    FIELD("\x2a\x04\x0a\x02"
          "ab"), /* another field */
    FIELD("\x2a\x64" HUNDRED),
    FIELD("\x2a\xc8\x01" HUNDRED HUNDRED),
    FIELD("\xa2\x06\x04\x0a\x02"
          "ab"), /* number 100 */
};

/* Compares with a search that reads each attribute. */
static void expect_found(struct message_iter it)
{
    struct attribute fast = attribute_first(it, RESOURCE_ATTRIBUTES), slow = fast;
    struct slice value;
    bool found = attributes_get(&it, RESOURCE_ATTRIBUTES, SLICE("ab"), &value);
    struct attribute first;
    assert_int_equal(found, attributes_find(it, RESOURCE_ATTRIBUTES, SLICE("ab"), &first));
    assert_true(!found || slice_equal(value, first.pair.value));
    do {
        do
            found = attribute_next(&slow);
        while (found && !slice_is(slow.pair.key, "ab"));
        assert_int_equal(attribute_next_of_key(&fast, SLICE("ab")), found);
        if (found) {
            assert_ptr_equal(fast.field.wire.start, slow.field.wire.start);
            assert_true(slice_equal(fast.pair.value, slow.pair.value));
        }
    } while (found);
}

static void keys_are_found_among_any_fields(void **state)
{
    (void)state;
    uint32_t random = 1;
    for (int round = 0; round < 20000; round++) {
        struct fixture f;
        struct text bytes = {0};
        uint32_t count = (random >> 16) % 8;
        for (; count > 0; count--) {
            random = random * 1664525 + 1013904223;
            text_append_slice(&bytes, mixed[(random >> 16) % (sizeof mixed / sizeof *mixed)]);
        }
        random = random * 1664525 + 1013904223;
        f = (struct fixture){.raw = bytes};
        arena_init(&f.arena, NULL);
        message_init(&f.message, slice_of(bytes.data, bytes.size));
        expect_found(message_iter_bytes(f.message.raw));
        expect_found(message_iter(&f.message, &f.arena));
        message_append(&f.message, &f.arena, mixed[0]);
        expect_found(message_iter(&f.message, &f.arena));
        struct attribute attribute = attribute_first(message_iter(&f.message, &f.arena), 1);
        if (attribute_next(&attribute))
            attribute_remove(&attribute);
        expect_found(message_iter(&f.message, &f.arena));
        arena_deinit(&f.arena);
        text_deinit(&f.raw);
    }
}

static void attributes_are_changed(void **state)
{
    (void)state;
    struct fixture f;
    struct attribute attribute;
    set_up(&f, RESOURCE);
    assert_true(find(&f, "a", &attribute));
    attribute_set_value(&attribute, SLICE("\x0a\x01x"));
    assert_false(f.message.changed);
    attribute_set_value(&attribute, SLICE("\x0a\x01y"));
    assert_true(find(&f, "b", &attribute));
    attribute_remove(&attribute);
    assert_false(find(&f, "b", &attribute));
    attributes_append(&f.message, &f.arena, RESOURCE_ATTRIBUTES, SLICE("c"), SLICE("\x10\x01"));
    assert_true(find(&f, "c", &attribute) && slice_is(attribute.pair.value, "\x10\x01"));
    tear_down(&f, "1{1\"a\" 2{1\"y\"}} 2=3 1{1\"a\" 2{3=1}} 1{1\"c\" 2{2=1}}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attributes_are_read_without_a_node),
        cmocka_unit_test(keys_are_found_among_any_fields),
        cmocka_unit_test(attributes_are_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
