/* Gaps between the uploads of a process (core/data/upload_slot.h). */
#include "core/data/upload_slot.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)
#define WINDOW (120 * SECOND)
#define START (1000 * SECOND) /* of time since 1970 */

enum { FORM = 1, OTHER_FORM };

static struct upload_range range(uint64_t from_s, uint64_t to_s)
{
    return (struct upload_range){START + from_s * SECOND, START + to_s * SECOND};
}

/* An upload that arrives when it ends, and nobody waits. */
static void upload(struct upload_slot *slot, uint64_t from_s, uint64_t to_s, uint64_t now_s)
{
    struct list released = {NULL};
    upload_slot_add(slot, range(from_s, to_s), FORM, now_s * SECOND, WINDOW, &released);
    assert_int_equal(released.count, 0);
}

/* Uploads of 10 s, one after another, from the 0th to the count-th. */
static struct upload_slot continuous(unsigned count)
{
    struct upload_slot slot = {.until_ns = 0};
    for (uint64_t i = 0; i < count; i++)
        upload(&slot, 10 * i, 10 * i + 10, 10 * i + 10);
    return slot;
}

static bool has_gap(const struct upload_slot *slot, uint64_t from_s, uint64_t to_s, uint64_t now_s)
{
    return upload_slot_find_gap(slot, range(from_s, to_s), now_s * SECOND, WINDOW) != NULL;
}

static void test_a_missing_upload_is_a_gap(void **state)
{
    (void)state;
    struct upload_slot slot = continuous(4);
    upload(&slot, 50, 60, 60);
    assert_true(has_gap(&slot, 45, 46, 60));
    assert_true(has_gap(&slot, 0, 41, 60));
    assert_true(has_gap(&slot, 49, 100, 60));
    assert_false(has_gap(&slot, 0, 40, 60));
    assert_false(has_gap(&slot, 50, 60, 60));
    assert_int_equal(slot.until_ns, START + 60 * SECOND);
    /* It is remembered for a window. */
    assert_true(has_gap(&slot, 45, 46, 60 + 120));
    assert_false(has_gap(&slot, 45, 46, 60 + 121));
    upload_slot_deinit(&slot);
}

/* Uploads of this length, in tenths of a second, one of which is missing. shift_ns: of all times.
 * usual_ns: between two uploads. */
static bool finds_missing(uint64_t tenths, uint64_t shift_ns, uint64_t usual_ns)
{
    struct upload_slot slot = {.until_ns = 0};
    struct list released = {NULL};
    uint64_t length_ns = tenths * SECOND / 10;
    for (uint64_t i = 0; i < 8; i++) {
        struct upload_range one = {START + shift_ns + i * length_ns,
                                   START + shift_ns + (i + 1) * length_ns - usual_ns};
        if (i == 6)
            assert_int_equal(slot.holes, 0);
        if (i != 6)
            upload_slot_add(&slot, one, FORM, one.to_ns - START, WINDOW, &released);
    }
    bool finds = slot.holes != 0;
    upload_slot_deinit(&slot);
    return finds;
}

static void test_a_short_upload_is_missing(void **state)
{
    (void)state;
    for (uint64_t tenths = 5; tenths <= 50; tenths++)
        assert_true(finds_missing(tenths, SECOND / 1000, 0));
    assert_true(finds_missing(20, SECOND / 1000, SECOND / 2));
    /* Ends that may be rounded count as a second earlier. */
    assert_true(finds_missing(20, 0, SECOND));
    assert_false(finds_missing(10, 0, SECOND / 10));
}

/* A profiler that uploads 10 s begins anew, and is stopped soon. */
static void test_a_short_upload_after_long_ones(void **state)
{
    (void)state;
    struct upload_slot slot = continuous(4);
    struct list released = {NULL};
    struct upload_range last = {START + 416 * SECOND / 10, START + 421 * SECOND / 10};
    upload_slot_add(&slot, last, FORM, 43 * SECOND, WINDOW, &released);
    assert_int_equal(slot.holes, 0);
    upload_slot_deinit(&slot);
}

static void test_a_late_upload_fills_it(void **state)
{
    (void)state;
    struct upload_slot slot = continuous(4);
    upload(&slot, 50, 60, 60);
    upload(&slot, 40, 50, 61);
    assert_false(has_gap(&slot, 45, 46, 61));
    assert_int_equal(slot.until_ns, START + 60 * SECOND);
    assert_int_equal(slot.holes, 0);
    upload(&slot, 40, 50, 62); /* and again */
    assert_int_equal(slot.steps, 4);
    upload_slot_deinit(&slot);
}

