#include "core/data/instances.h"

#include "core/base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)
#define WINDOW (60 * SECOND)

enum { SLOTS = 2, MOST = 64 };

static const struct span_waiter request = {.hold = 7, .worker = 1};

static struct instance_clock clock_at(uint64_t now_ns)
{
    return (struct instance_clock){.now_ns = now_ns, .window_ns = WINDOW, .wait_ns = 20 * SECOND};
}

static uint16_t find(struct instances *instances, uint64_t id, uint64_t now_ns)
{
    struct instance_ids ids = {.ids = {id}, .count = 1};
    return instances_find(instances, &ids, now_ns);
}

/* Adds an upload of one sample type, and returns how many requests it woke. */
static size_t upload(struct instances *instances, uint16_t uploader, uint16_t joined,
                     uint64_t until_ns, uint64_t now_ns)
{
    struct instance_clock clock = clock_at(now_ns);
    struct span_wakeups wakeups = {0};
    struct instance_upload upload = {.uploader = uploader,
                                     .joined = &joined,
                                     .joined_count = joined ? 1 : 0,
                                     .ranges = {{0, until_ns}}};
    instances_add_upload(instances, &upload, &clock, &wakeups, NULL);
    size_t count = wakeups.count;
    span_wakeups_deinit(&wakeups);
    return count;
}

/* Adds an upload of a range of seconds, which arrives at its end. */
static size_t upload_range(struct instances *instances, uint16_t uploader, uint64_t from_s,
                           uint64_t to_s)
{
    struct instance_clock clock = clock_at(to_s * SECOND);
    struct span_wakeups wakeups = {0};
    struct instance_upload upload = {.uploader = uploader,
                                     .ranges = {{from_s * SECOND, to_s * SECOND}}};
    instances_add_upload(instances, &upload, &clock, &wakeups, NULL);
    size_t count = wakeups.count;
    span_wakeups_deinit(&wakeups);
    return count;
}

/* Waits for the uploads of a span. */
static struct instance_waiter *wait_for(struct instances *instances, uint16_t number,
                                        uint64_t start_ns, uint64_t end_ns,
                                        const struct instance_clock *clock)
{
    struct upload_ranges spans = {1, {{start_ns, end_ns}}};
    return instances_wait(instances, number, &spans, false, &request, clock);
}

static uint64_t covered(struct instances *instances, uint16_t number, uint64_t now_ns)
{
    struct instance_clock clock = clock_at(now_ns);
    return instances_coverage(instances, number, &clock).until_ns;
}

static void test_each_id_finds_the_instance(void **state)
{
    (void)state;
    struct instances *instances = instances_new(SLOTS, MOST);
    struct instance_ids both = {.ids = {11, 13}, .count = 2};
    uint16_t number = find(instances, 13, 1);
    assert_int_not_equal(number, 0);
    assert_int_equal(instances_find(instances, &both, 1), number);
    assert_int_equal(find(instances, 11, 1), number);
    assert_int_not_equal(find(instances, 17, 1), number);
    instances_free(instances);
}

enum { PID = 7 };

static uint16_t find_ids(struct instances *instances, struct instance_ids ids)
{
    return instances_find(instances, &ids, 1);
}

static void test_the_number_on_a_host_is_enough(void **state)
{
    (void)state;
    struct instances *instances = instances_new(SLOTS, MOST);
    struct instance_ids spans = {.ids = {11}, .count = 1, .pids = {0, PID}, .claims = {3, 5}};
    struct instance_ids profiler = {.pids = {0, PID}, .rest = 19};
    struct instance_ids other_agent = {.pids = {0, PID}, .claims = {0, 5}, .rest = 23};
    uint16_t number = find_ids(instances, profiler);
    assert_int_equal(find_ids(instances, spans), number);
    assert_int_equal(find_ids(instances, other_agent), number);
    assert_int_equal(find_ids(instances, profiler), number);
    instances_free(instances);
}

