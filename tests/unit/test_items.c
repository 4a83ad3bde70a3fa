#include "core/pipeline/items.h"

#include "core/base/worker.h"
#include "core/data/any_value.h"
#include "core/data/json.h"
#include "core/data/scan.h"
#include "tests/unit/expect_text.h"
#include "tests/unit/pipeline_fixture.h"
#include "tests/unit/wire_text.h"

#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct worker worker;

static int set_up(void **state)
{
    (void)state;
    worker_init_manual(&worker, 0, FIXTURE_START_NS);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    worker_deinit(&worker);
    return 0;
}

static struct batch *batch_of(enum signal signal, struct slice bytes, uint32_t items)
{
    struct buffer *buffer = buffer_new(bytes.size, NULL);
    if (bytes.size > 0)
        memcpy(buffer->data, bytes.data, bytes.size);
    buffer->size = bytes.size;
    return batch_new(&worker, signal, buffer, items, NULL, NULL);
}

static struct batch *batch_of_text(enum signal signal, const char *notation, uint32_t items)
{
    struct text encoded = wire_text(notation);
    struct batch *batch = batch_of(signal, wire_text_slice(&encoded), items);
    text_deinit(&encoded);
    return batch;
}

/* Compares the batch, as it would be sent, with `notation`. */
static void expect_sent(struct batch *batch, const char *notation)
{
    struct text wanted = wire_text(notation), want = {0}, got = {0};
    struct slice_list list = {0};
    batch_gather(batch, &list);
    for (size_t i = 0; i < list.count; i++)
        text_append_hex(&got, list.items[i]);
    text_append_hex(&want, wire_text_slice(&wanted));
    expect_text_of(notation, text_string(&got), text_string(&want));
    text_deinit(&wanted);
    text_deinit(&want);
    text_deinit(&got);
}

static struct slice string_value(struct batch *batch, const char *text)
{
    return any_value_encode(&batch->arena, any_value_string(slice_of_string(text)));
}

/* Returns the names of the spans, concatenated. */
static char *names_of(struct batch *batch)
{
    struct text names = {0};
    struct items items = items_of(batch);
    while (items_next(&items)) {
        struct message_iter span = item_read(&items);
        struct message_field field;
        text_append_char(&names, ' ');
        if (message_next_bytes(&span, SPAN_NAME, &field))
            text_append_slice(&names, field.wire.bytes);
    }
    assert_false(items_next(&items)); /* and it stays so */
    text_append(&names, ".");
    return names.data;
}

/* ---- iteration ---- */

static void all_spans_are_found(void **state)
{
    (void)state;
    static const struct {
        const char *request;
        const char *names;
    } cases[] = {
        {"", "."},
        {"1{}", "."},
        {"1{2{}}", "."},
        {"1{1{} 2{1{} 2{5\"a\"} 2{} 2{5\"b\"}} 3\"s\" 2{2{5\"c\"}}} 1{} 1{2{} 2{2{5\"d\"}}}",
         " a  b c d."},
        {"9=1 1{9\"x\" 2{2{5\"a\"} 9=1}}", " a."},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct batch *batch = batch_of_text(SIGNAL_TRACES, cases[i].request, 0);
        char *names = names_of(batch);
        expect_text_of(cases[i].request, names, cases[i].names);
        assert_false(batch_is_changed(batch));
        free(names);
        batch_free(batch);
    }
}

static void spans_of_all_parts_are_found(void **state)
{
    (void)state;
    struct batch *batch = batch_of_text(SIGNAL_TRACES, "1{2{2{5\"a\"}}}", 1);
    batch_append(batch, batch_of_text(SIGNAL_TRACES, "1{2{}}", 0));
    batch_append(batch, batch_of_text(SIGNAL_TRACES, "1{2{2{5\"b\"}}}", 1));
    char *names = names_of(batch);
    expect_text(names, " a b.");
    free(names);
    batch_free(batch);
}