/* What is missing has the times of the uploads around it: also once their clock turns out to be
 * ahead, and what is late comes with its right times. */
static void test_a_gap_moves_with_its_uploads(void **state)
{
    (void)state;
    struct upload_slot slot = continuous(4);
    struct list released = {NULL};
    struct list_link waiting = {NULL};
    upload(&slot, 50, 60, 60);
    list_append(&upload_slot_find_gap(&slot, range(48, 49), 60 * SECOND, WINDOW)->waiting,
                &waiting);
    upload_slot_move(&slot, OTHER_FORM, 5 * SECOND, &released);
    assert_true(has_gap(&slot, 48, 49, 60));
    assert_int_equal(released.count, 0);
    upload_slot_move(&slot, FORM, 5 * SECOND, &released);
    assert_int_equal(released.count, 1); /* what they wait for may be in no gap any more */
    assert_true(has_gap(&slot, 36, 39, 60));
    assert_false(has_gap(&slot, 46, 49, 60));
    upload(&slot, 35, 45, 61);
    assert_false(has_gap(&slot, 0, 100, 61));
    assert_int_equal(slot.until_ns, START + 55 * SECOND);
    upload_slot_deinit(&slot);
}

/* Three are missing: the middle one comes first. */
static void test_what_is_not_filled_stays(void **state)
{
    (void)state;
    struct upload_slot slot = continuous(4);
    upload(&slot, 70, 80, 80);
    upload(&slot, 50, 60, 81);
    assert_true(has_gap(&slot, 41, 49, 81));
    assert_false(has_gap(&slot, 50, 60, 81));
    assert_true(has_gap(&slot, 61, 69, 81));
    upload(&slot, 60, 70, 82);
    assert_false(has_gap(&slot, 61, 69, 82));
    upload(&slot, 40, 50, 83);
    assert_false(has_gap(&slot, 0, 100, 83));
    upload_slot_deinit(&slot);
}

/* Which of several senders left a gap is not known. */
static void test_gaps_of_several_senders_stay(void **state)
{
    (void)state;
    struct upload_slot slot = continuous(4);
    struct list released = {NULL};
    upload(&slot, 50, 60, 60);
    upload_slot_add(&slot, range(55, 65), OTHER_FORM, 65 * SECOND, WINDOW, &released);
    upload_slot_move(&slot, OTHER_FORM, 7 * SECOND, &released);
    assert_true(has_gap(&slot, 49, 50, 65));
    assert_false(has_gap(&slot, 33, 34, 65));
    upload_slot_deinit(&slot);
}

/* The first uploads do not say yet how the sender is. A second hole shows it. */
static void test_the_second_hole_of_a_new_sender(void **state)
{
    (void)state;
    for (unsigned before = 1; before < 9; before++) {
        struct upload_slot slot = continuous(before);
        uint64_t at = UINT64_C(10) * before;
        upload(&slot, at + 10, at + 20, at + 20);
        assert_true(has_gap(&slot, at, at + 10, at + 20));
        upload(&slot, at + 30, at + 40, at + 40);
        assert_int_equal(has_gap(&slot, at, at + 10, at + 40), before >= 8);
        assert_int_equal(has_gap(&slot, at + 20, at + 30, at + 40), before >= 8);
        upload_slot_deinit(&slot);
    }
}

/* 10 s in each minute; and 14 s of 15 s, as Alloy asks for them. */
static void test_holes_on_purpose_are_no_gaps(void **state)
{
    (void)state;
    struct upload_slot minute = {.until_ns = 0}, alloy = {.until_ns = 0};
    for (uint64_t i = 0; i < 50; i++) {
        upload(&minute, 60 * i, 60 * i + 10, 60 * i + 10);
        upload(&alloy, 15 * i, 15 * i + 14, 15 * i + 14);
    }
    assert_false(has_gap(&minute, 0, 3000, 3000));
    assert_null(alloy.gaps);
    upload(&alloy, 765, 779, 779);
    assert_true(has_gap(&alloy, 750, 764, 779));
    upload_slot_deinit(&minute);
    upload_slot_deinit(&alloy);
}

/* A profiler that sends nothing while a process is idle: as often as not. */
static void test_an_idle_process_has_no_gaps(void **state)
{
    (void)state;
    struct upload_slot slot = {.until_ns = 0};
    for (uint64_t i = 0; i < 300; i += i % 3 == 0 ? 1 : 2)
        upload(&slot, 5 * i, 5 * i + 5, 5 * i + 5);
    assert_false(has_gap(&slot, 0, 1500, 1500));
    upload_slot_deinit(&slot);
}

