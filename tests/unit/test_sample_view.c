#include "core/base/memory.h"
#include "core/base/saturate.h"
#include "core/base/text.h"
#include "processors/spanjoin/sample_view.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MAX = 300, SAMPLES = 5000 };

struct numbers {
    uint64_t items[MAX];
    uint32_t count;
};

struct sample {
    uint32_t link; /* 0: none */
    struct numbers attributes, values, timestamps;
};

enum how { USUAL, UNPACKED, REVERSED, HOW_COUNT };

static uint64_t below(uint64_t *random, uint64_t limit)
{
    *random = *random * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (*random >> 33) % limit;
}

/* Mostly few numbers, of all sizes below `bits`. */
static void choose(struct numbers *out, uint64_t *random, unsigned bits)
{
    uint64_t most = below(random, 8) == 0 ? MAX : 3;
    out->count = (uint32_t)below(random, most + 1);
    for (uint32_t i = 0; i < out->count; i++) {
        uint64_t number = below(random, UINT32_MAX) << 32 | below(random, UINT32_MAX);
        out->items[i] = number >> (64 - bits + below(random, bits));
    }
}

static void put(struct text *out, const uint8_t *bytes, const uint8_t *end)
{
    text_append_slice(out, slice_of(bytes, (size_t)(end - bytes)));
}

static void put_number(struct text *out, uint32_t field, uint64_t number)
{
    uint8_t bytes[2 * WIRE_HEADER_MAX];
    put(out, bytes, wire_write_varint(wire_write_tag(bytes, field, WIRE_VARINT), number));
}

static void put_list(struct text *out, uint32_t field, const struct numbers *numbers, enum how how)
{
    bool is_fixed = field == SAMPLE_TIMESTAMPS_UNIX_NANO;
    struct text packed = {0};
    for (uint32_t i = 0; i < numbers->count; i++) {
        uint8_t bytes[2 * WIRE_HEADER_MAX];
        if (how == UNPACKED && is_fixed)
            put(out, bytes, wire_write_fixed64(bytes, field, numbers->items[i]));
        else if (how == UNPACKED)
            put_number(out, field, numbers->items[i]);
        else if (is_fixed)
            put(&packed, bytes + 1, wire_write_fixed64(bytes, 1, numbers->items[i]));
        else
            put(&packed, bytes, wire_write_varint(bytes, numbers->items[i]));
    }
    uint8_t header[WIRE_HEADER_MAX];
    if (packed.size > 0) {
        put(out, header, wire_write_header(header, field, packed.size));
        text_append_slice(out, slice_of(packed.data, packed.size));
    }
    text_deinit(&packed);
}

static void put_field(struct text *out, uint32_t field, const struct sample *sample, enum how how)
{
    if (field == SAMPLE_STACK_INDEX)
        put_number(out, field, 300);
    else if (field == SAMPLE_ATTRIBUTE_INDICES)
        put_list(out, field, &sample->attributes, how);
    else if (field == SAMPLE_LINK_INDEX && sample->link > 0)
        put_number(out, field, sample->link);
    else if (field == SAMPLE_VALUES)
        put_list(out, field, &sample->values, how);
    else if (field == SAMPLE_TIMESTAMPS_UNIX_NANO)
        put_list(out, field, &sample->timestamps, how);
}

/* Returns a copy of exactly its size, so that a sanitizer detects reads past its end. */
static struct slice encode(const struct sample *sample, enum how how)
{
    struct text out = {0};
    for (uint32_t i = 0; i < 5; i++)
        put_field(&out, how == REVERSED ? 5 - i : 1 + i, sample, how);
    uint8_t *exact = memory_alloc(out.size);
    memcpy(exact, out.data, out.size);
    struct slice raw = slice_of(exact, out.size);
    text_deinit(&out);
    return raw;
}

static void assert_is(const struct sample_view *view, const struct sample *sample)
{
    uint64_t sum = 0, from = UINT64_MAX, to = 0;
    for (uint32_t i = 0; i < sample->values.count; i++)
        sum = saturate_sum(sum, sample->values.items[i]);
    for (uint32_t i = 0; i < sample->timestamps.count; i++) {
        from = sample->timestamps.items[i] < from ? sample->timestamps.items[i] : from;
        to = sample->timestamps.items[i] > to ? sample->timestamps.items[i] : to;
    }
    assert_int_equal(view->link, sample->link);
    assert_int_equal(view->attribute_count, sample->attributes.count);
    for (uint32_t i = 0; i < view->attribute_count; i++)
        assert_int_equal(view->attributes[i], sample->attributes.items[i]);
    assert_int_equal(view->values, sample->values.count);
    assert_true(view->sum == sum);
    assert_int_equal(view->timestamps, sample->timestamps.count);
    assert_true(view->timestamps == 0 || (view->from_ns == from && view->to_ns == to));
}