static void samples_are_found(void **state)
{
    (void)state;
    struct batch *batch =
        batch_of_text(SIGNAL_PROFILES, "1{2{2{2{1=1} 2{1=2}} 2{} 2{2{1=3}}}} 2{}", 3);
    struct items items = items_of(batch);
    struct message_field field;
    for (uint64_t number = 1; number <= 3; number++) {
        assert_true(items_next(&items));
        struct message_iter sample = item_read(&items);
        assert_true(message_next(&sample, &field) && field.wire.value == number);
    }
    assert_false(items_next(&items));
    batch_free(batch);
}

/* ---- changing ---- */

static void items_are_removed(void **state)
{
    (void)state;
    struct batch *batch =
        batch_of_text(SIGNAL_TRACES, "1{1{} 2{2{5\"a\"} 2{5\"b\"}} 2{2{5\"c\"}}}", 3);
    struct items items = items_of(batch);
    assert_true(items_next(&items));
    item_remove(&items);
    assert_true(items_next(&items));
    assert_true(items_next(&items));
    item_remove(&items);
    assert_false(items_next(&items));
    assert_int_equal(batch->items, 1);
    expect_sent(batch, "1{1{} 2{2{5\"b\"}} 2{}}");
    char *names = names_of(batch);
    expect_text(names, " b.");
    free(names);
    batch_free(batch);
}

/* Nodes are created only for a changed item and for the messages around it. */
static void only_what_changes_is_opened(void **state)
{
    (void)state;
    struct batch *batch =
        batch_of_text(SIGNAL_TRACES, "1{2{2{5\"a\"}}} 1{2{2{5\"b\"} 2{5\"c\"}} 2{2{5\"d\"}}}", 4);
    struct items items = items_of(batch);
    for (int i = 0; i < 3; i++)
        assert_true(items_next(&items));
    message_append(item_open(&items), &batch->arena, SLICE("\x30\x01"));
    while (items_next(&items))
        continue;
    struct message *resource = batch->parts[0].root.children;
    assert_non_null(resource);
    assert_null(resource->next);
    assert_null(resource->children->next);
    assert_null(resource->children->children->next);
    expect_sent(batch, "1{2{2{5\"a\"}}} 1{2{2{5\"b\"} 2{5\"c\" 6=1}} 2{2{5\"d\"}}}");
    batch_free(batch);
}

/* A second component reads what the first one changed. */
static void changes_are_seen_by_the_next_one(void **state)
{
    (void)state;
    struct batch *batch = batch_of_text(SIGNAL_TRACES, "1{2{2{5\"a\"} 2{5\"b\"}}}", 2);
    struct slice value, one = string_value(batch, "1"), two = string_value(batch, "2");
    struct items first = items_of(batch), second = items_of(batch);
    while (items_next(&first))
        assert_true(item_set_attribute(&first, SLICE("k"), one));
    while (items_next(&second)) {
        assert_true(item_get_attribute(&second, SLICE("k"), &value) && slice_equal(value, one));
        assert_false(item_set_attribute(&second, SLICE("k"), one));
        assert_true(item_set_attribute(&second, SLICE("k"), two));
    }
    expect_sent(batch, "1{2{2{5\"a\" 9{1\"k\" 2{1\"2\"}}} 2{5\"b\" 9{1\"k\" 2{1\"2\"}}}}}");
    batch_free(batch);
}

/* ---- attributes, of both signals ---- */

#define DICTIONARY                                                                                 \
    "2{1{} 2{} 3{} 4{} 5\"\" 5\"k\" 5\"v\" 5\"ms\" 6{} 6{1=1 2{1\"1\"} 3=3} 6{1=2 2{3=7}} 7{}"
#define SAMPLE(sample) "1{2{2{2{1=1 " sample "}}}} " DICTIONARY
#define SPAN(attributes) "1{2{2{5\"s\" " attributes "}}}"

enum operation { SET, REMOVE, GET };

