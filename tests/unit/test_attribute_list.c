#include "core/data/attribute_list.h"

#include "core/base/arena.h"
#include "core/data/otlp.h"
#include "tests/unit/wire_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* A message with random attributes in field 9 and other fields between them. */
struct fixture {
    struct wire_writer raw;
    struct arena arena;
    struct message message;
    struct attribute_list list;
};

static unsigned below(unsigned limit)
{
    return (unsigned)rand() % limit;
}

static struct slice key_of(unsigned number)
{
    static char keys[64][8];
    snprintf(keys[number], sizeof keys[0], "k%u", number);
    return slice_of_string(keys[number]);
}

static struct slice value_of(struct arena *arena, unsigned size)
{
    uint8_t *text = arena_zalloc(arena, size + 1);
    memset(text, 'v', size);
    return any_value_encode(arena, any_value_string(slice_of(text, size)));
}

/* A key and value in an unusual order, which is valid. */
static void append_reversed(struct wire_writer *writer, struct slice key, struct slice value)
{
    size_t pair = wire_writer_begin(writer, SPAN_ATTRIBUTES);
    wire_writer_bytes(writer, KEY_VALUE_VALUE, value);
    wire_writer_bytes(writer, KEY_VALUE_KEY, key);
    wire_writer_end(writer, pair);
}

static void set_up(struct fixture *f, unsigned attributes)
{
    *f = (struct fixture){.raw = {0}};
    arena_init(&f->arena, NULL);
    for (unsigned i = 0; i < attributes; i++) {
        struct slice key = key_of(below(64)), value = value_of(&f->arena, below(300));
        if (below(4) == 0)
            wire_writer_bytes(&f->raw, SPAN_NAME, SLICE("name"));
        if (below(8) == 0)
            append_reversed(&f->raw, key, value);
        else
            key_value_append(&f->raw, SPAN_ATTRIBUTES, key, any_value_read(value));
    }
    message_init(&f->message, wire_writer_slice(&f->raw));
}

static void tear_down(struct fixture *f)
{
    attribute_list_deinit(&f->list);
    wire_writer_deinit(&f->raw);
    arena_deinit(&f->arena);
}

static void change_at_random(struct fixture *f, unsigned changes)
{
    uint32_t at;
    for (unsigned i = 0; i < changes; i++) {
        bool found = attribute_list_find(&f->list, key_of(below(64)), &at);
        if (!found)
            attribute_list_add(&f->list, key_of(below(64)), value_of(&f->arena, 5));
        else if (below(3) == 0)
            attribute_list_remove(&f->list, at);
        else if (below(2) == 0)
            attribute_list_set_value(&f->list, at, value_of(&f->arena, below(200)));
        else
            attribute_list_set_key(&f->list, at, key_of(below(64)));
    }
}

static struct slice written(struct fixture *f, struct message *message, bool may_rewrite)
{
    attribute_list_write(&f->list, message, SPAN_ATTRIBUTES, &f->arena, may_rewrite);
    size_t size = message_measure(message);
    uint8_t *bytes = arena_alloc(&f->arena, size);
    assert_ptr_equal(message_write(message, bytes), bytes + size);
    return slice_of(bytes, size);
}

/* Both ways of writing give the same bytes, and what is read again is what was in the list. */
static void writes_what_it_has(void **state)
{
    (void)state;
    srand(1);
    for (unsigned round = 0; round < 500; round++) {
        struct fixture f;
        struct message other;
        set_up(&f, below(40));
        other = f.message;
        attribute_list_read(&f.list, message_iter(&f.message, &f.arena), SPAN_ATTRIBUTES, NULL,
                            UINT32_MAX - 1);
        change_at_random(&f, below(30));
        struct slice whole = written(&f, &f.message, true), fields = written(&f, &other, false);
        assert_true(slice_equal(whole, fields));
        struct attribute attribute = attribute_first(message_iter_bytes(whole), SPAN_ATTRIBUTES);
        uint32_t left = 0;
        for (uint32_t i = 0; attribute_list_next(&f.list, &i); i++, left++) {
            assert_true(attribute_next(&attribute));
            assert_true(slice_equal(attribute.pair.key, f.list.entries[i].key));
            assert_true(slice_equal(attribute.pair.value, f.list.entries[i].value));
        }
        assert_int_equal(left, f.list.left);
        assert_false(attribute_next(&attribute));
        tear_down(&f);
    }
}