static void test_silence_is_no_gap(void **state)
{
    (void)state;
    struct upload_slot slot = continuous(10);
    upload(&slot, 300, 310, 310);
    assert_null(slot.gaps);
    struct upload_slot sudden = continuous(10); /* its clock is set */
    upload(&sudden, 900, 910, 101);
    assert_null(sudden.gaps);
}

/* Without a duration, it is not known what is missing. */
static void test_an_upload_without_a_begin(void **state)
{
    (void)state;
    struct upload_slot slot = continuous(4);
    struct list released = {NULL};
    struct upload_range unknown = {0, START + 60 * SECOND};
    upload_slot_add(&slot, unknown, FORM, 60 * SECOND, WINDOW, &released);
    assert_null(slot.gaps);
    assert_int_equal(slot.until_ns, START + 60 * SECOND);
}

/* The first is forgotten, and those who wait for it are told. */
static void test_there_is_room_for_few(void **state)
{
    (void)state;
    struct upload_slot slot = continuous(32);
    struct list released = {NULL};
    struct list_link waiting = {NULL};
    uint64_t at = 320;
    for (unsigned i = 0; i < UPLOAD_GAPS_MAX + 1; i++) {
        assert_int_equal(released.count, 0);
        struct upload_range later = range(at + 10, at + 20);
        upload_slot_add(&slot, later, FORM, (at + 20) * SECOND, WINDOW, &released);
        if (i == 0)
            list_append(
                &upload_slot_find_gap(&slot, range(at, at + 5), at * SECOND, WINDOW)->waiting,
                &waiting);
        at += 20;
    }
    assert_int_equal(released.count, 1);
    assert_false(has_gap(&slot, 320, 330, at));
    assert_true(has_gap(&slot, 340, 350, at));
    assert_true(has_gap(&slot, 400, 410, at));
    upload_slot_deinit(&slot);
}

/* ---- order ---- */

enum { BACKLOG = 7 };

/* Whether spans from the first upload to the last one count as covered. */
static bool is_covered(const struct upload_slot *slot, uint64_t first, uint64_t last,
                       uint64_t now_s)
{
    uint64_t from_s = 10 * first + 2, to_s = 10 * last + 8;
    return slot->until_ns >= range(from_s, to_s).to_ns && !has_gap(slot, from_s, to_s, now_s);
}

/* No span is covered before all of its uploads have arrived; in the end, all are. */
static void check_covered(const struct upload_slot *slot, unsigned arrived, uint64_t now_s)
{
    for (uint64_t first = 0; first < BACKLOG; first++) {
        bool is_complete = true;
        for (uint64_t last = first; last < BACKLOG; last++) {
            is_complete = is_complete && (arrived >> last & 1);
            assert_int_equal(is_covered(slot, first, last, now_s), is_complete);
        }
    }
}

/* Lets the uploads that are left arrive in every order. */
static void arrive(const struct upload_slot *before, unsigned arrived, uint64_t now_s)
{
    for (uint64_t i = 0; i < BACKLOG; i++) {
        if (arrived >> i & 1)
            continue;
        struct upload_slot slot = *before;
        struct upload_gap gaps[UPLOAD_GAPS_MAX];
        if (before->gaps)
            slot.gaps = memcpy(gaps, before->gaps, sizeof gaps);
        bool is_new = !slot.gaps;
        upload(&slot, 10 * i, 10 * i + 10, now_s);
        check_covered(&slot, arrived | 1u << i, now_s);
        arrive(&slot, arrived | 1u << i, now_s + 1);
        if (is_new)
            free(slot.gaps);
    }
}

/* What waited while profcol could not be reached is sent by several connections at once. The first
 * upload is known before: nothing tells that there was one before the first. */
static void test_a_backlog_arrives_in_any_order(void **state)
{
    (void)state;
    struct upload_slot slot = continuous(1);
    arrive(&slot, 1, 70);
    upload_slot_deinit(&slot);
}

/* ---- parts ---- */

/* A request with a part of the upload of a range. */
static void part(struct upload_slot *slot, uint64_t from_s, uint64_t to_s, uint64_t content,
                 uint64_t now_s)
{
    upload_slot_note_content(slot, range(from_s, to_s), FORM, content, now_s * SECOND, WINDOW);
    upload(slot, from_s, to_s, now_s);
}

static uint64_t covered_s(const struct upload_slot *slot, uint64_t now_s)
{
    return (upload_slot_covered(slot, now_s * SECOND) - START) / SECOND;
}

