#include "core/base/budget.h"
#include "core/base/hash.h"
#include "core/base/worker.h"
#include "core/pipeline/batch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* Two resource_spans, the second with a schema_url. */
#define REQUEST                                                                                    \
    "\x0a\x00\x0a\x03\x1a\x01"                                                                     \
    "s"
#define SECOND_REQUEST                                                                             \
    "\x0a\x05\x1a\x03"                                                                             \
    "two"

static struct worker worker;
static struct budget budget;

static int begin(void **state)
{
    (void)state;
    hash_init();
    budget = (struct budget){0};
    worker_init_manual(&worker, 0, 1000);
    return 0;
}

static int end(void **state)
{
    (void)state;
    worker_deinit(&worker);
    return budget_used(&budget) == 0 ? 0 : -1; /* everything was released */
}

static struct batch *make_batch(enum signal signal, struct slice request, struct receipt *receipt)
{
    struct buffer *buffer = buffer_new_charged(request.size, &budget);
    buffer_append(buffer, request.data, request.size, request.size);
    return batch_new(&worker, signal, buffer, 2, receipt, NULL);
}

static struct batch *make_traces(void)
{
    return make_batch(SIGNAL_TRACES, SLICE(REQUEST), NULL);
}

static void assert_bytes(struct batch *batch, struct slice expected)
{
    struct slice_list list = {0};
    batch_gather(batch, &list);
    assert_int_equal(list.size, expected.size);
    assert_int_equal(batch_size(batch), expected.size);
    size_t at = 0;
    for (size_t i = 0; i < list.count; i++) {
        assert_true(at + list.items[i].size <= expected.size);
        assert_memory_equal(list.items[i].data, expected.data + at, list.items[i].size);
        at += list.items[i].size;
    }
}

static struct message *open_at(struct batch *batch, size_t part, int position)
{
    struct message_iter it = message_iter(&batch->parts[part].root, &batch->arena);
    struct message_field field;
    for (int i = 0; i <= position; i++)
        assert_true(message_next(&it, &field));
    return message_open(&it, &field);
}

#define APPENDED                                                                                   \
    SLICE("\x1a\x01"                                                                               \
          "x") /* schema_url of a resource_spans */
#define CHANGED                                                                                    \
    "\x0a\x03\x1a\x01"                                                                             \
    "x"                                                                                            \
    "\x0a\x03\x1a\x01"                                                                             \
    "s"

static void change(struct batch *batch)
{
    message_append(open_at(batch, 0, 0), &batch->arena, APPENDED);
}

static void a_batch_holds_what_came(void **state)
{
    (void)state;
    struct batch *batch = make_traces();
    assert_bytes(batch, SLICE(REQUEST));
    assert_int_equal(batch->arrived_ns, 1000);
    assert_int_equal(batch->items, 2);
    assert_false(batch_is_changed(batch));
    assert_true(batch_memory(batch) >= sizeof(REQUEST) - 1);
    assert_int_equal(batch_memory(batch), budget_used(&budget));
    open_at(batch, 0, 1);
    assert_false(batch_is_changed(batch)); /* opening changes nothing */
    change(batch);
    assert_true(batch_is_changed(batch));
    assert_bytes(batch, SLICE(CHANGED));
    assert_int_equal(batch_memory(batch), budget_used(&budget));
    batch_free(batch);
}

static void clones_share_bytes_and_nothing_else(void **state)
{
    (void)state;
    struct batch *batch = make_traces();
    worker_advance(&worker, 5000);
    struct batch *clone = batch_clone(batch);
    assert_ptr_equal(clone->parts[0].buffer, batch->parts[0].buffer);
    assert_int_equal(clone->arrived_ns, 1000);
    assert_int_equal(clone->items, 2);
    assert_null(clone->receipt);
    change(batch);
    assert_bytes(clone, SLICE(REQUEST));
    message_append(&clone->parts[0].root, &clone->arena, SLICE("\x0a\x00"));
    assert_bytes(clone, SLICE(REQUEST "\x0a\x00"));
    assert_bytes(batch, SLICE(CHANGED));
    batch_free(batch);
    assert_bytes(clone, SLICE(REQUEST "\x0a\x00"));
    batch_free(clone);
}