/* The changes to attribute k, and their results; NULL: the same bytes. */
static const struct change {
    enum signal signal;
    const char *before;
    enum operation operation;
    const char *value;
    bool result;
    const char *after;
} changes[] = {
    {SIGNAL_TRACES, SPAN(""), GET, "1", false, NULL},
    {SIGNAL_TRACES, SPAN("9{1\"k\" 2{1\"1\"}}"), GET, "1", true, NULL},
    {SIGNAL_TRACES, SPAN(""), SET, "1", true, SPAN("9{1\"k\" 2{1\"1\"}}")},
    {SIGNAL_TRACES, SPAN("9{1\"k\" 2{1\"1\"}}"), SET, "1", false, NULL},
    {SIGNAL_TRACES, SPAN("9{1\"k\" 2{3=1}} 6=1"), SET, "1", true, SPAN("9{1\"k\" 2{1\"1\"}} 6=1")},
    {SIGNAL_TRACES, SPAN("9{1\"j\"}"), REMOVE, NULL, false, NULL},
    {SIGNAL_TRACES, SPAN("9{1\"k\"} 9{1\"j\"} 9{1\"k\"}"), REMOVE, NULL, true, SPAN("9{1\"j\"}")},
    {SIGNAL_PROFILES, SAMPLE("") "}", GET, "1", false, NULL},
    {SIGNAL_PROFILES, SAMPLE("2[2 1]") "}", GET, "1", true, NULL},
    {SIGNAL_PROFILES, SAMPLE("2=1") "}", GET, "1", true, NULL},
    {SIGNAL_PROFILES, SAMPLE("2[1]") "}", SET, "1", false, NULL},
    /* without a unit, the attribute differs from the existing entry */
    {SIGNAL_PROFILES, SAMPLE("") "}", SET, "1", true, SAMPLE("2[3]") " 6{1=1 2{1\"1\"}}}"},
    {SIGNAL_PROFILES, SAMPLE("2[2] 4[5]") "}", SET, "2", true,
     SAMPLE("2[2 3] 4[5]") " 6{1=1 2{1\"2\"}}}"},
    /* the unit stays */
    {SIGNAL_PROFILES, SAMPLE("2[1 2]") "}", SET, "2", true,
     SAMPLE("2[3 2]") " 6{1=1 2{1\"2\"} 3=3}}"},
    /* lists may be in several pieces, or not packed */
    {SIGNAL_PROFILES, SAMPLE("2=2 4[5] 2[2] 2=2") "}", SET, "2", true,
     SAMPLE("4[5] 2[2 2 2 3]") " 6{1=1 2{1\"2\"}}}"},
    {SIGNAL_PROFILES, SAMPLE("2=2 4[5]") "}", SET, "2", true,
     SAMPLE("4[5] 2[2 3]") " 6{1=1 2{1\"2\"}}}"},
    {SIGNAL_PROFILES, SAMPLE("2[2]") "}", REMOVE, NULL, false, NULL},
    {SIGNAL_PROFILES, SAMPLE("2[1 2 1]") "}", REMOVE, NULL, true, SAMPLE("2[2]") "}"},
    {SIGNAL_PROFILES, SAMPLE("2[1]") "}", REMOVE, NULL, true, SAMPLE("") "}"},
};

static bool operate(struct items *items, const struct change *change)
{
    struct slice found, value = {0};
    if (change->value)
        value = string_value(items->batch, change->value);
    switch (change->operation) {
    case SET:
        return item_set_attribute(items, SLICE("k"), value);
    case REMOVE:
        return item_remove_attribute(items, SLICE("k"));
    case GET:
        return item_get_attribute(items, SLICE("k"), &found) && slice_equal(found, value);
    }
    return false;
}

static void attributes_are_changed(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        const struct change *change = &changes[i];
        struct batch *batch = batch_of_text(change->signal, change->before, 1);
        struct items items = items_of(batch);
        assert_true(items_next(&items));
        if (operate(&items, change) != change->result)
            fail_msg("change %zu of %s", i, change->before);
        assert_false(items_next(&items));
        assert_int_equal(batch_is_changed(batch), change->after != NULL);
        expect_sent(batch, change->after ? change->after : change->before);
        batch_free(batch);
    }
}

/* Equal attributes of many samples share one entry, also with a long value, wherever its bytes
 * are. */
