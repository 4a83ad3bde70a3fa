/* The worked examples of docs/data.md, which shows what is between the marks
 * (tests/e2e/test_data_examples.py compares). */
#include "core/base/text.h"
#include "core/data/any_value.h"
#include "core/pipeline/component_as.h"
#include "core/pipeline/items.h"
#include "core/pipeline/large_batches.h"
#include "tests/unit/expect_text.h"
#include "tests/unit/pipeline_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

extern const struct component_type shortening_type;

/* example: read an attribute */
/* Returns how many spans or samples have the attribute with this text. */
static uint32_t count_items_with(struct batch *batch, struct slice key, struct slice text)
{
    struct items items = items_of(batch);
    struct slice value; /* the payload of an AnyValue: any_value_read says what it holds */
    uint32_t count = 0;
    while (items_next(&items)) {
        if (!item_get_attribute(&items, key, &value))
            continue;
        struct any_value read = any_value_read(value);
        count += read.kind == ANY_VALUE_STRING && slice_equal(read.bytes, text);
    }
    return count;
}
/* end */

/* example: change an attribute */
/* Replaces each value of the attribute by a text. */
static void mask_attribute(struct batch *batch, struct slice key)
{
    /* Encoded once for all items; the dictionary gets one entry of it, too. */
    struct slice masked = any_value_encode(&batch->arena, any_value_string(SLICE("***")));
    struct items items = items_of(batch);
    struct slice value;
    while (items_next(&items))
        if (item_get_attribute(&items, key, &value))
            item_set_attribute(&items, key, masked);
}
/* end */

/* example: add an attribute to a sample */
/* Adds an attribute with the number of its values to each sample. The same call works for spans. */
static void add_value_counts(struct batch *batch)
{
    struct items items = items_of(batch);
    while (items_next(&items)) {
        struct message_iter sample = item_read(&items);
        struct message_field field;
        int64_t count = 0;
        while (message_next_bytes(&sample, SAMPLE_VALUES, &field)) {
            struct wire_cursor packed = wire_cursor(field.wire.bytes);
            for (uint64_t value; wire_packed_varint(&packed, &value);)
                count++;
        }
        item_set_attribute(&items, SLICE("value_count"),
                           any_value_encode(&batch->arena, any_value_int(count)));
    }
}
/* end */

/* example: read all attributes */
/* Counts the attributes of all spans or samples whose key begins with the text. */
static uint32_t count_attributes(struct batch *batch, struct slice beginning)
{
    struct items items = items_of(batch);
    uint32_t count = 0;
    while (items_next(&items)) {
        struct item_attribute attribute = item_attribute_first(&items);
        while (item_attribute_next(&attribute))
            count += attribute.key.size >= beginning.size &&
                     slice_equal(slice_of(attribute.key.data, beginning.size), beginning);
    }
    return count;
}
/* end */

/* example: decide about all attributes */
struct shortening {
    struct batch *batch;
    size_t size_max;
};

/* Decides about one attribute: a password goes, a string that is too long becomes its beginning. */
static enum attribute_decision shorten(void *context, struct slice key, struct slice *value)
{
    const struct shortening *shortening = context;
    if (slice_is(key, "password"))
        return ATTRIBUTE_REMOVE;
    struct any_value read = any_value_read(*value);
    if (read.kind != ANY_VALUE_STRING || read.bytes.size <= shortening->size_max)
        return ATTRIBUTE_KEEP;
    size_t size = text_utf8_cut(read.bytes, shortening->size_max); /* splits no character */
    *value = any_value_encode(&shortening->batch->arena,
                              any_value_string(slice_of(read.bytes.data, size)));
    return ATTRIBUTE_SET;
}

/* Returns how many attributes of spans or samples became shorter, or were removed. */
static uint32_t shorten_values(struct batch *batch, size_t size_max)
{
    struct shortening shortening = {batch, size_max};
    struct attribute_rule rule = {shorten, &shortening};
    struct items items = items_of(batch);
    uint32_t changed = 0;
    while (items_next(&items))
        changed += item_edit_attributes(&items, &rule);
    return changed;
}
/* end */