static void a_changed_batch_is_written_out_once_for_its_clones(void **state)
{
    (void)state;
    struct batch *batch = make_traces();
    change(batch);
    struct batch *first = batch_clone(batch), *second = batch_clone(batch);
    assert_ptr_equal(first->parts[0].buffer, batch->parts[0].buffer);
    assert_ptr_equal(second->parts[0].buffer, batch->parts[0].buffer);
    assert_false(batch_is_changed(batch));
    batch_free(batch);
    assert_bytes(first, SLICE(CHANGED));
    assert_bytes(second, SLICE(CHANGED));
    batch_free(first);
    batch_free(second);
}

static void flattening_leaves_the_meaning(void **state)
{
    (void)state;
    struct batch *batch = make_traces();
    struct buffer *received = buffer_ref(batch->parts[0].buffer);
    batch_flatten(batch);
    assert_ptr_equal(batch->parts[0].buffer, received); /* nothing was rewritten */
    change(batch);
    batch_flatten(batch);
    assert_ptr_not_equal(batch->parts[0].buffer, received);
    assert_bytes(batch, SLICE(CHANGED));
    change(batch); /* it can be changed again, based on the new bytes */
    assert_bytes(batch, SLICE("\x0a\x06\x1a\x01"
                              "x"
                              "\x1a\x01"
                              "x"
                              "\x0a\x03\x1a\x01"
                              "s"));
    buffer_unref(received);
    batch_free(batch);
}

static void what_was_only_opened_can_be_given_back(void **state)
{
    (void)state;
    struct batch *batch = make_traces();
    struct buffer *received = batch->parts[0].buffer;
    struct message_iter it = message_iter(&batch->parts[0].root, &batch->arena);
    struct message_field field;
    assert_true(message_next(&it, &field));
    arena_alloc(&batch->arena, 1000);
    assert_true(batch_memory(batch) > received->capacity);
    batch_compact(batch);
    assert_ptr_equal(batch->parts[0].buffer, received);
    assert_int_equal(batch_memory(batch), received->capacity);
    assert_bytes(batch, SLICE(REQUEST));
    change(batch);
    batch_compact(batch);
    assert_int_equal(batch->arena.reserved_bytes, 0);
    assert_bytes(batch, SLICE(CHANGED));
    batch_free(batch);
}

static void remove_first(struct batch *batch)
{
    struct message_iter it = message_iter(&batch->parts[0].root, &batch->arena);
    struct message_field field;
    assert_true(message_next(&it, &field));
    message_remove(&it, &field);
}

#define SECOND                                                                                     \
    "\x0a\x03\x1a\x01"                                                                             \
    "s"

/* Only the owner of the one reference may change the bytes. */
static void what_became_smaller_is_written_over_itself(void **state)
{
    (void)state;
    for (int is_shared = 0; is_shared < 2; is_shared++) {
        struct batch *batch = make_traces(), *clone = is_shared ? batch_clone(batch) : NULL;
        const struct buffer *buffer = batch->parts[0].buffer;
        remove_first(batch);
        batch_flatten(batch);
        assert_bytes(batch, SLICE(SECOND));
        assert_int_equal(batch->parts[0].buffer == buffer, !is_shared);
        assert_false(batch_is_changed(batch));
        if (clone)
            assert_bytes(clone, SLICE(REQUEST));
        else
            assert_int_equal(batch_memory(batch), budget_used(&budget));
        batch_free(batch);
        if (clone)
            batch_free(clone);
    }
}

static void a_batch_may_become_empty(void **state)
{
    (void)state;
    struct batch *batch = make_traces();
    struct message_iter it = message_iter(&batch->parts[0].root, &batch->arena);
    struct message_field field;
    while (message_next(&it, &field))
        message_remove(&it, &field);
    assert_bytes(batch, SLICE(""));
    batch_flatten(batch);
    assert_bytes(batch, SLICE(""));
    struct batch *clone = batch_clone(batch);
    assert_bytes(clone, SLICE(""));
    batch_free(clone);
    batch_free(batch);
}