/* A proxy on this host passes on what processes of several hosts send. */
static void test_a_number_that_processes_share_is_of_none(void **state)
{
    (void)state;
    struct instances *instances = instances_new(SLOTS, MOST);
    struct instance_ids first = {.ids = {11}, .count = 1, .pids = {0, PID}, .claims = {3}};
    struct instance_ids second = {.ids = {13}, .count = 1, .pids = {0, PID}, .claims = {4}};
    struct instance_ids third = {.pids = {0, PID}, .claims = {0, 5}, .rest = 17};
    struct instance_ids fourth = {.pids = {0, PID}, .claims = {0, 6}, .rest = 18};
    struct instance_ids profiler = {.pids = {0, PID}, .rest = 19};
    uint16_t numbers[] = {find_ids(instances, first), find_ids(instances, second),
                          find_ids(instances, third), find_ids(instances, fourth),
                          find_ids(instances, profiler)};
    for (unsigned i = 0; i < 5; i++)
        for (unsigned j = 0; j < i; j++)
            assert_int_not_equal(numbers[i], numbers[j]);
    assert_int_equal(find_ids(instances, first), numbers[0]);
    assert_int_equal(find_ids(instances, second), numbers[1]);
    assert_int_equal(find_ids(instances, third), numbers[2]);
    assert_int_equal(find_ids(instances, fourth), numbers[3]);
    assert_int_equal(find_ids(instances, profiler), numbers[4]);
    instances_free(instances);
}

enum { GROUP = 29 };

static uint16_t with_threads(struct instances *instances, uint16_t number, bool is_all_known)
{
    struct instance_place place = {.groups = {[GROUP_OF_SERVICE] = GROUP},
                                   .is_all_known = is_all_known};
    struct instance_clock clock = clock_at(1);
    return instances_with_threads(instances, number, &place, &clock).instance;
}

static void note_threads(struct instances *instances, uint16_t number, struct instance_place place)
{
    struct instance_clock clock = clock_at(1);
    struct upload_range ran = {WINDOW, 2 * WINDOW};
    instances_note_threads(instances, number, &place, 0, ran, &clock);
}

/* Uploads of two processes of a service look alike if they name nothing else. */
static void test_which_process_has_the_threads(void **state)
{
    (void)state;
    struct instances *instances = instances_new(SLOTS, MOST);
    struct instance_place place = {.groups = {[GROUP_OF_SERVICE] = GROUP}};
    uint16_t first = find(instances, 11, 1), second = find(instances, 13, 1);
    uint16_t bare = find(instances, 17, 1), pod = find(instances, 19, 1);
    assert_int_equal(with_threads(instances, bare, true), 0);
    note_threads(instances, first, place);
    assert_int_equal(with_threads(instances, bare, true), first);
    upload(instances, bare, first, SECOND, 1);
    upload(instances, pod, first, SECOND, 1);
    assert_int_equal(with_threads(instances, bare, true), first);
    note_threads(instances, second, place);
    assert_int_equal(with_threads(instances, bare, true), 0);
    assert_int_equal(with_threads(instances, pod, false), first);
    assert_int_equal(with_threads(instances, second, true), second);
    instances_free(instances);
}

static uint16_t presumed(struct instances *instances, uint16_t number, uint64_t now_ns)
{
    struct instance_place place = {.is_all_known = true};
    struct instance_clock clock = clock_at(now_ns);
    struct instance_threads found = instances_with_threads(instances, number, &place, &clock);
    assert_int_equal(found.instance, 0);
    return found.presumed;
}

/* Spans of a process that is new may come, and of one that has had some. */
static void test_threads_may_come(void **state)
{
    (void)state;
    struct instances *instances = instances_new(SLOTS, MOST);
    struct instance_place place = {.is_all_known = true};
    uint16_t first = find(instances, 11, 1);
    assert_int_equal(presumed(instances, first, 1), first);
    upload(instances, first, 0, SECOND, 1);
    assert_int_equal(presumed(instances, first, 1 + WINDOW), first);
    upload(instances, first, 0, SECOND, WINDOW);
    assert_int_equal(presumed(instances, first, 2 + WINDOW), 0);

    uint16_t second = find(instances, 13, 3 * WINDOW);
    assert_int_equal(presumed(instances, second, 3 * WINDOW), 0); /* no spans name threads */
    struct instance_clock clock = clock_at(3 * WINDOW);
    struct upload_range ran = {WINDOW, 2 * WINDOW};
    instances_note_threads(instances, find(instances, 17, 3 * WINDOW), &place, 0, ran, &clock);
    assert_int_equal(presumed(instances, second, 3 * WINDOW), second);

    uint16_t third = find(instances, 19, 3 * WINDOW);
    instances_note_threads(instances, third, &place, 0, ran, &clock);
    upload(instances, third, 0, SECOND, 3 * WINDOW);
    upload(instances, third, 0, SECOND, 4 * WINDOW);
    upload(instances, third, 0, SECOND, 5 * WINDOW);
    assert_int_equal(presumed(instances, third, 5 * WINDOW), third);
    instances_free(instances);
}