/* example: remove a span */
/* Removes spans with this name, and passes the batch on with the others. */
static void drop_spans_named(struct node *node, struct batch *batch, struct slice name)
{
    struct items items = items_of(batch);
    while (items_next(&items)) {
        struct message_iter span = item_read(&items);
        struct message_field field;
        if (message_next_bytes(&span, SPAN_NAME, &field) && slice_equal(field.wire.bytes, name))
            item_remove(&items); /* subtracts 1 from batch->items */
    }
    if (batch->items == 0)
        batch_drop(batch, &verdict_ok); /* nothing is left to send: success */
    else
        node_forward(node, batch);
}
/* end */

/* example: change another field */
/* Cuts the name of each span, not in the middle of a character. It stays where it is among the
 * fields. */
static void cut_names(struct batch *batch, size_t size_max)
{
    struct items items = items_of(batch);
    while (items_next(&items)) {
        struct message_iter span = item_read(&items);
        struct message_field name;
        if (!message_next_bytes(&span, SPAN_NAME, &name) || name.wire.bytes.size <= size_max)
            continue;
        /* The span changes, so open a node for it. An iterator over the node finds the field
         * again. */
        span = message_iter(item_open(&items), &batch->arena);
        while (message_next_bytes(&span, SPAN_NAME, &name))
            message_replace(
                &span, &name,
                slice_of(name.wire.bytes.data, text_utf8_cut(name.wire.bytes, size_max)));
    }
}
/* end */

/* example: work on large batches in a job */
struct shortening_node {
    struct node node; /* first */
    struct large_batches batches;
    uint64_t shortened; /* a processor has a counter here */
};

/* Runs in a job if the batch is large: no metric, and of the node only its settings. */
static uint64_t work_on(struct node *node, struct batch *batch)
{
    (void)node;
    return shorten_values(batch, 3);
}

/* Back on the worker. */
static void count_and_forward(struct node *node, struct batch *batch, uint64_t shortened)
{
    node_as(struct shortening_node, node, &shortening_type)->shortened += shortened;
    node_forward(node, batch);
}

static const struct batch_work shortening_work = {
    .work = work_on, .forward = count_and_forward, .large_bytes = 1 << 20};

static bool shortening_start(struct node *node, struct error *err)
{
    (void)err;
    large_batches_init(&node_as(struct shortening_node, node, &shortening_type)->batches, node,
                       &shortening_work);
    return true;
}

static void shortening_consume(struct node *node, struct batch *batch)
{
    large_batches_add(&node_as(struct shortening_node, node, &shortening_type)->batches, batch);
}

static bool shortening_is_idle(const struct node *node)
{
    return large_batches_is_empty(
        &node_as(const struct shortening_node, node, &shortening_type)->batches);
}

static void shortening_stop(struct node *node)
{
    large_batches_stop(&node_as(struct shortening_node, node, &shortening_type)->batches);
}
/* end */

/* ---- running the examples ---- */

#define SPANS(spans) "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[" spans "]}]}]}"
#define ENV(value) "\"attributes\":[{\"key\":\"env\",\"value\":{\"stringValue\":\"" value "\"}}]"

/* The example that the test's processor calls. */
static void (*under_test)(struct node *node, struct batch *batch);

static void consume(struct node *node, struct batch *batch)
{
    under_test(node, batch);
}

static const struct field no_fields[] = {FIELD_END};
static const struct component_type examined_type = {
    .config = {.name = "examined",
               .section = CONFIG_PROCESSORS,
               .stability = {STABILITY_STABLE, STABILITY_STABLE},
               .fields = no_fields,
               .config_size = 1},
    .consume = consume,
};

