#include "core/base/arena.h"
#include "core/base/memory.h"
#include "core/data/message.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* A slow and obvious model of editing a message: a parsed list of fields that is encoded as a
 * whole. */

enum { NESTED_MAX = 3, LEAF = 4, VARINT = 5, FIXED64 = 6, DEPTH_MAX = 4 };

struct model;

struct model_field {
    uint32_t number;
    bool removed;
    uint64_t value;      /* of VARINT and FIXED64 */
    struct slice leaf;   /* of LEAF */
    struct model *child; /* of 1..NESTED_MAX */
};

struct model {
    struct model_field fields[400];
    size_t count;
};

static uint64_t random_state;
static struct arena model_arena;

static unsigned random_below(unsigned limit)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(random_state >> 33) % limit;
}

static size_t model_size(const struct model *model);

static size_t field_size(const struct model_field *field)
{
    if (field->number == VARINT)
        return 1 + wire_size_varint(field->value);
    if (field->number == FIXED64)
        return 1 + 8;
    return wire_size_bytes(field->number,
                           field->number == LEAF ? field->leaf.size : model_size(field->child));
}

static size_t model_size(const struct model *model)
{
    assert_non_null(model);
    size_t size = 0;
    for (size_t i = 0; i < model->count; i++)
        if (!model->fields[i].removed)
            size += field_size(&model->fields[i]);
    return size;
}

static uint8_t *model_write(const struct model *model, uint8_t *to);

static uint8_t *field_write(const struct model_field *field, uint8_t *to)
{
    if (field->number == VARINT)
        return wire_write_varint(wire_write_tag(to, VARINT, WIRE_VARINT), field->value);
    if (field->number == FIXED64)
        return wire_write_fixed64(to, FIXED64, field->value);
    if (field->number == LEAF)
        return wire_write_bytes(to, LEAF, field->leaf);
    return model_write(field->child,
                       wire_write_header(to, field->number, model_size(field->child)));
}

static uint8_t *model_write(const struct model *model, uint8_t *to)
{
    for (size_t i = 0; i < model->count; i++)
        if (!model->fields[i].removed)
            to = field_write(&model->fields[i], to);
    return to;
}

static struct slice random_leaf(void)
{
    static const unsigned sizes[] = {0, 1, 5, 63, 64, 65, 127, 128, 300};
    size_t size = sizes[random_below(9)];
    uint8_t *bytes = arena_alloc(&model_arena, size);
    memset(bytes, (int)random_below(256), size);
    return slice_of(bytes, size);
}

static struct model *random_model(unsigned depth, unsigned fields);

static struct model_field random_field(unsigned depth)
{
    struct model_field field = {.number = 1 + random_below(depth < DEPTH_MAX ? 6 : 3)};
    if (depth >= DEPTH_MAX)
        field.number += NESTED_MAX;
    if (field.number <= NESTED_MAX)
        field.child = random_model(depth + 1, random_below(5));
    else if (field.number == LEAF)
        field.leaf = random_leaf();
    else
        field.value = (uint64_t)random_below(1000) << random_below(50);
    return field;
}

static struct model *random_model(unsigned depth, unsigned fields)
{
    struct model *model = arena_zalloc(&model_arena, sizeof *model);
    for (unsigned i = 0; i < fields; i++)
        model->fields[model->count++] = random_field(depth);
    return model;
}

/* Returns the encoded model, in memory of exactly its size. */
static struct slice encode(const struct model *model, struct arena *arena)
{
    size_t size = model_size(model);
    uint8_t *bytes = arena_alloc(arena, size);
    assert_ptr_equal(model_write(model, bytes), bytes + size);
    return slice_of(bytes, size);
}

/* An iterator and the position in the model. Removed fields keep their position in the model, so
 * several pairs can be used at once. */
struct pair {
    struct message_iter it;
    size_t next;
};

static struct pair begin_pair(struct message *message, struct arena *arena)
{
    return (struct pair){.it = message_iter(message, arena)};
}