/* Tells of samples of a time that nobody looked for. */
static void upload_unasked(struct instances *instances, uint16_t uploader, uint64_t from_ns,
                           uint64_t to_ns, bool keeps)
{
    struct instance_upload told = {
        .uploader = uploader, .unasked = {from_ns, to_ns}, .keeps_unasked = keeps};
    struct instance_clock clock = clock_at(1);
    struct span_wakeups wakeups = {0};
    instances_add_upload(instances, &told, &clock, &wakeups, NULL);
    span_wakeups_deinit(&wakeups);
}

static bool was_unasked(struct instances *instances, uint16_t number, uint64_t from_ns,
                        uint64_t to_ns)
{
    struct instance_clock clock = clock_at(1);
    struct instance_coverage coverage = instances_coverage(instances, number, &clock);
    return instance_was_unasked(&coverage, (struct upload_range){from_ns, to_ns});
}

static void test_nobody_looked_for_their_spans(void **state)
{
    (void)state;
    struct instances *instances = instances_new(SLOTS, MOST);
    uint16_t own = find(instances, 11, 1), spans = find(instances, 13, 1);
    upload_unasked(instances, own, 10 * SECOND, 20 * SECOND, false);
    upload_unasked(instances, own, 20 * SECOND, 30 * SECOND, true);
    assert_true(was_unasked(instances, own, 19 * SECOND, 25 * SECOND));
    assert_false(was_unasked(instances, own, 5 * SECOND, 10 * SECOND));
    assert_false(was_unasked(instances, own, 20 * SECOND, 30 * SECOND)); /* it has got them */
    assert_false(was_unasked(instances, spans, 10 * SECOND, 30 * SECOND));
    upload(instances, own, spans, 40 * SECOND, 1);
    assert_true(was_unasked(instances, spans, 15 * SECOND, 35 * SECOND));
    assert_true(was_unasked(instances, spans, 25 * SECOND, 35 * SECOND));
    assert_false(was_unasked(instances, spans, 31 * SECOND, 35 * SECOND));
    assert_false(was_unasked(instances, spans, 1 * SECOND, 10 * SECOND));
    instances_free(instances);
}

enum { CONTAINER = 31, POD = 37, OTHER = 41, HOST_PID = 4711 };

/* Checks which process has the threads of one that a profiler of the host sees. */
static void expect_place(struct instances *instances, uint16_t number, struct instance_place place,
                         uint16_t expected, bool is_foreign)
{
    struct instance_clock clock = clock_at(1);
    struct instance_threads found = instances_with_threads(instances, number, &place, &clock);
    assert_int_equal(found.instance, expected);
    assert_int_equal(found.is_foreign, is_foreign);
}

static void test_the_only_process_of_a_container(void **state)
{
    (void)state;
    struct instances *instances = instances_new(SLOTS, MOST);
    struct instance_place container = {.groups = {0, CONTAINER}, .pid = PID};
    struct instance_place pod = {.groups = {0, 0, POD}, .pid = PID};
    struct instance_place seen = {.groups = {0, CONTAINER, POD}, .pid = HOST_PID};
    uint16_t first = find(instances, 11, 1), second = find(instances, 13, 1);
    uint16_t profiled = find(instances, 17, 1);
    expect_place(instances, profiled, seen, 0, false);
    note_threads(instances, second, pod); /* its container is not known */
    expect_place(instances, profiled, seen, second, true);
    note_threads(instances, first, container);
    expect_place(instances, profiled, seen, first, true);
    seen.groups[GROUP_OF_CONTAINER] = OTHER;
    expect_place(instances, profiled, seen, second, true);
    seen.pid = PID; /* it has the pid namespace of the host */
    expect_place(instances, profiled, seen, second, false);
    seen.groups[GROUP_OF_CONTAINER] = CONTAINER;
    note_threads(instances, second, container);
    expect_place(instances, profiled, seen, 0, false); /* two of the container have threads */
    instances_free(instances);
}