/* Checks the result of an example. after: NULL if nothing is sent on. */
static void expect_result(void (*example)(struct node *node, struct batch *batch),
                          enum signal signal, const char *before, uint32_t items, const char *after)
{
    struct fixture f;
    struct probe probe;
    under_test = example;
    fixture_init(&f, 1);
    struct fixture_place *place = fixture_place(
        &f, &examined_type, "examined", "processors: {examined: }", signal_name(signal), signal);
    fixture_consume_json(&f, place->nodes[0], before, items, &probe);
    assert_true(probe.settled == 1 && verdict_is_ok(&probe.verdict));
    assert_int_equal(f.recorder.count, after != NULL);
    if (after) {
        char *got = fixture_recorded_json(&f, 0);
        expect_text(got, after);
        free(got);
    }
    fixture_deinit(&f);
}

static void counts(struct node *node, struct batch *batch)
{
    assert_int_equal(count_items_with(batch, SLICE("env"), SLICE("a")), 2);
    assert_int_equal(count_items_with(batch, SLICE("env"), SLICE("b")), 1);
    assert_int_equal(count_items_with(batch, SLICE("en"), SLICE("a")), 0);
    assert_false(batch_is_changed(batch));
    node_forward(node, batch);
}

static void an_attribute_is_read(void **state)
{
    (void)state;
#define THREE SPANS("{" ENV("a") "},{" ENV("b") "},{},{" ENV("a") "}")
    expect_result(counts, SIGNAL_TRACES, THREE, 4, THREE);
}

static void masks(struct node *node, struct batch *batch)
{
    mask_attribute(batch, SLICE("env"));
    node_forward(node, batch);
}

static void an_attribute_is_changed(void **state)
{
    (void)state;
    expect_result(masks, SIGNAL_TRACES, SPANS("{" ENV("a") "},{\"name\":\"b\"}"), 2,
                  SPANS("{" ENV("***") "},{\"name\":\"b\"}"));
}

#define SAMPLES(first, texts, attributes)                                                          \
    "{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{\"samples\":[{" first              \
    "\"values\":[\"1\",\"300\"]}]}]}]}],\"dictionary\":{"                                          \
    "\"mappingTable\":[{}],\"locationTable\":[{}],\"functionTable\":[{}],\"linkTable\":[{}],"      \
    "\"stringTable\":[\"\"" texts "],\"attributeTable\":[{}" attributes "],\"stackTable\":[{}]}}"

static void adds_counts(struct node *node, struct batch *batch)
{
    add_value_counts(batch);
    node_forward(node, batch);
}

static void a_sample_gains_an_attribute(void **state)
{
    (void)state;
    expect_result(adds_counts, SIGNAL_PROFILES, SAMPLES("", "", ""), 1,
                  SAMPLES("\"attributeIndices\":[1],", ",\"value_count\"",
                          ",{\"keyStrindex\":1,\"value\":{\"intValue\":\"2\"}}"));
}

static void counts_attributes(struct node *node, struct batch *batch)
{
    assert_int_equal(count_attributes(batch, SLICE("env")), 2);
    assert_int_equal(count_attributes(batch, SLICE("envy")), 0);
    assert_int_equal(count_attributes(batch, SLICE("")), 2);
    node_forward(node, batch);
}

static void all_attributes_are_read(void **state)
{
    (void)state;
#define TWO SPANS("{" ENV("a") "},{},{" ENV("b") "}")
    expect_result(counts_attributes, SIGNAL_TRACES, TWO, 3, TWO);
}

static void shortens(struct node *node, struct batch *batch)
{
    assert_int_equal(shorten_values(batch, 3), batch->signal == SIGNAL_TRACES ? 1 : 2);
    node_forward(node, batch);
}