static void traces_merge_by_standing_behind_each_other(void **state)
{
    (void)state;
    struct batch *batch = make_traces(),
                 *other = make_batch(SIGNAL_TRACES, SLICE(SECOND_REQUEST), NULL);
    change(other);
    batch_append(batch, other);
    assert_int_equal(batch->part_count, 2);
    assert_int_equal(batch->items, 4);
    assert_bytes(batch, SLICE(REQUEST "\x0a\x08\x1a\x03"
                                      "two"
                                      "\x1a\x01"
                                      "x"));
    change(batch);
    batch_append(batch, make_traces());
    assert_bytes(batch, SLICE(CHANGED "\x0a\x08\x1a\x03"
                                      "two"
                                      "\x1a\x01"
                                      "x" REQUEST));
    struct batch *clone = batch_clone(batch);
    assert_int_equal(clone->part_count, 3);
    batch_free(batch);
    assert_bytes(clone, SLICE(CHANGED "\x0a\x08\x1a\x03"
                                      "two"
                                      "\x1a\x01"
                                      "x" REQUEST));
    batch_free(clone);
}

/* Nodes that were opened but not changed stay valid when the batch grows: the roots move, and
 * the nodes must follow. */
static struct batch *make_traces_of(struct budget *source)
{
    struct buffer *buffer = buffer_new_charged(sizeof(REQUEST) - 1, source);
    buffer_append(buffer, REQUEST, sizeof(REQUEST) - 1, SIZE_MAX);
    return batch_new(&worker, SIGNAL_TRACES, buffer, 2, NULL, NULL);
}

/* Received bytes stay charged to their source. Bytes made from both sources are charged to their
 * common parent. */
static void sources_that_are_joined(void **state)
{
    (void)state;
    struct budget one = {.parent = &budget}, other = {.parent = &budget};
    struct batch *batch = make_traces_of(&one);
    struct message *first = open_at(batch, 0, 0);
    size_t opened = batch->arena.reserved_bytes;
    size_t request = budget_used(&one) - opened;
    batch_append(batch, make_traces_of(&one));
    assert_int_equal(budget_used(&one), 2 * request + opened);
    batch_append(batch, make_traces_of(&other));
    assert_int_equal(budget_used(&one), 2 * request);
    assert_int_equal(budget_used(&other), request);
    assert_int_equal(budget_used(&budget), 3 * request + opened);
    message_append(first, &batch->arena, APPENDED);
    batch_flatten(batch); /* the first part, still of one source */
    assert_true(budget_used(&one) > 2 * request);
    batch_free(batch);
    assert_int_equal(budget_used(&one), 0);
    assert_int_equal(budget_used(&other), 0);
}

static void what_is_open_survives_appending(void **state)
{
    (void)state;
    struct batch *batch = make_traces();
    struct message *first = open_at(batch, 0, 0);
    for (int i = 0; i < 20; i++)
        batch_append(batch, make_batch(SIGNAL_TRACES, SLICE(SECOND_REQUEST), NULL));
    assert_ptr_equal(open_at(batch, 0, 0), first);
    message_append(first, &batch->arena, APPENDED);
    assert_true(batch_is_changed(batch));
    assert_true(batch->parts[0].root.changed);
    assert_int_equal(batch_size(batch), sizeof(CHANGED) - 1 + 20 * (sizeof(SECOND_REQUEST) - 1));
    batch_free(batch);
}

struct watched {
    struct receipt receipt; /* first */
    unsigned settled;
    enum grpc_code code;
};

static void on_settled(struct receipt *receipt, const struct verdict *verdict)
{
    ((struct watched *)receipt)->settled++;
    ((struct watched *)receipt)->code = verdict->code;
}