/* The first upload in parts is not known before its second part. */
static void test_parts_cover_when_no_more_arrive(void **state)
{
    (void)state;
    struct upload_slot slot = {.until_ns = 0};
    part(&slot, 0, 10, 1, 10);
    part(&slot, 10, 20, 2, 20);
    assert_int_equal(covered_s(&slot, 20), 20);
    part(&slot, 10, 20, 3, 20);
    assert_int_equal(covered_s(&slot, 21), 10);
    part(&slot, 10, 20, 4, 21);
    assert_int_equal(covered_s(&slot, 22), 10);
    assert_int_equal(covered_s(&slot, 23), 20);
    part(&slot, 20, 30, 5, 30);
    assert_int_equal(covered_s(&slot, 31), 20);
    assert_int_equal(covered_s(&slot, 32), 30);
    part(&slot, 30, 40, 6, 31); /* a later one */
    assert_int_equal(covered_s(&slot, 31), 30);
    upload_slot_deinit(&slot);
}

static void test_a_repeated_upload_is_no_part(void **state)
{
    (void)state;
    struct upload_slot slot = {.until_ns = 0};
    part(&slot, 0, 10, 1, 10);
    for (unsigned i = 0; i < 3; i++) {
        part(&slot, 10, 20, 2, 20);
        assert_int_equal(covered_s(&slot, 20), 20);
    }
    upload_slot_deinit(&slot);
}

static void test_a_sender_may_stop_to_send_parts(void **state)
{
    (void)state;
    struct upload_slot slot = {.until_ns = 0};
    part(&slot, 0, 10, 1, 10);
    part(&slot, 0, 10, 2, 10);
    for (uint64_t i = 1; i < 20; i++) {
        uint64_t end_s = 10 * i + 10;
        part(&slot, 10 * i, end_s, 2 + i, end_s);
        bool is_long_ago = 10 * i * SECOND > WINDOW;
        assert_int_equal(covered_s(&slot, end_s), is_long_ago ? end_s : end_s - 10);
    }
    upload_slot_deinit(&slot);
}

/* What is expected after a silence has not arrived, although parts did before. */
static void test_expected_parts_have_not_arrived(void **state)
{
    (void)state;
    struct upload_slot slot = {.until_ns = 0};
    part(&slot, 0, 10, 1, 10);
    part(&slot, 0, 10, 2, 10);
    assert_true(slot.has_parts);
    upload_slot_expect_parts(&slot, 200 * SECOND);
    part(&slot, 190, 200, 3, 200);
    assert_false(slot.has_parts);
    assert_true(upload_slot_awaits_parts(&slot, 201 * SECOND));
    part(&slot, 190, 200, 4, 201);
    assert_true(slot.has_parts);
    upload_slot_deinit(&slot);
}

/* ---- several senders ---- */

static void test_each_of_two_senders_has_to_cover(void **state)
{
    (void)state;
    for (uint64_t later = 2; later <= 28; later++) { /* of two replicas, one starts later */
        struct upload_slot slot = {.until_ns = 0};
        upload(&slot, 0, 30, 30);
        upload(&slot, later, 30 + later, 30 + later);
        for (uint64_t i = 1; i < 5; i++) {
            upload(&slot, 30 * i, 30 * i + 30, 30 * i + 30);
            assert_int_equal(covered_s(&slot, 30 * i + 30), 30 * i + later);
            upload(&slot, 30 * i + later, 30 * i + 30 + later, 30 * i + 30 + later);
            assert_int_equal(covered_s(&slot, 30 * i + 30 + later), 30 * i + 30);
        }
        upload_slot_deinit(&slot);
    }
}

static void test_a_sender_that_ends(void **state)
{
    (void)state;
    struct upload_slot slot = {.until_ns = 0};
    upload(&slot, 0, 10, 10);
    upload(&slot, 5, 15, 15);
    for (uint64_t i = 1; i < 10; i++)
        upload(&slot, 10 * i, 10 * i + 10, 10 * i + 10);
    assert_int_equal(covered_s(&slot, 15 + 22), 15); /* two uploads, and 2 s */
    assert_int_equal(covered_s(&slot, 15 + 23), 100);
    upload_slot_deinit(&slot);
}

/* Ends are rounded, and requests are sent again. */
static void test_one_sender_is_one(void **state)
{
    (void)state;
    struct upload_slot slot = {.until_ns = 0};
    for (uint64_t i = 0; i < 20; i++) {
        upload(&slot, 10 * i, 10 * i + 11, 10 * i + 11);
        upload(&slot, 10 * i, 10 * i + 11, 10 * i + 12);
        assert_int_equal(covered_s(&slot, 10 * i + 12), 10 * i + 11);
    }
    assert_null(slot.senders);
    upload_slot_deinit(&slot);
}