/* Moves both to the next field; returns NULL if both are at the end. */
static struct model_field *next_of_both(struct pair *pair, struct model *model,
                                        struct message_field *field)
{
    while (pair->next < model->count && model->fields[pair->next].removed)
        pair->next++;
    bool more = message_next(&pair->it, field);
    assert_int_equal(more, pair->next < model->count);
    if (!more)
        return NULL;
    struct model_field *expected = &model->fields[pair->next++];
    assert_int_equal(field->wire.number, expected->number);
    if (expected->number == LEAF)
        assert_true(slice_equal(field->wire.bytes, expected->leaf));
    else if (expected->number > LEAF)
        assert_true(field->wire.value == expected->value);
    return expected;
}

static void append_both(struct message *message, struct model *model, struct arena *arena,
                        unsigned depth)
{
    struct model two = {.count = 1 + random_below(2)};
    for (size_t i = 0; i < two.count; i++)
        two.fields[i] = random_field(depth);
    struct slice encoded = encode(&two, arena);
    size_t first = field_size(&two.fields[0]);
    if (random_below(2)) { /* in two steps with adjacent memory, which become one run */
        message_append(message, arena, slice_of(encoded.data, first));
        encoded = slice_of(encoded.data + first, encoded.size - first);
    }
    if (encoded.size > 0)
        message_append(message, arena, encoded);
    for (size_t i = 0; i < two.count; i++)
        model->fields[model->count++] = two.fields[i];
}

static void replace_both(struct pair *pair, struct message_field *field,
                         struct model_field *expected, struct arena *arena, unsigned depth)
{
    if (expected->number == LEAF) {
        expected->leaf = random_leaf();
        message_replace(&pair->it, field, arena_copy(arena, expected->leaf));
    } else {
        expected->child = random_model(depth + 1, random_below(4));
        message_replace(&pair->it, field, encode(expected->child, arena));
    }
}

static void edit(struct message *message, struct model *model, struct arena *arena, unsigned depth);

static void edit_field(struct pair *pair, struct message_field *field, struct model_field *expected,
                       struct arena *arena, unsigned depth)
{
    switch (random_below(6)) {
    case 0:
        message_remove(&pair->it, field);
        expected->removed = true;
        break;
    case 1:
        if (expected->number <= LEAF)
            replace_both(pair, field, expected, arena, depth);
        break;
    case 2:
    case 3:
        if (expected->number <= NESTED_MAX)
            edit(message_open(&pair->it, field), expected->child, arena, depth + 1);
        break;
    default:
        break;
    }
}

/* Edits a message with two iterators in random order. */
static void edit(struct message *message, struct model *model, struct arena *arena, unsigned depth)
{
    struct pair pairs[2] = {begin_pair(message, arena), begin_pair(message, arena)};
    for (unsigned steps = random_below(20); steps > 0; steps--) {
        struct pair *pair = &pairs[random_below(2)];
        if (random_below(8) == 0 && model->count < 350)
            append_both(message, model, arena, depth);
        struct message_field field;
        struct model_field *expected = next_of_both(pair, model, &field);
        if (expected)
            edit_field(pair, &field, expected, arena, depth);
        else
            *pair = begin_pair(message, arena);
    }
}

/* Checks that everything can be read as in the model, without creating nodes. */
static void compare_reading(struct message_iter it, struct model *model)
{
    struct pair pair = {.it = it};
    struct message_field field;
    struct model_field *expected;
    while ((expected = next_of_both(&pair, model, &field)))
        if (expected->number <= NESTED_MAX)
            compare_reading(message_iter_into(&field, NULL), expected->child);
}

static const struct model_field *next_left(const struct model *model, size_t *at)
{
    while (*at < model->count && model->fields[*at].removed)
        ++*at;
    assert_true(*at < model->count);
    return &model->fields[(*at)++];
}

static void compare_fields(struct slice fields, const struct model *model, size_t *at)
{
    struct message_iter it = message_iter_bytes(fields);
    struct message_field field;
    while (message_next(&it, &field))
        assert_int_equal(field.wire.number, next_left(model, at)->number);
}