/* Spans may name another container of their pod. If profiles name the same one, it is right. */
static void test_another_container_of_the_pod(void **state)
{
    (void)state;
    struct instances *instances = instances_new(SLOTS, MOST);
    struct instance_place spans = {.groups = {0, CONTAINER, POD}, .pid = PID};
    struct instance_place other = {.groups = {0, OTHER, POD}, .pid = HOST_PID};
    struct instance_place same = {.groups = {0, CONTAINER, POD}, .pid = HOST_PID + 1};
    uint16_t number = find(instances, 11, 1), profiled = find(instances, 13, 1);
    note_threads(instances, number, spans);
    expect_place(instances, profiled, other, number, true);
    expect_place(instances, profiled, same, number, true);
    expect_place(instances, profiled, other, 0, false);
    instances_free(instances);
}

/* A profiler may know the instance id of a program in a container, but not its thread ids. */
static void test_one_process_with_two_numbers(void **state)
{
    (void)state;
    struct instances *instances = instances_new(SLOTS, MOST);
    struct instance_place inside = {.pid = PID}, outside = {.pid = HOST_PID};
    uint16_t number = find(instances, 11, 1), other = find(instances, 13, 1);
    note_threads(instances, number, inside);
    expect_place(instances, number, inside, number, false);
    expect_place(instances, number, outside, number, true);
    upload(instances, other, number, SECOND, 1);
    expect_place(instances, other, outside, number, true);
    expect_place(instances, other, (struct instance_place){.pid = 0}, number, false);
    instances_free(instances);
}

static void test_an_owner_has_half_of_the_numbers(void **state)
{
    (void)state;
    struct instances *instances = instances_new(SLOTS, MOST);
    for (uint64_t i = 1; i <= MOST / 2; i++)
        assert_int_not_equal(find(instances, i, 1), 0);
    assert_int_equal(find(instances, MOST, 1), 0);
    struct instance_ids other = {.ids = {MOST}, .count = 1, .owner = 1};
    assert_int_not_equal(instances_find(instances, &other, 1), 0);
    instances_free(instances);
}

static void test_unused_numbers_are_given_out_again(void **state)
{
    (void)state;
    struct instances *instances = instances_new(SLOTS, MOST);
    uint64_t later = 2 * WINDOW;
    for (uint64_t i = 1; i <= MOST / 2; i++)
        find(instances, i, 1);
    uint16_t used = find(instances, 3, later);
    upload(instances, find(instances, 5, 1), 0, 9 * SECOND, later - WINDOW);
    struct instance_clock clock = clock_at(later);
    instances_sweep(instances, &clock);
    assert_int_equal(find(instances, 3, later), used);
    assert_int_equal(covered(instances, find(instances, 5, later), later), 9 * SECOND);
    for (uint64_t i = 1; i <= MOST / 2 - 2; i++)
        assert_int_not_equal(find(instances, 100 + i, later), 0);
    assert_int_equal(find(instances, 1000, later), 0);
    instances_free(instances);
}

enum { SERVICE = 43 };

/* Finds a process of the service. */
static uint16_t find_of_service(struct instances *instances, uint64_t id, uint64_t now_ns)
{
    struct instance_ids ids = {.ids = {id}, .count = 1, .service = SERVICE};
    return instances_find(instances, &ids, now_ns);
}

static bool is_waited_for(struct instances *instances, uint16_t number, uint64_t now_ns)
{
    struct instance_clock clock = clock_at(now_ns);
    struct instance_waiter *waiter = wait_for(instances, number, now_ns - SECOND, now_ns, &clock);
    instances_stop_waiting(instances, waiter);
    return waiter != NULL;
}

/* Samples show a process that sends nothing itself any more. */
static void test_a_service_is_in_use_while_its_processes_are(void **state)
{
    (void)state;
    struct instances *instances = instances_new(SLOTS, MOST);
    uint16_t process = find_of_service(instances, 1, SECOND), uploader = find(instances, 2, SECOND);
    uint64_t now_ns = SECOND;
    assert_true(is_waited_for(instances, process, now_ns));
    for (; now_ns < 3 * WINDOW; now_ns += WINDOW / 2) {
        struct instance_clock clock = clock_at(now_ns);
        instances_sweep(instances, &clock);
        upload(instances, uploader, process, now_ns, now_ns);
    }
    uint16_t other = find(instances, 3, now_ns);
    upload(instances, uploader, process, now_ns, now_ns);
    assert_false(is_waited_for(instances, other, now_ns)); /* it is not profiled */
    assert_true(is_waited_for(instances, find_of_service(instances, 4, now_ns), now_ns));
    instances_free(instances);
}

