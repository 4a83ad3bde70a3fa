#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/base/worker.h"
#include "core/data/normalise.h"
#include "core/data/scan.h"
#include "core/pipeline/batch.h"
#include "core/pipeline/batch_cut.h"
#include "core/pipeline/batch_join.h"
#include "tests/unit/captures.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct worker worker;

struct probe {
    struct receipt receipt;
    unsigned settled;
};

static void on_settled(struct receipt *receipt, const struct verdict *verdict)
{
    struct probe *probe = (struct probe *)receipt;
    assert_true(verdict_is_ok(verdict));
    probe->settled++;
}

static bool scan(enum signal signal, struct slice bytes, struct scan_result *result)
{
    struct error err;
    bool passed = signal == SIGNAL_TRACES
                      ? scan_traces(bytes, &scan_limits_default, result, &err)
                      : scan_profiles(bytes, &scan_limits_default, result, &err);
    if (!passed)
        print_error("%s\n", err.text);
    return passed;
}

static struct buffer *flat(struct batch *batch)
{
    struct slice_list list = {0};
    batch_gather(batch, &list);
    struct buffer *buffer = buffer_new(list.size, NULL);
    for (size_t i = 0; i < list.count; i++)
        buffer_append(buffer, list.items[i].data, list.items[i].size, list.size);
    return buffer;
}

/* Checks that the encoded batch passes the receivers' scan and has the stated number of items. */
static void check_whole(struct batch *batch)
{
    struct scan_result result;
    struct buffer *buffer = flat(batch);
    assert_true(scan(batch->signal, buffer_slice(buffer), &result));
    assert_int_equal(result.items, batch->items);
    assert_false(batch->signal == SIGNAL_PROFILES && normalise_needed(&result));
    buffer_unref(buffer);
}

static struct batch *make_batch(const struct capture *capture, struct probe *probe)
{
    struct scan_result result;
    assert_true(scan(capture->signal, capture->body, &result));
    struct buffer *buffer;
    if (capture->signal == SIGNAL_PROFILES && normalise_needed(&result)) {
        buffer = normalise_profiles(capture->body, &result, NULL, &(bool){false});
    } else {
        buffer = buffer_new(capture->body.size, NULL);
        buffer_append(buffer, capture->body.data, capture->body.size, capture->body.size);
    }
    *probe = (struct probe){0};
    receipt_init(&probe->receipt, on_settled);
    return batch_new(&worker, capture->signal, buffer, result.items, &probe->receipt, NULL);
}

/* Joined requests have Links of labels if all of them have. */
static void join_labels(struct batch *whole, bool are_all)
{
    struct batch *list = batch_clone(whole);
    list->next = batch_clone(whole);
    list->next->links_are_labels = are_all;
    struct batch *joined = batch_join(list);
    assert_int_equal(joined->links_are_labels, are_all);
    batch_free(joined);
}

static void join_and_cut(const struct capture *capture, void *context)
{
    unsigned *seen = context;
    struct probe probe;
    if (capture->json)
        return;
    struct batch *whole = make_batch(capture, &probe);
    uint32_t items = whole->items;
    if (items < 3) {
        batch_drop(whole, &verdict_ok);
        return;
    }
    (*seen)++;
    whole->links_are_labels = capture->signal == SIGNAL_PROFILES;
    for (int are_all = 0; are_all < 2 && whole->links_are_labels; are_all++)
        join_labels(whole, are_all);

    struct batch *list = batch_clone(whole);
    list->next = batch_clone(whole);
    list->next->next = batch_clone(whole);
    struct batch *joined = batch_join(list);
    assert_int_equal(joined->items, 3 * items);
    assert_null(joined->next);
    check_whole(joined);
    batch_free(joined);

    uint32_t left = items, size = items / 3;
    struct batch *part = batch_cut(whole, &(struct cut_limits){.max_items = size});
    while (part) {
        struct batch *next = part->next;
        assert_int_equal(part->items, left > size ? size : left);
        assert_int_equal(part->links_are_labels, capture->signal == SIGNAL_PROFILES);
        assert_int_equal(probe.settled, 0);
        check_whole(part);
        left -= part->items;
        batch_drop(part, &verdict_ok);
        part = next;
    }
    assert_int_equal(left, 0);
    assert_int_equal(probe.settled, 1);
}

/* Checks that each part of the split request has at most max_bytes, or one item. On average a
 * part is at least a third full, unless items are large. */
