#include "core/base/budget.h"
#include "core/data/groups_split.h"
#include "core/data/scan.h"
#include "core/data/signals.h"
#include "tests/unit/wire_text.h"

#include <setjmp.h>
#include <stdio.h>

#include <cmocka.h>

static struct budget budget;

/* Two requests: groups of 2, 0, 3 items, and of 1 item. */
static const char *const requests[][2] = {
    {"1{1{} 2{2{5{1{} 1{}}}}} 1{2{}} 1{2{2{7{1{}}} 2{9{1{} 1{}}}}}", "1{2{2{11{1{}}}} 3\"s\"}"},
    {"1{1{} 2{2{} 2{}}} 1{2{}} 1{2{2{}} 2{2{} 2{}}}", "1{2{2{5{}}} 3\"s\"}"},
};
static const enum signal signals[] = {SIGNAL_METRICS, SIGNAL_LOGS};

struct split {
    struct text texts[2];
    struct groups_source *source;
};

static void open_split(struct split *split, size_t index)
{
    struct slice slices[2];
    for (size_t i = 0; i < 2; i++) {
        split->texts[i] = wire_text(requests[index][i]);
        slices[i] = wire_text_slice(&split->texts[i]);
    }
    split->source = groups_source_new(signals[index], slices, 2, &budget);
}

static void close_split(struct split *split)
{
    groups_source_free(split->source);
    for (size_t i = 0; i < 2; i++)
        text_deinit(&split->texts[i]);
}

static void counts_items(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct split split;
        open_split(&split, i);
        assert_int_equal(groups_source_items(split.source), 6);
        close_split(&split);
    }
}

static void fits_whole_groups(void **state)
{
    (void)state;
    static const struct {
        uint32_t first, max, fit;
    } cases[] = {{0, 1, 2}, {0, 2, 2}, {0, 4, 2}, {0, 5, 5}, {0, 6, 6}, {0, UINT32_MAX, 6},
                 {2, 1, 3}, {2, 3, 3}, {2, 4, 4}, {5, 1, 1}, {5, 9, 1}};
    for (size_t i = 0; i < 2; i++) {
        struct split split;
        open_split(&split, i);
        for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++)
            assert_int_equal(
                groups_source_fit(split.source, cases[k].first, cases[k].max, SIZE_MAX),
                cases[k].fit);
        /* by bytes: one byte less than two groups is one group; less than one group is one, too */
        size_t two = groups_source_item_bytes(split.source, 0, 5);
        assert_int_equal(groups_source_fit(split.source, 0, UINT32_MAX, two), 5);
        assert_int_equal(groups_source_fit(split.source, 0, UINT32_MAX, two - 1), 2);
        assert_int_equal(groups_source_fit(split.source, 0, UINT32_MAX, 0), 2);
        close_split(&split);
    }
}

static void check_part(size_t index, const struct groups_source *source, uint32_t first,
                       uint32_t count, const char *expected)
{
    struct scan_result scan;
    struct error err;
    struct text wanted = wire_text(expected);
    struct buffer *part = groups_source_part(source, first, count);
    if (!signal_traits(signals[index])->scan(buffer_slice(part), &scan_limits_default, &scan, &err))
        fail_msg("%s", err.text);
    assert_int_equal(scan.items, count);
    assert_true(slice_equal(buffer_slice(part), wire_text_slice(&wanted)));
    assert_int_equal(groups_source_item_bytes(source, first, count), part->size);
    buffer_unref(part);
    text_deinit(&wanted);
}

/* A part holds the bytes of its groups; groups without items are in none. */
static void parts_keep_their_bytes(void **state)
{
    (void)state;
    static const char *const parts[][2] = {
        {"1{1{} 2{2{5{1{} 1{}}}}}", "1{2{2{7{1{}}} 2{9{1{} 1{}}}}} 1{2{2{11{1{}}}} 3\"s\"}"},
        {"1{1{} 2{2{} 2{}}}", "1{2{2{}} 2{2{} 2{}}} 1{2{2{5{}}} 3\"s\"}"},
    };
    for (size_t i = 0; i < 2; i++) {
        struct split split;
        open_split(&split, i);
        check_part(i, split.source, 0, 2, parts[i][0]);
        check_part(i, split.source, 2, 4, parts[i][1]);
        close_split(&split);
    }
}

static int init(void **state)
{
    (void)state;
    scan_init();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_items),
        cmocka_unit_test(fits_whole_groups),
        cmocka_unit_test(parts_keep_their_bytes),
    };
    return cmocka_run_group_tests(tests, init, NULL);
}