/* Its upload waits for longer than a window. */
static void test_the_service_of_a_process_may_be_forgotten(void **state)
{
    (void)state;
    struct instances *instances = instances_new(SLOTS, MOST);
    struct instance_clock clock = clock_at(3 * WINDOW);
    struct span_wakeups wakeups = {0};
    struct instance_hold hold;
    uint16_t process = find_of_service(instances, 1, SECOND);
    assert_true(is_waited_for(instances, process, SECOND));
    instances_hold_upload(instances, process, 0, (struct upload_range){0, SECOND}, false, &hold);
    instances_sweep(instances, &clock);
    uint16_t other = find(instances, 3, 3 * WINDOW);
    instances_end_hold(instances, &hold, &clock, &wakeups);
    upload(instances, process, 0, 3 * WINDOW, 3 * WINDOW);
    assert_false(is_waited_for(instances, other, 3 * WINDOW)); /* it is not profiled */
    instances_free(instances);
}

static void test_a_number_that_is_waited_for_is_not_free(void **state)
{
    (void)state;
    struct instances *instances = instances_new(SLOTS, MOST);
    uint16_t number = find(instances, 1, 1);
    struct instance_clock clock = clock_at(1);
    struct instance_waiter *waiter = wait_for(instances, number, SECOND - 1, SECOND, &clock);
    assert_non_null(waiter);
    clock = clock_at(9 * WINDOW);
    instances_sweep(instances, &clock);
    assert_int_equal(upload(instances, number, 0, SECOND, 9 * WINDOW), 1);
    instances_stop_waiting(instances, waiter);
    instances_free(instances);
}

/* The number of waiters is the senders' choice. */
static void test_an_upload_wakes_those_that_it_covers(void **state)
{
    (void)state;
    enum { WAITERS = 30000 };
    struct instances *instances = instances_new(SLOTS, MOST);
    uint16_t number = find(instances, 1, 1);
    struct instance_clock clock = clock_at(1);
    struct instance_waiter *first = NULL;
    for (uint64_t i = 1; i <= WAITERS; i++) {
        struct instance_waiter *waiter =
            wait_for(instances, number, i * SECOND - 1, i * SECOND, &clock);
        assert_non_null(waiter);
        waiter->next = first;
        first = waiter;
    }
    assert_int_equal(upload(instances, number, 0, 100 * SECOND, 2), 100);
    assert_int_equal(upload(instances, number, 0, 100 * SECOND, 3), 0);
    assert_int_equal(upload(instances, number, 0, WAITERS * SECOND, 4), WAITERS - 100);
    assert_null(wait_for(instances, number, WAITERS * SECOND - 1, WAITERS * SECOND, &clock));
    instances_stop_waiting(instances, first);
    instances_free(instances);
}

static void test_the_slowest_sample_type_decides(void **state)
{
    (void)state;
    struct instances *instances = instances_new(SLOTS, MOST);
    uint16_t number = find(instances, 1, 1);
    struct instance_clock clock = clock_at(2);
    struct span_wakeups wakeups = {0};
    struct instance_upload both = {.uploader = number,
                                   .ranges = {{0, 8 * SECOND}, {0, 5 * SECOND}}};
    instances_add_upload(instances, &both, &clock, &wakeups, NULL);
    assert_int_equal(covered(instances, number, 2), 5 * SECOND);
    upload(instances, number, 0, 20 * SECOND, 10 * SECOND);
    assert_int_equal(covered(instances, number, 10 * SECOND), 5 * SECOND);
    /* A type that no longer arrives does not count. */
    assert_int_equal(covered(instances, number, WINDOW + 3), 20 * SECOND);
    assert_int_equal(wakeups.count, 0);
    instances_free(instances);
}

/* Profiles and spans of one process are named differently; then the samples show which it is. */
static void test_joined_samples_show_the_process(void **state)
{
    (void)state;
    struct instances *instances = instances_new(SLOTS, MOST);
    uint16_t process = find(instances, 1, 1), uploader = find(instances, 2, 1);
    upload(instances, uploader, 0, 5 * SECOND, 1);
    assert_int_equal(covered(instances, process, 1), 0);
    upload(instances, uploader, process, 10 * SECOND, 2);
    assert_int_equal(covered(instances, process, 2), 10 * SECOND);
    upload(instances, uploader, 0, 15 * SECOND, 3);
    assert_int_equal(covered(instances, process, 3), 15 * SECOND);
    uint16_t other = find(instances, 3, 1);
    upload(instances, uploader, other, 20 * SECOND, 4);
    upload(instances, uploader, 0, 25 * SECOND, 5);
    assert_int_equal(covered(instances, process, 5), 15 * SECOND);
    assert_int_equal(covered(instances, other, 5), 20 * SECOND);
    instances_free(instances);
}