/* The same, read by pieces. */
static void compare_pieces(struct message *message, const struct model *model)
{
    struct message_iter it = message_iter(message, NULL);
    struct message_piece piece;
    size_t at = 0, left = 0, count = 0;
    while (message_next_piece(&it, &piece)) {
        assert_true((piece.fields.size > 0) == !piece.node);
        compare_fields(piece.fields, model, &at);
        if (!piece.node)
            continue;
        const struct model_field *expected = next_left(model, &at);
        assert_int_equal(piece.node->number, expected->number);
        if (expected->number <= NESTED_MAX)
            compare_pieces(piece.node, expected->child);
    }
    for (size_t i = 0; i < model->count; i++) {
        left += !model->fields[i].removed;
        count += i < at && !model->fields[i].removed;
    }
    assert_int_equal(count, left);
}

static void compare_bytes(struct message *message, const struct model *model)
{
    struct arena arena = {0};
    struct slice expected = encode(model, &arena);
    size_t size = message_measure(message);
    assert_int_equal(size, expected.size);
    uint8_t *written = memory_alloc(size ? size : 1);
    assert_ptr_equal(message_write(message, written), written + size);
    assert_true(slice_equal(slice_of(written, size), expected));
    struct slice_list list = {0};
    message_gather(message, &arena, &list);
    assert_int_equal(list.size, size);
    size_t at = 0;
    for (size_t i = 0; i < list.count; i++) {
        assert_true(slice_equal(list.items[i], slice_of(written + at, list.items[i].size)));
        at += list.items[i].size;
    }
    assert_int_equal(at, size);
    free(written);
    arena_deinit(&arena);
}

static void edited_messages_equal_a_naive_model(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 1500; seed++) {
        random_state = seed;
        struct model *model = random_model(0, random_below(12));
        struct slice received = encode(model, &model_arena);
        uint8_t *bytes = memory_alloc(received.size ? received.size : 1);
        if (received.size > 0)
            memcpy(bytes, received.data, received.size);
        struct message root;
        struct arena arena = {0};
        message_init(&root, slice_of(bytes, received.size));
        for (int round = 0; round < 3; round++) {
            edit(&root, model, &arena, 0);
            compare_reading(message_iter(&root, NULL), model);
            compare_pieces(&root, model);
            compare_bytes(&root, model);
        }
        arena_deinit(&arena);
        arena_deinit(&model_arena);
        free(bytes);
    }
}

/* Removes fields, replaces them by shorter ones, and likewise in what they contain. */
static void shrink(struct message *message, struct model *model, struct arena *arena)
{
    struct pair pair = begin_pair(message, arena);
    struct message_field field;
    struct model_field *expected;
    while ((expected = next_of_both(&pair, model, &field))) {
        unsigned what = random_below(5);
        if (what == 0) {
            message_remove(&pair.it, &field);
            expected->removed = true;
        } else if (what == 4 && expected->number == LEAF) {
            expected->leaf.size = random_below((unsigned)expected->leaf.size + 1);
            message_replace(&pair.it, &field, arena_copy(arena, expected->leaf));
        } else if (what > 1 && expected->number <= NESTED_MAX) {
            shrink(message_open(&pair.it, &field), expected->child, arena);
        }
    }
}

static void messages_that_became_shorter_are_written_over_themselves(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 1500; seed++) {
        random_state = seed;
        struct model *model = random_model(0, 1 + random_below(12));
        struct slice received = encode(model, &model_arena);
        uint8_t *bytes = memory_alloc(received.size);
        memcpy(bytes, received.data, received.size);
        struct message root;
        struct arena arena = {0};
        message_init(&root, slice_of(bytes, received.size));
        shrink(&root, model, &arena);
        struct slice expected = encode(model, &arena);
        size_t size = message_measure(&root);
        assert_true(message_shrinks(&root));
        assert_ptr_equal(message_write(&root, bytes), bytes + size);
        assert_true(slice_equal(slice_of(bytes, size), expected));
        arena_deinit(&arena);
        arena_deinit(&model_arena);
        free(bytes);
    }
}