static void dropping_settles_once(void **state)
{
    (void)state;
    struct watched watched = {0};
    struct verdict refused = verdict_of(GRPC_INTERNAL, "no");
    receipt_init(&watched.receipt, on_settled);
    struct batch *batch = make_batch(SIGNAL_TRACES, SLICE(REQUEST), &watched.receipt);
    struct batch *clone = batch_clone(batch);
    batch_free(clone); /* has no part of the receipt */
    assert_int_equal(watched.settled, 0);
    batch_settle(batch, &refused);
    assert_int_equal(watched.settled, 1);
    assert_int_equal(watched.code, GRPC_INTERNAL);
    batch_drop(batch, &verdict_ok); /* already settled */
    assert_int_equal(watched.settled, 1);
}

/* dictionary { string_table: "", "a" } */
#define PROFILES                                                                                   \
    "\x12\x05\x2a\x00\x2a\x01"                                                                     \
    "a"

static void the_dictionary_is_made_anew_after_flattening(void **state)
{
    (void)state;
    struct batch *batch = make_batch(SIGNAL_PROFILES, SLICE(PROFILES), NULL);
    struct dictionary *dictionary = batch_dictionary(batch);
    assert_ptr_equal(batch_dictionary(batch), dictionary);
    assert_int_equal(dictionary_count(dictionary, DICTIONARY_STRING_TABLE), 2);
    assert_int_equal(dictionary_add(dictionary, DICTIONARY_STRING_TABLE, SLICE("b")), 2);
    struct batch *clone = batch_clone(batch); /* encodes it, which frees the old dictionary */
    assert_null(batch->dictionary);
    assert_null(clone->dictionary);
    assert_int_equal(dictionary_add(batch_dictionary(clone), DICTIONARY_STRING_TABLE, SLICE("c")),
                     3);
    assert_int_equal(dictionary_count(batch_dictionary(batch), DICTIONARY_STRING_TABLE), 3);
    assert_int_equal(dictionary_find(batch_dictionary(batch), DICTIONARY_STRING_TABLE, SLICE("b")),
                     2);
    assert_int_equal(dictionary_find(batch_dictionary(batch), DICTIONARY_STRING_TABLE, SLICE("c")),
                     0);
    assert_bytes(batch, SLICE("\x12\x08\x2a\x00\x2a\x01"
                              "a"
                              "\x2a\x01"
                              "b"));
    assert_bytes(clone, SLICE("\x12\x0b\x2a\x00\x2a\x01"
                              "a"
                              "\x2a\x01"
                              "b"
                              "\x2a\x01"
                              "c"));
    batch_free(batch);
    batch_free(clone);
}

static void contexts_are_shared(void **state)
{
    (void)state;
    struct context *context = context_new();
    context->entries = arena_array(&context->arena, 1, sizeof(*context->entries));
    context->entries[0] = (struct context_entry){"tenant", arena_strdup(&context->arena, "a")};
    context->entry_count = 1;
    struct batch *batch = make_traces();
    batch->context = context;
    struct batch *clone = batch_clone(batch);
    batch_free(batch);
    assert_string_equal(context_get(clone->context, "tenant"), "a");
    assert_null(context_get(clone->context, "nobody"));
    assert_null(context_get(NULL, "tenant"));
    batch_free(clone);
    assert_null(context_ref(NULL));
    context_unref(NULL);
}

static void signals_have_the_collectors_names(void **state)
{
    (void)state;
    assert_string_equal(signal_name(SIGNAL_TRACES), "traces");
    assert_string_equal(signal_name(SIGNAL_PROFILES), "profiles");
    assert_string_equal(signal_item_name(SIGNAL_TRACES), "spans");
    assert_string_equal(signal_item_name(SIGNAL_PROFILES), "profile_samples");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_batch_holds_what_came),
        TEST(clones_share_bytes_and_nothing_else),
        TEST(a_changed_batch_is_written_out_once_for_its_clones),
        TEST(flattening_leaves_the_meaning),
        TEST(what_was_only_opened_can_be_given_back),
        TEST(what_became_smaller_is_written_over_itself),
        TEST(a_batch_may_become_empty),
        TEST(traces_merge_by_standing_behind_each_other),
        TEST(what_is_open_survives_appending),
        TEST(sources_that_are_joined),
        TEST(dropping_settles_once),
        TEST(the_dictionary_is_made_anew_after_flattening),
        TEST(contexts_are_shared),
        TEST(signals_have_the_collectors_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