static void note_unjoined(struct instances *instances, uint16_t uploader, uint16_t joined,
                          uint64_t from_s, uint64_t to_s)
{
    struct instance_clock clock = clock_at(to_s * SECOND);
    struct instance_upload upload = {
        .uploader = uploader, .joined = &joined, .joined_count = joined ? 1 : 0};
    struct upload_range range = {from_s * SECOND, to_s * SECOND};
    instances_note_unjoined(instances, &upload, range, &clock);
}

static void expect_unjoined(struct instances *instances, uint16_t number, uint64_t from_s,
                            uint64_t to_s)
{
    struct instance_clock clock = clock_at(1);
    struct upload_range range = instances_coverage(instances, number, &clock).unjoined;
    assert_int_equal(range.from_ns, from_s * SECOND);
    assert_int_equal(range.to_ns, to_s * SECOND);
}

/* Uploads with samples of spans that are not known: of all instances that they may be of. */
static void test_when_samples_of_unknown_spans_left(void **state)
{
    (void)state;
    struct instances *instances = instances_new(SLOTS, MOST);
    uint16_t process = find(instances, 1, 1), uploader = find(instances, 2, 1);
    note_unjoined(instances, uploader, 0, 10, 20);
    expect_unjoined(instances, uploader, 10, 20);
    expect_unjoined(instances, process, 0, 0);
    note_unjoined(instances, uploader, process, 30, 40);
    expect_unjoined(instances, uploader, 10, 40);
    expect_unjoined(instances, process, 30, 40);
    upload(instances, uploader, process, 45 * SECOND, 45 * SECOND); /* shows the process */
    note_unjoined(instances, uploader, 0, 40, 50);
    expect_unjoined(instances, process, 30, 50);
    note_unjoined(instances, uploader, 0, 110, 111); /* more than a window later */
    expect_unjoined(instances, process, 110, 111);
    note_unjoined(instances, uploader, 0, 105, 110); /* by a worker whose clock is behind */
    expect_unjoined(instances, uploader, 105, 111);
    note_unjoined(instances, 0, 0, 120, 130);
    expect_unjoined(instances, 0, 0, 0);
    instances_free(instances);
}

/* Those who wait for a gap count, and are woken when it is filled. */
static void test_those_who_wait_for_a_gap(void **state)
{
    (void)state;
    enum { WAITERS = 1000 };
    struct instances *instances = instances_new(SLOTS, MOST);
    uint16_t number = find(instances, 1, 1);
    struct instance_waiter *first = NULL;
    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(upload_range(instances, number, 100 + 10 * i, 110 + 10 * i), 0);
    assert_int_equal(upload_range(instances, number, 160, 170), 0);
    struct instance_clock clock = clock_at(170 * SECOND);
    for (uint64_t i = 0; i < WAITERS; i++) {
        struct instance_waiter *waiter =
            wait_for(instances, number, 141 * SECOND + i, 151 * SECOND + i, &clock);
        assert_non_null(waiter);
        waiter->next = first;
        first = waiter;
    }
    assert_null(wait_for(instances, number, 170 * SECOND - 1, 170 * SECOND, &clock));
    assert_int_equal(instances_coverage(instances, number, &clock).gaps.count, 1);
    clock = clock_at(9 * WINDOW);
    instances_sweep(instances, &clock); /* it is waited for, so that its number is not free */
    assert_int_equal(find(instances, 1, 1), number);
    assert_int_equal(upload_range(instances, number, 140, 150), 0);
    assert_int_equal(upload_range(instances, number, 150, 160), WAITERS);
    clock = clock_at(170 * SECOND);
    assert_int_equal(instances_coverage(instances, number, &clock).gaps.count, 0);
    instances_stop_waiting(instances, first);
    instances_free(instances);
}

/* Returns how many requests were woken. */
static size_t settle(struct instances *instances, uint64_t now_ns, uint64_t *next_ns_out)
{
    struct instance_clock clock = clock_at(now_ns);
    struct span_wakeups wakeups = {0};
    *next_ns_out = instances_settle(instances, &clock, &wakeups);
    size_t count = wakeups.count;
    span_wakeups_deinit(&wakeups);
    return count;
}