/* ---- single steps ---- */

static struct message_field field_at(struct message_iter *it, int position)
{
    struct message_field field;
    for (int i = 0; i <= position; i++)
        assert_true(message_next(it, &field));
    return field;
}

static void assert_bytes(struct message *message, struct slice expected)
{
    uint8_t bytes[256];
    size_t size = message_measure(message);
    assert_true(size <= sizeof bytes);
    message_write(message, bytes);
    assert_int_equal(size, expected.size);
    assert_memory_equal(bytes, expected.data, size);
}

/* 1: "a", 2: { 1: "b" }, 5: 7 */
#define EXAMPLE                                                                                    \
    "\x0a\x01"                                                                                     \
    "a"                                                                                            \
    "\x12\x03\x0a\x01"                                                                             \
    "b"                                                                                            \
    "\x28\x07"

static void opening_changes_nothing(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct message root;
    message_init(&root, SLICE(EXAMPLE));
    struct message_iter it = message_iter(&root, &arena);
    struct message_field field = field_at(&it, 1);
    struct message *child = message_open(&it, &field);
    assert_ptr_equal(message_open(&it, &field), child);
    it = message_iter(&root, &arena);
    field = field_at(&it, 1);
    assert_ptr_equal(field.node, child); /* found again */
    assert_false(root.changed);
    struct slice_list list = {0};
    message_measure(&root);
    message_gather(&root, &arena, &list);
    assert_int_equal(list.size, root.raw.size);
    assert_bytes(&root, SLICE(EXAMPLE));
    arena_deinit(&arena);
}

static void an_unchanged_message_is_sent_as_it_came(void **state)
{
    (void)state;
    struct arena arena = {0};
    uint8_t bytes[1000], payload[900] = {0};
    uint8_t *end = wire_write_bytes(bytes, 1, slice_of(payload, sizeof payload));
    struct message root;
    message_init(&root, slice_of(bytes, (size_t)(end - bytes)));
    struct slice_list list = {0};
    message_measure(&root);
    message_gather(&root, &arena, &list);
    assert_int_equal(list.count, 1);
    assert_ptr_equal(list.items[0].data, bytes); /* not copied */
    arena_deinit(&arena);
}

static void what_was_appended_can_be_changed(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct message root;
    message_init(&root, SLICE("\x0a\x01"
                              "a"));
    message_append(&root, &arena,
                   SLICE("\x12\x03\x0a\x01"
                         "b"));
    message_append(&root, &arena,
                   SLICE("\x1a\x01"
                         "c"
                         "\x28\x07"));
    struct message_iter it = message_iter(&root, &arena);
    struct message_field field = field_at(&it, 1);
    struct message *child = message_open(&it, &field);
    message_append(child, &arena, SLICE("\x10\x05"));
    field = field_at(&it, 0);
    message_replace(&it, &field, SLICE("CC"));
    field = field_at(&it, 0);
    message_remove(&it, &field);
    assert_false(message_next(&it, &field));
    assert_bytes(&root, SLICE("\x0a\x01"
                              "a"
                              "\x12\x05\x0a\x01"
                              "b"
                              "\x10\x05\x1a\x02"
                              "CC"));
    arena_deinit(&arena);
}

/* One iterator is at the appended fields when another opens a received field. */
static void iterators_may_be_at_different_runs(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct message root;
    message_init(&root, SLICE(EXAMPLE));
    message_append(&root, &arena,
                   SLICE("\x1a\x01"
                         "c"));
    struct message_iter ahead = message_iter(&root, &arena), behind = message_iter(&root, &arena);
    struct message_field appended = field_at(&ahead, 3), received = field_at(&behind, 0);
    message_remove(&behind, &received);
    message_replace(&ahead, &appended, SLICE("C"));
    assert_bytes(&root, SLICE("\x12\x03\x0a\x01"
                              "b"
                              "\x28\x07\x1a\x01"
                              "C"));
    struct message_iter again = message_iter(&root, &arena);
    appended = field_at(&again, 2);
    assert_non_null(appended.node);
    assert_true(slice_is(appended.wire.bytes, "C"));
    arena_deinit(&arena);
}