static void samples_share_entries(void **state)
{
    (void)state;
    static char text[4096];
    memset(text, 'x', sizeof text - 1);
    struct batch *batch = batch_of_text(
        SIGNAL_PROFILES, "1{2{2{1000*2{1=1}}}} 2{1{} 2{} 3{} 4{} 5\"\" 6{} 7{}}", 1000);
    struct slice long_value = string_value(batch, text), other = string_value(batch, text);
    struct items items = items_of(batch);
    for (int i = 0; items_next(&items); i++) {
        assert_true(item_set_attribute(&items, SLICE("short"), string_value(batch, "v")));
        assert_true(item_set_attribute(&items, SLICE("long"), i % 2 ? long_value : other));
        assert_false(item_set_attribute(&items, SLICE("long"), i % 2 ? other : long_value));
    }
    struct dictionary *dictionary = batch_dictionary(batch);
    assert_int_equal(dictionary_count(dictionary, DICTIONARY_ATTRIBUTE_TABLE), 1 + 2);
    assert_int_equal(items.sample_attributes.long_value_count, 2);
    batch_flatten(batch);
    assert_true(batch_size(batch) < 1000 * (size_t)12 + 2 * sizeof text);
    batch_free(batch);
}

/* ---- all attributes ---- */

/* Appends "k(entry)=1 j=2 ": attributes whose values are strings. */
static void append_attributes(struct items *items, struct text *text)
{
    struct item_attribute attribute = item_attribute_first(items);
    while (item_attribute_next(&attribute)) {
        text_append_slice(text, attribute.key);
        if (attribute.entry > 0)
            text_printf(text, "(%u)", attribute.entry);
        text_append(text, "=");
        text_append_slice(text, any_value_read(attribute.value).bytes);
        text_append(text, " ");
    }
    text_append(text, ".");
}

#define TEXT(key, value) "9{1\"" key "\" 2{1\"" value "\"}}"

/* Entry 0 stands for no attribute, wherever it is. */
static void all_attributes_are_read(void **state)
{
    (void)state;
    static const struct {
        enum signal signal;
        const char *request;
        const char *attributes;
    } cases[] = {
        {SIGNAL_TRACES, SPAN(""), "."},
        {SIGNAL_TRACES, SPAN(TEXT("k", "1") " 6=1 " TEXT("j", "2")), "k=1 j=2 ."},
        {SIGNAL_PROFILES, SAMPLE("") "}", "."},
        {SIGNAL_PROFILES, SAMPLE("2[0 2 1]") " 6{1=2 2{1\"a\"}}}", "v(2)= k(1)=1 ."},
        {SIGNAL_PROFILES, SAMPLE("2=3 2[1] 2[0] 4[5] 2=1") " 6{1=2 2{1\"a\"}}}",
         "v(3)=a k(1)=1 k(1)=1 ."},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct batch *batch = batch_of_text(cases[i].signal, cases[i].request, 1);
        struct items items = items_of(batch);
        struct text text = {0};
        assert_true(items_next(&items));
        append_attributes(&items, &text);
        expect_text_of(cases[i].request, text_string(&text), cases[i].attributes);
        assert_false(items_next(&items) || batch_is_changed(batch));
        text_deinit(&text);
        batch_free(batch);
    }
}

/* A rule that counts how often it is asked: "keep" stays, "drop" goes, "same" is set to what it
 * is, and all else becomes "new". */
struct asked {
    struct batch *batch;
    unsigned times;
};

static enum attribute_decision by_value(void *context, struct slice key, struct slice *value)
{
    struct asked *asked = context;
    struct slice text = any_value_read(*value).bytes;
    assert_true(key.size > 0);
    asked->times++;
    if (slice_is(text, "keep"))
        return ATTRIBUTE_KEEP;
    if (slice_is(text, "drop"))
        return ATTRIBUTE_REMOVE;
    *value = string_value(asked->batch, slice_is(text, "same") ? "same" : "new");
    return ATTRIBUTE_SET;
}