static void takes_changes_back(void **state)
{
    (void)state;
    srand(2);
    for (unsigned round = 0; round < 500; round++) {
        struct fixture f;
        set_up(&f, below(40));
        attribute_list_read(&f.list, message_iter(&f.message, &f.arena), SPAN_ATTRIBUTES, NULL,
                            UINT32_MAX - 1);
        change_at_random(&f, below(10));
        attribute_list_commit(&f.list);
        struct message message = f.message;
        struct slice before = written(&f, &message, true);
        uint32_t left = f.list.left;
        change_at_random(&f, below(30));
        attribute_list_undo(&f.list);
        assert_int_equal(f.list.left, left);
        message = f.message;
        assert_true(slice_equal(written(&f, &message, true), before));
        tear_down(&f);
    }
}

static uint32_t first_of(const struct attribute_list *list, struct slice key)
{
    for (uint32_t i = 0; attribute_list_next(list, &i); i++)
        if (slice_equal(list->entries[i].key, key))
            return i;
    return UINT32_MAX;
}

/* A list that is changed again and again finds what a search finds, and writes the same whether
 * removed entries are dropped or not. */
static void stays_small(void **state)
{
    bool was_compacted = false;
    (void)state;
    for (unsigned round = 0; round < 200; round++) {
        struct fixture f;
        set_up(&f, below(40));
        attribute_list_read(&f.list, message_iter(&f.message, &f.arena), SPAN_ATTRIBUTES, NULL,
                            UINT32_MAX - 1);
        for (unsigned step = 0; step < 30; step++) {
            change_at_random(&f, below(10));
            if (below(4) == 0)
                attribute_list_undo(&f.list);
            if (below(10) == 0)
                attribute_list_remove_all(&f.list);
            attribute_list_commit(&f.list);
            struct message before = f.message, after = f.message;
            struct slice wanted = written(&f, &before, false);
            attribute_list_compact(&f.list);
            assert_true(slice_equal(written(&f, &after, true), wanted));
            was_compacted |= f.list.is_compacted;
            uint32_t at, key = below(64), found = first_of(&f.list, key_of(key));
            assert_int_equal(attribute_list_find(&f.list, key_of(key), &at), found != UINT32_MAX);
            assert_true(found == UINT32_MAX || at == found);
        }
        assert_true(f.list.count <= 2 * f.list.left + 32);
        tear_down(&f);
    }
    assert_true(was_compacted);
}

static bool is_k1(void *context, struct slice key)
{
    ++*(unsigned *)context;
    return slice_is(key, "k1");
}

static void reads_what_is_wanted(void **state)
{
    (void)state;
    struct text raw =
        wire_text("9{1\"k1\" 2{1\"a\"}} 9{1\"other\" 2{1\"b\"}} 5\"x\" 9{1\"k2\" 2{1\"c\"}} "
                  "9{2{1\"d\"} 1\"k1\"}");
    struct attribute_list list = {0};
    unsigned asked = 0;
    struct attribute_filter filter = {UINT64_C(1) << 2, is_k1, &asked};
    struct message_iter message = message_iter_bytes(wire_text_slice(&raw));
    attribute_list_read(&list, message, SPAN_ATTRIBUTES, &filter, 100);
    assert_int_equal(list.count, 2);
    assert_int_equal(asked, 3); /* not for a key of another size */
    attribute_list_read(&list, message, SPAN_ATTRIBUTES, NULL, 2);
    assert_int_equal(list.count, 3);
    attribute_list_deinit(&list);
    text_deinit(&raw);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_what_it_has),
        cmocka_unit_test(takes_changes_back),
        cmocka_unit_test(stays_small),
        cmocka_unit_test(reads_what_is_wanted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