static void a_sample_is_read_however_it_is_written(void **state)
{
    (void)state;
    uint64_t random = 1;
    unsigned usual = 0;
    struct sample_plan plan = {.batch = NULL};
    for (unsigned i = 0; i < SAMPLES; i++) {
        struct sample sample = {.link = (uint32_t)below(&random, 40000)};
        choose(&sample.attributes, &random, 32);
        choose(&sample.values, &random, 64);
        choose(&sample.timestamps, &random, 64);
        for (enum how how = USUAL; how < HOW_COUNT; how++) {
            struct slice raw = encode(&sample, how);
            struct sample_layout layout;
            usual += sample_layout_read(raw, &layout);
            struct sample_view view = sample_view_read(&plan, raw);
            assert_is(&view, &sample);
            free((uint8_t *)raw.data);
        }
    }
    assert_in_range(usual, SAMPLES, 2 * SAMPLES);
    arena_deinit(&plan.arena);
}

/* Whether a usual sample is one of a single event. */
static bool is_of_event(const struct sample_layout *layout)
{
    return layout->link == 0 && sample_short_list(layout->attributes) != 0 &&
           layout->values.size > 0 && layout->values.size < 0x80 &&
           layout->timestamps.size == sizeof(uint64_t);
}

static void assert_is_event(const struct sample_event *event, const struct sample_layout *layout)
{
    struct slice attributes = sample_event_attributes(event);
    assert_int_equal(event->stack, layout->stack);
    assert_true(event->list == sample_short_list(layout->attributes));
    assert_ptr_equal(event->attributes_start, layout->attributes_start);
    assert_ptr_equal(attributes.data, layout->attributes.data);
    assert_int_equal(attributes.size, layout->attributes.size);
    assert_ptr_equal(event->values.data, layout->values.data);
    assert_int_equal(event->values.size, layout->values.size);
    assert_true(event->time_ns == wire_load_fixed64(layout->timestamps.data));
}

static void a_sample_of_one_event_is_read_as_others(void **state)
{
    (void)state;
    uint64_t random = 2;
    unsigned events = 0;
    for (unsigned i = 0; i < SAMPLES; i++) {
        struct sample sample = {.link = below(&random, 8) == 0};
        choose(&sample.attributes, &random, 14);
        choose(&sample.values, &random, below(&random, 2) ? 28 : 64);
        choose(&sample.timestamps, &random, 64);
        for (enum how how = USUAL; how < HOW_COUNT; how++) {
            struct slice raw = encode(&sample, how);
            struct sample_layout layout;
            struct sample_event event;
            bool is_event = sample_layout_read(raw, &layout) && is_of_event(&layout);
            assert_int_equal(sample_event_read(raw, &event), is_event);
            if (is_event)
                assert_is_event(&event, &layout);
            events += is_event;
            free((uint8_t *)raw.data);
        }
    }
    assert_in_range(events, SAMPLES / 20, SAMPLES);
}

/* The beginning of one, and one with a byte changed: reads nothing beyond the end. */
static void a_broken_sample_of_one_event_is_none(void **state)
{
    static const uint8_t sample[] = {0x08, 1, 0x12, 3, 1, 2, 3, 0x22, 2, 0x80, 1,
                                     0x2a, 8, 1,    2, 3, 4, 5, 6,    7, 8};
    struct sample_event event;
    (void)state;
    assert_true(sample_event_read(slice_of(sample, sizeof sample), &event));
    for (size_t size = 0; size < sizeof sample; size++) {
        uint8_t *exact = memory_alloc(size + 1);
        memcpy(exact + 1, sample, size);
        assert_false(sample_event_read(slice_of(exact + 1, size), &event));
        free(exact);
    }
    for (size_t i = 0; i < sizeof sample * 256; i++) {
        uint8_t *changed = memory_alloc(sizeof sample);
        memcpy(changed, sample, sizeof sample);
        changed[i / 256] = (uint8_t)i;
        struct slice raw = slice_of(changed, sizeof sample);
        struct sample_layout layout;
        if (sample_event_read(raw, &event) && sample_layout_read(raw, &layout))
            assert_is_event(&event, &layout);
        free(changed);
    }
}

static void a_field_that_comes_twice_is_not_usual(void **state)
{
    static const char *const others[] = {"\x08\x01\x08\x01",
                                         "\x12\x01\x01\x12\x01\x01",
                                         "\x18\x01\x18\x01",
                                         "\x18\x01\x12\x01\x01",
                                         "\x12",
                                         "\x22\x01\x01\x38\x01"};
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct sample_layout layout;
        assert_false(sample_layout_read(slice_of_string(others[i]), &layout));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sample_is_read_however_it_is_written),
        cmocka_unit_test(a_sample_of_one_event_is_read_as_others),
        cmocka_unit_test(a_broken_sample_of_one_event_is_none),
        cmocka_unit_test(a_field_that_comes_twice_is_not_usual),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