static void what_gained_bytes_does_not_shrink(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct message root;
    for (int what = 0; what < 4; what++) {
        message_init(&root, SLICE("\x0a\x03\x0a\x01"
                                  "x"));
        assert_true(message_shrinks(&root));
        struct message_iter it = message_iter(&root, &arena);
        struct message_field field = field_at(&it, 0), inner;
        struct message_iter below = message_iter(message_open(&it, &field), &arena);
        inner = field_at(&below, 0);
        if (what == 0)
            message_append(&root, &arena, SLICE("\x08\x01"));
        else if (what == 1)
            message_append(field.node, &arena, SLICE("\x08\x01"));
        else if (what == 2)
            message_replace(&below, &inner, SLICE("yy"));
        else /* by bytes that may be gone when they are read */
            message_replace(&below, &inner, slice_of(root.raw.data + 1, 1));
        assert_false(message_shrinks(&root));
    }
    arena_deinit(&arena);
}

static void an_iterator_sees_what_is_appended_meanwhile(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct message root;
    message_init(&root, (struct slice){0});
    struct message_iter it = message_iter(&root, &arena);
    struct message_field field;
    assert_false(message_next(&it, &field));
    static const uint8_t run[] = {0x08, 1, 0x08, 2, 0x08, 3};
    for (uint64_t i = 0; i < 3; i++) {
        message_append(&root, &arena, slice_of(run + 2 * i, 2));
        assert_true(message_next(&it, &field));
        assert_true(field.wire.value == i + 1);
        assert_false(message_next(&it, &field));
    }
    assert_ptr_equal(root.tail, root.tail_last); /* one run */
    assert_bytes(&root, slice_of(run, 6));
    arena_deinit(&arena);
}

/* In the present tree: without removed fields, with replaced and appended ones. */
static void fields_of_one_number_are_found(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct message root;
    message_init(&root, SLICE("\x0a\x01"
                              "a\x08\x05\x12\x01"
                              "x\x0a\x01"
                              "b\x0a\x01"
                              "c"));
    struct message_iter it = message_iter(&root, &arena);
    struct message_field field;
    assert_true(message_next_bytes(&it, 1, &field) && slice_is(field.wire.bytes, "a"));
    message_remove(&it, &field);
    assert_true(message_next_bytes(&it, 1, &field) && slice_is(field.wire.bytes, "b"));
    message_replace(&it, &field, SLICE("B"));
    message_append(&root, &arena,
                   SLICE("\x0a\x01"
                         "d"));
    it = message_iter(&root, NULL);
    assert_true(message_next_bytes(&it, 1, &field) && slice_is(field.wire.bytes, "B"));
    assert_true(message_next_bytes(&it, 1, &field) && slice_is(field.wire.bytes, "c"));
    assert_true(message_next_bytes(&it, 1, &field) && slice_is(field.wire.bytes, "d"));
    assert_false(message_next_bytes(&it, 1, &field));
    it = message_iter_bytes(root.raw);
    assert_true(message_next_bytes(&it, 2, &field) && slice_is(field.wire.bytes, "x"));
    assert_false(message_next_bytes(&it, 2, &field));
    arena_deinit(&arena);
}

static void lengths_above_a_change_grow(void **state)
{
    (void)state;
    struct arena arena = {0};
    static const uint8_t payload[126];
    struct message root;
    message_init(&root, SLICE("\x12\x02\x0a\x00"));
    struct message_iter it = message_iter(&root, &arena);
    struct message_field field = field_at(&it, 0);
    struct message *child = message_open(&it, &field);
    struct message_iter sub = message_iter(child, &arena);
    field = field_at(&sub, 0);
    message_replace(
        &sub, &field,
        slice_of(payload,
                 126)); /* 128 with its header, so the length of its parent has two bytes */
    assert_int_equal(message_measure(&root), 1 + 2 + 1 + 1 + 126);
    arena_deinit(&arena);
}

