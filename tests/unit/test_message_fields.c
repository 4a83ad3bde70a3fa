/* The fields of one number are copied as they are after changes. */
#include "core/base/arena.h"
#include "core/data/message_fields.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* Two texts of number 9, a text and numbers of other numbers, a number of number 9. */
static const uint8_t bytes[] = {9 << 3 | WIRE_BYTES,
                                1,
                                'a',
                                5 << 3 | WIRE_BYTES,
                                2,
                                'n',
                                'o',
                                9 << 3 | WIRE_BYTES,
                                2,
                                'b',
                                'c',
                                6 << 3,
                                1,
                                9 << 3,
                                7};

static void expect_copy(struct message_iter message, struct slice wanted)
{
    uint8_t copy[64];
    size_t size = message_fields_size(message, 9);
    assert_int_equal(size, wanted.size);
    assert_true(size <= sizeof copy);
    message_fields_write(message, 9, copy);
    assert_memory_equal(copy, wanted.data, size);
}

static void received_fields_are_copied(void **state)
{
    static const uint8_t wanted[] = {
        9 << 3 | WIRE_BYTES, 1, 'a', 9 << 3 | WIRE_BYTES, 2, 'b', 'c', 9 << 3, 7};
    (void)state;
    expect_copy(message_iter_bytes(slice_of(bytes, sizeof bytes)), slice_of(wanted, sizeof wanted));
    expect_copy(message_iter_bytes(slice_of(bytes, 0)), slice_of(bytes, 0));
}

static void changed_fields_are_copied(void **state)
{
    static const uint8_t added[] = {9 << 3 | WIRE_BYTES, 1, 'z'},
                         wanted[] = {9 << 3 | WIRE_BYTES, 3, 'n', 'e', 'w', 9 << 3, 7,
                                     9 << 3 | WIRE_BYTES, 1, 'z'};
    struct arena arena;
    struct message message;
    struct message_field field;
    (void)state;
    arena_init(&arena, NULL);
    message_init(&message, slice_of(bytes, sizeof bytes));
    struct message_iter it = message_iter(&message, &arena);
    assert_true(message_next_bytes(&it, 9, &field));
    message_replace(&it, &field, SLICE("new"));
    assert_true(message_next_bytes(&it, 9, &field));
    message_remove(&it, &field);
    message_append(&message, &arena, slice_of(added, sizeof added));
    expect_copy(message_iter(&message, &arena), slice_of(wanted, sizeof wanted));
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(received_fields_are_copied),
        cmocka_unit_test(changed_fields_are_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