/* After a window without the upload, those who wait for it are woken without another one. */
static void test_a_gap_is_waited_for_in_the_window(void **state)
{
    (void)state;
    struct instances *instances = instances_new(SLOTS, MOST);
    uint16_t number = find(instances, 1, 1);
    uint64_t end_ns = 170 * SECOND + WINDOW, next_ns;
    upload_range(instances, number, 130, 140);
    upload_range(instances, number, 160, 170);
    upload_range(instances, number, 170, 180);
    struct instance_clock clock = clock_at(180 * SECOND);
    struct instance_waiter *waiter =
        wait_for(instances, number, 141 * SECOND, 151 * SECOND, &clock);
    assert_non_null(waiter);
    assert_int_equal(settle(instances, end_ns, &next_ns), 0);
    assert_int_equal(next_ns, end_ns + 1);
    assert_int_equal(settle(instances, next_ns, &next_ns), 1);
    assert_int_equal(next_ns, UINT64_MAX);
    instances_stop_waiting(instances, waiter);
    instances_free(instances);
}

/* Gaps of several sample types at the same time are told as one. */
static void test_gaps_that_overlap_are_told_as_one(void **state)
{
    (void)state;
    struct instances *instances = instances_new(SLOTS, MOST);
    uint16_t number = find(instances, 1, 1);
    for (uint64_t i = 0; i < 6; i++) {
        struct instance_clock clock = clock_at((110 + 10 * i) * SECOND);
        struct span_wakeups wakeups = {0};
        struct upload_range range = {(100 + 10 * i) * SECOND, (110 + 10 * i) * SECOND};
        struct instance_upload both = {.uploader = number, .ranges = {range, range}};
        both.ranges[1].from_ns += SECOND;
        if (i != 4)
            instances_add_upload(instances, &both, &clock, &wakeups, NULL);
    }
    struct instance_clock clock = clock_at(170 * SECOND);
    struct instance_coverage coverage = instances_coverage(instances, number, &clock);
    assert_int_equal(coverage.gaps.count, 1);
    assert_int_equal(coverage.gaps.items[0].from_ns, 140 * SECOND);
    assert_int_equal(coverage.gaps.items[0].to_ns, 151 * SECOND);
    assert_true(
        instance_covers(&coverage, (struct upload_range){130 * SECOND, 140 * SECOND}, false));
    assert_false(
        instance_covers(&coverage, (struct upload_range){130 * SECOND, 141 * SECOND}, false));
    instances_free(instances);
}

/* A worker reads the time once in a turn of its loop, so that one may be late. */
static void test_the_first_upload_may_have_an_earlier_time(void **state)
{
    (void)state;
    struct instances *instances = instances_new(SLOTS, MOST);
    uint16_t number = find(instances, 1, 110 * SECOND + 1);
    upload_range(instances, number, 100, 110);
    struct instance_clock clock = clock_at(111 * SECOND);
    assert_int_equal(instances_coverage(instances, number, &clock).from_ns, 99 * SECOND);
    instances_free(instances);
}

/* Spans of the time of an upload that waits are not covered, whatever other uploads say. */
static void test_upload_that_waits_covers_nothing(void **state)
{
    (void)state;
    struct instances *instances = instances_new(SLOTS, MOST);
    struct instance_clock clock = clock_at(30 * SECOND);
    struct span_wakeups wakeups = {0};
    uint16_t number = find(instances, 1, 1);
    struct instance_hold first, second;
    instances_hold_upload(instances, number, 0, (struct upload_range){0, 10 * SECOND}, false,
                          &first);
    instances_hold_upload(instances, number, number,
                          (struct upload_range){10 * SECOND, 20 * SECOND}, false, &second);
    assert_int_equal(upload(instances, number, 0, 30 * SECOND, 30 * SECOND), 0);
    struct instance_waiter *waiter = wait_for(instances, number, 5 * SECOND, 15 * SECOND, &clock);
    assert_non_null(waiter);
    assert_null(wait_for(instances, number, 20 * SECOND, 25 * SECOND, &clock));
    instances_end_hold(instances, &second, &clock, &wakeups);
    assert_int_equal(wakeups.count, 0);
    instances_end_hold(instances, &first, &clock, &wakeups);
    assert_int_equal(wakeups.count, 1);
    instances_stop_waiting(instances, waiter);
    assert_null(wait_for(instances, number, 5 * SECOND, 15 * SECOND, &clock));
    span_wakeups_deinit(&wakeups);
    instances_free(instances);
}