/* The received bytes of a changed message lack the change, and are marked as stale. */
static void bytes_of_a_changed_message_are_stale(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct message root;
    struct message_field field, below;
    message_init(&root, SLICE("\x0a\x02\x12\x00\x0a\x00"));
    struct message_iter it = message_iter(&root, &arena);
    field = field_at(&it, 0);
    struct message *child = message_open(&it, &field);
    assert_false(child->raw_is_stale);
    struct message_iter sub = message_iter(child, &arena);
    below = field_at(&sub, 0);
    message_append(message_open(&sub, &below), &arena, SLICE("\x20\x01"));
    assert_true(child->raw_is_stale && root.raw_is_stale);
    it = message_iter(&root, &arena);
    assert_true(message_next(&it, &field) && field.wire.bytes.data == wire_stale);
    sub = message_iter_into(&field, NULL);
    assert_true(message_next(&sub, &below) && below.wire.bytes.data == wire_stale);
    message_replace(&it, &field, SLICE("\x20\x02")); /* the whole payload, known again */
    it = message_iter(&root, &arena);
    assert_true(message_next(&it, &field) && slice_is(field.wire.bytes, "\x20\x02"));
    assert_true(message_next(&it, &field) && field.wire.bytes.size == 0);
    arena_deinit(&arena);
}

static void read_stale_bytes(void)
{
    struct wire_cursor cursor = wire_cursor(slice_of(wire_stale, 1));
    struct wire_field field;
    close(STDERR_FILENO); /* where the assert prints its message */
    wire_next(&cursor, &field);
    _exit(0);
}

static void reading_stale_bytes_asserts(void **state)
{
    (void)state;
    int status;
    pid_t child = fork();
    if (child == 0)
        read_stale_bytes();
    assert_true(waitpid(child, &status, 0) == child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

/* An iterator over bytes continues as one over a node. */
static void a_message_is_opened_while_it_is_read(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct message root;
    struct message_field field, below;
    message_init(&root, SLICE("\x0a\x06\x12\x00\x12\x00\x12\x00"));
    struct message_iter it = message_iter(&root, &arena);
    assert_true(message_next(&it, &field));
    struct message_iter sub = message_iter_into(&field, &arena);
    assert_true(message_next(&sub, &below) && message_next(&sub, &below));
    assert_null(root.children);
    message_iter_open(&sub, &it, &field);
    message_iter_open(&sub, &it, &field); /* a second call does nothing */
    message_remove(&sub, &below);
    assert_true(message_next(&sub, &below));
    message_append(message_open(&sub, &below), &arena, SLICE("\x20\x01"));
    assert_false(message_next(&sub, &below));
    uint8_t written[16];
    assert_int_equal(message_measure(&root), 8);
    message_write(&root, written);
    assert_memory_equal(written, "\x0a\x06\x12\x00\x12\x02\x20\x01", 8);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edited_messages_equal_a_naive_model),
        cmocka_unit_test(messages_that_became_shorter_are_written_over_themselves),
        cmocka_unit_test(what_gained_bytes_does_not_shrink),
        cmocka_unit_test(opening_changes_nothing),
        cmocka_unit_test(an_unchanged_message_is_sent_as_it_came),
        cmocka_unit_test(what_was_appended_can_be_changed),
        cmocka_unit_test(iterators_may_be_at_different_runs),
        cmocka_unit_test(an_iterator_sees_what_is_appended_meanwhile),
        cmocka_unit_test(fields_of_one_number_are_found),
        cmocka_unit_test(lengths_above_a_change_grow),
        cmocka_unit_test(bytes_of_a_changed_message_are_stale),
        cmocka_unit_test(reading_stale_bytes_asserts),
        cmocka_unit_test(a_message_is_opened_while_it_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