static void all_attributes_are_decided_about(void **state)
{
    (void)state;
    expect_result(shortens, SIGNAL_TRACES, SPANS("{" ENV("ab\u00e9") "},{" ENV("abc") "},{}"), 3,
                  SPANS("{" ENV("ab") "},{" ENV("abc") "},{}"));
#define SHORTER(first, more)                                                                       \
    SAMPLES(first, ",\"env\",\"ms\",\"password\"",                                                 \
            ",{\"keyStrindex\":1,\"value\":{\"stringValue\":\"abcd\"},\"unitStrindex\":2}"         \
            ",{\"keyStrindex\":3,\"value\":{\"stringValue\":\"secret\"}}" more)
    expect_result(shortens, SIGNAL_PROFILES, SHORTER("\"attributeIndices\":[1,2],", ""), 1,
                  SHORTER("\"attributeIndices\":[3],",
                          ",{\"keyStrindex\":1,\"value\":{\"stringValue\":\"abc\"},"
                          "\"unitStrindex\":2}"));
}

static void drops(struct node *node, struct batch *batch)
{
    drop_spans_named(node, batch, SLICE("health"));
}

static void a_span_is_removed(void **state)
{
    (void)state;
    expect_result(drops, SIGNAL_TRACES, SPANS("{\"name\":\"health\"},{\"name\":\"b\"}"), 2,
                  SPANS("{\"name\":\"b\"}"));
    expect_result(drops, SIGNAL_TRACES, SPANS("{\"name\":\"health\"}"), 1, NULL);
}

static void cuts(struct node *node, struct batch *batch)
{
    cut_names(batch, 3);
    node_forward(node, batch);
}

static void a_name_is_cut(void **state)
{
    (void)state;
    expect_result(cuts, SIGNAL_TRACES, SPANS("{\"name\":\"abcd\",\"kind\":2},{\"name\":\"abc\"}"),
                  2, SPANS("{\"name\":\"abc\",\"kind\":2},{\"name\":\"abc\"}"));
    expect_result(cuts, SIGNAL_TRACES, SPANS("{\"name\":\"ab\u00e9\"}"), 1,
                  SPANS("{\"name\":\"ab\"}"));
}

const struct component_type shortening_type = {
    .config = {.name = "shortening",
               .section = CONFIG_PROCESSORS,
               .stability = {STABILITY_STABLE, STABILITY_STABLE},
               .fields = no_fields,
               .config_size = 1},
    .node_size = sizeof(struct shortening_node),
    .node_start = shortening_start,
    .consume = shortening_consume,
    .is_idle = shortening_is_idle,
    .node_stop = shortening_stop,
};

/* A batch of 1 MiB and a small one behind it. */
static void large_batches_are_worked_on_in_a_job(void **state)
{
    (void)state;
    struct fixture f;
    struct probe large, small;
    struct text request = {0};
    fixture_init(&f, 1);
    struct node *node = fixture_place(&f, &shortening_type, "shortening",
                                      "processors: {shortening: }", "traces", SIGNAL_TRACES)
                            ->nodes[0];
    text_append(&request, "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"attributes\":[{"
                          "\"key\":\"env\",\"value\":{\"stringValue\":\"abcd");
    for (int i = 0; i < (1 << 20) / 64; i++)
        text_printf(&request, "%064d", 0);
    text_append(&request, "\"}}]}]}]}]}");
    fixture_consume_json(&f, node, text_string(&request), 1, &large);
    fixture_consume_json(&f, node, SPANS("{" ENV("abcd") "}"), 1, &small);
    assert_int_equal(f.recorder.count, 0);
    fixture_advance(&f, 0); /* it leaves its job */
    assert_int_equal(f.recorder.count, 2);
    for (size_t i = 0; i < 2; i++) {
        char *got = fixture_recorded_json(&f, i);
        expect_text(got, SPANS("{" ENV("abc") "}"));
        free(got);
    }
    assert_int_equal(node_as(struct shortening_node, node, &shortening_type)->shortened, 2);
    text_deinit(&request);
    fixture_deinit(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_attribute_is_read),
        cmocka_unit_test(an_attribute_is_changed),
        cmocka_unit_test(a_sample_gains_an_attribute),
        cmocka_unit_test(all_attributes_are_read),
        cmocka_unit_test(all_attributes_are_decided_about),
        cmocka_unit_test(a_span_is_removed),
        cmocka_unit_test(a_name_is_cut),
        cmocka_unit_test(large_batches_are_worked_on_in_a_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