/* The process may become known only when the upload leaves. */
static void test_upload_of_an_unknown_process_waits(void **state)
{
    (void)state;
    struct instances *instances = instances_new(SLOTS, MOST);
    struct instance_clock clock = clock_at(30 * SECOND);
    struct span_wakeups wakeups = {0};
    uint16_t uploader = find(instances, 1, 1), process = find(instances, 2, 1);
    struct instance_hold hold;
    instances_hold_upload(instances, uploader, 0, (struct upload_range){0, 10 * SECOND}, false,
                          &hold);
    assert_int_equal(upload(instances, uploader, process, 30 * SECOND, 30 * SECOND), 0);
    struct instance_coverage coverage = instances_coverage(instances, process, &clock);
    assert_false(instance_covers(&coverage, (struct upload_range){5 * SECOND, 6 * SECOND}, false));
    assert_true(instance_covers(&coverage, (struct upload_range){12 * SECOND, 13 * SECOND}, false));
    instances_end_hold(instances, &hold, &clock, &wakeups);
    coverage = instances_coverage(instances, process, &clock);
    assert_true(instance_covers(&coverage, (struct upload_range){5 * SECOND, 6 * SECOND}, false));
    instances_free(instances);
}

/* Many uploads of one process cost no more than some. */
static void test_many_uploads_wait(void **state)
{
    (void)state;
    enum { MANY = 1000 };
    struct instances *instances = instances_new(SLOTS, MOST);
    struct instance_clock clock = clock_at(30 * SECOND);
    struct span_wakeups wakeups = {0};
    struct instance_hold *holds = calloc(MANY, sizeof *holds);
    uint16_t number = find(instances, 1, 1);
    size_t before = instances_memory(instances);
    for (uint64_t i = 0; i < MANY; i++)
        instances_hold_upload(instances, number, 0, (struct upload_range){i, i + 1}, false,
                              &holds[i]);
    assert_true(instances_memory(instances) - before < 10000);
    upload(instances, number, 0, 30 * SECOND, 30 * SECOND);
    struct instance_waiter *waiter = wait_for(instances, number, 0, MANY, &clock);
    assert_non_null(waiter);
    for (uint64_t i = 0; i < MANY; i++) {
        assert_int_equal(wakeups.count, 0);
        instances_end_hold(instances, &holds[i], &clock, &wakeups);
    }
    assert_int_equal(wakeups.count, 1);
    instances_stop_waiting(instances, waiter);
    span_wakeups_deinit(&wakeups);
    instances_free(instances);
    free(holds);
}

int main(void)
{
    hash_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_id_finds_the_instance),
        cmocka_unit_test(test_the_number_on_a_host_is_enough),
        cmocka_unit_test(test_a_number_that_processes_share_is_of_none),
        cmocka_unit_test(test_which_process_has_the_threads),
        cmocka_unit_test(test_threads_may_come),
        cmocka_unit_test(test_nobody_looked_for_their_spans),
        cmocka_unit_test(test_the_only_process_of_a_container),
        cmocka_unit_test(test_another_container_of_the_pod),
        cmocka_unit_test(test_one_process_with_two_numbers),
        cmocka_unit_test(test_an_owner_has_half_of_the_numbers),
        cmocka_unit_test(test_unused_numbers_are_given_out_again),
        cmocka_unit_test(test_a_service_is_in_use_while_its_processes_are),
        cmocka_unit_test(test_the_service_of_a_process_may_be_forgotten),
        cmocka_unit_test(test_a_number_that_is_waited_for_is_not_free),
        cmocka_unit_test(test_an_upload_wakes_those_that_it_covers),
        cmocka_unit_test(test_the_slowest_sample_type_decides),
        cmocka_unit_test(test_joined_samples_show_the_process),
        cmocka_unit_test(test_when_samples_of_unknown_spans_left),
        cmocka_unit_test(test_those_who_wait_for_a_gap),
        cmocka_unit_test(test_a_gap_is_waited_for_in_the_window),
        cmocka_unit_test(test_gaps_that_overlap_are_told_as_one),
        cmocka_unit_test(test_the_first_upload_may_have_an_earlier_time),
        cmocka_unit_test(test_upload_that_waits_covers_nothing),
        cmocka_unit_test(test_upload_of_an_unknown_process_waits),
        cmocka_unit_test(test_many_uploads_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
