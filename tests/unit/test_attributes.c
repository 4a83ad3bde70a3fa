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
        cmocka_unit_test(attributes_are_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