static void check_parts(struct batch *part, size_t max_bytes, uint32_t items)
{
    size_t total = 0, count = 0;
    uint32_t left = items;
    while (part) {
        struct batch *next = part->next;
        check_whole(part);
        if (part->items > 1)
            assert_in_range(batch_size(part), 1, max_bytes);
        total += batch_size(part);
        count++;
        left -= part->items;
        batch_drop(part, &verdict_ok);
        part = next;
    }
    assert_int_equal(left, 0);
    if (count < items / 4)
        assert_true(total >= count * max_bytes / 3);
}

static void cut_to_bytes(const struct capture *capture, void *context)
{
    static const size_t sizes[] = {4000, 20000, 100000};
    unsigned *seen = context;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] && !capture->json; i++) {
        struct probe probe;
        struct batch *whole = make_batch(capture, &probe);
        uint32_t items = whole->items;
        struct cut_limits limits = {.max_items = UINT32_MAX, .max_bytes = sizes[i]};
        if (items < 2 || batch_size(whole) <= sizes[i]) {
            batch_drop(whole, &verdict_ok);
            continue;
        }
        (*seen)++;
        check_parts(batch_cut(whole, &limits), sizes[i], items);
        assert_int_equal(probe.settled, 1);
    }
}

static void parts_of_recorded_requests_keep_a_limit_in_bytes(void **state)
{
    (void)state;
    unsigned seen = 0;
    captures_each(cut_to_bytes, &seen);
    assert_true(seen > 20);
}

static void every_recorded_request(void **state)
{
    (void)state;
    unsigned seen = 0;
    captures_each(join_and_cut, &seen);
    assert_true(seen > 10);
}

static void what_fits_stays_as_it_is(void **state)
{
    (void)state;
    static const uint8_t request[] = {0x0a, 4, 0x12, 2, 0x12, 0};
    struct buffer *buffer = buffer_new(sizeof(request), NULL);
    buffer_append(buffer, request, sizeof(request), sizeof(request));
    struct batch *batch = batch_new(&worker, SIGNAL_TRACES, buffer, 1, NULL, NULL);
    assert_ptr_equal(batch_cut(batch, &(struct cut_limits){.max_items = 1}), batch);
    assert_ptr_equal(batch_join(batch), batch);
    batch_free(batch);
}

enum { SPANS = 1000 };

/* A resource of 10 kB with 1000 spans: parts of one span each would add up to 10 MB. Returns how
 * many times as large as the request all parts together are. */
static size_t blow_up(const struct cut_limits *limits)
{
    enum { RESOURCE = 10000 };
    uint8_t *name = memory_alloc(RESOURCE);
    memset(name, 'r', RESOURCE);
    struct buffer *buffer = buffer_new(RESOURCE + 4 * SPANS + 100, NULL);
    /* resource_spans { resource { attributes { key: "rrr..." } } scope_spans { spans {} ... } } */
    static const uint8_t head[] = {0x0a, 0xec, 0x5d, 0x0a, 0x96, 0x4e,
                                   0x0a, 0x93, 0x4e, 0x0a, 0x90, 0x4e};
    buffer_append(buffer, head, sizeof(head), SIZE_MAX);
    buffer_append(buffer, name, RESOURCE, SIZE_MAX);
    static const uint8_t scope[] = {0x12, 0xd0, 0x0f}, span[] = {0x12, 0};
    buffer_append(buffer, scope, sizeof(scope), SIZE_MAX);
    for (int i = 0; i < SPANS; i++)
        buffer_append(buffer, span, sizeof(span), SIZE_MAX);
    size_t total = 0, whole = buffer->size;
    uint32_t items = 0;
    struct batch *part =
        batch_cut(batch_new(&worker, SIGNAL_TRACES, buffer, SPANS, NULL, NULL), limits);
    while (part) {
        struct batch *next = part->next;
        check_whole(part);
        total += batch_size(part);
        items += part->items;
        batch_free(part);
        part = next;
    }
    assert_int_equal(items, SPANS);
    free(name);
    return total / whole;
}

static void cutting_does_not_blow_up(void **state)
{
    (void)state;
    assert_in_range(blow_up(&(struct cut_limits){.max_items = 1}), 20, 69);
    assert_in_range(blow_up(&(struct cut_limits){.max_items = 1, .is_sparing = true}), 1, 2);
    assert_in_range(blow_up(&(struct cut_limits){.max_items = SPANS, .max_bytes = 1}), 20, 69);
}

static int set_up(void **state)
{
    (void)state;
    hash_init_with(1);
    scan_init();
    worker_init_manual(&worker, 0, 1000);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    worker_deinit(&worker);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_recorded_request),
        cmocka_unit_test(parts_of_recorded_requests_keep_a_limit_in_bytes),
        cmocka_unit_test(what_fits_stays_as_it_is),
        cmocka_unit_test(cutting_does_not_blow_up),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