/* An SDK uploads each 15 s. A profiler beside it uploads each 5 s, but not while the process is
 * idle: then its next upload follows that of the SDK as well. */
static void test_an_upload_after_a_pause_is_of_its_sender(void **state)
{
    static const struct {
        uint64_t from_s, to_s;
        uint32_t form;
    } uploads[] = {{0, 5, OTHER_FORM}, {5, 10, OTHER_FORM},  {10, 15, OTHER_FORM},
                   {0, 16, FORM},      {20, 25, OTHER_FORM}, {25, 30, OTHER_FORM}};
    (void)state;
    struct upload_slot slot = {.until_ns = 0};
    struct list released = {NULL};
    for (size_t i = 0; i < sizeof uploads / sizeof *uploads; i++)
        upload_slot_add(&slot, range(uploads[i].from_s, uploads[i].to_s), uploads[i].form,
                        uploads[i].to_s * SECOND, WINDOW, &released);
    assert_int_equal(covered_s(&slot, 30), 16);
    upload_slot_add(&slot, range(16, 31), FORM, 31 * SECOND, WINDOW, &released);
    assert_int_equal(covered_s(&slot, 31), 30);
    upload_slot_deinit(&slot);
}

/* An SDK uploads each 15 s, beside a profiler that uploads each 5 s: whatever the order in which
 * they arrive, what the SDK has not uploaded yet is not covered, once it has sent anything. */
static void test_another_profiler_is_another_sender(void **state)
{
    (void)state;
    for (uint64_t begin = 1; begin < 15; begin++) { /* of the SDK */
        struct upload_slot slot = {.until_ns = 0};
        struct list released = {NULL};
        uint64_t sdk_s = begin, other_s = 0;
        for (uint64_t now = 1; now < 100; now++) {
            if (now % 5 == 0) {
                upload_slot_add(&slot, range(now - 5, now), OTHER_FORM, now * SECOND, WINDOW,
                                &released);
                other_s = now;
            }
            if (now > begin && (now - begin) % 15 == 0) {
                upload_slot_add(&slot, range(now - 15, now), FORM, now * SECOND, WINDOW, &released);
                sdk_s = now;
            }
            if (sdk_s > begin)
                assert_int_equal(covered_s(&slot, now), sdk_s < other_s ? sdk_s : other_s);
        }
        assert_int_equal(slot.holes, 0);
        upload_slot_deinit(&slot);
    }
}

static void test_many_senders(void **state)
{
    (void)state;
    struct upload_slot slot = {.until_ns = 0};
    for (uint64_t i = 0; i < 1000; i++)
        upload(&slot, i, i + 100, i + 100);
    assert_in_range(covered_s(&slot, 1099), 1099 - UPLOAD_SENDERS_MAX, 1099);
    assert_true(upload_slot_memory(&slot) <= 1024);
    upload_slot_deinit(&slot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_missing_upload_is_a_gap),
        cmocka_unit_test(test_a_short_upload_is_missing),
        cmocka_unit_test(test_a_short_upload_after_long_ones),
        cmocka_unit_test(test_a_late_upload_fills_it),
        cmocka_unit_test(test_a_gap_moves_with_its_uploads),
        cmocka_unit_test(test_what_is_not_filled_stays),
        cmocka_unit_test(test_gaps_of_several_senders_stay),
        cmocka_unit_test(test_the_second_hole_of_a_new_sender),
        cmocka_unit_test(test_holes_on_purpose_are_no_gaps),
        cmocka_unit_test(test_an_idle_process_has_no_gaps),
        cmocka_unit_test(test_silence_is_no_gap),
        cmocka_unit_test(test_an_upload_without_a_begin),
        cmocka_unit_test(test_there_is_room_for_few),
        cmocka_unit_test(test_a_backlog_arrives_in_any_order),
        cmocka_unit_test(test_parts_cover_when_no_more_arrive),
        cmocka_unit_test(test_a_repeated_upload_is_no_part),
        cmocka_unit_test(test_a_sender_may_stop_to_send_parts),
        cmocka_unit_test(test_expected_parts_have_not_arrived),
        cmocka_unit_test(test_each_of_two_senders_has_to_cover),
        cmocka_unit_test(test_a_sender_that_ends),
        cmocka_unit_test(test_one_sender_is_one),
        cmocka_unit_test(test_an_upload_after_a_pause_is_of_its_sender),
        cmocka_unit_test(test_another_profiler_is_another_sender),
        cmocka_unit_test(test_many_senders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