#define TABLES                                                                                     \
    "2{1{} 2{2[1 3]} 3{} 4{} 5\"\" 5\"k\" 5\"ms\" 6{} 6{1=1 2{1\"old\"} 3=2} "                     \
    "6{1=1 2{1\"keep\"}} 6{1=1 2{1\"drop\"}} 6{1=1 2{1\"same\"}} 7{}"
#define SAMPLES(samples) "1{2{2{" samples "}}} " TABLES

/* {signal, before, number of items, changed attributes, times asked, after (NULL: the same)} */
static const struct edit {
    enum signal signal;
    const char *before;
    uint32_t items;
    uint32_t changed;
    unsigned asked;
    const char *after;
} edits[] = {
    {SIGNAL_TRACES, SPAN(""), 1, 0, 0, NULL},
    {SIGNAL_TRACES, SPAN(TEXT("k", "keep") " " TEXT("k", "same")), 1, 0, 2, NULL},
    {SIGNAL_TRACES, SPAN(TEXT("k", "old") " 6=1 " TEXT("k", "keep")), 1, 1, 2,
     SPAN(TEXT("k", "new") " 6=1 " TEXT("k", "keep"))},
    {SIGNAL_TRACES,
     SPAN(TEXT("k", "keep") " " TEXT("k", "drop") " " TEXT("k", "old") " " TEXT("k", "drop")), 1, 3,
     4, SPAN(TEXT("k", "keep") " " TEXT("k", "new"))},
    {SIGNAL_PROFILES, SAMPLES("2{2[2 4 0]}") "}", 1, 0, 2, NULL},
    /* each entry once for all samples; the unit stays, and so does the old entry, which a mapping
     * has, too */
    {SIGNAL_PROFILES, SAMPLES("2{2[1 2 3 1]} 3*2{2=1} 2{2[3]}") "}", 5, 7, 3,
     SAMPLES("2{2[5 2 5]} 3*2{2[5]} 2{}") " 6{1=1 2{1\"new\"} 3=2}}"},
};

static void every_attribute_is_decided_about(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        const struct edit *edit = &edits[i];
        struct batch *batch = batch_of_text(edit->signal, edit->before, edit->items);
        struct asked asked = {.batch = batch};
        struct attribute_rule rule = {by_value, &asked};
        struct items items = items_of(batch);
        uint32_t changed = 0;
        while (items_next(&items))
            changed += item_edit_attributes(&items, &rule);
        assert_int_equal(changed, edit->changed);
        assert_int_equal(asked.times, edit->asked);
        assert_int_equal(batch_is_changed(batch), edit->after != NULL);
        expect_sent(batch, edit->after ? edit->after : edit->before);
        batch_free(batch);
    }
}

/* What the component added itself, or one before it, is an entry like the others. */
static void added_attributes_are_decided_about(void **state)
{
    (void)state;
    struct batch *batch = batch_of_text(SIGNAL_PROFILES, SAMPLES("4*2{2[2]}") "}", 4);
    struct asked asked = {.batch = batch};
    struct attribute_rule rule = {by_value, &asked};
    struct items items = items_of(batch);
    for (int i = 0; items_next(&items); i++) {
        assert_int_equal(item_edit_attributes(&items, &rule), 0);
        item_set_attribute(&items, SLICE("more"), string_value(batch, i % 2 ? "drop" : "keep"));
        assert_int_equal(item_edit_attributes(&items, &rule), i % 2);
    }
    assert_int_equal(asked.times, 3);
    expect_sent(batch, "1{2{2{2{2[2 5]} 2{2[2]} 2{2[2 5]} 2{2[2]}}}} " TABLES
                       " 5\"more\" 6{1=3 2{1\"keep\"}} 6{1=3 2{1\"drop\"}}}");
    batch_free(batch);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_spans_are_found),
        TEST(spans_of_all_parts_are_found),
        TEST(samples_are_found),
        TEST(items_are_removed),
        TEST(only_what_changes_is_opened),
        TEST(changes_are_seen_by_the_next_one),
        TEST(attributes_are_changed),
        TEST(samples_share_entries),
        TEST(all_attributes_are_read),
        TEST(every_attribute_is_decided_about),
        TEST(added_attributes_are_decided_about),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
